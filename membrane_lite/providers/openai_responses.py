"""OpenAI Responses: POST {base_url}/responses. The model is given a flat list of items, and answers with one.

    > {"model": "gpt-5.1", "input": [{"type": "message", "role": "user", "content": [{"type": "input_text",
    >  "text": "Hi"}]}], "max_output_tokens": 64, "include": ["reasoning.encrypted_content"], "store": false,
    >  "stream": true}
    < event: response.output_item.added
    < data: {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "content": []}}
    <
    < event: response.output_text.delta
    < data: {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Hello"}
    <
    < event: response.output_item.done
    < data: {"type": "response.output_item.done", "output_index": 0, "item": {"type": "message", "content": [
    < data: {"type": "output_text", "text": "Hello"}]}}
    <
    < event: response.completed
    < data: {"type": "response.completed", "response": {"model": "gpt-5.1", "status": "completed", "output": [],
    < data: "usage": {"input_tokens": 9, "output_tokens": 3}}}
    <
    = Hello / end_turn / 9 in, 3 out

One item is one block, numbered by its output_index, and carries the item itself: nothing is stored at OpenAI, so the
next request brings all items back, reasoning in its encrypted form. EVENTS says which event does what,
responses_items.py how an item is read. Sources: platform.openai.com/docs/api-reference/responses and
.../responses-streaming.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, Literal

from ..call import Call
from ..clock import Clock
from ..credentials.keys import PLACEHOLDER, VISIBLE_ASCII, Authorizer, HeaderAuth, Key, read_key
from ..credentials.resolvers import Resolver, ResolverAuth
from ..errors import MembraneError, invalid
from ..formatters.openai_responses import CUSTOM_CALL, FORMAT, ItemWriter, OpenAIResponsesFormatter
from ..transport.interface import OpensRequests
from ..values.base import Json
from ..values.content import Block
from ..values.deltas import BlockEnd, Delta, Finished, ModelNamed, Unknown, UsageReported
from ..values.requests import ProviderRequest
from ..wire.http import HeaderPairs, HeadersInput, HttpRequest, header, header_pairs, merged
from ..wire.json_text import compact, parse
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
from .models import GPT_MODELS, GPT_NEWEST, ModelTable
from .responses_items import CALLS, KEPT_WHOLE, KINDS, OpenItem, call_id, refusal_of
from .structured_output import responses_form

Mode = Literal["api", "subscription"]

DONE: Final = "[DONE]"  # some gateways send it behind the last event
ENCRYPTED_REASONING: Final = "reasoning.encrypted_content"
PRIORITY: Final = "priority"
SESSION_HEADER: Final = "session_id"
LONGEST_SESSION_HEADER: Final = 128

BASE_URLS: Final[Mapping[str, str]] = {
    "api": "https://api.openai.com/v1",
    "subscription": "https://chatgpt.com/backend-api/codex",
}

# What the caller's provider_params cannot replace: the conversation, and that nothing is stored.
OURS: Final = frozenset(["messages", "input", "store", "stream", "include"])
# What the subscription's backend refuses, whoever set it.
REFUSED_BY_SUBSCRIPTION: Final = frozenset(
    ["temperature", "top_p", "top_k", "max_output_tokens", "max_tokens", "max_completion_tokens"]
)

# What an incomplete answer lacks, in our words; any other reason passes through.
INCOMPLETE: Final[Mapping[str, str]] = {"max_output_tokens": "max_tokens", "content_filter": "refusal"}


class OpenAIResponsesAPIAdapter(HttpAdapter):
    """OpenAI's Responses API, and the form of it that a ChatGPT subscription talks to.

    mode "subscription" needs `credentials`, a resolver of bearer tokens (see credentials/resolvers.py); in mode "api"
    it stands in for api_key, else OPENAI_API_KEY. fast_mode: ask for the priority tier; on_fast_mode_fallback(tier) is
    called once, when an answer was served on another. session_id: names the conversations of this adapter to the
    prompt cache (subscription: made up where it is not given). headers win over those of the adapter, but not over
    the credentials.
    """

    default_formatter = OpenAIResponsesFormatter
    takes_items = True

    def __init__(
        self,
        *,
        api_key: str | None = None,
        mode: Mode = "api",
        credentials: Resolver | None = None,
        base_url: str | None = None,
        organization: str | None = None,
        project: str | None = None,
        fast_mode: bool = False,
        on_fast_mode_fallback: Callable[[str], object] | None = None,
        session_id: str | None = None,
        headers: HeadersInput | None = None,
        default_max_tokens: int = DEFAULT_MAX_TOKENS,
        model_traits: Mapping[str, Mapping[str, Any]] | None = None,
        progress_timeout_ms: int | None = None,
        transport: OpensRequests | None = None,
        clock: Clock | None = None,
    ) -> None:
        check_mode(mode, credentials)
        self._subscribed: Final = mode == "subscription"
        self._on_fallback: Final = on_fast_mode_fallback
        self._told_fallback = False
        given = header_pairs(headers, "headers")
        self._responses: Final = ResponsesCodec(
            read_base_url(base_url, None, {}, BASE_URLS[mode]),
            ModelTable(GPT_MODELS, GPT_NEWEST, model_traits),
            default_max_tokens,
            subscribed=self._subscribed,
            session_id=session_id or (os.urandom(16).hex() if self._subscribed else None),
            names_session=header(given, SESSION_HEADER) is None,
        )
        self._responses.set_fast_mode(fast_mode)
        account = without_none({"OpenAI-Organization": organization, "OpenAI-Project": project})
        super().__init__(
            name="openai-responses-api",
            codec=self._responses,
            auth=responses_auth(api_key, credentials),
            headers=merged(header_pairs(account, "organization, project"), given),
            reserved_headers=() if credentials else ("authorization",),
            transport=transport,
            clock=clock,
            progress_timeout_ms=progress_timeout_ms,
        )

    def supports_model(self, model: str) -> bool:
        return not self._subscribed or model.startswith("gpt-") or "codex" in model

    def set_fast_mode(self, on: bool) -> None:
        """Whether requests from now on ask for the priority tier."""
        self._responses.set_fast_mode(on)

    def is_fast_mode(self) -> bool:
        return self._responses.fast_mode

    def render(self, request: object, *, stream: bool = False, **how: Any) -> HttpRequest:
        """As every adapter's. A subscription is always asked for a stream."""
        return super().render(request, stream=stream or self._subscribed, **how)

    def complete(self, provider_request: ProviderRequest, call: Call) -> Iterable[Delta]:
        if self._subscribed:
            return self.stream(provider_request, call)
        return self._watched(super().complete(provider_request, call), provider_request)

    def stream(self, provider_request: ProviderRequest, call: Call) -> Iterator[Delta]:
        return iter(self._watched(super().stream(provider_request, call), provider_request))

    def _watched(self, deltas: Iterable[Delta], provider_request: ProviderRequest) -> Iterable[Delta]:
        """The same deltas. Where another tier served the answer than was asked for, the caller is told, once."""
        if self._on_fallback is None or self._responses.service_tier(provider_request) != PRIORITY:
            return deltas
        return self._told_of_fallback(deltas, self._on_fallback)

    def _told_of_fallback(self, deltas: Iterable[Delta], tell: Callable[[str], object]) -> Iterator[Delta]:
        for delta in deltas:
            if isinstance(delta, Finished) and not self._told_fallback:
                tier = string_or_none(mapping_or_empty(delta.raw or delta.envelope).get("service_tier"))
                if tier and tier != PRIORITY:
                    self._told_fallback = True
                    logged("on_fast_mode_fallback", tell, tier)
            yield delta


