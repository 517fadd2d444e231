"""Deltas into events and blocks, for every format that has blocks of its own (native mode).

In: one answer's deltas, in order. Out: for each, the events a caller sees. HANDLERS, at the end, says which method
takes which delta. Blocks are numbered as the provider numbers them; a piece of a block that never began begins it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Callable, Final

from ..errors import MembraneError
from ..values.base import Json
from ..values.content import Block, RedactedThinking, Text, Thinking, ToolUse
from ..values.deltas import (
    AnswerHead,
    BlockEnd,
    BlockStart,
    Delta,
    Finished,
    InputDelta,
    ModelNamed,
    SignatureDelta,
    TextDelta,
    ThinkingDelta,
    Unknown,
    UsageReported,
)
from ..values.events import AnyEvent, BlockEvent, BlockInfo, BlockSeen, ChunkMeta, Tokens
from ..wire.json_text import parse

PIECES_BEFORE_JOINING: Final = 512


class PieceBuffer:
    """Text gathered piece by piece: linear in time, and small pieces do not stay in memory as objects of their own."""

    __slots__ = ("_joined", "_pieces")

    def __init__(self) -> None:
        self._joined: Final[list[str]] = []
        self._pieces: Final[list[str]] = []

    def add(self, piece: str) -> None:
        self._pieces.append(piece)
        if len(self._pieces) >= PIECES_BEFORE_JOINING:
            self._joined.append("".join(self._pieces))
            self._pieces.clear()

    def text(self) -> str:
        return "".join(self._joined) + "".join(self._pieces)


class AnswerRecord:
    """What an answer said beside its blocks: head, model, counts, end."""

    def __init__(self) -> None:
        self.head: AnswerHead | None = None
        self.model: str | None = None
        self.counts: dict[str, Any] = {}
        self.finished: Finished | None = None
        self.unknown: list[Unknown] = []
        self.unclosed_tool_block = False  # of a transcript that ends inside a call

    def forget(self) -> None:
        """The answer broke off before it had any content, and another one takes its place."""
        self.head, self.model, self.finished = None, None, None
        self.counts.clear()
        self.unknown.clear()

    def answer_head(self, delta: AnswerHead) -> None:
        self.head = delta

    def model_named(self, delta: ModelNamed) -> None:
        self.model = delta.model

    def usage_reported(self, delta: UsageReported) -> None:
        self.counts.update(delta.counts)

    def finish(self, delta: Finished) -> None:
        self.finished = delta

    def note_unclosed_tool_block(self) -> None:
        self.unclosed_tool_block = True

    def not_known(self, delta: Unknown) -> None:
        self.unknown.append(delta)


class _OpenBlock:
    """A block whose end has not come. `meta` is made once and goes out with each of its pieces."""

    __slots__ = ("add", "buffer", "meta", "signature", "start")

    def __init__(self, index: int, start: Block) -> None:
        self.start: Final = start
        self.meta: Final = _meta(index, start)
        self.buffer: Final = PieceBuffer()
        self.add: Final = self.buffer.add
        self.signature: Final = PieceBuffer()

    def block(self) -> Block:
        """What the start said plus what has come since."""
        finish = FINISHERS.get(type(self.start), _as_started)
        block: Block = finish(self.start, self.buffer.text(), self.signature.text())
        return block


class NativeAssembler:
    """tool_names: names as sent -> as declared, to give each call the name its tool has."""

    def __init__(self, tool_names: Mapping[str, str]) -> None:
        self.record: Final = AnswerRecord()
        self._tool_names: Final = tool_names
        self._open: Final[dict[int, _OpenBlock]] = {}
        self._whole: Final[dict[int, Block]] = {}

    def add(self, delta: Delta) -> Sequence[AnyEvent]:
        handler = HANDLERS.get(type(delta))
        if handler is None:
            raise MembraneError("unknown", f"the adapter yielded a {type(delta).__name__}; expected a Delta")
        return handler(self, delta)

    def end(self) -> Sequence[AnyEvent]:
        events: list[AnyEvent] = []
        for index in sorted(self._open):
            events.extend(self.block_end(BlockEnd(index)))
        return events

    def content(self) -> list[Block]:
        blocks = {**self._whole, **{index: opened.block() for index, opened in self._open.items()}}
        return [blocks[index] for index in sorted(blocks)]

    def block_start(self, delta: BlockStart) -> Sequence[AnyEvent]:
        block = self._named(delta.block)
        self._open[delta.index] = _OpenBlock(delta.index, block)
        return (BlockSeen(BlockEvent("block_start", delta.index, BlockInfo(_event_type(block))), block),)

    def text(self, delta: TextDelta) -> Sequence[AnyEvent]:
        opened = self._open.get(delta.index)
        if opened is None:
            return self._begun(delta, Text(""))
        opened.add(delta.text)
        return (Tokens(delta.text, opened.meta),)

    def thinking(self, delta: ThinkingDelta) -> Sequence[AnyEvent]:
        opened = self._open.get(delta.index)
        if opened is None:
            return self._begun(delta, Thinking(""))
        opened.add(delta.text)
        return (Tokens(delta.text, opened.meta),)

    def input(self, delta: InputDelta) -> Sequence[AnyEvent]:
        opened = self._open.get(delta.index)
        if opened is None:
            return ()  # arguments of no call: there is no id to answer to
        opened.add(delta.text)
        return (Tokens(delta.text, opened.meta),)

    def signature(self, delta: SignatureDelta) -> Sequence[AnyEvent]:
        opened = self._open.get(delta.index)
        if opened is not None and isinstance(opened.start, Thinking):
            opened.signature.add(delta.signature)
        return ()

    def block_end(self, delta: BlockEnd) -> Sequence[AnyEvent]:
        opened = self._open.pop(delta.index, None)
        if opened is None:
            return self._restated(delta)
        block = opened.block()
        if delta.raw_item is not None:
            block = with_raw_item(block, delta.raw_item, delta.raw_format)
        self._whole[delta.index] = block
        return (BlockSeen(BlockEvent("block_complete", delta.index, _info(block)), block),)

    def _restated(self, delta: BlockEnd) -> Sequence[AnyEvent]:
        """The item of a whole block may be stated once more where an answer ends: the later one counts."""
        if delta.index in self._whole and delta.raw_item is not None:
            self._whole[delta.index] = with_raw_item(self._whole[delta.index], delta.raw_item, delta.raw_format)
        return ()

    def _begun(self, delta: Any, block: Block) -> Sequence[AnyEvent]:
        """Begin block `delta.index` as `block`, then take the delta."""
        return [*self.block_start(BlockStart(delta.index, block)), *self.add(delta)]

    def _named(self, block: Any) -> Any:
        """The block, a call under its declared name."""
        if isinstance(block, ToolUse) and block.name in self._tool_names:
            return ToolUse(**{**vars(block), "name": self._tool_names[block.name]})
        return block


def _meta(index: int, block: Block) -> ChunkMeta:
    if isinstance(block, ToolUse):
        return ChunkMeta("tool_call", index, tool_id=block.id, tool_name=block.name, tool_call_part="input")
    return ChunkMeta(_event_type(block), index)


def _event_type(block: Block) -> str:
    """text, thinking or tool_call; a carrier has the type of what it carries."""
    if isinstance(block, Text) and block.is_carrier and isinstance(block.raw_item, dict):
        return str(block.raw_item.get("type", "text"))
    return EVENT_TYPES.get(type(block), block.type)


def _info(block: Block) -> BlockInfo:
    if isinstance(block, ToolUse):
        return BlockInfo("tool_call", tool_id=block.id, tool_name=block.name, input=block.input)
    if isinstance(block, Text):
        return BlockInfo(_event_type(block), content=block.text)
    return BlockInfo(_event_type(block), content=block.thinking if isinstance(block, Thinking) else "")


def _text_block(start: Any, text: str, signature: str) -> Block:
    return Text(**{**vars(start), "text": start.text + text})


def _thinking_block(start: Any, text: str, signature: str) -> Block:
    signed = (start.signature or "") + signature
    return Thinking(**{**vars(start), "thinking": start.thinking + text, "signature": signed or None})


def _tool_block(start: Any, text: str, signature: str) -> Block:
    """Arguments that are not complete JSON are kept as they came; a call without arguments has those of its start."""
    return ToolUse(**{**vars(start), **(arguments(text) if text.strip() else {})})


def arguments(text: str) -> dict[str, Json]:
    """Fields of a call whose arguments came as `text`: `input`, or `unparseable_input` beside an empty one."""
    try:
        value = parse(text)
    except (ValueError, RecursionError):
        return {"input": {}, "unparseable_input": text}
    return {"input": {} if value is None else value}


def with_raw_item(block: Block, raw_item: Json, raw_format: str | None) -> Block:
    """A copy of the block that carries the provider's own item."""
    return type(block)(**{**vars(block), "raw_item": raw_item, "raw_format": raw_format})


