"""system_changes: what is sent of a system change, where in the conversation, and who refuses it before anything is."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from membrane_lite import (
    AnthropicAdapter,
    BedrockAdapter,
    CompletionsFormatter,
    GeminiAdapter,
    Membrane,
    MembraneError,
    Message,
    MockAdapter,
    NativeFormatter,
    OpenAIAdapter,
    OpenAICompatibleAdapter,
    OpenAICompletionsAdapter,
    OpenAIImagesAdapter,
    OpenAIResponsesAPIAdapter,
    OpenAIResponsesFormatter,
    OpenRouterAdapter,
    SystemChange,
    Text,
    Tool,
    ToolResultBlock,
    ToolUse,
)
from membrane_lite.formatters import cache_markers
from membrane_lite.formatters.base import BuildOptions, BuildResult, BuildSettings
from membrane_lite.formatters.system_changes import next_slot, tools_left
from membrane_lite.loopback import Failure, LoopbackProvider, Reply, ToolCall
from membrane_lite.values.content import Block
from membrane_lite.values.events import is_complete_event, is_error_event, is_tool_calls_event
from membrane_lite.wire.http import header

Wire = list[dict[str, Any]]


def build(messages: list[Message], formatter: Any = None, **options: Any) -> BuildResult:
    built: BuildResult = (formatter or NativeFormatter()).build_messages(messages, BuildOptions(**options))
    return built


def said(participant: str, *blocks: Block | str) -> Message:
    return Message(participant, [Text(block) if isinstance(block, str) else block for block in blocks])


def ann(*blocks: Block | str) -> Message:
    return said("Ann", *blocks)


def claude(*blocks: Block | str) -> Message:
    return said("Claude", *blocks)


def told(*texts: str, **more: Any) -> Message:
    """A change of the system text."""
    return Message("System", [SystemChange(add_system=list(texts))], **more)


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def system(*blocks: dict[str, Any] | str) -> dict[str, Any]:
    return {"role": "system", "content": [text(block) if isinstance(block, str) else block for block in blocks]}


def removal(name: str) -> dict[str, Any]:
    return {"type": "tool_removal", "tool": {"type": "tool_reference", "name": name}}


def addition(name: str, description: str = "", **schema: Any) -> dict[str, Any]:
    definition = {
        "name": name,
        "description": description,
        "input_schema": schema or {"type": "object", "properties": {}},
    }
    return {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": definition}}


def refusal(act: Callable[[], Any]) -> tuple[str, bool, str]:
    with pytest.raises(MembraneError) as raised:
        act()
    return raised.value.type, raised.value.system_change_refused, raised.value.message


# Blocks

WRITTEN: dict[str, tuple[list[SystemChange], Wire]] = {
    "a removal": ([SystemChange(remove_tools=["look"])], [system(removal("look"))]),
    "a definition": (
        [SystemChange(define_tools=[Tool("look", "looks", {"type": "object"})])],
        [system(addition("look", "looks", type="object"))],
    ),
    "a text": ([SystemChange(add_system="Be brief.")], [system("Be brief.")]),
    "a text as it is, without a name": ([SystemChange(add_system=" a \n")], [system(" a \n")]),
    "several texts, blank ones left out": ([SystemChange(add_system=["a", " ", "", "b\n"])], [system("a", "b\n")]),
    "all of it, in this order": (
        [SystemChange(add_system="a", define_tools=[Tool("x"), Tool("y")], remove_tools=["p", "q"])],
        [system(removal("p"), removal("q"), addition("x"), addition("y"), "a")],
    ),
    "block after block": (
        [SystemChange(add_system="a"), SystemChange(remove_tools=["p"])],
        [system("a", removal("p"))],
    ),
    "names with a colon": (
        [SystemChange(remove_tools=["ns:p"], define_tools=[Tool("ns:x")])],
        [system(removal("ns__p"), addition("ns__x"))],
    ),
    "nothing": ([SystemChange()], []),
    "empty lists and blank texts": ([SystemChange([], [], [" ", "\n"]), SystemChange(add_system="")], []),
}


@pytest.mark.parametrize("blocks, wire", WRITTEN.values(), ids=WRITTEN.keys())
def test_what_is_sent_of_a_change(blocks: list[Block], wire: Wire) -> None:
    assert build([ann("hi"), Message("Ann", blocks)]).messages == [user(text("Ann: hi")), *wire]


def test_whose_message_it_is_says_nothing() -> None:
    for participant in ("Ann", "Claude", "Nobody"):
        changed = Message(participant, [SystemChange(add_system="a")])
        options = {"participant_mode": "simple", "human_participant": "Ann"}
        assert build([ann("hi"), changed], **options).messages == [user(text("hi")), system("a")]


def test_tools_and_system_stay_as_they_are() -> None:
    given: Any = {"tools": [Tool("ns:look"), Tool("find")], "system_prompt": "Be kind."}
    changed = [ann("hi"), Message("Ann", [SystemChange(["ns:look"], [Tool("find", "anew")], "a")])]
    plain, built = build([ann("hi")], **given), build(changed, **given)
    assert (built.native_tools, built.system_content) == (plain.native_tools, plain.system_content)
    assert built.messages == [user(text("Ann: hi")), system(removal("ns__look"), addition("find", "anew"), "a")]


# Places

ROLES = {"u": user(text("u")), "a": assistant(text("a")), "-": user(text(" ")), "_": assistant(text("\n"))}

SLOTS: dict[str, tuple[str, int, int | None]] = {
    "at the end, after a user": ("u", 1, 1),
    "never first": ("u", 0, 1),
    "between a user and an assistant": ("ua", 1, 1),
    "after an assistant, nothing following": ("ua", 2, None),
    "after an assistant, the next user's": ("uau", 2, 3),
    "the first one, not the last": ("uauau", 0, 1),
    "behind its place, not before it": ("uauau", 2, 3),
    "users that do not come together": ("uua", 1, 2),
    "nothing said": ("", 0, None),
    "an assistant alone": ("a", 0, None),
    "a blank user is none": ("ua-", 2, None),
    "a blank user, then another": ("ua-au", 2, 5),
    "blank words are no assistant": ("u_ua", 1, 3),
    "at the end, behind blank words": ("u_", 1, 1),
}


@pytest.mark.parametrize("roles, place, slot", SLOTS.values(), ids=SLOTS.keys())
def test_the_first_slot_from_a_place_on(roles: str, place: int, slot: int | None) -> None:
    assert next_slot([ROLES[role] for role in roles], place) == slot


CALL, RESULT = ToolUse("c1", "look", {}), ToolResultBlock("c1", "sun")
CALLED = {"type": "tool_use", "id": "c1", "name": "look", "input": {}}
ANSWERED = {"type": "tool_result", "tool_use_id": "c1", "content": "sun"}
PENDING = {"type": "tool_result", "tool_use_id": "c1", "content": "[pending]", "is_error": False}

PLACED: dict[str, tuple[list[Message], Wire]] = {
    "at the end": ([ann("a"), told("x")], [user(text("Ann: a")), system("x")]),
    "before the answer": (
        [ann("a"), told("x"), claude("b"), ann("c")],
        [user(text("Ann: a")), system("x"), assistant(text("b")), user(text("Ann: c"))],
    ),
    "first of all": ([told("x"), ann("a")], [user(text("Ann: a")), system("x")]),
    "after an answer": (
        [ann("a"), claude("b"), told("x"), ann("c")],
        [user(text("Ann: a")), assistant(text("b")), user(text("Ann: c")), system("x")],
    ),
    "between two users, who stay one turn": (
        [ann("a"), told("x"), said("Bob", "b"), claude("c")],
        [user(text("Ann: a"), text("Bob: b")), system("x"), assistant(text("c"))],
    ),
    "between two answers, who stay one turn": (
        [ann("a"), claude("b"), told("x"), claude("c"), ann("d")],
        [user(text("Ann: a")), assistant(text("b"), text("c")), user(text("Ann: d")), system("x")],
    ),
    "several at one slot, in their order": (
        [told("x"), ann("a"), told("y"), ann("b"), told("z"), claude("c")],
        [user(text("Ann: a"), text("Ann: b")), system("x", "y", "z"), assistant(text("c"))],
    ),
    "several at several slots": (
        [ann("a"), told("x"), claude("b"), told("y"), ann("c"), claude("d")],
        [
            user(text("Ann: a")),
            system("x"),
            assistant(text("b")),
            user(text("Ann: c")),
            system("y"),
            assistant(text("d")),
        ],
    ),
    "before a prefill": (
        [ann("a"), told("x"), claude("1.")],
        [user(text("Ann: a")), system("x"), assistant(text("1."))],
    ),
    "between a call and its result": (
        [ann("a"), claude(CALL), told("x"), ann(RESULT), claude("b")],
        [user(text("Ann: a")), assistant(CALLED), user(ANSWERED), system("x"), assistant(text("b"))],
    ),
    "after a result": (
        [ann("a"), claude(CALL), ann(RESULT), told("x")],
        [user(text("Ann: a")), assistant(CALLED), user(ANSWERED), system("x")],
    ),
    "between a result and a text": (
        [ann("a"), claude(CALL), ann(RESULT), told("x"), ann("b")],
        [user(text("Ann: a")), assistant(CALLED), user(ANSWERED, text("Ann: b")), system("x")],
    ),
    "after a call that nobody answered": (
        [ann("a"), claude(CALL), told("x")],
        [user(text("Ann: a")), assistant(CALLED), user(PENDING), system("x")],
    ),
    "behind what it stood behind, though the result moved away": (
        [ann("a"), claude(CALL), ann("b"), claude("c"), ann(RESULT), told("x"), ann("d")],
        [
            user(text("Ann: a")),
            assistant(CALLED),
            user(ANSWERED, text("Ann: b")),
            assistant(text("c")),
            user(text("Ann: d")),
            system("x"),
        ],
    ),
    "where it stood, though the result before it moved on": (
        [ann("a"), ann(RESULT), told("x"), claude("b"), ann("c"), claude(CALL), ann("d")],
        [
            user(text("Ann: a")),
            system("x"),
            assistant(text("b")),
            user(text("Ann: c")),
            assistant(CALLED),
            user(ANSWERED, text("Ann: d")),
        ],
    ),
    "behind a result without a call": (
        [ann("a"), claude("b"), ann(RESULT), told("x"), claude("c"), ann("d")],
        [
            user(text("Ann: a")),
            assistant(text("b")),
            user(text("[orphan tool_result for c1]: sun")),
            system("x"),
            assistant(text("c")),
            user(text("Ann: d")),
        ],
    ),
    "before a conversation that the assistant begins": (
        [told("x"), claude("a"), ann("b")],
        [user(text("[continuing]")), system("x"), assistant(text("a")), user(text("Ann: b"))],
    ),
    "beside a message of nothing": ([ann("a"), ann(""), told("x")], [user(text("Ann: a")), system("x")]),
    "a change of nothing needs no slot": (
        [ann("a"), claude("b"), told(" ")],
        [user(text("Ann: a")), assistant(text("b"))],
    ),
}


@pytest.mark.parametrize("messages, wire", PLACED.values(), ids=PLACED.keys())
def test_where_a_change_is_sent(messages: list[Message], wire: Wire) -> None:
    assert build(messages).messages == wire


def test_behind_the_context_prefix() -> None:
    built = build([told("x"), ann("a")], context_prefix="Once.", prompt_caching=False)
    assert built.messages == [user(text("[continuing]")), assistant(text("Once.")), user(text("Ann: a")), system("x")]


NOWHERE: dict[str, tuple[list[Message], int]] = {
    "after the last answer": ([ann("a"), claude("b"), told("x")], 2),
    "a prefill before it": ([ann("a"), told("w"), claude("b"), told("x")], 3),
    "no other message": ([told("x")], 0),
    "only the assistant's": ([ann(""), claude("b"), told("x")], 2),
}


@pytest.mark.parametrize("messages, index", NOWHERE.values(), ids=NOWHERE.keys())
def test_a_change_without_a_slot(messages: list[Message], index: int) -> None:
    assert refusal(lambda: build(messages)) == (
        "invalid_request",
        True,
        f"messages[{index}]: a system change has to follow a user's message, and none stands at or behind its place; "
        "put it before the last user's message, or make the change in tools and system",
    )


MIXED = {
    "beside a text": [ann("hi"), ann("and", SystemChange(add_system="x"))],
    "in a tool's result": [ann("hi"), claude(CALL), ann(ToolResultBlock("c1", [SystemChange(add_system="x")]))],
}


@pytest.mark.parametrize("messages", MIXED.values(), ids=MIXED.keys())
def test_a_change_stands_in_a_message_of_its_own(messages: list[Message]) -> None:
    assert refusal(lambda: build(messages)) == (
        "invalid_request",
        False,
        "messages: found 'system_change'; expected it in a message that holds nothing else",
    )


# Names


def defines(*names: str) -> Message:
    return Message("Ann", [SystemChange(define_tools=[Tool(name) for name in names])])


def test_a_call_of_a_tool_that_a_change_defined_has_its_declared_name() -> None:
    built = build([ann("hi"), defines("ns:look")], tools=[Tool("a:b"), Tool("c")])
    assert built.tool_names == {"a__b": "a:b", "c": "c", "ns__look": "ns:look"}


def test_a_definition_takes_the_place_of_a_tool_of_the_same_name() -> None:
    built = build([ann("hi"), defines("ns:look"), ann("and"), defines("ns:look")], tools=[Tool("ns:look")])
    assert built.tool_names == {"ns__look": "ns:look"}


ALIKE: dict[str, tuple[list[Message], list[Tool], str]] = {
    "a tool and a definition": (
        [ann("hi"), defines("ns__look")],
        [Tool("ns:look")],
        "define_tools.name: 'ns__look' would be sent as 'ns__look', and so would 'ns:look' of tools[0]",
    ),
    "two definitions": (
        [ann("hi"), defines("ns__look"), defines("ns:look")],
        [],
        "define_tools.name: 'ns:look' would be sent as 'ns__look', and so would 'ns__look' of define_tools",
    ),
    "two tools of one name": (
        [ann("hi")],
        [Tool("look"), Tool("look")],
        "tools[1].name: 'look' would be sent as 'look', and so would 'look' of tools[0]",
    ),
}


@pytest.mark.parametrize("messages, tools, told", ALIKE.values(), ids=ALIKE.keys())
def test_names_that_would_be_sent_alike(messages: list[Message], tools: list[Tool], told: str) -> None:
    refused = refusal(lambda: build(messages, tools=tools))
    assert refused == ("invalid_request", False, f"{told}; names must differ")


LEFT: dict[str, tuple[list[SystemChange], list[Tool]]] = {
    "as they are": ([], [Tool("p"), Tool("q")]),
    "one fewer": ([SystemChange(remove_tools=["p"])], [Tool("q")]),
    "one more": ([SystemChange(define_tools=[Tool("r")])], [Tool("p"), Tool("q"), Tool("r")]),
    "one anew": ([SystemChange(define_tools=[Tool("p", "anew")])], [Tool("p", "anew"), Tool("q")]),
    "removed, then defined again": ([SystemChange(["p"], [Tool("p", "anew")])], [Tool("q"), Tool("p", "anew")]),
    "defined, then removed": ([SystemChange(define_tools=[Tool("r")]), SystemChange(["r", "p"])], [Tool("q")]),
    "one that never was": ([SystemChange(remove_tools=["r"])], [Tool("p"), Tool("q")]),
    "none": ([SystemChange(remove_tools=["p"]), SystemChange(remove_tools=["q"])], []),
}


@pytest.mark.parametrize("changes, left", LEFT.values(), ids=LEFT.keys())
def test_the_tools_that_changes_leave(changes: list[SystemChange], left: list[Tool]) -> None:
    messages = [ann("hi"), *(Message("Ann", [change]) for change in changes)]
    assert tools_left([Tool("p"), Tool("q")], messages) == left


# Cache markers

MARK = {"cache_control": {"type": "ephemeral"}}


def test_a_breakpoint_marks_the_last_block_of_the_change() -> None:
    changed = Message("Ann", [SystemChange(["p"], [Tool("x")])], cache_breakpoint=True)
    built = build([ann("hi"), changed], tools=[Tool("p")], system_prompt="Be kind.", prompt_caching=True)
    assert built.messages == [user(text("Ann: hi")), system(removal("p"), {**addition("x"), **MARK})]
    assert (built.system_content, built.native_tools) == ("Be kind.", build([], tools=[Tool("p")]).native_tools)
    assert built.cache_markers_applied == 1


def test_without_caching_there_is_none() -> None:
    changed = told("a", cache_breakpoint=True)
    assert build([ann("hi"), changed], prompt_caching=False).messages == [user(text("Ann: hi")), system("a")]


def test_the_four_deepest_are_kept_among_all() -> None:
    messages = [Message("Ann", [Text(str(number))], cache_breakpoint=True) for number in range(4)]
    built = build([*messages, told("x", cache_breakpoint=True)], prompt_caching=True)
    marked = [text(f"Ann: {number}", **MARK) for number in range(1, 4)]
    assert built.messages == [user(text("Ann: 0"), *marked), system(text("x", **MARK))]
    assert built.cache_markers_applied == 4


def test_a_marker_in_a_definition_counts_too() -> None:
    definition = {"name": "x", "input_schema": {}, **MARK}
    block = {"type": "tool_addition", "tool": {"type": "tool_definition", "definition": definition}}
    body = {"messages": [user(text("a")), system(block, {"type": "tool_removal", "tool": "odd"}, text("x", **MARK))]}
    assert cache_markers.count(body) == 2


# Refusals, before anything is sent

CHANGE = {"participant": "Ann", "content": [{"type": "system_change", "add_system": "Be brief."}]}
HI = {"participant": "Ann", "content": "hi"}
REQUEST: Any = {"messages": [HI, CHANGE], "config": {"model": "claude-opus-5", "max_tokens": 64}}


def complete(membrane: Membrane, request: Any, **options: Any) -> Any:
    return membrane.complete(request, **options)


def stream(membrane: Membrane, request: Any, **options: Any) -> Any:
    return membrane.stream(request, **options)


def stream_yielding(membrane: Membrane, request: Any, **options: Any) -> Any:
    with membrane.stream_yielding(request, **options) as events:
        last: Any = list(events)[-1]
    if is_error_event(last):
        raise last.error
    return last.response


FACES: dict[str, Callable[..., Any]] = {"complete": complete, "stream": stream, "stream_yielding": stream_yielding}
each_face = pytest.mark.parametrize("face", FACES.values(), ids=FACES.keys())


@pytest.fixture
def provider() -> Iterator[LoopbackProvider]:
    with LoopbackProvider([]) as provider:
        yield provider


def anthropic(url: str, **options: Any) -> AnthropicAdapter:
    return AnthropicAdapter(api_key="k", base_url=url, **options)


@contextmanager
def stage(*script: Any) -> Iterator[tuple[Membrane, LoopbackProvider]]:
    """A Membrane over Anthropic's format, and the provider it talks to."""
    with LoopbackProvider(script) as provider, provider.transport() as transport:
        yield Membrane(anthropic(provider.url, transport=transport)), provider


