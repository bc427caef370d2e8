"""Notices while a worker runs that one of its topics was deleted, recreated or given partitions.

A worker without new messages would not: its group gives it an empty assignment, or its reader
waits at an offset of the former topic. Partitions of a topic that it does not read would be seen by
no one.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import count
from types import MappingProxyType
from uuid import UUID

import structlog

from contextgauge.errors import RetryError
from streams.ports import Clock, Log

LOOK_S = 5.0
"""One small request each time."""

_COUNTED_LOOKS = 6
"""Partitions are counted with every so many looks: the answer lists all topics of the cluster."""

_MISSING_LOOKS = 3
"""A broker that has just started may not know all topics yet."""

logger = structlog.get_logger()


class TopicLooks:
    """The looks at the topics' ids that found the known ones."""

    def __init__(self) -> None:
        self.confirmed_s = -math.inf
        """When the last of them began: the topics were still the same then."""


async def watch_topics(
    log: Log,
    clock: Clock,
    topics: Sequence[str],
    first_known: Mapping[str, UUID | None] = MappingProxyType({}),
    looks: TopicLooks | None = None,
) -> None:
    """Run until a topic is missing, another one, or has other partitions: then raise RetryError.

    `first_known` are the ids that the worker began with, where it asked for them. The next
    membership examines the topics, and says what to do. A broker that is away, or too old to have
    topic ids, is none of this watch's business.
    """
    ids: Mapping[str, UUID | None]
    counted: Mapping[str, int | None]
    known = {topic: each for topic, each in first_known.items() if each is not None}
    counts: dict[str, int] = {}
    missing = dict.fromkeys(topics, 0)
    for look in count():
        ids, counted = known, counts
        began_s, has_looked = clock.monotonic_s(), False
        try:
            if look % _COUNTED_LOOKS == 0:
                counted = await log.partition_counts(topics)
            ids = await log.topic_ids(topics)
            has_looked = True
        except RetryError as error:
            logger.debug("topics not watched", error=str(error))
        for topic, before in counts.items():
            if counted[topic] not in {before, None}:
                raise RetryError(f"{topic} has {counted[topic]} partitions now, {before} before")
        counts |= {topic: found for topic, found in counted.items() if found is not None}
        for topic, former in known.items():
            current = ids[topic]
            missing[topic] = 0 if current is not None else missing[topic] + 1
            if current is not None and current != former:
                raise RetryError(f"the topic {topic} was deleted and created again")
            if missing[topic] == _MISSING_LOOKS:
                raise RetryError(f"the topic {topic} is missing: it was deleted")
        known |= {topic: new for topic, new in ids.items() if new is not None}
        if looks is not None and has_looked and not any(missing.values()):
            looks.confirmed_s = began_s
        await clock.sleep(LOOK_S)
