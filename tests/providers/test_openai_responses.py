"""openai_responses: the exact bytes of requests, the subscription's form of them, and what a call makes of answers."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from membrane_lite import Clock, Membrane, MembraneError, NativeFormatter, OpenAIResponsesAPIAdapter, Response
from membrane_lite.loopback import (
    Failure,
    Image,
    LoopbackProvider,
    Raw,
    RedactedThinking,
    Reply,
    Thinking,
    ToolCall,
    faults,
)
from membrane_lite.loopback import openai_responses as wire
from membrane_lite.providers.openai_responses import PRIORITY, wire_tool
from membrane_lite.wire.http import HttpRequest, header

Json = Any

KEY = "sk-a-key-of-the-test"
MODEL = "gpt-4o"
ASKED = {"participant": "Ann", "content": "hi"}
HI = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
INCLUDE = ["reasoning.encrypted_content"]
EVENT_STREAM = {"Content-Type": "text/event-stream"}


def resolver(*, force_refresh: bool, signal: Any) -> Json:
    return {"token": "token-of-the-test", "headers": {"ChatGPT-Account-Id": "acct"}}


def adapter(**options: Any) -> OpenAIResponsesAPIAdapter:
    return OpenAIResponsesAPIAdapter(**{"api_key": KEY, "base_url": "http://h/v1", **options})


def subscription(**options: Any) -> OpenAIResponsesAPIAdapter:
    return adapter(mode="subscription", credentials=resolver, session_id="s", **options)


def asked(**request: Any) -> Json:
    """A question to MODEL, with 64 tokens; `config` adds to that."""
    config = {"model": MODEL, "max_tokens": 64, **request.pop("config", {})}
    return {"messages": [ASKED], **request, "config": config}


def render(
    by: OpenAIResponsesAPIAdapter, *, stream: bool = False, formatter: Any = None, **request: Any
) -> HttpRequest:
    return by.render(asked(**request), stream=stream, formatter=formatter)


def body(by: OpenAIResponsesAPIAdapter | None = None, **request: Any) -> Json:
    return json.loads(render(by or adapter(), **request).body)


def golden(model: str = MODEL, max_output_tokens: int = 64, **fields: Any) -> bytes:
    """The body with these fields between those that are always there, in their order, as compact JSON."""
    begin = {
        "model": model,
        "input": [HI],
        **({"instructions": fields.pop("instructions")} if "instructions" in fields else {}),
    }
    end = {
        "include": fields.pop("include", INCLUDE),
        "store": False,
        **({"stream": True} if fields.pop("stream", 0) else {}),
    }
    return json.dumps(
        {**begin, "max_output_tokens": max_output_tokens, **fields, **end}, separators=(",", ":")
    ).encode()


LOOK = {"name": "look", "description": "Looks", "input_schema": {"type": "object", "properties": {}}}
FUNCTION = {
    "type": "function",
    "name": "look",
    "description": "Looks",
    "parameters": {"type": "object", "properties": {}},
}
GOLDEN: dict[str, tuple[Json, bytes]] = {
    "a question": ({}, golden()),
    "a stream": ({"stream": True}, golden(stream=True)),
    "instructions": ({"system": "Be brief."}, golden(instructions="Be brief.")),
    "instructions of blocks, a line each": (
        {"system": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        golden(instructions="a\nb"),
    ),
    "no limit is the adapter's": ({"config": {"max_tokens": None}}, golden(max_output_tokens=4096)),
    "sampling": ({"config": {"temperature": 0.0, "top_p": 0.5}}, golden(temperature=0.0, top_p=0.5)),
    "none for a model that reasons": (
        {"config": {"model": "gpt-5.1", "temperature": 0.0, "top_p": 0.5}},
        golden(model="gpt-5.1"),
    ),
    "what the API has no field for": (
        {"config": {"top_k": 5, "presence_penalty": 1, "thinking": {"enabled": True}}, "stop_sequences": ["x"]},
        golden(),
    ),
    "tools": ({"tools": [LOOK]}, golden(tools=[FUNCTION])),
    "the caller's fields win": (
        {"provider_params": {"max_output_tokens": 5, "reasoning": {"effort": "low"}, "service_tier": "flex"}},
        golden(max_output_tokens=5, reasoning={"effort": "low"}, service_tier="flex"),
    ),
    "but not those that keep the conversation together": (
        {"provider_params": {"input": "x", "messages": [], "store": True, "stream": True, "include": ["a", 7]}},
        golden(include=["a", *INCLUDE]),
    ),
    "what is included is not included twice": (
        {"provider_params": {"include": [*INCLUDE, "a"]}},
        golden(include=[*INCLUDE, "a"]),
    ),
}


@pytest.mark.parametrize("request_, expected", GOLDEN.values(), ids=GOLDEN.keys())
def test_a_request(request_: Json, expected: bytes) -> None:
    assert render(adapter(), **request_).body == expected


def test_its_address_and_headers() -> None:
    made = adapter(base_url="http://h/v1/", organization="org", project="proj", headers={"X-Own": "1"})
    sent = render(made)
    named = {
        name: header(sent.headers, name) for name in ("OpenAI-Organization", "OpenAI-Project", "X-Own", "session_id")
    }
    assert (sent.method, sent.url) == ("POST", "http://h/v1/responses")
    assert named == {"OpenAI-Organization": "org", "OpenAI-Project": "proj", "X-Own": "1", "session_id": None}
    assert header(sent.headers, "authorization") == f"Bearer {KEY}"


def test_the_caller_s_headers_win_over_the_adapter_s_but_not_over_the_key() -> None:
    assert (
        header(render(adapter(organization="a", headers={"openai-organization": "b"})).headers, "OpenAI-Organization")
        == "b"
    )
    with pytest.raises(MembraneError, match="'authorization' is set by the adapter"):
        adapter(headers={"authorization": "Bearer mine"})


def test_without_a_key_a_request_can_be_looked_at_and_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with OpenAIResponsesAPIAdapter() as made:
        shown = render(made)
        with pytest.raises(MembraneError) as raised:
            Membrane(made).complete(asked())
    assert shown.url == "https://api.openai.com/v1/responses"
    assert header(shown.headers, "authorization") == "Bearer YOUR_API_KEY"
    assert (raised.value.type, "OPENAI_API_KEY" in raised.value.message) == ("auth", True)


TOOLS: dict[str, tuple[Json, Json]] = {
    "the API's own": ({"type": "web_search", "x": 1}, {"type": "web_search", "x": 1}),
    "a flat function": ({"type": "function", "name": "a"}, {"type": "function", "name": "a"}),
    "a nested one": (
        {"type": "function", "function": {"name": "a", "description": "b", "parameters": {"x": 1}, "strict": False}},
        {"type": "function", "name": "a", "description": "b", "parameters": {"x": 1}, "strict": False},
    ),
    "one of another formatter": (
        {"name": "a", "description": "b", "input_schema": {"x": 1}},
        {"type": "function", "name": "a", "description": "b", "parameters": {"x": 1}},
    ),
    "no schema": (
        {"name": "a"},
        {"type": "function", "name": "a", "description": "", "parameters": {"type": "object", "properties": {}}},
    ),
}


@pytest.mark.parametrize("given, sent", TOOLS.values(), ids=TOOLS.keys())
def test_a_tool(given: Json, sent: Json) -> None:
    assert wire_tool(given) == sent


def test_messages_of_another_formatter_are_refused_before_anything_is_sent() -> None:
    with LoopbackProvider([Reply("hi")]) as provider, provider.transport() as transport:
        membrane = Membrane(adapter(base_url=provider.url, transport=transport))
        with pytest.raises(MembraneError) as raised:
            membrane.complete(asked(), formatter=NativeFormatter())
        assert provider.request_count == 0
    assert raised.value.type == "unsupported"
    assert "formatter=OpenAIResponsesFormatter()" in raised.value.message


# Subscription


def test_a_subscription_needs_a_resolver_even_beside_a_key() -> None:
    with pytest.raises(MembraneError, match="credentials: missing"):
        OpenAIResponsesAPIAdapter(api_key=KEY, mode="subscription")
    with pytest.raises(MembraneError, match="expected one of api, subscription"):
        adapter(mode="subscribed")


def test_what_a_subscription_is_asked() -> None:
    with OpenAIResponsesAPIAdapter(mode="subscription", credentials=resolver, session_id="s") as made:
        sent = render(
            made, config={"temperature": 1, "top_p": 1}, provider_params={"max_tokens": 5, "top_k": 1, "x": 2}
        )
    key = "s:3e19d1f62e0d"
    assert sent.url == "https://chatgpt.com/backend-api/codex/responses"
    assert json.loads(sent.body) == {
        "model": MODEL,
        "input": [HI],
        "prompt_cache_key": key,
        "x": 2,
        "include": INCLUDE,
        "store": False,
        "stream": True,
    }
    named = [header(sent.headers, name) for name in ("session_id", "accept", "accept-encoding")]
    assert named == [key, "text/event-stream", "identity"]


def test_a_subscription_takes_models_of_its_own() -> None:
    models = ("gpt-5.1", "codex-mini", "claude-sonnet-5")
    assert [subscription().supports_model(model) for model in models] == [True, True, False]
    assert adapter().supports_model("claude-sonnet-5")


def test_one_conversation_has_one_cache_key() -> None:
    made = subscription()
    first = body(made)["prompt_cache_key"]
    longer = body(made, messages=[ASKED, {"participant": "Claude", "content": "yo"}, ASKED])["prompt_cache_key"]
    others = [body(made, system="S"), body(made, messages=[{"participant": "Ann", "content": "no"}])]
    assert first == longer
    assert first.startswith("s:")
    assert first not in [other["prompt_cache_key"] for other in others]


SESSIONS: dict[str, tuple[Json, str]] = {
    "the caller's key": ({"provider_params": {"prompt_cache_key": "mine"}}, "mine"),
    "one that is no header": ({"provider_params": {"prompt_cache_key": "ä b"}}, "hashed"),
    "one that is too long": ({"provider_params": {"prompt_cache_key": "x" * 129}}, "hashed"),
}


@pytest.mark.parametrize("request_, expected", SESSIONS.values(), ids=SESSIONS.keys())
def test_the_session_s_header(request_: Json, expected: str) -> None:
    sent = render(subscription(), **request_)
    value = header(sent.headers, "session_id") or ""
    assert json.loads(sent.body)["prompt_cache_key"] == request_["provider_params"]["prompt_cache_key"]
    assert value == expected if expected != "hashed" else (len(value) == 32 and int(value, 16) >= 0)


def test_the_session_may_be_named_by_the_caller_s_header() -> None:
    assert header(render(subscription(headers={"Session_Id": "mine"})).headers, "session_id") == "mine"


def test_a_session_is_made_up_for_each_adapter_of_a_subscription_and_named_in_api_mode_only_where_given() -> None:
    keys = {body(adapter(mode="subscription", credentials=resolver))["prompt_cache_key"] for _ in range(2)}
    assert len(keys) == 2
    assert "prompt_cache_key" not in body()
    assert body(adapter(session_id="s"))["prompt_cache_key"].startswith("s:")


def test_a_subscription_takes_messages_of_any_formatter() -> None:
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "sun"}
    messages = [
        ASKED,
        {
            "participant": "Claude",
            "content": [{"type": "text", "text": "a"}, {"type": "tool_use", "id": "c1", "name": "look"}],
        },
        {"participant": "Ann", "content": [result]},
    ]
    assert body(subscription(), messages=messages, formatter=NativeFormatter())["input"] == [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Ann: hi"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "sun"},
    ]


def test_a_subscription_is_streamed_where_the_caller_waits_for_the_whole() -> None:
    with LoopbackProvider([Reply(Thinking("So."), "Hello")]) as provider, provider.transport() as transport:
        made = subscription(base_url=provider.url, transport=transport)
        rendered = render(made)
        response = Membrane(made).complete(asked())
        received = provider.requests[0]
    assert (response.text, response.stop_reason) == ("Hello", "end_turn")
    assert received.body == rendered.body
    assert received.header("authorization") == "Bearer token-of-the-test"
    assert received.header("chatgpt-account-id") == "acct"


# Fast mode

TIERS: dict[str, tuple[Callable[..., OpenAIResponsesAPIAdapter], bool, Json, Any]] = {
    "fast": (adapter, True, {}, PRIORITY),
    "fast, over the caller's": (adapter, True, {"service_tier": "flex"}, PRIORITY),
    "not fast": (adapter, False, {}, None),
    "not fast, and the caller's": (adapter, False, {"service_tier": "flex"}, "flex"),
    "a fast subscription": (subscription, True, {}, PRIORITY),
    "a subscription has no other": (subscription, False, {"service_tier": PRIORITY}, None),
}


@pytest.mark.parametrize("make, fast, params, tier", TIERS.values(), ids=TIERS.keys())
def test_the_service_tier(make: Any, fast: bool, params: Json, tier: Any) -> None:
    assert body(make(fast_mode=fast), provider_params=params).get("service_tier") == tier


def test_fast_mode_can_be_switched() -> None:
    made = adapter()
    made.set_fast_mode(True)
    assert (made.is_fast_mode(), body(made)["service_tier"]) == (True, PRIORITY)
    made.set_fast_mode(False)
    assert (made.is_fast_mode(), "service_tier" in body(made)) == (False, False)


def served_on(tier: Any) -> Raw:
    answer = json.loads(wire.document(Reply("Hello")))
    return Raw(200, {"Content-Type": "application/json"}, json.dumps({**answer, "service_tier": tier}))


def test_a_fallback_is_told_once() -> None:
    told: list[str] = []
    answers = [served_on(PRIORITY), served_on(None), served_on("default"), served_on("flex")]
    with LoopbackProvider(answers) as provider, provider.transport() as transport:
        made = adapter(base_url=provider.url, transport=transport, fast_mode=True, on_fast_mode_fallback=told.append)
        for _ in answers:
            Membrane(made).complete(asked())
    assert told == ["default"]


def test_no_fallback_is_told_of_where_priority_was_not_asked_for() -> None:
    told: list[str] = []
    with LoopbackProvider([served_on("default")]) as provider, provider.transport() as transport:
        made = adapter(base_url=provider.url, transport=transport, on_fast_mode_fallback=told.append)
        Membrane(made).complete(asked())
    assert told == []


def test_what_a_listener_raises_is_logged_and_the_answer_stands(caplog: pytest.LogCaptureFixture) -> None:
    def listen(tier: str) -> None:
        raise RuntimeError("deaf")

    answer = {**json.loads(wire.document(Reply("Hello"))), "service_tier": "default"}
    events = wire.event("response.completed", response=answer)
    with LoopbackProvider([Raw(200, EVENT_STREAM, events)]) as provider, provider.transport() as transport:
        made = adapter(base_url=provider.url, transport=transport, fast_mode=True, on_fast_mode_fallback=listen)
        with caplog.at_level(logging.WARNING):
            response: Any = Membrane(made).stream(asked())
    assert response.text == "Hello"
    assert "on_fast_mode_fallback raised" in caplog.text


# Round trips


ROUNDS = [
    Reply(
        Thinking("Where?", signature="enc-1"),
        "I look.",
        ToolCall("look", {"at": "Bern"}, id="c1"),
        ToolCall("look", {}, id="c2"),
    ),
    Reply(RedactedThinking("enc-2"), ToolCall("look", {"at": "Rome"}, id="c3")),
    Reply("Sun."),
]


def items_of(number: int) -> list[Json]:
    """The items the model said in a round."""
    asked_for = wire.Asked(body={"include": INCLUDE}, number=number)
    answer: Json = json.loads(wire.document(ROUNDS[number - 1], asked_for))
    return list(answer["output"])


def results(*calls: str) -> list[Json]:
    return [{"type": "function_call_output", "call_id": call, "output": "sun"} for call in calls]


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "as history"])
def test_every_item_goes_back_unchanged(streamed: bool) -> None:
    """Two rounds of tools: the second and third request hold what came, byte for byte, and the results behind it."""
    with LoopbackProvider(ROUNDS) as provider, provider.transport() as transport:
        membrane = Membrane(adapter(base_url=provider.url, transport=transport))
        if streamed:
            membrane.stream(asked(tools=[LOOK]), on_tool_calls=answered)
        else:
            by_hand(membrane)
        sent = [received.body for received in provider.requests]
    first = [HI]
    second = [*first, *items_of(1), *results("c1", "c2")]
    third = [*second, *items_of(2), *results("c3")]
    assert [json.loads(request)["input"] for request in sent] == [first, second, third]
    for request, items in zip(sent, [first, second, third]):
        assert json.dumps(items, separators=(",", ":")).encode() in request
    assert b'"encrypted_content":"enc-1"' in sent[1]
    assert b'"encrypted_content":"enc-2"' in sent[2]


def answered(calls: Any) -> list[Json]:
    return [{"tool_use_id": call.id, "content": "sun"} for call in calls]


def by_hand(membrane: Membrane) -> None:
    """The loop a caller runs over complete(), its history stored as JSON in between."""
    messages: list[Any] = [ASKED]
    for _ in ROUNDS:
        stored = json.loads(json.dumps(messages))
        response = membrane.complete(asked(tools=[LOOK], messages=stored))
        said = Response.from_dict(json.loads(json.dumps(response.to_dict()))).as_messages()
        outputs = [{"type": "tool_result", **each} for each in answered(response.tool_calls)]
        messages = [*messages, *(message.to_dict() for message in said), {"participant": "User", "content": outputs}]


def test_what_is_rendered_is_what_is_sent() -> None:
    with LoopbackProvider([Reply("a"), Reply("a")]) as provider, provider.transport() as transport:
        made = adapter(base_url=provider.url, transport=transport)
        Membrane(made).complete(asked())
        Membrane(made).stream(asked())
        sent = [received.body for received in provider.requests]
    assert sent == [render(made).body, render(made, stream=True).body]


def test_a_generated_image() -> None:
    with LoopbackProvider([Reply(Image("QQ=="))]) as provider, provider.transport() as transport:
        response: Any = Membrane(adapter(base_url=provider.url, transport=transport)).stream(asked())
    assert [(block.type, block.data, block.mime_type) for block in response.content] == [
        ("generated_image", "QQ==", "image/png")
    ]


# Failures


def failed(answer: Any, face: str = "stream") -> MembraneError:
    with LoopbackProvider([answer]) as provider, provider.transport() as transport:
        membrane = Membrane(adapter(base_url=provider.url, transport=transport), clock=Clock())
        with pytest.raises(MembraneError) as raised:
            getattr(membrane, face)(asked(), retry=False)
    return raised.value


def stream_of(*events: bytes) -> Raw:
    return Raw(200, EVENT_STREAM, b"".join(events))


ERRORS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "401": (
        wire.error(401, "invalid_request_error", "Incorrect API key provided", code="invalid_api_key"),
        ("auth", 401, False),
    ),
    "429": (wire.error(429, "requests", "Slow down", code="rate_limit_exceeded"), ("rate_limit", 429, True)),
    "429 with nothing left": (
        wire.error(429, "insufficient_quota", "You exceeded your quota", code="insufficient_quota"),
        ("rate_limit", 429, False),
    ),
    "400 about the context": (
        wire.error(400, "invalid_request_error", "Too long", code="context_length_exceeded"),
        ("context_length", 400, False),
    ),
    "500": (Failure(500), ("server", 500, True)),
    "503": (Failure(503), ("server", 503, True)),
    "an error event": (stream_of(wire.error_event("server_error", "Bad day")), ("server", 500, True)),
    "an answer that failed": (
        stream_of(wire.failed_event("rate_limit_exceeded", "Slow down")),
        ("rate_limit", 429, True),
    ),
    "one that failed the filter": (stream_of(wire.failed_event("content_filter", "No")), ("safety", None, False)),
    "malformed": (stream_of(wire.event("response.output_text.delta", output_index="x")), ("server", None, True)),
}


@pytest.mark.parametrize("answer, expected", ERRORS.values(), ids=ERRORS.keys())
def test_a_failure(answer: Any, expected: tuple[Any, ...]) -> None:
    error = failed(answer)
    assert (error.type, error.http_status, error.retryable) == expected
    assert error.message.startswith("openai-responses-api: ")


def test_a_document_that_failed() -> None:
    answer = {"status": "failed", "error": {"code": "server_error", "message": "Bad day"}, "output": []}
    error = failed(Raw(200, {"Content-Type": "application/json"}, json.dumps(answer)), "complete")
    assert (error.type, error.http_status, error.provider_error_code) == ("server", 500, "server_error")


# Truncation

ANSWER = Reply(Thinking("Hm."), "Hello, world!", ToolCall("look", {"at": "Bern"}, id="c1"))
EVENTS = wire.events(ANSWER)


@pytest.mark.parametrize("ending", [faults.end, faults.close, faults.reset])
@pytest.mark.parametrize("after", range(len(EVENTS)))
def test_an_end_before_the_end(after: int, ending: Any) -> None:
    error = failed(ending(ANSWER, after=after))
    assert (error.type, error.retryable) == ("network", True)
    assert "Hello, world!".startswith(error.raw_assistant_text)
    assert (error.raw_assistant_text == "Hello, world!") is any(b" world!" in event for event in EVENTS[:after])


@pytest.mark.parametrize("after", [len(EVENTS), len(EVENTS) - 1], ids=["silent behind it", "cut in the blank line"])
def test_behind_the_last_event_nothing_is_waited_for(after: int) -> None:
    body_ = b"".join(EVENTS)
    answer = (
        faults.silence(ANSWER, after=after)
        if after == len(EVENTS)
        else Raw(200, EVENT_STREAM, body_[:-1], then="close")
    )
    with LoopbackProvider([answer]) as provider, provider.transport() as transport:
        response: Any = Membrane(adapter(base_url=provider.url, transport=transport)).stream(asked())
    assert (response.text, response.stop_reason) == ("Hello, world!", "tool_use")
    assert [(call.id, call.input) for call in response.tool_calls] == [("c1", {"at": "Bern"})]