class OwnFormatter:
    """One of the caller's own that writes everything as the native one does."""

    name = "mine"
    supports_native_tools = True
    supports_xml_tools = False
    configured_tool_mode = None

    def conversation(self, request: Any, settings: BuildSettings) -> Any:
        return NativeFormatter().conversation(request, settings)


class Subclass(NativeFormatter):
    """Of the native one."""


FORMATTERS: dict[str, Any] = {
    "completions": CompletionsFormatter(),
    "openai-responses": OpenAIResponsesFormatter(),
    "mine": OwnFormatter(),
}


@each_face
@pytest.mark.parametrize("name", FORMATTERS)
def test_another_formatter_refuses_it(name: str, face: Callable[..., Any], provider: LoopbackProvider) -> None:
    with Membrane(anthropic(provider.url)) as membrane:
        assert refusal(lambda: face(membrane, REQUEST, formatter=FORMATTERS[name])) == (
            "unsupported",
            True,
            f"messages: the formatter '{name}' writes no system changes; pass formatter=NativeFormatter(), with "
            "AnthropicAdapter, or make the change in tools and system",
        )
    assert provider.request_count == 0


@pytest.mark.parametrize("name", FORMATTERS)
def test_so_does_its_rendering(name: str) -> None:
    told_of = refusal(lambda: anthropic("http://h").render(REQUEST, formatter=FORMATTERS[name]))
    assert told_of[:2] == ("unsupported", True)


