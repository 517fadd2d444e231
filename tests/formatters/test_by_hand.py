"""What every formatter gives to a caller who lays a conversation out by hand: results as text, an answer as blocks."""

from __future__ import annotations

from typing import Any

import pytest

from membrane_lite import (
    AnthropicXmlFormatter,
    CompletionsFormatter,
    Image,
    NativeFormatter,
    OpenAIResponsesFormatter,
    Text,
    ToolResult,
)

FORMATTERS: dict[str, Any] = {
    "anthropic-xml": AnthropicXmlFormatter(),
    "native": NativeFormatter(),
    "completions": CompletionsFormatter(),
    "openai-responses": OpenAIResponsesFormatter(),
}
PNG = "iVBORw0KGgoAAAAN"
PIXEL = Image({"type": "base64", "media_type": "image/png", "data": PNG})
CALLS = '<function_calls>\n<invoke name="look">\n</invoke>\n</function_calls>'

# name -> uses_prefill, native tools, tools as text.
ABLE = {
    "anthropic-xml": (True, True, True),
    "native": (False, True, False),
    "completions": (True, False, False),
    "openai-responses": (False, True, False),
}


@pytest.mark.parametrize("name", FORMATTERS)
def test_what_it_says_of_itself(name: str) -> None:
    formatter = FORMATTERS[name]
    assert (formatter.name, formatter.configured_tool_mode) == (name, None)
    able = (formatter.uses_prefill, formatter.supports_native_tools, formatter.supports_xml_tools)
    assert able == ABLE[name]


RESULTS = [ToolResult("c1", "sun"), ToolResult("c2", [Text("a"), PIXEL], is_error=True)]
WRITTEN = {
    "native": (
        '[{"tool_use_id":"c1","content":"sun"},{"tool_use_id":"c2","content":[{"type":"text","text":"a"},'
        f'{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{PNG}"}}}}],"is_error":true}}]'
    ),
    "completions": (
        '[Tool Result: sun]\n[Tool Result: [{"type":"text","text":"a"},'
        f'{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{PNG}"}}}}]]'
    ),
    "openai-responses": (
        '[{"type":"function_call_output","call_id":"c1","output":"sun"},'
        '{"type":"function_call_output","call_id":"c2","output":[{"type":"input_text","text":"a"},'
        f'{{"type":"input_image","image_url":"data:image/png;base64,{PNG}"}}]}}]'
    ),
    "anthropic-xml": (
        "<function_results>\n<result>\n<stdout>\nsun\n</stdout>\n</result>\n<error>\na\n[Image: image/png, ~0KB]\n"
        "</error>\n</function_results>"
    ),
}


@pytest.mark.parametrize("name, written", WRITTEN.items())
def test_results_as_text(name: str, written: str) -> None:
    assert FORMATTERS[name].format_tool_results(RESULTS) == written


NO_RESULTS = {
    "native": "[]",
    "completions": "",
    "openai-responses": "[]",
    "anthropic-xml": "<function_results>\n</function_results>",
}


@pytest.mark.parametrize("name, written", NO_RESULTS.items())
def test_no_results_as_text(name: str, written: str) -> None:
    assert FORMATTERS[name].format_tool_results([]) == written


# text -> the blocks that each makes of it: native, completions, openai-responses.
TEXTS: dict[str, tuple[str, list[Text], list[Text], list[Text]]] = {
    "text is not trimmed": (" a \n", [Text(" a \n")], [Text("a \n")], [Text(" a \n")]),
    "lines before it": ("  \n  Hello", [Text("  \n  Hello")], [Text("Hello")], [Text("  \n  Hello")]),
    "blank text": (" \n", [], [], [Text(" \n")]),
    "nothing": ("", [], [], []),
    "what looks like a call": (CALLS, [Text(CALLS)], [Text(CALLS)], [Text(CALLS)]),
}


@pytest.mark.parametrize("text, native, completions, responses", TEXTS.values(), ids=TEXTS)
def test_an_answer_as_blocks(text: str, native: list[Text], completions: list[Text], responses: list[Text]) -> None:
    assert [FORMATTERS[name].parse_content_blocks(text) for name in ("native", "completions", "openai-responses")] == [
        native,
        completions,
        responses,
    ]


@pytest.mark.parametrize("name", ["native", "completions", "openai-responses"])
def test_where_calls_are_no_text_there_is_none_in_it(name: str) -> None:
    assert (FORMATTERS[name].has_tool_use(CALLS), FORMATTERS[name].parse_tool_calls(CALLS)) == (False, [])


def test_in_a_transcript_there_is() -> None:
    formatter = AnthropicXmlFormatter()
    assert formatter.has_tool_use(CALLS)
    assert [(call.name, call.input) for call in formatter.parse_tool_calls(CALLS)] == [("look", {})]
