"""Tools run inline by stream(): rounds, results, limits, and what the callback is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from stage import FORMATS, REQUEST, TOOL_REQUEST, WEATHER, complete, each_format, stage, stream

from membrane_lite import Image, MembraneError, Message, Response, Text, ToolResult, ToolUse
from membrane_lite.formatters.cache_markers import bare
from membrane_lite.loopback import Reply, Thinking, ToolCall, Usage

BERN = ToolCall("get_weather", {"city": "Bern"}, id="call_1")
ROME = ToolCall("get_weather", {"city": "Rome"}, id="call_2")
SUNNY = Reply("It is sunny.")
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def weather(calls: list[Any]) -> list[ToolResult]:
    return [ToolResult(call.id, f"sun in {call.input.get('city', 'town')}") for call in calls]


def never(calls: Any) -> Any:
    raise AssertionError("no tool was to be run")


def endless(received: Any) -> Reply:
    """A model that always calls."""
    return Reply(f"Round {received.number}.", ToolCall("get_weather", {}, id=f"call_{received.number}"))


def asking_usage(format: str, request: Any = TOOL_REQUEST) -> Any:
    """A chat server gives a stream's counts where it is asked to."""
    return {**request, "provider_params": {"stream_options": {"include_usage": True}}} if format == "chat" else request


def results_sent(format: str, body: Any) -> list[tuple[str, Any]]:
    """(id, content) of the results in a request's body, in order."""
    if format == "chat":
        return [
            (message["tool_call_id"], message["content"]) for message in body["messages"] if message["role"] == "tool"
        ]
    blocks = [block for message in body["messages"] for block in message["content"]]
    return [(block["tool_use_id"], block["content"]) for block in blocks if block["type"] == "tool_result"]


# The loop


@each_format
def test_results_go_back_and_the_turn_goes_on(format: str) -> None:
    with stage(format, [Reply("Let me see.", BERN), SUNNY]) as on:
        response = stream(on.membrane, TOOL_REQUEST, on_tool_calls=weather)
        assert [block.type for block in response.content] == ["text", "tool_use", "tool_result", "text"]
        assert (response.text, response.stop_reason) == ("Let me see.It is sunny.", "end_turn")
        assert response.raw_assistant_text == "Let me see.It is sunny."
        assert [(call.id, call.name, call.input) for call in response.tool_calls] == [
            ("call_1", "get_weather", {"city": "Bern"})
        ]
        assert response.tool_results == [ToolResult("call_1", "sun in Bern")]
        assert (response.details.timing.rounds, response.details.timing.attempts) == (2, 1)
        assert results_sent(format, on.provider.requests[1].json) == [("call_1", "sun in Bern")]


def test_the_second_request_of_anthropic_repeats_the_round_and_adds_the_results() -> None:
    with stage("anthropic", [Reply(Thinking("Hm."), "Let me see.", BERN), SUNNY]) as on:
        stream(on.membrane, {**TOOL_REQUEST, "prompt_caching": False}, on_tool_calls=weather)
        first, second = (received.json for received in on.provider.requests)
        assert second["messages"] == [
            *first["messages"],
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": "bG9vcGJhY2stc2lnbmF0dXJl"},
                    {"type": "text", "text": "Let me see."},
                    {"type": "tool_use", "id": "call_1", "name": "get_weather", "input": {"city": "Bern"}},
                ],
            },
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "sun in Bern"}],
            },
        ]
        assert {**second, "messages": 0} == {**first, "messages": 0}