def check_mode(mode: object, credentials: object) -> None:
    if mode not in BASE_URLS:
        raise invalid("mode", f"found {mode!r}", f"expected one of {', '.join(BASE_URLS)}")
    if mode == "subscription" and credentials is None:
        raise MembraneError(
            "auth", "credentials: missing; a subscription has no API key, pass the resolver of its bearer tokens"
        )


def responses_auth(api_key: str | None, credentials: Resolver | None) -> Authorizer:
    if credentials is not None:
        return ResolverAuth(credentials)
    key = read_key(api_key, "api_key", "OPENAI_API_KEY", os.environ)
    return HeaderAuth(
        [Key(key, "Authorization", "Bearer ")] if key else [],
        missing="api_key: no key; pass api_key= or set OPENAI_API_KEY (nothing was sent)",
        placeholder=Key(PLACEHOLDER, "Authorization", "Bearer "),
    )


def logged(name: str, function: Callable[..., object], *arguments: object) -> None:
    """Call the caller's own code. It only looks on, so that what it raises is logged, and the answer stands."""
    try:
        function(*arguments)
    except Exception:
        import logging  # only now: most calls log nothing

        logging.getLogger(__name__.rpartition(".providers")[0]).warning("%s raised", name, exc_info=True)


class ResponsesCodec:
    """The wire format: requests here, answers in Decoder."""

    def __init__(
        self,
        base_url: str,
        models: ModelTable,
        default_max_tokens: int,
        *,
        subscribed: bool,
        session_id: str | None,
        names_session: bool,
    ) -> None:
        """names_session: say it in a header too, which is the one place where the subscription's cache looks."""
        self.fast_mode = False
        self._address: Final = base_url + "/responses"
        self._models: Final = models
        self._default_max_tokens: Final = default_max_tokens
        self._subscribed: Final = subscribed
        self._session_id: Final = session_id
        self._names_session: Final = names_session and session_id is not None

    def set_fast_mode(self, on: bool) -> None:
        self.fast_mode = bool(on)

    def address(self, request: ProviderRequest, *, stream: bool) -> str:
        return self._address

    def headers(self, body: Json, *, stream: bool) -> HeaderPairs:
        accept = [("Accept", "text/event-stream")] if self._subscribed else []
        key = body.get("prompt_cache_key") if self._names_session else None
        return [*accept, *([] if key is None else [(SESSION_HEADER, session_header(key))])]

    def body(self, request: ProviderRequest, *, stream: bool) -> Json:
        """Ours in the documentation's order, the caller's own over them, and last what neither may change."""
        traits = self._models.traits(request.model)
        request, output = responses_form(request, traits)
        items, instructions = self._items(request), instructions_of(request.system)
        fields = {
            "model": request.model,
            "input": items,
            "instructions": instructions or None,
            "max_output_tokens": request.max_tokens or self._default_max_tokens,
            "temperature": request.temperature if traits.sampling else None,
            "top_p": request.top_p if traits.sampling else None,
            "tools": [wire_tool(tool) for tool in request.tools or ()] or None,
            **output,
            "prompt_cache_key": self._cache_key(instructions, items),
        }
        params = {name: value for name, value in request.provider_params.items() if name not in OURS}
        body = {
            **with_params(without_none(fields), params, nested="text"),  # verbosity, beside our format
            "service_tier": self.service_tier(request),
        }
        refused = REFUSED_BY_SUBSCRIPTION if self._subscribed else frozenset()
        return {
            **{name: value for name, value in body.items() if name not in refused and value is not None},
            "include": included(request.provider_params.get("include")),
            "store": False,
            **({"stream": True} if stream or self._subscribed else {}),
        }

    def service_tier(self, request: ProviderRequest) -> Any:
        """The tier that is asked for. A subscription has no other choice than fast or not."""
        if self.fast_mode:
            return PRIORITY
        return None if self._subscribed else request.provider_params.get("service_tier")

    def decoder(self) -> Decoder:
        return Decoder()

    def tidied(self, content: list[Block]) -> list[Block]:
        return content

    def record(self, envelope: Json, content: Sequence[Block]) -> Json:
        """Some gateways end a stream with an answer that has no items: then they are those that were streamed."""
        writer = ItemWriter({})
        for block in content:
            writer.message("assistant", [block.to_dict()])
        return {**(envelope or {}), "output": writer.items}

    def _items(self, request: ProviderRequest) -> list[Json]:
        if self._subscribed:
            return normalised(request.messages)
        for message in request.messages:
            if not is_item(message):
                raise MembraneError(
                    "unsupported",
                    "formatter: this API takes input items, found a message of another format; pass "
                    "formatter=OpenAIResponsesFormatter(), or none (nothing was sent)",
                )
        return request.messages

    def _cache_key(self, instructions: str, items: Sequence[Json]) -> str | None:
        """The same for all requests of a conversation: of the session, with what every one of them begins with."""
        if self._session_id is None:
            return None
        begin = self._session_id + instructions + (compact(items[0]) if items else "")
        return f"{self._session_id}:{sha256(begin.encode()).hexdigest()[:12]}"


