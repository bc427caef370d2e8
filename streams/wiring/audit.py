"""What an audit of the views works with: the log, the views in Redis, and documents in memory."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from contextgauge.clock import SystemClock
from streams import wiring
from streams.edge.memory.view_store import MemoryPartition
from streams.flow.rebuild.audit import AuditPorts
from streams.settings import Settings
from streams.wiring.workers import project_config


@asynccontextmanager
async def audit_ports(settings: Settings) -> AsyncIterator[AuditPorts]:
    """Connect to Kafka and Redis for an audit. Raises RetryError, ConfigError."""
    config = project_config(settings)
    async with (
        wiring.started(wiring.kafka_log(settings, "contextgauge-rebuild")) as log,
        wiring.started(wiring.redis_views(settings)) as store,
    ):
        yield AuditPorts(
            log=log,
            store=store,
            clock=SystemClock(),
            events_topic=config.events_topic,
            idle_ms=config.idle_ms,
            new_documents=MemoryPartition,
        )
