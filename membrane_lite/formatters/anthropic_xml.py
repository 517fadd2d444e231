"""AnthropicXmlFormatter, the default: native roles and tools, or one transcript with its tools as text.

Native mode is NativeFormatter's. In XML mode the conversation is a participant-labelled transcript (transcript.py) in
which tools are told, called and answered as text (xml_tools.py), and which the model goes on with.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from ..errors import invalid, wrong_type
from ..values.content import Block, ToolUse
from ..values.messages import Message
from ..values.requests import Request
from ..values.tools import Tool
from .base import BuildOptions, BuildResult, BuildSettings, Conversation, ToolMode, refuse_system_changes, tool_mode
from .native import NativeFormatter

if TYPE_CHECKING:
    from .xml_tools import AnyResult

# This is every adapter's default, and most requests are native: what only a transcript needs is imported where it is.

TOOL_MODES: Final = ("native", "xml")
INJECTION_MODES: Final = ("conversation", "system")
MEDIA_RULES: Final = ("error", "strip")


class TranscriptSettings(NamedTuple):
    """What they mean is said in AnthropicXmlFormatter, which checks them; transcript.py obeys them."""

    tool_injection_mode: Literal["conversation", "system"]
    tool_injection_position: int
    message_delimiter: str
    max_participants_for_stop: int
    unsupported_media: Literal["error", "strip"]
    warn_on_strip: bool


class AnthropicXmlFormatter:
    """tool_mode: "native" or "xml"; None leaves it to the request, which is native where it does not say.

    tool_injection_mode, tool_injection_position: in XML mode, whether the tools are told in the system text or in the
    conversation, and there how many messages from its end.
    message_delimiter: what ends every message of a transcript, which then need no line break between them.
    max_participants_for_stop: how many participants may stop the answer, where neither request nor client says.
    unsupported_media "strip" leaves documents, audio and video out, with a warning unless warn_on_strip is False.
    """

    name = "anthropic-xml"
    uses_prefill = True  # where it writes a transcript
    supports_native_tools = True
    supports_xml_tools = True

    def __init__(
        self,
        *,
        tool_mode: ToolMode | None = None,
        tool_injection_mode: Literal["conversation", "system"] = "conversation",
        tool_injection_position: int = 10,
        message_delimiter: str = "",
        max_participants_for_stop: int = 10,
        unsupported_media: Literal["error", "strip"] = "error",
        warn_on_strip: bool = True,
    ) -> None:
        if tool_mode is not None:
            _check_choice("tool_mode", tool_mode, TOOL_MODES)
        _check_choice("tool_injection_mode", tool_injection_mode, INJECTION_MODES)
        _check_count("tool_injection_position", tool_injection_position)
        _check_type("message_delimiter", message_delimiter, str)
        _check_count("max_participants_for_stop", max_participants_for_stop)
        _check_choice("unsupported_media", unsupported_media, MEDIA_RULES)
        _check_type("warn_on_strip", warn_on_strip, bool)
        self.configured_tool_mode: ToolMode | None = tool_mode
        self._native: Final = NativeFormatter(unsupported_media=unsupported_media, warn_on_strip=warn_on_strip)
        self._settings: Final = TranscriptSettings(
            tool_injection_mode=tool_injection_mode,
            tool_injection_position=tool_injection_position,
            message_delimiter=message_delimiter,
            max_participants_for_stop=max_participants_for_stop,
            unsupported_media=unsupported_media,
            warn_on_strip=warn_on_strip,
        )

    def conversation(self, request: Request, settings: BuildSettings) -> Conversation:
        """In the mode that the request names, else the formatter's own, else native."""
        refuse_system_changes(request.messages, self.name)
        if tool_mode(request, self) == "native":
            return self._native.conversation(request, settings)
        from .xml_conversation import XmlConversation

        return XmlConversation(self, request, settings)

    def build_messages(self, messages: Sequence[Message], options: BuildOptions) -> BuildResult:
        """A request's messages in the mode that options name, else the formatter's own, else native."""
        refuse_system_changes(messages, self.name)
        mode = options.tool_mode or self.configured_tool_mode or "native"
        _check_choice("tool_mode", mode, TOOL_MODES)
        if mode == "native":
            return self._native.build_messages(messages, options)
        from .transcript import build_transcript

        return build_transcript(messages, options, self._settings)

    def format_tool_results(self, results: Sequence[AnyResult], thinking: bool = False) -> str:
        """What stands in a transcript behind the calls. thinking: the model thinks before it goes on."""
        from .xml_tools import written_results

        return written_results(results) + ("\n<thinking>" if thinking else "")

    def get_tool_instructions(self, tools: Sequence[Tool]) -> str:
        """Definitions of the tools and how to call them, to be put into a prompt by hand."""
        from .xml_tools import tool_instructions

        return tool_instructions(tools)

    def parse_tool_calls(self, text: str, tools: Sequence[Tool] = ()) -> list[ToolUse]:
        """The calls of the last call block that no results follow; none where there is no such block."""
        from .call_ids import call_ids
        from .xml_reading import parse_calls

        parsed = parse_calls(text, new_id=call_ids(text), tools=tools)
        return [] if parsed is None else parsed.calls

    def has_tool_use(self, text: str) -> bool:
        from .xml_reading import has_tool_use

        return has_tool_use(text)

    def parse_content_blocks(self, text: str, tools: Sequence[Tool] = ()) -> list[Block]:
        """A transcript's text as blocks; what is not closed stays text."""
        from .call_ids import call_ids
        from .xml_reading import parse_text

        return parse_text(text, new_id=call_ids(text), tools=tools, keep_open_thinking=False).blocks


def _check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    if value not in choices:
        raise invalid(name, f"found {value!r}", f"expected one of {', '.join(choices)}")


def _check_count(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise invalid(name, f"found {value!r}", "expected a whole number, 0 or more")


def _check_type(name: str, value: object, expected: type) -> None:
    if not isinstance(value, expected):
        raise wrong_type(name, value, f"a {expected.__name__}")
