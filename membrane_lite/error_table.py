"""What a failure means: status, code and words in, MembraneError out. One table for all providers.

It reads HTTP errors, error bodies inside a 200, and error events inside a stream; they differ only in whether they
bring a status. TABLE decides: the first row whose conditions all hold gives the type, and whether the same request may
succeed later. A status is believed before a code, a code before words. Bodies it knows:

    {"type": "error", "error": {"type": "overloaded_error", "message": ...}, "request_id": ...}      Anthropic
    {"error": {"message": ..., "type": "invalid_request_error", "code": "model_not_found"}}          OpenAI and its kin
    {"type": "response.failed", "response": {"error": {"code": "server_error", "message": ...}}}     OpenAI Responses
    [{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": ..., "details": [...]}}]     Gemini
    {"message": ...} beside the header x-amzn-ErrorType: ThrottlingException:http://...              Bedrock
    {"error": {"code": 429, "message": "Provider returned error", "metadata": {"raw": ...}}}         OpenRouter
    {"code": ..., "error": "..."}, {"detail": "..."}, {"errors": [...]}, "...", <html>, nothing      servers, gateways
"""

from __future__ import annotations

import errno
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from .errors import SHOWN_CHARACTERS, MembraneError
from .wire.http import header
from .wire.json_text import parse
from .wire.retry_after import rate_limits, stated_wait_ms

if TYPE_CHECKING:
    from .errors import ErrorType
    from .wire.http import HeaderPairs

LONGEST_MESSAGE: Final = 1_000  # characters of the provider's own message in ours
LONGEST_CODE: Final = 100  # a longer "code" is prose

REQUEST_ID_HEADERS: Final = ("request-id", "x-request-id", "x-amzn-requestid", "apim-request-id")

CODE_FIELDS: Final = ("code", "status", "type", "__type", "error_code")  # the first symbolic one is the code
STATUS_FIELDS: Final = ("status_code", "status", "code", "http_status_code", "http_code")
MESSAGE_FIELDS: Final = ("message", "Message", "error", "detail", "msg", "title")
NO_CODES: Final = frozenset(["", "error", "failed", "none", "null"])  # words that name the envelope, or nothing

# What a code means where no status came with it: in-stream errors, and error bodies inside a 200. Exact names only,
# lower case, "-" as "_". Sources: Anthropic "Errors", OpenAI "Error codes", google.rpc.Code, and AWS
# "InvokeModelWithResponseStream".
IMPLIED_STATUS: Final[Mapping[str, int]] = {
    "invalid_request_error": 400,
    "invalid_argument": 400,
    "failed_precondition": 400,
    "context_length_exceeded": 400,
    "validationexception": 400,
    "servicequotaexceededexception": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "unauthenticated": 401,
    "billing_error": 402,
    "permission_error": 403,
    "permission_denied": 403,
    "accessdeniedexception": 403,
    "not_found": 404,
    "not_found_error": 404,
    "resourcenotfoundexception": 404,
    "modeltimeoutexception": 408,
    "request_too_large": 413,
    "modelerrorexception": 424,
    "modelstreamerrorexception": 424,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "resource_exhausted": 429,
    "throttlingexception": 429,
    "modelnotreadyexception": 429,
    "api_error": 500,
    "server_error": 500,
    "internal": 500,
    "internalserverexception": 500,
    "unavailable": 503,
    "serviceunavailableexception": 503,
    "server_is_overloaded": 503,
    "timeout_error": 504,
    "deadline_exceeded": 504,
    "overloaded_error": 529,
}

SAFETY_CODES: Final = frozenset(
    ["content_filter", "content_policy_violation", "moderation_blocked", "safety_violations"]
)
AUTH_CODES: Final = frozenset(
    [
        "api_key_invalid",
        "api_key_expired",
        "access_token_expired",
        "invalid_api_key",
        "authentication_error",
        "unauthenticated",
        "permission_error",
        "permission_denied",
    ]
)
# A limit that no wait lifts: somebody has to pay, or to ask for more.
SPENT_CODES: Final = frozenset(
    [
        "insufficient_quota",
        "billing_hard_limit_reached",
        "billing_not_active",
        "account_deactivated",
        "quota_exceeded",
        "insufficient_credits",
    ]
)
CONTEXT_CODES: Final = frozenset(["context_length_exceeded"])
STREAM_BROKE_CODES: Final = frozenset(["modelstreamerrorexception"])  # AWS: "Retry your request."


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)


