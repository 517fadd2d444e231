"""Content codings (RFC 9110, 8.4.1): the coded body in pieces cut anywhere, the decoded body out, as soon as it can be.

gzip and deflate are understood, because some servers send them unasked; a piece that was flushed is decoded at once.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

from . import failures

PLAIN: Final = frozenset(["", "identity"])
CODINGS: Final = frozenset(["gzip", "x-gzip", "deflate"])  # deflate is the zlib format (RFC 1950)
EITHER_HEADER: Final = 32 + zlib.MAX_WBITS  # zlib tells gzip and zlib headers apart by itself
PIECE_BYTES: Final = 1024 * 1024  # a small bomb becomes many pieces, which the caller counts


class Decoder:
    """Undoes one coding. feed() every piece, then end()."""

    def __init__(self, coding: str, place: object) -> None:
        self._coding: Final = coding
        self._place: Final = place
        self._stream = zlib.decompressobj(EITHER_HEADER)
        self._fed = False

    def feed(self, piece: bytes) -> Iterator[bytes]:
        self._fed = True
        while True:
            if self._stream.eof and piece:  # members may follow one another (RFC 1952, 2.2)
                self._stream = zlib.decompressobj(EITHER_HEADER)
            decoded = self._decompress(piece)
            if decoded:
                yield decoded
            piece = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail
            if not piece and len(decoded) < PIECE_BYTES:
                return

    def _decompress(self, piece: bytes) -> bytes:
        try:
            return self._stream.decompress(piece, PIECE_BYTES)
        except zlib.error as exc:
            raise failures.coding_broken(self._place, self._coding, f"is malformed ({exc})") from exc

    def end(self) -> None:
        """Raise if the body stops inside the coding. An empty one (an answer to HEAD, a 204) does not."""
        if self._fed and not self._stream.eof:
            raise failures.coding_broken(self._place, self._coding, "was cut off")


def decoder_for(content_encoding: str, place: object) -> Decoder | None:
    """None for a body that is not coded. Raises MembraneError("network") for a coding not understood."""
    coding = content_encoding.strip().lower()
    if coding in PLAIN:
        return None
    if coding not in CODINGS:
        raise failures.unknown_coding(place, "Content-Encoding", coding, "gzip, deflate or none")
    return Decoder(coding, place)
