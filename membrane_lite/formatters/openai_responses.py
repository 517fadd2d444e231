"""OpenAIResponsesFormatter: messages become the Responses API's flat list of input items.

    Ann: "hi"                  {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
    Claude: "yo"          ->   {"type": "message", "role": "assistant", "content": [{"type": "output_text", ...}]}
    Claude: calls look         {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
    User: its result           {"type": "function_call_output", "call_id": "c1", "output": "sun"}

A block that carries an item of this format goes back as that item, unchanged: reasoning with its encrypted content,
ids, phases, server tools, what no block can say. So does a message whose metadata holds `openai_responses_items`.
WRITERS, at the end, says how any other block is written. Participants' names are not sent: the API has no place for
them.
Source: platform.openai.com/docs/api-reference/responses/create, "input".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from ..values.base import Json, plain
from ..values.content import Block, Text, ToolUse
from ..values.messages import Message
from ..values.requests import Request
from ..values.tools import Tool, ToolResult, result_block
from ..wire.json_text import compact
from . import image_media
from .base import BuildOptions, BuildResult, BuildSettings, ToolMode, refuse_system_changes
from .native import NativeConversation
from .tool_names import STRICTEST, ToolNames, sent_tool_name, sent_tool_names

FORMAT: Final = "openai-responses"
IMPORTED_ITEMS: Final = ("openai_responses_items", "openaiResponsesItems")  # the second: histories of the original
INSTRUCTING_ROLES: Final = ("developer", "system")
CUSTOM_CALL: Final = "custom_tool_call"

Warn = Callable[..., object]


class OpenAIResponsesFormatter:
    """No settings. Tools are the API's own function tools; tool pairs are not repaired."""

    name = "openai-responses"
    uses_prefill = False
    supports_native_tools = True
    supports_xml_tools = False
    configured_tool_mode: ToolMode | None = None
    writes_items = True

    def conversation(self, request: Request, settings: BuildSettings) -> NativeConversation:
        return NativeConversation(self, request, settings)

    def build_messages(self, messages: Sequence[Message], options: BuildOptions) -> BuildResult:
        """Input items, tools and instructions of a request. Changes no message."""
        refuse_system_changes(messages, self.name)
        names = sent_tool_names(options.tools or (), options.tool_names)
        writer = ItemWriter(names, options.tool_names, warn=options.warn)
        if options.context_prefix:
            writer.message("assistant", [{"type": "text", "text": options.context_prefix}])
        imported = False
        for message in messages:
            items = imported_items(message)
            if items is None:
                role = "assistant" if message.participant == options.assistant_participant else "user"
                writer.message(role, plain(message.content))
            else:
                imported = True
                writer.items.extend(items)
        instructed = imported or any(map(instructs, writer.items))
        return BuildResult(
            messages=writer.items,
            system_content=None if instructed else system_content(options.system_prompt),
            native_tools=None if options.tools is None else [function_tool(tool, names) for tool in options.tools],
            stop_sequences=list(options.additional_stop_sequences),
            tool_names={sent: declared for declared, sent in names.items()},
        )

    def format_tool_results(self, results: Sequence[ToolResult], thinking: bool = False) -> str:
        """Results as JSON text of their items, for a caller who lays a conversation out by hand."""
        writer = ItemWriter({})
        writer.message("user", [plain(result_block(result)) for result in results])
        return compact(writer.items)

    def parse_tool_calls(self, text: str, tools: Sequence[Tool] = ()) -> list[ToolUse]:
        """None: calls are items of their own, what looks like one in a text is text."""
        return []

    def has_tool_use(self, text: str) -> bool:
        return False

    def parse_content_blocks(self, text: str, tools: Sequence[Tool] = ()) -> list[Block]:
        return [Text(text)] if text else []


def imported_items(message: Message) -> list[Json] | None:
    """The items that a message was imported from, which stand for its content; None where it was not."""
    found = ((message.metadata or {}).get(key) for key in IMPORTED_ITEMS)
    return next((list(items) for items in found if isinstance(items, list)), None)


def instructs(item: Json) -> bool:
    """A message of the developer: then the instructions are in the input already."""
    return (
        isinstance(item, Mapping) and item.get("type", "message") == "message" and item.get("role") in INSTRUCTING_ROLES
    )


def system_content(system: str | list[Text] | None) -> str | list[Json] | None:
    return system if system is None or isinstance(system, str) else [block.to_dict() for block in system]


def function_tool(tool: Tool, names: Mapping[str, str]) -> Json:
    return {
        "type": "function",
        "name": names[tool.name],
        "description": tool.description,
        "parameters": tool.input_schema,
    }


