"""A Kafka cluster as a `Log`: makes readers and producers, and creates topics."""

import asyncio
from collections.abc import Sequence
from uuid import UUID

from aiokafka.admin import NewTopic
from aiokafka.errors import (
    GroupCoordinatorNotAvailableError,
    GroupLoadInProgressError,
    NoError,
    NotCoordinatorForGroupError,
    TopicAlreadyExistsError,
    for_code,
)
from aiokafka.structs import OffsetAndMetadata, TopicPartition

from contextgauge.errors import RetryError
from contextgauge.kafka.cluster import KafkaCluster
from contextgauge.kafka.options import KafkaOptions
from schemas.topics import MIB, Topic
from streams.edge.kafka.batches import written_bytes
from streams.edge.kafka.readers import KafkaGroupReader, KafkaPartitionReader
from streams.edge.kafka.topic_ids import topic_ids
from streams.edge.kafka.transactions import KafkaTransactionalProducer
from streams.ports import NewRecord

_VISIBLE_TIMEOUT_S = 15.0
"""A new topic is known to all brokers within a second or so, a group's coordinator too."""

_LOOK_S = 0.05
"""Pause between looks for a new topic."""

_COMPACTED_SEGMENT_BYTES = 64 * MIB
"""A broker compacts closed segments only, and a restore reads the open one whole: its default
of 1 GiB would be read for minutes. Still several of the largest messages."""

NO_COORDINATOR_YET = (
    GroupCoordinatorNotAvailableError,
    GroupLoadInProgressError,
    NotCoordinatorForGroupError,
)
"""Passing errors of a cluster that has just started, or moves a group."""


class KafkaLog(KafkaCluster):
    """The cluster that the options name. What it makes has connections of its own."""

    def __init__(self, options: KafkaOptions) -> None:
        super().__init__(options)
        self._turn = asyncio.Lock()

    def written_bytes(self, record: NewRecord) -> int:
        """Return how many bytes a record takes in a batch of its own, about."""
        return written_bytes(self.options, record)

    async def create_topics(self, topics: Sequence[Topic], partitions: int) -> list[str]:
        counts = await self.partition_counts([topic.name for topic in topics])
        async with self.asking("creating topics") as admin:
            cluster = await admin.describe_cluster()
            # A cluster with fewer brokers gets fewer copies instead of an error.
            replicas = min(self.options.replicas, len(cluster["brokers"]))
            # All of them: a broker may still list a topic that was deleted a moment ago.
            answer = await admin.create_topics(
                [_new_topic(topic, partitions, replicas) for topic in topics]
            )
        created = []
        for name, code, *message in answer.topic_errors:
            error = for_code(code)
            if error is NoError:
                created.append(name)
            elif error is not TopicAlreadyExistsError and counts[name] is None:
                raise error(f"{name}: {message[0] if message else error.description}")
        await self._until_known(created)
        return created

    async def topic_ids(self, names: Sequence[str]) -> dict[str, UUID | None]:
        # In turns: one that fails or is cancelled closes the connection.
        async with self._turn, self.asking("asking for the topics' ids") as admin:
            return await topic_ids(admin, names)

    def transactional_producer(self, transactional_id: str) -> KafkaTransactionalProducer:
        return KafkaTransactionalProducer(self.options, transactional_id)

    def reader(self, topic: str, partitions: Sequence[int]) -> KafkaPartitionReader:
        return KafkaPartitionReader(self.options, topic, partitions)

    def group_reader(self, topic: str, group: str, instance_id: str | None) -> KafkaGroupReader:
        return KafkaGroupReader(self.options, topic, group, instance_id)

    async def committed(self, group: str, topic: str) -> dict[int, int]:
        offsets: dict[TopicPartition, OffsetAndMetadata] | None = None
        async with (
            self.asking(f"asking for the offsets of group {group}") as admin,
            asyncio.timeout(_VISIBLE_TIMEOUT_S),
        ):
            while offsets is None:
                try:
                    offsets = await admin.list_consumer_group_offsets(group)
                except NO_COORDINATOR_YET:
                    # A new cluster first has to make the topic that keeps them.
                    await asyncio.sleep(_LOOK_S)
        return {
            topic_partition.partition: committed.offset
            for topic_partition, committed in offsets.items()
            if topic_partition.topic == topic
        }

    async def _until_known(self, names: Sequence[str]) -> None:
        try:
            async with asyncio.timeout(_VISIBLE_TIMEOUT_S):
                # The broker has no event that could be waited for.
                while None in (await self.partition_counts(names)).values():  # noqa: ASYNC110
                    await asyncio.sleep(_LOOK_S)
        except TimeoutError as error:
            raise RetryError(f"the new topics {', '.join(names)} are not visible yet") from error


def _new_topic(topic: Topic, partitions: int, replicas: int) -> NewTopic:
    configs = {
        "cleanup.policy": topic.cleanup,
        "retention.ms": str(topic.retention_ms),
        "max.message.bytes": str(topic.max_message_bytes),
        # What is acknowledged survives the loss of a broker, and one may be down. A cluster's
        # default may be more than there are copies.
        "min.insync.replicas": str(max(1, min(2, replicas - 1))),
    }
    if topic.cleanup == "compact":
        configs["segment.bytes"] = str(_COMPACTED_SEGMENT_BYTES)
    if topic.max_ahead_ms is not None:
        configs["message.timestamp.after.max.ms"] = str(topic.max_ahead_ms)
    return NewTopic(topic.name, partitions, replicas, topic_configs=configs)
