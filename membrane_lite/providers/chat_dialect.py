"""Chat completions, the dialect that OpenAI began and most servers speak: POST {base_url}/chat/completions.

    > {"model": "gpt-4o", "messages": [{"role": "user", "content": "User: Hi"}], "max_tokens": 64, "stream": true,
    >  "stream_options": {"include_usage": true}}
    < data: {"model": "gpt-4o", "choices": [{"index": 0, "delta": {"content": "Hello"}}]}
    <
    < data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    <
    < data: {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}}
    <
    < data: [DONE]
    <
    = Hello / end_turn / 9 in, 3 out

Source: platform.openai.com/docs/api-reference/chat. What servers do differently is a field of ChatDialect, named after
the fact. PARTS says how a block is sent, FIELDS which field of a delta does what.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from ..errors import MembraneError
from ..formatters.image_media import note
from ..values.base import Json
from ..values.content import Audio, Block, GeneratedImage, Text, Thinking, ToolUse
from ..values.deltas import (
    BlockEnd,
    BlockStart,
    Delta,
    Finished,
    ModelNamed,
    TextDelta,
    ThinkingDelta,
    UsageReported,
)
from ..values.requests import ProviderRequest
from ..wire.http import HeaderPairs
from ..wire.json_text import compact, parse
from .base import ProviderFault, mapping_or_empty, string, string_or_none, whole_number, without_none
from .chat_calls import FORMAT, OpenCall, call_of
from .chat_media import SpokenAudio, audio_part, file_part, generated_image, image_part
from .chat_usage import counts
from .models import ModelTable, ModelTraits
from .reasoning_details import KEPT_WITH, REASONING_DETAILS, detail_text, joined_details
from .structured_output import chat_form

DONE: Final = "[DONE]"
ANY_MODEL: Final = ModelTraits()
EMPTY_PARAMETERS: Final = {"type": "object", "properties": {}}

STOP_REASONS: Final[Mapping[str | None, str]] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",  # the name it had before parallel calls
    "content_filter": "refusal",
    None: "end_turn",
}


OutputForm = Literal["strict", "json_schema", "prompt"]


class ChatDialect(NamedTuple):
    """Facts about one provider's form of the dialect.

    most_stop_sequences: how many it takes. reasoning_field: where an assistant message carries its reasoning back;
    None: nowhere. replayed_fields: those of KEPT_WITH that go back on their message. asks_for_stream_usage: counts come
    in a stream only where asked for. cache_markers: takes cache_control. takes_files: documents, as file parts.
    repetition_penalty: takes one. orphan_think_close: a local server may leave the opening <think> in its prompt
    template, so that the answer begins with the reasoning. tool_result_images: "media" shows the images of a tool's
    result to the model, "omit" only mentions them, "auto" goes by the model. output_form: how an answer is held to a
    schema: "strict", to the strict form that OpenAI defined; "json_schema", to the schema as it is; "prompt", by words
    in the system text. refuses_blank_text: Claude may be behind it, which takes no blank text, and no beginning of an
    answer that ends in white space.
    """

    most_stop_sequences: int = 4
    reasoning_field: str | None = None
    replayed_fields: Sequence[str] = ()
    asks_for_stream_usage: bool = False
    cache_markers: bool = False
    takes_files: bool = False
    repetition_penalty: bool = True
    orphan_think_close: bool = False
    tool_result_images: str = "auto"
    output_form: OutputForm = "json_schema"
    refuses_blank_text: bool = False

    def shows_tool_images(self, traits: ModelTraits) -> bool:
        return self.tool_result_images == "media" or (self.tool_result_images == "auto" and traits.image_input)


class ChatCodec:
    """The dialect at one address."""

    def __init__(self, base_url: str, dialect: ChatDialect, models: ModelTable, default_max_tokens: int) -> None:
        self._address: Final = base_url + "/chat/completions"
        self._dialect: Final = dialect
        self._models: Final = models
        self._default_max_tokens: Final = default_max_tokens

    def address(self, request: ProviderRequest, *, stream: bool) -> str:
        return self._address

    def headers(self, body: Json, *, stream: bool) -> HeaderPairs:
        return ()

    def body(self, request: ProviderRequest, *, stream: bool) -> Json:
        traits = self._models.traits(request.model)
        return chat_body(request, self._dialect, traits, max_tokens=self._default_max_tokens, stream=stream)

    def decoder(self) -> ChatDecoder:
        return ChatDecoder()

    def record(self, envelope: Json, content: Sequence[Block]) -> Json:
        return recorded(envelope, content)

    def tidied(self, content: list[Block]) -> list[Block]:
        return tidied(content, self._dialect)


# Requests


def chat_body(
    request: ProviderRequest, dialect: ChatDialect, traits: ModelTraits, *, max_tokens: int, stream: bool
) -> dict[str, Any]:
    """The fields in the documentation's order; the caller's own after ours, the stream switches last."""
    request, output = chat_form(request, traits, dialect.output_form)
    streaming: dict[str, Any] = {"stream": True} if stream else {}
    if stream and dialect.asks_for_stream_usage:
        streaming["stream_options"] = {"include_usage": True}
    return {
        **without_none(
            {
                "model": request.model,
                "messages": [
                    *system_messages(request.system, dialect),
                    *chat_messages(request.messages, dialect, traits),
                ],
                traits.max_tokens_field: request.max_tokens or max_tokens,
                **sampling(request, traits),
                "presence_penalty": request.presence_penalty,
                "frequency_penalty": request.frequency_penalty,
                "repetition_penalty": request.repetition_penalty if dialect.repetition_penalty else None,
                "stop": (request.stop_sequences[: dialect.most_stop_sequences] or None) if traits.stop else None,
                "tools": [chat_tool(tool, dialect) for tool in request.tools or ()] or None,
                **output,
            }
        ),
        **request.provider_params,
        **streaming,
    }


def sampling(request: ProviderRequest, traits: ModelTraits) -> dict[str, Any]:
    if not traits.sampling:
        return {}
    excluded = traits.temperature_excludes_top_p and request.temperature is not None
    return {"temperature": request.temperature, "top_p": None if excluded else request.top_p}


def chat_tool(tool: Json, dialect: ChatDialect) -> Json:
    function = {
        "name": tool["name"],
        "description": tool.get("description", ""),
        "parameters": tool.get("input_schema") or EMPTY_PARAMETERS,
    }
    return {"type": "function", "function": function, **cache_marker(tool, dialect)}


def cache_marker(block: Json, dialect: ChatDialect) -> dict[str, Any]:
    """The block's cache_control, for a server that takes it; for others there is no counterpart."""
    marked = dialect.cache_markers and "cache_control" in block
    return {"cache_control": block["cache_control"]} if marked else {}


