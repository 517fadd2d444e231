"""The results of a block of results, in both forms that transcripts hold. A block's inside in, results in order out.

    <result tool_use_id="c1">            <result>                        <error>
    text with five entities              <tool_name>look</tool_name>     message
    </result>                            <stdout>                        </error>
                                         text
                                         </stdout>
                                         </result>

The newlines next to the tags belong to the form. The second form names no call: its results answer calls before them
by the tool's name, then by position, those of the nearest block first. Its text is written as it is, or with entities
if it holds a tag of this form; so it is decoded only when that is what it must have been.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from ..values.content import ToolResultBlock, ToolUse
from .xml_markup import attribute
from .xml_tags import ANY_PREFIX, SPACE
from .xml_tools import ENTITIES, FRAME_TAG
from .xml_values import as_written


class Result(NamedTuple):
    """tool_use_id, tool_name: "" where none is written."""

    tool_use_id: str
    tool_name: str
    content: str
    is_error: bool


class Unclaimed:
    """The calls that no result has answered yet; a result claims one. Looks at each call a few times at most."""

    def __init__(self) -> None:
        self._claimed: Final[set[str]] = set()
        self._waiting: Final[dict[str | None, list[deque[str]]]] = {}  # by tool name, and of any name: a queue a block

    def add(self, uses: Iterable[ToolUse]) -> None:
        """The calls of one block."""
        block: dict[str | None, deque[str]] = {}
        for use in uses:
            for key in (None, use.name):
                block.setdefault(key, deque()).append(use.id)
        for key, queue in block.items():
            self._waiting.setdefault(key, []).append(queue)

    def claim(self, tool_name: str | None) -> str:
        """The id of the first such call in the latest block that has one, "" if none is left."""
        blocks = self._waiting.get(tool_name, [])
        while blocks:
            while blocks[-1]:
                id = blocks[-1].popleft()
                if id not in self._claimed:
                    self._claimed.add(id)
                    return id
            blocks.pop()
        return ""

    def claimed(self, ids: Iterable[str]) -> None:
        self._claimed.update(ids)


def read_results(inside: str, *, raw_xml: str, unclaimed: Unclaimed) -> list[ToolResultBlock]:
    """A result that answers no call before it has the id ""."""
    results = list(_results(inside))
    unclaimed.claimed(result.tool_use_id for result in results)
    named = [result.tool_use_id or (result.tool_name and unclaimed.claim(result.tool_name)) for result in results]
    ids = [id or unclaimed.claim(None) for id in named]
    return [ToolResultBlock(id, result.content, result.is_error, raw_xml=raw_xml) for id, result in zip(ids, results)]


def _results(inside: str) -> Iterator[Result]:
    at = 0
    endless: set[str] = set()  # names that are closed nowhere behind `at`
    while match := OPENER.search(inside, at):
        name, attributes = match[1], match[2] or ""
        closer = None if name in endless else CLOSERS[name].search(inside, match.end())
        if closer is None:
            endless.add(name)
            at = match.end()
        else:
            yield _result(inside[match.end() : closer.start()], attribute(attributes, "tool_use_id"), name == "error")
            at = closer.end()


def _result(text: str, id: str, is_error: bool) -> Result:
    if id:
        return Result(id, "", decoded(as_written(text)), is_error)
    framed = None if is_error else FRAMED.fullmatch(text)
    tool_name, content = (framed[1] or "", framed[2]) if framed else ("", text)
    written, plain = as_written(content), decoded(as_written(content))
    was_encoded = not MARKS.search(written) and FRAME_TAG.search(plain)
    return Result("", decoded(tool_name), plain if was_encoded else written, is_error)


def decoded(text: str) -> str:
    for entity, character in ENTITIES_READ:
        text = text.replace(entity, character)
    return text


OPENER: Final = re.compile(rf"<{ANY_PREFIX}(result|error)({SPACE}[^<>]*)?>")
CLOSERS: Final = {name: re.compile(f"</{ANY_PREFIX}{name}>") for name in ("result", "error")}
FRAMED: Final = re.compile(
    rf"{SPACE}*(?:<{ANY_PREFIX}tool_name>([^<]*)</{ANY_PREFIX}tool_name>{SPACE}*)?"
    rf"<{ANY_PREFIX}stdout>(.*)</{ANY_PREFIX}stdout>{SPACE}*",
    re.DOTALL,
)

# The ampersand last: an "&amp;lt;" was the text "&lt;".
ENTITIES_READ: Final = [(entity, chr(code)) for code, entity in reversed(ENTITIES.items())]

MARKS: Final = re.compile("[<>\"']")  # no text that was written with entities holds one
