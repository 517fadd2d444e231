"""proxy: routes, translation both ways, and the client over a real socket."""

from __future__ import annotations

import copy
import json
import pickle
import traceback
from typing import Any

import pytest
from lanes.lane_stage import PROXY_KEY, StillClock, Watched, proxy_served, refused

from membrane_lite import AbortController, MembraneError
from membrane_lite.lanes import (
    EMBED_MODEL_ID,
    MODELS,
    PROXY_ROUTE_PATHS,
    Backoff,
    EmbeddingsLive,
    LlmConfig,
    ModelClientLive,
    ModelUnavailable,
    ProxyClientOptions,
    ProxyConfig,
    ProxyHttpError,
    ProxyRequest,
    StructuredRequest,
    build_embed_body,
    build_invoke_body,
    from_proxy_response,
    invoke_client_for,
    is_retryable_proxy_failure,
    make_embeddings,
    make_model_client,
    make_proxy_client,
    proxy_route_for,
    to_proxy_request,
)
from membrane_lite.loopback import LoopbackProvider, Raw, Reply, ToolCall, chat, failures, faults
from membrane_lite.loopback.embeddings import vector

Json = Any
CONFIG = ProxyConfig("http://h:4000")
OPUS, SOL = "global.anthropic.claude-opus-5", "global.openai.gpt-5.6-sol"
HI = build_invoke_body("opus-5", "Hi", {"effort": "low"})
NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

ROUTES: dict[str, str | None] = {
    **{row.model_id: {"anthropic": "messages", "openai": "completions"}[row.provider] for row in MODELS},
    EMBED_MODEL_ID: "embeddings",
    "us.anthropic.claude-opus-5": "messages",
    "us.cohere.embed-v4:0": "embeddings",
    "meta.llama3": None,
    "": None,
}


@pytest.mark.parametrize("model_id, route", ROUTES.items(), ids=ROUTES.keys())
def test_proxy_route_for(model_id: str, route: str | None) -> None:
    assert proxy_route_for(model_id) == route


def test_proxy_route_paths() -> None:
    assert PROXY_ROUTE_PATHS == {
        "messages": "/v1/messages",
        "completions": "/v1/chat/completions",
        "embeddings": "/v1/embeddings",
    }


def test_to_proxy_request_on_the_messages_route_drops_one_field_and_adds_the_model() -> None:
    body = json.loads(build_invoke_body("opus-5", "Hi", {"effort": "low", "system": "x", "cache_system": True}))
    assert to_proxy_request(CONFIG, OPUS, body) == ProxyRequest(
        "messages",
        "/v1/messages",
        {
            "model": "bedrock/global.anthropic.claude-opus-5",
            "max_tokens": 64_000,
            "system": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}],
            "messages": [{"role": "user", "content": "Hi"}],
            "thinking": {"type": "adaptive"},
            "output_config": {"effort": "low"},
        },
    )


def test_to_proxy_request_on_the_completions_route_adds_the_model() -> None:
    body = json.loads(build_invoke_body("gpt-5.6-sol", "Hi", {"effort": "low"}))
    request = to_proxy_request(ProxyConfig("http://h", model_map={SOL: "sol"}), SOL, body)
    assert request == ProxyRequest("completions", "/v1/chat/completions", {"model": "sol", **body})


def test_to_proxy_request_on_the_embeddings_route_speaks_openais_names() -> None:
    body = json.loads(build_embed_body(["one", "two"], "search_query"))
    assert to_proxy_request(CONFIG, EMBED_MODEL_ID, body) == ProxyRequest(
        "embeddings",
        "/v1/embeddings",
        {
            "model": "bedrock/cohere.embed-v4:0",
            "input": ["one", "two"],
            "dimensions": 1024,
            "input_type": "search_query",
            "encoding_format": "float",
        },
    )


def test_to_proxy_request_of_a_model_without_a_route_is_none() -> None:
    assert to_proxy_request(CONFIG, "meta.llama3", {}) is None


def row(index: Any, embedding: Any) -> Json:
    return {"object": "embedding", "index": index, "embedding": embedding}


