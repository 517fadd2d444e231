"""What type a parameter's JSON Schema declares, where it declares one.

`type` decides alone. Else everything that is said must hold: enum and const by the kinds of their values, anyOf and
oneOf by any of their members, allOf by all of them, $ref by what it refers to, if that is a definition of the schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Optional

from ..values.base import Json

Kinds = Optional[frozenset[str]]  # None: nothing is said of it

DEEPEST_SCHEMA: Final = 64
PLAIN_TYPES: Final = ("string", "integer", "boolean", "object", "array", "null")
NUMBER: Final = frozenset({"number", "integer"})  # an integer is a number, so "number" allows both
TYPES: Final = {**{name: frozenset({name}) for name in PLAIN_TYPES}, "number": NUMBER}
PYTHON_TYPES: Final = {str: "string", bool: "boolean", int: "integer", dict: "object", list: "array"}


def declared_type(schema: Json, root: Json) -> tuple[str | None, bool]:
    """The one type besides null that `schema` allows, or None; and whether it says that null is allowed.

    root: the whole schema, whose `definitions` and `$defs` are referred to.
    """
    kinds = _Schema(root).kinds(schema) or frozenset()
    types = kinds - {"null"}
    if types == NUMBER:
        types = frozenset({"number"})
    return (next(iter(types)) if len(types) == 1 else None), "null" in kinds


class _Schema:
    """Definitions by their references, each looked at once: they may share each other, and go round in circles."""

    def __init__(self, root: Json) -> None:
        self._root: Final = root
        self._known: Final[dict[str, Kinds]] = {}

    def kinds(self, schema: Json, depth: int = 0) -> Kinds:
        if not isinstance(schema, dict) or depth > DEEPEST_SCHEMA:
            return None
        if "type" in schema:
            return _named(schema["type"])
        return _all([say(self, schema[key], depth + 1) for key, say in KEYWORDS.items() if key in schema])

    def values(self, values: Json, depth: int) -> Kinds:
        return _any([_kind_of(value) for value in values]) if isinstance(values, list) else None

    def value(self, value: Json, depth: int) -> Kinds:
        return _kind_of(value)

    def any_of(self, members: Json, depth: int) -> Kinds:
        return _any([*self._each(members, depth)])

    def all_of(self, members: Json, depth: int) -> Kinds:
        return _all([*self._each(members, depth)])

    def reference(self, reference: Json, depth: int) -> Kinds:
        if not isinstance(reference, str):
            return None
        if reference not in self._known:
            self._known[reference] = None  # met again before it is known, it adds nothing
            self._known[reference] = self.kinds(definition(reference, self._root), depth)
        return self._known[reference]

    def _each(self, members: Json, depth: int) -> Iterator[Kinds]:
        return (self.kinds(member, depth) for member in (members if isinstance(members, list) else ()))


def definition(reference: Json, root: Json) -> Json:
    """What "#/definitions/NAME" or "#/$defs/NAME" refers to; RFC 6901 says how a name is written there."""
    here, _, place = reference.partition("/") if isinstance(reference, str) else ("", "", "")
    section, _, name = place.partition("/")
    if here != "#" or section not in ("definitions", "$defs") or not isinstance(root, dict):
        return None
    definitions = root.get(section)
    written = name.replace("~1", "/").replace("~0", "~")
    return definitions.get(written) if isinstance(definitions, dict) else None


def _named(names: Json) -> Kinds:
    """Of `type`: a name or a list of them. One that JSON Schema does not have says nothing."""
    names = names if isinstance(names, list) else [names]
    return _any([TYPES.get(name) if isinstance(name, str) else None for name in names])


def _kind_of(value: Json) -> Kinds:
    if value is None:
        return TYPES["null"]
    if isinstance(value, float):
        return TYPES["integer"] if value.is_integer() else frozenset({"number"})
    name = PYTHON_TYPES.get(type(value))
    return None if name is None else TYPES[name]


def _any(kinds: Sequence[Kinds]) -> Kinds:
    """Allowed by one of them: everything, if one of them says nothing."""
    said = [found for found in kinds if found is not None]
    return frozenset().union(*said) if said and len(said) == len(kinds) else None


def _all(kinds: Sequence[Kinds]) -> Kinds:
    """Allowed by each of them that says anything."""
    said = [found for found in kinds if found is not None]
    return frozenset.intersection(*said) if said else None


KEYWORDS: Final[dict[str, Callable[[_Schema, Any, int], Kinds]]] = {
    "enum": _Schema.values,
    "const": _Schema.value,
    "anyOf": _Schema.any_of,
    "oneOf": _Schema.any_of,
    "allOf": _Schema.all_of,
    "$ref": _Schema.reference,
}
