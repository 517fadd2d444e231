"""Certificates and keys in, one ssl.SSLContext out, made when the first https connection needs it.

A context with the system's certificates costs some 30 ms, so it is made once per transport and process, and shared by
its threads; nothing changes it afterwards. Paths are looked at when the transport is made: OpenSSL takes a missing
SSL_CERT_FILE in silence, and every certificate would then be untrusted.
"""

from __future__ import annotations

import os
import ssl
import threading
from contextlib import suppress
from typing import Final, NamedTuple

from ..errors import MembraneError, invalid
from .environment import Setting, Trust


class Identity(NamedTuple):
    """A client certificate, and its key where that is another file. repr() does not show the key's password."""

    certificate: Setting
    key: Setting | None
    password: str | None

    def __repr__(self) -> str:
        return f"Identity({self.certificate.value!r})"


class ClientContext:
    """The context of one transport in one process. get() may be called by any thread."""

    def __init__(self, trust: Trust, identity: Identity | None) -> None:
        self._trust: Final = trust
        self._identity: Final = identity
        self._lock: Final = threading.Lock()
        self._context: ssl.SSLContext | None = None

    def get(self) -> ssl.SSLContext:
        """Raises MembraneError("invalid_request") for files that hold no usable certificate or key."""
        with self._lock:
            if self._context is None:
                self._context = client_context(self._trust, self._identity)
            return self._context


def client_context(trust: Trust, identity: Identity | None) -> ssl.SSLContext:
    """A context that verifies certificate and host name, with `trust` in the place of the system's certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if trust else ssl.create_default_context()
    # Python 3.9 would go down to TLS 1.0.
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    with suppress(NotImplementedError):  # a build without ALPN
        context.set_alpn_protocols(["http/1.1"])
    if trust:
        # What the user names is trusted, whoever issued it; Python's own default differs between versions.
        context.verify_flags |= getattr(ssl, "VERIFY_X509_PARTIAL_CHAIN", 0)
    for setting in trust:
        _load_trusted(context, setting)
    if identity is not None:
        _load_identity(context, identity)
    return context


def _load_trusted(context: ssl.SSLContext, setting: Setting) -> None:
    path = setting.value
    try:
        context.load_verify_locations(**{"cafile" if os.path.isfile(path) else "capath": path})
    except OSError as exc:  # SSLError is one
        raise invalid(_named(setting), f"cannot be loaded ({exc})", "expected certificates in PEM form") from exc


def _load_identity(context: ssl.SSLContext, identity: Identity) -> None:
    key = None if identity.key is None else identity.key.value
    # Without a function for the password OpenSSL would ask for it on the terminal.
    try:
        context.load_cert_chain(identity.certificate.value, key, lambda: identity.password or "")
    except (OSError, ValueError) as exc:
        raise invalid(
            _named(identity.certificate),
            f"certificate and key cannot be loaded ({exc})",
            "expected both in PEM form, in one file or with client_key=; an encrypted key needs client_key_password=",
        ) from exc


def check_trust(trust: Trust) -> Trust:
    """The same settings, each of which names a file or a directory that can be read."""
    for setting in trust:
        # OpenSSL takes a list of directories (SSL_CERT_DIR); some of them may be absent.
        if not any(os.path.isdir(path) for path in setting.value.split(os.pathsep)):
            _check_readable(setting, "expected a file of certificates in PEM form, or a directory of them")
    return trust


def read_identity(
    certificate: str | os.PathLike[str] | None, key: str | os.PathLike[str] | None, password: str | None
) -> Identity | None:
    """The client certificate that the arguments name, None for none."""
    if certificate is None:
        if key is not None or password is not None:
            raise MembraneError(
                "invalid_request", "client_key, client_key_password: given without client_cert; expected all or none"
            )
        return None
    if password is not None and not isinstance(password, str):
        raise invalid("client_key_password", f"found {type(password).__name__}", "expected a string or None")
    settings = [Setting(os.fspath(certificate), "client_cert=")]
    if key is not None:
        settings.append(Setting(os.fspath(key), "client_key="))
    for setting in settings:
        _check_readable(setting, "expected a file in PEM form")
    return Identity(settings[0], settings[1] if key is not None else None, password)


def _check_readable(setting: Setting, expected: str) -> None:
    try:
        with open(setting.value, "rb"):
            pass
    except (OSError, ValueError) as exc:
        raise invalid(_named(setting), f"cannot be read ({exc})", expected) from exc


def _named(setting: Setting) -> str:
    return f"{setting.source.rstrip('=')} ({setting.value!r})"
