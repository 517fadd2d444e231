"""Requests go out byte for byte, answers come in whole, and connections are used again: on every way to a server."""

from __future__ import annotations

import socket
import threading
import time
import zlib
from collections.abc import Callable

import pytest
from certificates import Certificates
from raw_server import Peer, RawServer, answers
from ways import DIRECT_WAYS, WAYS, call, direct, request, way

from membrane_lite.errors import MembraneError

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
CLOSES = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
every_way = pytest.mark.parametrize("name", WAYS)


# What is sent.


@every_way
def test_the_target_is_sent_as_it_was_given(name: str, certificates: Certificates) -> None:
    path = "/model/a%3ab/../x/./%zz/|{c}/100%?key=a%2fb"
    with way(name, certificates, answers) as (server, transport):
        transport.open(request(server.url(path)), call()).close()
        shown = server.url(path) if name == "plain through a proxy" else path
        assert server.requests[0].line == f"POST {shown} HTTP/1.1"


def test_headers_are_sent_in_their_order_and_nothing_is_added_but_what_http_needs() -> None:
    headers = (("X-B", "1"), ("x-a", "2"), ("X-B", "3"), ("Authorization", "Bearer k\u00e9y"))
    with RawServer(answers) as server, direct() as transport:
        transport.open(request(server.url(), b"body", headers=headers), call()).finish()
        assert server.requests[0].pairs == [
            ("Host", f"127.0.0.1:{server.port}"),
            *headers,
            ("Accept-Encoding", "identity"),
            ("Content-Length", "4"),
        ]
        assert server.requests[0].body == b"body"


@every_way
def test_a_large_body_arrives_whole(name: str, certificates: Certificates) -> None:
    body = bytes(range(256)) * 8192  # 2 MiB
    with way(name, certificates, answers) as (server, transport):
        assert transport.open(request(server.url(), body), call()).read(100) == b"ok"
        assert server.requests[0].body == body


def test_a_redirect_is_an_answer_like_any_other() -> None:
    def redirects(peer: Peer) -> None:
        peer.request()
        peer.answer(b"", status="307 Temporary Redirect", headers=("Location: http://127.0.0.1:9/",))

    with RawServer(redirects) as server, direct() as transport:
        stream = transport.open(request(server.url()), call())
        stream.close()
        assert (stream.status, dict(stream.headers)["Location"]) == (307, "http://127.0.0.1:9/")
        assert len(server.requests) == 1


# What is received.

