"""What a hint means, twice: the JSON Schema of its values, and how a value that fits becomes the user's object.

A shape's `schema` and `build` stand side by side, so that they cannot drift apart. `build` is given a spot: the value,
the schema that this shape wrote for it, and the validation that found it fitting, which it may ask for the alternative
that does. Shapes are made of hints by hints.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from .annotations import own_doc
from .json_values import Place, Violation, equality_key, told
from .validate import Validation

Json = dict[str, Any]


class Refusal(Exception):
    """A value that fits its schema, and that the user's own class or a conversion refuses all the same."""

    def __init__(self, violations: Sequence[Violation]) -> None:
        super().__init__(violations)
        self.violations: Final = violations


class Spot:
    """A part of a value, on its way to becoming an object."""

    __slots__ = ("place", "schema", "validation", "value")

    def __init__(self, value: Any, schema: Any, *, place: Place, validation: Validation) -> None:
        self.value: Final = value
        self.schema: Final = schema
        self.place: Final = place
        self.validation: Final = validation

    def inner(self, key: str | int, schema: Any) -> Spot:
        return Spot(self.value[key], schema, place=self.place.inner(key), validation=self.validation)

    def under(self, schema: Any) -> Spot:
        """The same value, under another schema."""
        return Spot(self.value, schema, place=self.place, validation=self.validation)

    def refuse(self, message: str) -> Refusal:
        return Refusal([Violation(self.place.pointer(), message)])

    def made(self, make: Callable[[Any], Any], given: Any, expected: str) -> Any:
        """What `make` gives; what it raises for a bad value becomes a violation, any other error stays one."""
        try:
            return make(given)
        except (ValueError, ArithmeticError) as exc:
            raise Refusal(self._told_by(exc, expected)) from exc

    def _told_by(self, exc: Exception, expected: str) -> list[Violation]:
        """pydantic's errors name their places; any other has one line."""
        rows = getattr(exc, "errors", None)
        if not callable(rows):
            return [Violation(self.place.pointer(), f"expected {expected}, found {told(self.value)}: {exc}")]
        return [Violation(self._place_of(row["loc"]).pointer(), row["msg"]) for row in rows()]

    def _place_of(self, steps: Sequence[Any]) -> Place:
        """pydantic's steps: keys of the value, and the names of alternatives, which are no places of it."""
        place, value = self.place, self.value
        for number, key in enumerate(steps, 1):
            if (isinstance(value, dict) and key in value) or (isinstance(value, list) and key in range(len(value))):
                place, value = place.inner(key), value[key]
            elif number == len(steps) and isinstance(value, dict):  # what is missing
                place = place.inner(key)
        return place


class Defs(Protocol):
    """Where schemas stand that are referred to by name."""

    def reference(self, shape: Fields) -> Json | None:
        """{"$ref": ...} for a class that contains itself, None for one that is written where it is used."""

    def adopt(self, definitions: Mapping[str, Any]) -> None:
        """Definitions that a class of the user's own wrote."""


class Shape(Protocol):
    def schema(self, defs: Defs) -> Json: ...

    def build(self, spot: Spot) -> Any: ...

    def parts(self) -> Iterable[Shape]: ...


class Plain:
    """A value that stays as it is, but for whole numbers written as 1.0, and the other way round."""

    def __init__(self, schema: Json, make: Callable[[Any], Any] | None = None) -> None:
        self._schema: Final = schema
        self._make: Final = make

    def schema(self, defs: Defs) -> Json:
        return dict(self._schema)

    def build(self, spot: Spot) -> Any:
        return spot.made(self._make, spot.value, "a number") if self._make else spot.value

    def parts(self) -> Iterable[Shape]:
        return ()


class Written:
    """What JSON can only hold as text: a date, a UUID, a decimal number."""

    def __init__(self, schema: Json, read: Callable[[str], Any], words: str) -> None:
        self._schema: Final = schema
        self._read: Final = read
        self._words: Final = words

    def schema(self, defs: Defs) -> Json:
        return {"type": "string", **self._schema}

    def build(self, spot: Spot) -> Any:
        return spot.made(self._read, spot.value, self._words)

    def parts(self) -> Iterable[Shape]:
        return ()


class Choice:
    """One of the values of a Literal or an Enum. values: what JSON holds, and what the user gets."""

    def __init__(self, values: Sequence[tuple[Any, Any]], *, doc: str = "") -> None:
        self._values: Final = values
        self._doc: Final = doc

    def schema(self, defs: Defs) -> Json:
        """`type` beside it where there is one: some providers want it."""
        given = [value for value, _ in self._values]
        names = {CHOICE_TYPES[type(value)] for value in given}
        named: Json = {"type": names.pop()} if len(names) == 1 else {}
        named.update({"const": given[0]} if len(given) == 1 else {"enum": given})
        return _described(named, self._doc)

    def build(self, spot: Spot) -> Any:
        key = equality_key(spot.value)
        return next(made for value, made in self._values if equality_key(value) == key)

    def parts(self) -> Iterable[Shape]:
        return ()


CHOICE_TYPES: Final[Mapping[type, str]] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}


