"""Where AWS credentials are found: a function per link, `(env, files, fetch) -> Credentials or None`, and their order.

env: the variables. files: a path -> its text (aws_profiles.Files). fetch: HTTP and commands (aws_fetch.Fetch). A link
gives None where nothing asks for it, so that the next one is tried; one that is asked for and fails ends the search.

Source of order, names and addresses: docs.aws.amazon.com/sdkref/latest/guide, "Standardized credential providers".
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, Final, NamedTuple, Optional
from urllib.parse import quote, urlencode, urlsplit

from ..errors import MembraneError
from ..redactor import Redactor
from ..wire.http import HeaderPairs, HttpRequest
from ..wire.sigv4 import amz_date, sign
from .aws_fetch import Fetch, Fetched
from .aws_profiles import (
    PROFILE_VARIABLES,
    Files,
    Profiles,
    Settings,
    home_path,
    profile_name,
    read_profiles,
    region_of,
    variable,
)
from .keys import read_key

# The domain of a partition, by how its regions begin (docs.aws.amazon.com/general/latest/gr/rande.html).
DOMAINS: Final[Mapping[str, str]] = {"cn-": "amazonaws.com.cn", "us-iso-": "c2s.ic.gov", "us-isob-": "sc2s.sgov.gov"}
DOMAIN: Final = "amazonaws.com"
STS_REGION: Final = "us-east-1"  # where no region is known
STS_VERSION: Final = "2011-06-15"
SESSION_NAME: Final = "membrane-lite"

TASK_ENDPOINT: Final = "http://169.254.170.2"  # of an ECS task
# Plain http carries secrets only to the machine itself: loopback, and the addresses of ECS and EKS agents.
AGENT_HOSTS: Final = ("169.254.170.2", "169.254.170.23", "fd00:ec2::23")
INSTANCE_ENDPOINTS: Final = {"ipv4": "http://169.254.169.254", "ipv6": "http://[fd00:ec2::254]"}
INSTANCE_TOKEN_SECONDS: Final = "21600"
INSTANCE_ROLES: Final = "/latest/meta-data/iam/security-credentials/"


class Credentials(NamedTuple):
    """expires: seconds since the epoch; None for what lasts. repr() shows the key id alone."""

    access_key_id: str
    secret_access_key: str
    session_token: str | None = None
    expires: float | None = None

    def __repr__(self) -> str:
        return f"Credentials({self.access_key_id!r})"

    def lasts(self, until: float) -> bool:
        return self.expires is None or until < self.expires

    @property
    def secrets(self) -> list[str]:
        return [secret for secret in (self.secret_access_key, self.session_token) if secret]


Env = Mapping[str, str]
Found = Optional[Credentials]


class Link(NamedTuple):
    """absent: why it was passed over where it gave None."""

    name: str
    find: Callable[[Env, Files, Fetch], Found]
    absent: str


def find_credentials(env: Env, files: Files, fetch: Fetch, chain: Sequence[Link]) -> Credentials:
    """The credentials of the first link that has some. Raises MembraneError("auth"), telling of each link tried."""
    tried: list[str] = []
    for link in chain:
        try:
            found = link.find(env, files, fetch)
        except MembraneError as error:
            told = "; ".join([*tried, f"{link.name}: {error.message}"])
            raise MembraneError("auth", f"AWS credentials cannot be had (nothing was sent): {told}") from error
        if found is not None:
            return found
        tried.append(f"{link.name}: {link.absent}")
    raise MembraneError(
        "auth",
        "no AWS credentials: pass access_key_id= and secret_access_key=, or api_key=, or set AWS_BEARER_TOKEN_BEDROCK, "
        f"or any of these (nothing was sent): {'; '.join(tried)}",
    )


def domain(region: str) -> str:
    """The domain of AWS's services in the partition of a region."""
    return next((name for start, name in DOMAINS.items() if region.startswith(start)), DOMAIN)


