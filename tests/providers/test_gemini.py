"""gemini: what is sent for each block, what each part is read as, and a conversation with tools, byte by byte."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from membrane_lite import GeminiAdapter, Membrane, MembraneError, ProviderRequest, ToolResult
from membrane_lite.formatters.assembly import NativeAssembler
from membrane_lite.loopback import Failure, Image, LoopbackProvider, Raw, Reply, Thinking, ToolCall, faults
from membrane_lite.loopback import gemini as wire
from membrane_lite.providers import gemini
from membrane_lite.providers.base import ProviderFault
from membrane_lite.providers.gemini import GeminiCodec, GeminiDecoder, counts
from membrane_lite.providers.models import GEMINI_MODELS, GEMINI_NEWEST, ModelTable
from membrane_lite.values import content as blocks
from membrane_lite.values.content import Block
from membrane_lite.values.deltas import Delta, Finished, InputDelta, Unknown

Json = Any
KEY = "AIza-secret-key"
HI: Json = {"messages": [{"participant": "User", "content": "Hi"}], "config": {"model": "gemini-3.5-flash"}}
USER: Json = {"role": "user", "parts": [{"text": "User: Hi"}]}
EVENT_STREAM = {"Content-Type": "text/event-stream"}
JSON = {"Content-Type": "application/json; charset=UTF-8"}


def body(messages: Json = (), *, shows_tool_images: bool = True, **fields: Any) -> Json:
    """The body for a request in a provider's roles."""
    codec = GeminiCodec("http://h", ModelTable(GEMINI_MODELS, GEMINI_NEWEST), 4096, shows_tool_images=shows_tool_images)
    request = ProviderRequest(**{"model": "gemini-3.5-flash", "messages": list(messages), **fields})
    return codec.body(request, stream=False)


def user(*content: Json) -> Json:
    return {"role": "user", "content": list(content)}


def assistant(*content: Json) -> Json:
    return {"role": "assistant", "content": list(content)}


def text(text: str, **more: Any) -> Json:
    return {"type": "text", "text": text, **more}


def own(item: Json) -> Json:
    return {"raw_item": item, "raw_format": "gemini"}


def base64_of(type: str, media_type: str | None = None, **more: Any) -> Json:
    named = {} if media_type is None else {"media_type": media_type}
    return {"type": type, "source": {"type": "base64", "data": "QUJD", **named}, **more}


# Requests


def test_a_request_is_these_bytes() -> None:
    request = {
        **HI,
        "system": "be kind",
        "config": {"model": "gemini-2.5-flash", "max_tokens": 64, "temperature": 0, "top_p": 0.9, "top_k": 5},
        "stop_sequences": ["1", "2", "3", "4", "5", "6"],
        "tools": [{"name": "t", "description": "d", "input_schema": {"type": "object", "additionalProperties": False}}],
        "provider_params": {"safetySettings": [], "generationConfig": {"seed": 7, "topK": 9}},
    }
    with GeminiAdapter(api_key=KEY, base_url="http://h/v1beta/") as adapter:
        sent, streamed = adapter.render(request), adapter.render(request, stream=True)
    assert sent.url == "http://h/v1beta/models/gemini-2.5-flash:generateContent"
    assert streamed.url == "http://h/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse"
    assert ("x-goog-api-key", KEY) in sent.headers
    assert sent.body == streamed.body
    assert sent.body.decode() == (
        '{"contents":[{"role":"user","parts":[{"text":"User: Hi"}]}],'
        '"tools":[{"functionDeclarations":[{"name":"t","description":"d",'
        '"parametersJsonSchema":{"type":"object","additionalProperties":false}}]}],'
        '"systemInstruction":{"parts":[{"text":"be kind"}]},'
        '"generationConfig":{"maxOutputTokens":64,"temperature":0,"topP":0.9,"topK":9,'
        '"stopSequences":["1","2","3","4","5"],"seed":7},"safetySettings":[]}'
    )


def test_without_a_key_a_placeholder_is_shown_and_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)
    with LoopbackProvider([]) as provider, provider.transport() as transport:
        adapter = GeminiAdapter(base_url=provider.url, transport=transport)
        assert ("x-goog-api-key", "YOUR_API_KEY") in adapter.render(HI).headers
        with pytest.raises(MembraneError) as raised:
            Membrane(adapter).complete(HI)
        assert provider.request_count == 0
    assert (raised.value.type, raised.value.message) == (
        "auth",
        "api_key: no key; pass api_key= or set GOOGLE_API_KEY (nothing was sent)",
    )


def test_the_variable_and_the_default_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", KEY)
    with GeminiAdapter() as adapter:
        request = adapter.render(HI)
        assert request.url.startswith("https://generativelanguage.googleapis.com/v1beta/models/")
        assert ("x-goog-api-key", KEY) in request.headers
        assert KEY not in request.url + repr(adapter)
        assert [adapter.supports_model(model) for model in ("gemini-2.5-pro", "gemma-3")] == [True, False]


ADDRESSES = {
    "gemini-2.5-pro": "/models/gemini-2.5-pro",
    "models/gemini-2.5-pro": "/models/gemini-2.5-pro",
    "tunedModels/mine": "/tunedModels/mine",
    "a?b#c d:e": "/models/a%3Fb%23c%20d%3Ae",
}


