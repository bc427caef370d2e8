"""A Kafka cluster as a `Log`: makes readers and producers, and tells of topics."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import (
    GroupCoordinatorNotAvailableError,
    GroupLoadInProgressError,
    NoError,
    NotCoordinatorForGroupError,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
    for_code,
)
from aiokafka.protocol.metadata import MetadataRequest
from aiokafka.structs import OffsetAndMetadata, TopicPartition

from contextgauge.errors import RetryError
from contextgauge.kafka.diagnosis import connecting
from contextgauge.kafka.options import KafkaOptions
from schemas.topics import MIB, Topic
from streams.edge.kafka.producers import KafkaProducer, KafkaTransactionalProducer
from streams.edge.kafka.readers import KafkaGroupReader, KafkaPartitionReader

_VISIBLE_TIMEOUT_S = 15.0
"""A new topic is known to all brokers within a second or so, a group's coordinator too."""

_LOOK_S = 0.05
"""Pause between looks for a new topic."""

_COMPACTED_SEGMENT_BYTES = 64 * MIB
"""A broker compacts closed segments only, and a restore reads the open one whole: its default
of 1 GiB would be read for minutes. Still several of the largest messages."""

_NO_COORDINATOR_YET = (
    GroupCoordinatorNotAvailableError,
    GroupLoadInProgressError,
    NotCoordinatorForGroupError,
)
"""Passing errors of a cluster that has just started, or moves a group."""


class KafkaLog:
    """The cluster that the options name. What it makes has connections of its own."""

    def __init__(self, options: KafkaOptions) -> None:
        self._options = options
        self._admin: AIOKafkaAdminClient | None = None

    async def start(self) -> None:
        """Connect, where not connected yet. Raises RetryError where no broker answers."""
        async with self._asking(f"connecting to {self._options.bootstrap_servers}"):
            pass

    async def stop(self) -> None:
        """Close the connection; readers and producers are closed by whoever had them made."""
        admin, self._admin = self._admin, None
        if admin is not None:
            await admin.close()

    async def cluster_id(self) -> str:
        """Return the name that the cluster gave itself. Raises RetryError."""
        async with self._asking("asking for the cluster's id") as admin:
            told = await admin.describe_cluster()
        return str(told.get("cluster_id") or self._options.bootstrap_servers)

    async def create_topics(self, topics: Sequence[Topic], partitions: int) -> list[str]:
        """Create those that are missing, wait until all are known, and return their names."""
        counts = await self.partition_counts([topic.name for topic in topics])
        missing = [topic for topic in topics if counts[topic.name] is None]
        if not missing:
            return []
        async with self._asking("creating topics") as admin:
            cluster = await admin.describe_cluster()
            replicas = min(self._options.replicas, len(cluster["brokers"]))
            answer = await admin.create_topics(
                [_new_topic(topic, partitions, replicas) for topic in missing]
            )
            created = []
            for name, code, *message in answer.topic_errors:
                error = for_code(code)
                if error is NoError:
                    created.append(name)
                elif error is not TopicAlreadyExistsError:
                    raise error(f"{name}: {message[0] if message else error.description}")
        await self._until_known([topic.name for topic in missing])
        return created

    async def partition_counts(self, names: Sequence[str]) -> dict[str, int | None]:
        """Return each topic's number of partitions, None where it is missing."""
        async with self._asking("asking for topics") as admin:
            # All topics: to ask for one by name would create it on a broker that creates topics.
            found = await admin.describe_topics(None)
            counts = {item["topic"]: len(item["partitions"]) for item in found}
            hidden = [name for name in names if name not in counts]
            if hidden:
                await _raise_if_not_allowed(admin, hidden)
        return {name: counts.get(name) for name in names}

    def transactional_producer(self, transactional_id: str) -> KafkaTransactionalProducer:
        """Make the producer of a transactional id."""
        return KafkaTransactionalProducer(self._options, transactional_id)

    def producer(self) -> KafkaProducer:
        """Make a publisher."""
        return KafkaProducer(self._options)

    def reader(self, topic: str, partitions: Sequence[int]) -> KafkaPartitionReader:
        """Make a reader without a group."""
        return KafkaPartitionReader(self._options, topic, partitions)

    def group_reader(self, topic: str, group: str, instance_id: str | None) -> KafkaGroupReader:
        """Make a member of a group; an instance id makes it a static one."""
        return KafkaGroupReader(self._options, topic, group, instance_id)

    async def committed(self, group: str, topic: str) -> dict[int, int]:
        """Return a group's committed offsets, for lag tools only."""
        async with self._asking(f"asking for the offsets of group {group}") as admin:
            found = await _offsets(admin, group)
        return {at.partition: kept.offset for at, kept in found.items() if at.topic == topic}

    @asynccontextmanager
    async def _asking(self, action: str) -> AsyncIterator[AIOKafkaAdminClient]:
        """Give the connected client; one that failed is dropped, for the brokers may have moved."""
        try:
            async with connecting(self._options, action):
                if self._admin is None:
                    self._admin = AIOKafkaAdminClient(
                        **self._options.connection(),
                        client_id=f"{self._options.client_id}-admin",
                    )
                    await self._admin.start()
                yield self._admin
        except BaseException:
            await self.stop()
            raise

    async def _until_known(self, names: Sequence[str]) -> None:
        try:
            async with asyncio.timeout(_VISIBLE_TIMEOUT_S):
                # The broker tells of no event that could be waited for.
                while None in (await self.partition_counts(names)).values():  # noqa: ASYNC110
                    await asyncio.sleep(_LOOK_S)
        except TimeoutError as error:
            raise RetryError(f"the new topics {', '.join(names)} are not visible yet") from error


async def _raise_if_not_allowed(admin: AIOKafkaAdminClient, names: Sequence[str]) -> None:
    """Raise Kafka's error where topics are not missing but hidden from this user.

    A list of all topics leaves those out; asked for by name they are told from missing ones.
    """
    answer = await admin._send_request(  # noqa: SLF001 -- the public way would create topics
        MetadataRequest(list(names), allow_auto_topic_creation=False)
    )
    hidden = sorted(
        item["topic"]
        for item in answer.to_object()["topics"]
        if for_code(item["error_code"]) is TopicAuthorizationFailedError
    )
    if hidden:
        raise TopicAuthorizationFailedError(f"{', '.join(hidden)} cannot be seen")


async def _offsets(
    admin: AIOKafkaAdminClient, group: str
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Ask for a group's offsets; a new cluster first has to make the topic that keeps them."""
    async with asyncio.timeout(_VISIBLE_TIMEOUT_S):
        while True:
            try:
                found: dict[
                    TopicPartition, OffsetAndMetadata
                ] = await admin.list_consumer_group_offsets(group)
            except _NO_COORDINATOR_YET:
                await asyncio.sleep(_LOOK_S)
            else:
                return found


def _new_topic(topic: Topic, partitions: int, replicas: int) -> NewTopic:
    configs = {
        "cleanup.policy": topic.cleanup,
        "retention.ms": str(topic.retention_ms),
        "max.message.bytes": str(topic.max_message_bytes),
    }
    if topic.cleanup == "compact":
        configs["segment.bytes"] = str(_COMPACTED_SEGMENT_BYTES)
    if topic.max_ahead_ms is not None:
        configs["message.timestamp.after.max.ms"] = str(topic.max_ahead_ms)
    return NewTopic(topic.name, partitions, replicas, topic_configs=configs)
