"""Compares one partition of two generations while both follow the log.

Each generation is read in snapshots. Most sessions get no record between the snapshots of the two
generations, and are compared directly. For the others, and for the aggregates of the partition, the
build is stopped at exactly the position of a snapshot of the active generation. The active
generation is never stopped, so readers are not affected.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias, TypeVar, TypeVarTuple, Unpack

from contextgauge.errors import LostError, RetryError
from streams import codec
from streams.ports import PartitionSnapshot, SessionSnapshot, SessionsSnapshot, ViewStore

SESSIONS_A_LOOK = 5
"""A session's documents may be some megabytes, and Redis serves no one else meanwhile."""

REPORTED_DIFFERENCES = 10
"""Differences that are reported; the others are counted."""

_REPORTED_FIELDS = 5
"""Fields that are reported of one session."""

Pause: TypeAlias = Callable[[], Awaitable[None]]
"""Waits a short time. Raises if the comparison has become pointless."""

_Look = TypeVar("_Look", SessionsSnapshot, PartitionSnapshot)
_What = TypeVarTuple("_What")


class Pair(NamedTuple):
    """The active generation and the one that is to replace it."""

    former: int
    following: int
    build: str


class Difference(NamedTuple):
    """Fields in which a session, or the partition, differs: their names, never their values."""

    partition: int
    session: str | None
    fields: tuple[str, ...]


@dataclass(slots=True)
class Compared:
    """The result of a comparison: how many sessions and differences, and the first of these."""

    sessions: int = 0
    different: int = 0
    first: list[Difference] = field(default_factory=list)

    def add(self, difference: Difference) -> None:
        """Count a difference."""
        self.different += 1
        if len(self.first) < REPORTED_DIFFERENCES:
            self.first.append(difference)

    def add_partition(self, other: "Compared") -> None:
        """Add another partition's result."""
        self.sessions += other.sessions
        self.different += other.different
        self.first = (self.first + other.first)[:REPORTED_DIFFERENCES]


