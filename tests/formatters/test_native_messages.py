"""native: participants become roles, blocks become what is sent. Each case is a conversation and the exact messages."""

from __future__ import annotations

from base64 import b64encode
from typing import Any

import pytest

from membrane_lite.errors import MembraneError
from membrane_lite.formatters.base import BuildOptions, BuildResult
from membrane_lite.formatters.native import NativeFormatter
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
)
from membrane_lite.values.messages import Message
from membrane_lite.values.tools import Tool

Wire = list[dict[str, Any]]


def build(messages: list[Message], formatter: NativeFormatter | None = None, **options: Any) -> BuildResult:
    return (formatter or NativeFormatter()).build_messages(messages, BuildOptions(**options))


def ann(*blocks: Block | str) -> Message:
    return said("Ann", *blocks)


def claude(*blocks: Block | str) -> Message:
    return said("Claude", *blocks)


def said(participant: str, *blocks: Block | str) -> Message:
    return Message(participant, [Text(block) if isinstance(block, str) else block for block in blocks])


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


ROLES: dict[str, tuple[list[Message], Wire]] = {
    "one question": ([ann("hi")], [user(text("Ann: hi"))]),
    "a question and its answer": (
        [ann("hi"), claude("hello")],
        [user(text("Ann: hi")), assistant(text("hello"))],
    ),
    "several participants are one user": (
        [said("Alice", "a"), said("Bob", "b"), claude("c")],
        [user(text("Alice: a"), text("Bob: b")), assistant(text("c"))],
    ),
    "the assistant is told by its exact name": (
        [said("claude", "a"), said("Claude ", "b"), claude("c")],
        [user(text("claude: a"), text("Claude : b")), assistant(text("c"))],
    ),
    "two answers in a row are one": (
        [ann("hi"), claude("a"), claude("b")],
        [user(text("Ann: hi")), assistant(text("a"), text("b"))],
    ),
    "a conversation that the assistant begins": (
        [claude("hello"), ann("hi")],
        [user(text("[continuing]")), assistant(text("hello")), user(text("Ann: hi"))],
    ),
    "only the first text carries the name": (
        [ann("a", "b", "c")],
        [user(text("Ann: a"), text("b"), text("c"))],
    ),
    "each message of one participant carries it": (
        [ann("a"), ann("b")],
        [user(text("Ann: a"), text("Ann: b"))],
    ),
    "the first text that is kept carries it": (
        [ann("", "a", "b")],
        [user(text("Ann: a"), text("b"))],
    ),
    "an assistant's text carries none": (
        [ann("a"), claude("b", "c")],
        [user(text("Ann: a")), assistant(text("b"), text("c"))],
    ),
    "white space is text": ([ann(" \n"), claude(" ")], [user(text("Ann:  \n")), assistant(text(" "))]),
    "empty text is nothing": ([ann("", "a"), claude("")], [user(text("Ann: a"))]),
    "a first message of nothing": ([ann(""), claude("b")], [user(text("[continuing]")), assistant(text("b"))]),
    "nothing at all": ([ann(""), Message("Bob", [])], []),
    "a last answer is kept as it is": (
        [ann("List three."), claude("1. apple \n")],
        [user(text("Ann: List three.")), assistant(text("1. apple \n"))],
    ),
    "a name with a placeholder in it": ([said("{name}", "a")], [user(text("{name}: a"))]),
}


@pytest.mark.parametrize("messages, wire", ROLES.values(), ids=ROLES.keys())
def test_roles_and_names(messages: list[Message], wire: Wire) -> None:
    assert build(messages).messages == wire


def test_what_this_formatter_is() -> None:
    formatter = NativeFormatter()
    able = (formatter.supports_native_tools, formatter.supports_xml_tools)
    assert (formatter.name, *able, formatter.configured_tool_mode) == ("native", True, False, None)


def test_a_format_for_names() -> None:
    formatter = NativeFormatter(name_format="[{name}] {name}> ")
    assert build([ann("a"), claude("b")], formatter).messages == [user(text("[Ann] {name}> a")), assistant(text("b"))]


def test_the_assistant_may_have_another_name() -> None:
    built = build([ann("a"), claude("b"), said("Bot", "c")], assistant_participant="Bot")
    assert built.messages == [user(text("Ann: a"), text("Claude: b")), assistant(text("c"))]


def test_the_user_turn_before_an_assistant_that_begins() -> None:
    built = build([claude("b")], prefill_user_message="Go on, please.")
    assert built.messages == [user(text("Go on, please.")), assistant(text("b"))]


