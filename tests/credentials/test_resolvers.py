"""resolvers: asked for each attempt, once more after a 401, not waited for beyond the call; tokens are never shown."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from membrane_lite import AbortController, AnthropicAdapter, Clock, Membrane, MembraneError, OpenAIResponsesAPIAdapter
from membrane_lite.call import Call
from membrane_lite.credentials.resolvers import TOKENS_KNOWN, Credentials, ResolverAuth, read_credentials
from membrane_lite.loopback import Failure, LoopbackProvider, Raw, Reply, failures
from membrane_lite.wire.http import HttpRequest, header

REQUEST: Any = {"messages": [{"participant": "User", "content": "Hi"}], "config": {"model": "m", "max_tokens": 64}}


class Resolver:
    """Gives "token-1", "token-2", ...; remembers how it was asked."""

    def __init__(self, *given: Any) -> None:
        self.asked: list[bool] = []
        self._given = given

    def __call__(self, *, force_refresh: bool, signal: Any) -> Any:
        assert not signal.aborted
        self.asked.append(force_refresh)
        number = len(self.asked)
        given = self._given[min(number, len(self._given)) - 1] if self._given else Credentials(f"token-number-{number}")
        if isinstance(given, Exception):
            raise given
        return given


ADAPTERS: dict[str, Callable[..., Any]] = {"anthropic": AnthropicAdapter, "responses": OpenAIResponsesAPIAdapter}
each_adapter = pytest.mark.parametrize("make", ADAPTERS.values(), ids=ADAPTERS.keys())


class Called:
    """What came of one call: its result or error, and the requests that the server saw."""

    def __init__(
        self, script: Any, make: Callable[..., Any] = AnthropicAdapter, face: str = "complete", **options: Any
    ) -> None:
        call = options.pop("call", {"retry": False})
        self.bodies: list[Any] = []
        with LoopbackProvider(script) as provider, provider.transport() as transport:
            self.adapter = make(base_url=provider.url, transport=transport, **options)
            try:
                self.result: Any = getattr(Membrane(self.adapter), face)(REQUEST, on_request=self.bodies.append, **call)
            except MembraneError as error:
                self.result = error
            self.requests = list(provider.requests)

    def sent(self, name: str) -> list[str | None]:
        return [received.header(name) for received in self.requests]


@each_adapter
@pytest.mark.parametrize("face", ["complete", "stream"])
def test_a_refused_token_is_renewed_once_within_the_attempt(make: Any, face: str) -> None:
    resolver = Resolver()
    called = Called([Failure(401), Reply("Hello")], make, face, credentials=resolver)
    assert called.result.text == "Hello"
    assert resolver.asked == [False, True]
    assert called.sent("authorization") == ["Bearer token-number-1", "Bearer token-number-2"]
    assert called.requests[0].body == called.requests[1].body
    assert (len(called.bodies), called.result.details.timing.attempts) == (1, 1)


def test_a_second_refusal_is_final() -> None:
    resolver = Resolver()
    called = Called(failures(3, 401), credentials=resolver, call={})
    assert (called.result.type, called.result.http_status) == ("auth", 401)
    assert resolver.asked == [False, True]


@pytest.mark.parametrize("status", [400, 403, 404])
def test_another_refusal_renews_nothing(status: int) -> None:
    resolver = Resolver()
    called = Called([Failure(status)], credentials=resolver)
    assert (called.result.http_status, resolver.asked) == (status, [False])


def test_every_attempt_asks_anew_and_may_renew() -> None:
    resolver = Resolver()
    quick = {"retry_delay_ms": 1}
    script = [Failure(503), Failure(401), Failure(503), Reply("Hello")]
    with LoopbackProvider(script) as provider, provider.transport() as transport:
        made = AnthropicAdapter(base_url=provider.url, transport=transport, credentials=resolver)
        response = Membrane(made, retry=quick).complete(REQUEST)
    assert (response.text, resolver.asked) == ("Hello", [False, False, True, False])


def test_an_error_inside_an_answer_renews_nothing() -> None:
    resolver = Resolver()
    event = b'event: error\ndata: {"type": "error", "error": {"type": "authentication_error", "message": "no"}}\n\n'
    called = Called([Raw(200, {"Content-Type": "text/event-stream"}, event)], face="stream", credentials=resolver)
    assert (called.result.type, resolver.asked) == ("auth", [False])


def test_a_key_is_never_renewed() -> None:
    assert len(Called([Failure(401), Reply("x")], api_key="key-of-the-test").requests) == 1


# What goes out

FORMS: dict[str, Any] = {
    "Credentials": Credentials("the-token", {"X-Account": "a"}),
    "a mapping": {"token": " the-token\n", "headers": {"X-Account": "a", "Authorization": "Bearer stale"}},
}


@pytest.mark.parametrize("given", FORMS.values(), ids=FORMS.keys())
def test_the_token_goes_over_everything_and_the_headers_with_it(given: Any) -> None:
    stale = {"Authorization": "Bearer stale", "X-Api-Key": "stale", "X-Account": "stale"}
    called = Called(
        [Reply("Hello")],
        api_key="key-of-the-test",
        credentials=Resolver(given),
        headers=stale,
        dynamic_headers=lambda where: {"authorization": "Bearer stale", "x-api-key": "stale"},
    )
    (received,) = called.requests
    assert received.raw.lower().count(b"authorization:") == 1
    assert b"stale" not in received.raw
    assert [received.header(name) for name in ("authorization", "x-api-key", "x-account")] == [
        "Bearer the-token",
        None,
        "a",
    ]


def test_credentials_outrank_a_token_and_a_token_may_be_a_function() -> None:
    assert Called([Reply("x")], auth_token="text-token").sent("authorization") == ["Bearer text-token"]
    assert Called([Reply("x")], auth_token=lambda: "made-token").sent("authorization") == ["Bearer made-token"]
    both = Called([Reply("x")], auth_token=lambda: "made-token", credentials=Resolver())
    assert both.sent("authorization") == ["Bearer token-number-1"]


def test_a_function_that_gives_a_token_may_ask_whether_to_refresh() -> None:
    asked: list[bool] = []

    def token(force_refresh: bool) -> str:
        asked.append(force_refresh)
        return "made-token"

    Called([Failure(401), Reply("x")], auth_token=token)
    assert asked == [False, True]


@each_adapter
def test_a_rendered_request_asks_nobody(make: Any) -> None:
    resolver = Resolver()
    with make(credentials=resolver, base_url="http://h") as adapter:
        assert header(adapter.render(REQUEST).headers, "authorization") == "Bearer YOUR_API_KEY"
    assert resolver.asked == []


# What cannot be used

BAD: dict[str, tuple[Any, str]] = {
    "no token": ({}, "credentials.token: blank or missing"),
    "None": ({"token": None}, "credentials.token: blank or missing"),
    "a blank one": (Credentials("  "), "credentials.token: blank or missing"),
    "no string": ({"token": 7}, "credentials.token: found int"),
    "one with a line break": ({"token": "secret-a\nsecret-b"}, "credentials.token: the key holds a line break"),
    "a token alone": ("secret-token", "the resolver gave str; expected Credentials"),
    "nothing": (None, "the resolver gave NoneType; expected Credentials"),
    "a misspelt field": ({"tokken": "secret-token"}, "the resolver gave dict; expected Credentials"),
    "headers of another kind": ({"token": "secret-token", "headers": ["secret-a"]}, "credentials.headers: found list"),
}


@pytest.mark.parametrize("given, words", BAD.values(), ids=BAD.keys())
def test_what_is_no_credential(given: Any, words: str) -> None:
    called = Called([Reply("x")], credentials=Resolver(given))
    assert (called.result.type, called.requests) == ("auth", [])
    assert words in called.result.message
    assert "secret" not in repr(called.result)


def test_a_resolver_s_own_error_stays_as_it_is() -> None:
    error = MembraneError("network", "the vault is away", retryable=True)
    called = Called([Reply("x")], credentials=Resolver(error))
    assert (called.result, called.requests) == (error, [])


def test_one_that_may_pass_is_repeated() -> None:
    resolver = Resolver(MembraneError("network", "the vault is away"), Credentials("the-token"))
    with LoopbackProvider([Reply("Hello")]) as provider, provider.transport() as transport:
        made = AnthropicAdapter(base_url=provider.url, transport=transport, credentials=resolver)
        assert Membrane(made, retry={"retry_delay_ms": 1}).complete(REQUEST).text == "Hello"
    assert resolver.asked == [False, False]


def test_anything_else_it_raises_is_of_type_auth() -> None:
    raised = RuntimeError("no vault")
    called = Called([Reply("x")], credentials=Resolver(raised), call={})
    assert (called.result.type, called.result.retryable, called.requests) == ("auth", False, [])
    assert called.result.message == "credentials: the resolver failed with RuntimeError: no vault; nothing was sent"
    assert called.result.raw_error == {"name": "RuntimeError", "message": "no vault"}
    assert called.result.__cause__ is raised


def test_a_resolver_is_a_function() -> None:
    with pytest.raises(MembraneError, match="credentials: found str; expected a function"):
        AnthropicAdapter(credentials="the-token")  # type: ignore[arg-type]


# Waiting


class Stuck:
    """A resolver that waits for its signal, and longer."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.let_go = threading.Event()
        self.signalled = threading.Event()

    def __call__(self, *, force_refresh: bool, signal: Any) -> Any:
        signal.add_callback(self.signalled.set)
        self.began.set()
        self.let_go.wait(10)
        return Credentials("too-late-a-token")


