"""What providers really answered, sent back: each recorded answer with tool calls, in every form a formatter gives it.

The conversation is: a question, the recorded answer, results of its calls, one more question. The request that it
makes is held against the published rules of the provider it goes to, as the loopback provider knows them.
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


GOALS: Mapping[str, Goal] = {
    "anthropic native": Goal(AnthropicAdapter, NativeFormatter, CLAUDE, "anthropic"),
    "anthropic default": Goal(AnthropicAdapter, AnthropicXmlFormatter, CLAUDE, "anthropic"),
    "anthropic transcript": Goal(AnthropicAdapter, transcript, CLAUDE, "anthropic"),
    "bedrock native": Goal(bedrock, NativeFormatter, "anthropic.claude-sonnet-4-5-20250929-v1:0", "bedrock"),
    "bedrock transcript": Goal(bedrock, transcript, "anthropic.claude-sonnet-4-5-20250929-v1:0", "bedrock"),
    "chat native": Goal(compatible, NativeFormatter, "llama3.3", "openai_compatible"),
    "chat transcript": Goal(compatible, transcript, "llama3.3", "openai_compatible"),
    "openai native": Goal(OpenAIAdapter, NativeFormatter, "gpt-4o", "openai_chat"),
    "openrouter native": Goal(OpenRouterAdapter, NativeFormatter, "anthropic/claude-sonnet-4.5", "openrouter"),
    "openrouter transcript": Goal(OpenRouterAdapter, transcript, "anthropic/claude-sonnet-4.5", "openrouter"),
    "responses": Goal(OpenAIResponsesAPIAdapter, OpenAIResponsesFormatter, "gpt-5.1", "openai_responses"),
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


def test_there_are_recorded_answers_with_calls_for_every_format() -> None:
    """Where the corpus is there; without it there is nothing to send back."""
    folders = {exchange.id.partition("/")[0] for exchange in WITH_CALLS.values()}
    own = {goal.of for goal in GOALS.values()}
    assert not WITH_CALLS or own <= folders
