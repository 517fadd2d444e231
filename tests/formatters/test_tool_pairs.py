"""tool_pairs: what a history looks like, and what is sent of it. `call("c1")` is a call of the model with that id."""

from __future__ import annotations

import random
from copy import deepcopy
from typing import Any

import pytest

from membrane_lite.errors import MembraneError
from membrane_lite.formatters.tool_pairs import merged_neighbours, repair

Block = dict[str, Any]
Wire = list[dict[str, Any]]


def user(*blocks: Block) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Block) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def text(words: str) -> Block:
    return {"type": "text", "text": words}


def call(id: str) -> Block:
    return {"type": "tool_use", "id": id, "name": "look", "input": {}}


def result(id: str, content: Any = "r") -> Block:
    return {"type": "tool_result", "tool_use_id": id, "content": content}


def pending(id: str) -> Block:
    return {"type": "tool_result", "tool_use_id": id, "content": "[pending]", "is_error": False}


HI, THINKING = user(text("hi")), {"type": "thinking", "thinking": "t", "signature": "s"}
REDACTED = {"type": "redacted_thinking", "data": "d"}


def re_roled(block_type: str, old: str, new: str) -> dict[str, Any]:
    return {"type": "block_re_roled", "block_type": block_type, "from": old, "to": new}


def hoisted(id: str, old: int, new: int) -> dict[str, Any]:
    return {"type": "tool_result_hoisted", "id": id, "from": old, "to": new}


def synthetic(id: str, reason: str) -> dict[str, Any]:
    return {"type": "synthetic_pending_result", "id": id, "reason": reason}


def textified(kind: str, id: str, at: int) -> dict[str, Any]:
    return {"type": "stray_tool_result_textified", "kind": kind, "id": id, "at": at}


def deferred(block_type: str) -> dict[str, Any]:
    return {"type": "interloper_deferred", "block_type": block_type}


def led(role: str, *types: str) -> dict[str, Any]:
    return {"type": "leading_user_synthesized", "original_role": role, "block_types": list(types)}


CONTINUING = user(text("[continuing]"))

