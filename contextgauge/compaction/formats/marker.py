"""Seed 001's block of a compaction as stored: `context_compaction`, with what code carries.

`timestamp` is RFC 3339, or Rust's `{secs_since_epoch, nanos_since_epoch}`. `prose` and `carried`
are our own additions, written where there is something in them.
"""

from datetime import UTC, datetime, timedelta
from typing import Final, get_args

from contextgauge.compaction.formats.fields import (
    Fields,
    a_count,
    a_text,
    an_array,
    an_object,
    optional_text,
    wrong,
)
from contextgauge.compaction.messages import Carried, ContextCompaction, FileUse, Pin, PinKind
from contextgauge.records import Json

KIND: Final = "context_compaction"

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_PIN_KINDS: Final[tuple[PinKind, ...]] = get_args(PinKind)


def read(fields: Fields, path: str) -> ContextCompaction:
    """Read the block. Raises ConfigError with the path of what is wrong."""
    return ContextCompaction(
        number=a_count(fields, "compaction_number", path),
        timestamp_ms=_read_timestamp(fields.get("timestamp"), f"{path}.timestamp"),
        summary=a_text(fields, "summary", path),
        messages_archived=a_count(fields, "messages_archived", path),
        context_size_before=a_count(fields, "context_size_before", path),
        prose=optional_text(fields, "prose", path) or "",
        carried=_read_carried(fields.get("carried"), f"{path}.carried"),
    )


def write(block: ContextCompaction) -> Fields:
    """Write the block."""
    written: Fields = {
        "type": KIND,
        "compaction_number": block.number,
        "timestamp": _write_timestamp(block.timestamp_ms),
        "summary": block.summary,
        "messages_archived": block.messages_archived,
        "context_size_before": block.context_size_before,
    }
    if block.prose:
        written["prose"] = block.prose
    if block.carried != Carried():
        written["carried"] = write_carried(block.carried)
    return written


def write_carried(carried: Carried) -> Fields:
    """Write what code carries."""
    pins: list[Json] = [
        {"kind": pin.kind, "text": pin.text, "key": pin.key, "message_id": pin.message_id}
        for pin in carried.pins
    ]
    files: list[Json] = [
        {"path": file.path, "read": file.read, "changed": file.changed} for file in carried.files
    ]
    return {"task": carried.task, "pins": pins, "files": files}


def _read_timestamp(value: Json, path: str) -> int:
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            if moment.tzinfo is not None:
                return (moment - _EPOCH) // _MILLISECOND
        elif isinstance(value, dict):
            seconds = a_count(value, "secs_since_epoch", path)
            time_ms = seconds * 1_000 + a_count(value, "nanos_since_epoch", path) // 1_000_000
            _write_timestamp(time_ms)  # one that cannot be written is wrong
            return time_ms
    except (ValueError, OverflowError):
        pass
    raise wrong(path, "a time of RFC 3339 with its zone", value)


def _write_timestamp(timestamp_ms: int) -> str:
    moment = _EPOCH + timestamp_ms * _MILLISECOND
    exactness = "milliseconds" if timestamp_ms % 1_000 else "seconds"
    return moment.replace(tzinfo=None).isoformat(timespec=exactness) + "Z"


def _read_carried(value: Json, path: str) -> Carried:
    if value is None:
        return Carried()
    fields = an_object(value, path)
    pins = an_array(fields.get("pins", []), f"{path}.pins")
    files = an_array(fields.get("files", []), f"{path}.files")
    return Carried(
        optional_text(fields, "task", path) or "",
        tuple(_read_pin(each, f"{path}.pins[{index}]") for index, each in enumerate(pins)),
        tuple(_read_file(each, f"{path}.files[{index}]") for index, each in enumerate(files)),
    )


def _read_pin(value: Json, path: str) -> Pin:
    fields = an_object(value, path)
    kind = fields.get("kind")
    for known in _PIN_KINDS:
        if kind == known:
            return Pin(
                known,
                a_text(fields, "text", path),
                a_text(fields, "key", path),
                a_text(fields, "message_id", path),
            )
    raise wrong(f"{path}.kind", f"one of {', '.join(_PIN_KINDS)}", kind)


def _read_file(value: Json, path: str) -> FileUse:
    fields = an_object(value, path)
    read, changed = (fields.get(name) is True for name in ("read", "changed"))
    return FileUse(a_text(fields, "path", path), read=read, changed=changed)
