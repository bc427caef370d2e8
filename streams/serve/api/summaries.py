"""All sessions in short, kept in memory: what lists are filtered, sorted and counted by.

The first question reads all views of the generation once; after that the live feed tells which
sessions changed, so keeping up costs as much as there is news. Where the feed no longer reaches
back, or sessions left, a partition is read anew. A session takes about a kilobyte.
"""

import asyncio
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from schemas.views import LIVE_ENTRIES, SessionView
from streams import codec
from streams.codec import views as view_codec
from streams.core.session_status import State, leading_chain, status_of
from streams.ports import Ranking, ViewReader
from streams.serve.api.snapshot import Moment
from streams.serve.api.together import all_of

_WHOLE: Final = 100_000_000
"""Sessions of a partition that are read: all."""

_PIECE: Final = 500
"""Views that are asked for at once; a few kB each."""

UNRANKED: Final = -1.0
"""Where a session is ranked by pressure whose size is not known: after all others."""

Rank: TypeAlias = tuple[float, int, bytes]
"""What a list is sorted by, ascending; the session last, so no two are equal."""


class Summary(NamedTuple):
    """What lists need to know of a session; `text` is what is searched, in lower case."""

    session: bytes
    partition: int
    recent: int
    percent: float | None
    state: State
    model: str | None
    runtime: str | None
    agent: str | None
    text: str

    def rank(self, by: Ranking) -> Rank:
        """Return where it stands in a list."""
        if by == "recent":
            return (0.0, -self.recent, self.session)
        return (-(UNRANKED if self.percent is None else self.percent), -self.recent, self.session)


UNKNOWN_RUNTIME: Final = "unknown"
"""The filter for sessions whose runtime is unknown."""


class Filter(NamedTuple):
    """What sessions are asked for; None: any."""

    state: str | None = None
    model: str | None = None
    runtime: str | None = None
    agent: str | None = None
    min_percent: float | None = None
    text: str | None = None

    def takes(self, found: Summary) -> bool:
        """Tell whether a session is asked for."""
        return (
            (self.state is None or self.state == found.state)
            and (self.model is None or self.model == found.model)
            and (self.runtime is None or self.runtime == (found.runtime or UNKNOWN_RUNTIME))
            and (self.agent is None or self.agent == found.agent)
            and (
                self.min_percent is None
                or (found.percent is not None and found.percent >= self.min_percent)
            )
            and (self.text is None or self.text in found.text)
        )


_ANY: Final = Filter()


class Page(NamedTuple):
    """A part of a list: its sessions, how many there are in all, and whether more follow."""

    sessions: list[Summary]
    total: int
    goes_on: bool


@dataclass(slots=True)
class _Partition:
    """One partition's sessions, complete as of `offset`."""

    offset: int
    sessions: dict[bytes, Summary]


_Item: TypeAlias = tuple[Rank, Summary]

_MANY: Final = 20
"""One in so many sessions changed: sorting anew is less work than moving each."""

_GENERATIONS: Final = 2
"""Generations that are kept: the active one, and the one that it replaced."""

_MATCHES: Final = 32
"""Filters whose sessions are kept until something changes."""


def _rank(item: _Item) -> Rank:
    return item[0]


@dataclass(slots=True)
class _Generation:
    """One generation's sessions, and lists of them in order."""

    number: int
    partitions: list[_Partition]
    lists: dict[Ranking, list[_Item]] = field(default_factory=dict)
    matches: dict[tuple[Ranking, Filter], list[_Item]] = field(default_factory=dict)

    def changed(self, former: Sequence[Summary], new: Sequence[Summary]) -> None:
        """Bring the lists up to date: these are no longer as they were, and those are there."""
        if not former and not new:
            return
        self.matches.clear()
        for by, items in list(self.lists.items()):
            if len(former) + len(new) > len(items) / _MANY:
                del self.lists[by]
                continue
            for summary in former:
                # Before anything of this rank, which nothing else has.
                del items[bisect_left(items, (summary.rank(by),))]
            for summary in new:
                insort(items, (summary.rank(by), summary))

    def matching(self, by: Ranking, wanted: Filter) -> list[_Item]:
        """Return the sessions that are asked for, in order."""
        if wanted == _ANY:
            return self._ordered(by)
        found = self.matches.get((by, wanted))
        if found is None:
            found = [item for item in self._ordered(by) if wanted.takes(item[1])]
            if len(self.matches) >= _MATCHES:
                self.matches.clear()
            self.matches[by, wanted] = found
        return found

    def _ordered(self, by: Ranking) -> list[_Item]:
        found = self.lists.get(by)
        if found is None:
            found = sorted(
                (session.rank(by), session)
                for partition in self.partitions
                for session in partition.sessions.values()
            )
            self.lists[by] = found
        return found


