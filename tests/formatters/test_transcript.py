"""Transcripts, whole: what is sent for a conversation in XML mode, to the byte.

Each case is a conversation, options of the request and of the formatter; the answer is the whole BuildResult.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, NamedTuple

import pytest

from membrane_lite.errors import MembraneError
from membrane_lite.formatters.anthropic_xml import AnthropicXmlFormatter
from membrane_lite.formatters.base import BuildOptions, BuildResult
from membrane_lite.formatters.xml_tags import NAMESPACE
from membrane_lite.formatters.xml_tools import tools_entry
from membrane_lite.values.content import (
    Audio,
    Block,
    Document,
    GeneratedImage,
    Image,
    RedactedThinking,
    Text,
    Thinking,
    ToolResultBlock,
    ToolUse,
    Video,
)
from membrane_lite.values.messages import Message
from membrane_lite.values.tools import Tool

Json = Any
SHORT, HOUR = {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}
CLI_COMMAND = "<cmd>cat untitled.txt</cmd>"
CLI_TEXT = (
    "The assistant is in CLI simulation mode, and responds to the user's CLI commands only with the output of the "
    "command."
)
CLOSER = "</function_calls>"
CALL = """\
<function_calls>
<invoke name="look">
<parameter name="place"><![CDATA[attic]]></parameter>
</invoke>
</function_calls>"""
RESULT = """\
<function_results>
<result>
<stdout>
dust
</stdout>
</result>
</function_results>"""
PNG_DATA = "iVBORw0KGgo="
PNG = Image({"type": "base64", "media_type": "image/png", "data": PNG_DATA})
PNG_BLOCK = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG_DATA}}
MISLABELLED = Image(
    {"type": "base64", "media_type": "image/jpeg", "data": PNG_DATA}, source_url="https://example.org/a.png"
)
SVG = Image({"type": "base64", "media_type": "image/svg+xml", "data": "PHN2Zz4="})
SVG_PLACEHOLDER = (
    '[system: an image that belongs here was NOT shown to you \u2014 its media type "image/svg+xml" is not accepted by '
    "the model API (only jpeg/png/gif/webp are). You are not seeing this image. If it matters, ask for it in a "
    "supported format.]"
)
ADDRESS = Image({"type": "url", "url": "https://example.org/a.png"})
PDF = Document({"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="})
AUDIO = Audio({"type": "base64", "media_type": "audio/wav", "data": "UklGRg=="})
VIDEO = Video({"type": "base64", "media_type": "video/mp4", "data": "AAAA"})
TOOLS = [Tool("look", "Looks.", {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]})]
ENTRY = """
<available_tools>
<tools>
<tool name="look">
<description>Looks.</description>
<parameters>
<parameter name="place" type="string" required="true">
</parameter>
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
A parameter value that contains markup can be written as CDATA directly after its opening tag, \
<![CDATA[like this]]>, and is then taken exactly as written; consecutive sections join, so a literal ]]> is \
written ]]]]><![CDATA[>."""


def said(participant: str, *blocks: Block | str, marked: bool = False) -> Message:
    content = [Text(block) if isinstance(block, str) else block for block in blocks]
    return Message(participant, content, cache_breakpoint=marked)


def call(**more: Any) -> ToolUse:
    return ToolUse("c1", "look", {"place": "attic"}, **more)


def result(content: Any = "dust", **more: Any) -> ToolResultBlock:
    return ToolResultBlock("c1", content, **more)


HI = said("Ann", "hi")
DIALOGUE = [HI, said("Claude", "yo"), said("Ann", "q"), said("Claude", "")]


class Given(NamedTuple):
    messages: list[Message]
    options: dict[str, Any] = {}
    settings: dict[str, Any] = {}

    def build(self, **options: Any) -> BuildResult:
        formatter = AnthropicXmlFormatter(tool_mode="xml", **self.settings)
        return formatter.build_messages(self.messages, BuildOptions(**self.options, **options))


def user(content: Json) -> Json:
    return {"role": "user", "content": content}


def model(content: Json) -> Json:
    return {"role": "assistant", "content": content}


def block(text: str, cache_control: Json = None) -> Json:
    return {"type": "text", "text": text, **({} if cache_control is None else {"cache_control": cache_control})}


def sent(*messages: Json, system: Json = None, stops: tuple[str, ...] = ("\nAnn:", CLOSER), markers: int = 0) -> Any:
    """The BuildResult of these provider messages; the last one is the prefill."""
    return BuildResult(
        messages=list(messages),
        system_content=system,
        stop_sequences=list(stops),
        assistant_prefill=messages[-1]["content"],
        cache_markers_applied=markers,
    )


def without_system(*messages: Json, marked: Json = None, **more: Any) -> Any:
    """The same behind the scaffold that a conversation without a system text gets."""
    return sent(user(CLI_COMMAND), *messages, system=[block(CLI_TEXT, marked)], **more)


def started(*messages: Json, marked: Json = None, **more: Any) -> Any:
    """The same with the system text "S"."""
    return sent(user("[Start]"), *messages, system=[block("S", marked)], **more)


S = {"system_prompt": "S"}
CACHED = {"prompt_caching": True}
Cases = dict[str, tuple[Given, BuildResult]]

SPEAKERS: Cases = {
    "one message and no system": (Given([HI]), without_system(model("Ann: hi\nClaude:"))),
    "no message": (Given([]), without_system(model("Claude:"), stops=(CLOSER,))),
    "a dialogue and a system": (Given(DIALOGUE, S), started(model("Ann: hi\nClaude: yo\nAnn: q\nClaude:"))),
    "a system that says nothing": (Given([HI], {"system_prompt": ""}), without_system(model("Ann: hi\nClaude:"))),
    "a system of blocks that say nothing": (
        Given([HI], {"system_prompt": [Text(""), Text("")]}),
        without_system(model("Ann: hi\nClaude:")),
    ),
    "a system of blocks": (
        Given([HI], {"system_prompt": [Text("S"), Text("T")]}),
        sent(user("[Start]"), model("Ann: hi\nClaude:"), system=[block("S"), block("T")]),
    ),
    "many participants": (
        Given([HI, said("Bob", "ho"), said("Claude", "yo"), said("Ann", "q")], S),
        started(
            model("Ann: hi\nBob: ho\nClaude: yo\nAnn: q\nClaude:"),
            stops=("\nAnn:", "\nBob:", CLOSER),
        ),
    ),
    "another assistant": (
        Given([HI, said("Eve", "yo"), said("Claude", "q")], {**S, "assistant_participant": "Eve"}),
        started(model("Ann: hi\nEve: yo\nClaude: q\nEve:"), stops=("\nClaude:", "\nAnn:", CLOSER)),
    ),
    "names are taken as they are": (
        Given([said("{name} $& %s", "$$ {name} %d")], S),
        started(model("{name} $& %s: $$ {name} %d\nClaude:"), stops=("\n{name} $& %s:", CLOSER)),
    ),
    "the model thinks first": (
        Given(DIALOGUE, {**S, "thinking": True}),
        started(model("Ann: hi\nClaude: yo\nAnn: q\nClaude: <thinking>")),
    ),
    "the user's words before it": (
        Given([HI], {"prefill_user_message": "Go on."}),
        sent(user("Go on."), model("Ann: hi\nClaude:")),
    ),
    "the user's words before it, and a system": (
        Given([HI], {**S, "prefill_user_message": "Go on."}),
        sent(user("Go on."), model("Ann: hi\nClaude:"), system=[block("S")]),
    ),
    "no words are none": (Given([HI], {"prefill_user_message": ""}), without_system(model("Ann: hi\nClaude:"))),
    "a context prefix": (
        Given([HI], {**S, "context_prefix": "Once."}),
        started(model([block("Once.")]), model("Ann: hi\nClaude:")),
    ),
    "a context prefix and no system": (
        Given([HI], {"context_prefix": "Once.", "prefill_user_message": ""}),
        without_system(model([block("Once.")]), model("Ann: hi\nClaude:")),
    ),
}

TURNS: Cases = {
    "the assistant said something last": (
        Given([HI, said("Claude", "part")], S),
        started(model("Ann: hi\nClaude: part\nClaude:")),
    ),
    "twice at the end: the second is to be written": (
        Given([HI, said("Claude", "one"), said("Claude", "two", marked=True)], {**S, **CACHED}),
        started(model("Ann: hi\nClaude: one\nClaude:"), marked=SHORT, markers=1),
    ),
    "twice before the end": (
        Given([said("Claude", "one"), said("Claude", "two"), HI], S),
        started(model("Claude: one\nClaude: two\nAnn: hi\nClaude:")),
    ),
    "another's empty turn at the end": (
        Given([HI, said("Bob", "")], S),
        started(model("Ann: hi\nClaude:"), stops=("\nBob:", "\nAnn:", CLOSER)),
    ),
    "a blank message in the middle": (
        Given([HI, said("Bob", " \n\ufeff\u3000"), said("Bob"), said("Ann", "q")], S),
        started(model("Ann: hi\nAnn: q\nClaude:"), stops=("\nAnn:", "\nBob:", CLOSER)),
    ),
    "what only Python takes for blank": (
        Given([said("Bob", "\x1c\x85"), HI], S),
        started(model("Bob: \x1c\x85\nAnn: hi\nClaude:"), stops=("\nAnn:", "\nBob:", CLOSER)),
    ),
    "texts of a message are lines, not trimmed": (
        Given([said("Ann", " a ", "", "b\n")], S),
        started(model("Ann:  a \n\nb\n\nClaude:")),
    ),
    "thinking and what the model made are not sent": (
        Given([HI, said("Claude", Thinking("t", "s"), RedactedThinking("d"), GeneratedImage("QQ=="), "yo"), HI], S),
        started(model("Ann: hi\nClaude: yo\nAnn: hi\nClaude:")),
    ),
    "nothing but thinking": (
        Given([HI, said("Claude", Thinking("t", "s")), HI], S),
        started(model("Ann: hi\nAnn: hi\nClaude:")),
    ),
    "what carries a provider's item says nothing": (
        Given([said("Ann", Text("", raw_item={"type": "x"}), "hi", Text("", raw_item={"type": "x"}))], S),
        started(model("Ann: hi\nClaude:")),
    ),
    "a delimiter takes the place of line breaks": (
        Given([HI, said("Bob", "yo")], S, {"message_delimiter": "</s>"}),
        started(model("Ann: hi</s>Bob: yo</s>Claude:"), stops=("\nBob:", "\nAnn:", CLOSER)),
    ),
    "a delimiter, and thinking": (
        Given([HI], {**S, "thinking": True}, {"message_delimiter": "\n\n"}),
        started(model("Ann: hi\n\nClaude: <thinking>")),
    ),
}

MANY = [said(f"P{number}", "hi") for number in range(12)]
ALL_SAID = "".join(f"P{number}: hi\n" for number in range(12))
STOPS: Cases = {
    "the latest ten of twelve": (
        Given(MANY, S),
        started(model(f"{ALL_SAID}Claude:"), stops=(*(f"\nP{number}:" for number in range(11, 1, -1)), CLOSER)),
    ),
    "as many as the formatter says": (
        Given(MANY, S, {"max_participants_for_stop": 1}),
        started(model(f"{ALL_SAID}Claude:"), stops=("\nP11:", CLOSER)),
    ),
    "the request says more": (
        Given(MANY, {**S, "max_participants_for_stop": 2}, {"max_participants_for_stop": 1}),
        started(model(f"{ALL_SAID}Claude:"), stops=("\nP11:", "\nP10:", CLOSER)),
    ),
    "nobody, and the caller's own": (
        Given([HI], {**S, "max_participants_for_stop": 0, "additional_stop_sequences": ["END", "</s>"]}),
        started(model("Ann: hi\nClaude:"), stops=(CLOSER, "END", "</s>")),
    ),
    "each once, in the order of their last turns": (
        Given([HI, said("Bob", "a"), said("Claude", "yo"), said("Cy", ""), HI], S),
        started(
            model("Ann: hi\nBob: a\nClaude: yo\nAnn: hi\nClaude:"),
            stops=("\nAnn:", "\nCy:", "\nBob:", CLOSER),
        ),
    ),
}

TWELVE = [said("Ann", f"m{number}") for number in range(12)]


def numbered(start: int, stop: int) -> str:
    return "\n".join(f"Ann: m{number}" for number in range(start, stop))


TOLD: Cases = {
    "ten messages before the end": (
        Given(TWELVE, {**S, "tools": TOOLS}),
        started(model(f"{numbered(0, 2)}\n{ENTRY}\n{numbered(2, 12)}\nClaude:")),
    ),
    "further from the end than the beginning is": (
        Given(TWELVE, {**S, "tools": TOOLS}, {"tool_injection_position": 20}),
        started(model(f"{ENTRY}\n{numbered(0, 12)}\nClaude:")),
    ),
    "exactly as far": (
        Given(TWELVE, {**S, "tools": TOOLS}, {"tool_injection_position": 12}),
        started(model(f"{ENTRY}\n{numbered(0, 12)}\nClaude:")),
    ),
    "at the end": (
        Given([HI], {**S, "tools": TOOLS}, {"tool_injection_position": 0}),
        started(model(f"Ann: hi\n{ENTRY}\nClaude:")),
    ),
    "before the last": (
        Given(TWELVE, {**S, "tools": TOOLS}, {"tool_injection_position": 1}),
        started(model(f"{numbered(0, 11)}\n{ENTRY}\n{numbered(11, 12)}\nClaude:")),
    ),
    "before a last turn that is empty": (
        Given(DIALOGUE, {**S, "tools": TOOLS}, {"tool_injection_position": 1}),
        started(model(f"Ann: hi\nClaude: yo\nAnn: q\n{ENTRY}\nClaude:")),
    ),
    "where a message is skipped, before the next": (
        Given([HI, said("Ann", ""), said("Ann", "q")], {**S, "tools": TOOLS}, {"tool_injection_position": 2}),
        started(model(f"Ann: hi\n{ENTRY}\nAnn: q\nClaude:")),
    ),
    "where the first message is skipped, at the end": (
        Given([said("Ann", ""), HI], {**S, "tools": TOOLS}),
        started(model(f"Ann: hi\n{ENTRY}\nClaude:")),
    ),
    "to nobody yet": (Given([], {"tools": TOOLS}), without_system(model(f"{ENTRY}\nClaude:"), stops=(CLOSER,))),
    "before the model thinks": (
        Given([HI], {**S, "tools": TOOLS, "thinking": True}),
        started(model(f"{ENTRY}\nAnn: hi\nClaude: <thinking>")),
    ),
    "before a message of images, not at all": (
        Given([said("Ann", "a"), said("Ann", PNG), HI], {**S, "tools": TOOLS}, {"tool_injection_position": 2}),
        started(
            model("Ann: a"),
            user([PNG_BLOCK]),
            model(f"{ENTRY}\nAnn: hi\nClaude:"),
        ),
    ),
    "before nothing but images, at the end": (
        Given([said("Ann", "a", PNG)], {**S, "tools": TOOLS}),
        sent(user([block("Ann: a"), PNG_BLOCK]), model(f"{ENTRY}\nClaude:"), system=[block("S")]),
    ),
    "with a delimiter, which is not theirs": (
        Given(
            [HI, said("Ann", "q")], {**S, "tools": TOOLS}, {"message_delimiter": "</s>", "tool_injection_position": 1}
        ),
        started(model(f"Ann: hi</s>{ENTRY}Ann: q</s>Claude:")),
    ),
    "in the system text": (
        Given([HI], {**S, "tools": TOOLS}, {"tool_injection_mode": "system"}),
        sent(user("[Start]"), model("Ann: hi\nClaude:"), system=[block(f"S\n\n{ENTRY}\n")]),
    ),
    "in a system text of their own": (
        Given([HI], {"tools": TOOLS}, {"tool_injection_mode": "system"}),
        sent(user("[Start]"), model("Ann: hi\nClaude:"), system=[block(f"\n\n{ENTRY}\n")]),
    ),
    "in the last block of a system, whose marker stays": (
        Given(
            [HI],
            {"system_prompt": [Text("S"), Text("T", cache_control=HOUR)], "tools": TOOLS, **CACHED},
            {"tool_injection_mode": "system"},
        ),
        sent(
            user("[Start]"),
            model("Ann: hi\nClaude:"),
            system=[block("S"), block(f"T\n\n{ENTRY}\n", HOUR)],
            markers=1,
        ),
    ),
    "not at all, being none": (Given([HI], {**S, "tools": []}), started(model("Ann: hi\nClaude:"))),
}

RAW = f'<{NAMESPACE}function_calls>\n\t<{NAMESPACE}invoke name="look" ><parameter name="n"> 12345678901234567890 '
ROUNDS: Cases = {
    "a round: its results are nobody's, and the turn goes on": (
        Given([HI, said("Claude", call()), said("Ann", result()), said("Claude", "done")], S),
        started(model(f"Ann: hi\nClaude: {CALL}\n{RESULT}\ndone\nClaude:")),
    ),
    "and ends where another speaks": (
        Given([HI, said("Claude", "so", call()), said("User", result()), said("Claude", "done"), said("Ann", "q")], S),
        started(
            model(f"Ann: hi\nClaude: so\n{CALL}\n{RESULT}\ndone\nAnn: q\nClaude:"),
            stops=("\nAnn:", "\nUser:", CLOSER),
        ),
    ),
    "another speaks right after the results": (
        Given([HI, said("Claude", call()), said("Ann", result()), said("Ann", "q"), said("Claude", "yo"), HI], S),
        started(model(f"Ann: hi\nClaude: {CALL}\n{RESULT}\nAnn: q\nClaude: yo\nAnn: hi\nClaude:")),
    ),
    "two rounds": (
        Given([HI, *[said("Claude", call()), said("Ann", result())] * 2, said("Claude", "done"), HI], S),
        started(model(f"Ann: hi\nClaude: {CALL}\n{RESULT}\n{CALL}\n{RESULT}\ndone\nAnn: hi\nClaude:")),
    ),
    "results last": (
        Given([HI, said("Claude", call()), said("Ann", result())], {**S, "thinking": True}),
        started(model(f"Ann: hi\nClaude: {CALL}\n{RESULT}\nClaude: <thinking>")),
    ),
    "an empty turn after the results": (
        Given([HI, said("Claude", call()), said("Ann", result()), said("Claude", "")], S),
        started(model(f"Ann: hi\nClaude: {CALL}\n{RESULT}\nClaude:")),
    ),
    "a skipped message does not come between": (
        Given([HI, said("Claude", call()), said("Ann", result()), said("Ann", " "), said("Claude", "done")], S),
        started(model(f"Ann: hi\nClaude: {CALL}\n{RESULT}\ndone\nClaude:")),
    ),
    "images do": (
        Given([HI, said("Claude", call()), said("Ann", result()), said("Ann", PNG), said("Claude", "done"), HI], S),
        started(
            model(f"Ann: hi\nClaude: {CALL}\n{RESULT}"),
            user([PNG_BLOCK]),
            model("Claude: done\nAnn: hi\nClaude:"),
        ),
    ),
    "results among words are somebody's": (
        Given([HI, said("Claude", call()), said("Ann", result(), "there"), said("Claude", "done"), HI], S),
        started(model(f"Ann: hi\nClaude: {CALL}\nAnn: {RESULT}\nthere\nClaude: done\nAnn: hi\nClaude:")),
    ),
    "results that the assistant holds do not make it the last speaker": (
        Given([HI, said("Claude", "a", result()), said("Claude", "kept")], S),
        started(model(f"Ann: hi\nClaude: a\n{RESULT}\nClaude: kept\nClaude:")),
    ),
    "nor do those that it holds alone, and its text goes on with them": (
        Given([HI, said("Claude", result()), said("Claude", "kept")], S),
        started(model(f"Ann: hi\n{RESULT}\nkept\nClaude:")),
    ),
    "a call and its result in one message": (
        Given([HI, said("Claude", "so", call(), result(), "done")], S),
        started(model(f"Ann: hi\nClaude: so\n{CALL}\n{RESULT}\ndone\nClaude:")),
    ),
    "a last message that holds a result is sent, whoever spoke before": (
        Given([HI, said("Claude", "one"), said("Claude", "two", result())], S),
        started(model(f"Ann: hi\nClaude: one\nClaude: two\n{RESULT}\nClaude:")),
    ),
    "calls side by side share a block": (
        Given([HI, said("Claude", call(), call(), "and", call()), HI], S),
        started(
            model(f"Ann: hi\nClaude: {CALL[: -len(CLOSER)]}{CALL.partition(chr(10))[2]}\nand\n{CALL}\nAnn: hi\nClaude:")
        ),
    ),
    "what was read goes back as it was, once": (
        Given(
            [
                HI,
                said("Claude", call(raw_xml=RAW), call(raw_xml=RAW)),
                said("Ann", result(raw_xml="R"), result(raw_xml="R")),
                said("Claude", "done"),
            ],
            S,
        ),
        started(model(f"Ann: hi\nClaude: {RAW}\nR\ndone\nClaude:")),
    ),
    "an error, and an image of which only a note goes back": (
        Given([HI, said("Claude", call()), said("Ann", result([Text("dark"), PNG], is_error=True))], S),
        started(
            model(
                f"Ann: hi\nClaude: {CALL}\n<function_results>\n<error>\ndark\n[Image: image/png, ~0KB]\n</error>\n"
                "</function_results>\nClaude:"
            )
        ),
    ),
    "with a delimiter": (
        Given(
            [HI, said("Claude", call()), said("Ann", result()), said("Claude", "done")], S, {"message_delimiter": "|"}
        ),
        started(model(f"Ann: hi|Claude: {CALL}|{RESULT}|done|Claude:")),
    ),
}

IMAGES: Cases = {
    "an image comes first: no scaffold": (
        Given([said("Ann", PNG), said("Ann", "what is it?")]),
        sent(user([PNG_BLOCK]), model("Ann: what is it?\nClaude:")),
    ),
    "an image interrupts the transcript": (
        Given([HI, said("Bob", "see", PNG, "this"), said("Ann", "q")], S),
        started(
            model("Ann: hi"),
            user([block("Bob: see\nthis"), PNG_BLOCK]),
            model("Ann: q\nClaude:"),
            stops=("\nAnn:", "\nBob:", CLOSER),
        ),
    ),
    "an image comes last": (
        Given([said("Ann", "look:", PNG)], {**S, "thinking": True}),
        sent(user([block("Ann: look:"), PNG_BLOCK]), model("Claude: <thinking>"), system=[block("S")]),
    ),
    "several, by the type their bytes show": (
        Given([said("Ann", MISLABELLED, "two", PNG)]),
        sent(user([block("Ann: two"), PNG_BLOCK, PNG_BLOCK]), model("Claude:")),
    ),
    "with blank text, which is text": (
        Given([said("Ann", "", PNG), said("Ann", " ", PNG)]),
        sent(user([PNG_BLOCK]), user([block("Ann:  "), PNG_BLOCK]), model("Claude:")),
    ),
    "the assistant's own": (
        Given([HI, said("Claude", "here", PNG), said("Claude", "dropped")], S),
        started(model("Ann: hi"), user([block("Claude: here"), PNG_BLOCK]), model("Claude:")),
    ),
    "no delimiter behind it": (
        Given([HI, said("Ann", "a", PNG), said("Ann", "q")], S, {"message_delimiter": "|"}),
        started(model("Ann: hi|"), user([block("Ann: a"), PNG_BLOCK]), model("Ann: q|Claude:")),
    ),
    "its breakpoint is ignored": (
        Given([HI, said("Ann", "a", PNG, marked=True)], {**S, **CACHED}),
        started(model("Ann: hi"), user([block("Ann: a"), PNG_BLOCK]), model("Claude:"), marked=SHORT, markers=1),
    ),
    "behind a context prefix": (
        Given([said("Ann", PNG)], {**S, "context_prefix": "Once."}),
        started(model([block("Once.")]), user([PNG_BLOCK]), model("Claude:")),
    ),
    "what no provider takes is text": (
        Given([said("Ann", "a", SVG)], S),
        started(model(f"Ann: a\n{SVG_PLACEHOLDER}\nClaude:")),
    ),
    "an address says nothing": (
        Given([said("Ann", ADDRESS), said("Ann", "a", ADDRESS)], S),
        started(model("Ann: a\nClaude:")),
    ),
    "documents, audio and video are left out, if so asked": (
        Given(
            [said("Ann", PDF, "a", AUDIO), said("Bob", VIDEO), said("Ann", PNG, PDF)], S, {"unsupported_media": "strip"}
        ),
        started(model("Ann: a"), user([PNG_BLOCK]), model("Claude:"), stops=("\nAnn:", "\nBob:", CLOSER)),
    ),
}

MARKED = said("Ann", "a", marked=True)
CACHING: Cases = {
    "nothing asked: the system is marked": (
        Given([HI], {**S, **CACHED}),
        started(model("Ann: hi\nClaude:"), marked=SHORT, markers=1),
    ),
    "for an hour": (
        Given([HI], {**S, **CACHED, "cache_ttl": "1h"}),
        started(model("Ann: hi\nClaude:"), marked=HOUR, markers=1),
    ),
    "no system: what stands in its place is marked": (
        Given([HI], CACHED),
        without_system(model("Ann: hi\nClaude:"), marked=SHORT, markers=1),
    ),
    "no system, and nothing in its place": (
        Given([HI], {**CACHED, "prefill_user_message": "Go on."}),
        sent(user("Go on."), model("Ann: hi\nClaude:")),
    ),
    "a breakpoint": (
        Given([HI, MARKED, said("Ann", "q")], {**S, **CACHED}),
        started(model([block("Ann: hi\nAnn: a", SHORT)]), model("Ann: q\nClaude:"), marked=SHORT, markers=2),
    ),
    "a breakpoint without a system": (
        Given([MARKED, said("Ann", "q")], {**CACHED, "cache_ttl": "1h"}),
        without_system(model([block("Ann: a", HOUR)]), model("Ann: q\nClaude:"), marked=HOUR, markers=2),
    ),
    "a breakpoint on the last message": (
        Given([HI, MARKED], {**S, **CACHED}),
        started(model([block("Ann: hi\nAnn: a", SHORT)]), model("Claude:"), marked=SHORT, markers=2),
    ),
    "a breakpoint on a last turn that is empty": (
        Given([HI, said("Claude", "", marked=True)], {**S, **CACHED}),
        started(model([block("Ann: hi", SHORT)]), model("Claude:"), marked=SHORT, markers=2),
    ),
    "a breakpoint on a message that is skipped": (
        Given([HI, said("Bob", "", marked=True), said("Ann", "q")], {**S, **CACHED}),
        started(model("Ann: hi\nAnn: q\nClaude:"), marked=SHORT, markers=1, stops=("\nAnn:", "\nBob:", CLOSER)),
    ),
    "a breakpoint at the tools": (
        Given([MARKED, HI], {**S, **CACHED, "tools": TOOLS}),
        started(model([block(f"{ENTRY}\nAnn: a", SHORT)]), model("Ann: hi\nClaude:"), marked=SHORT, markers=2),
    ),
    "a breakpoint with a delimiter": (
        Given([MARKED, HI], {**S, **CACHED}, {"message_delimiter": "|"}),
        started(model([block("Ann: a|", SHORT)]), model("Ann: hi|Claude:"), marked=SHORT, markers=2),
    ),
    "breakpoints without caching": (
        Given([MARKED, HI], {**S, "context_prefix": "Once."}),
        started(model([block("Once.")]), model("Ann: a\nAnn: hi\nClaude:")),
    ),
    "a context prefix": (
        Given([HI], {**S, **CACHED, "context_prefix": "Once.", "cache_ttl": "1h"}),
        started(model([block("Once.", HOUR)]), model("Ann: hi\nClaude:"), marked=HOUR, markers=2),
    ),
    "a system of blocks: its last is marked": (
        Given([HI], {"system_prompt": [Text("S"), Text("T")], **CACHED}),
        sent(user("[Start]"), model("Ann: hi\nClaude:"), system=[block("S"), block("T", SHORT)], markers=1),
    ),
    "a system of blocks that the caller marked": (
        Given([HI], {"system_prompt": [Text("S", cache_control=HOUR), Text("T")], **CACHED}),
        sent(user("[Start]"), model("Ann: hi\nClaude:"), system=[block("S", HOUR), block("T")], markers=1),
    ),
    "without caching the caller's are taken away": (
        Given([HI], {"system_prompt": [Text("S", cache_control=HOUR)]}),
        started(model("Ann: hi\nClaude:")),
    ),
    "four of six are kept, the deepest": (
        Given([MARKED] * 4, {**S, **CACHED, "context_prefix": "Once."}),
        started(
            model([block("Once.")]),
            *[model([block("Ann: a", SHORT)])] * 4,
            model("Claude:"),
            markers=4,
        ),
    ),
    "a function marks what stands before a message": (
        Given([HI, said("Ann", "q")], {**S, **CACHED, "has_cache_marker": lambda message, index: index == 1}),
        started(model([block("Ann: hi", SHORT)]), model("Ann: q\nClaude:"), marked=SHORT, markers=2),
    ),
    "before the first there is nothing": (
        Given([HI], {**S, **CACHED, "has_cache_marker": lambda message, index: index == 0}),
        started(model("Ann: hi\nClaude:"), marked=SHORT, markers=1),
    ),
    "without caching it cuts, and marks nothing": (
        Given([HI, said("Ann", "q")], {**S, "has_cache_marker": lambda message, index: message.content[0].text == "q"}),
        started(model("Ann: hi"), model("Ann: q\nClaude:")),
    ),
}

ALL: Cases = {
    f"{table}: {name}": case
    for table, cases in {
        "speakers": SPEAKERS,
        "turns": TURNS,
        "stops": STOPS,
        "tools told": TOLD,
        "tool rounds": ROUNDS,
        "images": IMAGES,
        "caching": CACHING,
    }.items()
    for name, case in cases.items()
}


@pytest.mark.parametrize("given, expected", ALL.values(), ids=ALL.keys())
def test_a_transcript(given: Given, expected: BuildResult) -> None:
    assert given.build() == expected


def test_what_was_given_stays_as_it_was() -> None:
    for given, _ in ALL.values():
        before = deepcopy(given)
        given.build()
        assert given == before


def test_what_is_built_shares_nothing_with_what_was_given() -> None:
    system = [Text("S", cache_control=dict(HOUR))]
    built = Given([said("Ann", PNG)], {"system_prompt": system, **CACHED}).build()
    assert isinstance(built.system_content, list)
    built.system_content[0]["cache_control"]["ttl"] = "5m"
    built.messages[0]["content"][0]["source"]["data"] = ""
    assert (system[0].cache_control, PNG.source["data"]) == (HOUR, PNG_DATA)


def test_the_entry_above_is_that_of_the_tools() -> None:
    assert tools_entry(TOOLS) == ENTRY


# Warnings and refusals

SIX = Given([MARKED] * 5, {**S, **CACHED})
WARNINGS: dict[str, tuple[Given, list[str]]] = {
    "what is left out, once per message": (
        Given([said("Ann", PDF, PDF, AUDIO), said("Bob", VIDEO)], {}, {"unsupported_media": "strip"}),
        ["document, audio left out of the message of Ann", "video left out of the message of Bob"],
    ),
    "or not at all": (Given([said("Ann", PDF)], {}, {"unsupported_media": "strip", "warn_on_strip": False}), []),
    "an image that no provider takes": (
        Given([said("Ann", SVG)]),
        ['image block stripped: unsupported media type "image/svg+xml"'],
    ),
    "images by their addresses, once": (
        Given([said("Ann", ADDRESS, ADDRESS), said("Bob", ADDRESS)]),
        ["images given by URL are left out: a transcript takes them as base64 only"],
    ),
    "too many markers": (
        SIX,
        [
            "2 cache markers were left out: a request carries at most four, the deepest, and none on thinking or blank "
            "text"
        ],
    ),
    "markers that nobody wanted": (Given([HI], {"system_prompt": [Text("S", cache_control=HOUR)]}), []),
}


@pytest.mark.parametrize("given, warnings", WARNINGS.values(), ids=WARNINGS.keys())
def test_a_warning(given: Given, warnings: list[str]) -> None:
    heard: list[str] = []
    warned = given.build(warn=lambda message, *args: heard.append(message % args))
    assert heard == warnings
    assert given.build() == warned


REFUSED: dict[str, tuple[Given, str]] = {
    "a document": (
        Given([HI, said("Ann", "a", PDF)]),
        "messages[1] of 'Ann': found document, which no transcript holds; leave it out, or let "
        "AnthropicXmlFormatter(unsupported_media='strip') do so",
    ),
    "whatever stands beside an image": (
        Given([said("Bob", PNG, VIDEO, AUDIO)]),
        "messages[0] of 'Bob': found video, audio, which no transcript holds; leave it out, or let "
        "AnthropicXmlFormatter(unsupported_media='strip') do so",
    ),
}


@pytest.mark.parametrize("given, message", REFUSED.values(), ids=REFUSED.keys())
def test_a_refusal(given: Given, message: str) -> None:
    with pytest.raises(MembraneError) as failure:
        given.build()
    assert (failure.value.type, str(failure.value)) == ("unsupported", message)


@pytest.mark.parametrize("mode", ["conversation", "system"])
def test_tools_of_one_name_are_refused(mode: str) -> None:
    given = Given([HI], {"tools": [Tool("a"), Tool("b"), Tool("a")]}, {"tool_injection_mode": mode})
    with pytest.raises(MembraneError) as failure:
        given.build()
    words = "tools[2].name: found 'a', which is the name of tools[0] too; names must differ"
    assert (failure.value.type, str(failure.value)) == ("invalid_request", words)


def test_names_that_only_a_provider_would_take_for_one_are_two() -> None:
    told = Given([HI], {"tools": [Tool("a:b"), Tool("a__b")]}).build().messages[-1]["content"]
    assert told.count('<tool name="a') == 2
