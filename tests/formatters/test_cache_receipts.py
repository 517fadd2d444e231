"""cache_receipts: the hashes of a body, by the texts they are taken of."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest

from membrane_lite.errors import MembraneError
from membrane_lite.formatters.cache_receipts import CacheWireReceipt, MarkerReceipt, receipt_of

MARK = {"cache_control": {"type": "ephemeral"}}
HOUR = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}


def hashed(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def test_a_whole_receipt() -> None:
    body = {
        "model": "m",
        "system": [{"type": "text", "text": "be kind", **HOUR}],
        "tools": [{"name": "t", "input_schema": {"type": "object"}}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi", **MARK}]}],
    }
    tool = '{"content":{"input_schema":{"type":"object"},"name":"t"},"index":0,"surface":"tools"}'
    system = '{"content":{"text":"be kind","type":"text"},"index":0,"surface":"system"}'
    asked = '{"block":0,"content":{"text":"hi","type":"text"},"index":0,"role":"user","surface":"messages"}'
    whole = (
        '{"messages":[{"content":[{"cache_control":{"type":"ephemeral"},"text":"hi","type":"text"}],"role":"user"}],'
        '"model":"m",'
        '"system":[{"cache_control":{"ttl":"1h","type":"ephemeral"},"text":"be kind","type":"text"}],'
        '"tools":[{"input_schema":{"type":"object"},"name":"t"}]}'
    )
    assert receipt_of(body) == CacheWireReceipt(
        hashed(whole),
        [
            # 45 characters of the tool, 32 of the system text, 27 of the message: four to a token
            MarkerReceipt(1, hashed(f"[{tool},{system}]"), 20),
            MarkerReceipt(2, hashed(f"[{tool},{system},{asked}]"), 26),
        ],
    )
    assert receipt_of(body).to_dict()["markers"][0] == {
        "ordinal": 1,
        "prefix_hash": hashed(f"[{tool},{system}]"),
        "estimated_offset": 20,
    }


def body(*texts: Any, **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": list(texts)}], **more}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


RESULT = {"type": "tool_result", "tool_use_id": "c1"}
# A body -> the ordinals and offsets of its markers.
MARKERS: dict[str, tuple[Any, list[tuple[int, int]]]] = {
    "none": (body(text("a")), []),
    "a body that is none": (None, []),
    "a body of another format": ({"contents": [{"parts": [{"text": "a"}]}]}, []),
    "a text before the marked block is one unit": (
        {"system": "be kind", "messages": [{"role": "user", "content": "hi"}, *body(text("a", **MARK))["messages"]]},
        [(1, 10)],  # 9 + 4 + 26 characters
    ),
    "one within a result marks the result": (
        body({**RESULT, "content": [text("a", **MARK)]}, text("b", **MARK)),
        [(1, 20), (2, 27)],  # 79 characters, and 26
    ),
    "two within one result mark it once": (
        body({**RESULT, **MARK, "content": [text("a", **MARK)]}),
        [(1, 20)],
    ),
    "one of the body stands on the last block": (body(text("a"), text("b"), **MARK), [(1, 13)]),
}


@pytest.mark.parametrize("given, markers", MARKERS.values(), ids=MARKERS.keys())
def test_which_units_are_marked(given: Any, markers: list[tuple[int, int]]) -> None:
    assert [(marker.ordinal, marker.estimated_offset) for marker in receipt_of(given).markers] == markers


def prefix(given: Any) -> str:
    return receipt_of(given).markers[-1].prefix_hash


SAME = {
    "the order of keys": (body(text("a", **MARK)), body({**MARK, "text": "a", "type": "text"})),
    "the lifetime of a marker": (body(text("a", **MARK)), body(text("a", **HOUR))),
    "a marker that is new": (body(text("a"), text("b", **MARK)), body(text("a", **MARK), text("b", **MARK))),
    "what follows": (body(text("a", **MARK)), body(text("a", **MARK), text("b"))),
    "what is no part of the prefix": (body(text("a", **MARK)), body(text("a", **MARK), max_tokens=5)),
    "half a surrogate pair": (body(text("a\ud800", **MARK)), body(text("a\ufffd", **MARK))),
}
OTHER = {
    "a text": (body(text("a", **MARK)), body(text("b", **MARK))),
    "a tool": (body(text("a", **MARK)), body(text("a", **MARK), tools=[{"name": "t"}])),
    "a block before": (body(text("a", **MARK)), body(text("b"), text("a", **MARK))),
    "a role": (body(text("a", **MARK)), {"messages": [{"role": "assistant", "content": [text("a", **MARK)]}]}),
    "how blocks are shared out": (
        body(text("a"), text("b", **MARK)),
        {"messages": [*body(text("a"))["messages"], *body(text("b", **MARK))["messages"]]},
    ),
    "the place of a text": (body(text("a", **MARK), system="x"), body(text("a", **MARK), tools=["x"])),
}


@pytest.mark.parametrize("one, other", SAME.values(), ids=SAME.keys())
def test_what_makes_no_other_prefix(one: Any, other: Any) -> None:
    assert prefix(one) == prefix(other)


@pytest.mark.parametrize("one, other", OTHER.values(), ids=OTHER.keys())
def test_what_makes_another_prefix(one: Any, other: Any) -> None:
    assert prefix(one) != prefix(other)


def test_a_request_hash_is_of_markers_too() -> None:
    hashes = {receipt_of(given).request_hash for given in (body(text("a")), body(text("a", **MARK)))}
    assert len(hashes) == 2


def test_the_body_is_not_changed() -> None:
    given = body({**RESULT, **MARK, "content": [text("a", **MARK)]})
    before = repr(given)
    receipt_of(given)
    assert repr(given) == before


def test_what_is_no_json_has_no_receipt() -> None:
    with pytest.raises(MembraneError) as raised:
        receipt_of({"temperature": float("nan")})
    assert raised.value.type == "invalid_request"
