"""Transcript mode in the turn: one assembler and one formatter more, the same loop.

The provider answers text; what matters is what is sent next, what the caller hears, and what comes home.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from stage import FACES, STREAMED, Stage, complete, stage, stream, stream_yielding

from membrane_lite import AbortController, Hooks, MembraneError, Text, Thinking, ToolResultBlock, ToolUse, loopback
from membrane_lite.formatters.image_media import placeholder
from membrane_lite.formatters.xml_tags import NAMESPACE
from membrane_lite.loopback import Reply
from membrane_lite.values.tools import ToolCall, ToolResult

CLOSER = "</function_calls>"
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
TOOL: Any = {
    "name": "look",
    "description": "Looks.",
    "input_schema": {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]},
}
REQUEST: Any = {
    "system": "S",
    "messages": [{"participant": "Ann", "content": "hi"}],
    "config": {"model": "claude-sonnet-4-5", "max_tokens": 64},
    "tool_mode": "xml",
    "prompt_caching": False,
}
TOOL_REQUEST: Any = {**REQUEST, "tools": [TOOL]}
THINKING: Any = {**TOOL_REQUEST, "config": {**REQUEST["config"], "thinking": {"enabled": True}}}


class Heard:
    """A logger."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warning(self, message: str, *args: object) -> None:
        self.warnings.append(message % args)


def call(at: str = "sky", *, name: str = "look") -> str:
    return f'<function_calls>\n<invoke name="{name}">\n<parameter name="at">{at}</parameter>\n</invoke>\n'


def stopped(text: str, sequence: str | None = CLOSER, **more: Any) -> Reply:
    """An answer as Anthropic gives it: without the sequence that stopped it."""
    return Reply(text, stop_reason="stop_sequence", stop_sequence=sequence, **more)


def blue(calls: list[ToolCall], context: Any = None) -> list[ToolResult]:
    return [ToolResult(call.id, "blue") for call in calls]


def last_texts(on: Stage) -> list[str]:
    """The last message of each request: the transcript so far."""
    texts = []
    for received in on.provider.requests:
        content = received.json["messages"][-1]["content"]
        texts.append(content if isinstance(content, str) else "".join(block["text"] for block in content))
    return texts


def heard(run: Callable[..., Any], on: Stage, request: Any, **options: Any) -> tuple[Any, list[tuple[str, str, bool]]]:
    chunks: list[tuple[str, str, bool]] = []

    def hear(text: str, meta: Any) -> None:
        chunks.append((text, meta.type, meta.visible))

    return run(on.membrane, request, on_chunk=hear, **options), chunks


def told(chunks: list[tuple[str, str, bool]]) -> list[tuple[str, str]]:
    """Neighbours of one type as one."""
    joined: list[tuple[str, str]] = []
    for text, type, _ in chunks:
        if joined and joined[-1][0] == type:
            joined[-1] = (type, joined[-1][1] + text)
        else:
            joined.append((type, text))
    return joined


# One round


@pytest.mark.parametrize("face", FACES.values(), ids=FACES)
def test_a_plain_answer(face: Callable[..., Any]) -> None:
    with stage("anthropic", [Reply(" Hello, Ann.")]) as on:
        response = face(on.membrane, REQUEST)
        body = on.provider.requests[0].json
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "[Start]"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Ann: hi\nClaude:"}]},
    ]
    assert body["stop_sequences"] == ["\nAnn:", "</function_calls>"]
    assert response.content == [Text("Hello, Ann.")]
    assert response.raw_assistant_text == " Hello, Ann."
    assert (response.stop_reason, response.tool_calls) == ("end_turn", [])


@pytest.mark.parametrize("face", FACES.values(), ids=FACES)
def test_thinking_and_text_are_told_apart(face: Callable[..., Any]) -> None:
    with stage("anthropic", [Reply("<thinking>hm</thinking>\n\nYes.")]) as on:
        response = face(on.membrane, REQUEST)
    assert response.content == [Thinking("hm"), Text("Yes.")]
    assert response.text == "Yes."


def test_an_answer_goes_on_inside_the_thinking_that_the_request_opened() -> None:
    with stage("anthropic", [Reply("hm</thinking>Yes.")]) as on:
        response, chunks = heard(stream, on, THINKING)
        assert "thinking" not in on.provider.requests[0].json
    assert last_texts(on)[0].endswith("\nAnn: hi\nClaude: <thinking>")
    assert response.content == [Thinking("hm"), Text("Yes.")]
    assert told(chunks) == [("thinking", "hm"), ("text", "Yes.")]


