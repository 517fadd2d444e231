"""Gemini's function calls: ids for those that come without, and the arguments of those that come in pieces."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ..values.base import Json
from ..values.deltas import BlockEnd, Delta, InputDelta
from ..wire.json_pieces import ObjectText, steps_of
from ..wire.json_text import compact
from .base import string
from .gemini_parts import FORMAT

CALL_FIELDS: Final = ("name", "args", "partialArgs", "willContinue")
PLAIN_ID: Final = re.compile(r"[A-Za-z0-9_-]+")

# The field that holds a fragment's value -> the value (Vertex AI, PartialArg).
FRAGMENT_VALUES: Final[Mapping[str, Callable[[Any], Any]]] = {
    "stringValue": string,
    "numberValue": lambda value: value,
    "boolValue": lambda value: value,
    "nullValue": lambda value: None,
}


class CallIds:
    """The ids of one answer's calls: all different, and the same each time the answer is read."""

    def __init__(self) -> None:
        self._taken: Final[set[str]] = set()

    def of(self, call: Json, *, answer: Any, index: int) -> str:
        """The call's own id, else one made of those of its answer and block, which no other answer uses."""
        named = f"call_{answer}_{index}" if isinstance(answer, str) and PLAIN_ID.fullmatch(answer) else f"call_{index}"
        given = string(call.get("id") or "") or named
        id, number = given, 1
        while id in self._taken:
            number += 1
            id = f"{given}_{number}"
        self._taken.add(id)
        return id


class OpenCall:
    """A function call whose arguments come in pieces, or whole."""

    def __init__(self, index: int) -> None:
        self._index: Final = index
        self._text: Final = ObjectText()
        self._begun = False
        self._item: dict[str, Any] = {}

    def take(self, part: Json) -> Sequence[Delta]:
        call = part["functionCall"]
        own = {key: value for key, value in call.items() if key not in CALL_FIELDS}
        if own:
            self._item["functionCall"] = {**self._item.get("functionCall", {}), **own}
        self._item.update({key: value for key, value in part.items() if key != "functionCall" and value})
        pieces = [compact(call["args"])] if call.get("args") else []
        if call.get("willContinue") or call.get("partialArgs"):
            pieces += self._pieces(call.get("partialArgs") or ())
        text = "".join(pieces)
        return (InputDelta(self._index, text),) if text else ()

    def _pieces(self, fragments: Sequence[Json]) -> list[str]:
        """The text that argument fragments add; the brace comes at once, so that a call that breaks off shows it."""
        pieces = [] if self._begun else [self._text.begin()]
        self._begun = True
        for fragment in fragments:
            for field, value_of in FRAGMENT_VALUES.items():
                if field in fragment:
                    path, continues = steps_of(string(fragment["jsonPath"])), bool(fragment.get("willContinue"))
                    pieces.append(self._text.add(path, value_of(fragment[field]), continues=continues))
        return pieces

    def end(self) -> Sequence[Delta]:
        text = self._text.end() if self._begun else ""
        return [*([InputDelta(self._index, text)] if text else []), *self.cut()]

    def cut(self) -> Sequence[Delta]:
        """Nothing closes the text: the arguments are not complete."""
        return (BlockEnd(self._index, self._item, FORMAT) if self._item else BlockEnd(self._index),)
