"""Settings of a Membrane and of one call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..errors import MembraneError
from .base import Record


@dataclass
class OverloadedRetry(Record):
    """The schedule of an overloaded provider (529). max_retries: attempts in all; 0 makes a 529 an ordinary failure."""

    max_retries: int = 7
    retry_delay_ms: int = 10_000
    backoff_multiplier: float = 2
    max_retry_delay_ms: int = 300_000


@dataclass
class RetryConfig(Record):
    """max_retries: attempts in all, not repeats after the first. Delays in milliseconds."""

    max_retries: int = 3
    retry_delay_ms: int = 1_000
    backoff_multiplier: float = 2
    max_retry_delay_ms: int = 30_000
    overloaded: OverloadedRetry = field(default_factory=OverloadedRetry)


@dataclass
class Hooks:
    """The caller's own code beside every call. What one raises ends the call, and is not sent again.

    before_request(request, provider_request): once per provider request built; returns its replacement or None.
    after_response(response, raw_response): complete() only; returns the response to hand on, or None.
    on_error(error, attempt): before a retry that would happen; "abort" ends with that error.
    """

    before_request: Callable[..., Any] | None = None
    after_response: Callable[..., Any] | None = None
    on_error: Callable[[MembraneError, int], Any] | None = None


@dataclass
class RetryInfo:
    """What on_retry is told: the failure, the attempt that failed (from 1), and the wait before the next."""

    failure_class: str
    attempt: int
    wait_ms: int
    error: MembraneError
