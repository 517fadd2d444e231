"""Anthropic's models on AWS Bedrock: POST {base_url}/model/{id}/invoke, or invoke-with-response-stream.

> {"anthropic_version": "bedrock-2023-05-31", "max_tokens": 64, "messages": [{"role": "user", "content": [
>  {"type": "text", "text": "User: Hi"}]}]}
< chunk {"type": "message_start", "message": {"model": "claude-sonnet-4-5", "usage": {"input_tokens": 9}}}
< chunk {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
< chunk {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}}
< chunk {"type": "content_block_stop", "index": 0}
< chunk {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}
= Hello / end_turn / 9 in, 3 out

Body and events are those of anthropic.py; here are the address, the signature, and the frames (wire/eventstream.py) in
which each event lies as base64. The tables at the end give the ids of models. Source: docs.aws.amazon.com/bedrock,
"InvokeModelWithResponseStream"; platform.claude.com/docs/en/build-with-claude/claude-on-amazon-bedrock.
"""

from __future__ import annotations

import os
import re
from binascii import a2b_base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote

from ..clock import Clock
from ..credentials.aws import CHAIN, PROFILE_LINK, Credentials, domain, endpoint, find_credentials, from_environment
from ..credentials.aws_auth import KeptCredentials, SigV4Auth
from ..credentials.aws_fetch import OverNetwork, read_text
from ..credentials.aws_profiles import region_of
from ..credentials.keys import Authorizer, HeaderAuth, Key, read_key
from ..errors import MembraneError, invalid
from ..formatters import cache_markers
from ..formatters.anthropic_xml import AnthropicXmlFormatter
from ..transport.interface import OpensRequests
from ..transport.on_demand import OnDemandTransport
from ..values.base import Json
from ..values.content import Block
from ..values.requests import ProviderRequest
from ..wire.eventstream import Frame, iter_frames
from ..wire.http import HeaderPairs, HeadersInput, header, header_pairs
from ..wire.json_text import parse, whole_characters
from ..wire.sse import SseEvent
from .anthropic import (
    OUTPUT_CONFIG,
    Decoder,
    messages_body,
    needed_betas,
    recorded_block,
    without_keys,
)
from .base import DEFAULT_MAX_TOKENS, HttpAdapter, ProviderFault, json_content, read_base_url, with_params
from .models import CLAUDE_MODELS, CLAUDE_NEWEST, ModelTable

BODY_VERSION: Final = "bedrock-2023-05-31"
DEFAULT_REGION: Final = "us-west-2"
EVENT_STREAM: Final = "application/vnd.amazon.eventstream"
RESERVED_HEADERS: Final = (
    *("authorization", "accept", "content-type"),
    *("x-amz-date", "x-amz-security-token", "x-amz-content-sha256"),
)
CA_VARIABLES: Final = ("AWS_CA_BUNDLE",)
REGION: Final = re.compile(r"[a-z0-9-]+")
DOT_SEGMENTS: Final = (".", "..")

# What raw requests show beside the body, for the address says it: the model, and whether the answer is streamed.
SHOWN_FIELDS: Final = ("modelId", "stream")
# This model takes no system blocks.
PLAIN_SYSTEM: Final = "claude-3-sonnet-20240229"


