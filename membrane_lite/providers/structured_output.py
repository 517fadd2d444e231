"""How a request asks for an answer of a schema, in the form of each API.

    Anthropic, Bedrock   {"tools": [..., {"name": "emit", "input_schema": ...}], "tool_choice": {"type": "tool", ...}}
      or, by the model   {"output_config": {"format": {"type": "json_schema", "schema": ...}}}
    chat completions     {"response_format": {"type": "json_schema", "json_schema": {"name", "schema", "strict"}}}
    Responses            {"text": {"format": {"type": "json_schema", "name", "schema", "strict"}}}
    Gemini               {"generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": ...}}
    any other            the schema in the system text

In goes a request with an `output`; each function gives the request as it is to be written, and the fields beside it.
The request's own tools are declared, because the history may hold calls of them, and are not called. How the answer is
read: structured_answer.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ..error_table import classify_exception
from ..errors import MembraneError, invalid, own_code_error, wrong_type
from ..formatters.base import Formatter, ends_in_prefill, tool_mode
from ..values.base import Json
from ..values.requests import OutputSchema, ProviderRequest, Request
from ..wire.json_text import compact
from .models import ModelTraits
from .tool_schema import flatten_root_union

if TYPE_CHECKING:
    from ..schema.derive import Schema

# Most requests ask for words: what only a schema needs is imported where it is.

DEFAULT_NAME: Final = "emit"
NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")  # as OpenAI takes it, which is the strictest
PROMPT: Final = (
    "Answer with one JSON object and nothing else: no words around it, no code fence. It must fit this JSON Schema:"
)

Asked = tuple[ProviderRequest, "dict[str, Any]"]


def output_schema(schema: Schema, *, name: str = DEFAULT_NAME, description: str | None = None) -> OutputSchema:
    """What complete_object is asked for, checked.

    Raises "invalid_request" for what is none of these, and for a schema that cannot be applied.
    """
    from ..schema.derive import to_input_schema

    if not isinstance(name, str) or NAME.fullmatch(name) is None:
        raise invalid("name", f"found {name!r}", "expected 1 to 64 letters, digits, '_' or '-'")
    if description is not None and not isinstance(description, str):
        raise wrong_type("description", description, "a string")
    try:
        return OutputSchema(name, to_input_schema(schema), description)
    except MembraneError:
        raise
    except Exception as exc:  # model_json_schema() is the caller's own
        raise own_class_error(schema, exc) from exc


def own_class_error(schema: Schema, exc: Exception) -> MembraneError:
    """What the caller's own class raised, which is no fault of an answer."""
    return own_code_error(getattr(schema, "__name__", "schema"), exc, classify_exception(exc))


def check_output(output: OutputSchema | None, request: Request, formatter: Formatter) -> None:
    """Refuse an answer of a schema to one text, a prompt or a transcript, that the model goes on with."""
    if output is None:
        return
    if not formatter.supports_native_tools:
        raise MembraneError(
            "unsupported",
            f"schema: the formatter {formatter.name!r} writes one text for the model to go on with, which has no "
            "structured answers; use an adapter and a formatter of messages",
        )
    if tool_mode(request, formatter) == "xml":
        raise MembraneError(
            "unsupported", "schema: a transcript (tool_mode 'xml') has no structured answers; pass tool_mode='native'"
        )


def with_output(built: ProviderRequest, output: OutputSchema | None) -> ProviderRequest:
    """The request, asking for `output`. Raises where the two do not go together."""
    if output is None:
        return built
    if ends_in_prefill(built.messages):
        raise MembraneError(
            "unsupported",
            "schema: the last message is the assistant's, and a structured answer cannot be begun for it; end with a "
            "user's message",
        )
    if any(tool.get("name") == output.name for tool in built.tools or ()):
        raise invalid("name", f"the request has a tool {output.name!r} of its own", "expected another name=")
    return replace(built, output=output)


def refuse_output(request: ProviderRequest, api: str) -> None:
    if request.output is not None:
        raise MembraneError("unsupported", f"schema: {api} gives no structured answers; use another adapter")


# The forms


