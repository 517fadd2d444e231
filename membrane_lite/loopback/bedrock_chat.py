"""OpenAI's models on AWS Bedrock: POST /model/{id}/invoke, for ids such as global.openai.gpt-5.6-sol.

Bodies and answers are those of chat.py; the signature is asked for, and errors are told, as Bedrock does it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from . import bedrock, chat
from .bedrock import BEDROCK

if TYPE_CHECKING:
    from .answers import Raw
    from .received import Received

OPENAI_TARGET: Final = re.compile(r"/model/[^/]*openai\.[^/]*/invoke$")


def check(received: Received) -> Raw | None:
    """The error with which Bedrock would refuse the request, or None."""
    return bedrock.first_fault(received, (_faults,))


def _faults(body: Mapping[str, Any]) -> Iterator[str]:
    if not body["messages"]:
        yield "messages: at least one message is required"
    for field in ("model", "modelId", "stream"):
        if field in body:
            yield f"{field}: Extra inputs are not permitted"


BEDROCK_CHAT: Final = BEDROCK._replace(
    name="bedrock_chat", is_streamed=lambda received: False, check=check, document=chat.document
)
