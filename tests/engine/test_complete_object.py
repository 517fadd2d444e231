"""complete_object: one answer as an object of the caller's type, through every provider, over a socket."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypedDict

import pytest
from stage import FakeClock
from test_own_adapter import Mine

from membrane_lite import (
    AnthropicAdapter,
    AnthropicXmlFormatter,
    BedrockAdapter,
    GeminiAdapter,
    Hooks,
    LlmContractViolation,
    Membrane,
    MembraneError,
    OpenAIAdapter,
    OpenAICompatibleAdapter,
    OpenAICompletionsAdapter,
    OpenAIImagesAdapter,
    OpenAIResponsesAPIAdapter,
    OpenRouterAdapter,
    Response,
    create_canned_adapter,
)
from membrane_lite.loopback import Failure, LoopbackProvider, Reply, Text, ToolCall, Usage, bedrock
from membrane_lite.values.content import ToolUse
from membrane_lite.values.deltas import BlockEnd, BlockStart, Finished, InputDelta


@dataclass
class Line:
    item: str
    count: int = 1


@dataclass
class Order:
    "One order."

    number: int
    lines: list[Line] = field(default_factory=list)
    note: str | None = None


class Address(TypedDict):
    city: str
    zip: int


class Model:
    """As pydantic's are: describes itself, reads itself."""

    def __init__(self, name: str) -> None:
        self.name = name

    @classmethod
    def model_json_schema(cls) -> Any:
        return {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}

    @classmethod
    def model_validate(cls, value: Any) -> Model:
        if not value["name"]:
            raise ValueError("a name may not be empty")
        return cls(value["name"])


NAMED: Any = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}
JSON_TEXT = '{"number": 7, "lines": [{"item": "tea"}]}'
INPUT = {"number": 7, "lines": [{"item": "tea"}]}
ORDER = Order(7, [Line("tea")])


def request(model: str = "claude-sonnet-4-5", **more: Any) -> Any:
    return {
        "messages": [{"participant": "User", "content": "What did I order?"}],
        "config": {"model": model, "max_tokens": 4096},
        **more,
    }


class Way(NamedTuple):
    """How a provider is reached, and what a model of it answers with: a call of the forced tool, or a text."""

    make: Callable[..., Any]
    path: str
    model: str
    answer: Reply
    keys: dict[str, Any] = {}


KEY = {"api_key": "any"}
AWS = {
    "access_key_id": bedrock.ACCESS_KEY_ID,
    "secret_access_key": bedrock.KEYS[bedrock.ACCESS_KEY_ID].secret_access_key,
    "region": "us-east-1",
}
CALLED = Reply(ToolCall("emit", INPUT))
WROTE = Reply(JSON_TEXT)
FILLED = Reply('{"number": 7, "lines": [{"item": "tea", "count": null}], "note": null}')  # strict: all of it, or null
WAYS = {
    "anthropic, a tool": Way(AnthropicAdapter, "", "claude-sonnet-4-5", CALLED, KEY),
    "anthropic, a format": Way(AnthropicAdapter, "", "claude-opus-5-5", WROTE, KEY),
    "bedrock, a tool": Way(BedrockAdapter, "", "claude-opus-4-5", CALLED, AWS),
    "openai": Way(OpenAIAdapter, "/v1", "gpt-5-mini", FILLED, KEY),
    "openai, before schemas": Way(OpenAIAdapter, "/v1", "gpt-4-turbo", WROTE, KEY),
    "responses": Way(OpenAIResponsesAPIAdapter, "/v1", "gpt-5.1", FILLED, KEY),
    "openrouter": Way(OpenRouterAdapter, "/api/v1", "openai/gpt-5", FILLED, KEY),
    "gemini": Way(GeminiAdapter, "/v1beta", "gemini-3-pro", WROTE, KEY),
    "a compatible server": Way(OpenAICompatibleAdapter, "/v1", "llama3", WROTE),
    "a server without schemas": Way(OpenAICompatibleAdapter, "/v1", "llama3", WROTE, {"structured_output": "prompt"}),
}
each_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())


@contextmanager
def opened(way: Way, *answers: Any, **settings: Any) -> Iterator[tuple[Membrane, LoopbackProvider]]:
    with LoopbackProvider(answers or [way.answer]) as provider, provider.transport() as transport:
        adapter = way.make(base_url=provider.url + way.path, transport=transport, **way.keys)
        yield Membrane(adapter, clock=FakeClock(), **settings), provider


