"""Requests signed with AWS credentials; and where those are kept, and asked for anew before they expire.

The chain may wait for a process or a network, so it runs in a daemon thread. A call waits for it only as long as its
own deadline and signal allow; the thread goes on, and what it finds is there for the next call. Threads that need
credentials at the same time wait for the same search.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import Final

from ..call import Call
from ..clock import Clock
from ..errors import MembraneError
from ..wire.http import HeaderPairs, HttpRequest, header, merged
from ..wire.sigv4 import amz_date, sign
from .aws import Credentials

REFRESH_BEFORE_S: Final = 300.0
SLICE_S: Final = 0.05  # an abort ends a wait for the search within this time
PLACEHOLDER: Final = Credentials("YOUR_ACCESS_KEY_ID", "YOUR_SECRET_ACCESS_KEY")

# Refusals because of a date. docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-troubleshooting.html
SKEW_CODES: Final = frozenset(["RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture"])
SKEW_WORDS: Final = re.compile(r"\bSignature (?:expired|not yet current)\b")
STALE_CODES: Final = frozenset(["ExpiredTokenException", "ExpiredToken", "UnrecognizedClientException"])


class KeptCredentials:
    """held: those known from the start. find: asks for others, None where there are none to be asked for."""

    def __init__(self, held: Credentials | None, find: Callable[[Clock], Credentials] | None) -> None:
        self._held = held
        self._before: Credentials | None = None
        self._find: Final = find
        # Of this process's id; in a forked child the parent's thread does not run. setdefault is one step, and no lock.
        self._searches: Final[dict[int, _Search]] = {}

    @property
    def held(self) -> Credentials | None:
        return self._held

    @property
    def secrets(self) -> list[str]:
        """Of those in use, and of those before them, which a running call may still use."""
        return [secret for kept in (self._held, self._before) if kept is not None for secret in kept.secrets]

    def credentials(self, call: Call) -> Credentials:
        """Credentials that do not expire soon. Where no others can be had, the old ones serve until they expire."""
        held, now = self._held, call.clock.time()
        if held is not None and (self._find is None or held.lasts(now + REFRESH_BEFORE_S)):
            return held
        try:
            return self._search(call.clock).wait(call)
        except MembraneError as error:
            if held is not None and held.lasts(now) and error.type == "auth":
                return held
            raise

    def forget(self) -> None:
        """They were refused: the next call asks for others."""
        if self._find is not None:
            self._before, self._held = self._held, None

    def _search(self, clock: Clock) -> _Search:
        """The search that is running, else a new one."""
        new = _Search()
        search = self._searches.setdefault(os.getpid(), new)
        if search is new:
            arguments = (new, clock)
            threading.Thread(target=self._run, args=arguments, name=f"{__name__}-search", daemon=True).start()
        return search

    def _run(self, search: _Search, clock: Clock) -> None:
        try:
            assert self._find is not None
            found = self._find(clock)
            self._before, self._held = self._held, found
            search.end(found)
        except MembraneError as error:
            search.end(error)
        except Exception as exc:
            search.end(MembraneError("auth", f"AWS credentials: {type(exc).__name__} in the search for them"))
        finally:
            self._searches.pop(os.getpid(), None)
            search.tell()


class _Search:
    """One thread looks for credentials, others wait for what it finds."""

    def __init__(self) -> None:
        self._told: Final = threading.Event()
        self._ended: Credentials | MembraneError | None = None

    def end(self, ended: Credentials | MembraneError) -> None:
        self._ended = ended

    def tell(self) -> None:
        self._told.set()

    def wait(self, call: Call) -> Credentials:
        """Raises the call's own error where its signal or deadline ends the wait."""
        while not self._told.wait(min(call.deadlines.left(), SLICE_S)):
            call.check()
        call.check()
        if isinstance(self._ended, Credentials):
            return self._ended
        # An error of its own for each waiting call: what is raised carries a traceback, and a call adds to it.
        text = "AWS credentials: the search for them ended" if self._ended is None else self._ended.message
        raise MembraneError("auth", text)


class SigV4Auth:
    """Signs each request, for every send anew, with the date of that moment.

    AWS refuses dates that are minutes off. The difference to the server's clock, told by such a refusal, is kept.
    """

    def __init__(self, kept: KeptCredentials, *, region: str, service: str) -> None:
        self._kept: Final = kept
        self._region: Final = region
        self._service: Final = service
        self._skew_s = 0.0

    @property
    def secrets(self) -> list[str]:
        return self._kept.secrets

    def authorized(self, request: HttpRequest, call: Call) -> HttpRequest:
        return self._signed(request, self._kept.credentials(call), call.clock)

    def shown(self, request: HttpRequest, clock: Clock) -> HttpRequest:
        return self._signed(request, self._kept.held or PLACEHOLDER, clock)

    def renews(self, refusal: MembraneError, headers: HeaderPairs, call: Call) -> bool:
        """Once, with the server's date, where it was the date that was refused and the caller allows a resend."""
        if refusal.provider_error_code in STALE_CODES:
            self._kept.forget()
        if refusal.provider_error_code not in SKEW_CODES and not SKEW_WORDS.search(refusal.message):
            return False
        date = server_time(headers)
        if date is None:
            return False
        self._skew_s = date - call.clock.time()
        return not call.sends_once

    def _signed(self, request: HttpRequest, credentials: Credentials, clock: Clock) -> HttpRequest:
        signed = sign(
            request.method,
            request.url,
            [pair for pair in request.headers if is_signed(pair[0])],
            request.body,
            access_key_id=credentials.access_key_id,
            secret_access_key=credentials.secret_access_key,
            session_token=credentials.session_token,
            region=self._region,
            service=self._service,
            amz_date=amz_date(clock.time() + self._skew_s),
            normalize_path=True,
        )
        return HttpRequest(request.method, request.url, merged(request.headers, signed.headers), request.body)


def is_signed(name: str) -> bool:
    """What AWS wants signed beside Host; anything else a proxy may change on the way."""
    return name.lower() in ("accept", "content-type") or name.lower().startswith("x-amz")


def server_time(headers: HeaderPairs) -> float | None:
    """Seconds since the epoch, of the header Date (RFC 9110, 6.6.1)."""
    try:
        return parsedate_to_datetime(header(headers, "date") or "").timestamp()
    except (TypeError, ValueError, IndexError):  # TypeError: Python 3.9, for what is no date at all
        return None
