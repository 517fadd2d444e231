"""Cache markers: {"cache_control": {"type": "ephemeral"}} on a block says "what comes before is worth caching".

A request may carry four (platform.claude.com/docs/en/build-with-claude/prompt-caching); beyond that the shallowest are
dropped, because the deepest cover the most. A marker never stands on a thinking block, which the API refuses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from ..values.base import Json

MOST_MARKERS: Final = 4
DEEPEST_NESTING: Final = 4
UNMARKABLE: Final = ("thinking", "redacted_thinking")


def marker(ttl: str | None) -> dict[str, str]:
    return {"type": "ephemeral"} if ttl is None else {"type": "ephemeral", "ttl": ttl}


def last_cacheable_block_index(blocks: Sequence[Json]) -> int:
    """The last block that may carry a marker; -1 where there is none."""
    return max((index for index, block in enumerate(blocks) if block.get("type") not in UNMARKABLE), default=-1)


def mark_last(blocks: list[Json], ttl: str | None) -> None:
    """Put a marker on the last block that may carry one."""
    index = last_cacheable_block_index(blocks)
    if index >= 0:
        blocks[index] = {**blocks[index], "cache_control": marker(ttl)}


def has_marker(messages: Sequence[Json]) -> bool:
    return any("cache_control" in block for message in messages for block in message["content"])


def clamp(tools: list[Json] | None, system: Any, messages: Sequence[Json], *, most: int = MOST_MARKERS) -> None:
    """Keep the `most` deepest markers, in document order: tools, system, messages. Changes the blocks in place."""
    marked = []
    for block in _blocks(tools, system, messages):
        if "cache_control" in block:
            if block.get("type") in UNMARKABLE:
                del block["cache_control"]
            else:
                marked.append(block)
    for block in marked[: max(0, len(marked) - most)]:
        del block["cache_control"]


def count(body: Json) -> int:
    """How many markers a request body carries, whatever its format."""
    if not isinstance(body, dict):
        return 0
    messages = [message for message in body.get("messages") or () if isinstance(message, dict)]
    return sum("cache_control" in block for block in _blocks(body.get("tools"), body.get("system"), messages))


def _blocks(tools: Any, system: Any, messages: Sequence[Json]) -> Iterator[dict[str, Any]]:
    yield from _walk(tools, 1)
    yield from _walk(system, 1)
    for message in messages:
        yield from _walk(message.get("content"), 1)


def _walk(content: Any, depth: int) -> Iterator[dict[str, Any]]:
    if not isinstance(content, list) or depth > DEEPEST_NESTING:
        return
    for block in content:
        if isinstance(block, dict):
            yield block
            yield from _walk(block.get("content"), depth + 1)
