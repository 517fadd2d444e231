"""What went wrong below us, as one MembraneError. The table FAILURES decides; the first row that holds wins.

The layers below say little by class: a reset, a broken pipe, an end of file and a TLS error may all be the same event,
and which of them is seen differs between Python versions. So a row is chosen by class *and* by the phase of the
exchange. Texts are never compared. Aborts and deadlines are not here: the lease asks for them first.

Retryable means that the same request may succeed when it is sent again. A certificate, a handshake that was refused, a
proxy that wants another password stay as they are.
"""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Callable
from http.client import BadStatusLine, HTTPException, IncompleteRead, RemoteDisconnected
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from ..errors import MembraneError, shown
from .environment import Proxy
from .route import Route

if TYPE_CHECKING:
    from ..errors import ErrorType

Phase = Literal["connect", "send", "await", "body"]

PHASES: Final[dict[Phase, str]] = {
    "connect": "while connecting",
    "send": "while the request was being sent",
    "await": "while waiting for the answer",
    "body": "in the middle of the answer",
}


class Failure(NamedTuple):
    """A row: `exception` in one of `phases`, where `holds`, is a fault of this type; `advice` says what to do."""

    exception: type[BaseException] | tuple[type[BaseException], ...]
    type: ErrorType
    retryable: bool
    found: str
    advice: str = ""
    phases: tuple[Phase, ...] = ("connect", "send", "await", "body")
    holds: Callable[[Any], bool] = lambda exc: True


def failure(phase: Phase, exc: BaseException, place: object) -> MembraneError | None:
    """The error for what was raised in `phase`; `place` says where. None for what no layer below us raises.

    Raise it `from exc`.
    """
    rows = (row for row in FAILURES if phase in row.phases and isinstance(exc, row.exception) and row.holds(exc))
    row = next(rows, None)
    if row is None:
        return None
    message = f"{place}: {row.found} {PHASES[phase]} ({_detail(exc)})"
    return MembraneError(row.type, f"{message}; {row.advice}" if row.advice else message, retryable=row.retryable)


def is_socket_timeout(exc: BaseException) -> bool:
    """A wait of ours that ended, not the kernel's ETIMEDOUT, which is the same class from Python 3.10 on."""
    return isinstance(exc, socket.timeout) and exc.errno is None


def _detail(exc: BaseException) -> str:
    if isinstance(exc, ssl.SSLCertVerificationError):
        return f"certificate verify failed: {exc.verify_message}"
    if isinstance(exc, BadStatusLine) and not isinstance(exc, RemoteDisconnected):
        return f"received {shown(exc.args[0])}"
    return f"{type(exc).__name__}: {exc}"[:200]


def _is_refusal(exc: ssl.SSLError) -> bool:
    """An alert the other side sent, or a peer that is no TLS peer at all."""
    reason = exc.reason or ""
    return "ALERT" in reason or reason == "WRONG_VERSION_NUMBER"


def _no_descriptor(exc: OSError) -> bool:
    return exc.errno in (errno.EMFILE, errno.ENFILE)


RECEIVING: Final[tuple[Phase, ...]] = ("connect", "await", "body")
CERTIFICATES: Final = "for a private issuer pass ca_certs= or set SSL_CERT_FILE; verification cannot be turned off"
NOT_HTTP: Final = "is this an HTTP server, and the scheme of the URL the right one?"