# Requests


def is_item(message: Json) -> bool:
    """An input item: one with a type, or the API's short form of a message, {"role", "content"}."""
    content = message.get("content")
    if "type" in message or isinstance(content, str):
        return True
    return all(str(part.get("type")).startswith(("input_", "output_", "refusal")) for part in content or ())


def normalised(messages: Sequence[Json]) -> list[Json]:
    """Items as they are; messages in roles and blocks, from another formatter, as items."""
    writer = ItemWriter({})
    for message in messages:
        content = message.get("content")
        if isinstance(content, str) and "type" not in message:
            writer.message(message["role"], [{"type": "text", "text": content}])
        elif is_item(message):
            writer.item(message)
        else:
            writer.message(message["role"], content)
    return writer.items


def instructions_of(system: Any) -> str:
    """The system text; of blocks, their texts, a line each."""
    if system is None or isinstance(system, str):
        return system or ""
    return "\n".join(block["text"] for block in system)


def included(given: Any) -> list[str]:
    """What an answer is to hold beside its items: the caller's list, and always what reasoning is replayed with."""
    names = [name for name in given if isinstance(name, str)] if isinstance(given, (list, tuple)) else []
    return names if ENCRYPTED_REASONING in names else [*names, ENCRYPTED_REASONING]


def wire_tool(tool: Json) -> Json:
    """A flat function; chat's nested form is flattened. The API's own tools, and what is flat, stay as they are."""
    if "type" in tool and (tool["type"] != "function" or "name" in tool):
        return tool
    function = tool.get("function", tool)
    schemas = (function.get(name) for name in ("parameters", "input_schema", "inputSchema"))
    return {
        "type": "function",
        "name": function["name"],
        "description": function.get("description", ""),
        "parameters": next((schema for schema in schemas if schema), {"type": "object", "properties": {}}),
        **({"strict": function["strict"]} if "strict" in function else {}),
    }


