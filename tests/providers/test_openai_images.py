"""OpenAIImagesAdapter: words and images out, in JSON or as a form; images in, at once or with previews."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from membrane_lite import (
    Document,
    GeneratedImage,
    Membrane,
    MembraneError,
    NativeFormatter,
    OpenAIImagesAdapter,
    OpenAIResponsesAdapter,
    Text,
)
from membrane_lite.loopback import Failure, Image, LoopbackProvider, Raw, Reply, Usage, faults
from membrane_lite.loopback import openai_images as wire
from membrane_lite.loopback.form import File
from membrane_lite.loopback.format import Asked
from membrane_lite.providers.base import ProviderFault
from membrane_lite.providers.openai_images import ImagesCodec, ImagesDecoder, PromptStyle, counts
from membrane_lite.values.deltas import (
    BlockEnd,
    BlockStart,
    Delta,
    Finished,
    ModelNamed,
    TextDelta,
    Unknown,
    UsageReported,
)
from membrane_lite.wire.http import header

Json = Any
PNG, JPEG = "iVBORw0KGgo=", "/9j/4AAQ"
CONFIG = {"model": "gpt-image-1", "max_tokens": 64}
SSE = {"Content-Type": "text/event-stream"}


def picture(data: str = PNG, media_type: str | None = "image/png") -> Json:
    typed = {} if media_type is None else {"media_type": media_type}
    return {"type": "image", "source": {"type": "base64", **typed, "data": data}}


def said(*content: Any, by: str = "User") -> Json:
    blocks = [{"type": "text", "text": block} if isinstance(block, str) else block for block in content]
    return {"participant": by, "content": blocks}


def asked(*messages: Json, **more: Any) -> Json:
    return {"messages": list(messages) or [said("A red square")], "config": CONFIG, **more}


EDIT = asked(said(picture(), "Make it blue"))


def rendered(request: Json, *, stream: bool = False, formatter: Any = None, **settings: Any) -> Any:
    with OpenAIImagesAdapter(api_key="k-1", base_url="http://127.0.0.1:1/v1", **settings) as adapter:
        return adapter.render(request, stream=stream, formatter=formatter)


def prompt(request: Json, **how: Any) -> str:
    return str(json.loads(rendered(request, **how).body)["prompt"])


# Requests

BODIES: dict[str, tuple[Json, dict[str, Any], str]] = {
    "from words": (asked(), {}, '{"model":"gpt-image-1","prompt":"User: A red square","n":1,"quality":"auto"}'),
    "streamed": (
        asked(provider_params={"partial_images": 2}),
        {"stream": True},
        '{"model":"gpt-image-1","prompt":"User: A red square","n":1,"quality":"auto","partial_images":2,"stream":true}',
    ),
    "with settings of the provider's": (
        asked(provider_params={"n": 2, "quality": "low", "size": "1024x1024", "output_format": "webp"}),
        {},
        '{"model":"gpt-image-1","prompt":"User: A red square","n":2,"quality":"low","size":"1024x1024",'
        '"output_format":"webp"}',
    ),
    "a stream brings one image, so of two it is not asked for": (
        asked(provider_params={"n": 2}),
        {"stream": True},
        '{"model":"gpt-image-1","prompt":"User: A red square","n":2,"quality":"auto"}',
    ),
    "nor of a model that streams none": (
        asked(config={"model": "dall-e-3"}),
        {"stream": True},
        '{"model":"dall-e-3","prompt":"User: A red square","n":1,"quality":"auto"}',
    ),
    "sampling, stops and limits have no place": (
        asked(config={**CONFIG, "temperature": 0.5, "top_p": 1}, stop_sequences=["X"]),
        {},
        '{"model":"gpt-image-1","prompt":"User: A red square","n":1,"quality":"auto"}',
    ),
    "an image by its address is left out": (
        asked(said({"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}, "Blue")),
        {},
        '{"model":"gpt-image-1","prompt":"User: Blue","n":1,"quality":"auto"}',
    ),
    "so is every image where nothing is to be edited": (
        EDIT,
        {"allow_image_editing": False},
        '{"model":"gpt-image-1","prompt":"User: Make it blue","n":1,"quality":"auto"}',
    ),
}


@pytest.mark.parametrize("request_, how, text", BODIES.values(), ids=BODIES.keys())
def test_a_body(request_: Json, how: dict[str, Any], text: str) -> None:
    request = rendered(request_, **how)
    assert (request.url, request.body.decode()) == ("http://127.0.0.1:1/v1/images/generations", text)
    assert header(request.headers, "content-type") == "application/json"


DIALOGUE = asked(said("hi", "there", by="Ann"), said("yo", by="Claude"), said("and?", by="Bob"), system="Be bold.")
PROMPTS: dict[str, tuple[Json, dict[str, Any], str]] = {
    "by roles": (DIALOGUE, {}, "Be bold.\n\nUser: hi\nthere\n\nAssistant: yo\n\nUser: and?"),
    "by names": (
        DIALOGUE,
        {"prompt_format": "transcript"},
        "Be bold.\n\nAnn: hi\nthere\n\nClaude: yo\n\nBob: and?",
    ),
    "by names, with words before them": (
        DIALOGUE,
        {"prompt_format": "transcript", "transcript_preamble": "Draw what they see:"},
        "Be bold.\n\nDraw what they see:\n\nAnn: hi\nthere\n\nClaude: yo\n\nBob: and?",
    ),
    "those words belong to a transcript": (asked(), {"transcript_preamble": "P"}, "User: A red square"),
    "a system text in blocks": (
        asked(system=[{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
        {},
        "a\nb\n\nUser: A red square",
    ),
    "a formatter that writes names": (
        asked(said("hi", by="Ann")),
        {"formatter": NativeFormatter()},
        "User: Ann: hi",
    ),
    "what tools and thoughts did is no part of it": (
        asked(
            said("a"),
            said(
                {"type": "thinking", "thinking": "t"},
                {"type": "tool_use", "id": "1", "name": "f", "input": {}},
                by="Claude",
            ),
            said({"type": "tool_result", "tool_use_id": "1", "content": [picture()]}, "b"),
        ),
        {},
        "User: a\n\nUser: b",
    ),
}


@pytest.mark.parametrize("request_, how, text", PROMPTS.values(), ids=PROMPTS.keys())
def test_a_prompt(request_: Json, how: dict[str, Any], text: str) -> None:
    assert prompt(request_, **how) == text


def test_an_edit_byte_by_byte() -> None:
    """Fields in the order of the body, files last, each named after its type."""
    request = rendered(
        asked(
            said(picture(), picture(JPEG, None), "Blue, größer"),
            provider_params={"size": "auto", "n": 2, "mask": f"data:image/png;base64,{PNG}", "moderation": None},
        )
    )
    boundary = str(header(request.headers, "content-type")).partition("multipart/form-data; boundary=")[2].encode()
    fields = [
        (b'"model"', b"gpt-image-1"),
        (b'"prompt"', "User: Blue, größer".encode()),
        (b'"n"', b"2"),
        (b'"quality"', b"auto"),
        (b'"size"', b"auto"),
        (b'"image[]"; filename="image.png"\r\nContent-Type: image/png', base64.b64decode(PNG)),
        (b'"image[]"; filename="image.jpeg"\r\nContent-Type: image/jpeg', base64.b64decode(JPEG)),
        (b'"mask"; filename="mask.png"\r\nContent-Type: image/png', base64.b64decode(PNG)),
    ]
    parts = [
        b"--%b\r\nContent-Disposition: form-data; name=%b\r\n\r\n%b\r\n" % (boundary, name, value)
        for name, value in fields
    ]
    assert request.body == b"".join(parts) + b"--%b--\r\n" % boundary
    assert request.url == "http://127.0.0.1:1/v1/images/edits"


def test_a_form_says_numbers_switches_and_lists_as_json_does() -> None:
    request = rendered({**EDIT, "provider_params": {"output_compression": 50, "x": [1], "y": False}}, stream=True)
    for name, value in {"output_compression": "50", "x": "[1]", "y": "false", "stream": "true"}.items():
        assert f'name="{name}"\r\n\r\n{value}\r\n'.encode() in request.body


def test_no_more_images_than_may_be_sent_and_the_first_ones() -> None:
    request = asked(said(*[picture(base64.b64encode(bytes([number])).decode()) for number in range(20)], "x"))
    for most in (16, 3):
        body = rendered(request, max_input_images=most).body
        images = body.split(b"Content-Type: image/png\r\n\r\n")[1:]
        assert [image[0] for image in images] == list(range(most))


REFUSED: dict[str, tuple[Json, str, str]] = {
    "a document": (
        asked(said(Document({"type": "base64", "data": "x", "media_type": "application/pdf"}).to_dict(), "x")),
        "unsupported",
        "messages: the Images API takes no document blocks; leave them out",
    ),
    "tools": (
        asked(tools=[{"name": "f", "description": "", "input_schema": {}}]),
        "unsupported",
        "tools: the Images API takes none; leave them out",
    ),
    "an image that is no base64": (
        asked(said(picture("&&&&"), "x")),
        "invalid_request",
        'image: found no base64 data URL; expected a string "data:image/png;base64,..."',
    ),
    "a mask that is no data URL": (
        {**EDIT, "provider_params": {"mask": PNG}},
        "invalid_request",
        'mask: found no base64 data URL; expected a string "data:image/png;base64,..."',
    ),
}


@pytest.mark.parametrize("request_, type, message", REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_sent(request_: Json, type: str, message: str) -> None:
    with pytest.raises(MembraneError) as caught:
        rendered(request_)
    assert (caught.value.type, caught.value.message) == (type, message)


BAD_SETTINGS: dict[str, tuple[dict[str, Any], str]] = {
    "a prompt format": ({"prompt_format": "x"}, "prompt_format: found 'x'; expected 'roles' or 'transcript'"),
    "no images": ({"max_input_images": 0}, "max_input_images: found 0; expected a whole number from 1 to 16"),
    "too many": ({"max_input_images": 17}, "max_input_images: found 17; expected a whole number from 1 to 16"),
    "no number": ({"max_input_images": True}, "max_input_images: found True; expected a whole number from 1 to 16"),
}


@pytest.mark.parametrize("settings, message", BAD_SETTINGS.values(), ids=BAD_SETTINGS.keys())
def test_a_setting_that_cannot_be_used(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(MembraneError) as caught:
        OpenAIImagesAdapter(**settings)
    assert (caught.value.type, caught.value.message) == ("invalid_request", message)


def test_its_names_and_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    assert OpenAIResponsesAdapter is OpenAIImagesAdapter
    monkeypatch.setenv("OPENAI_API_KEY", " from-the-environment ")
    with OpenAIImagesAdapter(organization="org-1") as adapter:
        request = adapter.render(EDIT)
        assert (adapter.name, adapter.supports_model("gpt-image-1.5"), adapter.supports_model("gpt-5")) == (
            "openai-responses",
            True,
            False,
        )
    assert request.url == "https://api.openai.com/v1/images/edits"
    assert header(request.headers, "authorization") == "Bearer from-the-environment"
    assert header(request.headers, "openai-organization") == "org-1"
    monkeypatch.setenv("OPENAI_API_KEY", " ")
    with OpenAIImagesAdapter() as adapter:
        assert header(adapter.render(EDIT).headers, "authorization") == "Bearer YOUR_API_KEY"
        with pytest.raises(MembraneError, match="or set OPENAI_API_KEY") as caught:
            Membrane(adapter).complete(EDIT)
    assert caught.value.type == "auth"


@pytest.mark.parametrize("request_", [asked(), EDIT], ids=["generate", "edit"])
@pytest.mark.parametrize("stream", [False, True], ids=["at once", "streamed"])
def test_what_is_rendered_is_what_is_sent(request_: Json, stream: bool) -> None:
    with LoopbackProvider([Reply(Image(PNG))]) as provider, provider.transport() as transport:
        adapter = OpenAIImagesAdapter(api_key="k", base_url=provider.url + "/v1", transport=transport)
        (Membrane(adapter).stream if stream else Membrane(adapter).complete)(request_)
        shown, received = adapter.render(request_, stream=stream), provider.requests[0]
    assert received.body == shown.body
    assert dict(shown.headers).items() <= dict(received.headers).items()


# Answers


def block(index: int, image: GeneratedImage) -> list[Delta]:
    return [BlockStart(index, image), BlockEnd(index)]


def text(index: int, words: str) -> list[Delta]:
    return [BlockStart(index, Text("")), TextDelta(index, words), BlockEnd(index)]


DOCUMENTS: dict[str, tuple[Json, list[Delta]]] = {
    "by base64": ({"data": [{"b64_json": PNG}]}, block(0, GeneratedImage(PNG))),
    "its type by what the answer says": (
        {"data": [{"b64_json": PNG}], "output_format": "webp"},
        block(0, GeneratedImage(PNG, "image/webp")),
    ),
    "its type by what the bytes show": ({"data": [{"b64_json": JPEG}]}, block(0, GeneratedImage(JPEG, "image/jpeg"))),
    "by address": ({"data": [{"url": "u"}]}, block(0, GeneratedImage("", "image/png", "u"))),
    "each after the prompt it was made from": (
        {"data": [{"b64_json": PNG, "revised_prompt": "a"}, {"b64_json": JPEG}, {"url": "u", "revised_prompt": "b"}]},
        [
            *text(0, "a"),
            *block(1, GeneratedImage(PNG)),
            *block(2, GeneratedImage(JPEG, "image/jpeg")),
            *text(3, "b"),
            *block(4, GeneratedImage(url="u")),
        ],
    ),
    "model and counts": (
        {"model": "m", "data": [], "usage": {"input_tokens": 5, "output_tokens": 272, "total_tokens": 277}},
        [ModelNamed("m"), UsageReported({"input_tokens": 5, "output_tokens": 272})],
    ),
    "nulls": (
        {"data": [{"b64_json": PNG, "url": None, "revised_prompt": None}], "usage": None},
        block(0, GeneratedImage(PNG)),
    ),
}


@pytest.mark.parametrize("answer, deltas", DOCUMENTS.values(), ids=DOCUMENTS.keys())
def test_what_a_whole_answer_says(answer: Json, deltas: list[Delta]) -> None:
    assert ImagesDecoder().document(answer) == [*deltas, Finished("end_turn", None, raw=answer)]


def test_counts_are_made_disjoint() -> None:
    details = {"text_tokens": 3, "image_tokens": 7, "cached_tokens": 4}
    assert counts({"input_tokens": 10, "input_tokens_details": details, "output_tokens": 1}) == {
        "input_tokens": 6,
        "output_tokens": 1,
        "cache_read_tokens": 4,
    }
    assert counts({"input_tokens": "x", "input_tokens_details": 7}) == {}


def event(kind: str, **fields: Any) -> tuple[str, str]:
    return kind, json.dumps({"type": kind, **fields})


def preview(index: int, data: str) -> list[Delta]:
    return block(index, GeneratedImage(data, is_preview=True))


PARTIAL, DONE = "image_generation.partial_image", "image_generation.completed"
STREAMS: dict[str, tuple[list[tuple[str, str]], list[Delta]]] = {
    "an image": ([event(DONE, b64_json=PNG)], block(0, GeneratedImage(PNG))),
    "previews have the place of the image to come": (
        [event(PARTIAL, b64_json=PNG, partial_image_index=0), event(DONE, b64_json=PNG, output_format="jpeg")],
        [*preview(0, PNG), *block(0, GeneratedImage(PNG, "image/jpeg"))],
    ),
    "one image after another": (
        [
            event(PARTIAL, b64_json=PNG),
            event(DONE, b64_json=PNG),
            event(PARTIAL, b64_json=PNG),
            event(DONE, b64_json=JPEG),
        ],
        [
            *preview(0, PNG),
            *block(0, GeneratedImage(PNG)),
            *preview(1, PNG),
            *block(1, GeneratedImage(JPEG, "image/jpeg")),
        ],
    ),
    "a prompt written anew": (
        [event(DONE, b64_json=PNG, revised_prompt="a"), event(DONE, b64_json=PNG)],
        [*text(0, "a"), *block(1, GeneratedImage(PNG)), *block(2, GeneratedImage(PNG))],
    ),
    "a prompt written anew, of an image that was shown already": (
        [event(PARTIAL, b64_json=PNG), event(DONE, b64_json=PNG, revised_prompt="a")],
        [*preview(0, PNG), *text(1, "a"), *block(0, GeneratedImage(PNG))],
    ),
    "an edit's": ([event("image_edit.completed", b64_json=PNG)], block(0, GeneratedImage(PNG))),
    "an event that is not known": (
        [event("image_generation.sketch", b64_json=PNG), event(DONE, b64_json=PNG)],
        [
            Unknown("image_generation.sketch", {"type": "image_generation.sketch", "b64_json": PNG}),
            *block(0, GeneratedImage(PNG)),
        ],
    ),
    "an end mark": ([event(DONE, b64_json=PNG), ("message", "[DONE]")], block(0, GeneratedImage(PNG))),
    "named by the event alone": ([(DONE, json.dumps({"b64_json": PNG}))], block(0, GeneratedImage(PNG))),
}


@pytest.mark.parametrize("events, deltas", STREAMS.values(), ids=STREAMS.keys())
def test_what_events_say(events: list[tuple[str, str]], deltas: list[Delta]) -> None:
    decoder = ImagesDecoder()
    assert [delta for name, data in events for delta in decoder.decode(name, data)] == deltas
    assert decoder.complete


def test_the_end_says_what_stood_around_the_image() -> None:
    decoder = ImagesDecoder()
    usage = {"input_tokens": 1, "output_tokens": 2}
    assert decoder.decode(*event(DONE, b64_json=PNG, created_at=7, size="s", usage=usage, x=1))[0] == UsageReported(
        usage
    )
    assert decoder.end() == (Finished("end_turn", None, envelope={"created": 7, "size": "s", "usage": usage}),)
    codec = ImagesCodec("u", None, PromptStyle(), 16)
    content = [GeneratedImage(JPEG, is_preview=True), GeneratedImage(PNG), GeneratedImage(url="u")]
    assert codec.record({"created": 7}, content) == {"created": 7, "data": [{"b64_json": PNG}, {"url": "u"}]}


FAULTS: dict[str, Json] = {"an error": {"error": {"message": "x"}}, "no data": {"created": 7}, "a list": []}


@pytest.mark.parametrize("answer", FAULTS.values(), ids=FAULTS.keys())
def test_an_answer_that_is_an_error(answer: Json) -> None:
    with pytest.raises(ProviderFault):
        ImagesDecoder().document(answer)


# Over a socket


def answered(answer: Any, request: Json, *, stream: bool = True, **how: Any) -> Any:
    with LoopbackProvider([answer]) as provider, provider.transport() as transport:
        adapter = OpenAIImagesAdapter(api_key="k", base_url=provider.url + "/v1", transport=transport)
        if stream:
            return Membrane(adapter).stream(request, retry=False, **how)
        return Membrane(adapter).complete(request, retry=False, **how)


def test_an_image_made_from_words() -> None:
    reply = Reply("A square, red", Image(PNG), usage=Usage(5, 272))
    response = answered(reply, asked(), stream=False)
    assert response.content == [Text("A square, red"), GeneratedImage(PNG)]
    assert (response.text, response.stop_reason) == ("A square, red", "end_turn")
    assert (response.usage.input_tokens, response.usage.output_tokens, response.usage.unreported) == (5, 272, [])
    assert (response.details.model.actual, response.details.stop.provider_reason) == ("gpt-image-1", None)


def test_an_edit_with_previews() -> None:
    seen: list[Any] = []
    with LoopbackProvider([Reply(Image(PNG), usage=Usage(5, 272))]) as provider, provider.transport() as transport:
        adapter = OpenAIImagesAdapter(api_key="k", base_url=provider.url + "/v1", transport=transport)
        response: Any = Membrane(adapter).stream(
            {**EDIT, "provider_params": {"partial_images": 2}},
            on_content_block_update=lambda index, block: seen.append((index, block.is_preview)),
        )
        form = provider.requests[0].json
    assert seen == [(0, True), (0, True), (0, True), (0, True), (0, None), (0, None)]
    assert response.content == [GeneratedImage(PNG)]
    assert response.raw.response["data"] == [{"b64_json": PNG}]
    assert response.raw.request["image"] == [f"data:image/png;base64,{PNG}"]
    assert response.usage.output_tokens == 272
    assert form == {
        "model": "gpt-image-1",
        "prompt": "User: Make it blue",
        "n": "1",
        "quality": "auto",
        "partial_images": "2",
        "stream": "true",
        "image[]": [File("image.png", "image/png", base64.b64decode(PNG))],
    }


def test_an_image_goes_round_and_is_edited() -> None:
    """What a model has made is its own affair; whoever wants it edited sends it as an image."""
    response = answered(Reply(Image(PNG)), asked(), stream=False)
    made = response.content[0]
    again = asked(said("A red square"), *response.as_messages(), said(picture(made.data, made.mime_type), "Blue"))
    assert b'name="image[]"' in rendered(again).body


def test_several_images_are_answered_at_once_where_a_stream_was_wanted() -> None:
    response = answered(Reply(Image(PNG), Image(JPEG)), asked(provider_params={"n": 2}))
    assert [image.data for image in response.content] == [PNG, JPEG]


EVENTS = wire.events(Reply(Image(PNG)), Asked({"partial_images": 2}))
PREVIEWED = asked(provider_params={"partial_images": 2})
ENDS: dict[str, Callable[..., Any]] = {"end": faults.end, "close": faults.close, "reset": faults.reset}


@pytest.mark.parametrize("ending", ENDS.values(), ids=ENDS.keys())
@pytest.mark.parametrize("after", range(len(EVENTS) + 1))
def test_an_end_at_every_event_boundary(after: int, ending: Callable[..., Any]) -> None:
    answer = ending(Reply(Image(PNG)), after=after)
    if after == len(EVENTS):
        assert answered(answer, PREVIEWED).content == [GeneratedImage(PNG)]
        return
    with pytest.raises(MembraneError) as caught:
        answered(answer, PREVIEWED)
    assert (caught.value.type, caught.value.retryable) == ("network", True)
    assert caught.value.partial_content == [GeneratedImage(PNG, is_preview=True)][:after]


def refused(status: int, code: str, message: str, type: str = "image_generation_user_error") -> Raw:
    return wire.error(status, type, message, code=code)


ERRORS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "no such key": (
        refused(401, "invalid_api_key", "Incorrect API key provided", "invalid_request_error"),
        ("auth", False, 401, "invalid_api_key"),
    ),
    "too many": (
        refused(429, "rate_limit_exceeded", "Rate limit reached for gpt-image-1", "images"),
        ("rate_limit", True, 429, "rate_limit_exceeded"),
    ),
    "down": (Failure(500), ("server", True, 500, "server_error")),
    "blocked": (
        refused(400, "moderation_blocked", "Your request was rejected by the safety system."),
        ("safety", False, 400, "moderation_blocked"),
    ),
    "blocked, in the words of an older model": (
        refused(400, "content_policy_violation", "Your request was rejected.", "invalid_request_error"),
        ("safety", False, 400, "content_policy_violation"),
    ),
    "blocked in the middle of a stream": (
        Raw(200, SSE, EVENTS[0] + wire.error_event("image_generation_user_error", "no", "moderation_blocked")),
        ("safety", False, None, "moderation_blocked"),
    ),
    "an error in the middle of a stream": (
        Raw(200, SSE, EVENTS[0] + wire.error_event()),
        ("server", True, 500, "server_error"),
    ),
    "a bad image": (
        refused(400, "invalid_image_file", "Invalid image data."),
        ("invalid_request", False, 400, "invalid_image_file"),
    ),
}


@pytest.mark.parametrize("answer, expected", ERRORS.values(), ids=ERRORS.keys())
def test_an_error(answer: Any, expected: tuple[Any, ...]) -> None:
    with pytest.raises(MembraneError) as caught:
        answered(answer, asked())
    error = caught.value
    assert (error.type, error.retryable, error.http_status, error.provider_error_code) == expected


MALFORMED = {
    "an image of nothing": json.dumps({"type": DONE}),
    "an image that is none": json.dumps({"type": DONE, "b64_json": 7}),
    "a type that is none": json.dumps({"type": 7}),
    "no object": "[]",
    "no JSON": "{",
}


@pytest.mark.parametrize("data", MALFORMED.values(), ids=MALFORMED.keys())
def test_an_event_that_cannot_be_read(data: str) -> None:
    with pytest.raises(MembraneError, match="openai-responses: event 'message' cannot be read") as caught:
        answered(Raw(200, SSE, f"data: {data}\n\n"), asked())
    assert caught.value.type == "server"
