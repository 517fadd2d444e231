"""The keywords of JSON Schema that we know, and what each asks of a value. A keyword not in the table asks nothing.

A check is given what the schema says of its keyword, and the step: the value, and the schema around it. It says
`fail`, or hands on to a part of the value (`go`), or to another schema for the same value (`also`, `attempt`).

Source: JSON Schema 2020-12, Core 10 (applicators) and Validation 6 (assertions).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final, NamedTuple

from .json_values import briefly, counted, equality_key, is_integer, kind_of, number_text, quoted, told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .validate import Step

LONGEST_MATCHED: Final = 10_000  # characters; a pattern is the user's own, and may need exponential time


# Any value


def _type(given: Any, step: Step) -> None:
    names = [given] if isinstance(given, str) else given
    if not any(is_of_type(step.value, name) for name in names):
        step.fail(f"expected {' or '.join(names)}, found {told(step.value)}")


def is_of_type(value: Any, name: str) -> bool:
    return is_integer(value) if name == "integer" else kind_of(value) == name


def _enum(given: Any, step: Step) -> None:
    if equality_key(step.value) not in step.prepared.enums[id(given)]:
        step.fail(f"expected one of {listed(given)}, found {told(step.value)}")


def listed(values: Sequence[Any]) -> str:
    shown = ", ".join(briefly(value) for value in values[:LISTED])
    return f"{shown}, ... ({len(values)} in all)" if len(values) > LISTED else shown or "no value at all"


def _const(given: Any, step: Step) -> None:
    if equality_key(step.value) != equality_key(given):
        step.fail(f"expected {briefly(given)}, found {told(step.value)}")


LISTED: Final = 20  # values of an enum, names of properties, in one message


# Numbers


def _minimum(given: Any, step: Step) -> None:
    _bound(step, step.value >= given, f"{number_text(given)} or more")


def _maximum(given: Any, step: Step) -> None:
    _bound(step, step.value <= given, f"{number_text(given)} or less")


def _exclusive_minimum(given: Any, step: Step) -> None:
    _bound(step, step.value > given, f"more than {number_text(given)}")


def _exclusive_maximum(given: Any, step: Step) -> None:
    _bound(step, step.value < given, f"less than {number_text(given)}")


def _multiple_of(given: Any, step: Step) -> None:
    """In exact fractions of what was written: 0.0075 is a multiple of 0.0001, though the nearest floats are not."""
    _bound(step, _exactly(step.value) % _exactly(given) == 0, f"a multiple of {number_text(given)}")


def _exactly(number: float) -> Fraction:
    return Fraction(repr(number)) if isinstance(number, float) else Fraction(number)


def _bound(step: Step, holds: bool, expected: str) -> None:
    if not holds:
        step.fail(f"expected {expected}, found {number_text(step.value)}")


# Strings


def _min_length(given: Any, step: Step) -> None:
    if len(step.value) < given:
        step.fail(f"expected {counted(int(given), 'character', 'characters')} or more, found {len(step.value)}")


def _max_length(given: Any, step: Step) -> None:
    if len(step.value) > given:
        step.fail(f"expected {counted(int(given), 'character', 'characters')} or fewer, found {len(step.value)}")


def _pattern(given: Any, step: Step) -> None:
    if len(step.value) > LONGEST_MATCHED:
        step.fail(f"a pattern is applied to at most {LONGEST_MATCHED:,} characters, found {len(step.value):,}")
    elif not step.prepared.patterns[given].search(step.value):
        step.fail(f"expected a string that matches {given}, found {quoted(step.value)}")


# Arrays


def _items(given: Any, step: Step) -> None:
    """Those after prefixItems. Core 10.3.1.2."""
    for index in range(len(step.schema.get("prefixItems", ())), len(step.value)):
        step.go(given, index)


def _prefix_items(given: Any, step: Step) -> None:
    for index, schema in enumerate(given[: len(step.value)]):
        step.go(schema, index)


def _min_items(given: Any, step: Step) -> None:
    if len(step.value) < given:
        step.fail(f"expected {counted(int(given), 'item', 'items')} or more, found {len(step.value)}")


def _max_items(given: Any, step: Step) -> None:
    if len(step.value) > given:
        step.fail(f"expected {counted(int(given), 'item', 'items')} or fewer, found {len(step.value)}")


def _unique_items(given: Any, step: Step) -> None:
    seen: dict[Any, int] = {}
    for index, key in enumerate(map(equality_key, step.value) if given else ()):
        if key in seen:
            step.fail(f"expected no two equal items, found equal ones at {seen[key]} and {index}")
            return
        seen[key] = index


# Objects


def _properties(given: Any, step: Step) -> None:
    step.declare(given)
    for name in given:
        if name in step.value:
            step.go(given[name], name)


def _required(given: Any, step: Step) -> None:
    for name in given:
        if name not in step.value:
            step.fail(f"the required property {quoted(name)} is missing")


def _additional_properties(given: Any, step: Step) -> None:
    step.declare(None)
    declared = step.schema.get("properties", {})
    for name in step.value:
        if name in declared:
            continue
        if given is False:
            step.fail_in(name, excess(name, declared))
        else:
            step.go(given, name)


def excess(name: str, declared: Mapping[str, Any]) -> str:
    """What to say of a property that nobody declared."""
    others = ", ".join(quoted(other) for other in list(declared)[:LISTED])
    return f"no property {quoted(str(name))} is declared; expected {'only ' + others if others else 'none'}"


# Other schemas for the same value


def _ref(given: Any, step: Step) -> None:
    step.also(step.prepared.refs[given])


def _all_of(given: Any, step: Step) -> None:
    for schema in given:
        step.also(schema)


def _any_of(given: Any, step: Step) -> None:
    """Every alternative is tried: each that fits may declare properties, be it of parts of the value."""
    found = False
    for schema in given:
        verdict = step.attempt(schema)
        if verdict.fits:
            found = True
            step.adopt(verdict)
            if not isinstance(step.value, (dict, list)):
                return
    if not found:
        step.none_fits(given)


def _one_of(given: Any, step: Step) -> None:
    fitting = []
    for index, schema in enumerate(given):
        verdict = step.attempt(schema)
        if verdict.fits:
            fitting.append(index)
            step.adopt(verdict)
    if not fitting:
        step.none_fits(given)
    elif len(fitting) > 1:
        step.fail(f"expected exactly one alternative to fit, found {' and '.join(map(str, fitting))} (counted from 0)")


def _not(given: Any, step: Step) -> None:
    if step.attempt(given).fits:
        step.fail(f"found {told(step.value)}, which fits the schema under `not`")


class Keyword(NamedTuple):
    """kind: the only kind of value it is about, None for all."""

    kind: str | None
    check: Callable[[Any, Step], None]


KEYWORDS: Final[Mapping[str, Keyword]] = {
    "type": Keyword(None, _type),
    "enum": Keyword(None, _enum),
    "const": Keyword(None, _const),
    "minimum": Keyword("number", _minimum),
    "maximum": Keyword("number", _maximum),
    "exclusiveMinimum": Keyword("number", _exclusive_minimum),
    "exclusiveMaximum": Keyword("number", _exclusive_maximum),
    "multipleOf": Keyword("number", _multiple_of),
    "minLength": Keyword("string", _min_length),
    "maxLength": Keyword("string", _max_length),
    "pattern": Keyword("string", _pattern),
    "items": Keyword("array", _items),
    "prefixItems": Keyword("array", _prefix_items),
    "minItems": Keyword("array", _min_items),
    "maxItems": Keyword("array", _max_items),
    "uniqueItems": Keyword("array", _unique_items),
    "properties": Keyword("object", _properties),
    "required": Keyword("object", _required),
    "additionalProperties": Keyword("object", _additional_properties),
    "$ref": Keyword(None, _ref),
    "allOf": Keyword(None, _all_of),
    "anyOf": Keyword(None, _any_of),
    "oneOf": Keyword(None, _one_of),
    "not": Keyword(None, _not),
}
