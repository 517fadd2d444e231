"""Parameter values of XML calls: the text between two tags in, a JSON value out. The tool's schema decides the type.

    string                      the text as written, without one newline after the opener and one before the closer
    another single type         strict JSON; text that is none stays text, and is doubted
    nullable, and text `null`   None
    undeclared, unconstrained   the guess
    several types, unreadable   the guess, and a doubt
    CDATA                       the payload exactly: a string, unless one other type is declared

The guess: trimmed, JSON if it is strict JSON, else that text. 16 or more digits stay text: they are ids, and a reader
with 64-bit floats would round them. Entities are not decoded. A doubt never quotes the value.
"""

from __future__ import annotations

import re
from decimal import Decimal
from math import isinf
from typing import Any, Final, NamedTuple

from ..values.base import Json
from ..wire import json_text
from .xml_signatures import UNDECLARED, Declared
from .xml_tags import WHITESPACE
from .xml_tools import DIGITS_TAKEN_FOR_TEXT

LONG_DIGITS: Final = re.compile(f"[0-9]{{{DIGITS_TAKEN_FOR_TEXT},}}")
WHOLE_BELOW: Final = 1e21  # from here on a number is written with an exponent


class Read(NamedTuple):
    """doubt: what is odd about the value, "" if nothing is."""

    value: Json
    doubt: str = ""


def read_value(text: str, declared: Declared = UNDECLARED, *, payload: str | None = None) -> Read:
    """The value of a parameter whose tags stand around `text`. payload: what its CDATA sections hold, if it has any."""
    if payload is not None:
        return Read(payload) if declared.type in (None, "string") else _typed(payload, declared)
    if declared.type is None:
        return Read(_guessed(text), "its schema does not name one type: it was guessed" if declared.unclear else "")
    if declared.nullable and text.strip(WHITESPACE) == "null":
        return Read(None)
    written = as_written(text)
    return Read(written) if declared.type == "string" else _typed(written, declared)


def as_written(text: str) -> str:
    """Without the newline that follows the opener and the one that precedes the closer."""
    start = 1 if text.startswith("\n") else 0
    return text[start:-1] if text.endswith("\n", start) else text[start:]


def _guessed(text: str) -> Json:
    trimmed = text.strip(WHITESPACE)
    if LONG_DIGITS.fullmatch(trimmed):
        return trimmed
    try:
        return _json(trimmed)
    except ValueError:
        return trimmed


def _typed(text: str, declared: Declared) -> Read:
    trimmed = text.strip(WHITESPACE)
    if LONG_DIGITS.fullmatch(trimmed):
        return Read(trimmed, "" if declared.allows("integer") else f"{declared.type} expected, digits found")
    try:
        value = _json(trimmed)
    except ValueError:
        return Read(text, f"{declared.type} expected, but the value is not JSON: it is passed as text")
    found = next((kind for cls, kind in KINDS if isinstance(value, cls)), "null")
    return Read(value, "" if declared.allows(found) else f"{declared.type} expected, {found} found")


def _json(text: str) -> Json:
    """Strict JSON. Raises ValueError for anything else, and for what is nested too deep to be read."""
    try:
        value = _numbers_as_written(json_text.parse(text))
    except RecursionError:
        raise ValueError("nested too deep") from None
    # Written calls say a long integer with an exponent (xml_tools), and a float would round it.
    return int(Decimal(text)) if isinstance(value, int) and EXPONENT.fullmatch(text) else value


def _numbers_as_written(value: Json) -> Json:
    """1e3 and 1000.0 are the number 1000. One too large for a float is none that could be sent on."""
    if isinstance(value, float):
        if isinf(value):
            raise ValueError("out of range")
        return int(value) if value.is_integer() and abs(value) < WHOLE_BELOW else value
    if isinstance(value, list):
        return [_numbers_as_written(item) for item in value]
    if isinstance(value, dict):
        return {key: _numbers_as_written(item) for key, item in value.items()}
    return value


EXPONENT: Final = re.compile(r"-?[0-9.]+[eE]\+?[0-9]{1,2}")

# bool before int, whose subclass it is.
KINDS: Final[tuple[tuple[Any, str], ...]] = (
    (str, "string"),
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (list, "array"),
    (dict, "object"),
)
