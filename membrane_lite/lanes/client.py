"""InvokeClient: the one call both lanes make, and the client that makes it of Bedrock directly.

A model id and a body go in, the answer's bytes come out. BedrockClient satisfies it, the proxy's client does, and so
does a fake that records bodies and gives canned bytes: every fact of the wire is then tested without network or key.
"""

from __future__ import annotations

import os
import threading
from functools import partial
from typing import Any, Final, Protocol

from ..abort import AbortSignal
from ..call import Call
from ..clock import Clock
from ..errors import MembraneError
from ..providers.base import read_base_url, user_agent
from ..providers.bedrock import (
    CA_VARIABLES,
    authorizer,
    bearer_key,
    model_address,
    model_id,
    read_region,
    runtime_endpoint,
)
from ..providers.exchange import Exchange, refusal_error
from ..retry import classify_failure
from ..transport.interface import OpensRequests
from ..transport.on_demand import OnDemandTransport
from ..wire.http import HttpRequest
from ..wire.json_text import parse, whole_characters
from .adaptive import AdaptiveBucket
from .errors import ModelUnavailable, model_failure
from .resending import BEDROCK_BACKOFF, answer_of, pause

InvokeResult = bytes  # what send() gives: the payload of the answer


class InvokeClient(Protocol):
    """What the lanes need of a transport."""

    def send(self, model_id: str, body: str, signal: AbortSignal | None) -> InvokeResult:
        """One round trip; raises where no answer arrives. The signal, where there is one, ends it early."""


def invoke_json(client: InvokeClient, model_id: str, body: str, signal: AbortSignal | None = None) -> Any:
    """One round trip: the body sent, the payload parsed. Raises ModelUnavailable where either fails.

    Neither failure says anything about the model's answer, only that none arrived.
    """
    return parsed_answer(model_id, sent(client, model_id, body, signal))


def sent(client: InvokeClient, model_id: str, body: str, signal: AbortSignal | None) -> InvokeResult:
    """The first half of invoke_json."""
    try:
        return client.send(model_id, body, signal)
    except Exception as exc:
        raise model_failure(model_id, exc) from exc


def parsed_answer(model_id: str, answer: InvokeResult | None) -> Any:
    """The second half. What cannot be parsed is not quoted, nor kept as the cause: it may hold anything."""
    try:
        return parse(str(answer or b"", "utf-8", "replace"))
    except (ValueError, RecursionError, MemoryError, TypeError) as exc:  # TypeError: a client gave no bytes at all
        failure = MembraneError("server", "")
        reason = f"{type(exc).__name__}: {exc}"
    raise ModelUnavailable(model_id, f"the answer cannot be parsed: {reason}", failure=failure)


def make_bedrock_client(
    region: str, *, transport: OpensRequests | None = None, clock: Clock | None = None
) -> BedrockClient:
    """Bedrock's InvokeModel in `region`: ten attempts, adaptive retry, and each bounded by REQUEST_HANDLER_OPTIONS."""
    return BedrockClient(region, transport=transport, clock=clock)


class BedrockClient:
    """One for both lanes and any number of threads: they draw on one quota, so they share one bucket.

    Credentials, address and certificates are found as BedrockAdapter finds them.
    """

    def __init__(self, region: str, *, transport: OpensRequests | None = None, clock: Clock | None = None) -> None:
        env = dict(os.environ)
        own_transport = OnDemandTransport(env, ca_variables=CA_VARIABLES)
        self._region: Final = read_region(region, env)
        key = bearer_key(None, env, outranked=False)
        auth = authorizer(key, None, None, env, region=self._region, transport=transport or own_transport)
        self._exchange: Final = Exchange(auth, transport=transport, own_transport=own_transport)
        self._base_url: Final = read_base_url(None, None, {}, runtime_endpoint(env, self._region))
        self._clock: Final = clock or Clock()
        # Of this process's id; a lock that a forked child inherits may be held for ever. setdefault is one step.
        self._paces: Final[dict[int, Pace]] = {}

    def __repr__(self) -> str:
        return f"<BedrockClient {self._region!r}>"

    def send(self, model_id: str, body: str, signal: AbortSignal | None = None) -> bytes:
        """Raises MembraneError: that of the last attempt."""
        attempt = partial(self._attempt, self._request(model_id, body), self._paces.setdefault(os.getpid(), Pace()))
        return answer_of(attempt, retryable=is_retryable, backoff=BEDROCK_BACKOFF, clock=self._clock, signal=signal)

    def close(self) -> None:
        """Close the transport, if this client made it; running calls end as aborted. Idempotent."""
        self._exchange.close()

    def _request(self, model: str, body: str) -> HttpRequest:
        return json_request(model_address(self._base_url, model_id(model, self._region), stream=False), body)

    def _attempt(self, request: HttpRequest, pace: Pace, call: Call) -> bytes:
        pace.wait(call)
        throttled = False
        try:
            return self._exchange.answer(request, call, None, partial(refusal_error, "bedrock"))
        except MembraneError as error:
            throttled = classify_failure(error) == "rate_limit"
            raise
        finally:
            pace.answered(call, throttled=throttled)


class Pace:
    """The adaptive bucket, shared by threads."""

    def __init__(self) -> None:
        self._lock: Final = threading.Lock()
        self._bucket: Final = AdaptiveBucket()

    def wait(self, call: Call) -> None:
        """Until the bucket lets a request through. Raises once the call's signal fires."""
        with self._lock:
            seconds = self._bucket.take(call.clock.monotonic())
        pause(seconds, call.clock, call.signal)

    def answered(self, call: Call, *, throttled: bool) -> None:
        with self._lock:
            self._bucket.answered(call.clock.monotonic(), throttled=throttled)


def is_retryable(error: MembraneError) -> bool:
    """A timeout of ours too: a call here has no side effect that a second one would double."""
    return error.retryable


def json_request(url: str, body: str) -> HttpRequest:
    headers = [
        ("User-Agent", user_agent()),
        ("Content-Type", "application/json"),
        ("Accept", "application/json"),
        ("Accept-Encoding", "gzip"),
    ]
    return HttpRequest("POST", url, headers, whole_characters(body).encode("utf-8"))
