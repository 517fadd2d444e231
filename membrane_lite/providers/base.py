"""What every HTTP adapter does: a codec says what to send and how to read it, the transport carries it.

A codec is pure and knows one wire format. An adapter's stream() and complete() give the same deltas, so an answer that
was not streamed goes up the same way as one that was.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain
from math import inf
from typing import TYPE_CHECKING, Any, Final, Optional, Protocol
from urllib.parse import urlsplit

from ..call import DEFAULT_IDLE_MS, Call, own_code
from ..clock import Clock
from ..credentials.keys import Authorizer
from ..error_table import REQUEST_ID_HEADERS, provider_error
from ..errors import MembraneError, invalid, wrong_type
from ..formatters import cache_markers
from ..formatters.base import BuildSettings, Formatter, check_formatter, refuse_system_changes
from ..formatters.request_size import max_request_bytes
from ..formatters.tool_names import STRICTEST, ToolNames
from ..transport.interface import ByteStream, OpensRequests
from ..values.base import Json
from ..values.content import Block
from ..values.deltas import AnswerHead, Delta, InputDelta, SignatureDelta, TextDelta, ThinkingDelta
from ..values.messages import Message, has_system_changes
from ..values.reader import read_request
from ..values.requests import OutputSchema, ProviderRequest, Request
from ..version import VERSION
from ..wire import sse
from ..wire.http import HeaderPairs, HeadersInput, HttpRequest, header, header_dict, header_pairs, merged
from ..wire.json_items import iter_objects
from ..wire.json_text import encode, parse
from ..wire.retry_after import rate_limits
from .exchange import Exchange, Refused, refusal_error
from .models import advice, refuses_system_role
from .structured_output import DEFAULT_NAME, check_output, output_schema, with_output

if TYPE_CHECKING:
    from ..schema.derive import Schema

DEFAULT_MAX_TOKENS: Final = 4096
FRAMING_HEADERS: Final = ("host", "content-length", "transfer-encoding")
TRAILING_SILENCE_MS: Final = 2_000  # after a complete answer: how long its usage, or its end, is waited for
SHOWN_CHARACTERS: Final = 200
NO_SYSTEM_MESSAGES: Final = " (the model takes no system changes; make the change in tools and system)"

# Some servers call a stream of events JSON. No JSON text begins as an event does: data, event, id, retry, or a comment.
FIRST_BYTES_OF_EVENTS: Final = (b"d", b"e", b"i", b"r", b":")

Records = Callable[[Iterable[bytes]], Iterator[sse.SseEvent]]

PROGRESS: Final = (TextDelta, ThinkingDelta, InputDelta, SignatureDelta)

USERINFO: Final = re.compile(r"^(\w*:/+)?.*@", re.DOTALL)  # may hold a password, also where the scheme is missing
INVISIBLE: Final = re.compile(r"[\x00-\x20\x7f]")

# What a decoder raises over data it did not expect; anything else is a fault of this package.
MALFORMED: Final = (KeyError, TypeError, ValueError, IndexError, AttributeError)


# A callback: {"lane": "stream" or "complete"} -> header names and their values, or None.
DynamicHeaders = Callable[[Mapping[str, str]], Optional[Mapping[str, object]]]


class ProviderFault(Exception):
    """A decoder found an error inside an answer that began as a success.

    body: the provider's error, as JSON. told: what the same event said beside it, counts for the most part.
    """

    def __init__(self, body: Json, event: str, told: Sequence[Delta] = ()) -> None:
        super().__init__(event)
        self.body: Final = body
        self.event: Final = event
        self.told: Final = told


def peeked(chunks: Iterator[bytes]) -> tuple[bytes, Iterable[bytes]]:
    """What a body begins with, white space left out, and all of its chunks."""
    seen = []
    for chunk in chunks:
        seen.append(chunk)
        if not chunk.isspace():
            break
    return b"".join(seen).lstrip(), chain(seen, chunks)


class UntilEnd:
    """The chunks of a body, and whether their end has been seen."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks: Final = chunks
        self.ended = False

    def __iter__(self) -> Iterator[bytes]:
        yield from self._chunks
        self.ended = True


