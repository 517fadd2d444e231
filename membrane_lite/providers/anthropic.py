"""Anthropic Messages: POST {base_url}/v1/messages, fields in the order of platform.claude.com/docs/en/api/messages.

    > {"model": "claude-sonnet-4-5", "max_tokens": 64, "messages": [{"role": "user", "content": [{"type": "text",
    >  "text": "User: Hi"}]}], "stream": true}
    < event: message_start
    < data: {"type": "message_start", "message": {"model": "claude-sonnet-4-5", "usage": {"input_tokens": 9}}}
    <
    < event: content_block_start
    < data: {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    <
    < event: content_block_delta
    < data: {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}}
    <
    < event: content_block_stop
    < data: {"type": "content_block_stop", "index": 0}
    <
    < event: message_delta
    < data: {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}
    <
    = Hello / end_turn / 9 in, 3 out

BLOCKS says how a block is sent, STARTS and DELTAS how one is read, EVENTS which event does what.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from ..clock import Clock
from ..credentials.keys import PLACEHOLDER, Authorizer, HeaderAuth, Key, read_key
from ..credentials.resolvers import Resolver, ResolverAuth, token_resolver
from ..errors import MembraneError
from ..formatters.anthropic_xml import AnthropicXmlFormatter
from ..formatters.assembly import arguments
from ..formatters.base import ends_in_prefill
from ..formatters.cache_markers import MOST_MARKERS
from ..formatters.tool_names import ToolNames
from ..transport.interface import OpensRequests
from ..values.base import Json
from ..values.content import Block, RedactedThinking, Text, Thinking, ToolUse
from ..values.deltas import (
    BlockEnd,
    BlockStart,
    Delta,
    Finished,
    InputDelta,
    ModelNamed,
    SignatureDelta,
    TextDelta,
    ThinkingDelta,
    Unknown,
    UsageReported,
)
from ..values.requests import ProviderRequest
from ..wire.http import HeaderPairs, HeadersInput, header, header_pairs
from ..wire.json_text import parse
from .base import (
    DEFAULT_MAX_TOKENS,
    DynamicHeaders,
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
from .models import CLAUDE_MODELS, CLAUDE_NEWEST, ModelTable, ModelTraits
from .structured_output import claude_form
from .tool_schema import flatten_root_union

FORMAT: Final = "anthropic"
OUTPUT_CONFIG: Final = "output_config"  # of provider_params, the one field that is merged key by key: effort, format
VERSION_HEADER: Final = ("anthropic-version", "2023-06-01")
INTERLEAVED_THINKING_BETA: Final = "interleaved-thinking-2025-05-14"
INLINE_TOOLS_BETA: Final = "inline-tools-2026-09-15"
BINDING_CONTROLS_BETA: Final = "thinking-binding-controls-2026-08-01"

# Blocks of a system message that need INLINE_TOOLS_BETA; a text needs none
# (docs/en/build-with-claude/mid-conversation-system-messages).
TOOL_CHANGES: Final = ("tool_removal", "tool_addition")

# With thinking on, top_p is taken from here up (docs/en/build-with-claude/extended-thinking).
LOWEST_THINKING_TOP_P: Final = 0.95

# Their stop reasons that have another name here; every other passes through.
STOP_REASONS: Final[Mapping[str, str]] = {"model_context_window_exceeded": "max_tokens"}


class AnthropicAdapter(HttpAdapter):
    """Anthropic's Messages API.

    api_key: else ANTHROPIC_API_KEY, sent as x-api-key. auth_token: else ANTHROPIC_AUTH_TOKEN, sent as a bearer token;
    given here, it switches the API key off. base_url: else ANTHROPIC_BASE_URL. headers: sent with every request; an
    anthropic-beta among them is kept beside those the adapter needs. credentials: a resolver of bearer tokens, asked
    for each attempt (see credentials/resolvers.py); it outranks the keys, and auth_token may be a function that gives
    just the token. dynamic_headers({"lane": "stream" or "complete"}): more headers, asked for each attempt.
    model_traits: rows over those of models.py.
    progress_timeout_ms: the longest a stream may go without a delta that is not empty; off by default.
    """

    default_formatter = AnthropicXmlFormatter
    takes_system_changes = True
    tool_names = ToolNames(longest=128)
    most_cache_markers = MOST_MARKERS

    def __init__(
        self,
        *,
        api_key: str | None = None,
        auth_token: str | Callable[..., str] | None = None,
        credentials: Resolver | None = None,
        base_url: str | None = None,
        headers: HeadersInput | None = None,
        dynamic_headers: DynamicHeaders | None = None,
        default_max_tokens: int = DEFAULT_MAX_TOKENS,
        model_traits: Mapping[str, Mapping[str, Any]] | None = None,
        progress_timeout_ms: int | None = None,
        transport: OpensRequests | None = None,
        clock: Clock | None = None,
    ) -> None:
        auth = anthropic_auth(api_key, auth_token, credentials, os.environ)
        super().__init__(
            name="anthropic",
            codec=AnthropicCodec(
                read_base_url(base_url, "ANTHROPIC_BASE_URL", os.environ, "https://api.anthropic.com"),
                ModelTable(CLAUDE_MODELS, CLAUDE_NEWEST, model_traits),
                default_max_tokens,
                betas=header(header_pairs(headers, "headers"), "anthropic-beta"),
            ),
            auth=auth,
            headers=headers,
            reserved_headers=("x-api-key", "authorization") if isinstance(auth, HeaderAuth) else (),
            dynamic_headers=dynamic_headers,
            transport=transport,
            clock=clock,
            progress_timeout_ms=progress_timeout_ms,
            connect_timeout_is_final=True,
            gateway_texts=True,
        )

    def supports_model(self, model: str) -> bool:
        return model.startswith("claude-")


def anthropic_auth(
    api_key: str | None,
    auth_token: str | Callable[..., str] | None,
    credentials: Resolver | None,
    env: Mapping[str, str],
) -> Authorizer:
    """A resolver goes before every key, and none goes out beside its token."""
    resolver = credentials or (token_resolver(auth_token) if callable(auth_token) else None)
    if resolver is not None:
        return ResolverAuth(resolver, replaces=("x-api-key",))
    assert not callable(auth_token)
    return HeaderAuth(
        anthropic_keys(api_key, auth_token, env),
        missing="api_key: no key; pass api_key= or set ANTHROPIC_API_KEY (nothing was sent)",
        placeholder=Key(PLACEHOLDER, "x-api-key"),
    )


def anthropic_keys(api_key: str | None, auth_token: str | None, env: Mapping[str, str]) -> list[Key]:
    """Both go out where both are in the environment; an explicit auth_token goes out alone."""
    key = read_key(api_key, "api_key", "ANTHROPIC_API_KEY", {} if auth_token is not None else env)
    token = read_key(auth_token, "auth_token", "ANTHROPIC_AUTH_TOKEN", {} if api_key is not None else env)
    keys = [Key(key, "x-api-key")] if key else []
    return [*keys, Key(token, "Authorization", "Bearer ")] if token else keys


class AnthropicCodec:
    """The wire format: requests here, answers in Decoder."""

    def __init__(self, base_url: str, models: ModelTable, default_max_tokens: int, *, betas: str | None) -> None:
        self._address: Final = base_url + "/v1/messages"
        self._models: Final = models
        self._default_max_tokens: Final = default_max_tokens
        self._betas: Final = betas

    def address(self, request: ProviderRequest, *, stream: bool) -> str:
        return self._address

    def headers(self, body: Json, *, stream: bool) -> HeaderPairs:
        needed = needed_betas(body, self._models.traits(str(body.get("model"))))
        betas = joined_betas(self._betas, needed)
        return [VERSION_HEADER, ("anthropic-beta", betas)] if needed else [VERSION_HEADER]

    def body(self, request: ProviderRequest, *, stream: bool) -> Json:
        fields = messages_body(request, self._models.traits(request.model), self._default_max_tokens)
        return with_params({**fields, "stream": stream}, request.provider_params, nested=OUTPUT_CONFIG)

    def decoder(self) -> Decoder:
        return Decoder()

    def tidied(self, content: list[Block]) -> list[Block]:
        return content

    def record(self, envelope: Json, content: Sequence[Block]) -> Json:
        return {**(envelope or {}), "content": [recorded_block(block) for block in content]}


# Requests


def messages_body(request: ProviderRequest, traits: ModelTraits, default_max_tokens: int) -> dict[str, Any]:
    """The fields that every server of this format takes, in the documentation's order."""
    if not traits.prefill and ends_in_prefill(request.messages):
        raise MembraneError(
            "unsupported",
            f"messages: {request.model} takes no prefill, and the last message is the assistant's; end with a user's "
            f"message (or, if the model does take it, pass model_traits={{{request.model!r}: {{'prefill': True}}}})",
        )
    request, output = claude_form(request, traits)
    thinking = thinking_told(request, traits)
    return without_none(
        {
            "model": request.model,
            "max_tokens": request.max_tokens or default_max_tokens,
            "messages": wire_messages(request.messages),
            "system": wire_system(request.system),
            **sampling(request, traits, thinking),
            "stop_sequences": request.stop_sequences or None,
            "tools": [wire_tool(tool) for tool in request.tools or ()] or None,
            **output,
            "thinking": thinking,
        }
    )


