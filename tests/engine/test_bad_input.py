"""What cannot be sent is refused before anything is sent: the message says where, what was found, and the way out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stage import (
    REQUEST,
    TOOL_REQUEST,
    WEATHER,
    complete,
    each_face,
    each_streamed_face,
    stage,
    stream,
    stream_yielding,
)

from membrane_lite import (
    AbortController,
    AnthropicAdapter,
    Hooks,
    Membrane,
    MembraneError,
    NativeFormatter,
    OpenAICompatibleAdapter,
    Transport,
)
from membrane_lite.loopback import LoopbackProvider, Reply

CONFIG = REQUEST["config"]


def with_config(**fields: Any) -> Any:
    return {**REQUEST, "config": {**CONFIG, **fields}}


def saying(content: Any) -> Any:
    return {**REQUEST, "messages": [{"participant": "User", "content": content}]}


REQUESTS = {
    "no mapping": ("Hi", "request: found str 'Hi'; expected a Request or a mapping of its shape"),
    "a misspelt key": ({**REQUEST, "sistem": "Be brief."}, "request: no field 'sistem'; did you mean 'system'?"),
    "a misspelt key of the config": (
        with_config(max_token=5),
        "config: no field 'max_token'; did you mean 'max_tokens'?",
    ),
    "a misspelt key of a block": (
        saying([{"typ": "text", "text": "Hi"}]),
        "messages[0].content[0]: no field 'typ'; did you mean 'type'?",
    ),
    "camelCase": (with_config(maxTokens=5), "config: no field 'maxTokens'; did you mean 'max_tokens'?"),
    "no messages": ({"config": CONFIG}, "messages: missing; a Request needs it"),
    "empty messages": ({**REQUEST, "messages": []}, "messages: the list is empty; expected at least one message"),
    "messages of a wrong type": ({**REQUEST, "messages": "Hi"}, "messages: found str 'Hi'; expected a list"),
    "no participant": ({**REQUEST, "messages": [{"content": "Hi"}]}, "messages[0].participant: missing"),
    "no config": ({"messages": REQUEST["messages"]}, "config: missing; a Request needs it"),
    "no model": ({**REQUEST, "config": {"max_tokens": 5}}, "config.model: missing; a GenerationConfig needs it"),
    "a blank model": (with_config(model=" "), "config.model: found str ' '; expected a string that is not blank"),
    "a number as text": (
        with_config(temperature="0.5"),
        "config.temperature: found str '0.5'; expected a finite number",
    ),
    "no number": (
        with_config(temperature=float("nan")),
        "config.temperature: found float nan; expected a finite number",
    ),
    "a bool as a number": (with_config(max_tokens=True), "config.max_tokens: found bool True; expected a whole number"),
    "a block of no known type": (
        saying([{"type": "txt"}]),
        "messages[0].content[0].type: found 'txt'; expected one of",
    ),
    "an image without data": (
        saying([{"type": "image", "source": {"type": "base64"}}]),
        "messages[0].content[0].source.data: found NoneType None; expected a string",
    ),
    "two tools of one name": (
        {**REQUEST, "tools": [{**WEATHER, "name": "a:b"}, {**WEATHER, "name": "a__b"}]},
        "tools[1].name: 'a__b' would be sent as 'a__b', and so would 'a:b' of tools[0]; names must differ",
    ),
    "a tool mode of no known name": ({**REQUEST, "tool_mode": "json"}, "tool_mode: found 'json'; expected one of"),
}


def refusal_of(face: Callable[..., Any], membrane: Membrane, request: Any = REQUEST, **options: Any) -> MembraneError:
    with pytest.raises(MembraneError) as caught:
        face(membrane, request, **options)
    assert not caught.value.retryable
    return caught.value


@each_face
@pytest.mark.parametrize("request_, message", REQUESTS.values(), ids=REQUESTS.keys())
def test_a_request_that_cannot_be_read_is_not_sent(face: Callable[..., Any], request_: Any, message: str) -> None:
    with stage("anthropic", [Reply("Hello")]) as on:
        error = refusal_of(face, on.membrane, request_)
        assert error.type == "invalid_request"
        assert error.message.startswith(message)
        assert on.provider.connections_made == 0


@each_face
def test_a_tool_mode_that_the_formatter_has_not_is_refused(face: Callable[..., Any]) -> None:
    with stage("anthropic", [Reply("Hello")]) as on:
        error = refusal_of(face, on.membrane, {**TOOL_REQUEST, "tool_mode": "xml"}, formatter=NativeFormatter())
        assert error.type == "unsupported"
        assert error.message == "tool_mode: the formatter 'native' has no xml tools; use another formatter"
        assert on.provider.connections_made == 0


def test_there_is_no_tool_loop_without_streaming() -> None:
    with stage("anthropic", [Reply("Hello")]) as on:
        request = {**TOOL_REQUEST, "streaming": False}
        error = refusal_of(stream, on.membrane, request, on_tool_calls=lambda calls: [])
        assert error.type == "unsupported"
        assert "streaming=False" in error.message
        assert on.provider.connections_made == 0


# Options of a call

MILLISECONDS = ["timeout_ms", "first_event_timeout_ms", "idle_timeout_ms"]
NO_MILLISECONDS = [0, -1, 1.5, "5", True]


@each_face
@pytest.mark.parametrize("value", NO_MILLISECONDS, ids=repr)
@pytest.mark.parametrize("name", MILLISECONDS)
def test_a_deadline_is_a_whole_number_of_milliseconds(face: Callable[..., Any], name: str, value: Any) -> None:
    with stage("anthropic", [Reply("Hello")]) as on:
        error = refusal_of(face, on.membrane, **{name: value})
        assert error.type == "invalid_request"
        assert error.message == f"{name}: found {value!r}; expected a whole number of milliseconds, 1 or more"
        assert on.provider.connections_made == 0


@each_streamed_face
@pytest.mark.parametrize("value", NO_MILLISECONDS, ids=repr)
def test_so_is_the_progress_limit(face: Callable[..., Any], value: Any) -> None:
    with stage("anthropic", [Reply("Hello")]) as on:
        assert refusal_of(face, on.membrane, progress_timeout_ms=value).message.startswith("progress_timeout_ms: found")
        assert on.provider.connections_made == 0


OPTIONS = {
    "retry=True": (complete, {"retry": True}, "retry: found True; expected False"),
    "retry={}": (stream, {"retry": {}}, "retry: found {}; expected False"),
    "the controller for its signal": (
        stream,
        {"signal": AbortController()},
        "signal: found AbortController",
    ),
    "the controller for its signal, yielding": (
        stream_yielding,
        {"signal": AbortController()},
        "signal: found AbortController",
    ),
    "a depth as text": (stream, {"max_tool_depth": "3"}, "max_tool_depth: found str '3'; expected a whole number"),
    "a depth as text, yielding": (stream_yielding, {"max_tool_depth": "3"}, "max_tool_depth: found str '3'"),
    "a depth that is no number": (stream, {"max_tool_depth": True}, "max_tool_depth: found bool True"),
    "refusals below none": (complete, {"refusal_retries": -1}, "refusal_retries: found -1; expected 0 or more"),
    "refusals as text": (stream_yielding, {"refusal_retries": "1"}, "refusal_retries: found str '1'; expected a whole"),
}


@pytest.mark.parametrize("face, options, message", OPTIONS.values(), ids=OPTIONS.keys())
def test_an_option_of_a_wrong_value_is_refused(face: Callable[..., Any], options: Any, message: str) -> None:
    with stage("anthropic", [Reply("Hello")]) as on:
        error = refusal_of(face, on.membrane, **options)
        assert error.type == "invalid_request"
        assert error.message.startswith(message)
        assert on.provider.connections_made == 0


# Settings of a Membrane

SETTINGS = {
    "a misspelt key of retry": (
        {"retry": {"max_retry": 3}},
        "retry: no field 'max_retry'; did you mean 'max_retries'?",
    ),
    "a misspelt key of overloaded": (
        {"retry": {"overloaded": {"retries": 3}}},
        "overloaded: no field 'retries'; did you mean 'max_retries'?",
    ),
    "a negative count": (
        {"retry": {"max_retries": -1}},
        "max_retries: found int -1; expected a whole number, 0 or more",
    ),
    "hooks as a mapping": ({"hooks": {"on_error": print}}, "hooks: found dict"),
}


@pytest.mark.parametrize("settings, message", SETTINGS.values(), ids=SETTINGS.keys())
def test_a_setting_of_a_wrong_shape_is_refused_when_the_membrane_is_made(settings: Any, message: str) -> None:
    adapter = AnthropicAdapter(api_key="key")
    with pytest.raises(MembraneError) as caught:
        Membrane(adapter, **settings)
    assert caught.value.type == "invalid_request"
    assert caught.value.message.startswith(message)
    assert Membrane(adapter, hooks=Hooks()) is not None


# Settings of an adapter


@pytest.fixture
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@each_face
@pytest.mark.parametrize("variable", [None, "", "  "], ids=repr)
def test_without_a_key_nothing_is_sent(
    face: Callable[..., Any], variable: str | None, no_environment: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if variable is not None:
        monkeypatch.setenv("ANTHROPIC_API_KEY", variable)
    sent: list[Any] = []
    with LoopbackProvider([Reply("Hello")]) as provider, provider.transport() as transport:
        membrane = Membrane(AnthropicAdapter(base_url=provider.url, transport=transport))
        error = refusal_of(face, membrane, on_request=sent.append)
        assert error.type == "auth"
        assert "api_key" in error.message
        assert "ANTHROPIC_API_KEY" in error.message
        assert (provider.connections_made, sent) == (0, [])


@pytest.mark.parametrize("key", ["sk-one\nsk-two", "sk-ключ", "sk-one\x00"], ids=ascii)
def test_a_key_that_no_header_can_hold_is_refused_without_being_shown(
    key: str, no_environment: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(MembraneError) as caught:
        AnthropicAdapter(api_key=key)
    assert (caught.value.type, "api_key" in caught.value.message) == ("auth", True)
    assert "sk-" not in caught.value.message
    if "\x00" not in key:
        monkeypatch.setenv("ANTHROPIC_API_KEY", key)
        with pytest.raises(MembraneError, match="ANTHROPIC_API_KEY") as caught:
            AnthropicAdapter()
        assert "sk-" not in caught.value.message


@pytest.mark.parametrize(
    "url", ["localhost:11434/v1", "//localhost/v1", "ftp://localhost/v1", "http://", "http://a:b/"]
)
def test_a_base_url_without_scheme_or_host_is_refused(url: str) -> None:
    with pytest.raises(MembraneError) as caught:
        OpenAICompatibleAdapter(base_url=url)
    assert caught.value.type == "invalid_request"
    assert caught.value.message == f"base_url: found {url!r}; expected http:// or https://, a host and a path"


def test_a_base_url_of_the_environment_is_named_by_its_variable(
    no_environment: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "api.example.com")
    with pytest.raises(MembraneError, match=r"^ANTHROPIC_BASE_URL: found 'api.example.com'"):
        AnthropicAdapter(api_key="key")


def test_a_ca_file_that_cannot_be_read_is_named_before_anything_is_sent(tmp_path: Path) -> None:
    missing = str(tmp_path / "no-such-ca.pem")
    with pytest.raises(MembraneError) as caught:
        Transport(ca_certs=missing)
    assert (caught.value.type, missing in caught.value.message) == ("invalid_request", True)


@each_face
def test_so_is_one_of_the_environment(
    face: Callable[..., Any], tmp_path: Path, no_environment: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = str(tmp_path / "no-such-ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", missing)
    with LoopbackProvider([Reply("Hello")]) as provider:
        with Membrane(AnthropicAdapter(api_key="key", base_url=provider.url)) as membrane:
            error = refusal_of(face, membrane)
            assert error.type == "invalid_request"
            assert "SSL_CERT_FILE" in error.message
            assert missing in error.message
        assert provider.connections_made == 0
