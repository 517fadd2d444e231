"""to_input_schema: every hint, and the schema it becomes. Here hints are text; in test_hints_as_objects.py none is."""

# ruff: noqa: UP006, UP035, UP045 (the older spellings are what is tested)

from __future__ import annotations

import datetime
import decimal
import enum
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from typing import Annotated, Any, ClassVar, Dict, List, Literal, NewType, Optional, TypedDict, TypeVar, Union

import pytest
from order_base import Urgent

from membrane_lite.errors import MembraneError
from membrane_lite.schema.derive import to_input_schema

TEXT = {"type": "string"}
WHOLE = {"type": "integer"}
NULL = {"type": "null"}
T = TypeVar("T")
UserId = NewType("UserId", int)
DOC = "told by a name"
NUMBERS = "list[int]"
ITSELF, EACH, OTHER = "ITSELF", "OTHER", "EACH"


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Mixed(enum.Enum):
    """Values of two kinds."""

    ONE = 1
    NONE = None


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Point:
    """Where it is.

    Two lines."""

    x: float
    y: float = 0.0


POINT = {
    "type": "object",
    "properties": {"x": {"type": "number"}, "y": {"type": "number"}},
    "required": ["x"],
    "additionalProperties": False,
    "description": "Where it is.\n\nTwo lines.",
}

HINTS: dict[str, tuple[str, Any]] = {
    "str": ("str", TEXT),
    "int": ("int", WHOLE),
    "float: a number, never NaN nor a text for it": ("float", {"type": "number"}),
    "bool": ("bool", {"type": "boolean"}),
    "None": ("None", NULL),
    "Any": ("Any", {}),
    "object": ("object", {}),
    "Optional": ("Optional[int]", {"anyOf": [WHOLE, NULL]}),
    "a bar and None": ("int | None", {"anyOf": [WHOLE, NULL]}),
    "bars are one union": ("int | str | None", {"anyOf": [WHOLE, TEXT, NULL]}),
    "Union": ("Union[int, str]", {"anyOf": [WHOLE, TEXT]}),
    "Literal of one": ('Literal["a"]', {"type": "string", "const": "a"}),
    "Literal of several": ('Literal["a", "b"]', {"type": "string", "enum": ["a", "b"]}),
    "Literal of numbers": ("Literal[1, -2]", {"type": "integer", "enum": [1, -2]}),
    "Literal of several types": ('Literal["a", 1, None, True]', {"enum": ["a", 1, None, True]}),
    "Literal of an Enum's member": ("Literal[Color.RED]", {"type": "string", "const": "red"}),
    "Enum": ("Color", {"type": "string", "enum": ["red", "blue"]}),
    "Enum of two kinds, described": ("Mixed", {"enum": [1, None], "description": "Values of two kinds."}),
    "IntEnum": ("Level", {"type": "integer", "enum": [1, 2]}),
    "list": ("list[int]", {"type": "array", "items": WHOLE}),
    "bare list": ("list", {"type": "array"}),
    "typing.List": ("List[int]", {"type": "array", "items": WHOLE}),
    "bare typing.List": ("List", {"type": "array"}),
    "Sequence": ("Sequence[int]", {"type": "array", "items": WHOLE}),
    "list of optionals": ("list[int | None]", {"type": "array", "items": {"anyOf": [WHOLE, NULL]}}),
    "set": ("set[int]", {"type": "array", "items": WHOLE, "uniqueItems": True}),
    "frozenset": ("frozenset[str]", {"type": "array", "items": TEXT, "uniqueItems": True}),
    "bare set": ("set", {"type": "array", "uniqueItems": True}),
    "tuple of any length": ("tuple[int, ...]", {"type": "array", "items": WHOLE}),
    "bare tuple": ("tuple", {"type": "array"}),
    "tuple of two": ("tuple[int, str]", {"type": "array", "prefixItems": [WHOLE, TEXT], "minItems": 2, "maxItems": 2}),
    "dict": ("dict[str, int]", {"type": "object", "additionalProperties": WHOLE}),
    "typing.Dict": ("Dict[str, Any]", {"type": "object", "additionalProperties": {}}),
    "Mapping": ("Mapping[str, int]", {"type": "object", "additionalProperties": WHOLE}),
    "bare dict": ("dict", {"type": "object"}),
    "date and time": ("datetime.datetime", {"type": "string", "format": "date-time"}),
    "date": ("datetime.date", {"type": "string", "format": "date"}),
    "time": ("datetime.time", {"type": "string", "format": "time"}),
    "UUID": ("uuid.UUID", {"type": "string", "format": "uuid"}),
    "Decimal": ("decimal.Decimal", {"type": "string", "pattern": r"^-?[0-9]+(\.[0-9]+)?$"}),
    "NewType": ("UserId", WHOLE),
    "a dataclass, in place": ("Point", POINT),
    "a text within a text": ('list["Point"]', {"type": "array", "items": POINT}),
    "a text that is quoted again": ("'Point'", POINT),
    "with a Literal in it, whose texts are no hints": ("\"Literal['a']\"", {"type": "string", "const": "a"}),
    "a name for a text": ("NUMBERS", {"type": "array", "items": WHOLE}),
    "a dotted name": ("datetime.date | None", {"anyOf": [{"type": "string", "format": "date"}, NULL]}),
    "Annotated": ('Annotated[int, "how many"]', {"type": "integer", "description": "how many"}),
    "Annotated with a name": ("Annotated[int, DOC]", {"type": "integer", "description": "told by a name"}),
    "Annotated with other things": ('Annotated[int, 3, Field(gt=0), "n"]', {"type": "integer", "description": "n"}),
    "Annotated with no text": ("Annotated[int, 3]", WHOLE),
    "Annotated of a class replaces what it says of itself": (
        'Annotated[Point, "its corner"]',
        {**POINT, "description": "its corner"},
    ),
    "Annotated of a union": ('Annotated[int | None, "n"]', {"anyOf": [WHOLE, NULL], "description": "n"}),
    "Annotated within": ('list[Annotated[int, "n"]]', {"type": "array", "items": {**WHOLE, "description": "n"}}),
    "InitVar": ("InitVar[int]", WHOLE),
}


