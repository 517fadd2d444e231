"""AWS event stream: binary frames, each with two checksums, that carry Bedrock's streamed answers.

    | total length | headers length | prelude CRC | headers | payload | message CRC |
    |      4       |       4        |      4      |         |         |      4      |      bytes, big-endian

    a header: name length (1), name, type (1), value; TYPES, at the end, says how each type is read

Source: smithy.io/2.0/aws/amazon-eventstream.html. Both CRCs are CRC-32 as in gzip: the first over the eight bytes
before it, the second over everything before it, the first CRC included.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple
from uuid import UUID

from ..errors import MembraneError

PRELUDE_BYTES: Final = 12
OVERHEAD_BYTES: Final = 16
LARGEST_FRAME_BYTES: Final = 24 * 1024 * 1024
LARGEST_HEADERS_BYTES: Final = 128 * 1024


class Frame(NamedTuple):
    """headers: name -> str, bool, int, bytes or UUID, in the frame's order; a timestamp is an int, in milliseconds."""

    headers: dict[str, Any]
    payload: bytes


def iter_frames(chunks: Iterable[bytes]) -> Iterator[Frame]:
    """Cut an event stream into frames, wherever its chunks happen to be cut.

    Raises MembraneError("server") for a frame that is not well formed or whose checksum is wrong, naming both values,
    and MembraneError("network") where the stream ends inside a frame.
    """
    buffer, number = bytearray(), 0
    headers: dict[bytes, dict[str, Any]] = {}
    for chunk in chunks:
        buffer += chunk
        start = 0
        while len(buffer) - start >= PRELUDE_BYTES:
            total, headers_length = _prelude(bytes(buffer[start : start + PRELUDE_BYTES]), number)
            if len(buffer) - start < total:
                break
            yield _frame(bytes(buffer[start : start + total]), headers_length, number, headers)
            start, number = start + total, number + 1
        del buffer[:start]
    if buffer:
        raise MembraneError("network", f"event stream: it ends after {len(buffer)} bytes of frame {number}")


def _prelude(prelude: bytes, number: int) -> tuple[int, int]:
    """(total length, headers length), once the first checksum says that they can be trusted."""
    total, headers_length, stated = struct.unpack(">III", prelude)
    _check("prelude", stated, zlib.crc32(prelude[:8]), number)
    if not OVERHEAD_BYTES <= total <= LARGEST_FRAME_BYTES:
        raise _broken(number, f"a total length of {total}; expected {OVERHEAD_BYTES} to {LARGEST_FRAME_BYTES} bytes")
    if headers_length > min(total - OVERHEAD_BYTES, LARGEST_HEADERS_BYTES):
        raise _broken(number, f"headers of {headers_length} bytes in a frame of {total}")
    return total, headers_length


def _frame(data: bytes, headers_length: int, number: int, known: dict[bytes, dict[str, Any]]) -> Frame:
    """known: the headers read last, by their bytes; a stream's frames have the same ones over and over."""
    (stated,) = struct.unpack(">I", data[-4:])
    _check("message", stated, zlib.crc32(data[:-4]), number)
    end = PRELUDE_BYTES + headers_length
    block = data[PRELUDE_BYTES:end]
    if block not in known:
        known.clear()
        known[block] = _headers(block, number)
    return Frame(dict(known[block]), data[end:-4])


def _check(which: str, stated: int, computed: int, number: int) -> None:
    if stated != computed:
        raise _broken(number, f"its {which} CRC is {stated:08x}, computed {computed:08x}")


def _headers(data: bytes, number: int) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    pos = 0
    try:
        while pos < len(data):
            name_length = data[pos]
            name = _taken(data, pos + 1, name_length).decode("utf-8")
            kind = data[pos + 1 + name_length]
            if kind not in TYPES:
                raise _broken(number, f"header {name!r} has the type {kind}; expected 0 to {len(TYPES) - 1}")
            if name in headers:
                raise _broken(number, f"two headers are named {name!r}")
            headers[name], pos = TYPES[kind](data, pos + 2 + name_length)
    except (IndexError, struct.error, UnicodeDecodeError) as exc:
        raise _broken(number, f"its headers end within a header or are no text ({exc})") from exc
    return headers


def _broken(number: int, found: str) -> MembraneError:
    return MembraneError("server", f"event stream: frame {number} is broken: {found}")


# Values: (data, pos) -> (value, pos behind it)


def _taken(data: bytes, pos: int, length: int) -> bytes:
    if pos + length > len(data):
        raise IndexError(f"{length} bytes wanted, {len(data) - pos} left")
    return data[pos : pos + length]


def _true(data: bytes, pos: int) -> tuple[bool, int]:
    return True, pos


def _false(data: bytes, pos: int) -> tuple[bool, int]:
    return False, pos


def _integer(size: int) -> Callable[[bytes, int], tuple[int, int]]:
    return lambda data, pos: (int.from_bytes(_taken(data, pos, size), "big", signed=True), pos + size)


def _bytes(data: bytes, pos: int) -> tuple[bytes, int]:
    length = int.from_bytes(_taken(data, pos, 2), "big")
    return _taken(data, pos + 2, length), pos + 2 + length


def _string(data: bytes, pos: int) -> tuple[str, int]:
    value, end = _bytes(data, pos)
    return value.decode("utf-8"), end


def _uuid(data: bytes, pos: int) -> tuple[UUID, int]:
    return UUID(bytes=_taken(data, pos, 16)), pos + 16


TYPES: Final[dict[int, Callable[[bytes, int], tuple[Any, int]]]] = {
    0: _true,
    1: _false,
    2: _integer(1),
    3: _integer(2),
    4: _integer(4),
    5: _integer(8),
    6: _bytes,
    7: _string,
    8: _integer(8),  # a timestamp: milliseconds since the epoch
    9: _uuid,
}