def test_it_is_left_out_where_a_user_begins() -> None:
    assert build([ann("a")], prefill_user_message="Go on.").messages == [user(text("Ann: a"))]


SIMPLE: dict[str, tuple[list[Message], str]] = {
    "no human named": ([ann("a")], "NativeFormatter: participant_mode 'simple' needs human_participant"),
    "a third participant": (
        [said("Human", "a"), said("Bob", "b")],
        "NativeFormatter: participant_mode 'simple' knows 'Human' and 'Claude', found 'Bob'; use 'multiuser'",
    ),
}


def test_simple_mode_writes_no_names() -> None:
    built = build([ann("a", "b"), claude("c")], participant_mode="simple", human_participant="Ann")
    assert built.messages == [user(text("a"), text("b")), assistant(text("c"))]


def test_simple_mode_with_the_assistant_alone_needs_no_human() -> None:
    assert build([claude("c")], participant_mode="simple").messages[1] == assistant(text("c"))


@pytest.mark.parametrize("messages, words", SIMPLE.values(), ids=SIMPLE.keys())
def test_simple_mode_knows_two(messages: list[Message], words: str) -> None:
    human = "Human" if "Human" in words else None
    with pytest.raises(MembraneError) as raised:
        build(messages, participant_mode="simple", human_participant=human)
    assert (raised.value.type, raised.value.message) == ("invalid_request", words)


# Media

PNG, JPEG = b64encode(b"\x89PNG\r\n\x1a\n....").decode(), b64encode(b"\xff\xd8\xff\xe0....").decode()
GIF, WEBP = b64encode(b"GIF89a......").decode(), b64encode(b"RIFF....WEBPVP8 ").decode()
SVG = b64encode(b"<svg xmlns='http://www.w3.org/2000/svg'/>").decode()


def base64(label: str | None, data: str) -> dict[str, Any]:
    return {"type": "base64", **({} if label is None else {"media_type": label}), "data": data}


def image(label: str, data: str, **more: Any) -> dict[str, Any]:
    return {"type": "image", "source": base64(label, data), **more}


def withheld(label: str) -> dict[str, Any]:
    return text(
        f'[system: an image that belongs here was NOT shown to you — its media type "{label}" is not accepted by the '
        "model API (only jpeg/png/gif/webp are). You are not seeing this image. If it matters, ask for it in a "
        "supported format.]"
    )


MEDIA: dict[str, tuple[list[Block], Wire]] = {
    "a PNG": ([Image(base64("image/png", PNG))], [image("image/png", PNG)]),
    "a JPEG labelled PNG": ([Image(base64("image/png", JPEG))], [image("image/jpeg", JPEG)]),
    "a GIF labelled as text": ([Image(base64("text/plain", GIF))], [image("image/gif", GIF)]),
    "a WebP without a label": ([Image(base64(None, WEBP))], [image("image/webp", WEBP)]),
    "bytes that show nothing, and a label": ([Image(base64("Image/PNG", "AAAA"))], [image("image/png", "AAAA")]),
    "an SVG": ([Image(base64("image/svg+xml", SVG))], [withheld("image/svg+xml")]),
    "bytes that show nothing, and no label": ([Image(base64(None, "AAAA"))], [withheld("undefined")]),
    "an image by address": (
        [Image({"type": "url", "url": "https://x.org/a.png"})],
        [{"type": "image", "source": {"type": "url", "url": "https://x.org/a.png"}}],
    ),
    "where an image can be fetched": (
        [Image(base64("image/png", PNG), source_url="https://x.org/a.png", token_estimate=9)],
        [image("image/png", PNG, source_url="https://x.org/a.png")],
    ),
    "an image the model made": ([GeneratedImage(PNG)], []),
    "a document": (
        [Document(base64("application/pdf", "JVBERg=="), filename="a.pdf")],
        [{"type": "document", "source": base64("application/pdf", "JVBERg=="), "title": "a.pdf"}],
    ),
    "a document without a name": (
        [Document(base64("application/pdf", "JVBERg=="))],
        [{"type": "document", "source": base64("application/pdf", "JVBERg==")}],
    ),
    "audio": (
        [Audio(base64("audio/wav", "UklGRg=="), duration=1.5, transcript="hello")],
        [{"type": "audio", "source": base64("audio/wav", "UklGRg==")}],
    ),
    "video": (
        [Video(base64("video/mp4", "AAAA"), duration=2)],
        [{"type": "video", "source": base64("video/mp4", "AAAA")}],
    ),
    "text between media": (
        [Image(base64("image/png", PNG)), Text("what is"), Image(base64("image/gif", GIF)), Text("this?")],
        [image("image/png", PNG), text("Ann: what is"), image("image/gif", GIF), text("this?")],
    ),
    "a withheld image carries no name": (
        [Image(base64("image/svg+xml", SVG)), Text("this?")],
        [withheld("image/svg+xml"), text("Ann: this?")],
    ),
}


