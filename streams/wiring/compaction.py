"""Builds the compaction service, which runs in the control worker."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Final

from contextgauge.kafka.options import KafkaOptions
from contextgauge.window_catalog import bundled
from schemas.topics import AGENT_MESSAGES, CONTEXT_COMMANDS
from streams import wiring
from streams.core.control.check import ServicePlan, profile_of
from streams.core.control.plan import CALL_S, CompactedSession, ControlPlan, SessionPolicy
from streams.core.control.thresholds import SessionRule, Subject, ThresholdBook
from streams.edge.control.service_file import summariser_of
from streams.edge.drivers.tables import drivers_of
from streams.edge.faust.stream import FaustStream
from streams.edge.kafka.log import KafkaLog
from streams.edge.kafka.membership import GroupConfiguration
from streams.flow.common.retry import RetryLoop
from streams.flow.control.commands.command_ports import GROUP, CommandPorts
from streams.flow.control.commands.command_worker import CommandWorker
from streams.flow.control.session_owners import OwnerOf
from streams.settings import Settings
from streams.wiring.context import WorkerContext

_CLIENT_ID: Final = "contextgauge-compaction"
_FETCH_WAIT_MS: Final = 200
"""The broker answers at once where there is something: an idle partition asks five times a second,
and not forty times as where nothing but latency counts."""


@asynccontextmanager
async def compaction(
    worker: WorkerContext,
    service: ServicePlan,
    partitions: int,
    owner_of: OwnerOf,
    membership: GroupConfiguration,
) -> AsyncIterator[CommandWorker]:
    """Give the service, not running yet; `partitions` is what its topics have.

    Raises ConfigError or RetryError.
    """
    settings, clock = worker.settings, worker.clock
    messages = settings.topic(AGENT_MESSAGES)
    commands = settings.topic(CONTEXT_COMMANDS)
    options = service_options(settings)
    store, conversations = wiring.control_store(settings), wiring.redis_conversations(settings)
    drivers, asked = drivers_of(service.drivers, clock), wiring.asked_contexts(settings)
    log = KafkaLog(options)
    async with AsyncExitStack() as stack:
        stops = [log.stop, store.stop, conversations.stop, asked.stop]
        for stop in (*stops, *(driver.stop for driver in drivers.values())):
            stack.push_async_callback(stop)
        await RetryLoop(worker, "kafka").run(log.start)
        yield CommandWorker(
            CommandPorts(
                telemetry=worker.telemetry,
                health=worker.health,
                clock=clock,
                stop=worker.stop,
                stream=FaustStream(
                    options,
                    commands.name,
                    settings.group_prefix + GROUP,
                    settings.instance_id or None,
                    clock.now_ms,  # its records are only acknowledged
                    lambda: 0,
                    membership=membership,
                ),
                log=log,
                store=store,
                conversations=conversations,
                asked=asked,
                drivers=drivers,
                owner_of=owner_of,
                plan=control_plan(service, settings.transaction_timeout_ms),
                commands_topic=commands.name,
                messages_topic=messages.name,
                partitions=partitions,
                transactional_prefix=f"{commands.name.removesuffix(CONTEXT_COMMANDS.name)}{GROUP}-",
                retention_ms=commands.retention_ms,
                message_limit_bytes=settings.message_limit_bytes,
            )
        )


def service_options(settings: Settings) -> KafkaOptions:
    """Return how the service connects to Kafka. Raises ConfigError.

    A boundary of any size is in one batch with the result before it, so that no message of others
    comes between the two. Of commands, far less is written at a time.
    """
    return replace(
        wiring.kafka_options(settings, _CLIENT_ID),
        fetch_wait_ms=_FETCH_WAIT_MS,
        batch_bytes=settings.topic(AGENT_MESSAGES).max_message_bytes,
    )


def control_plan(service: ServicePlan, transaction_timeout_ms: int) -> ControlPlan:
    """Return the plan of a service's file. Raises ConfigError."""
    return ControlPlan(
        session=lambda facts: session_plan(service.rules, facts),
        summariser=summariser_of(service.summariser),
        max_age_ms=service.max_age_ms,
        pool_size=service.calls,
        command_s=service.deadline_ms / 1_000,
        call_s=min(CALL_S, service.deadline_ms / 1_000),
        check_s=transaction_timeout_ms / 2_000,
    )


def session_plan(rules: Sequence[SessionRule], facts: CompactedSession) -> SessionPolicy:
    """Return how a session is compacted, by the file's rules and by what was set for it.

    One that no rule names, and for which nothing was set, has not opted in.
    """
    subject = Subject(facts.session_id, facts.agent_id, facts.project, facts.model)
    book = ThresholdBook(rules)
    for entry in facts.thresholds:
        book.apply(entry)
    thresholds = book.of(subject)
    window = facts.window
    if window is None and facts.model is not None:
        window = bundled().window(facts.model)
    return SessionPolicy(
        opted_in=bool(facts.thresholds) or any(rule.fits(subject) for rule in rules),
        driver=thresholds.driver,
        profile=profile_of(thresholds, window or 0),
        automatic=thresholds.automatic,
    )
