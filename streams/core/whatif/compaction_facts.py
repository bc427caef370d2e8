"""What recorded compactions left, wrote and took: the figures of those that were not recorded.

A figure is of the narrowest group that has enough of them: the chain, its runtime's sessions with
its model, all of its runtime, all. Enough are nine, else three; where none has so many, the widest.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import median_low
from typing import Final, Literal, NamedTuple, TypeAlias

from streams.core.whatif.turns import ChainLog, RecordedCompaction

Group: TypeAlias = Literal["chain", "model", "runtime", "all"]

Level: TypeAlias = Literal["low", "high"]

_ENOUGH: Final = 3
"""A median of fewer is one of them."""

_INTERVAL: Final = 9
"""The next of n values lies between the least and the largest of them with a probability of
(n - 1) / (n + 1): 80 % for nine. With more, the interval is of these 80 %."""

_DOUBT: Final = 2
"""With fewer than nine, the interval is widened by this factor on both sides."""


class Spread(NamedTuple):
    """The median of `size` recorded figures, and where eight of ten of the next ones lie."""

    low: int
    middle: int
    high: int
    size: int
    group: Group


class CompactionFacts(NamedTuple):
    """What a compaction of a chain leaves, takes and writes, as far as recorded ones show.

    `after` is the size of the response that follows it, tokens; `duration_ms` its time; `summary`
    the tokens of its summary. `is_summary_measured`: calls reported all of them; else some are
    estimates from the texts. `prefix` is what the response after a compaction still reads from the
    cache.
    """

    after: Spread | None
    duration_ms: Spread | None
    summary: Spread | None
    is_summary_measured: bool
    prefix: int

    def at(self, level: Level) -> "CompactionFacts":
        """Return facts whose medians are the least or the most that is likely."""
        after, summary = (
            None if each is None else each._replace(middle=getattr(each, level))
            for each in (self.after, self.summary)
        )
        return self._replace(after=after, summary=summary)


def spread_of(values: Sequence[int], group: Group) -> Spread:
    """Return the spread of at least one value."""
    ordered = sorted(values)
    count = len(ordered)
    if count < _INTERVAL:
        low, high = ordered[0] // _DOUBT, ordered[-1] * _DOUBT
    else:
        tenth = (count - _INTERVAL) // 10
        low, high = ordered[tenth], ordered[-1 - tenth]
    return Spread(low, median_low(ordered), high, count, group)


class _GroupFacts(NamedTuple):
    """The spreads of one group's compactions, and whether calls reported all of its summaries."""

    after: Spread | None
    duration_ms: Spread | None
    summary: Spread | None
    is_summary_measured: bool


_Key: TypeAlias = tuple[Group, str | None, str | None]


class FactPool:
    """The compactions of many chains, from which each chain's facts are taken.

    What several chains share is computed once: a pool of any size is read in linear time.
    """

    def __init__(self, logs: Iterable[ChainLog]) -> None:
        members: dict[_Key, list[RecordedCompaction]] = defaultdict(list)
        for log in logs:
            own = log.compactions
            for key in _shared(log):
                members[key] += own
        self._groups = {key: _group_facts(own, key[0]) for key, own in members.items()}

    def of(self, log: ChainLog) -> CompactionFacts:
        """Return the facts of a chain of the pool."""
        groups = [_group_facts(log.compactions, "chain")]
        groups += [self._groups[key] for key in _shared(log)]
        summary = _narrowest(each.summary for each in groups)
        return CompactionFacts(
            _narrowest(each.after for each in groups),
            _narrowest(each.duration_ms for each in groups),
            summary,
            any(each.summary is summary and each.is_summary_measured for each in groups),
            _prefix(log),
        )


def _shared(log: ChainLog) -> tuple[_Key, ...]:
    """Return the groups that a chain shares with others, the narrowest first."""
    return ("model", log.runtime, log.model), ("runtime", log.runtime, None), ("all", None, None)


def _group_facts(compactions: Sequence[RecordedCompaction], group: Group) -> _GroupFacts:
    written = [each for each in compactions if _written(each) is not None]
    return _GroupFacts(
        _spread([each.tokens_after for each in compactions], group),
        _spread([each.duration_ms or None for each in compactions], group),
        _spread([_written(each) for each in written], group),
        bool(written) and all(each.summary_output is not None for each in written),
    )


def _written(compaction: RecordedCompaction) -> int | None:
    """Return the tokens of a summary: as its call reports, else by its text."""
    if compaction.summary_output is None:
        return compaction.summary_tokens
    return compaction.summary_output


def _spread(values: Iterable[int | None], group: Group) -> Spread | None:
    known = [each for each in values if each is not None]
    return spread_of(known, group) if known else None


def _narrowest(spreads: Iterable[Spread | None]) -> Spread | None:
    """Return the spread of the narrowest group with enough figures, else of the most."""
    known = [each for each in spreads if each is not None]
    for enough in (_INTERVAL, _ENOUGH):
        for spread in known:
            if spread.size >= enough:
                return spread
    return max(known, key=lambda each: each.size, default=None)


def _prefix(log: ChainLog) -> int:
    """Return what is read from the cache although the conversation before it is another one.

    That is system prompt and tools: the median read of responses after a boundary, else the least
    that any response read.
    """
    after = [
        turn.read
        for turn, between in zip(log.turns, log.between, strict=False)
        if between.compactions
    ]
    return median_low(after) if after else min(turn.read for turn in log.turns)
