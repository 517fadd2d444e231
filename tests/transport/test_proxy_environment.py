"""environment.py: which variable or argument decides, and what a NO_PROXY list covers."""

from __future__ import annotations

from pathlib import Path

import pytest

from membrane_lite.errors import MembraneError
from membrane_lite.transport.environment import FROM_ENV, Setting, bypasses, proxy_settings, trust_settings

A, B, C, D = "http://a:1", "http://b:2", "http://c:3", "http://d:4"

PROXIES = {  # variables, scheme of the target -> the proxy's host and the variable that named it
    "no variable, no proxy": ({}, "https", None),
    "each scheme has its variable": ({"HTTP_PROXY": A, "HTTPS_PROXY": B}, "https", ("b", "HTTPS_PROXY")),
    "and the other the other": ({"HTTP_PROXY": A, "HTTPS_PROXY": B}, "http", ("a", "HTTP_PROXY")),
    "HTTP_PROXY says nothing about https": ({"HTTP_PROXY": A}, "https", None),
    "lower case wins": ({"HTTPS_PROXY": A, "https_proxy": B}, "https", ("b", "https_proxy")),
    "an empty lower-case variable switches the upper-case one off": (
        {"HTTPS_PROXY": A, "https_proxy": ""},
        "https",
        None,
    ),
    "a blank variable is none": ({"HTTPS_PROXY": "  "}, "https", None),
    "ALL_PROXY comes last": ({"ALL_PROXY": A, "HTTPS_PROXY": B}, "https", ("b", "HTTPS_PROXY")),
    "ALL_PROXY serves both": ({"ALL_PROXY": A}, "http", ("a", "ALL_PROXY")),
    "all_proxy before ALL_PROXY": ({"ALL_PROXY": A, "all_proxy": B}, "http", ("b", "all_proxy")),
    "under CGI a request could set HTTP_PROXY": ({"HTTP_PROXY": A, "REQUEST_METHOD": "GET"}, "http", None),
    "under CGI http_proxy counts": ({"http_proxy": A, "REQUEST_METHOD": "GET"}, "http", ("a", "http_proxy")),
    "under CGI HTTPS_PROXY counts": ({"HTTPS_PROXY": A, "REQUEST_METHOD": "GET"}, "https", ("a", "HTTPS_PROXY")),
    "under CGI ALL_PROXY counts": ({"HTTP_PROXY": A, "ALL_PROXY": B, "REQUEST_METHOD": ""}, "http", ("b", "ALL_PROXY")),
}


@pytest.mark.parametrize("env, scheme, expected", PROXIES.values(), ids=PROXIES.keys())
def test_proxy_variables(env: dict[str, str], scheme: str, expected: tuple[str, str] | None) -> None:
    proxy = proxy_settings(env).proxy_for(scheme, "api.example.com", 443)
    assert (proxy and (proxy.host, proxy.source)) == expected


ARGUMENTS = {  # proxy=, no_proxy=; beside HTTPS_PROXY=a, NO_PROXY=example.com -> the proxy and its source
    "an argument wins over the variable": (B, None, ("b", "proxy=")),
    "None is no proxy": (None, None, None),
    "NO_PROXY counts for an argument too": (B, FROM_ENV, None),
    "no_proxy=None: nothing is reached directly": (FROM_ENV, None, ("a", "HTTPS_PROXY")),
    "no_proxy as text": (FROM_ENV, "other.org, api.example.com", None),
    "no_proxy as a list": (FROM_ENV, ["other.org", "api.example.com"], None),
    "no_proxy= replaces NO_PROXY": (FROM_ENV, "other.org", ("a", "HTTPS_PROXY")),
}


@pytest.mark.parametrize("proxy, no_proxy, expected", ARGUMENTS.values(), ids=ARGUMENTS.keys())
def test_proxy_arguments(proxy: object, no_proxy: object, expected: tuple[str, str] | None) -> None:
    env = {"HTTPS_PROXY": A, "NO_PROXY": "example.com"}
    settings = proxy_settings(env, proxy=proxy, no_proxy=no_proxy)  # type: ignore[arg-type]
    found = settings.proxy_for("https", "api.example.com", 443)
    assert (found and (found.host, found.source)) == expected


