# ruff: noqa: E501 - a row of a table is a line
"""What can go wrong on the wire, and what the caller is told: type, whether to send again, and in which words."""

from __future__ import annotations

import errno
import socket
import ssl
import time
import zlib
from collections.abc import Callable
from http.client import BadStatusLine, HTTPException, IncompleteRead, LineTooLong, RemoteDisconnected
from typing import NamedTuple

import pytest
from certificates import Certificates
from raw_server import Peer, RawServer
from ways import DIRECT_WAYS, WAYS, call, direct, request, way

from membrane_lite.errors import MembraneError
from membrane_lite.transport.failures import failure

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


def verification_error() -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED]")
    error.verify_message = "certificate has expired"
    return error


def tls_error(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, f"[SSL: {reason}]")
    error.reason = reason
    return error


class Row(NamedTuple):
    phase: str
    raised: BaseException
    type: str
    retryable: bool
    says: str


TABLE = {
    "name unknown": Row("connect", socket.gaierror(-2, "unknown"), "network", True, "the host's name was not found"),
    "name impossible": Row(
        "connect", UnicodeError("label too long"), "invalid_request", False, "url: the host is no possible name"
    ),
    "refused": Row("connect", ConnectionRefusedError(111, "refused"), "network", True, "the connection was refused"),
    "no descriptors left": Row("connect", OSError(errno.EMFILE, "many"), "network", False, "may open no more files"),
    "no thread for a look-up": Row("connect", RuntimeError("can't start"), "network", False, "no thread"),
    "unreachable": Row(
        "connect", OSError(errno.ENETUNREACH, "net"), "network", True, "the connection failed while connecting"
    ),
    "handshake reset": Row(
        "connect", ConnectionResetError(104, "reset"), "network", True, "the connection failed while connecting"
    ),
    "handshake closed": Row(
        "connect", ssl.SSLEOFError(8, "EOF"), "network", True, "the TLS connection was closed while connecting"
    ),
    "handshake closed politely": Row(
        "connect", ssl.SSLZeroReturnError(6, "zero"), "network", True, "the TLS connection was closed"
    ),
    "handshake alert": Row(
        "connect", tls_error("SSLV3_ALERT_HANDSHAKE_FAILURE"), "network", False, "the TLS handshake failed"
    ),
    "https to an http port": Row(
        "connect", tls_error("WRONG_VERSION_NUMBER"), "network", False, "is it an https:// server"
    ),
    "certificate": Row(
        "connect", verification_error(), "network", False, "certificate verify failed: certificate has expired"
    ),
    "client certificate asked for, sending": Row(
        "send", tls_error("TLSV13_ALERT_CERTIFICATE_REQUIRED"), "network", False, "pass client_cert="
    ),
    "client certificate asked for, waiting": Row(
        "await", tls_error("TLSV13_ALERT_CERTIFICATE_REQUIRED"), "network", False, "pass client_cert="
    ),
    "a record that cannot be read": Row(
        "body", tls_error("BAD_RECORD_MAC"), "network", True, "the TLS connection broke"
    ),
    "proxy closes": Row(
        "connect", RemoteDisconnected("closed"), "network", True, "closed without an answer while connecting"
    ),
    "proxy speaks garbage": Row(
        "connect", BadStatusLine("hi\r\n"), "network", True, "something else than HTTP was received"
    ),
    "reset while sending": Row(
        "send", ConnectionResetError(104, "reset"), "network", True, "while the request was being sent"
    ),
    "broken pipe": Row("send", BrokenPipeError(32, "pipe"), "network", True, "while the request was being sent"),
    "closed before an answer": Row("await", RemoteDisconnected("closed"), "network", True, "closed without an answer"),
    "the kernel gave up": Row(
        "await", TimeoutError(errno.ETIMEDOUT, "timed out"), "network", True, "while waiting for the answer"
    ),
    "garbage": Row("await", BadStatusLine("SSH-2.0"), "network", True, "received 'SSH-2.0'"),
    "head cut": Row("await", IncompleteRead(b""), "network", True, "the head of the answer was cut off"),
    "long line": Row("await", LineTooLong("header line"), "network", True, "the answer breaks HTTP's rules or limits"),
    "many headers": Row(
        "await", HTTPException("got more than 100"), "network", True, "the answer breaks HTTP's rules or limits"
    ),
    "body cut": Row("body", IncompleteRead(b""), "network", True, "the body was cut off, or its chunks are malformed"),
    "body reset": Row("body", ConnectionResetError(104, "reset"), "network", True, "in the middle of the answer"),
}


