"""`contextgauge rebuild` over log and views in memory: equal, swapped, and never a mixture."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import zip_longest

import pytest
from structlog.testing import capture_logs

from contextgauge.clock import SystemClock
from contextgauge.errors import StopError, VersionError
from contextgauge.partitioner import partition_of
from schemas.records import Record
from streams.flow.rebuild import rebuild
from streams.flow.rebuild.progress import Rebuilt
from streams.ports import Generations, ViewPosition
from tests.doubles.log import FaultyLog
from tests.doubles.view_store import FaultyViews
from tests.flow.derive_kit import until
from tests.flow.project_kit import PARTITIONS, GatedClock, ProjectKit, sample_records
from tests.flow.rebuild_kit import Reader, Run, assert_equal_and_swapped, polling, projecting

RECORDS = [record for turn in zip_longest(*sample_records()) for record in turn if record]
SOME, MORE = RECORDS[: len(RECORDS) // 2], RECORDS[len(RECORDS) // 2 :]


@pytest.fixture
def store() -> FaultyViews:
    return FaultyViews()


@pytest.fixture
def log() -> FaultyLog:
    return FaultyLog(SystemClock())


@pytest.fixture
def clock() -> GatedClock:
    return GatedClock()


@pytest.fixture
async def kit(log: FaultyLog, store: FaultyViews, clock: GatedClock) -> AsyncIterator[ProjectKit]:
    kit = ProjectKit(log, store, clock=clock)
    await kit.create_topic()
    yield kit
    assert [task for task in asyncio.all_tasks() if "flow/project" in repr(task)] == []


def views_of(store: FaultyViews, generation: int) -> dict[bytes, bytes]:
    return {
        session: view
        for (number, _), partition in store.partitions.items()
        if number == generation
        for session, view in partition.held.views.items()
    }


def change_views(store: FaultyViews, generation: int) -> int:
    """Give all views of a generation a wrong task; return how many there are."""
    changed = 0
    for (number, _), partition in store.partitions.items():
        for session, view in partition.held.views.items() if number == generation else ():
            partition.held.views[session] = view.replace(b'"task_id":null', b'"task_id":"changed"')
            changed += 1
    return changed


async def test_an_equal_rebuild_replaces_the_active_generation(
    kit: ProjectKit, store: FaultyViews
) -> None:
    async with projecting(kit, SOME) as worker:
        run = Run(store)
        done = await run.to_end()
        assert await store.generations() == Generations(2, None)
        await kit.append(MORE)
        await kit.caught_up(worker, at_least=2)
        await until(lambda: {generation for generation, _ in store.partitions} == {2})
    assert (done.generation, done.former, done.swapped, done.cut) == (2, 1, True, [])
    assert done.compared is not None
    assert (done.compared.sessions, done.compared.different) == (len(sessions(SOME)), 0)
    assert await kit.documents(2) == await kit.expected()
    assert worker.figures.total("project_mismatches") == 0
    assert [progress.phase for progress in run.shown][-1] in {"comparing", "swapping"}
    assert run.shown[-1].compared == len(sessions(SOME))
    assert run.notices == []


def sessions(records: list[Record]) -> set[str]:
    return {record.data.session_id for record in records}


async def test_a_rebuild_under_load_never_shows_readers_a_mixture(
    kit: ProjectKit, store: FaultyViews, clock: GatedClock
) -> None:
    # Readers may take as long as they like on this machine: what they read is not deleted.
    clock.gate.clear()
    async with projecting(kit, SOME) as worker:
        async with polling(store) as readers:
            live = asyncio.create_task(drip(kit, MORE))
            done = await Run(store).to_end()
            assert not live.done()
            await until(lambda: all(has_read_both(reader) for reader in readers))
            live.cancel()
            await asyncio.wait([live])
        await kit.caught_up(worker, at_least=2)
    assert_equal_and_swapped(done)
    assert await kit.documents(2) == await kit.expected()


def has_read_both(reader: Reader) -> bool:
    """Return whether a reader polled several times, across the swap."""
    return reader.generations == [1, 2] and reader.polls > 3


async def drip(kit: ProjectKit, records: list[Record]) -> None:
    """Append records one by one, far more often than a generation is looked at."""
    for record in records:
        await kit.append([record])
        await asyncio.sleep(0.02)


async def test_workers_do_not_activate_a_held_build(kit: ProjectKit, store: FaultyViews) -> None:
    async with projecting(kit, SOME) as worker:
        run = Run(store)
        progress = await run.rebuild.begin()
        assert (progress.generation, progress.former, progress.held) == (2, 1, True)
        await until(lambda: caught_up(store, 2))
        await kit.append(MORE)
        await kit.caught_up(worker)
        # It follows on.
        await until(lambda: views_of(store, 2) == views_of(store, 1))
        assert (await store.generations())[:2] == (1, 2)
        assert (await run.rebuild.run(accept=False)).swapped


async def test_a_build_stops_at_its_limit_and_the_active_generation_does_not(
    kit: ProjectKit, store: FaultyViews
) -> None:
    async with projecting(kit, SOME) as worker:
        await Run(store).rebuild.begin()
        await until(lambda: caught_up(store, 2))
        build = (await store.generations()).build
        limits = {}
        for partition in {partition_of(name, PARTITIONS) for name in sessions(MORE)}:
            limits[partition] = place(store, 2, partition) + 7
            await store.limit(2, partition, build, limits[partition])
        # A poll that has begun may still bring a batch; a comparison takes another look then.
        await asyncio.sleep(10 * kit.config.poll_timeout_s)
        await kit.append(MORE)
        await kit.caught_up(worker)
        await until(lambda: [place(store, 2, p) for p in limits] == [*limits.values()])
        await asyncio.sleep(0.2)
        assert {p: place(store, 2, p) for p in limits} == limits
        assert all(place(store, 1, p) > limit for p, limit in limits.items())
        for partition in limits:
            await store.limit(2, partition, build, None)
        await until(lambda: views_of(store, 2) == views_of(store, 1))
        assert worker.figures.total("project_mismatches") == 0


def place(store: FaultyViews, generation: int, partition: int) -> int:
    position = store.partitions[generation, partition].position
    assert position is not None
    return position.offset


def caught_up(store: FaultyViews, generation: int) -> bool:
    found = [store.partitions.get((generation, partition)) for partition in range(PARTITIONS)]
    return all(part and part.position and part.position.caught_up for part in found)


async def test_a_difference_is_reported_and_swapped_only_if_accepted(
    kit: ProjectKit, store: FaultyViews, clock: GatedClock
) -> None:
    clock.gate.clear()
    async with projecting(kit, RECORDS):
        changed = change_views(store, 1)
        refused = await Run(store).to_end()
        assert not refused.swapped
        assert refused.compared is not None
        assert refused.compared.different == changed == len(sessions(RECORDS))
        assert len(refused.compared.first) == 10
        assert {found.fields for found in refused.compared.first} == {("identity.task_id",)}
        assert {found.session for found in refused.compared.first} < sessions(RECORDS)
        assert (await store.generations())[:2] == (1, 2)
        async with polling(store) as readers:
            await until(lambda: all(reader.generations == [1] for reader in readers))
            again = Run(store)
            accepted = await again.to_end(accept=True)
            await until(lambda: all(reader.generations == [1, 2] for reader in readers))
    assert again.rebuild.resumed
    assert accepted == replace(refused, swapped=True)
    for reader in readers:
        # Every list is entirely of the changed generation, or entirely of the next one.
        told = [{view.identity.task_id for view in views} for views in reader.lists]
        assert told == [{"changed"}, {None}]
    assert await kit.documents(2) == await kit.expected()


async def test_an_interrupted_rebuild_continues_with_the_same_build(
    kit: ProjectKit, store: FaultyViews
) -> None:
    async with projecting(kit, RECORDS):
        pass
    # No worker runs: the first command waits, and is killed.
    first = Run(store)
    running = asyncio.create_task(first.to_end())
    await until(lambda: len(first.shown) > 3)
    running.cancel()
    await asyncio.wait([running])
    begun = await store.generations()
    second = Run(store)
    async with kit.running():
        assert (await second.to_end()).swapped
    assert (second.rebuild.resumed, begun.build) == (True, second.rebuild._pair.build)  # noqa: SLF001 -- the name is not shown
    assert await kit.documents(2) == await kit.expected()


async def test_an_abandoned_rebuild_leaves_nothing_and_can_be_restarted(
    kit: ProjectKit, store: FaultyViews
) -> None:
    async with projecting(kit, RECORDS):
        assert await Run(store).rebuild.abandon() is None
        change_views(store, 1)
        assert not (await Run(store).to_end()).swapped
        assert await Run(store).rebuild.abandon() == 2
        assert await store.generations() == Generations(1, None)
        await until(lambda: {generation for generation, _ in store.partitions} == {1})
        assert await Run(store).rebuild.status() is None
        # The number is used again; the documents are not.
        done = await Run(store).to_end(accept=True)
        assert (done.generation, done.swapped) == (2, True)
        await until(lambda: {generation for generation, _ in store.partitions} == {2})
    assert await kit.documents(2) == await kit.expected()


async def test_workers_delete_the_remains_of_an_abandoned_build(
    kit: ProjectKit, store: FaultyViews
) -> None:
    async with projecting(kit, RECORDS) as worker:
        await store.begin_next(2, "build", held=True)
        await until(lambda: caught_up(store, 2))
        # As a command does that is killed right after.
        await store.abandon(2, "build")
        await until(lambda: {generation for generation, _ in store.partitions} == {1})
        assert await kit.caught_up(worker) == 1


async def test_a_loss_in_the_active_generation_releases_the_build(
    kit: ProjectKit, store: FaultyViews
) -> None:
    async with projecting(kit, SOME) as worker:
        run = Run(store)
        await run.rebuild.begin()
        await until(lambda: caught_up(store, 2))
        del store.partitions[1, 0]
        with capture_logs() as told:
            done = await run.rebuild.run(accept=False)
        await kit.append(MORE)
        assert await kit.caught_up(worker, at_least=2) == 2
    assert done == Rebuilt(generation=2, former=1, swapped=True, compared=None)
    assert any("without a comparison" in line["event"] for line in told)
    assert await kit.documents(2) == await kit.expected()


async def test_a_build_that_the_workers_need_cannot_be_abandoned(
    kit: ProjectKit, store: FaultyViews
) -> None:
    async with projecting(kit, SOME):
        pass
    await store.begin_next(2, "build")
    with pytest.raises(StopError, match="is required"):
        await Run(store).rebuild.abandon()
    status = await Run(store).rebuild.status()
    assert status is not None
    assert (status.held, status.generation, len(status.partitions)) == (False, 2, PARTITIONS)
    async with kit.running():
        done = await Run(store).to_end()
    assert (done.swapped, done.compared) == (True, None)


async def test_a_build_that_loses_documents_is_compared_when_complete(
    kit: ProjectKit, store: FaultyViews, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuild, "_LEVEL_S", 0.5)
    async with projecting(kit, RECORDS):
        run = Run(store)
        await run.rebuild.begin()
        await until(lambda: caught_up(store, 2))
        for partition in range(PARTITIONS):
            del store.partitions[2, partition]
        done = await run.rebuild.run(accept=False)
    assert_equal_and_swapped(done)
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


async def test_without_a_build_views_of_another_version_are_not_read(
    store: FaultyViews, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def position(_generation: int, _partition: int) -> ViewPosition:
        raise VersionError("the views are of another format")

    store.numbers = Generations(1, None)
    monkeypatch.setattr(store, "position", position)
    assert await Run(store).rebuild.status() is None
    assert await Run(store).rebuild.abandon() is None
    with pytest.raises(VersionError):
        await Run(store).rebuild.begin()
    assert await store.generations() == Generations(1, None)


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
        done = await running
        live.cancel()
        await asyncio.wait([live])
        await kit.caught_up(worker, at_least=2)
    assert_equal_and_swapped(done)
    assert await kit.documents(2) == await kit.expected()


async def test_records_deleted_from_the_log_are_reported_and_must_be_accepted(
    kit: ProjectKit, store: FaultyViews, log: FaultyLog
) -> None:
    async with projecting(kit, RECORDS):
        log.delete_before(kit.topic.name, 1, 20)
        refused = await Run(store).to_end()
        assert not refused.swapped
        assert [tuple(cut) for cut in refused.cut] == [(1, 0, 20)]
        assert refused.compared is not None
        assert {found.partition for found in refused.compared.first} == {1}
        accepted = await Run(store).to_end(accept=True)
    assert accepted == replace(refused, swapped=True)
