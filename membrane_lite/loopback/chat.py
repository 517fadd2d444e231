"""Chat Completions: POST .../chat/completions, as OpenAI and the many compatible servers speak it.

    > {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hi"}], "stream": true}
    < data: {"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"Hel"}}]}
    < data: [DONE]

A stream gives its usage only where stream_options.include_usage asks for it, in a chunk of its own without choices.
Reasoning is not OpenAI's: it goes out as `reasoning_content`, as DeepSeek and others name it.
Source: platform.openai.com/docs/api-reference/chat; api-docs.deepseek.com/guides/reasoning_model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from .answers import Headers, Raw, pairs
from .format import UNASKED, Asked, Format, counted, deltas, input_text, json_bytes, said, sse_event
from .replies import Image, RedactedThinking, Text, Thinking, ToolCall

if TYPE_CHECKING:
    from .received import Received
    from .replies import Reply

    Deltas = Mapping[type, Callable[[Reply, Asked, int], Iterator[Mapping[str, Any]]]]

Json = Mapping[str, Any]

DONE: Final = sse_event(b"[DONE]")

# The word of this format for a stop reason; any other goes out as it is.
FINISH_REASONS: Final = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}


def events(reply: Reply, asked: Asked = UNASKED) -> list[bytes]:
    """The events of a stream, [DONE] included."""
    return [*(sse_event(json_bytes(chunk)) for chunk in chunks(reply, asked, DELTAS)), DONE]


def chunks(reply: Reply, asked: Asked, deltas_of: Deltas) -> list[dict[str, Any]]:
    """What the events hold. deltas_of: how each kind of piece is said."""
    options = asked.body.get("stream_options") or {}
    wants_usage = options.get("include_usage") is True
    said_in = [deltas_of[type(piece)](reply, asked, index) for index, piece in enumerate(reply.pieces)]
    parts = [{"role": "assistant", "content": ""}, *(part for parts in said_in for part in parts)]
    chunks: list[dict[str, Any]] = [{"choices": [_choice(delta=part, finish_reason=None)]} for part in parts]
    chunks.append({"choices": [_choice(delta={}, finish_reason=_finish_reason(reply))]})
    if wants_usage:
        chunks = [{**chunk, "usage": None} for chunk in chunks]
        chunks.append({"choices": [], "usage": _usage(reply, asked)})
    head = _head(reply, asked, "chat.completion.chunk")
    return [{**head, **chunk} for chunk in chunks]


def document(reply: Reply, asked: Asked = UNASKED) -> bytes:
    """The whole answer."""
    return json_bytes(whole(reply, asked))


def whole(reply: Reply, asked: Asked) -> dict[str, Any]:
    """What the document holds."""
    reasoning = said(reply.pieces, Thinking)
    calls = [_call(reply, asked, index) for index in _call_indices(reply)]
    message = {
        "role": "assistant",
        "content": said(reply.pieces, Text) or None,
        **({"reasoning_content": reasoning} if reasoning else {}),
        "refusal": None,
        **({"tool_calls": calls} if calls else {}),
    }
    choice = _choice(message=message, finish_reason=_finish_reason(reply))
    head = _head(reply, asked, "chat.completion")
    return {**head, "choices": [choice], "usage": _usage(reply, asked)}


def error(
    status: int, type: str, message: str, *, code: str | None = None, param: str | None = None, headers: Headers = ()
) -> Raw:
    """An error as the API answers it, such as error(429, "requests", "Slow down", code="rate_limit_exceeded")."""
    body = json_bytes({"error": {"message": message, "type": type, "param": param, "code": code}})
    return Raw(status, (("Content-Type", "application/json"), *pairs(headers)), body, framing="length")


def error_event(type: str = "server_error", message: str = "The server had an error") -> bytes:
    """An error in the middle of a stream."""
    return sse_event(json_bytes({"error": {"message": message, "type": type, "param": None, "code": None}}))


def check(received: Received) -> Raw | None:
    """The error with which the API would refuse the request, or None. No key is asked for: local servers need none."""
    return first_fault(received, CHECKS, "messages")


def first_fault(received: Received, checks: Sequence[Callable[[Json], Iterator[Raw]]], field: str) -> Raw | None:
    """What OpenAI's servers say of a body first. field: the one that stops the checks where its type is wrong."""
    try:
        body = received.json
    except ValueError:
        return error(400, "invalid_request_error", "We could not parse the JSON body of your request.")
    try:
        return next((found for find in checks for found in find(body)), None)
    except (LookupError, TypeError, AttributeError):
        return error(400, "invalid_request_error", f"Invalid type for '{field}'.", code="invalid_type", param=field)


