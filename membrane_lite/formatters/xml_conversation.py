"""A turn in transcript mode: the transcript grows by what the model writes and by its tools' results.

    ...Ann: q\\nClaude:                    sent
    ...Ann: q\\nClaude: <function_calls>…  + what the model wrote, and the tag it was stopped at
    ...</function_calls><function_results>…</function_results>   + the results: sent again, and the model goes on
    ...Ann: q\\nClaude: <thinking>…    + what the model wrote, stopped by "\\nAnn:" as it thinks of her (a false stop)
    ...Ann: q\\nClaude: <thinking>…\\nAnn:    + the stop sequence: sent again, and the model goes on

The first request is the formatter's; every further one is the same but for its last message. Images among results
cannot stand in text: the transcript is cut there, a user message shows them, and a new last message goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from ..resumption import FalseStop
from ..values.base import Json, plain
from ..values.content import Block
from ..values.events import AnyEvent, BlockInfo, ChunkMeta, Tokens
from ..values.messages import Message
from ..values.requests import ProviderRequest, Request
from ..values.tools import ToolCall, ToolResult, calls_of, result_block
from ..wire.json_text import compact
from . import image_media
from .base import BuildSettings, BuildsMessages, ToolTexts, build_options, provider_request
from .call_ids import call_ids
from .stop_sequences import StopMatcher
from .xml_assembly import CALLS_CLOSERS, Carried, XmlAssembler, whole_block
from .xml_reading import parse_calls
from .xml_stream import TagScanner
from .xml_tags import THINKING_OPENER, WHITESPACE
from .xml_tools import refused_images, split_results

NO_INJECTION: Final = "injected_messages: left out, the XML tool mode has no place for them"


class XmlConversation:
    """What was sent, what was said since, and the answer that is being read.

    _tail is the last message's text, _said all that was written since the first request, _turn what of it may hold an
    open tag: what the model wrote, for what others wrote and what tools answered is data. They hold only what has been
    taken in: an answer is taken in when the turn goes on behind it, so that one that is refused leaves no trace.
    """

    def __init__(self, formatter: BuildsMessages, request: Request, settings: BuildSettings) -> None:
        self._request: Final = request
        self._settings: Final = settings
        self._thinks: Final = request.config.thinking is not None and request.config.thinking.enabled
        self._built: Final = formatter.build_messages(
            request.messages, replace(build_options(request, settings), thinking=self._thinks, tool_mode="xml")
        )
        self._prefill: Final = self._built.assistant_prefill or ""
        self._stops: Final = StopMatcher([*self._built.stop_sequences, *CALLS_CLOSERS])
        self._before: list[Json] = list(self._built.messages[:-1])
        self._tail = self._prefill
        self._said = ""
        self._turn = THINKING_OPENER if self._thinks else ""
        self._index = 0
        self._answer: XmlAssembler | None = None
        self._warned = False
        scanner = self._scanner()
        self._baseline: Final = scanner.depths
        self._carried = Carried("", [], _open_block(scanner))

    def build(self) -> ProviderRequest:
        last = {"role": "assistant", "content": self._tail.rstrip(WHITESPACE)}  # providers refuse trailing white space
        messages = [*self._before, last]
        self._settings.fit(messages, shed=self._request.shed_oversize_images)
        return provider_request(self._request, replace(self._built, messages=messages))

    def assembler(self) -> XmlAssembler:
        self._answer = XmlAssembler(
            scanner=self._scanner(),
            stops=self._stops,
            carried=self._carried,
            tools=self._request.tools or (),
            new_ids=partial(call_ids, [list(self._before), self._prefill, self._said_before]),
            baseline=self._baseline,
        )
        return self._answer

    def calls(self, content: Sequence[Block], stop_reason: str) -> list[ToolCall]:
        answer = self._reading
        for warning in answer.warnings:
            self._settings.warn("%s", warning)
        return [call for call in calls_of(content) if call.id in answer.pending]

    def refusal(self, call: ToolCall) -> str:
        return f"The call was not run: {self._reading.refusal(call.id)}"

    def tool_texts(self, content: Sequence[Block], turn: Sequence[Block]) -> ToolTexts:
        answer = self._reading
        earlier = self._said_before
        written = answer.carried.text + answer.text
        block = parse_calls(written, new_id=str)
        if block is None:
            return ToolTexts("", earlier + written, earlier + written)
        return ToolTexts(block.full_match, earlier + block.before_text, earlier + written)

    def add_results(
        self, content: Sequence[Block], results: Sequence[ToolResult], injected: Sequence[Message]
    ) -> Sequence[AnyEvent]:
        if injected and not self._warned:
            self._settings.warn(NO_INJECTION)
            self._warned = True
        for label in refused_images(results):
            self._settings.warn(image_media.STRIPPED, label)
        answer = self._reading
        answered = with_missing(answer.pending, results)
        self._take_in(answer.text, answer.scanner)
        split = split_results(answered)
        suffix = "\n" + THINKING_OPENER if self._thinks else ""
        self._said += split.before + split.after + suffix
        # The openers are all that its text comes to, and it is read again in each round.
        self._turn = answer.scanner.openers + ("" if answer.scanner.depths.thinking else suffix)
        if split.images:
            self._before += [
                {"role": "assistant", "content": (self._tail + split.before).rstrip(WHITESPACE)},
                {"role": "user", "content": split.images},
            ]
            self._tail = split.after + suffix
        else:
            self._tail += split.before + suffix
        self._carried = Carried("", [], _open_block(self._scanner()))
        events = [event for index, result in enumerate(results, self._index) for event in result_events(result, index)]
        self._index += len(results)
        return events

    def false_stop(self) -> FalseStop | None:
        return self._reading.false_stop()

    def resume(self) -> Sequence[AnyEvent]:
        answer = self._reading
        stop = answer.stop_left_out
        carried = Carried(answer.carried.text + answer.text + stop, answer.provided, answer.carried.inside)
        self._take_in(answer.text, answer.scanner)
        scanner = self._scanner()  # a fresh one, to which a tag that the stop cut in two is still one
        events = [*scanner.feed(stop), *scanner.flush()]
        self._take_in(stop, scanner)
        self._carried = carried
        return events

    def raw_text(self, content: Sequence[Block]) -> str:
        return self._said + ("" if self._answer is None else self._answer.text)

    @property
    def _reading(self) -> XmlAssembler:
        assert self._answer is not None
        return self._answer

    def _take_in(self, text: str, scanner: TagScanner) -> None:
        """What the model wrote is a part of the transcript now. scanner: has told of it, to its end."""
        self._tail += text
        self._said += text
        self._turn += text
        self._index = scanner.take_index()
        self._answer = None

    def _scanner(self) -> TagScanner:
        """One that has seen the model's turn so far."""
        scanner = TagScanner(self._index)
        scanner.push(self._turn)
        return scanner

    @property
    def _said_before(self) -> str:
        """What was said before the text that is being read."""
        return self._said[: len(self._said) - len(self._carried.text)]


def _open_block(scanner: TagScanner) -> str | None:
    return None if scanner.block_type == "text" else scanner.block_type


def with_missing(pending: Sequence[str], results: Sequence[ToolResult]) -> list[ToolResult]:
    """Results stand for their calls by their place: one that is missing among others is said to be missing."""
    given = {result.tool_use_id: result for result in results}
    if not given:
        return []
    of_calls = [given.get(call) or ToolResult(call, "[pending]") for call in pending]
    return [*of_calls, *(result for result in results if result.tool_use_id not in pending)]


def result_events(result: ToolResult, index: int) -> list[AnyEvent]:
    """A result as the stream tells of it: content that is no string as JSON."""
    block, content = result_block(result), result.content
    info = BlockInfo("tool_result", content=content, tool_id=result.tool_use_id, is_error=result.is_error)
    started, completed = whole_block(block, index, info)
    said = content if isinstance(content, str) else compact(plain(content))
    told = [Tokens(said, ChunkMeta("tool_result", index, tool_id=result.tool_use_id))] if said else []
    return [started, *told, completed]
