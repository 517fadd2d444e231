"""Tools in the XML transcript, as text: what is offered, what was called, what came of it.

    <function_calls>
    <invoke name="look">
    <parameter name="place"><![CDATA[the attic]]></parameter>
    <parameter name="times">2</parameter>
    </invoke>
    </function_calls>
    <function_results>
    <result>
    <stdout>
    dust
    </stdout>
    </result>
    </function_results>

A call that was read from a transcript is written again exactly as it stood there (`raw_xml`); others are rebuilt. No id
is written: results stand in the order of their calls.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final, NamedTuple, TypeVar, Union

from ..values.base import Json
from ..values.content import Image, Text, ToolResultBlock, ToolUse
from ..values.tools import Tool, ToolResult
from . import image_media
from .ecma_json import ordered, stringify
from .schema_types import declared_type
from .xml_tags import (
    ANY_PREFIX,
    CALLS,
    CALLS_CLOSER,
    CALLS_OPENER,
    CDATA_CLOSER,
    CDATA_OPENER,
    RESULTS,
    RESULTS_CLOSER,
    RESULTS_OPENER,
)

AnyResult = Union[ToolResult, ToolResultBlock]
Item = TypeVar("Item", ToolUse, AnyResult)

CDATA_HINT: Final = (
    "A parameter value that contains markup can be written as CDATA directly after its opening tag, "
    "<![CDATA[like this]]>, and is then taken exactly as written; consecutive sections join, so a literal ]]> is "
    "written ]]]]><![CDATA[>."
)
HOW_TO_CALL: Final = f"""\
When you want to use a tool, output:
<function_calls>
<invoke name="tool_name">
<parameter name="param_name">value</parameter>
</invoke>
</function_calls>
{CDATA_HINT}"""
HOW_TO_CALL_WITH_JSON: Final = f"""\
When making function calls using tools that accept array or object parameters ensure those are structured using JSON. \
For example:
<function_calls>
<invoke name="example_tool">
<parameter name="parameter">[{{"key": "value"}}]</parameter>
</invoke>
</function_calls>
{CDATA_HINT}"""

ENTITIES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;"})
CDATA_SPLIT: Final = "]]" + CDATA_CLOSER + CDATA_OPENER + ">"  # the closer, cut so that neither half closes anything

# What would be taken for the frame of a result, were it to stand in one. A word ends where ECMAScript's \b says.
FRAME_TAG: Final = re.compile(f"</?{ANY_PREFIX}(?:{CALLS}|{RESULTS}|invoke|result|stdout|error|tool_name)\\b", re.ASCII)
RESULT_TAGS: Final = ("<result>\n<stdout>", "</stdout>\n</result>")
ERROR_TAGS: Final = ("<error>", "</error>")

# Readers keep so many digits as text, because ids are often written so; with an exponent it is a number again.
DIGITS_TAKEN_FOR_TEXT: Final = 16


class SplitResults(NamedTuple):
    """Results around the images of one of them: text, image blocks for a user message, text that goes on behind it.

    Without such an image `before` holds everything.
    """

    before: str
    images: list[Json]
    after: str


def tools_entry(tools: Sequence[Tool]) -> str:
    """What a transcript says of the tools and how to call them; its first line is empty."""
    return f"\n<available_tools>\n{tool_definitions(tools)}\n</available_tools>\n\n{HOW_TO_CALL}"


def tool_definitions(tools: Sequence[Tool]) -> str:
    """The tools and their top-level parameters."""
    return "\n".join(["<tools>", *(line for tool in tools for line in _definition(tool)), "</tools>"])


def _definition(tool: Tool) -> Iterator[str]:
    yield f'<tool name="{_escaped(tool.name)}">'
    yield f"<description>{_escaped(tool.description)}</description>"
    yield "<parameters>"
    properties = tool.input_schema.get("properties")
    for name, schema in ordered(properties) if isinstance(properties, dict) else ():
        yield from _parameter(name, schema if isinstance(schema, dict) else {}, tool.input_schema)
    yield "</parameters>"
    yield "</tool>"


def _parameter(name: str, schema: dict[str, Json], root: dict[str, Json]) -> Iterator[str]:
    kind, nullable = declared_type(schema, root)
    required, choices, description = root.get("required"), schema.get("enum"), schema.get("description")
    attributes = {
        "name": _escaped(name),
        "type": kind,
        "nullable": "true" if nullable else None,
        "required": "true" if isinstance(required, list) and name in required else None,
        "enum": ",".join(map(_choice, choices)) if isinstance(choices, list) and choices else None,
    }
    written = [f'{key}="{value}"' for key, value in attributes.items() if value is not None]
    yield f"<parameter {' '.join(written)}>"
    if isinstance(description, str) and description:
        yield _escaped(description)
    yield "</parameter>"


def _choice(value: Json) -> str:
    return value if isinstance(value, str) else stringify(value)


def tool_instructions(tools: Sequence[Tool]) -> str:
    """The tools as JSON and how to call them, to be put into a prompt by hand."""
    described = [
        stringify({"description": tool.description, "name": tool.name, "parameters": tool.input_schema})
        for tool in tools
    ]
    functions = [f"<function>{line}</function>" for line in described]
    return "\n".join(["<functions>", *functions, "</functions>", "", HOW_TO_CALL_WITH_JSON])


def written_calls(calls: Sequence[ToolUse]) -> str:
    """Calls that stand side by side in a message."""
    return _in_runs(calls, _calls_block)


def written_results(results: Sequence[AnyResult]) -> str:
    """Results that stand side by side; without any, the empty frame. An image is a note of its type and size."""
    return _in_runs(results, _results_block) if results else _results_block(())


def _in_runs(items: Sequence[Item], rebuilt: Callable[[Sequence[Item]], str]) -> str:
    """Neighbours that were read from one block share its text, which is written once; the others make new blocks."""
    runs = groupby(items, key=_raw_xml)
    return "\n".join(rebuilt(list(run)) if raw_xml is None else raw_xml for raw_xml, run in runs)


def _raw_xml(item: object) -> str | None:
    return getattr(item, "raw_xml", None) or None


def _calls_block(calls: Sequence[ToolUse]) -> str:
    return "\n".join([CALLS_OPENER, *(line for call in calls for line in _invoke(call)), CALLS_CLOSER])


def _invoke(call: ToolUse) -> Iterator[str]:
    """Names are written unescaped. The input of a custom tool, which is no mapping, becomes its one parameter."""
    parameters = call.input if isinstance(call.input, dict) else {"input": call.input}
    yield f"<invoke name={_quoted(call.name)}>"
    for name, value in ordered(parameters):
        yield f"<parameter name={_quoted(name)}>{_value(value)}</parameter>"
    yield "</invoke>"


def _quoted(name: str) -> str:
    return f"'{name}'" if '"' in name and "'" not in name else f'"{name}"'


def _value(value: Json) -> str:
    """Text as CDATA, anything else as JSON that holds no markup."""
    if isinstance(value, str):
        return CDATA_OPENER + value.replace(CDATA_CLOSER, CDATA_SPLIT) + CDATA_CLOSER
    text = stringify(value).replace("<", "\\u003c")
    if text.isdigit() and len(text) >= DIGITS_TAKEN_FOR_TEXT:
        return f"{text[0]}.{text[1:]}".rstrip("0").rstrip(".") + f"e+{len(text) - 1}"
    return text


def _results_block(results: Sequence[AnyResult]) -> str:
    return "\n".join([RESULTS_OPENER, *map(_result, results), RESULTS_CLOSER])


def _result(result: AnyResult, *, separator: str = "\n") -> str:
    opener, closer = _tags(result)
    return f"{opener}\n{_content(_texts(result), separator)}\n{closer}"


def _tags(result: AnyResult) -> tuple[str, str]:
    return ERROR_TAGS if result.is_error else RESULT_TAGS


def _content(texts: Sequence[str], separator: str) -> str:
    """As it is, unless it holds a tag of the frame: then nothing in it may look like markup."""
    text = separator.join(texts)
    return _escaped(text) if FRAME_TAG.search(text) else text


def _texts(result: AnyResult) -> list[str]:
    """Texts and notes of base64 images; a transcript has no place for anything else."""
    if isinstance(result.content, str):
        return [result.content]
    texts = [_part_text(part) for part in result.content]
    return [text for text in texts if text is not None]


def _part_text(part: Any) -> str | None:
    if isinstance(part, Text):
        return None if part.is_carrier else part.text
    is_base64_image = isinstance(part, Image) and part.source.get("type") == "base64"
    return image_media.note(part.source) if is_base64_image else None


def split_results(results: Sequence[ToolResult]) -> SplitResults:
    """Results for a model that may see the images of the first result that has any; the others are notes.

    An image that no provider takes is text that says so.
    """
    shown = [_without_refused_images(result) for result in results]
    split = next((index for index, result in enumerate(shown) if _images(result)), None)
    if split is None:
        return SplitResults(written_results(shown), [], "")
    opener, closer = _tags(shown[split])
    texts = [part.text for part in shown[split].content if isinstance(part, Text)]
    before = [RESULTS_OPENER, *map(_result, shown[:split]), opener, _content(texts, "\n")]
    # What stands behind the images is written without line breaks between the parts of a result.
    after = [closer, *(_result(result, separator="") for result in shown[split + 1 :]), RESULTS_CLOSER]
    return SplitResults("\n".join(before), _images(shown[split]), "\n".join(after))


def _without_refused_images(result: ToolResult) -> ToolResult:
    if isinstance(result.content, str):
        return result
    return ToolResult(result.tool_use_id, [_accepted_or_said(part) for part in result.content], result.is_error)


def _accepted_or_said(part: Any) -> Any:
    return Text(image_media.placeholder(part.source.get("media_type"))) if _is_refused(part) else part


def refused_images(results: Sequence[ToolResult]) -> list[Any]:
    """The declared types of the images that no provider takes."""
    parts = [part for result in results if not isinstance(result.content, str) for part in result.content]
    return [part.source.get("media_type") for part in parts if _is_refused(part)]


def _is_refused(part: Any) -> bool:
    is_image = isinstance(part, Image) and part.source.get("type") == "base64"
    return is_image and image_media.media_type(part.source) is None


def _images(result: ToolResult) -> list[Json]:
    parts = () if isinstance(result.content, str) else result.content
    blocks = [image_media.block(part.source) for part in parts if isinstance(part, Image)]
    return [block for block in blocks if block is not None]


def _escaped(text: str) -> str:
    return text.translate(ENTITIES)
