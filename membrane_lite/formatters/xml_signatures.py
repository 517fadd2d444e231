"""What tools declare of their parameters: a JSON Schema in, the kinds of value of each parameter out.

Root properties count, and where all members of a root oneOf, anyOf or allOf are object schemas, those of the members.
`type` decides alone; else the constants do; else local references, alternatives (what any allows) and parts (what all
allow) together. "integer or number" is number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any, Final, NamedTuple, Union

from ..values.tools import Tool

# The kinds of value a schema allows: None is any, the empty set is "cannot be told". `number` comes with `integer`.
Kinds = Union["frozenset[str]", None]

UNREADABLE: Final[frozenset[str]] = frozenset()
NUMBER: Final = frozenset({"integer", "number"})
KINDS: Final[Mapping[str, frozenset[str]]] = {
    "string": frozenset({"string"}),
    "integer": frozenset({"integer"}),
    "number": NUMBER,
    "boolean": frozenset({"boolean"}),
    "array": frozenset({"array"}),
    "object": frozenset({"object"}),
    "null": frozenset({"null"}),
}

REFERENCE: Final = re.compile(r"#/(definitions|\$defs)/([^/]+)")


class Signature(NamedTuple):
    """What a tool declares: the kinds of each parameter, and which ones it requires, declared or not."""

    kinds: Mapping[str, Kinds]
    required: frozenset[str]

    def missing(self, given: Iterable[str]) -> dict[str, bool]:
        """The parameters that are not given, and whether each is required."""
        return {name: name in self.required for name in self.required.union(self.kinds).difference(given)}


NOTHING_DECLARED: Final = Signature({}, frozenset())


class Signatures:
    """The signatures of tools by name, each read when it is first asked for."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools: Final = {tool.name: tool for tool in tools}
        self._read: Final[dict[str, Signature]] = {}

    def of(self, name: str) -> Signature:
        if name not in self._tools:
            return NOTHING_DECLARED
        if name not in self._read:
            self._read[name] = signature(self._tools[name].input_schema)
        return self._read[name]


def single_kind(kinds: Kinds) -> str | None:
    """The one kind there is besides null, or None."""
    others = (kinds or UNREADABLE) - {"null"} or kinds
    return next((kind for kind, found in KINDS.items() if found == others), None)


def signature(schema: Any) -> Signature:
    """What the root of a tool's schema declares, its own properties and those of its members."""
    reader = _Schema(schema)
    root = reader.resolved(schema)
    required = frozenset(name for name in _list(root, "required") if isinstance(name, str))
    return Signature(reader.declared(root), required)


class _Schema:
    """A root schema, for the references into it. Each is read once, so neither circles nor webs of them cost much."""

    def __init__(self, root: Any) -> None:
        self._root: Final = root
        self._kinds_by_reference: Final[dict[str, Kinds]] = {}

    def declared(self, root: Any) -> dict[str, Kinds]:
        """Kinds by parameter. Where all members of a root keyword are object schemas, their properties count too."""
        found = {name: self.kinds(schema) for name, schema in _properties(root).items()}
        for keyword, combine in COMBINERS.items():
            members = [self.resolved(member) for member in _list(root, keyword)]
            if not all(map(_is_object_schema, members)):
                continue
            named = [_properties(member) for member in members]
            for name in dict.fromkeys(name for properties in named for name in properties):
                own = combine([self.kinds(properties[name]) for properties in named if name in properties])
                found[name] = intersection([found[name], own]) if name in found else own
        return found

    def kinds(self, schema: Any) -> Kinds:
        """`type` decides alone, else the constants, else references, alternatives and parts together."""
        if schema is True:
            return None
        if not isinstance(schema, Mapping):
            return UNREADABLE
        if "type" in schema:
            return _named(schema["type"])
        if "const" in schema:
            return KINDS[kind_of(schema["const"])]
        if "enum" in schema:
            return union([KINDS[kind_of(value)] for value in _list(schema, "enum")])
        parts = [self._referred(schema["$ref"])] if "$ref" in schema else []
        parts += [
            combine(map(self.kinds, _list(schema, keyword)))
            for keyword, combine in COMBINERS.items()
            if keyword in schema
        ]
        return intersection(parts)

    def _referred(self, reference: Any) -> Kinds:
        key = str(reference)
        if key not in self._kinds_by_reference:
            self._kinds_by_reference[key] = UNREADABLE  # what a circle finds
            self._kinds_by_reference[key] = self.kinds(self._target(key))
        return self._kinds_by_reference[key]

    def resolved(self, schema: Any) -> Any:
        """The schema itself, or what its local reference leads to."""
        return self._target(str(schema["$ref"])) if isinstance(schema, Mapping) and "$ref" in schema else schema

    def _target(self, reference: str) -> Any:
        match = REFERENCE.fullmatch(reference)
        definitions = self._root.get(match[1]) if match else None
        return definitions.get(match[2]) if match and isinstance(definitions, Mapping) else None


def union(parts: Iterable[Kinds]) -> Kinds:
    """Any where one is any; not to be told where one is not."""
    found = list(parts)
    if not all(part is None or part for part in found):
        return UNREADABLE
    return None if None in found else frozenset().union(*(part for part in found if part))


def intersection(parts: Iterable[Kinds]) -> Kinds:
    """What all allow; those that allow any take nothing away."""
    found = [part for part in parts if part is not None]
    return reduce(frozenset.intersection, found) if found else None


def _named(names: Any) -> Kinds:
    listed = [names] if isinstance(names, str) else names
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        return UNREADABLE
    return union(KINDS.get(name, UNREADABLE) for name in listed)


def _properties(schema: Any) -> Mapping[str, Any]:
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    return properties if isinstance(properties, Mapping) else {}


def _is_object_schema(schema: Any) -> bool:
    return isinstance(schema, Mapping) and (schema.get("type") == "object" or "properties" in schema)


def _list(schema: Any, keyword: str) -> list[Any]:
    value = schema.get(keyword) if isinstance(schema, Mapping) else None
    return value if isinstance(value, list) else []


def kind_of(value: Any) -> str:
    return next((kind for cls, kind in KIND_OF_CLASS if isinstance(value, cls)), "null")


# bool before int, whose subclass it is.
KIND_OF_CLASS: Final[tuple[tuple[Any, str], ...]] = (
    (str, "string"),
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (list, "array"),
    (dict, "object"),
)

COMBINERS: Final = {"oneOf": union, "anyOf": union, "allOf": intersection}
