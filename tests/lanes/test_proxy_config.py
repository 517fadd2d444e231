"""proxy_config: four variables and their parsers."""

from __future__ import annotations

from typing import Any

import pytest
from lanes.lane_stage import refused

from membrane_lite.lanes import (
    DEFAULT_PROXY_MODEL_PREFIX,
    PROXY_API_KEY_VAR,
    PROXY_BASE_URL_VAR,
    PROXY_MODEL_MAP_VAR,
    PROXY_MODEL_PREFIX_NONE,
    PROXY_MODEL_PREFIX_VAR,
    ProxyConfig,
    normalize_proxy_base_url,
    parse_proxy_model_map,
    proxy_config_from_env,
    proxy_model_id,
    proxy_model_prefix,
)


def test_proxy_config_from_env_names_of_the_variables() -> None:
    assert (PROXY_BASE_URL_VAR, PROXY_API_KEY_VAR) == ("MEMHTML_LLM_BASE_URL", "MEMHTML_LLM_API_KEY")
    assert (PROXY_MODEL_PREFIX_VAR, PROXY_MODEL_MAP_VAR) == ("MEMHTML_LLM_MODEL_PREFIX", "MEMHTML_LLM_MODEL_MAP")
    assert (DEFAULT_PROXY_MODEL_PREFIX, PROXY_MODEL_PREFIX_NONE) == ("bedrock/", "none")


ORIGINS: dict[str, tuple[str, str]] = {
    "as it is": ("http://127.0.0.1:4000", "http://127.0.0.1:4000"),
    "a slash at its end": ("http://127.0.0.1:4000/", "http://127.0.0.1:4000"),
    "several": ("https://proxy.example///", "https://proxy.example"),
    "space around it": (" https://proxy.example\n", "https://proxy.example"),
    "a path before the routes": ("https://gateway.example/llm/", "https://gateway.example/llm"),
}


@pytest.mark.parametrize("raw, origin", ORIGINS.values(), ids=ORIGINS.keys())
def test_normalize_proxy_base_url(raw: str, origin: str) -> None:
    assert normalize_proxy_base_url(raw) == origin


EXPECTED = "expected http:// or https://, a host and a path"
WRONG_ORIGINS: dict[str, tuple[str, str]] = {
    "no scheme": ("127.0.0.1:4000", f"found '127.0.0.1:4000'; {EXPECTED}"),
    "a name without a scheme": ("localhost:4000/", f"found 'localhost:4000'; {EXPECTED}"),
    "another scheme": ("ftp://h", f"found 'ftp://h'; {EXPECTED}"),
    "no host": ("http://", f"found 'http:'; {EXPECTED}"),
    "a query": ("http://h?x=1", f"found 'http://h?x=1'; {EXPECTED}"),
    "nothing": ("", "found ''; expected http:// or https:// and a host"),
    "a space in it": ("http://my host", f"found 'http://my host'; {EXPECTED}"),
    "a line break in it": ("http://h\n:4000", f"found 'http://h\\n:4000'; {EXPECTED}"),
    "no scheme before a password, which is not shown": ("user:pa55word@h:80", f"found 'h:80'; {EXPECTED}"),
    "nor one slash too few": ("http:/user:pa55word@h", f"found 'http:/h'; {EXPECTED}"),
    "a user and a password, which are not shown": (
        "http://user:pa55word@h",
        "a user stands before the host; expected its key in MEMHTML_LLM_API_KEY",
    ),
}


@pytest.mark.parametrize("raw, words", WRONG_ORIGINS.values(), ids=WRONG_ORIGINS.keys())
def test_normalize_proxy_base_url_names_the_variable(raw: str, words: str) -> None:
    error = refused(lambda: normalize_proxy_base_url(raw))
    assert (error.type, error.message) == ("invalid_request", f"MEMHTML_LLM_BASE_URL: {words}")


MAPS: dict[str, tuple[str, dict[str, str]]] = {
    "nothing": ("", {}),
    "one": ("cohere.embed-v4:0=cohere-embed-v4", {"cohere.embed-v4:0": "cohere-embed-v4"}),
    "two, with spaces and a comma at the end": (" a = x , b=y ,", {"a": "x", "b": "y"}),
    "empty entries": (",,a=x, ,", {"a": "x"}),
    "the first sign parts": ("a=x=y", {"a": "x=y"}),
}


@pytest.mark.parametrize("raw, names", MAPS.values(), ids=MAPS.keys())
def test_parse_proxy_model_map(raw: str, names: dict[str, str]) -> None:
    assert parse_proxy_model_map(raw) == names


WRONG_MAPS: dict[str, tuple[str, str]] = {
    "no sign": ("a=x,bcd", "found the entry 'bcd'; expected from=to, with neither side empty"),
    "nothing before it": ("=x", "found the entry '=x'; expected from=to, with neither side empty"),
    "nothing behind it": ("a= ", "found the entry 'a='; expected from=to, with neither side empty"),
    "a key twice": ("a=x,b=y,a=z", "'a' is mapped again by 'a=z'; expected it once"),
}


