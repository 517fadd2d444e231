"""bedrock: where a request goes, what is in it, who signs it, and what the frames of an answer are read as."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any

import pytest

from membrane_lite import BedrockAdapter, Clock, Membrane, MembraneError, ProviderRequest, ToolResult
from membrane_lite.loopback import Failure, LoopbackProvider, Raw, Received, Reply, Thinking, ToolCall, bedrock, faults
from membrane_lite.providers.base import ProviderFault
from membrane_lite.providers.bedrock import (
    EVENT_STREAM,
    BedrockCodec,
    bearer_key,
    frame_records,
    given_credentials,
    model_id,
    read_region,
    runtime_endpoint,
    written,
)
from membrane_lite.providers.models import CLAUDE_MODELS, CLAUDE_NEWEST, ModelTable
from membrane_lite.wire.http import header

Json = Any
SECRET = bedrock.KEYS[bedrock.ACCESS_KEY_ID].secret_access_key
TEMPORARY = bedrock.KEYS[bedrock.TEMPORARY_KEY_ID]
KEYS = {"access_key_id": bedrock.ACCESS_KEY_ID, "secret_access_key": SECRET}
TEMPORARY_KEYS = {
    "access_key_id": bedrock.TEMPORARY_KEY_ID,
    "secret_access_key": TEMPORARY.secret_access_key,
    "session_token": TEMPORARY.session_token,
}
MODEL = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
HI: Json = {"messages": [{"participant": "User", "content": "Hi"}], "config": {"model": MODEL, "max_tokens": 64}}
FRAMES = {"Content-Type": EVENT_STREAM}


@pytest.fixture(autouse=True)
def no_aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """Nothing of the machine's own: no variables, no files, no instance."""
    import os

    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


class Stopped(Clock):
    """A date that stands still, until it is set; waits take no time."""

    def __init__(self, date: datetime) -> None:
        self._date = date

    def time(self) -> float:
        return self._date.timestamp()

    def sleep(self, seconds: float, signal: Any = None) -> bool:
        return False


NOON = datetime(2026, 1, 1, 12, tzinfo=timezone.utc)


@contextmanager
def served(script: Any, **options: Any) -> Iterator[tuple[Membrane, LoopbackProvider]]:
    clock = options.pop("clock", None) or Stopped(NOON)
    with LoopbackProvider(script) as provider, provider.transport() as transport:
        options = {**(KEYS if "api_key" not in options else {}), "region": "us-east-1", **options}
        base_url = provider.url + options.pop("path", "")
        adapter = BedrockAdapter(base_url=base_url, transport=transport, clock=clock, **options)
        yield Membrane(adapter, clock=clock), provider


def beside(provider: LoopbackProvider, **options: Any) -> BedrockAdapter:
    """Another adapter like the one that is served, to look at what it would send."""
    return BedrockAdapter(region="us-east-1", base_url=provider.url, clock=Stopped(NOON), **options)


def refused(call: Any) -> MembraneError:
    with pytest.raises(MembraneError) as raised:
        call()
    return raised.value


# Ids of models

