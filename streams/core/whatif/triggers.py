"""Where a chain was compacted by itself, and which recorded compactions follow from that.

The recorded trigger of a model and window is what the runtime reported, else what its settings say,
else the least size at which it was compacted. A recorded compaction is reproduced where its request
was the first one since the last compaction that had the trigger's size.
"""

from typing import Literal, NamedTuple, TypeAlias

from streams.core.runtime_settings import expected, read_settings
from streams.core.whatif.turns import ChainLog, ChainTurn, RecordedCompaction, known_growths

TriggerSource: TypeAlias = Literal["reported", "settings", "learned"]

Verdict: TypeAlias = Literal[
    "given",
    "reproduced",
    "begun_below",
    "begun_late",
    "attempt_failed",
    "no_response_before",
]
"""`given`: it was requested, of an idle session, or nothing says what began it. Not reproduced:
`begun_below` the trigger; `begun_late`, after a request of its size; after one at which an attempt
failed (`attempt_failed`); or without a response since the last compaction."""

_Conditions: TypeAlias = tuple[str | None, int | None]


class RecordedTrigger(NamedTuple):
    """A trigger in tokens, and where it is known from."""

    tokens: int
    source: TriggerSource


class Judged(NamedTuple):
    """A recorded compaction before the response `at`, and whether its position follows.

    `size` is what was known before its request; `trigger` None where none is known. `earlier` is
    the largest such size since the last compaction.
    """

    at: int
    compaction: RecordedCompaction
    size: int | None
    trigger: RecordedTrigger | None
    earlier: int
    verdict: Verdict


class Unrecorded(NamedTuple):
    """A request of the trigger's size that no compaction came before, and no failed attempt."""

    at: int
    size: int
    trigger: RecordedTrigger


def conditions_at(log: ChainLog, at: int) -> ChainTurn:
    """Return the response whose model and window a request runs under: the one before it."""
    between = log.between[at]
    is_before = at == len(log.turns) or (bool(between.compactions) and at > 0)
    return log.turns[at - 1 if is_before else at]


def recorded_triggers(log: ChainLog) -> list[RecordedTrigger | None]:
    """Return the trigger of each request and of the chain's end; None: not known."""
    reported: dict[_Conditions, int] = {}
    for turn in reversed(log.turns):
        if turn.threshold is not None:
            reported[turn.model, turn.window] = turn.threshold
    learned = _learned(log)
    settings = read_settings(log.runtime, log.settings) if log.settings else None
    triggers: list[RecordedTrigger | None] = []
    for at in range(len(log.between)):
        turn = conditions_at(log, at)
        key = (turn.model, turn.window)
        threshold = turn.threshold or reported.get(key)
        point = (
            expected(settings, turn.model, turn.window, is_reported=False)
            if settings is not None and threshold is None
            else None
        )
        if threshold is not None:
            triggers.append(RecordedTrigger(threshold, "reported"))
        elif point is not None and point.tokens is not None and not point.estimated:
            triggers.append(RecordedTrigger(point.tokens, "settings"))
        elif key in learned:
            triggers.append(RecordedTrigger(learned[key], "learned"))
        else:
            triggers.append(None)
    return triggers


def _learned(log: ChainLog) -> dict[_Conditions, int]:
    known = known_growths(log)
    least: dict[_Conditions, int] = {}
    for at, between in enumerate(log.between[1:], 1):
        if not between.compactions or between.compactions[0].is_given:
            continue
        turn = conditions_at(log, at)
        key, size = (turn.model, turn.window), turn.used + known[at]
        least[key] = min(size, least.get(key, size))
    return least


def judge(log: ChainLog) -> tuple[list[Judged], list[Unrecorded]]:
    """Return each recorded compaction with its verdict, and where one is missing."""
    known, triggers = known_growths(log), recorded_triggers(log)
    judged: list[Judged] = []
    unrecorded: list[Unrecorded] = []
    earlier, is_reached, is_failed = 0, False, False
    for at, between in enumerate(log.between):
        trigger, size = triggers[at], log.turns[at - 1].used + known[at] if at else None
        is_failed |= between.has_failed_attempt
        for each in between.compactions:
            verdict = _verdict(each, size, trigger, is_reached=is_reached, is_failed=is_failed)
            judged.append(Judged(at, each, size or each.pre_tokens, trigger, earlier, verdict))
            size, earlier = None, 0
        if at == 0 or between.compactions or between.is_reset:
            earlier, is_reached, is_failed = 0, False, False
        elif at < len(log.turns) and size is not None:
            earlier = max(earlier, size)
            if trigger is not None and size >= trigger.tokens:
                if not (is_reached or is_failed):
                    unrecorded.append(Unrecorded(at, size, trigger))
                is_reached = True
    return judged, unrecorded


def _verdict(
    compaction: RecordedCompaction,
    size: int | None,
    trigger: RecordedTrigger | None,
    *,
    is_reached: bool,
    is_failed: bool,
) -> Verdict:
    if compaction.is_given:
        return "given"
    if size is None:
        return "no_response_before"
    if trigger is None or size < trigger.tokens:
        return "begun_below"
    if not is_reached:
        return "reproduced"
    return "attempt_failed" if is_failed else "begun_late"
