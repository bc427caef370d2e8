"""Builds what the doctor examines, and what it compares that with."""

from contextgauge.errors import ConfigError
from schemas.topics import (
    AGENT_MESSAGES,
    CONTEXT_COMMANDS,
    CONTEXT_EVENTS,
    CONTEXT_STATE,
    DEAD_LETTERS,
)
from streams.edge.files.transcript_probe import TranscriptProbe
from streams.edge.ingest_probe import IngestProbe
from streams.edge.kafka.inspector import KafkaInspector
from streams.edge.kafka.log import KafkaLog
from streams.edge.redis.inspector import RedisInspector
from streams.flow import doctor
from streams.flow.control.alerts.alert_worker import GROUP as ALERTS_GROUP
from streams.flow.control.commands.command_ports import GROUP as COMPACTION_GROUP
from streams.flow.control.decisions.compaction_decisions import GROUP as DECISIONS_GROUP
from streams.flow.derive.config import GROUP as DERIVE_GROUP
from streams.flow.otel.otel_worker import GROUP as OTEL_GROUP
from streams.flow.project.config import GROUP as PROJECT_GROUP
from streams.ports import Clock
from streams.ports.inspection import Failure
from streams.settings import Settings
from streams.wiring import kafka_options, redis_access, redis_conversations, redis_url, redis_views
from streams.wiring.stored import own_folders


def doctor_services(settings: Settings, clock: Clock) -> doctor.Services:
    """Return what the doctor asks; where a service is not named rightly, why."""
    try:
        options = kafka_options(settings, "contextgauge-doctor")
        brokers, log = KafkaInspector(options), KafkaLog(options)
        kafka = None
    except ConfigError as error:
        kafka = _failure("Kafka", settings.bootstrap_servers, error)
    try:
        store = RedisInspector(redis_url(settings), settings.key_prefix, redis_access(settings))
        views, conversations = redis_views(settings), redis_conversations(settings)
        redis = None
    except ConfigError as error:
        redis = _failure("Redis", settings.redis_url, error)
    return doctor.Services(
        brokers=kafka or brokers,
        log=kafka or log,
        store=redis or store,
        views=redis or views,
        conversations=redis or conversations,
        clock=clock,
        ingest=IngestProbe(settings.ingest_host, settings.ingest_port),
        transcripts=TranscriptProbe(own_folders()),
    )


def _failure(service: str, address: object, error: ConfigError) -> Failure:
    if address is None:
        return Failure("unset", f"{service} is not configured")
    return Failure("away", str(error))


def doctor_expected(settings: Settings) -> doctor.Expected:
    """Return what the doctor holds the services against."""
    return doctor.Expected(
        messages=settings.topic(AGENT_MESSAGES),
        events=settings.topic(CONTEXT_EVENTS),
        state=settings.topic(CONTEXT_STATE),
        dead=settings.topic(DEAD_LETTERS),
        commands=settings.topic(CONTEXT_COMMANDS),
        partitions=settings.partitions,
        replicas=settings.replicas,
        session_timeout_ms=settings.session_timeout_ms,
        transaction_timeout_ms=settings.transaction_timeout_ms,
        message_limit_bytes=settings.message_limit_bytes,
        derive_group=settings.group_prefix + DERIVE_GROUP,
        project_group=settings.group_prefix + PROJECT_GROUP,
        topic_prefix=settings.topic_prefix,
        control_groups=[
            settings.group_prefix + group
            for group in (ALERTS_GROUP, DECISIONS_GROUP, COMPACTION_GROUP)
        ],
        readers={
            settings.group_prefix + ALERTS_GROUP: "control",
            settings.group_prefix + DECISIONS_GROUP: "control",
            settings.group_prefix + OTEL_GROUP: "otel",
        },
        bootstrap_servers=settings.bootstrap_servers or "HOST:PORT",
    )
