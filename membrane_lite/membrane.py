"""Membrane: one client over any adapter, with three faces of the same turn.

complete() gives the response, stream() calls back while it arrives, stream_yielding() is a `for` loop over events.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, Union, overload

from .abort import AbortController, AbortSignal
from .attempts import CallPlan, redacted
from .call import DEFAULT_IDLE_MS, Limits, own_code
from .clock import Clock
from .errors import MembraneError, invalid, wrong_type
from .formatters.anthropic_xml import AnthropicXmlFormatter
from .formatters.base import BuildSettings, Formatter, Logger, check_formatter, tool_mode
from .formatters.request_size import max_request_bytes
from .formatters.tool_names import STRICTEST
from .providers.base import Adapter, read_milliseconds
from .providers.structured_output import DEFAULT_NAME, output_schema
from .resumption import DEFAULT_MAX_RESUMPTION_ROUNDS
from .turn import Turn, TurnOptions
from .values.content import Text
from .values.events import (
    Aborted,
    AnyEvent,
    BlockSeen,
    ChunkMeta,
    Complete,
    Failed,
    PreToolContent,
    RoundAnswered,
    Tokens,
    ToolCalls,
    UsageSeen,
)
from .values.messages import Message, user_side_name
from .values.options import Hooks, RetryConfig, RetryInfo
from .values.reader import read_message, read_request, read_retry_config, read_tool_results
from .values.requests import OutputSchema, Request
from .values.responses import AbortedResponse, Response
from .values.tools import ToolResult

if TYPE_CHECKING:
    from .formatters.cache_receipts import CacheWireReceipt
    from .schema.derive import Schema

DEFAULT_MAX_TOOL_DEPTH: Final = 10
TOOL_BLOCKS: Final = ("tool_use", "tool_result")

Result = Union[Response, AbortedResponse]
T = TypeVar("T")


class Membrane:
    """adapter: any of this package's, or an object with complete() and stream() that yield deltas.

    formatter: else the adapter's own. assistant_participant: who the assistant is where a request does not say.
    retry: a RetryConfig or a mapping of its shape. registry: an object with get_pricing(model). logger: any object
    with warning(message, *args). One Membrane serves many threads; close() closes the adapter.
    """

    def __init__(
        self,
        adapter: Adapter,
        *,
        formatter: Formatter | None = None,
        assistant_participant: str = "Claude",
        max_participants_for_stop: int = 10,
        default_prompt_caching: bool = True,
        retry: object = None,
        hooks: Hooks | None = None,
        registry: Any = None,
        logger: Logger | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._adapter: Final = adapter
        if formatter is not None:
            check_formatter(formatter)
        default = getattr(adapter, "default_formatter", AnthropicXmlFormatter)
        self._formatter: Final[Formatter] = formatter or default()
        if hooks is not None and not isinstance(hooks, Hooks):
            raise wrong_type("hooks", hooks, "a Hooks")
        self._hooks: Final = hooks or Hooks()
        self._retry: Final = RetryConfig() if retry is None else read_retry_config(retry)
        self._registry: Final = registry
        self._clock: Final = clock or Clock()
        self._settings: Final = BuildSettings(
            assistant_participant=assistant_participant,
            max_participants_for_stop=max_participants_for_stop,
            prompt_caching=default_prompt_caching,
            max_request_bytes=max_request_bytes(os.environ),
            tool_names=getattr(adapter, "tool_names", STRICTEST),
            logger=GuardedLogger(logger),
        )

    def __enter__(self) -> Membrane:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the adapter; running calls end as aborted. Idempotent."""
        close = getattr(self._adapter, "close", None)
        if close is not None:
            close()

    def complete(
        self,
        request: object,
        *,
        signal: AbortSignal | None = None,
        timeout_ms: int | None = None,
        first_event_timeout_ms: int | None = None,
        idle_timeout_ms: int | None = None,
        refusal_retries: int = 0,
        on_request: Callable[[Any], object] | None = None,
        on_response: Callable[[Any], object] | None = None,
        on_retry: Callable[[RetryInfo], object] | None = None,
        on_cache_wire_receipt: Callable[[CacheWireReceipt], object] | None = None,
        retry: Literal[False] | None = None,
        formatter: Formatter | None = None,
    ) -> Response:
        """The response to one request. Tool calls come back in response.tool_calls; nothing is run.

        on_cache_wire_receipt(receipt) is told the hashes of the body before it leaves (formatters/cache_receipts.py).
        Raises MembraneError, for an abort and for every deadline too; what had arrived is on the error.
        """
        return self._completed(
            request,
            signal=signal,
            timeout_ms=timeout_ms,
            first_event_timeout_ms=first_event_timeout_ms,
            idle_timeout_ms=idle_timeout_ms,
            refusal_retries=refusal_retries,
            on_request=on_request,
            on_response=on_response,
            on_retry=on_retry,
            on_cache_wire_receipt=on_cache_wire_receipt,
            retry=retry,
            formatter=formatter,
        )

    @overload
    def complete_object(
        self,
        request: object,
        *,
        schema: type[T],
        name: str = ...,
        description: str | None = ...,
        on_complete: Callable[[Response], object] | None = ...,
        **options: Any,
    ) -> T: ...

    @overload
    def complete_object(
        self,
        request: object,
        *,
        schema: Mapping[str, Any],
        name: str = ...,
        description: str | None = ...,
        on_complete: Callable[[Response], object] | None = ...,
        **options: Any,
    ) -> Any: ...

    def complete_object(
        self,
        request: object,
        *,
        schema: Schema,
        name: str = DEFAULT_NAME,
        description: str | None = None,
        on_complete: Callable[[Response], object] | None = None,
        **options: Any,
    ) -> Any:
        """The answer to one request as an object of `schema`, which is sent in the provider's own form.

        schema: a dataclass, a TypedDict, or any class with model_json_schema() and model_validate(), whose object is
        returned; or a JSON Schema mapping. name, description: of the answer, for the model. on_complete(response) hears
        the whole Response, usage and cost, before it is decoded. options: those of complete(). The request's tools are
        not called. Raises what complete() does; LlmContractViolation for an answer that does not fit the schema; for
        one that was cut ("unknown") or refused ("safety") a MembraneError of code "incomplete_answer".
        """
        from .providers.structured_answer import structured_answer, tell  # only now: most calls ask for words

        output = output_schema(schema, name=name, description=description)
        response, show = self._completed(request, output=output, **options), partial(redacted, self._adapter)
        if on_complete is not None:
            tell(on_complete, response, show=show)
        return structured_answer(response, schema, output, show=show)

    def stream(
        self,
        request: object,
        *,
        on_chunk: Callable[..., object] | None = None,
        on_block: Callable[..., object] | None = None,
        on_content_block_update: Callable[..., object] | None = None,
        on_usage: Callable[..., object] | None = None,
        on_tool_calls: Callable[..., Any] | None = None,
        on_pre_tool_content: Callable[[str], object] | None = None,
        on_request: Callable[[Any], object] | None = None,
        on_response: Callable[[Any], object] | None = None,
        on_retry: Callable[[RetryInfo], object] | None = None,
        on_cache_wire_receipt: Callable[[CacheWireReceipt], object] | None = None,
        max_tool_depth: int = DEFAULT_MAX_TOOL_DEPTH,
        max_resumption_rounds: int = DEFAULT_MAX_RESUMPTION_ROUNDS,
        signal: AbortSignal | None = None,
        timeout_ms: int | None = None,
        idle_timeout_ms: int | None = None,
        first_event_timeout_ms: int | None = None,
        progress_timeout_ms: int | None = None,
        retry: Literal[False] | None = None,
        formatter: Formatter | None = None,
    ) -> Result:
        """The response, or an AbortedResponse if the signal or timeout_ms ended the call; callbacks hear it arrive.

        on_chunk(text, meta), on_block(event), on_content_block_update(index, block), on_usage(usage),
        on_pre_tool_content(text), on_response(raw). on_tool_calls(calls) or (calls, context) returns the results, and
        the loop goes on until the model calls no tool, or the round at max_tool_depth has run. max_resumption_rounds:
        how often a transcript goes on behind a stop sequence that stood inside a block; -1 is no limit. Raises
        MembraneError.
        """
        checked = read_request(request)
        if not checked.streaming and on_tool_calls is not None:
            raise MembraneError(
                "unsupported", "streaming=False: there is no tool loop without streaming; leave one out"
            )
        turn = self._turn(
            checked,
            formatter,
            plan=self._plan(
                signal=signal,
                limits=self._limits(
                    first_event_timeout_ms, idle_timeout_ms, progress_timeout_ms, streamed=checked.streaming
                ),
                retry=retry,
                on_request=on_request,
                on_retry=on_retry,
            ),
            streamed=checked.streaming,
            runs_tools=on_tool_calls is not None,
            max_tool_depth=max_tool_depth,
            resumes=checked.streaming,
            max_resumption_rounds=None if max_resumption_rounds == -1 else max_resumption_rounds,
            timeout_ms=read_milliseconds("timeout_ms", timeout_ms),
            on_cache_wire_receipt=on_cache_wire_receipt,
        )
        if not checked.streaming:
            return told_at_once(self._response(turn, on_response), on_chunk)
        callbacks = filtered(
            {
                BlockSeen: block_callback(on_block, on_content_block_update),
                UsageSeen: told("on_usage", on_usage, "usage"),
                PreToolContent: told("on_pre_tool_content", on_pre_tool_content, "text"),
                RoundAnswered: told("on_response", on_response, "raw"),
                ToolCalls: tool_callback(turn, on_tool_calls),
            }
        )
        return result_of(run(turn, on_chunk, callbacks))

    def stream_yielding(
        self,
        request: object,
        *,
        signal: AbortSignal | None = None,
        timeout_ms: int | None = None,
        idle_timeout_ms: int | None = None,
        first_event_timeout_ms: int | None = None,
        progress_timeout_ms: int | None = None,
        refusal_retries: int = 0,
        max_tool_depth: int | None = None,
        max_resumption_rounds: int = DEFAULT_MAX_RESUMPTION_ROUNDS,
        emit_tokens: bool = True,
        emit_blocks: bool = True,
        emit_usage: bool = True,
        on_request: Callable[[Any], object] | None = None,
        on_response: Callable[[Any], object] | None = None,
        on_retry: Callable[[RetryInfo], object] | None = None,
        on_cache_wire_receipt: Callable[[CacheWireReceipt], object] | None = None,
        retry: Literal[False] | None = None,
        formatter: Formatter | None = None,
    ) -> YieldingStream:
        """A stream to loop over; nothing is sent until the first event is asked for.

        timeout_ms spans each provider call with its waits. max_tool_depth: None or -1 is no limit, for
        max_resumption_rounds it is -1. refusal_retries: not in a transcript. The loop ends with one event of type
        complete, aborted or error; a failure is such an event, not an exception.
        """
        check_signal(signal)
        controller = AbortController()
        turn = self._turn(
            read_request(request),
            formatter,
            plan=self._plan(
                signal=controller.signal,
                limits=self._limits(first_event_timeout_ms, idle_timeout_ms, progress_timeout_ms),
                retry=retry,
                on_request=on_request,
                on_retry=on_retry,
            ),
            runs_tools=True,
            max_tool_depth=None if max_tool_depth == -1 else max_tool_depth,
            resumes=True,
            max_resumption_rounds=None if max_resumption_rounds == -1 else max_resumption_rounds,
            refusal_retries=refusal_retries,
            timeout_ms=read_milliseconds("timeout_ms", timeout_ms),
            timeout_scope="round",
            on_cache_wire_receipt=on_cache_wire_receipt,
        )
        hidden = {Tokens: emit_tokens, BlockSeen: emit_blocks, UsageSeen: emit_usage}
        return YieldingStream(
            turn,
            controller,
            signal,
            hidden=frozenset(kind for kind, emitted in hidden.items() if not emitted),
            on_response=on_response,
            warn=self._settings.warn,
        )

    def _turn(self, request: Request, formatter: Formatter | None, **how: Any) -> Turn:
        """A turn of this Membrane; `how` are fields of TurnOptions."""
        if formatter is not None:
            check_formatter(formatter)
        chosen = formatter or self._formatter
        transcript = tool_mode(request, chosen) == "xml" and chosen.supports_xml_tools
        if transcript and how.get("streamed", True) and how.get("refusal_retries"):
            self._settings.warn("refusal_retries: left out, a streamed transcript is not sent again")
            how = {**how, "refusal_retries": 0}
        options = TurnOptions(
            settings=self._settings, before_request=self._hooks.before_request, registry=self._registry, **how
        )
        if options.max_resumption_rounds is not None:
            check_whole_number("max_resumption_rounds", options.max_resumption_rounds, lowest=0)
        if options.max_tool_depth is not None:
            check_whole_number("max_tool_depth", options.max_tool_depth)
        check_whole_number("refusal_retries", options.refusal_retries, lowest=0)
        return Turn(request, self._adapter, chosen, options)

    def _plan(
        self,
        *,
        signal: AbortSignal | None,
        limits: Limits,
        retry: Literal[False] | None,
        on_request: Callable[[Any], object] | None,
        on_retry: Callable[[RetryInfo], object] | None,
    ) -> CallPlan:
        if retry is not None and retry is not False:
            raise invalid("retry", f"found {retry!r}", "expected False, or nothing; schedules are set on the Membrane")
        check_signal(signal)
        return CallPlan(
            clock=self._clock,
            signal=signal,
            limits=limits,
            retry=None if retry is False else self._retry,
            on_request=on_request,
            on_error=self._hooks.on_error,
            on_retry=on_retry,
        )

    def _limits(
        self, first_event_ms: int | None, idle_ms: int | None, progress_ms: int | None = None, *, streamed: bool = True
    ) -> Limits:
        """The call's own limits, else the adapter's; an answer that is not streamed has no progress to make."""
        own_progress_ms = read_milliseconds("progress_timeout_ms", progress_ms)
        return Limits(
            first_event_ms=read_milliseconds("first_event_timeout_ms", first_event_ms),
            idle_ms=read_milliseconds("idle_timeout_ms", idle_ms)
            or getattr(self._adapter, "idle_timeout_ms", DEFAULT_IDLE_MS),
            progress_ms=own_progress_ms or getattr(self._adapter, "progress_timeout_ms", None) if streamed else None,
        )

    def _completed(
        self,
        request: object,
        *,
        output: OutputSchema | None = None,
        signal: AbortSignal | None = None,
        timeout_ms: int | None = None,
        first_event_timeout_ms: int | None = None,
        idle_timeout_ms: int | None = None,
        refusal_retries: int = 0,
        on_request: Callable[[Any], object] | None = None,
        on_response: Callable[[Any], object] | None = None,
        on_retry: Callable[[RetryInfo], object] | None = None,
        on_cache_wire_receipt: Callable[[CacheWireReceipt], object] | None = None,
        retry: Literal[False] | None = None,
        formatter: Formatter | None = None,
    ) -> Response:
        """What complete() and complete_object() have in common."""
        turn = self._turn(
            read_request(request),
            formatter,
            plan=self._plan(
                signal=signal,
                limits=self._limits(first_event_timeout_ms, idle_timeout_ms, streamed=False),
                retry=retry,
                on_request=on_request,
                on_retry=on_retry,
            ),
            streamed=False,
            output=output,
            refusal_retries=refusal_retries,
            timeout_ms=read_milliseconds("timeout_ms", timeout_ms),
            on_cache_wire_receipt=on_cache_wire_receipt,
        )
        return self._response(turn, on_response)

    def _response(self, turn: Turn, on_response: Callable[[Any], object] | None) -> Response:
        """The response of a turn that was not streamed, as after_response leaves it; an abort raises."""
        event = run(turn, None, filtered({RoundAnswered: told("on_response", on_response, "raw")}))
        if not isinstance(event, Complete):
            assert turn.failure is not None
            raise turn.failure
        hook = self._hooks.after_response
        if hook is None:
            return event.response
        try:
            changed = own_code("after_response", hook, event.response, event.response.raw.response)
            if changed is not None and not isinstance(changed, Response):
                raise wrong_type("after_response", changed, "a Response or None")
        except MembraneError as error:
            turn.ended(error)
            assert turn.failure is not None
            raise turn.failure from turn.failure.__cause__
        except (KeyboardInterrupt, SystemExit) as exc:
            turn.attach_partial(exc)
            raise
        return changed or event.response


