"""Embeddings: Cohere's on Bedrock, POST /model/{id}/invoke, and OpenAI's, POST .../embeddings.

    > {"texts": ["one"], "input_type": "search_document", "output_dimension": 4, "embedding_types": ["float"]}
    < {"id": ..., "texts": ["one"], "response_type": "embeddings_by_type", "embeddings": {"float": [[0.6,0.5,0.1,0.9]]}}
    > {"model": "m", "input": ["one"], "dimensions": 4, "encoding_format": "float"}
    < {"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": [0.6,0.5,0.1,0.9]}], ...}

A Reply needs no pieces: the vector of a text is made of the text (vector), so that a client which mixes two up is found
out. Where no dimension is asked for it is 1536, as the service does it. Sources: docs.aws.amazon.com/bedrock,
"Cohere Embed v4"; platform.openai.com/docs/api-reference/embeddings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from . import bedrock
from .bedrock import BEDROCK
from .chat import CHAT, first_fault
from .chat import error as chat_error
from .format import UNASKED, Asked, json_bytes, tokens

if TYPE_CHECKING:
    from .answers import Raw
    from .received import Received
    from .replies import Reply

Json = Mapping[str, Any]

COHERE_TARGET: Final = re.compile(r"/model/[^/]*cohere\.embed[^/]*/invoke$")
INPUT_TYPES: Final = ("search_document", "search_query", "classification", "clustering")
DIMENSIONS: Final = (256, 512, 1024, 1536)
DEFAULT_DIMENSIONS: Final = DIMENSIONS[-1]
MOST_TEXTS: Final = 96
MARKS: Final = 8  # numbers that differ from text to text; the rest only fill the vector


def vector(text: str, dimensions: int, input_type: str = "search_document") -> list[float]:
    """What the vector of a text is here: one for documents and another for queries."""
    digest = sha256(f"{input_type}:{text}".encode("utf-8", "surrogatepass")).digest()
    return [byte / 256 for byte in digest[:MARKS]][:dimensions] + [0.5] * (dimensions - MARKS)


def vector_json(text: str, dimensions: int, input_type: str) -> bytes:
    """The same as JSON, without a number being written twice."""
    marks = ",".join(map(repr, vector(text, min(dimensions, MARKS), input_type)))
    return b"[" + marks.encode() + b",0.5" * (dimensions - MARKS) + b"]"


def cohere_document(reply: Reply, asked: Asked = UNASKED) -> bytes:
    """Vectors by their type where embedding_types named one, else a plain list."""
    body = asked.body
    rows = b",".join(_rows(body["texts"], body.get("output_dimension"), body["input_type"]))
    named = "embedding_types" in body
    head = {"id": f"emb-loopback-{asked.number:06d}", "texts": body["texts"]}
    kind = "embeddings_by_type" if named else "embeddings_floats"
    vectors = b'{"float":[' + rows + b"]}" if named else b"[" + rows + b"]"
    return json_bytes({**head, "response_type": kind})[:-1] + b',"embeddings":' + vectors + b"}"


def openai_document(reply: Reply, asked: Asked = UNASKED) -> bytes:
    """The list of vectors, each with the index of its text."""
    body = asked.body
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    vectors = _rows(texts, body.get("dimensions"), body.get("input_type", INPUT_TYPES[0]))
    data = b",".join(
        b'{"object":"embedding","index":%d,"embedding":%s}' % (index, row) for index, row in enumerate(vectors)
    )
    used = sum(map(tokens, texts))
    tail = {"model": asked.model, "usage": {"prompt_tokens": used, "total_tokens": used}}
    return b'{"object":"list","data":[' + data + b"]," + json_bytes(tail)[1:]


def check_cohere(received: Received) -> Raw | None:
    """The error with which Bedrock would refuse the request, or None."""
    return bedrock.first_fault(received, (_cohere_faults,))


def _cohere_faults(body: Json) -> Iterator[str]:
    if body.get("input_type") not in INPUT_TYPES:
        yield f"input_type: must be one of {', '.join(INPUT_TYPES)}"
    texts = body["texts"]
    if not (isinstance(texts, list) and texts and all(isinstance(text, str) for text in texts)):
        yield "texts: must be a list of strings, at least one"
    if len(texts) > MOST_TEXTS:
        yield f"texts: too many, {len(texts)} are more than {MOST_TEXTS}"
    if body.get("output_dimension", DEFAULT_DIMENSIONS) not in DIMENSIONS:
        yield f"output_dimension: must be one of {', '.join(map(str, DIMENSIONS))}"


def check_openai(received: Received) -> Raw | None:
    """The error with which the API would refuse the request, or None. No key is asked for: local servers need none."""
    return first_fault(received, (_openai_faults,), "input")


def _openai_faults(body: Json) -> Iterator[Raw]:
    if not body.get("model"):
        yield chat_error(400, "invalid_request_error", "you must provide a model parameter")
    if not body["input"]:
        yield chat_error(400, "invalid_request_error", "'input' cannot be empty.", param="input")


def _rows(texts: list[str], dimensions: int | None, input_type: str) -> Iterator[bytes]:
    for text in texts:
        yield vector_json(text, dimensions or DEFAULT_DIMENSIONS, input_type)


COHERE_EMBED: Final = BEDROCK._replace(
    name="cohere_embed", is_streamed=lambda received: False, check=check_cohere, document=cohere_document
)
OPENAI_EMBEDDINGS: Final = CHAT._replace(
    name="openai_embeddings", is_streamed=lambda received: False, check=check_openai, document=openai_document
)
