"""base: settings of an adapter, what it sends over a real socket, and what it makes of answers that are none."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import urllib3

from membrane_lite.abort import AbortController
from membrane_lite.call import Call, Deadlines, Limits
from membrane_lite.clock import Clock
from membrane_lite.errors import MembraneError
from membrane_lite.formatters.base import BuildSettings
from membrane_lite.formatters.native import NativeFormatter
from membrane_lite.loopback import Failure, LoopbackProvider, Raw, Reply, ToolCall, faults
from membrane_lite.providers.anthropic import AnthropicAdapter
from membrane_lite.providers.base import HttpAdapter, read_base_url, read_milliseconds, user_agent
from membrane_lite.providers.openai_compatible import OpenAICompatibleAdapter
from membrane_lite.redactor import Redactor
from membrane_lite.transport.pool import Transport
from membrane_lite.values.content import Text
from membrane_lite.values.deltas import AnswerHead, BlockEnd, BlockStart, Delta, Finished, ModelNamed, TextDelta
from membrane_lite.values.reader import read_request
from membrane_lite.values.requests import ProviderRequest
from membrane_lite.version import VERSION
from membrane_lite.wire.http import HttpRequest

Json = Any
KEY = "sk-secret-key-1"
REQUEST = {
    "messages": [{"participant": "Ann", "content": "höflich? \ud83d"}],
    "config": {"model": "claude-sonnet-4-5", "max_tokens": 4_096, "thinking": {"budget_tokens": 2_048}},
    "system": "be kind",
}
SHAPED: ProviderRequest = NativeFormatter().conversation(read_request(REQUEST), BuildSettings()).build()


# Settings

BASE_URLS: dict[str, tuple[str | None, str | None, str]] = {
    "given": ("http://h/v1", "http://env", "http://h/v1"),
    "one slash at its end is dropped": ("https://h:8443/v1/", None, "https://h:8443/v1"),
    "of two one": ("http://h//", None, "http://h/"),
    "an address of six parts": ("http://[::1]:80", None, "http://[::1]:80"),
    "the variable": (None, " http://env/ ", "http://env"),
    "a blank variable": (None, " ", "http://default"),
    "nothing": (None, None, "http://default"),
}


@pytest.mark.parametrize("given, variable, url", BASE_URLS.values(), ids=BASE_URLS.keys())
def test_the_address_of_a_server(given: str | None, variable: str | None, url: str) -> None:
    env = {} if variable is None else {"BASE_URL": variable}
    assert read_base_url(given, "BASE_URL", env, "http://default") == url


EXPECTED = "expected http:// or https://, a host and a path"
WRONG_URLS: dict[str, tuple[str | None, dict[str, str], str]] = {
    "none at all": (None, {}, 'base_url: missing; expected the address of the server, "http://localhost:11434/v1" say'),
    "an empty one": ("", {}, 'base_url: missing; expected the address of the server, "http://localhost:11434/v1" say'),
    "no scheme": ("localhost:11434", {}, f"base_url: found 'localhost:11434'; {EXPECTED}"),
    "another scheme": ("ws://h", {}, f"base_url: found 'ws://h'; {EXPECTED}"),
    "no host": ("http://", {}, f"base_url: found 'http://'; {EXPECTED}"),
    "a port that is none": ("http://h:port", {}, f"base_url: found 'http://h:port'; {EXPECTED}"),
    "a port out of range": ("http://h:99999", {}, f"base_url: found 'http://h:99999'; {EXPECTED}"),
    "a query": ("http://h/v1?x=1", {}, f"base_url: found 'http://h/v1?x=1'; {EXPECTED}"),
    "a fragment": ("http://h/v1#x", {}, f"base_url: found 'http://h/v1#x'; {EXPECTED}"),
    "of a variable": (None, {"BASE_URL": "h"}, f"BASE_URL: found 'h'; {EXPECTED}"),
    "one with a password": ("ftp://user:pa55@h/", {}, f"base_url: found 'ftp://h/'; {EXPECTED}"),
}


@pytest.mark.parametrize("given, env, words", WRONG_URLS.values(), ids=WRONG_URLS.keys())
def test_an_address_that_is_none(given: str | None, env: dict[str, str], words: str) -> None:
    with pytest.raises(MembraneError) as raised:
        read_base_url(given, "BASE_URL", env, None)
    assert (raised.value.type, raised.value.message) == ("invalid_request", words)


MILLISECONDS: dict[str, Any] = {"zero": 0, "below zero": -1, "a fraction": 1.5, "true": True, "a string": "5"}


@pytest.mark.parametrize("value", MILLISECONDS.values(), ids=MILLISECONDS.keys())
def test_a_time_that_is_none(value: Any) -> None:
    with pytest.raises(MembraneError) as raised:
        AnthropicAdapter(api_key=KEY, base_url="http://h", progress_timeout_ms=value)
    words = f"progress_timeout_ms: found {value!r}; expected a whole number of milliseconds, 1 or more"
    assert (raised.value.type, raised.value.message) == ("invalid_request", words)
    assert [read_milliseconds("x", given) for given in (None, 1, 600_000)] == [None, 1, 600_000]


MADE: dict[str, Any] = {
    "anthropic": lambda **more: AnthropicAdapter(**{"api_key": KEY, "base_url": "http://h", **more}),
    "compatible": lambda **more: OpenAICompatibleAdapter(**{"base_url": "http://h", "api_key": KEY, **more}),
}
RESERVED: dict[str, tuple[str, str]] = {
    "the key": ("anthropic", "X-Api-Key"),
    "the token": ("anthropic", "authorization"),
    "the key of a compatible server": ("compatible", "Authorization"),
    "the host": ("anthropic", "Host"),
    "the length": ("compatible", "content-length"),
    "the framing": ("compatible", "Transfer-Encoding"),
}


@pytest.mark.parametrize("kind, name", RESERVED.values(), ids=RESERVED.keys())
def test_headers_that_are_the_adapters_own(kind: str, name: str) -> None:
    with pytest.raises(MembraneError) as raised:
        MADE[kind](headers={name: KEY})
    words = f"headers: {name!r} is set by the adapter; expected other headers; pass keys as api_key"
    assert (raised.value.type, raised.value.message) == ("invalid_request", words)


BAD_HEADERS: dict[str, tuple[Any, str]] = {
    "a name with a space": ({"x y": "1"}, "headers: 'x y' is no header name; expected an RFC 9110 token"),
    "a name that is none": ({7: "1"}, "headers: 7 is no header name; expected an RFC 9110 token"),
    "a value with a line break": (
        {"x": f"{KEY}\r\nEvil: 1"},
        "headers['x']: the value is not a header value; expected a string of Latin-1 characters without line breaks or "
        "other control characters",
    ),
    "a value that is none": (
        [("x", None)],
        "headers['x']: the value is not a header value; expected a string of Latin-1 characters without line breaks or "
        "other control characters",
    ),
}


@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("headers, words", BAD_HEADERS.values(), ids=BAD_HEADERS.keys())
def test_headers_that_cannot_be_sent(kind: str, headers: Any, words: str) -> None:
    with pytest.raises(MembraneError) as raised:
        MADE[kind](headers=headers)
    assert (raised.value.type, raised.value.message) == ("invalid_request", words)


def test_a_callers_headers_replace_ours_in_their_place() -> None:
    request = MADE["compatible"](headers={"user-agent": "mine/1", "X-Org": "o"}).render(REQUEST)
    assert [pair for pair in request.headers if pair[0] in ("User-Agent", "X-Org")] == [
        ("User-Agent", "mine/1"),
        ("X-Org", "o"),
    ]
    assert request.headers[0] == ("User-Agent", "mine/1")


def test_the_user_agent() -> None:
    expected = f"membrane-lite/{VERSION} python/{platform.python_version()} urllib3/{urllib3.__version__}"
    assert user_agent() == expected
    assert MADE["anthropic"]().render(REQUEST).headers[0] == ("User-Agent", expected)


def test_the_user_agent_is_named_after_the_package_it_was_copied_into(tmp_path: Any) -> None:
    root = os.path.dirname(os.path.dirname(os.path.abspath(sys.modules["membrane_lite"].__file__ or "")))
    (tmp_path / "my_house").mkdir()
    (tmp_path / "my_house" / "__init__.py").write_text("")
    (tmp_path / "my_house" / "talking_box").symlink_to(os.path.join(root, "membrane_lite"))
    code = "from my_house.talking_box.providers.base import user_agent; print(user_agent())"
    env = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    said = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout
    assert said.startswith(f"talking-box/{VERSION} python/")


# Over a socket


@contextmanager
def answered(*answers: Any, kind: str, **settings: Any) -> Iterator[tuple[HttpAdapter, LoopbackProvider]]:
    """An adapter and the provider it speaks to."""
    with LoopbackProvider(answers) as provider, provider.transport() as transport:
        url = provider.url if kind == "anthropic" else f"{provider.url}/v1"
        yield MADE[kind](base_url=url, transport=transport, **settings), provider


def run(
    adapter: HttpAdapter, *, stream: bool, request: ProviderRequest = SHAPED, call: Call | None = None
) -> list[Delta]:
    send = adapter.stream if stream else adapter.complete
    return list(send(request, call or Call(clock=Clock())))


def failure(adapter: HttpAdapter, *, stream: bool, **more: Any) -> MembraneError:
    with pytest.raises(MembraneError) as raised:
        run(adapter, stream=stream, **more)
    return raised.value


WAYS = {f"{kind}, {'streamed' if stream else 'at once'}": (kind, stream) for kind in MADE for stream in (False, True)}
each_way = pytest.mark.parametrize("kind, stream", WAYS.values(), ids=WAYS.keys())


@each_way
def test_what_is_rendered_is_what_is_sent(kind: str, stream: bool) -> None:
    with answered(Reply("ok"), kind=kind, headers={"X-Org": "é"}) as (adapter, provider):
        run(adapter, stream=stream)
        rendered, received = adapter.render(REQUEST, stream=stream), provider.requests[0]
    framing = [("Host", f"127.0.0.1:{provider.port}"), ("Content-Length", str(len(rendered.body)))]
    assert sorted(received.headers) == sorted([*rendered.headers, *framing])
    assert (received.method, f"{provider.url}{received.target}") == (rendered.method, rendered.url)
    assert received.body == rendered.body
    assert b"h\xc3\xb6flich? \xef\xbf\xbd" in received.body


@each_way
def test_an_answer_as_deltas(kind: str, stream: bool) -> None:
    with answered(Reply("Hello", headers={"x-ratelimit-remaining-requests": "4"}), kind=kind) as (adapter, _):
        deltas = run(adapter, stream=stream)
    head, end = deltas[0], deltas[-1]
    assert isinstance(head, AnswerHead)
    assert isinstance(end, Finished)
    assert (head.request_id, head.rate_limit) == ("req_loopback_000001", {"requests": {"remaining": 4}})
    assert head.headers["content-type"].startswith("text/event-stream" if stream else "application/json")
    assert ModelNamed("claude-sonnet-4-5") in deltas
    assert [delta for delta in deltas if isinstance(delta, (BlockStart, TextDelta, BlockEnd))][1:] == [
        TextDelta(0, "Hello"),
        BlockEnd(0),
    ]
    assert (end.stop_reason, end.raw is None) == ("end_turn", stream)


@pytest.mark.parametrize("kind", MADE)
def test_a_server_that_answers_a_stream_request_with_a_document(kind: str) -> None:
    with answered(Reply("Hello"), kind=kind) as (adapter, provider):
        document = run(adapter, stream=False)[-1].raw  # type: ignore[attr-defined]
        headers = {"Content-Type": "application/json; charset=utf-8"}
        provider.extend([Raw(200, headers, json.dumps(document), framing="length")])
        deltas = run(adapter, stream=True)
    assert TextDelta(0, "Hello") in deltas
    assert deltas[-1].raw == document  # type: ignore[attr-defined]


@each_way
def test_on_request_is_given_the_body_before_it_leaves(kind: str, stream: bool) -> None:
    bodies: list[Any] = []
    with answered(Reply("ok"), kind=kind) as (adapter, provider):
        call = Call(clock=Clock(), on_request=lambda body: bodies.append((body, provider.request_count)))
        run(adapter, stream=stream, call=call)
    assert [(json.loads(json.dumps(body)), count) for body, count in bodies] == [
        ({**provider.requests[0].json, "messages": bodies[0][0]["messages"]}, 0)
    ]


@each_way
def test_what_on_request_raises_keeps_it_from_leaving(kind: str, stream: bool) -> None:
    def refuses(_: Any) -> None:
        raise LookupError("no")

    with answered(Reply("ok"), kind=kind) as (adapter, provider):
        with pytest.raises(LookupError):
            run(adapter, stream=stream, call=Call(clock=Clock(), on_request=refuses))
        assert provider.request_count == 0


def test_without_a_key_nothing_is_sent() -> None:
    sent: list[Any] = []
    with answered(Reply("ok"), kind="anthropic", api_key="") as (adapter, provider):
        error = failure(adapter, stream=False, call=Call(clock=Clock(), on_request=sent.append))
        assert (provider.request_count, sent) == (0, [])
    words = "api_key: no key; pass api_key= or set ANTHROPIC_API_KEY (nothing was sent)"
    assert (error.type, error.message, error.retryable) == ("auth", words, False)


def test_a_compatible_server_needs_none() -> None:
    with answered(Reply("ok"), kind="compatible", api_key=None) as (adapter, provider):
        run(adapter, stream=True)
    assert provider.requests[0].header("authorization") is None


@each_way
def test_a_redirect_is_not_followed(kind: str, stream: bool) -> None:
    with LoopbackProvider([Reply("stolen")]) as other:
        moved = Raw(307, {"Location": f"{other.url}/v1/messages?key={KEY}"}, "moved", framing="length")
        with answered(moved, kind=kind) as (adapter, provider):
            error = failure(adapter, stream=stream)
        assert (provider.request_count, other.request_count) == (1, 0)
    assert (error.type, error.http_status, error.retryable) == ("invalid_request", 307, False)
    assert error.message == (
        f"{adapter.name}: HTTP 307 redirects to {other.url}/v1/messages?key=[redacted]; redirects are never followed, "
        "set base_url"
    )


def test_a_redirect_to_nowhere() -> None:
    with answered(Raw(302, {}, "", framing="length"), kind="anthropic") as (adapter, _):
        error = failure(adapter, stream=False)
    assert "HTTP 302 redirects to nowhere;" in error.message


CONNECT_TIMEOUTS = {"anthropic": "deadline", "compatible": None}


@pytest.mark.parametrize("kind, failure_class", CONNECT_TIMEOUTS.items(), ids=CONNECT_TIMEOUTS.keys())
def test_whether_a_connect_timeout_may_be_repeated(kind: str, failure_class: str | None) -> None:
    """Anthropic's is a deadline, because its clients cannot tell it from one of a request already sent."""

    class NeverConnects:
        redactor = Redactor()

        def open(self, request: HttpRequest, call: Call) -> Any:
            raise MembraneError("network", "no connection", provider_error_code="connect_timeout") from OSError("x")

        def close(self) -> None:
            raise AssertionError("an adapter closes only the transport it made")

    with MADE[kind](transport=NeverConnects()) as adapter:
        error = failure(adapter, stream=True)
    assert (error.failure_class, str(error.__cause__)) == (failure_class, "x")


