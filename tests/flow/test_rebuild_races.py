"""`contextgauge rebuild` in races with workers, Redis and other commands."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from contextgauge.clock import SystemClock
from contextgauge.errors import RetryError, StopError
from streams.edge.memory.log import MemoryLog
from streams.edge.memory.view_store import MemoryPartition
from streams.flow.rebuild.progress import Rebuilt
from streams.ports import Generations, ViewPosition
from tests.doubles.view_store import FaultyViews
from tests.flow.derive_kit import until
from tests.flow.project_kit import PARTITIONS, SAMPLE, HastyClock, ProjectKit, wanted
from tests.flow.rebuild_kit import Run, projecting
from tests.flow.test_rebuild import MORE, RECORDS, SOME, caught_up, change_views
from tests.patience import PATIENCE_S


class Views(FaultyViews):
    """Views in memory; `on_lift` is done whenever a limit shall be taken away."""

    async def on_lift(self) -> None:
        """Do nothing."""

    async def limit(self, generation: int, partition: int, build: str, offset: int | None) -> None:
        if offset is None:
            await self.on_lift()
        await super().limit(generation, partition, build, offset)


@pytest.fixture
def store() -> Views:
    return Views()


@pytest.fixture
async def kit(store: Views) -> AsyncIterator[ProjectKit]:
    kit = ProjectKit(MemoryLog(SystemClock()), store)
    await kit.create_topic()
    yield kit
    assert [task for task in asyncio.all_tasks() if "flow/project" in repr(task)] == []


async def test_a_limit_that_could_not_be_removed_does_not_block_the_swap(
    kit: ProjectKit, store: Views, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with projecting(kit, SOME) as worker, asyncio.timeout(PATIENCE_S):
        failed: list[int] = []

        async def fail() -> None:
            if len(failed) < PARTITIONS:
                failed.append(1)
                if len(failed) == PARTITIONS:
                    # The active generation goes on meanwhile, and is ahead of the limits.
                    await kit.append(MORE)
                    await kit.caught_up(worker)
                raise RetryError("away for a moment")

        monkeypatch.setattr(store, "on_lift", fail)
        done = await Run(store).to_end()
    assert len(failed) == PARTITIONS
    assert done.swapped
    assert await kit.documents(2) == await kit.expected()


class Chased(Views):
    """Two generations of one partition without workers, that move when the command pauses."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = Generations(1, 2, "build", held=True)
        for generation, build in ((1, ""), (2, "build")):
            position = ViewPosition(1_000, 0, 1, caught_up=True, build=build)
            self.partitions[generation, 0] = MemoryPartition(position, wanted(SAMPLE))
        self.swapped_at: list[int] = []

    def place(self, generation: int, offset: int) -> None:
        """Bring a generation to an offset."""
        partition = self.partitions[generation, 0]
        assert partition.position is not None
        partition.position = partition.position._replace(offset=offset)

    async def on_lift(self) -> None:
        """The comparison is over: from now on the active one is ahead."""
        if not self.swapped_at:
            self.place(1, 1_010)

    async def activate(self, generation: int, build: str, partitions: int = 0) -> None:
        for number in (1, 2):
            found = await self.position(number, 0)
            assert found is not None
            self.swapped_at.append(found.offset)
        await super().activate(generation, build, partitions)


class Moving(HastyClock):
    """A clock that moves both generations at each pause, to the next of `places`."""

    def __init__(self, store: Chased, places: list[tuple[int, int]]) -> None:
        self._store, self._places, self.now_s = store, places, 0.0

    def monotonic_s(self) -> float:
        return self.now_s

    async def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        if len(self._places) > 1:
            for generation, offset in zip((1, 2), self._places.pop(0), strict=True):
                self._store.place(generation, offset)
        await super().sleep(seconds)


async def test_the_swap_never_shows_readers_older_views() -> None:
    store = Chased()
    # At the first pause the new one has all that there was; but there is more now.
    clock = Moving(store, [(1_020, 1_010), (1_030, 1_025), (1_030, 1_030), (0, 0)])
    assert (await Run(store, clock).to_end()).swapped
    assert store.swapped_at == [1_030, 1_030]


