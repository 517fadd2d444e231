"""JSON values as the schema language sees them: of what kind one is, when two are equal, how one is told in a message.

Python and JSON disagree on three points, and all three are settled here: True is not 1, 1.0 is an integer, and NaN and
the infinities are no values at all.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Iterator
from typing import Any, Final, NamedTuple

SHOWN_CHARACTERS: Final = 80  # of a string, in a violation


class Violation(NamedTuple):
    """path: a JSON Pointer into the value, "" for the whole. message: what was expected there, and what was found."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path or 'the whole'}: {self.message}"


class Place(NamedTuple):
    """Where in a value we are. The pointer is written out only when somebody asks."""

    parent: Place | None
    key: str | int
    depth: int

    def inner(self, key: str | int) -> Place:
        return Place(self, key, self.depth + 1)

    def pointer(self) -> str:
        return "".join(reversed([f"/{escaped(place.key)}" for place in self._up()]))

    def _up(self) -> Iterator[Place]:
        place = self
        while place.parent is not None:
            yield place
            place = place.parent


ROOT: Final = Place(None, "", 0)


def escaped(key: str | int) -> str:
    """One step of a JSON Pointer. RFC 6901, 3."""
    return str(key).replace("~", "~0").replace("/", "~1")


def kind_of(value: Any) -> str | None:
    """The JSON type of `value`, whole numbers being "number" too; None for what JSON cannot hold."""
    kind = KINDS.get(type(value)) or next((kind for cls, kind in KINDS.items() if isinstance(value, cls)), None)
    return None if kind == "number" and not is_finite(value) else kind


def is_integer(value: Any) -> bool:
    """1.0 is one. JSON Schema 2020-12, Core 4.2.3: mathematical equality, whatever the representation."""
    return kind_of(value) == "number" and (not isinstance(value, float) or value.is_integer())


def is_finite(value: float) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def equality_key(value: Any) -> Hashable:
    """Equal for values that are equal in JSON, and for no others; hashable: many are compared in linear time."""
    if isinstance(value, bool):
        return (bool, value)  # else True would be found among the ones
    if isinstance(value, list):
        return (list, tuple(map(equality_key, value)))
    if isinstance(value, dict):
        return (dict, frozenset(zip(value, map(equality_key, value.values()))))
    return value  # type: ignore[no-any-return]


def told(value: Any) -> str:
    """A value in a message, with its kind: short, and at the same cost for a large one."""
    kind = kind_of(value)
    if kind == "number":
        return f"{'integer' if is_integer(value) else 'number'} {number_text(value)}"
    return f"string {quoted(value)}" if kind == "string" else briefly(value)


def briefly(value: Any) -> str:
    """A scalar as JSON writes it, the size of anything larger."""
    kind = kind_of(value)
    if kind == "object":
        return f"an object with {counted(len(value), 'property', 'properties')}"
    if kind == "array":
        return f"an array of {counted(len(value), 'item', 'items')}"
    if kind == "string":
        return quoted(value)
    if kind == "number":
        return number_text(value)
    return json.dumps(value) if kind else f"{type(value).__name__}, which is not JSON"


def quoted(text: str) -> str:
    """In JSON's own quotation marks, cut after 80 characters."""
    written = json.dumps(text[:SHOWN_CHARACTERS], ensure_ascii=False)
    return written + "..." if len(text) > SHOWN_CHARACTERS else written


def number_text(value: float) -> str:
    """Large ones by their size: Python refuses to write out a whole number of more than 4,300 digits."""
    if isinstance(value, int) and value.bit_length() > 4 * SHOWN_CHARACTERS:
        return f"of {value.bit_length()} bits"
    return json.dumps(value)


def counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


# bool stands before int: where no exact type is found, the first base that fits is taken.
KINDS: Final[dict[type, str]] = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    type(None): "null",
    int: "number",
    float: "number",
}