def class_with(hint: str) -> type:
    """A dataclass of one field `it`, whose hint is this text."""
    made: type = dataclass(type("Holder", (), {"__annotations__": {"it": hint}, "__module__": __name__}))
    return made


@pytest.mark.parametrize("hint, schema", HINTS.values(), ids=HINTS.keys())
def test_to_input_schema_of_a_hint(hint: str, schema: Any) -> None:
    assert to_input_schema(class_with(hint)) == {
        "type": "object",
        "properties": {"it": schema},
        "required": ["it"],
        "additionalProperties": False,
    }


REFUSED = {
    "a name of nowhere": (
        "Ordr",
        f"Holder.it: the hint Ordr cannot be resolved (no name 'Ordr' in module {__name__!r}); "
        "expected only names of the module and of the class",
    ),
    "no hint at all": (
        "int if 1 else str",
        "Holder.it: the hint int if 1 else str cannot be resolved ('int if 1 else str' is no part of a hint); "
        "expected only names of the module and of the class",
    ),
    "a name that stands for itself": (
        "ITSELF",
        "Holder.it: the hint ITSELF cannot be resolved (it stands for itself); "
        "expected only names of the module and of the class",
    ),
    "two that stand for each other": (
        "EACH",
        "Holder.it: the hint EACH cannot be resolved (it stands for itself); "
        "expected only names of the module and of the class",
    ),
    "a key that is no string": (
        "dict[int, str]",
        "Holder.it: the hint int cannot be the key of an object; expected dict[str, ...]: JSON's keys are strings",
    ),
    "an item that cannot be in a set": (
        "set[Point]",
        "Holder.it: the hint Point cannot be in a set; expected something hashable, or a list in place of the set",
    ),
}
NO_FORM = (
    "has no form in JSON; expected str, int, float, bool, None, list, dict, tuple, set, Optional, Union, Literal, "
    "an Enum, a date, time, UUID or Decimal, a dataclass, a TypedDict, or a class with model_json_schema() and "
    "model_validate()"
)
REFUSED.update(
    {
        f"no form: {hint}": (hint, f"Holder.it: the hint {shown} {NO_FORM}")
        for hint, shown in {"bytes": "bytes", "T": "~T", "complex": "complex", "Literal[b'x']": "Literal[b'x']"}.items()
    }
)


