"""aws: what each link of the chain reads, what it says where it fails, and how long what it found is kept.

`files` is a mapping of texts, `fetch` a list of answers to be served; the last part runs over real sockets.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from membrane_lite.abort import AbortController
from membrane_lite.call import Call, Deadlines, Limits
from membrane_lite.clock import Clock
from membrane_lite.credentials.aws import (
    CHAIN,
    Credentials,
    Link,
    domain,
    endpoint,
    epoch,
    find_credentials,
    from_container,
    from_environment,
    from_instance,
    from_profile,
    from_web_identity,
)
from membrane_lite.credentials.aws_auth import KeptCredentials, SigV4Auth, is_signed, server_time
from membrane_lite.credentials.aws_fetch import Fetched, OverNetwork, read_text
from membrane_lite.credentials.aws_profiles import read_profiles, region_of
from membrane_lite.errors import MembraneError
from membrane_lite.loopback import Failure, LoopbackProvider, Raw, faults
from membrane_lite.wire.http import HttpRequest, header

Json = Any
NOW = 1_767_225_600.0  # 2026-01-01T00:00:00Z
LATER = "2026-01-01T01:00:00Z"
SECRETS = ("s3cret-of-the-key", "t0ken-of-the-session", "a-token-from-a-file")
KEYS = Credentials("AKID", SECRETS[0])
TEMPORARY = Credentials("ASIA", SECRETS[0], SECRETS[1], NOW + 3600)
FOUND = {"AccessKeyId": "ASIA", "SecretAccessKey": SECRETS[0], "Token": SECRETS[1], "Expiration": LATER}
ASSUMED = (
    '<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials>'
    f"<AccessKeyId>ASIA</AccessKeyId><SecretAccessKey>{SECRETS[0]}</SecretAccessKey>"
    f"<SessionToken>{SECRETS[1]}</SessionToken><Expiration>{LATER}</Expiration>"
    "</Credentials></AssumeRoleResult></AssumeRoleResponse>"
)


class Served:
    """Fetch from a list: (status, text) for each HTTP request, an error to be raised, a command's output."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.requests: list[HttpRequest] = []
        self.commands: list[list[str]] = []
        self.metadata: list[bool] = []

    @property
    def now(self) -> float:
        return NOW

    def http(self, request: HttpRequest, *, metadata: bool = False) -> Fetched:
        self.requests.append(request)
        self.metadata.append(metadata)
        answer = self._answers.pop(0)
        if isinstance(answer, MembraneError):
            raise answer
        status, text = answer
        return Fetched(status, (), text if isinstance(text, str) else json.dumps(text))

    def output(self, command: Any) -> str:
        self.commands.append(list(command))
        answer: str = self._answers.pop(0)
        return answer

    @property
    def asked(self) -> list[str]:
        return [f"{request.method} {request.url}" for request in self.requests]


def files(**texts: str) -> Callable[[str], str | None]:
    """config and credentials where they are by default, other names as they are."""
    named = {"config": "/home/u/.aws/config", "credentials": "/home/u/.aws/credentials"}
    return {named.get(name, name): text for name, text in texts.items()}.get


HOME = {"HOME": "/home/u"}
NO_FILES = files()


def refused(find: Callable[[], object]) -> str:
    with pytest.raises(MembraneError) as raised:
        find()
    assert raised.value.type == "auth"
    assert not any(secret in repr(raised.value) + str(raised.value.__cause__) for secret in SECRETS)
    return raised.value.message


# Environment

