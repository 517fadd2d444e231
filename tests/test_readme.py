"""Every Python block of README.md is run as it stands, and prints what its comments say: a line for each "-> ".

The environment is what a user of AnthropicAdapter sets, and it leads to a loopback provider; no block is left out.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

import membrane_lite
from membrane_lite import GenerationConfig, Membrane, Request
from membrane_lite.errors import RETRYABLE_BY_TYPE
from membrane_lite.loopback import LoopbackProvider, Received, Reply, ToolCall, Usage
from membrane_lite.retry import schedules
from membrane_lite.values.options import RetryConfig

README = Path(__file__).resolve().parent.parent / "README.md"

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| (.*) \|$", re.MULTILINE)

# What decides about proxies, certificates and keys must come from the test alone.
OTHER_VARIABLES = (
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    "ANTHROPIC_AUTH_TOKEN",
)


def blocks() -> dict[str, str]:
    """The blocks of README.md by the number of their first line."""
    text = README.read_text(encoding="utf-8")
    return {f"line {text.count(chr(10), 0, found.start()) + 2}": found.group(1) for found in BLOCK.finditer(text)}


def expected(block: str) -> list[str]:
    return re.findall(r"# -> (.*)$", block, re.MULTILINE)


def answer(received: Received) -> Reply:
    """What the examples are answered."""
    last = received.json["messages"][-1]["content"]
    if last[0]["type"] == "tool_result":
        return Reply("It is noon.")
    return {
        "User: Hello!": Reply("Hello! How can I help you?", usage=Usage(21, 11)),
        "User: What time is it?": Reply(ToolCall("get_time", {})),
        "User: My kettle smokes!": Reply(ToolCall("emit", {"product": "kettle", "urgent": True})),
        "User: Count to a thousand.": Reply(" ".join(map(str, range(1, 1001))), pause_ms=2),
    }[received.last_user_text]


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackProvider]:
    with LoopbackProvider(answer) as provider:
        for name in OTHER_VARIABLES:
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "any-key-at-all")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", provider.url)
        yield provider


@pytest.mark.parametrize("block", blocks().values(), ids=blocks().keys())
def test_an_example_does_what_it_says(
    block: str, provider: LoopbackProvider, capsys: pytest.CaptureFixture[str]
) -> None:
    exec(compile(block, str(README), "exec", dont_inherit=True), {"__name__": "readme"})
    printed = capsys.readouterr()
    assert (printed.out.splitlines(), printed.err) == (expected(block), "")


def test_every_fence_that_is_python_is_run() -> None:
    text = README.read_text(encoding="utf-8")
    assert len(blocks()) == len(re.findall("^```(?:py|python)", text, re.MULTILINE)) > 10


# Its tables


def rows(heading: str) -> list[list[str]]:
    """The cells of the table under a heading, without its own head."""
    section = README.read_text(encoding="utf-8").partition(f"\n{heading}\n")[2].partition("\n#")[0]
    return [row.split(" | ") for row in ROW.findall(section)[2:]]


def words(cell: str) -> list[str]:
    """What a cell sets in `code`."""
    return re.findall("`([^`]+)`", cell)


def first_words(heading: str) -> list[str]:
    return [word for row in rows(heading) for word in words(row[0])]


def test_the_table_of_requests_has_every_field() -> None:
    config = {f"config.{field.name}" for field in fields(GenerationConfig)}
    others = {field.name for field in fields(Request)} - {"config"}
    assert set(first_words("## Requests")) == config | others


def test_the_table_of_adapters_has_every_adapter() -> None:
    assert {row[0].strip("`") for row in rows("## Adapters")} == {
        name for name in membrane_lite.__all__ if name.endswith("Adapter")
    }


def test_the_table_of_errors_has_every_type_and_says_which_may_be_sent_again() -> None:
    table = {row[0].strip("`"): row[2] for row in rows("## Errors")}
    assert table.keys() == RETRYABLE_BY_TYPE.keys()
    assert {name for name, retryable in table.items() if retryable == "no"} == {
        name for name, retryable in RETRYABLE_BY_TYPE.items() if not retryable
    }


def test_the_table_of_retries_is_that_of_the_schedules() -> None:
    table = {row[0].strip("`"): int(row[2]) for row in rows("### Retries")}
    assert table == {name: schedule.requests for name, schedule in schedules(RetryConfig()).items()}


def test_the_table_of_deadlines_has_every_limit() -> None:
    limits = [word for word in first_words("### Deadlines") if word.endswith("_ms")]
    assert sorted(limits) == sorted(
        name
        for name in inspect.signature(Membrane.stream).parameters
        if name.endswith("_timeout_ms") or name == "timeout_ms"
    )


def test_the_layout_has_every_room() -> None:
    package = README.parent / "membrane_lite"
    rooms = {path.stem for path in package.iterdir() if not path.name.startswith("__")} - {"py", "version"}
    layout = README.read_text(encoding="utf-8").partition("## How the package is laid out")[2]
    listed = re.findall(r"^[a-z_ ]+?(?=  |$)", layout.split("```")[1], re.MULTILINE)
    assert {room for line in listed for room in line.split()} == rooms
