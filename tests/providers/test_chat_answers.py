"""chat_dialect: what chunks say, in every form that servers give them, and that a whole answer says the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from membrane_lite.formatters.assembly import NativeAssembler
from membrane_lite.providers.base import ProviderFault
from membrane_lite.providers.chat_dialect import ChatDecoder, ChatDialect, recorded, tidied
from membrane_lite.providers.chat_usage import counts
from membrane_lite.values.content import Block, Text, Thinking, ToolUse
from membrane_lite.values.deltas import (
    BlockEnd,
    BlockStart,
    Delta,
    Finished,
    InputDelta,
    ModelNamed,
    TextDelta,
    ThinkingDelta,
    UsageReported,
)

Json = Any
DONE = "[DONE]"


def decoded(*chunks: Json, decoder: ChatDecoder | None = None) -> list[Delta]:
    """The deltas of a stream: its chunks, then its end."""
    reader = decoder or ChatDecoder()
    texts = [chunk if isinstance(chunk, str) else json.dumps(chunk) for chunk in chunks]
    return [*(delta for text in texts for delta in reader.decode("message", text)), *reader.end()]


def said(**delta: Any) -> Json:
    return {"choices": [{"index": 0, "delta": delta}]}


def called(*fragments: Json) -> Json:
    return said(tool_calls=list(fragments))


def ended(reason: str | None = "stop", **more: Any) -> Json:
    return {"choices": [{"index": 0, "delta": {}, "finish_reason": reason, **more}]}


def call(id: str | None = None, name: str | None = None, arguments: Any = None, **more: Any) -> Json:
    function = {"name": name, "arguments": arguments}
    return {
        **({} if id is None else {"id": id}),
        "function": {key: value for key, value in function.items() if value is not None},
        **more,
    }


def finished(reason: str, word: str | None, **more: Any) -> Finished:
    return Finished(reason, word, envelope={"choices": [{"index": 0, "finish_reason": word}]}, **more)


STREAMS: dict[str, tuple[list[Json], list[Delta]]] = {
    "text": (
        [said(role="assistant", content=""), said(content="Hel"), said(content="lo"), ended(), DONE],
        [
            BlockStart(0, Text("")),
            TextDelta(0, "Hel"),
            TextDelta(0, "lo"),
            BlockEnd(0),
            finished("end_turn", "stop"),
        ],
    ),
    "reasoning, then text": (
        [said(reasoning_content="so"), said(content="a"), ended()],
        [
            BlockStart(0, Thinking("")),
            ThinkingDelta(0, "so"),
            BlockEnd(0),
            BlockStart(1, Text("")),
            TextDelta(1, "a"),
            BlockEnd(1),
            finished("end_turn", "stop"),
        ],
    ),
    "reasoning under its other name": (
        [said(reasoning="so"), said(reasoning=" it is"), ended()],
        [
            BlockStart(0, Thinking("")),
            ThinkingDelta(0, "so"),
            ThinkingDelta(0, " it is"),
            BlockEnd(0),
            finished("end_turn", "stop"),
        ],
    ),
    "reasoning under both names at once": (
        [said(reasoning_content="so", reasoning="so"), said(reasoning="!", reasoning_content="!"), ended()],
        [
            BlockStart(0, Thinking("")),
            ThinkingDelta(0, "so"),
            ThinkingDelta(0, "!"),
            BlockEnd(0),
            finished("end_turn", "stop"),
        ],
    ),
    "text, a call, and more text": (
        [said(content="a"), called(call("c1", "look", "{}", index=0)), said(content="b"), ended("tool_calls")],
        [
            BlockStart(0, Text("")),
            TextDelta(0, "a"),
            BlockEnd(0),
            BlockStart(1, ToolUse("c1", "look")),
            InputDelta(1, "{}"),
            BlockStart(2, Text("")),
            TextDelta(2, "b"),
            BlockEnd(2),
            BlockEnd(1),
            finished("tool_use", "tool_calls"),
        ],
    ),
    "an answer of nothing": ([ended()], [finished("end_turn", "stop")]),
    "the end, and nothing said of it": (
        [said(content="a"), DONE],
        [BlockStart(0, Text("")), TextDelta(0, "a"), BlockEnd(0), finished("end_turn", None)],
    ),
    "text beside the finish reason": (
        [{"choices": [{"delta": {"content": "a"}, "finish_reason": "length"}]}],
        [BlockStart(0, Text("")), TextDelta(0, "a"), BlockEnd(0), finished("max_tokens", "length")],
    ),
    "text after the finish reason": (
        [ended("stop"), said(content="a"), DONE],
        [BlockStart(0, Text("")), TextDelta(0, "a"), BlockEnd(0), finished("end_turn", "stop")],
    ),
    "a whole message in place of a delta": (
        [{"choices": [{"index": 0, "message": {"content": "a"}, "finish_reason": "stop"}]}],
        [BlockStart(0, Text("")), TextDelta(0, "a"), BlockEnd(0), finished("end_turn", "stop")],
    ),
    "fields of other kinds": (
        [said(content="a", audio={}, annotations=[], function_call=None), ended()],
        [BlockStart(0, Text("")), TextDelta(0, "a"), BlockEnd(0), finished("end_turn", "stop")],
    ),
}


@pytest.mark.parametrize("chunks, deltas", STREAMS.values(), ids=STREAMS.keys())
def test_what_chunks_say(chunks: list[Json], deltas: list[Delta]) -> None:
    assert decoded(*chunks) == deltas


def content(deltas: list[Delta]) -> list[Block]:
    assembler = NativeAssembler({})
    for delta in deltas:
        assembler.add(delta)
    return assembler.content()


def use(id: str, input: Any, name: str = "look") -> ToolUse:
    return ToolUse(id, name, input)


EXTRA = {"extra_content": {"google": {"thought_signature": "s"}}}

CALLS: dict[str, tuple[list[Json], list[Block]]] = {
    "one call in pieces": (
        [
            called(call("c1", "look", "", index=0)),
            called(call(arguments='{"a"', index=0)),
            called(call(arguments=":1}", index=0)),
        ],
        [use("c1", {"a": 1})],
    ),
    "two calls, each with its index": (
        [
            called(call("c1", "look", "{}", index=0)),
            called(call("c2", "find", '{"b"', index=1)),
            called(call(arguments=":2}", index=1)),
        ],
        [use("c1", {}), use("c2", {"b": 2}, "find")],
    ),
    "two calls whose pieces alternate": (
        [
            called(call("c1", "look", '{"a"', index=0), call("c2", "find", '{"b"', index=1)),
            called(call(arguments=":1}", index=0)),
            called(call(arguments=":2}", index=1)),
        ],
        [use("c1", {"a": 1}), use("c2", {"b": 2}, "find")],
    ),
    "indexes that begin at 1": (
        [called(call("c1", "look", '{"a"', index=1)), called(call(arguments=":1}", index=1))],
        [use("c1", {"a": 1})],
    ),
    "indexes with a gap": (
        [called(call("c1", "look", "{}", index=0)), called(call("c2", "find", "{}", index=7))],
        [use("c1", {}), use("c2", {}, "find")],
    ),
    "no index, ids alone": (
        [
            called(call("c1", "look", '{"a"')),
            called(call(arguments=":1}")),
            called(call("c2", "find", '{"b"')),
            called(call(arguments=":2}")),
        ],
        [use("c1", {"a": 1}), use("c2", {"b": 2}, "find")],
    ),
    "neither index nor id": (
        [
            called(call(name="look", arguments='{"a"')),
            called(call(arguments=":1}")),
            called(call(name="find", arguments="{}")),
        ],
        [use("call_0", {"a": 1}), use("call_1", {}, "find")],
    ),
    "all indexes 0, each call with its id": (
        [called(call("c1", "look", "{}", index=0)), called(call("c2", "find", "{}", index=0))],
        [use("c1", {}), use("c2", {}, "find")],
    ),
    "all indexes 0, in pieces": (
        [
            called(call("c1", "look", '{"a"', index=0)),
            called(call(arguments=":1}", index=0)),
            called(call("c2", "find", '{"b"', index=0)),
            called(call(arguments=":2}", index=0)),
        ],
        [use("c1", {"a": 1}), use("c2", {"b": 2}, "find")],
    ),
    "id and name repeated in every piece": (
        [called(call("c1", "look", piece, index=0)) for piece in ('{"a"', ":", "1}")],
        [use("c1", {"a": 1})],
    ),
    "id and name repeated, without an index": (
        [called(call("c1", "look", piece)) for piece in ('{"a"', ":", "1}")],
        [use("c1", {"a": 1})],
    ),
    "an empty id, later": (
        [called(call("c1", "look", '{"a"', index=0)), called(call("", "", ":1}", index=0))],
        [use("c1", {"a": 1})],
    ),
    "an empty id from the start": (
        [called(call("", "look", "{}", index=0)), called(call("", "find", "{}", index=1))],
        [use("call_0", {}), use("call_1", {}, "find")],
    ),
    "an id that is null": (
        [called({"index": 0, "id": None, "function": {"name": "look", "arguments": "{}"}})],
        [use("call_0", {})],
    ),
    "the id before the name": (
        [called({"index": 0, "id": "c1"}), called(call(name="look", arguments="{}", index=0))],
        [use("c1", {})],
    ),
    "the id after the name": (
        [called(call(name="look", index=0)), called(call("c1", arguments='{"a":1}', index=0))],
        [use("call_0", {"a": 1})],
    ),
    "arguments as an object": ([called(call("c1", "look", {"a": [1]}, index=0))], [use("c1", {"a": [1]})]),
    "arguments that are null": (
        [called({"index": 0, "id": "c1", "function": {"name": "look", "arguments": None}})],
        [use("c1", {})],
    ),
    "arguments that are missing": ([called(call("c1", "look", index=0))], [use("c1", {})]),
    "arguments that are cut": (
        [called(call("c1", "look", '{"a', index=0))],
        [ToolUse("c1", "look", {}, unparseable_input='{"a')],
    ),
    "one id for two calls": (
        [called(call("c1", "look", "{}", index=0), call("c1", "find", "{}", index=1))],
        [use("c1", {}), use("c1_2", {}, "find")],
    ),
    "what a server puts beside a call": (
        [called({**call("c1", "look", "{}", index=0), "type": "function", **EXTRA})],
        [ToolUse("c1", "look", {}, raw_item=EXTRA, raw_format="openai-chat")],
    ),
    "a call of which only the id came": ([called({"index": 0, "id": "c1"})], []),
    "text between the pieces": (
        [called(call("c1", "look", '{"a"', index=0)), said(content="hm"), called(call(arguments=":1}", index=0))],
        [use("c1", {"a": 1}), Text("hm")],
    ),
}


@pytest.mark.parametrize("chunks, blocks", CALLS.values(), ids=CALLS.keys())
def test_calls_in_every_form(chunks: list[Json], blocks: list[Block]) -> None:
    assert content(decoded(*chunks, ended("tool_calls"), DONE)) == blocks


TEXTS: dict[str, tuple[list[Json], list[Block]]] = {
    "content as typed parts": (
        [
            said(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "so"}]}]),
            said(content=[{"type": "thinking", "thinking": " it is"}, {"type": "text", "text": "a"}]),
            said(content=[{"type": "text", "text": "b"}, {"type": "reference", "ids": [1]}]),
        ],
        [Thinking("so it is"), Text("ab")],
    ),
    "content that is null": ([said(content=None), said(content="a")], [Text("a")]),
    "reasoning that is no text": ([said(reasoning={"effort": "low"}), said(content="a")], [Text("a")]),
    "reasoning, text, reasoning": (
        [said(reasoning="a"), said(content="b"), said(reasoning="c")],
        [Thinking("a"), Text("b"), Thinking("c")],
    ),
    "chunks without choices": ([{"choices": []}, {}, {"choices": None}, said(content="a")], [Text("a")]),
    "a second choice is left aside": (
        [{"choices": [{"index": 1, "delta": {"content": "x"}}, {"index": 0, "delta": {"content": "a"}}]}],
        [Text("a")],
    ),
    "half a surrogate pair": (['{"choices":[{"delta":{"content":"a\\ud83d"}}]}'], [Text("a\ufffd")]),
}


@pytest.mark.parametrize("chunks, blocks", TEXTS.values(), ids=TEXTS.keys())
def test_text_in_every_form(chunks: list[Json], blocks: list[Block]) -> None:
    assert content(decoded(*chunks, ended())) == blocks


ENDS: dict[str, tuple[list[Json], dict[str, Any]]] = {
    "stop": ([ended("stop")], {"stop_reason": "end_turn", "provider_reason": "stop"}),
    "length": ([ended("length")], {"stop_reason": "max_tokens", "provider_reason": "length"}),
    "tool_calls": ([ended("tool_calls")], {"stop_reason": "tool_use", "provider_reason": "tool_calls"}),
    "function_call": ([ended("function_call")], {"stop_reason": "tool_use", "provider_reason": "function_call"}),
    "content_filter": ([ended("content_filter")], {"stop_reason": "refusal", "provider_reason": "content_filter"}),
    "another word": ([ended("eos")], {"stop_reason": "eos", "provider_reason": "eos"}),
    "the last word counts": (
        [ended("stop"), ended("length")],
        {"stop_reason": "max_tokens", "provider_reason": "length"},
    ),
    "[DONE] and no word": ([DONE], {"stop_reason": "end_turn"}),
    "a stop sequence that is named": (
        [ended("stop", stop_reason="\nUser:")],
        {"stop_reason": "stop_sequence", "provider_reason": "stop", "stop_sequence": "\nUser:"},
    ),
    "a stop token that is numbered": (
        [ended("stop", stop_reason=128_009)],
        {"stop_reason": "end_turn", "provider_reason": "stop"},
    ),
    "a refusal": (
        [said(refusal="I can"), said(refusal="not."), ended("stop")],
        {"stop_reason": "refusal", "provider_reason": "stop", "refusal": "I cannot."},
    ),
}


@pytest.mark.parametrize("chunks, said_of_it", ENDS.values(), ids=ENDS.keys())
def test_why_an_answer_ends(chunks: list[Json], said_of_it: dict[str, Any]) -> None:
    end = decoded(*chunks)[-1]
    assert isinstance(end, Finished)
    fields = ("stop_reason", "provider_reason", "stop_sequence", "refusal")
    assert {name: getattr(end, name) for name in fields if getattr(end, name) is not None} == said_of_it


MOMENTS: dict[str, tuple[list[Json], tuple[bool, bool]]] = {
    "at first": ([], (False, False)),
    "while it is said": ([said(content="a")], (False, False)),
    "a finish reason of null": ([ended(None)], (False, False)),
    "counts may follow a finish reason": ([ended("stop")], (True, False)),
    "nothing follows [DONE]": ([" [DONE] "], (True, True)),
    "what follows changes nothing": ([ended("stop"), {"choices": [], "usage": {}}], (True, False)),
}


@pytest.mark.parametrize("chunks, state", MOMENTS.values(), ids=MOMENTS.keys())
def test_whether_more_is_to_come(chunks: list[Json], state: tuple[bool, bool]) -> None:
    decoder = ChatDecoder()
    decoded(*chunks, decoder=decoder)
    assert (decoder.complete, decoder.last) == state


# Models and counts


def test_the_model_is_named_once() -> None:
    chunks = [{"choices": []}, {"model": "m-1", "choices": []}, {"model": "m-2", "choices": []}]
    assert [delta for delta in decoded(*chunks, ended()) if isinstance(delta, ModelNamed)] == [ModelNamed("m-1")]


COUNTS: dict[str, tuple[Json, dict[str, Any]]] = {
    "the least": ({"prompt_tokens": 9, "completion_tokens": 3}, {"input_tokens": 9, "output_tokens": 3}),
    "cached tokens are counted beside": (
        {"prompt_tokens": 90, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 60}},
        {"input_tokens": 30, "output_tokens": 3, "cache_read_tokens": 60},
    ),
    "and those that were written": (
        {
            "prompt_tokens": 90,
            "completion_tokens": 3,
            "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 20},
        },
        {"input_tokens": 10, "output_tokens": 3, "cache_read_tokens": 60, "cache_creation_tokens": 20},
    ),
    "no cached tokens is a count": (
        {"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 0}},
        {"input_tokens": 9, "output_tokens": 3, "cache_read_tokens": 0},
    ),
    "DeepSeek's name for them": (
        {"prompt_tokens": 90, "completion_tokens": 3, "prompt_cache_hit_tokens": 60, "prompt_cache_miss_tokens": 30},
        {"input_tokens": 30, "output_tokens": 3, "cache_read_tokens": 60},
    ),
    "more cached than there were": (
        {"prompt_tokens": 9, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 60}},
        {"input_tokens": 0, "output_tokens": 3, "cache_read_tokens": 60},
    ),
    "reasoning is part of the output": (
        {
            "prompt_tokens": 9,
            "completion_tokens": 30,
            "total_tokens": 39,
            "completion_tokens_details": {"reasoning_tokens": 20},
        },
        {"input_tokens": 9, "output_tokens": 30, "thinking_tokens": 20},
    ),
    "except where the total shows that it was counted beside it": (
        {
            "prompt_tokens": 9,
            "completion_tokens": 10,
            "total_tokens": 39,
            "completion_tokens_details": {"reasoning_tokens": 20},
        },
        {"input_tokens": 9, "output_tokens": 30, "thinking_tokens": 20},
    ),
    "a cost": (
        {"prompt_tokens": 9, "completion_tokens": 3, "cost": 0.25},
        {"input_tokens": 9, "output_tokens": 3, "provider_cost": 0.25},
    ),
    "a cost that is no number": ({"completion_tokens": 3, "cost": {"usd": 1}}, {"output_tokens": 3}),
    "details that are null": (
        {
            "prompt_tokens": 9,
            "completion_tokens": None,
            "prompt_tokens_details": None,
            "completion_tokens_details": None,
        },
        {"input_tokens": 9},
    ),
}


@pytest.mark.parametrize("usage, ours", COUNTS.values(), ids=COUNTS.keys())
def test_counts_are_made_disjoint(usage: Json, ours: dict[str, Any]) -> None:
    assert counts(usage) == ours


USAGE = {"prompt_tokens": 9, "completion_tokens": 3}
REPORTED = UsageReported({"input_tokens": 9, "output_tokens": 3})
PLACES: dict[str, list[Json]] = {
    "in a chunk of its own, after the finish reason": [ended(), {"choices": [], "usage": USAGE}, DONE],
    "beside the finish reason": [{**ended(), "usage": USAGE}],
    "beside the last text": [{**said(content="a"), "usage": USAGE}, ended()],
    "where Groq puts it": [{**ended(), "x_groq": {"id": "req", "usage": USAGE}}],
    "null until it is known": [{**said(content="a"), "usage": None}, {**ended(), "usage": USAGE}],
}


@pytest.mark.parametrize("chunks", PLACES.values(), ids=PLACES.keys())
def test_where_counts_stand(chunks: list[Json]) -> None:
    assert [delta for delta in decoded(*chunks) if isinstance(delta, UsageReported)] == [REPORTED]


# Errors within an answer

FAULTS: dict[str, tuple[str, Json]] = {
    "an error in place of a chunk": ("message", {"error": {"code": 429, "message": "slow down"}}),
    "one beside choices": ("message", {**ended("error"), "error": {"code": 502, "message": "down"}}),
    "one that is a string": ("message", {"error": "down"}),
    "an event of that name": ("error", {"message": "down"}),
}


@pytest.mark.parametrize("event, chunk", FAULTS.values(), ids=FAULTS.keys())
def test_an_error_within_a_stream(event: str, chunk: Json) -> None:
    with pytest.raises(ProviderFault) as raised:
        ChatDecoder().decode(event, json.dumps(chunk))
    assert (raised.value.body, raised.value.event) == (chunk, event)


def test_an_error_within_a_choice() -> None:
    choice = {"index": 0, "delta": {}, "error": {"code": 502, "message": "down"}}
    with pytest.raises(ProviderFault) as raised:
        decoded({"choices": [choice]})
    assert raised.value.body == choice


NO_ERRORS = {"null": {**said(content="a"), "error": None}, "empty": {**said(content="a"), "error": ""}}


@pytest.mark.parametrize("chunk", NO_ERRORS.values(), ids=NO_ERRORS.keys())
def test_an_error_of_nothing_is_none(chunk: Json) -> None:
    assert content(decoded(chunk, ended())) == [Text("a")]


# Whole answers


def answer(message: Json, reason: str | None = "stop", **more: Any) -> Json:
    return {
        "id": "x",
        "model": "m-1",
        "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": reason}],
        "usage": USAGE,
        **more,
    }


WHOLE: dict[str, tuple[Json, list[Block], str]] = {
    "text": (answer({"content": "a"}), [Text("a")], "end_turn"),
    "nothing": (answer({"content": None}), [], "end_turn"),
    "reasoning stands first, whatever the server's order": (
        answer({"content": "a", "reasoning_content": "so"}),
        [Thinking("so"), Text("a")],
        "end_turn",
    ),
    "text and calls": (
        answer({"content": "a", "tool_calls": [call("c1", "look", '{"a":1}'), call("c2", "find", "{}")]}, "tool_calls"),
        [Text("a"), use("c1", {"a": 1}), use("c2", {}, "find")],
        "tool_use",
    ),
    "calls without ids": (
        answer({"tool_calls": [call(name="look", arguments="{}"), call(name="look", arguments='{"a":1}')]}),
        [use("call_0", {}), use("call_1", {"a": 1})],
        "end_turn",
    ),
    "calls of one id": (
        answer({"tool_calls": [call("c1", "look", "{}"), call("c1", "look", '{"a":1}')]}),
        [use("c1", {}), use("c1_2", {"a": 1})],
        "end_turn",
    ),
    "arguments as objects, indexes all 0": (
        answer({"tool_calls": [call("c1", "look", {"a": 1}, index=0), call("c2", "look", {}, index=0)]}),
        [use("c1", {"a": 1}), use("c2", {})],
        "end_turn",
    ),
    "a refusal": (answer({"content": None, "refusal": "No."}), [], "refusal"),
    "a second choice is left aside": (
        answer({"content": "a"}, choices=[{"message": {"content": "a"}}, {"message": {"content": "b"}}]),
        [Text("a")],
        "end_turn",
    ),
    "no choices": (answer({}, choices=[]), [], "end_turn"),
}


@pytest.mark.parametrize("whole, blocks, reason", WHOLE.values(), ids=WHOLE.keys())
def test_a_whole_answer(whole: Json, blocks: list[Block], reason: str) -> None:
    deltas = ChatDecoder().document(whole)
    end = deltas[-1]
    assert isinstance(end, Finished)
    assert content(deltas) == blocks
    assert (end.stop_reason, end.raw, deltas[0], deltas[1]) == (reason, whole, ModelNamed("m-1"), REPORTED)


NO_ANSWERS: dict[str, Json] = {
    "an error": {"error": {"message": "down"}},
    "an error beside choices": {"choices": [], "error": {"message": "down"}},
    "no choices": {"detail": "not found"},
    "a list": [],
    "a string": "down",
}


@pytest.mark.parametrize("whole", NO_ANSWERS.values(), ids=NO_ANSWERS.keys())
def test_what_is_no_answer(whole: Json) -> None:
    with pytest.raises(ProviderFault) as raised:
        ChatDecoder().document(whole)
    assert (raised.value.body, raised.value.event) == (whole, "answer")


def test_a_stream_as_the_whole_answer_it_would_have_been() -> None:
    chunks = [
        {"id": "x", "created": 5, "model": "m-1", **said(reasoning="so")},
        said(content="a"),
        called(call("c1", "look", '{"a":1}', index=0)),
        called(call("c2", "look", "{", index=1)),
        {"choices": [{"index": 1, "delta": {"content": "other"}}]},
        ended("tool_calls"),
        {"choices": [], "usage": USAGE},
        DONE,
    ]
    deltas = decoded(*chunks)
    end = deltas[-1]
    assert isinstance(end, Finished)

    def sent(id: str, arguments: str) -> Json:
        return {"id": id, "type": "function", "function": {"name": "look", "arguments": arguments}}

    assert recorded(end.envelope, content(deltas)) == {
        "id": "x",
        "created": 5,
        "model": "m-1",
        "usage": USAGE,
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {
                    "role": "assistant",
                    "content": "a",
                    "reasoning": "so",
                    "tool_calls": [sent("c1", '{"a":1}'), sent("c2", "{")],
                },
            },
            {"index": 1, "message": {"role": "assistant", "content": "other"}},
        ],
    }


THINKS: dict[str, tuple[str, str]] = {
    "an end without a beginning": ("so it is</think>\n\n Hello", "Hello"),
    "a pair is left alone": ("<think>so</think>Hello", "<think>so</think>Hello"),
    "only the first end counts": ("so</think>a</think>b", "a</think>b"),
    "a beginning alone": ("<think>so", "<think>so"),
    "neither": ("Hello", "Hello"),
    "nothing behind it": ("so</think>", ""),
}


@pytest.mark.parametrize("words, left", THINKS.values(), ids=THINKS.keys())
def test_reasoning_that_leaked_into_the_text(words: str, left: str) -> None:
    blocks: list[Block] = [Thinking("x"), Text(words, raw_item={"a": 1}, raw_format="f")]
    leaks, keeps = ChatDialect(orphan_think_close=True), ChatDialect()
    assert tidied(blocks, leaks) == [Thinking("x"), Text(left, raw_item={"a": 1}, raw_format="f")]
    assert tidied(blocks, keeps) == blocks
