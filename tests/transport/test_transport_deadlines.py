"""A deadline holds wherever a call waits, also against a server that keeps sending a little."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from certificates import Certificates
from raw_server import Peer, RawServer, answers
from ways import DIRECT_WAYS, WAYS, call, direct, request, way

from membrane_lite.call import Call
from membrane_lite.errors import MembraneError

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n"
LIMIT_MS = 60
AT_MOST_S = 1.0  # on a machine that is busy with something else


def drips(before: bytes, drop: bytes) -> Callable[[Peer], None]:
    """Send `before`, then one drop after another, each well within any limit between bytes."""

    def script(peer: Peer) -> None:
        peer.head()
        peer.send(before)
        while True:
            peer.send(drop)
            time.sleep(0.005)

    return script


def silent_after(sent: bytes) -> Callable[[Peer], None]:
    def script(peer: Peer) -> None:
        peer.head()
        peer.send(sent)
        peer.wait_for_test()

    return script


def spent(run: Callable[[], object]) -> tuple[float, MembraneError]:
    started = time.monotonic()
    with pytest.raises(MembraneError) as caught:
        run()
    return time.monotonic() - started, caught.value


WHOLE_CALL = {
    "silence before the head": (silent_after(b""), b"{}"),
    "a head that drips": (drips(b"HTTP/1.1 200 OK\r\nX: ", b"y"), b"{}"),
    "interim answers that drip": (drips(b"", b"HTTP/1.1 100 Continue\r\n\r\n"), b"{}"),
    "silence in the body": (silent_after(CHUNKED), b"{}"),
    "a body that drips": (drips(CHUNKED, b"1\r\nx\r\n"), b"{}"),
    "a chunk size that drips": (drips(CHUNKED + b"1;", b"x"), b"{}"),
    "trailers that drip": (drips(CHUNKED + b"0\r\n", b"x: y\r\n"), b"{}"),
    "a body that is not taken": (silent_after(b""), bytes(30_000_000)),
}


# The proxy of these tests would block in its turn where the server takes no body.
EVERYWHERE = [(place, name) for place in WHOLE_CALL for name in WAYS if "taken" not in place or name in DIRECT_WAYS]


@pytest.mark.parametrize("place, name", EVERYWHERE)
def test_timeout_ms_ends_the_call(place: str, name: str, certificates: Certificates) -> None:
    script, body = WHOLE_CALL[place]
    with way(name, certificates, script) as (server, transport):
        seconds, error = spent(lambda: list(transport.open(request(server.url(), body), call(timeout_ms=LIMIT_MS))))
        server.go_on.set()
    assert error.message == "timeout_ms: the call took longer than its 60 ms"
    assert (error.type, error.retryable, error.provider_error_code) == ("timeout", False, "call_timeout")
    assert LIMIT_MS / 1000 <= seconds < AT_MOST_S


def test_the_first_event_is_waited_for_from_the_send_on() -> None:
    def script(peer: Peer) -> None:
        peer.head()
        peer.send(CHUNKED)
        peer.wait_for_test()

    limits = call(first_event_ms=LIMIT_MS, idle_ms=10)
    with RawServer(script) as server, direct() as transport:
        # An idle limit of 10 ms means nothing before the first event; bytes alone are none.
        seconds, error = spent(lambda: list(transport.open(request(server.url()), limits)))
        server.go_on.set()
    assert error.message == "first_event_timeout_ms: no first event within 60 ms of sending the request"
    assert (error.type, error.retryable, error.failure_class) == ("timeout", True, "deadline")
    assert LIMIT_MS / 1000 <= seconds < AT_MOST_S


def read_with_first_event(stream: object, limits: Call) -> list[bytes]:
    """As an adapter reads: the first piece is the first event."""
    pieces = []
    for piece in stream:  # type: ignore[attr-defined]
        if not pieces:
            limits.deadlines.first_event()
        pieces.append(piece)
    return pieces


def test_silence_between_bytes_is_bounded_after_the_first_event() -> None:
    limits = call(idle_ms=LIMIT_MS)
    with RawServer(silent_after(CHUNKED)) as server, direct() as transport:
        seconds, error = spent(lambda: read_with_first_event(transport.open(request(server.url()), limits), limits))
        server.go_on.set()
    assert (error.type, error.retryable, error.message) == ("timeout", True, "idle_timeout_ms: no byte for 60 ms")
    assert LIMIT_MS / 1000 <= seconds < AT_MOST_S


DROPS = {  # what comes before the drops, the drop, what comes after them
    "comments of the stream": (b"", b"1\r\n:\r\n", b"", 9),
    "parts of a chunk's size": (b"3;", b"x", b"\r\ntwo\r\n", 2),
}


@pytest.mark.parametrize("before, drop, after, pieces", DROPS.values(), ids=DROPS.keys())
def test_any_bytes_put_the_idle_limit_off(before: bytes, drop: bytes, after: bytes, pieces: int) -> None:
    def script(peer: Peer) -> None:
        peer.request()
        peer.send(CHUNKED, before)
        for _ in range(8):
            time.sleep(0.03)
            peer.send(drop)
        peer.send(after, b"0\r\n\r\n")

    limits = call(idle_ms=200)
    with RawServer(script) as server, direct() as transport:
        assert len(read_with_first_event(transport.open(request(server.url()), limits), limits)) == pieces


def test_the_time_a_reader_takes_is_not_the_servers_silence() -> None:
    def script(peer: Peer) -> None:
        peer.request()
        peer.send(CHUNKED)
        peer.wait_for_test()
        peer.send(b"3\r\ntwo\r\n0\r\n\r\n")

    limits = call(idle_ms=50)
    with RawServer(script) as server, direct() as transport:
        pieces = iter(transport.open(request(server.url()), limits))
        assert next(pieces) == b"one"
        limits.deadlines.first_event()
        server.go_on.set()
        time.sleep(0.1)
        assert list(pieces) == [b"two"]


def test_no_progress_is_an_error_although_bytes_come() -> None:
    limits = call(progress_ms=LIMIT_MS, idle_ms=1000)
    with RawServer(drips(CHUNKED, b"1\r\n:\r\n")) as server, direct() as transport:
        seconds, error = spent(lambda: read_with_first_event(transport.open(request(server.url()), limits), limits))
    assert (error.provider_error_code, error.retryable) == ("response_progress_timeout", False)
    assert LIMIT_MS / 1000 <= seconds < AT_MOST_S


def test_a_call_that_is_over_before_it_began_opens_nothing() -> None:
    with RawServer(answers) as server, direct() as transport:
        _, error = spent(lambda: transport.open(request(server.url()), call(timeout_ms=0)))
        assert (error.provider_error_code, server.connections) == ("call_timeout", 0)


def test_a_call_without_any_limit_is_answered() -> None:
    limits = call(timeout_ms=None, idle_ms=0)
    with RawServer(answers) as server, direct() as transport:
        assert transport.open(request(server.url()), limits).read(10) == b"ok"


CONNECTING = {  # scheme of the URL, scheme of the proxy
    "a TLS handshake": ("https", ""),
    "a proxy's answer to CONNECT": ("https", "http"),
    "a proxy's TLS handshake": ("http", "https"),
}


@pytest.mark.parametrize("scheme, proxy_scheme", CONNECTING.values(), ids=CONNECTING.keys())
def test_the_limit_for_connecting_covers(scheme: str, proxy_scheme: str) -> None:
    with RawServer(lambda peer: peer.wait_for_test()) as silent:
        url = f"{scheme}://127.0.0.1:{silent.port}"
        proxy = f"{proxy_scheme}://127.0.0.1:{silent.port}" if proxy_scheme else None
        with direct(proxy=proxy, connect_timeout_ms=LIMIT_MS) as transport:
            seconds, error = spent(lambda: transport.open(request(url), call()))
        silent.go_on.set()
    through = f" through the proxy {proxy} (from proxy=)" if proxy else ""
    assert error.message == f"connect_timeout_ms: {url}{through}: no connection within 60 ms"
    assert (error.type, error.retryable, error.failure_class) == ("timeout", True, "transient")
    assert error.provider_error_code == "connect_timeout"
    assert LIMIT_MS / 1000 <= seconds < AT_MOST_S


@pytest.mark.parametrize("name", DIRECT_WAYS)
def test_the_limit_for_connecting_ends_with_the_connection(name: str, certificates: Certificates) -> None:
    def script(peer: Peer) -> None:
        peer.request()
        time.sleep(0.45)
        peer.answer()

    with way(name, certificates, script, connect_timeout_ms=400) as (server, transport):
        assert transport.open(request(server.url()), call()).read(10) == b"ok"