def session_header(key: Any) -> str:
    """The cache key as a header; one that cannot be a header goes by its hash."""
    text = str(key)
    if len(text) <= LONGEST_SESSION_HEADER and VISIBLE_ASCII.fullmatch(text):
        return text
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


# Answers


class Decoder:
    """Events of one answer in, deltas out. An item's text comes in pieces; its end brings what is missing."""

    TERMINAL = "response.completed or response.incomplete"

    def __init__(self) -> None:
        self.complete = False
        self.last = False
        self._model: str | None = None
        self._open: Final[dict[int, OpenItem]] = {}
        self._ended: Final[dict[int, Json]] = {}
        self._refusals: Final[dict[int, str]] = {}
        self._calls = False

    def decode(self, event: str, data: str) -> Sequence[Delta]:
        if data.strip() == DONE:
            return ()
        parsed = parse(data)
        if "type" not in parsed and parsed.get("error"):
            raise ProviderFault(parsed, event)
        return EVENTS.get(parsed.get("type", event), Decoder.unknown)(self, parsed)

    def end(self) -> Sequence[Delta]:
        return ()

    def document(self, answer: Json) -> Sequence[Delta]:
        if not isinstance(answer, Mapping) or "output" not in answer or answer.get("status") == "failed":
            raise ProviderFault(answer, "answer")
        return self._finished(answer, "answer", raw=answer)

    def begun(self, data: Json) -> Sequence[Delta]:
        return self._named(data["response"])

    def item_added(self, data: Json) -> Sequence[Delta]:
        index, item = output_index(data), data["item"]
        if index in self._open or index in self._ended:
            return ()
        return self._begin(index, item)

    def item_done(self, data: Json) -> Sequence[Delta]:
        index, item = output_index(data), data["item"]
        if index in self._ended:
            return ()
        if item.get("type") in CALLS:  # some servers leave out what its output must name
            self._calls, item = True, {**item, "call_id": call_id(item, index)}
        deltas = [*self._begin(index, item)] if index not in self._open else []
        self._ended[index] = item
        self._refusals[index] = refusal_of(item) or self._refusals.get(index, "")
        return [*deltas, *self._open.pop(index).end(item)]

    def text(self, data: Json) -> Sequence[Delta]:
        return self._piece(data, "message", data.get("content_index"), "content")

    def summary(self, data: Json) -> Sequence[Delta]:
        return self._piece(data, "reasoning", data.get("summary_index"), "summary")

    def reasoning(self, data: Json) -> Sequence[Delta]:
        return self._piece(data, "reasoning", data.get("content_index"), "content")

    def arguments(self, data: Json) -> Sequence[Delta]:
        return self._piece(data, "function_call", 0, "arguments")

    def custom_input(self, data: Json) -> Sequence[Delta]:
        return self._piece(data, CUSTOM_CALL, 0, "input")

    def refusal(self, data: Json) -> Sequence[Delta]:
        index = output_index(data)
        self._refusals[index] = self._refusals.get(index, "") + string(data["delta"])
        return ()

    def part_done(self, data: Json) -> Sequence[Delta]:
        opened = self._open.get(output_index(data))
        if opened is not None:
            opened.part_over(data.get("content_index", data.get("summary_index")))
        return ()

    def terminal(self, data: Json) -> Sequence[Delta]:
        response = data["response"]
        deltas = self._finished(response, data["type"], raw=response if response.get("output") else None)
        self.complete = self.last = True
        return deltas

    def failed(self, data: Json) -> Sequence[Delta]:
        raise ProviderFault(data, data["type"], self._told(data["response"]))

    def error(self, data: Json) -> Sequence[Delta]:
        raise ProviderFault(data, "error")

    def no_delta(self, data: Json) -> Sequence[Delta]:
        return ()

    def unknown(self, data: Json) -> Sequence[Delta]:
        return (Unknown(str(data.get("type")), data),)

    def _named(self, response: Json) -> Sequence[Delta]:
        """The model, as soon as it is known; a router may name another at the end."""
        model = string_or_none(response.get("model"))
        if model is None or model == self._model:
            return ()
        self._model = model
        return (ModelNamed(model),)

    def _told(self, response: Json) -> list[Delta]:
        usage = response.get("usage")
        return [*self._named(response), *([UsageReported(counts(usage))] if usage else [])]

    def _begin(self, index: int, item: Json) -> Sequence[Delta]:
        opened = self._open[index] = OpenItem(index, KINDS.get(str(item.get("type")), KEPT_WHOLE))
        return opened.start(opened.kind.announced(item, index))

    def _piece(self, data: Json, type: str, part: Any, source: str) -> Sequence[Delta]:
        index = output_index(data)
        if index in self._ended:
            return ()
        announced = () if index in self._open else self._begin(index, {"type": type})  # some leave that out
        return [*announced, *self._open[index].piece(string(data["delta"]), part or 0, source)]

    def _finished(self, response: Json, event: str, *, raw: Json) -> list[Delta]:
        """All that an answer's end says. Its items count; those that were streamed already are known by their place."""
        told = self._told(response)
        if response.get("error"):
            raise ProviderFault({"response": response}, event, told)
        deltas: list[Delta] = []
        known = {item["id"]: index for index, item in self._ended.items() if "id" in item}
        for place, item in enumerate(response.get("output") or ()):
            index = known.get(item.get("id"), place)
            if index not in self._ended:
                deltas += self.item_done({"output_index": index, "item": item})
            elif item.get("type") == self._ended[index].get("type") and item != self._ended[index]:
                deltas.append(BlockEnd(index, item, FORMAT))
        for opened in self._open.values():
            deltas += opened.broken_off()
        return [*deltas, *told, self._end(response, raw)]

    def _end(self, response: Json, raw: Json) -> Finished:
        """Calls of an answer that was cut are not run. A refusal outranks the limit it may have run into."""
        status = string(response.get("status") or "completed")
        reason = string_or_none(mapping_or_empty(response.get("incomplete_details")).get("reason"))
        refusal = "".join(text for _, text in sorted(self._refusals.items())) or None
        if self._calls and status == "completed":
            stop_reason = "tool_use"
        elif refusal is not None:
            stop_reason = "refusal"
        elif status == "completed":
            stop_reason = "end_turn"
        else:
            stop_reason = INCOMPLETE.get(reason or "", reason or status)
        return Finished(stop_reason, reason or status, refusal=refusal, raw=raw, envelope=response)


