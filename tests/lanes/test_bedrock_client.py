"""client: Bedrock's InvokeModel over a real socket, signed, sent again, slowed down; and how a failure is reduced."""

from __future__ import annotations

import copy
import pickle
import threading
import time
from typing import Any

import pytest
from lanes.lane_stage import Recorder, StillClock, Watched, aws_environment, bedrock_served, refused

from membrane_lite import AbortController, MembraneError
from membrane_lite.lanes import (
    EmbeddingsLive,
    InvokeClient,
    LlmConfig,
    ModelUnavailable,
    invoke_client_for,
    invoke_json,
    make_bedrock_client,
    make_embeddings,
    make_model_client,
    model_failure,
)
from membrane_lite.lanes.client import BedrockClient
from membrane_lite.loopback import Failure, LoopbackProvider, Reply, bedrock, failures, faults
from membrane_lite.loopback.embeddings import vector
from membrane_lite.retry import classify_failure

Json = Any
HI: Json = '{"anthropic_version":"bedrock-2023-05-31","max_tokens":9,"messages":[{"role":"user","content":"Hi"}]}'
OPUS = "global.anthropic.claude-opus-5"


def test_make_bedrock_client_sends_a_signed_invoke_model() -> None:
    with bedrock_served([Reply("Hello")]) as (client, server):
        answer = client.send(OPUS, HI, None)
        (request,) = server.requests
    assert (request.method, request.target) == ("POST", "/model/global.anthropic.claude-opus-5/invoke")
    assert request.body == HI.encode()
    assert request.header("authorization").startswith(f"AWS4-HMAC-SHA256 Credential={bedrock.ACCESS_KEY_ID}/")
    headers = {name.lower() for name, _ in request.headers}
    assert {"user-agent", "content-type", "accept", "x-amz-date"} <= headers
    assert b'"text":"Hello"' in answer


def test_make_bedrock_client_sends_a_model_id_as_one_segment_of_the_path() -> None:
    with bedrock_served([Reply()]) as (client, server):
        make_embeddings(client).embed(["one"])
    assert server.requests[0].target == "/model/cohere.embed-v4%3A0/invoke"


def test_make_bedrock_client_sends_a_bedrock_api_key_instead_of_a_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "bedrock-api-key-of-the-test")
    with bedrock_served([Reply("Hello")]) as (client, server):
        client.send(OPUS, HI)
    assert server.requests[0].header("authorization") == "Bearer bedrock-api-key-of-the-test"
    assert server.requests[0].header("x-amz-date") is None


@pytest.mark.parametrize("region", ["Frankfurt!", "a.b"])
def test_make_bedrock_client_refuses_a_region_that_is_none_at_construction(region: str) -> None:
    error = refused(lambda: make_bedrock_client(region))
    assert error.message == f'region: found {region!r}; expected a region of AWS, "us-west-2" say'


def test_make_bedrock_client_closes_a_transport_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    with LoopbackProvider(lambda received: Reply("Hello")) as server:
        for name, value in {**aws_environment(server.url), "NO_PROXY": "*"}.items():
            monkeypatch.setenv(name, value)
        client = make_bedrock_client("us-east-1", clock=StillClock())
        assert b"Hello" in client.send(OPUS, HI)
        client.close()
        client.close()
        error = refused(lambda: client.send(OPUS, HI))
        assert (error.retryable, "closed" in error.message, server.request_count) == (False, True, 1)


def test_make_bedrock_client_serves_both_lanes() -> None:
    with bedrock_served(lambda received: Reply("Hello")) as (client, _):
        generation = make_model_client(client).generate("opus-5", "Hi", {"effort": "low"})
        found = make_embeddings(client).embed(["one", "two"])
    assert generation.text == "Hello"
    assert [list(row) for row in found] == [vector("one", 1024), vector("two", 1024)]
    assert isinstance(client, BedrockClient)
    declared: InvokeClient = client
    assert declared is client


def test_make_bedrock_client_sends_ten_times_with_growing_waits_and_then_raises_the_last_failure() -> None:
    clock = StillClock()
    with bedrock_served(failures(20, 503), clock=clock) as (client, server):
        error = refused(lambda: client.send(OPUS, HI, None))
        assert server.request_count == 10
    assert (error.type, error.http_status, error.provider_error_code) == ("server", 503, "ServiceUnavailableException")
    assert clock.slept == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 20.0, 20.0, 20.0]


