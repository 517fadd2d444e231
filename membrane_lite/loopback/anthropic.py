"""Anthropic Messages: POST /v1/messages. Source: platform.claude.com/docs/en/api/messages.

    > {"model": "claude-sonnet-4-5", "max_tokens": 64, "messages": [{"role": "user", "content": "Hi"}], "stream": true}
    < event: content_block_delta
    < data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}}

BLOCKS maps a piece to its content block and to the deltas it is streamed as; CHECKS are what the API refuses, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from .answers import Headers, Raw, pairs
from .format import UNASKED, Asked, Format, counted, deltas, input_text, json_bytes, parsed_input, sse_event
from .replies import RedactedThinking, Text, Thinking, ToolCall

if TYPE_CHECKING:
    from .received import Received
    from .replies import Reply

Json = Mapping[str, Any]

PING: Final = sse_event(b'{"type": "ping"}', "ping")

NO_MESSAGE: Final[Json] = {"content": []}

# Choices of a tool that leave no other answer.
FORCING: Final = ("any", "tool")

# What a block starts with, before its deltas fill it.
EMPTY: Final[Json] = {"text": "", "thinking": "", "signature": "", "input": {}}


def events(reply: Reply, asked: Asked = UNASKED) -> list[bytes]:
    """The events of a stream. As the API does, it pings once, after the first block has begun."""
    usage = _usage(reply, asked)
    start = {**_message(reply, asked), "content": [], "stop_reason": None, "stop_sequence": None}
    ended = {"stop_reason": reply.stop_reason, "stop_sequence": reply.stop_sequence}
    blocks = [event for index in range(len(reply.pieces)) for event in _block_events(reply, asked, index)]
    return [
        event("message_start", message={**start, "usage": {**usage, "output_tokens": 1}}),
        *blocks[:1],
        PING,
        *blocks[1:],
        event("message_delta", delta=ended, usage=usage),
        event("message_stop"),
    ]


def document(reply: Reply, asked: Asked = UNASKED) -> bytes:
    """The whole answer."""
    content = [_block(reply, asked, index) for index in range(len(reply.pieces))]
    return json_bytes({**_message(reply, asked), "content": content, "usage": _usage(reply, asked)})


def event(type: str, **fields: Any) -> bytes:
    """Any event of a stream."""
    return sse_event(json_bytes({"type": type, **fields}), type)


def error(status: int, type: str, message: str, *, headers: Headers = ()) -> Raw:
    """An error as the API answers it, such as error(529, "overloaded_error", "Overloaded")."""
    body = json_bytes({"type": "error", "error": {"type": type, "message": message}})
    return Raw(status, (("Content-Type", "application/json"), *pairs(headers)), body, framing="length")


def error_event(type: str = "overloaded_error", message: str = "Overloaded") -> bytes:
    """An error in the middle of a stream."""
    return event("error", error={"type": type, "message": message})


def check(received: Received) -> Raw | None:
    """The error with which the API would refuse the request, or None."""
    if received.header("x-api-key") is None and received.header("authorization") is None:
        return error(401, "authentication_error", "x-api-key header is required")
    if received.header("anthropic-version") is None:
        return error(400, "invalid_request_error", "anthropic-version: header is required")
    try:
        body = received.json
    except ValueError as exc:
        return error(400, "invalid_request_error", f"The request body is not valid JSON: {exc}")
    try:
        found = next((message for find in CHECKS for message in find(body)), None)
    except (LookupError, TypeError, AttributeError):
        found = "messages: Input does not match the expected shape."
    return None if found is None else error(400, "invalid_request_error", found)


def _message(reply: Reply, asked: Asked) -> dict[str, Any]:
    return {
        "id": f"msg_loopback_{asked.number:06d}",
        "type": "message",
        "role": "assistant",
        "model": reply.model or asked.model,
        "content": [],
        "stop_reason": reply.stop_reason,
        "stop_sequence": reply.stop_sequence,
    }


def _usage(reply: Reply, asked: Asked) -> dict[str, Any]:
    usage = counted(reply, asked)
    return {
        "input_tokens": usage.input_tokens,
        "cache_creation_input_tokens": usage.cache_creation_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "output_tokens": usage.output_tokens,
    }


def _block(reply: Reply, asked: Asked, index: int) -> dict[str, Any]:
    piece = reply.pieces[index]
    block, _ = BLOCKS[type(piece)]
    return block(piece, f"toolu_loopback_{asked.number:06d}_{index}")


def _block_events(reply: Reply, asked: Asked, index: int) -> Iterator[bytes]:
    block = {key: EMPTY.get(key, value) for key, value in _block(reply, asked, index).items()}
    yield event("content_block_start", index=index, content_block=block)
    piece = reply.pieces[index]
    _, block_deltas = BLOCKS[type(piece)]
    for delta in block_deltas(piece, reply.delta_size):
        yield event("content_block_delta", index=index, delta=delta)
    yield event("content_block_stop", index=index)


def _text(piece: Text, id: str) -> dict[str, Any]:
    return {"type": "text", "text": piece.text}


def _text_deltas(piece: Text, size: int | None) -> Iterator[Json]:
    for text in deltas(piece.text, size):
        yield {"type": "text_delta", "text": text}


def _thinking(piece: Thinking, id: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": piece.text, "signature": piece.signature}


def _thinking_deltas(piece: Thinking, size: int | None) -> Iterator[Json]:
    for text in deltas(piece.text, size):
        yield {"type": "thinking_delta", "thinking": text}
    yield {"type": "signature_delta", "signature": piece.signature}


def _redacted(piece: RedactedThinking, id: str) -> dict[str, Any]:
    return {"type": "redacted_thinking", "data": piece.data}


def _no_deltas(piece: RedactedThinking, size: int | None) -> Iterator[Json]:
    return iter(())


def _tool_use(piece: ToolCall, id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": piece.id or id, "name": piece.name, "input": parsed_input(piece)}


def _tool_use_deltas(piece: ToolCall, size: int | None) -> Iterator[Json]:
    # The first part is empty, and a call without arguments has no other.
    yield {"type": "input_json_delta", "partial_json": ""}
    text = input_text(piece)
    for part in deltas("" if text == "{}" else text, size):
        yield {"type": "input_json_delta", "partial_json": part}


def _missing_fields(body: Json) -> Iterator[str]:
    for field in ("model", "max_tokens", "messages"):
        if field not in body:
            yield f"{field}: Field required"


def _no_messages(body: Json) -> Iterator[str]:
    if not body["messages"]:
        yield "messages: at least one message is required"


def _first_role(body: Json) -> Iterator[str]:
    if body["messages"][0]["role"] != "user":
        yield 'messages: first message must use the "user" role'


def _misplaced_changes(body: Json) -> Iterator[str]:
    """Messages of role system in a row are judged as one."""
    roles = ["", *(message["role"] for message in body["messages"]), "assistant"]
    for index, (before, role, after) in enumerate(zip(roles, roles[1:], roles[2:])):
        if role == "system" and (before not in ("user", "system") or after not in ("assistant", "system")):
            yield f"messages.{index}: role 'system' must follow a user message, and be last or before an assistant one"


def _empty_texts(body: Json) -> Iterator[str]:
    yield from _blank("system", body.get("system"))
    for message in body["messages"]:
        yield from _blank("messages", message["content"])


def _blank(field: str, content: Any) -> Iterator[str]:
    for text in _texts(content):
        if not text:
            yield f"{field}: text content blocks must be non-empty"
        elif text.isspace():
            yield f"{field}: text content blocks must contain non-whitespace text"


def _trailing_whitespace(body: Json) -> Iterator[str]:
    last = body["messages"][-1]
    texts = _texts(last["content"])
    if last["role"] == "assistant" and texts and texts[-1] != texts[-1].rstrip():
        yield "messages: final assistant content cannot end with trailing whitespace"


def _unanswered_calls(body: Json) -> Iterator[str]:
    messages: list[Json] = body["messages"]
    for index, (message, following) in enumerate(zip(messages, [*messages[1:], NO_MESSAGE])):
        # Results come first in their message: a text before them parts them from their calls.
        answered = {block.get("tool_use_id") for block in _leading_results(following)}
        calls = [block["id"] for block in _blocks(message["content"]) if block["type"] == "tool_use"]
        missing = [id for id in calls if id not in answered]
        if missing:
            yield (
                f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the "
                "next message."
            )


def _uncalled_results(body: Json) -> Iterator[str]:
    called: set[str] = set()
    for index, message in enumerate(body["messages"]):
        blocks = _blocks(message["content"])
        for position, block in enumerate(blocks):
            if block["type"] == "tool_result" and block["tool_use_id"] not in called:
                yield (
                    f"messages.{index}.content.{position}: unexpected `tool_use_id` found in `tool_result` blocks: "
                    f"{block['tool_use_id']}. Each `tool_result` block must have a corresponding `tool_use` block in "
                    "the previous message."
                )
        called = {block["id"] for block in blocks if block["type"] == "tool_use"}


def _repeated_ids(body: Json) -> Iterator[str]:
    blocks = [block for message in body["messages"] for block in _blocks(message["content"])]
    ids = [block["id"] for block in blocks if block["type"] == "tool_use"]
    if len(ids) != len(set(ids)):
        yield "messages: `tool_use` ids must be unique"


def _forced_thinking(body: Json) -> Iterator[str]:
    thinking, choice = body.get("thinking") or {}, body.get("tool_choice") or {}
    if thinking.get("type") == "enabled" and choice.get("type") in FORCING:
        yield "Thinking may not be enabled when tool_choice forces tool use."


def _chosen_tool(body: Json) -> Iterator[str]:
    name = (body.get("tool_choice") or {}).get("name")
    if name is not None and name not in [tool.get("name") for tool in body.get("tools") or ()]:
        yield f"Tool '{name}' not found in provided tools"


def _blocks(content: Any) -> Sequence[Json]:
    """A string is one text block."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []


def _texts(content: Any) -> list[str]:
    return [block["text"] for block in _blocks(content) if block["type"] == "text"]


def _leading_results(message: Json) -> Iterator[Json]:
    for block in _blocks(message["content"]):
        if block["type"] != "tool_result":
            return
        yield block


BLOCKS: Final[Mapping[type, tuple[Callable[..., dict[str, Any]], Callable[..., Iterator[Json]]]]] = {
    Text: (_text, _text_deltas),
    Thinking: (_thinking, _thinking_deltas),
    RedactedThinking: (_redacted, _no_deltas),
    ToolCall: (_tool_use, _tool_use_deltas),
}
CHECKS: Final[Sequence[Callable[[Json], Iterator[str]]]] = (
    _missing_fields,
    _no_messages,
    _first_role,
    _misplaced_changes,
    _empty_texts,
    _trailing_whitespace,
    _repeated_ids,
    _unanswered_calls,
    _uncalled_results,
    _forced_thinking,
    _chosen_tool,
)
ANTHROPIC: Final = Format(
    name="anthropic",
    stream_type="text/event-stream; charset=utf-8",
    request_id_header="request-id",
    error_types={
        400: "invalid_request_error",
        401: "authentication_error",
        402: "billing_error",
        403: "permission_error",
        404: "not_found_error",
        413: "request_too_large",
        429: "rate_limit_error",
        500: "api_error",
        504: "timeout_error",
        529: "overloaded_error",
    },
    ping=PING,
    is_streamed=lambda received: received.json.get("stream") is True,
    check=check,
    events=events,
    document=document,
    error=error,
    error_event=error_event,
)
