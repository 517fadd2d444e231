"""A request as it stood on the wire, or as it was rendered without a wire, and what a case may say about it.

REQUEST_WORDS, at the end, gives for each word of `sent` a function (request, wanted) -> what is wrong, [] for nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

from membrane_lite.loopback import Received
from membrane_lite.wire.http import HttpRequest

# A place in JSON, and one step of the way to it: $.a.b[0], $.list[-1]
PLACE = re.compile(r"\$(?:\.[^.\[\]]+|\[-?\d+\])*")
STEP = re.compile(r"\.([^.\[\]]+)|\[(-?\d+)\]")

Faults = list[str]


class WireRequest:
    """method, target as on the request line, headers with lower-case names, body."""

    def __init__(self, method: str, target: str, headers: Any, body: bytes) -> None:
        self.method = method
        self.target = target
        self.headers = {name.lower(): value for name, value in headers}
        self.body = body

    @classmethod
    def of_received(cls, received: Received) -> WireRequest:
        return cls(received.method, received.target, received.headers, received.body)

    @classmethod
    def of_rendered(cls, request: HttpRequest) -> WireRequest:
        parts = urlsplit(request.url)
        return cls(
            request.method, parts.path + (f"?{parts.query}" if parts.query else ""), request.headers, request.body
        )

    @cached_property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def mappings(self) -> list[Mapping[str, Any]]:
        """Every object in the body, at any depth."""
        return [value for value in walked(self.json) if isinstance(value, dict)]

    @property
    def strings(self) -> list[str]:
        """Every string value in the body, at any depth."""
        return [value for value in walked(self.json) if isinstance(value, str)]

    @property
    def texts(self) -> list[Mapping[str, Any]]:
        """Every text block in the body."""
        return [each for each in self.mappings if each.get("type") == "text" and "text" in each]

    @property
    def marked(self) -> list[Mapping[str, Any]]:
        """Every object that carries a cache marker."""
        return [each for each in self.mappings if "cache_control" in each]


def faults_of(request: WireRequest, wanted: Mapping[str, Any], earlier: list[WireRequest]) -> Faults:
    """What is wrong with a request, of which only what `wanted` names is looked at. earlier: those before it."""
    faults = []
    for word, value in wanted.items():
        if word == "headers_differ_from":
            faults += same_headers(request, earlier[value], wanted["differing"])
        elif word != "differing":
            faults += REQUEST_WORDS[word](request, value)
    return faults


def walked(value: Any) -> Iterator[Any]:
    yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from walked(inner)


def found_at(document: Any, place: str) -> Any:
    """The value at $.a.b[0]; a negative index counts from the end. Raises LookupError where there is none."""
    assert PLACE.fullmatch(place), f"{place!r} is no place in JSON"
    for name, index in STEP.findall(place):
        document = document[name] if name else document[int(index)]
    return document


def equal(what: str, seen: Any, wanted: Any) -> Faults:
    return [] if seen == wanted and type(seen) is type(wanted) else [f"{what}: {seen!r}, expected {wanted!r}"]


def holds(what: str, condition: bool) -> Faults:
    return [] if condition else [what]


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def method(request: WireRequest, wanted: str) -> Faults:
    return equal("method", request.method, wanted)


def path(request: WireRequest, wanted: str) -> Faults:
    return equal("path", request.target, wanted)


def path_not_contains(request: WireRequest, wanted: Any) -> Faults:
    return [f"path {request.target!r} holds {part!r}" for part in listed(wanted) if part in request.target]


def headers(request: WireRequest, wanted: Mapping[str, Any]) -> Faults:
    """A text is the whole value, {"regex"} a pattern that is found in it."""
    return [fault for name, value in wanted.items() for fault in header(name, request.headers.get(name.lower()), value)]


def header(name: str, seen: str | None, wanted: Any) -> Faults:
    if isinstance(wanted, dict):
        return holds(f"header {name}: {seen!r}, expected {wanted!r}", bool(re.search(wanted["regex"], seen or "")))
    return equal(f"header {name}", seen, wanted)


def headers_absent(request: WireRequest, wanted: list[str]) -> Faults:
    return [f"header {name} is there" for name in wanted if name.lower() in request.headers]


def same_headers(request: WireRequest, other: WireRequest, names: list[str]) -> Faults:
    pairs = [(name, request.headers.get(name.lower()), other.headers.get(name.lower())) for name in names]
    return [f"header {name}: {one!r}, as in the earlier request" for name, one, two in pairs if one == two]


def json_places(request: WireRequest, wanted: list[Mapping[str, Any]]) -> Faults:
    return [fault for row in wanted for fault in json_place(request, row)]


def json_place(request: WireRequest, row: Mapping[str, Any]) -> Faults:
    try:
        seen = found_at(request.json, row["at"])
    except (LookupError, TypeError) as exc:
        return [f"{row['at']}: nothing is there ({exc!r}), expected {row['is']!r}"]
    return equal(row["at"], seen, row["is"])


def json_absent_keys(request: WireRequest, wanted: list[str]) -> Faults:
    return [f"key {key!r} is in the body" for key in wanted if any(key in each for each in request.mappings)]


def json_count(request: WireRequest, wanted: Mapping[str, Any]) -> Faults:
    count = sum(wanted["key"] in each for each in request.mappings)
    least, most = wanted.get("n", wanted.get("min", 0)), wanted.get("n", wanted.get("max", count))
    return holds(f"key {wanted['key']!r}: {count} times, expected {wanted!r}", least <= count <= most)


def body_utf8(request: WireRequest, wanted: bool) -> Faults:
    try:
        request.body.decode("utf-8")
    except UnicodeDecodeError as exc:
        return holds(f"body: {exc}", not wanted)
    return holds("body: it is UTF-8", wanted)


def body_contains(request: WireRequest, wanted: Any) -> Faults:
    return [f"body lacks {part!r}" for part in listed(wanted) if part.encode() not in request.body]


def body_not_contains(request: WireRequest, wanted: Any) -> Faults:
    return [f"body holds {part!r}" for part in listed(wanted) if part.encode() in request.body]


def body_json_text_contains(request: WireRequest, wanted: Any) -> Faults:
    return [
        f"no string of the body holds {part!r}"
        for part in listed(wanted)
        if not any(part in text for text in request.strings)
    ]


def roles(request: WireRequest, wanted: list[str]) -> Faults:
    return equal("roles", [message["role"] for message in request.json["messages"]], wanted)


def no_empty_text_blocks(request: WireRequest, wanted: bool) -> Faults:
    empty = [each for each in request.texts if not each["text"].strip()]
    return holds(f"empty text blocks: {empty}", (not empty) is wanted)


def cache_control_not_on_empty(request: WireRequest, wanted: bool) -> Faults:
    empty = [each for each in request.marked if not each.get("text", "x").strip()]
    return holds(f"cache markers on empty blocks: {empty}", (not empty) is wanted)


def cache_control_on_texts_containing(request: WireRequest, wanted: list[str]) -> Faults:
    texts = [each.get("text", "") for each in request.marked]
    return [f"no marked text holds {part!r}: {texts}" for part in wanted if not any(part in text for text in texts)]


def last_assistant_text_no_trailing_whitespace(request: WireRequest, wanted: bool) -> Faults:
    said = [message["content"] for message in request.json["messages"] if message["role"] == "assistant"]
    text = said[-1] if isinstance(said[-1], str) else said[-1][-1]["text"]
    return holds(f"the assistant's last text: {text!r}", (text == text.rstrip()) is wanted)


def image_media_types(request: WireRequest, wanted: list[str]) -> Faults:
    sources = [each["source"] for each in request.mappings if each.get("type") == "image"]
    return equal("image media types", [source["media_type"] for source in sources], wanted)


REQUEST_WORDS: Mapping[str, Callable[[WireRequest, Any], Faults]] = {
    "method": method,
    "path": path,
    "path_not_contains": path_not_contains,
    "headers": headers,
    "headers_absent": headers_absent,
    "json": json_places,
    "json_absent_keys": json_absent_keys,
    "json_count": json_count,
    "body_utf8": body_utf8,
    "body_contains": body_contains,
    "body_not_contains": body_not_contains,
    "body_json_text_contains": body_json_text_contains,
    "body_json_texts_all": body_json_text_contains,
    "roles": roles,
    "no_empty_text_blocks": no_empty_text_blocks,
    "cache_control_not_on_empty": cache_control_not_on_empty,
    "cache_control_on_texts_containing": cache_control_on_texts_containing,
    "last_assistant_text_no_trailing_whitespace": last_assistant_text_no_trailing_whitespace,
    "image_media_types": image_media_types,
}
