"""dialing.py: names become addresses, addresses a connection, within the lease."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from raw_server import RawServer, answers
from ways import call

from membrane_lite.abort import AbortController
from membrane_lite.call import Call
from membrane_lite.errors import MembraneError
from membrane_lite.transport.dialing import dial, resolve
from membrane_lite.transport.lease import Lease


def lease_of(call: Call, connect_ms: float = 10_000) -> Lease:
    lease = Lease(call, "http://server.example", connect_ms=connect_ms)
    lease.connecting()
    return lease


def address(port: int) -> tuple[Any, ...]:
    return (socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", port))


def resolver_of(*ports: int) -> Any:
    """A resolver that knows every name at these ports, but takes no name for an address."""

    def resolver(host: str, port: int, family: int = 0, kind: int = 0, proto: int = 0, flags: int = 0) -> list[Any]:
        if flags & socket.AI_NUMERICHOST:
            raise socket.gaierror(socket.EAI_NONAME, "not an address")
        return [address(port) for port in ports]

    return resolver


@contextmanager
def blocked_resolver() -> Iterator[Any]:
    """One that answers only when the test is over."""
    over = threading.Event()

    def resolver(*question: Any) -> list[Any]:
        if len(question) == 6:
            raise socket.gaierror(socket.EAI_NONAME, "not an address")
        over.wait(5)
        return []

    try:
        yield resolver
    finally:
        over.set()


@contextmanager
def silent_port() -> Iterator[int]:
    """A port whose queue is full: what would open a connection is dropped."""
    with ExitStack() as stack:
        listening = stack.enter_context(socket.socket())
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listening.getsockname())
        yield listening.getsockname()[1]


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def test_an_address_needs_no_thread() -> None:
    asked = []

    def resolver(*question: Any) -> list[Any]:
        asked.append((question, threading.current_thread() is threading.main_thread()))
        return [address(1)]

    assert resolve("127.0.0.1", 1, lease_of(call()), resolver) == [address(1)]
    assert asked == [(("127.0.0.1", 1, 0, socket.SOCK_STREAM, 0, socket.AI_NUMERICHOST), True)]


def test_abort_while_a_name_is_looked_up() -> None:
    controller = AbortController()
    with blocked_resolver() as resolver:
        lease = lease_of(call(signal=controller.signal))
        threading.Timer(0.03, controller.abort, ["enough"]).start()
        started = time.monotonic()
        with pytest.raises(MembraneError, match="enough"), lease:
            dial("server.example", 80, lease, resolver=resolver)
        assert time.monotonic() - started < 1


LIMITS = {
    "the limit for connecting": (10_000, 40, "connect_timeout"),
    "the whole call's": (40, 10_000, "call_timeout"),
}


@pytest.mark.parametrize("call_ms, connect_ms, code", LIMITS.values(), ids=LIMITS.keys())
def test_a_look_up_ends_with_the_nearest_limit(call_ms: float, connect_ms: float, code: str) -> None:
    with blocked_resolver() as resolver:
        started = time.monotonic()
        lease = lease_of(call(timeout_ms=call_ms), connect_ms)
        with pytest.raises(MembraneError) as caught, lease:
            dial("server.example", 80, lease, resolver=resolver)
        assert 0.04 <= time.monotonic() - started < 1
        assert (caught.value.type, caught.value.provider_error_code) == ("timeout", code)


@pytest.mark.parametrize("call_ms, connect_ms, code", LIMITS.values(), ids=LIMITS.keys())
def test_so_does_a_connect(call_ms: float, connect_ms: float, code: str) -> None:
    with silent_port() as port:
        started = time.monotonic()
        lease = lease_of(call(timeout_ms=call_ms), connect_ms)
        with pytest.raises(MembraneError) as caught, lease:
            dial("127.0.0.1", port, lease)
        assert 0.04 <= time.monotonic() - started < 1
        assert (caught.value.type, caught.value.provider_error_code) == ("timeout", code)


def test_a_connect_timeout_says_all_that_is_known() -> None:
    with silent_port() as port, pytest.raises(MembraneError) as caught:
        lease = lease_of(call(), 40)
        with lease:
            dial("127.0.0.1", port, lease)
    error = caught.value
    assert (error.type, error.retryable, error.failure_class) == ("timeout", True, "transient")
    assert error.message == "connect_timeout_ms: http://server.example: no connection within 40 ms"


def test_a_silent_address_leaves_time_for_the_next() -> None:
    with silent_port() as silent, RawServer(answers) as server:
        started = time.monotonic()
        lease = lease_of(call(), 900)
        sock, handle = dial("server.example", 80, lease, resolver=resolver_of(silent, server.port))
        with sock, handle:
            assert sock.getpeername() == ("127.0.0.1", server.port)
        assert 0.3 <= time.monotonic() - started < 0.9  # a third of the limit


def test_an_address_that_refuses_is_passed_over_at_once() -> None:
    with RawServer(answers) as server:
        lease = lease_of(call())
        sock, handle = dial("server.example", 80, lease, resolver=resolver_of(free_port(), server.port))
        with sock, handle:
            assert sock.getpeername() == ("127.0.0.1", server.port)


def test_where_all_refuse_the_last_one_says_why() -> None:
    lease = lease_of(call())
    with pytest.raises(ConnectionRefusedError):
        dial("server.example", 80, lease, resolver=resolver_of(free_port(), free_port()))


def test_a_name_that_does_not_exist() -> None:
    def resolver(*question: Any) -> list[Any]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    lease = lease_of(call())
    with pytest.raises(MembraneError) as caught, lease:
        dial("server.example", 80, lease, resolver=resolver)
    assert (caught.value.type, caught.value.retryable) == ("network", True)
    assert caught.value.message.startswith("http://server.example: the host's name was not found while connecting")


class StandingClock:
    """A clock that never moves, as one that a test drives by hand."""

    def monotonic(self) -> float:
        return 1000.0


def test_a_connect_times_out_by_what_it_waited_whatever_the_clock_says() -> None:
    with silent_port() as port:
        lease = lease_of(call(clock=StandingClock(), timeout_ms=None), 40)  # type: ignore[arg-type]
        with pytest.raises(MembraneError) as caught, lease:
            dial("127.0.0.1", port, lease)
        assert caught.value.provider_error_code == "connect_timeout"
