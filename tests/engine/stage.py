"""The stage of every test here: a provider that follows a script, a Membrane that calls it, a clock that never waits.

with stage("chat", [Failure(503), Reply("Hello")]) as on:
    on.membrane.complete(REQUEST)
    on.provider.request_count, on.clock.waits_ms
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

from membrane_lite import (
    AnthropicAdapter,
    Clock,
    Membrane,
    MembraneError,
    OpenAICompatibleAdapter,
    is_aborted_response,
)
from membrane_lite.abort import AbortSignal
from membrane_lite.loopback import LoopbackProvider
from membrane_lite.values.events import (
    is_aborted_event,
    is_complete_event,
    is_error_event,
    is_tokens_event,
    is_tool_calls_event,
)

REQUEST: Any = {
    "messages": [{"participant": "User", "content": "Hi"}],
    "config": {"model": "claude-sonnet-4-5", "max_tokens": 64},
}
WEATHER: Any = {"name": "get_weather", "description": "", "input_schema": {"type": "object", "properties": {}}}
TOOL_REQUEST: Any = {**REQUEST, "tools": [WEATHER]}


class FakeClock(Clock):
    """Time passes only where somebody waits, and then at once; or where a test says so: pass_(seconds), or look_costs.

    waits_ms: every wait, in order. look_costs: seconds that each look at the clock takes, so that a long silence
    passes in a few looks.
    """

    def __init__(self, draw: float = 0.5) -> None:
        self.now = 1_000.0
        self.look_costs = 0.0
        self.waits_ms: list[int] = []
        self._draw = draw

    def monotonic(self) -> float:
        self.now += self.look_costs
        return self.now

    def pass_(self, seconds: float) -> None:
        self.now += seconds

    def hurry(self, look_costs: float) -> None:
        self.look_costs = look_costs

    def time(self) -> float:
        return 1_750_000_000 + self.now

    def random(self) -> float:
        return self._draw

    def sleep(self, seconds: float, signal: AbortSignal | None = None) -> bool:
        self.waits_ms.append(round(seconds * 1000))
        self.now += seconds
        return signal is not None and signal.aborted


def anthropic(url: str, transport: Any, **options: Any) -> AnthropicAdapter:
    return AnthropicAdapter(api_key="key", base_url=url, transport=transport, **options)


def chat(url: str, transport: Any, **options: Any) -> OpenAICompatibleAdapter:
    return OpenAICompatibleAdapter(base_url=url + "/v1", transport=transport, **options)


FORMATS: dict[str, Callable[..., Any]] = {"anthropic": anthropic, "chat": chat}
each_format = pytest.mark.parametrize("format", FORMATS)


class Stage(NamedTuple):
    membrane: Membrane
    provider: LoopbackProvider
    clock: FakeClock


@contextmanager
def stage(
    format: str,
    script: Any = (),
    *,
    clock: Clock | None = None,
    adapter: Any = None,
    transport: Any = None,
    **settings: Any,
) -> Iterator[Stage]:
    """adapter, transport: options of theirs; settings: of the Membrane. Without a clock it is a FakeClock."""
    chosen: Any = clock or FakeClock()
    with LoopbackProvider(script) as provider, provider.transport(**(transport or {})) as opener:
        speaker = FORMATS[format](provider.url, opener, **(adapter or {}))
        yield Stage(Membrane(speaker, clock=chosen, **settings), provider, chosen)


# The three faces, made alike: the result, an AbortedResponse too; a failure raises.


def complete(membrane: Membrane, request: Any = REQUEST, **options: Any) -> Any:
    return membrane.complete(request, **options)


def stream(membrane: Membrane, request: Any = REQUEST, **options: Any) -> Any:
    return membrane.stream(request, **options)


def stream_yielding(
    membrane: Membrane,
    request: Any = REQUEST,
    *,
    on_chunk: Callable[..., Any] | None = None,
    on_tool_calls: Callable[..., Any] | None = None,
    **options: Any,
) -> Any:
    result = None
    event: Any
    with membrane.stream_yielding(request, **options) as events:
        for event in events:
            assert result is None, "an event after the last one"
            if is_tokens_event(event) and on_chunk is not None:
                on_chunk(event.content, event.meta)
            elif is_tool_calls_event(event):
                assert on_tool_calls is not None
                events.provide_tool_results(on_tool_calls(event.calls, event.context))
            elif is_error_event(event):
                raise event.error
            elif is_complete_event(event) or is_aborted_event(event):
                result = event.response
    assert result is not None, "no last event"
    return result


FACES: dict[str, Callable[..., Any]] = {"complete": complete, "stream": stream, "stream_yielding": stream_yielding}
STREAMED = {name: face for name, face in FACES.items() if name != "complete"}
each_face = pytest.mark.parametrize("face", FACES.values(), ids=FACES.keys())
each_streamed_face = pytest.mark.parametrize("face", STREAMED.values(), ids=STREAMED.keys())


class Ended(NamedTuple):
    """How a call was cut short, whichever face says so."""

    reason: str  # of the AbortedResponse; of the error that complete() raises, its type
    message: str
    text: str


def ended(face: Callable[..., Any], *args: Any, **options: Any) -> Ended:
    if face is complete:
        with pytest.raises(MembraneError) as caught:
            face(*args, **options)
        assert not caught.value.retryable
        return Ended(caught.value.type, caught.value.message, caught.value.raw_assistant_text)
    result = face(*args, **options)
    assert is_aborted_response(result), result
    return Ended(result.reason, result.message or "", result.raw_assistant_text)