def endpoint(env: Env, service: str, default: str) -> str:
    """The address of a service, as the usual variables override it; without a slash at its end."""
    ignored = (variable(env, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS") or "").lower() == "true"
    given = None if ignored else variable(env, f"AWS_ENDPOINT_URL_{service}", "AWS_ENDPOINT_URL")
    return (given or default).rstrip("/")


# Environment


def from_environment(env: Env, files: Files, fetch: Fetch | None) -> Found:
    key = read_key(None, "", "AWS_ACCESS_KEY_ID", env)
    secret = read_key(None, "", "AWS_SECRET_ACCESS_KEY", env)
    if key is None and secret is None:
        return None
    if key is None or secret is None:
        missing = "AWS_ACCESS_KEY_ID" if key is None else "AWS_SECRET_ACCESS_KEY"
        raise MembraneError("auth", f"{missing} is not set, although its other half is")
    token, expires = read_key(None, "", "AWS_SESSION_TOKEN", env), variable(env, "AWS_CREDENTIAL_EXPIRATION")
    return Credentials(key, secret, token, epoch(expires, "AWS_CREDENTIAL_EXPIRATION") if expires else None)


def from_web_identity(env: Env, files: Files, fetch: Fetch) -> Found:
    path, role = variable(env, "AWS_WEB_IDENTITY_TOKEN_FILE"), variable(env, "AWS_ROLE_ARN")
    if path is None or role is None:
        return None
    settings = {"role_arn": role, "web_identity_token_file": path}
    name = variable(env, "AWS_ROLE_SESSION_NAME")
    named = {"role_session_name": name} if name else {}
    return _with_web_identity(Asked(env, files, fetch, Profiles({}, {}, ("", ""))), {**settings, **named}, ())


# Profiles


class Asked(NamedTuple):
    """What the readers of a profile are given."""

    env: Env
    files: Files
    fetch: Fetch
    profiles: Profiles


Reader = Callable[[Asked, Settings, "tuple[str, ...]"], Found]


def from_profile(env: Env, files: Files, fetch: Fetch) -> Found:
    profiles, name = read_profiles(env, files), profile_name(env)
    if name not in profiles.profiles and variable(env, *PROFILE_VARIABLES):
        raise MembraneError("auth", f"no profile {name!r} in {profiles.paths[0]} or {profiles.paths[1]}")
    return _of_profile(Asked(env, files, fetch, profiles), name, ())


def _of_profile(asked: Asked, name: str, users: tuple[str, ...]) -> Found:
    """users: the profiles whose roles are assumed with this one, it being their source."""
    if name in users:
        raise MembraneError("auth", f"profiles are one another's source_profile: {' -> '.join([*users, name])}")
    settings = asked.profiles.profiles.get(name, {})
    read = next((read for field, read in PROFILE_READERS.items() if field in settings), None)
    if read is None:
        return None
    try:
        return read(asked, settings, (*users, name))
    except MembraneError as error:
        raise MembraneError("auth", f"[{name}] {error.message}") from error


def _static(asked: Asked, settings: Settings, users: tuple[str, ...]) -> Found:
    fields = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
    key, secret, token = (read_key(settings.get(field, ""), field, None, {}) for field in fields)
    if key is None or secret is None:
        raise MembraneError("auth", "aws_access_key_id and aws_secret_access_key belong together, and one is missing")
    return Credentials(key, secret, token)


def _of_process(asked: Asked, settings: Settings, users: tuple[str, ...]) -> Found:
    where = "credential_process"
    try:
        command = shlex.split(settings[where], posix=os.name != "nt")
        said = asked.fetch.output(command)
    except ValueError as exc:
        raise MembraneError("auth", f"{where}: it is no command ({exc})") from None
    except MembraneError as error:
        raise MembraneError("auth", f"{where}: {error.message}") from error
    parsed = json_object(said, where)
    if parsed.get("Version") != 1:
        raise MembraneError("auth", f"{where}: found Version {parsed.get('Version')!r}; expected 1")
    return from_json(parsed, where, token="SessionToken")


def _with_role(asked: Asked, settings: Settings, users: tuple[str, ...]) -> Found:
    """The role, assumed with the credentials of its source."""
    if "web_identity_token_file" in settings:
        return _with_web_identity(asked, settings, users)
    if "mfa_serial" in settings:
        raise MembraneError("auth", "mfa_serial: a code would have to be typed; use `aws sts` and its credentials")
    source = _source(asked, settings, users)
    if source is None:
        raise MembraneError("auth", "the source of its role_arn has no credentials")
    return _assume(asked, settings, {"Action": "AssumeRole", "ExternalId": settings.get("external_id")}, source)


def _source(asked: Asked, settings: Settings, users: tuple[str, ...]) -> Found:
    source = settings.get("credential_source")
    if source is not None:
        if source not in SOURCES:
            raise MembraneError("auth", f"credential_source: found {source!r}; expected {', '.join(SOURCES)}")
        return SOURCES[source](asked.env, asked.files, asked.fetch)
    name = settings.get("source_profile")
    if name is None:
        raise MembraneError("auth", "role_arn stands without source_profile, credential_source and web identity")
    if name == users[-1]:  # its own keys
        return _static(asked, settings, users)
    return _of_profile(asked, name, users)


def _with_web_identity(asked: Asked, settings: Settings, users: tuple[str, ...]) -> Found:
    """The token is asked for each time: whoever put its file there keeps it fresh. STS takes this action unsigned."""
    path = settings["web_identity_token_file"]
    token = _file(asked.env, asked.files, path, "web_identity_token_file")
    return _assume(asked, settings, {"Action": "AssumeRoleWithWebIdentity", "WebIdentityToken": token}, None)


def _file(env: Env, files: Files, path: str, source: str) -> str:
    text = files(home_path(env, path))
    if text is None or not text.strip():
        raise MembraneError("auth", f"{source}: {path} is missing or empty")
    return text.strip()


def _assume(asked: Asked, settings: Settings, action: Mapping[str, str | None], signer: Found) -> Credentials:
    """Ask STS for a role's credentials. signer: who asks, None for an action that is not signed."""
    region = region_of(asked.env, asked.files) or settings.get("region") or STS_REGION
    fields = {
        "Version": STS_VERSION,
        "RoleArn": settings["role_arn"],
        "RoleSessionName": settings.get("role_session_name", SESSION_NAME),
        "DurationSeconds": settings.get("duration_seconds"),
        **action,
    }
    url = endpoint(asked.env, "STS", f"https://sts.{region}.{domain(region)}") + "/"
    body = urlencode({name: value for name, value in fields.items() if value}).encode("ascii")
    headers: HeaderPairs = [("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")]
    if signer is not None:
        headers = sign(
            "POST",
            url,
            headers,
            body,
            access_key_id=signer.access_key_id,
            secret_access_key=signer.secret_access_key,
            session_token=signer.session_token,
            region=region,
            service="sts",
            amz_date=amz_date(asked.fetch.now),
            normalize_path=True,
        ).headers
    secrets = Redactor([*(signer.secrets if signer else ()), action.get("WebIdentityToken")])
    return _of_sts(asked.fetch.http(HttpRequest("POST", url, headers, body)), f"STS {action['Action']}", secrets)


def _of_sts(answer: Fetched, where: str, secrets: Redactor) -> Credentials:
    """An answer in XML, read without its namespace. Only of a refusal is anything repeated."""
    from xml.etree import ElementTree

    try:
        root = ElementTree.fromstring(answer.text)
    except ElementTree.ParseError:
        raise MembraneError("auth", f"{where}: HTTP {answer.status}, an answer that is no XML") from None
    said = {element.tag.rpartition("}")[2]: (element.text or "").strip() for element in root.iter()}
    if answer.status >= 300:
        code, message = said.get("Code", "no code"), said.get("Message", "no message")
        raise MembraneError("auth", secrets.text(f"{where}: HTTP {answer.status}: {code}: {message}"))
    return from_json(said, where, token="SessionToken")


# Single sign-on


def _with_sso(asked: Asked, settings: Settings, users: tuple[str, ...]) -> Found:
    """The role's credentials, for the token that `aws sso login` has left in its cache, while that is valid."""
    session = settings.get("sso_session")
    if session is not None and session not in asked.profiles.sso_sessions:
        raise MembraneError("auth", f"sso_session: no [sso-session {session}] in {asked.profiles.paths[0]}")
    known = {**settings, **asked.profiles.sso_sessions.get(session or "", {})}
    missing = [name for name in SSO_SETTINGS if not known.get(name)]
    if missing:
        raise MembraneError("auth", f"single sign-on: {', '.join(missing)} missing")
    token = _sso_token(asked, session or known["sso_start_url"], users[-1])
    region = known["sso_region"]
    base = endpoint(asked.env, "SSO", f"https://portal.sso.{region}.{domain(region)}")
    query = urlencode({"role_name": known["sso_role_name"], "account_id": known["sso_account_id"]})
    url, headers = f"{base}/federation/credentials?{query}", [("x-amz-sso_bearer_token", token)]
    answer = asked.fetch.http(HttpRequest("GET", url, headers, b""))
    given = json_object(accepted(answer, "single sign-on").text, "single sign-on").get("roleCredentials")
    return from_json(given, "single sign-on", names=SSO_NAMES, token="sessionToken", expires="expiration")


def _sso_token(asked: Asked, key: str, profile: str) -> str:
    path = home_path(asked.env, f"~/.aws/sso/cache/{hashlib.sha1(key.encode()).hexdigest()}.json")
    advice = f"run `aws sso login --profile {profile}`"
    text = asked.files(path)
    if text is None:
        raise MembraneError("auth", f"single sign-on: no token in {path}; {advice}")
    cached = json_object(text, path)
    if epoch(cached.get("expiresAt"), path) <= asked.fetch.now:
        raise MembraneError("auth", f"single sign-on: the token expired at {cached['expiresAt']}; {advice}")
    return read_key(cached.get("accessToken"), path, None, {}) or ""


# Containers and instances


def from_container(env: Env, files: Files, fetch: Fetch) -> Found:
    """The credentials of an ECS task or an EKS pod."""
    relative = variable(env, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
    full = variable(env, "AWS_CONTAINER_CREDENTIALS_FULL_URI")
    if relative is None and full is None:
        return None
    url = TASK_ENDPOINT + "/" + relative.lstrip("/") if relative is not None else _trusted(full or "")
    path = variable(env, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
    name = "AWS_CONTAINER_AUTHORIZATION_TOKEN"
    token = _file(env, files, path, f"{name}_FILE") if path else variable(env, name)
    if token is not None and re.search(r"[^ -~]", token):  # it may hold a space, as in "Basic ..."
        raise MembraneError("auth", f"{name}: the token holds a line break or a character that is not ASCII")
    headers = [("Accept", "application/json"), *([("Authorization", token)] if token else [])]
    answer = accepted(fetch.http(HttpRequest("GET", url, headers, b""), metadata=True), "the endpoint")
    return from_json(json_object(answer.text, "the endpoint"), "the endpoint", token="Token")


def _trusted(url: str) -> str:
    """A full address, if it is one that may be told the token and gives secrets safely."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme == "https" and host:
        return url
    if parts.scheme == "http" and (host in AGENT_HOSTS or host == "localhost" or _is_loopback(host)):
        return url
    raise MembraneError(
        "auth",
        f"AWS_CONTAINER_CREDENTIALS_FULL_URI: found {parts.scheme}://{host}; expected https, or http to the machine "
        f"itself (loopback, {', '.join(AGENT_HOSTS)})",
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def from_instance(env: Env, files: Files, fetch: Fetch) -> Found:
    """The role of an EC2 instance, by IMDSv2: a token is asked for first. Elsewhere nothing answers there."""
    if (variable(env, "AWS_EC2_METADATA_DISABLED") or "").lower() == "true":
        return None
    mode = (variable(env, "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE") or "ipv4").lower()
    default = INSTANCE_ENDPOINTS.get(mode, INSTANCE_ENDPOINTS["ipv4"])
    base = (variable(env, "AWS_EC2_METADATA_SERVICE_ENDPOINT") or default).rstrip("/")
    ttl = [("X-aws-ec2-metadata-token-ttl-seconds", INSTANCE_TOKEN_SECONDS)]
    try:
        token = fetch.http(HttpRequest("PUT", f"{base}/latest/api/token", ttl, b""), metadata=True)
    except MembraneError:
        return None
    if token.status >= 300:  # other clouds have servers of their own at this address
        return None
    headers = [("X-aws-ec2-metadata-token", token.text.strip())]
    roles = fetch.http(HttpRequest("GET", base + INSTANCE_ROLES, headers, b""), metadata=True)
    if roles.status == 404 or not roles.text.strip():
        return None
    role = quote(accepted(roles, "roles").text.split()[0], safe="")
    answer = accepted(fetch.http(HttpRequest("GET", base + INSTANCE_ROLES + role, headers, b""), metadata=True), "role")
    return from_json(json_object(answer.text, "role"), "role", token="Token")


# What is said, in whichever form. None of it is quoted: it may be the secret.


def accepted(answer: Fetched, where: str) -> Fetched:
    if answer.status >= 300:
        raise MembraneError("auth", f"{where}: HTTP {answer.status}")
    return answer


def json_object(text: str, where: str) -> Mapping[str, Any]:
    try:
        parsed = json.loads(text)
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        raise MembraneError("auth", f"{where}: what it holds is no JSON object")
    return parsed


def from_json(
    given: Any,
    where: str,
    *,
    names: tuple[str, str] = ("AccessKeyId", "SecretAccessKey"),
    token: str,
    expires: str = "Expiration",
) -> Credentials:
    fields = given if isinstance(given, Mapping) else {}
    key, secret, session = (read_key(fields.get(name) or "", f"{where}: {name}", None, {}) for name in (*names, token))
    if key is None or secret is None:
        raise MembraneError("auth", f"{where}: no {' and '.join(names)} in it")
    end = fields.get(expires)
    return Credentials(key, secret, session, None if end is None else epoch(end, f"{where}: {expires}"))


def epoch(given: Any, where: str) -> float:
    """An instant as AWS writes them: ISO 8601, or milliseconds since the epoch."""
    if isinstance(given, (int, float)) and not isinstance(given, bool):
        return given / 1000
    try:
        found = datetime.fromisoformat(FRACTION.sub("", ZULU.sub("+00:00", str(given).strip())))
    except ValueError:
        raise MembraneError("auth", f"{where}: found no date; expected one like 2026-01-31T12:00:00Z") from None
    return (found if found.tzinfo else found.replace(tzinfo=timezone.utc)).timestamp()


ZULU: Final = re.compile(r"(?:Z|UTC)$")
FRACTION: Final = re.compile(r"\.[0-9]+")  # Python 3.9 reads three digits of it, or six

SSO_SETTINGS: Final = ("sso_start_url", "sso_region", "sso_account_id", "sso_role_name")
SSO_NAMES: Final = ("accessKeyId", "secretAccessKey")

SOURCES: Final[Mapping[str, Callable[[Env, Files, Fetch], Found]]] = {
    "Environment": from_environment,
    "Ec2InstanceMetadata": from_instance,
    "EcsContainer": from_container,
}
# A setting, and how a profile that has it gives its credentials; the first that it has decides.
PROFILE_READERS: Final[Mapping[str, Reader]] = {
    "role_arn": _with_role,
    "sso_session": _with_sso,
    "sso_start_url": _with_sso,
    "aws_access_key_id": _static,
    "aws_secret_access_key": _static,
    "credential_process": _of_process,
}

PROFILE_LINK: Final = Link("profile", from_profile, "no profile gives credentials")
CHAIN: Final = (
    Link("environment", from_environment, "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set"),
    Link("web identity", from_web_identity, "AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN are not set"),
    PROFILE_LINK,
    Link("container", from_container, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI and _FULL_URI are not set"),
    Link("instance", from_instance, "AWS_EC2_METADATA_DISABLED is true, or no EC2 instance with a role answers"),
)