@pytest.mark.parametrize("model, path", ADDRESSES.items(), ids=ADDRESSES.keys())
def test_a_model_s_address(model: str, path: str) -> None:
    with GeminiAdapter(base_url="http://h", api_key=KEY) as adapter:
        rendered = adapter.render({**HI, "config": {"model": model}})
    assert rendered.url == f"http://h{path}:generateContent"


@pytest.mark.parametrize("model", ["..", "models/../x", "/x", "x/"])
def test_a_model_that_would_lead_elsewhere(model: str) -> None:
    with GeminiAdapter(base_url="http://h", api_key=KEY) as adapter, pytest.raises(MembraneError) as raised:
        adapter.render({**HI, "config": {"model": model}})
    assert raised.value.type == "invalid_request"
    assert raised.value.message.startswith(f"config.model: found {model!r}; expected an id")


CALL: Json = {"type": "tool_use", "id": "c1", "name": "get", "input": {"x": 1}}
GIVEN_ID: Json = {**CALL, **own({"functionCall": {"id": "g1"}, "thoughtSignature": "S"})}
RESULT: Json = {"type": "tool_result", "tool_use_id": "c1", "content": "noon"}
CALLED: Json = {"functionCall": {"name": "get", "args": {"x": 1}}}


def answered(response: Json, **fields: Any) -> Json:
    return {"functionResponse": {**fields, "name": "get", "response": response}}


TURNS: dict[str, tuple[list[Json], list[Json]]] = {
    "a text": ([user(text("a"))], [{"role": "user", "parts": [{"text": "a"}]}]),
    "a plain string": ([{"role": "user", "content": "a"}], [{"role": "user", "parts": [{"text": "a"}]}]),
    "nothing": ([{"role": "user", "content": None}, user(text(""))], []),
    "cache markers have no counterpart": (
        [user(text("a", cache_control={"type": "ephemeral"}))],
        [{"role": "user", "parts": [{"text": "a"}]}],
    ),
    "the model speaks first": (
        [assistant(text("a"))],
        [{"role": "user", "parts": [{"text": "[Start]"}]}, {"role": "model", "parts": [{"text": "a"}]}],
    ),
    "neighbours are one turn": (
        [user(text("a")), user(text("b"))],
        [{"role": "user", "parts": [{"text": "a"}, {"text": "b"}]}],
    ),
    "a message of this format": (
        [{"role": "user", "parts": [{"text": "a"}]}],
        [{"role": "user", "parts": [{"text": "a"}]}],
    ),
    "images, audio, video and documents inline": (
        [
            user(
                base64_of("image", "image/png"),
                base64_of("audio", "audio/wav"),
                base64_of("video", "video/webm"),
                base64_of("document", "text/plain"),
            )
        ],
        [
            {
                "role": "user",
                "parts": [
                    {"inlineData": {"mimeType": kind, "data": "QUJD"}}
                    for kind in ("image/png", "audio/wav", "video/webm", "text/plain")
                ],
            }
        ],
    ),
    "media without a type": (
        [user(*map(base64_of, ("image", "audio", "video", "document")))],
        [
            {
                "role": "user",
                "parts": [
                    {"inlineData": {"mimeType": kind, "data": "QUJD"}}
                    for kind in ("image/jpeg", "audio/mpeg", "video/mp4", "application/pdf")
                ],
            }
        ],
    ),
    "the other spelling of a type": (
        [user({"type": "audio", "source": {"type": "base64", "data": "QUJD", "mediaType": "audio/ogg"}})],
        [{"role": "user", "parts": [{"inlineData": {"mimeType": "audio/ogg", "data": "QUJD"}}]}],
    ),
    "a medium by address": (
        [user({"type": "video", "source": {"type": "url", "url": "https://h/v", "media_type": "video/mp4"}})],
        [{"role": "user", "parts": [{"fileData": {"mimeType": "video/mp4", "fileUri": "https://h/v"}}]}],
    ),
    "an image of the model's, whose signature is lost": (
        [user(text("a")), assistant(base64_of("image", "image/png", source_url="https://h/i"))],
        [{"role": "user", "parts": [{"text": "a"}]}, {"role": "model", "parts": [{"text": "https://h/i"}]}],
    ),
    "a call and its result": (
        [user(text("a")), assistant(CALL), user(RESULT)],
        [
            {"role": "user", "parts": [{"text": "a"}]},
            {"role": "model", "parts": [CALLED]},
            {"role": "user", "parts": [answered({"result": "noon"})]},
        ],
    ),
    "an id that Gemini gave goes back with its signature, and the id again with the result": (
        [user(text("a")), assistant(GIVEN_ID), user(RESULT)],
        [
            {"role": "user", "parts": [{"text": "a"}]},
            {
                "role": "model",
                "parts": [
                    {"functionCall": {"name": "get", "args": {"x": 1}, "id": "g1"}, "thoughtSignature": "S"},
                ],
            },
            {"role": "user", "parts": [answered({"result": "noon"}, id="g1")]},
        ],
    ),
    "an item of another format stays here": (
        [user(text("a")), assistant({**CALL, "raw_item": {"functionCall": {"id": "x"}}, "raw_format": "openai-chat"})],
        [{"role": "user", "parts": [{"text": "a"}]}, {"role": "model", "parts": [CALLED]}],
    ),
    "an error": (
        [user(text("a")), assistant(CALL), user({**RESULT, "is_error": True})],
        [
            {"role": "user", "parts": [{"text": "a"}]},
            {"role": "model", "parts": [CALLED]},
            {"role": "user", "parts": [answered({"error": "noon"})]},
        ],
    ),
    "results stand before what else is said": (
        [user(text("a")), assistant(CALL), user(text("b"), RESULT)],
        [
            {"role": "user", "parts": [{"text": "a"}]},
            {"role": "model", "parts": [CALLED]},
            {"role": "user", "parts": [answered({"result": "noon"}), {"text": "b"}]},
        ],
    ),
    "images of a result follow it": (
        [user(text("a")), assistant(CALL), user({**RESULT, "content": [text("x"), base64_of("image", "image/png")]})],
        [
            {"role": "user", "parts": [{"text": "a"}]},
            {"role": "model", "parts": [CALLED]},
            {
                "role": "user",
                "parts": [
                    answered({"result": "x\n[Image: image/png, ~0KB]"}),
                    {"inlineData": {"mimeType": "image/png", "data": "QUJD"}},
                ],
            },
        ],
    ),
    "a result without its call is named after the id": (
        [user({**RESULT, "tool_use_id": "c9"})],
        [
            {
                "role": "user",
                "parts": [{"functionResponse": {"name": "c9", "response": {"result": "noon"}}}],
            }
        ],
    ),
    "a thought goes back only with its signature": (
        [
            user(text("a")),
            assistant(
                {"type": "thinking", "thinking": "so"},
                {"type": "thinking", "thinking": "then", "signature": "another provider's"},
                {"type": "thinking", "thinking": "thus", **own({"thoughtSignature": "S"})},
                {"type": "redacted_thinking", "data": "x"},
                text("b"),
            ),
        ],
        [
            {"role": "user", "parts": [{"text": "a"}]},
            {
                "role": "model",
                "parts": [{"text": "thus", "thought": True, "thoughtSignature": "S"}, {"text": "b"}],
            },
        ],
    ),
    "other parts go back as they came, and what stood around them does not": (
        [
            user(text("a")),
            assistant(
                {"type": "raw_item", **own({"executableCode": {"code": "1"}})},
                {"type": "raw_item", **own({"text": "", "thoughtSignature": "S"})},
                {"type": "raw_item", **own({"groundingMetadata": {"x": 1}})},
                {"type": "raw_item", "raw_item": {"type": "web_search_call"}, "raw_format": "openai-responses"},
            ),
        ],
        [
            {"role": "user", "parts": [{"text": "a"}]},
            {
                "role": "model",
                "parts": [{"executableCode": {"code": "1"}}, {"text": "", "thoughtSignature": "S"}],
            },
        ],
    ),
}


