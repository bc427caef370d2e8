"""The one place where settings become adapters: which Kafka, which Redis, which rules.

What is made here is what the commands run; nothing else in the project chooses an adapter. A
client is imported by the function that makes it: a command pays only for what it uses. The
modules below this package build the workers, the doctor, the server and the control plane.
"""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from contextgauge.errors import ConfigError
from contextgauge.kafka.connection import (
    bootstrap_servers,
    kafka_security,
    revealed,
    tls_context,
    tls_files,
    unset,
)
from contextgauge.settings.forms import PREFIX
from contextgauge.settings.loading import variable
from contextgauge.settings.local_stack import stack_addresses
from contextgauge.window_catalog import bundled
from schemas.topics import CONTEXT_COMMANDS, DEAD_LETTERS, MIB
from streams.core.derivation.rules_config import Rules
from streams.core.until_compaction import CompactionPoints
from streams.edge.files.runtime_settings import SettingsReader
from streams.ports import started as started
from streams.settings import Settings, load_settings

if TYPE_CHECKING:
    from contextgauge.kafka.options import KafkaOptions
    from schemas.views import SessionView
    from streams.core.costs import PriceLookup
    from streams.edge.commands import LogCommandSink
    from streams.edge.kafka.log import KafkaLog
    from streams.edge.redis.access import RedisAccess
    from streams.edge.redis.asked_contexts import RedisAskedContexts
    from streams.edge.redis.control import RedisControlStore
    from streams.edge.redis.conversations import RedisConversations
    from streams.edge.redis.deployment import RedisDeployment
    from streams.edge.redis.view_store import RedisViews


_STAND_INS = {"kafka": "bootstrap_servers", "redis": "redis_url"}
"""The setting that a service of the local stack stands in for where the variable is not set."""

_BEYOND_TRANSACTION_S = 10.0
"""So long after the transaction timeout a commit's fate is sealed, and no one answers for it."""


def settings() -> Settings:
    """Read the settings; what is not set may come from the local stack.

    Raises ConfigError.
    """
    defaults = {}
    if any(variable(field) not in os.environ for field in _STAND_INS.values()):
        defaults = {_STAND_INS[name]: address for name, address in stack_addresses().items()}
    return load_settings(defaults)


def rules(settings: Settings, *, content: bool = False) -> Rules:
    """Return the rules in force, with the bundled catalog of windows.

    With `content` there are records of what messages contain (R35), whatever the settings.
    """
    return Rules(
        catalog=bundled(),
        thresholds=settings.warning_thresholds,
        configured_windows=settings.windows,
        default_window=settings.default_window,
        content=content or settings.content_records,
    )


def compaction_points(settings: Settings) -> CompactionPoints:
    """Return where compactions are expected by the settings."""
    return CompactionPoints(configured=tuple(sorted(settings.compaction_thresholds.items())))


def local_points(settings: Settings, views: "Iterable[SessionView]") -> CompactionPoints:
    """Return where compactions of sessions of this machine are expected by all settings."""
    reader = SettingsReader(os.environ)
    places = {(view.identity.runtime, view.identity.cwd) for view in views}
    own = {place: reader.settings(*place) for place in sorted(places, key=repr)}
    known = tuple((place, each) for place, each in own.items() if each is not None)
    return compaction_points(settings)._replace(settings=known)


def prices(settings: Settings) -> "PriceLookup":
    """Return what gives a model's price: the file of the settings, else the bundled prices.

    Raises ConfigError.
    """
    from contextgauge.pricing import price_of  # noqa: PLC0415 -- few commands show costs
    from streams.edge.files.prices_file import read_prices  # noqa: PLC0415 -- as above

    return price_of if settings.prices_file is None else read_prices(settings.prices_file).find


def redis_url(settings: Settings) -> str:
    """Return the URL of Redis, a password in it included: `redis_address` is the one to show.

    Raises ConfigError where none is named.
    """
    if settings.redis_url is None:
        raise ConfigError(unset("Redis", "redis_url"))
    return settings.redis_url.get_secret_value()


def redis_address(settings: Settings) -> str:
    """Return the URL of Redis without user and password. Raises ConfigError."""
    parts = urlsplit(redis_url(settings))
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()


