"""The version, as a plain literal: read by the packaging and by the User-Agent, wherever the folder was copied to."""

from __future__ import annotations

VERSION = "0.1.0"
