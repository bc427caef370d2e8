"""The server of messages under test, over a log in memory."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import orjson
import pytest
from prometheus_client import generate_latest

from contextgauge.clock import SystemClock
from contextgauge.delivery.outgoing import MessageFormat
from contextgauge.delivery.sender import DeliveryConfig
from schemas.topics import AGENT_MESSAGES
from streams.edge.telemetry.metrics import PrometheusTelemetry
from streams.edge.telemetry.server import answers
from streams.ingest.app import create_ingest_app
from streams.ingest.context import Ingesting
from streams.ingest.intake import Intake
from streams.ports import Clock, Health, LogRecord
from tests.doubles.log import FaultyLog
from tests.library.delivery_kit import memory, until, written

BODY_LIMIT = 100_000
WAITING = 300_000
MESSAGE_LIMIT = 20_000


@dataclass
class IngestServer:
    """A server, its clients' side, and what it reported."""

    client: httpx.AsyncClient
    log: FaultyLog
    intake: Intake
    telemetry: PrometheusTelemetry
    reported: list[tuple[str, BaseException]] = field(default_factory=list)

    async def post(
        self, content: object, path: str = "/v1/messages", **headers: str
    ) -> httpx.Response:
        """Send bytes as they are, anything else as JSON; `content_type="…"` is a header."""
        body = content if isinstance(content, bytes) else orjson.dumps(content)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        named.setdefault("content-type", "application/json")
        return await self.client.post(path, content=body, headers=named)

    def records(self) -> list[LogRecord]:
        """Return what arrived."""
        return written(self.log)

    def values(self) -> list[Any]:
        """Return the messages that arrived."""
        return [orjson.loads(record.value or b"") for record in self.records()]

    def metrics(self) -> str:
        """Return the figures, as Prometheus reads them."""
        return generate_latest(self.telemetry.registry).decode()


@asynccontextmanager
async def ingest_server(
    *,
    readers: Callable[[], Mapping[str, str]] | None = None,
    requests_per_s: int = 0,
    answer_s: float = 5.0,
    text_key: bytes | None = None,
    clock: Clock | None = None,
    log: FaultyLog | None = None,
) -> AsyncIterator[IngestServer]:
    """Run a server over a log in memory."""
    log, clock = log or await memory(AGENT_MESSAGES), clock or SystemClock()
    telemetry = PrometheusTelemetry("ingest", "worker")
    health = Health("ingest", clock, 60.0)
    health.worker("member")
    form = MessageFormat(MESSAGE_LIMIT, text_key)
    config = DeliveryConfig(
        topic=AGENT_MESSAGES.name,
        form=form,
        when_full="drop_new",
        max_messages=1_000,
        max_bytes=WAITING,
    )
    intake = Intake(log, clock, config, lambda *_: None, answer_s)
    reported: list[tuple[str, BaseException]] = []
    app = create_ingest_app(
        Ingesting(
            clock=clock,
            telemetry=telemetry,
            health=health,
            probe=answers(telemetry, health),
            report=lambda doing, error: reported.append((doing, error)),
            readers=readers,
            requests_per_s=requests_per_s,
            settings="CONTEXTGAUGE_INGEST",
            host_setting="CONTEXTGAUGE_INGEST_HOST",
            requests_metric="ingest_requests",
            seconds_metric="ingest_request_seconds",
            intake=intake,
            form=form,
            body_limit_bytes=BODY_LIMIT,
            waiting_bytes=WAITING,
        )
    )
    transport = httpx.ASGITransport(app=app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://localhost") as client,
    ):
        if not log.away:
            await until(lambda: intake.is_connected)
        yield IngestServer(client, log, intake, telemetry, reported)


def message(number: int, session: str = "s", **more: object) -> dict[str, object]:
    """Return a message with an id."""
    return {
        "type": "user",
        "session_id": session,
        "uuid": f"{session}-{number}",
        "message": {"role": "user", "content": "hi"},
        **more,
    }


def lines(*messages: object) -> bytes:
    """Return messages on a line each."""
    return b"".join(orjson.dumps(each) + b"\n" for each in messages)


def zipped(content: bytes) -> bytes:
    """Return what gzip makes of it."""
    return gzip.compress(content)


def hold_acknowledgements(
    server: IngestServer,
    gate: asyncio.Event,
    monkeypatch: pytest.MonkeyPatch,
    is_sending: asyncio.Event | None = None,
) -> None:
    """Let the broker acknowledge nothing before the gate opens."""
    producer = type(server.log.producer())
    flush = producer.flush

    async def held(self: object) -> None:
        if is_sending is not None:
            is_sending.set()
        await gate.wait()
        await flush(self)  # type: ignore[arg-type]

    monkeypatch.setattr(producer, "flush", held)
