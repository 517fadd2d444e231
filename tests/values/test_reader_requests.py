"""reader: whole requests. A mistake is named by its path and the way out; objects and mappings give the same."""

from __future__ import annotations

from copy import deepcopy
from types import MappingProxyType
from typing import Any

import pytest

from membrane_lite.errors import MembraneError
from membrane_lite.values.content import Image, Text, ToolResultBlock, ToolUse
from membrane_lite.values.messages import Message
from membrane_lite.values.options import OverloadedRetry, RetryConfig
from membrane_lite.values.reader import (
    read_aborted_response,
    read_content,
    read_message,
    read_request,
    read_response,
    read_retry_config,
    read_tool_results,
)
from membrane_lite.values.requests import GenerationConfig, Request, ThinkingConfig
from membrane_lite.values.tools import Tool, ToolResult

CONFIG = {"model": "m"}
SAID = {"participant": "Ann", "content": "hi"}
REQUEST_FIELDS = (
    "messages, config, system, tools, tool_mode, stop_sequences, max_participants_for_stop, prompt_caching, cache_ttl, "
    "floating_cache_marker, context_prefix, prefill_user_message, assistant_participant, streaming, provider_params, "
    "shed_oversize_images"
)


def request(**more: Any) -> dict[str, Any]:
    return {"messages": [SAID], "config": CONFIG, **more}


MISTAKES = {
    "no request at all": (None, "request: found NoneType None; expected a Request or a mapping of its shape"),
    "a list": ([SAID], f"request: found list [{SAID!r}]; expected a Request or a mapping of its shape"),
    "a string": ("hi", "request: found str 'hi'; expected a Request or a mapping of its shape"),
    "an empty mapping": ({}, "messages: missing; a Request needs it"),
    "no config": ({"messages": [SAID]}, "config: missing; a Request needs it"),
    "no model": (request(config={}), "config.model: missing; a GenerationConfig needs it"),
    "no messages": (request(messages=[]), "messages: the list is empty; expected at least one message"),
    "a misspelt field": (request(mesages=[]), "request: no field 'mesages'; did you mean 'messages'?"),
    "a field of another library": (request(n=2), f"request: no field 'n'; it takes {REQUEST_FIELDS}."),
    "a key that is no string": ({**request(), 7: 1}, f"request: no field 7; it takes {REQUEST_FIELDS}."),
    "a field in camel case": (request(toolMode="xml"), "request: no field 'toolMode'; did you mean 'tool_mode'?"),
    "a sampling field at the root": (
        request(temperature=0.5),
        f"request: no field 'temperature'; it takes {REQUEST_FIELDS}.",
    ),
    "a misspelt field of the config": (
        request(config={"model": "m", "maxtokens": 5}),
        "config: no field 'maxtokens'; did you mean 'max_tokens'?",
    ),
    "a misspelt field of the thinking": (
        request(config={"model": "m", "thinking": {"budget": 5}}),
        "config.thinking: no field 'budget'; did you mean 'budget_tokens'?",
    ),
    "a role in place of a participant": (
        request(messages=[SAID, {"role": "user", "content": "x"}]),
        "messages[1]: no field 'role'; it takes participant, content, metadata, cache_breakpoint.",
    ),
    "a message without a participant": (
        request(messages=[{"content": "x"}]),
        "messages[0].participant: missing; a Message needs it",
    ),
    "a message that is a string": (
        request(messages=["hi"]),
        "messages[0]: found str 'hi'; expected a Message or a mapping of its shape",
    ),
    "messages that are one message": (request(messages=SAID), f"messages: found dict {SAID!r}; expected a list"),
    "a block deep inside": (
        request(
            messages=[SAID, SAID, {"participant": "Ann", "content": [{"type": "text", "text": "a"}, {"typ": "x"}]}]
        ),
        "messages[2].content[1]: no field 'typ'; did you mean 'type'?",
    ),
    "the field of an image": (
        request(
            messages=[{"participant": "Ann", "content": [{"type": "image", "source": {"type": "url", "uri": "u"}}]}]
        ),
        "messages[0].content[0].source: no field 'uri'; did you mean 'url'?",
    ),
    "a block object with a wrong field": (
        request(messages=[Message("Ann", [Text(7)])]),  # type: ignore[arg-type]
        "messages[0].content[0].text: found int 7; expected a string",
    ),
    "a message object with a wrong field": (
        request(messages=[Message("Ann", [], cache_breakpoint=1)]),  # type: ignore[arg-type]
        "messages[0].cache_breakpoint: found int 1; expected True or False",
    ),
    "a config object with a wrong field": (
        Request([Message("Ann", [])], GenerationConfig("m", temperature="hot")),  # type: ignore[arg-type]
        "config.temperature: found str 'hot'; expected a finite number",
    ),
    "a misspelt field of a tool": (
        request(tools=[{"name": "t", "inputSchema": {}}]),
        "tools[0]: no field 'inputSchema'; did you mean 'input_schema'?",
    ),
    "a system text that is an image": (
        request(system=[{"type": "text", "text": "a"}, {"type": "image", "source": {"type": "url", "url": "u"}}]),
        "system[1].type: found 'image'; expected only text blocks",
    ),
    "a field of the stop sequences": (
        request(stop_sequences={"sequences": ["a"], "strategy": "x"}),
        "stop_sequences: no field 'strategy'; it takes sequences.",
    ),
    "stop sequences without any": (
        request(stop_sequences={}),
        "stop_sequences.sequences: found NoneType None; expected a list",
    ),
    "a stop sequence that is no string": (
        request(stop_sequences=["a", 7]),
        "stop_sequences[1]: found int 7; expected a string",
    ),
    "a value too long to be shown": (
        request(system=["x" * 300]),
        f"system[0]: found str '{'x' * 199}...; expected a content block or a mapping with a `type`",
    ),
}


