"""call: which deadline is the nearest at every moment of a provider call, and what its error says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from membrane_lite.abort import AbortController
from membrane_lite.call import DEFAULT_IDLE_MS, NEVER, Call, Deadlines, Limits
from membrane_lite.clock import Clock
from membrane_lite.errors import MembraneError

START = 1_000.0


class ManualClock(Clock):
    """Time moves when it is told to."""

    def __init__(self) -> None:
        self.now = START

    def monotonic(self) -> float:
        return self.now

    def pass_seconds(self, seconds: float) -> None:
        self.now += seconds


LIMITS = {
    "by default": (Limits(), (600_000, 600_000, None)),
    "a shorter idle time does not shorten the first event's": (Limits(idle_ms=5_000), (600_000, 5_000, None)),
    "a longer one lengthens it": (Limits(idle_ms=900_000), (900_000, 900_000, None)),
    "no idle time": (Limits(idle_ms=None), (600_000, None, None)),
    "a first event of its own": (Limits(first_event_ms=5, idle_ms=900_000), (5, 900_000, None)),
    "progress": (Limits(progress_ms=7), (600_000, 600_000, 7)),
}


@pytest.mark.parametrize("limits, expected", LIMITS.values(), ids=LIMITS.keys())
def test_limits(limits: Limits, expected: tuple[Any, Any, Any]) -> None:
    assert (limits.first_event_ms, limits.idle_ms, limits.progress_ms) == expected
    assert DEFAULT_IDLE_MS == 600_000


# What happens to a call with the limits below, second by second: the steps, and what is left after them.

FIRST_EVENT_MS, IDLE_MS, PROGRESS_MS, CALL_MS = 20_000, 8_000, 30_000, 100_000
Step = Callable[[Deadlines, ManualClock], object]


def passing(seconds: float) -> Step:
    return lambda _, clock: clock.pass_seconds(seconds)


def sent(deadlines: Deadlines, _: ManualClock) -> None:
    deadlines.request_sent()


def first_event(deadlines: Deadlines, _: ManualClock) -> None:
    deadlines.first_event()


def some_bytes(deadlines: Deadlines, _: ManualClock) -> None:
    deadlines.bytes_arrived()


def progress(deadlines: Deadlines, _: ManualClock) -> None:
    deadlines.progressed()


def complete(deadlines: Deadlines, _: ManualClock) -> None:
    deadlines.answer_complete(2_000)


STEPS: dict[str, tuple[list[Step], float, str]] = {
    "before the send only the call's own runs": ([passing(1)], 99, "timeout_ms"),
    "after it the first event's is the nearest": ([passing(1), sent], 20, "first_event_timeout_ms"),
    "bytes before the first event change nothing": ([sent, passing(5), some_bytes], 15, "first_event_timeout_ms"),
    "progress before the first event does not help it": ([sent, passing(5), progress], 15, "first_event_timeout_ms"),
    "from the first event on the silence counts": ([sent, passing(5), first_event], 8, "idle_timeout_ms"),
    "each byte starts the silence anew": ([sent, first_event, passing(7), some_bytes], 8, "idle_timeout_ms"),
    "but makes no progress": ([sent, first_event, *[passing(7), some_bytes] * 4], 2, "progress_timeout_ms"),
    "a delta does": ([sent, first_event, *[passing(7), some_bytes] * 4, progress], 8, "idle_timeout_ms"),
    "and starts its own time anew": (
        [sent, first_event, passing(7), some_bytes, progress, *[passing(7), some_bytes] * 4],
        2,
        "progress_timeout_ms",
    ),
    "progress alone does not end the silence": ([sent, first_event, passing(7), progress], 1, "idle_timeout_ms"),
    "nothing moves the call's own": (
        [sent, first_event, *[passing(7), some_bytes, progress] * 14],
        2,
        "timeout_ms",
    ),
    "a second send starts anew": ([sent, first_event, passing(9), sent], 20, "first_event_timeout_ms"),
    "a complete answer is waited for no longer than told": (
        [sent, first_event, passing(1), complete],
        2,
        "idle_timeout_ms",
    ),
    "its footnotes may come one by one": (
        [sent, first_event, complete, passing(1.5), some_bytes, passing(1)],
        1,
        "idle_timeout_ms",
    ),
    "it need not make progress": (
        [
            sent,
            first_event,
            *[passing(7), some_bytes] * 4,
            complete,
            passing(1.5),
            some_bytes,
            passing(1.5),
            some_bytes,
        ],
        2,
        "idle_timeout_ms",
    ),
    "what has passed leaves nothing": ([sent, passing(50)], 0, "first_event_timeout_ms"),
}


def after(steps: list[Step]) -> Deadlines:
    clock = ManualClock()
    limits = Limits(first_event_ms=FIRST_EVENT_MS, idle_ms=IDLE_MS, progress_ms=PROGRESS_MS)
    deadlines = Deadlines(clock, limits, call_ends=START + CALL_MS / 1000, call_ms=CALL_MS)
    for step in steps:
        step(deadlines, clock)
    return deadlines


@pytest.mark.parametrize("steps, left, nearest", STEPS.values(), ids=STEPS.keys())
def test_what_is_left_and_of_what(steps: list[Step], left: float, nearest: str) -> None:
    deadlines = after(steps)
    assert deadlines.left() == pytest.approx(left)
    assert deadlines.error().message.partition(":")[0] == nearest


def no_limit() -> Limits:
    return Limits(idle_ms=None, first_event_ms=0)


def test_without_limits_nothing_ends_a_call() -> None:
    deadlines = Deadlines(ManualClock(), no_limit())
    deadlines.request_sent()
    deadlines.first_event()
    deadlines.bytes_arrived()
    deadlines.progressed()
    assert (deadlines.left(), deadlines.call_left(), deadlines.counts_progress) == (NEVER, NEVER, False)
    deadlines.check()


def test_a_complete_answer_is_bounded_although_silence_was_not() -> None:
    deadlines = Deadlines(ManualClock(), no_limit())
    deadlines.request_sent()
    deadlines.first_event()
    deadlines.answer_complete(2_000)
    assert deadlines.left() == 2


ERRORS: dict[str, tuple[Limits, float | None, list[Step], dict[str, Any]]] = {
    "the whole call": (
        Limits(),
        1_500,
        [sent, passing(1.5)],
        {
            "message": "timeout_ms: the call took longer than its 1500 ms",
            "retryable": False,
            "provider_error_code": "call_timeout",
        },
    ),
    "the first event": (
        Limits(first_event_ms=20),
        None,
        [sent, passing(0.02)],
        {
            "message": "first_event_timeout_ms: no first event within 20 ms of sending the request",
            "retryable": True,
        },
    ),
    "silence": (
        Limits(idle_ms=250.5),
        None,
        [sent, first_event, passing(1)],
        {"message": "idle_timeout_ms: no byte for 250.5 ms", "retryable": True},
    ),
    "no progress": (
        Limits(progress_ms=1_000_000),
        None,
        [sent, first_event, passing(500), some_bytes, passing(500)],
        {
            "message": "progress_timeout_ms: the answer made no progress for 1000000 ms",
            "retryable": False,
            "provider_error_code": "response_progress_timeout",
        },
    ),
}


@pytest.mark.parametrize("limits, call_ms, steps, said", ERRORS.values(), ids=ERRORS.keys())
def test_the_error_of_a_deadline(
    limits: Limits, call_ms: float | None, steps: list[Step], said: dict[str, Any]
) -> None:
    clock = ManualClock()
    ends = NEVER if call_ms is None else START + call_ms / 1000
    deadlines = Deadlines(clock, limits, call_ends=ends, call_ms=call_ms)
    for step in steps:
        step(deadlines, clock)
    with pytest.raises(MembraneError) as raised:
        deadlines.check()
    assert raised.value.to_dict() == {"type": "timeout", "failure_class": "deadline", **said}


def test_of_two_that_pass_together_the_whole_call_is_named() -> None:
    clock = ManualClock()
    deadlines = Deadlines(clock, Limits(first_event_ms=5_000), call_ends=START + 5, call_ms=5_000)
    deadlines.request_sent()
    clock.pass_seconds(5)
    assert deadlines.error().provider_error_code == "call_timeout"


def test_a_wait_between_attempts_is_bounded_by_the_call_alone() -> None:
    deadlines = after([sent, passing(30)])
    assert (deadlines.left(), deadlines.call_left()) == (0, 70)
    assert after([passing(200)]).call_left() == 0


def test_counting_progress_is_asked_for() -> None:
    clock = ManualClock()
    assert Deadlines(clock, Limits(progress_ms=5)).counts_progress is True
    assert Deadlines(clock, Limits()).counts_progress is False


# Call


def test_a_call_that_is_given_nothing_has_the_default_limits() -> None:
    call = Call(clock=ManualClock())
    call.deadlines.request_sent()
    assert (call.deadlines.left(), call.signal) == (600, None)
    call.check()
    call.sending({"model": "m"})


def test_on_request_is_given_the_body_itself() -> None:
    bodies: list[Any] = []
    body = {"model": "m"}
    Call(clock=ManualClock(), on_request=bodies.append).sending(body)
    assert bodies[0] is body


def test_what_on_request_raises_goes_through() -> None:
    def refuses(_: Any) -> None:
        raise LookupError("not today")

    with pytest.raises(LookupError, match="not today"):
        Call(clock=ManualClock(), on_request=refuses).sending({})


def test_an_aborted_call_fails_before_its_deadline_does() -> None:
    clock, controller = ManualClock(), AbortController()
    call = Call(clock=clock, signal=controller.signal, deadlines=Deadlines(clock, Limits(), call_ends=START, call_ms=1))
    with pytest.raises(MembraneError, match="timeout_ms"):
        call.check()
    controller.abort("enough")
    with pytest.raises(MembraneError) as raised:
        call.check()
    assert (raised.value.type, raised.value.message) == ("abort", "the call was aborted by its signal: enough")
