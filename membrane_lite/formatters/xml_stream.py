"""The XML transcript as it streams: text in, chunks and block events out, wherever the text is cut.

TagScanner makes blocks of what _TagReader cuts out: runs of text, and tags. _HEADS says which characters from a `<` on
are, or may become, the head of a tag, and how reading goes on after it; everything else is text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Callable, Final, Literal, NamedTuple, Union

from ..values.content import Text, Thinking
from ..values.events import AnyEvent, BlockEvent, BlockInfo, BlockSeen, ChunkMeta, Tokens
from .assembly import PieceBuffer
from .xml_tags import BLOCK_TYPES, CALLS, CDATA_CLOSER, CDATA_OPENER, INNER_TAGS, NAMESPACE, WHITESPACE


class Depths(NamedTuple):
    """How many elements of each kind are open."""

    function_calls: int
    function_results: int
    thinking: int


class TagScanner:
    """What the model writes is fed, what stands before it is pushed; a round ends with a flush.

    A block's tag ends the open block, and an opening one begins its own. Text that finds none open begins one, of the
    type that the depths say. Blocks are numbered from first_index on.
    """

    __slots__ = ("_buffer", "_meta", "_next_index", "_reader")

    def __init__(self, first_index: int = 0) -> None:
        self._reader: Final = _TagReader()
        self._meta: ChunkMeta | None = None  # of the open block
        self._buffer = PieceBuffer()
        self._next_index = first_index

    def push(self, text: str) -> None:
        """Text of the transcript that is not the model's (a prefill, results, a stop sequence): only its tags count.

        Before the first feed, or after a flush. A tag may begin in pushed text and end in what is fed.
        """
        for _ in self._reader.read(text):
            pass
        self._reader.disown()

    def feed(self, text: str) -> list[AnyEvent]:
        """Text of the model's. Each run of it between tags is a chunk of its own."""
        if self._meta is not None and self._reader.takes_whole(text):
            self._buffer.add(text)
            return [Tokens(text, self._meta)]
        events: list[AnyEvent] = []
        for piece in self._reader.read(text):
            if isinstance(piece, str):
                self._add_text(events, piece)
            elif piece.name in BLOCK_TYPES:
                self._complete(events)
                if piece.opens:
                    self._start(events, BLOCK_TYPES[piece.name])
        return events

    def flush(self) -> list[AnyEvent]:
        """The round is over: an unfinished tag is text, the open block is complete; depths and numbers go on."""
        events: list[AnyEvent] = []
        held = self._reader.let_go()
        if held:
            self._add_text(events, held)
        self._complete(events)
        return events

    def take_index(self) -> int:
        """The next block's number, for a block that the caller tells of itself."""
        self._next_index += 1
        return self._next_index - 1

    @property
    def depths(self) -> Depths:
        return Depths(**self._reader.depths)

    @property
    def openers(self) -> str:
        """Tags that open what is open."""
        return "".join(f"<{name}>" for name in self._reader.open)

    @property
    def block_type(self) -> str:
        """The type of text that would begin a block here: thinking before tool_call before tool_result before text."""
        depths = self._reader.depths
        return next((type for name, type in BLOCK_TYPES.items() if depths[name]), "text")

    @property
    def in_data(self) -> bool:
        """Inside a CDATA section: neither tags nor stop sequences mean anything."""
        return self._reader.in_data

    def _add_text(self, events: list[AnyEvent], text: str) -> None:
        meta = self._meta or self._start(events, self.block_type)
        self._buffer.add(text)
        events.append(Tokens(text, meta))

    def _start(self, events: list[AnyEvent], type: str) -> ChunkMeta:
        depths = self.depths
        self._meta = ChunkMeta(type, self.take_index(), depth=max(depths.function_calls, depths.function_results))
        self._buffer = PieceBuffer()
        events.append(_block_seen("block_start", self._meta, BlockInfo(type)))
        return self._meta

    def _complete(self, events: list[AnyEvent]) -> None:
        if self._meta is not None:
            info = BlockInfo(self._meta.type, content=self._buffer.text())
            events.append(_block_seen("block_complete", self._meta, info))
            self._meta = None


def _block_seen(event: str, meta: ChunkMeta, info: BlockInfo) -> BlockSeen:
    content = info.content or ""
    block = Thinking(content) if info.type == "thinking" else Text(content)
    return BlockSeen(BlockEvent(event, meta.block_index, info), block)


class _Tag(NamedTuple):
    name: str
    opens: bool


_Piece = Union[str, _Tag]


