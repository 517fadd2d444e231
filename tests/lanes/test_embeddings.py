"""embeddings: bodies and answers of one batch, and batches put together, over a client of the caller's own."""

from __future__ import annotations

import json
import math
import threading
from array import array
from typing import Any

import pytest
from lanes.lane_stage import Recorder, refused
from shared_data import shared_json

from membrane_lite import AbortController, MembraneError
from membrane_lite.lanes import (
    Embeddings,
    EmbeddingsLive,
    LlmConfig,
    ModelUnavailable,
    build_embed_body,
    chunk_texts,
    make_embeddings,
    read_embeddings,
)
from membrane_lite.loopback.embeddings import vector

Json = Any


def vectors(model_id: str, body: Json) -> Json:
    """An answer in which every vector is that of its text."""
    rows = [vector(text, body["output_dimension"], body["input_type"]) for text in body["texts"]]
    return {"embeddings": {"float": rows}}


CHUNKS: dict[str, tuple[int, list[int]]] = {
    "none": (0, []),
    "one": (1, [1]),
    "one less than the limit": (95, [95]),
    "the limit": (96, [96]),
    "one more": (97, [96, 1]),
    "twice the limit": (192, [96, 96]),
    "and one": (193, [96, 96, 1]),
}


@pytest.mark.parametrize("count, sizes", CHUNKS.values(), ids=CHUNKS.keys())
def test_chunk_texts_at_its_boundaries(count: int, sizes: list[int]) -> None:
    texts = [f"text {index}" for index in range(count)]
    chunks = chunk_texts(texts)
    assert [len(chunk) for chunk in chunks] == sizes
    assert [text for chunk in chunks for text in chunk] == texts


def test_chunk_texts_of_another_size() -> None:
    assert chunk_texts(["a", "b", "c"], 2) == [["a", "b"], ["c"]]


@pytest.mark.parametrize("size", [0, -1, 1.5, True, "96", None])
def test_chunk_texts_refuses_a_size_that_is_none(size: Any) -> None:
    error = refused(lambda: chunk_texts(["a"], size))
    assert error.message == f"size: found {size!r}; expected a whole number, 1 or more"


def test_build_embed_body_names_the_dimension_and_the_type() -> None:
    assert build_embed_body(["one", "zwei é"], "search_document") == (
        '{"texts":["one","zwei é"],"input_type":"search_document","output_dimension":1024,"embedding_types":["float"]}'
    )
    assert build_embed_body(["q"], "search_query", 256) == (
        '{"texts":["q"],"input_type":"search_query","output_dimension":256,"embedding_types":["float"]}'
    )


WRONG_BODIES: dict[str, tuple[tuple[Any, ...], str]] = {
    "another input type": (
        (["a"], "document"),
        "input_type: found 'document'; expected one of search_document, search_query",
    ),
    "no dimension": ((["a"], "search_query", 0), "dimensions: found 0; expected a whole number, 1 or more"),
    "a dimension that is no number": ((["a"], "search_query", "1024"), "dimensions: found '1024'; expected a whole"),
    "one text instead of a list": (("abc", "search_query"), "texts: found str 'abc'; expected a list of strings"),
}


@pytest.mark.parametrize("given, words", WRONG_BODIES.values(), ids=WRONG_BODIES.keys())
def test_build_embed_body_refuses(given: Any, words: str) -> None:
    error = refused(lambda: build_embed_body(*given))
    assert (error.type, error.message[: len(words)]) == ("invalid_request", words)


READ: dict[str, Json] = {
    "by type": {"embeddings": {"float": [[0.5, -0.25, 1], [0, 0.125, 2]]}},
    "a plain list": {"embeddings": [[0.5, -0.25, 1], [0, 0.125, 2]]},
    "by several types": {"embeddings": {"int8": [[1], [2]], "float": [[0.5, -0.25, 1], [0, 0.125, 2]]}},
}