class Decoder(Protocol):
    """Events of one answer in, deltas out. Holds only what a later event needs to be understood.

    complete: an end of input from here on is a normal end. last: nothing is to come, stop reading.
    TERMINAL: the word for what makes an answer complete, for the error that says it is missing.
    """

    TERMINAL: str
    complete: bool
    last: bool

    def decode(self, event: str, data: str) -> Sequence[Delta]: ...

    def document(self, answer: Json) -> Iterable[Delta]:
        """A whole answer, as the deltas it would have been streamed as."""

    def end(self) -> Sequence[Delta]:
        """Reading has stopped after a complete answer: what was held back until then."""


class Codec(Protocol):
    """One wire format, seen from the client: pure."""

    def body(self, request: ProviderRequest, *, stream: bool) -> Json: ...

    def address(self, request: ProviderRequest, *, stream: bool) -> str: ...

    def headers(self, body: Json, *, stream: bool) -> HeaderPairs: ...

    def decoder(self) -> Decoder: ...

    def tidied(self, content: list[Block]) -> list[Block]:
        """The blocks of a whole answer, repaired where this format's servers are known to leave something in them."""

    def record(self, envelope: Json, content: Sequence[Block]) -> Json:
        """A streamed answer as the provider would have given it whole: what the end said, around the blocks."""


class Adapter(Protocol):
    """What the turn needs of an adapter. One of the caller's own needs no more than these."""

    def complete(self, provider_request: ProviderRequest, call: Call) -> Iterable[Delta]: ...

    def stream(self, provider_request: ProviderRequest, call: Call) -> Iterable[Delta]: ...


def check_request(request: Request, formatter: Formatter, adapter: object, *, output: OutputSchema | None) -> None:
    """Refuse what this formatter and this adapter cannot do together, before anything is sent."""
    check_system_changes(request.messages, formatter, adapter)
    check_items(formatter, adapter)
    check_output(output, request, formatter)


def check_items(formatter: Formatter, adapter: object) -> None:
    """Refuse input items of OpenAI's Responses API where another one is asked.

    Both say so in a class attribute, `writes_items` and `takes_items`. An adapter of the caller's own takes anything.
    """
    if getattr(formatter, "writes_items", False) and isinstance(adapter, HttpAdapter) and not adapter.takes_items:
        raise MembraneError(
            "unsupported",
            f"formatter: {formatter.name!r} writes input items, which {adapter.name} does not take; pass "
            f"formatter={type(adapter.default_formatter()).__name__}(), or none (nothing was sent)",
        )


def check_system_changes(messages: Sequence[Message], formatter: Formatter, adapter: object) -> None:
    """Refuse those that this formatter cannot write or this adapter cannot send.

    Both say so in a class attribute, `takes_system_changes`; what has none takes none, a caller's own too.
    """
    if not has_system_changes(messages):
        return
    if not getattr(formatter, "takes_system_changes", False):
        refuse_system_changes(messages, formatter.name)
    if not getattr(adapter, "takes_system_changes", False):
        raise MembraneError(
            "unsupported",
            f"messages: {provider_name(adapter)} sends no system changes; AnthropicAdapter does, or make the change in "
            "tools and system",
            system_change_refused=True,
        )


def provider_name(adapter: object) -> str:
    """What messages call an adapter; one of the caller's own may have no name."""
    return str(getattr(adapter, "name", type(adapter).__name__))


def json_content(body: Json) -> tuple[str, bytes]:
    return "application/json", encode(body)


def sse_records(chunks: Iterable[bytes]) -> Iterator[sse.SseEvent]:
    """Some servers end their last event without the blank line that the standard asks for."""
    return sse.iter_events(chunks, keep_unterminated=True)


