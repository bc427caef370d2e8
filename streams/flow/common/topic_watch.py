"""Notices while a worker runs that one of its topics was deleted, recreated or given partitions.

A worker without new messages would not: its group gives it an empty assignment, or its reader
waits at an offset of the former topic. Partitions of a topic that it does not read would be seen by
no one.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import count
from typing import NamedTuple
from uuid import UUID

import structlog

from contextgauge.errors import ConfigError, RetryError
from streams.ports import Clock, Log, LogPlace, id_text

LOOK_S = 5.0
"""One small request each time."""

AGAIN_S = 1.0
"""After a look that failed: a connection may end at any time, and only a broker that does not
answer the next one either is away."""

_COUNTED_LOOKS = 6
"""Partitions are counted with every so many looks: the answer lists all topics of the cluster."""

_MISSING_LOOKS = 3
"""A broker that has just started may not know all topics yet."""

_FIRST_LOOKS = 20
_FIRST_LOOK_S = 0.25
"""A topic that was just created is not known to each broker yet: five seconds are long for that."""

logger = structlog.get_logger()


class KnownTopic(NamedTuple):
    """A topic as a worker begins with it. `id` is empty where the broker has none."""

    partitions: int
    id: str


async def known_topics(log: Log, clock: Clock, names: Sequence[str]) -> dict[str, KnownTopic]:
    """Return what the brokers know of topics, after some seconds where one lacks any of them.

    Raises RetryError, ConfigError where a topic is missing. The watch counts again with its first
    look: of a topic that is created again between the two questions, the number of partitions is
    then right, or noticed.
    """
    for look in range(_FIRST_LOOKS):
        counts = await log.partition_counts(names)
        ids = await log.topic_ids(names)
        missing = [name for name in names if counts[name] is None]
        # Each question may go to another broker.
        lacking = missing or [name for name in names if ids[name] is None]
        if not lacking:
            return {name: KnownTopic(counts[name] or 0, id_text(ids[name])) for name in names}
        if look == 0:
            logger.info("waiting for topics", topics=lacking)
        await clock.sleep(_FIRST_LOOK_S)
    if missing:
        raise ConfigError(
            f"no topic {', '.join(missing)}: create what is missing with "
            "`contextgauge topics create`"
        )
    raise RetryError(f"a broker does not know {', '.join(lacking)} yet")


class TopicLooks:
    """The looks at the topics' ids that found the known ones."""

    def __init__(self) -> None:
        self.confirmed_s = -math.inf
        """When the last of them began: the topics were still the same then."""


class _Outage:
    """Reports once that Kafka does not answer, and once that it does again."""

    def __init__(self) -> None:
        self._failures = 0

    @property
    def pause_s(self) -> float:
        """The pause before the next look."""
        return AGAIN_S if self._failures == 1 else LOOK_S

    def go_on(self, error: RetryError) -> None:
        self._failures += 1
        if self._failures == 2:  # noqa: PLR2004 -- the first may have been the connection's end
            logger.warning("Kafka does not answer", error=str(error))

    def end(self) -> None:
        if self._failures > 1:
            logger.info("Kafka answers again")
        self._failures = 0


async def watch_topics(
    log: Log, clock: Clock, topics: Mapping[str, KnownTopic], looks: TopicLooks | None = None
) -> None:
    """Run until a topic is missing, another one, or has other partitions: then raise RetryError.

    `topics` are as the worker began with them. The next membership examines them, and says what to
    do. A broker that is away is reported once, for without new messages nothing else asks it
    anything; one too old to have topic ids is none of this watch's business.
    """
    counted: Mapping[str, int | None]
    known = {topic: each.id for topic, each in topics.items() if each.id}
    counts = {topic: each.partitions for topic, each in topics.items()}
    names, missing = list(topics), dict.fromkeys(topics, 0)
    outage = _Outage()
    for look in count():
        ids: Mapping[str, UUID | None] = {}
        counted, began_s = counts, clock.monotonic_s()
        try:
            if look % _COUNTED_LOOKS == 0:
                counted = await log.partition_counts(names)
            ids = await log.topic_ids(names)
            outage.end()
        except RetryError as error:
            outage.go_on(error)
        for topic, before in counts.items():
            if counted[topic] not in {before, None}:
                raise RetryError(f"{topic} has {counted[topic]} partitions now, {before} before")
        for topic, former in known.items() if ids else ():
            current = ids[topic]
            missing[topic] = 0 if current is not None else missing[topic] + 1
            if not LogPlace(former).is_of(id_text(current)):
                raise RetryError(f"the topic {topic} was deleted and created again")
            if missing[topic] == _MISSING_LOOKS:
                raise RetryError(f"the topic {topic} is missing: it was deleted")
        known |= {topic: id_text(new) for topic, new in ids.items() if id_text(new)}
        if looks is not None and ids and not any(missing.values()):
            looks.confirmed_s = began_s
        await clock.sleep(outage.pause_s)