def system_messages(system: Any, dialect: ChatDialect) -> list[Json]:
    """The system text as a first message: plain, unless one of its blocks carries a marker that the server takes."""
    if not system:
        return []
    if not isinstance(system, str) and any(cache_marker(block, dialect) for block in system):
        return [{"role": "system", "content": system}]
    text = system if isinstance(system, str) else "\n".join(block["text"] for block in system)
    return [{"role": "system", "content": text}] if text else []


def chat_messages(messages: Iterable[Json], dialect: ChatDialect, traits: ModelTraits = ANY_MODEL) -> list[Json]:
    written = [each for message in messages for each in chat_message(message, dialect, traits)]
    if dialect.refuses_blank_text and written and written[-1]["role"] == "assistant":
        written[-1] = without_trailing_space(written[-1])
    return written


def without_trailing_space(message: Json) -> Json:
    """A beginning of an answer, without the white space it ends in."""
    content = message.get("content")
    if isinstance(content, str):
        return {**message, "content": content.rstrip()}
    if not content or content[-1].get("type") != "text":
        return message
    last = {**content[-1], "text": content[-1]["text"].rstrip()}
    return {**message, "content": [*content[:-1], last]}


def chat_message(message: Json, dialect: ChatDialect, traits: ModelTraits) -> list[Json]:
    """One message with blocks as the messages of this dialect: results first, then what else was said."""
    content = message["content"]
    if "tool_calls" in message or not isinstance(content, list):
        return [message]  # written in this dialect already, by a hook
    written = WrittenMessage(dialect, shows_tool_images=dialect.shows_tool_images(traits))
    for block in content:
        written.add(block)
    if written.results:
        return [*written.results, *written.spoken("user")]
    return written.spoken(message["role"])


