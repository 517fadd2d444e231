"""Tools as a transcript's text, character by character."""

from __future__ import annotations

from typing import Any

import pytest

from membrane_lite.errors import MembraneError
from membrane_lite.formatters.xml_tags import NAMESPACE
from membrane_lite.formatters.xml_tools import (
    AnyResult,
    SplitResults,
    split_results,
    tool_definitions,
    tool_instructions,
    tools_entry,
    written_calls,
    written_results,
)
from membrane_lite.values.content import Audio, Image, Text, ToolResultBlock, ToolUse
from membrane_lite.values.tools import Tool, ToolResult

CDATA_LINE = (
    "A parameter value that contains markup can be written as CDATA directly after its opening tag, "
    "<![CDATA[like this]]>, and is then taken exactly as written; consecutive sections join, so a literal ]]> is "
    "written ]]]]><![CDATA[>."
)
PNG_DATA = "iVBORw0KGgo="
PNG = Image({"type": "base64", "media_type": "image/png", "data": PNG_DATA})
PNG_BLOCK = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG_DATA}}
MISLABELLED = Image({"type": "base64", "media_type": "image/jpeg", "data": PNG_DATA})
SVG = Image({"type": "base64", "media_type": "image/svg+xml", "data": "PHN2Zz4="})
ADDRESS = Image({"type": "url", "url": "https://example.org/a.png"})
AUDIO = Audio({"type": "base64", "media_type": "audio/wav", "data": "UklGRg=="})
SVG_PLACEHOLDER = (
    '[system: an image that belongs here was NOT shown to you \u2014 its media type "image/svg+xml" is not accepted by '
    "the model API (only jpeg/png/gif/webp are). You are not seeing this image. If it matters, ask for it in a "
    "supported format.]"
)


def tool(properties: Any = None, *, name: str = "look", description: str = "Looks.", **more: Any) -> Tool:
    return Tool(name, description, {"type": "object", "properties": properties, **more})


DEFINITIONS: dict[str, tuple[list[Tool], str]] = {
    "everything a parameter can say": (
        [
            tool(
                {"place": {"type": ["string", "null"], "description": "Where.", "enum": ["attic", "cellar"]}},
                required=["place"],
            )
        ],
        """\
<tools>
<tool name="look">
<description>Looks.</description>
<parameters>
<parameter name="place" type="string" nullable="true" required="true" enum="attic,cellar">
Where.
</parameter>
</parameters>
</tool>
</tools>""",
    ),
    "nothing but a name": (
        [tool({"place": {}})],
        """\
<tools>
<tool name="look">
<description>Looks.</description>
<parameters>
<parameter name="place">
</parameter>
</parameters>
</tool>
</tools>""",
    ),
    "two tools, one without properties and one without a description": (
        [Tool("look", "Looks.", {"type": "object"}), tool({}, name="find", description="")],
        """\
<tools>
<tool name="look">
<description>Looks.</description>
<parameters>
</parameters>
</tool>
<tool name="find">
<description></description>
<parameters>
</parameters>
</tool>
</tools>""",
    ),
    "no tools": ([], "<tools>\n</tools>"),
}


@pytest.mark.parametrize("tools, text", DEFINITIONS.values(), ids=DEFINITIONS.keys())
def test_definitions(tools: list[Tool], text: str) -> None:
    assert tool_definitions(tools) == text


PARAMETERS: dict[str, tuple[Any, list[str]]] = {
    "index-like names come first": (
        {"b": {"type": "string"}, "1": {"type": "integer"}, "a": {"type": "array"}, "0": {"type": "object"}},
        [
            '<parameter name="0" type="object">',
            '<parameter name="1" type="integer">',
            '<parameter name="b" type="string">',
            '<parameter name="a" type="array">',
        ],
    ),
    "a type that a definition says": ({"a": {"$ref": "#/$defs/City"}}, ['<parameter name="a" type="string">']),
    "a type that the choices say": ({"a": {"enum": [1, 2]}}, ['<parameter name="a" type="integer" enum="1,2">']),
    "choices that are no texts": (
        {"a": {"enum": ["x", 1.0, True, None, [2]]}},
        ['<parameter name="a" nullable="true" enum="x,1,true,null,[2]">'],
    ),
    "no choices": ({"a": {"enum": []}}, ['<parameter name="a">']),
    "several types": ({"a": {"type": ["string", "integer"]}}, ['<parameter name="a">']),
    "properties that are no schemas": ({"a": True, "b": None}, ['<parameter name="a">', '<parameter name="b">']),
    "names and descriptions are escaped, choices are not": (
        {"<a&\"'>": {"description": "1 < 2 & \"3\" > '0'", "enum": ["<&\"'"]}},
        [
            '<parameter name="&lt;a&amp;&quot;&apos;&gt;" type="string" enum="<&"\'">',
            "1 &lt; 2 &amp; &quot;3&quot; &gt; &apos;0&apos;",
        ],
    ),
    "a description that is none": (
        {"a": {"description": 1}, "b": {"description": ""}},
        ['<parameter name="a">', '<parameter name="b">'],
    ),
    "properties that are none": (["a"], []),
}


