"""Runs what writes to Redis as the one deployment of its key prefix."""

import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

from contextgauge.backoff import sleep_until
from contextgauge.errors import RetryError, StopError
from contextgauge.settings.loading import variable
from streams import wiring
from streams.flow.common.deployment import LOOK_S, check_topics, claim, hold
from streams.flow.common.retry import RetryLoop
from streams.flow.common.together import together
from streams.ports.deployment import Deployment, DeploymentStore
from streams.settings import Settings
from streams.wiring.context import WorkerContext


@asynccontextmanager
async def _open(settings: Settings) -> AsyncIterator[DeploymentStore]:
    store = wiring.deployment_store(settings)
    try:
        yield store
    finally:
        await store.stop()


async def own_deployment(settings: Settings) -> Deployment:
    """Return the deployment of the settings. Raises RetryError, ConfigError."""
    async with wiring.started(wiring.kafka_log(settings, "contextgauge-deployment")) as log:
        return Deployment(await log.cluster_id(), settings.topic_prefix)


async def as_deployment(
    worker: WorkerContext, work: Callable[[], Coroutine[Any, Any, None]]
) -> None:
    """Run what writes while the keys are this deployment's. Raises ConfigError, StopError."""
    prefix = worker.settings.key_prefix
    async with _open(worker.settings) as store:
        try:
            own = await RetryLoop(worker, "kafka").run(own_deployment, worker.settings)
            await claim(worker, store, own, prefix)
        except RetryError:
            if worker.stop.is_set():
                return
            raise
        await together([work(), hold(worker, store, own, prefix)])


async def claim_keys(settings: Settings) -> Deployment:
    """Make the keys this deployment's, whosever they were. Raises RetryError, ConfigError."""
    own = await own_deployment(settings)
    async with _open(settings) as store:
        await store.replace(own)
    return own


async def check_reader(settings: Settings) -> None:
    """Raise ConfigError where the settings name other topics than those of the keys."""
    if _names_topics(settings):
        async with _open(settings) as store:
            await _check_noted(settings, store)


async def watch_reader(worker: WorkerContext) -> None:
    """Look at intervals whose the keys are, until the worker stops.

    Raises ConfigError where they are another deployment's, VersionError where a later version noted
    it, and stops the worker.
    """
    if not _names_topics(worker.settings):
        return
    async with _open(worker.settings) as store:
        while not worker.stop.is_set():
            try:
                with suppress(RetryError):  # readers learn that Redis is away by themselves
                    await _check_noted(worker.settings, store)
            except StopError:
                worker.stop.set()
                raise
            await sleep_until(worker.clock, worker.stop, LOOK_S)


def _names_topics(settings: Settings) -> bool:
    # A reader needs no Kafka: where its settings name neither brokers nor topics, it reads what is
    # there.
    return bool(settings.topic_prefix) or variable("bootstrap_servers") in os.environ


async def _check_noted(settings: Settings, store: DeploymentStore) -> None:
    check_topics(settings.topic_prefix, await store.noted(), settings.key_prefix)
