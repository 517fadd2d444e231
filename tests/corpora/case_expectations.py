"""What a case expects of a run. CASE_WORDS gives for each word of `expected` a function (run, wanted) -> faults."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from typing import Any

from corpora.case_run import Run
from corpora.wire_request import Faults, WireRequest, equal, faults_of, header, holds, listed

from membrane_lite import AbortedResponse, GeneratedImage, MembraneError, Response, Thinking
from membrane_lite.retry import classify_failure

# Their words for kinds of errors that are finer than our types.
ERROR_TYPES: Mapping[str, Callable[[MembraneError], bool]] = {
    "overloaded": lambda error: (
        error.type == "server" and error.http_status == 529 and classify_failure(error) == "overloaded"
    ),
    "content_filter": lambda error: error.type == "safety",
}
ENDS = ("error", "aborted", "value")  # a case that names none of these expects that its calls end with a response


def faults(run: Run, expected: Mapping[str, Any]) -> Faults:
    """All that is not as expected, [] where nothing is."""
    return [*unexpected_end(run, expected), *faults_in(run, expected)]


def faults_in(run: Run, expected: Mapping[str, Any]) -> Faults:
    return [fault for word, wanted in expected.items() for fault in CASE_WORDS[word](run, wanted)]


def unexpected_end(run: Run, expected: Mapping[str, Any]) -> Faults:
    named = {word for part in [expected, *expected.get("one_of", ())] for word in part}
    return holds(f"the call ended with {run.result!r}", isinstance(run.result, Response) or not named.isdisjoint(ENDS))


# Results


def of_response(name: str, read: Callable[[Response], Any]) -> Callable[[Run, Any], Faults]:
    """A word whose value is read off a response, and equal to what is wanted."""

    def compare(run: Run, wanted: Any) -> Faults:
        if not isinstance(run.result, Response):
            return [f"{name}: there is no response, expected {wanted!r}"]
        return equal(name, read(run.result), wanted)

    return compare


def said(result: Any) -> str:
    return str(result.text if isinstance(result, Response) else result.raw_assistant_text)


def thought(result: Any) -> str:
    return "".join(block.thinking for block in result.content if isinstance(block, Thinking))


def images_of(response: Response) -> list[Any]:
    images = [block for block in response.content if isinstance(block, GeneratedImage)]
    return [{"media_type": image.mime_type, "data": image.data} for image in images]


def text_contains(run: Run, wanted: Any) -> Faults:
    return [f"text {said(run.result)!r} lacks {part!r}" for part in listed(wanted) if part not in said(run.result)]


def thinking_contains(run: Run, wanted: Any) -> Faults:
    seen = thought(run.result)
    return [f"thinking {seen!r} lacks {part!r}" for part in listed(wanted) if part not in seen]


def text_encodes_utf8(run: Run, wanted: bool) -> Faults:
    try:
        run.result.text.encode("utf-8")
    except UnicodeEncodeError as exc:
        return holds(f"text: {exc}", not wanted)
    return holds("text: it can be encoded", wanted)


def texts(run: Run, wanted: list[str]) -> Faults:
    return equal("texts", [said(result) for result in run.results], wanted)


def delivered_text(run: Run, wanted: str) -> Faults:
    return equal("delivered text", "".join(run.chunks), wanted)


def tool_calls(run: Run, wanted: list[Mapping[str, Any]]) -> Faults:
    """A call that is wanted without an id may have any."""
    calls = [{"id": call.id, "name": call.name, "input": call.input} for call in run.result.tool_calls]
    shown = [{name: call[name] for name in like} for call, like in zip(calls, wanted)] + calls[len(wanted) :]
    named = holds(f"a call without an id: {calls}", all(call["id"] for call in calls))
    return named + equal("tool calls", shown, wanted)


def tool_call_ids_unique(run: Run, wanted: bool) -> Faults:
    ids = [call.id for call in run.result.tool_calls]
    return holds(f"tool call ids {ids}", (len(set(ids)) == len(ids)) is wanted)


def tool_runs(run: Run, wanted: list[Any]) -> Faults:
    return equal("tool runs", run.tool_runs, wanted)


def tool_runs_without(run: Run, wanted: Any) -> Faults:
    return [f"tool run {each!r}" for each in listed(wanted) if each in run.tool_runs]


def usage(run: Run, wanted: Mapping[str, Any]) -> Faults:
    """Input is what the provider calls so; cache counts stand beside it."""
    counts = run.result.details.usage
    cached = (counts.cache_read_tokens or 0) + (counts.cache_creation_tokens or 0)
    seen = {**vars(counts), "input_tokens": counts.input_tokens + cached * run.provider.cached_inside_input}
    return [fault for name, value in wanted.items() for fault in equal(f"usage.{name}", seen[name], value)]


def value(run: Run, wanted: Any) -> Faults:
    """Of a structured answer."""
    return equal("value", run.result, wanted)


# Ends


def error(run: Run, wanted: Mapping[str, Any]) -> Faults:
    if run.error is None:
        return [f"no error was raised, expected {wanted!r}"]
    if not isinstance(run.error, MembraneError):
        return [f"{run.error!r} is no MembraneError, expected {wanted!r}"]
    return [fault for word, value in wanted.items() for fault in ERROR_WORDS[word](run.error, value)]


def error_type(seen: MembraneError, wanted: Any) -> Faults:
    fits = [ERROR_TYPES[word](seen) if word in ERROR_TYPES else seen.type == word for word in listed(wanted)]
    return holds(f"error type {seen.type!r}, expected {wanted!r}", any(fits))


def error_field(name: str) -> Callable[[MembraneError, Any], Faults]:
    return lambda seen, wanted: equal(f"error.{name}", getattr(seen, name), wanted)


def message_contains(seen: MembraneError, wanted: Any) -> Faults:
    return [f"message {str(seen)!r} lacks {part!r}" for part in listed(wanted) if part not in str(seen)]


def message_contains_any(seen: MembraneError, wanted: list[str]) -> Faults:
    return holds(f"message {str(seen)!r} holds none of {wanted}", any(part in str(seen) for part in wanted))


def python_type_not(seen: MembraneError, wanted: Any) -> Faults:
    names = [kind.__name__ for kind in type(seen).__mro__]
    return [f"the error is a {name}" for name in listed(wanted) if name in names]


def aborted(run: Run, wanted: Mapping[str, Any]) -> Faults:
    if not isinstance(run.result, AbortedResponse):
        return [f"the call ended with {run.result!r}, expected an abort {wanted!r}"]
    return [fault for name, value in wanted.items() for fault in equal(name, getattr(run.result, name), value)]


def one_of(run: Run, wanted: list[Mapping[str, Any]]) -> Faults:
    found = [faults_in(run, each) for each in wanted]
    return [] if [] in found else [f"none of several holds: {found}"]


def none_of(run: Run, wanted: Mapping[str, Any]) -> Faults:
    return holds(f"{wanted!r} holds", bool(faults_in(run, wanted)))


# Requests, waits, times


def attempts(run: Run, wanted: int) -> Faults:
    return equal("attempts", run.server.request_count, wanted)


def waits_ms(run: Run, wanted: list[Any]) -> Faults:
    waits = run.waits_ms
    fit = len(waits) == len(wanted) and all(map(within, waits, wanted))
    return holds(f"waits {waits}, expected {wanted}", fit)


def within(wait: float, wanted: Any) -> bool:
    bounds = wanted if isinstance(wanted, dict) else {"min": wanted, "max": wanted}
    return bool(bounds["min"] <= wait <= bounds["max"])


def within_ms(run: Run, wanted: float) -> Faults:
    return holds(f"the call took {run.took_ms:.0f} ms, expected {wanted} at most", run.took_ms <= wanted)


def first_text_within_ms(run: Run, wanted: float) -> Faults:
    seen = run.first_text_ms
    return holds(f"the first text came after {seen} ms, expected {wanted}", seen is not None and seen <= wanted)


def server_saw_close(run: Run, wanted: bool) -> Faults:
    return equal("the server saw a close", run.server.wait_for_close(), wanted)


def sent(run: Run, wanted: list[Mapping[str, Any]]) -> Faults:
    return faults_of_all(run.sent, wanted)


def faults_of_all(requests: list[WireRequest], wanted: list[Mapping[str, Any]]) -> Faults:
    missing = holds(f"{len(requests)} requests, expected {len(wanted)} or more", len(requests) >= len(wanted))
    return missing + [
        f"request {number}: {fault}"
        for number, (request, like) in enumerate(zip(requests, wanted))
        for fault in faults_of(request, like, requests[:number])
    ]


def proxy_saw(run: Run, wanted: Mapping[str, Any]) -> Faults:
    assert set(wanted) <= {"target", "headers"}, f"no rule for {set(wanted)} of proxy_saw"
    if not run.proxy.requests:
        return ["the proxy saw no request"]
    seen = WireRequest.of_received(run.proxy.requests[0])
    heads = [header(name, seen.headers.get(name), value) for name, value in wanted.get("headers", {}).items()]
    return [fault for found in heads for fault in found] + equal(
        "target", seen.target, wanted.get("target", seen.target)
    )


def second_server_requests(run: Run, wanted: int) -> Faults:
    return equal("requests at the second server", run.second.request_count, wanted)


def nowhere(run: Run, wanted: list[str]) -> Faults:
    """Not where a person may come to read it. The log is looked at by the test, which can capture it."""
    seen = places(run)
    return [f"{secret!r} stands in {place}" for secret in wanted for place, text in seen.items() if secret in text]


def places(run: Run) -> dict[str, str]:
    shown = {f"repr({type(each).__name__})": repr(each) for each in run.client}
    result = {"str()": str(run.result), "repr()": repr(run.result)}
    if hasattr(run.result, "to_dict"):
        result["to_dict()"] = repr(run.result.to_dict())
    if run.error is not None:
        result["the traceback"] = "".join(
            traceback.format_exception(type(run.error), run.error, run.error.__traceback__)
        )
    return {**shown, **result}


ERROR_WORDS: Mapping[str, Callable[[MembraneError, Any], Faults]] = {
    "type": error_type,
    "retryable": error_field("retryable"),
    "retry_after_ms": error_field("retry_after_ms"),
    "http_status": error_field("http_status"),
    "provider_error_code": error_field("provider_error_code"),
    "message_contains": message_contains,
    "message_contains_any": message_contains_any,
    "python_type_not": python_type_not,
}

CASE_WORDS: Mapping[str, Callable[[Run, Any], Faults]] = {
    "text": of_response("text", said),
    "thinking": of_response("thinking", thought),
    "stop_reason": of_response("stop reason", lambda response: response.stop_reason),
    "images": of_response("images", images_of),
    "text_contains": text_contains,
    "thinking_contains": thinking_contains,
    "text_encodes_utf8": text_encodes_utf8,
    "texts": texts,
    "delivered_text": delivered_text,
    "tool_calls": tool_calls,
    "tool_call_ids_unique": tool_call_ids_unique,
    "tool_runs": tool_runs,
    "tool_runs_without": tool_runs_without,
    "usage": usage,
    "value": value,
    "error": error,
    "aborted": aborted,
    "one_of": one_of,
    "not": none_of,
    "attempts": attempts,
    "requests_answered": attempts,  # the server answers every request that arrives whole
    "waits_ms": waits_ms,
    "within_ms": within_ms,
    "first_text_within_ms": first_text_within_ms,
    "server_saw_close": server_saw_close,
    "sent": sent,
    "proxy_saw": proxy_saw,
    "second_server_requests": second_server_requests,
    "nowhere": nowhere,
}
