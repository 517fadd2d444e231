"""openai_responses: events and whole answers as deltas, and the blocks those make. Each case is a quirk."""

from __future__ import annotations

import json
from typing import Any

import pytest

from membrane_lite.formatters.assembly import NativeAssembler
from membrane_lite.providers.base import ProviderFault
from membrane_lite.providers.models import ModelTable, ModelTraits
from membrane_lite.providers.openai_responses import FORMAT, Decoder, ResponsesCodec
from membrane_lite.values.content import Block, GeneratedImage, RedactedThinking, Text, Thinking, ToolUse
from membrane_lite.values.deltas import Delta, Finished, InputDelta, ModelNamed, TextDelta, Unknown, UsageReported

Json = Any


def decoded(*events: Json) -> list[Delta]:
    decoder = Decoder()
    deltas = [delta for event in events for delta in decoder.decode("message", json.dumps(event))]
    return [*deltas, *decoder.end()]


def content(deltas: list[Delta]) -> list[Block]:
    assembler = NativeAssembler({})
    for delta in deltas:
        assembler.add(delta)
    assembler.end()
    return assembler.content()


def finished(deltas: list[Delta]) -> Finished:
    (end,) = [delta for delta in deltas if isinstance(delta, Finished)]
    return end


def added(index: int, **item: Any) -> Json:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def done(index: int, **item: Any) -> Json:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


def said(index: int, text: str, part: int = 0) -> Json:
    return {"type": "response.output_text.delta", "output_index": index, "content_index": part, "delta": text}


def summed_up(index: int, text: str, part: int = 0) -> Json:
    return {
        "type": "response.reasoning_summary_text.delta",
        "output_index": index,
        "summary_index": part,
        "delta": text,
    }


def reasoned(index: int, text: str, part: int = 0) -> Json:
    return {"type": "response.reasoning_text.delta", "output_index": index, "content_index": part, "delta": text}


def argued(index: int, text: str) -> Json:
    return {"type": "response.function_call_arguments.delta", "output_index": index, "delta": text}


def ended(*output: Json, status: str = "completed", reason: str | None = None, **more: Any) -> Json:
    details = None if reason is None else {"reason": reason}
    return {
        "type": f"response.{status}",
        "response": {"status": status, "incomplete_details": details, "error": None, "output": list(output), **more},
    }


def message(*texts: str, **more: Any) -> Json:
    return {"type": "message", "content": [{"type": "output_text", "text": text} for text in texts], **more}


def refused(text: str) -> Json:
    return {"type": "message", "content": [{"type": "refusal", "refusal": text}]}


def reasoning(*summaries: str, **more: Any) -> Json:
    return {"type": "reasoning", "summary": [{"type": "summary_text", "text": text} for text in summaries], **more}


def call(arguments: str = "{}", **more: Any) -> Json:
    return {"type": "function_call", "call_id": "c1", "name": "look", "arguments": arguments, **more}


def own(block: Block, item: Json) -> Any:
    return type(block)(**{**vars(block), "raw_item": item, "raw_format": FORMAT})


HELLO = message("Hello", id="msg_1")
CUSTOM = {"type": "custom_tool_call", "call_id": "c1", "name": "sum", "input": 'say "4"\n'}
SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
IMAGE = {"type": "image_generation_call", "output_format": "webp", "result": "QQ=="}
BOTH = {**reasoning("in short"), "content": [{"type": "reasoning_text", "text": "at length"}]}