CLAUDE = WAYS["anthropic, a tool"]
LLAMA = WAYS["a compatible server"]
GPT = WAYS["openai"]


@each_way
def test_an_answer_becomes_the_callers_type(way: Way) -> None:
    with opened(way) as (membrane, provider):
        assert membrane.complete_object(request(way.model), schema=Order) == ORDER
        assert provider.request_count == 1


@each_way
def test_what_is_rendered_is_what_is_sent(way: Way) -> None:
    with opened(way) as (membrane, provider):
        adapter: Any = vars(membrane)["_adapter"]
        rendered = adapter.render(request(way.model), schema=Order)
        membrane.complete_object(request(way.model), schema=Order)
        assert rendered.body == provider.requests[0].body
        assert adapter.render(request(way.model)).body != rendered.body


SCHEMAS: dict[str, tuple[Any, Any, Any]] = {
    "a dataclass": (Line, {"item": "tea", "count": 2}, Line("tea", 2)),
    "its defaults": (Line, {"item": "tea"}, Line("tea", 1)),
    "a whole number written as a decimal one": (Line, {"item": "tea", "count": 2.0}, Line("tea", 2)),
    "a TypedDict": (Address, {"city": "Bern", "zip": 3000}, {"city": "Bern", "zip": 3000}),
    "a mapping": (NAMED, {"name": "Ann"}, {"name": "Ann"}),
    "a list that came as a text": (Order, {"number": 7, "lines": '[{"item": "tea"}]'}, ORDER),
}


@pytest.mark.parametrize("schema, input, made", SCHEMAS.values(), ids=SCHEMAS.keys())
def test_what_a_schema_may_be(schema: Any, input: Any, made: Any) -> None:
    with opened(CLAUDE, Reply(ToolCall("emit", input))) as (membrane, _):
        found = membrane.complete_object(request(), schema=schema)
    assert (type(found), found) == (type(made), made)


def test_a_class_of_its_own_validates_itself() -> None:
    with opened(CLAUDE, Reply(ToolCall("emit", {"name": "Ann"})), Reply(ToolCall("emit", {"name": ""}))) as (on, _):
        assert on.complete_object(request(), schema=Model).name == "Ann"
        with pytest.raises(LlmContractViolation, match="a name may not be empty"):
            on.complete_object(request(), schema=Model)


TEXTS: dict[str, str] = {
    "bare": JSON_TEXT,
    "in a fence": f"Here it is:\n```json\n{JSON_TEXT}\n```\nAnything else?",
    "with words around it": f"You ordered {JSON_TEXT}, as far as I know.",
    "behind thinking": f'<think>Was it {{"number": 8}}?</think>{JSON_TEXT}',
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_a_server_that_is_not_held_to_the_schema_may_write_around_the_answer(text: str) -> None:
    with opened(LLAMA, Reply(text)) as (membrane, _):
        assert membrane.complete_object(request("llama3"), schema=Order) == ORDER


ELSEWHERE: dict[str, Reply] = {
    "a text, where a tool was asked for": Reply(JSON_TEXT),
    "behind words": Reply(Text("I will call it."), ToolCall("emit", INPUT)),
    "behind a call of another tool": Reply(ToolCall("other", {"number": 8}), ToolCall("emit", INPUT)),
}


@pytest.mark.parametrize("reply", ELSEWHERE.values(), ids=ELSEWHERE.keys())
def test_the_answer_is_found_by_its_name(reply: Reply) -> None:
    with opened(CLAUDE, reply) as (membrane, _):
        assert membrane.complete_object(request(), schema=Order) == ORDER


def test_the_form_may_have_a_name_of_the_callers() -> None:
    reply = Reply(ToolCall("emit", {"number": 8}), ToolCall("order", INPUT))
    with opened(CLAUDE, reply) as (membrane, provider):
        order = membrane.complete_object(request(), schema=Order, name="order", description="What was ordered.")
        body = provider.requests[0].json
    assert order == ORDER
    assert [(tool["name"], tool["description"]) for tool in body["tools"]] == [("order", "What was ordered.")]


THINKING: dict[str, tuple[str, Any, Reply, bool]] = {
    "within a budget, a format": ("claude-sonnet-4-5", {"budget_tokens": 1024}, WROTE, True),
    "within a budget, before there were formats": ("claude-sonnet-4", {"budget_tokens": 1024}, CALLED, False),
    "as it sees fit, a tool": ("claude-opus-4-8", {"type": "adaptive"}, CALLED, True),
}


@pytest.mark.parametrize("model, thinking, answer, thinks", THINKING.values(), ids=THINKING.keys())
def test_thinking_goes_with_an_answer_wherever_the_api_has_both(
    model: str, thinking: Any, answer: Reply, thinks: bool
) -> None:
    asked = request(model, config={"model": model, "max_tokens": 4096, "thinking": thinking})
    with opened(CLAUDE, answer) as (membrane, provider):
        assert membrane.complete_object(asked, schema=Order) == ORDER
        assert ("thinking" in provider.requests[0].json) is thinks


@each_way
def test_tools_that_the_history_calls_are_declared_and_not_called(way: Way) -> None:
    messages = [
        {"participant": "User", "content": "How warm is it?"},
        {"participant": "Claude", "content": [{"type": "tool_use", "id": "t1", "name": "get_weather", "input": {}}]},
        {"participant": "User", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "12 degrees"}]},
    ]
    with opened(way) as (membrane, provider):
        asked = request(way.model, messages=messages, tools=[WEATHER])
        assert membrane.complete_object(asked, schema=Order) == ORDER
        assert "get_weather" in str(provider.requests[0].json["tools"])
        assert provider.request_count == 1