@pytest.mark.parametrize("properties, lines", PARAMETERS.values(), ids=PARAMETERS.keys())
def test_parameters(properties: Any, lines: list[str]) -> None:
    text = tool_definitions([tool(properties, **{"$defs": {"City": {"type": "string"}}})])
    assert [line for line in text.split("\n")[4:-3] if line != "</parameter>"] == lines


def test_names_and_descriptions_of_tools_are_escaped() -> None:
    assert tool_definitions([tool(name='a"<', description="b & 'c' >")]).split("\n")[1:3] == [
        '<tool name="a&quot;&lt;">',
        "<description>b &amp; &apos;c&apos; &gt;</description>",
    ]


def test_what_is_required_only_a_list_says() -> None:
    assert 'name="a">' in tool_definitions([tool({"a": {}}, required=True)])


def test_the_entry_of_a_conversation() -> None:
    assert (
        tools_entry([tool({})])
        == f"""
<available_tools>
<tools>
<tool name="look">
<description>Looks.</description>
<parameters>
</parameters>
</tool>
</tools>
</available_tools>

When you want to use a tool, output:
<function_calls>
<invoke name="tool_name">
<parameter name="param_name">value</parameter>
</invoke>
</function_calls>
{CDATA_LINE}"""
    )


def test_instructions_to_be_put_by_hand() -> None:
    tools = [tool({"b": {"default": 1.0}, "0": {"enum": ["<"]}}), Tool("find", "<Finds>")]
    assert (
        tool_instructions(tools)
        == f"""\
<functions>
<function>{{"description":"Looks.","name":"look","parameters":{{"type":"object","properties":{{"0":{{"enum":["<"]}},"b":{{"default":1}}}}}}}}</function>
<function>{{"description":"<Finds>","name":"find","parameters":{{"type":"object","properties":{{}}}}}}</function>
</functions>

When making function calls using tools that accept array or object parameters ensure those are structured using JSON. \
For example:
<function_calls>
<invoke name="example_tool">
<parameter name="parameter">[{{"key": "value"}}]</parameter>
</invoke>
</function_calls>
{CDATA_LINE}"""
    )


# Calls


def call(**input: Any) -> ToolUse:
    return ToolUse("id", "look", input)


RAW = f'<{NAMESPACE}function_calls>\n <{NAMESPACE}invoke name="look">\n\n<parameter name="n"> 12345678901234567890'
CALLS: dict[str, tuple[list[ToolUse], str]] = {
    "one call": (
        [call(place="attic", times=2, how={"d": [1, "x"]})],
        """\
<function_calls>
<invoke name="look">
<parameter name="place"><![CDATA[attic]]></parameter>
<parameter name="times">2</parameter>
<parameter name="how">{"d":[1,"x"]}</parameter>
</invoke>
</function_calls>""",
    ),
    "two calls share a block; one without parameters, one of a name that is not escaped": (
        [call(), ToolUse("id", "a:b&c", {"1": "y", "x": "z", "0": "w"})],
        """\
<function_calls>
<invoke name="look">
</invoke>
<invoke name="a:b&c">
<parameter name="0"><![CDATA[w]]></parameter>
<parameter name="1"><![CDATA[y]]></parameter>
<parameter name="x"><![CDATA[z]]></parameter>
</invoke>
</function_calls>""",
    ),
    "a custom tool's text": (
        [ToolUse("id", "run", "print(1)")],
        """\
<function_calls>
<invoke name="run">
<parameter name="input"><![CDATA[print(1)]]></parameter>
</invoke>
</function_calls>""",
    ),
    "arguments that were no JSON are not known": (
        [ToolUse("id", "look", {}, unparseable_input='{"a":')],
        '<function_calls>\n<invoke name="look">\n</invoke>\n</function_calls>',
    ),
    "what was read is written as it stood there": ([ToolUse("id", "look", {"a": 1}, raw_xml=RAW)], RAW),
    "calls of one block share it": (
        [ToolUse("1", "look", raw_xml="X"), ToolUse("2", "find", raw_xml="X"), ToolUse("3", "find", raw_xml="Y")],
        "X\nY",
    ),
    "a block that comes again later is written again": (
        [ToolUse("1", "look", raw_xml="X"), call(), call(), ToolUse("2", "look", raw_xml="X")],
        """\
X
<function_calls>
<invoke name="look">
</invoke>
<invoke name="look">
</invoke>
</function_calls>
X""",
    ),
    "an empty block is none": (
        [ToolUse("1", "look", raw_xml="")],
        '<function_calls>\n<invoke name="look">\n</invoke>\n</function_calls>',
    ),
}


