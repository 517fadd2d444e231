"""declared_type: the one type a schema allows, and whether null is allowed beside it."""

from __future__ import annotations

from typing import Any

import pytest

from membrane_lite.formatters.schema_types import declared_type

ROOT: dict[str, Any] = {
    "definitions": {"City": {"type": "string"}, "a/b~c": {"type": "boolean"}, "Loop": {"$ref": "#/definitions/Loop"}},
    "$defs": {
        "Count": {"enum": [1, 2, None]},
        "Tree": {"anyOf": [{"type": "array"}, {"allOf": [{"$ref": "#/$defs/Tree"}, {"type": "array"}]}]},
    },
}
TYPES: dict[str, tuple[Any, tuple[str | None, bool]]] = {
    "one type": ({"type": "string"}, ("string", False)),
    "one type or null": ({"type": ["integer", "null"]}, ("integer", True)),
    "integers are numbers": ({"type": ["integer", "number"]}, ("number", False)),
    "several types": ({"type": ["string", "integer", "null"]}, (None, True)),
    "null alone": ({"type": "null"}, (None, True)),
    "a type that is none": ({"type": "text"}, (None, False)),
    "a type among others that is none": ({"type": ["string", "text"]}, (None, False)),
    "a type that is no name": ({"type": {"a": 1}}, (None, False)),
    "type decides alone": ({"type": "string", "enum": ["a", None], "const": 1}, ("string", False)),
    "no type": ({"description": "d"}, (None, False)),
    "no schema": (True, (None, False)),
    "texts to choose from": ({"enum": ["a", "b"]}, ("string", False)),
    "numbers to choose from": ({"enum": [1, 2.5]}, ("number", False)),
    "whole numbers to choose from": ({"enum": [1, 2.0]}, ("integer", False)),
    "truth is no number": ({"enum": [True, False, None]}, ("boolean", True)),
    "objects, or lists": ({"enum": [{}, []]}, (None, False)),
    "choices that are no list": ({"enum": "a"}, (None, False)),
    "one value": ({"const": 2.5}, ("number", False)),
    "no value": ({"const": None}, (None, True)),
    "any of one type": ({"anyOf": [{"type": "string"}, {"const": "a"}, {"type": "null"}]}, ("string", True)),
    "one of two types": ({"oneOf": [{"type": "string"}, {"type": "array"}]}, (None, False)),
    "any of them, and one says nothing": ({"anyOf": [{"type": "string"}, {}]}, (None, False)),
    "all of them": ({"allOf": [{"type": ["string", "array"]}, {}, {"enum": ["a"]}]}, ("string", False)),
    "all of them, and an integer is a number": (
        {"allOf": [{"type": "number"}, {"type": "integer"}]},
        ("integer", False),
    ),
    "everything that is said holds": ({"enum": ["a", 1], "anyOf": [{"type": "string"}]}, ("string", False)),
    "what contradicts itself": ({"allOf": [{"type": "string"}, {"type": "array"}]}, (None, False)),
    "a definition": ({"$ref": "#/definitions/City"}, ("string", False)),
    "a definition, newly called": ({"$ref": "#/$defs/Count"}, ("integer", True)),
    "a definition whose name is written with escapes": ({"$ref": "#/definitions/a~1b~0c"}, ("boolean", False)),
    "a definition of nothing but itself": ({"$ref": "#/definitions/Loop"}, (None, False)),
    "a definition that holds itself": ({"$ref": "#/$defs/Tree"}, ("array", False)),
    "a definition that is not there": ({"$ref": "#/$defs/City"}, (None, False)),
    "a definition elsewhere": ({"$ref": "https://example.org/#/definitions/City"}, (None, False)),
    "a reference that is none": ({"$ref": 1}, (None, False)),
}


@pytest.mark.parametrize("schema, declared", TYPES.values(), ids=TYPES.keys())
def test_a_type(schema: Any, declared: tuple[str | None, bool]) -> None:
    assert declared_type(schema, ROOT) == declared


def test_a_definition_that_many_share_is_looked_at_once() -> None:
    """Each refers twice to the next: looked at anew each time, the last would be looked at 2 ** 30 times."""
    definitions: dict[str, Any] = {f"D{n}": {"anyOf": [{"$ref": f"#/$defs/D{n + 1}"}] * 2} for n in range(30)}
    root = {"$defs": {**definitions, "D30": {"type": "string"}}}
    assert declared_type({"$ref": "#/$defs/D0"}, root) == ("string", False)


def test_what_is_nested_too_deep_says_nothing() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(10_000):
        schema = {"anyOf": [schema]}
    assert declared_type(schema, {}) == (None, False)


def test_a_root_that_is_no_schema() -> None:
    assert declared_type({"$ref": "#/$defs/City"}, None) == (None, False)
    assert declared_type({"$ref": "#/$defs/City"}, {"$defs": []}) == (None, False)
