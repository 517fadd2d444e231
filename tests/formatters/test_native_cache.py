"""native: where cache markers stand. A case is what is asked for; the answer is every place that carries one."""

from __future__ import annotations

from typing import Any

import pytest

from membrane_lite.formatters.base import BuildOptions, BuildResult
from membrane_lite.formatters.native import NativeFormatter
from membrane_lite.values.content import Block, RedactedThinking, Text, Thinking, ToolResultBlock, ToolUse
from membrane_lite.values.messages import Message
from membrane_lite.values.tools import Tool

SHORT, HOUR = {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}


def said(participant: str, *blocks: Block | str, marked: bool = False) -> Message:
    content = [Text(block) if isinstance(block, str) else block for block in blocks]
    return Message(participant, content, cache_breakpoint=marked)


def build(messages: list[Message], **options: Any) -> BuildResult:
    return NativeFormatter().build_messages(messages, BuildOptions(**{"prompt_caching": True, **options}))


def places(built: BuildResult) -> dict[str, dict[str, str]]:
    """What carries a marker, by its place, with the marker."""
    found: dict[str, dict[str, str]] = {}

    def look(content: Any, path: str) -> None:
        for index, block in enumerate(content if isinstance(content, list) else ()):
            if "cache_control" in block:
                found[f"{path}[{index}]"] = block["cache_control"]
            look(block.get("content"), f"{path}[{index}]")

    look(built.native_tools, "tools")
    look(built.system_content, "system")
    for index, message in enumerate(built.messages):
        look(message["content"], str(index))
    return found


TOOLS = [Tool("look"), Tool("find")]
ASKED: dict[str, tuple[list[Message], dict[str, Any], dict[str, dict[str, str]]]] = {
    "nothing, so system and tools are marked": (
        [said("Ann", "a")],
        {"system_prompt": "be kind", "tools": TOOLS},
        {"tools[1]": SHORT, "system[0]": SHORT},
    ),
    "nothing, and no tools": ([said("Ann", "a")], {"system_prompt": "be kind"}, {"system[0]": SHORT}),
    "nothing, and no system": ([said("Ann", "a")], {"tools": TOOLS}, {"tools[1]": SHORT}),
    "nothing, and an empty system": ([said("Ann", "a")], {"system_prompt": ""}, {}),
    "nothing, and a blank system": ([said("Ann", "a")], {"system_prompt": " \n"}, {}),
    "nothing, and a system of blocks": (
        [said("Ann", "a")],
        {"system_prompt": [Text("be"), Text("kind")]},
        {"system[1]": SHORT},
    ),
    "a breakpoint covers system and tools": (
        [said("Ann", "a", "b", marked=True), said("Claude", "c")],
        {"system_prompt": "be kind", "tools": TOOLS},
        {"0[1]": SHORT},
    ),
    "several breakpoints": (
        [said("Ann", "a", marked=True), said("Claude", "b", marked=True), said("Ann", "c", marked=True)],
        {},
        {"0[0]": SHORT, "1[0]": SHORT, "2[0]": SHORT},
    ),
    "a breakpoint on one of two merged messages": (
        [said("Ann", "a", marked=True), said("Bob", "b")],
        {},
        {"0[0]": SHORT},
    ),
    "an hour": (
        [said("Ann", "a")],
        {"system_prompt": "be kind", "tools": TOOLS, "cache_ttl": "1h"},
        {"tools[1]": HOUR, "system[0]": HOUR},
    ),
    "an hour at a breakpoint": ([said("Ann", "a", marked=True)], {"cache_ttl": "1h"}, {"0[0]": HOUR}),
    "a block's own marker": (
        [said("Ann", Text("a", cache_control=HOUR), "b")],
        {"system_prompt": "be kind", "tools": TOOLS},
        {"0[0]": HOUR},
    ),
    "a system block's own marker": (
        [said("Ann", "a")],
        {"system_prompt": [Text("be", cache_control=HOUR), Text("kind")]},
        {"system[0]": HOUR, "system[1]": SHORT},
    ),
    "a breakpoint before thinking": (
        [said("Ann", "q"), said("Claude", "a", Thinking("t"), RedactedThinking("d"), marked=True)],
        {},
        {"1[0]": SHORT},
    ),
    "a breakpoint after thinking": (
        [said("Ann", "q"), said("Claude", Thinking("t"), "a", marked=True)],
        {},
        {"1[1]": SHORT},
    ),
    "a breakpoint on nothing but thinking": (
        [said("Ann", "q"), said("Claude", Thinking("t"), marked=True)],
        {"system_prompt": "be kind"},
        {"system[0]": SHORT},
    ),
    "a breakpoint before what may not be sent": (
        [said("Ann", "q"), said("Claude", "a", Text("", raw_item={"type": "x"}, raw_format="f"), " \n", marked=True)],
        {},
        {"1[0]": SHORT},
    ),
    "a breakpoint on an empty message": (
        [said("Ann", "", marked=True), said("Ann", "a")],
        {"system_prompt": "be kind"},
        {"system[0]": SHORT},
    ),
    "a breakpoint before an empty text": ([said("Ann", "a", "", marked=True)], {}, {"0[0]": SHORT}),
    "a breakpoint on a call": (
        [said("Ann", "q"), said("Claude", "a", ToolUse("c1", "look"), marked=True)],
        {},
        {"1[1]": SHORT},
    ),
    "a breakpoint on a result": (
        [said("Ann", "q"), said("Claude", ToolUse("c1", "look")), said("Ann", ToolResultBlock("c1", "r"), marked=True)],
        {},
        {"2[0]": SHORT},
    ),
    "a marker within a result": (
        [
            said("Ann", "q"),
            said("Claude", ToolUse("c1", "look")),
            said("Ann", ToolResultBlock("c1", [Text("r", cache_control=SHORT)]), marked=True),
        ],
        {},
        {"2[0]": SHORT, "2[0][0]": SHORT},
    ),
    "a made-up result keeps the markers behind it": (
        [said("Ann", "q"), said("Claude", ToolUse("c1", "look")), said("Ann", "b", marked=True)],
        {},
        {"2[1]": SHORT},
    ),
    "a context prefix": (
        [said("Ann", "a")],
        {"context_prefix": "Once", "system_prompt": "be kind", "cache_ttl": "1h"},
        {"1[0]": HOUR},
    ),
    "six breakpoints, of which the deepest four are kept": (
        [said(name, "a", marked=True) for name in ("Ann", "Claude") * 3],
        {},
        {f"{index}[0]": SHORT for index in (2, 3, 4, 5)},
    ),
    "a prefix and a system of its own before four breakpoints": (
        [said(name, "a", marked=True) for name in ("Ann", "Claude") * 2],
        {"context_prefix": "Once", "system_prompt": [Text("be kind", cache_control=HOUR)]},
        {f"{index}[0]": SHORT for index in (2, 3, 4, 5)},
    ),
}