@pytest.mark.parametrize("row", TABLE.values(), ids=TABLE.keys())
def test_the_table(row: Row) -> None:
    error = failure(row.phase, row.raised, "https://server.example")  # type: ignore[arg-type]
    assert error is not None
    assert (error.type, error.retryable) == (row.type, row.retryable)
    assert error.message.startswith("https://server.example: ")
    assert row.says in error.message


def test_a_fault_of_ours_is_no_failure_of_the_network() -> None:
    assert failure("body", AttributeError("x"), "here") is None


def sends(*pieces: bytes) -> Callable[[Peer], None]:
    """Read a request, send this, close."""

    def script(peer: Peer) -> None:
        peer.request()
        peer.send(*pieces)

    return script


def resets_after(*pieces: bytes) -> Callable[[Peer], None]:
    def script(peer: Peer) -> None:
        peer.request()
        peer.send(*pieces)
        time.sleep(0.01)  # a reset overtakes what was not read yet
        peer.reset()

    return script


def resets_while_receiving(peer: Peer) -> None:
    peer.head()
    peer.reset()


def coded(coding: bytes, body: bytes) -> Callable[[Peer], None]:
    return sends(OK + b"Content-Encoding: %s\r\nContent-Length: %d\r\n\r\n" % (coding, len(body)) + body)


PACKED = zlib.compressobj(wbits=31)
GZIP = PACKED.compress(b"x" * 100) + PACKED.flush()