IDS: dict[str, tuple[str, str, str]] = {
    "a full id": ("anthropic.claude-haiku-5-5", "us-east-1", "anthropic.claude-haiku-5-5"),
    "with its gateway's name": ("bedrock:anthropic.claude-x-v1:0", "us-east-1", "anthropic.claude-x-v1:0"),
    "of a profile": ("eu.anthropic.claude-x-v1:0", "us-east-1", "eu.anthropic.claude-x-v1:0"),
    "of a profile with a hyphen": ("us-gov.anthropic.claude-x-v1:0", "us-east-1", "us-gov.anthropic.claude-x-v1:0"),
    "of the profile of all regions": ("global.anthropic.claude-opus-5", "eu-west-1", "global.anthropic.claude-opus-5"),
    "an ARN": (
        "arn:aws:bedrock:us-west-2:1:inference-profile/x",
        "us-east-1",
        "arn:aws:bedrock:us-west-2:1:inference-profile/x",
    ),
    "an application's own": ("a1b2c3d4e5f6", "us-east-1", "a1b2c3d4e5f6"),
    "3.5 has no profile": ("claude-3-5-sonnet-latest", "eu-west-1", "anthropic.claude-3-5-sonnet-20241022-v2:0"),
    "3.5 haiku": ("claude-3-5-haiku-20241022", "us-east-1", "anthropic.claude-3-5-haiku-20241022-v1:0"),
    "3 opus": ("claude-3-opus-20240229", "us-east-1", "anthropic.claude-3-opus-20240229-v1:0"),
    "3.7 has": ("claude-3-7-sonnet-20250219", "us-east-1", "us.anthropic.claude-3-7-sonnet-20250219-v1:0"),
    "4 in America": ("claude-sonnet-4-20250514", "us-west-2", "us.anthropic.claude-sonnet-4-20250514-v1:0"),
    "4 in Europe": ("claude-opus-4-20250514", "eu-central-1", "eu.anthropic.claude-opus-4-20250514-v1:0"),
    "4.5 in Asia": ("claude-haiku-4-5-20251001", "ap-northeast-1", "apac.anthropic.claude-haiku-4-5-20251001-v1:0"),
    "in GovCloud": ("claude-sonnet-4-5-20250929", "us-gov-west-1", "us-gov.anthropic.claude-sonnet-4-5-20250929-v1:0"),
    "in China": ("claude-sonnet-4-5-20250929", "cn-north-1", "anthropic.claude-sonnet-4-5-20250929-v1:0"),
    "elsewhere": ("claude-sonnet-4-20250514", "sa-east-1", "us.anthropic.claude-sonnet-4-20250514-v1:0"),
    "without its date": ("claude-sonnet-4-5", "us-east-1", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
    "4.6": ("claude-opus-4-6", "us-east-1", "us.anthropic.claude-opus-4-6-v1"),
    "newer ones have no version": ("bedrock:claude-opus-4-8", "us-east-1", "us.anthropic.claude-opus-4-8"),
    "one that is not known yet": ("claude-nova-7-20280101", "us-east-1", "us.anthropic.claude-nova-7-20280101-v1:0"),
}


@pytest.mark.parametrize("model, region, id", IDS.values(), ids=IDS.keys())
def test_the_id_of_a_model(model: str, region: str, id: str) -> None:
    assert model_id(model, region) == id


@pytest.mark.parametrize("model", [".", "..", "bedrock:.."])
def test_an_id_that_would_lead_elsewhere(model: str) -> None:
    error = refused(lambda: BedrockAdapter(**KEYS).render({**HI, "config": {"model": model, "max_tokens": 1}}))
    found = model.rpartition(":")[2]
    assert (error.type, error.message) == (
        "invalid_request",
        f"model: found {found!r}; expected a model id; as a path, this one leads elsewhere",
    )


def test_which_models_are_supported() -> None:
    named = ("claude-sonnet-4-5", MODEL, "anthropic.x", "gpt-5", "meta.llama3")
    assert [BedrockAdapter(**KEYS).supports_model(model) for model in named] == [True, True, True, False, False]


# Addresses

ADDRESSES: dict[str, tuple[dict[str, Any], str, bool, str]] = {
    "of a region": ({"region": "eu-west-1"}, "anthropic.c-v1:0", False, "https://bedrock-runtime.eu-west-1.amazonaws.com/model/anthropic.c-v1%3A0/invoke"),
    "for a stream": ({}, "anthropic.c", True, "https://bedrock-runtime.us-west-2.amazonaws.com/model/anthropic.c/invoke-with-response-stream"),
    "in China": ({"region": "cn-north-1"}, "x", False, "https://bedrock-runtime.cn-north-1.amazonaws.com.cn/model/x/invoke"),
    "in GovCloud": ({"region": "us-gov-east-1"}, "x", False, "https://bedrock-runtime.us-gov-east-1.amazonaws.com/model/x/invoke"),
    "a gateway": ({"base_url": "http://gate:8080/aws/v1/"}, "x", False, "http://gate:8080/aws/v1/model/x/invoke"),
    "an ARN": ({"base_url": "http://h"}, "arn:aws:b:r:1:p/q", False, "http://h/model/arn%3Aaws%3Ab%3Ar%3A1%3Ap%2Fq/invoke"),
    "beyond ASCII": ({"base_url": "http://h"}, "modèle", False, "http://h/model/mod%C3%A8le/invoke"),
}  # fmt: skip


@pytest.mark.parametrize("options, model, stream, url", ADDRESSES.values(), ids=ADDRESSES.keys())
def test_the_address(options: dict[str, Any], model: str, stream: bool, url: str) -> None:
    request = {**HI, "config": {"model": model, "max_tokens": 1}}
    assert BedrockAdapter(**KEYS, **options).render(request, stream=stream).url == url


ENDPOINTS: dict[str, tuple[dict[str, str], str]] = {
    "of the region": ({}, "https://bedrock-runtime.us-east-1.amazonaws.com"),
    "of the service's variable": ({"AWS_ENDPOINT_URL_BEDROCK_RUNTIME": "http://h/p/"}, "http://h/p"),
    "of the variable for all": ({"AWS_ENDPOINT_URL": "http://h"}, "http://h"),
}


@pytest.mark.parametrize("env, url", ENDPOINTS.values(), ids=ENDPOINTS.keys())
def test_where_an_address_comes_from(env: dict[str, str], url: str) -> None:
    assert runtime_endpoint(env, "us-east-1") == url


def test_where_the_region_comes_from(tmp_path: Any) -> None:
    (tmp_path / "config").write_text("[default]\nregion = eu-west-3\n")
    env = {"AWS_CONFIG_FILE": str(tmp_path / "config")}
    seen = [
        read_region("a-1", {"AWS_REGION": "b-1"}),
        read_region(None, {"AWS_REGION": "b-1", "AWS_DEFAULT_REGION": "c-1"}),
        read_region(None, {"AWS_REGION": " ", "AWS_DEFAULT_REGION": "c-1", **env}),
        read_region(None, env),
        read_region(None, {"AWS_CONFIG_FILE": str(tmp_path / "none")}),
    ]
    assert seen == ["a-1", "b-1", "c-1", "eu-west-3", "us-west-2"]


def test_a_region_is_no_place_for_another_host() -> None:
    error = refused(lambda: BedrockAdapter(**KEYS, region="x.evil.example/"))
    assert (error.type, error.message) == (
        "invalid_request",
        "region: found 'x.evil.example/'; expected a region of AWS, \"us-west-2\" say",
    )


# Bodies


def body(messages: Json = (), *, betas: Any = (), stream: bool = False, **fields: Any) -> Json:
    table = ModelTable(CLAUDE_MODELS, CLAUDE_NEWEST)
    codec = BedrockCodec("http://h", "us-east-1", table, 4096, anthropic_version="v", betas=betas)
    said = [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}]
    request = ProviderRequest(**{"model": "claude-sonnet-4-5", "messages": list(messages) or said, **fields})
    return codec.body(request, stream=stream)


