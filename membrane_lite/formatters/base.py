"""The seam between the turn and a formatter, and what every formatter's request has in common.

A formatter is asked for a Conversation, which holds one turn's growing dialogue: it builds each round's provider
request, gives the assembler that reads the answer, and takes the answer and the tools' results in. The turn knows
nothing of how a formatter lays a conversation out, so native and transcript mode share one loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, Protocol

from ..errors import MembraneError, invalid, wrong_type
from ..resumption import FalseStop
from ..values.base import Json
from ..values.content import Block, Text
from ..values.deltas import Delta
from ..values.events import AnyEvent
from ..values.messages import DEFAULT_ASSISTANT, Message, has_system_changes
from ..values.requests import GenerationConfig, ProviderRequest, Request
from ..values.tools import Tool, ToolCall, ToolResult
from . import request_size
from .assembly import AnswerRecord
from .system_changes import tools_left
from .tool_names import STRICTEST, ToolNames

ToolMode = Literal["native", "xml"]

DEFAULT_MAX_TOKENS: Final = 4096
DEFAULT_THINKING_BUDGET: Final = 5000
SMALLEST_THINKING_BUDGET: Final = 1024  # platform.claude.com/docs/en/build-with-claude/extended-thinking
ROOM_FOR_THE_ANSWER: Final = 1024


class Logger(Protocol):
    def warning(self, message: str, *args: object) -> None: ...


@dataclass
class BuildSettings:
    """What a Membrane adds to every request that does not say otherwise. tool_names: the rule of its adapter."""

    assistant_participant: str = DEFAULT_ASSISTANT
    max_participants_for_stop: int = 10
    prompt_caching: bool = True
    max_request_bytes: int = request_size.DEFAULT_MAX_REQUEST_BYTES
    tool_names: ToolNames = STRICTEST
    logger: Logger | None = None

    def warn(self, message: str, *args: object) -> None:
        if self.logger is not None:
            self.logger.warning(message, *args)

    def fit(self, messages: list[Json], *, shed: bool) -> None:
        """Refuse messages that are too large, or drop images from them, in place: see request_size.fit."""
        dropped = request_size.fit(messages, self.max_request_bytes, shed=shed)
        if dropped:
            self.warn("%d images were dropped from a request that was too large", dropped)


@dataclass
class BuildOptions:
    """What build_messages is told beside the messages. participant_mode "simple" puts no names before texts.

    tool_mode: for a formatter with two modes; None leaves it to the formatter. thinking: whether a transcript ends with
    the beginning of the model's thinking.
    """

    assistant_participant: str = DEFAULT_ASSISTANT
    participant_mode: Literal["simple", "multiuser"] = "multiuser"
    human_participant: str | None = None
    tools: Sequence[Tool] | None = None
    tool_names: ToolNames = STRICTEST
    system_prompt: str | list[Text] | None = None
    prompt_caching: bool = False
    cache_ttl: str | None = None
    additional_stop_sequences: Sequence[str] = ()
    max_participants_for_stop: int | None = None
    context_prefix: str | None = None
    prefill_user_message: str | None = None
    has_cache_marker: Callable[[Message, int], bool] | None = None
    pending_tool_call_ids: frozenset[str] = frozenset()
    on_normalize: Callable[[dict[str, Any]], object] | None = None
    warn: Callable[..., object] | None = None
    tool_mode: ToolMode | None = None
    thinking: bool = False

    def tell(self, message: str, *args: object) -> None:
        """A warning, for whoever wants to be warned."""
        if self.warn is not None:
            self.warn(message, *args)


@dataclass
class BuildResult:
    """messages: roles and blocks. tool_names: names as sent -> as declared. ready: no call was declared in flight.

    free_markers: how many more cache markers its messages may carry; 0 for a format without them.
    """

    messages: list[Json]
    system_content: str | list[Json] | None = None
    native_tools: list[Json] | None = None
    stop_sequences: list[str] = field(default_factory=list)
    tool_names: Mapping[str, str] = field(default_factory=dict)
    assistant_prefill: str | None = None
    cache_markers_applied: int = 0
    free_markers: int = 0
    ready: bool = True


class BuildsMessages(Protocol):
    """What a conversation with roles asks of its formatter."""

    def build_messages(self, messages: Sequence[Message], options: BuildOptions) -> BuildResult: ...


class Assembler(Protocol):
    """One answer's deltas in, events out; what it has gathered can be asked for at any moment."""

    @property
    def record(self) -> AnswerRecord: ...

    def add(self, delta: Delta) -> Sequence[AnyEvent]: ...

    def end(self) -> Sequence[AnyEvent]:
        """No more deltas will come: complete what is open."""

    def content(self) -> list[Block]:
        """The blocks so far, an unfinished one as far as it got."""