ON_THE_WIRE = {  # script -> type, retryable, words
    "reset while sending": (resets_while_receiving, "network", True, ""),
    "closed before an answer": (sends(), "network", True, "the connection was closed without an answer"),
    "reset before an answer": (resets_after(), "network", True, "while waiting for the answer"),
    "the status line cut": (sends(b"HTTP/1.1 20"), "network", True, "while waiting for the answer"),
    "the head cut inside a line": (sends(OK + b"Content-Len"), "network", True, "the head of the answer was cut off"),
    "the head cut before its end": (sends(OK + b"X: y\r\n"), "network", True, "the head of the answer was cut off"),
    "the head after a 103 cut": (sends(b"HTTP/1.1 103 H\r\n\r\n" + OK), "network", True, "the head of the answer was cut off"),
    "no answer after a 103": (sends(b"HTTP/1.1 103 H\r\n\r\n"), "network", True, "closed without an answer"),
    "garbage": (sends(b"SSH-2.0-OpenSSH_9.6\r\n"), "network", True, "received 'SSH-2.0-OpenSSH_9.6\\r\\n'"),
    "HTTP/0.9": (sends(b"<html>hello</html>"), "network", True, "something else than HTTP was received"),
    "HTTP/2": (sends(b"HTTP/2.0 200 OK\r\n\r\n"), "network", True, "HTTP"),
    "a long line": (sends(OK + b"X: " + b"y" * 70_000 + b"\r\n\r\n"), "network", True, "breaks HTTP's rules or limits"),
    "many headers": (sends(OK + b"X: y\r\n" * 101 + b"\r\n"), "network", True, "breaks HTTP's rules or limits"),
    "a line without a colon": (
        sends(OK + b"X: y\r\nno colon\r\nContent-Length: 0\r\n\r\n"), "network", True, "has no colon",
    ),
    "101": (sends(b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"), "invalid_request", False, "the server answered 101"),
    "1xx without end": (sends(b"HTTP/1.1 102 P\r\n\r\n" * 50), "network", True, "interim answers (102) came without end"),
    "100 without end": (sends(*[b"HTTP/1.1 100 C\r\nX: %s\r\n\r\n" % (b"y" * 60_000)] * 200), "network", True, "a head of more than"),
    "another transfer coding": (
        sends(OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n"), "network", False, "Transfer-Encoding: 'gzip, chunked'",
    ),
    "another content coding": (coded(b"br", b"x"), "network", False, "Content-Encoding: 'br'; expected gzip, deflate or none"),
    "two content codings": (coded(b"gzip, gzip", b"x"), "network", False, "Content-Encoding: 'gzip, gzip'"),
    "Content-Length short": (sends(OK + b"Content-Length: 10\r\n\r\nabc"), "network", True, "the body ended 7 bytes short"),
    "Content-Length, nothing": (sends(OK + b"Content-Length: 10\r\n\r\n"), "network", True, "the body ended 10 bytes short"),
    "reset in a body with a length": (resets_after(OK + b"Content-Length: 10\r\n\r\nabc"), "network", True, ""),
    "chunks cut at a boundary": (sends(CHUNKED + b"3\r\nabc\r\n"), "network", True, "the body was cut off"),
    "chunks cut inside data": (sends(CHUNKED + b"5\r\nabc"), "network", True, "the body was cut off"),
    "chunks cut inside a size": (sends(CHUNKED + b"5"), "network", True, "the body was cut off"),
    "reset between chunks": (resets_after(CHUNKED + b"3\r\nabc\r\n"), "network", True, "in the middle of the answer"),
    "a chunk size that is none": (sends(CHUNKED + b"zz\r\nabc\r\n0\r\n\r\n"), "network", True, "its chunks are malformed"),
    "a negative chunk size": (sends(CHUNKED + b"-1\r\nabc\r\n0\r\n\r\n"), "network", True, "its chunks are malformed"),
    "gzip cut": (coded(b"gzip", GZIP[:-5]), "network", True, "the gzip body was cut off"),
    "gzip malformed": (coded(b"gzip", b"no gzip at all"), "network", True, "the gzip body is malformed"),
    "garbage after gzip": (coded(b"gzip", GZIP + b"garbage"), "network", True, "the gzip body is malformed"),
}  # fmt: skip


@pytest.mark.parametrize("name", DIRECT_WAYS)
@pytest.mark.parametrize("script, type, retryable, says", ON_THE_WIRE.values(), ids=ON_THE_WIRE.keys())
def test_on_the_wire(
    name: str, script: Callable[[Peer], None], type: str, retryable: bool, says: str, certificates: Certificates
) -> None:
    body = bytes(3_000_000) if script is resets_while_receiving else b"{}"
    with way(name, certificates, script) as (server, transport):
        with pytest.raises(MembraneError) as caught:
            list(transport.open(request(server.url(), body), call()))
        assert (caught.value.type, caught.value.retryable) == (type, retryable), caught.value.message
        assert caught.value.message.startswith(f"{server.url('')}: ")
        # A reset destroys what was received before it, so it may show as any of several endings.
        assert says in caught.value.message or "reset" in script.__qualname__
        assert server.connections == 1


@pytest.mark.parametrize("name", WAYS)
def test_a_head_is_bounded_on_every_way(name: str, certificates: Certificates) -> None:
    script = sends(*[b"HTTP/1.1 100 C\r\nX: %s\r\n\r\n" % (b"y" * 60_000)] * 200)
    with way(name, certificates, script) as (server, transport), pytest.raises(MembraneError, match="a head of more"):
        transport.open(request(server.url()), call())


def test_what_arrived_before_the_failure_was_given() -> None:
    received = []
    with RawServer(sends(CHUNKED + b"3\r\nabc\r\n")) as server, direct() as transport, pytest.raises(MembraneError):
        received.extend(transport.open(request(server.url()), call()))
    assert received == [b"abc"]


def test_the_cause_is_kept() -> None:
    with RawServer(sends()) as server, direct() as transport, pytest.raises(MembraneError) as caught:
        transport.open(request(server.url()), call())
    assert isinstance(caught.value.__cause__, RemoteDisconnected)


def test_refused() -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{sock.getsockname()[1]}"
        with direct() as transport, pytest.raises(MembraneError) as caught:
            transport.open(request(url), call())
    assert (caught.value.type, caught.value.retryable) == ("network", True)
    assert caught.value.message.startswith(
        f"{url}: the connection was refused while connecting (ConnectionRefusedError: "
    )


@pytest.mark.parametrize("host", ["a" * 64 + ".example", "a..example"])
def test_an_impossible_name(host: str) -> None:
    with direct() as transport, pytest.raises(MembraneError) as caught:
        transport.open(request(f"http://{host}/"), call())
    assert caught.value.type == "invalid_request"
    assert caught.value.message.startswith(f"http://{host}: url: the host is no possible name")
