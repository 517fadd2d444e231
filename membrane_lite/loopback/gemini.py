"""Gemini: POST .../models/{model}:generateContent and :streamGenerateContent?alt=sse. Source: ai.google.dev/api.

    > {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}], "generationConfig": {"maxOutputTokens": 64}}
    < data: {"candidates":[{"content":{"parts":[{"text":"Hel"}],"role":"model"},"index":0}],"usageMetadata":{...}}

Every chunk of a stream is an answer of its own, with the counts so far; the last one has the finish reason, and there
is no end mark. A signature of the reasoning stands on the first call or image, else on an empty text at the end.
PARTS maps a piece to the parts it is streamed as; CHECKS are what the API refuses, in order.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from .answers import Headers, Raw, pairs
from .format import UNASKED, Asked, Format, counted, deltas, json_bytes, parsed_input, said, sse_event
from .replies import Image, RedactedThinking, Text, Thinking, ToolCall

if TYPE_CHECKING:
    from .received import Received
    from .replies import Piece, Reply

Json = Mapping[str, Any]

MODEL: Final = re.compile(r"([^/]+):\w+(?:\?|$)")

# The word of this format for a stop reason; any other goes out as it is.
FINISH_REASONS: Final = {
    "end_turn": "STOP",
    "stop_sequence": "STOP",
    "tool_use": "STOP",
    "max_tokens": "MAX_TOKENS",
    "refusal": "SAFETY",
}

STATUSES: Final = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


def events(reply: Reply, asked: Asked = UNASKED) -> list[bytes]:
    """The events of a stream: one for each delta, then one with the end."""
    usage = _usage(reply, asked)
    begun = {"promptTokenCount": usage["promptTokenCount"], "totalTokenCount": usage["promptTokenCount"]}
    chunks = [_answer(reply, asked, [part], begun) for part in _parts(reply, asked, size=reply.delta_size, whole=False)]
    chunks.append(_answer(reply, asked, [_last_part(reply)], usage, finishReason=_finish_reason(reply)))
    return [sse_event(json_bytes(chunk)) for chunk in chunks]


def document(reply: Reply, asked: Asked = UNASKED) -> bytes:
    """The whole answer."""
    parts = [*_parts(reply, asked, size=None, whole=True)]
    last = _last_part(reply)
    parts += [last] if len(last) > 1 or not parts else []
    return json_bytes(_answer(reply, asked, parts, _usage(reply, asked), finishReason=_finish_reason(reply)))


def error(status: int, type: str, message: str, *, details: Sequence[Json] = (), headers: Headers = ()) -> Raw:
    """An error as the API answers it, such as error(429, "RESOURCE_EXHAUSTED", "Quota exceeded")."""
    body = json_bytes(_error(status, type, message, details))
    return Raw(status, (("Content-Type", "application/json"), *pairs(headers)), body, framing="length")


def error_event(type: str = "UNAVAILABLE", message: str = "The model is overloaded") -> bytes:
    """An error in the middle of a stream."""
    code = next((status for status, name in STATUSES.items() if name == type), 500)
    return sse_event(json_bytes(_error(code, type, message)))


def check(received: Received) -> Raw | None:
    """The error with which the API would refuse the request, or None."""
    if received.header("x-goog-api-key") is None and received.header("authorization") is None:
        return error(403, "PERMISSION_DENIED", "Method doesn't allow unregistered callers. Please use API Key.")
    try:
        body = received.json
    except ValueError as exc:
        return error(400, "INVALID_ARGUMENT", f"Invalid JSON payload received. {exc}")
    try:
        found = next((message for find in CHECKS for message in find(body)), None)
    except (LookupError, TypeError, AttributeError):
        found = "Invalid JSON payload received. Unknown name in 'contents'"
    return None if found is None else error(400, "INVALID_ARGUMENT", found)


def _error(status: int, type: str, message: str, details: Sequence[Json] = ()) -> Json:
    return {"error": {"code": status, "message": message, "status": type, **({"details": details} if details else {})}}


def _answer(reply: Reply, asked: Asked, parts: Sequence[Json], usage: Json, **ended: Any) -> Json:
    named = MODEL.search(asked.target)
    return {
        "candidates": [{"content": {"parts": parts, "role": "model"}, **ended, "index": 0}],
        "usageMetadata": usage,
        "modelVersion": reply.model or (named.group(1) if named else asked.model),
        "responseId": f"loopback-{asked.number:06d}",
    }


def _finish_reason(reply: Reply) -> str:
    return FINISH_REASONS.get(reply.stop_reason, reply.stop_reason)


def _usage(reply: Reply, asked: Asked) -> dict[str, Any]:
    """Here the prompt counts cached tokens in, and the candidates do not count the thoughts."""
    usage = counted(reply, asked)
    thoughts = usage.thinking_tokens or 0
    prompt, output = (usage.input_tokens or 0) + usage.cache_read_tokens, usage.output_tokens or 0
    return {
        "promptTokenCount": prompt,
        "candidatesTokenCount": max(0, output - thoughts),
        "totalTokenCount": prompt + output,
        **({"cachedContentTokenCount": usage.cache_read_tokens} if usage.cache_read_tokens else {}),
        **({"thoughtsTokenCount": thoughts} if thoughts else {}),
    }


def _signature(reply: Reply) -> Json:
    signatures = [piece.signature for piece in reply.pieces if isinstance(piece, Thinking) and piece.signature]
    return {"thoughtSignature": signatures[0]} if signatures else {}


def _signed(reply: Reply) -> Piece | None:
    """The piece that carries the signature."""
    return next((piece for piece in reply.pieces if isinstance(piece, (ToolCall, Image))), None)


def _last_part(reply: Reply) -> Json:
    return {"text": "", **(_signature(reply) if _signed(reply) is None else {})}


def _parts(reply: Reply, asked: Asked, *, size: int | None, whole: bool) -> Iterator[Json]:
    signed = _signed(reply)
    for piece in reply.pieces:
        signature = _signature(reply) if piece is signed else {}
        texts = [said((piece,))] if whole else deltas(said((piece,)), size)
        for part in PARTS[type(piece)](piece, texts):
            yield {**part, **signature}


def _text_parts(piece: Any, texts: Sequence[str]) -> Iterator[Json]:
    yield from ({"text": text} for text in texts)


def _thought_parts(piece: Any, texts: Sequence[str]) -> Iterator[Json]:
    yield from ({"text": text, "thought": True} for text in texts)


def _call_parts(piece: Any, texts: Sequence[str]) -> Iterator[Json]:
    """Arguments come whole: they are an object here; a text that is none goes out as a call that breaks off.

    Ids come where they are given.
    """
    named = {"name": piece.name, **({} if piece.id is None else {"id": piece.id})}
    input = parsed_input(piece)
    broken = isinstance(piece.input, str) and not input and piece.input.strip() not in ("", "{}")
    yield {"functionCall": {**named, **({"willContinue": True} if broken else {"args": input})}}


def _image_parts(piece: Any, texts: Sequence[str]) -> Iterator[Json]:
    yield {"inlineData": {"mimeType": piece.media_type, "data": piece.data}}


def _nothing(piece: Any, texts: Sequence[str]) -> Iterator[Json]:
    return iter(())


def _no_contents(body: Json) -> Iterator[str]:
    if not body.get("contents"):
        yield "* GenerateContentRequest.contents: contents is not specified"


def _roles(body: Json) -> Iterator[str]:
    if any(content.get("role", "user") not in ("user", "model") for content in body["contents"]):
        yield "Please use a valid role: user, model."


def _empty_parts(body: Json) -> Iterator[str]:
    for index, content in enumerate(body["contents"]):
        if not content["parts"]:
            yield f"* GenerateContentRequest.contents[{index}].parts: contents.parts must not be empty."


def _unanswered_calls(body: Json) -> Iterator[str]:
    """As many results as calls, in the turn right after them."""
    counts = [
        [sum(field in part for part in content["parts"]) for field in ("functionCall", "functionResponse")]
        for content in body["contents"]
    ]
    for (calls, _), (_, results) in zip([[0, 0], *counts], [*counts, [0, 0]]):
        if calls != results:
            yield (
                "Please ensure that the number of function response parts is equal to the number of function call "
                "parts of the function call turn."
            )


PARTS: Final[Mapping[type, Callable[[Any, Sequence[str]], Iterator[Json]]]] = {
    Text: _text_parts,
    Thinking: _thought_parts,
    ToolCall: _call_parts,
    Image: _image_parts,
    RedactedThinking: _nothing,  # the format has no place for it
}
CHECKS: Final[Sequence[Callable[[Json], Iterator[str]]]] = (_no_contents, _roles, _empty_parts, _unanswered_calls)
GEMINI: Final = Format(
    name="gemini",
    stream_type="text/event-stream",
    request_id_header="x-request-id",
    error_types=STATUSES,
    ping=b": keep-alive\n\n",
    is_streamed=lambda received: ":streamGenerateContent" in received.target,
    check=check,
    events=events,
    document=document,
    error=error,
    error_event=error_event,
)
