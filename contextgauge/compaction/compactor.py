"""`Compactor`: keeps a conversation below its window. The engine's one entry that does IO.

`before_call` is asked before each call of the model, also in the middle of a chain of tool calls.
It decides (`trigger`), works out a plan (`ladder`), and applies it. `plan` alone can run in the
background: its result is applied later, or rejected where the conversation's beginning changed.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from contextgauge.compaction.counting import ESTIMATE, Counter, Seed002Counter
from contextgauge.compaction.events import (
    AutoCompactingEvent,
    CompactionCompleteEvent,
    CompactionFailedEvent,
    ContextWarningEvent,
    Hooks,
    ThresholdUnreachableEvent,
)
from contextgauge.compaction.extractive import ExtractiveSummariser
from contextgauge.compaction.history import History
from contextgauge.compaction.ladder import Climb, Summarising, clear_only, climb, finish, prepare
from contextgauge.compaction.measuring import (
    Measurement,
    ModelCall,
    fixed_tokens,
    measure,
    window_of_call,
)
from contextgauge.compaction.messages import ContextCompaction, Message, open_calls
from contextgauge.compaction.plan import Plan, plan_of
from contextgauge.compaction.ports import Summariser
from contextgauge.compaction.profiles import Override, Profile, profile_named, resolve
from contextgauge.compaction.receipts import Receipt, Step, StepName, Trigger
from contextgauge.compaction.trigger import (
    Decision,
    Due,
    Idle,
    Situation,
    Unreachable,
    Warn,
    Window,
    compacted,
    decide,
    failed,
)
from contextgauge.compaction.writing import (
    CompactionFailed,
    Writer,
    Written,
    summary_request,
)

_NO_CALL: Final = ModelCall()

_NO_HOOKS: Final = Hooks()

_UNKNOWN: Final = Window(128_000, "assumed")
"""For a compaction that was asked for, where the profile assumes no window itself."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What to send next, why the engine did what it did, and the receipt where it compacted."""

    messages: Sequence[Message]
    decision: Decision
    receipt: Receipt | None = None


class _Task(NamedTuple):
    """One compaction: for which call, by which figures, asked for by whom."""

    call: ModelCall
    profile: Profile
    measured: Measurement
    trigger: Trigger
    instructions: str | None = None