# name: (history, what is sent, what is reported)
HISTORIES: dict[str, tuple[Wire, Wire, list[dict[str, Any]]]] = {
    "nothing": ([], [], []),
    "a well-formed history": (
        [HI, assistant(text("a"), call("c1"), call("c2")), user(result("c1"), result("c2")), assistant(text("b"))],
        [HI, assistant(text("a"), call("c1"), call("c2")), user(result("c1"), result("c2")), assistant(text("b"))],
        [],
    ),
    "signed thinking before its call": (
        [HI, assistant(THINKING, call("c1")), user(result("c1"), text("more"))],
        [HI, assistant(THINKING, call("c1")), user(result("c1"), text("more"))],
        [],
    ),
    "neighbours of one role": (
        [user(text("a")), user(text("b")), assistant(text("c")), assistant(text("d"))],
        [user(text("a"), text("b")), assistant(text("c"), text("d"))],
        [],
    ),
    "messages of nothing": ([user(), HI, assistant(), user(text("b"))], [user(text("hi"), text("b"))], []),
    # A call without its result.
    "the last call": (
        [HI, assistant(call("c1"))],
        [HI, assistant(call("c1")), user(pending("c1"))],
        [synthetic("c1", "trailing")],
    ),
    "a call in the middle": (
        [HI, assistant(call("c1")), user(text("never mind")), assistant(text("b"))],
        [HI, assistant(call("c1")), user(pending("c1"), text("never mind")), assistant(text("b"))],
        [synthetic("c1", "mid_stream")],
    ),
    "one of two calls": (
        [HI, assistant(call("c1"), call("c2")), user(result("c2"))],
        [HI, assistant(call("c1"), call("c2")), user(pending("c1"), result("c2"))],
        [synthetic("c1", "mid_stream")],
    ),
    "two of three calls, and a text before the result": (
        [HI, assistant(call("a"), call("b"), call("c")), user(text("late"), result("b"))],
        [HI, assistant(call("a"), call("b"), call("c")), user(pending("a"), result("b"), pending("c"), text("late"))],
        [synthetic("a", "mid_stream"), synthetic("c", "mid_stream"), deferred("text")],
    ),
    # A result in another place.
    "a text between call and result": (
        [HI, assistant(call("c1")), user(text("wait"), result("c1"), text("more"))],
        [HI, assistant(call("c1")), user(result("c1"), text("wait"), text("more"))],
        [deferred("text")],
    ),
    "a text between two results": (
        [HI, assistant(call("c1"), call("c2")), user(result("c1"), text("and"), result("c2"))],
        [HI, assistant(call("c1"), call("c2")), user(result("c1"), result("c2"), text("and"))],
        [],
    ),
    "results in another order than the calls": (
        [HI, assistant(call("c1"), call("c2")), user(result("c2", "2"), result("c1", "1"))],
        [HI, assistant(call("c1"), call("c2")), user(result("c1", "1"), result("c2", "2"))],
        [],
    ),
    "a result a turn late": (
        [HI, assistant(call("c1")), user(text("wait")), assistant(text("ok")), user(result("c1"), text("more"))],
        [HI, assistant(call("c1")), user(result("c1"), text("wait")), assistant(text("ok")), user(text("more"))],
        [hoisted("c1", 4, 2)],
    ),
    "a late result that leaves nothing behind": (
        [HI, assistant(call("c1")), user(text("wait")), assistant(text("ok")), user(result("c1"))],
        [HI, assistant(call("c1")), user(result("c1"), text("wait")), assistant(text("ok"))],
        [hoisted("c1", 4, 2)],
    ),
    "two late results come in the calls' order": (
        [
            HI,
            assistant(call("c1"), call("c2")),
            user(text("wait")),
            assistant(text("ok")),
            user(result("c2", "2"), result("c1", "1")),
        ],
        [
            HI,
            assistant(call("c1"), call("c2")),
            user(result("c1", "1"), result("c2", "2"), text("wait")),
            assistant(text("ok")),
        ],
        [hoisted("c1", 4, 2), hoisted("c2", 4, 2)],
    ),
    "a result before its call": (
        [user(text("hi"), result("c1")), assistant(call("c1")), user(text("b"))],
        [HI, assistant(call("c1")), user(result("c1"), text("b"))],
        [hoisted("c1", 0, 2)],
    ),
    "a result in the cycle of another call": (
        [HI, assistant(call("c1")), user(result("c1"), result("c2", "2")), assistant(call("c2"))],
        [HI, assistant(call("c1")), user(result("c1")), assistant(call("c2")), user(result("c2", "2"))],
        [hoisted("c2", 2, 4)],
    ),
    # A result too many.
    "a result without any call": (
        [HI, assistant(text("a")), user(result("ghost", "boo"))],
        [HI, assistant(text("a")), user(text("[orphan tool_result for ghost]: boo"))],
        [textified("orphan", "ghost", 2)],
    ),
    "a result without any call, beside one with": (
        [HI, assistant(call("c1")), user(result("ghost", "boo"), result("c1"))],
        [HI, assistant(call("c1")), user(result("c1"), text("[orphan tool_result for ghost]: boo"))],
        [deferred("tool_result"), textified("orphan", "ghost", 2)],
    ),
    "a result without an id": (
        [user({"type": "tool_result", "content": "boo"})],
        [user(text("[orphan tool_result for <missing>]: boo"))],
        [textified("orphan", "", 0)],
    ),
    "a result without content": (
        [user({"type": "tool_result", "tool_use_id": "ghost"})],
        [user(text("[orphan tool_result for ghost]: "))],
        [textified("orphan", "ghost", 0)],
    ),
    "a second result": (
        [HI, assistant(call("c1")), user(result("c1", "first"), result("c1", "second"))],
        [HI, assistant(call("c1")), user(result("c1", "first"), text("[duplicate tool_result for c1]: second"))],
        [textified("duplicate", "c1", 2)],
    ),
    "a second result, later": (
        [HI, assistant(call("c1")), user(result("c1", "first")), assistant(text("a")), user(result("c1", "second"))],
        [
            HI,
            assistant(call("c1")),
            user(result("c1", "first")),
            assistant(text("a")),
            user(text("[duplicate tool_result for c1]: second")),
        ],
        [textified("duplicate", "c1", 4)],
    ),
    "a second result of blocks": (
        [
            HI,
            assistant(call("c1")),
            user(
                result("c1"),
                result(
                    "c1",
                    [
                        text("seen"),
                        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "A" * 4096}},
                        {"type": "document", "source": {}},
                    ],
                ),
            ),
        ],
        [
            HI,
            assistant(call("c1")),
            user(
                result("c1"),
                text("[duplicate tool_result for c1]: seen\n[Image: image/png, ~3KB]\n[document]"),
            ),
        ],
        [textified("duplicate", "c1", 2)],
    ),
    # Two calls with one id, in different turns: some servers number the calls of every answer anew.
    "an id used again": (
        [
            HI,
            assistant(call("c1")),
            user(result("c1", "first")),
            assistant(call("c1")),
            user(result("c1", "second")),
        ],
        [
            HI,
            assistant(call("c1")),
            user(result("c1", "first")),
            assistant(call("c1")),
            user(result("c1", "second")),
        ],
        [],
    ),
    "an id used again, its second result missing": (
        [HI, assistant(call("c1")), user(result("c1", "first")), assistant(call("c1")), user(text("b"))],
        [
            HI,
            assistant(call("c1")),
            user(result("c1", "first")),
            assistant(call("c1")),
            user(pending("c1"), text("b")),
        ],
        [synthetic("c1", "mid_stream")],
    ),
    # A block on the wrong side.
    "a call in a user's message": (
        [user(text("hi"), call("c1"), result("c1"), text("b"))],
        [HI, assistant(call("c1")), user(result("c1"), text("b"))],
        [re_roled("tool_use", "user", "assistant")],
    ),
    "a result in the assistant's message": (
        [HI, assistant(call("c1"), result("c1"), text("done"))],
        [HI, assistant(call("c1")), user(result("c1")), assistant(text("done"))],
        [re_roled("tool_result", "assistant", "user")],
    ),
    "thinking in a user's message": (
        [user(THINKING, REDACTED, text("a"))],
        [CONTINUING, assistant(THINKING, REDACTED), user(text("a"))],
        [
            re_roled("thinking", "user", "assistant"),
            re_roled("redacted_thinking", "user", "assistant"),
            led("user", "thinking", "redacted_thinking"),
        ],
    ),
    "thinking alone": (
        [user(THINKING)],
        [CONTINUING, assistant(THINKING)],
        [re_roled("thinking", "user", "assistant"), led("user", "thinking")],
    ),
    # A conversation begun by the assistant.
    "the assistant begins": (
        [assistant(text("a")), user(text("b"))],
        [CONTINUING, assistant(text("a")), user(text("b"))],
        [led("assistant", "text")],
    ),
    "the assistant begins with a call": (
        [assistant(text("a"), call("c1"))],
        [CONTINUING, assistant(text("a"), call("c1")), user(pending("c1"))],
        [synthetic("c1", "trailing"), led("assistant", "text", "tool_use")],
    ),
    "a first message that is empty": (
        [user(), assistant(text("a"))],
        [CONTINUING, assistant(text("a"))],
        [led("assistant", "text")],
    ),
    "a first message whose result goes to its call": (
        [user(result("c1")), assistant(call("c1"))],
        [CONTINUING, assistant(call("c1")), user(result("c1"))],
        [hoisted("c1", 0, 2), led("user", "tool_use")],
    ),
}


