"""MockAdapter: canned or echoed answers without a network, for tests and for a class without keys.

    adapter = create_canned_adapter(["Hello!", [{"type": "tool_use", "id": "t1", "name": "get_time", "input": {}}]])

An answer is a string or a list of content blocks; one that holds a tool call stops with "tool_use". In order: what was
queued, then response_generator, then the echo, then default_response.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, Union

from ..call import Call
from ..formatters.anthropic_xml import AnthropicXmlFormatter
from ..values.base import Json, plain
from ..values.content import Block, Text, Thinking, ToolUse, joined_text
from ..values.deltas import (
    BlockEnd,
    BlockStart,
    Delta,
    Finished,
    InputDelta,
    ModelNamed,
    SignatureDelta,
    TextDelta,
    ThinkingDelta,
    UsageReported,
)
from ..values.reader import read_content
from ..values.requests import ProviderRequest
from ..wire.json_text import compact

Answer = Union[str, Sequence[Any]]

DEFAULT_RESPONSE: Final = "This is a mock response."
ECHO_PREFIX: Final = "[Echo] "
NOTHING_TO_ECHO: Final = "(the last message has no text)"
CHARACTERS_PER_TOKEN: Final = 4


class MockAdapter:
    """Delays are in milliseconds and obey the call's clock and signal; stream_chunk_size is in characters."""

    name = "mock"
    default_formatter = AnthropicXmlFormatter

    def __init__(
        self,
        *,
        default_response: Answer = DEFAULT_RESPONSE,
        complete_delay_ms: float = 10,
        stream_chunk_delay_ms: float = 5,
        stream_chunk_size: int = 10,
        echo_mode: bool = False,
        response_queue: Iterable[Answer] = (),
        response_generator: Callable[[ProviderRequest], Answer] | None = None,
    ) -> None:
        self._default: Final = default_response
        self._complete_delay_s: Final = complete_delay_ms / 1000
        self._chunk_delay_s: Final = stream_chunk_delay_ms / 1000
        self._chunk_size: Final = stream_chunk_size
        self._echoes: Final = echo_mode
        self._queue: Final[deque[Answer]] = deque(response_queue)
        self._generator: Final = response_generator
        self._log: Final[list[dict[str, Any]]] = []

    def supports_model(self, model: str) -> bool:
        return True

    def queue_response(self, response: Answer) -> None:
        self._queue.append(response)

    def queue_responses(self, responses: Iterable[Answer]) -> None:
        self._queue.extend(responses)

    def clear_queue(self) -> None:
        self._queue.clear()

    def get_request_log(self) -> list[dict[str, Any]]:
        """Copies of {"timestamp": epoch milliseconds, "request": ProviderRequest}, oldest first."""
        return [dict(entry) for entry in self._log]

    def get_last_request(self) -> ProviderRequest | None:
        return self._log[-1]["request"] if self._log else None

    def clear_request_log(self) -> None:
        self._log.clear()

    def reset(self) -> None:
        """Forget the queue and the log."""
        self.clear_queue()
        self.clear_request_log()

    def close(self) -> None:
        """Nothing is open."""

    def complete(self, provider_request: ProviderRequest, call: Call) -> Iterator[Delta]:
        call.check()
        call.sending(plain(vars(provider_request)))
        call.clock.sleep(self._complete_delay_s, call.signal)
        call.check()
        yield from self._deltas(self._chosen(provider_request, call), provider_request, chunk_size=None)

    def stream(self, provider_request: ProviderRequest, call: Call) -> Iterator[Delta]:
        call.check()
        call.sending(plain(vars(provider_request)))
        content, chunks = self._chosen(provider_request, call), 0
        for delta in self._deltas(content, provider_request, chunk_size=self._chunk_size):
            if isinstance(delta, (TextDelta, ThinkingDelta, InputDelta)):
                if chunks:
                    call.clock.sleep(self._chunk_delay_s, call.signal)
                chunks += 1
                call.check()
            yield delta

    def _chosen(self, request: ProviderRequest, call: Call) -> list[Block]:
        """The next answer; asking for it is what the log records."""
        self._log.append({"timestamp": call.clock.time() * 1000, "request": request})
        if self._queue:
            return read_content(self._queue.popleft(), "response_queue")
        if self._generator is not None:
            return read_content(self._generator(request), "response_generator")
        return read_content(echo(request) if self._echoes else self._default, "default_response")

    def _deltas(self, content: list[Block], request: ProviderRequest, *, chunk_size: int | None) -> Iterator[Delta]:
        yield ModelNamed(request.model)
        for index, block in enumerate(content):
            yield from block_deltas(index, block, chunk_size)
        yield UsageReported(
            {"input_tokens": tokens(compact(request.messages)), "output_tokens": tokens("".join(map(said, content)))}
        )
        reason = "tool_use" if any(isinstance(block, ToolUse) for block in content) else "end_turn"
        raw = {"mock": True, "response_text": joined_text(content), "content": plain(content)}
        yield Finished(reason, reason, raw=raw)


def block_deltas(index: int, block: Block, chunk_size: int | None) -> Iterator[Delta]:
    """A block as a provider would stream it, in pieces of chunk_size characters."""
    if isinstance(block, Text) and not block.is_carrier:
        yield BlockStart(index, Text(""))
        yield from (TextDelta(index, piece) for piece in pieces(block.text, chunk_size))
    elif isinstance(block, Thinking):
        yield BlockStart(index, Thinking(""))
        yield from (ThinkingDelta(index, piece) for piece in pieces(block.thinking, chunk_size))
        if block.signature:
            yield SignatureDelta(index, block.signature)
    elif isinstance(block, ToolUse):
        yield BlockStart(index, ToolUse(block.id, block.name))
        yield from (InputDelta(index, piece) for piece in pieces(compact(block.input), chunk_size))
    else:
        yield BlockStart(index, block)
    yield BlockEnd(index)


def pieces(text: str, size: int | None) -> list[str]:
    return [text[at : at + (size or len(text))] for at in range(0, len(text), size or len(text) or 1)]


def said(block: Block) -> str:
    """What of a block counts as output."""
    if isinstance(block, ToolUse):
        return compact(block.input)
    return block.thinking if isinstance(block, Thinking) else joined_text([block])


def tokens(text: str) -> int:
    """About four characters to a token."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def echo(request: ProviderRequest) -> str:
    content: Json = request.messages[-1]["content"] if request.messages else ""
    if isinstance(content, str):
        return ECHO_PREFIX + (content or NOTHING_TO_ECHO)
    texts = [block["text"] for block in content if block["type"] == "text"]
    return ECHO_PREFIX + (texts[0] if texts else NOTHING_TO_ECHO)


def create_canned_adapter(responses: Iterable[Answer], **config: Any) -> MockAdapter:
    """Answers in that order, then default_response; strings and lists of content blocks."""
    return MockAdapter(response_queue=responses, **config)


def create_echo_adapter(**config: Any) -> MockAdapter:
    """Answers each request with the text of its last message."""
    return MockAdapter(echo_mode=True, **config)
