"""The JSON edge: compact UTF-8 out, parsed values in, and no lone surrogate in either.

A lone surrogate (half of a UTF-16 pair) is not a character: UTF-8 cannot hold it, and a str that holds one cannot be
printed or stored. It becomes U+FFFD in every outgoing body and in every incoming string.
"""

from __future__ import annotations

import json
import re

from ..errors import MembraneError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

# json.loads makes a surrogate only of an escape from \ud800 to \udfff.
SURROGATE_ESCAPE: Final = re.compile(r"\\u[dD][89a-fA-F]")
SURROGATE: Final = re.compile("[\ud800-\udfff]")


def encode(value: Any) -> bytes:
    """Compact JSON in UTF-8, keys in the order they have. Raises MembraneError for NaN, infinities, foreign types."""
    return compact(value).encode("utf-8")


def compact(value: Any) -> str:
    """The same as text."""
    return _text(ENCODER, value)


def canonical(value: Any) -> str:
    """The same with the keys of every object in order: one text for all that mean the same, to take a hash of."""
    return _text(SORTING_ENCODER, value)


def _text(encoder: json.JSONEncoder, value: Any) -> str:
    try:
        text = encoder.encode(value)
    except (TypeError, ValueError, RecursionError) as exc:
        raise MembraneError("invalid_request", f"the request is not JSON: {exc}; expected only JSON values") from exc
    return whole_characters(text)


def parse(text: str) -> Any:
    """json.loads, strictly (no NaN, no Infinity). Raises ValueError for anything else that is not JSON."""
    value = DECODER.decode(text)
    # One character is found far faster than two, and the longest answers are numbers, without any escape.
    return _whole(value) if "\\" in text and "\\u" in text and SURROGATE_ESCAPE.search(text) else value


def whole_characters(text: str) -> str:
    """Halves that stand together are joined, a half that stands alone becomes U+FFFD."""
    if text.isascii() or SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return whole_characters(value)
    if isinstance(value, dict):
        return {whole_characters(key): _whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


# Made once: json.loads and json.dumps build theirs anew for each call that names an option.
ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
SORTING_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, sort_keys=True)
DECODER: Final = json.JSONDecoder(parse_constant=_refuse_constant)
