"""Adds stored aggregates up: of partitions for a reader, of sessions where one leaves."""

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from schemas.views import Aggregates, Distribution, TriggerAggregates, few_values

_Counted = TypeVar("_Counted", Aggregates, TriggerAggregates)


def added(kind: type[_Counted], parts: Sequence[_Counted]) -> _Counted:
    """Return the sum of aggregates of one kind, field by field."""
    add: dict[object, Callable[[list[Any]], Any]] = {
        int: sum,
        Distribution: added_distributions,
        TriggerAggregates: partial(added, TriggerAggregates),
    }
    return kind(
        **{
            each.name: add[each.type]([getattr(part, each.name) for part in parts])
            for each in dataclasses.fields(kind)
            if each.name != "version"
        }
    )


def added_distributions(parts: Sequence[Distribution]) -> Distribution:
    """Return the sum of distributions."""
    buckets: dict[str, int] = defaultdict(int)
    for part in parts:
        for edge, count in part.buckets.items():
            buckets[edge] += count
    return Distribution(
        count=sum(part.count for part in parts),
        sum=sum(part.sum for part in parts),
        min=min((part.min for part in parts if part.min is not None), default=None),
        max=max((part.max for part in parts if part.max is not None), default=None),
        buckets=dict(sorted(buckets.items(), key=lambda item: int(item[0]))),
        values=few_values(parts),
    )
