"""Cache markers: {"cache_control": {"type": "ephemeral"}} on a block says "what comes before is worth caching".

A request may carry four (platform.claude.com/docs/en/build-with-claude/prompt-caching); beyond that the shallowest are
dropped, because the deepest cover the most. A marker never stands on a thinking block, which the API refuses, nor on
what may not be sent at all: blank text, and items of a provider's own. A body may ask for one more by a cache_control
of its own, which the API puts on the last block itself; it takes one of the four places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from ..values.base import Json
from .base import BuildOptions, text_block

MOST_MARKERS: Final = 4
DEEPEST_NESTING: Final = 4
UNMARKABLE: Final = ("thinking", "redacted_thinking", "raw_item")
LEFT_OUT: Final = (
    "%d cache markers were left out: a request carries at most four, the deepest, and none on thinking or blank text"
)


def marker(ttl: str | None) -> dict[str, str]:
    return {"type": "ephemeral"} if ttl is None else {"type": "ephemeral", "ttl": ttl}


def last_cacheable_block_index(blocks: Sequence[Json]) -> int:
    """The last block that may carry a marker; -1 where there is none."""
    return max((index for index, block in enumerate(blocks) if _is_cacheable(block)), default=-1)


def _is_cacheable(block: Json) -> bool:
    if block.get("type") == "text":
        text = block.get("text")
        return isinstance(text, str) and bool(text.strip())
    return block.get("type") not in UNMARKABLE


def mark_last(blocks: list[Json], ttl: str | None) -> None:
    """Put a marker on the last block that may carry one."""
    index = last_cacheable_block_index(blocks)
    if index >= 0:
        blocks[index] = {**blocks[index], "cache_control": marker(ttl)}


def has_marker(messages: Sequence[Json]) -> bool:
    return any("cache_control" in block for message in messages for block in message["content"])


class Clamped(NamedTuple):
    """How many markers a request keeps, and how many it has lost."""

    kept: int
    lost: int


def clamp(tools: list[Json] | None, system: Any, messages: Sequence[Json], *, most: int = MOST_MARKERS) -> Clamped:
    """Keep the `most` deepest markers, in document order: tools, system, messages. Changes the blocks in place."""
    asked, kept = marked({"tools": tools, "system": system, "messages": messages}), []
    for block in asked:
        if _is_cacheable(block):
            kept.append(block)
        else:
            del block["cache_control"]
    for block in kept[: max(0, len(kept) - most)]:
        del block["cache_control"]
    left = min(len(kept), most)
    return Clamped(left, len(asked) - left)


def clamped(body: Json, *, most: int = MOST_MARKERS) -> Json:
    """A body that keeps the `most` deepest of its markers: a copy, or the same one where nothing is to be dropped."""
    room = most - _automatic(body)
    found = marked(body)
    if len(found) <= room and all(map(_is_cacheable, found)):
        return body
    body = copied(body)
    clamp(body.get("tools"), body.get("system"), body.get("messages") or (), most=room)
    return body


def cached_turn(text: str, options: BuildOptions) -> Json:
    """An assistant message that is there to be cached: marked, where caching is on."""
    blocks: list[Json] = [text_block(text)]
    if options.prompt_caching:
        mark_last(blocks, options.cache_ttl)
    return {"role": "assistant", "content": blocks}


def settle(tools: list[Json] | None, system: Any, messages: Sequence[Json], options: BuildOptions) -> int:
    """How many markers a request keeps: four at most, none where caching is off. Tells of those left out."""
    most = MOST_MARKERS if options.prompt_caching else 0
    clamped = clamp(tools, system, messages, most=most)
    if clamped.lost and most:
        options.tell(LEFT_OUT, clamped.lost)
    return clamped.kept


def count(body: Json) -> int:
    """How many markers a request body carries, whatever its format."""
    return len(marked(body)) + _automatic(body) if isinstance(body, (dict, Mapping)) else 0


def _automatic(body: Mapping[str, Any]) -> int:
    return 0 if body.get("cache_control") is None else 1


def marked(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The blocks of a body that carry a marker, in document order."""
    found: list[dict[str, Any]] = []
    _collect(body.get("tools"), 1, found)
    _collect(body.get("system"), 1, found)
    messages = body.get("messages")
    for message in messages if isinstance(messages, (list, tuple)) else ():
        if isinstance(message, dict):
            _collect(message.get("content"), 1, found)
    return found


def _collect(content: Any, depth: int, found: list[dict[str, Any]]) -> None:
    if not isinstance(content, list) or depth > DEEPEST_NESTING:
        return
    for block in content:
        if isinstance(block, dict):
            if "cache_control" in block:
                found.append(block)
            if "content" in block:
                _collect(block["content"], depth + 1, found)
            if isinstance(block.get("tool"), dict):  # of a system change: the marker may stand in the definition
                _collect([block["tool"].get("definition")], depth + 1, found)


def copied(body: Mapping[str, Any]) -> dict[str, Any]:
    """The body with blocks of its own, wherever a marker may stand."""
    parts = {"tools": 1, "system": 1, "messages": 0}
    return {**body, **{name: _copied(body[name], depth) for name, depth in parts.items() if name in body}}


def _copied(content: Any, depth: int) -> Any:
    if not isinstance(content, (list, tuple)) or depth > DEEPEST_NESTING:
        return content
    return [_copied_block(block, depth) if isinstance(block, dict) else block for block in content]


def _copied_block(block: dict[str, Any], depth: int) -> dict[str, Any]:
    own = dict(block)
    if "content" in block:
        own["content"] = _copied(block["content"], depth + 1)
    if isinstance(block.get("tool"), dict):
        own["tool"] = {key: dict(value) if key == "definition" else value for key, value in block["tool"].items()}
    return own


def bare(block: Json, depth: int = 1) -> Json:
    """A block as the cache knows it: markers are no part of what is cached."""
    if not isinstance(block, dict) or depth > DEEPEST_NESTING:
        return block
    fields = {key: value for key, value in block.items() if key != "cache_control"}
    if isinstance(fields.get("content"), list):
        fields["content"] = [bare(part, depth + 1) for part in fields["content"]]
    return fields
