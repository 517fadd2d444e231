"""What the lanes' tests stand on: a client that remembers bodies, both real clients over a loopback server, clocks."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from membrane_lite import Clock, MembraneError
from membrane_lite.abort import AbortSignal
from membrane_lite.lanes import ProxyConfig, make_bedrock_client, make_proxy_client
from membrane_lite.loopback import LoopbackProvider, bedrock

Json = Any
SECRET = bedrock.KEYS[bedrock.ACCESS_KEY_ID].secret_access_key
PROXY_KEY = "proxy-key-of-the-test"


class Recorder:
    """An InvokeClient of the caller's own: it remembers what it was sent, and gives what it was made with.

    answers: payloads in order, an exception is raised; or a function from (model_id, parsed body) to a payload.
    """

    def __init__(self, answers: list[Any] | Callable[[str, Json], Any]) -> None:
        self.sent: list[tuple[str, Json]] = []
        self.bodies: list[str] = []
        self._answers = answers if callable(answers) else iter(answers)
        self._lock = threading.Lock()

    def send(self, model_id: str, body: str, signal: AbortSignal | None) -> bytes:
        with self._lock:
            self.sent.append((model_id, json.loads(body)))
            self.bodies.append(body)
            answer = self._answers(*self.sent[-1]) if callable(self._answers) else next(self._answers)
        if isinstance(answer, BaseException):
            raise answer
        return answer if isinstance(answer, bytes) else json.dumps(answer).encode()


class StillClock(Clock):
    """Time stands still but for sleeps, which are recorded and take none; dice show `draws`, over and over."""

    def __init__(self, *draws: float) -> None:
        self.slept: list[float] = []
        self._draws = draws or (0.5,)
        self._drawn = 0
        self._lock = threading.Lock()

    def monotonic(self) -> float:
        return 1_000.0 + sum(self.slept)

    def time(self) -> float:
        return 1_750_000_000.0 + sum(self.slept)

    def random(self) -> float:
        self._drawn += 1
        return self._draws[(self._drawn - 1) % len(self._draws)]

    def sleep(self, seconds: float, signal: AbortSignal | None = None) -> bool:
        with self._lock:
            self.slept.append(round(seconds, 9))
        return signal is not None and signal.aborted


class Watched:
    """A transport that looks at the deadlines of each call; its first call times out, as a silent socket would."""

    def __init__(self, inner: Any) -> None:
        self.redactor = inner.redactor
        self.bounds: list[float] = []
        self._inner = inner

    def open(self, request: Any, call: Any) -> Any:
        call.deadlines.request_sent()
        before_the_head = call.deadlines.left()
        call.deadlines.first_event()
        self.bounds += [before_the_head, call.deadlines.left()]
        if len(self.bounds) == 2:
            raise call.deadlines.error()
        return self._inner.open(request, call)

    def close(self) -> None:
        self._inner.close()


def aws_environment(url: str) -> Mapping[str, str]:
    """Of a process whose Bedrock is the loopback server."""
    return {
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": url,
        "AWS_ACCESS_KEY_ID": bedrock.ACCESS_KEY_ID,
        "AWS_SECRET_ACCESS_KEY": SECRET,
    }


@contextmanager
def bedrock_served(answers: Any, *, clock: Clock | None = None, **options: Any) -> Iterator[tuple[Any, Any]]:
    """(client, server): Bedrock's client, signing, over a server that answers so."""
    with LoopbackProvider(answers, **options) as server, server.transport() as transport:
        with pytest.MonkeyPatch.context() as patched:
            for name, value in aws_environment(server.url).items():
                patched.setenv(name, value)
            client = make_bedrock_client("us-east-1", transport=transport, clock=clock or Clock())
        yield client, server


@contextmanager
def proxy_served(answers: Any, *, clock: Clock | None = None, **options: Any) -> Iterator[tuple[Any, Any]]:
    """(client, server): the proxy's client, with a key. A proxy is no provider: it checks less."""
    with LoopbackProvider(answers, check=False) as server, server.transport() as transport:
        config = ProxyConfig(server.url, api_key=PROXY_KEY)
        yield make_proxy_client(config, transport=transport, clock=clock or Clock(), **options), server


def refused(call: Callable[[], object], kind: type[MembraneError] = MembraneError) -> Any:
    """The error that `call` raises, of exactly that class."""
    with pytest.raises(MembraneError) as raised:
        call()
    assert type(raised.value) is kind
    return raised.value
