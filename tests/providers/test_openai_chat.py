"""openai_chat: what each model is sent, and what OpenAI alone answers: audio, refusals, log probabilities."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from membrane_lite import Audio, Membrane, MembraneError, OpenAIAdapter, Text, ToolResult, ToolUse
from membrane_lite.loopback import Failure, LoopbackProvider, Raw, Reply, ToolCall, chat, faults
from membrane_lite.wire.http import header

Json = Any
HI = {"role": "user", "content": "User: hi"}
KEY = "a-key-of-the-test"
JSON = {"Content-Type": "application/json"}
SSE = {"Content-Type": "text/event-stream"}
STREAM_USAGE = {"stream": True, "stream_options": {"include_usage": True}}


def request(*content: Json, **more: Any) -> Json:
    config = {"model": "gpt-4o", "max_tokens": 64, **more.pop("config", {})}
    return {"messages": [{"participant": "User", "content": list(content) or "hi"}], "config": config, **more}


def rendered(given: Json, *, stream: bool = False, **settings: Any) -> Json:
    with OpenAIAdapter(api_key=KEY, **settings) as adapter:
        return json.loads(adapter.render(given, stream=stream).body)


@contextmanager
def served(*script: Any, **settings: Any) -> Iterator[tuple[Membrane, LoopbackProvider]]:
    with LoopbackProvider(script) as provider, provider.transport() as transport:
        adapter = OpenAIAdapter(api_key=KEY, base_url=provider.url + "/v1", transport=transport, **settings)
        yield Membrane(adapter), provider


# Models

ALL = {"temperature": 0.5, "top_p": 0.9, "stop": ["END"]}
NEWEST = {"max_completion_tokens": 64}
MODELS: dict[str, Json] = {
    "gpt-3.5-turbo": {"max_tokens": 64, **ALL},
    "gpt-4": {"max_tokens": 64, **ALL},
    "gpt-4.1-mini": {"max_tokens": 64, **ALL},
    "gpt-4o": {"max_tokens": 64, **ALL},
    "gpt-4o-2024-08-06": {"max_tokens": 64, **ALL},
    "ft:gpt-4o-mini:org::id": {"max_tokens": 64, **ALL},
    "gpt-4o-search-preview": {"max_tokens": 64, "stop": ["END"]},
    "o1": {**NEWEST, "stop": ["END"]},
    "o1-2024-12-17": {**NEWEST, "stop": ["END"]},
    "o3": NEWEST,
    "o3-mini": NEWEST,
    "o4-mini": NEWEST,
    "gpt-5": NEWEST,
    "gpt-5-mini-2025-08-07": NEWEST,
    "gpt-5.6-terra": NEWEST,
    "gpt-6-astra": NEWEST,
    "gpt-7.2-sol": NEWEST,
    "a-model-of-tomorrow": NEWEST,
}


@pytest.mark.parametrize("model, fields", MODELS.items(), ids=MODELS.keys())
def test_what_a_model_is_sent(model: str, fields: Json) -> None:
    config = {"model": model, "temperature": 0.5, "top_p": 0.9}
    body = rendered(request(config=config, stop_sequences=["END"]))
    assert body == {"model": model, "messages": [HI], **fields}


def test_rows_of_the_callers_own_speak_for_minor_versions_too() -> None:
    traits = {"gpt-5": {"sampling": True}, "gpt-5.6": {"stop": True}}
    bodies = [
        rendered(request(config={"model": model, "temperature": 0.5}, stop_sequences=["END"]), model_traits=traits)
        for model in ("gpt-5-mini", "gpt-5.1", "gpt-5.6-terra")
    ]
    assert [set(body) - {"model", "messages", "max_completion_tokens"} for body in bodies] == [
        {"temperature"},
        {"temperature"},
        {"temperature", "stop"},  # a row begins with the one it goes over
    ]


def test_the_exact_body_of_a_stream() -> None:
    given = request(system="be kind", provider_params={"seed": 7, "stream_options": {"x": 1}}, config={"top_k": 3})
    with OpenAIAdapter(api_key=KEY) as adapter:
        assert adapter.render(given, stream=True).body == (
            b'{"model":"gpt-4o","messages":[{"role":"system","content":"be kind"},'
            b'{"role":"user","content":"User: hi"}],"max_tokens":64,"seed":7,'
            b'"stream_options":{"include_usage":true},"stream":true}'
        )


# The adapter

HEADS: dict[str, tuple[Json, list[tuple[str, str]]]] = {
    "a key": ({"api_key": KEY}, [("Authorization", f"Bearer {KEY}")]),
    "an organization": (
        {"api_key": KEY, "organization": "org-1"},
        [("OpenAI-Organization", "org-1"), ("Authorization", f"Bearer {KEY}")],
    ),
    "a header of the caller's": (
        {"api_key": KEY, "headers": {"OpenAI-Project": "p"}},
        [("OpenAI-Project", "p"), ("Authorization", f"Bearer {KEY}")],
    ),
}


@pytest.mark.parametrize("settings, more", HEADS.values(), ids=HEADS.keys())
def test_the_head_of_a_request(settings: Json, more: Any) -> None:
    with OpenAIAdapter(**settings) as adapter:
        sent = adapter.render(request())
    assert (sent.method, sent.url) == ("POST", "https://api.openai.com/v1/chat/completions")
    assert list(sent.headers)[4:] == more
    assert KEY not in repr(adapter)


def test_the_environment_gives_the_key_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"API_KEY": f" {KEY}\n", "BASE_URL": "http://elsewhere", "ORG_ID": "org-2"}.items():
        monkeypatch.setenv(f"OPENAI_{name}", value)
    with OpenAIAdapter() as adapter:
        sent = adapter.render(request())
    assert sent.url == "https://api.openai.com/v1/chat/completions"
    assert header(sent.headers, "authorization") == f"Bearer {KEY}"
    assert header(sent.headers, "openai-organization") is None


def test_without_a_key_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with LoopbackProvider([Reply("x")]) as provider, provider.transport() as transport:
        adapter = OpenAIAdapter(base_url=provider.url + "/v1", transport=transport)
        assert header(adapter.render(request()).headers, "authorization") == "Bearer YOUR_API_KEY"
        with pytest.raises(MembraneError) as raised:
            Membrane(adapter).complete(request())
        assert provider.request_count == 0
    assert raised.value.type == "auth"
    assert raised.value.message == "api_key: no key; pass api_key= or set OPENAI_API_KEY (nothing was sent)"


SUPPORTED = {"gpt-4o": True, "o1": True, "o3-mini": True, "o4-mini": True, "claude-sonnet-4-5": False, "o": False}


@pytest.mark.parametrize("model, supported", SUPPORTED.items(), ids=SUPPORTED.keys())
def test_which_models_it_speaks_for(model: str, supported: bool) -> None:
    with OpenAIAdapter(api_key=KEY) as adapter:
        assert (adapter.name, adapter.supports_model(model)) == ("openai", supported)


# Media

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
IMAGE_PART = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}


def test_audio_and_a_document_go_in_as_parts() -> None:
    body = rendered(
        request(
            {"type": "audio", "source": {"type": "base64", "media_type": "audio/wav", "data": "QUJD"}},
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBE"},
                "filename": "a.pdf",
            },
        )
    )
    assert body["messages"][0]["content"] == [
        {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"}},
    ]


SHOWN: dict[str, tuple[str, str, bool]] = {
    "auto, a model that sees": ("auto", "gpt-4o", True),
    "auto, a model that does not": ("auto", "o3-mini", False),
    "media, whatever the model": ("media", "o3-mini", True),
    "omit, whatever the model": ("omit", "gpt-4o", False),
}


@pytest.mark.parametrize("setting, model, shown", SHOWN.values(), ids=SHOWN.keys())
def test_images_in_the_result_of_a_tool(setting: Any, model: str, shown: bool) -> None:
    messages = [
        {"participant": "Claude", "content": [{"type": "tool_use", "id": "c1", "name": "look", "input": {}}]},
        {"participant": "User", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [IMAGE]}]},
    ]
    given = {"messages": messages, "config": {"model": model}}
    _, _, result, *rest = rendered(given, tool_result_images=setting)["messages"]
    assert result == {"role": "tool", "tool_call_id": "c1", "content": "[Image: image/png, ~0KB]"}
    assert rest == ([{"role": "user", "content": [IMAGE_PART]}] if shown else [])


def test_a_setting_that_is_none() -> None:
    setting: Any = "never"
    with pytest.raises(MembraneError) as raised:
        OpenAIAdapter(api_key=KEY, tool_result_images=setting)
    assert raised.value.message == "tool_result_images: found 'never'; expected one of auto, media, omit"


# Answers


def message(content: Any = None, reason: str = "stop", **more: Any) -> Raw:
    choice = {"index": 0, "message": {"role": "assistant", "content": content, **more}, "finish_reason": reason}
    return Raw(200, JSON, json.dumps({"id": "x", "model": "gpt-4o-2024", "choices": [choice]}))


def chunks(*choices: Json) -> Raw:
    events = [json.dumps({"id": "x", "model": "gpt-4o-2024", "choices": [{"index": 0, **each}]}) for each in choices]
    return Raw(200, SSE, "".join(f"data: {event}\n\n" for event in [*events, "[DONE]"]))


SPOKEN = Audio(
    {"type": "base64", "media_type": "audio/wav", "data": "UklGRkE="},
    transcript="Hello there",
    raw_item={"audio": {"id": "audio_1", "expires_at": 9}},
    raw_format="openai-chat",
)
SAMPLES = Audio(**{**vars(SPOKEN), "source": {"type": "base64", "media_type": "audio/pcm", "data": "QUJDRA=="}})
PIECES = [{"id": "audio_1", "transcript": "Hello"}, {"data": "QQ=="}, {"transcript": " there"}, {"data": "QkNE"}]
AUDIO: dict[str, tuple[bool, Raw, Audio]] = {
    "whole": (
        False,
        message(audio={"id": "audio_1", "data": "UklGRkE=", "transcript": "Hello there", "expires_at": 9}),
        SPOKEN,
    ),
    "in pieces, each base64 by itself": (
        True,
        chunks(*({"delta": {"audio": piece}} for piece in [*PIECES, {"expires_at": 9}]), {"finish_reason": "stop"}),
        SAMPLES,
    ),
}


@pytest.mark.parametrize("streamed, answer, block", AUDIO.values(), ids=AUDIO.keys())
def test_audio_comes_back_with_what_it_says_and_goes_back_as_its_id(streamed: bool, answer: Raw, block: Audio) -> None:
    with served(answer) as (membrane, _):
        response: Any = (membrane.stream if streamed else membrane.complete)(request())
    assert (response.content, response.text, response.stop_reason) == ([block], "", "end_turn")
    raw = response.raw.response["choices"][0]["message"]["audio"]
    assert raw == {"id": "audio_1", "expires_at": 9, "data": block.source["data"], "transcript": "Hello there"}
    history = [*request()["messages"], *response.as_messages(), *request()["messages"]]
    assert rendered({**request(), "messages": history})["messages"] == [
        HI,
        {"role": "assistant", "content": None, "audio": {"id": "audio_1"}},
        HI,
    ]


def test_a_refusal_is_told_apart_from_text() -> None:
    with served(message(refusal="I cannot.")) as (membrane, _):
        response = membrane.complete(request())
    assert (response.text, response.stop_reason, response.details.stop.refusal) == ("", "refusal", "I cannot.")


def test_log_probabilities_and_other_choices_are_kept_raw() -> None:
    answer = chunks(
        {"delta": {"content": "a"}, "logprobs": {"content": [{"token": "a"}], "refusal": None}},
        {"index": 1, "delta": {"content": "other"}},
        {"delta": {"content": "b"}, "logprobs": {"content": [{"token": "b"}], "refusal": None}},
        {"delta": {}, "logprobs": None, "finish_reason": "stop"},
    )
    with served(answer) as (membrane, _):
        response: Any = membrane.stream(request())
    first, second = response.raw.response["choices"]
    assert (response.text, first["logprobs"]) == ("ab", {"content": [{"token": "a"}, {"token": "b"}]})
    assert second["message"]["content"] == "other"


def test_two_rounds_with_tools() -> None:
    calls = [ToolCall("look", {"at": 1}, id="c1"), ToolCall("look", {"at": 2}, id="c2")]
    again = ToolCall("look", {"at": 3}, id="c3")
    tools = [{"name": "look", "description": "looks", "input_schema": {"type": "object"}}]
    with served(Reply("I look.", *calls), Reply(again), Reply("Red.")) as (membrane, provider):
        response: Any = membrane.stream(
            request(tools=tools), on_tool_calls=lambda calls: [ToolResult(c.id, f"r{c.input['at']}") for c in calls]
        )
        body = provider.requests[2].json
    assert [type(block) for block in response.content if isinstance(block, (Text, ToolUse))] == [
        Text,
        ToolUse,
        ToolUse,
        ToolUse,
        Text,
    ]
    assert json.dumps(body["messages"][1:], separators=(",", ":")) == (
        '[{"role":"assistant","content":"I look.","tool_calls":['
        '{"id":"c1","type":"function","function":{"name":"look","arguments":"{\\"at\\":1}"}},'
        '{"id":"c2","type":"function","function":{"name":"look","arguments":"{\\"at\\":2}"}}]},'
        '{"role":"tool","tool_call_id":"c1","content":"r1"},{"role":"tool","tool_call_id":"c2","content":"r2"},'
        '{"role":"assistant","content":null,"tool_calls":['
        '{"id":"c3","type":"function","function":{"name":"look","arguments":"{\\"at\\":3}"}}]},'
        '{"role":"tool","tool_call_id":"c3","content":"r3"}]'
    )


# Failures

FILTERED = {"error": {"message": "filtered", "code": "content_filter", "status": 400}}
FAILURES: dict[str, tuple[Any, tuple[str, bool, int | None]]] = {
    "401": (
        chat.error(401, "invalid_request_error", "Incorrect API key provided: x.", code="invalid_api_key"),
        ("auth", False, 401),
    ),
    "429": (chat.error(429, "requests", "Slow down", code="rate_limit_exceeded"), ("rate_limit", True, 429)),
    "429, nothing left": (chat.error(429, "insufficient_quota", "Pay"), ("rate_limit", False, 429)),
    "503": (Failure(503), ("server", True, 503)),
    "a filter, in a 200": (Raw(200, JSON, json.dumps(FILTERED)), ("safety", False, 400)),
    "in the stream": (faults.error(Reply("Hello"), after=2, type="server_error"), ("server", True, 500)),
}


@pytest.mark.parametrize("answer, like", FAILURES.values(), ids=FAILURES.keys())
def test_failures(answer: Any, like: Any) -> None:
    with served(answer) as (membrane, _), pytest.raises(MembraneError) as raised:
        membrane.stream(request(), retry=False)
    assert (raised.value.type, raised.value.retryable, raised.value.http_status) == like


def test_a_refused_parameter_names_the_trait_that_leaves_it_out() -> None:
    words = "Unsupported parameter: 'temperature' is not supported with this model."
    answer = chat.error(400, "invalid_request_error", words, code="unsupported_parameter", param="temperature")
    with served(answer) as (membrane, _), pytest.raises(MembraneError) as raised:
        membrane.complete(request(), retry=False)
    assert raised.value.message.endswith("(model_traits={'gpt-4o': {'sampling': False}} on the adapter leaves it out)")


ANSWER = Reply("Hello, world!", ToolCall("look", {"at": 1}, id="c1"))
EVENTS = len(chat.events(ANSWER, chat.UNASKED))
COMPLETE = EVENTS - 1  # with the finish reason; then come usage and [DONE]


@pytest.mark.parametrize("after", range(EVENTS + 2))
def test_an_end_at_every_event_boundary(after: int) -> None:
    with served(faults.end(ANSWER, after=after)) as (membrane, _):
        if after < COMPLETE:
            with pytest.raises(MembraneError) as raised:
                membrane.stream(request(), retry=False)
            assert (raised.value.type, raised.value.retryable) == ("network", True)
            assert "Hello, world!".startswith(raised.value.raw_assistant_text)
        else:
            response = membrane.stream(request(), retry=False)
            assert (response.text, response.stop_reason) == ("Hello, world!", "tool_use")
