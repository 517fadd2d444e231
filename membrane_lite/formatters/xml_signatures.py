"""What tools declare: a JSON Schema in; the type of each parameter and the names of required ones out.

The root's own properties count. Where all members of its oneOf, anyOf or allOf are object schemas, theirs do too: a
parameter may be what any alternative says, and must be what every part says. schema_types reads a single schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from ..values.base import Json
from ..values.tools import Tool
from .schema_types import KEYWORDS, declared_type, definition


class Declared(NamedTuple):
    """type: the one type besides null, None where there is none. unclear: a type was declared, but not such a one."""

    type: str | None = None
    nullable: bool = False
    unclear: bool = False

    def allows(self, found: str) -> bool:
        return (
            found == self.type or (self.type == "number" and found == "integer") or (self.nullable and found == "null")
        )


class Signature(NamedTuple):
    """required: names, declared or not."""

    parameters: Mapping[str, Declared]
    required: frozenset[str]

    def type_of(self, parameter: str) -> Declared:
        return self.parameters.get(parameter, UNDECLARED)

    def missing(self, given: Iterable[str]) -> dict[str, bool]:
        """The parameters that are not given, and whether each is required."""
        return {name: name in self.required for name in self.required.union(self.parameters).difference(given)}


UNDECLARED: Final = Declared()
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


def signature(root: Json) -> Signature:
    said: dict[str, list[_Said]] = {}
    for combiner, members in _groups(root):
        for name in dict.fromkeys(name for member in members for name in _properties(member)):
            schemas = [_properties(member)[name] for member in members if name in _properties(member)]
            said.setdefault(name, []).append(_Said(combiner, schemas))
    required = _list(root, "required")
    return Signature(
        {name: _declared(parts, root) for name, parts in said.items()},
        frozenset(name for name in required if isinstance(name, str)),
    )


class _Said(NamedTuple):
    """What schemas that stand side by side say of one parameter, and whether all of them hold or any."""

    combiner: str
    schemas: list[Json]


def _groups(root: Json) -> Iterator[tuple[str, list[Json]]]:
    """The root, and the members of each of its keywords if they are all objects."""
    yield "allOf", [root]
    for keyword, combiner in COMBINERS.items():
        members = [_resolved(member, root) for member in _list(root, keyword)]
        if all(map(_is_object_schema, members)):
            yield combiner, members


def _declared(said: Sequence[_Said], root: Json) -> Declared:
    type, nullable = declared_type({"allOf": [{part.combiner: part.schemas} for part in said]}, root)
    speaks = any(_speaks_of_types(schema) for part in said for schema in part.schemas)
    return Declared(type, nullable, unclear=type is None and speaks)


def _speaks_of_types(schema: Json) -> bool:
    return any(key in TYPE_KEYWORDS for key in schema) if isinstance(schema, dict) else schema is not True


def _resolved(schema: Json, root: Json) -> Json:
    return definition(schema["$ref"], root) if isinstance(schema, dict) and "$ref" in schema else schema


def _is_object_schema(schema: Json) -> bool:
    return isinstance(schema, dict) and (schema.get("type") == "object" or "properties" in schema)


def _properties(schema: Json) -> dict[str, Json]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return properties if isinstance(properties, dict) else {}


def _list(schema: Json, keyword: str) -> list[Json]:
    value = schema.get(keyword) if isinstance(schema, dict) else None
    return value if isinstance(value, list) else []


COMBINERS: Final = {"oneOf": "anyOf", "anyOf": "anyOf", "allOf": "allOf"}
TYPE_KEYWORDS: Final = {"type", *KEYWORDS}
