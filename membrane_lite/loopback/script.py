"""Which answer comes next. In go the requests, from many threads; out comes, for each, one answer."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, Union

from .answers import Failure, Raw
from .format import json_bytes
from .routes import KNOWN_PATHS

if TYPE_CHECKING:
    from .answers import Answer
    from .received import Received

    Answers = Union[Iterable[Answer], Callable[[Received], Answer]]


class Script:
    """Answers in order, or a function from a request to its answer.

    check: whether requests that the provider would refuse are refused; a refused request uses up no answer.
    """

    def __init__(self, answers: Answers, *, check: bool) -> None:
        self._function: Final = answers if callable(answers) else None
        self._waiting: Final[deque[Answer]] = deque(() if callable(answers) else answers)
        self._check: Final = check
        self._lock: Final = threading.Lock()

    def extend(self, answers: Iterable[Answer]) -> None:
        with self._lock:
            self._waiting.extend(answers)

    def early(self) -> Answer | None:
        """The next answer, if it is to be sent before the request's body is read."""
        with self._lock:
            return self._waiting.popleft() if self._waiting and self._waiting[0].early else None

    def answer(self, received: Received) -> Answer:
        if self._function is not None:
            answer = self._function(received)
            return self._refusal(received, answer) or answer
        with self._lock:
            if not self._waiting:
                return Failure(500, f"the script is used up: it has no answer to request {received.number}")
            return self._refusal(received, self._waiting[0]) or self._waiting.popleft()

    def _refusal(self, received: Received, answer: Answer) -> Raw | None:
        if not answer.checked:
            return None
        if received.format is None:
            return _no_format(received)
        return received.format.check(received) if self._check else None


def _no_format(received: Received) -> Raw:
    message = f"{received.method} {received.target}: no wire format has this path; expected one of {KNOWN_PATHS}"
    body: Any = {"error": {"type": "not_found_error", "message": message}}
    return Raw(404, {"Content-Type": "application/json"}, json_bytes(body), framing="length")
