"""How long a provider asks to be left alone, and how much of its limits is left: headers and body of an answer in.

stated_wait_ms reads the first of these that holds a usable value; one that is unusable hides none of the others:

    header   retry-after-ms                    milliseconds, as Azure and OpenAI send it
    header   Retry-After                       seconds or an HTTP date: RFC 9110, 10.2.3
    body     details[].retryDelay              "34.5s": google.rpc.RetryInfo in protobuf's JSON form
    body     retry_after_ms, retry_after       milliseconds, seconds
    header   x-ratelimit-reset-NAME            "6m0.5s", where x-ratelimit-remaining-NAME is 0; the longest
    body     "try again in 1.5s"               prose, only with a unit, only of a rate limit or a server's failure

A wait that is negative, infinite or no number is no hint. Fractions of a millisecond round up. Nothing is capped here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from .http import HeaderPairs, HeadersInput

# ASCII digits with an optional fraction. float() also takes "nan", "inf", "1e3", "1_000" and other scripts' digits.
NUMBER: Final = r"[0-9]{1,30}(?:\.[0-9]{1,30})?"
PLAIN_NUMBER: Final = re.compile(NUMBER)
LARGEST_NUMBER: Final = 1e30  # likewise of a number in JSON: infinity, NaN and the like are no waits

# "6m0.5s", "1h2m3s", "20ms" and the words of prose: "30 seconds", "2 min". The first row that begins the unit counts.
UNIT_MS: Final = (("ms", 1), ("mil", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000))
UNIT: Final = r"(?:ms|msecs?|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)(?![A-Za-z])"
STEP: Final = re.compile(rf"({NUMBER})\s*({UNIT})", re.IGNORECASE)
DURATION: Final = re.compile(rf"(?:{NUMBER}{UNIT})+", re.IGNORECASE)
PROTOBUF_DURATION: Final = re.compile(rf"{NUMBER}s")
PROSE: Final = re.compile(rf"\b(?:retry|try again)\s+(?:after|in)\s+((?:{NUMBER}\s*{UNIT}\s*)+)", re.IGNORECASE)

# The three forms of a date that a recipient has to read (RFC 9110, 5.6.7), the last of which names no zone but is UTC:
#     IMF-fixdate   Sun, 06 Nov 1994 08:49:37 GMT
#     rfc850-date   Sunday, 06-Nov-94 08:49:37 GMT
#     asctime-date  Sun Nov  6 08:49:37 1994
# email.utils reads them too, but takes 31 June for 1 July, and on Python 3.9 fails on bad ones with IndexError.
HTTP_DATES: Final = tuple(
    re.compile(form.replace("TIME", "(?P<time>[0-9]{2}:[0-9]{2}:[0-9]{2})"))
    for form in (
        r"[A-Za-z]{3}, (?P<day>[0-9]{2}) (?P<month>[A-Za-z]{3}) (?P<year>[0-9]{4}) TIME (?:GMT|UTC)",
        r"[A-Za-z]{6,9}, (?P<day>[0-9]{2})-(?P<month>[A-Za-z]{3})-(?P<year>[0-9]{2}) TIME (?:GMT|UTC)",
        r"[A-Za-z]{3} (?P<month>[A-Za-z]{3}) (?P<day>[ 0-9][0-9]) TIME (?P<year>[0-9]{4})",
    )
)
MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")

# Fields of a body, with the milliseconds of their unit.
BODY_FIELDS: Final = (("retry_after_ms", 1), ("retryAfterMs", 1), ("retry_after", 1_000), ("retryAfter", 1_000))
PROSE_FIELDS: Final = ("message", "Message", "error", "detail", "raw")

# A bare number in a reset header counts seconds, unless it is so large that it can only be an instant.
FIRST_EPOCH_SECOND: Final = 1_000_000_000
FIRST_EPOCH_MS: Final = 1_000_000_000_000

OPENAI_LIMIT: Final = re.compile(r"x-ratelimit-(limit|remaining|reset)(?:-(.+))?")
ANTHROPIC_LIMIT: Final = re.compile(r"anthropic-ratelimit-(.+)-(limit|remaining|reset)")
RFC_3339: Final = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


def stated_wait_ms(status: int | None, headers: HeadersInput, body: Any, now: float) -> int | None:
    """The wait, in milliseconds, that a failed answer asks for; None where it gives no usable hint.

    status: None for an error inside a stream; an answer below 400 asks for no wait. headers: pairs, or a mapping.
    body: parsed JSON, text, or None. now: seconds since the epoch, for dates.
    """
    if status is not None and status < 400:
        return None
    pairs = _lower(headers)
    parts = list(_parts(body))
    hints = (
        _longest(_number_ms(value, 1) for name, value in pairs if name == "retry-after-ms"),
        _longest(_retry_after(value, now) for name, value in pairs if name == "retry-after"),
        _first(_retry_info(part) for part in parts),
        _first(_json_ms(part.get(field), unit_ms) for part in parts for field, unit_ms in BODY_FIELDS),
        _longest(_exhausted_resets(pairs, now)),
        _prose(body, parts) if status is None or status == 429 or status >= 500 else None,
    )
    return _first(hints)


def rate_limits(headers: HeadersInput, now: float) -> dict[str, dict[str, int]] | None:
    """The limits an answer's headers state: {"requests": {"limit", "remaining", "reset_ms"}, "tokens": {...}}.

    Read from x-ratelimit-* (OpenAI and those who follow it) and anthropic-ratelimit-*, which also has "input_tokens"
    and "output_tokens". reset_ms counts from `now`. What is not stated, or cannot be read, is left out; None for all.
    """
    limits: dict[str, dict[str, int]] = {}
    pairs = [pair for pair in _lower(headers) if "ratelimit" in pair[0]]
    for name, field, value in _limit_headers(pairs):
        number = _reset_ms(value, now) if field == "reset" else _number_ms(value, 1)
        if number is not None:
            limits.setdefault(name.replace("-", "_"), {})["reset_ms" if field == "reset" else field] = number
    return limits or None


def _retry_after(value: str, now: float) -> int | None:
    seconds = _number_ms(value, 1_000)
    return _http_date_ms(value, now) if seconds is None else seconds


def _http_date_ms(value: str, now: float) -> int | None:
    """The wait until an HTTP date; a date in the past is a wait of 0. The name of the weekday is not checked."""
    from datetime import datetime, timezone

    date = next(filter(None, (form.fullmatch(value) for form in HTTP_DATES)), None)
    if date is None:
        return None
    year, month, day = int(date["year"]), date["month"].lower(), int(date["day"])
    if len(date["year"]) == 2:
        year += 1900 if year > 68 else 2000  # as POSIX divides the centuries
    hour, minute, second = map(int, date["time"].split(":"))
    try:
        instant = datetime(year, MONTHS.index(month) + 1, day, hour, minute, second, tzinfo=timezone.utc)
    except ValueError:  # there is no 31 June, no month Foo
        return None
    return _until_ms(instant.timestamp(), now)


def _retry_info(part: Mapping[str, Any]) -> int | None:
    details = part.get("details")
    for detail in details if isinstance(details, list) else ():
        delay = detail.get("retryDelay") if isinstance(detail, dict) else None
        if isinstance(delay, str) and PROTOBUF_DURATION.fullmatch(delay):
            return _number_ms(delay[:-1], 1_000)
    return None


def _json_ms(value: Any, unit_ms: int) -> int | None:
    if isinstance(value, str):
        return _number_ms(value, unit_ms)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < LARGEST_NUMBER:
        return None
    return _ceil(value * unit_ms) if isinstance(value, float) else int(value) * unit_ms


def _exhausted_resets(pairs: HeaderPairs, now: float) -> Iterator[int | None]:
    """The resets of the limits of which nothing is left: the others say nothing about this failure."""
    found = [(match.group(1), match.group(2), value) for match, value in _matches(OPENAI_LIMIT, pairs)]
    exhausted = {name for field, name, value in found if field == "remaining" and _number_ms(value, 1) == 0}
    return (_reset_ms(value, now) for field, name, value in found if field == "reset" and name in exhausted)


def _prose(body: Any, parts: Iterable[Mapping[str, Any]]) -> int | None:
    texts = [body] if isinstance(body, str) else [part.get(field) for part in parts for field in PROSE_FIELDS]
    matches = (PROSE.search(text) for text in texts if isinstance(text, str))
    return _first(_duration_ms(match.group(1)) for match in matches if match)


def _parts(body: Any, depth: int = 3) -> Iterator[Mapping[str, Any]]:
    """The objects of an error body that may hold a hint.

    The body itself (in a list on Gemini's stream), its error (inside `response` where the Responses API says that an
    answer failed), and the metadata a gateway adds to that.
    """
    if isinstance(body, list):
        body = body[0] if body else None
    if not isinstance(body, dict) or not depth:
        return
    yield body
    for name in ("error", "response", "metadata"):
        yield from _parts(body.get(name), depth - 1)


def _limit_headers(pairs: HeaderPairs) -> Iterator[tuple[str, str, str]]:
    """(name of the limit, limit or remaining or reset, value) of both families of headers."""
    for match, value in _matches(OPENAI_LIMIT, pairs):
        yield match.group(2) or "requests", match.group(1), value
    for match, value in _matches(ANTHROPIC_LIMIT, pairs):
        yield match.group(1), match.group(2), value


def _number_ms(value: str, unit_ms: int) -> int | None:
    """A decimal number of units, rounded up to the millisecond; exactly, however many digits it has."""
    if PLAIN_NUMBER.fullmatch(value) is None:
        return None
    whole, _, fraction = value.partition(".")
    scale: int = 10 ** len(fraction)
    return -(-int(whole + fraction) * unit_ms // scale)


def _duration_ms(value: str) -> int:
    return sum(_number_ms(number, _unit_ms(unit.lower())) or 0 for number, unit in STEP.findall(value))


def _unit_ms(unit: str) -> int:
    return next(unit_ms for start, unit_ms in UNIT_MS if unit.startswith(start))


def _reset_ms(value: str, now: float) -> int | None:
    """When a limit starts anew: a duration, seconds, or an instant (since the epoch, or as RFC 3339 writes it)."""
    if DURATION.fullmatch(value):
        return _duration_ms(value)
    instant = RFC_3339.fullmatch(value)
    if instant:
        return _instant_ms(*instant.groups(default=""), now=now)
    number = _number_ms(value, 1)
    if number is None or number < FIRST_EPOCH_SECOND:
        return _number_ms(value, 1_000)
    return _until_ms(number / 1_000 if number >= FIRST_EPOCH_MS else number, now)


def _instant_ms(day: str, time: str, fraction: str, zone: str, *, now: float) -> int | None:
    from datetime import datetime

    # Before 3.11, fromisoformat takes neither "Z" nor a fraction of any length.
    offset = "+00:00" if zone in "Zz" else zone
    try:
        seconds = datetime.fromisoformat(f"{day}T{time}{offset}").timestamp()
    except (ValueError, OverflowError):
        return None
    return _until_ms(seconds + float(fraction or 0), now)


def _until_ms(instant: float, now: float) -> int:
    return max(0, _ceil((instant - now) * 1_000))


def _ceil(ms: float) -> int:
    """Rounded up; but a billionth too much is an error of binary fractions, not a fraction of a millisecond."""
    return math.ceil(round(ms, 3))


def _lower(headers: HeadersInput) -> list[tuple[str, str]]:
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return [(name.lower(), value.strip()) for name, value in pairs]


def _matches(pattern: re.Pattern[str], pairs: HeaderPairs) -> Iterator[tuple[re.Match[str], str]]:
    found = ((pattern.fullmatch(name), value) for name, value in pairs)
    return ((match, value) for match, value in found if match)


def _first(values: Iterable[int | None]) -> int | None:
    return next((value for value in values if value is not None), None)


def _longest(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)
