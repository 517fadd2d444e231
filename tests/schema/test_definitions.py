"""definitions: a schema whose references all lead to $defs at its root."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from membrane_lite.errors import MembraneError
from membrane_lite.schema.definitions import gathered
from membrane_lite.schema.validate import validate

TEXT = {"type": "string"}


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


GATHERED: dict[str, tuple[Any, Any]] = {
    "of an older draft": (
        {**of(a={"$ref": "#/definitions/D"}), "definitions": {"D": TEXT, "unused": {}}},
        {**of(a={"$ref": "#/$defs/D"}), "$defs": {"D": TEXT}},
    ),
    "referring on": (
        {**of(a={"$ref": "#/definitions/D"}), "definitions": {"D": of(b={"$ref": "#/definitions/E"}), "E": TEXT}},
        {**of(a={"$ref": "#/$defs/D"}), "$defs": {"D": of(b={"$ref": "#/$defs/E"}), "E": TEXT}},
    ),
    "containing itself": (
        {**of(a={"$ref": "#/definitions/D"}), "definitions": {"D": of(d={"$ref": "#/definitions/D"})}},
        {**of(a={"$ref": "#/$defs/D"}), "$defs": {"D": of(d={"$ref": "#/$defs/D"})}},
    ),
    "a part of the schema": (
        of(a={"anyOf": [TEXT, {"type": "array", "items": TEXT}]}, b={"$ref": "#/properties/a/anyOf/1/items"}),
        {
            **of(a={"anyOf": [TEXT, {"type": "array", "items": TEXT}]}, b={"$ref": "#/$defs/items"}),
            "$defs": {"items": TEXT},
        },
    ),
    "definitions that stand further in": (
        of(a={**of(x={"$ref": "#/properties/a/$defs/D"}), "$defs": {"D": TEXT}}),
        {**of(a=of(x={"$ref": "#/$defs/D"})), "$defs": {"D": TEXT}},
    ),
    "a name that is taken, and one that no provider takes": (
        {
            **of(a={"$ref": "#/definitions/D"}, b={"$ref": "#/$defs/D"}, c={"$ref": "#/definitions/a%20b~1c"}),
            "$defs": {"D": TEXT},
            "definitions": {"D": {"type": "null"}, "a b/c": {"type": "integer"}},
        },
        {
            **of(a={"$ref": "#/$defs/D_2"}, b={"$ref": "#/$defs/D"}, c={"$ref": "#/$defs/a_20b_1c"}),
            "$defs": {"D": TEXT, "D_2": {"type": "null"}, "a_20b_1c": {"type": "integer"}},
        },
    ),
    "one word for several": (
        of(
            a={"type": "array", "items": TEXT},
            b={"type": "array", "items": {"type": "null"}},
            c={"$ref": "#/properties/a/items"},
            d={"$ref": "#/properties/b/items"},
        ),
        {
            **of(
                a={"type": "array", "items": TEXT},
                b={"type": "array", "items": {"type": "null"}},
                c={"$ref": "#/$defs/items"},
                d={"$ref": "#/$defs/items_2"},
            ),
            "$defs": {"items": TEXT, "items_2": {"type": "null"}},
        },
    ),
    "nothing to gather": (
        {**of(a={"$ref": "#/$defs/D"}, b={"$ref": "#"}), "$defs": {"D": TEXT}},
        {**of(a={"$ref": "#/$defs/D"}, b={"$ref": "#"}), "$defs": {"D": TEXT}},
    ),
}


@pytest.mark.parametrize("given, expected", GATHERED.values(), ids=GATHERED.keys())
def test_definitions_are_gathered(given: Any, expected: Any) -> None:
    before = copy.deepcopy(given)
    assert gathered(given) == expected
    assert given == before


@pytest.mark.parametrize("value", [{"a": "x"}, {"a": 1}, {"a": {"d": {"d": {}}}}, {"a": {"d": {"d": 1}}}])
def test_the_same_values_fit(value: Any) -> None:
    given = GATHERED["containing itself"][0]
    assert validate(gathered(given), value) == validate(given, value)


def test_what_is_no_schema_is_refused() -> None:
    with pytest.raises(MembraneError, match="#/definitions/D' names nothing in the schema"):
        gathered(of(a={"$ref": "#/definitions/D"}))
