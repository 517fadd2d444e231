"""A structured answer: one object of a class, asked for in each provider's own form.

python examples/structured_output.py                           against loopback
ANTHROPIC_API_KEY=... python examples/structured_output.py     for real, too
"""

import json
import os
from dataclasses import dataclass, field
from typing import Any

from membrane_lite import AnthropicAdapter, GeminiAdapter, LlmContractViolation, Membrane, OpenAIAdapter
from membrane_lite.loopback import LoopbackProvider, Reply, ToolCall


@dataclass
class Ticket:
    "What a customer wants."

    summary: str
    urgent: bool = False
    products: list[str] = field(default_factory=list)


def request(model: str) -> Any:
    message = {"participant": "Ann", "content": "My kettle smokes, and the toaster is dead. Help!"}
    return {"messages": [message], "config": {"model": model, "max_tokens": 2048}}


ANSWER = {"summary": "Two appliances fail.", "urgent": True, "products": ["kettle", "toaster"]}
WAYS: Any = [  # adapter, path, model, and what such a model answers with
    (AnthropicAdapter, "", "claude-sonnet-4-5", Reply(ToolCall("emit", ANSWER))),  # a tool that must be called
    (AnthropicAdapter, "", "claude-opus-5-5", Reply(json.dumps(ANSWER))),  # a format: it cannot be made to call one
    (OpenAIAdapter, "/v1", "gpt-5-mini", Reply(json.dumps(ANSWER))),
    (GeminiAdapter, "/v1beta", "gemini-3-pro", Reply(json.dumps(ANSWER))),
]


def show(adapter: Any, model: str) -> None:
    print("--- the request:", adapter.render(request(model), schema=Ticket).body.decode())
    ticket = Membrane(adapter).complete_object(
        request(model), schema=Ticket, on_complete=lambda response: print("usage:", response.usage)
    )
    print("--- the result:", ticket)


for make, path, model, reply in WAYS:
    with LoopbackProvider([reply, Reply("A kettle, I think.")]) as provider, provider.transport() as transport:
        adapter = make(api_key="any", base_url=provider.url + path, transport=transport)
        show(adapter, model)
        try:
            Membrane(adapter).complete_object(request(model), schema=Ticket)
        except LlmContractViolation as error:
            print("--- an answer that does not fit:", error)

if os.environ.get("ANTHROPIC_API_KEY"):
    with AnthropicAdapter() as real:
        show(real, "claude-sonnet-4-5")
