"""Proxy and certificate settings: environment variables and arguments in, settings out. Nothing is read here by itself.

A setting carries the name of the variable or argument it came from, because that is what its user can change.

    proxy, http target    http_proxy, HTTP_PROXY, all_proxy, ALL_PROXY
    proxy, https target   https_proxy, HTTPS_PROXY, all_proxy, ALL_PROXY
    no proxy              no_proxy, NO_PROXY
    trusted certificates  SSL_CERT_FILE and SSL_CERT_DIR, REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE; the first that is set

For proxies the lower-case spelling wins, and an empty lower-case variable switches the upper-case one off, as Python's
urllib.request reads them. For certificates a blank variable is an unset one.
"""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final, NamedTuple, Union
from urllib.parse import SplitResult, unquote, urlsplit

from ..errors import MembraneError, invalid


class FromEnv:
    """The type of FROM_ENV, the default that means "as the environment says"; None means "none"."""

    def __repr__(self) -> str:
        return "FROM_ENV"


FROM_ENV: Final = FromEnv()

PROXY_PORTS: Final = {"http": 80, "https": 443}
CERTIFICATE_VARIABLES: Final = (("SSL_CERT_FILE", "SSL_CERT_DIR"), ("REQUESTS_CA_BUNDLE",), ("CURL_CA_BUNDLE",))

# What a scheme looks like (RFC 3986, 3.1). "127.0.0.1:3128" has none, although urlsplit finds one in it.
SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://")


class Setting(NamedTuple):
    """A value, and the variable ("HTTPS_PROXY") or argument ("proxy=") it came from."""

    value: str
    source: str


