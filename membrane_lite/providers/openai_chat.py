"""OpenAI's Chat Completions: POST https://api.openai.com/v1/chat/completions, in the dialect of chat_dialect.py.

> {"model": "gpt-5-mini", "messages": [{"role": "user", "content": "User: Hi"}], "max_completion_tokens": 64}
< {"model": "gpt-5-mini-2025-08-07", "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello"},
<  "finish_reason": "stop"}], "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}}
= Hello / end_turn / 9 in, 3 out

GPT_MODELS, in models.py, says which model takes max_tokens, sampling parameters and stop sequences.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final, Literal

from ..clock import Clock
from ..credentials.keys import PLACEHOLDER, HeaderAuth, Key, read_key
from ..formatters.anthropic_xml import AnthropicXmlFormatter
from ..transport.interface import OpensRequests
from ..wire.http import HeadersInput, header_pairs
from .base import DEFAULT_MAX_TOKENS, HttpAdapter, read_base_url
from .chat_dialect import ChatCodec, ChatDialect
from .chat_media import checked_tool_result_images
from .models import GPT_MODELS, GPT_NEWEST, ModelTable

ORGANIZATION_HEADER: Final = "OpenAI-Organization"
MODEL_PREFIXES: Final = ("gpt-", "chatgpt-", "ft:", "o1", "o3", "o4")

DIALECT: Final = ChatDialect(asks_for_stream_usage=True, takes_files=True, output_form="strict")


class OpenAIAdapter(HttpAdapter):
    """OpenAI's Chat Completions API.

    api_key: else OPENAI_API_KEY. organization: sent as OpenAI-Organization. model_traits: rows over those of models.py.
    tool_result_images: whether the images of a tool's result are shown to the model ("media"), only mentioned
    ("omit"), or what the model can take ("auto"). Reasoning effort, audio and the like go into provider_params.
    """

    default_formatter = AnthropicXmlFormatter

    def __init__(
        self,
        *,
        api_key: str | None = None,
        base_url: str | None = None,
        organization: str | None = None,
        headers: HeadersInput | None = None,
        default_max_tokens: int = DEFAULT_MAX_TOKENS,
        tool_result_images: Literal["auto", "media", "omit"] = "auto",
        model_traits: Mapping[str, Mapping[str, Any]] | None = None,
        progress_timeout_ms: int | None = None,
        transport: OpensRequests | None = None,
        clock: Clock | None = None,
    ) -> None:
        key = read_key(api_key, "api_key", "OPENAI_API_KEY", os.environ)
        super().__init__(
            name="openai",
            codec=ChatCodec(
                read_base_url(base_url, None, {}, "https://api.openai.com/v1"),
                DIALECT._replace(tool_result_images=checked_tool_result_images(tool_result_images)),
                ModelTable(GPT_MODELS, GPT_NEWEST, model_traits),
                default_max_tokens,
            ),
            auth=HeaderAuth(
                [Key(key, "Authorization", "Bearer ")] if key else [],
                missing="api_key: no key; pass api_key= or set OPENAI_API_KEY (nothing was sent)",
                placeholder=Key(PLACEHOLDER, "Authorization", "Bearer "),
            ),
            headers=[
                *header_pairs(headers, "headers"),
                *([(ORGANIZATION_HEADER, organization)] if organization else []),
            ],
            reserved_headers=("authorization",),
            transport=transport,
            clock=clock,
            progress_timeout_ms=progress_timeout_ms,
        )

    def supports_model(self, model: str) -> bool:
        return model.startswith(MODEL_PREFIXES)