@pytest.mark.parametrize("history, sent, reported", HISTORIES.values(), ids=HISTORIES.keys())
def test_a_history_and_what_is_sent_of_it(history: Wire, sent: Wire, reported: list[dict[str, Any]]) -> None:
    given, events = deepcopy(history), []
    repaired = repair(given, report=events.append)
    assert (repaired.messages, repaired.ready) == (sent, True)
    assert events == reported
    assert given == history


@pytest.mark.parametrize("sent", [sent for _, sent, _ in HISTORIES.values()], ids=HISTORIES.keys())
def test_what_was_repaired_needs_no_repair(sent: Wire) -> None:
    events: list[dict[str, Any]] = []
    assert repair(sent, report=events.append).messages == sent
    assert events == []


def test_a_camel_case_id_is_read_and_never_written() -> None:
    result = {"type": "tool_result", "toolUseId": "c1", "content": "r"}
    assert repair([HI, assistant(call("c1"), call("c2")), user(result)]).messages[2] == user(result, pending("c2"))


def test_many_calls_and_results_in_one_message_of_the_user() -> None:
    blocks = [block for number in range(12) for block in (call(f"c{number}"), result(f"c{number}", str(number)))]
    events: list[dict[str, Any]] = []
    repaired = repair([user(text("go"), *blocks, *[text("x")] * 10)], report=events.append)
    cycles = [message for n in range(12) for message in (assistant(call(f"c{n}")), user(result(f"c{n}", str(n))))]
    cycles[-1]["content"] += [text("x")] * 10
    assert repaired.messages == [user(text("go")), *cycles]
    assert events == [re_roled("tool_use", "user", "assistant")] * 12


