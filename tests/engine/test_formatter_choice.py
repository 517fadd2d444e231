"""Which formatter a call is made with, and what is said of one that cannot be used, before anything is sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from stage import FACES, REQUEST

from membrane_lite import (
    AnthropicAdapter,
    BedrockAdapter,
    GeminiAdapter,
    Membrane,
    MembraneError,
    MockAdapter,
    NativeFormatter,
    OpenAIAdapter,
    OpenAICompatibleAdapter,
    OpenAICompletionsAdapter,
    OpenAIImagesAdapter,
    OpenAIResponsesFormatter,
    OpenRouterAdapter,
)
from membrane_lite.loopback import LoopbackProvider

each_face = pytest.mark.parametrize("face", FACES.values(), ids=FACES)


class Silent:
    """One of the caller's own that does not say whether it carries tools."""

    name = "silent"

    def conversation(self, request: Any, settings: Any) -> Any:
        return NativeFormatter().conversation(request, settings)


SILENT = "formatter: Silent has no 'supports_native_tools'; expected True or False"


def refusal(call: Callable[[], Any]) -> tuple[str, str]:
    with pytest.raises(MembraneError) as raised:
        call()
    assert raised.value.retryable is False
    return raised.value.type, raised.value.message


@each_face
def test_a_formatter_that_does_not_say_what_it_can(face: Callable[..., Any]) -> None:
    assert refusal(lambda: face(Membrane(MockAdapter()), formatter=Silent())) == ("invalid_request", SILENT)


def test_it_is_refused_where_it_is_given() -> None:
    given: Any = Silent()
    assert refusal(lambda: Membrane(MockAdapter(), formatter=given)) == ("invalid_request", SILENT)
    adapter = AnthropicAdapter(api_key="k")
    assert refusal(lambda: adapter.render(REQUEST, formatter=given)) == ("invalid_request", SILENT)


# Adapters that take no input items of OpenAI's Responses API -> the formatter to use.
NO_ITEMS: dict[str, tuple[Callable[[str], Any], str]] = {
    "anthropic": (lambda url: AnthropicAdapter(api_key="k", base_url=url), "AnthropicXmlFormatter"),
    "bedrock": (lambda url: BedrockAdapter(api_key="k", base_url=url), "AnthropicXmlFormatter"),
    "openai": (lambda url: OpenAIAdapter(api_key="k", base_url=url), "AnthropicXmlFormatter"),
    "openai-compatible": (lambda url: OpenAICompatibleAdapter(base_url=url), "AnthropicXmlFormatter"),
    "openrouter": (lambda url: OpenRouterAdapter(api_key="k", base_url=url), "AnthropicXmlFormatter"),
    "gemini": (lambda url: GeminiAdapter(api_key="k", base_url=url), "AnthropicXmlFormatter"),
    "openai-completions": (lambda url: OpenAICompletionsAdapter(base_url=url), "CompletionsFormatter"),
    "openai-images": (lambda url: OpenAIImagesAdapter(api_key="k", base_url=url), "NativeFormatter"),
}


@each_face
@pytest.mark.parametrize("adapter, better", NO_ITEMS.values(), ids=NO_ITEMS)
def test_input_items_are_for_the_responses_api(
    adapter: Callable[[str], Any], better: str, face: Callable[..., Any]
) -> None:
    with LoopbackProvider([]) as provider, adapter(provider.url) as speaker:
        words = (
            "unsupported",
            f"formatter: 'openai-responses' writes input items, which {speaker.name} does not take; pass "
            f"formatter={better}(), or none (nothing was sent)",
        )
        membrane = Membrane(speaker)
        assert refusal(lambda: face(membrane, REQUEST, formatter=OpenAIResponsesFormatter())) == words
        assert refusal(lambda: speaker.render(REQUEST, formatter=OpenAIResponsesFormatter())) == words
        assert provider.request_count == 0


@each_face
def test_an_adapter_of_another_kind_may_take_them(face: Callable[..., Any]) -> None:
    adapter = MockAdapter(default_response="Hello")
    assert face(Membrane(adapter), REQUEST, formatter=OpenAIResponsesFormatter()).text == "Hello"
