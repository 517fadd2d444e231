"""NativeFormatter: participants become the provider's own user and assistant roles, tools the provider's own tools.

    Ann: "hi"              {"role": "user", "content": [{"type": "text", "text": "Ann: hi"}]}
    Claude: "yo"     ->    {"role": "assistant", "content": [{"type": "text", "text": "yo"}]}
    Ann: "q", Bob: "r"     {"role": "user", "content": [{"type": "text", "text": "Ann: q"}, {... "Bob: r"}]}

BLOCKS, at the end, says how each block is written. What comes out is the shape of Anthropic's Messages API; the other
adapters translate it. Only that API has a role for system changes; see system_changes.py for where they go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from ..errors import MembraneError
from ..values.base import Json, plain
from ..values.content import (
    Audio,
    Block,
    Document,
    GeneratedImage,
    Image,
    RedactedThinking,
    SystemChange,
    Text,
    Thinking,
    ToolResultBlock,
    ToolUse,
    Video,
    is_system_change,
    joined_text,
)
from ..values.events import AnyEvent
from ..values.messages import Message, user_side_name
from ..values.reader import misplaced_change
from ..values.requests import ProviderRequest, Request
from ..values.tools import Tool, ToolCall, ToolResult, calls_of, result_block
from ..wire.json_text import compact
from . import cache_markers, image_media, system_changes
from .assembly import NativeAssembler
from .base import (
    BuildOptions,
    BuildResult,
    BuildSettings,
    BuildsMessages,
    ToolMode,
    ToolTexts,
    build_options,
    provider_request,
    text_block,
    text_blocks,
)
from .floating_marker import FloatingMarker
from .system_changes import Change
from .tool_names import sent_tool_name, sent_tool_names
from .tool_pairs import repair

SIMPLE_NEEDS_HUMAN: Final = "NativeFormatter: participant_mode 'simple' needs human_participant"
NOT_READY: Final = (
    "messages: a tool call was declared to be still running (pending_tool_call_ids) and has no result yet; send the "
    "request when its result is there (nothing was sent)"
)


class NativeFormatter:
    """name_format: what stands before a user-side text, `{name}` replaced.

    unsupported_media "strip" leaves documents, audio and video out, with a warning unless warn_on_strip is False;
    "error" leaves them to the adapter, which refuses those its provider cannot take.
    """

    name = "native"
    uses_prefill = False
    supports_native_tools = True
    supports_xml_tools = False
    configured_tool_mode: ToolMode | None = None
    takes_system_changes = True

    def __init__(
        self,
        *,
        name_format: str = "{name}: ",
        unsupported_media: Literal["error", "strip"] = "error",
        warn_on_strip: bool = True,
    ) -> None:
        self._name_format: Final = name_format
        self._strips_media: Final = unsupported_media == "strip"
        self._warns_on_strip: Final = warn_on_strip

    def conversation(self, request: Request, settings: BuildSettings) -> NativeConversation:
        return NativeConversation(self, request, settings)

    def build_messages(self, messages: Sequence[Message], options: BuildOptions) -> BuildResult:
        """Roles, repaired tool pairs, tools, system text and cache markers of a request. Changes no message."""
        names = sent_tool_names(options.tools or (), options.tool_names, defined=system_changes.defined_tools(messages))
        built, changes = self._built(messages, options, names)
        repaired = repair(
            built,
            pending=options.pending_tool_call_ids,
            leading_user_text=options.prefill_user_message or "[continuing]",
            report=options.on_normalize,
        )
        placed = system_changes.placed(repaired.messages, changes, built) if changes else repaired.messages
        system, tools = _system(options.system_prompt), _tools(options.tools, names)
        if options.prompt_caching and not cache_markers.has_marker(placed):
            system = _marked_system(system, options.cache_ttl)
            if tools:
                cache_markers.mark_last(tools, options.cache_ttl)
        most = cache_markers.MOST_MARKERS if options.prompt_caching else 0
        markers = cache_markers.settle(tools, system, placed, options)
        return BuildResult(
            messages=placed,
            system_content=system,
            native_tools=tools,
            stop_sequences=list(options.additional_stop_sequences),
            tool_names={sent: declared for declared, sent in names.items()},
            cache_markers_applied=markers,
            free_markers=most - markers,
            ready=repaired.ready,
        )

    def format_tool_results(self, results: Sequence[ToolResult], thinking: bool = False) -> str:
        """Results as JSON text, for a caller who lays a conversation out by hand."""
        return compact([result.to_dict() for result in results])

    def parse_tool_calls(self, text: str, tools: Sequence[Tool] = ()) -> list[ToolUse]:
        """None: calls are blocks of their own, what looks like one in a text is text."""
        return []

    def has_tool_use(self, text: str) -> bool:
        return False

    def parse_content_blocks(self, text: str, tools: Sequence[Tool] = ()) -> list[Block]:
        return [Text(text)] if text.strip() else []

    def _built(
        self, messages: Sequence[Message], options: BuildOptions, names: Mapping[str, str]
    ) -> tuple[list[Json], list[Change]]:
        """What is sent of each message, and apart from it the system changes, which belong to neither side."""
        built = [cache_markers.cached_turn(options.context_prefix, options)] if options.context_prefix else []
        changes: list[Change] = []
        for index, message in enumerate(messages):
            if options.has_cache_marker is not None and options.has_cache_marker(message, index) and built:
                cache_markers.mark_last(built[-1]["content"], options.cache_ttl)
            is_change = all(map(is_system_change, message.content))
            blocks = _change_blocks(message, options, names) if is_change else self._blocks(message, options, names)
            if blocks and message.cache_breakpoint and options.prompt_caching:
                cache_markers.mark_last(blocks, options.cache_ttl)
            if blocks and is_change:
                changes.append(Change(blocks, at=index, before=len(built)))
            elif blocks:
                built.append({"role": _role(message, options), "content": blocks})
        return built, changes

    def _blocks(self, message: Message, options: BuildOptions, names: Mapping[str, str]) -> list[Json]:
        """The message's blocks as sent; the first text of a user-side message begins with its participant's name."""
        prefix = self._prefix(message, options)
        blocks: list[Json] = []
        for block in message.content:
            if self._strips_media and isinstance(block, (Document, Audio, Video)):
                if self._warns_on_strip:
                    options.tell("%s left out of the message of %s", block.type, message.participant)
                continue
            written = _written(block, options, names)
            if written is None:
                continue
            if prefix and isinstance(block, Text) and written["type"] == "text":
                written, prefix = {**written, "text": prefix + written["text"]}, ""
            blocks.append(written)
        return blocks

    def _prefix(self, message: Message, options: BuildOptions) -> str:
        if message.participant == options.assistant_participant:
            return ""
        if options.participant_mode == "multiuser":
            return self._name_format.replace("{name}", message.participant, 1)
        if options.human_participant is None:
            raise MembraneError("invalid_request", SIMPLE_NEEDS_HUMAN)
        if message.participant != options.human_participant:
            raise MembraneError(
                "invalid_request",
                f"NativeFormatter: participant_mode 'simple' knows {options.human_participant!r} and "
                f"{options.assistant_participant!r}, found {message.participant!r}; use 'multiuser'",
            )
        return ""


class NativeConversation:
    """The dialogue of one turn: messages grow by each tool round, exactly as the provider sent them."""

    def __init__(self, formatter: BuildsMessages, request: Request, settings: BuildSettings) -> None:
        self._formatter: Final = formatter
        self._request: Final = request
        self._settings: Final = settings
        self._assistant: Final = request.assistant_participant or settings.assistant_participant
        self._messages: Final = list(request.messages)
        self._tool_names: Mapping[str, str] = {}
        self._floating: Final = _floating_marker(request)

    def build(self) -> ProviderRequest:
        built = self._formatter.build_messages(self._messages, build_options(self._request, self._settings))
        if not built.ready:
            raise MembraneError("invalid_request", NOT_READY)
        self._tool_names = built.tool_names
        self._settings.fit(built.messages, shed=self._request.shed_oversize_images)
        if self._floating is not None:
            self._floating.place(built)
        return provider_request(self._request, built)

    def assembler(self) -> NativeAssembler:
        return NativeAssembler(self._tool_names)

    def calls(self, content: Sequence[Block], stop_reason: str) -> list[ToolCall]:
        """All of them, where the provider says that it stopped for them."""
        return calls_of(content) if stop_reason == "tool_use" else []

    def refusal(self, call: ToolCall) -> str:
        return f"The call was not run: its arguments are not complete JSON. They were: {call.unparseable_input}"

    def tool_texts(self, content: Sequence[Block], turn: Sequence[Block]) -> ToolTexts:
        uses = [block.to_dict() for block in content if isinstance(block, ToolUse)]
        return ToolTexts(compact(uses), joined_text(content), joined_text(turn))

    def add_results(
        self, content: Sequence[Block], results: Sequence[ToolResult], injected: Sequence[Message]
    ) -> Sequence[AnyEvent]:
        user = user_side_name(self._assistant)
        self._messages.append(Message(self._assistant, list(content)))
        self._messages.append(Message(user, [result_block(result) for result in results]))
        self._messages.extend(injected)
        if self._floating is not None:
            self._floating.next_round()
        return ()

    def false_stop(self) -> None:
        """Where roles are the provider's own, a stop sequence never stands for a participant."""

    def resume(self) -> Sequence[AnyEvent]:
        return ()

    def raw_text(self, content: Sequence[Block]) -> str:
        return joined_text(content)