@pytest.mark.parametrize("calls, text", CALLS.values(), ids=CALLS.keys())
def test_calls(calls: list[ToolUse], text: str) -> None:
    assert written_calls(calls) == text


VALUES: dict[str, tuple[Any, str]] = {
    "text": ("a", "<![CDATA[a]]>"),
    "no text": ("", "<![CDATA[]]>"),
    "text with markup": ('</parameter> & "b"\n', '<![CDATA[</parameter> & "b"\n]]>'),
    "text that closes CDATA": ("a]]>b]]>", "<![CDATA[a]]]]><![CDATA[>b]]]]><![CDATA[>]]>"),
    "brackets": ("a]] >]", "<![CDATA[a]] >]]]>"),
    "text that looks like a number": ("12", "<![CDATA[12]]>"),
    "truth": (True, "true"),
    "nothing": (None, "null"),
    "a number": (1.5, "1.5"),
    "a whole float": (2.0, "2"),
    "no number": (float("nan"), "null"),
    "15 digits": (123456789012345, "123456789012345"),
    "16 digits, which would be taken for an id": (1234567890123456, "1.234567890123456e+15"),
    "more digits, all of them kept": (12345678901234567891, "1.2345678901234567891e+19"),
    "a round number": (10**15, "1e+15"),
    "a round float": (1e15, "1e+15"),
    "what begins with a sign is no id": (-1234567890123456, "-1234567890123456"),
    "many digits inside": ([1234567890123456], "[1234567890123456]"),
    "markup inside": ({"<a>": ["</parameter>"]}, '{"\\u003ca>":["\\u003c/parameter>"]}'),
}


@pytest.mark.parametrize("value, text", VALUES.values(), ids=VALUES.keys())
def test_a_value_of_a_parameter(value: Any, text: str) -> None:
    assert written_calls([call(a=value)]) == (
        f'<function_calls>\n<invoke name="look">\n<parameter name="a">{text}</parameter>\n</invoke>\n</function_calls>'
    )


def test_a_value_that_is_no_json_is_refused() -> None:
    with pytest.raises(MembraneError, match="a tool's value is not JSON: Object of type object") as failure:
        written_calls([call(a=[object()])])
    assert failure.value.type == "invalid_request"


# Results


def stored(content: Any, *, is_error: bool | None = None, raw_xml: str | None = None) -> ToolResultBlock:
    return ToolResultBlock("id", content, is_error, raw_xml)


RESULTS: dict[str, tuple[list[AnyResult], str]] = {
    "a result and an error": (
        [ToolResult("1", "dust"), ToolResult("2", "dark", is_error=True)],
        """\
<function_results>
<result>
<stdout>
dust
</stdout>
</result>
<error>
dark
</error>
</function_results>""",
    ),
    "nothing said": (
        [stored(""), stored([], is_error=False)],
        """\
<function_results>
<result>
<stdout>

</stdout>
</result>
<result>
<stdout>

</stdout>
</result>
</function_results>""",
    ),
    "no results": ([], "<function_results>\n</function_results>"),
    "parts are lines, base64 images notes; the rest has no place": (
        [ToolResult("1", [Text("a"), PNG, ADDRESS, AUDIO, Text("", raw_item={"x": 1}), SVG, Text(" b")])],
        """\
<function_results>
<result>
<stdout>
a
[Image: image/png, ~0KB]
[Image: image/svg+xml, ~0KB]
 b
</stdout>
</result>
</function_results>""",
    ),
    "what was read is written as it stood there, once": (
        [stored("a", raw_xml="X"), stored("b", raw_xml="X"), stored("c"), stored("d", raw_xml="Y")],
        "X\n<function_results>\n<result>\n<stdout>\nc\n</stdout>\n</result>\n</function_results>\nY",
    ),
}


@pytest.mark.parametrize("results, text", RESULTS.values(), ids=RESULTS.keys())
def test_results(results: list[AnyResult], text: str) -> None:
    assert written_results(results) == text


