"""outcome: what a turn's rounds add up to: usage, cost, timing, and why it ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from membrane_lite.errors import MembraneError
from membrane_lite.formatters.assembly import AnswerRecord
from membrane_lite.outcome import (
    Round,
    Timed,
    content_of,
    discarded_of,
    priced,
    response_of,
    stop_reason_of,
    usage_of,
)
from membrane_lite.values.content import Block, Text, Thinking, ToolResultBlock, ToolUse
from membrane_lite.values.deltas import AnswerHead, Finished, ModelNamed, UsageReported
from membrane_lite.values.responses import (
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
from membrane_lite.values.tools import ToolCall, ToolResult

CALL = ToolUse("c1", "look", {"at": 1})
BROKEN = ToolUse("c2", "look", {}, unparseable_input="{")


def answer(counts: Mapping[str, Any] | None = None, *, model: str | None = None) -> AnswerRecord:
    record = AnswerRecord()
    if counts is not None:
        record.usage_reported(UsageReported(counts))
    if model is not None:
        record.model_named(ModelNamed(model))
    return record


STOPS: dict[str, tuple[str, list[Block], str]] = {
    "end of turn": ("end_turn", [Text("a")], "end_turn"),
    "nothing said": ("", [], "end_turn"),
    "calls, and says so": ("tool_use", [CALL], "tool_use"),
    "calls, and says that it is done": ("end_turn", [Text("a"), CALL], "tool_use"),
    "calls, and says nothing": ("", [CALL], "tool_use"),
    "calls, and says a word of its own": ("eos", [CALL], "tool_use"),
    "a word of its own": ("eos", [Text("a")], "eos"),
    "calls, cut": ("max_tokens", [CALL], "max_tokens"),
    "calls, and refuses": ("refusal", [CALL], "refusal"),
    "calls, and was paused": ("pause_turn", [CALL], "pause_turn"),
    "calls, and met a stop sequence": ("stop_sequence", [CALL], "stop_sequence"),
    "a broken call is none": ("end_turn", [BROKEN], "end_turn"),
    "one of two calls is broken": ("end_turn", [CALL, BROKEN], "end_turn"),
    "a broken call that was announced": ("tool_use", [BROKEN], "tool_use"),
}


@pytest.mark.parametrize("said, content, reason", STOPS.values(), ids=STOPS.keys())
def test_why_a_round_ended(said: str, content: list[Block], reason: str) -> None:
    assert stop_reason_of(Finished(said, said), content) == reason


FULL = {
    "input_tokens": 10,
    "output_tokens": 4,
    "cache_creation_tokens": 3,
    "cache_read_tokens": 20,
    "thinking_tokens": 2,
    "cache_creation_5m_tokens": 1,
    "cache_creation_1h_tokens": 2,
    "provider_cost": 0.25,
}

USAGES: dict[str, tuple[list[AnswerRecord], Usage]] = {
    "no rounds": ([], Usage()),
    "one round": ([answer(FULL)], Usage(**FULL)),
    "two rounds": (
        [answer(FULL), answer({"input_tokens": 1, "output_tokens": 1, "cache_read_tokens": 30, "provider_cost": 0.5})],
        Usage(11, 5, 3, 50, 2, 1, 2, 0.75),
    ),
    "a count that no round gave is not known": (
        [answer({"input_tokens": 1, "output_tokens": 2}), answer({"input_tokens": 3, "output_tokens": 4})],
        Usage(4, 6),
    ),
    "a count of 0 is known": (
        [answer({"input_tokens": 1, "output_tokens": 2, "cache_read_tokens": 0})],
        Usage(1, 2, cache_read_tokens=0),
    ),
    "nothing was counted": ([answer()], Usage(unreported=["input_tokens", "output_tokens"])),
    "one round of two was not counted": (
        [answer({"input_tokens": 1, "output_tokens": 2}), answer({"input_tokens": 3, "output_tokens": None})],
        Usage(4, 2, unreported=["output_tokens"]),
    ),
    "what lacks in both is named once": (
        [answer({"input_tokens": 1}), answer({"input_tokens": 1})],
        Usage(2, 0, unreported=["output_tokens"]),
    ),
    "a count of a provider's own is left aside": (
        [answer({"input_tokens": 1, "output_tokens": 2, "audio_tokens": 7})],
        Usage(1, 2),
    ),
}


@pytest.mark.parametrize("records, usage", USAGES.values(), ids=USAGES.keys())
def test_usage_is_summed(records: list[AnswerRecord], usage: Usage) -> None:
    assert usage_of(records) == usage


class Registry:
    """Prices of the caller's own."""

    def __init__(self, prices: Mapping[str, Any]) -> None:
        self._prices = prices
        self.asked: list[str] = []

    def get_pricing(self, model: str) -> Any:
        self.asked.append(model)
        return self._prices.get(model)


