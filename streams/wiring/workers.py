"""Builds and runs the derive, project and conversations workers."""

from collections.abc import Callable

from contextgauge.errors import ConfigError
from schemas.topics import (
    AGENT_MESSAGES,
    CONTEXT_COMMANDS,
    CONTEXT_EVENTS,
    CONTEXT_STATE,
    DAY_MS,
    DEAD_LETTERS,
)
from streams.edge.control.kept_conversations import read_kept
from streams.flow.conversations.config import GROUP as CONVERSATIONS_GROUP
from streams.flow.conversations.config import ConversationsConfig, ConversationsPorts
from streams.flow.conversations.worker import run_conversations
from streams.flow.dead_letters.cutting import letter_bytes
from streams.flow.derive.config import GROUP as DERIVE_GROUP
from streams.flow.derive.config import DeriveConfig
from streams.flow.derive.partition_task import DerivePorts
from streams.flow.derive.state_store import StateStore
from streams.flow.derive.worker import run_derive
from streams.flow.project.config import GROUP as PROJECT_GROUP
from streams.flow.project.config import ProjectConfig
from streams.flow.project.polling import ProjectPorts
from streams.flow.project.worker import run_project
from streams.ports import Log, NewRecord, ViewStore
from streams.ports.conversations import ConversationStore
from streams.settings import Settings
from streams.wiring import commit_timeout_s, rules
from streams.wiring.context import WorkerContext

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
        letter_bytes=settings.topic(DEAD_LETTERS).max_message_bytes,
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
        messages_topic=settings.topic(AGENT_MESSAGES).name,
        derive_group=settings.group_prefix + DERIVE_GROUP,
        instance_id=settings.instance_id or None,
        batch_records=settings.batch_messages,
        idle_ms=settings.session_idle_days * DAY_MS,
    )


def conversations_config(settings: Settings) -> ConversationsConfig:
    """Return the configuration of a worker that keeps conversations. Raises ConfigError."""
    if settings.compaction_file is None:
        raise ConfigError(
            "No sessions whose text is to be kept: name them in the section [conversations] of a "
            "TOML file, and set CONTEXTGAUGE_COMPACTION_FILE to its path"
        )
    messages, commands = settings.topic(AGENT_MESSAGES), settings.topic(CONTEXT_COMMANDS)
    if commands.retention_ms >= 0 and not 0 <= messages.retention_ms <= commands.retention_ms:
        raise ConfigError(
            f"{messages.name} is kept for longer than {commands.name}, so text that was deleted "
            "could come back: set CONTEXTGAUGE_COMMANDS_RETENTION_DAYS to "
            f"{settings.messages_retention_days}, and retention.ms={messages.retention_ms} for "
            f"the topic {commands.name}"
        )
    return ConversationsConfig(
        messages_topic=messages.name,
        commands_topic=commands.name,
        group=settings.group_prefix + CONVERSATIONS_GROUP,
        instance_id=settings.instance_id or None,
        kept=read_kept(settings.compaction_file),
        limit_bytes=settings.message_limit_bytes,
    )


async def derive(
    worker: WorkerContext,
    log: Log,
    *,
    allow_dead_letters: bool = False,
    written_bytes: Callable[[NewRecord], int] = letter_bytes,
) -> None:
    """Run a derive worker over a log until it is stopped. Raises StopError.

    `written_bytes` gives how many bytes a record takes in that log.
    """
    from streams.edge.sqlite.values import TemporaryValues  # noqa: PLC0415 -- for this one alone

    config = derive_config(worker.settings, allow_dead_letters=allow_dead_letters)
    ports = DerivePorts(
        **worker.ports,
        log=log,
        state_store=StateStore(log, config.state_topic),
        rules=rules(worker.settings),
        config=config,
        values=TemporaryValues,
        written_bytes=written_bytes,
    )
    await run_derive(ports)


async def project(worker: WorkerContext, log: Log, store: ViewStore) -> None:
    """Run a project worker over a log and a view store until it is stopped.

    Raises StopError.
    """
    ports = ProjectPorts(
        **worker.ports,
        log=log,
        store=store,
        config=project_config(worker.settings),
    )
    await run_project(ports)


async def conversations(worker: WorkerContext, log: Log, store: ConversationStore) -> None:
    """Keep conversations over a log and a store until it is stopped. Raises StopError."""
    ports = ConversationsPorts(
        **worker.ports,
        log=log,
        store=store,
        config=conversations_config(worker.settings),
    )
    await run_conversations(ports)
