"""Rotating credentials: the caller's resolver is asked for a bearer token for every attempt, and nothing is remembered.

    resolver(*, force_refresh, signal) -> Credentials(token, headers={}), or a mapping of that shape

    request --> resolver(force_refresh=False) --> sent --> 401 --> resolver(force_refresh=True) --> sent once more

The second send belongs to the same attempt. Any other refusal, and a second 401, is final. The token goes last, over
every Authorization that stands in a header; the resolver's own headers (an account's id) go with it. Serializing
refreshes is the resolver's business: calls in many threads ask it at the same time.

A resolver has no timeout of its own, so it runs in a daemon thread. When the call's deadline or its signal ends the
wait, that thread is left behind, `signal` fires for it, and nothing is sent.
"""

from __future__ import annotations

import inspect
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from ..abort import AbortController
from ..call import Call
from ..clock import Clock
from ..errors import MembraneError
from ..redactor import Redactor
from ..wire.http import HeaderPairs, HttpRequest, header_pairs, merged
from .keys import PLACEHOLDER, read_key

UNAUTHORIZED: Final = 401
SLICE_S: Final = 0.05  # how long one wait is, where the clock of the deadlines may run otherwise than this machine's
TOKENS_KNOWN: Final = 64  # of the latest tokens, so that none of them is shown: about as many as calls run at a time
FIELDS: Final = ("token", "headers")

EXPECTED: Final = "expected Credentials(token, headers={}) or a mapping of that shape"


class Credentials(NamedTuple):
    """A bearer token, and headers that belong to it."""

    token: str
    headers: Mapping[str, str] = {}

    def __repr__(self) -> str:
        return f"Credentials(token='[redacted]', headers={list(self.headers)})"


Resolver = Callable[..., Any]  # resolver(*, force_refresh: bool, signal: AbortSignal) -> Credentials or a mapping


def token_resolver(token: Callable[..., str]) -> Resolver:
    """A resolver of a function that gives just the token; it may take force_refresh and signal, or nothing."""
    takes = inspect.signature(token).parameters
    named = [name for name in ("force_refresh", "signal") if name in takes]
    everything = any(parameter.kind is parameter.VAR_KEYWORD for parameter in takes.values())

    def resolve(**given: Any) -> Credentials:
        return Credentials(token(**{name: value for name, value in given.items() if everything or name in named}))

    return resolve


class ResolverAuth:
    """Asks a resolver. replaces: headers, beside Authorization, that may not stay beside its token."""

    def __init__(self, resolver: Resolver, *, replaces: Sequence[str] = ()) -> None:
        if not callable(resolver):
            raise MembraneError(
                "invalid_request",
                f"credentials: found {type(resolver).__name__}; expected a function (*, force_refresh, signal)",
            )
        self._resolver: Final = resolver
        self._replaced: Final = ("authorization", *replaces)
        self._known: Final[deque[str]] = deque(maxlen=TOKENS_KNOWN)
        self._renewing: Final[set[int]] = set()  # calls, by id(), whose next request is their second

    @property
    def secrets(self) -> list[str]:
        return list(self._known)

    def authorized(self, request: HttpRequest, call: Call) -> HttpRequest:
        second = id(call) in self._renewing
        self._renewing.discard(id(call))
        call.deadlines.request_sent()  # what is waited for the first event is waited for here, too
        given = read_credentials(self._resolved(call, force_refresh=second))
        if given.token not in self._known:
            self._known.append(given.token)
        return self._with(request, given)

    def shown(self, request: HttpRequest, clock: Clock) -> HttpRequest:
        return self._with(request, Credentials(PLACEHOLDER))

    def renews(self, refusal: MembraneError, headers: HeaderPairs, call: Call) -> bool:
        """Once for an attempt: HttpAdapter asks only about its first request."""
        if refusal.http_status == UNAUTHORIZED:
            self._renewing.add(id(call))
        return refusal.http_status == UNAUTHORIZED

    def _with(self, request: HttpRequest, given: Credentials) -> HttpRequest:
        pairs = merged(request.headers, header_pairs(given.headers, "credentials.headers"))
        kept = [(name, value) for name, value in pairs if name.lower() not in self._replaced]
        headers = [*kept, ("Authorization", f"Bearer {given.token}")]
        return HttpRequest(request.method, request.url, headers, request.body)

    def _resolved(self, call: Call, *, force_refresh: bool) -> Any:
        """What the resolver gives. Its own MembraneError stays as it is; anything else it raises is of type auth."""
        call.check()
        asked = _Question(self._resolver, force_refresh)
        try:
            return asked.answer(call)
        except _ResolverFailed as failed:
            exc = failed.exc
        if isinstance(exc, MembraneError) or not isinstance(exc, Exception):
            raise exc
        said = Redactor(self._known).text(str(exc))
        raise MembraneError(
            "auth",
            f"credentials: the resolver failed with {type(exc).__name__}: {said}; nothing was sent",
            raw_error={"name": type(exc).__name__, "message": said},
        ) from exc


class _ResolverFailed(Exception):
    """What the resolver raised, kept apart from what ended the wait for it."""

    def __init__(self, exc: BaseException) -> None:
        super().__init__()
        self.exc: Final = exc


class _Question:
    """One call of a resolver, in a thread of its own."""

    def __init__(self, resolver: Resolver, force_refresh: bool) -> None:
        self._resolver: Final = resolver
        self._force_refresh: Final = force_refresh
        self._controller: Final = AbortController()
        self._wake: Final = threading.Event()
        self._given: Final[list[Any]] = []
        self._raised: Final[list[BaseException]] = []

    def answer(self, call: Call) -> Any:
        threading.Thread(target=self._run, name=f"{__name__}-resolver", daemon=True).start()
        if call.signal is not None:
            call.signal.add_callback(self._wake.set)
        try:
            while not self._wake.wait(min(call.deadlines.left(), SLICE_S)):
                call.check()
            call.check()
        except BaseException:
            with suppress(Exception):  # of the resolver's own callbacks: nobody waits for them any more
                self._controller.abort("the call ended before its credentials were there")
            raise
        finally:
            if call.signal is not None:
                call.signal.remove_callback(self._wake.set)
        if self._raised:
            raise _ResolverFailed(self._raised.pop())
        return self._given[0]

    def _run(self) -> None:
        try:
            self._given.append(self._resolver(force_refresh=self._force_refresh, signal=self._controller.signal))
        except BaseException as exc:  # SystemExit too: somebody waits
            self._raised.append(exc)
        self._wake.set()


def read_credentials(given: Any) -> Credentials:
    """What a resolver gave, checked. Raises "auth" and shows nothing of it."""
    token: Any
    headers: Any
    if isinstance(given, Credentials):
        token, headers = given
    elif isinstance(given, Mapping) and set(given) <= set(FIELDS):
        token, headers = given.get("token"), given.get("headers")
    else:
        raise MembraneError("auth", f"credentials: the resolver gave {type(given).__name__}; {EXPECTED}")
    checked = read_key(token if token is not None else "", "credentials.token", None, {})
    if checked is None:
        raise MembraneError("auth", "credentials.token: blank or missing; expected a bearer token (nothing was sent)")
    if headers is not None and not isinstance(headers, Mapping):
        raise MembraneError("auth", f"credentials.headers: found {type(headers).__name__}; expected a mapping")
    return Credentials(checked, dict(headers or {}))
