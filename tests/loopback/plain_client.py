"""A client of nothing but sockets: what the loopback provider sends is looked at byte by byte."""

from __future__ import annotations

import http.client
import json
import socket
from typing import Any

from membrane_lite.loopback import LoopbackProvider

HEADERS = {"x-api-key": "any", "anthropic-version": "2023-06-01"}
ASKED = {"model": "m", "max_tokens": 64, "messages": [{"role": "user", "content": "Hi"}]}
MESSAGES = "/v1/messages"
COMPLETIONS = "/v1/chat/completions"


def connect(provider: LoopbackProvider) -> socket.socket:
    return socket.create_connection(("127.0.0.1", provider.port), 5)


def request(target: str = MESSAGES, **fields: Any) -> bytes:
    """A whole request."""
    body = json.dumps({**ASKED, **fields}).encode()
    lines = [f"POST {target} HTTP/1.1", "Host: x", *(f"{name}: {value}" for name, value in HEADERS.items())]
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body


def read_all(sock: socket.socket) -> bytes:
    """Everything up to the end; what ConnectionResetError cut off is not told apart from it."""
    return b"".join(iter(lambda: sock.recv(65536), b""))


def exchange(provider: LoopbackProvider, data: bytes | None = None) -> bytes:
    """Everything that is answered on a connection of its own."""
    with connect(provider) as sock:
        sock.sendall(request() if data is None else data)
        return read_all(sock)


def read_until(sock: socket.socket, end: bytes) -> bytes:
    """What comes, up to and with `end`."""
    seen = b""
    while end not in seen:
        data = sock.recv(65536)
        assert data, f"the connection ended before {end!r}: {seen!r}"
        seen += data
    return seen


class Browser:
    """http.client over one kept connection."""

    def __init__(self, provider: LoopbackProvider) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", provider.port, timeout=5)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._connection.close()

    def post(self, target: str = MESSAGES, **fields: Any) -> tuple[int, bytes]:
        """Status and body."""
        return self.send(json.dumps({**ASKED, **fields}).encode(), target=target)

    def send(self, body: bytes, *, target: str = MESSAGES, headers: dict[str, str] | None = None) -> tuple[int, bytes]:
        self._connection.request("POST", target, body, HEADERS if headers is None else headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read()
