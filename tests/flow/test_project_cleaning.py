"""How generations end and begin: the former is deleted when readers have left it, never another."""

from itertools import zip_longest

import pytest

from contextgauge.clock import SystemClock
from streams.edge.memory.log import MemoryLog
from streams.ports import Generations
from tests.doubles.view_store import FaultyViews
from tests.flow.derive_kit import until
from tests.flow.project_kit import PARTITIONS, GatedClock, ProjectKit, sample_records

RECORDS = [record for turn in zip_longest(*sample_records()) for record in turn if record]
SOME, MORE = RECORDS[: len(RECORDS) // 2], RECORDS[len(RECORDS) // 2 :]


@pytest.fixture
def store() -> FaultyViews:
    return FaultyViews()


@pytest.fixture
def clock() -> GatedClock:
    clock = GatedClock()
    clock.gate.clear()
    return clock


@pytest.fixture
async def kit(store: FaultyViews, clock: GatedClock) -> ProjectKit:
    """A worker's surroundings, with generation 2 active beside the former one."""
    kit = ProjectKit(MemoryLog(SystemClock()), store, clock=clock)
    await kit.create_topic()
    await kit.project(SOME)
    live = store.snapshot().partitions
    store.partitions.update({(2, partition): live[1, partition] for partition in range(PARTITIONS)})
    store.numbers = Generations(2, None)
    return kit


def generations(store: FaultyViews) -> set[int]:
    return {generation for generation, _ in store.partitions}


async def test_a_former_generation_stays_until_its_readers_have_left(
    kit: ProjectKit, store: FaultyViews, clock: GatedClock
) -> None:
    async with kit.running() as worker:
        await until(lambda: clock.waiting == PARTITIONS)
        await kit.append(MORE)
        await kit.caught_up(worker, at_least=2)
        assert len(store.partitions) == 2 * PARTITIONS
        clock.gate.set()
        await until(lambda: generations(store) == {2})


async def test_a_number_that_is_in_use_again_is_not_deleted(
    kit: ProjectKit, store: FaultyViews, clock: GatedClock
) -> None:
    async with kit.running() as worker:
        await until(lambda: clock.waiting == PARTITIONS)
        # The store was emptied meanwhile, and a worker that knew no number began with 1.
        store.numbers = Generations(1, None)
        for partition in range(PARTITIONS):
            del store.partitions[2, partition]
        clock.gate.set()
        await kit.append(MORE)
        assert await kit.caught_up(worker) == 1
        assert worker.figures.total("project_losses") == 0
    assert await kit.documents(1) == await kit.expected()
    assert generations(store) == {1}


async def test_a_build_is_marked_again_where_the_store_was_set_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = FaultyViews()
    kit = ProjectKit(MemoryLog(SystemClock()), store)
    await kit.create_topic()
    forgotten: list[int] = []
    caught_up = store.caught_up

    async def forget(generation: int, partition: int, build: str) -> None:
        await caught_up(generation, partition, build)
        if not forgotten:
            # Set back to before the mark, when all others have theirs.
            forgotten.append(partition)
            place = store.partitions[generation, partition]
            assert place.position is not None
            place.position = place.position._replace(caught_up=False)

    monkeypatch.setattr(store, "caught_up", forget)
    await kit.project(RECORDS)
    assert forgotten
    assert await kit.documents(1) == await kit.expected()
