"""Ids for the calls that a transcript holds, which has none of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from itertools import count

from ..values.base import Json
from ..wire.json_text import encode


def call_ids(before: Json) -> Callable[[], str]:
    """A source of ids. before: all that stands before the calls; it is looked at only if there is one.

    The same calls behind the same conversation have the same ids, and no other place in it has them.
    """
    return partial(next, _numbered(before))


def _numbered(before: Json) -> Iterator[str]:
    digest = sha256(encode(before)).hexdigest()[:16]
    for number in count(1):
        yield f"tool_{digest}_{number}"
