"""reader: what every field of every record may hold. ROWS is the list; KINDS says what a kind takes and refuses."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any, NamedTuple

import pytest

from membrane_lite.errors import MembraneError
from membrane_lite.values.content import (
    BLOCK_CLASSES,
    Audio,
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
    is_system_change,
)
from membrane_lite.values.messages import Message
from membrane_lite.values.options import OverloadedRetry, RetryConfig
from membrane_lite.values.reader import (
    FIELDS,
    read_aborted_response,
    read_content,
    read_message,
    read_request,
    read_response,
    read_retry_config,
    read_tool_results,
)
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


class Kind(NamedTuple):
    """good: what is given and what is kept of it. bad: what is given and what the error says behind the path."""

    good: list[tuple[Any, Any]]
    bad: list[tuple[Any, str]]


def same(*values: Any) -> list[tuple[Any, Any]]:
    return [(value, value) for value in values]


def or_none(kind: Kind) -> Kind:
    return Kind([*kind.good, (None, None)], kind.bad)


def one_of(*words: str) -> Kind:
    expected = f"expected one of {', '.join(map(repr, words))}"
    bad = [(7, f"found 7; {expected}"), ([], f"found []; {expected}"), ("Auto", f"found 'Auto'; {expected}")]
    return Kind(same(*words), bad)


def records(kind: type, given: Mapping[str, Any], read: Any) -> Kind:
    expected = f"expected a {kind.__name__} or a mapping of its shape"
    return Kind(
        [(given, read), (read, read)],
        [("x", f"found str 'x'; {expected}"), ([], f"found list []; {expected}")],
    )


def list_of(kind: Kind) -> Kind:
    good = [([given], [read]) for given, read in kind.good]
    return Kind(
        [([], []), *good, *((tuple(given), read) for given, read in good)],
        [("x", "found str 'x'; expected a list"), (7, "found int 7; expected a list")],
    )


TEXT = [Text("hi")]
PNG = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
GOOGOL = 10**400
SHOWN_GOOGOL = "1" + "0" * 199 + "..."
BLOCK_TYPES = (
    "text, image, document, audio, video, generated_image, thinking, redacted_thinking, tool_use, tool_result, "
    "system_change"
)

STRING = Kind(
    same("", "é", " "), [(7, "found int 7; expected a string"), (["x"], "found list ['x']; expected a string")]
)
NAME = Kind(
    same("x", " Ann "),
    [
        ("", "found str ''; expected a string that is not blank"),
        (" \n", "found str ' \\n'; expected a string that is not blank"),
        (7, "found int 7; expected a string that is not blank"),
    ],
)
FLAG = Kind(
    same(True, False),
    [(0, "found int 0; expected True or False"), ("no", "found str 'no'; expected True or False")],
)
NUMBER = Kind(
    same(0, 1, 0.5, -2.0),
    [
        (True, "found bool True; expected a finite number"),
        ("1", "found str '1'; expected a finite number"),
        (math.nan, "found float nan; expected a finite number"),
        (math.inf, "found float inf; expected a finite number"),
        (GOOGOL, f"found int {SHOWN_GOOGOL}; expected a finite number"),
    ],
)
COUNT = Kind(
    same(0, 7),
    [
        (-1, "found int -1; expected a whole number, 0 or more"),
        (1.0, "found float 1.0; expected a whole number, 0 or more"),
        (True, "found bool True; expected a whole number, 0 or more"),
        ("7", "found str '7'; expected a whole number, 0 or more"),
    ],
)
MAPPING = Kind(
    same({}, {"a": [1]}),
    [
        ([], "found list []; expected a mapping with string keys"),
        ({1: 2}, "found dict {1: 2}; expected a mapping with string keys"),
    ],
)
ANYTHING = Kind(same(None, 7, "x", {"a": 1}, [None]), [])
BLOCKS = Kind(
    [("hi", TEXT), ([], []), ([{"type": "text", "text": "hi"}], TEXT), (TEXT, TEXT), (tuple(TEXT), TEXT)],
    [(7, "found int 7; expected a string or a list of content blocks")],
)
TEXT_OR_BLOCKS = Kind([("hi", "hi"), *BLOCKS.good[1:]], BLOCKS.bad)
TEXTS = list_of(STRING)

KINDS: dict[str, Kind] = {
    "string": STRING,
    "string or None": or_none(STRING),
    "name": NAME,
    "name or None": or_none(NAME),
    "flag": FLAG,
    "flag or None": or_none(FLAG),
    "number": NUMBER,
    "number or None": or_none(NUMBER),
    "count": COUNT,
    "count or None": or_none(COUNT),
    "mapping": MAPPING,
    "mapping or None": or_none(MAPPING),
    "anything": ANYTHING,
    "blocks": BLOCKS,
    "text or blocks": TEXT_OR_BLOCKS,
    "texts": TEXTS,
    "names or None": or_none(list_of(NAME)),
    "text or texts or None": Kind(
        [(None, None), ("", ""), ("be kind", "be kind"), ([], []), (("a", " "), ["a", " "])],
        [
            (7, "found int 7; expected a string or a list of strings"),
            ({"text": "a"}, "found dict {'text': 'a'}; expected a string or a list of strings"),
        ],
    ),
    "binding or None": Kind(
        same(None, {"prefix_mismatch_behavior": "error"}, {"prefix_mismatch_behavior": "drop_block"}),
        [("drop_block", "found str 'drop_block'; expected a mapping with string keys")],
    ),
    "counts or None": or_none(list_of(COUNT)),
    "source": Kind(
        same(PNG, {"type": "base64", "data": "iVBORw0KGgo="}, {"type": "url", "url": "https://x.org/a.png"}),
        [("x", "found str 'x'; expected a mapping with string keys")],
    ),
    "cache control or None": Kind(
        same(None, {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}),
        [("x", "found str 'x'; expected a mapping with string keys")],
    ),
    "lifetime or None": or_none(one_of("5m", "1h")),
    "tool mode": one_of("auto", "native", "xml"),
    "thinking type": one_of("enabled", "adaptive"),
    "display or None": or_none(one_of("summarized", "omitted")),
    "abort reason": one_of("user", "timeout", "error"),
    "true": Kind(
        same(True),
        [(False, "found bool False; expected True"), (1, "found int 1; expected True")],
    ),
    "system or None": Kind(
        [(None, None), ("hi", "hi"), ([], []), ([{"type": "text", "text": "hi"}], TEXT), (TEXT, TEXT)], BLOCKS.bad
    ),
    "stop sequences or None": Kind(
        [*or_none(TEXTS).good, ({"sequences": ["a"]}, ["a"])],
        [("x", "found str 'x'; expected a list"), (7, "found int 7; expected a list")],
    ),
    "messages": Kind(
        [([{"participant": "Ann", "content": "hi"}], [Message("Ann", TEXT)])],
        [("x", "found str 'x'; expected a list"), ([], "the list is empty; expected at least one message")],
    ),
    "config": records(GenerationConfig, {"model": "m"}, GenerationConfig("m")),
    "thinking or None": or_none(records(ThinkingConfig, {"budget_tokens": 5}, ThinkingConfig(budget_tokens=5))),
    "tools or None": or_none(list_of(records(Tool, {"name": "t"}, Tool("t")))),
    "calls": list_of(records(ToolCall, {"id": "c", "name": "t"}, ToolCall("c", "t"))),
    "results": list_of(records(ToolResult, {"tool_use_id": "c", "content": "r"}, ToolResult("c", "r"))),
    "overloads": records(OverloadedRetry, {"max_retries": 2}, OverloadedRetry(max_retries=2)),
    "usage": records(Usage, {"input_tokens": 5}, Usage(input_tokens=5)),
    "usage or None": or_none(records(Usage, {"input_tokens": 5}, Usage(input_tokens=5))),
    "cost or None": or_none(records(Cost, {"total": 0.5}, Cost(total=0.5))),
    "discarded or None": or_none(records(DiscardedAttempts, {"count": 1}, DiscardedAttempts(count=1))),
    "stop": records(StopDetails, {"reason": "end_turn"}, StopDetails("end_turn")),
    "timing": records(Timing, {"attempts": 2}, Timing(attempts=2)),
    "model": records(ModelDetails, {"requested": "m", "actual": "m-1", "provider": "p"}, ModelDetails("m", "m-1", "p")),
    "cache": records(CacheDetails, {"tokens_read": 5}, CacheDetails(tokens_read=5)),
    "details": records(
        Details,
        {
            "stop": {"reason": "x"},
            "usage": {},
            "timing": {},
            "model": {"requested": "m", "actual": "m", "provider": "p"},
            "cache": {},
        },
        Details(StopDetails("x"), Usage(), Timing(), ModelDetails("m", "m", "p"), CacheDetails()),
    ),
    "raw": records(Raw, {"request": [1]}, Raw(request=[1])),
}

RAW = {"raw_item": "anything", "raw_format": "string or None"}

ROWS: dict[type, dict[str, str]] = {
    Text: {"text": "string", "cache_control": "cache control or None", **RAW},
    Image: {"source": "source", "token_estimate": "count or None", "source_url": "string or None", **RAW},
    Document: {"source": "source", "filename": "string or None", **RAW},
    Audio: {"source": "source", "duration": "number or None", "transcript": "string or None", **RAW},
    Video: {"source": "source", "duration": "number or None", **RAW},
    GeneratedImage: {
        "data": "string",
        "mime_type": "string",
        "url": "string or None",
        "is_preview": "flag or None",
        **RAW,
    },
    Thinking: {"thinking": "string", "signature": "string or None", **RAW},
    RedactedThinking: {"data": "string", **RAW},
    ToolUse: {
        "id": "name",
        "name": "name",
        "input": "anything",
        "unparseable_input": "string or None",
        "raw_xml": "string or None",
        **RAW,
    },
    ToolResultBlock: {
        "tool_use_id": "string",
        "content": "text or blocks",
        "is_error": "flag or None",
        "raw_xml": "string or None",
        **RAW,
    },
    SystemChange: {
        "remove_tools": "names or None",
        "define_tools": "tools or None",
        "add_system": "text or texts or None",
        **RAW,
    },
    Message: {
        "participant": "name",
        "content": "blocks",
        "metadata": "mapping or None",
        "cache_breakpoint": "flag",
    },
    Tool: {"name": "name", "description": "string", "input_schema": "mapping"},
    ToolCall: {"id": "string", "name": "string", "input": "anything", "unparseable_input": "string or None"},
    ToolResult: {"tool_use_id": "string", "content": "text or blocks", "is_error": "flag or None"},
    ThinkingConfig: {
        "enabled": "flag",
        "budget_tokens": "count or None",
        "type": "thinking type",
        "display": "display or None",
        "block_binding": "binding or None",
    },
    GenerationConfig: {
        "model": "name",
        "max_tokens": "count or None",
        "temperature": "number or None",
        "top_p": "number or None",
        "top_k": "count or None",
        "presence_penalty": "number or None",
        "frequency_penalty": "number or None",
        "repetition_penalty": "number or None",
        "thinking": "thinking or None",
    },
    Request: {
        "messages": "messages",
        "config": "config",
        "system": "system or None",
        "tools": "tools or None",
        "tool_mode": "tool mode",
        "stop_sequences": "stop sequences or None",
        "max_participants_for_stop": "count or None",
        "prompt_caching": "flag or None",
        "cache_ttl": "lifetime or None",
        "floating_cache_marker": "flag or None",
        "context_prefix": "string or None",
        "prefill_user_message": "string or None",
        "assistant_participant": "name or None",
        "streaming": "flag",
        "provider_params": "mapping or None",
        "shed_oversize_images": "flag",
    },
    OverloadedRetry: {
        "max_retries": "count",
        "retry_delay_ms": "count",
        "backoff_multiplier": "number",
        "max_retry_delay_ms": "count",
    },
    RetryConfig: {
        "max_retries": "count",
        "retry_delay_ms": "count",
        "backoff_multiplier": "number",
        "max_retry_delay_ms": "count",
        "overloaded": "overloads",
    },
    Cost: {
        "input": "number or None",
        "output": "number or None",
        "cache_write": "number or None",
        "cache_read": "number or None",
        "total": "number or None",
        "currency": "string",
    },
    DiscardedAttempts: {
        "count": "count",
        "input_tokens": "count",
        "output_tokens": "count",
        "cache_creation_tokens": "count",
        "cache_read_tokens": "count",
        "cost": "number or None",
    },
    Usage: {
        "input_tokens": "count",
        "output_tokens": "count",
        "cache_creation_tokens": "count or None",
        "cache_read_tokens": "count or None",
        "thinking_tokens": "count or None",
        "cache_creation_5m_tokens": "count or None",
        "cache_creation_1h_tokens": "count or None",
        "provider_cost": "number or None",
        "unreported": "texts",
        "discarded_attempts": "discarded or None",
        "estimated_cost": "cost or None",
    },
    StopDetails: {
        "reason": "string",
        "provider_reason": "string or None",
        "triggered_sequence": "string or None",
        "was_truncated": "flag",
        "refusal": "string or None",
        "category": "string or None",
        "unclosed_tool_block": "flag",
    },
    Timing: {
        "total_duration_ms": "number",
        "attempts": "count",
        "rounds": "count",
        "retry_delays_ms": "counts or None",
        "time_to_first_token_ms": "number or None",
    },
    ModelDetails: {"requested": "string", "actual": "string", "provider": "string"},
    CacheDetails: {
        "markers_in_request": "count",
        "tokens_created": "count",
        "tokens_read": "count",
        "hit_ratio": "number",
    },
    Details: {
        "stop": "stop",
        "usage": "usage",
        "timing": "timing",
        "model": "model",
        "cache": "cache",
        "request_id": "string or None",
        "rate_limit": "mapping or None",
    },
    Raw: {"request": "anything", "response": "anything", "headers": "mapping or None"},
    Response: {
        "content": "blocks",
        "stop_reason": "string",
        "usage": "usage",
        "details": "details",
        "raw_assistant_text": "string",
        "tool_calls": "calls",
        "tool_results": "results",
        "raw": "raw",
        "assistant_participant": "string",
    },
    AbortedResponse: {
        "reason": "abort reason",
        "message": "string or None",
        "partial_content": "blocks",
        "partial_usage": "usage or None",
        "raw_assistant_text": "string",
        "tool_calls": "calls",
        "tool_results": "results",
        "aborted": "true",
    },
}

# Where a record of each class stands in what is read: the path its errors name, and how it is read there.

REQUEST: dict[str, Any] = {"messages": [{"participant": "Ann", "content": "hi"}], "config": {"model": "m"}}
DETAILS: dict[str, Any] = {
    "stop": {"reason": "end_turn"},
    "usage": {},
    "timing": {},
    "model": {"requested": "m", "actual": "m", "provider": "p"},
    "cache": {},
}
RESPONSE: dict[str, Any] = {"content": [], "stop_reason": "end_turn", "usage": {}, "details": DETAILS}


class Place(NamedTuple):
    path: str
    least: Mapping[str, Any]  # the smallest mapping that is read
    read: Callable[[Any], Any]


def block(least: Mapping[str, Any]) -> Place:
    return Place("content[0].", least, lambda given: read_content([given], "content")[0])


def in_details(name: str, least: Mapping[str, Any]) -> Place:
    def read(given: Any) -> Any:
        return getattr(read_response({**RESPONSE, "details": {**DETAILS, name: given}}).details, name)

    return Place(f"details.{name}.", least, read)


PLACES: dict[type, Place] = {
    Text: block({"type": "text", "text": "t"}),
    Image: block({"type": "image", "source": PNG}),
    Document: block({"type": "document", "source": PNG}),
    Audio: block({"type": "audio", "source": PNG}),
    Video: block({"type": "video", "source": PNG}),
    GeneratedImage: block({"type": "generated_image"}),
    Thinking: block({"type": "thinking", "thinking": "t"}),
    RedactedThinking: block({"type": "redacted_thinking", "data": "d"}),
    ToolUse: block({"type": "tool_use", "id": "c", "name": "t"}),
    ToolResultBlock: block({"type": "tool_result", "tool_use_id": "c", "content": "r"}),
    SystemChange: Place(
        "here.content[0].",
        {"type": "system_change"},
        lambda given: read_message({"participant": "Ann", "content": [given]}, "here").content[0],
    ),
    Message: Place("here.", REQUEST["messages"][0], lambda given: read_message(given, "here")),
    Tool: Place("tools[0].", {"name": "t"}, lambda given: read_request({**REQUEST, "tools": [given]}).tools[0]),
    ToolCall: Place(
        "tool_calls[0].",
        {"id": "c", "name": "t"},
        lambda given: read_response({**RESPONSE, "tool_calls": [given]}).tool_calls[0],
    ),
    ToolResult: Place(
        "tool_results[0].", {"tool_use_id": "c", "content": "r"}, lambda given: read_tool_results([given])[0]
    ),
    ThinkingConfig: Place(
        "config.thinking.",
        {},
        lambda given: read_request({**REQUEST, "config": {"model": "m", "thinking": given}}).config.thinking,
    ),
    GenerationConfig: Place("config.", {"model": "m"}, lambda given: read_request({**REQUEST, "config": given}).config),
    Request: Place("", REQUEST, read_request),
    OverloadedRetry: Place("overloaded.", {}, lambda given: read_retry_config({"overloaded": given}).overloaded),
    RetryConfig: Place("", {}, read_retry_config),
    Cost: Place(
        "usage.estimated_cost.",
        {},
        lambda given: read_response({**RESPONSE, "usage": {"estimated_cost": given}}).usage.estimated_cost,
    ),
    DiscardedAttempts: Place(
        "usage.discarded_attempts.",
        {},
        lambda given: read_response({**RESPONSE, "usage": {"discarded_attempts": given}}).usage.discarded_attempts,
    ),
    Usage: Place("usage.", {}, lambda given: read_response({**RESPONSE, "usage": given}).usage),
    StopDetails: in_details("stop", {"reason": "end_turn"}),
    Timing: in_details("timing", {}),
    ModelDetails: in_details("model", DETAILS["model"]),
    CacheDetails: in_details("cache", {}),
    Details: Place("details.", DETAILS, lambda given: read_response({**RESPONSE, "details": given}).details),
    Raw: Place("raw.", {}, lambda given: read_response({**RESPONSE, "raw": given}).raw),
    Response: Place("", RESPONSE, read_response),
    AbortedResponse: Place("", {"reason": "user"}, read_aborted_response),
}

CELLS = {
    f"{cls.__name__}.{name}": (cls, name, KINDS[kind]) for cls, rows in ROWS.items() for name, kind in rows.items()
}


@pytest.mark.parametrize("cls, name, kind", CELLS.values(), ids=CELLS.keys())
def test_what_a_field_takes(cls: type, name: str, kind: Kind) -> None:
    place = PLACES[cls]
    read = [getattr(place.read({**place.least, name: given}), name) for given, _ in kind.good]
    assert read == [kept for _, kept in kind.good]


@pytest.mark.parametrize("cls, name, kind", CELLS.values(), ids=CELLS.keys())
def test_what_a_field_refuses(cls: type, name: str, kind: Kind) -> None:
    place = PLACES[cls]
    said = [refusal(place.read, {**place.least, name: given}) for given, _ in kind.bad]
    assert said == [("invalid_request", f"{place.path}{name}: {text}") for _, text in kind.bad]


def refusal(read: Callable[[Any], Any], given: Any) -> tuple[str, str]:
    with pytest.raises(MembraneError) as raised:
        read(given)
    return raised.value.type, raised.value.message


NEEDED = {
    f"{cls.__name__}.{name}": (place, cls, name)
    for cls, place in PLACES.items()
    for name in place.least
    if name != "type"
}


@pytest.mark.parametrize("place, cls, name", NEEDED.values(), ids=NEEDED.keys())
def test_a_field_that_is_needed(place: Place, cls: type, name: str) -> None:
    without = {key: value for key, value in place.least.items() if key != name}
    text = f"{place.path}{name}: missing; a {cls.__name__} needs it"
    assert refusal(place.read, without) == ("invalid_request", text)
    assert refusal(place.read, {**without, name: None}) == ("invalid_request", text)


@pytest.mark.parametrize("cls", PLACES, ids=lambda cls: cls.__name__)
def test_a_field_that_is_left_out_has_its_default(cls: type) -> None:
    place = PLACES[cls]
    read = place.read(place.least)
    defaults = {
        row.name: row.default if row.default_factory is MISSING else row.default_factory()
        for row in fields(cls)
        if row.name not in place.least
    }
    assert {name: getattr(read, name) for name in defaults} == defaults


NOT_NONE = {
    "tool_mode": "tool_mode: found None; expected one of 'auto', 'native', 'xml'",
    "streaming": "streaming: found NoneType None; expected True or False",
    "shed_oversize_images": "shed_oversize_images: found NoneType None; expected True or False",
}


@pytest.mark.parametrize("name, text", NOT_NONE.items(), ids=NOT_NONE.keys())
def test_none_is_no_word_for_the_default(name: str, text: str) -> None:
    assert refusal(read_request, {**REQUEST, name: None}) == ("invalid_request", text)


@pytest.mark.parametrize("cls", PLACES, ids=lambda cls: cls.__name__)
def test_a_field_that_is_none(cls: type) -> None:
    place = PLACES[cls]
    kind, text = refusal(place.read, {**place.least, "colour": "red"})
    path = place.path[:-1] or {Request: "request", RetryConfig: "retry", Response: "response"}.get(cls)
    assert (kind, text.partition(";")[0]) == ("invalid_request", f"{path or 'aborted_response'}: no field 'colour'")


def test_the_table_names_every_field_of_every_record() -> None:
    named = {cls: list(rows) for cls, rows in ROWS.items()}
    assert named == {cls: list(rows) for cls, rows in FIELDS.items()}
    assert named == {cls: [row.name for row in fields(cls)] for cls in FIELDS}


NESTED = {
    "a source of an unknown kind": (
        {"type": "image", "source": {"type": "file"}},
        "content[0].source.type: found 'file'; expected one of 'base64', 'url'",
    ),
    "a source without a kind": (
        {"type": "image", "source": {"data": "x"}},
        "content[0].source.type: found None; expected one of 'base64', 'url'",
    ),
    "base64 without data": (
        {"type": "image", "source": {"type": "base64", "media_type": "image/png"}},
        "content[0].source.data: found NoneType None; expected a string",
    ),
    "an address without an address": (
        {"type": "image", "source": {"type": "url"}},
        "content[0].source.url: found NoneType None; expected a string",
    ),
    "a misspelt field of a source": (
        {"type": "image", "source": {"type": "base64", "mediatype": "image/png", "data": ""}},
        "content[0].source: no field 'mediatype'; did you mean 'media_type'?",
    ),
    "a media type that is no string": (
        {"type": "image", "source": {"type": "base64", "media_type": 7, "data": ""}},
        "content[0].source.media_type: found int 7; expected a string",
    ),
    "a marker of another type": (
        {"type": "text", "text": "t", "cache_control": {"type": "persistent"}},
        "content[0].cache_control.type: found 'persistent'; expected one of 'ephemeral'",
    ),
    "a marker with another lifetime": (
        {"type": "text", "text": "t", "cache_control": {"type": "ephemeral", "ttl": "2h"}},
        "content[0].cache_control.ttl: found '2h'; expected one of None, '5m', '1h'",
    ),
    "a misspelt field of a marker": (
        {"type": "text", "text": "t", "cache_control": {"type": "ephemeral", "tll": "1h"}},
        "content[0].cache_control: no field 'tll'; did you mean 'ttl'?",
    ),
    "a block of an unknown type": (
        {"type": "txt"},
        f"content[0].type: found 'txt'; expected one of {BLOCK_TYPES}",
    ),
    "a block whose type is no string": (
        {"type": ["text"]},
        f"content[0].type: found ['text']; expected one of {BLOCK_TYPES}",
    ),
    "a block with a misspelt type": ({"typ": "text", "text": "t"}, "content[0]: no field 'typ'; did you mean 'type'?"),
    "a block without a type": ({"text": "t"}, "content[0]: no field 'type'; it is needed"),
    "a block that is none": (7, "content[0]: found int 7; expected a content block or a mapping with a `type`"),
    "a field of another block": (
        {"type": "text", "text": "t", "signature": "s"},
        "content[0]: no field 'signature'; it takes type, text, cache_control, raw_item, raw_format.",
    ),
    "a block within a tool result": (
        {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "txt": "t"}]},
        "content[0].content[0]: no field 'txt'; did you mean 'text'?",
    ),
}


@pytest.mark.parametrize("given, text", NESTED.values(), ids=NESTED.keys())
def test_what_is_wrong_within_a_block(given: Any, text: str) -> None:
    assert refusal(lambda item: read_content([item], "content"), given) == ("invalid_request", text)


CHANGE = {"type": "system_change", "add_system": "be kind"}
SAID = {"type": "text", "text": "hi"}
ALONE = "type: found 'system_change'; expected it in a message that holds nothing else"

MISPLACED: dict[str, tuple[Any, str]] = {
    "before another block": ([CHANGE, SAID], f"here.content[0].{ALONE}"),
    "behind another block": ([SAID, CHANGE], f"here.content[1].{ALONE}"),
    "as an object": ([SystemChange(), Text("hi")], f"here.content[0].{ALONE}"),
    "in a tool's result": (
        [{"type": "tool_result", "tool_use_id": "c", "content": [CHANGE]}],
        f"here.content[0].content[0].{ALONE}",
    ),
    "with a misspelt field": (
        [{"type": "system_change", "remove_tool": ["look"]}],
        "here.content[0]: no field 'remove_tool'; did you mean 'remove_tools'?",
    ),
    "with a tool that is none": (
        [CHANGE, {"type": "system_change", "define_tools": [{"name": "look"}, {"title": "find"}]}],
        "here.content[1].define_tools[1]: no field 'title'; it takes name, description, input_schema.",
    ),
    "with a blank name": (
        [{"type": "system_change", "remove_tools": ["look", " "]}],
        "here.content[0].remove_tools[1]: found str ' '; expected a string that is not blank",
    ),
    "with a text that is none": (
        [{"type": "system_change", "add_system": ["be kind", None]}],
        "here.content[0].add_system[1]: found NoneType None; expected a string",
    ),
}


@pytest.mark.parametrize("content, text", MISPLACED.values(), ids=MISPLACED.keys())
def test_a_system_change_that_cannot_be_one(content: Any, text: str) -> None:
    assert refusal(lambda given: read_message({"participant": "Ann", "content": given}, "here"), content) == (
        "invalid_request",
        text,
    )


def test_no_answer_holds_a_system_change() -> None:
    assert refusal(lambda given: read_content(given, "content"), [CHANGE]) == ("invalid_request", f"content[0].{ALONE}")


def test_several_system_changes_share_a_message() -> None:
    read = read_message({"participant": "Ann", "content": [CHANGE, SystemChange(define_tools=[Tool("look")])]}, "here")
    assert read.content == [SystemChange(add_system="be kind"), SystemChange(define_tools=[Tool("look")])]
    assert [is_system_change(block) for block in [*read.content, Text("hi")]] == [True, True, False]


BINDINGS: dict[str, tuple[Any, str]] = {
    "a misspelt field": (
        {"prefix_mismatch_behaviour": "error"},
        "config.thinking.block_binding: no field 'prefix_mismatch_behaviour'; did you mean 'prefix_mismatch_behavior'?",
    ),
    "another word": (
        {"prefix_mismatch_behavior": "drop"},
        "config.thinking.block_binding.prefix_mismatch_behavior: found 'drop'; expected one of 'error', 'drop_block'",
    ),
    "nothing": (
        {},
        "config.thinking.block_binding.prefix_mismatch_behavior: found None; expected one of 'error', 'drop_block'",
    ),
}


@pytest.mark.parametrize("binding, text", BINDINGS.values(), ids=BINDINGS.keys())
def test_a_binding_that_is_none(binding: Any, text: str) -> None:
    config = {"model": "m", "thinking": {"block_binding": binding}}
    assert refusal(read_request, {**REQUEST, "config": config}) == ("invalid_request", text)


def test_every_block_class_has_its_type() -> None:
    assert {cls.type: cls for cls in PLACES if cls in BLOCK_CLASSES.values()} == BLOCK_CLASSES
