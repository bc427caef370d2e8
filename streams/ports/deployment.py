"""Whose keys those of a prefix in Redis are: one deployment's, by its cluster and its topics."""

from typing import NamedTuple, Protocol


class Deployment(NamedTuple):
    """A deployment: the id of its Kafka cluster, and what its topics' names begin with."""

    cluster_id: str
    topic_prefix: str

    def __str__(self) -> str:
        topics = f"{self.topic_prefix}agent.messages, {self.topic_prefix}context.events …"
        return f"the topics {topics} of the Kafka cluster {self.cluster_id}"


class DeploymentStore(Protocol):
    """Notes whose the keys of a prefix are. Its methods raise RetryError while it is away."""

    async def claim(self, own: Deployment) -> Deployment:
        """Note a deployment where none is noted; return the one that is."""

    async def replace(self, own: Deployment) -> None:
        """Note a deployment in place of any other."""

    async def noted(self) -> Deployment | None:
        """Return the deployment that is noted; None where none is."""

    async def stop(self) -> None:
        """Close the connection."""