@pytest.mark.parametrize("face", STREAMED.values(), ids=STREAMED)
@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_a_server_that_does_not_stop_is_cut_where_it_should_have(face: Callable[..., Any], size: int) -> None:
    reply = Reply("Yes.\nAnn: and then?\nClaude: no", delta_size=size)
    with stage("anthropic", [reply]) as on:
        response, chunks = heard(face, on, REQUEST)
    assert response.content == [Text("Yes.")]
    assert response.raw_assistant_text == "Yes."
    assert told(chunks) == [("text", "Yes.")]
    assert (response.stop_reason, response.details.stop.triggered_sequence) == ("stop_sequence", "\nAnn:")
    assert response.details.stop.provider_reason == "end_turn"


def test_the_earliest_stop_counts_not_the_first_of_the_list() -> None:
    with stage("anthropic", [Reply("A ZZ B\nAnn: x")]) as on:
        response = stream(on.membrane, {**REQUEST, "stop_sequences": ["ZZ"]})
    assert (response.raw_assistant_text, response.details.stop.triggered_sequence) == ("A ", "ZZ")


def test_what_looked_like_a_stop_and_was_none_is_delivered() -> None:
    with stage("anthropic", [Reply("one\nAn", delta_size=1)]) as on:
        response, chunks = heard(stream, on, REQUEST)
    assert (response.raw_assistant_text, told(chunks)) == ("one\nAn", [("text", "one\nAn")])


def test_a_tag_cut_off_at_the_end_is_text() -> None:
    with stage("anthropic", [Reply("see <thin", delta_size=3)]) as on:
        response, chunks = heard(stream, on, REQUEST)
    assert (response.content, told(chunks)) == ([Text("see <thin")], [("text", "see <thin")])


@pytest.mark.parametrize("face", FACES.values(), ids=FACES)
def test_a_stop_sequence_that_closes_a_tag_belongs_to_the_text(face: Callable[..., Any]) -> None:
    with stage("anthropic", [stopped("<answer>42", "</answer>")]) as on:
        response = face(on.membrane, {**REQUEST, "stop_sequences": ["</answer>"]})
    assert response.content == [Text("<answer>42</answer>")]
    assert (response.stop_reason, on.provider.request_count) == ("stop_sequence", 1)


def test_complete_returns_the_calls_and_runs_nothing() -> None:
    with stage("anthropic", [stopped("Let me. " + call())]) as on:
        response = complete(on.membrane, TOOL_REQUEST)
    whole = call() + CLOSER
    first, second = response.content
    assert (first, second.name, second.input, second.raw_xml) == (Text("Let me."), "look", {"at": "sky"}, whole)
    assert [(found.name, found.input) for found in response.tool_calls] == [("look", {"at": "sky"})]
    assert (response.stop_reason, response.raw_assistant_text) == ("stop_sequence", "Let me. " + whole)


# Tools


@pytest.mark.parametrize("face", STREAMED.values(), ids=STREAMED)
def test_results_go_back_and_the_turn_goes_on(face: Callable[..., Any]) -> None:
    with stage("anthropic", [stopped(" Let me see.\n" + call()), Reply("\nIt is blue.")]) as on:
        response, chunks = heard(face, on, TOOL_REQUEST, on_tool_calls=blue)
    first, second = last_texts(on)
    results = "<function_results>\n<result>\n<stdout>\nblue\n</stdout>\n</result>\n</function_results>"
    assert second == f"{first} Let me see.\n{call()}{CLOSER}{results}"
    text, use, result, end = response.content
    assert (text, end) == (Text("Let me see."), Text("It is blue."))
    assert use == ToolUse(use.id, "look", {"at": "sky"}, raw_xml=call() + CLOSER)
    assert result == ToolResultBlock(use.id, "blue")
    assert response.tool_calls == [ToolCall(use.id, "look", {"at": "sky"})]
    assert response.tool_results == [ToolResult(use.id, "blue")]
    assert response.raw_assistant_text == f" Let me see.\n{call()}{CLOSER}{results}\nIt is blue."
    assert (response.stop_reason, response.details.timing.rounds) == ("end_turn", 2)
    assert told(chunks) == [
        ("text", " Let me see.\n"),
        ("tool_call", "\n\nsky\n\n"),
        ("tool_result", "blue"),
        ("text", "\nIt is blue."),
    ]


def test_both_requests_have_the_same_stops_and_system() -> None:
    with stage("anthropic", [stopped(call()), Reply("Blue.")]) as on:
        stream(on.membrane, TOOL_REQUEST, on_tool_calls=blue)
    first, second = (received.json for received in on.provider.requests)
    assert {**second, "messages": second["messages"][:-1]} == {**first, "messages": first["messages"][:-1]}
    assert "tools" not in first


