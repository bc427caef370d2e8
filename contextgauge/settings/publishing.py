"""Settings of publishing: topic prefix, message limit, local state."""

import os
from collections.abc import Mapping

from pydantic import ConfigDict, Field

from contextgauge.errors import ConfigError
from contextgauge.messages import MESSAGE_LIMIT_BYTES
from contextgauge.settings import kafka
from contextgauge.settings.forms import KAFKA_NAME, PREFIX, SettingsPart
from contextgauge.settings.kafka import KafkaSettings
from contextgauge.settings.loading import load, misspelled, variable
from contextgauge.settings.local_stack import stack_addresses
from contextgauge.units import MIB

_BIGGEST_MESSAGE_BYTES = 512 * MIB
"""Broker and worker hold a Kafka record in one block of memory; larger ones are impractical."""

_KAFKA = PREFIX + "KAFKA_"
"""Every variable with this prefix belongs to a publisher: an unknown one is an error."""

_MISSPELLED = 0.8
"""Similarity from which a variable counts as misspelled. A publisher ignores the settings of the
pipeline, and none of them resembles one of its own so closely."""


class PublishingSettings(SettingsPart):
    """Settings that publishing shares with the pipeline."""

    topic_prefix: str = Field(
        default="",
        pattern=KAFKA_NAME,
        max_length=200,
        description="Prefix of every topic name: letters, digits, dot, underscore, hyphen.",
    )
    message_limit_bytes: int = Field(
        default=MESSAGE_LIMIT_BYTES,
        ge=64 * 1024,
        le=_BIGGEST_MESSAGE_BYTES,
        description="Largest message that is derived, 65 536 bytes to 512 MiB. A larger one "
        "becomes a dead letter; `contextgauge publish` shortens it. Topics accept 1 MiB more.",
    )
    state_folder: str | None = Field(
        default=None,
        min_length=1,
        description="Folder of the checkpoints of `contextgauge publish`, the secret of "
        "`--no-text`, what `contextgauge view` has read and, outside of a checkout, the local "
        "stack. If unset: `contextgauge` in "
        "`XDG_STATE_HOME`, else in `~/.local/state`.",
    )


class PublisherSettings(KafkaSettings, PublishingSettings):
    """The settings of a `Publisher`: a part of the pipeline's, under the same variables."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


def publisher_settings(overrides: Mapping[str, str]) -> PublisherSettings:
    """Read a publisher's settings. Raises ConfigError, for a misspelled variable too."""
    known = [variable(name) for name in PublisherSettings.model_fields]
    wrong = [
        f"{name} is not a setting: " + ("unset it" if near is None else f"did you mean {near}?")
        for name, near in misspelled(known, _MISSPELLED)
        if near is not None or name.startswith(_KAFKA)
    ]
    if wrong:
        raise ConfigError("\n".join(wrong))
    defaults = {}
    if "bootstrap_servers" not in overrides and variable("bootstrap_servers") not in os.environ:
        address = stack_addresses().get("kafka")
        if address is not None:
            defaults["bootstrap_servers"] = address
    return load(
        PublisherSettings,
        defaults=defaults,
        overrides=overrides,
        inconsistencies=kafka.inconsistencies,
    )
