"""An answer that breaks off: before it is complete, a failure that keeps what arrived; after that, an answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from stage import STREAMED, complete, each_format, each_streamed_face, stage, stream

from membrane_lite import Clock, MembraneError, ToolResult
from membrane_lite.loopback import Raw, Reply, Thinking, ToolCall, faults
from membrane_lite.loopback import anthropic as anthropic_wire
from membrane_lite.loopback import chat as chat_wire
from membrane_lite.providers.base import TRAILING_SILENCE_MS

ANSWER = Reply(Thinking("Hm."), "Hello, world!", ToolCall("get_weather", {"city": "Bern"}, id="call_1"))
EVENTS = {"anthropic": anthropic_wire.events(ANSWER), "chat": chat_wire.events(ANSWER)}
# What makes an answer complete; from the event after it on, an end is a normal end.
COMPLETING = {"anthropic": b"message_delta", "chat": b'"finish_reason":"tool_calls"'}
EVENT_STREAM = {"Content-Type": "text/event-stream"}

ENDS: dict[str, Callable[..., Any]] = {"end": faults.end, "close": faults.close, "reset": faults.reset}
BOUNDARIES = [
    pytest.param(format, after, id=f"{format}-{after}")
    for format, events in EVENTS.items()
    for after in range(len(events) + 1)
]


def complete_after(format: str) -> int:
    """How many events make the answer complete."""
    return 1 + next(index for index, event in enumerate(EVENTS[format]) if COMPLETING[format] in event)


@pytest.mark.parametrize("name, ending", [("stream_yielding", "end"), *(("stream", ending) for ending in ENDS)])
@pytest.mark.parametrize("format, after", BOUNDARIES)
def test_an_end_at_every_event_boundary(format: str, after: int, name: str, ending: str) -> None:
    face = STREAMED[name]
    heard: list[str] = []
    with stage(format, [ENDS[ending](ANSWER, after=after)]) as on:
        options: Any = {
            "retry": False,
            "on_chunk": lambda text, meta: heard.append(text) if meta.visible else None,
            "on_tool_calls": lambda calls, context: [ToolResult(call.id, "sun") for call in calls],
            "max_tool_depth": 0,
        }
        if after < complete_after(format):
            with pytest.raises(MembraneError) as caught:
                face(on.membrane, **options)
            error = caught.value
            assert (error.type, error.retryable) == ("network", True)
            assert error.raw_assistant_text == "".join(heard)
            assert "Hello, world!".startswith(error.raw_assistant_text)
            if ending == "end":
                assert f"the stream ended after {after} events without" in error.message
        else:
            response = face(on.membrane, **options)
            assert (response.text, response.stop_reason) == ("Hello, world!", "tool_use")
            assert [(call.id, call.input) for call in response.tool_calls] == [("call_1", {"city": "Bern"})]
        assert on.provider.request_count == 1


@each_format
def test_what_had_arrived_grows_with_each_event_and_nothing_else(format: str) -> None:
    texts = []
    with stage(format, lambda received: faults.end(ANSWER, after=received.number - 1)) as on:
        for _ in range(complete_after(format)):
            with pytest.raises(MembraneError) as caught:
                stream(on.membrane, retry=False)
            texts.append(caught.value.raw_assistant_text)
            kinds = [block.type for block in caught.value.partial_content]
            assert kinds == ["thinking", "text", "tool_use"][: len(kinds)]
    assert list(dict.fromkeys(texts)) == ["", "Hello,", "Hello, world!"]


@each_format
def test_the_arguments_of_a_call_that_broke_off_are_no_input(format: str) -> None:
    events = EVENTS[format]
    last_piece = max(index for index, event in enumerate(events) if b"Bern" in event)
    with stage(format, [faults.end(ANSWER, after=last_piece)]) as on, pytest.raises(MembraneError) as caught:
        stream(on.membrane)
    call = caught.value.partial_content[-1]
    assert (call.type, call.name, call.input, call.unparseable_input) == ("tool_use", "get_weather", {}, '{"city":')


@each_format
def test_an_end_inside_an_event_is_an_end_too(format: str) -> None:
    body = b"".join(EVENTS[format])
    completing = body.index(EVENTS[format][complete_after(format) - 1])
    cuts = range(3, completing, 61)
    for cut in cuts:
        raw = Raw(200, EVENT_STREAM, body[:cut], framing="close", then="close")
        with stage(format, [raw]) as on, pytest.raises(MembraneError) as caught:
            stream(on.membrane, retry=False)
        assert (cut, caught.value.type) == (cut, "network")


@each_format
def test_the_last_event_needs_no_blank_line_after_it(format: str) -> None:
    events = EVENTS[format]
    body = b"".join(events[: complete_after(format)]).rstrip(b"\n")
    with stage(format, [Raw(200, EVENT_STREAM, body)]) as on:
        assert stream(on.membrane).text == "Hello, world!"


@each_format
@pytest.mark.parametrize("ending", ENDS.values(), ids=ENDS.keys())
def test_half_of_a_whole_answer_is_none(format: str, ending: Callable[..., Any]) -> None:
    with stage(format, [ending(ANSWER, after=1)]) as on:
        with pytest.raises(MembraneError) as caught:
            complete(on.membrane, retry=False)
        assert caught.value.retryable
        # Where HTTP itself says that half of the document is all of it, it is the document that is broken.
        assert caught.value.type == ("server" if ending is faults.end else "network")
        assert caught.value.partial_content == []


# What follows a complete answer


@each_streamed_face
def test_anthropic_s_answer_is_not_waited_for_beyond_its_last_event(face: Callable[..., Any]) -> None:
    with stage("anthropic", [faults.silence(Reply("Hello"), after=6)], clock=Clock()) as on:
        started = time.monotonic()
        assert face(on.membrane).text == "Hello"
        assert time.monotonic() - started < 0.5


def test_a_late_end_of_the_body_is_not_waited_for() -> None:
    with stage("chat", [faults.late_end(Reply("Hello"), ms=3_000)], clock=Clock()) as on:
        started = time.monotonic()
        assert stream(on.membrane).text == "Hello"
        assert time.monotonic() - started < 0.5


def chat_finished_and_silent() -> Any:
    """Everything but [DONE], and then neither more nor an end."""
    return faults.silence(Reply("Hello"), after=len(chat_wire.events(Reply("Hello"))) - 1)


@each_streamed_face
def test_silence_after_the_finish_reason_ends_a_finished_answer(face: Callable[..., Any]) -> None:
    with stage("chat", [chat_finished_and_silent()]) as on:
        started = time.monotonic()
        response = face(on.membrane, on_chunk=lambda text, meta: on.clock.hurry(0.98 * TRAILING_SILENCE_MS / 1000))
        assert (response.text, response.stop_reason) == ("Hello", "end_turn")
        assert time.monotonic() - started < 0.5
        assert on.provider.wait_for_close()


def test_the_silence_is_two_seconds() -> None:
    assert TRAILING_SILENCE_MS == 2_000


@pytest.mark.slow
def test_silence_after_the_finish_reason_really_takes_two_seconds() -> None:
    with stage("chat", [chat_finished_and_silent()], clock=Clock()) as on:
        started = time.monotonic()
        assert stream(on.membrane).text == "Hello"
        assert 1.9 < time.monotonic() - started < 2.5


@pytest.mark.parametrize("ending", ENDS.values(), ids=ENDS.keys())
def test_a_failure_after_the_finish_reason_is_none(ending: Callable[..., Any]) -> None:
    body_end = len(chat_wire.events(Reply("Hello"))) - 1
    with stage("chat", [ending(Reply("Hello"), after=body_end)]) as on:
        response = stream(on.membrane)
        assert (response.text, response.stop_reason) == ("Hello", "end_turn")
        assert response.usage.unreported == ["input_tokens", "output_tokens"]
