"""The aggregates of all partitions added up, with percentiles from their histograms.

They consist of counts, sums, minima and maxima: adding partitions up gives what one partition would
have. The values themselves are stored only while they are few, besides counts by bucket: else a
percentile is off by up to 2 %, the width of a bucket; the smallest and the largest value are exact.
"""

import dataclasses
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, Final, Literal, TypeAlias

from contextgauge.distributions import mean
from schemas.records import Json
from schemas.views import (
    BUCKET_EDGES,
    HOUR_FIELD,
    MODEL_FIELD,
    PARTITION_FIELD,
    TOTAL_FIELD,
    UNKNOWN_MODEL_FIELD,
    Aggregates,
    Distribution,
    TriggerAggregates,
)
from streams import codec
from streams.codec import Encoded, view_codec
from streams.codec.aggregates import added, added_distributions
from streams.ports import Clock
from streams.serve.api.answers import SharedCache, tag
from streams.serve.views.snapshot import NOTHING_YET, Snapshot

By: TypeAlias = Literal["hour", "model"]

Fields: TypeAlias = Sequence[Mapping[bytes, bytes]]
"""The fields of each partition's aggregates, as they are stored."""

_PART: Final = 10
_MOST_S: Final = 5.0
"""An answer is cached for ten times as long as it took, so that it costs a tenth of the time at
most, and never longer than this."""

PERCENTILES: Final = (50, 95, 99)

UNKNOWN_MODEL: Final = "unknown"
"""The name for compactions whose model is unknown."""


class Totals:
    """Adds the partitions up, once for all requests of the same snapshot.

    `read` returns the fields of all partitions' aggregates. Those that have not changed are not
    decoded again: of a year's hours, only the last one changes.
    """

    def __init__(self, read: Callable[[Snapshot], Awaitable[Fields]], clock: Clock) -> None:
        self._read, self._clock = read, clock
        self._snapshot = NOTHING_YET
        self._until_s = 0.0
        self._decoded: dict[bytes, Aggregates] = {}
        self._answers: SharedCache[dict[str, Encoded]] = SharedCache()

    def current(self, now: Snapshot) -> Snapshot:
        """Return the snapshot to answer from: a former one where reading all the hours is slow."""
        if self._clock.monotonic_s() >= self._until_s or self._snapshot.version != now.version:
            self._snapshot = now
        return self._snapshot

    async def of(self, snapshot: Snapshot, by: By, since: str | None) -> Mapping[str, Encoded]:
        """Return `total`, and `by` hour from `since` on, or by model; in order of their names.

        Raises RetryError, VersionError.
        """
        make = partial(self._read_totals, snapshot, by, since)
        return await self._answers.get_or_make(tag(snapshot.position, by, since), make)

    async def _read_totals(
        self, snapshot: Snapshot, by: By, since: str | None
    ) -> tuple[dict[str, Encoded], int]:
        began_s = self._clock.monotonic_s()
        partitions = await self._read(snapshot)
        totals = added_up(partitions, by, since, self._decode)
        members = {name: codec.dumps(member) for name, member in totals.items()}
        self._forget_former(partitions)
        now_s = self._clock.monotonic_s()
        self._until_s = now_s + min((now_s - began_s) * _PART, _MOST_S)
        fragments = {name: Encoded(document) for name, document in members.items()}
        return fragments, sum(map(len, members.values()))

    def _forget_former(self, partitions: Fields) -> None:
        """Forget documents that are no longer in the aggregates."""
        if len(self._decoded) > sum(map(len, partitions)):
            stored = {document for fields in partitions for document in fields.values()}
            for document in self._decoded.keys() - stored:
                del self._decoded[document]

    def _decode(self, document: bytes) -> Aggregates:
        if document not in self._decoded:
            self._decoded[document] = view_codec.decode(Aggregates, document)
        return self._decoded[document]


_decoded = partial(view_codec.decode, Aggregates)


def added_up(
    partitions: Fields,
    by: By,
    since: str | None = None,
    decode: Callable[[bytes], Aggregates] = _decoded,
) -> dict[str, Json]:
    """Return `total` and `by` of partitions' aggregates. Raises VersionError."""
    parts: dict[str | None, list[Aggregates]] = defaultdict(list)
    for fields in partitions:
        for field, document in fields.items():
            name = field.decode("utf-8", "surrogatepass")
            part = _name(name, by)
            if name == TOTAL_FIELD:
                parts[None].append(decode(document))
            elif part is not None and _is_since(part, since):
                parts[part].append(decode(document))
    total: Json = shown(added(Aggregates, parts.pop(None, [])))
    each: dict[str, Json] = {
        str(name): shown(added(Aggregates, some)) for name, some in parts.items()
    }
    return {"total": total, "by": dict(sorted(each.items()))}