@pytest.mark.parametrize("status", [400, 403, 404, 424])
def test_make_bedrock_client_sends_once_what_is_the_requests_fault(status: int) -> None:
    with bedrock_served(failures(2, status), clock=StillClock()) as (client, server):
        error = refused(lambda: client.send(OPUS, HI, None))
        assert (error.http_status, error.retryable, server.request_count) == (status, False, 1)


def test_make_bedrock_client_sends_again_after_a_reset_and_half_an_answer() -> None:
    script = [faults.reset(), faults.close(Reply("Hello"), after=1), Reply("Hello")]
    with bedrock_served(script, clock=StillClock()) as (client, server):
        assert b"Hello" in client.send(OPUS, HI, None)
        assert server.request_count == 3


def test_make_bedrock_client_slows_the_requests_that_follow_a_throttle() -> None:
    """Its own resend waits for the schedule, and then for the bucket, as any other: a token in 2 s, so 0.5 + 1.5.

    After the success, 2 s after the throttle, the curve allows 3.2 a second, but no more than twice the 0.8 measured.
    """
    clock = StillClock()
    with bedrock_served([Failure(429), *[Reply("Hello")] * 3], clock=clock) as (client, server):
        client.send(OPUS, HI, None)
        assert clock.slept == [0.5, 1.5]
        client.send(OPUS, HI, None)
        assert clock.slept == [0.5, 1.5, 0.625]
        assert server.request_count == 3


def test_make_bedrock_client_slows_nothing_after_other_failures() -> None:
    clock = StillClock()
    with bedrock_served([Failure(500), *[Reply("Hello")] * 3], clock=clock) as (client, _):
        for _ in range(3):
            client.send(OPUS, HI, None)
    assert clock.slept == [0.5]


def test_make_bedrock_client_gives_each_client_a_bucket_of_its_own() -> None:
    clock = StillClock()
    with bedrock_served([Failure(429), Reply("x")], clock=clock) as (first, _):
        first.send(OPUS, HI, None)
    with bedrock_served([Reply("x")] * 3, clock=clock) as (second, _):
        second.send(OPUS, HI, None)
    assert clock.slept == [0.5, 1.5]


def test_request_handler_options_bound_silence_and_a_silent_socket_is_sent_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = StillClock()
    with LoopbackProvider([Reply("Hello")]) as server, server.transport() as transport:
        for name, value in aws_environment(server.url).items():
            monkeypatch.setenv(name, value)
        watched = Watched(transport)
        client = make_bedrock_client("us-east-1", transport=watched, clock=clock)
        assert b"Hello" in client.send(OPUS, HI)
    assert (watched.bounds, clock.slept) == ([300.0] * 4, [0.5])


def test_make_bedrock_client_ends_a_call_that_hangs_in_its_socket_with_the_signal() -> None:
    controller = AbortController()
    with bedrock_served([faults.silence(Reply("Hello"), after=1)]) as (client, _):
        timer = threading.Timer(0.1, controller.abort, ["enough"])
        timer.start()
        began = time.monotonic()
        error = refused(lambda: client.send(OPUS, HI, controller.signal))
        timer.join()
    assert (error.type, time.monotonic() - began < 1) == ("abort", True)


# How a failure is reduced

BODY = {"message": "The prompt was: tell me everything about Ann"}


def test_model_failure_is_the_model_and_the_drivers_own_summary() -> None:
    cause = MembraneError(
        "rate_limit",
        "bedrock: HTTP 429: Too many requests",
        retry_after_ms=1_500,
        http_status=429,
        provider_error_code="ThrottlingException",
        request_id="r-1",
        rate_limit={"requests": {"limit": 10, "remaining": 0}},
        raw_error=BODY,
        raw_request={"messages": ["secret prompt"]},
    )
    reduced = model_failure(OPUS, cause)
    assert reduced.to_dict() == {
        "type": "rate_limit",
        "message": f"{OPUS}: ThrottlingException: bedrock: HTTP 429: Too many requests",
        "retryable": True,
        "retry_after_ms": 1_500,
        "http_status": 429,
        "provider_error_code": "ThrottlingException",
        "request_id": "r-1",
        "rate_limit": {"requests": {"limit": 10, "remaining": 0}},
    }
    assert (reduced.raw_request, reduced.raw_error) == (None, None)
    assert (reduced.model_id, reduced.reason) == (OPUS, "ThrottlingException: bedrock: HTTP 429: Too many requests")


