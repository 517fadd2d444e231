"""System changes: where in a conversation they are sent, and what they leave of its tools.

    Ann: "hi"                     {"role": "user", ...}
    Claude: "yo"                  {"role": "assistant", ...}
    change: look is removed  ->   {"role": "user", ...}
    Ann: "bye"                    {"role": "system", "content": [{"type": "tool_removal", "tool": {...}}]}

The API takes a message of role "system" right after a user's turn, tool results included, and before an assistant's
turn or at the end; one that stands elsewhere goes to the first such slot behind its place. A change never parts a call
from its results, nor one user's text from the next: changes are put in after both have been put together.
Source: platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..errors import MembraneError
from ..values.base import Json
from ..values.content import SystemChange
from ..values.messages import Message
from ..values.tools import Tool


class Change(NamedTuple):
    """The blocks to send of one message. at: its index. before: how many built messages stood before it."""

    blocks: list[Json]
    at: int
    before: int


def placed(messages: Sequence[Json], changes: Sequence[Change], built: Sequence[Json]) -> list[Json]:
    """`messages` with the changes put in. built: what `messages` was made of, blocks being the same objects.

    Changes of one slot become one message, in their order. Raises "invalid_request" for a change that has no slot.
    """
    places, slot = _places(messages, built), None
    slots: dict[int, list[Json]] = {}
    for change in changes:
        place = places[change.before]
        if slot is None or slot < place:  # places only grow, so a slot behind the place is still the first one
            slot = next_slot(messages, place)
        if slot is None:
            raise _no_slot(change)
        slots.setdefault(slot, []).extend(change.blocks)
    result: list[Json] = []
    for index in range(len(messages) + 1):
        if index in slots:
            result.append({"role": "system", "content": slots[index]})
        result.extend(messages[index : index + 1])
    return result


def next_slot(messages: Sequence[Json], place: int) -> int | None:
    """The first index from `place` on where a change may be put in; None where there is none.

    Messages of blank text alone are looked through: they are not sent.
    """
    after_user = None
    for index in range(max(place - 1, 0), len(messages)):
        role = messages[index]["role"]
        if not _is_sent(messages[index]):
            continue
        if after_user is not None and role == "assistant":
            break
        after_user = index + 1 if role == "user" else None
    return after_user


def _is_sent(message: Json) -> bool:
    return any(block["type"] != "text" or block["text"].strip() for block in message["content"])


def _places(messages: Sequence[Json], built: Sequence[Json]) -> list[int]:
    """For each count of built messages: how many of `messages` a change that stood behind them has to stand behind.

    A result says nothing of that, for it has been moved to its call.
    """
    index_of = {id(block): index for index, message in enumerate(messages) for block in message["content"]}
    places = [0]
    for message in built:
        fixed = [block for block in message["content"] if block["type"] != "tool_result"]
        places.append(max([places[-1], *(index_of.get(id(block), -1) + 1 for block in fixed)]))
    return places


def _no_slot(change: Change) -> MembraneError:
    return MembraneError(
        "invalid_request",
        f"messages[{change.at}]: a system change has to follow a user's message, and none stands at or behind its "
        "place; put it before the last user's message, or make the change in tools and system",
        system_change_refused=True,
    )


def changes_of(messages: Sequence[Message]) -> Iterator[SystemChange]:
    return (block for message in messages for block in message.content if isinstance(block, SystemChange))


def defined_tools(messages: Sequence[Message]) -> Iterator[Tool]:
    return (tool for change in changes_of(messages) for tool in change.define_tools or ())


def tools_left(tools: Sequence[Tool] | None, messages: Sequence[Message]) -> list[Tool]:
    """The tools as the changes in `messages` leave them."""
    changes = list(changes_of(messages))
    if not changes:
        return list(tools or ())
    left = {tool.name: tool for tool in tools or ()}
    for change in changes:
        for name in change.remove_tools or ():
            left.pop(name, None)
        left.update((tool.name, tool) for tool in change.define_tools or ())
    return list(left.values())
