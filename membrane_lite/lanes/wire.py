"""The bodies of InvokeModel, one dialect per provider, and the reading that folds both answers into one shape.

> {"anthropic_version":"bedrock-2023-05-31","max_tokens":64000,"messages":[{"role":"user","content":"Hi"}],
>  "thinking":{"type":"adaptive"},"output_config":{"effort":"low"}}
> {"messages":[{"role":"user","content":"Hi"}],"max_completion_tokens":64000,"reasoning_effort":"low",
>  "prompt_cache_options":{"mode":"explicit"}}
< {"content": [{"type": "text", "text": "Hello"}], "stop_reason": "end_turn", "usage": {"output_tokens": 1}}

Effort and thinking are exact per model, and Converse has no field for either, so it is not used. A structured answer is
a forced tool here and a strict schema there; the second is read as if it were the first, so that readers have one shape
and the decode stays the one gate. DIALECTS decides both ways.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, Final, NamedTuple, TypedDict, TypeVar

from ..errors import invalid, unknown_field, wrong_type
from ..schema.strict import strict_schema, without_nulls
from ..values.base import Record, Value
from ..wire.json_text import compact, parse
from .constants import ANTHROPIC_VERSION, MAX_TOKENS_CEILING, MAX_TOKENS_DEFAULT, STRUCTURED_TOOL_NAME
from .models import EFFORTS, Effort, ModelKey, Provider, model_by_key, thinking_for
from .prompt_cache import (
    DEFAULT_OPENAI_PROMPT_CACHE,
    OPENAI_PROMPT_CACHE_OFF_FIELD,
    OPENAI_PROMPT_CACHE_VALUES,
    OpenAiPromptCache,
)

JsonSchemaObject = Mapping[str, Any]  # open-keyed, because JSON Schema is
AnyRecord = TypeVar("AnyRecord", bound=Record)

# The content is no complete answer. One cut at max_tokens may never have reached the point that made it a judgment, and
# a refusal carries none; to read either as a result would be a silent fault in the data.
INCOMPLETE_STOP_REASONS: Final = frozenset(["max_tokens", "refusal"])


@dataclass
class GenerateOptions(Record):
    """effort: low, medium, high or xhigh. max_tokens: bounds thinking and answer together.

    cache_system: mark the system prompt as the end of a prefix to cache, where the same one goes out again and again.
    openai_prompt_cache: see prompt_cache.py; the Anthropic dialect has nothing to turn off.
    """

    effort: Effort
    system: str | None = None
    max_tokens: float | None = None
    cache_system: bool = False
    openai_prompt_cache: OpenAiPromptCache | None = None


class StructuredTool(Value):
    """What constrains an answer: the schema, and the only prose the model has about it."""

    __slots__ = ("description", "input_schema")

    def __init__(self, input_schema: JsonSchemaObject, description: str | None = None) -> None:
        self.input_schema: Final = input_schema
        self.description: Final = description


class ContentBlock(TypedDict, total=False):
    """A block of an answer; every field is optional on the wire."""

    type: str
    name: str
    text: str
    input: Any


class InvokeResponseBody(TypedDict, total=False):
    """An answer of either dialect, after the fold."""

    content: list[ContentBlock]
    stop_reason: str | None
    usage: Mapping[str, int]


# Requests


def build_invoke_body(
    key: ModelKey, prompt: str, options: GenerateOptions | Mapping[str, Any], tool: StructuredTool | None = None
) -> str:
    """The body in the model's own dialect. With a tool the answer is constrained to its schema, without it is prose."""
    given = read_options(options)
    if not isinstance(prompt, str):
        raise wrong_type("prompt", prompt, "a string")
    if not isinstance(tool, (StructuredTool, type(None))):
        raise wrong_type("tool", tool, "a StructuredTool")
    return compact(dialect_of(key).body(key, prompt, given, tool))