SAFETY_WORDS: Final = _words(r"\b(?:content_policy_violation|moderation_blocked|safety_violations)\b")
WRONG_KEY_WORDS: Final = _words(r"\b(?:incorrect|invalid) api key\b")
# "Invalid `signature` in `thinking` block"; "`thinking` ... blocks in the latest assistant message cannot be modified".
# Anchored, so that a body of a mebibyte is searched once, and not once from each of its words.
BINDING_WORDS: Final = _words(r"\A(?=.*\bthinking\b)(?=.*\b(?:invalid\W{1,3}signature|cannot be modified)\b)")
CONTEXT_WORDS: Final = _words(
    r"\bcontext[ _](?:length|limit|window)|\bmaximum context\b|\btoo many tokens\b|\btoken limit\b|\btoo long\b"
    r"|\bexceeds the maximum number of (?:input )?tokens\b|\binput token count\b"
)
RATE_WORDS: Final = _words(r"\b429\b|\brate[ _-]?limit|\btoo many requests\b")
AUTH_WORDS: Final = _words(r"\b401\b|\bapi[ _-]key\b|\bunauthori[sz]ed\b|\bauthentication\b|\bauthorization\b")
NETWORK_WORDS: Final = _words(
    r"\bnetwork\b|\bsocket\b|\bconnection (?:refused|reset|aborted|closed|lost)\b|\bname resolution\b"
    r"|\b(?:econnreset|econnrefused|econnaborted|enotfound|eai_again|epipe|enetunreach|ehostunreach)\b"
)
TIMEOUT_WORDS: Final = _words(r"\btime-?out\b|\btimed[ -]out\b|\betimedout\b")
SERVER_WORDS: Final = _words(r"\b(?:500|502|503|504|529)\b|\boverloaded_error\b")
OVERLOADED_TOKEN: Final = _words(r"\boverloaded_error\b")

# A gateway that routes to Anthropic through several providers reports all of their failures as one.
GATEWAY_WORDS: Final = _words(
    r"providermetadata|fallbacksavailable|modelattempts|temporarily unavailable|no_providers_available"
)
OVERLOADED_WORDS: Final = _words(r"overloaded")

# Classes by name, so that nothing has to be imported for them and those of other libraries count too.
EXCEPTION_CLASSES: Final[Mapping[str, ErrorType]] = {
    "AbortError": "abort",
    "TimeoutError": "timeout",
    "timeout": "timeout",  # socket.timeout before Python 3.10
    "ConnectionError": "network",
    "gaierror": "network",
    "herror": "network",
    "SSLError": "network",
}
ERRNO_TYPES: Final[Mapping[int, ErrorType]] = {
    errno.ETIMEDOUT: "timeout",
    errno.ENETDOWN: "network",
    errno.ENETUNREACH: "network",
    errno.EHOSTUNREACH: "network",
    errno.ENETRESET: "network",
    errno.ENOTCONN: "network",
    errno.EADDRNOTAVAIL: "network",
}

HTML_TITLE: Final = _words(r"<title[^<>]*>([^<]*)")

REFUSED: Final = (400, 422)
NO_STATUS: Final = (None,)
CLIENT: Final = range(400, 500)
SERVER: Final = range(500, 600)


class Row(NamedTuple):
    """One rule. statuses, codes (any of them) and words (in the provider's message): None asks for nothing."""

    statuses: Container[int | None] | None
    codes: frozenset[str] | None
    words: re.Pattern[str] | None
    type: ErrorType
    retryable: bool


# fmt: off
TABLE: Final = (
    #   statuses         codes               words            type                retryable
    Row(None,            SAFETY_CODES,       None,            "safety",           False),
    Row((400,),          None,               SAFETY_WORDS,    "safety",           False),
    Row(REFUSED,         AUTH_CODES,         None,            "auth",             False),
    Row(REFUSED,         None,               WRONG_KEY_WORDS, "auth",             False),
    Row((429,),          SPENT_CODES,        None,            "rate_limit",       False),
    Row((429,),          None,               None,            "rate_limit",       True),
    Row((408,),          None,               None,            "timeout",          True),
    Row((401, 402, 403), None,               None,            "auth",             False),
    Row((413,),          None,               None,            "context_length",   False),
    Row((404,),          None,               None,            "invalid_request",  False),
    Row((400,),          None,               BINDING_WORDS,   "thinking_binding", False),
    Row(REFUSED,         CONTEXT_CODES,      None,            "context_length",   False),
    Row(REFUSED,         None,               CONTEXT_WORDS,   "context_length",   False),
    Row(REFUSED,         None,               None,            "invalid_request",  False),
    Row(SERVER,          None,               None,            "server",           True),   # whatever it says
    Row(CLIENT,          STREAM_BROKE_CODES, None,            "server",           True),
    Row(CLIENT,          None,               None,            "invalid_request",  False),
    Row(NO_STATUS,       None,               RATE_WORDS,      "rate_limit",       True),
    Row(NO_STATUS,       None,               AUTH_WORDS,      "auth",             False),
    Row(NO_STATUS,       None,               NETWORK_WORDS,   "network",          True),
    Row(NO_STATUS,       None,               TIMEOUT_WORDS,   "timeout",          True),
    Row(NO_STATUS,       None,               SERVER_WORDS,    "server",           True),
    Row(NO_STATUS,       None,               CONTEXT_WORDS,   "context_length",   False),
    Row(None,            None,               None,            "unknown",          False),
)
# fmt: on
GATEWAY_ROW: Final = Row(None, None, GATEWAY_WORDS, "server", True)


