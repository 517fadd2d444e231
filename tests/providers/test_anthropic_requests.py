"""anthropic: the exact bytes of a request's body, and its headers. GOLDEN is the fields beside model and messages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from membrane_lite.errors import MembraneError
from membrane_lite.formatters.native import NativeFormatter
from membrane_lite.providers.anthropic import AnthropicAdapter, AnthropicCodec
from membrane_lite.providers.models import CLAUDE_MODELS, CLAUDE_NEWEST, ModelTable
from membrane_lite.values.requests import ProviderRequest
from membrane_lite.wire.http import HttpRequest, header
from membrane_lite.wire.json_text import encode

SONNET, OPUS_48, SONNET_5, FABLE = "claude-sonnet-4-5", "claude-opus-4-8", "claude-sonnet-5", "claude-fable-5"
ASKED = {"participant": "Ann", "content": "hi"}
HI = {"role": "user", "content": [{"type": "text", "text": "Ann: hi"}]}


def render(adapter: AnthropicAdapter | None = None, *, stream: bool = False, **request: Any) -> HttpRequest:
    """A request of one question to SONNET, with 64 tokens; `config` adds to that."""
    config = {"model": SONNET, "max_tokens": 64, **request.pop("config", {})}
    given = {"messages": [ASKED], "prompt_caching": False, **request, "config": config}
    return (adapter or AnthropicAdapter(api_key="k", base_url="http://h")).render(given, stream=stream)


def golden(model: str = SONNET, max_tokens: int = 64, **fields: Any) -> bytes:
    """The body with these fields, in their order, as compact JSON; `stream` is false unless it is given."""
    body = {"model": model, "max_tokens": max_tokens, "messages": [HI], **fields}
    return json.dumps({**body, "stream": False} if "stream" not in body else body, separators=(",", ":")).encode()


ENABLED = {"type": "enabled", "budget_tokens": 2_048}
DROP, RAISE = {"prefix_mismatch_behavior": "drop_block"}, {"prefix_mismatch_behavior": "error"}
THINKS = {"thinking": {"budget_tokens": 2_048}, "max_tokens": 4_096}

GOLDEN: dict[str, tuple[dict[str, Any], bytes]] = {
    "the least": ({}, golden()),
    "4096 tokens where none are said": ({"config": {"max_tokens": None}}, golden(max_tokens=4_096)),
    "or 0": ({"config": {"max_tokens": 0}}, golden(max_tokens=4_096)),
    "everything, in the order of the documentation": (
        {
            "config": {"temperature": 0.5, "top_k": 3},
            "system": "be kind",
            "stop_sequences": ["\n\n", "a", "b", "c", "d"],
            "tools": [{"name": "ns:look", "description": "looks", "input_schema": {"type": "object"}}],
            "provider_params": {"metadata": {"user_id": "7"}},
        },
        golden(
            system="be kind",
            temperature=0.5,
            top_k=3,
            stop_sequences=["\n\n", "a", "b", "c", "d"],
            tools=[{"name": "ns__look", "description": "looks", "input_schema": {"type": "object"}}],
            stream=False,
            metadata={"user_id": "7"},
        ),
    ),
    # Sampling.
    "a temperature of 0": ({"config": {"temperature": 0}}, golden(temperature=0)),
    "top_p alone": ({"config": {"top_p": 0.5}}, golden(top_p=0.5)),
    "temperature wins over top_p": (
        {"config": {"temperature": 0.5, "top_p": 0.5, "top_k": 3}},
        golden(temperature=0.5, top_k=3),
    ),
    "penalties are never sent": (
        {"config": {"presence_penalty": 1, "frequency_penalty": 1, "repetition_penalty": 1.1}},
        golden(),
    ),
    "a model that takes none": (
        {"config": {"model": OPUS_48, "temperature": 0.5, "top_p": 0.5, "top_k": 3}},
        golden(OPUS_48),
    ),
    "its dated id": (
        {"config": {"model": "claude-opus-4-8-20260601", "temperature": 0.5}},
        golden("claude-opus-4-8-20260601"),
    ),
    "the next family": ({"config": {"model": SONNET_5, "temperature": 0.5}}, golden(SONNET_5)),
    "one that does": (
        {"config": {"model": "claude-haiku-4-5-20251001", "temperature": 0.5}},
        golden("claude-haiku-4-5-20251001", temperature=0.5),
    ),
    # Thinking.
    "thinking, within its budget": ({"config": THINKS}, golden(max_tokens=4_096, thinking=ENABLED)),
    "a budget that leaves room for the answer": (
        {"config": {"thinking": {"budget_tokens": 10_000}, "max_tokens": 4_096}},
        golden(max_tokens=4_096, thinking={"type": "enabled", "budget_tokens": 3_072}),
    ),
    "no room, so no thinking and a temperature": (
        {"config": {"thinking": {}, "max_tokens": 1_000, "temperature": 0.5}},
        golden(max_tokens=1_000, temperature=0.5),
    ),
    "adaptive, and how it is shown": (
        {"config": {"model": OPUS_48, "thinking": {"type": "adaptive", "display": "summarized"}}},
        golden(OPUS_48, thinking={"type": "adaptive", "display": "summarized"}),
    ),
    "switched off": (
        {"config": {"thinking": {"enabled": False}, "temperature": 0.5}},
        golden(temperature=0.5),
    ),
    "thinking takes no temperature and no top_k": (
        {"config": {**THINKS, "temperature": 0.5, "top_k": 3}},
        golden(max_tokens=4_096, thinking=ENABLED),
    ),
    "nor a low top_p": ({"config": {**THINKS, "top_p": 0.9}}, golden(max_tokens=4_096, thinking=ENABLED)),
    "but a high one": (
        {"config": {**THINKS, "top_p": 0.95}},
        golden(max_tokens=4_096, top_p=0.95, thinking=ENABLED),
    ),
    "even beside a temperature": (
        {"config": {**THINKS, "temperature": 1, "top_p": 0.97}},
        golden(max_tokens=4_096, top_p=0.97, thinking=ENABLED),
    ),
    "a model that always thinks takes no such parameter": (
        {"config": {"model": FABLE, "thinking": {"type": "adaptive"}, "temperature": 1}},
        golden(FABLE),
    ),
    # What becomes of signed thinking that is sent back behind a changed history.
    "a binding, beside a budget": (
        {"config": {**THINKS, "thinking": {"budget_tokens": 2_048, "block_binding": DROP}}},
        golden(max_tokens=4_096, thinking={**ENABLED, "block_binding": DROP}),
    ),
    "a binding, last in adaptive thinking": (
        {"config": {"model": OPUS_48, "thinking": {"type": "adaptive", "display": "omitted", "block_binding": RAISE}}},
        golden(OPUS_48, thinking={"type": "adaptive", "display": "omitted", "block_binding": RAISE}),
    ),
    "a model that always thinks is told the binding alone": (
        {"config": {"model": FABLE, "thinking": {"display": "summarized", "block_binding": DROP}}},
        golden(FABLE, thinking={"type": "adaptive", "block_binding": DROP}),
    ),
    "so is any that takes no other thinking": (
        {"config": {"model": "claude-mythos-5-1", "thinking": {"type": "adaptive", "block_binding": RAISE}}},
        golden("claude-mythos-5-1", thinking={"type": "adaptive", "block_binding": RAISE}),
    ),
    "thinking that is switched off binds nothing": (
        {"config": {"model": FABLE, "thinking": {"enabled": False, "block_binding": DROP}}},
        golden(FABLE),
    ),
    # System.
    "a blank system is none": ({"system": " \n"}, golden()),
    "an empty system is none": ({"system": ""}, golden()),
    "a system of blocks": (
        {
            "system": [
                {"type": "text", "text": "be kind"},
                {"type": "text", "text": " "},
                {"type": "text", "text": "ok"},
            ]
        },
        golden(system=[{"type": "text", "text": "be kind"}, {"type": "text", "text": "ok"}]),
    ),
    "a system of blank blocks": ({"system": [{"type": "text", "text": " "}]}, golden()),
    "a cached system": (
        {"system": "be kind", "prompt_caching": True, "cache_ttl": "1h"},
        golden(system=[{"type": "text", "text": "be kind", "cache_control": {"type": "ephemeral", "ttl": "1h"}}]),
    ),
    # Tools.
    "a tool with a union at its root": (
        {
            "tools": [
                {
                    "name": "a",
                    "input_schema": {"anyOf": [{"type": "object", "properties": {"x": {}}, "required": ["x"]}]},
                }
            ]
        },
        golden(
            tools=[
                {
                    "name": "a",
                    "description": "",
                    "input_schema": {"type": "object", "properties": {"x": {}}, "required": ["x"]},
                }
            ]
        ),
    ),
    "no tools": ({"tools": []}, golden()),
    "no stop sequences": ({"stop_sequences": []}, golden()),
    # The caller's own fields.
    "they win over ours": (
        {"config": {"temperature": 0.5}, "provider_params": {"temperature": 1, "max_tokens": 9}},
        golden(max_tokens=9, temperature=1),
    ),
    "and are looked into by nothing": (
        {"config": {"model": OPUS_48}, "provider_params": {"temperature": 0.5, "thinking": {"type": "disabled"}}},
        golden(OPUS_48, stream=False, temperature=0.5, thinking={"type": "disabled"}),
    ),
}


@pytest.mark.parametrize("request_fields, body", GOLDEN.values(), ids=GOLDEN.keys())
def test_the_body_of_a_request(request_fields: dict[str, Any], body: bytes) -> None:
    assert render(**request_fields).body == body


def test_a_streamed_request_says_so() -> None:
    assert render(stream=True).body == golden(stream=True)


def test_the_head_of_a_request() -> None:
    request = render()
    assert (request.method, request.url) == ("POST", "http://h/v1/messages")
    agent = header(request.headers, "user-agent")
    assert list(request.headers) == [
        ("User-Agent", agent),
        ("Content-Type", "application/json"),
        ("Accept", "application/json"),
        ("Accept-Encoding", "gzip"),
        ("anthropic-version", "2023-06-01"),
        ("x-api-key", "k"),
    ]
    assert header(render(stream=True).headers, "accept-encoding") == "identity"


def test_a_default_for_the_tokens() -> None:
    adapter = AnthropicAdapter(api_key="k", base_url="http://h", default_max_tokens=9)
    assert render(adapter, config={"max_tokens": None}).body == golden(max_tokens=9)


# Betas

INTERLEAVED = "interleaved-thinking-2025-05-14"
THINKING_46 = {"model": "claude-opus-4-6", **THINKS}
BINDING = "thinking-binding-controls-2026-08-01"
BOUND = {**THINKS, "thinking": {"budget_tokens": 2_048, "block_binding": DROP}}

BETAS: dict[str, tuple[Any, dict[str, Any], list[tuple[str, str]]]] = {
    "none are needed": (None, {}, []),
    "thinking on Claude 4.5": (None, THINKS, [("anthropic-beta", INTERLEAVED)]),
    "thinking on Claude 4.6": (None, THINKING_46, []),
    "thinking that is switched off": (None, {"thinking": {"enabled": False}}, []),
    "the caller's stands untouched": ({"Anthropic-Beta": "b, a ,,b"}, {}, [("Anthropic-Beta", "b, a ,,b")]),
    "the caller's comes first": ({"anthropic-beta": "oauth-1"}, THINKS, [("anthropic-beta", f"oauth-1,{INTERLEAVED}")]),
    "in any letter case": ({"ANTHROPIC-BETA": "oauth-1"}, THINKS, [("ANTHROPIC-BETA", f"oauth-1,{INTERLEAVED}")]),
    "as pairs": ([("Anthropic-Beta", "oauth-1")], THINKS, [("Anthropic-Beta", f"oauth-1,{INTERLEAVED}")]),
    "several of them": (
        {"anthropic-beta": " a , b,, a"},
        THINKS,
        [("anthropic-beta", f"a,b,{INTERLEAVED}")],
    ),
    "none twice": (
        {"anthropic-beta": f"{INTERLEAVED},a"},
        THINKS,
        [("anthropic-beta", f"{INTERLEAVED},a")],
    ),
    "another header of the caller's": ({"x-other": "1"}, THINKS, [("anthropic-beta", INTERLEAVED)]),
    "a binding": (None, {"model": FABLE, "thinking": {"block_binding": DROP}}, [("anthropic-beta", BINDING)]),
    "a binding on Claude 4.5": (None, BOUND, [("anthropic-beta", f"{INTERLEAVED},{BINDING}")]),
    "a binding behind the caller's": (
        {"anthropic-beta": f"oauth-1,{BINDING}"},
        BOUND,
        [("anthropic-beta", f"oauth-1,{BINDING},{INTERLEAVED}")],
    ),
    "an empty one": ({"anthropic-beta": ""}, THINKS, [("anthropic-beta", INTERLEAVED)]),
}


@pytest.mark.parametrize("headers, config, sent", BETAS.values(), ids=BETAS.keys())
def test_betas(headers: Any, config: dict[str, Any], sent: list[tuple[str, str]]) -> None:
    adapter = AnthropicAdapter(api_key="k", base_url="http://h", headers=headers)
    found = [pair for pair in render(adapter, config=config).headers if pair[0].lower() == "anthropic-beta"]
    assert found == sent


def test_thinking_among_the_callers_own_fields_needs_the_beta_too() -> None:
    request = render(provider_params={"thinking": ENABLED})
    assert header(request.headers, "anthropic-beta") == INTERLEAVED


INLINE = "inline-tools-2026-09-15"
REMOVES = {"type": "system_change", "remove_tools": ["look"]}
DEFINES = {"type": "system_change", "define_tools": [{"name": "look"}]}
TELLS = {"type": "system_change", "add_system": "Be brief."}

CHANGE_BETAS: dict[str, tuple[str | None, list[dict[str, Any]], dict[str, Any], str | None]] = {
    "a text needs none": (None, [TELLS], {}, None),
    "a removal": (None, [REMOVES], {}, INLINE),
    "a definition": (None, [DEFINES], {}, INLINE),
    "both, and a text": (None, [TELLS, REMOVES, DEFINES], {}, INLINE),
    "a change of nothing": (None, [{"type": "system_change", "remove_tools": []}], {}, None),
    "behind the caller's": ("oauth-1, b", [DEFINES], {}, f"oauth-1,b,{INLINE}"),
    "not twice": (f"{INLINE},b", [DEFINES], {}, f"{INLINE},b"),
    "among the others": (None, [DEFINES], BOUND, f"{INTERLEAVED},{INLINE},{BINDING}"),
    "the caller's stands untouched": (" a ,b", [TELLS], {}, " a ,b"),
}


@pytest.mark.parametrize("given, blocks, config, sent", CHANGE_BETAS.values(), ids=CHANGE_BETAS.keys())
def test_betas_of_system_changes(
    given: str | None, blocks: list[dict[str, Any]], config: dict[str, Any], sent: str | None
) -> None:
    headers = {} if given is None else {"anthropic-beta": given}
    adapter = AnthropicAdapter(api_key="k", base_url="http://h", headers=headers)
    request = {
        "messages": [ASKED, {"participant": "Ann", "content": blocks}],
        "config": {"model": SONNET, "max_tokens": 64, **config},
    }
    assert header(adapter.render(request, formatter=NativeFormatter()).headers, "anthropic-beta") == sent


ODD_MESSAGES: dict[str, tuple[Any, str | None]] = {
    "a change of the caller's own": ([{"role": "system", "content": [{"type": "tool_removal"}]}], INLINE),
    "a string": ([{"role": "system", "content": "Be brief."}], None),
    "no list": ("hi", None),
    "no messages": ([None, "hi", {"role": "system"}, {"role": "system", "content": [None]}], None),
    "such a block of a user's": ([{"role": "user", "content": [{"type": "tool_removal"}]}], None),
}


@pytest.mark.parametrize("messages, sent", ODD_MESSAGES.values(), ids=ODD_MESSAGES.keys())
def test_messages_among_the_callers_own_fields(messages: Any, sent: str | None) -> None:
    assert header(render(provider_params={"messages": messages}).headers, "anthropic-beta") == sent


def test_a_request_with_changes() -> None:
    union = {"oneOf": [{"type": "object", "properties": {"x": {}}, "required": ["x"]}]}
    change = {"type": "system_change", "remove_tools": ["ns:look"], "add_system": ["Be brief.", " "]}
    request = AnthropicAdapter(api_key="k", base_url="http://h").render(
        {
            "system": "Be kind.",
            "messages": [
                ASKED,
                {"participant": "Ann", "content": [change]},
                {"participant": "Claude", "content": "hello"},
                {
                    "participant": "Ann",
                    "content": [{**DEFINES, "define_tools": [{"name": "a", "input_schema": union}]}],
                },
                {"participant": "Ann", "content": "bye"},
            ],
            "tools": [{"name": "ns:look", "description": "looks", "input_schema": {"type": "object"}}],
            "config": {"model": OPUS_48, "max_tokens": 64},
            "prompt_caching": False,
        },
        formatter=NativeFormatter(),
    )
    assert header(request.headers, "anthropic-beta") == INLINE
    assert request.body.decode() == (
        '{"model":"claude-opus-4-8","max_tokens":64,"messages":['
        '{"role":"user","content":[{"type":"text","text":"Ann: hi"}]},'
        '{"role":"system","content":[{"type":"tool_removal","tool":{"type":"tool_reference","name":"ns__look"}},'
        '{"type":"text","text":"Be brief."}]},'
        '{"role":"assistant","content":[{"type":"text","text":"hello"}]},'
        '{"role":"user","content":[{"type":"text","text":"Ann: bye"}]},'
        '{"role":"system","content":[{"type":"tool_addition","tool":{"type":"tool_definition","definition":'
        '{"name":"a","description":"","input_schema":{"type":"object","properties":{"x":{}},"required":["x"]}}}}]}],'
        '"system":"Be kind.",'
        '"tools":[{"name":"ns__look","description":"looks","input_schema":{"type":"object"}}],"stream":false}'
    )


# Messages: what a hook, or a formatter, puts into a ProviderRequest, and what is sent of it.

CODEC = AnthropicCodec("http://h", ModelTable(CLAUDE_MODELS, CLAUDE_NEWEST), 4_096, betas=None)


def sent(messages: list[dict[str, Any]], **fields: Any) -> list[dict[str, Any]]:
    body = CODEC.body(ProviderRequest(SONNET, messages, **fields), stream=False)
    messages_sent: list[dict[str, Any]] = json.loads(encode(body))["messages"]
    return messages_sent


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def changed(*blocks: Any) -> dict[str, Any]:
    return {"role": "system", "content": list(blocks)}


def item(raw: dict[str, Any], format: str = "anthropic") -> dict[str, Any]:
    return {"raw_item": raw, "raw_format": format}


PNG = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
MARK = {"cache_control": {"type": "ephemeral"}}
REMOVED = {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "look"}}
ADDED = {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "look"}}
SEARCH = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}}
CITED = {"type": "text", "citations": [{"cited_text": "x"}]}

MESSAGES: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "blocks as they are": ([user(text("a", **MARK))], [user(text("a", **MARK))]),
    "a string": ([{"role": "user", "content": "a"}], [user(text("a"))]),
    "blank texts are left out": ([user(text(" "), text("a"), text("\n\t"))], [user(text("a"))]),
    "with their markers": ([user(text("a"), text(" ", **MARK))], [user(text("a"))]),
    "a message left empty is left out": (
        [user(text("a")), assistant(text(" ")), user(text("b"))],
        [user(text("a")), user(text("b"))],
    ),
    "white space within text stays": ([user(text(" a \n"))], [user(text(" a \n"))]),
    "a prefill ends without white space": (
        [user(text("a")), assistant(text("1. apple \n"))],
        [user(text("a")), assistant(text("1. apple"))],
    ),
    "only its last text": (
        [user(text("a")), assistant(text("b "), text("c "))],
        [user(text("a")), assistant(text("b "), text("c"))],
    ),
    "an answer before a question keeps it": (
        [user(text("a")), assistant(text("b ")), user(text("c "))],
        [user(text("a")), assistant(text("b ")), user(text("c "))],
    ),
    "an image without where it is fetched": (
        [user({"type": "image", "source": PNG, "source_url": "u"})],
        [user({"type": "image", "source": PNG})],
    ),
    "an image by address": (
        [user({"type": "image", "source": {"type": "url", "url": "u"}})],
        [user({"type": "image", "source": {"type": "url", "url": "u"}})],
    ),
    "a document": (
        [user({"type": "document", "source": PNG, "title": "a.pdf"})],
        [user({"type": "document", "source": PNG, "title": "a.pdf"})],
    ),
    "a tool round": (
        [
            user(text("a")),
            assistant({"type": "tool_use", "id": "c1", "name": "look", "input": {}}),
            user({"type": "tool_result", "tool_use_id": "c1", "content": "r", "is_error": True}),
        ],
        [
            user(text("a")),
            assistant({"type": "tool_use", "id": "c1", "name": "look", "input": {}}),
            user({"type": "tool_result", "tool_use_id": "c1", "content": "r", "is_error": True}),
        ],
    ),
    "blocks within a result": (
        [
            user(
                {
                    "type": "tool_result",
                    "tool_use_id": "c1",
                    "content": [text(" "), text("r"), {"type": "image", "source": PNG, "source_url": "u"}],
                }
            )
        ],
        [user({"type": "tool_result", "tool_use_id": "c1", "content": [text("r"), {"type": "image", "source": PNG}]})],
    ),
    "an empty result stays": (
        [user({"type": "tool_result", "tool_use_id": "c1", "content": ""})],
        [user({"type": "tool_result", "tool_use_id": "c1", "content": ""})],
    ),
    "one of blank text too": (
        [user({"type": "tool_result", "tool_use_id": "c1", "content": [text(" ")]})],
        [user({"type": "tool_result", "tool_use_id": "c1", "content": []})],
    ),
    "thinking, signed and redacted": (
        [
            user(text("a")),
            assistant(
                {"type": "thinking", "thinking": "", "signature": "s"}, {"type": "redacted_thinking", "data": "d"}
            ),
            user(text("b")),
        ],
        [
            user(text("a")),
            assistant(
                {"type": "thinking", "thinking": "", "signature": "s"}, {"type": "redacted_thinking", "data": "d"}
            ),
            user(text("b")),
        ],
    ),
    "an item goes back as it came": (
        [user(text("a")), assistant({"type": "raw_item", **item(SEARCH)}, text("b")), user(text("c"))],
        [user(text("a")), assistant(SEARCH, text("b")), user(text("c"))],
    ),
    "a paused turn ends in one": (
        [user(text("a")), assistant(text("b "), {"type": "raw_item", **item(SEARCH)})],
        [user(text("a")), assistant(text("b "), SEARCH)],
    ),
    "an item of another format does not": (
        [user(text("a")), assistant({"type": "raw_item", **item(SEARCH, "openai-chat")}, text("b")), user(text("c"))],
        [user(text("a")), assistant(text("b")), user(text("c"))],
    ),
    "a text with its citations": (
        [user(text("a")), assistant(text("b", **item(CITED))), user(text("c"))],
        [user(text("a")), assistant({"type": "text", "citations": CITED["citations"], "text": "b"}), user(text("c"))],
    ),
    "a text with an item of another format": (
        [user(text("a")), assistant(text("b", **item(CITED, "openai-chat"))), user(text("c"))],
        [user(text("a")), assistant(text("b")), user(text("c"))],
    ),
    "a call with its caller, under the name it is sent with": (
        [
            assistant(
                {
                    "type": "tool_use",
                    "id": "c1",
                    "name": "ns__look",
                    "input": {},
                    **item({"type": "tool_use", "caller": {"type": "direct"}}),
                }
            ),
            user(text("b")),
        ],
        [
            assistant({"type": "tool_use", "caller": {"type": "direct"}, "id": "c1", "name": "ns__look", "input": {}}),
            user(text("b")),
        ],
    ),
    "a block of a later version": (
        [user(text("a"), {"type": "later", "x": 1})],
        [user(text("a"), {"type": "later", "x": 1})],
    ),
    "a system message": (
        [user(text("a")), changed(text(" "), text("b", **MARK), REMOVED), assistant(text("c ")), user(text("d"))],
        [user(text("a")), changed(text("b", **MARK), REMOVED), assistant(text("c ")), user(text("d"))],
    ),
    "a system message at the end": (
        [user(text("a")), assistant(text("b ")), user(text("c")), changed(text("d"))],
        [user(text("a")), assistant(text("b ")), user(text("c")), changed(text("d"))],
    ),
    "one of blank text": ([user(text("a")), changed(text(" "))], [user(text("a"))]),
    "a tool that is added by its name": ([user(text("a")), changed(ADDED)], [user(text("a")), changed(ADDED)]),
    "half a surrogate pair": ([user(text("a\ud83d"))], [user(text("a\ufffd"))]),
}


@pytest.mark.parametrize("messages, wire", MESSAGES.values(), ids=MESSAGES.keys())
def test_messages_as_they_are_sent(messages: list[dict[str, Any]], wire: list[dict[str, Any]]) -> None:
    before = repr(messages)
    assert json.dumps(sent(messages)) == json.dumps(wire)
    assert repr(messages) == before


REFUSED: dict[str, tuple[str, list[dict[str, Any]], tuple[str, str]]] = {
    "a prefill of a model that takes none": (
        OPUS_48,
        [user(text("a")), assistant(text("b"))],
        (
            "unsupported",
            "messages: claude-opus-4-8 takes no prefill, and the last message is the assistant's; end with a user's "
            "message (or, if the model does take it, pass model_traits={'claude-opus-4-8': {'prefill': True}})",
        ),
    ),
    "nothing but blank text": (
        SONNET,
        [user(text(" "))],
        ("invalid_request", "messages: the last message holds only blank text, which the API refuses; give it text"),
    ),
    "a last question of blank text": (
        SONNET,
        [user(text("a")), assistant(text("b")), user(text(" "))],
        ("invalid_request", "messages: the last message holds only blank text, which the API refuses; give it text"),
    ),
    "a last question of blank text, and a system message": (
        SONNET,
        [user(text("a")), assistant(text("b")), user(text(" ")), changed(text("c"))],
        ("invalid_request", "messages: the last message holds only blank text, which the API refuses; give it text"),
    ),
    "a prefill behind a system message": (
        OPUS_48,
        [user(text("a")), changed(text("c")), assistant(text("b"))],
        (
            "unsupported",
            "messages: claude-opus-4-8 takes no prefill, and the last message is the assistant's; end with a user's "
            "message (or, if the model does take it, pass model_traits={'claude-opus-4-8': {'prefill': True}})",
        ),
    ),
    "a prefill of blank text": (
        SONNET,
        [user(text("a")), assistant(text(" "))],
        ("invalid_request", "messages: the last message holds only blank text, which the API refuses; give it text"),
    ),
    "no messages": (
        SONNET,
        [],
        ("invalid_request", "messages: the last message holds only blank text, which the API refuses; give it text"),
    ),
    "audio": (
        SONNET,
        [user({"type": "audio", "source": PNG})],
        (
            "unsupported",
            "messages: this API takes no audio blocks; leave them out, or pass "
            "formatter=NativeFormatter(unsupported_media='strip')",
        ),
    ),
    "video within a result": (
        SONNET,
        [user({"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "video", "source": PNG}]})],
        (
            "unsupported",
            "messages: this API takes no video blocks; leave them out, or pass "
            "formatter=NativeFormatter(unsupported_media='strip')",
        ),
    ),
}


@pytest.mark.parametrize("model, messages, said", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused_before_it_is_sent(model: str, messages: list[dict[str, Any]], said: tuple[str, str]) -> None:
    with pytest.raises(MembraneError) as raised:
        CODEC.body(ProviderRequest(model, messages), stream=False)
    assert (raised.value.type, raised.value.message) == said


def test_a_prefill_that_the_caller_knows_to_be_taken() -> None:
    traits = {OPUS_48: {"prefill": True}}
    adapter = AnthropicAdapter(api_key="k", base_url="http://h", model_traits=traits)
    request = render(adapter, config={"model": OPUS_48}, messages=[ASKED, {"participant": "Claude", "content": "b "}])
    assert json.loads(request.body)["messages"] == [HI, assistant(text("b"))]


def test_a_paused_turn_is_no_prefill() -> None:
    messages = [user(text("a")), assistant(text("b"), {"type": "raw_item", **item(SEARCH)})]
    assert CODEC.body(ProviderRequest(OPUS_48, messages), stream=False)["messages"][1] == assistant(text("b"), SEARCH)


def test_media_that_the_formatter_strips() -> None:
    adapter = AnthropicAdapter(api_key="k", base_url="http://h")
    request = {
        "messages": [{"participant": "Ann", "content": [{"type": "audio", "source": PNG}, text("hi")]}],
        "config": {"model": SONNET, "max_tokens": 64},
    }
    rendered = adapter.render(request, formatter=NativeFormatter(unsupported_media="strip"))
    assert json.loads(rendered.body)["messages"] == [HI]


def test_a_tool_that_needs_no_change_is_sent_as_the_same_object() -> None:
    tool = {"name": "look", "input_schema": {"type": "object", "properties": {"a": {"anyOf": [{}, {}]}}}}
    body = CODEC.body(ProviderRequest(SONNET, [user(text("a"))], tools=[tool]), stream=False)
    assert body["tools"][0] is tool


def test_the_models_this_adapter_is_for() -> None:
    adapter = AnthropicAdapter(api_key="k", base_url="http://h")
    assert [adapter.supports_model(model) for model in (SONNET, "anthropic/claude-3", "gpt-4o")] == [True, False, False]