def json_records(chunks: Iterable[bytes]) -> Iterator[sse.SseEvent]:
    """A stream may also come as the items of one JSON array: Gemini's does, unless it is asked for events."""
    for text in iter_objects(chunks):
        yield sse.SseEvent("message", text, "", None)


class HttpAdapter:
    """A codec, its keys and a transport. Subclasses only read their settings.

    tool_names: how the provider takes them. most_cache_markers: how many a request may carry, the last of all that is
    looked after before it leaves; 0 for a format without them, where a caller's own are left alone.
    """

    name: str
    default_formatter: Callable[[], Formatter]
    takes_system_changes = False
    takes_items = False
    tool_names: ToolNames = STRICTEST
    most_cache_markers: int = 0

    def __init__(
        self,
        *,
        name: str,
        codec: Codec,
        auth: Authorizer,
        headers: HeadersInput | None,
        reserved_headers: Sequence[str] = (),
        transport: OpensRequests | None,
        own_transport: OpensRequests | None = None,
        clock: Clock | None,
        dynamic_headers: DynamicHeaders | None = None,
        progress_timeout_ms: int | None = None,
        connect_timeout_is_final: bool = False,
        gateway_texts: bool = False,
        content: Callable[[Json], tuple[str, bytes]] = json_content,
        records: Records = sse_records,
    ) -> None:
        """reserved_headers: those the key goes into, which `headers` may not hold.

        dynamic_headers: the caller's own code, asked once for each attempt; what it gives outranks every header but the
        credentials.
        own_transport: what stands in where there is no `transport`, for an adapter whose own has settings; it is closed
        with the adapter.
        connect_timeout_is_final: a connect timeout is not repeated, because it cannot be told from a later one.
        gateway_texts: see error_table.provider_error. content: how a body is written: (media type, bytes).
        records: how a stream is cut into events: JSON texts with a name.
        """
        self.name = name
        self.progress_timeout_ms: Final = read_milliseconds("progress_timeout_ms", progress_timeout_ms)
        self._codec: Final = codec
        self._auth: Final = auth
        self._own_headers: Final = own_headers(headers, reserved_headers)
        self._dynamic_headers: Final = dynamic_headers
        self._exchange: Final = Exchange(
            auth,
            headers=self._own_headers,
            transport=transport,
            own_transport=own_transport,
            connect_timeout_is_final=connect_timeout_is_final,
        )
        self._clock: Final = clock or Clock()
        self._gateway_texts: Final = gateway_texts
        self._content: Final = content
        self._records: Final = records

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    def __enter__(self) -> HttpAdapter:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the transport, if this adapter made it; running calls end as aborted. Idempotent."""
        self._exchange.close()

    @property
    def idle_timeout_ms(self) -> int:
        """How long a silent stream is waited for, where a call does not say."""
        return int(getattr(self._exchange.transport, "read_timeout_ms", DEFAULT_IDLE_MS))

    def render(
        self,
        request: object,
        *,
        stream: bool = False,
        formatter: Formatter | None = None,
        clock: Clock | None = None,
        schema: Schema | None = None,
        name: str = DEFAULT_NAME,
        description: str | None = None,
    ) -> HttpRequest:
        """The HttpRequest that a call would send. Needs no network; a placeholder stands for a key that is not set.

        schema, name, description: as Membrane.complete_object takes them.
        """
        output = None if schema is None else output_schema(schema, name=name, description=description)
        settings = BuildSettings(max_request_bytes=max_request_bytes(os.environ), tool_names=self.tool_names)
        if formatter is not None:
            check_formatter(formatter)
        chosen, asked = formatter or self.default_formatter(), read_request(request)
        conversation = chosen.conversation(asked, settings)
        check_request(asked, chosen, self, output=output)
        shaped = with_output(conversation.build(), output)
        http_request = self._request(shaped, self._body(shaped, stream), stream)
        return self._auth.shown(http_request, clock or self._clock)

    def complete(self, provider_request: ProviderRequest, call: Call) -> Iterable[Delta]:
        """Send, and give the whole answer as deltas."""
        stream = self._open(provider_request, call, streamed=False)
        try:
            call.deadlines.first_event()
            deltas = [self._head(stream, call), *self._document(stream, stream, call)]
            stream.finish()
            return deltas
        except MembraneError as error:
            raise self._exchange.without_secrets(error) from error.__cause__
        finally:
            stream.close()

    def stream(self, provider_request: ProviderRequest, call: Call) -> Iterator[Delta]:
        """Send, and give the answer's deltas as they arrive. A server may answer a stream request with one document."""
        stream = self._open(provider_request, call, streamed=True)
        try:
            yield self._head(stream, call)
            chunks: Iterable[bytes] = stream
            says_document = (header(stream.headers, "content-type") or "").lower().startswith("application/json")
            if says_document:
                begin, chunks = peeked(iter(stream))
            if says_document and begin[:1] == b"[":
                yield from self._events(chunks, stream, call, json_records)
            elif says_document and begin[:1] not in FIRST_BYTES_OF_EVENTS:
                call.deadlines.first_event()
                yield from self._document(chunks, stream, call)
            else:
                yield from self._events(chunks, stream, call, self._records)
            stream.finish()
        except MembraneError as error:
            raise self._exchange.without_secrets(error) from error.__cause__
        finally:
            stream.close()

    def tidied(self, content: list[Block]) -> list[Block]:
        """Codec.tidied, for whoever has the blocks."""
        return self._codec.tidied(content)

    def record(self, envelope: Json, content: Sequence[Block]) -> Json:
        """Codec.record, for whoever has the blocks."""
        return self._codec.record(envelope, content)

    def redacted(self, raw_request: Json) -> Json:
        """A body as it may be shown: without the secrets of this adapter and its transport."""
        return self._exchange.redactor.json(raw_request)

    # Sending

    @cached_property
    def _standing_headers(self) -> Mapping[bool, HeaderPairs]:
        """Those every request has: streamed or not -> pairs. A coding would hold a stream's events back."""
        base = [("User-Agent", user_agent()), ("Content-Type", "application/json"), ("Accept", "application/json")]
        return {
            streamed: merged([*base, ("Accept-Encoding", coding)], self._own_headers)
            for streamed, coding in ((False, "gzip"), (True, "identity"))
        }

    def _open(self, provider_request: ProviderRequest, call: Call, *, streamed: bool) -> ByteStream:
        """The answer to a request, whose head says that it succeeded. One refused may be authorized anew, once."""
        body = self._body(provider_request, streamed)
        request = self._request(provider_request, body, streamed)
        return self._exchange.open(request, call, body, partial(self._refusal, provider_request))

    def _body(self, provider_request: ProviderRequest, streamed: bool) -> Json:
        """What is sent, the caller's own fields in it: they and a hook may have brought markers too."""
        body, most = self._codec.body(provider_request, stream=streamed), self.most_cache_markers
        return cache_markers.clamped(body, most=most) if most else body

    def _request(self, provider_request: ProviderRequest, body: Json, streamed: bool) -> HttpRequest:
        media_type, content = self._content(body)
        own = [("Content-Type", media_type), *self._codec.headers(body, stream=streamed)]
        headers = merged(self._standing_headers[streamed], own, self._dynamic(streamed))
        return HttpRequest("POST", self._codec.address(provider_request, stream=streamed), headers, content)

    def _dynamic(self, streamed: bool) -> HeaderPairs:
        if self._dynamic_headers is None:
            return ()
        given = own_code("dynamic_headers", self._dynamic_headers, {"lane": "stream" if streamed else "complete"})
        return dynamic_pairs(given)

    # Reading

    def _head(self, stream: ByteStream, call: Call) -> AnswerHead:
        headers = header_dict(stream.headers)
        request_id = next((headers[name] for name in REQUEST_ID_HEADERS if headers.get(name)), None)
        return AnswerHead(headers, request_id, rate_limits(headers, call.clock.time()))

    def _document(self, chunks: Iterable[bytes], stream: ByteStream, call: Call) -> Sequence[Delta]:
        text = b"".join(chunks).decode("utf-8", "replace")
        try:
            return list(self._codec.decoder().document(parse(text)))
        except ProviderFault as fault:
            raise self._fault(fault, stream, call) from None
        except (RecursionError, MemoryError) as exc:
            raise self._too_deep(text, exc) from exc
        except MALFORMED as exc:
            raise self._malformed("the answer", text, exc) from exc

    def _events(self, body: Iterable[bytes], stream: ByteStream, call: Call, records: Records) -> Iterator[Delta]:
        """Deltas of an event stream, until its decoder says it is complete and nothing more is to come."""
        decoder, deadlines, seen, trailing = self._codec.decoder(), call.deadlines, 0, False
        chunks, counts_progress = UntilEnd(body), call.deadlines.counts_progress
        try:
            for event in records(chunks):
                if not event.data or event.data.isspace():
                    continue  # a keep-alive: the standard dispatches an event whose data is empty
                if not seen:
                    deadlines.first_event()
                for delta in self._decoded(decoder, event):
                    if counts_progress and isinstance(delta, PROGRESS):
                        deadlines.progressed()
                    yield delta
                seen += 1
                if decoder.last:
                    break
                if decoder.complete and not trailing:
                    trailing = True
                    deadlines.answer_complete(TRAILING_SILENCE_MS)
        except ProviderFault as fault:  # also after a finish reason: then the provider takes its answer back
            yield from fault.told
            raise self._fault(fault, stream, call) from None
        except MembraneError as error:
            # After the end, what cannot be read is half of an event: the answer was cut inside it.
            if error.type == "abort" or not (decoder.complete or chunks.ended):
                raise
        if not decoder.complete:
            raise self._cut(decoder, seen)
        yield from decoder.end()

    def _decoded(self, decoder: Decoder, event: sse.SseEvent) -> Sequence[Delta]:
        try:
            return decoder.decode(event.event, event.data)
        except (RecursionError, MemoryError) as exc:
            raise self._too_deep(event.data, exc) from exc
        except MALFORMED as exc:
            raise self._malformed(f"event {event.event!r}", event.data, exc) from exc

    # Errors

    def _refusal(self, provider_request: ProviderRequest, refused: Refused) -> MembraneError:
        error = refusal_error(self.name, refused, gateway_texts=self._gateway_texts)
        changes = self.takes_system_changes and any(map(is_system, provider_request.messages))
        if changes and refuses_system_role(error):
            return error.of_system_change().with_advice(NO_SYSTEM_MESSAGES)
        return error.with_advice(advice(error, provider_request.model))

    def _fault(self, fault: ProviderFault, stream: ByteStream, call: Call) -> MembraneError:
        """The error of an answer that began as a success: its body speaks for itself, its status does not."""
        return provider_error(
            provider=self.name,
            status=None,
            headers=stream.headers,
            body=self._exchange.redactor.text(encode(fault.body).decode("utf-8")),
            now=call.clock.time(),
            event=fault.event,
            gateway_texts=self._gateway_texts,
        )

    def _malformed(self, where: str, text: str, exc: Exception) -> MembraneError:
        shown = self._exchange.redactor.text(text[:SHOWN_CHARACTERS])
        return MembraneError("server", f"{self.name}: {where} cannot be read ({type(exc).__name__}): {shown!r}")

    def _too_deep(self, text: str, exc: BaseException) -> MembraneError:
        return MembraneError(
            "server",
            f"{self.name}: an answer of {len(text)} characters is too large or too deep ({type(exc).__name__})",
        )

    def _cut(self, decoder: Decoder, seen: int) -> MembraneError:
        return MembraneError(
            "network",
            f"{self.name}: the stream ended after {seen} events without {decoder.TERMINAL}; the answer is incomplete, "
            "what arrived is in .partial_content",
        )


