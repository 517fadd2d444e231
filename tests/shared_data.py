"""Where the shared corpora are: the folder named by MEMBRANE_SHARED, else `shared` beside the project."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

SHARED = Path(os.environ.get("MEMBRANE_SHARED") or Path(__file__).resolve().parent.parent.parent / "shared")


def shared(path: str) -> Path:
    """The file or folder `path` of the corpora; skips the test, or the whole module, where it is absent."""
    found = SHARED / path
    if not found.exists():
        pytest.skip(f"corpora absent: {path}", allow_module_level=True)
    return found


def shared_json(path: str) -> Any:
    return json.loads(shared(path).read_text(encoding="utf-8"))
