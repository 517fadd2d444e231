"""errors: the one exception, what it carries, and the texts of the faults that are raised in more than one place."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest

from membrane_lite.errors import (
    RETRYABLE_BY_TYPE,
    MembraneError,
    aborted,
    invalid,
    own_code_error,
    shown,
    unknown_field,
    wrong_type,
)
from membrane_lite.values.content import Text
from membrane_lite.values.responses import Usage
from membrane_lite.values.tools import ToolCall, ToolResult

RETRYABLE = {
    "rate_limit": True,
    "context_length": False,
    "invalid_request": False,
    "auth": False,
    "server": True,
    "network": True,
    "timeout": True,
    "abort": False,
    "safety": False,
    "unsupported": False,
    "thinking_binding": False,
    "unknown": False,
}


@pytest.mark.parametrize("type, retryable", RETRYABLE.items(), ids=RETRYABLE.keys())
def test_the_type_says_whether_to_send_again(type: Any, retryable: bool) -> None:
    assert MembraneError(type, "x").retryable is retryable


@pytest.mark.parametrize("type, retryable", RETRYABLE.items(), ids=RETRYABLE.keys())
def test_unless_it_is_said_otherwise(type: Any, retryable: bool) -> None:
    assert MembraneError(type, "x", retryable=not retryable).retryable is not retryable


def test_there_are_twelve_types() -> None:
    assert dict(RETRYABLE_BY_TYPE) == RETRYABLE


def whole() -> MembraneError:
    """An error with everything it can carry."""
    error = MembraneError(
        "rate_limit",
        "anthropic: HTTP 429: slow down",
        retryable=False,
        retry_after_ms=1_500,
        http_status=429,
        provider_error_code="rate_limit_error",
        request_id="req_1",
        rate_limit={"requests": {"limit": 50}},
        raw_error={"type": "error"},
        raw_request={"model": "m"},
        failure_class="rate_limit",
        system_change_refused=True,
    )
    return error.with_partial(
        content=[Text("a")],
        text="a",
        usage=Usage(input_tokens=9),
        tool_calls=[ToolCall("c1", "look", {"at": 1})],
        tool_results=[ToolResult("c1", "seen")],
    )


WHOLE = {
    "type": "rate_limit",
    "message": "anthropic: HTTP 429: slow down",
    "retryable": False,
    "retry_after_ms": 1_500,
    "http_status": 429,
    "provider_error_code": "rate_limit_error",
    "request_id": "req_1",
    "failure_class": "rate_limit",
    "system_change_refused": True,
    "rate_limit": {"requests": {"limit": 50}},
    "raw_error": {"type": "error"},
    "raw_request": {"model": "m"},
    "partial_content": [{"type": "text", "text": "a"}],
    "raw_assistant_text": "a",
    "partial_usage": {"input_tokens": 9, "output_tokens": 0, "unreported": []},
    "tool_calls": [{"id": "c1", "name": "look", "input": {"at": 1}}],
    "tool_results": [{"tool_use_id": "c1", "content": "seen"}],
}

AS_DATA = {
    "everything": (whole(), WHOLE),
    "the least": (MembraneError("auth", "x"), {"type": "auth", "message": "x", "retryable": False}),
    "an empty message": (MembraneError("server", ""), {"type": "server", "message": "", "retryable": True}),
    "a stated wait of 0": (
        MembraneError("server", "x", retry_after_ms=0),
        {"type": "server", "message": "x", "retryable": True, "retry_after_ms": 0},
    ),
}


@pytest.mark.parametrize("error, data", AS_DATA.values(), ids=AS_DATA.keys())
def test_an_error_as_data(error: MembraneError, data: dict[str, Any]) -> None:
    given = error.to_dict()
    assert (given, list(given)) == (data, list(data))
    assert json.loads(json.dumps(given)) == given


COPIES = {
    "pickle": lambda error: pickle.loads(pickle.dumps(error)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES.keys())
def test_a_copy_of_an_error_carries_the_same(copied: Any) -> None:
    again = copied(whole().with_advice(" (wait)"))
    assert type(again) is MembraneError
    assert again.to_dict() == {**WHOLE, "message": "anthropic: HTTP 429: slow down (wait)"}
    assert str(again) == "anthropic: HTTP 429: slow down (wait)"


SHOWN = {
    "without a status": (MembraneError("auth", "no key"), "MembraneError('auth', 'no key', retryable=False)"),
    "with one": (
        MembraneError("server", "down", http_status=529),
        "MembraneError('server', 'down', http_status=529, retryable=True)",
    ),
}


@pytest.mark.parametrize("error, text", SHOWN.values(), ids=SHOWN.keys())
def test_an_error_shows_its_type_and_message(error: MembraneError, text: str) -> None:
    assert repr(error) == text
    assert str(error) == error.message


def test_what_is_added_to_an_error_stays_the_same_error() -> None:
    error, cause = MembraneError("timeout", "slow"), OSError("down")
    assert error.with_request({"model": "m"}) is error
    assert error.with_request({"model": "n"}).raw_request == {"model": "m"}
    assert error.with_class("deadline").failure_class == "deadline"
    assert error.with_cause(cause).__cause__ is cause
    assert str(error.with_advice("; wait")) == "slow; wait"


LONG = {
    "short": ("x", "'x'"),
    "as long as may be": ("x" * 198, f"'{'x' * 198}'"),
    "longer": ("x" * 199, f"'{'x' * 199}..."),
    "a list": ([1, None], "[1, None]"),
}


@pytest.mark.parametrize("value, text", LONG.values(), ids=LONG.keys())
def test_a_value_in_a_message(value: object, text: str) -> None:
    assert shown(value) == text


TEXTS = {
    "a setting that cannot be used": (
        invalid("retry.max_retries", "found -1", "expected 0 or more"),
        ("invalid_request", "retry.max_retries: found -1; expected 0 or more"),
    ),
    "a value of another type": (
        wrong_type("config.model", None, "a string"),
        ("invalid_request", "config.model: found NoneType None; expected a string"),
    ),
    "a misspelt field": (
        unknown_field("config", "max_token", ["model", "max_tokens"]),
        ("invalid_request", "config: no field 'max_token'; did you mean 'max_tokens'?"),
    ),
    "a field that is like none": (
        unknown_field("config", "zzz", ["model", "max_tokens"]),
        ("invalid_request", "config: no field 'zzz'; it takes model, max_tokens."),
    ),
    "a field that is no string": (
        unknown_field("config", 7, ["model"]),
        ("invalid_request", "config: no field 7; it takes model."),
    ),
    "an abort": (aborted(), ("abort", "the call was aborted by its signal")),
    "an abort with a reason": (
        aborted("shutting down"),
        ("abort", "the call was aborted by its signal: shutting down"),
    ),
}


@pytest.mark.parametrize("error, expected", TEXTS.values(), ids=TEXTS.keys())
def test_the_faults_of_several_places(error: MembraneError, expected: tuple[str, str]) -> None:
    assert (error.type, error.message, error.retryable) == (*expected, False)


def test_what_the_callers_own_code_raises_is_never_sent_again() -> None:
    raised = MembraneError("server", "HTTP 503", http_status=503, retry_after_ms=5, provider_error_code="x")
    error = own_code_error("on_chunk", raised, raised)
    assert error is not raised
    assert error.to_dict() == {
        "type": "server",
        "message": "on_chunk raised MembraneError: HTTP 503",
        "retryable": False,
    }


def test_what_says_itself_that_it_is_final_is_kept() -> None:
    raised = MembraneError("auth", "no")
    assert own_code_error("on_chunk", raised, raised) is raised


def test_another_exception_takes_the_type_it_is_classified_as() -> None:
    error = own_code_error("before_request", ValueError("bad"), MembraneError("unknown", "ValueError: bad"))
    assert error.to_dict() == {
        "type": "unknown",
        "message": "before_request raised ValueError: bad",
        "retryable": False,
    }
