"""Requests that a provider refuses are refused in its words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from loopback.plain_client import ASKED, COMPLETIONS, Browser

from membrane_lite.loopback import LoopbackProvider, Raw, Reply
from membrane_lite.loopback.routes import KNOWN_PATHS

USER = {"role": "user", "content": "Hi"}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "t", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "noon"}
CHANGE = {"role": "system", "content": [{"type": "text", "text": "Be brief."}]}
ASSISTANT = {"role": "assistant", "content": "Hello"}
ASSISTANT_CALLS = {"role": "assistant", "content": [CALL]}
CHAT_CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": {}}]}

BUDGET = {"type": "enabled", "budget_tokens": 1024}

UNANSWERED = (
    "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1. "
    "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
)
MISPLACED = "messages.{}: role 'system' must follow a user message, and be last or before an assistant one"
UNCALLED = (
    "messages.{}: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1. "
    "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
)

ANTHROPIC: dict[str, tuple[dict[str, Any], str | None]] = {
    "a whole request": ({}, None),
    "no model": ({"model": ...}, "model: Field required"),
    "no max_tokens": ({"max_tokens": ...}, "max_tokens: Field required"),
    "no messages": ({"messages": ...}, "messages: Field required"),
    "an empty list of messages": ({"messages": []}, "messages: at least one message is required"),
    "the assistant speaks first": (
        {"messages": [{"role": "assistant", "content": "Hi"}]},
        'messages: first message must use the "user" role',
    ),
    "two messages of one role are one turn": ({"messages": [USER, USER]}, None),
    "a change after a user": ({"messages": [USER, CHANGE]}, None),
    "several of them, before the assistant": ({"messages": [USER, CHANGE, CHANGE, ASSISTANT, USER]}, None),
    "a change after the assistant": ({"messages": [USER, ASSISTANT, CHANGE]}, MISPLACED.format(2)),
    "a change before a user": ({"messages": [USER, CHANGE, USER]}, MISPLACED.format(1)),
    "a change between a call and its result": (
        {"messages": [USER, ASSISTANT_CALLS, CHANGE, {"role": "user", "content": [RESULT]}]},
        MISPLACED.format(2),
    ),
    "an empty text block": (
        {"messages": [{"role": "user", "content": [{"type": "text", "text": ""}]}]},
        "messages: text content blocks must be non-empty",
    ),
    "an empty content": ({"messages": [{**USER, "content": ""}]}, "messages: text content blocks must be non-empty"),
    "a blank text block": (
        {"messages": [{"role": "user", "content": [{"type": "text", "text": " \n"}]}]},
        "messages: text content blocks must contain non-whitespace text",
    ),
    "an empty system block": (
        {"system": [{"type": "text", "text": ""}]},
        "system: text content blocks must be non-empty",
    ),
    "a prefill that ends with a space": (
        {"messages": [USER, {"role": "assistant", "content": "So "}]},
        "messages: final assistant content cannot end with trailing whitespace",
    ),
    "a prefill that does not": ({"messages": [USER, {"role": "assistant", "content": "So"}]}, None),
    "thinking within a budget, and a tool that must be called": (
        {"thinking": BUDGET, "tools": [{"name": "t"}], "tool_choice": {"type": "tool", "name": "t"}},
        "Thinking may not be enabled when tool_choice forces tool use.",
    ),
    "and any tool that must be called": (
        {"thinking": BUDGET, "tools": [{"name": "t"}], "tool_choice": {"type": "any"}},
        "Thinking may not be enabled when tool_choice forces tool use.",
    ),
    "and no tool that must be": (
        {"thinking": BUDGET, "tools": [{"name": "t"}], "tool_choice": {"type": "none"}},
        None,
    ),
    "thinking as it sees fit, and a tool that must be called": (
        {"thinking": {"type": "adaptive"}, "tools": [{"name": "t"}], "tool_choice": {"type": "tool", "name": "t"}},
        None,
    ),
    "a tool that must be called and is not there": (
        {"tools": [{"name": "u"}], "tool_choice": {"type": "tool", "name": "t"}},
        "Tool 't' not found in provided tools",
    ),
    "a call and its result": ({"messages": [USER, ASSISTANT_CALLS, {"role": "user", "content": [RESULT]}]}, None),
    "a call without its result": ({"messages": [USER, ASSISTANT_CALLS, USER]}, UNANSWERED),
    "a call at the end": ({"messages": [USER, ASSISTANT_CALLS]}, UNANSWERED),
    "a result one message late": (
        {"messages": [USER, ASSISTANT_CALLS, USER, {"role": "user", "content": [RESULT]}]},
        UNANSWERED,
    ),
    "a text before the result": (
        {"messages": [USER, ASSISTANT_CALLS, {"role": "user", "content": [{"type": "text", "text": "So"}, RESULT]}]},
        UNANSWERED,
    ),
    "a text after the result": (
        {"messages": [USER, ASSISTANT_CALLS, {"role": "user", "content": [RESULT, {"type": "text", "text": "So"}]}]},
        None,
    ),
    "a result without its call": (
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "So"}, RESULT]}]},
        UNCALLED.format("0.content.1"),
    ),
    "one id for two calls": (
        {"messages": [USER, {"role": "assistant", "content": [CALL, CALL]}, {"role": "user", "content": [RESULT]}]},
        "messages: `tool_use` ids must be unique",
    ),
    "messages of another shape": ({"messages": ["Hi"]}, "messages: Input does not match the expected shape."),
}


@pytest.mark.parametrize("fields, message", ANTHROPIC.values(), ids=ANTHROPIC.keys())
def test_anthropic(fields: dict[str, Any], message: str | None) -> None:
    with LoopbackProvider([Reply("ok")]) as provider, Browser(provider) as browser:
        status, body = browser.send(_body(fields))
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    answer = json.loads(body)
    assert (status, answer if message else answer["content"][0]["text"]) == ((400, error) if message else (200, "ok"))


HEADS: dict[str, tuple[dict[str, str], int, str]] = {
    "no key": ({"anthropic-version": "2023-06-01"}, 401, "x-api-key header is required"),
    "no version": ({"x-api-key": "any"}, 400, "anthropic-version: header is required"),
}


@pytest.mark.parametrize("headers, status, message", HEADS.values(), ids=HEADS.keys())
def test_anthropic_headers(headers: dict[str, str], status: int, message: str) -> None:
    with LoopbackProvider([Reply("ok")]) as provider, Browser(provider) as browser:
        answer = browser.send(_body({}), headers=headers)
    assert (answer[0], json.loads(answer[1])["error"]["message"]) == (status, message)


def test_anthropic_takes_a_bearer_token_for_a_key() -> None:
    headers = {"authorization": "Bearer any", "anthropic-version": "2023-06-01"}
    with LoopbackProvider([Reply("ok")]) as provider, Browser(provider) as browser:
        assert browser.send(_body({}), headers=headers)[0] == 200


def test_anthropic_refuses_a_body_that_is_not_json() -> None:
    with LoopbackProvider([Reply("ok")]) as provider, Browser(provider) as browser:
        status, body = browser.send(b"{")
    assert (status, json.loads(body)["error"]["type"]) == (400, "invalid_request_error")


CHAT: dict[str, tuple[dict[str, Any], str | None, str | None]] = {
    "a whole request": ({}, None, None),
    "no model": ({"model": ...}, "you must provide a model parameter", None),
    "no messages": ({"messages": ...}, "Missing required parameter: 'messages'.", "missing_required_parameter"),
    "a call and its result": (
        {"messages": [USER, CHAT_CALL, {"role": "tool", "tool_call_id": "call_1", "content": "noon"}]},
        None,
        None,
    ),
    "a call without its result": (
        {"messages": [USER, CHAT_CALL, USER]},
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        "The following tool_call_ids did not have response messages: call_1",
        None,
    ),
}


@pytest.mark.parametrize("fields, message, code", CHAT.values(), ids=CHAT.keys())
def test_chat(fields: dict[str, Any], message: str | None, code: str | None) -> None:
    with LoopbackProvider([Reply("ok")]) as provider, Browser(provider) as browser:
        status, body = browser.send(_body(fields), target=COMPLETIONS, headers={})
    answer = json.loads(body)
    if message is None:
        assert (status, answer["choices"][0]["message"]["content"]) == (200, "ok")
    else:
        assert (status, answer["error"]["message"], answer["error"]["code"]) == (400, message, code)


def test_a_refused_request_uses_up_no_answer() -> None:
    with LoopbackProvider([Reply("ok")]) as provider, Browser(provider) as browser:
        statuses = [browser.send(_body({"model": ...}))[0], browser.send(_body({}))[0], browser.send(_body({}))[0]]
    assert statuses == [400, 200, 500]


def test_a_function_is_not_answered_from_when_the_request_is_refused() -> None:
    with LoopbackProvider(lambda received: Reply("ok")) as provider, Browser(provider) as browser:
        assert browser.send(_body({"model": ...}))[0] == 400


def test_checks_can_be_switched_off() -> None:
    with LoopbackProvider([Reply("ok")], check=False) as provider, Browser(provider) as browser:
        assert browser.send(b"{}", headers={})[0] == 200


def test_a_raw_answer_is_sent_whatever_was_asked() -> None:
    with LoopbackProvider([Raw(200, {}, "ok")]) as provider, Browser(provider) as browser:
        assert browser.send(b"{", target="/nowhere", headers={}) == (200, b"ok")


def test_a_reply_needs_a_path_that_has_a_format() -> None:
    with LoopbackProvider([Reply("ok")]) as provider, Browser(provider) as browser:
        status, body = browser.send(_body({}), target="/v2/messages")
    assert status == 404
    assert json.loads(body)["error"]["message"] == (
        f"POST /v2/messages: no wire format has this path; expected one of {KNOWN_PATHS}"
    )


def test_a_query_and_a_proxy_s_target_do_not_hide_the_format() -> None:
    with LoopbackProvider([Reply("ok"), Reply("ok")]) as provider, Browser(provider) as browser:
        assert browser.send(_body({}), target="/v1/messages?beta=true")[0] == 200
        assert browser.send(_body({}), target="http://api.example/v1/messages")[0] == 200


def _body(fields: dict[str, Any]) -> bytes:
    """The usual request with these fields; `...` leaves one out."""
    return json.dumps({key: value for key, value in {**ASKED, **fields}.items() if value is not ...}).encode()
