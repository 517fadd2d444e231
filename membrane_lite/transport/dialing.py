"""Host and port in, a connected TCP socket out, its handle held by the lease.

Nothing can wake or time out a look-up of a name, so it runs in a daemon thread of its own, which is left behind when
the call ends first; it ends when the resolver gives up. An address in the URL needs no look-up and no thread.
"""

from __future__ import annotations

import os
import selectors
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from errno import EINPROGRESS, EINTR, EWOULDBLOCK
from typing import Any, Final

from .lease import Lease

# How long one wait may be where an abort cannot be trusted to end it: in a look-up, and for a connect on systems whose
# shutdown() refuses a socket that is not connected yet.
SLICE_S: Final = 0.05
UNDER_WAY: Final = (0, EINPROGRESS, EWOULDBLOCK, EINTR)

Address = tuple[Any, Any, int, str, Any]  # family, kind, protocol, canonical name, socket address
Resolver = Callable[..., "list[Address]"]  # as socket.getaddrinfo
# Not the default selector: epoll and kqueue take a descriptor of their own.
Selector: Final[type[selectors.BaseSelector]] = getattr(selectors, "PollSelector", selectors.SelectSelector)


def dial(
    host: str, port: int, lease: Lease, *, resolver: Resolver = socket.getaddrinfo
) -> tuple[socket.socket, socket.socket]:
    """The first address that answers, as (socket, handle). Raises the last address's failure.

    Addresses are tried in turn. Each but the last has at most a third of the limit for connecting, so that a silent
    one leaves time for the next.
    """
    addresses = resolve(host, port, lease, resolver)
    for address in addresses[:-1]:
        with suppress(OSError):
            return _dial_address(address, lease, lease.share())
    return _dial_address(addresses[-1], lease, lease.left())


def resolve(host: str, port: int, lease: Lease, resolver: Resolver = socket.getaddrinfo) -> list[Address]:
    """The addresses of `host`, in the resolver's order."""
    with suppress(socket.gaierror):  # it is a name
        return resolver(host, port, 0, socket.SOCK_STREAM, 0, socket.AI_NUMERICHOST)
    looking_up = _LookUp(host, port, resolver)
    threading.Thread(target=looking_up.run, name=f"{__name__}-resolver", daemon=True).start()
    return looking_up.wait(lease)


class _LookUp:
    """The one thing two threads share: the resolver's answer, or what it raised."""

    def __init__(self, host: str, port: int, resolver: Resolver) -> None:
        self._question: Final = (host, port)
        self._resolver: Final = resolver
        self._done: Final = threading.Event()
        self._addresses: list[Address] = []
        # A list, to be emptied: an exception that its own traceback leads back to would live until the collector runs.
        self._raised: Final[list[Exception]] = []

    def run(self) -> None:
        try:
            self._addresses = self._resolver(*self._question, 0, socket.SOCK_STREAM)
        except Exception as exc:
            self._raised.append(exc)
        self._done.set()

    def wait(self, lease: Lease) -> list[Address]:
        budget = lease.left()
        while not self._done.wait(min(budget, SLICE_S)):
            budget -= SLICE_S
            if min(budget, lease.left()) <= 0:
                raise lease.timed_out()
        lease.check()
        if self._raised:
            raise self._raised.pop()
        if not self._addresses:
            raise socket.gaierror(socket.EAI_NONAME, "the name has no address")
        return self._addresses


def _dial_address(address: Address, lease: Lease, budget: float) -> tuple[socket.socket, socket.socket]:
    family, kind, protocol, _, where = address
    sock = socket.socket(family, kind, protocol)
    try:
        handle = sock.dup()
    except BaseException:
        sock.close()
        raise
    try:
        lease.hold(handle)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        _connect(sock, where, lease, budget)
    except BaseException:
        lease.drop()
        sock.close()
        handle.close()
        raise
    return sock, handle


def _connect(sock: socket.socket, where: Any, lease: Lease, budget: float) -> None:
    """Connect within `budget` seconds, else socket.timeout; waits are counted, so that any clock may be used."""
    sock.setblocking(False)
    code = sock.connect_ex(where)
    if code not in UNDER_WAY:
        raise OSError(code, os.strerror(code))
    while not _is_connected(sock, min(budget, SLICE_S)):
        lease.left()
        budget -= SLICE_S
        if budget <= 0:
            raise socket.timeout("timed out")
    lease.check()


def _is_connected(sock: socket.socket, seconds: float) -> bool:
    """Wait for the outcome. The error is asked for even after a wait in vain: not every system reports it as one."""
    with Selector() as selector:
        selector.register(sock, selectors.EVENT_WRITE)
        writable = bool(selector.select(seconds))
    code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if code:
        raise OSError(code, os.strerror(code))
    return writable
