"""output_dialects: a schema in the keywords that a provider knows; the rest in words."""

from __future__ import annotations

from typing import Any

import pytest

from membrane_lite.providers.output_dialects import CLAUDE, GEMINI, in_dialect

Json = Any
TEXT: Json = {"type": "string"}


def of(schema: Json, **more: Json) -> Json:
    """An object with one property `a`."""
    return {"type": "object", "properties": {"a": schema}, **more}


def closed(schema: Json, **more: Json) -> Json:
    return {**of(schema, **more), "additionalProperties": False}


# What stands for the property `a` in Claude's dialect, and in Gemini's.
PROPERTIES: dict[str, tuple[Json, Json, Json]] = {
    "what all know": (
        {"type": "string", "title": "A", "description": "An a.", "enum": ["x", "y"]},
        {"type": "string", "title": "A", "description": "An a.", "enum": ["x", "y"]},
        {"type": "string", "title": "A", "description": "An a.", "enum": ["x", "y"]},
    ),
    "a constant": (
        {"type": "string", "const": "x"},
        {"type": "string", "const": "x"},
        {"type": "string", "enum": ["x"]},
    ),
    "constants without a type": (
        {"anyOf": [{"const": "x"}, {"enum": [1, 2]}]},
        {"anyOf": [{"type": "string", "const": "x"}, {"type": "integer", "enum": [1, 2]}]},
        {"anyOf": [{"type": "string", "enum": ["x"]}, {"type": "integer", "enum": [1, 2]}]},
    ),
    "constants that are neither text nor number": (
        {"anyOf": [{"type": "boolean", "const": True}, {"enum": ["x", None]}]},
        {"anyOf": [{"type": "boolean", "const": True}, {"type": ["null", "string"], "enum": ["x", None]}]},
        {
            "anyOf": [
                {"type": "boolean", "description": 'Must match {"const":true}'},
                {"type": ["null", "string"], "description": 'Must match {"enum":["x",null]}'},
            ]
        },
    ),
    "bounds": (
        {"type": "integer", "minimum": 1, "exclusiveMaximum": 9},
        {"type": "integer", "description": 'Must match {"minimum":1,"exclusiveMaximum":9}'},
        {"type": "integer", "minimum": 1, "description": 'Must match {"exclusiveMaximum":9}'},
    ),
    "behind a description": (
        {"type": "string", "description": "An a.", "maxLength": 3},
        {"type": "string", "description": 'An a.\nMust match {"maxLength":3}'},
        {"type": "string", "description": 'An a.\nMust match {"maxLength":3}'},
    ),
    "a format": ({**TEXT, "format": "date"}, {**TEXT, "format": "date"}, {**TEXT, "format": "date"}),
    "a format of no text": (
        {**TEXT, "format": "int32"},
        {**TEXT, "description": 'Must match {"format":"int32"}'},
        {**TEXT, "description": 'Must match {"format":"int32"}'},
    ),
    "one item or more": (
        {"type": "array", "items": TEXT, "minItems": 1},
        {"type": "array", "items": TEXT, "minItems": 1},
        {"type": "array", "items": TEXT, "minItems": 1},
    ),
    "two items or more": (
        {"type": "array", "items": TEXT, "minItems": 2, "maxItems": 3},
        {"type": "array", "items": TEXT, "description": 'Must match {"minItems":2,"maxItems":3}'},
        {"type": "array", "items": TEXT, "minItems": 2, "maxItems": 3},
    ),
    "a place of its own for each item": (
        {"type": "array", "prefixItems": [TEXT, {"type": "null"}, TEXT], "minItems": 3},
        {"type": "array", "items": {"anyOf": [TEXT, {"type": "null"}]}, "description": 'Must match {"minItems":3}'},
        {"type": "array", "prefixItems": [TEXT, {"type": "null"}, TEXT], "minItems": 3},
    ),
    "places alike": (
        {"type": "array", "prefixItems": [TEXT, TEXT]},
        {"type": "array", "items": TEXT},
        {"type": "array", "prefixItems": [TEXT, TEXT]},
    ),
    "inside items": (
        {"type": "array", "items": {"type": "string", "minLength": 1}},
        {"type": "array", "items": {"type": "string", "description": 'Must match {"minLength":1}'}},
        {"type": "array", "items": {"type": "string", "description": 'Must match {"minLength":1}'}},
    ),
    "alternatives of which one holds": (
        {"oneOf": [TEXT, {"type": "null"}]},
        {"anyOf": [TEXT, {"type": "null"}]},
        {"oneOf": [TEXT, {"type": "null"}]},
    ),
    "all of one": ({"allOf": [TEXT]}, {"anyOf": [TEXT]}, {"anyOf": [TEXT]}),
    "all of several": (
        {"type": "string", "allOf": [TEXT, {"minLength": 1}]},
        {"type": "string", "allOf": [TEXT, {"description": 'Must match {"minLength":1}'}]},
        {"type": "string", "description": 'Must match {"allOf":[{"type":"string"},{"minLength":1}]}'},
    ),
    "what says nothing of the value": (
        {"type": "string", "default": "x", "examples": ["y"], "$comment": "z"},
        {"type": "string"},
        {"type": "string"},
    ),
    "an object within": (of(TEXT), closed(TEXT), of(TEXT)),
    "a schema that allows anything": (True, True, True),
}


