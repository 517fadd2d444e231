"""The two ways to reach a model: prose, and one object of a schema. One call in; a value that honours its type, or one
of two errors, out.

ModelUnavailable: no usable answer arrived. LlmContractViolation: one arrived, and broke the contract. What a failure
means for the items of a batch is decided by the caller.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from ..abort import AbortSignal
from ..clock import Clock
from ..transport.interface import OpensRequests
from ..values.base import Record, Value
from .client import InvokeClient, invoke_json
from .config import LlmConfig
from .errors import ModelUnavailable
from .models import Effort, ModelKey, model_by_key
from .prompt_cache import OpenAiPromptCache
from .proxy import invoke_client_for
from .structured import decode_tool_input, to_input_schema
from .wire import (
    GenerateOptions,
    InvokeResponseBody,
    JsonSchemaObject,
    StructuredTool,
    build_invoke_body,
    dialect_of,
    folded,
    incomplete_reason,
    read_fields,
    read_text,
    read_tool_input,
)


class Generation(Value):
    """Prose, and what it took. The counts are None where the provider gave none."""

    __slots__ = ("input_tokens", "latency_ms", "output_tokens", "text")

    def __init__(self, text: str, *, input_tokens: int | None, output_tokens: int | None, latency_ms: int) -> None:
        self.text: Final = text
        self.input_tokens: Final = input_tokens
        self.output_tokens: Final = output_tokens
        self.latency_ms: Final = latency_ms


@dataclass
class StructuredRequest(Record):
    """schema: a class, or a JSON Schema; it decodes the answer. tool_description: the model's only prose about it.

    input_schema: by hand, where the derived one is wrong: it widens what is asked for, not what is accepted.
    The others are those of GenerateOptions.
    """

    model_key: ModelKey
    prompt: str
    schema: Any
    effort: Effort
    system: str | None = None
    max_tokens: float | None = None
    tool_description: str | None = None
    input_schema: JsonSchemaObject | None = None
    cache_system: bool = False


@dataclass
class ModelClientDefaults(Record):
    """What the environment says about the wire; a field set on the call wins."""

    openai_prompt_cache: OpenAiPromptCache | None = None


class ModelClientShape(Protocol):
    """The service, as code that uses it may name it."""

    def generate(
        self,
        model_key: ModelKey,
        prompt: str,
        options: GenerateOptions | Mapping[str, Any],
        *,
        signal: AbortSignal | None = None,
    ) -> Generation: ...

    def generate_object(
        self, request: StructuredRequest | Mapping[str, Any], *, signal: AbortSignal | None = None
    ) -> Any: ...


def make_model_client(
    client: InvokeClient,
    defaults: ModelClientDefaults | Mapping[str, Any] | None = None,
    *,
    clock: Clock | None = None,
) -> ModelClient:
    """The service over a client that is already there: a fake one, in a test."""
    return ModelClient(client, defaults, clock=clock)


class ModelClient:
    """For any number of threads."""

    def __init__(
        self,
        client: InvokeClient,
        defaults: ModelClientDefaults | Mapping[str, Any] | None = None,
        *,
        clock: Clock | None = None,
    ) -> None:
        self._client: Final = client
        self._defaults: Final = read_fields(ModelClientDefaults, defaults or {}, "defaults")
        self._clock: Final = clock or Clock()

    def generate(
        self,
        model_key: ModelKey,
        prompt: str,
        options: GenerateOptions | Mapping[str, Any],
        *,
        signal: AbortSignal | None = None,
    ) -> Generation:
        """Prose. Raises ModelUnavailable, also where the answer is cut short, a refusal, or holds no text."""
        given = read_fields(GenerateOptions, options, "options")
        began = self._clock.monotonic()
        parsed = self._answer(model_key, prompt, given, None, signal)
        latency_ms = round((self._clock.monotonic() - began) * 1000)
        text = read_text(parsed)
        if not text.strip():
            raise ModelUnavailable(model_by_key(model_key).model_id, "the answer holds no text")
        return Generation(
            text,
            input_tokens=count(parsed, "input_tokens"),
            output_tokens=count(parsed, "output_tokens"),
            latency_ms=latency_ms,
        )

    def generate_object(
        self, request: StructuredRequest | Mapping[str, Any], *, signal: AbortSignal | None = None
    ) -> Any:
        """One value of the request's schema. Raises ModelUnavailable; LlmContractViolation for an answer off it.

        Before anything is sent: "invalid_request" for what is no schema, "unsupported" for one that the model's dialect
        has no form for.
        """
        given = read_fields(StructuredRequest, request, "request")
        options = GenerateOptions(
            given.effort, system=given.system, max_tokens=given.max_tokens, cache_system=given.cache_system
        )
        dialect, derived = dialect_of(given.model_key), to_input_schema(given.schema)
        by_hand = given.input_schema
        tool = StructuredTool(dialect.tool_schema(derived) if by_hand is None else by_hand, given.tool_description)
        input = read_tool_input(self._answer(given.model_key, given.prompt, options, tool, signal))
        return decode_tool_input(given.schema, dialect.tool_input(derived, input) if by_hand is None else input)

    def _answer(
        self,
        model_key: ModelKey,
        prompt: str,
        options: GenerateOptions,
        tool: StructuredTool | None,
        signal: AbortSignal | None,
    ) -> InvokeResponseBody:
        """A complete answer: one that was cut short is refused before any of its content is read."""
        model_id = model_by_key(model_key).model_id
        caching = options.openai_prompt_cache or self._defaults.openai_prompt_cache
        body = build_invoke_body(model_key, prompt, replace(options, openai_prompt_cache=caching), tool)
        payload = invoke_json(self._client, model_id, body, signal)
        parsed = folded(model_key, payload, structured=tool is not None)
        incomplete = incomplete_reason(parsed)
        if incomplete is not None:
            raise ModelUnavailable(model_id, f"the answer is incomplete: stop_reason {incomplete}")
        return parsed


class ModelClientLive(ModelClient):
    """The service over the transport that a configuration (the environment's, unless given) names."""

    def __init__(
        self, config: LlmConfig | None = None, *, transport: OpensRequests | None = None, clock: Clock | None = None
    ) -> None:
        read = config or LlmConfig.from_env()
        self._made: Final = invoke_client_for(read, transport=transport, clock=clock)
        defaults = ModelClientDefaults(openai_prompt_cache=read.openai_prompt_cache)
        super().__init__(self._made, defaults, clock=clock)

    def close(self) -> None:
        """Close the client's connections. Idempotent."""
        self._made.close()


def count(parsed: InvokeResponseBody, name: str) -> int | None:
    usage = parsed.get("usage")
    value = usage.get(name) if isinstance(usage, Mapping) else None
    return value if isinstance(value, int) else None
