"""Each fault, seen through a plain socket."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from loopback.plain_client import ASKED, COMPLETIONS, Browser, connect, exchange, read_all, read_until, request

from membrane_lite.loopback import (
    Failure,
    LoopbackProvider,
    Raw,
    Reply,
    anthropic,
    chat,
    failures,
    faults,
)
from membrane_lite.loopback.format import Asked

HELLO = Reply("Hello, world!")
STREAM = request(stream=True)
EVENTS = 8  # of HELLO's stream


def body_of(answer: bytes) -> bytes:
    return answer.partition(b"\r\n\r\n")[2]


def chunk_data(body: bytes) -> list[bytes]:
    """The data of each HTTP chunk that came whole, the last, empty one too."""
    chunks = []
    while body:
        size, _, rest = body.partition(b"\r\n")
        chunks.append(rest[: int(size, 16)])
        body = rest[int(size, 16) + 2 :]
    return chunks


@pytest.fixture
def provider() -> Iterator[LoopbackProvider]:
    with LoopbackProvider() as provider:
        yield provider


BYTES: dict[str, tuple[Any, bytes]] = {
    "closed before a byte": (faults.close(), b""),
    "garbage for an answer": (faults.garbage(), b"\x16\x03\x01 this is no HTTP\r\n\r\n"),
    "garbage of one's own": (faults.garbage(data=b"\x00"), b"\x00"),
    "the head alone": (
        faults.close(Raw(200, {"a": "b"}, "hello", framing="length")),
        b"HTTP/1.1 200 OK\r\na: b\r\nContent-Length: 5\r\n\r\n",
    ),
    "an informational answer first": (
        faults.interim(Raw(200, {}, "hello", framing="close"), headers={"link": "</x>"}),
        b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 200 OK\r\n\r\nhello",
    ),
    "two of them": (
        faults.interim(faults.interim(Raw(200, {}, "", framing="close"), status=102)),
        b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
    ),
}


@pytest.mark.parametrize("answer, expected", BYTES.values(), ids=BYTES.keys())
def test_the_bytes_of(provider: LoopbackProvider, answer: Any, expected: bytes) -> None:
    provider.extend([answer])
    assert exchange(provider) == expected


def test_a_reset_before_a_byte_of_an_answer(provider: LoopbackProvider) -> None:
    provider.extend([faults.reset()])
    with pytest.raises(ConnectionResetError):
        exchange(provider)


@pytest.mark.parametrize("after", [0, 3, EVENTS])
def test_a_reset_after_events(provider: LoopbackProvider, after: int) -> None:
    provider.extend([faults.reset(HELLO, after=after)])
    with connect(provider) as sock:
        sock.sendall(STREAM)
        seen = read_until(sock, b"".join(_frame(event) for event in _events()[:after]) or b"\r\n\r\n")
        assert chunk_data(body_of(seen)) == _events()[:after]
        with pytest.raises(ConnectionResetError):
            read_all(sock)


def test_a_close_after_events_leaves_the_body_unfinished(provider: LoopbackProvider) -> None:
    provider.extend([faults.close(HELLO, after=3)])
    assert chunk_data(body_of(exchange(provider, STREAM))) == _events()[:3]


def test_an_end_after_events_finishes_the_body(provider: LoopbackProvider) -> None:
    provider.extend([faults.end(Reply("Hello, world!", then="close"), after=3)])
    assert chunk_data(body_of(exchange(provider, STREAM))) == [*_events()[:3], b""]


@pytest.mark.parametrize("after", [0, 2])
def test_silence_after_events_lasts_until_the_peer_leaves(provider: LoopbackProvider, after: int) -> None:
    provider.extend([faults.silence(HELLO, after=after)])
    with connect(provider) as sock:
        sock.sendall(STREAM)
        read_until(sock, _frame(_events()[after - 1]) if after else b"\r\n\r\n")
        sock.settimeout(0.03)
        with pytest.raises(OSError, match="timed out"):
            sock.recv(1)
    assert provider.wait_for_close()


def test_silence_instead_of_an_answer(provider: LoopbackProvider) -> None:
    provider.extend([faults.silence()])
    with connect(provider) as sock:
        sock.sendall(STREAM)
        assert provider.wait_for_requests(1)
        sock.settimeout(0.03)
        with pytest.raises(OSError, match="timed out"):
            sock.recv(1)


def test_an_anthropic_stream_that_goes_on_with_pings(provider: LoopbackProvider) -> None:
    provider.extend([faults.drip(HELLO, after=2, every_ms=1)])
    with connect(provider) as sock:
        sock.sendall(STREAM)
        read_until(sock, b"".join(map(_frame, [*_events()[:2], anthropic.PING, anthropic.PING, anthropic.PING])))
    assert provider.wait_for_close()


def test_a_chat_stream_that_goes_on_with_comments(provider: LoopbackProvider) -> None:
    provider.extend([faults.drip(HELLO, after=0, every_ms=1)])
    with connect(provider) as sock:
        sock.sendall(request(COMPLETIONS, stream=True))
        read_until(sock, b"\r\n\r\n" + _frame(b": keep-alive\n\n") * 3)


def test_an_error_event_ends_the_stream(provider: LoopbackProvider) -> None:
    provider.extend(
        [faults.error(HELLO, after=3), faults.error(HELLO, after=1, type="rate_limit_error", message="Slow")]
    )
    with Browser(provider) as browser:
        assert browser.post(stream=True) == (200, b"".join([*_events()[:3], anthropic.error_event()]))
        assert browser.post(COMPLETIONS, stream=True) == (
            200,
            _chat_events(2)[0] + chat.error_event("rate_limit_error", "Slow"),
        )


def test_an_error_without_a_stream_is_a_status(provider: LoopbackProvider) -> None:
    provider.extend([faults.error(HELLO, after=3)])
    with Browser(provider) as browser:
        assert browser.post() == (
            529,
            b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
        )


def test_garbage_in_the_middle_of_a_stream(provider: LoopbackProvider) -> None:
    provider.extend([faults.garbage(HELLO, after=1)])
    with Browser(provider) as browser:
        assert browser.post(stream=True) == (200, _events()[0] + b"data: {]\n\n")


def test_half_of_a_document(provider: LoopbackProvider) -> None:
    provider.extend([faults.close(HELLO, after=1)])
    whole = anthropic.document(HELLO, _asked(1))
    head, _, body = exchange(provider).partition(b"\r\n\r\n")
    assert (head.endswith(b"Content-Length: %d" % len(whole)), body) == (True, whole[: len(whole) // 2])


def test_the_body_s_end_comes_late(provider: LoopbackProvider) -> None:
    provider.extend([faults.late_end(HELLO, ms=40)])
    with connect(provider) as sock:
        sock.sendall(STREAM)
        read_until(sock, _frame(_events()[-1]))
        started = time.monotonic()
        assert sock.recv(100) == b"0\r\n\r\n"
        assert time.monotonic() - started > 0.02


def test_an_answer_that_does_not_wait_for_the_request_s_body(provider: LoopbackProvider) -> None:
    provider.extend([faults.early(Failure(413, "Too large"))])
    with connect(provider) as sock:
        sock.sendall(b"POST /v1/messages HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n")
        assert read_all(sock).startswith(b"HTTP/1.1 413 ")
    assert provider.requests[0].body == b""


def test_failures_and_then_success(provider: LoopbackProvider) -> None:
    provider.extend([*failures(2, 529), *failures(1, 503, headers={"retry-after": "1"}, body="<html>"), Reply("ok")])
    overloaded = (529, b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}')
    with Browser(provider) as browser:
        answers = [browser.post() for _ in range(3)]
        status, _ = browser.post()
    assert (answers, status) == ([overloaded, overloaded, (503, b"<html>")], 200)


FAILURES: dict[str, tuple[Any, str, bytes]] = {
    "anthropic": (
        Failure(429),
        "/v1/messages",
        b'{"type":"error","error":{"type":"rate_limit_error","message":"Too Many Requests"}}',
    ),
    "chat": (
        Failure(429),
        COMPLETIONS,
        b'{"error":{"message":"Too Many Requests","type":"requests","param":null,"code":null}}',
    ),
    "a status that the format has no word for": (
        Failure(418, "Tea"),
        "/v1/messages",
        b'{"type":"error","error":{"type":"api_error","message":"Tea"}}',
    ),
    "a type of one's own": (
        Failure(400, "Bad", type="odd_error"),
        "/v1/messages",
        b'{"type":"error","error":{"type":"odd_error","message":"Bad"}}',
    ),
    "anthropic's own helper": (
        anthropic.error(404, "not_found_error", "model: x"),
        COMPLETIONS,
        b'{"type":"error","error":{"type":"not_found_error","message":"model: x"}}',
    ),
    "chat's own helper": (
        chat.error(404, "invalid_request_error", "no x", code="model_not_found", param="model"),
        "/v1/messages",
        b'{"error":{"message":"no x","type":"invalid_request_error","param":"model","code":"model_not_found"}}',
    ),
}


@pytest.mark.parametrize("answer, target, expected", FAILURES.values(), ids=FAILURES.keys())
def test_an_error_s_shape(provider: LoopbackProvider, answer: Any, target: str, expected: bytes) -> None:
    provider.extend([answer])
    with Browser(provider) as browser:
        assert browser.post(target)[1] == expected


def test_a_faulty_reply_is_checked_like_any_other(provider: LoopbackProvider) -> None:
    provider.extend([faults.reset(HELLO, after=1)])
    with Browser(provider) as browser:
        assert browser.post(messages=[])[0] == 400


def _frame(event: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(event), event)


def _events() -> list[bytes]:
    """HELLO's, as the first request of a server is answered."""
    return anthropic.events(HELLO, _asked(1))


def _chat_events(number: int) -> list[bytes]:
    return chat.events(HELLO, _asked(number))


def _asked(number: int) -> Asked:
    return Asked(body=ASKED, streamed=True, number=number)
