"""tool_names: what a name becomes by a provider's rule, and which names cannot be offered together."""

from __future__ import annotations

import pytest

from membrane_lite.errors import MembraneError
from membrane_lite.formatters.tool_names import STRICTEST, ToolNames, sent_tool_name, sent_tool_names
from membrane_lite.providers.anthropic import AnthropicAdapter
from membrane_lite.providers.bedrock import BedrockAdapter
from membrane_lite.providers.gemini import GeminiAdapter
from membrane_lite.providers.openai_chat import OpenAIAdapter
from membrane_lite.values.tools import Tool

ANTHROPIC, GEMINI = AnthropicAdapter.tool_names, GeminiAdapter.tool_names

SENT: dict[str, tuple[str, ToolNames, str]] = {
    "a plain name": ("get_weather-2", STRICTEST, "get_weather-2"),
    "a colon": ("world:look", STRICTEST, "world__look"),
    "two colons": ("bus::look", STRICTEST, "bus____look"),
    "a dot": ("fs.read", STRICTEST, "fs_read"),
    "a slash and a space": ("fs/read file", STRICTEST, "fs_read_file"),
    "letters of another script": ("s\u00f6k", STRICTEST, "s_k"),
    "half a surrogate pair": ("a\ud800", STRICTEST, "a_"),
    "a digit first": ("2fa", STRICTEST, "2fa"),
    "64 characters": ("a" * 64, STRICTEST, "a" * 64),
    # eight digits of sha256 of the whole name
    "65 characters": ("a" * 65, STRICTEST, "a" * 55 + "_635361c4"),
    "65 characters, Anthropic": ("a" * 65, ANTHROPIC, "a" * 65),
    "129 characters, Anthropic": ("a" * 129, ANTHROPIC, "a" * 119 + "_c12cb024"),
    "a dot, Anthropic": ("fs.read", ANTHROPIC, "fs_read"),
    "a dot, Gemini": ("fs.read", GEMINI, "fs.read"),
    "a colon, Gemini": ("world:look", GEMINI, "world__look"),
    "a digit first, Gemini": ("2fa", GEMINI, "_2fa"),
    "64 characters and a digit first, Gemini": ("2" * 64, GEMINI, "_" + "2" * 54 + "_4f2e8d65"),
}


@pytest.mark.parametrize("name, rule, sent", SENT.values(), ids=SENT.keys())
def test_a_name_as_it_is_sent(name: str, rule: ToolNames, sent: str) -> None:
    assert sent_tool_name(name, rule) == sent
    assert len(sent) <= rule.longest
    assert sent_tool_names([Tool(name)], rule) == {name: sent}


def test_a_name_that_was_sent_stays_as_it_is() -> None:
    for _, rule, sent in SENT.values():
        assert sent_tool_name(sent, rule) == sent


def test_names_that_differ_behind_the_longest_beginning_stay_apart() -> None:
    one, other = "a" * 64 + "b", "a" * 64 + "c"
    assert sent_tool_name(one) != sent_tool_name(other)


CLASHES: dict[str, tuple[list[str], ToolNames, str]] = {
    "one name twice": (
        ["look", "find", "look"],
        STRICTEST,
        "tools[2].name: 'look' would be sent as 'look', and so would 'look' of tools[0]; names must differ",
    ),
    "a dot and what stands for it": (
        ["a.b", "a_b"],
        ANTHROPIC,
        "tools[1].name: 'a_b' would be sent as 'a_b', and so would 'a.b' of tools[0]; names must differ",
    ),
}


@pytest.mark.parametrize("names, rule, told", CLASHES.values(), ids=CLASHES.keys())
def test_names_that_would_be_sent_alike(names: list[str], rule: ToolNames, told: str) -> None:
    with pytest.raises(MembraneError) as raised:
        sent_tool_names([Tool(name) for name in names], rule)
    assert (raised.value.type, raised.value.retryable, raised.value.message) == ("invalid_request", False, told)


def test_where_a_provider_takes_both_they_may_be_offered_together() -> None:
    assert sent_tool_names([Tool("a.b"), Tool("a_b")], GEMINI) == {"a.b": "a.b", "a_b": "a_b"}


def test_the_rules_of_the_providers() -> None:
    assert OpenAIAdapter.tool_names == BedrockAdapter.tool_names == STRICTEST
    assert ToolNames("a-zA-Z0-9_-", 128, "a-zA-Z0-9_-") == ANTHROPIC
    assert ToolNames("a-zA-Z0-9_.-", 64, "a-zA-Z_") == GEMINI