RATES = {"input_per_million": 3, "output_per_million": 15}


def test_the_model_that_answered_is_priced_before_the_one_that_was_asked_for() -> None:
    registry = Registry({"asked": RATES})
    usage = priced(Usage(1_000_000, 1_000_000), served="served", requested="asked", registry=registry)
    assert usage.estimated_cost == Cost(input=3, output=15, total=18)
    assert registry.asked == ["served", "asked"]


UNPRICED = {
    "a model without a price": (Usage(1, 1), "no-such-model"),
    "counts that are not known": (Usage(1, 0, unreported=["output_tokens"]), "claude-sonnet-4-5"),
}


@pytest.mark.parametrize("usage, model", UNPRICED.values(), ids=UNPRICED.keys())
def test_what_has_no_cost(usage: Usage, model: str) -> None:
    assert priced(usage, served=None, requested=model, registry=None).estimated_cost is None


def test_pricing_keeps_the_counts_and_changes_no_usage() -> None:
    given = usage_of([answer(FULL)], DiscardedAttempts(count=1))
    usage = priced(given, served=None, requested="m", registry=Registry({"m": RATES}))
    assert given.estimated_cost is None
    assert usage.estimated_cost is not None
    assert {**usage.to_dict(), "estimated_cost": None} == {**given.to_dict(), "estimated_cost": None}


def test_a_registry_that_raises_ends_the_call() -> None:
    class Broken:
        def get_pricing(self, model: str) -> Any:
            raise ConnectionError("503")

    with pytest.raises(MembraneError) as raised:
        priced(Usage(1, 1), served=None, requested="m", registry=Broken())
    assert (raised.value.type, raised.value.retryable) == ("network", False)
    assert raised.value.message == "registry.get_pricing raised ConnectionError: 503"
    assert isinstance(raised.value.__cause__, ConnectionError)


def test_what_refusals_cost_that_were_sent_again() -> None:
    million = 1_000_000
    refused = [
        answer({"input_tokens": million, "output_tokens": million, "cache_creation_tokens": million}, model="m-0"),
        answer({"input_tokens": million, "output_tokens": 0, "cache_read_tokens": million}, model="m-1"),
    ]
    registry = Registry({"m-1": {"input": 2, "output": 10, "cache_write": 4, "cache_read": 0.5}})
    assert discarded_of(refused, requested="asked", registry=registry) == DiscardedAttempts(
        count=2,
        input_tokens=2 * million,
        output_tokens=million,
        cache_creation_tokens=million,
        cache_read_tokens=million,
        cost=2 * 2 + 10 + 4 + 0.5,
    )


NOTHING_DISCARDED: dict[str, tuple[list[AnswerRecord], DiscardedAttempts | None]] = {
    "no refusals": ([], None),
    "refusals without counts have no cost": ([answer()], DiscardedAttempts(count=1)),
    "refusals without a price have none": (
        [answer({"input_tokens": 1, "output_tokens": 2}, model="x")],
        DiscardedAttempts(1, 1, 2),
    ),
}


@pytest.mark.parametrize("refused, spent", NOTHING_DISCARDED.values(), ids=NOTHING_DISCARDED.keys())
def test_refusals_of_no_known_cost(refused: list[AnswerRecord], spent: DiscardedAttempts | None) -> None:
    assert discarded_of(refused, requested="no-such-model", registry=None) == spent


# Responses


