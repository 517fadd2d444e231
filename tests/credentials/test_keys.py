"""keys: where a key comes from, what is wrong with it, and where it goes; it is shown nowhere."""

from __future__ import annotations

from typing import Any

import pytest

from membrane_lite.call import Call
from membrane_lite.clock import Clock
from membrane_lite.credentials.keys import HeaderAuth, Key, read_key
from membrane_lite.errors import MembraneError
from membrane_lite.providers.anthropic import AnthropicAdapter, anthropic_keys
from membrane_lite.providers.openai_compatible import OpenAICompatibleAdapter
from membrane_lite.wire.http import HttpRequest, header

READ: dict[str, tuple[str | None, dict[str, str], str | None]] = {
    "the argument": ("key-a", {}, "key-a"),
    "the variable": (None, {"VAR": "key-b"}, "key-b"),
    "the argument outranks the variable": ("key-a", {"VAR": "key-b"}, "key-a"),
    "white space around it": (" key-a\n", {}, "key-a"),
    "white space around a variable": (None, {"VAR": "\tkey-b \r\n"}, "key-b"),
    "neither": (None, {}, None),
    "an empty variable": (None, {"VAR": ""}, None),
    "a blank variable": (None, {"VAR": " \n"}, None),
    "an empty argument is no key, and no variable is read": ("", {"VAR": "key-b"}, None),
    "a blank argument": (" ", {"VAR": "key-b"}, None),
    "every visible character": ("!~-_.=+/", {}, "!~-_.=+/"),
}


@pytest.mark.parametrize("given, env, key", READ.values(), ids=READ.keys())
def test_where_a_key_comes_from(given: str | None, env: dict[str, str], key: str | None) -> None:
    assert read_key(given, "api_key", "VAR", env) == key


WRONG_TEXT = "the key holds a line break, a space or a character that is not ASCII; check how it was set"
WRONG: dict[str, tuple[Any, dict[str, str], str]] = {
    "a line break in an argument": ("sk-a\nsk-b", {}, f"api_key: {WRONG_TEXT}"),
    "a line break in a variable": (None, {"VAR": "sk-a\r\nsk-b"}, f"VAR: {WRONG_TEXT}"),
    "a space": ("sk-a sk-b", {}, f"api_key: {WRONG_TEXT}"),
    "a character that is not ASCII": (None, {"VAR": "sk-ä"}, f"VAR: {WRONG_TEXT}"),
    "a quotation mark of a word processor": ("“sk-a”", {}, f"api_key: {WRONG_TEXT}"),
    "a control character": ("sk-\x7f", {}, f"api_key: {WRONG_TEXT}"),
    "no string": (7, {}, "api_key: found int; expected a string"),
    "bytes": (b"sk-secret", {}, "api_key: found bytes; expected a string"),
}


