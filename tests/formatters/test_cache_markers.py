"""cache_markers: which blocks may carry one, which four are kept, and how many a body has."""

from __future__ import annotations

from typing import Any

import pytest

from membrane_lite.formatters.cache_markers import (
    MOST_MARKERS,
    bare,
    clamp,
    clamped,
    count,
    has_marker,
    last_cacheable_block_index,
    mark_last,
    marker,
)

TEXT = {"type": "text", "text": "a"}
THINKING, REDACTED = {"type": "thinking", "thinking": "t"}, {"type": "redacted_thinking", "data": "d"}
CALL = {"type": "tool_use", "id": "c1", "name": "look", "input": {}}
TOOL = {"name": "look", "description": "", "input_schema": {}}
MARK = {"cache_control": {"type": "ephemeral"}}

LAST: dict[str, tuple[list[dict[str, Any]], int]] = {
    "nothing": ([], -1),
    "text": ([TEXT], 0),
    "thinking behind it": ([TEXT, THINKING, REDACTED], 0),
    "thinking alone": ([THINKING, REDACTED], -1),
    "a call behind thinking": ([THINKING, CALL], 1),
    "a tool has no type": ([TOOL, TOOL], 1),
    "blank text behind it": ([TEXT, {"type": "text", "text": " \n"}, {"type": "text", "text": ""}], 0),
    "another provider's item behind it": ([TEXT, {"type": "raw_item", "raw_item": {}}], 0),
}


@pytest.mark.parametrize("blocks, index", LAST.values(), ids=LAST.keys())
def test_the_last_block_that_may_carry_a_marker(blocks: list[dict[str, Any]], index: int) -> None:
    assert last_cacheable_block_index(blocks) == index


@pytest.mark.parametrize("blocks, index", LAST.values(), ids=LAST.keys())
def test_it_is_the_one_that_is_marked(blocks: list[dict[str, Any]], index: int) -> None:
    marked = list(blocks)
    mark_last(marked, None)
    assert [place for place, block in enumerate(marked) if "cache_control" in block] == ([index] if index >= 0 else [])
    assert not has_marker([{"content": blocks}])  # the block that was given is not changed


def test_a_marker_and_its_lifetime() -> None:
    assert marker(None) == {"type": "ephemeral"}
    assert marker("1h") == {"type": "ephemeral", "ttl": "1h"}
    blocks = [{**TEXT, **MARK}]
    mark_last(blocks, "1h")
    assert blocks == [{**TEXT, "cache_control": {"type": "ephemeral", "ttl": "1h"}}]


