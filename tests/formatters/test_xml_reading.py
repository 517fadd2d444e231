"""parse_text and parse_calls: a transcript's text as blocks. Calls are numbered c1, c2, ... as they stand in it."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from membrane_lite.formatters.xml_reading import (
    ParsedText,
    ends_with_partial_tool_block,
    has_tool_use,
    has_unclosed_tool_block,
    has_unclosed_xml_block,
    parse_calls,
    parse_text,
)
from membrane_lite.formatters.xml_tags import INNER_TAGS, NAMESPACE
from membrane_lite.formatters.xml_tools import written_calls, written_results
from membrane_lite.values.content import Block, Text, Thinking, ToolResultBlock, ToolUse
from membrane_lite.values.tools import Tool, ToolResult

OPEN, CLOSE = "<function_calls>", "</function_calls>"
RESULTS, RESULTS_CLOSE = "<function_results>", "</function_results>"


def ids() -> Callable[[], str]:
    numbers = count(1)
    return lambda: f"c{next(numbers)}"


def read(text: str, **options: Any) -> ParsedText:
    return parse_text(text, new_id=ids(), **options)


def parameter(name: str, value: str) -> str:
    return f'<parameter name="{name}">{value}</parameter>'


def invoke(name: str, *body: str) -> str:
    return f'<invoke name="{name}">{"".join(body)}</invoke>'


def calls(*invokes: str) -> str:
    return OPEN + "".join(invokes) + CLOSE


def results(*elements: str) -> str:
    return RESULTS + "".join(elements) + RESULTS_CLOSE


def prefixed(tag: str) -> str:
    """The tag in its other spelling."""
    return tag.replace("</", f"</{NAMESPACE}") if tag.startswith("</") else tag.replace("<", f"<{NAMESPACE}", 1)


LOOK = invoke("look", parameter("at", "1"))
BLOCK = calls(LOOK)


def look(id: str = "c1", raw_xml: str = BLOCK) -> ToolUse:
    return ToolUse(id, "look", {"at": 1}, raw_xml=raw_xml)


# Text, thinking, calls


BLOCKS: dict[str, tuple[str, list[Block]]] = {
    "nothing": ("", []),
    "white space": (" \n\ufeff", []),
    "text, trimmed": ("\n a  b \n", [Text("a  b")]),
    "what is no white space there": ("\x1fa\u0085", [Text("\x1fa\u0085")]),
    "thinking as it is, then text": ("<thinking> a\n</thinking>\n\nb", [Thinking(" a\n"), Text("b")]),
    "empty thinking": ("<thinking></thinking>", [Thinking("")]),
    "a tag with an attribute": ('<thinking mode="x">a</thinking>', [Thinking("a")]),
    "both spellings": (
        f"{prefixed('<thinking>')}a{prefixed('</thinking>')}b",
        [Thinking("a"), Text("b")],
    ),
    "an opener in one spelling, a closer in the other": (f"<thinking>a{prefixed('</thinking>')}", [Thinking("a")]),
    "a closer with a space is text": ("<thinking>a</thinking >b</thinking>", [Thinking("a</thinking >b")]),
    "capital letters are text": ("<Thinking>a</Thinking>", [Text("<Thinking>a</Thinking>")]),
    "a closer without an opener is text": ("a</thinking>", [Text("a</thinking>")]),
    "thinking in thinking": (
        "<thinking>a<thinking>b</thinking>c</thinking>d",
        [Thinking("a<thinking>b</thinking>c"), Text("d")],
    ),
    "a call among text": (f"a\n{BLOCK}\nb", [Text("a"), look(), Text("b")]),
    "text right behind a call": (f"{BLOCK}name: more", [look(), Text("name: more")]),
    "two blocks of calls": (f"{BLOCK}a{BLOCK}", [look("c1"), Text("a"), look("c2")]),
    "a call in thinking is thought": (f"<thinking>{BLOCK}</thinking>", [Thinking(BLOCK)]),
    "thinking in a call is data": (
        calls(invoke("look", parameter("at", "<thinking>b</thinking>"))),
        [
            ToolUse(
                "c1",
                "look",
                {"at": "<thinking>b</thinking>"},
                raw_xml=calls(invoke("look", parameter("at", "<thinking>b</thinking>"))),
            )
        ],
    ),
    "a closer of thinking inside results closes nothing outside": (
        f"<thinking>a{BLOCK}{results('<result></thinking></result>')}b</thinking>c",
        [Thinking(f"a{BLOCK}{results('<result></thinking></result>')}b"), Text("c")],
    ),
    "a call without parameters": (calls(invoke("look")), [ToolUse("c1", "look", {}, raw_xml=calls(invoke("look")))]),
    "a block of calls without calls": (f"a {OPEN}\n{CLOSE} b", [Text(f"a {OPEN}\n{CLOSE} b")]),
    "a block of calls that thinks": (
        f"{OPEN}<thinking>a</thinking>{CLOSE}",
        [Text(f"{OPEN}<thinking>a</thinking>{CLOSE}")],
    ),
    "a block of results without results": (f"{RESULTS}\n{RESULTS_CLOSE}", [Text(f"{RESULTS}\n{RESULTS_CLOSE}")]),
    "an opener without a closer is text": (f"a {OPEN} b", [Text(f"a {OPEN} b")]),
    "a block in a block: the inner one": (f"{OPEN}a{BLOCK}", [Text(f"{OPEN}a"), look()]),
    "a block in a closed block: the inner one": (
        f"{OPEN}a{BLOCK}b{CLOSE}",
        [Text(f"{OPEN}a"), look(), Text(f"b{CLOSE}")],
    ),
}


@pytest.mark.parametrize("text, blocks", BLOCKS.values(), ids=BLOCKS.keys())
def test_the_blocks_of_a_text(text: str, blocks: list[Block]) -> None:
    parsed = read(text)
    assert parsed._replace(pending=[]) == ParsedText(blocks, {}, [], False, [])


# Where a text begins inside a block, or ends in one


START_INSIDE: dict[str, tuple[str, str, list[Block]]] = {
    "thinking, closed": ("thinking", "more</thinking>Answer", [Thinking("more"), Text("Answer")]),
    "thinking, closed at once": ("thinking", "</thinking>Answer", [Thinking(""), Text("Answer")]),
    "thinking, never closed": ("thinking", "continued...", [Thinking("continued...")]),
    "thinking, until a call": ("thinking", f"so\n{BLOCK}", [Thinking("so\n"), look()]),
    "thinking, and again": (
        "thinking",
        f"a{BLOCK}<thinking>b</thinking>c",
        [Thinking("a"), look(), Thinking("b"), Text("c")],
    ),
    "thinking, nothing": ("thinking", " \n", []),
    "calls": ("tool_call", f"{LOOK}{CLOSE}a", [look(), Text("a")]),
    "calls, and none": ("tool_call", "a", [Text("a")]),
    "results": (
        "tool_result",
        f"<error>\nno\n</error>{RESULTS_CLOSE}a",
        [ToolResultBlock("", "no", True, raw_xml=results("<error>\nno\n</error>")), Text("a")],
    ),
    "results, never closed": ("tool_result", "a", [Text("a")]),
}


@pytest.mark.parametrize("block, text, blocks", START_INSIDE.values(), ids=START_INSIDE.keys())
def test_a_text_that_begins_inside_a_block(block: str, text: str, blocks: list[Block]) -> None:
    assert read(text, start_inside=block).blocks == blocks


OPEN_THINKING: dict[str, tuple[str, list[Block], list[Block]]] = {
    "at the end": ("a <thinking>b ", [Text("a"), Thinking("b ")], [Text("a <thinking>b")]),
    "before a call": (
        f"<thinking>a {BLOCK} b",
        [Thinking("a "), look(), Text("b")],
        [Text("<thinking>a"), look(), Text("b")],
    ),
    "before thinking that is closed": (
        "<thinking>a <thinking>b</thinking>c",
        [Thinking("a "), Thinking("b"), Text("c")],
        [Text("<thinking>a"), Thinking("b"), Text("c")],
    ),
    "twice": ("<thinking>a<thinking>b", [Thinking("a<thinking>b")], [Text("<thinking>a<thinking>b")]),
    "blank": ("a<thinking>\n", [Text("a")], [Text("a<thinking>")]),
    "inside a closer that is cut": ("<thinking>a</thin", [Thinking("a</thin")], [Text("<thinking>a</thin")]),
}


@pytest.mark.parametrize("text, kept, as_text", OPEN_THINKING.values(), ids=OPEN_THINKING.keys())
def test_thinking_without_a_closer(text: str, kept: list[Block], as_text: list[Block]) -> None:
    assert read(text).blocks == kept
    assert read(text, keep_open_thinking=False).blocks == as_text


def test_thinking_that_was_open_before_may_stay_text_with_its_tag() -> None:
    parsed = read("continued...", start_inside="thinking", keep_open_thinking=False)
    assert parsed.blocks == [Text("<thinking>continued...")]


def cut(text: str, name: str = "look", before: tuple[ToolUse, ...] = (), raw: str = "") -> list[Block]:
    """The blocks of a text that ends in a call, which is all of `text` that stands behind `raw`."""
    return [*before, ToolUse(f"c{len(before) + 1}", name, {}, unparseable_input=text, raw_xml=raw + text)]


HALF = '<invoke name="look"><parameter name="at">1'
UNFINISHED: dict[str, tuple[str, list[Block]]] = {
    "in a value": (f"a {OPEN}\n{HALF} \n", [Text("a"), *cut(f"{HALF} \n", raw=f"{OPEN}\n")]),
    "behind the head": (f'{OPEN}<invoke name="look">', cut('<invoke name="look">', raw=OPEN)),
    "behind a head without a name": (f"{OPEN}<invoke>a", cut("<invoke>a", "unnamed", raw=OPEN)),
    "in the second call": (
        f"{OPEN}{LOOK}{HALF}",
        cut(HALF, before=(look(raw_xml=OPEN + LOOK + HALF),), raw=OPEN + LOOK),
    ),
    "between calls": (f"{OPEN}{LOOK}\n</func", [look(raw_xml=f"{OPEN}{LOOK}\n</func")]),
    "in a call that holds another": (f"{OPEN}{HALF}{LOOK}", cut(HALF + LOOK, raw=OPEN)),
    "in a value that thinks": (
        f"{OPEN}{HALF}<thinking>b</thinking>",
        cut(f"{HALF}<thinking>b</thinking>", raw=OPEN),
    ),
    "in CDATA, whatever it holds": (
        f'{OPEN}<invoke name="look"><parameter name="at"><![CDATA[a</parameter></invoke>{CLOSE}<thinking>',
        cut(f'<invoke name="look"><parameter name="at"><![CDATA[a</parameter></invoke>{CLOSE}<thinking>', raw=OPEN),
    ),
    "in the last of several blocks": (
        f"{BLOCK}{OPEN}{HALF}",
        cut(HALF, before=(look(),), raw=OPEN),
    ),
    "inside thinking that is open": (f"<thinking>a{OPEN}{HALF}", [Thinking("a"), *cut(HALF, raw=OPEN)]),
}


@pytest.mark.parametrize("text, blocks", UNFINISHED.values(), ids=UNFINISHED.keys())
def test_a_text_that_ends_in_calls(text: str, blocks: list[Block]) -> None:
    parsed = read(text)
    assert parsed._replace(pending=[]) == ParsedText(blocks, {}, [], True, [])


NOT_UNFINISHED = {
    "no invoke": f"a {OPEN} b",
    "a head that is cut": f'{OPEN}<invoke name="lo',
    "another tag first": f"{OPEN}<thinking>{LOOK}",
}


@pytest.mark.parametrize("text", NOT_UNFINISHED.values(), ids=NOT_UNFINISHED.keys())
def test_an_opener_without_an_invoke_behind_it_is_text(text: str) -> None:
    assert read(text, keep_open_thinking=False) == ParsedText([Text(text)], {}, [], False, [])


def test_an_unfinished_call_in_thinking_is_thought() -> None:
    text = f"<thinking>{OPEN}{HALF}</thinking>a"
    assert read(text) == ParsedText([Thinking(f"{OPEN}{HALF}"), Text("a")], {}, [], False, [])


# Invokes


def inputs(text: str) -> list[tuple[str, Any]]:
    return [(use.name, use.input) for use in read(text).blocks if isinstance(use, ToolUse)]


INVOKES: dict[str, tuple[str, list[tuple[str, Any]]]] = {
    "several, in their order": (
        calls("\n", LOOK, " and ", '<invoke name="ping"/>', invoke("listen"), '<invoke name="pong" />'),
        [("look", {"at": 1}), ("ping", {}), ("listen", {}), ("pong", {})],
    ),
    "several parameters": (
        calls(invoke("f", "\n", parameter("a", "x"), "\n", parameter("b", "true"), "\n")),
        [("f", {"a": "x", "b": True})],
    ),
    "a name twice: the last": (calls(invoke("f", parameter("a", "1"), parameter("a", "2"))), [("f", {"a": 2})]),
    "an empty parameter": (calls(invoke("f", '<parameter name="a"/>')), [("f", {"a": ""})]),
    "markup in a value": (calls(invoke("f", parameter("a", "<b>x</b> <"))), [("f", {"a": "<b>x</b> <"})]),
    "single quotes and spaces": (
        calls("<invoke  name='f' ><parameter name='a' >1</parameter></invoke>"),
        [("f", {"a": 1})],
    ),
    "a quote of the other kind in a name": (calls("""<invoke name='a"b'/>"""), [('a"b', {})]),
    "another attribute before the name": (calls('<invoke id="name" name="f"/>'), [("f", {})]),
    "the other spelling": (
        calls(LOOK).replace("<invoke", f"<{NAMESPACE}invoke").replace("</parameter", f"</{NAMESPACE}parameter"),
        [("look", {"at": 1})],
    ),
    "a self-closing invoke in a value is data": (
        calls(invoke("f", parameter("a", '<invoke name="g"/>'))),
        [("f", {"a": '<invoke name="g"/>'})],
    ),
    "stray closers between invokes": (calls("</invoke>", LOOK, "</parameter></invoke>"), [("look", {"at": 1})]),
    "CDATA": (calls(invoke("f", parameter("a", "<![CDATA[ 1\n]]>"))), [("f", {"a": " 1\n"})]),
    "CDATA on lines of its own": (calls(invoke("f", parameter("a", "\n<![CDATA[1]]>\n"))), [("f", {"a": "1"})]),
    "CDATA that holds tags": (
        calls(invoke("f", parameter("a", f"<![CDATA[</parameter></invoke>{CLOSE}{BLOCK}]]>"))),
        [("f", {"a": f"</parameter></invoke>{CLOSE}{BLOCK}"})],
    ),
    "CDATA that goes on": (
        calls(invoke("f", parameter("a", "<![CDATA[a]]]]><![CDATA[>b]]>"), parameter("b", "1"))),
        [("f", {"a": "a]]>b", "b": 1})],
    ),
    "CDATA behind other text is text": (
        calls(invoke("f", parameter("a", "\n\n<![CDATA[1]]>"))),
        [("f", {"a": "<![CDATA[1]]>"})],
    ),
    "empty CDATA": (calls(invoke("f", parameter("a", "<![CDATA[]]>"))), [("f", {"a": ""})]),
}


@pytest.mark.parametrize("text, expected", INVOKES.values(), ids=INVOKES.keys())
def test_the_calls_of_a_block(text: str, expected: list[tuple[str, Any]]) -> None:
    assert inputs(text) == expected
    assert {use.raw_xml for use in read(text).blocks if isinstance(use, ToolUse)} == {text}


def test_cdata_outside_calls_is_text() -> None:
    text = '<parameter name="a"><![CDATA[<thinking>b</thinking>'
    assert read(text).blocks == [Text('<parameter name="a"><![CDATA['), Thinking("b")]


SENT = "; nothing was sent."
AS_DATA = f"{SENT} To send this text as data, write the value as CDATA."
FIND = Tool(
    "find",
    "",
    {
        "type": "object",
        "properties": {"what": {"type": "string"}, "where": {"type": "string"}, "times": {"type": "integer"}},
        "required": ["what", "where"],
    },
)
WHAT, WHERE = parameter("what", "a"), parameter("where", "b")

REFUSED: dict[str, tuple[str, str]] = {
    "text behind the parameters": (
        invoke("find", WHAT, WHERE, " x"),
        "text stands behind its last parameter" + AS_DATA,
    ),
    "a stray closer": (invoke("find", WHAT, "</parameter>"), "text stands behind its last parameter" + AS_DATA),
    "text between parameters": (invoke("find", WHAT, "x", WHERE), "text stands between its parameters" + AS_DATA),
    "markup before the first": (
        invoke("find", "<what>a</what>", WHERE),
        "markup stands before its first parameter" + AS_DATA,
    ),
    "no parameter but text": (invoke("find", "a"), "it holds text, no parameter" + AS_DATA),
    "no parameter but a call": (invoke("find", '<invoke name="x"/>'), "it holds text, no parameter" + AS_DATA),
    "a parameter that is not closed": (
        invoke("find", WHAT, '<parameter name="where">b'),
        "parameter 'where' is not closed" + AS_DATA,
    ),
    "a closer of invokes in a value": (
        '<invoke name="find"><parameter name="what"></invoke>',
        "parameter 'what' is not closed" + AS_DATA,
    ),
    "the opener of a required parameter in a value": (
        invoke("find", '<parameter name="what">a<parameter name="where">b</parameter>'),
        "parameter 'what' holds the opener of parameter 'where'" + AS_DATA,
    ),
    "the opener of another behind a foreign closer": (
        invoke("find", WHAT, '<parameter name="where">b</param>\n<parameter name="times">2</parameter>'),
        "parameter 'where' holds the opener of parameter 'times'" + AS_DATA,
    ),
    "text behind CDATA": (
        invoke("find", parameter("what", "<![CDATA[a]]>b")),
        "parameter 'what' has text behind its CDATA section" + AS_DATA,
    ),
    "a parameter without a name": (invoke("find", "<parameter>a</parameter>"), "a parameter has no name" + SENT),
    "a parameter with an empty name": (invoke("find", parameter("", "a")), "a parameter has no name" + SENT),
}


@pytest.mark.parametrize("source, why", REFUSED.values(), ids=REFUSED.keys())
def test_a_refused_call(source: str, why: str) -> None:
    text = calls(source)
    use = ToolUse("c1", "find", {}, unparseable_input=source, raw_xml=text)
    refusals = {"c1": f"the call of 'find' was refused: {why}"}
    assert read(text, tools=[FIND]) == ParsedText([use], refusals, [], False, ["c1"])


NAMELESS = {
    "no name": "<invoke></invoke>",
    "an empty name": invoke(""),
    "a blank name": invoke(" "),
    "a name without quotes": "<invoke name=find></invoke>",
    "no name, closed at once": "<invoke/>",
    "another attribute": '<invoke nickname="find"/>',
}


@pytest.mark.parametrize("source", NAMELESS.values(), ids=NAMELESS.keys())
def test_an_invoke_without_a_name_is_refused(source: str) -> None:
    text = calls(source)
    use = ToolUse("c1", "unnamed", {}, unparseable_input=source, raw_xml=text)
    refusals = {"c1": f"a call was refused: its invoke has no name{SENT}"}
    assert read(text) == ParsedText([use], refusals, [], False, ["c1"])


def test_an_invoke_in_an_open_invoke_is_the_call_and_the_open_one_is_refused() -> None:
    text = calls(HALF, LOOK, "x", HALF)
    assert read(text) == ParsedText(
        [
            ToolUse("c1", "look", {}, unparseable_input=HALF, raw_xml=text),
            look("c2", raw_xml=text),
            ToolUse("c3", "look", {}, unparseable_input=HALF, raw_xml=text),
        ],
        dict.fromkeys(("c1", "c3"), f"the call of 'look' was refused: its invoke is not closed{AS_DATA}"),
        [],
        False,
        ["c1", "c2", "c3"],
    )


DOUBTED: dict[str, tuple[str, Any, list[str]]] = {
    "words before the first parameter": (
        invoke("find", "so: ", WHAT),
        {"what": "a"},
        ["text before its first parameter was left out"],
    ),
    "the opener of a parameter that is given": (
        invoke("find", parameter("what", '<parameter name="where">'), WHERE),
        {"what": '<parameter name="where">', "where": "b"},
        ["parameter 'what': its value holds the opener of another parameter"],
    ),
    "the opener of a parameter that may be missing": (
        invoke("find", WHAT, '<parameter name="where">b<parameter name="times">2</parameter>'),
        {"what": "a", "where": 'b<parameter name="times">2'},
        ["parameter 'where': its value holds the opener of another parameter"],
    ),
    "the opener of an unknown parameter behind a foreign closer": (
        invoke("find", WHAT, '<parameter name="where">b</param><parameter name="x">2</parameter>'),
        {"what": "a", "where": 'b</param><parameter name="x">2'},
        ["parameter 'where': its value holds the opener of another parameter"],
    ),
    "another type": (
        invoke("find", parameter("times", "twice")),
        {"times": "twice"},
        ["parameter 'times': integer expected, but the value is not JSON: it is passed as text"],
    ),
    "the same twice": (
        invoke("find", parameter("times", "true"), parameter("times", "false")),
        {"times": False},
        ["parameter 'times': integer expected, boolean found"],
    ),
    "none: what is not required may be missing": (invoke("find", WHAT), {"what": "a"}, []),
    "none: a string of digits": (invoke("find", parameter("what", "\n 42 \n")), {"what": " 42 "}, []),
    "none: a parameter that is not declared": (invoke("find", parameter("x", " 42 ")), {"x": 42}, []),
}


@pytest.mark.parametrize("source, value, doubts", DOUBTED.values(), ids=DOUBTED.keys())
def test_a_doubtful_call_stands(source: str, value: Any, doubts: list[str]) -> None:
    text = calls(source)
    warnings = [f"the call of 'find': {doubt}" for doubt in doubts]
    use = ToolUse("c1", "find", value, raw_xml=text)
    assert read(text, tools=[FIND]) == ParsedText([use], {}, warnings, False, ["c1"])


def test_without_the_tool_values_are_guessed_and_openers_only_doubted() -> None:
    text = calls(
        invoke(
            "find",
            '<parameter name="what"> 42 </parameter><parameter name="x"><parameter name="where">',
            "</parameter>",
        )
    )
    parsed = read(text, tools=[Tool("another")])
    assert [block.input for block in parsed.blocks if isinstance(block, ToolUse)] == [
        {"what": 42, "x": '<parameter name="where">'}
    ]
    assert parsed.warnings == ["the call of 'find': parameter 'x': its value holds the opener of another parameter"]


# Results


def result(id: str, content: str, is_error: bool = False, raw_xml: str = "") -> ToolResultBlock:
    return ToolResultBlock(id, content, is_error, raw_xml=raw_xml)


def stdout(content: str, tool_name: str = "") -> str:
    name = f"<tool_name>{tool_name}</tool_name>\n" if tool_name else ""
    return f"<result>\n{name}<stdout>\n{content}\n</stdout>\n</result>\n"


def error(message: str) -> str:
    return f"<error>\n{message}\n</error>\n"


TWO = calls(invoke("look"), invoke("listen"))

RESULT_TEXTS: dict[str, tuple[str, list[tuple[str, str, bool]]]] = {
    "with ids, in their order": (
        results('<error tool_use_id="b">no</error>', '<result tool_use_id="a">yes</result>'),
        [("b", "no", True), ("a", "yes", False)],
    ),
    "the form's newlines are not the result's": (
        results('\n<result tool_use_id="a">\n\nok\n\n</result>\n'),
        [("a", "\nok\n", False)],
    ),
    "an empty result": (results('<result tool_use_id="a">\n\n</result>'), [("a", "", False)]),
    "entities": (
        results('<result tool_use_id="a">&lt;b&gt; &quot;&apos; &amp;lt; &amp;amp; &nbsp;</result>'),
        [("a", "<b> \"' &lt; &amp; &nbsp;", False)],
    ),
    "a result in the other form, as it is": (
        results(stdout("a &lt; b <b> </b>\n")),
        [("", "a &lt; b <b> </b>\n", False)],
    ),
    "a result in the other form that holds its tags": (
        results(stdout("&lt;stdout&gt; &amp;lt;")),
        [("", "<stdout> &lt;", False)],
    ),
    "one that shows its tags beside markup, as it is": (
        results(stdout("<b> &lt;stdout&gt;")),
        [("", "<b> &lt;stdout&gt;", False)],
    ),
    "a result without stdout": (results("<result>\nok\n</result>"), [("", "ok", False)]),
    "an error in the other form": (results(error("no <b>")), [("", "no <b>", True)]),
    "by id, and then by position": (
        TWO + results(error("b"), '<result tool_use_id="c1">a</result>'),
        [("c2", "b", True), ("c1", "a", False)],
    ),
    "by position": (TWO + results(stdout("a"), error("b")), [("c1", "a", False), ("c2", "b", True)]),
    "by name": (
        TWO + results(error("x"), stdout("b", "listen")),
        [("c1", "x", True), ("c2", "b", False)],
    ),
    "by name before position": (
        TWO + results(error("x"), stdout("a", "look")),
        [("c2", "x", True), ("c1", "a", False)],
    ),
    "one tool twice": (
        calls(invoke("look"), invoke("look")) + results(stdout("a", "look"), stdout("b", "look")),
        [("c1", "a", False), ("c2", "b", False)],
    ),
    "a name that was not called": (TWO + results(stdout("a", "smell")), [("c1", "a", False)]),
    "more results than calls": (
        BLOCK + results(stdout("a"), stdout("b")),
        [("c1", "a", False), ("", "b", False)],
    ),
    "the nearest block first": (
        BLOCK + "a" + BLOCK + results(stdout("a", "look")) + results(stdout("b", "look")),
        [("c2", "a", False), ("c1", "b", False)],
    ),
    "two blocks of results": (
        TWO + results(stdout("a")) + results(stdout("b")),
        [("c1", "a", False), ("c2", "b", False)],
    ),
    "an element that is not closed": (results("<result>a", error("b")), [("", "b", True)]),
    "a result that holds calls": (results('<result tool_use_id="a">' + BLOCK + "</result>"), [("a", BLOCK, False)]),
    "the other spelling": (
        prefixed(RESULTS) + prefixed("<result>") + "a" + prefixed("</result>") + RESULTS_CLOSE,
        [("", "a", False)],
    ),
}


@pytest.mark.parametrize("text, expected", RESULT_TEXTS.values(), ids=RESULT_TEXTS.keys())
def test_the_results_of_a_text(text: str, expected: list[tuple[str, str, bool]]) -> None:
    found = [block for block in read(text).blocks if isinstance(block, ToolResultBlock)]
    assert [(block.tool_use_id, block.content, block.is_error) for block in found] == expected


def test_results_share_their_source_and_stand_where_they_stood() -> None:
    answers = results(stdout("a", "look"), error("b"))
    assert read(f"x{BLOCK}\n{answers}\ny").blocks == [
        Text("x"),
        look(),
        result("c1", "a", raw_xml=answers),
        result("", "b", is_error=True, raw_xml=answers),
        Text("y"),
    ]


# Which calls wait for an answer


ANSWERED = BLOCK + results(stdout("a"))
PENDING: dict[str, tuple[str, list[str], tuple[str, str] | None]] = {
    "no calls": ("a", [], None),
    "one block": (f"a{BLOCK}b", ["c1"], ("a", "b")),
    "two blocks: the last": (f"{BLOCK}a{BLOCK}", ["c2"], (f"{BLOCK}a", "")),
    "the last is answered": (f"{BLOCK}a{ANSWERED}", ["c1"], ("", f"a{ANSWERED}")),
    "the first is answered": (f"{ANSWERED}{BLOCK}", ["c2"], (ANSWERED, "")),
    "all are answered": (f"{ANSWERED}a{ANSWERED}", [], None),
    "results behind white space": (f"{BLOCK} \n{results(stdout('a'))}", [], None),
    "results behind text": (f"{BLOCK}a{results(stdout('a'))}", ["c1"], ("", f"a{results(stdout('a'))}")),
    "results that are just opened": (f"{BLOCK}{RESULTS}", [], None),
    "a block that is not closed": (f"{OPEN}{HALF}", [], None),
    "a block without calls": (f"{BLOCK}a{OPEN}{CLOSE}", [], (f"{BLOCK}a", "")),
    "a block in thinking": (f"<thinking>{BLOCK}</thinking>", [], None),
    "a block in thinking that is open": (f"<thinking>a{BLOCK}", ["c1"], ("<thinking>a", "")),
    "a block in a block": (f"{OPEN}a{BLOCK}b", ["c1"], (f"{OPEN}a", "b")),
}


@pytest.mark.parametrize("text, pending, around", PENDING.values(), ids=PENDING.keys())
def test_the_calls_that_wait_for_results(text: str, pending: list[str], around: tuple[str, str] | None) -> None:
    found = parse_calls(text, new_id=ids())
    assert read(text).pending == pending
    assert (found and (found.before_text, found.after_text)) == around
    assert found is None or found.before_text + found.full_match + found.after_text == text
    assert found is None or len(found.calls) == len(pending)


def test_parsed_calls() -> None:
    source = invoke("find", parameter("what", "1"))
    found = parse_calls(f"a {calls(source, LOOK)} b", new_id=ids(), tools=[FIND])
    assert found == (
        [ToolUse("c1", "find", {"what": "1"}, raw_xml=calls(source, LOOK)), look("c2", calls(source, LOOK))],
        "a ",
        " b",
        calls(source, LOOK),
    )


# Questions about a text, in the order of the answers


QUESTIONS = (has_tool_use, has_unclosed_tool_block, ends_with_partial_tool_block, has_unclosed_xml_block)
ANSWERS: dict[str, tuple[str, tuple[bool, bool, bool, bool]]] = {
    "nothing": ("", (False, False, False, False)),
    "text": ("a < b, <invoker", (False, False, False, False)),
    "a call": (BLOCK, (True, False, False, False)),
    "calls that are open": (f"{OPEN}a", (True, True, True, True)),
    "the other spelling": (f"{prefixed(OPEN)}a", (True, True, True, True)),
    "an opener with an attribute": ('<function_calls a="b">', (True, True, True, True)),
    "closed, then open": (BLOCK + OPEN, (True, True, True, True)),
    "closed, but in the other order": (CLOSE + OPEN, (True, False, False, True)),
    "inside the opener": ("a<function_calls", (False, False, True, False)),
    "inside the head of an invoke": ('a<invoke name="x', (False, False, True, False)),
    "inside an empty invoke": ("<invoke /", (False, False, True, False)),
    "inside a parameter, in the other spelling": (f"<{NAMESPACE}parameter", (False, False, True, False)),
    "behind it": ("<function_calls ", (False, False, True, False)),
    "inside a word": ("<func", (False, False, False, False)),
    "a tag that ended": ("<invoke> b", (False, False, False, False)),
    "thinking that is open": ("<thinking>a", (False, False, False, True)),
    "thinking that is closed": ("<thinking>a</thinking>", (False, False, False, False)),
    "thinking opened twice": ("<thinking><thinking>a</thinking>", (False, False, False, True)),
    "a closer too many": ("</thinking><thinking>a</thinking>", (False, False, False, False)),
    "results that are open": (f"{RESULTS}a", (False, False, False, True)),
    "a closer in CDATA": (
        f'{OPEN}<invoke name="a"><parameter name="b"><![CDATA[{CLOSE}',
        (True, True, True, True),
    ),
}


@pytest.mark.parametrize("text, answers", ANSWERS.values(), ids=ANSWERS.keys())
def test_questions_about_a_text(text: str, answers: tuple[bool, bool, bool, bool]) -> None:
    assert tuple(question(text) for question in QUESTIONS) == answers


# What is written is read back


VALUES: dict[str, Any] = {
    "text": "a]]>b\n</parameter></invoke>" + CLOSE,
    "digits": "12345678901234567890",
    "whole": 12345678901234567,
    "below": -1234567890123456789,
    "half": 0.5,
    "list": [1, "<thinking>", None, True, {"a": "]]>"}],
    "nothing": None,
    "empty": "",
    'a "quoted" name': 1,
    "it's /": 2,
}


def test_written_calls_are_read_back() -> None:
    uses = [ToolUse("c1", "f", VALUES), ToolUse("c2", 'the "g"', {})]
    text = written_calls(uses)
    assert read(text).blocks == [ToolUse("c1", "f", VALUES, raw_xml=text), ToolUse("c2", 'the "g"', {}, raw_xml=text)]


def test_written_results_are_read_back() -> None:
    contents = ["", "\n", "a &amp; b", "<result>\n</result> &lt;", "&lt;b&gt;", " x "]
    answers = [ToolResult(f"c{number}", text, number % 2 == 0) for number, text in enumerate(contents, 1)]
    called = calls(*[invoke("look")] * len(contents))
    found = read(called + written_results(answers)).blocks[len(contents) :]
    raw_xml = written_results(answers)
    assert found == [result(each.tool_use_id, str(each.content), bool(each.is_error), raw_xml) for each in answers]


# Any text

PIECES = [
    "<thinking>",
    "</thinking>",
    OPEN,
    CLOSE,
    RESULTS,
    RESULTS_CLOSE,
    '<invoke name="find">',
    "<invoke name='look' >",
    '<invoke name="ping"/>',
    "<invoke>",
    "</invoke>",
    '<parameter name="what">',
    '<parameter name="times">',
    '<parameter name="x"/>',
    "</parameter>",
    "</param>",
    "<![CDATA[",
    "]]>",
    "<result>",
    '<result tool_use_id="a">',
    "</result>",
    "<error>",
    "</error>",
    "<stdout>",
    "</stdout>",
    "<tool_name>look</tool_name>",
    *(f"<{NAMESPACE}{name}" for name in INNER_TAGS),
    prefixed(OPEN),
    prefixed(CLOSE),
    "\n",
    " ",
    "1",
    "[",
    "null",
    "&lt;",
    "<",
    ">",
    "word",
    "é\u2028",
]


def is_within(pieces: list[str], text: str) -> bool:
    """Whether the pieces stand in the text, one behind the other."""
    at = 0
    for piece in pieces:
        found = text.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return True


@pytest.mark.parametrize("start_inside", [None, "thinking", "tool_call", "tool_result"])
def test_any_text_is_read_and_what_is_shown_of_it_stood_there(start_inside: str | None) -> None:
    dice = random.Random(f"transcripts, {start_inside}")
    for _ in range(1_500):
        text = "".join(dice.choices(PIECES, k=dice.randrange(30)))
        parsed = read(text, tools=[FIND], start_inside=start_inside)
        shown = [
            block.text if isinstance(block, Text) else block.thinking
            for block in parsed.blocks
            if isinstance(block, (Text, Thinking))
        ]
        uses = [block for block in parsed.blocks if isinstance(block, ToolUse)]
        assert is_within(shown, text), text
        assert [use.id for use in uses] == [f"c{number}" for number in range(1, len(uses) + 1)], text
        assert parsed.refusals.keys() <= {use.id for use in uses if use.unparseable_input is not None}, text
        assert all(use.unparseable_input in text for use in uses if use.unparseable_input is not None), text
        assert set(parsed.pending) <= {use.id for use in uses}, text
        found = parse_calls(text, new_id=ids(), tools=[FIND])
        assert found is None or found.before_text + found.full_match + found.after_text == text, text
        assert all(isinstance(question(text), bool) for question in QUESTIONS), text