# Null, where strict mode leaves nothing out


def test_null_is_absent_only_where_the_strict_form_was_asked_for() -> None:
    """Optional properties must be given under it, and null is what they are given as."""
    with opened(GPT) as (membrane, _):
        assert membrane.complete_object(request("gpt-5"), schema=Order) == ORDER
    with opened(LLAMA, GPT.answer) as (membrane, _), pytest.raises(LlmContractViolation, match="/lines/0/count"):
        membrane.complete_object(request("llama3"), schema=Order)


def test_a_schema_without_a_strict_form_is_sent_as_it_is() -> None:
    free = {"type": "object", "additionalProperties": {"type": "integer"}}
    with opened(GPT, Reply('{"tea": 2}')) as (membrane, provider):
        assert membrane.complete_object(request("gpt-5"), schema=free) == {"tea": 2}
        sent = provider.requests[0].json["response_format"]["json_schema"]
    assert sent == {"name": "emit", "schema": free, "strict": False}


# Answers that do not fit

VIOLATIONS: dict[str, tuple[Reply, str]] = {
    "a property too many": (
        Reply(ToolCall("emit", {"number": 7, "price": 3})),
        'the answer does not fit its schema: /price: no property "price" is declared; expected only "number", ',
    ),
    "another fault beside a double-encoded list": (
        Reply(ToolCall("emit", {"number": "7", "lines": '[{"item": "tea"}]'})),
        "the answer does not fit its schema: /number: expected integer, found ",
    ),
    "prose": (Reply("You ordered tea."), "the answer holds no JSON object; the answer: You ordered tea."),
    "no word at all": (Reply(""), "the answer holds no JSON object; the answer: "),
    "another tool": (
        Reply(ToolCall("other", INPUT)),
        "the answer holds no JSON object; the model called 'other'; the answer: ",
    ),
}


@pytest.mark.parametrize("reply, words", VIOLATIONS.values(), ids=VIOLATIONS.keys())
def test_an_answer_that_does_not_fit_says_what_is_wrong_and_what_it_cost(reply: Reply, words: str) -> None:
    with opened(CLAUDE, Reply(*reply.pieces, usage=Usage(21, 11))) as (membrane, provider):
        with pytest.raises(LlmContractViolation) as caught:
            membrane.complete_object(request(), schema=Order)
        assert provider.request_count == 1
    error = caught.value
    assert error.message.startswith(words)
    assert (error.type, error.retryable, error.provider_error_code) == ("unknown", False, "contract_violation")
    assert (error.partial_usage.input_tokens, error.partial_usage.output_tokens) == (21, 11)
    assert (error.raw_request, error.partial_content, error.raw_assistant_text) == (None, (), "")


def test_a_call_whose_arguments_are_broken_is_no_answer() -> None:
    broken = Reply(ToolCall("emit", '{"number": 7'))
    with opened(LLAMA, broken) as (membrane, _), pytest.raises(LlmContractViolation) as caught:
        membrane.complete_object(request("llama3"), schema=Order)
    assert caught.value.message == "the input of 'emit' is not complete JSON; the answer: {\"number\": 7"