def read_options(options: GenerateOptions | Mapping[str, Any]) -> GenerateOptions:
    """A word that is none is an error: one that meant nothing would bring a default back that was turned off."""
    given = read_fields(GenerateOptions, options, "options")
    for name, words in (("effort", EFFORTS), ("openai_prompt_cache", (None, *OPENAI_PROMPT_CACHE_VALUES))):
        if getattr(given, name) not in words:
            expected = f"expected one of {', '.join(filter(None, words))}"
            raise invalid(f"options.{name}", f"found {getattr(given, name)!r}", expected)
    if not isinstance(given.system, (str, type(None))):
        raise wrong_type("options.system", given.system, "a string")
    if not isinstance(given.cache_system, bool):
        raise wrong_type("options.cache_system", given.cache_system, "true or false")
    return given


def dialect_of(key: ModelKey) -> Dialect:
    return DIALECTS[model_by_key(key).provider]


def read_fields(cls: type[AnyRecord], given: object, path: str) -> AnyRecord:
    """A record, or a mapping of its shape; a misspelt key is an error that names the nearest."""
    if isinstance(given, cls):
        return given
    if not isinstance(given, Mapping):
        raise wrong_type(path, given, f"a {cls.__name__} or a mapping of its shape")
    known = {field.name: field.default is MISSING for field in fields(cls)}
    for name in given:
        if name not in known:
            raise unknown_field(path, name, list(known))
    for name, needed in known.items():
        if needed and name not in given:
            raise invalid(f"{path}.{name}", "missing", f"a {cls.__name__} needs it")
    return cls(**given)


def clamp_tokens(requested: float | None) -> int:
    """The output budget, from 1 to MAX_TOKENS_CEILING: beyond either Bedrock fails the call instead of shortening it.

    None and NaN are no budget and become the default; NaN would pass both bounds and go out as null. A fraction is a
    budget, and is cut towards zero.
    """
    if requested is None:
        return MAX_TOKENS_DEFAULT
    if isinstance(requested, bool) or not isinstance(requested, (int, float)):
        raise wrong_type("max_tokens", requested, "a number")
    if requested != requested:
        return MAX_TOKENS_DEFAULT
    return int(min(max(requested, 1), MAX_TOKENS_CEILING))


def anthropic_body(key: ModelKey, prompt: str, options: GenerateOptions, tool: StructuredTool | None) -> dict[str, Any]:
    """Messages. An absent system is left out: an empty block is another input, and a rejected one."""
    thinking = thinking_for(key)
    return {
        "anthropic_version": ANTHROPIC_VERSION,
        "max_tokens": clamp_tokens(options.max_tokens),
        **({"system": system_blocks(options)} if options.system else {}),
        "messages": [{"role": "user", "content": prompt}],
        **({"thinking": thinking} if thinking else {}),
        "output_config": {"effort": options.effort},
        **({} if tool is None else forced_tool(tool)),
    }


def system_blocks(options: GenerateOptions) -> Any:
    """A plain string has no place for a cache marker, so the marked form is a block."""
    if not options.cache_system:
        return options.system
    return [{"type": "text", "text": options.system, "cache_control": {"type": "ephemeral"}}]


def forced_tool(tool: StructuredTool) -> dict[str, Any]:
    named = {"name": STRUCTURED_TOOL_NAME, **described(tool), "input_schema": tool.input_schema}
    return {"tools": [named], "tool_choice": {"type": "tool", "name": STRUCTURED_TOOL_NAME}}


def openai_body(key: ModelKey, prompt: str, options: GenerateOptions, tool: StructuredTool | None) -> dict[str, Any]:
    """Chat completions."""
    system = [{"role": "system", "content": options.system}] if options.system else []
    caching = options.openai_prompt_cache or DEFAULT_OPENAI_PROMPT_CACHE
    return {
        "messages": [*system, {"role": "user", "content": prompt}],
        "max_completion_tokens": clamp_tokens(options.max_tokens),
        "reasoning_effort": options.effort,
        **({} if tool is None else {"response_format": strict_format(tool)}),
        **({"prompt_cache_options": OPENAI_PROMPT_CACHE_OFF_FIELD} if caching == "off" else {}),
    }


def strict_format(tool: StructuredTool) -> dict[str, Any]:
    """Constrained decoding: what is generated cannot leave the schema."""
    named = {"name": STRUCTURED_TOOL_NAME, **described(tool), "strict": True, "schema": tool.input_schema}
    return {"type": "json_schema", "json_schema": named}