class BedrockAdapter(HttpAdapter):
    """Claude on AWS Bedrock, each request signed (SigV4) as it leaves, or sent with a Bedrock API key.

    access_key_id, secret_access_key, session_token: of AWS. api_key: a Bedrock API key, sent as a bearer token.
    profile: of the AWS configuration files. Without any of these: AWS_BEARER_TOKEN_BEDROCK, else the chain of
    credentials/aws.py. region: else AWS_REGION, AWS_DEFAULT_REGION, the profile's, us-west-2. base_url: else
    AWS_ENDPOINT_URL_BEDROCK_RUNTIME, AWS_ENDPOINT_URL, the region's; it may have a path. headers: an anthropic-beta
    among them goes into the body, where Bedrock wants it. AWS_CA_BUNDLE is read before the usual variables.
    """

    default_formatter = AnthropicXmlFormatter
    most_cache_markers = cache_markers.MOST_MARKERS

    def __init__(
        self,
        *,
        access_key_id: str | None = None,
        secret_access_key: str | None = None,
        session_token: str | None = None,
        api_key: str | None = None,
        profile: str | None = None,
        region: str | None = None,
        base_url: str | None = None,
        anthropic_version: str = BODY_VERSION,
        headers: HeadersInput | None = None,
        default_max_tokens: int = DEFAULT_MAX_TOKENS,
        model_traits: Mapping[str, Mapping[str, Any]] | None = None,
        progress_timeout_ms: int | None = None,
        transport: OpensRequests | None = None,
        clock: Clock | None = None,
    ) -> None:
        env = {**os.environ, **({"AWS_PROFILE": profile} if profile else {})}
        region = read_region(region, env)
        given = header_pairs(headers, "headers")
        own_transport = OnDemandTransport(env, ca_variables=CA_VARIABLES)
        key = bearer_key(api_key, env, outranked=bool(access_key_id or secret_access_key or profile))
        explicit = given_credentials(access_key_id, secret_access_key, session_token, env)
        super().__init__(
            name="bedrock",
            codec=BedrockCodec(
                read_base_url(base_url, None, {}, runtime_endpoint(env, region)),
                region,
                ModelTable(CLAUDE_MODELS, CLAUDE_NEWEST, model_traits),
                default_max_tokens,
                anthropic_version=anthropic_version,
                betas=(header(given, "anthropic-beta") or "").split(","),
            ),
            auth=authorizer(key, explicit, profile, env, region=region, transport=transport or own_transport),
            headers=[pair for pair in given if pair[0].lower() != "anthropic-beta"],
            reserved_headers=RESERVED_HEADERS,
            transport=transport,
            own_transport=own_transport,
            clock=clock,
            progress_timeout_ms=progress_timeout_ms,
            content=written,
            records=frame_records,
        )

    def supports_model(self, model: str) -> bool:
        return "claude" in model or model.startswith("anthropic.")


# Settings


def read_region(region: str | None, env: Mapping[str, str], *, source: str = "region") -> str:
    """Of the argument, the environment, the profile; it becomes a part of host names. source: what an error names."""
    found = region or region_of(env, read_text) or DEFAULT_REGION
    if not isinstance(found, str) or REGION.fullmatch(found) is None:
        raise invalid(source, f"found {found!r}", 'expected a region of AWS, "us-west-2" say')
    return found


def runtime_endpoint(env: Mapping[str, str], region: str) -> str:
    return endpoint(env, "BEDROCK_RUNTIME", f"https://bedrock-runtime.{region}.{domain(region)}")


def bearer_key(api_key: str | None, env: Mapping[str, str], *, outranked: bool) -> str | None:
    """The argument, else the variable. outranked: other credentials are given as arguments."""
    key = read_key(api_key, "api_key", None, {})
    if key is not None and outranked:
        raise invalid("api_key", "given beside AWS credentials", "expected either of them")
    return key if key is not None or outranked else read_key(None, "", "AWS_BEARER_TOKEN_BEDROCK", env)


def given_credentials(
    access_key_id: str | None, secret_access_key: str | None, session_token: str | None, env: Mapping[str, str]
) -> Credentials | None:
    """Those given as arguments. One half may be in the environment; a token there belongs to the key id there."""
    if not (access_key_id or secret_access_key):
        return None
    key = read_key(access_key_id, "access_key_id", "AWS_ACCESS_KEY_ID", env)
    secret = read_key(secret_access_key, "secret_access_key", "AWS_SECRET_ACCESS_KEY", env)
    token = read_key(session_token, "session_token", "AWS_SESSION_TOKEN", {} if access_key_id else env)
    if key is None or secret is None:
        missing = "access_key_id" if key is None else "secret_access_key"
        raise MembraneError("auth", f"{missing}: missing beside its other half")
    return Credentials(key, secret, token)


def authorizer(
    key: str | None,
    explicit: Credentials | None,
    profile: str | None,
    env: Mapping[str, str],
    *,
    region: str,
    transport: OpensRequests,
) -> Authorizer:
    """Signs with explicit credentials, where there are any; else sends the bearer key; else signs with the chain's."""
    if key is not None and explicit is None:
        return HeaderAuth([Key(key, "Authorization", "Bearer ")], missing=None)
    kept = kept_credentials(explicit, profile, {**env, "AWS_REGION": region}, transport)
    return SigV4Auth(kept, region=region, service="bedrock")


