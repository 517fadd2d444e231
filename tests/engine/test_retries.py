"""What is sent again, how often, and after which waits; what is never sent again."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import pytest
from stage import (
    FACES,
    FORMATS,
    REQUEST,
    STREAMED,
    TOOL_REQUEST,
    FakeClock,
    complete,
    each_face,
    each_format,
    each_streamed_face,
    stage,
    stream,
)

from membrane_lite import Hooks, Membrane, MembraneError, Transport
from membrane_lite.loopback import Failure, Raw, Reply, ToolCall, failures, faults
from membrane_lite.values.options import RetryInfo

HELLO = Reply("Hello")
QUOTA = Raw(
    429,
    {"Content-Type": "application/json"},
    '{"error": {"type": "insufficient_quota", "code": "insufficient_quota", "message": "You exceeded your quota"}}',
    framing="length",
)

# draw 0.5: three quarters of 10, 20, 40, 80, 160 and 300 s
OVERLOADED = [7_500, 15_000, 30_000, 60_000, 120_000, 225_000]
RATE_LIMIT = [1_000, 2_000, 4_000, 8_000]
TRANSIENT = [1_000, 2_000]
ONCE: list[int] = []


class Case(NamedTuple):
    """What the provider always answers; the waits between the requests, one more request than waits; the error."""

    answer: Any
    failure_class: str
    waits_ms: list[int]
    type: str
    http_status: int | None = None
    options: dict[str, Any] = {}


CASES = {
    "overloaded": Case(Failure(529), "overloaded", OVERLOADED, "server", 529),
    "rate limited": Case(Failure(429), "rate_limit", RATE_LIMIT, "rate_limit", 429),
    "quota spent": Case(QUOTA, "fatal", ONCE, "rate_limit", 429),
    "500": Case(Failure(500), "transient", TRANSIENT, "server", 500),
    "503": Case(Failure(503), "transient", TRANSIENT, "server", 503),
    "a 503 that says overloaded": Case(Failure(503, "worker pool overloaded"), "transient", TRANSIENT, "server", 503),
    "the provider's own timeout": Case(Failure(408), "transient", TRANSIENT, "timeout", 408),
    "reset before an answer": Case(faults.reset(), "transient", TRANSIENT, "network"),
    "closed before an answer": Case(faults.close(), "transient", TRANSIENT, "network"),
    "reset after the head": Case(faults.reset(HELLO), "transient", TRANSIENT, "network"),
    "closed after the head": Case(faults.close(HELLO), "transient", TRANSIENT, "network"),
    "no HTTP": Case(faults.garbage(), "transient", TRANSIENT, "network"),
    "no first event": Case(faults.silence(), "deadline", ONCE, "timeout", options={"first_event_timeout_ms": 30}),
    "400": Case(Failure(400), "fatal", ONCE, "invalid_request", 400),
    "401": Case(Failure(401), "fatal", ONCE, "auth", 401),
    "403": Case(Failure(403), "fatal", ONCE, "auth", 403),
    "404": Case(Failure(404), "fatal", ONCE, "invalid_request", 404),
    "413": Case(Failure(413), "fatal", ONCE, "context_length", 413),
}
STREAM_CASES = {
    "overloaded, said by the first event": Case(
        faults.error(HELLO, after=0, type="overloaded_error"), "overloaded", OVERLOADED, "server", 529
    ),
    "overloaded, said before any content": Case(
        faults.error(HELLO, after=1, type="overloaded_error"), "overloaded", OVERLOADED, "server", 529
    ),
    "ended after the head": Case(faults.end(HELLO, after=0), "transient", TRANSIENT, "network"),
    "ended before any content": Case(faults.end(HELLO, after=1), "transient", TRANSIENT, "network"),
    "reset before any content": Case(faults.reset(HELLO, after=1), "transient", TRANSIENT, "network"),
    "silent after the first event": Case(
        faults.silence(HELLO, after=1), "deadline", ONCE, "timeout", options={"idle_timeout_ms": 30}
    ),
}
ANY_FACE = [
    pytest.param(face, case, id=f"{face_name}-{name}")
    for face_name, face in FACES.items()
    for name, case in {**CASES, **(STREAM_CASES if face_name in STREAMED else {})}.items()
]
RESENT = [param for param in ANY_FACE if isinstance(param.values[1], Case) and param.values[1].waits_ms]


def failure_of(face: Callable[..., Any], membrane: Membrane, request: Any = REQUEST, **options: Any) -> MembraneError:
    with pytest.raises(MembraneError) as caught:
        face(membrane, request, **options)
    return caught.value


# The schedule


@each_format
@pytest.mark.parametrize("face, case", ANY_FACE)
def test_a_failure_is_sent_again_on_the_schedule_of_its_class(
    format: str, face: Callable[..., Any], case: Case
) -> None:
    bodies: list[Any] = []
    heard: list[RetryInfo] = []
    asked: list[tuple[MembraneError, int]] = []
    hooks = Hooks(on_error=lambda error, attempt: asked.append((error, attempt)))
    requests = len(case.waits_ms) + 1
    with stage(format, lambda received: case.answer, hooks=hooks) as on:
        error = failure_of(face, on.membrane, on_request=bodies.append, on_retry=heard.append, **case.options)
        assert (on.provider.request_count, on.clock.waits_ms) == (requests, case.waits_ms)
        assert (error.type, error.http_status) == (case.type, case.http_status)
        assert error.retryable is (case.failure_class != "fatal")
        assert [body["messages"] for body in bodies] == [received.json["messages"] for received in on.provider.requests]
        assert error.raw_request == bodies[-1]
    told = [(info.failure_class, info.attempt, info.wait_ms) for info in heard]
    assert told == [(case.failure_class, number, wait) for number, wait in enumerate(case.waits_ms, 1)]
    # The hook is asked before each wait, not about a failure that is final; on_retry is told the same error.
    assert [attempt for _, attempt in asked] == list(range(1, requests))
    assert [error for error, _ in asked] == [info.error for info in heard]
    assert {error.type for error, _ in asked} <= {case.type}


@pytest.mark.parametrize("face, case", RESENT)
def test_a_success_after_retries_tells_of_them(face: Callable[..., Any], case: Case) -> None:
    with stage("anthropic", [case.answer] * 2 + [HELLO]) as on:
        response = face(on.membrane, **case.options)
        assert (response.text, response.stop_reason) == ("Hello", "end_turn")
        timing = response.details.timing
        assert (timing.attempts, timing.retry_delays_ms, timing.rounds) == (3, case.waits_ms[:2], 1)
        assert timing.total_duration_ms == timing.time_to_first_token_ms == sum(case.waits_ms[:2])
        assert on.provider.request_count == 3


@each_format
@each_face
def test_a_success_at_once_tells_of_no_retries(format: str, face: Callable[..., Any]) -> None:
    with stage(format, [HELLO]) as on:
        timing = face(on.membrane).details.timing
        assert (timing.attempts, timing.retry_delays_ms) == (1, None)


@pytest.mark.parametrize("draw, wait_ms", [(0.0, 5_000), (0.25, 6_250), (0.999, 9_995)])
def test_an_overload_waits_between_half_the_delay_and_all_of_it(draw: float, wait_ms: int) -> None:
    with stage("anthropic", [Failure(529), HELLO], clock=FakeClock(draw)) as on:
        assert complete(on.membrane).details.timing.retry_delays_ms == [wait_ms]


def test_a_connection_that_is_refused_is_tried_three_times() -> None:
    sent: list[Any] = []
    clock = FakeClock()
    with socket.socket() as unused, Transport(proxy=None, ca_certs=None) as transport:
        unused.bind(("127.0.0.1", 0))  # bound and not listening: nobody else gets the port
        adapter = FORMATS["anthropic"](f"http://127.0.0.1:{unused.getsockname()[1]}", transport)
        error = failure_of(complete, Membrane(adapter, clock=clock), on_request=sent.append)
    assert (error.type, error.retryable, len(sent), clock.waits_ms) == ("network", True, 3, TRANSIENT)


# The configuration

RETRY_CONFIGS = {
    "one attempt in all": ({"max_retries": 1}, 500, ONCE),
    "none counts as one": ({"max_retries": 0}, 500, ONCE),
    "one attempt, but five for a rate limit": ({"max_retries": 1}, 429, RATE_LIMIT),
    "more than five for a rate limit": ({"max_retries": 6}, 429, [*RATE_LIMIT, 16_000]),
    "the cap of the base schedule": (
        {"max_retries": 4, "retry_delay_ms": 100, "backoff_multiplier": 3, "max_retry_delay_ms": 500},
        503,
        [100, 300, 500],
    ),
    "overloaded 0: an ordinary failure": ({"overloaded": {"max_retries": 0}}, 529, TRANSIENT),
    "overloaded 0 and two attempts": ({"max_retries": 2, "overloaded": {"max_retries": 0}}, 529, [1_000]),
    "overloaded twice": ({"max_retries": 1, "overloaded": {"max_retries": 2}}, 529, [7_500]),
    "the larger of the two counts": ({"max_retries": 4, "overloaded": {"max_retries": 2}}, 529, OVERLOADED[:3]),
    "an overload's own delays": (
        {"overloaded": {"max_retries": 3, "retry_delay_ms": 100, "max_retry_delay_ms": 120}},
        529,
        [75, 90],
    ),
}


@each_face
@pytest.mark.parametrize("retry, status, waits_ms", RETRY_CONFIGS.values(), ids=RETRY_CONFIGS.keys())
def test_the_retry_config_changes_the_schedule(
    face: Callable[..., Any], retry: Any, status: int, waits_ms: list[int]
) -> None:
    with stage("anthropic", lambda received: Failure(status), retry=retry) as on:
        assert failure_of(face, on.membrane).http_status == status
        assert (on.provider.request_count, on.clock.waits_ms) == (len(waits_ms) + 1, waits_ms)


@pytest.mark.parametrize("face, case", ANY_FACE)
def test_retry_false_sends_once_and_gives_the_error_as_it_came(face: Callable[..., Any], case: Case) -> None:
    heard: list[object] = []
    hooks = Hooks(on_error=lambda *arguments: heard.append(arguments))
    with stage("anthropic", [case.answer, HELLO], hooks=hooks) as on:
        error = failure_of(face, on.membrane, retry=False, on_retry=heard.append, **case.options)
        assert (error.type, error.http_status) == (case.type, case.http_status)
        assert error.retryable is (case.failure_class != "fatal")
        assert (on.provider.request_count, on.clock.waits_ms, heard) == (1, [], [])


# Stated waits

STATED_WAITS = {
    "59 s are waited": (Failure(429, headers={"retry-after": "59"}), 59_000),
    "60 s are waited": (Failure(503, headers={"retry-after": "60"}), 60_000),
    "a shorter one than the schedule's changes nothing": (Failure(529, headers={"retry-after": "2"}), 7_500),
    "an overload's 299 s are waited": (Failure(529, headers={"retry-after": "299"}), 299_000),
    "milliseconds": (Failure(429, headers={"retry-after-ms": "1500"}), 1_500),
}
TOO_LONG = {
    "61 s of a rate limit": (Failure(429, headers={"retry-after": "61"}), 61_000),
    "61 s of a server": (Failure(503, headers={"retry-after": "61"}), 61_000),
    "301 s of an overload": (Failure(529, headers={"retry-after": "301"}), 301_000),
}


@each_face
@pytest.mark.parametrize("answer, wait_ms", STATED_WAITS.values(), ids=STATED_WAITS.keys())
def test_a_stated_wait_is_waited(face: Callable[..., Any], answer: Failure, wait_ms: int) -> None:
    with stage("anthropic", [answer, HELLO]) as on:
        assert face(on.membrane).details.timing.retry_delays_ms == [wait_ms]
        assert on.clock.waits_ms == [wait_ms]


@each_face
@pytest.mark.parametrize("answer, stated_ms", TOO_LONG.values(), ids=TOO_LONG.keys())
def test_a_stated_wait_that_is_too_long_comes_back_at_once(
    face: Callable[..., Any], answer: Failure, stated_ms: int
) -> None:
    with stage("anthropic", [answer, HELLO]) as on:
        error = failure_of(face, on.membrane)
        assert (error.retry_after_ms, error.retryable, error.http_status) == (stated_ms, True, answer.status)
        assert (on.provider.request_count, on.clock.waits_ms) == (1, [])


@each_face
def test_retry_false_keeps_the_provider_s_advice(face: Callable[..., Any]) -> None:
    with stage("anthropic", [Failure(429, headers={"retry-after": "7"}), HELLO]) as on:
        error = failure_of(face, on.membrane, retry=False)
        assert (error.retry_after_ms, error.retryable, on.provider.request_count) == (7_000, True, 1)


# hooks.on_error


@each_face
@pytest.mark.parametrize("abort_at, requests", [(1, 1), (2, 2)])
def test_on_error_ends_the_attempts_with_the_word_abort(face: Callable[..., Any], abort_at: int, requests: int) -> None:
    asked: list[int] = []

    def on_error(error: MembraneError, attempt: int) -> str:
        asked.append(attempt)
        return "abort" if attempt == abort_at else "retry"

    with stage("anthropic", lambda received: Failure(503), hooks=Hooks(on_error=on_error)) as on:
        error = failure_of(face, on.membrane)
        assert (error.type, error.http_status) == ("server", 503)
        assert (asked, on.provider.request_count) == (list(range(1, requests + 1)), requests)
        assert on.clock.waits_ms == TRANSIENT[: requests - 1]


# What was delivered is never sent twice

DELIVERED = {
    "reset after a text": (lambda after: faults.reset(HELLO, after=after), "network"),
    "closed after a text": (lambda after: faults.close(HELLO, after=after), "network"),
    "ended after a text": (lambda after: faults.end(HELLO, after=after), "network"),
    "overloaded after a text": (lambda after: faults.error(HELLO, after=after, type="overloaded_error"), "server"),
    "garbage after a text": (lambda after: faults.garbage(HELLO, after=after), "server"),
}
EVENTS_WITH_A_TEXT = {"anthropic": 4, "chat": 2}


@each_format
@each_streamed_face
@pytest.mark.parametrize("fault, type", DELIVERED.values(), ids=DELIVERED.keys())
def test_nothing_is_sent_again_after_a_delivery(
    format: str, face: Callable[..., Any], fault: Callable[[int], Any], type: str
) -> None:
    heard: list[object] = []
    hooks = Hooks(on_error=lambda *arguments: heard.append(arguments))
    with stage(format, [fault(EVENTS_WITH_A_TEXT[format]), HELLO], hooks=hooks) as on:
        error = failure_of(face, on.membrane, on_retry=heard.append)
        assert (error.type, error.retryable) == (type, True)
        assert error.raw_assistant_text == "Hello"
        assert [block.text for block in error.partial_content] == ["Hello"]
        assert (on.provider.request_count, on.clock.waits_ms, heard) == (1, [], [])


def test_a_block_that_has_begun_is_a_delivery() -> None:
    with stage("anthropic", [faults.reset(HELLO, after=2), HELLO]) as on:
        assert failure_of(stream, on.membrane).type == "network"
        assert on.provider.request_count == 1


@each_format
def test_complete_has_delivered_nothing_before_its_result(format: str) -> None:
    with stage(format, [faults.reset(HELLO, after=1), HELLO]) as on:
        assert complete(on.membrane).text == "Hello"
        assert (on.provider.request_count, on.clock.waits_ms) == (2, [1_000])


@each_format
@each_streamed_face
def test_a_later_round_is_sent_again_although_an_earlier_one_delivered(format: str, face: Callable[..., Any]) -> None:
    script = [Reply("Let me see.", ToolCall("get_weather", {})), Failure(529), faults.reset(HELLO), Reply("Sunny")]
    with stage(format, script) as on:
        response = face(
            on.membrane,
            TOOL_REQUEST,
            on_tool_calls=lambda calls, context: [{"tool_use_id": calls[0].id, "content": "sun"}],
        )
        assert response.text == "Let me see.Sunny"
        assert (on.provider.request_count, on.clock.waits_ms) == (4, [7_500, 2_000])
        timing = response.details.timing
        assert (timing.rounds, timing.attempts, timing.retry_delays_ms) == (2, 3, [7_500, 2_000])
        bodies = [received.body for received in on.provider.requests]
        assert bodies[1] == bodies[2] == bodies[3] != bodies[0]


def test_each_round_has_the_whole_schedule() -> None:
    call = Reply(ToolCall("get_weather", {}))
    with stage("anthropic", [*failures(2, 500), call, *failures(2, 500), HELLO]) as on:
        response = stream(
            on.membrane,
            TOOL_REQUEST,
            on_tool_calls=lambda calls: [{"tool_use_id": calls[0].id, "content": "sun"}],
        )
        assert (response.text, response.details.timing.retry_delays_ms) == ("Hello", [*TRANSIENT, *TRANSIENT])


# What surrounds a resend


@each_face
def test_before_request_runs_once_for_each_request_that_is_built(face: Callable[..., Any]) -> None:
    built: list[Any] = []
    hooks = Hooks(before_request=lambda request, provider_request: built.append(provider_request))
    with stage("anthropic", [*failures(2, 503), HELLO], hooks=hooks) as on:
        face(on.membrane)
        assert (len(built), on.provider.request_count) == (1, 3)
        assert len({received.body for received in on.provider.requests}) == 1


def test_the_counts_of_a_failed_attempt_are_not_the_answer_s() -> None:
    start = (
        b'event: message_start\ndata: {"type": "message_start", "message": {"model": "m-failed", '
        b'"usage": {"input_tokens": 1, "output_tokens": 0, "cache_read_input_tokens": 900}}}\n\n'
    )
    cut = Raw(200, {"Content-Type": "text/event-stream"}, start, then="reset", framing="chunked_without_end")
    whole = (
        b'event: message_start\ndata: {"type": "message_start", "message": {"usage": {"input_tokens": 9}}}\n\n'
        b'event: message_delta\ndata: {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, '
        b'"usage": {"output_tokens": 3}}\n\n'
    )
    with stage("anthropic", [cut, Raw(200, {"Content-Type": "text/event-stream"}, whole)]) as on:
        response = stream(on.membrane)
        assert (response.usage.input_tokens, response.usage.output_tokens) == (9, 3)
        assert response.usage.cache_read_tokens is None
        assert response.details.model.actual == "claude-sonnet-4-5"
        assert response.details.timing.attempts == 2


# A connection that cannot be made in time


@contextmanager
def unaccepting() -> Iterator[str]:
    """A server whose queue is full: packets that would open a connection are dropped."""
    with ExitStack() as stack:
        listening = stack.enter_context(socket.socket())
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listening.getsockname())
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@each_face
@pytest.mark.parametrize("format, waits_ms", [("anthropic", ONCE), ("chat", TRANSIENT)])
def test_a_connect_timeout_is_final_on_anthropic_and_sent_again_elsewhere(
    format: str, waits_ms: list[int], face: Callable[..., Any]
) -> None:
    sent: list[Any] = []
    clock = FakeClock()
    with unaccepting() as url, Transport(proxy=None, ca_certs=None, connect_timeout_ms=20) as transport:
        error = failure_of(face, Membrane(FORMATS[format](url, transport), clock=clock), on_request=sent.append)
    assert (error.type, error.retryable, error.provider_error_code) == ("timeout", True, "connect_timeout")
    assert "20 ms" in error.message
    assert (len(sent), clock.waits_ms) == (len(waits_ms) + 1, waits_ms)