def _is_since(name: str, since: str | None) -> bool:
    return since is None or name >= since  # `unknown` is greater than any hour


def _name(field: str, by: By) -> str | None:
    """Return the hour or the model of a field; None for other fields."""
    if field in (PARTITION_FIELD, TOTAL_FIELD):
        return None
    if by == "hour":
        return field.removeprefix(HOUR_FIELD) if field.startswith(HOUR_FIELD) else None
    if field == UNKNOWN_MODEL_FIELD:
        return UNKNOWN_MODEL
    return field.removeprefix(MODEL_FIELD) if field.startswith(MODEL_FIELD) else None


def percentile(distribution: Distribution, percent: int) -> int | None:
    """Return a percentile, off by at most 2 %; None where nothing was counted.

    Where so many percent are a whole number of values, it is the mean of the last of them and the
    next one, floored: the median of two values is between them.
    """
    if not distribution.count:
        return None
    first, second = _ranks(distribution, percent)
    return (_ranked(distribution, first) + _ranked(distribution, second)) // 2


def _is_exact(distribution: Distribution, percent: int) -> bool:
    """Return whether a percentile is of known values only."""
    ends = {1, distribution.count}
    return distribution.values is not None or ends.issuperset(_ranks(distribution, percent))


def _ranks(distribution: Distribution, percent: int) -> tuple[int, int]:
    """Return the ranks of the two values, or of the one, that a percentile is the mean of."""
    whole, rest = divmod(distribution.count * percent, 100)
    first = whole + 1 if rest else max(whole, 1)
    return first, min(whole + 1, distribution.count)


def _ranked(distribution: Distribution, rank: int) -> int:
    """Return the value of a rank, counted from 1 for the smallest."""
    assert distribution.min is not None  # noqa: S101 -- something was counted
    assert distribution.max is not None  # noqa: S101
    if distribution.values is not None:
        return distribution.values[rank - 1]
    if rank == 1:
        return distribution.min
    if rank == distribution.count:
        return distribution.max
    uppers = sorted(map(int, distribution.buckets))
    ranks = accumulate(distribution.buckets[str(upper)] for upper in uppers)
    upper = next(upper for upper, last in zip(uppers, ranks, strict=True) if last >= rank)
    return min(max(_middle(upper), distribution.min), distribution.max)


def _middle(upper: int) -> int:
    """Return what stands for a bucket: 2 % above its lowest value, so 2 % below its highest."""
    index = bisect_left(BUCKET_EDGES, upper)
    lowest = BUCKET_EDGES[index - 1] + 1 if index else 0
    return min(lowest * 51 // 50, upper)


def shown(counted: Aggregates | TriggerAggregates) -> dict[str, Json]:
    """Return aggregates as the API has them: with the sums over triggers, means and percentiles."""
    members = _members(counted)
    triggers = [value for value in members.values() if isinstance(value, TriggerAggregates)]
    if triggers:
        members["duration_ms"] = added_distributions([trigger.duration_ms for trigger in triggers])
        members["pre_tokens"] = added_distributions([trigger.pre_tokens for trigger in triggers])
    for name, value in members.items():
        if isinstance(value, TriggerAggregates):
            members[name] = shown(value)
        elif isinstance(value, Distribution):
            members[name] = _with_figures(value)
    return members


def _with_figures(distribution: Distribution) -> dict[str, Json]:
    members = _members(distribution)
    members["mean"] = mean(distribution.sum, distribution.count) if distribution.count else None
    for percent in PERCENTILES:
        members[f"p{percent}"] = percentile(distribution, percent)
    is_counted = distribution.count > 0
    members["exact"] = [
        each for each in PERCENTILES if is_counted and _is_exact(distribution, each)
    ]
    return members


def _members(counted: Aggregates | TriggerAggregates | Distribution) -> dict[str, Any]:
    return {each.name: getattr(counted, each.name) for each in dataclasses.fields(counted)}
