"""Server-sent events: the bytes of a body in, SseEvents out. Source: WHATWG HTML, 9.2 "Server-sent events".

    event: content_block_delta
    data: {"type": "content_block_delta", "index": 0}
                                                        <- a blank line ends the block and dispatches its event

The work is done in three steps. Every line end becomes LF; the text is cut at blank lines into blocks, as soon as a
blank line is there; a block's lines are read, field by field, and decoded last. Nearly every block of an LLM provider
is `data` alone or `event` and `data`, with a space after each colon: those two are read without looking for more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..errors import MembraneError
from ..values.base import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

LONGEST_LINE: Final = 64 * 1024 * 1024  # bytes; a line is held whole, so a provider may not choose its length

LF: Final = 10  # a byte is looked for by its number: four times as fast as by a bytes object
CR: Final = 13

BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"  # one is dropped at the very start of the stream

# `retry` may have any number of digits, but int() refuses long ones: above 640 digits where its limit is strictest.
MOST_RETRY_DIGITS: Final = 640


class SseEvent(Value):
    """One dispatched event. `id` is the last one the stream stated; `retry` is in milliseconds, None where unstated."""

    __slots__ = ("data", "event", "id", "retry")

    def __init__(self, event: str, data: str, id: str, retry: int | None) -> None:
        self.event: Final = event
        self.data: Final = data
        self.id: Final = id
        self.retry: Final = retry


def iter_events(chunks: Iterable[bytes], *, keep_unterminated: bool = False) -> Iterator[SseEvent]:
    """Cut a server-sent event stream into events, wherever its chunks happen to be cut.

    chunks: the body's bytes, decompressed, in order; any sizes, empty ones too.
    Yields SseEvent(event, data, id, retry): `data` has its lines joined by "\\n", `retry` is in milliseconds or None.
    keep_unterminated: yield a last event that lacks its blank line, as some providers end; the standard drops it.
    Bytes that are not UTF-8 become U+FFFD. Raises MembraneError("server") for a line over 64 MiB.
    Source: WHATWG HTML, 9.2 "Server-sent events".
    """
    last_id = ""
    retry: int | None = None
    data: str | None
    for blocks in _whole_blocks(chunks, keep_unterminated):
        for block in blocks:
            if len(block) > LONGEST_LINE:
                _check_lines(block)
            # The usual forms first, read exactly as _read_fields would.
            first, _, second = block.partition(b"\n")
            if second[:6] == b"data: " and first[:7] == b"event: " and LF not in second:
                event, data = first[7:].decode("utf-8", "replace"), second[6:].decode("utf-8", "replace")
            elif not second and first[:6] == b"data: ":
                event, data = "", first[6:].decode("utf-8", "replace")
            else:
                event, data, new_id, new_retry = _read_fields(block.split(b"\n"))
                last_id = last_id if new_id is None else new_id
                retry = retry if new_retry is None else new_retry
                if data is None:  # nothing to dispatch, but the id and the retry time stay in force
                    continue
            yield SseEvent(event or "message", data, last_id, retry)
            retry = None


def _read_fields(lines: Sequence[bytes]) -> tuple[str, str | None, str | None, int | None]:
    """event, data, id and retry of one block: "", None, None and None where no line states it.

    9.2.6: a name, a colon, at most one space that is dropped, a value. A comment is a line whose name is empty.
    """
    event = b""
    id: bytes | None = None
    retry: int | None = None
    data: list[bytes] = []
    for line in lines:
        name, _, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if name == b"data":
            data.append(value)
        elif name == b"event":
            event = value
        elif name == b"id" and b"\0" not in value:
            id = value
        elif name == b"retry" and value.isdigit() and len(value) <= MOST_RETRY_DIGITS:
            retry = int(value)
    text = _decoded(b"\n".join(data)) if data else None
    return _decoded(event), text, None if id is None else _decoded(id), retry


def _decoded(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _whole_blocks(chunks: Iterable[bytes], keep_unterminated: bool) -> Iterator[list[bytes]]:
    """For each chunk that brings a blank line, the blocks it ends, without their blank lines.

    The pending block is only appended to until its blank line is there, and is copied once then: twice the bytes are
    twice the work, whatever their cutting.
    """
    pending = bytearray()
    open_line = 0  # where the last line of `pending` begins
    at_start = True
    after_cr = False
    for chunk in chunks:
        if after_cr or CR in chunk:
            chunk, after_cr = _line_feeds(chunk, after_cr)
        if chunk.rfind(b"\n\n") >= 0 or (pending and pending[-1] == LF and chunk[:1] == b"\n"):
            blocks = (bytes(pending) + chunk if pending else chunk).split(b"\n\n")
            chunk = blocks.pop()
            if at_start:
                blocks[0] = _without_mark(blocks[0])
                at_start = False
            yield blocks
            pending.clear()
            open_line = 0
        if chunk:
            line_start = chunk.rfind(b"\n") + 1
            if line_start:
                open_line = len(pending) + line_start
            pending += chunk
            if len(pending) - open_line > LONGEST_LINE:
                raise _line_too_long()
    if pending and keep_unterminated:
        yield [_without_mark(bytes(pending)) if at_start else bytes(pending)]


# A line ends at CR LF, at LF or at CR, and at nothing else.
#     WHATWG HTML, 9.2.5 "Parsing an event stream":  end-of-line = ( cr lf / cr / lf )
# JSON may hold a raw U+2028 or U+0085, where str.splitlines would cut it; so lines are cut while they are bytes.
# A CR that ends a chunk ends its line at once, so that its event need not wait; an LF that opens the next chunk
# belongs to that CR and is dropped.
def _line_feeds(chunk: bytes, after_cr: bool) -> tuple[bytes, bool]:
    """The chunk with every line end written as LF, and whether a CR ended it. `after_cr`: one ended the last chunk."""
    if not chunk:
        return chunk, after_cr
    if after_cr and chunk[:1] == b"\n":
        chunk = chunk[1:]
    return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n"), chunk[-1:] == b"\r"


def _without_mark(block: bytes) -> bytes:
    return block[3:] if block[:3] == BYTE_ORDER_MARK else block


def _check_lines(block: bytes) -> None:
    if max(map(len, block.split(b"\n"))) > LONGEST_LINE:
        raise _line_too_long()


def _line_too_long() -> MembraneError:
    return MembraneError(
        "server", f"a line of the event stream is longer than {LONGEST_LINE} bytes; expected events of lines below that"
    )
