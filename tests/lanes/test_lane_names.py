"""The names that membrane_lite.lanes exports: those of the module table it was asked for, and a few of its own."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from membrane_lite import lanes

ROOT = Path(__file__).resolve().parents[2]

MODULE_TABLE: dict[str, str] = {
    "client": "InvokeClient InvokeResult invoke_json model_failure REQUEST_HANDLER_OPTIONS make_bedrock_client "
    "LlmConfig LlmConfigShape",
    "constants": "EMBED_MODEL_ID EMBED_DIM EMBED_BATCH_LIMIT EMBED_CONCURRENCY EMBED_WATERMARK STRUCTURED_TOOL_NAME "
    "MAX_TOKENS_DEFAULT MAX_TOKENS_CEILING ANTHROPIC_VERSION",
    "embeddings": "Embeddings EmbeddingsShape EmbeddingsLive make_embeddings chunk_texts build_embed_body "
    "read_embeddings",
    "model-client": "ModelClient ModelClientShape ModelClientLive ModelClientDefaults make_model_client Generation "
    "StructuredRequest wrap_as_data",
    "models": "MODELS ModelInfo ModelKey Provider model_by_key Effort thinking_for",
    "prompt cache": "OpenAiPromptCache DEFAULT_OPENAI_PROMPT_CACHE OPENAI_PROMPT_CACHE_OFF_FIELD "
    "OPENAI_PROMPT_CACHE_VALUES OPENAI_PROMPT_CACHE_VAR openai_prompt_cache_from",
    "proxy-config": "PROXY_BASE_URL_VAR PROXY_API_KEY_VAR PROXY_MODEL_PREFIX_VAR PROXY_MODEL_MAP_VAR "
    "DEFAULT_PROXY_MODEL_PREFIX PROXY_MODEL_PREFIX_NONE ProxyConfig normalize_proxy_base_url parse_proxy_model_map "
    "proxy_model_prefix proxy_config_from_env proxy_model_id",
    "proxy": "ProxyRoute PROXY_ROUTE_PATHS proxy_route_for ProxyRequest to_proxy_request from_proxy_response "
    "ProxyFetch ProxyFetchResponse ProxyHttpError is_retryable_proxy_failure ProxyClientOptions make_proxy_client "
    "invoke_client_for",
    "structured": "to_input_schema decode_tool_input MAX_RAW",
    "wire": "GenerateOptions clamp_tokens JsonSchemaObject StructuredTool build_invoke_body INCOMPLETE_STOP_REASONS "
    "ContentBlock InvokeResponseBody as_response_body incomplete_reason read_text read_tool_input",
    "errors": "ModelUnavailable LlmContractViolation",
}
OF_ITS_OWN = {"Backoff", "BEDROCK_BACKOFF", "PROXY_BACKOFF", "validate", "Violation"}
ASKED_FOR = {name for names in MODULE_TABLE.values() for name in names.split()}


def test_every_name_that_was_asked_for_is_exported_and_no_other() -> None:
    assert set(lanes.__all__) == ASKED_FOR | OF_ITS_OWN
    assert lanes.__all__ == sorted(lanes.__all__)


@pytest.mark.parametrize("name", lanes.__all__)
def test_an_exported_name_is_that_of_its_home(name: str) -> None:
    home = import_module(f"membrane_lite.lanes.{vars(lanes)['_HOMES'][name]}")
    assert getattr(lanes, name) is getattr(home, name)
    assert name in dir(lanes)


def test_make_bedrock_client_and_make_proxy_client_have_no_signer_and_no_pool_of_their_own() -> None:
    """What signs, and what holds connections, is the house's. The adaptive bucket is pure arithmetic."""
    imported = {path.stem: set(modules_of(path)) for path in Path(lanes.__file__).parent.glob("*.py")}
    forbidden = {"hashlib", "hmac", "http", "queue", "requests", "socket", "ssl", "urllib3"}
    assert {name: found & forbidden for name, found in imported.items() if found & forbidden} == {}
    assert imported["adaptive"] == {"__future__", "math", "typing"}


def modules_of(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name.partition(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0] if node.level == 0 else f".{node.module}"


def test_normalize_openai_response_is_not_exported() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'normalize_openai_response'"):
        lanes.normalize_openai_response  # type: ignore[attr-defined]  # noqa: B018


def test_embeddings_live_and_model_client_live_load_no_network_code() -> None:
    code = (
        "import sys, json; import membrane_lite.lanes as lanes\n"
        "loaded = sorted(name for name in sys.modules if name.startswith('membrane_lite'))\n"
        "lanes.EmbeddingsLive(lanes.LlmConfig()), lanes.ModelClientLive(lanes.LlmConfig())\n"
        "lanes.EmbeddingsLive(lanes.LlmConfig(proxy=lanes.ProxyConfig('http://h')))\n"
        "print(json.dumps([loaded, [name for name in ('urllib3', 'ssl') if name in sys.modules]]))"
    )
    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (done.stderr, json.loads(done.stdout)) == ("", [["membrane_lite", "membrane_lite.lanes"], []])
