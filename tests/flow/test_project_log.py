"""Views are bound to the log that they came from: another one in its place is a lost generation."""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain
from uuid import UUID

import pytest

from contextgauge.clock import SystemClock
from contextgauge.ports import Headers
from schemas.records import Record
from streams.flow.project.polling import PartitionPoller
from streams.ports import NO_ID, LogPlace, NewRecord
from tests.doubles.log import FaultyLog
from tests.doubles.view_store import FaultyViews
from tests.flow.derive_kit import Figures
from tests.flow.project_kit import PARTITIONS, ProjectKit, sample_records

# Derived when a test asks for it: every worker of pytest imports this.


@cache
def old() -> Sequence[Record]:
    return list(chain(*sample_records(1)))


@cache
def new() -> Sequence[Record]:
    """Return more records than `old` on each partition: the new log outgrows the old positions."""
    return [*chain(*sample_records(2)), *chain(*sample_records(3))]


@cache
def beginnings() -> Sequence[Record]:
    """Return first records of sessions: no view of theirs is missed, whatever was read before."""
    seeds = (chain(*sample_records(seed)) for seed in range(1, 8))
    return [record for record in chain(*seeds) if record.sequence == 1]


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
    await kit.project(at_least=at_least)
    assert await kit.documents(at_least) == await kit.expected()


@pytest.mark.extended
@pytest.mark.parametrize(
    "records", [list, lambda: old()[:50], new], ids=["empty", "shorter", "longer"]
)
async def test_another_log_is_projected_from_its_beginning(
    kit: ProjectKit, store: FaultyViews, records: Callable[[], Sequence[Record]]
) -> None:
    await kit.append(old())
    await _project(kit)
    other = await _kit(store)
    await other.append(records())
    await _project(other, at_least=2)


@pytest.mark.extended
async def test_another_log_is_noticed_where_nothing_else_tells(
    kit: ProjectKit, store: FaultyViews
) -> None:
    await kit.append(beginnings()[:8])
    await _project(kit)
    other = await _kit(store)
    await other.append(beginnings()[8:])
    await _project(other, at_least=2)


async def test_the_same_log_is_followed(kit: ProjectKit) -> None:
    await kit.append(old()[:200])
    await _project(kit)
    await kit.append(old()[200:])
    await _project(kit)


async def test_a_record_that_has_expired_proves_nothing(
    kit: ProjectKit, store: FaultyViews, log: FaultyLog
) -> None:
    await kit.append(old()[:-50])
    await _project(kit)
    for partition in range(PARTITIONS):
        place = store.partitions[1, partition]
        assert place.position is not None
        offset = place.position.log.offset
        assert offset is not None
        log.delete_before(kit.topic.name, partition, offset + 1)
    await kit.append(old()[-50:])
    async with kit.running() as worker:
        assert await kit.caught_up(worker) == 1
        assert worker.figures.total("project_losses") == 0


async def test_a_lost_tail_is_a_lost_generation(kit: ProjectKit, store: FaultyViews) -> None:
    await kit.append(old())
    await _project(kit)
    place = store.partitions[1, 0]
    assert place.position is not None
    place.position = place.position._replace(log=LogPlace("", 10**6, "a"))
    await _project(kit, at_least=2)


@pytest.mark.parametrize("headers", [(), (("ce_id", None),), (("ce_type", b"other"),)])
async def test_a_record_of_another_program_is_none_that_is_in_the_views(
    kit: ProjectKit, headers: Headers
) -> None:
    producer = kit.log.producer()
    await producer.start()
    await producer.send(NewRecord(kit.topic.name, 0, b"s", b"{}", headers))
    await producer.flush()
    poller = PartitionPoller(kit.ports(Figures()), 0, PARTITIONS)
    reason = await poller.foreign_log(LogPlace("", 0, "a"))
    assert reason == "record 0 of the log is not the one that is in the views"


@pytest.mark.extended
async def test_a_build_of_another_log_begins_again(
    kit: ProjectKit, store: FaultyViews, monkeypatch: pytest.MonkeyPatch
) -> None:
    await kit.append(old())
    await _project(kit)
    # As if the build had not been activated when the topic was created again.
    store.numbers = store.numbers._replace(active=None, next=1, build=_build(store))
    other = await _kit(store)
    monkeypatch.setattr(other.log, "topic_ids", _other_ids)
    await other.append(new())
    await _project(other)


async def _other_ids(names: Sequence[str]) -> dict[str, UUID | None]:
    return dict.fromkeys(names, UUID(int=99))


def _build(store: FaultyViews) -> str:
    position = store.partitions[1, 0].position
    assert position is not None
    return position.build


async def test_the_topic_s_id_is_stored_and_compared(
    kit: ProjectKit, store: FaultyViews, log: FaultyLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def topic_ids(names: Sequence[str]) -> dict[str, UUID | None]:
        return dict.fromkeys(names, now[0])

    monkeypatch.setattr(log, "topic_ids", topic_ids)
    now: list[UUID | None] = [UUID(int=1)]
    await kit.append(old())
    await _project(kit)
    # Not known for once: that is no mismatch, and what is stored stays.
    for now[0] in (NO_ID, UUID(int=1)):
        await _project(kit)
        positions = [place.position for place in store.partitions.values()]
        assert {position and position.log.topic_id for position in positions} == {UUID(int=1).hex}
    now[0] = UUID(int=2)
    await _project(kit, at_least=2)


@pytest.mark.extended
async def test_a_topic_that_is_created_again_while_the_worker_runs(
    kit: ProjectKit, log: FaultyLog
) -> None:
    """Even where the new log has outgrown the old position before anyone noticed."""
    await kit.append(old())
    async with kit.running() as worker:
        await kit.caught_up(worker)
        log.delete_topic(kit.topic.name)
        await kit.create_topic()
        await kit.append(new())
        generation = await kit.caught_up(worker, at_least=2)
    assert await kit.documents(generation) == await kit.expected()


async def test_a_topic_that_is_deleted_ends_the_worker_with_a_remedy(
    kit: ProjectKit, log: FaultyLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    await kit.append(old())
    worker = kit.start_worker()
    await kit.caught_up(worker)

    async def none(names: Sequence[str]) -> dict[str, None]:
        return dict.fromkeys(names)

    monkeypatch.setattr(log, "topic_ids", none)
    monkeypatch.setattr(log, "partition_counts", none)
    assert "topics create" in str(await worker.failed())
