"""The docstring of every wire format is true: what it shows is what is sent, and what it shows is read as it says.

    > {"model": ...}            the request body, lines joined: for max_tokens and one message, "Hi" by User
    < data: {"choices": ...}    the answer: an event stream, or one JSON document
    = Hello / end_turn / 9 in, 3 out

An answer in binary frames is shown as what the frames hold, one a line; FRAMED says how they are made of it.
A module of providers/ that has an adapter or a decoder must have such a docstring; new ones are found by themselves.
"""

from __future__ import annotations

import inspect
import json
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from membrane_lite import Membrane, Response, providers
from membrane_lite.loopback import LoopbackProvider, Raw, bedrock
from membrane_lite.providers.base import HttpAdapter

MODULES = [
    import_module(f"{providers.__name__}.{found.name}")
    for found in pkgutil.iter_modules(providers.__path__)
    if found.name != "base"
]


class Shown(NamedTuple):
    """request: the body, its fields in order. answer: the body's text. result: text, stop reason and counts."""

    request: dict[str, Any]
    answer: str
    result: str

    @property
    def is_stream(self) -> bool:
        return not self.answer.startswith("{")

    @property
    def max_tokens(self) -> int:
        """The limit shown; any, where a format has none."""
        return next((value for name, value in numbers(self.request) if "max" in name and "tokens" in name), 64)


def shown_by(module: ModuleType) -> Shown:
    lines = [line.strip() for line in (module.__doc__ or "").splitlines()]
    marked = {mark: [line[2:] for line in lines if line[:2] in (mark, mark + " ")] for mark in "><="}
    assert all(marked.values()), f"{module.__name__}: its docstring shows no request, answer and result"
    text = "\n".join(marked["<"])
    return Shown(json.loads("".join(marked[">"])), text if text.startswith("{") else text + "\n", marked["="][0])


def bedrock_frames(lines: str) -> bytes:
    return b"".join(bedrock.chunk(line.removeprefix("chunk ").encode()) for line in lines.splitlines())


FRAMED = {"bedrock": bedrock_frames}


def numbers(value: Any) -> Iterator[tuple[str, int]]:
    """Every number in a body, with the lower-case name of its field."""
    for name, inner in value.items():
        if isinstance(inner, dict):
            yield from numbers(inner)
        elif isinstance(inner, int):
            yield name.lower(), inner


def classes_of(module: ModuleType) -> list[type]:
    return [value for value in vars(module).values() if inspect.isclass(value) and value.__module__ == module.__name__]


def is_wire_format(module: ModuleType) -> bool:
    return any(
        issubclass(found, HttpAdapter) or (hasattr(found, "decode") and hasattr(found, "document"))
        for found in classes_of(module)
    )


def adapters_of(module: ModuleType) -> list[type[HttpAdapter]]:
    """The adapters that speak a module's format: its own, or those of the modules that use it."""
    users = [user for user in MODULES if any(vars(user).get(made.__name__) is made for made in classes_of(module))]
    return [
        found
        for user in sorted(users, key=lambda user: user is not module)
        for found in classes_of(user)
        if issubclass(found, HttpAdapter)
    ]


def adapter_of(module: ModuleType, **settings: Any) -> HttpAdapter:
    made = adapters_of(module)[0]
    taken = inspect.signature(made).parameters
    return made(**{name: value for name, value in settings.items() if name in taken})


FORMATS = {module.__name__.rpartition(".")[2]: module for module in MODULES if is_wire_format(module)}


def test_the_formats_are_found() -> None:
    assert {"anthropic", "chat_dialect", "openai_compatible"} <= set(FORMATS)
    assert FORMATS.keys().isdisjoint({"mock", "models", "tool_schema"})


@pytest.mark.parametrize("module", FORMATS.values(), ids=FORMATS.keys())
def test_a_format_does_what_its_docstring_shows(module: ModuleType) -> None:
    shown = shown_by(module)
    request = {
        "messages": [{"participant": "User", "content": "Hi"}],
        "config": {"model": shown.request.get("model", "any-model"), "max_tokens": shown.max_tokens},
    }
    content_type = "text/event-stream" if shown.is_stream else "application/json"
    framed = FRAMED.get(module.__name__.rpartition(".")[2], str.encode)
    answer = Raw(200, {"Content-Type": content_type}, framed(shown.answer), framing="length")
    with LoopbackProvider([answer]) as provider, provider.transport() as transport:
        adapter = adapter_of(module, api_key="any-key-at-all", base_url=provider.url, transport=transport)
        rendered = adapter.render(request, stream=shown.is_stream)
        membrane = Membrane(adapter)
        response = (membrane.stream if shown.is_stream else membrane.complete)(request)
        received = provider.requests[0]
    assert isinstance(response, Response)
    usage = response.usage
    assert rendered.body.decode() == json.dumps(shown.request, separators=(",", ":"))
    assert received.body == rendered.body
    assert (
        f"{response.text} / {response.stop_reason} / {usage.input_tokens} in, {usage.output_tokens} out" == shown.result
    )
