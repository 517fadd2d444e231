"""OpenAI's Responses API: a flat list of items each way. Nothing is stored there, so every item goes back as it came.

python examples/openai_responses.py                       against loopback
OPENAI_API_KEY=... python examples/openai_responses.py    for real
"""

import json
import os

from membrane_lite import Membrane, OpenAIResponsesAPIAdapter
from membrane_lite.loopback import LoopbackProvider, Reply, Thinking, ToolCall, openai_responses

REQUEST = {
    "system": "Use the tool, then answer in one sentence.",
    "messages": [{"participant": "User", "content": "What is the weather in Bern?"}],
    "tools": [
        {
            "name": "get_weather",
            "description": "The weather in a city.",
            "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        }
    ],
    "config": {"model": "gpt-5.1", "max_tokens": 2048},
    "provider_params": {"reasoning": {"effort": "low", "summary": "auto"}},  # any field of the API's own
}
ANSWERS = [
    Reply(Thinking("They want the weather.", signature="ZW5jcnlwdGVk"), ToolCall("get_weather", {"city": "Bern"})),
    Reply("It is sunny in Bern."),
]


def get_weather(calls: list) -> list:
    return [{"tool_use_id": call.id, "content": f"Sunny in {call.input['city']}."} for call in calls]


def show(adapter: OpenAIResponsesAPIAdapter) -> None:
    request = adapter.render(REQUEST, stream=True)
    print("--- the request:", request.method, request.url)
    print(request.body.decode())
    sent = []
    response = Membrane(adapter).stream(REQUEST, on_tool_calls=get_weather, on_request=sent.append)
    print("--- the second request's items: the reasoning, encrypted, and the call as they came; then the result")
    for item in sent[-1]["input"]:
        print(json.dumps(item)[:200])
    print("--- the result:", response.text, "/", response.stop_reason, "/", [block.type for block in response.content])
    print(response.usage)


with LoopbackProvider(ANSWERS) as provider, provider.transport() as transport:
    print("--- the events of the first answer")
    print(b"".join(openai_responses.events(ANSWERS[0])).decode())
    show(OpenAIResponsesAPIAdapter(api_key="any", base_url=provider.url + "/v1", transport=transport))

if os.environ.get("OPENAI_API_KEY"):
    with OpenAIResponsesAPIAdapter() as real:
        show(real)
