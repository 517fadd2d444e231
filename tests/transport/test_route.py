"""route.py: what a URL means, and the bytes that it becomes."""

from __future__ import annotations

import pytest

from membrane_lite.errors import MembraneError
from membrane_lite.transport.environment import Proxy
from membrane_lite.transport.route import Origin, Route, prepare, read_url
from membrane_lite.wire.http import HttpRequest

GOOD = {
    "a plain URL": ("https://api.example.com/v1", ("https", "api.example.com", 443), "/v1", "api.example.com"),
    "no path": ("http://h", ("http", "h", 80), "/", "h"),
    "a query without a path": ("http://h?a=b", ("http", "h", 80), "/?a=b", "h"),
    "scheme and host in any case": (
        "HTTPS://API.Example.com/A",
        ("https", "api.example.com", 443),
        "/A",
        "api.example.com",
    ),
    "the scheme's own port is not shown": ("https://h:443/", ("https", "h", 443), "/", "h"),
    "the other scheme's port is": ("http://h:443/", ("http", "h", 443), "/", "h:443"),
    "an empty port": ("http://h:/", ("http", "h", 80), "/", "h"),
    "IPv6": ("http://[::1]:8080/x", ("http", "::1", 8080), "/x", "[::1]:8080"),
    "IPv6 without a port": ("https://[::1]", ("https", "::1", 443), "/", "[::1]"),
    "the fragment stays here": ("http://h/a#b", ("http", "h", 80), "/a", "h"),
    "the path is left alone": (
        "http://h/model/a%3ab/../x%zz/100%/|{c}?k=a%2fb",
        ("http", "h", 80),
        "/model/a%3ab/../x%zz/100%/|{c}?k=a%2fb",
        "h",
    ),
}


@pytest.mark.parametrize("url, origin, target, authority", GOOD.values(), ids=GOOD.keys())
def test_read_url(url: str, origin: tuple[str, str, int], target: str, authority: str) -> None:
    found, found_target = read_url(url)
    assert (found, found_target, found.authority) == (origin, target, authority)


BAD = {
    "another scheme": ("ftp://h/", "url: 'ftp://h/' does not begin with http:// or https://; expected one"),
    "no scheme": (
        "api.example.com/v1",
        "url: 'api.example.com/v1' does not begin with http:// or https://; expected https://..., "
        "perhaps 'https://api.example.com/v1'",
    ),
    "a blank": (
        "http://h/a b?key=secret",
        "url: ' ' stands in the path of 'http://h/a b'; expected it percent-encoded",
    ),
    "beyond ASCII": ("http://h/é", "url: 'é' stands in the path of 'http://h/é'; expected it percent-encoded"),
    "a line break": ("http://h/a\nb", "url: '\\n' stands in the path of 'http://h/a\\nb'; expected it percent-encoded"),
    "no host": (
        "http:///x",
        "url: what stands for the host in 'http:///x' is none; expected a host or host:port, without a user; "
        "a name beyond ASCII in its xn-- form",
    ),
    "a user": (
        "http://user:secret@h/x?key=secret",
        "url: what stands for the host in 'http://h/x' is none; expected a host or host:port, without a user; "
        "a name beyond ASCII in its xn-- form",
    ),
    "a port out of range": ("http://h:70000/", "url: port 70000; expected one from 1 to 65535"),
}


@pytest.mark.parametrize("url, message", BAD.values(), ids=BAD.keys())
def test_a_url_that_cannot_be_used(url: str, message: str) -> None:
    with pytest.raises(MembraneError) as caught:
        read_url(url)
    assert (caught.value.type, caught.value.message) == ("invalid_request", message)


PROXY = Proxy("http", "p", 1, "user:pass", "HTTP_PROXY")
HOST, IDENTITY = ("Host", "h"), ("Accept-Encoding", "identity")

PREPARED = {  # method, headers, body, scheme, proxy -> target and headers as they are sent
    "a GET": (("GET", [("A", "1"), ("a", "2")], b"", "http", None), ("/x", [HOST, ("A", "1"), ("a", "2"), IDENTITY])),
    "a POST": (("POST", [], b"{}", "http", None), ("/x", [HOST, IDENTITY, ("Content-Length", "2")])),
    "a POST without a body": (("POST", [], b"", "http", None), ("/x", [HOST, IDENTITY, ("Content-Length", "0")])),
    "a body of another method": (
        ("DELETE", [], b"{}", "http", None),
        ("/x", [HOST, IDENTITY, ("Content-Length", "2")]),
    ),
    "nothing is added twice": (
        ("POST", [("accept-encoding", "gzip"), ("host", "other"), ("content-length", "2")], b"{}", "http", None),
        ("/x", [("accept-encoding", "gzip"), ("host", "other"), ("content-length", "2")]),
    ),
    "a proxy is told the server": (
        ("GET", [], b"", "http", PROXY),
        ("http://h/x", [HOST, IDENTITY, ("Proxy-Authorization", "Basic dXNlcjpwYXNz")]),
    ),
    "a tunnel carries what the server is told": (("GET", [], b"", "https", PROXY), ("/x", [HOST, IDENTITY])),
}


@pytest.mark.parametrize("given, expected", PREPARED.values(), ids=PREPARED.keys())
def test_prepare(given: tuple[str, list[tuple[str, str]], bytes, str, Proxy | None], expected: object) -> None:
    method, headers, body, scheme, proxy = given
    origin = Origin(scheme, "h", 80 if scheme == "http" else 443)
    outgoing = prepare(HttpRequest(method, "unread", headers, body), Route(origin, proxy), "/x")
    assert (outgoing.target, outgoing.headers) == expected


REFUSED = {
    "a header value with a line break": (("POST", [("X-Key", "secret\r\nX: y")]), "headers['X-Key']"),
    "a header name with a blank": (("POST", [("X Key", "1")]), "headers: 'X Key'"),
    "a method that is none": (("GET /", []), "method: 'GET /'"),
}


@pytest.mark.parametrize("given, start", REFUSED.values(), ids=REFUSED.keys())
def test_a_request_that_http_cannot_carry(given: tuple[str, list[tuple[str, str]]], start: str) -> None:
    method, headers = given
    with pytest.raises(MembraneError) as caught:
        prepare(HttpRequest(method, "unread", headers, b""), Route(Origin("http", "h", 80), None), "/")
    assert caught.value.type == "invalid_request"
    assert caught.value.message.startswith(start)
    assert "secret" not in caught.value.message
