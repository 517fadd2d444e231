"""Completions, for base models: the conversation is one prompt, and the model goes on writing it.

python examples/openai_completions.py                                                       against loopback
COMPLETIONS_URL=http://localhost:8000/v1 COMPLETIONS_MODEL=... python examples/openai_completions.py    for real
"""

import os

from membrane_lite import Membrane, OpenAICompletionsAdapter
from membrane_lite.loopback import LoopbackProvider, Reply, openai_completions

REQUEST = {
    "system": "A chat between Ann and Claude.",
    "messages": [
        {"participant": "Ann", "content": "Hello!"},
        {"participant": "Claude", "content": "Hello, Ann."},
        {"participant": "Ann", "content": "What is a base model?"},
    ],
    "config": {"model": os.environ.get("COMPLETIONS_MODEL", "davinci-002"), "max_tokens": 64},
}
# A server that knows no stop sequence goes on: the answer ends at the eot token all the same, and so does the reading.
ANSWER = Reply(" One that only goes on writing.<|eot|>\n\nAnn: I see.")


def show(adapter: OpenAICompletionsAdapter) -> None:
    request = adapter.render(REQUEST, stream=True)
    print("--- the request:", request.method, request.url)
    print(request.body.decode())  # the prompt, and in `stop` everybody who would speak next
    response = Membrane(adapter).stream(REQUEST, on_chunk=lambda text, meta: print("chunk:", repr(text)))
    print("--- the result:", repr(response.text), "/", response.stop_reason, "/", response.details.stop.provider_reason)
    print(response.usage.unreported)  # counts that a stream gives only where stream_options asks for them


with LoopbackProvider([ANSWER]) as provider, provider.transport() as transport:
    print("--- the events of the answer")
    print(b"".join(openai_completions.events(ANSWER)).decode())
    show(OpenAICompletionsAdapter(base_url=provider.url + "/v1", transport=transport))

if os.environ.get("COMPLETIONS_URL"):
    with OpenAICompletionsAdapter(
        base_url=os.environ["COMPLETIONS_URL"],
        api_key=os.environ.get("COMPLETIONS_API_KEY"),
        strip_leading_whitespace=True,  # of response.text; the chunks come as the model writes them
    ) as real:
        show(real)