@pytest.mark.parametrize("hint, message", REFUSED.values(), ids=REFUSED.keys())
def test_to_input_schema_refuses_a_hint(hint: str, message: str) -> None:
    with pytest.raises(MembraneError) as raised:
        to_input_schema(class_with(hint))
    assert (raised.value.type, raised.value.message.replace("typing.", "")) == ("invalid_request", message)


# Classes


@dataclass
class Base:
    number: int
    tags: list[str] = field(default_factory=list)


@dataclass
class Order(Base):
    kind: ClassVar[str] = "order"
    note: Annotated[Optional[str], "what the customer said"] = None
    total: float = field(init=False, default=0.0)


def test_to_input_schema_has_the_fields_of_a_constructor_in_order() -> None:
    schema = to_input_schema(Order)
    assert schema == {
        "type": "object",
        "properties": {
            "number": WHOLE,
            "tags": {"type": "array", "items": TEXT},
            "note": {"anyOf": [TEXT, NULL], "description": "what the customer said"},
        },
        "required": ["number"],
        "additionalProperties": False,
    }
    assert list(schema["properties"]) == ["number", "tags", "note"]


@dataclass
class UrgentOrder(Urgent):
    number: int = 0


@dataclass
class Colored(Urgent):
    urgency: Color  # type: ignore[assignment]


def test_to_input_schema_reads_an_inherited_hint_in_the_module_that_has_it() -> None:
    assert to_input_schema(UrgentOrder)["properties"] == {
        "urgency": {"type": "string", "enum": ["low", "high"]},
        "number": WHOLE,
    }
    assert to_input_schema(Colored)["properties"] == {"urgency": {"type": "string", "enum": ["red", "blue"]}}


class Film(TypedDict):
    """A film."""

    title: str
    year: int | None


class Seen(Film, total=False):
    stars: Annotated[int, "one to five"]


def test_to_input_schema_of_a_typed_dict() -> None:
    assert to_input_schema(Seen) == {
        "type": "object",
        "properties": {
            "title": TEXT,
            "year": {"anyOf": [WHOLE, NULL]},
            "stars": {"type": "integer", "description": "one to five"},
        },
        "required": ["title", "year"],
        "additionalProperties": False,
    }
    assert to_input_schema(Film)["description"] == "A film."


if sys.version_info >= (3, 11):
    from typing import NotRequired, Required

    class Marked(TypedDict, total=False):
        title: Required[str]
        year: NotRequired[int]
        stars: Annotated[Required[int], "one to five"]
        note: str


@pytest.mark.skipif(sys.version_info < (3, 11), reason="typing.Required came with Python 3.11")
def test_to_input_schema_counts_markers_where_hints_are_text() -> None:
    assert to_input_schema(Marked) == {
        "type": "object",
        "properties": {
            "title": TEXT,
            "year": WHOLE,
            "stars": {"type": "integer", "description": "one to five"},
            "note": TEXT,
        },
        "required": ["title", "stars"],
        "additionalProperties": False,
    }


@dataclass
class Tree:
    """A tree."""

    name: str
    left: Tree | None = None
    others: Annotated[list[Tree], "more"] = field(default_factory=list)


TREE = {
    "type": "object",
    "properties": {
        "name": TEXT,
        "left": {"anyOf": [{"$ref": "#/$defs/Tree"}, NULL]},
        "others": {"type": "array", "items": {"$ref": "#/$defs/Tree"}, "description": "more"},
    },
    "required": ["name"],
    "additionalProperties": False,
    "description": "A tree.",
}


