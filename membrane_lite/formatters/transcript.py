r"""A conversation as one transcript that the model goes on with: every message a line of its participant.

    system "S"                       {"role": "user", "content": "[Start]"}
    Ann "hi", Claude "yo", Ann "q"   {"role": "assistant", "content": "Ann: hi\nClaude: yo\nAnn: q\nClaude:"}
                                     stops: \nAnn:  </function_calls>

Roles say nothing here: the assistant's own turns are labelled like everybody's, and the last provider message is the
beginning of its next one. What interrupts the transcript: images, which only a user message can hold, and cache
markers, which need a message to stand on. WRITERS, at the end, says how each kind of block becomes text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple

from ..errors import MembraneError, invalid
from ..values.base import Json
from ..values.content import Audio, Document, Image, Text, ToolResultBlock, ToolUse, Video
from ..values.messages import Message
from ..values.tools import Tool
from . import cache_markers, image_media
from .anthropic_xml import TranscriptSettings
from .base import BuildOptions, BuildResult, text_block, text_blocks
from .stop_sequences import next_speakers
from .xml_tags import CALLS_CLOSER, THINKING_OPENER, is_blank
from .xml_tools import tools_entry, written_calls, written_results

UNSUPPORTED: Final = (Document, Audio, Video)

# What stands before a transcript, for a conversation must begin with the user. Without a system text the model is told
# what kind of answer the transcript is.
START: Final = "[Start]"
CLI_COMMAND: Final = "<cmd>cat untitled.txt</cmd>"
CLI_SYSTEM: Final = (
    "The assistant is in CLI simulation mode, and responds to the user's CLI commands only with the output of the "
    "command."
)


def build_transcript(messages: Sequence[Message], options: BuildOptions, settings: TranscriptSettings) -> BuildResult:
    """The provider's messages, the system text and the stop sequences of a request. Changes no message."""
    _check_names(options.tools or ())
    transcript = _Transcript(len(messages), options, settings)
    for index, message in enumerate(messages):
        transcript.add(message, index)
    prefill = transcript.finish()
    built, system = _begun_by_user(transcript.messages, _system(options, settings), options)
    if options.prompt_caching and system and not cache_markers.has_marker([{"content": system}]):
        cache_markers.mark_last(system, options.cache_ttl)
    return BuildResult(
        messages=built,
        system_content=system,
        stop_sequences=_stops(messages, options, settings),
        assistant_prefill=prefill,
        cache_markers_applied=cache_markers.settle(None, system, built, options),
    )


def _check_names(tools: Sequence[Tool]) -> None:
    """Two tools of one name could not be told apart in a call."""
    first = {tool.name: index for index, tool in reversed(list(enumerate(tools)))}
    for index, tool in enumerate(tools):
        if first[tool.name] != index:
            found = f"found {tool.name!r}, which is the name of tools[{first[tool.name]}] too"
            raise invalid(f"tools[{index}].name", found, "names must differ")


class _Said(NamedTuple):
    """What of a message is sent. kinds: of the blocks that make its text."""

    text: str
    images: list[Json]
    kinds: frozenset[type]

    @property
    def is_blank(self) -> bool:
        return is_blank(self.text)

    @property
    def has_results(self) -> bool:
        return ToolResultBlock in self.kinds

    @property
    def only_results(self) -> bool:
        return self.kinds == {ToolResultBlock}


class _Transcript:
    """Grows by a message at a time. What waits in `_entries` becomes one assistant message."""

    def __init__(self, count: int, options: BuildOptions, settings: TranscriptSettings) -> None:
        self.messages: Final[list[Json]] = []
        self._options: Final = options
        self._settings: Final = settings
        self._reader: Final = _MessageReader(options, settings)
        self._last: Final = count - 1
        self._tools_from: Final = max(count - settings.tool_injection_position, 0)
        self._tools = tools_entry(options.tools) if options.tools and _tells_in_conversation(settings) else None
        self._entries: list[str] = []
        self._speaker: str | None = None
        self._after_results = False
        if options.context_prefix:
            self.messages.append(cache_markers.cached_turn(options.context_prefix, options))

    def add(self, message: Message, index: int) -> None:
        said = self._reader.read(message, index)
        if said.images:
            self._add_images(message, said)
        elif index == self._last or not said.is_blank:
            self._add_text(message, index, said)

    def finish(self) -> str:
        """The beginning of the assistant's next turn is the last thing in the transcript. Returns its last message."""
        if self._tools is not None:
            self._entries.append(self._tools)
        turn = f"{self._options.assistant_participant}:"
        self._entries.append(f"{turn} {THINKING_OPENER}" if self._options.thinking else turn)
        prefill = self._joined()
        self._flush(marked=False)
        return prefill

    def _add_images(self, message: Message, said: _Said) -> None:
        self._flush(marked=False)
        text = [{"type": "text", "text": f"{message.participant}: {said.text}"}] if said.text else []
        self.messages.append({"role": "user", "content": [*text, *said.images]})
        self._speaker = message.participant
        self._after_results = False

    def _add_text(self, message: Message, index: int, said: _Said) -> None:
        options = self._options
        if options.has_cache_marker is not None and options.has_cache_marker(message, index):
            self._flush(marked=True)
        if self._tools is not None and self._tools_are_due(index):
            self._entries.append(self._tools)
            self._tools = None
        if index == self._last and self._is_said_already(message, said):
            return
        if not said.is_blank:
            self._add_entry(message.participant, said)
        if message.cache_breakpoint and options.prompt_caching:
            self._flush(marked=True)

    def _tools_are_due(self, index: int) -> bool:
        """In a conversation too short for their position, before its first message or not before its end."""
        return index >= self._tools_from if self._tools_from else index == 0

    def _is_said_already(self, message: Message, said: _Said) -> bool:
        """A second turn of the assistant in a row, at the end: it is what the model is to write."""
        is_second = message.participant == self._speaker == self._options.assistant_participant
        return is_second and not said.has_results and not self._after_results

    def _add_entry(self, participant: str, said: _Said) -> None:
        """Results are nobody's words; what the assistant says right after them goes on with the turn they are in."""
        goes_on = self._after_results and participant == self._options.assistant_participant
        label = "" if said.only_results or goes_on else f"{participant}: "
        self._entries.append(label + said.text + self._settings.message_delimiter)
        self._after_results = said.only_results
        if not said.has_results:
            self._speaker = participant

    def _joined(self) -> str:
        return ("" if self._settings.message_delimiter else "\n").join(self._entries)

    def _flush(self, *, marked: bool) -> None:
        """What waits becomes an assistant message, if anything does; marked, it is there to be cached."""
        if not self._entries:
            return
        text, options = self._joined(), self._options
        cached = marked and options.prompt_caching
        plain = {"role": "assistant", "content": text}
        self.messages.append(cache_markers.cached_turn(text, options) if cached else plain)
        self._entries = []


