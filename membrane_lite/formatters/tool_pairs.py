"""Tool-pair repair: every call is answered in the user turn right after it, and every answer has its call.

Providers refuse anything else (platform.claude.com/docs/en/agents-and-tools/tool-use/implement-tool-use). Histories
break the rule easily: a turn was cut, a message was dropped, two were merged. So a history is repaired, not refused:

    call without result              -> a result "[pending]"
    result elsewhere than after      -> moved to its call
    second result for one call       -> text "[duplicate tool_result for ID]: ..."
    result without any call          -> text "[orphan tool_result for ID]: ..."
    block on the wrong side          -> its own side (calls and thinking: assistant, results: user)
    text between call and result     -> behind the results
    conversation begun by assistant  -> a user turn "[continuing]" before it

In and out: [{"role", "content": [block, ...]}, ...]. The caller's blocks are never changed; a well-formed history comes
out as it went in, its neighbours of one role merged. `report` hears of every repair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from ..errors import MembraneError
from ..values.base import Json
from .image_media import note

Report = Callable[[dict[str, Any]], object]

SIDE: Final = {
    "tool_use": "assistant",
    "thinking": "assistant",
    "redacted_thinking": "assistant",
    "tool_result": "user",
}


class Repaired(NamedTuple):
    """ready is False when a call was left open because it was declared to be still running."""

    messages: list[Json]
    ready: bool


def repair(
    messages: Sequence[Json],
    *,
    pending: frozenset[str] = frozenset(),
    leading_user_text: str = "[continuing]",
    report: Report | None = None,
) -> Repaired:
    """`messages` as a provider accepts them. pending: ids of calls still running, which get no "[pending]" result."""
    tell = report or _ignore
    if not any(block["type"] in SIDE for message in messages for block in message["content"]):
        return Repaired(_begun_by_user(messages, messages, leading_user_text, tell), True)
    envelopes = _envelopes(messages, tell)
    answers = _answers(envelopes, _calls(envelopes))
    ready = True
    repaired: list[Json] = []
    for index, envelope in enumerate(envelopes):
        own = [block["id"] for block in envelope["content"] if block["type"] == "tool_use"]
        if not (index - 1 in answers.cycles and envelope["role"] == "user"):
            repaired.append({"role": envelope["role"], "content": _without_results(envelope, index, answers, tell)})
        if own:
            following = envelopes[index + 1] if index + 1 < len(envelopes) else None
            turn = _answering_turn(own, index, following, answers, pending, tell)
            ready = ready and not any(call in pending and (index, call) not in answers.by_call for call in own)
            repaired.append({"role": "user", "content": turn})
    return Repaired(_begun_by_user(repaired, messages, leading_user_text, tell), ready)


def _begun_by_user(repaired: Sequence[Json], given: Sequence[Json], text: str, tell: Report) -> list[Json]:
    """The messages that hold anything, neighbours of one role merged, a user turn first."""
    kept = [message for message in repaired if message["content"]]
    if kept and kept[0]["role"] == "assistant":
        leading = next(message["role"] for message in given if message["content"])
        types = [block["type"] for block in kept[0]["content"]]
        tell({"type": "leading_user_synthesized", "original_role": leading, "block_types": types})
        kept.insert(0, {"role": "user", "content": [_text(text)]})
    return merged_neighbours(kept)


Call = tuple[int, str]  # index of its envelope, its id: some servers number the calls of every answer anew


class _Answers(NamedTuple):
    """by_call: where the result stood, and the result. cycles: envelopes with calls. ids: of all calls."""

    by_call: dict[Call, tuple[int, Json]]
    used: frozenset[int]
    cycles: frozenset[int]
    ids: frozenset[str]


def _envelopes(messages: Sequence[Json], tell: Report) -> list[Json]:
    """Blocks in order, each on its own side; a new envelope wherever the side changes."""
    envelopes: list[Json] = []
    for message in messages:
        for block in message["content"]:
            role = SIDE.get(block["type"], message["role"])
            if role != message["role"]:
                tell({"type": "block_re_roled", "block_type": block["type"], "from": message["role"], "to": role})
            if not envelopes or envelopes[-1]["role"] != role:
                envelopes.append({"role": role, "content": []})
            envelopes[-1]["content"].append(block)
    return envelopes


def _calls(envelopes: Sequence[Json]) -> list[Call]:
    """Every call, in order. Two calls of one turn with one id could not be told apart."""
    calls: dict[Call, None] = {}
    for index, envelope in enumerate(envelopes):
        for block in envelope["content"]:
            if block["type"] == "tool_use":
                if (index, block["id"]) in calls:
                    raise MembraneError(
                        "invalid_request",
                        f"messages: two calls of one turn have the id {block['id']!r}; ids must differ",
                    )
                calls[(index, block["id"])] = None
    return list(calls)


def _answers(envelopes: Sequence[Json], calls: Sequence[Call]) -> _Answers:
    """For each call its result: the first in the turn right after it, else the first that no other call has."""
    by_call: dict[Call, tuple[int, Json]] = {}
    used: set[int] = set()
    known = set(calls)
    results = list(_results(envelopes))
    for index, block in results:
        near = (index - 1, _result_id(block))
        if near in known and near not in by_call:
            by_call[near] = (index, block)
            used.add(id(block))
    unanswered = {call: at for at, call in reversed([call for call in calls if call not in by_call])}
    for index, block in results:
        at = unanswered.get(_result_id(block)) if id(block) not in used else None
        if at is not None:
            by_call[(at, _result_id(block))] = (index, block)
            used.add(id(block))
            del unanswered[_result_id(block)]
    cycles, ids = frozenset(at for at, _ in calls), frozenset(call for _, call in calls)
    return _Answers(by_call, frozenset(used), cycles, ids)


def _results(envelopes: Sequence[Json]) -> Iterator[tuple[int, Json]]:
    for index, envelope in enumerate(envelopes):
        for block in envelope["content"]:
            if block["type"] == "tool_result":
                yield index, block


def _answering_turn(
    own: Sequence[str],
    index: int,
    following: Json | None,
    answers: _Answers,
    pending: frozenset[str],
    tell: Report,
) -> list[Json]:
    """The user turn after envelope `index`: its calls' results in the calls' order, then whatever else stood there."""
    turn: list[Json] = []
    for call in own:
        if (index, call) in answers.by_call:
            origin, block = answers.by_call[(index, call)]
            if origin != index + 1:
                tell({"type": "tool_result_hoisted", "id": call, "from": origin, "to": index + 1})
            turn.append(block)
        elif call in pending:
            tell({"type": "pending_in_flight", "id": call})
        else:
            reason = "trailing" if following is None else "mid_stream"
            tell({"type": "synthetic_pending_result", "id": call, "reason": reason})
            turn.append({"type": "tool_result", "tool_use_id": call, "content": "[pending]", "is_error": False})
    if following is not None and following["role"] == "user":
        _tell_deferred(following["content"], answers, tell)
        turn.extend(_without_results(following, index + 1, answers, tell))
    return turn


def _tell_deferred(content: Sequence[Json], answers: _Answers, tell: Report) -> None:
    """Blocks that stood before the first result go behind the last one."""
    first = next((place for place, block in enumerate(content) if id(block) in answers.used), 0)
    for block in content[:first]:
        tell({"type": "interloper_deferred", "block_type": block["type"]})


def _without_results(envelope: Json, index: int, answers: _Answers, tell: Report) -> list[Json]:
    """The envelope's blocks; results that answer a call stand with it, the others become text."""
    blocks = []
    for block in envelope["content"]:
        if block["type"] != "tool_result":
            blocks.append(block)
        elif id(block) not in answers.used:
            kind = "duplicate" if _result_id(block) in answers.ids else "orphan"
            tell({"type": "stray_tool_result_textified", "kind": kind, "id": _result_id(block), "at": index})
            said = _as_text(block.get("content", ""))
            blocks.append(_text(f"[{kind} tool_result for {_result_id(block) or '<missing>'}]: {said}"))
    return blocks


def _result_id(block: Json) -> str:
    return str(block.get("tool_use_id") or block.get("toolUseId") or "")


def _as_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(_part_as_text(part) for part in content or ())


def _part_as_text(part: Json) -> str:
    if part["type"] == "text":
        return str(part["text"])
    return note(part.get("source", {})) if part["type"] == "image" else f"[{part['type']}]"


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _ignore(event: dict[str, Any]) -> None:
    """Nobody listens."""


def merged_neighbours(messages: Sequence[Json]) -> list[Json]:
    """Neighbours of one role become one message, their blocks in order."""
    result: list[Json] = []
    for message in messages:
        if result and result[-1]["role"] == message["role"]:
            result[-1] = {"role": message["role"], "content": [*result[-1]["content"], *message["content"]]}
        else:
            result.append(message)
    return result
