"""Views are bound to the log that they came from: another one in its place is a lost generation."""

from collections.abc import Sequence
from itertools import chain
from uuid import UUID

import pytest

from contextgauge.clock import SystemClock
from schemas.records import Record
from streams.flow.project.config import ProjectConfig
from streams.ports import LastRecord
from tests.doubles.log import FaultyLog
from tests.doubles.views import FaultyViews
from tests.flow.derive_kit import until
from tests.flow.project_kit import PARTITIONS, ProjectKit, sample_records

OLD: Sequence[Record] = list(chain(*sample_records(1)))
NEW: Sequence[Record] = [*chain(*sample_records(2)), *chain(*sample_records(3))]
"""More records than `OLD` on each partition: the new log outgrows the old positions."""


@pytest.fixture
def store() -> FaultyViews:
    return FaultyViews()


@pytest.fixture
def log() -> FaultyLog:
    return FaultyLog(SystemClock())


@pytest.fixture
async def kit(store: FaultyViews, log: FaultyLog) -> ProjectKit:
    return await _kit(store, log)


async def _kit(store: FaultyViews, log: FaultyLog | None = None) -> ProjectKit:
    kit = ProjectKit(log or FaultyLog(SystemClock()), store)
    await kit.create_topic()
    return kit


async def _project(kit: ProjectKit, *, at_least: int = 1) -> None:
    async with kit.running() as worker:
        generation = await kit.caught_up(worker, at_least=at_least)
        assert generation == at_least
    assert await kit.documents(generation) == await kit.expected()


@pytest.mark.parametrize("records", [[], OLD[:50], NEW], ids=["empty", "shorter", "longer"])
async def test_another_log_is_projected_from_its_beginning(
    kit: ProjectKit, store: FaultyViews, records: Sequence[Record]
) -> None:
    await kit.append(OLD)
    await _project(kit)
    other = await _kit(store)
    await other.append(records)
    await _project(other, at_least=2)


async def test_the_same_log_is_followed(kit: ProjectKit) -> None:
    await kit.append(OLD[:200])
    await _project(kit)
    await kit.append(OLD[200:])
    await _project(kit)


async def test_a_record_that_has_expired_proves_nothing(
    kit: ProjectKit, store: FaultyViews, log: FaultyLog
) -> None:
    await kit.append(OLD)
    await _project(kit)
    for partition in range(PARTITIONS):
        place = store.partitions[1, partition]
        assert place.position is not None
        last = place.position.last
        assert last is not None
        log.delete_before(kit.topic.name, partition, last.offset + 1)
    async with kit.running() as worker:
        assert await kit.active() == 1
        await until(lambda: worker.figures.total("project_position") > 0)
        assert worker.figures.total("project_losses") == 0


async def test_a_lost_tail_is_a_lost_generation(kit: ProjectKit, store: FaultyViews) -> None:
    await kit.append(OLD)
    await _project(kit)
    place = store.partitions[1, 0]
    assert place.position is not None
    place.position = place.position._replace(last=LastRecord(10**6, "a"))
    await _project(kit, at_least=2)


async def test_a_build_of_another_log_begins_again(kit: ProjectKit, store: FaultyViews) -> None:
    await kit.append(OLD)
    await _project(kit)
    # As if the build had not been activated when the topic was created again.
    store.numbers = store.numbers._replace(active=None, next=1, build=_build(store))
    other = await _kit(store)
    await other.append(NEW)
    await _project(other)


def _build(store: FaultyViews) -> str:
    position = store.partitions[1, 0].position
    assert position is not None
    return position.build


class Topics:
    """What Kafka knows of topics' identities."""

    def __init__(self) -> None:
        self.now: UUID | None = UUID(int=1)

    async def identity(self, topic: str) -> UUID | None:  # noqa: ARG002 -- there is one
        return self.now


async def test_the_topic_s_identity_is_stored_and_compared(
    kit: ProjectKit, store: FaultyViews
) -> None:
    topics = kit.topics = Topics()
    await kit.append(OLD)
    await _project(kit)
    assert {place.position and place.position.topic_id for place in store.partitions.values()} == {
        str(UUID(int=1))
    }
    # Not known for once: that is no mismatch, and what is stored stays.
    topics.now = None
    await _project(kit)
    topics.now = UUID(int=1)
    await _project(kit)
    topics.now = UUID(int=2)
    await _project(kit, at_least=2)


async def test_a_topic_that_is_created_again_while_the_worker_runs(
    kit: ProjectKit, log: FaultyLog
) -> None:
    """Even where the new log has outgrown the old position before anyone noticed."""
    topics = kit.topics = Topics()
    await kit.append(OLD)
    async with kit.running() as worker:
        await kit.caught_up(worker)
        log.recreate(kit.topic.name)
        await kit.append(NEW)
        topics.now = UUID(int=2)
        assert await kit.caught_up(worker, at_least=2) == 2
    assert await kit.documents(2) == await kit.expected()


async def test_a_missing_topic_is_reported(kit: ProjectKit, log: FaultyLog) -> None:
    await kit.append(OLD)
    async with kit.running() as worker:
        await kit.caught_up(worker)
        log.missing.add(kit.topic.name)
        await until(lambda: "topics create" in str(kit.health.ready()))
        log.missing.clear()
        await until(lambda: worker.figures.total("worker_retries") > 0)
        assert await kit.caught_up(worker) == 1


def test_the_topic_is_watched_every_few_seconds() -> None:
    assert ProjectConfig().topic_watch_s <= 10