SECRET = "sk-a-key-of-mine"
ECHOES: dict[str, tuple[Reply, str]] = {
    "in a text": (
        Reply(f"It is {SECRET}."),
        "the answer holds no JSON object; the answer: It is [redacted].",
    ),
    "in a place, and beside it": (
        Reply(f'{{"{SECRET}": "{SECRET}", "item": "tea"}}'),
        'the answer does not fit its schema: /[redacted]: no property "[redacted]" is declared; expected only "item", '
        '"count"; the answer: {"[redacted]":"[redacted]","item":"tea"}',
    ),
}


@pytest.mark.parametrize("reply, message", ECHOES.values(), ids=ECHOES.keys())
def test_a_key_that_the_model_tells_is_not_told_on(reply: Reply, message: str) -> None:
    way = LLAMA._replace(keys={"api_key": SECRET})
    with opened(way, reply) as (membrane, _), pytest.raises(LlmContractViolation) as caught:
        membrane.complete_object(request("llama3"), schema=Line)
    error = caught.value
    assert error.message == message
    assert (SECRET in error.raw, SECRET in str(error.violations), error.__cause__) == (False, False, None)
    assert error.partial_usage is not None


def test_a_long_answer_is_cut_in_its_error() -> None:
    with opened(LLAMA, Reply("x" * 5_000)) as (membrane, _), pytest.raises(LlmContractViolation) as caught:
        membrane.complete_object(request("llama3"), schema=Order)
    assert caught.value.raw == "x" * 800
    assert len(caught.value.message) < 900


# Answers that are not complete

CUT: dict[str, tuple[Way, Reply, tuple[str, str]]] = {
    "cut in the tool's input": (
        CLAUDE,
        Reply(ToolCall("emit", '{"number": 7'), stop_reason="max_tokens"),
        ("unknown", "anthropic: the structured answer is incomplete: it was cut, allow it more of config.max_tokens"),
    ),
    "cut behind what looks complete": (
        LLAMA,
        Reply(JSON_TEXT, stop_reason="max_tokens"),
        (
            "unknown",
            "openai-compatible: the structured answer is incomplete: it was cut, allow it more of config.max_tokens",
        ),
    ),
    "refused": (
        CLAUDE,
        Reply(JSON_TEXT, stop_reason="refusal"),
        ("safety", "anthropic: the structured answer is incomplete: the model refused"),
    ),
    "filtered": (
        GPT,
        Reply(JSON_TEXT, stop_reason="refusal"),
        ("safety", "openai: the structured answer is incomplete: the model refused"),
    ),
    "paused": (
        CLAUDE,
        Reply(JSON_TEXT, stop_reason="pause_turn"),
        ("unknown", "anthropic: the structured answer is incomplete: the provider paused in its midst"),
    ),
}


@pytest.mark.parametrize("way, reply, said", CUT.values(), ids=CUT.keys())
def test_an_answer_that_is_not_complete_is_never_read(way: Way, reply: Reply, said: Any) -> None:
    with opened(way, reply) as (membrane, provider):
        with pytest.raises(MembraneError) as caught:
            membrane.complete_object(request(way.model), schema=Order)
        sent = provider.requests[0].json
        assert provider.request_count == 1
    error = caught.value
    assert (error.type, error.message) == (said[0], said[1] + "; what arrived is in .partial_content")
    assert (error.retryable, error.provider_error_code) == (False, "incomplete_answer")
    assert error.raw_request == sent
    assert len(error.partial_content) == 1
    assert error.partial_usage.output_tokens > 0


# One turn, like any other


def test_failures_are_sent_again_and_the_answer_is_heard_whole() -> None:
    heard: list[Response] = []
    with opened(CLAUDE, Failure(503), Reply(ToolCall("emit", INPUT), usage=Usage(21, 11))) as (membrane, provider):
        found = membrane.complete_object(request(), schema=Order, on_complete=heard.append)
        assert provider.request_count == 2
    assert found == ORDER
    assert [(response.details.timing.attempts, response.usage.output_tokens) for response in heard] == [(2, 11)]
    assert heard[0].usage.estimated_cost is not None