class Summaries:
    """The sessions of the active generation, and of the one before it for who pages through it.

    Its methods raise RetryError, VersionError.
    """

    def __init__(self, reader: ViewReader) -> None:
        self._reader = reader
        self._kept: dict[tuple[int, str], _Generation] = {}
        self._lock = asyncio.Lock()

    async def page(
        self, moment: Moment, by: Ranking, wanted: Filter, after: Rank | None, limit: int
    ) -> Page:
        """Return a part of a list, the first `limit` sessions after a rank."""
        found = await self._of(moment)
        matching = found.matching(by, wanted)
        start = 0 if after is None else bisect_right(matching, after, key=_rank)
        part = matching[start : start + limit]
        return Page([summary for _, summary in part], len(matching), start + limit < len(matching))

    async def _of(self, moment: Moment) -> _Generation:
        async with self._lock:
            partitions = range(moment.partitions)
            # An emptied Redis begins its numbers again: the build tells one from the other.
            build = (moment.generation, moment.positions[0].build)
            found = self._kept.get(build)
            if found is None:
                loaded = await all_of(self._load(moment, number) for number in partitions)
                found = _Generation(moment.generation, loaded)
                # The one before it stays, for who pages through it.
                self._kept[build] = found
                for other in list(self._kept)[:-_GENERATIONS]:
                    del self._kept[other]
            else:
                await all_of(self._follow(found, moment, number) for number in partitions)
            return found

    async def _load(self, moment: Moment, partition: int) -> _Partition:
        ranked = await self._reader.ranked(moment.generation, partition, "recent", _WHOLE)
        offset = moment.positions[partition].offset
        return _Partition(offset, await self._read(moment, partition, ranked))

    async def _follow(self, kept: _Generation, moment: Moment, partition: int) -> None:
        """Read what changed since the partition was read last."""
        before, offset = kept.partitions[partition], moment.positions[partition].offset
        if offset == before.offset:
            return
        entries = await self._reader.live(
            moment.generation, partition, before.offset - 1, LIVE_ENTRIES
        )
        bounds = await self._reader.live_bounds(moment.generation, partition)
        names = {codec.key_bytes(codec.loads(entry.document)["session_id"]) for entry in entries}
        ranked = [
            (name, before.sessions[name].recent if name in before.sessions else None)
            for name in names
        ]
        found = await self._read(moment, partition, ranked)
        count = await self._reader.session_count(moment.generation, partition)
        known = before.sessions
        gone = [name for name in names if name not in found and name in known]
        new = sum(name not in known for name in found)
        # More than are counted here are new ones: the feed tells of them the next time.
        has_left = len(known) - len(gone) + new > count
        if not bounds.reaches(before.offset) or offset < before.offset or has_left:
            # The feed is too short, Redis lost its last writes, or sessions left for idleness.
            kept.partitions[partition] = await self._load(moment, partition)
            kept.lists.clear()
            kept.matches.clear()
            return
        former = [known[name] for name in (*gone, *(name for name in found if name in known))]
        for name in gone:
            del known[name]
        known.update(found)
        before.offset = offset
        kept.changed(former, list(found.values()))

    async def _read(
        self, moment: Moment, partition: int, ranked: Sequence[tuple[bytes, float | None]]
    ) -> dict[bytes, Summary]:
        found = {}
        for start in range(0, len(ranked), _PIECE):
            piece = ranked[start : start + _PIECE]
            views = await self._reader.views(
                moment.generation, partition, [session for session, _ in piece]
            )
            for (session, score), view in zip(piece, views, strict=True):
                if view is not None:
                    found[session] = summary(session, partition, view, score)
        return found


def summary(session: bytes, partition: int, document: bytes, score: float | None = None) -> Summary:
    """Return a session in short, from its view's document. Raises VersionError.

    `score` is its place by last activity, for a session none of whose records has a time.
    """
    view = view_codec.decode(SessionView, document)
    identity, leading = view.identity, leading_chain(view)
    model = identity.model if leading is None else leading.model or identity.model
    agent, runtime = identity.publisher_agent_id, identity.runtime
    texts = (view.session_id, identity.cwd, model, agent, identity.task_id, runtime)
    return Summary(
        session=session,
        partition=partition,
        recent=int(score or 0) if view.last_ms is None else view.last_ms,
        percent=None if leading is None else leading.used_percent,
        state=status_of(view).settled,
        model=model,
        runtime=runtime,
        agent=agent,
        text="\n".join(text for text in texts if text).lower(),
    )


PartitionOf: TypeAlias = Callable[[str, int], int]
"""Gives a session's partition."""
