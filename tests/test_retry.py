"""retry: the schedules of the failure classes, what a stated wait does, and the class of a failure."""

from __future__ import annotations

from typing import Any

import pytest

from membrane_lite.errors import MembraneError
from membrane_lite.retry import GiveUp, Retry, classify_failure, retry_decision, schedules
from membrane_lite.values.options import OverloadedRetry, RetryConfig

SPENT = GiveUp("attempts_spent")
TOO_LONG = GiveUp("stated_wait_too_long")

DECISIONS = {
    "an overload waits at least half of its schedule": (("overloaded", 1, None, 0.0), Retry(5_000)),
    "and at most all of it": (("overloaded", 1, None, 0.9999), Retry(9_999)),
    "its schedule doubles": (("overloaded", 2, None, 0.5), Retry(15_000)),
    "the sixth wait of an overload is capped": (("overloaded", 6, None, 0.0), Retry(150_000)),
    "the seventh overload is the last": (("overloaded", 7, None, 0.0), SPENT),
    "a rate limit waits a second, the dice do not matter": (("rate_limit", 1, None, 0.0), Retry(1_000)),
    "then two, four, eight": (("rate_limit", 4, None, 0.9), Retry(8_000)),
    "the fifth rate limit is the last": (("rate_limit", 5, None, 0.5), SPENT),
    "another failure waits a second": (("transient", 1, None, 0.0), Retry(1_000)),
    "then two": (("transient", 2, None, 0.9), Retry(2_000)),
    "the third is the last": (("transient", 3, None, 0.5), SPENT),
    "a deadline is not sent again": (("deadline", 1, None, 0.5), SPENT),
    "a fatal failure is not sent again": (("fatal", 1, None, 0.5), SPENT),
    "not even where it states a wait": (("fatal", 1, 10, 0.5), SPENT),
    "a stated wait lengthens the backoff": (("transient", 1, 7_000, 0.5), Retry(7_000)),
    "a short stated wait does not shorten it": (("rate_limit", 3, 10, 0.0), Retry(4_000)),
    "a stated wait of 0 does not shorten it": (("transient", 1, 0, 0.5), Retry(1_000)),
    "a minute is waited": (("rate_limit", 1, 60_000, 0.0), Retry(60_000)),
    "a millisecond more is not": (("rate_limit", 1, 60_001, 0.0), TOO_LONG),
    "of an overload five minutes are waited": (("overloaded", 1, 300_000, 0.0), Retry(300_000)),
    "a millisecond more than that is not": (("overloaded", 1, 300_001, 0.0), TOO_LONG),
    "spent attempts are named first": (("transient", 3, 10**24, 0.5), SPENT),
}


@pytest.mark.parametrize("given, decision", DECISIONS.values(), ids=DECISIONS.keys())
def test_retry_decision(given: Any, decision: Retry | GiveUp) -> None:
    failure_class, tries, stated_ms, draw = given
    assert retry_decision(failure_class, tries, retry_after_ms=stated_ms, draw=draw) == decision


def test_an_overload_waits_five_to_ten_minutes_in_all() -> None:
    def total(draw: float) -> int:
        decisions = [retry_decision("overloaded", tries, draw=draw) for tries in range(1, 7)]
        return sum(decision.wait_ms for decision in decisions if isinstance(decision, Retry))

    assert (total(0.0), total(1.0)) == (305_000, 610_000)


CONFIGS = {
    "more attempts for every class": (
        RetryConfig(max_retries=9),
        {"overloaded": 9, "rate_limit": 9, "transient": 9, "deadline": 1, "fatal": 1},
    ),
    "fewer attempts": (
        RetryConfig(max_retries=1),
        {"overloaded": 7, "rate_limit": 5, "transient": 1, "deadline": 1, "fatal": 1},
    ),
    "overloads alone": (
        RetryConfig(overloaded=OverloadedRetry(max_retries=20)),
        {"overloaded": 20, "rate_limit": 5, "transient": 3, "deadline": 1, "fatal": 1},
    ),
    "no policy for overloads": (
        RetryConfig(overloaded=OverloadedRetry(max_retries=0)),
        {"overloaded": 3, "rate_limit": 5, "transient": 3, "deadline": 1, "fatal": 1},
    ),
}


@pytest.mark.parametrize("config, requests", CONFIGS.values(), ids=CONFIGS.keys())
def test_requests_of_each_class(config: RetryConfig, requests: dict[str, int]) -> None:
    assert {name: schedule.requests for name, schedule in schedules(config).items()} == requests


NO_OVERLOADS = RetryConfig(overloaded=OverloadedRetry(max_retries=0))
LONG_CAP = RetryConfig(max_retry_delay_ms=90_000)
TENFOLD = RetryConfig(retry_delay_ms=100, backoff_multiplier=10, max_retry_delay_ms=5_000, max_retries=10)
ENDLESS = RetryConfig(max_retries=10**9, backoff_multiplier=2)
FLAT = RetryConfig(max_retries=10**9, backoff_multiplier=1)
FRACTION = RetryConfig(retry_delay_ms=1_000, backoff_multiplier=1.5)

