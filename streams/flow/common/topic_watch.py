"""Notices while a worker runs that one of its topics was deleted or recreated.

A worker without new messages would not: its group gives it an empty assignment, or its reader
waits at an offset of the former topic.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from uuid import UUID

import structlog

from contextgauge.errors import RetryError
from streams.ports import Clock, Log

LOOK_S = 5.0
"""One small request each time."""

_MISSING_LOOKS = 3
"""A broker that has just started may not know all topics yet."""

logger = structlog.get_logger()


async def watch_topics(
    log: Log,
    clock: Clock,
    topics: Sequence[str],
    first_known: Mapping[str, UUID | None] = MappingProxyType({}),
) -> None:
    """Run until a topic is missing or another one: then raise RetryError.

    `first_known` are the ids that the worker began with, where it asked for them. The next
    membership examines the topics, and says what to do. A broker that is away, or too old to have
    topic ids, is none of this watch's business.
    """
    known = {topic: each for topic, each in first_known.items() if each is not None}
    missing = dict.fromkeys(topics, 0)
    while True:
        try:
            ids = await log.topic_ids(topics)
        except RetryError as error:
            logger.debug("topics not watched", error=str(error))
            ids = known
        for topic, former in known.items():
            current = ids[topic]
            missing[topic] = 0 if current is not None else missing[topic] + 1
            if current is not None and current != former:
                raise RetryError(f"the topic {topic} was deleted and created again")
            if missing[topic] == _MISSING_LOOKS:
                raise RetryError(f"the topic {topic} is missing: it was deleted")
        known |= {topic: new for topic, new in ids.items() if new is not None}
        await clock.sleep(LOOK_S)