STREAMS: dict[str, tuple[list[Json], list[Block]]] = {
    "text": (
        [added(0, type="message", content=[]), said(0, "Hel"), said(0, "lo"), done(0, **HELLO), ended(HELLO)],
        [own(Text("Hello"), HELLO)],
    ),
    "an answer without items has those that were streamed": (
        [said(0, "Hel"), said(0, "lo"), done(0, **HELLO), ended()],
        [own(Text("Hello"), HELLO)],
    ),
    "what no delta brought comes with the item": (
        [said(0, "He"), done(0, **HELLO), ended()],
        [own(Text("Hello"), HELLO)],
    ),
    "an item that only the end names": ([ended(HELLO)], [own(Text("Hello"), HELLO)]),
    "an item that was announced and ends with the answer": (
        [added(0, **SEARCH), said(1, "Hello"), ended(SEARCH, HELLO)],
        [own(Text(""), SEARCH), own(Text("Hello"), HELLO)],
    ),
    "items that never end": ([said(0, "Hel"), argued(1, "{"), ended()], [Text("Hel")]),
    "the order is that of the output, not of arrival": (
        [said(1, "Hello"), done(1, **HELLO), done(0, **reasoning(encrypted_content="e==")), ended()],
        [own(RedactedThinking("e=="), reasoning(encrypted_content="e==")), own(Text("Hello"), HELLO)],
    ),
    "parts of a message are one text": (
        [
            said(0, "a"),
            {"type": "response.content_part.done", "content_index": 0},
            said(0, "b", 1),
            ended(message("a", "b")),
        ],
        [own(Text("ab"), message("a", "b"))],
    ),
    "parts that are mixed are put in order": (
        [said(0, "a1"), said(0, "b1", 1), said(0, "a2"), said(0, "b2", 1), ended(message("a1a2", "b1b2"))],
        [own(Text("a1a2b1b2"), message("a1a2", "b1b2"))],
    ),
    "an empty message": ([done(0, **message("")), ended()], [own(Text(""), message(""))]),
    "two phases are two texts": (
        [ended(message("I look.", phase="commentary"), message("Sun.", phase="final_answer"))],
        [
            own(Text("I look."), message("I look.", phase="commentary")),
            own(Text("Sun."), message("Sun.", phase="final_answer")),
        ],
    ),
    "encrypted reasoning": (
        [added(0, **reasoning(encrypted_content="early")), done(0, **reasoning(encrypted_content="e==")), ended()],
        [own(RedactedThinking("e=="), reasoning(encrypted_content="e=="))],
    ),
    "encrypted reasoning with a summary can be read": (
        [added(0, **reasoning()), summed_up(0, "so"), done(0, **reasoning("so", encrypted_content="e==")), ended()],
        [own(Thinking("so"), reasoning("so", encrypted_content="e=="))],
    ),
    "summaries, a line each": (
        [
            summed_up(0, "one"),
            {"type": "response.reasoning_summary_text.done", "summary_index": 0},
            {"type": "response.reasoning_summary_part.done", "summary_index": 0},
            summed_up(0, "two", 1),
            done(0, **reasoning("one", "two")),
            ended(),
        ],
        [own(Thinking("one\ntwo"), reasoning("one", "two"))],
    ),
    "reasoning itself": (
        [
            reasoned(0, "at "),
            reasoned(0, "length"),
            done(0, type="reasoning", content=BOTH["content"], summary=[]),
            ended(),
        ],
        [own(Thinking("at length"), {"type": "reasoning", "content": BOTH["content"], "summary": []})],
    ),
    "of reasoning and its summary the one that began counts": (
        [reasoned(0, "at "), summed_up(0, "in short"), reasoned(0, "length"), done(0, **BOTH), ended()],
        [own(Thinking("at length"), BOTH)],
    ),
    "a whole item's summary outranks its reasoning": ([ended(BOTH)], [own(Thinking("in short"), BOTH)]),
    "reasoning of which nothing is told": ([ended(reasoning())], [own(Thinking(""), reasoning())]),
    "a call": (
        [added(0, **call("")), argued(0, '{"a"'), argued(0, ":1}"), done(0, **call('{"a":1}')), ended()],
        [own(ToolUse("c1", "look", {"a": 1}), call('{"a":1}'))],
    ),
    "a call whose arguments come with its end alone": (
        [added(0, **call("")), done(0, **call('{"a":1}')), ended()],
        [own(ToolUse("c1", "look", {"a": 1}), call('{"a":1}'))],
    ),
    "a call that was not announced": (
        [argued(0, '{"a":1}'), done(0, **call('{"a":1}')), ended()],
        [own(ToolUse("c1", "look", {"a": 1}), call('{"a":1}'))],
    ),
    "a call that was cut": (
        [ended(call('{"a'), status="incomplete", reason="max_output_tokens")],
        [own(ToolUse("c1", "look", {}, unparseable_input='{"a'), call('{"a'))],
    ),
    "a call without a call_id is answered by the id of its item": (
        [done(0, type="function_call", id="fc_1", name="look", arguments="{}"), ended()],
        [
            own(
                ToolUse("fc_1", "look", {}),
                {"type": "function_call", "id": "fc_1", "name": "look", "arguments": "{}", "call_id": "fc_1"},
            )
        ],
    ),
    "a custom tool's input is its text": ([ended(CUSTOM)], [own(ToolUse("c1", "sum", 'say "4"\n'), CUSTOM)]),
    "and may come in pieces": (
        [
            added(0, **{**CUSTOM, "input": ""}),
            {"type": "response.custom_tool_call_input.delta", "output_index": 0, "delta": 'say "'},
            {"type": "response.custom_tool_call_input.delta", "output_index": 0, "delta": '4"\n'},
            done(0, **CUSTOM),
            ended(),
        ],
        [own(ToolUse("c1", "sum", 'say "4"\n'), CUSTOM)],
    ),
    "a custom tool's input that looks like a number": (
        [ended({**CUSTOM, "input": "4"})],
        [own(ToolUse("c1", "sum", "4"), {**CUSTOM, "input": "4"})],
    ),
    "an image": (
        [added(0, type=IMAGE["type"]), done(0, **IMAGE), ended()],
        [own(GeneratedImage("QQ==", "image/webp"), IMAGE)],
    ),
    "an image that failed is kept raw": (
        [done(0, type=IMAGE["type"], status="failed", result=None), ended()],
        [own(Text(""), {"type": IMAGE["type"], "status": "failed", "result": None})],
    ),
    "an item of a later version": ([ended({"type": "dream", "x": 1})], [own(Text(""), {"type": "dream", "x": 1})]),
    "an item the end states otherwise": (
        [done(0, **reasoning(encrypted_content="one")), ended(reasoning(encrypted_content="two"))],
        [own(RedactedThinking("one"), reasoning(encrypted_content="two"))],
    ),
    "an end that left items out is put beside them by ids": (
        [done(0, **SEARCH), done(1, **HELLO), ended(HELLO)],
        [own(Text(""), SEARCH), own(Text("Hello"), HELLO)],
    ),
}


