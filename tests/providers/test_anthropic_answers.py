"""anthropic: what each event of a stream means, and that a whole answer says the same as the stream of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from membrane_lite.formatters.assembly import NativeAssembler
from membrane_lite.providers.anthropic import AnthropicCodec, Decoder
from membrane_lite.providers.base import ProviderFault
from membrane_lite.providers.models import CLAUDE_MODELS, CLAUDE_NEWEST, ModelTable
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
    Unknown,
    UsageReported,
)

Json = Any


def decoded(*events: Json, decoder: Decoder | None = None) -> list[Delta]:
    reader = decoder or Decoder()
    return [delta for event in events for delta in reader.decode(event["type"], json.dumps(event))]


def message_start(usage: Json = None, **more: Any) -> Json:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m-1", "content": [], **more}
    return {"type": "message_start", "message": message if usage is None else {**message, "usage": usage}}


def start(index: int, **block: Any) -> Json:
    return {"type": "content_block_start", "index": index, "content_block": block}


def piece(index: int, **delta: Any) -> Json:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def stop(index: int) -> Json:
    return {"type": "content_block_stop", "index": index}


def message_delta(reason: str | None = "end_turn", usage: Json = None, **delta: Any) -> Json:
    return {"type": "message_delta", "delta": {"stop_reason": reason, **delta}, "usage": usage}


TEXT = start(0, type="text", text="")
THINKING = start(0, type="thinking", thinking="", signature="")
CALL = start(0, type="tool_use", id="c1", name="look", input={})
SEARCH = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"url": "u"}]}

EVENTS: dict[str, tuple[list[Json], list[Delta]]] = {
    "the model": ([message_start()], [ModelNamed("m-1")]),
    "a model without a name": ([message_start(model=None)], []),
    "text": (
        [TEXT, piece(0, type="text_delta", text="Hel"), piece(0, type="text_delta", text="lo"), stop(0)],
        [BlockStart(0, Text("")), TextDelta(0, "Hel"), TextDelta(0, "lo"), BlockEnd(0)],
    ),
    "an empty piece is none": (
        [TEXT, piece(0, type="text_delta", text=""), stop(0)],
        [BlockStart(0, Text("")), BlockEnd(0)],
    ),
    "text that began with the block": (
        [start(0, type="text", text="He", citations=None), stop(0)],
        [BlockStart(0, Text("He")), BlockEnd(0)],
    ),
    "thinking and its signature": (
        [
            THINKING,
            piece(0, type="thinking_delta", thinking="so"),
            piece(0, type="signature_delta", signature="c2"),
            piece(0, type="signature_delta", signature=""),
            piece(0, type="signature_delta", signature="ln"),
            stop(0),
        ],
        [
            BlockStart(0, Thinking("")),
            ThinkingDelta(0, "so"),
            SignatureDelta(0, "c2"),
            SignatureDelta(0, "ln"),
            BlockEnd(0),
        ],
    ),
    "a signature at the start": (
        [start(0, type="thinking", thinking="", signature="c2ln"), stop(0)],
        [BlockStart(0, Thinking("", "c2ln")), BlockEnd(0)],
    ),
    "thinking that began with the block": (
        [start(0, type="thinking", thinking="so", signature=None), stop(0)],
        [BlockStart(0, Thinking("so")), BlockEnd(0)],
    ),
    "redacted thinking": (
        [start(0, type="redacted_thinking", data="b3BhcXVl"), stop(0)],
        [BlockStart(0, RedactedThinking("b3BhcXVl")), BlockEnd(0)],
    ),
    "a call": (
        [
            CALL,
            piece(0, type="input_json_delta", partial_json=""),
            piece(0, type="input_json_delta", partial_json='{"at"'),
            piece(0, type="input_json_delta", partial_json=": 1}"),
            stop(0),
        ],
        [BlockStart(0, ToolUse("c1", "look")), InputDelta(0, '{"at"'), InputDelta(0, ": 1}"), BlockEnd(0)],
    ),
    "a call whose arguments came at its start": (
        [start(0, type="tool_use", id="c1", name="look", input={"at": 1}), stop(0)],
        [BlockStart(0, ToolUse("c1", "look", {"at": 1})), BlockEnd(0)],
    ),
    "a call with its caller": (
        [
            start(0, type="tool_use", id="c1", name="look", input={}, caller={"type": "direct"}),
            piece(0, type="input_json_delta", partial_json="{}"),
            stop(0),
        ],
        [
            BlockStart(0, ToolUse("c1", "look")),
            InputDelta(0, "{}"),
            BlockEnd(0, {"type": "tool_use", "caller": {"type": "direct"}}, "anthropic"),
        ],
    ),
    "citations": (
        [
            TEXT,
            piece(0, type="text_delta", text="a"),
            piece(0, type="citations_delta", citation={"cited_text": "x"}),
            piece(0, type="citations_delta", citation={"cited_text": "y"}),
            stop(0),
        ],
        [
            BlockStart(0, Text("")),
            TextDelta(0, "a"),
            BlockEnd(0, {"type": "text", "citations": [{"cited_text": "x"}, {"cited_text": "y"}]}, "anthropic"),
        ],
    ),
    "a server's own tool and its result": (
        [
            start(0, **SEARCH),
            piece(0, type="input_json_delta", partial_json=""),
            piece(0, type="input_json_delta", partial_json='{"query"'),
            piece(0, type="input_json_delta", partial_json=': "x"}'),
            stop(0),
            start(1, **FOUND),
            stop(1),
        ],
        [
            BlockStart(0, Text("", raw_item=SEARCH, raw_format="anthropic")),
            BlockEnd(0, {**SEARCH, "input": {"query": "x"}}, "anthropic"),
            BlockStart(1, Text("", raw_item=FOUND, raw_format="anthropic")),
            BlockEnd(1, FOUND, "anthropic"),
        ],
    ),
    "a server's own tool, its arguments cut": (
        [start(0, **SEARCH), piece(0, type="input_json_delta", partial_json='{"query'), stop(0)],
        [
            BlockStart(0, Text("", raw_item=SEARCH, raw_format="anthropic")),
            BlockEnd(0, {**SEARCH, "input": {}, "unparseable_input": '{"query'}, "anthropic"),
        ],
    ),
    "pieces of a block of a later version": (
        [
            start(0, type="compaction", content=None),
            piece(0, type="compaction_delta", content="long "),
            piece(0, type="compaction_delta", content="ago", n=1),
            piece(0, type="compaction_delta", n=2),
            stop(0),
        ],
        [
            BlockStart(0, Text("", raw_item={"type": "compaction", "content": None}, raw_format="anthropic")),
            BlockEnd(0, {"type": "compaction", "content": "long ago", "n": 2}, "anthropic"),
        ],
    ),
    "a piece of a later version, of a text": (
        [TEXT, piece(0, type="tone_delta", tone="warm"), stop(0)],
        [BlockStart(0, Text("")), Unknown("tone_delta", {"type": "tone_delta", "tone": "warm"}), BlockEnd(0)],
    ),
    "an event of a later version": (
        [{"type": "weather", "sky": "blue"}],
        [Unknown("weather", {"type": "weather", "sky": "blue"})],
    ),
    "what only keeps a connection awake": ([{"type": "ping"}, {"type": "message_stop"}], []),
    "a gateway that starts over": (
        [message_start({"input_tokens": 5}), message_start({"input_tokens": 9}, model="m-2")],
        [
            ModelNamed("m-1"),
            UsageReported({"input_tokens": 5}),
            ModelNamed("m-2"),
            UsageReported({"input_tokens": 9}),
        ],
    ),
    "but not within the content": (
        [message_start(), TEXT, message_start(model="m-2")],
        [ModelNamed("m-1"), BlockStart(0, Text("")), Unknown("message_start", message_start(model="m-2"))],
    ),
}


@pytest.mark.parametrize("events, deltas", EVENTS.values(), ids=EVENTS.keys())
def test_what_events_say(events: list[Json], deltas: list[Delta]) -> None:
    assert decoded(*events) == deltas


FULL_USAGE = {
    "input_tokens": 9,
    "output_tokens": 1,
    "cache_creation_input_tokens": 30,
    "cache_read_input_tokens": 20,
    "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20},
    "output_tokens_details": {"thinking_tokens": 1},
    "service_tier": "standard",
    "server_tool_use": {"web_search_requests": 1},
}
USAGES: dict[str, tuple[list[Json], list[dict[str, int]]]] = {
    "everything": (
        [message_start(FULL_USAGE)],
        [
            {
                "input_tokens": 9,
                "output_tokens": 1,
                "cache_creation_tokens": 30,
                "cache_read_tokens": 20,
                "cache_creation_5m_tokens": 10,
                "cache_creation_1h_tokens": 20,
                "thinking_tokens": 1,
            }
        ],
    ),
    "the last counts are cumulative": (
        [message_start({"input_tokens": 9, "output_tokens": 1}), message_delta(usage={"output_tokens": 12})],
        [{"input_tokens": 9, "output_tokens": 1}, {"output_tokens": 12}],
    ),
    "all of them may come again": (
        [
            message_start({"input_tokens": 9, "cache_read_input_tokens": 0}),
            message_delta(usage={"input_tokens": 3, "cache_read_input_tokens": 6, "output_tokens": 0}),
        ],
        [{"input_tokens": 9, "cache_read_tokens": 0}, {"input_tokens": 3, "output_tokens": 0, "cache_read_tokens": 6}],
    ),
    "null and what is absent say nothing": (
        [
            message_start({"input_tokens": 9, "cache_creation": None}),
            message_delta(usage={"input_tokens": None, "output_tokens": 5, "cache_read_input_tokens": None}),
        ],
        [{"input_tokens": 9}, {"output_tokens": 5}],
    ),
    "no usage at the end": ([message_start({"input_tokens": 9}), message_delta(usage=None)], [{"input_tokens": 9}]),
    "no usage at all": ([message_start(), message_delta(usage={})], []),
}


@pytest.mark.parametrize("events, counts", USAGES.values(), ids=USAGES.keys())
def test_counts(events: list[Json], counts: list[dict[str, int]]) -> None:
    assert [delta.counts for delta in decoded(*events) if isinstance(delta, UsageReported)] == counts


ENDS: dict[str, tuple[Json, dict[str, Any]]] = {
    "its turn is over": (message_delta("end_turn"), {"stop_reason": "end_turn", "provider_reason": "end_turn"}),
    "calls": (message_delta("tool_use"), {"stop_reason": "tool_use", "provider_reason": "tool_use"}),
    "cut": (message_delta("max_tokens"), {"stop_reason": "max_tokens", "provider_reason": "max_tokens"}),
    "its window is full": (
        message_delta("model_context_window_exceeded"),
        {"stop_reason": "max_tokens", "provider_reason": "model_context_window_exceeded"},
    ),
    "a sequence": (
        message_delta("stop_sequence", stop_sequence="\n"),
        {"stop_reason": "stop_sequence", "provider_reason": "stop_sequence", "stop_sequence": "\n"},
    ),
    "paused": (message_delta("pause_turn"), {"stop_reason": "pause_turn", "provider_reason": "pause_turn"}),
    "a word of a later version": (message_delta("sleepy"), {"stop_reason": "sleepy", "provider_reason": "sleepy"}),
    "refused": (
        message_delta("refusal", stop_details={"type": "refusal", "category": "cyber", "explanation": "No."}),
        {"stop_reason": "refusal", "provider_reason": "refusal", "category": "cyber", "refusal": "No."},
    ),
    "refused without a word": (
        message_delta("refusal", stop_details=None),
        {"stop_reason": "refusal", "provider_reason": "refusal"},
    ),
}


@pytest.mark.parametrize("event, said", ENDS.values(), ids=ENDS.keys())
def test_why_an_answer_ends(event: Json, said: dict[str, Any]) -> None:
    decoder = Decoder()
    *_, finished = decoded(event, decoder=decoder)
    assert isinstance(finished, Finished)
    fields = ("stop_reason", "provider_reason", "stop_sequence", "category", "refusal")
    assert {name: getattr(finished, name) for name in fields if getattr(finished, name) is not None} == said
    assert (decoder.complete, decoder.last, list(decoder.end())) == (True, True, [])


def test_without_a_stop_reason_it_has_not_ended() -> None:
    decoder = Decoder()
    deltas = decoded(message_start(), message_delta(None, {"output_tokens": 5}), decoder=decoder)
    assert deltas == [ModelNamed("m-1"), UsageReported({"output_tokens": 5})]
    assert (decoder.complete, decoder.last) == (False, False)
    decoded({"type": "message_stop"}, decoder=decoder)
    assert decoder.complete is False


FAULTS: dict[str, Json] = {
    "overloaded": {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
    "an error without words": {"type": "error"},
}


@pytest.mark.parametrize("event", FAULTS.values(), ids=FAULTS.keys())
def test_an_error_within_an_answer(event: Json) -> None:
    with pytest.raises(ProviderFault) as raised:
        decoded(TEXT, event)
    assert (raised.value.body, raised.value.event) == (event, "error")
    with pytest.raises(ProviderFault) as raised:
        Decoder().document(event)
    assert (raised.value.body, raised.value.event) == (event, "error")


# A whole answer


def answer(*content: Json, reason: str = "end_turn", **more: Any) -> Json:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m-1",
        "content": list(content),
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": FULL_USAGE,
        **more,
    }


WHOLE: dict[str, tuple[Json, list[Block]]] = {
    "nothing": (answer(), []),
    "text": (answer({"type": "text", "text": "Hello"}), [Text("Hello")]),
    "an empty text": (answer({"type": "text", "text": ""}), [Text("")]),
    "text and citations": (
        answer({"type": "text", "text": "a", "citations": [{"cited_text": "x"}]}),
        [Text("a", raw_item={"type": "text", "citations": [{"cited_text": "x"}]}, raw_format="anthropic")],
    ),
    "thinking, text and a call": (
        answer(
            {"type": "thinking", "thinking": "so", "signature": "c2ln"},
            {"type": "redacted_thinking", "data": "d"},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": [1, "é"]}},
            reason="tool_use",
        ),
        [Thinking("so", "c2ln"), RedactedThinking("d"), Text("I look."), ToolUse("c1", "look", {"at": [1, "é"]})],
    ),
    "a call without arguments, with its caller": (
        answer({"type": "tool_use", "id": "c1", "name": "look", "input": {}, "caller": {"type": "direct"}}),
        [
            ToolUse(
                "c1", "look", {}, raw_item={"type": "tool_use", "caller": {"type": "direct"}}, raw_format="anthropic"
            )
        ],
    ),
    "a server's own tool": (
        answer({**SEARCH, "input": {"query": "x"}}, FOUND),
        [
            Text("", raw_item={**SEARCH, "input": {"query": "x"}}, raw_format="anthropic"),
            Text("", raw_item=FOUND, raw_format="anthropic"),
        ],
    ),
    "a refusal": (
        answer(reason="refusal", stop_details={"type": "refusal", "category": "cyber", "explanation": "No."}),
        [],
    ),
    "a sequence": (answer({"type": "text", "text": "a"}, reason="stop_sequence", stop_sequence="\n"), [Text("a")]),
}


def halves(words: str) -> list[str]:
    return [half for half in (words[: len(words) // 2], words[len(words) // 2 :]) if half]


def streamed(whole: Json) -> Iterator[Json]:
    """The events the API would have sent of this answer, each text in two pieces."""
    said = {**whole, "content": [], "stop_reason": None, "usage": {**whole["usage"], "output_tokens": 0}}
    yield {"type": "message_start", "message": said}
    for index, block in enumerate(whole["content"]):
        kind = block["type"]
        begun, pieces = dict(block), []
        if kind == "text":
            begun = {"type": "text", "text": ""}
            pieces = [piece(index, type="text_delta", text=half) for half in halves(block["text"])]
            pieces += [piece(index, type="citations_delta", citation=one) for one in block.get("citations", ())]
        elif kind == "thinking":
            begun = {"type": "thinking", "thinking": "", "signature": ""}
            pieces = [piece(index, type="thinking_delta", thinking=half) for half in halves(block["thinking"])]
            pieces.append(piece(index, type="signature_delta", signature=block["signature"]))
        elif kind in ("tool_use", "server_tool_use"):
            begun["input"] = {}
            texts = halves(json.dumps(block["input"])) if block["input"] else [""]
            pieces = [piece(index, type="input_json_delta", partial_json=half) for half in texts]
        yield start(index, **begun)
        yield from pieces
        yield stop(index)
    ended = {key: whole.get(key) for key in ("stop_reason", "stop_sequence", "stop_details")}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": whole["usage"]["output_tokens"]}}
    yield {"type": "message_stop"}


def assembled(deltas: list[Delta]) -> NativeAssembler:
    assembler = NativeAssembler({})
    for delta in deltas:
        assembler.add(delta)
    return assembler


@pytest.mark.parametrize("whole, content", WHOLE.values(), ids=WHOLE.keys())
def test_a_whole_answer_and_its_stream_say_the_same(whole: Json, content: list[Block]) -> None:
    at_once, bit_by_bit = assembled(Decoder().document(whole)), assembled(decoded(*streamed(whole)))
    assert at_once.content() == bit_by_bit.content() == content
    assert at_once.record.counts == bit_by_bit.record.counts
    assert (at_once.record.model, bit_by_bit.record.model) == ("m-1", "m-1")
    first, second = at_once.record.finished, bit_by_bit.record.finished
    assert first is not None
    assert second is not None
    for name in ("stop_reason", "provider_reason", "stop_sequence", "category", "refusal"):
        assert getattr(first, name) == getattr(second, name)


@pytest.mark.parametrize("whole", [whole for whole, _ in WHOLE.values()], ids=WHOLE.keys())
def test_the_raw_answer_of_either(whole: Json) -> None:
    """Of a whole answer it is that answer; of a stream, what the API would have answered at once."""
    codec = AnthropicCodec("http://h", ModelTable(CLAUDE_MODELS, CLAUDE_NEWEST), 4_096, betas=None)
    at_once, bit_by_bit = assembled(Decoder().document(whole)), assembled(decoded(*streamed(whole)))
    assert at_once.record.finished is not None
    assert bit_by_bit.record.finished is not None
    assert at_once.record.finished.raw is whole
    assert codec.record(bit_by_bit.record.finished.envelope, bit_by_bit.content()) == whole


MALFORMED: dict[str, str] = {
    "no JSON": "{",
    "no object": "[]",
    "a string": '"x"',
    "no type": "{}",
    "a start without a block": '{"type": "content_block_start", "index": 0}',
    "a start without an index": '{"type": "content_block_start", "content_block": {"type": "text"}}',
    "a call without an id": '{"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use"}}',
    "a piece without text": '{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta"}}',
    "a piece of nothing": '{"type": "content_block_delta", "index": 0, "delta": null}',
    "an end of nothing": '{"type": "message_delta"}',
    "a message of nothing": '{"type": "message_start", "message": null}',
    "counts that are none": '{"type": "message_start", "message": {"usage": 7}}',
}


@pytest.mark.parametrize("data", MALFORMED.values(), ids=MALFORMED.keys())
def test_data_that_cannot_be_read(data: str) -> None:
    """The adapter makes a MembraneError of these; see the tests of base."""
    with pytest.raises((KeyError, TypeError, ValueError, IndexError, AttributeError)):
        Decoder().decode("x", data)
