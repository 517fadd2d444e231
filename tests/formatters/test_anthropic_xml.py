"""AnthropicXmlFormatter: its modes, its settings, and the texts it makes for those who place tools by hand."""

from __future__ import annotations

from typing import Any

import pytest

from membrane_lite.errors import MembraneError
from membrane_lite.formatters.anthropic_xml import AnthropicXmlFormatter
from membrane_lite.formatters.base import BuildOptions, BuildResult
from membrane_lite.formatters.native import NativeFormatter
from membrane_lite.formatters.xml_tools import tool_instructions
from membrane_lite.values.content import Document, Text, ToolResultBlock, ToolUse
from membrane_lite.values.messages import Message
from membrane_lite.values.tools import Tool, ToolResult

PDF = Document({"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="})
MESSAGES = [
    Message("Ann", [Text("hi")]),
    Message("Claude", [ToolUse("c1", "a:look")]),
    Message("Ann", [ToolResultBlock("c1", "dust")]),
]
OPTIONS: dict[str, Any] = {
    "system_prompt": "S",
    "tools": [Tool("a:look")],
    "prompt_caching": True,
    "additional_stop_sequences": ["END"],
    "context_prefix": "Once.",
}
NATIVE = NativeFormatter().build_messages(MESSAGES, BuildOptions(**OPTIONS))


def build(asked: str | None, configured: str | None) -> BuildResult:
    options: Any = {**OPTIONS, "tool_mode": asked}
    mode: Any = configured
    return AnthropicXmlFormatter(tool_mode=mode).build_messages(MESSAGES, BuildOptions(**options))


MODES: dict[str, tuple[str | None, str | None, str]] = {
    "nobody says": (None, None, "native"),
    "the formatter says native": (None, "native", "native"),
    "the formatter says xml": (None, "xml", "xml"),
    "the request says xml": ("xml", None, "xml"),
    "the request says otherwise": ("native", "xml", "native"),
    "the request says otherwise again": ("xml", "native", "xml"),
}


@pytest.mark.parametrize("asked, configured, mode", MODES.values(), ids=MODES.keys())
def test_the_mode_of_a_build(asked: str | None, configured: str | None, mode: str) -> None:
    built = build(asked, configured)
    assert (built == NATIVE) is (mode == "native")
    assert (built.assistant_prefill is not None) is (mode == "xml")


def test_what_the_turn_asks_a_formatter() -> None:
    formatter, native, xml = (AnthropicXmlFormatter(tool_mode=mode) for mode in (None, "native", "xml"))
    assert (formatter.name, formatter.supports_native_tools, formatter.supports_xml_tools) == (
        "anthropic-xml",
        True,
        True,
    )
    assert [made.configured_tool_mode for made in (formatter, native, xml)] == [None, "native", "xml"]


MEDIA: dict[str, tuple[dict[str, Any], list[str], list[str]]] = {
    "are left to the adapter": ({}, ["text", "document"], []),
    "are left out": ({"unsupported_media": "strip"}, ["text"], ["document left out of the message of Ann"]),
    "are left out without a word": ({"unsupported_media": "strip", "warn_on_strip": False}, ["text"], []),
}


@pytest.mark.parametrize("formatter", [AnthropicXmlFormatter, NativeFormatter])
@pytest.mark.parametrize("settings, types, warnings", MEDIA.values(), ids=MEDIA.keys())
def test_in_native_mode_documents(
    formatter: type[Any], settings: dict[str, Any], types: list[str], warnings: list[str]
) -> None:
    heard: list[str] = []
    options = BuildOptions(warn=lambda message, *args: heard.append(message % args))
    built = formatter(**settings).build_messages([Message("Ann", [Text("hi"), PDF])], options)
    assert [block["type"] for block in built.messages[0]["content"]] == types
    assert heard == warnings


RESULT = "<function_results>\n<result>\n<stdout>\ndust\n</stdout>\n</result>\n</function_results>"
FOLLOWED: dict[str, tuple[dict[str, Any], str]] = {
    "and no thinking": ({}, RESULT),
    "and thinking": ({"thinking": True}, f"{RESULT}\n<thinking>"),
}


@pytest.mark.parametrize("more, text", FOLLOWED.values(), ids=FOLLOWED.keys())
def test_results_to_be_put_behind_the_calls(more: dict[str, Any], text: str) -> None:
    assert AnthropicXmlFormatter().format_tool_results([ToolResult("c1", "dust")], **more) == text


def test_no_results() -> None:
    assert AnthropicXmlFormatter().format_tool_results([], thinking=True) == (
        "<function_results>\n</function_results>\n<thinking>"
    )


def test_instructions_are_those_of_the_tools() -> None:
    assert AnthropicXmlFormatter().get_tool_instructions([Tool("look")]) == tool_instructions([Tool("look")])


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a mode": ({"tool_mode": "auto"}, "tool_mode: found 'auto'; expected one of native, xml"),
    "a place for the tools": (
        {"tool_injection_mode": "user"},
        "tool_injection_mode: found 'user'; expected one of conversation, system",
    ),
    "a position": (
        {"tool_injection_position": -1},
        "tool_injection_position: found -1; expected a whole number, 0 or more",
    ),
    "a position that is none": (
        {"tool_injection_position": 1.5},
        "tool_injection_position: found 1.5; expected a whole number, 0 or more",
    ),
    "a delimiter": ({"message_delimiter": None}, "message_delimiter: found NoneType None; expected a str"),
    "a number of participants": (
        {"max_participants_for_stop": True},
        "max_participants_for_stop: found True; expected a whole number, 0 or more",
    ),
    "a rule for media": (
        {"unsupported_media": ["strip"]},
        "unsupported_media: found ['strip']; expected one of error, strip",
    ),
    "a switch": ({"warn_on_strip": "no"}, "warn_on_strip: found str 'no'; expected a bool"),
}


@pytest.mark.parametrize("settings, message", REFUSED.values(), ids=REFUSED.keys())
def test_a_setting_that_cannot_be_used(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(MembraneError) as failure:
        AnthropicXmlFormatter(**settings)
    assert (failure.value.type, str(failure.value)) == ("invalid_request", message)


def test_a_build_in_no_known_mode() -> None:
    with pytest.raises(MembraneError, match="tool_mode: found 'auto'; expected one of native, xml"):
        build("auto", None)
