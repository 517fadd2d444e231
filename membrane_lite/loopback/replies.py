"""What a scripted answer says, before any wire format: pieces, a stop reason, a usage.

    Reply("Hello!")
    Reply(Thinking("Which city?"), ToolCall("get_weather", {"city": "Bern"}))
    Reply("Hel", stop_reason="max_tokens", usage=Usage(input_tokens=9, output_tokens=1))

In goes what a script's author wrote; out comes a Plan (answers.py), once the wire format of the request is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from email.utils import formatdate
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Union

from .answers import Chunks, Framing, Headers, Plan, Then, cut, one_of, pairs

if TYPE_CHECKING:
    from .format import Asked, Format

PIXEL: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="


class Text(NamedTuple):
    """Visible text. A plain string in a Reply means the same."""

    text: str


class Thinking(NamedTuple):
    """Reasoning that the provider shows; `signature` only in formats that sign it."""

    text: str
    signature: str = "bG9vcGJhY2stc2lnbmF0dXJl"


class RedactedThinking(NamedTuple):
    """Reasoning that the provider shows only as opaque data."""

    data: str


class ToolCall(NamedTuple):
    """A call of one of the request's tools.

    input: an object; or its JSON as text, which goes out as it is, so that it may be broken or cut short.
    id: made from the number of the answer where it is None.
    """

    name: str
    input: Mapping[str, Any] | str
    id: str | None = None


class Image(NamedTuple):
    """An image that the model made, by base64; a single transparent pixel unless given."""

    data: str = PIXEL
    media_type: str = "image/png"


Piece = Union[Text, Thinking, RedactedThinking, ToolCall, Image]


class Usage(NamedTuple):
    """Token counts; a None is derived from the texts, four characters to a token.

    input_tokens: without the cached ones. output_tokens: everything billed as output, thinking included.
    Formats that count in another way add these up as they do.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int = 0
    cache_creation_tokens: int = 0
    thinking_tokens: int | None = None


class Reply:
    """A model's answer, in whichever format it is asked for, streamed if the request says so.

    stop_reason: end_turn max_tokens stop_sequence tool_use refusal pause_turn, or any word; tool_use where a tool is
    called, else end_turn. stop_sequence: the text that stopped it. model: the request's, unless given.
    delta_size: characters in a delta; else a word each. headers: beside those of the format.
    chunks, pause_ms, framing, then: as for Raw; a stream goes out one event a write, chunked; a whole answer at once,
    with its length.
    """

    checked: Final = True
    early: Final = False

    def __init__(
        self,
        *pieces: Piece | str,
        stop_reason: str | None = None,
        stop_sequence: str | None = None,
        usage: Usage | None = None,
        model: str | None = None,
        delta_size: int | None = None,
        headers: Headers = (),
        chunks: Chunks = None,
        pause_ms: float = 0,
        framing: Framing | None = None,
        then: Then = "keep_alive",
    ) -> None:
        self.pieces: Final = tuple(Text(piece) if isinstance(piece, str) else piece for piece in pieces)
        calls_tool = any(isinstance(piece, ToolCall) for piece in self.pieces)
        self.stop_reason: Final = stop_reason or ("tool_use" if calls_tool else "end_turn")
        self.stop_sequence: Final = stop_sequence
        self.usage: Final = usage or Usage()
        self.model: Final = model
        self.delta_size: Final = delta_size
        self._headers: Final = pairs(headers)
        self._chunks: Final = chunks
        self._pause_ms: Final = pause_ms
        self._framing: Final = framing and one_of(Framing, framing, "framing")
        self._then: Final = one_of(Then, then, "then")

    def __repr__(self) -> str:
        return f"Reply({', '.join(map(repr, self.pieces))}, stop_reason={self.stop_reason!r})"

    def plan(self, format: Format, asked: Asked) -> Plan:
        if asked.streamed:
            pieces, content_type = format.events(self, asked), format.stream_type
        else:
            pieces, content_type = [format.document(self, asked)], "application/json"
        headers = (
            ("Date", formatdate(asked.created, usegmt=True)),
            ("Content-Type", content_type),
            (format.request_id_header, f"req_loopback_{asked.number:06d}"),
            *self._headers,
        )
        return Plan(
            status=200,
            headers=headers,
            pieces=pieces if self._chunks is None else cut(b"".join(pieces), self._chunks),
            streamed=asked.streamed,
            framing=self._framing or ("chunked" if asked.streamed else "length"),
            pause_ms=self._pause_ms,
            then=self._then,
        )
