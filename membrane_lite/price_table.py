"""What models cost: rows only, in US dollars per million tokens. pricing.py looks them up and does the sums.

A row serves every id that begins with its prefix, where no longer prefix does; so the dated snapshots of a model have
rows only where their price differs. None: the provider states no such price. Facts as of November 2026, from the public
model price table distributed with litellm 1.110.2.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Price(NamedTuple):
    """cache_write: for five minutes; cache_write_1h: for an hour. tier_*: where the whole input passes tier_above."""

    prefix: str
    input: float | None
    output: float | None
    cache_write: float | None = None
    cache_write_1h: float | None = None
    cache_read: float | None = None
    tier_above: int | None = None
    tier_input: float | None = None
    tier_output: float | None = None
    currency: str = "USD"


PRICES: Final = (
    #     prefix, input, output, cache_write, cache_write_1h, cache_read, tier_above, tier_input, tier_output
    # Anthropic
    Price("claude-fable-5", 10.0, 50.0, 12.5, 20.0, 1.0),
    Price("claude-fable-5-1", 10.0, 50.0, 12.5, 20.0, 0.25),
    Price("claude-haiku-4-5", 1.0, 5.0, 1.25, 2.0, 0.1),
    Price("claude-haiku-5-5", 0.1, 0.5, 0.125, 0.2, 0.01),
    Price("claude-mythos-5", 10.0, 50.0, 12.5, 20.0, 1.0),
    Price("claude-mythos-5-1", 10.0, 50.0, 12.5, 20.0, 0.25),
    Price("claude-mythos-preview", 10.0, 50.0, 12.5, 20.0, 1.0),
    Price("claude-opus-4-5", 5.0, 25.0, 6.25, 10.0, 0.5),
    Price("claude-opus-4-6", 5.0, 25.0, 6.25, 10.0, 0.5),
    Price("claude-opus-4-7", 5.0, 25.0, 6.25, 10.0, 0.5),
    Price("claude-opus-4-8", 5.0, 25.0, 6.25, 10.0, 0.5),
    Price("claude-opus-5", 5.0, 25.0, 6.25, 10.0, 0.5),
    Price("claude-opus-5-5", 4.0, 20.0, 5.0, 8.0, 0.2),
    Price("claude-sonnet-4-5", 3.0, 15.0, 3.75, 6.0, 0.3),
    Price("claude-sonnet-4-6", 3.0, 15.0, 3.75, 6.0, 0.3),
    Price("claude-sonnet-5", 2.0, 10.0, 2.5, 4.0, 0.2),
    Price("claude-sonnet-5-5", 2.0, 10.0, 2.5, 4.0, 0.1),
    # OpenAI
    Price("babbage-002", 0.4, 0.4),
    Price("chat-latest", 5.0, 30.0, None, None, 0.5),
    Price("computer-use-preview", 3.0, 12.0),
    Price("davinci-002", 2.0, 2.0),
    Price("daybreak-blue-latest", 4.0, 20.0, 5.0, None, 0.4, 272_000, 8.0, 30.0),
    Price("daybreak-red-latest", 12.5, 75.0, 15.625, None, 1.25, 272_000, 25.0, 112.5),
    Price("gpt-3.5-turbo", 0.5, 1.5),
    Price("gpt-3.5-turbo-1106", 1.0, 2.0),
    Price("gpt-3.5-turbo-16k", 3.0, 4.0),
    Price("gpt-3.5-turbo-instruct", 1.5, 2.0),
    Price("gpt-4", 30.0, 60.0),
    Price("gpt-4-1106-preview", 10.0, 30.0),
    Price("gpt-4-turbo", 10.0, 30.0),
    Price("gpt-4.1", 2.0, 8.0, None, None, 0.5),
    Price("gpt-4.1-mini", 0.4, 1.6, None, None, 0.1),
    Price("gpt-4.1-nano", 0.1, 0.4, None, None, 0.025),
    Price("gpt-4o", 2.5, 10.0, None, None, 1.25),
    Price("gpt-4o-2024-05-13", 5.0, 15.0),
    Price("gpt-4o-audio-preview-2024-12-17", 2.5, 10.0),
    Price("gpt-4o-audio-preview-2025-06-03", 2.5, 10.0),
    Price("gpt-4o-mini", 0.15, 0.6, None, None, 0.075),
    Price("gpt-4o-mini-audio-preview-2024-12-17", 0.15, 0.6),
    Price("gpt-5", 1.25, 10.0, None, None, 0.125),
    Price("gpt-5-mini", 0.25, 2.0, None, None, 0.025),
    Price("gpt-5-nano", 0.05, 0.4, None, None, 0.005),
    Price("gpt-5-pro", 15.0, 120.0),
    Price("gpt-5.1", 1.25, 10.0, None, None, 0.125),
    Price("gpt-5.1-codex-mini", 0.25, 2.0, None, None, 0.025),
    Price("gpt-5.2", 1.75, 14.0, None, None, 0.175),
    Price("gpt-5.2-pro", 21.0, 168.0),
    Price("gpt-5.3-chat-latest", 1.75, 14.0, None, None, 0.175),
    Price("gpt-5.3-codex", 1.75, 14.0, None, None, 0.175),
    Price("gpt-5.4", 2.5, 15.0, None, None, 0.25, 272_000, 5.0, 22.5),
    Price("gpt-5.4-mini", 0.75, 4.5, None, None, 0.075),
    Price("gpt-5.4-nano", 0.2, 1.25, None, None, 0.02),
    Price("gpt-5.4-pro", 30.0, 180.0, None, None, None, 272_000, 60.0, 270.0),
    Price("gpt-5.5", 5.0, 30.0, None, None, 0.5, 272_000, 10.0, 45.0),
    Price("gpt-5.5-cyber", 12.5, 75.0, None, None, 1.25),
    Price("gpt-5.5-pro", 30.0, 180.0, None, None, None, 272_000, 60.0, 270.0),
    Price("gpt-5.6", 4.0, 20.0, 5.0, None, 0.4, 272_000, 8.0, 30.0),
    Price("gpt-5.6-cyber", 12.5, 75.0, 15.625, None, 1.25, 272_000, 25.0, 112.5),
    Price("gpt-5.6-luna", 0.2, 1.2, 0.25, None, 0.02, 272_000, 0.4, 1.8),
    Price("gpt-5.6-terra", 2.0, 12.0, 2.5, None, 0.2, 272_000, 4.0, 18.0),
    Price("gpt-6-astra", 10.0, 50.0, 12.5, None, 1.0, 272_000, 20.0, 75.0),
    Price("gpt-6-astra-law", 10.0, 50.0, None, None, 1.0),
    Price("gpt-6-cyber", 20.0, 100.0, 25.0, None, 2.0),
    Price("gpt-6-luna", 0.1, 0.5, 0.125, None, 0.01, 272_000, 0.2, 0.75),
    Price("gpt-6-rosalind", 15.0, 75.0, 18.75, None, 1.5, 272_000, 30.0, 112.5),
    Price("gpt-6-sol", 2.0, 10.0, 2.5, None, 0.2, 272_000, 4.0, 15.0),
    Price("gpt-6.1-sol", 2.0, 10.0, 2.5, None, 0.1, 272_000, 4.0, 15.0),
    Price("gpt-6.1-terra", 1.0, 5.0, 1.25, None, 0.05, 272_000, 2.0, 7.5),
    Price("gpt-audio", 2.5, 10.0),
    Price("gpt-audio-mini", 0.6, 2.4),
    Price("gpt-daybreak-blue-latest", 4.0, 20.0, 5.0, None, 0.4, 272_000, 8.0, 30.0),
    Price("gpt-daybreak-red-latest", 12.5, 75.0, 15.625, None, 1.25, 272_000, 25.0, 112.5),
    Price("gpt-rosalind-discovery", 5.0, 25.0, None, None, 0.5),
    Price("gpt-rosalind-research", 5.0, 25.0, None, None, 0.5),
    Price("o1", 15.0, 60.0, None, None, 7.5),
    Price("o1-pro", 150.0, 600.0),
    Price("o3", 2.0, 8.0, None, None, 0.5),
    Price("o3-deep-research", 10.0, 40.0, None, None, 2.5),
    Price("o3-mini", 1.1, 4.4, None, None, 0.55),
    Price("o3-pro", 20.0, 80.0),
    Price("o4-mini", 1.1, 4.4, None, None, 0.275),
    Price("o4-mini-deep-research", 2.0, 8.0, None, None, 0.5),
    # Gemini
    Price("deep-research-max-preview-04-2026", 2.0, 12.0),
    Price("deep-research-pro-preview-12-2025", 2.0, 12.0),
    Price("gemini-2.5-computer-use-preview-10-2025", 1.25, 10.0, None, None, None, 200_000, 2.5, 15.0),
    Price("gemini-2.5-flash", 0.3, 2.5, None, None, 0.03),
    Price("gemini-2.5-flash-lite", 0.1, 0.4, None, None, 0.01),
    Price("gemini-2.5-pro", 1.25, 10.0, None, None, 0.125, 200_000, 2.5, 15.0),
    Price("gemini-2.5-pro-preview-tts", 1.0, 20.0, None, None, 0.125),
    Price("gemini-3-flash-preview", 0.5, 3.0, None, None, 0.05),
    Price("gemini-3.1-flash-lite", 0.25, 1.5, None, None, 0.025),
    Price("gemini-3.1-pro-preview", 2.0, 12.0, None, None, 0.2, 200_000, 4.0, 18.0),
    Price("gemini-3.5-flash", 1.5, 9.0, None, None, 0.15),
    Price("gemini-3.5-flash-lite", 0.3, 2.5, None, None, 0.03),
    Price("gemini-3.6-flash", 0.75, 3.75, None, None, 0.075),
    Price("gemini-3.7-flash", 0.75, 3.75, None, None, 0.075),
    Price("gemini-3.8-flash", 0.75, 3.75, None, None, 0.075),
    Price("gemini-4-argon", 2.0, 10.0, None, None, 0.1),
    Price("gemini-4-hydrogen", 1.5, 7.5, None, None, 0.075),
    Price("gemini-flash-latest", 0.75, 3.75, None, None, 0.075),
    Price("gemini-flash-lite-latest", 0.3, 2.5, None, None, 0.03),
    Price("gemini-omni-1.1-flash", 1.5, 9.0),
    Price("gemini-omni-1.2-flash", 1.5, 9.0),
    Price("gemini-omni-flash-preview", 1.5, 9.0),
    Price("gemini-pro-latest", 2.0, 12.0, None, None, 0.2, 200_000, 4.0, 18.0),
    Price("gemini-robotics-er-2-preview", 1.0, 5.0, None, None, 0.1),
    Price("gemini-robotics-er-2-streaming-preview", 1.0, 5.0),
)
