"""The rate limiter of AWS's adaptive retry mode: how long to wait before a request, learnt from throttles. No clock.

Nothing is limited until the first throttle. From then on tokens fill a bucket at a rate that a throttle cuts to BETA
of what was measured, and that success lets grow along a cubic curve: fast far below the rate at which the throttle
came, slowly near it, fast again beyond it. Sources: docs.aws.amazon.com/sdkref/latest/guide, "Retry behavior"; the
constants as AWS's SDKs publish them; the curve is that of RFC 8312 (CUBIC), section 4.1.
"""

from __future__ import annotations

from math import floor
from typing import Final

BETA: Final = 0.7  # what a throttle leaves of the rate
SCALE: Final = 0.4  # C of the RFC: how steeply the curve rises
SMOOTHING: Final = 0.8  # the weight of the newest window in the measured rate
WINDOW_S: Final = 0.5
LOWEST_RATE: Final = 0.5  # requests a second
SMALLEST_CAPACITY: Final = 1.0


class AdaptiveBucket:
    """All instants are seconds of one monotonic clock. For one thread at a time."""

    def __init__(self) -> None:
        self._limits = False
        self._tokens = 0.0
        self._capacity = SMALLEST_CAPACITY
        self._rate = LOWEST_RATE
        self._filled_at = 0.0
        self._measured = 0.0
        self._window: float | None = None
        self._answers = 0
        self._rate_before = 0.0  # W_max of the RFC: where the last throttle came
        self._throttled_at = 0.0

    @property
    def rate(self) -> float:
        """Requests a second that are let through; infinity before the first throttle."""
        return self._rate if self._limits else float("inf")

    def take(self, now: float) -> float:
        """Take a token, which may be one that is yet to come: the seconds until it is there."""
        if not self._limits:
            return 0.0
        self._fill(now)
        self._tokens -= 1
        return max(0.0, -self._tokens / self._rate)

    def answered(self, now: float, *, throttled: bool) -> None:
        """A request has ended, in whatever way; `throttled` says that it was refused for its rate."""
        self._measure(now)
        if throttled:
            self._rate_before = min(self._measured, self.rate)
            self._throttled_at = now
            self._set_rate(self._rate_before * BETA, now)
            self._limits = True
        elif self._limits:
            self._set_rate(self._cubic(now), now)

    def _cubic(self, now: float) -> float:
        """W(t) = C (t - K)^3 + W_max, with K the time after which W is W_max again."""
        recovery_s: float = (self._rate_before * (1 - BETA) / SCALE) ** (1 / 3)
        return SCALE * (now - self._throttled_at - recovery_s) ** 3 + self._rate_before

    def _measure(self, now: float) -> None:
        """Answers a second, smoothed over windows of half a second."""
        window = floor(now / WINDOW_S) * WINDOW_S
        if self._window is None:
            self._window = floor(now)
        self._answers += 1
        if window > self._window:
            current = self._answers / (window - self._window)
            self._measured = current * SMOOTHING + self._measured * (1 - SMOOTHING)
            self._answers = 0
            self._window = window

    def _set_rate(self, wanted: float, now: float) -> None:
        """Never more than twice what is really sent, so that a quiet hour does not end in a burst."""
        self._fill(now)
        rate = min(wanted, 2 * self._measured)
        self._rate = max(rate, LOWEST_RATE)
        self._capacity = max(rate, SMALLEST_CAPACITY)
        self._tokens = min(self._tokens, self._capacity)

    def _fill(self, now: float) -> None:
        if self._limits:
            self._tokens = min(self._capacity, self._tokens + (now - self._filled_at) * self._rate)
        self._filled_at = now
