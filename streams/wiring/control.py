"""Builds and runs the control worker.

A module of its own because Faust takes a second to import.
"""

import random
from collections.abc import Coroutine, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import structlog

from contextgauge.errors import ConfigError
from contextgauge.state_folder import state_folder
from schemas.topics import AGENT_MESSAGES, CONTEXT_COMMANDS, CONTEXT_EVENTS
from streams import wiring
from streams.core.alerts.rules import AlertPlan, MemoryPlace
from streams.core.control.check import ServicePlan
from streams.edge.alerts.memories import FileAlertMemory, RedisAlertMemory
from streams.edge.alerts.rules_file import Address
from streams.edge.alerts.webhooks import HttpWebhook
from streams.edge.faust.stream import FaustStream
from streams.edge.kafka.membership import GroupConfiguration
from streams.flow.common.retry import RetryLoop
from streams.flow.common.together import together
from streams.flow.common.topic_watch import KnownTopic, known_topics
from streams.flow.control.alerts import webhook_bodies
from streams.flow.control.alerts.alert_partition import ControlPorts
from streams.flow.control.alerts.alert_worker import GROUP, ControlWorker
from streams.flow.control.control_loop import ControlLoop, Opener
from streams.flow.control.decisions.compaction_decisions import GROUP as DECISIONS_GROUP
from streams.flow.control.decisions.compaction_decisions import DecisionPorts, Decisions, Topics
from streams.flow.control.decisions.rule_guard import RuleGuard, RuleGuardPorts
from streams.flow.control.session_owners import AgentLookup, OwnerOf, no_owner
from streams.flow.control.topics_watch import watch_until_stopped
from streams.ports import AlertMemory, Clock, Log, RecordStream, WebhookResult
from streams.settings import Settings
from streams.wiring.compaction import compaction
from streams.wiring.context import WorkerContext
from streams.wiring.partition_counts import counts_differ

_CLIENT_ID = "contextgauge-control"

logger = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRole:
    """Alerts: what to send, and where. Members with another `digest` of their file stand by."""

    plan: AlertPlan
    addresses: Mapping[str, Address]
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceRole:
    """Compactions, requested and carried out. `digest` as of `AlertRole`."""

    plan: ServicePlan
    digest: str


class _Common(NamedTuple):
    """What all roles of a worker use."""

    log: Log
    topics: Mapping[str, KnownTopic]
    owner_of: OwnerOf


async def control(
    worker: WorkerContext, alerts: AlertRole | None, service: ServiceRole | None
) -> None:
    """Run a control worker until it is stopped. Raises StopError.

    Each role that is given is a member of consumer groups of its own, so processes with either
    one divide nothing between them.
    """
    settings, clock = worker.settings, worker.clock
    async with AsyncExitStack() as exits:
        log = wiring.kafka_log(settings, _CLIENT_ID)
        exits.push_async_callback(log.stop)
        worker.health.worker("joining")
        retry = RetryLoop(worker, "kafka")
        await retry.run(log.start)
        read = (CONTEXT_EVENTS,)
        needed = read if service is None else (*read, AGENT_MESSAGES, CONTEXT_COMMANDS)
        names = [settings.topic(each).name for each in needed]
        topics = await retry.run(known_topics, log, clock, names)
        owner_of: OwnerOf = no_owner
        if settings.redis_url is not None:
            views = wiring.redis_views(settings)
            asked = wiring.asked_contexts(settings)
            for each in (views, asked):
                exits.push_async_callback(each.stop)
            owner_of = AgentLookup(views, clock, asked).owner_of
        common = _Common(log, topics, owner_of)
        works = [watch_until_stopped(worker, log, topics)]
        if alerts is not None:
            works.append(await _alerts(_role(worker, "alerts"), alerts, common, exits))
        if service is not None:
            partitions = _common_count(topics)
            decisions = _role(worker, "decisions")
            works.append(await _decisions(decisions, service, common, exits))
            executor = compaction(
                _role(worker, "compaction"),
                service.plan,
                partitions,
                owner_of,
                _membership(worker, "compaction", service.digest),
            )
            works.append((await exits.enter_async_context(executor)).run())
        worker.health.worker("member")
        await together(works)