@pytest.mark.parametrize("raw, words", WRONG_MAPS.values(), ids=WRONG_MAPS.keys())
def test_parse_proxy_model_map_quotes_the_offending_entry(raw: str, words: str) -> None:
    error = refused(lambda: parse_proxy_model_map(raw))
    assert (error.type, error.message) == ("invalid_request", f"MEMHTML_LLM_MODEL_MAP: {words}")


PREFIXES: dict[str, tuple[str | None, str]] = {
    "unset": (None, "bedrock/"),
    "blank": ("  ", "bedrock/"),
    "none": ("none", ""),
    "none, shouted": (" NONE ", ""),
    "as written, trimmed": (" aws/Bedrock- ", "aws/Bedrock-"),
}


@pytest.mark.parametrize("raw, prefix", PREFIXES.values(), ids=PREFIXES.keys())
def test_proxy_model_prefix(raw: str | None, prefix: str) -> None:
    assert proxy_model_prefix(raw) == prefix


ENVIRONMENTS: dict[str, tuple[dict[str, str | None], ProxyConfig | None]] = {
    "nothing": ({}, None),
    "a blank origin, whatever else is set": ({"MEMHTML_LLM_BASE_URL": " ", "MEMHTML_LLM_MODEL_MAP": "broken"}, None),
    "an origin": ({"MEMHTML_LLM_BASE_URL": "http://h:4000/"}, ProxyConfig("http://h:4000")),
    "all four": (
        {
            "MEMHTML_LLM_BASE_URL": "http://h:4000",
            "MEMHTML_LLM_API_KEY": " sk-1234567890 ",
            "MEMHTML_LLM_MODEL_PREFIX": "none",
            "MEMHTML_LLM_MODEL_MAP": "a=b",
        },
        ProxyConfig("http://h:4000", api_key="sk-1234567890", model_prefix="", model_map={"a": "b"}),
    ),
    "three blank": (
        {"MEMHTML_LLM_BASE_URL": "http://h", "MEMHTML_LLM_API_KEY": " ", "MEMHTML_LLM_MODEL_PREFIX": None},
        ProxyConfig("http://h", api_key=None, model_prefix="bedrock/", model_map={}),
    ),
}


@pytest.mark.parametrize("env, config", ENVIRONMENTS.values(), ids=ENVIRONMENTS.keys())
def test_proxy_config_from_env(env: dict[str, str | None], config: ProxyConfig | None) -> None:
    assert proxy_config_from_env(env) == config


def test_proxy_config_from_env_reads_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMHTML_LLM_BASE_URL", "http://h:4000")
    assert proxy_config_from_env() == ProxyConfig("http://h:4000")


def test_proxy_config_hides_its_key() -> None:
    config = ProxyConfig("http://h/", api_key="sk-1234567890", model_map={"a": "b"})
    assert repr(config) == (
        "ProxyConfig('http://h', api_key='[redacted]', model_prefix='bedrock/', model_map={'a': 'b'})"
    )


def test_proxy_config_refuses_a_key_that_cannot_be_sent_and_does_not_show_it() -> None:
    error = refused(lambda: ProxyConfig("http://h", api_key="sk-12345\nX: y"))
    assert (error.type, "sk-12345" in error.message) == ("auth", False)
    assert ProxyConfig("http://h", api_key=" \n").api_key is None


WRONG_CONFIGS: dict[str, tuple[dict[str, Any], str]] = {
    "an address that is no text": ({"base_url": None}, "MEMHTML_LLM_BASE_URL: found NoneType None; expected a string"),
    "a prefix that is no text": ({"model_prefix": None}, "model_prefix: found NoneType None; expected a string"),
    "a map that is none": ({"model_map": ["a=b"]}, "model_map: found list ['a=b']; expected a mapping of names"),
}


@pytest.mark.parametrize("given, words", WRONG_CONFIGS.values(), ids=WRONG_CONFIGS.keys())
def test_proxy_config_refuses(given: dict[str, Any], words: str) -> None:
    error = refused(lambda: ProxyConfig(**{"base_url": "http://h", **given}))
    assert (error.type, error.message) == ("invalid_request", words)


def test_proxy_model_id_takes_the_map_first_and_then_the_prefix() -> None:
    mapped = ProxyConfig("http://h", model_map={"cohere.embed-v4:0": "cohere-embed-v4"})
    bare = ProxyConfig("http://h", model_prefix="")
    opus = "global.anthropic.claude-opus-5"
    assert proxy_model_id(mapped, "cohere.embed-v4:0") == "cohere-embed-v4"
    assert proxy_model_id(mapped, opus) == "bedrock/global.anthropic.claude-opus-5"
    assert proxy_model_id(bare, opus) == opus
