"""What stands on a chat message as a whole: reasoning_details and annotations. Pieces of a stream in, entries out.

Source: openrouter.ai/docs/use-cases/reasoning-tokens: entries go back unmodified, on the message they came with.
KEPT_WITH says with which kind of block a field is kept, DETAIL_TEXTS which entries come in pieces.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from ..values.base import Json
from ..values.content import Block, Text, Thinking

REASONING_DETAILS: Final = "reasoning_details"
KEPT_WITH: Final[Mapping[str, type[Block]]] = {REASONING_DETAILS: Thinking, "annotations": Text}
DETAIL_TEXTS: Final[Mapping[Any, str]] = {"reasoning.text": "text", "reasoning.summary": "summary"}


def detail_text(entries: Iterable[Json]) -> str:
    """What the entries say in words."""
    texts = (entry.get(DETAIL_TEXTS.get(entry.get("type"), "")) for entry in entries)
    return "".join(filter(None, texts))


def joined_details(pieces: Iterable[Json]) -> list[Json]:
    """Entries of reasoning_details from the pieces of a stream: a text goes on while type and index stay the same.

    They go back as entries: the API refuses pieces.
    """
    entries: list[Json] = []
    for (kind, _), group in groupby(pieces, key=lambda piece: (piece.get("type"), piece.get("index"))):
        alike = list(group)
        entries += [joined_entry(alike, DETAIL_TEXTS[kind])] if kind in DETAIL_TEXTS and alike[1:] else alike
    return entries


def joined_entry(pieces: Sequence[Json], text_field: str) -> Json:
    """A field that is no text, a signature say, has the value it had last."""
    fields = {name: value for piece in pieces for name, value in piece.items() if value is not None}
    texts = [piece[text_field] for piece in pieces if piece.get(text_field)]
    return {**fields, text_field: "".join(texts)} if texts else fields
