"""The floating marker: which blocks of each round of a tool loop carry one. A case is a turn, told round by round."""

from __future__ import annotations

from typing import Any

import pytest

from membrane_lite.formatters.base import BuildSettings
from membrane_lite.formatters.native import NativeConversation, NativeFormatter
from membrane_lite.formatters.openai_responses import OpenAIResponsesFormatter
from membrane_lite.values.content import Image, Text, Thinking, ToolUse
from membrane_lite.values.messages import Message
from membrane_lite.values.reader import read_request
from membrane_lite.values.requests import ProviderRequest
from membrane_lite.values.tools import ToolResult

SHORT, HOUR = {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}
ASKED: Any = {"messages": [{"participant": "Ann", "content": "a"}], "config": {"model": "m"}}
CACHED: Any = {**ASKED, "system": "be kind", "tools": [{"name": "look"}]}
SYSTEM_AND_TOOLS = {"tools[0]": SHORT, "system[0]": SHORT}


def conversation(more: dict[str, Any], formatter: Any = None, **settings: Any) -> NativeConversation:
    request = read_request({**CACHED, **more})
    made = (formatter or NativeFormatter()).conversation(request, BuildSettings(**settings))
    assert isinstance(made, NativeConversation)
    return made


def answered(turn: NativeConversation, number: int, *injected: Message, content: Any = "r", call: Any = None) -> None:
    """The model called a tool, and its result is here."""
    made = f"c{number}"
    turn.add_results([ToolUse(made, "look")], [ToolResult(call or made, content)], injected)


def places(built: ProviderRequest) -> dict[str, dict[str, str]]:
    """What carries a marker, by its place, with the marker."""
    contents = {"tools": built.tools, "system": built.system}
    contents.update({str(index): message["content"] for index, message in enumerate(built.messages)})
    return {
        f"{name}[{index}]": block["cache_control"]
        for name, blocks in contents.items()
        for index, block in enumerate(blocks if isinstance(blocks, list) else ())
        if "cache_control" in block
    }


def rounds(more: dict[str, Any], count: int = 4) -> list[dict[str, dict[str, str]]]:
    turn, found = conversation(more), []
    for number in range(count):
        found.append(places(turn.build()))
        answered(turn, number)
    return found


def said(*texts: str, marked: bool = False, control: Any = None) -> dict[str, Any]:
    content = [{"type": "text", "text": text, **({"cache_control": control} if control else {})} for text in texts]
    return {"participant": "Ann", "content": content, "cache_breakpoint": marked}


# Messages: 0 the question, 1 and 2 the first call and its result, 3 and 4 the second, 5 and 6 the third.
TURNS: dict[str, tuple[dict[str, Any], list[dict[str, dict[str, str]]]]] = {
    "the newest result, and the one before": (
        {},
        [
            SYSTEM_AND_TOOLS,
            {**SYSTEM_AND_TOOLS, "2[0]": SHORT},
            {**SYSTEM_AND_TOOLS, "2[0]": SHORT, "4[0]": SHORT},
            {**SYSTEM_AND_TOOLS, "4[0]": SHORT, "6[0]": SHORT},
        ],
    ),
    "no system and no tools to mark": (
        {"system": None, "tools": None},
        [{}, {"2[0]": SHORT}, {"2[0]": SHORT, "4[0]": SHORT}, {"4[0]": SHORT, "6[0]": SHORT}],
    ),
    "an hour": (
        {"cache_ttl": "1h", "tools": None},
        [
            {"system[0]": HOUR},
            {"system[0]": HOUR, "2[0]": HOUR},
            {"system[0]": HOUR, "2[0]": HOUR, "4[0]": HOUR},
            {"system[0]": HOUR, "4[0]": HOUR, "6[0]": HOUR},
        ],
    ),
    "one place free: only the newest": (
        {"messages": [said("a", "b", "c", control=SHORT)]},
        [
            {"0[0]": SHORT, "0[1]": SHORT, "0[2]": SHORT},
            {"0[0]": SHORT, "0[1]": SHORT, "0[2]": SHORT, "2[0]": SHORT},
            {"0[0]": SHORT, "0[1]": SHORT, "0[2]": SHORT, "4[0]": SHORT},
            {"0[0]": SHORT, "0[1]": SHORT, "0[2]": SHORT, "6[0]": SHORT},
        ],
    ),
    "no place free: none": (
        {"messages": [said("a", "b", "c", "d", control=SHORT)]},
        [{f"0[{index}]": SHORT for index in range(4)}] * 4,
    ),
    "turned off": ({"floating_cache_marker": False}, [SYSTEM_AND_TOOLS] * 4),
    "turned on": ({"floating_cache_marker": True, "tools": None, "system": None}, [{}, {"2[0]": SHORT}]),
    "caching turned off": ({"prompt_caching": False}, [{}] * 4),
    "the provider is asked to mark the newest by itself": (
        {"provider_params": {"cache_control": HOUR}},
        [SYSTEM_AND_TOOLS] * 4,
    ),
    "five minutes stand before it, so it lasts no hour": (
        {"cache_ttl": "1h", "messages": [said("a", control=SHORT)]},
        [{"0[0]": SHORT}, {"0[0]": SHORT, "2[0]": SHORT}, {"0[0]": SHORT, "2[0]": SHORT, "4[0]": SHORT}],
    ),
    "an hour stands before it": (
        {"messages": [said("a", control=HOUR)]},
        [{"0[0]": HOUR}, {"0[0]": HOUR, "2[0]": SHORT}, {"0[0]": HOUR, "2[0]": SHORT, "4[0]": SHORT}],
    ),
}


