"""stream_yielding(): events in a `for` loop, results provided between two of them, and every way to leave."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from typing import Any

import pytest
from stage import FORMATS, REQUEST, TOOL_REQUEST, Stage, complete, each_format, stage, stream_yielding

from membrane_lite import AbortController, Clock, MembraneError, Message, Text, ToolResult, ToolResultBlock, ToolUse
from membrane_lite.loopback import Failure, Raw, Reply, Thinking, ToolCall, Usage, faults
from membrane_lite.loopback import anthropic as wire
from membrane_lite.values import events as predicates
from membrane_lite.values.events import StreamEvent

BERN = ToolCall("get_weather", {"city": "Bern"}, id="call_1")
ROME = ToolCall("get_weather", {"city": "Rome"}, id="call_2")
SUNNY = Reply("It is sunny.")
RESULT = {"tool_use_id": "call_1", "content": "sun"}
REAL: Any = {"clock": Clock()}
HELD = faults.silence(Reply("Hello, world!"), after=4)  # "Hello," and no more
HELD_AFTER = {"anthropic": 4, "chat": 2}


def types(events: list[StreamEvent]) -> list[str]:
    """Their types, neighbours of one type as one."""
    return [type for type, _ in groupby(event.type for event in events)]


class Heard:
    """A logger."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warning(self, message: str, *args: object) -> None:
        self.warnings.append(message % args)


# Events


@each_format
def test_the_events_of_a_tool_turn_in_their_order(format: str) -> None:
    events: list[Any] = []
    with stage(format, [Reply("Let me see.", BERN), SUNNY]) as on, on.membrane.stream_yielding(TOOL_REQUEST) as stream:
        for event in stream:
            events.append(event)
            if event.type == "tool-calls":
                stream.provide_tool_results([RESULT])
    first = "block tokens tokens tokens block block tokens tokens block usage tool-calls"
    second = "block tokens tokens tokens block usage complete"
    assert [event.type for event in events] == f"{first} {second}".split()
    tokens = [event for event in events if event.type == "tokens"]
    assert [(event.content, event.meta.type, event.meta.visible, event.meta.block_index) for event in tokens] == [
        ("Let", "text", True, 0),
        (" me", "text", True, 0),
        (" see.", "text", True, 0),
        ('{"city":', "tool_call", False, 1),
        (' "Bern"}', "tool_call", False, 1),
        ("It", "text", True, 0),
        (" is", "text", True, 0),
        (" sunny.", "text", True, 0),
    ]
    blocks = [event.event for event in events if event.type == "block"]
    assert [(block.event, block.index, block.block.type) for block in blocks] == [
        ("block_start", 0, "text"),
        ("block_complete", 0, "text"),
        ("block_start", 1, "tool_call"),
        ("block_complete", 1, "tool_call"),
        ("block_start", 0, "text"),
        ("block_complete", 0, "text"),
    ]
    call = blocks[3].block
    assert (call.tool_id, call.tool_name, call.input) == ("call_1", "get_weather", {"city": "Bern"})
    asked, last = events[10], events[-1]
    assert [call.id for call in asked.calls] == ["call_1"]
    assert (asked.context.depth, asked.context.preamble) == (0, "Let me see.")
    assert asked.context.round_content == [Text("Let me see."), ToolUse("call_1", "get_weather", {"city": "Bern"})]
    assert last.response.text == "Let me see.It is sunny."
    assert last.response.tool_results == [ToolResult("call_1", "sun")]


def test_thinking_is_told_as_thinking() -> None:
    with stage("anthropic", [Reply(Thinking("Hm."), "Yes")]) as on:
        tokens: list[Any] = [event for event in on.membrane.stream_yielding(REQUEST) if event.type == "tokens"]
    assert [(event.content, event.meta.type, event.meta.visible) for event in tokens] == [
        ("Hm.", "thinking", False),
        ("Yes", "text", True),
    ]


FLAGS = {
    "emit_tokens": ["block", "usage", "complete"],
    "emit_blocks": ["tokens", "usage", "complete"],
    "emit_usage": ["block", "tokens", "block", "complete"],
}


OFF: Any = dict.fromkeys(FLAGS, False)


@pytest.mark.parametrize("flag, seen", FLAGS.items(), ids=FLAGS.keys())
def test_each_flag_hides_one_kind_of_event(flag: str, seen: list[str]) -> None:
    with stage("anthropic", [Reply("Hello, world!")]) as on:
        hidden: Any = {flag: False}
        assert types(list(on.membrane.stream_yielding(REQUEST, **hidden))) == seen


