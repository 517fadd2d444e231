"""What providers really answered, sent back: each recorded answer with tool calls, in every form a formatter gives it.

The conversation is: a question, the recorded answer, results of its calls, one more question. The request that it
makes is held against the published rules of the provider it goes to, as the loopback provider knows them, and against
four that all of them have in one form or another, read off the body here: a user speaks first, turns alternate, every
call is answered right behind it and nothing else is, no text is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from corpora.recorded_exchange import Exchange
from corpora.test_recorded import EXCHANGES, completed, result, streamed

from membrane_lite import (
    AnthropicAdapter,
    AnthropicXmlFormatter,
    BedrockAdapter,
    GeminiAdapter,
    Message,
    NativeFormatter,
    OpenAIAdapter,
    OpenAICompatibleAdapter,
    OpenAIResponsesAPIAdapter,
    OpenAIResponsesFormatter,
    OpenRouterAdapter,
    Response,
    Text,
    ToolResultBlock,
    ToolUse,
)
from membrane_lite.loopback.received import Received
from membrane_lite.loopback.routes import format_of
from membrane_lite.wire.http import HttpRequest

CLAUDE = "claude-sonnet-4-5"


class Goal(NamedTuple):
    """An adapter and a formatter that a conversation is sent through; model: one that takes what the formatter makes.

    of: the folder of the recordings that are this provider's own; with the others the conversation changes provider.
    """

    adapter: Callable[[], Any]
    formatter: Callable[[], Any]
    model: str
    of: str


def transcript() -> AnthropicXmlFormatter:
    return AnthropicXmlFormatter(tool_mode="xml")


def compatible() -> OpenAICompatibleAdapter:
    return OpenAICompatibleAdapter(base_url="http://localhost/v1")


def bedrock() -> BedrockAdapter:
    return BedrockAdapter(api_key="a-key-of-the-test", region="us-east-1")


def subscription() -> OpenAIResponsesAPIAdapter:
    return OpenAIResponsesAPIAdapter(mode="subscription", credentials=lambda **asked: {"token": "a-token"})


GOALS: Mapping[str, Goal] = {
    "anthropic native": Goal(AnthropicAdapter, NativeFormatter, CLAUDE, "anthropic"),
    "anthropic default": Goal(AnthropicAdapter, AnthropicXmlFormatter, CLAUDE, "anthropic"),
    "anthropic transcript": Goal(AnthropicAdapter, transcript, CLAUDE, "anthropic"),
    "bedrock native": Goal(bedrock, NativeFormatter, "anthropic.claude-sonnet-4-5-20250929-v1:0", "bedrock"),
    "bedrock transcript": Goal(bedrock, transcript, "anthropic.claude-sonnet-4-5-20250929-v1:0", "bedrock"),
    "chat native": Goal(compatible, NativeFormatter, "llama3.3", "openai_compatible"),
    "chat transcript": Goal(compatible, transcript, "llama3.3", "openai_compatible"),
    "openai native": Goal(OpenAIAdapter, NativeFormatter, "gpt-4o", "openai_chat"),
    "openai transcript": Goal(OpenAIAdapter, transcript, "gpt-4o", "openai_chat"),
    "openrouter native": Goal(OpenRouterAdapter, NativeFormatter, "anthropic/claude-sonnet-4.5", "openrouter"),
    "openrouter transcript": Goal(OpenRouterAdapter, transcript, "anthropic/claude-sonnet-4.5", "openrouter"),
    "responses": Goal(OpenAIResponsesAPIAdapter, OpenAIResponsesFormatter, "gpt-5.1", "openai_responses"),
    "responses native": Goal(subscription, NativeFormatter, "gpt-5.1", "openai_responses"),
    "gemini native": Goal(GeminiAdapter, NativeFormatter, "gemini-2.5-flash", "gemini"),
    "gemini transcript": Goal(GeminiAdapter, transcript, "gemini-2.5-flash", "gemini"),
}
WITH_CALLS = {name: exchange for name, exchange in EXCHANGES.items() if exchange.wanted.get("tool_calls")}


@pytest.fixture(scope="module")
def answers() -> dict[str, Response]:
    """Each recorded answer, read once."""
    return {}


def answer_of(exchange: Exchange, answers: dict[str, Response]) -> Response:
    if exchange.id not in answers:
        given = result(exchange, streamed if exchange.streamed else completed)
        assert isinstance(given, Response)
        answers[exchange.id] = given
    return answers[exchange.id]


def conversation(response: Response) -> list[Message]:
    calls = [block for block in response.content if isinstance(block, ToolUse)]
    return [
        Message("Ann", [Text("What is the weather?")]),
        *response.as_messages(),
        Message("User", [ToolResultBlock(call.id, f"result {number}") for number, call in enumerate(calls)]),
        Message("Bob", [Text("And tomorrow?")]),
    ]


def request_of(goal: Goal, response: Response) -> dict[str, Any]:
    names = dict.fromkeys(block.name for block in response.content if isinstance(block, ToolUse))
    return {
        "messages": conversation(response),
        "tools": [{"name": name, "description": "A tool."} for name in names if name.strip()],
        "config": {"model": goal.model, "max_tokens": 64},
    }


def received(request: HttpRequest) -> Received:
    """The request as a server would have received it."""
    parts = urlsplit(request.url)
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    return Received(
        request.method,
        target,
        headers=tuple(request.headers),
        body=request.body,
        raw=b"",
        number=1,
        connection=1,
        format=format_of(target),
    )


class Turn(NamedTuple):
    """What of a message the four rules speak of, whatever its format. side: "user" or "assistant"."""

    side: str
    texts: list[str]
    calls: list[str]
    results: list[str]


def turns_of_messages(body: Any) -> list[Turn]:
    """Anthropic's form, Bedrock's too."""
    return [
        Turn(
            message["role"],
            [block["text"] for block in message["content"] if block["type"] == "text"],
            [block["id"] for block in message["content"] if block["type"] == "tool_use"],
            [block["tool_use_id"] for block in message["content"] if block["type"] == "tool_result"],
        )
        for message in body["messages"]
    ]


def turns_of_chat(body: Any) -> list[Turn]:
    """Tool messages are the beginning of the user's turn."""
    turns = []
    for message in body["messages"]:
        content = message.get("content")
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        texts = [part["text"] for part in parts if part["type"] == "text"]
        if message["role"] == "tool":
            turns.append(Turn("user", texts, [], [message["tool_call_id"]]))
        elif message["role"] != "system":
            calls = [call["id"] for call in message.get("tool_calls", ())]
            turns.append(Turn(message["role"], texts, calls, []))
    return turns


