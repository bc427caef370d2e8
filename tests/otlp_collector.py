"""A collector of OpenTelemetry of a test's own: it parses what it is sent, as backends do."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import KeyValue

from tests.web_kit import web_server


class Collector:
    """What came, in its order. `status` is its answer, `rejected` how many it will not take."""

    def __init__(self) -> None:
        self.url = ""
        self.status = 200
        self.rejected = 0
        self.requests = 0
        self.events: list[dict[str, Any]] = []
        """Attributes, with `event`, `time_unix_nano`, and those of the resource."""
        self.figures: dict[str, list[dict[str, Any]]] = {}
        """By instrument: attributes of the last points, with `sum` and `count`."""
        self.headers: list[dict[str, str]] = []

    def ids(self) -> list[str]:
        """Return the ids of the events, in the order in which they came."""
        return [event["log.record.uid"] for event in self.events]

    async def handle(self, request: web.Request) -> web.Response:
        """Answer an export."""
        self.requests += 1
        self.headers.append(dict(request.headers))
        body = await request.read()
        if self.status != 200:
            return web.Response(status=self.status, headers={"location": "https://elsewhere.test"})
        if request.path == "/v1/metrics":
            self._take_figures(ExportMetricsServiceRequest.FromString(body))
            return _answer(ExportMetricsServiceResponse())
        assert request.path == "/v1/logs"
        self._take_events(ExportLogsServiceRequest.FromString(body))
        response = ExportLogsServiceResponse()
        response.partial_success.rejected_log_records = self.rejected
        return _answer(response)

    def _take_events(self, request: ExportLogsServiceRequest) -> None:
        for of_resource in request.resource_logs:
            shared = _plain(of_resource.resource.attributes)
            for of_scope in of_resource.scope_logs:
                for record in of_scope.log_records:
                    own = {"event": record.event_name, "time_unix_nano": record.time_unix_nano}
                    self.events.append({**shared, **own, **_plain(record.attributes)})

    def _take_figures(self, request: ExportMetricsServiceRequest) -> None:
        for of_resource in request.resource_metrics:
            for of_scope in of_resource.scope_metrics:
                for metric in of_scope.metrics:
                    points: list[dict[str, Any]] = [
                        {**_plain(point.attributes), "sum": point.as_int}
                        for point in metric.sum.data_points
                    ]
                    points += [
                        {**_plain(point.attributes), "sum": point.sum, "count": point.count}
                        for point in metric.histogram.data_points
                    ]
                    self.figures[metric.name] = points


def _answer(response: Any) -> web.Response:
    return web.Response(body=response.SerializeToString(), content_type="application/x-protobuf")


def _plain(pairs: Any) -> dict[str, Any]:
    return {pair.key: _value(pair) for pair in pairs}


def _value(pair: KeyValue) -> Any:
    return getattr(pair.value, pair.value.WhichOneof("value") or "string_value")


@asynccontextmanager
async def collecting() -> AsyncIterator[Collector]:
    """Run a collector."""
    collector = Collector()
    async with web_server(collector.handle) as collector.url:
        yield collector