def test_the_events_of_a_tool_turn_in_their_order() -> None:
    seen: list[tuple[Any, ...]] = []
    script = [stopped("Hm. " + call(), delta_size=1000), Reply("Blue.")]
    with stage("anthropic", script) as on, on.membrane.stream_yielding(TOOL_REQUEST) as events:
        event: Any
        for event in events:
            if event.type == "block":
                seen.append((event.event.event, event.event.index, event.event.block.type))
            elif event.type == "tokens":
                seen.append((event.content, event.meta.block_index, event.meta.type))
            else:
                seen.append((event.type,))
            if event.type == "tool-calls":
                events.provide_tool_results(blue(event.calls))
    assert seen == [
        ("block_start", 0, "text"),
        ("Hm. ", 0, "text"),
        ("block_complete", 0, "text"),
        ("block_start", 1, "tool_call"),
        ("\n", 1, "tool_call"),
        ("\n", 1, "tool_call"),
        ("sky", 1, "tool_call"),
        ("\n", 1, "tool_call"),
        ("\n", 1, "tool_call"),
        ("block_complete", 1, "tool_call"),
        ("block_start", 2, "tool_call"),
        ("block_complete", 2, "tool_call"),
        ("usage",),
        ("tool-calls",),
        ("block_start", 3, "tool_result"),
        ("blue", 3, "tool_result"),
        ("block_complete", 3, "tool_result"),
        ("block_start", 4, "text"),
        ("Blue.", 4, "text"),
        ("block_complete", 4, "text"),
        ("usage",),
        ("complete",),
    ]


def test_the_context_tells_of_the_transcript() -> None:
    contexts: list[Any] = []
    before: list[str] = []

    def tool(calls: Any, context: Any) -> Any:
        contexts.append(context)
        return blue(calls)

    with stage("anthropic", [stopped("One. " + call("a")), stopped("Two. " + call("b")), Reply("End.")]) as on:
        stream(on.membrane, TOOL_REQUEST, on_tool_calls=tool, on_pre_tool_content=before.append)
    results = "<function_results>\n<result>\n<stdout>\nblue\n</stdout>\n</result>\n</function_results>"
    first, second = f"One. {call('a')}{CLOSER}", f"Two. {call('b')}{CLOSER}"
    assert [context.raw_text for context in contexts] == [call("a") + CLOSER, call("b") + CLOSER]
    assert [context.accumulated for context in contexts] == [first, first + results + second]
    assert before == ["One. ", first + results + "Two. "] == [context.preamble for context in contexts]
    assert [context.depth for context in contexts] == [0, 1]
    assert [len(context.previous_results) for context in contexts] == [0, 1]
    assert [[block.type for block in context.round_content] for context in contexts] == [["text", "tool_use"]] * 2


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_server_that_runs_on_behind_its_calls_is_stopped_there(size: int) -> None:
    ran = Reply(call() + CLOSER + "\n<function_results>made up</function_results>\nRed.", delta_size=size)
    with stage("anthropic", [ran, Reply("Blue.")]) as on:
        response, chunks = heard(stream, on, TOOL_REQUEST, on_tool_calls=blue)
    assert [block.type for block in response.content] == ["tool_use", "tool_result", "text"]
    assert response.text == "Blue."
    assert [text for text, _, visible in chunks if visible] == ["Blue."]


def test_calls_in_the_other_spelling_run_too() -> None:
    named = f'<{NAMESPACE}function_calls>\n<{NAMESPACE}invoke name="look">\n</{NAMESPACE}invoke>\n'
    with stage("anthropic", [Reply(named + f"</{NAMESPACE}function_calls>\nRed."), Reply("Blue.")]) as on:
        response = stream(on.membrane, TOOL_REQUEST, on_tool_calls=blue)
    # "at" is missing, which is for the tool to say
    assert [(found.name, found.input) for found in response.tool_calls] == [("look", {})]
    assert response.text == "Blue."


SERVERS_THAT_NAME_NO_STOP = {
    "calls": call(),
    "in the other spelling": call().replace("</invoke>", f"</{NAMESPACE}invoke>"),
    "an empty one": '<function_calls>\n<invoke name="look"/>\n',
}


@pytest.mark.parametrize("calls", SERVERS_THAT_NAME_NO_STOP.values(), ids=SERVERS_THAT_NAME_NO_STOP)
@pytest.mark.parametrize("face", STREAMED.values(), ids=STREAMED)
def test_a_server_that_stops_and_does_not_say_where_has_called_too(face: Callable[..., Any], calls: str) -> None:
    with stage("chat", [Reply("Hm. " + calls), Reply("Blue.")]) as on:
        response = face(on.membrane, TOOL_REQUEST, on_tool_calls=blue)
    results = "<function_results>\n<result>\n<stdout>\nblue\n</stdout>\n</result>\n</function_results>"
    assert response.raw_assistant_text == f"Hm. {calls}{CLOSER}{results}Blue."
    assert [block.type for block in response.content] == ["text", "tool_use", "tool_result", "text"]
    assert last_texts(on)[1].endswith(f"Hm. {calls}{CLOSER}{results}")


CALLS_THAT_GO_ON = {
    "text behind the call": call() + "So",
    "the call is not whole": call()[:-10],
    "an empty element in a value": '<function_calls>\n<invoke name="look">\n<parameter name="at">a<br/>',
    "CDATA": '<function_calls>\n<invoke name="look">\n<parameter name="at"><![CDATA[a</invoke>',
}


