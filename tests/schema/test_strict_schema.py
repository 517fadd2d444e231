"""strict_schema: what OpenAI's strict mode takes; and without_nulls, the way back."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest

from membrane_lite.errors import MembraneError
from membrane_lite.schema.decode import decode_tool_input
from membrane_lite.schema.derive import to_input_schema
from membrane_lite.schema.strict import strict_schema, without_nulls
from membrane_lite.schema.validate import validate

NULL = {"type": "null"}
TEXT = {"type": "string"}
WHOLE = {"type": "integer"}


def inside(schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"it": schema}, "required": ["it"], "additionalProperties": False}


PROPERTIES: dict[str, tuple[Any, Any]] = {
    "a plain type": (TEXT, TEXT),
    "a list of types": ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
    "bounds are kept": (
        {"type": "number", "minimum": 1, "multipleOf": 2, "exclusiveMaximum": 9, "title": "T"},
        {"type": "number", "minimum": 1, "multipleOf": 2, "exclusiveMaximum": 9, "title": "T"},
    ),
    "lengths are put into words": (
        {"type": "string", "minLength": 1, "maxLength": 3, "description": "A name."},
        {"type": "string", "description": 'A name.\nMust match {"minLength":1,"maxLength":3}'},
    ),
    "a known format": ({"type": "string", "format": "date"}, {"type": "string", "format": "date"}),
    "another format": (
        {"type": "string", "format": "color"},
        {"type": "string", "description": 'Must match {"format":"color"}'},
    ),
    "what asks nothing is dropped": ({"type": "string", "default": "a", "examples": ["b"], "discriminator": {}}, TEXT),
    "uniqueItems": (
        {"type": "array", "items": TEXT, "uniqueItems": True, "minItems": 1},
        {"type": "array", "items": TEXT, "minItems": 1, "description": 'Must match {"uniqueItems":true}'},
    ),
    "a place of its own for each item": (
        {"type": "array", "prefixItems": [WHOLE, TEXT, WHOLE], "minItems": 3, "maxItems": 3},
        {"type": "array", "items": {"anyOf": [WHOLE, TEXT]}, "minItems": 3, "maxItems": 3},
    ),
    "places alike": (
        {"type": "array", "prefixItems": [WHOLE, WHOLE], "items": False, "minItems": 2},
        {"type": "array", "items": WHOLE, "minItems": 2},
    ),
    "oneOf": ({"oneOf": [TEXT, WHOLE]}, {"anyOf": [TEXT, WHOLE]}),
    "allOf of one": (
        {"allOf": [{"type": "string", "description": "inner"}], "description": "outer"},
        {"type": "string", "description": "outer"},
    ),
    "an object within: all required, what was optional nullable": (
        {
            "type": "object",
            "properties": {
                "a": TEXT,
                "b": {"type": "string", "description": "B."},
                "c": {"anyOf": [TEXT, NULL]},
                "d": {"anyOf": [TEXT, WHOLE], "description": "D."},
                "e": {"type": "string", "enum": ["x"]},
                "f": {"enum": ["x", None]},
            },
            "required": ["a"],
        },
        {
            "type": "object",
            "properties": {
                "a": TEXT,
                "b": {"anyOf": [TEXT, NULL], "description": "B."},
                "c": {"anyOf": [TEXT, NULL]},
                "d": {"anyOf": [TEXT, WHOLE, NULL], "description": "D."},
                "e": {"anyOf": [{"type": "string", "enum": ["x"]}, NULL]},
                "f": {"type": ["null", "string"], "enum": ["x", None]},
            },
            "required": ["a", "b", "c", "d", "e", "f"],
            "additionalProperties": False,
        },
    ),
    "constants without a type": (
        {"anyOf": [{"const": "x"}, {"enum": [1, 2.0]}, {"enum": [1.5, True]}]},
        {
            "anyOf": [
                {"type": "string", "const": "x"},
                {"type": "integer", "enum": [1, 2.0]},
                {"type": ["boolean", "number"], "enum": [1.5, True]},
            ]
        },
    ),
    "an object without properties that takes no others": (
        {"type": "object", "properties": {}, "additionalProperties": False},
        {"type": "object", "properties": {}, "required": [], "additionalProperties": False},
    ),
}


@pytest.mark.parametrize("given, strict", PROPERTIES.values(), ids=PROPERTIES.keys())
def test_a_schema_made_strict(given: Any, strict: Any) -> None:
    before = copy.deepcopy(given)
    assert strict_schema(inside(given)) == inside(strict)
    assert given == before


@dataclass
class Pair:
    kind: Literal["pair"]
    left: Tree
    right: Tree | None = None


@dataclass
class Leaf:
    kind: Literal["leaf"]
    name: str = "?"


@dataclass
class Tree:
    """A tree."""

    top: Annotated[Pair | Leaf, "either"]
    parent: Tree | None = None
    tags: list[str] = field(default_factory=list)


def test_references_stand_alone() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"$ref": "#/$defs/n", "description": "A.", "default": None},
            "b": {"$ref": "#"},
            "c": {"$ref": "#/$defs/n"},
        },
        "required": ["a", "b"],
        "$defs": {"n": {"type": "string", "minLength": 1}},
    }
    assert strict_schema(schema) == {
        "type": "object",
        "properties": {
            "a": {"anyOf": [{"$ref": "#/$defs/n"}], "description": "A."},
            "b": {"$ref": "#"},
            "c": {"anyOf": [{"$ref": "#/$defs/n"}, NULL]},
        },
        "required": ["a", "b", "c"],
        "additionalProperties": False,
        "$defs": {"n": {"type": "string", "description": 'Must match {"minLength":1}'}},
    }


def test_what_is_referred_to_elsewhere_is_put_under_defs() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"$ref": "#/definitions/n"}, "b": {"$ref": "#/properties/a"}},
        "required": ["a", "b"],
        "definitions": {"n": TEXT},
    }
    assert strict_schema(schema) == {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/n"}, "b": {"$ref": "#/$defs/a"}},
        "required": ["a", "b"],
        "additionalProperties": False,
        "$defs": {"n": TEXT, "a": {"$ref": "#/$defs/n"}},
    }


BEYOND: dict[str, tuple[Any, str]] = {
    "free keys": (
        {"type": "object", "additionalProperties": TEXT},
        "schema#/properties/it: an object with free keys",
    ),
    "more than its properties": (
        {"type": "object", "properties": {}, "additionalProperties": True},
        "schema#/properties/it/properties: an object that takes more than its properties",
    ),
    "anything": ({"description": "x"}, "schema#/properties/it: a schema that allows anything, or nothing"),
    "true": (True, "schema#/properties/it: a schema that allows anything, or nothing"),
    "an array of anything": ({"type": "array"}, "schema#/properties/it: an array of anything"),
    "allOf": ({"allOf": [TEXT, {"type": "string", "minLength": 1}]}, "schema#/properties/it/allOf: allOf"),
    "an object that is described in two places": (
        {**inside(TEXT), "anyOf": [inside(WHOLE), inside(NULL)]},
        "schema#/properties/it/properties: an object that is described in two places",
    ),
    "an object that is described beside a reference": (
        {"properties": {"k": TEXT}, "$ref": "#"},
        "schema#/properties/it/properties: an object that is described in two places",
    ),
    "a constant that is an object": (
        {"enum": [{"a": 1}]},
        "schema#/properties/it: a constant that is an object or an array",
    ),
}


@pytest.mark.parametrize("given, place", BEYOND.values(), ids=BEYOND.keys())
def test_what_strict_mode_has_no_form_for(given: Any, place: str) -> None:
    with pytest.raises(MembraneError) as raised:
        strict_schema(inside(given))
    assert (raised.value.type, raised.value.message) == (
        "unsupported",
        f"{place} has no form in strict mode; send this schema without strict",
    )


@pytest.mark.parametrize("root", [{"type": "array", "items": TEXT}, {"type": "object", "anyOf": [inside(TEXT)]}])
def test_a_root_that_is_no_plain_object(root: Any) -> None:
    with pytest.raises(MembraneError) as raised:
        strict_schema(root)
    assert raised.value.message == (
        "schema#: a root that is no plain object has no form in strict mode; send this schema without strict"
    )


# The way back

NOTED = {
    "type": "object",
    "properties": {
        "a": TEXT,
        "b": {"type": ["string", "null"]},
        "c": {},
        "d": {"type": "array", "items": inside(TEXT)},
    },
    "required": ["d"],
}

NULLS: dict[str, tuple[Any, Any, Any]] = {
    "absent where null would not fit, null where it would": (
        NOTED,
        {"a": None, "b": None, "c": None, "d": [{"it": "x"}]},
        {"b": None, "c": None, "d": [{"it": "x"}]},
    ),
    "a required property keeps its null, to be refused": (
        NOTED,
        {"a": "x", "b": "y", "c": 1, "d": None},
        {"a": "x", "b": "y", "c": 1, "d": None},
    ),
    "an answer with other keys was not given under the schema": (
        NOTED,
        {"a": None, "b": None, "c": None, "d": [], "x": None},
        {"a": None, "b": None, "c": None, "d": [], "x": None},
    ),
    "in an array": (
        {"properties": {"l": {"type": "array", "items": {"properties": {"a": TEXT}}}}},
        {"l": [{"a": None}, {"a": "x"}]},
        {"l": [{}, {"a": "x"}]},
    ),
    "in a place of an array": (
        {"properties": {"l": {"prefixItems": [True, {"properties": {"a": TEXT}}], "items": {}}}},
        {"l": [{"a": None}, {"a": None}, {"a": None}]},
        {"l": [{"a": None}, {}, {"a": None}]},
    ),
    "in the alternative with these keys": (
        {"anyOf": [{"properties": {"a": TEXT, "b": {}}}, {"properties": {"a": TEXT}}]},
        {"a": None},
        {},
    ),
    "in the alternative with this constant": (
        {
            "oneOf": [
                {"properties": {"k": {"const": 1}, "a": {}}, "required": ["k"]},
                {"properties": {"k": {"const": 2}, "a": TEXT}, "required": ["k"]},
            ]
        },
        {"k": 2, "a": None},
        {"k": 2},
    ),
    "in the alternative whose constant may be absent": (
        {
            "anyOf": [
                {"properties": {"k": {"const": 1}, "a": {}}, "required": ["k"]},
                {"properties": {"k": {"const": 2}, "a": TEXT}},
            ]
        },
        {"k": None, "a": None},
        {},
    ),
    "in the alternative whose values are of these types": (
        {
            "anyOf": [
                {"properties": {"k": {"enum": ["cat", "lion"]}, "a": {}}, "required": ["k"]},
                {"properties": {"k": {"type": "integer"}, "a": {}}, "required": ["k"]},
                {"properties": {"k": {"enum": ["dog", "wolf"]}, "a": TEXT}, "required": ["k"]},
            ]
        },
        {"k": "dog", "a": None},
        {"k": "dog"},
    ),
    "in the first, where none fits": (
        {"anyOf": [{"properties": {"k": WHOLE, "a": TEXT}}, {"properties": {"k": NULL, "a": {}}}]},
        {"k": "x", "a": None},
        {"k": "x"},
    ),
    "no object": (NOTED, [None], [None]),
}


@pytest.mark.parametrize("schema, answer, restored", NULLS.values(), ids=NULLS.keys())
def test_nulls_become_absent(schema: Any, answer: Any, restored: Any) -> None:
    assert without_nulls(schema, answer) == restored


def test_an_answer_nested_too_deep_is_left_to_decode() -> None:
    answer: Any = None
    for _ in range(10_000):
        answer = [answer]
    assert without_nulls(NOTED, answer) is answer


def test_an_answer_goes_all_the_way_back() -> None:
    schema = to_input_schema(Tree)
    strict = strict_schema(schema)
    leaf = {"top": {"kind": "leaf", "name": None}, "parent": None, "tags": None}
    answer = {"top": {"kind": "pair", "left": leaf, "right": None}, "parent": leaf, "tags": ["x"]}
    assert validate(strict, answer) == []
    assert decode_tool_input(Tree, without_nulls(schema, answer)) == Tree(
        Pair("pair", Tree(Leaf("leaf"))), Tree(Leaf("leaf")), ["x"]
    )
