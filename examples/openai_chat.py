"""OpenAI, chat completions: one question, one tool, two rounds.

python examples/openai_chat.py                        against loopback
OPENAI_API_KEY=... python examples/openai_chat.py     for real, too
"""

import os
from typing import Any

from membrane_lite import Membrane, OpenAIAdapter, ToolResult
from membrane_lite.loopback import LoopbackProvider, Reply, ToolCall, chat

REQUEST: Any = {
    "messages": [{"participant": "Ann", "content": "How warm is it in Bern?"}],
    "config": {"model": "gpt-5-mini", "max_tokens": 1024, "temperature": 0.2},  # it takes none: left out
    "tools": [
        {
            "name": "get_weather",
            "description": "The weather in a city, now",
            "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        }
    ],
    "provider_params": {"reasoning_effort": "low"},  # merged into the body last
}
CALL, ANSWER = Reply(ToolCall("get_weather", {"city": "Bern"})), Reply("It is 12 degrees.")


def run_tools(calls: Any) -> Any:
    return [ToolResult(tool_use_id=call.id, content=f"{call.input['city']}: 12 degrees") for call in calls]


def show(adapter: OpenAIAdapter) -> None:
    request = adapter.render(REQUEST, stream=True)
    print("--- the first request:", request.method, request.url)
    print(request.body.decode())
    response: Any = Membrane(adapter).stream(REQUEST, on_tool_calls=run_tools)
    print("--- the last request's messages")
    for message in response.raw.request["messages"]:
        print(message)
    print("--- the result:", response.text, "/", response.stop_reason, "/", response.usage)


with LoopbackProvider([CALL, ANSWER]) as provider, provider.transport() as transport:
    print("--- the events of the first answer")
    print(b"".join(chat.events(CALL)).decode())
    show(OpenAIAdapter(api_key="any", base_url=provider.url + "/v1", transport=transport))

if os.environ.get("OPENAI_API_KEY"):
    with OpenAIAdapter() as real:
        show(real)
