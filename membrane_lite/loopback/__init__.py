"""A provider on 127.0.0.1: it speaks the wire formats over real sockets, answers by a script, and fails on demand.

It needs no key and no network, is made of the standard library, and serves any HTTP client. Look at a stream with curl:

    from membrane_lite.loopback import LoopbackProvider, Reply, Thinking, ToolCall, failures, faults

    provider = LoopbackProvider([Reply("Hello, world!")] * 100, port=8099)

    curl -N http://127.0.0.1:8099/v1/messages -H "x-api-key: any" -H "anthropic-version: 2023-06-01" \\
         -d '{"model": "m", "max_tokens": 64, "messages": [{"role": "user", "content": "Hi"}], "stream": true}'
    curl -N http://127.0.0.1:8099/v1/chat/completions \\
         -d '{"model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": true}'

Or with the client, which here is overloaded twice, calls a tool, and says good-bye; then look at what it sent:

    script = [*failures(2, 529), Reply(Thinking("Noon?"), ToolCall("get_time", {"zone": "UTC"})), Reply("It is noon.")]
    with LoopbackProvider(script) as provider, provider.transport() as transport:
        adapter = AnthropicAdapter(api_key="any", base_url=provider.url, transport=transport)
        ...
        print(provider.requests[0].raw.decode())

A script is a list, or a function `(received) -> answer`, such as `lambda received: Reply(received.last_user_text)`.
An answer is a Reply, said in the format it is asked in; a Raw, bytes as they are; a Failure, an HTTP error; or one of
these with a fault, as in `faults.reset(Reply("Hello"), after=3)`. A request that the provider would refuse is refused
in its words: try one without max_tokens. Each format is a module of its own, usable without a server:
`b"".join(anthropic.events(Reply("Hello")))` is a stream, `chat.document(Reply("Hello"))` a whole answer.
"""

from __future__ import annotations

from . import anthropic as anthropic
from . import bedrock as bedrock
from . import chat as chat
from . import embeddings as embeddings
from . import faults as faults
from . import gemini as gemini
from . import openai_completions as openai_completions
from . import openai_images as openai_images
from . import openai_responses as openai_responses
from . import openrouter as openrouter
from .answers import Drip as Drip
from .answers import Failure as Failure
from .answers import Raw as Raw
from .answers import failures as failures
from .provider import LoopbackProvider as LoopbackProvider
from .received import Received as Received
from .replies import Image as Image
from .replies import RedactedThinking as RedactedThinking
from .replies import Reply as Reply
from .replies import Text as Text
from .replies import Thinking as Thinking
from .replies import ToolCall as ToolCall
from .replies import Usage as Usage