RUNNING: dict[str, tuple[Wire, frozenset[str], Wire, bool, list[dict[str, Any]]]] = {
    "a call that runs gets no result": (
        [HI, assistant(call("c1"))],
        frozenset(["c1"]),
        [HI, assistant(call("c1"))],
        False,
        [{"type": "pending_in_flight", "id": "c1"}],
    ),
    "one beside it does": (
        [HI, assistant(call("c1"), call("c2")), user(text("b"))],
        frozenset(["c1"]),
        [HI, assistant(call("c1"), call("c2")), user(pending("c2"), text("b"))],
        False,
        [{"type": "pending_in_flight", "id": "c1"}, synthetic("c2", "mid_stream")],
    ),
    "one that has its result is ready": (
        [HI, assistant(call("c1")), user(result("c1"))],
        frozenset(["c1"]),
        [HI, assistant(call("c1")), user(result("c1"))],
        True,
        [],
    ),
    "an id that no call has": ([HI], frozenset(["c1"]), [HI], True, []),
}


@pytest.mark.parametrize("history, running, sent, ready, reported", RUNNING.values(), ids=RUNNING.keys())
def test_calls_that_are_still_running(
    history: Wire, running: frozenset[str], sent: Wire, ready: bool, reported: list[dict[str, Any]]
) -> None:
    events: list[dict[str, Any]] = []
    repaired = repair(history, pending=running, report=events.append)
    assert (repaired.messages, repaired.ready, events) == (sent, ready, reported)


def test_the_words_put_before_an_assistant_that_begins() -> None:
    assert repair([assistant(text("a"))], leading_user_text="go on").messages[0] == user(text("go on"))


CLASHES: dict[str, Wire] = {
    "in one message": [HI, assistant(call("c1"), call("c1"))],
    "in two that become one turn": [HI, assistant(call("c1")), assistant(call("c1"))],
}


@pytest.mark.parametrize("history", CLASHES.values(), ids=CLASHES.keys())
def test_two_calls_of_one_turn_that_could_not_be_told_apart(history: Wire) -> None:
    with pytest.raises(MembraneError) as raised:
        repair(history)
    words = "messages: two calls of one turn have the id 'c1'; ids must differ"
    assert (raised.value.type, raised.value.message) == ("invalid_request", words)


def test_merging_changes_no_message() -> None:
    messages = [user(text("a")), user(text("b")), assistant(text("c"))]
    before = deepcopy(messages)
    assert merged_neighbours(messages) == [user(text("a"), text("b")), assistant(text("c"))]
    assert messages == before


# Any history at all


def random_history(dice: random.Random) -> Wire:
    """Up to eight messages of up to five blocks; ids of calls differ, results are lost, doubled, moved and made up."""
    ids = [f"c{number}" for number in range(6)]
    uncalled = list(ids)
    history: Wire = []
    for _ in range(dice.randrange(9)):
        blocks: list[Block] = []
        for _ in range(dice.randrange(6)):
            kind = dice.randrange(5)
            if kind == 0 and uncalled:
                blocks.append(call(uncalled.pop(0)))
            elif kind == 1:
                blocks.append(result(dice.choice([*ids, "ghost"]), str(dice.random())))
            elif kind == 2:
                blocks.append(dice.choice([THINKING, REDACTED]))
            else:
                blocks.append(text(str(dice.random())))
        history.append({"role": dice.choice(["user", "assistant"]), "content": blocks})
    return history


def is_accepted(messages: Wire) -> bool:
    """What a provider asks of a conversation."""
    if not messages:
        return True
    roles = [message["role"] for message in messages]
    alternates = roles == (["user", "assistant"] * len(roles))[: len(roles)]
    sides = all(
        block["type"] not in ("tool_use", "thinking", "redacted_thinking", "tool_result")
        or (block["type"] == "tool_result") == (message["role"] == "user")
        for message in messages
        for block in message["content"]
    )
    return alternates and sides and all(message["content"] for message in messages) and _answered(messages)


def _answered(messages: Wire) -> bool:
    """Each turn begins with the results of the calls before it, in their order, and holds no other result."""
    calls: list[str] = []
    for message in [*messages, user()]:
        results = [block["tool_use_id"] for block in message["content"] if block["type"] == "tool_result"]
        first = [block["tool_use_id"] for block in message["content"][: len(calls)] if block["type"] == "tool_result"]
        if not results == first == calls:
            return False
        calls = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
    return True


def words_of(messages: Wire) -> list[str]:
    return sorted(block["text"] for message in messages for block in message["content"] if block["type"] == "text")


@pytest.mark.parametrize("seed", range(10))
def test_any_history_becomes_one_that_is_accepted(seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(50):
        history = random_history(dice)
        before = deepcopy(history)
        sent = repair(history).messages
        assert history == before
        assert is_accepted(sent), history
        assert repair(sent).messages == sent, history
        assert set(words_of(history)) <= set(words_of(sent)), history
