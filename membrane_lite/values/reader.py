"""The strict reader: mappings and objects in, checked records out. One table says what every field may hold.

A misspelt key, a wrong type or a missing field is a MembraneError("invalid_request") that names the path and what was
expected. Objects go through the same rows as mappings and come out as copies: the caller's are never changed.

    read_request({"messages": [{"participant": "User", "content": [{"typ": "text"}]}], "config": {...}})
    -> messages[0].content[0]: no field 'typ'; did you mean 'type'?
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any, Final, TypeVar

from ..errors import MembraneError, invalid, shown, unknown_field, wrong_type
from .base import Record
from .content import BLOCK_CLASSES, Block, SystemChange, Text
from .messages import Message
from .options import OverloadedRetry, RetryConfig
from .requests import GenerationConfig, Request, ThinkingConfig
from .responses import (
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
from .tools import Tool, ToolCall, ToolResult

Read = Callable[[Any, str], Any]  # (value, path): the path only says where, and is completed from the inside out
AnyRecord = TypeVar("AnyRecord", bound=Record)


def read_request(given: object) -> Request:
    """A Request, or a mapping of its shape."""
    request = _record(Request, given, "request")
    if not request.messages:
        raise invalid("messages", "the list is empty", "expected at least one message")
    return request


def read_message(given: object, path: str) -> Message:
    """A Message, or a mapping of its shape; content may be a string."""
    return _record(Message, given, path)


def read_tool_results(given: object) -> list[ToolResult]:
    """What a tool callback returned: a list of ToolResults or mappings of their shape."""
    if not isinstance(given, (list, tuple)):
        raise wrong_type("on_tool_calls", given, "a list of tool results")
    return [_record(ToolResult, item, f"tool_results[{index}]") for index, item in enumerate(given)]


def read_retry_config(given: object) -> RetryConfig:
    """A RetryConfig, or a mapping with some of its fields."""
    return _record(RetryConfig, given, "retry")


def read_response(given: object) -> Response:
    """A Response, or what its to_dict gave."""
    return _record(Response, given, "response")


def read_aborted_response(given: object) -> AbortedResponse:
    """An AbortedResponse, or what its to_dict gave."""
    return _record(AbortedResponse, given, "aborted_response")


def read_content(given: object, path: str) -> list[Block]:
    """A list of blocks; a string means one text block."""
    return _blocks(given, path)


def _record(cls: type[AnyRecord], given: object, path: str) -> AnyRecord:
    """An instance of `cls`, from one or from a mapping, every field read by its row in FIELDS."""
    rows = FIELDS[cls]
    if isinstance(given, cls):
        values: Mapping[Any, Any] = {name: getattr(given, name) for name in rows}
    elif isinstance(given, (dict, Mapping)):  # dict first: an abstract class is asked ten times as long
        values = given
    else:
        raise wrong_type(path, given, f"a {cls.__name__} or a mapping of its shape")
    tag = getattr(cls, "type", None) if cls in BLOCK_CLASSES.values() else None
    for key in values:
        if key not in rows and not (key == "type" and tag):
            raise unknown_field(path, key, ["type", *rows] if tag else list(rows))
    for name in REQUIRED[cls]:
        if values.get(name) is None:
            raise invalid(_at(path, name), "missing", f"a {cls.__name__} needs it")
    try:
        return cls(**{name: rows[name](value, name) for name, value in values.items() if name in rows})
    except MembraneError as error:
        raise error if path in ROOTS else error.inside(path) from None


def _at(path: str, name: str) -> str:
    """Paths start below the root: `messages[0].content`, not `request.messages[0].content`."""
    return name if path in ROOTS else f"{path}.{name}"


def _each(read: Read, items: Sequence[object], path: str) -> list[Any]:
    """Every item read; where one is refused, its place is put before what was said of it."""
    done: list[Any] = []
    try:
        for item in items:
            done.append(read(item, ITEM))
    except MembraneError as error:
        raise error.inside(f"{path}[{len(done)}]", ITEM) from None
    return done


ROOTS: Final = ("request", "response", "aborted_response", "retry")
ITEM: Final = "item"  # the path of an item, until somebody asks


# What a field may hold: functions of (value, path) that return the value to keep or raise.


def _text(value: object, path: str) -> str:
    if not isinstance(value, str):
        raise wrong_type(path, value, "a string")
    return value


def _name(value: object, path: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise wrong_type(path, value, "a string that is not blank")
    return value


def _flag(value: object, path: str) -> bool:
    if not isinstance(value, bool):
        raise wrong_type(path, value, "True or False")
    return value


def _true(value: object, path: str) -> bool:
    if value is not True:
        raise wrong_type(path, value, "True")
    return True


def _number(value: object, path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not _is_finite(value):
        raise wrong_type(path, value, "a finite number")
    return value


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number too large for a float
        return False


def _count(value: object, path: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise wrong_type(path, value, "a whole number, 0 or more")
    return value


def _mapping(value: object, path: str) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise wrong_type(path, value, "a mapping with string keys")
    return dict(value)


def _anything(value: object, path: str) -> Any:
    return value


def _one_of(*words: object) -> Read:
    def read(value: object, path: str) -> object:
        if value not in words:
            raise invalid(path, f"found {shown(value)}", f"expected one of {', '.join(map(repr, words))}")
        return value

    return read


def _optional(read: Read) -> Read:
    return lambda value, path: None if value is None else read(value, path)


def _list_of(read: Read) -> Read:
    def read_list(value: object, path: str) -> list[Any]:
        if not isinstance(value, (list, tuple)):
            raise wrong_type(path, value, "a list")
        return _each(read, value, path)

    return read_list


def _of(cls: type[Record]) -> Read:
    return lambda value, path: _record(cls, value, path)


def _block(value: object, path: str) -> Any:
    """A block object, or a mapping with a `type` that names one."""
    if isinstance(value, Record) and type(value) in BLOCK_CLASSES.values():
        return _record(type(value), value, path)
    if not isinstance(value, Mapping):
        raise wrong_type(path, value, "a content block or a mapping with a `type`")
    if "type" not in value:
        key = next((key for key in value if key not in ("text", "source")), None)
        raise (
            unknown_field(path, key, ["type"]) if key is not None else invalid(path, "no field 'type'", "it is needed")
        )
    if not isinstance(value["type"], str) or value["type"] not in BLOCK_CLASSES:
        raise unknown_block(value["type"], path)
    return _record(BLOCK_CLASSES[value["type"]], value, path)


def unknown_block(given: object, path: str) -> MembraneError:
    return invalid(f"{path}.type", f"found {shown(given)}", f"expected one of {', '.join(BLOCK_CLASSES)}")


def _any_blocks(value: object, path: str) -> list[Any]:
    if isinstance(value, str):
        return [Text(value)]
    if not isinstance(value, (list, tuple)):
        raise wrong_type(path, value, "a string or a list of content blocks")
    return _each(_block, value, path)


def _blocks(value: object, path: str) -> list[Any]:
    return _without_changes(_any_blocks(value, path), path)


def _message_content(value: object, path: str) -> list[Any]:
    """Blocks; a system change only among its kind, for it becomes a message of another role."""
    blocks = _any_blocks(value, path)
    changes = [isinstance(block, SystemChange) for block in blocks]
    return blocks if all(changes) else _without_changes(blocks, path)


def _without_changes(blocks: list[Any], path: str) -> list[Any]:
    for index, block in enumerate(blocks):
        if isinstance(block, SystemChange):
            raise misplaced_change(f"{path}[{index}].type")
    return blocks


def misplaced_change(path: str) -> MembraneError:
    return invalid(path, f"found {SystemChange.type!r}", "expected it in a message that holds nothing else")


def _text_or_texts(value: object, path: str) -> Any:
    if isinstance(value, str):
        return value
    if not isinstance(value, (list, tuple)):
        raise wrong_type(path, value, "a string or a list of strings")
    return _each(_text, value, path)


def _text_or_blocks(value: object, path: str) -> Any:
    return value if isinstance(value, str) else _blocks(value, path)


def _system(value: object, path: str) -> Any:
    """A string, or text blocks (which may carry their own cache_control)."""
    if isinstance(value, str):
        return value
    blocks = _blocks(value, path)
    for index, block in enumerate(blocks):
        if not isinstance(block, Text):
            raise invalid(f"{path}[{index}].type", f"found {block.type!r}", "expected only text blocks")
    return blocks


def _source(value: object, path: str) -> dict[str, Any]:
    """{"type": "base64", "media_type", "data"} or {"type": "url", "url"}."""
    source = _mapping(value, path)
    kind = _one_of(*SOURCES)(source.get("type"), f"{path}.type")
    for key in source:
        if key not in SOURCES[kind]:
            raise unknown_field(path, key, SOURCES[kind])
    for key in SOURCES[kind]:
        _text(source.get(key), f"{path}.{key}") if key in source or key in ("data", "url") else None
    return source


def _cache_control(value: object, path: str) -> dict[str, str]:
    control = _mapping_of(["type", "ttl"], value, path)
    _one_of("ephemeral")(control.get("type"), f"{path}.type")
    _one_of(None, "5m", "1h")(control.get("ttl"), f"{path}.ttl")
    return control


def _block_binding(value: object, path: str) -> dict[str, str]:
    binding = _mapping_of([BINDING_BEHAVIOR], value, path)
    _one_of("error", "drop_block")(binding.get(BINDING_BEHAVIOR), f"{path}.{BINDING_BEHAVIOR}")
    return binding


def _mapping_of(keys: Sequence[str], value: object, path: str) -> dict[str, Any]:
    mapping = _mapping(value, path)
    for key in mapping:
        if key not in keys:
            raise unknown_field(path, key, keys)
    return mapping


def _stop_sequences(value: object, path: str) -> list[str]:
    """A list of strings, or a mapping {"sequences": [...]}."""
    if isinstance(value, Mapping):
        value, path = _mapping_of(["sequences"], value, path).get("sequences"), f"{path}.sequences"
    texts: list[str] = _list_of(_text)(value, path)
    return texts


BINDING_BEHAVIOR: Final = "prefix_mismatch_behavior"
SOURCES: Final = {"base64": ["type", "media_type", "data"], "url": ["type", "url"]}

_RAW: Final[dict[str, Read]] = {"raw_item": _anything, "raw_format": _optional(_text)}
_TEXT, _NUMBER, _COUNT, _FLAG = _optional(_text), _optional(_number), _optional(_count), _optional(_flag)
_TTL: Final = _optional(_one_of("5m", "1h"))

_BLOCK_FIELDS: Final[dict[str, dict[str, Read]]] = {
    "text": {"text": _text, "cache_control": _optional(_cache_control), **_RAW},
    "image": {"source": _source, "token_estimate": _COUNT, "source_url": _TEXT, **_RAW},
    "document": {"source": _source, "filename": _TEXT, **_RAW},
    "audio": {"source": _source, "duration": _NUMBER, "transcript": _TEXT, **_RAW},
    "video": {"source": _source, "duration": _NUMBER, **_RAW},
    "generated_image": {"data": _text, "mime_type": _text, "url": _TEXT, "is_preview": _FLAG, **_RAW},
    "thinking": {"thinking": _text, "signature": _TEXT, **_RAW},
    "redacted_thinking": {"data": _text, **_RAW},
    "tool_use": {
        "id": _name,
        "name": _name,
        "input": _anything,
        "unparseable_input": _TEXT,
        "raw_xml": _TEXT,
        **_RAW,
    },
    "tool_result": {"tool_use_id": _text, "content": _text_or_blocks, "is_error": _FLAG, "raw_xml": _TEXT, **_RAW},
    "system_change": {
        "remove_tools": _optional(_list_of(_name)),
        "define_tools": _optional(_list_of(_of(Tool))),
        "add_system": _optional(_text_or_texts),
        **_RAW,
    },
}

FIELDS: Final[dict[type[Record], dict[str, Read]]] = {
    **{cls: _BLOCK_FIELDS[name] for name, cls in BLOCK_CLASSES.items()},
    Message: {
        "participant": _name,
        "content": _message_content,
        "metadata": _optional(_mapping),
        "cache_breakpoint": _flag,
    },
    Tool: {"name": _name, "description": _text, "input_schema": _mapping},
    ToolCall: {"id": _text, "name": _text, "input": _anything, "unparseable_input": _TEXT},
    ToolResult: {"tool_use_id": _text, "content": _text_or_blocks, "is_error": _FLAG},
    ThinkingConfig: {
        "enabled": _flag,
        "budget_tokens": _COUNT,
        "type": _one_of("enabled", "adaptive"),
        "display": _optional(_one_of("summarized", "omitted")),
        "block_binding": _optional(_block_binding),
    },
    GenerationConfig: {
        "model": _name,
        "max_tokens": _COUNT,
        "temperature": _NUMBER,
        "top_p": _NUMBER,
        "top_k": _COUNT,
        "presence_penalty": _NUMBER,
        "frequency_penalty": _NUMBER,
        "repetition_penalty": _NUMBER,
        "thinking": _optional(_of(ThinkingConfig)),
    },
    Request: {
        "messages": _list_of(_of(Message)),
        "config": _of(GenerationConfig),
        "system": _optional(_system),
        "tools": _optional(_list_of(_of(Tool))),
        "tool_mode": _one_of("auto", "native", "xml"),
        "stop_sequences": _optional(_stop_sequences),
        "max_participants_for_stop": _COUNT,
        "prompt_caching": _FLAG,
        "cache_ttl": _TTL,
        "floating_cache_marker": _FLAG,
        "context_prefix": _TEXT,
        "prefill_user_message": _TEXT,
        "assistant_participant": _optional(_name),
        "streaming": _flag,
        "provider_params": _optional(_mapping),
        "shed_oversize_images": _flag,
    },
    OverloadedRetry: {
        "max_retries": _count,
        "retry_delay_ms": _count,
        "backoff_multiplier": _number,
        "max_retry_delay_ms": _count,
    },
    RetryConfig: {
        "max_retries": _count,
        "retry_delay_ms": _count,
        "backoff_multiplier": _number,
        "max_retry_delay_ms": _count,
        "overloaded": _of(OverloadedRetry),
    },
    Cost: {
        "input": _NUMBER,
        "output": _NUMBER,
        "cache_write": _NUMBER,
        "cache_read": _NUMBER,
        "total": _NUMBER,
        "currency": _text,
    },
    DiscardedAttempts: {
        "count": _count,
        "input_tokens": _count,
        "output_tokens": _count,
        "cache_creation_tokens": _count,
        "cache_read_tokens": _count,
        "cost": _NUMBER,
    },
    Usage: {
        "input_tokens": _count,
        "output_tokens": _count,
        "cache_creation_tokens": _COUNT,
        "cache_read_tokens": _COUNT,
        "thinking_tokens": _COUNT,
        "cache_creation_5m_tokens": _COUNT,
        "cache_creation_1h_tokens": _COUNT,
        "provider_cost": _NUMBER,
        "unreported": _list_of(_text),
        "discarded_attempts": _optional(_of(DiscardedAttempts)),
        "estimated_cost": _optional(_of(Cost)),
    },
    StopDetails: {
        "reason": _text,
        "provider_reason": _TEXT,
        "triggered_sequence": _TEXT,
        "was_truncated": _flag,
        "refusal": _TEXT,
        "category": _TEXT,
        "unclosed_tool_block": _flag,
    },
    Timing: {
        "total_duration_ms": _number,
        "attempts": _count,
        "rounds": _count,
        "retry_delays_ms": _optional(_list_of(_count)),
        "time_to_first_token_ms": _NUMBER,
    },
    ModelDetails: {"requested": _text, "actual": _text, "provider": _text},
    CacheDetails: {
        "markers_in_request": _count,
        "tokens_created": _count,
        "tokens_read": _count,
        "hit_ratio": _number,
    },
    Details: {
        "stop": _of(StopDetails),
        "usage": _of(Usage),
        "timing": _of(Timing),
        "model": _of(ModelDetails),
        "cache": _of(CacheDetails),
        "request_id": _TEXT,
        "rate_limit": _optional(_mapping),
    },
    Raw: {"request": _anything, "response": _anything, "headers": _optional(_mapping)},
    Response: {
        "content": _blocks,
        "stop_reason": _text,
        "usage": _of(Usage),
        "details": _of(Details),
        "raw_assistant_text": _text,
        "tool_calls": _list_of(_of(ToolCall)),
        "tool_results": _list_of(_of(ToolResult)),
        "raw": _of(Raw),
        "assistant_participant": _text,
    },
    AbortedResponse: {
        "reason": _one_of("user", "timeout", "error"),
        "message": _TEXT,
        "partial_content": _blocks,
        "partial_usage": _optional(_of(Usage)),
        "raw_assistant_text": _text,
        "tool_calls": _list_of(_of(ToolCall)),
        "tool_results": _list_of(_of(ToolResult)),
        "aborted": _true,
    },
}

REQUIRED: Final[dict[type[Record], list[str]]] = {
    cls: [row.name for row in fields(cls) if row.default is MISSING and row.default_factory is MISSING]
    for cls in FIELDS
}
