"""OpenAI Responses: POST .../responses. Source: platform.openai.com/docs/api-reference/responses-streaming.

    > {"model": "gpt-5.1", "input": "Hi", "stream": true}
    < event: response.output_text.delta
    < data: {"type":"response.output_text.delta","item_id":"msg_1","output_index":0,"content_index":0,"delta":"Hel"}

Each piece of a Reply is an output item; a refusal's texts are refusals. Reasoning goes out as a summary, its signature
as the encrypted content, which comes only where `include` asks for it. ITEMS maps a piece to its item and to the events
between the item's beginning and its end; CHECKS are what the API refuses, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from .answers import Raw
from .chat import CHAT, first_fault
from .chat import error as error
from .format import UNASKED, Asked, Format, counted, deltas, input_text, json_bytes, sse_event
from .replies import Image, RedactedThinking, Text, Thinking, ToolCall

if TYPE_CHECKING:
    from .received import Received
    from .replies import Reply

Json = Mapping[str, Any]

ENCRYPTED: Final = "reasoning.encrypted_content"

# Why an answer is incomplete, in this format's words; other stop reasons are those of a complete one.
INCOMPLETE: Final = {"max_tokens": "max_output_tokens", "content_filter": "content_filter"}


class Place(NamedTuple):
    """Where a piece stands in its answer, and what of the answer shapes it."""

    id: str
    output_index: int
    size: int | None
    refuses: bool
    encrypts: bool

    def at(self, **fields: Any) -> dict[str, Any]:
        return {"item_id": self.id, "output_index": self.output_index, **fields}


def events(reply: Reply, asked: Asked = UNASKED) -> list[bytes]:
    """The events of a stream."""
    answer = _answer(reply, asked)
    begun = {**answer, "status": "in_progress", "incomplete_details": None, "output": [], "usage": None}
    told: list[tuple[str, dict[str, Any]]] = [
        ("response.created", {"response": begun}),
        ("response.in_progress", {"response": begun}),
        *(event for index, item in enumerate(answer["output"]) for event in _item_events(reply, asked, index, item)),
        (f"response.{answer['status']}", {"response": answer}),
    ]
    return [event(name, sequence_number=number, **fields) for number, (name, fields) in enumerate(told)]


def document(reply: Reply, asked: Asked = UNASKED) -> bytes:
    """The whole answer."""
    return json_bytes(_answer(reply, asked))


def event(type: str, **fields: Any) -> bytes:
    """Any event of a stream."""
    return sse_event(json_bytes({"type": type, **fields}), type)


def error_event(type: str = "server_error", message: str = "The server had an error") -> bytes:
    """An error in the middle of a stream."""
    return event("error", code=type, message=message, param=None)


def failed_event(code: str = "server_error", message: str = "The server had an error") -> bytes:
    """The other way in which a stream tells of an error: an answer that failed."""
    failure = {"code": code, "message": message}
    return event("response.failed", response={"status": "failed", "error": failure, "output": [], "usage": None})


def check(received: Received) -> Raw | None:
    """The error with which the API would refuse the request, or None. No key is asked for: local servers need none."""
    return first_fault(received, CHECKS, "input")


def _answer(reply: Reply, asked: Asked) -> dict[str, Any]:
    reason = INCOMPLETE.get(reply.stop_reason)
    return {
        "id": f"resp_loopback_{asked.number:06d}",
        "object": "response",
        "created_at": asked.created,
        "status": "completed" if reason is None else "incomplete",
        "error": None,
        "incomplete_details": None if reason is None else {"reason": reason},
        "model": reply.model or asked.model,
        "output": [_item(reply, asked, index) for index in range(len(reply.pieces))],
        "service_tier": asked.body.get("service_tier", "default"),
        "usage": _usage(reply, asked),
    }


def _usage(reply: Reply, asked: Asked) -> dict[str, Any]:
    """Here input_tokens counts cached tokens in, and output_tokens those of reasoning."""
    usage = counted(reply, asked)
    input_tokens = (usage.input_tokens or 0) + usage.cache_read_tokens + usage.cache_creation_tokens
    output_tokens = usage.output_tokens or 0
    cached = {"cached_tokens": usage.cache_read_tokens, "cache_write_tokens": usage.cache_creation_tokens}
    return {
        "input_tokens": input_tokens,
        "input_tokens_details": cached,
        "output_tokens": output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.thinking_tokens},
        "total_tokens": input_tokens + output_tokens,
    }


def _place(reply: Reply, asked: Asked, index: int) -> Place:
    return Place(
        f"{PREFIXES[type(reply.pieces[index])]}_loopback_{asked.number:06d}_{index}",
        index,
        reply.delta_size,
        refuses=reply.stop_reason == "refusal",
        encrypts=ENCRYPTED in (asked.body.get("include") or ()),
    )


def _item(reply: Reply, asked: Asked, index: int) -> dict[str, Any]:
    return ITEMS[type(reply.pieces[index])][0](reply.pieces[index], _place(reply, asked, index))


def _item_events(reply: Reply, asked: Asked, index: int, item: Json) -> Iterator[tuple[str, dict[str, Any]]]:
    piece: Any = reply.pieces[index]
    unfilled = {key: EMPTY.get(key, value) for key, value in item.items()}
    yield "response.output_item.added", {"output_index": index, "item": unfilled}
    yield from ITEMS[type(piece)][1](piece, _place(reply, asked, index))
    yield "response.output_item.done", {"output_index": index, "item": item}


Events = Iterator[tuple[str, dict[str, Any]]]


def _message(piece: Text, place: Place) -> dict[str, Any]:
    content = [_refusal_part(piece.text) if place.refuses else _text_part(piece.text)]
    return {"id": place.id, "type": "message", "status": "completed", "role": "assistant", "content": content}


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": []}


def _refusal_part(text: str) -> dict[str, Any]:
    return {"type": "refusal", "refusal": text}


def _message_events(piece: Text, place: Place) -> Events:
    field, part = ("refusal", _refusal_part) if place.refuses else ("output_text", _text_part)
    told = {"refusal": piece.text} if place.refuses else {"text": piece.text}
    yield "response.content_part.added", place.at(content_index=0, part=part(""))
    for text in deltas(piece.text, place.size):
        yield f"response.{field}.delta", place.at(content_index=0, delta=text)
    yield f"response.{field}.done", place.at(content_index=0, **told)
    yield "response.content_part.done", place.at(content_index=0, part=part(piece.text))


def _reasoning(piece: Thinking, place: Place) -> dict[str, Any]:
    encrypted = {"encrypted_content": piece.signature} if place.encrypts else {}
    return {"id": place.id, "type": "reasoning", "summary": [_summary(piece.text)], **encrypted}


def _summary(text: str) -> dict[str, Any]:
    return {"type": "summary_text", "text": text}


def _reasoning_events(piece: Thinking, place: Place) -> Events:
    yield "response.reasoning_summary_part.added", place.at(summary_index=0, part=_summary(""))
    for text in deltas(piece.text, place.size):
        yield "response.reasoning_summary_text.delta", place.at(summary_index=0, delta=text)
    yield "response.reasoning_summary_text.done", place.at(summary_index=0, text=piece.text)
    yield "response.reasoning_summary_part.done", place.at(summary_index=0, part=_summary(piece.text))


def _redacted(piece: RedactedThinking, place: Place) -> dict[str, Any]:
    return {"id": place.id, "type": "reasoning", "summary": [], "encrypted_content": piece.data}


def _call(piece: ToolCall, place: Place) -> dict[str, Any]:
    return {
        "id": place.id,
        "type": "function_call",
        "status": "completed",
        "arguments": input_text(piece),
        "call_id": piece.id or place.id.replace("fc_", "call_", 1),
        "name": piece.name,
    }


def _call_events(piece: ToolCall, place: Place) -> Events:
    for text in deltas(input_text(piece), place.size):
        yield "response.function_call_arguments.delta", place.at(delta=text)
    yield "response.function_call_arguments.done", place.at(arguments=input_text(piece))


def _image(piece: Image, place: Place) -> dict[str, Any]:
    return {
        "id": place.id,
        "type": "image_generation_call",
        "status": "completed",
        "output_format": piece.media_type.partition("/")[2],
        "result": piece.data,
    }


def _image_events(piece: Image, place: Place) -> Events:
    for step in ("in_progress", "generating", "completed"):
        yield f"response.image_generation_call.{step}", place.at()


def _no_events(piece: Any, place: Place) -> Events:
    return iter(())


def _missing_fields(body: Json) -> Iterator[Raw]:
    for field in ("model", "input"):
        if not body.get(field):
            message = f"Missing required parameter: '{field}'."
            yield error(400, "invalid_request_error", message, code="missing_required_parameter", param=field)


def _foreign_parts(body: Json) -> Iterator[Raw]:
    for place, item in enumerate(_items(body)):
        content = item.get("content")
        for index, part in enumerate(content if isinstance(content, list) else ()):
            if item.get("type", "message") == "message" and part["type"] not in PARTS:
                at = f"input[{place}].content[{index}].type"
                message = f"Invalid value: '{part['type']}'. Supported values are: {', '.join(PARTS)}."
                yield error(400, "invalid_request_error", message, code="invalid_value", param=at)


def _unanswered_calls(body: Json) -> Iterator[Raw]:
    items = _items(body)
    for call, output, found, lacking in PAIRS:
        here = [item["call_id"] for item in items if item.get("type") == call]
        there = [item["call_id"] for item in items if item.get("type") == output]
        for id in here:
            if id not in there:
                yield error(400, "invalid_request_error", f"No {lacking} found for {found} {id}.", param="input")


def _items(body: Json) -> Sequence[Json]:
    return [] if isinstance(body["input"], str) else body["input"]


PARTS: Final = ("input_text", "input_image", "input_file", "output_text", "refusal")
PAIRS: Final = (
    ("function_call", "function_call_output", "function call", "tool output"),
    ("function_call_output", "function_call", "function call output with call_id", "tool call"),
    ("custom_tool_call", "custom_tool_call_output", "custom tool call", "tool output"),
)
PREFIXES: Final[Mapping[type, str]] = {
    Text: "msg",
    Thinking: "rs",
    RedactedThinking: "rs",
    ToolCall: "fc",
    Image: "ig",
}
# What an item begins with, before its events fill it.
EMPTY: Final[Json] = {"status": "in_progress", "content": [], "summary": [], "arguments": "", "result": None}
ITEMS: Final[Mapping[type, tuple[Callable[..., dict[str, Any]], Callable[..., Events]]]] = {
    Text: (_message, _message_events),
    Thinking: (_reasoning, _reasoning_events),
    RedactedThinking: (_redacted, _no_events),
    ToolCall: (_call, _call_events),
    Image: (_image, _image_events),
}
CHECKS: Final[Sequence[Callable[[Json], Iterator[Raw]]]] = (_missing_fields, _foreign_parts, _unanswered_calls)
RESPONSES: Final = Format(
    name="openai_responses",
    stream_type="text/event-stream; charset=utf-8",
    request_id_header="x-request-id",
    error_types=CHAT.error_types,
    ping=CHAT.ping,
    is_streamed=lambda received: received.json.get("stream") is True,
    check=check,
    events=events,
    document=document,
    error=error,
    error_event=error_event,
)
