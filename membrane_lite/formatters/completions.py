r"""CompletionsFormatter: the whole conversation as one prompt, which a base model goes on with.

    system "Be brief."                   Be brief.\n\nAnn: hi<|eot|>\n\nClaude: yo<|eot|>\n\nAnn: and?<|eot|>\n\nClaude:
    Ann "hi", Claude "yo", Ann "and?"    stops: \n\nAnn:  \nAnn:  <|eot|>

Parts, in order: the system text, a context prefix, every message that says something, the assistant's name. The prompt
travels as one assistant message whose content is the prompt: the beginning of an answer. Only text can stand in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ..values.base import plain
from ..values.content import Block, Image, Text, ToolUse
from ..values.messages import Message
from ..values.requests import Request
from ..values.tools import Tool, ToolResult
from ..wire.json_text import compact
from .base import BuildOptions, BuildResult, BuildSettings, ToolMode, refuse_system_changes
from .native import NativeConversation
from .stop_sequences import next_speakers
from .xml_tags import WHITESPACE, is_blank

DEFAULT_EOT_TOKEN: Final = "<|eot|>"
DEFAULT_MAX_PARTICIPANTS: Final = 10
IMAGES_STRIPPED: Final = "[CompletionsFormatter] Images were stripped from context (not supported in completions mode)"
NO_TOOLS: Final = "tools: a prompt for a completions endpoint carries none; use a chat adapter, or leave them out"


class CompletionsFormatter:
    """eot_token: what ends every message but the one to be written; "" or None for none.

    name_format: what stands before a message, `{name}` replaced. message_separator: what stands between the parts.
    max_participants_for_stop: how many participants may stop the answer, where neither request nor client says.
    case_insensitive_stops: their names stop it in lower case too. warn_on_image_strip: say so, once per request.
    """

    name = "completions"
    uses_prefill = True
    supports_native_tools = False
    supports_xml_tools = False
    configured_tool_mode: ToolMode | None = None

    def __init__(
        self,
        *,
        eot_token: str | None = DEFAULT_EOT_TOKEN,
        name_format: str = "{name}: ",
        message_separator: str = "\n\n",
        max_participants_for_stop: int = DEFAULT_MAX_PARTICIPANTS,
        case_insensitive_stops: bool = False,
        warn_on_image_strip: bool = True,
    ) -> None:
        self._eot: Final = eot_token or ""
        self._name_format: Final = name_format
        self._separator: Final = message_separator
        self._most_participants: Final = max_participants_for_stop
        self._case_insensitive: Final = case_insensitive_stops
        self._warns: Final = warn_on_image_strip

    def conversation(self, request: Request, settings: BuildSettings) -> NativeConversation:
        """One prompt, one answer: without tools there is no second round."""
        refuse_system_changes(request.messages, self.name, tools=request.tools, no_tools=NO_TOOLS)
        return NativeConversation(self, request, settings)

    def build_messages(self, messages: Sequence[Message], options: BuildOptions) -> BuildResult:
        """The prompt, and what stops the answer to it. Changes no message."""
        refuse_system_changes(messages, self.name, tools=options.tools, no_tools=NO_TOOLS)
        if self._warns and any(_has_image(message) for message in messages):
            options.tell(IMAGES_STRIPPED)
        prompt = self._separator.join(self._parts(messages, options))
        return BuildResult(
            messages=[{"role": "assistant", "content": prompt}],
            stop_sequences=self._stops(messages, options),
            assistant_prefill=prompt,
        )

    def format_tool_results(self, results: Sequence[ToolResult], thinking: bool = False) -> str:
        """Results as lines of a prompt, for a caller who writes one by hand."""
        contents = [result.content for result in results]
        said = [content if isinstance(content, str) else compact(plain(content)) for content in contents]
        return "\n".join(f"[Tool Result: {text}]" for text in said)

    def parse_tool_calls(self, text: str, tools: Sequence[Tool] = ()) -> list[ToolUse]:
        """None: a base model calls no tools."""
        return []

    def has_tool_use(self, text: str) -> bool:
        return False

    def parse_content_blocks(self, text: str, tools: Sequence[Tool] = ()) -> list[Block]:
        """What a base model wrote behind the bare name, without the white space that it begins with."""
        said = text.lstrip(WHITESPACE)
        return [Text(said)] if said else []

    def _parts(self, messages: Sequence[Message], options: BuildOptions) -> Iterator[str]:
        system = options.system_prompt
        text = system if isinstance(system, str) else _text(system or ())
        if text:
            yield text
        if options.context_prefix:
            yield self._said(options.assistant_participant, options.context_prefix, options)
        for message in messages:
            text = _text(message.content)
            if not is_blank(text):
                yield self._said(message.participant, text, options)
        yield self._label(options.assistant_participant).rstrip()

    def _said(self, participant: str, text: str, options: BuildOptions) -> str:
        """One message. What the model wrote behind its bare name, white space first, goes back there as it was."""
        label = self._label(participant)
        if participant == options.assistant_participant and text[0] in WHITESPACE:
            label = label.rstrip()
        return label + text + self._eot

    def _label(self, participant: str) -> str:
        return self._name_format.replace("{name}", participant, 1)

    def _stops(self, messages: Sequence[Message], options: BuildOptions) -> list[str]:
        """Whoever would speak next, as far as there is room; the end of a turn; the caller's own."""
        others = next_speakers(messages, options, most=self._most_participants)
        names = [spelling for name in others for spelling in self._spellings(name)]
        labels = [self._label(name).rstrip() for name in names]
        stops = [break_ + label for label in labels for break_ in ("\n\n", "\n")]
        return [*stops, *([self._eot] if self._eot else []), *options.additional_stop_sequences]

    def _spellings(self, name: str) -> list[str]:
        return list(dict.fromkeys([name, name.lower()])) if self._case_insensitive else [name]


def _text(blocks: Sequence[Block]) -> str:
    return "\n".join(block.text for block in blocks if isinstance(block, Text) and not block.is_carrier)


def _has_image(message: Message) -> bool:
    return any(isinstance(block, Image) for block in message.content)
