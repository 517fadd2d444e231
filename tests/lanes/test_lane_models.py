"""models, constants, prompt_cache, config: the facts of the wire, and what the environment says."""

from __future__ import annotations

from typing import Any

import pytest
from lanes.lane_stage import refused

from membrane_lite.lanes import (
    ANTHROPIC_VERSION,
    DEFAULT_OPENAI_PROMPT_CACHE,
    EMBED_BATCH_LIMIT,
    EMBED_CONCURRENCY,
    EMBED_DIM,
    EMBED_MODEL_ID,
    EMBED_WATERMARK,
    MAX_RAW,
    MAX_TOKENS_CEILING,
    MAX_TOKENS_DEFAULT,
    MODELS,
    OPENAI_PROMPT_CACHE_OFF_FIELD,
    OPENAI_PROMPT_CACHE_VALUES,
    OPENAI_PROMPT_CACHE_VAR,
    REQUEST_HANDLER_OPTIONS,
    STRUCTURED_TOOL_NAME,
    LlmConfig,
    LlmConfigShape,
    ModelInfo,
    ProxyConfig,
    model_by_key,
    openai_prompt_cache_from,
    thinking_for,
)


def test_embed_watermark_and_the_other_constants_of_the_wire() -> None:
    assert (EMBED_MODEL_ID, EMBED_DIM, EMBED_WATERMARK) == ("cohere.embed-v4:0", 1024, "cohere.embed-v4:0@1024")
    assert (EMBED_BATCH_LIMIT, EMBED_CONCURRENCY) == (96, 6)
    assert (STRUCTURED_TOOL_NAME, ANTHROPIC_VERSION, MAX_RAW) == ("emit", "bedrock-2023-05-31", 800)
    assert (MAX_TOKENS_DEFAULT, MAX_TOKENS_CEILING) == (64_000, 128_000)
    assert REQUEST_HANDLER_OPTIONS == {"request_timeout": 300_000}


def test_models_are_five_rows_each_with_its_global_profile() -> None:
    assert tuple(map(tuple, MODELS)) == (
        ("sonnet-5", "global.anthropic.claude-sonnet-5", "anthropic", "Claude Sonnet 5"),
        ("opus-5", "global.anthropic.claude-opus-5", "anthropic", "Claude Opus 5"),
        ("fable-5", "global.anthropic.claude-fable-5", "anthropic", "Claude Fable 5"),
        ("gpt-5.6-sol", "global.openai.gpt-5.6-sol", "openai", "GPT-5.6 Sol"),
        ("gpt-5.6-terra", "global.openai.gpt-5.6-terra", "openai", "GPT-5.6 Terra"),
    )


@pytest.mark.parametrize("row", MODELS, ids=[row.key for row in MODELS])
def test_model_by_key_resolves_a_key_to_its_row(row: ModelInfo) -> None:
    assert model_by_key(row.key) is row


def test_model_by_key_fails_loudly_for_a_key_without_a_row() -> None:
    error = refused(lambda: model_by_key("opus-4"))  # type: ignore[arg-type]
    assert (error.type, error.message) == (
        "invalid_request",
        "model_key: found 'opus-4'; expected one of sonnet-5, opus-5, fable-5, gpt-5.6-sol, gpt-5.6-terra",
    )


def test_thinking_for_is_adaptive_for_two_models_and_absent_for_the_others() -> None:
    adaptive = {"type": "adaptive"}
    assert [thinking_for(row.key) for row in MODELS] == [None, adaptive, adaptive, None, None]


PROMPT_CACHES: dict[str, tuple[str | None, str]] = {
    "unset is the default": (None, "off"),
    "blank is unset": (" \t", "off"),
    "off": ("off", "off"),
    "implicit": ("implicit", "implicit"),
    "case and space do not matter": (" Implicit\n", "implicit"),
}


@pytest.mark.parametrize("raw, meant", PROMPT_CACHES.values(), ids=PROMPT_CACHES.keys())
def test_openai_prompt_cache_from(raw: str | None, meant: str) -> None:
    assert openai_prompt_cache_from(raw) == meant


