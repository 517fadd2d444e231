"""pricing: which row an id finds, what the caller's registry may say, and the sums; then the whole table."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from shared_data import shared_json

from membrane_lite.price_table import PRICES, Price
from membrane_lite.pricing import bare_model_id, estimate_cost, find_price
from membrane_lite.values.responses import Cost, Usage

FOUND = {
    "the id itself": ("claude-sonnet-4-5", "claude-sonnet-4-5"),
    "a dated snapshot": ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
    "the longest prefix": ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
    "a snapshot with a price of its own": ("gpt-4o-2024-05-13", "gpt-4o-2024-05-13"),
    "a successor is not its predecessor": ("claude-opus-5-5", "claude-opus-5-5"),
    "a variant without a row": ("claude-opus-5-preview", "claude-opus-5"),
    "a prefix ends where a word ends": ("gpt-4.5-preview", None),
    "also before a letter": ("gpt-4omni", None),
    "also before a digit": ("o11", None),
    "Vertex": ("claude-opus-4-5@20251101", "claude-opus-4-5"),
    "a gateway's variant": ("openai/gpt-4o:extended", "gpt-4o"),
    "a gateway's vendor": ("google/gemini-2.5-pro", "gemini-2.5-pro"),
    "only one vendor": ("router/openai/gpt-4o", None),
    "Gemini's own name": ("models/gemini-2.5-flash", "gemini-2.5-flash"),
    "Bedrock": ("anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
    "a profile": ("us.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5"),
    "a profile of the world": ("global.anthropic.claude-opus-5", "claude-opus-5"),
    "a profile of a government": ("us-gov.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
    "with its scheme": ("bedrock:eu.anthropic.claude-opus-4-6-v1:0", "claude-opus-4-6"),
    "with its vendor": ("bedrock/apac.anthropic.claude-opus-4-6-v1:0", "claude-opus-4-6"),
    "case counts": ("Claude-Sonnet-4-5", None),
    "an unknown model": ("llama-3.3-70b", None),
    "no model": ("", None),
}


@pytest.mark.parametrize("model, prefix", FOUND.values(), ids=FOUND.keys())
def test_find_price(model: str, prefix: str | None) -> None:
    price = find_price(served=model, requested=None)
    assert (price and price.prefix) == prefix


def test_bare_model_id() -> None:
    assert bare_model_id("us.anthropic.claude-haiku-4-5-20251001-v1:0") == "claude-haiku-4-5-20251001"
    assert bare_model_id("gpt-4o") == "gpt-4o"


class Registry:
    """Knows what it is given, and what it was asked."""

    def __init__(self, **known: Any) -> None:
        self.known = known
        self.asked: list[str] = []

    def get_pricing(self, model: str) -> Any:
        self.asked.append(model)
        return self.known.get(model)


OWN = {"input": 7.0, "output": 8.0}
ORDER = {
    "the registry, for the served model": (Registry(served=OWN, asked={"input": 1.0}), "served", "asked", "served"),
    "the registry, for the requested model": (Registry(asked=OWN), "gpt-4o", "asked", "asked"),
    "the table, for the served model": (Registry(), "gpt-4o", "gpt-5", "gpt-4o"),
    "the table, for the requested model": (Registry(), "served", "gpt-5", "gpt-5"),
    "the table, without a registry": (None, "served", "gpt-5", "gpt-5"),
    "nobody": (Registry(), "served", "asked", None),
}


@pytest.mark.parametrize("registry, served, requested, prefix", ORDER.values(), ids=ORDER.keys())
def test_the_order_of_sources(registry: Any, served: str, requested: str, prefix: str | None) -> None:
    price = find_price(served=served, requested=requested, registry=registry)
    assert (price and price.prefix) == prefix


def test_a_model_is_asked_for_once() -> None:
    registry = Registry()
    find_price(served="m", requested="m", registry=registry)
    assert registry.asked == ["m"]


RATES = {
    "a mapping": (OWN, Price("m", 7.0, 8.0)),
    "an object": (SimpleNamespace(input=7.0, output=8.0, cache_read=0.0), Price("m", 7.0, 8.0, cache_read=0.0)),
    "names with their unit": ({"input_per_million": 7.0, "cache_write_per_million": 9.0}, Price("m", 7.0, None, 9.0)),
    "another currency": ({**OWN, "currency": "EUR"}, Price("m", 7.0, 8.0, currency="EUR")),
    "a Price": (Price("own", 1.0, 2.0), Price("own", 1.0, 2.0)),
    "nothing it names": ({}, Price("m", None, None)),
}


@pytest.mark.parametrize("rates, price", RATES.values(), ids=RATES.keys())
def test_what_a_registry_may_give(rates: Any, price: Price) -> None:
    assert find_price(served="m", requested=None, registry=Registry(m=rates)) == price


def test_what_a_registry_raises_is_the_callers_own_error() -> None:
    class Broken:
        def get_pricing(self, model: str) -> Any:
            raise LookupError(model)

    with pytest.raises(LookupError):
        find_price(served="gpt-4o", requested=None, registry=Broken())


FULL = Price("full", 4.0, 8.0, 5.0, 10.0, 0.5)
TIERED = Price("tiered", 4.0, 8.0, 5.0, None, 0.5, 1_000_000, 16.0, 32.0)
BARE = Price("bare", 4.0, 8.0)
MILLION = 1_000_000

COSTS = {
    "each counter at its rate": (Usage(MILLION, 500_000, 250_000, 2 * MILLION), FULL, Cost(4.0, 4.0, 1.25, 1.0, 10.25)),
    "a token": (Usage(1, 0), FULL, Cost(0.000004, 0.0, 0.0, 0.0, 0.000004)),
    "nothing": (Usage(), FULL, Cost(0.0, 0.0, 0.0, 0.0, 0.0)),
    "one-hour writes cost more": (
        Usage(0, 0, MILLION, cache_creation_5m_tokens=250_000, cache_creation_1h_tokens=750_000),
        FULL,
        Cost(0.0, 0.0, 8.75, 0.0, 8.75),
    ),
    "one-hour writes alone": (
        Usage(0, 0, MILLION, cache_creation_1h_tokens=MILLION),
        FULL,
        Cost(0.0, 0.0, 10.0, 0.0, 10.0),
    ),
    "five-minute writes alone": (Usage(0, 0, MILLION, cache_creation_1h_tokens=0), FULL, Cost(0.0, 0.0, 5.0, 0.0, 5.0)),
    "one-hour writes without a rate": (
        Usage(MILLION, 0, MILLION, cache_creation_1h_tokens=1),
        FULL._replace(cache_write_1h=None),
        Cost(4.0, 0.0, None, 0.0, None),
    ),
    "a rate that is not stated, and not needed": (Usage(MILLION, MILLION), BARE, Cost(4.0, 8.0, None, None, 12.0)),
    "and needed": (Usage(MILLION, MILLION, 0, 1), BARE, Cost(4.0, 8.0, None, None, None)),
    "no rates at all": (Usage(1, 1), Price("odd", None, None), Cost()),
    "at the bound of the tier": (Usage(MILLION, MILLION), TIERED, Cost(4.0, 8.0, 0.0, 0.0, 12.0)),
    "beyond it": (Usage(2 * MILLION, MILLION), TIERED, Cost(32.0, 32.0, 0.0, 0.0, 64.0)),
    "cached input counts for the bound": (
        Usage(MILLION // 2, 0, MILLION // 4, MILLION // 2),
        TIERED,
        Cost(8.0, 0.0, 1.25, 0.25, 9.5),
    ),
    "another currency": (Usage(MILLION), BARE._replace(currency="EUR"), Cost(4.0, 0.0, None, None, 4.0, "EUR")),
    "no price": (Usage(1, 1), None, None),
}


@pytest.mark.parametrize("usage, price, cost", COSTS.values(), ids=COSTS.keys())
def test_estimate_cost(usage: Usage, price: Price | None, cost: Cost | None) -> None:
    assert estimate_cost(usage, price) == cost


def test_no_row_says_what_another_says_already() -> None:
    prefixes = [price.prefix for price in PRICES]
    assert len(prefixes) == len(set(prefixes))
    for price in PRICES:
        shorter = [row for row in PRICES if price.prefix.startswith(row.prefix + "-")]
        nearest = max(shorter, key=lambda row: len(row.prefix), default=None)
        assert nearest is None or nearest[1:] != price[1:], price.prefix


def test_the_whole_table() -> None:
    models = shared_json("prices.json")["models"]
    assert len(models) == 162
    for model in models:
        bounds = [name for name in model if name.startswith("input_above_")]
        tier = (int(bounds[0][12:-1]) * 1_000, model[bounds[0]], model["output" + bounds[0][5:]]) if bounds else ()
        rates = [model[name] for name in ("input", "output", "cache_write", "cache_write_1h", "cache_read")]
        price = find_price(served=model["model"], requested=None)
        assert price is not None
        assert price[1:] == Price("", *rates, *tier)[1:], model["model"]
