"""xml_assembly: what the deltas of an answer come to; its text alone is for test_xml_stream and test_xml_reading."""

from __future__ import annotations

import pytest

from membrane_lite.formatters.call_ids import call_ids
from membrane_lite.formatters.stop_sequences import StopMatcher
from membrane_lite.formatters.xml_assembly import Carried, XmlAssembler
from membrane_lite.formatters.xml_stream import TagScanner
from membrane_lite.values.content import Block, Text, Thinking
from membrane_lite.values.deltas import (
    BlockEnd,
    BlockStart,
    Delta,
    Finished,
    SignatureDelta,
    TextDelta,
    ThinkingDelta,
)
from membrane_lite.values.events import Tokens


def assembled(deltas: list[Delta], *, begun: str = "") -> tuple[str, list[Block], list[tuple[str, str]]]:
    """The text, the blocks, and the chunks with their types. begun: what the request opened for the answer."""
    scanner = TagScanner()
    scanner.push(begun)
    assembler = XmlAssembler(
        scanner=scanner,
        stops=StopMatcher(["\nAnn:"]),
        carried=Carried("", [], "thinking" if begun else None),
        tools=(),
        new_ids=lambda: call_ids(None),
        baseline=scanner.depths,
    )
    events = [event for delta in [*deltas, Finished("end_turn", "end_turn")] for event in assembler.add(delta)]
    events += assembler.end()
    chunks = [(event.content, event.meta.type) for event in events if isinstance(event, Tokens)]
    return assembler.text, assembler.content(), chunks


def thought(*pieces: str, signature: str) -> list[Delta]:
    return [
        BlockStart(0, Thinking("")),
        *(ThinkingDelta(0, piece) for piece in pieces),
        SignatureDelta(0, signature),
        BlockEnd(0),
    ]


ANSWERS: dict[str, tuple[list[Delta], str, tuple[str, list[Block], list[tuple[str, str]]]]] = {
    "thinking of the provider's stands in the text": (
        [*thought("hm", signature="s"), TextDelta(1, "Yes.")],
        "",
        (
            "<thinking>hm</thinking>\nYes.",
            [Thinking("hm", "s"), Text("Yes.")],
            [("hm", "thinking"), ("\n", "text"), ("Yes.", "text")],
        ),
    ),
    "without any words it does not": (
        [*thought("", signature="s"), TextDelta(1, "Yes.")],
        "",
        ("Yes.", [Thinking("", "s"), Text("Yes.")], [("Yes.", "text")]),
    ),
    "it goes on in the thinking that the request opened": (
        [*thought("h", "m", signature="s"), TextDelta(1, "Yes.")],
        "<thinking>",
        (
            "hm</thinking>\nYes.",
            [Thinking("hm", "s"), Text("Yes.")],
            [("h", "thinking"), ("m", "thinking"), ("\n", "text"), ("Yes.", "text")],
        ),
    ),
    "behind what the model wrote there it does not": (
        [TextDelta(0, "so</thinking>"), *thought("hm", signature="s")],
        "<thinking>",
        (
            "so</thinking><thinking>hm</thinking>\n",
            [Thinking("so"), Thinking("hm", "s")],
            [("so", "thinking"), ("hm", "thinking"), ("\n", "text")],
        ),
    ),
    "what may begin a stop is told before it": (
        [TextDelta(0, "so\nAn"), *thought("hm", signature="s"), TextDelta(1, "n: x")],
        "",
        (
            "so\nAn<thinking>hm</thinking>\nn: x",
            [Text("so\nAn"), Thinking("hm", "s"), Text("n: x")],
            [("so", "text"), ("\nAn", "text"), ("hm", "thinking"), ("\n", "text"), ("n: x", "text")],
        ),
    ),
}


@pytest.mark.parametrize(("deltas", "begun", "expected"), ANSWERS.values(), ids=ANSWERS)
def test_an_answer(deltas: list[Delta], begun: str, expected: tuple[str, list[Block], list[tuple[str, str]]]) -> None:
    assert assembled(deltas, begun=begun) == expected
