"""What recorded compactions left, wrote and took: the figures of those that were not recorded.

A figure is of the narrowest group that has enough of them: the chain, its runtime's sessions with
its model, all of its runtime, all. Enough are nine, else three; where none has so many, the widest.
"""

from collections.abc import Callable, Iterable, Sequence
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


class FactPool:
    """The compactions of many chains, from which each chain's facts are taken."""

    def __init__(self, logs: Iterable[ChainLog]) -> None:
        self._logs = list(logs)

    def of(self, log: ChainLog) -> CompactionFacts:
        """Return a chain's facts."""
        groups = self._groups(log)
        summary = _figures(groups, _written)
        own = next(
            (each for group, each in groups if summary is not None and group == summary.group), []
        )
        return CompactionFacts(
            _figures(groups, lambda each: each.tokens_after),
            _figures(groups, lambda each: each.duration_ms or None),
            summary,
            summary is not None
            and all(each.summary_output is not None or _written(each) is None for each in own),
            _prefix(log),
        )

    def _groups(self, log: ChainLog) -> list[tuple[Group, list[RecordedCompaction]]]:
        runtime = [each for each in self._logs if each.runtime == log.runtime]
        model = [each for each in runtime if each.model == log.model]
        members: list[tuple[Group, list[ChainLog]]] = [
            ("chain", [log]),
            ("model", model),
            ("runtime", runtime),
            ("all", self._logs),
        ]
        return [
            (group, [compaction for each in logs for compaction in each.compactions])
            for group, logs in members
        ]


def _written(compaction: RecordedCompaction) -> int | None:
    """Return the tokens of a summary: as its call reports, else by its text."""
    if compaction.summary_output is None:
        return compaction.summary_tokens
    return compaction.summary_output


def _figures(
    groups: Sequence[tuple[Group, list[RecordedCompaction]]],
    figure: Callable[[RecordedCompaction], int | None],
) -> Spread | None:
    spreads = [
        spread_of(values, group)
        for group, compactions in groups
        if (values := [value for each in compactions if (value := figure(each)) is not None])
    ]
    for enough in (_INTERVAL, _ENOUGH):
        for spread in spreads:
            if spread.size >= enough:
                return spread
    return max(spreads, key=lambda each: each.size, default=None)


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
