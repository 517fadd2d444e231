"""What the credential chain needs of the world: files, HTTP with short limits, and one command's output."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from ..call import Call, Deadlines, Limits
from ..clock import Clock
from ..errors import MembraneError
from ..transport.interface import OpensRequests
from ..wire.http import HeaderPairs, HttpRequest

METADATA_MS: Final = 1_000  # an endpoint on the machine itself: to connect, and to answer
SERVICE_MS: Final = 20_000
PROCESS_S: Final = 60.0
TRIES: Final = 2
LARGEST_ANSWER: Final = 1024 * 1024


class Fetched(NamedTuple):
    """An HTTP answer. Its text may be all secrets."""

    status: int
    headers: HeaderPairs
    text: str

    def __repr__(self) -> str:
        return f"Fetched({self.status})"


class Fetch(Protocol):
    """now: seconds since the epoch."""

    @property
    def now(self) -> float: ...

    def http(self, request: HttpRequest, *, metadata: bool = False) -> Fetched:
        """The answer, whatever its status. metadata: on the machine itself, so never through a proxy, and at once."""

    def output(self, command: Sequence[str]) -> str:
        """What a command prints."""


def read_text(path: str) -> str | None:
    """The text of a file; None where there is none. Raises MembraneError("auth") for one that cannot be read."""
    try:
        with open(os.path.expanduser(path), encoding="utf-8-sig") as opened:
            return opened.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as exc:
        raise MembraneError("auth", f"{path} cannot be read ({type(exc).__name__})") from None


class OverNetwork:
    """Fetch for real. transport: for AWS's services. close() it."""

    def __init__(self, transport: OpensRequests, clock: Clock, env: Mapping[str, str]) -> None:
        self._transport: Final = transport
        self._clock: Final = clock
        self._env: Final = env
        self._direct: OpensRequests | None = None

    @property
    def now(self) -> float:
        return self._clock.time()

    def http(self, request: HttpRequest, *, metadata: bool = False) -> Fetched:
        """A passing failure is tried twice."""
        transport, limit_ms = (self._without_proxy(), METADATA_MS) if metadata else (self._transport, SERVICE_MS)
        for _ in range(TRIES - 1):
            try:
                answer = self._once(transport, request, limit_ms)
            except MembraneError as error:
                if not error.retryable:
                    raise
            else:
                if answer.status < 500:
                    return answer
        return self._once(transport, request, limit_ms)

    def _once(self, transport: OpensRequests, request: HttpRequest, limit_ms: int) -> Fetched:
        limits = Limits(first_event_ms=limit_ms, idle_ms=limit_ms)
        call = Call(clock=self._clock, deadlines=Deadlines(self._clock, limits))
        stream = transport.open(request, call)
        try:
            call.deadlines.first_event()
            text = stream.read(LARGEST_ANSWER).decode("utf-8", "replace")
            stream.finish()
        finally:
            stream.close()
        return Fetched(stream.status, stream.headers, text)

    def _without_proxy(self) -> OpensRequests:
        if self._direct is None:
            from ..transport.pool import Transport

            self._direct = Transport(proxy=None, connect_timeout_ms=METADATA_MS, env=self._env)
        return self._direct

    def output(self, command: Sequence[str]) -> str:
        """Neither of the command's outputs is ever shown: both may hold the secret."""
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PROCESS_S, check=False
            )
        except (OSError, ValueError) as exc:
            raise MembraneError("auth", f"it cannot be started ({type(exc).__name__})") from None
        except subprocess.TimeoutExpired:
            raise MembraneError("auth", f"it took longer than {PROCESS_S:.0f} s") from None
        if done.returncode:
            raise MembraneError("auth", f"it ended with exit code {done.returncode}; run it by hand to see why")
        return done.stdout.decode("utf-8", "replace")

    def close(self) -> None:
        if self._direct is not None:
            self._direct.close()
