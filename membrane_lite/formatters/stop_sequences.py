"""Stop sequences: whose names they are made of, and where a text meets one, for some servers do not stop at them.

pieces "Hello\\nUs", "er: Hi" with the stop "\\nUser:"  ->  "Hello", and no character of the stop ever passed on
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from ..values.messages import Message
from .base import BuildOptions


def next_speakers(messages: Iterable[Message], options: BuildOptions, *, most: int) -> list[str]:
    """Whoever but the assistant may speak next, in the order of `messages`. most: where options do not say how many."""
    speakers = dict.fromkeys(message.participant for message in messages)
    others = [name for name in speakers if name != options.assistant_participant]
    return others[: most if options.max_participants_for_stop is None else options.max_participants_for_stop]


class StopMatcher:
    """sequences: what stops the text; empty ones stop nothing.

    The one that is whole first stops it, as it would at a server; of two that end at one place the longer.
    """

    def __init__(self, sequences: Sequence[str]) -> None:
        self._sequences: Final = [sequence for sequence in sequences if sequence]
        self._longest: Final = max(map(len, self._sequences), default=0)
        shortest_first = sorted(self._sequences, key=len)
        self._whole: Final = re.compile("|".join(map(re.escape, shortest_first)) or r"(?!)")
        firsts = dict.fromkeys(sequence[0] for sequence in self._sequences)
        self._first: Final = re.compile("|".join(map(re.escape, firsts)) or r"(?!)")

    def first(self, text: str, start: int) -> re.Match[str] | None:
        """The stop sequence that ends first, of those from `start` on."""
        found = inner = self._whole.search(text, start)
        while inner is not None:  # what ends before it stands inside it
            found = inner
            inner = self._whole.search(text, found.start() + 1, found.end() - 1)
        return found

    def partial(self, text: str, start: int) -> int:
        """Where, from `start` on, the end of `text` may be the beginning of a stop sequence; len(text) if nowhere."""
        first = self._first.search(text, max(start, len(text) - self._longest + 1))
        while first is not None:
            rest = text[first.start() :]
            if any(sequence.startswith(rest) for sequence in self._sequences):
                return first.start()
            first = self._first.search(text, first.end())
        return len(text)
