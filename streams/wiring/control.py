"""Builds and runs the control worker.

A module of its own because Faust takes a second to import.
"""

import asyncio
import random
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any
from uuid import UUID

from contextgauge.errors import ConfigError
from contextgauge.state_folder import state_folder
from schemas.topics import AGENT_MESSAGES, CONTEXT_COMMANDS, CONTEXT_EVENTS
from streams import wiring
from streams.core.alerts.rules import AlertPlan, MemoryPlace
from streams.core.alerts.watch import Who
from streams.core.control.check import ServicePlan
from streams.edge.alerts.memories import FileAlertMemory, RedisAlertMemory
from streams.edge.alerts.rules_file import Address
from streams.edge.alerts.webhooks import HttpWebhook
from streams.edge.faust.stream import FaustStream
from streams.flow.common.retry import RetryLoop
from streams.flow.common.topic_watch import KnownTopic, known_topics
from streams.flow.control import bodies
from streams.flow.control.agents import AgentLookup, Owner
from streams.flow.control.command_worker import CommandWorker
from streams.flow.control.decisions import DecisionPorts, Decisions, Topics
from streams.flow.control.fan_out import SharedStream
from streams.flow.control.rule_guard import RuleGuard, RuleGuardPorts
from streams.flow.control.worker import GROUP, ControlPorts, ControlWorker
from streams.ports import AlertMemory, Clock, Log, RecordStream, WebhookResult
from streams.settings import Settings
from streams.wiring.compaction import compaction
from streams.wiring.context import WorkerContext
from streams.wiring.partition_counts import counts_differ

_CLIENT_ID = "contextgauge-control"


async def control(
    worker: WorkerContext,
    plan: AlertPlan,
    addresses: Mapping[str, Address],
    service: ServicePlan | None = None,
) -> None:
    """Run a control worker until it is stopped. Raises StopError.

    It sends alerts by a plan; with a service's plan, it requests compactions, and carries them out.
    """
    settings, clock = worker.settings, worker.clock
    topic = settings.topic(CONTEXT_EVENTS).name
    webhooks = _webhooks(plan, addresses, clock)
    log = wiring.kafka_log(settings, _CLIENT_ID)
    memory = _memory(settings, plan.memory, clock)
    views = None if settings.redis_url is None else wiring.redis_views(settings)
    asked = None if views is None else wiring.asked_contexts(settings)
    lookup = None if views is None else AgentLookup(views, clock, asked)
    sink = wiring.command_sink(settings)
    exits = AsyncExitStack()
    try:
        worker.health.worker("joining")
        retry = RetryLoop(worker, "kafka")
        await retry.run(log.start)
        needed = [topic]
        if service is not None:
            needed += [settings.topic(each).name for each in (AGENT_MESSAGES, CONTEXT_COMMANDS)]
        topics = await retry.run(known_topics, log, clock, needed)
        partitions = _common_count(topics)
        await memory.start()
        max_age_ms = max(plan.max_age_ms, 0 if service is None else service.max_age_ms)
        pending_ms = max(plan.pending_ms, max_age_ms)
        stream = _stream(worker, topic, topics[topic].id, max_age_ms, pending_ms)
        owner_of = _no_owner if lookup is None else lookup.owner_of
        decisions = None
        if service is not None:
            decision_ports = DecisionPorts(**_ports(worker), log=log, sink=sink, owner_of=owner_of)
            decisions = _decisions(settings, service, decision_ports)
        guard = await _rule_guard(worker, log, exits)
        others: list[Decisions | RuleGuard] = [each for each in (decisions, guard) if each]
        if others:
            stream = SharedStream(stream, others)
        ports = ControlPorts(
            **_ports(worker),
            stream=stream,
            log=log,
            topics=topics,
            webhooks=webhooks,
            memory=memory,
            who_of=_nobody if lookup is None else lookup.who_of,
            dice=random.SystemRandom(),
        )
        works: list[ControlWorker | CommandWorker | Decisions | RuleGuard] = [
            ControlWorker(plan, topic, ports),
            *others,
        ]
        if service is not None:
            executor = compaction(worker, service, partitions, owner_of)
            works.append(await exits.enter_async_context(executor))
        await _together([each.run() for each in works])
    finally:
        await exits.aclose()
        for webhook in webhooks.values():
            await webhook.stop()
        await memory.stop()
        for each in (views, asked):
            if each is not None:
                await each.stop()
        await sink.stop()
        await log.stop()


def _stream(
    worker: WorkerContext, topic: str, topic_id: UUID | None, max_age_ms: int, pending_ms: int
) -> RecordStream:
    settings, clock = worker.settings, worker.clock
    return FaustStream(
        wiring.kafka_options(settings, _CLIENT_ID),
        topic,
        settings.group_prefix + GROUP,
        settings.instance_id or None,
        lambda: clock.now_ms() - max_age_ms,
        lambda: clock.now_ms() - pending_ms,
        topic_id="" if topic_id is None else topic_id.hex,
    )


def _decisions(settings: Settings, service: ServicePlan, ports: DecisionPorts) -> Decisions:
    topics = Topics(
        records=settings.topic(CONTEXT_EVENTS).name, commands=settings.topic(CONTEXT_COMMANDS).name
    )
    return Decisions(service.rules, service.max_age_ms, topics, ports)


async def _rule_guard(worker: WorkerContext, log: Log, exits: AsyncExitStack) -> RuleGuard | None:
    """Return the guard of the user's rules, where text is kept of sessions; else None."""
    settings = worker.settings
    if settings.redis_url is None or settings.compaction_file is None:
        return None
    conversations = wiring.redis_conversations(settings)
    exits.push_async_callback(conversations.stop)
    await RetryLoop(worker, "redis").run(conversations.start)
    ports = RuleGuardPorts(**_ports(worker), log=log, conversations=conversations, has_texts=True)
    return RuleGuard(settings.topic(AGENT_MESSAGES).name, ports)


def _ports(worker: WorkerContext) -> dict[str, Any]:
    names = ("telemetry", "health", "clock", "stop")
    return {name: getattr(worker, name) for name in names}


def _common_count(topics: Mapping[str, KnownTopic]) -> int:
    """Return how many partitions all topics have. Raises ConfigError where they differ."""
    counts = {name: each.partitions for name, each in topics.items()}
    first, *others = counts.values()
    if any(count != first for count in others):
        raise ConfigError(counts_differ(counts))
    return first


async def _together(running: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Run all until they end; the first error ends the others, and is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            for each in running:
                group.create_task(each)
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None


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


async def _no_owner(_session_id: str) -> Owner:
    return Owner()


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