@pytest.mark.parametrize("calls", CALLS_THAT_GO_ON.values(), ids=CALLS_THAT_GO_ON)
def test_an_answer_that_ends_elsewhere_in_a_call_has_not(calls: str) -> None:
    with stage("chat", [Reply(calls)]) as on:
        response = stream(on.membrane, TOOL_REQUEST, on_tool_calls=blue)
    assert (response.raw_assistant_text, response.details.stop.unclosed_tool_block) == (calls, True)
    assert (response.tool_results, on.provider.request_count) == ([], 1)


def test_a_server_that_reasons_beside_the_text_does_so_in_the_thinking_that_is_open() -> None:
    script = [Reply(loopback.Thinking("hm"), call()), Reply(loopback.Thinking("so"), "Blue.")]
    with stage("chat", script) as on:
        response, chunks = heard(stream, on, THINKING, on_tool_calls=blue)
    first, second = last_texts(on)
    assert first.endswith("Claude: <thinking>")
    assert second.startswith(f"{first}hm</thinking>\n{call()}{CLOSER}<function_results>\n")
    assert second.endswith("</function_results>\n<thinking>")
    assert [block.type for block in response.content] == ["thinking", "tool_use", "tool_result", "thinking", "text"]
    assert [text for text, _, visible in chunks if visible] == ["\n", "\n", "Blue."]


@pytest.mark.parametrize("face", STREAMED.values(), ids=STREAMED)
def test_a_server_that_takes_four_stops_is_watched_for_the_others(face: Callable[..., Any]) -> None:
    names = ["Ann", "Bob", "Cy", "Dee", "Eve"]
    request = {**REQUEST, "messages": [{"participant": name, "content": "hi"} for name in names]}
    with stage("chat", [Reply("Yes.\nAnn: no")]) as on:
        response = face(on.membrane, request)
    assert on.provider.requests[0].json["stop"] == ["\nEve:", "\nDee:", "\nCy:", "\nBob:"]
    assert (response.content, response.details.stop.triggered_sequence) == ([Text("Yes.")], "\nAnn:")


@pytest.mark.parametrize("face", STREAMED.values(), ids=STREAMED)
def test_thinking_is_opened_again_behind_results(face: Callable[..., Any]) -> None:
    with stage("anthropic", [stopped("hm</thinking>" + call()), Reply("so</thinking>Blue.")]) as on:
        response = face(on.membrane, THINKING, on_tool_calls=blue)
    assert last_texts(on)[1].endswith("</function_results>\n<thinking>")
    assert [block.type for block in response.content] == ["thinking", "tool_use", "tool_result", "thinking", "text"]
    assert response.content[3:] == [Thinking("so"), Text("Blue.")]


def test_images_among_results_become_a_user_turn_which_later_rounds_keep() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
    answers = iter([[{"type": "text", "text": "seen:"}, image], "blue"])

    def tool(calls: Any) -> Any:
        return [{"tool_use_id": calls[0].id, "content": next(answers)}]

    with stage("anthropic", [stopped(call("a")), stopped("Hm. " + call("b")), Reply("End.")]) as on:
        stream(on.membrane, TOOL_REQUEST, on_tool_calls=tool)
    first, second, third = (received.json["messages"] for received in on.provider.requests)
    assert [message["role"] for message in second] == ["user", "assistant", "user", "assistant"]
    before = "<function_results>\n<result>\n<stdout>\nseen:"
    start = first[1]["content"][0]["text"]
    assert second[1]["content"][0]["text"] == f"{start}{call('a')}{CLOSER}{before}"
    assert second[2]["content"] == [image]
    after = second[3]["content"][0]["text"]
    assert after == "</stdout>\n</result>\n</function_results>"
    assert third[:3] == second[:3]
    assert third[3]["content"][0]["text"].startswith(f"{after}Hm. {call('b')}{CLOSER}<function_results>\n")


def test_an_image_that_no_provider_takes_is_text_in_the_result_and_warned_of() -> None:
    drawing = {"type": "image", "source": {"type": "base64", "media_type": "image/svg+xml", "data": "PHN2Zz4="}}
    logger = Heard()

    def tool(calls: Any) -> Any:
        return [{"tool_use_id": calls[0].id, "content": [{"type": "text", "text": "seen:"}, drawing]}]

    with stage("anthropic", [stopped(call("a")), Reply("End.")], logger=logger) as on:
        stream(on.membrane, TOOL_REQUEST, on_tool_calls=tool)
        assert [message["role"] for message in on.provider.requests[1].json["messages"]] == ["user", "assistant"]
    shown = f"<result>\n<stdout>\nseen:\n{placeholder('image/svg+xml')}\n</stdout>\n</result>"
    assert last_texts(on)[1].endswith(f"<function_results>\n{shown}\n</function_results>")
    assert logger.warnings == ['image block stripped: unsupported media type "image/svg+xml"']


