"""One partition's messages to records and views, with everything checked that must hold of them."""

import json
import struct
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args
from zlib import crc32

from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry, Resource

from contextgauge.normalise.signals import InputMessage
from contextgauge.normalise.usual import NOTHING
from contextgauge.partitioner import key_bytes
from contextgauge.ports import Headers, NewRecord
from schemas.messages import (
    AGENT_ID_HEADER,
    MESSAGE_LIMIT_BYTES,
    OBSERVED_HEADER,
    OBSERVED_LIVE,
    TASK_ID_HEADER,
    DeadReason,
)
from schemas.records import DATA_CLASS_BY_KIND, Record, RecordData
from schemas.topics import DAY_MS, RECORD_ROOM_BYTES
from schemas.views import VIEW_VERSION, SessionView
from streams import codec, compiled
from streams.codec import view_codec
from streams.core.session_status import status_of
from streams.flow.derive.deriver import IGNORED, LARGE_BYTES, Deriver, DeriveResult
from streams.flow.derive.stored_sessions import Activity, StoredSessions, changes_of
from streams.flow.project.fold import FIRST_STATS, PARTITION_KEY, Fold, LoggedRecord
from streams.flow.project.view_write import MAX_BYTES, ViewWrite
from tests.flow.derive_kit import RULES

if TYPE_CHECKING:
    from streams.compiled.record_batches import FetchedRecords

KEPT: Final = Path(__file__).parents[2] / "schemas" / "json"
REASONS: Final = frozenset(get_args(DeadReason))
NOW_MS: Final = 1_793_620_800_000

_ROOM_BYTES: Final = 20_000
"""What a record has besides what it takes from its message: names of its session, twice."""

_WRITE_EVERY: Final = 16
"""Records that one write of views takes, at most."""

_ACTIVITY: Final = Activity(498_000, None)


_VALUES_OF: Final[dict[str, Callable[[RecordData], tuple[object, ...]]]] = {
    kind: attrgetter(*(each.name for each in fields(data)))
    for kind, data in DATA_CLASS_BY_KIND.items()
}
"""By a record's kind: what gives all values of it."""


_BATCH: Final = struct.Struct(">qiibIhiqqqhii")
_LENGTH_ENDS: Final = 12
"""The header of a record batch, and where what its length counts begins."""


class WrongError(AssertionError):
    """What must always hold does not."""


def must(holds: object, what: str) -> None:
    """Raise WrongError unless something holds."""
    if not holds:
        raise WrongError(what)


@cache
def validator(name: str) -> Draft202012Validator:
    """Return what validates a document against a public schema."""
    # Schemas have a version in their names; the API documents next to them have none.
    schemas = {path.name: json.loads(path.read_text()) for path in KEPT.glob("*.v*.json")}
    registry: Registry[Any] = Registry().with_resources(
        (file, Resource.from_contents(schema)) for file, schema in schemas.items()
    )
    return Draft202012Validator(schemas[name], registry=registry, format_checker=FormatChecker())


def validate(name: str, document: bytes) -> None:
    """Check a document against a schema, in the strict spelling of other readers too."""
    try:
        body = json.loads(document, parse_constant=_no_constant)
    except RecursionError:
        body = codec.loads(document)  # deeper than Python reads as it is; others have no such limit
    except ValueError as error:
        raise WrongError(f"{name}: {error}") from error
    for wrong in validator(name).iter_errors(body):
        raise WrongError(f"{name}: {wrong.json_path} {wrong.message[:200]}")


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def _derived(deriver: Deriver, message: InputMessage) -> DeriveResult:
    """Derive a message as a worker does: in place if that is compiled and the message usual."""
    if message.received_ms is None or message.received_ms >= 0:
        usual = compiled.messages().read_record(_fetched(message), 0, LARGE_BYTES)
        if usual is not None and len(message.value) <= deriver.limit_bytes:
            return IGNORED if usual.message is NOTHING else deriver.derive_usual(usual)
    return deriver.derive(message)


