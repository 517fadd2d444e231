"""Sockets and threads: listen on 127.0.0.1, a thread for each connection, and an end that leaves none of them.

It knows nothing of scripts: what is answered is decided by the Service it is given.
"""

from __future__ import annotations

import socket
import ssl
import sys
import threading
from http.server import ThreadingHTTPServer
from socketserver import TCPServer
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from .handler import Handler

if TYPE_CHECKING:
    from .answers import Answer, Plan
    from .received import Received

HOST: Final = "127.0.0.1"
JOIN_S: Final = 5.0


class Service(Protocol):
    """What a server asks about each request, from any of its threads."""

    def next_number(self) -> int:
        """The number of the request whose head has just arrived."""

    def early(self) -> Answer | None:
        """The answer that does not wait for the request's body, if that is the next one."""

    def plan(self, received: Received, early: Answer | None) -> Plan:
        """What is sent."""


class Connection(NamedTuple):
    number: int
    thread: threading.Thread


class Server(ThreadingHTTPServer):
    """Accepts until `stop`. Everything that waits in here is woken by `stop`."""

    request_queue_size = 128
    block_on_close = False  # `stop` joins
    allow_reuse_port = False

    def __init__(self, service: Service, *, port: int, context: ssl.SSLContext | None) -> None:
        super().__init__((HOST, port), Handler)
        self.service: Final = service
        self._context: Final = context
        self._stopping: Final = threading.Event()
        self._changed: Final = threading.Condition()
        self._open: Final[dict[Any, Connection]] = {}
        self._made = 0
        self._acceptor: Final = threading.Thread(target=self._accept, name=f"loopback:{self.server_port}", daemon=True)

    def start(self) -> None:
        self._acceptor.start()

    def stop(self) -> None:
        """End all connections, threads and waits. Idempotent."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        self._wake_acceptor()
        self._acceptor.join(JOIN_S)
        self.server_close()
        with self._changed:
            connections = dict(self._open)
        for sock in connections:
            _shut_down(sock)
        for connection in connections.values():
            if connection.thread is not threading.current_thread():
                connection.thread.join(JOIN_S)

    @property
    def connections_made(self) -> int:
        return self._made

    @property
    def connections_open(self) -> int:
        return len(self._open)

    def connection_number(self, sock: Any) -> int:
        with self._changed:
            return self._open[sock].number

    def wait_for_close(self, seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: not self._open, seconds)

    def pause(self, ms: float) -> None:
        """Wait between two writes; `stop` ends it."""
        if ms:
            self._stopping.wait(ms / 1000)

    # From here on: what socketserver calls.

    def server_bind(self) -> None:
        """HTTPServer's own looks the host's name up, which may take seconds."""
        TCPServer.server_bind(self)
        self.server_name = HOST
        self.server_port = self.socket.getsockname()[1]

    def get_request(self) -> tuple[Any, Any]:
        sock, address = super().get_request()
        if self._context is not None:
            # The handshake is the connection's thread's: a client that is slow at it delays nobody else.
            sock = self._context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        return sock, address

    def verify_request(self, request: Any, client_address: Any) -> bool:
        return not self._stopping.is_set()

    def process_request(self, request: Any, client_address: Any) -> None:
        thread = threading.Thread(
            target=self.process_request_thread,
            args=(request, client_address),
            name=f"loopback:{self.server_port}:{client_address[1]}",
            daemon=True,
        )
        with self._changed:
            self._made += 1
            self._open[request] = Connection(self._made, thread)
        thread.start()

    def shutdown_request(self, request: Any) -> None:
        """Close, without the FIN that socketserver sends first: a reset must be the first thing to arrive."""
        request.close()
        with self._changed:
            self._open.pop(request, None)
            self._changed.notify_all()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A connection that ended is how most tests of a client end."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    def _accept(self) -> None:
        while not self._stopping.is_set():
            self.handle_request()

    def _wake_acceptor(self) -> None:
        """A listening socket is woken by a connection, on every system."""
        try:
            socket.create_connection((HOST, self.server_port), 1).close()
        except OSError:
            pass


def _shut_down(sock: socket.socket) -> None:
    """Wake the thread that waits on `sock`. Not SSLSocket.shutdown, which takes the TLS away under that thread."""
    try:
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
    except OSError:
        pass
