"""What no provider is sent, whichever adapter sends it: broken characters, blank texts, images under a false label or
too large, names of tools that are refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

from membrane_lite import (
    AnthropicAdapter,
    BedrockAdapter,
    GeminiAdapter,
    Membrane,
    MembraneError,
    OpenAIAdapter,
    OpenAICompatibleAdapter,
    OpenAICompletionsAdapter,
    OpenAIImagesAdapter,
    OpenAIResponsesAPIAdapter,
    OpenRouterAdapter,
    ToolResult,
)
from membrane_lite.formatters.request_size import MAX_REQUEST_BYTES_VARIABLE, SHED_NOTE
from membrane_lite.formatters.tool_names import sent_tool_name
from membrane_lite.loopback import LoopbackProvider, Reply, ToolCall

# Where one speaks to the loopback provider: options that a url of it makes.
CHAT: dict[str, Callable[..., Any]] = {
    "OpenAI": lambda url="http://h", **more: OpenAIAdapter(api_key="k", base_url=url + "/v1", **more),
    "a compatible server": lambda url="http://h", **more: OpenAICompatibleAdapter(base_url=url + "/v1", **more),
    "OpenRouter": lambda url="http://h", **more: OpenRouterAdapter(api_key="k", base_url=url + "/api/v1", **more),
}
CLAUDE: dict[str, Callable[..., Any]] = {
    "Anthropic": lambda url="http://h", **more: AnthropicAdapter(api_key="k", base_url=url, **more),
    "Bedrock": lambda url="http://h", **more: BedrockAdapter(api_key="k", base_url=url, **more),
}
WITH_TOOLS: dict[str, Callable[..., Any]] = {
    **CLAUDE,
    **CHAT,
    "Responses": lambda url="http://h", **more: OpenAIResponsesAPIAdapter(api_key="k", base_url=url + "/v1", **more),
    "Gemini": lambda url="http://h", **more: GeminiAdapter(api_key="k", base_url=url + "/v1beta", **more),
}
ALL: dict[str, Callable[..., Any]] = {
    **WITH_TOOLS,
    "completions": lambda url="http://h", **more: OpenAICompletionsAdapter(base_url=url + "/v1", **more),
    "Images": lambda url="http://h", **more: OpenAIImagesAdapter(api_key="k", base_url=url + "/v1", **more),
}
CONFIG = {"model": "gemini-2.5-flash", "max_tokens": 64}


def named(table: dict[str, Any]) -> Any:
    return pytest.mark.parametrize("adapter", table.values(), ids=table.keys())


def rendered(adapter: Callable[..., Any], request: dict[str, Any]) -> Any:
    return adapter().render({"config": CONFIG, "prompt_caching": False, **request})


def asked(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"messages": list(messages), **more}


def user(*blocks: Any) -> dict[str, Any]:
    return {"participant": "User", "content": list(blocks)}


def call(name: str, **given: Any) -> dict[str, Any]:
    return {"participant": "Claude", "content": [{"type": "tool_use", "id": "c1", "name": name, "input": given}]}


def result(content: Any) -> dict[str, Any]:
    return {"participant": "User", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": content}]}


# Broken characters


def with_character(bad: str, *, tools: bool) -> dict[str, Any]:
    said = {"participant": f"Ann{bad}", "content": f"caf{bad} {bad}{bad} \U0001f600"}
    system, params = f"be {bad}", {f"k{bad}": [{f"l{bad}": f"m{bad}"}]}
    if not tools:
        return asked(said, system=system, provider_params=params)
    tool = {
        "name": f"look{bad}",
        "description": f"d{bad}",
        "input_schema": {"type": "object", "properties": {f"p{bad}": {"description": bad}}},
    }
    history = [said, call(f"look{bad}", **{f"a{bad}": [bad]}), result([{"type": "text", "text": bad}])]
    return asked(*history, system=system, provider_params=params, tools=[tool], stop_sequences=[f"s{bad}"])


@pytest.mark.parametrize("bad", ["\ud800", "\udce9", "\udfff"], ids=["high", "of a byte", "low"])
@pytest.mark.parametrize("name", ALL)
def test_half_a_surrogate_pair_is_replaced_wherever_it_stands(name: str, bad: str) -> None:
    sent, wanted = (rendered(ALL[name], with_character(each, tools=name in WITH_TOOLS)) for each in (bad, "\ufffd"))
    assert (sent.body, sent.url) == (wanted.body, wanted.url)
    assert sent.body.decode("utf-8").count("\ufffd") >= 6


@pytest.mark.parametrize("name", ALL)
def test_in_a_model_s_name_too(name: str) -> None:
    sent, wanted = (
        rendered(ALL[name], asked(user({"type": "text", "text": "a"}), config={"model": f"m{bad}"}))
        for bad in ("\ud800", "\ufffd")
    )
    assert (sent.body, sent.url) == (wanted.body, wanted.url)


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("name", WITH_TOOLS)
def test_what_comes_in_holds_none_either(name: str, streamed: bool) -> None:
    with ExitStack() as opened:
        script = [Reply("half \ud83d ", ToolCall("look", {"a\udc00": "\ud800"}, id="c\udce9"))]
        provider = opened.enter_context(LoopbackProvider(script))
        adapter = WITH_TOOLS[name](provider.url, transport=opened.enter_context(provider.transport()))
        membrane = Membrane(adapter)
        request = {**asked(user(TEXT)), "config": CONFIG, "tools": [{"name": "look"}]}
        response = membrane.stream(request) if streamed else membrane.complete(request)
    assert json.dumps(response.to_dict(), ensure_ascii=False).encode("utf-8")
    assert (response.text, [each.input for each in response.tool_calls]) == ("half \ufffd ", [{"a\ufffd": "\ufffd"}])


# Blank texts

TEXT = {"type": "text", "text": "a"}
BLANK = [{"type": "text", "text": text} for text in ("", " ", "\n\t\u3000")]
KEPT = {"type": "text", "text": " \n a \u00a0"}
BLANKS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "in a message": (
        asked({"participant": "Claude", "content": [*BLANK, KEPT, *BLANK]}, user(TEXT), system="s"),
        {
            "system": "s",
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "[continuing]"}]},
                {"role": "assistant", "content": [KEPT]},
                {"role": "user", "content": [{"type": "text", "text": "User: a"}]},
            ],
        },
    ),
    "in a system of blocks": (
        asked(user(TEXT), system=[*BLANK, KEPT]),
        {"system": [KEPT], "messages": [{"role": "user", "content": [{"type": "text", "text": "User: a"}]}]},
    ),
    "a system of nothing else": (
        asked(user(TEXT), system=BLANK),
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "User: a"}]}]},
    ),
    "in a result": (
        asked(user(TEXT), call("look"), result([*BLANK, KEPT])),
        {
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "User: a"}]},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "look", "input": {}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [KEPT]}]},
            ]
        },
    ),
    "a result of nothing else stays a result": (
        asked(user(TEXT), call("look"), result(BLANK)),
        {
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "User: a"}]},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "look", "input": {}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": []}]},
            ]
        },
    ),
    "a message of nothing else": (
        asked(user(TEXT), {"participant": "Claude", "content": BLANK}, user(KEPT)),
        {
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "User: a"}]},
                {"role": "user", "content": [{"type": "text", "text": "User:  \n a \u00a0"}]},
            ]
        },
    ),
}


@named(CLAUDE)
@pytest.mark.parametrize("request_, sent", BLANKS.values(), ids=BLANKS.keys())
def test_blank_texts_are_left_out(adapter: Any, request_: dict[str, Any], sent: dict[str, Any]) -> None:
    body = json.loads(rendered(adapter, request_).body)
    assert {field: body[field] for field in ("system", "messages") if field in body} == sent


@named(CLAUDE)
def test_a_last_message_of_nothing_else_is_refused(adapter: Any) -> None:
    with pytest.raises(MembraneError) as raised:
        last = {"participant": "Claude", "content": BLANK}
        rendered(adapter, asked(user(TEXT), last, config={"model": "claude-sonnet-4-5"}))
    assert (raised.value.type, raised.value.message) == (
        "invalid_request",
        "messages: the last message holds only blank text, which the API refuses; give it text",
    )


# Images

JPEG, GIF = "/9j/4AAQSkZJRgAAAAAAAAAAAAAAAA==", "R0lGODdhAQABAAAAACwAAAAAAQABAAAC"


def image(data: str, label: str = "image/png") -> dict[str, Any]:
    return {"type": "image", "source": {"type": "base64", "media_type": label, "data": data}}


@named(WITH_TOOLS)
def test_an_image_s_type_is_read_off_its_bytes(adapter: Any) -> None:
    history = [user(image(JPEG)), call("look"), result([TEXT, image(GIF, "image/JPG")])]
    body = rendered(adapter, asked(*history)).body.decode()
    labels = re.findall(r"image/\w+", body)
    assert (labels.count("image/jpeg"), body.count(JPEG), body.count(GIF)) == (1, 1, 1)
    assert set(labels) == {"image/jpeg", "image/gif"}


def test_of_an_image_to_edit_too() -> None:
    body = rendered(ALL["Images"], asked(user(TEXT, image(JPEG)))).body
    assert (body.count(b"Content-Type: image/jpeg"), body.count(b"image/png")) == (1, 0)


def large(letter: str) -> dict[str, Any]:
    return image(letter * 2_000)


@named(WITH_TOOLS)
def test_a_request_that_is_too_large_is_refused_or_sheds_its_oldest_image(
    adapter: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MAX_REQUEST_BYTES_VARIABLE, "4000")
    history = asked(user(TEXT), call("look"), result([TEXT, large("B")]), user(large("C")))
    with pytest.raises(MembraneError) as raised:
        rendered(adapter, history)
    assert raised.value.type == "invalid_request"
    assert "(2 images take 0.0 MB)" in raised.value.message
    body = rendered(adapter, {**history, "shed_oversize_images": True}).body.decode()
    assert (body.count(SHED_NOTE), body.count("B" * 2_000), body.count("C" * 2_000)) == (1, 0, 1)


# Names of tools

LONG = "a" * 70
HASH = "6bd5e503"  # the first eight digits of its sha256


def many_calls() -> dict[str, Any]:
    names = ["fs.read", "2fa", LONG]
    calls = [{"type": "tool_use", "id": name, "name": name, "input": {}} for name in names]
    results = [{"type": "tool_result", "tool_use_id": name, "content": "r"} for name in names]
    history = [user(TEXT), {"participant": "Claude", "content": calls}, user(*results)]
    return asked(*history, tools=[{"name": name} for name in names])


@pytest.mark.parametrize("name", WITH_TOOLS)
def test_names_that_a_provider_refuses_are_written_otherwise(name: str) -> None:
    body = rendered(WITH_TOOLS[name], many_calls()).body.decode()
    hashed = "a" * 55 + "_" + HASH
    rule = {"Anthropic": ["fs_read", "2fa", LONG], "Gemini": ["fs.read", "_2fa", hashed]}
    expected = rule.get(name, ["fs_read", "2fa", hashed])
    times = 3 if name == "Gemini" else 2  # Gemini's results name their functions
    found = re.findall(r'"name":"([^"]*)"', body)
    assert (sorted(found), [each for each in found if each not in expected]) == (sorted(expected * times), [])


@pytest.mark.parametrize("name", WITH_TOOLS)
@pytest.mark.parametrize("declared", ["fs.read", "world:look", LONG])
def test_the_caller_hears_the_declared_name(name: str, declared: str) -> None:
    sent = WITH_TOOLS[name]().tool_names
    heard: list[str] = []

    def tools(calls: Any) -> list[ToolResult]:
        heard.extend(each.name for each in calls)
        return [ToolResult(each.id, "r") for each in calls]

    with ExitStack() as opened:
        script = [Reply(ToolCall(sent_tool_name(declared, sent), {}, id="call_1")), Reply("Done.")]
        provider = opened.enter_context(LoopbackProvider(script))
        adapter = WITH_TOOLS[name](provider.url, transport=opened.enter_context(provider.transport()))
        request = {**asked(user(TEXT)), "config": CONFIG, "tools": [{"name": declared}]}
        response = Membrane(adapter).stream(request, on_tool_calls=tools)
    assert (heard, [each.name for each in response.tool_calls]) == ([declared], [declared])
    assert response.text == "Done."


@named(WITH_TOOLS)
def test_names_that_would_be_one_are_refused_before_anything_is_sent(adapter: Any) -> None:
    with pytest.raises(MembraneError) as raised:
        rendered(adapter, asked(user(TEXT), tools=[{"name": "a:b"}, {"name": "a__b"}]))
    assert (raised.value.type, raised.value.message) == (
        "invalid_request",
        "tools[1].name: 'a__b' would be sent as 'a__b', and so would 'a:b' of tools[0]; names must differ",
    )
