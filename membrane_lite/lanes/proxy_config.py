"""Where an HTTP LLM proxy is, and what it calls our models: four variables, and the parsers of each.

A blank value reads as unset, because a blank export is how a variable goes missing. A value that is set and cannot be
used is an error that names its variable, when the configuration is read: a typo that fell back to Bedrock would send
traffic where the operator did not point it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from ..credentials.keys import read_key
from ..errors import invalid, wrong_type
from ..providers.base import read_base_url
from ..redactor import REDACTED
from ..values.base import Value

PROXY_BASE_URL_VAR: Final = "MEMHTML_LLM_BASE_URL"  # http://127.0.0.1:4000; absent means Bedrock directly
PROXY_API_KEY_VAR: Final = "MEMHTML_LLM_API_KEY"  # a bearer token, where the proxy wants one
PROXY_MODEL_PREFIX_VAR: Final = "MEMHTML_LLM_MODEL_PREFIX"
PROXY_MODEL_MAP_VAR: Final = "MEMHTML_LLM_MODEL_MAP"  # from=to, comma-separated: cohere.embed-v4:0=cohere-embed-v4

DEFAULT_PROXY_MODEL_PREFIX: Final = "bedrock/"  # LiteLLM's: bedrock/global.anthropic.claude-opus-5
PROXY_MODEL_PREFIX_NONE: Final = "none"  # a word, because "" and unset cannot be told apart everywhere


class ProxyConfig(Value):
    """base_url: an origin without a slash at its end. api_key: None where the proxy takes none; repr hides it.

    model_map: our model id -> the exact name the proxy wants. model_prefix: put before every other id; may be empty.
    """

    __slots__ = ("api_key", "base_url", "model_map", "model_prefix")

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        model_prefix: str = DEFAULT_PROXY_MODEL_PREFIX,
        model_map: Mapping[str, str] | None = None,
    ) -> None:
        if not isinstance(model_prefix, str):
            raise wrong_type("model_prefix", model_prefix, "a string")
        if not isinstance(model_map, (Mapping, type(None))):
            raise wrong_type("model_map", model_map, "a mapping of names")
        self.base_url: Final = normalize_proxy_base_url(base_url)
        self.api_key: Final = read_key(api_key, "api_key", None, {})
        self.model_prefix: Final = model_prefix
        self.model_map: Final[Mapping[str, str]] = dict(model_map or {})

    def __repr__(self) -> str:
        key = None if self.api_key is None else REDACTED
        return (
            f"ProxyConfig({self.base_url!r}, api_key={key!r}, model_prefix={self.model_prefix!r}, "
            f"model_map={self.model_map!r})"
        )


def proxy_config_from_env(env: Mapping[str, str | None] | None = None) -> ProxyConfig | None:
    """The proxy that an environment (the process's, unless given) names; None where it names none."""
    found = {name: value for name, value in (os.environ if env is None else env).items() if value is not None}
    base_url = found.get(PROXY_BASE_URL_VAR, "")
    if not base_url.strip():
        return None
    return ProxyConfig(
        base_url,
        api_key=read_key(None, "api_key", PROXY_API_KEY_VAR, found),
        model_prefix=proxy_model_prefix(found.get(PROXY_MODEL_PREFIX_VAR)),
        model_map=parse_proxy_model_map(found.get(PROXY_MODEL_MAP_VAR, "")),
    )


def normalize_proxy_base_url(raw: str) -> str:
    """The origin that /v1/... is appended to, without slashes at its end. A scheme is required."""
    if not isinstance(raw, str):
        raise wrong_type(PROXY_BASE_URL_VAR, raw, "a string")
    url = raw.strip().rstrip("/")
    if not url:
        raise invalid(PROXY_BASE_URL_VAR, f"found {raw!r}", "expected http:// or https:// and a host")
    url = read_base_url(None, PROXY_BASE_URL_VAR, {PROXY_BASE_URL_VAR: url}, None)
    if "@" in urlsplit(url).netloc:
        raise invalid(PROXY_BASE_URL_VAR, "a user stands before the host", f"expected its key in {PROXY_API_KEY_VAR}")
    return url


def proxy_model_prefix(raw: str | None) -> str:
    """Unset or blank is LiteLLM's prefix, the word "none" in any case is no prefix, else as written, trimmed."""
    prefix = (raw or "").strip()
    if prefix.lower() == PROXY_MODEL_PREFIX_NONE:
        return ""
    return prefix or DEFAULT_PROXY_MODEL_PREFIX


def parse_proxy_model_map(raw: str) -> dict[str, str]:
    """`from=to` pairs, comma-separated; empty entries (a comma at the end) are passed over."""
    names: dict[str, str] = {}
    for entry in filter(None, map(str.strip, raw.split(","))):
        model_id, _, name = (part.strip() for part in entry.partition("="))
        if not (model_id and name):
            raise invalid(
                PROXY_MODEL_MAP_VAR, f"found the entry {entry!r}", "expected from=to, with neither side empty"
            )
        if model_id in names:
            raise invalid(PROXY_MODEL_MAP_VAR, f"{model_id!r} is mapped again by {entry!r}", "expected it once")
        names[model_id] = name
    return names


def proxy_model_id(config: ProxyConfig, model_id: str) -> str:
    """What the proxy is asked for. The map wins, so that one odd model can be named while the rest follow the rule."""
    return config.model_map.get(model_id) or config.model_prefix + model_id