def test_a_deadline_ends_the_wait_for_a_resolver() -> None:
    stuck, started = Stuck(), time.monotonic()
    called = Called([Reply("x")], credentials=stuck, call={"timeout_ms": 30})
    assert time.monotonic() - started < 1
    assert (called.result.type, called.requests) == ("timeout", [])
    assert stuck.signalled.wait(1)
    stuck.let_go.set()


@pytest.mark.parametrize("face", ["complete", "stream"])
def test_an_abort_ends_the_wait_for_a_resolver(face: str) -> None:
    stuck, controller = Stuck(), AbortController()

    def abort() -> None:
        stuck.began.wait(5)
        controller.abort()

    threading.Thread(target=abort).start()
    started = time.monotonic()
    called = Called([Reply("x")], face=face, credentials=stuck, call={"signal": controller.signal})
    assert time.monotonic() - started < 1
    assert (getattr(called.result, "reason", None) or called.result.type) in ("user", "abort")
    assert called.requests == []
    assert stuck.signalled.wait(1)
    stuck.let_go.set()


def test_a_signal_that_has_fired_asks_no_resolver() -> None:
    resolver, controller = Resolver(), AbortController()
    controller.abort()
    Called([Reply("x")], credentials=resolver, call={"signal": controller.signal})
    assert resolver.asked == []


