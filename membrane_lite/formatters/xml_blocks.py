"""The blocks that the tags of a text make: which tags belong together, and which blocks are left open or unanswered.

Blocks never overlap, the outermost closed one wins. An opener without a closer makes no block and contains nothing. A
closer of calls belongs to the opener nearest before it, so what calls hold is never a block of calls again; the others
nest. Thinking tags inside calls or results do not count outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .xml_markup import Marked, Tag
from .xml_tags import BLOCK_TYPES, CALLS, RESULTS, THINKING, is_blank


class Span(NamedTuple):
    """A closed block; opener and closer are places in the list of tags."""

    name: str
    opener: int
    closer: int


def whole(source: Marked, span: Span) -> str:
    return source.text[source.tags[span.opener].start : source.tags[span.closer].end]


def inside(source: Marked, span: Span) -> str:
    return source.text[source.tags[span.opener].end : source.tags[span.closer].start]


def closed_blocks(tags: Sequence[Tag]) -> list[Span]:
    """The outermost closed blocks, in order."""
    tools = _outermost(_pairs(tags, (index for index, tag in enumerate(tags) if tag.name in (CALLS, RESULTS))))
    thinking = _pairs(tags, (index for index in outside(tools, len(tags)) if tags[index].name == THINKING))
    return _outermost([*tools, *thinking])


def outside(spans: Sequence[Span], count: int) -> list[int]:
    """The places, of `count` tags, of those that stand in none of the spans."""
    found: list[int] = []
    at = 0
    for span in spans:
        found += range(at, span.opener)
        at = span.closer + 1
    return [*found, *range(at, count)]


def unfinished_calls(tags: Sequence[Tag], blocks: Sequence[Span]) -> int | None:
    """The place of the opener of calls that the text ends in. The next tag must open an invoke, else it is text."""
    for index in reversed(outside(blocks, len(tags))):
        if tags[index].name == CALLS:
            following = tags[index + 1 : index + 2]
            heads = [tag for tag in following if tag.name == "invoke" and tag.form != "close"]
            return index if heads and tags[index].form == "open" else None
    return None


def unanswered_calls(source: Marked, blocks: Sequence[Span]) -> Span | None:
    """The last block of calls that no opener of results directly follows, white space aside."""
    return next((span for span in reversed(blocks) if span.name == CALLS and not _is_answered(source, span)), None)


def _is_answered(source: Marked, span: Span) -> bool:
    following = source.tags[span.closer + 1 : span.closer + 2]
    return any(
        tag.name == RESULTS and tag.form == "open" and is_blank(source.text[source.tags[span.closer].end : tag.start])
        for tag in following
    )


def _pairs(tags: Sequence[Tag], places: Iterable[int]) -> list[Span]:
    waiting: dict[str, list[int]] = {name: [] for name in BLOCK_TYPES}
    pairs: list[Span] = []
    for index in places:
        tag = tags[index]
        openers = waiting[tag.name]
        if tag.form == "open":
            openers.append(index)
        elif openers:
            pairs.append(Span(tag.name, openers.pop(), index))
            if tag.name == CALLS:
                openers.clear()
    return pairs


def _outermost(spans: Iterable[Span]) -> list[Span]:
    kept: list[Span] = []
    for span in sorted(spans, key=lambda span: span.opener):
        if not kept or span.opener > kept[-1].closer:
            kept.append(span)
    return kept
