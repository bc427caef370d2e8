"""The settings: environment variables that begin with `CONTEXTGAUGE_`, each with its reason.

Every value is checked when it is read, and an error names the variable and says what to do. A
variable of the prefix that is not a setting is an error too: a typing error would otherwise be a
setting that silently does nothing.
"""

import difflib
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import get_args

from pydantic import SecretStr, ValidationError
from pydantic_settings import SettingsConfigDict

from contextgauge.errors import ConfigError
from schemas.topics import (
    AGENT_MESSAGES,
    CONTEXT_COMMANDS,
    CONTEXT_EVENTS,
    CONTEXT_STATE,
    DAY_MS,
    DEAD_LETTERS,
    MESSAGE_LIMIT_BYTES,
    Topic,
)
from streams.edge.files.secrets import read_secret
from streams.settings import kafka, redis
from streams.settings.alerts import AlertSettings
from streams.settings.connections import ConnectionSettings
from streams.settings.derivation import DerivationSettings
from streams.settings.forms import FOR_EVER, PREFIX
from streams.settings.kafka import KafkaSettings
from streams.settings.publishing import PublishingSettings
from streams.settings.redis import RedisSettings
from streams.settings.serving import ServingSettings
from streams.settings.topics import TopicSettings
from streams.settings.workers import WorkerSettings


class Settings(
    WorkerSettings,
    ServingSettings,
    DerivationSettings,
    PublishingSettings,
    AlertSettings,
    TopicSettings,
    ConnectionSettings,
):
    """All settings, as read from the environment. Frozen; durations and sizes name their unit."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, frozen=True, extra="forbid", hide_input_in_errors=True
    )

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

    def at(self, bootstrap_servers: str, redis_url: str) -> "Settings":
        """Return these settings for services of this machine: no TLS, no user, nothing secret."""
        plain = {name: Settings.model_fields[name].default for name in CONNECTION_FIELDS}
        own = {"bootstrap_servers": bootstrap_servers, "redis_url": SecretStr(redis_url)}
        return self.model_copy(update=plain | own)


CONNECTION_FIELDS = frozenset(KafkaSettings.model_fields) | frozenset(RedisSettings.model_fields)
"""The settings that say where Kafka and Redis are and how to connect to them."""

_SECRETS = tuple(
    name
    for name, item in Settings.model_fields.items()
    if item.annotation is not None and SecretStr in (item.annotation, *get_args(item.annotation))
)
"""Settings that may hold a password: nothing ever shows their value. Where there is a setting of
the same name and `_file`, the secret may come from a file instead."""


def _days_to_ms(days: int) -> int:
    return FOR_EVER if days == FOR_EVER else days * DAY_MS


def load_settings(
    found: Mapping[str, str] | None = None, given: Mapping[str, str] | None = None
) -> Settings:
    """Read the settings. `found` are values by field name for variables that are not set.

    `given` are values by field name that come before the environment's.

    Secrets that are in files are read. Raises ConfigError, one line per wrong variable.
    """
    unknown = list(_unknown_variables())
    if unknown:
        raise ConfigError("\n".join(unknown))
    values = {
        name: value for name, value in (found or {}).items() if _variable(name) not in os.environ
    }
    values |= _secrets_in_files()
    values |= given or {}
    try:
        chosen = Settings(**values)  # type: ignore[arg-type]  # texts, as in the environment
    except ValidationError as error:
        raise ConfigError("\n".join(_explain(error))) from None
    wrong = [*kafka.inconsistencies(chosen), *redis.inconsistencies(chosen)]
    if wrong:
        raise ConfigError("\n".join(wrong))
    return chosen


def _secrets_in_files() -> dict[str, str]:
    """Return the secrets whose files are named. Raises ConfigError."""
    found, wrong = {}, []
    for name in _SECRETS:
        variable = _variable(f"{name}_file")
        path = os.environ.get(variable)
        if path is None:
            continue
        if not path:
            wrong.append(f"{variable} is empty: name a file, or unset it")
        elif _variable(name) in os.environ:
            wrong.append(f"{_variable(name)} and {variable} are both set: keep one of them")
        else:
            try:
                found[name] = read_secret(Path(path), variable)
            except ConfigError as error:
                wrong.append(str(error))
    if wrong:
        raise ConfigError("\n".join(wrong))
    return found


def _variable(field: str) -> str:
    return PREFIX + field.upper()


_OF_THE_BUILD = PREFIX + "COMPILE"
"""Asks for a compiled wheel, and may still be set where that runs."""


def _unknown_variables() -> Iterator[str]:
    known = [*(_variable(name) for name in Settings.model_fields), _OF_THE_BUILD]
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
        elif item["type"] == "string_too_short":
            said = "is empty"
        value = os.environ.get(_variable(field), "")
        # An address with a user in front may have a password there.
        hidden = field in _SECRETS or "@" in value or not value
        shown = "" if hidden else f"={value[:80]!r}"
        yield (
            f"{_variable(field)}{shown} {said}. "
            f"{Settings.model_fields[field].description} Correct it, or unset it for the default."
        )
