"""error_table: what each status, code and wording means; what is read from each provider's body; other exceptions."""

from __future__ import annotations

import errno
import json
import socket
from typing import Any

import pytest
from shared_data import shared

from membrane_lite.error_table import classify_exception, provider_error
from membrane_lite.errors import MembraneError

NOW = 1_772_366_400.0


def error(status: int | None, body: Any, **more: Any) -> MembraneError:
    text = body if isinstance(body, str) else json.dumps(body)
    given = {"provider": "acme", "status": status, "headers": [], "body": text, "now": NOW, **more}
    return provider_error(**given)


def kind(found: MembraneError) -> tuple[str, bool, int | None]:
    return found.type, found.retryable, found.http_status


def openai(code: str | None, message: str = "no", type: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": type, "param": None, "code": code}}


def anthropic(type: str, message: str = "no") -> dict[str, Any]:
    return {"type": "error", "error": {"type": type, "message": message}}


def google(code: int, status: str, reason: str | None = None) -> dict[str, Any]:
    details = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason}] if reason else []
    return {"error": {"code": code, "message": "no", "status": status, "details": details}}


AZURE_FILTER = {"error": {"code": "BadRequest", "message": "no", "innererror": {"code": "content_filter"}}}
ROUTER = {"error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": '{"error": {"code": "x"}}'}}}

STATUSES = {
    "400": ((400, openai("bad")), ("invalid_request", False, 400)),
    "401": ((401, "no"), ("auth", False, 401)),
    "402": ((402, "no"), ("auth", False, 402)),
    "403": ((403, "no"), ("auth", False, 403)),
    "404": ((404, "no"), ("invalid_request", False, 404)),
    "408": ((408, "no"), ("timeout", True, 408)),
    "409": ((409, "no"), ("invalid_request", False, 409)),
    "413": ((413, "no"), ("context_length", False, 413)),
    "422": ((422, "no"), ("invalid_request", False, 422)),
    "429": ((429, "no"), ("rate_limit", True, 429)),
    "500": ((500, "no"), ("server", True, 500)),
    "502, whatever it says": ((502, "401: prompt is too long, rate limit"), ("server", True, 502)),
    "529": ((529, anthropic("overloaded_error")), ("server", True, 529)),
    "304": ((304, ""), ("unknown", False, 304)),
    "a code does not outrank a status": ((401, anthropic("overloaded_error")), ("auth", False, 401)),
    "nor does a status inside the body": ((401, {"error": {"code": 503}}), ("auth", False, 401)),
    "400, the key is refused (Google)": (
        (400, google(400, "INVALID_ARGUMENT", "API_KEY_INVALID")),
        ("auth", False, 400),
    ),
    "400, the key is refused (code)": ((400, openai("invalid_api_key")), ("auth", False, 400)),
    "400, the key is refused (type)": ((400, openai("odd", type="authentication_error")), ("auth", False, 400)),
    "400, the key is refused (words)": (
        (400, {"code": "invalid-argument", "error": "Incorrect API key provided."}),
        ("auth", False, 400),
    ),
    "422, no permission": ((422, google(422, "PERMISSION_DENIED")), ("auth", False, 422)),
    "429, the quota is spent": ((429, openai("insufficient_quota")), ("rate_limit", False, 429)),
    "429, the bill is not paid": ((429, openai("billing-not-active")), ("rate_limit", False, 429)),
    "429, the quota of a minute": ((429, google(429, "RESOURCE_EXHAUSTED")), ("rate_limit", True, 429)),
    "400, too long (code)": ((400, openai("context_length_exceeded")), ("context_length", False, 400)),
    "400, too long (Anthropic)": (
        (400, anthropic("invalid_request_error", "prompt is too long: 210094 tokens > 200000 maximum")),
        ("context_length", False, 400),
    ),
    "400, too long (OpenRouter)": (
        (400, openai(None, "This endpoint's maximum context length is 200000 tokens.")),
        ("context_length", False, 400),
    ),
    "400, too long (Gemini)": (
        (400, openai(None, "The input token count (9) exceeds the maximum number of tokens allowed (8).")),
        ("context_length", False, 400),
    ),
    "400, bare words do not say too long": (
        (400, openai(None, "maximum of 4 tools in this context")),
        ("invalid_request", False, 400),
    ),
    "404, too long is not read": ((404, "prompt is too long"), ("invalid_request", False, 404)),
    "400, content filter": ((400, openai("content_filter")), ("safety", False, 400)),
    "400, content filter within": ((400, AZURE_FILTER), ("safety", False, 400)),
    "400, content policy": ((400, openai("content_policy_violation")), ("safety", False, 400)),
    "400, moderation": (
        (400, openai("moderation_blocked", type="image_generation_user_error")),
        ("safety", False, 400),
    ),
    "400, violations in words": (
        (400, openai(None, "rejected by the safety system. safety_violations=[sexual].")),
        ("safety", False, 400),
    ),
    "400, safety is tested before the key": (
        (400, openai("content_filter", type="permission_error")),
        ("safety", False, 400),
    ),
    "400, a thinking block's signature": (
        (400, anthropic("invalid_request_error", "messages.1.content.0: Invalid `signature` in `thinking` block")),
        ("thinking_binding", False, 400),
    ),
    "400, a thinking block was changed": (
        (400, anthropic("invalid_request_error", "`thinking` blocks in the latest message cannot be modified.")),
        ("thinking_binding", False, 400),
    ),
    "400, thinking in another matter": (
        (400, anthropic("invalid_request_error", "thinking.budget_tokens: 1024 or more")),
        ("invalid_request", False, 400),
    ),
    "400, the upstream's code counts": (
        (400, {"error": {**ROUTER["error"], "metadata": {"raw": json.dumps(openai("context_length_exceeded"))}}}),
        ("context_length", False, 400),
    ),
    "400, the upstream's words count": (
        (400, {"error": {**ROUTER["error"], "metadata": {"raw": "prompt is too long"}}}),
        ("context_length", False, 400),
    ),
    "400, the upstream's filter counts": (
        (400, {"error": {**ROUTER["error"], "metadata": {"raw": json.dumps(openai("content_filter"))}}}),
        ("safety", False, 400),
    ),
}