def kafka_log(settings: Settings, client_id: str = "contextgauge") -> "KafkaLog":
    """Return the cluster of the settings, not connected yet. Raises ConfigError."""
    from streams.edge.kafka.log import KafkaLog  # noqa: PLC0415 -- loads aiokafka

    return KafkaLog(kafka_options(settings, client_id))


def kafka_options(settings: Settings, client_id: str = "contextgauge") -> "KafkaOptions":
    """Return the options of Kafka clients. Raises ConfigError."""
    from contextgauge.kafka.options import KafkaOptions  # noqa: PLC0415 -- loads aiokafka

    return KafkaOptions(
        bootstrap_servers=bootstrap_servers(settings),
        client_id=client_id,
        session_timeout_ms=settings.session_timeout_ms,
        transaction_timeout_ms=settings.transaction_timeout_ms,
        commit_timeout_s=commit_timeout_s(settings),
        # The largest message of any topic, and its headers.
        fetch_bytes=settings.topic(DEAD_LETTERS).max_message_bytes + MIB,
        batch_limit_bytes=settings.most_unpacked_bytes(),
        replicas=settings.replicas,
        security=kafka_security(settings),
    )


def redis_access(settings: Settings) -> "RedisAccess":
    """Return Redis credentials and TLS. Raises ConfigError."""
    from streams.edge.redis.access import RedisAccess  # noqa: PLC0415 -- loads redis

    files = tls_files(settings, "redis")
    encrypted = redis_url(settings).startswith("rediss://")
    if encrypted:
        tls_context(files)  # fails now and not at the first connection
    return RedisAccess(
        username=settings.redis_username,
        password=revealed(settings.redis_password),
        password_file=settings.redis_password_file,
        password_variable=f"{PREFIX}REDIS_PASSWORD_FILE",
        tls=files if encrypted else None,
    )


def commit_timeout_s(settings: Settings) -> float:
    """Return how long a commit may take, seconds: beyond the transaction's own timeout."""
    return settings.transaction_timeout_ms / 1_000 + _BEYOND_TRANSACTION_S


def redis_views(settings: Settings) -> "RedisViews":
    """Return the view store of the settings, not connected yet. Raises ConfigError."""
    from streams.edge.redis.view_store import RedisViews  # noqa: PLC0415 -- loads redis

    return RedisViews(redis_url(settings), settings.key_prefix, redis_access(settings))


def command_sink(settings: Settings, client_id: str = "contextgauge-commands") -> "LogCommandSink":
    """Return the sink of commands, not connected yet. Raises ConfigError."""
    from streams.edge.commands import LogCommandSink  # noqa: PLC0415 -- loads pydantic

    return LogCommandSink(kafka_log(settings, client_id), settings.topic(CONTEXT_COMMANDS).name)


def control_store(settings: Settings) -> "RedisControlStore":
    """Return the store of the control plane's views, not connected yet. Raises ConfigError."""
    from streams.edge.redis.control import RedisControlStore  # noqa: PLC0415 -- loads redis

    return RedisControlStore(redis_url(settings), settings.key_prefix, redis_access(settings))


def deployment_store(settings: Settings) -> "RedisDeployment":
    """Return where it is noted whose the keys are, not connected yet. Raises ConfigError."""
    from streams.edge.redis.deployment import RedisDeployment  # noqa: PLC0415 -- loads redis

    return RedisDeployment(redis_url(settings), settings.key_prefix, redis_access(settings))


def asked_contexts(settings: Settings) -> "RedisAskedContexts":
    """Return what remembers which agents ask for their context. Raises ConfigError."""
    from streams.edge.redis.asked_contexts import (  # noqa: PLC0415 -- loads redis
        RedisAskedContexts,
    )

    return RedisAskedContexts(redis_url(settings), settings.key_prefix, redis_access(settings))


def redis_conversations(settings: Settings) -> "RedisConversations":
    """Return the store of conversations, not connected yet. Raises ConfigError."""
    from streams.edge.redis.conversations import (  # noqa: PLC0415 -- loads redis
        RedisConversations,
    )

    return RedisConversations(redis_url(settings), settings.key_prefix, redis_access(settings))
