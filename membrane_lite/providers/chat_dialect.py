"""Chat completions, the dialect that OpenAI began and most servers speak: POST {base_url}/chat/completions.

    > {"model": "llama3.3", "messages": [{"role": "user", "content": "User: Hi"}], "max_tokens": 64, "stream": true}
    < data: {"model": "llama3.3", "choices": [{"index": 0, "delta": {"content": "Hello"}}]}
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

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ..errors import MembraneError
from ..formatters.image_media import note
from ..values.base import Json
from ..values.content import Block, Text, Thinking, ToolUse
from ..values.deltas import (
    BlockEnd,
    BlockStart,
    Delta,
    Finished,
    InputDelta,
    ModelNamed,
    TextDelta,
    ThinkingDelta,
    UsageReported,
)
from ..values.requests import ProviderRequest
from ..wire.json_text import compact, parse
from .base import ProviderFault, count_or_none, mapping_or_empty, string, string_or_none, whole_number, without_none
from .models import ModelTraits

FORMAT: Final = "openai-chat"
DONE: Final = "[DONE]"
EMPTY_PARAMETERS: Final = {"type": "object", "properties": {}}

STOP_REASONS: Final[Mapping[str | None, str]] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",  # the name it had before parallel calls
    "content_filter": "refusal",
    None: "end_turn",
}

# RFC 6838 subtypes -> the `format` of an input_audio part.
AUDIO_FORMATS: Final[Mapping[str, str]] = {
    "mpeg": "mp3",
    "mp3": "mp3",
    "mpeg3": "mp3",
    "x-mpeg-3": "mp3",
    "wav": "wav",
    "x-wav": "wav",
    "wave": "wav",
    "vnd.wave": "wav",
    "ogg": "ogg",
    "flac": "flac",
    "aac": "aac",
    "mp4": "m4a",
    "m4a": "m4a",
    "x-m4a": "m4a",
}


class ChatDialect(NamedTuple):
    """Facts about one provider's form of the dialect.

    most_stop_sequences: how many it takes. reasoning_field: where an assistant message carries its reasoning back;
    None: nowhere. asks_for_stream_usage: counts come in a stream only where asked for. orphan_think_close: a local
    server may leave the opening <think> in its prompt template, so that the answer begins with the reasoning.
    """

    most_stop_sequences: int = 4
    reasoning_field: str | None = None
    asks_for_stream_usage: bool = False
    orphan_think_close: bool = False


# Requests


def chat_body(
    request: ProviderRequest, dialect: ChatDialect, traits: ModelTraits, *, max_tokens: int, stream: bool
) -> dict[str, Any]:
    """The fields in the documentation's order; the caller's own after ours, the stream switches last."""
    streaming: dict[str, Any] = {"stream": True} if stream else {}
    if stream and dialect.asks_for_stream_usage:
        streaming["stream_options"] = {"include_usage": True}
    return {
        **without_none(
            {
                "model": request.model,
                "messages": [*system_messages(request.system), *chat_messages(request.messages, dialect)],
                traits.max_tokens_field: request.max_tokens or max_tokens,
                "temperature": request.temperature if traits.sampling else None,
                "top_p": request.top_p if traits.sampling else None,
                "presence_penalty": request.presence_penalty,
                "frequency_penalty": request.frequency_penalty,
                "repetition_penalty": request.repetition_penalty,
                "stop": (request.stop_sequences[: dialect.most_stop_sequences] or None) if traits.stop else None,
                "tools": [chat_tool(tool) for tool in request.tools or ()] or None,
            }
        ),
        **request.provider_params,
        **streaming,
    }


def chat_tool(tool: Json) -> Json:
    function = {
        "name": tool["name"],
        "description": tool.get("description", ""),
        "parameters": tool.get("input_schema") or EMPTY_PARAMETERS,
    }
    return {"type": "function", "function": function}


def system_messages(system: Any) -> list[Json]:
    """The system text as a first message; cache markers have no counterpart."""
    if not system:
        return []
    text = system if isinstance(system, str) else "\n".join(block["text"] for block in system)
    return [{"role": "system", "content": text}] if text else []


def chat_messages(messages: Iterable[Json], dialect: ChatDialect) -> list[Json]:
    return [written for message in messages for written in chat_message(message, dialect)]


def chat_message(message: Json, dialect: ChatDialect) -> list[Json]:
    """One message with blocks as the messages of this dialect: results first, then what else was said."""
    content = message["content"]
    if "tool_calls" in message or not isinstance(content, list):
        return [message]  # written in this dialect already, by a hook
    written = WrittenMessage()
    for block in content:
        PARTS.get(block["type"], WrittenMessage.refuse)(written, block)
    if written.results:
        return [*written.results, *written.spoken("user", dialect)]
    return written.spoken(message["role"], dialect)


class WrittenMessage:
    """Collects the parts of one message; PARTS says which method takes which block."""

    def __init__(self) -> None:
        self.results: list[Json] = []
        self._parts: list[Json] = []
        self._calls: list[Json] = []
        self._reasoning: list[str] = []

    def text(self, block: Json) -> None:
        if block["text"]:
            self._parts.append({"type": "text", "text": block["text"]})

    def image(self, block: Json) -> None:
        source = block["source"]
        url = source["url"] if source["type"] == "url" else data_url(source, "image/png")
        self._parts.append({"type": "image_url", "image_url": {"url": url}})

    def audio(self, block: Json) -> None:
        """input_audio takes raw base64 and a short name for the format."""
        if block["source"].get("type") == "url":
            raise MembraneError("unsupported", "messages: audio by address; this API takes audio by base64 only")
        label = str(block["source"].get("media_type") or "audio/mpeg").split(";")[0].strip().lower()
        known = AUDIO_FORMATS.get(label.partition("/")[2])
        if known is None:
            raise MembraneError(
                "unsupported", f"messages: audio of type {label!r}; this API takes {', '.join(AUDIO_FORMATS)}"
            )
        data = block["source"].get("data", "")
        self._parts.append({"type": "input_audio", "input_audio": {"data": data, "format": known}})

    def tool_use(self, block: Json) -> None:
        function = {"name": block["name"], "arguments": compact(block["input"])}
        call = {"id": block["id"], "type": "function", "function": function}
        extra = block["raw_item"] if block.get("raw_format") == FORMAT else {}
        self._calls.append({**extra, **call})

    def tool_result(self, block: Json) -> None:
        """A tool message holds text only; its images follow in the user message, where the model can see them."""
        lines = []
        parts = block["content"] if isinstance(block["content"], list) else [{"type": "text", "text": block["content"]}]
        for part in parts:
            if part["type"] == "image":
                lines.append(note(part["source"]))
                self.image(part)
            else:
                lines.append(part["text"] if part["type"] == "text" else compact(part))
        self.results.append({"role": "tool", "tool_call_id": block["tool_use_id"], "content": "\n".join(lines)})

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

    def spoken(self, role: str, dialect: ChatDialect) -> list[Json]:
        """The message of `role`, if anything was said or called: plain text where there is nothing but text."""
        if not self._parts and not self._calls:
            return []
        plain = all(part["type"] == "text" for part in self._parts)
        text = "\n".join(part["text"] for part in self._parts) or None if plain else None
        message: dict[str, Any] = {"role": role, "content": text if plain else self._parts}
        if self._reasoning and dialect.reasoning_field and role == "assistant":
            message[dialect.reasoning_field] = "\n".join(self._reasoning)
        if self._calls:
            message["tool_calls"] = self._calls
        return [message]


def data_url(source: Json, default_type: str) -> str:
    return f"data:{source.get('media_type') or default_type};base64,{source.get('data', '')}"


PARTS: Final[Mapping[str, Callable[[WrittenMessage, Json], None]]] = {
    "text": WrittenMessage.text,
    "image": WrittenMessage.image,
    "audio": WrittenMessage.audio,
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
        self._envelope: Final[dict[str, Any]] = {}
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
        deltas = self._told(answer)
        for choice in answer["choices"][:1]:
            message = choice.get("message") or {}
            # Servers write the text first; a stream of the same answer begins with the reasoning, as FIELDS does.
            fields = {field: message[field] for field in FIELDS if field in message}
            # Each entry of a whole list is a call of its own, whatever index and id it has.
            calls = [{**call, "index": place} for place, call in enumerate(fields.get("tool_calls") or ())]
            deltas += self._choice(choice, {**fields, "tool_calls": calls})
        return [*deltas, *self._ended(raw=answer)]

    def end(self) -> Sequence[Delta]:
        choices: list[Json] = [{"index": 0, "finish_reason": self._finish}]
        choices += [
            {"index": index, "message": {"role": "assistant", "content": "".join(texts)}}
            for index, texts in sorted(self._others.items())
        ]
        return self._ended(envelope={**self._envelope, "choices": choices})

    def _told(self, chunk: Json) -> list[Delta]:
        """What stands around the choices. Counts come once, in whichever chunk; Groq puts them under x_groq."""
        deltas: list[Delta] = []
        if "model" not in self._envelope and string_or_none(chunk.get("model")):
            self._envelope.update({key: chunk[key] for key in ("id", "created", "model") if key in chunk})
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
        if choice.get("finish_reason"):
            self._finish, self.complete = string(choice["finish_reason"]), True
            # vLLM names the stop sequence that ended the answer; a number is a token's id.
            self._stop_sequence = string_or_none(choice.get("stop_reason"))
        return deltas

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
        self._flow = None
        return (BlockEnd(self._flow_index),)

    def refusal(self, field: str, value: Any) -> Sequence[Delta]:
        self._refusal.append(string(value))
        return ()

    def tool_calls(self, field: str, value: Any) -> Sequence[Delta]:
        return [delta for fragment in value for delta in self._fragment(fragment)]

    def _fragment(self, fragment: Json) -> Sequence[Delta]:
        """A piece of a call: of which one its index says, else its id, else it goes on where the last one stopped."""
        function = fragment.get("function") or {}
        call = self._call_of(fragment)
        deltas: list[Delta] = []
        if call is None:
            call = OpenCall(self._blocks, fragment.get("index"), string(fragment.get("id") or ""))
            deltas += self._flow_end()
            self._calls.append(call)
            self._blocks += 1
        deltas += call.take(function, fragment, [other.id for other in self._calls if other is not call])
        return deltas

    def _call_of(self, fragment: Json) -> OpenCall | None:
        """The call a fragment goes on with; None begins one. Ollama numbers parallel calls all 0, each with its id."""
        index, id = fragment.get("index"), fragment.get("id")
        candidates = [call for call in self._calls if index is None or call.index == index]
        if id:
            candidates = [call for call in candidates if call.given_id in ("", id)]
        elif index is None and (fragment.get("function") or {}).get("name"):
            return None  # neither index nor id: a name begins the next call
        return candidates[-1] if candidates else None

    def _ended(self, *, raw: Json = None, envelope: Json = None) -> list[Delta]:
        """Everything open ends; the finish reason is held back until now, because counts may follow it."""
        ends = [*self._flow_end(), *(delta for call in self._calls for delta in call.end())]
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


class OpenCall:
    """A tool call that is being streamed. It begins once its name is known; what comes before is held back."""

    def __init__(self, block: int, index: int | None, given_id: str) -> None:
        self.index: Final = index
        self.given_id = given_id
        self.id = ""
        self._block: Final = block
        self._begun = False
        self._extra: dict[str, Any] = {}

    def take(self, function: Json, fragment: Json, taken: Sequence[str]) -> Sequence[Delta]:
        self.given_id = self.given_id or string(fragment.get("id") or "")
        self._extra.update({key: value for key, value in fragment.items() if key not in OWN_CALL_FIELDS and value})
        deltas: list[Delta] = []
        if not self._begun and (function.get("name") or function.get("arguments")):
            self._begun = True
            self.id = unused(self.given_id or f"call_{self._block}", taken)
            deltas.append(BlockStart(self._block, ToolUse(self.id, string(function.get("name") or ""))))
        arguments = function.get("arguments")
        if arguments:  # Ollama and Gemini's endpoint may give an object where the dialect has its text
            text = arguments if isinstance(arguments, str) else compact(arguments)
            deltas.append(InputDelta(self._block, text))
        return deltas

    def end(self) -> Sequence[Delta]:
        if not self._begun:
            return ()
        return (BlockEnd(self._block, self._extra, FORMAT) if self._extra else BlockEnd(self._block),)


def unused(id: str, taken: Sequence[str]) -> str:
    """`id`, or with a number behind it where another call of the answer has it."""
    candidate, number = id, 1
    while candidate in taken:
        number += 1
        candidate = f"{id}_{number}"
    return candidate


def counts(usage: Json) -> dict[str, Any]:
    """Counts by our names, made disjoint: this dialect counts cached tokens inside the prompt.

    Reasoning is part of completion_tokens, except where the total shows that it was counted beside them (xAI).
    """
    prompt, completion = count_or_none(usage.get("prompt_tokens")), count_or_none(usage.get("completion_tokens"))
    details = mapping_or_empty(usage.get("prompt_tokens_details"))
    read = count_or_none(details.get("cached_tokens", usage.get("prompt_cache_hit_tokens")))
    created = count_or_none(details.get("cache_write_tokens"))
    thinking = count_or_none(mapping_or_empty(usage.get("completion_tokens_details")).get("reasoning_tokens"))
    if thinking and usage.get("total_tokens") == (prompt or 0) + (completion or 0) + thinking:
        completion = (completion or 0) + thinking
    return without_none(
        {
            "input_tokens": None if prompt is None else max(0, prompt - (read or 0) - (created or 0)),
            "output_tokens": completion,
            "cache_read_tokens": read,
            "cache_creation_tokens": created,
            "thinking_tokens": thinking,
            "provider_cost": count_or_none(usage.get("cost")),
        }
    )


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
        **({"tool_calls": calls} if calls else {}),
    }
    first, *others = envelope["choices"]
    return {**envelope, "choices": [{**first, "message": message}, *others]}


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


OWN_CALL_FIELDS: Final = ("index", "id", "type", "function")

FIELDS: Final[Mapping[str, Callable[[ChatDecoder, str, Any], Sequence[Delta]]]] = {
    "reasoning_content": ChatDecoder.reasoning,  # DeepSeek, vLLM, xAI, Qwen
    "reasoning": ChatDecoder.reasoning,  # Groq, Ollama, OpenRouter, Cerebras
    "content": ChatDecoder.content,
    "tool_calls": ChatDecoder.tool_calls,
    "refusal": ChatDecoder.refusal,
}