class WrittenMessage:
    """Collects the parts of one message; PARTS says which method takes which block."""

    def __init__(self, dialect: ChatDialect, *, shows_tool_images: bool) -> None:
        self.results: list[Json] = []
        self._dialect: Final = dialect
        self._shows_tool_images: Final = shows_tool_images
        self._parts: list[Json] = []
        self._calls: list[Json] = []
        self._reasoning: list[str] = []
        self._fields: dict[str, Any] = {}  # of the message as a whole

    def add(self, block: Json) -> None:
        own = own_item(block)
        for field in self._dialect.replayed_fields:
            if field in own:
                self._fields.setdefault(field, []).extend(own[field])
        PARTS.get(block["type"], WrittenMessage.refuse)(self, block)

    def text(self, block: Json) -> None:
        if block["text"].strip() if self._dialect.refuses_blank_text else block["text"]:
            self._add_part({"type": "text", "text": block["text"]}, block)

    def image(self, block: Json) -> None:
        self._add_part(image_part(block["source"]), block)

    def audio(self, block: Json) -> None:
        """What the model itself said goes back as its id."""
        spoken = own_item(block).get("audio")
        if spoken:
            self._fields["audio"] = {"id": spoken["id"]}
        else:
            self._add_part(audio_part(block["source"]), block)

    def document(self, block: Json) -> None:
        if not self._dialect.takes_files:
            self.refuse(block)
        self._add_part(file_part(block), block)

    def tool_use(self, block: Json) -> None:
        function = {"name": block["name"], "arguments": compact(block["input"])}
        call = {"id": block["id"], "type": "function", "function": function}
        self._calls.append({**own_item(block), **call})

    def tool_result(self, block: Json) -> None:
        """A tool message holds text only; its images follow in the user message, where the model can see them."""
        lines = []
        parts = block["content"] if isinstance(block["content"], list) else [{"type": "text", "text": block["content"]}]
        for part in parts:
            if part["type"] == "image":
                lines.append(note(part["source"]))
                if self._shows_tool_images:
                    self._parts.append(image_part(part["source"]))
            else:
                lines.append(part["text"] if part["type"] == "text" else compact(part))
        text, marker = "\n".join(lines), cache_marker(block, self._dialect)
        content = [{"type": "text", "text": text, **marker}] if marker else text
        self.results.append({"role": "tool", "tool_call_id": block["tool_use_id"], "content": content})

    def thinking(self, block: Json) -> None:
        if block["thinking"]:
            self._reasoning.append(block["thinking"])

    def nothing(self, block: Json) -> None:
        """Encrypted reasoning and items of other formats: only their own provider reads them."""

    def refuse(self, block: Json) -> None:
        raise MembraneError(
            "unsupported",
            f"messages: this API takes no {block['type']} blocks; leave them out, or pass "
            "formatter=NativeFormatter(unsupported_media='strip')",
        )

    def spoken(self, role: str) -> list[Json]:
        """The message of `role`, if anything was said or called: plain text where there is nothing but text."""
        if not self._parts and not self._calls and "audio" not in self._fields:
            return []
        plain = all(part["type"] == "text" and "cache_control" not in part for part in self._parts)
        text = "\n".join(part["text"] for part in self._parts) or None if plain else None
        message: dict[str, Any] = {"role": role, "content": text if plain else self._parts}
        if role == "assistant":
            message.update({**self._reasoning_text(), **self._fields})
        if self._calls:
            message["tool_calls"] = self._calls
        return [message]

    def _add_part(self, part: Json, block: Json) -> None:
        self._parts.append({**part, **cache_marker(block, self._dialect)})

    def _reasoning_text(self) -> dict[str, Any]:
        """Not beside its details, which say the same again."""
        field = self._dialect.reasoning_field
        if not self._reasoning or field is None or REASONING_DETAILS in self._fields:
            return {}
        return {field: "\n".join(self._reasoning)}


def own_item(block: Json) -> Mapping[str, Any]:
    """What a server of this dialect gave beside the block."""
    return mapping_or_empty(block.get("raw_item")) if block.get("raw_format") == FORMAT else {}


PARTS: Final[Mapping[str, Callable[[WrittenMessage, Json], None]]] = {
    "text": WrittenMessage.text,
    "image": WrittenMessage.image,
    "audio": WrittenMessage.audio,
    "document": WrittenMessage.document,
    "tool_use": WrittenMessage.tool_use,
    "tool_result": WrittenMessage.tool_result,
    "thinking": WrittenMessage.thinking,
    "redacted_thinking": WrittenMessage.nothing,
    "raw_item": WrittenMessage.nothing,
}