NO_STATUS = {
    "overloaded_error is 529": (anthropic("overloaded_error"), ("server", True, 529)),
    "api_error is 500": (anthropic("api_error"), ("server", True, 500)),
    "timeout_error is 504": (anthropic("timeout_error"), ("server", True, 504)),
    "rate_limit_error is 429": (anthropic("rate_limit_error"), ("rate_limit", True, 429)),
    "authentication_error is 401": (anthropic("authentication_error"), ("auth", False, 401)),
    "permission_error is 403": (anthropic("permission_error"), ("auth", False, 403)),
    "not_found_error is 404": (anthropic("not_found_error"), ("invalid_request", False, 404)),
    "request_too_large is 413": (anthropic("request_too_large"), ("context_length", False, 413)),
    "invalid_request_error is 400, and then words count": (
        anthropic("invalid_request_error", "prompt is too long"),
        ("context_length", False, 400),
    ),
    "insufficient_quota is 429, and spent": (openai("insufficient_quota"), ("rate_limit", False, 429)),
    "server_error is 500": (openai("server_error"), ("server", True, 500)),
    "the type counts where the code is not known": (
        openai("tool_use_failed", type="invalid_request_error"),
        ("invalid_request", False, 400),
    ),
    "INTERNAL is 500": ([{"error": {"status": "INTERNAL", "message": "no"}}], ("server", True, 500)),
    "UNAVAILABLE is 503": ({"error": {"status": "UNAVAILABLE", "message": "no"}}, ("server", True, 503)),
    "a status in the frame": (google(429, "INTERNAL"), ("rate_limit", True, 429)),
    "a status in the frame, as text": ({"error": {"code": "502", "message": "no"}}, ("server", True, 502)),
    "a status beside the code": (
        {"error": {"code": "tool_use_failed", "status_code": 400, "message": "no"}},
        ("invalid_request", False, 400),
    ),
    "a status in the frame outranks a token": (
        {"error": {"code": 400, "type": "overloaded_error", "message": "no"}},
        ("invalid_request", False, 400),
    ),
    "a number that is no status": ({"error": {"code": 3051, "message": "no"}}, ("unknown", False, None)),
    "a failed response": (
        {
            "type": "response.failed",
            "response": {"status": "failed", "error": {"code": "server_error", "message": "no"}},
        },
        ("server", True, 500),
    ),
    "an error event of the Responses API": (
        {"type": "error", "code": "rate_limit_exceeded", "message": "no"},
        ("rate_limit", True, 429),
    ),
    "content filter": (openai("content_filter"), ("safety", False, None)),
    "the token overloaded_error in words is 529": ("event: overloaded_error", ("server", True, 529)),
    "words: rate limit": ("Rate limit reached", ("rate_limit", True, None)),
    "words: key": ("bad API key", ("auth", False, None)),
    "words: network": ("connection reset by peer", ("network", True, None)),
    "words: timeout": ("upstream timed out", ("timeout", True, None)),
    "words: server": ("got 503 from upstream", ("server", True, None)),
    "words: context": ("prompt is too long", ("context_length", False, None)),
    "bare words mean nothing": ("generated maximum of 5031 separate authors, overloaded", ("unknown", False, None)),
    "nothing": ("", ("unknown", False, None)),
}


