"""Gemini: POST {base_url}/models/{model}:generateContent, or :streamGenerateContent?alt=sse. ai.google.dev/api.

    > {"contents": [{"role": "user", "parts": [{"text": "User: Hi"}]}], "generationConfig": {"maxOutputTokens": 64}}
    < data: {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hmm.", "thought": true}]}, "index": 0}]}
    <
    < data: {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hello"}]}, "finishReason": "STOP"}],
    < data:  "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 3, "thoughtsTokenCount": 4}}
    <
    = Hello / end_turn / 9 in, 7 out

There are no events and no blocks: each chunk of a stream is an answer of its own, whose parts go on where those of the
one before stopped. BLOCKS says how a block is sent, PARTS which part is read how, FINISH_REASONS what an end means.

A part may carry a thoughtSignature, which goes back on that part: never on another, and never on two joined into one
(ai.google.dev/gemini-api/docs/thought-signatures). So what stands beside a part's own field is its block's raw_item.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from ..clock import Clock
from ..credentials.keys import PLACEHOLDER, HeaderAuth, Key, read_key
from ..errors import MembraneError, invalid
from ..formatters.anthropic_xml import AnthropicXmlFormatter
from ..formatters.image_media import note
from ..formatters.tool_names import ToolNames
from ..transport.interface import OpensRequests
from ..values.base import Json
from ..values.content import Block, Text, Thinking, ToolUse
from ..values.deltas import (
    BlockEnd,
    BlockStart,
    Delta,
    Finished,
    ModelNamed,
    TextDelta,
    ThinkingDelta,
    Unknown,
    UsageReported,
)
from ..values.requests import ProviderRequest
from ..wire.http import HeaderPairs, HeadersInput
from ..wire.json_text import compact, parse, whole_characters
from .base import (
    DEFAULT_MAX_TOKENS,
    HttpAdapter,
    ProviderFault,
    count_or_none,
    mapping_or_empty,
    read_base_url,
    string,
    string_or_none,
    whole_number,
    with_params,
    without_none,
)
from .chat_media import checked_tool_result_images
from .gemini_calls import CallIds, OpenCall
from .gemini_parts import (
    AROUND_PARTS,
    DEFAULT_TYPES,
    FORMAT,
    call_part,
    carrier,
    inline_block,
    is_part,
    medium_part,
    own_item,
    recorded,
    text_part,
    thought_part,
)
from .models import GEMINI_MODELS, GEMINI_NEWEST, ModelTable, ModelTraits
from .structured_output import gemini_form

KEY_HEADER: Final = "x-goog-api-key"
BASE_URL: Final = "https://generativelanguage.googleapis.com/v1beta"
GENERATION_CONFIG: Final = "generationConfig"  # of provider_params, the one field that is merged key by key
MOST_STOP_SEQUENCES: Final = 5
FIRST_USER_TEXT: Final = "[Start]"  # stands before a conversation that the model would begin
ROLES: Final[Mapping[str, str]] = {"assistant": "model", "model": "model"}
EMPTY_PARAMETERS: Final = {"type": "object", "properties": {}}


class GeminiAdapter(HttpAdapter):
    """Google's Gemini API.

    api_key: else GOOGLE_API_KEY, sent as x-goog-api-key and never in the address. base_url: with its version. headers:
    sent with every request. tool_result_images: "media" and "auto" show the images of a tool's result to the model,
    "omit" only mentions them. model_traits: rows over those of models.py. progress_timeout_ms: the longest a stream may
    go without a delta that is not empty; off by default. provider_params' generationConfig is merged key by key.
    """

    default_formatter = AnthropicXmlFormatter
    tool_names = ToolNames(characters="a-zA-Z0-9_.-", first="a-zA-Z_")

    def __init__(
        self,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        headers: HeadersInput | None = None,
        default_max_tokens: int = DEFAULT_MAX_TOKENS,
        tool_result_images: str = "auto",
        model_traits: Mapping[str, Mapping[str, Any]] | None = None,
        progress_timeout_ms: int | None = None,
        transport: OpensRequests | None = None,
        clock: Clock | None = None,
    ) -> None:
        key = read_key(api_key, "api_key", "GOOGLE_API_KEY", os.environ)
        super().__init__(
            name="gemini",
            codec=GeminiCodec(
                read_base_url(base_url, None, {}, BASE_URL),
                ModelTable(GEMINI_MODELS, GEMINI_NEWEST, model_traits),
                default_max_tokens,
                shows_tool_images=checked_tool_result_images(tool_result_images) != "omit",
            ),
            auth=HeaderAuth(
                [Key(key, KEY_HEADER)] if key else [],
                missing="api_key: no key; pass api_key= or set GOOGLE_API_KEY (nothing was sent)",
                placeholder=Key(PLACEHOLDER, KEY_HEADER),
            ),
            headers=headers,
            reserved_headers=(KEY_HEADER,),
            transport=transport,
            clock=clock,
            progress_timeout_ms=progress_timeout_ms,
        )

    def supports_model(self, model: str) -> bool:
        return model.startswith("gemini-")


class GeminiCodec:
    """The wire format: requests here, answers in GeminiDecoder."""

    def __init__(
        self, base_url: str, models: ModelTable, default_max_tokens: int, *, shows_tool_images: bool = True
    ) -> None:
        self._base_url: Final = base_url
        self._models: Final = models
        self._default_max_tokens: Final = default_max_tokens
        self._shows_tool_images: Final = shows_tool_images

    def address(self, request: ProviderRequest, *, stream: bool) -> str:
        method = "streamGenerateContent?alt=sse" if stream else "generateContent"
        return f"{self._base_url}/{resource(request.model)}:{method}"

    def headers(self, body: Json, *, stream: bool) -> HeaderPairs:
        return ()

    def body(self, request: ProviderRequest, *, stream: bool) -> Json:
        traits = self._models.traits(request.model)
        request, output = gemini_form(request, traits)
        fields = {
            "contents": written_contents(request.messages, traits, shows_tool_images=self._shows_tool_images),
            **without_none(
                {
                    "tools": wire_tools(request.tools),
                    "systemInstruction": system_instruction(request.system),
                    GENERATION_CONFIG: generation_config(request, traits, self._default_max_tokens),
                }
            ),
        }
        asked = with_params(fields, output, nested=GENERATION_CONFIG)
        return with_params(asked, request.provider_params, nested=GENERATION_CONFIG)

    def decoder(self) -> GeminiDecoder:
        return GeminiDecoder()

    def tidied(self, content: list[Block]) -> list[Block]:
        return content

    def record(self, envelope: Json, content: Sequence[Block]) -> Json:
        return recorded(envelope, content)


# Requests


def resource(model: str) -> str:
    """The path of a model: "models/" before a bare id; a resource name ("tunedModels/mine") is one already."""
    if any(step in ("", ".", "..") for step in model.split("/")):
        raise invalid(
            "config.model", f"found {model!r}", 'expected an id such as "gemini-2.5-flash", or a resource name'
        )
    return quote(whole_characters(model if "/" in model else f"models/{model}"))


def generation_config(request: ProviderRequest, traits: ModelTraits, default_max_tokens: int) -> dict[str, Any]:
    sampling = {
        "temperature": request.temperature,
        "topP": request.top_p,
        "topK": request.top_k,
        "presencePenalty": request.presence_penalty,
        "frequencyPenalty": request.frequency_penalty,
    }
    return without_none(
        {
            "maxOutputTokens": request.max_tokens or default_max_tokens,
            **(sampling if traits.sampling else {}),
            "stopSequences": (request.stop_sequences[:MOST_STOP_SEQUENCES] or None) if traits.stop else None,
            "responseModalities": list(traits.response_modalities) or None,
            "thinkingConfig": thinking_config(request.thinking, traits),
        }
    )


def thinking_config(thinking: Json, traits: ModelTraits) -> Json:
    """What is shown of the thoughts, and how much is thought. Models from Gemini 3 on see fit by themselves; a budget
    is taken by all. (A thinkingLevel goes through provider_params, instead of it: the API refuses both together.)
    """
    if not isinstance(thinking, Mapping) or not traits.thinking_parameter:
        return None
    if thinking.get("type") == "disabled":
        return {"thinkingBudget": 0}
    budget = thinking.get("budget_tokens")
    if thinking.get("type") == "adaptive" and traits.dynamic_thinking_budget:
        budget = -1
    return without_none({"includeThoughts": thinking.get("display") != "omitted", "thinkingBudget": budget})


def system_instruction(system: Any) -> Json:
    """The system text; cache markers have no counterpart."""
    if not system:
        return None
    text = system if isinstance(system, str) else "\n".join(block["text"] for block in system)
    return {"parts": [{"text": text}]} if text else None


def wire_tools(tools: Sequence[Json] | None) -> Json:
    """parametersJsonSchema takes JSON Schema as it is; `parameters` only what OpenAPI 3.0 has of it."""
    if not tools:
        return None
    declarations = [
        {
            "name": tool["name"],
            "description": tool.get("description", ""),
            "parametersJsonSchema": tool.get("input_schema") or EMPTY_PARAMETERS,
        }
        for tool in tools
    ]
    return [{"functionDeclarations": declarations}]


def written_contents(messages: Sequence[Json], traits: ModelTraits, *, shows_tool_images: bool) -> list[Json]:
    """Turns that alternate, a user's first."""
    turns: list[Json] = []
    calls: dict[str, Json] = {}  # the functionCalls so far, by our ids: a result names the function it is of
    for message in messages:
        turn = wire_turn(message, WrittenTurn(message["role"], calls, traits, shows_tool_images=shows_tool_images))
        if turns and turns[-1]["role"] == turn["role"]:
            turns[-1] = {"role": turn["role"], "parts": [*turns[-1]["parts"], *turn["parts"]]}
        elif turn["parts"]:
            turns.append(turn)
    if turns and turns[0]["role"] != "user":
        turns.insert(0, {"role": "user", "parts": [{"text": FIRST_USER_TEXT}]})
    return turns


