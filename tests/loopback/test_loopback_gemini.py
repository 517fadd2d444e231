"""The exact bytes of Gemini's format, without a server, and what it refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from loopback.plain_client import Browser

from membrane_lite.loopback import Image, LoopbackProvider, Reply, Thinking, ToolCall, Usage, gemini
from membrane_lite.loopback.format import Asked

TARGET = "/v1beta/models/gemini-2.5-flash:generateContent"
STREAM_TARGET = "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse"
ASKED = Asked(body={"contents": [{"parts": [{"text": "Hi"}]}]}, number=7, target=STREAM_TARGET)
REST = '"modelVersion":"gemini-2.5-flash","responseId":"loopback-000007"}\n\n'
SIGNED = {"thoughtSignature": "bG9vcGJhY2stc2lnbmF0dXJl"}


def test_a_stream() -> None:
    begin = 'data: {"candidates":[{"content":{"parts":['
    begun = '"usageMetadata":{"promptTokenCount":1,"totalTokenCount":1},'
    assert b"".join(gemini.events(Reply("Hello, world!"), ASKED)).decode() == (
        f'{begin}{{"text":"Hello,"}}],"role":"model"}},"index":0}}],{begun}{REST}'
        f'{begin}{{"text":" world!"}}],"role":"model"}},"index":0}}],{begun}{REST}'
        f'{begin}{{"text":""}}],"role":"model"}},"finishReason":"STOP","index":0}}],'
        f'"usageMetadata":{{"promptTokenCount":1,"candidatesTokenCount":4,"totalTokenCount":5}},{REST}'
    )


PARTS: dict[str, tuple[Reply, list[Any]]] = {
    "a text": (Reply("Hello, world!"), [{"text": "Hello, world!"}]),
    "nothing": (Reply(), [{"text": ""}]),
    "a signature without a call": (
        Reply(Thinking("So."), "Four."),
        [{"text": "So.", "thought": True}, {"text": "Four."}, {"text": "", **SIGNED}],
    ),
    "the first call is signed": (
        Reply(Thinking("So."), ToolCall("a", {"x": 1}, id="g"), ToolCall("b", {})),
        [
            {"text": "So.", "thought": True},
            {"functionCall": {"name": "a", "args": {"x": 1}, "id": "g"}, **SIGNED},
            {"functionCall": {"name": "b", "args": {}}},
        ],
    ),
    "a call that breaks off": (Reply(ToolCall("a", '{"x')), [{"functionCall": {"name": "a", "willContinue": True}}]),
    "an image": (Reply(Image("QUJD")), [{"inlineData": {"mimeType": "image/png", "data": "QUJD"}}]),
}


@pytest.mark.parametrize("reply, parts", PARTS.values(), ids=PARTS.keys())
def test_the_parts_of_a_document(reply: Reply, parts: list[Any]) -> None:
    assert json.loads(gemini.document(reply, ASKED))["candidates"][0]["content"]["parts"] == parts


def test_counts() -> None:
    usage = Usage(input_tokens=5, output_tokens=8, cache_read_tokens=3, thinking_tokens=6)
    assert json.loads(gemini.document(Reply("a", usage=usage)))["usageMetadata"] == {
        "promptTokenCount": 8,
        "candidatesTokenCount": 2,
        "totalTokenCount": 16,
        "cachedContentTokenCount": 3,
        "thoughtsTokenCount": 6,
    }


def test_an_error_event() -> None:
    assert gemini.error_event() == (
        b'data: {"error":{"code":503,"message":"The model is overloaded","status":"UNAVAILABLE"}}\n\n'
    )


USER = {"role": "user", "parts": [{"text": "Hi"}]}
CALL = {"role": "model", "parts": [{"functionCall": {"name": "a"}}]}
RESULT = {"role": "user", "parts": [{"functionResponse": {"name": "a", "response": {}}}]}
UNANSWERED = (
    "Please ensure that the number of function response parts is equal to the number of function call parts of the "
    "function call turn."
)
REFUSED: dict[str, tuple[Any, str | None]] = {
    "a whole request": ({"contents": [USER]}, None),
    "a call and its result": ({"contents": [USER, CALL, RESULT]}, None),
    "no contents": ({}, "* GenerateContentRequest.contents: contents is not specified"),
    "a role that is none": ({"contents": [{**USER, "role": "assistant"}]}, "Please use a valid role: user, model."),
    "no parts": (
        {"contents": [USER, {"role": "model", "parts": []}]},
        "* GenerateContentRequest.contents[1].parts: contents.parts must not be empty.",
    ),
    "a call without its result": ({"contents": [USER, CALL, USER]}, UNANSWERED),
    "a result without its call": ({"contents": [RESULT]}, UNANSWERED),
    "another shape": ({"contents": ["Hi"]}, "Invalid JSON payload received. Unknown name in 'contents'"),
}


@pytest.mark.parametrize("target", [TARGET, STREAM_TARGET], ids=["whole", "streamed"])
@pytest.mark.parametrize("body, message", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused(body: Any, message: str | None, target: str) -> None:
    with LoopbackProvider([Reply("ok")]) as provider, Browser(provider) as browser:
        status, answer = browser.send(json.dumps(body).encode(), target=target, headers={"x-goog-api-key": "any"})
    if message is None:
        assert (status, b'"text":"ok"' in answer) == (200, True)
    else:
        error = {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}
        assert (status, json.loads(answer)) == (400, error)


def test_a_request_without_a_key() -> None:
    with LoopbackProvider([Reply("ok")]) as provider, Browser(provider) as browser:
        status, answer = browser.send(json.dumps({"contents": [USER]}).encode(), target=TARGET, headers={})
    assert (status, json.loads(answer)["error"]["status"]) == (403, "PERMISSION_DENIED")
