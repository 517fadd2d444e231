"""Texts in, vectors out, each in the place of its text: Cohere Embed v4 on InvokeModel.

> {"texts":["one"],"input_type":"search_document","output_dimension":1024,"embedding_types":["float"]}
< {"embeddings": {"float": [[0.5, -0.25, ...]]}}

embed() and embed_query() differ by input_type alone. Cohere puts documents and queries into different regions of one
space on purpose: to use one type for both fails nothing, and degrades every hit.
"""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from math import isfinite
from typing import Any, Final, Literal, Protocol, get_args

from ..abort import AbortSignal
from ..clock import Clock
from ..errors import invalid, wrong_type
from ..transport.interface import OpensRequests
from ..wire.json_text import compact
from .client import InvokeClient, parsed_answer, sent
from .config import LlmConfig
from .constants import EMBED_BATCH_LIMIT, EMBED_CONCURRENCY, EMBED_DIM, EMBED_MODEL_ID
from .errors import ModelUnavailable
from .in_flight import results
from .proxy import invoke_client_for

InputType = Literal["search_document", "search_query"]
OnProgress = Callable[[int, int], object]  # batches done, batches in all


class EmbeddingsShape(Protocol):
    """The service, as code that uses it may name it."""

    def embed(
        self, texts: Sequence[str], *, on_progress: OnProgress | None = None, signal: AbortSignal | None = None
    ) -> list[array[float]]: ...

    def embed_query(self, text: str, *, signal: AbortSignal | None = None) -> array[float]: ...


def make_embeddings(client: InvokeClient, *, model_id: str = EMBED_MODEL_ID, dimensions: int = EMBED_DIM) -> Embeddings:
    """The service over a client that is already there: a fake one, in a test."""
    return Embeddings(client, model_id=model_id, dimensions=dimensions)


class Embeddings:
    """Vectors of `dimensions` numbers for texts. For any number of threads."""

    def __init__(self, client: InvokeClient, *, model_id: str = EMBED_MODEL_ID, dimensions: int = EMBED_DIM) -> None:
        self._client: Final = client
        self._model_id: Final = model_id
        self._dimensions: Final = read_count("dimensions", dimensions)

    def embed(
        self, texts: Sequence[str], *, on_progress: OnProgress | None = None, signal: AbortSignal | None = None
    ) -> list[array[float]]:
        """A vector for each document, in order, to be stored. Batches of EMBED_BATCH_LIMIT, EMBED_CONCURRENCY at once.

        on_progress(done, total): after each batch, in the caller's thread. Raises ModelUnavailable, naming the first
        batch that failed; the others are cancelled.
        """
        batches = chunk_texts(texts)
        # One answer at a time is parsed: two threads would not be faster at it, and hold twice the memory.
        work = partial(self._batch, len(batches), threading.Lock())
        done = results(list(enumerate(batches)), work, most=EMBED_CONCURRENCY, signal=signal, on_progress=on_progress)
        return list(chain.from_iterable(done))

    def embed_query(self, text: str, *, signal: AbortSignal | None = None) -> array[float]:
        """The vector of one query, to be compared with those of documents."""
        if not isinstance(text, str):
            raise wrong_type("text", text, "a string")
        (vector,) = self._vectors([text], "search_query", threading.Lock(), signal)
        return vector

    def _batch(
        self, total: int, parsing: threading.Lock, numbered: tuple[int, Sequence[str]], signal: AbortSignal
    ) -> list[array[float]]:
        index, texts = numbered
        try:
            return self._vectors(texts, "search_document", parsing, signal)
        except ModelUnavailable as error:
            first = index * EMBED_BATCH_LIMIT
            place = f"batch {index + 1} of {total} (texts {first} to {first + len(texts) - 1})"
            raise error.of_batch(place) from error.__cause__

    def _vectors(
        self, texts: Sequence[str], input_type: InputType, parsing: threading.Lock, signal: AbortSignal | None
    ) -> list[array[float]]:
        body = build_embed_body(texts, input_type, self._dimensions)
        answer = sent(self._client, self._model_id, body, signal)
        with parsing:
            found = vectors_in(parsed_answer(self._model_id, answer), len(texts), self._dimensions)
        if isinstance(found, str):
            raise ModelUnavailable(self._model_id, found)
        return found