def wire_turn(message: Json, written: WrittenTurn) -> Json:
    if "parts" in message:
        return message  # written in this format already, by a hook
    content = message.get("content") or []
    for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
        BLOCKS.get(block["type"], WrittenTurn.refuse)(written, block)
    return written.turn()


class WrittenTurn:
    """Collects the parts of one message; BLOCKS says which method takes which block."""

    def __init__(self, role: str, calls: dict[str, Json], traits: ModelTraits, *, shows_tool_images: bool) -> None:
        self._role: Final = ROLES.get(role, "user")
        self._calls: Final = calls
        self._traits: Final = traits
        self._shows_tool_images: Final = shows_tool_images
        self._results: Final[list[Json]] = []
        self._parts: Final[list[Json]] = []

    def turn(self) -> Json:
        """Results are a user's, whoever brings them, and stand before whatever else is said."""
        return {"role": "user" if self._results else self._role, "parts": [*self._results, *self._parts]}

    def text(self, block: Json) -> None:
        if block["text"]:
            self._parts.append(text_part(block))

    def thinking(self, block: Json) -> None:
        """Only a signature makes a thought worth sending back; the model does not read its summaries."""
        if "thoughtSignature" in own_item(block):
            self._parts.append(thought_part(block))

    def image(self, block: Json) -> None:
        if self._role == "model" and self._traits.signed_images and block.get("source_url"):
            self._parts.append({"text": block["source_url"]})
        else:
            self.medium(block)

    def medium(self, block: Json) -> None:
        self._parts.append(own_item(block) or medium_part(block))

    def tool_use(self, block: Json) -> None:
        part = call_part(block)
        self._calls[block["id"]] = part["functionCall"]
        self._parts.append(part)

    def tool_result(self, block: Json) -> None:
        """Text only; its media follow in the same turn, where every model can see them."""
        lines = []
        content = block["content"]
        for part in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            if part["type"] in DEFAULT_TYPES:
                lines.append(note(part["source"]) if part["type"] == "image" else f"[{part['type']}]")
                self._parts.extend([medium_part(part)] if self._shows_tool_images else [])
            else:
                lines.append(part["text"] if part["type"] == "text" else compact(part))
        call = self._calls.get(block["tool_use_id"]) or {}
        name = call.get("name") or block.get("name") or block["tool_use_id"] or "unknown"
        response = {"error" if block.get("is_error") else "result": "\n".join(lines)}
        result = without_none({"id": call.get("id"), "name": name, "response": response})
        self._results.append({"functionResponse": result})

    def raw(self, block: Json) -> None:
        """A part that no block has words for. Items of other formats only their own provider reads."""
        item = own_item(block)
        if item and is_part(item):
            self._parts.append(item)

    def nothing(self, block: Json) -> None:
        """Another provider's encrypted reasoning."""

    def refuse(self, block: Json) -> None:
        raise MembraneError(
            "unsupported", f"messages: this API takes no {block['type']} blocks; leave them out of the request"
        )