class ToolTexts(NamedTuple):
    """The texts of ToolContext: see there."""

    raw_text: str
    preamble: str
    accumulated: str


class Conversation(Protocol):
    """One turn's dialogue, as a formatter sends it."""

    def build(self) -> ProviderRequest:
        """The next round's request."""

    def assembler(self) -> Assembler:
        """For the answer to that request. One asked for anew takes the place of the one before."""

    def calls(self, content: Sequence[Block], stop_reason: str) -> list[ToolCall]:
        """Those of a round's calls whose results the model waits for."""

    def refusal(self, call: ToolCall) -> str:
        """What the model is told of a call that cannot be run."""

    def tool_texts(self, content: Sequence[Block], turn: Sequence[Block]) -> ToolTexts:
        """content: the round's blocks; turn: those of all its rounds."""

    def add_results(
        self, content: Sequence[Block], results: Sequence[ToolResult], injected: Sequence[Message]
    ) -> Sequence[AnyEvent]:
        """A round's blocks and its tools' results, then messages put in by the caller. Gives what is told of them."""

    def false_stop(self) -> FalseStop | None:
        """Of a round that a stop sequence ended by accident, which resume() may continue (transcript mode only)."""

    def resume(self) -> Sequence[AnyEvent]:
        """The next round goes on where the last one was stopped, behind the stop sequence. Gives what is told of it."""

    def raw_text(self, content: Sequence[Block]) -> str:
        """The model's text of the turn so far, verbatim. content: the turn's blocks."""


class Formatter(Protocol):
    """supports_native_tools, supports_xml_tools: what can carry a request's tools. configured_tool_mode: or None."""

    name: str
    supports_native_tools: bool
    supports_xml_tools: bool
    configured_tool_mode: ToolMode | None

    def conversation(self, request: Request, settings: BuildSettings) -> Conversation: ...


def check_formatter(formatter: Any) -> None:
    """Raise "invalid_request" for what is no formatter, naming what it lacks: it may be one of the caller's own."""
    if isinstance(formatter, type):
        raise wrong_type("formatter", formatter, f"an instance: {formatter.__name__}()")
    for member, fits, expected in MEMBERS:
        value = getattr(formatter, member, MISSING)
        if value is MISSING:
            raise invalid("formatter", f"{type(formatter).__name__} has no {member!r}", f"expected {expected}")
        if not fits(value):
            raise wrong_type(f"formatter.{member}", value, expected)


def tool_mode(request: Request, formatter: Formatter) -> ToolMode:
    """The request's word, else the formatter's, else native where it can. Raises "unsupported", nothing being sent.

    The request's tools are those that its system changes leave.
    """
    mode: ToolMode = "native" if formatter.supports_native_tools else "xml"
    if request.tool_mode != "auto":
        mode = request.tool_mode
    elif formatter.configured_tool_mode is not None:
        mode = formatter.configured_tool_mode
    able = formatter.supports_native_tools if mode == "native" else formatter.supports_xml_tools
    if not able and (request.tool_mode != "auto" or tools_left(request.tools, request.messages)):
        raise MembraneError(
            "unsupported", f"tool_mode: the formatter {formatter.name!r} has no {mode} tools; use another formatter"
        )
    return mode


def build_options(request: Request, settings: BuildSettings) -> BuildOptions:
    """What build_messages is told of a request, the Membrane's settings where the request is silent."""
    caching = settings.prompt_caching if request.prompt_caching is None else request.prompt_caching
    most = request.max_participants_for_stop
    return BuildOptions(
        assistant_participant=request.assistant_participant or settings.assistant_participant,
        tools=request.tools,
        tool_names=settings.tool_names,
        system_prompt=request.system,
        prompt_caching=caching,
        cache_ttl=request.cache_ttl,
        additional_stop_sequences=request.stop_sequences or (),
        max_participants_for_stop=settings.max_participants_for_stop if most is None else most,
        context_prefix=request.context_prefix,
        prefill_user_message=request.prefill_user_message,
        warn=settings.warn,
    )


