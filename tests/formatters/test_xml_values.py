"""read_value: the text of a parameter as a value, by what its schema declares."""

from __future__ import annotations

from typing import Any

import pytest

from membrane_lite.formatters.xml_signatures import Declared
from membrane_lite.formatters.xml_values import Read, read_value

# What is guessed, where nothing is declared.
GUESSES: dict[str, tuple[str, Any]] = {
    "a whole number": ("42", 42),
    "a fraction": ("3.14", 3.14),
    "a negative number": ("-5", -5),
    "a number with an exponent": ("1e3", 1000),
    "a whole number written as a fraction": ("2.0", 2),
    "no negative zero": ("-0.0", 0),
    "whole numbers inside": ('{"a": [1.0, 2.5]}', {"a": [1, 2.5]}),
    "a number too long to be written out": ("1e21", 1e21),
    "leading zeros": ("007", "007"),
    "15 digits": ("123456789012345", 123456789012345),
    "16 digits": ("1234567890123456", "1234567890123456"),
    "19 digits and white space": (" 1234567890123456789\n", "1234567890123456789"),
    "16 digits of another script": ("١" * 16, "١" * 16),
    "a minus and 17 digits": ("-12345678901234567", -12345678901234567),
    "many digits with an exponent, as written calls have them": ("1.234567890123456789e+18", 1234567890123456789),
    "a number no float holds": ("1e400", "1e400"),
    "a number inside that no float holds": ("[1e400]", "[1e400]"),
    "a string in quotes": ('"hi"', "hi"),
    "a string in single quotes": ("'hi'", "'hi'"),
    "true": ("true", True),
    "false": ("false", False),
    "null": ("null", None),
    "True": ("True", "True"),
    "NaN": ("NaN", "NaN"),
    "-Infinity": ("-Infinity", "-Infinity"),
    "a list": ('[1,{"k":2}]', [1, {"k": 2}]),
    "a trailing comma": ("[1,]", "[1,]"),
    "nothing": ("", ""),
    "white space": (" \n\ufeff", ""),
    "not white space": ("\u0085a\u001c", "\u0085a\u001c"),
    "text": (" a\nb ", "a\nb"),
    "entities": ("&lt;b&gt;", "&lt;b&gt;"),
    "half a surrogate pair": ('"\\ud83d"', "\ufffd"),
    "endless nesting": ("[" * 100_000, "[" * 100_000),
}


@pytest.mark.parametrize("text, value", GUESSES.values(), ids=GUESSES.keys())
def test_a_guess(text: str, value: Any) -> None:
    read = read_value(text)
    assert read == Read(value)
    assert type(read.value) is type(value)


STRING, NUMBER, INTEGER = Declared("string"), Declared("number"), Declared("integer")
OBJECT, BOOLEAN = Declared("object"), Declared("boolean")
TEXT_OR_NULL, WHOLE_OR_NULL = Declared("string", nullable=True), Declared("integer", nullable=True)
SEVERAL = Declared(unclear=True)
AS_TEXT = "expected, but the value is not JSON: it is passed as text"
GUESSED = "its schema does not name one type: it was guessed"

TYPED: dict[str, tuple[str, Declared, Read]] = {
    "a string is what is written": (" 42 ", STRING, Read(" 42 ")),
    "a string in quotes keeps them": ('"a"', STRING, Read('"a"')),
    "a newline next to either tag is not the string's": ("\na\n", STRING, Read("a")),
    "one newline, no more": ("\n\na\n\n", STRING, Read("\na\n")),
    "one newline between the tags": ("\n", STRING, Read("")),
    "an empty string": ("", STRING, Read("")),
    "digits are a string": ("12", STRING, Read("12")),
    "null is a string": ("null", STRING, Read("null")),
    "null, where it is allowed": (" null\n", TEXT_OR_NULL, Read(None)),
    "a string, where null is allowed": ("nil", TEXT_OR_NULL, Read("nil")),
    "a number": ("\n 1.5 \n", NUMBER, Read(1.5)),
    "an integer is a number": ("2", NUMBER, Read(2)),
    "an integer": ("1e3", INTEGER, Read(1000)),
    "an integer or null": ("null", WHOLE_OR_NULL, Read(None)),
    "a fraction is no integer": ("1.5", INTEGER, Read(1.5, "integer expected, number found")),
    "truth is no integer": ("true", INTEGER, Read(True, "integer expected, boolean found")),
    "null that is not allowed": ("null", INTEGER, Read(None, "integer expected, null found")),
    "a string is no number": ('"1"', NUMBER, Read("1", "number expected, string found")),
    "16 digits stay text": (" 1234567890123456 ", INTEGER, Read("1234567890123456")),
    "16 digits are no object": ("1234567890123456", OBJECT, Read("1234567890123456", "object expected, digits found")),
    "what is no JSON stays text": ("\n{a: 1} \n", OBJECT, Read("{a: 1} ", f"object {AS_TEXT}")),
    "nothing is no JSON": ("", BOOLEAN, Read("", f"boolean {AS_TEXT}")),
    "endless nesting is passed as text": ("[" * 100_000, OBJECT, Read("[" * 100_000, f"object {AS_TEXT}")),
    "an object": ('{"a": 1e2}', OBJECT, Read({"a": 100})),
    "a list is no object": ("[]", OBJECT, Read([], "object expected, array found")),
    "one of several types is guessed": (" 1 ", SEVERAL, Read(1, GUESSED)),
}


@pytest.mark.parametrize("text, declared, read", TYPED.values(), ids=TYPED.keys())
def test_a_typed_value(text: str, declared: Declared, read: Read) -> None:
    assert read_value(text, declared) == read


PAYLOADS: dict[str, tuple[str, Declared, Read]] = {
    "a string, exactly": ("\n 1 \n", STRING, Read("\n 1 \n")),
    "a string, where nothing is declared": (" 1 ", Declared(), Read(" 1 ")),
    "a string, where several types are": (" 1 ", SEVERAL, Read(" 1 ")),
    "the word null, where null is allowed": ("null", TEXT_OR_NULL, Read("null")),
    "JSON, where another type is declared": (' {"a": 1}\n', OBJECT, Read({"a": 1})),
    "null, where another type or null is": ("null", WHOLE_OR_NULL, Read(None)),
    "what is no JSON stays text, exactly": ("\na\n", INTEGER, Read("\na\n", f"integer {AS_TEXT}")),
}


@pytest.mark.parametrize("payload, declared, read", PAYLOADS.values(), ids=PAYLOADS.keys())
def test_a_value_written_as_cdata(payload: str, declared: Declared, read: Read) -> None:
    assert read_value("<![CDATA[...]]>", declared, payload=payload) == read