class ItemWriter:
    """Collects input items. Texts and images that stand together share a message item; all else stands alone.

    names: tools' declared names -> names as sent; rule: how any other is sent. Blocks are given as mappings.
    """

    def __init__(self, names: Mapping[str, str], rule: ToolNames = STRICTEST, *, warn: Warn | None = None) -> None:
        self.items: Final[list[Json]] = []
        self._names: Final = names
        self._rule: Final = rule
        self._warn: Final = warn
        self._custom_calls: Final[set[str]] = set()
        self._role = "user"
        self._parts: list[Json] = []

    def message(self, role: str, blocks: Iterable[Json]) -> None:
        """One message's items. An item that several of its blocks came from is sent once."""
        self._role = role
        seen: set[str] = set()
        for block in blocks:
            item = own_item(block)
            if item is None:
                WRITERS.get(block["type"], ItemWriter.drop)(self, block)
                continue
            key = item_key(item)
            if key not in seen:
                seen.add(key)
                self.item(item)
        self.end_message()

    def end_message(self) -> None:
        if self._parts:
            self.items.append({"type": "message", "role": self._role, "content": self._parts})
            self._parts = []

    def item(self, item: Json) -> None:
        self.end_message()
        if item.get("type") == CUSTOM_CALL:
            self._custom_calls.add(str(item.get("call_id")))
        self.items.append(item)

    def text(self, block: Json) -> None:
        """An empty one too; but nothing of a carrier that belongs to another format."""
        if block["text"] or block.get("raw_item") is None:
            kind = "output_text" if self._role == "assistant" else "input_text"
            self._parts.append({"type": kind, "text": block["text"]})

    def image(self, block: Json) -> None:
        """The assistant's side takes no images."""
        if self._role != "assistant":
            self._parts.append(self._image_part(block["source"]))

    def document(self, block: Json) -> None:
        if self._role != "assistant":
            self._parts.append(input_file(block))

    def tool_use(self, block: Json) -> None:
        """A custom tool is called with a text, every other with an object."""
        name, given = block["name"], block.get("input", {})
        sent = {"call_id": block["id"], "name": self._names.get(name) or sent_tool_name(name, self._rule)}
        if isinstance(given, str):
            self.item({"type": CUSTOM_CALL, **sent, "input": given})
        else:
            unparseable = block.get("unparseable_input")
            arguments = compact(given or {}) if unparseable is None else unparseable
            self.item({"type": "function_call", **sent, "arguments": arguments})

    def tool_result(self, block: Json) -> None:
        call = block["tool_use_id"]
        kind = "custom_tool_call_output" if call in self._custom_calls else "function_call_output"
        self.item({"type": kind, "call_id": call, "output": self._output(block["content"])})

    def redacted_thinking(self, block: Json) -> None:
        self.item({"type": "reasoning", "summary": [], "encrypted_content": block["data"]})

    def nothing(self, block: Json) -> None:
        """Reasoning without its item: the API takes it back only as the item it was."""

    def drop(self, block: Json) -> None:
        self._tell("%s left out: the Responses API takes none as input", block["type"])

    def _output(self, content: Any) -> Any:
        """A string as it is; with images, a list of parts; else the blocks as JSON text."""
        if isinstance(content, str):
            return content
        if not any(part.get("type") == "image" for part in content):
            return compact(content)
        return [self._output_part(part) for part in content]

    def _output_part(self, part: Json) -> Json:
        if part.get("type") == "image":
            return self._image_part(part["source"])
        return {"type": "input_text", "text": part["text"] if part.get("type") == "text" else compact(part)}

    def _image_part(self, source: Json) -> Json:
        """The image; a note to the model in place of one that the API does not accept."""
        url = image_url(source)
        if url is not None:
            return {"type": "input_image", "image_url": url}
        label = source.get("media_type")
        self._tell(image_media.STRIPPED, label)
        return {"type": "input_text", "text": image_media.placeholder(label)}

    def _tell(self, message: str, *args: object) -> None:
        if self._warn is not None:
            self._warn(message, *args)


def own_item(block: Json) -> Json:
    """The item of this format that a block carries, or None. One that names no format is taken to be of this one."""
    item = block.get("raw_item")
    return item if isinstance(item, Mapping) and block.get("raw_format") in (FORMAT, None) else None


def item_key(item: Json) -> str:
    id = item.get("id")
    return f"{item.get('type')}:{id}" if isinstance(id, str) else compact(item)


def image_url(source: Json) -> str | None:
    """An address, or a data URL under the type that the bytes show; None for a type that no provider accepts."""
    if source["type"] == "url":
        return str(source["url"])
    kind = image_media.media_type(source)
    return None if kind is None else f"data:{kind};base64,{source['data']}"


def input_file(block: Json) -> Json:
    source = block["source"]
    if source["type"] == "url":
        return {"type": "input_file", "file_url": source["url"]}
    kind = source.get("media_type") or "application/pdf"
    name = block.get("filename") or block.get("title") or "document.pdf"  # the API wants one beside the data
    return {"type": "input_file", "filename": name, "file_data": f"data:{kind};base64,{source.get('data', '')}"}


WRITERS: Final[Mapping[str, Callable[[ItemWriter, Json], None]]] = {
    "text": ItemWriter.text,
    "image": ItemWriter.image,
    "document": ItemWriter.document,
    "tool_use": ItemWriter.tool_use,
    "tool_result": ItemWriter.tool_result,
    "redacted_thinking": ItemWriter.redacted_thinking,
    "thinking": ItemWriter.nothing,
    "generated_image": ItemWriter.nothing,
    "raw_item": ItemWriter.nothing,
}
