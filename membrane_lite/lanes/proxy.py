"""The same calls through an HTTP LLM proxy (LiteLLM's routes): bodies translated there, answers folded back.

> POST {base_url}/v1/messages          a Messages body: `model` added, Bedrock's anthropic_version dropped
> POST {base_url}/v1/chat/completions  a chat completions body: `model` added
> POST {base_url}/v1/embeddings        {"model", "input", "dimensions", "input_type", "encoding_format": "float"}

An InvokeClient that invoke_json cannot tell from Bedrock's. PROXY_ROUTE_PATHS and ROUTE_MARKS decide the route; the
translation is pure. ProxyHttpError is what any other answer than a success becomes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Literal, NamedTuple, TypedDict

from ..abort import AbortSignal
from ..call import Call
from ..clock import Clock
from ..credentials.keys import HeaderAuth, Key
from ..error_table import classify_exception, provider_error
from ..errors import SHOWN_CHARACTERS, MembraneError, invalid, wrong_type
from ..providers.exchange import Exchange, Refused
from ..transport.interface import ByteStream, OpensRequests
from ..wire.http import HeaderPairs, HttpRequest, header
from ..wire.json_text import compact, encode, parse
from .client import BedrockClient, json_request, make_bedrock_client
from .config import LlmConfig
from .proxy_config import PROXY_BASE_URL_VAR, ProxyConfig, proxy_model_id
from .resending import PROXY_BACKOFF, Backoff, answer_of

ProxyRoute = Literal["messages", "completions", "embeddings"]
ProxyFetch = OpensRequests  # the seam of a test: what make_proxy_client takes as `transport`
ProxyFetchResponse = ByteStream  # what it opens


class ProxyClientOptions(TypedDict, total=False):
    """The keywords of make_proxy_client. schedule: a test passes one without delay, Backoff(requests=3, first_ms=0)."""

    transport: OpensRequests | None
    schedule: Backoff | None
    clock: Clock | None


class ProxyRequest(NamedTuple):
    """path: behind the base URL."""

    route: ProxyRoute
    path: str
    body: dict[str, Any]


class ProxyHttpError(MembraneError):
    """An answer that is no success: its status, and the first 200 characters of its body.

    The body is kept because a proxy tells of routing and quotas in it: {"error":{"code":"model_not_found"}} names the
    fix where a bare status does not.
    """

    def __init__(self, status: int, body: str, *, headers: HeaderPairs = (), now: float = 0.0) -> None:
        found = provider_error(provider="proxy", status=status, headers=headers, body=body, now=now)
        super().__init__(
            found.type,
            f"the proxy answered {status}: {body[:SHOWN_CHARACTERS]}",
            retryable=found.retryable,
            retry_after_ms=found.retry_after_ms,
            http_status=status,
            provider_error_code=found.provider_error_code,
            request_id=found.request_id,
            rate_limit=found.rate_limit,
        )
        self.status: Final = status
        self.args = (status, body[:SHOWN_CHARACTERS])  # what a copy is made of


def invoke_client_for(
    config: LlmConfig, *, transport: OpensRequests | None = None, clock: Clock | None = None
) -> BedrockClient | ProxyClient:
    """The proxy's client where the configuration names a proxy, else Bedrock's.

    The one place where either is made, so that the two lanes cannot disagree about where a run's traffic goes.
    """
    if config.proxy is None:
        return make_bedrock_client(config.region, transport=transport, clock=clock)
    return make_proxy_client(config.proxy, transport=transport, clock=clock)


def make_proxy_client(
    config: ProxyConfig,
    *,
    transport: OpensRequests | None = None,
    schedule: Backoff | None = None,
    clock: Clock | None = None,
) -> ProxyClient:
    """An InvokeClient over a proxy. Each attempt is bounded as Bedrock's are, and repeated under PROXY_BACKOFF."""
    return ProxyClient(config, transport=transport, schedule=schedule, clock=clock)


class ProxyClient:
    """For any number of threads."""

    def __init__(
        self,
        config: ProxyConfig,
        *,
        transport: OpensRequests | None = None,
        schedule: Backoff | None = None,
        clock: Clock | None = None,
    ) -> None:
        keys = [Key(config.api_key, "Authorization", "Bearer ")] if config.api_key else []
        self._config: Final = config
        self._exchange: Final = Exchange(HeaderAuth(keys, missing=None), transport=transport)
        self._backoff: Final = schedule or PROXY_BACKOFF
        self._clock: Final = clock or Clock()

    def __repr__(self) -> str:
        return f"<ProxyClient {self._config.base_url!r}>"

    def send(self, model_id: str, body: str, signal: AbortSignal | None = None) -> bytes:
        """The chat routes' bytes are given as they came, those of the embeddings route in Cohere's shape."""
        request = to_proxy_request(self._config, model_id, read_body(body))
        if request is None:
            raise invalid("model_id", f"found {model_id!r}", "expected one with " + ", ".join(map(repr, ROUTE_MARKS)))
        sent = json_request(self._config.base_url + request.path, compact(request.body))
        answer = answer_of(
            partial(self._attempt, sent),
            retryable=is_retryable_proxy_failure,
            backoff=self._backoff,
            clock=self._clock,
            signal=signal,
        )
        return REWRITTEN[request.route](answer)

    def close(self) -> None:
        """Close the transport, if this client made it; running calls end as aborted. Idempotent."""
        self._exchange.close()

    def _attempt(self, request: HttpRequest, call: Call) -> bytes:
        return self._exchange.answer(request, call, None, refusal)


