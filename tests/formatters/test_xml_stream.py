"""xml_stream: the model's text, as it is cut, and what a caller sees of it: chunks, and blocks that begin and end.

At the end texts of every kind are cut every way; what must come of them is told by regular expressions over the whole.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable
from typing import Callable

import pytest

from membrane_lite.formatters.xml_stream import Depths, TagScanner
from membrane_lite.formatters.xml_tags import NAMESPACE, WHITESPACE
from membrane_lite.values.content import Text, Thinking
from membrane_lite.values.events import AnyEvent, BlockEvent, BlockInfo, BlockSeen, ChunkMeta, Tokens


def block(type: str, content: str) -> Text | Thinking:
    return Thinking(content) if type == "thinking" else Text(content)


def begins(index: int, type: str) -> AnyEvent:
    return BlockSeen(BlockEvent("block_start", index, BlockInfo(type)), block(type, ""))


def ends(index: int, type: str, content: str) -> AnyEvent:
    return BlockSeen(BlockEvent("block_complete", index, BlockInfo(type, content=content)), block(type, content))


def whole(index: int, type: str, *chunks: str, depth: int = 0) -> list[AnyEvent]:
    """A block from its beginning to its end."""
    meta = ChunkMeta(type, index, depth=depth)
    return [begins(index, type), *(Tokens(chunk, meta) for chunk in chunks), ends(index, type, "".join(chunks))]


def scanned(chunks: Iterable[str], pushed: str = "") -> list[AnyEvent]:
    scanner = TagScanner()
    scanner.push(pushed)
    return [event for chunk in chunks for event in scanner.feed(chunk)] + scanner.flush()


NS = NAMESPACE
CALL = '<function_calls>\n<invoke name="t">\n<parameter name="p">'
CALLED = "</parameter>\n</invoke>\n</function_calls>"


# name: (chunks, events)
FED: dict[str, tuple[list[str], list[AnyEvent]]] = {
    "a tag over two chunks": (
        ["Hi <thin", "king>a</thinking> b"],
        [*whole(0, "text", "Hi "), *whole(1, "thinking", "a"), *whole(2, "text", " b")],
    ),
    "a call is one block, of the text between its tags": (
        [f"{CALL}v{CALLED}"],
        whole(0, "tool_call", "\n", "\n", "v", "\n", "\n", depth=1),
    ),
    "of a value alone the block is the value": (
        ["<function_calls><invoke name='t'><parameter name='p'>va", "lue</parameter></invoke></function_calls>"],
        whole(0, "tool_call", "va", "lue", depth=1),
    ),
    "an empty call block begins and ends": (["<function_calls></function_calls>"], whole(0, "tool_call", depth=1)),
    "a blank call block holds its blanks": (
        ["<function_calls>\n</function_calls>"],
        whole(0, "tool_call", "\n", depth=1),
    ),
    "text directly after a call is text": (
        ["<function_calls></function_calls>name: more"],
        [*whole(0, "tool_call", depth=1), *whole(1, "text", "name: more")],
    ),
    "white space between blocks is a block of its own": (
        ["<thinking>a</thinking>\n\n<thinking>b</thinking>"],
        [*whole(0, "thinking", "a"), *whole(1, "text", "\n\n"), *whole(2, "thinking", "b")],
    ),
    "a call inside of results, which go on after it": (
        ["<function_results>a<function_calls>b</function_calls>c</function_results>"],
        [
            *whole(0, "tool_result", "a", depth=1),
            *whole(1, "tool_call", "b", depth=1),
            *whole(2, "tool_result", "c", depth=1),
        ],
    ),
    "thinking inside of a call, which goes on after it": (
        ["<function_calls>a<thinking>b</thinking>c</function_calls>d"],
        [
            *whole(0, "tool_call", "a", depth=1),
            *whole(1, "thinking", "b", depth=1),
            *whole(2, "tool_call", "c", depth=1),
            *whole(3, "text", "d"),
        ],
    ),
    "a call inside of thinking is a call; text after it is thinking": (
        ["<thinking>a<function_calls>b</function_calls>c</thinking>"],
        [*whole(0, "thinking", "a"), *whole(1, "tool_call", "b", depth=1), *whole(2, "thinking", "c")],
    ),
    "a call in a call": (
        ["<function_calls><function_calls>a</function_calls>b"],
        [*whole(0, "tool_call", depth=1), *whole(1, "tool_call", "a", depth=2), *whole(2, "tool_call", "b", depth=1)],
    ),
    "a closer of nothing ends the block of text": (
        ["a</thinking>b"],
        [*whole(0, "text", "a"), *whole(1, "text", "b")],
    ),
    "a closer where no block is open says nothing": (["</thinking></function_calls>"], []),
    "a depth does not fall below zero": (
        ["</thinking></thinking><thinking>a</thinking>b"],
        [*whole(0, "thinking", "a"), *whole(1, "text", "b")],
    ),
    "tags of calls outside of one are swallowed too": (
        ['a<invoke name="t">b</invoke><parameter name="p">c'],
        whole(0, "text", "a", "b", "c"),
    ),
    "another element is text, as soon as it is none of ours": (["<b>x"], whole(0, "text", "<b", ">x")),
    "results' own elements are text": (
        ["<function_results><result>ok</result>"],
        whole(0, "tool_result", "<r", "esult>ok", "</r", "esult>", depth=1),
    ),
    "a < before a blank": (["a < b"], whole(0, "text", "a ", "< ", "b")),
    "two of them": (["<<"], whole(0, "text", "<<")),
    "a second < makes the first one text, itself with it": (["<<thinking>"], whole(0, "text", "<<", "thinking>")),
    "a longer name is another name": (["<thinkingX>"], whole(0, "text", "<thinkingX", ">")),
    "a shorter name is another name": (["<think>"], whole(0, "text", "<think>")),
    "case matters": (["<Thinking>"], whole(0, "text", "<T", "hinking>")),
    "no blank before the name": (["< thinking>"], whole(0, "text", "< ", "thinking>")),
    "an empty element is none of ours": (["<thinking/>"], whole(0, "text", "<thinking/", ">")),
    "a closer takes no blank": (
        ["<function_calls>a</function_calls >b"],
        whole(0, "tool_call", "a", "</function_calls ", ">b", depth=1),
    ),
    "an opener takes attributes": (["<thinking a='1'\nb>x"], whole(0, "thinking", "x")),
    "a no-break space is white space": (["<thinking\u00a0a>x"], whole(0, "thinking", "x")),
    "U+0085 is not": (["<thinking\x85>"], whole(0, "text", "<thinking\x85", ">")),
    "attributes over many chunks": (
        ["<think", "ing a=", "'<", "", "b", "'>", "x"],
        whole(0, "thinking", "x"),
    ),
    "the element's name decides, not its attributes": (
        ['<function_calls><invoke name="seq_thinking"><parameter name="function_results">a'],
        whole(0, "tool_call", "a", depth=1),
    ),
    "a name with the prefix is the same name": (
        [f"<{NS}thinking>a</{NS}thinking><{NS}function_calls>b</{NS}function_calls><{NS}function_results>c"],
        [
            *whole(0, "thinking", "a"),
            *whole(1, "tool_call", "b", depth=1),
            *whole(2, "tool_result", "c", depth=1),
        ],
    ),
    "opener and closer need not agree": (
        [f"<{NS}thinking>a</thinking>b<thinking>c</{NS}thinking>d"],
        [
            *whole(0, "thinking", "a"),
            *whole(1, "text", "b"),
            *whole(2, "thinking", "c"),
            *whole(3, "text", "d"),
        ],
    ),
    "a prefix alone is none": ([f"<{NS}b>"], whole(0, "text", f"<{NS}b", ">")),
    "an unfinished tag at the end is text": (["a<thin"], whole(0, "text", "a", "<thin")),
    "an unfinished tag alone begins a block": (["<thin"], whole(0, "text", "<thin")),
    "unfinished attributes at the end are text, all of them": (
        ["<thinking a", " <thinking"],
        whole(0, "text", "<thinking a <thinking"),
    ),
    "chunks stay as they came": (["a", "", "b", "c d"], whole(0, "text", "a", "b", "c d")),
    "an empty chunk is nothing": (["", ""], []),
}
OPENS = "<function_calls><parameter name='p'>"
DATA: dict[str, tuple[list[str], list[AnyEvent]]] = {
    "tags in a CDATA section are data": (
        [f"{OPENS}<![CDATA[a</parameter><thinking>]]></parameter>b"],
        whole(0, "tool_call", "a</parameter><thinking>", "b", depth=1),
    ),
    "a newline may stand before it": (
        [f"{OPENS}\n<![CDATA[<thinking>]]>"],
        whole(0, "tool_call", "\n", "<thinking>", depth=1),
    ),
    "a newline in a chunk of its own": (
        [OPENS, "\n", "<", "![CDATA", "[<b>", "]]", ">"],
        whole(0, "tool_call", "\n", "<b>", depth=1),
    ),
    "two newlines may not": (
        [OPENS, "\n", "\n", "<![CDATA[<thinking>"],
        [*whole(0, "tool_call", "\n", "\n", "<!", "[CDATA[", depth=1), *whole(1, "thinking", depth=1)],
    ),
    "nor text": (
        [f"{OPENS}a<![CDATA[<thinking>"],
        [*whole(0, "tool_call", "a", "<!", "[CDATA[", depth=1), *whole(1, "thinking", depth=1)],
    ),
    "nor what was no tag": (
        [f"{OPENS}<b<![CDATA[<thinking>"],
        [*whole(0, "tool_call", "<b", "<!", "[CDATA[", depth=1), *whole(1, "thinking", depth=1)],
    ),
    "nor a closer": (
        [f"{OPENS}</parameter><![CDATA[<thinking>"],
        [*whole(0, "tool_call", "<!", "[CDATA[", depth=1), *whole(1, "thinking", depth=1)],
    ),
    "a section right after another goes on with its text": (
        [f"{OPENS}<![CDATA[a]]><![CDATA[><b]]>c"],
        whole(0, "tool_call", "a", "><b", "c", depth=1),
    ),
    "a newline between sections ends them": (
        [f"{OPENS}<![CDATA[a]]>\n<![CDATA[<thinking>"],
        [*whole(0, "tool_call", "a", "\n", "<!", "[CDATA[", depth=1), *whole(1, "thinking", depth=1)],
    ),
    "an empty section": ([f"{OPENS}<![CDATA[]]>a"], whole(0, "tool_call", "a", depth=1)),
    "brackets before the end are data": (
        [f"{OPENS}<![CDATA[]", "]", "]", "a]", "b]]", "]>c"],
        whole(0, "tool_call", "]", "]]a", "]b", "]", "c", depth=1),
    ),
    "no section without a call": (
        ["<parameter name='p'><![CDATA[<thinking>a"],
        [*whole(0, "text", "<!", "[CDATA["), *whole(1, "thinking", "a")],
    ),
    "what is no section after all is text": (
        [f"{OPENS}<![CDATA", "<thinking>"],
        whole(0, "tool_call", "<![CDATA<", "thinking>", depth=1),
    ),
    "a section that does not end": (
        [f"{OPENS}<![CDATA[a", "</parameter>]]"],
        whole(0, "tool_call", "a", "</parameter>", "]]", depth=1),
    ),
    "an unfinished opener of a section is text": (
        [f"{OPENS}<![CD"],
        whole(0, "tool_call", "<![CD", depth=1),
    ),
    "with the prefix too": (
        [f"<{NS}function_calls><{NS}parameter name='p'><![CDATA[<b>]]></{NS}parameter>"],
        whole(0, "tool_call", "<b>", depth=1),
    ),
    "after text of the call's thinking too": (
        [f"{OPENS}a<thinking></thinking><parameter name='q'><![CDATA[<b>]]>"],
        [
            *whole(0, "tool_call", "a", depth=1),
            *whole(1, "thinking", depth=1),
            *whole(2, "tool_call", "<b>", depth=1),
        ],
    ),
}
CASES = {**FED, **DATA}


@pytest.mark.parametrize(("chunks", "events"), CASES.values(), ids=CASES.keys())
def test_what_is_seen_of_a_text(chunks: list[str], events: list[AnyEvent]) -> None:
    assert scanned(chunks) == events


def test_chunks_of_a_block_share_what_is_said_of_it() -> None:
    metas = [event.meta for event in scanned(["<thinking>a", "b"]) if isinstance(event, Tokens)]
    assert len(metas) == 2
    assert metas[0] is metas[1]
    assert not metas[0].visible


# name: (pushed, chunks, events)
PUSHED: dict[str, tuple[str, list[str], list[AnyEvent]]] = {
    "it is not seen": ("Ann: hi\nClaude:", [" b"], whole(0, "text", " b")),
    "a block opened by it begins with the first text": ("<thinking>", ["a"], whole(0, "thinking", "a")),
    "the text of a call it opened": ("<function_calls>\n", ["a"], whole(0, "tool_call", "a", depth=1)),
    "a block it opened and closed": ("<thinking>a</thinking>", ["b"], whole(0, "text", "b")),
    "a closer for it": ("<thinking>a", ["b</thinking>c"], [*whole(0, "thinking", "b"), *whole(1, "text", "c")]),
    "a tag that ends in what is fed": ("<thin", ["king>a"], whole(0, "thinking", "a")),
    "attributes that end in what is fed": ("<thinking a", ["b>c"], whole(0, "thinking", "c")),
    "of what becomes no tag only the fed part": ("<thin", ["kx"], whole(0, "text", "kx")),
    "of unfinished attributes only the fed part": ("<thinking a", ["b"], whole(0, "text", "b")),
    "of an unfinished tag only the fed part": ("<thin", ["k"], whole(0, "text", "k")),
    "of an unfinished tag alone nothing": ("<thin", [], []),
    "a section it opened": (f"{OPENS}<![CDATA[", ["<b>]]>c"], whole(0, "tool_call", "<b>", "c", depth=1)),
    "an end of a section that it began": (f"{OPENS}<![CDATA[a]]", [">b"], whole(0, "tool_call", "b", depth=1)),
    "of brackets only the fed ones": (f"{OPENS}<![CDATA[a]]", ["]", "b"], whole(0, "tool_call", "]b", depth=1)),
    "brackets of both that end a section": (f"{OPENS}<![CDATA[a]", ["]>b"], whole(0, "tool_call", "b", depth=1)),
    "a section right after the opener in it": (OPENS, ["<![CDATA[<b>"], whole(0, "tool_call", "<b>", depth=1)),
}


@pytest.mark.parametrize(("pushed", "chunks", "events"), PUSHED.values(), ids=PUSHED.keys())
def test_what_is_seen_after_pushed_text(pushed: str, chunks: list[str], events: list[AnyEvent]) -> None:
    assert scanned(chunks, pushed) == events


# name: (pushed, one after the other, what is open)
DEPTHS = {
    "nothing": ([], Depths(0, 0, 0)),
    "each opener counts": (
        ["<function_calls>", "<function_results><function_results>", "<thinking><thinking><thinking>"],
        Depths(1, 2, 3),
    ),
    "with attributes": (["<thinking a>"], Depths(0, 0, 1)),
    "with the prefix": ([f"<{NS}function_calls><{NS}thinking></{NS}thinking>"], Depths(1, 0, 0)),
    "a tag over two pushes": (["<func", "tion_calls>"], Depths(1, 0, 0)),
    "a tag over many": ([*"<thinking a='", *"'>"], Depths(0, 0, 1)),
    "balanced": (["<thinking>a</thinking><function_calls></function_calls>"], Depths(0, 0, 0)),
    "more closers than openers": (["</thinking></thinking><thinking>"], Depths(0, 0, 1)),
    "what was opened inside of a block that ends": (["<thinking><function_calls></thinking>"], Depths(0, 0, 0)),
    "thinking inside of calls that end": ([f"{CALL}<thinking>{CALLED}"], Depths(0, 0, 0)),
    "calls inside of calls that end": (["<function_calls><function_calls></function_calls>"], Depths(1, 0, 0)),
    "the end of thinking in a value": ([f"<thinking>{CALL}</thinking>"], Depths(1, 0, 1)),
    "calls behind an invoke": (["<thinking><function_calls><invoke a></invoke></thinking>"], Depths(0, 0, 0)),
    "data is no tag": ([f"{OPENS}<![CDATA[<thinking></function_calls>"], Depths(1, 0, 0)),
}


@pytest.mark.parametrize(("pushed", "depths"), DEPTHS.values(), ids=DEPTHS.keys())
def test_what_pushed_text_leaves_open(pushed: list[str], depths: Depths) -> None:
    scanner = TagScanner()
    for text in pushed:
        scanner.push(text)
    assert scanner.depths == depths
    assert scanner.flush() == []


def test_fed_text_counts_alike() -> None:
    scanner = TagScanner()
    scanner.feed("</thinking><function_results><function_calls><func")
    scanner.feed("tion_calls>")
    assert scanner.depths == Depths(function_calls=2, function_results=1, thinking=0)


# name: (pushed, the type of text there)
TYPES = {
    "outside": ("a", "text"),
    "thinking before all": ("<thinking><function_calls><function_results>", "thinking"),
    "a call before results": ("<function_results><function_calls>", "tool_call"),
    "results": ("<function_results>", "tool_result"),
}


@pytest.mark.parametrize(("pushed", "type"), TYPES.values(), ids=TYPES.keys())
def test_the_type_of_text_is_that_of_what_is_open(pushed: str, type: str) -> None:
    scanner = TagScanner()
    scanner.push(pushed)
    assert scanner.block_type == type
    assert scanner.feed("a")[0] == begins(0, type)


def test_rounds_go_on_where_the_last_one_stopped() -> None:
    scanner = TagScanner()
    first = scanner.feed("<thinking>a<thin") + scanner.flush()
    second = scanner.feed("king>b</thinking>c") + scanner.flush()
    assert first == whole(0, "thinking", "a", "<thin")
    assert second == [*whole(1, "thinking", "king>b"), *whole(2, "text", "c")]
    assert scanner.flush() == []


def test_the_callers_own_blocks_are_counted_in_between() -> None:
    scanner = TagScanner()
    scanner.feed("a")
    indices = [scanner.take_index(), scanner.take_index()]
    assert indices == [1, 2]
    assert scanner.flush() == [ends(0, "text", "a")]
    assert scanner.feed("b")[0] == begins(3, "text")


def test_a_section_may_outlast_a_round() -> None:
    scanner = TagScanner()
    first = scanner.feed(f"{OPENS}<![CDATA[a]]") + scanner.flush()
    assert scanner.in_data
    scanner.push("</function_calls>")
    second = scanner.feed("<b>]]>")
    assert not scanner.in_data
    assert first == whole(0, "tool_call", "a", "]]", depth=1)
    assert second == whole(1, "tool_call", "<b>", depth=1)[:-1]
    assert scanner.depths == Depths(1, 0, 0)


def test_what_was_pushed_and_let_go_takes_nothing_from_the_next_round() -> None:
    scanner = TagScanner()
    scanner.push("<thin")
    assert scanner.flush() == []
    assert scanner.feed("<b>") + scanner.flush() == whole(0, "text", "<b", ">")


def test_no_section_begins_after_a_tag_that_was_let_go() -> None:
    for unfinished in ("<![CD", "<invoke a"):
        scanner = TagScanner()
        scanner.push(OPENS + unfinished)
        scanner.flush()
        scanner.feed("<![CDATA[")
        assert not scanner.in_data


# The same from the grammar: regular expressions over the whole text

NAMES = "function_calls|function_results|thinking|invoke|parameter"
TYPE_OF = {"thinking": "thinking", "function_calls": "tool_call", "function_results": "tool_result"}
HEADS = [f"<{slash}{prefix}{name}" for slash in ("", "/") for prefix in ("", NS) for name in NAMES.split("|")]


def starts_of(*words: str, shortest: int) -> str:
    """Whatever these begin with, the longest first."""
    starts = {word[:end] for word in words for end in range(shortest, len(word) + 1)}
    return "|".join(re.escape(start) for start in sorted(starts, key=len, reverse=True))


GRAMMAR = re.compile(
    r"(?P<run>[^<]+)"
    rf"|<(?:{NS})?(?P<opens>{NAMES})(?:[{WHITESPACE}][^>]*)?>"
    rf"|</(?:{NS})?(?P<closes>{NAMES})>"
    rf"|(?P<unfinished><(?:{NS})?(?:{NAMES})[{WHITESPACE}][^>]*\Z)"
    rf"|(?P<none>(?:{starts_of(*HEADS, shortest=1)}).?)",
    re.DOTALL,
)
SECTION = re.compile(r"<!\[CDATA\[(.*?)(?:\]\]>|\Z)", re.DOTALL)
VALUE = re.compile(rf"(\n?)((?:{SECTION.pattern})*)((?:(?:{starts_of('<![CDATA', shortest=2)}).?)?)", re.DOTALL)


# Where a block is closed around an opener that is not, counting each kind of tag by itself and containment (spans never
# overlap, the outermost wins) say different things of what follows. The scanner goes by containment.
CONTAINMENT_DECIDES = {"closed from outside", "closed inside an invoke"}


def visible_by_counting(text: str) -> str:
    """The visible text by the count of open tags alone: an opener adds one to its kind, a closer takes one away."""
    depths, visible, block, at = dict.fromkeys(TYPE_OF, 0), "", None, 0
    while at < len(text):
        found = GRAMMAR.match(text, at)
        at, said = found.end(), found["run"] or found["unfinished"] or found["none"] or ""
        name = found["opens"] or found["closes"]
        if name in TYPE_OF:
            depths[name] = max(0, depths[name] + (1 if found["opens"] else -1))
            block = TYPE_OF[name] if found["opens"] else None
        elif found["opens"] == "parameter" and depths["function_calls"]:
            value = VALUE.match(text, at)
            at, said = value.end(), value[1] + "".join(SECTION.findall(value[2])) + value[4]
        if said:
            block = block or next((TYPE_OF[name] for name in TYPE_OF if depths[name]), "text")
            visible += said if block == "text" else ""
    return visible


def told(text: str) -> tuple[list[tuple[str, str]], set[str]]:
    """A text's blocks, each as its type and content, and what there was to be told apart."""
    blocks: list[tuple[str, str]] = []
    opened: list[str] = []
    met, is_open, in_invoke, at = set(), False, False, 0
    while at < len(text):
        found = GRAMMAR.match(text, at)
        at, said = found.end(), found["run"] or found["unfinished"] or found["none"] or ""
        name = found["opens"] or found["closes"]
        if name in TYPE_OF:
            if found["opens"]:
                opened.append(name)
            elif name not in opened:
                met.add("closed too often")
            elif in_invoke and name != "function_calls" and opened[-1] != name:
                met.add("closed inside an invoke")
            else:
                met |= {"closed from outside"} if opened[-1] != name else set()
                del opened[max(at for at, each in enumerate(opened) if each == name) :]
            met |= {"nested"} if len(opened) > 1 else set()
            is_open = found["opens"] is not None
            blocks += [(TYPE_OF[name], "")] if is_open else []
        elif found["opens"] == "parameter" and "function_calls" in opened:
            value = VALUE.match(text, at)
            at, said = value.end(), value[1] + "".join(SECTION.findall(value[2])) + value[4]
            met |= {"section"} if value[2] else {"no section after all"} if value[4] else set()
        if name in ("invoke", "function_calls"):
            in_invoke = found["opens"] == "invoke" and "function_calls" in opened
        if said:
            blocks += [] if is_open else [(next((TYPE_OF[name] for name in TYPE_OF if name in opened), "text"), "")]
            blocks[-1], is_open = (blocks[-1][0], blocks[-1][1] + said), True
        met.add(found.lastgroup)
    return blocks, met


