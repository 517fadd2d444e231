"""messages, content, responses: small questions that a value answers about itself."""

from __future__ import annotations

from typing import Any

import pytest

from membrane_lite.values import content
from membrane_lite.values.content import (
    Audio,
    Block,
    Document,
    GeneratedImage,
    Image,
    RedactedThinking,
    Text,
    Thinking,
    ToolResultBlock,
    ToolUse,
    Video,
    joined_text,
)
from membrane_lite.values.messages import (
    Message,
    extract_text,
    has_media,
    has_tool_use,
    text_message,
    user_side_name,
)
from membrane_lite.values.responses import (
    AbortedResponse,
    CacheDetails,
    Details,
    ModelDetails,
    Response,
    StopDetails,
    Timing,
    Usage,
    is_aborted_response,
)
from membrane_lite.values.tools import ToolCall, ToolResult, call_of, result_block

URL = {"type": "url", "url": "https://x.org/a"}
BLOCKS: dict[str, Block] = {
    "text": Text("x"),
    "image": Image(URL),
    "document": Document(URL),
    "audio": Audio(URL),
    "video": Video(URL),
    "generated_image": GeneratedImage(url="u"),
    "thinking": Thinking("t"),
    "redacted_thinking": RedactedThinking("d"),
    "tool_use": ToolUse("c1", "look"),
    "tool_result": ToolResultBlock("c1", "r"),
}


@pytest.mark.parametrize("word", BLOCKS)
def test_a_block_is_told_by_its_type(word: str) -> None:
    is_of_type = getattr(content, f"is_{word}")
    assert BLOCKS[word].type == word
    assert [name for name, block in BLOCKS.items() if is_of_type(block)] == [word]


def test_media_are_what_somebody_sent() -> None:
    assert [name for name, block in BLOCKS.items() if content.is_media(block)] == [
        "image",
        "document",
        "audio",
        "video",
    ]


CARRIERS = {
    "empty text with an item": (Text("", raw_item={"type": "x"}), True),
    "empty text": (Text(""), False),
    "text with an item": (Text("x", raw_item={"type": "x"}), False),
    "white space with an item": (Text(" ", raw_item={"type": "x"}), False),
}


@pytest.mark.parametrize("block, is_carrier", CARRIERS.values(), ids=CARRIERS.keys())
def test_a_carrier_is_all_item(block: Text, is_carrier: bool) -> None:
    assert block.is_carrier is is_carrier


def test_text_of_a_message_and_of_blocks() -> None:
    message = Message("Ann", [Text("a"), Image(URL), Thinking("no"), Text("b")])
    assert (extract_text(message), joined_text(message.content)) == ("a\nb", "ab")
    assert text_message("Ann", "hi", {"source_id": "1"}) == Message("Ann", [Text("hi")], {"source_id": "1"})


@pytest.mark.parametrize("word", BLOCKS)
def test_what_a_message_has(word: str) -> None:
    message = Message("Ann", [Text("a"), BLOCKS[word]])
    assert has_media(message) is (word in ("image", "document", "audio", "video"))
    assert has_tool_use(message) is (word == "tool_use")


def test_the_name_of_the_user_side() -> None:
    assert (user_side_name("Claude"), user_side_name("Bot")) == ("User", "user")


def response(*blocks: Block, assistant: str = "Claude") -> Response:
    details = Details(StopDetails("end_turn"), Usage(), Timing(), ModelDetails("m", "m", "p"), CacheDetails())
    return Response(list(blocks), "end_turn", Usage(), details, assistant_participant=assistant)


def test_the_text_of_a_response_is_what_is_visible() -> None:
    assert response(Thinking("no"), Text("a"), ToolUse("c1", "look"), Text("b")).text == "ab"
    assert response().text == ""


CALL, RESULT, MORE = ToolUse("c1", "look"), ToolResultBlock("c1", "r"), ToolResultBlock("c2", "s")
TURNS: dict[str, tuple[Response, list[Any]]] = {
    "nothing was said": (response(), []),
    "one turn": (response(Thinking("t"), Text("a")), [Message("Claude", [Thinking("t"), Text("a")])]),
    "a call without its result": (response(Text("a"), CALL), [Message("Claude", [Text("a"), CALL])]),
    "a round of tools": (
        response(Text("a"), CALL, RESULT, MORE, Text("b")),
        [Message("Claude", [Text("a"), CALL]), Message("User", [RESULT, MORE]), Message("Claude", [Text("b")])],
    ),
    "an assistant of another name": (
        response(CALL, RESULT, assistant="Bot"),
        [Message("Bot", [CALL]), Message("user", [RESULT])],
    ),
}


@pytest.mark.parametrize("given, messages", TURNS.values(), ids=TURNS.keys())
def test_a_response_as_messages(given: Response, messages: list[Message]) -> None:
    assert given.as_messages() == messages


def test_the_messages_of_a_response_are_the_callers_to_change() -> None:
    given = response(Text("a"))
    given.as_messages()[0].content.append(Text("b"))
    assert given.content == [Text("a")]


def test_the_two_results_of_a_stream() -> None:
    assert (is_aborted_response(AbortedResponse("user")), is_aborted_response(response())) == (True, False)


def test_a_call_and_its_result_change_their_form() -> None:
    assert call_of(ToolUse("c1", "look", {"a": 1}, "{", raw_xml="<x/>")) == ToolCall("c1", "look", {"a": 1}, "{")
    assert result_block(ToolResult("c1", [Text("r")], is_error=True)) == ToolResultBlock("c1", [Text("r")], True)