def test_all_flags_off_leave_the_last_event_and_the_tool_calls() -> None:
    with stage("anthropic", [Reply(BERN), SUNNY]) as on:
        seen = []
        with on.membrane.stream_yielding(TOOL_REQUEST, **OFF) as stream:
            for event in stream:
                seen.append(event.type)
                if event.type == "tool-calls":
                    stream.provide_tool_results([RESULT])
        assert seen == ["tool-calls", "complete"]


def test_usage_events_hold_running_totals() -> None:
    script = [
        Reply(BERN, usage=Usage(input_tokens=10, output_tokens=5)),
        Reply("Sun", usage=Usage(input_tokens=20, output_tokens=7)),
    ]
    with stage("anthropic", script) as on:
        usages = []
        event: Any
        with on.membrane.stream_yielding(TOOL_REQUEST) as stream:
            for event in stream:
                if event.type == "usage":
                    usages.append(event.usage)
                elif event.type == "tool-calls":
                    stream.provide_tool_results([RESULT])
    assert [(usage.input_tokens, usage.output_tokens) for usage in usages] == [(10, 5), (30, 12)]


@each_format
def test_a_failure_is_the_last_event_and_not_an_exception(format: str) -> None:
    with stage(format, [Failure(400, "no such thing")]) as on:
        (event,) = on.membrane.stream_yielding(REQUEST)
        assert event.type == "error"
        error = event.error  # type: ignore[attr-defined]
        assert (error.type, error.http_status) == ("invalid_request", 400)
        assert error.raw_request["model"] == "claude-sonnet-4-5"


PREDICATES = {
    "tokens": predicates.is_tokens_event,
    "tool-calls": predicates.is_tool_calls_event,
    "complete": predicates.is_complete_event,
    "error": predicates.is_error_event,
    "aborted": predicates.is_aborted_event,
}


def test_the_predicates_tell_events_apart() -> None:
    seen: dict[str, StreamEvent] = {}
    script = [Reply("Hi", BERN), SUNNY, Reply("No", stop_reason="refusal"), SUNNY, Failure(400), faults.silence()]
    with stage("anthropic", script, **REAL) as on:
        for options in ({}, {"refusal_retries": 1}, {}, {"timeout_ms": 20}):
            with on.membrane.stream_yielding(TOOL_REQUEST, **options) as stream:  # type: ignore[arg-type]
                for event in stream:
                    seen[event.type] = event
                    if event.type == "tool-calls":
                        stream.provide_tool_results([RESULT])
    assert set(seen) == {"tokens", "block", "usage", "tool-calls", "retrying", "complete", "error", "aborted"}
    for type, event in seen.items():
        assert [name for name, holds in PREDICATES.items() if holds(event)] == ([type] if type in PREDICATES else [])
        assert predicates.is_terminal_event(event) is (type in ("complete", "error", "aborted"))


# States


def test_nothing_is_sent_before_the_first_event_is_asked_for() -> None:
    with stage("anthropic", [SUNNY]) as on:
        with on.membrane.stream_yielding(REQUEST) as stream:
            assert (stream.state, stream.tool_depth, stream.is_waiting_for_tools) == ("idle", 0, False)
        assert on.provider.connections_made == 0


def test_the_states_of_a_tool_turn() -> None:
    with stage("anthropic", [Reply(BERN, ROME), SUNNY]) as on:
        stream = on.membrane.stream_yielding(TOOL_REQUEST)
        for event in stream:
            if event.type == "tool-calls":
                assert (stream.state, stream.is_waiting_for_tools) == ("waiting_for_tools", True)
                assert stream.pending_tool_call_ids == ["call_1", "call_2"]
                assert stream.tool_depth == 0
                stream.provide_tool_results([RESULT, {**RESULT, "tool_use_id": "call_2"}])
                assert (stream.state, stream.pending_tool_call_ids) == ("streaming", [])
            elif event.type != "complete":
                assert stream.state == "streaming"
        assert (stream.state, stream.tool_depth, stream.is_waiting_for_tools) == ("done", 1, False)