async def test_constant_messages_delay_the_swap_by_seconds_only() -> None:
    store = Chased()
    clock = Moving(store, [(1_020 + step, 1_010 + step) for step in range(10_000)])
    assert (await Run(store, clock).to_end()).swapped
    assert 5 <= clock.now_s < 7
    assert store.swapped_at[1] >= 1_010, "it has what had been shown when the waiting began"


async def test_idle_workers_are_reported_while_comparing_and_swapping() -> None:
    store = Chased()
    run = Run(store, Moving(store, [(1_020, 1_000)]))
    running = asyncio.create_task(run.to_end())
    await until(lambda: bool(run.notices))
    store.place(2, 1_020)
    assert (await running).swapped
    assert ["contextgauge project" in notice for notice in run.notices] == [True]


async def test_missing_workers_are_reported_once(kit: ProjectKit, store: Views) -> None:
    async with projecting(kit, SOME):
        pass

    class Hasty(HastyClock):
        now_s = 0.0

        def monotonic_s(self) -> float:
            return self.now_s

        async def sleep(self, seconds: float) -> None:
            self.now_s += seconds
            await super().sleep(seconds)

    clock = Hasty()
    run = Run(store, clock)
    running = asyncio.create_task(run.to_end())
    await until(lambda: clock.now_s > 60)
    assert ["contextgauge project" in notice for notice in run.notices] == [True]
    async with kit.running():
        assert (await running).swapped


async def test_a_released_build_is_not_compared(kit: ProjectKit, store: Views) -> None:
    async with projecting(kit, RECORDS):
        run = Run(store)
        progress = await run.rebuild.begin()
        await until(lambda: caught_up(store, 2))
    change_views(store, 1)
    # A worker has found the active one damaged, and let the build go.
    await store.release(2, (await store.generations()).build)
    running = asyncio.create_task(run.rebuild.run(accept=False))
    async with kit.running(), asyncio.timeout(PATIENCE_S):
        done = await running
    assert progress.held
    assert done == Rebuilt(generation=2, former=1, swapped=True, compared=None)


@pytest.mark.parametrize("meanwhile", ["released", "activated"])
async def test_a_build_that_becomes_required_is_not_abandoned(
    kit: ProjectKit, store: Views, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    async with projecting(kit, SOME):
        await Run(store).rebuild.begin()
        await until(lambda: caught_up(store, 2))
    abandon = store.abandon

    async def late(generation: int, build: str) -> None:
        if meanwhile == "released":
            await store.release(generation, build)
        else:
            await store.activate(generation, build)
        await abandon(generation, build)

    monkeypatch.setattr(store, "abandon", late)
    with pytest.raises(StopError, match=r"is required|readers use it"):
        await Run(store).rebuild.abandon()
    assert caught_up(store, 2)
    expected = (1, 2) if meanwhile == "released" else (2, None)
    assert (await store.generations())[:2] == expected


async def test_a_required_build_that_vanishes_is_restarted(
    kit: ProjectKit, store: Views, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with projecting(kit, SOME) as worker, asyncio.timeout(PATIENCE_S):
        told = store.caught_up
        builds: list[str] = []

        async def caught_up_later(generation: int, partition: int, build: str) -> None:
            """Do not let the first build become active."""
            builds.append(build)
            if build != builds[0]:
                await told(generation, partition, build)

        monkeypatch.setattr(store, "caught_up", caught_up_later)
        del store.partitions[1, 0]
        await until(lambda: bool(builds) and (2, PARTITIONS - 1) in store.partitions)
        # As somebody does who deletes its key.
        store.numbers = Generations(1, None)
        await kit.append(MORE)
        assert await kit.caught_up(worker, at_least=2) == 2
        assert len(set(builds)) == 2
    assert await kit.documents(2) == await kit.expected()
