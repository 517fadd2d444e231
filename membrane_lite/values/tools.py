"""Tools: what is offered, what the model asked for, what came of it, and what a callback is told beside the calls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .base import Record
from .content import Block, ToolResultBlock, ToolUse

if TYPE_CHECKING:
    from ..abort import AbortSignal


@dataclass
class Tool(Record):
    """input_schema: a JSON Schema of type object; one without `properties` is legal."""

    name: str
    description: str = ""
    input_schema: dict[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})


@dataclass
class ToolCall(Record):
    """input: the parsed arguments (a custom tool's: its text). unparseable_input: where they were no complete JSON."""

    id: str
    name: str
    input: Any = field(default_factory=dict)
    unparseable_input: str | None = None


@dataclass
class ToolResult(Record):
    """content: a string, or text and base64 image blocks."""

    tool_use_id: str
    content: str | list[Any]
    is_error: bool | None = None


@dataclass
class ToolContext:
    """What on_tool_calls is told beside the calls.

    preamble: the text of this round; accumulated: the text of the turn so far; raw_text: this round's calls as JSON. In
    a transcript preamble is all that the turn wrote before the calls, accumulated has the tags and results too, and
    raw_text is the calls' own text.
    depth: rounds already run, 0 at first. previous_results: those of earlier rounds. round_content: all blocks of the
    round, in the provider's order. signal: fires when the call is aborted; a long tool should watch it.
    """

    raw_text: str
    preamble: str
    depth: int
    previous_results: list[ToolResult]
    accumulated: str
    round_content: list[Block]
    signal: AbortSignal


def call_of(block: ToolUse) -> ToolCall:
    return ToolCall(block.id, block.name, block.input, block.unparseable_input)


def calls_of(content: Iterable[Block]) -> list[ToolCall]:
    """The calls among these blocks."""
    return [call_of(block) for block in content if isinstance(block, ToolUse)]


def result_block(result: ToolResult) -> ToolResultBlock:
    return ToolResultBlock(result.tool_use_id, result.content, result.is_error)
