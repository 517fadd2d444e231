"""Rules that real traffic showed to be broken; each once, over a socket, with bytes of our own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from membrane_lite import AnthropicAdapter, Membrane, MembraneError, OpenAICompatibleAdapter, Response, Text
from membrane_lite.loopback import LoopbackProvider, Raw

REQUEST = {"messages": [{"participant": "User", "content": "Hi"}], "config": {"model": "m", "max_tokens": 64}}
SSE = {"content-type": "text/event-stream"}

HEL = 'data: {"choices": [{"index": 0, "delta": {"content": "Hel"}}]}\n\n'
LO = 'data: {"choices": [{"index": 0, "delta": {"content": "lo"}}]}\n\n'
STOP = 'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\n'
DONE = "data: [DONE]\n\n"
TAKEN_BACK = (
    'data: {"error": {"code": 400, "message": "The upstream gave up"}, "choices": [],'
    ' "usage": {"prompt_tokens": 43, "completion_tokens": 10, "total_tokens": 53}}\n\n'
)


def made(name: str, url: str, transport: Any) -> Any:
    if name == "anthropic":
        return AnthropicAdapter(base_url=url, api_key="a-key-of-the-test", transport=transport)
    return OpenAICompatibleAdapter(base_url=f"{url}/v1", transport=transport)


def streamed(body: str, *, of: str = "openai-compatible", **how: Any) -> Any:
    with LoopbackProvider([Raw(200, SSE, body, **how)]) as provider, provider.transport() as transport:
        return Membrane(made(of, provider.url, transport)).stream(REQUEST, retry=False)


@pytest.mark.parametrize("keep_alive", ["data:\n\n", "data: \n\n", "event: ping\ndata:\n\n", "data:\ndata:\n\n"])
def test_an_event_whose_data_is_empty_is_a_keep_alive(keep_alive: str) -> None:
    response = streamed(keep_alive + HEL + keep_alive + LO + STOP + keep_alive + DONE)
    assert (response.text, response.stop_reason) == ("Hello", "end_turn")


def test_an_error_after_the_finish_reason_takes_the_answer_back() -> None:
    with pytest.raises(MembraneError) as caught:
        streamed(HEL + STOP + TAKEN_BACK + DONE)
    assert (caught.value.type, caught.value.provider_error_code) == ("invalid_request", "400")
    assert "The upstream gave up" in caught.value.message
    assert caught.value.partial_content == [Text("Hel")]


def test_counts_that_stand_beside_an_error_are_on_the_error() -> None:
    with pytest.raises(MembraneError) as caught:
        streamed(HEL + TAKEN_BACK)
    usage = caught.value.partial_usage
    assert (usage.input_tokens, usage.output_tokens, usage.unreported) == (43, 10, [])


def test_a_usage_chunk_that_is_cut_short_after_the_finish_reason_is_no_error() -> None:
    response = streamed(HEL + STOP + TAKEN_BACK[:60], framing="close")
    assert isinstance(response, Response)
    assert (response.text, response.usage.unreported) == ("Hel", ["input_tokens", "output_tokens"])


def sse(*events: Any) -> str:
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events)


def chat(choice: Any) -> str:
    return sse({"choices": [{"index": 0, **choice}]}) + DONE


def begun(block: Any) -> str:
    return sse({"type": "content_block_start", "index": 0, "content_block": block})


def piece(delta: Any, index: Any = 0) -> str:
    return sse({"type": "content_block_delta", "index": index, "delta": delta})


OF_ANOTHER_TYPE = {  # what stands where a text, or the number of a block, belongs
    "anthropic: a piece of text": ("anthropic", piece({"type": "text_delta", "text": 7})),
    "anthropic: a piece of thinking": ("anthropic", piece({"type": "thinking_delta", "thinking": ["so"]})),
    "anthropic: a signature": ("anthropic", piece({"type": "signature_delta", "signature": {"s": 1}})),
    "anthropic: a piece of arguments": ("anthropic", piece({"type": "input_json_delta", "partial_json": {}})),
    "anthropic: the index of a piece": ("anthropic", piece({"type": "text_delta", "text": "a"}, index="0")),
    "anthropic: the index of an end": ("anthropic", sse({"type": "content_block_stop", "index": [0]})),
    "anthropic: a text": ("anthropic", begun({"type": "text", "text": 7})),
    "anthropic: the id of a call": ("anthropic", begun({"type": "tool_use", "id": 7, "name": "f"})),
    "anthropic: the name of a call": ("anthropic", begun({"type": "tool_use", "id": "t", "name": None})),
    "anthropic: opaque thinking": ("anthropic", begun({"type": "redacted_thinking", "data": 7})),
    "anthropic: a stop reason": ("anthropic", sse({"type": "message_delta", "delta": {"stop_reason": ["end_turn"]}})),
    "chat: a part of the content": (
        "openai-compatible",
        chat({"delta": {"content": [{"type": "text", "text": 7}]}}),
    ),
    "chat: a refusal": ("openai-compatible", chat({"delta": {"refusal": 7}})),
    "chat: the name of a call": (
        "openai-compatible",
        chat({"delta": {"tool_calls": [{"index": 0, "id": "c", "function": {"name": 7}}]}}),
    ),
    "chat: a finish reason": ("openai-compatible", chat({"delta": {}, "finish_reason": 7})),
    "chat: the index of a choice": ("openai-compatible", chat({"index": "1", "delta": {"content": "b"}})),
}


@pytest.mark.parametrize("of, body", OF_ANOTHER_TYPE.values(), ids=OF_ANOTHER_TYPE.keys())
def test_an_event_that_holds_a_value_of_another_type_is_malformed(of: str, body: str) -> None:
    with pytest.raises(MembraneError) as caught:
        streamed(body, of=of)
    assert caught.value.type == "server"
    assert caught.value.message.startswith(f"{of}: event 'message' cannot be read (TypeError): ")


def test_counts_and_names_that_are_none_spoil_no_answer() -> None:
    usage = {"prompt_tokens": "9", "completion_tokens": 3, "prompt_tokens_details": [], "cost": "much"}
    response = streamed(HEL + LO + STOP + sse({"model": 7, "choices": [], "usage": usage}) + DONE)
    assert (response.text, response.details.model.actual) == ("Hello", "m")
    assert (response.usage.input_tokens, response.usage.output_tokens) == (0, 3)
    assert (response.usage.unreported, response.usage.provider_cost) == (["input_tokens"], None)
