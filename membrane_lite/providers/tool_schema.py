"""Anthropic refuses oneOf, anyOf and allOf at the root of a tool's input_schema, and OpenAI at the root of an answer's
schema; nested ones are legal.

A root union of object schemas becomes one object that takes all their properties, with a sentence in its description
saying which belong together. Any other union becomes an open object whose description holds the union as JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ..values.base import Json
from ..wire.json_text import compact

COMBINATORS: Final = ("oneOf", "anyOf", "allOf")
LONGEST_DESCRIPTION: Final = 4000

Schema = Mapping[str, Any]


def flatten_root_union(schema: Json) -> Json:
    """`schema` without a root union; the same object where there is none."""
    if not isinstance(schema, Mapping):
        return schema
    unions = {name: schema[name] for name in COMBINATORS if isinstance(schema.get(name), list) and schema[name]}
    if not unions:
        return schema
    rest = {key: value for key, value in schema.items() if key not in unions}
    if all(_is_object(variant) for variants in unions.values() for variant in variants):
        return _merged(rest, unions)
    return _described(rest, unions)


def _is_object(variant: Json) -> bool:
    if not isinstance(variant, Mapping):
        return False
    return variant.get("type") == "object" or ("type" not in variant and isinstance(variant.get("properties"), Mapping))


def _merged(rest: Schema, unions: Mapping[str, list[Schema]]) -> dict[str, Any]:
    """One object: every variant's properties, the first of a name wins; what all ways through it require."""
    properties = dict(rest.get("properties") or {})
    required = [*_names(rest.get("required"))]
    sentences = []
    for name, variants in unions.items():
        for variant in variants:
            properties = {**properties, **(variant.get("properties") or {}), **properties}
        required += _required(name, variants)
        if name != "allOf" and len(variants) > 1:
            sentences.append(_alternatives(variants))
    flat = {key: value for key, value in rest.items() if key not in ("additionalProperties", "required")}
    flat.update(type="object", properties=properties)
    known = [key for key in dict.fromkeys(required) if key in properties]
    if known:
        flat["required"] = known
    return _with_description(flat, sentences)


def _required(name: str, variants: Iterable[Schema]) -> list[str]:
    """allOf: what any variant requires. oneOf, anyOf: what every variant requires, in the first one's order."""
    lists = [_names(variant.get("required")) for variant in variants]
    if name == "allOf":
        return [key for names in lists for key in names]
    return [key for key in lists[0] if all(key in names for names in lists)]


def _names(required: Any) -> list[str]:
    return [key for key in required if isinstance(key, str)] if isinstance(required, list) else []


def _alternatives(variants: Iterable[Schema]) -> str:
    groups = (", ".join(_names(variant.get("required"))) or "none required" for variant in variants)
    return "Give the fields of one of these groups: " + " | ".join(f"({group})" for group in groups)


def _described(rest: Schema, unions: Mapping[str, Any]) -> dict[str, Any]:
    """An open object; what it should hold stands in its description."""
    flat = {key: value for key, value in rest.items() if key != "required"}
    flat.update(type="object", properties=rest.get("properties") or {}, additionalProperties=True)
    return _with_description(flat, [f"The input must match this JSON Schema: {compact(unions)}"])


def _with_description(schema: dict[str, Any], sentences: list[str]) -> dict[str, Any]:
    lines = [schema["description"]] if schema.get("description") else []
    if lines or sentences:
        schema["description"] = "\n".join([*lines, *sentences])[:LONGEST_DESCRIPTION]
    return schema
