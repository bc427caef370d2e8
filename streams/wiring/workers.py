"""Builds and runs the derive and project workers."""

import asyncio

from schemas.topics import AGENT_MESSAGES, CONTEXT_EVENTS, CONTEXT_STATE, DAY_MS, DEAD_LETTERS
from streams.edge.kafka.changelog import ChangelogStateStore
from streams.flow.derive.config import GROUP as DERIVE_GROUP
from streams.flow.derive.config import DeriveConfig
from streams.flow.derive.partition_task import DerivePorts
from streams.flow.derive.worker import run_derive
from streams.flow.project.config import GROUP as PROJECT_GROUP
from streams.flow.project.config import ProjectConfig
from streams.flow.project.polling import ProjectPorts
from streams.flow.project.worker import run_project
from streams.ports import Clock, Health, Log, Telemetry, ViewStore
from streams.settings import Settings
from streams.wiring import commit_timeout_s, rules

_BEYOND_SESSION_S = 2.0
"""A worker that lost its place has noticed that so long after the session timeout."""


def derive_config(settings: Settings, *, allow_dead_letters: bool = False) -> DeriveConfig:
    """Return the configuration of a derive worker."""
    return DeriveConfig(
        messages_topic=settings.topic(AGENT_MESSAGES).name,
        events_topic=settings.topic(CONTEXT_EVENTS).name,
        state_topic=settings.topic(CONTEXT_STATE).name,
        dead_topic=settings.topic(DEAD_LETTERS).name,
        group=settings.group_prefix + DERIVE_GROUP,
        instance_id=settings.instance_id or None,
        processes=settings.derive_processes,
        batch_messages=settings.batch_messages,
        commit_pause_s=settings.derive_commit_pause_ms / 1_000,
        limit_bytes=settings.message_limit_bytes,
        idle_days=settings.session_idle_days,
        allow_dead_letters=allow_dead_letters,
        commit_timeout_s=commit_timeout_s(settings),
        fenced_pause_s=settings.session_timeout_ms / 1_000 + _BEYOND_SESSION_S,
    )


def project_config(settings: Settings) -> ProjectConfig:
    """Return the configuration of a project worker."""
    return ProjectConfig(
        events_topic=settings.topic(CONTEXT_EVENTS).name,
        group=settings.group_prefix + PROJECT_GROUP,
        instance_id=settings.instance_id or None,
        batch_records=settings.batch_messages,
        idle_ms=settings.session_idle_days * DAY_MS,
    )


async def derive(
    settings: Settings,
    log: Log,
    *,
    telemetry: Telemetry,
    health: Health,
    clock: Clock,
    stop: asyncio.Event,
    allow_dead_letters: bool = False,
) -> None:
    """Run a derive worker over a log until `stop` is set. Raises StopError."""
    config = derive_config(settings, allow_dead_letters=allow_dead_letters)
    ports = DerivePorts(
        telemetry=telemetry,
        health=health,
        clock=clock,
        stop=stop,
        log=log,
        state_store=ChangelogStateStore(log, config.state_topic),
        rules=rules(settings),
        config=config,
    )
    await run_derive(ports)


async def project(
    settings: Settings,
    log: Log,
    store: ViewStore,
    *,
    telemetry: Telemetry,
    health: Health,
    clock: Clock,
    stop: asyncio.Event,
) -> None:
    """Run a project worker over a log and a view store until `stop` is set. Raises StopError."""
    ports = ProjectPorts(
        telemetry=telemetry,
        health=health,
        clock=clock,
        stop=stop,
        log=log,
        store=store,
        config=project_config(settings),
    )
    await run_project(ports)
