"""`Compactor`: keeps a conversation below its window. The engine's one entry that does IO.

`before_call` is asked before each call of the model, also in the middle of a chain of tool calls.
It decides (`trigger`), works out a plan (`ladder`), and applies it. `plan` alone can run in the
background: its result is applied later, or rejected where the conversation's beginning changed.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from contextgauge.compaction.callbacks import Callbacks, CarefulCounter
from contextgauge.compaction.carried.restore import Restored
from contextgauge.compaction.counting import ESTIMATE, Counter, Seed002Counter, Size
from contextgauge.compaction.displays.context_status import ContextStatus, status_of
from contextgauge.compaction.engine.compaction_receipt import Receipt, Trigger
from contextgauge.compaction.engine.extractive import ExtractiveSummariser
from contextgauge.compaction.engine.ladder import Climb, clear_only
from contextgauge.compaction.engine.next_compaction import (
    CompactionTask,
    Written,
    WrittenCompaction,
    finished_plan,
    receipt_of,
    saved_at_most,
    work_out,
)
from contextgauge.compaction.engine.plan import Plan, PlanRejectedError, plan_of
from contextgauge.compaction.engine.preparation import Staying, Summarising, floor_document
from contextgauge.compaction.engine.request_size import (
    NO_CALL,
    CallFrame,
    Measurement,
    ModelCall,
    once,
    window_of_call,
)
from contextgauge.compaction.engine.trigger import (
    Decision,
    Due,
    Idle,
    Situation,
    TriggerState,
    Unreachable,
    Warn,
    compacted,
    decide,
    declined,
    failed,
)
from contextgauge.compaction.events import (
    CompactionDone,
    CompactionNotDone,
    CompactionStarting,
    ContextWarned,
    Hooks,
    ThresholdUnreachable,
)
from contextgauge.compaction.exclusion import alone
from contextgauge.compaction.history import History
from contextgauge.compaction.messages import Message, open_calls
from contextgauge.compaction.ports import Summariser
from contextgauge.compaction.profiles import (
    Override,
    Profile,
    Window,
    check_overrides,
    profile_named,
    resolve,
)
from contextgauge.compaction.summary_call import (
    DeclinedError,
    NoSummaryError,
    Writer,
    summary_request,
)
from contextgauge.window_catalog import bundled

_NO_HOOKS: Final = Hooks()
_UNKNOWN: Final = Window(128_000, "assumed")  # where the profile assumes no window itself


_MOST_ROUNDS: Final = 3
"""Of one `before_call`: the conversation may be changed, or grow beyond the window, meanwhile."""

_STARTED_MS: Final = time.time_ns() // 1_000_000 - time.monotonic_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class Prepared:
    """What to send next, why the engine did what it did, and the receipt where it compacted."""

    messages: tuple[Message, ...]
    decision: Decision
    receipt: Receipt | None = None


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _steady_ms() -> int:
    """Return the time since 1970 by a clock that is not set while the process runs."""
    return _STARTED_MS + time.monotonic_ns() // 1_000_000


class Compactor:
    """Decides when a history is compacted, and does it.

    ```python
    compactor = Compactor()
    history = History()
    prepared = await compactor.before_call(history, ModelCall(window_tokens=200_000))
    ```

    `profile` is a name or a `Profile`; `overrides` change its figures by project, agent and
    model. `summariser` writes summaries: without one they are extracted without a model.
    `window_of` looks a model's window up, by default in the bundled catalog. `deadline_s` bounds
    the work of a summariser, in seconds. `now_ms` gives the time in milliseconds since 1970;
    without it, pauses use a clock that is never set. What a callback raises is logged, no more.
    """

    def __init__(
        self,
        *,
        profile: Profile | str = "default",
        overrides: Sequence[Override] = (),
        summariser: Summariser | None = None,
        counter: Counter | None = None,
        window_of: Callable[[str], int | None] | None = None,
        deadline_s: float = 300.0,
        hooks: Hooks = _NO_HOOKS,
        now_ms: Callable[[], int] | None = None,
    ) -> None:
        self._profile = profile_named(profile) if isinstance(profile, str) else profile
        self._overrides = tuple(overrides)
        check_overrides(self._profile, self._overrides)
        self._summariser: Summariser = summariser or ExtractiveSummariser()
        default = Seed002Counter() if self._profile.name == "seed-002" else ESTIMATE
        self._counter = default if counter is None else CarefulCounter(counter)
        self._callbacks = Callbacks(hooks, window_of or bundled().window)
        self._hooks = hooks
        self._deadline_s = deadline_s
        self._now_ms = now_ms or _now_ms
        self._steady_ms = now_ms or _steady_ms

    async def before_call(self, history: History, call: ModelCall = NO_CALL) -> Prepared:
        """Return what the next call should send, compacted where that is due.

        A summary that could not be had is no error here: the conversation stays as it was, the
        reason goes to `on_event`, and the next try waits. Where the request would not fit the
        window any more, the deterministic floor is taken instead. Of two calls at once for one
        history, the second waits for the first.
        """
        async with alone(history):
            prepared = await self._prepared(history, call)
            history.begin_call()
        return prepared

    async def _prepared(self, history: History, call: ModelCall) -> Prepared:
        """Decide, and compact where that is due; again while the request does not fit."""
        profile = self._resolved(call)
        window = window_of_call(profile, call, self._callbacks.window_of)
        if not profile.enabled:
            return Prepared(tuple(history.active), Idle("disabled"))
        if window is None:
            return Prepared(tuple(history.active), Idle("unknown_window"))
        frame = CallFrame(history, call, profile, window, once(self._counter))
        first, receipt = None, None
        for _ in range(_MOST_ROUNDS):
            measured = self._cleared(frame, _measured(frame))
            if first is not None and not measured.overflows:
                break
            decision, done = await self._round(frame, measured)
            first, receipt = first or decision, done or receipt
            if not isinstance(decision, Due):
                break
        return Prepared(tuple(history.active), first or Idle("below_threshold"), receipt)

    async def _round(
        self, frame: CallFrame, measured: Measurement
    ) -> tuple[Decision, Receipt | None]:
        history, limits = frame.history, measured.limits
        situation = self._situation(frame, measured)
        history.trigger, decision = decide(history.trigger, limits, situation)
        if isinstance(decision, Warn):
            self._callbacks.emit(ContextWarned(measured.size.tokens, frame.window))
        elif isinstance(decision, Unreachable):
            smallest, usable = situation.smallest_tokens, limits.usable_tokens
            self._callbacks.emit(ThresholdUnreachable(smallest, usable))
        elif isinstance(decision, Due):
            return await self._automatic(frame, measured, decision)
        return decision, None

    async def compact(
        self, history: History, call: ModelCall = NO_CALL, *, instructions: str | None = None
    ) -> Receipt | None:
        """Compact now, whatever the size, always with a summary; `instructions` are for that.

        Returns None for nothing to compact: `why_not` says why. Raises NoSummaryError.
        """
        async with alone(history):
            plan = await self.plan(history, call, instructions=instructions)
            if plan is None:
                return None
            self.apply(history, plan)
            history.begin_call()  # the next answer is to what is active now
            return plan.receipt

    async def plan(
        self,
        history: History,
        call: ModelCall = NO_CALL,
        *,
        trigger: Trigger = "manual",
        instructions: str | None = None,
        must: bool = False,
        during_call: bool = False,
    ) -> Plan | None:
        """Work out a compaction of what is active now, without applying it.

        The history may grow meanwhile. With `must`, where the next request would not fit, the floor
        replaces a summary that cannot be had; with `during_call`, a call without a result stays as
        it is. Returns None for nothing to compact, `why_not` says why. Raises NoSummaryError.
        """
        if open_calls(history.active) and not during_call:
            return None
        frame = self._frame(history, call)
        task = CompactionTask(_measured(frame), trigger, instructions, must)
        return await self._plan(frame, task)

    def size(self, history: History, call: ModelCall = NO_CALL) -> Size:
        """Return the size of the next request: reported, else estimated."""
        return _measured(self._frame(history, call)).before

    def get_stats(self, history: History, call: ModelCall = NO_CALL) -> ContextStatus:
        """Return seed 004's statistics of the next request: its size by parts, window, messages."""
        return status_of(self._frame(history, call))

    def why_not(self, history: History, call: ModelCall = NO_CALL) -> str:
        """Return the reason for which `plan` and `compact` return None."""
        if open_calls(history.active):
            return "a tool's call has no result yet"
        frame = self._frame(history, call)
        work = self._work_out(frame, frame.measure(), None)[1]
        return work.reason if isinstance(work, Staying) else "there is something to compact now"

    def _frame(self, history: History, call: ModelCall) -> CallFrame:
        profile = self._resolved(call)
        window = window_of_call(profile, call, self._callbacks.window_of) or _UNKNOWN
        return CallFrame(history, call, profile, window, once(self._counter))

    def apply(self, history: History, plan: Plan) -> None:
        """Put a plan into effect. Raises PlanRejectedError where what it covers changed."""
        history.apply(plan)
        history.trigger = compacted(history.trigger)
        markers = (each.compaction for each in plan.replacement)
        summary = next((each.summary for each in markers if each is not None), "")
        archives = plan.receipt.number is not None
        self._callbacks.emit(CompactionDone(plan.receipt, summary if archives else ""))

    def _resolved(self, call: ModelCall) -> Profile:
        return resolve(
            self._profile,
            self._overrides,
            project=call.project,
            agent=call.agent,
            model=call.model,
        )

    def _situation(self, frame: CallFrame, measured: Measurement) -> Situation:
        history = frame.history
        reached = measured.size.tokens >= measured.limits.compact_at_tokens
        return Situation(
            size_tokens=measured.size.tokens,
            smallest_tokens=frame.smallest_tokens(measured) if measured.overflows else 0,
            turns=history.turns,
            effect_tokens=frame.effect_tokens(measured),
            open_calls=bool(reached and open_calls(history.active)),
            now_ms=self._steady_ms(),
        )

    def _cleared(self, frame: CallFrame, measured: Measurement) -> Measurement:
        """Clear all old tool results from `clear_at_tokens` on; measure what is active then."""
        clear_at = frame.profile.clear_at_tokens
        if clear_at is None or measured.size.tokens < clear_at:
            return measured
        active, least = frame.history.active, frame.profile.clear_at_least_tokens
        start = Climb(tuple(active), measured.messages_tokens)
        tokens, recall = measured.messages_tokens, frame.call.offers_recall
        climb = clear_only(start, frame.profile, frame.counter, tokens, offers_recall=recall)
        if not climb.steps or measured.messages_tokens - climb.tokens < least:
            return measured
        now_ms = self._now_ms()
        receipt = receipt_of(
            CompactionTask(measured, "auto"), climb.steps, climb.tokens, now_ms, now_ms
        )
        frame.history.apply(plan_of(active, climb.messages, receipt))
        self._callbacks.emit(CompactionDone(receipt))
        return _measured(frame)

    async def _automatic(
        self, frame: CallFrame, measured: Measurement, due: Due
    ) -> tuple[Decision, Receipt | None]:
        """Carry out what is due. A summariser that fails, or a change meanwhile, begins a pause."""
        history = frame.history
        starting = CompactionStarting(measured.size.tokens, frame.window, due.overflow)
        try:
            if due.floor:
                plan = self._floor_plan(frame, measured, starting)
            else:
                plan = await self._plan(frame, CompactionTask(measured, "auto"), starting)
            if plan is None:
                return Idle("nothing_to_compact"), None
            self.apply(history, plan)
        except (NoSummaryError, PlanRejectedError) as error:
            history.trigger = self._paused(history, error)
            self._callbacks.emit(CompactionNotDone(str(error), history.trigger.retry_at_ms))
            return due, None
        return due, plan.receipt

    def _paused(self, history: History, error: NoSummaryError | PlanRejectedError) -> TriggerState:
        state, now_ms = history.trigger, self._steady_ms()
        if isinstance(error, PlanRejectedError):
            return failed(state, now_ms)
        if isinstance(error, DeclinedError):
            return declined(state, now_ms, history.turns)
        retry_ms = None if error.retry_after_s is None else int(error.retry_after_s * 1_000)
        turns = history.turns if error.final else None
        return failed(state, now_ms, retry_ms, final_at_turns=turns)

    def _floor_plan(
        self, frame: CallFrame, measured: Measurement, starting: CompactionStarting
    ) -> Plan | None:
        """Work out a compaction without asking anyone: to the goal, else as far as possible."""
        active, plan, began_ms = tuple(frame.history.active), None, self._now_ms()
        due = Due(starting.overflow)
        for budget in (measured.budget_tokens, 0):
            task = CompactionTask(replace(measured, budget_tokens=budget), "auto", must=True)
            climb, work, restored = self._work_out(frame, task.measured, due)
            if isinstance(work, Summarising):
                text = floor_document(work, frame.counter)
                written = Written(text, work.previous or "", work.carried, "floor", None)
                done = WrittenCompaction(climb, work, written, restored, began_ms, self._now_ms())
                plan = finished_plan(active, frame, task, done)
            elif climb.steps:
                receipt = receipt_of(task, climb.steps, climb.tokens, began_ms, self._now_ms())
                plan = plan_of(active, climb.messages, receipt)
            if plan is not None and plan.receipt.tokens_after < measured.limits.usable_tokens:
                break
        if plan is not None:
            self._callbacks.emit(replace(starting, strategy=plan.receipt.strategy))
        return plan

    async def _plan(
        self, frame: CallFrame, task: CompactionTask, starting: CompactionStarting | None = None
    ) -> Plan | None:
        profile, began_ms = frame.profile, self._now_ms()
        active = tuple(frame.history.active)
        overflow = task.must or (starting is not None and starting.overflow)
        due = None if starting is None else Due(starting.overflow)
        climb, work, restored = self._work_out(frame, task.measured, due, must=task.must)
        if not isinstance(work, Summarising) and not climb.steps:
            return None
        if starting is not None:
            is_summary = isinstance(work, Summarising)
            starting = replace(starting, strategy="compact" if is_summary else "prune")
            # Where the floor is certain, what would save too little waits for the full window.
            saved = saved_at_most(task.measured, climb, work)
            if profile.floor and not overflow and not task.measured.is_worth(saved):
                return None
            self._callbacks.emit(starting)
            if not await self._callbacks.confirmed(starting):
                raise DeclinedError
        if not isinstance(work, Summarising):
            receipt = receipt_of(task, climb.steps, climb.tokens, began_ms, self._now_ms())
            return plan_of(active, climb.messages, receipt)
        request = summary_request(work, frame.call.request(active), profile, task.instructions)
        hooks = replace(self._hooks, review=self._callbacks.review)
        writer = Writer(self._summariser, frame.counter, hooks, self._deadline_s)
        written = await writer.write(request, work, profile, floor=overflow)
        done = WrittenCompaction(climb, work, written, restored, began_ms, self._now_ms())
        return finished_plan(active, frame, task, done)

    def _work_out(
        self, frame: CallFrame, measured: Measurement, due: Due | None, *, must: bool = False
    ) -> tuple[Climb, Summarising | Staying, Restored]:
        writes = not isinstance(self._summariser, ExtractiveSummariser)
        tokens, restored = frame.profile.summary_tokens if writes else 0, self._callbacks.restored
        return work_out(frame, measured, due, restored, must=must, prose_tokens=tokens)


def _measured(frame: CallFrame) -> Measurement:
    """Measure the next request, and remember what an API reported of it."""
    measured, history = frame.measure(), frame.history
    if measured.calibration != history.trigger.calibration:
        history.trigger = replace(history.trigger, calibration=measured.calibration)
    return measured
