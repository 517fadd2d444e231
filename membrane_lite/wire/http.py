"""An HTTP request as a value to look at before it is sent, and the rules for its headers (RFC 9110).

request = adapter.render({...})
request.method, request.url, request.headers, request.body     # exactly what a call would send
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Union

from ..errors import MembraneError
from ..redactor import REDACTED, SECRET_HEADERS

HeaderPairs = Sequence[tuple[str, str]]
HeadersInput = Union[Mapping[str, str], Iterable[tuple[str, str]]]

TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
# A field value (RFC 9110, 5.5): visible Latin-1, space and tab. http.client would repeat a bad value in its message.
FIELD_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
IS_NAME, IS_VALUE = TOKEN.fullmatch, FIELD_VALUE.fullmatch


class HttpRequest:
    """method, url, headers (pairs, in the order they are sent), body. Its repr shows no credential."""

    __slots__ = ("body", "headers", "method", "url")

    def __init__(self, method: str, url: str, headers: HeaderPairs, body: bytes) -> None:
        self.method: Final = method
        self.url: Final = url
        self.headers: Final = tuple(headers)
        self.body: Final = body

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HttpRequest) and all(
            getattr(self, name) == getattr(other, name) for name in HttpRequest.__slots__
        )

    def __hash__(self) -> int:
        return hash((self.method, self.url, self.headers, self.body))

    def __repr__(self) -> str:
        headers = [(name, REDACTED if name.lower() in SECRET_HEADERS else value) for name, value in self.headers]
        return f"HttpRequest({self.method!r}, {self.url!r}, {headers!r}, {len(self.body)} bytes)"


def header(headers: HeaderPairs, name: str) -> str | None:
    """The value of the first header with that name, in any case."""
    wanted = name.lower()
    return next((value for key, value in headers if key.lower() == wanted), None)


def header_dict(headers: HeaderPairs) -> dict[str, str]:
    """Lower-case names; values of a repeated header joined by ", " (RFC 9110, 5.3)."""
    joined: dict[str, str] = {}
    for name, value in headers:
        key = name.lower()
        joined[key] = f"{joined[key]}, {value}" if key in joined else value
    return joined


def header_pairs(headers: HeadersInput | None, argument: str) -> list[tuple[str, str]]:
    """A caller's headers, checked: names are tokens, values visible text. `argument` is what an error names."""
    if headers is None:
        return []
    pairs = list(headers.items() if isinstance(headers, Mapping) else headers)
    if all(type(name) is type(value) is str and IS_NAME(name) and IS_VALUE(value) for name, value in pairs):
        return pairs
    for name, value in pairs:
        if not isinstance(name, str) or TOKEN.fullmatch(name) is None:
            raise MembraneError(
                "invalid_request", f"{argument}: {name!r} is no header name; expected an RFC 9110 token"
            )
        if not isinstance(value, str) or FIELD_VALUE.fullmatch(value) is None:
            raise MembraneError(
                "invalid_request",
                f"{argument}[{name!r}]: the value is not a header value; expected a string of Latin-1 characters "
                "without line breaks or other control characters",
            )
    return pairs


def merged(*layers: HeaderPairs) -> list[tuple[str, str]]:
    """Headers of all layers; a later layer's value replaces an earlier one's, in its place, names in any case."""
    values: dict[str, tuple[str, str]] = {}
    for layer in layers:
        for name, value in layer:
            key = name.lower()
            known = values.get(key)
            values[key] = (known[0] if known else name, value)
    return list(values.values())
