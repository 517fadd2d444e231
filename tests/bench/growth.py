"""How time grows with the input, for everything that reads text of a provider's or a caller's making.

    python tests/bench/growth.py

Each row does the same work on an input and on one four times as long, five times each in one process, and prints the
quickest CPU times and their ratio: about 4 where time grows with the bytes, 16 where it grows with their square.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from membrane_lite.error_table import provider_error
from membrane_lite.formatters.tool_pairs import repair
from membrane_lite.formatters.xml_assembly import with_provided
from membrane_lite.formatters.xml_reading import parse_text
from membrane_lite.formatters.xml_stream import TagScanner
from membrane_lite.values.content import Block, Text, Thinking
from membrane_lite.wire.sse import iter_events

RUNS = 5


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def events(start: bytes, unit: bytes, count: int, size: int) -> Callable[[int], Callable[[], object]]:
    def of(times: int) -> Callable[[], object]:
        text = start + unit * (count * times) + b"\n\n"
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        return lambda: [None for _ in iter_events(pieces)]

    return of


def transcript(start: str, unit: str, count: int, size: int) -> Callable[[int], Callable[[], object]]:
    def of(times: int) -> Callable[[], object]:
        text = start + unit * (count * times)
        pieces = [text[at : at + size] for at in range(0, len(text), size)]

        def scan() -> None:
            scanner = TagScanner()
            for piece in pieces:
                scanner.feed(piece)
            scanner.flush()

        return scan

    return of


def reading(start: str, unit: str, count: int, end: str = "") -> Callable[[int], Callable[[], object]]:
    def of(times: int) -> Callable[[], object]:
        text = start + unit * (count * times) + end
        return lambda: parse_text(text, new_id=lambda: "any")

    return of


DATA = "<function_calls><parameter name='p'><![CDATA["
VALUE, CALL_END = "<function_calls><invoke name='n'><parameter name='p'>", "</parameter></invoke></function_calls>"
CALL = VALUE + CALL_END
MANY_CALLS, ANSWER = CALL * 1_000, "<result>r</result>"
CALL_AND_RESULT = CALL + "<function_results><result><stdout>r</stdout></result></function_results>"


def thoughts(times: int) -> Callable[[], object]:
    thinking = [Thinking(f"hm {number}", "signature") for number in range(2_000 * times)]
    blocks: list[Block] = [block for thought in thinking for block in (Text("so"), Thinking(thought.thinking))]
    return lambda: with_provided(blocks, thinking)


def history(times: int) -> Callable[[], object]:
    rounds: list[Any] = [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]
    for number in range(1_000 * times):
        call = {"type": "tool_use", "id": f"c{number}", "name": "look", "input": {}}
        result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": "r"}
        rounds += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    return lambda: repair(rounds)


def refusal(words: str, count: int) -> Callable[[int], Callable[[], object]]:
    def of(times: int) -> Callable[[], object]:
        body = words * (count * times)
        return lambda: provider_error(
            provider="any", status=400, headers=(), body=body, now=0.0, event=None, gateway_texts=True
        )

    return of


ROWS: dict[str, Callable[[int], Callable[[], object]]] = {
    "sse: one line, byte by byte": events(b"data: ", b"x", 50_000, 1),
    "sse: one line, in small pieces": events(b"data: ", b"x", 500_000, 16),
    "sse: many lines of one event": events(b"", b"data: x\n", 50_000, 16),
    "sse: many events, cut anywhere": events(b"", b"data: x\n\n", 50_000, 17),
    "sse: many events at once": events(b"", b"data: x\n\n", 50_000, 1 << 30),
    "xml: one attribute, in small pieces": transcript("<thinking ", "x", 250_000, 4),
    "xml: openers that never end": transcript("", "<thinking ", 25_000, 4),
    "xml: openers, one by one": transcript("", "<thinking>", 5_000, 1),
    "xml: angles, in small pieces": transcript("", "<", 100_000, 4),
    "xml: angles, at once": transcript("", "<", 250_000, 1 << 30),
    "xml: half a tag, again and again": transcript("", "</function_results", 10_000, 4),
    "xml: brackets in a section": transcript(DATA, "]", 250_000, 4),
    "xml: many sections, at once": transcript(DATA, "a]]><![CDATA[", 20_000, 1 << 30),
    "xml read: openers": reading("", "<thinking><function_calls><invoke name='n'>", 2_000),
    "xml read: openers without an end": reading("", "<invoke <thinking ", 50_000, ">"),
    "xml read: openers in a value": reading(VALUE, "</param><parameter name='p'>", 5_000, CALL_END),
    "xml read: many sections": reading(DATA, "a]]><![CDATA[", 50_000),
    "xml read: calls and results": reading("", CALL_AND_RESULT, 500),
    "xml read: results of many calls": reading(MANY_CALLS + "<function_results>", ANSWER, 1_000, "</function_results>"),
    "xml: thinking beside the text": thoughts,
    "tool pairs: a long history": history,
    "errors: words of a pattern": refusal("invalid signature ", 10_000),
    "errors: tags without an end": refusal("<title", 30_000),
    "errors: waits without a unit": refusal("retry after 1 ", 12_000),
}


def main() -> None:
    print(f"{'':<34}{'ms':>10}{'ms, x4':>10}{'ratio':>8}")
    for name, work in ROWS.items():
        short, long = (min(seconds(work(times)) for _ in range(RUNS)) for times in (1, 4))
        print(f"{name:<34}{short * 1e3:>10.1f}{long * 1e3:>10.1f}{long / short:>8.1f}", flush=True)


if __name__ == "__main__":
    main()
