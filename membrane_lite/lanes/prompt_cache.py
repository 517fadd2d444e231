"""What an OpenAI body says of prompt caching: "off" or "implicit".

off sends prompt_cache_options {"mode": "explicit"} without breakpoints: Bedrock then neither uses the cache nor charges
for writes. implicit sends nothing. off is the default, because in implicit mode GPT-5.6 puts a breakpoint on the last
message: a prompt over 1,024 tokens is written whole, at 1.25 times the input rate, and a prompt whose end differs each
time is never read back. implicit is for prefixes that do repeat, and for endpoints that reject Bedrock's field.
Source: docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html, "GPT-5.6 models"; probed 2026-09-11.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from ..errors import invalid

OpenAiPromptCache = Literal["off", "implicit"]

OPENAI_PROMPT_CACHE_VAR: Final = "MEMHTML_OPENAI_PROMPT_CACHE"
OPENAI_PROMPT_CACHE_VALUES: Final[tuple[OpenAiPromptCache, ...]] = ("off", "implicit")
OPENAI_PROMPT_CACHE_OFF_FIELD: Final[Mapping[str, str]] = {"mode": "explicit"}
DEFAULT_OPENAI_PROMPT_CACHE: Final[OpenAiPromptCache] = "off"


def openai_prompt_cache_from(raw: str | None) -> OpenAiPromptCache:
    """What the variable means: unset or blank is the default, case and space around it do not matter.

    Anything else is an error that names the variable: a typo that fell back to the default would bring the write
    premium back while the environment says that it is off.
    """
    word = (raw or "").strip().lower()
    for value in OPENAI_PROMPT_CACHE_VALUES:
        if word == value:
            return value
    if word:
        expected = f"expected one of {', '.join(OPENAI_PROMPT_CACHE_VALUES)}"
        raise invalid(OPENAI_PROMPT_CACHE_VAR, f"found {raw!r}", expected)
    return DEFAULT_OPENAI_PROMPT_CACHE