def provider_error(
    *,
    provider: str,
    status: int | None,
    headers: HeaderPairs,
    body: str,
    now: float,
    event: str | None = None,
    gateway_texts: bool = False,
) -> MembraneError:
    """The error that an answer is.

    status: of the HTTP answer; None, or that of the success it began as, where the error stands inside the answer.
    body: the text of the body or of the event, already redacted and bounded. now: seconds since the epoch.
    event: the name of the in-stream event; one that ends in "Exception" is also the code, as in AWS's frames, and where
    nothing else gives a status it is the service that failed.
    gateway_texts: read what gateways that route to Anthropic say about their upstreams as passing failures.
    """
    parsed = _parsed(body)
    objects = _objects(parsed)
    codes = [*_codes(objects), *_codes_beside(headers, event)]
    message = _message(objects, body)
    sent = status if status is not None and status >= 300 else None
    effective = sent or _frame_status(objects) or _implied_status(codes, message) or _exception_status(event)
    gateway_status = _gateway_status(effective, body, parsed) if gateway_texts else None
    row = _row(effective, codes, message) if gateway_status is None else GATEWAY_ROW
    code = next(iter(codes), None) or _numeric_code(objects)
    return MembraneError(
        row.type,
        _text(provider, sent, event, message, code),
        retryable=row.retryable,
        retry_after_ms=stated_wait_ms(effective, headers if sent else (), body if parsed is None else parsed, now),
        http_status=gateway_status or effective,
        provider_error_code=code,
        request_id=_request_id(headers, objects),
        rate_limit=rate_limits(headers, now),
        raw_error=(body or None) if parsed is None else parsed,
    )


def classify_exception(exc: Exception) -> MembraneError:
    """What an exception that is no MembraneError means: its class and its socket error first, then its words."""
    if isinstance(exc, MembraneError):
        return exc
    text = f"{type(exc).__name__}: {exc}"[:LONGEST_MESSAGE]
    known = _exception_type(exc) or (_exception_type(exc.__cause__) if exc.__cause__ else None)
    if known is not None:
        return MembraneError(known, text)
    row = _row(None, (), str(exc))
    return MembraneError(row.type, text, retryable=row.retryable)


def _row(status: int | None, codes: Iterable[str], message: str) -> Row:
    names = frozenset(_normalised(code) for code in codes)
    return next(
        row
        for row in TABLE
        if (row.statuses is None or status in row.statuses)
        and (row.codes is None or not row.codes.isdisjoint(names))
        and (row.words is None or row.words.search(message))
    )


def _exception_type(exc: BaseException) -> ErrorType | None:
    names = (base.__name__ for base in type(exc).__mro__)
    by_class = next((EXCEPTION_CLASSES[name] for name in names if name in EXCEPTION_CLASSES), None)
    by_errno = ERRNO_TYPES.get(exc.errno or 0) if isinstance(exc, OSError) else None
    return by_class or by_errno


def _parsed(body: str) -> Any:
    """The body as JSON; None where it is not."""
    try:
        return parse(body)
    except (ValueError, RecursionError):
        return None


def _objects(parsed: Any) -> list[Mapping[str, Any]]:
    """The object that describes the error, then the one around it."""
    if isinstance(parsed, list):
        parsed = parsed[0] if parsed else None
    if not isinstance(parsed, dict):
        return []
    response, errors = parsed.get("response"), parsed.get("errors")
    inner = (
        response.get("error") if isinstance(response, dict) else None,
        parsed.get("error"),
        errors[0] if isinstance(errors, list) and errors else None,
        parsed.get("detail"),
    )
    return [*[found for found in inner if isinstance(found, dict)][:1], parsed]