NO_VECTORS: Json = {"embeddings": {"float": []}}
FOLDS: dict[str, tuple[Any, Json, Json]] = {
    "messages pass through": ("messages", {"content": []}, {"content": []}),
    "completions pass through": ("completions", {"choices": []}, {"choices": []}),
    "embeddings are put in the order of their texts": (
        "embeddings",
        {"data": [row(2, [3]), row(0, [1]), row(1, [2])]},
        {"embeddings": {"float": [[1], [2], [3]]}},
    ),
    "an index twice": ("embeddings", {"data": [row(0, [1]), row(0, [2])]}, NO_VECTORS),
    "an index that is true": ("embeddings", {"data": [row(True, [1]), row(0, [2])]}, NO_VECTORS),
    "an index that is a list": ("embeddings", {"data": [row([0], [1])]}, NO_VECTORS),
    "an index beyond": ("embeddings", {"data": [row(0, [1]), row(2, [2])]}, NO_VECTORS),
    "no index": ("embeddings", {"data": [{"embedding": [1]}]}, NO_VECTORS),
    "a text instead of numbers": ("embeddings", {"data": [row(0, "AAAA")]}, NO_VECTORS),
    "something else among them": ("embeddings", {"data": [row(0, [1]), None]}, NO_VECTORS),
    "no data": ("embeddings", {"error": "no"}, NO_VECTORS),
    "no object": ("embeddings", [1], NO_VECTORS),
}


@pytest.mark.parametrize("route, payload, folded", FOLDS.values(), ids=FOLDS.keys())
def test_from_proxy_response(route: Any, payload: Json, folded: Json) -> None:
    assert from_proxy_response(route, payload) == folded


RETRYABLE: dict[str, tuple[BaseException, bool]] = {
    "a throttle": (ProxyHttpError(429, ""), True),
    "a timeout at the proxy": (ProxyHttpError(408, ""), True),
    "an upstream that fell over": (ProxyHttpError(502, ""), True),
    "the last of its kind": (ProxyHttpError(599, ""), True),
    "an overload": (ProxyHttpError(529, ""), True),
    "a bad request": (ProxyHttpError(400, ""), False),
    "no key": (ProxyHttpError(401, ""), False),
    "no such model": (ProxyHttpError(404, ""), False),
    "a redirect": (ProxyHttpError(307, ""), False),
    "a socket that never answered": (MembraneError("timeout", "idle"), True),
    "a reset": (MembraneError("network", "reset"), True),
    "a certificate that is refused": (MembraneError("network", "expired", retryable=False), False),
    "an abort": (MembraneError("abort", "stopped"), False),
    "another library's timeout": (TimeoutError("no answer"), True),
    "an interrupt": (KeyboardInterrupt(), False),
}


@pytest.mark.parametrize("cause, retried", RETRYABLE.values(), ids=RETRYABLE.keys())
def test_is_retryable_proxy_failure(cause: BaseException, retried: bool) -> None:
    assert is_retryable_proxy_failure(cause) is retried


def test_proxy_http_error_has_the_status_and_two_hundred_characters_of_the_body() -> None:
    body = '{"error":{"code":"model_not_found","message":"' + "x" * 500 + '"}}'
    error = ProxyHttpError(404, body)
    assert (error.status, error.http_status, error.type, error.retryable) == (404, 404, "invalid_request", False)
    assert error.message == "the proxy answered 404: " + body[:200]
    assert (error.provider_error_code, error.raw_error, error.raw_request) == ("model_not_found", None, None)
    assert "x" * 201 not in json.dumps(error.to_dict())


