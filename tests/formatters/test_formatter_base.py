"""base: which tool mode a request takes, whether it thinks, and the request around what a formatter built."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from membrane_lite.errors import MembraneError
from membrane_lite.formatters.base import (
    BuildResult,
    BuildSettings,
    Conversation,
    check_formatter,
    ends_in_prefill,
    provider_request,
    thinking_parameter,
    tool_mode,
)
from membrane_lite.formatters.native import NativeFormatter
from membrane_lite.values.content import Image, Text, ToolResultBlock, ToolUse
from membrane_lite.values.messages import Message
from membrane_lite.values.requests import GenerationConfig, ProviderRequest, Request, ThinkingConfig
from membrane_lite.values.tools import Tool, ToolResult


class Some:
    """A formatter as far as the choice of a mode looks at it."""

    def __init__(self, *, native: bool, xml: bool, configured: Any = None) -> None:
        self.name = "some"
        self.supports_native_tools = native
        self.supports_xml_tools = xml
        self.configured_tool_mode = configured

    def conversation(self, request: Request, settings: BuildSettings) -> Conversation:
        raise NotImplementedError


BOTH, NATIVE, XML, NEITHER = (
    {"native": True, "xml": True},
    {"native": True, "xml": False},
    {"native": False, "xml": True},
    {"native": False, "xml": False},
)

MODES: dict[str, tuple[str, dict[str, Any], bool, str]] = {
    "both, nothing said": ("auto", BOTH, True, "native"),
    "native alone": ("auto", NATIVE, True, "native"),
    "xml alone": ("auto", XML, True, "xml"),
    "neither, and no tools": ("auto", NEITHER, False, "xml"),
    "the request says xml": ("xml", BOTH, True, "xml"),
    "the request says native": ("native", BOTH, True, "native"),
    "the formatter says xml": ("auto", {**BOTH, "configured": "xml"}, True, "xml"),
    "the formatter says native": ("auto", {**BOTH, "configured": "native"}, True, "native"),
    "the request outranks the formatter": ("native", {**BOTH, "configured": "xml"}, True, "native"),
    "the formatter says what it cannot, and no tools": ("auto", {**NATIVE, "configured": "xml"}, False, "xml"),
}

REFUSED: dict[str, tuple[str, dict[str, Any], bool, str]] = {
    "neither, with tools": ("auto", NEITHER, True, "xml"),
    "xml of a native one": ("xml", NATIVE, True, "xml"),
    "xml of a native one, even without tools": ("xml", NATIVE, False, "xml"),
    "native of an xml one": ("native", XML, True, "native"),
}


def request(mode: Any = "auto", *, tools: bool = False, **more: Any) -> Request:
    given = [Tool("look")] if tools else None
    return Request([Message("Ann", [Text("a")])], GenerationConfig("m"), tool_mode=mode, tools=given, **more)


@pytest.mark.parametrize("asked, able, tools, mode", MODES.values(), ids=MODES.keys())
def test_the_mode_of_a_request(asked: str, able: dict[str, Any], tools: bool, mode: str) -> None:
    assert tool_mode(request(asked, tools=tools), Some(**able)) == mode


@pytest.mark.parametrize("asked, able, tools, mode", REFUSED.values(), ids=REFUSED.keys())
def test_a_mode_the_formatter_has_not(asked: str, able: dict[str, Any], tools: bool, mode: str) -> None:
    with pytest.raises(MembraneError) as raised:
        tool_mode(request(asked, tools=tools), Some(**able))
    words = f"tool_mode: the formatter 'some' has no {mode} tools; use another formatter"
    assert (raised.value.type, raised.value.message) == ("unsupported", words)


class Bare:
    """A formatter of the caller's own that says less than it has to."""

    name = "bare"

    def __init__(self, **members: Any) -> None:
        vars(self).update(members)


ABLE = {"supports_native_tools": True, "supports_xml_tools": False, "configured_tool_mode": None, "conversation": len}

NO_FORMATTERS: dict[str, tuple[Any, str]] = {
    "a class": (NativeFormatter, f"formatter: found type {NativeFormatter!r}; expected an instance: NativeFormatter()"),
    "a word": ("native", "formatter: str has no 'name'; expected a string"),
    "silent of native tools": (Bare(), "formatter: Bare has no 'supports_native_tools'; expected True or False"),
    "silent of xml tools": (
        Bare(supports_native_tools=True),
        "formatter: Bare has no 'supports_xml_tools'; expected True or False",
    ),
    "no flag": (
        Bare(supports_native_tools="yes"),
        "formatter.supports_native_tools: found str 'yes'; expected True or False",
    ),
    "silent of its mode": (
        Bare(supports_native_tools=True, supports_xml_tools=True),
        "formatter: Bare has no 'configured_tool_mode'; expected 'native', 'xml' or None",
    ),
    "of no known mode": (
        Bare(**{**ABLE, "configured_tool_mode": "auto"}),
        "formatter.configured_tool_mode: found str 'auto'; expected 'native', 'xml' or None",
    ),
    "builds nothing": (
        Bare(**{**ABLE, "conversation": None}),
        "formatter.conversation: found NoneType None; expected a method conversation(request, settings)",
    ),
}