@pytest.mark.parametrize("formatter", [CompletionsFormatter(), OpenAIResponsesFormatter()], ids=lambda of: of.name)
def test_so_does_what_it_builds_directly(formatter: Any) -> None:
    assert refusal(lambda: build([ann("hi"), told("x")], formatter))[:2] == ("unsupported", True)


class OwnAdapter:
    """One of the caller's own; it is never asked."""

    def complete(self, provider_request: Any, call: Any) -> Any:
        raise AssertionError("nothing was to be sent")

    stream = complete


ADAPTERS: dict[str, Callable[[str], Any]] = {
    "bedrock": lambda url: BedrockAdapter(api_key="k", base_url=url),
    "openai": lambda url: OpenAIAdapter(api_key="k", base_url=url),
    "openai-compatible": lambda url: OpenAICompatibleAdapter(base_url=url),
    "openai-completions": lambda url: OpenAICompletionsAdapter(base_url=url),
    "openrouter": lambda url: OpenRouterAdapter(api_key="k", base_url=url),
    "openai-responses-api": lambda url: OpenAIResponsesAPIAdapter(api_key="k", base_url=url),
    "openai-images": lambda url: OpenAIImagesAdapter(api_key="k", base_url=url),
    "gemini": lambda url: GeminiAdapter(api_key="k", base_url=url),
    "mock": lambda url: MockAdapter(),
    "OwnAdapter": lambda url: OwnAdapter(),
}


