from __future__ import annotations

import sys
from pathlib import Path

import pytest

# Certificates, raw servers and proxies are those of the transport's tests.
sys.path.insert(0, str(Path(__file__).parent.parent / "transport"))

from certificates import Certificates


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))
