"""All that the rest of the house knows of the network: `open(HttpRequest, call) -> ByteStream`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ..call import Call
    from ..redactor import Redactor
    from ..wire.http import HeaderPairs, HttpRequest


class ByteStream(Protocol):
    """An answer whose head has arrived and whose body is read as it comes.

    Iterating yields the body's decoded bytes, in pieces of any size, none empty, as soon as they arrive. It raises
    MembraneError("network") where the body ends short of what its head or framing promised, and the error of the
    deadline or the abort that ended the wait. Whoever opened it calls finish() or close(), once, on every path; where
    the body was read to its end, or an error was raised, the call is over already and they do nothing more.
    """

    status: int
    headers: HeaderPairs

    def __iter__(self) -> Iterator[bytes]: ...

    def read(self, limit: int) -> bytes:
        """The rest of the body; at most `limit` bytes, what is beyond them is dropped with the connection."""

    def finish(self) -> None:
        """The answer is whole: the connection may serve another call, although its end was not read."""

    def close(self) -> None:
        """Give the answer up: the connection is closed, unless finish() came first. Idempotent."""


class OpensRequests(Protocol):
    """What an adapter needs of a transport; membrane_lite.Transport is one."""

    @property
    def redactor(self) -> Redactor:
        """Of the transport's own secrets (proxy passwords)."""

    def open(self, request: HttpRequest, call: Call) -> ByteStream:
        """Send `request` and wait for the answer's head, whatever its status. Raises MembraneError; never redirects."""

    def close(self) -> None:
        """Close what is open; running calls end as aborted. Idempotent."""
