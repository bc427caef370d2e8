"""An index of all sessions in memory, by which the API filters, sorts and counts them.

The first request reads all views of the generation; after that the live feed reports which sessions
changed, so an update costs as much as has changed. Where the feed no longer reaches back, or
sessions have left, a partition is read again. A session takes about a kilobyte.
"""

import asyncio
from bisect import bisect_left, bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias

from contextgauge.addresses import hashed_address
from schemas.views import LIVE_ENTRIES
from streams import codec
from streams.ports import ViewReader
from streams.serve.views.session_summary import ListOrder, Rank, SessionFilter, Summary, summary_of
from streams.serve.views.sessions import SessionKey
from streams.serve.views.snapshot import Snapshot, gather_all

_ALL: Final = 100_000_000
"""Sessions of a partition that are read."""

_BATCH: Final = 500
"""Views that are read at once; a few kB each."""

_ANY: Final = SessionFilter()


class Matches(NamedTuple):
    """A part of a list: its sessions, and whether more follow.

    `total` sessions are in the whole list, of which `live` come first for being active.
    """

    sessions: list[Summary]
    total: int
    live: int
    has_more: bool


@dataclass(slots=True)
class _PartitionIndex:
    """One partition's sessions, complete as of `offset`."""

    offset: int
    sessions: dict[bytes, Summary]


_Item: TypeAlias = tuple[Rank, Summary]

_MANY: Final = 20
"""If more than one in so many sessions changed, sorting again is less work than moving each."""

_GENERATIONS: Final = 2
"""Generations in memory: the active one, and the one that it replaced."""

_CACHED_LISTS: Final = 8
"""Lists of all sessions in memory, one for each order: 2 MB each for 10 000 sessions."""

_FILTERED_LISTS: Final = 32
"""Filtered lists in memory, until something changes."""


@dataclass(slots=True)
class _GenerationIndex:
    """One generation's sessions, and sorted lists of them."""

    partitions: list[_PartitionIndex]
    ordered: dict[ListOrder, list[_Item]] = field(default_factory=dict)
    filtered: dict[tuple[ListOrder, SessionFilter], list[_Item]] = field(default_factory=dict)

    def forget_lists(self) -> None:
        """Drop the lists: the sessions are others now."""
        self.ordered.clear()
        self.filtered.clear()

    def update(self, former: Sequence[Summary], new: Sequence[Summary]) -> None:
        """Replace sessions in the lists."""
        if not former and not new:
            return
        self.filtered.clear()
        for order, items in list(self.ordered.items()):
            if len(former) + len(new) > len(items) / _MANY:
                del self.ordered[order]
                continue
            for summary in former:
                # The tuple of the rank alone sorts before the item, and no other has this rank.
                del items[bisect_left(items, (summary.rank(order),))]
            for summary in new:
                insort(items, (summary.rank(order), summary))

    def matching(self, order: ListOrder, session_filter: SessionFilter) -> list[_Item]:
        """Return the sessions that a filter matches, in order."""
        if session_filter == _ANY:
            return self._all(order)
        items = self.filtered.get((order, session_filter))
        if items is None:
            items = [item for item in self._all(order) if session_filter.matches(item[1])]
            if len(self.filtered) >= _FILTERED_LISTS:
                self.filtered.clear()
            self.filtered[order, session_filter] = items
        return items

    def _all(self, order: ListOrder) -> list[_Item]:
        items = self.ordered.get(order)
        if items is None:
            items = sorted(
                (session.rank(order), session)
                for partition in self.partitions
                for session in partition.sessions.values()
            )
            if len(self.ordered) >= _CACHED_LISTS:
                self.ordered.clear()
            self.ordered[order] = items
        return items


