"""OpenRouter: POST https://openrouter.ai/api/v1/chat/completions, many providers in the dialect of chat_dialect.py.

    > {"model": "anthropic/claude-haiku-4.5", "messages": [{"role": "user", "content": "User: Hi"}], "max_tokens": 64,
    >  "stream": true, "stream_options": {"include_usage": true}}
    < : OPENROUTER PROCESSING
    <
    < data: {"model": "anthropic/claude-haiku-4.5", "provider": "Anthropic", "choices": [{"index": 0, "delta": {
    < data:  "content": "", "reasoning": "Hm.", "reasoning_details": [{"type": "reasoning.text", "text": "Hm.",
    < data:  "format": "anthropic-claude-v1", "index": 0}]}}]}
    <
    < data: {"choices": [{"index": 0, "delta": {"content": "Hello"}, "finish_reason": "stop"}]}
    <
    < data: {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12, "cost": 0.00002}}
    <
    < data: [DONE]
    <
    = Hello / end_turn / 9 in, 3 out

What it adds to the dialect: reasoning_details, which go back with the message they came with; cache_control; what a
call cost; comments while it waits for a provider; that provider's failures as `error`, in a 200 too.
Source: openrouter.ai/docs/api-reference.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final, Literal

from ..clock import Clock
from ..credentials.keys import PLACEHOLDER, HeaderAuth, Key, read_key
from ..formatters.anthropic_xml import AnthropicXmlFormatter
from ..formatters.cache_markers import MOST_MARKERS
from ..transport.interface import OpensRequests
from ..wire.http import HeadersInput, header_pairs, merged
from .base import DEFAULT_MAX_TOKENS, HttpAdapter, read_base_url
from .chat_dialect import ChatCodec, ChatDialect
from .chat_media import checked_tool_result_images
from .models import OPENROUTER_MODELS, ModelTable, ModelTraits

DIALECT: Final = ChatDialect(
    reasoning_field="reasoning",
    replayed_fields=("reasoning_details", "annotations"),
    asks_for_stream_usage=True,
    cache_markers=True,
    takes_files=True,
    repetition_penalty=False,
    output_form="strict",
    refuses_blank_text=True,
)


class OpenRouterAdapter(HttpAdapter):
    """OpenRouter. Models are named with their vendor, as in "anthropic/claude-haiku-4.5".

    api_key: else OPENROUTER_API_KEY. http_referer, x_title: how OpenRouter names this application. model_traits,
    tool_result_images: as of OpenAIAdapter. Routing, reasoning and plugins go into provider_params:
    {"provider": {"only": ["anthropic"]}, "reasoning": {"effort": "low"}}.
    """

    default_formatter = AnthropicXmlFormatter
    most_cache_markers = MOST_MARKERS

    def __init__(
        self,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        http_referer: str = "https://membrane.local",
        x_title: str = "Membrane",
        headers: HeadersInput | None = None,
        default_max_tokens: int = DEFAULT_MAX_TOKENS,
        tool_result_images: Literal["auto", "media", "omit"] = "auto",
        model_traits: Mapping[str, Mapping[str, Any]] | None = None,
        progress_timeout_ms: int | None = None,
        transport: OpensRequests | None = None,
        clock: Clock | None = None,
    ) -> None:
        key = read_key(api_key, "api_key", "OPENROUTER_API_KEY", os.environ)
        named = [("HTTP-Referer", http_referer), ("X-Title", x_title)]
        super().__init__(
            name="openrouter",
            codec=ChatCodec(
                read_base_url(base_url, None, {}, "https://openrouter.ai/api/v1"),
                DIALECT._replace(tool_result_images=checked_tool_result_images(tool_result_images)),
                ModelTable(OPENROUTER_MODELS, ModelTraits(), model_traits),
                default_max_tokens,
            ),
            auth=HeaderAuth(
                [Key(key, "Authorization", "Bearer ")] if key else [],
                missing="api_key: no key; pass api_key= or set OPENROUTER_API_KEY (nothing was sent)",
                placeholder=Key(PLACEHOLDER, "Authorization", "Bearer "),
            ),
            headers=merged([pair for pair in named if pair[1]], header_pairs(headers, "headers")),
            reserved_headers=("authorization",),
            transport=transport,
            clock=clock,
            progress_timeout_ms=progress_timeout_ms,
        )

    def supports_model(self, model: str) -> bool:
        return "/" in model
