"""Proxies: what they are told, and what is said where they refuse."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from certificates import Certificates
from raw_server import Peer, RawServer, answers, proxies
from ways import call, direct, request

from membrane_lite.errors import MembraneError
from membrane_lite.transport.pool import Transport

CREDENTIALS = "svc%40corp:p%3Aw%2Fd"  # svc@corp, p:w/d
BASIC = "Basic c3ZjQGNvcnA6cDp3L2Q="


def test_a_plain_request_is_forwarded_with_the_whole_url_and_the_credentials() -> None:
    with RawServer(answers) as proxy:
        env = {"HTTP_PROXY": f"http://{CREDENTIALS}@127.0.0.1:{proxy.port}", "NO_PROXY": ""}
        with Transport(env=env) as transport:
            for _ in range(2):
                url = "http://llm.corp.example/v1/chat/completions?a=%2f"
                assert transport.open(request(url), call()).read(10) == b"ok"
        assert [received.target for received in proxy.requests] == [url, url]
        assert proxy.requests[1].headers["host"] == "llm.corp.example"
        assert proxy.requests[1].headers["proxy-authorization"] == BASIC
        assert proxy.connections == 1


def test_a_tunnel_is_asked_for_with_the_credentials_which_the_server_does_not_see(certificates: Certificates) -> None:
    with RawServer(answers, context=certificates.server_context()) as server, RawServer(proxies) as proxy:
        url = f"http://{CREDENTIALS}@127.0.0.1:{proxy.port}"
        with direct(proxy=url, ca_certs=certificates.ca) as transport:
            target = f"https://secure.example:{server.port}/x"
            assert transport.open(request(target), call()).read(10) == b"ok"
        assert proxy.requests[0].line == f"CONNECT secure.example:{server.port} HTTP/1.1"
        assert proxy.requests[0].pairs == [
            ("Host", f"secure.example:{server.port}"),
            ("Proxy-Authorization", BASIC),
        ]
        assert server.requests[0].target == "/x"
        assert "proxy-authorization" not in server.requests[0].headers


def test_a_tunnel_to_an_ipv6_address_has_brackets() -> None:
    with RawServer(refuses("502 Bad Gateway")) as proxy, direct(proxy=proxy.url()) as transport:
        with pytest.raises(MembraneError):
            transport.open(request("https://[fd00::1]/"), call())
        assert proxy.requests[0].line == "CONNECT [fd00::1]:443 HTTP/1.1"


def test_no_proxy_reaches_the_server_directly() -> None:
    with RawServer(answers) as server:
        env = {"HTTP_PROXY": "http://127.0.0.1:9", "NO_PROXY": "10.0.0.0/8, 127.0.0.0/8"}
        with Transport(env=env) as transport:
            assert transport.open(request(server.url()), call()).read(10) == b"ok"
        assert server.requests[0].target == "/"


def test_the_repr_and_the_redactor_keep_the_password() -> None:
    with Transport(env={"HTTPS_PROXY": "http://user:secret-word@127.0.0.1:9"}) as transport:
        assert repr(transport) == (
            "Transport(proxy=http://127.0.0.1:9 (from HTTPS_PROXY), ca_certs=system, pool_size=32)"
        )
        assert transport.redactor.text("secret-word dXNlcjpzZWNyZXQtd29yZA==") == "[redacted] [redacted]"


def refuses(status: str, *headers: str) -> Callable[[Peer], None]:
    def script(peer: Peer) -> None:
        peer.request()
        peer.answer(b"a page of the proxy", status=status, headers=headers)
        peer.wait_for_client_to_close()

    return script


def closes(peer: Peer) -> None:
    peer.request()


def speaks_garbage(peer: Peer) -> None:
    peer.request()
    peer.send(b"SSH-2.0-x\r\n")


def cuts_its_head(peer: Peer) -> None:
    peer.request()
    peer.send(b"HTTP/1.1 200 OK\r\nX: y\r\n")


REFUSALS = {  # script -> retryable, words; {proxy} stands for the proxy and its variable
    "407": (
        refuses("407 Who Are You", "Proxy-Authenticate: Negotiate", 'Proxy-Authenticate: Basic realm="x"'),
        False,
        "https://server.example: the proxy {proxy} answered 407 'Who Are You'; it offers Negotiate, "
        "Basic; only Basic is sent, from user:password@ in the proxy's URL",
    ),
    "403": (
        refuses("403 Forbidden"),
        False,
        "https://server.example: the proxy {proxy} answered 403 'Forbidden'; its rules forbid this host",
    ),
    "400": (refuses("400 Bad Request"), False, "https://server.example: the proxy {proxy} answered 400 'Bad Request'"),
    "302": (refuses("302 Found"), False, "https://server.example: the proxy {proxy} answered 302 'Found'"),
    "502": (refuses("502 Bad Gateway"), True, "https://server.example: the proxy {proxy} answered 502 'Bad Gateway'"),
    "503": (refuses("503 Busy"), True, "https://server.example: the proxy {proxy} answered 503 'Busy'"),
    "504": (refuses("504 Late"), True, "https://server.example: the proxy {proxy} answered 504 'Late'"),
    "an end": (
        closes,
        True,
        "https://server.example through the proxy {proxy}: the connection was closed without an answer",
    ),
    "garbage": (
        speaks_garbage,
        True,
        "https://server.example through the proxy {proxy}: something else than HTTP was received while connecting",
    ),
    "a head that is cut": (
        cuts_its_head,
        True,
        "https://server.example through the proxy {proxy}: the head of the answer was cut off while connecting",
    ),
}  # fmt: skip


@pytest.mark.parametrize("script, retryable, says", REFUSALS.values(), ids=REFUSALS.keys())
def test_a_tunnel_that_is_refused(script: Callable[[Peer], None], retryable: bool, says: str) -> None:
    with (
        RawServer(script) as proxy,
        Transport(env={"HTTPS_PROXY": f"http://user:secret@127.0.0.1:{proxy.port}"}) as transport,
    ):
        with pytest.raises(MembraneError) as caught:
            transport.open(request("https://server.example/"), call())
        error = caught.value
        assert (error.type, error.retryable, error.http_status) == ("network", retryable, None)
        assert error.message.startswith(says.replace("{proxy}", f"http://127.0.0.1:{proxy.port} (from HTTPS_PROXY)"))
        assert "secret" not in error.message


def test_a_407_to_a_forwarded_request_is_the_proxys_as_well() -> None:
    script = refuses("407 Who", "Proxy-Authenticate: NTLM")
    with RawServer(script) as proxy, direct(proxy=proxy.url()) as transport, pytest.raises(MembraneError) as caught:
        transport.open(request("http://server.example/"), call())
    assert (caught.value.type, caught.value.retryable) == ("network", False)
    assert "answered 407 'Who'; it offers NTLM" in caught.value.message


def test_any_other_status_of_a_forwarded_request_is_the_answer() -> None:
    with RawServer(refuses("403 Forbidden")) as proxy, direct(proxy=proxy.url()) as transport:
        stream = transport.open(request("http://server.example/"), call())
        assert (stream.status, stream.read(100)) == (403, b"a page of the proxy")


def test_a_proxy_that_does_not_answer_is_named_with_its_variable() -> None:
    with Transport(env={"ALL_PROXY": "127.0.0.1:9"}) as transport, pytest.raises(MembraneError) as caught:
        transport.open(request("https://server.example/"), call())
    assert (caught.value.type, caught.value.retryable) == ("network", True)
    assert caught.value.message.startswith(
        "https://server.example through the proxy http://127.0.0.1:9 (from ALL_PROXY): the connection was refused"
    )


def open_through_a_proxy(host: str, certificates: Certificates) -> tuple[bytes, RawServer]:
    """Any name leads to 127.0.0.1; the certificate there is for secure.example."""
    with RawServer(answers, context=certificates.server_context()) as server, RawServer(proxies) as proxy:
        transport = direct(proxy=proxy.url(), ca_certs=certificates.ca)
        with transport:
            return transport.open(request(f"https://{host}:{server.port}"), call()).read(10), server


@pytest.mark.parametrize("host", ["secure.example", "SECURE.example", "secure.example."])
def test_the_servers_certificate_is_verified_through_the_proxy(host: str, certificates: Certificates) -> None:
    body, server = open_through_a_proxy(host, certificates)
    assert (body, server.requests[0].headers["host"]) == (b"ok", f"{host.lower()}:{server.port}")


def test_and_refused_where_it_is_for_another_name(certificates: Certificates) -> None:
    with pytest.raises(MembraneError) as caught:
        open_through_a_proxy("unnamed.example", certificates)
    assert (caught.value.type, caught.value.retryable) == ("network", False)
    assert "certificate verify failed: Hostname mismatch" in caught.value.message
