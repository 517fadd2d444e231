"""Which wire format a request is in: a table from the end of its path."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from .anthropic import ANTHROPIC
from .chat import CHAT

if TYPE_CHECKING:
    from .format import Format


def format_of(target: str) -> Format | None:
    """The format of a request line's target; a query, and the scheme and host that a proxy is sent, do not matter."""
    path = urlsplit(target).path
    return next((format for pattern, format in ROUTES if pattern.search(path)), None)


ROUTES: Final = (
    (re.compile(r"/v1/messages$"), ANTHROPIC),
    (re.compile(r"/chat/completions$"), CHAT),
)
KNOWN_PATHS: Final = "/v1/messages, .../chat/completions"
