"""Aggregates of all partitions added up, with percentiles from their histograms.

Everything in them is a count, a sum, a smallest or a largest: adding partitions up gives what one
partition would have. The values themselves are not kept, so a percentile is told as the range that
it lies in: from edge to edge of its bucket, and never beyond the smallest and the largest value.
"""

import asyncio
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from schemas.records import Json
from schemas.views import (
    DURATION_EDGES_MS,
    HOUR_FIELD,
    MODEL_FIELD,
    OVER,
    PARTITION_FIELD,
    TOKEN_EDGES,
    TOTAL_FIELD,
    UNKNOWN_HOUR,
    UNKNOWN_MODEL_FIELD,
    Aggregates,
    Distribution,
    TriggerAggregates,
)
from streams import codec
from streams.codec import views as view_codec
from streams.ports import Clock
from streams.serve.api.answers import Raw
from streams.serve.api.snapshot import Moment

By: TypeAlias = Literal["hour", "model"]

Fields: TypeAlias = Sequence[Mapping[bytes, bytes]]
"""The fields of each partition's aggregates, as they are stored."""

Decode: TypeAlias = Callable[[int, bytes, bytes], Aggregates]
"""Reads a field of a partition."""

_PART: Final = 10
_MOST_S: Final = 5.0
"""An answer is kept for ten times as long as it took, so that it costs a tenth of the time at most,
and never longer than this."""

_MOST_KEPT: Final = 32
"""Answers kept of one moment: few ask for other hours than the rest."""

PERCENTILES: Final = (50, 95, 99)

UNKNOWN_MODEL: Final = "unknown"
"""The name of what no model is known of."""


class Totals:
    """Adds the partitions up, once for all that ask of the same moment.

    `read` gives the fields of all partitions' aggregates. One that did not change is not decoded
    again: of a year's hours it is the last one that does.
    """

    def __init__(self, read: Callable[[Moment], Awaitable[Fields]], clock: Clock) -> None:
        self._read, self._clock = read, clock
        self._moment: Moment | None = None
        self._until_s = 0.0
        self._decoded: dict[tuple[int, bytes], tuple[bytes, Aggregates]] = {}
        self._lock = asyncio.Lock()
        self._at: tuple[int, str, tuple[int, ...], bool] | None = None
        self._kept: dict[tuple[By, str | None], dict[str, Raw]] = {}

    def moment(self, now: Moment | None) -> Moment | None:
        """Return the moment to tell of: a former one where reading all the hours takes long."""
        kept, now_s = self._moment, self._clock.monotonic_s()
        if now is None or kept is None or now_s >= self._until_s or kept.kind != now.kind:
            self._moment = now
            return now
        return kept

    async def of(self, moment: Moment | None, by: By, since: str | None) -> Mapping[str, Raw]:
        """Return `total`, and `by` hour from `since` on, or by model; in order of their names.

        Raises RetryError, VersionError.
        """
        if moment is None:
            return _written(added_up((), by, since))
        async with self._lock:
            if self._at is None or self._at[:2] != moment.told[:2]:
                self._decoded.clear()
            if self._at != moment.told or len(self._kept) >= _MOST_KEPT:
                self._at, self._kept = moment.told, {}
            found = self._kept.get((by, since))
            if found is None:
                began_s = self._clock.monotonic_s()
                partitions = await self._read(moment)
                found = _written(added_up(partitions, by, since, self._of))
                self._forget_hours(partitions)
                now_s = self._clock.monotonic_s()
                self._until_s = now_s + min((now_s - began_s) * _PART, _MOST_S)
                self._kept[by, since] = found
            return found

    def _forget_hours(self, partitions: Fields) -> None:
        """Forget what is no longer there."""
        if len(self._decoded) > sum(map(len, partitions)):
            self._decoded = {
                (number, field): kept
                for (number, field), kept in self._decoded.items()
                if field in partitions[number]
            }

    def _of(self, partition: int, field: bytes, document: bytes) -> Aggregates:
        kept = self._decoded.get((partition, field))
        if kept is None or kept[0] != document:
            kept = (document, view_codec.decode(Aggregates, document))
            self._decoded[partition, field] = kept
        return kept[1]


def _written(members: Mapping[str, Json]) -> dict[str, Raw]:
    return {name: Raw(codec.dumps(member)) for name, member in members.items()}


def _decode(_partition: int, _field: bytes, document: bytes) -> Aggregates:
    return view_codec.decode(Aggregates, document)


def added_up(
    partitions: Fields, by: By, since: str | None = None, decode: Decode = _decode
) -> dict[str, Json]:
    """Return `total` and `by` of partitions' aggregates. Raises VersionError."""
    parts: dict[str | None, list[Aggregates]] = defaultdict(list)
    for number, fields in enumerate(partitions):
        for field, document in fields.items():
            name = field.decode("utf-8", "surrogatepass")
            told = _name(name, by)
            if name == TOTAL_FIELD:
                parts[None].append(decode(number, field, document))
            elif told is not None and _is_since(told, since):
                parts[told].append(decode(number, field, document))
    total: Json = shown(added(parts.pop(None, [])))
    each: dict[str, Json] = {str(name): shown(added(found)) for name, found in parts.items()}
    return {"total": total, "by": dict(sorted(each.items()))}