def test_the_second_request_of_chat_repeats_the_round_and_adds_the_results() -> None:
    with stage("chat", [Reply("Let me see.", BERN), SUNNY]) as on:
        stream(on.membrane, TOOL_REQUEST, on_tool_calls=weather)
        first, second = (received.json["messages"] for received in on.provider.requests)
        arguments = '{"city":"Bern"}'
        function = {"name": "get_weather", "arguments": arguments}
        assert second == [
            *first,
            {
                "role": "assistant",
                "content": "Let me see.",
                "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "sun in Bern"},
        ]


@each_format
def test_parallel_results_go_back_together_in_the_order_of_their_calls(format: str) -> None:
    with stage(format, [Reply(BERN, ROME), SUNNY]) as on:
        response = stream(on.membrane, TOOL_REQUEST, on_tool_calls=lambda calls: weather(calls[::-1]))
        assert [result.tool_use_id for result in response.tool_results] == ["call_2", "call_1"]
        body = on.provider.requests[1].json
        assert results_sent(format, body) == [("call_1", "sun in Bern"), ("call_2", "sun in Rome")]
        if format == "anthropic":
            assert [message["role"] for message in body["messages"]] == ["user", "assistant", "user"]


@each_format
def test_images_in_results_reach_the_model(format: str) -> None:
    image = Image({"type": "base64", "media_type": "image/png", "data": PIXEL})
    result = ToolResult("call_1", [Text("A photo:"), image])
    with stage(format, [Reply(BERN), SUNNY]) as on:
        response = stream(on.membrane, TOOL_REQUEST, on_tool_calls=lambda calls: [result])
        assert response.tool_results == [result]
        last = on.provider.requests[1].json["messages"][-1]
    if format == "anthropic":
        source = {"type": "base64", "media_type": "image/png", "data": PIXEL}
        content = [{"type": "text", "text": "A photo:"}, {"type": "image", "source": source}]
        assert last["content"][0]["content"] == content
    else:
        url = f"data:image/png;base64,{PIXEL}"
        assert last == {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}


@each_format
@pytest.mark.parametrize("given", [[], [ToolResult("call_9", "whose?")]], ids=["no result", "a result of another call"])
def test_results_that_do_not_match_the_calls_are_repaired(format: str, given: list[ToolResult]) -> None:
    with stage(format, [Reply(BERN), SUNNY]) as on:
        response = stream(on.membrane, TOOL_REQUEST, on_tool_calls=lambda calls: given)
        assert (response.text, response.tool_results) == ("It is sunny.", given)
        assert results_sent(format, on.provider.requests[1].json) == [("call_1", "[pending]")]


@each_format
def test_a_tool_s_name_with_a_colon_is_sent_without_it_and_comes_back_with_it(format: str) -> None:
    request = {**REQUEST, "tools": [{**WEATHER, "name": "world:weather"}]}
    called: list[str] = []

    def tool(calls: Any) -> Any:
        called.extend(call.name for call in calls)
        return weather(calls)

    with stage(format, [Reply(ToolCall("world__weather", {}, id="call_1")), SUNNY]) as on:
        response = stream(on.membrane, request, on_tool_calls=tool)
        assert called == ["world:weather"]
        assert [block.name for block in response.content if isinstance(block, ToolUse)] == ["world:weather"]
        assert b"world:weather" not in on.provider.requests[1].body


# Limits


@each_format
@pytest.mark.parametrize("options, rounds", [({"max_tool_depth": 0}, 1), ({"max_tool_depth": 1}, 2), ({}, 11)])
def test_the_tools_of_the_last_round_run_and_nothing_more_is_sent(
    format: str, options: dict[str, int], rounds: int
) -> None:
    with stage(format, endless) as on:
        response = stream(on.membrane, TOOL_REQUEST, on_tool_calls=weather, **options)
        assert on.provider.request_count == response.details.timing.rounds == rounds
        ids = [f"call_{number}" for number in range(1, rounds + 1)]
        assert [call.id for call in response.tool_calls] == ids
        assert [result.tool_use_id for result in response.tool_results] == ids
        assert response.content[-1].type == "tool_result"
        assert response.stop_reason == "tool_use"
        assert response.text == "".join(f"Round {number}." for number in range(1, rounds + 1))


@each_format
@pytest.mark.parametrize("face", [complete, stream])
def test_without_a_callback_calls_come_back_and_nothing_is_run(format: str, face: Callable[..., Any]) -> None:
    with stage(format, [Reply("Let me see.", BERN, ROME)]) as on:
        response = face(on.membrane, TOOL_REQUEST)
        assert [call.id for call in response.tool_calls] == ["call_1", "call_2"]
        assert (response.stop_reason, response.tool_results, on.provider.request_count) == ("tool_use", [], 1)


@each_format
def test_calls_that_max_tokens_cut_off_are_not_run(format: str) -> None:
    cut = ToolCall("get_weather", '{"city": "Ro', id="call_2")
    with stage(format, [Reply("Let me see.", BERN, cut, stop_reason="max_tokens")]) as on:
        response = stream(on.membrane, TOOL_REQUEST, on_tool_calls=never)
        assert (response.stop_reason, response.details.stop.was_truncated) == ("max_tokens", True)
        assert [(call.id, call.input, call.unparseable_input) for call in response.tool_calls] == [
            ("call_1", {"city": "Bern"}, None),
            ("call_2", {}, '{"city": "Ro'),
        ]
        assert (response.tool_results, on.provider.request_count) == ([], 1)


@pytest.mark.parametrize("reason", ["end_turn", "eos"])
def test_whole_calls_run_although_the_server_says_it_just_stopped(reason: str) -> None:
    with stage("chat", [Reply(BERN, stop_reason=reason), SUNNY]) as on:
        assert stream(on.membrane, TOOL_REQUEST, on_tool_calls=weather).text == "It is sunny."


# Arguments that are not JSON


@each_format
def test_a_call_with_broken_arguments_is_answered_and_never_run(format: str) -> None:
    broken = ToolCall("get_weather", '{"city": "Ro', id="call_2")
    ran: list[Any] = []

    def tool(calls: Any) -> Any:
        ran.extend(calls)
        return weather(calls)

    with stage(format, [Reply(broken, BERN), SUNNY]) as on:
        response = stream(on.membrane, TOOL_REQUEST, on_tool_calls=tool)
        assert [call.id for call in ran] == ["call_1"]
        good, refused = response.tool_results
        assert (good.tool_use_id, good.is_error) == ("call_1", None)
        assert (refused.tool_use_id, refused.is_error) == ("call_2", True)
        assert "not complete JSON" in refused.content
        assert '{"city": "Ro' in refused.content
        assert [call.unparseable_input for call in response.tool_calls] == ['{"city": "Ro', None]
        sent = dict(results_sent(format, on.provider.requests[1].json))
        assert sent == {"call_1": "sun in Bern", "call_2": refused.content}
        if format == "anthropic":
            blocks = on.provider.requests[1].json["messages"][-1]["content"]
            assert [block.get("is_error") for block in blocks] == [True, None], (
                "results stand in the order of the calls"
            )


@each_format
def test_the_callback_is_not_called_where_no_call_can_be_run(format: str) -> None:
    with stage(format, [Reply(ToolCall("get_weather", "{", id="call_1")), SUNNY]) as on:
        response = stream(on.membrane, TOOL_REQUEST, on_tool_calls=never)
        assert (response.text, on.provider.request_count) == ("It is sunny.", 2)
        assert [result.is_error for result in response.tool_results] == [True]


@each_format
def test_a_model_that_never_gets_its_arguments_right_is_stopped_by_the_depth_limit(format: str) -> None:
    with stage(format, lambda received: Reply(ToolCall("get_weather", "{"))) as on:
        response = stream(on.membrane, TOOL_REQUEST, on_tool_calls=never, max_tool_depth=2)
        assert (on.provider.request_count, len(response.tool_results)) == (3, 3)


# The callback


class Tools:
    def with_calls(self, calls: Any) -> Any:
        return weather(calls)

    def with_both(self, calls: Any, context: Any) -> Any:
        assert context.depth == 0
        return weather(calls)

    def __call__(self, calls: Any) -> Any:
        return weather(calls)


CALLBACKS = {
    "(calls)": lambda calls: weather(calls),
    "(calls, context)": lambda calls, context: weather(calls) if context.depth == 0 else None,
    "(calls, context=None)": lambda calls, context=None: weather(calls) if context is not None else None,
    "(*args)": lambda *args: weather(args[0]) if len(args) == 2 else None,
    "a method of calls": Tools().with_calls,
    "a method of both": Tools().with_both,
    "an object": Tools(),
    "mappings": lambda calls: [{"tool_use_id": call.id, "content": "sun in Bern"} for call in calls],
    "a tuple": lambda calls: tuple(weather(calls)),
    "blocks as mappings": lambda calls: [
        {"tool_use_id": call.id, "content": [{"type": "text", "text": "sun in Bern"}], "is_error": False}
        for call in calls
    ],
}


@pytest.mark.parametrize("callback", CALLBACKS.values(), ids=CALLBACKS.keys())
def test_the_callback_may_have_many_forms(callback: Callable[..., Any]) -> None:
    with stage("anthropic", [Reply(BERN), SUNNY]) as on:
        response = stream(on.membrane, TOOL_REQUEST, on_tool_calls=callback)
        assert response.text == "It is sunny."
        (result,) = response.tool_results
        texts = [result.content] if isinstance(result.content, str) else [block.text for block in result.content]
        assert (result.tool_use_id, texts) == ("call_1", ["sun in Bern"])


NO_RESULTS = {
    "None": (None, "on_tool_calls: found NoneType None; expected a list of tool results"),
    "a string": ("sun", "on_tool_calls: found str 'sun'; expected a list of tool results"),
    "one mapping": ({"tool_use_id": "call_1", "content": "sun"}, "expected a list of tool results"),
    "strings": (["sun"], "tool_results[0]: found str 'sun'; expected a ToolResult or a mapping of its shape"),
    "a misspelt key": ([{"tool_id": "call_1", "content": "sun"}], "no field 'tool_id'; did you mean 'tool_use_id'?"),
    "no content": ([{"tool_use_id": "call_1"}], "tool_results[0].content: missing"),
}


@pytest.mark.parametrize("given, message", NO_RESULTS.values(), ids=NO_RESULTS.keys())
def test_what_is_no_list_of_results_ends_the_turn(given: Any, message: str) -> None:
    with stage("anthropic", [Reply("Let me see.", BERN), SUNNY]) as on:
        with pytest.raises(MembraneError) as caught:
            stream(on.membrane, TOOL_REQUEST, on_tool_calls=lambda calls: given)
        error = caught.value
        assert (error.type, error.retryable) == ("invalid_request", False)
        assert message in error.message
        assert (error.raw_assistant_text, on.provider.request_count) == ("Let me see.", 1)


@each_format
def test_a_callback_that_raises_ends_the_turn_with_its_error_as_the_cause(format: str) -> None:
    broken = TimeoutError("the weather is late")

    def tool(calls: Any) -> Any:
        raise broken

    with stage(format, [Reply("Let me see.", BERN), SUNNY]) as on:
        with pytest.raises(MembraneError) as caught:
            stream(on.membrane, TOOL_REQUEST, on_tool_calls=tool)
        error = caught.value
        assert (error.type, error.retryable, error.__cause__) == ("timeout", False, broken)
        assert error.message == "on_tool_calls raised TimeoutError: the weather is late"
        assert (error.http_status, error.provider_error_code, error.retry_after_ms) == (None, None, None)
        assert [call.id for call in error.tool_calls] == ["call_1"]
        assert error.raw_assistant_text == "Let me see."
        assert on.provider.request_count == 1


@each_format
def test_the_context_tells_of_the_round_and_of_the_turn(format: str) -> None:
    contexts: list[Any] = []

    def tool(calls: Any, context: Any) -> Any:
        contexts.append(context)
        return weather(calls)

    with stage(format, [Reply("One. ", BERN), Reply("Two. ", ROME), SUNNY]) as on:
        stream(on.membrane, TOOL_REQUEST, on_tool_calls=tool)
    first, second = contexts
    assert (first.depth, first.preamble, first.accumulated) == (0, "One. ", "One. ")
    assert (second.depth, second.preamble, second.accumulated) == (1, "Two. ", "One. Two. ")
    assert (first.previous_results, second.previous_results) == ([], [ToolResult("call_1", "sun in Bern")])
    assert [block.type for block in first.round_content] == ["text", "tool_use"]
    assert second.round_content == [Text("Two. "), ToolUse("call_2", "get_weather", {"city": "Rome"})]
    assert '"call_1"' in first.raw_text
    assert not first.signal.aborted


# Beside the loop


@each_format
def test_the_text_before_a_round_s_calls_is_told_before_they_run(format: str) -> None:
    told: list[str] = []

    def tool(calls: Any) -> Any:
        told.append("run")
        return weather(calls)

    script = [Reply("Let me see.", BERN), Reply(" \n", ROME), Reply(ToolCall("get_weather", {}, id="call_3")), SUNNY]
    with stage(format, script) as on:
        stream(on.membrane, TOOL_REQUEST, on_tool_calls=tool, on_pre_tool_content=told.append)
        assert told == ["Let me see.", "run", "run", "run"]


@each_format
def test_usage_is_told_after_each_round_as_running_totals(format: str) -> None:
    usages: list[Any] = []
    script = [
        Reply(BERN, usage=Usage(input_tokens=10, output_tokens=5)),
        Reply("Sunny", usage=Usage(input_tokens=20, output_tokens=7, cache_read_tokens=100)),
    ]
    with stage(format, script) as on:
        response = stream(on.membrane, asking_usage(format), on_tool_calls=weather, on_usage=usages.append)
    totals = [(usage.input_tokens, usage.output_tokens, usage.cache_read_tokens or 0) for usage in usages]
    assert totals == [(10, 5, 0), (30, 12, 100)]
    assert response.usage == response.details.usage == usages[1]
    assert usages[0] is not usages[1]
    cost = response.usage.estimated_cost
    assert cost.total == pytest.approx((30 * 3 + 12 * 15 + 100 * 0.3) / 1_000_000)
    assert response.details.cache.tokens_read == 100


@each_format
def test_request_and_response_are_told_once_a_round(format: str) -> None:
    requests: list[Any] = []
    responses: list[Any] = []
    with stage(format, [Reply("Let me see.", BERN), SUNNY]) as on:
        response = stream(
            on.membrane,
            TOOL_REQUEST,
            on_tool_calls=weather,
            on_request=requests.append,
            on_response=responses.append,
        )
        assert [body["messages"] for body in requests] == [
            received.json["messages"] for received in on.provider.requests
        ]
        assert (response.raw.request, response.raw.response) == (requests[1], responses[1])
        assert response.details.request_id == "req_loopback_000002"
        assert response.raw.headers["content-type"].startswith("text/event-stream")
        assert len(responses) == 2
        assert responses[0] != responses[1]


@each_format
def test_as_messages_continues_the_conversation(format: str) -> None:
    script = [
        Reply(Thinking("Hm."), "Let me see.", BERN, ROME),
        Reply("It is ", ToolCall("get_weather", {}, id="call_3")),
        SUNNY,
        Reply("You are welcome."),
    ]
    with stage(format, script) as on:
        first = stream(on.membrane, TOOL_REQUEST, on_tool_calls=weather)
        history = [Message("User", [Text("Hi")]), *first.as_messages(), Message("User", [Text("Thanks")])]
        assert [message.participant for message in history] == [
            "User", "Claude", "User", "Claude", "User", "Claude", "User",
        ]  # fmt: skip
        second = complete(on.membrane, {**TOOL_REQUEST, "messages": history})
        assert second.text == "You are welcome."
        # What the turn itself sent last stands unchanged in the next request, but for its marker: a cache of it holds.
        sent = [list(map(bare, received.json["messages"])) for received in on.provider.requests]
        assert sent[3][: len(sent[2])] == sent[2]


@each_format
def test_messages_as_mappings_continue_it_too(format: str) -> None:
    with stage(format, [Reply(Thinking("Hm."), BERN), SUNNY, Reply("Welcome.")]) as on:
        first = stream(on.membrane, TOOL_REQUEST, on_tool_calls=weather)
        history = [*REQUEST["messages"], *(message.to_dict() for message in first.as_messages())]
        request = {**TOOL_REQUEST, "messages": [*history, {"participant": "User", "content": "Thanks"}]}
        assert complete(on.membrane, request).text == "Welcome."


ANSWERS = {
    "a tool turn": [Reply(Thinking("Hm."), "Let me see.", BERN), SUNNY],
    "broken arguments": [Reply(ToolCall("get_weather", "{", id="call_1")), SUNNY],
    "cut short": [Reply("It is", stop_reason="max_tokens")],
    "a refusal": [Reply("", stop_reason="refusal")],
}


@each_format
@pytest.mark.parametrize("script", ANSWERS.values(), ids=ANSWERS.keys())
def test_a_response_survives_the_way_through_json(format: str, script: list[Reply]) -> None:
    with stage(format, script) as on:
        response = stream(on.membrane, asking_usage(format), on_tool_calls=weather)
        copy = Response.from_dict(json.loads(json.dumps(response.to_dict())))
        assert copy == response
        assert copy.as_messages() == response.as_messages()


@pytest.mark.parametrize("format", FORMATS)
def test_streaming_false_is_complete_with_chunks(format: str) -> None:
    chunks: list[Any] = []
    others: list[Any] = []
    with stage(format, [Reply(Thinking("Hm."), "Let me see.", BERN)]) as on:
        response = stream(
            on.membrane,
            {**TOOL_REQUEST, "streaming": False},
            on_chunk=lambda text, meta: chunks.append((text, meta.type, meta.visible, meta.block_index)),
            on_block=others.append,
            on_usage=others.append,
            on_pre_tool_content=others.append,
        )
        assert chunks == [("Let me see.", "text", True, 1)]
        assert others == []
        assert [call.id for call in response.tool_calls] == ["call_1"]
        assert not on.provider.requests[0].json.get("stream")