def claude_form(request: ProviderRequest, traits: ModelTraits) -> Asked:
    """A tool that must be called, once; else the format of the text.

    "Thinking may not be enabled when tool_choice forces tool use": so says the API of thinking within a budget
    (docs/en/build-with-claude/extended-thinking), which then gets the format; a model without formats does not think.
    """
    output = request.output
    if output is None:
        return request, {}
    from .output_dialects import CLAUDE, in_dialect

    schema = in_dialect(output.schema, CLAUDE) if traits.output_schema else None
    budgeted = isinstance(request.thinking, Mapping) and request.thinking.get("type") == "enabled"
    if traits.forced_tool and takes_keys(output.schema) and not (budgeted and schema is not None):
        tool = {"name": output.name, **described(output), "input_schema": output.schema}
        return (
            replace(request, tools=[*(request.tools or ()), tool], thinking=None if budgeted else request.thinking),
            {"tool_choice": {"type": "tool", "name": output.name, "disable_parallel_tool_use": True}},
        )
    idle = {"tool_choice": {"type": "none"}} if request.tools else {}
    if schema is None:
        return prompted(request, output), idle
    return request, {**idle, "output_config": {"format": {"type": "json_schema", "schema": schema}}}


def takes_keys(schema: Json) -> bool:
    """Whether a tool may have input of these properties: the API refuses others, of the root, with a 400."""
    return all(map(PROPERTY_KEY.fullmatch, flatten_root_union(schema).get("properties", {})))


PROPERTY_KEY: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}")


def chat_form(request: ProviderRequest, traits: ModelTraits, output_form: str) -> Asked:
    """output_form: "strict", "json_schema" or "prompt", as ChatDialect says."""
    output = request.output
    if output is None:
        return request, {}
    idle = {"tool_choice": "none"} if request.tools else {}
    if output_form == "prompt" or not traits.output_schema:
        return prompted(request, output), idle
    named = named_schema(output, strict=output_form == "strict")
    return request, {**idle, "response_format": {"type": "json_schema", "json_schema": named}}


def responses_form(request: ProviderRequest, traits: ModelTraits) -> Asked:
    output = request.output
    if output is None:
        return request, {}
    idle = {"tool_choice": "none"} if request.tools else {}
    if not traits.output_schema:
        return prompted(request, output), idle
    return request, {**idle, "text": {"format": {"type": "json_schema", **named_schema(output, strict=True)}}}


def gemini_form(request: ProviderRequest, traits: ModelTraits) -> Asked:
    output = request.output
    if output is None:
        return request, {}
    if request.tools and not traits.output_beside_tools:
        raise MembraneError(
            "unsupported",
            f"tools: {request.model} gives no structured answer to a request with tools; leave them out (calls of "
            "them in the history may stay)",
        )
    idle = {"toolConfig": {"functionCallingConfig": {"mode": "NONE"}}} if request.tools else {}
    if not traits.output_schema:
        return prompted(request, output), idle
    from .output_dialects import GEMINI, in_dialect

    held = {"responseMimeType": "application/json", "responseJsonSchema": in_dialect(output.schema, GEMINI)}
    return request, {**idle, "generationConfig": held}


def prompted(request: ProviderRequest, output: OutputSchema) -> ProviderRequest:
    """The schema in words, behind the system text."""
    lines = [*([output.description] if output.description else []), PROMPT, compact(output.schema)]
    text, system = "\n".join(lines), request.system
    if isinstance(system, list):
        return replace(request, system=[*system, {"type": "text", "text": text}])
    return replace(request, system=f"{system}\n{text}" if system else text)


def named_schema(output: OutputSchema, *, strict: bool) -> dict[str, Any]:
    """As OpenAI names it. To a schema that has no strict form the model is asked to keep, and not held.

    "schema must be a JSON Schema of 'type: \"object\"'": a root of alternatives is no schema there, strict or not.
    """
    named = {"name": output.name, **described(output)}
    if not strict:
        return {**named, "schema": output.schema}
    held = strict_form(output.schema)
    return {**named, "schema": flatten_root_union(output.schema) if held is None else held, "strict": held is not None}


def strict_form(schema: Json) -> Json | None:
    from ..schema.strict import strict_schema

    try:
        return strict_schema(schema)
    except MembraneError as error:
        if error.type != "unsupported":
            raise
        return None


def is_strict(body: Any) -> bool:
    """Whether a body, of chat or of Responses, asks for a schema in its strict form."""
    formats = [_at(body, "response_format", "json_schema"), _at(body, "text", "format")]
    return any(_at(found, "strict") is True for found in formats)


def _at(found: Any, *path: str) -> Any:
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def described(output: OutputSchema) -> dict[str, str]:
    return {} if output.description is None else {"description": output.description}