@pytest.mark.parametrize("given, expected", STATUSES.values(), ids=STATUSES.keys())
def test_with_a_status(given: tuple[int, Any], expected: tuple[str, bool, int | None]) -> None:
    assert kind(error(*given)) == expected


@pytest.mark.parametrize("body, expected", NO_STATUS.values(), ids=NO_STATUS.keys())
def test_inside_an_answer(body: Any, expected: tuple[str, bool, int | None]) -> None:
    assert kind(error(None, body, event="error")) == expected
    assert kind(error(200, body)) == expected


AWS = {
    "throttlingException": ("rate_limit", True, 429),
    "modelNotReadyException": ("rate_limit", True, 429),
    "internalServerException": ("server", True, 500),
    "serviceUnavailableException": ("server", True, 503),
    "modelTimeoutException": ("timeout", True, 408),
    "modelStreamErrorException": ("server", True, 424),
    "modelErrorException": ("invalid_request", False, 424),
    "validationException": ("invalid_request", False, 400),
    "accessDeniedException": ("auth", False, 403),
    "resourceNotFoundException": ("invalid_request", False, 404),
    "somethingNewException": ("server", True, 500),
    "someNewThrottlingException": ("rate_limit", True, 429),
}


@pytest.mark.parametrize("name, expected", AWS.items(), ids=AWS.keys())
def test_an_exception_frame_of_aws(name: str, expected: tuple[str, bool, int | None]) -> None:
    found = error(None, {"message": "no"}, event=name)
    assert (kind(found), found.provider_error_code) == (expected, name)


def test_throttling_by_tokens_is_no_matter_of_length() -> None:
    found = error(None, {"message": "Too many tokens, please wait before trying again."}, event="throttlingException")
    assert kind(found) == ("rate_limit", True, 429)


CODES = {
    "the code, where it is a word": (openai("model_not_found", type="invalid_request_error"), "model_not_found"),
    "the type, where there is no code": (openai(None, type="api_error"), "api_error"),
    "the status, where the code is a number": (google(429, "RESOURCE_EXHAUSTED"), "RESOURCE_EXHAUSTED"),
    "the type, where the code is a number": ({"error": {"type": "invalid_api_key", "code": 401}}, "invalid_api_key"),
    "the number, where there is nothing else": ({"error": {"code": 400, "message": "no"}}, "400"),
    "digits are a number": ({"error": {"code": "401", "type": "None"}}, "401"),
    "the word error is none": ({"type": "error", "message": "no"}, None),
    "beside the error": ({"code": "invalid-argument", "error": "no"}, "invalid-argument"),
    "in a list of errors": ({"success": False, "errors": [{"code": 7003, "message": "no"}]}, "7003"),
    "of a service of AWS": ({"__type": "com.amazon.coral.service#ThrottlingException"}, "ThrottlingException"),
    "in the detail": ({"detail": {"code": "bad_model", "message": "no"}}, "bad_model"),
    "none": ({"detail": "no"}, None),
    "none in text": ("no", None),
}


