"""model_client: prose and objects, and how every failure is divided between the two errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from lanes.lane_stage import Recorder, StillClock, refused

from membrane_lite import MembraneError
from membrane_lite.lanes import (
    MODELS,
    GenerateOptions,
    Generation,
    LlmConfig,
    LlmContractViolation,
    ModelClient,
    ModelClientDefaults,
    ModelClientLive,
    ModelUnavailable,
    StructuredRequest,
    make_model_client,
    to_input_schema,
)

Json = Any
LOW = GenerateOptions("low")
OPUS, SOL = "global.anthropic.claude-opus-5", "global.openai.gpt-5.6-sol"


@dataclass
class Count:
    """How many there are."""

    n: int


def message(*blocks: Json, stop_reason: Any = "end_turn", **usage: int) -> Json:
    return {"content": list(blocks), "stop_reason": stop_reason, "usage": usage}


def text(said: str) -> Json:
    return {"type": "text", "text": said}


def emit(input: Json) -> Json:
    return {"type": "tool_use", "id": "t", "name": "emit", "input": input}


def completion(content: Any, finish_reason: str = "stop") -> Json:
    choice = {"message": {"role": "assistant", "content": content}, "finish_reason": finish_reason}
    return {"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 4}}


THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}


def test_generate_gives_text_counts_and_latency() -> None:
    clock = StillClock()

    class Slow(Recorder):
        def send(self, model_id: str, body: str, signal: Any) -> bytes:
            clock.sleep(1.25)
            return super().send(model_id, body, signal)

    answer = message(THOUGHT, text("Hel"), text("lo"), input_tokens=9, output_tokens=4)
    client = Slow([answer])
    generation = make_model_client(client, clock=clock).generate("opus-5", "Hi", LOW)
    assert generation == Generation("Hello", input_tokens=9, output_tokens=4, latency_ms=1_250)
    assert [model for model, _ in client.sent] == [OPUS]


def test_generate_counts_are_none_where_the_provider_gave_none() -> None:
    generation = make_model_client(Recorder([{"content": [text("x")]}]), clock=StillClock()).generate(
        "opus-5", "Hi", LOW
    )
    assert generation == Generation("x", input_tokens=None, output_tokens=None, latency_ms=0)


def test_generate_in_the_openai_dialect_gives_the_same() -> None:
    client = Recorder([completion("Hello")])
    generation = make_model_client(client, clock=StillClock()).generate("gpt-5.6-sol", "Hi", {"effort": "low"})
    assert generation == Generation("Hello", input_tokens=9, output_tokens=4, latency_ms=0)
    assert client.sent[0][0] == SOL


CUT, REFUSED = (f"the answer is incomplete: stop_reason {word}" for word in ("max_tokens", "refusal"))
NO_TEXT = "the answer holds no text"
INCOMPLETE: dict[str, tuple[Any, Json, str]] = {
    "cut short": ("opus-5", message(text("Hel"), stop_reason="max_tokens"), CUT),
    "a refusal": ("opus-5", message(text("No."), stop_reason="refusal"), REFUSED),
    "cut short, OpenAI's": ("gpt-5.6-sol", completion("Hel", "length"), CUT),
    "a filter, OpenAI's": ("gpt-5.6-sol", completion(None, "content_filter"), REFUSED),
    "no text": ("opus-5", message(THOUGHT), NO_TEXT),
    "a blank text": ("opus-5", message(text(" \n")), NO_TEXT),
    "no content": ("gpt-5.6-sol", completion(None), NO_TEXT),
    "no object": ("opus-5", ["text"], NO_TEXT),
}


@pytest.mark.parametrize("key, answer, reason", INCOMPLETE.values(), ids=INCOMPLETE.keys())
def test_generate_is_model_unavailable_for(key: Any, answer: Json, reason: str) -> None:
    error = refused(lambda: make_model_client(Recorder([answer])).generate(key, "Hi", LOW), ModelUnavailable)
    id = next(row.model_id for row in MODELS if row.key == key)
    assert (error.model_id, error.reason, error.message) == (id, reason, f"{id}: {reason}")
    assert error.to_dict() == {"type": "unknown", "message": f"{id}: {reason}", "retryable": False}


def test_generate_object_decodes_the_tools_input() -> None:
    client = Recorder([message(THOUGHT, text("So:"), emit({"n": 3}), stop_reason="tool_use")])
    request = StructuredRequest("opus-5", "How many?", Count, "high", system="Be exact.", tool_description="A count.")
    assert make_model_client(client).generate_object(request) == Count(3)
    model, body = client.sent[0]
    tool = {"name": "emit", "description": "A count.", "input_schema": to_input_schema(Count)}
    assert (model, body["tools"], body["system"]) == (OPUS, [tool], "Be exact.")


def test_generate_object_in_the_openai_dialect_has_one_shape_to_read() -> None:
    client = Recorder([completion('{"n": 3}')])
    assert make_model_client(client).generate_object(StructuredRequest("gpt-5.6-sol", "?", Count, "low")) == Count(3)
    assert client.sent[0][1]["response_format"]["json_schema"]["schema"] == to_input_schema(Count)


def test_generate_object_in_the_openai_dialect_writes_what_is_optional_as_null() -> None:
    """Strict mode refuses a schema with an optional property, as it does one with keywords that it does not know."""
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "why": {"type": "string"}},
        "required": ["n"],
    }
    client = Recorder(
        [completion('{"n": 3, "why": null}'), completion('{"n": 3, "why": "so"}'), message(emit({"n": 3}))]
    )
    service = make_model_client(client)
    keys = ("gpt-5.6-sol", "gpt-5.6-terra", "opus-5")
    found = [service.generate_object(StructuredRequest(key, "?", schema, "low")) for key in keys]
    assert found == [{"n": 3}, {"n": 3, "why": "so"}, {"n": 3}]
    assert client.sent[0][1]["response_format"]["json_schema"]["schema"] == {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "why": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
        "required": ["n", "why"],
        "additionalProperties": False,
    }
    assert client.sent[2][1]["tools"][0]["input_schema"] == schema


def test_generate_object_in_the_openai_dialect_refuses_a_schema_that_strict_mode_has_no_form_for() -> None:
    schema = {"type": "object", "properties": {"counts": {"type": "object"}}}
    client = Recorder([message(emit({"counts": {"a": 1}}))])
    service = make_model_client(client)
    error = refused(lambda: service.generate_object(StructuredRequest("gpt-5.6-sol", "?", schema, "low")))
    assert (error.type, len(client.sent)) == ("unsupported", 0)
    assert service.generate_object(StructuredRequest("opus-5", "?", schema, "low")) == {"counts": {"a": 1}}


def test_generate_object_with_a_schema_by_hand_widens_what_is_asked_and_not_what_is_accepted() -> None:
    wide = {"type": "object", "properties": {"n": {"type": "integer"}, "why": {"type": "string"}}}
    client = Recorder([message(emit({"n": 3})), message(emit({"n": 3, "why": "so"}))])
    request = StructuredRequest("opus-5", "?", Count, "low", input_schema=wide)
    service = make_model_client(client)
    assert service.generate_object(request) == Count(3)
    refused(lambda: service.generate_object(request), LlmContractViolation)
    assert [body["tools"][0]["input_schema"] for _, body in client.sent] == [wide, wide]


def test_generate_object_in_the_openai_dialect_sends_a_schema_by_hand_as_it_is() -> None:
    by_hand = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 0}}, "title": "by hand"}
    client = Recorder([completion('{"n": 3}')])
    request = StructuredRequest("gpt-5.6-sol", "?", Count, "low", input_schema=by_hand)
    assert make_model_client(client).generate_object(request) == Count(3)
    assert client.sent[0][1]["response_format"]["json_schema"] == {"name": "emit", "strict": True, "schema": by_hand}


@dataclass
class Noted:
    n: int
    note: str = ""


def test_generate_object_with_a_schema_by_hand_takes_the_answer_as_it_is_too() -> None:
    """What the derived schema's null stood for is known; what the hand's does, is not."""
    client = Recorder([completion('{"n": 3, "note": null}')] * 2)
    service = make_model_client(client)
    derived = StructuredRequest("gpt-5.6-sol", "?", Noted, "low")
    assert service.generate_object(derived) == Noted(3)
    by_hand = StructuredRequest("gpt-5.6-sol", "?", Noted, "low", input_schema={"type": "object"})
    refused(lambda: service.generate_object(by_hand), LlmContractViolation)


def test_generate_object_with_a_cached_system_changes_the_body_alone() -> None:
    client = Recorder([message(emit({"n": 3}))] * 2)
    service = make_model_client(client)
    plain = StructuredRequest("opus-5", "?", Count, "low", system="Be exact.")
    cached = StructuredRequest("opus-5", "?", Count, "low", system="Be exact.", cache_system=True)
    assert service.generate_object(plain) == service.generate_object(cached)
    block = {"type": "text", "text": "Be exact.", "cache_control": {"type": "ephemeral"}}
    assert [body["system"] for _, body in client.sent] == ["Be exact.", [block]]


def test_generate_object_takes_a_mapping_and_a_json_schema() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    client = Recorder([message(emit({"n": 3}))])
    request = {"model_key": "fable-5", "prompt": "?", "schema": schema, "effort": "low", "max_tokens": 99}
    assert make_model_client(client).generate_object(request) == {"n": 3}
    assert client.sent[0][1]["max_tokens"] == 99


VIOLATIONS: dict[str, tuple[Any, Json, str]] = {
    "no call of the tool": ("opus-5", message(text("Three.")), "the model answered without calling the tool"),
    "another type": ("opus-5", message(emit({"n": "three"})), "the answer does not fit its schema"),
    "one property too many": ("opus-5", message(emit({"n": 3, "m": 4})), "the answer does not fit its schema"),
    "a text that is no JSON, OpenAI's": ("gpt-5.6-sol", completion("three"), "the answer does not fit its schema"),
    "no text, OpenAI's": ("gpt-5.6-sol", completion(""), "the model answered without calling the tool"),
}


@pytest.mark.parametrize("key, answer, words", VIOLATIONS.values(), ids=VIOLATIONS.keys())
def test_generate_object_is_a_contract_violation_for(key: Any, answer: Json, words: str) -> None:
    request = StructuredRequest(key, "?", Count, "low")
    error = refused(lambda: make_model_client(Recorder([answer])).generate_object(request), LlmContractViolation)
    assert error.message.startswith(words)
    assert (error.type, error.retryable, error.provider_error_code) == ("unknown", False, "contract_violation")
    assert (error.raw_request, error.raw_error) == (None, None)


def test_generate_object_fails_an_incomplete_answer_before_its_content_is_read() -> None:
    cut = message(emit({"n": 3}), stop_reason="max_tokens")
    request = StructuredRequest("opus-5", "?", Count, "low")
    error = refused(lambda: make_model_client(Recorder([cut])).generate_object(request), ModelUnavailable)
    assert error.reason == "the answer is incomplete: stop_reason max_tokens"


UNREACHABLE: dict[str, tuple[Any, str, tuple[str, bool]]] = {
    "a rejection": (OSError("no route"), "OSError: no route", ("unknown", False)),
    "a reset": (ConnectionResetError("reset"), "ConnectionResetError: reset", ("network", True)),
    "a throttle": (
        MembraneError("rate_limit", "slow down", provider_error_code="ThrottlingException"),
        "ThrottlingException: slow down",
        ("rate_limit", True),
    ),
    "no JSON": (
        b"<html>the prompt</html>",
        "the answer cannot be parsed: JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
        ("server", True),
    ),
    "no bytes": (
        b"",
        "the answer cannot be parsed: JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
        ("server", True),
    ),
}


@pytest.mark.parametrize("answer, reason, kind", UNREACHABLE.values(), ids=UNREACHABLE.keys())
def test_generate_and_generate_object_are_model_unavailable_where_nothing_arrives(
    answer: Any, reason: str, kind: Any
) -> None:
    service = make_model_client(Recorder([answer, answer]))
    request = StructuredRequest("opus-5", "?", Count, "low")
    for call in (lambda: service.generate("opus-5", "Hi", LOW), lambda: service.generate_object(request)):
        error = refused(call, ModelUnavailable)
        assert (error.message, (error.type, error.retryable)) == (f"{OPUS}: {reason}", kind)


DEFAULTS: dict[str, tuple[Any, GenerateOptions, bool]] = {
    "none: caching is off": (None, LOW, True),
    "what the environment says": (ModelClientDefaults("implicit"), LOW, False),
    "as a mapping": ({"openai_prompt_cache": "implicit"}, LOW, False),
    "the call wins": (ModelClientDefaults("implicit"), GenerateOptions("low", openai_prompt_cache="off"), True),
    "the call wins again": (ModelClientDefaults("off"), GenerateOptions("low", openai_prompt_cache="implicit"), False),
}


@pytest.mark.parametrize("defaults, options, is_off", DEFAULTS.values(), ids=DEFAULTS.keys())
def test_make_model_client_defaults(defaults: Any, options: GenerateOptions, is_off: bool) -> None:
    client = Recorder([completion("x")])
    make_model_client(client, defaults).generate("gpt-5.6-terra", "Hi", options)
    assert client.sent[0][1].get("prompt_cache_options") == ({"mode": "explicit"} if is_off else None)


def test_make_model_client_refuses_a_default_that_is_none() -> None:
    error = refused(lambda: make_model_client(Recorder([]), {"prompt_cache": "off"}))
    assert error.message == "defaults: no field 'prompt_cache'; did you mean 'openai_prompt_cache'?"


def test_generate_hands_its_signal_to_the_client() -> None:
    from membrane_lite import AbortController

    seen: list[Any] = []

    class Listening(Recorder):
        def send(self, model_id: str, body: str, signal: Any) -> bytes:
            seen.append(signal)
            return super().send(model_id, body, signal)

    signal = AbortController().signal
    make_model_client(Listening([message(text("x"))])).generate("opus-5", "Hi", LOW, signal=signal)
    assert seen == [signal]


def test_model_client_live_is_the_service_over_what_the_configuration_names() -> None:
    live = ModelClientLive(LlmConfig())
    assert isinstance(live, ModelClient)
    live.close()