@pytest.mark.parametrize("blocks, wire", MEDIA.values(), ids=MEDIA.keys())
def test_media(blocks: list[Block], wire: Wire) -> None:
    assert build([ann(*blocks, Text(""))]).messages == ([user(*wire)] if wire else [])


def test_a_withheld_image_is_warned_of() -> None:
    warnings: list[tuple[Any, ...]] = []
    build([ann(Image(base64("image/svg+xml", SVG)))], warn=lambda *told: warnings.append(told))
    assert warnings == [('image block stripped: unsupported media type "%s"', "image/svg+xml")]


def test_media_that_are_stripped_and_warned_of() -> None:
    warnings: list[str] = []
    source = base64("x/y", "AAAA")
    built = build(
        [ann("a", Document(source), Audio(source), Video(source), Image(base64("image/png", PNG)))],
        NativeFormatter(unsupported_media="strip"),
        warn=lambda message, *values: warnings.append(message % values),
    )
    assert built.messages == [user(text("Ann: a"), image("image/png", PNG))]
    assert warnings == [f"{kind} left out of the message of Ann" for kind in ("document", "audio", "video")]


# Tools

LOOK, FIND = Tool("look", "looks", {"type": "object"}), Tool("ns:find", "finds", {"type": "object", "properties": {}})


