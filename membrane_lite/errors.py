"""MembraneError: the one exception that leaves this package, and constructors for faults raised in more than one place.

The kind of a fault is in `.type`, never only in words. A message says where (a path, a variable, a provider and its
event), what was found, what was expected, and what to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final, Literal

    ErrorType = Literal[
        "rate_limit",
        "context_length",
        "invalid_request",
        "auth",
        "server",
        "network",
        "timeout",
        "abort",
        "safety",
        "unsupported",
        "thinking_binding",
        "unknown",
    ]
    FailureClass = Literal["overloaded", "rate_limit", "transient", "deadline", "fatal"]

# Whether the same request, sent again, may succeed; a constructor's `retryable=` says otherwise.
RETRYABLE_BY_TYPE: Final[Mapping[str, bool]] = {
    "rate_limit": True,
    "server": True,
    "network": True,
    "timeout": True,
    "context_length": False,
    "invalid_request": False,
    "auth": False,
    "abort": False,
    "safety": False,
    "unsupported": False,
    "thinking_binding": False,
    "unknown": False,
}

SHOWN_CHARACTERS: Final = 200  # of a provider's text, in a message

# Codes of our own in `provider_error_code`, where no provider gave one.
CALL_TIMEOUT: Final = "call_timeout"  # timeout_ms: streams end as aborted, complete() raises
PROGRESS_TIMEOUT: Final = "response_progress_timeout"

_PLAIN_FIELDS: Final = (
    "type",
    "message",
    "retryable",
    "retry_after_ms",
    "http_status",
    "provider_error_code",
    "request_id",
    "failure_class",
    "system_change_refused",
    "rate_limit",
    "raw_error",
    "raw_request",
)
_PARTIAL_FIELDS: Final = ("partial_content", "raw_assistant_text", "partial_usage", "tool_calls", "tool_results")


class MembraneError(Exception):
    """A call that failed, a request that cannot be built, or a setting that cannot be used.

    type: one of the twelve words of ErrorType. retryable: sending the same request again may succeed.
    retry_after_ms: the wait the provider stated. http_status, provider_error_code, request_id: the provider's own.
    rate_limit: {"requests": {"limit", "remaining", "reset_ms"}, "tokens": {...}}, as far as stated.
    raw_error: the provider's parsed body, or its text. raw_request: the body that was sent; no headers, no secrets.
    failure_class: what retry.classify_failure answers, where type and status do not say it (a deadline of ours).
    system_change_refused: a SystemChange stood in the way; the same change made in tools and system would not.
    partial_content, raw_assistant_text, partial_usage, tool_calls, tool_results: what had arrived of the failed call.
    """

    def __init__(
        self,
        type: ErrorType,
        message: str,
        *,
        retryable: bool | None = None,
        retry_after_ms: int | None = None,
        http_status: int | None = None,
        provider_error_code: str | None = None,
        request_id: str | None = None,
        rate_limit: Mapping[str, Any] | None = None,
        raw_error: Any = None,
        raw_request: Any = None,
        failure_class: FailureClass | None = None,
        system_change_refused: bool = False,
    ) -> None:
        super().__init__(type, message)
        self.type = type
        self.message = message
        self.retryable = RETRYABLE_BY_TYPE[type] if retryable is None else retryable
        self.retry_after_ms = retry_after_ms
        self.http_status = http_status
        self.provider_error_code = provider_error_code
        self.request_id = request_id
        self.rate_limit = rate_limit
        self.raw_error = raw_error
        self.raw_request = raw_request
        self.failure_class = failure_class
        self.system_change_refused = system_change_refused
        self.of_own_code = False  # raised by the caller's own code: whatever it says, no deadline or retry of this call
        self.partial_content: Sequence[Any] = ()
        self.raw_assistant_text = ""
        self.partial_usage: Any = None
        self.tool_calls: Sequence[Any] = ()
        self.tool_results: Sequence[Any] = ()

    def __str__(self) -> str:
        return self.message

    def __repr__(self) -> str:
        status = "" if self.http_status is None else f", http_status={self.http_status}"
        return f"MembraneError({self.type!r}, {self.message!r}{status}, retryable={self.retryable})"

    def with_request(self, raw_request: Any) -> MembraneError:
        """The same error, naming the body that was sent, unless it already names one."""
        if self.raw_request is None:
            self.raw_request = raw_request
        return self

    def with_class(self, failure_class: FailureClass) -> MembraneError:
        """The same error, in another failure class (an adapter knows whether a timed-out connect may be repeated)."""
        self.failure_class = failure_class
        return self

    def of_system_change(self) -> MembraneError:
        """The same error, known to be the model's refusal of a system change."""
        self.system_change_refused = True
        return self

    def from_own_code(self) -> MembraneError:
        """The same error, known to be raised by the caller's own code."""
        self.of_own_code = True
        return self

    def with_cause(self, cause: BaseException) -> MembraneError:
        """The same error, chained to what it was made from, as `raise ... from cause` does."""
        self.__cause__ = cause
        return self

    def told_as(self, message: str) -> MembraneError:
        """The same error in other words. What it was made from is forgotten: it says what these words leave out."""
        self.message = message
        self.args = (self.type, message)
        self.__cause__ = self.__context__ = None
        return self

    def inside(self, path: str, placeholder: str = "") -> MembraneError:
        """The same error, whose path lies inside `path`; the placeholder that begins it stands for `path` itself."""
        rest = self.message[len(placeholder) :] if placeholder and self.message.startswith(placeholder) else None
        self.message = path + rest if rest is not None else f"{path}.{self.message}"
        return self

    def with_advice(self, advice: str) -> MembraneError:
        """The same error, its message followed by what to do about it."""
        self.message += advice
        return self

    def with_partial(
        self,
        *,
        content: Sequence[Any],
        text: str,
        usage: Any,
        tool_calls: Sequence[Any],
        tool_results: Sequence[Any],
    ) -> MembraneError:
        """The same error, carrying what had arrived of the failed call."""
        self.partial_content = content
        self.raw_assistant_text = text
        self.partial_usage = usage
        self.tool_calls = tool_calls
        self.tool_results = tool_results
        return self

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; absent and empty fields are left out, `type`, `message` and `retryable` never are."""
        fields: dict[str, Any] = {}
        for name in _PLAIN_FIELDS + _PARTIAL_FIELDS:
            value = getattr(self, name)
            absent = value is None or value is False or value in ("", (), [])  # a stated wait of 0 is stated
            if name in ("type", "message", "retryable") or not absent:
                fields[name] = _jsonable(value)
        return fields


def _jsonable(value: Any) -> Any:
    """Values know their own form; sequences of them are walked."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, (list, tuple)):
        return [_jsonable(item) for item in value]
    return value


