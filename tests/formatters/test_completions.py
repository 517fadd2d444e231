"""CompletionsFormatter: the prompt, character by character, and what stops the answer to it."""

from __future__ import annotations

from typing import Any

import pytest

from membrane_lite import CompletionsFormatter, Image, Membrane, MembraneError, Message, MockAdapter, Text
from membrane_lite.formatters.base import BuildOptions, BuildSettings
from membrane_lite.values.content import Thinking, ToolResultBlock, ToolUse
from membrane_lite.values.reader import read_request

Json = Any
IMAGE = Image({"type": "url", "url": "https://example.org/a.png"})
CONFIG = {"model": "m", "max_tokens": 9}


def said(participant: str, *content: Any) -> Message:
    return Message(participant, [Text(block) if isinstance(block, str) else block for block in content])


def prompt(messages: list[Message], *, formatter: CompletionsFormatter | None = None, **options: Any) -> str:
    built = (formatter or CompletionsFormatter()).build_messages(messages, BuildOptions(**options))
    (message,) = built.messages
    assert message == {"role": "assistant", "content": built.assistant_prefill}
    assert (built.system_content, built.native_tools) == (None, None)
    return str(message["content"])


def stops(messages: list[Message], *, formatter: CompletionsFormatter | None = None, **options: Any) -> list[str]:
    return (formatter or CompletionsFormatter()).build_messages(messages, BuildOptions(**options)).stop_sequences


PROMPTS: dict[str, tuple[list[Message], dict[str, Any], str]] = {
    "nothing said yet": ([], {}, "Claude:"),
    "one message": ([said("Ann", "hi")], {}, "Ann: hi<|eot|>\n\nClaude:"),
    "a dialogue, by names": (
        [said("Ann", "hi"), said("Bob", "ho"), said("Claude", "yo")],
        {},
        "Ann: hi<|eot|>\n\nBob: ho<|eot|>\n\nClaude: yo<|eot|>\n\nClaude:",
    ),
    "another assistant": ([said("Claude", "hi")], {"assistant_participant": "Eve"}, "Claude: hi<|eot|>\n\nEve:"),
    "everything there can be": (
        [said("Ann", "hi")],
        {"system_prompt": [Text("s1"), Text("s2")], "context_prefix": "CP"},
        "s1\ns2\n\nClaude: CP<|eot|>\n\nAnn: hi<|eot|>\n\nClaude:",
    ),
    "a system text has no end of turn": ([], {"system_prompt": "Be brief."}, "Be brief.\n\nClaude:"),
    "an empty one has no place": ([], {"system_prompt": "", "context_prefix": ""}, "Claude:"),
    "text is not trimmed": ([said("Ann", "  hi \n")], {}, "Ann:   hi \n<|eot|>\n\nClaude:"),
    "what the model wrote first, white space too, goes back behind its bare name": (
        [said("Claude", " yo")],
        {},
        "Claude: yo<|eot|>\n\nClaude:",
    ),
    "blank messages are left out": ([said("Ann", " \n"), said("Bob")], {}, "Claude:"),
    "texts of a message are lines, an empty one too": (
        [said("Ann", "a", "", "b")],
        {},
        "Ann: a\n\nb<|eot|>\n\nClaude:",
    ),
    "what carries a provider's item says nothing": (
        [said("Ann", "a", Text("", raw_item={"type": "x"})), said("Bob", Text("", raw_item={"type": "x"}))],
        {},
        "Ann: a<|eot|>\n\nClaude:",
    ),
    "what only Python takes for blank": ([said("Ann", "\x1f")], {}, "Ann: \x1f<|eot|>\n\nClaude:"),
    "what Python takes for none": ([said("Ann", "\ufeff")], {}, "Claude:"),
    "only text is said": (
        [said("Ann", "a", IMAGE, Thinking("t"), ToolUse("1", "f"), ToolResultBlock("1", "r"), "b")],
        {},
        "Ann: a\nb<|eot|>\n\nClaude:",
    ),
}


@pytest.mark.parametrize("messages, options, expected", PROMPTS.values(), ids=PROMPTS.keys())
def test_a_prompt(messages: list[Message], options: dict[str, Any], expected: str) -> None:
    assert prompt(messages, **options) == expected


SETTINGS: dict[str, tuple[dict[str, Any], str, list[str]]] = {
    "another end of turn": (
        {"eot_token": "</s>"},
        "Ann: hi</s>\n\nClaude:",
        ["\n\nAnn:", "\nAnn:", "</s>"],
    ),
    "no end of turn": ({"eot_token": ""}, "Ann: hi\n\nClaude:", ["\n\nAnn:", "\nAnn:"]),
    "none, said otherwise": ({"eot_token": None}, "Ann: hi\n\nClaude:", ["\n\nAnn:", "\nAnn:"]),
    "names in brackets": (
        {"name_format": "[{name}] "},
        "[Ann] hi<|eot|>\n\n[Claude]",
        ["\n\n[Ann]", "\n[Ann]", "<|eot|>"],
    ),
    "another separator, which no stop is made of": (
        {"message_separator": "\n"},
        "Ann: hi<|eot|>\nClaude:",
        ["\n\nAnn:", "\nAnn:", "<|eot|>"],
    ),
    "stops in lower case too": (
        {"case_insensitive_stops": True},
        "Ann: hi<|eot|>\n\nClaude:",
        ["\n\nAnn:", "\nAnn:", "\n\nann:", "\nann:", "<|eot|>"],
    ),
}


