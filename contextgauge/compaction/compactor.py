"""`Compactor`: keeps a conversation below its window. The engine's one entry that does IO.

`before_call` is asked before each call of the model, also in the middle of a chain of tool calls.
It decides (`trigger`), works out a plan (`ladder`), and applies it. `plan` alone can run in the
background: its result is applied later, or rejected where the conversation's beginning changed.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from contextgauge.compaction.counting import ESTIMATE, Counter, Seed002Counter, Size
from contextgauge.compaction.engine.compaction_receipt import Receipt, Trigger
from contextgauge.compaction.engine.extractive import ExtractiveSummariser
from contextgauge.compaction.engine.ladder import (
    Climb,
    Staying,
    Summarising,
    clear_only,
    shorten_only,
)
from contextgauge.compaction.engine.next_compaction import (
    CompactionTask,
    WrittenCompaction,
    finished_plan,
    receipt_of,
    work_out,
)
from contextgauge.compaction.engine.plan import Plan, plan_of
from contextgauge.compaction.engine.request_size import (
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
    answer_of,
)
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

_NO_CALL: Final = ModelCall()
_NO_HOOKS: Final = Hooks()
_UNKNOWN: Final = Window(128_000, "assumed")  # where the profile assumes no window itself


@dataclass(frozen=True, slots=True)
class Prepared:
    """What to send next, why the engine did what it did, and the receipt where it compacted."""

    messages: tuple[Message, ...]
    decision: Decision
    receipt: Receipt | None = None


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
    `window_of` looks a model's window up, by default in the bundled
    catalog. `deadline_s` bounds the work of a summariser, in
    seconds; `now_ms` gives the time in milliseconds since 1970.
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
        now_ms: Callable[[], int] = _now_ms,
    ) -> None:
        self._profile = profile_named(profile) if isinstance(profile, str) else profile
        self._overrides = tuple(overrides)
        check_overrides(self._profile, self._overrides)
        self._summariser: Summariser = summariser or ExtractiveSummariser()
        default = Seed002Counter() if self._profile.name == "seed-002" else ESTIMATE
        self._counter = counter or default
        self._window_of = window_of or bundled().window
        self._hooks = hooks
        self._deadline_s = deadline_s
        self._now_ms = now_ms

    async def before_call(self, history: History, call: ModelCall = _NO_CALL) -> Prepared:
        """Return what the next call should send, compacted where that is due.

        A summary that could not be had is no error here: the conversation stays as it was, the
        reason goes to `on_event`, and the next try waits. Where the request would not fit the
        window any more, the deterministic floor is taken instead.
        """
        prepared = await self._prepared(history, call)
        history.begin_call()
        return prepared

    async def _prepared(self, history: History, call: ModelCall) -> Prepared:
        profile = self._resolved(call)
        window = window_of_call(profile, call, self._window_of)
        if not profile.enabled:
            return Prepared(tuple(history.active), Idle("disabled"))
        if window is None:
            return Prepared(tuple(history.active), Idle("unknown_window"))
        frame = CallFrame(history, call, profile, window, once(self._counter))
        measured = self._cleared(frame, frame.measure())
        situation = self._situation(frame, measured)
        history.trigger, decision = decide(history.trigger, measured.limits, situation)
        if isinstance(decision, Warn):
            self._hooks.emit(ContextWarned(measured.size.tokens, window))
        elif isinstance(decision, Unreachable):
            threshold = measured.limits.compact_at_tokens
            self._hooks.emit(ThresholdUnreachable(situation.fixed_tokens, threshold))
        elif isinstance(decision, Due):
            return await self._automatic(frame, measured, decision)
        return Prepared(tuple(history.active), decision)

    async def compact(
        self, history: History, call: ModelCall = _NO_CALL, *, instructions: str | None = None
    ) -> Receipt | None:
        """Compact now, whatever the size, always with a summary; `instructions` are for that.

        Returns None for nothing to compact: `why_not` says why. Raises NoSummaryError.
        """
        plan = await self.plan(history, call, instructions=instructions)
        if plan is None:
            return None
        self.apply(history, plan)
        history.begin_call()  # the next answer is to what is active now
        return plan.receipt

    async def plan(
        self,
        history: History,
        call: ModelCall = _NO_CALL,
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
        return await self._plan(frame, CompactionTask(frame.measure(), trigger, instructions, must))

    def size(self, history: History, call: ModelCall = _NO_CALL) -> Size:
        """Return the size of the next request: reported, else estimated."""
        return self._frame(history, call).measure().before

    def why_not(self, history: History, call: ModelCall = _NO_CALL) -> str:
        """Return the reason for which `plan` and `compact` return None."""
        if open_calls(history.active):
            return "a tool's call has no result yet"
        frame = self._frame(history, call)
        work = work_out(frame, frame.measure(), None, self._hooks.restore)[1]
        return work.reason if isinstance(work, Staying) else "there is something to compact now"

    def _frame(self, history: History, call: ModelCall) -> CallFrame:
        profile = self._resolved(call)
        window = window_of_call(profile, call, self._window_of) or _UNKNOWN
        return CallFrame(history, call, profile, window, once(self._counter))

    def apply(self, history: History, plan: Plan) -> None:
        """Put a plan into effect. Raises PlanRejectedError where what it covers changed."""
        history.apply(plan)
        history.trigger = compacted(history.trigger)
        markers = (each.compaction for each in plan.replacement)
        summary = next((each.summary for each in markers if each is not None), "")
        archives = plan.receipt.number is not None
        self._hooks.emit(CompactionDone(plan.receipt, summary if archives else ""))

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
            fixed_tokens=frame.fixed_tokens(measured) if reached else 0,
            # Without the compactions' own, which are no growth.
            messages=len(history.everything) - history.rounds,
            turns=history.turns,
            effect_tokens=frame.effect_tokens(measured),
            open_calls=bool(reached and open_calls(history.active)),
            now_ms=self._now_ms(),
        )

    def _cleared(self, frame: CallFrame, measured: Measurement) -> Measurement:
        """Clear old tool results once the request has `clear_at_tokens`, as a plan of its own.

        Returns the measurement of what is active then.
        """
        if frame.profile.clear_at_tokens is None:
            return measured
        excess = measured.size.tokens - frame.profile.clear_at_tokens
        if excess < 0:
            return measured
        active, least = frame.history.active, frame.profile.clear_at_least_tokens
        start = Climb(tuple(active), measured.messages_tokens)
        at = clear_only(
            start,
            frame.profile,
            frame.counter,
            max(least, excess),
            offers_recall=frame.call.offers_recall,
        )
        if not at.steps or measured.messages_tokens - at.tokens < least:
            return measured
        now_ms = self._now_ms()
        receipt = receipt_of(CompactionTask(measured, "auto"), at.steps, at.tokens, now_ms, now_ms)
        frame.history.apply(plan_of(active, at.messages, receipt))
        self._hooks.emit(CompactionDone(receipt))
        return frame.measure()

    async def _automatic(self, frame: CallFrame, measured: Measurement, due: Due) -> Prepared:
        history = frame.history
        starting = CompactionStarting(measured.size.tokens, frame.window, due.overflow)
        try:
            plan = await self._plan(frame, CompactionTask(measured, "auto"), starting)
        except NoSummaryError as error:
            retry_ms = None if error.retry_after_s is None else int(error.retry_after_s * 1_000)
            now_ms = self._now_ms()
            if isinstance(error, DeclinedError):
                history.trigger = declined(history.trigger, now_ms, history.turns)
            else:
                turns = history.turns if error.final else None
                history.trigger = failed(history.trigger, now_ms, retry_ms, final_at_turns=turns)
            self._hooks.emit(CompactionNotDone(str(error), history.trigger.retry_at_ms))
            return Prepared(tuple(history.active), due)
        if plan is None:
            return self._unreachable(history, measured)
        self.apply(history, plan)
        return Prepared(tuple(history.active), due, plan.receipt)

    def _unreachable(self, history: History, measured: Measurement) -> Prepared:
        """Report once that nothing can leave now, though the threshold is reached."""
        decision: Decision = Idle("nothing_to_compact")
        if not history.trigger.unreachable_reported:
            history.trigger = replace(history.trigger, unreachable_reported=True)
            threshold = measured.limits.compact_at_tokens
            self._hooks.emit(ThresholdUnreachable(measured.size.tokens, threshold))
            decision = Unreachable()
        return Prepared(tuple(history.active), decision)

    async def _plan(
        self, frame: CallFrame, task: CompactionTask, starting: CompactionStarting | None = None
    ) -> Plan | None:
        profile, began_ms = frame.profile, self._now_ms()
        active = tuple(frame.history.active)
        overflow = task.must or (starting is not None and starting.overflow)
        due = None if starting is None else Due(starting.overflow)
        at, work, restored = work_out(frame, task.measured, due, self._hooks.restore, must=overflow)
        summarising = isinstance(work, Summarising)
        if not summarising and starting is not None:
            at = shorten_only(at, profile, frame.counter, task.measured.budget_tokens)
        if not summarising and not at.steps:
            return None
        if starting is not None:
            await self._confirmed(starting)
        if not isinstance(work, Summarising):
            receipt = receipt_of(task, at.steps, at.tokens, began_ms, self._now_ms())
            return plan_of(active, at.messages, receipt)
        request = summary_request(work, frame.call.request(active), profile, task.instructions)
        writer = Writer(self._summariser, frame.counter, self._hooks, self._deadline_s)
        written = await writer.write(request, work, profile, floor=overflow)
        done = WrittenCompaction(at, work, written, restored, began_ms, self._now_ms())
        return finished_plan(active, frame, task, done)

    async def _confirmed(self, starting: CompactionStarting) -> None:
        self._hooks.emit(starting)
        confirm = self._hooks.confirm
        if confirm is not None and not await answer_of("confirm", confirm(starting)):
            raise DeclinedError
