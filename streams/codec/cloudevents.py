"""Records as CloudEvents 1.0: binary mode on Kafka, structured mode in files, and back."""

import dataclasses
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any, Final
from urllib.parse import quote

from pydantic import TypeAdapter, ValidationError

from contextgauge.errors import VersionError
from contextgauge.frozen import fields_of, maker
from contextgauge.json_codec import LONG_NUMBER, Encoded, dumps, loads, loads_exactly, utf8
from contextgauge.ports import Headers, NewRecord
from schemas.records import (
    DATA_CLASS_BY_KIND,
    SCHEMA_VERSION,
    SPEC_VERSION,
    Record,
    RecordData,
    event_type,
)
from streams import compiled

_TYPE_NAMES: Final = {kind: event_type(kind) for kind in DATA_CLASS_BY_KIND}
_METADATA: Final = b'"metadata":'
_EDITS: Final = b'"edits":'
"""In records: where parts of a message are."""
_KINDS: Final = {name: kind for kind, name in _TYPE_NAMES.items()}
_SPEC_VERSION_HEADER: Final = ("ce_specversion", SPEC_VERSION.encode())
_TYPE_HEADERS: Final = {kind: ("ce_type", name.encode()) for kind, name in _TYPE_NAMES.items()}
_make_record: Final = maker(Record)
_ATTRIBUTES: Final = ("specversion", "type", "id", "sequence", "rules", "time")
_HEADERS: Final = tuple(f"ce_{name}" for name in _ATTRIBUTES)
_MOST_DIGITS: Final = 19
"""Of a number of 64 bits: Python refuses to read thousands."""
_READ: Final = frozenset(_HEADERS)
_CONTENT_TYPE_HEADER: Final = ("content-type", b"application/json")


OPTIONAL_FIELDS: Final[dict[type[RecordData], tuple[str, ...]]] = {
    cls: tuple(field.name for field in dataclasses.fields(cls) if field.default is None)
    for cls in DATA_CLASS_BY_KIND.values()
}
"""Fields that have a default: they are left out where they are null. A new field is one of them, so
that records without it stay as they are."""


@cache
def _reader(kind: str) -> Callable[[object], Any]:
    """Return what reads a kind's data: made when it is needed, as all of them take 50 ms."""
    return TypeAdapter(DATA_CLASS_BY_KIND[kind]).validator.validate_python


def _loads_data(value: bytes) -> Any:
    """Parse a record's data; numbers that are copied from a message keep every digit."""
    if (value.find(_METADATA) >= 0 or value.find(_EDITS) >= 0) and LONG_NUMBER.search(value):
        return loads_exactly(value)
    return loads(value)


def rfc3339(time_ms: int) -> str:
    """Format milliseconds since 1970 as RFC 3339 in UTC with milliseconds."""
    seconds = time_ms // 1000
    return f"{_to_seconds(seconds)}.{str(1000 + time_ms - seconds * 1000)[1:]}Z"


@lru_cache(maxsize=4096)
def _to_seconds(seconds: int) -> str:
    # Records of one batch lie close together.
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"


def parse_rfc3339(text: str) -> int:
    """Return milliseconds since 1970 of what `rfc3339` wrote."""
    moment = datetime.fromisoformat(text)
    return int(moment.timestamp()) * 1000 + moment.microsecond // 1000


def source(session_id: str) -> str:
    """Return the CloudEvents source of a session."""
    return _sources(session_id)[0]


def source_header(session_id: str) -> tuple[str, bytes]:
    """Return the header with a session's source."""
    return _sources(session_id)[1]


_CACHED_CHARACTERS: Final = 256
"""Longer ids are none that anyone has; remembering them could take gigabytes."""


def _sources(session_id: str) -> tuple[str, tuple[str, bytes]]:
    """Return a session's source, and its header."""
    short = len(session_id) <= _CACHED_CHARACTERS
    return (_remembered_sources if short else _make_sources)(session_id)


def _make_sources(session_id: str) -> tuple[str, tuple[str, bytes]]:
    name = "/sessions/" + quote(session_id, safe="", errors="surrogatepass")
    return name, ("ce_source", name.encode())


_remembered_sources = lru_cache(maxsize=4096)(_make_sources)
"""A session's records follow one another: both are built once."""


@lru_cache(maxsize=16)
def _rules_header(rules: str) -> tuple[str, bytes]:
    return "ce_rules", rules.encode()


def to_structured(record: Record) -> bytes:
    """Return the record as one structured-mode CloudEvent, without a line end."""
    data = record.data
    event: dict[str, Any] = {
        "specversion": SPEC_VERSION,
        "id": record.id,
        "source": source(data.session_id),
        "type": _TYPE_NAMES[data.kind],
        "subject": record.subject,
    }
    if record.time_ms is not None:
        event["time"] = rfc3339(record.time_ms)
    event["datacontenttype"] = "application/json"
    event["sequence"] = str(record.sequence)
    event["rules"] = record.rules
    event["data"] = _document(data)
    return dumps(event)


def from_structured(event: dict[str, Any]) -> Record:
    """Read a structured-mode event. Raises VersionError for what this build cannot read."""
    try:
        return _record(event, _ATTRIBUTES, event["data"])
    except KeyError as error:
        raise VersionError(f"not a record of contextgauge: no attribute {error}") from error
    except (TypeError, ValueError, OverflowError) as error:
        raise VersionError(f"not a record of contextgauge: {error}") from error


