r"""Completions, for base models: POST {base_url}/completions, as OpenAI, vLLM, llama.cpp and others speak it.

    > {"model": "davinci-002", "prompt": "User: Hi<|eot|>\n\nClaude:", "max_tokens": 64,
    >  "stop": ["\n\nUser:", "\nUser:", "<|eot|>"], "stream": true}
    < data: {"model": "davinci-002", "choices": [{"index": 0, "text": "Hello", "finish_reason": null}]}
    <
    < data: {"model": "davinci-002", "choices": [{"index": 0, "text": "", "finish_reason": "stop"}]}
    <
    < data: {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}}
    <
    < data: [DONE]
    <
    = Hello / end_turn / 9 in, 3 out

Source: platform.openai.com/docs/api-reference/completions. The prompt is formatters/completions.py's. STOP_REASONS and
counts are those of chat completions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from ..clock import Clock
from ..credentials.keys import HeaderAuth, Key, read_key
from ..errors import MembraneError, shown
from ..formatters.base import Formatter
from ..formatters.completions import DEFAULT_EOT_TOKEN, CompletionsFormatter
from ..transport.interface import OpensRequests
from ..values.base import Json
from ..values.content import Block, Text, joined_text
from ..values.deltas import BlockEnd, BlockStart, Delta, Finished, ModelNamed, TextDelta, UsageReported
from ..values.requests import ProviderRequest
from ..wire.http import HeaderPairs, HeadersInput
from ..wire.json_text import parse
from .base import (
    DEFAULT_MAX_TOKENS,
    HttpAdapter,
    ProviderFault,
    read_base_url,
    string,
    string_or_none,
    whole_number,
    without_none,
)
from .chat_dialect import DONE, STOP_REASONS
from .chat_usage import counts
from .structured_output import refuse_output


class OpenAICompletionsAdapter(HttpAdapter):
    """base_url: with its version, as in "http://localhost:8000/v1". api_key: sent as a bearer token where given.

    No environment variable is read. eot_token: ends a turn, in the prompt and in the answer, which is cut there; "" or
    None for none; a formatter of your own needs the same one. extra_stop_sequences: added to every request's.
    strip_leading_whitespace: of the text of the final answer; else it is what the model wrote. provider_params may
    hold a "prompt" of your own.
    """

    default_formatter: Callable[[], Formatter] = CompletionsFormatter

    def __init__(
        self,
        *,
        base_url: str,
        api_key: str | None = None,
        provider_name: str = "openai-completions",
        eot_token: str | None = DEFAULT_EOT_TOKEN,
        extra_stop_sequences: Sequence[str] = (),
        strip_leading_whitespace: bool = False,
        warn_on_image_strip: bool = True,
        headers: HeadersInput | None = None,
        default_max_tokens: int = DEFAULT_MAX_TOKENS,
        progress_timeout_ms: int | None = None,
        transport: OpensRequests | None = None,
        clock: Clock | None = None,
    ) -> None:
        key = read_key(api_key, "api_key", None, {})
        super().__init__(
            name=provider_name,
            codec=CompletionsCodec(
                read_base_url(base_url, None, {}, None),
                default_max_tokens,
                eot_token=eot_token or "",
                extra_stop_sequences=extra_stop_sequences,
                strip_leading_whitespace=strip_leading_whitespace,
            ),
            auth=HeaderAuth([Key(key, "Authorization", "Bearer ")] if key else [], missing=None),
            headers=headers,
            reserved_headers=("authorization",) if key else (),
            transport=transport,
            clock=clock,
            progress_timeout_ms=progress_timeout_ms,
        )
        self.default_formatter = partial(
            CompletionsFormatter, eot_token=eot_token, warn_on_image_strip=warn_on_image_strip
        )

    def supports_model(self, model: str) -> bool:
        return True


class CompletionsCodec:
    """The wire format: requests here, answers in CompletionsDecoder."""

    def __init__(
        self,
        base_url: str,
        default_max_tokens: int,
        *,
        eot_token: str = "",
        extra_stop_sequences: Sequence[str] = (),
        strip_leading_whitespace: bool = False,
    ) -> None:
        self._address: Final = base_url + "/completions"
        self._default_max_tokens: Final = default_max_tokens
        self._eot: Final = eot_token
        self._extra_stops: Final = list(extra_stop_sequences)
        self._strips: Final = strip_leading_whitespace

    def address(self, request: ProviderRequest, *, stream: bool) -> str:
        return self._address

    def headers(self, body: Json, *, stream: bool) -> HeaderPairs:
        return ()

    def body(self, request: ProviderRequest, *, stream: bool) -> Json:
        """The fields in the documentation's order; the caller's own after ours, the stream switch last."""
        return {
            **without_none(
                {
                    "model": request.model,
                    "prompt": prompt_of(request),
                    "max_tokens": request.max_tokens or self._default_max_tokens,
                    "temperature": request.temperature,
                    "top_p": request.top_p,
                    "presence_penalty": request.presence_penalty,
                    "frequency_penalty": request.frequency_penalty,
                    "repetition_penalty": request.repetition_penalty,
                    "stop": [*request.stop_sequences, *self._extra_stops] or None,
                }
            ),
            **request.provider_params,
            **({"stream": True} if stream else {}),
        }

    def decoder(self) -> CompletionsDecoder:
        return CompletionsDecoder(self._eot)

    def record(self, envelope: Json, content: Sequence[Block]) -> Json:
        """The blocks become the first choice's text."""
        first, *others = envelope["choices"]
        return {**envelope, "choices": [{**first, "text": joined_text(list(content))}, *others]}

    def tidied(self, content: list[Block]) -> list[Block]:
        """An answer of white space alone has no block left."""
        if not self._strips:
            return content
        blocks = [
            Text(**{**vars(block), "text": block.text.lstrip()}) if isinstance(block, Text) else block
            for block in content
        ]
        return [block for block in blocks if not isinstance(block, Text) or block.text]