class _Done(NamedTuple):
    """What a compaction worked out: rungs, division and text, and when it began."""

    climb: Climb
    work: Summarising
    written: Written
    began_ms: int


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class Compactor:
    """Decides when a history is compacted, and does it.

    ```python
    compactor = Compactor()
    history = History()
    prepared = await compactor.before_call(history, ModelCall(window_tokens=200_000))
    ```

    `profile` is a name or a `Profile`; `overrides` change its figures by project, agent and
    model. `summariser` writes summaries: without one they are extracted without a model.
    `window_of` looks a model's window up. `now_ms` gives the time in milliseconds since 1970.
    """

    def __init__(
        self,
        *,
        profile: Profile | str = "default",
        overrides: Sequence[Override] = (),
        summariser: Summariser | None = None,
        counter: Counter | None = None,
        window_of: Callable[[str], int | None] | None = None,
        hooks: Hooks = _NO_HOOKS,
        now_ms: Callable[[], int] = _now_ms,
    ) -> None:
        self._profile = profile_named(profile) if isinstance(profile, str) else profile
        self._overrides = tuple(overrides)
        for each in self._overrides:
            resolve(self._profile, [each._replace(project=None, agent=None, model=None)])
        self._summariser: Summariser = summariser or ExtractiveSummariser()
        default = Seed002Counter() if self._profile.name == "seed-002" else ESTIMATE
        self._counter = counter or default
        self._window_of = window_of
        self._hooks = hooks
        self._now_ms = now_ms

    async def before_call(self, history: History, call: ModelCall = _NO_CALL) -> Prepared:
        """Return what the next call should send, compacted where that is due.

        A summary that could not be had is no error here: the conversation stays as it was, the
        reason goes to `on_event`, and the next try waits. Where the request would not fit the
        window any more, the deterministic floor is taken instead.
        """
        profile = self._resolved(call)
        window = window_of_call(profile, call, self._window_of)
        if not profile.enabled:
            return Prepared(history.active, Idle("disabled"))
        if window is None:
            return Prepared(history.active, Idle("unknown_window"))
        self._clear(history, call, profile, window)
        measured = self._measure(history, call, profile, window)
        history.trigger, decision = decide(
            history.trigger,
            measured.limits,
            self._situation(history, call, profile, measured),
        )
        if isinstance(decision, Warn):
            self._hooks.emit(ContextWarningEvent(measured.size.tokens, window))
        elif isinstance(decision, Unreachable):
            fixed = fixed_tokens(history.active, call, profile, self._counter, measured)
            self._hooks.emit(ThresholdUnreachableEvent(fixed, measured.limits.compact_at_tokens))
        elif isinstance(decision, Due):
            task = _Task(call, profile, measured, "auto")
            return await self._automatic(history, task, decision)
        return Prepared(history.active, decision)

    async def compact(
        self, history: History, call: ModelCall = _NO_CALL, *, instructions: str | None = None
    ) -> Receipt | None:
        """Compact now, whatever the size; `instructions` tell the summariser what matters.

        Returns None where there is nothing to compact. Raises CompactionFailed.
        """
        plan = await self.plan(history, call, instructions=instructions)
        if plan is None:
            return None
        self._apply(history, plan, window_of_call(self._resolved(call), call, self._window_of))
        return plan.receipt

    async def plan(
        self,
        history: History,
        call: ModelCall = _NO_CALL,
        *,
        trigger: Trigger = "manual",
        instructions: str | None = None,
    ) -> Plan | None:
        """Work out a compaction of what is active now, without applying it.

        The history may grow meanwhile. Returns None where there is nothing to compact, or a call
        has no result yet. Raises CompactionFailed.
        """
        profile = self._resolved(call)
        window = window_of_call(profile, call, self._window_of) or _UNKNOWN
        measured = self._measure(history, call, profile, window)
        return await self._plan(history, _Task(call, profile, measured, trigger, instructions))

    def apply(self, history: History, plan: Plan) -> None:
        """Put a plan into effect. Raises PlanRejected where what it covers was changed since."""
        self._apply(history, plan, None)

    def _apply(self, history: History, plan: Plan, window: Window | None) -> None:
        history.apply(plan)
        history.trigger = compacted(history.trigger)
        self._hooks.emit(CompactionCompleteEvent(plan.receipt, window))

    def _resolved(self, call: ModelCall) -> Profile:
        return resolve(
            self._profile,
            self._overrides,
            project=call.project,
            agent=call.agent,
            model=call.model,
        )

    def _measure(
        self, history: History, call: ModelCall, profile: Profile, window: Window
    ) -> Measurement:
        return measure(history.active, history.fresh_from, call, profile, window, self._counter)

    def _situation(
        self, history: History, call: ModelCall, profile: Profile, measured: Measurement
    ) -> Situation:
        active = history.active
        reached = measured.size.tokens >= measured.limits.compact_at_tokens
        return Situation(
            size_tokens=measured.size.tokens,
            fixed_tokens=fixed_tokens(active, call, profile, self._counter, measured)
            if reached
            else 0,
            messages=len(history.everything),
            turns=history.turns,
            answers=sum(each.role == "assistant" for each in active[history.fresh_from :]),
            open_calls=bool(reached and open_calls(active)),
            now_ms=self._now_ms(),
        )

    def _clear(self, history: History, call: ModelCall, profile: Profile, window: Window) -> None:
        """Clear old tool results once the request has `clear_at_tokens`, as a plan of its own."""
        if profile.clear_at_tokens is None:
            return
        measured = self._measure(history, call, profile, window)
        excess = measured.size.tokens - profile.clear_at_tokens
        if excess < 0:
            return
        at = clear_only(history.active, profile, self._counter, max(1, excess))
        if at.steps:
            task = _Task(call, profile, measured, "auto")
            receipt = self._receipt(task, at.steps, at.tokens, self._now_ms())
            history.apply(plan_of(history.active, at.messages, receipt))
            self._hooks.emit(CompactionCompleteEvent(receipt, window))

    async def _automatic(self, history: History, task: _Task, due: Due) -> Prepared:
        window = task.measured.limits.window
        starting = AutoCompactingEvent(task.measured.size.tokens, window, "auto", due.overflow)
        try:
            plan = await self._plan(history, task, starting)
        except CompactionFailed as error:
            retry_ms = None if error.retry_after_s is None else int(error.retry_after_s * 1_000)
            history.trigger = failed(history.trigger, self._now_ms(), retry_ms)
            self._hooks.emit(CompactionFailedEvent(str(error), history.trigger.retry_at_ms))
            return Prepared(history.active, due)
        if plan is None:
            return Prepared(history.active, Idle("nothing_to_compact"))
        self._apply(history, plan, window)
        return Prepared(history.active, due, plan.receipt)

    async def _plan(
        self,
        history: History,
        task: _Task,
        starting: AutoCompactingEvent | None = None,
    ) -> Plan | None:
        active, began_ms = tuple(history.active), self._now_ms()
        if open_calls(active):
            return None
        budget = task.measured.budget_tokens
        at = climb(active, task.profile, self._counter, budget)
        work = None
        enough = starting is not None and at.steps and at.tokens <= budget
        if "summarise" in task.profile.rungs and not enough:
            work = prepare(
                at,
                task.profile,
                self._counter,
                budget_tokens=budget,
                number=history.rounds + 1,
                keep_ids=task.call.keep_ids,
                original=history.original,
            )
        if work is None and not at.steps:
            return None
        if starting is not None:
            self._hooks.emit(starting)
            if self._hooks.confirm is not None and not await self._hooks.confirm(starting):
                raise CompactionFailed(["declined"])
        if work is None:
            receipt = self._receipt(task, at.steps, at.tokens, began_ms)
            return plan_of(active, at.messages, receipt)
        request = summary_request(work, task.call.request(active), task.profile, task.instructions)
        writer = Writer(self._summariser, self._counter, self._hooks)
        overflow = starting is not None and starting.overflow
        written = await writer.write(request, work, task.profile, floor=overflow)
        return self._finished(active, history, task, _Done(at, work, written, began_ms))

    def _finished(
        self,
        active: Sequence[Message],
        history: History,
        task: _Task,
        done: _Done,
    ) -> Plan:
        at, work, written = done.climb, done.work, done.written
        marker = ContextCompaction(
            number=work.number,
            timestamp_ms=self._now_ms(),
            summary=written.text,
            messages_archived=len(history.everything)
            if task.profile.count_all_archived
            else len(work.selection.leaving),
            context_size_before=task.measured.size.tokens,
            prose=written.prose,
            carried=work.carried,
        )
        restored = self._hooks.restore() if self._hooks.restore is not None else ()
        replacement = finish(work, marker, task.profile, restored)
        archived = tuple(each.id for each in work.selection.leaving)
        tokens = sum(map(self._counter.message, replacement))
        name: StepName = "floor" if written.answer is None else "summarise"
        reason = written.failures[0] if written.failures else "older messages, archived"
        steps = (*at.steps, *work.steps, Step(name, at.tokens, tokens, archived, reason))
        receipt = replace(
            self._receipt(task, steps, tokens, done.began_ms),
            number=work.number,
            messages_archived=len(archived),
            archived_ids=archived,
            summariser=written.summariser,
            failures=written.failures,
            pins=len(work.carried.pins),
            files=len(work.carried.files),
        )
        if written.answer is not None:
            receipt = replace(
                receipt,
                summary_input_tokens=written.answer.input_tokens,
                summary_cache_read_tokens=written.answer.cache_read_tokens,
                summary_output_tokens=written.answer.output_tokens,
            )
        return plan_of(active, replacement, receipt)

    def _receipt(self, task: _Task, steps: tuple[Step, ...], tokens: int, began_ms: int) -> Receipt:
        measured = task.measured
        return Receipt(
            trigger=task.trigger,
            tokens_before=measured.size.tokens,
            tokens_after=tokens + measured.other_tokens,
            basis=measured.size.basis,
            target_tokens=measured.limits.compact_to_tokens,
            steps=steps,
            duration_ms=max(0, self._now_ms() - began_ms),
        )
