"""One case carried out: servers that behave as it says, a client made as it says, its calls, and all that was seen.

In goes the `input` of a case, one framing per response (variants() makes them); out comes a Run, which
case_expectations.py compares with what is expected. A word that is not known here is an error.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from corpora.provider_table import PROVIDERS, Provider
from corpora.recorded_exchange import body_bytes
from corpora.virtual_clock import VirtualClock
from corpora.wire_request import WireRequest
from transport.certificates import Certificates

from membrane_lite import AbortController, Clock, Membrane, NativeFormatter, ToolResult
from membrane_lite.loopback import Drip, LoopbackProvider, Raw, faults

API_KEY = "a-key-of-the-test"
PAUSE_MS = 20  # between writes, unless a response says otherwise
CREDENTIAL_WORDS = ("KEY", "TOKEN")  # a variable that is named so brings a credential of its own
CALL_LIMITS = ("timeout_ms", "idle_timeout_ms")  # of `client`, passed on to the call

BROKEN_OFF: Mapping[str, Callable[..., Any]] = {"hang": faults.silence, "reset": faults.reset}
EVERY_WRITE = sys.maxsize
FORMATTERS: Mapping[str, Callable[[], Any]] = {"native": NativeFormatter}
CLOCKS: Mapping[str, Callable[..., Clock]] = {"virtual": VirtualClock, "real": Clock}

INPUT_WORDS = {
    *("provider", "base_url", "request", "calls", "stream", "formatter", "tool_loop", "client"),
    *("responses", "second_server", "proxy", "tls", "request_is_ascii_escaped", "kind", "schema"),
}
CLIENT_WORDS = {
    *("clock", "now", "retry", "api_key", "credentials", "env", "abort_after_ms", "pool_size"),
    *("pause_between_calls_ms", *CALL_LIMITS),
}
RESPONSE_WORDS = {"status", "headers", "body_text", "body_base64", "chunks", "pause_ms", "framing", "drip", "then"}


def variants(given: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The input once with each framing that its responses list, and what to add to its name."""
    responses = given.get("responses", [])
    listed = [response["framing"] for response in responses if isinstance(response.get("framing"), list)]
    if not listed:
        yield "", {**given}
    for framing in {name: None for names in listed for name in names}:
        framed = [{**each, "framing": framing} if isinstance(each.get("framing"), list) else each for each in responses]
        yield f", {framing}", {**given, "responses": framed}


def check_words(given: Mapping[str, Any]) -> None:
    """A case that is understood by halves would be reproduced by halves."""
    answers = [*given.get("responses", ()), *given.get("proxy", {}).get("responses", ())]
    unknown = {
        *(set(given) - INPUT_WORDS),
        *(set(given.get("client", {})) - CLIENT_WORDS),
        *(word for answer in answers for word in set(answer) - RESPONSE_WORDS),
    }
    assert not unknown, f"no rule for {sorted(unknown)} in the input"


class Run:
    """What comes of a case. Its servers are there for as long as it is looked at.

    results: of the calls, in order; of a structured one its value. error: what ended them. chunks: the visible text a
    callback was given. client: the objects that the caller holds.
    """

    def __init__(
        self,
        provider: Provider,
        clock: Clock,
        *,
        server: LoopbackProvider,
        second: LoopbackProvider,
        proxy: LoopbackProvider,
    ) -> None:
        self.provider = provider
        self.clock = clock
        self.server = server
        self.second = second
        self.proxy = proxy
        self.results: list[Any] = []
        self.error: Exception | None = None
        self.chunks: list[str] = []
        self.tool_runs: list[dict[str, Any]] = []
        self.client: list[Any] = []
        self.took_ms = 0.0
        self.first_text_ms: float | None = None
        self._began = 0.0

    @property
    def result(self) -> Any:
        """Of the last call: a Response or an AbortedResponse; the error, where it raised."""
        return self.error or self.results[-1]

    @property
    def waits_ms(self) -> list[float]:
        assert isinstance(self.clock, VirtualClock), "waits are recorded by a virtual clock only"
        return [seconds * 1000 for seconds in self.clock.slept]

    @property
    def sent(self) -> list[WireRequest]:
        return [WireRequest.of_received(received) for received in self.server.requests]

    def begin(self) -> None:
        self._began = time.monotonic()

    def end(self) -> None:
        self.took_ms = self._elapsed_ms()

    def hear(self, text: str, meta: Any) -> None:
        """A chunk, as on_chunk is given it."""
        if meta.visible:
            self.chunks.append(text)
            self.first_text_ms = self._elapsed_ms() if self.first_text_ms is None else self.first_text_ms

    def fail(self, exc: Exception) -> None:
        """Of any class: one that should never have reached the caller is for `expected` to say."""
        self.error = exc

    def _elapsed_ms(self) -> float:
        return (time.monotonic() - self._began) * 1000