CONTENTS: dict[str, tuple[Any, str]] = {
    "text is not touched": (' a & b < c "d"\n', ' a & b < c "d"\n'),
    "other markup is not": ("<html><thinking><parameter name='a'>", "<html><thinking><parameter name='a'>"),
    "a tag of the frame": ("a</result> & 'b'", "a&lt;/result&gt; &amp; &apos;b&apos;"),
    "a tag of the frame, with what follows": ('<invoke name="a">', "&lt;invoke name=&quot;a&quot;&gt;"),
    "the beginning of one": ("<stdout", "&lt;stdout"),
    "one of the namespace": (f"</{NAMESPACE}function_results>", f"&lt;/{NAMESPACE}function_results&gt;"),
    "a word that only begins like one": ("<results><errors><tool_names>", "<results><errors><tool_names>"),
    "a word that ends where ASCII does": ("<errorä>", "&lt;errorä&gt;"),
    "each of them": (
        "<function_calls <function_results <error <tool_name",
        "&lt;function_calls &lt;function_results &lt;error &lt;tool_name",
    ),
    "in one part of several": ([Text("<a>"), Text("<error>")], "&lt;a&gt;\n&lt;error&gt;"),
}


@pytest.mark.parametrize("content, text", CONTENTS.values(), ids=CONTENTS.keys())
@pytest.mark.parametrize("is_error", [False, True])
def test_the_content_of_a_result(content: Any, text: str, is_error: bool) -> None:
    opener, closer = ("<error>", "</error>") if is_error else ("<result>\n<stdout>", "</stdout>\n</result>")
    assert written_results([ToolResult("1", content, is_error)]) == (
        f"<function_results>\n{opener}\n{text}\n{closer}\n</function_results>"
    )


SPLITS: dict[str, tuple[list[ToolResult], SplitResults]] = {
    "no image": (
        [ToolResult("1", "a"), ToolResult("2", [Text("b")], True)],
        SplitResults(
            "<function_results>\n<result>\n<stdout>\na\n</stdout>\n</result>\n<error>\nb\n</error>\n</function_results>",
            [],
            "",
        ),
    ),
    "no results": ([], SplitResults("<function_results>\n</function_results>", [], "")),
    "an image in the middle": (
        [
            ToolResult("a", "x"),
            ToolResult("b", [Text("t1"), PNG, Text("t2")]),
            ToolResult("c", [Text("u"), PNG, Text("v")], is_error=True),
        ],
        SplitResults(
            "<function_results>\n<result>\n<stdout>\nx\n</stdout>\n</result>\n<result>\n<stdout>\nt1\nt2",
            [PNG_BLOCK],
            "</stdout>\n</result>\n<error>\nu[Image: image/png, ~0KB]v\n</error>\n</function_results>",
        ),
    ),
    "an image alone": (
        [ToolResult("1", [PNG])],
        SplitResults(
            "<function_results>\n<result>\n<stdout>\n", [PNG_BLOCK], "</stdout>\n</result>\n</function_results>"
        ),
    ),
    "an image in an error": (
        [ToolResult("1", [Text("a"), PNG], is_error=True)],
        SplitResults("<function_results>\n<error>\na", [PNG_BLOCK], "</error>\n</function_results>"),
    ),
    "several images of one result, by the type their bytes show": (
        [ToolResult("1", [PNG, MISLABELLED, PNG])],
        SplitResults(
            "<function_results>\n<result>\n<stdout>\n", [PNG_BLOCK] * 3, "</stdout>\n</result>\n</function_results>"
        ),
    ),
    "an image that no provider takes splits nothing": (
        [ToolResult("1", [Text("a"), SVG, ADDRESS])],
        SplitResults(
            f"<function_results>\n<result>\n<stdout>\na\n{SVG_PLACEHOLDER}\n</stdout>\n</result>\n</function_results>",
            [],
            "",
        ),
    ),
    "nor is it seen on either side of one": (
        [ToolResult("1", [SVG, PNG]), ToolResult("2", [Text("a"), SVG])],
        SplitResults(
            f"<function_results>\n<result>\n<stdout>\n{SVG_PLACEHOLDER}",
            [PNG_BLOCK],
            f"</stdout>\n</result>\n<result>\n<stdout>\na{SVG_PLACEHOLDER}\n</stdout>\n</result>\n</function_results>",
        ),
    ),
    "tags of the frame are escaped on both sides": (
        [ToolResult("1", [Text("<error>"), PNG, Text("<b>")]), ToolResult("2", [Text("<res"), Text("ult>")])],
        SplitResults(
            "<function_results>\n<result>\n<stdout>\n&lt;error&gt;\n&lt;b&gt;",
            [PNG_BLOCK],
            "</stdout>\n</result>\n<result>\n<stdout>\n&lt;result&gt;\n</stdout>\n</result>\n</function_results>",
        ),
    ),
}


@pytest.mark.parametrize("results, split", SPLITS.values(), ids=SPLITS.keys())
def test_results_around_images(results: list[ToolResult], split: SplitResults) -> None:
    assert split_results(results) == split