@each_way
def test_an_error_tells_no_secret(kind: str, stream: bool) -> None:
    body = json.dumps({"error": {"type": "authentication_error", "message": f"wrong key {KEY} or {KEY}-2"}})
    answer = Raw(401, {"Content-Type": "application/json", "x-echo": KEY}, body, framing="length")
    with answered(answer, kind=kind) as (adapter, _):
        error = failure(adapter, stream=stream)
    assert (error.type, error.http_status) == ("auth", 401)
    assert "wrong key [redacted] or [redacted]-2" in error.message
    assert KEY not in json.dumps(error.to_dict())


QUOTED: dict[str, bytes] = {
    "a status line": f"HTTP/1.1 {KEY}\r\n\r\n".encode(),
    "another protocol": f"X-Api-Key: {KEY}\r\n\r\n".encode(),
    "the size of a chunk": f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{KEY}\r\n".encode(),
    "a coding": f"HTTP/1.1 200 OK\r\nContent-Encoding: {KEY}\r\nContent-Length: 1\r\n\r\nx".encode(),
    "a length": f"HTTP/1.1 200 OK\r\nContent-Length: {KEY}\r\n\r\n".encode(),
}


@each_way
@pytest.mark.parametrize("sent", QUOTED.values(), ids=QUOTED.keys())
def test_nor_one_that_came_back_where_no_http_was_understood(kind: str, stream: bool, sent: bytes) -> None:
    with answered(faults.garbage(data=sent), kind=kind) as (adapter, _):
        error = failure(adapter, stream=stream)
    told = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    assert error.type in ("network", "server")
    assert KEY not in told + repr(error) + repr(error.args) + json.dumps(error.to_dict())


