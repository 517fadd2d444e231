"""A schema before any value is seen: its form is checked, its references are resolved, its patterns are compiled.

What is wrong with a schema is the caller's to repair: invalid_request, with the JSON Pointer of the place in it. FORMS
says what every keyword may hold, INNER where in it further schemas stand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from ..errors import MembraneError, invalid, shown
from .json_values import equality_key, escaped, is_integer, kind_of

TYPES: Final = ("null", "boolean", "object", "array", "number", "integer", "string")
SAME_VALUE: Final = ("$ref", "allOf", "anyOf", "oneOf", "not")  # keywords whose schemas are about the same value


class Prepared(NamedTuple):
    """root: the schema. refs: what every `$ref` in it names. patterns: compiled. enums: by id, their equality keys."""

    root: Any
    refs: dict[str, Any]
    patterns: dict[str, re.Pattern[str]]
    enums: dict[int, frozenset[Any]]


def prepare(schema: Any) -> Prepared:
    """Walk every schema in `schema` once. Raises MembraneError("invalid_request") for one that cannot be applied."""
    prepared = Prepared(schema, {}, {}, {})
    seen: dict[int, str] = {}
    work = [(schema, "")]
    for found, pointer in work:
        if isinstance(found, bool) or id(found) in seen:
            continue
        if not isinstance(found, Mapping):
            raise fault(pointer, f"found {type(found).__name__} {shown(found)}", "a schema (an object or a boolean)")
        seen[id(found)] = pointer
        for keyword, given in found.items():
            if keyword in FORMS:
                work.extend(_read(keyword, given, pointer=f"{pointer}/{escaped(keyword)}", prepared=prepared))
    _refuse_circles(prepared, seen)
    return prepared


def fault(pointer: str, found: str, expected: str) -> MembraneError:
    return invalid(f"schema#{pointer}", found, f"expected {expected}")


def _read(keyword: str, given: Any, *, pointer: str, prepared: Prepared) -> Iterator[tuple[Any, str]]:
    """One keyword: checked, noted, and the schemas in it."""
    form = FORMS[keyword]
    if not form.holds(given):
        raise fault(pointer, f"found {shown(given)}", form.words)
    if keyword == "$ref":
        prepared.refs[given] = _target(prepared.root, given, pointer)
        yield prepared.refs[given], given[1:]
    elif keyword == "pattern":
        prepared.patterns[given] = _compiled(given, pointer)
    elif keyword == "enum":
        prepared.enums[id(given)] = frozenset(map(equality_key, given))
    elif keyword in INNER:
        for key, schema in INNER[keyword](given):
            yield schema, f"{pointer}/{escaped(key)}" if key != "" else pointer


def _target(root: Any, ref: str, pointer: str) -> Any:
    """What a reference within the schema names: the path of RFC 6901, percent-encoded as URI fragments are."""
    found = root
    for step in ref[1:].split("/")[1:]:
        key = unquote(step).replace("~1", "/").replace("~0", "~")
        try:
            found = found[int(key)] if isinstance(found, list) else found[key]
        except (LookupError, TypeError, ValueError):
            raise fault(pointer, f"{ref!r} names nothing in the schema", "a place in it") from None
    return found


def _compiled(pattern: str, pointer: str) -> re.Pattern[str]:
    """In the dialect of ECMA-262, as far as Python's differs without being told.

    \\d and \\w are ASCII (22.2.2.9), and `$` is the very end (22.2.2.4), where Python's lets a line feed follow.
    """
    try:
        return re.compile(TOKEN.sub(lambda found: r"\Z" if found[0] == "$" else found[0], pattern), re.ASCII)
    except (re.error, OverflowError, RecursionError) as exc:
        raise fault(pointer, f"{pattern!r} is no pattern: {exc}", "a regular expression") from exc


TOKEN: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\$", re.DOTALL)  # an escape, a class, or a bare `$`


def _refuse_circles(prepared: Prepared, seen: Mapping[int, str]) -> None:
    """A schema that asks itself about the same value would ask for ever."""
    done: set[int] = set()
    for start in (prepared.root, *prepared.refs.values()):
        path: dict[int, Iterator[Any]] = {id(start): _same_value(start, prepared)}
        while path:
            at = next(reversed(path))
            inner = next(path[at], None)
            if inner is None:
                done.add(at)
                del path[at]
            elif id(inner) in path:
                raise fault(seen[id(inner)], "the schema leads back to itself", "one that goes on into the value")
            elif id(inner) not in done:
                path[id(inner)] = _same_value(inner, prepared)


def _same_value(schema: Any, prepared: Prepared) -> Iterator[Any]:
    for keyword in SAME_VALUE if isinstance(schema, Mapping) else ():
        if keyword in schema:
            given = schema[keyword]
            inner = [prepared.refs[given]] if keyword == "$ref" else [found for _, found in INNER[keyword](given)]
            yield from (found for found in inner if isinstance(found, Mapping))


# Forms


def _is_schema_map(given: Any) -> bool:
    return isinstance(given, Mapping) and all(isinstance(name, str) for name in given)


def _is_list(given: Any) -> bool:
    return isinstance(given, list)


def _is_list_of_strings(given: Any) -> bool:
    return isinstance(given, list) and all(isinstance(name, str) for name in given)


def _is_type(given: Any) -> bool:
    names = given if isinstance(given, list) else [given]
    return bool(names) and all(isinstance(name, str) and name in TYPES for name in names)


def _is_ref(given: Any) -> bool:
    return isinstance(given, str) and (given == "#" or given.startswith("#/"))


def _is_number(given: Any) -> bool:
    return kind_of(given) == "number"


def _is_positive(given: Any) -> bool:
    return _is_number(given) and given > 0


def _is_count(given: Any) -> bool:
    return is_integer(given) and given >= 0


def _is_string(given: Any) -> bool:
    return isinstance(given, str)


def _is_flag(given: Any) -> bool:
    return isinstance(given, bool)


def _is_anything(given: Any) -> bool:
    return True


class Form(NamedTuple):
    holds: Callable[[Any], bool]
    words: str


_NUMBER, _COUNT = Form(_is_number, "a number"), Form(_is_count, "a whole number, 0 or more")
_SCHEMA, _SCHEMAS = Form(_is_anything, "a schema"), Form(_is_list, "a list of schemas")
_SCHEMA_MAP = Form(_is_schema_map, "an object of schemas")

FORMS: Final[Mapping[str, Form]] = {
    "type": Form(_is_type, f"one of {', '.join(TYPES)}, or a list of them"),
    "enum": Form(_is_list, "a list of values"),
    "minimum": _NUMBER,
    "maximum": _NUMBER,
    "exclusiveMinimum": _NUMBER,
    "exclusiveMaximum": _NUMBER,
    "multipleOf": Form(_is_positive, "a number above 0"),
    "minLength": _COUNT,
    "maxLength": _COUNT,
    "pattern": Form(_is_string, "a string"),
    "minItems": _COUNT,
    "maxItems": _COUNT,
    "uniqueItems": Form(_is_flag, "true or false"),
    "required": Form(_is_list_of_strings, "a list of names"),
    "$ref": Form(_is_ref, "a reference within the schema, '#' or '#/...'"),
    "properties": _SCHEMA_MAP,
    "$defs": _SCHEMA_MAP,
    "additionalProperties": _SCHEMA,
    "items": _SCHEMA,
    "not": _SCHEMA,
    "prefixItems": _SCHEMAS,
    "allOf": _SCHEMAS,
    "anyOf": _SCHEMAS,
    "oneOf": _SCHEMAS,
}


def _by_name(given: Any) -> Iterator[tuple[str, Any]]:
    yield from given.items()


def _in_order(given: Any) -> Iterator[tuple[str | int, Any]]:
    yield from enumerate(given)


def _itself(given: Any) -> Iterator[tuple[str, Any]]:
    yield "", given


INNER: Final[Mapping[str, Callable[[Any], Iterator[tuple[Any, Any]]]]] = {
    "properties": _by_name,
    "$defs": _by_name,
    "additionalProperties": _itself,
    "items": _itself,
    "not": _itself,
    "prefixItems": _in_order,
    "allOf": _in_order,
    "anyOf": _in_order,
    "oneOf": _in_order,
}
