"""The ways to a server: plain or TLS, directly or through a proxy. What holds for one must hold for each.

with way("tls", certificates, script) as (server, transport):
    transport.open(request(server.url("/path")), call())
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from certificates import Certificates
from raw_server import RawServer, Script, proxies

from membrane_lite.abort import AbortSignal
from membrane_lite.call import NEVER, Call, Deadlines, Limits
from membrane_lite.clock import Clock
from membrane_lite.transport.pool import Transport
from membrane_lite.wire.http import HttpRequest

WAYS = {  # name: (TLS to the server, the proxy's scheme)
    "plain": (False, ""),
    "TLS": (True, ""),
    "plain through a proxy": (False, "http"),
    "TLS through a proxy": (True, "http"),
    "TLS through a TLS proxy": (True, "https"),
}
DIRECT_WAYS = ["plain", "TLS"]


@contextmanager
def way(
    name: str, certificates: Certificates, *scripts: Script, **options: Any
) -> Iterator[tuple[RawServer, Transport]]:
    """A server that runs the scripts, and a transport that reaches it that way."""
    tls, proxy_scheme = WAYS[name]
    context = certificates.server_context()
    with ExitStack() as stack:
        server = stack.enter_context(RawServer(*scripts, context=context if tls else None))
        proxy = None
        if proxy_scheme:
            relay = RawServer(proxies, context=context if proxy_scheme == "https" else None)
            proxy = stack.enter_context(relay).url()
        settings = {"proxy": proxy, "no_proxy": None, "ca_certs": certificates.ca, **options}
        yield server, stack.enter_context(Transport(**settings))


def direct(**options: Any) -> Transport:
    """A transport that reads nothing of the environment."""
    return Transport(**{"proxy": None, "no_proxy": None, "ca_certs": None, **options})


def request(
    url: str, body: bytes = b"{}", *, method: str = "POST", headers: tuple[tuple[str, str], ...] = ()
) -> HttpRequest:
    return HttpRequest(method, url, headers, body)


def call(
    *, signal: AbortSignal | None = None, timeout_ms: float | None = 10_000, clock: Clock | None = None, **limits: float
) -> Call:
    """A call with the given limits. Ten seconds end a test that would hang."""
    clock = clock or Clock()
    ends = NEVER if timeout_ms is None else clock.monotonic() + timeout_ms / 1000
    return Call(
        clock=clock, deadlines=Deadlines(clock, Limits(**limits), call_ends=ends, call_ms=timeout_ms), signal=signal
    )