@pytest.mark.parametrize("stream", [False, True], ids=["at once", "streamed"])
def test_nor_one_that_was_given_as_a_header(stream: bool) -> None:
    answer = Raw(401, {"Content-Type": "text/plain"}, f"wrong key {KEY}", framing="length")
    with answered(answer, kind="compatible", headers={"Api-Key": f"Token {KEY}"}, api_key=None) as (adapter, _):
        error = failure(adapter, stream=stream)
    assert error.message == "openai-compatible: HTTP 401: wrong key [redacted]"


@each_way
def test_a_refused_parameter_comes_with_advice(kind: str, stream: bool) -> None:
    with answered(Failure(400, "`temperature` is deprecated for this model."), kind=kind) as (adapter, _):
        error = failure(adapter, stream=stream)
    advice = "(model_traits={'claude-sonnet-4-5': {'sampling': False}} on the adapter leaves it out)"
    assert (error.type, error.message.endswith(advice)) == ("invalid_request", True)


# Answers that are none

SSE = {"Content-Type": "text/event-stream"}
DOCUMENT = {"Content-Type": "application/json"}
DEEP = "[" * 200_000


def event(data: str, name: str = "content_block_delta") -> str:
    return f"event: {name}\ndata: {data}\n\n"


LONG = json.dumps({"type": "content_block_delta", "index": 0, "delta": {"key": KEY, "text": "x" * 300}})
MALFORMED_EVENTS: dict[str, tuple[str, str]] = {
    "no JSON": (event("{]"), "event 'content_block_delta' cannot be read (JSONDecodeError): '{]'"),
    "another shape": (
        event('{"type": "content_block_delta"}'),
        "event 'content_block_delta' cannot be read (KeyError): '{\"type\": \"content_block_delta\"}'",
    ),
    "no object": (event("[]", "x"), "event 'x' cannot be read (TypeError): '[]'"),
    "a long one is cut, and tells no secret": (
        event(LONG),
        f"event 'content_block_delta' cannot be read (KeyError): {LONG[:200].replace(KEY, '[redacted]')!r}",
    ),
}