def _as_started(start: Any, text: str, signature: str) -> Any:
    return start


FINISHERS: Final[dict[type, Callable[[Any, str, str], Any]]] = {
    Text: _text_block,
    Thinking: _thinking_block,
    ToolUse: _tool_block,
}
EVENT_TYPES: Final[dict[type, str]] = {ToolUse: "tool_call", RedactedThinking: "thinking"}


def _noting(note: Callable[[AnswerRecord, Any], None]) -> Callable[[NativeAssembler, Any], Sequence[AnyEvent]]:
    """The handler of a delta that is only kept: no event says so."""

    def handler(assembler: NativeAssembler, delta: Delta) -> Sequence[AnyEvent]:
        note(assembler.record, delta)
        return ()

    return handler


NOTES: Final[dict[type[Delta], Callable[[AnswerRecord, Any], None]]] = {
    AnswerHead: AnswerRecord.answer_head,
    ModelNamed: AnswerRecord.model_named,
    UsageReported: AnswerRecord.usage_reported,
    Finished: AnswerRecord.finish,
    Unknown: AnswerRecord.not_known,
}

HANDLERS: Final[dict[type[Delta], Callable[[NativeAssembler, Any], Sequence[AnyEvent]]]] = {
    BlockStart: NativeAssembler.block_start,
    TextDelta: NativeAssembler.text,
    ThinkingDelta: NativeAssembler.thinking,
    InputDelta: NativeAssembler.input,
    SignatureDelta: NativeAssembler.signature,
    BlockEnd: NativeAssembler.block_end,
    **{kind: _noting(note) for kind, note in NOTES.items()},
}
