"""resending: the waits of both schedules, and the loop that obeys them."""

from __future__ import annotations

from typing import Any

import pytest
from lanes.lane_stage import StillClock, refused

from membrane_lite import AbortController, MembraneError
from membrane_lite.call import Call
from membrane_lite.lanes import BEDROCK_BACKOFF, PROXY_BACKOFF, Backoff
from membrane_lite.lanes.resending import answer_of

WAITS: dict[str, tuple[Backoff, int, float, int | None, float, float | None]] = {
    #                                            schedule         tries  waited  stated  draw  wait
    "Bedrock: the dice times one second": (BEDROCK_BACKOFF, 1, 0, None, 0.5, 500),
    "then times two": (BEDROCK_BACKOFF, 2, 0, None, 0.5, 1_000),
    "times two to the fourth": (BEDROCK_BACKOFF, 5, 0, None, 0.5, 8_000),
    "a wait ends at 20 s, after the dice": (BEDROCK_BACKOFF, 6, 0, None, 0.9, 20_000),
    "low dice may still be below it": (BEDROCK_BACKOFF, 6, 0, None, 0.5, 16_000),
    "the ninth failure is followed by a tenth attempt": (BEDROCK_BACKOFF, 9, 0, None, 0.5, 20_000),
    "the tenth is the last": (BEDROCK_BACKOFF, 10, 0, None, 0.5, None),
    "its waits have no sum": (BEDROCK_BACKOFF, 9, 500_000, None, 0.5, 20_000),
    "proxy: the dice times half a second": (PROXY_BACKOFF, 1, 0, None, 0.5, 250),
    "then times one": (PROXY_BACKOFF, 2, 0, None, 0.5, 500),
    "the bound ends at 20 s, before the dice": (PROXY_BACKOFF, 7, 0, None, 0.5, 10_000),
    "however many there were": (PROXY_BACKOFF, 60, 0, None, 0.5, 10_000),
    "up to 120 s of waits together": (PROXY_BACKOFF, 12, 110_000, None, 0.5, 10_000),
    "and not one millisecond more": (PROXY_BACKOFF, 12, 110_001, None, 0.5, None),
    "full jitter begins at zero": (PROXY_BACKOFF, 5, 0, None, 0.0, 0),
    "however often it doubles": (Backoff(10_000, 1), 9_000, 0, None, 0.5, 20_000),
    "a stated wait lengthens": (PROXY_BACKOFF, 1, 0, 30_000, 0.5, 30_000),
    "and never shortens": (BEDROCK_BACKOFF, 5, 0, 10, 0.5, 8_000),
    "it counts towards the sum": (PROXY_BACKOFF, 1, 100_000, 30_000, 0.5, None),
    "a minute is waited": (BEDROCK_BACKOFF, 1, 0, 60_000, 0.5, 60_000),
    "a second more is not": (BEDROCK_BACKOFF, 1, 0, 61_000, 0.5, None),
}


@pytest.mark.parametrize("schedule, tries, waited, stated, draw, wait", WAITS.values(), ids=WAITS.keys())
def test_backoff_wait_ms_before_the_next_attempt(
    schedule: Backoff, tries: int, waited: float, stated: int | None, draw: float, wait: float | None
) -> None:
    assert schedule.wait_ms(tries, waited, stated_ms=stated, draw=draw) == wait


def failing(*failures: MembraneError) -> tuple[list[Call], Any]:
    """An attempt that fails so, then answers; and the calls it was given."""
    calls: list[Call] = []

    def attempt(call: Call) -> bytes:
        calls.append(call)
        if len(calls) <= len(failures):
            raise failures[len(calls) - 1]
        return b"answer"

    return calls, attempt


def run(attempt: Any, clock: StillClock, schedule: Backoff = BEDROCK_BACKOFF, signal: Any = None) -> bytes:
    return answer_of(attempt, retryable=lambda error: error.retryable, backoff=schedule, clock=clock, signal=signal)


def test_answer_of_gives_each_attempt_deadlines_of_its_own() -> None:
    calls, attempt = failing(MembraneError("server", "broken"), MembraneError("timeout", "silent"))
    clock = StillClock()
    assert (run(attempt, clock), clock.slept) == (b"answer", [0.5, 1.0])
    assert len({id(call.deadlines) for call in calls}) == 3


def test_answer_of_raises_what_is_not_retryable_as_it_is() -> None:
    failure = MembraneError("invalid_request", "no")
    _, attempt = failing(failure)
    clock = StillClock()
    assert refused(lambda: run(attempt, clock)) is failure
    assert clock.slept == []


def test_answer_of_raises_the_last_failure_once_no_attempt_is_to_follow() -> None:
    failures = [MembraneError("server", str(number)) for number in range(20)]
    calls, attempt = failing(*failures)
    clock = StillClock()
    assert refused(lambda: run(attempt, clock)) is failures[9]
    assert (len(calls), clock.slept) == (10, [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 20.0, 20.0, 20.0])


def test_answer_of_dice_that_show_only_zeros_comes_to_an_end() -> None:
    calls, attempt = failing(*[MembraneError("server", "broken")] * 1_000)
    refused(lambda: run(attempt, StillClock(0.0), PROXY_BACKOFF))
    assert len(calls) == 100


def test_answer_of_ends_a_wait_and_begins_no_attempt_once_the_signal_fires() -> None:
    controller = AbortController()
    controller.abort("enough")
    calls, attempt = failing()
    error = refused(lambda: run(attempt, StillClock(), signal=controller.signal))
    assert (error.type, error.message, calls) == ("abort", "the call was aborted by its signal: enough", [])

    later = AbortController()
    calls, attempt = failing(MembraneError("server", "broken"))

    def abort_and_fail(call: Call) -> bytes:
        later.abort("later")
        return bytes(attempt(call))

    error = refused(lambda: run(abort_and_fail, StillClock(), signal=later.signal))
    assert (error.type, error.message, len(calls)) == ("abort", "the call was aborted by its signal: later", 1)