def refuse_system_changes(
    messages: Sequence[Message],
    formatter: str,
    *,
    tools: Sequence[Tool] | None = None,
    no_tools: str | None = None,
) -> None:
    """What every formatter but the native one asks before it writes anything.

    no_tools: what a formatter that carries no tools says of any. It says so first: the same change made in `tools`
    would meet that refusal too.
    """
    if no_tools is not None and tools_left(tools, messages):
        raise MembraneError("unsupported", no_tools)
    if has_system_changes(messages):
        raise MembraneError(
            "unsupported",
            f"messages: the formatter {formatter!r} writes no system changes; pass formatter=NativeFormatter(), with "
            "AnthropicAdapter, or make the change in tools and system",
            system_change_refused=True,
        )


def text_blocks(system: str | Sequence[Text] | None) -> list[Json]:
    """A system text as blocks; one that is given as blocks keeps its markers."""
    if isinstance(system, str):
        return [text_block(system)]
    return [text_block(block.text, block.cache_control) for block in system or ()]


def text_block(text: str, cache_control: Json = None) -> dict[str, Json]:
    block = {"type": "text", "text": text}
    return block if cache_control is None else {**block, "cache_control": dict(cache_control)}


def provider_request(request: Request, built: BuildResult) -> ProviderRequest:
    """The request around what a formatter built.

    A request whose messages end in a prefill is not asked to think, for APIs refuse both together. Its temperature is
    then the caller's: only thinking fixes it, and the adapter that asks for thinking leaves it out.
    """
    config = request.config
    thinking = config.thinking if config.thinking is not None and config.thinking.enabled else None
    return ProviderRequest(
        model=config.model,
        messages=built.messages,
        max_tokens=config.max_tokens or None,
        system=built.system_content,
        tools=built.native_tools,
        temperature=config.temperature,
        top_p=config.top_p,
        top_k=config.top_k,
        presence_penalty=config.presence_penalty,
        frequency_penalty=config.frequency_penalty,
        repetition_penalty=config.repetition_penalty,
        stop_sequences=built.stop_sequences,
        thinking=None if ends_in_prefill(built.messages) else thinking_parameter(config),
        block_binding=None if thinking is None else thinking.block_binding,
        provider_params=dict(request.provider_params or {}),
        normalized_messages=list(request.messages),
    )


def ends_in_prefill(messages: Sequence[Json]) -> bool:
    """The last message is the assistant's beginning of the answer. (A paused turn that goes back ends in no text.)"""
    if not messages or messages[-1].get("role") != "assistant":  # a flat list also holds items that nobody said
        return False
    content = messages[-1]["content"]
    return isinstance(content, str) or (bool(content) and content[-1]["type"] == "text")


def thinking_parameter(config: GenerationConfig) -> Json:
    """{"type": "adaptive"} or {"type": "enabled", "budget_tokens": n}; None where thinking is off or has no room."""
    thinking = config.thinking
    if thinking is None or not thinking.enabled:
        return None
    display = {} if thinking.display is None else {"display": thinking.display}
    if thinking.type == "adaptive":
        return {"type": "adaptive", **display}
    room = (config.max_tokens or DEFAULT_MAX_TOKENS) - ROOM_FOR_THE_ANSWER
    budget = min(thinking.budget_tokens or DEFAULT_THINKING_BUDGET, room)
    if budget < SMALLEST_THINKING_BUDGET:
        return None
    return {"type": "enabled", "budget_tokens": budget, **display}


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


# What the turn asks of every formatter.
MISSING: Final = object()
MEMBERS: Final[tuple[tuple[str, Callable[[Any], bool], str], ...]] = (
    ("name", lambda value: isinstance(value, str), "a string"),
    ("supports_native_tools", _is_flag, "True or False"),
    ("supports_xml_tools", _is_flag, "True or False"),
    ("configured_tool_mode", lambda value: value in (None, "native", "xml"), "'native', 'xml' or None"),
    ("conversation", callable, "a method conversation(request, settings)"),
)
