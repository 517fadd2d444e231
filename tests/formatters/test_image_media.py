"""image_media: what an image is, by its bytes first and its label second."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from membrane_lite.formatters.image_media import ACCEPTED, accepted, media_type, note, placeholder, sniffed

BYTES: dict[str, tuple[bytes, str | None]] = {
    "PNG": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "image/png"),
    "JPEG with a JFIF head": (b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg"),
    "JPEG with an Exif head": (b"\xff\xd8\xff\xe1\0\x10Exif", "image/jpeg"),
    "GIF87a": (b"GIF87a\x01\0\x01\0", "image/gif"),
    "GIF89a": (b"GIF89a\x01\0\x01\0", "image/gif"),
    "WebP": (b"RIFF\x24\0\0\0WEBPVP8 ", "image/webp"),
    "a RIFF file that holds sound": (b"RIFF\x24\0\0\0WAVEfmt ", None),
    "BMP": (b"BM\x36\0\0\0", None),
    "SVG": (b"<svg xmlns=", None),
    "PDF": (b"%PDF-1.7", None),
    "a PNG cut after its signature": (b"\x89PNG", "image/png"),
    "the beginning of a signature": (b"\x89PN", None),
    "nothing": (b"", None),
}


@pytest.mark.parametrize("head, kind", BYTES.values(), ids=BYTES.keys())
def test_what_bytes_show(head: bytes, kind: str | None) -> None:
    assert sniffed(b64encode(head).decode()) == kind
    assert sniffed(b64encode(head + b"." * 100_000).decode()) == (kind if head else None)


NOT_BASE64 = {
    "not base64": "!",
    "too short": "i",
    "not ASCII": "é" * 24,
    "padding alone": "====",
    "an address": "https://x.org/a.png",
}


@pytest.mark.parametrize("data", NOT_BASE64.values(), ids=NOT_BASE64.keys())
def test_what_is_no_base64_shows_nothing(data: str) -> None:
    assert sniffed(data) is None


def test_base64_without_padding() -> None:
    assert sniffed("iVBORw") == "image/png"


LABELS: dict[str, tuple[Any, str | None]] = {
    "jpeg": ("image/jpeg", "image/jpeg"),
    "upper case": ("IMAGE/PNG", "image/png"),
    "jpg is no registered type": ("image/jpg", None),
    "svg": ("image/svg+xml", None),
    "none": (None, None),
    "no string": (7, None),
}


@pytest.mark.parametrize("label, kind", LABELS.values(), ids=LABELS.keys())
def test_what_a_label_is_worth(label: Any, kind: str | None) -> None:
    assert accepted(label) == kind
    assert media_type({"media_type": label, "data": "AAAA"}) == kind


def test_bytes_outrank_the_label() -> None:
    assert media_type({"media_type": "image/svg+xml", "data": "iVBORw0KGgo="}) == "image/png"
    assert media_type({"data": "iVBORw0KGgo="}) == "image/png"
    assert media_type({}) is None
    assert ACCEPTED == ("image/jpeg", "image/png", "image/gif", "image/webp")


def test_what_a_model_is_told_of_an_image_it_cannot_see() -> None:
    assert placeholder("image/tiff") == (
        '[system: an image that belongs here was NOT shown to you — its media type "image/tiff" is not accepted by '
        "the model API (only jpeg/png/gif/webp are). You are not seeing this image. If it matters, ask for it in a "
        "supported format.]"
    )
    assert 'its media type "undefined" is' in placeholder(None)


NOTES = {
    "a kilobyte": ({"media_type": "image/png", "data": "A" * 1366}, "[Image: image/png, ~1KB]"),
    "rounded up": ({"media_type": "image/png", "data": "A" * 2048}, "[Image: image/png, ~2KB]"),
    "rounded down": ({"media_type": "image/png", "data": "A" * 2047}, "[Image: image/png, ~1KB]"),
    "no data": ({"media_type": "image/png"}, "[Image: image/png, ~0KB]"),
    "no type": ({"type": "url", "url": "u"}, "[Image: image, ~0KB]"),
}


@pytest.mark.parametrize("source, text", NOTES.values(), ids=NOTES.keys())
def test_an_image_mentioned_in_text(source: dict[str, Any], text: str) -> None:
    assert note(source) == text
