"""An adapter of the caller's own: a plain object whose complete() and stream() give deltas."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from stage import FACES, REQUEST, TOOL_REQUEST, FakeClock, complete, each_face, each_streamed_face, ended, stream

from membrane_lite import AbortController, Hooks, Membrane, MembraneError, Response, ToolUse
from membrane_lite.values.content import Text
from membrane_lite.values.deltas import (
    AnswerHead,
    BlockEnd,
    BlockStart,
    Delta,
    Finished,
    InputDelta,
    ModelNamed,
    SignatureDelta,
    TextDelta,
    UsageReported,
)

HELLO = [
    ModelNamed("mine-1"),
    BlockStart(0, Text("")),
    TextDelta(0, "Hello"),
    BlockEnd(0),
    UsageReported({"input_tokens": 3, "output_tokens": 2}),
    Finished("end_turn", "done", raw={"said": "Hello"}),
]
CALL = [
    BlockStart(0, ToolUse("call_1", "get_weather")),
    InputDelta(0, '{"city": '),
    InputDelta(0, '"Bern"}'),
    BlockEnd(0),
    Finished("tool_use", "call"),
]


class Mine:
    """The least an adapter can be. answers: for each request, its deltas; an exception among them is raised."""

    def __init__(self, *answers: Any) -> None:
        self.closed = 0
        self.requests: list[Any] = []
        self._answers = list(answers)

    def complete(self, provider_request: Any, call: Any) -> Iterator[Delta]:
        return self.stream(provider_request, call)

    def stream(self, provider_request: Any, call: Any) -> Iterator[Delta]:
        call.sending({"asked": provider_request.messages[-1]["content"]})
        self.requests.append(provider_request)
        try:
            for step in self._answers.pop(0):
                if isinstance(step, Exception):
                    raise step
                yield step
        finally:
            self.closed += 1


def mine(*answers: Any, **settings: Any) -> tuple[Membrane, Mine, FakeClock]:
    adapter, clock = Mine(*answers), FakeClock()
    return Membrane(adapter, clock=clock, **settings), adapter, clock


def failure_of(face: Callable[..., Any], membrane: Membrane, **options: Any) -> MembraneError:
    with pytest.raises(MembraneError) as caught:
        face(membrane, **options)
    return caught.value


@each_face
def test_a_plain_object_is_an_adapter(face: Callable[..., Any]) -> None:
    membrane, adapter, _ = mine(HELLO)
    sent: list[Any] = []
    raws: list[Any] = []
    response = face(membrane, on_request=sent.append, on_response=raws.append)
    assert (response.text, response.stop_reason) == ("Hello", "end_turn")
    assert (response.details.model.actual, response.details.model.provider) == ("mine-1", "Mine")
    assert (response.usage.input_tokens, response.usage.output_tokens) == (3, 2)
    assert response.details.stop.provider_reason == "done"
    assert sent == [{"asked": [{"type": "text", "text": "User: Hi"}]}]
    assert (response.raw.request, response.raw.response, response.raw.headers) == (sent[0], {"said": "Hello"}, None)
    assert raws == [{"said": "Hello"}]
    assert adapter.closed == 1
    assert Response.from_dict(response.to_dict()) == response


@each_streamed_face
def test_its_tool_calls_run(face: Callable[..., Any]) -> None:
    membrane, adapter, _ = mine(CALL, HELLO)
    response = face(
        membrane,
        TOOL_REQUEST,
        on_tool_calls=lambda calls, context: [{"tool_use_id": calls[0].id, "content": calls[0].input["city"]}],
    )
    assert (response.text, response.tool_results[0].content) == ("Hello", "Bern")
    assert [message["role"] for message in adapter.requests[1].messages] == ["user", "assistant", "user"]


@each_face
@pytest.mark.parametrize("answer", [HELLO[:-1], []], ids=["all but the last", "nothing"])
def test_deltas_without_a_finished_one_are_an_answer_that_broke_off(face: Callable[..., Any], answer: Any) -> None:
    membrane, adapter, _ = mine(answer)
    error = failure_of(face, membrane)
    assert error.type == "network"
    assert error.message == "Mine: the adapter's deltas ended without a Finished delta"
    assert error.raw_assistant_text == ("Hello" if answer else "")
    assert error.raw_request == {"asked": [{"type": "text", "text": "User: Hi"}]}
    assert adapter.closed == 1


@each_face
@pytest.mark.parametrize("junk", ["text", None, {"type": "text"}, Text("Hello")], ids=lambda junk: type(junk).__name__)
def test_what_is_no_delta_is_named(face: Callable[..., Any], junk: Any) -> None:
    membrane, adapter, _ = mine([*HELLO[:3], junk])
    error = failure_of(face, membrane)
    assert (error.type, error.retryable) == ("unknown", False)
    assert f"yielded a {type(junk).__name__}; expected a Delta" in error.message
    assert adapter.closed == 1


@each_face
@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (TextDelta(0, None), "TextDelta whose text is of type NoneType; expected str"),
        (InputDelta(0, b"{}"), "InputDelta whose text is of type bytes; expected str"),
        (SignatureDelta(0, 7), "SignatureDelta whose signature is of type int; expected str"),
        (TextDelta("1", "!"), "TextDelta whose index is of type str; expected int"),
        (BlockStart(1, "text"), "BlockStart whose block is of type str; expected Record"),
        (BlockEnd(None), "BlockEnd whose index is of type NoneType; expected int"),
        (UsageReported(None), "UsageReported whose counts is of type NoneType; expected Mapping"),
        (
            UsageReported({"input_tokens": "3"}),
            "UsageReported whose counts['input_tokens'] is of type str; expected number",
        ),
        (AnswerHead([], None, None), "AnswerHead whose headers is of type list; expected Mapping"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Delta) else "",
)
def test_a_field_of_another_type_is_named_and_what_came_before_is_kept(
    face: Callable[..., Any], broken: Delta, said: str
) -> None:
    membrane, adapter, _ = mine([*HELLO[:3], broken, *HELLO[3:]])
    error = failure_of(face, membrane)
    assert (error.type, error.message) == ("unknown", f"the adapter yielded a {said}")
    assert error.raw_assistant_text == ("" if face is complete else "Hello")
    assert adapter.closed == 1


@each_face
def test_an_error_of_its_own_kind_is_classified_and_kept_as_the_cause(face: Callable[..., Any]) -> None:
    broken = ValueError("my table has no such row")
    membrane, _, clock = mine([broken], HELLO)
    error = failure_of(face, membrane)
    assert (error.type, error.retryable) == ("unknown", False)
    assert error.message == "ValueError: my table has no such row"
    assert error.__cause__ is broken
    assert error.raw_request == {"asked": [{"type": "text", "text": "User: Hi"}]}
    assert clock.waits_ms == []


@each_face
@pytest.mark.parametrize(
    "broken",
    [ConnectionResetError("reset by peer"), MembraneError("server", "busy", http_status=503)],
    ids=lambda broken: type(broken).__name__,
)
def test_a_failure_that_may_pass_is_sent_again(face: Callable[..., Any], broken: Exception) -> None:
    membrane, adapter, clock = mine([broken], HELLO)
    assert face(membrane).text == "Hello"
    assert (len(adapter.requests), clock.waits_ms, adapter.closed) == (2, [1_000], 2)


@each_streamed_face
def test_nothing_is_sent_again_after_a_piece_of_content(face: Callable[..., Any]) -> None:
    membrane, adapter, clock = mine([*HELLO[:3], ConnectionResetError()], HELLO)
    error = failure_of(face, membrane)
    assert (error.type, error.raw_assistant_text) == ("network", "Hello")
    assert (len(adapter.requests), clock.waits_ms) == (1, [])


FIRST_HALF = [
    AnswerHead({}, "req_1", None),
    BlockStart(0, Text("")),
    TextDelta(0, "Half"),
    BlockEnd(0),
    BlockStart(1, Text("")),
    TextDelta(1, "more"),
    BlockEnd(1),
    UsageReported({"cache_read_tokens": 900}),
    ConnectionResetError(),
]


def test_complete_forgets_the_half_of_a_failed_answer() -> None:
    membrane, adapter, _ = mine(FIRST_HALF, HELLO)
    response = complete(membrane)
    assert (response.text, len(adapter.requests)) == ("Hello", 2)
    assert (response.usage.cache_read_tokens, response.details.request_id) == (None, None)


def test_streaming_false_tells_nothing_of_the_half_of_a_failed_answer() -> None:
    heard: list[str] = []
    membrane, _, _ = mine(FIRST_HALF, HELLO)
    response = stream(membrane, {**REQUEST, "streaming": False}, on_chunk=lambda text, meta: heard.append(text))
    assert (response.text, heard) == ("Hello", ["Hello"])


@pytest.mark.parametrize("name", FACES)
def test_an_error_after_the_abort_is_the_abort(name: str) -> None:
    controller = AbortController()
    asked: list[Any] = []

    class Torn(Mine):
        """Its own connection breaks when the signal fires."""

        def stream(self, provider_request: Any, call: Any) -> Iterator[Delta]:
            self.requests.append(provider_request)
            yield from HELLO[:3]
            threading.Thread(target=controller.abort, args=("enough",)).start()
            call.signal.wait(5)
            raise OSError("my socket is closed")

    hooks = Hooks(on_error=lambda *arguments: asked.append(arguments))
    adapter = Torn()
    result = ended(FACES[name], Membrane(adapter, clock=FakeClock(), hooks=hooks), signal=controller.signal)
    assert result[:2] == ("abort" if name == "complete" else "user", "the call was aborted by its signal: enough")
    assert (len(adapter.requests), asked) == (1, [])


@each_streamed_face
def test_an_exception_named_AbortError_ends_as_aborted(face: Callable[..., Any]) -> None:
    class AbortError(Exception):
        pass

    membrane, _, clock = mine([*HELLO[:3], AbortError("stopped by hand")])
    assert ended(face, membrane) == ("error", "AbortError: stopped by hand", "Hello")
    assert clock.waits_ms == []


@each_streamed_face
def test_an_abort_between_two_deltas_reaches_an_adapter_that_does_not_look(face: Callable[..., Any]) -> None:
    controller = AbortController()
    membrane, adapter, _ = mine(HELLO)
    result = ended(face, membrane, signal=controller.signal, on_chunk=lambda text, meta: controller.abort("enough"))
    assert result == ("user", "the call was aborted by its signal: enough", "Hello")
    assert adapter.closed == 1


@each_streamed_face
def test_so_does_the_deadline_of_the_call(face: Callable[..., Any]) -> None:
    membrane, adapter, clock = mine(HELLO)
    result = ended(face, membrane, timeout_ms=5_000, on_chunk=lambda text, meta: clock.pass_(5))
    assert result == ("timeout", "timeout_ms: the call took longer than its 5000 ms", "Hello")
    assert adapter.closed == 1


def test_the_deadline_of_the_call_reaches_a_complete_that_does_not_look() -> None:
    class Slow(Mine):
        def stream(self, provider_request: Any, call: Any) -> Iterator[Delta]:
            clock.pass_(5)
            yield from super().stream(provider_request, call)

    clock = FakeClock()
    assert ended(complete, Membrane(Slow(HELLO), clock=clock), timeout_ms=5_000).reason == "timeout"


def test_deltas_may_be_any_iterable() -> None:
    class Listed:
        def complete(self, provider_request: Any, call: Any) -> list[Delta]:
            return HELLO

        stream = complete

    membrane = Membrane(Listed())
    assert [face(membrane).text for face in FACES.values()] == ["Hello"] * 3


@each_streamed_face
def test_the_adapter_s_generator_is_closed_when_the_caller_s_code_raises(face: Callable[..., Any]) -> None:
    def breaks(text: str, meta: Any) -> None:
        raise LookupError("mine")

    membrane, adapter, _ = mine(HELLO)
    with pytest.raises((MembraneError, LookupError)):
        face(membrane, on_chunk=breaks)
    assert adapter.closed == 1


def test_it_needs_no_close_of_its_own() -> None:
    with Membrane(Mine(HELLO)) as membrane:
        assert complete(membrane).text == "Hello"