def test_results_stand_in_the_order_of_their_calls() -> None:
    two = call("a") + call("b").removeprefix("<function_calls>\n")

    def tool(calls: Any) -> Any:
        return [ToolResult(calls[1].id, "B"), ToolResult(calls[0].id, "A")]

    with stage("anthropic", [stopped(two), Reply("End.")]) as on:
        response = stream(on.membrane, TOOL_REQUEST, on_tool_calls=tool)
    sent = last_texts(on)[1]
    assert sent.index("\nA\n") < sent.index("\nB\n")
    assert [result.content for result in response.tool_results] == ["B", "A"]
    assert [block.content for block in response.content if isinstance(block, ToolResultBlock)] == ["A", "B"]


def test_a_missing_result_keeps_its_place_and_an_empty_list_is_an_empty_block() -> None:
    two = call("a") + call("b").removeprefix("<function_calls>\n")
    answers: Any = iter([lambda calls: [ToolResult(calls[1].id, "B")], lambda calls: []])
    with stage("anthropic", [stopped(two), stopped(call("c")), Reply("End.")]) as on:
        stream(on.membrane, TOOL_REQUEST, on_tool_calls=lambda calls: next(answers)(calls))
    _, second, third = last_texts(on)
    assert second.endswith(
        "<function_results>\n<result>\n<stdout>\n[pending]\n</stdout>\n</result>\n"
        "<result>\n<stdout>\nB\n</stdout>\n</result>\n</function_results>"
    )
    assert third.endswith(f"{call('c')}{CLOSER}<function_results>\n</function_results>")


@pytest.mark.parametrize("face", STREAMED.values(), ids=STREAMED)
def test_a_refused_call_is_answered_and_never_run(face: Callable[..., Any]) -> None:
    broken = '<function_calls>\n<invoke name="look">\nsky\n</invoke>\n'
    ran: list[Any] = []

    def tool(calls: Any, context: Any = None) -> Any:
        ran.extend(calls)
        return blue(calls)

    with stage("anthropic", [stopped(broken), stopped(call()), Reply("Blue.")]) as on:
        response = face(on.membrane, TOOL_REQUEST, on_tool_calls=tool)
    assert [found.input for found in ran] == [{"at": "sky"}]
    assert "<error>\nThe call was not run: " in last_texts(on)[1]
    refused = response.tool_results[0]
    assert (refused.is_error, response.tool_calls[0].unparseable_input is None) == (True, False)


def test_the_tools_of_the_last_round_run_and_nothing_more_is_sent() -> None:
    with stage("anthropic", lambda received: stopped(call())) as on:
        response = stream(on.membrane, TOOL_REQUEST, on_tool_calls=blue, max_tool_depth=2)
    assert (on.provider.request_count, len(response.tool_results), response.stop_reason) == (3, 3, "stop_sequence")
    assert len({found.id for found in response.tool_calls}) == 3


def test_without_a_callback_the_calls_come_back() -> None:
    with stage("anthropic", [stopped(call())]) as on:
        response = stream(on.membrane, TOOL_REQUEST)
    assert [found.input for found in response.tool_calls] == [{"at": "sky"}]
    assert (response.stop_reason, on.provider.request_count) == ("stop_sequence", 1)


def test_a_call_cut_by_max_tokens_is_no_text_and_does_not_run() -> None:
    cut = Reply('Let me.<function_calls>\n<invoke name="look">\n<parameter name="at">sk', stop_reason="max_tokens")
    with stage("anthropic", [cut]) as on:
        response = stream(on.membrane, TOOL_REQUEST, on_tool_calls=blue)
    assert response.text == "Let me."
    (found,) = response.tool_calls
    assert (found.name, found.input, found.unparseable_input is None) == ("look", {}, False)
    assert (response.stop_reason, response.details.stop.unclosed_tool_block) == ("max_tokens", True)


def test_as_messages_continues_the_conversation_verbatim() -> None:
    odd = '<function_calls>\n\n<invoke  name="look">\n<parameter name="at">12345678901234567890</parameter></invoke>\n'
    with stage("anthropic", [stopped("Hm. " + odd), Reply("Blue."), Reply("Yes.")]) as on:
        response = stream(on.membrane, TOOL_REQUEST, on_tool_calls=blue)
        history = [*REQUEST["messages"], *response.as_messages(), {"participant": "Ann", "content": "sure?"}]
        stream(on.membrane, {**TOOL_REQUEST, "messages": history})
    results = "<function_results>\n<result>\n<stdout>\nblue\n</stdout>\n</result>\n</function_results>"
    assert last_texts(on)[2].endswith(f"Ann: hi\nClaude: Hm.\n{odd}{CLOSER}\n{results}\nBlue.\nAnn: sure?\nClaude:")


