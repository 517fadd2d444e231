"""OpenAI's Images API: POST {base_url}/images/generations in JSON, or /images/edits as a form where there are images.

    > {"model": "gpt-image-1", "prompt": "User: Hi", "n": 1, "quality": "auto"}
    < {"created": 1750000000, "data": [{"b64_json": "iVBORw0KGgo=", "revised_prompt": "A hand, waving"}],
    <  "output_format": "png", "usage": {"input_tokens": 9, "output_tokens": 272, "total_tokens": 281}}
    = A hand, waving / end_turn / 9 in, 272 out

A stream brings previews of an image and then the image itself, each in the place of the one before it:

    event: image_generation.partial_image    {"b64_json": ..., "partial_image_index": 0}     GeneratedImage, is_preview
    event: image_generation.completed        {"b64_json": ..., "usage": {...}}               GeneratedImage

Source: platform.openai.com/docs/api-reference/images, images-streaming. EVENTS, at the end, says what each event means.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final, Literal, NamedTuple

from ..clock import Clock
from ..credentials.keys import PLACEHOLDER, HeaderAuth, Key, read_key
from ..errors import MembraneError, invalid
from ..formatters.base import Formatter
from ..formatters.image_media import sniffed
from ..formatters.native import NativeFormatter
from ..transport.interface import OpensRequests
from ..values.base import Json
from ..values.content import Block, GeneratedImage, Text
from ..values.deltas import BlockEnd, BlockStart, Delta, Finished, ModelNamed, TextDelta, Unknown, UsageReported
from ..values.messages import extract_text
from ..values.requests import ProviderRequest
from ..wire.http import HeaderPairs, HeadersInput
from ..wire.json_text import compact, parse, whole_characters
from ..wire.multipart import Part, form_data
from .base import (
    DEFAULT_MAX_TOKENS,
    HttpAdapter,
    ProviderFault,
    count_or_none,
    json_content,
    mapping_or_empty,
    read_base_url,
    string,
    string_or_none,
    without_none,
)
from .chat_dialect import DONE
from .structured_output import refuse_output

PromptFormat = Literal["roles", "transcript"]

MOST_INPUT_IMAGES: Final = 16  # gpt-image models take so many in one edit
ROLE_LABELS: Final = {"user": "User", "assistant": "Assistant"}
NOT_STREAMED: Final = ("dall-e-",)  # model families that refuse `stream`
# Fields of a body that are sent as files where they hold data URLs: field -> the name of its part.
FILE_PARTS: Final = {"image": "image[]", "mask": "mask"}
LEFT_OUT: Final = ("tool_use", "tool_result", "thinking", "redacted_thinking", "raw_item")


class OpenAIImagesAdapter(HttpAdapter):
    """OpenAI's Images API (gpt-image, DALL-E). api_key: else OPENAI_API_KEY. organization: sent where given.

    The prompt is the conversation's text: prompt_format "roles" labels it `User:` and `Assistant:`, "transcript" by the
    participants' names, after transcript_preamble. Its base64 images, the first max_input_images of them, are edited,
    unless allow_image_editing is False. n, size, quality, background, output_format, moderation, mask (a data URL),
    partial_images and the like go into provider_params.
    """

    default_formatter: Callable[[], Formatter] = NativeFormatter

    def __init__(
        self,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        organization: str | None = None,
        allow_image_editing: bool = True,
        prompt_format: PromptFormat = "roles",
        transcript_preamble: str | None = None,
        max_input_images: int = MOST_INPUT_IMAGES,
        headers: HeadersInput | None = None,
        default_max_tokens: int = DEFAULT_MAX_TOKENS,
        progress_timeout_ms: int | None = None,
        transport: OpensRequests | None = None,
        clock: Clock | None = None,
    ) -> None:
        """default_max_tokens: taken, as by every adapter; an image has no such limit."""
        key = read_key(api_key, "api_key", "OPENAI_API_KEY", os.environ)
        check_settings(prompt_format, max_input_images)
        super().__init__(
            name="openai-responses",  # as the alias: the name is the older one
            codec=ImagesCodec(
                read_base_url(base_url, None, {}, "https://api.openai.com/v1"),
                organization,
                PromptStyle(prompt_format, transcript_preamble),
                max_input_images if allow_image_editing else 0,
            ),
            auth=HeaderAuth(
                [Key(key, "Authorization", "Bearer ")] if key else [],
                missing="api_key: no key; pass api_key= or set OPENAI_API_KEY (nothing was sent)",
                placeholder=Key(PLACEHOLDER, "Authorization", "Bearer "),
            ),
            headers=headers,
            reserved_headers=("authorization",),
            transport=transport,
            clock=clock,
            progress_timeout_ms=progress_timeout_ms,
            content=images_content,
        )
        self.default_formatter = partial(NativeFormatter, name_format="")  # the prompt's labels say who speaks

    def supports_model(self, model: str) -> bool:
        return model.startswith("gpt-image")


# The name this adapter had before OpenAI had an API called Responses; programs know it by that name.
OpenAIResponsesAdapter = OpenAIImagesAdapter


def check_settings(prompt_format: str, max_input_images: int) -> None:
    if prompt_format not in ("roles", "transcript"):
        raise invalid("prompt_format", f"found {prompt_format!r}", "expected 'roles' or 'transcript'")
    if type(max_input_images) is not int or not 1 <= max_input_images <= MOST_INPUT_IMAGES:
        raise invalid(
            "max_input_images", f"found {max_input_images!r}", f"expected a whole number from 1 to {MOST_INPUT_IMAGES}"
        )


class PromptStyle(NamedTuple):
    format: PromptFormat = "roles"
    preamble: str | None = None


# Requests


class ImagesCodec:
    """The wire format: requests here, answers in ImagesDecoder."""

    def __init__(self, base_url: str, organization: str | None, style: PromptStyle, most_images: int) -> None:
        self._base_url: Final = base_url
        self._organization: Final = organization
        self._style: Final = style
        self._most_images: Final = most_images

    def address(self, request: ProviderRequest, *, stream: bool) -> str:
        edits = next(self._images(request), None) is not None
        return f"{self._base_url}/images/{'edits' if edits else 'generations'}"

    def headers(self, body: Json, *, stream: bool) -> HeaderPairs:
        return [("OpenAI-Organization", self._organization)] if self._organization else []

    def body(self, request: ProviderRequest, *, stream: bool) -> Json:
        """The request as a mapping, whichever way it is written. The caller's own fields win."""
        if request.tools:
            raise MembraneError("unsupported", "tools: the Images API takes none; leave them out")
        refuse_output(request, "the Images API")
        refuse_media(request.messages)
        body = {
            "model": request.model,
            "prompt": prompt_of(request, self._style),
            "n": 1,
            "quality": "auto",
            **({"image": images} if (images := list(self._images(request))) else {}),
            **request.provider_params,
        }
        # A stream brings one image; of more than one the answer is asked for, and read, as a whole.
        streams = stream and body["n"] == 1 and not request.model.startswith(NOT_STREAMED)
        return {**body, "stream": True} if streams else body

    def decoder(self) -> ImagesDecoder:
        return ImagesDecoder()

    def record(self, envelope: Json, content: Sequence[Block]) -> Json:
        """A streamed answer as a whole one: the images become its data."""
        images = [block for block in content if isinstance(block, GeneratedImage) and not block.is_preview]
        data = [{"url": image.url} if image.url else {"b64_json": image.data} for image in images]
        return {**envelope, "data": data}

    def tidied(self, content: list[Block]) -> list[Block]:
        return content

    def _images(self, request: ProviderRequest) -> Iterator[str]:
        """The conversation's own images as data URLs, in order, as many as may be sent."""
        images = (block for block in blocks_of(request.messages) if block["type"] == "image")
        urls = (data_url(image["source"]) for image in images if image["source"]["type"] == "base64")
        return islice(urls, self._most_images)


