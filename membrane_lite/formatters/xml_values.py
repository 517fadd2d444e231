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
from math import isinf
from typing import Any, Final, NamedTuple

from ..wire import json_text
from .xml_signatures import KINDS, NUMBER, Kinds, kind_of, single_kind
from .xml_tags import WHITESPACE

LONG_DIGITS: Final = re.compile("[0-9]{16,}")
WHOLE_BELOW: Final = 1e21  # from here on ECMAScript's JSON.stringify writes an exponent, and so does Python's


class Read(NamedTuple):
    """doubt: what is odd about the value, "" if nothing is."""

    value: Any
    doubt: str = ""


def read_value(text: str, kinds: Kinds, *, payload: str | None = None) -> Read:
    """The value of a parameter whose tags stand around `text`. payload: what its CDATA sections hold, if it has any."""
    kind = single_kind(kinds)
    if kinds is None or kind is None:
        doubt = "" if kinds is None else f"its type was guessed, for the schema {_unclear(kinds)}"
        return Read(guessed(text), doubt) if payload is None else Read(payload)
    if payload is None and "null" in kinds and text.strip(WHITESPACE) == "null":
        return Read(None)
    written = as_written(text) if payload is None else payload
    return Read(written) if kind == "string" else _typed(written, kind, allowed=kinds)


def as_written(text: str) -> str:
    """Without the newline that follows the opener and the one that precedes the closer."""
    start = 1 if text.startswith("\n") else 0
    return text[start:-1] if text.endswith("\n", start) else text[start:]


def guessed(text: str) -> Any:
    trimmed = text.strip(WHITESPACE)
    if LONG_DIGITS.fullmatch(trimmed):
        return trimmed
    try:
        return _json(trimmed)
    except ValueError:
        return trimmed


def _typed(text: str, kind: str, *, allowed: frozenset[str]) -> Read:
    trimmed = text.strip(WHITESPACE)
    if LONG_DIGITS.fullmatch(trimmed):
        return Read(trimmed, "" if kind in NUMBER else f"{kind} expected, digits found")
    try:
        value = _json(trimmed)
    except ValueError:
        return Read(text, f"{kind} expected, but the value is not JSON; it is passed as text")
    found = kind_of(value)
    return Read(value, "" if found in allowed else f"{kind} expected, {found} found")


def _json(text: str) -> Any:
    """Strict JSON. Raises ValueError for anything else, and for what is nested too deep to be read."""
    try:
        return _numbers_as_written(json_text.parse(text))
    except RecursionError:
        raise ValueError("nested too deep") from None


def _numbers_as_written(value: Any) -> Any:
    """1e3 and 1000.0 are the number 1000. A number that no float can hold is not one that could be sent on."""
    if isinstance(value, float):
        if isinf(value):
            raise ValueError("out of range")
        return int(value) if value.is_integer() and abs(value) < WHOLE_BELOW else value
    if isinstance(value, list):
        return [_numbers_as_written(item) for item in value]
    if isinstance(value, dict):
        return {key: _numbers_as_written(item) for key, item in value.items()}
    return value


def _unclear(kinds: frozenset[str]) -> str:
    return f"allows {', '.join(kind for kind in KINDS if kind in kinds)}" if kinds else "could not be read"