@pytest.mark.parametrize("given, env, words", WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_with_a_key_and_where_it_came_from(given: Any, env: dict[str, str], words: str) -> None:
    with pytest.raises(MembraneError) as raised:
        read_key(given, "api_key", "VAR", env)
    assert (raised.value.type, raised.value.message, raised.value.raw_error) == ("auth", words, None)
    assert "sk-" not in repr(raised.value)


# Into a request

REQUEST = HttpRequest("POST", "http://h", [("X-Api-Key", "old"), ("Accept", "a")], b"{}")
KEY, TOKEN = Key("k", "x-api-key"), Key("t", "Authorization", "Bearer ")
PLACEHOLDER = Key("YOUR_API_KEY", "x-api-key")
CALL = Call(clock=Clock())

AUTHORIZED: dict[str, tuple[list[Key], list[tuple[str, str]]]] = {
    "a key replaces what stands there": ([KEY], [("X-Api-Key", "k"), ("Accept", "a")]),
    "a token": ([TOKEN], [("X-Api-Key", "old"), ("Accept", "a"), ("Authorization", "Bearer t")]),
    "both": ([KEY, TOKEN], [("X-Api-Key", "k"), ("Accept", "a"), ("Authorization", "Bearer t")]),
}


@pytest.mark.parametrize("keys, headers", AUTHORIZED.values(), ids=AUTHORIZED.keys())
def test_keys_go_into_headers(keys: list[Key], headers: list[tuple[str, str]]) -> None:
    auth = HeaderAuth(keys, missing="no key", placeholder=PLACEHOLDER)
    sent = auth.authorized(REQUEST, CALL)
    assert list(sent.headers) == headers
    assert (sent.method, sent.url, sent.body) == (REQUEST.method, REQUEST.url, REQUEST.body)
    assert auth.shown(REQUEST, Clock()) == sent
    assert auth.secrets == [key.value for key in keys]
    assert REQUEST.headers[0] == ("X-Api-Key", "old")


def test_without_a_key_that_is_needed_nothing_is_sent() -> None:
    auth = HeaderAuth([], missing="api_key: no key", placeholder=PLACEHOLDER)
    with pytest.raises(MembraneError) as raised:
        auth.authorized(REQUEST, CALL)
    assert (raised.value.type, raised.value.message, raised.value.retryable) == ("auth", "api_key: no key", False)
    assert auth.shown(REQUEST, Clock()).headers[0] == ("X-Api-Key", "YOUR_API_KEY")


def test_without_a_key_that_is_not_needed_the_request_is_as_it_was() -> None:
    auth = HeaderAuth([], missing=None)
    assert auth.authorized(REQUEST, CALL) == auth.shown(REQUEST, Clock()) == REQUEST


# Anthropic's two

BOTH = {"ANTHROPIC_API_KEY": "env-key", "ANTHROPIC_AUTH_TOKEN": "env-token"}
ANTHROPIC: dict[str, tuple[str | None, str | None, dict[str, str], list[tuple[str, str]]]] = {
    "nothing": (None, None, {}, []),
    "the key of the environment": (None, None, {"ANTHROPIC_API_KEY": "env-key"}, [("x-api-key", "env-key")]),
    "its token": (None, None, {"ANTHROPIC_AUTH_TOKEN": "env-token"}, [("Authorization", "env-token")]),
    "both of the environment go out": (None, None, BOTH, [("x-api-key", "env-key"), ("Authorization", "env-token")]),
    "an explicit key goes out alone": ("key", None, BOTH, [("x-api-key", "key")]),
    "an explicit token too": (None, "token", BOTH, [("Authorization", "token")]),
    "an explicit blank token switches the key off": (None, "", BOTH, []),
}


@pytest.mark.parametrize("key, token, env, sent", ANTHROPIC.values(), ids=ANTHROPIC.keys())
def test_the_keys_of_anthropic(
    key: str | None, token: str | None, env: dict[str, str], sent: list[tuple[str, str]]
) -> None:
    assert [(found.header, found.value) for found in anthropic_keys(key, token, env)] == sent


QUESTION = {"messages": [{"participant": "Ann", "content": "hi"}], "config": {"model": "claude-sonnet-4-5"}}


def test_a_token_is_sent_as_a_bearers() -> None:
    headers = AnthropicAdapter(auth_token="token-1", base_url="http://h").render(QUESTION).headers
    assert (header(headers, "authorization"), header(headers, "x-api-key")) == ("Bearer token-1", None)


def test_a_rendered_request_without_a_key_shows_where_it_goes() -> None:
    headers = AnthropicAdapter(api_key="", base_url="http://h").render(QUESTION).headers
    assert header(headers, "x-api-key") == "YOUR_API_KEY"


def test_a_server_that_needs_no_key_is_shown_none() -> None:
    headers = OpenAICompatibleAdapter(base_url="http://h").render(QUESTION).headers
    assert header(headers, "authorization") is None


SHOWN: dict[str, Any] = {
    "AnthropicAdapter": lambda: AnthropicAdapter(api_key="sk-secret-key-1", base_url="http://h"),
    "OpenAICompatibleAdapter": lambda: OpenAICompatibleAdapter(base_url="http://h", api_key="sk-secret-key-1"),
}


@pytest.mark.parametrize("made", SHOWN.values(), ids=SHOWN.keys())
def test_what_is_shown_of_an_adapter_holds_no_key(made: Any) -> None:
    adapter = made()
    assert "secret" not in repr(adapter)
    assert "secret" not in repr(adapter.render(QUESTION))
    assert adapter.redacted({"a": ["Bearer sk-secret-key-1"]}) == {"a": ["Bearer [redacted]"]}
    adapter.close()


def test_a_key_is_not_renewed() -> None:
    refusal = MembraneError("auth", "HTTP 401", http_status=401)
    assert HeaderAuth([KEY], missing=None).renews(refusal, [], CALL) is False
