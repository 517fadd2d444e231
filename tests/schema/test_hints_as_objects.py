"""The same hints, evaluated by Python when the class is made: no `from __future__ import annotations` here."""

# ruff: noqa: UP006, UP035 (the older spellings are what is tested)

import sys
from dataclasses import dataclass, field
from typing import Annotated, Any, Dict, ForwardRef, List, Optional, TypedDict, Union

import pytest

from membrane_lite.schema.decode import decode
from membrane_lite.schema.derive import to_input_schema

NULL = {"type": "null"}


@dataclass
class Leaf:
    weight: float = 0.0


@dataclass
class Branch:
    leaves: List[Leaf]
    named: Dict[str, "Leaf"] = field(default_factory=dict)
    up: Optional["Branch"] = None
    more: list["Branch"] = field(default_factory=list)
    note: Annotated[Optional[str], "a note"] = None


LEAF = {
    "type": "object",
    "properties": {"weight": {"type": "number"}},
    "required": [],
    "additionalProperties": False,
}
BRANCH = {
    "type": "object",
    "properties": {
        "leaves": {"type": "array", "items": LEAF},
        "named": {"type": "object", "additionalProperties": LEAF},
        "up": {"anyOf": [{"$ref": "#/$defs/Branch"}, NULL]},
        "more": {"type": "array", "items": {"$ref": "#/$defs/Branch"}},
        "note": {"anyOf": [{"type": "string"}, NULL], "description": "a note"},
    },
    "required": ["leaves"],
    "additionalProperties": False,
}


def test_forward_references_are_resolved() -> None:
    assert to_input_schema(Branch) == {**BRANCH, "$defs": {"Branch": BRANCH}}


def test_they_are_decoded() -> None:
    given = {"leaves": [{}], "named": {"a": {"weight": 1}}, "up": {"leaves": []}, "more": [{"leaves": []}]}
    assert decode(Branch, given) == Branch([Leaf()], {"a": Leaf(1.0)}, Branch([]), [Branch([])])


class Film(TypedDict):
    title: "str"
    next: Optional["Film"]


def test_a_typed_dict_that_contains_itself() -> None:
    film = {
        "type": "object",
        "properties": {"title": {"type": "string"}, "next": {"anyOf": [{"$ref": "#/$defs/Film"}, NULL]}},
        "required": ["title", "next"],
        "additionalProperties": False,
    }
    assert to_input_schema(Film) == {**film, "$defs": {"Film": film}}


@pytest.mark.skipif(sys.version_info < (3, 10), reason="int | None is evaluated from Python 3.10 on")
def test_a_bar_between_types() -> None:
    evaluated: Any = eval("int | None")  # as a class body would
    made = dataclass(type("Holder", (), {"__annotations__": {"it": evaluated}}))
    assert to_input_schema(made)["properties"] == {"it": {"anyOf": [{"type": "integer"}, NULL]}}


def test_a_reference_within_a_union() -> None:
    made = dataclass(
        type("Holder", (), {"__annotations__": {"it": Union[int, ForwardRef("Leaf")]}, "__module__": __name__})
    )
    assert to_input_schema(made)["properties"] == {"it": {"anyOf": [{"type": "integer"}, LEAF]}}
