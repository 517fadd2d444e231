"""lease.py: an abort reaches the socket that is held, and no other."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from ways import call

from membrane_lite.abort import AbortController
from membrane_lite.errors import MembraneError
from membrane_lite.transport.lease import Lease


@contextmanager
def connected() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.setblocking(False)
        yield ours, theirs


def is_ended(theirs: socket.socket) -> bool:
    try:
        return theirs.recv(1) == b""
    except BlockingIOError:
        return False


def test_an_abort_shuts_down_what_is_held() -> None:
    controller = AbortController()
    lease = Lease(call(signal=controller.signal), "here", connect_ms=1)
    with connected() as (ours, theirs):
        lease.hold(ours)
        assert not is_ended(theirs)
        controller.abort()
        assert is_ended(theirs)


def test_what_was_dropped_is_left_alone_even_by_an_abort_that_is_under_way() -> None:
    lease = Lease(call(signal=AbortController().signal), "here", connect_ms=1)
    with connected() as (ours, theirs):
        lease.hold(ours)
        assert lease.release() is False
        lease.abort()  # as the signal's thread may still do
        assert not is_ended(theirs)


def test_nothing_can_be_held_after_an_abort() -> None:
    controller = AbortController()
    lease = Lease(call(signal=controller.signal), "here", connect_ms=1)
    controller.abort("before")
    with connected() as (ours, theirs):
        with pytest.raises(MembraneError, match="before"):
            lease.hold(ours)
        lease.abort()
        assert not is_ended(theirs)
    assert lease.release() is True


def test_an_abort_comes_before_whatever_else_was_raised() -> None:
    controller = AbortController()
    lease = Lease(call(signal=controller.signal), "here", connect_ms=1)
    with pytest.raises(MembraneError) as caught, lease:
        controller.abort("first")
        raise ConnectionResetError(104, "what the shutdown looked like")
    assert (caught.value.type, caught.value.message) == ("abort", "the call was aborted by its signal: first")
    assert isinstance(caught.value.__cause__, ConnectionResetError)


def test_a_wait_is_never_given_more_than_a_day() -> None:
    lease = Lease(call(timeout_ms=None, idle_ms=0, first_event_ms=0), "here", connect_ms=1)
    assert lease.left() == 86_400
    assert lease.timed_out().message == "here: nothing was received or taken for 86400 s"