def _floating_marker(request: Request) -> FloatingMarker | None:
    """None where it is off, and where the provider is asked to mark the newest block by itself."""
    automatic = "cache_control" in (request.provider_params or {})
    return None if automatic or request.floating_cache_marker is False else FloatingMarker(request.cache_ttl)


def _role(message: Message, options: BuildOptions) -> str:
    return "assistant" if message.participant == options.assistant_participant else "user"


def _system(system: str | list[Text] | None) -> str | list[Json] | None:
    return system if system is None or isinstance(system, str) else text_blocks(system)


def _marked_system(system: str | list[Json] | None, ttl: str | None) -> str | list[Json] | None:
    """The system text with a marker at its end; nothing to mark where it is empty."""
    if not system:
        return system
    blocks = [text_block(system)] if isinstance(system, str) else system
    cache_markers.mark_last(blocks, ttl)
    return blocks


def _tools(tools: Sequence[Tool] | None, names: Mapping[str, str]) -> list[Json] | None:
    if not tools:
        return None
    return [_definition(tool, names) for tool in tools]


def _definition(tool: Tool, names: Mapping[str, str]) -> Json:
    return {"name": names[tool.name], "description": tool.description, "input_schema": tool.input_schema}


def _change_blocks(message: Message, options: BuildOptions, names: Mapping[str, str]) -> list[Json]:
    """What is sent of a message of system changes; whose it is says nothing."""
    return [block for change in system_changes.changes_of([message]) for block in _change(change, options, names)]


