"""Requests of OTLP, protobuf or JSON, to the log records and spans in them; and the answers."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias

from google.protobuf import json_format
from google.protobuf.message import DecodeError, Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsPartialSuccess,
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from streams import codec
from streams.ingest.otlp.telemetry_item import TelemetryItem

Form: TypeAlias = Literal["protobuf", "json"]
Kind: TypeAlias = Literal["logs", "traces", "metrics"]

MEDIA_TYPES: Final[Mapping[str, Form]] = {
    "application/x-protobuf": "protobuf",
    "application/json": "json",
}

_NANOS: Final = 1_000_000
"""Nanoseconds of a millisecond."""


class NoTelemetryError(Exception):
    """A body is not a request of OTLP; the text says why."""


def items_of(kind: Kind, form: Form, body: bytes) -> Iterator[TelemetryItem]:
    """Yield what is in a request. Raises NoTelemetryError."""
    if kind == "logs":
        yield from _log_records(_parsed(ExportLogsServiceRequest(), form, body))
    elif kind == "traces":
        yield from _spans(_parsed(ExportTraceServiceRequest(), form, body))


def _parsed(request: Any, form: Form, body: bytes) -> Any:  # noqa: ANN401 -- any message
    try:
        if form == "protobuf":
            request.ParseFromString(body)
        elif body.lstrip().startswith(b"{"):
            json_format.Parse(body, request, ignore_unknown_fields=True)
        else:
            raise NoTelemetryError("it is no JSON object")
    except (DecodeError, json_format.ParseError, UnicodeDecodeError) as error:
        raise NoTelemetryError(str(error)[:200]) from None
    return request


def _log_records(request: ExportLogsServiceRequest) -> Iterator[TelemetryItem]:
    for of_resource in request.resource_logs:
        shared = _of_resource(of_resource.resource)
        for of_scope in of_resource.scope_logs:
            for record in of_scope.log_records:
                attributes = {**shared, **_attributes(record.attributes)}
                named = (record.event_name, _value(record.body), attributes.get("event.name"))
                names = tuple(each for each in named if isinstance(each, str) and each)
                nanos = record.time_unix_nano or record.observed_time_unix_nano
                yield TelemetryItem(names, attributes, _ms(nanos), _digest(shared, record))


def _spans(request: ExportTraceServiceRequest) -> Iterator[TelemetryItem]:
    for of_resource in request.resource_spans:
        shared = _of_resource(of_resource.resource)
        for of_scope in of_resource.scope_spans:
            for span in of_scope.spans:
                attributes = {**shared, **_attributes(span.attributes)}
                ended_ms = _ms(span.end_time_unix_nano)
                yield TelemetryItem((), attributes, ended_ms, _digest(shared, span))


def _of_resource(resource: Resource) -> dict[str, Any]:
    return _attributes(resource.attributes)


def _attributes(pairs: Any) -> dict[str, Any]:  # noqa: ANN401 -- a repeated field
    return {pair.key: _value(pair.value) for pair in pairs if isinstance(pair, KeyValue)}


def _value(value: AnyValue) -> object:
    """Return a text, a number or a flag; None for what no attribute that is read is."""
    kind = value.WhichOneof("value")
    if kind in {"string_value", "bool_value", "int_value", "double_value"}:
        plain: object = getattr(value, kind)
        return plain
    return None


def _ms(nanos: int) -> int | None:
    return nanos // _NANOS if nanos else None


def _digest(shared: Mapping[str, Any], item: Message) -> str:
    digest = hashlib.sha256(item.SerializeToString(deterministic=True))
    digest.update(repr(sorted(shared.items())).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


_RESPONSES: Final[Mapping[Kind, Callable[[], Any]]] = {
    "logs": ExportLogsServiceResponse,
    "traces": ExportTraceServiceResponse,
    "metrics": ExportMetricsServiceResponse,
}
_REJECTED: Final[Mapping[Kind, str]] = {
    "logs": "rejected_log_records",
    "traces": "rejected_spans",
    "metrics": "rejected_data_points",
}


def response_of(kind: Kind, form: Form, rejected: int, message: str) -> bytes:
    """Return the body of an answer: a partial success where something was rejected."""
    response = _RESPONSES[kind]()
    if rejected:
        setattr(response.partial_success, _REJECTED[kind], rejected)
        response.partial_success.error_message = message
    return _written(response, form)


def status_of(form: Form, message: str) -> bytes:
    """Return the body of an error, a `google.rpc.Status`.

    On the wire, a partial success is one: an integer in field 1, the message in field 2.
    """
    if form == "json":
        return codec.dumps({"message": message})
    return ExportLogsPartialSuccess(error_message=message).SerializeToString()


def _written(message: Message, form: Form) -> bytes:
    if form == "protobuf":
        return message.SerializeToString()
    return json_format.MessageToJson(message, indent=None).encode()
