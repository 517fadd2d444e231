"""in_flight: jobs at once, results in order, and threads that keep nothing alive."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from membrane_lite import AbortController
from membrane_lite.lanes.in_flight import results

ROOT = Path(__file__).resolve().parents[2]


def test_results_stand_in_the_order_of_the_jobs_whichever_ends_first() -> None:
    gates = [threading.Event() for _ in range(4)]

    def work(job: int, signal: Any) -> int:
        if job < 3:
            gates[job + 1].wait(2)  # each ends after the one behind it
        gates[job].set()
        return job * 10

    assert results(range(4), work, most=4) == [0, 10, 20, 30]


def test_results_of_no_jobs_are_none() -> None:
    assert results([], lambda job, signal: job, most=6) == []


def test_results_raise_the_first_failure_and_no_job_begins_after_it() -> None:
    begun: list[int] = []

    def work(job: int, signal: Any) -> int:
        begun.append(job)
        raise ValueError(f"job {job}")

    with pytest.raises(ValueError, match="job 0"):
        results(range(100), work, most=1)
    assert begun == [0]


def test_results_abort_and_wait_for_jobs_in_work() -> None:
    ended: list[bool] = []
    both = threading.Barrier(2)

    def work(job: int, signal: Any) -> int:
        both.wait(2)
        if job == 0:
            raise ValueError("job 0")
        ended.append(signal.wait(2))
        return job

    with pytest.raises(ValueError, match="job 0"):
        results(range(2), work, most=2)
    assert ended == [True]


def test_results_of_a_callback_that_raises_begin_no_other_job_though_the_work_ignores_its_signal() -> None:
    begun: list[int] = []

    def work(job: int, signal: Any) -> int:
        begun.append(job)
        if job:
            signal.wait(2)
        return job

    def broken(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        results(range(100), work, most=2, on_progress=broken)
    assert len(begun) <= 3


def test_results_that_are_there_leave_the_callers_signal_alone() -> None:
    controller, inner = AbortController(), []
    results([1], lambda job, signal: inner.append(signal), most=1, signal=controller.signal)
    controller.abort("later")
    assert [signal.aborted for signal in inner] == [False]


HANGS = """
import threading
from membrane_lite.lanes.in_flight import results
begun = threading.Event()
def hang(job, signal):
    begun.set()
    threading.Event().wait(600)
threading.Thread(target=results, args=([1], hang), kwargs={"most": 1}, daemon=True).start()
begun.wait()
"""


def test_results_that_hang_do_not_keep_the_process_alive() -> None:
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", HANGS], cwd=ROOT, capture_output=True, timeout=30)
    assert (done.returncode, done.stderr, time.monotonic() - began < 10) == (0, b"", True)