@each_face
@pytest.mark.parametrize("name", ADAPTERS)
def test_another_adapter_refuses_it(name: str, face: Callable[..., Any], provider: LoopbackProvider) -> None:
    adapter = ADAPTERS[name](provider.url)
    with Membrane(adapter) as membrane:
        assert refusal(lambda: face(membrane, REQUEST, formatter=NativeFormatter())) == (
            "unsupported",
            True,
            f"messages: {getattr(adapter, 'name', name)} sends no system changes; AnthropicAdapter does, or make the "
            "change in tools and system",
        )
    assert provider.request_count == 0


@pytest.mark.parametrize("name", [name for name in ADAPTERS if name not in ("mock", "OwnAdapter")])
def test_so_does_its_own_rendering(name: str) -> None:
    told_of = refusal(lambda: ADAPTERS[name]("http://h").render(REQUEST, formatter=NativeFormatter()))
    assert told_of[:2] == ("unsupported", True)


@each_face
def test_a_change_without_a_slot_is_not_sent(face: Callable[..., Any], provider: LoopbackProvider) -> None:
    request = {**REQUEST, "messages": [HI, {"participant": "Claude", "content": "hello"}, CHANGE]}
    with Membrane(anthropic(provider.url)) as membrane:
        told_of = refusal(lambda: face(membrane, request, formatter=NativeFormatter()))
    assert (told_of[:2], provider.request_count) == (("invalid_request", True), 0)