@pytest.mark.parametrize("settings, text, stop", SETTINGS.values(), ids=SETTINGS.keys())
def test_a_setting(settings: dict[str, Any], text: str, stop: list[str]) -> None:
    formatter = CompletionsFormatter(**settings)
    assert (prompt([said("Ann", "hi")], formatter=formatter), stops([said("Ann", "hi")], formatter=formatter)) == (
        text,
        stop,
    )


def test_a_name_may_look_like_the_format_itself() -> None:
    assert prompt([said("{name}", "hi")]) == "{name}: hi<|eot|>\n\nClaude:"


CROWD = [said("Zoe", "1"), said("Claude", "2"), said("Ann"), said("Zoe", "3"), said("Bob", "4")]
STOPS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "in the order they first appear, the silent ones too, the assistant not": (
        {},
        ["\n\nZoe:", "\nZoe:", "\n\nAnn:", "\nAnn:", "\n\nBob:", "\nBob:", "<|eot|>"],
    ),
    "the caller's own come last": (
        {"additional_stop_sequences": ["END"], "max_participants_for_stop": 1},
        ["\n\nZoe:", "\nZoe:", "<|eot|>", "END"],
    ),
    "no participants at all": ({"max_participants_for_stop": 0}, ["<|eot|>"]),
}


@pytest.mark.parametrize("options, expected", STOPS.values(), ids=STOPS.keys())
def test_what_stops_an_answer(options: dict[str, Any], expected: list[str]) -> None:
    assert stops(CROWD, **options) == expected


def test_how_many_participants_stop_it_is_the_request_s_word_then_the_client_s_then_the_formatter_s() -> None:
    request = {"messages": CROWD, "config": CONFIG}
    formatter = CompletionsFormatter(max_participants_for_stop=2)
    assert len(stops(CROWD, formatter=formatter)) == 2 * 2 + 1
    for asked, count in ((request, 10), ({**request, "max_participants_for_stop": 1}, 1)):
        conversation = formatter.conversation(read_request(asked), BuildSettings())
        assert len(conversation.build().stop_sequences) == 2 * min(count, 3) + 1


def built(request: Json, **settings: Any) -> Any:
    return CompletionsFormatter().conversation(read_request(request), BuildSettings(**settings)).build()


def test_a_request_becomes_one_message_that_begins_the_answer() -> None:
    request = {
        "messages": [{"participant": "Ann", "content": "hi"}],
        "system": "S",
        "context_prefix": "C",
        "assistant_participant": "Eve",
        "stop_sequences": ["X"],
        "config": {**CONFIG, "temperature": 0, "thinking": {"enabled": True}},
        "provider_params": {"seed": 1},
    }
    given = built(request)
    assert given.messages == [{"role": "assistant", "content": "S\n\nEve: C<|eot|>\n\nAnn: hi<|eot|>\n\nEve:"}]
    assert given.stop_sequences == ["\n\nAnn:", "\nAnn:", "<|eot|>", "X"]
    assert (given.model, given.max_tokens, given.temperature, given.provider_params) == ("m", 9, 0, {"seed": 1})
    assert (given.system, given.tools, given.thinking) == (None, None, None)


class Heard:
    def __init__(self) -> None:
        self.messages: list[str] = []

    def warning(self, message: str, *args: object) -> None:
        self.messages.append(message % args)


@pytest.mark.parametrize("warns", [True, False])
def test_images_are_stripped_with_one_warning_for_all_of_them(warns: bool) -> None:
    logger = Heard()
    request = read_request({"messages": [said("Ann", "a", IMAGE, IMAGE), said("Ann", IMAGE)], "config": CONFIG})
    CompletionsFormatter(warn_on_image_strip=warns).conversation(request, BuildSettings(logger=logger)).build()
    text = "[CompletionsFormatter] Images were stripped from context (not supported in completions mode)"
    assert logger.messages == [text] * warns


def test_a_prompt_over_the_byte_budget_is_not_sent() -> None:
    request = {"messages": [{"participant": "Ann", "content": "x" * 2_000}], "config": CONFIG}
    with pytest.raises(MembraneError, match=r"the limit is 0\.0 MB") as caught:
        built(request, max_request_bytes=1_000)
    assert caught.value.type == "invalid_request"


TOOL = {"name": "f", "description": "", "input_schema": {"type": "object"}}
TOOL_REQUESTS: dict[str, dict[str, Any]] = {
    "tools": {"tools": [TOOL]},
    "native tools": {"tool_mode": "native"},
    "xml tools": {"tool_mode": "xml"},
}


@pytest.mark.parametrize("asked", TOOL_REQUESTS.values(), ids=TOOL_REQUESTS.keys())
def test_tools_are_unsupported_before_anything_is_sent(asked: dict[str, Any]) -> None:
    adapter = MockAdapter()
    membrane = Membrane(adapter, formatter=CompletionsFormatter())
    with pytest.raises(MembraneError) as caught:
        membrane.complete({"messages": [said("Ann", "hi")], "config": CONFIG, **asked})
    assert (caught.value.type, adapter.get_request_log()) == ("unsupported", [])


def test_nor_can_they_be_built_directly() -> None:
    attempts: list[Any] = [
        lambda: built({"messages": [said("Ann", "hi")], "config": CONFIG, "tools": [TOOL]}),
        lambda: prompt([], tools=[TOOL]),
    ]
    for attempt in attempts:
        with pytest.raises(MembraneError, match="carries none") as caught:
            attempt()
        assert caught.value.type == "unsupported"


def test_no_stop_is_taken_for_an_accident() -> None:
    request = read_request({"messages": [said("Ann", "hi")], "config": CONFIG})
    conversation = CompletionsFormatter().conversation(request, BuildSettings())
    assert conversation.false_stop() is None