@pytest.mark.parametrize("body, code", CODES.values(), ids=CODES.keys())
def test_the_code(body: Any, code: str | None) -> None:
    assert error(400, body).provider_error_code == code


AWS_TYPE = [("x-amzn-ErrorType", "ExpiredTokenException:http://internal.amazon.com/coral/")]


def test_the_code_of_aws_stands_in_a_header_unless_the_body_names_one() -> None:
    found = error(403, {"message": "no"}, headers=AWS_TYPE)
    assert found.provider_error_code == "ExpiredTokenException"
    assert error(403, {"message": "no", "code": "Other"}, headers=AWS_TYPE).provider_error_code == "Other"


HTML = "<html>\r\n<head><title>502 Bad\r\n Gateway</title></head><body>" + "x" * 500 + "</body></html>"
MESSAGES = {
    "status, words, code": (
        (404, openai("model_not_found", "No such model")),
        "HTTP 404: No such model (model_not_found)",
    ),
    "a code that is the status is not repeated": ((400, {"error": {"code": 400, "message": "no"}}), "HTTP 400: no"),
    "an error that is text": ((400, {"error": "no"}), "HTTP 400: no"),
    "a detail": ((401, {"detail": "no"}), "HTTP 401: no"),
    "a message of AWS": ((400, {"Message": "no"}), "HTTP 400: no"),
    "what the upstream said": ((400, ROUTER), 'HTTP 400: Provider returned error: {"error": {"code": "x"}}'),
    "text": ((500, " no \n\n such "), "HTTP 500: no such"),
    "a title of HTML": ((502, HTML), "HTTP 502: 502 Bad Gateway"),
    "200 characters of other text": ((500, "y" * 201), "HTTP 500: " + "y" * 200),
    "1000 characters of a message": ((500, {"message": "y" * 1_001}), "HTTP 500: " + "y" * 1_000),
    "JSON without a message": ((500, {"odd": 1}), 'HTTP 500: {"odd": 1}'),
    "no JSON, though it looks like it": ((500, '{"message": NaN}'), 'HTTP 500: {"message": NaN}'),
    "nothing": ((502, ""), "HTTP 502: the body is empty"),
    "an answer that is an error": ((200, openai("x", "no")), "error in the answer: no (x)"),
}


@pytest.mark.parametrize("given, message", MESSAGES.values(), ids=MESSAGES.keys())
def test_the_message(given: tuple[int, Any], message: str) -> None:
    assert str(error(*given)) == f"acme: {message}"


def test_the_message_of_an_event_names_it() -> None:
    found = error(None, anthropic("overloaded_error", "Overloaded"), event="error")
    assert str(found) == "acme: error event error: Overloaded (overloaded_error)"


def test_a_body_nested_beyond_parsing_is_text() -> None:
    body = "[" * 200_000
    found = error(500, body)
    assert (kind(found), found.raw_error) == (("server", True, 500), body)


MANY = {
    "words of a pattern": {"message": "invalid signature " * 40_000},
    "other words of it": {"message": "thinking " * 80_000},
    "tags without an end": "<title" * 120_000,
    "waits without a unit": "retry after 1 " * 50_000,
}


@pytest.mark.parametrize("body", MANY.values(), ids=MANY.keys())
def test_a_long_body_is_a_refusal_like_another(body: Any) -> None:
    """A pattern that goes back over what it has read would take minutes here; tests/bench/growth.py has the figures."""
    assert error(400, body, gateway_texts=True).http_status == 400


ODD_SHAPES: dict[str, Any] = {
    "an empty object": {},
    "an empty list": [],
    "a list of text": ["no"],
    "a number": 7,
    "true": True,
    "fields of other types": {"error": {"message": 1, "code": True, "type": [], "details": {}, "metadata": []}},
    "errors that are text": {"errors": ["no"]},
    "a response without an error": {"response": {"error": None}},
    "an upstream that is no JSON": {"error": {"message": "no", "metadata": {"raw": "[" * 50_000}}},
    "a code of any length": {"error": {"code": "x" * 10_000, "status": "9" * 10_000}},
}