class YieldingStream:
    """Events of one turn, for a `for` loop. Leaving the loop, or the `with` block, ends the call and its connection.

    state: "idle", "streaming", "waiting_for_tools" or "done". cancel() may come from any thread, the rest from one.
    """

    def __init__(
        self,
        turn: Turn,
        controller: AbortController,
        signal: AbortSignal | None,
        *,
        hidden: frozenset[type],
        on_response: Callable[[Any], object] | None,
        warn: Callable[..., object],
    ) -> None:
        self._turn: Final = turn
        self._events: Final = turn.events()
        self._controller: Final = controller
        self._signal: Final = signal
        self._hidden: Final = hidden | {PreToolContent}
        self._on_response: Final = on_response
        self._warn: Final = warn
        self._state = "idle"
        self._pending: Sequence[str] = ()
        if signal is not None:
            signal.add_callback(self._follow)

    def __enter__(self) -> YieldingStream:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[AnyEvent]:
        try:
            while True:
                event = self._next()
                if event is None:
                    return
                yield event
        finally:
            self.close()

    def __next__(self) -> AnyEvent:
        event = self._next()
        if event is None:
            raise StopIteration
        return event

    @property
    def state(self) -> str:
        return self._state

    @property
    def is_waiting_for_tools(self) -> bool:
        return self._state == "waiting_for_tools" and not self._controller.signal.aborted

    @property
    def pending_tool_call_ids(self) -> list[str]:
        return list(self._pending) if self.is_waiting_for_tools else []

    @property
    def tool_depth(self) -> int:
        """How many sets of results were taken in."""
        return self._turn.tool_depth

    def provide_tool_results(self, results: object, injected_messages: object = None) -> None:
        """Answer the tool-calls event, before the next event is asked for.

        results: ToolResults or mappings, one for each pending call. injected_messages: Messages or mappings with
        content, and participant and metadata if need be; they follow the results and stay for the turn. After an error
        the stream still waits.
        """
        if not self.is_waiting_for_tools:
            state = "done" if self._controller.signal.aborted else self._state
            raise MembraneError("invalid_request", f"the stream is not waiting for tools (status: {state})")
        read = read_tool_results(results)
        check_results(read, self._pending)
        self._turn.provide(read, injected(injected_messages, user_side_name(self._turn.assistant), self._warn))
        self._state, self._pending = "streaming", ()

    def cancel(self) -> None:
        """End the call, from any thread; the next event is the aborted one. Does nothing once the stream is done."""
        self._controller.abort()

    def close(self) -> None:
        """Cancel, and close what is open now. Idempotent."""
        if self._state != "done":
            self.cancel()
            self._done()
            try:
                self._events.close()
            except ValueError:
                pass  # another thread is inside it, and the cancel has just ended what that one waits for

    def _next(self) -> AnyEvent | None:
        if self._state == "done":
            return None
        if self.is_waiting_for_tools:
            raise MembraneError(
                "invalid_request", "the tool-calls event was not answered; call provide_tool_results() before going on"
            )
        self._state = "streaming"
        try:
            event: AnyEvent | None = next((event for event in self._events if self._shown(event)), None)
        except MembraneError as error:  # of on_response; the turn itself raises none
            self._events.close()
            event = self._turn.ended(error)
        except BaseException as exc:
            self._events.close()
            self._turn.attach_partial(exc)
            self._done()
            raise
        if isinstance(event, ToolCalls):
            self._state, self._pending = "waiting_for_tools", [call.id for call in event.calls]
        elif event is None or isinstance(event, (Complete, Aborted, Failed)):  # None: closed by another thread
            self._done()
        return event

    def _shown(self, event: AnyEvent) -> bool:
        if isinstance(event, RoundAnswered):
            if self._on_response is not None:
                own_code("on_response", self._on_response, event.raw)
            return False
        return type(event) not in self._hidden

    def _done(self) -> None:
        self._state = "done"
        if self._signal is not None:
            self._signal.remove_callback(self._follow)

    def _follow(self) -> None:
        """The caller's signal has fired."""
        self._controller.abort(None if self._signal is None else self._signal.reason)


