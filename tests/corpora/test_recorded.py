"""What providers really sent, served again over a socket: the result is the one a correct client should reach."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Union

import pytest
from corpora.provider_table import PROVIDERS
from corpora.recorded_exchange import Exchange
from shared_data import shared

from membrane_lite import Membrane, MembraneError, Response, ToolResult
from membrane_lite.loopback import LoopbackProvider

Result = Union[Response, MembraneError]

# The model is none that a recorded answer names: who answered must come from the answer.
ASKED = {"messages": [{"participant": "User", "content": "Go on."}], "config": {"model": "asked-for", "max_tokens": 64}}

EXCHANGES = {
    exchange.id: exchange
    for provider in PROVIDERS
    for exchange in map(Exchange, sorted((shared("recorded") / provider).glob("*.json")))
}
MOST_CHUNKS = 2_000
LONG = 5_000  # writes
CUTS = {"7 bytes each": 7, "1 byte each": 1}


def completed(membrane: Membrane) -> Any:
    return membrane.complete(ASKED, retry=False)


def streamed(membrane: Membrane) -> Any:
    return membrane.stream(ASKED, retry=False)


def looped_over(membrane: Membrane) -> Any:
    """The result of a loop over events. Tools are answered with nothing, and at depth 0 that is not sent on."""
    with membrane.stream_yielding(ASKED, retry=False, max_tool_depth=0) as stream:
        event: Any
        for event in stream:
            if event.type == "tool-calls":
                stream.provide_tool_results([ToolResult(call.id, "") for call in event.calls])
    return event.error if event.type == "error" else event.response


def result(exchange: Exchange, face: Callable[[Membrane], Result], **how: Any) -> Result:
    """What the client makes of the exchange's bytes: a response, or the error it raises."""
    with LoopbackProvider([exchange.answer(**how)]) as provider, provider.transport() as transport:
        base_url = provider.url + exchange.provider.base_path
        adapter = exchange.provider.adapter(base_url=base_url, api_key="a-key-of-the-test", transport=transport)
        try:
            given = face(Membrane(adapter))
        except MembraneError as error:
            given = error
        assert provider.request_count == 1
        return given


def timeless(given: Result) -> Mapping[str, Any]:
    """A result as a mapping, without what two runs of the same bytes may differ in."""
    fields = given.to_dict()
    fields.get("details", {}).pop("timing", None)
    return fields


@pytest.mark.parametrize("exchange", EXCHANGES.values(), ids=EXCHANGES.keys())
def test_a_recorded_answer_is_understood(exchange: Exchange) -> None:
    seen, wanted = exchange.compared(result(exchange, streamed if exchange.streamed else completed))
    assert seen == wanted


@pytest.mark.parametrize("exchange", EXCHANGES.values(), ids=EXCHANGES.keys())
def test_a_recorded_answer_is_understood_by_a_loop_over_its_events(exchange: Exchange) -> None:
    seen, wanted = exchange.compared(result(exchange, looped_over))
    assert seen == wanted


def cut_up() -> Iterator[Any]:
    """Every exchange in writes of 7 bytes and of 1; the long ones byte by byte are slow tests."""
    for name, exchange in EXCHANGES.items():
        for how, cut in CUTS.items():
            slow = [pytest.mark.slow] if exchange.size // cut > LONG else []
            yield pytest.param(exchange, cut, id=f"{name}-{how}", marks=slow)


@pytest.mark.parametrize("exchange, cut", list(cut_up()))
def test_where_the_network_cuts_an_answer_changes_nothing(exchange: Exchange, cut: int) -> None:
    face = streamed if exchange.streamed else completed
    # Chunked, each write is a chunk of its own, and reaches the reader as one. A long body of one-byte chunks takes a
    # second, so those are framed by the end of the connection: written byte by byte too, read as the kernel joins them.
    framing = "chunked" if exchange.size // cut <= MOST_CHUNKS else "close"
    cut_answer = result(exchange, face, chunks=cut, framing=framing)
    assert timeless(cut_answer) == timeless(result(exchange, face, framing=framing))