def data_url(source: Json) -> str:
    return f"data:{source.get('media_type') or 'image/png'};base64,{source['data']}"


def blocks_of(messages: Sequence[Json]) -> Iterator[Json]:
    for message in messages:
        yield from blocks_in(message)


def blocks_in(message: Json) -> Iterator[Json]:
    content = message["content"]
    yield from ({"type": "text", "text": content},) if isinstance(content, str) else content


def prompt_of(request: ProviderRequest, style: PromptStyle) -> str:
    """The system text, then what was said, each under the name of its speaker, a blank line between them."""
    parts = [system_text(request.system)]
    if style.format == "transcript":
        parts.append(style.preamble or "")
        said = [(message.participant, extract_text(message)) for message in request.normalized_messages]
    else:
        said = [(ROLE_LABELS.get(message["role"], message["role"]), text_of(message)) for message in request.messages]
    parts += [f"{speaker}: {text}" for speaker, text in said if text]
    return "\n\n".join(part for part in parts if part)


def system_text(system: Any) -> str:
    return system if isinstance(system, str) else "\n".join(block["text"] for block in system or ())


def text_of(message: Json) -> str:
    return "\n".join(block["text"] for block in blocks_in(message) if block["type"] == "text" and block["text"])


def refuse_media(messages: Sequence[Json]) -> None:
    """Texts make the prompt, images are edited, and what tools did is no part of either; the rest would be lost."""
    for block in blocks_of(messages):
        if block["type"] not in ("text", "image", *LEFT_OUT):
            raise MembraneError(
                "unsupported", f"messages: the Images API takes no {block['type']} blocks; leave them out"
            )