class EmbeddingsLive(Embeddings):
    """The service over the transport that a configuration (the environment's, unless given) names."""

    def __init__(
        self, config: LlmConfig | None = None, *, transport: OpensRequests | None = None, clock: Clock | None = None
    ) -> None:
        self._made: Final = invoke_client_for(config or LlmConfig.from_env(), transport=transport, clock=clock)
        super().__init__(self._made)

    def close(self) -> None:
        """Close the client's connections. Idempotent."""
        self._made.close()


def read_texts(texts: Iterable[str]) -> list[str]:
    """A string is a sequence of strings too, and a slip."""
    if isinstance(texts, str) or not isinstance(texts, Iterable):
        raise wrong_type("texts", texts, "a list of strings")
    read = list(texts)
    for index, text in enumerate(read):
        if not isinstance(text, str):
            raise wrong_type(f"texts[{index}]", text, "a string")
    return read


def read_count(name: str, value: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise invalid(name, f"found {value!r}", "expected a whole number, 1 or more")
    return value


def chunk_texts(texts: Sequence[str], size: int = EMBED_BATCH_LIMIT) -> list[list[str]]:
    """The texts in batches, in order. An entry dropped or doubled here would be a vector on the wrong body."""
    read, step = read_texts(texts), read_count("size", size)
    return [read[start : start + step] for start in range(0, len(read), step)]


def build_embed_body(texts: Sequence[str], input_type: InputType, dimensions: int = EMBED_DIM) -> str:
    """The body of one request. output_dimension: see EMBED_DIM. embedding_types: puts the vectors under "float"."""
    if input_type not in get_args(InputType):
        raise invalid("input_type", f"found {input_type!r}", f"expected one of {', '.join(get_args(InputType))}")
    return compact(
        {
            "texts": read_texts(texts),
            "input_type": input_type,
            "output_dimension": read_count("dimensions", dimensions),
            "embedding_types": ["float"],
        }
    )


def read_embeddings(payload: Any, expected: int, dimensions: int = EMBED_DIM) -> list[array[float]]:
    """The vectors of a parsed answer. Raises ModelUnavailable where their count or a width is not what was asked for.

    One vector short would shift every later one onto the wrong text; one of another width cannot be compared.
    """
    found = vectors_in(payload, expected, dimensions)
    if isinstance(found, str):
        raise ModelUnavailable(EMBED_MODEL_ID, found)
    return found


def vectors_in(payload: Any, expected: int, dimensions: int) -> list[array[float]] | str:
    """The vectors, or why they cannot be used."""
    rows = payload.get("embeddings") if isinstance(payload, Mapping) else None
    if isinstance(rows, Mapping):  # by type, where embedding_types was named; a plain list where it was not
        rows = rows.get("float")
    rows = rows if isinstance(rows, list) else []
    if len(rows) != expected:
        return f"expected {expected} vectors, found {len(rows)}"
    for index, row in enumerate(rows):
        width = len(row) if isinstance(row, list) else None
        if width != dimensions:
            return f"vector {index}: expected {dimensions} numbers, found {'no list' if width is None else width}"
    try:
        vectors = [array("f", row) for row in rows]
    except (TypeError, OverflowError):  # no number; a whole number beyond any float
        return "a vector holds something else than numbers"
    for index, vector in enumerate(vectors):
        if not isfinite(sum(vector)):  # as it is where one number is not; finite ones of 32 bits cannot add up to that
            return f"vector {index}: a number is not finite, or has no place in 32 bits"
    return vectors
