"""A schema in the subset that servers hold a model to, and the way back from an answer given under it.

OpenAI's strict mode (platform.openai.com/docs/guides/structured-outputs, "Supported schemas"). A schema outside of it
is answered with a 400 for the whole request:
- the root is an object, and no anyOf; every object has `additionalProperties: false`, and requires all its properties:
  what is optional is nullable instead;
- type, enum, const, anyOf, $defs, $ref (recursion too); pattern, and some formats; minimum, maximum, their exclusive
  forms, multipleOf; minItems, maxItems. Not: allOf, not, dependentRequired, dependentSchemas, if, then, else;
- not on the page, and refused ("... is not permitted"): oneOf (openai-agents-python#1884), default, propertyNames,
  uniqueItems, minLength, maxLength; and anything beside a $ref ("$ref cannot have keywords": dexter#280);
- at most 5,000 properties, 10 levels, 1,000 enum values, 120,000 characters of names and values. Not checked here.

For others the derived schema itself is better, and what they refuse is worth knowing:
- Anthropic's output_config.format (platform.claude.com/docs/en/build-with-claude/structured-outputs, "JSON Schema
  limitations") needs `additionalProperties: false`, lets properties be optional, and refuses: recursion; minimum,
  maximum, multipleOf; minLength, maxLength; minItems above 1; references to elsewhere; objects in an enum; and, counted
  over a request, more than 24 optional properties or 16 unions, which is why strict_schema is not for it. The
  input_schema of a tool without `strict` has none of these limits.
- Gemini's responseJsonSchema (ai.google.dev/api/generate-content, GenerationConfig) reads $id, $defs, $ref, $anchor,
  type, format, title, description, enum, items, prefixItems, minItems, maxItems, minimum, maximum, anyOf, oneOf (as
  anyOf), properties, additionalProperties, required, and no other; no const. Beside a $ref only what begins with $, and
  recursion only through properties that are not required. Its older responseSchema knows no references, no
  additionalProperties and no lists of types.

What a keyword that is left out asked for is put into the description, in words of JSON; decode still checks it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from ..errors import MembraneError
from ..wire.json_text import compact
from .definitions import gathered
from .json_values import equality_key, escaped, is_integer, kind_of
from .prepare import prepare
from .shapes import Json
from .validate import Validation

NULL: Final = {"type": "null"}


def strict_schema(schema: Mapping[str, Any]) -> Json:
    """`schema` in OpenAI's strict subset; itself unchanged. Give the answer to `without_nulls` before decoding it.

    Raises MembraneError("unsupported") for what the subset has no form for: an object with free keys, a value of any
    type, allOf. Such a schema can be sent without strict.
    """
    schema = gathered(schema)
    if schema.get("type") != "object" or ROOT_BEYOND & schema.keys():
        raise _beyond("", "a root that is no plain object")
    return _strict(schema, "")


def without_nulls(schema: Mapping[str, Any], answer: Any) -> Any:
    """An answer given under `strict_schema(schema)`, as `schema` has it: null for what may be absent becomes absent."""
    try:
        return Restoring(schema).restored(schema, answer)
    except RecursionError:  # decode says so of every answer that is nested too deep
        return answer


def _beyond(pointer: str, what: str) -> MembraneError:
    return MembraneError(
        "unsupported", f"schema#{pointer}: {what} has no form in strict mode; send this schema without strict"
    )


def _strict(schema: Any, pointer: str) -> Json:
    if not isinstance(schema, Mapping) or not MEANING & schema.keys():
        raise _beyond(pointer, "a schema that allows anything, or nothing")
    kept: Json = {}
    dropped: Json = {}
    for keyword, given in schema.items():
        rewrite = REWRITTEN.get(keyword)
        if rewrite is not None:
            kept.update(rewrite(schema, given, f"{pointer}/{escaped(keyword)}"))
        elif keyword in KEPT and (keyword != "format" or given in FORMATS):
            kept[keyword] = given
        elif keyword not in SILENT:
            dropped[keyword] = given
    if _is_of(schema, "object") and "properties" not in schema:
        raise _beyond(pointer, "an object with free keys")
    if _is_of(schema, "array") and not {"items", "prefixItems"} & schema.keys():
        raise _beyond(pointer, "an array of anything")
    if kind_names(schema) & {"object", "array"}:
        raise _beyond(pointer, "a constant that is an object or an array")
    return referring(noted(typed(schema, kept), dropped))


def _is_of(schema: Mapping[str, Any], name: str) -> bool:
    kind = schema.get("type", [])
    return name == kind or (isinstance(kind, list) and name in kind)


def kind_names(schema: Mapping[str, Any]) -> set[str]:
    """Of its constants, the names of their types."""
    given = [*schema.get("enum", ()), *([schema["const"]] if "const" in schema else ())]
    return {"integer" if is_integer(value) else str(kind_of(value)) for value in given}


def typed(schema: Mapping[str, Any], kept: Json) -> Json:
    """`kept` with the type of the constants of `schema`: OpenAI wants one ("schema must have a 'type' key")."""
    names = [] if "type" in kept else sorted(kind_names(schema))
    return {"type": names[0] if len(names) == 1 else names, **kept} if names else kept


def noted(kept: Json, dropped: Json) -> Json:
    """What no keyword may say any more, said in the description."""
    if not dropped:
        return kept
    lines = [kept["description"]] if kept.get("description") else []
    return {**kept, "description": "\n".join([*lines, f"Must match {compact(dropped)}"])}


def referring(schema: Json) -> Json:
    """Nothing stands beside a reference."""
    if "$ref" not in schema or len(schema) == 1:
        return schema
    beside = {keyword: given for keyword, given in schema.items() if keyword != "$ref"}
    return {"anyOf": [{"$ref": schema["$ref"]}], **beside}


# By keyword: functions of (the schema around it, what it says, its pointer) that return what to say instead.


def _properties(schema: Mapping[str, Any], given: Any, pointer: str) -> Json:
    if schema.get("additionalProperties", False) is not False:
        raise _beyond(pointer, "an object that takes more than its properties")
    if ALTERNATIVES & schema.keys():  # each would be made to refuse the properties of the other
        raise _beyond(pointer, "an object that is described in two places")
    required = schema.get("required", ())
    strict = {name: _strict(inner, f"{pointer}/{escaped(name)}") for name, inner in given.items()}
    return {
        "properties": {name: inner if name in required else _nullable(inner) for name, inner in strict.items()},
        "required": list(given),
        "additionalProperties": False,
    }


def _nullable(schema: Json) -> Json:
    """The same, or null. A description stays on the outside."""
    if _admits_null(schema):
        return schema
    if schema.keys() <= {"anyOf", "description"}:
        return {**schema, "anyOf": [*schema["anyOf"], NULL]} if "anyOf" in schema else schema
    inner = {keyword: given for keyword, given in schema.items() if keyword != "description"}
    return {"anyOf": [inner, NULL], **{key: schema[key] for key in ("description",) if key in schema}}


def _admits_null(schema: Any) -> bool:
    """Says so on its face: what a reference leads to is not looked at, and null twice does no harm."""
    return (
        _is_of(schema, "null")
        or ("enum" in schema and None in schema["enum"])
        or ("const" in schema and schema["const"] is None)
        or any(_admits_null(inner) for inner in schema.get("anyOf", ()) if isinstance(inner, Mapping))
    )


def _items(schema: Mapping[str, Any], given: Any, pointer: str) -> Json:
    """Those behind prefixItems are refused, or wanted by the same word; see there."""
    return {} if "prefixItems" in schema else {"items": _strict(given, pointer)}


def _prefix_items(schema: Mapping[str, Any], given: Any, pointer: str) -> Json:
    """A place of its own for each item is not in the subset: each may stand in any. Decode tells."""
    rest = [schema["items"]] if isinstance(schema.get("items"), Mapping) else []
    forms = [_strict(inner, f"{pointer}/{index}") for index, inner in enumerate([*given, *rest])]
    distinct = list({equality_key(form): form for form in forms}.values())
    return {"items": distinct[0] if len(distinct) == 1 else {"anyOf": distinct}}


def _any_of(schema: Mapping[str, Any], given: Any, pointer: str) -> Json:
    return {"anyOf": [_strict(inner, f"{pointer}/{index}") for index, inner in enumerate(given)]}


def _all_of(schema: Mapping[str, Any], given: Any, pointer: str) -> Json:
    """Of one schema it is a detour, which some generators take to put a description beside a reference."""
    if len(given) != 1 or "properties" in schema:
        raise _beyond(pointer, "allOf")
    return {keyword: inner for keyword, inner in _strict(given[0], f"{pointer}/0").items() if keyword not in schema}


def _defs(schema: Mapping[str, Any], given: Any, pointer: str) -> Json:
    return {"$defs": {name: _strict(inner, f"{pointer}/{escaped(name)}") for name, inner in given.items()}}


def _ref(schema: Mapping[str, Any], given: Any, pointer: str) -> Json:
    return {"$ref": given}


def _nothing(schema: Mapping[str, Any], given: Any, pointer: str) -> Json:
    return {}


REWRITTEN: Final[Mapping[str, Callable[[Mapping[str, Any], Any, str], Json]]] = {
    "properties": _properties,
    "required": _nothing,  # with the properties, as is additionalProperties
    "additionalProperties": _nothing,
    "items": _items,
    "prefixItems": _prefix_items,
    "anyOf": _any_of,
    "oneOf": _any_of,
    "allOf": _all_of,
    "$defs": _defs,
    "$ref": _ref,
}

KEPT: Final = {
    *("type", "enum", "const", "title", "description", "pattern", "format", "minItems", "maxItems"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
FORMATS: Final = ("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid")
SILENT: Final = {  # says nothing of the value, or only what decode reads
    *("$schema", "$id", "$comment", "definitions", "discriminator"),
    *("default", "examples", "deprecated", "readOnly", "writeOnly"),
}
ROOT_BEYOND: Final = {"anyOf", "oneOf", "allOf", "$ref"}
ALTERNATIVES: Final = {"anyOf", "oneOf", "$ref"}
MEANING: Final = {"type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref"}  # a schema has one of these


# The way back


class Restoring:
    """One schema, as it was before it was made strict."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        prepared = prepare(schema)
        self._refs: Final = prepared.refs
        self._validation: Final = Validation(prepared, None)

    def restored(self, schema: Any, value: Any) -> Any:
        if isinstance(value, dict):
            return dict(self._properties(schema, value))
        if isinstance(value, list):
            return [self.restored(self._item(schema, index), item) for index, item in enumerate(value)]
        return value

    def _properties(self, schema: Any, value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        target = self._meant(schema, value)
        properties, required = target.get("properties", {}), target.get("required", ())
        for name, inner in value.items():
            known = properties.get(name, {})
            if inner is not None or name in required or self._admits_null(known):
                yield name, self.restored(known, inner)

    def _item(self, schema: Any, index: int) -> Any:
        target = self._meant(schema, [])
        places = target.get("prefixItems", ())
        return places[index] if index < len(places) else target.get("items", {})

    def _meant(self, schema: Any, value: Any) -> Mapping[str, Any]:
        """The schema of an object or array. An answer in strict mode has every property: its keys tell alternatives
        apart, and where they do not, its texts, numbers and constants do.
        """
        shaped = [found for found in self._alternatives(schema) if _has_shape(found, value)]
        fitting = (found for found in shaped if self._holds(found, value)) if len(shaped) > 1 else iter(())
        return next(fitting, shaped[0] if shaped else {})

    def _holds(self, schema: Mapping[str, Any], value: Any) -> bool:
        """As far as it is seen without going into parts of parts."""
        given = value.items() if isinstance(value, dict) else ()
        properties, required = schema.get("properties", {}), schema.get("required", ())
        return all(
            isinstance(inner, (dict, list))
            or (inner is None and name not in required)
            or self._validation.fits(properties[name], inner)
            for name, inner in given
        )

    def _alternatives(self, schema: Any) -> Iterator[Mapping[str, Any]]:
        if not isinstance(schema, Mapping):
            return
        yield schema
        for inner in (
            *([self._refs[schema["$ref"]]] if "$ref" in schema else ()),
            *schema.get("anyOf", ()),
            *schema.get("oneOf", ()),
            *schema.get("allOf", ()),
        ):
            yield from self._alternatives(inner)

    def _admits_null(self, schema: Any) -> bool:
        return any(_admits_null(found) or not MEANING & found.keys() for found in self._alternatives(schema))


def _has_shape(schema: Mapping[str, Any], value: Any) -> bool:
    if isinstance(value, list):
        return "items" in schema or "prefixItems" in schema
    return bool(schema.get("properties", {}).keys() == value.keys())
