"""Output items of the Responses API as blocks: what an item is, once it is announced and once it is whole.

An item's text comes in pieces, or with its end, or both; OpenItem gives each character of it once, in order. One item
is one block and carries the item. KINDS, at the end, says for each type of item what its block is and where its text
stands; a type that is not there is kept whole. Source: platform.openai.com/docs/api-reference/responses/object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ..formatters.openai_responses import CUSTOM_CALL, FORMAT
from ..values.base import Json
from ..values.content import Block, GeneratedImage, RedactedThinking, Text, Thinking, ToolUse
from ..values.deltas import BlockEnd, BlockStart, Delta, InputDelta, TextDelta, ThinkingDelta
from ..wire.json_text import compact
from .base import string, string_or_none


class OpenItem:
    """An item that is being streamed: what of its text has been given out, and which of its parts is open.

    Pieces of a later part are left to the item's end, so that a text is never out of order.
    """

    __slots__ = ("_begun", "_gap", "_index", "_part", "_said", "_source", "kind")

    def __init__(self, index: int, kind: Kind) -> None:
        self.kind: Final = kind
        self._index: Final = index
        self._begun = False
        self._said = 0
        self._part = 0
        self._gap = ""
        self._source: str | None = None

    def start(self, block: Block | None) -> Sequence[Delta]:
        if block is None:
            return ()
        self._begun = True
        return (BlockStart(self._index, block), *self._delta(self.kind.opening))

    def piece(self, text: str, part: int, source: str) -> Sequence[Delta]:
        """Of two sources of one text (a summary and what it sums up) the first counts."""
        self._source = self._source or source
        if not text or source != self._source or part != self._part or self.kind.delta is None:
            return ()
        deltas = [] if self._begun or self.kind.spoken is None else [*self.start(self.kind.spoken(""))]
        return [*deltas, *self._say(text)] if self._begun else ()

    def part_over(self, part: Any) -> None:
        if part == self._part:
            self._part += 1
            self._gap += self.kind.between

    def end(self, item: Json) -> Sequence[Delta]:
        """What has not been said of the whole item, and its end."""
        text = self.kind.text(item, self._source)
        deltas = [] if self._begun else [*self.start(self.kind.whole(item, self._index))]
        self._gap = ""
        rest = text[self._said :]
        return [*deltas, *(self._say(rest) if rest else ()), *self._closed(), BlockEnd(self._index, item, FORMAT)]

    def broken_off(self) -> Sequence[Delta]:
        """The answer ended without this item's end: it has no item to go back as."""
        return (*self._closed(), BlockEnd(self._index)) if self._begun else ()

    def _say(self, text: str) -> Sequence[Delta]:
        text, self._gap = self._gap + text, ""
        self._said += len(text)
        return self._delta(self.kind.written(text))

    def _closed(self) -> Sequence[Delta]:
        return self._delta(self.kind.closing)

    def _delta(self, text: str) -> Sequence[Delta]:
        return (self.kind.delta(self._index, text),) if text and self.kind.delta is not None else ()


class Kind(NamedTuple):
    """How items of a type become blocks.

    announced: the block of an item that begins, None where only its end tells what it is; whole: of one that is
    whole, without its text. spoken: what an item is that was not announced. text: an item's text (source: which of
    two); between: what stands between its parts. delta: what pieces of it are; written: a piece as it goes into one,
    opening and closing before and behind them.
    """

    announced: Callable[[Json, int], Block | None]
    whole: Callable[[Json, int], Block]
    text: Callable[[Json, str | None], str]
    delta: Callable[[int, str], Delta] | None = None
    spoken: Callable[[str], Block] | None = None
    between: str = ""
    opening: str = ""
    closing: str = ""
    written: Callable[[str], str] = str


def no_block(item: Json, index: int) -> None:
    """Its end will tell."""


def no_text(item: Json, source: str | None) -> str:
    return ""


def text_block(item: Json, index: int) -> Block:
    return Text("")


def spoken_text(item: Json, source: str | None) -> str:
    """All texts of a message; its refusals are told apart from it."""
    return "".join(string(part["text"]) for part in item.get("content") or () if part.get("type") == "output_text")


def refusal_of(item: Json) -> str:
    parts = item.get("content") or () if item.get("type") == "message" else ()
    return "".join(string(part["refusal"]) for part in parts if part.get("type") == "refusal")


def reasoning_block(item: Json, index: int) -> Block:
    """With a text it is thinking that can be read; without one, what is encrypted stands for it."""
    encrypted = string_or_none(item.get("encrypted_content"))
    return Thinking("") if encrypted is None or thought(item, None) else RedactedThinking(encrypted)


def thought(item: Json, source: str | None) -> str:
    """The summaries, or the reasoning itself where there are none."""
    parts = item.get(source or "summary") or item.get("content") or ()
    return "\n".join(string(part.get("text") or "") for part in parts)


def call_block(item: Json, index: int) -> Block:
    return ToolUse(call_id(item, index), string(item["name"]))


def announced_call(item: Json, index: int) -> Block | None:
    return call_block(item, index) if item.get("name") else None


def call_id(item: Json, index: int) -> str:
    return string(item.get("call_id") or item.get("id") or f"call_{index}")


def arguments_text(item: Json, source: str | None) -> str:
    return string(item.get("arguments") or "")


def custom_text(item: Json, source: str | None) -> str:
    return string(item.get("input") or "")


def in_json_string(text: str) -> str:
    """A piece of a custom tool's input as a piece of the JSON text that arguments are streamed as."""
    return compact(text)[1:-1]


def image_block(item: Json, index: int) -> Block:
    """The image, once there is one."""
    result = string_or_none(item.get("result"))
    if not result:
        return carrier(item, index)
    return GeneratedImage(result, f"image/{item.get('output_format') or 'png'}")


def carrier(item: Json, index: int) -> Block:
    """A server tool's call, a compaction, or an item of a later version: kept whole."""
    return Text("", raw_item=item, raw_format=FORMAT)


CALLS: Final = ("function_call", CUSTOM_CALL)
KEPT_WHOLE: Final = Kind(carrier, carrier, no_text)
KINDS: Final[Mapping[str, Kind]] = {
    "message": Kind(text_block, text_block, spoken_text, TextDelta, spoken=Text),
    "reasoning": Kind(no_block, reasoning_block, thought, ThinkingDelta, spoken=Thinking, between="\n"),
    "function_call": Kind(announced_call, call_block, arguments_text, InputDelta),
    CUSTOM_CALL: Kind(
        announced_call, call_block, custom_text, InputDelta, opening='"', closing='"', written=in_json_string
    ),
    "image_generation_call": Kind(no_block, image_block, no_text),
}
