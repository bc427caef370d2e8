"""A Kafka cluster as a publisher needs it: does the topic exist, and a producer for it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import TopicAuthorizationFailedError, for_code
from aiokafka.protocol.metadata import MetadataRequest

from contextgauge.kafka.diagnosis import connecting
from contextgauge.kafka.options import KafkaOptions
from contextgauge.kafka.producer import KafkaProducer


class KafkaCluster:
    """The cluster that `options` names. Producers have connections of their own."""

    def __init__(self, options: KafkaOptions) -> None:
        self.options = options
        self._admin: AIOKafkaAdminClient | None = None

    async def start(self) -> None:
        """Connect, where not connected yet. Raises RetryError where no broker answers."""
        async with self.asking(f"connecting to {self.options.bootstrap_servers}"):
            pass

    async def stop(self) -> None:
        """Close the connection; producers are closed by their users."""
        admin, self._admin = self._admin, None
        if admin is not None:
            await admin.close()

    async def cluster_id(self) -> str:
        """Return the name that the cluster gave itself. Raises RetryError."""
        async with self.asking("asking for the cluster's id") as admin:
            cluster = await admin.describe_cluster()
        return str(cluster.get("cluster_id") or self.options.bootstrap_servers)

    async def partition_counts(self, names: Sequence[str]) -> dict[str, int | None]:
        """Return each topic's number of partitions, None where it is missing."""
        async with self.asking("asking for topics") as admin:
            # All topics: to ask for one by name would create it on a broker that creates topics.
            topics = await admin.describe_topics(None)
            counts = {item["topic"]: len(item["partitions"]) for item in topics}
            hidden = [name for name in names if name not in counts]
            if hidden:
                await _raise_if_not_allowed(admin, hidden)
        return {name: counts.get(name) for name in names}

    def producer(self) -> KafkaProducer:
        """Make a producer, not connected yet."""
        return KafkaProducer(self.options)

    @asynccontextmanager
    async def asking(self, action: str) -> AsyncIterator[AIOKafkaAdminClient]:
        """Give the connected client; one that failed is dropped, for the brokers may have moved."""
        try:
            async with connecting(self.options, action):
                if self._admin is None:
                    self._admin = AIOKafkaAdminClient(
                        **self.options.connection(),
                        client_id=f"{self.options.client_id}-admin",
                    )
                    await self._admin.start()
                yield self._admin
        except BaseException:
            await self.stop()
            raise


async def _raise_if_not_allowed(admin: AIOKafkaAdminClient, names: Sequence[str]) -> None:
    """Raise Kafka's error where topics are not missing but hidden from this user.

    A list of all topics leaves those out; asked for by name they differ from missing ones.
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