@each_face
def test_nor_is_one_that_is_mixed(face: Callable[..., Any], provider: LoopbackProvider) -> None:
    content = [*CHANGE["content"], {"type": "text", "text": "hi"}]
    with Membrane(anthropic(provider.url)) as membrane:
        assert refusal(
            lambda: face(membrane, {**REQUEST, "messages": [{"participant": "Ann", "content": content}]})
        ) == (
            "invalid_request",
            False,
            "messages[0].content[0].type: found 'system_change'; expected it in a message that holds nothing else",
        )
    assert provider.request_count == 0


# Tools that a formatter cannot carry at all are refused first, without the flag: as the changes leave them.

NO_TOOLS: dict[str, tuple[list[str], SystemChange, bool]] = {
    "tools": (["look"], SystemChange(add_system="x"), False),
    "a tool that the change defines": ([], SystemChange(define_tools=[Tool("look")]), False),
    "tools that the change removes": (["look"], SystemChange(remove_tools=["look"]), True),
    "no tools": ([], SystemChange(add_system="x"), True),
}


@pytest.mark.parametrize("tools, change, flagged", NO_TOOLS.values(), ids=NO_TOOLS.keys())
def test_a_formatter_without_tools(tools: list[str], change: SystemChange, flagged: bool) -> None:
    request: Any = {
        **REQUEST,
        "messages": [HI, Message("Ann", [change])],
        "tools": [{"name": name} for name in tools],
    }
    adapter = OpenAICompletionsAdapter(base_url="http://h")
    tried: list[Callable[[], Any]] = [
        lambda: adapter.render(request),
        *(lambda face=face: face(Membrane(adapter), request) for face in FACES.values()),  # type: ignore[misc]
        lambda: build(request["messages"][1:], CompletionsFormatter(), tools=[Tool(name) for name in tools]),
    ]
    assert [refusal(attempt)[:2] for attempt in tried] == [("unsupported", flagged)] * 5