def _change(change: SystemChange, options: BuildOptions, names: Mapping[str, str]) -> Iterator[Json]:
    for name in change.remove_tools or ():
        sent = names.get(name) or sent_tool_name(name, options.tool_names)
        yield {"type": "tool_removal", "tool": {"type": "tool_reference", "name": sent}}
    for tool in change.define_tools or ():
        definition = {"type": "tool_definition", "definition": _definition(tool, names)}
        yield {"type": "tool_addition", "tool": definition}
    texts = [change.add_system] if isinstance(change.add_system, str) else change.add_system or ()
    yield from (text_block(text) for text in texts if text.strip())


def _written(block: Block, options: BuildOptions, names: Mapping[str, str]) -> dict[str, Json] | None:
    """A block as sent; None where there is nothing to send. Its raw item goes along, for the format it belongs to."""
    written = BLOCKS[type(block)](block, options, names)
    if block.raw_item is None or block.raw_format is None:
        return written
    return {**(written or {"type": "raw_item"}), "raw_item": block.raw_item, "raw_format": block.raw_format}


def _text(block: Text, options: BuildOptions, names: Mapping[str, str]) -> dict[str, Json] | None:
    return text_block(block.text, block.cache_control) if block.text else None


def _image(block: Image, options: BuildOptions, names: Mapping[str, str]) -> dict[str, Json]:
    """Base64 under the type its bytes show; what no provider accepts becomes a note to the model."""
    source = block.source
    if source["type"] == "url":
        return {"type": "image", "source": {"type": "url", "url": source["url"]}}
    written = image_media.block(source)
    if written is None:
        options.tell(image_media.STRIPPED, source.get("media_type"))
        return text_block(image_media.placeholder(source.get("media_type")))
    return written if block.source_url is None else {**written, "source_url": block.source_url}