@pytest.mark.parametrize("messages, contents", TURNS.values(), ids=TURNS.keys())
def test_what_a_message_is_sent_as(messages: list[Json], contents: list[Json]) -> None:
    assert body(messages)["contents"] == contents


def test_images_of_results_may_be_left_out() -> None:
    messages = [assistant(CALL), user({**RESULT, "content": [base64_of("image", "image/png")]})]
    last = body(messages, shows_tool_images=False)["contents"][-1]
    assert last["parts"] == [answered({"result": "[Image: image/png, ~0KB]"})]


def test_a_block_that_is_none() -> None:
    with pytest.raises(MembraneError) as raised:
        body([user({"type": "hologram"})])
    assert (raised.value.type, "hologram" in raised.value.message) == ("unsupported", True)


CONFIGS: dict[str, tuple[dict[str, Any], Json]] = {
    "the default limit": ({}, {"maxOutputTokens": 4096}),
    "0 is a value": ({"temperature": 0, "top_p": 0, "top_k": 0}, {"temperature": 0, "topP": 0, "topK": 0}),
    "penalties": (
        {"presence_penalty": 1, "frequency_penalty": 2},
        {"presencePenalty": 1, "frequencyPenalty": 2},
    ),
    "a budget": (
        {"thinking": {"type": "enabled", "budget_tokens": 1024}},
        {"thinkingConfig": {"includeThoughts": True, "thinkingBudget": 1024}},
    ),
    "as it sees fit": ({"thinking": {"type": "adaptive"}}, {"thinkingConfig": {"includeThoughts": True}}),
    "as it sees fit, up to Gemini 2.5": (
        {"model": "gemini-2.5-flash-lite", "thinking": {"type": "adaptive"}},
        {"thinkingConfig": {"includeThoughts": True, "thinkingBudget": -1}},
    ),
    "thoughts are not shown": (
        {"thinking": {"type": "adaptive", "display": "omitted"}},
        {"thinkingConfig": {"includeThoughts": False}},
    ),
    "off": ({"thinking": {"type": "disabled"}}, {"thinkingConfig": {"thinkingBudget": 0}}),
    "a model that does not think": ({"model": "gemini-2.0-flash", "thinking": {"type": "adaptive"}}, {}),
    "a model that makes images": (
        {"model": "gemini-3-pro-image-preview"},
        {"responseModalities": ["TEXT", "IMAGE"]},
    ),
    "a model that speaks": ({"model": "gemini-2.5-pro-preview-tts"}, {"responseModalities": ["AUDIO"]}),
    "the caller's own win": (
        {
            "max_tokens": 5,
            "provider_params": {"generationConfig": {"maxOutputTokens": 6, "thinkingConfig": {"thinkingLevel": "low"}}},
        },
        {"maxOutputTokens": 6, "thinkingConfig": {"thinkingLevel": "low"}},
    ),
}