def images_content(body: Json) -> tuple[str, bytes]:
    """A body as it is written: JSON, or with images a form, its fields in the order of the mapping and files last."""
    if "image" not in body:
        return json_content(body)
    fields = [field_part(name, value) for name, value in body.items() if name not in FILE_PARTS and value is not None]
    files = [
        file_part(name, value)
        for name in FILE_PARTS
        for value in (body[name] if isinstance(body.get(name), list) else [body.get(name)])
        if value is not None
    ]
    return form_data([*fields, *files])


def field_part(name: str, value: Any) -> Part:
    """Text as it is, anything else as JSON writes it: true, 2, [1]."""
    text = whole_characters(value) if isinstance(value, str) else compact(value)
    return Part(whole_characters(name), text.encode("utf-8"))


def file_part(field: str, url: Any) -> Part:
    """A data URL as a file named after its field and type."""
    begin, _, data = url.partition(",") if isinstance(url, str) else ("", "", "")
    media_type = begin.partition(":")[2].partition(";")[0].lower()
    try:
        content = base64.b64decode(data, validate=True)
    except (ValueError, binascii.Error):
        content = b""
    if not (begin.startswith("data:") and begin.endswith(";base64") and "/" in media_type and content):
        raise invalid(field, "found no base64 data URL", 'expected a string "data:image/png;base64,..."')
    return Part(FILE_PARTS[field], content, f"{field}.{media_type.partition('/')[2]}", media_type)


# Answers


