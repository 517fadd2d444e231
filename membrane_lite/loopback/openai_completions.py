"""Completions: POST .../completions, as OpenAI began it for base models and vLLM, llama.cpp and others speak it.

    > {"model": "davinci-002", "prompt": "User: Hi\\n\\nClaude:", "stream": true}
    < data: {"id":"cmpl-1","object":"text_completion","choices":[{"text":" Hel","index":0,"finish_reason":null}]}
    < data: [DONE]

Only text can be said. Whatever a Reply says goes out as it is, eot tokens and all: some servers know no stop sequence.
Source: platform.openai.com/docs/api-reference/completions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from .chat import CHAT, DONE, FINISH_REASONS, error, error_event, first_fault
from .format import UNASKED, Asked, Format, counted, deltas, json_bytes, said, sse_event
from .replies import Text

if TYPE_CHECKING:
    from .answers import Raw
    from .received import Received
    from .replies import Reply


def events(reply: Reply, asked: Asked = UNASKED) -> list[bytes]:
    """The events of a stream, [DONE] included. Usage comes where stream_options.include_usage asks for it."""
    chunks: list[dict[str, Any]] = [{"choices": [_choice(text, None)]} for text in _pieces(reply)]
    chunks.append({"choices": [_choice("", _finish_reason(reply))]})
    if (asked.body.get("stream_options") or {}).get("include_usage") is True:
        chunks.append({"choices": [], "usage": _usage(reply, asked)})
    head = _head(reply, asked)
    return [*(sse_event(json_bytes({**head, **chunk})) for chunk in chunks), DONE]


def document(reply: Reply, asked: Asked = UNASKED) -> bytes:
    """The whole answer."""
    choice = _choice(said(reply.pieces, Text), _finish_reason(reply))
    return json_bytes({**_head(reply, asked), "choices": [choice], "usage": _usage(reply, asked)})


def check(received: Received) -> Raw | None:
    """The error with which the API would refuse the request, or None. No key is asked for: local servers need none."""
    return first_fault(received, [_faults], "prompt")


def _faults(body: Any) -> Iterator[Raw]:
    if not isinstance(body, Mapping) or not body.get("model"):
        yield error(400, "invalid_request_error", "you must provide a model parameter")
    elif "messages" in body:
        message = "Unrecognized request argument supplied: messages"
        yield error(400, "invalid_request_error", message)
    elif not isinstance(body.get("prompt", ""), (str, list)):
        message = "Invalid type for 'prompt': expected a string or an array."
        yield error(400, "invalid_request_error", message, code="invalid_type", param="prompt")


def _pieces(reply: Reply) -> Iterator[str]:
    yield from deltas(said(reply.pieces, Text), reply.delta_size)


def _head(reply: Reply, asked: Asked) -> dict[str, Any]:
    return {
        "id": f"cmpl-loopback-{asked.number:06d}",
        "object": "text_completion",
        "created": asked.created,
        "model": reply.model or asked.model,
    }


def _choice(text: str, finish_reason: str | None) -> dict[str, Any]:
    return {"text": text, "index": 0, "logprobs": None, "finish_reason": finish_reason}


def _finish_reason(reply: Reply) -> str:
    return FINISH_REASONS.get(reply.stop_reason, reply.stop_reason)


def _usage(reply: Reply, asked: Asked) -> dict[str, Any]:
    usage = counted(reply, asked)
    prompt_tokens, output_tokens = usage.input_tokens or 0, usage.output_tokens or 0
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": output_tokens,
        "total_tokens": prompt_tokens + output_tokens,
    }


COMPLETIONS: Final = Format(
    name="openai_completions",
    stream_type="text/event-stream",
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
