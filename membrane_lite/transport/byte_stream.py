"""The body of an answer: decoded pieces as they arrive, under the deadlines and the signal of its call.

A stream is over once it was read to its end, on finish(), on close(), and on an error, whichever comes first. In the
first two cases the connection is kept, if both sides would use it again; otherwise it is closed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Protocol

from . import failures
from .connection import READ_BYTES, Connection, Response
from .content_coding import decoder_for
from .lease import Lease

if TYPE_CHECKING:
    from ..wire.http import HeaderPairs


class TakesBack(Protocol):
    """Where connections go when a stream is over: the pool."""

    def take_back(self, connection: Connection, lease: Lease, *, reusable: bool) -> None:
        """The call is over; keep the connection if it may serve another, else close it."""


class ByteStream:
    """An answer whose head has arrived; its methods are described in interface.ByteStream. For one thread at a time."""

    _over = True  # until there is something to give back

    def __init__(
        self, connection: Connection, response: Response, lease: Lease, pool: TakesBack, *, max_bytes: int
    ) -> None:
        self.status: int = response.status
        self.headers: HeaderPairs = tuple(response.headers.raw_items())
        self._connection: Final = connection
        self._response: Final = response
        self._lease: Final = lease
        self._pool: Final = pool
        self._decoder: Final = decoder_for(response.headers.get("Content-Encoding", ""), connection.route)
        self._max_bytes: Final = max_bytes
        self._bytes_given = 0
        self._over = False

    def __repr__(self) -> str:
        return f"ByteStream({self.status} from {self._connection.route}{', over' if self._over else ''})"

    def __iter__(self) -> Iterator[bytes]:
        try:
            with self._lease:
                while piece := self._receive():
                    if self._decoder is None:
                        yield self._counted(piece)
                    else:
                        yield from map(self._counted, self._decoder.feed(piece))
        except GeneratorExit:  # the reader has enough; whether it calls finish() or close() is its affair
            raise
        except BaseException:
            self.close()
            raise

    def _receive(self) -> bytes:
        """The next piece as it was sent, b"" at the end."""
        if self._over:
            return b""
        self._lease.check()
        # Silence is what we hear while we listen: the time a reader spent on the last piece is not the server's.
        self._lease.arrived()
        piece = self._response.read1(READ_BYTES)
        if not piece:
            self._end()
        return piece

    def _end(self) -> None:
        """The framing says that this is the end. http.client says so too where bytes are missing."""
        if self._response.length:
            raise failures.body_short(self._connection.route, self._response.length)
        if self._decoder is not None:
            self._decoder.end()
        self.finish()

    def _counted(self, piece: bytes) -> bytes:
        self._bytes_given += len(piece)
        if self._bytes_given > self._max_bytes:
            raise failures.too_large(self._connection.route, self._max_bytes)
        return piece

    def read(self, limit: int) -> bytes:
        pieces = []
        left = limit
        for piece in self:
            pieces.append(piece[:left])
            left -= len(piece)
            if left < 0:
                self.close()
                break
        return b"".join(pieces)

    def finish(self) -> None:
        self._give_back(reusable=True)

    def close(self) -> None:
        self._give_back(reusable=False)

    def _give_back(self, *, reusable: bool) -> None:
        if not self._over:
            self._over = True
            self._pool.take_back(self._connection, self._lease, reusable=reusable)

    def __del__(self) -> None:
        """A stream that nobody closed, and nobody reads any more, does not wait for the collector."""
        self.close()
