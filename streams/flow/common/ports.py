"""The ports that every part of a worker uses."""

import asyncio
from dataclasses import dataclass

from streams.ports import Clock, Health, Telemetry


@dataclass(frozen=True, kw_only=True)
class WorkerPorts:
    """What every part of a worker uses. `stop` is set when the worker is to end."""

    telemetry: Telemetry
    health: Health
    clock: Clock
    stop: asyncio.Event