@pytest.mark.parametrize("given, text", MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_named_by_its_path(given: Any, text: str) -> None:
    with pytest.raises(MembraneError) as raised:
        read_request(given)
    assert (raised.value.type, raised.value.retryable, raised.value.message) == ("invalid_request", False, text)


PNG = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}

AS_MAPPING: dict[str, Any] = {
    "messages": [
        {"participant": "Ann", "content": "hi", "metadata": {"source_id": "1"}, "cache_breakpoint": True},
        {
            "participant": "Claude",
            "content": [
                {"type": "text", "text": "on it"},
                {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": [1, 2]}},
            ],
        },
        {
            "participant": "User",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "c1",
                    "content": [{"type": "text", "text": "seen"}, {"type": "image", "source": PNG}],
                    "is_error": False,
                }
            ],
        },
    ],
    "config": {"model": "m", "max_tokens": 5, "temperature": 0.5, "thinking": {"type": "adaptive"}},
    "system": [{"type": "text", "text": "be kind", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
    "tools": [{"name": "look", "description": "looks", "input_schema": {"type": "object"}}],
    "stop_sequences": {"sequences": ["\n\n"]},
    "provider_params": {"seed": 7},
}


def as_objects() -> Request:
    return Request(
        messages=[
            Message("Ann", [Text("hi")], metadata={"source_id": "1"}, cache_breakpoint=True),
            Message("Claude", [Text("on it"), ToolUse("c1", "look", {"at": [1, 2]})]),
            Message("User", [ToolResultBlock("c1", [Text("seen"), Image(PNG)], is_error=False)]),
        ],
        config=GenerationConfig("m", max_tokens=5, temperature=0.5, thinking=ThinkingConfig(type="adaptive")),
        system=[Text("be kind", cache_control={"type": "ephemeral", "ttl": "1h"})],
        tools=[Tool("look", "looks", {"type": "object"})],
        stop_sequences=["\n\n"],
        provider_params={"seed": 7},
    )


FORMS = {
    "a mapping": AS_MAPPING,
    "objects": as_objects(),
    "a mapping of objects": vars(as_objects()),
    "another kind of mapping": MappingProxyType(AS_MAPPING),
    "what to_dict gives": as_objects().to_dict(),
}


@pytest.mark.parametrize("given", FORMS.values(), ids=FORMS.keys())
def test_every_form_is_read_as_the_same_request(given: Any) -> None:
    assert read_request(given) == as_objects()


@pytest.mark.parametrize("given", FORMS.values(), ids=FORMS.keys())
def test_what_is_given_is_not_changed_nor_kept(given: Any) -> None:
    before = repr(given)
    read = read_request(given)
    read.messages[0].content.append(Text("more"))
    read.messages[1].content.clear()
    read.messages.pop()
    read.tools.append(Tool("other"))  # type: ignore[union-attr]
    read.stop_sequences.append("x")  # type: ignore[union-attr]
    read.provider_params.update(seed=8)  # type: ignore[union-attr]
    read.messages[0].metadata.update(source_id="2")  # type: ignore[union-attr]
    assert repr(given) == before


def test_a_string_means_one_text_block() -> None:
    assert read_message({"participant": "Ann", "content": "hi"}, "message") == Message("Ann", [Text("hi")])
    assert read_content("", "content") == [Text("")]


def test_a_field_given_as_none_is_a_field_left_out() -> None:
    optional = ("system", "tools", "stop_sequences", "prompt_caching", "cache_ttl", "context_prefix", "provider_params")
    assert read_request(request(**dict.fromkeys(optional))) == read_request(request())


def test_results_of_tools() -> None:
    given = ({"tool_use_id": "a", "content": "x"}, ToolResult("b", [Text("y")], is_error=True))
    assert read_tool_results(given) == [ToolResult("a", "x"), ToolResult("b", [Text("y")], is_error=True)]


RESULTS = {
    "nothing": (None, "on_tool_calls: found NoneType None; expected a list of tool results"),
    "one result": (
        {"tool_use_id": "a"},
        "on_tool_calls: found dict {'tool_use_id': 'a'}; expected a list of tool results",
    ),
    "a string": (["done"], "tool_results[0]: found str 'done'; expected a ToolResult or a mapping of its shape"),
    "a call's name for the id": (
        [{"id": "a", "content": "x"}],
        "tool_results[0]: no field 'id'; it takes tool_use_id, content, is_error.",
    ),
    "no content": ([{"tool_use_id": "a"}], "tool_results[0].content: missing; a ToolResult needs it"),
}


@pytest.mark.parametrize("given, text", RESULTS.values(), ids=RESULTS.keys())
def test_results_that_are_none(given: Any, text: str) -> None:
    with pytest.raises(MembraneError) as raised:
        read_tool_results(given)
    assert raised.value.message == text


def test_a_partial_retry_setting_keeps_the_other_defaults() -> None:
    given = {"max_retries": 5, "overloaded": {"max_retries": 0}}
    assert read_retry_config(given) == RetryConfig(
        max_retries=5,
        retry_delay_ms=1_000,
        backoff_multiplier=2,
        max_retry_delay_ms=30_000,
        overloaded=OverloadedRetry(
            max_retries=0, retry_delay_ms=10_000, backoff_multiplier=2, max_retry_delay_ms=300_000
        ),
    )


ROOTS = {
    "retry": (read_retry_config, "retry: no field 'maxretries'; did you mean 'max_retries'?", {"maxretries": 1}),
    "response": (read_response, "response: no field 'contents'; did you mean 'content'?", {"contents": []}),
    "aborted": (
        read_aborted_response,
        "aborted_response: no field 'reson'; did you mean 'reason'?",
        {"reson": "user"},
    ),
}


@pytest.mark.parametrize("read, text, given", ROOTS.values(), ids=ROOTS.keys())
def test_what_is_misspelt_at_another_root(read: Any, text: str, given: Any) -> None:
    with pytest.raises(MembraneError) as raised:
        read(given)
    assert raised.value.message == text


def test_reading_twice_gives_the_same() -> None:
    once = read_request(deepcopy(AS_MAPPING))
    assert read_request(once) == once
