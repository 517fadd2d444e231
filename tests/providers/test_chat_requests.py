"""chat_dialect, openai_compatible: the exact bytes of a request's body, message by message and field by field."""

from __future__ import annotations

import json
from typing import Any

import pytest

from membrane_lite.errors import MembraneError
from membrane_lite.providers.chat_dialect import ChatDialect, chat_body, chat_messages
from membrane_lite.providers.models import ModelTraits
from membrane_lite.providers.openai_compatible import OpenAICompatibleAdapter
from membrane_lite.values.requests import ProviderRequest
from membrane_lite.wire.http import HttpRequest, header

Json = Any

PLAIN = ChatDialect()
REASONS = ChatDialect(reasoning_field="reasoning_content")


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def user(*blocks: Json) -> Json:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Json) -> Json:
    return {"role": "assistant", "content": list(blocks)}


def call(id: str, input: Json, **more: Any) -> Json:
    return {"type": "tool_use", "id": id, "name": "look", "input": input, **more}


def result(id: str, content: Json) -> Json:
    return {"type": "tool_result", "tool_use_id": id, "content": content}


def sent_call(id: str, arguments: str, **more: Any) -> Json:
    return {**more, "id": id, "type": "function", "function": {"name": "look", "arguments": arguments}}


def tool(id: str, content: str) -> Json:
    return {"role": "tool", "tool_call_id": id, "content": content}


def image_url(url: str) -> Json:
    return {"type": "image_url", "image_url": {"url": url}}


def base64(kind: str | None, data: str = "AAAA") -> Json:
    return {"type": "base64", **({} if kind is None else {"media_type": kind}), "data": data}


PNG, URL = {"type": "image", "source": base64("image/png")}, {"type": "image", "source": {"type": "url", "url": "u"}}
PNG_PART = image_url("data:image/png;base64,AAAA")
THOUGHT = {"type": "thinking", "thinking": "so", "signature": "s"}
CARRIER = {"type": "raw_item", "raw_item": {"type": "server_tool_use"}, "raw_format": "anthropic"}

MESSAGES: dict[str, tuple[Json, list[Json]]] = {
    "a text": (user(text("a")), [{"role": "user", "content": "a"}]),
    "texts are joined by line breaks": (user(text("a"), text("b")), [{"role": "user", "content": "a\nb"}]),
    "an empty text is none": (user(text(""), text("b")), [{"role": "user", "content": "b"}]),
    "nothing is no message": (user(), []),
    "nothing but empty text is none either": (assistant(text("")), []),
    "an image": (user(PNG), [{"role": "user", "content": [PNG_PART]}]),
    "text and image stand in their order": (
        user(text("a"), PNG, text("b"), URL),
        [{"role": "user", "content": [text("a"), PNG_PART, text("b"), image_url("u")]}],
    ),
    "an image without a type": (
        user({"type": "image", "source": base64(None)}),
        [{"role": "user", "content": [PNG_PART]}],
    ),
    "a call": (
        assistant(call("c1", {"at": [1, "é"]})),
        [{"role": "assistant", "content": None, "tool_calls": [sent_call("c1", '{"at":[1,"é"]}')]}],
    ),
    "a call without arguments": (
        assistant(call("c1", {})),
        [{"role": "assistant", "content": None, "tool_calls": [sent_call("c1", "{}")]}],
    ),
    "text and calls": (
        assistant(text("I look."), call("c1", {}), call("c2", {"x": None})),
        [
            {
                "role": "assistant",
                "content": "I look.",
                "tool_calls": [sent_call("c1", "{}"), sent_call("c2", '{"x":null}')],
            }
        ],
    ),
    "what a server put beside a call goes back with it": (
        assistant(call("c1", {}, raw_item={"extra_content": {"g": 1}, "id": "x"}, raw_format="openai-chat")),
        [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "extra_content": {"g": 1},
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "look", "arguments": "{}"},
                    }
                ],
            }
        ],
    ),
    "another provider's does not": (
        assistant(call("c1", {}, raw_item={"caller": {}}, raw_format="anthropic")),
        [{"role": "assistant", "content": None, "tool_calls": [sent_call("c1", "{}")]}],
    ),
    "a result": (user(result("c1", "r")), [tool("c1", "r")]),
    "an empty result": (user(result("c1", "")), [tool("c1", "")]),
    "results and text: the text follows": (
        user(result("c1", "r"), result("c2", "s"), text("a"), text("b")),
        [tool("c1", "r"), tool("c2", "s"), {"role": "user", "content": "a\nb"}],
    ),
    "results and empty text": (user(result("c1", "r"), text("")), [tool("c1", "r")]),
    "results and an image": (
        user(result("c1", "r"), text("a"), PNG),
        [tool("c1", "r"), {"role": "user", "content": [text("a"), PNG_PART]}],
    ),
    "a result of texts": (user(result("c1", [text("r"), text("s")])), [tool("c1", "r\ns")]),
    "a result with an image: the image follows": (
        user(result("c1", [text("r"), {"type": "image", "source": base64("image/png", "A" * 2_048)}]), text("a")),
        [
            tool("c1", "r\n[Image: image/png, ~2KB]"),
            {"role": "user", "content": [image_url(f"data:image/png;base64,{'A' * 2_048}"), text("a")]},
        ],
    ),
    "a result with something else": (
        user(result("c1", [{"type": "document", "title": "é"}])),
        [tool("c1", '{"type":"document","title":"é"}')],
    ),
    "thinking is left out": (
        assistant(THOUGHT, {"type": "redacted_thinking", "data": "d"}, text("a")),
        [{"role": "assistant", "content": "a"}],
    ),
    "thinking alone is no message": (assistant(THOUGHT), []),
    "an item of another format is left out": (assistant(CARRIER, text("a")), [{"role": "assistant", "content": "a"}]),
    "written in this dialect already": ({"role": "user", "content": "a"}, [{"role": "user", "content": "a"}]),
    "calls written in this dialect": (
        {"role": "assistant", "content": [], "tool_calls": [{"id": "c1"}]},
        [{"role": "assistant", "content": [], "tool_calls": [{"id": "c1"}]}],
    ),
    "a message of nothing, written in this dialect": (
        {"role": "assistant", "content": None},
        [{"role": "assistant", "content": None}],
    ),
}