@pytest.mark.parametrize("fields, config", CONFIGS.values(), ids=CONFIGS.keys())
def test_the_generation_config(fields: dict[str, Any], config: Json) -> None:
    assert body(**fields)["generationConfig"] == {"maxOutputTokens": 4096, **config}


SYSTEMS: dict[str, tuple[Json, Json]] = {
    "a string": ("a", {"parts": [{"text": "a"}]}),
    "blocks": ([text("a"), text("b", cache_control={})], {"parts": [{"text": "a\nb"}]}),
    "an empty string": ("", None),
    "nothing": (None, None),
}


@pytest.mark.parametrize("system, instruction", SYSTEMS.values(), ids=SYSTEMS.keys())
def test_the_system_text(system: Json, instruction: Json) -> None:
    assert body(system=system).get("systemInstruction") == instruction


# Answers


def chunk(*parts: Json, finish: str | None = None, **more: Any) -> Json:
    ended = {} if finish is None else {"finishReason": finish}
    return {"candidates": [{"content": {"parts": list(parts), "role": "model"}, **ended}], **more}


def streamed(*chunks: Json, decoder: GeminiDecoder | None = None) -> list[Delta]:
    reader = decoder or GeminiDecoder()
    deltas = [delta for each in chunks for delta in reader.decode("message", json.dumps(each))]
    return [*deltas, *reader.end()]


def content_of(deltas: list[Delta]) -> list[Block]:
    assembler = NativeAssembler({})
    for delta in deltas:
        assembler.add(delta)
    assembler.end()
    return assembler.content()


def finished(deltas: list[Delta]) -> Finished:
    assert isinstance(deltas[-1], Finished)
    return deltas[-1]


def item(block: type[Block], *arguments: Any, **raw: Any) -> Block:
    return block(*arguments, raw_item=raw, raw_format="gemini")


PIXEL: Json = {"inlineData": {"mimeType": "image/png", "data": "QUJD"}}
SOUND: Json = {"inlineData": {"mimeType": "audio/L16;rate=24000", "data": "QUJD"}}

CONTENTS: dict[str, tuple[list[Json], list[Block]]] = {
    "texts are joined": ([chunk({"text": "Hel"}), chunk({"text": "lo"}, {"text": "!"})], [blocks.Text("Hello!")]),
    "an empty text is none": ([chunk({"text": ""})], []),
    "no parts, no content": ([{"candidates": [{"content": {}}]}, {"candidates": [{"index": 0}]}], []),
    "thoughts, then a text": (
        [chunk({"text": "So", "thought": True}), chunk({"text": "Four."})],
        [blocks.Thinking("So"), blocks.Text("Four.")],
    ),
    "a signed text is a block of its own": (
        [chunk({"text": "a"}), chunk({"text": "b", "thoughtSignature": "S"}), chunk({"text": "c"})],
        [blocks.Text("a"), item(blocks.Text, "b", thoughtSignature="S"), blocks.Text("c")],
    ),
    "a signature on an empty text": (
        [chunk({"text": "a"}), chunk({"text": "", "thoughtSignature": "S"})],
        [blocks.Text("a"), item(blocks.Text, "", text="", thoughtSignature="S")],
    ),
    "a signed thought": (
        [chunk({"text": "So", "thought": True, "thoughtSignature": "S"})],
        [item(blocks.Thinking, "So", thoughtSignature="S")],
    ),
    "a call": (
        [chunk({"functionCall": {"name": "t", "args": {"x": 1}}})],
        [blocks.ToolUse("call_0", "t", {"x": 1})],
    ),
    "a call without arguments": ([chunk({"functionCall": {"name": "t"}})], [blocks.ToolUse("call_0", "t", {})]),
    "calls without ids get different ones, which no other answer has": (
        [chunk({"functionCall": {"name": "t"}}, {"functionCall": {"name": "t"}}, responseId="r-1")],
        [blocks.ToolUse("call_r-1_0", "t", {}), blocks.ToolUse("call_r-1_1", "t", {})],
    ),
    "a given id, and a signature": (
        [chunk({"functionCall": {"name": "t", "args": {}, "id": "g"}, "thoughtSignature": "S"})],
        [item(lambda **raw: blocks.ToolUse("g", "t", {}, **raw), functionCall={"id": "g"}, thoughtSignature="S")],
    ),
    "one id for two calls": (
        [chunk({"functionCall": {"name": "t", "id": "g"}}, {"functionCall": {"name": "u", "id": "g"}})],
        [
            item(lambda **raw: blocks.ToolUse("g", "t", {}, **raw), functionCall={"id": "g"}),
            item(lambda **raw: blocks.ToolUse("g_2", "u", {}, **raw), functionCall={"id": "g"}),
        ],
    ),
    "an image": ([chunk(PIXEL)], [item(lambda **raw: blocks.GeneratedImage("QUJD", "image/png", **raw), **PIXEL)]),
    "an image on the way to the answer": (
        [chunk({**PIXEL, "thought": True})],
        [blocks.GeneratedImage("QUJD", "image/png", is_preview=True)],
    ),
    "speech": (
        [chunk(SOUND)],
        [
            item(
                lambda **raw: blocks.Audio(
                    {"type": "base64", "media_type": "audio/L16;rate=24000", "data": "QUJD"}, **raw
                ),
                **SOUND,
            )
        ],
    ),
    "parts that no block has words for": (
        [chunk({"executableCode": {"code": "1"}}), chunk({"codeExecutionResult": {"output": "1"}}), chunk({"new": 1})],
        [
            item(blocks.Text, "", executableCode={"code": "1"}),
            item(blocks.Text, "", codeExecutionResult={"output": "1"}),
            item(blocks.Text, "", new=1),
        ],
    ),
    "what stands around the parts comes last, once": (
        [
            {"candidates": [{"content": {"parts": [{"text": "a"}]}, "groundingMetadata": {}}]},
            {"candidates": [{"groundingMetadata": {"x": 1}, "urlContextMetadata": {"y": 2}}]},
            {"candidates": [{"groundingMetadata": {}}]},
        ],
        [
            blocks.Text("a"),
            item(blocks.Text, "", groundingMetadata={"x": 1}),
            item(blocks.Text, "", urlContextMetadata={"y": 2}),
        ],
    ),
}


