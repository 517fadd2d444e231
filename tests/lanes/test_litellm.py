"""Both lanes through a real LiteLLM proxy, which speaks to the loopback provider as it would to Bedrock and OpenAI.

Runs where MEMBRANE_LITELLM_PYTHON names a Python that has litellm[proxy]; what LiteLLM sends is signed and checked.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lanes.lane_stage import SECRET, refused

from membrane_lite.lanes import (
    Backoff,
    ModelUnavailable,
    ProxyConfig,
    make_embeddings,
    make_model_client,
    make_proxy_client,
)
from membrane_lite.loopback import LoopbackProvider, Received, Reply, ToolCall, bedrock
from membrane_lite.loopback.embeddings import vector

PYTHON = os.environ.get("MEMBRANE_LITELLM_PYTHON", "")
KEY = "sk-litellm-key-of-the-test"
OPUS, SOL, EMBEDDER = "global.anthropic.claude-opus-5", "global.openai.gpt-5.6-sol", "cohere.embed-v4:0"
NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
START = "import sys; from litellm import run_server; sys.argv[0] = 'litellm'; run_server()"
STARTS_S = 120


def has_litellm() -> bool:
    probe = [PYTHON, "-c", "from importlib.util import find_spec as f; assert f('litellm') and f('fastapi')"]
    return bool(PYTHON) and subprocess.run(probe, capture_output=True).returncode == 0


pytestmark = pytest.mark.skipif(
    not has_litellm(), reason="MEMBRANE_LITELLM_PYTHON names no Python that has litellm[proxy]"
)


def answer(received: Received) -> Reply:
    if b"emit" not in received.body:
        return Reply("Hello")
    chat = received.format is not None and received.format.name == "chat"
    return Reply('{"n": 3}') if chat else Reply(ToolCall("emit", {"n": 3}))


def models(url: str) -> list[Any]:
    aws = {
        "aws_region_name": "us-east-1",
        "aws_bedrock_runtime_endpoint": url,
        "aws_access_key_id": bedrock.ACCESS_KEY_ID,
        "aws_secret_access_key": SECRET,
    }
    on_bedrock = [(f"bedrock/{id}", {"model": f"bedrock/{id}", **aws}) for id in (EMBEDDER, OPUS)]
    openai = {"model": "openai/gpt-5.6-sol", "api_base": f"{url}/v1", "api_key": "any-key-at-all"}
    rows = [*on_bedrock, (f"bedrock/{SOL}", openai)]
    return [{"model_name": name, "litellm_params": parameters} for name, parameters in rows]


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, LoopbackProvider]]:
    """(url, what stands behind it)."""
    folder = tmp_path_factory.mktemp("litellm")
    with LoopbackProvider(answer) as behind, open(folder / "log", "wb") as log:
        settings = {"model_list": models(behind.url), "general_settings": {"master_key": KEY}}
        (folder / "config.yaml").write_text(json.dumps(settings))  # JSON is YAML
        with socket.create_server(("127.0.0.1", 0)) as found:
            port = found.getsockname()[1]
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYTHON"))}
        env = {**kept, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "NO_PROXY": "*"}
        options = ["--config", "config.yaml", "--host", "127.0.0.1", "--port", str(port)]
        process = subprocess.Popen([PYTHON, "-c", START, *options], cwd=folder, env=env, stdout=log, stderr=log)
        try:
            wait_for(f"http://127.0.0.1:{port}/health/liveliness", process, folder / "log")
            yield f"http://127.0.0.1:{port}", behind
        finally:
            process.terminate()
            process.wait(30)


def wait_for(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    ends = time.monotonic() + STARTS_S
    while True:
        try:
            urllib.request.urlopen(url, timeout=2).close()
            return
        except OSError:
            assert process.poll() is None and time.monotonic() < ends, log.read_text()
            time.sleep(0.2)


@pytest.fixture
def client(proxy: tuple[str, LoopbackProvider]) -> Iterator[Any]:
    made = make_proxy_client(ProxyConfig(proxy[0], api_key=KEY), schedule=Backoff(requests=1, first_ms=0))
    yield made
    made.close()


def test_make_proxy_client_embeddings_reach_cohere_with_their_type_and_dimension(client: Any, proxy: Any) -> None:
    service = make_embeddings(client)
    found = [*service.embed(["one", "two"]), service.embed_query("one")]
    expected = [vector("one", 1024), vector("two", 1024), vector("one", 1024, "search_query")]
    assert [list(row) for row in found] == expected


def test_make_proxy_client_generates_prose_in_both_dialects(client: Any) -> None:
    service = make_model_client(client)
    options = {"effort": "low", "system": "Be brief.", "cache_system": True}
    assert [service.generate(key, "Hi", options).text for key in ("opus-5", "gpt-5.6-sol")] == ["Hello", "Hello"]


def test_make_proxy_client_generates_objects_in_both_dialects(client: Any) -> None:
    service = make_model_client(client)
    asked = [{"model_key": key, "prompt": "?", "schema": NUMBER, "effort": "low"} for key in ("opus-5", "gpt-5.6-sol")]
    assert [service.generate_object(request) for request in asked] == [{"n": 3}, {"n": 3}]


def test_to_proxy_request_reaches_bedrock_as_the_body_sent_there_directly(client: Any, proxy: Any) -> None:
    make_model_client(client).generate("opus-5", "Hi", {"effort": "high"})
    assert proxy[1].requests[-1].json == {
        "anthropic_version": "bedrock-2023-05-31",
        "max_tokens": 64_000,
        "messages": [{"role": "user", "content": "Hi"}],
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "high"},
    }


def test_make_proxy_client_of_a_model_that_the_proxy_does_not_serve(client: Any) -> None:
    error = refused(lambda: make_model_client(client).generate("fable-5", "Hi", {"effort": "low"}), ModelUnavailable)
    assert (error.http_status, error.retryable) == (400, False)
    assert error.message.startswith("global.anthropic.claude-fable-5: ProxyHttpError: the proxy answered 400: ")
    assert "Invalid model name" in error.message
