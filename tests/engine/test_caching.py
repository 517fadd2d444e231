"""Cache markers over a whole turn, as they arrive at the provider: of the loop, a hook, the caller; and receipts."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from copy import deepcopy
from typing import Any

import pytest
from stage import TOOL_REQUEST, WEATHER, anthropic, chat, complete, each_face, each_streamed_face, stage, stream

from membrane_lite import (
    BedrockAdapter,
    GeminiAdapter,
    Hooks,
    Membrane,
    MembraneError,
    MockAdapter,
    OpenAIResponsesAPIAdapter,
    OpenRouterAdapter,
    ToolResult,
)
from membrane_lite.formatters import cache_markers
from membrane_lite.formatters.cache_receipts import CacheWireReceipt, receipt_of
from membrane_lite.loopback import Failure, LoopbackProvider, Reply, Thinking, ToolCall

SHORT = {"type": "ephemeral"}
SUNNY = Reply("It is sunny.")
TWO_CALLS = [Reply(ToolCall("get_weather", {}, id="call_1")), Reply(ToolCall("get_weather", {}, id="call_2")), SUNNY]
REFUSED = Reply("No.", stop_reason="refusal")


def weather(calls: Any, context: Any = None) -> list[ToolResult]:
    return [ToolResult(call.id, "sun") for call in calls]


def call(id: str) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "get_weather", "input": {}}]}


def result(id: str, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "sun", **more}]}


class Logger:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def warning(self, message: str, *args: object) -> None:
        self.lines.append(message % args)


def test_the_messages_of_three_rounds() -> None:
    asked = {"role": "user", "content": [{"type": "text", "text": "User: Hi"}]}
    marked = {"cache_control": SHORT}
    with stage("anthropic", TWO_CALLS) as on:
        response = stream(on.membrane, {**TOOL_REQUEST, "system": "be kind"}, on_tool_calls=weather)
        bodies = [received.json for received in on.provider.requests]
    assert [body["messages"] for body in bodies] == [
        [asked],
        [asked, call("call_1"), result("call_1", **marked)],
        [asked, call("call_1"), result("call_1", **marked), call("call_2"), result("call_2", **marked)],
    ]
    assert [cache_markers.count(body) for body in bodies] == [2, 3, 4]
    assert bodies[0]["system"] == [{"type": "text", "text": "be kind", "cache_control": SHORT}]
    assert response.details.cache.markers_in_request == 4


# An adapter -> how many markers its requests of three rounds carry, for a request that asks for none.
LOOPS: dict[str, tuple[Callable[[str, Any], Any], list[int]]] = {
    "Anthropic": (anthropic, [2, 3, 4]),
    "Bedrock": (
        lambda url, to: BedrockAdapter(api_key="k", base_url=url, transport=to),
        [2, 3, 4],
    ),
    "OpenRouter": (lambda url, to: OpenRouterAdapter(api_key="k", base_url=url + "/api/v1", transport=to), [2, 3, 4]),
    "chat": (chat, [0, 0, 0]),
    "Gemini": (lambda url, to: GeminiAdapter(api_key="k", base_url=url + "/v1beta", transport=to), [0, 0, 0]),
    "Responses": (
        lambda url, to: OpenAIResponsesAPIAdapter(api_key="k", base_url=url + "/v1", transport=to),
        [0, 0, 0],
    ),
}


@pytest.mark.parametrize("adapter, markers", LOOPS.values(), ids=LOOPS.keys())
@pytest.mark.parametrize("more, ttl", [({}, None), ({"cache_ttl": "1h"}, "1h")], ids=["five minutes", "an hour"])
def test_what_a_tool_loop_sends(adapter: Any, markers: list[int], more: Any, ttl: Any) -> None:
    with ExitStack() as opened:
        provider = opened.enter_context(LoopbackProvider(TWO_CALLS))
        membrane = Membrane(adapter(provider.url, opened.enter_context(provider.transport())))
        stream(membrane, {**TOOL_REQUEST, "system": "be kind", **more}, on_tool_calls=weather)
        bodies = [received.body.decode() for received in provider.requests]
    assert [body.count('"cache_control"') for body in bodies] == markers
    keeps = ttl is not None and "bedrock" not in bodies[0]  # whose cache has one lifetime
    assert [body.count('"ttl":"1h"') for body in bodies] == [number if keeps else 0 for number in markers]


# What a hook and the caller's own fields bring


def marked_text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text, "cache_control": SHORT}


def texts(*names: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [marked_text(name) for name in names]}]


def hooked(**changes: Any) -> Hooks:
    def before_request(request: Any, provider_request: Any) -> Any:
        return type(provider_request)(**{**vars(provider_request), **changes})

    return Hooks(before_request=before_request)


LEFT_OUT = (
    "%d cache markers were left out: a request carries at most four, the deepest, and none on thinking or blank text"
)
# Hook, request -> the texts that are marked when they arrive, and the warning.
BROUGHT: dict[str, tuple[Hooks, dict[str, Any], list[str], list[str]]] = {
    "a hook brings six": (hooked(messages=texts(*"abcdef")), {}, ["c", "d", "e", "f"], [LEFT_OUT % 2]),
    "a hook brings four": (hooked(messages=texts(*"abcd")), {}, ["a", "b", "c", "d"], []),
    "provider_params bring five": (
        Hooks(),
        {"provider_params": {"messages": texts(*"abcde")}},
        ["b", "c", "d", "e"],
        [LEFT_OUT % 1],
    ),
    "a hook three, and provider_params a system of two": (
        hooked(messages=texts(*"abc")),
        {"provider_params": {"system": [marked_text("s"), marked_text("t")]}},
        ["t", "a", "b", "c"],
        [LEFT_OUT % 1],
    ),
    "the body's own takes a place": (
        hooked(messages=texts(*"abcd")),
        {"provider_params": {"cache_control": SHORT}},
        ["b", "c", "d"],
        [LEFT_OUT % 1],
    ),
    "one on blank text": (hooked(messages=texts("a", " \n")), {}, ["a"], [LEFT_OUT % 1]),
    "one on thinking": (
        hooked(messages=[{"role": "user", "content": [marked_text("a")]},
                         {"role": "assistant", "content": [{"type": "thinking", "thinking": "t", "signature": "s",
                                                            "cache_control": SHORT}]},
                         {"role": "user", "content": [{"type": "text", "text": "b"}]}]),
        {},
        ["a"],
        [LEFT_OUT % 1],
    ),
    "six breakpoints, which the formatter counts": (
        Hooks(),
        {"messages": [{"participant": "Ann", "content": name, "cache_breakpoint": True} for name in "abcdef"]},
        ["Ann: c", "Ann: d", "Ann: e", "Ann: f"],
        [LEFT_OUT % 2],
    ),
}  # fmt: skip


@each_face
@pytest.mark.parametrize("hooks, more, marked, told", BROUGHT.values(), ids=BROUGHT.keys())
def test_the_four_deepest_go_out(face: Any, hooks: Hooks, more: Any, marked: list[str], told: list[str]) -> None:
    logger, given = Logger(), deepcopy(more)
    request = {"messages": TOOL_REQUEST["messages"], "config": TOOL_REQUEST["config"], **more}
    with stage("anthropic", [Failure(503), SUNNY], hooks=hooks, logger=logger) as on:
        face(on.membrane, request)
        bodies = [received.json for received in on.provider.requests]
    assert [block["text"] for block in cache_markers.marked(bodies[0])] == marked
    assert bodies[0] == bodies[1]
    assert logger.lines == told  # once, though it was sent twice
    assert more == given


def test_what_a_hook_returned_is_not_changed() -> None:
    messages = texts(*"abcdef")
    with stage("anthropic", [SUNNY], hooks=hooked(messages=messages)) as on:
        complete(on.membrane)
    assert messages == texts(*"abcdef")


def test_where_a_format_has_no_markers_nothing_is_said_of_those_that_go_missing() -> None:
    logger = Logger()
    with stage("chat", [SUNNY], hooks=hooked(messages=texts(*"abcdef")), logger=logger) as on:
        complete(on.membrane)
        assert "cache_control" not in on.provider.requests[0].body.decode()
    assert logger.lines == []


# Receipts


@each_streamed_face
def test_a_receipt_for_each_round_is_of_what_arrived(face: Any) -> None:
    receipts: list[CacheWireReceipt] = []
    with stage("anthropic", TWO_CALLS) as on:
        face(on.membrane, TOOL_REQUEST, on_tool_calls=weather, on_cache_wire_receipt=receipts.append)
        bodies = [received.json for received in on.provider.requests]
    assert receipts == [receipt_of(body) for body in bodies]
    hashes = [[marker.prefix_hash for marker in receipt.markers] for receipt in receipts]
    tools = hashes[0][0]
    first, second = hashes[1][1], hashes[2][2]
    assert hashes == [[tools], [tools, first], [tools, first, second]]  # each round reads what the one before wrote


@pytest.mark.parametrize("format", ["anthropic", "chat"])
def test_resends_share_a_receipt_and_a_refusal_s_second_try_too(format: str) -> None:
    told: list[str] = []

    def note(name: str) -> Callable[[Any], None]:
        return lambda what: told.append(name)

    script = [Failure(503), REFUSED if format == "anthropic" else Failure(503), SUNNY]
    with stage(format, script) as on:
        complete(
            on.membrane,
            refusal_retries=1,
            on_cache_wire_receipt=note("receipt"),
            on_request=note("request"),
        )
    assert told == ["receipt", "request", "request", "request"]


@each_face
def test_a_consumer_that_raises_ends_the_call_before_anything_is_sent(face: Any) -> None:
    def refuse(receipt: CacheWireReceipt) -> None:
        raise ValueError("too long a prefix")

    with stage("anthropic", [SUNNY]) as on:
        with pytest.raises(MembraneError) as caught:
            face(on.membrane, on_cache_wire_receipt=refuse)
        assert (on.provider.request_count, on.clock.waits_ms) == (0, [])
    assert caught.value.message == "on_cache_wire_receipt raised ValueError: too long a prefix"
    assert not caught.value.retryable


@pytest.mark.parametrize("adapter, markers", LOOPS.values(), ids=LOOPS.keys())
def test_every_adapter_s_body_has_a_receipt(adapter: Any, markers: list[int]) -> None:
    receipts: list[CacheWireReceipt] = []
    bodies: list[Any] = []
    with LoopbackProvider([SUNNY]) as provider, provider.transport() as transport:
        membrane = Membrane(adapter(provider.url, transport))
        request = {**TOOL_REQUEST, "system": "be kind"}
        membrane.complete(request, on_cache_wire_receipt=receipts.append, on_request=bodies.append)
    assert receipts == [receipt_of(bodies[0])]
    assert len(receipts[0].markers) == markers[0]


def test_a_receipt_without_a_network() -> None:
    receipts: list[CacheWireReceipt] = []
    with Membrane(MockAdapter(complete_delay_ms=0)) as membrane:
        request = {**TOOL_REQUEST, "tools": [WEATHER], "system": "be kind"}
        membrane.complete(request, on_cache_wire_receipt=receipts.append)
    assert [marker.ordinal for marker in receipts[0].markers] == [1, 2]


def test_thinking_of_a_round_is_not_marked() -> None:
    script = [Reply(Thinking("Hm."), ToolCall("get_weather", {}, id="call_1")), SUNNY]
    with stage("anthropic", script) as on:
        stream(on.membrane, TOOL_REQUEST, on_tool_calls=lambda calls: [])
        second = on.provider.requests[1].json["messages"]
    assert second[-1]["content"][-1] == {
        "type": "tool_result",
        "tool_use_id": "call_1",
        "content": "[pending]",
        "is_error": False,
        "cache_control": SHORT,
    }
    assert "cache_control" not in repr(second[:-1])
