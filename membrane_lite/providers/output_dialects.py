"""A schema in what a provider knows of JSON Schema, where it holds an answer to one.

    {"type": "object", "properties": {"age": {"type": "integer", "minimum": 0}}}
    -> {"type": "object", "properties": {"age": {"type": "integer", "description": "Must match {\\"minimum\\":0}"}},
        "additionalProperties": false}                                                                     Claude's

What a provider would refuse, or not read, is said in the description; the answer is validated against the schema
itself. INNER says in which keywords further schemas stand, CLAUDE and GEMINI what these two know. OpenAI's dialect is
more than a choice of keywords: schema/strict.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from ..schema.prepare import prepare
from ..schema.strict import noted, referring
from ..values.base import Json

STRING_FORMATS: Final = frozenset(
    ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"]
)


class Dialect(NamedTuple):
    """kept: the keywords it knows. renamed: those it knows by another name: what to say instead, None for nothing.

    formats: of strings, those it knows. closed: objects have no other properties than those they name, and no schema
    contains itself. least_items: how many an array can be made to have.
    """

    kept: frozenset[str]
    renamed: Mapping[str, Callable[[Any], Json | None]]
    formats: frozenset[str] = STRING_FORMATS
    closed: bool = False
    least_items: float = float("inf")

    def said(self, keyword: str, given: Any) -> Json | None:
        """The keyword as this dialect has it; None where it has no word for it."""
        inside = INNER[keyword](given, self) if keyword in INNER else given
        if keyword in self.renamed:
            return self.renamed[keyword](inside)
        known = given in self.formats if keyword == "format" else keyword in self.kept
        return {keyword: inside} if known and (keyword != "minItems" or given <= self.least_items) else None


def in_dialect(schema: Json, dialect: Dialect) -> Json | None:
    """`schema` as the dialect has it; None where it has no form for it."""
    if dialect.closed and not is_closed(schema):
        return None
    return written(schema, dialect)


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
    return referring(noted(kept, dropped))


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


def is_closed(schema: Json) -> bool:
    """Whether no object in it has free keys, and no schema contains itself."""
    refs = prepare(schema).refs
    done: set[str] = set()

    def closed(found: Any, path: tuple[str, ...]) -> bool:
        if not isinstance(found, Mapping):
            return True
        if is_object(found) and ("properties" not in found or found.get("additionalProperties", False) is not False):
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

# What says nothing of the value, or only what decode reads.
SILENT: Final = {
    *("$schema", "$id", "$comment", "definitions", "discriminator"),
    *("default", "examples", "deprecated", "readOnly", "writeOnly"),
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
        "additionalProperties": lambda given: {},  # it is false, and every object must say so
    },
    closed=True,
    least_items=1,
)

# ai.google.dev/api/generate-content, GenerationConfig.responseJsonSchema. The rest is not read.
GEMINI: Final = Dialect(
    kept=frozenset(
        [
            *("type", "title", "description", "enum", "$defs", "$ref", "$id", "$anchor"),
            *("properties", "required", "additionalProperties", "items", "prefixItems", "minItems", "maxItems"),
            *("minimum", "maximum", "anyOf", "oneOf"),
        ]
    ),
    renamed={"const": lambda given: {"enum": [given]}, "allOf": alone},
)
