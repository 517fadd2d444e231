"""One provider call: requests sent until one is answered, and the waits between them. Obeys retry.py, decides nothing.

What was delivered is never sent twice: once a streamed answer has given a piece of content, its failure is final. The
attempts of one call share its deadline; each makes its own signature, and each calls on_request.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any, Final

from .abort import AbortSignal
from .call import NEVER, Call, Deadlines, Limits, own_code
from .clock import Clock
from .error_table import classify_exception
from .errors import MembraneError, aborted
from .providers.base import Adapter, HttpAdapter
from .retry import Retry, classify_failure, retry_decision
from .values.base import Record
from .values.deltas import (
    AnswerHead,
    BlockEnd,
    BlockStart,
    Delta,
    InputDelta,
    SignatureDelta,
    TextDelta,
    ThinkingDelta,
    UsageReported,
)
from .values.options import RetryConfig, RetryInfo
from .values.requests import ProviderRequest

CONTENT: Final = frozenset([BlockStart, TextDelta, ThinkingDelta, InputDelta, SignatureDelta, BlockEnd])


class CallPlan:
    """What every attempt of a turn has in common.

    retry: None sends each request once. call_ends, call_ms: the instant and the length of the deadline over all
    attempts. on_request, on_error, on_retry: the caller's own code.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        signal: AbortSignal | None = None,
        limits: Limits | None = None,
        retry: RetryConfig | None = None,
        on_request: Callable[[Any], object] | None = None,
        on_error: Callable[[MembraneError, int], object] | None = None,
        on_retry: Callable[[RetryInfo], object] | None = None,
    ) -> None:
        self.clock: Final = clock
        self.signal: Final = signal
        self.limits: Final = limits or Limits()
        self.retry: Final = retry
        self.on_request: Final = on_request
        self.on_error: Final = on_error
        self.on_retry: Final = on_retry

    def check(self, deadlines: Deadlines) -> None:
        """Raise if the signal has fired or the call's deadline has passed."""
        self.call(deadlines).check()

    def deadlines(self, call_ends: float, call_ms: float | None) -> Deadlines:
        return Deadlines(self.clock, self.limits, call_ends=call_ends, call_ms=call_ms)

    def call(self, deadlines: Deadlines, on_request: Callable[[Any], object] | None = None) -> Call:
        return Call(
            clock=self.clock,
            deadlines=deadlines,
            signal=self.signal,
            on_request=on_request,
            sends_once=self.retry is None,
        )


class Sent:
    """What one provider call sent: how often, after which waits, and the last body.

    forget: called before a resend; what the failed attempt said beside content is void. first: told of the body before
    the first attempt leaves; the resends carry the same.
    """

    def __init__(
        self,
        on_request: Callable[[Any], object] | None,
        forget: Callable[[], object],
        first: Callable[[Any], object] | None = None,
    ) -> None:
        self._on_request: Final = on_request
        self._first = first
        self._forget: Final = forget
        self.waits_ms: Final[list[int]] = []
        self.raw_request: Any = None

    def sending(self, raw_request: Any) -> None:
        self.raw_request = raw_request
        first, self._first = self._first, None  # let go: it holds the turn, which holds this
        if first is not None:
            first(raw_request)
        if self._on_request is not None:
            own_code("on_request", self._on_request, raw_request)

    def waiting(self, wait_ms: int) -> None:
        self.waits_ms.append(wait_ms)
        self._forget()


def answered(
    adapter: Adapter,
    provider_request: ProviderRequest,
    plan: CallPlan,
    sent: Sent,
    *,
    streamed: bool,
    call_ends: float = NEVER,
    call_ms: float | None = None,
) -> Generator[Delta, None, None]:
    """The deltas of the first attempt that is answered. Raises MembraneError once no attempt is to follow."""
    tries = 0
    while True:
        tries += 1
        delivered = False
        deadlines = plan.deadlines(call_ends, call_ms)
        call = plan.call(deadlines, sent.sending)
        call.check()
        try:
            deltas = _deltas(adapter, provider_request, call, streamed=streamed)
            try:
                for delta in deltas:
                    yield delta
                    if streamed and type(delta) in CONTENT:
                        delivered = True
                        break
                yield from deltas
            finally:
                _close(deltas)
            return
        except Exception as exc:
            failure, cause = _failure(plan, exc)
        failure.with_request(redacted(adapter, sent.raw_request))
        wait_ms = None if delivered or failure.of_own_code else _wait_before_next(plan, failure, tries)
        if wait_ms is None:
            raise failure from cause
        _wait(plan, deadlines, sent, RetryInfo(classify_failure(failure), tries, wait_ms, failure))


