"""Which adapter speaks for a provider's name in the corpora, and how that provider counts. A new adapter adds a row.

PROVIDERS: name of a folder of recorded exchanges, or of `provider` in a case -> everything the harness needs of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from membrane_lite import (
    AnthropicAdapter,
    BedrockAdapter,
    GeminiAdapter,
    OpenAIAdapter,
    OpenAICompatibleAdapter,
    OpenAICompletionsAdapter,
    OpenAIImagesAdapter,
    OpenAIResponsesAPIAdapter,
    OpenRouterAdapter,
)


def never(raw: Any) -> bool:
    return False


def total_says_so(raw: Any) -> bool:
    """A chat answer that counts its reasoning beside its completion: only the sum of all three gives the total."""
    usage = raw["usage"]
    thinking = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens")
    return bool(thinking) and usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"] + thinking


def counts_thoughts(raw: Any) -> bool:
    """Gemini counts what it thought beside what it said."""
    return bool(raw.get("usageMetadata", {}).get("thoughtsTokenCount"))


class Provider(NamedTuple):
    """adapter: called with base_url and the options of a test. base_path: of base_url, behind the server's address.

    cached_inside_input: the provider counts cached tokens as input too. thinking_beside_output: whether an answer
    (raw) counts its thinking beside its output. items: where a raw answer lists its blocks.
    """

    adapter: Callable[..., Any]
    base_path: str = ""
    cached_inside_input: bool = False
    thinking_beside_output: Callable[[Any], bool] = never
    items: str = "content"


PROVIDERS: Mapping[str, Provider] = {
    "gemini": Provider(GeminiAdapter, "/v1beta", cached_inside_input=True, thinking_beside_output=counts_thoughts),
    "anthropic": Provider(AnthropicAdapter),
    "bedrock": Provider(BedrockAdapter),
    "openai_compatible": Provider(
        OpenAICompatibleAdapter, "/v1", cached_inside_input=True, thinking_beside_output=total_says_so
    ),
    "openai": Provider(OpenAIAdapter, "/v1", cached_inside_input=True, thinking_beside_output=total_says_so),
    "openai_chat": Provider(OpenAIAdapter, "/v1", cached_inside_input=True, thinking_beside_output=total_says_so),
    "openrouter": Provider(
        OpenRouterAdapter, "/api/v1", cached_inside_input=True, thinking_beside_output=total_says_so
    ),
    "openai_completions": Provider(OpenAICompletionsAdapter, "/v1", cached_inside_input=True),
    "openai_responses": Provider(OpenAIResponsesAPIAdapter, "/v1", cached_inside_input=True, items="output"),
    "openai_images": Provider(OpenAIImagesAdapter, "/v1", cached_inside_input=True),
}