def _head(reply: Reply, asked: Asked, object: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-loopback-{asked.number:06d}",
        "object": object,
        "created": asked.created,
        "model": reply.model or asked.model,
    }


def _choice(**fields: Any) -> dict[str, Any]:
    finish_reason = fields.pop("finish_reason")
    return {"index": 0, **fields, "logprobs": None, "finish_reason": finish_reason}


def _finish_reason(reply: Reply) -> str:
    return FINISH_REASONS.get(reply.stop_reason, reply.stop_reason)


def _usage(reply: Reply, asked: Asked) -> dict[str, Any]:
    """Here prompt_tokens counts cached tokens in, and completion_tokens those of reasoning."""
    usage = counted(reply, asked)
    prompt_tokens = (usage.input_tokens or 0) + usage.cache_read_tokens + usage.cache_creation_tokens
    output_tokens = usage.output_tokens or 0
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": output_tokens,
        "total_tokens": prompt_tokens + output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.thinking_tokens},
    }


def _call_indices(reply: Reply) -> list[int]:
    return [index for index, piece in enumerate(reply.pieces) if isinstance(piece, ToolCall)]


def _call(reply: Reply, asked: Asked, index: int) -> dict[str, Any]:
    piece: Any = reply.pieces[index]
    return {
        "id": piece.id or f"call_loopback_{asked.number:06d}_{index}",
        "type": "function",
        "function": {"name": piece.name, "arguments": input_text(piece)},
    }


def _text_deltas(reply: Reply, asked: Asked, index: int) -> Iterator[Json]:
    for text in deltas(said(reply.pieces[index : index + 1]), reply.delta_size):
        yield {"content": text}


def _thinking_deltas(reply: Reply, asked: Asked, index: int) -> Iterator[Json]:
    for text in deltas(said(reply.pieces[index : index + 1]), reply.delta_size):
        yield {"reasoning_content": text}


def _call_deltas(reply: Reply, asked: Asked, index: int) -> Iterator[Json]:
    """Id and name come once, then the arguments; the calls are numbered among themselves."""
    call = _call(reply, asked, index)
    function = call["function"]
    number = _call_indices(reply).index(index)
    yield {"tool_calls": [{"index": number, **call, "function": {**function, "arguments": ""}}]}
    for part in deltas(function["arguments"], reply.delta_size):
        yield {"tool_calls": [{"index": number, "function": {"arguments": part}}]}


def _nothing(reply: Reply, asked: Asked, index: int) -> Iterator[Json]:
    return iter(())


def _missing_fields(body: Json) -> Iterator[Raw]:
    if not body.get("model"):
        yield error(400, "invalid_request_error", "you must provide a model parameter")
    if "messages" not in body:
        message = "Missing required parameter: 'messages'."
        yield error(400, "invalid_request_error", message, code="missing_required_parameter", param="messages")


def _no_messages(body: Json) -> Iterator[Raw]:
    if not body["messages"]:
        message = (
            "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead."
        )
        yield error(400, "invalid_request_error", message, code="empty_array", param="messages")


def _unanswered_calls(body: Json) -> Iterator[Raw]:
    waiting: list[str] = []
    for message in [*body["messages"], {"role": "end"}]:
        if message["role"] == "tool":
            waiting = [id for id in waiting if id != message["tool_call_id"]]
        elif waiting:
            text = (
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(waiting)}"
            )
            yield error(400, "invalid_request_error", text, param="messages")
        else:
            waiting = [call["id"] for call in message.get("tool_calls") or ()]


DELTAS: Final[Deltas] = {
    Text: _text_deltas,
    Thinking: _thinking_deltas,
    RedactedThinking: _nothing,  # the format has no place for it, nor for an image
    Image: _nothing,
    ToolCall: _call_deltas,
}
CHECKS: Final[Sequence[Callable[[Json], Iterator[Raw]]]] = (_missing_fields, _no_messages, _unanswered_calls)
CHAT: Final = Format(
    name="chat",
    stream_type="text/event-stream; charset=utf-8",
    request_id_header="x-request-id",
    error_types={
        400: "invalid_request_error",
        401: "invalid_request_error",
        403: "invalid_request_error",
        404: "invalid_request_error",
        429: "requests",
        500: "server_error",
    },
    ping=b": keep-alive\n\n",
    is_streamed=lambda received: received.json.get("stream") is True,
    check=check,
    events=events,
    document=document,
    error=error,
    error_event=error_event,
)
