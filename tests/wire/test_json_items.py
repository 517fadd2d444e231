"""json_items: the objects of a JSON array, as soon as each is whole, wherever the network cuts."""

from __future__ import annotations

import pytest

from membrane_lite.errors import MembraneError
from membrane_lite.wire import json_items
from membrane_lite.wire.json_items import ItemReader, iter_objects

ARRAYS: dict[str, tuple[str, list[str]]] = {
    "an empty array": ("[]", []),
    "one object": ('[{"a": 1}]', ['{"a": 1}']),
    "as Gemini sets them": ('[{\n  "a": 1\n}\n,\r\n{\n  "b": 2\n}\n]\n', ['{\n  "a": 1\n}', '{\n  "b": 2\n}']),
    "objects in objects": ('[{"a": {"b": {}}},{}]', ['{"a": {"b": {}}}', "{}"]),
    "braces in strings": ('[{"a": "}{"},{"{": 1}]', ['{"a": "}{"}', '{"{": 1}']),
    "quotation marks in strings": (r'[{"a": "\"}"},{"b": "\\"}]', [r'{"a": "\"}"}', r'{"b": "\\"}']),
    "a backslash before a brace": (r'[{"a": "\\}\u007b"}]', [r'{"a": "\\}\u007b"}']),
    "not ASCII": ('[{"a": "Grüße, 世界"}]', ['{"a": "Grüße, 世界"}']),
    "an array in an object": ('[{"a": [{}, {}]}]', ['{"a": [{}, {}]}']),
    "an object that does not end": ('[{"a": 1},{"b": ', ['{"a": 1}']),
    "a string that does not end": ('[{"a": 1},{"b": "}]', ['{"a": 1}']),
    "what is no object is passed over": ('[1, "}{", null, {"a": 1}, }]', ['{"a": 1}']),
}


@pytest.mark.parametrize("text, objects", ARRAYS.values(), ids=ARRAYS.keys())
def test_the_objects_of_an_array(text: str, objects: list[str]) -> None:
    body = text.encode()
    for size in (len(body), 1, 2, 7):
        assert [*iter_objects(body[at : at + size] for at in range(0, len(body), size))] == objects
    for at in range(len(body)):
        assert [*iter_objects([body[:at], b"", body[at:]])] == objects


def test_an_object_is_given_with_its_last_byte() -> None:
    reader = ItemReader()
    assert [*reader.feed(b'[{"a": 1')] == []
    assert [*reader.feed(b"}")] == ['{"a": 1}']


def test_the_longest_object() -> None:
    reader = ItemReader()
    half = b'[{"a": "' + b"x" * (json_items.LONGEST_ITEM // 2)
    assert [*reader.feed(half)] == []
    with pytest.raises(MembraneError) as raised:
        list(reader.feed(half))
    assert (raised.value.type, raised.value.message) == (
        "server",
        "an item of the answer's array is longer than 67108864 bytes; expected shorter ones",
    )
