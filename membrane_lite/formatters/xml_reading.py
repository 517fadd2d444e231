"""A transcript's text in, its blocks out: text, thinking, calls and results, in order, and what is to be said of them.

    between blocks            text, trimmed; a blank one is dropped
    thinking                  as it stands between its tags
    calls, results            read by xml_calls and xml_results; a block without any stays in the text
    calls without a closer    calls too, if the next tag opens an invoke: xml_calls says how
    thinking without closer   thinking up to the next block or the end, for a reader of text should see no tag
    others without a closer   text

Which tags belong together is decided in xml_blocks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from ..values.content import Block, Text, Thinking, ToolUse
from ..values.tools import Tool
from .xml_blocks import Span, closed_blocks, inside, outside, unanswered_calls, unfinished_calls, whole
from .xml_calls import Call, read_calls, read_unfinished
from .xml_markup import Marked, Tag, marked
from .xml_results import Unclaimed, read_results
from .xml_signatures import Signatures
from .xml_stream import TagScanner
from .xml_tags import ANY_PREFIX, BLOCK_TYPES, CALLS, RESULTS, SPACE, THINKING, WHITESPACE, is_blank


class ParsedText(NamedTuple):
    """refusals: by the id of a refused call, one sentence for the model. warnings: doubts, for the log.

    pending: ids of the calls of the last block of calls that no results directly follow.
    """

    blocks: list[Block]
    refusals: Mapping[str, str]
    warnings: list[str]
    unclosed_tool_block: bool
    pending: list[str]


class ParsedCalls(NamedTuple):
    """full_match: the block of calls. before_text, after_text: the text around it, untrimmed."""

    calls: list[ToolUse]
    before_text: str
    after_text: str
    full_match: str


def parse_text(
    text: str,
    *,
    new_id: Callable[[], str],
    tools: Sequence[Tool] = (),
    start_inside: str | None = None,
    keep_open_thinking: bool = True,
) -> ParsedText:
    """The blocks of `text`; every call gets an id of new_id(), in order.

    tools: their schemas decide the types of values. start_inside: "thinking", "tool_call" or "tool_result", the block
    that is open where the text begins; its opener is imagined in front. keep_open_thinking=False: thinking without a
    closer stays text, with its tag, even an imagined one.
    """
    opener = OPENERS[start_inside] if start_inside else ""
    reading = _Reading(marked(opener + text), new_id=new_id, tools=tools, keep_open_thinking=keep_open_thinking)
    reading.read(from_=len(opener) if keep_open_thinking and start_inside != "thinking" else 0)
    return ParsedText(
        reading.blocks, reading.refusals, list(reading.warnings), reading.unfinished is not None, reading.pending()
    )


def parse_calls(text: str, *, new_id: Callable[[], str], tools: Sequence[Tool] = ()) -> ParsedCalls | None:
    """The last block of calls that no results directly follow, or None. One without any invoke gives no calls."""
    source = marked(text)
    span = unanswered_calls(source, closed_blocks(source.tags))
    if span is None:
        return None
    calls = read_calls(source, span, new_id=new_id, signatures=Signatures(tools))
    before, after = text[: source.tags[span.opener].start], text[source.tags[span.closer].end :]
    return ParsedCalls([call.use for call in calls], before, after, whole(source, span))


def has_tool_use(text: str) -> bool:
    """Whether calls are opened anywhere."""
    return CALLS_OPENED.search(text, 0, text.rfind(">") + 1) is not None


def has_unclosed_tool_block(text: str) -> bool:
    """Whether calls are opened more often than closed."""
    forms = [tag.form for tag in marked(text).tags if tag.name == CALLS]
    return forms.count("open") > forms.count("close")


def ends_with_partial_tool_block(text: str) -> bool:
    """The same, or whether the text ends inside a tag of calls."""
    return PARTIAL_TAG.search(text, text.rfind(">") + 1) is not None or has_unclosed_tool_block(text)


def has_unclosed_xml_block(text: str) -> bool:
    """Whether the text ends inside thinking, calls or results."""
    scanner = TagScanner()
    scanner.push(text)
    return any(scanner.depths)


class _Reading:
    """One text being read. `read` fills blocks, refusals and warnings."""

    def __init__(
        self, source: Marked, *, new_id: Callable[[], str], tools: Sequence[Tool], keep_open_thinking: bool
    ) -> None:
        self.blocks: Final[list[Block]] = []
        self.refusals: Final[dict[str, str]] = {}
        self.warnings: Final[dict[str, None]] = {}  # in order, each once
        self._source: Final = source
        self._new_id: Final = new_id
        self._signatures: Final = Signatures(tools)
        self._closed: Final = closed_blocks(source.tags)
        self.unfinished: Final = unfinished_calls(source.tags, self._closed)
        self._open_thinking: Final = self._unclosed_thinking() if keep_open_thinking else []
        self._unclaimed: Final = Unclaimed()
        self._ids: Final[dict[Span, list[str]]] = {}

    def read(self, *, from_: int) -> None:
        tags = self._source.tags
        end = len(self._source.text) if self.unfinished is None else tags[self.unfinished].start
        at = from_
        for span in self._closed:
            start = tags[span.opener].start
            if start > end:
                break
            blocks = READERS[span.name](self, span)
            if blocks:
                self._add_text(at, start)
                self.blocks.extend(blocks)
                at = tags[span.closer].end
        self._add_text(at, end)
        self.blocks.extend(self._unfinished_calls())

    def pending(self) -> list[str]:
        span = unanswered_calls(self._source, self._closed)
        return self._ids.get(span, []) if span else []

    def _unclosed_thinking(self) -> list[Tag]:
        """Openers, the last first."""
        tags = [self._source.tags[place] for place in outside(self._closed, len(self._source.tags))]
        return [tag for tag in reversed(tags) if tag.name == THINKING and tag.form == "open"]

    def _add_text(self, start: int, end: int) -> None:
        """The text between two blocks; from an opener of thinking on it is thinking. Blank ones are dropped."""
        opener = self._thinking_opener(end)
        visible = self._source.text[start : opener.start if opener else end].strip(WHITESPACE)
        thinking = self._source.text[opener.end : end] if opener else ""
        self.blocks.extend([Text(visible)] if visible else [])
        self.blocks.extend([Thinking(thinking)] if not is_blank(thinking) else [])

    def _thinking_opener(self, end: int) -> Tag | None:
        """The first unclosed one since the last block. Asked in the order of the text."""
        found: list[Tag] = []
        while self._open_thinking and self._open_thinking[-1].start < end:
            found.append(self._open_thinking.pop())
        return found[0] if found else None

    def _thinking(self, span: Span) -> Sequence[Block]:
        return [Thinking(inside(self._source, span))]

    def _calls(self, span: Span) -> Sequence[Block]:
        calls = read_calls(self._source, span, new_id=self._new_id, signatures=self._signatures)
        uses = self._noted(calls)
        self._ids[span] = [use.id for use in uses]
        return uses

    def _unfinished_calls(self) -> Sequence[Block]:
        if self.unfinished is None:
            return []
        return self._noted(
            read_unfinished(self._source, self.unfinished, new_id=self._new_id, signatures=self._signatures)
        )

    def _noted(self, calls: Sequence[Call]) -> list[ToolUse]:
        self.refusals.update((call.use.id, call.refusal) for call in calls if call.refusal)
        self.warnings.update((doubt, None) for call in calls for doubt in call.doubts)
        uses = [call.use for call in calls]
        self._unclaimed.add(uses)
        return uses

    def _results(self, span: Span) -> Sequence[Block]:
        raw_xml = whole(self._source, span)
        return read_results(inside(self._source, span), raw_xml=raw_xml, unclaimed=self._unclaimed)


READERS: Final[Mapping[str, Callable[[_Reading, Span], Sequence[Block]]]] = {
    THINKING: _Reading._thinking,
    CALLS: _Reading._calls,
    RESULTS: _Reading._results,
}

OPENERS: Final = {block_type: f"<{name}>" for name, block_type in BLOCK_TYPES.items()}

CALLS_OPENED: Final = re.compile(rf"<{ANY_PREFIX}{CALLS}(?:{SPACE}[^>]*)?>")
PARTIAL_TAG: Final = re.compile(rf"<{ANY_PREFIX}(?:{CALLS}|invoke|parameter)(?:{SPACE}|/?\Z)")
