"""ResumptionGuard: which false stops are resumed, and what ends a turn that is resumed again and again."""

from __future__ import annotations

from typing import Any

import pytest

from membrane_lite.resumption import FalseStop, ResumptionGuard

OPENING = FalseStop("\nAnn:", 400)
SHORT = FalseStop("\nAnn:", 15)
LONG = FalseStop("\nAnn:", 16)
OTHER = FalseStop("\nBob:", 1)
UNKNOWN = FalseStop(None, 1)
TOOLS = None  # a round that ended otherwise

CASES: dict[str, tuple[int | None, list[FalseStop | None], list[str | None]]] = {
    "three short rounds behind the same stop are no progress": (
        24,
        [OPENING, SHORT, SHORT, SHORT],
        [None, None, None, "no_progress"],
    ),
    "a round that begins the turn is never a stall": (24, [SHORT, SHORT, SHORT], [None, None, None]),
    "two unknown stops count as the same": (24, [UNKNOWN] * 4, [None, None, None, "no_progress"]),
    "16 characters are progress": (24, [OPENING, SHORT, SHORT, LONG, SHORT, SHORT], [None] * 6),
    "another stop is progress": (24, [OPENING, SHORT, SHORT, OTHER, OTHER, OTHER], [None] * 6),
    "and may stall in its turn": (24, [OPENING, OTHER, OTHER, OTHER, OTHER], [None] * 4 + ["no_progress"]),
    "a tool round begins the count anew": (24, [OPENING, SHORT, SHORT, TOOLS, SHORT, SHORT, SHORT], [None] * 6),
    "two resumptions are allowed, a third is not": (2, [LONG, LONG, LONG], [None, None, "round_limit"]),
    "none is allowed": (0, [OPENING], ["round_limit"]),
    "without a cap there is no limit": (None, [LONG] * 40, [None] * 40),
}


@pytest.mark.parametrize(("cap", "stops", "verdicts"), CASES.values(), ids=CASES.keys())
def test_verdicts(cap: int | None, stops: list[Any], verdicts: list[str | None]) -> None:
    guard = ResumptionGuard(cap)
    given = []
    for stop in stops:
        if stop is None:
            guard.progressed()
        else:
            given.append(guard.verdict(stop))
    assert given == verdicts
    assert guard.count == verdicts.count(None)