def test_next_and_for_go_on_with_one_another_and_nothing_starts_again() -> None:
    with stage("anthropic", [Reply("one two three")]) as on:
        stream = on.membrane.stream_yielding(REQUEST, emit_blocks=False)
        first: Any = next(stream)
        rest = list(stream)
        assert [first.content, *(event.content for event in rest[:2])] == ["one", " two", " three"]  # type: ignore
        assert rest[-1].type == "complete"
        assert list(stream) == []
        with pytest.raises(StopIteration):
            next(stream)
        stream.cancel()
        stream.close()
        assert (list(stream), on.provider.request_count) == ([], 1)


# Results


@contextmanager
def waiting(script: list[Any], **settings: Any) -> Iterator[tuple[Any, Stage]]:
    """A stream that waits for the results of its first round."""
    with stage("anthropic", script, **settings) as on, on.membrane.stream_yielding(TOOL_REQUEST, **OFF) as stream:
        assert next(stream).type == "tool-calls"
        yield stream, on


def test_results_that_come_too_early_are_refused() -> None:
    with stage("anthropic", [SUNNY]) as on, on.membrane.stream_yielding(REQUEST) as stream:
        with pytest.raises(MembraneError, match=r"not waiting for tools \(status: idle\)"):
            stream.provide_tool_results([RESULT])
        next(stream)
        with pytest.raises(MembraneError, match=r"not waiting for tools \(status: streaming\)"):
            stream.provide_tool_results([RESULT])
        assert [event.type for event in stream][-1] == "complete"
        with pytest.raises(MembraneError, match=r"not waiting for tools \(status: done\)"):
            stream.provide_tool_results([RESULT])


def test_a_missing_result_is_named_and_the_stream_goes_on_waiting() -> None:
    with waiting([Reply(BERN, ROME), SUNNY]) as (stream, _):
        with pytest.raises(MembraneError, match="Missing tool result for call ID: call_2") as caught:
            stream.provide_tool_results([RESULT])
        assert caught.value.type == "invalid_request"
        assert stream.pending_tool_call_ids == ["call_1", "call_2"]
        stream.provide_tool_results([RESULT, {**RESULT, "tool_use_id": "call_2"}])
        assert next(stream).response.text == "It is sunny."


BAD_RESULTS = {
    "no list": (None, "expected a list of tool results"),
    "a misspelt key": ([{**RESULT, "is_eror": True}], "did you mean 'is_error'?"),
    "a result that nobody awaits": (
        [RESULT, {**RESULT, "tool_use_id": "call_9"}],
        "Unknown tool call ID: call_9; results are awaited for call_1",
    ),
}


@pytest.mark.parametrize("given, message", BAD_RESULTS.values(), ids=BAD_RESULTS.keys())
def test_results_of_a_wrong_shape_are_refused_and_the_stream_goes_on_waiting(given: Any, message: str) -> None:
    with waiting([Reply(BERN), SUNNY]) as (stream, _):
        with pytest.raises(MembraneError) as caught:
            stream.provide_tool_results(given)
        assert message in caught.value.message
        stream.provide_tool_results([RESULT])
        assert next(stream).type == "complete"


def test_results_are_taken_once() -> None:
    with waiting([Reply(BERN), SUNNY]) as (stream, _):
        stream.provide_tool_results([RESULT])
        with pytest.raises(MembraneError, match="not waiting for tools"):
            stream.provide_tool_results([RESULT])
        assert next(stream).type == "complete"


def test_going_on_without_results_is_refused_and_the_stream_goes_on_waiting() -> None:
    with waiting([Reply(BERN), SUNNY]) as (stream, _):
        with pytest.raises(MembraneError, match=r"call provide_tool_results\(\) before going on") as caught:
            next(stream)
        assert caught.value.type == "invalid_request"
        stream.provide_tool_results([RESULT])
        assert next(stream).type == "complete"


def test_results_after_a_cancel_are_refused() -> None:
    with waiting([Reply("Let me see.", BERN), SUNNY]) as (stream, on):
        stream.cancel()
        assert (stream.is_waiting_for_tools, stream.pending_tool_call_ids) == (False, [])
        with pytest.raises(MembraneError, match=r"not waiting for tools \(status: done\)"):
            stream.provide_tool_results([RESULT])
        event = next(stream)
        assert (event.type, event.reason, event.raw_assistant_text) == ("aborted", "user", "Let me see.")
        assert [call.id for call in event.tool_calls] == ["call_1"]
        assert (event.tool_results, list(stream)) == ([], [])
        assert on.provider.request_count == 1


