"""What one compaction is to be, worked out before a hook or a summariser is asked."""

from collections.abc import Callable, Sequence

from contextgauge.compaction.carried.restore import Restored, within
from contextgauge.compaction.engine.ladder import Climb, Staying, Summarising, climb, prepare
from contextgauge.compaction.engine.request_size import CallFrame, Measurement
from contextgauge.compaction.engine.trigger import Due
from contextgauge.compaction.profiles import share_of


def worked(
    frame: CallFrame,
    measured: Measurement,
    due: Due | None,
    restore: Callable[[], Sequence[str]] | None,
    *,
    must: bool = False,
) -> tuple[Climb, Summarising | Staying, Restored]:
    """Climb as far as the goal asks for, and say what a summary is to be about.

    `due` is None where a compaction was asked for: that has a summary even without need. Texts
    that `restore` gives take their room from the summary. `must`: the next request would not fit.
    """
    profile, counter, history = frame.profile, frame.counter, frame.history
    budget, nothing = measured.budget_tokens, Restored((), 0)
    at = climb(Climb(tuple(history.active), measured.messages_tokens), profile, counter, budget)
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
        budget_tokens=budget - restored.tokens,
        number=history.rounds + 1,
        keep_ids=frame.call.keep_ids,
        original=history.original,
        must=must,
    )
    return at, work, restored