@pytest.mark.parametrize("payload", READ.values(), ids=READ.keys())
def test_read_embeddings(payload: Json) -> None:
    found = read_embeddings(payload, 2, 3)
    assert found == [array("f", [0.5, -0.25, 1]), array("f", [0, 0.125, 2])]
    assert {(type(row), row.typecode) for row in found} == {(array, "f")}


NOT_FINITE = "a number is not finite, or has no place in 32 bits"
UNUSABLE: dict[str, tuple[Json, str]] = {
    "one short": ({"embeddings": {"float": [[1, 2, 3]]}}, "expected 2 vectors, found 1"),
    "one too many": ({"embeddings": [[1, 2, 3]] * 3}, "expected 2 vectors, found 3"),
    "too wide": ({"embeddings": [[1, 2, 3], [1, 2, 3, 4]]}, "vector 1: expected 3 numbers, found 4"),
    "too narrow": ({"embeddings": [[1, 2], [1, 2, 3]]}, "vector 0: expected 3 numbers, found 2"),
    "a row that is none": ({"embeddings": [[1, 2, 3], "abc"]}, "vector 1: expected 3 numbers, found no list"),
    "words": ({"embeddings": [[1, 2, 3], ["a", "b", "c"]]}, "a vector holds something else than numbers"),
    "null among them": ({"embeddings": [[1, 2, 3], [1, None, 3]]}, "a vector holds something else than numbers"),
    "more than any float": ({"embeddings": [[1, 2, 3], [1, 10**400, 3]]}, "a vector holds something else than numbers"),
    "not a number": ({"embeddings": [[1, 2, 3], [1, math.nan, 3]]}, f"vector 1: {NOT_FINITE}"),
    "infinities that cancel out": ({"embeddings": [[math.inf, -math.inf, 3], [1, 2, 3]]}, f"vector 0: {NOT_FINITE}"),
    "more than 32 bits hold": ({"embeddings": [[1, 2, 3], [1, 2, 1e39]]}, f"vector 1: {NOT_FINITE}"),
    "another type": ({"embeddings": {"int8": [[1, 2, 3]] * 2}}, "expected 2 vectors, found 0"),
    "no vectors": ({"message": "Hello"}, "expected 2 vectors, found 0"),
    "no object": (["float"], "expected 2 vectors, found 0"),
}


@pytest.mark.parametrize("payload, reason", UNUSABLE.values(), ids=UNUSABLE.keys())
def test_read_embeddings_refuses_what_was_not_asked_for(payload: Json, reason: str) -> None:
    error = refused(lambda: read_embeddings(payload, 2, 3), ModelUnavailable)
    assert (error.message, error.reason) == (f"cohere.embed-v4:0: {reason}", reason)
    assert (error.type, error.retryable, error.raw_error, error.raw_request) == ("unknown", False, None, None)


RECORDED: dict[str, tuple[str, int, int]] = {
    "by type": ("by-type-94759", 1, 1536),
    "a list": ("float-list-ebf86", 2, 1024),
}


@pytest.mark.parametrize("name, count, width", RECORDED.values(), ids=RECORDED.keys())
def test_read_embeddings_of_what_the_service_really_sent(name: str, count: int, width: int) -> None:
    exchange = shared_json(f"recorded/cohere_embed/{name}.json")
    expected = exchange["expected"]
    found = read_embeddings(json.loads(exchange["response"]["body_text"]), count, width)
    assert (len(found), {len(row) for row in found}) == (expected["embedding_count"], {expected["dimensions"]})
    assert found[0][:3] == array("f", expected["first_values"])
    assert found[-1][-3:] == array("f", expected["last_values"])


