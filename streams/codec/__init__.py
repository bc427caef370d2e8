r"""The only JSON: bytes to messages, records to Kafka and to lines, and back.

The fast parser refuses some of what Python's standard parser reads (lone surrogates, numbers out
of its range), so what it refuses is read again by the standard one (R5). On output a lone
surrogate is written as `\uXXXX`, and NaN and infinities, which are not JSON, as null.
"""

import json
import math
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any, Final
from urllib.parse import quote

import orjson
from pydantic import TypeAdapter, ValidationError

from contextgauge.errors import VersionError
from schemas.messages import MAX_DEPTH, DeadLetter
from schemas.records import (
    DATA_CLASS_BY_KIND,
    LATER_FIELDS,
    SCHEMA_VERSION,
    SPEC_VERSION,
    Record,
    RecordData,
)
from schemas.topics import MESSAGE_LIMIT_BYTES, MIB
from streams.ports import Headers

_STANDARD_RECURSION: Final = 4 * MAX_DEPTH
"""Interpreter recursion for the standard parser: room for MAX_DEPTH and the frames below it."""

_TYPES: Final = {
    kind: f"contextgauge.{kind}.v{SCHEMA_VERSION}".encode() for kind in DATA_CLASS_BY_KIND
}
_COMPACTION, _EDITS = b"ompact", b"pplied"
"""In lines of which a record may take a part as it came: metadata, a block, an edit."""
_KEPT_FIELDS: Final = (b'"metadata":', b'"edits":')
"""In records: where those parts are."""
_LONG_NUMBER: Final = re.compile(rb"[0-9]{20}")
"""A number that the fast parser may round to a float."""
_KINDS: Final = {name.decode(): kind for kind, name in _TYPES.items()}
_SPEC_VERSION_HEADER: Final = ("ce_specversion", SPEC_VERSION.encode())
_TYPE_HEADERS: Final = {kind: ("ce_type", name) for kind, name in _TYPES.items()}
_CONTENT_TYPE_HEADER: Final = ("content-type", b"application/json")


ReadUsual = Callable[[bytes], tuple[Any, ...] | None]


def _usual_reader() -> ReadUsual | None:
    """Return what reads usual messages fast: it is there only where it was compiled."""
    try:
        from streams.codec.usual import read  # noqa: PLC0415
    except ModuleNotFoundError:  # and not one that is there and cannot be loaded
        return None
    return read


read_usual: Final = _usual_reader()
"""Says in short what a usual message says, and None of any other; see `usual.pyx`."""


@cache
def _adapter(kind: str) -> TypeAdapter[Any]:
    """Return what reads a kind's data: made when it is needed, as all of them take 50 ms."""
    return TypeAdapter(DATA_CLASS_BY_KIND[kind])


def utf8(text: str) -> bytes:
    r"""Encode for output: a lone surrogate becomes `\uXXXX`."""
    return text.encode("utf-8", "backslashreplace")


def key_bytes(session_id: str) -> bytes:
    """Encode a session id for keys and partitioning: one to one, lone surrogates too."""
    return session_id.encode("utf-8", "surrogatepass")


def decode(value: bytes, limit: int = MESSAGE_LIMIT_BYTES) -> dict[str, Any] | DeadLetter:
    """Parse one message, or say why it is a dead letter (R5). Never raises."""
    body = decode_fast(value, limit)
    if isinstance(body, dict) and (_COMPACTION in value or _EDITS in value):
        return decode_exactly(value) or body
    return body


def decode_exactly(value: bytes) -> dict[str, Any] | None:
    """Parse a message that has long numbers, to their last digit; None where it has none."""
    exact = _decode_standard(value) if _LONG_NUMBER.search(value) else None
    return exact if isinstance(exact, dict) else None


