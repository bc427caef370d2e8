"""The fold of records into all documents, in memory: what the projection must come to.

`replay --view` prints its views, and what workers wrote to Redis must be equal to it.
"""

from collections.abc import Iterable

from contextgauge.partitioner import partition_of
from schemas.records import Record
from schemas.views import SESSION_IDLE_MS
from streams import codec
from streams.edge.memory.views import MemoryPartition
from streams.flow.project.fold import FIRST_STATS, Fold, LoggedRecord
from streams.flow.project.partition import LEAVING_SESSIONS, ViewWrite
from streams.ports import PartitionDump


class ViewFold:
    """Folds one partition's records, as they come, into documents.

    `only_views`: the documents are not kept that grow with every record of a session.
    """

    def __init__(self, idle_ms: int = SESSION_IDLE_MS, *, only_views: bool = False) -> None:
        self._only_views = only_views
        self._fold = Fold(strict=False, idle_ms=idle_ms)
        self._idle_ms = idle_ms
        self._kept = MemoryPartition()
        self._kept.held.stats.update(FIRST_STATS)

    def add(self, placed: LoggedRecord) -> None:
        """Fold the next record."""
        kept, fold, call = self._kept, self._fold, ViewWrite()
        session = codec.key_bytes(placed.record.data.session_id)
        for missing in fold.missing([session]):
            fold.put_view(missing, None)
        idle_since_ms = fold.leaving_before(placed)
        if idle_since_ms is not None:
            idle = kept.longest_idle(idle_since_ms, LEAVING_SESSIONS)
            call.agents.update(fold.leave(idle, all_of_them=len(idle) < LEAVING_SESSIONS))
            call.leaving.update(dict.fromkeys(idle, idle_since_ms + self._idle_ms))
        documents = fold.add(placed)
        if documents is not None:
            call.add(documents)
        changes = call.changes()
        if self._only_views:
            changes = changes._replace(compactions={}, entries=(), live=())
        kept.write(changes)

    def documents(self) -> PartitionDump:
        """Return all documents."""
        return self._kept.held


def fold_views(placed: Iterable[LoggedRecord], idle_ms: int = SESSION_IDLE_MS) -> PartitionDump:
    """Return the documents of one partition's records."""
    fold = ViewFold(idle_ms)
    for item in placed:
        fold.add(item)
    return fold.documents()


def fold_records(records: Iterable[Record], partitions: int) -> list[PartitionDump]:
    """Return the documents of records that are on no log yet: each partition's are numbered."""
    folds = [ViewFold() for _ in range(partitions)]
    offsets = [0] * partitions
    for record in records:
        partition = partition_of(record.data.session_id, partitions)
        folds[partition].add(LoggedRecord(offsets[partition], None, record))
        offsets[partition] += 1
    return [fold.documents() for fold in folds]