def use(id: str, name: str = "look", input: Any = None, **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": {} if input is None else input, **more}


def result(id: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": content, **more}


TOOLS: dict[str, tuple[list[Message], Wire]] = {
    "a round": (
        [
            ann("look"),
            claude("I look.", ToolUse("c1", "look", {"at": [1]})),
            said("User", ToolResultBlock("c1", "seen")),
            claude("It is red."),
        ],
        [
            user(text("Ann: look")),
            assistant(text("I look."), use("c1", input={"at": [1]})),
            user(result("c1", "seen")),
            assistant(text("It is red.")),
        ],
    ),
    "results carry no name": (
        [ann("a"), claude(ToolUse("c1", "look")), said("Bob", ToolResultBlock("c1", "r"), Text("also"))],
        [user(text("Ann: a")), assistant(use("c1")), user(result("c1", "r"), text("Bob: also"))],
    ),
    "a failed call": (
        [ann("a"), claude(ToolUse("c1", "look")), ann(ToolResultBlock("c1", "no", is_error=True))],
        [user(text("Ann: a")), assistant(use("c1")), user(result("c1", "no", is_error=True))],
    ),
    "one that says that it is none": (
        [ann("a"), claude(ToolUse("c1", "look")), ann(ToolResultBlock("c1", "", is_error=False))],
        [user(text("Ann: a")), assistant(use("c1")), user(result("c1", "", is_error=False))],
    ),
    "blocks in a result": (
        [
            ann("a"),
            claude(ToolUse("c1", "look")),
            ann(
                ToolResultBlock(
                    "c1",
                    [
                        Text("seen"),
                        Text(""),
                        Image(base64("image/png", JPEG)),
                        Image(base64("image/svg+xml", SVG)),
                        Image({"type": "url", "url": "u"}),
                    ],
                )
            ),
        ],
        [
            user(text("Ann: a")),
            assistant(use("c1")),
            user(
                result(
                    "c1",
                    [
                        text("seen"),
                        image("image/jpeg", JPEG),
                        withheld("image/svg+xml"),
                        {"type": "image", "source": {"type": "url", "url": "u"}},
                    ],
                )
            ),
        ],
    ),
    "a call without its result": (
        [ann("a"), claude(ToolUse("c1", "look"))],
        [user(text("Ann: a")), assistant(use("c1")), user(result("c1", "[pending]", is_error=False))],
    ),
    "arguments of any kind": (
        [ann("a"), claude(ToolUse("c1", "look", "print(1)")), ann(ToolResultBlock("c1", "r"))],
        [user(text("Ann: a")), assistant(use("c1", input="print(1)")), user(result("c1", "r"))],
    ),
}


@pytest.mark.parametrize("messages, wire", TOOLS.values(), ids=TOOLS.keys())
def test_tool_rounds(messages: list[Message], wire: Wire) -> None:
    assert build(messages, tools=[LOOK]).messages == wire


def test_two_calls_of_one_turn_may_not_share_an_id() -> None:
    messages = [ann("a"), claude(ToolUse("c1", "look"), ToolUse("c1", "look"))]
    with pytest.raises(MembraneError) as raised:
        build(messages)
    text = "messages: two calls of one turn have the id 'c1'; ids must differ"
    assert (raised.value.type, raised.value.message) == ("invalid_request", text)


def test_two_calls_of_different_turns_may() -> None:
    turns = [claude(ToolUse("call_0", "look")), ann(ToolResultBlock("call_0", "r"))]
    built = build([ann("a"), *turns, *turns])
    answered = [assistant(use("call_0")), user(result("call_0", "r"))]
    assert built.messages == [user(text("Ann: a")), *answered, *answered]


NAMES = {
    "a plain name": ("look", "look"),
    "a colon": ("ns:find", "ns__find"),
    "two colons": ("a:b:c", "a__b__c"),
    "underscores of its own": ("a__b", "a__b"),
}


@pytest.mark.parametrize("declared, sent", NAMES.values(), ids=NAMES.keys())
def test_a_tools_name_as_it_is_sent(declared: str, sent: str) -> None:
    built = build([ann("a"), claude(ToolUse("c1", declared)), ann(ToolResultBlock("c1", "r"))], tools=[Tool(declared)])
    assert built.native_tools is not None
    assert (built.native_tools[0]["name"], built.messages[1]) == (sent, assistant(use("c1", sent)))
    assert built.tool_names == {sent: declared}


def test_a_call_of_a_tool_that_is_no_longer_declared() -> None:
    built = build([ann("a"), claude(ToolUse("c1", "old:tool")), ann(ToolResultBlock("c1", "r"))], tools=[LOOK])
    assert built.messages[1] == assistant(use("c1", "old__tool"))


CLASHES = {
    "one name twice": (["look", "look"], "look"),
    "two names that are sent alike": (["a:b", "a__b"], "a__b"),
}


@pytest.mark.parametrize("names, sent", CLASHES.values(), ids=CLASHES.keys())
def test_tools_that_could_not_be_told_apart(names: list[str], sent: str) -> None:
    with pytest.raises(MembraneError) as raised:
        build([ann("a")], tools=[Tool(name) for name in names])
    first, second = names
    words = (
        f"tools[1].name: {second!r} would be sent as {sent!r}, and so would {first!r} of tools[0]; names must differ"
    )
    assert (raised.value.type, raised.value.message) == ("invalid_request", words)


def test_tools_as_they_are_sent() -> None:
    assert build([ann("a")], tools=[LOOK, FIND]).native_tools == [
        {"name": "look", "description": "looks", "input_schema": {"type": "object"}},
        {"name": "ns__find", "description": "finds", "input_schema": {"type": "object", "properties": {}}},
    ]


@pytest.mark.parametrize("tools", [None, []], ids=["none", "an empty list"])
def test_no_tools(tools: list[Tool] | None) -> None:
    built = build([ann("a")], tools=tools)
    assert (built.native_tools, built.tool_names) == (None, {})


# Thinking and items of a provider's own

CITED = {"type": "text", "citations": [{"cited_text": "x"}]}
SERVER_CALL = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}}


def item(raw: dict[str, Any]) -> dict[str, Any]:
    return {"raw_item": raw, "raw_format": "anthropic"}