REDUCED: dict[str, tuple[BaseException, str, str, bool]] = {
    "a class of the standard library": (TimeoutError("no answer"), "TimeoutError: no answer", "timeout", True),
    "one of the caller's own": (ValueError("odd"), "ValueError: odd", "unknown", False),
    "one of ours without a code": (MembraneError("network", "reset"), "network: reset", "network", True),
    "an abort": (MembraneError("abort", "stopped"), "abort: stopped", "abort", False),
    "an interrupt": (KeyboardInterrupt(), "KeyboardInterrupt: ", "unknown", False),
}


@pytest.mark.parametrize("cause, reason, type, retryable", REDUCED.values(), ids=REDUCED.keys())
def test_model_failure_of(cause: BaseException, reason: str, type: str, retryable: bool) -> None:
    reduced = model_failure(OPUS, cause)
    assert (reduced.reason, reduced.type, reduced.retryable) == (reason, type, retryable)


def test_model_failure_keeps_the_class_of_a_deadline() -> None:
    reduced = model_failure(OPUS, MembraneError("network", "no answer to connect", failure_class="deadline"))
    assert classify_failure(reduced) == "deadline"


@pytest.mark.parametrize("made", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
def test_a_model_unavailable_can_be_copied_and_sent_between_processes(made: Any) -> None:
    error = ModelUnavailable(OPUS, "no answer", failure=MembraneError("network", "x", http_status=502))
    same = made(error)
    assert (type(same), same.to_dict(), same.reason) == (ModelUnavailable, error.to_dict(), "no answer")


def test_invoke_json_is_one_round_trip() -> None:
    client = Recorder([{"answer": 42}])
    assert invoke_json(client, OPUS, '{"prompt":"Hi"}') == {"answer": 42}
    assert client.sent == [(OPUS, {"prompt": "Hi"})]


NO_BYTES: dict[str, Any] = {"a text": '{"answer": 42}', "an object": object(), "a number": 7}


@pytest.mark.parametrize("answer", NO_BYTES.values(), ids=NO_BYTES.keys())
def test_invoke_json_of_a_client_that_gives_no_bytes(answer: Any) -> None:
    class Odd:
        def send(self, model_id: str, body: str, signal: Any) -> Any:
            return answer

    error = refused(lambda: invoke_json(Odd(), OPUS, "{}"), ModelUnavailable)
    assert error.message.startswith(f"{OPUS}: the answer cannot be parsed: TypeError: ")


@pytest.mark.parametrize("made", [bytes, bytearray, memoryview])
def test_invoke_json_takes_bytes_of_every_kind(made: Any) -> None:
    class Odd:
        def send(self, model_id: str, body: str, signal: Any) -> Any:
            return made(b'{"answer": 42}')

    assert invoke_json(Odd(), OPUS, "{}") == {"answer": 42}


def test_make_bedrock_client_sends_no_half_of_a_character() -> None:
    with bedrock_served([Reply("Hello")]) as (client, server):
        client.send(OPUS, HI.replace("Hi", "\ud83d"))
        assert server.requests[0].json["messages"][0]["content"] == "\ufffd"


def test_invoke_json_through_bedrock_keeps_no_body() -> None:
    with bedrock_served([bedrock.error(400, "ValidationException", "bad input")], clock=StillClock()) as (client, _):
        error = refused(lambda: invoke_json(client, OPUS, HI), ModelUnavailable)
    assert error.to_dict() == {
        "type": "invalid_request",
        "message": f"{OPUS}: ValidationException: bedrock: HTTP 400: bad input (ValidationException)",
        "retryable": False,
        "http_status": 400,
        "provider_error_code": "ValidationException",
    }


def test_invoke_json_of_a_client_without_credentials_says_so() -> None:
    client = make_bedrock_client("us-east-1")
    error = refused(lambda: invoke_json(client, OPUS, HI), ModelUnavailable)
    client.close()
    assert (error.type, error.retryable, error.message.startswith(f"{OPUS}: auth: ")) == ("auth", False, True)


def test_invoke_client_for_is_bedrock_where_no_proxy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with LoopbackProvider(lambda received: Reply("Hello")) as server, server.transport() as transport:
        monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", server.url)
        monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "bedrock-api-key-of-the-test")
        config = LlmConfig(region="eu-west-1")
        client = invoke_client_for(config, transport=transport)
        client.send(OPUS, HI)
        EmbeddingsLive(config, transport=transport).embed_query("one")
        assert repr(client) == "<BedrockClient 'eu-west-1'>"
        assert [request.target for request in server.requests] == [
            "/model/global.anthropic.claude-opus-5/invoke",
            "/model/cohere.embed-v4%3A0/invoke",
        ]
