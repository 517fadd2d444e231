"""Claude on AWS Bedrock: Anthropic's body, signed; the answer's events in binary frames. A tool, two rounds.

python examples/bedrock.py                                                     against loopback, which checks signatures
AWS_ACCESS_KEY_ID=... AWS_SECRET_ACCESS_KEY=... python examples/bedrock.py     for real, too
AWS_BEARER_TOKEN_BEDROCK=... python examples/bedrock.py                        for real, with a Bedrock API key
"""

import os
from typing import Any

from membrane_lite import BedrockAdapter, Membrane, ToolResult
from membrane_lite.loopback import LoopbackProvider, Reply, Thinking, ToolCall, bedrock
from membrane_lite.wire.eventstream import iter_frames

REQUEST: Any = {
    "messages": [{"participant": "Ann", "content": "How warm is it in Bern?"}],
    "config": {"model": "claude-sonnet-4-5", "max_tokens": 2048, "thinking": {"budget_tokens": 1024}},
    "tools": [
        {
            "name": "get_weather",
            "description": "The weather in a city, now",
            "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        }
    ],
}
CALL = Reply(Thinking("I must look."), ToolCall("get_weather", {"city": "Bern"}))
ANSWER = Reply("It is 12 degrees.")
KEYS = {
    "access_key_id": bedrock.ACCESS_KEY_ID,
    "secret_access_key": bedrock.KEYS[bedrock.ACCESS_KEY_ID].secret_access_key,
}


def run_tools(calls: Any) -> Any:
    return [ToolResult(tool_use_id=call.id, content=f"{call.input['city']}: 12 degrees") for call in calls]


def show(adapter: BedrockAdapter) -> None:
    request = adapter.render(REQUEST, stream=True)
    print("--- the request:", request)  # its repr hides the signature, adapter.render(...).headers does not
    print(request.body.decode())
    response: Any = Membrane(adapter).stream(REQUEST, on_tool_calls=run_tools)
    print("--- the last request's messages")
    for message in response.raw.request["messages"]:
        print(message)
    print("--- the result:", response.text, "/", response.stop_reason, "/", response.usage)


with LoopbackProvider([CALL, ANSWER]) as provider, provider.transport() as transport:
    print("--- the frames of the first answer; in `bytes` stands an event of Anthropic's, base64")
    for frame in iter_frames(bedrock.events(CALL)):
        print(frame.headers[":event-type"], frame.payload.decode())
    show(BedrockAdapter(**KEYS, region="us-east-1", base_url=provider.url, transport=transport))

if os.environ.get("AWS_ACCESS_KEY_ID") or os.environ.get("AWS_BEARER_TOKEN_BEDROCK"):
    with BedrockAdapter() as real:
        show(real)