ATTRIBUTES = ('name="p"', 'name="seq_thinking"', "a='<'", "<thinking", "", "/", "b='\n]]'", "</function_calls")
WORDS = ("Hi ", "a > b", "\n", "\n\n", "]]>", "]", '"', "é\u00a0", "thinking>", "!", "[CDATA[", "/", " ")
BLANKS = " \n\t\u00a0\ufeff"


def name(dice: random.Random) -> str:
    return dice.choice(("", "", NS)) + dice.choice(NAMES.split("|"))


def tag(dice: random.Random) -> str:
    return f"<{dice.choice(('', '', '/'))}{name(dice)}>"


def attributed(dice: random.Random) -> str:
    return f"{begun(dice)}>"


def begun(dice: random.Random) -> str:
    return f"<{name(dice)}{dice.choice(BLANKS)}{dice.choice(ATTRIBUTES)}"


def partial(dice: random.Random) -> str:
    text = dice.choice((tag, attributed))(dice)
    return text[: dice.randrange(1, len(text))]


def section(dice: random.Random) -> str:
    gap, closer = dice.choice(("", "", "\n", "\n\n", " ")), dice.choice(("]]>", "]]>", "]]>", "]]]>", "]>", ""))
    payload = "".join(dice.choice((*WORDS, "</parameter>", "</function_calls>", "<thinking>")) for _ in range(3))
    return gap + f"<![CDATA[{payload}{closer}" * dice.choice((1, 1, 2))


