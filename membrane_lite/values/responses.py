"""What comes home: Response, or AbortedResponse where the caller or a deadline ended the call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from .base import Json, Record
from .content import Block, ToolResultBlock, joined_text
from .messages import DEFAULT_ASSISTANT, Message, user_side_name
from .tools import ToolCall, ToolResult


@dataclass
class Cost(Record):
    """In units of `currency`. A part is None where the price is not stated; total is None where a part is missed."""

    input: float | None = None
    output: float | None = None
    cache_write: float | None = None
    cache_read: float | None = None
    total: float | None = None
    currency: str = "USD"


@dataclass
class DiscardedAttempts(Record):
    """What refusals cost that were sent again."""

    count: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_tokens: int = 0
    cache_read_tokens: int = 0
    cost: float | None = None


@dataclass
class Usage(Record):
    """Token counts, disjoint: fresh input, cached input written and read, and everything billed as output.

    cache counts are None until a provider reports them. thinking_tokens are part of output_tokens.
    unreported: names of counts the provider did not give and that are 0 here for want of it.
    provider_cost: what the provider says it charged. estimated_cost: None for a model without a price.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_tokens: int | None = None
    cache_read_tokens: int | None = None
    thinking_tokens: int | None = None
    cache_creation_5m_tokens: int | None = None
    cache_creation_1h_tokens: int | None = None
    provider_cost: float | None = None
    unreported: list[str] = field(default_factory=list)
    discarded_attempts: DiscardedAttempts | None = None
    estimated_cost: Cost | None = None


@dataclass
class StopDetails(Record):
    """reason: as Response.stop_reason. provider_reason: the provider's word. was_truncated: only for max_tokens.

    refusal: the provider's text about a refusal; category: its kind. unclosed_tool_block: a transcript ended inside a
    tool call, which is in tool_calls with its text in unparseable_input.
    """

    reason: str
    provider_reason: str | None = None
    triggered_sequence: str | None = None
    was_truncated: bool = False
    refusal: str | None = None
    category: str | None = None
    unclosed_tool_block: bool = False


@dataclass
class Timing(Record):
    """attempts: 1 and the retries of all rounds; 1 means no retry. rounds: provider calls in all."""

    total_duration_ms: float = 0.0
    attempts: int = 1
    rounds: int = 1
    retry_delays_ms: list[int] | None = None
    time_to_first_token_ms: float | None = None


@dataclass
class ModelDetails(Record):
    """requested: as asked for; actual: as the provider named it; provider: the adapter's name."""

    requested: str
    actual: str
    provider: str


@dataclass
class CacheDetails(Record):
    """markers_in_request: in the last one sent. hit_ratio: read / (read + fresh), 0 where both are 0."""

    markers_in_request: int = 0
    tokens_created: int = 0
    tokens_read: int = 0
    hit_ratio: float = 0.0


@dataclass
class Details(Record):
    stop: StopDetails
    usage: Usage
    timing: Timing
    model: ModelDetails
    cache: CacheDetails
    request_id: str | None = None
    rate_limit: dict[str, Any] | None = None


@dataclass
class Raw(Record):
    """The last round's body as sent, the provider's answer to it, and the answer's headers (lower-case names)."""

    request: Json = None
    response: Json = None
    headers: dict[str, str] | None = None


@dataclass
class Response(Record):
    """A finished turn. content: the blocks of all rounds; usage: summed over them; stop_reason: of the last.

    raw_assistant_text: the model's text, verbatim. tool_calls: every call of the turn; tool_results: those run.
    """

    content: list[Block]
    stop_reason: str
    usage: Usage
    details: Details
    raw_assistant_text: str = ""
    tool_calls: list[ToolCall] = field(default_factory=list)
    tool_results: list[ToolResult] = field(default_factory=list)
    raw: Raw = field(default_factory=Raw)
    assistant_participant: str = DEFAULT_ASSISTANT

    @property
    def text(self) -> str:
        """The visible text of the content, joined."""
        return joined_text(self.content)

    def as_messages(self) -> list[Message]:
        """The messages to append to the history: the assistant's turns and, between them, the tools' results."""
        user = user_side_name(self.assistant_participant)
        messages: list[Message] = []
        for block in self.content:
            participant = user if isinstance(block, ToolResultBlock) else self.assistant_participant
            if not messages or messages[-1].participant != participant:
                messages.append(Message(participant, []))
            messages[-1].content.append(block)
        return messages

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Response:
        """What to_dict gave, read strictly."""
        from .reader import read_response

        return read_response(data)


@dataclass
class AbortedResponse(Record):
    """A turn that was ended: by the caller's signal (reason "user") or a deadline ("timeout", named in `message`).

    The rest is what had arrived; usage is that of the finished rounds and what the last one had reported.
    """

    reason: Literal["user", "timeout", "error"]
    message: str | None = None
    partial_content: list[Block] = field(default_factory=list)
    partial_usage: Usage | None = None
    raw_assistant_text: str = ""
    tool_calls: list[ToolCall] = field(default_factory=list)
    tool_results: list[ToolResult] = field(default_factory=list)
    aborted: Literal[True] = True

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> AbortedResponse:
        """What to_dict gave, read strictly."""
        from .reader import read_aborted_response

        return read_aborted_response(data)


def is_aborted_response(result: Response | AbortedResponse) -> bool:
    """Tells the two results of Membrane.stream apart."""
    return isinstance(result, AbortedResponse)
