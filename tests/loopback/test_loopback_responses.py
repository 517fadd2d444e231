"""openai_responses on loopback: the exact bytes of its answers, and what it refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from plain_client import Browser

from membrane_lite.loopback import Image, LoopbackProvider, Reply, Thinking, ToolCall, Usage
from membrane_lite.loopback import openai_responses as responses
from membrane_lite.loopback.format import Asked

ASKED = Asked(body={"model": "m", "input": "Hi", "include": ["reasoning.encrypted_content"]}, number=7)
HEAD = '"id":"resp_loopback_000007","object":"response","created_at":1750000000'


def test_a_stream() -> None:
    begun = (
        f'"response":{{{HEAD},"status":"in_progress","error":null,"incomplete_details":null,"model":"m","output":[],'
        '"service_tier":"default","usage":null}}\n\n'
    )
    at = '"item_id":"msg_loopback_000007_0","output_index":0,"content_index":0'
    item = (
        '{"id":"msg_loopback_000007_0","type":"message","status":"completed","role":"assistant",'
        '"content":[{"type":"output_text","text":"Hello!","annotations":[]}]}'
    )
    events = [
        ("response.created", begun),
        ("response.in_progress", begun),
        (
            "response.output_item.added",
            '"output_index":0,"item":{"id":"msg_loopback_000007_0","type":"message","status":"in_progress",'
            '"role":"assistant","content":[]}}\n\n',
        ),
        (
            "response.content_part.added",
            f'{at},"part":{{"type":"output_text","text":"","annotations":[]}}}}\n\n',
        ),
        ("response.output_text.delta", f'{at},"delta":"Hello!"}}\n\n'),
        ("response.output_text.done", f'{at},"text":"Hello!"}}\n\n'),
        (
            "response.content_part.done",
            f'{at},"part":{{"type":"output_text","text":"Hello!","annotations":[]}}}}\n\n',
        ),
        ("response.output_item.done", f'"output_index":0,"item":{item}}}\n\n'),
        (
            "response.completed",
            f'"response":{{{HEAD},"status":"completed","error":null,"incomplete_details":null,"model":"m",'
            f'"output":[{item}],"service_tier":"default","usage":{{"input_tokens":1,'
            '"input_tokens_details":{"cached_tokens":0,"cache_write_tokens":0},"output_tokens":2,'
            '"output_tokens_details":{"reasoning_tokens":0},"total_tokens":3}}}\n\n',
        ),
    ]
    assert b"".join(responses.events(Reply("Hello!"), ASKED)).decode() == "".join(
        f'event: {name}\ndata: {{"type":"{name}","sequence_number":{number},{data}'
        for number, (name, data) in enumerate(events)
    )


def output(reply: Reply, asked: Asked = ASKED) -> Any:
    return json.loads(responses.document(reply, asked))["output"]


def test_the_items_of_an_answer() -> None:
    reply = Reply(
        Thinking("Noon?", signature="enc"), ToolCall("look", {"a": 1}, id="c1"), ToolCall("look", {}), Image("QQ==")
    )
    summary = {
        "id": "rs_loopback_000007_0",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "Noon?"}],
    }
    call = {"type": "function_call", "status": "completed", "name": "look"}
    assert output(reply) == [
        {**summary, "encrypted_content": "enc"},
        {"id": "fc_loopback_000007_1", **call, "arguments": '{"a": 1}', "call_id": "c1"},
        {"id": "fc_loopback_000007_2", **call, "arguments": "{}", "call_id": "call_loopback_000007_2"},
        {
            "id": "ig_loopback_000007_3",
            "type": "image_generation_call",
            "status": "completed",
            "output_format": "png",
            "result": "QQ==",
        },
    ]
    assert output(reply, ASKED._replace(body={}))[0] == summary


ENDS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "end_turn": ("end_turn", ("completed", None, "output_text")),
    "max_tokens": ("max_tokens", ("incomplete", {"reason": "max_output_tokens"}, "output_text")),
    "content_filter": ("content_filter", ("incomplete", {"reason": "content_filter"}, "output_text")),
    "refusal": ("refusal", ("completed", None, "refusal")),
}


@pytest.mark.parametrize("reason, expected", ENDS.values(), ids=ENDS.keys())
def test_how_an_answer_ends(reason: str, expected: tuple[Any, ...]) -> None:
    answer = json.loads(responses.document(Reply("No", stop_reason=reason)))
    part = answer["output"][0]["content"][0]["type"]
    assert (answer["status"], answer["incomplete_details"], part) == expected
    last = responses.events(Reply("No", stop_reason=reason))[-1]
    assert last.startswith(f"event: response.{answer['status']}\n".encode())


def test_cached_tokens_are_counted_as_input() -> None:
    usage = Usage(input_tokens=5, output_tokens=8, cache_read_tokens=3, cache_creation_tokens=2, thinking_tokens=4)
    assert json.loads(responses.document(Reply("a", usage=usage)))["usage"] == {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 2},
        "output_tokens": 8,
        "output_tokens_details": {"reasoning_tokens": 4},
        "total_tokens": 18,
    }


CALL = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "c1", "output": "sun"}
REFUSED: dict[str, tuple[Any, str]] = {
    "no input": ({"input": []}, "Missing required parameter: 'input'."),
    "a part of another format": (
        {"input": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]},
        "Invalid value: 'text'. Supported values are",
    ),
    "a call without its result": ({"input": [CALL]}, "No tool output found for function call c1."),
    "a result without its call": ({"input": [RESULT]}, "No tool call found for function call output with call_id c1."),
    "a list of strings": ({"input": ["Hi"]}, "Invalid type for 'input'."),
}


@pytest.mark.parametrize("fields, words", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused(fields: Any, words: str) -> None:
    with LoopbackProvider([Reply("a")]) as provider, Browser(provider) as browser:
        status, body = browser.post("/v1/responses", **fields)
    assert status == 400
    assert words in json.loads(body)["error"]["message"]


def test_what_is_accepted() -> None:
    with LoopbackProvider([Reply("a")] * 2) as provider, Browser(provider) as browser:
        assert browser.post("/v1/responses", input="Hi")[0] == 200
        assert browser.post("/v1/responses", input=[CALL, RESULT])[0] == 200
