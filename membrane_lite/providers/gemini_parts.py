"""Gemini's parts: how a block is written as one, and what becomes of those that are whole blocks by themselves.

A block's raw_item is what stands in its part beside what the block says, a thoughtSignature for the most part; of a
medium, and of a part that no block has words for, it is the whole part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from ..values.base import Json
from ..values.content import Audio, Block, GeneratedImage, Text
from .base import mapping_or_empty, string, without_none

FORMAT: Final = "gemini"

# What stands around a candidate's parts and belongs to all of them. It is shown, and never sent back.
AROUND_PARTS: Final = ("groundingMetadata", "urlContextMetadata", "citationMetadata")

# Where a medium does not say its type.
DEFAULT_TYPES: Final[Mapping[str, str]] = {
    "image": "image/jpeg",
    "audio": "audio/mpeg",
    "video": "video/mp4",
    "document": "application/pdf",
}


def own_item(block: Json) -> Json:
    """The item of this format that a block carries; an empty one where it carries none, or another's."""
    return mapping_or_empty(block.get("raw_item")) if block.get("raw_format") == FORMAT else {}


def text_part(block: Json) -> Json:
    return {"text": block["text"], **own_item(block)}


def thought_part(block: Json) -> Json:
    return {"text": block["thinking"], "thought": True, **own_item(block)}


def call_part(block: Json) -> Json:
    """The id goes back where the provider gave one; ours means nothing to it."""
    item = own_item(block)
    call = {"name": block["name"], "args": block["input"] or {}, **item.get("functionCall", {})}
    return {"functionCall": call, **{field: value for field, value in item.items() if field != "functionCall"}}


def medium_part(block: Json) -> Json:
    """Bytes inline; an address, of the Files API or of the web, as it is (docs/file-input-methods)."""
    source = block["source"]
    named = source.get("mediaType") or source.get("media_type")
    if source.get("type") == "url":
        return {"fileData": without_none({"mimeType": named, "fileUri": source["url"]})}
    return {"inlineData": {"mimeType": named or DEFAULT_TYPES[block["type"]], "data": source.get("data", "")}}


def carrier(item: Json) -> Text:
    """An item this version has no block for, or one that says nothing by itself: kept whole."""
    return Text("", raw_item=item, raw_format=FORMAT)


def is_part(item: Mapping[str, Any]) -> bool:
    """Whether an item may be sent back."""
    return not any(field in item for field in AROUND_PARTS)


def inline_block(part: Json) -> Block:
    """An image or a sound the model made. One made on the way to the answer is a preview: unsigned, it stays here."""
    blob = part["inlineData"]
    kind, data = string(blob.get("mimeType") or ""), string(blob.get("data") or "")
    preview = True if part.get("thought") else None
    if kind.startswith("image/"):
        image = GeneratedImage(data, kind, is_preview=preview)
        signed = not preview or part.get("thoughtSignature")
        return GeneratedImage(**{**vars(image), "raw_item": part, "raw_format": FORMAT}) if signed else image
    if kind.startswith("audio/"):
        source = {"type": "base64", "media_type": kind, "data": data}
        return Audio(source, raw_item=part, raw_format=FORMAT)
    return carrier(part)


def recorded(envelope: Json, content: Sequence[Block]) -> Json:
    """A streamed answer as a whole one: the blocks become the first candidate's parts."""
    parts = [RECORDED.get(block.type, own_item)(block.to_dict()) for block in content]
    shown = [part for part in parts if part and is_part(part)]
    first, *others = envelope["candidates"]
    if not (shown or first):
        return {key: value for key, value in envelope.items() if key != "candidates"}
    return {**envelope, "candidates": [{"content": {"role": "model", "parts": shown}, **first}, *others]}


def recorded_text(block: Json) -> Json:
    return text_part(block) if block["text"] else own_item(block)


def recorded_image(block: Json) -> Json:
    preview = {"thought": True} if block.get("is_preview") else {}
    return own_item(block) or {"inlineData": {"mimeType": block["mime_type"], "data": block["data"]}, **preview}


RECORDED: Final[Mapping[str, Callable[[Json], Json]]] = {
    "text": recorded_text,
    "thinking": thought_part,
    "tool_use": call_part,
    "generated_image": recorded_image,
}
