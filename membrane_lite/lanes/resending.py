"""One layer sends again: how often, and after which waits. In goes one attempt, out comes its answer.

Neither lane goes through attempts.py: a call here is one request and one answer, and what it waits for is bounded by a
schedule of its own: BEDROCK_BACKOFF, PROXY_BACKOFF.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from ..abort import AbortSignal
from ..call import Call, Deadlines, Limits
from ..clock import Clock
from ..errors import MembraneError, aborted
from ..retry import LONGEST_STATED_WAIT_MS

# Inactivity, not the length of a call: far above any legitimate silence (a structured call at high effort says nothing
# until it answers, within minutes), so it ends only sockets that are dead. Without a bound one of them would stall a
# whole night's calls, which run one after another. The failure is retryable.
REQUEST_HANDLER_OPTIONS: Final = {"request_timeout": 300_000}
LIMITS: Final = Limits(
    first_event_ms=REQUEST_HANDLER_OPTIONS["request_timeout"], idle_ms=REQUEST_HANDLER_OPTIONS["request_timeout"]
)


MOST_DOUBLINGS: Final = 60  # beyond any bound; a float ends at 1,023


class Backoff(NamedTuple):
    """The wait after each failure is drawn between 0 and a bound that doubles: full jitter, so that crowds spread out.

    requests: sent at most. first_ms: the first bound. highest_bound_ms: where the doubling ends. longest_ms: of a wait
    as drawn. total_ms: no new attempt once the waits together would pass it.
    """

    requests: int
    first_ms: float
    highest_bound_ms: float = float("inf")
    longest_ms: float = 20_000
    total_ms: float = float("inf")

    def wait_ms(self, tries: int, waited_ms: float, *, stated_ms: int | None, draw: float) -> float | None:
        """The wait after `tries` failed requests and `waited_ms` of waiting; None where no attempt is to follow.

        stated_ms: what the server asked for; it lengthens a wait, and never shortens one.
        """
        if tries >= self.requests or (stated_ms or 0) > LONGEST_STATED_WAIT_MS:
            return None
        bound_ms = min(self.first_ms * 2.0 ** min(tries - 1, MOST_DOUBLINGS), self.highest_bound_ms)
        wait_ms = max(min(draw * bound_ms, self.longest_ms), stated_ms or 0)
        return None if waited_ms + wait_ms > self.total_ms else wait_ms


#                          requests  first_ms  highest_bound_ms  longest_ms  total_ms
BEDROCK_BACKOFF: Final = Backoff(10, 1_000)
# Its number of requests only ends what dice that show nothing but zeros would not.
PROXY_BACKOFF: Final = Backoff(100, 500, 20_000, 20_000, 120_000)


def answer_of(
    attempt: Callable[[Call], bytes],
    *,
    retryable: Callable[[MembraneError], bool],
    backoff: Backoff,
    clock: Clock,
    signal: AbortSignal | None,
) -> bytes:
    """The answer of the first attempt that is answered. Raises the failure after which no attempt is to follow."""
    tries, waited_ms = 0, 0.0
    while True:
        tries += 1
        call = Call(clock=clock, deadlines=Deadlines(clock, LIMITS), signal=signal)
        call.check()
        try:
            return attempt(call)
        except MembraneError as error:
            stated_ms = error.retry_after_ms
            wait_ms = backoff.wait_ms(tries, waited_ms, stated_ms=stated_ms, draw=clock.random())
            if wait_ms is None or not retryable(error):
                raise
        pause(wait_ms / 1000, clock, signal)
        waited_ms += wait_ms


def pause(seconds: float, clock: Clock, signal: AbortSignal | None) -> None:
    """Wait; raises once the signal fires."""
    if seconds and clock.sleep(seconds, signal):
        raise aborted(signal.reason if signal else None)
