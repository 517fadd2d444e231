"""Cache markers: {"cache_control": {"type": "ephemeral"}} on a block says "what comes before is worth caching".

A request may carry four (platform.claude.com/docs/en/build-with-claude/prompt-caching); beyond that the shallowest are
dropped, because the deepest cover the most. A marker never stands on a thinking block, which the API refuses, nor on
what may not be sent at all: blank text, and items of a provider's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ..values.base import Json

MOST_MARKERS: Final = 4
DEEPEST_NESTING: Final = 4
UNMARKABLE: Final = ("thinking", "redacted_thinking", "raw_item")


def marker(ttl: str | None) -> dict[str, str]:
    return {"type": "ephemeral"} if ttl is None else {"type": "ephemeral", "ttl": ttl}


def last_cacheable_block_index(blocks: Sequence[Json]) -> int:
    """The last block that may carry a marker; -1 where there is none."""
    return max((index for index, block in enumerate(blocks) if _is_cacheable(block)), default=-1)


def _is_cacheable(block: Json) -> bool:
    if block.get("type") == "text":
        return bool(str(block.get("text")).strip())
    return block.get("type") not in UNMARKABLE


def mark_last(blocks: list[Json], ttl: str | None) -> None:
    """Put a marker on the last block that may carry one."""
    index = last_cacheable_block_index(blocks)
    if index >= 0:
        blocks[index] = {**blocks[index], "cache_control": marker(ttl)}


def has_marker(messages: Sequence[Json]) -> bool:
    return any("cache_control" in block for message in messages for block in message["content"])


def clamp(tools: list[Json] | None, system: Any, messages: Sequence[Json], *, most: int = MOST_MARKERS) -> int:
    """Keep the `most` deepest markers, in document order: tools, system, messages. Changes the blocks in place.

    Returns how many are left.
    """
    marked = []
    for block in _marked(tools, system, messages):
        if _is_cacheable(block):
            marked.append(block)
        else:
            del block["cache_control"]
    for block in marked[: max(0, len(marked) - most)]:
        del block["cache_control"]
    return min(len(marked), most)


def count(body: Json) -> int:
    """How many markers a request body carries, whatever its format."""
    if not isinstance(body, dict):
        return 0
    return len(_marked(body.get("tools"), body.get("system"), body.get("messages") or ()))


def _marked(tools: Any, system: Any, messages: Sequence[Json]) -> list[dict[str, Any]]:
    """The blocks that carry a marker, in document order."""
    found: list[dict[str, Any]] = []
    _collect(tools, 1, found)
    _collect(system, 1, found)
    for message in messages:
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