def call(dice: random.Random) -> str:
    prefix, value = (
        dice.choice(("", NS)),
        dice.choice((section, section, partial, tag, lambda dice: "v", lambda dice: "<![CD")),
    )
    opener, parameter = f'<{prefix}function_calls>\n<{prefix}invoke name="t">', f'<{prefix}parameter name="p">'
    return f"{opener}{parameter}{value(dice)}</parameter>\n</{prefix}invoke>\n</function_calls>"


KINDS: dict[str, Callable[[random.Random], str]] = {
    "words": lambda dice: dice.choice(WORDS),
    "a tag": tag,
    "a tag with attributes": attributed,
    "a tag begun": begun,
    "a partial tag": partial,
    "a quoted tag": lambda dice: f"`{tag(dice)}`",
    "a closer with a blank": lambda dice: f"</{name(dice)} >",
    "a longer name": lambda dice: f"<{name(dice)}x>",
    "another element": lambda dice: dice.choice(("<b>", "</b>", "<result>", "<error a='1'>", f"<{NS}b>", "<THINKING>")),
    "angles": lambda dice: "<" * dice.randrange(1, 5),
    "a section outside": section,
    "a call": call,
    "a call in thinking": lambda dice: f"<thinking>{CALL}{dice.choice(('v', '</thinking>'))}{CALLED}</thinking>",
    "a tag mentioned": lambda dice: f"<thinking>a{dice.choice(('<function_calls>', CALL, 'b'))}</thinking>",
    "a call begun": lambda dice: call(dice)[: dice.randrange(20, 120)],
}
TEXTS = 2_000


