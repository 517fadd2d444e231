"""The five models, as rows, and what each accepts.

The ids are `global.` inference profiles, reachable from one region without throughput of one's own. The OpenAI models
require the profile: their bare ids reject on-demand invocation (probed 2026-08-22).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

from ..errors import invalid

Provider = Literal["anthropic", "openai"]  # which dialect a model speaks; never chosen per call
ModelKey = Literal["sonnet-5", "opus-5", "fable-5", "gpt-5.6-sol", "gpt-5.6-terra"]

# Anthropic takes it as output_config.effort, OpenAI as reasoning_effort; both take all four (probed 2026-08-22).
Effort = Literal["low", "medium", "high", "xhigh"]
EFFORTS: Final = ("low", "medium", "high", "xhigh")


class ModelInfo(NamedTuple):
    """key: what a caller says. model_id: what Bedrock is asked for. label: what a person reads."""

    key: ModelKey
    model_id: str
    provider: Provider
    label: str


def model_by_key(key: ModelKey) -> ModelInfo:
    """The row of a key. Raises MembraneError("invalid_request") for one that has none."""
    for model in MODELS:
        if model.key == key:
            return model
    raise invalid("model_key", f"found {key!r}", f"expected one of {', '.join(model.key for model in MODELS)}")


def thinking_for(key: ModelKey) -> dict[str, Any] | None:
    """The `thinking` of an Anthropic body, or None where the body has none."""
    thinking = THINKING.get(key)
    return None if thinking is None else dict(thinking)


MODELS: Final = (
    ModelInfo("sonnet-5", "global.anthropic.claude-sonnet-5", "anthropic", "Claude Sonnet 5"),
    ModelInfo("opus-5", "global.anthropic.claude-opus-5", "anthropic", "Claude Opus 5"),
    ModelInfo("fable-5", "global.anthropic.claude-fable-5", "anthropic", "Claude Fable 5"),
    ModelInfo("gpt-5.6-sol", "global.openai.gpt-5.6-sol", "openai", "GPT-5.6 Sol"),
    ModelInfo("gpt-5.6-terra", "global.openai.gpt-5.6-terra", "openai", "GPT-5.6 Terra"),
)

# Sonnet 5 reasons anyway and rejects the key instead of ignoring it; Fable 5 is adaptive only. Both shapes compose
# with a forced tool_choice (verified 2026-08-02). The OpenAI models have no such key.
THINKING: Final[Mapping[str, Mapping[str, Any]]] = {
    "opus-5": {"type": "adaptive"},
    "fable-5": {"type": "adaptive"},
}
