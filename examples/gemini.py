"""Gemini: a tool, two rounds. A call's thoughtSignature comes on its part, and goes back on the same part.

python examples/gemini.py                        against loopback
GOOGLE_API_KEY=... python examples/gemini.py     for real, too
"""

import os
from typing import Any

from membrane_lite import GeminiAdapter, Membrane, ToolResult
from membrane_lite.loopback import LoopbackProvider, Reply, Thinking, ToolCall, gemini

REQUEST: Any = {
    "messages": [{"participant": "Ann", "content": "How warm is it in Bern?"}],
    "config": {"model": "gemini-2.5-flash", "max_tokens": 2048, "thinking": {"type": "adaptive"}},
    "tools": [
        {
            "name": "get_weather",
            "description": "The weather in a city, now",
            "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        }
    ],
    "provider_params": {"generationConfig": {"seed": 7}},  # merged key by key, the rest of the body last
}
CALL = Reply(Thinking("I must look."), ToolCall("get_weather", {"city": "Bern"}))
ANSWER = Reply("It is 12 degrees.")


def run_tools(calls: Any) -> Any:
    return [ToolResult(tool_use_id=call.id, content=f"{call.input['city']}: 12 degrees") for call in calls]


def show(adapter: GeminiAdapter) -> None:
    request = adapter.render(REQUEST, stream=True)
    print("--- the first request:", request.method, request.url)
    print(request.body.decode())
    response: Any = Membrane(adapter).stream(REQUEST, on_tool_calls=run_tools)
    print("--- the last request's contents")
    for content in response.raw.request["contents"]:
        print(content)
    print("--- the result:", response.text, "/", response.stop_reason, "/", response.usage)


with LoopbackProvider([CALL, ANSWER]) as provider, provider.transport() as transport:
    print("--- the events of the first answer")
    print(b"".join(gemini.events(CALL)).decode())
    show(GeminiAdapter(api_key="any", base_url=provider.url + "/v1beta", transport=transport))

if os.environ.get("GOOGLE_API_KEY"):
    with GeminiAdapter() as real:
        show(real)