def test_injected_messages_are_left_out_with_one_warning() -> None:
    logger = Heard()
    script = [stopped(call()), stopped(call()), Reply("Blue.")]
    with stage("anthropic", script, logger=logger) as on, on.membrane.stream_yielding(TOOL_REQUEST) as events:
        event: Any
        for event in events:
            if event.type == "tool-calls":
                events.provide_tool_results(blue(event.calls), [{"content": "psst"}])
    assert logger.warnings == ["injected_messages: left out, the XML tool mode has no place for them"]
    assert "psst" not in last_texts(on)[2]


# Accidental stops


@pytest.mark.parametrize("face", STREAMED.values(), ids=STREAMED)
def test_a_stop_inside_a_block_is_put_back_and_the_answer_goes_on(face: Callable[..., Any]) -> None:
    script = [stopped("<thinking>what would", "\nAnn:"), Reply(" say?</thinking>Yes.")]
    with stage("anthropic", script) as on:
        response, chunks = heard(face, on, REQUEST)
    assert last_texts(on) == ["Ann: hi\nClaude:", "Ann: hi\nClaude:<thinking>what would\nAnn:"]
    assert response.content == [Thinking("what would\nAnn: say?"), Text("Yes.")]
    assert response.raw_assistant_text == "<thinking>what would\nAnn: say?</thinking>Yes."
    assert told(chunks) == [("thinking", "what would\nAnn: say?"), ("text", "Yes.")]
    assert (response.stop_reason, response.details.timing.rounds) == ("end_turn", 2)


@pytest.mark.parametrize("face", STREAMED.values(), ids=STREAMED)
def test_where_no_round_is_left_the_stop_that_was_put_back_is_content(face: Callable[..., Any]) -> None:
    with stage("anthropic", [stopped("<thinking>what would", "\nAnn:")]) as on:
        response = face(on.membrane, REQUEST, max_tool_depth=0)
    assert response.raw_assistant_text == "<thinking>what would\nAnn:"
    assert (response.content, response.stop_reason) == ([Thinking("what would\nAnn:")], "stop_sequence")


def test_a_hook_that_fails_before_the_answer_goes_on() -> None:
    def hook(request: Any, built: Any) -> None:
        if built.messages[-1]["content"].endswith("\nAnn:"):
            raise ValueError("no")

    script = [stopped("<thinking>what would", "\nAnn:")]
    with stage("anthropic", script, hooks=Hooks(before_request=hook)) as on, pytest.raises(MembraneError) as caught:
        stream(on.membrane, REQUEST)
    assert caught.value.raw_assistant_text == "<thinking>what would\nAnn:"
    assert caught.value.partial_content == [Thinking("what would\nAnn:")]


def test_a_stop_that_cuts_a_tag_in_two_leaves_it_a_tag() -> None:
    request = {**REQUEST, "stop_sequences": ["ing>Y"]}
    with stage("anthropic", [stopped("<thinking>hm</think", "ing>Y"), Reply("es.")]) as on:
        response, chunks = heard(stream, on, request)
    assert response.content == [Thinking("hm"), Text("Yes.")]
    assert told(chunks)[-1] == ("text", "Yes.")


def test_a_call_that_was_stopped_inside_runs_when_it_is_whole() -> None:
    begun, rest = call("x\nAnn: y").split("\nAnn:")
    with stage("anthropic", [stopped(begun, "\nAnn:"), stopped(rest), Reply("Blue.")]) as on:
        response = stream(on.membrane, TOOL_REQUEST, on_tool_calls=blue)
    assert [found.input for found in response.tool_calls] == [{"at": "x\nAnn: y"}]
    assert [block.type for block in response.content] == ["tool_use", "tool_result", "text"]


def test_inside_cdata_the_end_of_the_calls_is_data() -> None:
    begun = '<function_calls>\n<invoke name="look">\n<parameter name="at"><![CDATA[a'
    with stage("anthropic", [stopped(begun), stopped("b]]></parameter>\n</invoke>\n"), Reply("Blue.")]) as on:
        response = stream(on.membrane, TOOL_REQUEST, on_tool_calls=blue)
    assert [found.input for found in response.tool_calls] == [{"at": f"a{CLOSER}b"}]


def test_tags_left_open_by_others_resume_nothing() -> None:
    request = {**REQUEST, "messages": [{"participant": "Ann", "content": "what is <thinking> for?"}]}
    with stage("anthropic", [stopped("A tag.", "\nAnn:")]) as on:
        response = stream(on.membrane, request)
    assert (on.provider.request_count, response.stop_reason) == (1, "stop_sequence")


# What stands in the conversation, or in a result, opens nothing for the model.
OF_OTHERS = {
    "thinking": "what is <thinking> for?",
    "half a tag": "is a <parameter b right?",
    "a CDATA section": '<function_calls><invoke name="a"><parameter name="b"><![CDATA[c',
}