NUMBERS = {
    "without their policy overloads follow the base schedule": (NO_OVERLOADS, "overloaded", 2, None, Retry(2_000)),
    "their stated waits too": (NO_OVERLOADS, "overloaded", 1, 61_000, TOO_LONG),
    "a cap over a minute is the longest stated wait": (LONG_CAP, "transient", 1, 90_000, Retry(90_000)),
    "and no longer one": (LONG_CAP, "transient", 1, 90_001, TOO_LONG),
    "a cap under a minute is not": (TENFOLD, "transient", 1, 60_000, Retry(60_000)),
    "another multiplier": (TENFOLD, "transient", 2, None, Retry(1_000)),
    "another cap": (TENFOLD, "transient", 3, None, Retry(5_000)),
    "a fraction is cut to whole milliseconds": (FRACTION, "rate_limit", 4, None, Retry(3_375)),
    "a hundred million tries": (ENDLESS, "transient", 10**8, None, Retry(30_000)),
    "a hundred million tries of one length": (FLAT, "transient", 10**8, None, Retry(1_000)),
}


@pytest.mark.parametrize("config, failure_class, tries, stated_ms, decision", NUMBERS.values(), ids=NUMBERS.keys())
def test_numbers_of_ones_own(
    config: RetryConfig, failure_class: Any, tries: int, stated_ms: int | None, decision: Retry | GiveUp
) -> None:
    assert retry_decision(failure_class, tries, retry_after_ms=stated_ms, config=config) == decision


def test_a_wait_is_a_whole_number() -> None:
    decision = retry_decision("overloaded", 1, draw=0.123456789)
    assert isinstance(decision, Retry)
    assert (decision.wait_ms, type(decision.wait_ms)) == (5_617, int)


class AbortError(Exception):
    pass


CLASSES = {
    "529": (MembraneError("server", "Overloaded", http_status=529), "overloaded"),
    "the word 529, without a status": (MembraneError("server", "got a 529 here"), "overloaded"),
    "the token, without a status": (MembraneError("server", "type overloaded_error"), "overloaded"),
    "the word overloaded is not enough": (MembraneError("server", "we are overloaded"), "transient"),
    "nor are digits inside a number": (MembraneError("server", "id 15290"), "transient"),
    "a status in hand decides": (MembraneError("server", "overloaded_error", http_status=503), "transient"),
    "words never make a failure retryable": (MembraneError("unknown", "overloaded_error"), "fatal"),
    "429": (MembraneError("rate_limit", "slow down", http_status=429), "rate_limit"),
    "a rate limit without a status": (MembraneError("rate_limit", "slow down"), "rate_limit"),
    "a spent quota": (MembraneError("rate_limit", "pay", http_status=429, retryable=False), "fatal"),
    "500": (MembraneError("server", "oops", http_status=500), "transient"),
    "a broken connection": (MembraneError("network", "reset"), "transient"),
    "the provider's 408": (MembraneError("timeout", "too slow", http_status=408), "transient"),
    "a timeout of ours": (MembraneError("timeout", "no byte for 600000 ms"), "deadline"),
    "a class that is set wins": (MembraneError("timeout", "connect", failure_class="transient"), "transient"),
    "also over retryable": (MembraneError("timeout", "x", retryable=False, failure_class="deadline"), "deadline"),
    "a bad request": (MembraneError("invalid_request", "no", http_status=400), "fatal"),
    "an abort": (MembraneError("abort", "stop"), "fatal"),
    "a mapping": ({"type": "server", "message": "x", "retryable": True, "http_status": 529}, "overloaded"),
    "a mapping that leaves retryable out": ({"type": "rate_limit", "message": "x"}, "rate_limit"),
    "an empty mapping": ({}, "fatal"),
    "a mapping with a class": ({"type": "timeout", "failure_class": "deadline"}, "deadline"),
    "a reset connection": (ConnectionResetError(104, "reset"), "transient"),
    "a timeout": (TimeoutError("timed out"), "deadline"),
    "an exception that tells of a rate limit": (RuntimeError("HTTP 429"), "rate_limit"),
    "an exception that tells of an overload": (RuntimeError("overloaded_error"), "overloaded"),
    "another exception": (ValueError("rated maximum"), "fatal"),
    "an exception named AbortError": (AbortError("stop"), "fatal"),
}


@pytest.mark.parametrize("error, failure_class", CLASSES.values(), ids=CLASSES.keys())
def test_classify_failure(error: Any, failure_class: str) -> None:
    assert classify_failure(error) == failure_class


@pytest.mark.parametrize(
    "error", [row[0] for row in CLASSES.values() if isinstance(row[0], MembraneError)], ids=lambda error: str(error)
)
def test_an_error_and_its_dict_are_of_one_class(error: MembraneError) -> None:
    assert classify_failure(error.to_dict()) == classify_failure(error)