def shown(value: object) -> str:
    """A value as it may stand in a message: its repr, cut after 200 characters."""
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "..."


def invalid(path: str, found: str, expected: str) -> MembraneError:
    """`path: found; expected`: the caller's request or setting cannot be used, and nothing was sent."""
    return MembraneError("invalid_request", f"{path}: {found}; {expected}")


def wrong_type(path: str, value: object, expected: str) -> MembraneError:
    """The value at `path` is of another type than `expected` (words that follow "expected ")."""
    return invalid(path, f"found {type(value).__name__} {shown(value)}", f"expected {expected}")


def unknown_field(path: str, key: object, fields: Sequence[str]) -> MembraneError:
    """`key` is no field of the mapping at `path`: say where, what was found, and the way out."""
    from difflib import get_close_matches  # up to 10 ms to import: the mistaken pay it, nobody else

    near = get_close_matches(str(key), fields, n=1)
    advice = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(fields)}."
    return MembraneError("invalid_request", f"{path}: no field {key!r}; {advice}")


def aborted(reason: object = None) -> MembraneError:
    """The caller's signal fired."""
    return MembraneError("abort", "the call was aborted by its signal" + (f": {reason}" if reason else ""))


def own_code_error(name: str, exc: Exception, classified: MembraneError) -> MembraneError:
    """What the caller's own code (a hook, a callback) raised: the call ends and is never sent again.

    An error that already says retryable=False is the caller's to keep; anything else becomes a new error of the type
    `classified` has, without its status, code and wait, which belong to another request. Raise it `from exc`.
    """
    if isinstance(exc, MembraneError) and not exc.retryable:
        return exc.from_own_code()
    text = f"{name} raised {type(exc).__name__}: {exc}"
    return MembraneError(classified.type, text, retryable=False).from_own_code()
