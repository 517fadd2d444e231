"""assembly: deltas in, events and blocks out. A case is an answer as it arrives and what a caller sees of it."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from membrane_lite.errors import MembraneError
from membrane_lite.formatters.assembly import NativeAssembler, PieceBuffer, arguments, with_raw_item
from membrane_lite.values.content import Block, GeneratedImage, RedactedThinking, Text, Thinking, ToolUse
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
    ThinkingDelta,
    Unknown,
    UsageReported,
)
from membrane_lite.values.events import BlockEvent, BlockInfo, BlockSeen, ChunkMeta, StreamEvent, Tokens


def begins(index: int, type: str, block: Block) -> StreamEvent:
    return BlockSeen(BlockEvent("block_start", index, BlockInfo(type)), block)


def ends(index: int, block: Block, **info: Any) -> StreamEvent:
    return BlockSeen(BlockEvent("block_complete", index, BlockInfo(**info)), block)


def text(index: int, words: str) -> StreamEvent:
    return Tokens(words, ChunkMeta("text", index))


def thought(index: int, words: str) -> StreamEvent:
    return Tokens(words, ChunkMeta("thinking", index))


def piece(index: int, id: str, name: str, words: str) -> StreamEvent:
    return Tokens(words, ChunkMeta("tool_call", index, tool_id=id, tool_name=name, tool_call_part="input"))


def run(deltas: list[Delta], tool_names: dict[str, str] | None = None) -> tuple[list[StreamEvent], list[Block]]:
    assembler = NativeAssembler(tool_names or {})
    events = [event for delta in deltas for event in assembler.add(delta)]
    return [*events, *assembler.end()], assembler.content()


SEARCH = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
CITED = {"type": "text", "citations": [{"cited_text": "x"}]}

# name: (deltas, events, blocks)
ANSWERS: dict[str, tuple[list[Delta], list[StreamEvent], list[Block]]] = {
    "nothing": ([], [], []),
    "a text in two pieces": (
        [BlockStart(0, Text("")), TextDelta(0, "Hel"), TextDelta(0, "lo"), BlockEnd(0)],
        [
            begins(0, "text", Text("")),
            text(0, "Hel"),
            text(0, "lo"),
            ends(0, Text("Hello"), type="text", content="Hello"),
        ],
        [Text("Hello")],
    ),
    "a text that began with something": (
        [BlockStart(0, Text("He")), TextDelta(0, "llo"), BlockEnd(0)],
        [begins(0, "text", Text("He")), text(0, "llo"), ends(0, Text("Hello"), type="text", content="Hello")],
        [Text("Hello")],
    ),
    "an empty text": (
        [BlockStart(0, Text("")), BlockEnd(0)],
        [begins(0, "text", Text("")), ends(0, Text(""), type="text", content="")],
        [Text("")],
    ),
    "thinking, signed in two pieces": (
        [
            BlockStart(0, Thinking("")),
            ThinkingDelta(0, "so"),
            SignatureDelta(0, "c2"),
            SignatureDelta(0, "ln"),
            BlockEnd(0),
        ],
        [
            begins(0, "thinking", Thinking("")),
            thought(0, "so"),
            ends(0, Thinking("so", "c2ln"), type="thinking", content="so"),
        ],
        [Thinking("so", "c2ln")],
    ),
    "a signature that began with the block": (
        [BlockStart(0, Thinking("", "c2")), SignatureDelta(0, "ln"), BlockEnd(0)],
        [
            begins(0, "thinking", Thinking("", "c2")),
            ends(0, Thinking("", "c2ln"), type="thinking", content=""),
        ],
        [Thinking("", "c2ln")],
    ),
    "thinking without a signature": (
        [BlockStart(0, Thinking("")), ThinkingDelta(0, "so"), BlockEnd(0)],
        [begins(0, "thinking", Thinking("")), thought(0, "so"), ends(0, Thinking("so"), type="thinking", content="so")],
        [Thinking("so", None)],
    ),
    "a stray signature is none": (
        [BlockStart(0, Text("")), SignatureDelta(0, "c2ln"), TextDelta(0, "a"), SignatureDelta(7, "x"), BlockEnd(0)],
        [begins(0, "text", Text("")), text(0, "a"), ends(0, Text("a"), type="text", content="a")],
        [Text("a")],
    ),
    "redacted thinking": (
        [BlockStart(0, RedactedThinking("b3BhcXVl")), BlockEnd(0)],
        [
            begins(0, "thinking", RedactedThinking("b3BhcXVl")),
            ends(0, RedactedThinking("b3BhcXVl"), type="thinking", content=""),
        ],
        [RedactedThinking("b3BhcXVl")],
    ),
    "a call in two pieces": (
        [BlockStart(0, ToolUse("c1", "look")), InputDelta(0, '{"at"'), InputDelta(0, ": 1}"), BlockEnd(0)],
        [
            begins(0, "tool_call", ToolUse("c1", "look")),
            piece(0, "c1", "look", '{"at"'),
            piece(0, "c1", "look", ": 1}"),
            ends(
                0,
                ToolUse("c1", "look", {"at": 1}),
                type="tool_call",
                tool_id="c1",
                tool_name="look",
                input={"at": 1},
            ),
        ],
        [ToolUse("c1", "look", {"at": 1})],
    ),
    "a call without pieces has the arguments of its start": (
        [BlockStart(0, ToolUse("c1", "look", {"at": 2})), BlockEnd(0)],
        [
            begins(0, "tool_call", ToolUse("c1", "look", {"at": 2})),
            ends(
                0, ToolUse("c1", "look", {"at": 2}), type="tool_call", tool_id="c1", tool_name="look", input={"at": 2}
            ),
        ],
        [ToolUse("c1", "look", {"at": 2})],
    ),
    "a call whose arguments are not complete": (
        [BlockStart(0, ToolUse("c1", "look")), InputDelta(0, '{"at"'), BlockEnd(0)],
        [
            begins(0, "tool_call", ToolUse("c1", "look")),
            piece(0, "c1", "look", '{"at"'),
            ends(
                0,
                ToolUse("c1", "look", {}, unparseable_input='{"at"'),
                type="tool_call",
                tool_id="c1",
                tool_name="look",
                input={},
            ),
        ],
        [ToolUse("c1", "look", {}, unparseable_input='{"at"')],
    ),
    "blocks that overlap": (
        [
            BlockStart(0, Text("")),
            BlockStart(1, ToolUse("c1", "look")),
            TextDelta(0, "a"),
            InputDelta(1, "{}"),
            BlockEnd(1),
            TextDelta(0, "b"),
            BlockEnd(0),
        ],
        [
            begins(0, "text", Text("")),
            begins(1, "tool_call", ToolUse("c1", "look")),
            text(0, "a"),
            piece(1, "c1", "look", "{}"),
            ends(1, ToolUse("c1", "look"), type="tool_call", tool_id="c1", tool_name="look", input={}),
            text(0, "b"),
            ends(0, Text("ab"), type="text", content="ab"),
        ],
        [Text("ab"), ToolUse("c1", "look")],
    ),
    "blocks that come in another order": (
        [
            BlockStart(5, Text("")),
            TextDelta(5, "b"),
            BlockEnd(5),
            BlockStart(2, Text("")),
            TextDelta(2, "a"),
            BlockEnd(2),
        ],
        [
            begins(5, "text", Text("")),
            text(5, "b"),
            ends(5, Text("b"), type="text", content="b"),
            begins(2, "text", Text("")),
            text(2, "a"),
            ends(2, Text("a"), type="text", content="a"),
        ],
        [Text("a"), Text("b")],
    ),
    "an end that never came": (
        [BlockStart(0, Text("")), TextDelta(0, "a"), BlockStart(1, ToolUse("c1", "look")), InputDelta(1, "{")],
        [
            begins(0, "text", Text("")),
            text(0, "a"),
            begins(1, "tool_call", ToolUse("c1", "look")),
            piece(1, "c1", "look", "{"),
            ends(0, Text("a"), type="text", content="a"),
            ends(
                1,
                ToolUse("c1", "look", {}, unparseable_input="{"),
                type="tool_call",
                tool_id="c1",
                tool_name="look",
                input={},
            ),
        ],
        [Text("a"), ToolUse("c1", "look", {}, unparseable_input="{")],
    ),
    "text of a block that never began": (
        [TextDelta(3, "a"), TextDelta(3, "b"), BlockEnd(3)],
        [begins(3, "text", Text("")), text(3, "a"), text(3, "b"), ends(3, Text("ab"), type="text", content="ab")],
        [Text("ab")],
    ),
    "thinking of a block that never began": (
        [ThinkingDelta(3, "a"), SignatureDelta(3, "s")],
        [
            begins(3, "thinking", Thinking("")),
            thought(3, "a"),
            ends(3, Thinking("a", "s"), type="thinking", content="a"),
        ],
        [Thinking("a", "s")],
    ),
    "arguments of no call, and the end of no block": ([InputDelta(3, "{}"), BlockEnd(4)], [], []),
    "a carrier": (
        [
            BlockStart(0, Text("", raw_item=SEARCH, raw_format="anthropic")),
            BlockEnd(0, {**SEARCH, "input": {"query": "x"}}, "anthropic"),
        ],
        [
            begins(0, "server_tool_use", Text("", raw_item=SEARCH, raw_format="anthropic")),
            ends(
                0,
                Text("", raw_item={**SEARCH, "input": {"query": "x"}}, raw_format="anthropic"),
                type="server_tool_use",
                content="",
            ),
        ],
        [Text("", raw_item={**SEARCH, "input": {"query": "x"}}, raw_format="anthropic")],
    ),
    "a carrier of a nameless item": (
        [BlockStart(0, Text("", raw_item={"id": 7}, raw_format="f")), BlockEnd(0)],
        [
            begins(0, "text", Text("", raw_item={"id": 7}, raw_format="f")),
            ends(0, Text("", raw_item={"id": 7}, raw_format="f"), type="text", content=""),
        ],
        [Text("", raw_item={"id": 7}, raw_format="f")],
    ),
    "what a text cannot say of itself": (
        [BlockStart(0, Text("")), TextDelta(0, "a"), BlockEnd(0, CITED, "anthropic")],
        [
            begins(0, "text", Text("")),
            text(0, "a"),
            ends(0, Text("a", raw_item=CITED, raw_format="anthropic"), type="text", content="a"),
        ],
        [Text("a", raw_item=CITED, raw_format="anthropic")],
    ),
    "a block of another kind": (
        [BlockStart(0, GeneratedImage("AAAA")), BlockEnd(0)],
        [
            begins(0, "generated_image", GeneratedImage("AAAA")),
            ends(0, GeneratedImage("AAAA"), type="generated_image", content=""),
        ],
        [GeneratedImage("AAAA")],
    ),
    "what stands beside the blocks is no event": (
        [
            AnswerHead({}, "req_1", None),
            ModelNamed("m"),
            UsageReported({"input_tokens": 1}),
            Unknown("later", {}),
            Finished("end_turn", "stop"),
        ],
        [],
        [],
    ),
}


@pytest.mark.parametrize("deltas, events, blocks", ANSWERS.values(), ids=ANSWERS.keys())
def test_an_answer_as_it_arrives(deltas: list[Delta], events: list[StreamEvent], blocks: list[Block]) -> None:
    assert run(deltas) == (events, blocks)


@pytest.mark.parametrize("deltas", [deltas for deltas, _, _ in ANSWERS.values()], ids=ANSWERS.keys())
def test_what_is_there_after_each_delta_is_what_an_end_there_would_give(deltas: list[Delta]) -> None:
    """At every prefix the content is that of the prefix alone, ended; asking for it changes nothing."""
    assembler = NativeAssembler({})
    for place, delta in enumerate(deltas):
        assembler.add(delta)
        assert assembler.content() == run(deltas[: place + 1])[1]
        assert assembler.content() == assembler.content()


def test_partial_content_grows() -> None:
    assembler = NativeAssembler({})
    grown = []
    for delta in (
        BlockStart(0, Thinking("")),
        ThinkingDelta(0, "so"),
        SignatureDelta(0, "s"),
        BlockEnd(0),
        BlockStart(1, ToolUse("c1", "look")),
        InputDelta(1, '{"at"'),
        InputDelta(1, ": 1}"),
    ):
        assembler.add(delta)
        grown.append(assembler.content()[-1])
    assert grown == [
        Thinking(""),
        Thinking("so"),
        Thinking("so", "s"),
        Thinking("so", "s"),
        ToolUse("c1", "look", {}),
        ToolUse("c1", "look", {}, unparseable_input='{"at"'),
        ToolUse("c1", "look", {"at": 1}),
    ]


def test_a_block_has_one_meta_for_all_its_pieces() -> None:
    events, _ = run([BlockStart(0, Text("")), TextDelta(0, "a"), TextDelta(0, "b"), BlockEnd(0)])
    metas = [event.meta for event in events if isinstance(event, Tokens)]
    assert metas[0] is metas[1]


def test_a_call_is_given_the_name_its_tool_was_declared_with() -> None:
    deltas: list[Delta] = [
        BlockStart(0, ToolUse("c1", "ns__find")),
        InputDelta(0, "{}"),
        BlockEnd(0),
        BlockStart(1, ToolUse("c2", "ns__other")),
        BlockEnd(1),
    ]
    events, blocks = run(deltas, {"ns__find": "ns:find"})
    assert blocks == [ToolUse("c1", "ns:find"), ToolUse("c2", "ns__other")]
    assert events[1] == piece(0, "c1", "ns:find", "{}")


def test_the_record_of_an_answer() -> None:
    assembler = NativeAssembler({})
    head, first, last = AnswerHead({"date": "x"}, "req_1", None), Unknown("a", 1), Unknown("b", 2)
    finished = Finished("end_turn", "stop")
    assert (assembler.record.head, assembler.record.model, assembler.record.finished) == (None, None, None)
    for delta in (
        head,
        ModelNamed("m-0"),
        ModelNamed("m-1"),
        UsageReported({"input_tokens": 9, "output_tokens": 1}),
        first,
        UsageReported({"output_tokens": 5}),
        last,
        finished,
    ):
        assembler.add(delta)
    record = assembler.record
    assert (record.head, record.model, record.finished, record.unknown) == (head, "m-1", finished, [first, last])
    assert record.counts == {"input_tokens": 9, "output_tokens": 5}


def test_what_is_no_delta_is_refused() -> None:
    with pytest.raises(MembraneError) as raised:
        NativeAssembler({}).add("hello")  # type: ignore[arg-type]
    words = "the adapter yielded a str; expected a Delta"
    assert (raised.value.type, raised.value.message) == ("unknown", words)


ARGUMENTS = {
    "an object": ('{"a": [1, null]}', {"input": {"a": [1, None]}}),
    "an empty object": ("{}", {"input": {}}),
    "null": ("null", {"input": {}}),
    "a list": ("[1]", {"input": [1]}),
    "a string": ('"x"', {"input": "x"}),
    "0": ("0", {"input": 0}),
    "cut": ('{"a": ', {"input": {}, "unparseable_input": '{"a": '}),
    "two objects": ("{}{}", {"input": {}, "unparseable_input": "{}{}"}),
    "NaN": ('{"a": NaN}', {"input": {}, "unparseable_input": '{"a": NaN}'}),
    "prose": ("look at it", {"input": {}, "unparseable_input": "look at it"}),
    "half a surrogate pair": ('{"a": "\\ud800"}', {"input": {"a": "\ufffd"}}),
    "too deep": ("[" * 100_000, {"input": {}, "unparseable_input": "[" * 100_000}),
}


@pytest.mark.parametrize("words, fields", ARGUMENTS.values(), ids=ARGUMENTS.keys())
def test_the_arguments_of_a_call(words: str, fields: dict[str, Any]) -> None:
    assert arguments(words) == fields


def test_arguments_of_white_space_are_none() -> None:
    start = BlockStart(0, ToolUse("c1", "look", {"at": 1}))
    assert run([start, InputDelta(0, " \n"), BlockEnd(0)])[1] == [ToolUse("c1", "look", {"at": 1})]


def test_an_item_is_put_on_a_copy() -> None:
    block = Text("a")
    assert with_raw_item(block, CITED, "anthropic") == Text("a", raw_item=CITED, raw_format="anthropic")
    assert block == Text("a")


# Many pieces


@pytest.mark.parametrize("count", [0, 1, 511, 512, 513, 5_000])
def test_pieces_are_joined_in_their_order(count: int) -> None:
    buffer, pieces = PieceBuffer(), [f"{number};" for number in range(count)]
    for number, piece in enumerate(pieces):
        buffer.add(piece)
        if number % 500 == 0:
            assert buffer.text() == "".join(pieces[: number + 1])
    assert buffer.text() == "".join(pieces)


def test_a_long_answer_takes_no_longer_than_its_length() -> None:
    def seconds(count: int) -> float:
        assembler = NativeAssembler({})
        assembler.add(BlockStart(0, Text("")))
        began = time.thread_time()
        for _ in range(count):
            assembler.add(TextDelta(0, "word "))
        assembler.end()
        return time.thread_time() - began

    short, long = min(seconds(5_000) for _ in range(3)), min(seconds(20_000) for _ in range(3))
    assert long < short * 4 * 2.5


def test_5000_pieces_of_arguments() -> None:
    given = {"items": [{"number": number, "text": "é" * 3} for number in range(500)]}
    words = json.dumps(given)
    size = -(-len(words) // 5_000)
    pieces: list[Delta] = [InputDelta(0, words[at : at + size]) for at in range(0, len(words), size)]
    assert run([BlockStart(0, ToolUse("c1", "look")), *pieces, BlockEnd(0)])[1] == [ToolUse("c1", "look", given)]
