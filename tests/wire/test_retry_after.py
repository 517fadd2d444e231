"""wire.retry_after: every source of a stated wait, their order, and what is no hint; then the shared corpus."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from shared_data import shared_json

from membrane_lite.wire.retry_after import rate_limits, stated_wait_ms

NOW = 1_772_366_400.0  # Sun, 01 Mar 2026 12:00:00 GMT

HEADERS = {
    "whole seconds": ({"retry-after": "30"}, 30_000),
    "zero is a wait": ({"Retry-After": "0"}, 0),
    "spaces around": ({"RETRY-AFTER": "  5 "}, 5_000),
    "a fraction": ({"retry-after": "1.5"}, 1_500),
    "a fraction of a millisecond rounds up": ({"retry-after": "1.2341"}, 1_235),
    "no binary fraction comes in": ({"retry-after": "1.1"}, 1_100),
    "twenty digits, exactly": ({"retry-after": "99999999999999999999"}, 99_999_999_999_999_999_999_000),
    "milliseconds": ({"retry-after-ms": "250"}, 250),
    "milliseconds win over seconds": ({"retry-after": "2", "retry-after-ms": "1500"}, 1_500),
    "bad milliseconds hide no seconds": ({"retry-after": "2", "retry-after-ms": "-1"}, 2_000),
    "a date": ({"retry-after": "Sun, 01 Mar 2026 12:00:07 GMT"}, 7_000),
    "a date of RFC 850": ({"retry-after": "Sunday, 01-Mar-26 12:01:30 GMT"}, 90_000),
    "a date of asctime is UTC": ({"retry-after": "Sun Mar  1 13:00:00 2026"}, 3_600_000),
    "a month that is none": ({"retry-after": "Sun, 01 Mrz 2026 12:00:07 GMT"}, None),
    "a date of the last century": ({"retry-after": "Sunday, 06-Nov-94 08:49:37 GMT"}, 0),
    "a date in the past": ({"retry-after": "Sun, 01 Mar 2026 11:59:00 GMT"}, 0),
    "31 June is no date": ({"retry-after": "Tue, 31 Jun 2026 12:00:30 GMT"}, None),
    "25 o'clock is no time": ({"retry-after": "Sun, 01 Mar 2026 25:00:00 GMT"}, None),
    "an exhausted limit": ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "6m0.5s"}, 360_500),
    "ms is not minutes": ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "20ms"}, 20),
    "one day and more": ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1d2h3m4s"}, 93_784_000),
    "a limit without a name": ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "12"}, 12_000),
    "an instant in seconds": ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1772366405"}, 5_000),
    "an instant in milliseconds": ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1772366405250"}, 5_250),
    "a limit that is not exhausted": ({"x-ratelimit-remaining-tokens": "9", "x-ratelimit-reset-tokens": "2s"}, None),
    "a limit whose rest is unknown": ({"x-ratelimit-reset-tokens": "2s"}, None),
    "the longest of two": (
        {
            "x-ratelimit-remaining-requests": "0",
            "x-ratelimit-reset-requests": "1s",
            "x-ratelimit-remaining-tokens": "0",
            "x-ratelimit-reset-tokens": "5s",
        },
        5_000,
    ),
    "retry-after wins over it": (
        {"retry-after": "1", "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "9s"},
        1_000,
    ),
    "none": ({}, None),
}

NO_NUMBERS = [
    "",
    "-5",
    "soon",
    "30s",
    "30 seconds",
    "NaN",
    "inf",
    "1e3",
    "1_000",
    "٣٠",
    "5, 10",
    "0x10",
    "5.",
    ".5",
    ":",
]


@pytest.mark.parametrize("headers, wait_ms", HEADERS.values(), ids=HEADERS.keys())
def test_headers(headers: dict[str, str], wait_ms: int | None) -> None:
    assert stated_wait_ms(429, list(headers.items()), None, NOW) == wait_ms
    assert stated_wait_ms(429, headers, None, NOW) == wait_ms


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_retry_after_that_is_no_hint(value: str) -> None:
    assert stated_wait_ms(429, [("retry-after", value)], None, NOW) is None


def test_of_two_lines_the_longer_wait_counts() -> None:
    assert stated_wait_ms(503, [("retry-after", "5"), ("Retry-After", "10")], None, NOW) == 10_000


def test_a_date_is_measured_from_the_fraction_of_now() -> None:
    header = [("retry-after", "Sun, 01 Mar 2026 12:00:30 GMT")]
    assert [stated_wait_ms(429, header, None, NOW + late) for late in (0.25, 0.1)] == [29_750, 29_900]


def gemini(delay: object) -> dict[str, Any]:
    details = [{"@type": "type.googleapis.com/google.rpc.QuotaFailure"}, {"retryDelay": delay}]
    return {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "details": details}}


BODIES = {
    "RetryInfo": (gemini("34.074824224s"), 34_075),
    "RetryInfo in a list": ([gemini("17s")], 17_000),
    "RetryInfo without a unit": (gemini("17"), None),
    "RetryInfo, negative": (gemini("-3s"), None),
    "RetryInfo, a number": (gemini(3), None),
    "details of another form": ({"error": {"details": "n/a"}}, None),
    "milliseconds": ({"retry_after_ms": 1500}, 1_500),
    "seconds": ({"retry_after": 2.5}, 2_500),
    "seconds as text": ({"retry_after": "2.5"}, 2_500),
    "seconds in the error": ({"error": {"retry_after": 7}}, 7_000),
    "seconds in a failed response": ({"type": "response.failed", "response": {"error": {"retryAfter": 7}}}, 7_000),
    "seconds of a gateway": ({"error": {"metadata": {"retry_after": 3}}}, 3_000),
    "milliseconds win over seconds": ({"retry_after": 2, "retry_after_ms": 1}, 1),
    "negative": ({"retry_after": -1}, None),
    "infinite": ({"retry_after": float("inf")}, None),
    "no number": ({"retry_after": float("nan")}, None),
    "beyond any float": ({"retry_after": 1e308}, None),
    "a large number, exactly": ({"retry_after": 99_999_999_999_999_999_999}, 99_999_999_999_999_999_999_000),
    "true is no number": ({"retry_after": True}, None),
    "prose: seconds": ({"error": {"message": "Please retry after 30 seconds."}}, 30_000),
    "prose: a second": ({"error": {"message": "Try again in 1 second"}}, 1_000),
    "prose: a fraction": ({"error": {"message": "Limit reached. Please try again in 1.5s. See"}}, 1_500),
    "prose: minutes and seconds": ({"message": "try again in 6m0s"}, 360_000),
    "prose: minutes": ({"detail": "Retry after 2 minutes"}, 120_000),
    "prose: milliseconds": ({"error": "Please retry in 20ms"}, 20),
    "prose: the word milliseconds": ({"error": "retry after 20 milliseconds"}, 20),
    "prose: a fraction of a millisecond": ({"error": "Please retry in 34.0748s."}, 34_075),
    "prose: of the upstream": ({"error": {"message": "x", "metadata": {"raw": "retry in 5s"}}}, 5_000),
    "prose: text alone": ("<p>Please retry after 10 seconds</p>", 10_000),
    "prose without a unit": ({"error": {"message": "retry after 30"}}, None),
    "prose with another unit": ({"error": {"message": "retry after 30 requests"}}, None),
    "prose: a word that starts like a unit": ({"error": {"message": "retry after 30 something"}}, None),
    "prose loses to a field": ({"error": {"message": "retry in 5s", "retry_after": 1}}, 1_000),
    "an empty list": ([], None),
    "a number": (7, None),
}


@pytest.mark.parametrize("body, wait_ms", BODIES.values(), ids=BODIES.keys())
def test_bodies(body: Any, wait_ms: int | None) -> None:
    assert stated_wait_ms(429, [], body, NOW) == wait_ms


PROSE_STATUS = {None: 5_000, 200: None, 400: None, 401: None, 429: 5_000, 500: 5_000, 529: 5_000}


def test_prose_counts_for_rate_limits_and_failures_of_the_server() -> None:
    body = {"error": {"message": "try again in 5s"}}
    assert {status: stated_wait_ms(status, [], body, NOW) for status in PROSE_STATUS} == PROSE_STATUS


ORDER = [
    ({"retry-after-ms": "1"}, 1),
    ({"retry-after": "2"}, 2_000),
    (gemini("3s"), 3_000),
    ({"retry_after_ms": 4}, 4),
    ({"retry_after": 5}, 5_000),
    ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "6"}, 6_000),
    ({"message": "try again in 7s"}, 7_000),
]


@pytest.mark.parametrize("first", range(len(ORDER)))
def test_the_first_source_that_states_a_wait_wins(first: int) -> None:
    headers: dict[str, str] = {}
    body: dict[str, Any] = {}
    for source, _ in ORDER[first:]:
        (headers if any("-" in name for name in source) else body).update(source)  # type: ignore[arg-type]
    assert stated_wait_ms(429, headers, body, NOW) == ORDER[first][1]


def test_an_answer_that_is_no_error_states_no_wait() -> None:
    assert stated_wait_ms(200, [("retry-after", "5")], {"retry_after": 5}, NOW) is None


LIMITS = {
    "durations": (
        {
            "x-ratelimit-limit-requests": "60",
            "X-RateLimit-Remaining-Requests": "59",
            "x-ratelimit-reset-requests": "1s",
            "x-ratelimit-limit-tokens": "150000",
            "x-ratelimit-remaining-tokens": "149984",
            "x-ratelimit-reset-tokens": "2m59.56s",
        },
        {
            "requests": {"limit": 60, "remaining": 59, "reset_ms": 1_000},
            "tokens": {"limit": 150_000, "remaining": 149_984, "reset_ms": 179_560},
        },
    ),
    "instants": (
        {
            "anthropic-ratelimit-requests-limit": "50",
            "anthropic-ratelimit-requests-remaining": "49",
            "anthropic-ratelimit-requests-reset": "2026-03-01T12:00:01Z",
            "anthropic-ratelimit-input-tokens-remaining": "7000",
            "anthropic-ratelimit-output-tokens-reset": "2026-03-01T14:00:02.5+02:00",
            "anthropic-ratelimit-tokens-reset": "2026-03-01T11:00:00Z",
        },
        {
            "requests": {"limit": 50, "remaining": 49, "reset_ms": 1_000},
            "input_tokens": {"remaining": 7_000},
            "output_tokens": {"reset_ms": 2_500},
            "tokens": {"reset_ms": 0},
        },
    ),
    "a limit without a name counts requests": ({"x-ratelimit-limit": "5"}, {"requests": {"limit": 5}}),
    "what cannot be read is left out": (
        {
            "x-ratelimit-limit-requests": "many",
            "x-ratelimit-reset-tokens": "2026-02-30T00:00:00Z",
            "x-ratelimit-remaining-tokens": "3",
        },
        {"tokens": {"remaining": 3}},
    ),
    "none": ({"retry-after": "5"}, None),
}


@pytest.mark.parametrize("headers, limits", LIMITS.values(), ids=LIMITS.keys())
def test_rate_limits(headers: dict[str, str], limits: dict[str, dict[str, int]] | None) -> None:
    assert rate_limits(list(headers.items()), NOW) == limits


def test_the_corpus() -> None:
    for case in shared_json("conformance/retry_after.json")["cases"]:
        now = datetime.fromisoformat(case["now"].replace("Z", "+00:00")).timestamp()
        wait_ms = stated_wait_ms(case["status"], case["headers"], case["body"], now)
        assert wait_ms in [case["expected_ms"], *case.get("also_acceptable", [])], case["name"]
