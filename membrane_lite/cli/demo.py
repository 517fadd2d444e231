"""`membrane-lite demo`: one turn with a tool over each wire format, every byte of it to look at.

Nothing goes in: the provider runs in this process, on 127.0.0.1, and answers by SCRIPT. Out come lines of at most 96
characters, the same on every run. LESSONS decides which adapters are shown.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple, TextIO

from ..call import Call
from ..loopback import LoopbackProvider, Received, Reply
from ..loopback import ToolCall as Calls
from ..membrane import Membrane
from ..providers.anthropic import AnthropicAdapter
from ..providers.base import Adapter
from ..providers.openai_compatible import OpenAICompatibleAdapter
from ..redactor import Redactor
from ..transport.interface import ByteStream, OpensRequests
from ..values.content import Text, ToolResultBlock, ToolUse
from ..values.responses import Cost, Response
from ..values.tools import ToolCall, ToolResult
from ..wire.http import HttpRequest, header

WIDTH: Final = 96
EVENTS_SHOWN: Final = 5
KEY: Final = "demo-key-of-no-value"

SCRIPT: Final = (
    Reply("I will look.", Calls("get_weather", {"city": "Bern"})),
    Reply("It is 12 degrees in Bern, with light rain."),
)

INTRODUCTION: Final = """\
membrane-lite demo: the same question, with the same tool, over each wire format.

No key and no network: the provider is a LoopbackProvider on 127.0.0.1 that answers by a script.
JSON bodies are indented here, long lines folded, the key hidden; the rest is as it was sent."""


class Lesson(NamedTuple):
    """One adapter to be shown. adapter: makes it, of the provider's address and a transport."""

    title: str
    adapter: Callable[[str, OpensRequests], Adapter]
    model: str
    provider_params: dict[str, Any]


def run(out: TextIO) -> None:
    print(INTRODUCTION, file=out)
    with LoopbackProvider(SCRIPT * len(LESSONS)) as provider:
        for number, lesson in enumerate(LESSONS, 1):
            print("", ruled(f"{number}. {lesson.title}", "="), sep="\n", file=out)
            for line in shown(lesson, provider):
                print(line, file=out)


def shown(lesson: Lesson, provider: LoopbackProvider) -> Iterator[str]:
    """Make the lesson's call, and tell of it from both ends of the wire."""
    before = len(provider.requests)
    with provider.transport() as transport:
        tap = Tap(transport)
        response = Membrane(lesson.adapter(provider.url, tap)).stream(request(lesson), on_tool_calls=weather)
    assert isinstance(response, Response)
    first, second = provider.requests[before:]
    yield from section("Request 1, as the provider received it", sent(first))
    yield from section(f"Answer 1, as it arrived: the first {EVENTS_SHOWN} events", tap.answers[0].first_lines())
    yield from section("Request 2 has these messages more: the call, and what came of it", added(first, second))
    yield from section("The response, in one form for every provider", told(response))


def request(lesson: Lesson) -> dict[str, Any]:
    return {
        "messages": [{"participant": "User", "content": "What is the weather in Bern?"}],
        "config": {"model": lesson.model, "max_tokens": 256},
        "tools": [
            {
                "name": "get_weather",
                "description": "The weather in a city, now.",
                "input_schema": {
                    "type": "object",
                    "properties": {"city": {"type": "string"}},
                    "required": ["city"],
                },
            }
        ],
        "provider_params": lesson.provider_params,
    }


def weather(calls: list[ToolCall]) -> list[ToolResult]:
    return [ToolResult(call.id, f"{call.input['city']}: 12 degrees Celsius, light rain") for call in calls]


# What is told


def sent(received: Received) -> Iterator[str]:
    """Request line, headers and body. The port is another on each run, so it has no place here."""
    yield f"{received.method} {received.target} HTTP/1.1"
    for name, value in received.headers:
        yield f"{name}: {value.partition(':')[0] if name == 'Host' else value}"
    yield ""
    yield from indented(received.json)


