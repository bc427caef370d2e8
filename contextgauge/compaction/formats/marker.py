"""Seed 001's block of a compaction as stored: `context_compaction`, with what code carries.

`timestamp` is RFC 3339, or Rust's `{secs_since_epoch, nanos_since_epoch}`. `prose` and `carried`
are our own additions, written where there is something in them; so is null for what is not known,
which was a 0 in stored conversations before.
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
from contextgauge.compaction.messages import (
    Carried,
    ContextCompaction,
    DigestEntry,
    FileUse,
    Speaker,
)
from contextgauge.records import Json

KIND: Final = "context_compaction"
_COUNTS: Final = ("messages_archived", "context_size_before")

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_SPEAKERS: Final[tuple[Speaker, ...]] = get_args(Speaker)


def read(fields: Fields, path: str) -> ContextCompaction:
    """Read the block. Raises ConfigError with the path of what is wrong."""
    time_ms = _read_timestamp(fields.get("timestamp"), f"{path}.timestamp") or None
    archived, size = (
        None if fields.get(each) is None else a_count(fields, each, path) for each in _COUNTS
    )
    return ContextCompaction(
        number=a_count(fields, "compaction_number", path),
        timestamp_ms=time_ms,
        summary=a_text(fields, "summary", path),
        messages_archived=archived if time_ms else archived or None,
        context_size_before=size if time_ms else size or None,
        prose=optional_text(fields, "prose", path) or "",
        carried=_read_carried(fields.get("carried"), f"{path}.carried"),
    )


def write(block: ContextCompaction) -> Fields:
    """Write the block."""
    written: Fields = {
        "type": KIND,
        "compaction_number": block.number,
        "timestamp": None if block.timestamp_ms is None else _write_timestamp(block.timestamp_ms),
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
    entries: list[Json] = [_write_entry(each) for each in carried.entries]
    files: list[Json] = [
        {"path": file.path, "read": file.read, "changed": file.changed} for file in carried.files
    ]
    return {"entries": entries, "files": files, "omitted": carried.omitted}


def _write_entry(entry: DigestEntry) -> Fields:
    written: Fields = {
        "number": entry.number,
        "message_id": entry.message_id,
        "speaker": entry.speaker,
        "text": entry.text,
    }
    return {**written, "end": entry.end, "omitted": entry.omitted} if entry.omitted else written


def _read_timestamp(value: Json, path: str) -> int | None:
    if value is None:
        return None
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
    # Without them it is another build's: to read on would lose what the user wrote.
    entries = an_array(fields.get("entries"), f"{path}.entries")
    files = an_array(fields.get("files", []), f"{path}.files")
    return Carried(
        tuple(_read_entry(each, f"{path}.entries[{index}]") for index, each in enumerate(entries)),
        tuple(_read_file(each, f"{path}.files[{index}]") for index, each in enumerate(files)),
        _optional_count(fields, "omitted", path),
    )


def _read_entry(value: Json, path: str) -> DigestEntry:
    fields = an_object(value, path)
    speaker = fields.get("speaker")
    for known in _SPEAKERS:
        if speaker == known:
            return DigestEntry(
                a_count(fields, "number", path),
                a_text(fields, "message_id", path),
                known,
                a_text(fields, "text", path),
                optional_text(fields, "end", path) or "",
                _optional_count(fields, "omitted", path),
            )
    raise wrong(f"{path}.speaker", f"one of {', '.join(_SPEAKERS)}", speaker)


def _optional_count(fields: Fields, name: str, path: str) -> int:
    return a_count(fields, name, path) if name in fields else 0


def _read_file(value: Json, path: str) -> FileUse:
    fields = an_object(value, path)
    read, changed = (fields.get(name) is True for name in ("read", "changed"))
    return FileUse(a_text(fields, "path", path), read=read, changed=changed)