def test_a_cancel_after_the_results_keeps_them() -> None:
    with waiting([Reply(BERN), SUNNY]) as (stream, on):
        stream.provide_tool_results([RESULT])
        stream.cancel()
        event = next(stream)
        assert (event.type, event.tool_results) == ("aborted", [ToolResult("call_1", "sun")])
        assert on.provider.request_count == 1


def aborting(stream: Any, controller: AbortController) -> dict[str, Any]:
    """Ways to end a stream that waits for results."""

    def elsewhere() -> None:
        thread = threading.Thread(target=stream.cancel)
        thread.start()
        thread.join()

    return {"its signal": lambda: controller.abort("enough"), "another thread": elsewhere}


@pytest.mark.parametrize("way", ["its signal", "another thread"])
def test_a_stream_that_waits_for_results_is_aborted_too(way: str) -> None:
    controller = AbortController()
    with stage("anthropic", [Reply("Let me see.", BERN), SUNNY]) as on:
        with on.membrane.stream_yielding(TOOL_REQUEST, signal=controller.signal, **OFF) as stream:
            assert next(stream).type == "tool-calls"
            aborting(stream, controller)[way]()
            with pytest.raises(MembraneError, match=r"not waiting for tools \(status: done\)"):
                stream.provide_tool_results([RESULT])
            (event,) = stream
        assert (event.type, event.reason, event.raw_assistant_text) == ("aborted", "user", "Let me see.")  # type: ignore
        assert (stream.state, on.provider.request_count) == ("done", 1)


def test_a_signal_that_fires_after_the_end_changes_nothing() -> None:
    controller = AbortController()
    with stage("anthropic", [SUNNY]) as on, on.membrane.stream_yielding(REQUEST, signal=controller.signal) as stream:
        events: list[Any] = list(stream)
        controller.abort()
        stream.cancel()
        assert (events[-1].type, events[-1].response.text, list(stream)) == ("complete", "It is sunny.", [])


def test_a_call_with_broken_arguments_is_not_among_the_calls() -> None:
    broken = ToolCall("get_weather", "{", id="call_2")
    with waiting([Reply(broken, BERN), SUNNY]) as (stream, _):
        assert stream.pending_tool_call_ids == ["call_1"]
        stream.provide_tool_results([RESULT])
        results = next(stream).response.tool_results
        assert [(result.tool_use_id, result.is_error) for result in results] == [("call_1", None), ("call_2", True)]


# Messages put in beside results


def last_texts(on: Stage, number: int) -> list[Any]:
    """Type or text of each block of the last message of a request."""
    blocks = on.provider.requests[number].json["messages"][-1]["content"]
    return [block.get("text", block["type"]) for block in blocks]


@each_format
def test_injected_messages_follow_the_results_and_stay(format: str) -> None:
    message = {"participant": "Antra", "content": "Look south too."}
    event: Any
    with stage(format, [Reply(BERN), Reply(ROME), SUNNY]) as on:
        with on.membrane.stream_yielding(TOOL_REQUEST) as stream:
            for event in stream:
                if event.type == "tool-calls":
                    first = event.calls[0].id == "call_1"
                    stream.provide_tool_results(
                        [{"tool_use_id": event.calls[0].id, "content": "sun"}], [message] if first else None
                    )
        sent = [received.json["messages"] for received in on.provider.requests]
    assert "Look south" not in str(sent[0])
    assert sent[2][: len(sent[1])] == sent[1]
    if format == "anthropic":
        result, text = sent[1][-1]["content"]
        assert (result["type"], text["text"]) == ("tool_result", "Antra: Look south too.")
    else:
        assert [entry["role"] for entry in sent[1]] == ["user", "assistant", "tool", "user"]
        assert sent[1][-1]["content"] == "Antra: Look south too."


INJECTED: dict[str, tuple[Any, list[str]]] = {
    "none": (None, ["tool_result"]),
    "an empty list": ([], ["tool_result"]),
    "nobody's": ([{"content": "Hurry."}], ["tool_result", "User: Hurry."]),
    "a Message": ([Message("Ann", [Text("Hurry.")])], ["tool_result", "Ann: Hurry."]),
    "two": (
        [{"content": "One."}, {"participant": "Ann", "content": "Two."}],
        ["tool_result", "User: One.", "Ann: Two."],
    ),
    "an empty one": ([{"content": []}], ["tool_result"]),
    "the assistant's own, which is the beginning of its answer": (
        [{"participant": "Claude", "content": "It is "}],
        ["It is"],
    ),
}


