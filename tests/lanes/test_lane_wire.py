"""wire: the exact bytes of every body, and what is read of every answer."""

from __future__ import annotations

import math
from typing import Any

import pytest
from lanes.lane_stage import refused

from membrane_lite.lanes import (
    INCOMPLETE_STOP_REASONS,
    MODELS,
    GenerateOptions,
    StructuredTool,
    as_response_body,
    build_invoke_body,
    clamp_tokens,
    incomplete_reason,
    read_text,
    read_tool_input,
)
from membrane_lite.lanes.wire import normalize_openai_response

CLAMPED: dict[str, tuple[float | None, int]] = {
    "none is the default": (None, 64_000),
    "not a number is no budget: the default": (math.nan, 64_000),
    "within the bounds": (8_192, 8_192),
    "the ceiling": (128_000, 128_000),
    "above it": (128_001, 128_000),
    "infinity meets the ceiling": (math.inf, 128_000),
    "more than a float holds": (10**400, 128_000),
    "zero meets the floor": (0, 1),
    "below zero": (-5, 1),
    "minus infinity": (-math.inf, 1),
    "a fraction is cut towards zero": (99.9, 99),
    "and then meets the floor": (0.9, 1),
    "below zero it is cut upwards": (-0.5, 1),
}


@pytest.mark.parametrize("requested, budget", CLAMPED.values(), ids=CLAMPED.keys())
def test_clamp_tokens(requested: float | None, budget: int) -> None:
    clamped = clamp_tokens(requested)
    assert (clamped, type(clamped)) == (budget, int)


@pytest.mark.parametrize("requested", ["64000", True, [1]])
def test_clamp_tokens_takes_numbers_only(requested: Any) -> None:
    assert refused(lambda: clamp_tokens(requested)).message.startswith("max_tokens: found ")


# Golden bodies: five models, each in prose, structured, with a cached system, and at every effort

TOOL = StructuredTool({"type": "object", "properties": {"n": {"type": "integer"}}}, "How many.")
SCHEMA = '{"type":"object","properties":{"n":{"type":"integer"}}}'
THINKING = {"sonnet-5": "", "opus-5": '"thinking":{"type":"adaptive"},', "fable-5": '"thinking":{"type":"adaptive"},'}
CLAUDE = tuple(THINKING)
GPT = ("gpt-5.6-sol", "gpt-5.6-terra")
ANTHROPIC_HEAD = '{"anthropic_version":"bedrock-2023-05-31","max_tokens":64000,'
HI = '"messages":[{"role":"user","content":"Hi"}],'
ANTHROPIC_TOOL = (
    ',"tools":[{"name":"emit","description":"How many.","input_schema":' + SCHEMA + "}],"
    '"tool_choice":{"type":"tool","name":"emit"}'
)
OPENAI_FORMAT = (
    ',"response_format":{"type":"json_schema","json_schema":{"name":"emit","description":"How many.","strict":true,'
    '"schema":' + SCHEMA + "}}"
)
CACHED_SYSTEM = '"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],'
OFF = ',"prompt_cache_options":{"mode":"explicit"}}'


@pytest.mark.parametrize("effort", ["low", "medium", "high", "xhigh"])
@pytest.mark.parametrize("key", CLAUDE)
def test_build_invoke_body_of_prose_in_the_anthropic_dialect(key: Any, effort: Any) -> None:
    body = build_invoke_body(key, "Hi", GenerateOptions(effort))
    assert body == ANTHROPIC_HEAD + HI + THINKING[key] + '"output_config":{"effort":"' + effort + '"}}'


@pytest.mark.parametrize("effort", ["low", "medium", "high", "xhigh"])
@pytest.mark.parametrize("key", GPT)
def test_build_invoke_body_of_prose_in_the_openai_dialect(key: Any, effort: Any) -> None:
    body = build_invoke_body(key, "Hi", GenerateOptions(effort))
    assert body == "{" + HI + '"max_completion_tokens":64000,"reasoning_effort":"' + effort + '"' + OFF


@pytest.mark.parametrize("key", CLAUDE)
def test_build_invoke_body_of_a_structured_call_forces_the_tool(key: Any) -> None:
    body = build_invoke_body(key, "Hi", GenerateOptions("high"), TOOL)
    assert body == ANTHROPIC_HEAD + HI + THINKING[key] + '"output_config":{"effort":"high"}' + ANTHROPIC_TOOL + "}"


@pytest.mark.parametrize("key", GPT)
def test_build_invoke_body_of_a_structured_call_asks_for_a_strict_schema(key: Any) -> None:
    body = build_invoke_body(key, "Hi", GenerateOptions("high"), TOOL)
    assert body == "{" + HI + '"max_completion_tokens":64000,"reasoning_effort":"high"' + OPENAI_FORMAT + OFF


