"""The floating marker: in a tool loop it stands on the newest message, so that the next round reads up to it.

    round 1    system*  tools*  question
    round 2    system*  tools*  question  call  result*
    round 3    system*  tools*  question  call  result*  call  result*      the one before is read, the last is written

Only places of the four that nobody asked for are taken: with one free the newest message has it, with two the marker of
the round before stays too, because the provider looks back about 20 blocks from a marker and no further. A round whose
beginning is not what was sent before (tool pairs repaired otherwise, an image shed) could read nothing and gets none.
"""

from __future__ import annotations

from typing import Any, Final

from ..values.base import Json
from . import cache_markers
from .base import BuildResult

HOUR: Final = "1h"


class FloatingMarker:
    """Where one turn's marker stands. A round that is built again (after a refusal) is marked as it was."""

    def __init__(self, ttl: str | None) -> None:
        self._ttl: Final = ttl
        self._sent: list[tuple[str, list[Json]]] = []  # the messages that were built last: role and blocks
        self._at = -1  # the place of the marker among their blocks
        self._before: list[tuple[str, Json]] | None = None  # the blocks of the round before; None in the first
        self._before_at = -1

    def next_round(self) -> None:
        """What was built last has been answered."""
        self._before, self._before_at = _blocks(self._sent), self._at

    def place(self, built: BuildResult) -> None:
        """Mark the messages of a round, in place."""
        messages = built.messages if built.free_markers else ()
        self._sent, self._at = [(message["role"], list(message["content"])) for message in messages], -1
        if self._before is None or not self._sent:
            return
        if _blocks(self._sent)[: len(self._before)] != self._before:
            return
        places = [(message["content"], index) for message in built.messages for index in range(len(message["content"]))]
        newest = built.messages[-1]["content"]
        index = cache_markers.last_cacheable_block_index(newest)
        if index < 0:
            return
        self._at = len(places) - len(newest) + index
        ttl = self._lifetime(built)
        free = built.free_markers - _mark(places[self._at], ttl)
        if free and self._before_at >= 0 and not _hour_behind(places[self._before_at + 1 :], ttl):
            _mark(places[self._before_at], ttl)

    def _lifetime(self, built: BuildResult) -> str | None:
        """The request's own, unless a marker of five minutes stands before it: one of an hour may not follow it."""
        body = {"tools": built.native_tools, "system": built.system_content, "messages": built.messages}
        hours = all(_lasts_an_hour(block) for block in cache_markers.marked(body))
        return self._ttl if hours else None


def _blocks(messages: list[tuple[str, list[Json]]]) -> list[tuple[str, Json]]:
    """All blocks as the cache knows them, each with its role."""
    return [(role, cache_markers.bare(block)) for role, content in messages for block in content]


def _mark(place: tuple[list[Json], int], ttl: str | None) -> bool:
    """Whether the marker is a new one: where the caller has put one already, that stays."""
    blocks, index = place
    if "cache_control" in blocks[index]:
        return False
    blocks[index] = {**blocks[index], "cache_control": cache_markers.marker(ttl)}
    return True


def _hour_behind(places: list[tuple[list[Json], int]], ttl: str | None) -> bool:
    """Whether a marker of five minutes would stand before one of an hour, which the API refuses."""
    return ttl != HOUR and any(_lasts_an_hour(blocks[index]) for blocks, index in places)


def _lasts_an_hour(block: dict[str, Any]) -> bool:
    control = block.get("cache_control")
    return isinstance(control, dict) and control.get("ttl") == HOUR
