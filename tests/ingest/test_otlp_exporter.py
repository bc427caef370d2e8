"""The exporters of OpenTelemetry for Python and Node.js, pointed at `contextgauge ingest`."""

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pytest
from opentelemetry._logs import SeverityNumber
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from streams.edge.telemetry.server import listening, port_of
from tests.commands import Command
from tests.e2e.test_publisher import create, written
from tests.npm_files import ROOT, fetched
from tests.patience import PATIENCE_S
from tests.serve.redis_kit import Served, until

pytestmark = [pytest.mark.extended, pytest.mark.service]


@pytest.fixture
async def ingest(command: Command, kafka: str, prefix: str) -> AsyncIterator[Served]:
    """A server that is ready."""
    with listening("127.0.0.1", 0) as listener:
        port = port_of(listener)
    await create(kafka, prefix)
    served = Served(command, port, "ingest", BOOTSTRAP_SERVERS=kafka, TOPIC_PREFIX=prefix)
    await served.start()
    await until(served.url, "/readyz", 200)
    yield served
    assert served.end(signal.SIGTERM) == 0


@contextmanager
def _logging(url: str, service: str, compression: Compression) -> Iterator[LoggerProvider]:
    exporter = OTLPLogExporter(f"{url}/v1/logs", compression=compression)
    provider = LoggerProvider(Resource({"service.name": service, "service.version": "1.2.3"}))
    provider.add_log_record_processor(BatchLogRecordProcessor(exporter))
    yield provider
    provider.shutdown()


def _export_logs(url: str) -> None:
    with _logging(url, "claude-code", Compression.Gzip) as provider:
        logger = provider.get_logger("com.anthropic.claude_code.events")
        for number in range(3):
            logger.emit(
                timestamp=1_781_000_000_000_000_000 + number,
                severity_number=SeverityNumber.INFO,
                body="claude_code.api_request",
                attributes={
                    "event.name": "api_request",
                    "session.id": "exported",
                    "query_source": "repl_main_thread",
                    "model": "claude-sonnet-4-5",
                    "input_tokens": 1_000 * (number + 1),
                },
            )


def _export_spans(url: str) -> None:
    exporter = OTLPSpanExporter(f"{url}/v1/traces")
    provider = TracerProvider(resource=Resource({"service.name": "my-agent"}))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    with provider.get_tracer("agent").start_as_current_span("chat my-model") as span:
        span.set_attribute("gen_ai.operation.name", "chat")
        span.set_attribute("gen_ai.conversation.id", "spanned")
        span.set_attribute("gen_ai.usage.input_tokens", 4_000)
    assert provider.force_flush()
    provider.shutdown()


def _export_metrics(url: str) -> None:
    reader = PeriodicExportingMetricReader(OTLPMetricExporter(f"{url}/v1/metrics"))
    provider = MeterProvider([reader])
    provider.get_meter("agent").create_counter("calls").add(1)
    assert provider.force_flush()
    provider.shutdown()


def _export_by_python(url: str) -> None:
    for export in (_export_logs, _export_spans, _export_metrics):
        export(url)


def _export_by_node(url: str, form: str) -> None:
    packages = fetched(ROOT / "build/node/node_modules", "make frameworks-setup")
    script = ROOT / "tests/frameworks/node/export.cjs"
    environment = {**os.environ, "NODE_PATH": str(packages)}
    done = subprocess.run(
        ["node", script, url, form],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    "export",
    [
        pytest.param(_export_by_python, id="python"),
        pytest.param(partial(_export_by_node, form="http"), id="node-json"),
        pytest.param(partial(_export_by_node, form="proto"), id="node-protobuf"),
    ],
)
async def test_the_sdks_exporters_need_nothing_but_the_address(
    ingest: Served,
    kafka: str,
    prefix: str,
    caplog: pytest.LogCaptureFixture,
    export: Callable[[str], None],
) -> None:
    await asyncio.to_thread(export, ingest.url)
    assert caplog.messages == []
    bodies = [json.loads(record.value or b"") for _, record in await written(kafka, prefix)]
    usages = {
        (body["session_id"], *body["message"]["usage"].values())
        for body in bodies
        if body["type"] == "assistant"
    }
    assert usages == {
        ("exported", 1_000),
        ("exported", 2_000),
        ("exported", 3_000),
        ("spanned", 4_000),
    }
    assert {body["runtime"] for body in bodies if body["type"] == "system"} == {
        "claude-code",
        "other",
    }
