"""wire.eventstream: frames made by hand, every way to break one, every way to cut a stream; then the shared corpus."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Iterable
from typing import Any
from uuid import UUID

import pytest
from shared_data import shared_json

from membrane_lite.errors import MembraneError
from membrane_lite.wire.eventstream import LARGEST_FRAME_BYTES, Frame, iter_frames


def framed(headers: bytes, payload: bytes = b"", *, headers_length: int | None = None) -> bytes:
    length = len(headers) if headers_length is None else headers_length
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), length)
    begun = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + payload
    return begun + struct.pack(">I", zlib.crc32(begun))


def read(*chunks: bytes) -> list[Frame]:
    return list(iter_frames(chunks))


HEADERS: dict[str, tuple[bytes, Any]] = {
    "true": (b"\x01a\x00", True),
    "false": (b"\x01a\x01", False),
    "a byte": (b"\x01a\x02\xff", -1),
    "two bytes": (b"\x01a\x03\x01\x00", 256),
    "four": (b"\x01a\x04\xff\xff\xff\xfe", -2),
    "eight": (b"\x01a\x05" + b"\0" * 7 + b"\x07", 7),
    "bytes": (b"\x01a\x06\x00\x02\x00\xff", b"\x00\xff"),
    "a string": (b"\x01a\x07\x00\x03" + "ü!".encode(), "ü!"),
    "a time": (b"\x01a\x08" + (1_736_467_200_000).to_bytes(8, "big"), 1_736_467_200_000),
    "a uuid": (b"\x01a\x09" + bytes(range(16)), UUID(bytes=bytes(range(16)))),
}


@pytest.mark.parametrize("block, value", HEADERS.values(), ids=HEADERS.keys())
def test_a_header_of_each_type(block: bytes, value: Any) -> None:
    assert read(framed(block, b"{}")) == [Frame({"a": value}, b"{}")]
    assert type(read(framed(block))[0].headers["a"]) is type(value)


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


WHOLE = framed(b"\x01a\x00", b"{}")
BROKEN: dict[str, tuple[bytes, str]] = {
    "a wrong prelude checksum": (flipped(WHOLE, 3), "its prelude CRC is "),
    "a wrong message checksum": (flipped(WHOLE, 16), "its message CRC is "),
    "a length below its own": (
        struct.pack(">IIII", 15, 0, zlib.crc32(struct.pack(">II", 15, 0)), 0),
        "a total length of 15; expected 16 to 25165824 bytes",
    ),
    "a length beyond all bounds": (
        struct.pack(">III", LARGEST_FRAME_BYTES + 1, 0, zlib.crc32(struct.pack(">II", LARGEST_FRAME_BYTES + 1, 0))),
        "a total length of 25165825",
    ),
    "headers longer than the frame": (framed(b"", b"{}", headers_length=3), "headers of 3 bytes in a frame of 18"),
    "a type that is none": (framed(b"\x01a\x0a"), "header 'a' has the type 10; expected 0 to 9"),
    "a value beyond the headers": (framed(b"\x01a\x07\x00\x05x", b"abcdef"), "its headers end within a header"),
    "a name beyond the headers": (framed(b"\x05a"), "its headers end within a header"),
    "a name without a type": (framed(b"\x01a"), "its headers end within a header"),
    "text that is no UTF-8": (framed(b"\x01a\x07\x00\x01\xff"), "or are no text"),
    "one name twice": (framed(b"\x01a\x00\x01a\x01"), "two headers are named 'a'"),
}


@pytest.mark.parametrize("data, words", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_frame_is_named_by_its_number_and_its_fault(data: bytes, words: str) -> None:
    with pytest.raises(MembraneError) as raised:
        read(WHOLE + data)
    assert (raised.value.type, raised.value.retryable) == ("server", True)
    assert raised.value.message.startswith("event stream: frame 1 is broken: ")
    assert words in raised.value.message


def test_a_wrong_checksum_is_told_with_the_right_one_in_hex() -> None:
    with pytest.raises(MembraneError) as raised:
        read(flipped(WHOLE, len(WHOLE) - 1))
    stated, computed = struct.unpack(">I", WHOLE[-4:])[0] ^ 1, zlib.crc32(WHOLE[:-4])
    assert raised.value.message.endswith(f"its message CRC is {stated:08x}, computed {computed:08x}")


@pytest.mark.parametrize("kept", range(1, len(WHOLE)))
def test_an_end_inside_a_frame(kept: int) -> None:
    with pytest.raises(MembraneError) as raised:
        read(WHOLE, WHOLE[:kept])
    assert (raised.value.type, raised.value.message) == (
        "network",
        f"event stream: it ends after {kept} bytes of frame 1",
    )


def test_frames_come_as_soon_as_they_are_whole() -> None:
    given: list[int] = []

    def chunks() -> Iterable[bytes]:
        for number, chunk in enumerate([WHOLE[:5], WHOLE[5:] + WHOLE + WHOLE[:1], WHOLE[1:]]):
            given.append(number)
            yield chunk

    frames = iter_frames(chunks())
    assert [next(frames) and given[-1] for _ in range(3)] == [1, 1, 2]


def test_nothing_is_no_frame() -> None:
    assert read() == read(b"", b"") == []


STREAM = b"".join(framed(block, b"x" * size) for size, (block, _) in enumerate(HEADERS.values()))


@pytest.mark.parametrize("at", range(len(STREAM) + 1))
def test_a_cut_changes_nothing(at: int) -> None:
    assert read(STREAM[:at], STREAM[at:]) == read(STREAM)


@pytest.mark.parametrize("size", [1, 7, 64])
def test_nor_do_many(size: int) -> None:
    assert read(*(STREAM[at : at + size] for at in range(0, len(STREAM), size))) == read(STREAM)
    assert len(read(STREAM)) == 10


# The corpus


def plain(value: Any) -> Any:
    """A header's value as the corpus writes it."""
    if isinstance(value, UUID):
        value = value.bytes
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def test_every_good_frame_of_the_corpus() -> None:
    for case in shared_json("conformance/eventstream.json")["positive"]:
        (frame,) = read(base64.b64decode(case["frame_base64"]))
        headers = {header["name"]: header["value"] for header in case["headers"]}
        assert (case["name"], {name: plain(value) for name, value in frame.headers.items()}) == (case["name"], headers)
        assert frame.payload == base64.b64decode(case["payload_base64"])


