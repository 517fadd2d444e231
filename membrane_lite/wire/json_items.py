"""JSON arrays that arrive piece by piece: the bytes of a body in, the text of each object in it out.

    [{"a": 1}
    ,
    {"b": "}"}]        ->  '{"a": 1}', '{"b": "}"}'

A brace counts where it stands outside a string; a string ends at the first quotation mark that no backslash precedes
(RFC 8259, 7). What stands between the objects is passed over, and an object that does not end is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..errors import MembraneError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

LONGEST_ITEM: Final = 64 * 1024 * 1024  # bytes; an item is held whole, so a provider may not choose its length

TOKEN: Final = re.compile(rb'["\\{}]')
QUOTE, BACKSLASH, OPEN, CLOSE = b'"\\{}'


class ItemReader:
    """Where in the text the reading stands, between two chunks."""

    def __init__(self) -> None:
        self._held: Final = bytearray()  # of the object that is open
        self._depth = 0
        self._quoted = False
        self._escaped = False  # the first byte to come

    def feed(self, chunk: bytes) -> Iterator[str]:
        """The objects that end in this chunk. Each byte is looked at once."""
        begin, escaped_at = 0, 0 if self._escaped else -1
        for found in TOKEN.finditer(chunk):
            at = found.start()
            token = chunk[at]
            if at == escaped_at:
                continue
            if token == BACKSLASH:
                escaped_at = at + 1
            elif token == QUOTE:
                self._quoted = not self._quoted
            elif self._quoted:
                continue
            elif token == OPEN:
                begin = begin if self._depth else at
                self._depth += 1
            elif self._depth:
                self._depth -= 1
                if not self._depth:
                    yield (bytes(self._held) + chunk[begin : at + 1]).decode("utf-8", "replace")
                    self._held.clear()
        self._escaped = escaped_at == len(chunk) if chunk else self._escaped
        if self._depth:
            self._held.extend(chunk[begin:])
            if len(self._held) > LONGEST_ITEM:
                raise MembraneError(
                    "server",
                    f"an item of the answer's array is longer than {LONGEST_ITEM} bytes; expected shorter ones",
                )


def iter_objects(chunks: Iterable[bytes]) -> Iterator[str]:
    """The text of each object of a JSON array, as soon as it is whole, wherever the chunks happen to be cut."""
    reader = ItemReader()
    for chunk in chunks:
        yield from reader.feed(chunk)