def read_body(body: str) -> Mapping[str, Any]:
    try:
        fields = parse(body)
    except (ValueError, TypeError, RecursionError) as exc:
        raise invalid("body", f"it is no JSON ({exc})", "expected a JSON object") from exc
    if not isinstance(fields, Mapping):
        raise wrong_type("body", fields, "a JSON object")
    return fields


def refusal(refused: Refused) -> ProxyHttpError:
    where = header(refused.headers, "location") if refused.status < 400 else None
    told = "" if where is None else f"redirects to {where}; redirects are never followed, set {PROXY_BASE_URL_VAR}. "
    return ProxyHttpError(refused.status, told + refused.body, headers=refused.headers, now=refused.now)


def is_retryable_proxy_failure(cause: BaseException) -> bool:
    """A throttle, a timeout, an upstream that fell over, a socket that never answered.

    Another 4xx is the request's fault and repeats identically; an abort is the caller's decision.
    """
    if isinstance(cause, ProxyHttpError):
        return cause.status in (408, 429) or 500 <= cause.status < 600
    return isinstance(cause, Exception) and classify_exception(cause).retryable


def proxy_route_for(model_id: str) -> ProxyRoute | None:
    """The route a model is served on; None for one that no lane calls."""
    return next((route for mark, route in ROUTE_MARKS.items() if mark in model_id), None)


def to_proxy_request(config: ProxyConfig, model_id: str, body: Mapping[str, Any]) -> ProxyRequest | None:
    """The proxy's request for an InvokeModel body; None for a model without a route."""
    route = proxy_route_for(model_id)
    if route is None:
        return None
    return ProxyRequest(
        route, PROXY_ROUTE_PATHS[route], {"model": proxy_model_id(config, model_id), **TRANSLATED[route](body)}
    )


def messages_fields(body: Mapping[str, Any]) -> dict[str, Any]:
    """The Messages API has no anthropic_version among its fields; everything else is its dialect already."""
    return {name: value for name, value in body.items() if name != "anthropic_version"}


def embeddings_fields(body: Mapping[str, Any]) -> dict[str, Any]:
    """input_type rides through under its own name: documents and queries differ by it, and the proxy hands it on."""
    return {
        "input": body.get("texts"),
        "dimensions": body.get("output_dimension"),
        "input_type": body.get("input_type"),
        "encoding_format": "float",
    }


def from_proxy_response(route: ProxyRoute, payload: Any) -> Any:
    """The payload the lane expects. Only embeddings differ: they come in any order, and are paired with texts by it.

    What is not of that shape becomes no vectors at all, which the reader refuses for their count.
    """
    if route != "embeddings":
        return payload
    data = payload.get("data") if isinstance(payload, dict) else None
    rows = data if isinstance(data, list) else []
    found = {row["index"]: row.get("embedding") for row in rows if isinstance(row, dict) and is_index(row.get("index"))}
    whole = len(found) == len(rows) and all(isinstance(found.get(index), list) for index in range(len(rows)))
    return {"embeddings": {"float": [found[index] for index in range(len(rows))] if whole else []}}


def is_index(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def cohere_answer(answer: bytes) -> bytes:
    """What cannot be parsed, or written (1e400 is JSON, and no number), is left for the lane to refuse."""
    try:
        return encode(from_proxy_response("embeddings", parse(answer.decode("utf-8", "replace"))))
    except (ValueError, RecursionError, MemoryError, MembraneError):
        return answer


PROXY_ROUTE_PATHS: Final[Mapping[ProxyRoute, str]] = {
    "messages": "/v1/messages",
    "completions": "/v1/chat/completions",
    "embeddings": "/v1/embeddings",
}
ROUTE_MARKS: Final[Mapping[str, ProxyRoute]] = {  # what stands in a Bedrock id, with a profile before it or not
    "anthropic.": "messages",
    "openai.": "completions",
    "cohere.embed": "embeddings",
}
TRANSLATED: Final[Mapping[ProxyRoute, Callable[[Mapping[str, Any]], dict[str, Any]]]] = {
    "messages": messages_fields,
    "completions": dict,
    "embeddings": embeddings_fields,
}
REWRITTEN: Final[Mapping[ProxyRoute, Callable[[bytes], bytes]]] = {
    "messages": bytes,
    "completions": bytes,
    "embeddings": cohere_answer,
}