USER: Json = {"role": "user", "content": [{"type": "text", "text": "Hi"}]}
BASE: Json = {"anthropic_version": "v", "max_tokens": 4096, "messages": [USER]}
ID = {"modelId": MODEL}
ONE_HOUR = {"type": "ephemeral", "ttl": "1h"}
MARKED = {"type": "ephemeral"}
THINKING = {"type": "enabled", "budget_tokens": 1024}
BETA = "interleaved-thinking-2025-05-14"
PDF = {"type": "base64", "media_type": "application/pdf", "data": "JVBE"}
BODIES: dict[str, tuple[dict[str, Any], Json]] = {
    "plain": ({}, {**BASE, **ID}),
    "a stream is not said in the body that is sent": ({"stream": True}, {**BASE, **ID, "stream": True}),
    "every field, in its order": (
        {"max_tokens": 9, "system": "s", "temperature": 0.5, "top_p": 0.9, "top_k": 3, "stop_sequences": ["x"]},
        {
            **BASE,
            "max_tokens": 9,
            "system": "s",
            "temperature": 0.5,
            "top_k": 3,
            "stop_sequences": ["x"],
            **ID,
        },
    ),
    "thinking that needs the beta": (
        {"thinking": THINKING},
        {**BASE, "thinking": THINKING, "anthropic_beta": [BETA], **ID},
    ),
    "thinking that does not": (
        {"thinking": THINKING, "model": "anthropic.claude-sonnet-4-6"},
        {**BASE, "thinking": THINKING, "modelId": "anthropic.claude-sonnet-4-6"},
    ),
    "the caller's betas stand first, none twice": (
        {"thinking": THINKING, "provider_params": {"anthropic_beta": ["b", BETA]}, "betas": ["a", " b"]},
        {**BASE, "thinking": THINKING, "anthropic_beta": ["a", "b", BETA], **ID},
    ),
    "a beta that what becomes of bound thinking needs": (
        {"thinking": {**THINKING, "block_binding": {"prefix_mismatch_behavior": "error"}}},
        {
            **BASE,
            "thinking": {**THINKING, "block_binding": {"prefix_mismatch_behavior": "error"}},
            "anthropic_beta": [BETA, "thinking-binding-controls-2026-08-01"],
            **ID,
        },
    ),
    "the caller's own fields win": (
        {"provider_params": {"max_tokens": 1, "metadata": {"user_id": "u"}}},
        {**BASE, "max_tokens": 1, "metadata": {"user_id": "u"}, **ID},
    ),
    "cache markers lose their lifetime, and stay": (
        {
            "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": ONE_HOUR}]}],
            "system": [{"type": "text", "text": "s", "cache_control": ONE_HOUR}],
            "tools": [{"name": "t", "input_schema": {"type": "object"}, "cache_control": ONE_HOUR}],
        },
        {
            **BASE,
            "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi", "cache_control": MARKED}]}],
            "system": [{"type": "text", "text": "s", "cache_control": MARKED}],
            "tools": [{"name": "t", "input_schema": {"type": "object"}, "cache_control": MARKED}],
            **ID,
        },
    ),
    "a model that takes no system blocks": (
        {
            "model": "claude-3-sonnet-20240229",
            "system": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        },
        {**BASE, "system": "a\n\nb", "modelId": "anthropic.claude-3-sonnet-20240229-v1:0"},
    ),
    "a document": (
        {"messages": [{"role": "user", "content": [{"type": "document", "source": PDF, "title": "a.pdf"}]}]},
        {
            **BASE,
            "messages": [{"role": "user", "content": [{"type": "document", "source": PDF, "title": "a.pdf"}]}],
            **ID,
        },
    ),
    "an image's address is for others": (
        {"messages": [{"role": "user", "content": [{"type": "image", "source": {"x": 1}, "source_url": "u"}]}]},
        {**BASE, "messages": [{"role": "user", "content": [{"type": "image", "source": {"x": 1}}]}], **ID},
    ),
}


@pytest.mark.parametrize("given, wanted", BODIES.values(), ids=BODIES.keys())
def test_a_body(given: dict[str, Any], wanted: Json) -> None:
    assert json.dumps(body(**given)) == json.dumps(wanted)


def test_what_is_shown_beside_the_body_is_not_sent() -> None:
    assert written({"a": 1, "modelId": "m", "stream": True}) == ("application/json", b'{"a":1}')


def test_a_rendered_request_is_the_one_that_is_sent() -> None:
    headers = {"X-Mine": "1", "anthropic-beta": "b-1"}
    with served([Reply("Hello")], headers=headers) as (membrane, provider):
        rendered = beside(provider, **KEYS, headers=headers).render(HI, stream=True)
        response: Any = membrane.stream(HI)
        (received,) = provider.requests
    assert rendered.body == received.body
    assert rendered.body == (
        b'{"anthropic_version":"bedrock-2023-05-31","max_tokens":64,"messages":[{"role":"user","content":[{"type":"text",'
        b'"text":"User: Hi"}]}],"anthropic_beta":["b-1"]}'
    )
    for name in ("Accept", "Content-Type", "X-Amz-Date", "Authorization", "X-Mine"):
        assert received.header(name) == header(rendered.headers, name) is not None
    assert header(rendered.headers, "anthropic-beta") is None
    assert response.raw.request["modelId"] == MODEL
    assert received.target == f"/model/{MODEL.replace(':', '%3A')}/invoke-with-response-stream"


