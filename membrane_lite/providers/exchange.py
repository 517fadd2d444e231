"""One request out, the head of its answer in: with credentials, its refusal read, and no secret in any text of either.

What is sent, and how an answer is read, is not known here: a chat adapter sends through an Exchange, and so does a call
that is no chat. Whoever opens a stream ends it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from ..call import Call
from ..credentials.keys import Authorizer
from ..error_table import provider_error
from ..errors import MembraneError
from ..redactor import SECRET_HEADERS, Redactor
from ..transport.interface import ByteStream, OpensRequests
from ..transport.on_demand import OnDemandTransport
from ..values.base import Json
from ..wire.http import HeaderPairs, HttpRequest, header

ERROR_BODY_BYTES: Final = 1024 * 1024


class Refused(NamedTuple):
    """An answer of status 300 or more: its texts hold no secret, its body is bounded. now: seconds since the epoch."""

    status: int
    headers: HeaderPairs
    body: str
    now: float


class Exchange:
    """Credentials and a transport, for any number of requests and threads."""

    def __init__(
        self,
        auth: Authorizer,
        *,
        headers: HeaderPairs = (),
        transport: OpensRequests | None,
        own_transport: OpensRequests | None = None,
        connect_timeout_is_final: bool = False,
    ) -> None:
        """headers: those the caller added to every request, which may hold credentials of their own.

        own_transport: what stands in where there is no `transport`, for a caller whose own has settings; it is closed
        with the exchange. connect_timeout_is_final: it is not repeated, because it cannot be told from a later one.
        """
        self._auth: Final = auth
        self._headers: Final = headers
        self.transport: Final = transport or own_transport or OnDemandTransport(os.environ)
        self._owns_transport: Final = transport is None
        self._connect_timeout_is_final: Final = connect_timeout_is_final

    def close(self) -> None:
        """Close the transport, unless it was given; running calls end as aborted. Idempotent."""
        if self._owns_transport:
            self.transport.close()

    @property
    def redactor(self) -> Redactor:
        return Redactor([*self._auth.secrets, *secret_values(self._headers)]) + self.transport.redactor

    def open(
        self, request: HttpRequest, call: Call, shown: Json, refusal: Callable[[Refused], MembraneError]
    ) -> ByteStream:
        """The answer, whose head says that it succeeded. One refused may be authorized anew, once.

        shown: the body as on_request is told it. refusal: the error that another answer is.
        """
        authorized = self._auth.authorized(request, call)
        call.sending(shown)
        stream = self._sent(authorized, call)
        if stream.status >= 300:
            error = refusal(self._refused(stream, call))
            if not self._auth.renews(error, stream.headers, call):
                raise error
            stream = self._sent(self._auth.authorized(request, call), call)
        if stream.status >= 300:
            raise refusal(self._refused(stream, call))
        return stream

    def answer(
        self, request: HttpRequest, call: Call, shown: Json, refusal: Callable[[Refused], MembraneError]
    ) -> bytes:
        """The same, and the whole body."""
        stream = self.open(request, call, shown, refusal)
        try:
            call.deadlines.first_event()
            body = b"".join(stream)
            stream.finish()
            return body
        except MembraneError as error:
            raise self.without_secrets(error) from error.__cause__
        finally:
            stream.close()

    def without_secrets(self, error: MembraneError) -> MembraneError:
        """The same error. The layers below quote what they could not read: a server may have sent a secret back."""
        redact, exc = self.redactor.text, error.__cause__
        quoted = redact(error.message) != error.message
        while exc is not None and not quoted:
            quoted = redact(str(exc)) != str(exc)
            exc = exc.__cause__ or exc.__context__
        return error.told_as(redact(error.message)) if quoted else error

    def _sent(self, request: HttpRequest, call: Call) -> ByteStream:
        try:
            return self.transport.open(request, call)
        except MembraneError as error:
            if self._connect_timeout_is_final and error.provider_error_code == "connect_timeout":
                raise error.with_class("deadline") from error.__cause__
            raise self.without_secrets(error) from error.__cause__

    def _refused(self, stream: ByteStream, call: Call) -> Refused:
        """Its body is read, bounded, and its connection given back."""
        redact = self.redactor.text
        try:
            text = redact(stream.read(ERROR_BODY_BYTES).decode("utf-8", "replace"))
            stream.finish()
        finally:
            stream.close()
        headers = [(name, redact(value)) for name, value in stream.headers]
        return Refused(stream.status, headers, text, call.clock.time())


def refusal_error(provider: str, refused: Refused, *, gateway_texts: bool = False) -> MembraneError:
    """What a refusal means. gateway_texts: see error_table.provider_error."""
    if refused.status < 400:
        where = header(refused.headers, "location") or "nowhere"
        return MembraneError(
            "invalid_request",
            f"{provider}: HTTP {refused.status} redirects to {where}; redirects are never followed, set base_url",
            http_status=refused.status,
            raw_error=refused.body,
        )
    return provider_error(
        provider=provider,
        status=refused.status,
        headers=refused.headers,
        body=refused.body,
        now=refused.now,
        gateway_texts=gateway_texts,
    )


def secret_values(headers: HeaderPairs) -> Iterator[str]:
    """Credentials that a caller put into headers, with and without their scheme."""
    for name, value in headers:
        if name.lower() in SECRET_HEADERS:
            yield from (value, value.rpartition(" ")[2])
