"""json_of_text: which of the values in a text is the answer."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from shared_data import shared_json

from membrane_lite.schema.json_in_text import json_of_text

FENCE = "```"

TEXTS: dict[str, tuple[str, Any]] = {
    "bare": (' {"a": 1}\n', {"a": 1}),
    "a bare scalar": ("3", 3),
    "a bare array": ("[1]", [1]),
    "fenced": (f'{FENCE}json\n{{"a": 1}}\n{FENCE}', {"a": 1}),
    "fenced without a language": (f'{FENCE}\n{{"a": 1}}\n{FENCE}', {"a": 1}),
    "fenced on one line": (f'{FENCE}{{"a": 1}}{FENCE}', {"a": 1}),
    "fenced, with CR LF and space": (f'{FENCE}json \r\n\r\n  {{"a": 1}}\r\n{FENCE}', {"a": 1}),
    "words around a fence": (f'Here it is:\n{FENCE}json\n{{"a": 1}}\n{FENCE}\nAnything else?', {"a": 1}),
    "a fence within a string": (f'x\n{FENCE}json\n{{"a": "use {FENCE} here"}}\n{FENCE}', {"a": f"use {FENCE} here"}),
    "a fence that nobody closes": (f'{FENCE}json\n{{"a": 1}}', {"a": 1}),
    "the fenced one, not an earlier example": (f'For {{"x": 0}}:\n{FENCE}json\n{{"a": 1}}\n{FENCE}', {"a": 1}),
    "the first of two fenced": (f'{FENCE}\n{{"a": 1}}\n{FENCE}\nor\n{FENCE}\n{{"a": 2}}\n{FENCE}', {"a": 1}),
    "words around it": ('The answer is {"a": 1}. Good?', {"a": 1}),
    "an object, not an earlier array": ('As [1] says: {"a": 1}', {"a": 1}),
    "an array of objects is one value": ('They are [{"a": 1}, {"a": 2}]', [{"a": 1}, {"a": 2}]),
    "behind braces that are none": ('Use {name} and {"a": {"b": 1}}', {"a": {"b": 1}}),
    "behind brackets with nothing in them": ('As {} or []: [{"a": 1}]', [{"a": 1}]),
    "nothing in it, where that is all": ("It is {}.", {}),
    "behind thinking": ('\n<think>\nIs it {"a": 2}?</think>\n\n{"a": 1}', {"a": 1}),
    "behind thinking, fenced": (f'<thinking>{FENCE}\n[2]\n{FENCE}</thinking>{FENCE}\n{{"a": 1}}\n{FENCE}', {"a": 1}),
    "thinking within the answer": ('{"a": "<think>b</think>"}', {"a": "<think>b</think>"}),
    "a brace in a string": ('x {"a": "}{"} y', {"a": "}{"}),
    "half a character": ('x {"a": "\\ud800"}', {"a": "\ufffd"}),
}


@pytest.mark.parametrize("text, value", TEXTS.values(), ids=TEXTS.keys())
def test_the_value_in_a_text(text: str, value: Any) -> None:
    assert json_of_text(text) == value


NONE = {
    "words": ("I cannot.", "the answer holds no JSON object"),
    "nothing": ("", "the answer holds no JSON object"),
    "cut off: the parts that are whole are not the answer": (
        'x {"a": {"b": 1}, "c": [1, 2], "d": {"e',
        "the answer holds no JSON object",
    ),
    "cut off in a fence": (f'{FENCE}json\n{{"a": [1]', "the answer holds no JSON object"),
    "NaN": ('x {"a": NaN}', "NaN is not JSON"),
    "thinking alone": ('<think>{"a": 1}</think>', "the answer holds no JSON object"),
    "nested too deep": ("[" * 100_000, "the answer holds no JSON object"),
}


@pytest.mark.parametrize("text, message", NONE.values(), ids=NONE.keys())
def test_a_text_without_a_value(text: str, message: str) -> None:
    with pytest.raises(ValueError) as raised:
        json_of_text(text)
    assert str(raised.value) == message


def test_a_shared_case() -> None:
    case = shared_json("cases/structured-fenced-json.json")
    (response,) = case["input"]["responses"]
    text = json_of_text(response["body_text"])["choices"][0]["message"]["content"]
    assert json_of_text(text) == case["expected"]["value"]


LONG = {
    "a value longer than any window": ('x {"a": "' + "y" * 5_000 + '"}', {"a": "y" * 5_000}),
    "an escape where a window ends": ('x {"a": "' + "y" * 243 + '\\u00e9"}', {"a": "y" * 243 + "\u00e9"}),
    "a number where a window ends": ("x [" + "1, " * 84 + "12345]", [*[1] * 84, 12345]),
    "a word where a window ends": ("x [" + "1, " * 84 + "false]", [*[1] * 84, False]),
}


@pytest.mark.parametrize("text, value", LONG.values(), ids=LONG.keys())
def test_a_long_value(text: str, value: Any) -> None:
    assert json_of_text(text) == value


def test_many_beginnings_take_linear_time() -> None:
    """Each of them is an error of json's, which counts the lines of all the text that it was given."""
    assert json_of_text('[1, "a' * 100_000 + '"] {"a": 1}') == {"a": 1}


@pytest.mark.skipif(not hasattr(sys, "get_int_max_str_digits"), reason="this Python reads any number")
def test_a_value_with_a_number_too_long_to_be_read_is_none_and_neither_are_its_parts() -> None:
    with pytest.raises(ValueError, match="the answer holds no JSON object"):
        json_of_text(f'{{"a": {"9" * 5_000}, "b": {{"c": 1}}}}')