def header_number(content: bytes | None) -> int | None:
    """Return the number that a header of a record has; None where another program wrote it."""
    if content is None or len(content) > _MOST_DIGITS or not content.isdigit():
        return None
    return int(content)


def header_texts(headers: Headers) -> dict[str, str]:
    """Return the headers' texts by name; one that is null is like one that is missing."""
    return {
        name: content.decode("utf-8", "replace") for name, content in headers if content is not None
    }


def to_binary(record: Record) -> tuple[Headers, bytes]:
    """Return the headers and the value of a binary-mode CloudEvent on Kafka."""
    data = record.data
    headers: Headers = (
        _SPEC_VERSION_HEADER,
        ("ce_id", record.id.encode()),
        source_header(data.session_id),
        _TYPE_HEADERS[data.kind],
        ("ce_subject", utf8(record.subject)),
        ("ce_sequence", b"%d" % record.sequence),
        _rules_header(record.rules),
        _CONTENT_TYPE_HEADER,
    )
    if record.time_ms is not None:
        headers = (*headers, ("ce_time", rfc3339(record.time_ms).encode()))
    return headers, dumps(_document(data))


def _fields(data_class: type[RecordData]) -> list[tuple[str, bool]]:
    """Return the fields of a kind's data, and of each whether it is left out where it is null."""
    optional = OPTIONAL_FIELDS.get(data_class, ())
    return [(field.name, field.name in optional) for field in dataclasses.fields(data_class)]


def event_writer(
    write: compiled.WriteEvent, topic: str, partition: int, origin: Headers
) -> compiled.WriteEvent:
    """Return what writes records for a partition as `write` does, with `to_binary`."""
    return compiled.events().event_writer(
        write,
        NewRecord,
        topic,
        partition,
        origin,
        _fields,
        (_SPEC_VERSION_HEADER,),
        _TYPE_HEADERS,
        (_CONTENT_TYPE_HEADER,),
        source_header,
        _rules_header,
    )


def _document(data: RecordData) -> dict[str, Any]:
    """Return the data as it is written: optional fields are left out where they are null."""
    document = fields_of(data)
    for name in OPTIONAL_FIELDS[type(data)]:
        if document[name] is None:
            del document[name]
    return document


def from_binary(headers: Headers, value: bytes) -> Record:
    """Read a binary-mode event. Raises VersionError for what this build cannot read."""
    # One that is null is like one that is missing.
    attributes = {
        name: text.decode("utf-8", "replace")
        for name, text in headers
        if name in _READ and text is not None
    }
    try:
        return _record(attributes, _HEADERS, _loads_data(value))
    except KeyError as error:
        raise VersionError(f"not a record of contextgauge: no header {error}") from error
    except ValueError as error:
        raise VersionError(f"not a record of contextgauge: {error}") from error


def binary_to_structured(headers: Headers, value: bytes) -> bytes:
    """Return a binary-mode event as a structured-mode one, its data as it is, without a line end.

    A type that this build does not know is no obstacle. Raises VersionError for what no
    contextgauge wrote.
    """
    attributes = header_texts(headers)
    if b"\n" in value or "\\" in attributes.get("ce_subject", ""):  # foreign; a lone surrogate
        return to_structured(from_binary(headers, value))
    try:
        event: dict[str, Any] = {
            "specversion": attributes["ce_specversion"],
            "id": attributes["ce_id"],
            "source": attributes["ce_source"],
            "type": attributes["ce_type"],
            "subject": attributes["ce_subject"],
        }
        if (time := attributes.get("ce_time")) is not None:
            event["time"] = time
        event["datacontenttype"] = "application/json"
        event["sequence"] = attributes["ce_sequence"]
        event["rules"] = attributes["ce_rules"]
    except KeyError as error:
        raise VersionError(f"not a record of contextgauge: no header {error}") from error
    event["data"] = Encoded(value)
    return dumps(event)


def _record(attributes: Mapping[str, str], names: tuple[str, ...], data: object) -> Record:
    """Read the attributes, under the names that a mode has for them, and the data."""
    spec_version, type_name, record_id, sequence, rules, time = names
    own_id, own_type, moment = attributes[record_id], attributes[type_name], attributes.get(time)
    kind = _KINDS.get(own_type)
    if kind is None or attributes[spec_version] != SPEC_VERSION:
        raise VersionError(
            f"record {own_id} is of type {own_type!r} (CloudEvents {attributes[spec_version]}); "
            f"this build reads version {SCHEMA_VERSION}: upgrade contextgauge before reading on"
        )
    try:
        parsed = _reader(kind)(data)
    except ValidationError as error:
        # Not the error itself: it quotes the value, which may be a message's text.
        wrong = ", ".join(
            f"{'.'.join(map(str, item['loc']))}: {item['msg']}"
            for item in error.errors(include_input=False, include_context=False, include_url=False)
        )
        raise VersionError(f"record {own_id} of type {own_type!r}: {wrong}") from None
    time_ms = None if moment is None else parse_rfc3339(moment)
    return _make_record(
        own_id, parsed.chain, time_ms, int(attributes[sequence]), attributes[rules], parsed
    )