def described(tool: StructuredTool) -> dict[str, str]:
    return {"description": tool.description} if tool.description else {}


# Answers


def folded(key: ModelKey, payload: Any, *, structured: bool) -> InvokeResponseBody:
    """The parsed answer of a model, in the one shape. structured: it was asked for with a tool."""
    return dialect_of(key).answer(payload, structured)


def as_response_body(payload: Any, structured: bool = False) -> InvokeResponseBody:
    """The parsed answer, read defensively: what is no object is one without fields. Both lanes have one shape here."""
    return payload if isinstance(payload, dict) else {}  # type: ignore[return-value]


def normalize_openai_response(payload: Any, structured: bool) -> InvokeResponseBody:
    """A chat completion in the shape of a message; a structured answer as the call of the tool it stands for."""
    choices = as_list(as_mapping(payload).get("choices"))
    choice = as_mapping(choices[0] if choices else None)
    message, usage = as_mapping(choice.get("message")), as_mapping(as_mapping(payload).get("usage"))
    text = message.get("content")
    block = emitted if structured else said
    refused = bool(message.get("refusal"))
    counts = {ours: usage.get(theirs) for ours, theirs in OPENAI_COUNTS.items()}
    return {
        "content": [block(text)] if isinstance(text, str) and text else [],
        "stop_reason": "refusal" if refused else FINISH_REASONS.get(str(choice.get("finish_reason")), "end_turn"),
        "usage": {name: count for name, count in counts.items() if isinstance(count, int)},
    }


def emitted(text: str) -> ContentBlock:
    """What is no JSON stays text, for the decode to refuse."""
    try:
        input = parse(text)
    except (ValueError, RecursionError):
        input = text
    return {"type": "tool_use", "name": STRUCTURED_TOOL_NAME, "input": input}


def said(text: str) -> ContentBlock:
    return {"type": "text", "text": text}


def incomplete_reason(parsed: InvokeResponseBody) -> str | None:
    """The stop_reason of an answer that is not complete; None where it ran to a natural end."""
    reason = parsed.get("stop_reason")
    return reason if isinstance(reason, str) and reason in INCOMPLETE_STOP_REASONS else None


def read_text(parsed: InvokeResponseBody) -> str:
    """The text blocks, joined, without the thinking: to that the model did not commit itself."""
    texts = (block.get("text") for block in blocks(parsed) if block.get("type") == "text")
    return "".join(text for text in texts if isinstance(text, str))


def read_tool_input(parsed: InvokeResponseBody) -> Any:
    """What the forced tool was given; None where the model did not call it.

    The block is found by its name and not by its place: thinking stands before it on the adaptive models.
    """
    for block in blocks(parsed):
        if block.get("type") == "tool_use" and block.get("name") == STRUCTURED_TOOL_NAME:
            return block.get("input")
    return None


def blocks(parsed: InvokeResponseBody) -> list[ContentBlock]:
    return [block for block in as_list(parsed.get("content")) if isinstance(block, dict)]  # type: ignore[misc]


def as_mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def as_it_is(schema: JsonSchemaObject) -> JsonSchemaObject:
    return schema


def as_given(schema: JsonSchemaObject, input: Any) -> Any:
    return input


class Dialect(NamedTuple):
    """tool_schema: a derived schema as this dialect takes it. tool_input: what was given under it, as derived."""

    body: Callable[[ModelKey, str, GenerateOptions, StructuredTool | None], dict[str, Any]]
    answer: Callable[[Any, bool], InvokeResponseBody]
    tool_schema: Callable[[JsonSchemaObject], JsonSchemaObject]
    tool_input: Callable[[JsonSchemaObject, Any], Any]


# Every other word is a natural end.
FINISH_REASONS: Final[Mapping[str, str]] = {"length": "max_tokens", "content_filter": "refusal"}
OPENAI_COUNTS: Final[Mapping[str, str]] = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens"}
DIALECTS: Final[Mapping[Provider, Dialect]] = {
    "anthropic": Dialect(anthropic_body, as_response_body, as_it_is, as_given),
    # Its strict mode knows a part of JSON Schema, and no optional properties: those come as null.
    "openai": Dialect(openai_body, normalize_openai_response, strict_schema, without_nulls),
}
