"""stop_sequences: which stop ends a text, and that its pieces say the same as the whole."""

from __future__ import annotations

import pytest

from membrane_lite.formatters.stop_sequences import StopMatcher

# name: (sequences, text, start of the stop and the stop itself)
FIRST: dict[str, tuple[list[str], str, tuple[int, str] | None]] = {
    "none": (["\nAnn:"], "Ann: hi\nAnn", None),
    "the earliest, not the first listed": (["\nAnn:", "ZZ"], "A ZZ\nAnn:", (2, "ZZ")),
    "of two that begin together the shorter, whole first": (["STOPS", "STOP"], "xSTOPS", (1, "STOP")),
    "the one inside of another, whole first": (["abcdef", "cd"], "abcdef", (2, "cd")),
    "the one inside of the one inside": (["abcdef", "bcde", "cd"], "abcdef", (2, "cd")),
    "of two that end together the longer": (["cd", "bcd"], "abcd", (1, "bcd")),
    "letters that a pattern would read": (["\nA.*b:"], "\nAxb:\nA.*b:", (5, "\nA.*b:")),
    "an empty one stops nothing": ([""], "text", None),
}


@pytest.mark.parametrize(("sequences", "text", "expected"), FIRST.values(), ids=FIRST)
def test_the_first_stop(sequences: list[str], text: str, expected: tuple[int, str] | None) -> None:
    found = StopMatcher(sequences).first(text, 0)
    assert (found and (found.start(), found.group())) == expected


@pytest.mark.parametrize(("sequences", "text", "expected"), FIRST.values(), ids=FIRST)
def test_it_is_found_as_soon_as_it_is_whole(sequences: list[str], text: str, expected: tuple[int, str] | None) -> None:
    """As a server that writes a character at a time would stop."""
    stops = StopMatcher(sequences)
    found = next((found for end in range(len(text) + 1) if (found := stops.first(text[:end], 0))), None)
    assert (found and (found.start(), found.group())) == expected


def test_what_may_begin_a_stop() -> None:
    stops = StopMatcher(["\nAnn:", "\nAnna:"])
    assert [stops.partial(text, 0) for text in ("one\nAn", "one\nAnna", "one\nAnnb", "one\n", "one", "")] == [
        3,
        3,
        8,
        3,
        3,
        0,
    ]
