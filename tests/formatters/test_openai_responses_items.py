"""openai-responses: messages become input items. Each case is what Claude's, or Ann's, message holds, and the items."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from membrane_lite.errors import MembraneError
from membrane_lite.formatters.base import BuildOptions, BuildResult, BuildSettings
from membrane_lite.formatters.image_media import placeholder
from membrane_lite.formatters.openai_responses import FORMAT, OpenAIResponsesFormatter
from membrane_lite.formatters.tool_names import ToolNames
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
)
from membrane_lite.values.messages import Message
from membrane_lite.values.reader import read_request
from membrane_lite.values.tools import Tool

Item = dict[str, Any]

PNG = b64encode(b"\x89PNG\r\n\x1a\n0000").decode()
PICTURE = Image({"type": "base64", "media_type": "image/jpeg", "data": PNG})
PICTURE_PART = {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"}
DRAWING = Image({"type": "base64", "media_type": "image/svg+xml", "data": "PHN2Zz4="})
WITHHELD = {"type": "input_text", "text": placeholder("image/svg+xml")}
PDF = Document({"type": "base64", "media_type": "application/pdf", "data": "QQ=="}, filename="a.pdf")
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e=="}
SPOKEN = {"type": "message", "id": "msg_1", "role": "assistant", "phase": "commentary", "content": [{"x": 1}]}
SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
CUSTOM = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c1", "name": "sum", "input": "4 + 4"}


def build(*messages: Message, **options: Any) -> BuildResult:
    return OpenAIResponsesFormatter().build_messages(messages, BuildOptions(**options))


def own(block: Block, item: Item, format: str | None = FORMAT) -> Any:
    return type(block)(**{**vars(block), "raw_item": item, "raw_format": format})


def said(role: str, *parts: Item) -> Item:
    return {"type": "message", "role": role, "content": list(parts)}


def heard(text: str) -> Item:
    return {"type": "input_text", "text": text}


def spoken(text: str) -> Item:
    return {"type": "output_text", "text": text}


def call(id: str, arguments: str, name: str = "look") -> Item:
    return {"type": "function_call", "call_id": id, "name": name, "arguments": arguments}


def output(id: str, output: Any) -> Item:
    return {"type": "function_call_output", "call_id": id, "output": output}


ANN: dict[str, tuple[list[Block], list[Item]]] = {
    "text, without her name": ([Text("hi")], [said("user", heard("hi"))]),
    "texts share a message": ([Text("a"), Text("b")], [said("user", heard("a"), heard("b"))]),
    "an empty text is one": ([Text("")], [said("user", heard(""))]),
    "nothing": ([], []),
    "an image under the type its bytes show": ([Text("a"), PICTURE], [said("user", heard("a"), PICTURE_PART)]),
    "an image by address": (
        [Image({"type": "url", "url": "http://h/a.png"})],
        [said("user", {"type": "input_image", "image_url": "http://h/a.png"})],
    ),
    "a document": (
        [PDF],
        [said("user", {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,QQ=="})],
    ),
    "a result stands alone": (
        [Text("a"), ToolResultBlock("c1", "sun"), Text("b")],
        [said("user", heard("a")), output("c1", "sun"), said("user", heard("b"))],
    ),
    "a result of texts is their JSON": (
        [ToolResultBlock("c1", [Text("sun")])],
        [output("c1", '[{"type":"text","text":"sun"}]')],
    ),
    "a result with images is a list of parts": (
        [ToolResultBlock("c1", [Text("sun"), PICTURE])],
        [output("c1", [heard("sun"), PICTURE_PART])],
    ),
    "an image that the API does not accept is text": ([Text("a"), DRAWING], [said("user", heard("a"), WITHHELD)]),
    "an image of no known type is text": (
        [Image({"type": "base64", "data": "QQ=="})],
        [said("user", heard(placeholder(None)))],
    ),
    "a result with such an image": (
        [ToolResultBlock("c1", [Text("a"), DRAWING, PICTURE])],
        [output("c1", [heard("a"), WITHHELD, PICTURE_PART])],
    ),
    "a result of such an image": ([ToolResultBlock("c1", [DRAWING])], [output("c1", [WITHHELD])]),
    "that a result is an error has no place": ([ToolResultBlock("c1", "no", is_error=True)], [output("c1", "no")]),
    "an item of this format goes as it is": ([own(Text(""), SEARCH)], [SEARCH]),
    "and one that names no format": ([own(Text(""), SEARCH, None)], [SEARCH]),
    "a carrier of another format is left out": ([own(Text(""), {"type": "server_tool_use"}, "anthropic")], []),
    "the text of another format stays": ([own(Text("a"), {"type": "text"}, "anthropic")], [said("user", heard("a"))]),
}
CLAUDE: dict[str, tuple[list[Block], list[Item]]] = {
    "text": ([Text("yo")], [said("assistant", spoken("yo"))]),
    "calls stand alone": (
        [Text("a"), ToolUse("c1", "look", {"x": 1}), ToolUse("c2", "find", {})],
        [said("assistant", spoken("a")), call("c1", '{"x":1}'), call("c2", "{}", "find")],
    ),
    "arguments that are no JSON go as they came": (
        [ToolUse("c1", "look", {}, unparseable_input='{"x')],
        [call("c1", '{"x')],
    ),
    "a call of a custom tool": (
        [ToolUse("c1", "sum", "4 + 4")],
        [{"type": "custom_tool_call", "call_id": "c1", "name": "sum", "input": "4 + 4"}],
    ),
    "items in their order, texts between them": (
        [own(RedactedThinking("e=="), REASONING), Text("a"), own(Text("b"), SPOKEN), Text("c")],
        [REASONING, said("assistant", spoken("a")), SPOKEN, said("assistant", spoken("c"))],
    ),
    "an item of two blocks goes once": ([own(Text("a"), SPOKEN), own(Text("b"), SPOKEN)], [SPOKEN]),
    "one without an id is known by all of it": (
        [own(Text("a"), {"type": "x"}), own(Text("b"), {"type": "x"}), own(Text("c"), {"type": "y"})],
        [{"type": "x"}, {"type": "y"}],
    ),
    "encrypted reasoning without its item": (
        [RedactedThinking("e==")],
        [{"type": "reasoning", "summary": [], "encrypted_content": "e=="}],
    ),
    "thinking without its item is left out": ([Thinking("so"), Text("a")], [said("assistant", spoken("a"))]),
    "thinking with its item is that item": ([own(Thinking("so"), REASONING)], [REASONING]),
    "images have no place on this side": ([PICTURE, GeneratedImage("QQ=="), PDF], []),
}


@pytest.mark.parametrize("blocks, items", ANN.values(), ids=ANN.keys())
def test_what_ann_said(blocks: list[Block], items: list[Item]) -> None:
    assert build(Message("Ann", blocks)).messages == items


@pytest.mark.parametrize("blocks, items", CLAUDE.values(), ids=CLAUDE.keys())
def test_what_claude_said(blocks: list[Block], items: list[Item]) -> None:
    assert build(Message("Claude", blocks)).messages == items


def test_messages_are_not_merged_and_pairs_not_repaired() -> None:
    built = build(Message("Ann", [Text("a")]), Message("Bob", [Text("b")]), Message("Claude", [ToolUse("c1", "look")]))
    assert built.messages == [said("user", heard("a")), said("user", heard("b")), call("c1", "{}")]
    assert built.ready


def test_the_result_of_a_custom_tool_is_a_custom_output() -> None:
    calls = Message("Claude", [own(ToolUse("c1", "sum", "4 + 4"), CUSTOM), ToolUse("c2", "look")])
    results = Message("User", [ToolResultBlock("c1", "8"), ToolResultBlock("c2", "sun")])
    custom_output = {"type": "custom_tool_call_output", "call_id": "c1", "output": "8"}
    assert build(calls, results).messages == [CUSTOM, call("c2", "{}"), custom_output, output("c2", "sun")]


@pytest.mark.parametrize("key", ["openai_responses_items", "openaiResponsesItems"])
def test_a_message_that_was_imported_is_its_items(key: str) -> None:
    developer = {"role": "developer", "content": "Be brief."}
    built = build(Message("Ann", [Text("ignored")], metadata={key: [developer, SEARCH]}), system_prompt="S")
    assert (built.messages, built.system_content) == ([developer, SEARCH], None)


INSTRUCTIONS: dict[str, tuple[Message, Any]] = {
    "the system text": (Message("Ann", [Text("a")]), "S"),
    "not where a message was imported, even without items": (
        Message("Ann", [], metadata={"openai_responses_items": []}),
        None,
    ),
    "not beside a developer's message": (Message("Ann", [own(Text(""), {"role": "developer", "content": "B"})]), None),
    "beside other items": (Message("Claude", [own(Text(""), SEARCH)]), "S"),
}


@pytest.mark.parametrize("message, system", INSTRUCTIONS.values(), ids=INSTRUCTIONS.keys())
def test_the_instructions(message: Message, system: Any) -> None:
    assert build(message, system_prompt="S").system_content == system


def test_tools_are_flat_functions_under_names_the_api_takes() -> None:
    tools = [Tool("fs:read", "Reads", {"type": "object"})]
    built = build(Message("Claude", [ToolUse("c1", "fs:read")]), tools=tools)
    function = {"type": "function", "name": "fs__read", "description": "Reads", "parameters": {"type": "object"}}
    assert (built.native_tools, built.tool_names) == ([function], {"fs__read": "fs:read"})
    assert built.messages == [call("c1", "{}", "fs__read")]
    assert (build(tools=[]).native_tools, build().native_tools) == ([], None)


def test_a_call_in_a_history_has_the_name_that_the_adapter_s_rule_gives_its_tool() -> None:
    history = Message("Claude", [ToolUse("c1", "fs.read"), ToolUse("c2", "n" * 70)])
    rule = ToolNames(characters="a-zA-Z0-9_.-", longest=128)
    assert build(history, tool_names=rule).messages == [
        call("c1", "{}", "fs.read"),
        call("c2", "{}", "n" * 70),
    ]
    assert build(history).messages[0] == call("c1", "{}", "fs_read")


def test_an_item_of_two_messages_goes_twice() -> None:
    message = Message("Claude", [own(Text("a"), SPOKEN)])
    assert build(message, message).messages == [SPOKEN, SPOKEN]


def test_stop_sequences_and_a_prefix() -> None:
    built = build(Message("Ann", [Text("a")]), additional_stop_sequences=["x"], context_prefix="p")
    assert built.stop_sequences == ["x"]
    assert built.messages == [said("assistant", spoken("p")), said("user", heard("a"))]


def test_what_the_api_does_not_take_is_left_out_with_a_warning() -> None:
    warnings: list[Any] = []
    sound = Audio({"type": "base64", "media_type": "audio/wav", "data": "QQ=="})
    built = build(Message("Ann", [sound, Text("a")]), warn=lambda *words: warnings.append(words))
    assert built.messages == [said("user", heard("a"))]
    assert warnings == [("%s left out: the Responses API takes none as input", "audio")]


def test_an_image_that_the_api_does_not_accept_is_warned_of() -> None:
    warnings: list[Any] = []
    build(Message("Ann", [DRAWING]), warn=lambda *words: warnings.append(words))
    assert warnings == [('image block stripped: unsupported media type "%s"', "image/svg+xml")]


def test_nothing_given_is_changed() -> None:
    message = Message("Claude", [own(Text(""), SEARCH), Text("a")])
    before = message.to_dict()
    build(message)
    assert message.to_dict() == before


def request(*blocks: Item, **more: Any) -> Any:
    messages = [{"participant": "Ann", "content": list(blocks)}]
    return read_request({"messages": messages, "config": {"model": "gpt-5.1", "max_tokens": 64}, **more})


def test_a_request_that_ends_in_an_item_without_a_role_is_no_prefill() -> None:
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "sun"}
    built = OpenAIResponsesFormatter().conversation(request(result), BuildSettings()).build()
    assert built.messages == [output("c1", "sun")]


def test_a_request_that_is_too_large_sheds_its_images_where_it_may() -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG + "A" * 4000}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": [picture]}
    settings = BuildSettings(max_request_bytes=2000)
    formatter = OpenAIResponsesFormatter()
    with pytest.raises(MembraneError, match="2 images take"):
        formatter.conversation(request(picture, result), settings).build()
    built = formatter.conversation(request(picture, result, shed_oversize_images=True), settings).build()
    parts = [*built.messages[0]["content"], *built.messages[1]["output"]]
    assert [part["type"] for part in parts] == ["input_text", "input_text"]
    assert all("was dropped from THIS request" in part["text"] for part in parts)
