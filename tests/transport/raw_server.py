"""A server on 127.0.0.1 that sends exactly the bytes a script tells it to. A script is a function of one connection.

def script(peer: Peer) -> None:
    peer.request()
    peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

with RawServer(script) as server:
    server.port, server.requests
"""

from __future__ import annotations

import selectors
import socket
import ssl
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from urllib.parse import urlsplit

Script = Callable[["Peer"], None]

LINGER_NONE = struct.pack("ii", 1, 0)  # close() sends a reset


class Received:
    """A request as it came."""

    def __init__(self, head: bytes, body: bytes) -> None:
        lines = head.decode("latin-1").split("\r\n")
        self.line = lines[0]
        self.target = lines[0].split(" ")[1]
        self.pairs = [tuple(line.split(": ", 1)) for line in lines[1:] if line]
        self.headers = {name.lower(): value for name, value in self.pairs}
        self.body = body


class Peer:
    """One accepted connection, as its script sees it."""

    def __init__(self, sock: socket.socket, server: RawServer) -> None:
        self.sock = sock
        self.server = server
        self._buffer = b""

    def head(self) -> bytes:
        """The head of the next request; b"" when the client closed instead."""
        while b"\r\n\r\n" not in self._buffer:
            data = self.sock.recv(65536)
            if not data:
                return b""
            self._buffer += data
        head, _, self._buffer = self._buffer.partition(b"\r\n\r\n")
        return head

    def request(self) -> Received | None:
        """The next request, whole; None when the client closed instead."""
        head = self.head()
        if not head:
            return None
        received = Received(head, b"")
        missing = int(received.headers.get("content-length", "0"))
        while len(self._buffer) < missing:
            data = self.sock.recv(65536)
            if not data:
                return None
            self._buffer += data
        received.body, self._buffer = self._buffer[:missing], self._buffer[missing:]
        self.server.requests.append(received)
        return received

    def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.sock.sendall(piece)

    def answer(self, body: bytes = b"ok", *, status: str = "200 OK", headers: tuple[str, ...] = ()) -> None:
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
        self.send("\r\n".join(lines).encode("latin-1") + body)

    def reset(self) -> None:
        """Close so that the client sees a reset, not an end."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NONE)
        self.sock.close()

    def close(self) -> None:
        self.sock.close()

    def reached(self) -> None:
        """Tell the test that the script has come here."""
        self.server.reached.set()

    def wait_for_test(self) -> None:
        """Go on when the test sets server.go_on."""
        self.server.go_on.wait(5)

    def wait_for_client_to_close(self) -> None:
        """Sets server.client_closed once the client has closed or reset the connection."""
        with suppress(OSError):
            while self.sock.recv(65536):
                pass
        self.server.client_closed.set()


class RawServer:
    """The nth connection runs the nth script, those after the last one run the last."""

    def __init__(self, *scripts: Script, context: ssl.SSLContext | None = None) -> None:
        self.requests: list[Received] = []
        self.connections = 0
        self.reached = threading.Event()
        self.go_on = threading.Event()
        self.client_closed = threading.Event()
        self._scripts = scripts
        self._context = context
        self._faults: list[BaseException] = []
        self._peers: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listening.getsockname()[1]
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    @property
    def scheme(self) -> str:
        return "http" if self._context is None else "https"

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        return f"{self.scheme}://{host}:{self.port}{path}"

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listening.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                script = self._scripts[min(self.connections, len(self._scripts) - 1)]
                self.connections += 1
                self._peers.append(sock)
                thread = threading.Thread(target=self._run, args=(sock, script), daemon=True)
                self._threads.append(thread)
            thread.start()

    def _run(self, sock: socket.socket, script: Script) -> None:
        try:
            if self._context is not None:
                sock = self._wrap(sock, self._context)
            script(Peer(sock, self))
        except OSError:
            pass  # the client is gone, or the test is over
        except BaseException as exc:
            self._faults.append(exc)
        finally:
            sock.close()

    def _wrap(self, sock: socket.socket, context: ssl.SSLContext) -> ssl.SSLSocket:
        wrapped = context.wrap_socket(sock, server_side=True)
        with self._lock:
            self._peers = [wrapped if peer is sock else peer for peer in self._peers]
        return wrapped

    def close(self) -> None:
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._acceptor.join(5)
        for peer in self._peers:
            with suppress(OSError):
                socket.socket.shutdown(peer, socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)
        for fault in self._faults:
            raise fault

    def __enter__(self) -> RawServer:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def answers(peer: Peer) -> None:
    """The script of a good server: each request is answered with "ok", on one connection."""
    while peer.request() is not None:
        peer.answer()


def says_nothing(peer: Peer) -> None:
    """The script of a server that takes a connection and does nothing with it."""
    peer.reached()
    peer.wait_for_client_to_close()


def held_after(sent: bytes) -> Callable[[Peer], None]:
    """Read a request, send this much of an answer, say so, send no more."""

    def script(peer: Peer) -> None:
        peer.request()
        peer.send(sent)
        peer.reached()
        peer.wait_for_client_to_close()

    return script


def proxies(peer: Peer) -> None:
    """The script of a proxy: CONNECT opens a tunnel, anything else is passed on as it came. All names are 127.0.0.1."""
    head = peer.head()
    if not head:
        return
    received = Received(head, b"")
    peer.server.requests.append(received)
    tunnel = received.line.startswith("CONNECT ")
    port = int(received.target.rpartition(":")[2]) if tunnel else urlsplit(received.target).port
    with socket.create_connection(("127.0.0.1", port)) as upstream:
        upstream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tunnel:
            peer.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            upstream.sendall(head + b"\r\n\r\n" + peer._buffer)
        pump(peer.sock, upstream)


def pump(one: socket.socket, other: socket.socket) -> None:
    """Carry bytes both ways until one side closes. One thread: a TLS socket is not for two."""
    with selectors.DefaultSelector() as selector:
        selector.register(one, selectors.EVENT_READ, other)
        selector.register(other, selectors.EVENT_READ, one)
        while True:
            for key, _ in selector.select():
                source, sink = key.fileobj, key.data
                more = True
                while more:
                    data = source.recv(65536)
                    if not data:
                        return
                    sink.sendall(data)
                    more = isinstance(source, ssl.SSLSocket) and source.pending() > 0
