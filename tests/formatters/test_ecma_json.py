"""JSON as ECMAScript writes it; the expected texts are those of JSON.stringify."""

from __future__ import annotations

import math
from typing import Any

import pytest

from membrane_lite.errors import MembraneError
from membrane_lite.formatters.ecma_json import ordered, stringify

TEXTS: dict[str, tuple[Any, str]] = {
    "an object, without spaces": ({"a": 1, "b": [True, None, "x"]}, '{"a":1,"b":[true,null,"x"]}'),
    "nothing in it": ([{}, []], "[{},[]]"),
    "a tuple is a list": ((1, 2), "[1,2]"),
    "letters stay letters": ('é\u2028"\\\n', '"é\u2028\\"\\\\\\n"'),
    "array indexes first, ascending": (
        {"b": 1, "10": 2, "2": 3, "a": 4, "0": 5},
        '{"0":5,"2":3,"10":2,"b":1,"a":4}',
    ),
    "what only looks like one stays in place": (
        {"a": 1, "01": 2, "-1": 3, "1.0": 4, "4294967295": 5, "٣": 6, "": 7, "4294967294": 8},
        '{"4294967294":8,"a":1,"01":2,"-1":3,"1.0":4,"4294967295":5,"٣":6,"":7}',
    ),
    "keys that are no text": ({"b": 0, 1: "a", None: "c", False: "d"}, '{"1":"a","b":0,"null":"c","false":"d"}'),
    "whole floats": ([1.0, -2.0, 0.0, -0.0], "[1,-2,0,0]"),
    "whole numbers keep all their digits": (12345678901234567890123, "12345678901234567890123"),
    "no numbers": ([math.nan, math.inf, -math.inf], "[null,null,null]"),
    "fractions": ([0.1, -1.5, 123456.789], "[0.1,-1.5,123456.789]"),
    "large ones": (
        [1e15, 1e16, 1.5e20, 1.2345678901234567e20, 1e21, -1.5e300],
        "[1000000000000000,10000000000000000,150000000000000000000,123456789012345670000,1e+21,-1.5e+300]",
    ),
    "small ones": ([1e-4, 1.5e-5, -1e-6, 1e-7, 5e-324], "[0.0001,0.000015,-0.000001,1e-7,5e-324]"),
}


@pytest.mark.parametrize("value, text", TEXTS.values(), ids=TEXTS.keys())
def test_a_value(value: Any, text: str) -> None:
    assert stringify(value) == text


def test_the_order_of_fields() -> None:
    assert ordered({"b": 1, "1": 2, "a": 3, "0": 4}) == [("0", 4), ("1", 2), ("b", 1), ("a", 3)]


ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)
REFUSED: dict[str, tuple[Any, str]] = {
    "no JSON": ({"a": {1, 2}}, "a tool's value is not JSON: Object of type set is not JSON serializable; expected"),
    "nesting without end": (ENDLESS, "a tool's value is not JSON: maximum recursion depth exceeded"),
}


@pytest.mark.parametrize("value, message", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_json(value: Any, message: str) -> None:
    with pytest.raises(MembraneError, match=message) as failure:
        stringify(value)
    assert failure.value.type == "invalid_request"
