"""A model's structured answer, strictly read: it fits the schema, or it is an error that says all that is wrong.

    decode_tool_input(Order, {"number": 7, "lines": "[{\\"item\\": \\"tea\\"}]"})
    -> Order(number=7, lines=[Line("tea")])

Models give a list or an object as a text of JSON where a tool's input asks for one at its top level. That is repaired,
once, and only if the whole then fits; else what is told is what was wrong with the answer as it came.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar, overload

from ..errors import MembraneError
from ..wire.json_text import compact, parse
from .derive import Schema, derived, shape_of, to_input_schema
from .hints import is_model
from .json_in_text import json_of_text
from .json_values import ROOT, Violation, told
from .prepare import Prepared, prepare
from .shapes import Model, Refusal, Shape, Spot
from .validate import TOO_DEEP, Validation

MAX_RAW: Final = 800  # characters of the answer, in the error that says what is wrong with it
TOLD: Final = 5  # violations, in the error's message; .violations has them all

T = TypeVar("T")


class LlmContractViolation(MembraneError):
    """The model answered, and not as it was asked to.

    violations: what is wrong, and where. raw: the answer as JSON, its first 800 characters.
    """

    def __init__(self, reason: str, *, violations: Sequence[Violation] = (), raw: str = "") -> None:
        super().__init__("unknown", reason, retryable=False, provider_error_code="contract_violation")
        self.violations: Final = tuple(violations)
        self.raw: Final = raw

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.message,), vars(self)


@overload
def decode_tool_input(schema: type[T], input: Any) -> T: ...
@overload
def decode_tool_input(schema: Mapping[str, Any], input: Any) -> Any: ...
def decode_tool_input(schema: Schema, input: Any) -> Any:
    """What the model gave as the input of the forced tool call, as `schema` has it. None: it made no call.

    Properties that the schema does not declare are refused, also where it does not say so. Raises LlmContractViolation.
    """
    if input is None:
        raise LlmContractViolation("the model answered without calling the tool: there is no input to decode")
    return _repaired_or_refused(schema, input)


def _repaired_or_refused(schema: Schema, value: Any) -> Any:
    contract = Contract(schema)
    built, violations = contract.read(value)
    if not violations:
        return built
    repaired = contract.unwrapped(value, violations)
    built, still = contract.read(repaired) if repaired is not value else (None, violations)
    if still:
        raise contract_violation(violations, value)
    return built


@overload
def decode(schema: type[T], value: Any) -> T: ...
@overload
def decode(schema: Mapping[str, Any], value: Any) -> Any: ...
def decode(schema: Schema, value: Any) -> Any:
    """The same of any JSON value, repairing nothing."""
    built, violations = Contract(schema).read(value)
    if violations:
        raise contract_violation(violations, value)
    return built


@overload
def decode_text(schema: type[T], text: str) -> T: ...
@overload
def decode_text(schema: Mapping[str, Any], text: str) -> Any: ...
def decode_text(schema: Schema, text: str) -> Any:
    """The same of the JSON value in a text, bare, fenced, or with words around it; with the same repair."""
    return _repaired_or_refused(schema, answer_of_text(text))


def answer_of_text(text: str, *, beside: str = "") -> Any:
    """The JSON value in a text, not yet looked at. beside: what else the error is to say, where there is none."""
    try:
        return json_of_text(text)
    except ValueError as exc:
        raw = text[:MAX_RAW]
        raise LlmContractViolation(f"{exc}{beside}; the answer: {raw}", raw=raw) from exc


def contract_violation(violations: Sequence[Violation], value: Any) -> LlmContractViolation:
    """The error for an answer that does not fit."""
    listed = "; ".join(map(str, violations[:TOLD]))
    more = f"; and {len(violations) - TOLD} more" if len(violations) > TOLD else ""
    raw = _raw(value)
    return LlmContractViolation(
        f"the answer does not fit its schema: {listed}{more}; the answer: {raw}", violations=violations, raw=raw
    )


def _raw(value: Any) -> str:
    try:
        return compact(value)[:MAX_RAW]
    except MembraneError as error:  # nested too deep; or not JSON, where a client of the caller's own made it
        return told(value) if isinstance(error.__cause__, RecursionError) else repr(value)[:MAX_RAW]


class Contract:
    """A schema, ready to read answers."""

    def __init__(self, schema: Schema) -> None:
        self._shape: Final = _shape(schema)
        self._prepared: Final[Prepared] = prepare(_json_schema(schema, self._shape))

    def read(self, value: Any) -> tuple[Any, Sequence[Violation]]:
        """The user's object; or what is wrong."""
        validation = Validation(self._prepared, value, closed=True)
        violations = validation.violations()
        if violations or self._shape is None:
            return value, violations
        try:
            return self._shape.build(Spot(value, self._prepared.root, place=ROOT, validation=validation)), ()
        except Refusal as refusal:
            return None, refusal.violations
        except RecursionError:
            return None, [Violation("", TOO_DEEP)]

    def unwrapped(self, value: Any, violations: Sequence[Violation]) -> Any:
        """With the texts at the top level that are wrong, and hold an object or an array, parsed; or `value` itself."""
        if not isinstance(value, dict):
            return value
        wrong = {violation.path for violation in violations}
        parsed = {name: _container(text) for name, text in value.items() if ROOT.inner(name).pointer() in wrong}
        found = {name: inner for name, inner in parsed.items() if inner is not None}
        return {**value, **found} if found else value


def _container(text: Any) -> Any:
    """The object or array that a text holds; None for anything else."""
    try:
        inner = parse(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
    return inner if isinstance(inner, (dict, list)) else None


def _shape(schema: Schema) -> Shape | None:
    if isinstance(schema, Mapping):
        return None
    return Model(schema) if is_model(schema) else shape_of(schema)


def _json_schema(schema: Schema, shape: Any) -> Any:
    return to_input_schema(schema) if shape is None or isinstance(shape, Model) else derived(shape)