class PartitionComparison:
    """Compares one partition of two generations, once. `pause` is called to wait for a worker.

    `count` gets the number of sessions compared so far.
    """

    def __init__(
        self,
        store: ViewStore,
        pair: Pair,
        partition: int,
        *,
        pause: Pause,
        count: Callable[[int], None],
    ) -> None:
        self._store, self._pair, self._partition = store, pair, partition
        self._pause, self._count = pause, count
        self._result = Compared()

    async def run(self) -> Compared:
        """Compare everything. Raises RetryError, and LostError if the build starts over."""
        moved = [name async for name in self._compare_unmoved()]
        try:
            for sessions in _chunks(moved):
                former, following = await self._level(self._store.look, sessions)
                self._compare_sessions(sessions, former, following)
            await self._compare_partition()
        finally:
            with suppress(RetryError):
                await self._limit(None)
        return self._result

    async def _compare_unmoved(self) -> AsyncIterator[bytes]:
        """Compare the sessions that got no record meanwhile; yield the others."""
        pair, store = self._pair, self._store
        for of in ("recent", "left"):
            async for page in store.pages(pair.former, self._partition, of):
                for sessions in _chunks(page):
                    former, following = await asyncio.gather(
                        store.look(pair.former, self._partition, sessions),
                        store.look(pair.following, self._partition, sessions),
                    )
                    for name in self._compare_sessions(sessions, former, following):
                        yield name
                if of == "recent":
                    self._result.sessions += len(page)
                    self._count(self._result.sessions)

    def _compare_sessions(
        self, sessions: Sequence[bytes], former: SessionsSnapshot, following: SessionsSnapshot
    ) -> list[bytes]:
        """Compare what can be compared; return the sessions that got a record in between."""
        is_level = former.offset == following.offset
        moved = []
        for name, one, other in zip(sessions, former.sessions, following.sessions, strict=True):
            if one == other:
                continue
            if is_level or _is_comparable(one, other):
                self._differs(name, one, other)
            else:
                moved.append(name)
        return moved

    async def _compare_partition(self) -> None:
        former, following = await self._level(self._store.look_at_partition)
        fields = [f"stats {name}" for name in _unequal(_texts(former), _texts(following))]
        if former.live != following.live:
            fields.append("live")
        fields += [f"number of {name}" for name in _unequal(former.counts, following.counts)]
        if fields:
            self._result.add(Difference(self._partition, None, _first(fields)))
        if former.counts["recent"] < following.counts["recent"]:
            await self._report_additional()

    async def _report_additional(self) -> None:
        """Report the sessions that only the new generation has."""
        pair, partition = self._pair, self._partition
        async for page in self._store.pages(pair.following, partition, "recent"):
            views = await self._store.views(pair.former, partition, page)
            for name, view in zip(page, views, strict=True):
                if view is None:
                    missing = f"missing in generation {pair.former}"
                    self._result.add(Difference(partition, _text(name), (missing,)))

    async def _level(
        self, look: Callable[[int, int, Unpack[_What]], Awaitable[_Look]], *what: *_What
    ) -> tuple[_Look, _Look]:
        """Return snapshots of both generations at the same position of the log."""
        while True:
            former = await look(self._pair.former, self._partition, *what)
            if former.offset is not None:
                await self._limit(former.offset)
                await self._until_at(former.offset)
                following = await look(self._pair.following, self._partition, *what)
                if following.offset == former.offset:
                    return former, following
            # The build was ahead, or in the middle of a batch: from now on it is stopped.
            await self._pause()

    async def _until_at(self, offset: int) -> None:
        pair = self._pair
        while True:
            position = await self._store.position(pair.following, self._partition)
            if position is None or not position.caught_up or position.build != pair.build:
                raise LostError(f"partition {self._partition} is being rebuilt")
            if position.offset >= offset:
                return
            if position.limit != offset:
                # Another comparison set it, perhaps one that was killed and never removes it.
                await self._limit(offset)
            await self._pause()

    async def _limit(self, offset: int | None) -> None:
        pair = self._pair
        await self._store.limit(pair.following, self._partition, pair.build, offset)

    def _differs(self, name: bytes, one: SessionSnapshot, other: SessionSnapshot) -> None:
        pair = self._pair
        if one.view is None or other.view is None:
            missing = pair.former if one.view is None else pair.following
            fields = [f"missing in generation {missing}"] if one.view != other.view else ["left"]
        else:
            views = _unequal_fields(_read(one.view), _read(other.view))
            fields = [*views, *_unequal(one.parts, other.parts)]
        self._result.add(Difference(self._partition, _text(name), _first(fields)))


def _is_comparable(one: SessionSnapshot, other: SessionSnapshot) -> bool:
    """Return whether two snapshots have the same state of a session, though not of its partition.

    A session's documents change only with its own records, and its view has the last position;
    but it leaves, and is forgotten, through the records of other sessions.
    """
    if one.view is None or other.view is None:
        return False
    before, after = _read(one.view), _read(other.view)
    if before and after and before.get("position") != after.get("position"):
        return False
    return one.view != other.view or _unequal(one.parts, other.parts) != ["left"]


def _read(view: bytes) -> dict[str, Any]:
    """Return a view's fields; none if it is damaged."""
    try:
        document = codec.loads(view)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


_Value = TypeVar("_Value")


def _unequal(one: Mapping[str, _Value], other: Mapping[str, _Value]) -> list[str]:
    """Return the names whose values differ, or that only one has."""
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


def _unequal_fields(one: object, other: object, path: str = "") -> list[str]:
    """Return the paths below which two JSON values differ."""
    if one == other:
        return []
    if isinstance(one, dict) and isinstance(other, dict):
        below = f"{path}." if path else ""
        return [
            changed
            for name in _unequal(one, other)
            for changed in _unequal_fields(one.get(name), other.get(name), below + name)
        ]
    return [path or "view"]


def _texts(look: PartitionSnapshot) -> dict[str, bytes]:
    return {_text(name): stat for name, stat in look.stats.items()}


def _text(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")


def _first(fields: Sequence[str]) -> tuple[str, ...]:
    more = ("…",) if len(fields) > _REPORTED_FIELDS else ()
    return (*fields[:_REPORTED_FIELDS], *more)


def _chunks(sessions: Sequence[bytes]) -> list[Sequence[bytes]]:
    starts = range(0, len(sessions), SESSIONS_A_LOOK)
    return [sessions[start : start + SESSIONS_A_LOOK] for start in starts]
