"""API keys: an argument, else its environment variable; checked when the adapter is made, added when a request leaves.

No adapter needs a key to be made. The first send without one is an "auth" error, and nothing is sent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from ..call import Call
from ..clock import Clock
from ..errors import MembraneError
from ..wire.http import HeaderPairs, HttpRequest, merged

VISIBLE_ASCII: Final = re.compile(r"[\x21-\x7e]+")
PLACEHOLDER: Final = "YOUR_API_KEY"  # stands where a rendered request has no key to show


class Key(NamedTuple):
    """A key and the header it goes into: `x-api-key: KEY`, or `Authorization: Bearer KEY` with prefix "Bearer "."""

    value: str
    header: str
    prefix: str = ""


def read_key(value: str | None, argument: str, variable: str | None, env: Mapping[str, str]) -> str | None:
    """The key of `argument`, else of `variable`; blank is unset. Raises "auth" for one that cannot be a header value.

    The error names where the key came from and never shows it.
    """
    given, source = (value, argument) if value is not None else (env.get(variable or "", ""), variable)
    if not isinstance(given, str):
        raise MembraneError("auth", f"{source}: found {type(given).__name__}; expected a string")
    key = given.strip()
    if key and VISIBLE_ASCII.fullmatch(key) is None:
        raise MembraneError(
            "auth",
            f"{source}: the key holds a line break, a space or a character that is not ASCII; check how it was set",
        )
    return key or None


class Authorizer(Protocol):
    """How requests get their credentials: a key in a header, a fresh token, a signature."""

    @property
    def secrets(self) -> Sequence[str]:
        """The values in use, for the redactor."""

    def authorized(self, request: HttpRequest, call: Call) -> HttpRequest:
        """The request as it is sent now; once for every send. Raises MembraneError("auth") without credentials."""

    def shown(self, request: HttpRequest, clock: Clock) -> HttpRequest:
        """The same to look at: placeholders stand for what is not set, and nothing is asked for."""

    def renews(self, refusal: MembraneError, headers: HeaderPairs, call: Call) -> bool:
        """Whether the request that was refused so may be sent once more, authorized anew."""


class HeaderAuth:
    """Puts keys into a request's headers, last, over whatever stands there. They never change."""

    def __init__(self, keys: list[Key], *, missing: str | None, placeholder: Key | None = None) -> None:
        """missing: what to say where there is no key; None where a provider needs none."""
        self._keys: Final = keys
        self._missing: Final = missing
        self._placeholder: Final = placeholder

    @property
    def secrets(self) -> list[str]:
        return [key.value for key in self._keys]

    def authorized(self, request: HttpRequest, call: Call) -> HttpRequest:
        if not self._keys and self._missing is not None:
            raise MembraneError("auth", self._missing)
        return self._with(request, self._keys)

    def shown(self, request: HttpRequest, clock: Clock) -> HttpRequest:
        return self._with(request, self._keys or ([self._placeholder] if self._placeholder else []))

    def renews(self, refusal: MembraneError, headers: HeaderPairs, call: Call) -> bool:
        return False

    def _with(self, request: HttpRequest, keys: list[Key]) -> HttpRequest:
        pairs = [(key.header, key.prefix + key.value) for key in keys]
        return HttpRequest(request.method, request.url, merged(request.headers, pairs), request.body)