# What is sent


@each_face
def test_a_subclass_of_the_native_formatter_sends_it(face: Callable[..., Any]) -> None:
    changed = {"participant": "Ann", "content": [SystemChange(["look"], add_system="Be brief.")]}
    with stage(Reply("Hello")) as (membrane, provider):
        request = {**REQUEST, "messages": [HI, changed], "tools": [{"name": "look"}]}
        assert face(membrane, request, formatter=Subclass()).text == "Hello"
        received = provider.requests[0]
    assert received.json["messages"] == [user(text("Ann: hi")), system(removal("look"), "Be brief.")]
    assert received.header("anthropic-beta") == "inline-tools-2026-09-15"


@each_face
def test_what_is_rendered_is_what_is_sent(face: Callable[..., Any]) -> None:
    with stage(Reply("Hello")) as (membrane, provider):
        face(membrane, REQUEST, formatter=NativeFormatter())
        received = provider.requests[0]
    rendered = anthropic("http://h").render(REQUEST, stream=face is not complete, formatter=NativeFormatter())
    assert rendered.body == received.body
    assert header(rendered.headers, "anthropic-beta") is received.header("anthropic-beta") is None


LOOK = ToolCall("ns__look", {}, id="c1")
DEFINES: Any = {"participant": "Ann", "content": [{"type": "system_change", "define_tools": [{"name": "ns:look"}]}]}


