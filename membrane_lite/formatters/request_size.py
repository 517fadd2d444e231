"""The byte budget: a request too large for any provider fails before it is sent, or sheds images if it says so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ..errors import MembraneError
from ..values.base import Json
from ..wire.json_text import encode

DEFAULT_MAX_REQUEST_BYTES: Final = 28 * 1024 * 1024
MAX_REQUEST_BYTES_VARIABLE: Final = "MEMBRANE_MAX_REQUEST_BYTES"
LONGEST_ESCAPE: Final = 6  # one character of JSON text takes at most 6 bytes

SHED_NOTE: Final = (
    "[system: an image that belongs here was dropped from THIS request only \u2014 the request exceeded the API's "
    "total size limit, and older images are dropped first. You are not seeing this image right now; it remains in your "
    "history and recent images are kept.]"
)


def max_request_bytes(env: Mapping[str, str]) -> int:
    """MEMBRANE_MAX_REQUEST_BYTES; blank, 0 and what is no number mean 28 MiB."""
    text = env.get(MAX_REQUEST_BYTES_VARIABLE, "").strip()
    return int(text) if text.isascii() and text.isdigit() and int(text) else DEFAULT_MAX_REQUEST_BYTES


def fit(messages: list[Json], limit: int, *, shed: bool) -> int:
    """Check the JSON size of `messages` against `limit`; with `shed`, replace images by a note, oldest first.

    Returns how many images were shed. Raises MembraneError("invalid_request") where the request does not fit.
    """
    if _characters(messages) * LONGEST_ESCAPE <= limit:
        return 0
    size = len(encode(messages))
    count = 0
    for place, index in list(_images(messages)) if shed else ():
        if size <= limit:
            break
        note = _note(place[index])
        size -= len(encode(place[index])) - len(encode(note))
        place[index] = note
        count += 1
    if size > limit:
        raise _too_large(messages, size, limit)
    return count


def _note(image: Json) -> Json:
    return {"type": "input_text" if image["type"] == "input_image" else "text", "text": SHED_NOTE}


def _too_large(messages: list[Json], size: int, limit: int) -> MembraneError:
    images = [place[index] for place, index in _images(messages)]
    share = sum(len(encode(image)) for image in images)
    return MembraneError(
        "invalid_request",
        f"messages: {size / 1e6:.1f} MB of JSON, the limit is {limit / 1e6:.1f} MB "
        f"({len(images)} images take {share / 1e6:.1f} MB); send less, set shed_oversize_images to drop the oldest "
        f"images, or raise {MAX_REQUEST_BYTES_VARIABLE}",
    )


def _images(messages: list[Json]) -> Iterator[tuple[list[Json], int]]:
    """(list, index) of every inline image, in document order, those in tool results included."""
    for message in messages:
        yield from _images_in(message.get("content"))
        yield from _images_in(message.get("output"))  # of a call, where messages are a flat list of items


def _images_in(content: Any) -> Iterator[tuple[list[Json], int]]:
    if not isinstance(content, list):
        return
    for index, block in enumerate(content):
        if _is_inline(block):
            yield content, index
        elif block.get("type") == "tool_result":
            yield from _images_in(block.get("content"))


def _is_inline(block: Json) -> bool:
    """An image that is all there, in Anthropic's form or as an item of OpenAI's Responses API."""
    if block.get("type") == "input_image":
        return str(block.get("image_url")).startswith("data:")
    return bool(block.get("type") == "image" and block.get("source", {}).get("type") == "base64")


def _characters(messages: Sequence[Json]) -> int:
    """At least the characters of their JSON text over LONGEST_ESCAPE: enough to let small requests pass unmeasured."""
    total, waiting = 0, list(messages)
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            total += len(value) + 1
        elif isinstance(value, dict):
            total += 8 * len(value)  # quotes, colons and commas, and what of the keys their own length does not cover
            waiting += value
            waiting += value.values()
        elif isinstance(value, list):
            total += len(value) + 1
            waiting += value
        else:
            total += 8
    return total