async def _alerts(
    role: WorkerContext, alerts: AlertRole, common: _Common, exits: AsyncExitStack
) -> Coroutine[Any, Any, None]:
    settings, clock, plan = role.settings, role.clock, alerts.plan
    webhooks = _webhooks(plan, alerts.addresses, clock)
    for webhook in webhooks.values():
        exits.push_async_callback(webhook.stop)
    memory = _memory(settings, plan.memory, clock)
    await memory.start()
    exits.push_async_callback(memory.stop)
    ports = ControlPorts(
        **role.ports,
        stream=_stream(
            role,
            common,
            GROUP,
            _membership(role, "alerts", alerts.digest),
            plan.max_age_ms,
            plan.pending_ms,
        ),
        log=common.log,
        webhooks=webhooks,
        memory=memory,
        owner_of=common.owner_of,
        dice=random.SystemRandom(),
    )
    return ControlWorker(plan, settings.topic(CONTEXT_EVENTS).name, ports).run()


async def _decisions(
    role: WorkerContext,
    service: ServiceRole,
    common: _Common,
    exits: AsyncExitStack,
) -> Coroutine[Any, Any, None]:
    """Return what decides on compactions, with the guard of the user's turns where it has work."""
    settings, max_age_ms = role.settings, service.plan.max_age_ms
    sink = wiring.command_sink(settings)
    exits.push_async_callback(sink.stop)
    topics = Topics(
        records=settings.topic(CONTEXT_EVENTS).name, commands=settings.topic(CONTEXT_COMMANDS).name
    )
    ports = DecisionPorts(**role.ports, log=common.log, sink=sink, owner_of=common.owner_of)
    decisions = Decisions(service.plan.rules, max_age_ms, topics, ports)
    guard = await _rule_guard(role, common.log, exits)
    stream = _stream(
        role,
        common,
        DECISIONS_GROUP,
        _membership(role, "decisions", service.digest),
        max_age_ms,
        max_age_ms,
    )
    openers: list[Opener] = [decisions.opened]
    if guard is not None:
        openers.append(guard.opened)
    return ControlLoop("decisions", stream, openers, role).run()


def _role(worker: WorkerContext, name: str) -> WorkerContext:
    return replace(worker, health=worker.health.role(name))


def _membership(role: WorkerContext, name: str, digest: str) -> GroupConfiguration:
    """Return the membership of a role's group, which is reported where the leader refuses it."""

    def assigned(refused: str) -> None:
        if refused:
            logger.error(
                "no partitions: give all workers of this role the same file, or stop those of "
                "the former",
                role=name,
                reason=refused,
            )
        role.health.refused(refused)
        role.telemetry.gauge("worker_refused", int(bool(refused)), worker=name)

    return GroupConfiguration(digest, assigned)


def _stream(
    role: WorkerContext,
    common: _Common,
    group: str,
    membership: GroupConfiguration,
    max_age_ms: int,
    pending_ms: int,
) -> RecordStream:
    settings, clock = role.settings, role.clock
    topic = settings.topic(CONTEXT_EVENTS).name
    return FaustStream(
        wiring.kafka_options(settings, _CLIENT_ID),
        topic,
        settings.group_prefix + group,
        settings.instance_id or None,
        lambda: clock.now_ms() - max_age_ms,
        lambda: clock.now_ms() - pending_ms,
        topic_id=common.topics[topic].id,
        membership=membership,
    )


async def _rule_guard(worker: WorkerContext, log: Log, exits: AsyncExitStack) -> RuleGuard | None:
    """Return the guard of the user's turns, where text is kept of sessions; else None."""
    settings = worker.settings
    if settings.redis_url is None or settings.compaction_file is None:
        return None
    conversations = wiring.redis_conversations(settings)
    exits.push_async_callback(conversations.stop)
    await RetryLoop(worker, "redis").run(conversations.start)
    ports = RuleGuardPorts(**worker.ports, log=log, conversations=conversations, has_texts=True)
    return RuleGuard(settings.topic(AGENT_MESSAGES).name, ports)


def _common_count(topics: Mapping[str, KnownTopic]) -> int:
    """Return how many partitions all topics have. Raises ConfigError where they differ."""
    counts = {name: each.partitions for name, each in topics.items()}
    first, *others = counts.values()
    if any(count != first for count in others):
        raise ConfigError(counts_differ(counts))
    return first


async def try_targets(
    plan: AlertPlan, addresses: Mapping[str, Address], clock: Clock
) -> dict[str, WebhookResult]:
    """Send each target one test alert; return what each answered."""
    webhooks = _webhooks(plan, addresses, clock)
    try:
        return await webhook_bodies.try_targets(plan, webhooks, clock)
    finally:
        for webhook in webhooks.values():
            await webhook.stop()


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