def _fetched(message: InputMessage) -> Sequence[object]:
    """Return a message as the one record of a fetched batch, which is read only if compiled."""
    batches: Any = compiled.batches()
    names = ((TASK_ID_HEADER, message.task_id), (AGENT_ID_HEADER, message.publisher_agent_id))
    headers = [(name, key_bytes(text)) for name, text in names if text is not None]
    if message.received_ms is not None:
        headers.append((OBSERVED_HEADER, OBSERVED_LIVE))
    key = None if message.session_hint is None else key_bytes(message.session_hint)
    time_ms = message.received_ms or 0
    record = NewRecord("", 0, key, message.value, tuple(headers), time_ms)
    encoded = batches.encode([record], 0, 1 << 30, 0)
    if encoded is None:
        return ()
    content = encoded[0]
    size = _BATCH.size - _LENGTH_ENDS + len(content)
    batch = _BATCH.pack(0, size, 0, 2, 0, 0, 0, time_ms, time_ms, -1, -1, -1, 1) + content
    fetched: FetchedRecords = batches.FetchedRecords()
    fetched.split(content, batches.headers_of(batch)[0], 0)
    return fetched


class CheckedPartition:
    """A deriver and the views of its records; raises WrongError, or whatever the product raises.

    `folds`: whether records become views. `thorough` says of a record's shape whether it is one
    to be looked at closely: all of it is read back and validated then.
    """

    def __init__(
        self,
        thorough: Callable[[tuple[object, ...]], bool],
        *,
        folds: bool,
        limit_bytes: int = MESSAGE_LIMIT_BYTES,
    ) -> None:
        self.deriver = Deriver(RULES, limit_bytes=limit_bytes)
        self.digest = 0
        self.records = 0
        self.written_bytes = 0
        """The bytes of the views that were written last."""
        self.thorough = thorough
        self._limit_bytes = limit_bytes
        self._folds = folds
        self._sequences: dict[str, int] = {}
        self._ids = set[str]()
        self._fold = Fold(strict=True)
        if folds:
            self._fold.load_stats(FIRST_STATS)
        self._write = ViewWrite()
        self._views: dict[bytes, bytes] = {}
        self._compactions: dict[tuple[bytes, bytes], bytes] = {}
        self._stats: dict[bytes, bytes] = dict(FIRST_STATS)

    def take(self, message: InputMessage) -> DeriveResult:
        """Derive a message, and fold its records."""
        result = _derived(self.deriver, message)
        dead, records = result.dead, result.records
        if dead is not None:
            if dead.reason not in REASONS or records:
                raise WrongError(f"dead letter {dead}")
            detail = dead.detail.encode("utf-8", "surrogatepass")
            self.digest = crc32(dead.reason.encode() + detail, self.digest)
        elif records:
            self._check(message, records)
        return result

    def _check(self, message: InputMessage, records: tuple[Record, ...]) -> None:
        size, sequences, ids = 0, self._sequences, self._ids
        for record in records:
            data, sequence = record.data, record.sequence
            session_id, kind = data.session_id, data.kind
            due = sequences.get(session_id, 0) + 1
            if sequence != due:
                raise WrongError(f"sequence {sequence} where {due} is due")
            sequences[session_id] = sequence
            if record.id in ids:
                raise WrongError(f"a second record {record.id}")
            ids.add(record.id)
            headers, value = codec.to_binary(record)
            self.digest = crc32(value, crc32(dict(headers)["ce_id"] or b"", self.digest))
            size += len(value)
            if self.thorough((kind, *map(type, _VALUES_OF[kind](data)))):
                _read_back(record, headers, value)
            if self._folds:
                self._project(record)
            self.records += 1
        read = len(message.value)
        if size > 4 * read + _ROOM_BYTES * len(records):
            raise WrongError(f"{size} bytes of records of {read}")
        if read > MESSAGE_LIMIT_BYTES // 8:
            must(size <= (MESSAGE_LIMIT_BYTES + RECORD_ROOM_BYTES) * len(records), "too large")

    def _project(self, record: Record) -> None:
        fold, session = self._fold, codec.key_bytes(record.data.session_id)
        for missing in fold.missing([session]):
            for name in fold.put_view(missing, self._views.get(missing)):
                fold.put_compaction(missing, name, self._compactions.get((missing, name)))
        for place in fold.missing_compactions([record]):
            fold.put_compaction(*place, self._compactions.get(place))
        documents = fold.add(LoggedRecord(self.records, NOW_MS + self.records, record))
        if documents is None:
            raise WrongError("a record is in no view")
        if not self._write.takes(documents) or len(self._write.live) == _WRITE_EVERY:
            self.write_views()
        self._write.add(documents)

    def write_views(self) -> None:
        """Write the views that changed, with everything that must hold of a write."""
        write, self._write = self._write, ViewWrite()
        if not write.live:
            return
        changes = write.changes()
        size = sum(map(len, changes.views.values())) + sum(map(len, changes.compactions.values()))
        size += sum(len(entry.document) for entry in changes.live)
        size += sum(len(entry.document) for _, _, entry in changes.entries)
        size += sum(
            len(stat) for name, stat in changes.stats.items() if stat and name != PARTITION_KEY
        )
        self.written_bytes = size
        must(size <= write.size, f"{size} bytes of views where {write.size} are the most")
        must(len(write.live) == 1 or write.size <= MAX_BYTES, f"a write of {write.size} bytes")
        for session, document in changes.views.items():
            self.digest = crc32(document, self.digest)
            must(len(document) <= write.latest[session].view_bytes, "a view larger than its bound")
        for document in changes.compactions.values():
            self.digest = crc32(document, self.digest)
        self._views |= changes.views
        self._compactions |= changes.compactions
        for name, stat in changes.stats.items():
            if stat is None:
                self._stats.pop(name, None)
            else:
                self._stats[name] = stat
        self._fold.encoded(changes.views)

    def restart(self) -> None:
        """Go on from what is stored: state, views and totals are read back."""
        self.write_views()
        if self._folds:
            self._fold = Fold(strict=True)
            self._fold.load_stats(self._stats)
        for session, document in self._views.items():
            self._fold.put_view(session, document)
            view = view_codec.decode(SessionView, document)
            must(view_codec.encode(view) == document, "a view that reads as another")
        restored = {}
        self.deriver.end_steps()
        for session_id, state in self.deriver.sessions.items():
            changes = changes_of(session_id, None, state, _ACTIVITY)
            stored = StoredSessions("context.state")
            stored.add(list(changes.items()))
            taken = stored.take(session_id)
            if taken is None:
                raise WrongError("a session that is not restored")
            again = changes_of(session_id, None, taken, _ACTIVITY)
            must(again == changes, "a restored session is another")
            restored[session_id] = taken
        self.deriver.sessions.update(restored)

    def finish(self) -> None:
        """Judge the sessions as readers do, and validate their documents."""
        self.write_views()
        for document in self._views.values():
            view = view_codec.decode(SessionView, document)
            shape = (
                "view",
                len(view.chains),
                *[type(each) for each in (view.attempt, view.last_ms)],
            )
            for moment in (0, NOW_MS, NOW_MS + 400 * DAY_MS):
                codec.dumps(status_of(view).document(moment))
            if self.thorough(shape):
                validate(f"view.session.v{VIEW_VERSION}.json", document)
        for place, document in self._compactions.items():
            if self.thorough(("compaction", len(document) // 64)):
                must(place[0] in self._views, "a compaction of no session")
                validate(f"view.compaction.v{VIEW_VERSION}.json", document)


def _read_back(record: Record, headers: Headers, value: bytes) -> None:
    read = codec.from_binary(headers, value)
    must(codec.to_binary(read) == (headers, value), "a record that reads as another")
    structured = codec.to_structured(record)
    must(codec.binary_to_structured(headers, value) == structured, "two structured spellings")
    event = codec.from_structured(codec.loads_exactly(structured))
    must(codec.to_structured(event) == structured, "an event that reads as another")
    validate("record.v1.json", structured)