def output_index(data: Json) -> int:
    return whole_number(data.get("output_index", 0))


def counts(usage: Json) -> dict[str, Any]:
    """Counts by our names, made disjoint: this API counts cached tokens inside its input."""
    given, details = count_or_none(usage.get("input_tokens")), mapping_or_empty(usage.get("input_tokens_details"))
    read, created = count_or_none(details.get("cached_tokens")), count_or_none(details.get("cache_write_tokens"))
    thinking = mapping_or_empty(usage.get("output_tokens_details")).get("reasoning_tokens")
    return without_none(
        {
            "input_tokens": None if given is None else max(0, given - (read or 0) - (created or 0)),
            "output_tokens": count_or_none(usage.get("output_tokens")),
            "cache_read_tokens": read,
            "cache_creation_tokens": created,
            "thinking_tokens": count_or_none(thinking),
            "provider_cost": count_or_none(usage.get("cost")),  # OpenRouter's
        }
    )


# Steps that say nothing beside what the item's end says.
STEPS: Final[Mapping[str, Sequence[str]]] = {
    "function_call_arguments": ("done",),
    "custom_tool_call_input": ("done",),
    "refusal": ("done",),
    "output_text.annotation": ("added",),
    "content_part": ("added",),
    "reasoning_summary_part": ("added",),
    "web_search_call": ("in_progress", "searching", "completed"),
    "file_search_call": ("in_progress", "searching", "completed"),
    "code_interpreter_call": ("in_progress", "interpreting", "completed"),
    "code_interpreter_call_code": ("delta", "done"),
    "image_generation_call": ("in_progress", "generating", "partial_image", "completed"),
    "mcp_call": ("in_progress", "completed", "failed"),
    "mcp_call_arguments": ("delta", "done"),
    "mcp_list_tools": ("in_progress", "completed", "failed"),
    "apply_patch_call_operation_diff": ("delta", "done"),
    "shell_call_command": ("added", "delta", "done"),
    "shell_call_output_content": ("delta", "done"),
}

EVENTS: Final[Mapping[str, Callable[[Decoder, Json], Sequence[Delta]]]] = {  # every event the documentation names
    "response.created": Decoder.begun,
    "response.queued": Decoder.begun,
    "response.in_progress": Decoder.begun,
    "response.output_item.added": Decoder.item_added,
    "response.output_item.done": Decoder.item_done,
    "response.output_text.delta": Decoder.text,
    "response.reasoning_summary_text.delta": Decoder.summary,
    "response.reasoning_text.delta": Decoder.reasoning,
    "response.function_call_arguments.delta": Decoder.arguments,
    "response.custom_tool_call_input.delta": Decoder.custom_input,
    "response.refusal.delta": Decoder.refusal,
    **dict.fromkeys(
        [
            "response.output_text.done",
            "response.content_part.done",
            "response.reasoning_text.done",
            "response.reasoning_summary_text.done",
            "response.reasoning_summary_part.done",
        ],
        Decoder.part_done,
    ),
    **{f"response.{family}.{step}": Decoder.no_delta for family, steps in STEPS.items() for step in steps},
    "response.completed": Decoder.terminal,
    "response.incomplete": Decoder.terminal,
    "response.failed": Decoder.failed,
    "error": Decoder.error,
}