@pytest.mark.parametrize("message, wire", MESSAGES.values(), ids=MESSAGES.keys())
def test_a_message_as_it_is_sent(message: Json, wire: list[Json]) -> None:
    before = repr(message)
    assert json.dumps(chat_messages([message], PLAIN)) == json.dumps(wire)
    assert repr(message) == before


REASONING: dict[str, tuple[Json, list[Json]]] = {
    "beside text": (
        assistant(THOUGHT, text("a"), {"type": "thinking", "thinking": "and"}),
        [{"role": "assistant", "content": "a", "reasoning_content": "so\nand"}],
    ),
    "beside a call": (
        assistant(THOUGHT, call("c1", {})),
        [
            {
                "role": "assistant",
                "content": None,
                "reasoning_content": "so",
                "tool_calls": [sent_call("c1", "{}")],
            }
        ],
    ),
    "of no words": (
        assistant({"type": "thinking", "thinking": ""}, text("a")),
        [{"role": "assistant", "content": "a"}],
    ),
    "alone": (assistant(THOUGHT), []),
    "of a user": (user(THOUGHT, text("a")), [{"role": "user", "content": "a"}]),
}


@pytest.mark.parametrize("message, wire", REASONING.values(), ids=REASONING.keys())
def test_reasoning_goes_back_under_the_name_the_server_has_for_it(message: Json, wire: list[Json]) -> None:
    assert json.dumps(chat_messages([message], REASONS)) == json.dumps(wire)


AUDIO = {
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
    "audio/mpeg3": "mp3",
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/vnd.wave": "wav",
    "Audio/MPEG; rate=8000": "mp3",
    "audio/ogg": "ogg",
    "audio/flac": "flac",
    "audio/aac": "aac",
    "audio/x-m4a": "m4a",
    None: "mp3",
}


@pytest.mark.parametrize("label, name", AUDIO.items(), ids=map(str, AUDIO))
def test_audio_and_the_name_of_its_format(label: str | None, name: str) -> None:
    sent = chat_messages([user(text("a"), {"type": "audio", "source": base64(label)}, text("b"))], PLAIN)
    part = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": name}}
    assert sent == [{"role": "user", "content": [text("a"), part, text("b")]}]


REFUSED: dict[str, tuple[Json, str]] = {
    "a document": (
        {"type": "document", "source": base64("application/pdf")},
        "messages: this API takes no document blocks; leave them out, or pass "
        "formatter=NativeFormatter(unsupported_media='strip')",
    ),
    "video": (
        {"type": "video", "source": base64("video/mp4")},
        "messages: this API takes no video blocks; leave them out, or pass "
        "formatter=NativeFormatter(unsupported_media='strip')",
    ),
    "audio of an unknown type": (
        {"type": "audio", "source": base64("audio/midi")},
        "messages: audio of type 'audio/midi'; this API takes mpeg, mp3, mpeg3, x-mpeg-3, wav, x-wav, wave, vnd.wave, "
        "ogg, flac, x-flac, aac, mp4, m4a, x-m4a",
    ),
    "audio by address": (
        {"type": "audio", "source": {"type": "url", "url": "u"}},
        "messages: audio by address; this API takes audio by base64 only",
    ),
}