class Proxy(NamedTuple):
    """An HTTP proxy. `credentials` is "user:password", decoded; neither str() nor repr() shows it."""

    scheme: str
    host: str
    port: int
    credentials: str | None
    source: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port} (from {self.source})"

    def __repr__(self) -> str:
        return f"Proxy({self})"

    @property
    def authorization(self) -> str | None:
        """The value of Proxy-Authorization (RFC 7617), None for a proxy without credentials."""
        if self.credentials is None:
            return None
        return "Basic " + b64encode(self.credentials.encode("utf-8")).decode("ascii")

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must not be printed: the password, and the credentials as they are sent."""
        if self.credentials is None or self.authorization is None:
            return ()
        return (self.credentials.partition(":")[2], self.authorization.partition(" ")[2])


class ProxySettings(NamedTuple):
    """Which proxy serves which scheme, and the hosts that are reached without one."""

    http: Proxy | None
    https: Proxy | None
    no_proxy: Setting | None

    def proxy_for(self, scheme: str, host: str, port: int) -> Proxy | None:
        """The proxy for one target, None for a direct connection. `host` without brackets."""
        proxy = self.https if scheme == "https" else self.http
        if proxy is None or (self.no_proxy is not None and bypasses(self.no_proxy.value, host, port)):
            return None
        return proxy

    @property
    def secrets(self) -> tuple[str, ...]:
        return tuple(secret for proxy in (self.http, self.https) if proxy for secret in proxy.secrets)


ProxyArgument = Union[str, None, FromEnv]
NoProxyArgument = Union[str, Sequence[str], None, FromEnv]
Trust = tuple[Setting, ...]  # files and directories of certificates; empty for the system's store
TrustArgument = Union[str, "os.PathLike[str]", Trust, None, FromEnv]


def proxy_settings(
    env: Mapping[str, str], *, proxy: ProxyArgument = FROM_ENV, no_proxy: NoProxyArgument = FROM_ENV
) -> ProxySettings:
    """The proxies of the environment, or the one given for every scheme; each is checked now.

    Raises MembraneError("invalid_request"), naming variable or argument, for a URL that is no http or https proxy.
    """
    if isinstance(proxy, FromEnv):
        http, https = _from_variables(env, "http_proxy"), _from_variables(env, "https_proxy")
    else:
        http = https = _given_proxy(proxy)
    return ProxySettings(
        http=None if http is None else read_proxy(http),
        https=None if https is None else read_proxy(https),
        no_proxy=_no_proxy(env, no_proxy),
    )


def _given_proxy(proxy: str | None) -> Setting | None:
    if proxy is not None and not isinstance(proxy, str):
        raise invalid("proxy", f"found {type(proxy).__name__}", "expected a URL, None or FROM_ENV")
    return Setting(proxy, "proxy=") if proxy else None


def _from_variables(env: Mapping[str, str], name: str) -> Setting | None:
    return _either_case(env, name) or _either_case(env, "all_proxy")


def _either_case(env: Mapping[str, str], name: str) -> Setting | None:
    """The variable `name` or its upper-case form."""
    # A CGI server passes a request's "Proxy" header on as HTTP_PROXY, so whoever sends the request would choose the
    # proxy (CVE-2016-5385); REQUEST_METHOD tells such a server. The lower-case name cannot be set that way.
    forged = name == "http_proxy" and "REQUEST_METHOD" in env
    chosen = name if name in env or forged else name.upper()
    value = env.get(chosen, "").strip()
    return Setting(value, chosen) if value else None


def _no_proxy(env: Mapping[str, str], no_proxy: NoProxyArgument) -> Setting | None:
    if isinstance(no_proxy, FromEnv):
        return _either_case(env, "no_proxy")
    value = no_proxy if isinstance(no_proxy, str) else ",".join(no_proxy or ())
    return Setting(value, "no_proxy=") if value else None


def read_proxy(setting: Setting) -> Proxy:
    """The proxy that a URL, or a bare "host:port", names. Its credentials are percent-decoded."""
    given = setting.value
    try:
        parts = urlsplit(given if SCHEME.match(given) else "http://" + given)
        port = parts.port
    except ValueError as exc:
        raise _refused(setting, "is no URL with a valid host and port") from exc
    if parts.scheme not in PROXY_PORTS:
        raise MembraneError(
            "invalid_request",
            f"proxy scheme {parts.scheme!r} (from {setting.source}) is not supported: use an http:// or https:// proxy",
        )
    if not parts.hostname:
        raise _refused(setting, "names no host")
    return Proxy(parts.scheme, parts.hostname, port or PROXY_PORTS[parts.scheme], _credentials(parts), setting.source)


def _credentials(parts: SplitResult) -> str | None:
    if parts.username is None:
        return None
    return f"{unquote(parts.username)}:{unquote(parts.password or '')}"


def _refused(setting: Setting, found: str) -> MembraneError:
    """Quotes what follows the credentials only."""
    shown = setting.value.rpartition("@")[2]
    return MembraneError(
        "invalid_request", f"the proxy {shown!r} (from {setting.source}) {found}; expected http://host:port"
    )


def bypasses(no_proxy: str, host: str, port: int) -> bool:
    """Whether a NO_PROXY list names the target: as curl reads the list, and also "host:port" and "*.domain" entries.

    A name covers the host and everything below it, an address or CIDR block is compared as numbers, "*" is all.
    Source: curl's man page, "NO_PROXY"; everything.curl.dev, "Proxy environment variables".
    """
    host = host.rstrip(".").lower()
    address = _address(host)
    return any(_covers(entry, host, address, port) for entry in re.split(r"[\s,]+", no_proxy.lower()) if entry)


def _covers(entry: str, host: str, address: IPv4Address | IPv6Address | None, port: int) -> bool:
    if entry == "*":
        return True
    name, entry_port = _split_port(entry)
    if entry_port not in (None, str(port)):
        return False
    if address is not None:
        return _covers_address(name, address)
    domain = name.lstrip("*").strip(".")
    return bool(domain) and (host == domain or host.endswith("." + domain))


def _split_port(entry: str) -> tuple[str, str | None]:
    """("host", "80") of "host:80", ("::1", "80") of "[::1]:80", ("::1", None) of "::1" and "[::1]"."""
    if entry.startswith("["):
        name, _, rest = entry[1:].partition("]")
        return name, rest[1:] or None
    name, colon, port = entry.partition(":")
    return (name, port) if colon and ":" not in port else (entry, None)


def _covers_address(name: str, address: IPv4Address | IPv6Address) -> bool:
    try:
        return address in ip_network(name, strict=False)
    except ValueError:
        return False


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def trust_settings(env: Mapping[str, str], *, ca_certs: TrustArgument = FROM_ENV, leading: Sequence[str] = ()) -> Trust:
    """The files and directories whose certificates are trusted instead of the system's; () for the system's store.

    leading: variables that are asked before the usual ones (AWS_CA_BUNDLE, for AWS's own services).
    """
    if isinstance(ca_certs, tuple):
        return ca_certs
    if not isinstance(ca_certs, FromEnv):
        return () if ca_certs is None else (Setting(os.fspath(ca_certs), "ca_certs="),)
    for names in (*((name,) for name in leading), *CERTIFICATE_VARIABLES):
        found = tuple(Setting(env[name].strip(), name) for name in names if env.get(name, "").strip())
        if found:
            return found
    return ()
