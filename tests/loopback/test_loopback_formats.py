"""The exact bytes of each wire format, without a server."""

from __future__ import annotations

import json
from typing import Any

import pytest

from membrane_lite.loopback import RedactedThinking, Reply, Text, Thinking, ToolCall, Usage, anthropic, chat
from membrane_lite.loopback.format import Asked

ASKED = Asked(
    body={
        "model": "m",
        "system": "Be brief.",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
    },
    number=7,
)
WITH_USAGE = ASKED._replace(body={**ASKED.body, "stream_options": {"include_usage": True}})
TOOL_TURN = Reply(Thinking("Noon?", signature="c2ln"), Text("I look."), ToolCall("get_time", {"zone": "UTC"}))


def test_an_anthropic_stream() -> None:
    assert b"".join(anthropic.events(Reply("Hello, world!"), ASKED)).decode() == (
        "event: message_start\n"
        'data: {"type":"message_start","message":{"id":"msg_loopback_000007","type":"message","role":"assistant",'
        '"model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":3,"cache_creation_input_tokens":0,'
        '"cache_read_input_tokens":0,"output_tokens":1}}}\n\n'
        "event: content_block_start\n"
        'data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n'
        "event: ping\n"
        'data: {"type": "ping"}\n\n'
        "event: content_block_delta\n"
        'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello,"}}\n\n'
        "event: content_block_delta\n"
        'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" world!"}}\n\n'
        "event: content_block_stop\n"
        'data: {"type":"content_block_stop","index":0}\n\n'
        "event: message_delta\n"
        'data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":'
        '{"input_tokens":3,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":4}}\n\n'
        "event: message_stop\n"
        'data: {"type":"message_stop"}\n\n'
    )


def test_an_anthropic_document() -> None:
    assert anthropic.document(TOOL_TURN, ASKED).decode() == (
        '{"id":"msg_loopback_000007","type":"message","role":"assistant","model":"m","content":['
        '{"type":"thinking","thinking":"Noon?","signature":"c2ln"},'
        '{"type":"text","text":"I look."},'
        '{"type":"tool_use","id":"toolu_loopback_000007_2","name":"get_time","input":{"zone":"UTC"}}],'
        '"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":3,"cache_creation_input_tokens":0,'
        '"cache_read_input_tokens":0,"output_tokens":7}}'
    )


ANTHROPIC_BLOCKS: dict[str, tuple[Any, list[dict[str, Any]]]] = {
    "thinking ends with its signature": (
        Thinking("Is it?", signature="c2ln"),
        [
            {"content_block": {"type": "thinking", "thinking": "", "signature": ""}},
            {"delta": {"type": "thinking_delta", "thinking": "Is"}},
            {"delta": {"type": "thinking_delta", "thinking": " it?"}},
            {"delta": {"type": "signature_delta", "signature": "c2ln"}},
        ],
    ),
    "redacted thinking comes whole": (
        RedactedThinking("ZGF0YQ=="),
        [{"content_block": {"type": "redacted_thinking", "data": "ZGF0YQ=="}}],
    ),
    "a tool's input comes as pieces of JSON, the first one empty": (
        ToolCall("get_time", {"zone": "UTC"}, id="toolu_1"),
        [
            {"content_block": {"type": "tool_use", "id": "toolu_1", "name": "get_time", "input": {}}},
            {"delta": {"type": "input_json_delta", "partial_json": ""}},
            {"delta": {"type": "input_json_delta", "partial_json": '{"zone":'}},
            {"delta": {"type": "input_json_delta", "partial_json": ' "UTC"}'}},
        ],
    ),
    "a tool without arguments has only the empty piece": (
        ToolCall("get_time", {}, id="toolu_1"),
        [
            {"content_block": {"type": "tool_use", "id": "toolu_1", "name": "get_time", "input": {}}},
            {"delta": {"type": "input_json_delta", "partial_json": ""}},
        ],
    ),
    "input given as text goes out as it is": (
        ToolCall("get_time", '{"zo', id="toolu_1"),
        [
            {"content_block": {"type": "tool_use", "id": "toolu_1", "name": "get_time", "input": {}}},
            {"delta": {"type": "input_json_delta", "partial_json": ""}},
            {"delta": {"type": "input_json_delta", "partial_json": '{"zo'}},
        ],
    ),
}


@pytest.mark.parametrize("piece, expected", ANTHROPIC_BLOCKS.values(), ids=ANTHROPIC_BLOCKS.keys())
def test_an_anthropic_block(piece: Any, expected: list[dict[str, Any]]) -> None:
    events = [_data(event) for event in anthropic.events(Reply(piece)) if event != anthropic.PING]
    parts = [{key: event[key] for key in event if key in ("content_block", "delta")} for event in events[1:-3]]
    assert parts == expected


def test_the_anthropic_events_count_what_the_reply_says_and_where_it_stopped() -> None:
    usage = Usage(input_tokens=9, output_tokens=8, cache_read_tokens=7, cache_creation_tokens=6)
    reply = Reply("a", stop_reason="stop_sequence", stop_sequence="END", usage=usage, model="other")
    started, *_, delta, _stopped = [_data(event) for event in anthropic.events(reply, ASKED)]
    wire = {"input_tokens": 9, "cache_creation_input_tokens": 6, "cache_read_input_tokens": 7, "output_tokens": 8}
    assert started["message"]["model"] == "other"
    assert started["message"]["usage"] == {**wire, "output_tokens": 1}
    assert delta == {
        "type": "message_delta",
        "delta": {"stop_reason": "stop_sequence", "stop_sequence": "END"},
        "usage": wire,
    }