def test_a_resolver_may_leave_its_thread() -> None:
    def leave(*, force_refresh: bool, signal: Any) -> Any:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        Called([Reply("x")], credentials=leave)


def test_calls_in_many_threads_renew_their_own() -> None:
    barrier = threading.Barrier(4, timeout=10)

    def answer(received: Any) -> Any:
        return Failure(401) if received.header("authorization") == "Bearer stale-token" else Reply("Hello")

    def resolver(*, force_refresh: bool, signal: Any) -> Any:
        if not force_refresh:
            barrier.wait()
        return Credentials("fresh-token" if force_refresh else "stale-token")

    texts: list[str] = []
    with LoopbackProvider(answer) as provider, provider.transport() as transport:
        membrane = Membrane(AnthropicAdapter(base_url=provider.url, transport=transport, credentials=resolver))
        threads = [threading.Thread(target=lambda: texts.append(membrane.complete(REQUEST).text)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert provider.request_count == 8
    assert texts == ["Hello"] * 4


# Secrets


def test_tokens_in_use_are_shown_nowhere() -> None:
    echo = Raw(400, {"Content-Type": "application/json"}, '{"error": {"message": "bad token token-number-1"}}')
    called = Called([echo], credentials=Resolver())
    assert "token-number-1" not in f"{called.result!r} {called.result.to_dict()} {called.adapter!r}"
    assert "[redacted]" in called.result.message
    assert called.adapter.redacted({"a": "token-number-1"}) == {"a": "[redacted]"}
    assert "token-number-1" not in repr(Credentials("token-number-1"))


def test_only_the_latest_tokens_are_remembered() -> None:
    auth = ResolverAuth(Resolver())
    for _ in range(TOKENS_KNOWN + 2):
        auth.authorized(HttpRequest("POST", "http://h", [], b""), Call(clock=Clock()))
    assert auth.secrets == [f"token-number-{number}" for number in range(3, TOKENS_KNOWN + 3)]


def test_what_a_resolver_gave_is_read() -> None:
    assert read_credentials({"token": "t"}) == Credentials("t", {})


# Dynamic headers


def dynamic(given: Any, face: str = "complete", **options: Any) -> Called:
    return Called([Reply("x")], face=face, api_key="key-of-the-test", dynamic_headers=lambda where: given, **options)


def test_dynamic_headers_are_asked_for_each_attempt_and_told_the_lane() -> None:
    asked: list[Any] = []

    def headers(where: Any) -> Any:
        asked.append(where)
        return {"X-Number": len(asked), "X-None": None, "X-Empty": ""}

    script = [Failure(503), Reply("x"), Reply("x")]
    with LoopbackProvider(script) as provider, provider.transport() as transport:
        made = AnthropicAdapter(api_key="k", base_url=provider.url, transport=transport, dynamic_headers=headers)
        membrane = Membrane(made, retry={"retry_delay_ms": 1})
        membrane.complete(REQUEST)
        membrane.stream(REQUEST)
        assert [received.header("x-number") for received in provider.requests] == ["1", "2", "3"]
        assert [received.header("x-none") for received in provider.requests] == [None] * 3
        assert [received.header("x-empty") for received in provider.requests] == [None] * 3
    assert asked == [{"lane": "complete"}, {"lane": "complete"}, {"lane": "stream"}]


def test_they_outrank_other_headers_but_not_the_key() -> None:
    called = dynamic({"x-own": "dynamic", "x-api-key": "mine", "anthropic-beta": "b"}, headers={"X-Own": "standing"})
    assert [called.sent(name) for name in ("x-own", "x-api-key", "anthropic-beta")] == [
        ["dynamic"],
        ["key-of-the-test"],
        ["b"],
    ]


def test_nothing_is_no_header() -> None:
    assert dynamic(None).result.text == "x"


def test_the_resend_of_a_renewed_token_is_no_attempt_of_its_own() -> None:
    asked: list[Any] = []
    called = Called(
        [Failure(401), Reply("x")], credentials=Resolver(), dynamic_headers=lambda where: asked.append(where)
    )
    assert (called.result.text, len(asked)) == ("x", 1)


WRONG: dict[str, tuple[Any, str]] = {
    "no mapping": (["X-A"], "dynamic_headers: found list"),
    "no header name": ({"a b": "x"}, "dynamic_headers: 'a b' is no header name"),
    "no header value": ({"X-A": "a\nb"}, "dynamic_headers['X-A']: the value is not a header value"),
    "one that frames the request": ({"Content-Length": 1}, "'Content-Length' is set by the adapter"),
}


@pytest.mark.parametrize("given, words", WRONG.values(), ids=WRONG.keys())
def test_what_is_no_header(given: Any, words: str) -> None:
    called = dynamic(given)
    assert (called.result.type, called.requests) == ("invalid_request", [])
    assert words in called.result.message


def test_what_they_raise_is_the_caller_s_own_error() -> None:
    def broken(where: Any) -> Any:
        raise ConnectionError("no vault")

    called = Called([Reply("x")], api_key="key-of-the-test", dynamic_headers=broken, call={})
    assert (called.result.type, called.result.retryable, called.requests) == ("network", False, [])
    assert "dynamic_headers raised ConnectionError: no vault" in called.result.message
