"""base: Value is equal by class and fields; Record becomes JSON-ready data. Deltas and events are Values."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from membrane_lite.errors import MembraneError
from membrane_lite.values.base import Value, plain
from membrane_lite.values.content import Image, Text, Thinking, ToolResultBlock, ToolUse
from membrane_lite.values.deltas import (
    AnswerHead,
    BlockEnd,
    BlockStart,
    Finished,
    InputDelta,
    ModelNamed,
    SignatureDelta,
    TextDelta,
    ThinkingDelta,
    Unknown,
    UsageReported,
)
from membrane_lite.values.events import (
    Aborted,
    BlockEvent,
    BlockInfo,
    BlockSeen,
    ChunkMeta,
    Complete,
    Failed,
    PreToolContent,
    Retrying,
    RoundAnswered,
    StreamEvent,
    Tokens,
    ToolCalls,
    UsageSeen,
    is_aborted_event,
    is_complete_event,
    is_error_event,
    is_terminal_event,
    is_tokens_event,
    is_tool_calls_event,
)
from membrane_lite.values.messages import Message
from membrane_lite.values.requests import GenerationConfig, ThinkingConfig
from membrane_lite.values.responses import AbortedResponse, Usage
from membrane_lite.values.tools import ToolResult

META = ChunkMeta("tool_call", 2, tool_id="c1", tool_name="look", tool_call_part="input")
INFO = BlockInfo("tool_call", tool_id="c1", tool_name="look", input={"a": 1})

VALUES: dict[str, tuple[Value, str]] = {
    "AnswerHead": (
        AnswerHead({"date": "x"}, "req_1", None),
        "AnswerHead(headers={'date': 'x'}, rate_limit=None, request_id='req_1')",
    ),
    "ModelNamed": (ModelNamed("m"), "ModelNamed(model='m')"),
    "BlockStart": (
        BlockStart(0, Thinking("t")),
        "BlockStart(block=Thinking(thinking='t', signature=None, raw_item=None, raw_format=None), index=0)",
    ),
    "TextDelta": (TextDelta(0, "x"), "TextDelta(index=0, text='x')"),
    "ThinkingDelta": (ThinkingDelta(0, "x"), "ThinkingDelta(index=0, text='x')"),
    "SignatureDelta": (SignatureDelta(0, "s"), "SignatureDelta(index=0, signature='s')"),
    "InputDelta": (InputDelta(0, "{"), "InputDelta(index=0, text='{')"),
    "BlockEnd": (BlockEnd(0, {"a": 1}, "f"), "BlockEnd(index=0, raw_format='f', raw_item={'a': 1})"),
    "UsageReported": (UsageReported({"input_tokens": 1}), "UsageReported(counts={'input_tokens': 1})"),
    "Unknown": (Unknown("e", {"a": 1}), "Unknown(data={'a': 1}, name='e')"),
    "Finished": (
        Finished("end_turn", "stop", raw={"a": 1}),
        "Finished(category=None, envelope=None, provider_reason='stop', raw={'a': 1}, refusal=None, "
        "stop_reason='end_turn', stop_sequence=None)",
    ),
    "ChunkMeta": (
        META,
        "ChunkMeta(block_index=2, depth=None, tool_call_part='input', tool_id='c1', tool_name='look', "
        "type='tool_call', visible=False)",
    ),
    "BlockEvent": (
        BlockEvent("block_start", 2, BlockInfo("text")),
        "BlockEvent(block=BlockInfo(content=None, input=None, is_error=None, tool_id=None, tool_name=None, "
        "type='text'), event='block_start', index=2)",
    ),
    "Tokens": (Tokens("x", META), f"Tokens(content='x', meta={META!r})"),
    "Retrying": (
        Retrying(1, 2, "refusal", "cyber"),
        "Retrying(attempt=1, category='cyber', max_attempts=2, reason='refusal')",
    ),
}


@pytest.mark.parametrize("value, shown", VALUES.values(), ids=VALUES.keys())
def test_a_value_shows_its_fields(value: Value, shown: str) -> None:
    assert repr(value) == shown


@pytest.mark.parametrize("value", [value for value, _ in VALUES.values()], ids=VALUES.keys())
def test_a_value_survives_copy_and_pickle(value: Value) -> None:
    assert copy.copy(value) == value
    assert copy.deepcopy(value) == value
    assert pickle.loads(pickle.dumps(value)) == value


@pytest.mark.parametrize("value", [value for value, _ in VALUES.values()], ids=VALUES.keys())
def test_a_value_takes_no_other_attribute(value: Value) -> None:
    with pytest.raises(AttributeError):
        setattr(value, "colour", "red")  # noqa: B010


UNEQUAL = {
    "another class with the same fields": (TextDelta(0, "x"), ThinkingDelta(0, "x")),
    "another text": (TextDelta(0, "x"), TextDelta(0, "y")),
    "another block": (TextDelta(0, "x"), TextDelta(1, "x")),
    "a tuple": (TextDelta(0, "x"), (0, "x")),
    "another answer": (Finished("end_turn", "stop", raw=1), Finished("end_turn", "stop", raw=2)),
    "an item": (BlockEnd(0), BlockEnd(0, {"a": 1}, "f")),
}


@pytest.mark.parametrize("one, other", UNEQUAL.values(), ids=UNEQUAL.keys())
def test_values_that_differ(one: Value, other: object) -> None:
    assert one != other


HASHED = {
    "TextDelta": TextDelta(0, "x"),
    "ModelNamed": ModelNamed("m"),
    "BlockEnd with an item": BlockEnd(0, {"a": 1}, "f"),
    "UsageReported": UsageReported({"input_tokens": 1}),
    "Finished with an answer": Finished("end_turn", "stop", raw={"a": 1}),
    "Unknown": Unknown("e", {"a": 1}),
    "ChunkMeta": META,
    "Tokens": Tokens("x", META),
}


@pytest.mark.parametrize("value", HASHED.values(), ids=HASHED.keys())
def test_equal_values_have_one_hash(value: Value) -> None:
    assert {value, copy.copy(value)} == {value}


def test_only_text_is_visible() -> None:
    kinds = ("text", "thinking", "tool_call", "tool_result")
    assert [kind for kind in kinds if ChunkMeta(kind, 0).visible] == ["text"]


ABORTED = AbortedResponse("timeout", "timeout_ms: 5", partial_content=[Text("a")], raw_assistant_text="a")
EVENTS: dict[str, tuple[StreamEvent, Any]] = {
    "tokens": (Tokens("x", META), is_tokens_event),
    "block": (BlockSeen(BlockEvent("block_start", 0, INFO), None), None),
    "tool-calls": (ToolCalls([], None), is_tool_calls_event),  # type: ignore[arg-type]
    "usage": (UsageSeen(Usage()), None),
    "pre-tool-content": (PreToolContent("x"), None),
    "response": (RoundAnswered({}), None),
    "retrying": (Retrying(1, 1, "refusal", None), None),
    "complete": (Complete(None), is_complete_event),  # type: ignore[arg-type]
    "aborted": (Aborted(ABORTED), is_aborted_event),
    "error": (Failed(MembraneError("server", "x")), is_error_event),
}


@pytest.mark.parametrize("word", EVENTS)
def test_an_event_is_told_by_its_type(word: str) -> None:
    event, told = EVENTS[word]
    assert event.type == word
    assert told is None or [name for name, (other, _) in EVENTS.items() if told(other)] == [word]


def test_three_events_end_a_turn() -> None:
    assert [word for word, (event, _) in EVENTS.items() if is_terminal_event(event)] == ["complete", "aborted", "error"]


def test_an_aborted_event_gives_the_fields_of_its_response() -> None:
    event = Aborted(ABORTED)
    fields = ("reason", "message", "partial_content", "raw_assistant_text", "tool_calls", "tool_results")
    assert [getattr(event, name) for name in fields] == [getattr(ABORTED, name) for name in fields]


DICTS = {
    "a block has its type first": (Text("x"), {"type": "text", "text": "x"}),
    "what is None is left out": (
        ToolUse("c1", "look"),
        {"type": "tool_use", "id": "c1", "name": "look", "input": {}},
    ),
    "what is false or empty is not": (
        ToolResultBlock("c1", "", is_error=False),
        {"type": "tool_result", "tool_use_id": "c1", "content": "", "is_error": False},
    ),
    "blocks within blocks": (
        ToolResult("c1", [Text("x"), Image({"type": "url", "url": "u"})]),
        {
            "tool_use_id": "c1",
            "content": [{"type": "text", "text": "x"}, {"type": "image", "source": {"type": "url", "url": "u"}}],
        },
    ),
    "a message has no type": (
        Message("Ann", [Text("x")]),
        {"participant": "Ann", "content": [{"type": "text", "text": "x"}], "cache_breakpoint": False},
    ),
    "a type that is a field": (
        GenerationConfig("m", thinking=ThinkingConfig(type="adaptive")),
        {"model": "m", "thinking": {"enabled": True, "type": "adaptive"}},
    ),
}


@pytest.mark.parametrize("record, data", DICTS.values(), ids=DICTS.keys())
def test_a_record_as_data(record: Any, data: dict[str, Any]) -> None:
    given = record.to_dict()
    assert (given, list(given)) == (data, list(data))


def test_plain_walks_what_is_no_record() -> None:
    assert plain({"a": (Text("x"), [None])}) == {"a": [{"type": "text", "text": "x"}, [None]]}
