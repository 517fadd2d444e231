"""The exact bytes of both embeddings formats and of OpenAI's models on Bedrock, and what they refuse."""

from __future__ import annotations

import json
from typing import Any

import pytest
from loopback.plain_client import Browser

from membrane_lite.loopback import Failure, LoopbackProvider, Reply, bedrock, embeddings
from membrane_lite.loopback.embeddings import vector
from membrane_lite.loopback.format import Asked
from membrane_lite.loopback.routes import format_of

COHERE = {"texts": ["one"], "input_type": "search_document", "output_dimension": 4}
ONE = "[0.015625,0.3671875,0.1953125,0.953125]"
EMBED, CHAT = "/model/cohere.embed-v4%3A0/invoke", "/model/global.openai.gpt-5.6-sol/invoke"
BEARER = {"Authorization": "Bearer any-token-at-all"}
HI = [{"role": "user", "content": "Hi"}]


def test_a_vector_is_made_of_its_text_and_its_type() -> None:
    assert vector("one", 10) == [*vector("one", 8), 0.5, 0.5]
    assert vector("one", 2) == vector("one", 8)[:2]
    assert vector("one", 8) != vector("two", 8)
    assert vector("one", 8) != vector("one", 8, "search_query")


def test_cohere_gives_vectors_by_type_where_a_type_was_named() -> None:
    asked = Asked(body={**COHERE, "embedding_types": ["float"]}, number=7)
    assert embeddings.cohere_document(Reply(), asked).decode() == (
        '{"id":"emb-loopback-000007","texts":["one"],"response_type":"embeddings_by_type",'
        '"embeddings":{"float":[' + ONE + "]}}"
    )


def test_cohere_gives_a_plain_list_where_none_was_and_its_own_dimension() -> None:
    told = json.loads(embeddings.cohere_document(Reply(), Asked(body={**COHERE, "output_dimension": None})))
    assert (told["response_type"], [len(row) for row in told["embeddings"]]) == ("embeddings_floats", [1536])


def test_openai_gives_a_list_with_indices() -> None:
    asked = Asked(body={"model": "m", "input": ["one", "two"], "dimensions": 4})
    assert embeddings.openai_document(Reply(), asked).decode() == (
        '{"object":"list","data":[{"object":"embedding","index":0,"embedding":' + ONE + "},"
        '{"object":"embedding","index":1,"embedding":' + json.dumps(vector("two", 4), separators=(",", ":")) + "}],"
        '"model":"m","usage":{"prompt_tokens":2,"total_tokens":2}}'
    )


def test_openai_takes_a_single_text() -> None:
    told = json.loads(embeddings.openai_document(Reply(), Asked(body={"model": "m", "input": "one", "dimensions": 4})))
    assert [row["embedding"] for row in told["data"]] == [vector("one", 4)]


FORMATS = {
    EMBED: "cohere_embed",
    "/model/us.cohere.embed-v4:0/invoke": "cohere_embed",
    CHAT: "bedrock_chat",
    "/model/global.anthropic.claude-opus-5/invoke": "bedrock",
    "/v1/embeddings": "openai_embeddings",
}


@pytest.mark.parametrize("target, name", FORMATS.items())
def test_the_format_of_a_target(target: str, name: str) -> None:
    found = format_of(target)
    assert found is not None and found.name == name


MALFORMED = "Malformed input request, please reformat your input and try again."
REFUSED: dict[str, tuple[str, dict[str, str], Any, int, str]] = {
    "a whole request": (EMBED, BEARER, {**COHERE, "output_dimension": 256}, 200, ""),
    "no signature": (EMBED, {}, COHERE, 403, "Missing Authentication Token"),
    "no input type": (
        EMBED,
        BEARER,
        {"texts": ["one"]},
        400,
        "input_type: must be one of search_document, search_query, classification, clustering",
    ),
    "no texts": (EMBED, BEARER, {**COHERE, "texts": []}, 400, "texts: must be a list of strings, at least one"),
    "a text": (EMBED, BEARER, {**COHERE, "texts": "one"}, 400, "texts: must be a list of strings, at least one"),
    "97 texts": (EMBED, BEARER, {**COHERE, "texts": ["x"] * 97}, 400, "texts: too many, 97 are more than 96"),
    "an odd dimension": (EMBED, BEARER, COHERE, 400, "output_dimension: must be one of 256, 512, 1024, 1536"),
    "no object": (EMBED, BEARER, ["one"], 400, MALFORMED),
    "a whole chat": (CHAT, BEARER, {"messages": HI}, 200, ""),
    "a chat without a signature": (CHAT, {}, {"messages": HI}, 403, "Missing Authentication Token"),
    "a chat without messages": (CHAT, BEARER, {"messages": []}, 400, "messages: at least one message is required"),
    "a chat that names its model": (
        CHAT,
        BEARER,
        {"messages": HI, "model": "m"},
        400,
        "model: Extra inputs are not permitted",
    ),
    "a chat that is none": (CHAT, BEARER, [], 400, MALFORMED),
}


@pytest.mark.parametrize("target, headers, body, status, message", REFUSED.values(), ids=REFUSED.keys())
def test_what_bedrock_refuses(target: str, headers: dict[str, str], body: Any, status: int, message: str) -> None:
    with LoopbackProvider([Reply("Hello")]) as provider, Browser(provider) as browser:
        answered, told = browser.send(json.dumps(body).encode(), target=target, headers=headers)
    assert answered == status
    assert status == 200 or json.loads(told) == {"message": message}


OPENAI: dict[str, tuple[Any, str]] = {
    "no model": ({"input": ["x"]}, "you must provide a model parameter"),
    "no input": ({"model": "m", "input": []}, "'input' cannot be empty."),
    "none at all": ({"model": "m"}, "Invalid type for 'input'."),
}


@pytest.mark.parametrize("body, message", OPENAI.values(), ids=OPENAI.keys())
def test_what_openai_refuses(body: Any, message: str) -> None:
    with LoopbackProvider([Reply()]) as provider, Browser(provider) as browser:
        status, told = browser.send(json.dumps(body).encode(), target="/v1/embeddings")
    assert (status, json.loads(told)["error"]["message"]) == (400, message)


def test_a_failure_is_told_in_bedrocks_words() -> None:
    with LoopbackProvider([Failure(429)]) as provider, Browser(provider) as browser:
        status, told = browser.send(json.dumps(COHERE).encode(), target=EMBED, headers=BEARER)
    assert (status, json.loads(told)) == (429, {"message": "Too Many Requests"})
    assert bedrock.BEDROCK.error_types[429] == "ThrottlingException"