@pytest.mark.parametrize("body, words", MALFORMED_EVENTS.values(), ids=MALFORMED_EVENTS.keys())
def test_an_event_that_cannot_be_read(body: str, words: str) -> None:
    with answered(Raw(200, SSE, body + event('{"type": "ping"}', "ping")), kind="anthropic") as (adapter, _):
        error = failure(adapter, stream=True)
    assert (error.type, error.message, error.retryable) == ("server", f"anthropic: {words}", True)


MALFORMED_DOCUMENTS: dict[str, tuple[str, str]] = {
    "no JSON": ("<html>", "the answer cannot be read (JSONDecodeError): '<html>'"),
    "nothing": ("", "the answer cannot be read (JSONDecodeError): ''"),
    "another shape": ("{}", "the answer cannot be read (KeyError): '{}'"),
}


@pytest.mark.parametrize("body, words", MALFORMED_DOCUMENTS.values(), ids=MALFORMED_DOCUMENTS.keys())
def test_an_answer_that_cannot_be_read(body: str, words: str) -> None:
    with answered(Raw(200, DOCUMENT, body, framing="length"), kind="anthropic") as (adapter, _):
        error = failure(adapter, stream=False)
    assert (error.type, error.message) == ("server", f"anthropic: {words}")


@each_way
def test_an_answer_that_is_too_deep(kind: str, stream: bool) -> None:
    body = f"data: {DEEP}\n\ndata: {{}}\n\n" if stream else DEEP
    answer = Raw(200, SSE if stream else DOCUMENT, body, framing="length")
    with answered(answer, kind=kind) as (adapter, _):
        error = failure(adapter, stream=stream)
    words = f"{adapter.name}: an answer of 200000 characters is too large or too deep (RecursionError)"
    assert (error.type, error.message) == ("server", words)


