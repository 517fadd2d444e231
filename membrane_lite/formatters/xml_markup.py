"""The tags of a transcript's text. A text in, its tags in order out; no character is looked at twice.

    closer   </name>                                 exactly: with a space before ">" it is text
    opener   <name>, <name ...>                      attributes are allowed wherever the stream's scanner hides them
    empty    <invoke .../>, <parameter .../>

A CDATA section directly after a parameter's opener inside calls (one newline between) is stepped over: whatever tags
it holds are data. One that does not end makes data of the rest of the text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from .xml_tags import ANY_PREFIX, BLOCK_TYPES, CALLS, CDATA_CLOSER, CDATA_OPENER, INNER_TAGS, SPACE, is_blank


class Tag(NamedTuple):
    """form: "open", "close" or "empty". payload: what the CDATA sections after a parameter's opener hold, if any.

    resume: where reading goes on, behind those sections.
    """

    name: str
    form: str
    start: int
    end: int
    attributes: str
    payload: str | None
    resume: int


class Marked(NamedTuple):
    """A text with its tags."""

    text: str
    tags: Sequence[Tag]


def marked(text: str) -> Marked:
    tags: list[Tag] = []
    in_calls, at = False, 0
    end = text.rfind(">") + 1  # up to there every tag has an end, so none is looked for in vain
    while match := TAG.search(text, at, end):
        tag = _tag(match)
        if tag.name == CALLS:
            in_calls = tag.form == "open"
        elif in_calls and tag.name == "parameter" and tag.form == "open":
            payload, resume = _payload(text, tag.end)
            tag = tag._replace(payload=payload, resume=resume)
        tags.append(tag)
        at = tag.resume
    return Marked(text, tags)


def _tag(match: re.Match[str]) -> Tag:
    closing, opening, attributes, empty = match.groups(default="")
    if opening in INNER_TAGS and attributes.endswith("/"):
        opening, empty, attributes = "", opening, attributes[:-1]
    form = "close" if closing else "empty" if empty else "open"
    return Tag(closing or opening or empty, form, match.start(), match.end(), attributes, None, match.end())


def _payload(text: str, at: int) -> tuple[str | None, int]:
    """What the sections that begin at `at` hold, joined, and where they end; without an end, the end of the text."""
    section = at + text.startswith("\n", at)
    if not text.startswith(CDATA_OPENER, section):
        return None, at
    held: list[str] = []
    while text.startswith(CDATA_OPENER, section):
        start = section + len(CDATA_OPENER)
        end = text.find(CDATA_CLOSER, start)
        if end < 0:
            return None, len(text)
        held.append(text[start:end])
        section = end + len(CDATA_CLOSER)
    return "".join(held), section


def attribute(attributes: str, name: str) -> str:
    """The value of an attribute in either kind of quotes; "" where it is missing, empty or blank."""
    match = re.search(rf"{SPACE}{name}=(?:\"([^\"]*)\"|'([^']*)')", attributes)
    value = (match[1] or match[2] or "") if match else ""
    return value if not is_blank(value) else ""


_NAMES: Final = "|".join([*BLOCK_TYPES, *INNER_TAGS])
_INNER: Final = "|".join(INNER_TAGS)

TAG: Final = re.compile(
    rf"</{ANY_PREFIX}({_NAMES})>"
    rf"|<{ANY_PREFIX}({_NAMES})({SPACE}[^>]*)?>"
    rf"|<{ANY_PREFIX}({_INNER})/>"
)