def is_system(message: Json) -> bool:
    return bool(message["role"] == "system")


def user_agent() -> str:
    """Named after the package, wherever it was copied to."""
    from ..transport.connection import URLLIB3_VERSION

    package = __name__.rsplit(".", 2)[0].rpartition(".")[2].replace("_", "-")
    return f"{package}/{VERSION} python/{platform.python_version()} urllib3/{URLLIB3_VERSION}"


def own_headers(headers: HeadersInput | None, reserved: Sequence[str]) -> HeaderPairs:
    """The caller's headers. Raises "invalid_request" for one that would stand in for the key or the framing."""
    pairs = header_pairs(headers, "headers")
    for name, _ in pairs:
        if name.lower() in (*FRAMING_HEADERS, *reserved):
            raise invalid("headers", f"{name!r} is set by the adapter", "expected other headers; pass keys as api_key")
    return pairs


def dynamic_pairs(given: Any) -> HeaderPairs:
    """What dynamic_headers gave, as pairs: None and empty values left out, others as text."""
    if given is not None and not isinstance(given, Mapping):
        raise wrong_type("dynamic_headers", given, "a mapping of header names to values, or None")
    stated = {name: str(value) for name, value in (given or {}).items() if value not in (None, "")}
    pairs = header_pairs(stated, "dynamic_headers")
    return own_headers(pairs, ())