def test_embed_sends_documents_in_batches_and_gives_each_vector_in_the_place_of_its_text() -> None:
    texts = [f"text {index}" for index in range(500)]
    client = Recorder(vectors)
    found = make_embeddings(client, dimensions=256).embed(texts)
    assert found == [array("f", vector(text, 256)) for text in texts]
    assert sorted(len(body["texts"]) for _, body in client.sent) == [20, 96, 96, 96, 96, 96]
    assert {(model, body["input_type"], body["output_dimension"]) for model, body in client.sent} == {
        ("cohere.embed-v4:0", "search_document", 256)
    }


def test_embed_of_no_texts_sends_nothing() -> None:
    client = Recorder([])
    assert (make_embeddings(client).embed([]), client.sent) == ([], [])


def test_embed_query_sends_one_query_which_differs_by_its_input_type_alone() -> None:
    client = Recorder(vectors)
    service = make_embeddings(client)
    assert service.embed_query("one") == array("f", vector("one", 1024, "search_query"))
    assert service.embed(["one"]) == [array("f", vector("one", 1024))]
    (_, query), (_, document) = client.sent
    assert {**query, "input_type": "search_document"} == document
    assert query["input_type"] == "search_query"


def test_make_embeddings_of_another_model_and_dimension() -> None:
    client = Recorder(vectors)
    service = make_embeddings(client, model_id="us.cohere.embed-v4:0", dimensions=512)
    assert len(service.embed_query("one")) == 512
    assert [(model, body["output_dimension"]) for model, body in client.sent] == [("us.cohere.embed-v4:0", 512)]


def test_embed_has_at_most_six_batches_in_flight() -> None:
    counting, flying, most, all_here = threading.Lock(), [0], [0], threading.Barrier(6)

    def answer(model_id: str, body: Json) -> Json:
        return vectors(model_id, body)

    class Counted(Recorder):
        def send(self, model_id: str, body: str, signal: Any) -> bytes:
            with counting:
                flying[0] += 1
                most[0] = max(most[0], flying[0])
            all_here.wait(2)  # six come together, twice over, or the barrier breaks
            try:
                return super().send(model_id, body, signal)
            finally:
                with counting:
                    flying[0] -= 1

    make_embeddings(Counted(answer), dimensions=256).embed(["x"] * 96 * 12)
    assert most == [6]


def test_embed_tells_its_progress_in_the_callers_thread() -> None:
    told: list[tuple[int, int, bool]] = []
    here = threading.current_thread()
    make_embeddings(Recorder(vectors), dimensions=256).embed(
        ["x"] * 200, on_progress=lambda done, total: told.append((done, total, threading.current_thread() is here))
    )
    assert told == [(1, 3, True), (2, 3, True), (3, 3, True)]


def test_embed_of_a_progress_callback_that_raises_ends_with_its_error() -> None:
    def broken(done: int, total: int) -> None:
        raise ValueError("no such window")

    error = refused(lambda: make_embeddings(Recorder(vectors)).embed(["x"], on_progress=broken))
    assert (error.message, error.retryable) == ("on_progress raised ValueError: no such window", False)


class Waiting(Recorder):
    """Every batch but one waits until it is aborted; that one fails, once the others wait."""

    def __init__(self) -> None:
        super().__init__([])
        self.aborted: list[bool] = []
        self._waiting = threading.Barrier(6)

    def send(self, model_id: str, body: str, signal: Any) -> bytes:
        texts = json.loads(body)["texts"]
        self.sent.append((model_id, texts))
        self._waiting.wait(2)
        if texts[0] == "text 192":
            raise MembraneError("rate_limit", "slow down", retry_after_ms=7_000, provider_error_code="Throttled")
        self.aborted.append(signal.wait(2))
        raise MembraneError("abort", "aborted")


def test_embed_of_a_batch_that_fails_cancels_the_rest_and_names_itself() -> None:
    client = Waiting()
    error = refused(lambda: make_embeddings(client).embed([f"text {i}" for i in range(1_000)]), ModelUnavailable)
    assert error.message == "cohere.embed-v4:0: batch 3 of 11 (texts 192 to 287): Throttled: slow down"
    assert (error.type, error.retryable, error.retry_after_ms) == ("rate_limit", True, 7_000)
    assert (len(client.sent), client.aborted) == (6, [True] * 5)


