"""One partition folded into one generation of views.

A batch is cut into calls between records: each call brings the position to the record before
which it was cut, with the documents as they were just then, so every call is consistent by
itself and a failure between two calls leaves nothing half done.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from contextgauge.errors import ConfigError, FormerViewsError, LostError, ReseekError
from streams.flow.common.retry import RetryLoop
from streams.flow.project import view_write
from streams.flow.project.fold import FIRST_STATS, Fold, LoggedRecord, logged_record
from streams.flow.project.view_write import ViewWrite, fold_into
from streams.ports import (
    Batch,
    LogPlace,
    ProjectorHeartbeat,
    ViewPosition,
    ViewStore,
)

LEAVING_SESSIONS = 50
"""Idle sessions that leave before one record at most, so that they fit into its call."""

CACHED_SESSIONS = 5_000
"""Sessions whose views are kept in memory between batches, a few kB each."""

_SLICE_RECORDS = 250
"""Records folded in a row before others get a turn: some 5 ms."""

_Item = TypeVar("_Item")


class ViewPartition(NamedTuple):
    """One partition of one generation, of so many partitions."""

    generation: int
    partition: int
    partitions: int


class PartitionProjector:
    """Folds batches of one partition into one generation; after an error it is spent.

    `strict` as in `Fold`: it never is where the log's beginning is no longer there. `retry`
    waits for a store that is away. `writer` is a name that no other projector writes under: of two
    that write the same position, only one may take it for its own.
    """

    def __init__(
        self,
        store: ViewStore,
        retry: RetryLoop,
        place: ViewPartition,
        *,
        strict: bool,
        idle_ms: int,
        writer: str,
        topic_id: str = "",
    ) -> None:
        self._store = store
        self._retry = retry
        self._place = place
        self._at = (place.generation, place.partition)
        self._strict = strict
        self._idle_ms = idle_ms
        self._fold = Fold(strict=strict, idle_ms=idle_ms)
        self._call = ViewWrite()
        self.writer, self._topic_id = writer, topic_id
        self._stored = ViewPosition(0, 0, place.partitions, caught_up=False)
        self._last = LogPlace()
        self._has_loaded = False
        self._cursor = 0
        self.checked_s = 0.0
        """When its caller last had it compare what is stored."""
        self.writes = 0
        """Calls that were written."""
        self.documents = 0
        """Documents that these calls wrote or took away."""

    @property
    def position(self) -> int:
        """The offset that is read next."""
        return self._stored.offset

    @property
    def stored(self) -> ViewPosition:
        """The position as it was loaded or written last."""
        return self._stored

    async def open(self, build: str | None = None) -> bool:
        """Load the stored position; return False where there is none, or none of this build.

        Raises LostError where the aggregates or other documents are gone, ReseekError where
        another projector writes meanwhile, FormerViewsError where the views have a former format
        and no build is given, ConfigError where they are for another number of partitions,
        VersionError.
        """
        until_done, store, partitions = self._retry.run, self._store, self._place[2]
        try:
            stored = await until_done(store.position, *self._at)
        except FormerViewsError:
            if build is None:
                raise
            return False  # begun by a worker of a former version, which ends when it meets ours
        if stored is None or (build is not None and stored.build != build):
            return False
        if stored.partitions != partitions:
            raise ConfigError(
                f"the views are for {stored.partitions} partitions, the topic has {partitions}: "
                "sessions would be looked for on other ones. Give this topic's views "
                "their own CONTEXTGAUGE_KEY_PREFIX; they are rebuilt there"
            )
        # Where older records were deleted from the log, a session may well begin in its middle.
        strict = self._strict and stored.begin == 0
        self._stored, self._last, self._cursor = stored, stored.log, 0
        self._fold = Fold(strict=strict, idle_ms=self._idle_ms)
        # Before `verify`, which finds a position that has moved since they were read.
        stats = await until_done(store.stats, *self._at)
        await self.verify()
        self._fold.load_stats(stats)
        return True

    async def begin(self, offset: int, build: str = "") -> None:
        """Begin the partition at the log's first offset, unless another worker just did."""
        partitions = self._place.partitions
        position = ViewPosition(
            offset,
            offset,
            partitions,
            caught_up=False,
            build=build,
            writer=self.writer,
            log=LogPlace(self._topic_id),
        )
        changes = ViewWrite().changes()._replace(stats=FIRST_STATS)
        await self._retry.run(
            self._store.apply, *self._at, expected=None, position=position, changes=changes
        )

    async def apply(self, batch: Batch, on_progress: Callable[[], None] = lambda: None) -> int:
        """Write what a batch changes; return how many of its records were new.

        `on_progress` is called after each write and slice: a batch may take many writes.

        Raises ReseekError where another position is stored, LostError where documents are gone:
        then the calls before stand, with the position that they came to. Raises VersionError
        where a record cannot be read: then nothing of the batch was written.
        """
        placed = [
            logged_record(self._place.partition, record)
            for record in batch.records
            # Records before the position are in the views already.
            if record.offset >= self.position
        ]
        await self._load(placed)
        number = 0
        while number < len(placed):
            first = placed[number]
            idle_since_ms = self._fold.leaving_before(first)
            if idle_since_ms is not None:
                # The idle are looked up in the store: all documents so far have to be there.
                await self._flush(first.offset)
                await self._remove_idle(idle_since_ms)
            some = placed[number : number + _SLICE_RECORDS]
            folded, unfit = fold_into(self._call, self._fold, some)
            number += folded
            if folded:
                last = some[folded - 1]
                self._last = LogPlace("", last.offset, last.record.id)
            if unfit is not None:
                item = placed[number]
                number += 1
                await self._flush(item.offset)
                self._call.add(unfit)
                self._last = LogPlace("", item.offset, item.record.id)
            on_progress()
            if number < len(placed):
                await asyncio.sleep(0)
        # Beyond the last record: markers of transactions take offsets too.
        await self._flush(max(batch.position, self.position))
        self._fold.forget_sessions(CACHED_SESSIONS)
        return len(placed)

    async def report_heartbeat(self, heartbeat: ProjectorHeartbeat) -> None:
        """Store a heartbeat for readers next to the position."""
        await self._store.report_heartbeat(*self._at, self._stored.build, heartbeat)

    async def verify(self) -> None:
        """Compare what is stored with what was written, some of the sessions at a time.

        Raises ReseekError where the position is another one, LostError where documents are gone.
        Otherwise only the next record would reveal it, and most losses nothing at all.
        """
        await self._verify_position()
        check = await self._retry.run(self._store.check, *self._at, self._cursor)
        if check.difference:
            raise LostError(f"documents are gone: {check.difference}")
        self._cursor = check.cursor

    async def _verify_position(self) -> None:
        stored = await self._retry.run(self._store.position, *self._at)
        if stored is None or stored.offset != self.position:
            raise ReseekError(f"the views are no longer at {self.position}: read again")

    async def _verify_loaded(self) -> None:
        """Raise ReseekError where documents that were just loaded may be of a later position.

        Another projector wrote between the position that this one read and its documents: it would
        pass over records that they already have, and not count them.
        """
        is_ahead = self._fold.is_ahead(self.position)
        if is_ahead or self._has_loaded:
            self._has_loaded = False
            await self._verify_position()
        if is_ahead:
            raise LostError("views are ahead of the stored position")

    async def _load(self, placed: Sequence[LoggedRecord]) -> None:
        """Load the documents that the records change."""
        until_done, store, fold = self._retry.run, self._store, self._fold
        sessions = {item.session: None for item in placed}
        names = await self._load_views(fold.missing(sessions))
        names += fold.missing_compactions(item.record for item in placed)
        for places in _pieces(names):
            documents = await until_done(store.pick_compactions, *self._at, places)
            self._has_loaded = True
            for (session, name), document in zip(places, documents, strict=True):
                fold.put_compaction(session, name, document)
        for some in _pieces(fold.unexplained(placed)):
            left = await until_done(store.left, *self._at, some)
            fold.excuse([session for session, gone in zip(some, left, strict=True) if gone])
            self._has_loaded = True
        await self._verify_loaded()

    async def _load_views(self, missing: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
        """Load views; return those of their compactions that may still change."""
        names: list[tuple[bytes, bytes]] = []
        for some in _pieces(missing):
            views = await self._retry.run(self._store.views, *self._at, some)
            for session, document in zip(some, views, strict=True):
                names += [(session, name) for name in self._fold.put_view(session, document)]
        return names

    async def _remove_idle(self, idle_since_ms: int) -> None:
        """Remove sessions that have been idle for longer; all documents so far are written."""
        idle = await self._retry.run(self._store.idle, *self._at, idle_since_ms, LEAVING_SESSIONS)
        await self._load_views(self._fold.missing(idle))
        self._has_loaded = True
        await self._verify_loaded()
        self._call.agents.update(self._fold.leave(idle, all_of_them=len(idle) < LEAVING_SESSIONS))
        left_ms = idle_since_ms + self._idle_ms
        self._call.leaving.update(dict.fromkeys(idle, left_ms))

    async def _flush(self, offset: int) -> None:
        """Write the call under way and bring the stored position to `offset`."""
        if offset == self.position:
            return
        call, self._call = self._call, ViewWrite()
        position = self._stored._replace(
            offset=offset,
            writer=self.writer,
            # Where the topic's id is not known, the stored one stays.
            log=self._last._replace(topic_id=self._topic_id or self._stored.log.topic_id),
        )
        changes = call.changes()
        self._fold.encoded(changes.views)
        result = await self._retry.run(
            self._store.apply,
            *self._at,
            expected=self.position,
            position=position,
            changes=changes,
        )
        if result == "mismatch":
            raise ReseekError(f"the views are not at {self.position}: read again from theirs")
        if result == "damaged":
            raise LostError("stored documents do not match the stored position")
        self._stored = position
        self.writes += 1
        self.documents += call.documents()


def _pieces(items: Sequence[_Item]) -> Iterator[Sequence[_Item]]:
    """Yield the items in pieces that one call may ask for."""
    for start in range(0, len(items), view_write.MAX_DOCUMENTS):
        yield items[start : start + view_write.MAX_DOCUMENTS]
