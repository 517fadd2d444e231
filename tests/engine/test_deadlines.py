"""Every deadline: what it spans, how its end is told on each face, and that nothing is sent again after it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from stage import (
    REQUEST,
    TOOL_REQUEST,
    FakeClock,
    complete,
    each_face,
    each_format,
    each_streamed_face,
    ended,
    stage,
    stream,
    stream_yielding,
)

from membrane_lite import Clock, MembraneError
from membrane_lite.loopback import Failure, Reply, ToolCall, failures, faults

HELLO = Reply("Hello, world!")
SILENT = faults.silence()
CALL_MESSAGE = "timeout_ms: the call took longer than its {} ms"
REAL = {"clock": Clock()}


def timeout_of(face: Callable[..., Any], *args: Any, **options: Any) -> MembraneError:
    with pytest.raises(MembraneError) as caught:
        face(*args, **options)
    assert caught.value.type == "timeout"
    return caught.value


# timeout_ms: the whole call

STUCK = {
    "before an answer": faults.silence(),
    "after the head": faults.silence(HELLO),
    "in the middle": faults.silence(HELLO, after=1),
}
DRIPPING = {
    "comments": b": still here\n\n",
    "pings": b'event: ping\ndata: {"type": "ping"}\n\n',
    "half a line": b"d",
}


@each_format
@each_face
@pytest.mark.parametrize("answer", STUCK.values(), ids=STUCK.keys())
def test_timeout_ms_ends_a_call_wherever_it_waits(format: str, face: Callable[..., Any], answer: Any) -> None:
    with stage(format, [answer, HELLO], **REAL) as on:
        started = time.monotonic()
        result = ended(face, on.membrane, timeout_ms=40)
        assert 0.04 <= time.monotonic() - started < 0.5
        assert result[:2] == ("timeout", CALL_MESSAGE.format(40))
        assert on.provider.wait_for_close()
        assert on.provider.request_count == 1
        assert face(on.membrane).text == "Hello, world!"


@each_format
@each_streamed_face
@pytest.mark.parametrize("data", DRIPPING.values(), ids=DRIPPING.keys())
def test_timeout_ms_holds_against_a_server_that_drips(format: str, face: Callable[..., Any], data: bytes) -> None:
    with stage(format, [faults.drip(HELLO, after=1, data=data, every_ms=2)], **REAL) as on:
        assert ended(face, on.membrane, timeout_ms=40)[:2] == ("timeout", CALL_MESSAGE.format(40))
        assert on.provider.wait_for_close()
        assert on.provider.request_count == 1


@each_streamed_face
def test_timeout_ms_keeps_what_has_arrived(face: Callable[..., Any]) -> None:
    with stage("anthropic", [faults.silence(HELLO, after=4)]) as on:
        result = ended(face, on.membrane, timeout_ms=5_000, on_chunk=lambda text, meta: on.clock.pass_(5))
        assert result == ("timeout", CALL_MESSAGE.format(5_000), "Hello,")


def test_timeout_ms_of_complete_is_an_error_that_is_not_to_be_repeated() -> None:
    with stage("anthropic", [SILENT], **REAL) as on:
        error = timeout_of(complete, on.membrane, timeout_ms=30)
        assert (error.retryable, error.provider_error_code) == (False, "call_timeout")
        assert error.raw_request["model"] == "claude-sonnet-4-5"


@each_face
def test_timeout_ms_spans_the_waits_between_attempts(face: Callable[..., Any]) -> None:
    with stage("anthropic", [Failure(529), Failure(529), HELLO]) as on:
        assert ended(face, on.membrane, timeout_ms=20_000)[:2] == ("timeout", CALL_MESSAGE.format(20_000))
        assert on.clock.waits_ms == [7_500, 12_500], "the second wait ends with the call"
        assert on.provider.request_count == 2


@each_face
def test_a_call_that_ends_in_time_is_not_hurt_by_its_waits(face: Callable[..., Any]) -> None:
    with stage("anthropic", [*failures(2, 529), HELLO]) as on:
        assert face(on.membrane, timeout_ms=30_000).text == "Hello, world!"
        assert on.clock.waits_ms == [7_500, 15_000]


def test_timeout_ms_of_stream_spans_its_tools() -> None:
    clock = FakeClock()

    def slow(calls: Any) -> Any:
        clock.sleep(3)
        return [{"tool_use_id": calls[0].id, "content": "sun"}]

    script = [Reply("Let me see.", ToolCall("get_weather", {})), HELLO]
    with stage("anthropic", script, clock=clock) as on:
        result = stream(on.membrane, TOOL_REQUEST, on_tool_calls=slow, timeout_ms=2_999)
        assert (result.reason, result.message) == ("timeout", CALL_MESSAGE.format(2_999))
        assert [given.content for given in result.tool_results] == ["sun"]
        assert result.raw_assistant_text == "Let me see."
        assert on.provider.request_count == 1


def test_timeout_ms_of_stream_spans_all_rounds() -> None:
    clock = FakeClock()

    def slow(calls: Any) -> Any:
        clock.sleep(2)
        return [{"tool_use_id": calls[0].id, "content": "sun"}]

    with stage("anthropic", lambda received: Reply(ToolCall("get_weather", {})), clock=clock) as on:
        result = stream(on.membrane, TOOL_REQUEST, on_tool_calls=slow, timeout_ms=5_000)
        assert (result.reason, len(result.tool_results), on.provider.request_count) == ("timeout", 3, 3)


def test_timeout_ms_of_stream_yielding_spans_each_provider_call_and_not_the_tools() -> None:
    clock = FakeClock()

    def slow(calls: Any, context: Any) -> Any:
        clock.sleep(60)
        return [{"tool_use_id": calls[0].id, "content": "sun"}]

    script = [Failure(503), Reply(ToolCall("get_weather", {})), Failure(503), HELLO]
    with stage("anthropic", script, clock=clock) as on:
        response = stream_yielding(on.membrane, TOOL_REQUEST, on_tool_calls=slow, timeout_ms=1_900)
        assert response.text == "Hello, world!"
        assert clock.waits_ms == [1_000, 60_000, 1_000]


def test_timeout_ms_of_stream_yielding_spans_the_waits_of_a_later_round() -> None:
    def tool(calls: Any, context: Any) -> Any:
        return [{"tool_use_id": calls[0].id, "content": "sun"}]

    script = [Reply("One.", ToolCall("get_weather", {})), Failure(503), Failure(503), HELLO]
    with stage("anthropic", script) as on:
        result = stream_yielding(on.membrane, TOOL_REQUEST, on_tool_calls=tool, timeout_ms=1_500)
        assert (result.reason, result.message) == ("timeout", CALL_MESSAGE.format(1_500))
        assert [given.content for given in result.tool_results] == ["sun"]
        assert on.clock.waits_ms == [1_000, 500]


# first_event_timeout_ms: from the send to the first event


@each_format
@each_face
def test_first_event_timeout_ms_is_a_timeout_that_may_be_repeated(format: str, face: Callable[..., Any]) -> None:
    with stage(format, [SILENT, HELLO], **REAL) as on:
        error = timeout_of(face, on.membrane, first_event_timeout_ms=30)
        assert error.message == "first_event_timeout_ms: no first event within 30 ms of sending the request"
        assert (error.retryable, error.http_status, on.provider.request_count) == (True, None, 1)
        assert on.provider.wait_for_close()


@each_streamed_face
@pytest.mark.parametrize("answer", [faults.silence(HELLO), faults.drip(HELLO, after=0, data=b": ping\n\n", every_ms=2)])
def test_neither_the_head_nor_a_comment_is_an_event(face: Callable[..., Any], answer: Any) -> None:
    with stage("anthropic", [answer], **REAL) as on:
        error = timeout_of(face, on.membrane, first_event_timeout_ms=30)
        assert error.message.startswith("first_event_timeout_ms")


def test_the_first_event_deadline_ends_with_the_first_event() -> None:
    with stage("anthropic", [HELLO]) as on:
        result = stream(on.membrane, first_event_timeout_ms=5_000, on_chunk=lambda text, meta: on.clock.pass_(6))
        assert result.text == "Hello, world!"


# idle_timeout_ms: between bytes


@each_format
@each_streamed_face
@pytest.mark.parametrize("after", [1, 2])
def test_idle_timeout_ms_is_a_timeout_that_may_be_repeated(format: str, face: Callable[..., Any], after: int) -> None:
    with stage(format, [faults.silence(HELLO, after=after), HELLO], **REAL) as on:
        error = timeout_of(face, on.membrane, idle_timeout_ms=30)
        assert error.message == "idle_timeout_ms: no byte for 30 ms"
        assert (error.retryable, on.provider.request_count) == (True, 1)
        assert on.provider.wait_for_close()


def test_idle_timeout_ms_of_a_whole_answer() -> None:
    with stage("anthropic", [faults.silence(HELLO, after=1)], **REAL) as on:
        assert timeout_of(complete, on.membrane, idle_timeout_ms=30).message == "idle_timeout_ms: no byte for 30 ms"


@each_streamed_face
def test_an_idle_timeout_after_a_delivery_keeps_what_has_arrived(face: Callable[..., Any]) -> None:
    with stage("anthropic", [faults.silence(HELLO, after=4)]) as on:
        error = timeout_of(
            face, on.membrane, idle_timeout_ms=5_000, on_chunk=lambda text, meta: on.clock.hurry(look_costs=4.97)
        )
        assert (error.message, error.raw_assistant_text) == ("idle_timeout_ms: no byte for 5000 ms", "Hello,")


@each_format
def test_pings_keep_a_stream_from_being_idle(format: str) -> None:
    clock = FakeClock()
    clock.hurry(look_costs=1)
    with stage(format, [faults.drip(HELLO, after=1, every_ms=1)], clock=clock) as on:
        result = stream(on.membrane, idle_timeout_ms=60_000, timeout_ms=300_000)
        assert result.message == CALL_MESSAGE.format(300_000)


def test_the_time_a_reader_takes_is_not_the_server_s_silence() -> None:
    with stage("anthropic", [HELLO]) as on:
        result = stream(on.membrane, idle_timeout_ms=5_000, on_chunk=lambda text, meta: on.clock.pass_(6))
        assert result.text == "Hello, world!"


def test_the_transport_s_read_timeout_is_the_idle_limit_of_calls_that_state_none() -> None:
    with stage("anthropic", [faults.silence(HELLO, after=1)], transport={"read_timeout_ms": 30}, **REAL) as on:
        assert timeout_of(stream, on.membrane).message == "idle_timeout_ms: no byte for 30 ms"


# progress_timeout_ms: between pieces of content that are not empty


@each_format
@each_streamed_face
def test_progress_timeout_ms_ends_a_call_that_only_pings(format: str, face: Callable[..., Any]) -> None:
    with stage(format, [faults.drip(HELLO, after=1, every_ms=2), HELLO], **REAL) as on:
        error = timeout_of(face, on.membrane, progress_timeout_ms=40)
        assert error.message == "progress_timeout_ms: the answer made no progress for 40 ms"
        assert (error.retryable, error.provider_error_code) == (False, "response_progress_timeout")
        assert on.provider.request_count == 1
        assert on.provider.wait_for_close()


def test_each_piece_of_content_is_progress() -> None:
    with stage("anthropic", [Reply("one two three")]) as on:
        result = stream(on.membrane, progress_timeout_ms=5_000, on_chunk=lambda text, meta: on.clock.pass_(4))
        assert result.text == "one two three"


@each_streamed_face
def test_the_adapter_s_progress_limit_holds_where_a_call_states_none(face: Callable[..., Any]) -> None:
    answers = [faults.drip(HELLO, after=4, every_ms=2)] * 2
    with stage("anthropic", answers, adapter={"progress_timeout_ms": 30}, **REAL) as on:
        assert "no progress for 30 ms" in timeout_of(face, on.membrane).message
        assert "no progress for 45 ms" in timeout_of(face, on.membrane, progress_timeout_ms=45).message


def test_a_whole_answer_makes_no_progress_before_it_is_there() -> None:
    def late(received: Any) -> Reply:
        time.sleep(0.04)
        return HELLO

    with stage("anthropic", late, adapter={"progress_timeout_ms": 20}, **REAL) as on:
        assert complete(on.membrane).text == "Hello, world!"
        assert stream(on.membrane, {**REQUEST, "streaming": False}).text == "Hello, world!"


# The nearest one ends the call

NEAREST = ["timeout_ms", "first_event_timeout_ms", "progress_timeout_ms"]


@pytest.mark.parametrize("name", NEAREST)
def test_the_nearest_deadline_is_the_one_that_is_named(name: str) -> None:
    limits: Any = {**dict.fromkeys(NEAREST, 5_000), name: 30}
    with stage("anthropic", [SILENT], **REAL) as on:
        try:
            message = stream(on.membrane, **limits).message
        except MembraneError as error:
            message = error.message
        assert message.startswith(name + ":")
        assert "30 ms" in message
