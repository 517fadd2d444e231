"""Any server that speaks chat completions: Ollama, vLLM, llama.cpp, Groq, DeepSeek, ...

python examples/openai_compatible.py                                                         against loopback
CHAT_URL=http://localhost:11434/v1 CHAT_MODEL=qwen3 python examples/openai_compatible.py     for real, too
"""

import os
from typing import Any

from membrane_lite import Membrane, OpenAICompatibleAdapter
from membrane_lite.loopback import LoopbackProvider, Reply, Thinking, chat

REQUEST: Any = {
    "messages": [{"participant": "Ann", "content": "What is a prime number?"}],
    "config": {"model": os.environ.get("CHAT_MODEL", "qwen3"), "max_tokens": 512},
    "provider_params": {"stream_options": {"include_usage": True}},  # not every server takes it
}
ANSWER = Reply(Thinking("A definition, then."), "A number with two divisors.")


def show(adapter: OpenAICompatibleAdapter) -> None:
    request = adapter.render(REQUEST, stream=True)
    print("--- the request:", request.method, request.url)
    print(request.body.decode())
    print("--- the chunks")
    response: Any = Membrane(adapter).stream(REQUEST, on_chunk=lambda text, meta: print(f"{meta.type}: {text!r}"))
    print("--- the result:", response.text, "/", response.stop_reason, "/", response.usage)
    for block in response.content:
        print("block:", block)


with LoopbackProvider([ANSWER]) as provider, provider.transport() as transport:
    print("--- the events of the answer")
    print(b"".join(chat.events(ANSWER)).decode())
    show(OpenAICompatibleAdapter(base_url=provider.url + "/v1", transport=transport))

if os.environ.get("CHAT_URL"):
    key = os.environ.get("CHAT_API_KEY")
    with OpenAICompatibleAdapter(base_url=os.environ["CHAT_URL"], api_key=key) as real:
        show(real)