BLOCKS: Final[Mapping[str, Callable[[WrittenTurn, Json], None]]] = {
    "text": WrittenTurn.text,
    "image": WrittenTurn.image,
    "document": WrittenTurn.medium,
    "audio": WrittenTurn.medium,
    "video": WrittenTurn.medium,
    "tool_use": WrittenTurn.tool_use,
    "tool_result": WrittenTurn.tool_result,
    "thinking": WrittenTurn.thinking,
    "redacted_thinking": WrittenTurn.nothing,
    "raw_item": WrittenTurn.raw,
}


# Answers


class GeminiDecoder:
    """Chunks of one answer in, deltas out. A block lasts until a part of another kind, or with a signature, comes.

    The counts are cumulative, and a chunk may follow the finish reason; so the end is held back until the input ends.
    """

    TERMINAL = "a finishReason"

    def __init__(self) -> None:
        self.complete = False
        self.last = False
        self._blocks = 0
        self._flow: type[Block] | None = None  # the kind of text that is open: Text or Thinking
        self._flow_index = 0
        self._call: OpenCall | None = None
        self._ids: Final = CallIds()
        self._envelope: Final[dict[str, Any]] = {}
        self._usage: dict[str, Any] = {}
        self._around: Final[dict[str, Any]] = {}  # the first candidate, without its content
        self._others: Final[dict[int, dict[str, Any]]] = {}

    def decode(self, event: str, data: str) -> Sequence[Delta]:
        return self._chunk(parse(data))

    def document(self, answer: Json) -> list[Delta]:
        chunks = answer if isinstance(answer, list) else [answer]
        if not any(field in chunk for chunk in chunks for field in ANSWER_FIELDS):
            raise ProviderFault(answer, "answer")
        deltas = [delta for chunk in chunks for delta in self._chunk(chunk)]
        return [*deltas, *self._ended(raw=answer if chunks is not answer else None)]

    def end(self) -> Sequence[Delta]:
        return self._ended()

    def _chunk(self, chunk: Json) -> list[Delta]:
        deltas = self._told(chunk)
        if chunk.get("error"):
            raise ProviderFault(chunk, "error", deltas)
        candidates = chunk.get("candidates")
        for candidate in candidates or ():
            if candidate.get("index"):
                self._other(candidate)
            else:
                self._candidate(candidate, deltas)
        if candidates:
            return deltas
        if self._block_reason:
            self.complete = True
        elif not any(field in chunk for field in ANSWER_FIELDS):
            deltas.append(Unknown("chunk", chunk))
        return deltas

    def _told(self, chunk: Json) -> list[Delta]:
        """What stands around the candidates."""
        deltas: list[Delta] = []
        if "modelVersion" not in self._envelope and string_or_none(chunk.get("modelVersion")):
            deltas.append(ModelNamed(chunk["modelVersion"]))
        self._envelope.update(chunk)
        usage = chunk.get("usageMetadata")
        if usage and usage != self._usage:
            self._usage.update(usage)
            deltas.append(UsageReported(counts(self._usage)))
        return deltas

    def _candidate(self, candidate: Json, deltas: list[Delta]) -> None:
        for field, value in candidate.items():
            if field != "content":
                if value:
                    self._around[field] = value
                continue
            for part in (value or {}).get("parts") or ():
                deltas += self.text(part) if "text" in part else self._part(part)
        # Older versions sent the unspecified one on every chunk but the last.
        if candidate.get("finishReason") not in NO_FINISH_REASONS:
            self.complete = bool(string(candidate["finishReason"]))

    def _other(self, candidate: Json) -> None:
        """A second candidate (candidateCount > 1) is kept raw, its parts after one another."""
        other = self._others.setdefault(whole_number(candidate["index"]), {"content": {"role": "model", "parts": []}})
        other["content"]["parts"].extend((candidate.get("content") or {}).get("parts") or ())
        other.update({field: value for field, value in candidate.items() if field != "content"})

    def _part(self, part: Json) -> Sequence[Delta]:
        for field, read in PARTS.items():
            if field in part:
                return read(self, part)
        return self._whole(carrier(part))

    def text(self, part: Json) -> Sequence[Delta]:
        if len(part) == 1:
            return self._said(Text, string(part["text"]))
        text, kind = string(part["text"]), Thinking if part.get("thought") else Text
        beside = {key: value for key, value in part.items() if key not in TEXT_FIELDS and value}
        if not beside:
            return self._said(kind, text)
        if not text:
            signed = Thinking("", raw_item=beside, raw_format=FORMAT)
            return self._whole(signed if kind is Thinking else carrier(part))
        return [*self._flow_end(), *self._said(kind, text), *self._flow_end(beside)]

    def _said(self, kind: type[Block], text: str) -> Sequence[Delta]:
        """Text of a kind; what begins another kind ends the one before."""
        if not text:
            return ()
        make = TextDelta if kind is Text else ThinkingDelta
        if self._flow is kind:
            return (make(self._flow_index, text),)
        ended, index = self._flow_end(), self._next()
        self._flow, self._flow_index = kind, index
        return [*ended, BlockStart(index, Text("") if kind is Text else Thinking("")), make(index, text)]

    def _flow_end(self, beside: Json = None) -> Sequence[Delta]:
        if self._flow is None:
            return ()
        self._flow = None
        return (BlockEnd(self._flow_index) if beside is None else BlockEnd(self._flow_index, beside, FORMAT),)

    def _next(self) -> int:
        self._blocks += 1
        return self._blocks - 1

    def _whole(self, block: Block) -> Sequence[Delta]:
        """A block that comes in one piece."""
        index = self._next()
        return [*self._flow_end(), BlockStart(index, block), BlockEnd(index)]

    def inline_data(self, part: Json) -> Sequence[Delta]:
        return self._whole(inline_block(part))

    def function_call(self, part: Json) -> Sequence[Delta]:
        """A call, or a piece of one that was begun with willContinue: pieces have no name, the last says no more."""
        call = part["functionCall"]
        deltas: list[Delta] = []
        if self._call is not None and call.get("name"):
            deltas += self._call_end()
        if self._call is None:
            if not call:
                return deltas
            index = self._next()
            id = self._ids.of(call, answer=self._envelope.get("responseId"), index=index)
            self._call = OpenCall(index)
            deltas += [*self._flow_end(), BlockStart(index, ToolUse(id, string(call.get("name") or "")))]
        if self._call is not None:
            deltas += self._call.take(part)
        return deltas if call.get("willContinue") else [*deltas, *self._call_end()]

    def _call_end(self) -> Sequence[Delta]:
        ended, self._call = self._call, None
        return () if ended is None else ended.end()

    @property
    def _block_reason(self) -> str | None:
        """Why the prompt was blocked. An empty reason is none."""
        return string_or_none(mapping_or_empty(self._envelope.get("promptFeedback")).get("blockReason")) or None

    def _ended(self, *, raw: Json = None) -> list[Delta]:
        deltas = [*self._flow_end(), *([] if self._call is None else self._call.cut())]
        for field in AROUND_PARTS:
            if self._around.get(field):
                deltas += self._whole(carrier({field: self._around[field]}))
        others = [other for _, other in sorted(self._others.items())]
        envelope = {**self._envelope, "candidates": [self._around, *others]}
        if self._usage:
            envelope["usageMetadata"] = self._usage
        return [*deltas, self._finished(raw, None if raw is not None else envelope)]

    def _finished(self, raw: Json, envelope: Json) -> Finished:
        word = string_or_none(self._around.get("finishReason"))
        if word is None and self._block_reason:
            told = self._envelope["promptFeedback"].get("blockReasonMessage")
            return Finished(
                "refusal",
                None,
                refusal=string_or_none(told),
                category=self._block_reason,
                raw=raw,
                envelope=envelope,
            )
        reason = FINISH_REASONS.get(word, word or "")
        refused = reason == "refusal"
        return Finished(
            reason,
            word,
            refusal=string_or_none(self._around.get("finishMessage")) if refused else None,
            category=blocked_category(self._around) if refused else None,
            raw=raw,
            envelope=envelope,
        )


