"""Clock: the only module that reads the time and the dice, and sleeps.

Everything else is given instants and draws, so a test passes its own Clock and waits for nothing.
"""

from __future__ import annotations

import random
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .abort import AbortSignal


class Clock:
    """Durations are measured by monotonic(); dates and expiries by time()."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary moment; never goes back."""
        return time.monotonic()

    def time(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def random(self) -> float:
        """A draw from [0, 1)."""
        return random.random()

    def sleep(self, seconds: float, signal: AbortSignal | None = None) -> bool:
        """Wait; True when `signal` cut the wait short (at once, if it had already fired)."""
        if signal is not None:
            return signal.wait(seconds)
        time.sleep(max(0.0, seconds))
        return False
