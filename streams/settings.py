"""The settings: environment variables that begin with `CONTEXTGAUGE_`, each with its reason.

Every value is checked when it is read, and an error names the variable and says what to do. A
variable of the prefix that is not a setting is an error too: a typing error would otherwise be a
setting that silently does nothing.
"""

import difflib
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from schemas.topics import (
    AGENT_MESSAGES,
    CONTEXT_COMMANDS,
    CONTEXT_EVENTS,
    CONTEXT_STATE,
    DAY_MS,
    DEAD_LETTERS,
    DEFAULT_PARTITIONS,
    MESSAGE_LIMIT_BYTES,
    MIB,
    Topic,
)
from streams.core.errors import ConfigError
from streams.core.rules import DEFAULT_THRESHOLDS, DEFAULT_WINDOW
from streams.edge import codec

PREFIX = "CONTEXTGAUGE_"

FOR_EVER = -1
"""A retention of this many days keeps for ever."""

_SECRET = frozenset({"redis_url"})
"""Settings that may hold a password: an error never shows their value."""

_BIGGEST_MESSAGE_BYTES = 512 * MIB
"""A Kafka record is one piece of memory in broker and worker; beyond this neither is at ease."""

_KAFKA_NAME = r"^[a-zA-Z0-9._-]*$"
"""What Kafka allows in the name of a topic."""

_Days = Annotated[int, Field(ge=FOR_EVER, le=36_500)]


