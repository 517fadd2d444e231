"""validate: what each keyword asks, and what it says of a value that does not fit."""

from __future__ import annotations

from typing import Any

import pytest

from membrane_lite.errors import MembraneError
from membrane_lite.schema.json_values import Violation
from membrane_lite.schema.validate import validate

NAN = float("nan")

# keyword: (schema, values that fit, [(value that does not, what is said of it), ...])
Rows = dict[str, tuple[Any, list[Any], list[tuple[Any, str]]]]

KEYWORDS: Rows = {
    "type integer: 1.0 is one, True is not": (
        {"type": "integer"},
        [1, 1.0, -0.0, 10**30],
        [
            (True, "expected integer, found true"),
            (1.5, "expected integer, found number 1.5"),
            ("1", 'expected integer, found string "1"'),
        ],
    ),
    "type number: neither NaN nor an infinity is a value": (
        {"type": "number"},
        [1, 1.5],
        [
            (NAN, "expected a JSON value, found float, which is not JSON"),
            (float("inf"), "expected a JSON value, found float, which is not JSON"),
            (False, "expected number, found false"),
        ],
    ),
    "type string": (
        {"type": "string"},
        [""],
        [
            (None, "expected string, found null"),
            (["a"], "expected string, found an array of 1 item"),
            ({"a": 1, "b": 2}, "expected string, found an object with 2 properties"),
            ({1}, "expected a JSON value, found set, which is not JSON"),
        ],
    ),
    "type boolean": ({"type": "boolean"}, [True], [(1, "expected boolean, found integer 1")]),
    "type null": ({"type": "null"}, [None], [("", 'expected null, found string ""')]),
    "a list of types": (
        {"type": ["string", "null"]},
        ["a", None],
        [(1, "expected string or null, found integer 1")],
    ),
    "a value is cut after 80 characters": (
        {"type": "integer"},
        [],
        [("x" * 81, f'expected integer, found string "{"x" * 80}"...')],
    ),
    "enum": (
        {"enum": ["a", 1, [1]]},
        ["a", 1.0, [1.0]],
        [
            ("b", 'expected one of "a", 1, an array of 1 item, found string "b"'),
            (True, 'expected one of "a", 1, an array of 1 item, found true'),
            ([True], 'expected one of "a", 1, an array of 1 item, found an array of 1 item'),
        ],
    ),
    "enum of many names the first 20": (
        {"enum": list(range(21))},
        [20],
        [(21, f"expected one of {', '.join(map(str, range(20)))}, ... (21 in all), found integer 21")],
    ),
    "enum of none": ({"enum": []}, [], [(1, "expected one of no value at all, found integer 1")]),
    "const": (
        {"const": {"a": [1]}},
        [{"a": [1.0]}],
        [
            ({"a": [True]}, "expected an object with 1 property, found an object with 1 property"),
            (0, "expected an object with 1 property, found integer 0"),
        ],
    ),
    "const false is not 0": ({"const": False}, [False], [(0, "expected false, found integer 0")]),
    "minimum": ({"minimum": 2}, [2, 2.0, "1", None, True], [(1.5, "expected 2 or more, found 1.5")]),
    "maximum": ({"maximum": 2}, [2, "3"], [(3, "expected 2 or less, found 3")]),
    "exclusiveMinimum": ({"exclusiveMinimum": 2}, [2.1], [(2, "expected more than 2, found 2")]),
    "exclusiveMaximum": ({"exclusiveMaximum": 2.5}, [2], [(2.5, "expected less than 2.5, found 2.5")]),
    "multipleOf counts in what was written": (
        {"multipleOf": 0.0001},
        [0.0075, 1, 0],
        [(0.00751, "expected a multiple of 0.0001, found 0.00751")],
    ),
    "a number too long to be written": (
        {"maximum": 1},
        [],
        [(10**5000, f"expected 1 or less, found of {(10**5000).bit_length()} bits")],
    ),
    "minLength counts characters, not code units": (
        {"minLength": 2},
        ["ab", "\U0001f600\U0001f600", 1],
        [("\U0001f600", "expected 2 characters or more, found 1")],
    ),
    "maxLength": ({"maxLength": 1.0}, ["a", ""], [("ab", "expected 1 character or fewer, found 2")]),
    "pattern is searched for": (
        {"pattern": "b+"},
        ["abc", 1],
        [("ac", 'expected a string that matches b+, found "ac"')],
    ),
    "pattern: a dollar is the very end, escapes and classes keep theirs": (
        {"pattern": r"^[$]\$[^]$]$"},
        ["$$x"],
        [("$$x\n", r'expected a string that matches ^[$]\$[^]$]$, found "$$x\n"')],
    ),
    "pattern: digits are ASCII": (
        {"pattern": r"^\d$"},
        ["1"],
        [("\u0661", 'expected a string that matches ^\\d$, found "\u0661"')],
    ),
    "pattern is applied to 10,000 characters at most": (
        {"pattern": "a"},
        ["a" * 10_000],
        [("a" * 10_001, "a pattern is applied to at most 10,000 characters, found 10,001")],
    ),
    "minItems": ({"minItems": 1}, [[1], "", {}], [([], "expected 1 item or more, found 0")]),
    "maxItems": ({"maxItems": 1}, [[1]], [([1, 2], "expected 1 item or fewer, found 2")]),
    "uniqueItems": (
        {"uniqueItems": True},
        [[1, True, "1", [1], [True]], [{"a": 1}, {"b": 1}]],
        [
            ([{"a": 1, "b": 2}, 3, {"b": 2, "a": 1.0}], "expected no two equal items, found equal ones at 0 and 2"),
            ([1, 2, 1, 2], "expected no two equal items, found equal ones at 0 and 2"),
        ],
    ),
    "uniqueItems false": ({"uniqueItems": False}, [[1, 1]], []),
    "required": (
        {"required": ["a", "b"]},
        [{"a": None, "b": 1}, []],
        [({"a": 1}, 'the required property "b" is missing')],
    ),
    "false fits nothing": (False, [], [(1, "expected nothing here, found integer 1")]),
    "true fits everything": (True, [1, None, {}], [(NAN, "expected a JSON value, found float, which is not JSON")]),
    "oneOf: two is one too many": (
        {"oneOf": [{"minimum": 1}, {"maximum": 1}, {"type": "string"}]},
        [0, 2],
        [
            (1, "expected exactly one alternative to fit, found 0 and 1 (counted from 0)"),
            ("a", "expected exactly one alternative to fit, found 0 and 1 and 2 (counted from 0)"),
        ],
    ),
    "not": ({"not": {"type": "string"}}, [1], [("a", 'found string "a", which fits the schema under `not`')]),
    "anyOf of types": (
        {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        [1, "a"],
        [(None, "expected integer or string, found null")],
    ),
    "anyOf without types": (
        {"anyOf": [{"minimum": 2}, {"maximum": 1}]},
        [1, 2],
        [(1.5, "expected one of 2 alternatives, found number 1.5, which fits none")],
    ),
    "allOf": ({"allOf": [{"minimum": 1}, {"maximum": 2}]}, [1, 2], [(3, "expected 2 or less, found 3")]),
    "an unknown keyword asks nothing": ({"contains": {"type": "string"}, "format": "email"}, [[1], "no address"], []),
}
FITTING = {
    f"{name}: {value!r:.40}": (schema, value) for name, (schema, values, _) in KEYWORDS.items() for value in values
}
UNFITTING = {
    f"{name}: {type(value).__name__} {index}": (schema, value, message)
    for name, (schema, _, rows) in KEYWORDS.items()
    for index, (value, message) in enumerate(rows)
}


@pytest.mark.parametrize("schema, value", FITTING.values(), ids=FITTING.keys())
def test_validate_of_a_value_that_fits(schema: Any, value: Any) -> None:
    assert validate(schema, value) == []


@pytest.mark.parametrize("schema, value, message", UNFITTING.values(), ids=UNFITTING.keys())
def test_validate_of_a_value_that_does_not_fit(schema: Any, value: Any, message: str) -> None:
    assert validate(schema, value) == [Violation("", message)]


PLACES: dict[str, tuple[Any, Any, list[tuple[str, str]]]] = {
    "items": (
        {"items": {"type": "integer"}},
        [1, "2", 3, None],
        [("/1", 'expected integer, found string "2"'), ("/3", "expected integer, found null")],
    ),
    "items stand behind prefixItems": (
        {"prefixItems": [{"type": "string"}, True], "items": False},
        [1, 2, 3],
        [("/0", "expected string, found integer 1"), ("/2", "expected nothing here, found integer 3")],
    ),
    "properties, escaped": (
        {"properties": {"a/b": {"type": "string"}, "m~n": {"type": "string"}, "": {"type": "string"}}},
        {"a/b": 1, "m~n": 2, "": 3},
        [
            ("/a~1b", "expected string, found integer 1"),
            ("/m~0n", "expected string, found integer 2"),
            ("/", "expected string, found integer 3"),
        ],
    ),
    "additionalProperties false": (
        {"properties": {"a": {}, "b": {}}, "additionalProperties": False},
        {"a": 1, "c": 2},
        [("/c", 'no property "c" is declared; expected only "a", "b"')],
    ),
    "additionalProperties false without properties": (
        {"additionalProperties": False},
        {"c": 2},
        [("/c", 'no property "c" is declared; expected none')],
    ),
    "additionalProperties as a schema": (
        {"properties": {"a": {}}, "additionalProperties": {"type": "string"}},
        {"a": 1, "b": 2, "c": "x"},
        [("/b", "expected string, found integer 2")],
    ),
    "the outermost first": (
        {"required": ["z"], "properties": {"a": {"required": ["y"], "properties": {"b": {"type": "null"}}}}},
        {"a": {"b": 1}},
        [
            ("", 'the required property "z" is missing'),
            ("/a", 'the required property "y" is missing'),
            ("/a/b", "expected null, found integer 1"),
        ],
    ),
    "an optional value: what is wrong with it": (
        {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]},
        [1, "a"],
        [("/1", 'expected integer, found string "a"')],
    ),
    "alternatives told apart by a constant": (
        {
            "anyOf": [
                {"properties": {"kind": {"const": "a"}, "n": {"type": "integer"}}},
                {"properties": {"kind": {"const": "b"}, "n": {"type": "string"}}},
            ]
        },
        {"kind": "b", "n": 1},
        [("/n", "expected string, found integer 1")],
    ),
    "beside the reference of an alternative": (
        {"$defs": {"l": {"type": "array"}}, "anyOf": [{"$ref": "#/$defs/l", "maxItems": 1}, {"type": "null"}]},
        [1, 2],
        [("", "expected 1 item or fewer, found 2")],
    ),
    "a constant that no alternative has": (
        {
            "oneOf": [
                {"properties": {"kind": {"const": "a"}}},
                {"properties": {"kind": {"const": "b"}}},
                {"type": "null"},
            ]
        },
        {"kind": "c"},
        [("/kind", 'expected one of "a", "b", found string "c"')],
    ),
    "alternatives that nothing tells apart": (
        {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {},
        [("", "expected one of 2 alternatives, found an object with 0 properties, which fits none")],
    ),
    "through references": (
        {
            "$defs": {"n": {"properties": {"next": {"anyOf": [{"$ref": "#/$defs/n"}, {"type": "null"}]}}}},
            "$ref": "#/$defs/n",
        },
        {"next": {"next": 1}},
        [],
    ),
    "through references, refused": (
        {
            "$defs": {
                "n": {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/n"}, {"type": "null"}]}}}
            },
            "$ref": "#/$defs/n",
        },
        {"next": {"next": 1}},
        [("/next/next", "expected object or null, found integer 1")],
    ),
}


@pytest.mark.parametrize("schema, value, violations", PLACES.values(), ids=PLACES.keys())
def test_validate_says_where_it_does_not_fit(schema: Any, value: Any, violations: list[tuple[str, str]]) -> None:
    assert validate(schema, value) == [Violation(*row) for row in violations]


# closed: what nobody declares is refused, whoever declares the rest

A, B = {"properties": {"a": {"type": "integer"}}}, {"properties": {"b": {"type": "integer"}}}

CLOSED: dict[str, tuple[Any, Any, list[str]]] = {
    "properties alone": (A, {"a": 1, "b": 2}, ["/b"]),
    "a nested object too": ({"properties": {"x": A}}, {"x": {"b": 1}}, ["/x/b"]),
    "in an array": ({"items": A}, [{"b": 1}, {"a": 1}, {"c": 1}], ["/0/b", "/2/c"]),
    "an object of which nothing is declared stays open": ({"type": "object"}, {"a": 1}, []),
    "one that declares that it has none does not": ({"properties": {}}, {"a": 1}, ["/a"]),
    "one that says so is open": ({**A, "additionalProperties": True}, {"a": 1, "b": 2}, []),
    "one that says no is told once": ({**A, "additionalProperties": False}, {"b": 2}, ["/b"]),
    "allOf adds up": ({"allOf": [A, B]}, {"a": 1, "b": 2, "c": 3}, ["/c"]),
    "a reference adds up": ({"$defs": {"b": B}, "$ref": "#/$defs/b", **A}, {"a": 1, "b": 2, "c": 3}, ["/c"]),
    "the alternatives that fit add up": ({"anyOf": [A, B]}, {"a": 1, "b": 2, "c": 3}, ["/c"]),
    "one that does not fit does not count": ({"anyOf": [A, B]}, {"a": 1, "b": "x"}, ["/b"]),
    "what `not` declares does not count": ({**A, "not": {"required": ["z"], **B}}, {"a": 1, "b": 2}, ["/b"]),
    "within an alternative within an array": (
        {"items": {"anyOf": [{"properties": {"x": {"anyOf": [A, {"type": "null"}]}}}, {"type": "null"}]}},
        [None, {"x": {"a": 1, "q": 1}}, {"x": None}],
        ["/1/x/q"],
    ),
}


@pytest.mark.parametrize("schema, value, paths", CLOSED.values(), ids=CLOSED.keys())
def test_validate_closed(schema: Any, value: Any, paths: list[str]) -> None:
    assert [violation.path for violation in validate(schema, value, closed=True)] == paths


def test_validate_says_of_an_undeclared_property() -> None:
    assert validate({"allOf": [A, B]}, {"c": 3}, closed=True) == [
        Violation("/c", 'no property "c" is declared; expected only "a", "b"')
    ]


def test_validate_of_a_key_that_is_no_string() -> None:
    """JSON has none; a client of the caller's own may."""
    assert validate(A, {1: 2}, closed=True) == [Violation("/1", 'no property "1" is declared; expected only "a"')]


# Depth, and time

LIST = {"items": {"$ref": "#"}}
CHAIN: dict[str, Any] = {
    "$defs": {"n": {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#/$defs/n"}, {"type": "null"}]}}}},
    "$ref": "#/$defs/n",
}


def nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


def chain(length: int, last: Any = None) -> Any:
    value = last
    for _ in range(length):
        value = {"next": value}
    return value


def test_validate_looks_at_256_levels() -> None:
    assert validate(LIST, nested(256)) == []
    assert validate(CHAIN, chain(256)) == []
    assert [violation.message for violation in validate(CHAIN, chain(255, last=1))] == [
        "expected object or null, found integer 1"
    ]


@pytest.mark.parametrize("depth", [257, 900, 100_000])
def test_validate_of_more_is_a_violation(depth: int) -> None:
    assert validate(LIST, nested(depth)) == [Violation("/0" * 257, "the value is nested deeper than 256 levels")]


def test_validate_of_values_too_deep_to_compare_is_a_violation() -> None:
    assert validate({"const": 1}, nested(100_000)) == [Violation("", "the value is nested deeper than 256 levels")]


def test_validate_tries_alternatives_that_share_their_parts_once() -> None:
    """Without a memory each level would double the work: 2 ** 100 tries."""
    either = {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}, {"type": "null"}]}
    schema = {
        "$defs": {
            "a": {"type": "object", "properties": {"next": either, "last": {"type": "string"}}},
            "b": {"type": "object", "properties": {"next": either, "last": {"type": "integer"}}, "required": ["last"]},
        },
        **either,
    }
    value: Any = {"last": 1}
    for _ in range(100):
        value = {"next": value, "last": 1}
    assert validate(schema, value, closed=True) == []


# Schemas that cannot be applied

BAD: dict[str, tuple[Any, str]] = {
    "an unknown type": (
        {"items": {"type": "int"}},
        "schema#/items/type: found 'int'; expected one of null, boolean, object, array, number, integer, string, "
        "or a list of them",
    ),
    "a schema that is none": (
        {"items": [1]},
        "schema#/items: found list [1]; expected a schema (an object or a boolean)",
    ),
    "properties that are none": (
        {"$defs": {"a": {"properties": []}}},
        "schema#/$defs/a/properties: found []; expected an object of schemas",
    ),
    "a pattern": (
        {"properties": {"a/b": {"pattern": "a("}}},
        "schema#/properties/a~1b/pattern: 'a(' is no pattern: missing ), unterminated subpattern at position 1; "
        "expected a regular expression",
    ),
    "a reference to elsewhere": (
        {"$ref": "https://example.org/a"},
        "schema#/$ref: found 'https://example.org/a'; expected a reference within the schema, '#' or '#/...'",
    ),
    "a reference to nothing": (
        {"items": {"$ref": "#/$defs/a"}},
        "schema#/items/$ref: '#/$defs/a' names nothing in the schema; expected a place in it",
    ),
    "a reference to itself": (
        {"$defs": {"a": {"$ref": "#/$defs/a"}}, "items": {"$ref": "#/$defs/a"}},
        "schema#/$defs/a: the schema leads back to itself; expected one that goes on into the value",
    ),
    "a circle of alternatives": (
        {"anyOf": [{"type": "null"}, {"not": {"$ref": "#"}}]},
        "schema#: the schema leads back to itself; expected one that goes on into the value",
    ),
    "a length below 0": (
        {"minLength": -1},
        "schema#/minLength: found -1; expected a whole number, 0 or more",
    ),
    "a multiple of 0": ({"multipleOf": 0}, "schema#/multipleOf: found 0; expected a number above 0"),
    "a bound that is no number": ({"minimum": "1"}, "schema#/minimum: found '1'; expected a number"),
    "required that is true": ({"required": True}, "schema#/required: found True; expected a list of names"),
    "behind a reference": (
        {"x": {"pattern": "["}, "$ref": "#/x"},
        "schema#/x/pattern: '[' is no pattern: unterminated character set at position 0; expected a regular expression",
    ),
}


@pytest.mark.parametrize("schema, message", BAD.values(), ids=BAD.keys())
def test_validate_refuses_a_schema_that_cannot_be_applied(schema: Any, message: str) -> None:
    with pytest.raises(MembraneError) as raised:
        validate(schema, 1)
    assert (raised.value.type, raised.value.message) == ("invalid_request", message)