def written(dice: random.Random) -> tuple[str, list[str]]:
    kinds = dice.choices(list(KINDS), k=dice.randrange(1, 9))
    return "".join(KINDS[kind](dice) for kind in kinds), kinds


def cut(dice: random.Random, text: str) -> list[str]:
    """Chunks of any length, empty ones too."""
    cuts = sorted(dice.choices(range(len(text) + 1), k=dice.randrange(1, 20)))
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)])]


def seen(chunks: Iterable[str]) -> tuple[list[AnyEvent], dict[ChunkMeta, str]]:
    """The block events, and each block's chunks joined."""
    events, joined = scanned(chunks), {}
    for event in events:
        if isinstance(event, Tokens):
            assert event.content
            joined[event.meta] = joined.get(event.meta, "") + event.content
    return [event for event in events if isinstance(event, BlockSeen)], joined


def test_any_text_cut_anywhere_gives_the_blocks_of_the_grammar() -> None:
    dice, counts = random.Random("xml_stream"), Counter[str]()
    for _ in range(TEXTS):
        text, kinds = written(dice)
        blocks, met = told(text)
        counts.update({*kinds, *met})
        block_events, joined = seen([text])
        numbered = [(index, type, content) for index, (type, content) in enumerate(blocks)]
        assert block_events == [e for block in numbered for e in (begins(*block[:2]), ends(*block))], text
        assert {(meta.block_index, meta.type, said) for meta, said in joined.items()} == {b for b in numbered if b[2]}
        assert seen(text) == seen(cut(dice, text)) == (block_events, joined), text
        if not met & CONTAINMENT_DECIDES:
            assert "".join(said for meta, said in joined.items() if meta.visible) == visible_by_counting(text), text
    closers = {"closed too often", "closed from outside", "closed inside an invoke"}
    met_by_design = {"section", "no section after all", "nested", "unfinished", "none", "run", *closers}
    assert counts.keys() == {*KINDS, *met_by_design, "opens", "closes"}
    assert min(counts.values()) > TEXTS // 20, counts


def test_any_text_pushed_in_any_pieces_leaves_open_what_it_would_fed() -> None:
    dice = random.Random("push")
    for _ in range(TEXTS // 4):
        text, _ = written(dice)
        pushed, fed = TagScanner(), TagScanner()
        fed.feed(text)
        for piece in cut(dice, text):
            pushed.push(piece)
        assert (pushed.depths, pushed.in_data) == (fed.depths, fed.in_data), text
        assert pushed.flush() == [], text
