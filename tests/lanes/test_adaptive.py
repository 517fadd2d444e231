"""adaptive: the bucket, instant by instant."""

from __future__ import annotations

from math import inf

import pytest

from membrane_lite.lanes.adaptive import BETA, SCALE, AdaptiveBucket


def measured(rate: float, *, seconds: float = 20.0) -> tuple[AdaptiveBucket, float]:
    """A bucket that has seen `rate` answers a second, until just after a window has ended; and that instant."""
    bucket, now = AdaptiveBucket(), 0.0
    while now < seconds:
        bucket.answered(now, throttled=False)
        now += 1 / rate
    return bucket, now


def test_adaptive_bucket_constants_are_those_that_aws_publishes() -> None:
    assert (BETA, SCALE) == (0.7, 0.4)


def test_take_waits_for_nothing_before_the_first_throttle() -> None:
    bucket, now = measured(100)
    assert ([bucket.take(now) for _ in range(1_000)], bucket.rate) == ([0.0] * 1_000, inf)


def test_answered_by_a_throttle_leaves_seven_tenths_of_what_was_measured() -> None:
    bucket, now = measured(10)
    bucket.answered(now, throttled=True)
    assert bucket.rate == pytest.approx(7.0, rel=0.01)


def test_answered_by_a_second_throttle_takes_from_the_lower_of_rate_and_measure() -> None:
    bucket, now = measured(10)
    bucket.answered(now, throttled=True)
    bucket.answered(now, throttled=True)
    assert bucket.rate == pytest.approx(4.9, rel=0.01)


def test_answered_may_begin_with_a_throttle() -> None:
    bucket = AdaptiveBucket()
    bucket.answered(5.0, throttled=True)
    assert (bucket.rate, [bucket.take(5.0), bucket.take(5.0)]) == (0.5, [2.0, 4.0])


def test_take_gives_a_token_before_it_is_there_and_the_wait_for_it() -> None:
    """Through an empty bucket each request waits one gap longer than the one before it."""
    bucket, now = measured(10)
    bucket.answered(now, throttled=True)
    gap = 1 / bucket.rate
    assert [bucket.take(now) for _ in range(4)] == pytest.approx([gap, 2 * gap, 3 * gap, 4 * gap])
    assert gap == pytest.approx(1 / 7, rel=0.01)


def test_take_finds_no_more_tokens_than_a_second_of_the_rate() -> None:
    bucket, now = measured(10)
    bucket.answered(now, throttled=True)
    waits = [bucket.take(now + 3_600) for _ in range(8)]
    assert [wait > 0 for wait in waits] == [index + 1 > bucket.rate for index in range(8)]


def cubic(bucket: AdaptiveBucket, now: float, waited: float) -> float:
    """The rate that a success gives `waited` seconds after a throttle, with as many answers as before meanwhile."""
    moment = now
    while moment < now + waited:
        moment += 0.1
        bucket.answered(moment, throttled=False)
    return bucket.rate


def test_answered_by_a_success_lets_the_rate_grow_along_a_cubic_curve() -> None:
    """RFC 8312, 4.1: W(t) = C (t - K)^3 + W_max; after K seconds the rate is that of the throttle again."""
    rate_before = 10.0
    recovery = (rate_before * (1 - BETA) / SCALE) ** (1 / 3)
    seen = []
    for waited in (recovery / 2, recovery, recovery * 1.5):
        bucket, now = measured(rate_before)
        bucket.answered(now, throttled=True)
        seen.append(cubic(bucket, now, waited))
    expected = [rate_before + SCALE * (waited - recovery) ** 3 for waited in (recovery / 2, recovery, recovery * 1.5)]
    assert seen == pytest.approx(expected, rel=0.05)
    assert seen[0] < rate_before < seen[2]


def test_rate_is_never_more_than_twice_what_is_sent() -> None:
    bucket, now = measured(10)
    bucket.answered(now, throttled=True)
    for second in range(1, 600):  # a request a second: the curve alone would be in the millions
        bucket.answered(now + second, throttled=False)
    assert bucket.rate == pytest.approx(2.0, rel=0.05)


def test_rate_is_never_less_than_one_request_in_two_seconds() -> None:
    bucket, now = measured(10)
    for _ in range(50):
        bucket.answered(now, throttled=True)
    assert bucket.rate == 0.5
