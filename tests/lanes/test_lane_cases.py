"""What went wrong with vectors in practice: each case's server plays its part over a socket."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

import pytest
from lanes.lane_stage import aws_environment
from shared_data import shared

from membrane_lite.lanes import LlmConfig, invoke_client_for, make_embeddings
from membrane_lite.loopback import LoopbackProvider, Raw

CASES = {
    case["id"]: case
    for case in (json.loads(path.read_text(encoding="utf-8")) for path in sorted(shared("cases").glob("*.json")))
    if case["input"].get("kind") == "embed"
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_embed_of_what_went_wrong_in_practice(case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    given, expected = case["input"], case["expected"]
    answers = [Raw(answer["status"], answer["headers"], answer["body_text"]) for answer in given["responses"]]
    with LoopbackProvider(answers) as server, server.transport() as transport:
        for name, value in aws_environment(server.url).items():
            monkeypatch.setenv(name, value)
        env = given.get("client", {}).get("env", {})
        config = LlmConfig.from_env({name: value.format(port=server.port) for name, value in env.items()})
        service = make_embeddings(invoke_client_for(config, transport=transport), dimensions=given["dimensions"])
        found = service.embed(given["texts"])
        sent = list(server.requests)
    assert [list(vector) for vector in found] == [pytest.approx(row, abs=1e-6) for row in expected["vectors"]]
    assert [faults(request, wanted) for request, wanted in zip(sent, expected["sent"])] == [[]] * len(expected["sent"])
    assert len(sent) == len(expected["sent"])


def faults(request: Any, wanted: Any) -> list[str]:
    """What of a request is not as the case wants it; a word of the case that is not known here is an error."""
    assert set(wanted) <= {"method", "path", "headers", "json", "json_absent_keys"}
    body = request.json
    seen = {"method": request.method, "path": urlsplit(request.target).path}
    found = [f"{name}: {seen[name]}" for name in seen if wanted.get(name, seen[name]) != seen[name]]
    found += [name for name, value in wanted.get("headers", {}).items() if request.header(name) != value]
    found += [row["at"] for row in wanted["json"] if body.get(row["at"].removeprefix("$.")) != row["is"]]
    return found + [name for name in wanted.get("json_absent_keys", ()) if name in body]
