"""One turn: rounds, the tool loop, refusals sent again. One generator serves every face and every tool mode.

    build -> before_request -> attempts -> events as they arrive -> response, usage
      ^                                                                   |
      |--- results taken in <--- tool-calls event <--- the model calls ---|
      '--- the stop sequence put back <--- it stood inside a block -------'

The generator yields events. Whoever runs it answers a tool-calls event by provide() before asking for the next one.
It ends with exactly one of complete, aborted, error, and raises only what the interpreter itself raises.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Literal

from .abort import AbortSignal
from .attempts import CallPlan, Sent, answered, redacted
from .call import NEVER, own_code
from .error_table import classify_exception
from .errors import CALL_TIMEOUT, MembraneError, aborted, own_code_error, wrong_type
from .formatters import cache_markers
from .formatters.assembly import AnswerRecord
from .formatters.base import Assembler, BuildSettings, Formatter, ToolTexts
from .outcome import (
    KNOWN_STOP_REASONS,
    Round,
    Timed,
    content_of,
    discarded_of,
    priced,
    response_of,
    stop_reason_of,
    usage_of,
)
from .providers.base import Adapter, HttpAdapter, check_request, check_system_changes, provider_name
from .providers.structured_output import with_output
from .resumption import DEFAULT_MAX_RESUMPTION_ROUNDS, TOLD_AT, ResumptionGuard
from .values.deltas import Finished
from .values.events import (
    Aborted,
    AnyEvent,
    Complete,
    Failed,
    PreToolContent,
    Retrying,
    RoundAnswered,
    ToolCalls,
    UsageSeen,
)
from .values.messages import Message
from .values.requests import OutputSchema, ProviderRequest, Request
from .values.responses import AbortedResponse, Response, Usage
from .values.tools import ToolCall, ToolContext, ToolResult

TimeoutScope = Literal["turn", "round"]
AbortReason = Literal["user", "timeout", "error"]


@dataclass
class TurnOptions:
    """How a turn runs. runs_tools: calls are given out and their results awaited; otherwise one round is all.

    max_tool_depth: the depth, from 0, after whose tools nothing more is sent; None is no limit. resumes: a round that a
    stop sequence ended by accident is continued, at most max_resumption_rounds times. timeout_ms spans the whole turn,
    or each of its provider calls with their waits. output: the schema that every round asks its answer to fit.
    """

    plan: CallPlan
    settings: BuildSettings = field(default_factory=BuildSettings)
    streamed: bool = True
    runs_tools: bool = False
    max_tool_depth: int | None = None
    resumes: bool = False
    max_resumption_rounds: int | None = DEFAULT_MAX_RESUMPTION_ROUNDS
    refusal_retries: int = 0
    timeout_ms: float | None = None
    timeout_scope: TimeoutScope = "turn"
    output: OutputSchema | None = None
    before_request: Callable[..., Any] | None = None
    on_cache_wire_receipt: Callable[[Any], object] | None = None
    registry: Any = None


class Turn:
    """A request on its way to a response. events() runs once; partial() may be asked at any moment."""

    def __init__(self, request: Request, adapter: Adapter, formatter: Formatter, options: TurnOptions) -> None:
        self.assistant: Final = request.assistant_participant or options.settings.assistant_participant
        self.failure: MembraneError | None = None  # what ended the turn, where it did not end by itself
        self.tool_depth = 0
        self._request: Final = request
        self._adapter: Final = adapter
        self._options: Final = options
        self._plan: Final = options.plan
        self._formatter: Final = formatter
        self._conversation: Final = formatter.conversation(request, options.settings)
        check_request(request, formatter, adapter, output=options.output)
        self._rounds: Final[list[Round]] = []
        self._refused: Final[list[AnswerRecord]] = []
        self._resumptions: Final = ResumptionGuard(options.max_resumption_rounds)
        self._resuming = False
        self._arriving: Assembler | None = None
        self._sent: Sent | None = None
        self._results: Sequence[ToolResult] = ()
        self._injected: Sequence[Message] = ()
        self._began: Final = options.plan.clock.monotonic()
        self._first_token: float | None = None

    def provide(self, results: Sequence[ToolResult], injected: Sequence[Message] = ()) -> None:
        """Answer the tool-calls event that was last yielded."""
        check_system_changes(injected, self._formatter, self._adapter)
        self._results = results
        self._injected = injected

    def events(self) -> Generator[AnyEvent, None, None]:
        try:
            yield from self._run()
        except MembraneError as error:
            yield self.ended(error)
        except Exception as exc:  # of a formatter, or a fault of this package: never bare
            yield self.ended(classify_exception(exc).with_cause(exc))
        except (KeyboardInterrupt, SystemExit) as exc:
            self.attach_partial(exc)
            raise

    def ended(self, error: MembraneError) -> Aborted | Failed:
        """The event of a turn that `error` ends: an abort and the call's own deadline are no failures.

        What the caller's own code raises after an abort is the abort's doing.
        """
        signal = self._plan.signal
        if error.of_own_code and signal is not None and signal.aborted:
            error = aborted(signal.reason).with_cause(error)
        self.failure = error
        if self._sent is not None:
            error.with_request(redacted(self._adapter, self._sent.raw_request))
        partial = self.partial()
        error.with_partial(
            content=partial.partial_content,
            text=partial.raw_assistant_text,
            usage=partial.partial_usage,
            tool_calls=partial.tool_calls,
            tool_results=partial.tool_results,
        )
        if error.type == "abort":
            return Aborted(self.partial("user" if signal is not None and signal.aborted else "error", error.message))
        if error.provider_error_code == CALL_TIMEOUT and not error.of_own_code:
            return Aborted(self.partial("timeout", error.message))
        return Failed(error)

    def of_own_code(self, name: str, exc: Exception) -> MembraneError:
        """The error a turn ends with when the caller's own code raised `exc`."""
        error = own_code_error(name, exc, classify_exception(exc))
        return error if error is exc else error.with_cause(exc)

    def partial(self, reason: AbortReason = "error", message: str | None = None) -> AbortedResponse:
        """What has arrived so far, as a turn that is ended here would give it."""
        arriving = self._arriving
        content = content_of(self._rounds) + (arriving.content() if arriving else [])
        records = [done.record for done in self._rounds] + ([arriving.record] if arriving else [])
        return AbortedResponse(
            reason=reason,
            message=message,
            partial_content=content,
            partial_usage=usage_of(records),
            raw_assistant_text=self._conversation.raw_text(content),
            tool_calls=[call for done in self._rounds for call in done.calls],
            tool_results=[result for done in self._rounds for result in done.results],
        )

    def attach_partial(self, exc: BaseException) -> None:
        """What the interpreter raises passes through, with what had arrived in `.membrane_partial`."""
        setattr(exc, "membrane_partial", self.partial())  # noqa: B010 (its class does not declare the attribute)

    # The loop

    def _run(self) -> Iterator[AnyEvent]:
        call_ends, usage = self._call_ends("turn"), Usage()
        while self._may_go_on():
            done = yield from self._round(min(call_ends, self._call_ends("round")))
            yield RoundAnswered(done.raw_response)
            usage = self._usage()
            yield UsageSeen(usage)
            calls = self._conversation.calls(done.content, done.stop_reason) if self._options.runs_tools else []
            if calls:
                yield from self._tools(done, calls, call_ends)
                self._check(call_ends)
            elif not (yield from self._resumed(done)):
                break
        yield Complete(self._response(usage))

    def _may_go_on(self) -> bool:
        """Resumptions count into the depth: each is a provider call of this turn as well."""
        limit = self._options.max_tool_depth
        return limit is None or self.tool_depth + self._resumptions.count <= limit

    def _round(self, call_ends: float) -> Generator[AnyEvent, None, Round]:
        """One provider call, and those that take its place while it is refused."""
        refusals = 0
        waits_ms: list[int] = []
        while True:
            provider_request = self._built()
            assembler = self._arriving = self._conversation.assembler()
            if self._resuming:  # what the last round wrote is the beginning of what arrives now
                self._rounds[-1] = self._rounds[-1]._replace(content=[])
                self._resuming = False
            first = None if refusals else partial(self._first_sending, provider_request)
            sent = self._sent = Sent(self._plan.on_request, assembler.record.forget, first)
            yield from self._answer(assembler, provider_request, sent, call_ends)
            waits_ms += sent.waits_ms
            done = self._round_of(assembler, sent, waits_ms)
            self._arriving = None
            if done.stop_reason != "refusal" or refusals >= self._options.refusal_retries:
                self._rounds.append(done)
                return done
            refusals += 1
            self._refused.append(done.record)
            yield Retrying(refusals, self._options.refusal_retries, "refusal", done.finished.category)

    def _built(self) -> ProviderRequest:
        """The next request; before_request runs once for each one built, not for its resends."""
        built = with_output(self._conversation.build(), self._options.output)
        hook = self._options.before_request
        changed = None if hook is None else own_code("before_request", hook, self._request, built)
        if changed is not None and not isinstance(changed, ProviderRequest):
            raise wrong_type("before_request", changed, "a ProviderRequest or None")
        return changed or built

    def _first_sending(self, provider_request: ProviderRequest, body: Any) -> None:
        """A round's first body is about to leave. What takes its place, after a failure or a refusal, is the same."""
        self._warn_of_lost_markers(provider_request, body)
        tell = self._options.on_cache_wire_receipt
        if tell is not None:
            from .formatters.cache_receipts import receipt_of  # only now: most calls ask for no hashes

            own_code("on_cache_wire_receipt", tell, receipt_of(body))

    def _warn_of_lost_markers(self, provider_request: ProviderRequest, body: Any) -> None:
        """Of those that a hook or provider_params brought: the formatter has said what it left out."""
        params = provider_request.provider_params
        if not params and self._options.before_request is None:
            return
        if isinstance(self._adapter, HttpAdapter) and self._adapter.most_cache_markers:
            lost = cache_markers.count({**vars(provider_request), **params}) - cache_markers.count(body)
            if lost > 0:
                self._warn(cache_markers.LEFT_OUT, lost)

    def _answer(
        self, assembler: Assembler, provider_request: ProviderRequest, sent: Sent, call_ends: float
    ) -> Iterator[AnyEvent]:
        options, add, clock = self._options, assembler.add, self._plan.clock
        deltas = answered(
            self._adapter,
            provider_request,
            self._plan,
            sent,
            streamed=options.streamed,
            call_ends=call_ends,
            call_ms=options.timeout_ms,
        )
        with closing(deltas):
            for delta in deltas:
                for event in add(delta):
                    if self._first_token is None:
                        self._first_token = clock.monotonic()
                    yield event
        yield from assembler.end()

    def _round_of(self, assembler: Assembler, sent: Sent, waits_ms: list[int]) -> Round:
        record, content = assembler.record, assembler.content()
        finished = record.finished
        if finished is None:
            raise MembraneError("network", f"{self._provider}: the adapter's deltas ended without a Finished delta")
        if isinstance(self._adapter, HttpAdapter):
            content = self._adapter.tidied(content)
        raw = finished.raw
        if raw is None and isinstance(self._adapter, HttpAdapter):
            raw = self._adapter.record(finished.envelope, content)
        reason = stop_reason_of(finished, content)
        if reason not in KNOWN_STOP_REASONS:
            self._warn("%s stopped for %r, which is no known reason", self._provider, reason)
        return Round(content, record, finished, reason, sent.raw_request, raw, waits_ms, [])

    # Tools

    def _tools(self, done: Round, calls: Sequence[ToolCall], call_ends: float) -> Iterator[AnyEvent]:
        """Give the calls out and take their results in. A call with broken arguments is answered, never run."""
        self._resumptions.progressed()
        texts = self._conversation.tool_texts(done.content, content_of(self._rounds))
        if texts.preamble.strip():
            yield PreToolContent(texts.preamble)
        whole = [call for call in calls if call.unparseable_input is None]
        refused = [self._refused_call(call) for call in calls if call.unparseable_input is not None]
        self._results, self._injected = (), ()
        if whole:
            self._check(call_ends)  # whoever has ended the call wants no tool to run
            yield ToolCalls(whole, self._context(done, texts))
            if not self._results:
                self._check(call_ends)  # ended instead of answered
        done.results.extend([*self._results, *refused])
        self.tool_depth += 1
        yield from self._conversation.add_results(done.content, done.ordered_results, self._injected)

    def _refused_call(self, call: ToolCall) -> ToolResult:
        return ToolResult(call.id, self._conversation.refusal(call), is_error=True)

    def _context(self, done: Round, texts: ToolTexts) -> ToolContext:
        return ToolContext(
            raw_text=texts.raw_text,
            preamble=texts.preamble,
            depth=self.tool_depth,
            previous_results=[result for earlier in self._rounds for result in earlier.results],
            accumulated=texts.accumulated,
            round_content=list(done.content),
            signal=self._plan.signal or AbortSignal(),
        )

    # Accidental stops

    def _resumed(self, done: Round) -> Generator[AnyEvent, None, bool]:
        """Whether the round was stopped by accident and the turn goes on behind the stop sequence."""
        stop = self._conversation.false_stop() if self._options.resumes else None
        if stop is None:
            return False
        ended = self._resumptions.verdict(stop)
        if ended is not None:
            self._warn(RESUMPTION_WARNINGS[ended], stop.sequence, self._resumptions.count)
        elif self._resumptions.count == TOLD_AT:
            self._warn("resumed at round %d after %r: %d input tokens so far", TOLD_AT, stop.sequence, self._input())
        if ended == "no_progress":
            self._rounds[-1] = done._replace(stop_reason=ended)
            return False
        events = self._conversation.resume()
        # What stopped it was content, also where nothing follows.
        content = self._conversation.assembler().content()
        self._rounds[-1] = done._replace(content=content, stop_reason=ended or done.stop_reason)
        yield from events
        self._resuming = ended is None
        return self._resuming

    def _input(self) -> int:
        return usage_of([done.record for done in self._rounds]).input_tokens

    # Ends

    def _warn(self, message: str, *args: object) -> None:
        self._options.settings.warn(message, *args)

    @property
    def _provider(self) -> str:
        return provider_name(self._adapter)

    def _call_ends(self, scope: TimeoutScope) -> float:
        """The instant of the deadline that spans `scope`, counted from now."""
        timeout_ms = self._options.timeout_ms if self._options.timeout_scope == scope else None
        return NEVER if timeout_ms is None else self._plan.clock.monotonic() + timeout_ms / 1000

    def _check(self, call_ends: float) -> None:
        self._plan.check(self._plan.deadlines(call_ends, self._options.timeout_ms))

    def _usage(self) -> Usage:
        """Totals so far, priced by the model that served last."""
        requested, registry = self._request.config.model, self._options.registry
        discarded = discarded_of(self._refused, requested=requested, registry=registry)
        served = self._rounds[-1].record.model if self._rounds else None
        usage = usage_of([done.record for done in self._rounds], discarded)
        return priced(usage, served=served, requested=requested, registry=registry)

    def _response(self, usage: Usage) -> Response:
        now, first = self._plan.clock.monotonic(), self._first_token
        content = content_of(self._rounds)
        return response_of(
            self._rounds or [NO_ROUND],
            usage,
            Timed(now - self._began, None if first is None else first - self._began),
            requested=self._request.config.model,
            provider=self._provider,
            assistant=self.assistant,
            content=content,
            raw_text=self._conversation.raw_text(content),
        )


RESUMPTION_WARNINGS: Final = {
    "no_progress": "no progress: the model was stopped by %r again and again, after %d resumptions the turn ends",
    "round_limit": "resumption cap: the turn ends, stopped by %r after %d resumptions",
}


# A turn whose depth limit allows no provider call at all.
NO_ROUND: Final = Round([], AnswerRecord(), Finished("end_turn", None), "end_turn", None, None, [], [])
