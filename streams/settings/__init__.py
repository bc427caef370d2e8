"""The settings: environment variables that begin with `CONTEXTGAUGE_`.

Every value is validated when it is read; an error names the variable and says what to do. An
unknown variable with the prefix is an error too, so that a mistyped name is not ignored.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from pydantic import ConfigDict, SecretStr

from contextgauge.errors import ConfigError
from contextgauge.settings import kafka
from contextgauge.settings.forms import FOR_EVER, PREFIX
from contextgauge.settings.kafka import KafkaSettings
from contextgauge.settings.loading import load, misspelled, variable
from contextgauge.settings.publishing import PublishingSettings
from schemas.topics import (
    AGENT_MESSAGES,
    CONTEXT_COMMANDS,
    CONTEXT_EVENTS,
    CONTEXT_STATE,
    DAY_MS,
    DEAD_LETTERS,
    MESSAGE_LIMIT_BYTES,
    MIB,
    Topic,
)
from streams.settings import ingest, redis
from streams.settings.derivation import DerivationSettings
from streams.settings.ingest import IngestSettings
from streams.settings.reading import ReadingSettings
from streams.settings.redis import RedisSettings
from streams.settings.serving import ServingSettings
from streams.settings.topics import TopicSettings
from streams.settings.workers import WorkerSettings


class Settings(
    WorkerSettings,
    ServingSettings,
    IngestSettings,
    ReadingSettings,
    DerivationSettings,
    PublishingSettings,
    TopicSettings,
    RedisSettings,
    KafkaSettings,
):
    """All settings, as read from the environment. Frozen; durations and sizes name their unit."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    def topic(self, topic: Topic) -> Topic:
        """Return the topic under its full name, with the retention and sizes in force."""
        days = {
            AGENT_MESSAGES.name: self.messages_retention_days,
            CONTEXT_EVENTS.name: self.events_retention_days,
            CONTEXT_STATE.name: FOR_EVER,
            DEAD_LETTERS.name: self.dead_retention_days,
            CONTEXT_COMMANDS.name: self.commands_retention_days,
        }[topic.name]
        # The topics' own figures are for the default limit; another one moves them along.
        more = 0 if topic is CONTEXT_COMMANDS else self.message_limit_bytes - MESSAGE_LIMIT_BYTES
        return replace(
            topic,
            name=self.topic_prefix + topic.name,
            retention_ms=_days_to_ms(days),
            max_message_bytes=topic.max_message_bytes + more,
        )

    def most_unpacked_bytes(self) -> int:
        """Return what a batch of records may unpack to."""
        return self.batch_limit_bytes or max(USUAL_BATCH_BYTES, 2 * self.message_limit_bytes)

    def at(self, bootstrap_servers: str, redis_url: str) -> "Settings":
        """Return these settings for services of this machine: no TLS, no user, nothing secret."""
        plain = {name: Settings.model_fields[name].default for name in CONNECTION_FIELDS}
        own = {"bootstrap_servers": bootstrap_servers, "redis_url": SecretStr(redis_url)}
        return self.model_copy(update=plain | own)


USUAL_BATCH_BYTES = 64 * MIB
"""Producers' batches have a mebibyte or less, and no topic takes one of more than nine."""

CONNECTION_FIELDS = frozenset(KafkaSettings.model_fields) | frozenset(RedisSettings.model_fields)
"""The settings that say where Kafka and Redis are and how to connect to them."""


def _days_to_ms(days: int) -> int:
    return FOR_EVER if days == FOR_EVER else days * DAY_MS


def load_settings(defaults: Mapping[str, str] | None = None) -> Settings:
    """Read the settings. `defaults` are values by field name for variables that are not set.

    Secrets that are in files are read. Raises ConfigError, one line per wrong variable.
    """
    unknown = list(_unknown_variables())
    if unknown:
        raise ConfigError("\n".join(unknown))
    return load(Settings, defaults=defaults or {}, inconsistencies=_inconsistencies)


def _inconsistencies(settings: Settings) -> Iterator[str]:
    least = settings.topic(DEAD_LETTERS).max_message_bytes
    if settings.most_unpacked_bytes() < least:
        yield (
            f"{PREFIX}BATCH_LIMIT_BYTES={settings.batch_limit_bytes} is below {least}: a batch of "
            f"one message of {PREFIX}MESSAGE_LIMIT_BYTES could not be read. Raise it, or unset it"
        )
    yield from kafka.inconsistencies(settings)
    yield from redis.inconsistencies(settings)
    yield from ingest.inconsistencies(settings)


_BUILD_VARIABLE = PREFIX + "COMPILE"
"""Asks for a compiled wheel, and may still be set where that runs."""

_MISSPELLED = 0.6
"""Likeness from which a similar setting is suggested."""


def _unknown_variables() -> Iterator[str]:
    known = [*(variable(name) for name in Settings.model_fields), _BUILD_VARIABLE]
    for name, near in misspelled(known, _MISSPELLED):
        hint = "unset it" if near is None else f"did you mean {near}?"
        yield f"{name} is not a setting: {hint}"