def test_on_complete_hears_an_answer_that_does_not_fit_too() -> None:
    heard: list[str] = []
    with opened(LLAMA, Reply("No.")) as (membrane, _), pytest.raises(LlmContractViolation):
        membrane.complete_object(request("llama3"), schema=Order, on_complete=lambda it: heard.append(it.text))
    assert heard == ["No."]


def test_what_on_complete_raises_is_the_callers_own() -> None:
    def raises(response: Response) -> None:
        raise KeyError("mine")

    with opened(CLAUDE, Reply(*CALLED.pieces, usage=Usage(21, 11))) as (membrane, provider):
        with pytest.raises(MembraneError, match="on_complete raised KeyError: 'mine'") as caught:
            membrane.complete_object(request(), schema=Order, on_complete=raises)
        assert caught.value.raw_request == provider.requests[0].json
    assert isinstance(caught.value.__cause__, KeyError)
    assert caught.value.partial_usage.output_tokens == 11
    assert [call.input for call in caught.value.tool_calls] == [INPUT]


@dataclass
class Broken:
    item: str

    def __post_init__(self) -> None:
        raise KeyError("mine")


class Undescribed(Model):
    @classmethod
    def model_json_schema(cls) -> Any:
        raise KeyError("mine")


class Failing(Model):
    @classmethod
    def model_validate(cls, value: Any) -> Model:
        raise MembraneError("network", "no line")


OWN_CLASSES: dict[str, tuple[Any, str, int]] = {
    "made from the answer": (Broken, "Broken raised KeyError: 'mine'", 1),
    "reading the answer": (Failing, "Failing raised MembraneError: no line", 1),
    "describing itself": (Undescribed, "Undescribed raised KeyError: 'mine'", 0),
}


@pytest.mark.parametrize("schema, words, sent", OWN_CLASSES.values(), ids=OWN_CLASSES.keys())
def test_what_the_callers_class_raises_is_no_fault_of_the_answer(schema: Any, words: str, sent: int) -> None:
    answer = {"name": "Ann"} if issubclass(schema, Model) else {"item": "tea"}
    with opened(CLAUDE, Reply(ToolCall("emit", answer), usage=Usage(21, 11))) as (membrane, provider):
        with pytest.raises(MembraneError) as caught:
            membrane.complete_object(request(), schema=schema)
        assert provider.request_count == sent
    error = caught.value
    assert (error.message, error.retryable, error.provider_error_code) == (words, False, None)
    assert type(error.__cause__) is (MembraneError if schema is Failing else KeyError)
    assert (error.partial_usage is None) is (sent == 0)


def test_a_refusal_is_sent_again_where_the_caller_wants_it() -> None:
    with opened(CLAUDE, Reply("No.", stop_reason="refusal"), CALLED) as (membrane, provider):
        assert membrane.complete_object(request(), schema=Order, refusal_retries=1) == ORDER
        assert [body.json["tool_choice"]["name"] for body in provider.requests] == ["emit", "emit"]


def test_hooks_see_the_schema_and_may_change_it() -> None:
    seen: list[Any] = []

    def before(request: Any, built: Any) -> Any:
        seen.append(built.output.name)
        return replace(built, output=replace(built.output, description="Be exact."))

    hooks = Hooks(before_request=before, after_response=lambda response, raw: seen.append(response.stop_reason))
    with opened(CLAUDE, hooks=hooks) as (membrane, provider):
        assert membrane.complete_object(request(), schema=Order) == ORDER
        assert provider.requests[0].json["tools"][0]["description"] == "Be exact."
    assert seen == ["emit", "tool_use"]


def test_the_options_of_complete_are_taken() -> None:
    told: list[Any] = []
    with opened(CLAUDE, Failure(500), CALLED) as (membrane, provider):
        with pytest.raises(MembraneError) as caught:
            membrane.complete_object(request(), schema=Order, retry=False, on_request=told.append)
        assert (caught.value.http_status, provider.request_count, len(told)) == (500, 1, 1)
        with pytest.raises(TypeError, match="tmeout_ms"):
            membrane.complete_object(request(), schema=Order, tmeout_ms=1)
        assert provider.request_count == 1


def test_a_canned_answer_will_do() -> None:
    canned = [JSON_TEXT, [{"type": "tool_use", "id": "t1", "name": "emit", "input": INPUT}]]
    membrane = Membrane(create_canned_adapter(canned, complete_delay_ms=0))
    assert [membrane.complete_object(request("any"), schema=Order) for _ in canned] == [ORDER, ORDER]