@pytest.mark.parametrize("events, blocks", STREAMS.values(), ids=STREAMS.keys())
def test_a_stream(events: list[Json], blocks: list[Block]) -> None:
    assert content(decoded(*events)) == blocks


@pytest.mark.parametrize("events", [rows for rows, _ in STREAMS.values()], ids=STREAMS.keys())
def test_a_whole_answer_is_what_its_stream_was(events: list[Json]) -> None:
    output = events[-1]["response"]["output"]
    if output:
        streamed, whole = content(decoded(events[-1])), content([*Decoder().document(events[-1]["response"])])
        assert whole == streamed
        assert [block.raw_item for block in whole] == output


def test_pieces_go_out_as_they_come() -> None:
    events = [said(0, "Hel"), said(0, "lo"), argued(1, "{"), argued(1, "}")]
    pieces = decoded(events[0], events[1], added(1, **call("")), *events[2:])
    assert [delta for delta in pieces if isinstance(delta, (TextDelta, InputDelta))] == [
        TextDelta(0, "Hel"),
        TextDelta(0, "lo"),
        InputDelta(1, "{"),
        InputDelta(1, "}"),
    ]


ENDS: dict[str, tuple[Json, tuple[str, str | None, str | None]]] = {
    "an end": (ended(HELLO), ("end_turn", "completed", None)),
    "a call": (ended(call()), ("tool_use", "completed", None)),
    "a call with broken arguments": (ended(call("{")), ("tool_use", "completed", None)),
    "a custom tool's call": (ended(CUSTOM), ("tool_use", "completed", None)),
    "a server's call is none of ours": (ended(SEARCH), ("end_turn", "completed", None)),
    "the limit": (
        ended(HELLO, status="incomplete", reason="max_output_tokens"),
        ("max_tokens", "max_output_tokens", None),
    ),
    "the limit within a call": (
        ended(call("{"), status="incomplete", reason="max_output_tokens"),
        ("max_tokens", "max_output_tokens", None),
    ),
    "the filter": (ended(status="incomplete", reason="content_filter"), ("refusal", "content_filter", None)),
    "a reason of a later version": (ended(status="incomplete", reason="bored"), ("bored", "bored", None)),
    "incomplete without a reason": (ended(status="incomplete"), ("incomplete", "incomplete", None)),
    "a refusal": (ended(refused("No.")), ("refusal", "completed", "No.")),
    "a refusal that was cut": (
        ended(refused("No"), status="incomplete", reason="max_output_tokens"),
        ("refusal", "max_output_tokens", "No"),
    ),
}


@pytest.mark.parametrize("event, expected", ENDS.values(), ids=ENDS.keys())
def test_why_it_ended(event: Json, expected: tuple[str, str | None, str | None]) -> None:
    decoder = Decoder()
    end = finished([*decoder.decode("", json.dumps(event))])
    assert (end.stop_reason, end.provider_reason, end.refusal) == expected
    assert decoder.complete
    assert decoder.last


