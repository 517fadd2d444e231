"""Events: what a turn says to its caller, in order. `.type` is the word a `for` loop over stream_yielding tests.

A turn ends with exactly one of complete, aborted, error.
"""

from __future__ import annotations

from typing import Any, Final, Literal, Union

from ..errors import MembraneError
from .base import Value
from .responses import AbortedResponse, Response, Usage
from .tools import ToolCall, ToolContext


class ChunkMeta(Value):
    """Which block a chunk belongs to; made once per block.

    type: "text" "thinking" "tool_call" "tool_result"; visible: only text is. block_index counts from 0 in each round.
    tool_id, tool_name: of a tool_call. tool_call_part: "input", the JSON text of the arguments.
    """

    __slots__ = ("block_index", "depth", "tool_call_part", "tool_id", "tool_name", "type", "visible")

    def __init__(
        self,
        type: str,
        block_index: int,
        *,
        depth: int | None = None,
        tool_id: str | None = None,
        tool_name: str | None = None,
        tool_call_part: str | None = None,
    ) -> None:
        self.type: Final = type
        self.visible: Final = type == "text"
        self.block_index: Final = block_index
        self.depth: Final = depth
        self.tool_id: Final = tool_id
        self.tool_name: Final = tool_name
        self.tool_call_part: Final = tool_call_part


class BlockInfo(Value):
    """A block as block events tell of it: its type, and once it is complete what it holds."""

    __slots__ = ("content", "input", "is_error", "tool_id", "tool_name", "type")

    def __init__(
        self,
        type: str,
        *,
        content: Any = None,
        tool_id: str | None = None,
        tool_name: str | None = None,
        input: Any = None,
        is_error: bool | None = None,
    ) -> None:
        self.type: Final = type
        self.content: Final = content
        self.tool_id: Final = tool_id
        self.tool_name: Final = tool_name
        self.input: Final = input
        self.is_error: Final = is_error


class BlockEvent(Value):
    """event: "block_start" or "block_complete"."""

    __slots__ = ("block", "event", "index")

    def __init__(self, event: str, index: int, block: BlockInfo) -> None:
        self.event: Final = event
        self.index: Final = index
        self.block: Final = block


class StreamEvent(Value):
    __slots__ = ()
    type: str


class Tokens(StreamEvent):
    """A piece of text, as it arrived."""

    __slots__ = ("content", "meta")
    type: Literal["tokens"] = "tokens"

    def __init__(self, content: str, meta: ChunkMeta) -> None:
        self.content: Final = content
        self.meta: Final = meta


class BlockSeen(StreamEvent):
    """A block began or is complete. `content_block` is the block itself, in its provider-independent form."""

    __slots__ = ("content_block", "event")
    type: Literal["block"] = "block"

    def __init__(self, event: BlockEvent, content_block: Any) -> None:
        self.event: Final = event
        self.content_block: Final = content_block


class ToolCalls(StreamEvent):
    """The model waits for these calls' results."""

    __slots__ = ("calls", "context")
    type: Literal["tool-calls"] = "tool-calls"

    def __init__(self, calls: list[ToolCall], context: ToolContext) -> None:
        self.calls: Final = calls
        self.context: Final = context


class UsageSeen(StreamEvent):
    """Running totals after a round; a copy."""

    __slots__ = ("usage",)
    type: Literal["usage"] = "usage"

    def __init__(self, usage: Usage) -> None:
        self.usage: Final = usage


class PreToolContent(StreamEvent):
    """The text the model wrote before a round's tool calls; only where it is not blank."""

    __slots__ = ("text",)
    type: Literal["pre-tool-content"] = "pre-tool-content"

    def __init__(self, text: str) -> None:
        self.text: Final = text


class RoundAnswered(StreamEvent):
    """A provider call's answer is whole; `raw` is the provider's answer."""

    __slots__ = ("raw",)
    type: Literal["response"] = "response"

    def __init__(self, raw: Any) -> None:
        self.raw: Final = raw


class Retrying(StreamEvent):
    """A refusal is sent again: what arrived since the round began is void. attempt counts from 1 to max_attempts."""

    __slots__ = ("attempt", "category", "max_attempts", "reason")
    type: Literal["retrying"] = "retrying"

    def __init__(self, attempt: int, max_attempts: int, reason: str, category: str | None) -> None:
        self.attempt: Final = attempt
        self.max_attempts: Final = max_attempts
        self.reason: Final = reason
        self.category: Final = category


class Complete(StreamEvent):
    __slots__ = ("response",)
    type: Literal["complete"] = "complete"

    def __init__(self, response: Response) -> None:
        self.response: Final = response


class Aborted(StreamEvent):
    """`response` is the AbortedResponse; its fields are at hand here too."""

    __slots__ = ("response",)
    type: Literal["aborted"] = "aborted"

    def __init__(self, response: AbortedResponse) -> None:
        self.response: Final = response

    @property
    def reason(self) -> str:
        return self.response.reason

    @property
    def message(self) -> str | None:
        return self.response.message

    @property
    def partial_content(self) -> list[Any]:
        return self.response.partial_content

    @property
    def raw_assistant_text(self) -> str:
        return self.response.raw_assistant_text

    @property
    def tool_calls(self) -> list[Any]:
        return self.response.tool_calls

    @property
    def tool_results(self) -> list[Any]:
        return self.response.tool_results


class Failed(StreamEvent):
    __slots__ = ("error",)
    type: Literal["error"] = "error"

    def __init__(self, error: MembraneError) -> None:
        self.error: Final = error


TERMINAL: Final = (Complete, Aborted, Failed)
# One of these; a checker tells them apart by `.type`.
AnyEvent = Union[
    Tokens, BlockSeen, ToolCalls, UsageSeen, PreToolContent, RoundAnswered, Retrying, Complete, Aborted, Failed
]


def is_tokens_event(event: StreamEvent) -> bool:
    return isinstance(event, Tokens)


def is_tool_calls_event(event: StreamEvent) -> bool:
    return isinstance(event, ToolCalls)


def is_complete_event(event: StreamEvent) -> bool:
    return isinstance(event, Complete)


def is_error_event(event: StreamEvent) -> bool:
    return isinstance(event, Failed)


def is_aborted_event(event: StreamEvent) -> bool:
    return isinstance(event, Aborted)


def is_terminal_event(event: StreamEvent) -> bool:
    return isinstance(event, TERMINAL)
