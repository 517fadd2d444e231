"""What a call cost: token counts and a row of prices in, Cost out. price_table.py has the rows. Pure.

estimate_cost(response.usage, find_price(served="claude-sonnet-4-5-20250929", requested="claude-sonnet-4-5"))
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, Protocol

from .price_table import PRICES, Price
from .values.responses import Cost, Usage

TOKENS_PER_PRICE: Final = 1_000_000

# What a registry may call a rate, and the field of Price it is.
RATE_NAMES: Final = {
    **{f"{field}_per_million": field for field in ("input", "output", "cache_write", "cache_write_1h", "cache_read")},
    **{field: field for field in Price._fields[1:]},
}

# What may follow a prefix within an id: a variant or a date. "gpt-4" says nothing of gpt-4.1, "o1" nothing of o11.
BOUNDARIES: Final = ("-", "@", ":")

# What an id may carry that is not the model's name: a gateway's vendor, an inference profile's region (AWS), the
# maker on Bedrock, and a version of the deployment there.
CARRIED: Final = (
    re.compile(r"^bedrock:"),
    re.compile(r"^[^/]*/"),
    re.compile(r"^(?:us-gov|us|eu|apac|global|jp|au|ca)\."),
    re.compile(r"^anthropic\."),
    re.compile(r"-v[0-9]+:[0-9]+$"),
)
CARRYING: Final = re.compile("[:/]|anthropic[.]")


class Registry(Protocol):
    """The caller's own prices."""

    def get_pricing(self, model: str) -> Any:
        """Rates per million tokens, as a mapping or an object with the names of Price; None for an unknown model."""


def find_price(*, served: str | None, requested: str | None, registry: Registry | None = None) -> Price | None:
    """The price of the model that answered, else of the one asked for; the caller's registry knows best.

    What the registry raises is the caller's own error, and is not caught here.
    """
    models = list(dict.fromkeys(model for model in (served, requested) if model))
    if registry is not None:
        for model in models:
            rates = registry.get_pricing(model)
            if rates is not None:
                return _price_of(model, rates)
    return next((price for price in map(_listed, models) if price is not None), None)


def bare_model_id(model: str) -> str:
    """The model's own name: "claude-haiku-4-5-20251001" of "us.anthropic.claude-haiku-4-5-20251001-v1:0"."""
    if CARRYING.search(model) is None:
        return model
    for pattern in CARRIED:
        model = pattern.sub("", model)
    return model


def estimate_cost(usage: Usage, price: Price | None) -> Cost | None:
    """Each counter at its rate. A part is None without a rate, and so is the total if that counter is not 0."""
    if price is None:
        return None
    read, created = usage.cache_read_tokens or 0, usage.cache_creation_tokens or 0
    one_hour = usage.cache_creation_1h_tokens or 0
    tiered = price.tier_above is not None and usage.input_tokens + read + created > price.tier_above
    counted = (
        (usage.input_tokens, _part(usage.input_tokens, price.tier_input if tiered else price.input)),
        (usage.output_tokens, _part(usage.output_tokens, price.tier_output if tiered else price.output)),
        (created, _written(created - one_hour, one_hour, price)),
        (read, _part(read, price.cache_read)),
    )
    input, output, cache_write, cache_read = (part for _, part in counted)
    missed = any(tokens and part is None for tokens, part in counted)
    total = None if missed else sum(part for _, part in counted if part is not None)
    return Cost(input, output, cache_write, cache_read, total, price.currency)


def _part(tokens: int, rate: float | None) -> float | None:
    return None if rate is None else tokens * rate / TOKENS_PER_PRICE


def _written(five_minutes: int, one_hour: int, price: Price) -> float | None:
    """Cache writes of both lifetimes; one hour costs more. Where the split is not known all count as five minutes."""
    if not one_hour:
        return _part(five_minutes, price.cache_write)
    parts = [_part(one_hour, price.cache_write_1h), _part(five_minutes, price.cache_write if five_minutes else 0)]
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


@lru_cache(maxsize=256)  # a pure look-up, asked for the same few models again and again
def _listed(model: str) -> Price | None:
    """The row with the longest prefix of the model's name."""
    return next((BY_PREFIX[prefix] for prefix in family_names(bare_model_id(model)) if prefix in BY_PREFIX), None)


def family_names(name: str) -> Iterator[str]:
    """Every family a name may belong to, the longest first: the name, then what stands before each boundary in it."""
    yield name
    for at in range(len(name) - 1, 0, -1):
        if name[at] in BOUNDARIES:
            yield name[:at]


def _price_of(model: str, rates: Any) -> Price:
    """A registry's answer as a Price. A rate may also be called by its unit, as in `input_per_million`."""
    if isinstance(rates, Price):
        return rates
    stated = ((field, rate) for field, rate in _rates(rates) if rate is not None)
    return Price(**{"prefix": model, "input": None, "output": None, **dict(stated)})


def _rates(rates: Any) -> Iterator[tuple[str, Any]]:
    given = rates if isinstance(rates, Mapping) else {name: getattr(rates, name, None) for name in RATE_NAMES}
    for name, field in RATE_NAMES.items():
        yield field, given.get(name)


BY_PREFIX: Final = {price.prefix: price for price in PRICES}
