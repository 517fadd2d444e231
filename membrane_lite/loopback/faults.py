"""What goes wrong with real providers, on demand: each function makes an answer of another that fails on its way.

    faults.reset()                                    # before a byte of an answer
    faults.reset(Reply("Hello, world!"), after=3)     # after the head and three events
    faults.error(Reply("Hello"), after=2)             # an error event in the middle of a stream
    [*failures(2, 529), Reply("Hello!")]              # twice overloaded, then well

`after` counts the events of a stream that arrive whole; of an answer that is not streamed, its two halves; of a Raw,
its writes. Without an answer nothing is sent before the fault, not even a head.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from .answers import Answer, Drip, Headers, Plan, Then, head_bytes, pairs
from .format import UNASKED

if TYPE_CHECKING:
    from .format import Asked, Format

GARBAGE_EVENT: Final = b"data: {]\n\n"
GARBAGE_ANSWER: Final = b"\x16\x03\x01 this is no HTTP\r\n\r\n"


class Fault:
    """An answer whose plan is changed before it is carried out."""

    def __init__(self, answer: Answer | None, change: Callable[[Plan, Format], Plan], *, early: bool = False) -> None:
        self._answer: Final = answer
        self._change: Final = change
        self.early: Final = early or (answer is not None and answer.early)
        self.checked: Final = answer is not None and answer.checked

    def __repr__(self) -> str:
        return f"Fault({self._answer!r})"

    def plan(self, format: Format, asked: Asked) -> Plan:
        plan = Plan() if self._answer is None else self._answer.plan(format, asked)
        return self._change(plan, format)


def reset(answer: Answer | None = None, *, after: int = 0) -> Fault:
    """The connection is reset (RST)."""
    return _broken_off(answer, after, "reset")


def close(answer: Answer | None = None, *, after: int = 0) -> Fault:
    """The connection is closed (FIN), with the body's framing unfinished."""
    return _broken_off(answer, after, "close")


def silence(answer: Answer | None = None, *, after: int = 0) -> Fault:
    """The connection stays open, and nothing more comes."""
    return _broken_off(answer, after, "hang")


def end(answer: Answer, *, after: int) -> Fault:
    """HTTP says that the body is complete, and it is not: the rest of the answer is missing."""
    return Fault(answer, lambda plan, _: plan._replace(pieces=_arrived(plan, after)))


def error(answer: Answer, *, after: int, type: str | None = None, message: str = "Overloaded") -> Fault:
    """An error event, in the format's own shape, after which the stream ends. Without a stream: an error status."""

    def change(plan: Plan, format: Format) -> Plan:
        error_type = type or format.error_types.get(529, format.error_types[500])
        if plan.streamed:
            return plan._replace(pieces=[*_arrived(plan, after), format.error_event(error_type, message)])
        status = next((status for status, word in format.error_types.items() if word == error_type), 500)
        return format.error(status, error_type, message).plan(format, UNASKED)

    return Fault(answer, change)


def garbage(answer: Answer | None = None, *, after: int = 0, data: bytes | None = None) -> Fault:
    """Bytes that are not of the format, then the end. Without an answer: instead of HTTP, then the end."""

    def change(plan: Plan, format: Format) -> Plan:
        default = GARBAGE_ANSWER if plan.status is None else GARBAGE_EVENT
        return plan._replace(pieces=[*_arrived(plan, after), default if data is None else data])

    return Fault(answer, change)


def drip(answer: Answer, *, after: int, data: bytes | None = None, every_ms: float = 20) -> Fault:
    """From there on `data`, or what the format pings with, again and again, without end."""

    def change(plan: Plan, format: Format) -> Plan:
        dripping = Drip(format.ping if data is None else data, every_ms)
        return plan._replace(pieces=_arrived(plan, after), drip=dripping, length=plan.whole_length, then="hang")

    return Fault(answer, change)


def late_end(answer: Answer, *, ms: float) -> Fault:
    """What ends the body comes so long after the last event: a client that knows the format need not wait for it."""
    return Fault(answer, lambda plan, _: plan._replace(end_delay_ms=ms))


def interim(answer: Answer, *, status: int = 103, headers: Headers = ()) -> Fault:
    """An informational answer (1xx) goes first."""
    before = head_bytes(status, pairs(headers))
    return Fault(answer, lambda plan, _: plan._replace(before=before + plan.before))


def early(answer: Answer) -> Fault:
    """The answer is sent, and the connection closed, before the request's body is read: a 413 comes like this."""
    return Fault(answer, lambda plan, _: plan._replace(then="close"), early=True)


def _broken_off(answer: Answer | None, after: int, then: Then) -> Fault:
    def change(plan: Plan, format: Format) -> Plan:
        return plan._replace(pieces=_arrived(plan, after), ended=False, length=plan.whole_length, then=then)

    return Fault(answer, change)


def _arrived(plan: Plan, after: int) -> list[bytes]:
    """The pieces before the fault. A document counts as two, its halves, so that it can be cut at all."""
    if plan.streamed:
        return list(plan.pieces[:after])
    body = b"".join(plan.pieces)
    return [part for part in (body[: len(body) // 2], body[len(body) // 2 :])[:after] if part]
