"""abort: one thread ends what another is in; a signal fires once, for good."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from membrane_lite.abort import LONGEST_STEP_S, AbortController, AbortSignal

SOON_S = 2.0  # far more than a thread needs to wake


def test_a_signal_before_and_after() -> None:
    controller = AbortController()
    signal = controller.signal
    assert (signal.aborted, signal.reason) == (False, None)
    controller.abort("shutting down")
    assert (signal.aborted, signal.reason) == (True, "shutting down")
    assert controller.signal is signal


def test_the_first_abort_is_the_one_that_counts() -> None:
    controller, calls = AbortController(), []
    controller.signal.add_callback(lambda: calls.append("called"))
    controller.abort("first")
    controller.abort("second")
    assert (controller.signal.reason, calls) == ("first", ["called"])


def test_callbacks_run_in_their_order_in_the_thread_that_aborts() -> None:
    controller, calls = AbortController(), []
    for name in ("a", "b"):
        controller.signal.add_callback(lambda name=name: calls.append((name, threading.current_thread().name)))
    thread = threading.Thread(target=controller.abort, name="aborting")
    thread.start()
    thread.join()
    assert calls == [("a", "aborting"), ("b", "aborting")]


def test_a_callback_that_comes_late_runs_at_once() -> None:
    controller, calls = AbortController(), []
    controller.abort()
    controller.signal.add_callback(lambda: calls.append("late"))
    assert calls == ["late"]


def test_a_callback_sees_the_signal_fired() -> None:
    controller, seen = AbortController(), []
    controller.signal.add_callback(lambda: seen.append((controller.signal.aborted, controller.signal.reason)))
    controller.abort("why")
    assert seen == [(True, "why")]


def test_a_callback_that_is_removed_does_not_run() -> None:
    controller, calls = AbortController(), []

    def callback() -> None:
        calls.append("called")

    controller.signal.add_callback(callback)
    controller.signal.remove_callback(callback)
    controller.signal.remove_callback(callback)  # no error
    controller.abort()
    controller.signal.remove_callback(callback)
    assert calls == []


def test_a_callback_added_twice_is_removed_once() -> None:
    controller, calls = AbortController(), []

    def callback() -> None:
        calls.append("called")

    controller.signal.add_callback(callback)
    controller.signal.add_callback(callback)
    controller.signal.remove_callback(callback)
    controller.abort()
    assert calls == ["called"]


def test_every_callback_runs_although_an_earlier_one_raised() -> None:
    controller, calls = AbortController(), []

    def fails(name: str) -> Any:
        calls.append(name)
        raise ValueError(name)

    controller.signal.add_callback(lambda: fails("first"))
    controller.signal.add_callback(lambda: fails("second"))
    controller.signal.add_callback(lambda: calls.append("third"))
    with pytest.raises(ValueError, match="first"):
        controller.abort()
    assert calls == ["first", "second", "third"]


def test_a_callback_may_use_the_signal() -> None:
    controller, calls = AbortController(), []
    signal = controller.signal

    def callback() -> None:
        signal.remove_callback(callback)
        signal.add_callback(lambda: calls.append("added"))
        controller.abort("again")

    signal.add_callback(callback)
    controller.abort()
    assert calls == ["added"]


def test_waiting_for_a_signal_that_does_not_fire() -> None:
    assert [AbortSignal().wait(seconds) for seconds in (0.001, 0, -1)] == [False, False, False]


def test_waiting_for_a_signal_that_has_fired() -> None:
    controller = AbortController()
    controller.abort()
    assert [controller.signal.wait(seconds) for seconds in (0, -1, 60, 10 * LONGEST_STEP_S)] == [True] * 4


@pytest.mark.parametrize(
    "seconds", [60, 3 * LONGEST_STEP_S, 1e12], ids=["a minute", "days", "longer than a lock takes"]
)
def test_an_abort_cuts_a_wait_short(seconds: float) -> None:
    controller = AbortController()
    timer = threading.Timer(0.005, controller.abort)
    began = time.monotonic()
    timer.start()
    assert controller.signal.wait(seconds) is True
    assert time.monotonic() - began < SOON_S
    timer.join()


def test_many_threads_wait_for_one_signal() -> None:
    controller, woken = AbortController(), []
    threads = [threading.Thread(target=lambda: woken.append(controller.signal.wait(60))) for _ in range(8)]
    for thread in threads:
        thread.start()
    controller.abort()
    for thread in threads:
        thread.join(SOON_S)
    assert woken == [True] * 8