CUT: dict[str, tuple[str, str, str]] = {
    "nothing": ("anthropic", "", "0 events without a message_delta with a stop_reason"),
    "a ping": ("anthropic", event('{"type": "ping"}', "ping"), "1 events without a message_delta with a stop_reason"),
    "half of an answer": (
        "compatible",
        'data: {"choices": [{"delta": {"content": "a"}}]}\n\n' * 2,
        "2 events without finish_reason or [DONE]",
    ),
    "and half of an event": (
        "compatible",
        'data: {"choices": [{"delta": {"content": "a"}}]}\n\ndata: {"choi',
        "1 events without finish_reason or [DONE]",
    ),
}


@pytest.mark.parametrize("kind, body, words", CUT.values(), ids=CUT.keys())
def test_a_stream_that_ends_early(kind: str, body: str, words: str) -> None:
    with answered(Raw(200, SSE, body), kind=kind) as (adapter, _):
        error = failure(adapter, stream=True)
    expected = (
        f"{adapter.name}: the stream ended after {words}; the answer is incomplete, what arrived is in .partial_content"
    )
    assert (error.type, error.message, error.retryable) == ("network", expected, True)


def test_events_of_nothing_are_passed_over() -> None:
    chunk = 'data: {"choices": [{"delta": {"content": "a"}}]}\n\n'
    body = f": hello\n\ndata:\n\n{chunk}data: \n\nevent: heartbeat\n\n{chunk}data: [DONE]\n\n"
    with answered(Raw(200, SSE, body), kind="compatible") as (adapter, _):
        deltas = run(adapter, stream=True)
    assert [delta for delta in deltas if isinstance(delta, TextDelta)] == [TextDelta(0, "a"), TextDelta(0, "a")]


