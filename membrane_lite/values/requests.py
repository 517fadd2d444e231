"""Request: what a caller asks for. ProviderRequest: the same, in a provider's roles, as a hook may still change it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from .base import Json, Record
from .content import Text
from .messages import Message
from .tools import Tool


@dataclass
class ThinkingConfig(Record):
    """type "enabled" thinks within budget_tokens (default 5000), "adaptive" as it sees fit.

    display: "summarized" or "omitted", what of the thinking is shown; left out, the provider decides.
    block_binding: {"prefix_mismatch_behavior": "error" or "drop_block"}, what becomes of signed thinking that is sent
    back behind a history that has changed since; left out, the provider decides.
    """

    enabled: bool = True
    budget_tokens: int | None = None
    type: Literal["enabled", "adaptive"] = "enabled"
    display: Literal["summarized", "omitted"] | None = None
    block_binding: dict[str, str] | None = None


@dataclass
class GenerationConfig(Record):
    """max_tokens: None or 0 takes the adapter's default. Sampling parameters a model refuses are left out."""

    model: str
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repetition_penalty: float | None = None
    thinking: ThinkingConfig | None = None


@dataclass
class Request(Record):
    """One request, for any provider. What is None takes the Membrane's setting, or the default named in README.

    provider_params: fields of the provider's own body, merged into it last.
    floating_cache_marker: False keeps the marker away that moves along with a tool loop, on its newest message.
    context_prefix: a first assistant message, cached. prefill_user_message: the user turn put before a conversation
    that would begin with the assistant.
    """

    messages: list[Message]
    config: GenerationConfig
    system: str | list[Text] | None = None
    tools: list[Tool] | None = None
    tool_mode: Literal["auto", "native", "xml"] = "auto"
    stop_sequences: list[str] | None = None
    max_participants_for_stop: int | None = None
    prompt_caching: bool | None = None
    cache_ttl: Literal["5m", "1h"] | None = None
    floating_cache_marker: bool | None = None
    context_prefix: str | None = None
    prefill_user_message: str | None = None
    assistant_participant: str | None = None
    streaming: bool = True
    provider_params: dict[str, Any] | None = None
    shed_oversize_images: bool = False

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Request:
        """What to_dict gave, read strictly."""
        from .reader import read_request

        return read_request(data)


@dataclass
class OutputSchema(Record):
    """What an answer is to be: one JSON object that fits `schema`, a plain JSON Schema.

    name: what the provider is told to call it. description: what the model is told of it.
    """

    name: str
    schema: Json
    description: str | None = None


@dataclass
class ProviderRequest:
    """What an adapter is given: roles and blocks in the shape of Anthropic's Messages API, which is the richest.

    messages: [{"role": "user" | "assistant", "content": [block, ...]}, ...]. A block may hold `raw_item` with its
    `raw_format`, which the adapter of that format sends in its place and every other leaves out. A message of role
    "system" changes tools and system text from its place on; only Anthropic's format has it.
    system: a string, a list of text blocks, or None. tools: [{"name", "description", "input_schema"}, ...].
    thinking: {"type": ...} or None. block_binding: as in ThinkingConfig, also where a model that always thinks is told
    nothing else of it. output: the schema of the answer, None for one in words. provider_params are merged into the
    body last. normalized_messages: the messages as the caller gave them, for formats without roles.
    """

    model: str
    messages: list[Json]
    max_tokens: int | None = None
    system: str | list[Json] | None = None
    tools: list[Json] | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repetition_penalty: float | None = None
    stop_sequences: list[str] = field(default_factory=list)
    thinking: Json | None = None
    block_binding: Json | None = None
    output: OutputSchema | None = None
    provider_params: dict[str, Any] = field(default_factory=dict)
    normalized_messages: list[Message] = field(default_factory=list)