# Credentials

BEARER: dict[str, tuple[str | None, dict[str, str], bool, str | None]] = {
    "the argument": ("key", {"AWS_BEARER_TOKEN_BEDROCK": "other"}, False, "key"),
    "the variable": (None, {"AWS_BEARER_TOKEN_BEDROCK": " key\n"}, False, "key"),
    "a blank variable": (None, {"AWS_BEARER_TOKEN_BEDROCK": " "}, False, None),
    "credentials given as arguments outrank it": (None, {"AWS_BEARER_TOKEN_BEDROCK": "key"}, True, None),
}


@pytest.mark.parametrize("given, env, outranked, key", BEARER.values(), ids=BEARER.keys())
def test_a_bearer_token(given: str | None, env: dict[str, str], outranked: bool, key: str | None) -> None:
    assert bearer_key(given, env, outranked=outranked) == key


def test_two_kinds_of_credentials_at_once() -> None:
    error = refused(lambda: BedrockAdapter(api_key="key", **KEYS))
    assert (error.type, error.message) == (
        "invalid_request",
        "api_key: given beside AWS credentials; expected either of them",
    )


ENV = {"AWS_ACCESS_KEY_ID": "E", "AWS_SECRET_ACCESS_KEY": "e-secret", "AWS_SESSION_TOKEN": "e-token"}
GIVEN: dict[str, tuple[tuple[Any, Any, Any], Any]] = {
    "none": ((None, None, None), None),
    "blank ones": (("", "", ""), None),
    "a pair": (("A", "a-secret", None), ("A", "a-secret", None, None)),
    "with a token": (("A", "a-secret", "t"), ("A", "a-secret", "t", None)),
    "its secret in the environment": (("A", None, None), ("A", "e-secret", None, None)),
    "its id, and so its token, in the environment": ((None, "a-secret", None), ("E", "a-secret", "e-token", None)),
}


@pytest.mark.parametrize("given, found", GIVEN.values(), ids=GIVEN.keys())
def test_credentials_given_as_arguments(given: tuple[Any, Any, Any], found: Any) -> None:
    assert given_credentials(*given, ENV) == found


def test_half_a_pair() -> None:
    error = refused(lambda: BedrockAdapter(access_key_id="A"))
    assert (error.type, error.message) == ("auth", "secret_access_key: missing beside its other half")


def test_credentials_of_the_environment_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", bedrock.ACCESS_KEY_ID)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    with served([Reply("Hello")], access_key_id=None, secret_access_key=None) as (membrane, provider):
        rendered = beside(provider).render(HI)
        assert membrane.complete(HI).text == "Hello"
        assert provider.requests[0].header("authorization") == header(rendered.headers, "authorization")


def test_a_profile_given_as_an_argument(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "outranked")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "OUTRANKED")
    keys = f"aws_access_key_id = {bedrock.ACCESS_KEY_ID}\naws_secret_access_key = {SECRET}\n"
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "config").write_text(f"[profile work]\nregion = eu-west-1\n{keys}")
    none = {"access_key_id": None, "secret_access_key": None, "region": None}
    with served([Reply("Hello")], profile="work", **none) as (membrane, provider):
        assert membrane.complete(HI).text == "Hello"
        assert "/eu-west-1/bedrock/" in str(provider.requests[0].header("authorization"))


def test_without_credentials_nothing_is_sent() -> None:
    with served([Reply("Hello")], access_key_id=None, secret_access_key=None) as (membrane, provider):
        error = refused(lambda: membrane.complete(HI))
        assert error.type == "auth"
        assert error.message.startswith("no AWS credentials: pass access_key_id= and secret_access_key=")
        assert provider.request_count == 0
        authorization = header(beside(provider).render(HI).headers, "Authorization")
        assert "Credential=YOUR_ACCESS_KEY_ID/20260101/us-east-1/bedrock/aws4_request" in str(authorization)


def test_its_own_certificates_for_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CA_BUNDLE", "/no/such/bundle.pem")
    monkeypatch.setenv("SSL_CERT_FILE", "/no/such/other.pem")
    with BedrockAdapter(**KEYS, base_url="https://127.0.0.1:1") as adapter:
        error = refused(lambda: Membrane(adapter).complete(HI))
    assert error.type == "invalid_request"
    assert "AWS_CA_BUNDLE" in error.message


@pytest.mark.parametrize("name", ["Authorization", "X-Amz-Date", "x-amz-security-token", "Accept", "Host"])
def test_headers_that_are_the_adapters_own(name: str) -> None:
    assert refused(lambda: BedrockAdapter(**KEYS, headers={name: "x"})).message.startswith(
        f"headers: {name!r} is set by"
    )


def test_no_secret_is_shown() -> None:
    adapter = BedrockAdapter(**TEMPORARY_KEYS)
    told = f"{adapter!r} {vars(adapter)} {adapter.render(HI)!r}"
    assert not any(secret in told for secret in TEMPORARY if secret)


