"""One compaction: what is to be done, and its plan once the summary is written."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from contextgauge.compaction.carried.compaction_text import user_turns
from contextgauge.compaction.carried.restore import Restored, within
from contextgauge.compaction.engine.compaction_receipt import LadderStep, Receipt, StepName, Trigger
from contextgauge.compaction.engine.ladder import REASONS, Climb, climb, shorten_only
from contextgauge.compaction.engine.plan import Plan, plan_of
from contextgauge.compaction.engine.preparation import Aim, Staying, Summarising, finish, prepare
from contextgauge.compaction.engine.request_size import CallFrame, Measurement
from contextgauge.compaction.engine.trigger import Due
from contextgauge.compaction.messages import Carried, ContextCompaction, Message
from contextgauge.compaction.ports import SummaryAnswer
from contextgauge.compaction.profiles import share_of


class CompactionTask(NamedTuple):
    """One compaction: how large the request is, and who asked for it."""

    measured: Measurement
    trigger: Trigger
    instructions: str | None = None
    must: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """A summary: the whole text, the summariser's part of it, what code carries on with it.

    `summariser` wrote it, for what `answer` says; both are the floor's where others failed.
    """

    text: str
    prose: str
    carried: Carried
    summariser: str
    answer: SummaryAnswer | None
    failures: tuple[str, ...] = ()


class WrittenCompaction(NamedTuple):
    """What a compaction worked out: rungs, division and text, and when it began and ended."""

    climb: Climb
    work: Summarising
    written: Written
    restored: Restored
    began_ms: int
    ended_ms: int


def work_out(
    frame: CallFrame,
    measured: Measurement,
    due: Due | None,
    restore: Callable[[], Sequence[str]] | None,
    *,
    must: bool = False,
    prose_tokens: int = 0,
) -> tuple[Climb, Summarising | Staying, Restored]:
    """Climb as far as the goal asks for, and say what a summary is to be about.

    `due` is None where a compaction was asked for: that has a summary even without need. Texts
    that `restore` gives take their room from the summary. `must`: the next request would not fit.
    `prose_tokens` is the most that a model may write. What is due is shortened where no message
    can leave.
    """
    climbed, work, restored = _divided(
        frame, measured, due, restore, must=must, prose_tokens=prose_tokens
    )
    if due is not None and isinstance(work, Staying):
        climbed = shorten_only(climbed, frame.profile, frame.counter, measured.budget_tokens)
    return climbed, work, restored


def _divided(
    frame: CallFrame,
    measured: Measurement,
    due: Due | None,
    restore: Callable[[], Sequence[str]] | None,
    *,
    must: bool,
    prose_tokens: int,
) -> tuple[Climb, Summarising | Staying, Restored]:
    profile, counter, history = frame.profile, frame.counter, frame.history
    budget, nothing = measured.budget_tokens, Restored((), 0)
    at = Climb(tuple(history.active), measured.messages_tokens)
    if due is not None or "summarise" not in profile.rungs or profile.keep_share is None:
        # One that is asked for has a summary, so what stays need not be cleared for it.
        at = climb(at, profile, counter, budget, offers_recall=frame.call.offers_recall)
    if "summarise" not in profile.rungs:
        return at, Staying("the profile has no summaries"), nothing
    if due is not None and at.steps and at.tokens <= budget:
        return at, Staying("no summary is needed"), nothing
    texts = restore() if restore is not None else ()
    restored = within(texts, share_of(budget, profile.restore_share), counter)
    work = prepare(
        at,
        profile,
        counter,
        Aim(
            budget - restored.tokens,
            history.rounds + 1,
            frame.call.keep_ids,
            must=must or (due is not None and due.overflow),
            requested=due is None,
            prose_tokens=prose_tokens,
            offers_recall=frame.call.offers_recall,
        ),
        history.original,
    )
    return at, work, restored


def saved_at_most(measured: Measurement, at: Climb, work: Summarising | Staying) -> int:
    """Return what a compaction could save if its text had no size, in the estimate's tokens."""
    saved = measured.messages_tokens - at.tokens
    if isinstance(work, Summarising):
        saved += work.replaced_tokens + sum(
            each.tokens_before - each.tokens_after for each in work.steps
        )
    return saved


def finished_plan(
    active: Sequence[Message], frame: CallFrame, task: CompactionTask, done: WrittenCompaction
) -> Plan:
    """Return the plan of a compaction with a summary."""
    climbed, work, written, profile = done.climb, done.work, done.written, frame.profile
    leaving = work.selection.leaving
    count = len(frame.history.everything) if profile.count_all_archived else len(leaving)
    marker = ContextCompaction(
        number=work.number,
        timestamp_ms=done.ended_ms,
        summary=written.text,
        messages_archived=count,
        context_size_before=task.measured.before.tokens,
        prose=written.prose,
        carried=written.carried,
    )
    replacement = finish(work, marker, profile, done.restored.texts)
    archived = tuple(each.id for each in leaving)
    tokens = sum(map(frame.counter.message, replacement))
    name: StepName = "floor" if written.answer is None else "summarise"
    reason = written.failures[0] if written.failures else REASONS["summarise"]
    steps = (
        *climbed.steps,
        *work.steps,
        LadderStep(name, climbed.tokens, tokens, archived, reason),
    )
    answer = written.answer or SummaryAnswer("")
    receipt = replace(
        receipt_of(task, steps, tokens, done.began_ms, done.ended_ms),
        number=work.number,
        messages_archived=len(archived),
        archived_ids=archived,
        summariser=written.summariser,
        summary_input_tokens=answer.input_tokens,
        summary_cache_read_tokens=answer.cache_read_tokens,
        summary_output_tokens=answer.output_tokens,
        failures=(*written.failures, *answer.failures),
        redacted_secrets=answer.redacted_secrets,
        pins=user_turns(written.text),
        files=len(written.carried.files),
        restored=len(done.restored.texts),
        restore_omitted=done.restored.omitted,
    )
    return plan_of(active, replacement, receipt)


def receipt_of(
    task: CompactionTask, steps: tuple[LadderStep, ...], tokens: int, began_ms: int, ended_ms: int
) -> Receipt:
    """Return the receipt of a compaction; `tokens` is an estimate of the messages after it."""
    measured = task.measured
    return Receipt(
        trigger=task.trigger,
        tokens_before=measured.before.tokens,
        tokens_after=measured.after(tokens),
        basis=measured.before.basis,
        window=measured.limits.window,
        target_tokens=measured.limits.compact_to_tokens,
        steps=steps,
        duration_ms=max(0, ended_ms - began_ms),
    )
