"""Rounds into what comes home: usage summed, priced and timed.

A Round is one provider call that was answered, with the tool results that followed it. Everything here is a function
of the rounds; the turn only loops.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from .call import own_code
from .formatters import cache_markers
from .formatters.assembly import AnswerRecord
from .pricing import estimate_cost, find_price
from .values.content import Block, ToolUse
from .values.deltas import Finished
from .values.responses import (
    CacheDetails,
    Details,
    DiscardedAttempts,
    ModelDetails,
    Raw,
    Response,
    StopDetails,
    Timing,
    Usage,
)
from .values.tools import ToolCall, ToolResult, calls_of, result_block

KNOWN_STOP_REASONS: Final = frozenset(
    [
        "end_turn",
        "max_tokens",
        "stop_sequence",
        "tool_use",
        "refusal",
        "pause_turn",
        "no_progress",
        "round_limit",
    ]
)
# With one of these, or a word that is not known, complete tool calls say what the provider meant.
MAY_MEAN_TOOL_USE: Final = frozenset(["end_turn", ""])

SUMMED: Final = (
    "input_tokens",
    "output_tokens",
    "cache_creation_tokens",
    "cache_read_tokens",
    "thinking_tokens",
    "cache_creation_5m_tokens",
    "cache_creation_1h_tokens",
    "provider_cost",
)
REQUIRED_COUNTS: Final = ("input_tokens", "output_tokens")


class Round(NamedTuple):
    """content: the answer's blocks. results: of the tools that ran after it. stop_reason: as the answer stands."""

    content: list[Block]
    record: AnswerRecord
    finished: Finished
    stop_reason: str
    raw_request: Any
    raw_response: Any
    waits_ms: Sequence[int]
    results: list[ToolResult]

    @property
    def calls(self) -> list[ToolCall]:
        return calls_of(self.content)

    @property
    def ordered_results(self) -> list[ToolResult]:
        """The results as their calls stand, for formats that pair them by place; those of no call last."""
        if len(self.results) < 2:
            return self.results
        places = {call.id: place for place, call in enumerate(self.calls)}
        return sorted(self.results, key=lambda result: places.get(result.tool_use_id, len(places)))


class Timed(NamedTuple):
    """total_s: of the whole turn. first_token_s: from its start to the first piece of content."""

    total_s: float
    first_token_s: float | None


def stop_reason_of(finished: Finished, content: Iterable[Block]) -> str:
    """Servers that answer with whole calls and say "stop", or nothing, mean tool_use. "length" keeps its meaning."""
    reason = finished.stop_reason
    calls = [block for block in content if isinstance(block, ToolUse)]
    whole = bool(calls) and all(call.unparseable_input is None for call in calls)
    if whole and (reason in MAY_MEAN_TOOL_USE or reason not in KNOWN_STOP_REASONS):
        return "tool_use"
    return reason or "end_turn"


def usage_of(records: Iterable[AnswerRecord], discarded: DiscardedAttempts | None = None) -> Usage:
    """The counts of all rounds, summed; a count that no round gave stays None, or 0 and named in `unreported`."""
    totals: dict[str, Any] = {}
    unreported = []
    for record in records:
        for name in SUMMED:
            if record.counts.get(name) is not None:
                totals[name] = (totals.get(name) or 0) + record.counts[name]
        unreported += [name for name in REQUIRED_COUNTS if record.counts.get(name) is None]
    return Usage(**totals, unreported=list(dict.fromkeys(unreported)), discarded_attempts=discarded)


def priced(usage: Usage, *, served: str | None, requested: str, registry: Any) -> Usage:
    """The same usage with its estimated cost, where the model has a price and the provider gave its counts."""
    if usage.unreported:
        return usage
    if registry is None:
        price = find_price(served=served, requested=requested)
    else:
        price = own_code("registry.get_pricing", _price, served, requested, registry)
    cost = None if price is None else estimate_cost(usage, price)
    return Usage(**{**vars(usage), "estimated_cost": cost})


def _price(served: str | None, requested: str, registry: Any) -> Any:
    return find_price(served=served, requested=requested, registry=registry)


def discarded_of(refused: Sequence[AnswerRecord], *, requested: str, registry: Any) -> DiscardedAttempts | None:
    """What the refusals cost that were sent again."""
    if not refused:
        return None
    usage = usage_of(refused)
    cost = priced(usage, served=refused[-1].model, requested=requested, registry=registry).estimated_cost
    return DiscardedAttempts(
        count=len(refused),
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_creation_tokens=usage.cache_creation_tokens or 0,
        cache_read_tokens=usage.cache_read_tokens or 0,
        cost=None if cost is None else cost.total,
    )


def content_of(rounds: Iterable[Round]) -> list[Block]:
    """The blocks of all rounds, each round's results behind its calls."""
    blocks: list[Block] = []
    for done in rounds:
        blocks += [*done.content, *map(result_block, done.ordered_results)]
    return blocks


def response_of(
    rounds: Sequence[Round],
    usage: Usage,
    timed: Timed,
    *,
    requested: str,
    provider: str,
    assistant: str,
    content: list[Block],
    raw_text: str,
) -> Response:
    """The response of a turn that ended by itself. rounds: one at least. content, raw_text: of all of them."""
    last = rounds[-1]
    record = last.record
    waits = [wait for done in rounds for wait in done.waits_ms]
    return Response(
        content=content,
        stop_reason=last.stop_reason,
        usage=usage,
        details=Details(
            stop=_stop(last),
            usage=usage,
            timing=Timing(
                total_duration_ms=timed.total_s * 1000,
                attempts=1 + len(waits),
                rounds=len(rounds),
                retry_delays_ms=waits or None,
                time_to_first_token_ms=None if timed.first_token_s is None else timed.first_token_s * 1000,
            ),
            model=ModelDetails(requested=requested, actual=record.model or requested, provider=provider),
            cache=_cache(last, usage),
            request_id=record.head.request_id if record.head else None,
            rate_limit=dict(record.head.rate_limit) if record.head and record.head.rate_limit else None,
        ),
        raw_assistant_text=raw_text,
        tool_calls=[call for done in rounds for call in done.calls],
        tool_results=[result for done in rounds for result in done.results],
        raw=Raw(
            request=last.raw_request,
            response=last.raw_response,
            headers=dict(record.head.headers) if record.head else None,
        ),
        assistant_participant=assistant,
    )


def _stop(last: Round) -> StopDetails:
    return StopDetails(
        reason=last.stop_reason,
        provider_reason=last.finished.provider_reason,
        triggered_sequence=last.finished.stop_sequence,
        was_truncated=last.stop_reason == "max_tokens",
        refusal=last.finished.refusal,
        category=last.finished.category,
        unclosed_tool_block=last.record.unclosed_tool_block,
    )


def _cache(last: Round, usage: Usage) -> CacheDetails:
    read = usage.cache_read_tokens or 0
    return CacheDetails(
        markers_in_request=cache_markers.count(last.raw_request),
        tokens_created=usage.cache_creation_tokens or 0,
        tokens_read=read,
        hit_ratio=read / (read + usage.input_tokens) if read else 0.0,
    )
