"""The deployment whose keys those of a prefix are, in Redis: the key `PREFIX:deployment`."""

from contextgauge import json_codec
from contextgauge.errors import VersionError
from streams.edge.redis.access import NO_ACCESS, RedisAccess
from streams.edge.redis.errors import TIMEOUT_S, replied
from streams.ports.deployment import Deployment


def deployment_key(prefix: str) -> str:
    """Return the key of a prefix."""
    return f"{prefix}:deployment"


def read_deployment(document: bytes) -> Deployment:
    """Return what the key holds. Raises VersionError for an unknown form."""
    match json_codec.loads(document):
        case {"cluster_id": str(cluster_id), "topic_prefix": str(topic_prefix)}:
            return Deployment(cluster_id, topic_prefix)
        case _:
            raise VersionError("whose the keys in Redis are is noted in a form that is not known")


class RedisDeployment:
    """A `DeploymentStore`. `url` as redis-py takes it; `prefix` begins the key."""

    def __init__(self, url: str, prefix: str, access: RedisAccess = NO_ACCESS) -> None:
        self._key = deployment_key(prefix)
        self._redis = access.client(url, TIMEOUT_S)

    async def claim(self, own: Deployment) -> Deployment:
        """Note a deployment where none is noted; return the one that is."""
        setting = self._redis.set(self._key, _written(own), nx=True)
        await replied("noting whose the keys are", setting)
        return await self.noted() or own

    async def replace(self, own: Deployment) -> None:
        """Note a deployment in place of any other."""
        await replied("noting whose the keys are", self._redis.set(self._key, _written(own)))

    async def noted(self) -> Deployment | None:
        """Return the deployment that is noted. Raises VersionError for an unknown form."""
        document = await replied("asking whose the keys are", self._redis.get(self._key))
        return None if document is None else read_deployment(document)

    async def stop(self) -> None:
        """Close the connection."""
        await self._redis.aclose()


def _written(deployment: Deployment) -> bytes:
    return json_codec.dumps(deployment._asdict())