def test_a_secret_that_the_provider_echoes() -> None:
    with served([Failure(400, f"bad {TEMPORARY.session_token}")], **TEMPORARY_KEYS) as (membrane, _):
        error = refused(lambda: membrane.complete(HI))
    assert "bad [redacted]" in error.message
    assert str(TEMPORARY.session_token) not in repr(error.to_dict())


# Signatures, which the loopback provider verifies by itself

SIGNED: dict[str, dict[str, Any]] = {
    "lasting credentials": {},
    "temporary ones": TEMPORARY_KEYS,
    "behind a gateway's path": {"path": "/aws/v1"},
    "behind a path that is escaped": {"path": "/a%20b/c%2Fd/~x:1"},
    "behind a path that is not normal": {"path": "/x/./y/../z"},
    "in another region": {"region": "cn-north-1"},
    "with headers that must be signed too": {"headers": {"X-Amzn-Bedrock-Trace": "ENABLED", "X-Amz-Own": " a  b "}},
}
MODELS = (
    "anthropic.claude-v2:1:200k",
    "arn:aws:bedrock:r:1:custom-model/a.b:0:4k/c",
    "a//b",
    "pre%3Aenc",
    "mod è",
    "a+b*",
)


@pytest.mark.parametrize("options", SIGNED.values(), ids=SIGNED.keys())
def test_a_signature_that_another_implementation_accepts(options: dict[str, Any]) -> None:
    with served(lambda received: Reply("Grüße"), **options) as (membrane, _):
        for model in MODELS:
            request = {"messages": HI["messages"], "config": {"model": model, "max_tokens": 9}, "system": "„é“ 👋"}
            assert [membrane.complete(request).text, membrane.stream(request).text] == ["Grüße"] * 2  # type: ignore[union-attr]


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a wrong secret": ({"secret_access_key": "wrong-secret"}, "InvalidSignatureException"),
    "an unknown key id": ({"access_key_id": "AKIAUNKNOWN"}, "UnrecognizedClientException"),
    "no session token": ({**TEMPORARY_KEYS, "session_token": None}, "UnrecognizedClientException"),
}


@pytest.mark.parametrize("options, code", WRONG.values(), ids=WRONG.keys())
def test_a_signature_that_is_refused(options: dict[str, Any], code: str) -> None:
    with served([Reply("Hello")], **options) as (membrane, provider):
        error = refused(lambda: membrane.complete(HI))
        assert (error.type, error.http_status, error.provider_error_code) == ("auth", 403, code)
        assert provider.request_count == 1


def received(**changed: Any) -> Received:
    """What an adapter sends, and then somebody changes."""
    sent = BedrockAdapter(**KEYS, base_url="http://127.0.0.1:1").render(HI, clock=Stopped(NOON))
    headers = {**dict(sent.headers), "Host": "127.0.0.1:1", **changed.pop("headers", {})}
    made = {
        "method": "POST",
        "target": sent.url.partition(":1/")[2].join(["/", ""]),
        "body": sent.body,
        **changed,
    }
    pairs = tuple((name, value) for name, value in headers.items() if value is not None)
    target = made.pop("target")
    return Received(made.pop("method"), target, headers=pairs, raw=b"", number=1, connection=1, format=None, **made)


TAMPERED: dict[str, tuple[dict[str, Any], str | None]] = {
    "nothing": ({}, None),
    "the body": ({"body": b"{}"}, "InvalidSignatureException"),
    "the method": ({"method": "PUT"}, "InvalidSignatureException"),
    "the path": ({"target": "/model/other/invoke"}, "InvalidSignatureException"),
    "the host": ({"headers": {"Host": "evil.example"}}, "InvalidSignatureException"),
    "a signed header": ({"headers": {"Accept": "text/html"}}, "InvalidSignatureException"),
    "a header that is not signed": ({"headers": {"User-Agent": "a proxy"}}, None),
    "an x-amz header that should be": ({"headers": {"x-amz-more": "1"}}, "InvalidSignatureException"),
    "the date": ({"headers": {"X-Amz-Date": "20260101T120001Z"}}, "InvalidSignatureException"),
    "the day": ({"headers": {"X-Amz-Date": "20260102T120000Z"}}, "IncompleteSignatureException"),
    "no signature": ({"headers": {"Authorization": None}}, "MissingAuthenticationTokenException"),
    "another scheme": ({"headers": {"Authorization": "Basic x"}}, "IncompleteSignatureException"),
    "a bearer token": ({"headers": {"Authorization": "Bearer x"}}, None),
}


@pytest.mark.parametrize("changed, code", TAMPERED.values(), ids=TAMPERED.keys())
def test_what_the_loopback_provider_refuses(changed: dict[str, Any], code: str | None) -> None:
    refusal = bedrock.check_signature(received(**changed))
    told = None if refusal is None else refusal.plan(bedrock.BEDROCK, None)  # type: ignore[arg-type]
    assert (told and told.status, told and dict(told.headers)["x-amzn-ErrorType"].partition(":")[0]) == (
        code and 403,
        code,
    )


CHECKED: dict[str, tuple[Json, str]] = {
    "no version": ({"max_tokens": 1, "messages": [USER]}, "anthropic_version: Field required"),
    "a model in the body": ({**BASE, "model": "m"}, "model: Extra inputs are not permitted"),
    "a word about streaming": ({**BASE, "stream": True}, "stream: Extra inputs are not permitted"),
    "an empty text": (
        {**BASE, "messages": [{"role": "user", "content": ""}]},
        "messages: text content blocks must be non-empty",
    ),
}


