"""Tool names as a provider takes them. What one refuses is written otherwise, a name always in the same way.

    "world:look"     -> "world__look"
    "fs.read file"   -> "fs_read_file"
    longer than 64   -> its beginning, "_" and eight digits of a hash of the whole

The caller is given back the names that were declared, so two that would be sent alike are refused. A call in a history
goes back under the same name as its tool, even where the tool itself is offered no more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
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


def sent_tool_names(
    tools: Sequence[Tool], rule: ToolNames = STRICTEST, *, defined: Iterable[Tool] = ()
) -> dict[str, str]:
    """Declared name -> name as sent. Raises "invalid_request" where two would be sent alike.

    defined: by system changes, each in place of a tool of the same name.
    """
    declared: dict[str, tuple[str, str]] = {}  # as sent -> where, and the name
    for index, tool in enumerate(tools):
        sent, where = sent_tool_name(tool.name, rule), f"tools[{index}]"
        if sent in declared:
            raise _sent_alike(where, tool.name, sent, declared[sent])
        declared[sent] = (where, tool.name)
    for tool in defined:
        sent, where = sent_tool_name(tool.name, rule), "define_tools"
        if declared.setdefault(sent, (where, tool.name))[1] != tool.name:
            raise _sent_alike(where, tool.name, sent, declared[sent])
    return {name: sent for sent, (_, name) in declared.items()}


def _sent_alike(where: str, name: str, sent: str, other: tuple[str, str]) -> MembraneError:
    return MembraneError(
        "invalid_request",
        f"{where}.name: {name!r} would be sent as {sent!r}, and so would {other[1]!r} of {other[0]}; names must differ",
    )


def sent_tool_name(name: str, rule: ToolNames = STRICTEST) -> str:
    sent = re.sub(f"[^{rule.characters}]", "_", name.replace(":", "__"))
    if re.match(f"[{rule.first}]", sent) is None:
        sent = "_" + sent
    if len(sent) <= rule.longest:
        return sent
    from hashlib import sha256  # only now: few names are so long

    digest = sha256(whole_characters(name).encode()).hexdigest()[:HASH_DIGITS]
    return f"{sent[: rule.longest - HASH_DIGITS - 1]}_{digest}"