def kept_credentials(
    explicit: Credentials | None, profile: str | None, env: Mapping[str, str], transport: OpensRequests
) -> KeptCredentials:
    """Explicit ones never change; those of the environment are looked at now, others when the first call needs them."""
    if explicit is not None:
        return KeptCredentials(explicit, None)
    chain = (PROFILE_LINK,) if profile else CHAIN

    def find(clock: Clock) -> Credentials:
        fetch = OverNetwork(transport, clock, env)
        try:
            return find_credentials(env, read_text, fetch, chain)
        finally:
            fetch.close()

    try:
        held = None if profile else from_environment(env, read_text, None)
    except MembraneError:  # what is wrong there is said when it is needed
        held = None
    return KeptCredentials(held, find)


# Requests


class BedrockCodec:
    """The wire format: requests here; answers in anthropic.Decoder, from the frames of frame_records."""

    def __init__(
        self,
        base_url: str,
        region: str,
        models: ModelTable,
        default_max_tokens: int,
        *,
        anthropic_version: str,
        betas: Sequence[str],
    ) -> None:
        self._base_url: Final = base_url
        self._region: Final = region
        self._models: Final = models
        self._default_max_tokens: Final = default_max_tokens
        self._anthropic_version: Final = anthropic_version
        self._betas: Final = [beta.strip() for beta in betas if beta.strip()]

    def address(self, request: ProviderRequest, *, stream: bool) -> str:
        return model_address(self._base_url, model_id(request.model, self._region), stream=stream)

    def headers(self, body: Json, *, stream: bool) -> HeaderPairs:
        return [("Accept", EVENT_STREAM)] if stream else ()

    def body(self, request: ProviderRequest, *, stream: bool) -> Json:
        """Beside what is sent: SHOWN_FIELDS."""
        traits = self._models.traits(request.model)
        id = model_id(request.model, self._region)
        fields = without_lifetimes(messages_body(request, traits, self._default_max_tokens))
        if PLAIN_SYSTEM in id and isinstance(fields.get("system"), list):
            fields["system"] = "\n\n".join(block["text"] for block in fields["system"])
        body = with_params(
            {"anthropic_version": self._anthropic_version, **without_keys(fields, "model")},
            request.provider_params,
            nested=OUTPUT_CONFIG,
        )
        given = [*self._betas, *listed(body.get("anthropic_beta"))]
        betas = list(dict.fromkeys([*given, *needed_betas(body, traits)]))
        body = {**body, "anthropic_beta": betas} if betas else body
        return {**body, "modelId": id, **({"stream": True} if stream else {})}

    def decoder(self) -> Decoder:
        return Decoder()

    def tidied(self, content: list[Block]) -> list[Block]:
        return content

    def record(self, envelope: Json, content: Sequence[Block]) -> Json:
        return {**(envelope or {}), "content": [recorded_block(block) for block in content]}


def model_address(base_url: str, id: str, *, stream: bool) -> str:
    """The id is one segment of the path: its ":" and "/" are escaped."""
    operation = "invoke-with-response-stream" if stream else "invoke"
    return f"{base_url}/model/{quote(whole_characters(id), safe='')}/{operation}"


def written(body: Json) -> tuple[str, bytes]:
    return json_content(without_keys(body, *SHOWN_FIELDS))


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def without_lifetimes(fields: dict[str, Any]) -> dict[str, Any]:
    """Bedrock's cache has one lifetime: markers of messages, system and tools go without theirs."""
    fields = cache_markers.copied(fields)
    for block in cache_markers.marked(fields):
        if isinstance(block["cache_control"], Mapping):
            block["cache_control"] = without_keys(block["cache_control"], "ttl")
    return fields


