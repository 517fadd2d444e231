"""json_pieces: values named by their places become the text of one object."""

from __future__ import annotations

import json
from typing import Any

import pytest

from membrane_lite.wire.json_pieces import ObjectText, Step, steps_of

PATHS: dict[str, tuple[Step, ...]] = {
    "$.city": ("city",),
    "$.a.b[0].c": ("a", "b", 0, "c"),
    "$['a b'][12]": ("a b", 12),
    '$["a.b"]': ("a.b",),
    "$['it\\'s \"so\"']": ('it\'s "so"',),
    "$.straße": ("straße",),
}


@pytest.mark.parametrize("path, steps", PATHS.items(), ids=PATHS.keys())
def test_the_steps_of_a_path(path: str, steps: tuple[Step, ...]) -> None:
    assert steps_of(path) == steps


@pytest.mark.parametrize("path", ["", "$", "city", "$.", "$.a[", "$.a[x]", "$.a b]", "$['a"])
def test_what_is_no_path(path: str) -> None:
    with pytest.raises(ValueError, match="is no path to a value"):
        steps_of(path)


TEXTS: dict[str, tuple[list[tuple[str, Any, bool]], list[str]]] = {
    "nothing": ([], ["{", "}"]),
    "a string in pieces": (
        [("$.a", "Bo", True), ("$.a", "st\non", True), ("$.a", "", False)],
        ["{", '"a":"Bo', "st\\non", '"', "}"],
    ),
    "a string that is not said to end": ([("$.a", "x", True), ("$.b", 1, False)], ["{", '"a":"x', '","b":1', "}"]),
    "other values": (
        [("$.a", 1.5, False), ("$.b", True, False), ("$.c", None, False)],
        ["{", '"a":1.5', ',"b":true', ',"c":null', "}"],
    ),
    "objects and arrays": (
        [("$.a.b", "x", False), ("$.a.c[0]", 1, False), ("$.a.c[1]", 2, False), ("$.d[0].e", 3, False)],
        ["{", '"a":{"b":"x"', ',"c":[1', ",2", ']},"d":[{"e":3', "}]}"],
    ),
}


@pytest.mark.parametrize("values, pieces", TEXTS.values(), ids=TEXTS.keys())
def test_the_text_grows_with_each_value(values: list[tuple[str, Any, bool]], pieces: list[str]) -> None:
    text = ObjectText()
    given = [text.begin()]
    given += [text.add(steps_of(path), value, continues=continues) for path, value, continues in values]
    given += [text.end()]
    assert given == pieces
    assert isinstance(json.loads("".join(given)), dict)


WRONG = {
    "a place comes twice": ["$.a", "$.a"],
    "an object that was left": ["$.a.b", "$.c", "$.a.d"],
    "an index in an object": ["$.a", "$[0]"],
    "a name in an array": ["$.a[0]", "$.a.b"],
}


@pytest.mark.parametrize("paths", WRONG.values(), ids=WRONG.keys())
def test_a_place_that_cannot_be_the_next(paths: list[str]) -> None:
    text = ObjectText()
    text.begin()
    with pytest.raises(ValueError, match="is not the place of the next value"):
        for path in paths:
            text.add(steps_of(path), 1, continues=False)
