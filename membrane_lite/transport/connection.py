"""One HTTP/1.1 connection: a route and a lease in, the head of an answer out. The only module that imports urllib3.

What stands on what, and why it is not urllib3's pool:

- *A cancel must reach a blocked wait.* The one thing that wakes a blocked socket safely is shutdown() of the TCP
  socket, so a duplicate of it, the handle, is made before connect() and is given to the lease. urllib3 names a socket
  only once headers have come, none at all for a body with "Connection: close"; its own shutdown() goes through the TLS
  object, which drops the encryption first: a thread that is sending would go on in clear text.
- *A deadline must hold against a server that drips.* A timeout set once counts for each system call. So the reader
  beneath http.client (Raw) asks the lease before every recv, and send() before every piece.
- *A wait that timed out is not resumed*: http.client's chunk parser loses its place. A deadline ends the call.
- *The path is signed.* urllib3's pools normalise it; putrequest() sends what it is given.
- *An answer must be whole.* http.client reports a head that was cut as an empty 200, a 103 as the answer (the next
  call would then read this one's), a body short of its Content-Length as complete. Response and the byte stream look.
- *Nobody waits for the end of a stream that said all.* The connection is kept unread; whether its end had come is
  asked when it is wanted again, without waiting.
- *The tunnel is ours*: http.client's differs by version, and a refusal loses status and Proxy-Authenticate.

Of urllib3 remain its connection class, the wait for readability and TLS inside TLS. No private name is used.
"""

from __future__ import annotations

import functools
import http.client
import io
import socket
import ssl
from contextlib import suppress
from email.errors import FirstHeaderLineIsContinuationDefect, MissingHeaderBodySeparatorDefect
from typing import Any, Final, Union

from urllib3 import __version__ as URLLIB3_VERSION  # type: ignore[attr-defined]
from urllib3.connection import HTTPConnection
from urllib3.util.ssltransport import SSLTransport
from urllib3.util.wait import wait_for_read

from . import failures
from .dialing import dial
from .environment import Proxy
from .lease import Lease
from .route import Outgoing, Route
from .tls import ClientContext

__all__ = ["URLLIB3_VERSION", "Connection", "Response"]

Socket = Union[socket.socket, SSLTransport]

READ_BYTES: Final = 65_536
SEND_BYTES: Final = 262_144
JOINED_BODY_BYTES: Final = 65_536  # head and body leave in one packet, or nearly
LONGEST_HEAD_BYTES: Final = 8 * 1024 * 1024  # http.client bounds lines and headers, not the number of 1xx heads
MOST_INTERIM_ANSWERS: Final = 20

# While sending: the server may have answered and closed before it read everything, as with 413.
ANSWERED_EARLY: Final = (BrokenPipeError, ConnectionResetError, ConnectionAbortedError, ssl.SSLEOFError)
HEADER_DEFECTS: Final = (MissingHeaderBodySeparatorDefect, FirstHeaderLineIsContinuationDefect)


class Flow:
    """What the reader beneath a response must know, apart from the connection.

    If the reader knew the connection, the two would be a circle, and sockets would wait for the garbage collector.
    """

    __slots__ = ("bytes_seen", "ended", "in_head", "lease")

    def __init__(self) -> None:
        self.lease: Lease | None = None  # None: nobody's turn, a read may not wait
        self.bytes_seen = 0
        self.ended = False
        self.in_head = True

    def lend(self, lease: Lease | None) -> None:
        """A new exchange begins, or (None) the connection is put aside."""
        self.lease = lease
        self.bytes_seen = 0
        self.ended = False
        self.in_head = True

    def head_is_read(self) -> None:
        self.in_head = False

    def saw(self, count: int) -> None:
        """A recv has returned `count` bytes."""
        self.bytes_seen += count
        self.ended = count == 0
        if self.lease is not None:
            self.lease.check()
            self.lease.arrived()
        if self.in_head and self.bytes_seen > LONGEST_HEAD_BYTES:
            raise http.client.HTTPException(f"a head of more than {LONGEST_HEAD_BYTES} bytes")


