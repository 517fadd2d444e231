"""AbortController and its signal: how one thread ends a call that another thread is in.

controller = AbortController()
threading.Timer(5, controller.abort).start()
membrane.stream(request, signal=controller.signal)
"""

from __future__ import annotations

import threading
from collections.abc import Callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

# Longest wait that every platform's lock takes; a longer one is waited in steps.
LONGEST_STEP_S: Final = 86_400.0


class AbortSignal:
    """Fires once, for good. Safe to use from any thread and from a signal handler."""

    def __init__(self) -> None:
        # RLock: abort() may run in a signal handler that interrupts add_callback on the same thread.
        self._lock: Final = threading.RLock()
        self._fired: Final = threading.Event()
        self._callbacks: Final[list[Callable[[], object]]] = []
        self._reason: object = None

    @property
    def aborted(self) -> bool:
        return self._fired.is_set()

    @property
    def reason(self) -> object:
        """What abort() was given; None until then."""
        return self._reason

    def add_callback(self, callback: Callable[[], object]) -> None:
        """Call `callback` when the signal fires, in the thread that fires it; now, if it has fired."""
        with self._lock:
            if not self._fired.is_set():
                self._callbacks.append(callback)
                return
        callback()

    def remove_callback(self, callback: Callable[[], object]) -> None:
        """Forget `callback`; one that was never added, or has run, is no error."""
        with self._lock:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

    def wait(self, seconds: float) -> bool:
        """Wait until the signal fires, at most `seconds`; True when it has fired."""
        while seconds > LONGEST_STEP_S:
            if self._fired.wait(LONGEST_STEP_S):
                return True
            seconds -= LONGEST_STEP_S
        return self._fired.wait(max(0.0, seconds))

    def fire(self, reason: object) -> None:
        """Used by AbortController. Each callback runs, even where an earlier one raised; the first error is raised."""
        with self._lock:
            if self._fired.is_set():
                return
            self._reason = reason
            self._fired.set()
            callbacks = list(self._callbacks)
            self._callbacks.clear()
        first: Exception | None = None
        for callback in callbacks:
            try:
                callback()
            except Exception as exc:
                first = first or exc
        if first is not None:
            raise first


class AbortController:
    """Hands out one signal and fires it."""

    def __init__(self) -> None:
        self.signal: Final = AbortSignal()

    def abort(self, reason: object = None) -> None:
        """End every call that was given this controller's signal. Later calls do nothing."""
        self.signal.fire(reason)
