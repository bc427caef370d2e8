"""Requests of OTLP, as exporters send them."""

from collections.abc import Mapping
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

AT_NS = 1_781_000_000_000_000_000
"""When the first item of a request was made."""


def _pairs(attributes: Mapping[str, Any]) -> list[KeyValue]:
    return [KeyValue(key=key, value=_any(value)) for key, value in attributes.items()]


def _any(value: object) -> AnyValue:
    match value:
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=value)
        case float():
            return AnyValue(double_value=value)
    return AnyValue(string_value=str(value))


def logs(resource: Mapping[str, Any], *events: tuple[str, Mapping[str, Any]]) -> Any:
    """Return a request with log records: their bodies and attributes."""
    request = ExportLogsServiceRequest()
    of_resource = request.resource_logs.add()
    of_resource.resource.attributes.extend(_pairs(resource))
    scope = of_resource.scope_logs.add()
    for number, (body, attributes) in enumerate(events):
        record = scope.log_records.add(time_unix_nano=AT_NS + number * 1_000_000)
        record.body.string_value = body
        record.trace_id = bytes(range(16))
        record.attributes.extend(_pairs(attributes))
    return request


def spans(resource: Mapping[str, Any], *calls: Mapping[str, Any]) -> Any:
    """Return a request with spans, by their attributes."""
    request = ExportTraceServiceRequest()
    of_resource = request.resource_spans.add()
    of_resource.resource.attributes.extend(_pairs(resource))
    scope = of_resource.scope_spans.add()
    for number, attributes in enumerate(calls):
        span = scope.spans.add(name="chat", end_time_unix_nano=AT_NS, span_id=bytes([number] * 8))
        span.attributes.extend(_pairs(attributes))
    return request
