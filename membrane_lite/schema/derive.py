"""The JSON Schema of the object a model shall give: from a mapping, a dataclass, a TypedDict, or a class with its own.

    @dataclass
    class Order:
        "One order."
        number: int
        note: Annotated[Optional[str], "what the customer said"] = None

    to_input_schema(Order)
    -> {"type": "object",
        "properties": {
            "number": {"type": "integer"},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "what the customer said"}},
        "required": ["number"],
        "additionalProperties": false,
        "description": "One order."}

A class within a class is written where it is used; one that contains itself stands under $defs, and is referred to.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any, Final, Union

from ..errors import MembraneError, invalid, wrong_type
from .annotations import is_typed_dict
from .definitions import numbered
from .hints import Hints, is_model
from .prepare import prepare
from .shapes import Fields, Json, Model, Shape

Schema = Union[Mapping[str, Any], type]  # what stands for the shape of an answer, wherever one is asked for


def to_input_schema(schema: Schema) -> Json:
    """The JSON Schema of `schema`, an object at its root, as a tool's input_schema takes it.

    A mapping is checked and given back as it is, but for its root: a reference there gives way to what it names, and a
    type that is left out is written. Raises MembraneError("invalid_request") for what is no schema, for a
    hint that JSON has no form for, and for a schema that could not be applied.
    """
    if isinstance(schema, Mapping):
        return _checked(dict(schema), "schema")
    if is_model(schema):
        return _checked(Model(schema).own(), schema.__name__)
    return derived(shape_of(schema))


def shape_of(schema: Any) -> Fields:
    """The shape of a dataclass or a TypedDict."""
    if isinstance(schema, type) and (dataclasses.is_dataclass(schema) or is_typed_dict(schema)):
        return Hints().fields(schema)
    raise wrong_type(
        "schema",
        schema,
        "a JSON Schema mapping, a dataclass, a TypedDict, or a class with model_json_schema() and model_validate()",
    )


def derived(shape: Fields) -> Json:
    """What a shape writes, with the definitions that it refers to."""
    definitions = Definitions(shape)
    body = shape.body(definitions)
    defs = definitions.written()
    return {**body, "$defs": defs} if defs else body


class Definitions:
    """Classes that contain themselves, by name; and what the user's own classes define."""

    def __init__(self, root: Shape) -> None:
        self._names: Final[dict[int, tuple[str, Fields]]] = {}
        self._adopted: Final[Json] = {}
        for shape in _containing_themselves(root):
            name = self._free(shape.cls.__name__)
            self._names[id(shape)] = name, shape

    def _free(self, name: str) -> str:
        taken = {taken for taken, _ in self._names.values()}
        return next(free for free in numbered(name) if free not in taken)

    def reference(self, shape: Fields) -> Json | None:
        return {"$ref": f"#/$defs/{self._names[id(shape)][0]}"} if id(shape) in self._names else None

    def adopt(self, definitions: Mapping[str, Any]) -> None:
        names = {name for name, _ in self._names.values()}
        for name, definition in definitions.items():
            if name in names or self._adopted.get(name, definition) != definition:
                raise invalid(
                    "schema", f"two classes are named {name!r}", "expected one, or the other under a new name"
                )
            self._adopted[name] = definition

    def written(self) -> Json:
        own = {name: shape.body(self) for name, shape in self._names.values()}
        return {**own, **self._adopted}


def _containing_themselves(root: Shape) -> list[Fields]:
    """Going down into the parts, the classes that are met again on the way: without them the rest is finite."""
    found: dict[int, Fields] = {}
    done: set[int] = set()
    path: dict[int, Iterator[Shape]] = {id(root): iter(root.parts())}
    while path:
        at = next(reversed(path))
        part = next(path[at], None)
        if part is None:
            done.add(at)
            del path[at]
        elif id(part) in path and isinstance(part, Fields):
            found[id(part)] = part
        elif id(part) not in done:
            path[id(part)] = iter(part.parts())
    return list(found.values())


def _unwrapped(schema: Json) -> Json:
    """A class that contains itself describes itself as a reference; a root has to be the object."""
    if "$ref" not in schema or not schema.keys() <= BESIDE_ROOT:
        return schema
    target = prepare(schema).refs[schema["$ref"]]
    beside = {key: value for key, value in schema.items() if key != "$ref"}
    return _unwrapped({**target, **beside}) if isinstance(target, Mapping) else schema


def _checked(schema: Json, name: str) -> Json:
    if not all(isinstance(key, str) for key in schema):
        raise invalid(name, "a key is no string", "expected a JSON Schema")
    refs = prepare(schema).refs
    schema = _unwrapped(schema)
    if not ({"type"} | ROOT_KEYWORDS) & schema.keys():
        raise _no_object(name, None)
    wrong = next((kind for kind in _root_types(schema, refs) if kind != "object"), None)
    if wrong is not None:
        raise _no_object(name, wrong)
    return schema if "type" in schema or "properties" not in schema else {"type": "object", **schema}


def _root_types(schema: Any, refs: Mapping[str, Any]) -> Iterator[Any]:
    """What the root says it is, and each of its alternatives."""
    if not isinstance(schema, Mapping):
        return
    if "type" in schema:
        yield schema["type"]
    for inner in (
        *([refs[schema["$ref"]]] if "$ref" in schema else ()),
        *(found for keyword in ("anyOf", "oneOf", "allOf") for found in schema.get(keyword, ())),
    ):
        yield from _root_types(inner, refs)


def _no_object(name: str, found: Any) -> MembraneError:
    return invalid(name, f"found type {found!r} at the root", 'expected "type": "object": put the value in a property')


ROOT_KEYWORDS: Final = {"properties", "$ref", "anyOf", "oneOf", "allOf"}  # one of them may stand for the type
BESIDE_ROOT: Final = {"$ref", "$defs", "definitions", "$schema", "$id", "$comment", "title", "description", "examples"}