def test_an_anthropic_error() -> None:
    assert anthropic.error_event() == (
        b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n'
    )


CHUNK = '{"id":"chatcmpl-loopback-000007","object":"chat.completion.chunk","created":1750000000,"model":"m","choices":['


def test_a_chat_stream() -> None:
    assert b"".join(chat.events(Reply("Hello, world!"), ASKED)).decode() == (
        f"data: {CHUNK}"
        '{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}\n\n'
        f'data: {CHUNK}{{"index":0,"delta":{{"content":"Hello,"}},"logprobs":null,"finish_reason":null}}]}}\n\n'
        f'data: {CHUNK}{{"index":0,"delta":{{"content":" world!"}},"logprobs":null,"finish_reason":null}}]}}\n\n'
        f'data: {CHUNK}{{"index":0,"delta":{{}},"logprobs":null,"finish_reason":"stop"}}]}}\n\n'
        "data: [DONE]\n\n"
    )


def test_a_chat_stream_gives_its_usage_where_it_is_asked_to() -> None:
    *_, content, finish, usage, done = chat.events(Reply("Hello"), WITH_USAGE)
    assert _data(content)["usage"] is None
    assert _data(finish)["usage"] is None
    assert usage.decode() == (
        f'data: {CHUNK}],"usage":{{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,'
        '"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}}\n\n'
    )
    assert done == b"data: [DONE]\n\n"


def test_a_chat_document() -> None:
    assert chat.document(TOOL_TURN, ASKED).decode() == (
        '{"id":"chatcmpl-loopback-000007","object":"chat.completion","created":1750000000,"model":"m","choices":[{"index":0,'
        '"message":{"role":"assistant","content":"I look.","reasoning_content":"Noon?","refusal":null,"tool_calls":['
        '{"id":"call_loopback_000007_2","type":"function",'
        '"function":{"name":"get_time","arguments":"{\\"zone\\": \\"UTC\\"}"}}'
        ']},"logprobs":null,"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":7,"total_tokens":10,'
        '"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":2}}}'
    )


def test_the_deltas_of_a_chat_stream_with_two_tool_calls() -> None:
    reply = Reply(Thinking("So."), ToolCall("a", {"x": 1}, id="call_1"), ToolCall("b", {}, id="call_2"))
    deltas = [_data(event)["choices"][0]["delta"] for event in chat.events(reply)[:-1]]
    assert deltas == [
        {"role": "assistant", "content": ""},
        {"reasoning_content": "So."},
        {"tool_calls": [_chat_call(0, "call_1", "a")]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"x":'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": " 1}"}}]},
        {"tool_calls": [_chat_call(1, "call_2", "b")]},
        {"tool_calls": [{"index": 1, "function": {"arguments": "{}"}}]},
        {},
    ]


FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
    "eos": "eos",
}


@pytest.mark.parametrize("ours, word", FINISH_REASONS.items(), ids=FINISH_REASONS.keys())
def test_a_chat_finish_reason(ours: str, word: str) -> None:
    assert json.loads(chat.document(Reply("a", stop_reason=ours)))["choices"][0]["finish_reason"] == word


def test_chat_counts_cached_tokens_into_the_prompt() -> None:
    usage = Usage(input_tokens=5, output_tokens=8, cache_read_tokens=3, cache_creation_tokens=2, thinking_tokens=4)
    assert json.loads(chat.document(Reply("a", usage=usage)))["usage"] == {
        "prompt_tokens": 10,
        "completion_tokens": 8,
        "total_tokens": 18,
        "prompt_tokens_details": {"cached_tokens": 3},
        "completion_tokens_details": {"reasoning_tokens": 4},
    }


def test_a_chat_error() -> None:
    assert chat.error_event("server_error", "Bad day") == (
        b'data: {"error":{"message":"Bad day","type":"server_error","param":null,"code":null}}\n\n'
    )


DELTAS = {
    "a word each, with the space before it": ("Hello,  big\nworld ", None, ["Hello,", "  big", "\nworld", " "]),
    "so many characters each": ("Grüße!", 4, ["Grüß", "e!"]),
    "none for an empty text": ("", None, []),
}


@pytest.mark.parametrize("text, size, expected", DELTAS.values(), ids=DELTAS.keys())
def test_how_a_text_is_cut(text: str, size: int | None, expected: list[str]) -> None:
    chunks = [_data(event)["choices"][0]["delta"] for event in chat.events(Reply(text, delta_size=size))[1:-2]]
    assert [chunk["content"] for chunk in chunks] == expected


def test_text_is_sent_as_utf_8_and_a_lone_surrogate_as_an_escape() -> None:
    assert '"text":"Grüße"'.encode() in anthropic.document(Reply("Grüße"))
    assert b'"text":"half \\ud83d"' in anthropic.document(Reply("half \ud83d"))


def _chat_call(index: int, id: str, name: str) -> dict[str, Any]:
    return {"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}}


def _data(event: bytes) -> Any:
    return json.loads(event.partition(b"data: ")[2])
