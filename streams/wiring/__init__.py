"""The one place where settings become adapters: which Kafka, which Redis, which rules.

What is made here is what the commands run; nothing else in the project chooses an adapter.
"""

import asyncio
import functools
import os
import ssl
import warnings
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import SecretStr

from contextgauge.errors import ConfigError
from contextgauge.kafka.options import KafkaOptions
from contextgauge.kafka.security import KafkaSecurity
from contextgauge.partitioner import partition_of
from contextgauge.tls_files import TlsFiles, context_of
from schemas.topics import (
    AGENT_MESSAGES,
    CONTEXT_COMMANDS,
    CONTEXT_EVENTS,
    CONTEXT_STATE,
    DAY_MS,
    DEAD_LETTERS,
    MIB,
)
from streams.core.derivation.rules import Rules
from streams.edge.files.catalog import bundled
from streams.edge.files.tokens import TokenFile
from streams.edge.kafka.changelog import ChangelogStateStore
from streams.edge.kafka.inspector import KafkaInspector
from streams.edge.kafka.log import KafkaLog
from streams.edge.local_stack.stack import STACK_FOLDER, LocalStack
from streams.edge.redis.access import RedisAccess
from streams.edge.redis.inspector import RedisInspector
from streams.edge.redis.views import RedisViews
from streams.flow import doctor
from streams.flow.derive.config import GROUP as DERIVE_GROUP
from streams.flow.derive.config import DeriveConfig
from streams.flow.derive.worker import run_derive
from streams.flow.project.config import GROUP as PROJECT_GROUP
from streams.flow.project.config import ProjectConfig
from streams.flow.project.worker import run_project
from streams.ports import Clock, Health, Log, Telemetry, ViewStore
from streams.ports.inspection import Failure
from streams.settings import Settings, load_settings
from streams.settings.forms import PREFIX

_STAND_INS = {"kafka": "bootstrap_servers", "redis": "redis_url"}
"""The setting that a service of the local stack stands in for where the variable is not set."""

_BEYOND_SESSION_S = 2.0
"""A worker that lost its place has heard of it so long after the session timeout."""

_BEYOND_TRANSACTION_S = 10.0
"""So long after the transaction timeout a commit's fate is sealed, and no one answers for it."""


class UnsafeConnectionWarning(UserWarning):
    """The settings allow a connection that others could listen to or answer."""


def settings(given: Mapping[str, str] | None = None) -> Settings:
    """Read the settings; what is not set may come from a stack that runs in this project.

    `given` are values by field name that a caller knows better. Raises ConfigError.
    """
    found = {}
    if any(PREFIX + field.upper() not in os.environ for field in _STAND_INS.values()):
        services = LocalStack(STACK_FOLDER).services()
        found = {_STAND_INS[name]: service.address for name, service in services.items()}
    return load_settings(found, given)


def rules(chosen: Settings) -> Rules:
    """Return the rules in force, with the bundled catalog of windows."""
    return Rules(
        catalog=bundled(),
        thresholds=chosen.warning_thresholds,
        configured_windows=chosen.windows,
        default_window=chosen.default_window,
    )


def bootstrap_servers(chosen: Settings) -> str:
    """Return the brokers' addresses. Raises ConfigError where none is named.

    An address that nobody named may be another's service, which must not get transcripts.
    """
    if chosen.bootstrap_servers is None:
        raise ConfigError(_unnamed("Kafka", "bootstrap_servers"))
    return chosen.bootstrap_servers


def redis_url(chosen: Settings) -> str:
    """Return the URL of Redis, a password in it included: `redis_address` is the one to show.

    Raises ConfigError where none is named.
    """
    if chosen.redis_url is None:
        raise ConfigError(_unnamed("Redis", "redis_url"))
    return chosen.redis_url.get_secret_value()


def redis_address(chosen: Settings) -> str:
    """Return the URL of Redis without user and password. Raises ConfigError."""
    parts = urlsplit(redis_url(chosen))
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()


def _unnamed(service: str, field: str) -> str:
    return (
        f"no {service} is named: start one with `contextgauge stack up`, "
        f"or set {PREFIX}{field.upper()}"
    )


def kafka_log(chosen: Settings, client_id: str = "contextgauge") -> KafkaLog:
    """Return the cluster of the settings, not connected yet. Raises ConfigError."""
    return KafkaLog(kafka_options(chosen, client_id))