def added(first: Received, second: Received) -> list[str]:
    return indented(second.json["messages"][len(first.json["messages"]) :])


def told(response: Response) -> Iterator[str]:
    for block in response.content:
        yield f"{block.type:<12} {TOLD[type(block)](block)}"
    usage, stop = response.usage, response.details.stop
    yield f"{'stop_reason':<12} {response.stop_reason} (the provider's word: {stop.provider_reason})"
    yield f"{'usage':<12} {usage.input_tokens} tokens in, {usage.output_tokens} out, both rounds together"
    yield f"{'cost':<12} {price(usage.estimated_cost)}"


def price(cost: Cost | None) -> str:
    return "unknown" if cost is None or cost.total is None else f"{cost.total:.6f} {cost.currency}, estimated"


def indented(value: Any) -> list[str]:
    return json.dumps(value, indent=2).splitlines()


# How it looks


def section(title: str, lines: Iterable[str]) -> Iterator[str]:
    redactor = Redactor([KEY])
    yield ""
    yield ruled(title, "-")
    for line in lines:
        yield from folded(redactor.text(line))


def ruled(title: str, rule: str) -> str:
    return f"{rule * 3} {title} ".ljust(WIDTH, rule)


def folded(line: str) -> Iterator[str]:
    """A line in pieces of WIDTH; those after the first stand four spaces in."""
    yield line[:WIDTH]
    for start in range(WIDTH, len(line), WIDTH - 4):
        yield "    " + line[start : start + WIDTH - 4]


# What is seen on the way


class Tap:
    """A transport around another one: it keeps what arrives, before anything has read it."""

    def __init__(self, transport: OpensRequests) -> None:
        self.redactor = transport.redactor
        self.answers: Final[list[TappedStream]] = []
        self._transport: Final = transport

    def open(self, request: HttpRequest, call: Call) -> ByteStream:
        self.answers.append(TappedStream(self._transport.open(request, call)))
        return self.answers[-1]

    def close(self) -> None:
        self._transport.close()


class TappedStream:
    """An answer whose bytes are kept while they pass."""

    def __init__(self, stream: ByteStream) -> None:
        self.status = stream.status
        self.headers = stream.headers
        self._stream: Final = stream
        self._seen: Final = bytearray()

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._stream:
            self._seen.extend(chunk)
            yield chunk

    def read(self, limit: int) -> bytes:
        return self._stream.read(limit)

    def finish(self) -> None:
        self._stream.finish()

    def close(self) -> None:
        self._stream.close()

    def first_lines(self) -> Iterator[str]:
        """Status, type, and the first events; how much of the rest was read is chance, and so not told."""
        yield f"HTTP/1.1 {self.status}"
        yield f"Content-Type: {header(self.headers, 'content-type')}"
        yield ""
        for event in self._seen.decode("utf-8").split("\n\n")[:EVENTS_SHOWN]:
            yield from [*event.split("\n"), ""]
        yield "and so on"


TOLD: Final[Mapping[type, Callable[[Any], str]]] = {
    Text: lambda block: str(block.text),
    ToolUse: lambda block: f"{block.name}({json.dumps(block.input)})   id {block.id}",
    ToolResultBlock: lambda block: f"{block.content}   for {block.tool_use_id}",
}

LESSONS: Final = (
    Lesson(
        "AnthropicAdapter: Anthropic Messages",
        lambda url, transport: AnthropicAdapter(api_key=KEY, base_url=url, transport=transport),
        model="claude-sonnet-4-5",
        provider_params={},
    ),
    Lesson(
        "OpenAICompatibleAdapter: chat completions",
        lambda url, transport: OpenAICompatibleAdapter(api_key=KEY, base_url=url + "/v1", transport=transport),
        model="gpt-4.1-mini",
        provider_params={"stream_options": {"include_usage": True}},
    ),
)
