"""One answer of a transcript: its deltas in, the events of the blocks it is written in out.

Text is looked through for stop sequences, then scanned for tags. What is no text (images, thinking that the provider
keeps apart, blocks of its own) is gathered as in native mode; thinking stands in the text too, between thinking tags,
so that the next request repeats it. The blocks come from the whole text, by xml_reading.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from ..resumption import FalseStop
from ..values.content import Block, RedactedThinking, Text, Thinking, ToolUse
from ..values.deltas import BlockEnd, BlockStart, Delta, Finished, TextDelta, ThinkingDelta
from ..values.events import AnyEvent, BlockEvent, BlockInfo, BlockSeen
from ..values.tools import Tool
from .assembly import AnswerRecord, NativeAssembler, PieceBuffer
from .stop_sequences import StopMatcher
from .xml_reading import ParsedText, parse_text
from .xml_stream import Depths, TagScanner
from .xml_tags import CALLS, CALLS_CLOSER, NAMESPACE, THINKING_CLOSER, THINKING_OPENER, WHITESPACE, is_blank

# Models write the tag in either spelling; only the plain one is among the stop sequences that are sent.
CALLS_CLOSERS: Final = (CALLS_CLOSER, f"</{NAMESPACE}{CALLS}>")
INVOKE_CLOSERS: Final = ("</invoke>", f"</{NAMESPACE}invoke>", "/>")

# Servers of the chat format and Gemini name no stop sequence, and say of one what they say of an end.
SAYS_NOTHING_OF_STOPS: Final = ("end_turn", "")


class Carried(NamedTuple):
    """What an answer begins with that goes on behind an accidental stop: its text, and the provider's own blocks.

    inside: the type of the block that the text begins in, None where it begins in none.
    """

    text: str
    provided: list[Block]
    inside: str | None


class XmlAssembler:
    """scanner: has seen all that stands before. stops: what ends the answer. baseline: the tags open in the prefill.

    new_ids: gives a fresh source of call ids, always the same ones.
    """

    def __init__(
        self,
        *,
        scanner: TagScanner,
        stops: StopMatcher,
        carried: Carried,
        tools: Sequence[Tool],
        new_ids: Callable[[], Callable[[], str]],
        baseline: Depths,
    ) -> None:
        self.scanner: Final = scanner
        self.carried: Final = carried
        self._stops: Final = stops
        self._tools: Final = tools
        self._new_ids: Final = new_ids
        self._baseline: Final = baseline
        self._inner: Final = NativeAssembler({})
        self._kept: Final = PieceBuffer()
        self._held = ""  # may be the beginning of a stop sequence
        self._thinking: int | None = None  # the provider's block whose thinking stands in the text, unclosed
        self._stop: str | None = None  # found on our side
        self._closed = False  # the stop was the end of a call block
        self._parsed: tuple[str, ParsedText] | None = None

    @property
    def record(self) -> AnswerRecord:
        return self._inner.record

    def add(self, delta: Delta) -> Sequence[AnyEvent]:
        if type(delta) is TextDelta:  # nearly all are
            return self._text(delta.text)
        handler = HANDLERS.get(type(delta))
        return self._beside(delta) if handler is None else handler(self, delta)

    def end(self) -> Sequence[AnyEvent]:
        """What was held back, the stop sequence where it closes something, then the calls that were read."""
        events = [*self._close_thinking(), *self._fed(self._held)]
        self._held = ""
        stop = self._closing_stop()
        self._closed = stop in CALLS_CLOSERS
        events += self._fed(stop)
        events += self.scanner.flush()
        self._inner.end()
        if self._read().unclosed_tool_block:
            self.record.note_unclosed_tool_block()
        return events + self._call_events()

    def content(self) -> list[Block]:
        return with_provided(self._read().blocks, self.provided)

    @property
    def text(self) -> str:
        """What this answer wrote, up to its stop."""
        return self._kept.text() + self._held

    @property
    def provided(self) -> list[Block]:
        return [*self.carried.provided, *self._inner.content()]

    @property
    def pending(self) -> Sequence[str]:
        """Ids of the calls whose results are waited for."""
        return self._read().pending if self._closed else ()

    def refusal(self, call_id: str) -> str:
        return self._read().refusals.get(call_id, "its arguments cannot be read")

    @property
    def warnings(self) -> Sequence[str]:
        return self._read().warnings

    def false_stop(self) -> FalseStop | None:
        """The stop, if it stands inside a block that the model opened and has not closed."""
        finished, open_ = self.record.finished, zip(self.scanner.depths, self._baseline)
        if finished is None or finished.stop_reason != "stop_sequence" or self.pending:
            return None
        return FalseStop(finished.stop_sequence, len(self.text)) if any(now > then for now, then in open_) else None

    @property
    def stop_left_out(self) -> str:
        """The stop sequence, "" where it is not known or stands in the text."""
        finished = self.record.finished
        return "" if self._closed or finished is None else finished.stop_sequence or ""

    # Text

    def _text(self, text: str) -> list[AnyEvent]:
        """The text up to a stop sequence. Inside a CDATA section a stop sequence is data."""
        if self._stop is not None:
            return []
        if self._thinking is not None:
            return [*self._close_thinking(), *self._text(text)]
        events: list[AnyEvent] = []
        text, self._held, at = self._held + text, "", 0
        stop = self._stops.first(text, 0)
        while stop is not None:
            events += self._fed(text[at : stop.start()])
            if not self.scanner.in_data:
                self._stop = stop.group()
                return events
            at = stop.start() + 1
            events += self._fed(text[at - 1 : at])
            stop = self._stops.first(text, at)
        rest = self._stops.partial(text, at)
        events += self._fed(text[at:rest])
        if self.scanner.in_data:
            events += self._fed(text[rest:])
        else:
            self._held = text[rest:]
        return events

    def _fed(self, text: str) -> list[AnyEvent]:
        if not text:
            return []
        self._kept.add(text)
        return self.scanner.feed(text)

    def _closing_stop(self) -> str:
        """The stop sequence, where it is a closing tag: providers leave it out, and something would stay open."""
        finished = self.record.finished
        stop = finished.stop_sequence if finished is not None and finished.stop_reason == "stop_sequence" else None
        if stop is None or self.scanner.in_data:
            return ""
        if stop in CALLS_CLOSERS:
            return stop if self.scanner.depths.function_calls else ""
        return stop if stop.startswith("</") and self.false_stop() is None else ""

    # Blocks beside the text

    def _started(self, delta: BlockStart) -> Sequence[AnyEvent]:
        block = delta.block
        if isinstance(block, Text) and not block.is_carrier:
            return self._text(block.text) if block.text else ()
        self._inner.add(delta)
        return self._think(delta.index, block.thinking) if isinstance(block, Thinking) else ()

    def _thought(self, delta: ThinkingDelta) -> Sequence[AnyEvent]:
        self._inner.add(delta)
        return self._think(delta.index, delta.text)

    def _ended(self, delta: BlockEnd) -> Sequence[AnyEvent]:
        self._inner.add(delta)
        return self._close_thinking() if delta.index == self._thinking else ()

    def _think(self, index: int, text: str) -> list[AnyEvent]:
        if self._stop is not None or not text:
            return []
        events = []
        if self._thinking != index:
            events = [*self._close_thinking(), *self._fed(self._held)]
            events += self._fed("" if self._has_thinking_opened() else THINKING_OPENER)
            self._held, self._thinking = "", index
        return [*events, *self._fed(text)]

    def _has_thinking_opened(self) -> bool:
        """The request has opened thinking, and nothing stands in it yet."""
        opened = self.carried.inside == "thinking" and self.scanner.depths.thinking > 0
        return opened and is_blank(self.carried.text + self._kept.text())

    def _close_thinking(self) -> list[AnyEvent]:
        if self._thinking is None:
            return []
        self._thinking = None
        return self._fed(THINKING_CLOSER + "\n")

    def _finished(self, delta: Finished) -> Sequence[AnyEvent]:
        """A server that did not see the stop, or does not tell, says why it ended; what counts is where it was."""
        if self._stop is None and delta.stop_reason in SAYS_NOTHING_OF_STOPS and self._ends_behind_a_call():
            self._stop = CALLS_CLOSER
        if self._stop is not None and delta.stop_reason != "refusal":
            delta = Finished(
                "stop_sequence",
                delta.provider_reason,
                stop_sequence=self._stop,
                raw=delta.raw,
                envelope=delta.envelope,
            )
        return self._beside(delta)

    def _ends_behind_a_call(self) -> bool:
        """In an open block of calls, right behind an invoke: only its closer can follow, and servers leave it out."""
        text = self.text.rstrip(WHITESPACE)
        if self.scanner.in_data or not text.endswith(INVOKE_CLOSERS) or not self._read().unclosed_tool_block:
            return False
        last = self._read().blocks[-1]
        return not text.endswith("/>") or (isinstance(last, ToolUse) and last.unparseable_input is None)

    def _beside(self, delta: Delta) -> Sequence[AnyEvent]:
        """Kept as in native mode; events tell only of the text."""
        self._inner.add(delta)
        return ()

    # Reading

    def _read(self) -> ParsedText:
        """The blocks of the whole text so far; read again only where there is more of it."""
        text = self.carried.text + self.text
        if self._parsed is None or text != self._parsed[0]:
            parsed = parse_text(text, new_id=self._new_ids(), tools=self._tools, start_inside=self.carried.inside)
            self._parsed = (text, parsed)
        return self._parsed[1]

    def _call_events(self) -> list[AnyEvent]:
        """The calls whose results are waited for, each told whole: the chunks told only their text."""
        events: list[AnyEvent] = []
        pending = frozenset(self.pending)
        for block in self._read().blocks if pending else ():
            if isinstance(block, ToolUse) and block.id in pending:
                info = BlockInfo("tool_call", tool_id=block.id, tool_name=block.name, input=block.input)
                events += whole_block(block, self.scanner.take_index(), info)
        return events


def whole_block(block: Block, index: int, info: BlockInfo) -> tuple[AnyEvent, AnyEvent]:
    """Its start and its end, one behind the other."""
    start = BlockInfo(info.type, tool_id=info.tool_id, tool_name=info.tool_name)
    return (
        BlockSeen(BlockEvent("block_start", index, start), block),
        BlockSeen(BlockEvent("block_complete", index, info), block),
    )


def with_provided(blocks: Iterable[Block], provided: Sequence[Block]) -> list[Block]:
    """The text's blocks and the provider's own.

    Thinking that stands in the text gets the signature of the provider's block of the same text. Other thinking of the
    provider's goes in front, where signed thinking must stand; everything else follows.
    """
    thoughts = [block for block in provided if isinstance(block, Thinking)]
    by_text: dict[str, deque[Thinking]] = {}
    for thought in thoughts:
        if thought.thinking:
            by_text.setdefault(thought.thinking.strip(WHITESPACE), deque()).append(thought)
    merged: list[Block] = []
    placed: set[int] = set()
    for block in blocks:
        same = by_text.get(block.thinking.strip(WHITESPACE)) if isinstance(block, Thinking) else None
        merged.append(same.popleft() if same else block)
        placed.add(id(merged[-1]))
    redacted = [block for block in provided if isinstance(block, RedactedThinking)]
    others = [block for block in provided if not isinstance(block, (Thinking, RedactedThinking))]
    return [*(thought for thought in thoughts if id(thought) not in placed), *redacted, *merged, *others]


HANDLERS: Final[dict[type[Delta], Callable[[XmlAssembler, Any], Sequence[AnyEvent]]]] = {
    BlockStart: XmlAssembler._started,
    ThinkingDelta: XmlAssembler._thought,
    BlockEnd: XmlAssembler._ended,
    Finished: XmlAssembler._finished,
}