def test_a_tool_that_a_change_defines_is_called_and_answered() -> None:
    called: list[str] = []

    def run(calls: Any) -> Any:
        called.extend(call.name for call in calls)
        return [{"tool_use_id": call.id, "content": "sun"} for call in calls]

    request = {**REQUEST, "messages": [HI, DEFINES], "prompt_caching": False}
    with stage(Reply(LOOK), Reply("Sunny.")) as (membrane, provider):
        response = membrane.stream(request, on_tool_calls=run, formatter=NativeFormatter())
        sent = [received.json["messages"] for received in provider.requests]
    defined = [user(text("Ann: hi")), system(addition("ns__look"))]
    use = {"type": "tool_use", "id": "c1", "name": "ns__look", "input": {}}
    assert sent == [defined, [*defined, assistant(use), user(ANSWERED)]]
    assert (called, [call.name for call in response.tool_calls]) == (["ns:look"], ["ns:look"])
    assert response.text == "Sunny."


def injecting(membrane: Membrane, request: Any, injected: Any, **options: Any) -> Any:
    """The yielding face; beside each round's results the messages `injected`."""
    with membrane.stream_yielding(request, **options) as events:
        for event in events:
            if is_tool_calls_event(event):
                results = [{"tool_use_id": call.id, "content": "sun"} for call in event.calls]
                events.provide_tool_results(results, injected_messages=injected)
            elif is_error_event(event):
                raise event.error
            elif is_complete_event(event):
                return event.response
    return None


INJECTED: dict[str, list[Any]] = {
    "alone": [DEFINES],
    "before a text": [DEFINES, HI],
    "behind a text": [HI, DEFINES],
}


