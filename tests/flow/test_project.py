"""The project worker, on log and views in memory: whatever goes away, the views end right."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from itertools import zip_longest
from typing import Any

import pytest
from structlog.testing import capture_logs

from contextgauge.clock import SystemClock
from contextgauge.errors import ConfigError, VersionError
from schemas.topics import Topic
from streams.edge.memory.readers import MemoryPartitionReader
from streams.flow.common.generations import GenerationTracker
from streams.ports import Batch, Generations, NewRecord, ViewChanges, ViewPosition
from tests.doubles.log import FaultyLog
from tests.doubles.view_store import FaultyViews
from tests.flow.derive_kit import Figures, until
from tests.flow.project_kit import PARTITIONS, ProjectKit, sample_records

RECORDS = [record for turn in zip_longest(*sample_records()) for record in turn if record]
SOME, MORE = RECORDS[: len(RECORDS) // 2], RECORDS[len(RECORDS) // 2 :]
NOTHING = ViewChanges({}, {}, {}, (), {}, {}, {}, {}, (), {})


@pytest.fixture
def store() -> FaultyViews:
    return FaultyViews()


@pytest.fixture
def log() -> FaultyLog:
    return FaultyLog(SystemClock())


@pytest.fixture
async def kit(log: FaultyLog, store: FaultyViews) -> AsyncIterator[ProjectKit]:
    kit = ProjectKit(log, store)
    await kit.create_topic()
    yield kit
    # Nothing that a worker began may go on after it has ended.
    assert [task for task in asyncio.all_tasks() if "flow/project" in repr(task)] == []


async def test_on_an_empty_log_the_first_generation_is_active_at_once(kit: ProjectKit) -> None:
    async with kit.running() as worker:
        assert await kit.active() == 1
        assert await kit.store.generations() == Generations(1, None)
        await kit.append(RECORDS)
        assert await kit.caught_up(worker) == 1
    assert await kit.documents(1) == await kit.expected()
    assert sum(len(dump.views) for dump in await kit.documents(1)) > 5
    assert worker.figures.total("project_records") == len(RECORDS)
    assert worker.figures.total("project_mismatches") == 0
    assert worker.figures.gauges == {
        ("worker_partitions", "project"): 0,
        ("project_generation_active",): 1,
        ("project_generation_next",): 0,
    }


async def test_existing_records_are_projected_before_activation(kit: ProjectKit) -> None:
    await kit.append(RECORDS)
    async with kit.running():
        generation = await kit.active()
        # Active only with everything that was on the log.
        assert await kit.documents(generation) == await kit.expected()


async def test_a_worker_continues_where_the_last_one_stopped(kit: ProjectKit) -> None:
    await kit.project(SOME)
    worker = await kit.project(MORE)
    assert worker.figures.total("project_records") == len(MORE)
    assert await kit.documents(1) == await kit.expected()


async def test_killed_workers_leave_no_partial_writes(kit: ProjectKit) -> None:
    await kit.append(SOME)
    for pause in range(12):
        worker = kit.start_worker()
        await asyncio.sleep(pause * 0.004)
        await worker.kill()
    await kit.append(MORE)
    async with kit.running() as worker:
        generation = await kit.caught_up(worker)
    assert await kit.documents(generation) == await kit.expected()


async def test_two_workers_share_the_partitions(kit: ProjectKit) -> None:
    async with kit.running() as one, kit.running() as other:
        await until(lambda: has_half(one.figures) and has_half(other.figures))
        await kit.append(SOME)
        assert await kit.caught_up(one, other) == 1
        await one.stop()
        await kit.append(MORE)
        await kit.caught_up(other)
    assert await kit.documents(1) == await kit.expected()


def has_half(figures: Figures) -> bool:
    return figures.gauges.get(("worker_partitions", "project")) == PARTITIONS / 2


async def test_a_generation_is_activated_when_all_partitions_have_caught_up(
    store: FaultyViews,
) -> None:
    generations = GenerationTracker(store, SystemClock())
    await generations.begin_next()
    build = generations.current.build
    assert build
    for partition in range(3):
        await generations.activate(1, build, 3)
        assert generations.current == Generations(None, 1, build)
        position = ViewPosition(0, 0, 3, caught_up=False, build=build)
        await store.apply(1, partition, expected=None, position=position, changes=NOTHING)
        await generations.activate(1, build, 3)
        assert generations.current == Generations(None, 1, build)
        await store.caught_up(1, partition, build)
    await generations.activate(1, "another", 3)
    assert generations.current == Generations(None, 1, build)
    await generations.activate(1, build, 3)
    assert generations.current == Generations(1, None)


async def test_a_partially_activated_generation_is_completed(store: FaultyViews) -> None:
    store.numbers = Generations(2, 2, "build")
    generations = GenerationTracker(store, SystemClock())
    await generations.refresh()
    assert generations.current == Generations(2, None)


async def test_an_emptied_store_is_rebuilt(kit: ProjectKit, store: FaultyViews) -> None:
    await kit.append(SOME)
    async with kit.running() as worker:
        await kit.caught_up(worker)
        store.restore(FaultyViews())
        await kit.append(MORE)
        # Never the old number: a reader's cursor must not go on in other views.
        assert await kit.caught_up(worker, at_least=2) == 2
    assert await kit.documents(2) == await kit.expected()


async def test_lost_documents_are_rebuilt_alongside_the_live_ones(
    kit: ProjectKit, store: FaultyViews
) -> None:
    await kit.append(SOME)
    async with kit.running() as worker:
        await kit.caught_up(worker)
        ahead = {record.data.session_id.encode() for record in MORE}
        held = next(
            part.held for part in store.partitions.values() if ahead & part.held.views.keys()
        )
        for session in ahead & held.views.keys():
            del held.views[session]
    # The worker keeps views in memory; the next one finds that they are gone.
    await kit.append(MORE)
    async with kit.running() as worker:
        assert await kit.caught_up(worker, at_least=2) == 2
        # The generation before is deleted once no reader can be in it.
        await until(lambda: {generation for generation, _ in store.partitions} == {2})
    assert await kit.documents(2) == await kit.expected()


async def test_a_lost_position_triggers_a_rebuild(kit: ProjectKit, store: FaultyViews) -> None:
    await kit.append(SOME)
    async with kit.running() as worker:
        await kit.caught_up(worker)
        del store.partitions[1, 0]
        await kit.append(MORE)
        assert await kit.caught_up(worker, at_least=2) == 2
    assert await kit.documents(2) == await kit.expected()


async def test_records_are_read_again_for_a_store_that_went_back_in_time(
    kit: ProjectKit, store: FaultyViews
) -> None:
    await kit.append(SOME[:50])
    async with kit.running() as worker:
        await kit.caught_up(worker)
        before = store.snapshot()
        await kit.append(SOME[50:])
        await kit.caught_up(worker)
        store.restore(before)
        # Partitions that get no more records find it out too.
        await kit.caught_up(worker)
        store.restore(before)
        await kit.append(MORE)
        assert await kit.caught_up(worker) == 1
    assert worker.figures.total("project_mismatches") > 0
    assert await kit.documents(1) == await kit.expected()


async def test_leftovers_of_an_emptied_store_are_not_reused(
    kit: ProjectKit, store: FaultyViews
) -> None:
    await kit.project(SOME)
    # Only the generation and the positions are gone.
    store.numbers = Generations(None, None)
    for partition in store.partitions.values():
        partition.position = None
    await kit.append(MORE)
    async with kit.running() as worker:
        generation = await kit.caught_up(worker)
    assert await kit.documents(generation) == await kit.expected()


async def test_documents_of_another_build_with_the_same_number_are_not_reused(
    kit: ProjectKit, store: FaultyViews
) -> None:
    await kit.project(SOME)
    # All but the generation is there still, and wrong: a worker that knows no number begins anew.
    store.numbers = Generations(None, None)
    for partition in store.partitions.values():
        for session, view in partition.held.views.items():
            partition.held.views[session] = view.replace(b'"sequence":', b'"sequence":9')
    await kit.project()
    assert await kit.documents(1) == await kit.expected()


async def test_a_build_that_lost_documents_is_started_over(
    kit: ProjectKit, store: FaultyViews
) -> None:
    await kit.project(SOME)
    # The next worker goes on with a build that was cut off, and some of it is lost.
    build, ahead = "cut off", {record.data.session_id.encode() for record in MORE}
    store.numbers = Generations(None, 1, build)
    for partition in store.partitions.values():
        assert partition.position is not None
        partition.position = partition.position._replace(caught_up=False, build=build)
        for session in ahead & partition.held.views.keys():
            del partition.held.views[session]
    worker = await kit.project(MORE)
    assert worker.figures.total("project_mismatches") > 0
    assert await kit.documents(1) == await kit.expected()


async def test_a_log_that_lacks_records_is_reported_and_still_projected(
    kit: ProjectKit,
) -> None:
    await kit.append(MORE)
    with capture_logs() as logs:
        async with kit.running() as worker:
            assert await kit.caught_up(worker) == 1
    assert await kit.documents(1) == await kit.expected()
    said = [line for line in logs if line["log_level"] == "error"]
    assert {line["event"] for line in said} == {"the log lacks records: sessions begin in between"}


async def test_a_damaged_build_is_started_over(kit: ProjectKit, store: FaultyViews) -> None:
    await kit.project(SOME)
    # Half a generation whose documents are ahead of its position.
    store.numbers = Generations(None, 1)
    for partition in store.partitions.values():
        assert partition.position is not None
        partition.position = partition.position._replace(offset=0, caught_up=False, build="")
        for session, view in partition.held.views.items():
            partition.held.views[session] = view.replace(b'"position":', b'"position":-')
    worker = await kit.project()
    assert worker.figures.total("project_mismatches") > 0
    assert await kit.documents(1) == await kit.expected()


async def test_a_worker_waits_for_an_unavailable_store(kit: ProjectKit, store: FaultyViews) -> None:
    store.away = True
    async with kit.running() as worker:
        await until(lambda: worker.figures.total("worker_retries") > 1)
        store.away = False
        await kit.append(SOME)
        await kit.caught_up(worker)
        store.away = True
        before = worker.figures.total("worker_retries")
        await kit.append(MORE)
        await until(lambda: worker.figures.total("worker_retries") > before)
        store.away = False
        store.lose_replies = 3
        await kit.caught_up(worker)
    assert await kit.documents(1) == await kit.expected()


async def test_a_worker_waits_for_an_unavailable_log(kit: ProjectKit, log: FaultyLog) -> None:
    await kit.append(RECORDS)
    log.away = True
    async with kit.running() as worker:
        await until(lambda: worker.figures.total("worker_retries") > 1)
        log.away = False
        await kit.caught_up(worker)
    assert await kit.documents(1) == await kit.expected()


async def test_a_failure_after_progress_is_retried_soon(
    kit: ProjectKit, log: FaultyLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    poll = MemoryPartitionReader.poll

    async def failing(reader: MemoryPartitionReader, *asked: Any) -> Batch:
        log.check()
        return await poll(reader, *asked)

    monkeypatch.setattr(MemoryPartitionReader, "poll", failing)
    async with kit.running() as worker:
        for records in (SOME, MORE):
            await kit.append(records)
            await kit.caught_up(worker)
            before = worker.figures.total("worker_retries")
            with capture_logs() as logs:
                log.away = True
                await until(partial(has_retried, worker.figures, before + 2))
                log.away = False
            pauses = [line["pause_s"] for line in logs if line["event"] == "trying again"]
            assert pauses[:3] == [0.25, 0.5, 1.0]


async def test_a_worker_stops_while_its_services_are_unavailable(
    kit: ProjectKit, log: FaultyLog, store: FaultyViews
) -> None:
    for gone in (store, log):
        gone.away = True
        worker = kit.start_worker()
        await until(partial(has_retried, worker.figures))
        await worker.stop()
        gone.away = False


def has_retried(figures: Figures, times: float = 1) -> bool:
    return figures.total("worker_retries") > times


async def test_a_missing_topic_stops_the_worker(store: FaultyViews) -> None:
    kit = ProjectKit(FaultyLog(SystemClock()), store)
    error = await kit.start_worker().failed()
    assert isinstance(error, ConfigError)
    assert "contextgauge topics create" in str(error)


async def test_added_partitions_stop_the_worker(kit: ProjectKit, store: FaultyViews) -> None:
    await kit.project()
    other = ProjectKit(FaultyLog(SystemClock()), store)
    await other.log.create_topics([other.topic], PARTITIONS + 2)
    error = await other.start_worker().failed()
    assert isinstance(error, ConfigError)
    assert "CONTEXTGAUGE_KEY_PREFIX" in str(error)


async def test_an_unknown_record_stops_the_worker_and_is_not_skipped(kit: ProjectKit) -> None:
    producer = kit.log.producer()
    await producer.start()
    await producer.send(NewRecord(kit.topic.name, 0, b"s", b"{}", (("ce_type", b"other"),)))
    await producer.flush()
    for _ in range(2):
        error = await kit.start_worker().failed()
        assert isinstance(error, VersionError)
        assert "record 0 of partition 0" in str(error)


async def test_other_topics_are_not_read(kit: ProjectKit) -> None:
    await kit.log.create_topics([Topic("agent.messages", "any", "delete", -1, 1_000)], PARTITIONS)
    async with kit.running() as worker:
        await kit.active()
    assert worker.figures.total("project_records") == 0