URLS = {  # value -> scheme, host, port, Proxy-Authorization
    "host and port": ("http://proxy.corp:3128", ("http", "proxy.corp", 3128, None)),
    "without a scheme": ("proxy.corp:3128", ("http", "proxy.corp", 3128, None)),
    "an address without a scheme": ("127.0.0.1:3128", ("http", "127.0.0.1", 3128, None)),
    "a name alone": ("proxy", ("http", "proxy", 80, None)),
    "the port of https": ("https://proxy.corp", ("https", "proxy.corp", 443, None)),
    "a slash behind it": ("http://proxy:1/", ("http", "proxy", 1, None)),
    "IPv6": ("http://[::1]:3128", ("http", "::1", 3128, None)),
    "user and password": ("http://u:p@proxy:1", ("http", "proxy", 1, "Basic dTpw")),
    "reserved characters": ("http://svc%40corp:p%3Aw%2Fd@h:1", ("http", "h", 1, "Basic c3ZjQGNvcnA6cDp3L2Q=")),
    "beyond ASCII, in UTF-8": ("http://u:%C3%BC@h:1", ("http", "h", 1, "Basic dTrDvA==")),
    "a user alone": ("u@h:1", ("http", "h", 1, "Basic dTo=")),
}


@pytest.mark.parametrize("value, expected", URLS.values(), ids=URLS.keys())
def test_proxy_url(value: str, expected: tuple[object, ...]) -> None:
    proxy = proxy_settings({"http_proxy": value}).http
    assert proxy is not None
    assert (proxy.scheme, proxy.host, proxy.port, proxy.authorization) == expected


BAD_URLS = {
    "SOCKS": (
        {"ALL_PROXY": "socks5://u:secret@h:1080"},
        "proxy scheme 'socks5' (from ALL_PROXY) is not supported: use an http:// or https:// proxy",
    ),
    "a port that is none": (
        {"https_proxy": "http://u:secret@h:x"},
        "the proxy 'h:x' (from https_proxy) is no URL with a valid host and port; expected http://host:port",
    ),
    "no host": (
        {"HTTP_PROXY": "http://:80"},
        "the proxy 'http://:80' (from HTTP_PROXY) names no host; expected http://host:port",
    ),
}


@pytest.mark.parametrize("env, message", BAD_URLS.values(), ids=BAD_URLS.keys())
def test_a_bad_proxy_is_named_with_its_variable(env: dict[str, str], message: str) -> None:
    with pytest.raises(MembraneError) as caught:
        proxy_settings(env)
    assert (caught.value.type, caught.value.message) == ("invalid_request", message)


def test_a_proxy_shows_no_credentials() -> None:
    settings = proxy_settings({"http_proxy": "http://user:secret-word@h:1"})
    assert repr(settings.http) == "Proxy(http://h:1 (from http_proxy))"
    assert "secret" not in repr(settings)
    assert settings.secrets == ("secret-word", "dXNlcjpzZWNyZXQtd29yZA==")


