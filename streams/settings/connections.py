"""Where Kafka and Redis are, and the names that are used there."""

from pydantic import Field

from contextgauge.settings.forms import KAFKA_NAME
from contextgauge.settings.kafka import KafkaSettings
from streams.settings.redis import RedisSettings


class ConnectionSettings(RedisSettings, KafkaSettings):
    """Where Kafka and Redis are, and what things are called there."""

    group_prefix: str = Field(
        default="",
        pattern=KAFKA_NAME,
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