class Settings(BaseSettings):
    """All settings, as read from the environment. Frozen; durations and sizes name their unit."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, frozen=True, extra="forbid", hide_input_in_errors=True
    )

    bootstrap_servers: str | None = Field(
        default=None,
        pattern=r"^[^\s,:]+:\d+(,[^\s,:]+:\d+)*$|^\[[0-9a-fA-F:]+\]:\d+$",
        description="Kafka brokers to begin with: host:port, several by commas. Not set, a stack "
        "that `contextgauge stack up` started is used; there is no other default.",
    )
    redis_url: str | None = Field(
        default=None,
        description="Redis, as redis://[user:password@]host:port/database, rediss:// for TLS, or "
        "unix://path. Not set, a stack that `contextgauge stack up` started is used; there is no "
        "other default.",
    )
    topic_prefix: str = Field(
        default="",
        pattern=_KAFKA_NAME,
        max_length=200,
        description="In front of every topic's name: letters, digits, dot, underscore, hyphen.",
    )
    group_prefix: str = Field(
        default="",
        pattern=_KAFKA_NAME,
        max_length=200,
        description="In front of the names of consumer groups and transactional ids: letters, "
        "digits, dot, underscore, hyphen.",
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
        description="Partitions of the topics that `contextgauge topics create` makes, 1 to "
        "10 000: the unit of scale. It cannot be changed later.",
    )
    replicas: int = Field(
        default=3,
        ge=1,
        le=32_767,
        description="Copies of each partition of the topics that `contextgauge topics create` "
        "makes, 1 to 32 767; at most as many as there are brokers.",
    )
    default_window: int = Field(
        default=DEFAULT_WINDOW,
        ge=1,
        description="Window in tokens, above 0, assumed for a model that nothing is known of.",
    )
    windows: Annotated[dict[str, int], NoDecode] = Field(
        default_factory=dict,
        description="Windows that you know better, as a JSON object from model to tokens, such as "
        '{"my-model": 128000}. They win over all other sources.',
    )
    warning_thresholds: Annotated[tuple[int, ...], NoDecode] = Field(
        default=DEFAULT_THRESHOLDS,
        min_length=1,
        description="Percent used at which a warning is given, ascending whole numbers above 0, "
        "such as 80,90.",
    )
    messages_retention_days: _Days = Field(
        default=AGENT_MESSAGES.retention_ms // DAY_MS,
        description="Days that agent.messages is kept; -1 for ever.",
    )
    events_retention_days: _Days = Field(
        default=FOR_EVER,
        description="Days that context.events is kept; -1 for ever, which a rebuild of the views "
        "needs.",
    )
    dead_retention_days: _Days = Field(
        default=DEAD_LETTERS.retention_ms // DAY_MS,
        description="Days that agent.messages.dead is kept; -1 for ever.",
    )
    commands_retention_days: _Days = Field(
        default=CONTEXT_COMMANDS.retention_ms // DAY_MS,
        description="Days that context.commands is kept; -1 for ever.",
    )
    message_limit_bytes: int = Field(
        default=MESSAGE_LIMIT_BYTES,
        ge=64 * 1024,
        le=_BIGGEST_MESSAGE_BYTES,
        description="Largest message that is derived from, 65 536 bytes to 512 MiB. A larger one "
        "is a dead letter; `contextgauge publish` shortens it. Topics take 1 MiB more.",
    )
    session_idle_days: int = Field(
        default=90,
        ge=1,
        le=36_500,
        description="A session that was idle for so many days of its partition's time leaves the "
        "deriver's state and the views.",
    )
    session_timeout_ms: int = Field(
        default=10_000,
        ge=1_000,
        le=1_800_000,
        description="A worker silent for so long loses its partitions to others, 1 000 to "
        "1 800 000; brokers allow 6 000 and more by default.",
    )
    transaction_timeout_ms: int = Field(
        default=10_000,
        ge=1_000,
        le=900_000,
        description="The broker aborts a deriver's transaction that is open for so long, 1 000 to "
        "900 000. Until then readers wait behind a dead worker's transaction.",
    )
    batch_messages: int = Field(
        default=2_000,
        ge=1,
        le=100_000,
        description="Most messages that are derived in one transaction, and most records that are "
        "folded into the views at once, 1 to 100 000.",
    )
    instance_id: str = Field(
        default="",
        pattern=_KAFKA_NAME,
        max_length=200,
        description="A name of this worker's own, which makes it a static member of its group: "
        "restarted within the session timeout it gets its partitions back without a rebalance. "
        "No two workers may share one; empty: none.",
    )
    metrics_host: str = Field(
        default="127.0.0.1",
        min_length=1,
        description="Address that a worker's metrics are served on; 0.0.0.0 for all.",
    )
    metrics_port: int = Field(
        default=0,
        ge=0,
        le=65_535,
        description="Port that a worker's metrics are served on; 0: any free one, which the log "
        "tells. Two workers on one machine need two.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least severe log lines shown: debug, info, warning or error."
    )
    log_format: Literal["auto", "console", "json"] = Field(
        default="auto",
        description="console: for people; json: one object a line; auto: console on a terminal, "
        "else json.",
    )

    @field_validator("windows", mode="before")
    @classmethod
    def _parse_windows(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        try:
            parsed = codec.loads(value)
        except ValueError as error:
            raise ValueError(f"is not JSON ({error})") from error
        if not isinstance(parsed, dict):
            raise ValueError("is not a JSON object")  # noqa: TRY004 -- pydantic reports ValueError
        return parsed

    @field_validator("windows")
    @classmethod
    def _check_windows(cls, value: dict[str, int]) -> dict[str, int]:
        for model, tokens in value.items():
            if not model or tokens < 1:
                raise ValueError(f"gives the model {model!r} a window of {tokens} tokens")
        return value

    @field_validator("warning_thresholds", mode="before")
    @classmethod
    def _parse_thresholds(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        parts = value.strip().removeprefix("[").removesuffix("]").split(",")
        return tuple(part.strip() for part in parts if part.strip())

    @field_validator("warning_thresholds")
    @classmethod
    def _check_thresholds(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if value[0] < 1 or any(low >= high for low, high in pairwise(value)):
            raise ValueError(f"does not ascend from above 0: {', '.join(map(str, value))}")
        return value

    @field_validator("redis_url")
    @classmethod
    def _check_redis_url(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value)
        if parts.scheme not in {"redis", "rediss", "unix"}:
            raise ValueError("does not begin with redis://, rediss:// or unix://")
        if parts.scheme != "unix":
            _ = parts.port  # raises ValueError where it is no number of a port
        return value

    @field_validator(
        "messages_retention_days",
        "events_retention_days",
        "dead_retention_days",
        "commands_retention_days",
    )
    @classmethod
    def _check_days(cls, value: int) -> int:
        if value == 0:
            raise ValueError("would delete every record at once")
        return value

    def topic(self, topic: Topic) -> Topic:
        """Return the topic under its full name, with the retention and sizes in force."""
        days = {
            AGENT_MESSAGES.name: self.messages_retention_days,
            CONTEXT_EVENTS.name: self.events_retention_days,
            CONTEXT_STATE.name: FOR_EVER,
            DEAD_LETTERS.name: self.dead_retention_days,
            CONTEXT_COMMANDS.name: self.commands_retention_days,
        }[topic.name]
        # The topics' own figures are for the default limit; a greater one moves them along.
        more = 0 if topic is CONTEXT_COMMANDS else self.message_limit_bytes - MESSAGE_LIMIT_BYTES
        return replace(
            topic,
            name=self.topic_prefix + topic.name,
            retention_ms=_days_to_ms(days),
            max_message_bytes=topic.max_message_bytes + max(more, 0),
        )


def _days_to_ms(days: int) -> int:
    return FOR_EVER if days == FOR_EVER else days * DAY_MS


def load_settings(found: Mapping[str, str] | None = None) -> Settings:
    """Read the settings. `found` are values by field name for variables that are not set.

    Raises ConfigError, one line per wrong variable.
    """
    unknown = list(_unknown_variables())
    if unknown:
        raise ConfigError("\n".join(unknown))
    values = {
        name: value for name, value in (found or {}).items() if _variable(name) not in os.environ
    }
    try:
        return Settings(**values)  # type: ignore[arg-type]  # texts, parsed like the environment's
    except ValidationError as error:
        raise ConfigError("\n".join(_explain(error))) from None


def _variable(field: str) -> str:
    return PREFIX + field.upper()


def _unknown_variables() -> Iterator[str]:
    known = [_variable(name) for name in Settings.model_fields]
    for name in sorted(os.environ):
        if name.startswith(PREFIX) and name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
            hint = f"did you mean {near[0]}?" if near else "unset it"
            yield f"{name} is not a setting: {hint}"


def _explain(error: ValidationError) -> Iterator[str]:
    told = set()
    for item in error.errors(include_url=False):
        field = str(item["loc"][0])
        if field in told:  # what follows from the first error of a variable is no news
            continue
        told.add(field)
        said = item["msg"].removeprefix("Value error, ").removeprefix("Input ")
        if item["type"] == "string_pattern_mismatch":
            said = "is not of the form that is asked for"
        value = os.environ.get(_variable(field), "")
        shown = "" if field in _SECRET or not value else f"={value[:80]!r}"
        yield (
            f"{_variable(field)}{shown} {said}. "
            f"{Settings.model_fields[field].description} Correct it, or unset it for the default."
        )
