"""to_dict and from_dict: what is stored as JSON comes back equal, every field of it."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest

from membrane_lite.values.base import Record
from membrane_lite.values.content import (
    Audio,
    Block,
    Document,
    GeneratedImage,
    Image,
    RedactedThinking,
    SystemChange,
    Text,
    Thinking,
    ToolResultBlock,
    ToolUse,
    Video,
)
from membrane_lite.values.messages import Message
from membrane_lite.values.requests import GenerationConfig, Request, ThinkingConfig
from membrane_lite.values.responses import (
    AbortedResponse,
    CacheDetails,
    Cost,
    Details,
    DiscardedAttempts,
    ModelDetails,
    Raw,
    Response,
    StopDetails,
    Timing,
    Usage,
)
from membrane_lite.values.tools import Tool, ToolCall, ToolResult

PNG = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
RAW: dict[str, Any] = {"raw_item": {"type": "x", "n": [None, 1.5]}, "raw_format": "anthropic"}

BLOCKS: dict[str, Block] = {
    "text": Text("é\n"),
    "text with a marker": Text("t", cache_control={"type": "ephemeral", "ttl": "1h"}, **RAW),
    "a carrier": Text("", **RAW),
    "image": Image(PNG, token_estimate=5, source_url="https://x.org/a.png", **RAW),
    "image by address": Image({"type": "url", "url": "https://x.org/a.png"}),
    "document": Document(
        {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}, filename="a.pdf", **RAW
    ),
    "audio": Audio({"type": "base64", "media_type": "audio/wav", "data": "UklGRg=="}, 1.5, "hello", **RAW),
    "video": Video({"type": "base64", "media_type": "video/mp4", "data": "AAAA"}, 2, **RAW),
    "generated image": GeneratedImage("iVBORw0KGgo=", "image/webp", is_preview=False, **RAW),
    "generated image by address": GeneratedImage(url="https://x.org/a.png"),
    "thinking": Thinking("so", "c2ln", **RAW),
    "signed thinking without text": Thinking("", "c2ln"),
    "redacted thinking": RedactedThinking("b3BhcXVl", **RAW),
    "tool use": ToolUse("c1", "ns:look", {"at": [1, {"x": None}]}, raw_xml="<x/>", **RAW),
    "tool use of broken arguments": ToolUse("c1", "look", {}, unparseable_input='{"at": [1'),
    "tool use of a custom tool": ToolUse("c1", "run", "print(1)"),
    "tool result": ToolResultBlock("c1", "r", is_error=True, raw_xml="<x/>", **RAW),
    "tool result of blocks": ToolResultBlock("c1", [Text("r"), Image(PNG)], is_error=False),
}

CHANGES: dict[str, Block] = {
    "system change": SystemChange(
        ["ns:look"], [Tool("find"), Tool("ns:find", "finds", {"type": "object"})], ["be kind", " "], **RAW
    ),
    "system change of one text": SystemChange(add_system="be kind"),
    "system change of nothing": SystemChange(),
}

MESSAGE = Message("Ann", list(BLOCKS.values()), metadata={"timestamp": 1, "source_id": "7"}, cache_breakpoint=True)

REQUEST = Request(
    messages=[MESSAGE, Message("Claude", []), Message("System", list(CHANGES.values()))],
    config=GenerationConfig(
        model="m",
        max_tokens=0,
        temperature=0.0,
        top_p=0.5,
        top_k=1,
        presence_penalty=-1,
        frequency_penalty=0.25,
        repetition_penalty=1.1,
        thinking=ThinkingConfig(False, 5, "adaptive", "omitted", {"prefix_mismatch_behavior": "drop_block"}),
    ),
    system=[Text("be kind", cache_control={"type": "ephemeral"})],
    tools=[Tool("look"), Tool("ns:find", "finds", {"type": "object", "properties": {"q": {}}})],
    tool_mode="native",
    stop_sequences=["\n", ""],
    max_participants_for_stop=0,
    prompt_caching=False,
    cache_ttl="1h",
    floating_cache_marker=False,
    context_prefix="once",
    prefill_user_message="go on",
    assistant_participant="Bot",
    streaming=False,
    provider_params={"metadata": {"user_id": None}},
    shed_oversize_images=True,
)

USAGE = Usage(
    input_tokens=9,
    output_tokens=3,
    cache_creation_tokens=0,
    cache_read_tokens=5,
    thinking_tokens=1,
    cache_creation_5m_tokens=0,
    cache_creation_1h_tokens=0,
    provider_cost=0.25,
    unreported=["output_tokens"],
    discarded_attempts=DiscardedAttempts(1, 2, 3, 4, 5, 0.5),
    estimated_cost=Cost(input=0.1, output=0.2, cache_read=0.05, total=0.35, currency="EUR"),
)

RESPONSE = Response(
    content=list(BLOCKS.values()),
    stop_reason="tool_use",
    usage=USAGE,
    details=Details(
        stop=StopDetails(
            "tool_use", "tool_calls", "\n", was_truncated=True, refusal="no", category="cyber", unclosed_tool_block=True
        ),
        usage=USAGE,
        timing=Timing(1234.5, 3, 2, [1000, 2000], 12.5),
        model=ModelDetails("m", "m-1", "anthropic"),
        cache=CacheDetails(2, 0, 5, 0.4),
        request_id="req_1",
        rate_limit={"requests": {"limit": 50, "remaining": 49, "reset_ms": 1000}},
    ),
    raw_assistant_text="é\nt",
    tool_calls=[ToolCall("c1", "look", {"at": 1}), ToolCall("c2", "look", {}, unparseable_input="{")],
    tool_results=[ToolResult("c1", [Text("r")], is_error=True)],
    raw=Raw(request={"model": "m", "stream": None}, response=[1, None], headers={"request-id": "req_1"}),
    assistant_participant="Bot",
)

ABORTED = AbortedResponse(
    reason="timeout",
    message="timeout_ms: the call took longer than its 5 ms",
    partial_content=[Text("a"), ToolUse("c1", "look", {})],
    partial_usage=Usage(input_tokens=9, unreported=["output_tokens"]),
    raw_assistant_text="a",
    tool_calls=[ToolCall("c1", "look")],
    tool_results=[ToolResult("c1", "r")],
)

RECORDS: dict[str, Record] = {
    **{f"a message of one block: {name}": Message("Ann", [block]) for name, block in {**BLOCKS, **CHANGES}.items()},
    "a message": MESSAGE,
    "a message without anything": Message("Ann", []),
    "a request": REQUEST,
    "the least request": Request([Message("Ann", [])], GenerationConfig("m")),
    "a response": RESPONSE,
    "the least response": Response(
        [],
        "end_turn",
        Usage(),
        Details(StopDetails("end_turn"), Usage(), Timing(), ModelDetails("m", "m", "p"), CacheDetails()),
    ),
    "an aborted response": ABORTED,
    "the least aborted response": AbortedResponse("user"),
}


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS.keys())
def test_what_is_stored_comes_back(record: Any) -> None:
    stored = json.dumps(record.to_dict(), allow_nan=False)
    assert type(record).from_dict(json.loads(stored)) == record


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS.keys())
def test_what_is_stored_is_stored_alike_again(record: Any) -> None:
    assert type(record).from_dict(record.to_dict()).to_dict() == record.to_dict()


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS.keys())
def test_a_record_survives_copy_and_pickle(record: Any) -> None:
    assert copy.deepcopy(record) == record
    assert pickle.loads(pickle.dumps(record)) == record


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS.keys())
def test_storing_changes_nothing(record: Any) -> None:
    before = repr(record)
    stored = record.to_dict()
    stored.clear()
    assert repr(record) == before