def test_an_adapter_of_the_callers_own_is_given_the_schema() -> None:
    deltas = [
        BlockStart(0, ToolUse("c", "emit")),
        InputDelta(0, '{"item": "tea"}'),
        BlockEnd(0),
        Finished("tool_use", ""),
    ]
    mine = Mine(deltas)
    assert Membrane(mine).complete_object(request("mine"), schema=Line) == Line("tea")
    assert mine.requests[0].output.to_dict() == {
        "name": "emit",
        "schema": {
            "type": "object",
            "properties": {"item": {"type": "string"}, "count": {"type": "integer"}},
            "required": ["item"],
            "additionalProperties": False,
        },
    }


# What cannot be asked for: nothing is sent

WEATHER: Any = {"name": "get_weather", "input_schema": {"type": "object", "properties": {}}}
PREFILLED: Any = [{"participant": "User", "content": "Hi"}, {"participant": "Claude", "content": "{"}]
COMPLETIONS = Way(OpenAICompletionsAdapter, "/v1", "davinci-002", WROTE)
IMAGES = Way(OpenAIImagesAdapter, "/v1", "gpt-image-1", WROTE, KEY)
REFUSED: dict[str, tuple[Way, Any, Any, str, str]] = {
    "no schema": (CLAUDE, request(), {"schema": 7}, "invalid_request", "schema: found int 7; expected a JSON Schema"),
    "a schema that is none": (
        CLAUDE,
        request(),
        {"schema": {"type": "object", "properties": {"a": {"type": "text"}}}},
        "invalid_request",
        "schema#/properties/a/type: found 'text'; expected one of null, ",
    ),
    "no object at its root": (
        CLAUDE,
        request(),
        {"schema": {"type": "array"}},
        "invalid_request",
        "schema: found type 'array' at the root; ",
    ),
    "a name that a provider refuses": (
        CLAUDE,
        request(),
        {"schema": Order, "name": "an order"},
        "invalid_request",
        "name: found 'an order'; expected 1 to 64 letters, digits, '_' or '-'",
    ),
    "a description that is no text": (
        CLAUDE,
        request(),
        {"schema": Order, "description": 7},
        "invalid_request",
        "description: found int 7; expected a string",
    ),
    "the name of a tool": (
        CLAUDE,
        request(tools=[WEATHER]),
        {"schema": Order, "name": "get_weather"},
        "invalid_request",
        "name: the request has a tool 'get_weather' of its own; expected another name=",
    ),
    "an answer that is begun for the model": (
        CLAUDE,
        request(messages=PREFILLED),
        {"schema": Order},
        "unsupported",
        "schema: the last message is the assistant's, and a structured answer cannot be begun for it",
    ),
    "a transcript": (
        CLAUDE,
        request(tool_mode="xml"),
        {"schema": Order},
        "unsupported",
        "schema: a transcript (tool_mode 'xml') has no structured answers; pass tool_mode='native'",
    ),
    "a formatter of transcripts": (
        CLAUDE,
        request(),
        {"schema": Order, "formatter": AnthropicXmlFormatter(tool_mode="xml")},
        "unsupported",
        "schema: a transcript (tool_mode 'xml') has no structured answers; pass tool_mode='native'",
    ),
    "tools, which the model takes only without a schema": (
        WAYS["gemini"],
        request("gemini-2.5-flash", tools=[WEATHER]),
        {"schema": Order},
        "unsupported",
        "tools: gemini-2.5-flash gives no structured answer to a request with tools; leave them out",
    ),
    "a base model": (
        COMPLETIONS,
        request("davinci-002"),
        {"schema": Order},
        "unsupported",
        "schema: the formatter 'completions' writes one text for the model to go on with",
    ),
    "images": (
        IMAGES,
        request("gpt-image-1"),
        {"schema": Order},
        "unsupported",
        "schema: the Images API gives no structured answers; use another adapter",
    ),
}


@pytest.mark.parametrize("way, asked, options, type, words", REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_asked_for_is_said_before_anything_is_sent(
    way: Way, asked: Any, options: Any, type: str, words: str
) -> None:
    with opened(way) as (membrane, provider):
        with pytest.raises(MembraneError) as caught:
            membrane.complete_object(asked, **options)
        assert provider.request_count == 0
    assert (caught.value.type, caught.value.message[: len(words)]) == (type, words)