def test_to_input_schema_of_a_class_that_contains_itself_is_the_root_and_a_definition() -> None:
    assert to_input_schema(Tree) == {**TREE, "$defs": {"Tree": TREE}}


@dataclass
class Garden:
    first: Tree
    best: Annotated[Tree, "the best"]
    corner: Point


def test_to_input_schema_defines_only_what_contains_itself() -> None:
    """Nothing may stand beside a $ref, so a description wraps it."""
    assert to_input_schema(Garden) == {
        "type": "object",
        "properties": {
            "first": {"$ref": "#/$defs/Tree"},
            "best": {"anyOf": [{"$ref": "#/$defs/Tree"}], "description": "the best"},
            "corner": POINT,
        },
        "required": ["first", "best", "corner"],
        "additionalProperties": False,
        "$defs": {"Tree": TREE},
    }


@dataclass
class Hen:
    eggs: list[Egg]


@dataclass
class Egg:
    hen: Hen | None = None


def test_to_input_schema_of_classes_that_contain_each_other_needs_one_definition() -> None:
    egg = {
        "type": "object",
        "properties": {"hen": {"anyOf": [{"$ref": "#/$defs/Hen"}, NULL]}},
        "required": [],
        "additionalProperties": False,
    }
    hen = {
        "type": "object",
        "properties": {"eggs": {"type": "array", "items": egg}},
        "required": ["eggs"],
        "additionalProperties": False,
    }
    assert to_input_schema(Hen) == {**hen, "$defs": {"Hen": hen}}


def namesake() -> type:
    @dataclass
    class Tree:
        root: Tree | None = None

    return Tree


Namesake = namesake()


@dataclass
class Forest:
    trees: list[Tree]
    others: list[Namesake]  # type: ignore[valid-type]


def test_to_input_schema_gives_two_classes_of_one_name_two_definitions() -> None:
    schema = to_input_schema(Forest)
    assert schema["properties"] == {
        "trees": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
        "others": {"type": "array", "items": {"$ref": "#/$defs/Tree_2"}},
    }
    assert schema["$defs"]["Tree_2"]["properties"] == {"root": {"anyOf": [{"$ref": "#/$defs/Tree_2"}, NULL]}}


# Mappings, and classes with a schema of their own

MAPPINGS: dict[str, dict[str, Any]] = {
    "an object": {"type": "object", "properties": {"a": {"type": "string"}}},
    "an object without properties": {"type": "object"},
    "a root union": {"anyOf": [{"type": "object"}, {"type": "object", "properties": {}}]},
}


@pytest.mark.parametrize("schema", MAPPINGS.values(), ids=MAPPINGS.keys())
def test_to_input_schema_gives_a_mapping_back(schema: dict[str, Any]) -> None:
    assert to_input_schema(schema) == schema


NODE: dict[str, Any] = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
ROOTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "properties alone are an object's": ({"properties": {}}, {"type": "object", "properties": {}}),
    "a reference is followed": (
        {"$ref": "#/$defs/Node", "$defs": {"Node": NODE}, "title": "N"},
        {**NODE, "$defs": {"Node": NODE}, "title": "N"},
    ),
    "to a reference, of an older draft": (
        {"$ref": "#/definitions/A", "definitions": {"A": {"$ref": "#/definitions/B"}, "B": {"properties": {}}}},
        {
            "type": "object",
            "properties": {},
            "definitions": {"A": {"$ref": "#/definitions/B"}, "B": {"properties": {}}},
        },
    ),
    "beside other demands it stays": (
        {"$ref": "#/$defs/Node", "required": ["next"], "$defs": {"Node": NODE}},
        {"$ref": "#/$defs/Node", "required": ["next"], "$defs": {"Node": NODE}},
    ),
    "alternatives that do not say what they are": (
        {"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
    ),
}


