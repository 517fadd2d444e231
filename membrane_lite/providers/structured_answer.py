"""A structured answer, read: the forced tool's input, by the tool's name, else the JSON in the text; then decoded.

An answer that is not complete is an error before its content is looked at: half an answer is none. One that is complete
and does not fit is an LlmContractViolation (schema/decode.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from ..call import own_code
from ..errors import MembraneError
from ..schema.decode import MAX_RAW, LlmContractViolation, answer_of_text, decode, decode_tool_input
from ..schema.json_values import Violation
from ..schema.strict import without_nulls
from ..values.content import ToolUse
from ..values.requests import OutputSchema
from ..values.responses import Response
from .structured_output import is_strict, own_class_error

if TYPE_CHECKING:
    from ..errors import ErrorType
    from ..schema.derive import Schema

INCOMPLETE_ANSWER: Final = "incomplete_answer"


def structured_answer(response: Response, schema: Schema, output: OutputSchema, *, show: Callable[[Any], Any]) -> Any:
    """What `schema` makes of the answer. Raises MembraneError, with what was used in .partial_usage.

    show: gives JSON as an error may show it, without secrets.
    """
    if response.stop_reason in INCOMPLETE:
        raise with_answer(incomplete(response), response, show)
    try:
        answer = given_answer(response, output.name)
        if is_strict(response.raw.request):
            answer = without_nulls(output.schema, answer)
        return decode_tool_input(schema, answer) if isinstance(answer, dict) else decode(schema, answer)
    except LlmContractViolation as violation:
        shown = shown_violation(violation, show)
        raise shown.with_partial(
            content=(), text="", usage=response.usage, tool_calls=(), tool_results=()
        ) from shown.__cause__
    except Exception as exc:  # of the caller's own class
        error = own_class_error(schema, exc)
        raise with_answer(error, response, show) from (exc.__cause__ if error is exc else exc)


def tell(on_complete: Callable[[Response], object], response: Response, *, show: Callable[[Any], Any]) -> None:
    """Let the caller hear of an answer. What the callback raises says what the answer was, and cost."""
    try:
        own_code("on_complete", on_complete, response)
    except MembraneError as error:
        raise with_answer(error, response, show) from error.__cause__


def with_answer(error: MembraneError, response: Response, show: Callable[[Any], Any]) -> MembraneError:
    return error.with_request(show(response.raw.request)).with_partial(
        content=response.content,
        text=response.raw_assistant_text,
        usage=response.usage,
        tool_calls=response.tool_calls,
        tool_results=response.tool_results,
    )


def shown_violation(violation: LlmContractViolation, show: Callable[[Any], Any]) -> LlmContractViolation:
    """The same, unless the answer holds a secret: then one that does not tell it, nor what it was made from."""
    told = {"message": violation.message, "violations": list(map(list, violation.violations)), "raw": violation.raw}
    shown = show(told)
    if shown == told:
        return violation
    places = [Violation(path, message) for path, message in shown["violations"]]
    return LlmContractViolation(shown["message"], violations=places, raw=shown["raw"])


def given_answer(response: Response, name: str) -> Any:
    """The answer as JSON, before it is looked at."""
    calls = [block for block in response.content if isinstance(block, ToolUse)]
    call = next((call for call in calls if call.name == name), None)
    if call is None:
        called = ", ".join(repr(call.name) for call in calls)
        return answer_of_text(response.text, beside=f"; the model called {called}" if called else "")
    if call.unparseable_input is not None:
        raw = call.unparseable_input[:MAX_RAW]
        raise LlmContractViolation(f"the input of {name!r} is not complete JSON; the answer: {raw}", raw=raw)
    return call.input


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
    )


INCOMPLETE: Final[Mapping[str, tuple[ErrorType, str]]] = {
    "max_tokens": ("unknown", "it was cut, allow it more of config.max_tokens"),
    "refusal": ("safety", "the model refused"),
    "pause_turn": ("unknown", "the provider paused in its midst"),
}