@pytest.mark.parametrize("key", CLAUDE)
def test_build_invoke_body_of_a_cached_system_is_a_marked_block(key: Any) -> None:
    body = build_invoke_body(key, "Hi", GenerateOptions("low", system="Be brief.", cache_system=True))
    assert body == ANTHROPIC_HEAD + CACHED_SYSTEM + HI + THINKING[key] + '"output_config":{"effort":"low"}}'


@pytest.mark.parametrize("key", GPT)
def test_build_invoke_body_of_a_cached_system_is_a_plain_message_in_the_openai_dialect(key: Any) -> None:
    body = build_invoke_body(key, "Hi", GenerateOptions("low", system="Be brief.", cache_system=True))
    messages = '"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"}],'
    assert body == "{" + messages + '"max_completion_tokens":64000,"reasoning_effort":"low"' + OFF


def test_build_invoke_body_has_a_plain_system_where_it_is_not_cached() -> None:
    body = build_invoke_body("sonnet-5", "Hi", GenerateOptions("low", system="Be brief."))
    assert body == ANTHROPIC_HEAD + '"system":"Be brief.",' + HI + '"output_config":{"effort":"low"}}'


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("system", [None, ""])
@pytest.mark.parametrize("key", [row.key for row in MODELS])
def test_build_invoke_body_leaves_an_absent_or_empty_system_out(key: Any, system: Any, cached: bool) -> None:
    given = GenerateOptions("low", system=system, cache_system=cached)
    assert build_invoke_body(key, "Hi", given) == build_invoke_body(key, "Hi", GenerateOptions("low"))


def test_build_invoke_body_says_nothing_of_caching_where_it_is_implicit() -> None:
    body = build_invoke_body("gpt-5.6-sol", "Hi", GenerateOptions("low", openai_prompt_cache="implicit"))
    assert body == "{" + HI + '"max_completion_tokens":64000,"reasoning_effort":"low"}'
    claude = build_invoke_body("opus-5", "Hi", GenerateOptions("low", openai_prompt_cache="off"))
    assert claude == build_invoke_body("opus-5", "Hi", GenerateOptions("low"))


def test_build_invoke_body_clamps_the_budget_and_leaves_an_absent_description_out() -> None:
    tool = StructuredTool({"type": "object"})
    options = GenerateOptions("low", max_tokens=1_000_000)
    assert build_invoke_body("sonnet-5", "é\ud800", options, tool) == (
        '{"anthropic_version":"bedrock-2023-05-31","max_tokens":128000,"messages":[{"role":"user","content":"é\ufffd"}],'
        '"output_config":{"effort":"low"},"tools":[{"name":"emit","input_schema":{"type":"object"}}],'
        '"tool_choice":{"type":"tool","name":"emit"}}'
    )


def test_build_invoke_body_takes_a_mapping_of_the_same_shape() -> None:
    given = {"effort": "low", "system": "Be brief.", "cache_system": True, "max_tokens": 7}
    assert build_invoke_body("opus-5", "Hi", given) == build_invoke_body("opus-5", "Hi", GenerateOptions(**given))


WRONG: dict[str, tuple[str, Any, Any, str]] = {
    "a key without a row": (
        "opus",
        "Hi",
        {"effort": "low"},
        "model_key: found 'opus'; expected one of sonnet-5, opus-5",
    ),
    "an effort that is none": (
        "opus-5",
        "Hi",
        {"effort": "max"},
        "options.effort: found 'max'; expected one of low, medium, high, xhigh",
    ),
    "no effort": ("opus-5", "Hi", {}, "options.effort: missing; a GenerateOptions needs it"),
    "a misspelt key": (
        "opus-5",
        "Hi",
        {"effort": "low", "max_token": 7},
        "options: no field 'max_token'; did you mean 'max_tokens'?",
    ),
    "no options": ("opus-5", "Hi", None, "options: found NoneType None; expected a GenerateOptions or a mapping"),
    "a word of caching that is none": (
        "gpt-5.6-sol",
        "Hi",
        {"effort": "low", "openai_prompt_cache": "Off"},
        "options.openai_prompt_cache: found 'Off'; expected one of off, implicit",
    ),
    "a system that is no text": (
        "opus-5",
        "Hi",
        {"effort": "low", "system": ["Be brief."]},
        "options.system: found list ['Be brief.']; expected a string",
    ),
    "a flag that is a word": (
        "opus-5",
        "Hi",
        {"effort": "low", "cache_system": "no"},
        "options.cache_system: found str 'no'; expected true or false",
    ),
    "a prompt that is no text": ("opus-5", ["Hi"], {"effort": "low"}, "prompt: found list ['Hi']; expected a string"),
}


@pytest.mark.parametrize("key, prompt, options, words", WRONG.values(), ids=WRONG.keys())
def test_build_invoke_body_refuses(key: Any, prompt: Any, options: Any, words: str) -> None:
    error = refused(lambda: build_invoke_body(key, prompt, options))
    assert (error.type, error.message[: len(words)]) == ("invalid_request", words)


