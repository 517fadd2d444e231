"""Shared by all tests: the folder itself is importable, so that tests may use one another's plain helpers."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