# Answers


class ChatDecoder:
    """Chunks of one answer in, deltas out. The dialect has no blocks: a block lasts until another kind begins."""

    TERMINAL = "finish_reason or [DONE]"

    def __init__(self) -> None:
        self.complete = False
        self.last = False
        self._blocks = 0
        self._flow: type[Block] | None = None  # the kind of text that is open: Text or Thinking
        self._flow_index = 0
        self._calls: Final[list[OpenCall]] = []
        self._reasoning_field: str | None = None
        self._refusal: Final[list[str]] = []
        self._finish: str | None = None
        self._stop_sequence: str | None = None
        self._in_pieces = True
        self._kept: Final[dict[str, list[Json]]] = {}
        self._audio: SpokenAudio | None = None
        self._envelope: Final[dict[str, Any]] = {}
        self._beside: Final[dict[str, Any]] = {}  # what stands beside the first choice's message, kept raw
        self._others: Final[dict[int, list[str]]] = {}

    def decode(self, event: str, data: str) -> Sequence[Delta]:
        if data.strip() == DONE:
            self.complete = self.last = True
            return ()
        chunk = parse(data)
        deltas = self._told(chunk)
        if chunk.get("error") or event == "error":
            raise ProviderFault(chunk, event, deltas)
        for choice in chunk.get("choices") or ():
            if choice.get("index"):
                self._other(choice)
            else:
                deltas += self._choice(choice, choice.get("delta") or choice.get("message") or {})
        return deltas

    def document(self, answer: Json) -> list[Delta]:
        if not isinstance(answer, Mapping) or answer.get("error") or "choices" not in answer:
            raise ProviderFault(answer, "answer")
        deltas, self._in_pieces = self._told(answer), False
        for choice in answer["choices"][:1]:
            message = choice.get("message") or {}
            # Servers write the text first; a stream of the same answer begins with the reasoning, as FIELDS does.
            fields = {field: message[field] for field in FIELDS if field in message}
            # Each entry of a whole list is a call of its own, whatever index and id it has.
            calls = [{**call, "index": place} for place, call in enumerate(fields.get("tool_calls") or ())]
            deltas += self._choice(choice, {**fields, "tool_calls": calls})
        return [*deltas, *self._ended(raw=answer)]

    def end(self) -> Sequence[Delta]:
        choices: list[Json] = [{"index": 0, "finish_reason": self._finish, **self._beside}]
        choices += [
            {"index": index, "message": {"role": "assistant", "content": "".join(texts)}}
            for index, texts in sorted(self._others.items())
        ]
        return self._ended(envelope={**self._envelope, "choices": choices})

    def _told(self, chunk: Json) -> list[Delta]:
        """What stands around the choices. Counts come once, in whichever chunk; Groq puts them under x_groq."""
        deltas: list[Delta] = []
        if "model" not in self._envelope and string_or_none(chunk.get("model")):
            self._envelope.update({key: chunk[key] for key in ENVELOPE if chunk.get(key) is not None})
            deltas.append(ModelNamed(chunk["model"]))
        usage = chunk.get("usage") or (chunk.get("x_groq") or {}).get("usage")
        if usage:
            self._envelope["usage"] = usage
            deltas.append(UsageReported(counts(usage)))
        return deltas

    def _choice(self, choice: Json, delta: Json) -> list[Delta]:
        if choice.get("error"):
            raise ProviderFault(choice, "error")
        deltas: list[Delta] = []
        for field, value in delta.items():
            if value and field in FIELDS:
                deltas += FIELDS[field](self, field, value)
        if choice.get("logprobs"):
            self._log_probabilities(choice["logprobs"])
        if choice.get("finish_reason"):
            self._finish, self.complete = string(choice["finish_reason"]), True
            if choice.get("native_finish_reason"):
                self._beside["native_finish_reason"] = choice["native_finish_reason"]
            # vLLM names the stop sequence that ended the answer; a number is a token's id.
            self._stop_sequence = string_or_none(choice.get("stop_reason"))
        return deltas

    def _log_probabilities(self, given: Json) -> None:
        """Lists, of which each chunk brings the next entries."""
        kept = self._beside.setdefault("logprobs", {})
        for part, entries in given.items():
            if isinstance(entries, list):
                kept.setdefault(part, []).extend(entries)

    def _other(self, choice: Json) -> None:
        """A second choice (n > 1) is kept raw."""
        delta = choice.get("delta") or choice.get("message") or {}
        if isinstance(delta.get("content"), str):
            self._others.setdefault(whole_number(choice["index"]), []).append(delta["content"])

    def content(self, field: str, value: Any) -> Sequence[Delta]:
        """A string, or a list of typed parts as Mistral sends it."""
        if isinstance(value, str):
            return self._said(Text, value)
        return [delta for part in value for delta in self._part(part)]

    def _part(self, part: Json) -> Sequence[Delta]:
        if part["type"] == "thinking":
            inner = part["thinking"]
            texts = [inner] if isinstance(inner, str) else [piece.get("text", "") for piece in inner]
            return self._said(Thinking, "".join(texts))
        return self._said(Text, string(part["text"])) if part["type"] == "text" else ()

    def reasoning(self, field: str, value: Any) -> Sequence[Delta]:
        """Servers that send it under both names send it twice: the first name seen is the one that counts."""
        self._reasoning_field = self._reasoning_field or field
        return self._said(Thinking, value) if field == self._reasoning_field and isinstance(value, str) else ()

    def reasoning_details(self, field: str, value: Any) -> Sequence[Delta]:
        """OpenRouter's form of reasoning, kept as it is. It says again what `reasoning` says, or says it alone."""
        self.kept(field, value)
        text = detail_text(value)
        return self.reasoning(field, text) if text else ()

    def kept(self, field: str, value: Any) -> Sequence[Delta]:
        if isinstance(value, list):
            self._kept.setdefault(field, []).extend(value)
        return ()

    def _taken(self, *kinds: type[Block]) -> dict[str, Any]:
        """What has been kept for blocks of these kinds; it is given away once."""
        taken = {
            field: self._kept.pop(field) for field in KEPT_WITH if KEPT_WITH[field] in kinds and field in self._kept
        }
        if self._in_pieces and REASONING_DETAILS in taken:
            taken[REASONING_DETAILS] = joined_details(taken[REASONING_DETAILS])
        return taken

    def images(self, field: str, value: Any) -> Sequence[Delta]:
        """Images the model made; each comes whole."""
        deltas = [*self._flow_end()]
        for part in (part for part in value if part.get("type") == "image_url"):
            deltas += [BlockStart(self._blocks, generated_image(part)), BlockEnd(self._blocks)]
            self._blocks += 1
        return deltas

    def audio(self, field: str, value: Any) -> Sequence[Delta]:
        if self._audio is None:
            self._audio, self._blocks = SpokenAudio(self._blocks), self._blocks + 1
        self._audio.take(value)
        return ()

    def _said(self, kind: type[Block], text: str) -> Sequence[Delta]:
        """Text of a kind; what begins another kind ends the one before."""
        if not text:
            return ()
        deltas: list[Delta] = []
        if self._flow is not kind:
            deltas += self._flow_end()
            deltas.append(BlockStart(self._blocks, Text("") if kind is Text else Thinking("")))
            self._flow, self._flow_index, self._blocks = kind, self._blocks, self._blocks + 1
        deltas.append((TextDelta if kind is Text else ThinkingDelta)(self._flow_index, text))
        return deltas

    def _flow_end(self) -> Sequence[Delta]:
        if self._flow is None:
            return ()
        taken, self._flow = self._taken(self._flow), None
        return (BlockEnd(self._flow_index, taken, FORMAT) if taken else BlockEnd(self._flow_index),)

    def refusal(self, field: str, value: Any) -> Sequence[Delta]:
        self._refusal.append(string(value))
        return ()

    def tool_calls(self, field: str, value: Any) -> Sequence[Delta]:
        return [delta for fragment in value for delta in self._fragment(fragment)]

    def _fragment(self, fragment: Json) -> Sequence[Delta]:
        function = fragment.get("function") or {}
        call = call_of(fragment, self._calls)
        deltas: list[Delta] = []
        if call is None:
            call = OpenCall(self._blocks, fragment.get("index"), string(fragment.get("id") or ""))
            deltas += self._flow_end()
            self._calls.append(call)
            self._blocks += 1
        deltas += call.take(function, fragment, [other.id for other in self._calls if other is not call])
        return deltas

    def _ended(self, *, raw: Json = None, envelope: Json = None) -> list[Delta]:
        """Everything open ends; the finish reason is held back until now, because counts may follow it."""
        ends = [*self._flow_end(), *(delta for call in self._calls for delta in call.end()), *self._last_blocks()]
        reason = STOP_REASONS.get(self._finish, self._finish or "")
        if self._stop_sequence is not None and reason == "end_turn":
            reason = "stop_sequence"
        refusal = "".join(self._refusal) or None
        finished = Finished(
            "refusal" if refusal else reason,
            self._finish,
            stop_sequence=self._stop_sequence,
            refusal=refusal,
            raw=raw,
            envelope=envelope,
        )
        return [*ends, finished]

    def _last_blocks(self) -> Iterator[Delta]:
        """Audio, which is whole now; and a carrier of what was kept for a block that never came, or came too early."""
        if self._audio is not None:
            yield BlockStart(self._audio.block, self._audio.whole())
            yield BlockEnd(self._audio.block, self._audio.item(), FORMAT)
        left = self._taken(*KEPT_WITH.values())
        if left:
            yield BlockStart(self._blocks, Text("", raw_item={"type": "message", **left}, raw_format=FORMAT))
            yield BlockEnd(self._blocks)