@pytest.mark.parametrize("chunks, content", CONTENTS.values(), ids=CONTENTS.keys())
def test_what_parts_are_read_as(chunks: list[Json], content: list[Block]) -> None:
    assert content_of(streamed(*chunks)) == content


@pytest.mark.parametrize("chunks, content", CONTENTS.values(), ids=CONTENTS.keys())
def test_a_list_of_answers_says_the_same(chunks: list[Json], content: list[Block]) -> None:
    assert content_of(GeminiDecoder().document(chunks)) == content


def partial(*fragments: Json, **more: Any) -> Json:
    return {"functionCall": {**({"partialArgs": list(fragments)} if fragments else {}), **more}}


def piece(path: str, value: str, *, more: bool = False) -> Json:
    return {"jsonPath": path, "stringValue": value, **({"willContinue": True} if more else {})}


PARTIAL: list[Json] = [
    {**partial(name="t", willContinue=True), "thoughtSignature": "S"},
    partial(piece("$.city", "Bo", more=True), willContinue=True),
    partial(piece("$.city", "ston"), {"jsonPath": "$.days[0]", "numberValue": 2}, willContinue=True),
    partial(
        {"jsonPath": "$.days[1]", "nullValue": "NULL_VALUE"},
        {"jsonPath": "$.now", "boolValue": True},
        willContinue=True,
    ),
    partial(),
]


def test_arguments_in_pieces() -> None:
    deltas = streamed(*map(chunk, PARTIAL))
    assert [delta.text for delta in deltas if isinstance(delta, InputDelta)] == [
        "{",
        '"city":"Bo',
        'ston","days":[2',
        ',null],"now":true',
        "}",
    ]
    assert content_of(deltas) == [
        item(
            lambda **raw: blocks.ToolUse("call_0", "t", {"city": "Boston", "days": [2, None], "now": True}, **raw),
            thoughtSignature="S",
        )
    ]


def test_the_next_call_begins_with_a_name() -> None:
    deltas = streamed(chunk(PARTIAL[0], PARTIAL[1]), chunk({"functionCall": {"name": "u", "args": {"x": 1}}}))
    assert [(call.name, call.input) for call in content_of(deltas) if isinstance(call, blocks.ToolUse)] == [
        ("t", {"city": "Bo"}),
        ("u", {"x": 1}),
    ]


@pytest.mark.parametrize("pieces, shown", [(1, "{"), (2, '{"city":"Bo'), (3, '{"city":"Boston","days":[2')])
def test_arguments_that_break_off_are_no_input(pieces: int, shown: str) -> None:
    (call,) = content_of(streamed(*map(chunk, PARTIAL[:pieces]), chunk(finish="MAX_TOKENS")))
    assert isinstance(call, blocks.ToolUse)
    assert (call.input, call.unparseable_input) == ({}, shown)


def test_pieces_of_no_call_are_none() -> None:
    assert content_of(streamed(chunk(partial()))) == []


REASONS = {
    "STOP": "end_turn",
    "MAX_TOKENS": "max_tokens",
    "TOOL_CALLS": "tool_use",
    "FUNCTION_CALL": "tool_use",
    **dict.fromkeys(["SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR"], "refusal"),
    **dict.fromkeys(["IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"], "refusal"),
    **{word: word for word in ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "LANGUAGE", "OTHER", "NEW"]},
}


@pytest.mark.parametrize("word, reason", REASONS.items(), ids=REASONS.keys())
def test_a_finish_reason(word: str, reason: str) -> None:
    decoder = GeminiDecoder()
    end = finished(streamed(chunk({"text": "a"}, finish=word), decoder=decoder))
    assert (end.stop_reason, end.provider_reason, decoder.complete) == (reason, word, True)


def test_an_unspecified_finish_reason_is_none() -> None:
    decoder = GeminiDecoder()
    end = finished(streamed(chunk({"text": "a"}, finish="FINISH_REASON_UNSPECIFIED"), decoder=decoder))
    assert (end.stop_reason, decoder.complete) == ("", False)


