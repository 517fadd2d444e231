"""Embeddings and structured output: two lanes over one client type, to Bedrock directly or through an HTTP LLM proxy.

    from membrane_lite.lanes import EmbeddingsLive, ModelClientLive, StructuredRequest

    embeddings = EmbeddingsLive()                     # us-east-1, or the proxy that MEMHTML_LLM_BASE_URL names
    vectors = embeddings.embed(["one text", "another"])
    answer = ModelClientLive().generate_object(StructuredRequest("opus-5", "How many?", Count, effort="low"))

An InvokeClient sends one body and gives one answer's bytes (client.py, proxy.py). embeddings.py and model_client.py are
the lanes over it; models.py, constants.py and wire.py the facts of the wire; config.py reads the environment. Two
errors divide the failures (errors.py): ModelUnavailable, no usable answer arrived; LlmContractViolation, one arrived
that breaks its contract. Names are loaded when they are first used, as those of the package are.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .client import InvokeClient as InvokeClient
    from .client import InvokeResult as InvokeResult
    from .client import invoke_json as invoke_json
    from .client import make_bedrock_client as make_bedrock_client
    from .config import LlmConfig as LlmConfig
    from .config import LlmConfigShape as LlmConfigShape
    from .constants import ANTHROPIC_VERSION as ANTHROPIC_VERSION
    from .constants import EMBED_BATCH_LIMIT as EMBED_BATCH_LIMIT
    from .constants import EMBED_CONCURRENCY as EMBED_CONCURRENCY
    from .constants import EMBED_DIM as EMBED_DIM
    from .constants import EMBED_MODEL_ID as EMBED_MODEL_ID
    from .constants import EMBED_WATERMARK as EMBED_WATERMARK
    from .constants import MAX_TOKENS_CEILING as MAX_TOKENS_CEILING
    from .constants import MAX_TOKENS_DEFAULT as MAX_TOKENS_DEFAULT
    from .constants import STRUCTURED_TOOL_NAME as STRUCTURED_TOOL_NAME
    from .data_block import wrap_as_data as wrap_as_data
    from .embeddings import Embeddings as Embeddings
    from .embeddings import EmbeddingsLive as EmbeddingsLive
    from .embeddings import EmbeddingsShape as EmbeddingsShape
    from .embeddings import build_embed_body as build_embed_body
    from .embeddings import chunk_texts as chunk_texts
    from .embeddings import make_embeddings as make_embeddings
    from .embeddings import read_embeddings as read_embeddings
    from .errors import ModelUnavailable as ModelUnavailable
    from .errors import model_failure as model_failure
    from .json_schema import Violation as Violation
    from .json_schema import validate as validate
    from .model_client import Generation as Generation
    from .model_client import ModelClient as ModelClient
    from .model_client import ModelClientDefaults as ModelClientDefaults
    from .model_client import ModelClientLive as ModelClientLive
    from .model_client import ModelClientShape as ModelClientShape
    from .model_client import StructuredRequest as StructuredRequest
    from .model_client import make_model_client as make_model_client
    from .models import MODELS as MODELS
    from .models import Effort as Effort
    from .models import ModelInfo as ModelInfo
    from .models import ModelKey as ModelKey
    from .models import Provider as Provider
    from .models import model_by_key as model_by_key
    from .models import thinking_for as thinking_for
    from .prompt_cache import DEFAULT_OPENAI_PROMPT_CACHE as DEFAULT_OPENAI_PROMPT_CACHE
    from .prompt_cache import OPENAI_PROMPT_CACHE_OFF_FIELD as OPENAI_PROMPT_CACHE_OFF_FIELD
    from .prompt_cache import OPENAI_PROMPT_CACHE_VALUES as OPENAI_PROMPT_CACHE_VALUES
    from .prompt_cache import OPENAI_PROMPT_CACHE_VAR as OPENAI_PROMPT_CACHE_VAR
    from .prompt_cache import OpenAiPromptCache as OpenAiPromptCache
    from .prompt_cache import openai_prompt_cache_from as openai_prompt_cache_from
    from .proxy import PROXY_ROUTE_PATHS as PROXY_ROUTE_PATHS
    from .proxy import ProxyClientOptions as ProxyClientOptions
    from .proxy import ProxyFetch as ProxyFetch
    from .proxy import ProxyFetchResponse as ProxyFetchResponse
    from .proxy import ProxyHttpError as ProxyHttpError
    from .proxy import ProxyRequest as ProxyRequest
    from .proxy import ProxyRoute as ProxyRoute
    from .proxy import from_proxy_response as from_proxy_response
    from .proxy import invoke_client_for as invoke_client_for
    from .proxy import is_retryable_proxy_failure as is_retryable_proxy_failure
    from .proxy import make_proxy_client as make_proxy_client
    from .proxy import proxy_route_for as proxy_route_for
    from .proxy import to_proxy_request as to_proxy_request
    from .proxy_config import DEFAULT_PROXY_MODEL_PREFIX as DEFAULT_PROXY_MODEL_PREFIX
    from .proxy_config import PROXY_API_KEY_VAR as PROXY_API_KEY_VAR
    from .proxy_config import PROXY_BASE_URL_VAR as PROXY_BASE_URL_VAR
    from .proxy_config import PROXY_MODEL_MAP_VAR as PROXY_MODEL_MAP_VAR
    from .proxy_config import PROXY_MODEL_PREFIX_NONE as PROXY_MODEL_PREFIX_NONE
    from .proxy_config import PROXY_MODEL_PREFIX_VAR as PROXY_MODEL_PREFIX_VAR
    from .proxy_config import ProxyConfig as ProxyConfig
    from .proxy_config import normalize_proxy_base_url as normalize_proxy_base_url
    from .proxy_config import parse_proxy_model_map as parse_proxy_model_map
    from .proxy_config import proxy_config_from_env as proxy_config_from_env
    from .proxy_config import proxy_model_id as proxy_model_id
    from .proxy_config import proxy_model_prefix as proxy_model_prefix
    from .resending import BEDROCK_BACKOFF as BEDROCK_BACKOFF
    from .resending import PROXY_BACKOFF as PROXY_BACKOFF
    from .resending import REQUEST_HANDLER_OPTIONS as REQUEST_HANDLER_OPTIONS
    from .resending import Backoff as Backoff
    from .structured import MAX_RAW as MAX_RAW
    from .structured import LlmContractViolation as LlmContractViolation
    from .structured import decode_tool_input as decode_tool_input
    from .structured import to_input_schema as to_input_schema
    from .wire import INCOMPLETE_STOP_REASONS as INCOMPLETE_STOP_REASONS
    from .wire import ContentBlock as ContentBlock
    from .wire import GenerateOptions as GenerateOptions
    from .wire import InvokeResponseBody as InvokeResponseBody
    from .wire import JsonSchemaObject as JsonSchemaObject
    from .wire import StructuredTool as StructuredTool
    from .wire import as_response_body as as_response_body
    from .wire import build_invoke_body as build_invoke_body
    from .wire import clamp_tokens as clamp_tokens
    from .wire import incomplete_reason as incomplete_reason
    from .wire import read_text as read_text
    from .wire import read_tool_input as read_tool_input

_HOMES = {  # where each public name lives; a test compares it with the block above
    "ANTHROPIC_VERSION": "constants",
    "BEDROCK_BACKOFF": "resending",
    "Backoff": "resending",
    "ContentBlock": "wire",
    "DEFAULT_OPENAI_PROMPT_CACHE": "prompt_cache",
    "DEFAULT_PROXY_MODEL_PREFIX": "proxy_config",
    "EMBED_BATCH_LIMIT": "constants",
    "EMBED_CONCURRENCY": "constants",
    "EMBED_DIM": "constants",
    "EMBED_MODEL_ID": "constants",
    "EMBED_WATERMARK": "constants",
    "Effort": "models",
    "Embeddings": "embeddings",
    "EmbeddingsLive": "embeddings",
    "EmbeddingsShape": "embeddings",
    "GenerateOptions": "wire",
    "Generation": "model_client",
    "INCOMPLETE_STOP_REASONS": "wire",
    "InvokeClient": "client",
    "InvokeResponseBody": "wire",
    "InvokeResult": "client",
    "JsonSchemaObject": "wire",
    "LlmConfig": "config",
    "LlmConfigShape": "config",
    "LlmContractViolation": "structured",
    "MAX_RAW": "structured",
    "MAX_TOKENS_CEILING": "constants",
    "MAX_TOKENS_DEFAULT": "constants",
    "MODELS": "models",
    "ModelClient": "model_client",
    "ModelClientDefaults": "model_client",
    "ModelClientLive": "model_client",
    "ModelClientShape": "model_client",
    "ModelInfo": "models",
    "ModelKey": "models",
    "ModelUnavailable": "errors",
    "OPENAI_PROMPT_CACHE_OFF_FIELD": "prompt_cache",
    "OPENAI_PROMPT_CACHE_VALUES": "prompt_cache",
    "OPENAI_PROMPT_CACHE_VAR": "prompt_cache",
    "OpenAiPromptCache": "prompt_cache",
    "PROXY_API_KEY_VAR": "proxy_config",
    "PROXY_BACKOFF": "resending",
    "PROXY_BASE_URL_VAR": "proxy_config",
    "PROXY_MODEL_MAP_VAR": "proxy_config",
    "PROXY_MODEL_PREFIX_NONE": "proxy_config",
    "PROXY_MODEL_PREFIX_VAR": "proxy_config",
    "PROXY_ROUTE_PATHS": "proxy",
    "Provider": "models",
    "ProxyClientOptions": "proxy",
    "ProxyConfig": "proxy_config",
    "ProxyFetch": "proxy",
    "ProxyFetchResponse": "proxy",
    "ProxyHttpError": "proxy",
    "ProxyRequest": "proxy",
    "ProxyRoute": "proxy",
    "REQUEST_HANDLER_OPTIONS": "resending",
    "STRUCTURED_TOOL_NAME": "constants",
    "StructuredRequest": "model_client",
    "StructuredTool": "wire",
    "Violation": "json_schema",
    "as_response_body": "wire",
    "build_embed_body": "embeddings",
    "build_invoke_body": "wire",
    "chunk_texts": "embeddings",
    "clamp_tokens": "wire",
    "decode_tool_input": "structured",
    "from_proxy_response": "proxy",
    "incomplete_reason": "wire",
    "invoke_client_for": "proxy",
    "invoke_json": "client",
    "is_retryable_proxy_failure": "proxy",
    "make_bedrock_client": "client",
    "make_embeddings": "embeddings",
    "make_model_client": "model_client",
    "make_proxy_client": "proxy",
    "model_by_key": "models",
    "model_failure": "errors",
    "normalize_proxy_base_url": "proxy_config",
    "openai_prompt_cache_from": "prompt_cache",
    "parse_proxy_model_map": "proxy_config",
    "proxy_config_from_env": "proxy_config",
    "proxy_model_id": "proxy_config",
    "proxy_model_prefix": "proxy_config",
    "proxy_route_for": "proxy",
    "read_embeddings": "embeddings",
    "read_text": "wire",
    "read_tool_input": "wire",
    "thinking_for": "models",
    "to_input_schema": "structured",
    "to_proxy_request": "proxy",
    "validate": "json_schema",
    "wrap_as_data": "data_block",
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