def prompt_of(request: ProviderRequest) -> str:
    """The content of the one message there is. Raises "unsupported" for roles, blocks and tools."""
    contents = [message.get("content") for message in request.messages]
    if len(contents) != 1 or not isinstance(contents[0], str):
        found = f"{len(contents)} messages" if len(contents) != 1 else shown(contents[0])
        raise MembraneError(
            "unsupported",
            f"messages: found {found}; a completions endpoint takes one prompt, which CompletionsFormatter writes: "
            "pass formatter=CompletionsFormatter(), or none",
        )
    refuse_output(request, "a completions endpoint")
    if request.tools:
        raise MembraneError("unsupported", "tools: a completions endpoint takes none; leave them out")
    return contents[0]


# Answers


class CompletionsDecoder:
    """Chunks of one answer in, deltas of its only block out. eot: where the answer ends, whatever comes behind it."""

    TERMINAL = "finish_reason or [DONE]"

    def __init__(self, eot: str) -> None:
        self.complete = False
        self.last = False
        self._eot: Final = eot
        self._held = ""  # the end of what has come, which may be the beginning of the eot token
        self._begun = False
        self._finish: str | None = None
        self._stop_sequence: str | None = None
        self._envelope: Final[dict[str, Any]] = {}
        self._others: Final[dict[int, list[str]]] = {}

    def decode(self, event: str, data: str) -> Sequence[Delta]:
        if data.strip() == DONE:
            self.complete = self.last = True
            return ()
        chunk = parse(data)
        deltas = self._told(chunk)
        if chunk.get("error") or event == "error":
            raise ProviderFault(chunk, event, deltas)
        return [*deltas, *self._choices(chunk.get("choices") or ())]

    def document(self, answer: Json) -> list[Delta]:
        if not isinstance(answer, Mapping) or answer.get("error") or "choices" not in answer:
            raise ProviderFault(answer, "answer")
        return [*self._told(answer), *self._choices(answer["choices"]), *self._ended(raw=answer)]

    def end(self) -> Sequence[Delta]:
        choices: list[Json] = [{"index": 0, "finish_reason": self._finish}]
        choices += [{"index": index, "text": "".join(texts)} for index, texts in sorted(self._others.items())]
        return self._ended(envelope={**self._envelope, "choices": choices})

    def _told(self, chunk: Json) -> list[Delta]:
        """What stands around the choices. Counts come once, in whichever chunk."""
        deltas: list[Delta] = []
        if "model" not in self._envelope and string_or_none(chunk.get("model")):
            self._envelope.update({key: chunk[key] for key in ("id", "created", "model") if key in chunk})
            deltas.append(ModelNamed(chunk["model"]))
        if chunk.get("usage"):
            self._envelope["usage"] = chunk["usage"]
            deltas.append(UsageReported(counts(chunk["usage"])))
        return deltas

    def _choices(self, choices: Sequence[Json]) -> list[Delta]:
        deltas: list[Delta] = []
        for choice in choices:
            if choice.get("index"):  # a second choice (n > 1) is kept raw
                self._others.setdefault(whole_number(choice["index"]), []).append(string(choice.get("text") or ""))
            elif not self.last:
                deltas += self._choice(choice)
        return deltas

    def _choice(self, choice: Json) -> list[Delta]:
        deltas = self._said(string(choice.get("text") or ""))
        if choice.get("finish_reason") and not self.last:
            self._finish, self.complete = string(choice["finish_reason"]), True
            # vLLM names the stop sequence that ended the answer; a number is a token's id.
            sequence = string_or_none(choice.get("stop_reason"))
            self._stop_sequence = None if sequence == self._eot else sequence
            deltas += self._released()
        return deltas

    def _said(self, text: str) -> list[Delta]:
        """Text up to the eot token, without what may be its beginning: that waits for the next piece."""
        text, self._held = self._held + text, ""
        if self._eot and self._eot in text:
            self._finish, self.complete, self.last = "stop", True, True
            return self._text(text.partition(self._eot)[0])
        keep = overlap(text, self._eot)
        self._held = text[len(text) - keep :]
        return self._text(text[: len(text) - keep])

    def _released(self) -> list[Delta]:
        """No more will come, so what was held back is text."""
        text, self._held = self._held, ""
        return self._text(text)

    def _text(self, text: str) -> list[Delta]:
        if not text:
            return []
        start = [] if self._begun else [BlockStart(0, Text(""))]
        self._begun = True
        return [*start, TextDelta(0, text)]

    def _ended(self, *, raw: Json = None, envelope: Json = None) -> list[Delta]:
        """The finish reason is held back until now, because counts may follow it."""
        deltas = self._released()
        if self._begun:
            deltas.append(BlockEnd(0))
        reason = STOP_REASONS.get(self._finish, self._finish or "")
        if self._stop_sequence is not None and reason == "end_turn":
            reason = "stop_sequence"
        finished = Finished(reason, self._finish, stop_sequence=self._stop_sequence, raw=raw, envelope=envelope)
        return [*deltas, finished]


def overlap(text: str, token: str) -> int:
    """How many characters at the end of `text` are a beginning of `token`, which is not all there."""
    longest = min(len(text), len(token) - 1)
    return next((size for size in range(longest, 0, -1) if token.startswith(text[-size:])), 0)