@pytest.mark.parametrize("given, words", NO_FORMATTERS.values(), ids=NO_FORMATTERS.keys())
def test_what_is_no_formatter(given: Any, words: str) -> None:
    with pytest.raises(MembraneError) as raised:
        check_formatter(given)
    assert (raised.value.type, raised.value.message) == ("invalid_request", words)


def test_one_of_the_caller_s_own() -> None:
    check_formatter(Bare(**ABLE))


THINKING: dict[str, tuple[ThinkingConfig | None, int | None, Any]] = {
    "not asked for": (None, 4_096, None),
    "switched off": (ThinkingConfig(enabled=False, budget_tokens=2_048), 4_096, None),
    "as it was asked for": (ThinkingConfig(budget_tokens=2_048), 4_096, {"type": "enabled", "budget_tokens": 2_048}),
    "5000 where nothing is said": (ThinkingConfig(), 16_000, {"type": "enabled", "budget_tokens": 5_000}),
    "a budget of 0 is none": (ThinkingConfig(budget_tokens=0), 16_000, {"type": "enabled", "budget_tokens": 5_000}),
    "room is left for the answer": (
        ThinkingConfig(budget_tokens=10_000),
        4_096,
        {"type": "enabled", "budget_tokens": 3_072},
    ),
    "4096 tokens where nothing is said": (ThinkingConfig(), None, {"type": "enabled", "budget_tokens": 3_072}),
    "of 0 tokens too": (ThinkingConfig(), 0, {"type": "enabled", "budget_tokens": 3_072}),
    "the smallest budget": (ThinkingConfig(), 2_048, {"type": "enabled", "budget_tokens": 1_024}),
    "no room for it": (ThinkingConfig(), 2_047, None),
    "a budget below the smallest": (ThinkingConfig(budget_tokens=1_023), 16_000, None),
    "how it is shown": (
        ThinkingConfig(budget_tokens=2_048, display="omitted"),
        4_096,
        {"type": "enabled", "budget_tokens": 2_048, "display": "omitted"},
    ),
    "adaptive takes no budget": (ThinkingConfig(type="adaptive", budget_tokens=9), 1_000, {"type": "adaptive"}),
    "adaptive, and how it is shown": (
        ThinkingConfig(type="adaptive", display="summarized"),
        1_000,
        {"type": "adaptive", "display": "summarized"},
    ),
}


@pytest.mark.parametrize("thinking, max_tokens, sent", THINKING.values(), ids=THINKING.keys())
def test_the_thinking_parameter(thinking: ThinkingConfig | None, max_tokens: int | None, sent: Any) -> None:
    assert thinking_parameter(GenerationConfig("m", max_tokens, thinking=thinking)) == sent


def message(role: str, content: Any) -> dict[str, Any]:
    return {"role": role, "content": content}


TEXT, CALL = {"type": "text", "text": "a"}, {"type": "tool_use", "id": "c1", "name": "look", "input": {}}
ENDS: dict[str, tuple[list[dict[str, Any]], bool]] = {
    "no messages": ([], False),
    "a user's": ([message("user", [TEXT])], False),
    "the assistant's": ([message("user", [TEXT]), message("assistant", [TEXT])], True),
    "a string": ([message("assistant", "a")], True),
    "text behind thinking": ([message("assistant", [{"type": "thinking", "thinking": "t"}, TEXT])], True),
    "a call": ([message("assistant", [TEXT, CALL])], False),
    "a paused turn": ([message("assistant", [TEXT, {"type": "raw_item", "raw_item": {}}])], False),
    "nothing": ([message("assistant", [])], False),
}


@pytest.mark.parametrize("messages, prefill", ENDS.values(), ids=ENDS.keys())
def test_a_conversation_that_ends_in_a_beginning(messages: list[dict[str, Any]], prefill: bool) -> None:
    assert ends_in_prefill(messages) is prefill


CONFIG = GenerationConfig(
    "m",
    max_tokens=4_096,
    temperature=0.5,
    top_p=0.25,
    top_k=3,
    presence_penalty=0.1,
    frequency_penalty=0.2,
    repetition_penalty=1.1,
    thinking=ThinkingConfig(budget_tokens=2_048),
)


def test_the_request_around_what_was_built() -> None:
    asked = Request([Message("Ann", [Text("a")])], CONFIG, provider_params={"seed": 7})
    built = BuildResult(
        messages=[message("user", [TEXT])],
        system_content="be kind",
        native_tools=[{"name": "look"}],
        stop_sequences=["\n"],
    )
    made = provider_request(asked, built)
    assert made == ProviderRequest(
        model="m",
        messages=[message("user", [TEXT])],
        max_tokens=4_096,
        system="be kind",
        tools=[{"name": "look"}],
        temperature=0.5,
        top_p=0.25,
        top_k=3,
        presence_penalty=0.1,
        frequency_penalty=0.2,
        repetition_penalty=1.1,
        stop_sequences=["\n"],
        thinking={"type": "enabled", "budget_tokens": 2_048},
        provider_params={"seed": 7},
        normalized_messages=asked.messages,
    )
    made.provider_params["seed"] = 8
    made.normalized_messages.clear()
    assert (asked.provider_params, len(asked.messages)) == ({"seed": 7}, 1)