HEAD = AnswerHead({"request-id": "req_2"}, "req_2", {"requests": {"remaining": 4}})
REQUESTED = {
    "model": "m",
    "messages": [{"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {}}]}],
}


def a_round(
    *content: Block,
    finished: Finished,
    record: AnswerRecord,
    waits_ms: list[int] | None = None,
    results: list[ToolResult] | None = None,
    raw_request: Any = None,
) -> Round:
    stop = stop_reason_of(finished, content)
    return Round(list(content), record, finished, stop, raw_request, {"id": "msg"}, waits_ms or [], results or [])


def two_rounds() -> list[Round]:
    last = answer({"input_tokens": 30, "output_tokens": 5, "cache_read_tokens": 10}, model="m-1")
    last.answer_head(HEAD)
    return [
        a_round(
            Thinking("t"),
            Text("Let me look. "),
            CALL,
            finished=Finished("tool_use", "tool_calls"),
            record=answer({"input_tokens": 10, "output_tokens": 5, "cache_creation_tokens": 8}, model="m-0"),
            waits_ms=[1_000, 2_000],
            results=[ToolResult("c1", "seen", is_error=False)],
        ),
        a_round(
            Text("It is he"),
            finished=Finished(
                "max_tokens", "length", stop_sequence="\n", refusal="half of it", category="cyber", envelope={}
            ),
            record=last,
            waits_ms=[500],
            raw_request=REQUESTED,
        ),
    ]


def test_a_response_of_two_rounds() -> None:
    rounds = two_rounds()
    usage = usage_of([done.record for done in rounds])
    response = response_of(
        rounds,
        usage,
        Timed(2.5, 0.125),
        requested="m",
        provider="mock",
        assistant="Bot",
        content=content_of(rounds),
        raw_text="<t>verbatim</t>",
    )
    content = [Thinking("t"), Text("Let me look. "), CALL, ToolResultBlock("c1", "seen", False), Text("It is he")]
    assert response == Response(
        content=content,
        stop_reason="max_tokens",
        usage=Usage(40, 10, cache_creation_tokens=8, cache_read_tokens=10),
        details=Details(
            stop=StopDetails("max_tokens", "length", "\n", was_truncated=True, refusal="half of it", category="cyber"),
            usage=Usage(40, 10, cache_creation_tokens=8, cache_read_tokens=10),
            timing=Timing(
                2_500.0, attempts=4, rounds=2, retry_delays_ms=[1_000, 2_000, 500], time_to_first_token_ms=125.0
            ),
            model=ModelDetails(requested="m", actual="m-1", provider="mock"),
            cache=CacheDetails(markers_in_request=1, tokens_created=8, tokens_read=10, hit_ratio=0.2),
            request_id="req_2",
            rate_limit={"requests": {"remaining": 4}},
        ),
        raw_assistant_text="<t>verbatim</t>",
        tool_calls=[ToolCall("c1", "look", {"at": 1})],
        tool_results=[ToolResult("c1", "seen", is_error=False)],
        raw=Raw(request=REQUESTED, response={"id": "msg"}, headers={"request-id": "req_2"}),
        assistant_participant="Bot",
    )
    assert Response.from_dict(response.to_dict()) == response


def plain(counts: Mapping[str, Any] | None = None, **more: Any) -> Response:
    done = a_round(Text("a"), finished=Finished("end_turn", None), record=answer(counts), **more)
    usage = usage_of([done.record])
    return response_of(
        [done], usage, Timed(0.0, None), requested="m", provider="p", assistant="Claude", content=[], raw_text=""
    )


def test_what_is_not_known_is_left_open() -> None:
    details = plain().details
    assert details.timing == Timing(0.0, attempts=1, rounds=1, retry_delays_ms=None, time_to_first_token_ms=None)
    assert details.stop == StopDetails("end_turn", None)
    assert details.model.actual == "m"
    assert (details.request_id, details.rate_limit, plain().raw.headers) == (None, None, None)


HIT_RATIOS = {
    "nothing read": ({"input_tokens": 10, "output_tokens": 1, "cache_read_tokens": 0}, 0.0),
    "reads not reported": ({"input_tokens": 10, "output_tokens": 1}, 0.0),
    "a part": ({"input_tokens": 30, "output_tokens": 1, "cache_read_tokens": 10}, 0.25),
    "what was written does not count": (
        {"input_tokens": 30, "output_tokens": 1, "cache_read_tokens": 10, "cache_creation_tokens": 60},
        0.25,
    ),
    "all of it": ({"input_tokens": 0, "output_tokens": 1, "cache_read_tokens": 10}, 1.0),
}


@pytest.mark.parametrize("counts, ratio", HIT_RATIOS.values(), ids=HIT_RATIOS.keys())
def test_how_much_was_read_from_the_cache(counts: Mapping[str, Any], ratio: float) -> None:
    assert plain(counts).details.cache.hit_ratio == ratio


def test_every_wait_is_an_attempt_more() -> None:
    timing = plain(waits_ms=[10, 20, 30]).details.timing
    assert (timing.attempts, timing.retry_delays_ms) == (4, [10, 20, 30])


def test_each_rounds_results_stand_behind_its_calls() -> None:
    rounds = [
        a_round(CALL, finished=Finished("tool_use", None), record=answer(), results=[ToolResult("c1", "r")]),
        a_round(Text("b"), finished=Finished("end_turn", None), record=answer()),
    ]
    assert content_of(rounds) == [CALL, ToolResultBlock("c1", "r"), Text("b")]


def test_the_calls_of_a_round() -> None:
    done = a_round(Text("a"), CALL, BROKEN, finished=Finished("tool_use", None), record=answer())
    assert done.calls == [ToolCall("c1", "look", {"at": 1}), ToolCall("c2", "look", {}, unparseable_input="{")]
