"""What goes wrong in practice: each case's server plays its part, and the client makes of it exactly what it should."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pytest
from corpora.case_expectations import faults, faults_of_all
from corpora.case_run import case_run, rendered, variants
from corpora.provider_table import PROVIDERS
from shared_data import shared
from transport.certificates import Certificates

CASES = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(shared("cases").glob("*.json"))]
CALLS = {
    case["id"] + suffix: (given, case["expected"])
    for case in CASES
    if case["input"].get("provider") in PROVIDERS and "kind" not in case["input"]
    for suffix, given in variants(case["input"])
}
RENDERED = {
    f"{case['id']}, {item['provider']}": (item, wanted)
    for case in CASES
    if case["input"].get("kind") == "render_many"
    for item, wanted in zip(case["input"]["items"], case["expected"]["many"])
    if item["provider"] in PROVIDERS
}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Certificates]:
    """Made once, by the openssl command, when the first case asks for TLS."""
    return lru_cache(maxsize=None)(lambda: Certificates(tmp_path_factory.mktemp("certificates")))


@pytest.mark.parametrize("given, expected", CALLS.values(), ids=CALLS.keys())
def test_a_call(
    given: Any, expected: Any, certificates: Callable[[], Certificates], caplog: pytest.LogCaptureFixture
) -> None:
    with case_run(given, certificates) as run:
        assert faults(run, expected) == []
    assert [secret for secret in expected.get("nowhere", ()) if secret in caplog.text] == []


@pytest.mark.parametrize("item, wanted", RENDERED.values(), ids=RENDERED.keys())
def test_a_request_that_is_built_and_not_sent(item: Any, wanted: Any) -> None:
    assert faults_of_all([rendered(item)], [wanted]) == []