@pytest.mark.parametrize("block, words", REFUSED.values(), ids=REFUSED.keys())
def test_media_that_are_refused_before_they_are_sent(block: Json, words: str) -> None:
    with pytest.raises(MembraneError) as raised:
        chat_messages([user(text("a"), block)], PLAIN)
    assert (raised.value.type, raised.value.message) == ("unsupported", words)


# Bodies

HI = {"role": "user", "content": "Ann: hi"}


def render(adapter: OpenAICompatibleAdapter | None = None, *, stream: bool = False, **request: Any) -> HttpRequest:
    config = {"model": "m", "max_tokens": 64, **request.pop("config", {})}
    given = {"messages": [{"participant": "Ann", "content": "hi"}], **request, "config": config}
    return (adapter or OpenAICompatibleAdapter(base_url="http://h/v1/")).render(given, stream=stream)


def golden(*before: Json, max_tokens: int = 64, **fields: Any) -> bytes:
    """The body with these fields, in their order, as compact JSON. before: messages before the question."""
    body = {"model": "m", "messages": [*before, HI], "max_tokens": max_tokens, **fields}
    return json.dumps(body, separators=(",", ":")).encode()


SYSTEM = {"role": "system", "content": "be kind"}
BODIES: dict[str, tuple[dict[str, Any], bytes]] = {
    "the least": ({}, golden()),
    "4096 tokens where none are said": ({"config": {"max_tokens": None}}, golden(max_tokens=4_096)),
    "or 0": ({"config": {"max_tokens": 0}}, golden(max_tokens=4_096)),
    "every field, in the order of the documentation": (
        {
            "config": {
                "temperature": 0,
                "top_p": 0.5,
                "top_k": 3,
                "presence_penalty": 0.1,
                "frequency_penalty": 0.2,
                "repetition_penalty": 1.1,
            },
            "system": "be kind",
            "stop_sequences": ["a"],
            "tools": [{"name": "ns:look", "description": "looks", "input_schema": {"type": "object"}}],
            "provider_params": {"seed": 7},
        },
        golden(
            SYSTEM,
            temperature=0,
            top_p=0.5,
            presence_penalty=0.1,
            frequency_penalty=0.2,
            repetition_penalty=1.1,
            stop=["a"],
            tools=[
                {
                    "type": "function",
                    "function": {"name": "ns__look", "description": "looks", "parameters": {"type": "object"}},
                }
            ],
            seed=7,
        ),
    ),
    "a tool without a schema": (
        {"tools": [{"name": "a", "input_schema": {}}]},
        golden(
            tools=[
                {
                    "type": "function",
                    "function": {"name": "a", "description": "", "parameters": {"type": "object", "properties": {}}},
                }
            ]
        ),
    ),
    "four stop sequences at most": ({"stop_sequences": list("abcdef")}, golden(stop=["a", "b", "c", "d"])),
    "no stop sequences": ({"stop_sequences": []}, golden()),
    "no thinking parameter": ({"config": {"thinking": {"type": "adaptive"}}}, golden()),
    "a system of blocks, its markers lost": (
        {
            "system": [
                {"type": "text", "text": "be", "cache_control": {"type": "ephemeral"}},
                {"type": "text", "text": "kind"},
            ]
        },
        golden({"role": "system", "content": "be\nkind"}),
    ),
    "an empty system": ({"system": ""}, golden()),
    "a system of nothing": ({"system": []}, golden()),
    "a system of an empty block": ({"system": [{"type": "text", "text": ""}]}, golden()),
    "the caller's own fields win": (
        {"config": {"temperature": 0.5}, "provider_params": {"temperature": 1, "max_tokens": 9, "stream": True}},
        golden(max_tokens=9, temperature=1, stream=True),
    ),
}


@pytest.mark.parametrize("request_fields, body", BODIES.values(), ids=BODIES.keys())
def test_the_body_of_a_request(request_fields: dict[str, Any], body: bytes) -> None:
    assert render(**request_fields).body == body