class Raw(io.RawIOBase):
    """Reads from a socket, each time within what the lease leaves."""

    def __init__(self, sock: Socket, flow: Flow) -> None:
        # Holds the socket open after "Connection: close", when http.client closes its own reference.
        self._file: Final = sock.makefile("rb", buffering=0)
        self._sock: Final = sock
        self._flow: Final = flow

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        lease = self._flow.lease
        self._sock.settimeout(0 if lease is None else lease.left())
        count = int(self._sock.recv_into(buffer) or 0)
        self._flow.saw(count)
        return count

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


class Response(http.client.HTTPResponse):
    """An answer read through Raw. begin() passes over every interim answer (1xx) but 101, not only over 100."""

    def __init__(self, sock: Any, *args: Any, flow: Flow, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp.close()
        # A buffer of its own for each answer: what follows the end of one is never taken for the next.
        self.fp = io.BufferedReader(Raw(sock, flow), READ_BYTES)
        self._flow: Final = flow

    def begin(self) -> None:
        super().begin()
        for _ in range(MOST_INTERIM_ANSWERS):
            if not self.is_interim:
                break
            self._forget_head()
            super().begin()
        # An end of file inside the head is, to http.client, the end of the head.
        if self._flow.ended:
            raise http.client.IncompleteRead(b"")
        self._flow.head_is_read()

    @property
    def is_interim(self) -> bool:
        return 100 <= self.status < 200 and self.status != 101

    def _forget_head(self) -> None:
        """begin() does nothing while there are headers."""
        self.headers = self.msg = None  # type: ignore[assignment]

    @property
    def lost_headers(self) -> bool:
        """A line that is no header: http.client drops it, and all that follow it, in silence."""
        return any(isinstance(defect, HEADER_DEFECTS) for defect in self.headers.defects)


class Connection(HTTPConnection):
    """A connection along one route. Belongs to one thread at a time; lend() says to which call."""

    def __init__(self, route: Route, context: ClientContext) -> None:
        super().__init__(route.origin.host, route.origin.port, timeout=None)
        self.route: Final = route
        self._context: Final = context
        self._flow: Final = Flow()
        self._handle: socket.socket | None = None
        self._response: Response | None = None
        self._unsent = b""
        self.response_class = functools.partial(Response, flow=self._flow)  # type: ignore[assignment]

    def lend(self, lease: Lease) -> None:
        """The connection serves this call from here on. Raises if the call was aborted."""
        self._flow.lend(lease)
        if self._handle is not None:
            lease.hold(self._handle)

    @property
    def _lease(self) -> Lease:
        assert self._flow.lease is not None, "a connection is lent before it is used"
        return self._flow.lease

    # Connecting: TCP, then to the proxy TLS and the tunnel, then TLS to the server.

    def connect(self) -> None:
        """Make the connection, on behalf of the lease it is lent to."""
        self._lease.connecting()
        origin, proxy = self.route
        peer = proxy or origin
        self.sock, self._handle = dial(peer.host, peer.port, self._lease)
        if proxy is not None and proxy.scheme == "https":
            self._wrap(proxy.host)
        if proxy is not None and not self.route.forwarded:
            self._open_tunnel(proxy)
        if origin.scheme == "https":
            self._wrap(origin.host)

    def _wrap(self, host: str) -> None:
        """TLS over what there is. A certificate never names the dot that ends a full name."""
        context, host = self._context.get(), host.rstrip(".")
        self.sock.settimeout(self._lease.left())
        if isinstance(self.sock, ssl.SSLSocket):
            self.sock = SSLTransport(self.sock, context, server_hostname=host)
        else:
            self.sock = context.wrap_socket(self.sock, server_hostname=host)

    def _open_tunnel(self, proxy: Proxy) -> None:
        """RFC 9110, 9.3.6: any 2xx opens the tunnel, and no body follows it."""
        server = self.route.origin.host_and_port
        lines = [f"CONNECT {server} HTTP/1.1", f"Host: {server}"]
        if proxy.authorization is not None:
            lines.append(f"Proxy-Authorization: {proxy.authorization}")
        self._write("\r\n".join([*lines, "", ""]).encode("ascii"))
        answer = Response(self.sock, method="CONNECT", flow=self._flow)
        try:
            answer.begin()
            if not 200 <= answer.status < 300:
                raise self._proxy_refused(proxy, answer)
        finally:
            answer.close()
        self._flow.lend(self._lease)

    def _proxy_refused(self, proxy: Proxy, answer: Response) -> Exception:
        schemes = answer.headers.get_all("Proxy-Authenticate") or []
        return failures.proxy_refused(self.route, proxy, answer.status, answer.reason, schemes)

    # One exchange.

    def exchange(self, outgoing: Outgoing) -> Response:
        """Send the request, over a connection made now if there is none, and wait for the head of its answer."""
        if self.sock is None:
            self.connect()  # outside the `try`: a proxy that hangs up has not answered early
        self._lease.sending()
        try:
            self._send_request(outgoing)
        except ANSWERED_EARLY as broken:
            try:
                return self._receive_head()
            except (OSError, http.client.HTTPException):
                raise broken  # noqa: B904 - what failed first is what happened
        return self._receive_head()

    def _send_request(self, outgoing: Outgoing) -> None:
        self._unsent = outgoing.body
        self.putrequest(outgoing.method, outgoing.target, skip_host=True, skip_accept_encoding=True)
        for name, value in outgoing.headers:
            http.client.HTTPConnection.putheader(self, name, value)  # urllib3's looks for its own markers first
        self.endheaders()

    def send(self, data: Any) -> None:
        """Called by endheaders() with the whole head; the body goes with it, or right after it."""
        body, self._unsent = self._unsent, b""
        if len(body) <= JOINED_BODY_BYTES:
            self._write(data + body)
        else:
            self._write(data)
            self._write(body)

    def _write(self, data: bytes) -> None:
        """Not sendall(): on TLS it would give each record the whole timeout afresh."""
        rest = memoryview(data)
        while rest:
            self.sock.settimeout(self._lease.left())
            rest = rest[self.sock.send(rest[:SEND_BYTES]) :]

    def _receive_head(self) -> Response:
        lease = self._lease
        lease.awaiting()
        response = http.client.HTTPConnection.getresponse(self)
        assert isinstance(response, Response)
        self._response = response
        lease.check()
        self._check_head(response)
        lease.reading()
        return response

    def _check_head(self, response: Response) -> None:
        """Refuse what http.client would let pass."""
        coding = response.headers.get("Transfer-Encoding", "identity").strip().lower()
        if response.status == 101:
            raise failures.protocols_switched(self.route)
        if response.is_interim:
            raise failures.only_interim(self.route, response.status)
        if response.lost_headers:
            raise failures.header_broken(self.route)
        if coding not in ("chunked", "identity"):
            raise failures.unknown_coding(self.route, "Transfer-Encoding", coding, "chunked")
        if response.status == 407 and self.route.proxy is not None and self.route.forwarded:
            raise self._proxy_refused(self.route.proxy, response)

    @property
    def answered(self) -> bool:
        """Whether a byte of this exchange's answer has come."""
        return self._flow.bytes_seen > 0

    # Between exchanges.

    @property
    def reusable(self) -> bool:
        """Whether another exchange could follow. http.client has let go of a socket that will be closed."""
        return self.sock is not None

    def set_aside(self) -> None:
        """No call's any more, for the time being; the end of the answer need not have been read."""
        self._flow.lend(None)

    def settle(self) -> bool:
        """Whether the last answer's end is there, nothing follows it, and the other side has not closed."""
        try:
            if self._response is not None:
                if self._response.read1(1):
                    return False
                self._response.close()
                self._response = None
            pending = getattr(self.sock, "pending", None)
            return not wait_for_read(self.sock, 0) and not (pending is not None and pending())
        except (OSError, http.client.HTTPException, ValueError):  # "would block" is an OSError
            return False

    def discard(self) -> None:
        """Close everything, without a word to the other side: in a forked child that would end the parent's call."""
        with suppress(OSError):
            self.close()
        for closing in (self._response, self._handle):
            if closing is not None:
                with suppress(OSError):
                    closing.close()