def turns_of_contents(body: Any) -> list[Turn]:
    """Gemini's form; calls are told apart by their names, and in each turn by their order."""
    return [
        Turn(
            {"user": "user", "model": "assistant"}[content["role"]],
            [part["text"] for part in content["parts"] if "text" in part and not part.get("thought")],
            [part["functionCall"]["name"] for part in content["parts"] if "functionCall" in part],
            [part["functionResponse"]["name"] for part in content["parts"] if "functionResponse" in part],
        )
        for content in body["contents"]
    ]


CALL_ITEMS = ("function_call", "custom_tool_call")
OUTPUT_ITEMS = ("function_call_output", "custom_tool_call_output")


def turns_of_items(body: Any) -> list[Turn]:
    """Responses' flat list; what is no message, call or output (reasoning, a server's tools) is the model's own."""
    turns = []
    for item in body["input"]:
        if item["type"] == "message":
            turns.append(Turn(item["role"], [part["text"] for part in item["content"] if "text" in part], [], []))
        elif item["type"] in CALL_ITEMS:
            turns.append(Turn("assistant", [], [item["call_id"]], []))
        elif item["type"] in OUTPUT_ITEMS:
            turns.append(Turn("user", [], [], [item["call_id"]]))
    return turns


TURNS: Mapping[str, Callable[[Any], list[Turn]]] = {
    "anthropic": turns_of_messages,
    "bedrock": turns_of_messages,
    "chat": turns_of_chat,
    "openrouter": turns_of_chat,
    "gemini": turns_of_contents,
    "openai_responses": turns_of_items,
}
# Formats whose messages are turns, so that two neighbours of one side are a fault; elsewhere they are joined first.
TURN_BY_TURN = ("anthropic", "bedrock", "gemini")


