"""signature: the type of each parameter, from the root of a tool's schema and the members of its keywords."""

from __future__ import annotations

from typing import Any

import pytest

from membrane_lite.formatters.xml_signatures import Declared, Signature, Signatures, signature
from membrane_lite.values.tools import Tool

TEXT, WHOLE = {"type": "string"}, {"type": "integer"}


def parameter(schema: Any) -> Any:
    return {"type": "object", "properties": {"p": schema}}


def either(*members: Any) -> Any:
    return {"type": "object", "anyOf": list(members)}


TYPES: dict[str, tuple[Any, dict[str, Declared]]] = {
    "a type": (parameter(TEXT), {"p": Declared("string")}),
    "a type or null": (parameter({"type": ["integer", "null"]}), {"p": Declared("integer", nullable=True)}),
    "integer or number is number": (parameter({"type": ["integer", "number"]}), {"p": Declared("number")}),
    "several types": (parameter({"type": ["string", "integer"]}), {"p": Declared(unclear=True)}),
    "a reference to nothing": (parameter({"$ref": "#/$defs/None"}), {"p": Declared(unclear=True)}),
    "no schema": (parameter(3), {"p": Declared(unclear=True)}),
    "nothing said": (parameter({"description": "d"}), {"p": Declared()}),
    "anything": (parameter(True), {"p": Declared()}),
    "constants": (parameter({"enum": ["a", "b", None]}), {"p": Declared("string", nullable=True)}),
    "a definition": (
        {"$defs": {"D": WHOLE}, "properties": {"p": {"$ref": "#/$defs/D"}}},
        {"p": Declared("integer")},
    ),
    "alternatives add their parameters": (
        {**parameter(TEXT), "oneOf": [parameter({}), {"properties": {"q": WHOLE}}]},
        {"p": Declared("string"), "q": Declared("integer")},
    ),
    "a parameter is what any alternative says": (
        either(parameter(TEXT), parameter(WHOLE)),
        {"p": Declared(unclear=True)},
    ),
    "alternatives that agree": (either(parameter(TEXT), parameter({"const": "a"})), {"p": Declared("string")}),
    "a parameter is what all parts say": (
        {"allOf": [parameter({"type": ["string", "integer"]}), parameter({"type": ["integer", "null"]})]},
        {"p": Declared("integer")},
    ),
    "the root and its alternatives must agree": (
        {**parameter({"type": ["string", "integer"]}), "anyOf": [parameter(TEXT)]},
        {"p": Declared("string")},
    ),
    "members may be definitions": (
        {"definitions": {"D": parameter(WHOLE)}, "oneOf": [{"$ref": "#/definitions/D"}]},
        {"p": Declared("integer")},
    ),
    "members that are not all objects add nothing": (
        {**parameter(TEXT), "oneOf": [{"properties": {"q": WHOLE}}, {"required": ["p"]}]},
        {"p": Declared("string")},
    ),
    "no properties": ({"type": "object"}, {}),
    "properties that are none": ({"properties": ["p"]}, {}),
    "a root that is no schema": (None, {}),
}


@pytest.mark.parametrize("schema, parameters", TYPES.values(), ids=TYPES.keys())
def test_the_types_of_parameters(schema: Any, parameters: dict[str, Declared]) -> None:
    assert signature(schema) == Signature(parameters, frozenset())


def test_missing_parameters_are_declared_or_required_ones() -> None:
    read = signature({"properties": {"p": TEXT, "q": TEXT, "r": TEXT}, "required": ["q", "s", 1]})
    assert read.missing(["p"]) == {"q": True, "r": False, "s": True}


def test_the_signature_of_a_tool_by_its_name() -> None:
    signatures = Signatures([Tool("look", "", parameter(TEXT))])
    assert signatures.of("look") == Signature({"p": Declared("string")}, frozenset())
    assert signatures.of("look") is signatures.of("look")
    assert signatures.of("listen") == Signature({}, frozenset())
