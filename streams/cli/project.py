"""`contextgauge project`: the worker that folds context records into views."""

import asyncio

from contextgauge.clock import SystemClock
from contextgauge.kafka.connection import bootstrap_servers
from streams import wiring
from streams.cli.workers.run import run
from streams.edge.telemetry.metrics import PrometheusTelemetry
from streams.ports import Health
from streams.settings import Settings
from streams.wiring import workers


def project() -> None:
    """Fold context records into views in Redis, until stopped.

    Builds views that Redis does not have, or lost, from the beginning of context.events. Run up to
    one worker per partition; any of them may be killed at any time.
    """
    run("project", _work, bootstrap_servers, wiring.redis_url)


async def _work(
    settings: Settings,
    telemetry: PrometheusTelemetry,
    health: Health,
    stop: asyncio.Event,
) -> None:
    log = wiring.kafka_log(settings, "contextgauge-project")
    store = wiring.redis_views(settings)
    try:
        await workers.project(
            settings,
            log,
            store,
            telemetry=telemetry,
            health=health,
            clock=SystemClock(),
            stop=stop,
        )
    finally:
        await store.stop()
        await log.stop()
