"""mock: canned, generated and echoed answers, in pieces, at a pace that a test's clock makes nothing of."""

from __future__ import annotations

from typing import Any

import pytest

from membrane_lite.abort import AbortController, AbortSignal
from membrane_lite.call import Call
from membrane_lite.clock import Clock
from membrane_lite.errors import MembraneError
from membrane_lite.formatters.assembly import NativeAssembler
from membrane_lite.membrane import Membrane
from membrane_lite.providers.mock import MockAdapter, create_canned_adapter, create_echo_adapter
from membrane_lite.values.content import Block, RedactedThinking, Text, Thinking, ToolUse
from membrane_lite.values.deltas import (
    BlockEnd,
    BlockStart,
    Delta,
    Finished,
    InputDelta,
    ModelNamed,
    SignatureDelta,
    TextDelta,
    ThinkingDelta,
    UsageReported,
)
from membrane_lite.values.requests import ProviderRequest

Json = Any


class NotedClock(Clock):
    """Sleeps take no time and are written down."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def time(self) -> float:
        return 1_234.5

    def sleep(self, seconds: float, signal: AbortSignal | None = None) -> bool:
        self.slept.append(seconds)
        return signal is not None and signal.aborted


def user(content: Json) -> Json:
    return {"role": "user", "content": content}


HI = user([{"type": "text", "text": "hi"}])


def asked(*messages: Json) -> ProviderRequest:
    return ProviderRequest("m", list(messages or [HI]))


def streamed(adapter: MockAdapter, *messages: Json, call: Call | None = None) -> list[Delta]:
    return list(adapter.stream(asked(*messages), call or Call(clock=NotedClock())))


def completed(adapter: MockAdapter, *messages: Json, call: Call | None = None) -> list[Delta]:
    return list(adapter.complete(asked(*messages), call or Call(clock=NotedClock())))


def content(deltas: list[Delta]) -> list[Block]:
    assembler = NativeAssembler({})
    for delta in deltas:
        assembler.add(delta)
    return assembler.content()


def answers(adapter: MockAdapter, count: int) -> list[list[Block]]:
    return [content(completed(adapter)) for _ in range(count)]


def test_the_default_answer() -> None:
    assert content(completed(MockAdapter())) == [Text("This is a mock response.")]
    assert content(streamed(MockAdapter(default_response="Hello"))) == [Text("Hello")]


def test_queued_answers_come_first_and_in_their_order() -> None:
    queue = ["a", "b"]
    adapter = MockAdapter(response_queue=queue, default_response="z")
    queue.clear()
    adapter.queue_response("c")
    adapter.queue_responses(["d", "e"])
    assert answers(adapter, 6) == [[Text(words)] for words in "abcdez"]


def test_then_the_generator() -> None:
    adapter = MockAdapter(
        response_queue=["a"], response_generator=lambda request: f"for {request.model}", echo_mode=True
    )
    assert answers(adapter, 2) == [[Text("a")], [Text("for m")]]


def test_then_the_echo_then_the_default() -> None:
    assert answers(MockAdapter(echo_mode=True, response_queue=["a"], default_response="z"), 2) == [
        [Text("a")],
        [Text("[Echo] hi")],
    ]


ECHOES: dict[str, tuple[list[Json], str]] = {
    "a block": ([HI], "[Echo] hi"),
    "a string": ([user("hi")], "[Echo] hi"),
    "the last message, whoever said it": ([HI, {"role": "assistant", "content": "yo"}], "[Echo] yo"),
    "its first text": (
        [user([{"type": "image"}, {"type": "text", "text": "a"}, {"type": "text", "text": "b"}])],
        "[Echo] a",
    ),
    "no text": ([user([{"type": "image"}])], "[Echo] (the last message has no text)"),
    "an empty string": ([user("")], "[Echo] (the last message has no text)"),
}


@pytest.mark.parametrize("messages, words", ECHOES.values(), ids=ECHOES.keys())
def test_an_echo(messages: list[Json], words: str) -> None:
    assert content(completed(create_echo_adapter(), *messages)) == [Text(words)]


def test_an_echo_of_no_messages() -> None:
    deltas = list(create_echo_adapter().complete(ProviderRequest("m", []), Call(clock=NotedClock())))
    assert content(deltas) == [Text("[Echo] (the last message has no text)")]


CALL = {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": "1"}}
ANSWERS: dict[str, tuple[Any, list[Delta], str]] = {
    "text, in pieces": (
        "Hello, world!",
        [
            BlockStart(0, Text("")),
            TextDelta(0, "Hello"),
            TextDelta(0, ", wor"),
            TextDelta(0, "ld!"),
            BlockEnd(0),
            UsageReported({"input_tokens": 15, "output_tokens": 4}),
        ],
        "end_turn",
    ),
    "an empty text": (
        "",
        [BlockStart(0, Text("")), BlockEnd(0), UsageReported({"input_tokens": 15, "output_tokens": 0})],
        "end_turn",
    ),
    "no blocks": ([], [UsageReported({"input_tokens": 15, "output_tokens": 0})], "end_turn"),
    "thinking, text and a call": (
        [Thinking("so", "c2ln"), {"type": "text", "text": "a"}, CALL],
        [
            BlockStart(0, Thinking("")),
            ThinkingDelta(0, "so"),
            SignatureDelta(0, "c2ln"),
            BlockEnd(0),
            BlockStart(1, Text("")),
            TextDelta(1, "a"),
            BlockEnd(1),
            BlockStart(2, ToolUse("c1", "look")),
            InputDelta(2, '{"at"'),
            InputDelta(2, ':"1"}'),
            BlockEnd(2),
            UsageReported({"input_tokens": 15, "output_tokens": 4}),
        ],
        "tool_use",
    ),
    "a block that is opaque": (
        [RedactedThinking("d"), Text("", raw_item={"type": "x"}, raw_format="f")],
        [
            BlockStart(0, RedactedThinking("d")),
            BlockEnd(0),
            BlockStart(1, Text("", raw_item={"type": "x"}, raw_format="f")),
            BlockEnd(1),
            UsageReported({"input_tokens": 15, "output_tokens": 0}),
        ],
        "end_turn",
    ),
}


@pytest.mark.parametrize("answer, deltas, reason", ANSWERS.values(), ids=ANSWERS.keys())
def test_an_answer_as_a_provider_would_stream_it(answer: Any, deltas: list[Delta], reason: str) -> None:
    first, *between, last = streamed(MockAdapter(response_queue=[answer], stream_chunk_size=5))
    assert (first, between) == (ModelNamed("m"), deltas)
    assert isinstance(last, Finished)
    assert (last.stop_reason, last.provider_reason) == (reason, reason)


@pytest.mark.parametrize("answer", [answer for answer, _, _ in ANSWERS.values()], ids=ANSWERS.keys())
def test_an_answer_at_once_says_the_same(answer: Any) -> None:
    at_once, bit_by_bit = (
        completed(MockAdapter(response_queue=[answer])),
        streamed(MockAdapter(response_queue=[answer], stream_chunk_size=1)),
    )
    assert content(at_once) == content(bit_by_bit)
    assert at_once[-2:] == bit_by_bit[-2:]


def test_the_raw_answer() -> None:
    end = completed(MockAdapter(response_queue=[[{"type": "text", "text": "a"}, CALL]]))[-1]
    assert isinstance(end, Finished)
    assert end.raw == {"mock": True, "response_text": "a", "content": [{"type": "text", "text": "a"}, CALL]}


def test_an_answer_is_read_strictly() -> None:
    with pytest.raises(MembraneError, match=r"response_queue\[0\]: no field 'typ'; did you mean 'type'\?"):
        completed(MockAdapter(response_queue=[[{"typ": "text"}]]))


# The log


def test_the_log_of_requests() -> None:
    adapter = MockAdapter()
    assert (adapter.get_last_request(), adapter.get_request_log()) == (None, [])
    completed(adapter, user("a"))
    streamed(adapter, user("b"))
    log = adapter.get_request_log()
    assert log == [
        {"timestamp": 1_234_500.0, "request": asked(user("a"))},
        {"timestamp": 1_234_500.0, "request": asked(user("b"))},
    ]
    log.clear()
    assert adapter.get_last_request() == asked(user("b"))
    adapter.clear_request_log()
    assert (adapter.get_last_request(), adapter.get_request_log()) == (None, [])


def test_what_is_forgotten() -> None:
    adapter = MockAdapter(response_queue=["a", "b"], default_response="z")
    completed(adapter)
    adapter.clear_queue()
    assert answers(adapter, 1) == [[Text("z")]]
    adapter.queue_response("c")
    adapter.reset()
    assert (adapter.get_request_log(), answers(adapter, 1)) == ([], [[Text("z")]])


# Pace and aborts


def test_a_whole_answer_takes_its_time() -> None:
    clock = NotedClock()
    completed(MockAdapter(), call=Call(clock=clock))
    completed(MockAdapter(complete_delay_ms=250), call=Call(clock=clock))
    assert clock.slept == [0.01, 0.25]


def test_so_do_the_pieces_of_a_stream_but_not_the_first() -> None:
    clock = NotedClock()
    streamed(MockAdapter(default_response="x" * 25), call=Call(clock=clock))
    assert clock.slept == [0.005, 0.005]


def test_on_request_is_told_before_anything_happens() -> None:
    told: list[Any] = []
    clock = NotedClock()
    adapter = MockAdapter()
    completed(adapter, call=Call(clock=clock, on_request=lambda body: told.append((body["model"], len(clock.slept)))))
    streamed(adapter, call=Call(clock=clock, on_request=lambda body: told.append((body["messages"], 0))))
    assert told == [("m", 0), ([HI], 0)]


@pytest.mark.parametrize("method", ["complete", "stream"])
def test_an_abort_before_the_call(method: str) -> None:
    controller, told = AbortController(), []
    controller.abort("enough")
    adapter = MockAdapter()
    call = Call(clock=NotedClock(), signal=controller.signal, on_request=told.append)
    with pytest.raises(MembraneError) as raised:
        list(getattr(adapter, method)(asked(), call))
    assert (raised.value.type, told, adapter.get_request_log()) == ("abort", [], [])


def test_an_abort_while_it_waits() -> None:
    controller = AbortController()
    call = Call(clock=NotedClock(), signal=controller.signal, on_request=lambda body: controller.abort())
    adapter = MockAdapter()
    with pytest.raises(MembraneError) as raised:
        completed(adapter, call=call)
    assert (raised.value.type, adapter.get_request_log()) == ("abort", [])


def test_an_abort_between_two_pieces() -> None:
    controller, seen = AbortController(), []
    deltas = MockAdapter(default_response="x" * 30).stream(asked(), Call(clock=NotedClock(), signal=controller.signal))
    with pytest.raises(MembraneError) as raised:
        for delta in deltas:
            seen.append(delta)
            if isinstance(delta, TextDelta):
                controller.abort()
    assert (raised.value.type, seen) == ("abort", [ModelNamed("m"), BlockStart(0, Text("")), TextDelta(0, "x" * 10)])


# In a Membrane

REQUEST = {"messages": [{"participant": "Ann", "content": "look"}], "config": {"model": "m"}}


def test_a_tool_loop_without_a_network() -> None:
    adapter = create_canned_adapter([[CALL], "It is red."], complete_delay_ms=0, stream_chunk_delay_ms=0)
    with Membrane(adapter, clock=NotedClock()) as membrane:
        result = membrane.stream(
            {**REQUEST, "tools": [{"name": "look"}]},
            on_tool_calls=lambda calls: [{"tool_use_id": calls[0].id, "content": "red"}],
        )
    assert (result.text, result.stop_reason, len(adapter.get_request_log())) == ("It is red.", "end_turn", 2)
    last = adapter.get_last_request()
    assert last is not None
    result = {"type": "tool_result", "tool_use_id": "c1", "content": "red", "cache_control": {"type": "ephemeral"}}
    assert last.messages[-1] == user([result])


def test_canned_answers_drain_into_the_default() -> None:
    adapter = create_canned_adapter(["a"], default_response="z", complete_delay_ms=0)
    membrane = Membrane(adapter, clock=NotedClock())
    assert [membrane.complete(REQUEST).text for _ in range(2)] == ["a", "z"]
    assert create_echo_adapter(default_response="z").supports_model("anything") is True


def test_an_echo_through_a_membrane() -> None:
    response = Membrane(create_echo_adapter(), clock=NotedClock()).complete(REQUEST)
    assert (response.text, response.details.model.provider) == ("[Echo] Ann: look", "mock")
    assert response.usage.input_tokens > 0
