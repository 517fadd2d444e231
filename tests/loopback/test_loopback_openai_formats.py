"""The loopback provider's completions and images: their bytes, the requests they refuse, and forms taken apart."""

from __future__ import annotations

import json
from typing import Any

import pytest
from loopback.plain_client import Browser

from membrane_lite.loopback import Image, LoopbackProvider, Reply, Usage, openai_completions, openai_images
from membrane_lite.loopback.form import File, form_fields
from membrane_lite.loopback.format import Asked

ASKED = Asked(body={"model": "m", "prompt": "Hi"}, number=7)
HEAD = '"id":"cmpl-loopback-000007","object":"text_completion","created":1750000000,"model":"m"'


def test_a_completion_stream() -> None:
    events = openai_completions.events(Reply("Hello, world!", usage=Usage(2, 3)), ASKED)
    assert b"".join(events).decode() == (
        f'data: {{{HEAD},"choices":[{{"text":"Hello,","index":0,"logprobs":null,"finish_reason":null}}]}}\n\n'
        f'data: {{{HEAD},"choices":[{{"text":" world!","index":0,"logprobs":null,"finish_reason":null}}]}}\n\n'
        f'data: {{{HEAD},"choices":[{{"text":"","index":0,"logprobs":null,"finish_reason":"stop"}}]}}\n\n'
        "data: [DONE]\n\n"
    )


def test_a_completion_document() -> None:
    reply = Reply("Hi", stop_reason="max_tokens", usage=Usage(2, 3))
    assert openai_completions.document(reply, ASKED).decode() == (
        f'{{{HEAD},"choices":[{{"text":"Hi","index":0,"logprobs":null,"finish_reason":"length"}}],'
        '"usage":{"prompt_tokens":2,"completion_tokens":3,"total_tokens":5}}'
    )


SETTINGS = '"background":"opaque","output_format":"png","quality":"auto","size":"1024x1024"'
USAGE = (
    '"usage":{"input_tokens":2,"input_tokens_details":{"text_tokens":2,"image_tokens":0},"output_tokens":3,'
    '"total_tokens":5}'
)


def test_an_image_stream() -> None:
    asked = ASKED._replace(body={**ASKED.body, "partial_images": 1})
    image = f'"b64_json":"AA==","created_at":1750000000,{SETTINGS}'
    assert b"".join(openai_images.events(Reply(Image("AA=="), usage=Usage(2, 3)), asked)).decode() == (
        "event: image_generation.partial_image\n"
        f'data: {{"type":"image_generation.partial_image",{image},"partial_image_index":0}}\n\n'
        "event: image_generation.completed\n"
        f'data: {{"type":"image_generation.completed",{image},{USAGE}}}\n\n'
    )


def test_an_image_document() -> None:
    reply = Reply("a", Image("AA=="), Image("BB=="), usage=Usage(2, 3))
    assert openai_images.document(reply, ASKED).decode() == (
        f'{{"created":1750000000,{SETTINGS},{USAGE},'
        '"data":[{"b64_json":"AA==","revised_prompt":"a"},{"b64_json":"BB=="}]}'
    )


def form(*parts: bytes) -> bytes:
    written = [b"--B\r\nContent-Disposition: form-data; name=%b\r\n" % part for part in parts]
    return b"".join(written) + b"--B--\r\n"


FORM_TYPE = "multipart/form-data; boundary=B"
MODEL, PROMPT, STREAM = b'"model"\r\n\r\nm', '"prompt"\r\n\r\ngrößer'.encode(), b'"stream"\r\n\r\ntrue'
FILE = b'"image[]"; filename="a.png"\r\nContent-Type: image/png\r\n\r\n\x89\r\n\x00'


def test_a_form_is_taken_apart() -> None:
    assert form_fields(FORM_TYPE, form(PROMPT, FILE, FILE)) == {
        "prompt": "größer",
        "image[]": [File("a.png", "image/png", b"\x89\r\n\x00")] * 2,
    }


@pytest.mark.parametrize("body", [b"", b"{}", b"--C\r\n\r\nx\r\n--C--\r\n", form(PROMPT)[:-9]])
def test_what_is_no_form(body: bytes) -> None:
    with pytest.raises(ValueError, match="the body is no form"):
        form_fields(FORM_TYPE, body)


KEY = {"Authorization": "Bearer k", "Content-Type": "application/json"}
EDIT = {**KEY, "Content-Type": FORM_TYPE}
GENERATE_AT, EDIT_AT, COMPLETE_AT = "/v1/images/generations", "/v1/images/edits", "/v1/completions"


def json_of(**body: Any) -> bytes:
    return json.dumps(body).encode()


REFUSED: dict[str, tuple[str, dict[str, str], bytes, int, str]] = {
    "an image without a key": (GENERATE_AT, {}, json_of(prompt="x"), 401, "You didn't provide an API key."),
    "an image of nothing": (GENERATE_AT, KEY, b"{}", 400, "Missing required parameter: 'prompt'."),
    "a response format, which only older models know": (
        GENERATE_AT,
        KEY,
        json_of(model="gpt-image-1", prompt="x", response_format="b64_json"),
        400,
        "Unknown parameter: 'response_format'.",
    ),
    "an edit of nothing": (EDIT_AT, EDIT, form(PROMPT), 400, "Missing required parameter: 'image[]'."),
    "an edit that is no form": (EDIT_AT, EDIT, b"{}", 400, "We could not parse the body of your request."),
    "a prompt for no model": (COMPLETE_AT, {}, json_of(prompt="x"), 400, "you must provide a model parameter"),
    "messages in place of a prompt": (
        COMPLETE_AT,
        {},
        json_of(model="m", messages=[]),
        400,
        "Unrecognized request argument supplied: messages",
    ),
    "a prompt that is none": (
        COMPLETE_AT,
        {},
        json_of(model="m", prompt=7),
        400,
        "Invalid type for 'prompt': expected a string or an array.",
    ),
    "no JSON": (COMPLETE_AT, {}, b"{", 400, "We could not parse the JSON body of your request."),
}


@pytest.mark.parametrize("target, headers, body, status, message", REFUSED.values(), ids=REFUSED.keys())
def test_a_request_that_is_refused(target: str, headers: Any, body: bytes, status: int, message: str) -> None:
    with LoopbackProvider([Reply(Image())]) as provider, Browser(provider) as browser:
        found, answer = browser.send(body, target=target, headers=headers)
    assert (found, json.loads(answer)["error"]["message"]) == (status, message)


def test_an_edit_is_streamed_where_its_form_asks_for_it() -> None:
    with LoopbackProvider([Reply(Image("AA=="))]) as provider, Browser(provider) as browser:
        status, answer = browser.send(form(MODEL, PROMPT, STREAM, FILE), target=EDIT_AT, headers=EDIT)
        assert provider.requests[0].last_user_text == "größer"
    assert (status, answer.partition(b"\n")[0]) == (200, b"event: image_edit.completed")
