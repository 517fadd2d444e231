"""OpenAICompletionsAdapter: a prompt out, byte by byte; one text in, cut where its turn ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from membrane_lite import CompletionsFormatter, Membrane, MembraneError, NativeFormatter, OpenAICompletionsAdapter
from membrane_lite.loopback import Failure, LoopbackProvider, Raw, Reply, Usage, faults
from membrane_lite.loopback import openai_completions as wire
from membrane_lite.providers.base import ProviderFault
from membrane_lite.providers.openai_completions import CompletionsCodec, CompletionsDecoder, overlap
from membrane_lite.values.content import Text
from membrane_lite.values.deltas import BlockEnd, BlockStart, Delta, Finished, ModelNamed, TextDelta, UsageReported
from membrane_lite.wire.http import header

Json = Any
EOT = "<|eot|>"
REQUEST: Json = {
    "messages": [{"participant": "Ann", "content": "hi"}],
    "config": {"model": "davinci-002", "max_tokens": 64},
}
SSE = {"Content-Type": "text/event-stream"}


def rendered(*, stream: bool = False, adapter: Any = None, formatter: Any = None, **asked: Any) -> Any:
    with OpenAICompletionsAdapter(base_url="http://127.0.0.1:1/v1", **(adapter or {})) as made:
        return made.render({**REQUEST, **asked}, stream=stream, formatter=formatter)


def body(**how: Any) -> Json:
    return json.loads(rendered(**how).body)


# Requests

PROMPT = '"model":"davinci-002","prompt":"Ann: hi<|eot|>\\n\\nClaude:","max_tokens":64'
STOP = '"stop":["\\n\\nAnn:","\\nAnn:","<|eot|>"]'
SAMPLING = {
    **REQUEST["config"],
    "temperature": 0,
    "top_p": 0.5,
    "top_k": 4,
    "presence_penalty": 0.1,
    "frequency_penalty": 0.2,
    "repetition_penalty": 1.1,
}
SAMPLED = (
    '"temperature":0,"top_p":0.5,"presence_penalty":0.1,"frequency_penalty":0.2,"repetition_penalty":1.1'  # no top_k
)
BODIES: dict[str, tuple[dict[str, Any], str]] = {
    "asked at once": ({}, f"{{{PROMPT},{STOP}}}"),
    "streamed": ({"stream": True}, f'{{{PROMPT},{STOP},"stream":true}}'),
    "sampling": ({"config": SAMPLING}, f"{{{PROMPT},{SAMPLED},{STOP}}}"),
    "the caller's own fields come after ours, the stream switch last": (
        {"stream": True, "provider_params": {"logprobs": 1, "stream": False}},
        f'{{{PROMPT},{STOP},"logprobs":1,"stream":true}}',
    ),
    "a prompt of the caller's own": (
        {"provider_params": {"prompt": "As Descartes said,", "stop": ["."]}},
        '{"model":"davinci-002","prompt":"As Descartes said,","max_tokens":64,"stop":["."]}',
    ),
    "more to stop it, and all of it goes out": (
        {"adapter": {"extra_stop_sequences": ["X", "Y"]}, "stop_sequences": ["Z"]},
        f'{{{PROMPT},"stop":["\\n\\nAnn:","\\nAnn:","<|eot|>","Z","X","Y"]}}',
    ),
    "another end of turn": (
        {"adapter": {"eot_token": "</s>"}},
        '{"model":"davinci-002","prompt":"Ann: hi</s>\\n\\nClaude:","max_tokens":64,'
        '"stop":["\\n\\nAnn:","\\nAnn:","</s>"]}',
    ),
    "the adapter's limit": (
        {"adapter": {"default_max_tokens": 7}, "config": {"model": "davinci-002"}},
        f"{{{PROMPT},{STOP}}}".replace("64", "7"),
    ),
}
BODIES["nothing to stop it"] = (
    {"adapter": {"eot_token": None}, "messages": [{"participant": "Claude", "content": "yo"}]},
    '{"model":"davinci-002","prompt":"Claude: yo\\n\\nClaude:","max_tokens":64}',
)


@pytest.mark.parametrize("how, text", BODIES.values(), ids=BODIES.keys())
def test_a_body(how: dict[str, Any], text: str) -> None:
    assert rendered(**how).body.decode() == text


def test_where_it_goes_and_with_which_key() -> None:
    request = rendered(adapter={"api_key": "k-1"})
    assert (request.method, request.url) == ("POST", "http://127.0.0.1:1/v1/completions")
    assert header(request.headers, "authorization") == "Bearer k-1"
    assert header(rendered().headers, "authorization") is None


def test_its_settings() -> None:
    adapter = OpenAICompletionsAdapter(base_url="http://localhost:8000/v1/", provider_name="vllm")
    assert (adapter.name, adapter.supports_model("anything")) == ("vllm", True)
    assert OpenAICompletionsAdapter(base_url="http://x/v1").name == "openai-completions"
    assert OpenAICompletionsAdapter.default_formatter is CompletionsFormatter
    with pytest.raises(TypeError, match="base_url"):
        OpenAICompletionsAdapter()  # type: ignore[call-arg]
    with pytest.raises(MembraneError, match="base_url: missing"):
        OpenAICompletionsAdapter(base_url="")


REFUSED: dict[str, dict[str, Any]] = {
    "another formatter": {"formatter": NativeFormatter()},
    "another formatter, and more said": {
        "formatter": NativeFormatter(),
        "messages": [{"participant": "Ann", "content": "hi"}, {"participant": "Claude", "content": "yo"}],
    },
    "tools": {"tools": [{"name": "f", "description": "", "input_schema": {}}]},
}


@pytest.mark.parametrize("how", REFUSED.values(), ids=REFUSED.keys())
def test_what_a_prompt_cannot_carry_is_unsupported(how: dict[str, Any]) -> None:
    with pytest.raises(MembraneError) as caught:
        rendered(**how)
    assert caught.value.type == "unsupported"
    assert ("CompletionsFormatter()" in caught.value.message) == ("formatter" in how)


def test_nothing_is_sent_with_a_formatter_that_writes_roles() -> None:
    with LoopbackProvider([Reply("x")]) as provider, provider.transport() as transport:
        adapter = OpenAICompletionsAdapter(base_url=provider.url + "/v1", transport=transport)
        with pytest.raises(MembraneError, match=r"pass formatter=CompletionsFormatter\(\)"):
            Membrane(adapter).complete(REQUEST, formatter=NativeFormatter())
        assert provider.request_count == 0


def test_what_is_rendered_is_what_is_sent() -> None:
    with LoopbackProvider([Reply("x"), Reply("x")]) as provider, provider.transport() as transport:
        adapter = OpenAICompletionsAdapter(base_url=provider.url + "/v1", api_key="k", transport=transport)
        Membrane(adapter).complete(REQUEST)
        Membrane(adapter).stream(REQUEST)
        for stream, received in zip([False, True], provider.requests):
            shown = adapter.render(REQUEST, stream=stream)
            assert (received.body, received.target) == (shown.body, "/v1/completions")
            assert dict(shown.headers).items() <= dict(received.headers).items()


# Answers


def piece(text: str, finish_reason: str | None = None, **more: Any) -> Json:
    return {"choices": [{"index": 0, "text": text, "finish_reason": finish_reason, **more}]}


def decoded(*chunks: Json, eot: str = EOT) -> list[Delta]:
    decoder = CompletionsDecoder(eot)
    deltas: list[Delta] = []
    for chunk in chunks:
        assert not decoder.last, "read on after the last event"
        deltas += decoder.decode("message", chunk if isinstance(chunk, str) else json.dumps(chunk))
    return [*deltas, *decoder.end()]


def texts(*deltas: str) -> list[Delta]:
    return [BlockStart(0, Text("")), *(TextDelta(0, text) for text in deltas), BlockEnd(0)]


def finished(reason: str, word: str | None, **more: Any) -> Finished:
    return Finished(reason, word, envelope={"choices": [{"index": 0, "finish_reason": word}]}, **more)


STREAMS: dict[str, tuple[list[Json], list[Delta]]] = {
    "text": (
        [piece(" Hel"), piece("lo"), piece("", "stop"), "[DONE]"],
        [*texts(" Hel", "lo"), finished("end_turn", "stop")],
    ),
    "text beside the finish reason": ([piece("a", "length")], [*texts("a"), finished("max_tokens", "length")]),
    "no finish reason": ([piece("a"), "[DONE]"], [*texts("a"), finished("end_turn", None)]),
    "a word that is not known": ([piece("a", "odd")], [*texts("a"), finished("odd", "odd")]),
    "filtered": ([piece("a", "content_filter")], [*texts("a"), finished("refusal", "content_filter")]),
    "nothing": ([piece("", "stop")], [finished("end_turn", "stop")]),
    "vLLM names the sequence that stopped it": (
        [piece("a", "stop", stop_reason="\nAnn:")],
        [*texts("a"), finished("stop_sequence", "stop", stop_sequence="\nAnn:")],
    ),
    "the end of turn is no stop sequence": (
        [piece("a", "stop", stop_reason=EOT)],
        [*texts("a"), finished("end_turn", "stop")],
    ),
    "nor is a token's number": ([piece("a", "stop", stop_reason=2)], [*texts("a"), finished("end_turn", "stop")]),
    "the end of turn in one piece": ([piece(f"a{EOT}b")], [*texts("a"), finished("end_turn", "stop")]),
    "the end of turn in pieces": (
        [piece("a<"), piece("|eo"), piece("t|"), piece("> b", "length")],
        [*texts("a"), finished("end_turn", "stop")],
    ),
    "the end of turn first": ([piece(EOT)], [finished("end_turn", "stop")]),
    "what only looked like it is given out": (
        [piece("a<|e"), piece("x"), piece("<<"), piece("|"), piece("", "stop")],
        [*texts("a", "<|ex", "<", "<|"), finished("end_turn", "stop")],
    ),
    "half of it, and no more": ([piece("a<|eot"), "[DONE]"], [*texts("a", "<|eot"), finished("end_turn", None)]),
    "a chunk without choices": ([{"choices": []}, {}, piece("a", "stop")], [*texts("a"), finished("end_turn", "stop")]),
}


@pytest.mark.parametrize("chunks, deltas", STREAMS.values(), ids=STREAMS.keys())
def test_what_chunks_say(chunks: list[Json], deltas: list[Delta]) -> None:
    assert decoded(*chunks) == deltas


def test_without_an_end_of_turn_nothing_is_held_back() -> None:
    assert decoded(piece("a<"), piece("|eot|>", "stop"), eot="") == [
        *texts("a<", "|eot|>"),
        finished("end_turn", "stop"),
    ]


OVERLAPS = {"": 0, "a": 0, "<": 1, "a<|e": 3, "<|eot|": 6, "<<": 1, "<|<": 1, "eot": 0}


@pytest.mark.parametrize("text, size", OVERLAPS.items())
def test_how_much_of_a_text_may_be_the_beginning_of_the_token(text: str, size: int) -> None:
    assert overlap(text, EOT) == size


def test_counts_are_read_wherever_they_come() -> None:
    usage = {
        "prompt_tokens": 9,
        "completion_tokens": 3,
        "total_tokens": 12,
        "prompt_tokens_details": {"cached_tokens": 4},
    }
    counts = UsageReported({"input_tokens": 5, "output_tokens": 3, "cache_read_tokens": 4})
    assert counts in decoded(piece("a", "stop"), {"choices": [], "usage": usage}, "[DONE]")
    assert counts in decoded({**piece("a", "stop"), "usage": usage})


def test_a_whole_answer_says_what_its_stream_would_have_said() -> None:
    answer = {"id": "c", "model": "m", **piece(f" a{EOT}b", "length"), "usage": {"prompt_tokens": 1}}
    assert CompletionsDecoder(EOT).document(answer) == [
        ModelNamed("m"),
        UsageReported({"input_tokens": 1}),
        *texts(" a"),
        Finished("end_turn", "stop", raw=answer),
    ]


def test_other_choices_are_kept_raw() -> None:
    chunks = [
        piece("a"),
        {"choices": [{"index": 1, "text": "b"}]},
        {"choices": [{"index": 1, "text": "c"}]},
        piece("", "stop"),
    ]
    assert decoded({"id": "c", "created": 1, "model": "m", "choices": []}, *chunks)[-1] == Finished(
        "end_turn",
        "stop",
        envelope={
            "id": "c",
            "created": 1,
            "model": "m",
            "choices": [{"index": 0, "finish_reason": "stop"}, {"index": 1, "text": "bc"}],
        },
    )


def test_a_streamed_answer_is_recorded_as_a_whole_one() -> None:
    envelope = {"model": "m", "choices": [{"index": 0, "finish_reason": "stop"}, {"index": 1, "text": "b"}]}
    assert CompletionsCodec("u", 1).record(envelope, [Text("a")]) == {
        "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "text": "a"}, {"index": 1, "text": "b"}],
    }


FAULTS: dict[str, Json] = {
    "an error": {"error": {"message": "overloaded"}},
    "no choices": {"id": "c"},
    "a list": [],
}


@pytest.mark.parametrize("answer", FAULTS.values(), ids=FAULTS.keys())
def test_an_answer_that_is_an_error(answer: Json) -> None:
    with pytest.raises(ProviderFault):
        CompletionsDecoder(EOT).document(answer)


# Over a socket


def answered(answer: Any, *, stream: bool = True, on_chunk: Any = None, **settings: Any) -> Any:
    with LoopbackProvider([answer]) as provider, provider.transport() as transport:
        adapter = OpenAICompletionsAdapter(base_url=provider.url + "/v1", transport=transport, **settings)
        membrane = Membrane(adapter)
        if stream:
            return membrane.stream(REQUEST, retry=False, on_chunk=on_chunk)
        return membrane.complete(REQUEST, retry=False)


@pytest.mark.parametrize("stream", [False, True], ids=["at once", "streamed"])
def test_an_answer(stream: bool) -> None:
    reply = Reply(" Hello there.", EOT, "\n\nAnn: and", usage=Usage(input_tokens=9, output_tokens=3))
    response = answered(reply, stream=stream)
    assert (response.text, response.stop_reason, response.details.stop.provider_reason) == (
        " Hello there.",
        "end_turn",
        "stop",
    )
    assert (response.usage.input_tokens, response.usage.output_tokens) == ((0, 0) if stream else (9, 3))
    assert response.usage.unreported == (["input_tokens", "output_tokens"] if stream else [])


def test_the_counts_of_a_stream_that_was_asked_for_them() -> None:
    with LoopbackProvider([Reply("Hi", usage=Usage(9, 3))]) as provider, provider.transport() as transport:
        adapter = OpenAICompletionsAdapter(base_url=provider.url + "/v1", transport=transport)
        asked = {**REQUEST, "provider_params": {"stream_options": {"include_usage": True}}}
        usage = Membrane(adapter).stream(asked).usage
    assert (usage.input_tokens, usage.output_tokens, usage.unreported) == (9, 3, [])


STRIPPED = {" \n Hello ": ["Hello "], "Hello": ["Hello"], " \n": [], "": []}


@pytest.mark.parametrize("stream", [False, True], ids=["at once", "streamed"])
@pytest.mark.parametrize("text, final", STRIPPED.items())
def test_leading_white_space_of_the_final_text_can_be_left_out(text: str, final: list[str], stream: bool) -> None:
    heard: list[str] = []
    response = answered(
        Reply(text), stream=stream, strip_leading_whitespace=True, on_chunk=lambda text, meta: heard.append(text)
    )
    assert [block.text for block in response.content] == final
    assert "".join(heard) == text * stream


def test_what_the_model_wrote_stands_in_the_next_prompt_as_it_was() -> None:
    with LoopbackProvider([Reply(" Hello."), Reply("x")]) as provider, provider.transport() as transport:
        adapter = OpenAICompletionsAdapter(base_url=provider.url + "/v1", transport=transport)
        membrane = Membrane(adapter)
        response = membrane.complete(REQUEST)
        more = {"participant": "Ann", "content": "and?"}
        membrane.complete({**REQUEST, "messages": [*REQUEST["messages"], *response.as_messages(), more]})
        first, second = (received.json["prompt"] for received in provider.requests)
    assert second == f"{first} Hello.{EOT}\n\nAnn: and?{EOT}\n\nClaude:"


ANSWER = Reply("Hello, world!")
EVENTS = wire.events(ANSWER)
COMPLETE_AFTER = len(EVENTS) - 1  # the finish reason; only [DONE] comes after it
ENDS: dict[str, Callable[..., Any]] = {"end": faults.end, "close": faults.close, "reset": faults.reset}


@pytest.mark.parametrize("ending", ENDS.values(), ids=ENDS.keys())
@pytest.mark.parametrize("after", range(len(EVENTS) + 1))
def test_an_end_at_every_event_boundary(after: int, ending: Callable[..., Any]) -> None:
    if after >= COMPLETE_AFTER:
        response = answered(ending(ANSWER, after=after))
        assert (response.text, response.stop_reason) == ("Hello, world!", "end_turn")
        return
    with pytest.raises(MembraneError) as caught:
        answered(ending(ANSWER, after=after))
    assert (caught.value.type, caught.value.retryable) == ("network", True)
    assert caught.value.raw_assistant_text == "".join(["Hello,", " world!"][:after])


def test_reading_ends_at_the_end_of_turn() -> None:
    answer = faults.silence(Reply(f"Hi{EOT}", "never read"), after=1)
    assert answered(answer).text == "Hi"


def test_a_stream_that_calls_itself_json_is_a_stream() -> None:
    raw = Raw(200, {"Content-Type": "application/json"}, b"\n" + b"".join(EVENTS), chunks="every_byte")
    assert answered(raw).text == "Hello, world!"


def test_a_document_in_place_of_a_stream() -> None:
    raw = Raw(200, {"Content-Type": "application/json"}, b"\n " + wire.document(ANSWER), chunks="every_byte")
    assert answered(raw).text == "Hello, world!"


REFUSALS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "no key": (
        Raw(
            401,
            {"Content-Type": "application/json"},
            '{"error": {"message": "Incorrect API key provided", "type": "invalid_request_error", "param": null, '
            '"code": "invalid_api_key"}}',
        ),
        ("auth", False, 401, "invalid_api_key"),
    ),
    "too many": (Failure(429, headers={"retry-after-ms": "7"}), ("rate_limit", True, 429, "requests")),
    "down": (Failure(503), ("server", True, 503, "server_error")),
    "vLLM's own form": (
        Raw(
            400,
            {"Content-Type": "application/json"},
            '{"object": "error", "message": "This model\'s maximum context length is 2048 tokens.", '
            '"type": "BadRequestError", "param": null, "code": 400}',
        ),
        ("context_length", False, 400, "BadRequestError"),
    ),
    "in the middle of a stream": (
        Raw(200, SSE, EVENTS[0] + wire.error_event("server_error", "oh")),
        ("server", True, 500, "server_error"),
    ),
    "in the middle of a stream, by the event's name": (
        Raw(200, SSE, EVENTS[0] + b'event: error\ndata: {"message": "engine timeout", "type": "server_error"}\n\n'),
        ("server", True, 500, "server_error"),
    ),
}


@pytest.mark.parametrize("answer, expected", REFUSALS.values(), ids=REFUSALS.keys())
def test_an_error(answer: Any, expected: tuple[Any, ...]) -> None:
    with pytest.raises(MembraneError) as caught:
        answered(answer)
    error = caught.value
    assert (error.type, error.retryable, error.http_status, error.provider_error_code) == expected


MALFORMED = {
    "a text that is none": '{"choices": [{"text": 7}]}',
    "a choice that is none": '{"choices": [7]}',
    "a finish reason that is none": '{"choices": [{"finish_reason": 7}]}',
    "no object": "[]",
    "no JSON": "{",
}


@pytest.mark.parametrize("data", MALFORMED.values(), ids=MALFORMED.keys())
def test_an_event_that_cannot_be_read(data: str) -> None:
    with pytest.raises(MembraneError, match="openai-completions: event 'message' cannot be read") as caught:
        answered(Raw(200, SSE, f"data: {data}\n\ndata: [DONE]\n\n"))
    assert caught.value.type == "server"
