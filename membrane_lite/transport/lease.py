"""A lease: one call's use of one connection. It answers how long a wait may be, and ends the wait when it must end.

Where a call is blocked in a socket, another thread can wake it in one way that is sound on every platform and Python:
shutdown() of the TCP socket, through a duplicate of its descriptor (the handle). The TLS object is never touched from
another thread. What the woken thread then sees (an end of file, a reset, a TLS error) says nothing, so whoever leaves
the exchange asks the lease first: aborted? a deadline? and only then the table of failures.
"""

from __future__ import annotations

import os
import socket
import threading
from contextlib import suppress
from typing import Final

from ..call import NEVER, Call
from ..errors import MembraneError, aborted
from . import failures
from .failures import Phase

# The longest timeout given to a socket: none at all would leave a wait that nothing ends.
LONGEST_WAIT_S: Final = 86_400.0


class Lease:
    """Belongs to the thread of the call; abort() and close() may come from any thread, or from a signal handler."""

    def __init__(self, call: Call, place: object, *, connect_ms: float, pid: int | None = None) -> None:
        self._call: Final = call
        self._place: Final = place
        self._connect_ms: Final = connect_ms
        self._connect_ends = NEVER
        self._phase: Phase = "connect"
        # RLock: abort() may run in a signal handler that interrupts hold() or drop() on the same thread.
        self._lock: Final = threading.RLock()
        self._handle: socket.socket | None = None
        self._closed = False
        # After a fork the child holds copies; shutting one down would end the parent's stream.
        self._pid: Final = os.getpid() if pid is None else pid
        if call.signal is not None:
            call.signal.add_callback(self.abort)

    # What the call's own thread does.

    def connecting(self) -> None:
        self._phase = "connect"
        self._connect_ends = self.now() + self._connect_ms / 1000

    def sending(self) -> None:
        self._phase = "send"
        self._connect_ends = NEVER
        self._call.deadlines.request_sent()

    def awaiting(self) -> None:
        self._phase = "await"

    def reading(self) -> None:
        self._phase = "body"

    def arrived(self) -> None:
        """Bytes are here; in the body they put the idle deadline off."""
        self._call.deadlines.bytes_arrived()

    def now(self) -> float:
        return self._call.clock.monotonic()

    def left(self) -> float:
        """Seconds the next wait may take, more than 0. Raises where none are left, or the call was aborted."""
        self.check()
        left = min(self._connect_left(), self._call.deadlines.left())
        if left <= 0:
            raise self.timed_out()
        return min(left, LONGEST_WAIT_S)

    def share(self) -> float:
        """The same for one of several addresses: at most a third of the limit for connecting."""
        return min(self.left(), self._connect_ms / 3000)

    def _connect_left(self) -> float:
        return self._connect_ends if self._connect_ends == NEVER else self._connect_ends - self.now()

    def timed_out(self) -> MembraneError:
        """The error of the nearest deadline: a wait of left() seconds has passed."""
        others = self._call.deadlines.left()
        if self._connect_ends != NEVER and self._connect_left() <= others:
            return failures.connect_timeout(self._place, self._connect_ms)
        return failures.silence(self._place, LONGEST_WAIT_S) if others == NEVER else self._call.deadlines.error()

    def check(self) -> None:
        """Raise if the call was aborted."""
        error = self.aborted()
        if error is not None:
            raise error

    def aborted(self) -> MembraneError | None:
        signal = self._call.signal
        if signal is not None and signal.aborted:
            return aborted(signal.reason)
        return failures.transport_closed() if self._closed else None

    def __enter__(self) -> Lease:
        return self

    def __exit__(self, kind: object, exc: BaseException | None, traceback: object) -> None:
        """Whatever is raised under the lease leaves as what it means: an abort, a deadline, a row of the table."""
        error = None if exc is None else self._meaning(exc)
        if error is not None:
            try:
                raise error from exc
            finally:
                del error  # else error and traceback would hold each other, and the connection with them

    def _meaning(self, exc: BaseException) -> MembraneError | None:
        """None where `exc` is right as it is: an error of ours, or no failure at all (KeyboardInterrupt)."""
        if not isinstance(exc, Exception):
            return None
        error = self.aborted()
        if error is not None or isinstance(exc, MembraneError):
            return error
        return self.timed_out() if failures.is_socket_timeout(exc) else failures.failure(self._phase, exc, self._place)

    # The handle. hold() comes before connect(), drop() before the connection is kept or the handle closed: so there
    # is no moment at which an abort is lost, and none at which it hits a connection that serves another call.

    def hold(self, handle: socket.socket) -> None:
        """From here on an abort shuts `handle` down. Raises if the call was aborted already."""
        with self._lock:
            self.check()
            self._handle = handle

    def drop(self) -> None:
        with self._lock:
            self._handle = None

    def release(self) -> bool:
        """The call is over; True if it may have been aborted, so that its connection is not fit for another."""
        self.drop()
        if self._call.signal is not None:
            self._call.signal.remove_callback(self.abort)
        return self.aborted() is not None

    # What other threads do.

    def abort(self) -> None:
        """The signal has fired: wake whatever waits."""
        with self._lock:
            if self._handle is not None and self._pid == os.getpid():
                with suppress(OSError):  # not connected yet; the wait for it looks at the signal by itself
                    self._handle.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """The transport is being closed."""
        self._closed = True
        self.abort()