@pytest.mark.parametrize("body", ODD_SHAPES.values(), ids=ODD_SHAPES.keys())
def test_an_odd_body_is_an_error_like_any_other(body: Any) -> None:
    found = error(503, body)
    assert (kind(found), found.provider_error_code) == (("server", True, 503), None)


RAW = {"JSON": ('{"error": {"code": 1}}', {"error": {"code": 1}}), "text": ("no", "no"), "nothing": ("", None)}


@pytest.mark.parametrize("body, raw", RAW.values(), ids=RAW.keys())
def test_the_raw_error(body: str, raw: Any) -> None:
    assert error(500, body).raw_error == raw


REQUEST_IDS = {
    "Anthropic": ([("request-id", "r1")], {}, "r1"),
    "OpenAI": ([("X-Request-Id", "r2")], {}, "r2"),
    "AWS": ([("x-amzn-RequestId", "r3")], {}, "r3"),
    "Azure": ([("apim-request-id", "r4")], {}, "r4"),
    "in the body": ([], {"type": "error", "error": {"message": "no"}, "request_id": "r5"}, "r5"),
    "none": ([("cf-ray", "r6")], {}, None),
}


@pytest.mark.parametrize("headers, body, request_id", REQUEST_IDS.values(), ids=REQUEST_IDS.keys())
def test_the_request_id(headers: list[tuple[str, str]], body: Any, request_id: str | None) -> None:
    assert error(500, body, headers=headers).request_id == request_id


def test_a_stated_wait_and_the_limits() -> None:
    headers = [("retry-after", "3600"), ("x-ratelimit-limit-requests", "60")]
    found = error(429, openai("rate_limit_exceeded"), headers=headers)
    assert (found.retry_after_ms, found.rate_limit) == (3_600_000, {"requests": {"limit": 60}})


WAITS = {
    "a header": (429, [("retry-after", "2")], openai("x"), 2_000),
    "a body": (429, [], {"error": {"retry_after": 3}}, 3_000),
    "prose that is not JSON": (503, [], "retry after 4 seconds", 4_000),
    "a header of a success is none of the error": (200, [("retry-after", "2")], anthropic("overloaded_error"), None),
    "the body of an event is": (None, [("retry-after", "2")], anthropic("rate_limit_error", "retry in 5s"), 5_000),
}


@pytest.mark.parametrize("status, headers, body, wait_ms", WAITS.values(), ids=WAITS.keys())
def test_the_stated_wait(status: int | None, headers: Any, body: Any, wait_ms: int | None) -> None:
    assert error(status, body, headers=headers).retry_after_ms == wait_ms


AGGREGATE = {"error": {"message": "no", "providerMetadata": {"gateway": {"modelAttempts": []}}}}
OVERLOADED_AGGREGATE = {"error": {"message": "all upstreams overloaded", "fallbacksAvailable": []}}
GATEWAY = {
    "as sent": ((404, AGGREGATE), ("server", True, 404)),
    "503 where nothing was sent": ((None, AGGREGATE), ("server", True, 503)),
    "529 where it says overloaded": ((404, OVERLOADED_AGGREGATE), ("server", True, 529)),
    "temporarily unavailable": ((403, "Temporarily unavailable"), ("server", True, 403)),
    "not over a 400": ((400, AGGREGATE), ("invalid_request", False, 400)),
    "not over a 401": ((401, AGGREGATE), ("auth", False, 401)),
    "not over a 429": ((429, AGGREGATE), ("rate_limit", True, 429)),
    "not over a 500": ((500, OVERLOADED_AGGREGATE), ("server", True, 500)),
    "not over an implied 400": (
        (None, {"error": {"type": "invalid_request_error", "message": "temporarily unavailable"}}),
        ("invalid_request", False, 400),
    ),
    "text about overload": ((None, "upstream overloaded"), ("server", True, 529)),
    "JSON about overload": ((None, {"error": {"message": "overloaded"}}), ("unknown", False, None)),
    "other errors as ever": ((404, anthropic("not_found_error")), ("invalid_request", False, 404)),
}