def _codes(objects: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Every symbolic code, the error's own first; then those of the fault behind it."""
    for found in objects:
        for field in CODE_FIELDS:
            value = found.get(field)
            if isinstance(value, str) and _is_symbolic(value):
                yield value.rpartition("#")[2]  # __type: com.amazon.coral.service#ThrottlingException
    for found in objects:
        behind = found.get("innererror")  # Azure
        details = found.get("details")  # google.rpc.ErrorInfo
        for beside in [behind, *(details if isinstance(details, list) else ())]:
            values = (beside.get("code"), beside.get("reason")) if isinstance(beside, dict) else ()
            yield from (value for value in values if isinstance(value, str) and _is_symbolic(value))
        yield from _codes(_objects(_parsed(_upstream(found))))


def _is_symbolic(code: str) -> bool:
    named = _normalised(code) not in NO_CODES and not code.startswith("response.")
    return named and not _is_number(code) and len(code) <= LONGEST_CODE


def _is_number(code: str) -> bool:
    return code.lstrip("-").isdigit()


def _codes_beside(headers: HeaderPairs, event: str | None) -> Iterator[str]:
    """The codes AWS puts beside the body: in a header, or as the type of an exception frame."""
    named = (header(headers, "x-amzn-errortype") or "").partition(":")[0].strip()
    if named:
        yield named
    if event is not None and event.lower().endswith("exception"):
        yield event


def _normalised(code: str) -> str:
    return code.lower().replace("-", "_")


def _numeric_code(objects: Iterable[Mapping[str, Any]]) -> str | None:
    values = (found.get(field) for found in objects for field in CODE_FIELDS)
    numbers = (str(value) for value in values if isinstance(value, (int, str)) and not isinstance(value, bool))
    return next((number for number in numbers if _is_number(number) and len(number) <= LONGEST_CODE), None)


def _frame_status(objects: Iterable[Mapping[str, Any]]) -> int | None:
    """The status an error inside an answer states; more than any of its words."""
    values = (found.get(field) for found in objects for field in STATUS_FIELDS)
    texts = (str(value) for value in values if isinstance(value, (int, str)))
    return next((int(text) for text in texts if re.fullmatch("[45][0-9]{2}", text)), None)


def _implied_status(codes: Iterable[str], message: str) -> int | None:
    names = (_normalised(code) for code in codes)
    known = next((IMPLIED_STATUS[name] for name in names if name in IMPLIED_STATUS), None)
    return known or (529 if OVERLOADED_TOKEN.search(message) else None)


def _exception_status(event: str | None) -> int | None:
    """The status of an exception frame whose type is in no table."""
    name = (event or "").lower()
    if not name.endswith("exception"):
        return None
    return 429 if "throttl" in name else 500


def _gateway_status(status: int | None, body: str, parsed: Any) -> int | None:
    """The status of a routing gateway's aggregate of failures, or of bare words about overload; None for others."""
    if status in (400, 401, 429) or status in SERVER:
        return None
    overloaded = OVERLOADED_WORDS.search(body) is not None
    if GATEWAY_WORDS.search(body):
        return 529 if overloaded else status or 503
    return 529 if overloaded and parsed is None else None


def _message(objects: Iterable[Mapping[str, Any]], body: str) -> str:
    """The provider's own words; those of the upstream it speaks for beside them."""
    values = ((found.get(field), found) for found in objects for field in MESSAGE_FIELDS)
    for text, found in values:
        if isinstance(text, str) and text.strip():
            upstream = _upstream(found)
            return f"{text}: {upstream}" if upstream else text
    title = HTML_TITLE.search(body)
    text = " ".join((title.group(1) if title else body).split())
    return text[:SHOWN_CHARACTERS] or "the body is empty"


def _upstream(found: Mapping[str, Any]) -> str:
    """What the provider behind OpenRouter said; its own message may be no more than "Provider returned error"."""
    metadata = found.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    return raw if isinstance(raw, str) else ""


def _text(provider: str, status: int | None, event: str | None, message: str, code: str | None) -> str:
    where = f"error event {event}" if event is not None else f"HTTP {status}" if status else "error in the answer"
    named = f" ({code})" if code and code != str(status) and code not in message else ""
    return f"{provider}: {where}: {message[:LONGEST_MESSAGE]}{named}"


def _request_id(headers: HeaderPairs, objects: Iterable[Mapping[str, Any]]) -> str | None:
    by_header = (header(headers, name) for name in REQUEST_ID_HEADERS)
    by_body = (found.get("request_id") for found in objects)
    return next((value for value in (*by_header, *by_body) if isinstance(value, str) and value), None)