def blocked_category(candidate: Mapping[str, Any]) -> str | None:
    """The category of harm that stopped the answer, where the ratings say."""
    rated = candidate.get("safetyRatings")
    ratings = [mapping_or_empty(rating) for rating in rated] if isinstance(rated, list) else []
    return next((string_or_none(rating.get("category")) for rating in ratings if rating.get("blocked")), None)


def counts(usage: Mapping[str, Any]) -> dict[str, Any]:
    """Counts by our names, made disjoint: cached tokens stand inside the prompt, thoughts beside the candidates.

    What tools put into the prompt (toolUsePromptTokenCount) is not part of it, and is left in the raw answer.
    """
    prompt, said = count_or_none(usage.get("promptTokenCount")), count_or_none(usage.get("candidatesTokenCount"))
    read = count_or_none(usage["cachedContentTokenCount"]) if "cachedContentTokenCount" in usage else None
    thoughts = count_or_none(usage["thoughtsTokenCount"]) if "thoughtsTokenCount" in usage else None
    ours: dict[str, Any] = {}
    if prompt is not None:
        ours["input_tokens"] = max(0, prompt - read) if read else prompt
    if said is not None or thoughts is not None:
        ours["output_tokens"] = (said or 0) + (thoughts or 0)
    if read is not None:
        ours["cache_read_tokens"] = read
    if thoughts is not None:
        ours["thinking_tokens"] = thoughts
    return ours


ANSWER_FIELDS: Final = ("candidates", "promptFeedback", "usageMetadata", "error")
TEXT_FIELDS: Final = ("text", "thought")
NO_FINISH_REASONS: Final = (None, "", "FINISH_REASON_UNSPECIFIED")

# ai.google.dev/api/generate-content#FinishReason; MODEL_ARMOR is Vertex AI's. MALFORMED_FUNCTION_CALL,
# UNEXPECTED_TOOL_CALL and all others pass through as they are.
FINISH_REASONS: Final[Mapping[str | None, str]] = {
    "STOP": "end_turn",  # also where the model calls functions
    "MAX_TOKENS": "max_tokens",
    "TOOL_CALLS": "tool_use",
    "FUNCTION_CALL": "tool_use",
    "FINISH_REASON_UNSPECIFIED": "",
    **dict.fromkeys(
        [
            *("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR"),
            *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"),
        ],
        "refusal",
    ),
}

PARTS: Final[Mapping[str, Callable[[GeminiDecoder, Json], Sequence[Delta]]]] = {
    "functionCall": GeminiDecoder.function_call,
    "inlineData": GeminiDecoder.inline_data,
}