@pytest.mark.parametrize("given, texts", INJECTED.values(), ids=INJECTED.keys())
def test_injected_messages_have_many_forms(given: Any, texts: list[str]) -> None:
    with waiting([Reply(BERN), SUNNY]) as (stream, on):
        stream.provide_tool_results([RESULT], injected_messages=given)
        assert next(stream).type == "complete"
        assert last_texts(on, 1) == texts


def test_tool_blocks_in_injected_messages_are_stripped_with_a_warning() -> None:
    logger = Heard()
    given = [
        Message("Ann", [ToolResultBlock("call_1", "rain"), Text("Hurry."), ToolUse("call_5", "get_weather")]),
        Message("Ann", [ToolResultBlock("call_1", "rain")]),
    ]
    with waiting([Reply(BERN), SUNNY], logger=logger) as (stream, on):
        stream.provide_tool_results([RESULT], given)
        assert next(stream).type == "complete"
        assert last_texts(on, 1) == ["tool_result", "Ann: Hurry."]
    assert logger.warnings == [
        "injected_messages[0]: stripped 2 tool block(s)",
        "injected_messages[1]: stripped 1 tool block(s)",
    ]


def test_an_injected_message_of_a_wrong_shape_leaves_the_stream_waiting() -> None:
    with waiting([Reply(BERN), SUNNY]) as (stream, on):
        with pytest.raises(MembraneError) as caught:
            stream.provide_tool_results([RESULT], [{"contents": "Hurry."}])
        assert caught.value.message.startswith("injected_messages[0]: no field 'contents'")
        stream.provide_tool_results([RESULT], [{"content": "Hurry."}])
        assert next(stream).type == "complete"
        assert last_texts(on, 1) == ["tool_result", "User: Hurry."]


def test_the_assistant_s_name_decides_the_side_of_an_unnamed_message() -> None:
    request = {**TOOL_REQUEST, "assistant_participant": "User"}
    with stage("anthropic", [Reply(BERN), SUNNY]) as on:
        request["messages"] = [{"participant": "Ann", "content": "Hi"}]
        with on.membrane.stream_yielding(request) as stream:
            for event in stream:
                if event.type == "tool-calls":
                    stream.provide_tool_results([RESULT], [{"content": "Hurry."}])
        assert last_texts(on, 1) == ["tool_result", "user: Hurry."]


# Leaving


def test_cancel_before_the_first_event_gives_one_aborted_event() -> None:
    with stage("anthropic", [SUNNY]) as on:
        stream = on.membrane.stream_yielding(REQUEST)
        stream.cancel()
        (event,) = stream
        assert (event.type, event.reason, event.partial_content) == ("aborted", "user", [])  # type: ignore
        assert (stream.state, on.provider.connections_made) == ("done", 0)


def test_a_signal_that_has_fired_already_is_a_cancel() -> None:
    controller = AbortController()
    controller.abort("too late")
    with stage("anthropic", [SUNNY]) as on:
        (event,) = on.membrane.stream_yielding(REQUEST, signal=controller.signal)
        assert (event.type, event.reason) == ("aborted", "user")  # type: ignore[attr-defined]
        assert event.message == "the call was aborted by its signal: too late"  # type: ignore[attr-defined]
        assert on.provider.connections_made == 0


@each_format
def test_cancel_in_the_loop_gives_one_aborted_event_with_what_has_arrived(format: str) -> None:
    held = faults.silence(Reply("Hello, world!"), after=HELD_AFTER[format])
    with stage(format, [held, SUNNY], **REAL) as on:
        seen = []
        with on.membrane.stream_yielding(REQUEST, emit_blocks=False) as stream:
            for event in stream:
                seen.append(event)
                if event.type == "tokens":
                    stream.cancel()
        assert [event.type for event in seen] == ["tokens", "aborted"]
        last: Any = seen[-1]
        assert (last.reason, last.raw_assistant_text, last.partial_content) == ("user", "Hello,", [Text("Hello,")])
        assert on.provider.wait_for_close()
        assert complete(on.membrane).text == "It is sunny."


