"""The public test suite of JSON Schema, as far as it keeps to the keywords that we know."""

from __future__ import annotations

from typing import Any

import pytest
from shared_data import shared_json

from membrane_lite.schema.validate import validate

GROUPS = shared_json("conformance/json_schema.json")["groups"]
SUITE = {
    f"{group['file']}: {group['description']}: {test['description']}": (group["schema"], test["data"], test["valid"])
    for group in GROUPS
    for test in group["tests"]
}


def test_the_suite_is_whole() -> None:
    assert len(SUITE) == 500


@pytest.mark.parametrize("schema, value, fits", SUITE.values(), ids=SUITE.keys())
def test_validate_passes_the_suite(schema: Any, value: Any, fits: bool) -> None:
    assert (validate(schema, value) == []) is fits