@pytest.mark.parametrize("given, words", CHECKED.values(), ids=CHECKED.keys())
def test_a_body_that_the_loopback_provider_refuses(given: Json, words: str) -> None:
    refusal = bedrock.check(received(body=json.dumps(given).encode(), headers={"Authorization": "Bearer x"}))
    assert refusal is not None
    assert json.loads(b"".join(refusal.plan(bedrock.BEDROCK, None).pieces)) == {"message": words}  # type: ignore[arg-type]


# Clocks

LATE = datetime(2026, 1, 1, 12, 20, tzinfo=timezone.utc)
EARLY = datetime(2026, 1, 1, 11, 40, tzinfo=timezone.utc)


def by_the_clock(now: datetime) -> Any:
    return lambda received: bedrock.skew_refusal(received, now) or Reply("Hello")


def dates(provider: LoopbackProvider) -> list[str | None]:
    return [received.header("x-amz-date") for received in provider.requests]


SKEWS = {"a slow clock": (LATE, "20260101T122000Z"), "a fast one": (EARLY, "20260101T114000Z")}


@pytest.mark.parametrize("face", ["complete", "stream"])
@pytest.mark.parametrize("server, date", SKEWS.values(), ids=SKEWS.keys())
def test_a_wrong_clock_costs_one_resend_once(server: datetime, date: str, face: str) -> None:
    asked: list[Any] = []
    with served(by_the_clock(server)) as (membrane, provider):
        for _ in range(2):
            response: Any = getattr(membrane, face)(HI, on_request=asked.append)
            assert (response.text, response.details.timing.attempts) == ("Hello", 1)
        assert dates(provider) == ["20260101T120000Z", date, date]
        assert len(asked) == 2  # the resend is a part of its attempt


def test_with_retries_off_there_is_no_resend_and_the_next_call_knows() -> None:
    with served(by_the_clock(LATE)) as (membrane, provider):
        error = refused(lambda: membrane.complete(HI, retry=False))
        assert (error.type, error.http_status, error.provider_error_code) == ("auth", 403, "InvalidSignatureException")
        assert "Signature expired: 20260101T120000Z is now earlier than 20260101T121500Z" in error.message
        assert membrane.complete(HI, retry=False).text == "Hello"
        assert dates(provider) == ["20260101T120000Z", "20260101T122000Z"]


def test_a_date_that_is_refused_again_is_final() -> None:
    refusals = [bedrock.error(403, "RequestTimeTooSkewed", "x", headers={"Date": "Thu, 01 Jan 2026 12:20:00 GMT"})] * 3
    with served(refusals) as (membrane, provider):
        assert refused(lambda: membrane.complete(HI)).type == "auth"
        assert provider.request_count == 2


def test_each_attempt_has_a_date_of_its_own() -> None:
    class Ticking(Stopped):
        ticks = 0

        def sleep(self, seconds: float, signal: Any = None) -> bool:
            self.ticks += round(seconds)
            return False

        def time(self) -> float:
            return super().time() + self.ticks

    with served([Failure(503), Failure(503), Reply("Hello")], clock=Ticking(NOON)) as (membrane, provider):
        assert membrane.complete(HI).text == "Hello"
        assert dates(provider) == ["20260101T120000Z", "20260101T120001Z", "20260101T120003Z"]


# Frames


def records(*frames: bytes) -> list[tuple[str, str]]:
    return [(event.event, event.data) for event in frame_records(frames)]


def payload(value: Any, **headers: str) -> bytes:
    kinds = {
        ":event-type": "chunk",
        ":message-type": "event",
        **{f":{k.replace('_', '-')}": v for k, v in headers.items()},
    }
    return bedrock.frame(kinds, value if isinstance(value, bytes) else json.dumps(value).encode())


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


RECORDS: dict[str, tuple[bytes, list[tuple[str, str]]]] = {
    "a chunk": (bedrock.chunk('{"type":"ü"}'.encode()), [("chunk", '{"type":"ü"}')]),
    "padding is nothing": (payload({"bytes": b64("{}"), "p": "abcdef"}), [("chunk", "{}")]),
    "another event": (payload({"bytes": b64("{}")}, event_type="metrics"), []),
    "an empty chunk": (payload(b""), []),
    "no base64: as it is, for the decoder to refuse": (payload({"bytes": "?"}), [("chunk", '{"bytes": "?"}')]),
    "no bytes": (payload({"x": 1}), [("chunk", '{"x": 1}')]),
    "no JSON": (payload(b"\xff{"), [("chunk", "\ufffd{")]),
}


@pytest.mark.parametrize("frame, seen", RECORDS.values(), ids=RECORDS.keys())
def test_what_is_in_a_frame(frame: bytes, seen: list[tuple[str, str]]) -> None:
    assert records(frame) == seen


@pytest.mark.parametrize("frame", [payload({"bytes": "?"}), payload({"bytes": b64("[1]")}), payload(b"nonsense")])
def test_a_chunk_that_holds_no_event(frame: bytes) -> None:
    with served([Raw(200, FRAMES, frame)]) as (membrane, _):
        error = refused(lambda: membrane.stream(HI, retry=False))
    assert error.type == "server"
    assert error.message.startswith("bedrock: event 'chunk' cannot be read (")