IN_STREAM: dict[str, tuple[str, str, dict[str, Any]]] = {
    "overloaded": (
        "anthropic",
        event(json.dumps({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}), "error"),
        {"type": "server", "http_status": 529, "retryable": True, "provider_error_code": "overloaded_error"},
    ),
    "a rate limit": (
        "compatible",
        'data: {"error": {"code": 429, "message": "slow down"}}\n\n',
        {"type": "rate_limit", "http_status": 429, "retryable": True, "provider_error_code": "429"},
    ),
    "a wrong key, told back": (
        "anthropic",
        event(json.dumps({"type": "error", "error": {"type": "authentication_error", "message": KEY}}), "error"),
        {"type": "auth", "http_status": 401, "retryable": False, "provider_error_code": "authentication_error"},
    ),
}


@pytest.mark.parametrize("kind, body, said", IN_STREAM.values(), ids=IN_STREAM.keys())
def test_an_error_in_the_middle_of_a_stream(kind: str, body: str, said: dict[str, Any]) -> None:
    with answered(Raw(200, SSE, body), kind=kind) as (adapter, _):
        error = failure(adapter, stream=True)
    assert {name: getattr(error, name) for name in said} == said
    assert KEY not in json.dumps(error.to_dict())


@pytest.mark.parametrize("kind", MADE)
def test_a_fault_after_the_answer_is_complete_is_none(kind: str) -> None:
    pieces = 8 if kind == "anthropic" else 4
    reply = Reply("Hello", stop_reason="max_tokens", delta_size=100)
    with answered(faults.reset(reply, after=pieces), kind=kind) as (adapter, _):
        deltas = run(adapter, stream=True)
    assert deltas[-1].stop_reason == "max_tokens"  # type: ignore[attr-defined]


