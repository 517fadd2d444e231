"""ModelUnavailable: no usable answer arrived. The error of answers that break their contract is in schema/decode.py.

It carries no request and no answer: it goes back to agents, and what the corpus said need not be repeated there.
"""

from __future__ import annotations

from typing import Final

from ..error_table import classify_exception
from ..errors import MembraneError


class ModelUnavailable(MembraneError):
    """A transport rejected the call, an answer could not be parsed, was cut short, or held nothing that was asked for.

    model_id, reason: the message is both. failure: what this reduces; its type, whether a repeat may help, its wait and
    its numbers are kept, its bodies are not. Without one: type "unknown", not retryable.
    """

    def __init__(self, model_id: str, reason: str, *, failure: MembraneError | None = None) -> None:
        known = failure or MembraneError("unknown", reason)
        super().__init__(
            known.type,
            f"{model_id}: {reason}",
            retryable=known.retryable,
            retry_after_ms=known.retry_after_ms,
            http_status=known.http_status,
            provider_error_code=known.provider_error_code,
            request_id=known.request_id,
            rate_limit=known.rate_limit,
            failure_class=known.failure_class,
        )
        self.model_id: Final = model_id
        self.reason = reason

    def of_batch(self, batch: str) -> ModelUnavailable:
        """The same error, naming the batch that failed."""
        self.reason = f"{batch}: {self.reason}"
        self.message = f"{self.model_id}: {self.reason}"
        self.args = (self.type, self.message)
        return self


def model_failure(model_id: str, cause: BaseException) -> ModelUnavailable:
    """A rejection reduced to the model and the driver's own summary, "name: message"."""
    known = classify_exception(cause) if isinstance(cause, Exception) else MembraneError("unknown", str(cause))
    if type(cause) is MembraneError:
        return ModelUnavailable(model_id, f"{cause.provider_error_code or cause.type}: {cause.message}", failure=known)
    return ModelUnavailable(model_id, f"{type(cause).__name__}: {cause}", failure=known)