class ImagesDecoder:
    """Images of one answer in, deltas out. Previews of an image are its block until the image takes its place."""

    TERMINAL = "image_generation.completed"

    def __init__(self) -> None:
        self.complete = False
        self.last = False
        self._blocks = 0  # whole ones
        self._previewed = False
        self._envelope: Final[dict[str, Any]] = {}

    def decode(self, event: str, data: str) -> Sequence[Delta]:
        if data.strip() == DONE:
            self.last = True
            return ()
        told = parse(data)
        kind = told.get("type") or event
        if told.get("error") or kind == "error":
            raise ProviderFault(told, kind)
        return EVENTS.get(kind.rpartition(".")[2], ImagesDecoder.unknown)(self, kind, told)

    def document(self, answer: Json) -> list[Delta]:
        if not isinstance(answer, Mapping) or answer.get("error") or "data" not in answer:
            raise ProviderFault(answer, "answer")
        deltas = self._told(answer)
        for item in answer["data"]:
            deltas += self._image(item, answer)
        return [*deltas, Finished("end_turn", None, raw=answer)]

    def end(self) -> Sequence[Delta]:
        return (Finished("end_turn", None, envelope=self._envelope),)

    def partial_image(self, kind: str, told: Json) -> Sequence[Delta]:
        self._previewed = True
        return whole_block(self._blocks, generated(told, told, is_preview=True))

    def completed(self, kind: str, told: Json) -> Sequence[Delta]:
        deltas = [*self._told(told), *self._image(told, told)]
        created = {"created": told["created_at"]} if "created_at" in told else {}
        self._envelope.update({**created, **{name: told[name] for name in ENVELOPE_FIELDS if name in told}})
        self.complete = True
        return deltas

    def unknown(self, kind: str, told: Json) -> Sequence[Delta]:
        return (Unknown(kind, told),)

    def _told(self, answer: Json) -> list[Delta]:
        """What stands around the images."""
        deltas: list[Delta] = []
        if string_or_none(answer.get("model")):
            deltas.append(ModelNamed(answer["model"]))
        if answer.get("usage"):
            deltas.append(UsageReported(counts(answer["usage"])))
        return deltas

    def _image(self, item: Json, answer: Json) -> list[Delta]:
        """An image, and before it the prompt it was made from, where the provider wrote one anew.

        A preview that was shown already has the first of their places.
        """
        image, prompt = generated(item, answer), item.get("revised_prompt")
        texts = [string(prompt)] if prompt else []
        at = self._blocks + (0 if self._previewed else len(texts))
        deltas = [delta for text in texts for delta in text_block(self._blocks + self._previewed, text)]
        self._blocks += 1 + len(texts)
        self._previewed = False
        return [*deltas, *whole_block(at, image)]


def generated(item: Json, answer: Json, *, is_preview: bool | None = None) -> GeneratedImage:
    """An image by its data or its address. Its type is the one the answer names, else what its bytes show."""
    data, url = string(item.get("b64_json") or ""), string_or_none(item.get("url"))
    if not data and url is None:
        raise ValueError("an image without b64_json and without url")
    named = string_or_none(item.get("output_format")) or string_or_none(answer.get("output_format"))
    mime_type = f"image/{named}" if named else sniffed(data) or "image/png"
    return GeneratedImage(data, mime_type, url, is_preview)


def whole_block(index: int, block: Block) -> list[Delta]:
    return [BlockStart(index, block), BlockEnd(index)]


def text_block(index: int, text: str) -> list[Delta]:
    return [BlockStart(index, Text("")), TextDelta(index, text), BlockEnd(index)]


def counts(usage: Json) -> dict[str, Any]:
    """Counts by our names, made disjoint: cached tokens are counted inside the input."""
    total = count_or_none(usage.get("input_tokens"))
    read = count_or_none(mapping_or_empty(usage.get("input_tokens_details")).get("cached_tokens"))
    return without_none(
        {
            "input_tokens": None if total is None else max(0, total - (read or 0)),
            "output_tokens": count_or_none(usage.get("output_tokens")),
            "cache_read_tokens": read,
        }
    )


ENVELOPE_FIELDS: Final = ("background", "output_format", "quality", "size", "usage")

# By the last word of the event's name; the first is image_generation, or for an edit image_edit.
EVENTS: Final[Mapping[str, Callable[[ImagesDecoder, str, Json], Sequence[Delta]]]] = {
    "partial_image": ImagesDecoder.partial_image,
    "completed": ImagesDecoder.completed,
}
