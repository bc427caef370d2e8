"""Comparing one partition of two generations that may follow the log meanwhile."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import pytest

from contextgauge.errors import LostError
from schemas.records import ContextReading
from schemas.topics import DAY_MS
from schemas.views import STREAM_ENTRIES
from streams.edge.memory.view_store import MemoryPartition, MemoryViews
from streams.flow.rebuild.compare import Compared, Difference, Pair, PartitionComparison
from streams.ports import LogRecord, SessionsSnapshot, ViewPosition
from tests.core.history import START_MS
from tests.flow.project_kit import SAMPLE, Told, on_log, sample_records, wanted

PAIR = Pair(1, 2, "build")


def partition_of_log(log: Sequence[LogRecord], build: str = "") -> MemoryPartition:
    """Return a partition with the documents of a log."""
    position = ViewPosition(log[-1].offset + 2, 0, 1, caught_up=True, build=build)
    return MemoryPartition(position, wanted(log))


def store_of(log: Sequence[LogRecord], following: Sequence[LogRecord] | None = None) -> MemoryViews:
    """Return a store with two generations of one partition."""
    store = MemoryViews()
    store.partitions[1, 0] = partition_of_log(log)
    store.partitions[2, 0] = partition_of_log(following or log, "build")
    return store


async def no_pause() -> None:
    await asyncio.sleep(0)


async def compare(
    store: MemoryViews, pause: Callable[[], Any] = no_pause, counted: list[int] | None = None
) -> Compared:
    count = (counted if counted is not None else []).append
    return await PartitionComparison(store, PAIR, 0, pause=pause, count=count).run()


async def test_two_generations_of_one_log_are_equal() -> None:
    store, counted = store_of(SAMPLE), list[int]()
    found = await compare(store, counted=counted)
    assert found == Compared(sessions=12)
    assert counted == [12]


def change_view(store: MemoryViews, session: bytes) -> None:
    views = store.partitions[2, 0].held.views
    views[session] = views[session].replace(b'"task_id":null', b'"task_id":"t"')


def damage_view(store: MemoryViews, session: bytes) -> None:
    store.partitions[2, 0].held.views[session] = b"{"


def add_session(store: MemoryViews, session: bytes) -> None:
    held = store.partitions[2, 0].held
    held.views[b"more"] = held.views[session]
    held.rankings["recent"][b"more"] = 1


def lose_session(store: MemoryViews, session: bytes) -> None:
    store.partitions[2, 0].held.views.pop(session)


def change_compaction(store: MemoryViews, session: bytes) -> None:
    store.partitions[2, 0].held.compactions[session][b"1"] = b"{}"


def lose_event(store: MemoryViews, session: bytes) -> None:
    del store.partitions[2, 0].held.entries["events"][session][3]


def lose_readings(store: MemoryViews, session: bytes) -> None:
    del store.partitions[2, 0].held.entries["readings"][session]


def change_rank(store: MemoryViews, session: bytes) -> None:
    store.partitions[2, 0].held.rankings["pressure"][session] = 12.5


def leave(store: MemoryViews, session: bytes) -> None:
    store.partitions[2, 0].held.left[session] = 5


def change_stats(store: MemoryViews, session: bytes) -> None:  # noqa: ARG001 -- of none
    store.partitions[2, 0].held.stats[b"total"] = b"{}"


def lose_live(store: MemoryViews, session: bytes) -> None:  # noqa: ARG001 -- of none
    del store.partitions[2, 0].held.live[7]


Change: TypeAlias = Callable[[MemoryViews, bytes], None]

CHANGES: dict[Change, list[tuple[str | None, tuple[str, ...]]]] = {
    change_view: [("session", ("identity.task_id",))],
    damage_view: [("session", ("chains", "compactions", "identity", "position", "sequence", "…"))],
    add_session: [
        (None, ("number of recent",)),
        ("more", ("missing in generation 1",)),
    ],
    lose_session: [("session", ("missing in generation 2",))],
    change_compaction: [("session", ("compactions",))],
    lose_event: [("session", ("events",))],
    lose_readings: [("session", ("readings",))],
    change_rank: [("session", ("pressure",))],
    leave: [("session", ("left",)), (None, ("number of left",))],
    change_stats: [(None, ("stats total",))],
    lose_live: [(None, ("live",))],
}


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("behind", [False, True], ids=["level", "behind"])
async def test_a_change_is_reported_with_its_fields(change: Change, *, behind: bool) -> None:
    store = store_of(SAMPLE)
    session = next(iter(store.partitions[1, 0].held.compactions))
    change(store, session)
    if behind:
        # The positions differ until the comparison asks for one.
        position = store.partitions[2, 0].position
        assert position is not None
        store.partitions[2, 0].position = position._replace(offset=position.offset - 2)
    found = await compare(store, follow(store) if behind else no_pause)
    named = [(item.session, item.fields) for item in found.first]
    told = session.decode()
    assert named == [(told if name == "session" else name, what) for name, what in CHANGES[change]]
    assert found.different == len(named)
    assert {item.partition for item in found.first} == {0}


def follow(store: MemoryViews) -> Callable[[], Any]:
    """Return a pause in which a worker brings the build as far as it may go."""

    async def pause() -> None:
        partition = store.partitions[2, 0]
        assert partition.position is not None
        if partition.position.limit is not None:
            partition.position = partition.position._replace(offset=partition.position.limit)

    return pause


class Racing:
    """A live generation that gets a record whenever it is looked at, and a build that follows.

    The build goes on by itself, with the live one, until it is told to stop.
    """

    def __init__(self, log: Sequence[LogRecord], begin: int) -> None:
        self.store = store_of(log[:begin])
        self._log, self._live = log, begin
        self._looks = self.store.look
        self._looks_at_partition = self.store.look_at_partition
        self.store.look = self._look  # type: ignore[method-assign]
        self.store.look_at_partition = self._look_at_partition  # type: ignore[method-assign]

    def goes_on(self) -> bool:
        """Tell whether there is more for the live generation to come."""
        return self._live < len(self._log) - 1

    def move(self, generation: int) -> None:
        """Go on by a record, once the look is over."""
        if generation == 1 and self.goes_on():
            self._live += 1
            self.store.partitions[1, 0] = partition_of_log(self._log[: self._live])
            self.follow(self._live - 1)

    def follow(self, records: int) -> None:
        """Bring the build to so many records, or to its limit."""
        build = self.store.partitions[2, 0]
        assert build.position is not None
        limit, offset = build.position.limit, build.position.offset
        log = [item for item in self._log[:records] if limit is None or item.offset < limit]
        if log[-1].offset + 2 > offset:
            self.store.partitions[2, 0] = partition_of_log(log, "build")
            found = self.store.partitions[2, 0].position
            assert found is not None
            self.store.partitions[2, 0].position = found._replace(limit=limit)

    async def pause(self) -> None:
        """Let the build come as far as it may."""
        assert self.goes_on(), "the two are never level while records come"
        self.follow(self._live)

    async def _look(self, generation: int, partition: int, sessions: Any) -> SessionsSnapshot:
        self.follow(self._live)
        found = await self._looks(generation, partition, sessions)
        self.move(generation)
        return found

    async def _look_at_partition(self, generation: int, partition: int) -> Any:
        self.follow(self._live)
        found = await self._looks_at_partition(generation, partition)
        self.move(generation)
        return found


async def test_sessions_that_keep_changing_are_compared_at_one_position() -> None:
    # Every look is followed by another record, so the two are never level by themselves.
    racing = Racing(SAMPLE, len(SAMPLE) - 150)
    found = await compare(racing.store, racing.pause)
    assert (found.sessions, found.different) == (12, 0)
    assert racing.goes_on(), "nothing waited for the end of the log"
    build = racing.store.partitions[2, 0].position
    assert build is not None
    assert build.limit is None, "it may go on now"


async def test_a_difference_in_a_session_that_keeps_changing_is_reported() -> None:
    racing = Racing(SAMPLE, len(SAMPLE) - 150)
    look = racing.store.look_at_partition

    async def wrong_stats(generation: int, partition: int) -> Any:
        found = await look(generation, partition)
        return found._replace(stats={}) if generation == 2 else found

    racing.store.look_at_partition = wrong_stats  # type: ignore[method-assign]
    found = await compare(racing.store, racing.pause)
    assert found.different == 1
    assert found.first[0].session is None
    assert len(found.first[0].fields) == 6, "five are named, and that there are more"


async def test_streams_that_are_full_and_sessions_that_left_are_equal() -> None:
    records = [record for part in sample_records() for record in part]
    reading = next(record for record in records if isinstance(record.data, ContextReading))
    many = [
        replace(reading, sequence=number + 1, id=f"{reading.id}-{number}")
        for number in range(STREAM_ENTRIES + 50)
    ]
    others = [item for item in records if item.data.session_id != reading.data.session_id]
    later = START_MS + 200 * DAY_MS
    log = on_log(
        [
            *(Told(record, START_MS) for record in many),
            *(Told(record, START_MS) for record in others),
            *(Told(replace(record, sequence=9_999), later) for record in many[:1]),
        ]
    )
    store = store_of(log)
    held = store.partitions[1, 0].held
    assert len(held.left) == 12
    assert await compare(store) == Compared(sessions=1)
    full = store_of(log[:-1])
    entries = full.partitions[1, 0].held.entries["readings"]
    assert len(entries[reading.data.session_id.encode()]) == STREAM_ENTRIES
    assert await compare(full) == Compared(sessions=12)
    # Who left is compared too, though there is nothing else of it.
    store.partitions[2, 0].held.left[others[0].data.session_id.encode()] += 1
    assert [item.fields for item in (await compare(store)).first] == [("left",)]


async def test_a_partition_that_is_rebuilt_raises_a_lost_error() -> None:
    store = store_of(SAMPLE)
    position = store.partitions[2, 0].position
    assert position is not None
    for other in (None, position._replace(caught_up=False), position._replace(build="another")):
        store.partitions[2, 0].position = other
        with pytest.raises(LostError, match="partition 0"):
            await compare(store)


async def test_a_limit_left_by_another_comparison_does_not_block() -> None:
    store, pauses = store_of(SAMPLE), []
    partition = store.partitions[2, 0]
    assert partition.position is not None
    behind = partition.position.offset - 2
    partition.position = partition.position._replace(offset=behind)
    work = follow(store)

    async def pause() -> None:
        pauses.append(1)
        assert len(pauses) < 50, "it waits for ever"
        if len(pauses) == 1:
            # The other one sets it now, and is killed.
            await store.limit(2, 0, "build", behind)
        await work()

    assert (await compare(store, pause)).different == 0
    assert len(pauses) >= 2


async def test_only_the_first_differences_are_reported() -> None:
    store = store_of(SAMPLE)
    for session in store.partitions[2, 0].held.views:
        change_view(store, session)
    found = await compare(store)
    assert (found.different, len(found.first)) == (12, 10)
    total = Compared(5, 3, [Difference(1, None, ("live",))])
    total.add_partition(found)
    assert (total.sessions, total.different, len(total.first)) == (17, 15, 10)
    assert total.first[0] == Difference(1, None, ("live",))
