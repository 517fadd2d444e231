"""What goes wrong in practice: each case's server plays its part, and the client makes of it exactly what it should."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import pytest
from corpora.case_expectations import faults, faults_of_all
from corpora.case_run import case_run, rendered, variants
from corpora.provider_table import PROVIDERS
from shared_data import shared
from transport.certificates import Certificates

from membrane_lite.providers.bedrock import BedrockCodec
from membrane_lite.providers.models import ModelTable, ModelTraits
from membrane_lite.schema.decode import decode_tool_input
from membrane_lite.wire.http import header
from membrane_lite.wire.sigv4 import sign

CASES = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(shared("cases").glob("*.json"))]
CALLS = {
    case["id"] + suffix: (given, case["expected"])
    for case in CASES
    if case["input"].get("provider") in PROVIDERS and case["input"].get("kind") in (None, "structured")
    for suffix, given in variants(case["input"])
}
DECODED = {case["id"]: (case["input"], case["expected"]) for case in CASES if case["input"].get("kind") == "decode"}
SIGNED = {case["id"]: (case["input"], case["expected"]) for case in CASES if case["input"].get("kind") == "sign"}
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


@pytest.mark.parametrize("given, wanted", DECODED.values(), ids=DECODED.keys())
def test_a_forced_tools_input(given: Any, wanted: Any) -> None:
    assert {"value": decode_tool_input(given["schema"], given["tool_input"])} == wanted


@pytest.mark.parametrize("given, wanted", SIGNED.values(), ids=SIGNED.keys())
def test_a_signature(given: Any, wanted: Any) -> None:
    """Of the path that the adapter would send to."""
    body = given["body_text"].encode()
    request = SimpleNamespace(model=given["model_id"])
    codec = BedrockCodec(
        f"https://{given['host']}", given["region"], ModelTable({}, ModelTraits()), 1, anthropic_version="", betas=()
    )
    done = sign(
        given["method"],
        codec.address(request, stream=given["operation"] != "invoke"),  # type: ignore[arg-type]
        given["signed_headers"],
        body,
        **given["credentials"],
        region=given["region"],
        service=given["service"],
        amz_date=given["date"],
        normalize_path=True,
    )
    seen = {
        "path": codec.address(request, stream=False).partition(given["host"])[2],  # type: ignore[arg-type]
        "canonical_path": done.canonical_request.splitlines()[1],
        "payload_sha256": done.canonical_request.splitlines()[-1],
        "authorization": header(done.headers, "Authorization"),
        "signature": done.signature,
    }
    assert seen == wanted