@pytest.mark.parametrize("said", OF_OTHERS.values(), ids=OF_OTHERS)
def test_a_block_that_somebody_else_left_open_is_not_the_models(said: str) -> None:
    request = {**REQUEST, "messages": [{"participant": "Ann", "content": said}]}
    with stage("anthropic", [Reply("A tag.\nAnn: oh")]) as on:
        response, chunks = heard(stream, on, request)
    assert (response.content, chunks) == ([Text("A tag.")], [("A", "text", True), (" tag.", "text", True)])
    assert response.details.stop.triggered_sequence == "\nAnn:"


@pytest.mark.parametrize("said", OF_OTHERS.values(), ids=OF_OTHERS)
def test_a_block_that_a_result_leaves_open_is_not_the_models(said: str) -> None:
    with stage("anthropic", [stopped(call()), Reply("A tag.\nAnn: oh")]) as on:
        response, chunks = heard(stream, on, TOOL_REQUEST, on_tool_calls=lambda calls: [ToolResult(calls[0].id, said)])
    assert (response.content[-1], told(chunks)[-2:]) == (Text("A tag."), [("tool_result", said), ("text", "A tag.")])
    assert (response.stop_reason, on.provider.request_count) == ("stop_sequence", 2)


@pytest.mark.parametrize("face", STREAMED.values(), ids=STREAMED)
def test_calls_that_thinking_only_mentions_are_not_open_behind_it(face: Callable[..., Any]) -> None:
    thought = "<thinking>I write <function_calls> now.</thinking>"
    with stage("anthropic", [stopped(thought + call()), stopped("Blue.", "\nAnn:")]) as on:
        response, chunks = heard(face, on, TOOL_REQUEST, on_tool_calls=blue)
    assert (on.provider.request_count, response.stop_reason) == (2, "stop_sequence")
    assert (response.content[-1], told(chunks)[-1]) == (Text("Blue."), ("text", "Blue."))


def test_thinking_that_was_open_around_the_calls_is_closed_once() -> None:
    with stage("anthropic", [stopped("hm" + call()), stopped("so</thinking>Blue.", "\nAnn:")]) as on:
        response, chunks = heard(stream, on, THINKING, on_tool_calls=blue)
    assert last_texts(on)[1].endswith("</function_results>\n<thinking>")
    assert (response.content[-2:], told(chunks)[-1]) == ([Thinking("so"), Text("Blue.")], ("text", "Blue."))


@pytest.mark.parametrize("reason", ["end_turn", "max_tokens"])
def test_only_a_stop_sequence_is_an_accident(reason: str) -> None:
    with stage("anthropic", [Reply("<thinking>hm", stop_reason=reason)]) as on:
        response = stream(on.membrane, REQUEST)
    assert (response.content, response.stop_reason, on.provider.request_count) == ([Thinking("hm")], reason, 1)


def test_complete_is_one_request() -> None:
    with stage("anthropic", [stopped("<thinking>what would", "\nAnn:")]) as on:
        response = complete(on.membrane, REQUEST)
    assert (response.content, response.stop_reason) == ([Thinking("what would")], "stop_sequence")


LONG = "sixteen or more characters"

GUARDED: dict[str, tuple[list[Reply], Any, str, int, list[str]]] = {
    "three rounds of a character are no progress": (
        [stopped("<thinking>", None), *[stopped("x", None)] * 9],
        {},
        "no_progress",
        4,
        ["no progress: the model was stopped by None again and again, after 3 resumptions the turn ends"],
    ),
    "two short rounds and a long end are not cut": (
        [stopped("<thinking>", None), stopped("x", None), stopped("x", None), Reply(LONG)],
        {},
        "end_turn",
        4,
        [],
    ),
    "a long round begins the count anew": (
        [stopped(text, None) for text in ("<thinking>", "x", "x", LONG, "x", "x")] + [Reply("end")],
        {},
        "end_turn",
        7,
        ["resumed at round 5 after None: 49 input tokens so far"],
    ),
    "the cap": (
        [stopped("<thinking>" + LONG, "\nAnn:")] * 9,
        {"max_resumption_rounds": 2, "max_tool_depth": 50},
        "round_limit",
        3,
        ["resumption cap: the turn ends, stopped by '\\nAnn:' after 2 resumptions"],
    ),
    "the depth": ([stopped("<thinking>" + LONG, "\nAnn:")] * 9, {"max_tool_depth": 1}, "stop_sequence", 2, []),
}


@pytest.mark.parametrize(("script", "options", "reason", "requests", "warnings"), GUARDED.values(), ids=GUARDED)
@pytest.mark.parametrize("face", STREAMED.values(), ids=STREAMED)
def test_what_ends_a_turn_that_is_resumed_again_and_again(
    face: Callable[..., Any], script: Any, options: Any, reason: str, requests: int, warnings: list[str]
) -> None:
    logger = Heard()
    with stage("anthropic", script, logger=logger) as on:
        response = face(on.membrane, REQUEST, **options)
    assert (response.stop_reason, on.provider.request_count) == (reason, requests)
    assert logger.warnings == warnings