def _document(block: Document, options: BuildOptions, names: Mapping[str, str]) -> dict[str, Json]:
    written = {"type": "document", "source": dict(block.source)}
    return written if block.filename is None else {**written, "title": block.filename}


def _medium(block: Any, options: BuildOptions, names: Mapping[str, str]) -> dict[str, Json]:
    return {"type": block.type, "source": dict(block.source)}


def _tool_use(block: ToolUse, options: BuildOptions, names: Mapping[str, str]) -> dict[str, Json]:
    name = names.get(block.name) or sent_tool_name(block.name, options.tool_names)
    return {"type": "tool_use", "id": block.id, "name": name, "input": block.input}


def _tool_result(block: ToolResultBlock, options: BuildOptions, names: Mapping[str, str]) -> dict[str, Json]:
    content: Any = block.content
    if not isinstance(content, str):
        content = [_result_part(part, options, names) for part in content]
        content = [part for part in content if part is not None]
    written = {"type": "tool_result", "tool_use_id": block.tool_use_id, "content": content}
    return written if block.is_error is None else {**written, "is_error": block.is_error}


def _result_part(part: Any, options: BuildOptions, names: Mapping[str, str]) -> Json:
    """Text and images as in a message; a medium of another kind as it is, for the adapter to judge."""
    return _written(part, options, names) if type(part) in BLOCKS else plain(part)


def _thinking(block: Thinking, options: BuildOptions, names: Mapping[str, str]) -> dict[str, Json]:
    """An empty signature is refused, an empty text with a signature is not."""
    signed = {"signature": block.signature} if block.signature else {}
    return {"type": "thinking", "thinking": block.thinking, **signed}


def _redacted(block: RedactedThinking, options: BuildOptions, names: Mapping[str, str]) -> dict[str, Json]:
    return {"type": "redacted_thinking", "data": block.data}


def _nothing(block: Block, options: BuildOptions, names: Mapping[str, str]) -> None:
    """An image the model made is output only: no provider takes it back in this form."""


def _misplaced(block: SystemChange, options: BuildOptions, names: Mapping[str, str]) -> None:
    raise misplaced_change("messages")


BLOCKS: Final[dict[type, Callable[[Any, BuildOptions, Mapping[str, str]], dict[str, Json] | None]]] = {
    Text: _text,
    Image: _image,
    Document: _document,
    Audio: _medium,
    Video: _medium,
    GeneratedImage: _nothing,
    ToolUse: _tool_use,
    ToolResultBlock: _tool_result,
    Thinking: _thinking,
    RedactedThinking: _redacted,
    SystemChange: _misplaced,
}