THINKING: dict[str, tuple[list[Block], Wire]] = {
    "signed": (
        [Thinking("so", "c2ln"), Text("a")],
        [{"type": "thinking", "thinking": "so", "signature": "c2ln"}, text("a")],
    ),
    "a signature without text": (
        [Thinking("", "c2ln"), Text("a")],
        [{"type": "thinking", "thinking": "", "signature": "c2ln"}, text("a")],
    ),
    "without a signature": ([Thinking("so"), Text("a")], [{"type": "thinking", "thinking": "so"}, text("a")]),
    "an empty signature is none": (
        [Thinking("so", ""), Text("a")],
        [{"type": "thinking", "thinking": "so"}, text("a")],
    ),
    "redacted": (
        [RedactedThinking("b3BhcXVl"), Text("a")],
        [{"type": "redacted_thinking", "data": "b3BhcXVl"}, text("a")],
    ),
    "an item stands beside its text": ([Text("a", **item(CITED))], [text("a", **item(CITED))]),
    "a carrier is all item": (
        [Text("", **item(SERVER_CALL)), Text("a")],
        [{"type": "raw_item", **item(SERVER_CALL)}, text("a")],
    ),
    "an item of no known format is nothing": ([Text("", raw_item=SERVER_CALL), Text("a")], [text("a")]),
    "an item stands beside a call's": (
        [ToolUse("c1", "look", {}, **item({"type": "tool_use", "caller": {"type": "direct"}}))],
        [use("c1", **item({"type": "tool_use", "caller": {"type": "direct"}}))],
    ),
    "an image the model made, with its item": (
        [GeneratedImage("", url="u", **item({"type": "image_generation_call"}))],
        [{"type": "raw_item", **item({"type": "image_generation_call"})}],
    ),
}


@pytest.mark.parametrize("blocks, wire", THINKING.values(), ids=THINKING.keys())
def test_thinking_and_items(blocks: list[Block], wire: Wire) -> None:
    assert build([ann("q"), claude(*blocks)]).messages[1] == assistant(*wire)


def test_a_carrier_carries_no_name() -> None:
    built = build([ann(Text("", **item(SERVER_CALL)), Text("a"))])
    assert built.messages == [user({"type": "raw_item", **item(SERVER_CALL)}, text("Ann: a"))]


def test_thinking_goes_to_the_assistants_side() -> None:
    events: list[dict[str, Any]] = []
    built = build([ann(Thinking("so", "c2ln"), Text("a"))], on_normalize=events.append)
    thought = {"type": "thinking", "thinking": "so", "signature": "c2ln"}
    assert built.messages == [user(text("[continuing]")), assistant(thought), user(text("Ann: a"))]
    assert events == [
        {"type": "block_re_roled", "block_type": "thinking", "from": "user", "to": "assistant"},
        {"type": "leading_user_synthesized", "original_role": "user", "block_types": ["thinking"]},
    ]


# What stands around the messages


SYSTEMS: dict[str, tuple[Any, Any]] = {
    "none": (None, None),
    "a string": ("be kind", "be kind"),
    "an empty string": ("", ""),
    "blocks": ([Text("be kind"), Text("and brief")], [text("be kind"), text("and brief")]),
    "no blocks": ([], []),
}


@pytest.mark.parametrize("system, sent", SYSTEMS.values(), ids=SYSTEMS.keys())
def test_the_system_text(system: Any, sent: Any) -> None:
    assert build([ann("a")], system_prompt=system).system_content == sent


def test_a_context_prefix_is_the_assistants_first_message() -> None:
    built = build([ann("a")], context_prefix="Once upon a time")
    assert built.messages == [
        user(text("[continuing]")),
        assistant(text("Once upon a time")),
        user(text("Ann: a")),
    ]


def test_a_context_prefix_before_an_answer_is_part_of_it() -> None:
    built = build([claude("there was")], context_prefix="Once", prefill_user_message="Tell.")
    assert built.messages == [user(text("Tell.")), assistant(text("Once"), text("there was"))]


def test_stop_sequences_are_those_that_were_given() -> None:
    assert build([ann("a")], additional_stop_sequences=("\n\n", "END")).stop_sequences == ["\n\n", "END"]
    assert build([ann("a")]).stop_sequences == []


def test_a_call_that_is_still_running_leaves_the_build_unready() -> None:
    messages = [ann("a"), claude(ToolUse("c1", "look"))]
    assert build(messages, pending_tool_call_ids=frozenset(["c1"])).ready is False
    assert build(messages).ready is True


def test_building_changes_no_message() -> None:
    messages = [
        ann("a", Image(base64("image/png", PNG))),
        claude(Text("b", cache_control={"type": "ephemeral"}), ToolUse("c1", "look", {"at": [1]})),
        ann(ToolResultBlock("c1", [Text("r", cache_control={"type": "ephemeral"})])),
    ]
    messages[0].cache_breakpoint = True
    system = [Text("be kind", cache_control={"type": "ephemeral"})]
    before = repr((messages, system, LOOK))
    build(messages, system_prompt=system, tools=[LOOK], prompt_caching=True)
    build(messages, system_prompt=system, tools=[LOOK], prompt_caching=False)
    assert repr((messages, system, LOOK)) == before
