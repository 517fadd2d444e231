"""One recorded exchange: the bytes a provider sent, served again, and what a client should have made of them.

In goes a file of the corpus; out come a scripted answer, and pairs (seen, wanted) in the corpus's own words. The tables
at the end say how each word of `expected` is read off a result; a word that is in none of them is an error.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from corpora.provider_table import PROVIDERS, Provider

from membrane_lite import Audio, GeneratedImage, MembraneError, Response, Text, Thinking
from membrane_lite.loopback import Raw
from membrane_lite.values.content import joined_text

NOT_COMPARED = ("oracle", "oracle_note", "sdk_differs")
SERVER_TOOL_CALLS = ("server_tool_use", "mcp_tool_use")
LONGEST_MESSAGE = 1_000  # characters of a provider's message that an error repeats


class Exchange:
    """A file of the corpus. `wanted` is its `expected` without the notes on how that was found out."""

    def __init__(self, path: Path) -> None:
        recorded = json.loads(path.read_text(encoding="utf-8"))
        self.id = f"{path.parent.name}/{path.stem}"
        self.provider: Provider = PROVIDERS[path.parent.name]
        self.streamed: bool = recorded["stream"]
        self.status: int = recorded["response"]["status"]
        self.headers: dict[str, str] = recorded["response"]["headers"]
        self.wanted = {name: value for name, value in recorded["expected"].items() if name not in NOT_COMPARED}
        self._body = body_bytes(recorded["response"])

    @property
    def size(self) -> int:
        """Bytes of the body."""
        return len(self._body)

    def answer(self, **how: Any) -> Raw:
        """The recorded answer; how: chunks and framing, as for Raw."""
        return Raw(self.status, self.headers, self._body, **how)

    def compared(self, result: Response | MembraneError) -> tuple[dict[str, Any], dict[str, Any]]:
        """What was seen of each thing that is expected, and what is expected of it."""
        if self.status >= 400:
            return seen_of_refusal(result), wanted_of_refusal(self.wanted, self.headers)
        seen = Seen(result, self.provider)
        names = [name for name in self.wanted if seen.response or name not in NOT_ON_ERRORS]
        return (
            {name: READERS[name](seen, self.wanted[name]) for name in names},
            {name: self.wanted[name] for name in names},
        )


def body_bytes(recorded: Mapping[str, Any]) -> bytes:
    """A body, of which a file holds exactly one form."""
    if "body_base64" in recorded:
        return base64.b64decode(recorded["body_base64"])
    if "body_json" in recorded:
        return json.dumps(recorded["body_json"]).encode()
    return str(recorded["body_text"]).encode()


# Answers of status 400 and above


def seen_of_refusal(error: Any) -> dict[str, Any]:
    return {
        "http_status": error.http_status,
        "provider_error_code": error.provider_error_code,
        "message": error.message,
        "retry_after_ms": error.retry_after_ms,
    }


def wanted_of_refusal(wanted: Mapping[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
    unknown = set(wanted) - set(REFUSAL_WORDS)
    assert not unknown, f"no rule for {unknown} in the expectation of a refusal"
    return {
        "http_status": wanted["status"],
        "provider_error_code": code_of(wanted["error_code"], wanted["error_type"]),
        "message": Containing(wanted["error_message"] or ""),
        "retry_after_ms": wait_of(headers, wanted),
    }


def code_of(code: Any, kind: Any) -> str | None:
    """The first symbolic name of the two; a number only where there is no name."""
    given = [str(value) for value in (code, kind) if value is not None]
    names = [value for value in given if not value.isdigit()]
    return next(iter([*names, *given]), None)


def wait_of(headers: Mapping[str, str], wanted: Mapping[str, Any]) -> int | None:
    """retry-after-ms wins over Retry-After, that over Google's RetryInfo."""
    stated = [
        float(headers["retry-after-ms"]) if "retry-after-ms" in headers else None,
        milliseconds(wanted["retry_after_s"]),
        milliseconds(wanted.get("retry_delay_in_body_s")),
    ]
    return next((round(wait) for wait in stated if wait is not None), None)


def milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000


class Containing:
    """Equal to every text that holds `part`, as far as an error repeats it."""

    def __init__(self, part: str) -> None:
        self._part = part[:LONGEST_MESSAGE]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and self._part in other

    def __repr__(self) -> str:
        return f"...{self._part!r}..."


REFUSAL_WORDS = ("status", "error_code", "error_type", "error_message", "retry_after_s", "retry_delay_in_body_s")


# Other answers


class Seen:
    """A response, or an error with what had come before it, read in the same words."""

    def __init__(self, result: Response | MembraneError, provider: Provider) -> None:
        self.provider = provider
        self.error = result if isinstance(result, MembraneError) else None
        self.response: Any = result if isinstance(result, Response) else None
        self.calls = list(result.tool_calls)
        self.content = list(result.content if isinstance(result, Response) else result.partial_content)
        self.counts: Any = result.usage if isinstance(result, Response) else result.partial_usage

    @property
    def raw(self) -> Any:
        """The provider's answer as a whole."""
        return self.response.raw.response

    @property
    def raw_items(self) -> list[Any]:
        """The provider's own items that blocks carry."""
        return [block.raw_item for block in self.content if block.raw_item is not None]

    def text(self, wanted: str) -> str:
        return joined_text([block for block in self.content if isinstance(block, Text)])

    def thinking(self, wanted: str) -> str:
        return "".join(block.thinking for block in self.content if isinstance(block, Thinking))

    def tool_calls(self, wanted: list[Any]) -> list[Any]:
        """A call to which the service gave no id has one of ours."""
        without_id = {number for number, call in enumerate(wanted) if call["id"] is None}
        return [
            call_in_their_words(call, id=None if number in without_id and call.id else call.id)
            for number, call in enumerate(self.calls)
        ]

    def server_tool_calls(self, wanted: Any) -> list[Any]:
        items = [item for item in self.raw_items if item["type"] in SERVER_TOOL_CALLS]
        return [{name: item[name] for name in ("id", "name", "input")} for item in items]

    def citation_count(self, wanted: Any) -> int:
        """Anthropic's stand on their text, Gemini's in an item of their own, OpenAI's on the parts of a message."""
        cited = [item.get("citations") for item in self.raw_items if item.get("type") == "text"]
        cited += [item["groundingMetadata"].get("groundingChunks") for item in self.raw_items if GROUNDED in item]
        messages = [item["content"] for item in self.raw_items if item.get("type") == "message"]
        cited += [part.get("annotations") for parts in messages for part in parts]
        return sum(len(citations or ()) for citations in cited)

    def thought_signature_count(self, wanted: Any) -> int:
        return sum("thoughtSignature" in item for item in self.raw_items)

    def other_parts(self, wanted: Any) -> list[str]:
        """Gemini's parts that are neither texts nor calls nor media."""
        return [field for item in self.raw_items for field in item if field in OTHER_PARTS]

    def prompt_block_reason(self, wanted: Any) -> Any:
        return self.response.details.stop.category if self.response.stop_reason == "refusal" else None

    def block_types(self, wanted: Any) -> list[str]:
        return [item["type"] for item in self.raw[self.provider.items]]

    def usage(self, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Our disjoint counts, put together as the provider counts."""
        counts = self.counts
        given = {name: reported(counts, name) for name in REQUIRED_COUNTS}
        if self.provider.cached_inside_input and given["input_tokens"] is not None:
            given["input_tokens"] += (counts.cache_read_tokens or 0) + (counts.cache_creation_tokens or 0)
        if given["output_tokens"] is not None and self.response and self.provider.thinking_beside_output(self.raw):
            given["output_tokens"] -= counts.thinking_tokens
        return {
            **given,
            "cached_input_tokens": counts.cache_read_tokens,
            "cache_creation_tokens": counts.cache_creation_tokens,
            "reasoning_tokens": counts.thinking_tokens,
        }

    def status(self, wanted: Any) -> Any:
        return self.raw["status"]

    def stop_reason_raw(self, wanted: Any) -> Any:
        return self.response.details.stop.provider_reason

    def stop_sequence(self, wanted: Any) -> Any:
        return self.response.details.stop.triggered_sequence

    def stop_details(self, wanted: Any) -> Any:
        return {"type": self.raw["stop_details"]["type"], "category": self.response.details.stop.category}

    def refusal(self, wanted: Any) -> Any:
        return self.response.details.stop.refusal if self.response.stop_reason == "refusal" else None

    def model(self, wanted: Any) -> Any:
        return self.response.details.model.actual

    def cost_usd(self, wanted: Any) -> Any:
        return self.counts.provider_cost

    def other_choices(self, wanted: Any) -> Any:
        return [said_by(choice) for choice in self.raw["choices"][1:]]

    def audio_transcript(self, wanted: Any) -> Any:
        return "".join(block.transcript or "" for block in self.content if isinstance(block, Audio))

    def images(self, wanted: Any) -> list[Any]:
        """Each image, with the revised prompt that stands before it."""
        found: list[Any] = []
        prompt: dict[str, str] = {}
        for block in self.content:
            if isinstance(block, GeneratedImage):
                found.append({**image_in_their_words(block), **prompt})
            prompt = {"revised_prompt": block.text} if isinstance(block, Text) else {}
        return found

    def error_inside(self, wanted: Mapping[str, Any]) -> Any:
        """Code and message; the corpus keeps a code's type, an error has it as text."""
        assert self.error is not None, "the answer holds an error, and none was raised"
        code, message = self.error.provider_error_code, self.error.message
        return {
            "code": wanted["code"] if str(wanted["code"]) == code else code,
            "message": wanted["message"] if wanted["message"] in message else message,
        }


def image_in_their_words(image: GeneratedImage) -> dict[str, Any]:
    if image.url is not None:
        return {"kind": "url", "url": image.url}
    return {"kind": "b64", "sha256": hashlib.sha256(base64.b64decode(image.data)).hexdigest()}


def call_in_their_words(call: Any, *, id: str | None) -> dict[str, Any]:
    named = {"id": id, "name": call.name}
    if call.unparseable_input is None:
        return {**named, "input": call.input}
    return {**named, "input": None, "input_raw": call.unparseable_input}


def reported(counts: Any, name: str) -> int | None:
    """A count as the provider gave it: None for a 0 that stands for want of one."""
    count: int = getattr(counts, name)
    return None if name in counts.unreported and count == 0 else count


def said_by(choice: Mapping[str, Any]) -> Any:
    return choice["text"] if "text" in choice else choice["message"]["content"]


REQUIRED_COUNTS = ("input_tokens", "output_tokens")
GROUNDED = "groundingMetadata"
OTHER_PARTS = ("executableCode", "codeExecutionResult")
NOT_ON_ERRORS = ("model", "status", "stop_reason_raw", "stop_sequence", "block_types")

READERS: Mapping[str, Callable[[Seen, Any], Any]] = {
    "text": Seen.text,
    "thinking": Seen.thinking,
    "tool_calls": Seen.tool_calls,
    "server_tool_calls": Seen.server_tool_calls,
    "citation_count": Seen.citation_count,
    "thought_signature_count": Seen.thought_signature_count,
    "other_parts": Seen.other_parts,
    "prompt_block_reason": Seen.prompt_block_reason,
    "block_types": Seen.block_types,
    "usage": Seen.usage,
    "status": Seen.status,
    "stop_reason_raw": Seen.stop_reason_raw,
    "stop_sequence": Seen.stop_sequence,
    "stop_details": Seen.stop_details,
    "refusal": Seen.refusal,
    "model": Seen.model,
    "cost_usd": Seen.cost_usd,
    "other_choices": Seen.other_choices,
    "audio_transcript": Seen.audio_transcript,
    "images": Seen.images,
    "error_in_stream": Seen.error_inside,
    "error_in_body": Seen.error_inside,
}
