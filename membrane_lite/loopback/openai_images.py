"""OpenAI's Images API: POST .../images/generations in JSON, .../images/edits as a form with the images to be edited.

    > {"model": "gpt-image-1", "prompt": "A red square", "stream": true, "partial_images": 1}
    < event: image_generation.partial_image
    < data: {"type":"image_generation.partial_image","b64_json":"iVBO...","partial_image_index":0}
    < event: image_generation.completed
    < data: {"type":"image_generation.completed","b64_json":"iVBO...","usage":{"input_tokens":3,...}}

A Reply's images are the answer's; a text before one is its revised prompt. A stream shows each image as often before
it is done as `partial_images` asks. Source: platform.openai.com/docs/api-reference/images and images-streaming.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from .answers import Headers, Raw
from .chat import CHAT
from .chat import error as chat_error
from .format import UNASKED, Asked, Format, counted, json_bytes, sse_event
from .replies import Image, Text

if TYPE_CHECKING:
    from .received import Received
    from .replies import Reply

USER_ERROR: Final = "image_generation_user_error"


def events(reply: Reply, asked: Asked = UNASKED) -> list[bytes]:
    """The events of a stream: previews and image, one image after another."""
    found = []
    for item in _items(reply):
        about = {"b64_json": item["b64_json"], "created_at": asked.created, **_settings(asked)}
        for index in range(int(asked.body.get("partial_images") or 0)):
            found.append(event("partial_image", asked, **about, partial_image_index=index))
        found.append(event("completed", asked, **about, usage=_usage(reply, asked)))
    return found


def event(word: str, asked: Asked, **fields: Any) -> bytes:
    """One event, named after what is done: image_generation or image_edit, then `word`."""
    name = f"{'image_edit' if 'image[]' in asked.body else 'image_generation'}.{word}"
    return sse_event(json_bytes({"type": name, **fields}), name)


def document(reply: Reply, asked: Asked = UNASKED) -> bytes:
    """The whole answer."""
    about = {"created": asked.created, **_settings(asked), "usage": _usage(reply, asked)}
    return json_bytes({**about, "data": list(_items(reply))})


def error(
    status: int, type: str, message: str, *, code: str | None = None, param: str | None = None, headers: Headers = ()
) -> Raw:
    """An error as the API answers it, such as error(400, USER_ERROR, "Refused", code="moderation_blocked")."""
    return chat_error(status, type, message, code=code, param=param, headers=headers)


def error_event(type: str = "server_error", message: str = "The server had an error", code: str | None = None) -> bytes:
    """An error in the middle of a stream."""
    inner = {"type": type, "code": code, "message": message, "param": None}
    return sse_event(json_bytes({"type": "error", "error": inner}), "error")


def check(received: Received) -> Raw | None:
    """The error with which the API would refuse the request, or None."""
    if received.header("authorization") is None:
        message = "You didn't provide an API key."
        return error(401, "invalid_request_error", message, code="missing_api_key")
    try:
        body = received.json
    except ValueError:
        return error(400, "invalid_request_error", "We could not parse the body of your request.")
    return next(_faults(received.target, body), None)


def _faults(target: str, body: Mapping[str, Any]) -> Iterator[Raw]:
    for name in ["prompt", *(["image[]"] if target.endswith("/edits") else [])]:
        if not body.get(name):
            message = f"Missing required parameter: '{name}'."
            yield error(400, "invalid_request_error", message, code="missing_required_parameter", param=name)
    if "response_format" in body and str(body.get("model")).startswith("gpt-image"):
        message = "Unknown parameter: 'response_format'."
        yield error(400, "invalid_request_error", message, code="unknown_parameter", param="response_format")


def _items(reply: Reply) -> Iterator[dict[str, Any]]:
    prompt = ""
    for piece in reply.pieces:
        if isinstance(piece, Text):
            prompt = piece.text
        elif isinstance(piece, Image):
            yield {"b64_json": piece.data, **({"revised_prompt": prompt} if prompt else {})}
            prompt = ""


def _settings(asked: Asked) -> dict[str, Any]:
    body = asked.body
    return {
        "background": body.get("background", "opaque"),
        "output_format": body.get("output_format", "png"),
        "quality": body.get("quality", "auto"),
        "size": body.get("size", "1024x1024"),
    }


def _usage(reply: Reply, asked: Asked) -> dict[str, Any]:
    usage = counted(reply, asked)
    input_tokens, output_tokens = usage.input_tokens or 0, usage.output_tokens or 0
    return {
        "input_tokens": input_tokens,
        "input_tokens_details": {"text_tokens": input_tokens, "image_tokens": 0},
        "output_tokens": output_tokens,
        "total_tokens": input_tokens + output_tokens,
    }


def _is_streamed(received: Received) -> bool:
    return received.json.get("stream") in (True, "true")  # JSON says it one way, a form the other


IMAGES: Final = Format(
    name="openai_images",
    stream_type="text/event-stream; charset=utf-8",
    request_id_header="x-request-id",
    error_types=CHAT.error_types,
    ping=CHAT.ping,
    is_streamed=_is_streamed,
    check=check,
    events=events,
    document=document,
    error=error,
    error_event=error_event,
)
