"""Faults that users of one provider reported, held against every provider that could have them.

A turn that thinks and calls goes back unchanged; results of parallel calls go back together; a call that was cut short
never runs; a call without arguments has none; the limit has the name that the model knows; nothing that Claude refuses
stands at the end of its prompt, whoever passes it on.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from membrane_lite import (
    AnthropicAdapter,
    AnthropicXmlFormatter,
    BedrockAdapter,
    GeminiAdapter,
    Membrane,
    OpenAIAdapter,
    OpenAICompatibleAdapter,
    OpenAICompletionsAdapter,
    OpenAIResponsesAPIAdapter,
    OpenRouterAdapter,
)
from membrane_lite.loopback import LoopbackProvider, RedactedThinking, Reply, Thinking, ToolCall
from membrane_lite.values.tools import ToolResult

Json = Any


class Speaker(NamedTuple):
    """An adapter at an address, and a model of its provider."""

    made: Callable[..., Any]
    model: str


ANTHROPIC = Speaker(
    lambda url, **more: AnthropicAdapter(api_key="k", base_url=url, **more),
    "claude-sonnet-4-5",
)
BEDROCK = Speaker(
    lambda url, **more: BedrockAdapter(api_key="k", base_url=url, **more),
    "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
)
OPENROUTER = Speaker(
    lambda url, **more: OpenRouterAdapter(api_key="k", base_url=url + "/api/v1", **more),
    "anthropic/claude-sonnet-4.5",
)
OPENAI = Speaker(lambda url, **more: OpenAIAdapter(api_key="k", base_url=url + "/v1", **more), "gpt-5-mini")
COMPATIBLE = Speaker(lambda url, **more: OpenAICompatibleAdapter(base_url=url + "/v1", **more), "test-model")
RESPONSES = Speaker(
    lambda url, **more: OpenAIResponsesAPIAdapter(api_key="k", base_url=url + "/v1", **more), "gpt-5-mini"
)
GEMINI = Speaker(
    lambda url, **more: GeminiAdapter(api_key="k", base_url=url + "/v1beta", **more),
    "gemini-2.5-flash",
)
COMPLETIONS = Speaker(lambda url, **more: OpenAICompletionsAdapter(base_url=url + "/v1", **more), "davinci-002")

WITH_TOOLS: dict[str, Speaker] = {
    "Anthropic": ANTHROPIC,
    "Bedrock": BEDROCK,
    "OpenRouter": OPENROUTER,
    "OpenAI": OPENAI,
    "a compatible server": COMPATIBLE,
    "Responses": RESPONSES,
    "Gemini": GEMINI,
}
each_with_tools = pytest.mark.parametrize("speaker", WITH_TOOLS.values(), ids=WITH_TOOLS)


def tool(name: str) -> Json:
    return {"name": name, "description": "", "input_schema": {"type": "object", "properties": {}}}


class Turn(NamedTuple):
    response: Any
    ran: list[str]
    sent: list[Json]


def turn(speaker: Speaker, *script: Reply, thinks: bool = True, **options: Any) -> Turn:
    """A tool loop with two tools, and the bodies that were sent."""
    ran: list[str] = []

    def run(calls: Any) -> list[ToolResult]:
        ran.extend(call.name for call in calls)
        return [ToolResult(call.id, f"{call.name}!") for call in calls]

    request = {
        "messages": [{"participant": "User", "content": "Hi"}],
        "config": {"model": speaker.model, "max_tokens": 4096, "thinking": {"enabled": thinks, "budget_tokens": 1024}},
        "tools": [tool("look"), tool("hear")],
        "prompt_caching": False,
    }
    with LoopbackProvider(script) as provider, provider.transport() as transport:
        response = Membrane(speaker.made(provider.url, transport=transport)).stream(
            request, on_tool_calls=run, **options
        )
        return Turn(response, ran, [received.json for received in provider.requests])


# Thinking goes back unchanged, results of parallel calls together

THOUGHT = Reply(
    Thinking("Need it.", "c2ln"),
    RedactedThinking("ZW5j"),
    ToolCall("look", {}, id="c1"),
    ToolCall("hear", {}, id="c2"),
)
CLAUDE_SAID = [
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Need it.", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "ZW5j"},
            {"type": "tool_use", "id": "c1", "name": "look", "input": {}},
            {"type": "tool_use", "id": "c2", "name": "hear", "input": {}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": "look!"},
            {"type": "tool_result", "tool_use_id": "c2", "content": "hear!"},
        ],
    },
]
REASONING_FORMAT = "anthropic-claude-v1"


def chat_said(**more: Json) -> list[Json]:
    calls = [
        {"id": id, "type": "function", "function": {"name": name, "arguments": "{}"}}
        for id, name in (("c1", "look"), ("c2", "hear"))
    ]
    return [
        {"role": "assistant", "content": None, **more, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "c1", "content": "look!"},
        {"role": "tool", "tool_call_id": "c2", "content": "hear!"},
    ]


# provider -> the field of the body, and what stands in it behind the first message.
SENT_BACK: dict[str, tuple[str, list[Json]]] = {
    "Anthropic": ("messages", CLAUDE_SAID),
    "Bedrock": ("messages", CLAUDE_SAID),
    "OpenRouter": (
        "messages",
        chat_said(
            reasoning_details=[
                {
                    "type": "reasoning.text",
                    "text": "Need it.",
                    "format": REASONING_FORMAT,
                    "index": 0,
                    "signature": "c2ln",
                },
                {"type": "reasoning.encrypted", "data": "ZW5j", "format": REASONING_FORMAT, "index": 1},
            ]
        ),
    ),
    "OpenAI": ("messages", chat_said()),  # shows no reasoning, and takes none back
    "a compatible server": ("messages", chat_said(reasoning="Need it.")),
    "Responses": (
        "input",
        [
            {
                "id": "rs_loopback_000001_0",
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": "Need it."}],
                "encrypted_content": "c2ln",
            },
            {"id": "rs_loopback_000001_1", "type": "reasoning", "summary": [], "encrypted_content": "ZW5j"},
            *(
                {
                    "id": f"fc_loopback_000001_{index}",
                    "type": "function_call",
                    "status": "completed",
                    "arguments": "{}",
                    "call_id": id,
                    "name": name,
                }
                for index, id, name in ((2, "c1", "look"), (3, "c2", "hear"))
            ),
            {"type": "function_call_output", "call_id": "c1", "output": "look!"},
            {"type": "function_call_output", "call_id": "c2", "output": "hear!"},
        ],
    ),
    "Gemini": (
        "contents",
        [
            {
                "role": "model",
                "parts": [
                    {"functionCall": {"name": "look", "args": {}, "id": "c1"}, "thoughtSignature": "c2ln"},
                    {"functionCall": {"name": "hear", "args": {}, "id": "c2"}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"id": id, "name": name, "response": {"result": f"{name}!"}}}
                    for id, name in (("c1", "look"), ("c2", "hear"))
                ],
            },
        ],
    ),
}


@pytest.mark.parametrize("name", WITH_TOOLS)
def test_a_turn_goes_back_as_it_came_and_its_results_together(name: str) -> None:
    field, messages = SENT_BACK[name]
    response, ran, sent = turn(WITH_TOOLS[name], THOUGHT, Reply("ok"))
    assert (response.text, ran) == ("ok", ["look", "hear"])
    assert sent[1][field] == [*sent[0][field], *messages]


# Calls


@each_with_tools
def test_a_call_that_the_token_limit_cut_never_runs(speaker: Speaker) -> None:
    cut = Reply("Hm", ToolCall("look", '{"a": "b', id="c1"), stop_reason="max_tokens")
    response, ran, sent = turn(speaker, cut, Reply("never"))
    assert (response.stop_reason, response.text, ran, len(sent)) == ("max_tokens", "Hm", [], 1)
    assert [(call.name, call.input, call.unparseable_input is None) for call in response.tool_calls] == [
        ("look", {}, False)
    ]


@each_with_tools
def test_a_call_without_arguments_has_none(speaker: Speaker) -> None:
    response, ran, _ = turn(speaker, Reply(ToolCall("look", "", id="c1")), Reply("ok"))
    assert (response.text, ran) == ("ok", ["look"])
    assert [(call.input, call.unparseable_input) for call in response.tool_calls] == [({}, None)]


# A transcript, in which calls are text

CALL = '<function_calls>\n<invoke name="look">\n<parameter name="at">sky</parameter>\n</invoke>'
CLOSER = "</function_calls>"
EMPTY_CALL = '<function_calls><invoke name="look"/>'
IN_DATA = '<function_calls>\n<invoke name="look">\n<parameter name="at"><![CDATA[</invoke>'

# What a server answers that stops at the end of the calls and leaves it out; and one that knows of no stop sequences.
CALLED = {
    "left out": Reply(CALL + "\n", stop_reason="stop_sequence", stop_sequence=CLOSER),
    "left out behind an empty call": Reply(EMPTY_CALL, stop_reason="stop_sequence", stop_sequence=CLOSER),
    "ran on": Reply(f"{CALL}\n{CLOSER}\nUser: thanks"),
}
IN_XML: Json = {"formatter": AnthropicXmlFormatter(tool_mode="xml"), "thinks": False}


STOPS = {name: speaker for name, speaker in WITH_TOOLS.items() if name != "Responses"}  # which knows of none


@pytest.mark.parametrize("speaker", STOPS.values(), ids=STOPS)
@pytest.mark.parametrize("answer", CALLED.values(), ids=CALLED)
def test_a_call_in_a_transcript_runs_whatever_the_server_says_of_its_end(speaker: Speaker, answer: Reply) -> None:
    response, ran, sent = turn(speaker, answer, Reply("Blue."), **IN_XML)
    assert (response.stop_reason, ran, len(sent)) == ("end_turn", ["look"], 2)
    assert [block.type for block in response.content] == ["tool_use", "tool_result", "text"]
    assert response.raw_assistant_text.count(CLOSER) == 1


SAY_ONLY_STOP = {name: WITH_TOOLS[name] for name in ("OpenRouter", "OpenAI", "a compatible server", "Gemini")}
UNCALLED = {
    "a call that is not whole": ('<function_calls>\n<invoke name="look">\n<parameter name="at">sky', "end_turn"),
    "the end of a call that is data": (IN_DATA, "end_turn"),
    "a call that the token limit cut": (CALL, "max_tokens"),
}


@pytest.mark.parametrize("speaker", SAY_ONLY_STOP.values(), ids=SAY_ONLY_STOP)
@pytest.mark.parametrize("text, reason", UNCALLED.values(), ids=UNCALLED)
def test_what_is_not_the_end_of_a_call_is_not_taken_for_one(speaker: Speaker, text: str, reason: str) -> None:
    response, ran, sent = turn(speaker, Reply(text, stop_reason=reason), **IN_XML)
    assert (ran, len(sent), response.details.stop.unclosed_tool_block) == ([], 1, True)


# Requests


def rendered(speaker: Speaker, *messages: Json, **more: Json) -> Json:
    request = {"messages": messages, "config": {"model": speaker.model, "max_tokens": 256}, **more}
    return json.loads(speaker.made("http://h").render(request).body)


ANN = {"participant": "Ann", "content": "List three."}

LIMITS: dict[str, tuple[Speaker, Json]] = {
    "Anthropic": (ANTHROPIC, {"max_tokens": 256}),
    "Bedrock": (BEDROCK, {"max_tokens": 256}),
    "OpenRouter": (OPENROUTER, {"max_tokens": 256}),
    "a reasoning model of OpenAI's": (OPENAI, {"max_completion_tokens": 256}),
    "an older one": (OPENAI._replace(model="gpt-4o"), {"max_tokens": 256}),
    "a compatible server": (COMPATIBLE, {"max_tokens": 256}),
    "one that serves such a name": (COMPATIBLE._replace(model="gpt-5-mini"), {"max_tokens": 256}),
    "Responses": (RESPONSES, {"max_output_tokens": 256}),
    "Gemini": (GEMINI, {"generationConfig": {"maxOutputTokens": 256}}),
    "completions": (COMPLETIONS, {"max_tokens": 256}),
}
LIMIT_FIELDS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "generationConfig")


@pytest.mark.parametrize("speaker, limit", LIMITS.values(), ids=LIMITS)
def test_the_limit_has_the_name_that_the_model_knows(speaker: Speaker, limit: Json) -> None:
    body = rendered(speaker, ANN)
    assert {field: body[field] for field in LIMIT_FIELDS if field in body} == limit


def blocks(role: str, *texts: str, **last: Json) -> Json:
    content = [{"type": "text", "text": text} for text in texts]
    return {"role": role, "content": [*content[:-1], {**content[-1], **last}]}


BEGUN = {"participant": "Claude", "content": [{"type": "text", "text": "a\n"}, {"type": "text", "text": "1. apple \n"}]}
BEGINNINGS: dict[str, tuple[Speaker, Json]] = {
    "Anthropic": (ANTHROPIC, blocks("assistant", "a\n", "1. apple")),
    "Bedrock": (BEDROCK, blocks("assistant", "a\n", "1. apple")),
    "OpenRouter": (OPENROUTER, {"role": "assistant", "content": "a\n\n1. apple"}),
}


@pytest.mark.parametrize("speaker, last", BEGINNINGS.values(), ids=BEGINNINGS)
def test_the_beginning_of_an_answer_ends_in_no_white_space(speaker: Speaker, last: Json) -> None:
    assert rendered(speaker, ANN, BEGUN, prompt_caching=False)["messages"][-1] == last


def test_in_parts_neither() -> None:
    marked = {**BEGUN, "cache_breakpoint": True}
    last = blocks("assistant", "a\n", "1. apple", cache_control={"type": "ephemeral"})
    assert rendered(OPENROUTER, ANN, marked)["messages"][-1] == last
    picture = {"type": "image", "source": {"type": "url", "url": "http://h/a.png"}}
    ends_in_picture = {"participant": "Claude", "content": [{"type": "text", "text": "a\n"}, picture]}
    assert rendered(OPENROUTER, ANN, ends_in_picture)["messages"][-1]["content"] == [
        {"type": "text", "text": "a\n"},
        {"type": "image_url", "image_url": {"url": "http://h/a.png"}},
    ]


def test_an_answer_in_the_middle_stays_as_it_was() -> None:
    assert rendered(OPENROUTER, ANN, BEGUN, ANN)["messages"][1] == {"role": "assistant", "content": "a\n\n1. apple \n"}


def test_other_servers_continue_what_they_are_given() -> None:
    assert rendered(COMPATIBLE, ANN, BEGUN)["messages"][-1] == {"role": "assistant", "content": "a\n\n1. apple \n"}


CLAUDE = {"Anthropic": ANTHROPIC, "Bedrock": BEDROCK, "OpenRouter": OPENROUTER}


@pytest.mark.parametrize("speaker", CLAUDE.values(), ids=CLAUDE)
def test_no_marker_stands_on_a_text_that_is_not_sent(speaker: Speaker) -> None:
    ends_blank = {
        "participant": "Ann",
        "content": [{"type": "text", "text": text} for text in ("Read this.", "", " \n")],
        "cache_breakpoint": True,
    }
    assert rendered(speaker, ends_blank)["messages"] == [
        blocks("user", "Ann: Read this.", cache_control={"type": "ephemeral"})
    ]
