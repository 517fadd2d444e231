"""Deltas: what a provider said, one thing at a time. Decoders make them, assemblers read them, nobody changes one.

An answer that was not streamed is given as the deltas it would have been streamed as, so there is one way up. In order:
AnswerHead, ModelNamed, then for each block BlockStart, its pieces, BlockEnd (blocks may overlap), UsageReported
whenever counts are known, and Finished last. `index` numbers the blocks of one answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from .base import Json, Value
from .content import Block


class Delta(Value):
    __slots__ = ()


class AnswerHead(Delta):
    """The head of the HTTP answer. headers: lower-case names. rate_limit: as MembraneError.rate_limit."""

    __slots__ = ("headers", "rate_limit", "request_id")

    def __init__(
        self, headers: Mapping[str, str], request_id: str | None, rate_limit: Mapping[str, Any] | None
    ) -> None:
        self.headers: Final = headers
        self.request_id: Final = request_id
        self.rate_limit: Final = rate_limit


class ModelNamed(Delta):
    """The model that answers, in the provider's words."""

    __slots__ = ("model",)

    def __init__(self, model: str) -> None:
        self.model: Final = model


class BlockStart(Delta):
    """Block `index` begins; `block` holds what is known of it already (a tool's id and name, a whole opaque block)."""

    __slots__ = ("block", "index")

    def __init__(self, index: int, block: Block) -> None:
        self.index: Final = index
        self.block: Final = block


class TextDelta(Delta):
    """Visible text for block `index`."""

    __slots__ = ("index", "text")

    def __init__(self, index: int, text: str) -> None:
        self.index: Final = index
        self.text: Final = text


class ThinkingDelta(Delta):
    """Reasoning text for block `index`."""

    __slots__ = ("index", "text")

    def __init__(self, index: int, text: str) -> None:
        self.index: Final = index
        self.text: Final = text


class SignatureDelta(Delta):
    """A piece of the signature of thinking block `index`."""

    __slots__ = ("index", "signature")

    def __init__(self, index: int, signature: str) -> None:
        self.index: Final = index
        self.signature: Final = signature


class InputDelta(Delta):
    """A piece of the JSON text of the arguments of tool call `index`."""

    __slots__ = ("index", "text")

    def __init__(self, index: int, text: str) -> None:
        self.index: Final = index
        self.text: Final = text


class BlockEnd(Delta):
    """Block `index` is whole. raw_item, in the wire format raw_format: what the block itself cannot say of it."""

    __slots__ = ("index", "raw_format", "raw_item")

    def __init__(self, index: int, raw_item: Json = None, raw_format: str | None = None) -> None:
        self.index: Final = index
        self.raw_item: Final = raw_item
        self.raw_format: Final = raw_format

    def __hash__(self) -> int:
        return hash(self.index)


class UsageReported(Delta):
    """Counts so far, by the field names of Usage. Each one given replaces the count reported before."""

    __slots__ = ("counts",)

    def __init__(self, counts: Mapping[str, Any]) -> None:
        self.counts: Final = counts

    def __hash__(self) -> int:
        return hash(tuple(sorted(self.counts)))


class Finished(Delta):
    """The answer is complete. `provider_reason` is the provider's word, `stop_reason` ours.

    stop_sequence: the sequence that ended it, where the provider tells. refusal: the provider's explanation of a
    refusal; category: its kind. raw: the provider's whole answer; envelope: of a stream, what stood around the content.
    """

    __slots__ = ("category", "envelope", "provider_reason", "raw", "refusal", "stop_reason", "stop_sequence")

    def __init__(
        self,
        stop_reason: str,
        provider_reason: str | None,
        *,
        stop_sequence: str | None = None,
        refusal: str | None = None,
        category: str | None = None,
        raw: Json = None,
        envelope: Json = None,
    ) -> None:
        self.stop_reason: Final = stop_reason
        self.provider_reason: Final = provider_reason
        self.stop_sequence: Final = stop_sequence
        self.refusal: Final = refusal
        self.category: Final = category
        self.raw: Final = raw
        self.envelope: Final = envelope

    def __hash__(self) -> int:
        return hash((self.stop_reason, self.provider_reason))


class Unknown(Delta):
    """Something this version does not know. It is no error; it is kept for whoever looks."""

    __slots__ = ("data", "name")

    def __init__(self, name: str, data: Json) -> None:
        self.name: Final = name
        self.data: Final = data

    def __hash__(self) -> int:
        return hash(self.name)
