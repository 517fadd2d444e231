"""LLM requests to every major provider through one request and response format; synchronous, one dependency (urllib3).

    from membrane_lite import AnthropicAdapter, Membrane

    membrane = Membrane(AnthropicAdapter())                     # reads ANTHROPIC_API_KEY
    response = membrane.complete({
        "messages": [{"participant": "User", "content": "Hello!"}],
        "config": {"model": "claude-sonnet-4-5", "max_tokens": 1024},
    })
    response.text, response.stop_reason, response.usage

Names are loaded when they are first used (PEP 562): importing this package loads no provider and no network code.
"""

from __future__ import annotations

TYPE_CHECKING = False  # checkers read it as True; importing `typing` alone may cost more than this whole file
if TYPE_CHECKING:
    from .abort import AbortController as AbortController
    from .abort import AbortSignal as AbortSignal
    from .clock import Clock as Clock
    from .errors import MembraneError as MembraneError
    from .formatters.anthropic_xml import AnthropicXmlFormatter as AnthropicXmlFormatter
    from .formatters.completions import CompletionsFormatter as CompletionsFormatter
    from .formatters.native import NativeFormatter as NativeFormatter
    from .formatters.openai_responses import OpenAIResponsesFormatter as OpenAIResponsesFormatter
    from .membrane import Membrane as Membrane
    from .providers.anthropic import AnthropicAdapter as AnthropicAdapter
    from .providers.bedrock import BedrockAdapter as BedrockAdapter
    from .providers.gemini import GeminiAdapter as GeminiAdapter
    from .providers.mock import MockAdapter as MockAdapter
    from .providers.mock import create_canned_adapter as create_canned_adapter
    from .providers.mock import create_echo_adapter as create_echo_adapter
    from .providers.openai_chat import OpenAIAdapter as OpenAIAdapter
    from .providers.openai_compatible import OpenAICompatibleAdapter as OpenAICompatibleAdapter
    from .providers.openai_completions import OpenAICompletionsAdapter as OpenAICompletionsAdapter
    from .providers.openai_images import OpenAIImagesAdapter as OpenAIImagesAdapter
    from .providers.openai_images import OpenAIResponsesAdapter as OpenAIResponsesAdapter
    from .providers.openai_responses import OpenAIResponsesAPIAdapter as OpenAIResponsesAPIAdapter
    from .providers.openrouter import OpenRouterAdapter as OpenRouterAdapter
    from .schema.decode import LlmContractViolation as LlmContractViolation
    from .transport.pool import Transport as Transport
    from .values.content import Audio as Audio
    from .values.content import Document as Document
    from .values.content import GeneratedImage as GeneratedImage
    from .values.content import Image as Image
    from .values.content import RedactedThinking as RedactedThinking
    from .values.content import SystemChange as SystemChange
    from .values.content import Text as Text
    from .values.content import Thinking as Thinking
    from .values.content import ToolResultBlock as ToolResultBlock
    from .values.content import ToolUse as ToolUse
    from .values.content import Video as Video
    from .values.messages import Message as Message
    from .values.options import Hooks as Hooks
    from .values.options import RetryConfig as RetryConfig
    from .values.requests import GenerationConfig as GenerationConfig
    from .values.requests import ProviderRequest as ProviderRequest
    from .values.requests import Request as Request
    from .values.requests import ThinkingConfig as ThinkingConfig
    from .values.responses import AbortedResponse as AbortedResponse
    from .values.responses import Response as Response
    from .values.responses import is_aborted_response as is_aborted_response
    from .values.tools import Tool as Tool
    from .values.tools import ToolCall as ToolCall
    from .values.tools import ToolResult as ToolResult

_HOMES = {  # where each public name lives; a test compares it with the block above
    "AbortController": "abort",
    "AbortSignal": "abort",
    "AbortedResponse": "values.responses",
    "AnthropicAdapter": "providers.anthropic",
    "AnthropicXmlFormatter": "formatters.anthropic_xml",
    "Audio": "values.content",
    "BedrockAdapter": "providers.bedrock",
    "Clock": "clock",
    "CompletionsFormatter": "formatters.completions",
    "Document": "values.content",
    "GeminiAdapter": "providers.gemini",
    "GeneratedImage": "values.content",
    "GenerationConfig": "values.requests",
    "Hooks": "values.options",
    "Image": "values.content",
    "LlmContractViolation": "schema.decode",
    "Membrane": "membrane",
    "MembraneError": "errors",
    "Message": "values.messages",
    "MockAdapter": "providers.mock",
    "NativeFormatter": "formatters.native",
    "OpenAIAdapter": "providers.openai_chat",
    "OpenAICompatibleAdapter": "providers.openai_compatible",
    "OpenAICompletionsAdapter": "providers.openai_completions",
    "OpenAIImagesAdapter": "providers.openai_images",
    "OpenAIResponsesAPIAdapter": "providers.openai_responses",
    "OpenAIResponsesAdapter": "providers.openai_images",
    "OpenAIResponsesFormatter": "formatters.openai_responses",
    "OpenRouterAdapter": "providers.openrouter",
    "ProviderRequest": "values.requests",
    "RedactedThinking": "values.content",
    "Request": "values.requests",
    "Response": "values.responses",
    "RetryConfig": "values.options",
    "SystemChange": "values.content",
    "Text": "values.content",
    "Thinking": "values.content",
    "ThinkingConfig": "values.requests",
    "Tool": "values.tools",
    "ToolCall": "values.tools",
    "ToolResult": "values.tools",
    "ToolResultBlock": "values.content",
    "ToolUse": "values.content",
    "Transport": "transport.pool",
    "Video": "values.content",
    "create_canned_adapter": "providers.mock",
    "create_echo_adapter": "providers.mock",
    "is_aborted_response": "values.responses",
}
__all__ = list(_HOMES)

if not TYPE_CHECKING:  # hidden from checkers, which would take it to mean that every name exists

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        value = globals()[name] = getattr(import_module("." + _HOMES[name], __name__), name)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *_HOMES})