def test_a_safety_stop_says_why() -> None:
    ratings = [{"category": "HARM_A", "probability": "LOW"}, {"category": "HARM_B", "blocked": True}]
    candidate = {"finishReason": "SAFETY", "finishMessage": "No.", "safetyRatings": ratings}
    end = finished(streamed({"candidates": [candidate]}))
    assert (end.stop_reason, end.refusal, end.category) == ("refusal", "No.", "HARM_B")


def test_a_blocked_prompt_is_a_refusal() -> None:
    decoder = GeminiDecoder()
    feedback = {"blockReason": "PROHIBITED_CONTENT", "blockReasonMessage": "No."}
    end = finished(streamed({"promptFeedback": feedback}, decoder=decoder))
    assert (end.stop_reason, end.provider_reason, end.refusal, end.category) == (
        "refusal",
        None,
        "No.",
        "PROHIBITED_CONTENT",
    )
    assert decoder.complete


def test_an_empty_block_reason_is_no_block() -> None:
    end = finished(streamed(chunk({"text": "a"}, finish="STOP", promptFeedback={"blockReason": ""})))
    assert (end.stop_reason, end.category) == ("end_turn", None)


COUNTS: dict[str, tuple[Json, dict[str, int]]] = {
    "thoughts are output": (
        {"promptTokenCount": 9, "candidatesTokenCount": 3, "thoughtsTokenCount": 4},
        {"input_tokens": 9, "output_tokens": 7, "thinking_tokens": 4},
    ),
    "cached tokens are inside the prompt": (
        {"promptTokenCount": 9, "candidatesTokenCount": 3, "cachedContentTokenCount": 8},
        {"input_tokens": 1, "output_tokens": 3, "cache_read_tokens": 8},
    ),
    "nothing but thoughts": (
        {"promptTokenCount": 9, "thoughtsTokenCount": 4},
        {"input_tokens": 9, "output_tokens": 4, "thinking_tokens": 4},
    ),
    "what tools put in is not the prompt": (
        {"promptTokenCount": 9, "candidatesTokenCount": 3, "toolUsePromptTokenCount": 5},
        {"input_tokens": 9, "output_tokens": 3},
    ),
    "none": ({"trafficType": "ON_DEMAND"}, {}),
    "no numbers": ({"promptTokenCount": "9", "candidatesTokenCount": None}, {}),
}


@pytest.mark.parametrize("usage, ours", COUNTS.values(), ids=COUNTS.keys())
def test_counts(usage: Json, ours: dict[str, int]) -> None:
    assert counts(usage) == ours


def test_an_unknown_chunk_is_kept_and_an_unknown_answer_is_none() -> None:
    assert streamed({"new": 1})[0] == Unknown("chunk", {"new": 1})
    with pytest.raises(ProviderFault):
        GeminiDecoder().document({"new": 1})


WRONG_CHUNKS: dict[str, Json] = {
    "a number": 1,
    "a text that is none": chunk({"text": 1}),
    "candidates that are none": {"candidates": 1},
    "a part that is none": chunk("text"),
    "a path that is none": chunk(partial(piece("city", "x"), name="t")),
    "a place that comes twice": chunk(partial(piece("$.a", "x"), piece("$.a", "y"), name="t")),
    "a finish reason that is none": {"candidates": [{"finishReason": 1}]},
}


@pytest.mark.parametrize("wrong", WRONG_CHUNKS.values(), ids=WRONG_CHUNKS.keys())
def test_a_malformed_chunk_is_an_error(wrong: Json) -> None:
    event = Raw(200, EVENT_STREAM, f"data: {json.dumps(wrong)}\n\n")
    with pytest.raises(MembraneError) as raised:
        asked([event])
    assert raised.value.type == "server"
    assert raised.value.message.startswith("gemini: event 'message' cannot be read")


def test_a_streamed_answer_is_recorded_as_a_whole_one() -> None:
    parts = [
        {"text": "So", "thought": True},
        {"text": "a"},
        {"text": "b", "thoughtSignature": "S"},
        {"functionCall": {"name": "t", "args": {"x": 1}, "id": "g"}},
        PIXEL,
        {"executableCode": {"code": "1"}},
    ]
    other = {"content": {"parts": [{"text": "c"}], "role": "model"}, "index": 1}
    around = {"groundingMetadata": {"x": 1}, "finishReason": "STOP"}
    chunks = [
        *map(chunk, parts),
        {
            "candidates": [{"content": {}, **around}, other],
            "modelVersion": "m",
            "usageMetadata": {"totalTokenCount": 1},
        },
    ]
    deltas = streamed(*chunks)
    assert gemini.recorded(finished(deltas).envelope, content_of(deltas)) == {
        "candidates": [{"content": {"role": "model", "parts": parts}, **around}, other],
        "modelVersion": "m",
        "usageMetadata": {"totalTokenCount": 1},
    }


# Over a socket


def asked(script: Any, request: Json = HI, *, stream: bool = True, **options: Any) -> Any:
    """What a stream of one try comes to."""
    with LoopbackProvider(script) as provider, provider.transport() as transport:
        membrane = Membrane(GeminiAdapter(api_key=KEY, base_url=provider.url + "/v1beta", transport=transport))
        return (membrane.stream if stream else membrane.complete)(request, retry=False, **options)