def sampling(request: ProviderRequest, traits: ModelTraits, thinking: Json) -> dict[str, Any]:
    """temperature, top_p and top_k, as far as they may meet: temperature wins over top_p, thinking allows neither."""
    if not traits.sampling:
        return {}
    if thinking_on(thinking):
        high = request.top_p is not None and request.top_p >= LOWEST_THINKING_TOP_P
        return {"top_p": request.top_p} if high else {}
    top_p = request.top_p if request.temperature is None else None
    return {"temperature": request.temperature, "top_p": top_p, "top_k": request.top_k}


def thinking_on(thinking: Json) -> bool:
    return thinking is not None and isinstance(thinking, Mapping) and thinking.get("type") != "disabled"


def thinking_told(request: ProviderRequest, traits: ModelTraits) -> Json:
    """`thinking`, with what becomes of bound blocks in it. A model that always thinks is told only that; a type has to
    stand beside it (docs/en/build-with-claude/preserved-thinking), and such a model's is adaptive.
    """
    binding = {} if request.block_binding is None else {"block_binding": request.block_binding}
    if traits.thinking_parameter:
        return {**request.thinking, **binding} if request.thinking else None
    return {"type": "adaptive", **binding} if binding else None


def needed_betas(body: Json, traits: ModelTraits) -> list[str]:
    """Those that something in the body needs. Claude 4 below 4.6 thinks between tool calls only where a beta asks."""
    thinking = body.get("thinking")
    needs = {
        INTERLEAVED_THINKING_BETA: thinking_on(thinking) and traits.interleaved_beta,
        INLINE_TOOLS_BETA: any(block.get("type") in TOOL_CHANGES for block in system_blocks(body)),
        BINDING_CONTROLS_BETA: "block_binding" in mapping_or_empty(thinking),
    }
    return [beta for beta, needed in needs.items() if needed]


