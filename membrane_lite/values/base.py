"""The two forms a value has: Value for what flows by the thousand, Record for what a person builds once per call."""

from __future__ import annotations

from typing import Any, ClassVar

Json = Any  # what json.loads returns: dict, list, str, int, float, bool, None


class Value:
    """Equality by class and fields, hash and repr from the slots. Fields are Final: nobody changes a value."""

    __slots__: tuple[str, ...] = ()

    def _fields(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Value) and type(self) is type(other) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash((type(self), self._fields()))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({shown})"


class Record:
    """Base of the dataclasses a person builds. `to_dict` gives JSON-ready data that the strict reader reads back."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def to_dict(self) -> dict[str, Any]:
        """Fields that are None are left out; the reader puts them back."""
        names = self.__dataclass_fields__
        tag = getattr(type(self), "type", None)  # of a content block; elsewhere `type` is a field or absent
        tagged = {} if tag is None or "type" in names else {"type": tag}
        named = ((name, getattr(self, name)) for name in names)
        return {**tagged, **{name: plain(value) for name, value in named if value is not None}}


def plain(value: Any) -> Any:
    """Records become dicts, sequences lists; JSON stays as it is."""
    if isinstance(value, Record):
        return value.to_dict()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value
