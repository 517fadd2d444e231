"""abort() from another thread ends a call within 100 ms, wherever it waits. The connection is closed, not kept, and the
same Membrane goes on.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from certificates import Certificates
from raw_server import Peer, RawServer, held_after, proxies, says_nothing
from stage import (
    FACES,
    STREAMED,
    TOOL_REQUEST,
    anthropic,
    complete,
    each_face,
    each_format,
    ended,
    stage,
    stream,
)
from ways import WAYS, direct, way

from membrane_lite import (
    AbortController,
    AbortSignal,
    AnthropicAdapter,
    Clock,
    Membrane,
    MembraneError,
    ToolResult,
    Transport,
)
from membrane_lite.call import Call
from membrane_lite.loopback import Failure, LoopbackProvider, Reply, ToolCall, faults
from membrane_lite.loopback import anthropic as wire
from membrane_lite.transport.interface import ByteStream
from membrane_lite.wire.http import HttpRequest

WITHIN_S = 0.1
MESSAGE = "the call was aborted by its signal: enough"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
HELLO = Reply("Hello, world!")
ABORTED = {"complete": "abort", "stream": "user", "stream_yielding": "user"}  # what the face says of it


def chunks(*pieces: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)


def answers_well(peer: Peer) -> None:
    request = peer.request()
    assert request is not None
    streamed = json.loads(request.body)["stream"]
    body = b"".join(wire.events(Reply("Well"))) if streamed else wire.document(Reply("Well"))
    peer.answer(body, headers=(f"Content-Type: {'text/event-stream' if streamed else 'application/json'}",))


class Aborter:
    """Aborts from another thread, a moment after `when` is set. seconds_since: what has passed since then."""

    def __init__(self, when: threading.Event) -> None:
        self._controller = AbortController()
        self._when = when
        self._at = 0.0
        self._thread = threading.Thread(target=self._run)
        self.signal = self._controller.signal

    def _run(self) -> None:
        assert self._when.wait(5), "the call never came so far"
        time.sleep(0.01)  # the other side is there, the call may not be yet
        self._at = time.monotonic()
        self._controller.abort("enough")

    @property
    def seconds_since(self) -> float:
        return time.monotonic() - self._at

    def __enter__(self) -> Aborter:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._thread.join(5)


# While a connection is made


class Detour:
    """A transport whose first request goes to another server."""

    def __init__(self, transport: Transport, first_url: str) -> None:
        self.redactor = transport.redactor
        self._transport = transport
        self._first_url = first_url

    def open(self, request: HttpRequest, call: Call) -> ByteStream:
        base, self._first_url = self._first_url, ""
        url = base + urlsplit(request.url).path if base else request.url
        return self._transport.open(HttpRequest(request.method, url, request.headers, request.body), call)

    def close(self) -> None:
        """The test closes the transport."""


class Place(NamedTuple):
    """first_url: a server on the way to which the call waits. reached, closed: what happens there."""

    transport: Transport
    first_url: str
    reached: threading.Event
    closed: threading.Event


def happened() -> threading.Event:
    event = threading.Event()
    event.set()
    return event


@contextmanager
def connecting(certificates: Certificates) -> Iterator[Place]:
    """A server whose queue is full drops the packets that would open a connection."""
    with ExitStack() as stack:
        listening = stack.enter_context(socket.socket())
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listening.getsockname())
        transport = stack.enter_context(direct())
        yield Place(transport, f"http://127.0.0.1:{listening.getsockname()[1]}", happened(), happened())


@contextmanager
def handshake(certificates: Certificates) -> Iterator[Place]:
    with RawServer(says_nothing) as server, direct(ca_certs=certificates.ca) as transport:
        yield Place(transport, f"https://127.0.0.1:{server.port}", server.reached, server.client_closed)


@contextmanager
def handshake_in_a_tunnel(certificates: Certificates) -> Iterator[Place]:
    with RawServer(says_nothing) as server, RawServer(proxies) as proxy, direct(proxy=proxy.url()) as transport:
        yield Place(transport, f"https://127.0.0.1:{server.port}", server.reached, server.client_closed)


PLACES = {
    "connecting": connecting,
    "the TLS handshake": handshake,
    "the TLS handshake through a proxy": handshake_in_a_tunnel,
}


@pytest.mark.parametrize("name", FACES)
@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES.keys())
def test_abort_while_a_connection_is_made(place: Callable[..., Any], name: str, certificates: Certificates) -> None:
    face = FACES[name]
    with place(certificates) as at, LoopbackProvider([Reply("Well")]) as provider, Aborter(at.reached) as aborter:
        membrane = Membrane(anthropic(provider.url, Detour(at.transport, at.first_url)))
        assert ended(face, membrane, signal=aborter.signal) == (ABORTED[name], MESSAGE, "")
        assert aborter.seconds_since < WITHIN_S
        assert at.closed.wait(1), "the connection stayed open"
        assert face(membrane).text == "Well"


# While an answer is waited for, and while it comes


@pytest.mark.parametrize("name", FACES)
@pytest.mark.parametrize("way_name", WAYS)
def test_abort_while_the_first_byte_is_waited_for(way_name: str, name: str, certificates: Certificates) -> None:
    face = FACES[name]
    with way(way_name, certificates, held_after(b""), answers_well) as (server, transport):
        membrane = Membrane(anthropic(server.url(""), transport))
        with Aborter(server.reached) as aborter:
            assert ended(face, membrane, signal=aborter.signal) == (ABORTED[name], MESSAGE, "")
            assert aborter.seconds_since < WITHIN_S
        assert server.client_closed.wait(1), "the connection stayed open"
        assert face(membrane).text == "Well"
        assert server.connections == 2


@pytest.mark.parametrize("name", STREAMED)
@pytest.mark.parametrize("way_name", WAYS)
def test_abort_in_the_middle_of_a_stream_keeps_what_has_arrived(
    way_name: str, name: str, certificates: Certificates
) -> None:
    face = STREAMED[name]
    heard = threading.Event()
    begun = HEAD + chunks(*wire.events(HELLO)[:4])
    with way(way_name, certificates, held_after(begun), answers_well) as (server, transport):
        membrane = Membrane(anthropic(server.url(""), transport))
        with Aborter(heard) as aborter:
            options: Any = {"signal": aborter.signal, "on_chunk": lambda text, meta: heard.set()}
            assert ended(face, membrane, **options) == ("user", MESSAGE, "Hello,")
            assert aborter.seconds_since < WITHIN_S
        assert server.client_closed.wait(1), "the connection stayed open"
        assert face(membrane).text == "Well"
        assert server.connections == 2


@pytest.mark.parametrize("way_name", WAYS)
def test_abort_in_the_middle_of_a_whole_answer(way_name: str, certificates: Certificates) -> None:
    begun = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n" + b'{"id": "msg_1", '
    with way(way_name, certificates, held_after(begun), answers_well) as (server, transport):
        membrane = Membrane(anthropic(server.url(""), transport))
        with Aborter(server.reached) as aborter:
            assert ended(complete, membrane, signal=aborter.signal) == ("abort", MESSAGE, "")
            assert aborter.seconds_since < WITHIN_S
        assert server.client_closed.wait(1), "the connection stayed open"
        assert complete(membrane).text == "Well"


def test_the_partial_content_holds_finished_blocks_and_the_one_that_was_arriving() -> None:
    heard: list[str] = []
    answer = faults.silence(Reply("One.", ToolCall("get_weather", {"city": "Bern"}, id="call_1"), "Two"), after=14)
    with stage("anthropic", [answer], clock=Clock()) as on:
        controller = AbortController()

        def on_chunk(text: str, meta: Any) -> None:
            heard.append(text)
            if text == "Two":
                controller.abort()

        result = stream(on.membrane, TOOL_REQUEST, on_chunk=on_chunk, signal=controller.signal)
        assert [block.type for block in result.partial_content] == ["text", "tool_use", "text"]
        assert result.partial_content[1].input == {"city": "Bern"}
        assert result.raw_assistant_text == "One.Two"
        assert result.partial_usage.input_tokens > 0
        assert result.message == "the call was aborted by its signal"


# While nothing is on the wire


@each_format
@pytest.mark.parametrize("name", FACES)
def test_abort_during_a_wait_between_attempts(format: str, name: str) -> None:
    face = FACES[name]
    waiting = threading.Event()
    with stage(format, [Failure(529), Reply("Well")], clock=Clock()) as on, Aborter(waiting) as aborter:
        result = ended(face, on.membrane, signal=aborter.signal, on_retry=lambda info: waiting.set())
        assert result == (ABORTED[name], MESSAGE, "")
        assert aborter.seconds_since < WITHIN_S
        assert on.provider.request_count == 1
        assert face(on.membrane).text == "Well"


class SlowTool:
    """Runs until the call is aborted, then returns its results or raises. ended_at: when."""

    def __init__(self, raises: bool) -> None:
        self.started = threading.Event()
        self.ended_at = 0.0
        self._raises = raises

    def __call__(self, calls: Any, context: Any) -> Any:
        self.started.set()
        assert context.signal.wait(5), "the signal did not reach the tool"
        self.ended_at = time.monotonic()
        if self._raises:
            raise ValueError("the tool broke when it was stopped")
        return [ToolResult(call.id, "half done") for call in calls]


@each_format
@pytest.mark.parametrize("raises", [False, True], ids=["returns", "raises"])
def test_abort_during_a_tool_call(format: str, raises: bool) -> None:
    tool = SlowTool(raises)
    script = [Reply("Let me see.", ToolCall("get_weather", {}, id="call_1")), Reply("Well")]
    with stage(format, script) as on, Aborter(tool.started) as aborter:
        result = stream(on.membrane, TOOL_REQUEST, on_tool_calls=tool, signal=aborter.signal)
        assert time.monotonic() - tool.ended_at < WITHIN_S
        assert (result.reason, result.message, result.raw_assistant_text) == ("user", MESSAGE, "Let me see.")
        assert [call.id for call in result.tool_calls] == ["call_1"]
        assert result.tool_results == ([] if raises else [ToolResult("call_1", "half done")])
        assert on.provider.request_count == 1
        assert stream(on.membrane).text == "Well"


def test_abort_during_the_tools_of_the_last_round_is_an_abort_too() -> None:
    tool = SlowTool(raises=False)
    with stage("anthropic", [Reply(ToolCall("get_weather", {}, id="c"))]) as on, Aborter(tool.started) as aborter:
        result = stream(on.membrane, TOOL_REQUEST, on_tool_calls=tool, signal=aborter.signal, max_tool_depth=0)
        assert (result.reason, result.tool_results) == ("user", [ToolResult("c", "half done")])


def test_results_of_earlier_rounds_are_kept_where_a_later_round_is_aborted() -> None:
    heard = threading.Event()
    script = [Reply(ToolCall("get_weather", {}, id="call_1")), faults.silence(Reply("It is sunny"), after=4)]
    with stage("anthropic", script, clock=Clock()) as on, Aborter(heard) as aborter:
        result = stream(
            on.membrane,
            TOOL_REQUEST,
            on_tool_calls=lambda calls: [ToolResult("call_1", "sun")],
            on_chunk=lambda text, meta: heard.set() if meta.visible else None,
            signal=aborter.signal,
        )
        assert [block.type for block in result.partial_content] == ["tool_use", "tool_result", "text"]
        assert result.tool_results == [ToolResult("call_1", "sun")]
        assert result.raw_assistant_text == "It"


# Before anything, and by other means


@each_face
@each_format
def test_a_signal_that_has_fired_already_sends_nothing(format: str, face: Callable[..., Any]) -> None:
    controller = AbortController()
    controller.abort("enough")
    sent: list[Any] = []
    with stage(format, [Reply("Well")]) as on:
        result = ended(face, on.membrane, signal=controller.signal, on_request=sent.append)
        assert (result.message, result.text) == (MESSAGE, "")
        assert (on.provider.request_count, sent) == (0, [])
        assert face(on.membrane).text == "Well"


@pytest.mark.parametrize("name", FACES)
def test_closing_the_membrane_ends_its_running_calls(name: str) -> None:
    face = FACES[name]
    with LoopbackProvider([faults.silence()]) as provider:
        membrane = Membrane(AnthropicAdapter(api_key="key", base_url=provider.url))

        def close() -> None:
            provider.wait_for_requests(1)
            membrane.close()

        thread = threading.Thread(target=close)
        thread.start()
        reason = "abort" if face is complete else "error"
        assert ended(face, membrane)[:2] == (
            reason,
            "the call was aborted: its transport is closed; make a new Transport for more calls",
        )
        thread.join(5)
        membrane.close()
        assert provider.wait_for_close()


def test_one_signal_ends_many_calls() -> None:
    controller = AbortController()
    results: list[Any] = []
    with stage("anthropic", lambda received: faults.silence(HELLO, after=1), clock=Clock()) as on:
        threads = [
            threading.Thread(target=lambda: results.append(stream(on.membrane, signal=controller.signal)))
            for _ in range(16)
        ]
        for thread in threads:
            thread.start()
        assert on.provider.wait_for_requests(16)
        controller.abort("enough")
        started = time.monotonic()
        for thread in threads:
            thread.join(5)
        assert time.monotonic() - started < 2 * WITHIN_S
        assert [result.reason for result in results] == ["user"] * 16
        assert on.provider.wait_for_close()


class CountingSignal(AbortSignal):
    """Knows how many callbacks wait for it."""

    waiting = 0

    def add_callback(self, callback: Callable[[], object]) -> None:
        self.waiting += 1
        super().add_callback(callback)

    def remove_callback(self, callback: Callable[[], object]) -> None:
        self.waiting -= 1
        super().remove_callback(callback)


@each_face
def test_no_call_stays_registered_with_the_signal(face: Callable[..., Any]) -> None:
    signal = CountingSignal()
    with stage(
        "anthropic", [Reply("Well"), Failure(400), faults.reset(HELLO, after=1)], retry={"max_retries": 1}
    ) as on:
        assert face(on.membrane, signal=signal).text == "Well"
        for _ in range(2):
            with pytest.raises(MembraneError):
                face(on.membrane, signal=signal)
        assert signal.waiting == 0
