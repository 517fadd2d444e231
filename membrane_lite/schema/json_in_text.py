"""The JSON value in a model's prose: what servers give that cannot be held to a schema.

    Here it is:
    ```json
    {"facts": ["use ``` for code"]}     ->  {"facts": ["use ``` for code"]}
    ```

A fence decides only where a value begins; it ends where its own brackets do, so a fence within a string ends nothing. A
value that is cut off is none, and what stood inside it is not taken for the answer; nor is what stands in the thinking
that some servers leave before it, "<think>...</think>".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from ..wire.json_text import parse


class Found(NamedTuple):
    """A value in a text, from `start` to `end`."""

    text: str
    start: int
    end: int

    @property
    def is_fenced(self) -> bool:
        return FENCE.search(self.text, max(0, self.start - LONGEST_FENCE), self.start) is not None

    @property
    def is_object(self) -> bool:
        return self.text[self.start] == "{"

    @property
    def is_empty(self) -> bool:
        """Brackets in prose, as a rule, and no answer."""
        return not self.text[self.start + 1 : self.end - 1].strip()


def json_of_text(text: str) -> Any:
    """The whole text, if it is JSON; else the first value in a fence; else the first object; else the first array.

    One that holds anything goes before one that is empty. Raises ValueError where there is none, or where it is not
    strict JSON (NaN). Takes linear time.
    """
    thinking = THINKING.match(text)
    text = text[thinking.end() :] if thinking else text
    try:
        return parse(text.strip())
    except (ValueError, RecursionError):
        found = list(_values(text))
    if not found:
        raise ValueError("the answer holds no JSON object")
    best = min(found, key=lambda value: (not value.is_fenced, value.is_empty, not value.is_object, value.start))
    try:
        return parse(text[best.start : best.end])
    except RecursionError:
        raise ValueError("the answer is nested too deep") from None


def _values(text: str) -> Iterator[Found]:
    """Objects and arrays that stand in nothing else. Each is looked for behind where the last one ended, or failed."""
    opening = OPENING.search(text)
    while opening:
        start = opening.start()
        whole, end = _end_of(text, start)
        if whole:
            yield Found(text, start, end)
        opening = OPENING.search(text, end)


def _end_of(text: str, start: int) -> tuple[bool, int]:
    """Whether a value stands at `start`; and where it ends, or where it is seen to be none.

    It is looked for in a window that grows: an error of json's counts the lines of all the text before it.
    """
    width = FIRST_WINDOW
    while True:
        window = text[start : start + width]
        try:
            return True, start + LENIENT.raw_decode(window)[1]
        except RecursionError:  # whatever stands here, it is nothing that anybody could use
            return False, len(text)
        except ValueError as exc:
            if not isinstance(exc, json.JSONDecodeError):  # a number of more digits than Python reads
                return False, len(text)
            at, reason = exc.pos, exc.msg
            if len(window) < width or (at < width - LONGEST_TOKEN and not reason.startswith("Unterminated string")):
                return False, start + max(at, 1)
            width *= 4


THINKING: Final = re.compile(r"\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
OPENING: Final = re.compile(r"[{\[]")
FENCE: Final = re.compile(r"```[ \t]*[\w+-]*\s*\Z")
FIRST_WINDOW: Final = 256  # characters
LONGEST_TOKEN: Final = 16  # characters: -Infinity, or two escapes; one that a window cuts is no fault of the value
LONGEST_FENCE: Final = 80  # characters: the language's name, and the white space behind it
LENIENT: Final = json.JSONDecoder()  # NaN is told of by the strict one, once it is known which value is meant
