"""`python -m membrane_lite.cli`, for a folder that was copied and never installed."""

from __future__ import annotations

import sys

from . import main

if __name__ == "__main__":
    sys.exit(main())