def recorded(envelope: Json, content: Sequence[Block]) -> Json:
    """A streamed answer as a whole one: the blocks become the first choice's message."""
    texts = [block.text for block in content if isinstance(block, Text)]
    thoughts = [block.thinking for block in content if isinstance(block, Thinking)]
    calls = [
        {
            "id": block.id,
            "type": "function",
            "function": {"name": block.name, "arguments": block.unparseable_input or compact(block.input)},
        }
        for block in content
        if isinstance(block, ToolUse)
    ]
    message = {
        "role": "assistant",
        "content": "".join(texts) if texts else None,
        **({"reasoning": "".join(thoughts)} if thoughts else {}),
        **recorded_fields(content),
        **({"tool_calls": calls} if calls else {}),
    }
    first, *others = envelope["choices"]
    return {**envelope, "choices": [{**first, "message": message}, *others]}


def recorded_fields(content: Sequence[Block]) -> dict[str, Any]:
    """What stands on the message beside its text and its calls."""
    fields: dict[str, Any] = {}
    for block in content:
        own = mapping_or_empty(block.raw_item) if block.raw_format == FORMAT else {}
        for name in KEPT_WITH:
            if name in own:
                fields.setdefault(name, []).extend(own[name])
        if isinstance(block, Audio):
            fields["audio"] = without_none(
                {**own["audio"], "data": block.source["data"], "transcript": block.transcript}
            )
        elif isinstance(block, GeneratedImage):
            url = block.url or f"data:{block.mime_type};base64,{block.data}"
            fields.setdefault("images", []).append({"type": "image_url", "image_url": {"url": url}})
    return fields