@pytest.mark.parametrize("raw", ["on", "explicit", "of"])
def test_openai_prompt_cache_from_refuses_a_typo_and_names_the_variable(raw: str) -> None:
    error = refused(lambda: openai_prompt_cache_from(raw))
    words = f"MEMHTML_OPENAI_PROMPT_CACHE: found {raw!r}; expected one of off, implicit"
    assert (error.type, error.message) == ("invalid_request", words)


def test_default_openai_prompt_cache_and_its_other_constants() -> None:
    assert (DEFAULT_OPENAI_PROMPT_CACHE, OPENAI_PROMPT_CACHE_VALUES) == ("off", ("off", "implicit"))
    assert OPENAI_PROMPT_CACHE_OFF_FIELD == {"mode": "explicit"}
    assert OPENAI_PROMPT_CACHE_VAR == "MEMHTML_OPENAI_PROMPT_CACHE"


ENVIRONMENTS: dict[str, tuple[dict[str, str | None], LlmConfig]] = {
    "of nothing: Bedrock, where embedder and profiles are reachable": ({}, LlmConfig(region="us-east-1")),
    "blank ones are unset": ({"MEMHTML_AWS_REGION": " ", "MEMHTML_LLM_BASE_URL": ""}, LlmConfig()),
    "none of them": ({"MEMHTML_AWS_REGION": None, "MEMHTML_OPENAI_PROMPT_CACHE": None}, LlmConfig()),
    "a region": ({"MEMHTML_AWS_REGION": " eu-west-1 "}, LlmConfig(region="eu-west-1")),
    "AWS's own variables are not asked": ({"AWS_REGION": "eu-west-1"}, LlmConfig()),
    "a proxy; the region is read all the same": (
        {"MEMHTML_LLM_BASE_URL": "http://h:4000/", "MEMHTML_AWS_REGION": "eu-west-1"},
        LlmConfig(region="eu-west-1", proxy=ProxyConfig("http://h:4000")),
    ),
    "caching": ({"MEMHTML_OPENAI_PROMPT_CACHE": "implicit"}, LlmConfig(openai_prompt_cache="implicit")),
}


@pytest.mark.parametrize("env, config", ENVIRONMENTS.values(), ids=ENVIRONMENTS.keys())
def test_llm_config_of_an_environment(env: dict[str, str | None], config: LlmConfig) -> None:
    assert LlmConfig.from_env(env) == config


def test_llm_config_reads_the_environment_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMHTML_AWS_REGION", "ap-south-1")
    assert LlmConfig.from_env() == LlmConfig(region="ap-south-1")
    assert LlmConfigShape is LlmConfig


MALFORMED: dict[str, tuple[dict[str, Any], str]] = {
    "an origin": ({"MEMHTML_LLM_BASE_URL": "h:4000"}, "MEMHTML_LLM_BASE_URL: "),
    "a map": ({"MEMHTML_LLM_BASE_URL": "http://h", "MEMHTML_LLM_MODEL_MAP": "x"}, "MEMHTML_LLM_MODEL_MAP: "),
    "a key": ({"MEMHTML_LLM_BASE_URL": "http://h", "MEMHTML_LLM_API_KEY": "a\nb"}, "MEMHTML_LLM_API_KEY: "),
    "caching": ({"MEMHTML_OPENAI_PROMPT_CACHE": "yes"}, "MEMHTML_OPENAI_PROMPT_CACHE: "),
    "a region": ({"MEMHTML_AWS_REGION": "Frankfurt!"}, "MEMHTML_AWS_REGION: "),
    "a region beside a proxy": (
        {"MEMHTML_LLM_BASE_URL": "http://h", "MEMHTML_AWS_REGION": "a.b"},
        "MEMHTML_AWS_REGION: ",
    ),
}


@pytest.mark.parametrize("env, words", MALFORMED.values(), ids=MALFORMED.keys())
def test_llm_config_dies_of_a_malformed_value_at_construction(env: dict[str, Any], words: str) -> None:
    assert refused(lambda: LlmConfig.from_env(env)).message.startswith(words)
