"""The fold of a local file, which takes over what other processes have folded."""

from collections.abc import Collection, Mapping

from schemas.views import (
    HOUR_FIELD,
    MODEL_FIELD,
    Aggregates,
    PartitionView,
)
from streams import codec
from streams.codec import view_codec
from streams.codec.aggregates import added
from streams.core.projection import statistics
from streams.core.times import later
from streams.flow.project.fold import PARTITION_KEY, Fold

_FOR_EVER_MS = 1 << 62
"""No session leaves for idleness: it is there as long as its transcript is."""


class LocalFold(Fold):
    """The documents of a local file that are in memory, and the aggregates of all sessions."""

    def __init__(self) -> None:
        super().__init__(strict=False, idle_ms=_FOR_EVER_MS)

    @property
    def partition(self) -> PartitionView:
        """The account of all records."""
        return self._partition

    def count_all(
        self, other: PartitionView, ahead_ms: Collection[int], counts: Mapping[str, Aggregates]
    ) -> dict[bytes, bytes | None]:
        """Count what another fold, of other sessions, counted; return the stats that changed.

        The result is as if their records had been added here, one after the other. `ahead_ms` are
        the times of records that were too far ahead of the other log's: here they may not be.
        """
        before, self._partition = self._partition, _together(self._partition, other, ahead_ms)
        newest_ms = self._partition.newest_ms
        stats: dict[bytes, bytes | None] = {}
        if statistics.enters_day(before.newest_ms, newest_ms):
            for name in statistics.hours_too_old(self._aggregates, newest_ms):
                del self._aggregates[name]
                stats[codec.key_bytes(name)] = None
        too_old = set(statistics.hours_too_old(counts, newest_ms))
        for counted, aggregates in counts.items():
            if counted in too_old:
                continue
            (name,) = statistics.models_capped((counted,), self._models)
            if name.startswith(MODEL_FIELD):
                self._models.add(name)
            known = self._aggregates.get(name)
            total = aggregates if known is None else added(Aggregates, (known, aggregates))
            self._aggregates[name] = total
            stats[codec.key_bytes(name)] = view_codec.encode(total)
        stats[PARTITION_KEY] = view_codec.encode(self._partition)
        return stats

    def is_too_old(self, field: bytes) -> bool:
        """Return whether a field of the aggregates is that of an hour that is counted no more."""
        oldest = statistics.oldest_hour_field(self._partition.newest_ms)
        return field.startswith(HOUR_FIELD.encode()) and field < oldest.encode()


def _together(
    before: PartitionView, other: PartitionView, ahead_ms: Collection[int]
) -> PartitionView:
    """Return the account of one fold's records followed by another's."""
    logged_ms, newest_ms = before.logged_ms, later(before.newest_ms, other.newest_ms)
    together_ms = later(logged_ms, other.logged_ms)
    if logged_ms is None:
        leaving = other.leaving
    else:
        leaving = statistics.enters_day(logged_ms, together_ms)
        latest_ms = logged_ms + statistics.CLOCK_AHEAD_MS
        in_time = max((each for each in ahead_ms if each <= latest_ms), default=None)
        newest_ms = later(newest_ms, in_time)
    return PartitionView(
        records=before.records + other.records,
        newest_ms=newest_ms,
        logged_ms=together_ms,
        leaving=before.leaving or leaving,
    )
