"""`contextgauge rebuild` over log and views in memory: swapped when whole, and never a mixture."""

import asyncio
from collections.abc import AsyncIterator
from itertools import zip_longest

import pytest

from contextgauge.clock import SystemClock
from contextgauge.errors import StopError, VersionError
from streams.flow.rebuild import rebuild
from streams.ports import Generations, ViewPosition
from tests.doubles.log import FaultyLog
from tests.doubles.view_store import FaultyViews
from tests.flow.derive_kit import until
from tests.flow.project_kit import PARTITIONS, GatedClock, ProjectKit, sample_records
from tests.flow.rebuild_kit import Reader, Run, drip, polling, projecting

RECORDS = [record for turn in zip_longest(*sample_records()) for record in turn if record]
SOME, MORE = RECORDS[: len(RECORDS) // 2], RECORDS[len(RECORDS) // 2 :]


@pytest.fixture
def store() -> FaultyViews:
    return FaultyViews()


@pytest.fixture
def clock() -> GatedClock:
    return GatedClock()


@pytest.fixture
async def kit(store: FaultyViews, clock: GatedClock) -> AsyncIterator[ProjectKit]:
    kit = ProjectKit(FaultyLog(SystemClock()), store, clock=clock)
    await kit.create_topic()
    yield kit
    assert [task for task in asyncio.all_tasks() if "flow/project" in repr(task)] == []


async def test_a_rebuild_under_load_never_shows_readers_a_mixture(
    kit: ProjectKit, store: FaultyViews, clock: GatedClock
) -> None:
    # Readers may take as long as they like on this machine: what they read is not deleted.
    clock.gate.clear()
    async with projecting(kit, SOME) as worker:
        async with polling(store) as readers:
            live = asyncio.create_task(drip(kit, MORE))
            await Run(store).to_end()
            assert not live.done()
            await until(lambda: all(has_read_both(reader) for reader in readers))
            live.cancel()
            await asyncio.wait([live])
        await kit.caught_up(worker, at_least=2)
    assert await kit.documents(2) == await kit.expected()


def has_read_both(reader: Reader) -> bool:
    """Return whether a reader polled several times, across the swap."""
    return reader.generations == [1, 2] and reader.polls > 3


async def test_damaged_views_are_replaced_and_the_former_ones_deleted(
    kit: ProjectKit, store: FaultyViews
) -> None:
    async with projecting(kit, SOME) as worker:
        for partition in store.partitions.values():
            for session, view in partition.held.views.items():
                partition.held.views[session] = view.replace(b'"task_id":null', b'"task_id":"x"')
        run = Run(store)
        await run.to_end()
        assert await store.generations() == Generations(2, None)
        await kit.append(MORE)
        await kit.caught_up(worker, at_least=2)
        await until(lambda: {generation for generation, _ in store.partitions} == {2})
        assert await Run(store).rebuild.status() is None
    assert await kit.documents(2) == await kit.expected()
    assert worker.figures.total("project_mismatches") == 0
    assert (run.rebuild.resumed, run.notices) == (False, [])


async def test_an_interrupted_rebuild_is_waited_for_by_the_next_run(
    kit: ProjectKit, store: FaultyViews, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuild, "_IDLE_S", 0.01)
    async with projecting(kit, RECORDS):
        pass
    # No worker runs: the first command waits, says so once, and is killed.
    first = Run(store)
    running = asyncio.create_task(first.to_end())
    await until(lambda: len(first.shown) > 30)
    running.cancel()
    await asyncio.wait([running])
    assert ["contextgauge project" in notice for notice in first.notices] == [True]
    status = await Run(store).rebuild.status()
    assert status is not None
    assert (status.generation, status.active, len(status.partitions)) == (2, 1, PARTITIONS)
    second = Run(store)
    async with kit.running():
        await second.to_end()
    assert second.rebuild.resumed
    assert await kit.documents(2) == await kit.expected()


@pytest.mark.parametrize("generation", [1, 2])
async def test_a_loss_while_it_is_built_only_delays_it(
    kit: ProjectKit, store: FaultyViews, generation: int
) -> None:
    async with projecting(kit, RECORDS) as worker:
        run = Run(store)
        waiting = asyncio.create_task(run.to_end())
        await until(lambda: (generation, 0) in store.partitions)
        store.partitions.pop((generation, 0), None)
        await waiting
        assert await kit.caught_up(worker, at_least=2) == 2
    assert await kit.documents(2) == await kit.expected()


async def test_a_build_that_vanished_ends_only_the_command(
    kit: ProjectKit, store: FaultyViews
) -> None:
    async with projecting(kit, RECORDS):
        pass
    run = Run(store)
    running = asyncio.create_task(run.to_end())
    await until(lambda: len(run.shown) > 3)
    store.numbers = Generations(1, None)
    with pytest.raises(StopError, match="start again"):
        await running
    assert await store.generations() == Generations(1, None)


async def test_workers_delete_the_remains_of_a_build_that_vanished(
    kit: ProjectKit, store: FaultyViews
) -> None:
    async with projecting(kit, RECORDS):
        pass
    for partition in range(PARTITIONS):
        store.partitions[2, partition] = store.partitions[1, partition]
    async with kit.running() as worker:
        await until(lambda: {generation for generation, _ in store.partitions} == {1})
        assert await kit.caught_up(worker) == 1


async def test_without_a_build_views_of_another_version_are_not_read(
    store: FaultyViews, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def position(_generation: int, _partition: int) -> ViewPosition:
        raise VersionError("the views are of another format")

    store.numbers = Generations(1, None)
    monkeypatch.setattr(store, "position", position)
    assert await Run(store).rebuild.status() is None


async def test_without_views_there_is_nothing_to_rebuild(store: FaultyViews) -> None:
    with pytest.raises(StopError, match="contextgauge project"):
        await Run(store).rebuild.begin()
    with pytest.raises(StopError, match="no views yet"):
        await Run(store).rebuild.status()
    assert await store.generations() == Generations(None, None)


async def test_rebuild_survives_restarts_of_workers_and_outages_of_the_store(
    kit: ProjectKit, store: FaultyViews
) -> None:
    async with projecting(kit, SOME):
        pass
    run = Run(store)
    running = asyncio.create_task(run.to_end())
    live = asyncio.create_task(drip(kit, MORE))
    for pause in range(10):
        worker = kit.start_worker()
        await asyncio.sleep(0.01 + pause * 0.005)
        store.away = pause % 2 == 0
        await asyncio.sleep(0.01)
        await worker.kill()
        store.away = False
    async with kit.running() as worker:
        await running
        live.cancel()
        await asyncio.wait([live])
        await kit.caught_up(worker, at_least=2)
    assert await kit.documents(2) == await kit.expected()
