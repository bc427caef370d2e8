"""Requests of OTLP, protobuf or JSON, to the log records and spans in them; and the answers."""

import hashlib
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
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
from streams.ingest.reading import MOST_MESSAGES, TooManyMessagesError

Form: TypeAlias = Literal["protobuf", "json"]
Kind: TypeAlias = Literal["logs", "traces", "metrics"]

MEDIA_TYPES: Final[Mapping[str, Form]] = {
    "application/x-protobuf": "protobuf",
    "application/json": "json",
}

_NANOS: Final = 1_000_000
"""Nanoseconds of a millisecond."""

_DIGEST_BYTES: Final = 32


class NoTelemetryError(Exception):
    """A body is not a request of OTLP; the text says why."""


def items_of(
    kind: Kind, form: Form, body: bytes, text_key: bytes | None = None
) -> Iterator[TelemetryItem]:
    """Yield what is in a request. Raises NoTelemetryError or TooManyMessagesError.

    With a `text_key` the digests are of that key: texts that are left out cannot be tried against
    them. Metrics are not used: they are not even parsed.
    """
    if kind == "logs":
        yield from _log_records(_parsed(ExportLogsServiceRequest(), form, body), text_key)
    elif kind == "traces":
        yield from _spans(_parsed(ExportTraceServiceRequest(), form, body), text_key)


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


def _log_records(
    request: ExportLogsServiceRequest, text_key: bytes | None
) -> Iterator[TelemetryItem]:
    _check_count(
        len(of_scope.log_records)
        for of_resource in request.resource_logs
        for of_scope in of_resource.scope_logs
    )
    for of_resource in request.resource_logs:
        shared = _ResourceAttributes(of_resource.resource, text_key)
        for of_scope in of_resource.scope_logs:
            for record in of_scope.log_records:
                attributes = shared.below(_attributes(record.attributes))
                named = (record.event_name, _value(record.body), attributes.get("event.name"))
                names = tuple(each for each in named if isinstance(each, str) and each)
                nanos = record.time_unix_nano or record.observed_time_unix_nano
                yield TelemetryItem(names, attributes, _ms(nanos), partial(shared.digest, record))


def _spans(request: ExportTraceServiceRequest, text_key: bytes | None) -> Iterator[TelemetryItem]:
    _check_count(
        len(of_scope.spans)
        for of_resource in request.resource_spans
        for of_scope in of_resource.scope_spans
    )
    for of_resource in request.resource_spans:
        shared = _ResourceAttributes(of_resource.resource, text_key)
        for of_scope in of_resource.scope_spans:
            for span in of_scope.spans:
                attributes = shared.below(_attributes(span.attributes))
                ended_ms = _ms(span.end_time_unix_nano)
                yield TelemetryItem((), attributes, ended_ms, partial(shared.digest, span))


def _check_count(counts: Iterable[int]) -> None:
    if sum(counts) > MOST_MESSAGES:
        raise TooManyMessagesError


class _ResourceAttributes:
    """What all items of a resource share: neither copied nor hashed for each of them."""

    def __init__(self, resource: Resource, text_key: bytes | None) -> None:
        self._attributes = _attributes(resource.attributes)
        shared = repr(sorted(self._attributes.items())).encode("utf-8", "surrogatepass")
        self._hash = hashlib.blake2b(shared, digest_size=_DIGEST_BYTES, key=text_key or b"")

    def below(self, own: dict[str, Any]) -> Mapping[str, Any]:
        """Return an item's attributes: its own, else the resource's."""
        return ChainMap(own, self._attributes)

    def digest(self, item: Message) -> str:
        """Return the hash of an item and its resource."""
        digest = self._hash.copy()
        digest.update(item.SerializeToString(deterministic=True))
        return digest.hexdigest()


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


_RESPONSES: Final[Mapping[Kind, Callable[[], Any]]] = {
    "logs": ExportLogsServiceResponse,
    "traces": ExportTraceServiceResponse,
    "metrics": ExportMetricsServiceResponse,
}
REJECTED: Final[Mapping[Kind, str]] = {
    "logs": "rejected_log_records",
    "traces": "rejected_spans",
    "metrics": "rejected_data_points",
}
"""The counts in partial successes."""


def response_of(kind: Kind, form: Form, rejected: int, message: str) -> bytes:
    """Return the body of an answer: a partial success where something was rejected."""
    response = _RESPONSES[kind]()
    if rejected:
        setattr(response.partial_success, REJECTED[kind], rejected)
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
