"""Cache-wire receipts: what of a request may be read from the cache, by hashes of the body as it is sent.

A prefix of one request is cached for the next where its hash is the same. A body is a list of units: its tools, its
system text, the blocks of its messages, in this order; a text that is no list is one unit. A unit's identity is

    {"surface": "tools", "index": 0, "content": {...}}
    {"surface": "messages", "index": 3, "block": 0, "role": "user", "content": {...}}

without markers, which are no part of what is cached. Hashes are SHA-256, in hex, of canonical JSON (json_text.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

from ..values.base import Json, Record
from ..wire.json_text import canonical
from . import cache_markers

CHARACTERS_PER_TOKEN: Final = 4


@dataclass
class MarkerReceipt(Record):
    """ordinal: from 1. prefix_hash: over the identities up to and with the marked unit. estimated_offset: in tokens."""

    ordinal: int
    prefix_hash: str
    estimated_offset: int


@dataclass
class CacheWireReceipt(Record):
    """request_hash: over the whole body. markers: one for each unit that carries any, in order."""

    request_hash: str
    markers: list[MarkerReceipt] = field(default_factory=list)


def receipt_of(body: Json) -> CacheWireReceipt:
    """The receipt of a body, whatever its format: one without markers has no more than its hash."""
    receipt = CacheWireReceipt(sha256(canonical(body).encode()).hexdigest())
    units = list(_units(body)) if isinstance(body, Mapping) and cache_markers.count(body) else []
    last = len(units) - 1 if units and body.get("cache_control") is not None else -1
    prefix, characters = sha256(b"["), 0
    for index, identity in enumerate(units):
        unit = identity["content"]
        identity["content"] = cache_markers.bare(unit)
        prefix.update((b"," if index else b"") + canonical(identity).encode())
        characters += len(canonical(identity["content"]))
        if index == last or cache_markers.marked({"system": [unit]}):
            whole = prefix.copy()
            whole.update(b"]")
            offset = -(-characters // CHARACTERS_PER_TOKEN)
            receipt.markers.append(MarkerReceipt(len(receipt.markers) + 1, whole.hexdigest(), offset))
    return receipt


def _units(body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for surface in ("tools", "system"):
        for index, content in enumerate(_parts(body.get(surface))):
            yield {"surface": surface, "index": index, "content": content}
    for index, message in enumerate(_parts(body.get("messages"))):
        named = {"surface": "messages", "index": index}
        if not isinstance(message, Mapping):
            yield {**named, "content": message}
            continue
        for block, content in enumerate(_parts(message.get("content"))):
            yield {**named, "block": block, "role": message.get("role"), "content": content}


def _parts(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return list(value)
    return [] if value is None else [value]