class _TagReader:
    """Cuts text into runs and tags, and counts what is open.

    What may become a tag is held. Until its head is whole it is `_carry`, which is short and is put before what comes
    next, as its first `_reread` characters, of which the first `_seeded` were pushed. From then on it is gathered in
    `_held`.
    `_gap` is what may still stand before a CDATA section: one newline after a parameter's opener, nothing after that or
    after another section; it is None where no section may begin.
    """

    __slots__ = ("_carry", "_gap", "_held", "_in_invoke", "_reread", "_seeded", "_state", "_tag", "depths", "open")

    def __init__(self) -> None:
        self.open: Final[list[str]] = []  # names, the outermost first
        self.depths: Final = dict.fromkeys(BLOCK_TYPES, 0)  # how often each stands in `open`
        self._state: _State = "text"
        self._tag = _NO_TAG  # the one whose attributes are being read
        self._carry = ""
        self._reread = 0
        self._seeded = 0
        self._held = PieceBuffer()
        self._gap: str | None = None
        self._in_invoke = False

    @property
    def in_data(self) -> bool:
        return self._state == "data"

    def takes_whole(self, text: str) -> bool:
        """Whether `text` is one run, after which everything is as before. Asked of every chunk, so without a table."""
        if self._state == "text":
            return "<" not in text and self._gap is None and not self._carry and text != ""
        return self._state == "data" and "]" not in text and not self._carry and text != ""

    def read(self, text: str) -> Iterator[_Piece]:
        text = self._carry + text
        self._reread, self._carry = len(self._carry), ""
        at = 0
        while at < len(text):
            at, piece = _STATES[self._state](self, text, at)
            if piece:
                yield piece
        self._seeded = max(0, self._seeded + len(self._carry) - len(text))

    def disown(self) -> None:
        """What is held was pushed: it may still become a tag, but not a chunk."""
        self._seeded = len(self._carry)
        self._held = PieceBuffer()

    def let_go(self) -> str:
        """What is held becomes no tag any more. A CDATA section goes on: it may outlast a round."""
        held = self._carry[self._seeded :]
        if self._carry:
            self._gap = None
        if self._state == "attributes":
            held, self._state, self._gap = self._held.text(), "text", None
        self._carry, self._seeded = "", 0
        return held

    def read_text(self, text: str, at: int) -> tuple[int, _Piece]:
        found = text.find("<", at)
        if found == at:
            return self._read_head(text, at)
        end = len(text) if found < 0 else found
        run = text[at:end]
        self._gap = "" if run == self._gap else None
        return end, run

    def _read_head(self, text: str, at: int) -> tuple[int, _Piece]:
        heads = _HEADS if self._gap is None else _HEADS_AND_DATA
        for end in range(max(at, self._reread) + 1, len(text) + 1):
            head = heads.get(text[at:end])
            if head is None:  # no tag, and so text, with the character that says so
                self._gap = None
                return end, self._unseeded(text, at, end)
            if head is not _MORE:
                return end, self._enter(head, self._unseeded(text, at, end))
        self._carry = text[at:]
        return len(text), ""

    def _enter(self, head: _Head, seen: str) -> _Piece:
        self._state, self._tag = head
        if head.then == "text":
            return self._counted()
        self._held = PieceBuffer()
        self._held.add(seen)
        return ""

    def read_attributes(self, text: str, at: int) -> tuple[int, _Piece]:
        found = text.find(">", at)
        if found < 0:
            self._held.add(text[at:])
            return len(text), ""
        self._state = "text"
        return found + 1, self._counted()

    def read_data(self, text: str, at: int) -> tuple[int, _Piece]:
        found = text.find(CDATA_CLOSER, at)
        if found >= 0:
            self._state, self._gap = "text", ""
            return found + len(CDATA_CLOSER), self._unseeded(text, at, found)
        end = max(at, len(text) - len(CDATA_CLOSER) + 1)
        while not CDATA_CLOSER.startswith(text[end:]):
            end += 1
        self._carry = text[end:]
        return len(text), self._unseeded(text, at, end)

    def _counted(self) -> _Tag:
        tag = self._tag
        if tag.name in self.depths:
            self._count(tag)
        if tag.name in ("invoke", CALLS):
            self._in_invoke = tag == _INVOKE and self.depths[CALLS] > 0
        self._gap = "\n" if tag == _DATA_TAKER and self.depths[CALLS] else None
        return tag

    def _count(self, tag: _Tag) -> None:
        """A block that ends, ends what was opened in it and not closed: that was only mentioned."""
        if tag.opens:
            self.open.append(tag.name)
            self.depths[tag.name] += 1
            return
        ended = "" if self._ends_a_block(tag.name) else tag.name
        while ended != tag.name:
            ended = self.open.pop()
            self.depths[ended] -= 1

    def _ends_a_block(self, name: str) -> bool:
        """Inside an invoke a closer of what was opened outside is data; calls end there all the same."""
        is_data = self._in_invoke and name != CALLS and self.open[-1:] != [name]
        return self.depths[name] > 0 and not is_data

    def _unseeded(self, text: str, start: int, end: int) -> str:
        return text[max(start, self._seeded) : end]


_State = Literal["text", "attributes", "data"]


class _Head(NamedTuple):
    """then: how reading goes on after this head. tag: the one that it begins, and before text ends too."""

    then: _State
    tag: _Tag


_NO_TAG: Final = _Tag("", opens=False)
_INVOKE: Final = _Tag("invoke", opens=True)
_DATA_TAKER: Final = _Tag("parameter", opens=True)
_MORE: Final = _Head("text", _NO_TAG)  # not yet a head


def _prefixes(heads: Iterable[str]) -> dict[str, _Head]:
    return {head[:end]: _MORE for head in heads for end in range(1, len(head))}


def _heads() -> dict[str, _Head]:
    """An opener may have attributes, after white space; a closer is exact."""
    whole: dict[str, _Head] = {}
    attributed: dict[str, _Head] = {}
    for name in (*BLOCK_TYPES, *INNER_TAGS):
        for spelled in (name, NAMESPACE + name):
            opener, closer = _Tag(name, opens=True), _Tag(name, opens=False)
            whole.update({f"<{spelled}>": _Head("text", opener), f"</{spelled}>": _Head("text", closer)})
            attributed.update({f"<{spelled}{space}": _Head("attributes", opener) for space in WHITESPACE})
    return {**_prefixes(whole), **whole, **attributed}


_HEADS: Final = _heads()
_HEADS_AND_DATA: Final = {**_prefixes([CDATA_OPENER]), **_HEADS, CDATA_OPENER: _Head("data", _NO_TAG)}

_STATES: Final[dict[_State, Callable[[_TagReader, str, int], tuple[int, _Piece]]]] = {
    "text": _TagReader.read_text,
    "attributes": _TagReader.read_attributes,
    "data": _TagReader.read_data,
}
