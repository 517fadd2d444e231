"""A request as the server received it: every byte of it, and the same taken apart."""

from __future__ import annotations

import io
import json
from email.message import Message
from functools import cached_property
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from .form import form_fields
from .format import texts

if TYPE_CHECKING:
    from .format import Format

LONGEST_CHUNK_LINE: Final = 1024


class Received:
    """method; target, as it was on the request line; headers, pairs in their order; body, decoded from its framing.

    raw: every byte of the request, from the request line to the end of the body. number: 1 for the server's first.
    connection: 1 for the server's first; requests with the same number came over the same connection.
    format: the wire format of the target, or None.
    """

    def __init__(
        self,
        method: str,
        target: str,
        *,
        headers: tuple[tuple[str, str], ...],
        body: bytes,
        raw: bytes,
        number: int,
        connection: int,
        format: Format | None,
    ) -> None:
        self.method: Final = method
        self.target: Final = target
        self.headers: Final = headers
        self.body: Final = body
        self.raw: Final = raw
        self.number: Final = number
        self.connection: Final = connection
        self.format: Final = format

    def __repr__(self) -> str:
        # No headers and no body: they hold keys and people's words.
        return f"Received({self.method} {self.target}, {len(self.headers)} headers, {len(self.body)} bytes)"

    @cached_property
    def json(self) -> Any:
        """The body, parsed; of a form its fields. Raises ValueError where it is neither JSON nor a form."""
        content_type = self.header("Content-Type") or ""
        if content_type.lower().startswith("multipart/form-data"):
            return form_fields(content_type, self.body)
        return json.loads(self.body)

    def header(self, name: str) -> str | None:
        """The value of the first header with that name, in any case."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    @property
    def last_user_text(self) -> str:
        """What the user said last; for scripts that answer what they were asked."""
        body = self.json
        messages = body.get("messages") or body.get("contents") or body.get("input") or body.get("prompt") or ()
        if isinstance(messages, str):
            return messages
        said_by_user = (message for message in reversed(messages) if message.get("role") == "user")
        return "".join(texts(next(said_by_user, None)))


class RecordingReader(io.BufferedReader):
    """Reads a connection and remembers what was taken since `restart`."""

    def __init__(self, raw: io.RawIOBase) -> None:
        super().__init__(raw, 65536)
        self._taken: list[bytes] = []

    def restart(self) -> None:
        """The next request begins."""
        self._taken = []

    @property
    def taken(self) -> bytes:
        return b"".join(self._taken)

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(size)
        self._taken.append(line)
        return line

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        self._taken.append(data)
        return data


def read_body(reader: BinaryIO, headers: Message) -> bytes:
    """The body that the head announces (RFC 9112, 6.3). ValueError: its framing is bad; EOFError: it is cut short."""
    if "chunked" in headers.get("Transfer-Encoding", "").lower():
        return b"".join(iter(lambda: _read_chunk(reader), b""))
    return _read_exactly(reader, int(headers.get("Content-Length", "0")))


def _read_chunk(reader: BinaryIO) -> bytes:
    """One chunk's data; empty for the last, with its trailers."""
    size = int(reader.readline(LONGEST_CHUNK_LINE).partition(b";")[0], 16)
    data = _read_exactly(reader, size)
    while reader.readline(LONGEST_CHUNK_LINE).strip() and not size:
        pass
    return data


def _read_exactly(reader: BinaryIO, size: int) -> bytes:
    data = reader.read(size)
    if len(data) < size:
        raise EOFError(f"the body ended after {len(data)} of {size} bytes")
    return data
