"""OpenRouter: POST .../api/v1/chat/completions. Chat completions (chat.py), and what OpenRouter puts beside them.

    > {"model": "anthropic/claude-haiku-4.5", "messages": [{"role": "user", "content": "Hi"}], "stream": true}
    < : OPENROUTER PROCESSING
    < data: {..., "provider":"Loopback","choices":[{"index":0,"delta":{"content":"","reasoning":"Hm.",
    <        "reasoning_details":[{"type":"reasoning.text","text":"Hm.","format":"anthropic-claude-v1","index":0}]}, ...
    < data: [DONE]

Reasoning is said twice, plainly and in details, which may come back as they are, but not in pieces. An error of the
provider behind it has that provider's words in metadata.raw.
Source: openrouter.ai/docs/api-reference and /use-cases/reasoning-tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from . import chat
from .answers import Headers, Raw, pairs
from .format import UNASKED, Asked, Format, deltas, json_bytes, said, sse_event
from .replies import Image, RedactedThinking, Thinking

if TYPE_CHECKING:
    from .received import Received
    from .replies import Reply

Json = Mapping[str, Any]

COMMENT: Final = b": OPENROUTER PROCESSING\n\n"
UPSTREAM: Final = "Loopback"  # the name of the provider behind it
COST_PER_TOKEN: Final = 0.000001
REASONING_FORMAT: Final = "anthropic-claude-v1"
PIECES: Final = ("reasoning.text", "reasoning.summary")  # what a stream cuts, and a request may not


def events(reply: Reply, asked: Asked = UNASKED) -> list[bytes]:
    """The events of a stream, the first one preceded by a comment; [DONE] included."""
    chunks = [_routed(chunk) for chunk in chat.chunks(reply, asked, DELTAS)]
    first, *others = [sse_event(json_bytes(chunk)) for chunk in chunks]
    return [COMMENT + first, *others, chat.DONE]


def document(reply: Reply, asked: Asked = UNASKED) -> bytes:
    """The whole answer."""
    answer = _routed(chat.whole(reply, asked))
    message = answer["choices"][0]["message"]
    message["reasoning"] = message.pop("reasoning_content", None)
    details = [entry for index in range(len(reply.pieces)) for entry in _details(reply, index)]
    if details:
        message["reasoning_details"] = details
    images = [_image(piece) for piece in reply.pieces if isinstance(piece, Image)]
    if images:
        message["images"] = images
    return json_bytes(answer)


def error(status: int, type: str, message: str, *, raw: str | None = None, headers: Headers = ()) -> Raw:
    """An error as OpenRouter answers it; raw: the words of the provider behind it. Its code is the status."""
    body = json_bytes({"error": _error(status, message, raw), "user_id": "user_loopback"})
    return Raw(status, (("Content-Type", "application/json"), *pairs(headers)), body, framing="length")


def error_event(type: str = "502", message: str = "Upstream provider disconnected") -> bytes:
    """An error in the middle of a stream: a chunk that ends the answer. type: the code, as text."""
    choice = {"index": 0, "delta": {"content": ""}, "finish_reason": "error", "native_finish_reason": "error"}
    chunk = {"object": "chat.completion.chunk", "provider": UPSTREAM, "choices": [choice]}
    return sse_event(json_bytes({**chunk, "error": _error(int(type), message, None)}))


def check(received: Received) -> Raw | None:
    """The error with which OpenRouter, or the provider behind it, would refuse the request."""
    if not received.header("authorization"):
        return error(401, "401", "No auth credentials found")
    refused = chat.check(received)
    if refused is not None:
        plan = refused.plan(chat.CHAT, UNASKED)
        return error(plan.status or 400, "", "Provider returned error", raw=b"".join(plan.pieces).decode())
    if any(_in_pieces(message.get("reasoning_details") or ()) for message in received.json["messages"]):
        return error(400, "400", "reasoning_details: an entry is split")
    return None


def _in_pieces(entries: Any) -> bool:
    return any(
        one["type"] in PIECES and (one["type"], one.get("index")) == (two["type"], two.get("index"))
        for one, two in zip(entries, entries[1:])
    )


def _error(code: int, message: str, raw: str | None) -> dict[str, Any]:
    metadata = {"provider_name": UPSTREAM, **({} if raw is None else {"raw": raw})}
    return {"code": code, "message": message, "metadata": metadata}


def _routed(chunk: dict[str, Any]) -> dict[str, Any]:
    """A chunk, or a document, with what OpenRouter knows of its provider."""
    usage = chunk.get("usage")
    costs = {"usage": {**usage, "cost": usage["total_tokens"] * COST_PER_TOKEN}} if usage else {}
    choices = [{**choice, "native_finish_reason": choice["finish_reason"]} for choice in chunk["choices"]]
    return {**chunk, "provider": UPSTREAM, "choices": choices, **costs}


def _details(reply: Reply, index: int) -> list[dict[str, Any]]:
    """The entries that piece `index` of the reply is in reasoning_details."""
    piece = reply.pieces[index]
    entry = {"format": REASONING_FORMAT, "index": index}
    if isinstance(piece, Thinking):
        return [{"type": "reasoning.text", "text": piece.text, "signature": piece.signature, **entry}]
    return [{"type": "reasoning.encrypted", "data": piece.data, **entry}] if isinstance(piece, RedactedThinking) else []


def _thinking_deltas(reply: Reply, asked: Asked, index: int) -> Iterator[Json]:
    """Words, said twice; at the end the signature, in the details only."""
    whole = _details(reply, index)[0]
    signature = {"type": whole["type"], "signature": whole["signature"], "format": whole["format"], "index": index}
    for text in deltas(said(reply.pieces[index : index + 1]), reply.delta_size):
        piece = {"type": whole["type"], "text": text, "format": whole["format"], "index": index}
        yield {"content": "", "reasoning": text, "reasoning_details": [piece]}
    yield {"content": "", "reasoning_details": [signature]}


def _encrypted_deltas(reply: Reply, asked: Asked, index: int) -> Iterator[Json]:
    yield {"content": "", "reasoning": None, "reasoning_details": _details(reply, index)}


def _image_deltas(reply: Reply, asked: Asked, index: int) -> Iterator[Json]:
    yield {"content": "", "images": [_image(reply.pieces[index])]}


def _image(piece: Any) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:{piece.media_type};base64,{piece.data}"}}


DELTAS: Final[chat.Deltas] = {
    **chat.DELTAS,
    Thinking: _thinking_deltas,
    RedactedThinking: _encrypted_deltas,
    Image: _image_deltas,
}
OPENROUTER: Final = Format(
    name="openrouter",
    stream_type="text/event-stream",
    request_id_header="x-generation-id",
    error_types={status: str(status) for status in (400, 401, 402, 403, 404, 408, 429, 500, 502, 503)},
    ping=COMMENT,
    is_streamed=lambda received: received.json.get("stream") is True,
    check=check,
    events=events,
    document=document,
    error=error,
    error_event=error_event,
)
