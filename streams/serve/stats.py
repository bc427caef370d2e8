"""The aggregates of all partitions, added up: counts are integers, so the order is all the same."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from schemas.views import (
    HOUR_FIELD,
    MODEL_FIELD,
    TOTAL_FIELD,
    UNTOLD_MODEL_FIELD,
    Aggregates,
    Distribution,
    TriggerAggregates,
)
from streams.edge import view_codec

_NOTHING = Aggregates()


class Stats(NamedTuple):
    """Compactions in all, by hour (UTC, `2026-02-11T20`, or `unknown`) and by model (or None)."""

    total: Aggregates
    by_hour: dict[str, Aggregates]
    by_model: dict[str | None, Aggregates]


def add_up(partitions: Iterable[Mapping[bytes, bytes]]) -> Stats:
    """Return the sum of the partitions' stats. Raises VersionError."""
    total = _NOTHING
    by_hour: dict[str, Aggregates] = {}
    by_model: dict[str | None, Aggregates] = {}
    for stats in partitions:
        for field, document in stats.items():
            name = field.decode("utf-8", "surrogatepass")
            if name == TOTAL_FIELD:
                total = add(total, view_codec.decode(Aggregates, document))
            elif name.startswith(HOUR_FIELD):
                hour = name.removeprefix(HOUR_FIELD)
                found = view_codec.decode(Aggregates, document)
                by_hour[hour] = add(by_hour.get(hour, _NOTHING), found)
            elif name.startswith(MODEL_FIELD) or name == UNTOLD_MODEL_FIELD:
                told = name.startswith(MODEL_FIELD)
                model = name.removeprefix(MODEL_FIELD) if told else None
                found = view_codec.decode(Aggregates, document)
                by_model[model] = add(by_model.get(model, _NOTHING), found)
    return Stats(total, dict(sorted(by_hour.items())), by_model)


def add(one: Aggregates, other: Aggregates) -> Aggregates:
    """Return the sum of two."""
    return Aggregates(
        manual=_add_trigger(one.manual, other.manual),
        automatic=_add_trigger(one.automatic, other.automatic),
        untold=_add_trigger(one.untold, other.untold),
        pre_tokens=_add_distribution(one.pre_tokens, other.pre_tokens),
        measured=one.measured + other.measured,
        measured_before_tokens=one.measured_before_tokens + other.measured_before_tokens,
        saved_tokens=one.saved_tokens + other.saved_tokens,
        messages=one.messages + other.messages,
    )


def _add_trigger(one: TriggerAggregates, other: TriggerAggregates) -> TriggerAggregates:
    return TriggerAggregates(
        succeeded=one.succeeded + other.succeeded,
        failed=one.failed + other.failed,
        blocked=one.blocked + other.blocked,
        unknown=one.unknown + other.unknown,
        duration_ms=_add_distribution(one.duration_ms, other.duration_ms),
    )


def _add_distribution(one: Distribution, other: Distribution) -> Distribution:
    least = [part.min for part in (one, other) if part.min is not None]
    greatest = [part.max for part in (one, other) if part.max is not None]
    return Distribution(
        count=one.count + other.count,
        sum=one.sum + other.sum,
        min=min(least, default=None),
        max=max(greatest, default=None),
        buckets=dict(Counter(one.buckets) + Counter(other.buckets)),
    )