FRAMINGS = {
    "chunked": CHUNKED + b"3;ext=1\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: x\r\n\r\n",
    "with a length": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde",
    "to the end of the connection": CLOSES + b"abcde",
    "HTTP/1.0": b"HTTP/1.0 200 OK\r\n\r\nabcde",
    "chunked, without the last blank line": CHUNKED + b"5\r\nabcde\r\n0\r\n",
    "after 100 and 102": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 P\r\nX: y\r\n\r\n"
    + CHUNKED
    + b"5\r\nabcde\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("name", DIRECT_WAYS)
@pytest.mark.parametrize("answer", FRAMINGS.values(), ids=FRAMINGS.keys())
@pytest.mark.parametrize("step", [1, 7, 100_000])
def test_a_body_in_any_framing_and_cut_anywhere(
    name: str, answer: bytes, step: int, certificates: Certificates
) -> None:
    def script(peer: Peer) -> None:
        peer.request()
        peer.send(*(answer[at : at + step] for at in range(0, len(answer), step)))

    with way(name, certificates, script) as (server, transport):
        stream = transport.open(request(server.url()), call())
        assert (stream.status, b"".join(stream)) == (200, b"abcde")


@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified"])
def test_an_answer_without_a_body(status: str) -> None:
    def script(peer: Peer) -> None:
        while peer.request():
            peer.send(f"HTTP/1.1 {status}\r\nContent-Encoding: gzip\r\n\r\n".encode())

    with RawServer(script) as server, direct() as transport:
        for _ in range(2):
            assert b"".join(transport.open(request(server.url()), call())) == b""
        assert server.connections == 1


@every_way
@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
def test_each_piece_is_there_at_once(name: str, framing: str, certificates: Certificates) -> None:
    heads = {"chunked": CHUNKED, "length": b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", "close": CLOSES}
    go_on = threading.Semaphore(0)

    def script(peer: Peer) -> None:
        peer.request()
        peer.send(heads[framing])
        for piece in (b"one", b"two", b"six"):
            peer.send(b"3\r\n" + piece + b"\r\n" if framing == "chunked" else piece)
            go_on.acquire(timeout=5)
        peer.send(b"0\r\n\r\n" if framing == "chunked" else b"")

    with way(name, certificates, script) as (server, transport):
        received = []
        for piece in transport.open(request(server.url()), call()):
            received.append(piece)
            go_on.release()  # the next piece is sent only after this one was read
        assert received == [b"one", b"two", b"six"]


@every_way
def test_a_103_is_not_the_answer_and_the_next_call_reads_its_own(name: str, certificates: Certificates) -> None:
    def script(peer: Peer) -> None:
        while (received := peer.request()) is not None:
            peer.send(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
            peer.answer(received.body)

    with way(name, certificates, script) as (server, transport):
        bodies = []
        for body in (b"one", b"two", b"six"):
            stream = transport.open(request(server.url(), body), call())
            bodies.append((stream.status, stream.read(10)))
        assert bodies == [(200, b"one"), (200, b"two"), (200, b"six")]
        assert server.connections == 1


def gzipped(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=31)
    return packer.compress(data) + packer.flush()


CODED = {
    "gzip": (b"gzip", gzipped(b"hello " * 1000)),
    "deflate": (b"deflate", zlib.compress(b"hello " * 1000)),
    "gzip in two members": (b"x-gzip", gzipped(b"hello " * 400) + gzipped(b"hello " * 600)),
    "identity": (b"Identity", b"hello " * 1000),
}


@pytest.mark.parametrize("coding, body", CODED.values(), ids=CODED.keys())
@pytest.mark.parametrize("step", [1, 100_000])
def test_a_coded_body_is_decoded(coding: bytes, body: bytes, step: int) -> None:
    pieces = [body[at : at + step] for at in range(0, len(body), step)]

    def script(peer: Peer) -> None:
        peer.request()
        peer.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Encoding: " + coding + b"\r\n\r\n")
        peer.send(*(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in [*pieces, b""]))

    with RawServer(script) as server, direct() as transport:
        assert b"".join(transport.open(request(server.url()), call())) == b"hello " * 1000


def test_a_flushed_event_is_decoded_at_once() -> None:
    go_on = threading.Semaphore(0)

    def script(peer: Peer) -> None:
        peer.request()
        peer.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Encoding: gzip\r\n\r\n")
        packer = zlib.compressobj(wbits=31)
        for piece in (b"one", b"two"):
            peer.send(packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH))
            go_on.acquire(timeout=5)
        peer.send(packer.flush())

    with RawServer(script) as server, direct() as transport:
        received = []
        for piece in transport.open(request(server.url()), call()):
            received.append(piece)
            go_on.release()
        assert received == [b"one", b"two"]


def test_a_small_bomb_meets_the_limit_of_decoded_bytes() -> None:
    body = gzipped(bytes(20_000_000))

    def script(peer: Peer) -> None:
        peer.request()
        peer.answer(body, headers=("Content-Encoding: gzip",))

    with RawServer(script) as server, direct(max_response_bytes=5_000_000) as transport:
        stream = transport.open(request(server.url()), call())
        sizes = []
        with pytest.raises(MembraneError) as caught:
            sizes.extend(len(piece) for piece in stream)
        assert (caught.value.type, caught.value.retryable) == ("server", False)
        assert (
            caught.value.message
            == f"{server.url('')}: the answer is larger than max_response_bytes, 5000000 bytes decoded"
        )


def test_an_answer_as_large_as_the_limit_is_not_too_large() -> None:
    def script(peer: Peer) -> None:
        peer.request()
        peer.answer(b"x" * 5000)

    with RawServer(script) as server, direct(max_response_bytes=5000) as transport:
        assert len(b"".join(transport.open(request(server.url()), call()))) == 5000


READS = {  # limit -> what read() gives, whether the connection serves the next call
    "more than there is": (10, b"12345", True),
    "just as much": (5, b"12345", True),
    "less": (4, b"1234", False),
}


@pytest.mark.parametrize("limit, expected, kept", READS.values(), ids=READS.keys())
def test_read_takes_at_most_its_limit(limit: int, expected: bytes, kept: bool) -> None:
    def script(peer: Peer) -> None:
        while peer.request():
            peer.answer(b"12345")

    with RawServer(script) as server, direct() as transport:
        assert transport.open(request(server.url()), call()).read(limit) == expected
        transport.open(request(server.url()), call()).finish()
        assert server.connections == (1 if kept else 2)


# Early answers.


@pytest.mark.parametrize("name", DIRECT_WAYS)
def test_an_answer_that_comes_before_the_body_was_taken_is_read(name: str, certificates: Certificates) -> None:
    def script(peer: Peer) -> None:
        peer.head()
        peer.answer(b"too large", status="413 Content Too Large")
        time.sleep(0.1)  # lets the answer arrive; then the close resets what is still being sent

    with way(name, certificates, script, answers) as (server, transport):
        stream = transport.open(request(server.url(), bytes(30_000_000)), call())
        assert (stream.status, stream.read(100)) == (413, b"too large")
        assert transport.open(request(server.url()), call()).read(100) == b"ok"
        assert server.connections == 2


# Connections between calls.


@every_way
def test_a_connection_serves_call_after_call(name: str, certificates: Certificates) -> None:
    with way(name, certificates, answers) as (server, transport):
        for _ in range(5):
            assert transport.open(request(server.url()), call()).read(10) == b"ok"
        assert (server.connections, len(server.requests)) == (1, 5)


def terminal_event_then(terminator: Callable[[Peer], None]) -> Callable[[Peer], None]:
    """A chunked stream whose last event is followed by whatever `terminator` does."""

    def script(peer: Peer) -> None:
        while peer.request():
            peer.send(CHUNKED + b"4\r\nlast\r\n")
            terminator(peer)

    return script


def finish_after_the_last_event(
    name: str, certificates: Certificates, script: Callable[[Peer], None]
) -> tuple[int, float]:
    """How many connections two calls took, when each stops at the event "last"; and how long the second one took."""
    with way(name, certificates, script, answers) as (server, transport):
        stream = transport.open(request(server.url()), call())
        assert next(iter(stream)) == b"last"
        stream.finish()
        time.sleep(0.02)
        started = time.monotonic()
        transport.open(request(server.url()), call()).close()
        return server.connections, time.monotonic() - started


@every_way
def test_a_terminator_in_the_same_packet_lets_the_connection_be_used_again(
    name: str, certificates: Certificates
) -> None:
    def script(peer: Peer) -> None:
        while peer.request():
            peer.send(CHUNKED + b"4\r\nlast\r\n0\r\n\r\n")

    assert finish_after_the_last_event(name, certificates, script)[0] == 1


@every_way
def test_so_does_one_that_comes_after_the_call_but_before_the_next(name: str, certificates: Certificates) -> None:
    script = terminal_event_then(lambda peer: (time.sleep(0.005), peer.send(b"0\r\n\r\n"))[-1])
    assert finish_after_the_last_event(name, certificates, script)[0] == 1


@every_way
def test_nobody_waits_for_one_that_never_comes(name: str, certificates: Certificates) -> None:
    connections, seconds = finish_after_the_last_event(
        name, certificates, terminal_event_then(lambda peer: peer.wait_for_client_to_close())
    )
    assert connections == 2
    assert seconds < 1


SURPLUS = {  # what follows the event "last" -> the body of the next call
    "another event: the connection is given up": (b"4\r\nmore\r\n0\r\n\r\n", b"ok"),
    "an answer nobody asked for: it is dropped": (
        b"0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
        b"last",
    ),
}


@pytest.mark.parametrize("name", DIRECT_WAYS)
@pytest.mark.parametrize("surplus, body", SURPLUS.values(), ids=SURPLUS.keys())
def test_what_follows_the_end_is_never_taken_for_the_next_answer(
    name: str, surplus: bytes, body: bytes, certificates: Certificates
) -> None:
    script = terminal_event_then(lambda peer: (time.sleep(0.005), peer.send(surplus))[-1])
    with way(name, certificates, script, answers) as (server, transport):
        stream = transport.open(request(server.url()), call())
        assert next(iter(stream)) == b"last"
        stream.finish()
        time.sleep(0.02)
        stream = transport.open(request(server.url()), call())
        assert next(iter(stream)) == body
        stream.close()


def test_an_answer_nobody_asked_for_that_comes_late_is_not_taken_either() -> None:
    def script(peer: Peer) -> None:
        peer.request()
        peer.answer(b"one")
        time.sleep(0.01)
        peer.answer(b"evil")
        peer.wait_for_client_to_close()

    with RawServer(script, answers) as server, direct() as transport:
        assert transport.open(request(server.url()), call()).read(10) == b"one"
        time.sleep(0.03)
        assert transport.open(request(server.url()), call()).read(10) == b"ok"


@every_way
def test_a_connection_that_was_closed_while_idle_is_replaced(name: str, certificates: Certificates) -> None:
    def closes_silently(peer: Peer) -> None:
        peer.request()
        peer.answer(b"one")

    with way(name, certificates, closes_silently, answers) as (server, transport):
        assert transport.open(request(server.url()), call()).read(10) == b"one"
        time.sleep(0.02)
        assert transport.open(request(server.url()), call()).read(10) == b"ok"
        assert (server.connections, len(server.requests)) == (2, 2)


ENDINGS = {"an end": Peer.close, "a reset": Peer.reset}


@pytest.mark.parametrize("name", DIRECT_WAYS)
@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS.keys())
def test_one_that_is_closed_just_as_we_send_is_replaced_once(
    name: str, ending: Callable[[Peer], None], certificates: Certificates
) -> None:
    def closes_on_the_second(peer: Peer) -> None:
        peer.request()
        peer.answer(b"one")
        peer.request()
        ending(peer)

    with way(name, certificates, closes_on_the_second, answers) as (server, transport):
        assert transport.open(request(server.url()), call()).read(10) == b"one"
        assert transport.open(request(server.url()), call()).read(10) == b"ok"
        assert (server.connections, len(server.requests)) == (2, 3)


def test_the_replacement_is_not_replaced() -> None:
    def closes_on_the_second(peer: Peer) -> None:
        peer.request()
        peer.answer(b"one")
        peer.request()

    def closes(peer: Peer) -> None:
        peer.request()

    with RawServer(closes_on_the_second, closes) as server, direct() as transport:
        transport.open(request(server.url()), call()).read(10)
        with pytest.raises(MembraneError) as caught:
            transport.open(request(server.url()), call())
        assert (caught.value.type, caught.value.retryable) == ("network", True)
        assert (server.connections, len(server.requests)) == (2, 3)


def test_a_fresh_connection_that_fails_is_not_replaced() -> None:
    with RawServer(lambda peer: peer.request() and None) as server, direct() as transport:
        with pytest.raises(MembraneError):
            transport.open(request(server.url()), call())
        assert (server.connections, len(server.requests)) == (1, 1)


def test_a_reused_connection_that_began_to_answer_is_not_replaced() -> None:
    def cut_on_the_second(peer: Peer) -> None:
        peer.request()
        peer.answer(b"one")
        peer.request()
        peer.send(b"HTTP/1.1 20")

    with RawServer(cut_on_the_second, answers) as server, direct() as transport:
        transport.open(request(server.url()), call()).read(10)
        with pytest.raises(MembraneError):
            transport.open(request(server.url()), call())
        assert (server.connections, len(server.requests)) == (1, 2)


class SettableClock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def monotonic(self) -> float:
        return self.seconds

    def pass_by(self, seconds: float) -> None:
        self.seconds += seconds


IDLE = {"a minute is not too long": (60.0, 1), "more is": (60.5, 2)}


@pytest.mark.parametrize("seconds, connections", IDLE.values(), ids=IDLE.keys())
def test_a_connection_is_idle_for_a_minute_at_most(seconds: float, connections: int) -> None:
    clock = SettableClock()
    with RawServer(answers) as server, direct() as transport:
        transport.open(request(server.url()), call(clock=clock, timeout_ms=None)).read(10)  # type: ignore[arg-type]
        clock.pass_by(seconds)
        transport.open(request(server.url()), call(clock=clock, timeout_ms=None)).read(10)  # type: ignore[arg-type]
        assert server.connections == connections


def test_no_more_than_pool_size_are_kept_and_the_one_used_last_goes_first() -> None:
    with RawServer(answers) as server, direct(pool_size=2) as transport:
        streams = [transport.open(request(server.url()), call()) for _ in range(4)]
        for stream in streams:
            assert stream.read(10) == b"ok"
        streams = [transport.open(request(server.url()), call()) for _ in range(3)]
        assert server.connections == 5  # two of four were kept, the third call made a new one
        for stream in streams:
            stream.close()


def test_finish_and_close_count_once_whichever_comes_first() -> None:
    with RawServer(answers) as server, direct() as transport:
        for _ in range(2):
            stream = transport.open(request(server.url()), call())
            assert next(iter(stream)) == b"ok"
            stream.finish()
            stream.close()
            assert list(stream) == []
        assert server.connections == 1
        stream = transport.open(request(server.url()), call())
        stream.close()
        stream.finish()
        transport.open(request(server.url()), call()).close()
        assert server.connections == 2


def test_a_stream_that_is_over_reads_nothing_of_the_next_answer() -> None:
    with RawServer(answers) as server, direct() as transport:
        first = transport.open(request(server.url()), call())
        first.finish()
        second = transport.open(request(server.url()), call())
        assert (list(first), list(second)) == ([], [b"ok"])


def test_names_with_several_addresses_and_a_host_given_by_name() -> None:
    with RawServer(answers) as server, direct() as transport:
        stream = transport.open(request(server.url(host="localhost")), call())
        assert stream.read(10) == b"ok"
        assert server.requests[0].headers["host"] == f"localhost:{server.port}"


def test_an_ipv6_host() -> None:
    try:
        listening = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("no IPv6 here")
    with listening, direct() as transport:
        port = listening.getsockname()[1]

        def serve() -> None:
            sock, _ = listening.accept()
            with sock:
                assert f"Host: [::1]:{port}\r\n".encode() in sock.recv(65536)
                sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

        thread = threading.Thread(target=serve)
        thread.start()
        assert transport.open(request(f"http://[::1]:{port}/"), call()).read(10) == b"ok"
        thread.join()