@pytest.mark.parametrize("given, expected", GATEWAY.values(), ids=GATEWAY.keys())
def test_gateway_texts(given: tuple[int | None, Any], expected: tuple[str, bool, int | None]) -> None:
    assert kind(error(*given, gateway_texts=True)) == expected


def test_gateway_texts_are_read_only_where_asked_for() -> None:
    assert kind(error(404, AGGREGATE)) == ("invalid_request", False, 404)


class AbortError(Exception):
    pass


class ReadTimeoutError(TimeoutError):
    pass


def caused_by(cause: Exception) -> Exception:
    try:
        raise RuntimeError("it failed") from cause
    except RuntimeError as exc:
        return exc


EXCEPTIONS = {
    "a reset connection": (ConnectionResetError(errno.ECONNRESET, "reset"), "network"),
    "a closed pipe": (BrokenPipeError(), "network"),
    "no name": (socket.gaierror(-2, "Name or service not known"), "network"),
    "no route": (OSError(errno.EHOSTUNREACH, "No route to host"), "network"),
    "a timed-out socket": (socket.timeout("timed out"), "timeout"),
    "a timeout of another library": (ReadTimeoutError("pool"), "timeout"),
    "a timed-out connect": (OSError(errno.ETIMEDOUT, "x"), "timeout"),
    "a cause": (caused_by(ConnectionRefusedError(errno.ECONNREFUSED, "refused")), "network"),
    "the class named AbortError": (AbortError("rate limit"), "abort"),
    "the word abort is not read": (RuntimeError("abort"), "unknown"),
    "words: 429": (RuntimeError("HTTP 429"), "rate_limit"),
    "words: too many requests": (RuntimeError("Too many requests"), "rate_limit"),
    "words: rate is part of others": (RuntimeError("operation generated"), "unknown"),
    "words: 401": (RuntimeError("got 401"), "auth"),
    "words: author is not auth": (RuntimeError("author 4012"), "unknown"),
    "words: socket": (RuntimeError("socket hang up"), "network"),
    "words: timeout": (RuntimeError("deadline timeout"), "timeout"),
    "words: 502": (RuntimeError("HTTP 502"), "server"),
    "words: 4500 is not 500": (RuntimeError("4500 items"), "unknown"),
    "words: context": (RuntimeError("maximum context reached"), "context_length"),
    "words: in this order": (RuntimeError("429 or 401 or timeout"), "rate_limit"),
    "a missing file": (FileNotFoundError(errno.ENOENT, "No such file"), "unknown"),
    "a fault in code": (KeyError("name"), "unknown"),
}


@pytest.mark.parametrize("exc, type", EXCEPTIONS.values(), ids=EXCEPTIONS.keys())
def test_classify_exception(exc: Exception, type: str) -> None:
    found = classify_exception(exc)
    assert (found.type, found.http_status, found.provider_error_code) == (type, None, None)


def test_an_exception_is_named_in_the_message() -> None:
    found = classify_exception(ConnectionRefusedError("nobody there"))
    assert (str(found), found.retryable) == ("ConnectionRefusedError: nobody there", True)


def test_an_error_of_ours_stays_itself() -> None:
    known = MembraneError("safety", "no")
    assert classify_exception(known) is known


def recorded_errors() -> list[Any]:
    exchanges = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(shared("recorded").glob("*/*.json"))]
    return [exchange for exchange in exchanges if exchange["response"]["status"] >= 400]


def test_recorded_errors() -> None:
    errors = recorded_errors()
    assert len(errors) == 27
    for exchange in errors:
        response, expected = exchange["response"], exchange["expected"]
        body = response["body_text"] if "body_text" in response else response["body_json"]
        found = error(response["status"], body, headers=list(response["headers"].items()))
        codes = [str(expected[name]) for name in ("error_code", "error_type") if expected[name] is not None]
        assert found.http_status == expected["status"], exchange["id"]
        assert found.provider_error_code in (codes or [None]), exchange["id"]
        assert expected["error_message"] in str(found), exchange["id"]
        assert (found.retry_after_ms is not None) == (
            expected["retry_after_s"] is not None or "retry_delay_in_body_s" in expected
        ), exchange["id"]
