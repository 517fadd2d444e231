"""Anthropic: one question, answered with thinking, as a stream of named events.

python examples/anthropic.py                           against loopback
ANTHROPIC_API_KEY=... python examples/anthropic.py     for real, too
"""

import os
from typing import Any

from membrane_lite import AnthropicAdapter, Membrane
from membrane_lite.loopback import LoopbackProvider, Reply, Thinking, anthropic

REQUEST: Any = {
    "system": "Answer in one sentence.",  # goes out with a cache marker
    "messages": [{"participant": "Ann", "content": "What is a prime number?"}],
    "config": {
        "model": "claude-sonnet-4-5",
        "max_tokens": 2048,
        "thinking": {"enabled": True, "budget_tokens": 1024},
    },
}
ANSWER = Reply(Thinking("A definition, then."), "A number with two divisors.")


def show(adapter: AnthropicAdapter) -> None:
    request = adapter.render(REQUEST, stream=True)
    print("--- the request:", request.method, request.url)
    print(request.body.decode())
    print("--- the chunks")
    response: Any = Membrane(adapter).stream(REQUEST, on_chunk=lambda text, meta: print(f"{meta.type}: {text!r}"))
    print("--- the result:", response.text, "/", response.stop_reason, "/", response.usage)
    for block in response.as_messages()[0].content:
        print("block:", block)  # the signature goes back with the thinking


with LoopbackProvider([ANSWER]) as provider, provider.transport() as transport:
    print("--- the events of the answer")
    print(b"".join(anthropic.events(ANSWER)).decode())
    show(AnthropicAdapter(api_key="any", base_url=provider.url, transport=transport))

if os.environ.get("ANTHROPIC_API_KEY"):
    with AnthropicAdapter() as real:
        show(real)