def test_cancel_from_another_thread_reaches_a_stream_that_waits() -> None:
    cancelled_at: list[float] = []

    def cancel() -> None:
        cancelled_at.append(time.monotonic())
        stream.cancel()

    with stage("anthropic", [HELD], **REAL) as on:
        stream = on.membrane.stream_yielding(REQUEST, emit_blocks=False)
        assert next(stream).type == "tokens"
        timer = threading.Timer(0.01, cancel)
        timer.start()
        assert [event.type for event in stream] == ["aborted"]
        assert time.monotonic() - cancelled_at[0] < 0.1
        timer.join()
        assert on.provider.wait_for_close()


def test_leaving_the_loop_closes_the_connection() -> None:
    with stage("anthropic", [HELD, SUNNY], **REAL) as on:
        stream = on.membrane.stream_yielding(REQUEST)
        for event in stream:
            if event.type == "tokens":
                break
        assert on.provider.wait_for_close()
        assert (stream.state, list(stream)) == ("done", [])
        assert complete(on.membrane).text == "It is sunny."


def test_an_error_in_the_loop_closes_the_connection() -> None:
    with stage("anthropic", [HELD], **REAL) as on:
        with pytest.raises(LookupError):
            for event in on.membrane.stream_yielding(REQUEST):
                if event.type == "tokens":
                    raise LookupError("mine")
        assert on.provider.wait_for_close()


def test_leaving_the_with_block_closes_the_connection() -> None:
    with stage("anthropic", [HELD], **REAL) as on:
        with on.membrane.stream_yielding(REQUEST) as stream:
            next(stream)
            assert on.provider.connections_open == 1
        assert on.provider.wait_for_close()
        assert (stream.state, list(stream)) == ("done", [])
        stream.close()


def test_leaving_while_tools_are_awaited_sends_nothing_more() -> None:
    with waiting([Reply(BERN), SUNNY]) as (stream, on):
        pass
    assert (stream.state, stream.pending_tool_call_ids, on.provider.request_count) == ("done", [], 1)


def test_close_from_another_thread_ends_a_stream_that_waits() -> None:
    with stage("anthropic", [HELD], **REAL) as on:
        stream = on.membrane.stream_yielding(REQUEST, emit_tokens=False, emit_blocks=False)
        timer = threading.Timer(0.01, stream.close)
        timer.start()
        assert [event.type for event in stream] in ([], ["aborted"])
        timer.join()
        assert on.provider.wait_for_close()


def test_the_aborted_event_is_the_one_place_for_the_partial_response() -> None:
    with stage("anthropic", [HELD]) as on:
        result = stream_yielding(on.membrane, timeout_ms=5_000, on_chunk=lambda text, meta: on.clock.pass_(5))
        assert (result.aborted, result.reason, result.raw_assistant_text) == (True, "timeout", "Hello,")
        assert result.partial_usage.input_tokens > 0


# Depth


@pytest.mark.parametrize(
    "given, rounds", [(None, 25), (-1, 25), (0, 1), (3, 4), (10, 11)], ids=lambda value: str(value)
)
def test_the_depth_limit_is_the_caller_s(given: int | None, rounds: int) -> None:
    def calls(received: Any) -> Reply:
        return Reply(ToolCall("get_weather", {}, id=f"call_{received.number}")) if received.number < 25 else SUNNY

    def tool(calls: Any, context: Any) -> Any:
        return [ToolResult(call.id, "sun") for call in calls]

    with stage("anthropic", calls) as on:
        response = stream_yielding(on.membrane, TOOL_REQUEST, on_tool_calls=tool, max_tool_depth=given)
        assert on.provider.request_count == response.details.timing.rounds == rounds
        assert response.stop_reason == ("end_turn" if rounds == 25 else "tool_use")
        assert len(response.tool_results) == (24 if rounds == 25 else rounds)


def test_a_depth_below_every_round_completes_without_a_call() -> None:
    with stage("anthropic", [SUNNY]) as on:
        (event,) = on.membrane.stream_yielding(REQUEST, max_tool_depth=-2)
        assert event.type == "complete"
        response = event.response  # type: ignore[attr-defined]
        assert (response.content, response.stop_reason, response.usage.output_tokens) == ([], "end_turn", 0)
        assert on.provider.connections_made == 0


# Refusals


def refusal(text: str, category: str | None = None, usage: Usage | None = None) -> Raw:
    """A refusal as Anthropic streams it, with its kind where it has one."""
    body = b"".join(wire.events(Reply(text, stop_reason="refusal", usage=usage)))
    details = b'"stop_details":{"type":"refusal","category":"%b"},' % (category or "").encode()
    body = body.replace(b'"stop_reason":"refusal"', (details if category else b"") + b'"stop_reason":"refusal"')
    return Raw(200, {"Content-Type": "text/event-stream"}, body)