def system_blocks(body: Json) -> Iterator[Mapping[str, Any]]:
    """The blocks of the body's system messages, as far as it is one of ours: the caller's own fields hold anything."""
    messages = body.get("messages")
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict) and message.get("role") == "system":
            content = message.get("content")
            yield from map(mapping_or_empty, content if isinstance(content, list) else ())


def joined_betas(given: str | None, needed: Sequence[str]) -> str:
    """One header value: the caller's betas first, no beta twice."""
    names = [name.strip() for name in (given or "").split(",")]
    return ",".join(dict.fromkeys(name for name in [*names, *needed] if name))


def wire_messages(messages: Sequence[Json]) -> list[Json]:
    """Messages without blank texts, which the API refuses. Raises where that would change whose turn is the last."""
    written = [{"role": message["role"], "content": wire_content(message["content"])} for message in messages]
    if ends_in_prefill(written):
        written[-1] = without_trailing_space(written[-1])
    kept = [message for message in written if message["content"]]
    if not kept or (len(kept) < len(messages) and last_speaker(kept) != last_speaker(messages)):
        raise MembraneError(
            "invalid_request", "messages: the last message holds only blank text, which the API refuses; give it text"
        )
    return kept


def last_speaker(messages: Sequence[Json]) -> str | None:
    """The role of the last turn; a system message is nobody's."""
    return next((message["role"] for message in reversed(messages) if message["role"] != "system"), None)


