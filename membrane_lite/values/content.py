"""Content blocks: what a message is made of, whoever sent it. Every block has `.type`, the name it has in a mapping.

`raw_item` is the provider's own item a block came from, kept where the block cannot say all of it; `raw_format` names
the wire format it is written in ("anthropic", "openai-chat", ...). Only that format replays it. A block that is all
raw item is a carrier: `Text(text="", raw_item=...)`.

`source` of a medium: {"type": "base64", "media_type": "image/png", "data": "..."} or {"type": "url", "url": "..."}.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Union

from .base import Json, Record

if TYPE_CHECKING:
    from .tools import Tool


@dataclass
class Text(Record):
    """cache_control: {"type": "ephemeral"} with "ttl": "5m" or "1h" if need be, sent as it is."""

    type: ClassVar[str] = "text"
    text: str
    cache_control: dict[str, str] | None = None
    raw_item: Json = None
    raw_format: str | None = None

    @property
    def is_carrier(self) -> bool:
        return not self.text and self.raw_item is not None


@dataclass
class Image(Record):
    """source_url: where the image can be fetched, for providers that fetch addresses out of text."""

    type: ClassVar[str] = "image"
    source: dict[str, Any]
    token_estimate: int | None = None
    source_url: str | None = None
    raw_item: Json = None
    raw_format: str | None = None


@dataclass
class Document(Record):
    """A PDF or another document, by base64."""

    type: ClassVar[str] = "document"
    source: dict[str, Any]
    filename: str | None = None
    raw_item: Json = None
    raw_format: str | None = None


@dataclass
class Audio(Record):
    """duration: seconds. transcript: what was said, where the provider tells."""

    type: ClassVar[str] = "audio"
    source: dict[str, Any]
    duration: float | None = None
    transcript: str | None = None
    raw_item: Json = None
    raw_format: str | None = None


@dataclass
class Video(Record):
    """duration: seconds."""

    type: ClassVar[str] = "video"
    source: dict[str, Any]
    duration: float | None = None
    raw_item: Json = None
    raw_format: str | None = None


@dataclass
class GeneratedImage(Record):
    """An image the model made: its base64 data, or the address it can be fetched from."""

    type: ClassVar[str] = "generated_image"
    data: str = ""
    mime_type: str = "image/png"
    url: str | None = None
    is_preview: bool | None = None
    raw_item: Json = None
    raw_format: str | None = None


@dataclass
class Thinking(Record):
    """The model's reasoning. An empty text with a signature is meaningful and goes back as it came."""

    type: ClassVar[str] = "thinking"
    thinking: str
    signature: str | None = None
    raw_item: Json = None
    raw_format: str | None = None


@dataclass
class RedactedThinking(Record):
    """Reasoning the provider encrypted; opaque, and goes back as it came."""

    type: ClassVar[str] = "redacted_thinking"
    data: str
    raw_item: Json = None
    raw_format: str | None = None


@dataclass
class ToolUse(Record):
    """A call the model made. unparseable_input: the arguments as they came, where they are not complete JSON."""

    type: ClassVar[str] = "tool_use"
    id: str
    name: str
    input: Any = field(default_factory=dict)
    unparseable_input: str | None = None
    raw_xml: str | None = None
    raw_item: Json = None
    raw_format: str | None = None


@dataclass
class ToolResultBlock(Record):
    """The answer to a call: a string, or text and image blocks."""

    type: ClassVar[str] = "tool_result"
    tool_use_id: str
    content: str | list[Any]
    is_error: bool | None = None
    raw_xml: str | None = None
    raw_item: Json = None
    raw_format: str | None = None


@dataclass
class SystemChange(Record):
    """A change of what the model is offered and told, from here on; it stands in a message of its own.

    remove_tools: names. define_tools: added, in place of one of the same name. add_system: one text, or several.
    """

    type: ClassVar[str] = "system_change"
    remove_tools: list[str] | None = None
    define_tools: list[Tool] | None = None
    add_system: str | list[str] | None = None
    raw_item: Json = None
    raw_format: str | None = None


# One of these; told apart by isinstance or by `.type`.
Block = Union[
    Text,
    Image,
    Document,
    Audio,
    Video,
    GeneratedImage,
    Thinking,
    RedactedThinking,
    ToolUse,
    ToolResultBlock,
    SystemChange,
]

BLOCK_CLASSES: dict[str, type[Block]] = {
    cls.type: cls
    for cls in (
        Text,
        Image,
        Document,
        Audio,
        Video,
        GeneratedImage,
        Thinking,
        RedactedThinking,
        ToolUse,
        ToolResultBlock,
        SystemChange,
    )
}


def is_text(block: Block) -> bool:
    return isinstance(block, Text)


def is_image(block: Block) -> bool:
    return isinstance(block, Image)


def is_document(block: Block) -> bool:
    return isinstance(block, Document)


def is_audio(block: Block) -> bool:
    return isinstance(block, Audio)


def is_video(block: Block) -> bool:
    return isinstance(block, Video)


def is_generated_image(block: Block) -> bool:
    return isinstance(block, GeneratedImage)


def is_tool_use(block: Block) -> bool:
    return isinstance(block, ToolUse)


def is_tool_result(block: Block) -> bool:
    return isinstance(block, ToolResultBlock)


def is_thinking(block: Block) -> bool:
    return isinstance(block, Thinking)


def is_redacted_thinking(block: Block) -> bool:
    return isinstance(block, RedactedThinking)


def is_system_change(block: Block) -> bool:
    return isinstance(block, SystemChange)


def is_media(block: Block) -> bool:
    """An image, document, audio or video that somebody sent."""
    return isinstance(block, (Image, Document, Audio, Video))


def joined_text(blocks: Iterable[Block]) -> str:
    """The visible text of the blocks, with nothing between them."""
    return "".join(block.text for block in blocks if isinstance(block, Text))