class GuardedLogger:
    """The caller's logger, whose errors are the caller's own; else Python's, named after this package."""

    def __init__(self, logger: Logger | None) -> None:
        self._logger: Final = logger

    def warning(self, message: str, *args: object) -> None:
        if self._logger is not None:
            own_code("logger.warning", self._logger.warning, message, *args)
            return
        import logging  # only now: most calls warn of nothing

        logging.getLogger(__name__.rpartition(".")[0]).warning(message, *args)


Callbacks = dict[type, Callable[[Any], object]]


def run(turn: Turn, on_chunk: Callable[..., object] | None, callbacks: Callbacks) -> AnyEvent:
    """Run a turn to its end, calling back. Returns its last event: Complete, Aborted or Failed."""
    events = turn.events()
    last: AnyEvent | None = None
    try:
        for last in events:
            if type(last) is Tokens:
                if on_chunk is not None:
                    on_chunk(last.content, last.meta)
            elif type(last) in callbacks:
                callbacks[type(last)](last)
    except Exception as exc:  # of a callback: the turn itself raises none
        events.close()
        return turn.ended(turn.of_own_code("on_chunk", exc))
    except BaseException as exc:
        events.close()
        turn.attach_partial(exc)
        raise
    assert last is not None
    return last


def filtered(callbacks: Mapping[type, Callable[[Any], object] | None]) -> Callbacks:
    """Those that were given."""
    return {kind: callback for kind, callback in callbacks.items() if callback is not None}