def wire_content(content: Any) -> list[Json]:
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return [written for written in map(wire_block, blocks) if written is not None]


def without_trailing_space(message: Json) -> Json:
    """The API refuses a prefill that ends in white space."""
    *before, last = message["content"]
    text = last["text"].rstrip()
    return {"role": message["role"], "content": [*before, {**last, "text": text}] if text else before}


def wire_block(block: Json) -> Json:
    """A block as sent; None where nothing of it is. An item of this format goes back as it came, our fields over it."""
    if block.get("raw_format") == FORMAT:
        own = {key: value for key, value in block.items() if key not in ("raw_item", "raw_format")}
        item = without_keys(block["raw_item"], "unparseable_input")  # ours: what a cut server tool's input was
        block = {**item, **({} if own["type"] == "raw_item" else own)}
    return BLOCKS.get(block["type"], as_it_is)(block)


def as_it_is(block: Json) -> Json:
    return block


def nothing(block: Json) -> None:
    """An item of another format: only that one understands it."""


def wire_text(block: Json) -> Json:
    text = block["text"]
    return without_keys(block, "raw_item", "raw_format") if isinstance(text, str) and text.strip() else None


def wire_media(block: Json) -> Json:
    """source_url is for providers that fetch addresses out of text."""
    return without_keys(block, "source_url", "raw_item", "raw_format")


def wire_other(block: Json) -> Json:
    return without_keys(block, "raw_item", "raw_format")


def wire_tool_result(block: Json) -> Json:
    content = block["content"]
    return {**wire_other(block), "content": content if isinstance(content, str) else wire_content(content)}


def wire_addition(block: Json) -> Json:
    """A tool that a system message defines; its schema as among the tools."""
    definition = block["tool"].get("definition")
    return block if definition is None else {**block, "tool": {**block["tool"], "definition": wire_tool(definition)}}


def unsupported(block: Json) -> Json:
    raise MembraneError(
        "unsupported",
        f"messages: this API takes no {block['type']} blocks; leave them out, or pass "
        "formatter=NativeFormatter(unsupported_media='strip')",
    )


def without_keys(block: Json, *names: str) -> Json:
    """The block without these keys; the same one where it has none of them."""
    if not any(name in block for name in names):
        return block
    return {key: value for key, value in block.items() if key not in names}


BLOCKS: Final[Mapping[str, Callable[[Json], Json]]] = {
    "text": wire_text,
    "image": wire_media,
    "document": wire_media,
    "tool_use": wire_other,
    "tool_result": wire_tool_result,
    "thinking": wire_other,
    "redacted_thinking": wire_other,
    "tool_addition": wire_addition,
    "audio": unsupported,
    "video": unsupported,
    "raw_item": nothing,
}


def wire_system(system: Any) -> Any:
    """A string or text blocks, without blank ones; None where nothing is left."""
    if isinstance(system, str) or system is None:
        return system if system and system.strip() else None
    return wire_content(system) or None


def wire_tool(tool: Json) -> Json:
    flat = flatten_root_union(tool.get("input_schema"))
    return tool if flat is tool.get("input_schema") else {**tool, "input_schema": flat}


def recorded_block(block: Block) -> Json:
    """A block as this API would have given it whole."""
    raw = block.raw_item if block.raw_format == FORMAT else {}
    if isinstance(block, Text):
        return raw if block.is_carrier else {"type": "text", "text": block.text, **without_keys(raw, "type", "text")}
    own = block.to_dict()
    return {**without_keys(own, "raw_item", "raw_format"), **without_keys(raw, *own)}


# Answers