def model_id(model: str, region: str) -> str:
    """Bedrock's id of a model. One of theirs already, an ARN too, stays as it is; so does what is no Claude's name."""
    model = model[len("bedrock:") :] if model.startswith("bedrock:") else model
    if model in DOT_SEGMENTS:
        raise invalid("model", f"found {model!r}", "expected a model id; as a path, this one leads elsewhere")
    if not model.startswith("claude"):
        return model
    if model in ON_DEMAND:
        return f"anthropic.{ON_DEMAND[model]}"
    name = ALIASES.get(model, model)
    profile = next((profile for start, profile in PROFILES.items() if region.startswith(start)), DEFAULT_PROFILE)
    return f"{profile}anthropic.{name}{'-v1:0' if DATED.search(name) else ''}"


# Answers


def frame_records(chunks: Iterable[bytes]) -> Iterator[SseEvent]:
    """The events inside the frames. A frame that says the answer failed is a ProviderFault; other kinds say nothing."""
    for frame in iter_frames(chunks):
        headers = frame.headers
        if ":exception-type" in headers:
            name = str(headers[":exception-type"])
            raise ProviderFault(exception_body(frame, name), name)
        if headers.get(":message-type") == "error":
            code, message = headers.get(":error-code"), headers.get(":error-message")
            raise ProviderFault({"code": code, "message": message, "status": 500}, "error")
        if headers.get(":event-type") == "chunk" and frame.payload:
            yield SseEvent("chunk", inner_event(frame.payload), "", None)


def inner_event(payload: bytes) -> str:
    """The event in a chunk, {"bytes": base64 of it, "p": padding}; where that fails the payload, which is no event."""
    text = payload.decode("utf-8", "replace")
    try:
        # Not strictly, which is faster: what is no base64 is left out, and the rest is then no JSON.
        return a2b_base64(parse(text)["bytes"]).decode("utf-8", "replace") or text
    except (ValueError, TypeError, KeyError, RecursionError):
        return text


def exception_body(frame: Frame, name: str) -> Json:
    text = frame.payload.decode("utf-8", "replace")
    try:
        parsed = parse(text)
    except (ValueError, RecursionError):
        parsed = None
    return parsed if isinstance(parsed, dict) and parsed else {"message": text.strip() or name}


# Ids: docs.aws.amazon.com/bedrock/latest/userguide, "Supported foundation models" and "inference profiles".

# Where a region begins so -> the profile that serves it across regions.
PROFILES: Final[Mapping[str, str]] = {
    "us-gov-": "us-gov.",
    "eu-": "eu.",
    "ap-": "apac.",
    "cn-": "",  # a partition of its own, without profiles
}
DEFAULT_PROFILE: Final = "us."

# Models that are served without a profile.
ON_DEMAND: Final[Mapping[str, str]] = {
    "claude-3-5-sonnet-latest": "claude-3-5-sonnet-20241022-v2:0",
    "claude-3-5-sonnet-20241022": "claude-3-5-sonnet-20241022-v2:0",
    "claude-3-5-sonnet-20240620": "claude-3-5-sonnet-20240620-v1:0",
    "claude-3-5-haiku-latest": "claude-3-5-haiku-20241022-v1:0",
    "claude-3-5-haiku-20241022": "claude-3-5-haiku-20241022-v1:0",
    "claude-3-opus-20240229": "claude-3-opus-20240229-v1:0",
    "claude-3-sonnet-20240229": "claude-3-sonnet-20240229-v1:0",
    "claude-3-haiku-20240307": "claude-3-haiku-20240307-v1:0",
}

# Bedrock knows models up to 4.5 by their dates, and 4.6 partly by a version; newer ones by the bare name.
ALIASES: Final[Mapping[str, str]] = {
    "claude-3-7-sonnet-latest": "claude-3-7-sonnet-20250219",
    "claude-sonnet-4-0": "claude-sonnet-4-20250514",
    "claude-opus-4-0": "claude-opus-4-20250514",
    "claude-opus-4-1": "claude-opus-4-1-20250805",
    "claude-sonnet-4-5": "claude-sonnet-4-5-20250929",
    "claude-haiku-4-5": "claude-haiku-4-5-20251001",
    "claude-opus-4-5": "claude-opus-4-5-20251101",
    "claude-opus-4-6": "claude-opus-4-6-v1",
}
DATED: Final = re.compile(r"-20[0-9]{6}$")