@contextmanager
def case_run(given: Mapping[str, Any], certificates: Callable[[], Certificates]) -> Iterator[Run]:
    """Carry the case out. Its servers, and the client's connections, end with the `with` block."""
    check_words(given)
    with ExitStack() as stack:
        scene = Scene(given, certificates, stack)
        scene.play()
        yield scene.run


class Scene:
    """Servers and a client, for as long as `stack` keeps them open."""

    def __init__(self, given: Mapping[str, Any], certificates: Callable[[], Certificates], stack: ExitStack) -> None:
        self._given = given
        self._client: Mapping[str, Any] = given.get("client", {})
        self._certificates = certificates
        self._stack = stack
        self._controller = AbortController()
        self._ports: dict[str, int] = {}
        date = {"now": self._client["now"]} if "now" in self._client else {}
        self.run = Run(
            PROVIDERS[given["provider"]],
            CLOCKS[self._client.get("clock", "real")](**date),
            second=self._serve("second_port", {}),
            proxy=self._serve("proxy_port", given.get("proxy", {})),
            server=self._serve("port", given, tls=self._tls()),
        )

    def play(self) -> None:
        membrane = self._membrane()
        try:
            for number, request in enumerate(self._given.get("calls") or [self._given["request"]]):
                if number:
                    time.sleep(self._client.get("pause_between_calls_ms", 0) / 1000)
                self.run.results.append(self._call(membrane, request))
        except Exception as exc:
            self.run.fail(exc)

    # Calls

    def _call(self, membrane: Membrane, request: Any) -> Any:
        face = FACES[self._face()]
        timer = threading.Timer(self._client.get("abort_after_ms", 0) / 1000, self._controller.abort)
        if "abort_after_ms" in self._client:
            timer.start()
        self.run.begin()
        try:
            return face(self, membrane, request, self._options())
        finally:
            self.run.end()
            timer.cancel()

    def _face(self) -> Any:
        if "kind" in self._given:
            return self._given["kind"]
        return "tools" if "tool_loop" in self._given else self._given.get("stream", False)

    def _options(self) -> dict[str, Any]:
        """What every face is given."""
        options = {name: self._client[name] for name in CALL_LIMITS if name in self._client}
        if "formatter" in self._given:
            options["formatter"] = FORMATTERS[self._given["formatter"]]()
        if self._client.get("retry", True) is False:
            options["retry"] = False
        return {**options, "signal": self._controller.signal}

    def completed(self, membrane: Membrane, request: Any, options: Any) -> Any:
        return membrane.complete(request, **options)

    def structured(self, membrane: Membrane, request: Any, options: Any) -> Any:
        return membrane.complete_object(request, schema=self._given["schema"], **options)

    def streamed(self, membrane: Membrane, request: Any, options: Any) -> Any:
        return membrane.stream(request, on_chunk=self.run.hear, **options)

    def with_tools(self, membrane: Membrane, request: Any, options: Any) -> Any:
        return membrane.stream(request, on_chunk=self.run.hear, on_tool_calls=self._run_tools, **options)

    def looped_over(self, membrane: Membrane, request: Any, options: Any) -> Any:
        with membrane.stream_yielding(request, **options) as stream:
            event: Any
            for event in stream:
                if event.type == "tokens":
                    self.run.hear(event.content, event.meta)
        if event.type == "error":
            raise event.error
        return event.response

    def _run_tools(self, calls: Any) -> list[ToolResult]:
        self.run.tool_runs.extend({"name": call.name, "input": call.input} for call in calls)
        return [ToolResult(call.id, self._given["tool_loop"][call.name]) for call in calls]

    # The client

    def _membrane(self) -> Membrane:
        adapter = self._adapter()
        membrane = self._stack.enter_context(Membrane(adapter, clock=self.run.clock))
        self.run.client.extend([adapter, membrane])
        return membrane

    def _adapter(self) -> Any:
        """Made in the environment of the case, if it has one; else with a transport that reads none."""
        make = self.run.provider.adapter
        options = {"base_url": self._base_url(), "clock": self.run.clock, **self._credentials()}
        if "env" not in self._client:
            return make(transport=self._transport(), **options)
        with pytest.MonkeyPatch.context() as environment:
            for name in list(os.environ):
                environment.delenv(name)
            for name, value in self._client["env"].items():
                environment.setenv(name, self._filled(value))
            return make(**options)

    def _base_url(self) -> str:
        return self._filled(self._given.get("base_url") or self.run.server.url + self.run.provider.base_path)

    def _credentials(self) -> dict[str, Any]:
        """As the case says; a key of ours where neither it nor its environment brings one."""
        named = any(word in variable for variable in self._client.get("env", {}) for word in CREDENTIAL_WORDS)
        given = self._client.get("credentials", {} if named else {"api_key": API_KEY})
        return {**given, "api_key": self._client["api_key"]} if "api_key" in self._client else given

    def _transport(self) -> Any:
        tls = self._given.get("tls")
        options = {"ca_certs": self._certificates().ca if tls["trusted"] else None} if tls else {}
        if "pool_size" in self._client:
            options["pool_size"] = self._client["pool_size"]
        transport = self._stack.enter_context(self.run.server.transport(**options))
        self.run.client.append(transport)
        return transport

    # Servers

    def _serve(self, port: str, given: Mapping[str, Any], **options: Any) -> LoopbackProvider:
        """A server with the responses of `given`; {port} stands for its port in what comes after it."""
        answers = [self._answer(response) for response in given.get("responses", ())]
        server = self._stack.enter_context(LoopbackProvider(answers, **options))
        self._ports[port] = server.port
        return server

    def _answer(self, response: Mapping[str, Any]) -> Any:
        """A body is ended properly unless the connection hangs, or is reset."""
        chunks, then = response.get("chunks"), response.get("then", "close")
        pause_ms = response.get("pause_ms", 0 if chunks == "every_byte" else PAUSE_MS)
        whole = Raw(
            response["status"],
            {name: self._filled(value) for name, value in response["headers"].items()},
            body_bytes(response),
            chunks=chunks,
            pause_ms=pause_ms,
            framing=response.get("framing", "chunked"),
            drip=Drip(response["drip"].encode(), pause_ms) if "drip" in response else None,
            then=then,
        )
        return BROKEN_OFF[then](whole, after=EVERY_WRITE) if then in BROKEN_OFF else whole

    def _filled(self, text: str) -> str:
        for name, port in self._ports.items():
            text = text.replace(f"{{{name}}}", str(port))
        return text

    def _tls(self) -> tuple[str, str] | None:
        tls = self._given.get("tls")
        if tls is None:
            return None
        made = self._certificates()
        certificate = made.server if tls["trusted"] else made.self_signed
        return certificate, made.key(certificate)


FACES: Mapping[Any, Callable[[Scene, Membrane, Any, Any], Any]] = {
    False: Scene.completed,
    True: Scene.streamed,
    "yielding": Scene.looped_over,
    "tools": Scene.with_tools,
    "structured": Scene.structured,
}


def rendered(item: Mapping[str, Any]) -> WireRequest:
    """The request that a call would send, made without a server."""
    provider = PROVIDERS[item["provider"]]
    adapter = provider.adapter(base_url="http://127.0.0.1:1" + provider.base_path, api_key=API_KEY)
    with adapter:
        return WireRequest.of_rendered(adapter.render(item["request"], stream=item.get("stream", False)))
