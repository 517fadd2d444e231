"""A clock on which waits take no time, so that hours of retries are tested in milliseconds."""

from __future__ import annotations

from datetime import datetime

from membrane_lite import Clock
from membrane_lite.abort import AbortSignal


class VirtualClock(Clock):
    """Sleeps are recorded, in seconds, and take no time. The date stands still but for them; dice show the middle.

    Durations are real ones beside the sleeps, so that a test which hangs still ends by its deadlines.
    """

    def __init__(self, now: str = "2026-01-01T00:00:00Z") -> None:
        self._started = datetime.fromisoformat(now.replace("Z", "+00:00")).timestamp()
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return super().monotonic() + sum(self.slept)

    def time(self) -> float:
        return self._started + sum(self.slept)

    def random(self) -> float:
        return 0.5

    def sleep(self, seconds: float, signal: AbortSignal | None = None) -> bool:
        self.slept.append(seconds)
        return signal is not None and signal.aborted
