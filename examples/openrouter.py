"""OpenRouter: Claude, routed to one provider, thinking; its reasoning_details go back with the history.

python examples/openrouter.py                            against loopback
OPENROUTER_API_KEY=... python examples/openrouter.py     for real, too
"""

import os
from typing import Any

from membrane_lite import Membrane, OpenRouterAdapter
from membrane_lite.loopback import LoopbackProvider, Reply, Thinking, openrouter

REQUEST: Any = {
    "system": "Answer in one sentence.",  # goes out with a cache marker
    "messages": [{"participant": "Ann", "content": "What is a prime number?"}],
    "config": {"model": "anthropic/claude-haiku-4.5", "max_tokens": 2048},
    "provider_params": {"provider": {"only": ["anthropic"]}, "reasoning": {"max_tokens": 1024}},
}
SCRIPT = [
    Reply(Thinking("A definition, then."), "A number with two divisors."),
    Reply("Because one has a single divisor."),
]


def show(adapter: OpenRouterAdapter) -> None:
    request = adapter.render(REQUEST, stream=True)
    print("--- the request:", request.method, request.url)
    print(request.body.decode())
    membrane = Membrane(adapter)
    response: Any = membrane.stream(REQUEST)
    for block in response.content:
        print("block:", block)  # the details are the raw_item of the thinking
    print("--- the result:", response.text, "/", response.stop_reason)
    print("cost:", response.details.usage.provider_cost, "by", response.raw.response["provider"])
    question = {"participant": "Ann", "content": "Why is 1 none?"}
    history = [*REQUEST["messages"], *response.as_messages(), question]
    print("--- the answer, as it goes back")
    print(membrane.stream({**REQUEST, "messages": history}).raw.request["messages"][2])


with LoopbackProvider(SCRIPT) as provider, provider.transport() as transport:
    print("--- the events of the first answer")
    print(b"".join(openrouter.events(SCRIPT[0])).decode())
    show(OpenRouterAdapter(api_key="any", base_url=provider.url + "/api/v1", transport=transport))

if os.environ.get("OPENROUTER_API_KEY"):
    with OpenRouterAdapter() as real:
        show(real)
