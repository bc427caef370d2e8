"""What records say, for answers that are computed without SQL."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from itertools import groupby
from math import floor
from statistics import mean, median
from typing import Any, NamedTuple

from contextgauge.records import (
    CompactBoundary,
    CompactionComplete,
    CompactionFailed,
    CompactionStart,
    CompactionTiming,
    ContextReading,
    Record,
)

Row = tuple[Any, ...]
MINUTE_MS = 60_000


class WholeCompaction(NamedTuple):
    """A boundary with what other records add to it."""

    record: Record
    boundary: CompactBoundary
    start: CompactionStart | None
    complete: CompactionComplete | None
    duration_ms: int | None
    source: str | None

    @property
    def wait_ms(self) -> int | None:
        return None if self.source == "precomputed" else self.duration_ms

    @property
    def left(self) -> float | None:
        if self.complete is None or self.complete.tokens_after is None:
            return None
        before = self.complete.tokens_before
        return 100 * self.complete.tokens_after / before if before else None


def rounded(value: float | None, digits: int = 0) -> float | None:
    """Return the nearest number with so many decimals, as DuckDB does: a half goes up."""
    if value is None:
        return None
    return float(Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP))


def average(values: Iterable[float | None], digits: int = 0) -> float | None:
    known = [each for each in values if each is not None]
    return rounded(mean(known), digits) if known else None


def middle(values: Iterable[float | None], digits: int = 0) -> float | None:
    known = [each for each in values if each is not None]
    return rounded(median(known), digits) if known else None


def high(values: Iterable[float | None], share: float, digits: int = 0) -> float | None:
    known = sorted(each for each in values if each is not None)
    if not known:
        return None
    rank = share * (len(known) - 1)
    low = floor(rank)
    upper = known[min(low + 1, len(known) - 1)]
    return rounded(known[low] + (upper - known[low]) * (rank - low), digits)


def total(values: Iterable[float | None]) -> float | None:
    known = [each for each in values if each is not None]
    return sum(known) if known else None


def known(values: Iterable[object]) -> int:
    return sum(each is not None for each in values)


def day_of(record: Record) -> str | None:
    if record.time_ms is None:
        return None
    day = datetime.fromtimestamp(record.time_ms / 1_000, UTC)
    return f"{day.day} {day:%b %Y}"


def minute_of(record: Record) -> str:
    if record.time_ms is None:
        return "unknown"
    return f"{day_of(record)}, {datetime.fromtimestamp(record.time_ms / 1_000, UTC):%H:%M}"


def used_of(record: Record) -> int:
    assert isinstance(record.data, ContextReading)
    return record.data.used_tokens


def in_bins(
    values: Iterable[float | None], names: Sequence[str], ends: Sequence[float]
) -> Counter[str]:
    """Count values by bin; `ends` are those of all bins but the last."""
    counts: Counter[str] = Counter()
    for value in values:
        if value is not None:
            counts[names[sum(value >= end for end in ends)]] += 1
    return counts


def cached(records: Iterable[Record]) -> float | None:
    readings = [each.data for each in records if isinstance(each.data, ContextReading)]
    some = [each for each in readings if each.cache_read_tokens is not None]
    used = sum(each.used_tokens for each in some)
    return (
        rounded(100 * sum(each.cache_read_tokens or 0 for each in some) / used, 1) if used else None
    )


def groups(values: Iterable[Any], key: Callable[[Any], Any]) -> list[tuple[Any, list[Any]]]:
    ordered = sorted(values, key=lambda each: repr(key(each)))
    return [(name, list(group)) for name, group in groupby(ordered, key=key)]


class RecordFacts:
    """Records, with what several answers need of them."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.all = records
        self.own = [each for each in records if not each.data.inherited]
        starts = {each.id: each.data for each in records if isinstance(each.data, CompactionStart)}
        completes = {
            each.data.boundary_id: each.data
            for each in records
            if isinstance(each.data, CompactionComplete)
        }
        timings = {
            each.data.boundary_id: each.data
            for each in records
            if isinstance(each.data, CompactionTiming)
        }
        self.compactions: list[WholeCompaction] = []
        for record in self.own:
            data = record.data
            if isinstance(data, CompactBoundary):
                timing = timings.get(record.id)
                late = data.duration_ms is None and timing is not None
                self.compactions.append(
                    WholeCompaction(
                        record,
                        data,
                        starts.get(data.attempt_id or ""),
                        completes.get(record.id),
                        timing.duration_ms if late and timing else data.duration_ms,
                        timing.duration_source if late and timing else data.duration_source,
                    )
                )
        self.readings = [
            (each, each.data) for each in self.own if isinstance(each.data, ContextReading)
        ]
        self.chains: dict[tuple[str, str], list[Record]] = defaultdict(list)
        for record in sorted(self.own, key=lambda each: each.sequence):
            self.chains[record.data.session_id, record.data.chain].append(record)

    def outputs(self) -> dict[str, int | None]:
        """Return each response's output: its own, or what the next reading has of it."""
        outputs: dict[str, int | None] = {}
        for records in self.chains.values():
            readings = [each for each in records if isinstance(each.data, ContextReading)]
            for one, following in zip(readings, [*readings[1:], None], strict=True):
                own = one.data.output_tokens  # type: ignore[union-attr]
                late = following.data.previous_output_tokens if following else None  # type: ignore[union-attr]
                outputs[one.id] = late if own is None else own
        return outputs

    def fullest(self) -> dict[str, tuple[float | None, str]]:
        """Return each main chain's most percent used, and its window's source at that moment."""
        fullest: dict[str, tuple[float | None, str]] = {}
        for (session, chain), records in self.chains.items():
            readings = [each.data for each in records if isinstance(each.data, ContextReading)]
            if chain == "main" and readings:
                known = [each for each in readings if each.used_percent is not None]
                most = max(known, key=lambda each: each.used_percent or 0, default=None)
                fullest[session] = (most.used_percent, most.window_source) if most else (None, "")
        return fullest

    def attempts(self) -> list[tuple[str | None, str, int | None, str | None, Record]]:
        """Return attempts: outcome, session, duration, error, and the record that begins one."""
        ends: dict[str, Record] = {}
        attempts: list[tuple[str | None, str, int | None, str | None, Record]] = []
        for record in self.all:
            if (
                isinstance(record.data, CompactBoundary | CompactionFailed)
                and record.data.attempt_id
            ):
                ends[record.data.attempt_id] = record
        for record in self.own:
            data = record.data
            if isinstance(data, CompactionStart):
                end = ends.get(record.id)
                outcome: str | None = None
                error: str | None = None
                duration: int | None = None
                if end is not None:
                    closed = end.data
                    duration = closed.duration_ms  # type: ignore[union-attr]
                    if isinstance(closed, CompactionFailed):
                        outcome, error = closed.outcome, closed.error
                    else:
                        outcome = "succeeded"
                attempts.append((outcome, data.session_id, duration, error, record))
            elif isinstance(data, CompactionFailed) and data.attempt_id is None:
                attempts.append(
                    (data.outcome, data.session_id, data.duration_ms, data.error, record)
                )
        return attempts
