"""Transport(...): its arguments, and what it says of them."""

from __future__ import annotations

import inspect
import math
from typing import Any

import pytest

from membrane_lite.errors import MembraneError
from membrane_lite.transport.environment import FROM_ENV
from membrane_lite.transport.interface import OpensRequests
from membrane_lite.transport.pool import Transport

DEFAULTS = {
    "proxy": FROM_ENV,
    "no_proxy": FROM_ENV,
    "ca_certs": FROM_ENV,
    "client_cert": None,
    "client_key": None,
    "client_key_password": None,
    "pool_size": 32,
    "connect_timeout_ms": 10_000,
    "read_timeout_ms": 600_000,
    "max_response_bytes": 256 * 1024 * 1024,
    "env": None,
}


def test_the_defaults() -> None:
    parameters = inspect.signature(Transport).parameters.values()
    assert {parameter.name: parameter.default for parameter in parameters} == DEFAULTS
    assert {parameter.kind for parameter in parameters} == {inspect.Parameter.KEYWORD_ONLY}


def test_what_an_adapter_reads() -> None:
    with Transport(env={}, read_timeout_ms=1500, connect_timeout_ms=2500) as transport:
        opener: OpensRequests = transport
        assert opener.redactor.text("nothing to hide") == "nothing to hide"
        assert (transport.read_timeout_ms, transport.connect_timeout_ms) == (1500, 2500)


@pytest.mark.parametrize("name", ["pool_size", "connect_timeout_ms", "read_timeout_ms", "max_response_bytes"])
@pytest.mark.parametrize("value", [0, -1, math.inf, math.nan, "10", None, True])
def test_a_number_that_is_none(name: str, value: object) -> None:
    options: dict[str, Any] = {name: value}
    with pytest.raises(MembraneError) as caught:
        Transport(env={}, **options)
    assert caught.value.type == "invalid_request"
    assert caught.value.message.startswith(f"{name}: found ")
    assert caught.value.message.endswith("expected a number above 0")


BAD = {
    "a proxy that is no text": (
        {"proxy": b"http://u:secret@h:1"},
        "proxy: found bytes; expected a URL, None or FROM_ENV",
    ),
    "a SOCKS proxy": (
        {"proxy": "socks5h://u:secret@h:1"},
        "proxy scheme 'socks5h' (from proxy=) is not supported: use an http:// or https:// proxy",
    ),
}


@pytest.mark.parametrize("options, message", BAD.values(), ids=BAD.keys())
def test_a_setting_that_cannot_be_used_is_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(MembraneError) as caught:
        Transport(env={}, **options)
    assert (caught.value.type, caught.value.message) == ("invalid_request", message)


def test_its_repr_tells_what_it_uses() -> None:
    transport = Transport(env={"HTTP_PROXY": "http://a:1", "https_proxy": "b:2"}, pool_size=4)
    assert repr(transport) == (
        "Transport(proxy=http://a:1 (from HTTP_PROXY), http://b:2 (from https_proxy), ca_certs=system, pool_size=4)"
    )
    transport.close()
    assert repr(transport).endswith("pool_size=4, closed)")
