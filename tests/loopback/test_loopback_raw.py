"""Raw answers: recorded bytes, cut, framed and ended as the script says; seen through plain sockets."""

from __future__ import annotations

import http.client
import time
from typing import Any

import pytest
from loopback.plain_client import connect, exchange, read_until, request

from membrane_lite.loopback import Drip, LoopbackProvider, Raw
from membrane_lite.loopback.answers import cut

HEADERS = {"content-type": "text/plain"}
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"

BYTES: dict[str, tuple[dict[str, Any], bytes]] = {
    "chunked, a chunk for each write": ({"chunks": [2]}, CHUNKED + b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"),
    "chunked without its end": (
        {"framing": "chunked_without_end", "then": "close"},
        CHUNKED + b"5\r\nhello\r\n",
    ),
    "with its length": ({"framing": "length"}, HEAD + b"Content-Length: 5\r\n\r\nhello"),
    "up to the end of the connection": ({"framing": "close"}, HEAD + b"\r\nhello"),
    "closed silently": ({"framing": "length", "then": "close_silently"}, HEAD + b"Content-Length: 5\r\n\r\nhello"),
    "shorter than it says": (
        {"framing": "length", "headers": {"content-length": "9"}},
        b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello",
    ),
    "a status without a name": (
        {"status": 529, "framing": "length"},
        b"HTTP/1.1 529 \r\ncontent-type: text/plain\r\nContent-Length: 5\r\n\r\nhello",
    ),
    "a repeated header": (
        {"headers": [("a", "1"), ("a", "2")], "framing": "close"},
        b"HTTP/1.1 200 OK\r\na: 1\r\na: 2\r\n\r\nhello",
    ),
    "no body": ({"body": b""}, CHUNKED + b"0\r\n\r\n"),
}


@pytest.mark.parametrize("fields, expected", BYTES.values(), ids=BYTES.keys())
def test_the_bytes_of(fields: dict[str, Any], expected: bytes) -> None:
    raw = Raw(**{"headers": HEADERS, "body": "hello", "then": "close", **fields})
    with LoopbackProvider([raw]) as provider:
        assert exchange(provider) == expected


CUTS: dict[str, tuple[Any, list[bytes]]] = {
    "once": (None, [b"hello"]),
    "at offsets": ([1, 3], [b"h", b"el", b"lo"]),
    "each so many bytes": (2, [b"he", b"ll", b"o"]),
    "every byte": ("every_byte", [b"h", b"e", b"l", b"l", b"o"]),
    "at offsets outside": ([0, 5, 9], [b"hello"]),
}


@pytest.mark.parametrize("chunks, pieces", CUTS.values(), ids=CUTS.keys())
def test_a_body_cut(chunks: Any, pieces: list[bytes]) -> None:
    assert cut(b"hello", chunks) == pieces


@pytest.mark.parametrize("size", [1, 7])
@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
def test_small_writes_are_fast_and_arrive_whole(framing: Any, size: int) -> None:
    body = bytes(range(256)) * 80
    with LoopbackProvider([Raw(200, {}, body, chunks=size, framing=framing)]) as provider:
        connection = http.client.HTTPConnection("127.0.0.1", provider.port, timeout=5)
        started = time.monotonic()
        connection.request("GET", "/")
        answer = connection.getresponse()
        assert answer.read() == body
        assert time.monotonic() - started < 2
        answer.close()
        connection.close()


def test_a_pause_parts_the_writes() -> None:
    raw = Raw(200, {}, "hello", chunks=[2], pause_ms=30, framing="close")
    with LoopbackProvider([raw]) as provider, connect(provider) as sock:
        sock.sendall(request())
        read_until(sock, b"\r\n\r\nhe")
        started = time.monotonic()
        assert sock.recv(100) == b"llo"
        assert time.monotonic() - started > 0.015


def test_a_kept_connection_serves_the_next_request() -> None:
    with LoopbackProvider([Raw(200, {}, "a"), Raw(200, {}, "b")]) as provider, connect(provider) as sock:
        sock.sendall(request())
        read_until(sock, b"0\r\n\r\n")
        sock.sendall(request())
        assert b"1\r\nb\r\n" in read_until(sock, b"0\r\n\r\n")
        assert [received.connection for received in provider.requests] == [1, 1]
        assert provider.connections_made == 1


def test_a_reset_lets_what_was_sent_arrive_first() -> None:
    raw = Raw(200, {}, "hello", framing="length", then="reset")
    with LoopbackProvider([raw]) as provider, connect(provider) as sock:
        sock.sendall(request())
        read_until(sock, b"hello")
        with pytest.raises(ConnectionResetError):
            sock.recv(1)


def test_a_hanging_connection_is_silent_until_the_peer_ends_it() -> None:
    with LoopbackProvider([Raw(200, {}, "hello", framing="length", then="hang")]) as provider:
        with connect(provider) as sock:
            sock.sendall(request())
            read_until(sock, b"hello")
            sock.settimeout(0.03)
            with pytest.raises(OSError, match="timed out"):
                sock.recv(1)
            assert provider.connections_open == 1
        assert provider.wait_for_close()


def test_a_drip_goes_on_until_the_peer_ends_it() -> None:
    drip = Drip(b": drip\n\n", every_ms=1)
    with LoopbackProvider([Raw(200, {}, "hello", drip=drip, framing="close")]) as provider:
        with connect(provider) as sock:
            sock.sendall(request())
            read_until(sock, b"hello: drip\n\n: drip\n\n: drip\n\n")
        assert provider.wait_for_close()


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "then": (
        {"then": "rst"},
        "then: found 'rst'; expected one of keep_alive, close, reset, hang, close_silently",
    ),
    "framing": (
        {"framing": "gzip"},
        "framing: found 'gzip'; expected one of chunked, length, close, chunked_without_end",
    ),
}


@pytest.mark.parametrize("fields, message", MISTAKES.values(), ids=MISTAKES.keys())
def test_a_word_that_is_none_is_found_when_the_script_is_written(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        Raw(**fields)
    assert str(caught.value) == message