@pytest.mark.parametrize("messages, options, marked", ASKED.values(), ids=ASKED.keys())
def test_where_markers_stand(messages: list[Message], options: dict[str, Any], marked: dict[str, Any]) -> None:
    built = build(messages, **options)
    assert places(built) == marked
    assert built.cache_markers_applied == len(marked)


@pytest.mark.parametrize("messages, options, marked", ASKED.values(), ids=ASKED.keys())
def test_without_caching_there_are_none(messages: list[Message], options: dict[str, Any], marked: Any) -> None:
    built = build(messages, **{**options, "prompt_caching": False})
    assert (places(built), built.cache_markers_applied) == ({}, 0)


def test_a_breakpoint_leaves_the_system_a_string() -> None:
    assert build([said("Ann", "a", marked=True)], system_prompt="be kind").system_content == "be kind"
    assert build([said("Ann", "a")], system_prompt="be kind").system_content == [
        {"type": "text", "text": "be kind", "cache_control": SHORT}
    ]


MARKING: dict[str, tuple[int, dict[str, dict[str, str]]]] = {
    "before the first message there is nothing to mark": (0, {"system[0]": SHORT}),
    "the message before the marked one": (1, {"0[0]": HOUR}),
    "an answer before the marked one": (2, {"1[0]": HOUR}),
}


@pytest.mark.parametrize("marked_index, marked", MARKING.values(), ids=MARKING.keys())
def test_a_function_that_says_what_is_new(marked_index: int, marked: dict[str, Any]) -> None:
    built = build(
        [said("Ann", "a"), said("Claude", "b", Thinking("t")), said("Ann", "c")],
        has_cache_marker=lambda message, index: index == marked_index,
        system_prompt="be kind",
        cache_ttl="1h" if marked_index else None,
    )
    assert places(built) == marked


def test_it_is_asked_of_every_message() -> None:
    asked: list[tuple[str, int]] = []

    def note(message: Message, index: int) -> bool:
        asked.append((message.participant, index))
        return False

    build([said("Ann", ""), said("Claude", "b")], has_cache_marker=note)
    assert asked == [("Ann", 0), ("Claude", 1)]