@pytest.mark.parametrize("made", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
def test_proxy_http_error_can_be_copied(made: Any) -> None:
    error = ProxyHttpError(429, "slow down", headers=[("retry-after", "7")])
    same = made(error)
    assert (type(same), same.status, same.to_dict()) == (ProxyHttpError, 429, error.to_dict())
    assert error.retry_after_ms == 7_000


# Over a socket


def test_make_proxy_client_sends_the_key_and_the_translated_body() -> None:
    with proxy_served([Reply("Hello")]) as (client, server):
        answer = client.send(OPUS, HI, None)
        (request,) = server.requests
    assert (request.method, request.target) == ("POST", "/v1/messages")
    assert (request.header("authorization"), request.header("content-type")) == (
        f"Bearer {PROXY_KEY}",
        "application/json",
    )
    assert request.json["model"] == "bedrock/global.anthropic.claude-opus-5"
    assert "anthropic_version" not in request.json
    assert json.loads(answer)["content"] == [{"type": "text", "text": "Hello"}]


def test_make_proxy_client_without_a_key_sends_none() -> None:
    with LoopbackProvider([Reply("Hello")], check=False) as server, server.transport() as transport:
        make_proxy_client(ProxyConfig(server.url), transport=transport).send(OPUS, HI)
        assert server.requests[0].header("authorization") is None


def test_make_proxy_client_gives_the_chat_routes_bytes_as_they_came() -> None:
    spaced = b'{ "content" : [ ] ,\n "x": 1e2 }'
    with proxy_served([Raw(200, {"Content-Type": "application/json"}, spaced)] * 2) as (client, _):
        assert [client.send(OPUS, HI), client.send(SOL, "{}")] == [spaced, spaced]


def test_make_proxy_client_serves_both_lanes_on_three_routes() -> None:
    def script(received: Any) -> Reply:
        structured = b"emit" in received.body
        if received.format.name == "anthropic":
            return Reply(ToolCall("emit", {"n": 3})) if structured else Reply("Hello")
        return Reply('{"n": 3}' if structured else "Hello")

    with proxy_served(script) as (client, server):
        service, found = make_model_client(client), make_embeddings(client).embed(["one", "two"])
        said = [service.generate(key, "Hi", {"effort": "low"}).text for key in ("opus-5", "gpt-5.6-sol")]
        asked = [StructuredRequest(key, "Hi", NUMBER, "low") for key in ("fable-5", "gpt-5.6-terra")]
        numbers = [service.generate_object(request) for request in asked]
        targets = [request.target for request in server.requests]
    assert [list(vector_) for vector_ in found] == [vector("one", 1024), vector("two", 1024)]
    assert (said, numbers) == (["Hello", "Hello"], [{"n": 3}, {"n": 3}])
    assert targets == ["/v1/embeddings", *["/v1/messages", "/v1/chat/completions"] * 2]


def test_make_proxy_client_retries_throttles_timeouts_and_broken_upstreams() -> None:
    clock = StillClock()
    script = [
        *failures(1, 429),
        *failures(1, 408),
        *failures(1, 502),
        faults.close(Reply("x"), after=1),
        Reply("Hello"),
    ]
    with proxy_served(script, clock=clock) as (client, server):
        assert b"Hello" in client.send(OPUS, HI)
        assert (server.request_count, clock.slept) == (5, [0.25, 0.5, 1.0, 2.0])


def test_make_proxy_client_gives_up_once_its_waits_would_pass_two_minutes() -> None:
    clock = StillClock(1.0)
    with proxy_served(failures(99, 503), clock=clock) as (client, server):
        error = refused(lambda: client.send(OPUS, HI), ProxyHttpError)
        assert (error.status, server.request_count) == (503, 11)
    assert (clock.slept, sum(clock.slept)) == ([0.5, 1, 2, 4, 8, 16, 20, 20, 20, 20], 111.5)


def test_make_proxy_client_waits_as_long_as_the_proxy_asks() -> None:
    clock = StillClock()
    with proxy_served([*failures(1, 429, headers={"Retry-After": "7"}), Reply("x")], clock=clock) as (client, _):
        client.send(OPUS, HI)
    assert clock.slept == [7.0]


@pytest.mark.parametrize("status", [307, 400, 401, 403, 404, 422])
def test_make_proxy_client_does_not_repeat_what_is_the_requests_fault(status: int) -> None:
    with proxy_served(failures(2, status), clock=StillClock()) as (client, server):
        assert refused(lambda: client.send(OPUS, HI), ProxyHttpError).status == status
        assert server.request_count == 1


def test_make_proxy_client_names_where_a_redirect_leads_and_does_not_go_there() -> None:
    with proxy_served([Raw(308, {"Location": "https://h/v1/messages"}, "moved")] * 2) as (client, server):
        error = refused(lambda: client.send(OPUS, HI), ProxyHttpError)
        assert (error.retryable, server.request_count) == (False, 1)
    assert error.message == (
        "the proxy answered 308: redirects to https://h/v1/messages; redirects are never followed, "
        "set MEMHTML_LLM_BASE_URL. moved"
    )


def test_make_proxy_client_bounds_silence_by_request_handler_options_and_sends_again() -> None:
    clock = StillClock()
    with LoopbackProvider([Reply("Hello")], check=False) as server, server.transport() as transport:
        watched = Watched(transport)
        client = make_proxy_client(ProxyConfig(server.url), transport=watched, clock=clock)
        assert b"Hello" in client.send(OPUS, HI)
    assert (watched.bounds, clock.slept) == ([300.0] * 4, [0.25])


def test_make_proxy_client_with_a_schedule_of_its_own() -> None:
    clock = StillClock()
    options: ProxyClientOptions = {"schedule": Backoff(requests=3, first_ms=0)}
    with proxy_served(failures(9, 500), clock=clock, **options) as (client, server):
        refused(lambda: client.send(OPUS, HI), ProxyHttpError)
        assert (server.request_count, clock.slept) == (3, [])


def test_make_proxy_client_sends_no_half_of_a_character() -> None:
    with proxy_served([Reply("Hello")]) as (client, server):
        client.send(OPUS, HI.replace("Hi", "\ud83d"))
        assert server.requests[0].json["messages"][0]["content"] == "\ufffd"


def test_make_proxy_client_refuses_a_model_without_a_route_and_a_body_that_is_none() -> None:
    client = make_proxy_client(CONFIG)
    error = refused(lambda: client.send("meta.llama3", "{}"))
    assert error.message == ("model_id: found 'meta.llama3'; expected one with 'anthropic.', 'openai.', 'cohere.embed'")
    assert refused(lambda: client.send(OPUS, "Hi")).message.startswith("body: ")
    assert refused(lambda: client.send(OPUS, None)).message.startswith("body: ")  # type: ignore[arg-type]
    assert refused(lambda: client.send(OPUS, "[]")).message == "body: found list []; expected a JSON object"
    client.close()


def test_make_proxy_client_does_not_show_a_key_that_the_proxy_sends_back() -> None:
    told = chat.error(401, "auth", f"Invalid key {PROXY_KEY}, " + "x" * 160 + PROXY_KEY)
    with proxy_served([told], clock=StillClock()) as (client, _):
        error = refused(lambda: make_embeddings(client).embed(["one"]), ModelUnavailable)
    assert "Invalid key [redacted]" in error.message
    assert [part for part in (PROXY_KEY, PROXY_KEY[:10]) if part in error.message + str(error.__cause__)] == []
    assert PROXY_KEY not in repr(client)


AWKWARD_KEY = 'sk-a/b"c\\d-0123456789'
ECHOES: dict[str, Raw] = {
    "as it is": Raw(401, {}, f"no such key: {AWKWARD_KEY}"),
    "in a string of JSON": Raw(401, {}, json.dumps({"error": {"message": AWKWARD_KEY, "code": AWKWARD_KEY}})),
    "with slashes escaped": Raw(401, {}, json.dumps({"error": {"code": AWKWARD_KEY}}).replace("/", "\\/")),
    "in headers": Raw(401, {"x-request-id": AWKWARD_KEY, "Location": AWKWARD_KEY}, "{}"),
    "in a header that is quoted": Raw(200, {"Content-Encoding": AWKWARD_KEY}, "{}"),
    "in an answer that cannot be parsed": Raw(200, {}, f'{{"key": {AWKWARD_KEY}'),
}


@pytest.mark.parametrize("echo", ECHOES.values(), ids=ECHOES.keys())
def test_make_proxy_client_shows_its_key_in_no_text(echo: Raw) -> None:
    with LoopbackProvider([echo], check=False) as server, server.transport() as transport:
        config = ProxyConfig(server.url, api_key=AWKWARD_KEY)
        client = make_proxy_client(config, transport=transport, schedule=Backoff(1, 0))
        error = refused(lambda: make_embeddings(client).embed(["one"]), ModelUnavailable)
    told = traceback.format_exception(type(error), error, error.__traceback__)
    texts = [*told, repr(error), json.dumps(error.to_dict()), repr(error.args), repr(vars(error)), repr(config)]
    cause = error.__cause__ or error.__context__
    texts += [repr(cause), repr(vars(cause))] if cause is not None else []
    assert [text for text in texts if "0123456789" in text] == []


def test_model_failure_of_a_proxy_http_error_is_its_name_and_message() -> None:
    body = '{"error":{"code":"model_not_found"}}'
    with proxy_served([Raw(404, {}, body)]) as (client, _):
        error = refused(lambda: make_model_client(client).generate("opus-5", "Hi", {"effort": "low"}), ModelUnavailable)
    assert error.message == f"{OPUS}: ProxyHttpError: the proxy answered 404: {body}"
    assert (error.type, error.retryable, error.http_status) == ("invalid_request", False, 404)


@pytest.mark.parametrize(
    "body", ["<html>", '{"data": "none"}', "[]", '{"data":[{"index":0,"embedding":[1e400]}]}', '{"error":{}}', ""]
)
def test_from_proxy_response_of_no_vectors_is_a_typed_failure_of_embed(body: str) -> None:
    with proxy_served([Raw(200, {}, body)]) as (client, server):
        refused(lambda: make_embeddings(client).embed(["one"]), ModelUnavailable)
        assert server.request_count == 1


def test_read_embeddings_refuses_a_proxy_that_drops_the_dimension_by_its_width() -> None:
    def script(received: Any) -> Raw:
        wide = [row(index, [0.5] * 1536) for index, _ in enumerate(received.json["input"])]
        return Raw(200, {}, json.dumps({"data": wide}))

    with proxy_served(script) as (client, _):
        error = refused(lambda: make_embeddings(client).embed(["one"]), ModelUnavailable)
    assert error.message == (
        "cohere.embed-v4:0: batch 1 of 1 (texts 0 to 0): vector 0: expected 1024 numbers, found 1536"
    )


def test_make_proxy_client_ends_with_the_signal() -> None:
    controller = AbortController()
    controller.abort("enough")
    with proxy_served([Reply("Hello")]) as (client, server):
        error = refused(lambda: client.send(OPUS, HI, controller.signal))
        assert (error.type, server.request_count) == ("abort", 0)


def test_invoke_client_for_is_the_one_construction_site_of_both_lanes() -> None:
    with LoopbackProvider(lambda received: Reply("Hello"), check=False) as server, server.transport() as transport:
        config = LlmConfig(proxy=ProxyConfig(server.url), openai_prompt_cache="implicit")
        assert repr(invoke_client_for(config)) == f"<ProxyClient {server.url!r}>"
        EmbeddingsLive(config, transport=transport).embed(["one"])
        ModelClientLive(config, transport=transport).generate("gpt-5.6-sol", "Hi", {"effort": "low"})
        assert [request.target for request in server.requests] == ["/v1/embeddings", "/v1/chat/completions"]
        assert "prompt_cache_options" not in server.requests[1].json


LIVE: dict[str, Any] = {
    "invoke_client_for": lambda config, **given: invoke_client_for(config, **given).send(OPUS, HI),
    "EmbeddingsLive": lambda config, **given: EmbeddingsLive(config, **given).embed_query("one"),
    "ModelClientLive": lambda config, **given: ModelClientLive(config, **given).generate(
        "opus-5", "Hi", {"effort": "low"}
    ),
}


@pytest.mark.parametrize("call", LIVE.values(), ids=LIVE.keys())
def test_invoke_client_for_hands_its_clock_on(call: Any) -> None:
    clock = StillClock()
    with LoopbackProvider([*failures(1, 503), Reply("Hello")], check=False) as server, server.transport() as transport:
        call(LlmConfig(proxy=ProxyConfig(server.url)), transport=transport, clock=clock)
    assert clock.slept == [0.25]


def test_embeddings_live_needs_the_environment_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    with LoopbackProvider(lambda received: Reply("Hello"), check=False) as server:
        monkeypatch.setenv("MEMHTML_LLM_BASE_URL", server.url + "/")
        monkeypatch.setenv("MEMHTML_LLM_API_KEY", PROXY_KEY)
        monkeypatch.setenv("NO_PROXY", "*")
        live = EmbeddingsLive()
        live.embed_query("one")
        live.close()
        (request,) = server.requests
    assert (request.target, request.header("authorization")) == ("/v1/embeddings", f"Bearer {PROXY_KEY}")