def marked(*names: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": name, **MARK} for name in names]


def kept(*parts: Any) -> list[str]:
    """The names of the blocks that still carry a marker."""
    names: list[str] = []
    for block in parts:
        if isinstance(block, list):
            names += kept(*block)
        elif isinstance(block, dict):
            if "cache_control" in block:
                names.append(block.get("text") or block.get("name") or block["type"])
            names += kept(block.get("content"))
    return names


CLAMPED: dict[str, tuple[Any, Any, list[dict[str, Any]], list[str]]] = {
    "four are four": (None, None, [{"content": marked("a", "b", "c", "d")}], ["a", "b", "c", "d"]),
    "of five the first goes": (
        None,
        None,
        [{"content": marked("a", "b")}, {"content": marked("c", "d", "e")}],
        ["b", "c", "d", "e"],
    ),
    "tools stand before system, system before messages": (
        [{**TOOL, **MARK}],
        marked("s1", "s2"),
        [{"content": marked("a", "b", "c")}],
        ["s2", "a", "b", "c"],
    ),
    "a system that is a string": (None, "be kind", [{"content": marked("a")}], ["a"]),
    "a message that is a string": (None, None, [{"content": "hi"}, {"content": marked("a")}], ["a"]),
    "a result before what stands within it": (
        None,
        None,
        [{"content": [{"type": "tool_result", **MARK, "content": marked("a", "b", "c", "d")}]}],
        ["a", "b", "c", "d"],
    ),
    "thinking may carry none": (
        None,
        None,
        [{"content": [{**THINKING, **MARK}, {**REDACTED, **MARK}, *marked("a", "b", "c", "d")]}],
        ["a", "b", "c", "d"],
    ),
    "blank text may carry none": (None, None, [{"content": marked(" ", "a", "b", "c", "d")}], ["a", "b", "c", "d"]),
}


@pytest.mark.parametrize("tools, system, messages, left", CLAMPED.values(), ids=CLAMPED.keys())
def test_the_four_deepest_are_kept(tools: Any, system: Any, messages: Any, left: list[str]) -> None:
    clamp(tools, system, messages)
    assert kept(tools, system, messages) == left


def test_none_are_kept_where_none_may_be() -> None:
    tools, system, messages = [{**TOOL, **MARK}], marked("s"), [{"content": marked("a")}]
    clamp(tools, system, messages, most=0)
    assert kept(tools, system, messages) == []
    assert MOST_MARKERS == 4


DEEP: Any = marked("deep")
for _ in range(3):
    DEEP = [{"type": "tool_result", "content": DEEP}]

COUNTS: dict[str, tuple[Any, int]] = {
    "no body": (None, 0),
    "an empty body": ({}, 0),
    "one of the body": ({"cache_control": {"type": "ephemeral"}, "messages": [{"content": marked("a")}]}, 2),
    "a list": ([], 0),
    "everything": (
        {
            "tools": [{**TOOL, **MARK}],
            "system": marked("s"),
            "messages": [{"content": marked("a", "b")}, {"content": "x"}],
        },
        4,
    ),
    "four levels deep": ({"messages": [{"content": DEEP}]}, 1),
    "deeper is not looked at": ({"messages": [{"content": [{"type": "x", "content": DEEP}]}]}, 0),
    "messages of another format": ({"messages": ["hi", None, {"role": "user", "content": [{"text": "x"}, "y"]}]}, 0),
}


@pytest.mark.parametrize("body, markers", COUNTS.values(), ids=COUNTS.keys())
def test_how_many_a_body_has(body: Any, markers: int) -> None:
    assert count(body) == markers


def test_a_message_that_has_one() -> None:
    assert has_marker([{"content": [TEXT]}, {"content": marked("a")}]) is True
    assert has_marker([{"content": [TEXT]}]) is False


def nested(levels: int, innermost: Any) -> Any:
    """A tool result in a tool result, `levels` of them, around `innermost`."""
    for _ in range(levels):
        innermost = [{"type": "tool_result", "content": innermost}]
    return innermost


def messages_of(*contents: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": content} for content in contents]}


HOUR = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
BODIES: dict[str, tuple[Any, Any]] = {
    "the shallowest of five goes, its block stays": (
        messages_of(marked("a", "b"), marked("c", "d", "e")),
        messages_of([{"type": "text", "text": "a"}, *marked("b")], marked("c", "d", "e")),
    ),
    "tools before system before messages": (
        {"tools": [{**TOOL, **MARK}], "system": marked("s"), **messages_of(marked("a", "b", "c", "d"))},
        {"tools": [TOOL], "system": [{"type": "text", "text": "s"}], **messages_of(marked("a", "b", "c", "d"))},
    ),
    "lifetimes make no difference": (
        messages_of([{**TEXT, **HOUR}], marked("b", "c", "d", "e")),
        messages_of([TEXT], marked("b", "c", "d", "e")),
    ),
    "a result and what stands within it": (
        messages_of([{"type": "tool_result", **MARK, "content": marked("a", "b", "c", "d")}]),
        messages_of([{"type": "tool_result", "content": marked("a", "b", "c", "d")}]),
    ),
    "the fourth level counts": (
        messages_of(nested(3, marked("deep")), marked("a", "b", "c", "d")),
        messages_of(nested(3, [{"type": "text", "text": "deep"}]), marked("a", "b", "c", "d")),
    ),
    "the fifth does not": (
        messages_of(nested(4, marked("deep")), marked("a", "b", "c", "d", "e")),
        messages_of(nested(4, marked("deep")), [{"type": "text", "text": "a"}, *marked("b", "c", "d", "e")]),
    ),
    "thinking keeps none, though there is room": (
        messages_of([{**THINKING, **MARK}, {**REDACTED, **MARK}, *marked("a")]),
        messages_of([THINKING, REDACTED, *marked("a")]),
    ),
    "blank text, and text that is none, keep none": (
        messages_of([{"type": "text", "text": " ", **MARK}, {"type": "text", "text": None, **MARK}, *marked("a")]),
        messages_of([{"type": "text", "text": " "}, {"type": "text", "text": None}, *marked("a")]),
    ),
    "a marker of the body takes a place": (
        {**messages_of(marked("a", "b", "c", "d")), **MARK},
        {**messages_of([{"type": "text", "text": "a"}, *marked("b", "c", "d")]), **MARK},
    ),
}
KEPT: dict[str, Any] = {
    "four": messages_of(marked("a", "b", "c", "d")),
    "three and one of the body": {**messages_of(marked("a", "b", "c")), **MARK},
    "none": messages_of([TEXT], "hi"),
    "no messages": {"contents": [{"parts": [{"text": "a"}]}]},
    "messages that are none": {"messages": 5, "tools": "x", "system": None},
}


@pytest.mark.parametrize("body, left", BODIES.values(), ids=BODIES.keys())
def test_a_body_with_too_many(body: Any, left: Any) -> None:
    before = repr(body)
    assert repr(clamped(body)) == repr(left)
    assert repr(body) == before  # the one that was given is not changed


@pytest.mark.parametrize("body", KEPT.values(), ids=KEPT.keys())
def test_a_body_with_no_more_than_may_be_is_the_same_one(body: Any) -> None:
    assert clamped(body) is body


def test_one_block_that_stands_in_two_places_is_marked_in_one_of_them() -> None:
    block = marked("a")[0]
    assert clamped(messages_of([block], [block], marked("b", "c", "d")))["messages"][:2] == [
        {"role": "user", "content": [{"type": "text", "text": "a"}]},
        {"role": "user", "content": [block]},
    ]


def test_a_block_as_the_cache_knows_it() -> None:
    result = {"type": "tool_result", "tool_use_id": "c", **MARK, "content": [*marked("a"), TEXT]}
    schema = {"name": "t", "input_schema": {"properties": {"cache_control": {}}}, **MARK}
    assert bare(result) == {"type": "tool_result", "tool_use_id": "c", "content": [TEXT, TEXT]}
    assert bare(schema) == {"name": "t", "input_schema": {"properties": {"cache_control": {}}}}
    assert bare("hi") == "hi"