VARIABLES: dict[str, tuple[dict[str, str], Credentials | None]] = {
    "key and secret": ({"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": SECRETS[0]}, KEYS),
    "white space around them": ({"AWS_ACCESS_KEY_ID": " AKID\n", "AWS_SECRET_ACCESS_KEY": f"{SECRETS[0]}\r\n"}, KEYS),
    "a blank token is none": (
        {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": SECRETS[0], "AWS_SESSION_TOKEN": " "},
        KEYS,
    ),
    "a token and its end": (
        {
            "AWS_ACCESS_KEY_ID": "ASIA",
            "AWS_SECRET_ACCESS_KEY": SECRETS[0],
            "AWS_SESSION_TOKEN": SECRETS[1],
            "AWS_CREDENTIAL_EXPIRATION": LATER,
        },
        TEMPORARY,
    ),
    "blank ones": ({"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": " "}, None),
    "none": ({}, None),
}


@pytest.mark.parametrize("env, found", VARIABLES.values(), ids=VARIABLES.keys())
def test_the_environment(env: dict[str, str], found: Credentials | None) -> None:
    assert from_environment(env, NO_FILES, None) == found


def test_half_a_key_in_the_environment() -> None:
    env = {"AWS_SECRET_ACCESS_KEY": SECRETS[0]}
    assert refused(lambda: from_environment(env, NO_FILES, None)) == (
        "AWS_ACCESS_KEY_ID is not set, although its other half is"
    )


# Profiles

STATIC = f"aws_access_key_id = AKID\naws_secret_access_key = {SECRETS[0]}\n"
PROFILES: dict[str, tuple[dict[str, str], dict[str, str], Credentials | None]] = {
    "the default one": ({}, {"credentials": f"[default]\n{STATIC}"}, KEYS),
    "of the config file": ({}, {"config": f"[default]\n{STATIC}"}, KEYS),
    "a named one": ({"AWS_PROFILE": "work"}, {"credentials": f"[work]\n{STATIC}"}, KEYS),
    "a named one of the config file": ({"AWS_PROFILE": "work"}, {"config": f"[profile work]\n{STATIC}"}, KEYS),
    "named in quotes": ({"AWS_PROFILE": "my work"}, {"config": f'[profile "my work"]\n{STATIC}'}, KEYS),
    "by the older variable": ({"AWS_DEFAULT_PROFILE": "work"}, {"credentials": f"[work]\n{STATIC}"}, KEYS),
    "the credentials file wins": (
        {},
        {"credentials": f"[default]\n{STATIC}", "config": "[default]\naws_access_key_id=OTHER"},
        KEYS,
    ),
    "with a token": (
        {},
        {"credentials": f"[default]\n{STATIC}aws_session_token = {SECRETS[1]}\n"},
        Credentials("AKID", SECRETS[0], SECRETS[1]),
    ),
    "nested settings beside it": ({}, {"config": f"[default]\ns3 =\n  max_queue_size = 1\n{STATIC}"}, KEYS),
    "comments and signs": ({}, {"config": f"# a\n; b\n[default]\nx = 100%\n{STATIC}"}, KEYS),
    "one that only names a region": ({"AWS_PROFILE": "work"}, {"config": "[profile work]\nregion=eu-west-1"}, None),
    "no files": ({}, {}, None),
    "elsewhere": (
        {"AWS_SHARED_CREDENTIALS_FILE": "/etc/aws"},
        {"/etc/aws": f"[default]\n{STATIC}"},
        KEYS,
    ),
    "elsewhere, from home": ({"AWS_CONFIG_FILE": "~/aws"}, {"/home/u/aws": f"[default]\n{STATIC}"}, KEYS),
}


@pytest.mark.parametrize("env, texts, found", PROFILES.values(), ids=PROFILES.keys())
def test_profiles(env: dict[str, str], texts: dict[str, str], found: Credentials | None) -> None:
    assert from_profile({**HOME, **env}, files(**texts), Served()) == found


WRONG_PROFILES: dict[str, tuple[str, str]] = {
    "no such profile": (
        "[profile other]\n",
        "no profile 'work' in /home/u/.aws/config or /home/u/.aws/credentials",
    ),
    "half a key": (
        "[profile work]\naws_access_key_id = AKID\n",
        "[work] aws_access_key_id and aws_secret_access_key belong together, and one is missing",
    ),
    "a line that is none": (
        f"[profile work]\n= {SECRETS[0]}\n",
        "/home/u/.aws/config cannot be read (ParsingError); expected [sections] of key = value",
    ),
    "no section": (
        f"aws_secret_access_key = {SECRETS[0]}\n",
        "line 1 of /home/u/.aws/config cannot be read (MissingSectionHeaderError); expected [sections] of key = value",
    ),
    "a role without a source": (
        "[profile work]\nrole_arn = arn\n",
        "[work] role_arn stands without source_profile, credential_source and web identity",
    ),
    "a role of nobody": (
        "[profile work]\nrole_arn = arn\nsource_profile = gone\n",
        "[work] the source of its role_arn has no credentials",
    ),
    "a circle": (
        "[profile work]\nrole_arn = a\nsource_profile = b\n[profile b]\nrole_arn = b\nsource_profile = work\n",
        "[work] [b] profiles are one another's source_profile: work -> b -> work",
    ),
    "a source that is none": (
        "[profile work]\nrole_arn = arn\ncredential_source = Moon\n",
        "[work] credential_source: found 'Moon'; expected Environment, Ec2InstanceMetadata, EcsContainer",
    ),
    "a code to be typed": (
        "[profile work]\nrole_arn = arn\nsource_profile = x\nmfa_serial = m\n",
        "[work] mfa_serial: a code would have to be typed; use `aws sts` and its credentials",
    ),
    "sso by halves": (
        "[profile work]\nsso_start_url = https://x\nsso_region = us-east-1\n",
        "[work] single sign-on: sso_account_id, sso_role_name missing",
    ),
    "an sso session that is nowhere": (
        "[profile work]\nsso_session = corp\n",
        "[work] sso_session: no [sso-session corp] in /home/u/.aws/config",
    ),
}


@pytest.mark.parametrize("config, words", WRONG_PROFILES.values(), ids=WRONG_PROFILES.keys())
def test_what_is_wrong_with_a_profile(config: str, words: str) -> None:
    env = {**HOME, "AWS_PROFILE": "work"}
    assert refused(lambda: from_profile(env, files(config=config), Served())) == words


def test_the_region() -> None:
    config = files(config="[default]\nregion = eu-west-3\n[profile work]\nregion = ap-south-1\n")
    named = [{}, {"AWS_PROFILE": "work"}, {"AWS_DEFAULT_REGION": "b"}, {"AWS_REGION": "a", "AWS_DEFAULT_REGION": "b"}]
    assert [region_of({**HOME, **env}, config) for env in named] == ["eu-west-3", "ap-south-1", "b", "a"]
    assert region_of({**HOME, "AWS_REGION": " "}, NO_FILES) is None


def test_profiles_read_nothing_into_default_sections() -> None:
    read = read_profiles(HOME, files(config="[DEFAULT]\nregion = r\n[profile a]\nx = 1\n[sso-session s]\ny = 2\n"))
    assert (read.profiles, read.sso_sessions) == ({"a": {"x": "1"}}, {"s": {"y": "2"}})


# Processes


def of_process(output: Any) -> Credentials | None:
    config = "[default]\ncredential_process = tool 'an argument'\n"
    return from_profile(HOME, files(config=config), Served(output if isinstance(output, str) else json.dumps(output)))


PRINTED = {"Version": 1, "AccessKeyId": "ASIA", "SecretAccessKey": SECRETS[0], "SessionToken": SECRETS[1]}


def test_a_process() -> None:
    assert of_process({**PRINTED, "Expiration": LATER}) == TEMPORARY
    assert of_process(PRINTED) == TEMPORARY._replace(expires=None)


WRONG_OUTPUT: dict[str, tuple[Any, str]] = {
    "no JSON": (SECRETS[0], "credential_process: what it holds is no JSON object"),
    "another version": ({**PRINTED, "Version": 2}, "credential_process: found Version 2; expected 1"),
    "no secret": (
        {**PRINTED, "SecretAccessKey": ""},
        "credential_process: no AccessKeyId and SecretAccessKey in it",
    ),
    "a key that is none": (
        {**PRINTED, "AccessKeyId": "A\nB"},
        "credential_process: AccessKeyId: the key holds a line break, a space or a character that is not ASCII; check "
        "how it was set",
    ),
    "a date that is none": (
        {**PRINTED, "Expiration": SECRETS[1]},
        "credential_process: Expiration: found no date; expected one like 2026-01-31T12:00:00Z",
    ),
}


@pytest.mark.parametrize("output, words", WRONG_OUTPUT.values(), ids=WRONG_OUTPUT.keys())
def test_a_process_that_prints_something_else(output: Any, words: str) -> None:
    assert refused(lambda: of_process(output)) == f"[default] {words}"


# Roles


def test_a_role_is_assumed_with_the_keys_of_its_source() -> None:
    config = (
        "[profile work]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = base\nexternal_id = x&y\n"
        f"duration_seconds = 900\nrole_session_name = me\n[profile base]\n{STATIC}"
    )
    served = Served((200, ASSUMED))
    env = {**HOME, "AWS_PROFILE": "work", "AWS_REGION": "eu-west-1"}
    assert from_profile(env, files(config=config), served) == TEMPORARY
    (request,) = served.requests
    assert (request.method, request.url) == ("POST", "https://sts.eu-west-1.amazonaws.com/")
    assert request.body.decode() == (
        "Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr&RoleSessionName=me&DurationSeconds=900"
        "&Action=AssumeRole&ExternalId=x%26y"
    )
    assert str(header(request.headers, "Authorization")).startswith(
        "AWS4-HMAC-SHA256 Credential=AKID/20260101/eu-west-1/sts/aws4_request, "
        "SignedHeaders=content-type;host;x-amz-date, Signature="
    )


SOURCES: dict[str, tuple[dict[str, str], str, list[Any], int]] = {
    "its own keys": ({}, f"source_profile = work\n{STATIC}", [], 1),
    "the environment": (
        {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": SECRETS[0]},
        "credential_source = Environment\n",
        [],
        1,
    ),
    "a role of a role": (
        {},
        f"source_profile = b\n[profile b]\nrole_arn = b\nsource_profile = c\n[profile c]\n{STATIC}",
        [(200, ASSUMED)],
        2,
    ),
    "the container": (
        {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/x"},
        "credential_source = EcsContainer\n",
        [(200, FOUND)],
        2,
    ),
}


@pytest.mark.parametrize("env, lines, before, count", SOURCES.values(), ids=SOURCES.keys())
def test_what_a_role_is_assumed_with(env: dict[str, str], lines: str, before: list[Any], count: int) -> None:
    served = Served(*before, (200, ASSUMED))
    config = files(config=f"[profile work]\nrole_arn = arn\n{lines}")
    assert from_profile({**HOME, "AWS_PROFILE": "work", **env}, config, served) == TEMPORARY
    assert len(served.requests) == count


def test_web_identity_is_sent_unsigned() -> None:
    env = {"AWS_WEB_IDENTITY_TOKEN_FILE": "/token", "AWS_ROLE_ARN": "arn", "AWS_REGION": "cn-north-1"}
    served = Served((200, ASSUMED))
    assert from_web_identity(env, files(**{"/token": f"{SECRETS[2]}\n"}), served) == TEMPORARY
    (request,) = served.requests
    assert request.url == "https://sts.cn-north-1.amazonaws.com.cn/"
    assert header(request.headers, "Authorization") is None
    assert request.body.decode().endswith(f"&Action=AssumeRoleWithWebIdentity&WebIdentityToken={SECRETS[2]}")


def test_web_identity_of_a_profile() -> None:
    config = files(config="[default]\nrole_arn = arn\nweb_identity_token_file = ~/t\n", **{"/home/u/t": "x"})
    assert from_profile(HOME, config, Served((200, ASSUMED))) == TEMPORARY


def web_identity(*answers: Any, **texts: str) -> str:
    env = {"AWS_WEB_IDENTITY_TOKEN_FILE": "/token", "AWS_ROLE_ARN": "arn"}
    return refused(lambda: from_web_identity(env, texts.get, Served(*answers)))


def test_what_sts_refuses() -> None:
    token = {"/token": SECRETS[2]}
    wrong = (
        f"<ErrorResponse><Error><Code>AccessDenied</Code><Message>No, {SECRETS[2]}.</Message></Error></ErrorResponse>"
    )
    assert web_identity((403, wrong), **token) == (
        "STS AssumeRoleWithWebIdentity: HTTP 403: AccessDenied: No, [redacted]."
    )
    assert web_identity((200, "<html>"), **token) == "STS AssumeRoleWithWebIdentity: HTTP 200, an answer that is no XML"
    assert web_identity((200, "<a/>"), **token) == (
        "STS AssumeRoleWithWebIdentity: no AccessKeyId and SecretAccessKey in it"
    )
    assert web_identity() == "web_identity_token_file: /token is missing or empty"


ENDPOINTS: dict[str, tuple[dict[str, str], str]] = {
    "nothing": ({}, "https://d"),
    "the service's variable": ({"AWS_ENDPOINT_URL_STS": "http://s/", "AWS_ENDPOINT_URL": "http://all"}, "http://s"),
    "that for all": ({"AWS_ENDPOINT_URL": "http://all"}, "http://all"),
    "ignored": ({"AWS_ENDPOINT_URL": "http://all", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "TRUE"}, "https://d"),
}


@pytest.mark.parametrize("env, address", ENDPOINTS.values(), ids=ENDPOINTS.keys())
def test_the_address_of_a_service(env: dict[str, str], address: str) -> None:
    assert endpoint(env, "STS", "https://d") == address


def test_the_partitions() -> None:
    regions = ("us-east-1", "us-gov-west-1", "cn-north-1", "us-iso-east-1", "us-isob-east-1")
    assert [domain(region) for region in regions] == [
        *("amazonaws.com", "amazonaws.com", "amazonaws.com.cn", "c2s.ic.gov", "sc2s.sgov.gov")
    ]


# Single sign-on

SSO = "sso_account_id = 1\nsso_role_name = r\n"
START = "sso_start_url = https://start\nsso_region = eu-central-1\n"
SSO_CONFIGS = {
    "of the profile": (f"[default]\n{START}{SSO}", "https://start"),
    "of a session": (f"[default]\nsso_session = corp\n{SSO}[sso-session corp]\n{START}", "corp"),
}


def sso_files(config: str, key: str, **cached: Any) -> Callable[[str], str | None]:
    path = f"/home/u/.aws/sso/cache/{hashlib.sha1(key.encode()).hexdigest()}.json"
    token = {"accessToken": SECRETS[2], "expiresAt": LATER, **cached}
    return files(config=config, **{path: json.dumps(token)})


@pytest.mark.parametrize("config, key", SSO_CONFIGS.values(), ids=SSO_CONFIGS.keys())
def test_single_sign_on(config: str, key: str) -> None:
    given = {"accessKeyId": "ASIA", "secretAccessKey": SECRETS[0], "sessionToken": SECRETS[1], "expiration": 0}
    served = Served((200, {"roleCredentials": {**given, "expiration": int(TEMPORARY.expires or 0) * 1000}}))
    assert from_profile(HOME, sso_files(config, key), served) == TEMPORARY
    assert served.asked == [
        "GET https://portal.sso.eu-central-1.amazonaws.com/federation/credentials?role_name=r&account_id=1"
    ]
    assert header(served.requests[0].headers, "x-amz-sso_bearer_token") == SECRETS[2]


def test_a_sign_on_that_is_over() -> None:
    config, key = SSO_CONFIGS["of a session"]
    old = sso_files(config, key, expiresAt="2025-12-31T23:59:59UTC")
    assert refused(lambda: from_profile(HOME, old, Served())) == (
        "[default] single sign-on: the token expired at 2025-12-31T23:59:59UTC; run `aws sso login --profile default`"
    )
    assert "no token in /home/u/.aws/sso/cache/" in refused(lambda: from_profile(HOME, files(config=config), Served()))
    assert refused(lambda: from_profile(HOME, sso_files(config, key), Served((401, "no")))) == (
        "[default] single sign-on: HTTP 401"
    )


# Containers

TRUSTED = {
    "https": "https://creds.example/x",
    "loopback": "http://127.0.0.7:80/x",
    "localhost": "http://localhost/x",
    "loopback of six parts": "http://[::1]:80/x",
    "ECS": "http://169.254.170.2/x",
    "EKS": "http://169.254.170.23/x",
    "EKS of six parts": "http://[fd00:ec2::23]/x",
}


@pytest.mark.parametrize("url", TRUSTED.values(), ids=TRUSTED.keys())
def test_a_container_s_full_address(url: str) -> None:
    served = Served((200, FOUND))
    env = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": url, "AWS_CONTAINER_AUTHORIZATION_TOKEN": "Basic abc"}
    assert from_container(env, NO_FILES, served) == TEMPORARY
    assert (served.asked, served.metadata) == ([f"GET {url}"], [True])
    assert header(served.requests[0].headers, "Authorization") == "Basic abc"


@pytest.mark.parametrize("url", ["http://creds.example/x", "http://10.0.0.1/x", "ftp://127.0.0.1/x", "/x"])
def test_a_container_s_address_that_is_not_trusted(url: str) -> None:
    env = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": url}
    assert refused(lambda: from_container(env, NO_FILES, Served())).startswith(
        "AWS_CONTAINER_CREDENTIALS_FULL_URI: found "
    )


def test_a_container_s_relative_address_and_its_token_file() -> None:
    served = Served((200, FOUND))
    env = {
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2/credentials/1",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://elsewhere.example/",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": "/token",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN": "older",
    }
    assert from_container(env, files(**{"/token": "newer\n"}), served) == TEMPORARY
    assert served.asked == ["GET http://169.254.170.2/v2/credentials/1"]
    assert header(served.requests[0].headers, "Authorization") == "newer"


def test_what_is_wrong_with_a_container() -> None:
    env = {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/x"}
    bad_token = {**env, "AWS_CONTAINER_AUTHORIZATION_TOKEN": f"{SECRETS[2]}\r\nEvil: 1"}
    assert refused(lambda: from_container(env, NO_FILES, Served((404, SECRETS[0])))) == "the endpoint: HTTP 404"
    assert refused(lambda: from_container(bad_token, NO_FILES, Served())) == (
        "AWS_CONTAINER_AUTHORIZATION_TOKEN: the token holds a line break or a character that is not ASCII"
    )
    assert from_container({}, NO_FILES, Served()) is None


# Instances


def test_an_instance() -> None:
    served = Served((200, "imds-token"), (200, "my role\n"), (200, {**FOUND, "Code": "Success"}))
    assert from_instance({}, NO_FILES, served) == TEMPORARY
    base = "http://169.254.169.254/latest"
    assert served.asked == [
        f"PUT {base}/api/token",
        f"GET {base}/meta-data/iam/security-credentials/",
        f"GET {base}/meta-data/iam/security-credentials/my",
    ]
    assert served.metadata == [True] * 3
    assert served.requests[0].headers == (("X-aws-ec2-metadata-token-ttl-seconds", "21600"),)
    assert served.requests[2].headers == (("X-aws-ec2-metadata-token", "imds-token"),)


INSTANCES: dict[str, tuple[dict[str, str], list[Any], list[str]]] = {
    "switched off": ({"AWS_EC2_METADATA_DISABLED": "True"}, [], []),
    "no instance": ({}, [MembraneError("network", "no route")], ["PUT http://169.254.169.254/latest/api/token"]),
    "another cloud": ({}, [(405, "no")], ["PUT http://169.254.169.254/latest/api/token"]),
    "of six parts": (
        {"AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE": "IPv6"},
        [MembraneError("network", "no route")],
        ["PUT http://[fd00:ec2::254]/latest/api/token"],
    ),
    "no role": (
        {"AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://h:1/"},
        [(200, "t"), (404, "")],
        ["PUT http://h:1/latest/api/token", "GET http://h:1/latest/meta-data/iam/security-credentials/"],
    ),
}


@pytest.mark.parametrize("env, answers, asked", INSTANCES.values(), ids=INSTANCES.keys())
def test_where_there_is_no_instance(env: dict[str, str], answers: list[Any], asked: list[str]) -> None:
    served = Served(*answers)
    assert from_instance(env, NO_FILES, served) is None
    assert served.asked == asked


# The chain


def test_the_order_of_the_chain() -> None:
    assert [link.name for link in CHAIN] == ["environment", "web identity", "profile", "container", "instance"]


def test_the_first_link_that_has_some() -> None:
    env = {**HOME, "AWS_ACCESS_KEY_ID": "ENV", "AWS_SECRET_ACCESS_KEY": "x"}
    texts = files(credentials=f"[default]\n{STATIC}")
    assert find_credentials(env, texts, Served(), CHAIN).access_key_id == "ENV"
    assert find_credentials(HOME, texts, Served(), CHAIN).access_key_id == "AKID"


def test_a_chain_that_finds_nothing_tells_of_every_link() -> None:
    env = {**HOME, "AWS_EC2_METADATA_DISABLED": "true"}
    message = refused(lambda: find_credentials(env, NO_FILES, Served(), CHAIN))
    assert message == (
        "no AWS credentials: pass access_key_id= and secret_access_key=, or api_key=, or set AWS_BEARER_TOKEN_BEDROCK, "
        "or any of these (nothing was sent): "
        "environment: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set; "
        "web identity: AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN are not set; "
        "profile: no profile gives credentials; "
        "container: AWS_CONTAINER_CREDENTIALS_RELATIVE_URI and _FULL_URI are not set; "
        "instance: AWS_EC2_METADATA_DISABLED is true, or no EC2 instance with a role answers"
    )


def test_a_configured_link_that_fails_ends_the_search() -> None:
    env = {**HOME, "AWS_PROFILE": "work", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/x"}
    served = Served()
    message = refused(lambda: find_credentials(env, NO_FILES, served, CHAIN))
    assert message == (
        "AWS credentials cannot be had (nothing was sent): "
        "environment: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set; "
        "web identity: AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN are not set; "
        "profile: no profile 'work' in /home/u/.aws/config or /home/u/.aws/credentials"
    )
    assert served.requests == []


DATES: dict[str, tuple[Any, float]] = {
    "Zulu": ("2026-01-01T00:00:00Z", NOW),
    "with a fraction": ("2026-01-01T00:00:00.12Z", NOW),
    "with an offset": ("2026-01-01T01:00:00+01:00", NOW),
    "spelt out": ("2026-01-01T00:00:00UTC", NOW),
    "without a zone": ("2026-01-01T00:00:00", NOW),
    "milliseconds": (int(NOW * 1000), NOW),
}


@pytest.mark.parametrize("given, seconds", DATES.values(), ids=DATES.keys())
def test_dates(given: Any, seconds: float) -> None:
    assert epoch(given, "x") == seconds


def test_credentials_do_not_show_their_secrets() -> None:
    assert repr(TEMPORARY) == "Credentials('ASIA')"
    assert repr(Fetched(200, (), SECRETS[0])) == "Fetched(200)"


# Kept


class StoppedClock(Clock):
    def __init__(self, now: float = NOW) -> None:
        self.now = now

    def time(self) -> float:
        return self.now

    def set(self, now: float) -> None:
        self.now = now


def call(clock: Clock, **settings: Any) -> Call:
    return Call(clock=clock, **settings)


def numbered(*answers: Any) -> tuple[KeptCredentials, list[int]]:
    """Kept credentials whose search gives these one after the other, and a list that grows with each search."""
    searches: list[int] = []

    def find(clock: Clock) -> Credentials:
        searches.append(len(searches))
        answer = answers[len(searches) - 1]
        if isinstance(answer, MembraneError):
            raise answer
        found: Credentials = answer
        return found

    return KeptCredentials(None, find), searches


def test_what_lasts_is_asked_for_once() -> None:
    kept, searches = numbered(KEYS)
    assert [kept.credentials(call(StoppedClock())) for _ in range(3)] == [KEYS] * 3
    assert len(searches) == 1


def test_what_expires_is_asked_for_anew_five_minutes_before() -> None:
    second = TEMPORARY._replace(access_key_id="SECOND", expires=NOW + 9000)
    kept, searches = numbered(TEMPORARY, second)
    clock = StoppedClock()
    seen = []
    for left in (3600, 301, 300):
        clock.set(NOW + 3600 - left)
        seen.append(kept.credentials(call(clock)).access_key_id)
    assert (seen, len(searches)) == (["ASIA", "ASIA", "SECOND"], 2)
    assert set(kept.secrets) == {SECRETS[0], SECRETS[1]}


def test_where_no_new_ones_can_be_had_the_old_ones_serve_until_their_end() -> None:
    gone = MembraneError("auth", "gone")
    kept, _ = numbered(TEMPORARY, gone, gone)
    clock = StoppedClock()
    kept.credentials(call(clock))
    clock.set(NOW + 3599)
    assert kept.credentials(call(clock)) == TEMPORARY
    clock.set(NOW + 3600)
    assert refused(lambda: kept.credentials(call(clock))) == "gone"


def test_each_waiting_call_has_an_error_of_its_own() -> None:
    kept, _ = numbered(MembraneError("auth", "one"), MembraneError("auth", "two"))
    assert [refused(lambda: kept.credentials(call(StoppedClock()))) for _ in range(2)] == ["one", "two"]


@contextmanager
def stuck() -> Iterator[tuple[KeptCredentials, threading.Event]]:
    """A search that lasts until it is let go."""
    released, began = threading.Event(), threading.Event()

    def find(clock: Clock) -> Credentials:
        began.set()
        released.wait(5)
        return KEYS

    try:
        yield KeptCredentials(None, find), began
    finally:
        released.set()
        for thread in threading.enumerate():
            if thread.name.endswith("-search"):
                thread.join(1)


def test_an_abort_ends_the_wait_at_once_and_the_search_goes_on() -> None:
    controller = AbortController()
    with stuck() as (kept, began):
        threading.Thread(target=lambda: (began.wait(5), controller.abort("enough"))).start()
        started = time.monotonic()
        with pytest.raises(MembraneError) as raised:
            kept.credentials(call(Clock(), signal=controller.signal))
        assert raised.value.type == "abort"
        assert time.monotonic() - started < 0.5
    assert kept.held == KEYS


def test_a_deadline_ends_the_wait() -> None:
    clock = Clock()
    deadlines = Deadlines(clock, Limits(), call_ends=clock.monotonic() + 0.02, call_ms=20)
    with stuck() as (kept, _), pytest.raises(MembraneError) as raised:
        kept.credentials(call(clock, deadlines=deadlines))
    assert (raised.value.type, raised.value.message) == (
        "timeout",
        "timeout_ms: the call took longer than its 20 ms",
    )


def test_threads_that_ask_at_once_share_one_search() -> None:
    gate = threading.Event()
    searches = []

    def find(clock: Clock) -> Credentials:
        searches.append(1)
        gate.wait(5)
        return KEYS

    kept, seen = KeptCredentials(None, find), []
    threads = [threading.Thread(target=lambda: seen.append(kept.credentials(call(Clock())))) for _ in range(8)]
    for thread in threads:
        thread.start()
    gate.set()
    for thread in threads:
        thread.join(5)
    assert (seen, len(searches) <= 2) == ([KEYS] * 8, True)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of a fork beside threads, which is what is tested
def test_a_child_searches_for_itself() -> None:
    with stuck() as (kept, began):
        threading.Thread(target=lambda: kept.credentials(call(Clock())), daemon=True).start()
        began.wait(5)
        read, write = os.pipe()
        child = os.fork()
        if not child:
            try:
                controller = AbortController()
                threading.Timer(0.02, controller.abort).start()
                kept.credentials(call(Clock(), signal=controller.signal))
            except MembraneError as error:
                os.write(write, error.type.encode())
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        os.close(write)
        with os.fdopen(read, "rb") as told:
            assert told.read() == b"abort"


# Signing

REQUEST = HttpRequest("POST", "http://h/model/a/invoke", [("Accept", "a"), ("User-Agent", "u")], b"{}")


def auth(*keys: Credentials) -> SigV4Auth:
    return SigV4Auth(KeptCredentials((keys or (KEYS,))[0], None), region="r-1", service="bedrock")


def test_a_request_is_signed_with_the_date_of_its_send() -> None:
    clock = StoppedClock()
    signer = auth(TEMPORARY._replace(expires=None))
    dates = []
    for second in (0, 1):
        clock.set(NOW + second)
        sent = signer.authorized(REQUEST, call(clock))
        dates.append((header(sent.headers, "X-Amz-Date"), header(sent.headers, "X-Amz-Security-Token")))
        assert "SignedHeaders=accept;host;x-amz-date;x-amz-security-token," in str(
            header(sent.headers, "Authorization")
        )
    assert dates == [("20260101T000000Z", SECRETS[1]), ("20260101T000001Z", SECRETS[1])]
    assert signer.shown(REQUEST, clock) == signer.authorized(REQUEST, call(clock))


def test_a_placeholder_signs_where_nothing_is_known() -> None:
    shown = SigV4Auth(KeptCredentials(None, lambda clock: KEYS), region="r-1", service="bedrock").shown(
        REQUEST, Clock()
    )
    assert "Credential=YOUR_ACCESS_KEY_ID/" in str(header(shown.headers, "Authorization"))


def test_what_is_signed() -> None:
    names = ("Accept", "content-type", "X-Amz-Date", "x-amzn-bedrock-trace", "User-Agent", "Accept-Encoding")
    assert [is_signed(name) for name in names] == [True, True, True, True, False, False]


DATE = [("Date", "Thu, 01 Jan 2026 00:20:00 GMT")]
EXPIRED = MembraneError("auth", "Signature expired: x", provider_error_code="InvalidSignatureException")
REFUSALS: dict[str, tuple[MembraneError, list[tuple[str, str]], bool, bool, str]] = {
    "an expired signature": (EXPIRED, DATE, False, True, "20260101T002000Z"),
    "one not yet current": (
        MembraneError("auth", "a: Signature not yet current: x"),
        DATE,
        False,
        True,
        "20260101T002000Z",
    ),
    "a code": (
        MembraneError("auth", "x", provider_error_code="RequestTimeTooSkewed"),
        DATE,
        False,
        True,
        "20260101T002000Z",
    ),
    "where a request is sent once only, the date is kept": (EXPIRED, DATE, True, False, "20260101T002000Z"),
    "without a date": (EXPIRED, [], False, False, "20260101T000000Z"),
    "with a date that is none": (EXPIRED, [("Date", "today")], False, False, "20260101T000000Z"),
    "a wrong key": (
        MembraneError("auth", "The request signature", provider_error_code="InvalidSignatureException"),
        DATE,
        False,
        False,
        "20260101T000000Z",
    ),
}


@pytest.mark.parametrize("refusal, headers, once, again, date", REFUSALS.values(), ids=REFUSALS.keys())
def test_a_refused_date(refusal: MembraneError, headers: Any, once: bool, again: bool, date: str) -> None:
    clock, signer = StoppedClock(), auth()
    assert signer.renews(refusal, headers, call(clock, sends_once=once)) is again
    assert header(signer.authorized(REQUEST, call(clock)).headers, "X-Amz-Date") == date


def test_refused_credentials_are_asked_for_anew() -> None:
    kept, _ = numbered(KEYS, TEMPORARY)
    signer = SigV4Auth(kept, region="r-1", service="bedrock")
    signer.authorized(REQUEST, call(StoppedClock()))
    refusal = MembraneError("auth", "expired", provider_error_code="ExpiredTokenException")
    assert signer.renews(refusal, DATE, call(StoppedClock())) is False
    assert "ASIA" in str(header(signer.authorized(REQUEST, call(StoppedClock())).headers, "Authorization"))


def test_the_time_of_a_server() -> None:
    assert server_time(DATE) == NOW + 1200
    assert server_time([]) is None


# Over real sockets


@contextmanager
def network(script: Any, **env: str) -> Iterator[tuple[OverNetwork, LoopbackProvider]]:
    with LoopbackProvider(script) as provider, provider.transport() as transport:
        fetch = OverNetwork(transport, Clock(), env)
        try:
            yield fetch, provider
        finally:
            fetch.close()


def json_answer(value: Json) -> Raw:
    return Raw(200, {"Content-Type": "application/json"}, json.dumps(value), framing="length")


def test_an_instance_on_loopback_and_never_through_a_proxy() -> None:
    script = [Raw(200, body="tok"), Raw(200, body="role"), json_answer(FOUND)]
    with network(script, HTTP_PROXY="http://127.0.0.1:1") as (fetch, provider):
        env = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": provider.url}
        assert from_instance(env, NO_FILES, fetch) == TEMPORARY
        assert [received.method for received in provider.requests] == ["PUT", "GET", "GET"]


TWICE: dict[str, Any] = {"a server error": Failure(500), "a reset": faults.reset()}


@pytest.mark.parametrize("first", TWICE.values(), ids=TWICE.keys())
def test_a_passing_failure_is_tried_twice(first: Any) -> None:
    with network([first, json_answer(FOUND)]) as (fetch, provider):
        env = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": provider.url}
        assert from_container(env, NO_FILES, fetch) == TEMPORARY
        assert provider.request_count == 2


def test_sts_over_the_adapters_own_transport() -> None:
    with network([Raw(200, body=ASSUMED)]) as (fetch, provider):
        env = {"AWS_WEB_IDENTITY_TOKEN_FILE": "/t", "AWS_ROLE_ARN": "arn", "AWS_ENDPOINT_URL_STS": provider.url}
        assert from_web_identity(env, {"/t": "x"}.get, fetch) == TEMPORARY
        assert provider.requests[0].header("content-type") == "application/x-www-form-urlencoded; charset=utf-8"


@pytest.mark.slow
def test_an_endpoint_that_is_silent_is_left_after_a_second_twice() -> None:
    with network([faults.silence(), faults.silence()]) as (fetch, provider):
        started = time.monotonic()
        assert from_instance({"AWS_EC2_METADATA_SERVICE_ENDPOINT": provider.url}, NO_FILES, fetch) is None
        assert 1.9 < time.monotonic() - started < 3


def test_a_command() -> None:
    with network([]) as (fetch, _):
        printed = fetch.output([sys.executable, "-c", f"print({json.dumps(json.dumps(PRINTED))})"])
        assert json.loads(printed) == PRINTED
        failing = f"import sys; sys.stderr.write('{SECRETS[0]}'); sys.exit(3)"
        assert refused(lambda: fetch.output([sys.executable, "-c", failing])) == (
            "it ended with exit code 3; run it by hand to see why"
        )
        assert refused(lambda: fetch.output(["/no/such/command"])) == "it cannot be started (FileNotFoundError)"


def test_reading_files(tmp_path: Any) -> None:
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbf[default]\n")
    assert read_text(str(tmp_path / "a")) == "[default]\n"
    assert read_text(str(tmp_path / "b")) is None
    assert read_text(str(tmp_path / "a" / "b")) is None
    (tmp_path / "c").write_bytes(b"\xff")
    assert refused(lambda: read_text(str(tmp_path / "c"))) == f"{tmp_path / 'c'} cannot be read (UnicodeDecodeError)"


def test_a_link_is_a_row() -> None:
    links: Mapping[str, Link] = {link.name: link for link in CHAIN}
    assert links["container"].find is from_container
