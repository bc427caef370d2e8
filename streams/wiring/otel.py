"""Builds and runs the worker that sends records to OpenTelemetry.

A module of its own because Faust and OpenTelemetry's SDK take a second to import.
"""

import os
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Final

from schemas.topics import CONTEXT_EVENTS
from streams import wiring
from streams.edge.faust.stream import FaustStream
from streams.edge.otlp.backend import ExportedSignals, OtlpBackend
from streams.flow.common.retry import RetryLoop
from streams.flow.common.together import together
from streams.flow.common.topic_watch import known_topics
from streams.flow.control.session_owners import AgentLookup, OwnerOf, no_owner
from streams.flow.control.topics_watch import watch_until_stopped
from streams.flow.otel.otel_worker import GROUP, OtelPorts, OtelWorker
from streams.wiring.context import WorkerContext

_CLIENT_ID: Final = "contextgauge-otel"


async def send_records(
    worker: WorkerContext, wanted: ExportedSignals, since_ms: Callable[[], int]
) -> None:
    """Send records until it is stopped. Raises StopError, ConfigError.

    `since_ms` as of `FaustStream`; what was once begun is exported however late.
    """
    settings = worker.settings
    topic = settings.topic(CONTEXT_EVENTS).name
    async with AsyncExitStack() as exits:
        backend = OtlpBackend(
            wanted, settings.instance_id or f"{socket.gethostname()}-{os.getpid()}"
        )
        exits.push_async_callback(backend.stop)
        log = wiring.kafka_log(settings, _CLIENT_ID)
        exits.push_async_callback(log.stop)
        worker.health.worker("joining")
        retry = RetryLoop(worker, "kafka")
        await retry.run(log.start)
        topics = await retry.run(known_topics, log, worker.clock, [topic])
        owner_of: OwnerOf = no_owner
        if settings.redis_url is not None:
            views = wiring.redis_views(settings)
            exits.push_async_callback(views.stop)
            owner_of = AgentLookup(views, worker.clock).owner_of
        stream = FaustStream(
            wiring.kafka_options(settings, _CLIENT_ID),
            topic,
            settings.group_prefix + GROUP,
            settings.instance_id or None,
            since_ms,
            lambda: 0,
            topic_id=topics[topic].id,
        )
        ports = OtelPorts(
            **worker.ports,
            stream=stream,
            backend=backend,
            owner_of=owner_of,
            with_events=wanted.events,
        )
        await together([watch_until_stopped(worker, log, topics), OtelWorker(ports).run()])
