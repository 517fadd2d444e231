"""Tool names as a provider takes them. What one refuses is written otherwise, a name always in the same way.

    "world:look"     -> "world__look"
    "fs.read file"   -> "fs_read_file"
    longer than 64   -> its beginning, "_" and eight digits of a hash of the whole

The caller is given back the names that were declared, so two that would be sent alike are refused. A call in a history
goes back under the same name as its tool, even where the tool itself is offered no more.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from typing import Final, NamedTuple

from ..errors import MembraneError
from ..values.tools import Tool
from ..wire.json_text import whole_characters

HASH_DIGITS: Final = 8


class ToolNames(NamedTuple):
    """A provider's rule. characters: what a name may hold, and first: what it may begin with, as regular expressions
    write sets; longest: how many characters it may have. The defaults are OpenAI's.
    """

    characters: str = "a-zA-Z0-9_-"
    longest: int = 64
    first: str = "a-zA-Z0-9_-"


STRICTEST: Final = ToolNames()


def sent_tool_names(tools: Sequence[Tool], rule: ToolNames = STRICTEST) -> dict[str, str]:
    """Declared name -> name as sent. Raises "invalid_request" where two would be sent alike."""
    declared: dict[str, int] = {}
    for index, tool in enumerate(tools):
        sent = sent_tool_name(tool.name, rule)
        if sent in declared:
            raise MembraneError(
                "invalid_request",
                f"tools[{index}].name: {tool.name!r} would be sent as {sent!r}, and so would "
                f"{tools[declared[sent]].name!r} of tools[{declared[sent]}]; names must differ",
            )
        declared[sent] = index
    return {tools[index].name: sent for sent, index in declared.items()}


def sent_tool_name(name: str, rule: ToolNames = STRICTEST) -> str:
    sent = re.sub(f"[^{rule.characters}]", "_", name.replace(":", "__"))
    if re.match(f"[{rule.first}]", sent) is None:
        sent = "_" + sent
    if len(sent) <= rule.longest:
        return sent
    digest = sha256(whole_characters(name).encode()).hexdigest()[:HASH_DIGITS]
    return f"{sent[: rule.longest - HASH_DIGITS - 1]}_{digest}"
