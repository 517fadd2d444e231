"""A structured answer, read: the forced tool's input, by the tool's name, else the JSON in the text; then decoded.

An answer that is not complete is an error before its content is looked at: half an answer is none. One that is complete
and does not fit is an LlmContractViolation (schema/decode.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from ..errors import MembraneError
from ..schema.decode import MAX_RAW, LlmContractViolation, decode, decode_tool_input
from ..schema.json_in_text import json_of_text
from ..schema.strict import without_nulls
from ..values.content import ToolUse
from ..values.requests import OutputSchema
from ..values.responses import Response
from .structured_output import is_strict

if TYPE_CHECKING:
    from ..errors import ErrorType
    from ..schema.derive import Schema

INCOMPLETE_ANSWER: Final = "incomplete_answer"


def structured_answer(response: Response, schema: Schema, output: OutputSchema, *, shown_request: Any = None) -> Any:
    """What `schema` makes of the answer. Raises MembraneError, with what was used in .partial_usage.

    shown_request: the body that was sent, as an error may show it.
    """
    if response.stop_reason in INCOMPLETE:
        raise incomplete(response).with_request(shown_request)
    try:
        answer = given_answer(response, output.name)
        if is_strict(response.raw.request):
            answer = without_nulls(output.schema, answer)
        return decode_tool_input(schema, answer) if isinstance(answer, dict) else decode(schema, answer)
    except LlmContractViolation as violation:
        raise violation.with_partial(
            content=(), text="", usage=response.usage, tool_calls=(), tool_results=()
        ) from violation.__cause__


def given_answer(response: Response, name: str) -> Any:
    """The answer as JSON, before it is looked at."""
    calls = [block for block in response.content if isinstance(block, ToolUse)]
    call = next((call for call in calls if call.name == name), None)
    if call is None:
        return answer_in_text(response.text, [call.name for call in calls])
    if call.unparseable_input is not None:
        raw = call.unparseable_input[:MAX_RAW]
        raise LlmContractViolation(f"the input of {name!r} is not complete JSON; the answer: {raw}", raw=raw)
    return call.input


def answer_in_text(text: str, called: list[str]) -> Any:
    try:
        return json_of_text(text)
    except ValueError as exc:
        raw = text[:MAX_RAW]
        instead = f"; the model called {', '.join(map(repr, called))}" if called else ""
        raise LlmContractViolation(f"{exc}{instead}; the answer: {raw}", raw=raw) from exc


def incomplete(response: Response) -> MembraneError:
    kind, words = INCOMPLETE[response.stop_reason]
    stop, provider = response.details.stop, response.details.model.provider
    told = f" ({stop.refusal})" if stop.refusal else ""
    return MembraneError(
        kind,
        f"{provider}: the structured answer is incomplete: {words}{told}; what arrived is in .partial_content",
        retryable=False,
        provider_error_code=INCOMPLETE_ANSWER,
        request_id=response.details.request_id,
    ).with_partial(
        content=response.content,
        text=response.raw_assistant_text,
        usage=response.usage,
        tool_calls=response.tool_calls,
        tool_results=response.tool_results,
    )


INCOMPLETE: Final[Mapping[str, tuple[ErrorType, str]]] = {
    "max_tokens": ("unknown", "it was cut, allow it more of config.max_tokens"),
    "refusal": ("safety", "the model refused"),
    "pause_turn": ("unknown", "the provider paused in its midst"),
}
