"""Which wire format a request is in: a table from the end of its path."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from .anthropic import ANTHROPIC
from .bedrock import BEDROCK, TARGET
from .bedrock_chat import BEDROCK_CHAT, OPENAI_TARGET
from .chat import CHAT
from .embeddings import COHERE_EMBED, COHERE_TARGET, OPENAI_EMBEDDINGS
from .gemini import GEMINI
from .openai_completions import COMPLETIONS
from .openai_images import IMAGES
from .openai_responses import RESPONSES
from .openrouter import OPENROUTER

if TYPE_CHECKING:
    from .format import Format


def format_of(target: str) -> Format | None:
    """The format of a request line's target; a query, and the scheme and host that a proxy is sent, do not matter."""
    path = urlsplit(target).path
    return next((format for pattern, format in ROUTES if pattern.search(path)), None)


ROUTES: Final = (
    (re.compile(r"/v1/messages$"), ANTHROPIC),
    (COHERE_TARGET, COHERE_EMBED),
    (OPENAI_TARGET, BEDROCK_CHAT),
    (TARGET, BEDROCK),
    (re.compile(r"/api/v1/chat/completions$"), OPENROUTER),
    (re.compile(r"/chat/completions$"), CHAT),
    (re.compile(r":(?:g|streamG)enerateContent$"), GEMINI),
    (re.compile(r"/completions$"), COMPLETIONS),
    (re.compile(r"/responses$"), RESPONSES),
    (re.compile(r"/images/(?:generations|edits)$"), IMAGES),
    (re.compile(r"/embeddings$"), OPENAI_EMBEDDINGS),
)
KNOWN_PATHS: Final = (
    "/v1/messages, .../chat/completions, .../models/MODEL:generateContent, "
    ".../responses, .../completions, .../images/generations, .../images/edits, .../embeddings, .../model/MODEL/invoke"
)