class _MessageReader:
    """What a message says, and what is left out of it, with a warning."""

    def __init__(self, options: BuildOptions, settings: TranscriptSettings) -> None:
        self._warn: Final = options.tell
        self._settings: Final = settings
        self._told_of_addresses = False

    def read(self, message: Message, index: int) -> _Said:
        self._look_for_media(message, index)
        texts: list[str] = []
        images: list[Json] = []
        kinds: set[type] = set()
        blocks = [block for block in message.content if not (isinstance(block, Text) and block.is_carrier)]
        for kind, run in groupby(blocks, type):
            for part in self._parts(kind, list(run)):
                if isinstance(part, str):
                    texts.append(part)
                    kinds.add(kind)
                else:
                    images.append(part)
        return _Said("\n".join(texts), images, frozenset(kinds))

    def _look_for_media(self, message: Message, index: int) -> None:
        found = dict.fromkeys(block.type for block in message.content if isinstance(block, UNSUPPORTED))
        if not found:
            return
        if self._settings.unsupported_media == "error":
            raise MembraneError(
                "unsupported",
                f"messages[{index}] of {message.participant!r}: found {', '.join(found)}, which no transcript holds; "
                "leave it out, or let AnthropicXmlFormatter(unsupported_media='strip') do so",
            )
        if self._settings.warn_on_strip:
            self._warn("%s left out of the message of %s", ", ".join(found), message.participant)

    def _parts(self, kind: type, blocks: Sequence[Any]) -> list[str | dict[str, Json]]:
        """Texts and image blocks of neighbours of one kind."""
        if kind is Image:
            return [part for block in blocks for part in self._image(block)]
        return [WRITERS[kind](blocks)] if kind in WRITERS else []

    def _image(self, block: Image) -> Sequence[str | dict[str, Json]]:
        if block.source["type"] == "url":
            self._tell_of_address()
            return ()
        written = image_media.block(block.source)
        if written is not None:
            return (written,)
        label = block.source.get("media_type")
        self._warn(image_media.STRIPPED, label)
        return (image_media.placeholder(label),)

    def _tell_of_address(self) -> None:
        if not self._told_of_addresses:
            self._told_of_addresses = True
            self._warn("images given by URL are left out: a transcript takes them as base64 only")


def _tells_in_conversation(settings: TranscriptSettings) -> bool:
    return settings.tool_injection_mode == "conversation"


def _system(options: BuildOptions, settings: TranscriptSettings) -> list[Json] | None:
    """The system text as blocks, the tools behind it if they belong there; None where it would say nothing."""
    blocks = text_blocks(options.system_prompt)
    if options.tools and not _tells_in_conversation(settings):
        told = f"\n\n{tools_entry(options.tools)}\n"
        last = blocks.pop() if blocks else text_block("")
        blocks.append({**last, "text": last["text"] + told})
    return blocks if any(block["text"] for block in blocks) else None


def _begun_by_user(
    messages: list[Json], system: list[Json] | None, options: BuildOptions
) -> tuple[list[Json], list[Json] | None]:
    """The messages, led by one of the user's, and the system text that goes with it."""
    if messages[0]["role"] == "user":
        return messages, system
    opening = options.prefill_user_message
    if not opening and system is None:
        opening, system = CLI_COMMAND, [text_block(CLI_SYSTEM)]
    return [{"role": "user", "content": opening or START}, *messages], system


def _stops(messages: Sequence[Message], options: BuildOptions, settings: TranscriptSettings) -> list[str]:
    """Whoever else would speak next, the latest speakers first; the end of the calls; the caller's own."""
    others = next_speakers(reversed(messages), options, most=settings.max_participants_for_stop)
    return [*(f"\n{name}:" for name in others), CALLS_CLOSER, *options.additional_stop_sequences]


def _lines(blocks: Sequence[Text]) -> str:
    return "\n".join(block.text for block in blocks)


# Neighbours of one kind are written together. Images stand for themselves; thinking, and images the model made, are not
# sent.
WRITERS: Final[dict[type, Callable[[Sequence[Any]], str]]] = {
    Text: _lines,
    ToolUse: written_calls,
    ToolResultBlock: written_results,
}