def test_a_refusal_is_no_text() -> None:
    part = {"type": "response.refusal.delta", "output_index": 0, "delta": "N"}
    deltas = decoded(added(0, type="message"), part, {**part, "delta": "o."}, ended())
    assert (content(deltas), finished(deltas).refusal) == ([Text("")], "No.")


COUNTS: dict[str, tuple[Json, Json]] = {
    "cached tokens are taken out of the input": (
        {
            "input_tokens": 100,
            "input_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 10},
            "output_tokens": 25,
            "output_tokens_details": {"reasoning_tokens": 5},
        },
        {
            "input_tokens": 50,
            "output_tokens": 25,
            "cache_read_tokens": 40,
            "cache_creation_tokens": 10,
            "thinking_tokens": 5,
        },
    ),
    "what is not told is not 0": (
        {"input_tokens": 100, "output_tokens": 25},
        {"input_tokens": 100, "output_tokens": 25},
    ),
    "a cost": ({"input_tokens": 1, "cost": 0.5}, {"input_tokens": 1, "provider_cost": 0.5}),
    "nonsense": ({"input_tokens": "x", "output_tokens": 1, "input_tokens_details": 7}, {"output_tokens": 1}),
}


@pytest.mark.parametrize("usage, counts", COUNTS.values(), ids=COUNTS.keys())
def test_counts(usage: Json, counts: Json) -> None:
    (told,) = [delta for delta in decoded(ended(usage=usage)) if isinstance(delta, UsageReported)]
    assert told.counts == counts


def test_the_model_is_named_once_and_again_where_another_answered() -> None:
    created = {"type": "response.created", "response": {"model": "router"}}
    deltas = decoded(created, {**created, "type": "response.in_progress"}, ended(model="gpt-5.1"))
    assert deltas[:2] == [ModelNamed("router"), ModelNamed("gpt-5.1")]


UNSAID = {"a known step": "response.web_search_call.searching", "another": "response.mcp_call_arguments.delta"}


@pytest.mark.parametrize("type", UNSAID.values(), ids=UNSAID.keys())
def test_steps_that_say_nothing(type: str) -> None:
    assert decoded({"type": type, "output_index": 0}) == []


def test_an_event_of_a_later_version_is_kept() -> None:
    event = {"type": "response.dream.delta", "delta": "zzz"}
    assert decoded(event) == [Unknown("response.dream.delta", event)]


def test_done_is_no_end() -> None:
    decoder = Decoder()
    assert decoder.decode("message", "[DONE]") == ()
    assert not decoder.complete


FAULTS: dict[str, Json] = {
    "an error event": {"type": "error", "code": "server_error", "message": "down"},
    "one with an object": {"type": "error", "error": {"code": "server_error", "message": "down"}},
    "a failed answer": {"type": "response.failed", "response": {"status": "failed", "error": {"message": "down"}}},
    "an error without a type": {"error": {"message": "down"}},
}


@pytest.mark.parametrize("event", FAULTS.values(), ids=FAULTS.keys())
def test_an_error_within_a_stream(event: Json) -> None:
    with pytest.raises(ProviderFault) as raised:
        decoded(event)
    assert raised.value.body == event


def test_what_a_failed_answer_counts_is_told() -> None:
    event = ended(status="failed", usage={"input_tokens": 3}, error={"code": "server_error", "message": "down"})
    with pytest.raises(ProviderFault) as raised:
        decoded(event)
    assert raised.value.told == [UsageReported({"input_tokens": 3})]


NO_ANSWERS: dict[str, Json] = {
    "an error": {"error": {"message": "down"}},
    "an error beside an output": {"output": [], "error": {"message": "down"}},
    "a failed one": {"status": "failed", "output": []},
    "a list": [],
    "a string": "down",
}


@pytest.mark.parametrize("answer", NO_ANSWERS.values(), ids=NO_ANSWERS.keys())
def test_what_is_no_answer(answer: Json) -> None:
    with pytest.raises(ProviderFault) as raised:
        Decoder().document(answer)
    assert raised.value.event == "answer"


def test_a_stream_as_the_whole_answer_it_would_have_been() -> None:
    codec = ResponsesCodec(
        "http://h", ModelTable({}, ModelTraits()), 64, subscribed=False, session_id=None, names_session=False
    )
    deltas = decoded(said(0, "Hello"), done(0, **HELLO), said(1, "cut"), ended(id="resp_1"))
    end = finished(deltas)
    spoken = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "cut"}]}
    assert end.raw is None
    assert codec.record(end.envelope, content(deltas)) == {**end.envelope, "id": "resp_1", "output": [HELLO, spoken]}