@pytest.mark.parametrize("more, marked", TURNS.values(), ids=TURNS.keys())
def test_where_it_stands(more: dict[str, Any], marked: list[dict[str, Any]]) -> None:
    assert rounds(more, len(marked)) == marked


def test_a_message_put_in_is_the_newest() -> None:
    turn = conversation({"tools": None, "system": None})
    turn.build()
    answered(turn, 0, Message("Bob", [Text("b"), Text(" ")]), Message("Claude", [Text("c"), Thinking("t")]))
    assert places(turn.build()) == {"3[0]": SHORT}


def test_a_marker_of_the_newest_block_s_own_stays_and_takes_no_place() -> None:
    turn = conversation({"messages": [said("a", "b", control=HOUR)]})
    turn.build()
    answered(turn, 0)
    first = {"0[0]": HOUR, "0[1]": HOUR, "2[0]": SHORT}
    assert places(turn.build()) == first
    answered(turn, 1, Message("Bob", [Text("b", cache_control=SHORT)]))
    assert places(turn.build()) == {**first, "4[1]": SHORT}


def test_one_of_five_minutes_is_not_kept_before_one_of_an_hour() -> None:
    turn = conversation({"tools": None, "system": None})
    turn.build()
    answered(turn, 0)
    assert places(turn.build()) == {"2[0]": SHORT}
    answered(turn, 1, Message("Bob", [Text("b", cache_control=HOUR)]))
    assert places(turn.build()) == {"4[1]": HOUR}


def test_a_round_that_is_built_again_is_marked_as_it_was() -> None:
    turn = conversation({})
    turn.build()
    assert places(turn.build()) == SYSTEM_AND_TOOLS
    for number in (0, 1):
        answered(turn, number)
        turn.build()
    assert places(turn.build()) == {**SYSTEM_AND_TOOLS, "2[0]": SHORT, "4[0]": SHORT}


def test_a_turn_that_begins_with_the_assistant_s_own_words_has_one_too() -> None:
    turn = conversation({"messages": [said("a"), {"participant": "Claude", "content": "b"}], "tools": None})
    assert len(turn.build().messages) == 2
    answered(turn, 0)
    built = turn.build()  # the call joins the message that was sent
    assert (len(built.messages), places(built)) == (3, {"system[0]": SHORT, "2[0]": SHORT})


# A beginning that is not what was sent


def test_a_repair_that_rewrites_what_was_sent_leaves_a_round_without_one() -> None:
    history = [said("a"), {"participant": "Claude", "content": [{"type": "tool_use", "id": "old", "name": "look"}]}]
    turn = conversation({"messages": [*history, said("b")], "tools": None, "system": None})
    assert turn.build().messages[2]["content"][0]["content"] == "[pending]"
    answered(turn, 0, call="old")  # its result comes now, and stands where [pending] stood
    built = turn.build()
    assert (built.messages[2]["content"][0]["content"], places(built)) == ("r", {})
    answered(turn, 1)
    assert places(turn.build()) == {"6[0]": SHORT}


def test_so_does_an_image_that_is_shed() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo" * 100}}
    more = {"messages": [{"participant": "Ann", "content": [image]}], "shed_oversize_images": True}
    turn = conversation({**more, "tools": None, "system": None}, max_request_bytes=2_000)
    assert turn.build().messages[0]["content"][0]["type"] == "image"
    answered(turn, 0, content=[Image(image["source"])])
    built = turn.build()
    assert (built.messages[0]["content"][0]["type"], places(built)) == ("text", {})


def test_a_hook_that_changes_the_list_of_messages_changes_nothing_of_it() -> None:
    turn = conversation({"tools": None, "system": None})
    turn.build().messages[-1]["content"].append({"type": "text", "text": "of a hook"})
    answered(turn, 0)
    assert places(turn.build()) == {"2[0]": SHORT}


def test_input_items_carry_none() -> None:
    turn = conversation({}, OpenAIResponsesFormatter())
    turn.build()
    answered(turn, 0)
    assert "cache_control" not in repr(turn.build().messages)