def told(name: str, callback: Callable[..., object] | None, *fields: str) -> Callable[[Any], object] | None:
    """Call back with these fields of an event; None where there is nobody to call."""
    if callback is None:
        return None
    return lambda event: own_code(name, callback, *(getattr(event, field) for field in fields))


def told_at_once(response: Response, on_chunk: Callable[..., object] | None) -> Response:
    """A response that was not streamed, its texts told when it is whole."""
    if on_chunk is not None:
        for index, block in enumerate(response.content):
            if isinstance(block, Text) and block.text:
                own_code("on_chunk", on_chunk, block.text, ChunkMeta("text", index))
    return response


def block_callback(
    on_block: Callable[..., object] | None, on_update: Callable[..., object] | None
) -> Callable[[Any], object] | None:
    """Both callbacks that hear of blocks, as one; None where neither is given."""
    if on_block is None and on_update is None:
        return None

    def tell(seen: Any) -> None:
        if on_block is not None:
            own_code("on_block", on_block, seen.event)
        if on_update is not None:
            own_code("on_content_block_update", on_update, seen.event.index, seen.content_block)

    return tell


def tool_callback(turn: Turn, on_tool_calls: Callable[..., Any] | None) -> Callable[[Any], object] | None:
    """Run the tools and hand their results to the turn. The callback may take (calls) or (calls, context)."""
    if on_tool_calls is None:
        return None
    with_context = takes_context(on_tool_calls)

    def run_tools(event: Any) -> None:
        arguments = (event.calls, event.context) if with_context else (event.calls,)
        turn.provide(read_tool_results(own_code("on_tool_calls", on_tool_calls, *arguments)))

    return run_tools


