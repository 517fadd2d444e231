"""The one place where secrets are taken out of text.

An adapter and a transport each name the values in use (keys, tokens, proxy passwords); the redactor made of both is
applied where text is made: errors, reprs, logs. It looks for the values themselves, because a provider may quote a
key back in any field, and header names say nothing about that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

REDACTED: Final = "[redacted]"

# A shorter "key" is a placeholder ("none", "ollama"): replacing it would garble every text that holds the word.
SHORTEST_SECRET: Final = 8

# Headers whose value is a credential, whoever set it.
SECRET_HEADERS: Final = frozenset(
    ["authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key", "x-amz-security-token", "cookie"]
)


class Redactor:
    """Replaces every secret it was given by "[redacted]". `redactor + other` holds the secrets of both.

    A server that quotes a key in a JSON text may write its quotes, backslashes and slashes with a backslash before
    them; so may a repr.
    """

    __slots__ = ("_secrets",)

    def __init__(self, secrets: Iterable[str | None] = ()) -> None:
        kept = {spelt for secret in secrets if secret and len(secret) >= SHORTEST_SECRET for spelt in spellings(secret)}
        # Longest first: one secret may contain another.
        self._secrets: Final = tuple(sorted(kept, key=len, reverse=True))

    def __add__(self, other: Redactor) -> Redactor:
        return Redactor(self._secrets + other._secrets)

    def __repr__(self) -> str:
        return f"Redactor({len(self._secrets)} secrets)"

    def text(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, REDACTED)
        return text

    def json(self, value: Any) -> Any:
        """A copy of parsed JSON in which no string, and no key, holds a secret."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key) if isinstance(key, str) else key: self.json(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.json(item) for item in value]
        return value


def spellings(secret: str) -> Iterator[str]:
    """As it is, and as a string of JSON or of Python: most keys have one spelling alone."""
    escaped = secret.replace("\\", "\\\\")
    for text in (secret, escaped, escaped.replace('"', '\\"')):
        yield text
        yield text.replace("/", "\\/")