COVERED = {  # list, host, port -> reached without the proxy
    "the host itself": ("example.com", "example.com", 443, True),
    "what is below it": ("example.com", "api.example.com", 443, True),
    "not what only ends alike": ("example.com", "badexample.com", 443, False),
    "a leading dot is ignored": (".example.com", "example.com", 443, True),
    "a leading star is ignored": ("*.example.com", "api.example.com", 443, True),
    "any case, blanks trimmed": (" Example.COM , other", "API.example.com", 443, True),
    "blanks separate too": ("other example.com", "example.com", 443, True),
    "a full name's dot": ("example.com.", "api.example.com.", 443, True),
    "a star is all": ("*", "example.com", 443, True),
    "a port that matches": ("example.com:8080", "example.com", 8080, True),
    "a port that does not": ("example.com:8080", "example.com", 443, False),
    "nothing": ("", "example.com", 443, False),
    "commas only": (",,", "example.com", 443, False),
    "an address": ("10.1.2.3", "10.1.2.3", 443, True),
    "an address is not a domain": ("2.3", "10.1.2.3", 443, False),
    "a block": ("10.0.0.0/8", "10.1.2.3", 443, True),
    "outside the block": ("10.0.0.0/8", "11.1.2.3", 443, False),
    "a block with host bits": ("10.1.2.3/8", "10.9.9.9", 443, True),
    "a block says nothing of names": ("10.0.0.0/8", "ten.example", 443, False),
    "IPv6 as a number": ("::1", "0:0:0:0:0:0:0:1", 443, True),
    "IPv6 in brackets with a port": ("[::1]:80", "::1", 80, True),
    "IPv6 in brackets, another port": ("[::1]:80", "::1", 443, False),
    "an IPv6 block": ("fd00::/8", "fd12::1", 443, True),
    "localhost is not 127.0.0.1": ("localhost", "127.0.0.1", 443, False),
}


@pytest.mark.parametrize("no_proxy, host, port, covered", COVERED.values(), ids=COVERED.keys())
def test_no_proxy(no_proxy: str, host: str, port: int, covered: bool) -> None:
    assert bypasses(no_proxy, host, port) is covered


TRUST = {  # variables, ca_certs=, leading -> settings
    "nothing set: the system's": ({}, FROM_ENV, (), ()),
    "SSL_CERT_FILE first": (
        {"CURL_CA_BUNDLE": "c", "REQUESTS_CA_BUNDLE": "r", "SSL_CERT_FILE": "f"},
        FROM_ENV,
        (),
        (("f", "SSL_CERT_FILE"),),
    ),
    "file and directory together": (
        {"SSL_CERT_FILE": "f", "SSL_CERT_DIR": "d"},
        FROM_ENV,
        (),
        (("f", "SSL_CERT_FILE"), ("d", "SSL_CERT_DIR")),
    ),
    "then REQUESTS_CA_BUNDLE": (
        {"CURL_CA_BUNDLE": "c", "REQUESTS_CA_BUNDLE": "r"},
        FROM_ENV,
        (),
        (("r", "REQUESTS_CA_BUNDLE"),),
    ),
    "then CURL_CA_BUNDLE": ({"CURL_CA_BUNDLE": "c", "SSL_CERT_FILE": " "}, FROM_ENV, (), (("c", "CURL_CA_BUNDLE"),)),
    "AWS_CA_BUNDLE is not asked": ({"AWS_CA_BUNDLE": "a"}, FROM_ENV, (), ()),
    "unless it leads": (
        {"AWS_CA_BUNDLE": "a", "SSL_CERT_FILE": "f"},
        FROM_ENV,
        ("AWS_CA_BUNDLE",),
        (("a", "AWS_CA_BUNDLE"),),
    ),
    "the argument wins": ({"SSL_CERT_FILE": "f"}, Path("mine.pem"), ("AWS_CA_BUNDLE",), (("mine.pem", "ca_certs="),)),
    "None is the system's": ({"SSL_CERT_FILE": "f"}, None, (), ()),
    "settings made before": ({"SSL_CERT_FILE": "f"}, (Setting("a", "AWS_CA_BUNDLE"),), (), (("a", "AWS_CA_BUNDLE"),)),
}


@pytest.mark.parametrize("env, ca_certs, leading, expected", TRUST.values(), ids=TRUST.keys())
def test_trusted_certificates(
    env: dict[str, str], ca_certs: object, leading: tuple[str, ...], expected: object
) -> None:
    assert trust_settings(env, ca_certs=ca_certs, leading=leading) == expected  # type: ignore[arg-type]


def test_the_sentinel_reads_well() -> None:
    assert repr(FROM_ENV) == "FROM_ENV"
