"""When a turn that keeps being stopped by accident is given up. Told of false stops; gives the stop reason, or None.

In a transcript a stop sequence ("\\nAnn:", "</function_calls>") may turn up inside a block that the model itself has
opened: there it is content, and the turn goes on in another round. Two guards end what would never end by itself:

    stall  three resumed rounds in a row, each of fewer than 16 characters and the same stop sequence  -> no_progress
    cap    more resumptions in one turn than max_resumption_rounds                                     -> round_limit
"""

from __future__ import annotations

from typing import Final, NamedTuple

DEFAULT_MAX_RESUMPTION_ROUNDS: Final = 24
STALLS: Final = 3
PROGRESS_CHARACTERS: Final = 16
TOLD_AT: Final = 5  # the resumption that is told of: something may be wrong with the stop sequences


class FalseStop(NamedTuple):
    """sequence: what stopped the round, None where the provider does not say. new_characters: written in the round."""

    sequence: str | None
    new_characters: int


class ResumptionGuard:
    """cap: None for no limit."""

    def __init__(self, cap: int | None) -> None:
        self.count = 0
        self._cap: Final = cap
        self._stalls = 0
        self._before: FalseStop | None = None

    def verdict(self, stop: FalseStop) -> str | None:
        """The stop reason of a turn that ends here; None where it is resumed, which is counted."""
        before, self._before = self._before, stop
        stalled = before is not None and before.sequence == stop.sequence and stop.new_characters < PROGRESS_CHARACTERS
        self._stalls = self._stalls + 1 if stalled else 0
        if self._stalls >= STALLS:
            return "no_progress"
        if self._cap is not None and self.count >= self._cap:
            return "round_limit"
        self.count += 1
        return None

    def progressed(self) -> None:
        """A round ended otherwise, with tools for the most part."""
        self._stalls, self._before = 0, None