def _deltas(adapter: Adapter, provider_request: ProviderRequest, call: Call, *, streamed: bool) -> Iterator[Delta]:
    """One attempt's. An answer that is not streamed is given whole, so that a failed one leaves nothing behind."""
    deltas = (adapter.stream if streamed else adapter.complete)(provider_request, call)
    if not isinstance(adapter, HttpAdapter):
        deltas = _watched(deltas, call)
    return iter(deltas if streamed else list(deltas))


def _watched(deltas: Iterable[Delta], call: Call) -> Iterator[Delta]:
    """An adapter of the caller's own may forget to look at its call: signal and deadline are checked at each delta."""
    try:
        for delta in deltas:
            call.check()
            _check_types(delta)
            yield delta
    finally:
        _close(deltas)


def _check_types(delta: Delta) -> None:
    for field, expected in FIELD_TYPES.get(type(delta), {}).items():
        value = getattr(delta, field)
        if not isinstance(value, expected):
            raise _wrong_field(delta, field, value, expected.__name__)
    if type(delta) is UsageReported:
        for name, count in delta.counts.items():
            if not isinstance(count, (int, float, type(None))):
                raise _wrong_field(delta, f"counts[{name!r}]", count, "number")


def _wrong_field(delta: Delta, field: str, value: object, expected: str) -> MembraneError:
    found = f"{type(delta).__name__} whose {field} is of type {type(value).__name__}"
    return MembraneError("unknown", f"the adapter yielded a {found}; expected {expected}")


def _close(deltas: object) -> None:
    """Generators can be closed, other iterables need not be."""
    close = getattr(deltas, "close", None)
    if close is not None:
        close()


def _failure(plan: CallPlan, exc: Exception) -> tuple[MembraneError, BaseException | None]:
    """What ended an attempt, and its cause. After an abort it is the abort, whatever else broke because of it."""
    signal = plan.signal
    known = classify_exception(exc)
    if signal is not None and signal.aborted and known.type != "abort":
        return aborted(signal.reason), exc
    return known, exc.__cause__ if known is exc else exc


def _wait_before_next(plan: CallPlan, failure: MembraneError, tries: int) -> int | None:
    """How long to wait before the next attempt; None where none is to follow."""
    if plan.retry is None:
        return None
    decision = retry_decision(
        classify_failure(failure),
        tries,
        retry_after_ms=failure.retry_after_ms,
        config=plan.retry,
        draw=plan.clock.random(),
    )
    if not isinstance(decision, Retry):
        return None
    if plan.on_error is not None and own_code("on_error", plan.on_error, failure, tries) == "abort":
        return None
    return decision.wait_ms


def _wait(plan: CallPlan, deadlines: Deadlines, sent: Sent, info: RetryInfo) -> None:
    """Wait before the next attempt; the signal and the call's deadline end the wait."""
    if plan.on_retry is not None:
        own_code("on_retry", plan.on_retry, info)
    sent.waiting(info.wait_ms)
    if plan.clock.sleep(min(info.wait_ms / 1000, deadlines.call_left()), plan.signal):
        raise aborted(plan.signal.reason if plan.signal else None)


def redacted(adapter: Adapter, raw_request: Any) -> Any:
    """The body as it may be shown; an adapter of the caller's own holds no secrets that we know of."""
    redact = getattr(adapter, "redacted", None)
    return raw_request if redact is None else redact(raw_request)


# What the fields of a delta must be for the turn to put an answer together from it.
FIELD_TYPES: Final[Mapping[type, Mapping[str, type]]] = {
    BlockStart: {"index": int, "block": Record},
    TextDelta: {"index": int, "text": str},
    ThinkingDelta: {"index": int, "text": str},
    InputDelta: {"index": int, "text": str},
    SignatureDelta: {"index": int, "signature": str},
    BlockEnd: {"index": int},
    UsageReported: {"counts": Mapping},
    AnswerHead: {"headers": Mapping},
}
