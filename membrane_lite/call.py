"""What one provider call carries besides its request: signal, deadlines, clock, on_request.

Both ends of the house are given the same Call. The transport asks its deadlines how long it may block and reports
what arrived; what arrived decides how long the next read may take. No room imports a later one for that.
"""

from __future__ import annotations

from collections.abc import Callable

from .error_table import classify_exception
from .errors import CALL_TIMEOUT, PROGRESS_TIMEOUT, MembraneError, aborted, own_code_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from .abort import AbortSignal
    from .clock import Clock

NEVER: Final = float("inf")
DEFAULT_IDLE_MS: Final = 600_000


class Limits:
    """How long each stretch of a provider call may take, in milliseconds; None is no limit.

    first_event_ms: from the send to the first event (an answer that is not streamed: to its head).
    idle_ms: between bytes, pings included, from the first event on. progress_ms: between non-empty deltas.
    """

    __slots__ = ("first_event_ms", "idle_ms", "progress_ms")

    def __init__(
        self,
        *,
        first_event_ms: float | None = None,
        idle_ms: float | None = DEFAULT_IDLE_MS,
        progress_ms: float | None = None,
    ) -> None:
        self.idle_ms: Final = idle_ms
        self.first_event_ms: Final = max(idle_ms or 0, DEFAULT_IDLE_MS) if first_event_ms is None else first_event_ms
        self.progress_ms: Final = progress_ms


class Deadlines:
    """The instants, in seconds of Clock.monotonic(), at which one provider call must end, whatever it waits for."""

    __slots__ = ("_call_ends", "_call_ms", "_clock", "_first_event_ends", "_idle_ends", "_limits", "_progress_ends")

    def __init__(self, clock: Clock, limits: Limits, *, call_ends: float = NEVER, call_ms: float | None = None) -> None:
        self._clock: Final = clock
        self._limits = limits
        self._call_ends: Final = call_ends
        self._call_ms: Final = call_ms
        self._first_event_ends = NEVER
        self._idle_ends = NEVER
        self._progress_ends = NEVER

    def request_sent(self) -> None:
        """The request is about to leave: the first event and the first progress are waited for from here on."""
        now = self._clock.monotonic()
        self._first_event_ends = now + (self._limits.first_event_ms or NEVER) / 1000
        self._idle_ends = NEVER
        self._progress_ends = now + (self._limits.progress_ms or NEVER) / 1000

    def first_event(self) -> None:
        """The first event is here: from now on silence between bytes is what is bounded."""
        self._first_event_ends = NEVER
        self._idle_ends = self._clock.monotonic() + (self._limits.idle_ms or NEVER) / 1000

    def answer_complete(self, silence_ms: float) -> None:
        """Only an end or a footnote can follow: from now on at most `silence_ms` without a byte are waited for it."""
        self._limits = Limits(idle_ms=silence_ms)
        self._progress_ends = NEVER
        self.first_event()

    def bytes_arrived(self) -> None:
        """Any bytes of the body, pings included."""
        if self._idle_ends != NEVER:
            self._idle_ends = self._clock.monotonic() + (self._limits.idle_ms or NEVER) / 1000

    @property
    def counts_progress(self) -> bool:
        return self._limits.progress_ms is not None

    def progressed(self) -> None:
        """A delta that was not empty."""
        self._progress_ends = self._clock.monotonic() + (self._limits.progress_ms or NEVER) / 1000

    def left(self) -> float:
        """Seconds until the nearest deadline; 0 when one has passed, infinity when there is none."""
        nearest = min(self._call_ends, self._first_event_ends, self._idle_ends, self._progress_ends)
        return nearest if nearest == NEVER else max(0.0, nearest - self._clock.monotonic())

    def call_left(self) -> float:
        """Seconds until the deadline of the whole call alone: what a wait between attempts may use up."""
        return self._call_ends if self._call_ends == NEVER else max(0.0, self._call_ends - self._clock.monotonic())

    def check(self) -> None:
        """Raise the error of the deadline that has passed, if one has."""
        if self.left() <= 0:
            raise self.error()

    def error(self) -> MembraneError:
        """The error of the nearest deadline, naming it and its value. Source of the classes: README, "Deadlines"."""
        _, make = min(
            (
                (self._call_ends, self._call_error),
                (self._first_event_ends, self._first_event_error),
                (self._idle_ends, self._idle_error),
                (self._progress_ends, self._progress_error),
            ),
            key=lambda row: row[0],
        )
        return make()

    def _call_error(self) -> MembraneError:
        text = f"timeout_ms: the call took longer than its {self._call_ms:.15g} ms"
        return MembraneError(
            "timeout", text, retryable=False, provider_error_code=CALL_TIMEOUT, failure_class="deadline"
        )

    def _first_event_error(self) -> MembraneError:
        limit = self._limits.first_event_ms
        text = f"first_event_timeout_ms: no first event within {limit:.15g} ms of sending the request"
        return MembraneError("timeout", text, failure_class="deadline")

    def _idle_error(self) -> MembraneError:
        limit = self._limits.idle_ms
        return MembraneError("timeout", f"idle_timeout_ms: no byte for {limit:.15g} ms", failure_class="deadline")

    def _progress_error(self) -> MembraneError:
        limit = self._limits.progress_ms
        text = f"progress_timeout_ms: the answer made no progress for {limit:.15g} ms"
        return MembraneError(
            "timeout", text, retryable=False, provider_error_code=PROGRESS_TIMEOUT, failure_class="deadline"
        )


class Call:
    """One attempt at one provider request.

    sends_once: whoever calls wants a failed request back as it failed; an adapter may not mend and repeat it either.
    """

    __slots__ = ("clock", "deadlines", "on_request", "sends_once", "signal")

    def __init__(
        self,
        *,
        clock: Clock,
        deadlines: Deadlines | None = None,
        signal: AbortSignal | None = None,
        on_request: Callable[[Any], object] | None = None,
        sends_once: bool = False,
    ) -> None:
        self.clock: Final = clock
        self.sends_once: Final = sends_once
        self.deadlines: Final = deadlines or Deadlines(clock, Limits())
        self.signal: Final = signal
        self.on_request: Final = on_request

    def sending(self, raw_request: Any) -> None:
        """An adapter calls this with the body, once per attempt, just before it leaves.

        What on_request raises is the caller's own error and ends the call.
        """
        if self.on_request is not None:
            self.on_request(raw_request)

    def check(self) -> None:
        """Raise if the signal has fired or a deadline has passed."""
        if self.signal is not None and self.signal.aborted:
            raise aborted(self.signal.reason)
        self.deadlines.check()


def own_code(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call the caller's own code. What it raises ends the call and is never sent again; see errors.own_code_error."""
    try:
        return function(*arguments)
    except Exception as exc:
        error = own_code_error(name, exc, classify_exception(exc))
        raise error from (None if error is exc else exc)
