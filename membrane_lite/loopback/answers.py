"""How an answer goes over a socket: a Plan, and the answers that are written down as bytes.

Every scripted answer has `plan(format, asked) -> Plan`; faults.py changes plans, handler.py carries them out. The
tables at the end give the framings (RFC 9112, 6 and 7.1): which header announces one, and what ends its body.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from http.client import responses
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, Union, get_args

if TYPE_CHECKING:
    from .format import Asked, Format

Framing = Literal["chunked", "length", "close", "chunked_without_end"]
Then = Literal["keep_alive", "close", "reset", "hang", "close_silently"]
Headers = Union[Mapping[str, str], Iterable[tuple[str, str]]]
Chunks = Union[int, Literal["every_byte"], Sequence[int], None]


class Drip(NamedTuple):
    """Bytes that are sent every so many milliseconds, without end."""

    data: bytes
    every_ms: float = 20


class Plan(NamedTuple):
    """One answer, ready to be sent: `before`, the head, then `pieces`, one write each, then what ends the body.

    status: None sends no head at all. length: what the head promises where `framing` is length, None for the truth.
    streamed: `pieces` are events; else together they are one document. ended: whether the body's end is sent,
    end_delay_ms: so long after the last piece.
    """

    status: int | None = None
    headers: Sequence[tuple[str, str]] = ()
    pieces: Sequence[bytes] = ()
    before: bytes = b""
    streamed: bool = False
    framing: Framing = "close"
    length: int | None = None
    pause_ms: float = 0
    ended: bool = True
    end_delay_ms: float = 0
    drip: Drip | None = None
    then: Then = "close"

    @property
    def head(self) -> bytes:
        if self.status is None:
            return self.before
        ours = FRAMING_HEADERS[self.framing].format(length=self.whole_length)
        given = {name.lower() for name, _ in self.headers}
        framing = [ours] if ours and ours.partition(":")[0].lower() not in given else []
        return self.before + head_bytes(self.status, self.headers, framing)

    @property
    def whole_length(self) -> int:
        """The length that the head promises."""
        return sum(map(len, self.pieces)) if self.length is None else self.length

    @property
    def end(self) -> bytes:
        return BODY_ENDS[self.framing] if self.ended and self.drip is None and self.status is not None else b""

    def framed(self, piece: bytes) -> bytes:
        """One piece as it is written."""
        if self.framing in CHUNKED and self.status is not None and piece:
            return b"%x\r\n%b\r\n" % (len(piece), piece)
        return piece

    def writes(self) -> list[bytes]:
        """What is written, in order: the head goes with the first piece, the body's end with the last unless late."""
        writes = [self.framed(piece) for piece in self.pieces] or [b""]
        writes[0] = self.head + writes[0]
        if not self.end_delay_ms:
            writes[-1] += self.end
        return writes


class Answer(Protocol):
    """What a script is made of. Reply, Raw, Failure and every fault are answers."""

    @property
    def checked(self) -> bool:
        """Whether the request is checked first, and refused as the provider would."""

    @property
    def early(self) -> bool:
        """Whether the answer is sent before the request's body is read."""

    def plan(self, format: Format, asked: Asked) -> Plan: ...