def takes_context(callback: Callable[..., Any]) -> bool:
    """Whether it can be called with two arguments; what cannot be inspected is."""
    try:
        inspect.signature(callback).bind(None, None)
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def result_of(event: AnyEvent) -> Result:
    if isinstance(event, Failed):
        raise event.error
    assert isinstance(event, (Complete, Aborted))
    return event.response


def check_signal(signal: object) -> None:
    if signal is not None and not isinstance(signal, AbortSignal):
        raise wrong_type("signal", signal, "an AbortSignal, the .signal of an AbortController")


def check_whole_number(name: str, value: object, *, lowest: int | None = None) -> None:
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong_type(name, value, "a whole number")
    if lowest is not None and value < lowest:
        raise invalid(name, f"found {value}", f"expected {lowest} or more")


def check_results(results: Sequence[ToolResult], pending: Sequence[str]) -> None:
    """Raise "invalid_request" unless these are the results of all pending calls and of no others."""
    given = [result.tool_use_id for result in results]
    for call in pending:
        if call not in given:
            raise MembraneError("invalid_request", f"Missing tool result for call ID: {call}")
    for call in given:
        if call not in pending:
            raise MembraneError(
                "invalid_request", f"Unknown tool call ID: {call}; results are awaited for {', '.join(pending)}"
            )


def injected(given: object, user: str, warn: Callable[..., object]) -> list[Message]:
    """Messages put in beside tool results: read strictly; tool blocks in them would leave the turn stuck."""
    if given is None:
        return []
    if not isinstance(given, (list, tuple)):
        raise wrong_type("injected_messages", given, "a list of messages")
    messages = []
    for index, item in enumerate(given):
        path = f"injected_messages[{index}]"
        message = read_message({"participant": user, **item} if isinstance(item, Mapping) else item, path)
        kept = [block for block in message.content if block.type not in TOOL_BLOCKS]
        if len(kept) < len(message.content):
            warn("%s: stripped %d tool block(s)", path, len(message.content) - len(kept))
        if kept:
            messages.append(Message(message.participant, kept, message.metadata))
    return messages
