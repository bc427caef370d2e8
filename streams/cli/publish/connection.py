"""The connection that publishing uses: the topic's cluster and a producer, while Kafka lets it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contextgauge.backoff import Backoff
from contextgauge.clock import SystemClock
from contextgauge.errors import ConfigError, RetryError
from schemas.topics import AGENT_MESSAGES
from streams import wiring
from streams.cli.screen.failures import NO_SERVICE
from streams.flow.publish.publish import PublishConfig
from streams.settings import Settings

if TYPE_CHECKING:  # they import aiokafka, which `publish --help` does not need
    from contextgauge.kafka.producer import KafkaProducer
    from streams.edge.kafka.log import KafkaLog

_WATCH_S = 1.0
"""Interval of the checks whether the broker responds."""

_SILENCE_S = 5.0
"""A broker that is merely slow acknowledges something within this time."""


@dataclass(slots=True)
class Connection:
    """A cluster and its ID, the topic there, and a producer."""

    log: "KafkaLog"
    topic: str
    say: Callable[[str], None]
    producer: "KafkaProducer"
    partitions: int | None = None
    cluster: str = ""

    async def open(self, stop: asyncio.Event) -> None:
        """Start the producer once a broker responds; CancelledError if stopped before."""
        backoff = Backoff(SystemClock(), stop)
        remedy = NO_SERVICE
        while True:
            try:
                await self.log.start()
                self.partitions = (await self.log.partition_counts([self.topic]))[self.topic]
                self.cluster = await self.log.cluster_id()
                await self.producer.start()
            except RetryError as error:
                self.say(f"{error}: retrying in {backoff.next_s:g} s (Ctrl-C to stop)")
                if remedy:  # once: it stays the same
                    self.say(remedy)
                    remedy = ""
                self.producer = self.log.producer()
                await backoff.wait()
                if stop.is_set():
                    raise asyncio.CancelledError from error
            else:
                return

    async def renew(self, error: RetryError, stop: asyncio.Event) -> None:
        """Replace a failed producer once a broker responds."""
        self.say(f"{error}: resuming from the last acknowledged message")
        await self.producer.stop()
        self.producer = self.log.producer()
        await self.open(stop)

    async def watch(self) -> None:
        """Report when the broker stops responding, and when it responds again."""
        is_away = False
        while True:
            await asyncio.sleep(_WATCH_S)
            waiting_s = self.producer.waiting_s
            if not is_away and waiting_s >= _SILENCE_S:
                is_away = True
                self.say(f"No broker response for {waiting_s:.0f} s. Retrying (Ctrl-C to stop)")
            elif is_away and waiting_s < _SILENCE_S:
                is_away = False
                self.say("The broker responds again")


@asynccontextmanager
async def connected(
    settings: Settings, stop: asyncio.Event, say: Callable[[str], None]
) -> AsyncIterator[Connection]:
    """Connect for publishing; wait, and say so, while no broker responds.

    Raises ConfigError where the topic is missing, CancelledError where `stop` is set before a
    broker responds.
    """
    topic = settings.topic(AGENT_MESSAGES).name
    log = wiring.kafka_log(settings, "contextgauge-publish")
    try:
        connection = Connection(log, topic, say, log.producer())
        await connection.open(stop)
        watching = asyncio.create_task(connection.watch())
        try:
            if connection.partitions is None:
                raise ConfigError(
                    f"the topic {topic} is missing on {settings.bootstrap_servers}: "
                    "create it with `contextgauge topics create`"
                )
            yield connection
        finally:
            watching.cancel()
            await connection.producer.stop()
    finally:
        await log.stop()


def publish_config(settings: Settings, partitions: int) -> PublishConfig:
    """Return the topic and limits to publish with."""
    return PublishConfig(
        topic=settings.topic(AGENT_MESSAGES).name,
        partitions=partitions,
        limit_bytes=settings.message_limit_bytes,
    )