class Decoder:
    """Events of one answer in, deltas out. Of a block it keeps only what its end needs: items it has no block for."""

    TERMINAL = "a message_delta with a stop_reason"

    def __init__(self) -> None:
        self.complete = False
        self.last = False
        self._message: dict[str, Any] = {}
        self._items: Final[dict[int, dict[str, Any]]] = {}
        self._inputs: Final[dict[int, list[str]]] = {}
        self._begun = False

    def decode(self, event: str, data: str) -> Sequence[Delta]:
        parsed = parse(data)
        return EVENTS.get(parsed["type"], Decoder.unknown)(self, parsed)

    def end(self) -> Sequence[Delta]:
        return ()

    def document(self, answer: Json) -> list[Delta]:
        if answer["type"] == "error":
            raise ProviderFault(answer, "error")
        deltas = [*self.message_start({"message": answer})]
        for index, block in enumerate(answer["content"]):
            pieces = PIECES.get(block["type"], {})
            deltas += self.content_block_start({"index": index, "content_block": without_keys(block, *pieces)})
            for field, read in pieces.items():
                deltas += read(self, index, {field: block.get(field) or ""})
            deltas += self.content_block_stop({"index": index})
        return [*deltas, finished(answer, raw=answer)]

    def message_start(self, data: Json) -> Sequence[Delta]:
        """A gateway that changes its mind starts over; only before content is that harmless."""
        if self._begun:
            return (Unknown("message_start", data),)
        self._message = without_keys(data["message"], "content")
        model = string_or_none(self._message.get("model"))
        return *([ModelNamed(model)] if model else []), *reported(self._message.get("usage"))

    def content_block_start(self, data: Json) -> Sequence[Delta]:
        self._begun = True
        index, block = whole_number(data["index"]), data["content_block"]
        start, extra = STARTS.get(block["type"], carrier)(block)
        if extra:
            self._items[index] = extra
        return (BlockStart(index, start),)

    def content_block_delta(self, data: Json) -> Sequence[Delta]:
        delta = data["delta"]
        return DELTAS.get(delta["type"], Decoder.item_delta)(self, whole_number(data["index"]), delta)

    def text_delta(self, index: int, delta: Json) -> Sequence[Delta]:
        text = string(delta["text"])
        return (TextDelta(index, text),) if text else ()

    def thinking_delta(self, index: int, delta: Json) -> Sequence[Delta]:
        text = string(delta["thinking"])
        return (ThinkingDelta(index, text),) if text else ()

    def signature_delta(self, index: int, delta: Json) -> Sequence[Delta]:
        signature = string(delta["signature"])
        return (SignatureDelta(index, signature),) if signature else ()

    def input_json_delta(self, index: int, delta: Json) -> Sequence[Delta]:
        """Arguments of a call; those of a server's own tool belong to its item."""
        item, text = self._items.get(index), string(delta["partial_json"])
        if item is None or item["type"] == "tool_use":
            return (InputDelta(index, text),) if text else ()
        self._inputs.setdefault(index, []).append(text)
        return ()

    def citations_delta(self, index: int, delta: Json) -> Sequence[Delta]:
        item = self._items.setdefault(index, {"type": "text"})
        item["citations"] = [*(item.get("citations") or ()), delta["citation"]]
        return ()

    def item_delta(self, index: int, delta: Json) -> Sequence[Delta]:
        """A delta this version does not know, of an item it does not know: texts are joined, other values replaced."""
        item = self._items.get(index)
        if item is None:
            return (Unknown(delta["type"], delta),)
        for key, value in delta.items():
            if key != "type":
                item[key] = item[key] + value if isinstance(item.get(key), str) and isinstance(value, str) else value
        return ()

    def content_block_stop(self, data: Json) -> Sequence[Delta]:
        index = whole_number(data["index"])
        item, pieces = self._items.pop(index, None), self._inputs.pop(index, [])
        if item is None:
            return (BlockEnd(index),)
        text = "".join(pieces)
        return (BlockEnd(index, {**item, **arguments(text)} if text.strip() else item, FORMAT),)

    def message_delta(self, data: Json) -> Sequence[Delta]:
        """The end, once it has a stop_reason: what comes after it is never waited for. Its counts are cumulative."""
        delta, usage = data["delta"], data.get("usage")
        self._message.update(without_none({**delta, "context_management": data.get("context_management")}))
        if usage:
            self._message["usage"] = {**(self._message.get("usage") or {}), **without_none(usage)}
        if not delta.get("stop_reason"):
            return reported(usage)
        deltas = (*reported(usage), finished(delta, envelope=self._message))
        self.complete = self.last = True
        return deltas

    def error(self, data: Json) -> Sequence[Delta]:
        raise ProviderFault(data, "error")

    def no_delta(self, data: Json) -> Sequence[Delta]:
        return ()

    def unknown(self, data: Json) -> Sequence[Delta]:
        return (Unknown(data["type"], data),)