LIMITS = {
    "the cap": ({"max_resumption_rounds": 1, "max_tool_depth": 50}, "round_limit"),
    "the depth": ({"max_tool_depth": 1}, "stop_sequence"),
}


@pytest.mark.parametrize(("options", "reason"), LIMITS.values(), ids=LIMITS)
@pytest.mark.parametrize("face", STREAMED.values(), ids=STREAMED)
def test_what_stopped_a_turn_at_its_limit_was_content_all_the_same(
    face: Callable[..., Any], options: Any, reason: str
) -> None:
    script = [stopped("<thinking>" + LONG, "\nAnn:"), stopped(" said so, and", "\nAnn:"), Reply("never")]
    with stage("anthropic", script, logger=Heard()) as on:
        response, chunks = heard(face, on, REQUEST, **options)
    thought = f"{LONG}\nAnn: said so, and\nAnn:"
    assert (response.content, response.stop_reason) == ([Thinking(thought)], reason)
    assert (response.raw_assistant_text, told(chunks)) == (f"<thinking>{thought}", [("thinking", thought)])


def test_thirty_tool_rounds_are_no_resumptions() -> None:
    logger = Heard()
    script = [*[stopped(call())] * 30, Reply("End.")]
    with stage("anthropic", script, logger=logger) as on:
        response = stream(on.membrane, TOOL_REQUEST, on_tool_calls=blue, max_tool_depth=50)
    assert (response.stop_reason, on.provider.request_count, logger.warnings) == ("end_turn", 31, [])


def test_the_input_so_far_counts_nothing_that_membrane_wrote_itself() -> None:
    """A stop sequence of 16 characters and more is put back in each round, and is no progress."""
    request = {**REQUEST, "messages": [{"participant": "A name that is long", "content": "hi"}]}
    with stage("anthropic", [stopped("<thinking>", "\nA name that is long:")] * 9) as on:
        response = stream(on.membrane, request)
    assert (response.stop_reason, on.provider.request_count) == ("no_progress", 4)


# Ends


def test_an_abort_gives_what_had_arrived() -> None:
    controller = AbortController()

    def hear(text: str, meta: Any) -> None:
        if "three" in text:
            controller.abort()

    with stage("anthropic", [stopped("One. " + call()), Reply("<thinking>hm</thinking>two three four")]) as on:
        result = stream(on.membrane, TOOL_REQUEST, on_tool_calls=blue, on_chunk=hear, signal=controller.signal)
    assert (result.reason, [block.type for block in result.partial_content]) == (
        "user",
        ["text", "tool_use", "tool_result", "thinking", "text"],
    )
    assert result.raw_assistant_text.endswith("</function_results><thinking>hm</thinking>two three")
    assert [found.name for found in result.tool_calls] == ["look"]


@pytest.mark.parametrize("when", ["usage", "tool-calls"])
def test_a_call_that_is_cancelled_before_its_tools_ran_asks_for_none(when: str) -> None:
    seen: list[Any] = []
    with stage("anthropic", [stopped(call())]) as on, on.membrane.stream_yielding(TOOL_REQUEST) as events:
        for event in events:
            seen.append(event)
            if event.type == when:
                events.cancel()
    assert [event.type for event in seen[-2:]] == [when, "aborted"]
    assert (seen[-1].raw_assistant_text, seen[-1].tool_results) == (call() + CLOSER, [])


def test_refusals_are_not_sent_again_while_streaming() -> None:
    logger = Heard()
    with stage("anthropic", [Reply("No.", stop_reason="refusal")], logger=logger) as on:
        result = stream_yielding(on.membrane, REQUEST, refusal_retries=2)
    assert (result.stop_reason, on.provider.request_count) == ("refusal", 1)
    assert logger.warnings == ["refusal_retries: left out, a streamed transcript is not sent again"]


def test_complete_sends_a_refusal_again_and_forgets_what_it_said() -> None:
    with stage("anthropic", [Reply("No", stop_reason="refusal"), Reply("Yes.")]) as on:
        result = complete(on.membrane, REQUEST, refusal_retries=1)
    assert (result.content, result.raw_assistant_text, on.provider.request_count) == ([Text("Yes.")], "Yes.", 2)
    assert last_texts(on)[0] == last_texts(on)[1]


def test_a_model_that_takes_no_prefill_is_told_before_anything_is_sent() -> None:
    request = {**REQUEST, "config": {"model": "claude-opus-4-7", "max_tokens": 64}}
    with stage("anthropic", [Reply("never")]) as on, pytest.raises(MembraneError) as caught:
        complete(on.membrane, request)
    assert (caught.value.type, on.provider.request_count) == ("unsupported", 0)
