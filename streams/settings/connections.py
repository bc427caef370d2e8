"""Where Kafka and Redis are, and the prefixes of topics, groups and keys."""

from pydantic import Field

from contextgauge.settings.forms import KAFKA_NAME
from contextgauge.settings.kafka import KafkaSettings
from streams.settings.redis import RedisSettings


class ConnectionSettings(RedisSettings, KafkaSettings):
    """Where Kafka and Redis are, and the prefixes of topics, groups and keys."""

    group_prefix: str = Field(
        default="",
        pattern=KAFKA_NAME,
        max_length=200,
        description="Prefix of consumer groups and transactional ids: letters, digits, dot, "
        "underscore, hyphen.",
    )
    key_prefix: str = Field(
        default="cg",
        pattern=r"^[a-zA-Z0-9._-]+$",
        max_length=200,
        description="First part of every Redis key: letters, digits, dot, underscore, hyphen.",
    )
