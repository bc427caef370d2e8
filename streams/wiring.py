"""The one place where settings become adapters: which Kafka, which Redis, which rules.

What is made here is what the commands run; nothing else in the project chooses an adapter.
"""

import asyncio
import os

from schemas.topics import AGENT_MESSAGES, CONTEXT_EVENTS, CONTEXT_STATE, DEAD_LETTERS, MIB
from streams.core.rules import Rules
from streams.edge.catalog import bundled
from streams.edge.changelog import ChangelogStateStore
from streams.edge.clock import SystemClock
from streams.edge.kafka_common import KafkaOptions
from streams.edge.kafka_log import KafkaLog
from streams.edge.local_stack import STACK_FOLDER, LocalStack
from streams.edge.partitioner import partition_of
from streams.flow.derive import run_derive
from streams.flow.derive_config import GROUP as DERIVE_GROUP
from streams.flow.derive_config import DeriveConfig
from streams.ports import Telemetry
from streams.settings import PREFIX, Settings, load_settings

_STAND_INS = {"kafka": "bootstrap_servers", "redis": "redis_url"}
"""The setting that a service of the local stack stands in for where the variable is not set."""

_BEYOND_SESSION_S = 2.0
"""A worker that lost its place has heard of it so long after the session timeout."""


def settings() -> Settings:
    """Read the settings; what is not set may come from a stack that runs in this project.

    Raises ConfigError.
    """
    found = {}
    if any(PREFIX + field.upper() not in os.environ for field in _STAND_INS.values()):
        services = LocalStack(STACK_FOLDER).services()
        found = {_STAND_INS[name]: service.address for name, service in services.items()}
    return load_settings(found)


def rules(chosen: Settings) -> Rules:
    """Return the rules in force, with the bundled catalog of windows."""
    return Rules(
        catalog=bundled(),
        thresholds=chosen.warning_thresholds,
        configured_windows=chosen.windows,
        default_window=chosen.default_window,
    )


def kafka_log(chosen: Settings, client_id: str = "contextgauge") -> KafkaLog:
    """Return the cluster of the settings, not connected yet."""
    return KafkaLog(
        KafkaOptions(
            bootstrap_servers=chosen.bootstrap_servers,
            client_id=client_id,
            session_timeout_ms=chosen.session_timeout_ms,
            transaction_timeout_ms=chosen.transaction_timeout_ms,
            # The largest message of any topic, and its headers.
            fetch_bytes=chosen.topic(DEAD_LETTERS).max_message_bytes + MIB,
            replicas=chosen.replicas,
        )
    )


async def derive(
    chosen: Settings, telemetry: Telemetry, stop: asyncio.Event, *, allow_dead_letters: bool
) -> None:
    """Run a derive worker over Kafka until `stop` is set. Raises StopError."""
    log = kafka_log(chosen, "contextgauge-derive")
    state_topic = chosen.topic(CONTEXT_STATE).name
    try:
        await run_derive(
            log=log,
            state_store=ChangelogStateStore(log, state_topic),
            rules=rules(chosen),
            config=DeriveConfig(
                messages_topic=chosen.topic(AGENT_MESSAGES).name,
                events_topic=chosen.topic(CONTEXT_EVENTS).name,
                state_topic=state_topic,
                dead_topic=chosen.topic(DEAD_LETTERS).name,
                group=chosen.group_prefix + DERIVE_GROUP,
                instance_id=chosen.instance_id or None,
                batch_messages=chosen.batch_messages,
                limit_bytes=chosen.message_limit_bytes,
                idle_days=chosen.session_idle_days,
                allow_dead_letters=allow_dead_letters,
                fenced_pause_s=chosen.session_timeout_ms / 1_000 + _BEYOND_SESSION_S,
            ),
            telemetry=telemetry,
            clock=SystemClock(),
            partition_of=partition_of,
            stop=stop,
        )
    finally:
        await log.stop()
