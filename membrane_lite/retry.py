"""When a failed request may be sent again, and after how long. No clock, no sleep, no dice.

    failure_class = classify_failure(error)
    decision = retry_decision(failure_class, tries, retry_after_ms=error.retry_after_ms, draw=random.random())

A retry layer of your own may call both with its own numbers; this package's loop does the same. Source: README,
"Retries".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from .error_table import classify_exception
from .errors import RETRYABLE_BY_TYPE, MembraneError
from .values.base import Value
from .values.options import RetryConfig

if TYPE_CHECKING:
    from .errors import FailureClass

# A wait that a provider states is waited up to here, or up to the schedule's cap where that is longer.
LONGEST_STATED_WAIT_MS: Final = 60_000

FEWEST_RATE_LIMIT_REQUESTS: Final = 5

# How an overload may say its name where no status says it; the word "overloaded" alone may mean anything.
OVERLOADED_MESSAGE: Final = re.compile(r"\b529\b|\boverloaded_error\b", re.IGNORECASE)

DEFAULT_CONFIG: Final = RetryConfig()


class Retry(Value):
    """Send the request again, after this wait."""

    __slots__ = ("wait_ms",)

    def __init__(self, wait_ms: int) -> None:
        self.wait_ms: Final = wait_ms


class GiveUp(Value):
    """Do not. reason: "attempts_spent", or "stated_wait_too_long"."""

    __slots__ = ("reason",)

    def __init__(self, reason: str) -> None:
        self.reason: Final = reason


class Schedule(NamedTuple):
    """requests: how many are sent in all. The wait after the first grows by `multiplier`, up to the cap."""

    requests: int
    first_ms: float
    multiplier: float
    cap_ms: float
    jitter: bool  # drawn from [half, whole), so that crowds spread out


def schedules(config: RetryConfig) -> Mapping[FailureClass, Schedule]:
    """The schedule of each failure class; the first request counts as one.

    By default   requests   first wait       cap   jitter
    overloaded          7         10 s     300 s   yes
    rate_limit          5          1 s      30 s
    transient           3          1 s      30 s
    deadline            1                          the provider may still be working on it
    fatal               1
    """
    delays = (config.retry_delay_ms, config.backoff_multiplier, config.max_retry_delay_ms)
    base = Schedule(config.max_retries, *delays, jitter=False)
    high = config.overloaded
    high_delays = (high.retry_delay_ms, high.backoff_multiplier, high.max_retry_delay_ms)
    overloaded = Schedule(max(high.max_retries, config.max_retries), *high_delays, jitter=True)
    return {
        "overloaded": overloaded if high.max_retries else base,  # 0 makes a 529 an ordinary failure
        "rate_limit": base._replace(requests=max(FEWEST_RATE_LIMIT_REQUESTS, config.max_retries)),
        "transient": base,
        "deadline": base._replace(requests=1),
        "fatal": base._replace(requests=1),
    }


def classify_failure(error: MembraneError | Mapping[str, Any] | Exception) -> FailureClass:
    """The class of a failure: "overloaded", "rate_limit", "transient", "deadline" or "fatal".

    error: a MembraneError, what its to_dict() gave, or any exception, read as this package reads it.
    """
    if isinstance(error, Mapping):
        return _failure_class(error)
    known = error if isinstance(error, MembraneError) else classify_exception(error)
    return _failure_class(vars(known))


def retry_decision(
    failure_class: FailureClass,
    tries: int,
    *,
    retry_after_ms: int | None = None,
    config: RetryConfig = DEFAULT_CONFIG,
    draw: float = 0.5,
) -> Retry | GiveUp:
    """Whether to send again after `tries` requests, and how long to wait first. The same inputs give the same answer.

    retry_after_ms: the wait the provider stated; it lengthens a wait, and never shortens one. draw: the dice, [0, 1).
    """
    schedule = schedules(config)[failure_class]
    if tries >= schedule.requests:
        return GiveUp("attempts_spent")
    stated_ms = retry_after_ms or 0
    if stated_ms > max(LONGEST_STATED_WAIT_MS, schedule.cap_ms):
        return GiveUp("stated_wait_too_long")
    backoff_ms = _backoff_ms(schedule, tries)
    if schedule.jitter:
        backoff_ms *= (1 + draw) / 2
    return Retry(max(int(backoff_ms), stated_ms))


def _failure_class(facts: Mapping[str, Any]) -> FailureClass:
    """The first rule that fits. A status in hand decides before any word does."""
    type, status, stated = facts.get("type", "unknown"), facts.get("http_status"), facts.get("failure_class")
    if stated is not None:
        failure_class: FailureClass = stated
        return failure_class
    if not facts.get("retryable", RETRYABLE_BY_TYPE.get(type, False)):
        return "fatal"
    if status == 529 or (status is None and OVERLOADED_MESSAGE.search(str(facts.get("message", "")))):
        return "overloaded"
    if status == 429 or type == "rate_limit":
        return "rate_limit"
    # A timeout of ours; one that the provider states has a status (408) and may be repeated.
    return "deadline" if type == "timeout" and status is None else "transient"


def _backoff_ms(schedule: Schedule, tries: int) -> float:
    try:
        return min(schedule.first_ms * float(schedule.multiplier) ** (max(tries, 1) - 1), schedule.cap_ms)
    except OverflowError:  # beyond any cap
        return schedule.cap_ms