def kafka_options(chosen: Settings, client_id: str = "contextgauge") -> KafkaOptions:
    """Return how the settings have us talk to the broker. Raises ConfigError."""
    return KafkaOptions(
        bootstrap_servers=bootstrap_servers(chosen),
        client_id=client_id,
        session_timeout_ms=chosen.session_timeout_ms,
        transaction_timeout_ms=chosen.transaction_timeout_ms,
        commit_timeout_s=_commit_timeout_s(chosen),
        # The largest message of any topic, and its headers.
        fetch_bytes=chosen.topic(DEAD_LETTERS).max_message_bytes + MIB,
        replicas=chosen.replicas,
        security=_kafka_security(chosen),
    )


def _kafka_security(chosen: Settings) -> KafkaSecurity:
    protocol = chosen.kafka_security_protocol
    encrypted = not protocol.endswith("plaintext")
    if protocol == "sasl_plaintext":
        warnings.warn(
            f"{PREFIX}KAFKA_SECURITY_PROTOCOL=sasl_plaintext: whoever can listen on the network "
            "reads the messages, and with PLAIN the password; sasl_ssl encrypts",
            UnsafeConnectionWarning,
            stacklevel=2,
        )
    return KafkaSecurity(
        protocol=protocol,
        ssl_context=_context(_tls_files(chosen, "kafka")) if encrypted else None,
        mechanism=chosen.kafka_sasl_mechanism,
        username=chosen.kafka_username,
        password=_revealed(chosen.kafka_password),
    )


def redis_access(chosen: Settings) -> RedisAccess:
    """Return who we are for Redis, and whom we trust. Raises ConfigError."""
    files = _tls_files(chosen, "redis")
    encrypted = redis_url(chosen).startswith("rediss://")
    if encrypted:
        _context(files)  # what is wrong with the files is told now, not at the first connection
    return RedisAccess(
        username=chosen.redis_username,
        password=_revealed(chosen.redis_password),
        password_file=chosen.redis_password_file,
        password_variable=f"{PREFIX}REDIS_PASSWORD_FILE",
        tls=files if encrypted else None,
    )


def _commit_timeout_s(chosen: Settings) -> float:
    return chosen.transaction_timeout_ms / 1_000 + _BEYOND_TRANSACTION_S


def redis_views(chosen: Settings) -> RedisViews:
    """Return the view store of the settings, not connected yet. Raises ConfigError."""
    return RedisViews(redis_url(chosen), chosen.key_prefix, redis_access(chosen))


def _tls_files(chosen: Settings, service: str) -> TlsFiles:
    def file(name: str) -> str | None:
        path: Path | None = getattr(chosen, f"{service}_{name}")
        return None if path is None else str(path)

    return TlsFiles(
        variables=f"{PREFIX}{service.upper()}_",
        ca_file=file("ca_file"),
        certificate_file=file("certificate_file"),
        key_file=file("key_file"),
        key_password=_revealed(getattr(chosen, f"{service}_key_password")),
        check_hostname=getattr(chosen, f"{service}_check_hostname"),
    )


@functools.cache
def _context(files: TlsFiles) -> ssl.SSLContext:
    """Return the context of these files, read once: a process is one client, not a mixture."""
    if not files.check_hostname:
        warnings.warn(
            f"{files.variables}CHECK_HOSTNAME=false: any server whose certificate the same "
            "authority signed is taken for the right one",
            UnsafeConnectionWarning,
            stacklevel=2,
        )
    return context_of(files)


def _revealed(secret: SecretStr | None) -> str | None:
    return None if secret is None else secret.get_secret_value()


def derive_config(chosen: Settings, *, allow_dead_letters: bool = False) -> DeriveConfig:
    """Return what a derive worker is told."""
    return DeriveConfig(
        messages_topic=chosen.topic(AGENT_MESSAGES).name,
        events_topic=chosen.topic(CONTEXT_EVENTS).name,
        state_topic=chosen.topic(CONTEXT_STATE).name,
        dead_topic=chosen.topic(DEAD_LETTERS).name,
        group=chosen.group_prefix + DERIVE_GROUP,
        instance_id=chosen.instance_id or None,
        processes=chosen.derive_processes,
        batch_messages=chosen.batch_messages,
        commit_pause_s=chosen.derive_commit_pause_ms / 1_000,
        limit_bytes=chosen.message_limit_bytes,
        idle_days=chosen.session_idle_days,
        allow_dead_letters=allow_dead_letters,
        commit_timeout_s=_commit_timeout_s(chosen),
        fenced_pause_s=chosen.session_timeout_ms / 1_000 + _BEYOND_SESSION_S,
    )