@pytest.mark.parametrize("name", INJECTED)
def test_a_change_put_in_beside_results_lands_behind_them(name: str) -> None:
    request = {**REQUEST, "messages": [HI], "tools": [{"name": "look"}], "prompt_caching": False}
    script = [Reply(ToolCall("look", {}, id="c1")), Reply(ToolCall("ns__look", {}, id="c2")), Reply("Sunny.")]
    with stage(*script) as (membrane, provider):
        response = injecting(membrane, request, INJECTED[name], formatter=NativeFormatter())
        second = provider.requests[1].json["messages"]
    more = [text("Ann: hi")] if HI in INJECTED[name] else []
    assert second == [user(text("Ann: hi")), assistant(CALLED), user(ANSWERED, *more), system(addition("ns__look"))]
    assert [call.name for call in response.tool_calls] == ["look", "ns:look"]


def test_another_adapter_refuses_one_that_is_put_in_and_the_stream_can_go_on() -> None:
    request = {**REQUEST, "messages": [HI], "tools": [{"name": "look"}]}
    script = [Reply(ToolCall("look", {}, id="c1")), Reply("Sunny.")]
    with LoopbackProvider(script) as provider, provider.transport() as transport:
        membrane = Membrane(OpenAICompatibleAdapter(base_url=provider.url + "/v1", transport=transport))
        with membrane.stream_yielding(request, formatter=NativeFormatter()) as events:
            for event in events:
                if is_tool_calls_event(event):
                    results = [{"tool_use_id": call.id, "content": "sun"} for call in event.calls]
                    put_in = refusal(lambda results=results: events.provide_tool_results(results, [DEFINES]))  # type: ignore[misc]
                    assert (put_in[:2], provider.request_count) == (("unsupported", True), 1)
                    events.provide_tool_results(results)
        assert provider.request_count == 2


# The model takes none

TAKES_NONE: dict[str, tuple[int, str, bool]] = {
    "the API's words": (400, "role 'system' is not supported on this model", True),
    "in another order": (400, "messages.1: This model does not support the system role.", True),
    "unsupported": (400, "messages.1.role: unsupported role: System", True),
    "not allowed": (400, "messages.1: the role `system` is not allowed here", True),
    "as before there was one": (
        400,
        'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not "system" as '
        "an input message role.",
        True,
    ),
    "another refusal": (400, "messages.1: tool 'look' is not supported on this model", False),
    "words within words": (400, "messages.1: enrole systematic is not supported", False),
    "a role that is": (400, "messages.1: the role system takes text first", False),
    "another status": (403, "role 'system' is not supported on this model", False),
}


@each_face
@pytest.mark.parametrize("status, words, flagged", TAKES_NONE.values(), ids=TAKES_NONE.keys())
def test_a_model_that_takes_none(status: int, words: str, flagged: bool, face: Callable[..., Any]) -> None:
    with stage(Failure(status, words)) as (membrane, provider):
        with pytest.raises(MembraneError) as raised:
            face(membrane, REQUEST, formatter=NativeFormatter())
        assert provider.request_count == 1
    error = raised.value
    assert (error.http_status, error.retryable, error.system_change_refused) == (status, False, flagged)
    assert error.type == ("auth" if status == 403 else "invalid_request")
    advice = " (the model takes no system changes; make the change in tools and system)"
    assert (words in error.message, error.message.endswith(advice)) == (True, flagged)
    assert ("system_change_refused" in error.to_dict()) == flagged


def test_such_words_without_a_change_say_nothing_of_one() -> None:
    words = TAKES_NONE["the API's words"][1]
    with stage(Failure(400, words)) as (membrane, _), pytest.raises(MembraneError) as raised:
        membrane.complete({**REQUEST, "messages": [HI]})
    assert (raised.value.type, raised.value.system_change_refused) == ("invalid_request", False)


def test_a_request_as_json_holds_changes_too() -> None:
    body = json.loads(anthropic("http://h").render(REQUEST, formatter=NativeFormatter()).body)
    assert body["messages"] == [user(text("Ann: hi")), system("Be brief.")]
