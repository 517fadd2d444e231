"""Every file in examples/ runs against loopback, without a key, and shows a request, an answer and a result."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
LONGEST = 60  # lines

# What a child needs to start; nothing in it can be a key, so no provider is talked to.
KEPT = ("PATH", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR")


@pytest.mark.parametrize("path", EXAMPLES, ids=[path.stem for path in EXAMPLES])
def test_an_example_runs_without_a_key(path: Path) -> None:
    environment = {name: os.environ[name] for name in KEPT if name in os.environ}
    environment.update({"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", "PYTHONWARNINGS": "error"})
    done = subprocess.run(
        [sys.executable, str(path)], env=environment, cwd=path.parent, capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr.decode()) == (0, "")
    told = done.stdout.decode()
    assert [word for word in ("request", "result") if word not in told] == []


@pytest.mark.parametrize("path", EXAMPLES, ids=[path.stem for path in EXAMPLES])
def test_an_example_is_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) < LONGEST
