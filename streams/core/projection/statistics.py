"""The aggregates of a partition: compactions counted in all, by hour and by model.

Pure: each function returns the new absolute value. Integers only, so that adding partitions up
in any order gives the same figures.
"""

from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from typing import Any, TypeVar

from contextgauge.frozen import maker, replace
from schemas.records import (
    CompactBoundary,
    CompactionComplete,
    CompactionFailed,
    CompactionTiming,
    ContextReading,
    Record,
    Trigger,
)
from schemas.topics import DAY_MS
from schemas.views import (
    HOUR_FIELD,
    HOURS_KEPT_MS,
    MAX_MODELS,
    MODEL_FIELD,
    OTHER_MODELS_FIELD,
    TOTAL_FIELD,
    UNKNOWN_HOUR,
    UNKNOWN_MODEL_FIELD,
    Aggregates,
    Distribution,
    PartitionView,
    SessionView,
    TriggerAggregates,
    UntimedCompaction,
    bucket,
    few_values,
)
from streams.core.projection.project import COUNTED_AS, attempted_trigger, awaits
from streams.core.times import later

Counts = TypeVar("Counts", Aggregates, TriggerAggregates)

_partition_view = maker(PartitionView)

CLOCK_AHEAD_MS = DAY_MS
"""A time further ahead of the log's own than this is a wrong clock's: it ages no hour."""


def advance(partition: PartitionView, record: Record, logged_ms: int | None) -> PartitionView:
    """Return the partition's own account after a record with this Kafka timestamp.

    Idle sessions begin to leave when the log's time enters a new day: a point that the log
    itself sets, so every way of reading it gives the same views.
    """
    before_ms, time_ms = partition.logged_ms, record.time_ms
    logged = later(before_ms, logged_ms)
    if time_ms is not None and logged is not None and time_ms > logged + CLOCK_AHEAD_MS:
        time_ms = None
    return _partition_view(
        records=partition.records + 1,
        newest_ms=partition.newest_ms if time_ms is None else later(partition.newest_ms, time_ms),
        logged_ms=logged,
        leaving=partition.leaving or enters_day(before_ms, logged),
    )


def enters_day(before_ms: int | None, after_ms: int | None) -> bool:
    """Return whether time went into another day (UTC)."""
    if before_ms is None or after_ms is None:
        return False
    return after_ms // DAY_MS > before_ms // DAY_MS


def fields(record: Record, view: SessionView | None, newest_ms: int | None) -> tuple[str, ...]:
    """Return the fields of the aggregates that the record is counted in; none: it is not counted.

    `view` is the session's before the record: a timing is counted where its boundary was. An hour
    that is too old to be kept is not begun again.
    """
    if type(record.data) is ContextReading or record.data.inherited:
        return ()  # most are readings; what is inherited counts where it was done (R30)
    match record.data:
        case CompactBoundary() | CompactionComplete() | CompactionFailed():
            model, time_ms = record.data.model, record.time_ms
        case CompactionTiming():
            untimed = _untimed(view, record.data)
            if untimed is None:
                return ()
            model, time_ms = untimed.model, untimed.time_ms
        case _:
            return ()
    by_model = UNKNOWN_MODEL_FIELD if model is None else MODEL_FIELD + model
    hour = hour_field(time_ms)
    too_old = time_ms is not None and hour < oldest_hour_field(newest_ms)
    return (TOTAL_FIELD, by_model) if too_old else (TOTAL_FIELD, by_model, hour)


def models_capped(names: tuple[str, ...], known: Collection[str]) -> tuple[str, ...]:
    """Return the fields with `other` in place of a model that is one too many for those known."""
    if not names or len(known) < MAX_MODELS:
        return names
    return tuple(
        OTHER_MODELS_FIELD if name.startswith(MODEL_FIELD) and name not in known else name
        for name in names
    )


def _untimed(view: SessionView | None, data: CompactionTiming) -> UntimedCompaction | None:
    """Return the compaction that a timing is of, if it waits for one."""
    chain = None if view is None else view.chains.get(data.chain)
    return chain.untimed if chain is not None and awaits(chain, data) else None


def hour_field(time_ms: int | None) -> str:
    """Return the field of an hour; fields sort as the hours do."""
    if time_ms is None:
        return HOUR_FIELD + UNKNOWN_HOUR
    return HOUR_FIELD + f"{datetime.fromtimestamp(time_ms // 1000, UTC):%Y-%m-%dT%H}"


def oldest_hour_field(newest_ms: int | None) -> str:
    """Return the field of the oldest hour that is kept: 400 days before the newest day."""
    if newest_ms is None or newest_ms < HOURS_KEPT_MS:
        return HOUR_FIELD
    return hour_field(newest_ms // DAY_MS * DAY_MS - HOURS_KEPT_MS)


def hours_too_old(known: Iterable[str], newest_ms: int | None) -> list[str]:
    """Return the fields of hours that leave; `unknown` sorts last and stays."""
    oldest = oldest_hour_field(newest_ms)
    return [name for name in known if name.startswith(HOUR_FIELD) and name < oldest]


def counted(before: Aggregates, record: Record, view: SessionView | None) -> Aggregates:
    """Return the aggregates with a record counted; `view` is the session's before it."""
    data = record.data
    match data:
        case CompactBoundary():
            name, counts = _of_trigger(before, data.trigger)
            # A size that an idle session had is not a size that compactions begin at (R33).
            is_point = data.trigger != "auto" or data.idle_ms is None
            counts = replace(
                counts,
                succeeded=counts.succeeded + 1,
                duration_ms=_add(counts.duration_ms, _waited_ms(data)),
                pre_tokens=_add(counts.pre_tokens, data.pre_tokens if is_point else None),
            )
            messages = before.messages + data.messages_since_last
            return replace(_with(before, name, counts), messages=messages)
        case CompactionFailed():
            attempt = None if view is None else view.attempt
            name, counts = _of_trigger(before, attempted_trigger(attempt))
            failed = _with(counts, data.outcome, getattr(counts, data.outcome) + 1)
            return _with(before, name, failed)
        case CompactionTiming() if untimed := _untimed(view, data):
            name, counts = _of_trigger(before, untimed.trigger)
            lasted = _add(counts.duration_ms, _waited_ms(data))
            return _with(before, name, replace(counts, duration_ms=lasted))
        case CompactionComplete(tokens_before=int(size), tokens_saved=int(saved)):
            return replace(
                before,
                measured=before.measured + 1,
                measured_before_tokens=before.measured_before_tokens + size,
                saved_tokens=before.saved_tokens + saved,
            )
        case _:
            return before


def _waited_ms(data: CompactBoundary | CompactionTiming) -> int | None:
    """Return a duration that someone waited for: that of a precomputed summary is none."""
    return None if data.duration_source == "precomputed" else data.duration_ms


def _of_trigger(aggregates: Aggregates, trigger: Trigger | None) -> tuple[str, TriggerAggregates]:
    """Return the field of a trigger's counts, and these."""
    name = COUNTED_AS[trigger]
    return name, getattr(aggregates, name)


def _with(counts: Counts, name: str, value: object) -> Counts:
    changed: dict[str, Any] = {name: value}
    return replace(counts, **changed)


def _add(before: Distribution, value: int | None) -> Distribution:
    if value is None:
        return before
    name = bucket(value)
    return Distribution(
        count=before.count + 1,
        sum=before.sum + value,
        min=value if before.min is None else min(before.min, value),
        max=value if before.max is None else max(before.max, value),
        buckets={**before.buckets, name: before.buckets.get(name, 0) + 1},
        values=few_values([before, Distribution(count=1, values=(value,))]),
    )