TOOLS: Json = [{"name": "get_time", "description": "", "input_schema": {"type": "object", "properties": {}}}]
ROUNDS = [
    Reply(
        Thinking("Which?", signature="U0lH"), ToolCall("get_time", {"zone": "UTC"}, id="g1"), ToolCall("get_time", {})
    ),
    Reply(Thinking("More.", signature="TU9SRQ=="), "Wait.", ToolCall("get_time", {"zone": "CET"})),
    Reply(Thinking("Good.", signature="R09PRA=="), "Noon."),
]
SECOND = (
    '{"contents":[{"role":"user","parts":[{"text":"User: Hi"}]},'
    '{"role":"model","parts":['
    '{"functionCall":{"name":"get_time","args":{"zone":"UTC"},"id":"g1"},"thoughtSignature":"U0lH"},'
    '{"functionCall":{"name":"get_time","args":{}}}]},'
    '{"role":"user","parts":['
    '{"functionResponse":{"id":"g1","name":"get_time","response":{"result":"12"}}},'
    '{"functionResponse":{"name":"get_time","response":{"result":"12"}}}]}'
)
THIRD = (
    ',{"role":"model","parts":[{"text":"Wait."},'
    '{"functionCall":{"name":"get_time","args":{"zone":"CET"}},"thoughtSignature":"TU9SRQ=="}]},'
    '{"role":"user","parts":[{"functionResponse":{"name":"get_time","response":{"result":"12"}}}]}'
)
REST = (
    '],"tools":[{"functionDeclarations":[{"name":"get_time","description":"",'
    '"parametersJsonSchema":{"type":"object","properties":{}}}]}],"generationConfig":{"maxOutputTokens":4096,'
    '"thinkingConfig":{"includeThoughts":true}}}'
)


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
def test_two_tool_rounds_carry_their_signatures_back_byte_by_byte(stream: bool) -> None:
    request = {**HI, "tools": TOOLS, "config": {"model": "gemini-3.5-flash", "thinking": {"type": "adaptive"}}}
    with LoopbackProvider(ROUNDS) as provider, provider.transport() as transport:
        membrane = Membrane(GeminiAdapter(api_key=KEY, base_url=provider.url + "/v1beta", transport=transport))
        if stream:
            response: Any = membrane.stream(
                request, on_tool_calls=lambda calls: [ToolResult(call.id, "12") for call in calls]
            )
        else:
            response, messages = None, list(request["messages"])
            for _ in ROUNDS:
                response = membrane.complete({**request, "messages": messages})
                messages += response.as_messages()
                results = [blocks.ToolResultBlock(call.id, "12") for call in response.tool_calls]
                messages += [{"participant": "User", "content": results}] if results else []
        sent = [received.body.decode() for received in provider.requests]
    assert (response.text[-5:], response.stop_reason) == ("Noon.", "end_turn")
    assert sent[1] == SECOND + REST
    assert sent[2] == SECOND + THIRD + REST


def test_a_conversation_goes_on_after_an_image() -> None:
    answers = [Reply(Thinking("Red.", signature="S"), Image("QUJD")), Reply("Done.")]
    request = {**HI, "config": {"model": "gemini-3-pro-image-preview"}}
    with LoopbackProvider(answers) as provider, provider.transport() as transport:
        membrane = Membrane(GeminiAdapter(api_key=KEY, base_url=provider.url + "/v1beta", transport=transport))
        first: Any = membrane.stream(request)
        more = [*request["messages"], *first.as_messages(), {"participant": "User", "content": "Now blue."}]
        assert membrane.complete({**request, "messages": more}).text == "Done."
        sent = provider.requests[1].json
    (image,) = [block for block in first.content if isinstance(block, blocks.GeneratedImage)]
    assert (image.data, image.mime_type, image.is_preview) == ("QUJD", "image/png", None)
    assert sent["contents"][1] == {"role": "model", "parts": [{**PIXEL, "thoughtSignature": "S"}]}
    assert sent["generationConfig"]["responseModalities"] == ["TEXT", "IMAGE"]


