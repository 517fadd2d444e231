"""Certificates: which are trusted, which are shown, and what is said where they do not do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from certificates import PASSWORD, Certificates
from raw_server import Peer, RawServer, answers
from ways import call, direct, request

from membrane_lite.errors import MembraneError
from membrane_lite.transport.pool import Transport

HANDSHAKE_FAILURE = b"\x15\x03\x03\x00\x02\x02\x28"  # TLS alert, fatal, handshake_failure (RFC 8446, 6)


def refusal(transport: Transport, url: str) -> MembraneError:
    with transport, pytest.raises(MembraneError) as caught:
        transport.open(request(url), call()).read(10)
    return caught.value


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_name_and_an_address_are_verified(host: str, certificates: Certificates) -> None:
    context = certificates.server_context()
    with RawServer(answers, context=context) as server, direct(ca_certs=certificates.ca) as transport:
        assert transport.open(request(server.url(host=host)), call()).read(10) == b"ok"


def test_the_variable_names_the_certificates_too(certificates: Certificates) -> None:
    context = certificates.server_context()
    with RawServer(answers, context=context) as server, Transport(env={"CURL_CA_BUNDLE": certificates.ca}) as transport:
        assert transport.open(request(server.url()), call()).read(10) == b"ok"
        assert f"ca_certs={certificates.ca} (from CURL_CA_BUNDLE)" in repr(transport)


CERTIFICATES: dict[str, tuple[Callable[[Certificates], str], str]] = {
    "self-signed": (lambda made: made.self_signed, "self"),
    "of another name": (lambda made: made.signed("wrong", "subjectAltName=DNS:other.example"), "mismatch"),
    "expired": (lambda made: made.signed("expired", "subjectAltName=IP:127.0.0.1", days=-1), "expired"),
}


@pytest.mark.parametrize("make, reason", CERTIFICATES.values(), ids=CERTIFICATES.keys())
def test_a_certificate_that_is_refused(
    make: Callable[[Certificates], str], reason: str, certificates: Certificates
) -> None:
    with RawServer(answers, context=certificates.server_context(make(certificates))) as server:
        error = refusal(direct(ca_certs=certificates.ca), server.url())
        assert (error.type, error.retryable) == ("network", False)
        assert error.message.startswith(f"{server.url('')}: the server's certificate was refused while connecting (")
        assert reason in error.message
        assert error.message.endswith(
            "for a private issuer pass ca_certs= or set SSL_CERT_FILE; verification cannot be turned off"
        )
        assert (server.connections, server.requests) == (1, [])


def test_a_private_issuer_is_not_trusted_unasked(certificates: Certificates) -> None:
    with RawServer(answers, context=certificates.server_context()) as server:
        error = refusal(direct(), server.url())
        assert "certificate verify failed: unable to get local issuer certificate" in error.message


def test_https_to_an_http_port() -> None:
    def speaks_http(peer: Peer) -> None:
        peer.sock.recv(10)
        peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with RawServer(speaks_http) as server:
        error = refusal(direct(), f"https://127.0.0.1:{server.port}")
    assert (error.type, error.retryable) == ("network", False)
    assert "is it an https:// server, on this port?" in error.message


def test_http_to_an_https_port(certificates: Certificates) -> None:
    with RawServer(answers, context=certificates.server_context()) as server:
        error = refusal(direct(), f"http://127.0.0.1:{server.port}")
    assert error.type == "network"


def test_an_alert_in_the_handshake() -> None:
    def refuses(peer: Peer) -> None:
        peer.sock.recv(65536)
        peer.send(HANDSHAKE_FAILURE)
        peer.wait_for_client_to_close()

    with RawServer(refuses) as server:
        error = refusal(direct(), f"https://127.0.0.1:{server.port}")
    assert (error.type, error.retryable) == ("network", False)
    assert "the TLS handshake failed while connecting" in error.message


ENDINGS: dict[str, Callable[[Peer], None]] = {"closed": Peer.close, "reset": Peer.reset}


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS.keys())
def test_a_handshake_that_breaks_off_may_be_tried_again(ending: Callable[[Peer], None]) -> None:
    def breaks_off(peer: Peer) -> None:
        peer.sock.recv(65536)
        ending(peer)

    with RawServer(breaks_off) as server:
        error = refusal(direct(), f"https://127.0.0.1:{server.port}")
    assert (error.type, error.retryable) == ("network", True)
    assert "while connecting" in error.message


# Certificates of the client.

IDENTITIES: dict[str, Callable[[Certificates], dict[str, str]]] = {
    "certificate and key": lambda made: {"client_cert": made.client, "client_key": made.key(made.client)},
    "an encrypted key": lambda made: {
        "client_cert": made.client,
        "client_key": made.locked_key,
        "client_key_password": PASSWORD,
    },
}


@pytest.mark.parametrize("identity", IDENTITIES.values(), ids=IDENTITIES.keys())
def test_a_client_certificate_is_shown(
    identity: Callable[[Certificates], dict[str, str]], certificates: Certificates
) -> None:
    context = certificates.server_context(client_ca=certificates.ca)
    options = {"ca_certs": certificates.ca, **identity(certificates)}
    with RawServer(answers, context=context) as server, direct(**options) as transport:
        assert transport.open(request(server.url()), call()).read(10) == b"ok"
        assert PASSWORD not in repr(transport)


def test_the_password_of_the_key_is_a_secret(certificates: Certificates) -> None:
    with direct(
        client_cert=certificates.client, client_key=certificates.locked_key, client_key_password=PASSWORD
    ) as transport:
        assert transport.redactor.text(f"pass {PASSWORD}.") == "pass [redacted]."


def test_a_client_certificate_that_is_missing(certificates: Certificates) -> None:
    context = certificates.server_context(client_ca=certificates.ca)
    with RawServer(answers, context=context) as server:
        error = refusal(direct(ca_certs=certificates.ca), server.url())
    # With TLS 1.3 the refusal comes after the handshake; a reset may overtake it, and the reason with it.
    assert error.type == "network"
    assert "client_cert=" in error.message or "connection" in error.message


UNUSABLE: dict[str, tuple[Callable[[Certificates, Path], dict[str, str]], str]] = {
    "ca_certs that is no file": (
        lambda made, folder: {"ca_certs": str(folder / "none.pem")},
        "ca_certs ('{folder}/none.pem'): cannot be read",
    ),
    "client_cert that is no file": (
        lambda made, folder: {"client_cert": str(folder / "none.pem")},
        "client_cert ('{folder}/none.pem'): cannot be read",
    ),
    "client_key that is no file": (
        lambda made, folder: {"client_cert": made.client, "client_key": str(folder / "none.key")},
        "client_key ('{folder}/none.key'): cannot be read",
    ),
    "client_key alone": (
        lambda made, folder: {"client_key": made.key(made.client)},
        "client_key, client_key_password: given without client_cert",
    ),
}


@pytest.mark.parametrize("options, start", UNUSABLE.values(), ids=UNUSABLE.keys())
def test_a_path_that_cannot_be_read_is_named_at_once(
    options: Callable[[Certificates, Path], dict[str, str]], start: str, certificates: Certificates, tmp_path: Path
) -> None:
    with pytest.raises(MembraneError) as caught:
        direct(**options(certificates, tmp_path))
    assert caught.value.type == "invalid_request"
    assert caught.value.message.startswith(start.replace("{folder}", str(tmp_path)))


VARIABLES = ["SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"]


@pytest.mark.parametrize("name", VARIABLES)
def test_a_variable_that_names_nothing_is_named(name: str, tmp_path: Path) -> None:
    path = str(tmp_path / "none")
    with pytest.raises(MembraneError) as caught:
        Transport(env={name: path})
    assert caught.value.type == "invalid_request"
    assert caught.value.message.startswith(f"{name} ({path!r}): cannot be read")


def test_of_a_list_of_directories_one_must_exist(tmp_path: Path) -> None:
    Transport(env={"SSL_CERT_DIR": f"{tmp_path / 'none'}:{tmp_path}"}).close()


NO_CERTIFICATES = {
    "an empty file": b"",
    "no PEM": b"hello",
}


@pytest.mark.parametrize("content", NO_CERTIFICATES.values(), ids=NO_CERTIFICATES.keys())
def test_a_file_without_certificates_is_named_before_anything_is_sent(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(content)
    with RawServer(answers) as server:
        error = refusal(direct(ca_certs=tmp_path / "ca.pem"), f"https://127.0.0.1:{server.port}")
        assert (error.type, server.requests) == ("invalid_request", [])
        assert error.message.startswith(f"ca_certs ('{tmp_path / 'ca.pem'}'): cannot be loaded (")


KEYS: dict[str, Callable[[Certificates], dict[str, str]]] = {
    "a key of another certificate": lambda made: {"client_key": made.key(made.server)},
    "an encrypted key without its password": lambda made: {"client_key": made.locked_key},
    "a wrong password": lambda made: {"client_key": made.locked_key, "client_key_password": "wrong-password"},
    "no key": lambda made: {},
}


@pytest.mark.parametrize("options", KEYS.values(), ids=KEYS.keys())
def test_a_key_that_does_not_fit_is_named_before_anything_is_sent(
    options: Callable[[Certificates], dict[str, str]], certificates: Certificates
) -> None:
    with RawServer(answers) as server:
        transport = direct(client_cert=certificates.client, **options(certificates))
        error = refusal(transport, f"https://127.0.0.1:{server.port}")
        assert (error.type, server.requests) == ("invalid_request", [])
        assert error.message.startswith(f"client_cert ({certificates.client!r}): certificate and key cannot be loaded")
        assert "wrong-password" not in error.message
