"""`contextgauge rebuild` over log and views in memory: swapped when whole, and never a mixture."""

import asyncio
from collections.abc import AsyncIterator
from itertools import zip_longest

import pytest

from contextgauge.clock import SystemClock
from contextgauge.errors import ConfigError, FormerViewsError, StopError, VersionError
from streams.flow.project import background
from streams.flow.project.partition import PartitionProjector
from streams.flow.rebuild import rebuild
from streams.ports import Generations, ViewPosition
from tests.doubles.log import FaultyLog
from tests.doubles.view_store import FaultyViews
from tests.flow.derive_kit import until
from tests.flow.project_kit import PARTITIONS, GatedClock, ProjectKit, sample_records
from tests.flow.rebuild_kit import Reader, Run, drip, polling, projecting, unchecked

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
        await Run(store).rebuild.begin(unchecked)
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


@pytest.mark.parametrize("is_served", [True, False])
async def test_a_build_reaches_the_end_that_the_log_has_by_then(
    kit: ProjectKit, store: FaultyViews, monkeypatch: pytest.MonkeyPatch, is_served: bool
) -> None:
    monkeypatch.setattr(background, "_NEAR_RECORDS", 5)
    monkeypatch.setattr(background, "_BACKGROUND_RECORDS", 10)
    open_build = background.GenerationBuild._open  # noqa: SLF001 -- what comes right before it
    behind: list[int] = []
    mark = store.caught_up

    async def slow(
        build: background.GenerationBuild, generation: int, name: str, begin: int
    ) -> PartitionProjector:
        projector = await open_build(build, generation, name, begin)
        if generation == 2 and build._poller.partition == 0:  # noqa: SLF001 -- once
            # As if the build had taken long: the end is known, and the log has grown since.
            await kit.append(MORE)
            if not is_served:
                build._poller.is_followed = False  # noqa: SLF001 -- as after a loss
        return projector

    async def caught_up(generation: int, partition: int, build: str) -> None:
        position = await store.position(generation, partition)
        if generation == 2 and partition == 0 and position:
            behind.append((await kit.read(0))[1] - position.offset)
        await mark(generation, partition, build)

    monkeypatch.setattr(store, "caught_up", caught_up)
    monkeypatch.setattr(background.GenerationBuild, "_open", slow)
    async with projecting(kit, SOME) as worker:
        await Run(store).to_end()
        await kit.caught_up(worker, at_least=2)
    assert (behind[0] <= 5) == is_served
    assert await kit.documents(2) == await kit.expected()


async def test_a_rebuild_is_refused_where_the_log_lacks_what_the_views_have(
    kit: ProjectKit, store: FaultyViews
) -> None:
    assert isinstance(kit.log, FaultyLog)
    log, topic = kit.log, kit.topic.name
    async with projecting(kit, RECORDS):
        pass

    async def check(generation: int) -> None:
        await rebuild.check_log(log, topic, store, generation)

    await check(1)
    store.partitions.pop((1, 2))
    log.delete_before(topic, 1, 20)
    log.delete_before(topic, 2, 20)  # the views of this partition are lost anyway
    with pytest.raises(StopError, match=r"partition 1 \(offsets 0 to 19\)\. .*--accept-loss"):
        await Run(store).rebuild.begin(check)
    assert await store.generations() == Generations(1, None)
    await Run(store).rebuild.begin(unchecked)
    # What is being built already is only waited for.
    again = Run(store).rebuild
    await again.begin(check)
    assert again.resumed
    with pytest.raises(ConfigError, match="topics create"):
        await rebuild.check_log(log, "another", store, 1)


async def test_views_of_a_former_format_can_be_rebuilt(
    kit: ProjectKit, store: FaultyViews, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with projecting(kit, RECORDS):
        pass
    position = store.position

    async def former(generation: int, partition: int) -> ViewPosition | None:
        if generation == 1:
            raise FormerViewsError("the views are of a former format")
        return await position(generation, partition)

    monkeypatch.setattr(store, "position", former)
    await rebuild.check_log(kit.log, kit.topic.name, store, 1)
    run = Run(store)
    assert (await run.rebuild.begin(unchecked)).partitions == ()
    async with kit.running():
        await run.to_end()
    assert await kit.documents(2) == await kit.expected()
