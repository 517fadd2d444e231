"""Any server that speaks chat completions (chat_dialect.py): Ollama, vLLM, llama.cpp, Groq, DeepSeek, Mistral, LiteLLM.

> {"model": "llama3.3", "messages": [{"role": "user", "content": "User: Hi"}], "max_tokens": 64}
< {"model": "llama3.3", "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello"},
<  "finish_reason": "stop"}], "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}}
= Hello / end_turn / 9 in, 3 out
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from ..clock import Clock
from ..credentials.keys import HeaderAuth, Key, read_key
from ..errors import invalid
from ..formatters.anthropic_xml import AnthropicXmlFormatter
from ..transport.interface import OpensRequests
from ..wire.http import HeadersInput
from .base import DEFAULT_MAX_TOKENS, HttpAdapter, read_base_url
from .chat_dialect import ChatCodec, ChatDialect
from .chat_media import checked_tool_result_images
from .models import ModelTable, ModelTraits

# Nothing is known of the models behind such a server, so nothing is left out for them.
DIALECT: Final = ChatDialect(reasoning_field="reasoning", orphan_think_close=True)


class OpenAICompatibleAdapter(HttpAdapter):
    """base_url: with its version, as in "http://localhost:11434/v1". api_key: sent as a bearer token where given.

    No environment variable is read. provider_name: the name in errors and details. stream usage is read where it
    comes; a server that wants to be asked takes provider_params={"stream_options": {"include_usage": True}}.
    tool_result_images: "omit" for a model that cannot be shown the images of a tool's result. structured_output:
    "prompt" for a server that refuses a response_format with a schema, which then goes into the system text.
    """

    default_formatter = AnthropicXmlFormatter

    def __init__(
        self,
        *,
        base_url: str,
        api_key: str | None = None,
        provider_name: str = "openai-compatible",
        headers: HeadersInput | None = None,
        default_max_tokens: int = DEFAULT_MAX_TOKENS,
        tool_result_images: Literal["auto", "media", "omit"] = "auto",
        structured_output: Literal["json_schema", "prompt"] = "json_schema",
        model_traits: Mapping[str, Mapping[str, Any]] | None = None,
        progress_timeout_ms: int | None = None,
        transport: OpensRequests | None = None,
        clock: Clock | None = None,
    ) -> None:
        key = read_key(api_key, "api_key", None, {})
        if structured_output not in ("json_schema", "prompt"):
            raise invalid("structured_output", f"found {structured_output!r}", "expected 'json_schema' or 'prompt'")
        super().__init__(
            name=provider_name,
            codec=ChatCodec(
                read_base_url(base_url, None, {}, None),
                DIALECT._replace(
                    tool_result_images=checked_tool_result_images(tool_result_images), output_form=structured_output
                ),
                ModelTable({}, ModelTraits(), model_traits),
                default_max_tokens,
            ),
            auth=HeaderAuth([Key(key, "Authorization", "Bearer ")] if key else [], missing=None),
            headers=headers,
            reserved_headers=("authorization",) if key else (),
            transport=transport,
            clock=clock,
            progress_timeout_ms=progress_timeout_ms,
        )

    def supports_model(self, model: str) -> bool:
        return True
