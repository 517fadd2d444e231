"""What a wire format is: a record of functions; and what they share.

A format turns a Reply, and what was Asked, into bytes: `events`, one bytes object for each event of a stream, or
`document`, one JSON text. A new format is a new file with such a record at its end, and a row in routes.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from .replies import Image, RedactedThinking, Text, Thinking, ToolCall, Usage

if TYPE_CHECKING:
    from .answers import Raw
    from .received import Received
    from .replies import Piece, Reply

CREATED: Final = 1_750_000_000  # 2025-06-15 15:06:40 GMT: the date of every answer, plus the server's seed
CHARACTERS_PER_TOKEN: Final = 4
WORD: Final = re.compile(r"\s*\S+|\s+")


class Asked(NamedTuple):
    """What an answer needs to know of its request. number: of the request; with the seed it makes the ids.

    target: of the request line, in which some formats name the model.
    """

    body: Mapping[str, Any] = MappingProxyType({})
    streamed: bool = False
    number: int = 1
    created: int = CREATED
    target: str = ""

    @property
    def model(self) -> str:
        return str(self.body.get("model") or "loopback-model")


UNASKED: Final = Asked()  # to look at a format's bytes without any request


class Format(NamedTuple):
    """A wire format. stream_type: the media type of a stream. error_types: its word for a status; 500 is the default.

    is_streamed: whether a request asks for a stream. check: the error that the provider would answer, or None.
    error(status, type, message), error_event(type, message): an error as an answer, and in the middle of a stream.
    ping: what the provider sends to keep a silent stream alive.
    """

    name: str
    stream_type: str
    request_id_header: str
    error_types: Mapping[int, str]
    ping: bytes
    is_streamed: Callable[[Received], bool]
    check: Callable[[Received], Raw | None]
    events: Callable[[Reply, Asked], list[bytes]]
    document: Callable[[Reply, Asked], bytes]
    error: Callable[[int, str, str], Raw]
    error_event: Callable[[str, str], bytes]


def json_bytes(value: Any) -> bytes:
    """Compact JSON in UTF-8, as providers send it; a lone surrogate, which UTF-8 cannot hold, goes out as an escape."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def sse_event(data: bytes, event: str | None = None) -> bytes:
    """One server-sent event (WHATWG HTML, 9.2)."""
    return (b"event: " + event.encode() + b"\n" if event else b"") + b"data: " + data + b"\n\n"


def deltas(text: str, size: int | None) -> list[str]:
    """`text` as a stream brings it: a word each, with the space before it, or `size` characters each."""
    if size is None:
        return WORD.findall(text)
    return [text[start : start + size] for start in range(0, len(text), size)]


def input_text(call: ToolCall) -> str:
    """A tool call's input as the model wrote it."""
    return call.input if isinstance(call.input, str) else json.dumps(call.input, ensure_ascii=False)


def parsed_input(call: ToolCall) -> Any:
    """The same as a value, for formats that give it as an object; {} where its text is not JSON."""
    if not isinstance(call.input, str):
        return call.input
    try:
        return json.loads(call.input)
    except ValueError:
        return {}


def said(pieces: tuple[Piece, ...], *kinds: type) -> str:
    """The texts of the pieces of these kinds, joined."""
    return "".join(SAID[type(piece)](piece) for piece in pieces if isinstance(piece, kinds or (tuple,)))


def counted(reply: Reply, asked: Asked) -> Usage:
    """The reply's usage without a None."""
    usage = reply.usage
    return Usage(
        input_tokens=tokens(prompt(asked.body)) if usage.input_tokens is None else usage.input_tokens,
        output_tokens=tokens(said(reply.pieces)) if usage.output_tokens is None else usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_creation_tokens=usage.cache_creation_tokens,
        thinking_tokens=tokens(said(reply.pieces, Thinking))
        if usage.thinking_tokens is None
        else usage.thinking_tokens,
    )


def tokens(text: str) -> int:
    """The tokens we say a text has: one for each four characters begun."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def prompt(body: Mapping[str, Any]) -> str:
    """Everything the request says to the model, instructions first."""
    return "".join(text for field in PROMPT_FIELDS for text in texts(body.get(field)))


def texts(value: Any) -> Iterator[str]:
    """The texts in a message, a list of content blocks, or a list of messages, whatever its format."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, Mapping):
        for field in ("content", "parts", "text"):
            yield from texts(value.get(field))


PROMPT_FIELDS: Final = ("system", "instructions", "system_instruction", "messages", "input", "contents", "prompt")
SAID: Final[Mapping[type, Callable[[Any], str]]] = {
    Text: lambda piece: str(piece.text),
    Thinking: lambda piece: str(piece.text),
    RedactedThinking: lambda piece: "",
    ToolCall: input_text,
    Image: lambda piece: "",
}
