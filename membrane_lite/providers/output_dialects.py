"""A schema in what a provider knows of JSON Schema, where it holds an answer to one.

    {"type": "object", "properties": {"age": {"type": "integer", "minimum": 0}}}
    -> {"type": "object", "properties": {"age": {"type": "integer", "description": "Must match {\\"minimum\\":0}"}},
        "additionalProperties": false}                                                                     Claude's

What a provider would refuse, or not read, is said in the description; the answer is validated against the schema
itself. INNER says in which keywords further schemas stand, CLAUDE and GEMINI what these two know. OpenAI's dialect is
more than a choice of keywords: schema/strict.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from ..schema.definitions import gathered
from ..schema.json_values import equality_key
from ..schema.prepare import prepare
from ..schema.strict import SILENT, kind_names, noted, referring, typed
from ..values.base import Json

STRING_FORMATS: Final = frozenset(
    ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"]
)


class Dialect(NamedTuple):
    """kept: the keywords it knows. renamed: those it knows by another name: what to say instead, None for nothing.

    formats: of strings, those it knows. constants: the types of those it knows. closed: objects have no other
    properties than those they name, and no schema contains itself. least_items: how many an array can be made to have.
    most_optional, most_unions: how many properties may be absent, and how many schemas have alternatives, in all.
    """

    kept: frozenset[str]
    renamed: Mapping[str, Callable[[Any], Json | None]]
    formats: frozenset[str] = STRING_FORMATS
    constants: frozenset[str] = frozenset(["string", "integer", "number", "boolean", "null"])
    closed: bool = False
    least_items: float = float("inf")
    most_optional: float = float("inf")
    most_unions: float = float("inf")

    def said(self, keyword: str, given: Any) -> Json | None:
        """The keyword as this dialect has it; None where it has no word for it."""
        if not self._knows(keyword, given):
            return None
        inside = INNER[keyword](given, self) if keyword in INNER else given
        return self.renamed[keyword](inside) if keyword in self.renamed else {keyword: inside}

    def _knows(self, keyword: str, given: Any) -> bool:
        if keyword == "format":
            return isinstance(given, str) and given in self.formats
        if keyword == "minItems" and given > self.least_items:
            return False
        if keyword in ("enum", "const") and not kind_names({keyword: given}) <= self.constants:
            return False
        return keyword in self.kept or keyword in self.renamed


def in_dialect(schema: Json, dialect: Dialect) -> Json | None:
    """`schema` as the dialect has it; None where it has no form for it."""
    schema = gathered(schema)
    if dialect.closed and not is_closed(schema):
        return None
    said = written(schema, dialect)
    return None if is_too_much(said, dialect) else said


def written(schema: Any, dialect: Dialect) -> Any:
    if not isinstance(schema, Mapping):
        return schema
    kept: dict[str, Any] = {}
    dropped: dict[str, Any] = {}
    for keyword, given in schema.items():
        said = dialect.said(keyword, given)
        if said is not None:
            kept.update(said)
        elif keyword not in SILENT:
            dropped[keyword] = given
    if dialect.closed and is_object(schema):
        kept["additionalProperties"] = False
    return referring(noted(typed(schema, kept), dropped))


def one(given: Any, dialect: Dialect) -> Any:
    return written(given, dialect)


def several(given: Any, dialect: Dialect) -> list[Any]:
    return [written(inner, dialect) for inner in given]


def by_name(given: Any, dialect: Dialect) -> dict[str, Any]:
    return {name: written(inner, dialect) for name, inner in given.items()}


def is_object(schema: Mapping[str, Any]) -> bool:
    kind = schema.get("type")
    return kind == "object" or (isinstance(kind, list) and "object" in kind) or "properties" in schema


def alone(given: Any) -> Json | None:
    """allOf of one schema is a detour, which some generators take to put a description beside a reference."""
    return {"anyOf": given} if len(given) == 1 else None


def any_of_places(given: Any) -> Json:
    """A place of its own for each item is not known: each may stand in any."""
    distinct = list({equality_key(form): form for form in given}.values())
    return {"items": distinct[0] if len(distinct) == 1 else {"anyOf": distinct}}


def is_closed(schema: Json) -> bool:
    """Whether no object in it has free keys, and no schema contains itself."""
    refs = prepare(schema).refs
    done: set[str] = set()

    def closed(found: Any, path: tuple[str, ...]) -> bool:
        if not isinstance(found, Mapping):
            return True
        if is_object(found) and ("properties" not in found or found.get("additionalProperties", False) is not False):
            return False
        if is_in_two_places(found) or kind_names(found) & {"object", "array"}:
            return False
        name = found.get("$ref")
        if name in path:
            return False
        if name is not None and name not in done:
            if not closed(refs[name], (*path, name)):
                return False
            done.add(name)
        return all(closed(inner, path) for inner in inner_schemas(found))

    return closed(schema, ())


def is_in_two_places(schema: Mapping[str, Any]) -> bool:
    """Whether several schemas describe one object: each, closed, would refuse what the others want."""
    inner = [found for keyword in ("anyOf", "oneOf", "allOf") for found in schema.get(keyword, ())]
    own = [keyword for keyword in ("properties", "$ref", "anyOf", "oneOf") if keyword in schema]
    described = {"properties", "$ref"} & schema.keys() or any(
        isinstance(found, Mapping) and ("$ref" in found or is_object(found)) for found in inner
    )
    return len(own) + len(schema.get("allOf", ())) > 1 and bool(described)


def is_too_much(schema: Json, dialect: Dialect) -> bool:
    optional = unions = 0
    for found in everything(schema):
        optional += len(found.get("properties", {}).keys() - set(found.get("required", ())))
        unions += "anyOf" in found or isinstance(found.get("type"), list)
    return optional > dialect.most_optional or unions > dialect.most_unions


def everything(schema: Json) -> Iterator[Mapping[str, Any]]:
    """Every schema in it, definitions too."""
    work: list[Any] = [schema]
    for found in work:
        if isinstance(found, Mapping):
            yield found
            work += [*inner_schemas(found), *found.get("$defs", {}).values()]


def inner_schemas(schema: Mapping[str, Any]) -> list[Any]:
    """Those that stand in it; definitions are met where they are referred to."""
    found: list[Any] = []
    for keyword, given in schema.items():
        if keyword in INNER and keyword != "$defs":
            found += given.values() if INNER[keyword] is by_name else given if INNER[keyword] is several else [given]
    return found


INNER: Final[Mapping[str, Callable[[Any, Dialect], Any]]] = {
    "properties": by_name,
    "$defs": by_name,
    "items": one,
    "additionalProperties": one,
    "prefixItems": several,
    "anyOf": several,
    "oneOf": several,
    "allOf": several,
}

# platform.claude.com/docs/en/build-with-claude/structured-outputs, "JSON Schema limitations". The rest is refused.
CLAUDE: Final = Dialect(
    kept=frozenset(
        [
            *("type", "title", "description", "enum", "const", "$defs", "$ref"),
            *("properties", "required", "items", "minItems", "anyOf"),
        ]
    ),
    renamed={
        "oneOf": lambda given: {"anyOf": given},
        "allOf": lambda given: alone(given) or {"allOf": given},
        "prefixItems": any_of_places,
        "additionalProperties": lambda given: {},  # it is false, and every object must say so
    },
    closed=True,
    least_items=1,
    most_optional=24,
    most_unions=16,
)

# ai.google.dev/api/generate-content, GenerationConfig.responseJsonSchema: "enum (for strings and numbers)". The rest is
# not read.
GEMINI: Final = Dialect(
    kept=frozenset(
        [
            *("type", "title", "description", "enum", "$defs", "$ref", "$id", "$anchor"),
            *("properties", "required", "additionalProperties", "items", "prefixItems", "minItems", "maxItems"),
            *("minimum", "maximum", "anyOf", "oneOf"),
        ]
    ),
    renamed={"const": lambda given: {"enum": [given]}, "allOf": alone},
    constants=frozenset(["string", "integer", "number"]),
)