def test_every_bad_frame_of_the_corpus() -> None:
    for case in shared_json("conformance/eventstream.json")["negative"]:
        if case.get("implementation_limit"):
            continue
        good = []
        with pytest.raises(MembraneError):
            for frame in iter_frames([base64.b64decode(case["data_base64"])]):
                good.append(frame)
        assert (case["name"], len(good)) == (case["name"], case.get("good_frames_before", 0))


def streams() -> dict[str, bytes]:
    """The corpus's own that differ, and what its frames make, six at a time: ten."""
    given = shared_json("conformance/eventstream.json")
    own = {base64.b64decode(case["data_base64"]): case["name"] for case in given["streams"]}
    frames = [base64.b64decode(case["frame_base64"]) for case in given["positive"]]
    small = [frame for frame in frames if len(frame) < 1_000]
    made = {f"frames from {at}": b"".join(small[at : at + 6]) for at in range(0, 36, 6)}
    return {**{name: data for data, name in own.items()}, **made}


def test_ten_streams_cut_at_every_byte() -> None:
    given = streams()
    assert len(given) == 10
    for name, data in given.items():
        whole = read(data)
        for at in range(len(data) + 1):
            assert read(data[:at], data[at:]) == whole, (name, at)


def test_the_cuts_of_the_corpus() -> None:
    for case in shared_json("conformance/eventstream.json")["streams"]:
        data, sizes, chunks, at = base64.b64decode(case["data_base64"]), case["read_sizes"], [], 0
        while at < len(data):
            size = sizes[len(chunks) % len(sizes)] if sizes else len(data)
            chunks.append(data[at : at + size])
            at += size
        assert json.dumps([len(frame.payload) for frame in read(*chunks)]) == json.dumps(
            [len(frame.payload) for frame in read(data)]
        )
