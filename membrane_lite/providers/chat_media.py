"""Audio, images and files as chat completions write them: blocks into parts on the way out, fields into blocks back.

Source: platform.openai.com/docs/guides/audio and /pdf-files; openrouter.ai/docs/features/multimodal. AUDIO_FORMATS
gives a part's name for a media type, AUDIO_SIGNATURES the media type of audio that came without one.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any, Final

from ..errors import MembraneError, invalid
from ..formatters.assembly import PieceBuffer
from ..values.base import Json
from ..values.content import Audio, GeneratedImage
from .base import string

DEFAULT_IMAGE_TYPE: Final = "image/png"
DEFAULT_FILE_NAME: Final = "document.pdf"
TOOL_RESULT_IMAGES: Final = ("auto", "media", "omit")
DATA_URL: Final = re.compile(r"data:([^;,]*)[^,]*;base64,", re.IGNORECASE)

# RFC 6838 subtypes -> the `format` of an input_audio part.
AUDIO_FORMATS: Final[Mapping[str, str]] = {
    "mpeg": "mp3",
    "mp3": "mp3",
    "mpeg3": "mp3",
    "x-mpeg-3": "mp3",
    "wav": "wav",
    "x-wav": "wav",
    "wave": "wav",
    "vnd.wave": "wav",
    "ogg": "ogg",
    "flac": "flac",
    "x-flac": "flac",
    "aac": "aac",
    "mp4": "m4a",
    "m4a": "m4a",
    "x-m4a": "m4a",
}

# An answer does not name the format of its audio. Each that can be asked for begins with its own bytes, but pcm16,
# which is samples alone, and the only one that is streamed.
RAW_SAMPLES: Final = "audio/pcm"
AUDIO_SIGNATURES: Final = (
    (b"RIFF", "audio/wav"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"\xff\xf1", "audio/aac"),
    (b"\xff\xf9", "audio/aac"),
    (b"fLaC", "audio/flac"),
    (b"OggS", "audio/ogg"),  # opus
)


def data_url(source: Json, default_type: str) -> str:
    return f"data:{source.get('media_type') or default_type};base64,{source.get('data', '')}"


def image_part(source: Json) -> Json:
    url = source["url"] if source["type"] == "url" else data_url(source, DEFAULT_IMAGE_TYPE)
    return {"type": "image_url", "image_url": {"url": url}}


def audio_part(source: Json) -> Json:
    """input_audio takes raw base64 and a short name for the format."""
    if source.get("type") == "url":
        raise MembraneError("unsupported", "messages: audio by address; this API takes audio by base64 only")
    label = str(source.get("media_type") or "audio/mpeg").split(";")[0].strip().lower()
    known = AUDIO_FORMATS.get(label.partition("/")[2])
    if known is None:
        raise MembraneError(
            "unsupported", f"messages: audio of type {label!r}; this API takes {', '.join(AUDIO_FORMATS)}"
        )
    return {"type": "input_audio", "input_audio": {"data": source.get("data", ""), "format": known}}


def file_part(document: Json) -> Json:
    """A document by base64; its address is given to nobody to fetch."""
    source = document["source"]
    if source.get("type") != "base64":
        raise MembraneError("unsupported", "messages: a document that is no base64; this API takes no other")
    name = document.get("title") or DEFAULT_FILE_NAME
    return {"type": "file", "file": {"filename": name, "file_data": data_url(source, "application/pdf")}}


def checked_tool_result_images(value: str) -> str:
    """The argument of that name, checked."""
    if value not in TOOL_RESULT_IMAGES:
        raise invalid("tool_result_images", f"found {value!r}", f"expected one of {', '.join(TOOL_RESULT_IMAGES)}")
    return value


def generated_image(part: Json) -> GeneratedImage:
    """An entry of message.images: a data URL, or the address of the image."""
    url = string(part["image_url"]["url"])
    inline = DATA_URL.match(url)
    if inline is None:
        return GeneratedImage(url=url)
    return GeneratedImage(data=url[inline.end() :], mime_type=inline.group(1) or DEFAULT_IMAGE_TYPE)


class SpokenAudio:
    """message.audio, whole or in pieces. Its id, as long as it lasts, stands for it in the next request."""

    def __init__(self, block: int) -> None:
        self.block: Final = block
        self._samples: Final[list[bytes]] = []
        self._transcript: Final = PieceBuffer()
        self._item: Final[dict[str, Any]] = {}

    def take(self, audio: Json) -> None:
        """Each piece of `data` is base64 by itself."""
        if audio.get("data"):
            self._samples.append(base64.b64decode(string(audio["data"])))
        if audio.get("transcript"):
            self._transcript.add(string(audio["transcript"]))
        self._item.update({key: audio[key] for key in ("id", "expires_at") if audio.get(key)})

    def whole(self) -> Audio:
        samples = b"".join(self._samples)
        kinds = (name for signature, name in AUDIO_SIGNATURES if samples.startswith(signature))
        source = {
            "type": "base64",
            "media_type": next(kinds, RAW_SAMPLES),
            "data": base64.b64encode(samples).decode("ascii"),
        }
        return Audio(source, transcript=self._transcript.text() or None)

    def item(self) -> Json:
        return {"audio": self._item}
