"""The caller's own code beside a call: callbacks, hooks, logger, registry. What it raises ends the call, is never sent
again, and reaches the caller as an error of its own.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest
from stage import (
    FACES,
    REQUEST,
    TOOL_REQUEST,
    FakeClock,
    Stage,
    complete,
    each_face,
    ended,
    stage,
    stream,
    stream_yielding,
)

from membrane_lite import AbortController, Clock, Hooks, MembraneError, ToolResult
from membrane_lite.loopback import Failure, Reply, ToolCall, faults

BERN = ToolCall("get_weather", {"city": "Bern"}, id="call_1")
SUNNY = Reply("It is sunny.")
TOOL_TURN = [Reply("Let me see.", BERN), SUNNY]
TEXT = "Let me see."


def weather(calls: Any, context: Any = None) -> Any:
    return [ToolResult(call.id, "sun") for call in calls]


class Registry:
    def __init__(self, get_pricing: Callable[..., Any]) -> None:
        self.get_pricing = get_pricing


class Logger:
    def __init__(self, warning: Callable[..., Any]) -> None:
        self.warning = warning


class Place(NamedTuple):
    """A place where own code runs. name: in the message. sent: requests before it raises; text: what had arrived.

    options, settings: of the call and of the Membrane, with the code that raises in its place.
    """

    name: str
    faces: str
    script: list[Any]
    sent: int
    text: str
    options: Callable[[Any], dict[str, Any]] = lambda code: {}
    settings: Callable[[Any], dict[str, Any]] = lambda code: {}


FAILS_ONCE = [Failure(503), SUNNY]
ALL = "complete stream stream_yielding"
PLACES = [
    Place("before_request", ALL, [SUNNY], 0, "", settings=lambda code: {"hooks": Hooks(before_request=code)}),
    Place("on_request", ALL, [SUNNY], 0, "", lambda code: {"on_request": code}),
    Place("on_cache_wire_receipt", ALL, [SUNNY], 0, "", lambda code: {"on_cache_wire_receipt": code}),
    Place("on_error", ALL, FAILS_ONCE, 1, "", settings=lambda code: {"hooks": Hooks(on_error=code)}),
    Place("on_retry", ALL, FAILS_ONCE, 1, "", lambda code: {"on_retry": code}),
    Place("on_response", ALL, TOOL_TURN, 1, TEXT, lambda code: {"on_response": code}),
    Place("registry.get_pricing", ALL, TOOL_TURN, 1, TEXT, settings=lambda code: {"registry": Registry(code)}),
    Place(
        "logger.warning",
        ALL,
        [Reply(TEXT, stop_reason="out_of_words")],
        1,
        TEXT,
        settings=lambda code: {"logger": Logger(code)},
    ),
    Place("on_chunk", "stream", TOOL_TURN, 1, "Let", lambda code: {"on_chunk": code}),
    Place("on_block", "stream", TOOL_TURN, 1, "", lambda code: {"on_block": code}),
    Place("on_content_block_update", "stream", TOOL_TURN, 1, "", lambda code: {"on_content_block_update": code}),
    Place("on_usage", "stream", TOOL_TURN, 1, TEXT, lambda code: {"on_usage": code}),
    Place("on_pre_tool_content", "stream", TOOL_TURN, 1, TEXT, lambda code: {"on_pre_tool_content": code}),
    Place("on_tool_calls", "stream", TOOL_TURN, 1, TEXT, lambda code: {"on_tool_calls": code}),
]
AFTER_RESPONSE = Place(
    "after_response", "complete", [SUNNY], 1, "", settings=lambda code: {"hooks": Hooks(after_response=code)}
)


def params(places: list[Place]) -> list[Any]:
    return [pytest.param(place, name, id=f"{name}-{place.name}") for place in places for name in place.faces.split()]


each_place = pytest.mark.parametrize("place, name", params(PLACES))
each_place_of_errors = pytest.mark.parametrize("place, name", params([*PLACES, AFTER_RESPONSE]))


@contextmanager
def own_code(place: Place, code: Callable[..., Any], clock: Clock | None = None) -> Iterator[tuple[Stage, Any]]:
    """The stage, and the options of a call in which `code` runs at that place."""
    with stage("anthropic", [*place.script, SUNNY, SUNNY], clock=clock, **place.settings(code)) as on:
        yield on, {"on_tool_calls": weather, **place.options(code)}


def call(name: str, on: Stage, options: dict[str, Any]) -> Any:
    if name == "complete":
        options = {key: value for key, value in options.items() if key != "on_tool_calls"}
    return FACES[name](on.membrane, TOOL_REQUEST, **options)


def raising(exc: BaseException) -> Callable[..., Any]:
    def code(*arguments: Any) -> Any:
        raise exc

    return code


# Errors


@each_place_of_errors
def test_an_error_of_own_code_ends_the_call_and_is_not_sent_again(place: Place, name: str) -> None:
    broken = ConnectionResetError("my own socket")
    with own_code(place, raising(broken)) as (on, options):
        with pytest.raises(MembraneError) as caught:
            call(name, on, options)
        error = caught.value
        assert error.message == f"{place.name} raised ConnectionResetError: my own socket"
        assert (error.type, error.retryable, error.__cause__) == ("network", False, broken)
        assert (error.http_status, error.provider_error_code, error.retry_after_ms) == (None, None, None)
        assert (on.provider.request_count, on.clock.waits_ms) == (place.sent, [])
        if place is not AFTER_RESPONSE:
            assert error.raw_assistant_text == place.text
            assert (error.raw_request is not None) is (place.name != "before_request")


@each_place_of_errors
def test_a_membrane_error_that_may_be_repeated_becomes_one_that_may_not(place: Place, name: str) -> None:
    broken = MembraneError(
        "server", "busy", http_status=529, provider_error_code="overloaded_error", retry_after_ms=5, request_id="req_1"
    )
    with own_code(place, raising(broken)) as (on, options):
        with pytest.raises(MembraneError) as caught:
            call(name, on, options)
        error = caught.value
        assert error is not broken
        assert (error.type, error.retryable, error.__cause__) == ("server", False, broken)
        assert (error.http_status, error.provider_error_code, error.retry_after_ms) == (None, None, None)
        assert (on.provider.request_count, on.clock.waits_ms) == (place.sent, [])


FINAL = {
    "an error of the caller's": MembraneError("auth", "not for you", http_status=401),
    "a deadline of another call": MembraneError(
        "timeout", "timeout_ms: of the inner call", retryable=False, provider_error_code="call_timeout"
    ),
    "one that calls itself passing": MembraneError("server", "not so", retryable=False, failure_class="transient"),
}


@each_place_of_errors
@pytest.mark.parametrize("broken", FINAL.values(), ids=FINAL.keys())
def test_a_membrane_error_that_is_final_already_reaches_the_caller_as_it_is(
    broken: MembraneError, place: Place, name: str
) -> None:
    with own_code(place, raising(broken)) as (on, options):
        with pytest.raises(MembraneError) as caught:
            call(name, on, options)
        assert caught.value is broken
        assert (on.provider.request_count, on.clock.waits_ms) == (place.sent, [])


WORDS = {
    "rate_limit": ValueError("rate limit reached (429)"),
    "timeout": TimeoutError("too slow"),
    "unknown": KeyError("city"),
    "context_length": ValueError("the context window is full"),
}


@pytest.mark.parametrize("type, broken", WORDS.items(), ids=WORDS.keys())
def test_an_error_of_own_code_is_classified_as_any_other(type: str, broken: Exception) -> None:
    with stage("anthropic", TOOL_TURN) as on:
        with pytest.raises(MembraneError) as caught:
            stream(on.membrane, TOOL_REQUEST, on_tool_calls=raising(broken))
        assert (caught.value.type, caught.value.retryable, caught.value.__cause__) == (type, False, broken)


class AbortError(Exception):
    """Named as aborts are in other places."""


@each_place
def test_an_exception_named_abort_error_is_an_abort(place: Place, name: str) -> None:
    with own_code(place, raising(AbortError("enough"))) as (on, options):
        if name == "complete":
            options.pop("on_tool_calls")
        result = ended(FACES[name], on.membrane, TOOL_REQUEST, **options)
        reason = "abort" if name == "complete" else "error"
        assert result == (reason, f"{place.name} raised AbortError: enough", place.text)
        assert on.provider.request_count == place.sent


def test_an_exception_named_abort_error_in_after_response_is_an_abort() -> None:
    with own_code(AFTER_RESPONSE, raising(AbortError("enough"))) as (on, _):
        with pytest.raises(MembraneError) as caught:
            complete(on.membrane)
        assert (caught.value.type, caught.value.retryable) == ("abort", False)


@each_place
def test_what_own_code_raises_after_the_abort_is_the_abort(place: Place, name: str) -> None:
    controller = AbortController()
    broken = LookupError("mine")

    def code(*arguments: Any) -> Any:
        controller.abort("enough")
        raise broken

    with own_code(place, code) as (on, options):
        if name == "complete":
            options.pop("on_tool_calls")
        result = ended(FACES[name], on.membrane, TOOL_REQUEST, signal=controller.signal, **options)
        reason = "abort" if name == "complete" else "user"
        assert result == (reason, "the call was aborted by its signal: enough", place.text)
        assert on.provider.request_count == place.sent


@pytest.mark.parametrize("place", [place for place in PLACES if place.text in ("", "Let") and place.faces == "stream"])
def test_an_error_in_the_middle_of_an_answer_closes_its_connection(place: Place) -> None:
    with own_code(place, raising(LookupError("mine"))) as (on, options):
        with pytest.raises(MembraneError):
            stream(on.membrane, TOOL_REQUEST, **options)
        assert on.provider.wait_for_close()


@each_face
def test_own_code_that_raises_once_leaves_the_membrane_usable(face: Callable[..., Any]) -> None:
    with stage("anthropic", [SUNNY, SUNNY]) as on:
        with pytest.raises(MembraneError):
            face(on.membrane, on_response=raising(LookupError("mine")))
        assert face(on.membrane).text == "It is sunny."


# Hooks that return


@each_face
def test_before_request_sees_and_may_replace_what_is_sent(face: Callable[..., Any]) -> None:
    seen: list[Any] = []

    def before_request(request: Any, provider_request: Any) -> Any:
        seen.append((request.messages[0].participant, provider_request.messages))
        return type(provider_request)(**{**vars(provider_request), "max_tokens": 7})

    with stage("anthropic", [SUNNY], hooks=Hooks(before_request=before_request)) as on:
        face(on.membrane)
        assert on.provider.requests[0].json["max_tokens"] == 7
    assert [(name, [message["role"] for message in messages]) for name, messages in seen] == [("User", ["user"])]


@each_face
def test_before_request_that_returns_something_else_is_told(face: Callable[..., Any]) -> None:
    with stage(
        "anthropic", [SUNNY], hooks=Hooks(before_request=lambda request, provider_request: {"model": "m"})
    ) as on:
        with pytest.raises(MembraneError, match=r"before_request: found dict .* expected a ProviderRequest or None"):
            face(on.membrane)
        assert on.provider.request_count == 0


def test_after_response_may_replace_the_response_of_complete_alone() -> None:
    seen: list[Any] = []

    def after_response(response: Any, raw: Any) -> Any:
        seen.append((response.text, raw["content"][0]["text"]))
        return type(response)(**{**vars(response), "stop_reason": "mine"})

    with stage("anthropic", [SUNNY] * 4, hooks=Hooks(after_response=after_response)) as on:
        assert complete(on.membrane).stop_reason == "mine"
        assert stream(on.membrane, {**REQUEST, "streaming": False}).stop_reason == "mine"
        assert stream(on.membrane).stop_reason == "end_turn"
        assert stream_yielding(on.membrane).stop_reason == "end_turn"
    assert seen == [("It is sunny.", "It is sunny.")] * 2


def test_after_response_that_returns_something_else_is_told() -> None:
    hooks = Hooks(after_response=lambda response, raw: response.text)
    with stage("anthropic", [SUNNY], hooks=hooks) as on, pytest.raises(MembraneError) as caught:
        complete(on.membrane)
    assert caught.value.message == "after_response: found str 'It is sunny.'; expected a Response or None"
    assert caught.value.raw_assistant_text == "It is sunny."


def test_what_after_response_raises_says_what_had_arrived() -> None:
    with own_code(AFTER_RESPONSE, raising(LookupError("mine"))) as (on, _):
        with pytest.raises(MembraneError) as caught:
            complete(on.membrane)
        assert caught.value.raw_request == on.provider.requests[0].json
    error = caught.value
    assert (error.raw_assistant_text, error.partial_usage.output_tokens > 0) == ("It is sunny.", True)


def test_after_response_that_returns_nothing_changes_nothing() -> None:
    with stage("anthropic", [SUNNY], hooks=Hooks(after_response=lambda response, raw: None)) as on:
        assert complete(on.membrane).text == "It is sunny."


def test_after_response_runs_once_and_after_the_refusals_that_were_sent_again() -> None:
    seen: list[str] = []
    hooks = Hooks(after_response=lambda response, raw: seen.append(response.stop_reason))
    with stage("anthropic", [Reply("No", stop_reason="refusal"), SUNNY], hooks=hooks) as on:
        complete(on.membrane, refusal_retries=1)
        assert seen == ["end_turn"]


@each_face
def test_a_registry_that_knows_the_model_decides_the_price(face: Callable[..., Any]) -> None:
    asked: list[str] = []

    def get_pricing(model: str) -> Any:
        asked.append(model)
        return {"input_per_million": 1_000_000, "output_per_million": 0}

    with stage("anthropic", [SUNNY], registry=Registry(get_pricing)) as on:
        usage = face(on.membrane).usage
        assert usage.estimated_cost.total == usage.input_tokens
        assert asked[0] == "claude-sonnet-4-5"


def test_the_assistant_s_name_and_caching_are_the_membrane_s_where_a_request_does_not_say() -> None:
    request = {**REQUEST, "messages": [{"participant": "Claude", "content": "Hi"}], "system": "Be brief."}
    with stage("anthropic", [SUNNY] * 2, assistant_participant="Ann", default_prompt_caching=False) as on:
        complete(on.membrane, request)
        complete(on.membrane, {**request, "prompt_caching": True})
        first, second = (received.json for received in on.provider.requests)
    assert first["messages"] == [{"role": "user", "content": [{"type": "text", "text": "Claude: Hi"}]}]
    assert ("cache_control" in str(first), "cache_control" in str(second)) == (False, True)


# The interpreter's own exceptions


@each_place_of_errors
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_in_own_code_passes_with_what_had_arrived(
    kind: type[BaseException], place: Place, name: str
) -> None:
    interrupt = kind()
    with own_code(place, raising(interrupt)) as (on, options):
        with pytest.raises(kind) as caught:
            call(name, on, options)
        assert caught.value is interrupt
        partial = interrupt.membrane_partial  # type: ignore[attr-defined]
        assert partial.raw_assistant_text == (SUNNY.pieces[0].text if place is AFTER_RESPONSE else place.text)  # type: ignore[union-attr]
        assert (on.provider.request_count, on.clock.waits_ms) == (place.sent, [])
        if place.text == "Let":
            assert on.provider.wait_for_close()


posix = pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="no signal can be sent to a thread")


@contextmanager
def control_c(when: threading.Event) -> Iterator[None]:
    """Ctrl-C, a moment after `when`, while the main thread waits for something."""

    def press() -> None:
        assert when.wait(5)
        time.sleep(0.01)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(target=press)
    thread.start()
    try:
        yield
    finally:
        thread.join(5)
        signal.signal(signal.SIGINT, before)


@posix
@pytest.mark.parametrize("name", FACES)
def test_control_c_while_an_answer_is_waited_for(name: str) -> None:
    arrived = threading.Event()

    def silent(received: Any) -> Any:
        arrived.set()
        return faults.silence() if received.number == 1 else SUNNY

    with stage("anthropic", silent, clock=Clock()) as on:
        with pytest.raises(KeyboardInterrupt) as caught, control_c(arrived):
            FACES[name](on.membrane)
        assert caught.value.membrane_partial.raw_assistant_text == ""  # type: ignore[attr-defined]
        assert on.provider.wait_for_close(), "the connection stayed open"
        assert FACES[name](on.membrane).text == "It is sunny."


@posix
@pytest.mark.parametrize("name", ["stream", "stream_yielding"])
def test_control_c_in_the_middle_of_a_stream(name: str) -> None:
    heard = threading.Event()
    with stage("anthropic", [faults.silence(SUNNY, after=4), SUNNY], clock=Clock()) as on:
        with pytest.raises(KeyboardInterrupt) as caught, control_c(heard):
            FACES[name](on.membrane, on_chunk=lambda text, meta: heard.set())
        partial = caught.value.membrane_partial  # type: ignore[attr-defined]
        assert (partial.raw_assistant_text, partial.aborted) == ("It", True)
        assert on.provider.wait_for_close(), "the connection stayed open"
        assert FACES[name](on.membrane).text == "It is sunny."


@posix
@each_face
def test_control_c_during_a_wait_between_attempts(face: Callable[..., Any]) -> None:
    waiting = threading.Event()
    with stage("anthropic", [Failure(529), SUNNY], clock=Clock()) as on:
        with pytest.raises(KeyboardInterrupt) as caught, control_c(waiting):
            face(on.membrane, on_retry=lambda info: waiting.set())
        assert caught.value.membrane_partial.partial_content == []  # type: ignore[attr-defined]
        assert face(on.membrane).text == "It is sunny."


@posix
def test_control_c_in_a_tool_keeps_the_round() -> None:
    started = threading.Event()

    def tool(calls: Any) -> Any:
        started.set()
        time.sleep(5)

    with stage("anthropic", TOOL_TURN, clock=FakeClock()) as on:
        with pytest.raises(KeyboardInterrupt) as caught, control_c(started):
            stream(on.membrane, TOOL_REQUEST, on_tool_calls=tool)
        partial = caught.value.membrane_partial  # type: ignore[attr-defined]
        assert [call.id for call in partial.tool_calls] == ["call_1"]
        assert (partial.raw_assistant_text, partial.tool_results) == (TEXT, [])
        assert on.provider.request_count == 1