ERRORS: dict[str, tuple[int, Json, tuple[str, bool, str | None, int | None]]] = {
    "a wrong key": (
        400,
        {
            "code": 400,
            "status": "INVALID_ARGUMENT",
            "message": "API key not valid.",
            "details": [{"reason": "API_KEY_INVALID"}],
        },
        ("auth", False, "INVALID_ARGUMENT", None),
    ),
    "no key": (
        401,
        {"code": 401, "status": "UNAUTHENTICATED", "message": "No."},
        ("auth", False, "UNAUTHENTICATED", None),
    ),
    "a quota": (
        429,
        {
            "code": 429,
            "status": "RESOURCE_EXHAUSTED",
            "message": "Quota exceeded.",
            "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.4s"}],
        },
        ("rate_limit", True, "RESOURCE_EXHAUSTED", 34_400),
    ),
    "an overload": (
        503,
        {"code": 503, "status": "UNAVAILABLE", "message": "Overloaded."},
        ("server", True, "UNAVAILABLE", None),
    ),
    "too long": (
        400,
        {
            "code": 400,
            "status": "INVALID_ARGUMENT",
            "message": "The input token count (9) exceeds the maximum number of tokens allowed (8).",
        },
        ("context_length", False, "INVALID_ARGUMENT", None),
    ),
}
SHAPES: dict[str, Callable[[Json], Json]] = {
    "an object": lambda error: {"error": error},
    "an array": lambda error: [{"error": error}],
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
@pytest.mark.parametrize("status, error, told", ERRORS.values(), ids=ERRORS.keys())
def test_an_error(status: int, error: Json, told: Any, shape: Callable[[Json], Json]) -> None:
    with pytest.raises(MembraneError) as raised:
        asked([Raw(status, JSON, json.dumps(shape(error)), framing="length")])
    seen = raised.value
    assert (seen.type, seen.retryable, seen.provider_error_code, seen.retry_after_ms) == told
    assert (seen.http_status, error["message"] in seen.message, KEY in str(seen.to_dict())) == (status, True, False)


IN_STREAM = {
    "events": (EVENT_STREAM, "data: %s\n\ndata: %s\n\n"),
    "an array": (JSON, "[%s\n,\n%s]"),
}


@pytest.mark.parametrize("headers, form", IN_STREAM.values(), ids=IN_STREAM.keys())
def test_an_error_in_a_stream(headers: dict[str, str], form: str) -> None:
    parts = (json.dumps(chunk({"text": "Hel"})), json.dumps({"error": ERRORS["an overload"][1]}))
    with pytest.raises(MembraneError) as raised:
        asked([Raw(200, headers, form % parts)])
    seen = raised.value
    assert (seen.type, seen.retryable, seen.http_status, seen.raw_assistant_text) == ("server", True, 503, "Hel")


def test_a_refused_request_of_the_loopback_provider() -> None:
    with pytest.raises(MembraneError) as raised:
        asked([Failure(429)], stream=False)
    assert (raised.value.type, raised.value.provider_error_code) == ("rate_limit", "RESOURCE_EXHAUSTED")


@pytest.mark.parametrize(
    "message, trait",
    {
        "Thinking level is not supported for this model.": "'thinking_parameter': False",
        "Model does not support the requested response modalities: image,text": "'response_modalities': ()",
    }.items(),
)
def test_a_refused_parameter_names_the_trait_that_leaves_it_out(message: str, trait: str) -> None:
    with pytest.raises(MembraneError) as raised:
        asked([wire.error(400, "INVALID_ARGUMENT", message)])
    assert f"(model_traits={{'gemini-3.5-flash': {{{trait}}}}} on the adapter leaves it out)" in raised.value.message


# Truncation

ANSWER = Reply(Thinking("Hm."), "Hello, world!", ToolCall("t", {"x": 1}, id="g"))
EVENTS = wire.events(ANSWER)
ENDS: dict[str, Callable[..., Any]] = {"end": faults.end, "close": faults.close, "reset": faults.reset}


@pytest.mark.parametrize("ending", ENDS.values(), ids=ENDS.keys())
@pytest.mark.parametrize("after", range(len(EVENTS) + 1))
def test_an_end_at_every_event_boundary(after: int, ending: Callable[..., Any]) -> None:
    if after == len(EVENTS):
        response = asked([ending(ANSWER, after=after)])
        assert (response.text, response.stop_reason, len(response.tool_calls)) == ("Hello, world!", "tool_use", 1)
        return
    with pytest.raises(MembraneError) as raised:
        asked([ending(ANSWER, after=after)])
    seen = raised.value
    assert (seen.type, seen.retryable) == ("network", True)
    assert seen.raw_assistant_text == ["", "", "Hello,", "Hello, world!", "Hello, world!"][after]


def array(*chunks: Json) -> bytes:
    return ("[" + "\n,\n".join(json.dumps(each, indent=2) for each in chunks) + "\n]\n").encode()


ARRAY = array(
    chunk({"text": "Hel"}), chunk({"text": "lo"}), chunk(finish="STOP", usageMetadata={"promptTokenCount": 9})
)
COMPLETE_AT = len(ARRAY.rstrip()) - 2  # behind the brace of the last item


@pytest.mark.parametrize("cut", [*range(1, len(ARRAY), 23), COMPLETE_AT - 1, COMPLETE_AT, len(ARRAY)])
def test_an_array_is_a_stream_too_and_may_end_anywhere(cut: int) -> None:
    answer = Raw(200, JSON, ARRAY[:cut], framing="close", then="close", chunks=7)
    if cut >= COMPLETE_AT:
        response = asked([answer])
        assert (response.text, response.stop_reason, response.usage.input_tokens) == ("Hello", "end_turn", 9)
        return
    with pytest.raises(MembraneError) as raised:
        asked([answer])
    texts = raised.value.raw_assistant_text
    assert raised.value.type == "network"
    assert "Hello".startswith(texts)


def test_an_array_is_read_as_it_arrives() -> None:
    heard: list[str] = []
    begun = Raw(200, JSON, ARRAY[: ARRAY.index(b"lo")], framing="close", then="close")
    with pytest.raises(MembraneError):
        asked([begun], on_chunk=lambda text, meta: heard.append(text))
    assert heard == ["Hel"]


def test_one_object_in_answer_to_a_stream_request() -> None:
    whole = Raw(200, JSON, json.dumps(chunk({"text": "Hello"}, finish="STOP")), framing="length")
    assert asked([whole]).text == "Hello"
