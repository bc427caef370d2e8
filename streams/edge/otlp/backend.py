"""A backend over OTLP/HTTP, by the exporters of OpenTelemetry's SDK and its own variables.

The SDK's processors drop what a backend has not accepted; so events go to the exporter itself, and
their sender tries again. Sums of figures are kept, so those lose nothing in an outage.
"""

import asyncio
import os
from collections.abc import Sequence
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import requests
import structlog
from google.protobuf.message import DecodeError
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.metrics import Counter, Histogram
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExportResult
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from contextgauge import __version__
from contextgauge.errors import ConfigError, RetryError
from streams.codec.otel_figures import INSTRUMENTS
from streams.ports.otel import Figure, OutgoingEvent, Severity

_SCOPE: Final = "contextgauge"
_NANOS: Final = 1_000_000
"""Nanoseconds of a millisecond."""
_ACCEPTED: Final = range(200, 300)
"""The exporter takes a redirection for an acceptance, and does not follow it."""
_STOPPING_S: Final = 5.0
"""How long the last figures are tried to be sent: a backend that is away must not hold the end."""
_SEVERITIES: Final[dict[Severity, SeverityNumber]] = {
    "info": SeverityNumber.INFO,
    "warn": SeverityNumber.WARN,
    "error": SeverityNumber.ERROR,
}

logger = structlog.get_logger()


class ExportedSignals(NamedTuple):
    """What is exported."""

    events: bool
    figures: bool


def signals() -> ExportedSignals:
    """Return what the SDK's variables ask for. Raises ConfigError."""
    for variable in (
        "OTEL_EXPORTER_OTLP_PROTOCOL",
        "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL",
        "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL",
    ):
        protocol = os.environ.get(variable, "").strip() or "http/protobuf"
        if protocol != "http/protobuf":
            raise ConfigError(
                f"{variable}={protocol}: only http/protobuf is spoken. Unset it, and name the "
                "HTTP endpoint of the collector, often port 4318"
            )
    wanted = ExportedSignals(_is_wanted("OTEL_LOGS_EXPORTER"), _is_wanted("OTEL_METRICS_EXPORTER"))
    if not any(wanted):
        raise ConfigError(
            "OTEL_LOGS_EXPORTER and OTEL_METRICS_EXPORTER are both none: nothing would be exported"
        )
    return wanted


def _is_wanted(variable: str) -> bool:
    exporter = os.environ.get(variable, "").strip() or "otlp"
    if exporter not in {"otlp", "none"}:
        raise ConfigError(f"{variable}={exporter}: it is otlp, or none to export nothing of this")
    return exporter == "otlp"


class OtlpBackend:
    """The collector that the variables name. `instance` tells this process from all others."""

    def __init__(self, wanted: ExportedSignals, instance: str) -> None:
        self._resource = Resource.create(
            {
                "service.name": os.environ.get("OTEL_SERVICE_NAME", "").strip() or _SCOPE,
                "service.version": __version__,
                "service.instance.id": instance,
            }
        )
        self._scope = InstrumentationScope(_SCOPE, __version__)
        self._answer: requests.Response | None = None
        self._events = self._event_exporter() if wanted.events else None
        self._provider = self._meter_provider() if wanted.figures else None
        self._instruments = {} if self._provider is None else _instruments(self._provider)

    def _event_exporter(self) -> OTLPLogExporter:
        session = requests.Session()
        session.hooks["response"].append(self._note)
        exporter = OTLPLogExporter(session=session)
        parts = urlsplit(exporter._endpoint)  # noqa: SLF001 -- no public way to what the variables say
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ConfigError(
                "OTEL_EXPORTER_OTLP_ENDPOINT is not a valid address: write http://host:4318 or "
                "https://host"
            )
        logger.info("exporting", to=f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}")
        return exporter

    def _meter_provider(self) -> MeterProvider:
        return MeterProvider(
            [PeriodicExportingMetricReader(OTLPMetricExporter())],
            self._resource,
            shutdown_on_exit=False,
        )

    async def send(self, events: Sequence[OutgoingEvent]) -> int:
        if self._events is None or not events:
            return 0
        records = [self._record_of(event) for event in events]
        return await asyncio.to_thread(self._export, self._events, records)

    def _export(self, exporter: OTLPLogExporter, records: Sequence[ReadableLogRecord]) -> int:
        self._answer = None
        result = exporter.export(records)
        answer = self._answer
        if answer is None:
            raise RetryError("the collector cannot be reached, or did not answer in time")
        if result is not LogRecordExportResult.SUCCESS or answer.status_code not in _ACCEPTED:
            raise RetryError(f"the collector answered {answer.status_code}")
        return _rejected(answer)

    def _note(self, answer: requests.Response, **_: object) -> None:
        self._answer = answer

    def _record_of(self, event: OutgoingEvent) -> ReadableLogRecord:
        record = LogRecord(
            timestamp=None if event.time_ms is None else event.time_ms * _NANOS,
            observed_timestamp=event.observed_ms * _NANOS,
            severity_number=_SEVERITIES[event.severity],
            severity_text=event.severity.upper(),
            body=event.name,  # what backends show of a record
            attributes=event.attributes,
            event_name=event.name,
        )
        return ReadableLogRecord(record, self._resource, self._scope)

    def record(self, figures: Sequence[Figure]) -> None:
        for figure in figures:
            instrument = self._instruments.get(figure.instrument)
            if isinstance(instrument, Counter):
                instrument.add(figure.value, figure.attributes)
            elif instrument is not None:
                instrument.record(figure.value, figure.attributes)

    async def stop(self) -> None:
        if self._provider is not None:
            await asyncio.to_thread(self._provider.shutdown, _STOPPING_S * 1_000)
        if self._events is not None:
            self._events.shutdown()  # type: ignore[no-untyped-call]  # it has no annotations


def _instruments(provider: MeterProvider) -> dict[str, Counter | Histogram]:
    meter = provider.get_meter(_SCOPE, __version__)
    made: dict[str, Counter | Histogram] = {}
    for name, instrument in INSTRUMENTS.items():
        unit, description = instrument.unit, instrument.description
        if instrument.kind == "counter":
            made[name] = meter.create_counter(name, unit, description)
        else:
            made[name] = meter.create_histogram(
                name, unit, description, explicit_bucket_boundaries_advisory=instrument.buckets
            )
    return made


def _rejected(answer: requests.Response) -> int:
    """Return how many records a partial success rejects: sending them again would be no use."""
    try:
        response = ExportLogsServiceResponse.FromString(answer.content)
    except DecodeError:
        return 0  # of a proxy, say: the status is what counts
    rejected = response.partial_success.rejected_log_records
    if rejected:
        logger.warning(
            "the collector rejects events",
            events=rejected,
            reason=response.partial_success.error_message[:200],
        )
    return max(0, rejected)