class SessionIndex:
    """The sessions of the active generation, and of the former one for cursors that are in it.

    Its methods raise RetryError, VersionError.
    """

    def __init__(self, store: ViewReader) -> None:
        self._store = store
        self._generations: dict[tuple[int, str], _GenerationIndex] = {}
        self._lock = asyncio.Lock()

    async def part(
        self,
        snapshot: Snapshot,
        order: ListOrder,
        session_filter: SessionFilter,
        after: Rank | None,
        limit: int,
    ) -> Matches:
        """Return a part of a list, the first `limit` sessions after a rank."""
        matching = (await self._of(snapshot)).matching(order, session_filter)
        start = 0 if after is None else bisect_right(matching, after, key=itemgetter(0))
        part = [summary for _, summary in matching[start : start + limit]]
        live = bisect_left(matching, 1, key=lambda item: item[0][0])
        return Matches(part, len(matching), live, start + limit < len(matching))

    async def models_to_learn(self, snapshot: Snapshot) -> set[str]:
        """Return the models of all sessions' leading chains whose threshold is not reported."""
        partitions = (await self._of(snapshot)).partitions
        leading = (each.leading for part in partitions for each in part.sessions.values())
        return {
            chain.model
            for chain in leading
            if chain is not None and chain.model and chain.auto_compact_threshold is None
        }

    async def names(self, snapshot: Snapshot) -> list[bytes]:
        """Return all sessions."""
        return [name for part in (await self._of(snapshot)).partitions for name in part.sessions]

    async def addressed(self, snapshot: Snapshot, address: str) -> bytes | None:
        """Return the session that an address names by its hash; None: there is none."""
        names = await self.names(snapshot)
        return next((name for name in names if hashed_address(name) == address), None)

    async def _of(self, snapshot: Snapshot) -> _GenerationIndex:
        async with self._lock:
            partitions = range(snapshot.partitions)
            build = (snapshot.generation, snapshot.build)
            index = self._generations.get(build)
            if index is None:
                loaded = await gather_all(self._load(snapshot, number) for number in partitions)
                index = self._generations[build] = _GenerationIndex(loaded)
                for other in list(self._generations)[:-_GENERATIONS]:
                    del self._generations[other]
            else:
                await gather_all(self._follow(index, snapshot, number) for number in partitions)
            return index

    async def _load(self, snapshot: Snapshot, partition: int) -> _PartitionIndex:
        ranked = await self._store.ranked(snapshot.generation, partition, "recent", _ALL)
        offset = snapshot.positions[partition].offset
        names = [name for name, _ in ranked]
        return _PartitionIndex(offset, await self._read(snapshot, partition, names))

    async def _follow(self, index: _GenerationIndex, snapshot: Snapshot, partition: int) -> None:
        """Read what changed since the partition was read last."""
        generation, offset = snapshot.generation, snapshot.positions[partition].offset
        before = index.partitions[partition]
        known = before.sessions
        if offset == before.offset:
            return
        entries = await self._store.live(generation, partition, before.offset - 1, LIVE_ENTRIES)
        bounds = await self._store.live_bounds(generation, partition)
        changes = {codec.key_bytes(codec.loads(entry.document)["session_id"]) for entry in entries}
        names = list(changes)
        changed = await self._read(snapshot, partition, names)
        count = await self._store.session_count(generation, partition)
        gone = [name for name in names if name not in changed and name in known]
        new = sum(name not in known for name in changed)
        # A larger count is that of new sessions, which the feed reports the next time.
        has_left = len(known) - len(gone) + new > count
        if not bounds.reaches(before.offset) or offset < before.offset or has_left:
            # The feed is too short, Redis lost its last writes, or idle sessions left.
            index.partitions[partition] = await self._load(snapshot, partition)
            index.forget_lists()
            return
        former = [known[name] for name in (*gone, *(name for name in changed if name in known))]
        for name in gone:
            del known[name]
        known.update(changed)
        before.offset = offset
        index.update(former, list(changed.values()))

    async def _read(
        self, snapshot: Snapshot, partition: int, names: Sequence[bytes]
    ) -> dict[bytes, Summary]:
        summaries = {}
        for start in range(0, len(names), _BATCH):
            batch = names[start : start + _BATCH]
            views = await self._store.views(snapshot.generation, partition, batch)
            for name, view in zip(batch, views, strict=True):
                if view is not None:
                    summaries[name] = summary_of(SessionKey(partition, name), view)
        return summaries
