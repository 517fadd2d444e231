"""wire.sse: the standard's rules one by one, under every cutting; then the shared corpus of streams."""

from __future__ import annotations

import base64
import copy
import hashlib
import pickle
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from shared_data import shared_json

from membrane_lite.errors import MembraneError
from membrane_lite.wire.sse import LONGEST_LINE, SseEvent, iter_events


def event(data: str, event: str = "message", id: str = "", retry: int | None = None) -> SseEvent:
    return SseEvent(event, data, id, retry)


RULES = {
    "data alone is a message": (b"data: a\n\n", [event("a")]),
    "event names it": (b"event: ping\ndata: {}\n\n", [event("{}", "ping")]),
    "an empty event name is message": (b"event: \ndata: a\n\n", [event("a")]),
    "the last event line wins, and only for its block": (
        b"event: a\nevent: b\ndata: 1\n\ndata: 2\n\n",
        [event("1", "b"), event("2")],
    ),
    "event after data": (b"data: 1\nevent: e\n\n", [event("1", "e")]),
    "data lines are joined by LF": (b"data: a\ndata: b\ndata:\n\n", [event("a\nb\n")]),
    "event and two data lines": (b"event: e\ndata: a\ndata: b\n\n", [event("a\nb", "e")]),
    "one space after the colon is dropped": (b"data:a\n\ndata:  b\n\n", [event("a"), event(" b")]),
    "a tab is not": (b"data:\ta\n\n", [event("\ta")]),
    "trailing space is kept": (b"data: a \n\n", [event("a ")]),
    "only the first colon splits": (b'event: a:b\ndata: {"k": "v"}\n\n', [event('{"k": "v"}', "a:b")]),
    "empty data is an event": (b"data\n\ndata:\n\ndata\ndata\n\n", [event(""), event(""), event("\n")]),
    "no data is none, and its event name is forgotten": (b"event: x\n\ndata: a\n\n", [event("a")]),
    "comments are ignored": (b": hello\ndata: a\n:\ndata: b\n\n: bye\n\n", [event("a\nb")]),
    "unknown fields are ignored, names are exact": (
        b"Data: x\ndata : y\n data: z\ndata\0: w\ndata: a\n\n",
        [event("a")],
    ),
    "a line of one space is not blank": (b"data: a\n \ndata: b\n\n", [event("a\nb")]),
    "id stays in force": (
        b"id: 1\ndata: a\n\ndata: b\n\nid: 2\n\ndata: c\n\nid\ndata: d\n\n",
        [event("a", id="1"), event("b", id="1"), event("c", id="2"), event("d")],
    ),
    "an id with NUL is ignored": (
        b"id: 1\ndata: a\n\nid: \x002\ndata: b\n\n",
        [event("a", id="1"), event("b", id="1")],
    ),
    "retry is told once, with the next event": (
        b"retry: 10\n\ndata: a\n\ndata: b\n\n",
        [event("a", retry=10), event("b")],
    ),
    "the last good retry wins": (b"retry: 1\nretry: 20\nretry: x\ndata: a\n\n", [event("a", retry=20)]),
    "retry is ASCII digits only": (
        "retry: -1\nretry: 1.5\nretry:\nretry:  7\nretry: +5\nretry: 1e3\nretry: ٣\nretry: ²\ndata: a\n\n".encode(),
        [event("a")],
    ),
    "retry may be huge": (b"retry: 1" + b"0" * 600 + b"\ndata: a\n\n", [event("a", retry=10**600)]),
    "retry too long for int() is ignored": (b"retry: " + b"9" * 5000 + b"\ndata: a\n\n", [event("a")]),
    "lines end at CR LF": (b"event: e\r\ndata: a\r\n\r\ndata: b\r\n\r\n", [event("a", "e"), event("b")]),
    "lines end at CR": (b"event: e\rdata: a\r\rdata: b\r\r", [event("a", "e"), event("b")]),
    "lines end at any of them": (b"data: a\r\ndata: b\ndata: c\r\r\ndata: d\n\r\n", [event("a\nb\nc"), event("d")]),
    "LF CR is two line ends": (b"data: a\n\rdata: b\n\n", [event("a"), event("b")]),
    "CR CR LF is two line ends": (b"data: a\r\r\ndata: b\n\n", [event("a"), event("b")]),
    "many blank lines": (b"\n\n\n\r\n\rdata: a\n\n\n\n\ndata: b\n\n\n", [event("a"), event("b")]),
    "lines end at nothing else": (
        'data: "\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e"\n\n'.encode(),
        [event('"\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e"')],
    ),
    "one byte order mark at the start is dropped": (b"\xef\xbb\xbfdata: a\n\n", [event("a")]),
    "a second one is not": (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\ndata: b\n\n", [event("b")]),
    "nor a later one": (b"data: \xef\xbb\xbfa\n\n\xef\xbb\xbfdata: b\n\n", [event("\ufeffa")]),
    "characters": ("event: é\ndata: é日😀\n\n".encode(), [event("é日😀", "é")]),
    "bad UTF-8 becomes U+FFFD and eats no line end": (
        b"data: a\xe2\x82\ndata: \xc0\xaf\xed\xa0\x80\n\n",
        [event("a\ufffd\n" + "\ufffd" * 5)],
    ),
    "an event without its blank line is dropped": (b"data: a\n\nid: 9\ndata: b\n", [event("a")]),
    "nothing": (b"", []),
    "a byte order mark and nothing": (b"\xef\xbb\xbf", []),
}


def cuttings(text: bytes) -> Iterator[list[bytes]]:
    """Whole; 1, 2, 3 and 7 bytes a piece; and in two at every place, with an empty piece between."""
    yield [text]
    for size in (1, 2, 3, 7):
        yield [text[at : at + size] for at in range(0, len(text), size)]
    if len(text) < 200:
        yield from ([text[:at], b"", text[at:]] for at in range(len(text)))


@pytest.mark.parametrize("text, events", RULES.values(), ids=RULES.keys())
def test_rule_under_every_cutting(text: bytes, events: list[SseEvent]) -> None:
    for pieces in cuttings(text):
        assert list(iter_events(pieces)) == events


UNTERMINATED = {
    "a line end is there": (b"data: a\n\nevent: e\ndata: b\n", [event("a"), event("b", "e")]),
    "no line end": (b"data: a\n\ndata: [DONE]", [event("a"), event("[DONE]")]),
    "CR": (b"data: a\r", [event("a")]),
    "CR LF": (b"id: 1\r\ndata: a\r\n", [event("a", id="1")]),
    "after a byte order mark": (b"\xef\xbb\xbfdata: a", [event("a")]),
    "without data": (b"data: a\n\nevent: e\n", [event("a")]),
    "a terminated stream has no more": (b"data: a\n\n", [event("a")]),
}


@pytest.mark.parametrize("text, events", UNTERMINATED.values(), ids=UNTERMINATED.keys())
def test_keep_unterminated(text: bytes, events: list[SseEvent]) -> None:
    for pieces in cuttings(text):
        assert list(iter_events(pieces, keep_unterminated=True)) == events


PROMPT = {
    "LF": [b"data: a\n\n", b"data: b\n\n"],
    "CR LF": [b"data: a\r\n\r\n", b"data: b\r\n\r\n"],
    "CR, whose LF may still come": [b"data: a\r\r", b"\ndata: b\r\r"],
    "CR LF, cut before the last LF": [b"data: a\r\n\r", b"\ndata: b\r\n\r"],
}


@pytest.mark.parametrize("chunks", PROMPT.values(), ids=PROMPT.keys())
def test_an_event_waits_for_no_byte_after_its_blank_line(chunks: list[bytes]) -> None:
    asked: list[bytes] = []

    def feed() -> Iterator[bytes]:
        for chunk in chunks:
            asked.append(chunk)
            yield chunk

    seen = [(found.data, len(asked)) for found in iter_events(feed())]
    assert seen == [("a", 1), ("b", 2)]


def pieces_of(parts: Sequence[tuple[bytes, int]], size: int) -> Iterator[bytes]:
    text = b"".join(part * times for part, times in parts)
    return (text[at : at + size] for at in range(0, len(text), size))


ENDINGS = [
    pytest.param(1 << 20, b"\n\n", id="ended, in pieces"),
    pytest.param(1 << 20, b"", id="open, in pieces", marks=pytest.mark.slow),
    pytest.param(LONGEST_LINE + 100, b"\n\n", id="ended, whole", marks=pytest.mark.slow),
    pytest.param(LONGEST_LINE + 100, b"", id="open, whole", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("size, end", ENDINGS)
def test_a_line_may_be_64_mib_and_no_longer(size: int, end: bytes) -> None:
    longest = LONGEST_LINE - len(b"data: ")
    first = [(b"data: a\n\ndata: ", 1)]
    kept = list(iter_events(pieces_of([*first, (b"x", longest), (end, 1)], size), keep_unterminated=True))
    assert [len(found.data) for found in kept] == [1, longest]

    events = iter_events(pieces_of([*first, (b"x", longest + 1), (end, 1)], size))
    assert next(events) == event("a")
    with pytest.raises(MembraneError, match="longer than 67108864 bytes") as raised:
        next(events)
    assert raised.value.type == "server"


@pytest.mark.slow
def test_a_block_of_short_lines_may_be_longer() -> None:
    block = [(b"data: " + b"x" * 1018 + b"\n", 66_000), (b"\n", 1)]
    assert [len(found.data) for found in iter_events(pieces_of(block, 1 << 20))] == [66_000 * 1019 - 1]


def test_an_event_is_a_value() -> None:
    one = event("a", "e", "1", 5)
    assert one == event("a", "e", "1", 5)
    assert one != event("b", "e", "1", 5)
    assert copy.copy(one) == pickle.loads(pickle.dumps(one)) == one
    assert repr(one) == "SseEvent(data='a', event='e', id='1', retry=5)"


def corpus() -> list[Any]:
    cases: list[Any] = shared_json("conformance/sse.json")["cases"]
    return cases


def cut(text: bytes, offsets: Any) -> Iterator[bytes]:
    if offsets == "each":
        offsets = range(1, len(text))
    edges = [0, *offsets, len(text)]
    return (text[start:end] for start, end in zip(edges, edges[1:]))


def told(found: SseEvent, expected: dict[str, Any]) -> dict[str, Any]:
    """The event in the words the corpus uses for this one: large data is given by length and hash."""
    fields = {"event": found.event, "id": found.id, "retry": found.retry}
    if "data" in expected:
        return {**fields, "data": found.data}
    digest = hashlib.sha256(found.data.encode("utf-8", "surrogatepass")).hexdigest()
    return {**fields, "data_sha256": digest, "data_chars": len(found.data)}


def test_the_corpus_under_each_of_its_cuttings() -> None:
    for case in corpus():
        parts = case.get("input_parts") or [{"base64": case["input_base64"], "repeat": 1}]
        text = b"".join(base64.b64decode(part["base64"]) * part["repeat"] for part in parts)
        for name, offsets in case["chunkings"].items():
            found = list(iter_events(cut(text, offsets)))
            given = [told(one, wanted) for one, wanted in zip(found, case["expected"])]
            assert (case["name"], name, len(found), given) == (
                case["name"],
                name,
                len(case["expected"]),
                case["expected"],
            )
