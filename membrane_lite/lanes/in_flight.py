"""Jobs done by a few threads at once, their results in the order of the jobs.

The threads are daemons: an interpreter waits at its end for those of a ThreadPoolExecutor, and one that hangs in a
socket would keep the process alive. What they share with that module is its Future.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, as_completed, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ..abort import AbortController, AbortSignal
from ..call import own_code

if TYPE_CHECKING:
    from collections.abc import Iterator

Job = TypeVar("Job")
Result = TypeVar("Result")
Work = Callable[[Job, AbortSignal], Result]

ENDING_S: Final = 1.0  # how long aborted jobs are waited for, before their failure is raised


def results(
    jobs: Sequence[Job],
    work: Callable[[Job, AbortSignal], Result],
    *,
    most: int,
    signal: AbortSignal | None = None,
    on_progress: Callable[[int, int], object] | None = None,
) -> list[Result]:
    """What `work` gives for each job; at most `most` are in work at once.

    The first failure is raised: jobs that wait are cancelled, those in work aborted. on_progress(done, total) is called
    in this thread, after each job.
    """
    futures: list[Future[Result]] = [Future() for _ in jobs]
    waiting = deque(zip(jobs, futures))
    with aborting(signal) as controller:
        try:
            for number in range(min(most, len(jobs))):
                name = f"{__name__}-{number}"
                threading.Thread(target=drain, args=(waiting, work, controller.signal), name=name, daemon=True).start()
            for done, future in enumerate(as_completed(futures), 1):
                future.result()
                if on_progress is not None:
                    own_code("on_progress", on_progress, done, len(futures))
        except BaseException:
            waiting.clear()
            controller.abort("another batch failed")
            wait([future for future in futures if future.running()], ENDING_S)
            raise
    return [future.result() for future in futures]


@contextmanager
def aborting(signal: AbortSignal | None) -> Iterator[AbortController]:
    """A controller of our own that also fires with the caller's signal."""
    controller = AbortController()

    def abort() -> None:
        controller.abort(signal.reason if signal is not None else None)

    if signal is not None:
        signal.add_callback(abort)
    try:
        yield controller
    finally:
        if signal is not None:
            signal.remove_callback(abort)


def drain(
    waiting: deque[tuple[Any, Future[Any]]], work: Callable[[Any, AbortSignal], Any], signal: AbortSignal
) -> None:
    """Take jobs until none is left. popleft is one step, so no two threads get the same."""
    while True:
        try:
            job, future = waiting.popleft()
        except IndexError:
            return
        future.set_running_or_notify_cancel()
        try:
            future.set_result(work(job, signal))
        except BaseException as exc:
            waiting.clear()  # before anybody is told: no thread begins another one
            future.set_exception(exc)