def test_a_prefill_and_thinking_do_not_meet() -> None:
    asked = Request([Message("Ann", [Text("a")])], CONFIG)
    made = provider_request(asked, BuildResult([message("user", [TEXT]), message("assistant", [TEXT])]))
    assert (made.thinking, made.temperature) == (None, 0.5)


# The conversation of one turn


def test_a_conversation_grows_by_each_round() -> None:
    asked = request(tools=True, system="be kind", stop_sequences=["\n"], prompt_caching=False)
    conversation = NativeFormatter().conversation(asked, BuildSettings())
    assert conversation.build().messages == [message("user", [{"type": "text", "text": "Ann: a"}])]
    content = [Text("I look."), ToolUse("c1", "look", {"at": 1})]
    conversation.add_results(content, [ToolResult("c1", "seen")], [Message("Bob", [Text("hurry")])])
    assert conversation.build().messages == [
        message("user", [{"type": "text", "text": "Ann: a"}]),
        message(
            "assistant",
            [{"type": "text", "text": "I look."}, {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": 1}}],
        ),
        message(
            "user",
            [{"type": "tool_result", "tool_use_id": "c1", "content": "seen"}, {"type": "text", "text": "Bob: hurry"}],
        ),
    ]
    assert len(asked.messages) == 1


class StillRunning(NativeFormatter):
    """One of the caller's own that declares a call to be still running."""

    def build_messages(self, messages: Any, options: Any) -> BuildResult:
        return super().build_messages(messages, replace(options, pending_tool_call_ids=frozenset(["c1"])))


def test_a_request_that_waits_for_a_result_is_not_sent() -> None:
    asked = request(tools=True)
    asked.messages.append(Message("Claude", [ToolUse("c1", "look")]))
    with pytest.raises(MembraneError) as raised:
        StillRunning().conversation(asked, BuildSettings()).build()
    assert (raised.value.type, raised.value.retryable, raised.value.message) == (
        "invalid_request",
        False,
        "messages: a tool call was declared to be still running (pending_tool_call_ids) and has no result yet; send "
        "the request when its result is there (nothing was sent)",
    )
    asked.messages.append(Message("User", [ToolResultBlock("c1", "seen")]))
    assert len(StillRunning().conversation(asked, BuildSettings()).build().messages) == 3


ROLES = {
    "the setting's": (None, "Bot", [("user", "Ann: a"), ("assistant", "b"), ("user", "Claude: c")]),
    "the request's outranks it": ("Claude", "Bot", [("user", "Ann: a"), ("user", "Bot: b"), ("assistant", "c")]),
}


@pytest.mark.parametrize("named, setting, roles", ROLES.values(), ids=ROLES.keys())
def test_who_the_assistant_is(named: str | None, setting: str, roles: list[tuple[str, str]]) -> None:
    messages = [Message(name, [Text(words)]) for name, words in (("Ann", "a"), ("Bot", "b"), ("Claude", "c"))]
    asked = Request(messages, GenerationConfig("m"), assistant_participant=named)
    sent = NativeFormatter().conversation(asked, BuildSettings(assistant_participant=setting)).build().messages
    assert [(part["role"], block["text"]) for part in sent for block in part["content"]] == roles


CACHING: dict[str, tuple[bool | None, bool, bool]] = {
    "the setting's": (None, True, True),
    "the setting's, off": (None, False, False),
    "the request's": (True, False, True),
    "the request's, off": (False, True, False),
}


@pytest.mark.parametrize("asked, setting, marked", CACHING.values(), ids=CACHING.keys())
def test_whether_markers_are_set(asked: bool | None, setting: bool, marked: bool) -> None:
    conversation = NativeFormatter().conversation(
        request(system="be kind", prompt_caching=asked), BuildSettings(prompt_caching=setting)
    )
    assert isinstance(conversation.build().system, list) is marked


PIXELS = {"type": "base64", "media_type": "image/png", "data": "A" * 2_000}


def test_images_are_shed_with_a_warning_where_the_request_says_so() -> None:
    warnings: list[str] = []

    class Logger:
        def warning(self, words: str, *values: object) -> None:
            warnings.append(words % values)

    asked = Request([Message("Ann", [Image(PIXELS), Image(PIXELS)])], GenerationConfig("m"), shed_oversize_images=True)
    settings = BuildSettings(max_request_bytes=3_000, logger=Logger())
    sent = NativeFormatter().conversation(asked, settings).build()
    assert [block["type"] for block in sent.messages[0]["content"]] == ["text", "image"]
    assert warnings == ["1 images were dropped from a request that was too large"]
    assert isinstance(asked.messages[0].content[0], Image)


def test_otherwise_it_is_too_large() -> None:
    asked = Request([Message("Ann", [Image(PIXELS), Image(PIXELS)])], GenerationConfig("m"))
    with pytest.raises(MembraneError, match="2 images take"):
        NativeFormatter().conversation(asked, BuildSettings(max_request_bytes=3_000)).build()