def project_config(chosen: Settings) -> ProjectConfig:
    """Return what a project worker is told."""
    return ProjectConfig(
        events_topic=chosen.topic(CONTEXT_EVENTS).name,
        group=chosen.group_prefix + PROJECT_GROUP,
        instance_id=chosen.instance_id or None,
        batch_records=chosen.batch_messages,
        idle_ms=chosen.session_idle_days * DAY_MS,
    )


def doctor_services(chosen: Settings, clock: Clock) -> doctor.Services:
    """Return what the doctor asks; where a service is not named rightly, why."""
    try:
        options = kafka_options(chosen, "contextgauge-doctor")
        brokers, log = KafkaInspector(options), KafkaLog(options)
        kafka = None
    except ConfigError as error:
        kafka = Failure("away", str(error))
    try:
        store = RedisInspector(redis_url(chosen), chosen.key_prefix, redis_access(chosen))
        views = redis_views(chosen)
        redis = None
    except ConfigError as error:
        redis = Failure("away", str(error))
    return doctor.Services(
        brokers=kafka or brokers,
        log=kafka or log,
        store=redis or store,
        views=redis or views,
        clock=clock,
        partition_of=partition_of,
    )


def doctor_expected(chosen: Settings) -> doctor.Expected:
    """Return what the doctor holds the services against."""
    return doctor.Expected(
        messages=chosen.topic(AGENT_MESSAGES),
        events=chosen.topic(CONTEXT_EVENTS),
        state=chosen.topic(CONTEXT_STATE),
        dead=chosen.topic(DEAD_LETTERS),
        commands=chosen.topic(CONTEXT_COMMANDS),
        partitions=chosen.partitions,
        replicas=chosen.replicas,
        session_timeout_ms=chosen.session_timeout_ms,
        transaction_timeout_ms=chosen.transaction_timeout_ms,
        message_limit_bytes=chosen.message_limit_bytes,
        derive_group=chosen.group_prefix + DERIVE_GROUP,
        project_group=chosen.group_prefix + PROJECT_GROUP,
        bootstrap_servers=chosen.bootstrap_servers or "HOST:PORT",
    )


async def derive(
    chosen: Settings,
    log: Log,
    *,
    telemetry: Telemetry,
    health: Health,
    clock: Clock,
    stop: asyncio.Event,
    allow_dead_letters: bool = False,
) -> None:
    """Run a derive worker over a log until `stop` is set. Raises StopError."""
    config = derive_config(chosen, allow_dead_letters=allow_dead_letters)
    await run_derive(
        log=log,
        state_store=ChangelogStateStore(log, config.state_topic),
        rules=rules(chosen),
        config=config,
        telemetry=telemetry,
        health=health,
        clock=clock,
        partition_of=partition_of,
        stop=stop,
    )


async def project(
    chosen: Settings,
    log: Log,
    store: ViewStore,
    *,
    telemetry: Telemetry,
    health: Health,
    clock: Clock,
    stop: asyncio.Event,
) -> None:
    """Run a project worker over a log and a view store until `stop` is set. Raises StopError."""
    await run_project(
        log=log,
        store=store,
        config=project_config(chosen),
        telemetry=telemetry,
        health=health,
        clock=clock,
        stop=stop,
    )


def readers(chosen: Settings) -> Callable[[], Mapping[str, str]] | None:
    """Return what tells the names of who may read, by the hashes of their tokens; None: everybody.

    Raises ConfigError for a file that cannot be read.
    """
    if chosen.serve_tokens_file is None:
        return None
    file = TokenFile(chosen.serve_tokens_file, f"{PREFIX}SERVE_TOKENS_FILE")
    file.read()
    return file.read


def is_of_this_machine(host: str) -> bool:
    """Tell whether only this machine reaches an address that is listened on."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