def test_build_invoke_body_takes_a_structured_tool_and_no_schema() -> None:
    error = refused(lambda: build_invoke_body("opus-5", "Hi", {"effort": "low"}, {"type": "object"}))  # type: ignore[arg-type]
    assert error.message == "tool: found dict {'type': 'object'}; expected a StructuredTool"


# Reading

THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
EMIT = {"type": "tool_use", "id": "t1", "name": "emit", "input": {"n": 3}}
OTHER = {"type": "tool_use", "id": "t2", "name": "look", "input": {"n": 4}}


@pytest.mark.parametrize("payload", [None, "text", 7, [], [{"content": []}], True])
def test_as_response_body_of_what_is_no_object_has_no_fields(payload: Any) -> None:
    parsed = as_response_body(payload)
    assert (parsed, read_text(parsed), read_tool_input(parsed), incomplete_reason(parsed)) == ({}, "", None, None)


def test_as_response_body_of_an_answer_is_the_answer() -> None:
    payload = {"id": "m", "content": [EMIT], "stop_reason": "tool_use"}
    assert as_response_body(payload) == payload


STOPS: dict[str, tuple[Any, str | None]] = {
    "max_tokens": ("max_tokens", "max_tokens"),
    "refusal": ("refusal", "refusal"),
    "a natural end": ("end_turn", None),
    "a tool call": ("tool_use", None),
    "null": (None, None),
    "something else than a word": (["max_tokens"], None),
}


@pytest.mark.parametrize("reason, incomplete", STOPS.values(), ids=STOPS.keys())
def test_incomplete_reason(reason: Any, incomplete: str | None) -> None:
    assert incomplete_reason({"content": [], "stop_reason": reason}) == incomplete
    assert frozenset({"max_tokens", "refusal"}) == INCOMPLETE_STOP_REASONS


TEXTS: dict[str, tuple[Any, str]] = {
    "text blocks are joined, thinking is dropped": (
        [THOUGHT, {"type": "text", "text": "Hel"}, THOUGHT, {"type": "text", "text": "lo"}],
        "Hello",
    ),
    "a text in a block of another type is none": ([{"type": "thinking", "text": "Hm."}, OTHER], ""),
    "what is no block is passed over": ([None, "x", {"type": "text"}, {"type": "text", "text": 7}], ""),
    "a content that is no list": ("Hello", ""),
}


@pytest.mark.parametrize("content, text", TEXTS.values(), ids=TEXTS.keys())
def test_read_text(content: Any, text: str) -> None:
    assert read_text({"content": content}) == text


INPUTS: dict[str, tuple[Any, Any]] = {
    "by its name, not by its place": ([THOUGHT, {"type": "text", "text": "So:"}, OTHER, EMIT], {"n": 3}),
    "no call at all": ([THOUGHT, {"type": "text", "text": "I would rather not."}], None),
    "another tool's call": ([OTHER], None),
    "another block of that name": ([{"type": "text", "name": "emit", "input": {"n": 5}}], None),
    "a call without an input": ([{"type": "tool_use", "name": "emit"}], None),
}


@pytest.mark.parametrize("content, input", INPUTS.values(), ids=INPUTS.keys())
def test_read_tool_input(content: Any, input: Any) -> None:
    assert read_tool_input({"content": content}) == input


def completion(content: Any, finish_reason: Any = "stop", **message: Any) -> Any:
    return {
        "choices": [{"index": 0, "message": {"content": content, **message}, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13},
    }


def folded(stop_reason: str, *content: Any, counted: bool = True) -> Any:
    usage = {"input_tokens": 9, "output_tokens": 4} if counted else {}
    return {"content": list(content), "stop_reason": stop_reason, "usage": usage}


def emitted(input: Any) -> Any:
    return {"type": "tool_use", "name": "emit", "input": input}


FOLDED: dict[str, tuple[Any, bool, Any]] = {
    "prose": (completion("Hello"), False, folded("end_turn", {"type": "text", "text": "Hello"})),
    "a structured answer is a call of the tool": (completion('{"n": 3}'), True, folded("end_turn", emitted({"n": 3}))),
    "one that is no JSON stays text, for the decode": (completion("three"), True, folded("end_turn", emitted("three"))),
    "length is max_tokens": (completion(None, "length"), False, folded("max_tokens")),
    "a content filter is a refusal": (completion("", "content_filter"), True, folded("refusal")),
    "so is a message that says it": (completion(None, refusal="I cannot help."), True, folded("refusal")),
    "every other word is a natural end": (completion(None, "odd"), False, folded("end_turn")),
    "no choices": ({"choices": []}, False, folded("end_turn", counted=False)),
    "no object": ("text", True, folded("end_turn", counted=False)),
}


@pytest.mark.parametrize("payload, structured, parsed", FOLDED.values(), ids=FOLDED.keys())
def test_normalize_openai_response(payload: Any, structured: bool, parsed: Any) -> None:
    assert normalize_openai_response(payload, structured) == parsed
