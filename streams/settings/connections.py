"""Where Kafka and Redis are, and the names that are used there."""

from urllib.parse import urlsplit

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings

from streams.settings.forms import KAFKA_NAME


class ConnectionSettings(BaseSettings):
    """Where Kafka and Redis are, and what things are called there."""

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
        pattern=KAFKA_NAME,
        max_length=200,
        description="In front of every topic's name: letters, digits, dot, underscore, hyphen.",
    )
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