def read_base_url(value: str | None, variable: str | None, env: Mapping[str, str], default: str | None) -> str:
    """The argument base_url, else `variable`, else `default`; one trailing slash is dropped."""
    given, source = (value, "base_url") if value is not None else (env.get(variable or "", "").strip(), variable)
    url = given or default
    if not url:
        raise invalid("base_url", "missing", 'expected the address of the server, "http://localhost:11434/v1" say')
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        valid = valid and not (parts.query or parts.fragment)  # the path of the API would become a part of them
        valid = (
            valid and INVISIBLE.search(url) is None
        )  # urlsplit takes out what is pasted with it: a line break, a tab
    except ValueError:
        valid = False
    if not valid:
        found = USERINFO.sub(r"\1", url)
        raise invalid(source or "base_url", f"found {found!r}", "expected http:// or https://, a host and a path")
    return url[:-1] if url.endswith("/") else url


def read_milliseconds(name: str, value: Any) -> int | None:
    """A positive whole number of milliseconds, or None."""
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        raise invalid(name, f"found {value!r}", "expected a whole number of milliseconds, 1 or more")
    return value


# JSON may hold anything anywhere. What an answer says must be what the documentation says it is, or its event is
# malformed. A single count or name beside it that is none is as good as absent, and spoils no answer.


def string(value: Any) -> str:
    """`value`, which must be text. Raises TypeError, one of MALFORMED."""
    if isinstance(value, str):
        return value
    raise TypeError(f"expected a string, found {type(value).__name__}")


def whole_number(value: Any) -> int:
    """`value`, which must be the number of a block or a choice. Raises TypeError, one of MALFORMED."""
    if isinstance(value, int):
        return value
    raise TypeError(f"expected a whole number, found {type(value).__name__}")


def string_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def count_or_none(value: Any) -> Any:
    """A count, or a cost, as stated; None for what can be none."""
    return value if type(value) in (int, float) and 0 <= value < inf else None


def mapping_or_empty(value: Any) -> Mapping[str, Any]:
    return value if value is not None and isinstance(value, (dict, Mapping)) else {}


def with_params(fields: Mapping[str, Any], params: Mapping[str, Any], *, nested: str) -> dict[str, Any]:
    """The caller's own fields over ours; those of `nested` key by key, where both are mappings."""
    if not params:
        return dict(fields)
    ours, theirs = fields.get(nested), params.get(nested)
    joined = {nested: {**ours, **theirs}} if isinstance(ours, Mapping) and isinstance(theirs, Mapping) else {}
    return {**fields, **params, **joined}


def without_none(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