class Items:
    """list[X], set[X], tuple[X, ...], Sequence[X]."""

    def __init__(self, item: Shape | None, make: Callable[[Any], Any], *, unique: bool) -> None:
        self._item: Final = item
        self._make: Final = make
        self._unique: Final = unique

    def schema(self, defs: Defs) -> Json:
        items = {"items": self._item.schema(defs)} if self._item else {}
        return {"type": "array", **items, **({"uniqueItems": True} if self._unique else {})}

    def build(self, spot: Spot) -> Any:
        item = self._item
        if item is None:
            return self._make(spot.value)
        built = []  # loops, here and below: each comprehension would be a frame more per level
        for index in range(len(spot.value)):
            built.append(item.build(spot.inner(index, spot.schema["items"])))
        return self._make(built)

    def parts(self) -> Iterable[Shape]:
        return (self._item,) if self._item else ()


class Places:
    """tuple[X, Y]: a shape for each place."""

    def __init__(self, items: Sequence[Shape]) -> None:
        self._items: Final = items

    def schema(self, defs: Defs) -> Json:
        count = len(self._items)
        places = [item.schema(defs) for item in self._items]
        return {"type": "array", "prefixItems": places, "minItems": count, "maxItems": count}

    def build(self, spot: Spot) -> Any:
        schemas = spot.schema["prefixItems"]
        built = []
        for index, item in enumerate(self._items):
            built.append(item.build(spot.inner(index, schemas[index])))
        return tuple(built)

    def parts(self) -> Iterable[Shape]:
        return self._items


class Entries:
    """dict[str, X], Mapping[str, X]."""

    def __init__(self, entry: Shape | None) -> None:
        self._entry: Final = entry

    def schema(self, defs: Defs) -> Json:
        return {"type": "object", **({"additionalProperties": self._entry.schema(defs)} if self._entry else {})}

    def build(self, spot: Spot) -> Any:
        if self._entry is None:
            return dict(spot.value)
        built = {}
        for name in spot.value:
            built[name] = self._entry.build(spot.inner(name, spot.schema["additionalProperties"]))
        return built

    def parts(self) -> Iterable[Shape]:
        return (self._entry,) if self._entry else ()


class Alternatives:
    """Union and Optional. The first alternative that fits is built.

    anyOf, and not a list of types: it holds every kind of alternative, a reference or an enum too, and every provider's
    documentation has it.
    """

    def __init__(self, shapes: Sequence[Shape]) -> None:
        self._shapes: Final = shapes

    def schema(self, defs: Defs) -> Json:
        return {"anyOf": [shape.schema(defs) for shape in self._shapes]}

    def build(self, spot: Spot) -> Any:
        """A text that fits an alternative's schema may be refused by its type, as "x" by UUID: the next is tried."""
        refused: Refusal | None = None
        for shape, schema in zip(self._shapes, spot.schema["anyOf"]):
            if spot.validation.fits(schema, spot.value, spot.place):
                try:
                    return shape.build(spot.under(schema))
                except Refusal as refusal:
                    if not isinstance(spot.value, str):
                        raise
                    refused = refused or refusal
        raise refused or spot.refuse("fits none of the alternatives")

    def parts(self) -> Iterable[Shape]:
        return self._shapes


class Noted:
    """Annotated[X, "text"]: the text describes this use of X, and replaces what X says of itself.

    Nothing may stand beside a `$ref`: OpenAI refuses it, Gemini documents that it does. So the reference is wrapped.
    """

    def __init__(self, shape: Shape, text: str) -> None:
        self._shape: Final = shape
        self._text: Final = text

    def schema(self, defs: Defs) -> Json:
        inner = self._shape.schema(defs)
        return {**({"anyOf": [inner]} if "$ref" in inner else inner), "description": self._text}

    def build(self, spot: Spot) -> Any:
        alternatives = spot.schema.get("anyOf", ())
        return self._shape.build(spot.under(alternatives[0]) if len(alternatives) == 1 else spot)

    def parts(self) -> Iterable[Shape]:
        return (self._shape,)


class Fields:
    """A dataclass or a TypedDict. `rows` is filled after it is made: a class may contain itself."""

    def __init__(self, cls: type, rows: Mapping[str, tuple[Shape, bool]]) -> None:
        self.cls: Final = cls
        self._rows: Final = rows

    def schema(self, defs: Defs) -> Json:
        return defs.reference(self) or self.body(defs)

    def body(self, defs: Defs) -> Json:
        """In the order of the fields: models write what comes first in a schema first."""
        return _described(
            {
                "type": "object",
                "properties": {name: shape.schema(defs) for name, (shape, _) in self._rows.items()},
                "required": [name for name, (_, required) in self._rows.items() if required],
                "additionalProperties": False,
            },
            own_doc(self.cls),
        )

    def build(self, spot: Spot) -> Any:
        properties = spot.validation.target(spot.schema)["properties"]
        built = {}
        for name, (shape, _) in self._rows.items():
            if name in spot.value:
                built[name] = shape.build(spot.inner(name, properties[name]))
        return spot.made(lambda fields: self.cls(**fields), built, f"what {self.cls.__name__} takes")

    def parts(self) -> Iterable[Shape]:
        return [shape for shape, _ in self._rows.values()]


class Model:
    """A class that describes and reads itself, as pydantic's do: model_json_schema() and model_validate()."""

    def __init__(self, cls: Any) -> None:
        self._cls: Final = cls

    def own(self) -> Json:
        return dict(self._cls.model_json_schema())

    def schema(self, defs: Defs) -> Json:
        own = self.own()
        defs.adopt(own.pop("$defs", {}))
        return own

    def build(self, spot: Spot) -> Any:
        return spot.made(self._cls.model_validate, spot.value, f"what {self._cls.__name__} takes")

    def parts(self) -> Iterable[Shape]:
        return ()


def _described(schema: Json, text: str) -> Json:
    return {**schema, "description": text} if text else schema
