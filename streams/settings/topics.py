"""Settings of topics: partitions, replicas, retention; prefixes of groups and keys."""

from typing import Annotated

from pydantic import AfterValidator, Field

from contextgauge.settings.forms import FOR_EVER, KAFKA_NAME, SettingsPart
from schemas.topics import (
    AGENT_MESSAGES,
    CONTEXT_COMMANDS,
    DAY_MS,
    DEAD_LETTERS,
    DEFAULT_PARTITIONS,
    MIB,
)


def _checked(days: int) -> int:
    if days == 0:
        raise ValueError("would delete every record at once")
    return days


_Days = Annotated[int, Field(ge=FOR_EVER, le=36_500), AfterValidator(_checked)]


class TopicSettings(SettingsPart):
    """Partitions, replicas and retention of the topics; prefixes of groups and keys."""

    group_prefix: str = Field(
        default="",
        pattern=KAFKA_NAME,
        max_length=200,
        description="Prefix of consumer groups: letters, digits, dot, underscore, hyphen.",
    )
    key_prefix: str = Field(
        default="cg",
        pattern=r"^[a-zA-Z0-9._-]+$",
        max_length=200,
        description="First part of every Redis key: letters, digits, dot, underscore, hyphen.",
    )

    partitions: int = Field(
        default=DEFAULT_PARTITIONS,
        ge=1,
        le=10_000,
        description="Partitions of the topics that `contextgauge topics create` creates, 1 to "
        "10 000: the unit of scale. It cannot be changed later.",
    )
    replicas: int = Field(
        default=3,
        ge=1,
        le=32_767,
        description="Replicas of each partition of the topics that `contextgauge topics create` "
        "creates, 1 to 32 767; at most as many as there are brokers.",
    )
    batch_limit_bytes: int | None = Field(
        default=None,
        ge=MIB,
        le=2048 * MIB,
        description="Most that a batch of records may unpack to, 1 MiB to 2 GiB, at least 2 MiB "
        "above the largest message. A larger batch of messages becomes a dead letter. If "
        "unset: 64 MiB, or twice the largest message.",
    )
    messages_retention_days: _Days = Field(
        default=AGENT_MESSAGES.retention_ms // DAY_MS,
        description="Retention of agent.messages, in days; -1: unlimited.",
    )
    events_retention_days: _Days = Field(
        default=FOR_EVER,
        description="Retention of context.events, in days; -1: unlimited, as a rebuild of the "
        "views requires.",
    )
    dead_retention_days: _Days = Field(
        default=DEAD_LETTERS.retention_ms // DAY_MS,
        description="Retention of agent.messages.dead, in days; -1: unlimited.",
    )
    commands_retention_days: _Days = Field(
        default=CONTEXT_COMMANDS.retention_ms // DAY_MS,
        description="Retention of context.commands, in days; -1: unlimited.",
    )
