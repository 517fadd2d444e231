"""tool_schema: what becomes of a union at the root of a tool's schema, which Anthropic refuses."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from membrane_lite.providers.tool_schema import LONGEST_DESCRIPTION, flatten_root_union

A, B, C, D = ({"type": kind} for kind in ("string", "number", "boolean", "array"))


def variant(required: list[Any], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required}


KEPT: dict[str, Any] = {
    "no schema": None,
    "a string": "object",
    "a boolean schema": True,
    "no union": {"type": "object", "properties": {"a": A}},
    "a union below the root": {"type": "object", "properties": {"a": {"oneOf": [A, B]}}},
    "an empty union": {"type": "object", "anyOf": []},
    "a union that is no list": {"type": "object", "allOf": {"type": "object"}},
    "no properties": {"type": "object"},
}


@pytest.mark.parametrize("schema", KEPT.values(), ids=KEPT.keys())
def test_what_needs_no_change_is_the_same_object(schema: Any) -> None:
    assert flatten_root_union(schema) is schema


GROUPS = "Give the fields of one of these groups: "

# name: (schema, what is sent)
FLAT: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "oneOf: what all require is required": (
        {"oneOf": [variant(["a", "b"], a=A, b=B), variant(["c", "b"], b=B, c=C)]},
        {
            "type": "object",
            "properties": {"a": A, "b": B, "c": C},
            "required": ["b"],
            "description": GROUPS + "(a, b) | (c, b)",
        },
    ),
    "anyOf: nothing in common, and a description of its own": (
        {"type": "object", "description": "Look.", "anyOf": [variant(["a"], a=A), variant(["b"], b=B)]},
        {"type": "object", "description": f"Look.\n{GROUPS}(a) | (b)", "properties": {"a": A, "b": B}},
    ),
    "allOf: what any requires is required": (
        {"allOf": [variant(["a"], a=A), variant(["b", "a"], b=B)]},
        {"type": "object", "properties": {"a": A, "b": B}, "required": ["a", "b"]},
    ),
    "two unions apply together": (
        {
            "oneOf": [variant(["a"], a=A), variant(["b"], b=B)],
            "anyOf": [variant(["c"], c=C), variant(["c", "d"], c=C, d=D)],
        },
        {
            "type": "object",
            "properties": {"a": A, "b": B, "c": C, "d": D},
            "required": ["c"],
            "description": f"{GROUPS}(a) | (b)\n{GROUPS}(c) | (c, d)",
        },
    ),
    "the root's own come first, and the first of a name wins": (
        {
            "type": "object",
            "properties": {"a": A},
            "required": ["a"],
            "allOf": [variant(["b"], a=B, b=B), variant([], b=C)],
        },
        {"type": "object", "properties": {"a": A, "b": B}, "required": ["a", "b"]},
    ),
    "one variant needs no sentence": (
        {"oneOf": [variant(["a"], a=A)]},
        {"type": "object", "properties": {"a": A}, "required": ["a"]},
    ),
    "a variant that requires nothing": (
        {"oneOf": [variant([], a=A), {"properties": {"b": B}}]},
        {"type": "object", "properties": {"a": A, "b": B}, "description": GROUPS + "(none required) | (none required)"},
    ),
    "what no property is called cannot be required": (
        {"allOf": [variant(["a", "ghost", 7, None], a=A)], "required": ["other"]},
        {"type": "object", "properties": {"a": A}, "required": ["a"]},
    ),
    "closed objects are opened": (
        {"additionalProperties": False, "oneOf": [{**variant(["a"], a=A), "additionalProperties": False}]},
        {"type": "object", "properties": {"a": A}, "required": ["a"]},
    ),
    "definitions are kept": (
        {"$defs": {"x": A}, "title": "T", "allOf": [variant(["a"], a={"$ref": "#/$defs/x"})]},
        {
            "$defs": {"x": A},
            "title": "T",
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/x"}},
            "required": ["a"],
        },
    ),
    "an object without a type": (
        {"oneOf": [{"properties": {"a": A}, "required": ["a"]}]},
        {"type": "object", "properties": {"a": A}, "required": ["a"]},
    ),
    "a variant that is no object": (
        {"description": "Look.", "oneOf": [variant(["a"], a=A), {"type": "string"}]},
        {
            "type": "object",
            "properties": {},
            "additionalProperties": True,
            "description": "Look.\nThe input must match this JSON Schema: "
            '{"oneOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"type":"string"}]}',
        },
    ),
    "a variant that is a reference": (
        {
            "$defs": {"x": variant(["a"], a=A)},
            "definitions": {"y": A},
            "properties": {"b": B},
            "required": ["b"],
            "anyOf": [{"$ref": "#/$defs/x"}],
        },
        {
            "$defs": {"x": variant(["a"], a=A)},
            "definitions": {"y": A},
            "properties": {"b": B},
            "type": "object",
            "additionalProperties": True,
            "description": 'The input must match this JSON Schema: {"anyOf":[{"$ref":"#/$defs/x"}]}',
        },
    ),
    "a variant that is no schema": (
        {"anyOf": ["object"]},
        {
            "type": "object",
            "properties": {},
            "additionalProperties": True,
            "description": 'The input must match this JSON Schema: {"anyOf":["object"]}',
        },
    ),
}


@pytest.mark.parametrize("schema, flat", FLAT.values(), ids=FLAT.keys())
def test_a_union_at_the_root(schema: dict[str, Any], flat: dict[str, Any]) -> None:
    given = deepcopy(schema)
    assert flatten_root_union(given) == flat
    assert given == schema


@pytest.mark.parametrize("flat", [flat for _, flat in FLAT.values()], ids=FLAT.keys())
def test_what_was_flattened_needs_no_change(flat: dict[str, Any]) -> None:
    assert flatten_root_union(flat) is flat


def test_properties_stand_in_the_order_they_were_written_in() -> None:
    flat = flatten_root_union({"properties": {"z": A}, "oneOf": [variant([], y=A, z=B, x=A), variant([], w=A, y=B)]})
    assert list(flat["properties"].items()) == [("z", A), ("y", A), ("x", A), ("w", A)]


def test_a_description_has_a_limit() -> None:
    words = [{"type": "string", "const": "x" * 100}] * 100
    flat = flatten_root_union({"description": "Look.", "anyOf": words})
    assert len(flat["description"]) == LONGEST_DESCRIPTION == 4_000
    assert flat["description"].startswith("Look.\nThe input must match this JSON Schema: ")