def decode_fast(value: bytes, limit: int = MESSAGE_LIMIT_BYTES) -> dict[str, Any] | DeadLetter:
    """Parse as `decode` does, but round what has more digits than a number of the machine's."""
    if len(value) > limit:
        return DeadLetter(
            "too_large",
            f"{len(value)} bytes; the limit is {limit} ({limit / MIB:.0f} MiB): "
            "publish it with `contextgauge publish`, which shortens such lines",
        )
    try:
        body = orjson.loads(value)
    except orjson.JSONDecodeError:
        body = _decode_standard(value)
    if isinstance(body, dict) or isinstance(body, DeadLetter):  # noqa: SIM101 -- a union is made anew
        return body
    return DeadLetter("not_object", f"a JSON {_json_type(body)}, not an object")


def _decode_standard(value: bytes) -> Any:
    if value.startswith(b"\xef\xbb\xbf"):
        return DeadLetter("byte_order_mark", "begins with a byte order mark: write without one")
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError as error:
        return DeadLetter("not_utf8", f"byte {error.start} is not UTF-8")
    try:
        with _room_for_depth():
            body = json.loads(text)
    except RecursionError:
        return _too_deep()
    except ValueError as error:
        return DeadLetter("not_json", str(error))
    return _too_deep() if _depth_exceeds(body, MAX_DEPTH) else body


def _too_deep() -> DeadLetter:
    return DeadLetter("too_deep", f"nested deeper than {MAX_DEPTH}")