def test_embed_of_a_short_batch_names_itself_too() -> None:
    def short(model_id: str, body: Json) -> Json:
        return vectors(model_id, body) if len(body["texts"]) == 96 else {"embeddings": []}

    error = refused(lambda: make_embeddings(Recorder(short), dimensions=256).embed(["x"] * 100), ModelUnavailable)
    assert error.message == "cohere.embed-v4:0: batch 2 of 2 (texts 96 to 99): expected 4 vectors, found 0"
    assert (error.type, error.retryable) == ("unknown", False)


def test_embed_ends_with_the_callers_signal() -> None:
    controller = AbortController()

    class Slow(Recorder):
        def send(self, model_id: str, body: str, signal: Any) -> bytes:
            controller.abort("enough")
            assert signal.wait(2)
            raise MembraneError("abort", f"aborted: {signal.reason}")

    service = make_embeddings(Slow([]))
    error = refused(lambda: service.embed(["x"], signal=controller.signal), ModelUnavailable)
    assert (error.type, error.retryable) == ("abort", False)
    assert error.message == "cohere.embed-v4:0: batch 1 of 1 (texts 0 to 0): abort: aborted: enough"


WRONG_TEXTS: dict[str, tuple[Any, str]] = {
    "a string, which is a list of letters": ("abc", "texts: found str 'abc'; expected a list of strings"),
    "a number among them": (["a", 7], "texts[1]: found int 7; expected a string"),
    "none among them": ([None], "texts[0]: found NoneType None; expected a string"),
    "none at all": (None, "texts: found NoneType None; expected a list of strings"),
    "bytes": (b"a", "texts[0]: found int 97; expected a string"),
}


@pytest.mark.parametrize("texts, words", WRONG_TEXTS.values(), ids=WRONG_TEXTS.keys())
def test_embed_takes_texts_only(texts: Any, words: str) -> None:
    client = Recorder([])
    error = refused(lambda: make_embeddings(client).embed(texts))
    assert (error.type, error.message, client.sent) == ("invalid_request", words, [])


def test_embed_query_takes_a_text_only() -> None:
    client = Recorder([])
    error = refused(lambda: make_embeddings(client).embed_query(None))  # type: ignore[arg-type]
    assert (error.message, client.sent) == ("text: found NoneType None; expected a string", [])


def test_make_embeddings_refuses_a_dimension_that_is_none_at_construction() -> None:
    error = refused(lambda: make_embeddings(Recorder([]), dimensions=0))
    assert error.message == "dimensions: found 0; expected a whole number, 1 or more"


def test_embed_interrupted_from_the_keyboard_ends_its_batches() -> None:
    """What a callback raises stands for it: it reaches the main thread where it waits."""
    threads = set(threading.enumerate())

    class Hanging(Recorder):
        def send(self, model_id: str, body: str, signal: Any) -> bytes:
            if json.loads(body)["texts"][0] == "text 0":
                return super().send(model_id, body, signal)
            self.sent.append((model_id, signal.wait(2)))
            raise MembraneError("abort", "aborted")

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    client = Hanging(vectors)
    with pytest.raises(KeyboardInterrupt):
        make_embeddings(client, dimensions=256).embed([f"text {i}" for i in range(1_000)], on_progress=interrupt)
    for thread in set(threading.enumerate()) - threads:
        thread.join(2)
    assert set(threading.enumerate()) <= threads
    assert 1 < len(client.sent) <= 7
    assert {aborted for _, aborted in client.sent[1:]} == {True}


def test_embeddings_live_is_the_service_over_what_the_configuration_names() -> None:
    live = EmbeddingsLive(LlmConfig())
    assert isinstance(live, Embeddings)
    live.close()
