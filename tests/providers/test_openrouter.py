"""openrouter: what goes out beside the dialect, and reasoning_details there and back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from membrane_lite import (
    GeneratedImage,
    Membrane,
    MembraneError,
    OpenRouterAdapter,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
)
from membrane_lite import loopback as wire
from membrane_lite.loopback import Failure, LoopbackProvider, Raw, Reply, faults, openrouter
from membrane_lite.providers.reasoning_details import joined_details

Json = Any
KEY = "a-key-of-the-test"
MODEL = "anthropic/claude-haiku-4.5"
JSON = {"Content-Type": "application/json"}
SSE = {"Content-Type": "text/event-stream"}
FORMAT = "openai-chat"


def request(**more: Any) -> Json:
    config = {"model": MODEL, "max_tokens": 64, **more.pop("config", {})}
    return {"messages": [{"participant": "User", "content": "hi"}], "config": config, "prompt_caching": False, **more}


def rendered(given: Json, *, stream: bool = False, **settings: Any) -> Json:
    with OpenRouterAdapter(api_key=KEY, **settings) as adapter:
        return json.loads(adapter.render(given, stream=stream).body)


@contextmanager
def served(*script: Any, **settings: Any) -> Iterator[tuple[Membrane, LoopbackProvider]]:
    with LoopbackProvider(script) as provider, provider.transport() as transport:
        adapter = OpenRouterAdapter(api_key=KEY, base_url=provider.url + "/api/v1", transport=transport, **settings)
        yield Membrane(adapter), provider


# Requests


def test_the_exact_body_of_a_stream() -> None:
    given = request(
        system="be kind",
        stop_sequences=["a", "b", "c", "d", "e"],
        config={"temperature": 0.5, "top_p": 0.9, "top_k": 3, "presence_penalty": 0.1, "repetition_penalty": 1.1},
        provider_params={"provider": {"only": ["anthropic"]}, "reasoning": {"effort": "low"}},
    )
    with OpenRouterAdapter(api_key=KEY) as adapter:
        assert adapter.render(given, stream=True).body == (
            b'{"model":"anthropic/claude-haiku-4.5","messages":[{"role":"system","content":"be kind"},'
            b'{"role":"user","content":"User: hi"}],"max_tokens":64,"temperature":0.5,"presence_penalty":0.1,'
            b'"stop":["a","b","c","d"],"provider":{"only":["anthropic"]},"reasoning":{"effort":"low"},'
            b'"stream":true,"stream_options":{"include_usage":true}}'
        )


SAMPLING: dict[str, tuple[Json, Json]] = {
    "Claude takes the temperature": ({"model": MODEL, "temperature": 0, "top_p": 0.9}, {"temperature": 0}),
    "or top_p": ({"model": MODEL, "top_p": 0.9}, {"top_p": 0.9}),
    "others take both": (
        {"model": "openai/gpt-4o", "temperature": 0.5, "top_p": 0.9},
        {"temperature": 0.5, "top_p": 0.9},
    ),
}


@pytest.mark.parametrize("config, sent", SAMPLING.values(), ids=SAMPLING.keys())
def test_sampling(config: Json, sent: Json) -> None:
    body = rendered(request(config=config))
    assert {name: body[name] for name in ("temperature", "top_p") if name in body} == sent


def test_cache_markers_go_out_on_system_messages_tools_and_results() -> None:
    marker = {"type": "ephemeral", "ttl": "1h"}
    body = rendered(
        {
            "system": [{"type": "text", "text": "be kind"}],
            "tools": [{"name": "look"}],
            "messages": [
                {"participant": "User", "content": "hi", "cache_breakpoint": True},
                {"participant": "Claude", "content": [{"type": "tool_use", "id": "c1", "name": "look", "input": {}}]},
                {
                    "participant": "User",
                    "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "red"}],
                    "cache_breakpoint": True,
                },
            ],
            "config": {"model": MODEL},
            "cache_ttl": "1h",
        }
    )
    assert [body["messages"][1], body["messages"][3]] == [
        {"role": "user", "content": [{"type": "text", "text": "User: hi", "cache_control": marker}]},
        {
            "role": "tool",
            "tool_call_id": "c1",
            "content": [{"type": "text", "text": "red", "cache_control": marker}],
        },
    ]


def test_without_a_breakpoint_the_system_text_and_the_tools_are_marked() -> None:
    body = rendered(request(system="be kind", tools=[{"name": "look"}], prompt_caching=True))
    marker = {"type": "ephemeral"}
    assert body["messages"][0]["content"] == [{"type": "text", "text": "be kind", "cache_control": marker}]
    assert body["tools"][0]["cache_control"] == marker


HEADS: dict[str, tuple[Json, list[tuple[str, str]]]] = {
    "by default": ({}, [("HTTP-Referer", "https://membrane.local"), ("X-Title", "Membrane")]),
    "of one's own": ({"http_referer": "https://a", "x_title": "A"}, [("HTTP-Referer", "https://a"), ("X-Title", "A")]),
    "none": ({"http_referer": "", "x_title": ""}, []),
}


@pytest.mark.parametrize("settings, named", HEADS.values(), ids=HEADS.keys())
def test_the_head_of_a_request(settings: Json, named: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
    with OpenRouterAdapter(**settings) as adapter:
        sent = adapter.render(request())
    assert sent.url == "https://openrouter.ai/api/v1/chat/completions"
    assert list(sent.headers)[4:] == [*named, ("Authorization", f"Bearer {KEY}")]
    assert (adapter.name, adapter.supports_model(MODEL), adapter.supports_model("gpt-4o")) == (
        "openrouter",
        True,
        False,
    )


# Reasoning


def text_piece(text: str | None = None, index: int | None = 0, **more: Any) -> Json:
    fields = {"type": "reasoning.text", "text": text, "index": index, **more}
    return {name: value for name, value in fields.items() if value is not None}


ENCRYPTED = {"type": "reasoning.encrypted", "data": "e", "id": "r1", "index": 1}
PIECES: dict[str, tuple[list[Json], list[Json]]] = {
    "a text in pieces, its signature last": (
        [text_piece("so "), text_piece("it is"), text_piece(signature="s")],
        [text_piece("so it is", signature="s")],
    ),
    "a text without an index": ([text_piece("a", None), text_piece("b", None)], [text_piece("ab", None)]),
    "two texts": ([text_piece("a"), text_piece("b", 1)], [text_piece("a"), text_piece("b", 1)]),
    "a summary, then what is encrypted": (
        [{"type": "reasoning.summary", "summary": part, "index": 0} for part in "ab"] + [ENCRYPTED],
        [{"type": "reasoning.summary", "summary": "ab", "index": 0}, ENCRYPTED],
    ),
    "what is encrypted comes whole": ([ENCRYPTED, ENCRYPTED], [ENCRYPTED, ENCRYPTED]),
    "a null says nothing": (
        [text_piece("a", signature="s"), {**text_piece("b"), "signature": None}],
        [text_piece("ab", signature="s")],
    ),
    "a kind that is not known": ([{"type": "x"}, {"type": "x"}], [{"type": "x"}, {"type": "x"}]),
}


@pytest.mark.parametrize("pieces, entries", PIECES.values(), ids=PIECES.keys())
def test_the_pieces_of_a_stream_become_entries(pieces: list[Json], entries: list[Json]) -> None:
    assert joined_details(pieces) == entries


def chunks(*deltas: Json, **last: Any) -> Raw:
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "native_finish_reason": "STOP"}], **last}
    events = [*({"choices": [{"index": 0, "delta": delta}]} for delta in deltas), end]
    return Raw(200, SSE, openrouter.COMMENT.decode() + "".join(f"data: {json.dumps(each)}\n\n" for each in events))


def whole(**message: Any) -> Raw:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    return Raw(200, JSON, json.dumps({"model": MODEL, "choices": [choice]}))


def held(*entries: Json) -> Json:
    return {"raw_item": {"reasoning_details": list(entries)}, "raw_format": FORMAT}


def carrier(**fields: Any) -> Text:
    return Text("", raw_item={"type": "message", **fields}, raw_format=FORMAT)


TWO = [text_piece("a", None), text_piece("b", None)]
REASONED: dict[str, tuple[Raw, list[Any]]] = {
    "said twice, heard once": (
        chunks(
            {"content": "", "reasoning": "so ", "reasoning_details": [text_piece("so ")]},
            {"content": "", "reasoning": "it is", "reasoning_details": [text_piece("it is")]},
            {"content": "", "reasoning_details": [text_piece(signature="s")]},
            {"content": "Yes."},
        ),
        [Thinking("so it is", **held(text_piece("so it is", signature="s"))), Text("Yes.")],
    ),
    "said in the details alone": (
        chunks({"reasoning_details": [text_piece("so")]}, {"content": "Yes."}),
        [Thinking("so", **held(text_piece("so"))), Text("Yes.")],
    ),
    "encrypted, and nothing said": (
        chunks({"content": "", "reasoning": None, "reasoning_details": [ENCRYPTED]}, {"content": "Yes."}),
        [Text("Yes."), carrier(reasoning_details=[ENCRYPTED])],
    ),
    "encrypted, after the text": (
        chunks(
            {"reasoning": "so", "reasoning_details": [text_piece("so")]},
            {"content": "Yes."},
            {"content": "", "reasoning_details": [ENCRYPTED]},
        ),
        [Thinking("so", **held(text_piece("so"))), Text("Yes."), carrier(reasoning_details=[ENCRYPTED])],
    ),
    "whole: as it came": (
        whole(content="Yes.", reasoning="ab", reasoning_details=TWO),
        [Thinking("ab", **held(*TWO)), Text("Yes.")],
    ),
    "no details": (whole(content="Yes.", reasoning="so"), [Thinking("so"), Text("Yes.")]),
    "details of nothing": (
        whole(content="Yes.", reasoning=None, reasoning_details=[]),
        [Text("Yes.")],
    ),
}


@pytest.mark.parametrize("answer, content", REASONED.values(), ids=REASONED.keys())
def test_reasoning_is_heard_once_and_its_details_are_kept(answer: Raw, content: list[Any]) -> None:
    with served(answer) as (membrane, _):
        response: Any = membrane.stream(request())
    assert response.content == content


@pytest.mark.parametrize("answer, content", REASONED.values(), ids=REASONED.keys())
def test_reasoning_goes_back_as_details_where_there_are_any_else_as_text(answer: Raw, content: list[Any]) -> None:
    with served(answer) as (membrane, _):
        response: Any = membrane.stream(request())
    kept = [block.raw_item["reasoning_details"] for block in content if block.raw_item]
    entries = [entry for details in kept for entry in details]
    said = "".join(block.thinking for block in content if isinstance(block, Thinking))
    reasoning = {"reasoning_details": entries} if entries else {"reasoning": said} if said else {}
    history = [*request()["messages"], *response.as_messages(), {"participant": "User", "content": "And?"}]
    assert rendered(request(messages=history))["messages"][1] == {
        "role": "assistant",
        "content": "Yes.",
        **reasoning,
    }


def test_two_rounds_with_tools_carry_the_reasoning_unchanged() -> None:
    look = wire.ToolCall("look", {"at": 1}, id="c1")
    again = wire.ToolCall("look", {"at": 2}, id="c2")
    script = [
        Reply(wire.Thinking("Where is it?", signature="s1"), "I look.", look),
        Reply(wire.Thinking("And now?", signature="s2"), wire.RedactedThinking("e2"), again),
        Reply("Red."),
    ]
    with served(*script) as (membrane, provider):
        response: Any = membrane.stream(
            request(tools=[{"name": "look"}]), on_tool_calls=lambda calls: [ToolResult(c.id, "r") for c in calls]
        )
        body = provider.requests[2].json
    assert response.text == "I look.Red."
    assert [block.type for block in response.content if isinstance(block, (Thinking, ToolUse))] == [
        "thinking",
        "tool_use",
        "thinking",
        "tool_use",
    ]
    assert json.dumps(body["messages"][1:], separators=(",", ":")) == (
        '[{"role":"assistant","content":"I look.","reasoning_details":['
        '{"type":"reasoning.text","text":"Where is it?","format":"anthropic-claude-v1","index":0,"signature":"s1"}],'
        '"tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{\\"at\\":1}"}}]},'
        '{"role":"tool","tool_call_id":"c1","content":"r"},'
        '{"role":"assistant","content":null,"reasoning_details":['
        '{"type":"reasoning.text","text":"And now?","format":"anthropic-claude-v1","index":0,"signature":"s2"},'
        '{"type":"reasoning.encrypted","data":"e2","format":"anthropic-claude-v1","index":1}],'
        '"tool_calls":[{"id":"c2","type":"function","function":{"name":"look","arguments":"{\\"at\\":2}"}}]},'
        '{"role":"tool","tool_call_id":"c2","content":"r"}]'
    )


# What else stands on a message

URL = {"type": "url_citation", "url_citation": {"url": "https://a"}}
ANNOTATED: dict[str, tuple[Raw, list[Any]]] = {
    "before the text": (chunks({"content": "", "annotations": [URL]}, {"content": "Yes."}), [URL]),
    "after it": (chunks({"content": "Yes."}, {"content": "", "annotations": [URL]}), [URL]),
    "whole": (whole(content="Yes.", annotations=[URL]), [URL]),
}


@pytest.mark.parametrize("answer, annotations", ANNOTATED.values(), ids=ANNOTATED.keys())
def test_annotations_are_kept_with_the_text_and_go_back(answer: Raw, annotations: list[Any]) -> None:
    with served(answer) as (membrane, _):
        response: Any = membrane.stream(request())
    assert response.content == [Text("Yes.", raw_item={"annotations": annotations}, raw_format=FORMAT)]
    assert response.raw.response["choices"][0]["message"]["annotations"] == annotations
    history = [*request()["messages"], *response.as_messages(), *request()["messages"]]
    assert rendered(request(messages=history))["messages"][1]["annotations"] == annotations


INLINE = {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,QUJD"}}
REMOTE = {"type": "image_url", "image_url": {"url": "https://a/b.png"}}
PICTURED = {
    "whole": whole(content="Here.", images=[INLINE, REMOTE]),
    "in a stream": chunks({"content": "Here."}, {"content": "", "images": [INLINE, REMOTE]}),
}


@pytest.mark.parametrize("answer", PICTURED.values(), ids=PICTURED.keys())
def test_images_the_model_made(answer: Raw) -> None:
    with served(answer) as (membrane, _):
        response: Any = membrane.stream(request())
    images = [GeneratedImage(data="QUJD", mime_type="image/jpeg"), GeneratedImage(url="https://a/b.png")]
    assert response.content == [Text("Here."), *images]
    assert response.raw.response["choices"][0]["message"]["images"] == [INLINE, REMOTE]


def test_audio_a_document_and_an_image_go_in_as_parts() -> None:
    content = [
        {"type": "audio", "source": {"type": "base64", "media_type": "audio/wav", "data": "QUJD"}},
        {
            "type": "document",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBE"},
            "filename": "a.pdf",
        },
        {"type": "image", "source": {"type": "url", "url": "https://a/b.png"}},
    ]
    body = rendered(request(messages=[{"participant": "User", "content": content}]))
    assert body["messages"][0]["content"] == [
        {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"}},
        REMOTE,
    ]


PIECES = [{"id": "audio_1", "transcript": "Hello"}, {"data": "QQ=="}, {"transcript": " there"}, {"data": "QkNE"}]
SPOKEN = {
    "whole": whole(content=None, audio={"id": "audio_1", "data": "QUJDRA==", "transcript": "Hello there"}),
    "in pieces, each base64 by itself": chunks(*({"audio": piece} for piece in PIECES)),
}


@pytest.mark.parametrize("answer", SPOKEN.values(), ids=SPOKEN.keys())
def test_audio_comes_back_with_what_it_says_and_goes_back_as_its_id(answer: Raw) -> None:
    with served(answer) as (membrane, _):
        response: Any = membrane.stream(request())
    (spoken,) = response.content
    assert (spoken.type, spoken.source["data"], spoken.transcript) == ("audio", "QUJDRA==", "Hello there")
    history = [*request()["messages"], *response.as_messages(), *request()["messages"]]
    assert rendered(request(messages=history))["messages"][1]["audio"] == {"id": "audio_1"}


REFUSED = {
    "whole": whole(content=None, refusal="I cannot."),
    "in pieces": chunks({"refusal": "I "}, {"refusal": "cannot."}),
}


@pytest.mark.parametrize("answer", REFUSED.values(), ids=REFUSED.keys())
def test_a_refusal_is_told_apart_from_text(answer: Raw) -> None:
    with served(answer) as (membrane, _):
        response: Any = membrane.stream(request())
    assert (response.text, response.stop_reason, response.details.stop.refusal) == ("", "refusal", "I cannot.")


def test_what_a_call_cost_and_who_answered() -> None:
    with served(Reply("Hello", usage=wire.Usage(9, 3, cache_read_tokens=4))) as (membrane, _):
        response: Any = membrane.stream(request())
    usage = response.details.usage
    assert (usage.input_tokens, usage.cache_read_tokens, usage.output_tokens) == (9, 4, 3)
    assert usage.provider_cost == 16 * openrouter.COST_PER_TOKEN
    assert response.raw.response["provider"] == "Loopback"
    assert response.raw.response["choices"][0]["native_finish_reason"] == "stop"


def test_cache_counts_under_anthropic_s_names() -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 3,
        "cache_read_input_tokens": 60,
        "cache_creation_input_tokens": 30,
    }
    with served(chunks({"content": "a"}, usage=usage)) as (membrane, _):
        seen: Any = membrane.stream(request()).details.usage  # type: ignore[union-attr]
    assert (seen.input_tokens, seen.cache_read_tokens, seen.cache_creation_tokens) == (10, 60, 30)


# Failures

UPSTREAM = {"error": {"code": 429, "message": "Provider returned error", "metadata": {"raw": "slow down, please"}}}
FAILURES: dict[str, tuple[Any, tuple[str, bool, int | None, str]]] = {
    "no key": (openrouter.error(401, "401", "No auth credentials found"), ("auth", False, 401, "No auth")),
    "no credit": (openrouter.error(402, "402", "Insufficient credits"), ("auth", False, 402, "credits")),
    "too many": (
        openrouter.error(429, "429", "Provider returned error", raw="slow down"),
        ("rate_limit", True, 429, "slow down"),
    ),
    "the provider behind it is down": (Failure(502), ("server", True, 502, "")),
    "in a 200": (Raw(200, JSON, json.dumps(UPSTREAM)), ("rate_limit", True, 429, "slow down, please")),
    "in a chunk": (
        faults.error(Reply("Hello"), after=2, type="502", message="Upstream gone"),
        ("server", True, 502, "Upstream gone"),
    ),
}


@pytest.mark.parametrize("answer, like", FAILURES.values(), ids=FAILURES.keys())
def test_failures(answer: Any, like: Any) -> None:
    *seen, words = like
    with served(answer) as (membrane, _), pytest.raises(MembraneError) as raised:
        membrane.stream(request(), retry=False)
    assert [raised.value.type, raised.value.retryable, raised.value.http_status] == seen
    assert words in raised.value.message


def test_what_came_before_an_error_in_a_chunk_is_kept() -> None:
    with served(faults.error(Reply("Hello, world!"), after=2)) as (membrane, _):
        heard: list[str] = []
        with pytest.raises(MembraneError) as raised:
            membrane.stream(request(), retry=False, on_chunk=lambda text, meta: heard.append(text))
    assert (heard, raised.value.raw_assistant_text) == (["Hello,"], "Hello,")


ANSWER = Reply(wire.Thinking("Hm."), "Hello, world!", wire.ToolCall("look", {"at": 1}, id="c1"))
EVENTS = openrouter.events(ANSWER)
COMPLETE = len(EVENTS) - 1  # with the finish reason; then come usage and [DONE]


@pytest.mark.parametrize("after", range(len(EVENTS) + 2))
def test_an_end_at_every_event_boundary(after: int) -> None:
    with served(faults.end(ANSWER, after=after)) as (membrane, _):
        if after < COMPLETE:
            with pytest.raises(MembraneError) as raised:
                membrane.stream(request(), retry=False)
            assert (raised.value.type, raised.value.retryable) == ("network", True)
            assert "Hello, world!".startswith(raised.value.raw_assistant_text)
        else:
            response = membrane.stream(request(), retry=False)
            assert (response.text, response.stop_reason) == ("Hello, world!", "tool_use")


def test_the_loopback_provider_refuses_reasoning_in_pieces() -> None:
    history: Json = [
        *request()["messages"],
        {
            "participant": "Claude",
            "content": [{"type": "text", "text": "a", **held(text_piece("a"), text_piece("b"))}],
        },
        *request()["messages"],
    ]
    with served(Reply("x")) as (membrane, _), pytest.raises(MembraneError) as raised:
        membrane.complete(request(messages=history), retry=False)
    assert raised.value.message == "openrouter: HTTP 400: reasoning_details: an entry is split"
