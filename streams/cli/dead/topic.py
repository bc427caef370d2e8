"""What `contextgauge dead` works on: the topic of dead letters, and patience with its broker."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple, TypeVar

from contextgauge.errors import ConfigError, RetryError
from contextgauge.kafka.producer import KafkaProducer
from schemas.topics import AGENT_MESSAGES, DEAD_LETTERS
from streams import wiring
from streams.edge.kafka.log import KafkaLog
from streams.flow.dead_letters.reading import Selection
from streams.ports import PartitionReader
from streams.settings import Settings

_SILENCE_S = 30.0
"""A broker that has acknowledged nothing for so long is away."""

_LOOK_S = 1.0

T = TypeVar("T")


class Open(NamedTuple):
    """What a command works on: the cluster, a reader of the dead letters, partition counts."""

    log: KafkaLog
    reader: PartitionReader
    partitions: Sequence[int]
    message_partitions: int


@asynccontextmanager
async def opened_topic(chosen: Settings, wanted: Selection) -> AsyncIterator[Open]:
    """Connect. Raises ConfigError where a topic or a partition is missing, RetryError."""
    topic, messages = (chosen.topic(each).name for each in (DEAD_LETTERS, AGENT_MESSAGES))
    log = wiring.kafka_log(chosen, "contextgauge-dead")
    try:
        await log.start()
        counts = await log.partition_counts([topic, messages])
        partitions, message_partitions = counts[topic], counts[messages]
        if partitions is None or message_partitions is None:
            missing = ", ".join(name for name, found in counts.items() if found is None)
            raise ConfigError(
                f"missing on {chosen.bootstrap_servers}: {missing}: "
                "create the topics with `contextgauge topics create`"
            )
        named = sorted({span.partition for span in wanted.spans})
        if named and named[-1] >= partitions:
            raise ConfigError(
                f"there is no partition {named[-1]}: {topic} has {partitions}, from 0 on"
            )
        which = named or range(partitions)
        reader = log.reader(topic, which)
        await reader.start()
        try:
            yield Open(log, reader, which, message_partitions)
        finally:
            await reader.stop()
    finally:
        await log.stop()


async def guarded(work: Coroutine[None, None, T], producer: KafkaProducer) -> T:
    """Run what sends; raise RetryError where the broker has gone away meanwhile."""
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            await asyncio.wait([task], timeout=_LOOK_S)
            if producer.waiting_s > _SILENCE_S:
                raise RetryError(
                    f"the broker has not answered for {_SILENCE_S:.0f} s: not all was sent"
                )
        return task.result()
    finally:
        task.cancel()
        await asyncio.wait([task])
