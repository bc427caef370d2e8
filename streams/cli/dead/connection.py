"""Connects `contextgauge dead` to the topic of dead letters, and limits waits for the broker."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple, TypeVar

from contextgauge.clock import SystemClock
from contextgauge.errors import ConfigError, RetryError
from contextgauge.kafka.producer import KafkaProducer
from schemas.topics import AGENT_MESSAGES, DEAD_LETTERS
from streams import wiring
from streams.cli.screen.failures import say_passed
from streams.edge.kafka.log import KafkaLog
from streams.flow.dead_letters.letters import Letter
from streams.flow.dead_letters.reading import DeadReading, Selection
from streams.ports import PartitionReader
from streams.settings import Settings

_SILENCE_S = 30.0
"""A broker that has acknowledged nothing for so long is down."""

_CHECK_S = 1.0

T = TypeVar("T")


class DeadLetterConnection(NamedTuple):
    """The cluster, a reader of the selected dead letters, and the partitions of both topics."""

    settings: Settings
    log: KafkaLog
    selection: Selection
    reader: PartitionReader
    partitions: Sequence[int]
    message_partitions: int

    async def begin(
        self,
        take: Callable[[Letter], T],
        progress: Callable[[int, int], None] = lambda _read, _of: None,
    ) -> DeadReading[T]:
        """Return what reads the letters that there are now."""
        reading = DeadReading(
            self.reader, SystemClock(), self.selection, take, progress, say_passed
        )
        await reading.begin(self.partitions)
        return reading


@asynccontextmanager
async def connected(selection: Selection) -> AsyncIterator[DeadLetterConnection]:
    """Connect. Raises ConfigError if a topic or a partition is missing, and RetryError."""
    settings = wiring.settings()
    topic, messages = (settings.topic(each).name for each in (DEAD_LETTERS, AGENT_MESSAGES))
    async with wiring.started(wiring.kafka_log(settings, "contextgauge-dead")) as log:
        counts = await log.partition_counts([topic, messages])
        partitions, message_partitions = counts[topic], counts[messages]
        if partitions is None or message_partitions is None:
            missing = ", ".join(name for name, number in counts.items() if number is None)
            raise ConfigError(
                f"missing on {settings.bootstrap_servers}: {missing}: "
                "create the topics with `contextgauge topics create`"
            )
        named = sorted({span.partition for span in selection.spans})
        if named and named[-1] >= partitions:
            raise ConfigError(
                f"partition {named[-1]} does not exist: {topic} has {partitions}, from 0"
            )
        readable = named or range(partitions)
        async with wiring.started(log.reader(topic, readable)) as reader:
            yield DeadLetterConnection(
                settings, log, selection, reader, readable, message_partitions
            )


async def guarded(work: Coroutine[None, None, T], producer: KafkaProducer) -> T:
    """Run work that sends. Raises RetryError if the broker goes down meanwhile."""
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            await asyncio.wait([task], timeout=_CHECK_S)
            if producer.waiting_s > _SILENCE_S:
                raise RetryError(
                    f"the broker has not answered for {_SILENCE_S:.0f} s: not all letters were sent"
                )
        return task.result()
    finally:
        task.cancel()
        await asyncio.wait([task])
