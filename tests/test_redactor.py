"""redactor: the secrets in use, taken out of every text, whatever stands around them."""

from __future__ import annotations

from typing import Any

import pytest

from membrane_lite.redactor import SECRET_HEADERS, Redactor

KEY, LONGER = "sk-1234567890", "sk-1234567890-abc"

TEXTS = {
    "once": ([KEY], f"key {KEY} is wrong", "key [redacted] is wrong"),
    "as often as it stands": ([KEY], KEY + KEY, "[redacted][redacted]"),
    "not at all": ([KEY], "sk-123456789", "sk-123456789"),
    "a secret within another": ([KEY, LONGER], f"{LONGER} {KEY}", "[redacted] [redacted]"),
    "whichever was named first": ([LONGER, KEY], f"{LONGER} {KEY}", "[redacted] [redacted]"),
    "the shortest secret": (["12345678"], "a12345678b", "a[redacted]b"),
    "a placeholder is no secret": (["1234567", "none", "", None], "1234567 none", "1234567 none"),
    "what is a pattern elsewhere": (["a.c*[d](e"], "a.c*[d](e abcccde", "[redacted] abcccde"),
    "no secrets": ([], "text", "text"),
    "as JSON writes it": (['a"b\\c/d-123'], '"a\\"b\\\\c/d-123"', '"[redacted]"'),
    "as JSON may write it": (["a/b/c-1234567"], '"a\\/b\\/c-1234567"', '"[redacted]"'),
    "as a repr writes it": (['a"b\\c/d-123'], repr('a"b\\c/d-123'), "'[redacted]'"),
}


@pytest.mark.parametrize("secrets, text, redacted", TEXTS.values(), ids=TEXTS.keys())
def test_a_text(secrets: list[str | None], text: str, redacted: str) -> None:
    assert Redactor(secrets).text(text) == redacted


VALUES = {
    "a string": (KEY, "[redacted]"),
    "within lists and mappings": ({"a": [f"x{KEY}", {"b": KEY}]}, {"a": ["x[redacted]", {"b": "[redacted]"}]}),
    "a key of a mapping": ({f"x-{KEY}": 1}, {"x-[redacted]": 1}),
    "a key that is no string": ({7: KEY}, {7: "[redacted]"}),
    "a tuple": ((KEY,), ["[redacted]"]),
    "what is no text": ([None, True, 1.5], [None, True, 1.5]),
}


@pytest.mark.parametrize("value, redacted", VALUES.values(), ids=VALUES.keys())
def test_parsed_json(value: Any, redacted: Any) -> None:
    before = repr(value)
    assert Redactor([KEY]).json(value) == redacted
    assert repr(value) == before


def test_two_redactors_are_one() -> None:
    both = Redactor([KEY]) + Redactor(["proxy-password"])
    assert both.text(f"{KEY} proxy-password") == "[redacted] [redacted]"


def test_a_redactor_shows_no_secret() -> None:
    assert repr(Redactor([KEY, LONGER, KEY])) == "Redactor(2 secrets)"


def test_the_headers_that_hold_credentials() -> None:
    assert {
        "authorization",
        "proxy-authorization",
        "x-api-key",
        "api-key",
        "x-goog-api-key",
        "x-amz-security-token",
        "cookie",
    } == SECRET_HEADERS
