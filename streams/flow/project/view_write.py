"""What one call writes to a store of views, document by document."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from schemas.views import Aggregates, EntryStream, PartitionView
from streams.codec import view_codec
from streams.flow.project.fold import PARTITION_KEY, Documents, Fold, LoggedRecord
from streams.ports import Entry, ViewChanges

MAX_DOCUMENTS = 500
"""Documents of one call at most: Redis serves no one else meanwhile, some milliseconds."""

MAX_BYTES = 2 * 1024 * 1024
"""Bytes of one call at most. One record that is greater goes alone: it cannot be cut."""

_DOCUMENTS = 5
"""Documents of one record at most, without aggregates: a view, a compaction, an entry, its place
in the live feed, and the partition's own account."""


@dataclass(slots=True)
class ViewWrite:
    """The changes of one call under way; `latest` is what each session's last record changes."""

    leaving: dict[bytes, int] = field(default_factory=dict)
    latest: dict[bytes, Documents] = field(default_factory=dict)
    compactions: dict[tuple[bytes, bytes], bytes] = field(default_factory=dict)
    entries: list[tuple[EntryStream, bytes, Entry]] = field(default_factory=list)
    partition: PartitionView | None = None
    stats: dict[bytes, Aggregates | None] = field(default_factory=dict)
    live: list[Entry] = field(default_factory=list)
    agents: dict[tuple[bytes, bytes], int | None] = field(default_factory=dict)
    size: int = 0

    def documents(self) -> int:
        """Return how many documents it writes or takes away."""
        count = len(self.leaving) + len(self.latest) + len(self.compactions) + len(self.entries)
        return count + len(self.stats) + len(self.live) + (self.partition is not None)

    def takes(self, added: Documents) -> bool:
        """Return whether the documents of one more record fit."""
        # An empty call takes any record: one that is beyond the bounds goes alone.
        if not self.live:
            return True
        count = self.documents() + _DOCUMENTS + len(added.stats)
        return count <= MAX_DOCUMENTS and self._size_with(added) <= MAX_BYTES

    def _size_with(self, added: Documents) -> int:
        """Return the bytes that it takes at most with a record's documents."""
        before = self.latest.get(added.session)
        former = 0 if before is None else before.view_bytes
        return self.size + added.view_bytes - former + added.other_bytes

    def add(self, added: Documents) -> None:
        """Take the documents of one record in; a former one of the same name is replaced."""
        session = added.session
        self.size = self._size_with(added)
        self.latest[session] = added
        if added.compaction is not None:
            name, document = added.compaction
            self.compactions[session, name] = document
        if added.entry is not None:
            stream, entry = added.entry
            self.entries.append((stream, session, entry))
        self.partition = added.partition
        if added.stats:
            self.stats.update(added.stats)
        self.live.append(added.live)
        self.agents.update(added.agents)

    def changes(self) -> ViewChanges:
        """Return it for the store, each document encoded once."""
        encode, latest = view_codec.encode, self.latest.items()
        stats = {name: None if stat is None else encode(stat) for name, stat in self.stats.items()}
        if self.partition is not None:
            stats[PARTITION_KEY] = encode(self.partition)
        return ViewChanges(
            leaving=self.leaving,
            views={session: encode(last.view) for session, last in latest},
            compactions=self.compactions,
            entries=self.entries,
            recent={session: last.recent for session, last in latest},
            pressure={session: last.pressure for session, last in latest},
            idle={session: last.idle for session, last in latest if last.idle is not None},
            stats=stats,
            live=self.live,
            agents=self.agents,
        )


def fold_into(
    call: ViewWrite, fold: Fold, placed: Sequence[LoggedRecord]
) -> tuple[int, Documents | None]:
    """Fold records into a call, until sessions may have to leave or one does not fit.

    Returns how many were folded and fit, and the documents of one more where that did not. Before
    the first record no session has to leave.
    """
    for number, item in enumerate(placed):
        if number and fold.leaving_before(item) is not None:
            return number, None
        documents = fold.add(item)
        if documents is not None:
            if not call.takes(documents):
                return number, documents
            call.add(documents)
    return len(placed), None
