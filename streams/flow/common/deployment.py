"""One deployment to a key prefix: who writes or reads another's keys stops, with the remedy.

Workers of two deployments on one prefix took turns before: each found the positions of another
topic, and built all views again. So a worker notes its deployment before it writes anything, and
looks again at intervals: Redis may have been emptied since, and another have noted its own.
"""

from typing import Final

from contextgauge.backoff import sleep_until
from contextgauge.errors import ConfigError, RetryError
from streams.flow.common.ports import WorkerPorts
from streams.flow.common.retry import RetryLoop
from streams.ports.deployment import Deployment, DeploymentStore

LOOK_S: Final = 5.0
"""Two small requests each time."""


class ForeignKeysError(ConfigError):
    """The keys of the prefix are another deployment's."""


def check(own: Deployment, noted: Deployment, prefix: str) -> None:
    """Raise ForeignKeysError where the keys are another deployment's."""
    if own != noted:
        raise ForeignKeysError(
            f"the keys {prefix}:* in Redis are those of {noted}; this deployment is that of {own}. "
            "Give it another CONTEXTGAUGE_KEY_PREFIX; or, where the other one is gone, run "
            "`contextgauge rebuild --claim`"
        )


def check_topics(topic_prefix: str, noted: Deployment | None, prefix: str) -> None:
    """Raise ForeignKeysError where a reader's settings name other topics than those of the keys."""
    if noted is not None and noted.topic_prefix != topic_prefix:
        check(noted._replace(topic_prefix=topic_prefix), noted, prefix)


async def claim(ports: WorkerPorts, store: DeploymentStore, own: Deployment, prefix: str) -> None:
    """Note the deployment before it writes. Raises ConfigError; RetryError once stopped."""
    check(own, await RetryLoop(ports, "redis").run(store.claim, own), prefix)


async def hold(ports: WorkerPorts, store: DeploymentStore, own: Deployment, prefix: str) -> None:
    """Look again until the worker stops. Raises ConfigError."""
    while not ports.stop.is_set():
        await sleep_until(ports.clock, ports.stop, LOOK_S)
        try:
            noted = await store.claim(own)
        except RetryError:
            continue  # who needs Redis reports that it is away
        check(own, noted, prefix)