STREAMED = {
    "it says so": ({}, golden(stream=True)),
    "the caller's own fields cannot say otherwise": ({"provider_params": {"stream": False}}, golden(stream=True)),
    "counts come where they are asked for": (
        {"provider_params": {"stream_options": {"include_usage": True}}},
        golden(stream_options={"include_usage": True}, stream=True),
    ),
}


@pytest.mark.parametrize("request_fields, body", STREAMED.values(), ids=STREAMED.keys())
def test_the_body_of_a_streamed_request(request_fields: dict[str, Any], body: bytes) -> None:
    assert render(stream=True, **request_fields).body == body


TRAITS: dict[str, tuple[ModelTraits, ChatDialect, Json]] = {
    "another name for the limit": (
        ModelTraits(max_tokens_field="max_completion_tokens"),
        PLAIN,
        {"max_completion_tokens": 9, "temperature": 0.5, "top_p": 0.5, "stop": ["a", "b"]},
    ),
    "no sampling": (ModelTraits(sampling=False), PLAIN, {"max_tokens": 9, "stop": ["a", "b"]}),
    "no stop sequences": (ModelTraits(stop=False), PLAIN, {"max_tokens": 9, "temperature": 0.5, "top_p": 0.5}),
    "fewer stop sequences": (
        ModelTraits(sampling=False),
        ChatDialect(most_stop_sequences=1),
        {"max_tokens": 9, "stop": ["a"]},
    ),
    "counts are asked for": (
        ModelTraits(sampling=False, stop=False),
        ChatDialect(asks_for_stream_usage=True),
        {"max_tokens": 9, "stream_options": {"include_usage": True}},
    ),
}


@pytest.mark.parametrize("traits, dialect, fields", TRAITS.values(), ids=TRAITS.keys())
def test_what_a_model_and_a_dialect_change(traits: ModelTraits, dialect: ChatDialect, fields: Json) -> None:
    request = ProviderRequest("m", [], max_tokens=9, temperature=0.5, top_p=0.5, stop_sequences=["a", "b"])
    body = chat_body(request, dialect, traits, max_tokens=64, stream=True)
    assert body == {"model": "m", "messages": [], **fields, "stream": True}


def test_traits_of_a_model_behind_a_compatible_server() -> None:
    traits = {"m": {"max_tokens_field": "max_completion_tokens", "sampling": False}}
    adapter = OpenAICompatibleAdapter(base_url="http://h/v1", model_traits=traits)
    body = json.loads(render(adapter, config={"temperature": 0.5}).body)
    assert body == {"model": "m", "messages": [HI], "max_completion_tokens": 64}


HEADS: dict[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {
    "no key": ({}, []),
    "a key": ({"api_key": " k "}, [("Authorization", "Bearer k")]),
    "a header of the caller's": ({"headers": {"X-Org": "o"}}, [("X-Org", "o")]),
}


@pytest.mark.parametrize("settings, more", HEADS.values(), ids=HEADS.keys())
def test_the_head_of_a_request(settings: dict[str, Any], more: list[tuple[str, str]]) -> None:
    request = render(OpenAICompatibleAdapter(base_url="http://h/v1", **settings))
    assert (request.method, request.url) == ("POST", "http://h/v1/chat/completions")
    assert list(request.headers) == [
        ("User-Agent", header(request.headers, "user-agent")),
        ("Content-Type", "application/json"),
        ("Accept", "application/json"),
        ("Accept-Encoding", "gzip"),
        *more,
    ]


def test_a_conversation_with_tools_from_end_to_end() -> None:
    messages = [
        {"participant": "Ann", "content": "look"},
        {
            "participant": "Claude",
            "content": [
                {"type": "thinking", "thinking": "so"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "c1", "name": "ns:look", "input": {"at": 1}},
            ],
        },
        {"participant": "User", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "red"}]},
        {"participant": "Bob", "content": "and now?"},
    ]
    body = json.loads(render(messages=messages, tools=[{"name": "ns:look"}]).body)
    assert body["messages"] == [
        {"role": "user", "content": "Ann: look"},
        {
            "role": "assistant",
            "content": "I look.",
            "reasoning": "so",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "ns__look", "arguments": '{"at":1}'}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "red"},
        {"role": "user", "content": "Bob: and now?"},
    ]


def test_any_model_may_stand_behind_a_compatible_server() -> None:
    adapter = OpenAICompatibleAdapter(base_url="http://h/v1", provider_name="ollama")
    assert (adapter.name, adapter.supports_model("anything")) == ("ollama", True)
    assert repr(adapter) == "<OpenAICompatibleAdapter 'ollama'>"
