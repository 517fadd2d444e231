"""Message: what one participant said. Roles are not stored: they follow from who the assistant is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .base import Record
from .content import Block, SystemChange, Text, is_media, is_tool_use

DEFAULT_ASSISTANT = "Claude"


@dataclass
class Message(Record):
    """participant: the speaker's name. cache_breakpoint: everything up to and including this message is worth caching.

    metadata: free-form; `timestamp` and `source_id` are the usual keys.
    """

    participant: str
    content: list[Block]
    metadata: dict[str, Any] | None = None
    cache_breakpoint: bool = False

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Message:
        """What to_dict gave, read strictly."""
        from .reader import read_message

        return read_message(data, "message")


def text_message(participant: str, text: str, metadata: dict[str, Any] | None = None) -> Message:
    return Message(participant, [Text(text)], metadata)


def extract_text(message: Message) -> str:
    """Its text blocks, a line break between them."""
    return "\n".join(block.text for block in message.content if isinstance(block, Text))


def has_media(message: Message) -> bool:
    return any(is_media(block) for block in message.content)


def has_tool_use(message: Message) -> bool:
    return any(is_tool_use(block) for block in message.content)


def has_system_changes(messages: Iterable[Message]) -> bool:
    return any(isinstance(block, SystemChange) for message in messages for block in message.content)


def user_side_name(assistant_participant: str) -> str:
    """The name under which tool results are sent back: only its side matters, results carry no prefix."""
    return "User" if assistant_participant == DEFAULT_ASSISTANT else "user"
