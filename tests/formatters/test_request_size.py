"""request_size: a request too large for any provider fails before it is sent, or sheds its oldest images."""

from __future__ import annotations

from typing import Any

import pytest

from membrane_lite.errors import MembraneError
from membrane_lite.formatters.request_size import DEFAULT_MAX_REQUEST_BYTES, fit, max_request_bytes
from membrane_lite.wire.json_text import encode

NOTE = {
    "type": "text",
    "text": "[system: an image that belongs here was dropped from THIS request only — the request exceeded the API's "
    "total size limit, and older images are dropped first. You are not seeing this image right now; it remains in your "
    "history and recent images are kept.]",
}
VARIABLES = {
    "unset": ({}, 29_360_128),
    "blank": ({"MEMBRANE_MAX_REQUEST_BYTES": " "}, 29_360_128),
    "zero": ({"MEMBRANE_MAX_REQUEST_BYTES": "0"}, 29_360_128),
    "no number": ({"MEMBRANE_MAX_REQUEST_BYTES": "28MB"}, 29_360_128),
    "below zero": ({"MEMBRANE_MAX_REQUEST_BYTES": "-5"}, 29_360_128),
    "digits of another script": ({"MEMBRANE_MAX_REQUEST_BYTES": "٥٥"}, 29_360_128),
    "a number": ({"MEMBRANE_MAX_REQUEST_BYTES": " 1000 "}, 1_000),
}


@pytest.mark.parametrize("env, limit", VARIABLES.values(), ids=VARIABLES.keys())
def test_the_limit(env: dict[str, str], limit: int) -> None:
    assert max_request_bytes(env) == limit
    assert DEFAULT_MAX_REQUEST_BYTES == 28 * 1024 * 1024


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def image(name: str) -> dict[str, Any]:
    """One of 1,000 characters and some, told apart by its first."""
    return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": name * 1_000}}


def conversation() -> list[dict[str, Any]]:
    """Four images, of which the third stands in a tool result and one is an address that takes no room."""
    return [
        {"role": "user", "content": [text("see"), image("a")]},
        {"role": "assistant", "content": [text("yes")]},
        {"role": "user", "content": [image("b"), {"type": "image", "source": {"type": "url", "url": "u"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": [text("r"), image("c")]}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "d", "content": "r"}, image("d")]},
    ]


def left(messages: list[dict[str, Any]]) -> str:
    """The images that are left, by name."""
    text = encode(messages).decode()
    return "".join(name for name in "abcd" if name * 1_000 in text)


WHOLE = len(encode(conversation()))
SAVED = len(encode(image("a"))) - len(encode(NOTE))  # by each image that becomes a note

FITS: dict[str, tuple[int, bool, str]] = {
    "just fits": (WHOLE, False, "abcd"),
    "just fits, and might shed": (WHOLE, True, "abcd"),
    "a byte too much": (WHOLE - 1, True, "bcd"),
    "one image's room": (WHOLE - SAVED, True, "bcd"),
    "a byte more": (WHOLE - SAVED - 1, True, "cd"),
    "one within a tool result": (WHOLE - 3 * SAVED, True, "d"),
    "all of them": (WHOLE - 4 * SAVED, True, ""),
}


@pytest.mark.parametrize("limit, shed, names", FITS.values(), ids=FITS.keys())
def test_the_oldest_images_are_shed_until_it_fits(limit: int, shed: bool, names: str) -> None:
    messages = conversation()
    assert fit(messages, limit, shed=shed) == 4 - len(names)
    assert left(messages) == names
    assert len(encode(messages)) <= limit


def test_what_stands_in_place_of_an_image() -> None:
    messages = conversation()
    fit(messages, WHOLE - 3 * SAVED, shed=True)
    assert messages[0]["content"] == [text("see"), NOTE]
    assert messages[2]["content"] == [NOTE, {"type": "image", "source": {"type": "url", "url": "u"}}]
    assert messages[3]["content"][0]["content"] == [text("r"), NOTE]


def refusal(messages: list[dict[str, Any]], limit: int, *, shed: bool) -> MembraneError:
    with pytest.raises(MembraneError) as raised:
        fit(messages, limit, shed=shed)
    assert (raised.value.type, raised.value.retryable) == ("invalid_request", False)
    return raised.value


def test_a_request_that_is_too_large_says_how_large_it_is() -> None:
    big = image("x" * 1_500)
    error = refusal([{"role": "user", "content": [big, image("a")]}], 1_000_000, shed=False)
    assert str(error) == (
        "messages: 1.5 MB of JSON, the limit is 1.0 MB (2 images take 1.5 MB); send less, set shed_oversize_images to "
        "drop the oldest images, or raise MEMBRANE_MAX_REQUEST_BYTES"
    )


def test_text_alone_cannot_be_shed() -> None:
    messages = [{"role": "user", "content": [text("x" * 1_000), image("a")]}]
    assert "(0 images take 0.0 MB)" in str(refusal(messages, 1_000, shed=True))


def test_characters_count_as_the_bytes_they_become() -> None:
    messages = [{"role": "user", "content": [text("€" * 100)]}]
    assert fit(messages, len(encode(messages)), shed=False) == 0
    refusal(messages, len(encode(messages)) - 1, shed=False)


ESCAPED = {"control characters": "\x01" * 1_000, "quotes": '"' * 1_000, "backslashes": "\\" * 1_000}


@pytest.mark.parametrize("words", ESCAPED.values(), ids=ESCAPED.keys())
def test_escapes_count_too(words: str) -> None:
    messages = [{"role": "user", "content": [text(words)]}]
    assert fit(messages, len(encode(messages)), shed=False) == 0
    refusal(messages, len(encode(messages)) - 1, shed=False)
