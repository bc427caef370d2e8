"""Builds and runs the control worker.

A module of its own because Faust takes a second to import.
"""

import random
from collections.abc import Mapping

from contextgauge.errors import ConfigError
from contextgauge.state_folder import state_folder
from schemas.topics import CONTEXT_EVENTS
from streams import wiring
from streams.core.alerts.rules import AlertPlan, MemoryPlace
from streams.core.alerts.watch import Who
from streams.edge.alerts.memories import FileAlertMemory, RedisAlertMemory
from streams.edge.alerts.rules_file import Address
from streams.edge.alerts.webhooks import HttpWebhook
from streams.edge.faust.stream import FaustStream
from streams.flow.common.retry import RetryLoop
from streams.flow.control import bodies
from streams.flow.control.agents import AgentLookup
from streams.flow.control.worker import GROUP, ControlPorts, ControlWorker
from streams.ports import AlertMemory, Clock, WebhookResult
from streams.settings import Settings
from streams.wiring.context import WorkerContext

_CLIENT_ID = "contextgauge-control"


async def control(worker: WorkerContext, plan: AlertPlan, addresses: Mapping[str, Address]) -> None:
    """Run a control worker until it is stopped. Raises StopError."""
    settings, clock = worker.settings, worker.clock
    topic, group = settings.topic(CONTEXT_EVENTS).name, settings.group_prefix + GROUP
    options = wiring.kafka_options(settings, _CLIENT_ID)
    webhooks = _webhooks(plan, addresses, clock)
    log = wiring.kafka_log(settings, _CLIENT_ID)
    memory = _memory(settings, plan.memory, clock)
    views = None if settings.redis_url is None else wiring.redis_views(settings)
    try:
        worker.health.worker("joining")
        retry = RetryLoop(worker, "kafka")
        await retry.run(log.start)
        counts = await retry.run(log.partition_counts, [topic])
        if counts[topic] is None:
            raise ConfigError(f"there is no topic {topic}: run `contextgauge topics create`")
        await memory.start()
        ports = ControlPorts(
            stream=FaustStream(
                options,
                topic,
                group,
                settings.instance_id or None,
                lambda: clock.now_ms() - plan.max_age_ms,
                lambda: clock.now_ms() - plan.pending_ms,
            ),
            log=log,
            webhooks=webhooks,
            memory=memory,
            who_of=_nobody if views is None else AgentLookup(views, clock).who_of,
            telemetry=worker.telemetry,
            health=worker.health,
            clock=clock,
            stop=worker.stop,
            dice=random.SystemRandom(),
        )
        await ControlWorker(plan, topic, ports).run()
    finally:
        for webhook in webhooks.values():
            await webhook.stop()
        await memory.stop()
        if views is not None:
            await views.stop()
        await log.stop()


async def try_targets(
    plan: AlertPlan, addresses: Mapping[str, Address], clock: Clock
) -> dict[str, WebhookResult]:
    """Send each target one test alert; return what each answered."""
    webhooks = _webhooks(plan, addresses, clock)
    try:
        return await bodies.try_targets(plan, webhooks, clock)
    finally:
        for webhook in webhooks.values():
            await webhook.stop()


async def _nobody(_session_id: str) -> Who:
    return Who()


def _webhooks(
    plan: AlertPlan, addresses: Mapping[str, Address], clock: Clock
) -> dict[str, HttpWebhook]:
    return {
        target.name: HttpWebhook(addresses[target.name], target.timeout_ms / 1_000, clock)
        for target in plan.targets
    }


def _memory(settings: Settings, place: MemoryPlace, clock: Clock) -> AlertMemory:
    """Return Redis where there is one: workers share it, and it outlives their machines.

    Raises ConfigError where it is asked for and there is none.
    """
    if place == "redis" or (place == "auto" and settings.redis_url is not None):
        return RedisAlertMemory(
            wiring.redis_url(settings),
            settings.key_prefix,
            wiring.redis_access(settings),
            settings.group_prefix,
        )
    folder = state_folder(settings.state_folder) / "control"
    return FileAlertMemory(folder / f"{settings.group_prefix}{GROUP}.sqlite", clock)
