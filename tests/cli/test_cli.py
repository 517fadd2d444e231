"""The command line, run as its users run it: a process of its own, with whatever environment they have."""

from __future__ import annotations

import os
import subprocess
import sys
from configparser import ConfigParser
from importlib import import_module
from pathlib import Path

import pytest

from membrane_lite.version import VERSION

ROOT = Path(__file__).resolve().parent.parent.parent

# A host on which nothing outside can be reached, and on which other people's settings lie about.
DEAD = "http://127.0.0.1:9"
LOCKED_DOWN = {
    **dict.fromkeys(("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"), DEAD),
    "NO_PROXY": "",
    "ANTHROPIC_BASE_URL": DEAD,
    "ANTHROPIC_API_KEY": "sk-ant-somebody-elses",
    "ANTHROPIC_AUTH_TOKEN": "token-of-somebody-else",
    "SSL_CERT_FILE": "/nowhere/ca.pem",
}


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "membrane_lite.cli", *words],
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80", **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.fixture(scope="module")
def demo() -> str:
    done = run("demo")
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_demo_prints_the_same_bytes_on_a_locked_down_host(demo: str) -> None:
    again = run("demo", **LOCKED_DOWN)
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout == demo


def test_the_demo_fits_a_screen_and_any_encoding(demo: str) -> None:
    assert demo.isascii()
    assert max(map(len, demo.splitlines())) <= 96


def test_the_demo_shows_no_key(demo: str) -> None:
    assert "demo-key" not in demo
    assert "x-api-key: [redacted]" in demo
    assert "Authorization: Bearer [redacted]" in demo


SHOWN = {
    "the address on the wire, Anthropic": "POST /v1/messages HTTP/1.1\nHost: 127.0.0.1\nUser-Agent: ",
    "the address on the wire, chat": "POST /v1/chat/completions HTTP/1.1\nHost: 127.0.0.1\nUser-Agent: ",
    "the body, Anthropic": '\n{\n  "model": "claude-sonnet-4-5",\n  "max_tokens": 256,\n  "messages": [\n',
    "the body, chat": '\n{\n  "model": "gpt-4.1-mini",\n  "messages": [\n',
    "an event, Anthropic": (
        "\n\nevent: content_block_delta\n"
        'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"I"}}\n\n'
    ),
    "an event, chat, folded": '\n\ndata: {"id":"chatcmpl-loopback-000003","object":"chat.completion.chunk","created":',
    "the result as it goes back, Anthropic": (
        '        "type": "tool_result",\n        "tool_use_id": "toolu_loopback_000001_1",\n'
        '        "content": "Bern: 12 degrees Celsius, light rain",\n        "cache_control": {\n'
    ),
    "the result as it goes back, chat": (
        '    "role": "tool",\n    "tool_call_id": "call_loopback_000003_1",\n'
        '    "content": "Bern: 12 degrees Celsius, light rain"\n'
    ),
    "the response, Anthropic": (
        "text         I will look.\n"
        'tool_use     get_weather({"city": "Bern"})   id toolu_loopback_000001_1\n'
        "tool_result  Bern: 12 degrees Celsius, light rain   for toolu_loopback_000001_1\n"
        "text         It is 12 degrees in Bern, with light rain.\n"
        "stop_reason  end_turn (the provider's word: end_turn)\n"
        "usage        30 tokens in, 18 out, both rounds together\n"
        "cost         0.000360 USD, estimated\n"
    ),
    "the response, chat": (
        "stop_reason  end_turn (the provider's word: stop)\n"
        "usage        30 tokens in, 18 out, both rounds together\n"
        "cost         0.000041 USD, estimated\n"
    ),
}


@pytest.mark.parametrize("lines", SHOWN.values(), ids=SHOWN.keys())
def test_the_demo_shows(demo: str, lines: str) -> None:
    assert lines in demo


def test_without_a_command_it_says_which_there_are() -> None:
    done = run()
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage: membrane-lite [-h] [--version] COMMAND ...\n")
    assert "\n    demo " in done.stderr


def test_an_unknown_command_is_an_error_that_names_the_known_ones() -> None:
    done = run("dmeo")
    assert (done.returncode, done.stdout) == (2, "")
    assert "dmeo" in done.stderr
    assert "demo" in done.stderr.splitlines()[-1]


def test_version() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"membrane-lite {VERSION}\n")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGPIPE and no sh")
def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    done = subprocess.run(
        ["sh", "-c", '"$0" -u -m membrane_lite.cli demo | head -1', sys.executable],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )
    expected = "membrane-lite demo: the same question, with the same tool, over each wire format.\n"
    assert (done.stdout, done.stderr) == (expected, "")


def test_the_console_script_leads_here() -> None:
    metadata = ConfigParser()
    metadata.read(ROOT / "setup.cfg", encoding="utf-8")
    script = metadata["options.entry_points"]["console_scripts"].strip()
    name, _, target = script.partition(" = ")
    module, _, function = target.partition(":")
    assert name == "membrane-lite"
    assert callable(getattr(import_module(module), function))
