"""Image media types: what the bytes say outranks what the caller declared, which providers refuse when it is wrong."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

ACCEPTED: Final = ("image/jpeg", "image/png", "image/gif", "image/webp")

# The first bytes of each format: PNG specification 5.2, JFIF (FF D8 FF), GIF87a/GIF89a, RIFF container with WEBP.
SIGNATURES: Final = (
    (b"\x89PNG", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
)
STRIPPED: Final = 'image block stripped: unsupported media type "%s"'  # to be warned of
SNIFFED_CHARACTERS: Final = 24  # of base64: 18 bytes


def block(source: Mapping[str, Any]) -> dict[str, Any] | None:
    """An image by base64 as it is sent, under the type its bytes show; None for one that no provider accepts."""
    kind = media_type(source) if source.get("type") == "base64" else None
    if kind is None:
        return None
    return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": source["data"]}}


def media_type(source: Mapping[str, Any]) -> str | None:
    """The accepted type of a base64 source, by its bytes, else by its label in any case; None if there is none."""
    return sniffed(str(source.get("data", ""))) or accepted(source.get("media_type"))


def sniffed(data: str) -> str | None:
    """The type that the first bytes of base64 `data` show."""
    try:
        head = base64.b64decode(data[:SNIFFED_CHARACTERS] + "=" * (-len(data[:SNIFFED_CHARACTERS]) % 4))
    except ValueError:
        return None
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return next((name for signature, name in SIGNATURES if head.startswith(signature)), None)


def accepted(label: object) -> str | None:
    lowered = label.lower() if isinstance(label, str) else None
    return lowered if lowered in ACCEPTED else None


def placeholder(label: object) -> str:
    """What a model is told in place of an image it cannot be shown. label: its media type, None where it has none."""
    named = label or "undefined"
    return (
        f'[system: an image that belongs here was NOT shown to you \u2014 its media type "{named}" is not accepted by '
        "the model API (only jpeg/png/gif/webp are). You are not seeing this image. If it matters, ask for it in a "
        "supported format.]"
    )


def note(source: Mapping[str, Any]) -> str:
    """A short mention of an image in text: its type and size."""
    kilobytes = int(len(str(source.get("data", ""))) * 0.75 / 1024 + 0.5)
    return f"[Image: {source.get('media_type', 'image')}, ~{kilobytes}KB]"
