"""Counts of chat completions, made disjoint. Pure."""

from __future__ import annotations

from typing import Any

from ..values.base import Json
from .base import count_or_none, mapping_or_empty, without_none


def counts(usage: Json) -> dict[str, Any]:
    """Counts by our names, made disjoint: this dialect counts cached tokens inside the prompt.

    Reasoning is part of completion_tokens, except where the total shows that it was counted beside them (xAI).
    """
    prompt, completion = count_or_none(usage.get("prompt_tokens")), count_or_none(usage.get("completion_tokens"))
    details = mapping_or_empty(usage.get("prompt_tokens_details"))
    # Anthropic's names stand there as 0 also where nobody counted.
    read = first_count(
        details.get("cached_tokens"),
        usage.get("cache_read_input_tokens") or None,
        usage.get("prompt_cache_hit_tokens"),
    )
    created = first_count(details.get("cache_write_tokens"), usage.get("cache_creation_input_tokens") or None)
    thinking = count_or_none(mapping_or_empty(usage.get("completion_tokens_details")).get("reasoning_tokens"))
    if thinking and usage.get("total_tokens") == (prompt or 0) + (completion or 0) + thinking:
        completion = (completion or 0) + thinking
    return without_none(
        {
            "input_tokens": None if prompt is None else max(0, prompt - (read or 0) - (created or 0)),
            "output_tokens": completion,
            "cache_read_tokens": read,
            "cache_creation_tokens": created,
            "thinking_tokens": thinking,
            "provider_cost": count_or_none(usage.get("cost")),
        }
    )


def first_count(*values: Any) -> Any:
    """Servers name a count differently; some name it twice."""
    return next((value for value in map(count_or_none, values) if value is not None), None)