def test_a_refusal_is_sent_again_and_what_came_of_it_is_void() -> None:
    script = [
        refusal("I would rather not", "cyber", Usage(input_tokens=10, output_tokens=4)),
        Reply("Well, ", BERN, usage=Usage(input_tokens=10, output_tokens=5)),
        refusal("No", None, Usage(input_tokens=20, output_tokens=1, cache_read_tokens=7)),
        Reply("sun.", usage=Usage(input_tokens=20, output_tokens=2)),
    ]
    with stage("anthropic", script) as on:
        seen: list[Any] = []
        with on.membrane.stream_yielding(TOOL_REQUEST, refusal_retries=1, emit_blocks=False) as stream:
            for event in stream:
                seen.append(event)
                if event.type == "tool-calls":
                    stream.provide_tool_results([RESULT])
        assert types(seen) == [
            "tokens", "retrying", "tokens", "usage", "tool-calls", "tokens", "retrying", "tokens", "usage", "complete",
        ]  # fmt: skip
        retrying = [event for event in seen if event.type == "retrying"]
        assert [(event.attempt, event.max_attempts, event.reason, event.category) for event in retrying] == [
            (1, 1, "refusal", "cyber"),
            (1, 1, "refusal", None),
        ]
        response = seen[-1].response
        assert (response.text, response.stop_reason) == ("Well, sun.", "end_turn")
        assert (response.usage.input_tokens, response.usage.output_tokens) == (30, 7)
        discarded = response.details.usage.discarded_attempts
        assert (discarded.count, discarded.input_tokens, discarded.output_tokens) == (2, 30, 5)
        assert discarded.cache_read_tokens == 7
        assert discarded.cost == pytest.approx((30 * 3 + 5 * 15 + 7 * 0.3) / 1_000_000)
        # The same request, and no wait: a refusal is not a failure.
        bodies = [received.body for received in on.provider.requests]
        assert (bodies[0] == bodies[1], bodies[2] == bodies[3], on.clock.waits_ms) == (True, True, [])
        assert response.details.timing.attempts == 1


@pytest.mark.parametrize("face", [complete, stream_yielding])
@pytest.mark.parametrize("retries, requests, reason", [(0, 1, "refusal"), (2, 3, "refusal"), (5, 5, "end_turn")])
def test_refusals_are_sent_again_as_often_as_the_caller_says(
    face: Any, retries: int, requests: int, reason: str
) -> None:
    script = [Reply("No", stop_reason="refusal")] * 4 + [SUNNY]
    with stage("anthropic", script) as on:
        response = face(on.membrane, refusal_retries=retries)
        assert (response.stop_reason, on.provider.request_count) == (reason, requests)
        assert response.text == ("It is sunny." if reason == "end_turn" else "No")
        discarded = response.details.usage.discarded_attempts
        assert (0 if discarded is None else discarded.count) == requests - 1


@pytest.mark.parametrize("face", [complete, stream_yielding])
def test_refusals_do_not_use_up_attempts_and_retry_false_does_not_forbid_them(face: Any) -> None:
    script = [Failure(503), Reply("No", stop_reason="refusal"), Failure(503), Failure(503), SUNNY]
    with stage("anthropic", script) as on:
        response = face(on.membrane, refusal_retries=1)
        timing = response.details.timing
        assert (response.text, on.provider.request_count) == ("It is sunny.", 5)
        assert (timing.attempts, timing.retry_delays_ms) == (4, [1_000, 1_000, 2_000])
        assert on.clock.waits_ms == [1_000, 1_000, 2_000]
    with stage("anthropic", [Reply("No", stop_reason="refusal"), SUNNY]) as on:
        assert face(on.membrane, refusal_retries=1, retry=False).text == "It is sunny."


@pytest.mark.parametrize("format", FORMATS)
def test_a_chat_server_s_content_filter_is_a_refusal_too(format: str) -> None:
    with stage(format, [Reply("No", stop_reason="refusal"), SUNNY]) as on:
        events = list(on.membrane.stream_yielding(REQUEST, refusal_retries=1))
        assert [event.type for event in events].count("retrying") == 1
        assert events[-1].response.text == "It is sunny."  # type: ignore[attr-defined]