def joined(turns: list[Turn]) -> list[Turn]:
    """Neighbours of one side as one turn."""
    whole: list[Turn] = []
    for turn in turns:
        if whole and whole[-1].side == turn.side:
            before = whole.pop()
            turn = Turn(turn.side, *(a + b for a, b in zip(before[1:], turn[1:])))
        whole.append(turn)
    return whole


def broken_rules(format: str, body: Any) -> list[str]:
    turns = TURNS[format](body)
    whole = joined(turns)
    answered = [before.calls == behind.results for before, behind in zip(whole, [*whole[1:], Turn("user", [], [], [])])]
    kept = {
        "a user speaks first": whole[0].side == "user" and not whole[0].results,
        "turns alternate": format not in TURN_BY_TURN or turns == whole,
        "every call is answered right behind it, and nothing else is": all(answered),
        "no text is empty": all(text.strip() for turn in turns for text in turn.texts),
    }
    return [rule for rule, is_kept in kept.items() if not is_kept]


BROKEN: dict[str, tuple[list[Any], list[str]]] = {
    "well formed": (
        [
            {"role": "user", "content": [{"type": "text", "text": "a"}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "1"}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1"}]},
        ],
        [],
    ),
    "an assistant first": ([{"role": "assistant", "content": []}], ["a user speaks first"]),
    "two of a side": ([{"role": "user", "content": []}] * 2, ["turns alternate"]),
    "an open call": (
        [{"role": "user", "content": []}, {"role": "assistant", "content": [{"type": "tool_use", "id": "1"}]}],
        ["every call is answered right behind it, and nothing else is"],
    ),
    "a result of nothing": (
        [
            {"role": "user", "content": []},
            {"role": "assistant", "content": []},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1"}]},
        ],
        ["every call is answered right behind it, and nothing else is"],
    ),
    "a blank text": ([{"role": "user", "content": [{"type": "text", "text": " \n"}]}], ["no text is empty"]),
}


@pytest.mark.parametrize("messages, rules", BROKEN.values(), ids=BROKEN)
def test_the_rules_find_what_breaks_them(messages: list[Any], rules: list[str]) -> None:
    assert broken_rules("anthropic", {"messages": messages}) == rules


@pytest.mark.parametrize("exchange", WITH_CALLS.values(), ids=WITH_CALLS)
@pytest.mark.parametrize("goal", GOALS.values(), ids=GOALS)
def test_a_recorded_answer_goes_back_as_its_provider_accepts_it(
    goal: Goal, exchange: Exchange, answers: dict[str, Response]
) -> None:
    response = answer_of(exchange, answers)
    rendered = goal.adapter().render(request_of(goal, response), formatter=goal.formatter())
    asked = received(rendered)
    assert asked.format is not None
    refused: Any = asked.format.check(asked)
    assert refused is None, b"".join(refused.plan(asked.format, None).pieces)
    assert broken_rules(asked.format.name, asked.json) == []


def test_there_are_recorded_answers_with_calls_for_every_format() -> None:
    """Where the corpus is there; without it there is nothing to send back."""
    folders = {exchange.id.partition("/")[0] for exchange in WITH_CALLS.values()}
    own = {goal.of for goal in GOALS.values()}
    assert not WITH_CALLS or own <= folders
