"""Many threads, one Membrane, a provider that often fails: every answer is whole and its own; nothing is left over."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from stage import FACES, REQUEST, Stage, each_format, stage

from membrane_lite import Clock, Membrane, MembraneError, MockAdapter
from membrane_lite.abort import AbortSignal
from membrane_lite.loopback import Failure, Reply, faults

THREADS = 32
CALLS = {"anthropic": 50, "chat": 10}  # the second shows that the format makes no difference
EVERY_TENTH = 10
CONFIG = {"model": "claude-sonnet-4-5", "max_tokens": 64}

# Faults of a request that had delivered nothing: it is sent again.
EARLY: list[Callable[[Reply], Any]] = [
    lambda reply: Failure(503),
    lambda reply: faults.reset(reply),
    lambda reply: faults.error(reply, after=0, type="overloaded_error"),
]
AFTER_A_TEXT = {"anthropic": 4, "chat": 2}


class HurriedClock(Clock):
    """Waits a thousandth of what it is asked to."""

    def sleep(self, seconds: float, signal: AbortSignal | None = None) -> bool:
        return super().sleep(seconds / 1000, signal)


class Provider:
    """Answers each call with its own name. The first request of every tenth call meets a fault."""

    def __init__(self, fault: Callable[[int, Reply], Any]) -> None:
        self._fault = fault
        self._lock = threading.Lock()
        self._seen: set[str] = set()

    def __call__(self, received: Any) -> Any:
        name = received.last_user_text.rpartition(" ")[2]
        number = int(name.partition("-")[2])
        with self._lock:
            first = name not in self._seen
            self._seen.add(name)
        if first and number % EVERY_TENTH == 0:
            return self._fault(number, Reply(text(name)))
        return Reply(text(name), chunks=[100 + number])  # two pieces, cut anywhere in an event


def text(name: str) -> str:
    return f"This is the answer to {name}."


def run_calls(on: Stage, calls: int) -> dict[str, Any]:
    """Every call of every thread: its name -> its text, or its error."""
    results: dict[str, Any] = {}

    def call(thread: int, number: int) -> None:
        name = f"{thread}-{number}"
        chunks: list[str] = []
        request = {"messages": [{"participant": "User", "content": f"Answer {name}"}], "config": CONFIG}
        try:
            response: Any = on.membrane.stream(request, on_chunk=lambda piece, meta: chunks.append(piece))
            results[name] = response.text if response.text == "".join(chunks) else chunks
        except MembraneError as error:
            results[name] = error

    def run(thread: int) -> None:
        for number in range(calls):
            call(thread, number)

    threads = [threading.Thread(target=run, args=(thread,)) for thread in range(THREADS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    return results


def descriptors() -> int:
    """How many this process has open, where the system tells."""
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0


@contextmanager
def nothing_left_over() -> Iterator[None]:
    gc.collect()
    threads, open_files = set(threading.enumerate()), descriptors()
    yield
    assert set(threading.enumerate()) <= threads
    assert descriptors() <= open_files


@each_format
def test_every_answer_is_whole_and_its_own_although_one_request_in_ten_fails(format: str) -> None:
    provider = Provider(lambda number, reply: EARLY[number // EVERY_TENTH % len(EARLY)](reply))
    with nothing_left_over(), stage(format, provider, clock=HurriedClock()) as on:
        results = run_calls(on, CALLS[format])
        faulty = THREADS * CALLS[format] // EVERY_TENTH
        assert on.provider.request_count == THREADS * CALLS[format] + faulty
    assert len(results) == THREADS * CALLS[format]
    assert {name: said for name, said in results.items() if said != text(name)} == {}


@each_format
def test_a_call_that_breaks_off_holds_its_own_text_and_harms_no_other(format: str) -> None:
    cut = AFTER_A_TEXT[format]
    provider = Provider(lambda number, reply: [faults.end, faults.close][number // EVERY_TENTH % 2](reply, after=cut))
    with nothing_left_over(), stage(format, provider, clock=HurriedClock()) as on:
        results = run_calls(on, CALLS[format])
        assert on.provider.request_count == THREADS * CALLS[format], "nothing is sent again after a delivery"
    broken = {name: error for name, error in results.items() if isinstance(error, MembraneError)}
    assert set(broken) == {
        f"{thread}-{number}" for thread in range(THREADS) for number in range(0, CALLS[format], EVERY_TENTH)
    }
    assert {(error.type, error.raw_assistant_text) for error in broken.values()} == {("network", "This")}
    assert {name: said for name, said in results.items() if name not in broken and said != text(name)} == {}


@pytest.mark.parametrize("mode", ["native", "xml"])
@pytest.mark.parametrize("face", FACES.values(), ids=FACES)
def test_a_call_leaves_no_circle_of_objects_behind(face: Callable[..., Any], mode: str) -> None:
    """They would wait for the garbage collector, with the request and the answer in them."""
    membrane = Membrane(MockAdapter(complete_delay_ms=0, stream_chunk_delay_ms=0))
    request = {**REQUEST, "tool_mode": mode}
    face(membrane, request)
    gc.collect()
    gc.disable()
    try:
        face(membrane, request)
        assert gc.collect() == 0
    finally:
        gc.enable()