@pytest.mark.parametrize("given, expected", ROOTS.values(), ids=ROOTS.keys())
def test_the_root_of_a_mapping_is_an_object(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert to_input_schema(given) == expected


BAD_ROOTS: dict[str, tuple[Any, str]] = {
    "an alternative that is no object": (
        {"anyOf": [{"$ref": "#/$defs/O"}, {"type": "null"}], "$defs": {"O": {"type": "object"}}},
        'schema: found type \'null\' at the root; expected "type": "object": put the value in a property',
    ),
    "an alternative that leads to no object": (
        {"oneOf": [{"type": "object"}, {"$ref": "#/$defs/L"}], "$defs": {"L": {"type": "array"}}},
        'schema: found type \'array\' at the root; expected "type": "object": put the value in a property',
    ),
    "a reference to no object": (
        {"$ref": "#/$defs/L", "$defs": {"L": {"type": "array"}}},
        'schema: found type \'array\' at the root; expected "type": "object": put the value in a property',
    ),
    "an array": (
        {"type": "array"},
        'schema: found type \'array\' at the root; expected "type": "object": put the value in a property',
    ),
    "nothing": ({}, 'schema: found type None at the root; expected "type": "object": put the value in a property'),
    "a key that is no string": ({1: 2}, "schema: a key is no string; expected a JSON Schema"),
    "a bad pattern": (
        {"type": "object", "properties": {"a": {"pattern": "("}}},
        "schema#/properties/a/pattern: '(' is no pattern: missing ), unterminated subpattern at position 0; "
        "expected a regular expression",
    ),
    "a class of another kind": (
        int,
        "schema: found type <class 'int'>; expected a JSON Schema mapping, a dataclass, a TypedDict, or a class with "
        "model_json_schema() and model_validate()",
    ),
    "a dataclass's instance": (
        Point(1.0),
        "schema: found Point Point(x=1.0, y=0.0); expected a JSON Schema mapping, a dataclass, a TypedDict, or a class "
        "with model_json_schema() and model_validate()",
    ),
}


@pytest.mark.parametrize("schema, message", BAD_ROOTS.values(), ids=BAD_ROOTS.keys())
def test_to_input_schema_refuses_a_root(schema: Any, message: str) -> None:
    with pytest.raises(MembraneError) as raised:
        to_input_schema(schema)
    assert (raised.value.type, raised.value.message) == ("invalid_request", message)


class Model:
    """What pydantic makes of a class that contains itself."""

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        node = {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/Model"}, NULL]}}}
        return {"$defs": {"Model": node}, "$ref": "#/$defs/Model"}

    @classmethod
    def model_validate(cls, value: Any) -> Model:
        return cls()


NODE = {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/Model"}, NULL]}}}


def test_to_input_schema_of_a_class_with_its_own_schema() -> None:
    assert to_input_schema(Model) == {**NODE, "$defs": {"Model": NODE}}


@dataclass
class Shelf:
    models: list[Model]
    read: Callable[[], int] | None = field(init=False, default=None)


def test_to_input_schema_moves_its_definitions_to_the_root() -> None:
    assert to_input_schema(Shelf) == {
        "type": "object",
        "properties": {"models": {"type": "array", "items": {"$ref": "#/$defs/Model"}}},
        "required": ["models"],
        "additionalProperties": False,
        "$defs": {"Model": NODE},
    }


class Other(Model):
    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        return {"$defs": {"Model": {"type": "string"}}, "type": "object", "properties": {}}


@dataclass
class Shelves:
    model: Model
    other: Other


def test_to_input_schema_refuses_one_name_for_two_definitions() -> None:
    with pytest.raises(MembraneError) as raised:
        to_input_schema(Shelves)
    assert (raised.value.type, raised.value.message) == (
        "invalid_request",
        "schema: two classes are named 'Model'; expected one, or the other under a new name",
    )


USED_IN_TEXT = (Color, Mixed, Level, Dict, List, Union, Literal, InitVar, Sequence, Mapping, datetime, decimal, uuid)