def test_a_frame_whose_checksum_is_wrong() -> None:
    events = bedrock.events(Reply("Hello"))
    broken = events[1][:20] + b"!" + events[1][21:]
    with served([Raw(200, FRAMES, events[0] + broken + b"".join(events[2:]))]) as (membrane, _):
        error = refused(lambda: membrane.stream(HI, retry=False))
    assert error.type == "server"
    assert error.message.startswith("event stream: frame 1 is broken: its message CRC is ")


EXCEPTIONS: dict[str, tuple[str, str, bool, int | None]] = {
    "throttling": ("throttlingException", "rate_limit", True, 429),
    "another word for it": ("someThrottledException", "rate_limit", True, 429),
    "the service": ("internalServerException", "server", True, 500),
    "the service, busy": ("serviceUnavailableException", "server", True, 503),
    "the model": ("modelStreamErrorException", "server", True, 424),
    "the model, slow": ("modelTimeoutException", "timeout", True, 408),
    "the request": ("validationException", "invalid_request", False, 400),
    "one of a later version": ("novelException", "server", True, 500),
}


@pytest.mark.parametrize("name, type, retryable, status", EXCEPTIONS.values(), ids=EXCEPTIONS.keys())
def test_an_exception_in_the_stream(name: str, type: str, retryable: bool, status: int | None) -> None:
    events = bedrock.events(Reply("Hello, world!"))
    with served([Raw(200, FRAMES, b"".join([*events[:3], bedrock.exception(name, "It broke.")]))]) as (membrane, _):
        error = refused(lambda: membrane.stream(HI, retry=False))
    assert (error.type, error.retryable, error.http_status, error.provider_error_code) == (
        type,
        retryable,
        status,
        name,
    )
    assert error.message == f"bedrock: error event {name}: It broke. ({name})"
    assert (error.raw_assistant_text, error.raw_error) == ("Hello,", {"message": "It broke."})


BODIES_OF_EXCEPTIONS: dict[str, tuple[bytes, Json]] = {
    "in capitals": (b'{"Message": "m"}', {"Message": "m"}),
    "words": (b"gone", {"message": "gone"}),
    "nothing": (b"", {"message": "xException"}),
    "no object": (b"[]", {"message": "[]"}),
}


@pytest.mark.parametrize("data, told", BODIES_OF_EXCEPTIONS.values(), ids=BODIES_OF_EXCEPTIONS.keys())
def test_what_an_exception_says(data: bytes, told: Json) -> None:
    frame = bedrock.frame({":message-type": "exception", ":exception-type": "xException"}, data)
    with pytest.raises(ProviderFault) as raised:
        records(frame)
    assert (raised.value.body, raised.value.event) == (told, "xException")


def test_an_error_frame() -> None:
    headers = {":message-type": "error", ":error-code": "InternalError", ":error-message": "An error occurred"}
    with served([Raw(200, FRAMES, bedrock.frame(headers, b""))]) as (membrane, _):
        error = refused(lambda: membrane.stream(HI, retry=False))
    assert (error.type, error.http_status, error.provider_error_code) == ("server", 500, "InternalError")
    assert "An error occurred" in error.message


def test_an_error_event_inside_a_chunk() -> None:
    inner = b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'
    with served([Raw(200, FRAMES, bedrock.chunk(inner))]) as (membrane, _):
        error = refused(lambda: membrane.stream(HI, retry=False))
    assert (error.type, error.http_status) == ("server", 529)


# HTTP errors


STATUSES: dict[str, tuple[int, str, str, bool]] = {
    "a refused body": (400, "ValidationException", "invalid_request", False),
    "a spent quota": (400, "ServiceQuotaExceededException", "invalid_request", False),
    "no signature": (401, "UnauthorizedException", "auth", False),
    "no access": (403, "AccessDeniedException", "auth", False),
    "expired credentials": (403, "ExpiredTokenException", "auth", False),
    "no such model": (404, "ResourceNotFoundException", "invalid_request", False),
    "a slow model": (408, "ModelTimeoutException", "timeout", True),
    "throttling": (429, "ThrottlingException", "rate_limit", True),
    "a cold model": (429, "ModelNotReadyException", "rate_limit", True),
    "the service": (500, "InternalServerException", "server", True),
    "the service, busy": (503, "ServiceUnavailableException", "server", True),
}


@pytest.mark.parametrize("status, code, type, retryable", STATUSES.values(), ids=STATUSES.keys())
def test_an_http_error(status: int, code: str, type: str, retryable: bool) -> None:
    answer = bedrock.error(status, code, "No.", headers={"x-amzn-RequestId": "r-1", "Retry-After": "7"})
    with served([answer]) as (membrane, provider):
        error = refused(lambda: membrane.complete(HI, retry=False))
        assert provider.request_count == 1
    seen = (error.type, error.retryable, error.http_status, error.provider_error_code, error.request_id)
    assert seen == (type, retryable, status, code, "r-1")
    assert error.message == f"bedrock: HTTP {status}: No. ({code})"
    assert error.retry_after_ms == 7_000


# Truncation

ANSWER = Reply(Thinking("Hm."), "Hello, world!", ToolCall("get_weather", {"city": "Bern"}, id="call_1"))
EVENTS = bedrock.events(ANSWER)
COMPLETE = len(EVENTS) - 1  # all but message_stop
ENDS = {"end": faults.end, "close": faults.close, "reset": faults.reset}


