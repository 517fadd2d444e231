"""Transport: requests in, byte streams out, over connections that are kept between calls.

Reading order: Transport.open() takes a kept connection or makes one, and sends; Pool keeps what one process has open.
A kept connection that turns out to be dead before a byte of the answer is replaced once, by a fresh one, at once: the
server had closed it in the meantime. A fresh connection that fails is a failed call, which others may send again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from math import isfinite
from typing import Final, NamedTuple

from ..call import Call
from ..errors import MembraneError, wrong_type
from ..redactor import Redactor
from ..wire.http import HttpRequest
from . import failures
from .byte_stream import ByteStream
from .connection import Connection
from .environment import FROM_ENV, NoProxyArgument, ProxyArgument, TrustArgument, proxy_settings, trust_settings
from .lease import Lease
from .route import Outgoing, Route, prepare, read_url
from .tls import ClientContext, check_trust, read_identity

MAX_RESPONSE_BYTES: Final = 256 * 1024 * 1024
LONGEST_IDLE_S: Final = 60.0  # common front ends close what has been idle for 60 to 75 s


class Transport:
    """Sends HTTP requests for any number of adapters and threads; holds the connections they share.

    proxy: the URL of an HTTP proxy for every request, None for none. no_proxy: hosts that are reached without it, as in
    the variable NO_PROXY, or a list of them. ca_certs: a file or directory of certificates, in PEM form, to trust
    instead of the system's; None for the system's. For these three FROM_ENV, the default, means what the environment
    says when the Transport is made: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY; SSL_CERT_FILE and SSL_CERT_DIR,
    REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE. Verification cannot be turned off.
    client_cert, client_key, client_key_password: a certificate to show to servers that ask for one.
    pool_size: how many idle connections are kept. connect_timeout_ms: for look-up, TCP, proxy and TLS together.
    read_timeout_ms: the default idle limit of calls that state none. max_response_bytes: of a decoded body.
    env: the variables to read instead of the process's, now.

    Raises MembraneError("invalid_request"), naming argument or variable, for a setting that cannot be used.
    Threads may share it; a forked child makes connections of its own. close() it, or use it in a `with`.
    """

    def __init__(
        self,
        *,
        proxy: ProxyArgument = FROM_ENV,
        no_proxy: NoProxyArgument = FROM_ENV,
        ca_certs: TrustArgument = FROM_ENV,
        client_cert: str | os.PathLike[str] | None = None,
        client_key: str | os.PathLike[str] | None = None,
        client_key_password: str | None = None,
        pool_size: int = 32,
        connect_timeout_ms: float = 10_000,
        read_timeout_ms: float = 600_000,
        max_response_bytes: int = MAX_RESPONSE_BYTES,
        env: Mapping[str, str] | None = None,
    ) -> None:
        env = dict(os.environ if env is None else env)  # plain: on Windows os.environ answers to names in either case
        self._proxies: Final = proxy_settings(env, proxy=proxy, no_proxy=no_proxy)
        self._trust: Final = check_trust(trust_settings(env, ca_certs=ca_certs))
        self._identity: Final = read_identity(client_cert, client_key, client_key_password)
        self._pool_size: Final = int(_positive("pool_size", pool_size))
        self.connect_timeout_ms: Final = _positive("connect_timeout_ms", connect_timeout_ms)
        self.read_timeout_ms: Final = _positive("read_timeout_ms", read_timeout_ms)
        self.max_response_bytes: Final = int(_positive("max_response_bytes", max_response_bytes))
        self.redactor = Redactor([*self._proxies.secrets, client_key_password])
        self._closed = False
        self._pools: Final[dict[int, Pool]] = {}

    def __repr__(self) -> str:
        proxies = {str(proxy) for proxy in (self._proxies.http, self._proxies.https) if proxy is not None}
        trusted = [f"{setting.value} (from {setting.source})" for setting in self._trust]
        return (
            f"Transport(proxy={', '.join(sorted(proxies)) or None}, ca_certs={', '.join(trusted) or 'system'}, "
            f"pool_size={self._pool_size}{', closed' if self._closed else ''})"
        )

    def open(self, request: HttpRequest, call: Call) -> ByteStream:
        """Send `request` and wait for the head of its answer, whatever its status; a redirect is not followed.

        Waits end with the deadlines and the signal of `call`. The caller ends the stream it is given with finish()
        or close(). Raises MembraneError: network, timeout, abort, invalid_request.
        """
        origin, target = read_url(request.url)
        route = Route(origin, self._proxies.proxy_for(*origin))
        outgoing = prepare(request, route, target)
        call.check()  # before a kept connection is taken for nothing
        pool = self._pool()
        lease = pool.lease(call, route, connect_ms=self.connect_timeout_ms)
        try:
            return self._exchange(pool, lease, route, outgoing)
        except BaseException:
            pool.end(lease)
            raise

    def _exchange(self, pool: Pool, lease: Lease, route: Route, outgoing: Outgoing) -> ByteStream:
        kept = pool.take(route, lease.now())
        if kept is not None:
            try:
                return self._exchange_over(kept, pool, lease, outgoing)
            except MembraneError as error:
                if error.type != "network" or kept.answered:
                    raise
        return self._exchange_over(Connection(route, pool.context), pool, lease, outgoing)

    def _exchange_over(self, connection: Connection, pool: Pool, lease: Lease, outgoing: Outgoing) -> ByteStream:
        try:
            with lease:
                connection.lend(lease)
                response = connection.exchange(outgoing)
                return ByteStream(connection, response, lease, pool, max_bytes=self.max_response_bytes)
        except BaseException:
            lease.drop()
            connection.discard()
            raise

    def close(self) -> None:
        """Close idle connections, and end running calls as aborted. Idempotent; open() is refused from now on."""
        self._closed = True
        self._pool().close()

    def __enter__(self) -> Transport:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _pool(self) -> Pool:
        """This process's own: locks and connections of a parent are of no use in its child."""
        pid = os.getpid()
        if pid not in self._pools:
            context = ClientContext(self._trust, self._identity)
            self._pools.setdefault(pid, Pool(self._pool_size, context, closed=self._closed))
            for other in [key for key in list(self._pools) if key != pid]:
                inherited = self._pools.pop(other, None)
                if inherited is not None:
                    inherited.forget()
        return self._pools[pid]


