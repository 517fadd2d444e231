"""What a class says of its fields: names, hints, which are required. Hints written as text are read here.

    class Order:                       ->  Field("number", int, required=True)
        number: int                        Field("note", Optional[str], required=False)
        note: str | None = None

`from __future__ import annotations` leaves every hint as text, and before Python 3.10 `str | None` can be written, but
not evaluated. So a text is parsed, and its parts are put together from the names of the module and of the class.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, ForwardRef, NamedTuple, Union, get_args, get_origin

from ..errors import MembraneError, invalid


class Field(NamedTuple):
    """hint: as it stands in the class, perhaps text. scope: where the names in it are looked up."""

    name: str
    hint: Any
    required: bool
    scope: Scope


class Scope(NamedTuple):
    """owner: the class whose names count. path: the class and field, for a message."""

    owner: Any
    path: str

    def read(self, hint: Any) -> Any:
        """The hint itself where it is text, which may stand for text again: the future quotes what was quoted too."""
        seen: set[str] = set()
        while isinstance(hint, (str, ForwardRef)):
            text = hint if isinstance(hint, str) else hint.__forward_arg__
            try:
                if text in seen:
                    raise LookupError("it stands for itself")
                hint = _evaluate(ast.parse(text.strip(), mode="eval").body, _Names(self.owner, hint))
            except Exception as exc:  # what a subscript of a class of the user's own may raise
                expected = "only names of the module and of the class"
                raise self.refuse(text, f"cannot be resolved ({exc})", expected) from exc
            seen.add(text)
        return hint

    def refuse(self, hint: Any, fault: str, expected: str) -> MembraneError:
        plain = isinstance(hint, type) and get_origin(hint) is None
        shown = hint.__name__ if plain else hint if isinstance(hint, str) else repr(hint)
        return invalid(self.path, f"the hint {shown} {fault}", f"expected {expected}")


def fields_of(cls: type) -> Iterator[Field]:
    """What the constructor of a dataclass takes, or the keys of a TypedDict, in the order they are written."""
    return _typed_dict_fields(cls) if is_typed_dict(cls) else _dataclass_fields(cls)


def is_typed_dict(cls: Any) -> bool:
    return isinstance(cls, type) and issubclass(cls, dict) and hasattr(cls, "__required_keys__")


def _dataclass_fields(cls: Any) -> Iterator[Field]:
    parameters = inspect.signature(cls).parameters
    for name, field in cls.__dataclass_fields__.items():
        if name in parameters:
            required = parameters[name].default is inspect.Parameter.empty
            yield Field(name, field.type, required, Scope(_owner(cls, field), f"{cls.__name__}.{name}"))


def _owner(cls: type, field: Any) -> type:
    """The class that declares a field: its module, not the heir's, holds the names of the hint."""
    return next(
        base for base in reversed(cls.__mro__) if vars(base).get("__dataclass_fields__", {}).get(field.name) is field
    )


def _typed_dict_fields(cls: Any) -> Iterator[Field]:
    for name, hint in cls.__annotations__.items():
        scope = Scope(cls, f"{cls.__name__}.{name}")
        yield Field(name, hint, _is_required(scope.read(hint), name in cls.__required_keys__), scope)


def _is_required(hint: Any, otherwise: bool) -> bool:
    """The marker in a text was not seen when the class was made."""
    while marker_of(hint) in ("ReadOnly", "Annotated"):
        hint = get_args(hint)[0]
    return {"Required": True, "NotRequired": False}.get(marker_of(hint), otherwise)


def marker_of(hint: Any) -> str:
    """The name of a typing form, whichever module's: "Required", "Annotated", "Final"; "" of anything else."""
    origin = get_origin(hint)
    if getattr(origin, "__module__", None) in ("typing", "typing_extensions"):
        return str(getattr(origin, "_name", None) or getattr(origin, "__name__", ""))
    return ""


def own_doc(cls: type) -> str:
    """A class's own docstring, unless a decorator or base class wrote it."""
    text = vars(cls).get("__doc__") or ""
    if text.startswith(f"{cls.__name__}(") or text == "An enumeration.":  # of dataclass; of Enum before Python 3.11
        return ""
    return inspect.cleandoc(text)


# Hints written as text


class _Names:
    """Where the names of a text are looked up, in typing.get_type_hints' order."""

    def __init__(self, owner: Any, hint: Any) -> None:
        module = getattr(hint, "__forward_module__", None) or getattr(owner, "__module__", None)
        self._owner: Final = owner
        self._module: Final = vars(sys.modules[module]) if isinstance(module, str) and module in sys.modules else {}

    def __getitem__(self, name: str) -> Any:
        own = {getattr(self._owner, "__name__", ""): self._owner}  # a class made in a function names itself
        places: tuple[Mapping[str, Any], ...] = (own, self._module, vars(builtins), vars(self._owner))
        for place in places:
            if name in place:
                return place[name]
        raise LookupError(f"no name {name!r} in module {getattr(self._owner, '__module__', None)!r}")


def _evaluate(node: ast.expr, names: _Names) -> Any:
    read = NODES.get(type(node))
    if read is None:
        raise TypeError(f"{ast.unparse(node)!r} is no part of a hint")
    return read(node, names)


def _name(node: Any, names: _Names) -> Any:
    return names[node.id]


def _attribute(node: Any, names: _Names) -> Any:
    return getattr(_evaluate(node.value, names), node.attr)


def _constant(node: Any, names: _Names) -> Any:
    return node.value


def _negative(node: Any, names: _Names) -> Any:
    if not isinstance(node.op, ast.USub):
        raise TypeError(f"{ast.unparse(node)!r} is no part of a hint")
    return -_evaluate(node.operand, names)


def _tuple(node: Any, names: _Names) -> Any:
    return tuple(_evaluate(item, names) for item in node.elts)


def _union(node: Any, names: _Names) -> Any:
    if not isinstance(node.op, ast.BitOr):
        raise TypeError(f"{ast.unparse(node)!r} is no part of a hint")
    return Union[_evaluate(node.left, names), _evaluate(node.right, names)]


def _subscript(node: Any, names: _Names) -> Any:
    base = _evaluate(node.value, names)
    if base is typing.Annotated:
        first, *notes = node.slice.elts
        parts = (_evaluate(first, names), *(_note(note, names) for note in notes))
        return typing.Annotated[parts]
    return base[_evaluate(node.slice, names)]


def _note(node: ast.expr, names: _Names) -> Any:
    """Only texts are looked for in an Annotated; a call in it is not made."""
    try:
        return _evaluate(node, names)
    except Exception:
        return None


NODES: Final[Mapping[type, Callable[[Any, _Names], Any]]] = {
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Constant: _constant,
    ast.UnaryOp: _negative,
    ast.Tuple: _tuple,
    ast.BinOp: _union,
    ast.Subscript: _subscript,
}
