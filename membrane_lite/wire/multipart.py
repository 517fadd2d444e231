r"""multipart/form-data (RFC 7578): a form's fields and files as one body, and the boundary that stands between them.

    --membrane-lite-5f2e...\r\n
    Content-Disposition: form-data; name="image[]"; filename="image.png"\r\n
    Content-Type: image/png\r\n
    \r\n
    <the bytes of the file>\r\n
    --membrane-lite-5f2e...--\r\n

The boundary is made from the parts themselves, so the same form is always the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Final, NamedTuple

# Characters that would end a quoted name, as browsers write them:
#     RFC 7578, 2: "percent-encoding"; WHATWG HTML, "Multipart form data": %22, %0D and %0A, and nothing else.
NAME_ESCAPES: Final = str.maketrans({'"': "%22", "\r": "%0D", "\n": "%0A"})

# RFC 2046, 5.1.1: 1 to 70 characters, none of which needs quotes here.
BOUNDARY_PREFIX: Final = "membrane-lite-"
BOUNDARY_DIGITS: Final = 40


class Part(NamedTuple):
    """A field of a form; with a filename, a file. media_type: left out where it is text (RFC 7578, 4.4)."""

    name: str
    content: bytes
    filename: str | None = None
    media_type: str | None = None


def form_data(parts: Iterable[Part]) -> tuple[str, bytes]:
    """(the value of Content-Type, the body)."""
    written = [head(part) + part.content for part in parts]
    boundary = unused_boundary(written)
    # RFC 2046, 5.1.1: delimiter := CRLF "--" boundary; the CRLF belongs to it, and not to the part before it.
    opening = f"--{boundary}\r\n".encode()
    body = b"".join(opening + part + b"\r\n" for part in written) + f"--{boundary}--\r\n".encode()
    return f"multipart/form-data; boundary={boundary}", body


def head(part: Part) -> bytes:
    """A part's header lines, up to the blank line. Names go out in UTF-8 (RFC 7578, 5.1)."""
    named = f'Content-Disposition: form-data; name="{part.name.translate(NAME_ESCAPES)}"'
    if part.filename is not None:
        named += f'; filename="{part.filename.translate(NAME_ESCAPES)}"'
    typed = [] if part.media_type is None else [f"Content-Type: {part.media_type}"]
    return "\r\n".join([named, *typed, "", ""]).encode("utf-8", "replace")


def unused_boundary(parts: Sequence[bytes]) -> str:
    """A boundary that occurs in none of the parts: their digest, or where it does, the digest of that, and so on."""
    digest = sha256()
    for part in parts:
        digest.update(b"%d:" % len(part))
        digest.update(part)
    while True:
        boundary = BOUNDARY_PREFIX + digest.hexdigest()[:BOUNDARY_DIGITS]
        if not any(boundary.encode() in part for part in parts):
            return boundary
        digest.update(boundary.encode())