class Kept(NamedTuple):
    """An idle connection, and the instant of Clock.monotonic() since when it is one."""

    connection: Connection
    since: float

    def is_fresh(self, now: float) -> bool:
        return 0 <= now - self.since <= LONGEST_IDLE_S


class Pool:
    """What one process has open: idle connections, and the leases of the calls that run.

    One lock guards the two collections; connections are settled, closed and made outside of it. Nobody waits for a
    connection: there are as many as calls in flight, and `size` of them are kept when they are idle.
    """

    def __init__(self, size: int, context: ClientContext, *, closed: bool) -> None:
        self.context: Final = context
        self._size: Final = size
        self._pid: Final = os.getpid()
        # RLock: close() may run in a signal handler that interrupts a thread inside.
        self._lock: Final = threading.RLock()
        self._idle: list[Kept] = []  # the one used last stands last
        self._leases: Final[set[Lease]] = set()
        self._closed = closed

    def lease(self, call: Call, route: Route, *, connect_ms: float) -> Lease:
        """A call begins; end() or take_back() says that it is over."""
        lease = Lease(call, route, connect_ms=connect_ms, pid=self._pid)
        with self._lock:
            if not self._closed:
                self._leases.add(lease)
                return lease
        lease.release()
        raise failures.transport_closed()

    def end(self, lease: Lease) -> bool:
        """True if the call may have been aborted."""
        with self._lock:
            self._leases.discard(lease)
        return lease.release()

    def take(self, route: Route, now: float) -> Connection | None:
        """The connection used last on this route that is still good; those found not to be are closed."""
        while True:
            kept = self._pop(route)
            if kept is None:
                return None
            if kept.is_fresh(now) and kept.connection.settle():
                return kept.connection
            kept.connection.discard()

    def _pop(self, route: Route) -> Kept | None:
        with self._lock:
            for kept in reversed(self._idle):
                if kept.connection.route == route:
                    self._idle.remove(kept)
                    return kept
        return None

    def take_back(self, connection: Connection, lease: Lease, *, reusable: bool) -> None:
        """A stream is over. One that a child inherited is closed and no more: its lock may be held for ever."""
        if self._pid != os.getpid():
            connection.discard()
        elif not self.end(lease) and reusable and connection.reusable:
            self._keep(connection, lease.now())
        else:
            connection.discard()

    def _keep(self, connection: Connection, now: float) -> None:
        connection.set_aside()
        with self._lock:
            known = [*self._idle, Kept(connection, now)]
            fresh = [kept for kept in known if kept.is_fresh(now) and not self._closed]
            self._idle = fresh[-self._size :]
            dropped = [kept for kept in known if kept not in self._idle]
        for kept in dropped:
            kept.connection.discard()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            leases = list(self._leases)
        for lease in leases:
            lease.close()
        for kept in idle:
            kept.connection.discard()

    def forget(self) -> None:
        """The pool is a parent's: close this process's descriptors, which the parent's connections survive."""
        for kept in self._idle:
            kept.connection.discard()


def _positive(argument: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not (isfinite(value) and value > 0):
        raise wrong_type(argument, value, "a number above 0")
    return value
