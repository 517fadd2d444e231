"""API keys: an argument, else its environment variable; checked when the adapter is made, added when a request leaves.

No adapter needs a key to be made. The first send without one is an "auth" error, and nothing is sent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from ..errors import MembraneError
from ..wire.http import HttpRequest, merged

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


class HeaderAuth:
    """Puts keys into a request's headers, last, over whatever stands there."""

    def __init__(self, keys: list[Key], *, missing: str | None) -> None:
        """missing: what to say where there is no key; None where a provider needs none."""
        self._keys: Final = keys
        self._missing: Final = missing

    @property
    def secrets(self) -> list[str]:
        return [key.value for key in self._keys]

    def authorized(self, request: HttpRequest) -> HttpRequest:
        """The request with its keys. Raises MembraneError("auth") where one is needed and there is none."""
        if not self._keys and self._missing is not None:
            raise MembraneError("auth", self._missing)
        return self._with(request, self._keys)

    def shown(self, request: HttpRequest, placeholder: Key | None) -> HttpRequest:
        """The same to look at: a placeholder stands where a needed key is not set."""
        return self._with(request, self._keys or ([placeholder] if placeholder else []))

    def _with(self, request: HttpRequest, keys: list[Key]) -> HttpRequest:
        pairs = [(key.header, key.prefix + key.value) for key in keys]
        return HttpRequest(request.method, request.url, merged(request.headers, pairs), request.body)