def tidied(content: list[Block], dialect: ChatDialect) -> list[Block]:
    """The blocks of a whole answer, without reasoning that leaked into a text."""
    if not dialect.orphan_think_close:
        return content
    return [without_orphan_think(block) if isinstance(block, Text) else block for block in content]


def without_orphan_think(block: Text) -> Text:
    """The text behind a </think> whose <think> stood in the server's prompt template. A pair is left alone."""
    before, close, after = block.text.partition("</think>")
    if not close or "<think>" in before:
        return block
    return Text(**{**vars(block), "text": after.lstrip()})


ENVELOPE: Final = ("id", "created", "model", "provider", "service_tier", "system_fingerprint")

FIELDS: Final[Mapping[str, Callable[[ChatDecoder, str, Any], Sequence[Delta]]]] = {
    "reasoning_content": ChatDecoder.reasoning,  # DeepSeek, vLLM, xAI, Qwen
    "reasoning": ChatDecoder.reasoning,  # Groq, Ollama, OpenRouter, Cerebras
    REASONING_DETAILS: ChatDecoder.reasoning_details,  # OpenRouter
    "annotations": ChatDecoder.kept,
    "content": ChatDecoder.content,
    "tool_calls": ChatDecoder.tool_calls,
    "refusal": ChatDecoder.refusal,
    "audio": ChatDecoder.audio,
    "images": ChatDecoder.images,  # OpenRouter
}
