"""Type hints to shapes: what list[Order], Optional[int] or Literal["a"] asks of a JSON value.

The tables at the end say which hint has which shape. A hint that JSON has no form for is invalid_request, naming class,
field and hint.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import re
import types
import uuid
from collections import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, Union, get_args, get_origin

from .annotations import Field, Scope, fields_of, is_typed_dict, marker_of, own_doc
from .json_values import kind_of
from .shapes import (
    CHOICE_TYPES,
    Alternatives,
    Choice,
    Entries,
    Fields,
    Items,
    Model,
    Noted,
    Places,
    Plain,
    Shape,
    Written,
)


class Hints:
    """Reads hints. A class is read once, so that one that contains itself comes to an end."""

    def __init__(self) -> None:
        self._classes: Final[dict[type, Fields]] = {}

    def shape(self, hint: Any, scope: Scope) -> Shape:
        hint = scope.read(hint)
        hint = hint.type if isinstance(hint, dataclasses.InitVar) else hint
        marker = marker_of(hint)
        if marker in MARKERS:
            return MARKERS[marker](self, hint, scope)
        origin = get_origin(hint) or hint
        if isinstance(origin, abc.Hashable) and origin in HINTS:
            return HINTS[origin](self, get_args(hint), scope)
        if isinstance(origin, type):
            return self._of_class(origin, scope)
        meant = getattr(hint, "__supertype__", None) or getattr(hint, "__value__", None)  # NewType; type X = ...
        if meant is None:
            raise no_form(hint, scope)
        return self.shape(meant, scope)

    def _of_class(self, cls: type, scope: Scope) -> Shape:
        if cls in PLAIN:
            return PLAIN[cls]
        if is_model(cls):
            return Model(cls)
        if issubclass(cls, enum.Enum):
            return self._choice([(member.value, member) for member in cls], scope, cls)
        if dataclasses.is_dataclass(cls) or is_typed_dict(cls):
            return self.fields(cls)
        raise no_form(cls, scope)

    def fields(self, cls: type) -> Fields:
        """The shape of a dataclass or a TypedDict."""
        if cls not in self._classes:
            rows: dict[str, tuple[Shape, bool]] = {}
            self._classes[cls] = Fields(cls, rows)
            rows.update((field.name, self._row(field)) for field in fields_of(cls))
        return self._classes[cls]

    def _row(self, field: Field) -> tuple[Shape, bool]:
        return self.shape(field.hint, field.scope), field.required

    # By marker

    def annotated(self, hint: Any, scope: Scope) -> Shape:
        """The texts in it describe the field; what else stands there is for others."""
        inner, *notes = get_args(hint)
        texts = [note for note in notes if isinstance(note, str)]
        shape = self.shape(inner, scope)
        return Noted(shape, "\n".join(texts)) if texts else shape

    def wrapped(self, hint: Any, scope: Scope) -> Shape:
        return self.shape(get_args(hint)[0], scope)

    # By origin

    def union(self, args: Sequence[Any], scope: Scope) -> Shape:
        return Alternatives([self.shape(arg, scope) for arg in args])

    def literal(self, args: Sequence[Any], scope: Scope) -> Shape:
        values = [(arg.value if isinstance(arg, enum.Enum) else arg, arg) for arg in args]
        return self._choice(values, scope, Literal[tuple(args)])

    def _choice(self, values: Sequence[tuple[Any, Any]], scope: Scope, hint: Any) -> Choice:
        if not values or any(type(value) not in CHOICE_TYPES or not kind_of(value) for value, _ in values):
            raise no_form(hint, scope)
        return Choice(values, doc=own_doc(hint) if isinstance(hint, type) else "")

    def list_of(self, args: Sequence[Any], scope: Scope) -> Shape:
        return Items(self.shape(args[0], scope) if args else None, list, unique=False)

    def set_of(self, args: Sequence[Any], scope: Scope) -> Shape:
        return self._set(set, args, scope)

    def frozen_set_of(self, args: Sequence[Any], scope: Scope) -> Shape:
        return self._set(frozenset, args, scope)

    def _set(self, make: Callable[[Any], Any], args: Sequence[Any], scope: Scope) -> Shape:
        hint = scope.read(args[0]) if args else str
        if getattr(get_origin(hint) or hint, "__hash__", None) is None:
            raise scope.refuse(hint, "cannot be in a set", "something hashable, or a list in place of the set")
        return Items(self.shape(hint, scope) if args else None, make, unique=True)

    def tuple_of(self, args: Sequence[Any], scope: Scope) -> Shape:
        if not args:
            return Items(None, tuple, unique=False)
        if len(args) == 2 and args[1] is Ellipsis:
            return Items(self.shape(args[0], scope), tuple, unique=False)
        return Places([self.shape(arg, scope) for arg in args])

    def entries_of(self, args: Sequence[Any], scope: Scope) -> Shape:
        if args and scope.read(args[0]) is not str:
            raise scope.refuse(args[0], "cannot be the key of an object", "dict[str, ...]: JSON's keys are strings")
        return Entries(self.shape(args[1], scope) if args else None)


def is_model(cls: Any) -> bool:
    """A class that describes and reads itself."""
    return all(callable(getattr(cls, name, None)) for name in ("model_json_schema", "model_validate"))


def no_form(hint: Any, scope: Scope) -> Exception:
    return scope.refuse(
        hint,
        "has no form in JSON",
        "str, int, float, bool, None, list, dict, tuple, set, Optional, Union, Literal, an Enum, a date, time, UUID or "
        "Decimal, a dataclass, a TypedDict, or a class with model_json_schema() and model_validate()",
    )


def _moment(text: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(_known(text))


def _time(text: str) -> datetime.time:
    return datetime.time.fromisoformat(_known(text))


def _known(text: str) -> str:
    """RFC 3339 as every Python knows it: before 3.11 not its Z, and of fractions only three digits or six."""
    text = FRACTION.sub(lambda found: f".{found[1][:6]:0<6}", text, count=1)
    return text[:-1] + "+00:00" if text[-1:] in ("Z", "z") else text


FRACTION: Final = re.compile(r"\.([0-9]+)")


# What a number needs not be told in JSON: `number` never admits NaN nor an infinity, which JSON does not have.
PLAIN: Final[Mapping[type, Shape]] = {
    str: Plain({"type": "string"}),
    bool: Plain({"type": "boolean"}),
    int: Plain({"type": "integer"}, int),
    float: Plain({"type": "number"}, float),
    type(None): Plain({"type": "null"}),
    object: Plain({}),
    datetime.datetime: Written({"format": "date-time"}, _moment, "a date and time as 2024-05-01T12:00:00Z"),
    datetime.date: Written({"format": "date"}, datetime.date.fromisoformat, "a date as 2024-05-01"),
    datetime.time: Written({"format": "time"}, _time, "a time as 12:00:00"),
    uuid.UUID: Written({"format": "uuid"}, uuid.UUID, "a UUID"),
    decimal.Decimal: Written({"pattern": r"^-?[0-9]+(\.[0-9]+)?$"}, decimal.Decimal, "a decimal number"),
}

MARKERS: Final[Mapping[str, Callable[[Hints, Any, Scope], Shape]]] = {
    "Annotated": Hints.annotated,
    "Required": Hints.wrapped,
    "NotRequired": Hints.wrapped,
    "ReadOnly": Hints.wrapped,
    "Final": Hints.wrapped,
}

HINTS: Final[Mapping[Any, Callable[[Hints, Sequence[Any], Scope], Shape]]] = {
    Union: Hints.union,
    getattr(types, "UnionType", Union): Hints.union,
    Literal: Hints.literal,
    list: Hints.list_of,
    abc.Sequence: Hints.list_of,
    abc.MutableSequence: Hints.list_of,
    abc.Collection: Hints.list_of,
    abc.Iterable: Hints.list_of,
    set: Hints.set_of,
    abc.MutableSet: Hints.set_of,
    frozenset: Hints.frozen_set_of,
    abc.Set: Hints.frozen_set_of,
    tuple: Hints.tuple_of,
    dict: Hints.entries_of,
    abc.Mapping: Hints.entries_of,
    abc.MutableMapping: Hints.entries_of,
    Any: lambda hints, args, scope: PLAIN[object],
    None: lambda hints, args, scope: PLAIN[type(None)],
}