@pytest.mark.parametrize("given, claude, gemini", PROPERTIES.values(), ids=PROPERTIES.keys())
def test_a_property(given: Json, claude: Json, gemini: Json) -> None:
    assert in_dialect(of(given), CLAUDE) == closed(claude)
    assert in_dialect(of(given), GEMINI) == of(gemini)


def test_definitions_are_rewritten_and_nothing_stands_beside_a_reference() -> None:
    given = of({"$ref": "#/$defs/D", "description": "An a."}, **{"$defs": {"D": of({**TEXT, "pattern": "x"})}})
    wrapped = {"anyOf": [{"$ref": "#/$defs/D"}], "description": "An a."}
    told = {"type": "string", "description": 'Must match {"pattern":"x"}'}
    assert in_dialect(given, CLAUDE) == closed(wrapped, **{"$defs": {"D": closed(told)}})
    assert in_dialect(given, GEMINI) == of(wrapped, **{"$defs": {"D": of(told)}})


def test_definitions_of_an_older_draft_are_found() -> None:
    given = of({"$ref": "#/definitions/D"}, definitions={"D": of(TEXT)})
    assert in_dialect(given, CLAUDE) == closed({"$ref": "#/$defs/D"}, **{"$defs": {"D": closed(TEXT)}})
    assert in_dialect(given, GEMINI) == of({"$ref": "#/$defs/D"}, **{"$defs": {"D": of(TEXT)}})


TREE: Json = of({"type": "array", "items": {"$ref": "#/$defs/Tree"}})

NO_FORM: dict[str, Json] = {
    "free keys": {"type": "object"},
    "keys of a kind": {"type": "object", "additionalProperties": TEXT},
    "more than its properties": of(TEXT, additionalProperties=True),
    "free keys within": of({"type": "array", "items": {"type": "object"}}),
    "free keys or null": of({"type": ["object", "null"]}),
    "free keys in what is referred to": of({"$ref": "#/$defs/D"}, **{"$defs": {"D": {"type": "object"}}}),
    "a schema that contains itself": of({"$ref": "#/$defs/Tree"}, **{"$defs": {"Tree": TREE}}),
    "an object that is described in two places": of({**of(TEXT), "anyOf": [of(TEXT), of({"type": "null"})]}),
    "an object that two schemas describe": of({"allOf": [of(TEXT), {"type": "object", "properties": {"b": TEXT}}]}),
    "properties beside a reference": of({"$ref": "#/$defs/D", "properties": {}}, **{"$defs": {"D": of(TEXT)}}),
    "a constant that is an object": of({"const": {"x": 1}}),
    "the root itself": of({"anyOf": [{"$ref": "#"}, {"type": "null"}]}),
}


@pytest.mark.parametrize("given", NO_FORM.values(), ids=NO_FORM.keys())
def test_what_claudes_format_has_no_form_for(given: Json) -> None:
    assert in_dialect(given, CLAUDE) is None
    assert in_dialect(given, GEMINI) is not None


def test_a_definition_that_is_used_twice_does_not_contain_itself() -> None:
    both = {"type": "object", "properties": {name: {"$ref": "#/$defs/D"} for name in "ab"}, "$defs": {"D": of(TEXT)}}
    assert in_dialect(both, CLAUDE) is not None
    assert in_dialect({**both, "$defs": {"D": of(TEXT), "unused": {"type": "object"}}}, CLAUDE) is not None


OPTIONAL: Json = {"type": "object", "properties": {f"p{i}": TEXT for i in range(24)}}
UNION: Json = {"anyOf": [TEXT, {"type": "null"}]}
UNIONS: Json = {"type": "object", "properties": {f"p{i}": UNION for i in range(16)}}
UNIONS["required"] = list(UNIONS["properties"])
WITHIN: Json = {"type": "array", "items": {"$ref": "#/$defs/D"}}

# The page counts them over the whole request, and refuses more.
COUNTED: dict[str, tuple[Json, bool]] = {
    "24 properties that may be absent": (OPTIONAL, True),
    "25": ({**OPTIONAL, "properties": {**OPTIONAL["properties"], "q": TEXT}}, False),
    "25 of which one is required": (
        {**OPTIONAL, "properties": {**OPTIONAL["properties"], "q": TEXT}, "required": ["q"]},
        True,
    ),
    "25 with those of a definition": (
        {
            **OPTIONAL,
            "properties": {**OPTIONAL["properties"], "q": WITHIN},
            "required": ["q"],
            "$defs": {"D": of(TEXT)},
        },
        False,
    ),
    "16 unions": (UNIONS, True),
    "17": ({**UNIONS, "properties": {**UNIONS["properties"], "q": {"type": ["string", "null"]}}}, False),
}


@pytest.mark.parametrize("given, held", COUNTED.values(), ids=COUNTED.keys())
def test_claudes_format_holds_only_so_much(given: Json, held: bool) -> None:
    assert (in_dialect(given, CLAUDE) is not None) is held
    assert in_dialect(given, GEMINI) is not None
