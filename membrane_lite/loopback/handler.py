"""One connection: requests are read from it, byte by byte recorded, and plans carried out on it.

Reading the request line and the headers is http.server's; ENDINGS says what becomes of the connection after an answer.
"""

from __future__ import annotations

import os
import socket
import ssl
import struct
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, Final, cast

from .received import Received, RecordingReader, read_body
from .routes import format_of

if TYPE_CHECKING:
    from .answers import Drip, Plan, Then
    from .server import Server

LONGEST_REQUEST_LINE: Final = 65536
# A reset throws away what its receiver has not read, and an idle connection is idle only after its answer was read.
SETTLE_MS: Final = 20
LINGER_S: Final = 0.2
# struct linger, on, 0 seconds: close() then sends RST. Source: POSIX, SO_LINGER; Windows has shorts.
RESET_ON_CLOSE: Final = struct.pack("hh" if os.name == "nt" else "ii", 1, 0)


class Handler(BaseHTTPRequestHandler):
    """Serves one connection, in a thread of its own, until either side ends it."""

    protocol_version = "HTTP/1.1"
    default_request_version = "HTTP/1.1"  # a line that is no request is answered with a status line too
    disable_nagle_algorithm = True
    rbufsize = 0  # the buffer is RecordingReader's
    server: Server

    def setup(self) -> None:
        if isinstance(self.request, ssl.SSLSocket):
            self.request.do_handshake()
        super().setup()
        self._reader = RecordingReader(cast(Any, self.rfile))
        self.rfile = self._reader
        self._connection_number = self.server.connection_number(self.connection)
        self._reset = False

    def handle_one_request(self) -> None:
        self._reader.restart()
        self.raw_requestline = self._reader.readline(LONGEST_REQUEST_LINE)
        if not self.raw_requestline or not self.parse_request():
            self.close_connection = True
            return
        early = self.server.service.early()
        body = self._body() if early is None else b""
        if body is None:
            self.close_connection = True
            return
        self._send(self.server.service.plan(self._received(body), early))
        if early is not None:
            self._linger()

    def finish(self) -> None:
        super().finish()
        if isinstance(self.connection, ssl.SSLSocket) and not self._reset:
            # close_notify is sent, and the peer's not waited for.
            self.connection.settimeout(0)
            try:
                self.connection.unwrap()
            except (OSError, ValueError):
                pass

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are recorded, not printed."""

    def _body(self) -> bytes | None:
        """None: it did not come whole, and there is nobody, or nothing, to answer."""
        try:
            return read_body(self._reader, self.headers)
        except ValueError:
            self.send_error(400, "Bad request framing")
        except EOFError:
            pass
        return None

    def _received(self, body: bytes) -> Received:
        target = self.requestline.split()[1]  # self.path is not always what was sent
        return Received(
            self.command,
            target,
            headers=tuple(self.headers.items()),
            body=body,
            raw=self._reader.taken,
            number=self.server.service.next_number(),
            connection=self._connection_number,
            format=format_of(target),
        )

    def _send(self, plan: Plan) -> None:
        send = self.connection.sendall
        for index, data in enumerate(plan.writes()):
            if index:
                self.server.pause(plan.pause_ms)
            send(data)
        if plan.end_delay_ms:
            self.server.pause(plan.end_delay_ms)
            send(plan.end)
        if plan.drip is not None:
            self._drip(plan, plan.drip)
        if plan.framing == "close":
            self.close_connection = True
        ENDINGS[plan.then](self)

    def _drip(self, plan: Plan, drip: Drip) -> None:
        """Ends by the OSError of a connection that either side has closed."""
        while True:
            self.server.pause(drip.every_ms)
            self.connection.sendall(plan.framed(drip.data))

    def _keep_alive(self) -> None:
        """The next request is read, unless this one asked for a close."""

    def _close(self) -> None:
        self.close_connection = True

    def _close_silently(self) -> None:
        self.server.pause(SETTLE_MS)
        self.close_connection = True

    def _hang(self) -> None:
        self.close_connection = True
        while self.connection.recv(65536):
            pass

    def _reset_connection(self) -> None:
        self.server.pause(SETTLE_MS)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        self._reset = True
        self.close_connection = True

    def _linger(self) -> None:
        """A close with bytes unread is a reset, and may destroy the answer (RFC 9112, 9.6): read on for a while."""
        self.close_connection = True
        socket.socket.shutdown(self.connection, socket.SHUT_WR)
        self.connection.settimeout(LINGER_S)
        while self.connection.recv(65536):
            pass


ENDINGS: Final[Mapping[Then, Callable[[Handler], None]]] = {
    "keep_alive": Handler._keep_alive,
    "close": Handler._close,
    "reset": Handler._reset_connection,
    "hang": Handler._hang,
    "close_silently": Handler._close_silently,
}
