"""JSON as ECMAScript's JSON.stringify writes it: the form that values have in a transcript's text.

    {"b": 1.0, "2": [None, 1e-7]}   ->   {"2":[null,1e-7],"b":1}

Transcripts were first written there, and a model reads its own earlier calls best as it wrote them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, Final

from ..errors import MembraneError
from ..values.base import Json
from ..wire.json_text import ENCODER

# ECMA-262, 6.1.7 "The Object Type": an array index is a canonical numeric string below 2^32 - 1.
ARRAY_INDEX_END: Final = 2**32 - 1
LONGEST_ARRAY_INDEX: Final = 10


def stringify(value: Json) -> str:
    """`value` on one line, without spaces. Raises MembraneError for what is no JSON value, and for endless nesting."""
    pieces: list[str] = []
    try:
        _write(value, pieces.append)
    except (TypeError, ValueError, RecursionError) as exc:
        raise MembraneError("invalid_request", f"a tool's value is not JSON: {exc}; expected only JSON values") from exc
    return "".join(pieces)


def ordered(fields: Mapping[str, Json]) -> list[tuple[str, Json]]:
    """The fields in the order ECMAScript gives them: array indexes first, ascending, then the rest as inserted."""
    # ECMA-262, 10.1.11.1 "OrdinaryOwnPropertyKeys"
    rest = [item for item in fields.items() if not _is_array_index(item[0])]
    if len(rest) == len(fields):
        return rest
    return [*sorted((item for item in fields.items() if _is_array_index(item[0])), key=_index), *rest]


def _write(value: Json, add: Callable[[str], object]) -> None:
    if isinstance(value, dict):
        _write_object(value, add)
    elif isinstance(value, (list, tuple)):
        _write_array(value, add)
    elif isinstance(value, float):
        add(number(value))
    else:
        add(ENCODER.encode(value))


def _write_object(value: Mapping[Any, Json], add: Callable[[str], object]) -> None:
    separator = "{"
    for key, item in ordered({key if isinstance(key, str) else stringify(key): item for key, item in value.items()}):
        add(f"{separator}{ENCODER.encode(key)}:")
        _write(item, add)
        separator = ","
    add("{}" if separator == "{" else "}")


def _write_array(value: list[Json] | tuple[Json, ...], add: Callable[[str], object]) -> None:
    separator = "["
    for item in value:
        add(separator)
        _write(item, add)
        separator = ","
    add("[]" if separator == "[" else "]")


def number(value: float) -> str:
    """A float. Python's shortest digits are ECMAScript's too; what differs is where the point and the exponent go."""
    # ECMA-262, 6.1.6.1.20 "Number::toString": digits as they are from 1e-6 up to 1e21, an exponent outside.
    if not isfinite(value):
        return "null"
    text = repr(value)
    mantissa, found, exponent = text.partition("e")
    if not found:
        return "0" if value == 0 else text[:-2] if text.endswith(".0") else text
    sign, digits, power = "-" if value < 0 else "", mantissa.lstrip("-").replace(".", ""), int(exponent)
    if 0 <= power < 21:
        return sign + digits.ljust(power + 1, "0")
    if -7 < power < 0:
        return f"{sign}0.{'0' * (-power - 1)}{digits}"
    return f"{mantissa}e{power:+d}"


def _is_array_index(key: str) -> bool:
    digits = len(key) <= LONGEST_ARRAY_INDEX and key.isascii() and key.isdigit()
    return digits and str(int(key)) == key and int(key) < ARRAY_INDEX_END


def _index(item: tuple[str, Json]) -> int:
    return int(item[0])