@pytest.mark.parametrize("ending", ENDS.values(), ids=ENDS.keys())
@pytest.mark.parametrize("after", range(len(EVENTS) + 1))
def test_an_end_at_every_frame(after: int, ending: Any) -> None:
    with served([ending(ANSWER, after=after)]) as (membrane, provider):
        if after < COMPLETE:
            error = refused(lambda: membrane.stream(HI, retry=False))
            assert (error.type, error.retryable) == ("network", True)
            assert "Hello, world!".startswith(error.raw_assistant_text)
            assert [block.type for block in error.partial_content] == ["thinking", "text", "tool_use"][
                : len(error.partial_content)
            ]
        else:
            response: Any = membrane.stream(HI, retry=False)
            assert (response.text, response.stop_reason) == ("Hello, world!", "tool_use")
            assert [(each.id, each.input) for each in response.tool_calls] == [("call_1", {"city": "Bern"})]
        assert provider.request_count == 1


def test_an_end_inside_a_frame() -> None:
    body = b"".join(EVENTS)
    for cut in range(3, sum(map(len, EVENTS[:COMPLETE])), 151):
        with served([Raw(200, FRAMES, body[:cut])]) as (membrane, _):
            error = refused(lambda: membrane.stream(HI, retry=False))
        assert (cut, error.type) == (cut, "network")
        assert "the stream ended after" in error.message


# A conversation

CALLS = [
    Reply(Thinking("Bern?", signature="c2ln"), ToolCall("get", {"city": "Bern"}, id="c1")),
    Reply(Thinking("Ulm?", signature="c2lo"), ToolCall("get", {"city": "Ulm"}, id="c2"), ToolCall("get", {}, id="c3")),
    Reply("Warm."),
]
TOOL = {"name": "get", "description": "d", "input_schema": {"type": "object", "properties": {}}}
ASKED = {
    **HI,
    "config": {"model": MODEL, "max_tokens": 2048, "thinking": {"budget_tokens": 1024}},
    "tools": [TOOL],
    "prompt_caching": False,
}
ROUND_3 = (
    '{"anthropic_version":"bedrock-2023-05-31","max_tokens":2048,"messages":['
    '{"role":"user","content":[{"type":"text","text":"User: Hi"}]},'
    '{"role":"assistant","content":[{"type":"thinking","thinking":"Bern?","signature":"c2ln"},'
    '{"type":"tool_use","id":"c1","name":"get","input":{"city":"Bern"}}]},'
    '{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"12"}]},'
    '{"role":"assistant","content":[{"type":"thinking","thinking":"Ulm?","signature":"c2lo"},'
    '{"type":"tool_use","id":"c2","name":"get","input":{"city":"Ulm"}},'
    '{"type":"tool_use","id":"c3","name":"get","input":{}}]},'
    '{"role":"user","content":[{"type":"tool_result","tool_use_id":"c2","content":"12"},'
    '{"type":"tool_result","tool_use_id":"c3","content":"12"}]}],'
    '"tools":[{"name":"get","description":"d","input_schema":{"type":"object","properties":{}}}],'
    '"thinking":{"type":"enabled","budget_tokens":1024},"anthropic_beta":["interleaved-thinking-2025-05-14"]}'
)


def test_two_tool_rounds_carry_their_signatures_back_byte_by_byte() -> None:
    with served(CALLS) as (membrane, provider):
        response: Any = membrane.stream(
            ASKED, on_tool_calls=lambda calls: [ToolResult(call.id, "12") for call in calls]
        )
        assert (response.text, response.stop_reason) == ("Warm.", "end_turn")
        assert [received.body.decode() for received in provider.requests][2] == ROUND_3


def test_a_streamed_answer_and_a_whole_one_say_the_same() -> None:
    with served([ANSWER, ANSWER]) as (membrane, _):
        whole, streamed = membrane.complete(HI), membrane.stream(HI)
    assert isinstance(streamed, type(whole))
    assert [block.to_dict() for block in streamed.content] == [block.to_dict() for block in whole.content]
    assert (streamed.usage.input_tokens, streamed.usage.output_tokens) == (
        whole.usage.input_tokens,
        whole.usage.output_tokens,
    )
    assert streamed.raw.response["content"] == whole.raw.response["content"]
    assert streamed.details.usage.estimated_cost == whole.details.usage.estimated_cost is not None


@pytest.mark.parametrize("face", ["complete", "stream"])
def test_a_refusal(face: str) -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "No."}
    message = {
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5-20250929",
        "content": [],
        "stop_reason": "refusal",
        "stop_details": details,
        "usage": {"input_tokens": 3, "output_tokens": 1},
    }
    started = {**message, "stop_reason": None, "stop_details": None}
    ended = {"stop_reason": "refusal", "stop_sequence": None, "stop_details": details}
    events = [
        {"type": "message_start", "message": started},
        {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    answers = {
        "complete": Raw(200, {"Content-Type": "application/json"}, json.dumps(message)),
        "stream": Raw(200, FRAMES, b"".join(bedrock.chunk(json.dumps(event).encode()) for event in events)),
    }
    with served([answers[face]]) as (membrane, _):
        response: Any = getattr(membrane, face)(HI)
    stop = response.details.stop
    assert (response.text, response.stop_reason) == ("", "refusal")
    assert (stop.provider_reason, stop.category, stop.refusal) == ("refusal", "cyber", "No.")
