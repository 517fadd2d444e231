"""A URL in; where to dial, what to ask for, and which headers the transport adds, out. Pure.

The path and query leave exactly as they were given: a signed path is right byte by byte or not at all, so nothing is
normalised, decoded or encoded, and what HTTP cannot carry is refused before anything is sent.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ..errors import invalid
from ..wire.http import TOKEN, HttpRequest, header_pairs
from .environment import Proxy

DEFAULT_PORTS: Final = {"http": 80, "https": 443}

# RFC 3986, appendix B, narrowed to http and https; the fragment is the client's own (RFC 9110, 7.1).
URL: Final = re.compile(r"(?P<scheme>https?)://(?P<authority>[^/?#]*)(?P<target>[^#]*)(?:#.*)?", re.IGNORECASE)
# RFC 3986, 3.2.2: a literal address in brackets, or a name; an underscore is no host name but is seen in the wild.
AUTHORITY: Final = re.compile(r"(?:\[(?P<literal>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._\-]+))(?::(?P<port>[0-9]*))?")
# A request target is visible ASCII (RFC 9112, 3.2).
UNSENDABLE: Final = re.compile(r"[^!-~]")

METHODS_WITH_BODY: Final = frozenset(["POST", "PUT", "PATCH"])


class Origin(NamedTuple):
    """Scheme, host (lower case, no brackets) and port of a server."""

    scheme: str
    host: str
    port: int

    @property
    def host_and_port(self) -> str:
        """What CONNECT names (RFC 9112, 3.2.3)."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def authority(self) -> str:
        """What Host says (RFC 9110, 7.2): the port only where it is not the scheme's."""
        named = self.host_and_port
        return named[: named.rindex(":")] if DEFAULT_PORTS[self.scheme] == self.port else named

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}"


class Route(NamedTuple):
    """How a server is reached. Connections are kept by it; str() is how messages name the place of a failure."""

    origin: Origin
    proxy: Proxy | None

    @property
    def forwarded(self) -> bool:
        """Plain HTTP through a proxy: the proxy reads each request. Anything else is direct, or a tunnel."""
        return self.proxy is not None and self.origin.scheme == "http"

    def __str__(self) -> str:
        return str(self.origin) if self.proxy is None else f"{self.origin} through the proxy {self.proxy}"


def read_url(url: str) -> tuple[Origin, str]:
    """The server and the target ("/path?query") that a URL names. Raises MembraneError("invalid_request")."""
    found = URL.fullmatch(url)
    if found is None:
        raise invalid("url", f"{_shown(url)} does not begin with http:// or https://", _repaired(url))
    scheme = found["scheme"].lower()
    bad = UNSENDABLE.search(found["target"])
    if bad is not None:
        raise invalid("url", f"{bad.group()!r} stands in the path of {_shown(url)}", "expected it percent-encoded")
    host, port = _read_authority(url, found["authority"])
    target = found["target"] if found["target"].startswith("/") else "/" + found["target"]
    return Origin(scheme, host, DEFAULT_PORTS[scheme] if port is None else port), target


def _read_authority(url: str, authority: str) -> tuple[str, int | None]:
    found = AUTHORITY.fullmatch(authority)
    if found is None:
        expected = "expected a host or host:port, without a user; a name beyond ASCII in its xn-- form"
        raise invalid("url", f"what stands for the host in {_shown(url)} is none", expected)
    port = int(found["port"]) if found["port"] else None
    if port is not None and not 0 < port < 65536:
        raise invalid("url", f"port {port}", "expected one from 1 to 65535")
    return (found["literal"] or found["name"]).lower(), port


def _shown(url: str) -> str:
    """A URL without what may be secret in it: credentials before the host, keys in the query."""
    scheme, mark, rest = url.partition("://")
    place = re.split(r"[?#]", rest if mark else url, maxsplit=1)[0]
    authority, slash, path = place.partition("/")
    return repr((scheme + mark if mark else "") + authority.rpartition("@")[2] + slash + path[:100])


def _repaired(url: str) -> str:
    """Offer the URL with a scheme where it has none."""
    return f"expected https://..., perhaps {'https://' + _shown(url)[1:-1]!r}" if "://" not in url else "expected one"


class Outgoing(NamedTuple):
    """A request as it goes over one route: the target is the path, or the whole URL where a proxy reads it."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes

    def __repr__(self) -> str:
        return f"Outgoing({self.method} {self.target!r})"


def prepare(request: HttpRequest, route: Route, target: str) -> Outgoing:
    """Check the request and complete it for its route. Raises MembraneError("invalid_request")."""
    if TOKEN.fullmatch(request.method) is None:
        raise invalid("method", f"{request.method!r} is no HTTP method", "expected an RFC 9110 token")
    # A proxy that forwards is told the server as well (RFC 9112, 3.2.2).
    target = str(route.origin) + target if route.forwarded else target
    return Outgoing(request.method, target, _headers(request, route), request.body)


def _headers(request: HttpRequest, route: Route) -> list[tuple[str, str]]:
    """The request's own, in their order, and around them those that HTTP needs where it lacks them."""
    pairs = header_pairs(request.headers, "headers")
    given = {name.lower() for name, _ in pairs}
    if "host" not in given:
        pairs.insert(0, ("Host", route.origin.authority))
    if "accept-encoding" not in given:
        pairs.append(("Accept-Encoding", "identity"))
    if (request.body or request.method in METHODS_WITH_BODY) and "content-length" not in given:
        pairs.append(("Content-Length", str(len(request.body))))
    if route.proxy is not None and route.forwarded and route.proxy.authorization is not None:
        pairs.append(("Proxy-Authorization", route.proxy.authorization))
    return pairs