FAILURES: Final = (
    # TLS. SSLCertVerificationError is an OSError and a ValueError, the others are OSErrors: they come first.
    Failure(ssl.SSLCertVerificationError, "network", False, "the server's certificate was refused", CERTIFICATES),
    Failure((ssl.SSLEOFError, ssl.SSLZeroReturnError), "network", True, "the TLS connection was closed"),
    Failure(
        ssl.SSLError,
        "network",
        False,
        "the TLS handshake failed",
        "is it an https:// server, on this port? Does it ask for a client certificate (client_cert=)?",
        ("connect",),
    ),
    Failure(
        ssl.SSLError,
        "network",
        False,
        "the server refused the TLS connection",
        "if it asks for a client certificate, pass client_cert= and client_key=",
        ("send", "await"),
        _is_refusal,
    ),
    Failure(ssl.SSLError, "network", True, "the TLS connection broke"),
    # Names and sockets.
    Failure(socket.gaierror, "network", True, "the host's name was not found", "is it spelt correctly?", ("connect",)),
    Failure(UnicodeError, "invalid_request", False, "url: the host is no possible name", "", ("connect",)),
    Failure(
        OSError,
        "network",
        False,
        "this process may open no more files or sockets",
        "raise its limit (ulimit -n) or close what is open",
        ("connect",),
        _no_descriptor,
    ),
    Failure(RuntimeError, "network", False, "no thread could be started to look the name up", "", ("connect",)),
    Failure(ConnectionRefusedError, "network", True, "the connection was refused", "", ("connect",)),
    # HTTP. RemoteDisconnected is a ConnectionResetError and a BadStatusLine.
    Failure(RemoteDisconnected, "network", True, "the connection was closed without an answer"),
    Failure(IncompleteRead, "network", True, "the head of the answer was cut off", "", ("connect", "await")),
    Failure(IncompleteRead, "network", True, "the body was cut off, or its chunks are malformed", "", ("body",)),
    Failure(BadStatusLine, "network", True, "something else than HTTP was received", NOT_HTTP),
    Failure((HTTPException, ValueError), "network", True, "the answer breaks HTTP's rules or limits", "", RECEIVING),
    Failure(OSError, "network", True, "the connection failed"),
)


# Faults that no exception of the layers below stands for.


def connect_timeout(place: object, limit_ms: float) -> MembraneError:
    """Nothing was sent, so the request may be: class "transient", unless an adapter knows better."""
    return MembraneError(
        "timeout",
        f"connect_timeout_ms: {place}: no connection within {limit_ms:g} ms",
        provider_error_code="connect_timeout",
        failure_class="transient",
    )


def silence(place: object, seconds: float) -> MembraneError:
    """The longest wait that a socket is given has passed, and no deadline was set."""
    return MembraneError("timeout", f"{place}: nothing was received or taken for {seconds:g} s", retryable=False)


def transport_closed() -> MembraneError:
    return MembraneError("abort", "the call was aborted: its transport is closed; make a new Transport for more calls")


def proxy_refused(route: Route, proxy: Proxy, status: int, reason: str, schemes: list[str]) -> MembraneError:
    """The proxy's own answer, not the provider's: no status is attached, so that nobody takes it for a bad API key.

    schemes: the values of Proxy-Authenticate, which may hold a realm; only the schemes' names are shown.
    """
    offered = ", ".join(dict.fromkeys(value.split(None, 1)[0] for value in schemes if value.strip())) or "no scheme"
    advice = {
        407: f"it offers {offered}; only Basic is sent, from user:password@ in the proxy's URL",
        403: "its rules forbid this host",
    }.get(status, "")
    message = f"{route.origin}: the proxy {proxy} answered {status} {shown(reason)}"
    return MembraneError("network", f"{message}; {advice}" if advice else message, retryable=502 <= status <= 504)


def protocols_switched(place: object) -> MembraneError:
    return MembraneError(
        "invalid_request", f"{place}: the server answered 101 and left HTTP; expected an HTTP answer: is the URL right?"
    )


def only_interim(place: object, status: int) -> MembraneError:
    return MembraneError("network", f"{place}: interim answers ({status}) came without end; expected a final answer")


def header_broken(place: object) -> MembraneError:
    return MembraneError("network", f"{place}: a line among the answer's headers has no colon; what follows it is lost")


def unknown_coding(place: object, field: str, coding: str, expected: str) -> MembraneError:
    return MembraneError(
        "network", f"{place}: the answer has {field}: {shown(coding)}; expected {expected}", retryable=False
    )


def body_short(place: object, missing: int) -> MembraneError:
    return MembraneError("network", f"{place}: the body ended {missing} bytes short of its Content-Length")


def coding_broken(place: object, coding: str, found: str) -> MembraneError:
    return MembraneError("network", f"{place}: the {coding} body {found}")


def too_large(place: object, limit: int) -> MembraneError:
    return MembraneError(
        "server", f"{place}: the answer is larger than max_response_bytes, {limit} bytes decoded", retryable=False
    )
