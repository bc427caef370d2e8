"""An index of all sessions in memory, by which the API filters, sorts and counts them.

The first request reads all views of the generation; after that the live feed reports which sessions
changed, so an update costs as much as has changed. Where the feed no longer reaches back, or
sessions have left, a partition is read again. A session takes about a kilobyte.
"""

import asyncio
from bisect import bisect_left, bisect_right, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias

from schemas.views import LIVE_ENTRIES, SessionView
from streams import codec
from streams.codec import views as view_codec
from streams.core.session_status import State, leading_chain, status_of
from streams.ports import Ranking, ViewReader
from streams.serve.views.sessions import SessionKey
from streams.serve.views.snapshot import Snapshot, gather_all

_ALL: Final = 100_000_000
"""Sessions of a partition that are read."""

_BATCH: Final = 500
"""Views that are read at once; a few kB each."""

UNRANKED: Final = -1.0
"""The rank by pressure of a session whose size is unknown: after all others."""

Rank: TypeAlias = tuple[float, int, bytes]
"""What a list is sorted by, ascending; the session comes last, so no two are equal."""


class Summary(NamedTuple):
    """What lists need of a session; `text` is searched, in lower case."""

    key: SessionKey
    recent: int
    percent: float | None
    state: State
    model: str | None
    runtime: str | None
    agent: str | None
    text: str

    def rank(self, by: Ranking) -> Rank:
        """Return its rank in a list."""
        if by == "recent":
            return (0.0, -self.recent, self.key.session)
        percent = UNRANKED if self.percent is None else self.percent
        return (-percent, -self.recent, self.key.session)


UNKNOWN_RUNTIME: Final = "unknown"
"""The filter for sessions whose runtime is unknown."""


class SessionFilter(NamedTuple):
    """Which sessions a list has; None: any."""

    state: str | None = None
    model: str | None = None
    runtime: str | None = None
    agent: str | None = None
    min_percent: float | None = None
    text: str | None = None

    def matches(self, session: Summary) -> bool:
        """Return whether a list with this filter has a session."""
        return (
            (self.state is None or self.state == session.state)
            and (self.model is None or self.model == session.model)
            and (self.runtime is None or self.runtime == (session.runtime or UNKNOWN_RUNTIME))
            and (self.agent is None or self.agent == session.agent)
            and (
                self.min_percent is None
                or (session.percent is not None and session.percent >= self.min_percent)
            )
            and (self.text is None or self.text in session.text)
        )


_ANY: Final = SessionFilter()


class Matches(NamedTuple):
    """A part of a list: its sessions, how many the whole list has, and whether more follow."""

    sessions: list[Summary]
    total: int
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

_FILTERED_LISTS: Final = 32
"""Filtered lists in memory, until something changes."""


@dataclass(slots=True)
class _GenerationIndex:
    """One generation's sessions, and sorted lists of them."""

    partitions: list[_PartitionIndex]
    ranked: dict[Ranking, list[_Item]] = field(default_factory=dict)
    filtered: dict[tuple[Ranking, SessionFilter], list[_Item]] = field(default_factory=dict)

    def forget_lists(self) -> None:
        """Drop the lists: the sessions are others now."""
        self.ranked.clear()
        self.filtered.clear()

    def update(self, former: Sequence[Summary], new: Sequence[Summary]) -> None:
        """Replace sessions in the lists."""
        if not former and not new:
            return
        self.filtered.clear()
        for by, items in list(self.ranked.items()):
            if len(former) + len(new) > len(items) / _MANY:
                del self.ranked[by]
                continue
            for summary in former:
                # The tuple of the rank alone sorts before the item, and no other has this rank.
                del items[bisect_left(items, (summary.rank(by),))]
            for summary in new:
                insort(items, (summary.rank(by), summary))

    def matching(self, by: Ranking, session_filter: SessionFilter) -> list[_Item]:
        """Return the sessions that a filter matches, in order."""
        if session_filter == _ANY:
            return self._all(by)
        items = self.filtered.get((by, session_filter))
        if items is None:
            items = [item for item in self._all(by) if session_filter.matches(item[1])]
            if len(self.filtered) >= _FILTERED_LISTS:
                self.filtered.clear()
            self.filtered[by, session_filter] = items
        return items

    def _all(self, by: Ranking) -> list[_Item]:
        items = self.ranked.get(by)
        if items is None:
            items = self.ranked[by] = sorted(
                (session.rank(by), session)
                for partition in self.partitions
                for session in partition.sessions.values()
            )
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
        by: Ranking,
        session_filter: SessionFilter,
        after: Rank | None,
        limit: int,
    ) -> Matches:
        """Return a part of a list, the first `limit` sessions after a rank."""
        matching = (await self._of(snapshot)).matching(by, session_filter)
        start = 0 if after is None else bisect_right(matching, after, key=itemgetter(0))
        part = [summary for _, summary in matching[start : start + limit]]
        return Matches(part, len(matching), start + limit < len(matching))

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
        return _PartitionIndex(offset, await self._read(snapshot, partition, dict(ranked)))

    async def _follow(self, index: _GenerationIndex, snapshot: Snapshot, partition: int) -> None:
        """Read what changed since the partition was read last."""
        generation, offset = snapshot.generation, snapshot.positions[partition].offset
        before = index.partitions[partition]
        known = before.sessions
        if offset == before.offset:
            return
        entries = await self._store.live(generation, partition, before.offset - 1, LIVE_ENTRIES)
        bounds = await self._store.live_bounds(generation, partition)
        names = {codec.key_bytes(codec.loads(entry.document)["session_id"]) for entry in entries}
        scores = {name: known[name].recent if name in known else None for name in names}
        changed = await self._read(snapshot, partition, scores)
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
        self, snapshot: Snapshot, partition: int, scores: Mapping[bytes, float | None]
    ) -> dict[bytes, Summary]:
        names = list(scores)
        summaries = {}
        for start in range(0, len(names), _BATCH):
            batch = names[start : start + _BATCH]
            views = await self._store.views(snapshot.generation, partition, batch)
            for name, view in zip(batch, views, strict=True):
                if view is not None:
                    summaries[name] = summary(SessionKey(partition, name), view, scores[name])
        return summaries


def summary(key: SessionKey, document: bytes, score: float | None = None) -> Summary:
    """Return what lists need of a session. Raises VersionError.

    `score` ranks it by last activity where none of its records has a time.
    """
    view = view_codec.decode(SessionView, document)
    identity, leading = view.identity, leading_chain(view)
    model = identity.model if leading is None else leading.model or identity.model
    agent, runtime = identity.publisher_agent_id, identity.runtime
    searched = (view.session_id, identity.cwd, model, agent, identity.task_id, runtime)
    return Summary(
        key=key,
        recent=int(score or 0) if view.last_ms is None else view.last_ms,
        percent=None if leading is None else leading.used_percent,
        state=status_of(view).settled,
        model=model,
        runtime=runtime,
        agent=agent,
        text="\n".join(text for text in searched if text).lower(),
    )
