"""clock: the time, the dice, and sleep."""

from __future__ import annotations

import threading
import time

from membrane_lite.abort import AbortController
from membrane_lite.clock import Clock

SOON_S = 2.0


def test_the_two_clocks() -> None:
    clock = Clock()
    before = (time.monotonic(), time.time())
    read = (clock.monotonic(), clock.time())
    after = (time.monotonic(), time.time())
    assert before[0] <= read[0] <= after[0]
    assert before[1] <= read[1] <= after[1]


def test_a_draw_is_at_least_0_and_below_1() -> None:
    draws = [Clock().random() for _ in range(100)]
    assert all(0 <= draw < 1 for draw in draws)
    assert len(set(draws)) > 90


def test_sleep_takes_its_time() -> None:
    clock = Clock()
    began = time.monotonic()
    assert clock.sleep(0.005) is False
    assert clock.sleep(0.005, AbortController().signal) is False
    assert time.monotonic() - began >= 0.01


def test_a_wait_that_is_over_already() -> None:
    assert [Clock().sleep(seconds) for seconds in (0, -5)] == [False, False]


def test_a_signal_cuts_sleep_short() -> None:
    controller = AbortController()
    timer = threading.Timer(0.005, controller.abort)
    timer.start()
    began = time.monotonic()
    assert Clock().sleep(60, controller.signal) is True
    assert time.monotonic() - began < SOON_S
    timer.join()


def test_a_signal_that_has_fired_allows_no_sleep() -> None:
    controller = AbortController()
    controller.abort()
    began = time.monotonic()
    assert Clock().sleep(60, controller.signal) is True
    assert time.monotonic() - began < SOON_S
