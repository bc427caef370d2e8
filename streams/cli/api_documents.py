"""The OpenAPI documents of the servers, from their routes, without Kafka and Redis."""

from typing import Any

from contextgauge.clock import SystemClock
from contextgauge.delivery.outgoing import MessageFormat
from contextgauge.delivery.sender import DeliveryConfig
from schemas.topics import AGENT_MESSAGES, MESSAGE_LIMIT_BYTES
from streams.edge.memory.log import MemoryLog
from streams.edge.memory.view_store import MemoryViews
from streams.edge.telemetry.metrics import PrometheusTelemetry
from streams.edge.telemetry.server import answers
from streams.ingest import app as ingest
from streams.ingest.context import Ingesting
from streams.ingest.intake import Intake
from streams.ports import Health
from streams.serve.api import app as serve
from streams.serve.api.serving import Serving


def api_documents() -> dict[str, dict[str, Any]]:
    """Return the documents by the names of their files."""
    clock, telemetry = SystemClock(), PrometheusTelemetry("serve", "worker")
    health = Health("schemas", clock, 0.0)
    server: dict[str, Any] = {
        "clock": clock,
        "telemetry": telemetry,
        "health": health,
        "probe": answers(telemetry, health),
        "report": lambda *_: None,
    }
    form = MessageFormat(MESSAGE_LIMIT_BYTES)
    config = DeliveryConfig(
        topic=AGENT_MESSAGES.name, form=form, when_full="drop_new", max_messages=1, max_bytes=1
    )
    ingesting = Ingesting(
        **server,
        intake=Intake(MemoryLog(clock), clock, config, lambda *_: None),
        form=form,
        body_limit_bytes=0,
        waiting_bytes=0,
    )
    return {
        "openapi.ingest.json": ingest.api_document(ingest.create_ingest_app(ingesting)),
        "openapi.serve.json": serve.api_document(
            serve.create_app(Serving(**server, reader=MemoryViews()))
        ),
    }