def test_an_abort_after_the_answer_is_complete_is_still_one() -> None:
    controller = AbortController()
    silent = faults.silence(Reply("Hello", delta_size=100), after=3)
    with answered(silent, kind="compatible") as (adapter, _):
        timer = threading.Timer(0.02, controller.abort)
        timer.start()
        error = failure(adapter, stream=True, call=Call(clock=Clock(), signal=controller.signal))
        timer.join()
    assert error.type == "abort"


def test_a_last_event_without_its_blank_line() -> None:
    body = 'data: {"choices": [{"delta": {"content": "a"}, "finish_reason": "length"}]}'
    with answered(Raw(200, SSE, body), kind="compatible") as (adapter, _):
        assert run(adapter, stream=True)[-1].stop_reason == "max_tokens"  # type: ignore[attr-defined]


def test_what_a_codec_tidies_the_adapter_does() -> None:
    leaked = [Text("so</think>a")]
    assert (MADE["compatible"]().tidied(leaked), MADE["anthropic"]().tidied(leaked)) == ([Text("a")], leaked)


# Deadlines and ends


def test_each_delta_that_is_not_empty_is_progress() -> None:
    class Counting(Deadlines):
        count = 0

        def progressed(self) -> None:
            type(self).count += 1

    clock = Clock()
    call = Call(clock=clock, deadlines=Counting(clock, Limits(progress_ms=60_000)))
    with answered(Reply("a b c", ToolCall("look", {"x": 1}), delta_size=2), kind="anthropic") as (adapter, _):
        deltas = run(adapter, stream=True, call=call, request=ProviderRequest("m", SHAPED.messages, tools=[LOOK]))
    assert Counting.count == sum(type(delta).__name__ in ("TextDelta", "InputDelta") for delta in deltas) > 3


LOOK = {"name": "look", "description": "", "input_schema": {"type": "object"}}


def test_the_time_a_silent_stream_is_waited_for_is_the_transports() -> None:
    with Transport(proxy=None, read_timeout_ms=1_234) as transport:
        assert MADE["anthropic"](transport=transport).idle_timeout_ms == 1_234


def test_an_adapter_closes_only_the_transport_it_made() -> None:
    with answered(Reply("a"), Reply("b"), kind="anthropic") as (adapter, provider):
        run(adapter, stream=False)
        adapter.close()
        adapter.close()
        run(adapter, stream=False)
    assert provider.request_count == 2


def test_an_adapter_that_made_its_own_closes_it() -> None:
    with LoopbackProvider([Reply("a")]) as provider:
        with AnthropicAdapter(api_key=KEY, base_url=provider.url) as adapter:
            run(adapter, stream=False)
            assert provider.connections_open == 1
        assert provider.wait_for_close()


def test_one_adapter_serves_many_threads() -> None:
    texts: list[str] = []

    def ask(adapter: HttpAdapter) -> None:
        deltas = run(adapter, stream=True)
        texts.append("".join(delta.text for delta in deltas if isinstance(delta, TextDelta)))

    with answered(*[Reply("Hello, world!")] * 8, kind="anthropic") as (adapter, _):
        threads = [threading.Thread(target=ask, args=(adapter,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert texts == ["Hello, world!"] * 8
