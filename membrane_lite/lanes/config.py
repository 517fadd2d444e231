"""Where both lanes send their calls: a region of Bedrock, or a proxy instead; read from the environment once.

Credentials are deliberately absent: the direct path finds them as BedrockAdapter does, AWS_BEARER_TOKEN_BEDROCK first.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from ..providers.bedrock import read_region
from ..values.base import Value
from .prompt_cache import (
    DEFAULT_OPENAI_PROMPT_CACHE,
    OPENAI_PROMPT_CACHE_VAR,
    OpenAiPromptCache,
    openai_prompt_cache_from,
)
from .proxy_config import ProxyConfig, proxy_config_from_env

REGION_VAR: Final = "MEMHTML_AWS_REGION"
DEFAULT_REGION: Final = "us-east-1"  # where both the embedder and the global. profiles are reachable


class LlmConfig(Value):
    """proxy: None means Bedrock directly. The region is kept beside a proxy, so that one variable switches the two."""

    __slots__ = ("openai_prompt_cache", "proxy", "region")

    def __init__(
        self,
        *,
        region: str = DEFAULT_REGION,
        proxy: ProxyConfig | None = None,
        openai_prompt_cache: OpenAiPromptCache = DEFAULT_OPENAI_PROMPT_CACHE,
    ) -> None:
        self.region: Final = region
        self.proxy: Final = proxy
        self.openai_prompt_cache: Final = openai_prompt_cache

    @classmethod
    def from_env(cls, env: Mapping[str, str | None] | None = None) -> LlmConfig:
        """Of the process's environment, unless given. Raises MembraneError naming the variable that cannot be used."""
        found = os.environ if env is None else env
        return cls(
            region=read_region((found.get(REGION_VAR) or "").strip() or DEFAULT_REGION, {}, source=REGION_VAR),
            proxy=proxy_config_from_env(found),
            openai_prompt_cache=openai_prompt_cache_from(found.get(OPENAI_PROMPT_CACHE_VAR)),
        )


LlmConfigShape = LlmConfig  # what LlmConfig.from_env gives
