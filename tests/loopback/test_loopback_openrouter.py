"""The exact bytes of OpenRouter's form of chat completions, without a server."""

from __future__ import annotations

from membrane_lite.loopback import RedactedThinking, Reply, Thinking, Usage, openrouter
from membrane_lite.loopback.format import Asked

ASKED = Asked(body={"model": "v/m", "stream_options": {"include_usage": True}}, number=7)
REPLY = Reply(Thinking("Noon?", signature="s"), RedactedThinking("e"), "Yes.", usage=Usage(9, 3))
HEAD = '{"id":"chatcmpl-loopback-000007","object":"chat.completion%s","created":1750000000,"model":"v/m","choices":'
COUNTS = (
    '{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12,"prompt_tokens_details":{"cached_tokens":0},'
    '"completion_tokens_details":{"reasoning_tokens":2},"cost":1.2e-05}'
)
TEXT = '"type":"reasoning.text"'
LAST = '"format":"anthropic-claude-v1","index"'


def chunk(delta: str, reason: str = "null") -> str:
    choice = f'{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{reason},"native_finish_reason":{reason}}}'
    return f'data: {HEAD % ".chunk"}[{choice}],"usage":null,"provider":"Loopback"}}\n\n'


def test_a_stream() -> None:
    assert b"".join(openrouter.events(REPLY, ASKED)).decode() == (
        ": OPENROUTER PROCESSING\n\n"
        + chunk('{"role":"assistant","content":""}')
        + chunk(
            f'{{"content":"","reasoning":"Noon?","reasoning_details":[{{{TEXT},"text":"Noon?",{LAST}:0}}]}}',
        )
        + chunk(f'{{"content":"","reasoning_details":[{{{TEXT},"signature":"s",{LAST}:0}}]}}')
        + chunk(
            '{"content":"","reasoning":null,"reasoning_details":'
            f'[{{"type":"reasoning.encrypted","data":"e",{LAST}:1}}]}}'
        )
        + chunk('{"content":"Yes."}')
        + chunk("{}", '"stop"')
        + f'data: {HEAD % ".chunk"}[],"usage":{COUNTS},"provider":"Loopback"}}\n\n'
        + "data: [DONE]\n\n"
    )


def test_a_document() -> None:
    assert openrouter.document(REPLY, ASKED).decode() == (
        f'{HEAD % ""}[{{"index":0,"message":{{"role":"assistant","content":"Yes.","refusal":null,"reasoning":"Noon?",'
        f'"reasoning_details":[{{{TEXT},"text":"Noon?","signature":"s",{LAST}:0}},'
        f'{{"type":"reasoning.encrypted","data":"e",{LAST}:1}}]}},"logprobs":null,"finish_reason":"stop",'
        f'"native_finish_reason":"stop"}}],"usage":{COUNTS},"provider":"Loopback"}}'
    )


def test_an_error_in_the_middle_of_a_stream() -> None:
    assert openrouter.error_event("429", "Slow down") == (
        b'data: {"object":"chat.completion.chunk","provider":"Loopback","choices":[{"index":0,"delta":{"content":""},'
        b'"finish_reason":"error","native_finish_reason":"error"}],'
        b'"error":{"code":429,"message":"Slow down","metadata":{"provider_name":"Loopback"}}}\n\n'
    )