def _is_since(name: str, since: str | None) -> bool:
    return since is None or (name >= since and name != UNKNOWN_HOUR)


def _name(field: str, by: By) -> str | None:
    """Return the hour or the model that a field is of; None: it is of something else."""
    if field in (PARTITION_FIELD, TOTAL_FIELD):
        return None
    if by == "hour":
        return field.removeprefix(HOUR_FIELD) if field.startswith(HOUR_FIELD) else None
    if field == UNKNOWN_MODEL_FIELD:
        return UNKNOWN_MODEL
    return field.removeprefix(MODEL_FIELD) if field.startswith(MODEL_FIELD) else None


def added(parts: Iterable[Aggregates]) -> Aggregates:
    """Return the sum of aggregates."""
    kept = list(parts)
    return Aggregates(
        manual=_triggers([part.manual for part in kept]),
        automatic=_triggers([part.automatic for part in kept]),
        unknown_trigger=_triggers([part.unknown_trigger for part in kept]),
        pre_tokens=_distribution([part.pre_tokens for part in kept]),
        measured=sum(part.measured for part in kept),
        measured_before_tokens=sum(part.measured_before_tokens for part in kept),
        saved_tokens=sum(part.saved_tokens for part in kept),
        messages=sum(part.messages for part in kept),
    )


def _triggers(parts: list[TriggerAggregates]) -> TriggerAggregates:
    return TriggerAggregates(
        succeeded=sum(part.succeeded for part in parts),
        failed=sum(part.failed for part in parts),
        blocked=sum(part.blocked for part in parts),
        unknown=sum(part.unknown for part in parts),
        duration_ms=_distribution([part.duration_ms for part in parts]),
    )


def _distribution(parts: list[Distribution]) -> Distribution:
    buckets: dict[str, int] = defaultdict(int)
    for part in parts:
        for edge, count in part.buckets.items():
            buckets[edge] += count
    return Distribution(
        count=sum(part.count for part in parts),
        sum=sum(part.sum for part in parts),
        min=min((part.min for part in parts if part.min is not None), default=None),
        max=max((part.max for part in parts if part.max is not None), default=None),
        buckets=dict(sorted(buckets.items(), key=lambda item: _edge(item[0]))),
    )


def _edge(name: str) -> float:
    return float("inf") if name == OVER else int(name)


class Range(NamedTuple):
    """What is known of a value: it is neither less nor more than these."""

    at_least: int
    at_most: int


def percentile(found: Distribution, percent: int, edges: Sequence[int]) -> Range | None:
    """Return the range that a percentile lies in; None where nothing was counted.

    `edges` are those of the buckets. Where so many percent are a whole number of values, what lies
    between the last of them and the next one is the percentile: of two values, both.
    """
    if not found.count or found.min is None or found.max is None:
        return None
    whole, rest = divmod(found.count * percent, 100)
    first = whole + 1 if rest else max(whole, 1)
    second = min(whole + 1, found.count)
    low = _ranked(found, first, edges)
    high = low if second == first else _ranked(found, second, edges)
    return Range(low.at_least, high.at_most)


def _ranked(found: Distribution, rank: int, edges: Sequence[int]) -> Range:
    """Return the range that the value of a rank lies in, counted from 1 for the smallest."""
    assert found.min is not None  # noqa: S101 -- something was counted
    assert found.max is not None  # noqa: S101
    if rank == 1:
        return Range(found.min, found.min)
    if rank < found.count:
        seen = 0
        for name in sorted(found.buckets, key=_edge):
            seen += found.buckets[name]
            if seen >= rank:
                upper = found.max if name == OVER else int(name)
                index = len(edges) if name == OVER else bisect_left(edges, upper)
                lower = edges[index - 1] if index else 0
                return Range(max(lower, found.min), min(upper, found.max))
    return Range(found.max, found.max)


def shown(found: Aggregates) -> dict[str, Json]:
    """Return aggregates as the API tells them: with durations of all triggers, and percentiles."""
    triggers = {
        "manual": found.manual,
        "automatic": found.automatic,
        "unknown_trigger": found.unknown_trigger,
    }
    durations = _distribution([trigger.duration_ms for trigger in triggers.values()])
    return {
        "version": found.version,
        **{name: _trigger(trigger) for name, trigger in triggers.items()},
        "duration_ms": _with_percentiles(durations, DURATION_EDGES_MS),
        "pre_tokens": _with_percentiles(found.pre_tokens, TOKEN_EDGES),
        "measured": found.measured,
        "measured_before_tokens": found.measured_before_tokens,
        "saved_tokens": found.saved_tokens,
        "messages": found.messages,
    }


def _trigger(found: TriggerAggregates) -> dict[str, Json]:
    return {
        "succeeded": found.succeeded,
        "failed": found.failed,
        "blocked": found.blocked,
        "unknown": found.unknown,
        "duration_ms": _with_percentiles(found.duration_ms, DURATION_EDGES_MS),
    }


def _with_percentiles(found: Distribution, edges: Sequence[int]) -> dict[str, Json]:
    told: dict[str, Json] = {}
    for percent in PERCENTILES:
        value = percentile(found, percent, edges)
        told[f"p{percent}"] = None if value is None else dict(value._asdict())
    return {
        "count": found.count,
        "sum": found.sum,
        "min": found.min,
        "max": found.max,
        "buckets": dict(found.buckets),
        **told,
    }