class Raw:
    """An answer given as bytes, to be sent as they are: recorded traffic, or anything no Reply would say.

    headers: as they are; only the one that `framing` needs is added, unless it is there. So a Content-Length larger
    than the body makes a short body.
    chunks: where the body is cut into writes: offsets; or a number, each so many bytes; or "every_byte".
    pause_ms: between the writes. drip: what is sent after them, without end.
    framing: chunked, a chunk for each write; length; close, the body ends with the connection; chunked_without_end.
    then: keep_alive; close; reset (RST); hang, open and silent; close_silently, while the connection is idle.
    """

    checked: Final = False
    early: Final = False

    def __init__(
        self,
        status: int = 200,
        headers: Headers = (),
        body: bytes | str = b"",
        *,
        chunks: Chunks = None,
        pause_ms: float = 0,
        drip: Drip | None = None,
        framing: Framing = "chunked",
        then: Then = "keep_alive",
    ) -> None:
        self._plan: Final = Plan(
            status=status,
            headers=pairs(headers),
            pieces=cut(body.encode() if isinstance(body, str) else body, chunks),
            streamed=True,
            framing=one_of(Framing, framing, "framing"),
            pause_ms=pause_ms,
            drip=drip,
            then=one_of(Then, then, "then"),
        )

    def __repr__(self) -> str:
        return f"Raw({self._plan.status}, {sum(map(len, self._plan.pieces))} bytes, then={self._plan.then!r})"

    def plan(self, format: Format, asked: Asked) -> Plan:
        return self._plan


class Failure:
    """An HTTP error in the shape of whichever format asks. type: the format's word for the status, unless given."""

    checked: Final = False
    early: Final = False

    def __init__(self, status: int, message: str = "", *, type: str | None = None, headers: Headers = ()) -> None:
        self.status: Final = status
        self.message: Final = message or responses.get(status) or STATUS_NAMES.get(status, f"status {status}")
        self.type: Final = type
        self._headers: Final = pairs(headers)

    def __repr__(self) -> str:
        return f"Failure({self.status}, {self.message!r})"

    def plan(self, format: Format, asked: Asked) -> Plan:
        error_type = self.type or format.error_types.get(self.status, format.error_types[500])
        plan = format.error(self.status, error_type, self.message).plan(format, asked)
        return plan._replace(headers=(*plan.headers, *self._headers))


def failures(
    count: int, status: int, *, headers: Headers = (), body: bytes | str | None = None
) -> list[Raw] | list[Failure]:
    """The same failure `count` times; what stands after it is the success. body: instead of the format's own."""
    headers = pairs(headers)
    if body is None:
        return [Failure(status, headers=headers)] * count
    return [Raw(status, headers, body, framing="length")] * count


def head_bytes(status: int, headers: Sequence[tuple[str, str]], more: Iterable[str] = ()) -> bytes:
    """Status line and header lines, up to the blank line."""
    lines = [f"HTTP/1.1 {status} {responses.get(status, '')}", *(f"{name}: {value}" for name, value in headers), *more]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def cut(body: bytes, chunks: Chunks) -> list[bytes]:
    """`body` in the pieces that `chunks` names, none of them empty."""
    size = 1 if chunks == "every_byte" else chunks
    if isinstance(size, int):
        return [body[start : start + size] for start in range(0, len(body), size)]
    starts = [0, *(size or ())]
    pieces = (body[start:end] for start, end in zip(starts, [*starts[1:], len(body)]))
    return [piece for piece in pieces if piece]


def one_of(words: Any, word: Any, argument: str) -> Any:
    """`word`, if the Literal `words` has it: found while the script is written, not in the middle of an answer."""
    if word in get_args(words):
        return word
    raise ValueError(f"{argument}: found {word!r}; expected one of {', '.join(get_args(words))}")


def pairs(headers: Headers) -> tuple[tuple[str, str], ...]:
    return tuple(headers.items() if isinstance(headers, Mapping) else headers)


STATUS_NAMES: Final = {529: "Overloaded"}  # beside those of the standard
FRAMING_HEADERS: Final[Mapping[Framing, str]] = {
    "chunked": "Transfer-Encoding: chunked",
    "length": "Content-Length: {length}",
    "close": "",
    "chunked_without_end": "Transfer-Encoding: chunked",
}
BODY_ENDS: Final[Mapping[Framing, bytes]] = {
    "chunked": b"0\r\n\r\n",
    "length": b"",
    "close": b"",
    "chunked_without_end": b"",
}
CHUNKED: Final = frozenset(["chunked", "chunked_without_end"])