Started = tuple[Block, "dict[str, Any] | None"]


def text_start(block: Json) -> Started:
    more = without_keys(block, "type", "text")
    return Text(string(block.get("text") or "")), {"type": "text", **more} if any(more.values()) else None


def thinking_start(block: Json) -> Started:
    return Thinking(string(block.get("thinking") or ""), string(block.get("signature") or "") or None), None


def redacted_start(block: Json) -> Started:
    return RedactedThinking(string(block["data"])), None


def tool_start(block: Json) -> Started:
    """`caller` and whatever else stands beside the call goes back with it."""
    more = without_keys(block, "type", "id", "name", "input")
    call = ToolUse(string(block["id"]), string(block["name"]), block.get("input") or {})
    return call, {"type": "tool_use", **more} if more else None


def carrier(block: Json) -> Started:
    """A server tool's call or result, or a block of a later version: kept whole."""
    return Text("", raw_item=block, raw_format=FORMAT), dict(block)


def reported(usage: Json) -> Sequence[Delta]:
    """The counts that are stated; absent and null ones say nothing."""
    if not usage:
        return ()
    nested = [(mapping_or_empty(usage.get(part)), rows) for part, rows in NESTED_COUNTS.items()]
    counts = {
        ours: count_or_none(part.get(theirs))
        for part, rows in [(usage, COUNTS), *nested]
        for theirs, ours in rows.items()
    }
    return (UsageReported(without_none(counts)),)


def finished(ended: Json, *, raw: Json = None, envelope: Json = None) -> Finished:
    """The end of an answer, as a message_delta or a whole message states it."""
    reason = string(ended.get("stop_reason") or "end_turn")
    details = mapping_or_empty(ended.get("stop_details"))
    return Finished(
        STOP_REASONS.get(reason, reason),
        ended.get("stop_reason"),
        stop_sequence=string_or_none(ended.get("stop_sequence")),
        refusal=string_or_none(details.get("explanation")),
        category=string_or_none(details.get("category")),
        raw=raw,
        envelope=envelope,
    )


COUNTS: Final[Mapping[str, str]] = {
    "input_tokens": "input_tokens",  # fresh input only: cached tokens are counted beside it
    "output_tokens": "output_tokens",
    "cache_creation_input_tokens": "cache_creation_tokens",
    "cache_read_input_tokens": "cache_read_tokens",
}
NESTED_COUNTS: Final[Mapping[str, Mapping[str, str]]] = {
    "cache_creation": {
        "ephemeral_5m_input_tokens": "cache_creation_5m_tokens",
        "ephemeral_1h_input_tokens": "cache_creation_1h_tokens",
    },
    "output_tokens_details": {"thinking_tokens": "thinking_tokens"},
}

STARTS: Final[Mapping[str, Callable[[Json], Started]]] = {
    "text": text_start,
    "thinking": thinking_start,
    "redacted_thinking": redacted_start,
    "tool_use": tool_start,
}

DELTAS: Final[Mapping[str, Callable[[Decoder, int, Json], Sequence[Delta]]]] = {
    "text_delta": Decoder.text_delta,
    "thinking_delta": Decoder.thinking_delta,
    "signature_delta": Decoder.signature_delta,
    "input_json_delta": Decoder.input_json_delta,
    "citations_delta": Decoder.citations_delta,
}

# Of a whole block, what a stream would have sent in pieces.
PIECES: Final[Mapping[str, Mapping[str, Callable[[Decoder, int, Json], Sequence[Delta]]]]] = {
    "text": {"text": Decoder.text_delta},
    "thinking": {"thinking": Decoder.thinking_delta, "signature": Decoder.signature_delta},
}

EVENTS: Final[Mapping[str, Callable[[Decoder, Json], Sequence[Delta]]]] = {  # every event the documentation names
    "message_start": Decoder.message_start,
    "content_block_start": Decoder.content_block_start,
    "content_block_delta": Decoder.content_block_delta,
    "content_block_stop": Decoder.content_block_stop,
    "message_delta": Decoder.message_delta,  # terminal: an end of input after it is a normal end
    "message_stop": Decoder.no_delta,
    "ping": Decoder.no_delta,  # keeps proxies awake; moves no deadline but the idle one
    "error": Decoder.error,
}
