"""LoopbackProvider: the server, its script, and what it has received."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterable
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from .answers import Failure
from .chat import CHAT
from .format import CREATED, Asked
from .script import Script
from .server import HOST, Server

if TYPE_CHECKING:
    from ..transport.pool import Transport
    from .answers import Answer, Plan
    from .received import Received
    from .script import Answers

IDS_PER_SEED: Final = 1_000_000
WAIT_S: Final = 2.0


class LoopbackProvider:
    """A provider on 127.0.0.1 that answers by a script. It runs from construction to close(); a context manager.

    answers: in order, one for each request, after the last HTTP 500; or a function from a Received to an answer, which
    is called from many threads.
    seed: of ids and dates, so that two runs say the same. port: 0 is any free one.
    check: refuse requests as the provider would (a Reply only; a Raw is sent whatever was asked).
    record: keep every request in `requests`. tls: certificate file and key file, or a context; then url is https.
    """

    def __init__(
        self,
        answers: Answers = (),
        *,
        seed: int = 0,
        port: int = 0,
        check: bool = True,
        record: bool = True,
        tls: tuple[str, str] | ssl.SSLContext | None = None,
    ) -> None:
        self.requests: Final[list[Received]] = []
        self._script: Final = Script(answers, check=check)
        self._seed: Final = seed
        self._record: Final = record
        self._numbers: Final = count(1)
        self._arrived: Final = threading.Condition()
        self._count = 0
        self._ca_certs: Final = tls[0] if isinstance(tls, tuple) else None
        self._server: Final = Server(self, port=port, context=_server_context(tls))
        self.port: Final[int] = self._server.server_port
        self.url: Final = f"{'http' if tls is None else 'https'}://{HOST}:{self.port}"
        self._server.start()

    def __enter__(self) -> LoopbackProvider:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"LoopbackProvider({self.url!r}, {self._count} requests)"

    def close(self) -> None:
        """End everything: connections in whatever state, threads, the listening socket. Idempotent."""
        self._server.stop()

    def extend(self, answers: Iterable[Answer]) -> None:
        """More answers, after those that are still waiting: for a script that must know the server's url."""
        self._script.extend(answers)

    def transport(self, **options: Any) -> Transport:
        """A membrane_lite.Transport without a proxy that trusts this server's certificate; the caller closes it."""
        from ..transport.pool import Transport  # the only line here that knows of the client

        return Transport(**{"proxy": None, "ca_certs": self._ca_certs, **options})

    @property
    def request_count(self) -> int:
        """How many requests have arrived whole, recorded or not."""
        return self._count

    @property
    def connections_made(self) -> int:
        """How many connections have been accepted."""
        return self._server.connections_made

    @property
    def connections_open(self) -> int:
        """How many of them have not ended."""
        return self._server.connections_open

    def wait_for_close(self, seconds: float = WAIT_S) -> bool:
        """Wait until no connection is open; False when that did not happen in time."""
        return self._server.wait_for_close(seconds)

    def wait_for_requests(self, wanted: int, seconds: float = WAIT_S) -> bool:
        """Wait until so many requests have arrived; False when they did not in time."""
        with self._arrived:
            return self._arrived.wait_for(lambda: self._count >= wanted, seconds)

    # From here on: what the server asks (server.Service).

    def next_number(self) -> int:
        return next(self._numbers)

    def early(self) -> Answer | None:
        return self._script.early()

    def plan(self, received: Received, early: Answer | None) -> Plan:
        self._remember(received)
        format = received.format or CHAT
        try:
            answer = early or self._script.answer(received)
            return answer.plan(format, self._asked(received))
        except Exception as exc:
            # The script is the author's own code; its mistake goes where it will be seen, into the client's error.
            return Failure(500, f"the script raised {type(exc).__name__}: {exc}").plan(format, Asked())

    def _remember(self, received: Received) -> None:
        with self._arrived:
            self._count += 1
            if self._record:
                self.requests.append(received)
            self._arrived.notify_all()

    def _asked(self, received: Received) -> Asked:
        try:
            body = received.json
        except ValueError:
            body = None
        return Asked(
            body=body if isinstance(body, dict) else {},
            streamed=isinstance(body, dict) and received.format is not None and received.format.is_streamed(received),
            number=self._seed * IDS_PER_SEED + received.number,
            created=CREATED + self._seed,
            target=received.target,
        )


def _server_context(tls: tuple[str, str] | ssl.SSLContext | None) -> ssl.SSLContext | None:
    if tls is None or isinstance(tls, ssl.SSLContext):
        return tls
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*tls)
    return context