def _depth_exceeds(value: Any, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        level = [
            child
            for parent in level
            if isinstance(parent, dict | list)
            for child in (parent.values() if isinstance(parent, dict) else parent)
        ]
        if not level:
            return False
    return any(isinstance(item, dict | list) for item in level)


def _json_type(value: object) -> str:
    if value is None:
        return "null"
    return {bool: "boolean", int: "number", float: "number", str: "string"}.get(
        type(value), "array"
    )


def loads(value: bytes | str) -> Any:
    """Parse JSON that this project wrote. Raises ValueError."""
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return _loads_standard(value)


def _loads_standard(value: bytes | str) -> Any:
    # What lies MAX_DEPTH deep in a message lies a little deeper in an event around it.
    with _room_for_depth():
        return json.loads(value)


def _loads_data(value: bytes) -> Any:
    """Parse a record's data; what it holds of a message as it came is kept to the last digit."""
    if any(field in value for field in _KEPT_FIELDS) and _LONG_NUMBER.search(value):
        return _loads_standard(value)
    return loads(value)


def dumps(value: Any) -> bytes:
    """Write compact JSON; dataclasses become objects. Total over what records and views hold."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return _dumps_standard(value)


def dumps_indented(value: Any) -> bytes:
    """Write JSON for people, with a line end: for files that are kept beside the code."""
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _dumps_standard(value: Any) -> bytes:
    with _room_for_depth():
        text = json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return utf8(text)


@contextmanager
def _room_for_depth() -> Iterator[None]:
    """Let the standard parser and writer go as deep as messages may."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _STANDARD_RECURSION))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _plain(value: Any) -> Any:
    """Return the value with dataclasses as objects and non-finite numbers as null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    return value


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
    short = len(session_id) <= _CACHED_CHARACTERS
    return (_remembered_source if short else _source)(session_id)


def _source(session_id: str) -> str:
    return "/sessions/" + quote(session_id, safe="", errors="surrogatepass")


_CACHED_CHARACTERS: Final = 256
"""Longer ids are none that anyone has; remembering them could take gigabytes."""
_remembered_source = lru_cache(maxsize=4096)(_source)


def _source_header(session_id: str) -> tuple[str, bytes]:
    if len(session_id) > _CACHED_CHARACTERS:
        return "ce_source", _source(session_id).encode()
    return _remembered_source_header(session_id)


@lru_cache(maxsize=4096)
def _remembered_source_header(session_id: str) -> tuple[str, bytes]:
    # A session's records follow one another: each header is made and kept once.
    return "ce_source", _source(session_id).encode()


@lru_cache(maxsize=16)
def _rules_header(rules: str) -> tuple[str, bytes]:
    return "ce_rules", rules.encode()


def to_structured(record: Record) -> bytes:
    """Return the record as one structured-mode CloudEvent, without a line end."""
    event: dict[str, Any] = {
        "specversion": SPEC_VERSION,
        "id": record.id,
        "source": source(record.data.session_id),
        "type": record.type,
        "subject": record.subject,
    }
    if record.time_ms is not None:
        event["time"] = rfc3339(record.time_ms)
    event["datacontenttype"] = "application/json"
    event["sequence"] = str(record.sequence)
    event["rules"] = record.rules
    event["data"] = _document(record.data)
    return dumps(event)


def from_structured(event: dict[str, Any]) -> Record:
    """Read a structured-mode event. Raises VersionError for what this build cannot read."""
    try:
        return _record(
            spec_version=event["specversion"],
            type_name=event["type"],
            record_id=event["id"],
            time=event.get("time"),
            sequence=event["sequence"],
            rules=event["rules"],
            data=event["data"],
        )
    except KeyError as error:
        raise VersionError(f"not a record of contextgauge: no attribute {error}") from error


def to_binary(record: Record) -> tuple[Headers, bytes]:
    """Return the headers and the value of a binary-mode CloudEvent on Kafka."""
    data = record.data
    headers: Headers = (
        _SPEC_VERSION_HEADER,
        ("ce_id", record.id.encode()),
        _source_header(data.session_id),
        _TYPE_HEADERS[data.kind],
        ("ce_subject", utf8(record.subject)),
        ("ce_sequence", b"%d" % record.sequence),
        _rules_header(record.rules),
        _CONTENT_TYPE_HEADER,
    )
    if record.time_ms is not None:
        headers = (*headers, ("ce_time", rfc3339(record.time_ms).encode()))
    return headers, dumps(_document(data))


def _document(data: RecordData) -> RecordData | dict[str, Any]:
    """Return the data as it is written: later fields are left out where they are null."""
    later = LATER_FIELDS.get(type(data))
    if later is None:
        return data
    absent = {name for name in later if getattr(data, name) is None}
    if not absent:
        return data
    return {
        field.name: getattr(data, field.name) for field in fields(data) if field.name not in absent
    }


def from_binary(headers: Headers, value: bytes) -> Record:
    """Read a binary-mode event. Raises VersionError for what this build cannot read."""
    found = {name: content.decode("utf-8", "replace") for name, content in headers}
    try:
        return _record(
            spec_version=found["ce_specversion"],
            type_name=found["ce_type"],
            record_id=found["ce_id"],
            time=found.get("ce_time"),
            sequence=found["ce_sequence"],
            rules=found["ce_rules"],
            data=_loads_data(value),
        )
    except KeyError as error:
        raise VersionError(f"not a record of contextgauge: no header {error}") from error
    except ValueError as error:
        raise VersionError(f"not a record of contextgauge: {error}") from error


def _record(
    *,
    spec_version: str,
    type_name: str,
    record_id: str,
    time: str | None,
    sequence: str,
    rules: str,
    data: object,
) -> Record:
    kind = _KINDS.get(type_name)
    if kind is None or spec_version != SPEC_VERSION:
        raise VersionError(
            f"record {record_id} is of type {type_name!r} (CloudEvents {spec_version}); this build "
            f"reads version {SCHEMA_VERSION}: upgrade contextgauge before reading on"
        )
    try:
        parsed = _adapter(kind).validate_python(data)
    except ValidationError as error:
        # Not the error itself: it quotes the value, which may be a message's text.
        wrong = ", ".join(
            f"{'.'.join(map(str, item['loc']))}: {item['msg']}"
            for item in error.errors(include_input=False, include_context=False, include_url=False)
        )
        raise VersionError(f"record {record_id} of type {type_name!r}: {wrong}") from None
    return Record(
        id=record_id,
        subject=parsed.chain,
        time_ms=None if time is None else parse_rfc3339(time),
        sequence=int(sequence),
        rules=rules,
        data=parsed,
    )
