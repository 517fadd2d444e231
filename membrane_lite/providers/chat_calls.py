"""Tool calls of chat completions, streamed in fragments: which call a fragment belongs to, and what it adds.

Every server cuts them in its own way; call_of says how a fragment finds its call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ..values.base import Json
from ..values.content import ToolUse
from ..values.deltas import BlockEnd, BlockStart, Delta, InputDelta
from ..wire.json_text import compact
from .base import string

FORMAT: Final = "openai-chat"
OWN_CALL_FIELDS: Final = ("index", "id", "type", "function")


def call_of(fragment: Json, calls: Sequence[OpenCall]) -> OpenCall | None:
    """The call a fragment goes on with; None begins one.

    Its index says which, else its id, else it goes on where the last one stopped. Ollama numbers parallel calls all 0,
    each with its id.
    """
    index, id = fragment.get("index"), fragment.get("id")
    candidates = [call for call in calls if index is None or call.index == index]
    if id:
        candidates = [call for call in candidates if call.given_id in ("", id)]
    elif index is None and (fragment.get("function") or {}).get("name"):
        return None  # neither index nor id: a name begins the next call
    return candidates[-1] if candidates else None


class OpenCall:
    """A tool call that is being streamed. It begins once its name is known; what comes before is held back."""

    def __init__(self, block: int, index: int | None, given_id: str) -> None:
        self.index: Final = index
        self.given_id = given_id
        self.id = ""
        self._block: Final = block
        self._begun = False
        self._extra: dict[str, Any] = {}

    def take(self, function: Json, fragment: Json, taken: Sequence[str]) -> Sequence[Delta]:
        self.given_id = self.given_id or string(fragment.get("id") or "")
        self._extra.update({key: value for key, value in fragment.items() if key not in OWN_CALL_FIELDS and value})
        deltas: list[Delta] = []
        if not self._begun and (function.get("name") or function.get("arguments")):
            self._begun = True
            self.id = unused(self.given_id or f"call_{self._block}", taken)
            deltas.append(BlockStart(self._block, ToolUse(self.id, string(function.get("name") or ""))))
        arguments = function.get("arguments")
        if arguments:  # Ollama and Gemini's endpoint may give an object where the dialect has its text
            text = arguments if isinstance(arguments, str) else compact(arguments)
            deltas.append(InputDelta(self._block, text))
        return deltas

    def end(self) -> Sequence[Delta]:
        if not self._begun:
            return ()
        return (BlockEnd(self._block, self._extra, FORMAT) if self._extra else BlockEnd(self._block),)


def unused(id: str, taken: Sequence[str]) -> str:
    """`id`, or with a number behind it where another call of the answer has it."""
    candidate, number = id, 1
    while candidate in taken:
        number += 1
        candidate = f"{id}_{number}"
    return candidate
