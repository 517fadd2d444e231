"""A schema whose references all lead to "$defs" at its root, or to the root: where every provider looks for them.

    {"properties": {"a": {"$ref": "#/definitions/D"}}, "definitions": {"D": {"type": "string"}}}
    -> {"properties": {"a": {"$ref": "#/$defs/D"}}, "$defs": {"D": {"type": "string"}}}

In goes a schema as older generators and people write it, out comes one that means the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from .prepare import INNER, prepare

Json = dict[str, Any]


def gathered(schema: Mapping[str, Any]) -> Json:
    """`schema` with what is referred to elsewhere put under $defs. Raises "invalid_request" for one that is none."""
    refs = prepare(schema).refs
    moved = _names([ref for ref in refs if PLAIN.fullmatch(ref) is None], taken=schema.get("$defs", {}))
    if not moved:
        return dict(schema)
    new = {ref: f"#/$defs/{name}" for ref, name in moved.items()}
    defs = {name: _renamed(inner, new) for name, inner in schema.get("$defs", {}).items()}
    defs.update((name, _renamed(refs[ref], new)) for ref, name in moved.items())
    return {**_renamed(schema, new), "$defs": defs}


def _names(refs: list[str], *, taken: Mapping[str, Any]) -> dict[str, str]:
    """A name for each, the last word of it if that is free."""
    names: dict[str, str] = {}
    used = set(taken)
    numbers: dict[str, Iterator[str]] = {}
    for ref in refs:
        word = NO_NAME.sub("_", ref.rpartition("/")[2])
        free = numbers.setdefault(word, numbered(word))
        names[ref] = next(name for name in free if name not in used)
        used.add(names[ref])
    return names


def numbered(name: str) -> Iterator[str]:
    """The name itself, then name_2, name_3 and so on."""
    yield name
    number = 2
    while True:
        yield f"{name}_{number}"
        number += 1


def _renamed(schema: Any, new: Mapping[str, str]) -> Any:
    """The schema, referring by the new names; without definitions of its own, which stand at the root."""
    if not isinstance(schema, Mapping):
        return schema
    return {
        keyword: _renamed_in(keyword, given, new) for keyword, given in schema.items() if keyword not in DEFINITIONS
    }


def _renamed_in(keyword: str, given: Any, new: Mapping[str, str]) -> Any:
    if keyword == "$ref":
        return new.get(given, given)
    if keyword not in INNER:
        return given
    if keyword == "properties":
        return {name: _renamed(inner, new) for name, inner in given.items()}
    return [_renamed(inner, new) for inner in given] if isinstance(given, list) else _renamed(given, new)


PLAIN: Final = re.compile(r"#|#/\$defs/[^/]*")
NO_NAME: Final = re.compile(r"[^A-Za-z0-9_.-]")
DEFINITIONS: Final = ("$defs", "definitions")
