"""A chain's growth, replayed under another trigger.

The context grows by the recorded differences of requests. It is compacted before a request where
what was known then had the trigger's size or more: to the recorded size where a recorded compaction
was in the same place, else to what `after` says. A compaction whose position does not follow from a
trigger (`RecordedCompaction.is_given`), and a reset, come where they came.

Between two compactions lies at least one response; none is made that would leave no less (a
recorded one: of a context that is smaller than it was), and none where a recorded attempt failed.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from streams.core.whatif.turns import ChainLog, RecordedCompaction, growths, known_growths


class Kept(NamedTuple):
    """What a compaction left: the size of the next response, and the user's turns it kept.

    `has_call`: a model wrote its summary. `duration_ms` is its time; None: as recorded ones.
    """

    tokens: int
    has_call: bool = True
    pins_kept: int | None = None
    pins: int | None = None
    duration_ms: int | None = None


class After(Protocol):
    """Says what a compaction before a request leaves; None: not known."""

    def __call__(self, at: int, size: int) -> Kept | None:
        """Return it for the request `at`, which would have had `size` tokens."""


class ReplayedCompaction(NamedTuple):
    """A compaction before the response `at`, of a context that would have had `before` tokens.

    `previous` is the size of the response before it, 0 for none. `recorded` is the boundary that
    was in this place, None where there was none. `after` is None where no response follows it.
    """

    at: int
    previous: int
    before: int
    after: int | None
    recorded: RecordedCompaction | None
    kept: Kept | None = None


class GrowthPath(NamedTuple):
    """The sizes of a chain's responses under some trigger, and its compactions.

    `unknown_at` is the first request whose compaction left an unknown size; sizes end there.
    `futile` counts requests at which no compaction would have left less than the trigger.
    """

    sizes: tuple[int, ...]
    compactions: tuple[ReplayedCompaction, ...]
    unknown_at: int | None = None
    futile: int = 0


def recorded_path(log: ChainLog) -> GrowthPath:
    """Return the path as it was recorded."""
    grown = growths(log)
    compactions = []
    for at, between in enumerate(log.between):
        previous = log.turns[at - 1].used if at else 0
        after = log.turns[at].used if at < len(log.turns) else None
        for each in between.compactions:
            before = previous + grown[at] if at else each.pre_tokens or 0
            compactions.append(ReplayedCompaction(at, previous, before, after, each))
    return GrowthPath(tuple(turn.used for turn in log.turns), tuple(compactions))


def replay(
    log: ChainLog, triggers: Sequence[int | None], after: After, *, replaces: bool = False
) -> GrowthPath:
    """Return the path under other triggers: of each request, and of the end; None: no trigger.

    `replaces`: what recorded compactions left is replaced by what `after` says, too.
    """
    grown, known, steps = growths(log), known_growths(log), _Steps()
    steps.sizes.append(log.turns[0].used)
    steps.compactions += [
        ReplayedCompaction(0, 0, each.pre_tokens or 0, log.turns[0].used, each)
        for each in log.between[0].compactions
    ]
    for at, between in enumerate(log.between[1:], 1):
        recorded_size = log.turns[at].used if at < len(log.turns) else None
        given = any(each.is_given for each in between.compactions)
        size = max(0, steps.sizes[-1] + grown[at])
        if between.is_reset:
            steps.compact(at, size, recorded_size, between.compactions)
        elif given or _is_due(log, at, steps.sizes[-1] + known[at], triggers[at]):
            if between.compactions and not replaces:
                is_smaller = size < log.turns[at - 1].used + grown[at]
                if is_smaller and recorded_size is not None and recorded_size >= size:
                    steps.sizes.append(size)
                    steps.futile += not given
                else:
                    own = between.compactions if given else between.compactions[:1]
                    steps.compact(at, size, recorded_size, own)
                continue
            kept = after(at, size)
            if kept is None:
                return steps.path(at)
            steps.keep(at, size, kept, between.compactions[:1], is_last=recorded_size is None)
            steps.futile += kept.tokens >= (triggers[at] or size)
        elif recorded_size is not None:
            steps.sizes.append(size)
    return steps.path(None)


def _is_due(log: ChainLog, at: int, known: int, trigger: int | None) -> bool:
    """Return whether a compaction comes before a request; the end of a chain is no request."""
    between = log.between[at]
    if at == len(log.turns) and not between.compactions:
        return False
    if between.has_failed_attempt and not between.compactions:
        return False  # it was tried, and would fail again
    return trigger is not None and known >= trigger


class _Steps:
    """A path while it is made."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.compactions: list[ReplayedCompaction] = []
        self.futile = 0

    def compact(
        self,
        at: int,
        size: int,
        left: int | None,
        recorded: Sequence[RecordedCompaction],
    ) -> None:
        """Do what was recorded."""
        previous = self.sizes[-1]
        self.compactions += [
            ReplayedCompaction(at, previous, size, left, each) for each in recorded
        ]
        if left is not None:
            self.sizes.append(left)

    def keep(
        self,
        at: int,
        size: int,
        kept: Kept,
        recorded: Sequence[RecordedCompaction],
        *,
        is_last: bool,
    ) -> None:
        """Leave what a compaction keeps, unless that is no less."""
        left = None if is_last else kept.tokens
        if kept.tokens >= size:
            left = None if is_last else size
        else:
            own = recorded[0] if recorded else None
            self.compactions.append(ReplayedCompaction(at, self.sizes[-1], size, left, own, kept))
        if left is not None:
            self.sizes.append(left)

    def path(self, unknown_at: int | None) -> GrowthPath:
        """Return the path so far."""
        return GrowthPath(tuple(self.sizes), tuple(self.compactions), unknown_at, self.futile)
