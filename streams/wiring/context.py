"""What every long-running command gets from the process that it runs in."""

import asyncio
from typing import NamedTuple

from streams.edge.telemetry.health import HealthBoard
from streams.edge.telemetry.metrics import PrometheusTelemetry
from streams.ports import Clock
from streams.settings import Settings


class WorkerContext(NamedTuple):
    """Settings, metrics, health and clock; the worker runs until `stop` is set."""

    settings: Settings
    telemetry: PrometheusTelemetry
    health: HealthBoard
    clock: Clock
    stop: asyncio.Event
