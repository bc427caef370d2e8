"""The views compared with the log, while a worker may go on."""

import asyncio
from collections.abc import Callable
from typing import TypeAlias

import pytest

from contextgauge.clock import SystemClock
from contextgauge.errors import StopError, VersionError
from schemas.views import SESSION_IDLE_MS
from streams.edge.memory.view_store import MemoryPartition, MemoryViews
from streams.flow.rebuild import audit as audit_module
from streams.flow.rebuild.audit import AuditPorts, AuditResult, audit
from streams.ports import NewRecord, PartitionDocuments, PartitionDump
from tests.core.given import Given, assistant
from tests.doubles.log import FaultyLog
from tests.flow.project_kit import PARTITIONS, ProjectKit, sample_records
from tests.flow.rebuild_kit import drip, projecting

RECORDS = [record for part in sample_records() for record in part]


@pytest.fixture
def store() -> MemoryViews:
    return MemoryViews()


@pytest.fixture
async def kit(store: MemoryViews) -> ProjectKit:
    kit = ProjectKit(FaultyLog(SystemClock()), store)
    await kit.create_topic()
    return kit


async def audited(kit: ProjectKit) -> AuditResult:
    return await audit(
        AuditPorts(
            log=kit.log,
            store=kit.store,
            clock=kit.clock,
            events_topic=kit.topic.name,
            idle_ms=SESSION_IDLE_MS,
            new_documents=MemoryPartition,
        )
    )


def change_view(held: PartitionDump, session: bytes) -> None:
    held.views[session] = held.views[session].replace(b'"task_id":null', b'"task_id":"t"')


def damage_view(held: PartitionDump, session: bytes) -> None:
    held.views[session] = b"{"


def reformat_view(held: PartitionDump, session: bytes) -> None:
    held.views[session] += b" "


def lose_view(held: PartitionDump, session: bytes) -> None:
    del held.views[session]


def change_compaction(held: PartitionDump, session: bytes) -> None:
    held.compactions[session][b"1"] = b"{}"


def lose_event(held: PartitionDump, session: bytes) -> None:
    del held.entries["events"][session][3]


def lose_readings(held: PartitionDump, session: bytes) -> None:
    del held.entries["readings"][session]


def change_rank(held: PartitionDump, session: bytes) -> None:
    held.rankings["pressure"][session] = 12.5


def leave(held: PartitionDump, session: bytes) -> None:
    held.left[session] = 5


def change_stats(held: PartitionDump, _: bytes) -> None:
    held.stats[b"total"] = b"{}"


def lose_live(held: PartitionDump, _: bytes) -> None:
    del held.live[7]


def add_session(held: PartitionDump, session: bytes) -> None:
    held.views[b"more"] = held.views[session]
    held.rankings["recent"][b"more"] = 1


Change: TypeAlias = Callable[[PartitionDump, bytes], None]

CHANGES: dict[Change, list[tuple[str | None, tuple[str, ...]]]] = {
    change_view: [("session", ("identity.task_id",))],
    damage_view: [("session", ("chains", "compactions", "identity", "position", "sequence", "…"))],
    reformat_view: [("session", ("view",))],
    lose_view: [("session", ("missing in the views",))],
    change_compaction: [("session", ("compactions",))],
    lose_event: [("session", ("events",))],
    lose_readings: [("session", ("readings",))],
    change_rank: [("session", ("pressure",))],
    leave: [(None, ("left",)), ("session", ("left",))],
    change_stats: [(None, ("stats total",))],
    lose_live: [(None, ("live",))],
    add_session: [(None, ("recent",)), ("more", ("not in the log",))],
}


@pytest.mark.extended
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
async def test_a_change_is_reported_with_its_fields(
    kit: ProjectKit, store: MemoryViews, change: Change
) -> None:
    async with projecting(kit, RECORDS):
        pass
    partition, session = next(
        (partition, session)
        for (_, partition), stored in store.partitions.items()
        for session in stored.held.compactions
    )
    assert (await audited(kit)).different == 0
    change(store.partitions[1, partition].held, session)
    result = await audited(kit)
    expected = [
        (session.decode() if name == "session" else name, fields)
        for name, fields in CHANGES[change]
    ]
    assert [(item.session, item.fields) for item in result.first] == expected
    assert {item.partition for item in result.first} == {partition}


async def test_views_are_compared_while_records_come(
    kit: ProjectKit, store: MemoryViews, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_module, "_SESSIONS_READ", 1)
    read = store.session_documents
    offsets = set()

    async def late(generation: int, partition: int, sessions: list[bytes]) -> object:
        await asyncio.sleep(0.1)
        answer = await read(generation, partition, sessions)
        offsets.add(answer[0])
        return answer

    monkeypatch.setattr(store, "session_documents", late)
    async with projecting(kit, RECORDS[::2]):
        live = asyncio.create_task(drip(kit, RECORDS[1::2]))
        result = await audited(kit)
        assert not live.done()
        live.cancel()
        await asyncio.wait([live])
    assert (result.different, result.cut) == (0, [])
    assert len(offsets) > PARTITIONS


async def test_only_the_first_differences_are_named(kit: ProjectKit, store: MemoryViews) -> None:
    async with projecting(kit, RECORDS):
        pass
    sessions = 0
    for stored in store.partitions.values():
        sessions += len(stored.held.views)
        for session in stored.held.views:
            change_view(stored.held, session)
    result = await audited(kit)
    assert (result.generation, result.sessions) == (1, sessions)
    assert (result.different, len(result.first)) == (sessions, 10)


async def test_the_sessions_of_agents_are_compared(kit: ProjectKit, store: MemoryViews) -> None:
    records = Given().take(assistant("m1", read=9_000), agent_id="ann")
    async with projecting(kit, [*RECORDS, *records]):
        pass
    assert (await audited(kit)).different == 0
    held = next(each.held for each in store.partitions.values() if each.held.agents)
    held.agents[b"ann"][b"another"] = 5
    (difference,) = (await audited(kit)).first
    assert difference.fields == ("agent ann",)


async def test_views_of_a_topic_that_was_created_again_are_not_compared(kit: ProjectKit) -> None:
    assert isinstance(kit.log, FaultyLog)
    async with projecting(kit, RECORDS):
        pass
    kit.log.delete_topic(kit.topic.name)
    await kit.create_topic()
    with pytest.raises(StopError, match="created again"):
        await audited(kit)


async def test_records_that_the_log_no_longer_has_are_reported(kit: ProjectKit) -> None:
    assert isinstance(kit.log, FaultyLog)
    async with projecting(kit, RECORDS):
        kit.log.delete_before(kit.topic.name, 1, 20)
        result = await audited(kit)
    assert [tuple(cut) for cut in result.cut] == [(1, 0, 20)]
    assert {item.partition for item in result.first} == {1}


async def test_records_that_are_deleted_while_they_are_read_are_reported(
    kit: ProjectKit, store: MemoryViews, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = kit.log
    assert isinstance(log, FaultyLog)
    async with projecting(kit, RECORDS):
        pass
    read = store.partition_documents

    async def late(generation: int, partition: int) -> tuple[int | None, PartitionDocuments]:
        # After the log's beginning was looked up, and before it is read.
        if partition == 1:
            log.delete_before(kit.topic.name, 1, 20)
        return await read(generation, partition)

    monkeypatch.setattr(store, "partition_documents", late)
    result = await audited(kit)
    assert [tuple(cut) for cut in result.cut] == [(1, 0, 20)]
    assert {item.partition for item in result.first} == {1}


async def test_views_that_go_back_meanwhile_are_not_compared(
    kit: ProjectKit, store: MemoryViews, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with projecting(kit, RECORDS):
        pass
    read = store.session_documents

    async def earlier(generation: int, partition: int, sessions: list[bytes]) -> object:
        offset, documents = await read(generation, partition, sessions)
        return (offset or 0) - 1, documents

    monkeypatch.setattr(store, "session_documents", earlier)
    with pytest.raises(StopError, match=r"earlier position.*run the command again"):
        await audited(kit)


async def test_a_log_that_ends_before_the_views_is_not_compared(kit: ProjectKit) -> None:
    assert isinstance(kit.log, FaultyLog)
    async with projecting(kit, RECORDS):
        pass
    kit.log.truncate(kit.topic.name, 2, 30)
    with pytest.raises(StopError, match=r"partition 2: the log ends at 30, .* created again"):
        await audited(kit)


async def test_views_that_ended_before_the_log_begins_are_reported_as_cut(kit: ProjectKit) -> None:
    assert isinstance(kit.log, FaultyLog)
    async with projecting(kit, RECORDS[::2]):
        pass
    end = (await kit.read(1))[1]
    await kit.append(RECORDS[1::2])
    kit.log.delete_before(kit.topic.name, 1, end + 3)
    assert [tuple(cut) for cut in (await audited(kit)).cut] == [(1, 0, end + 3)]


async def test_a_record_that_cannot_be_read_is_named(kit: ProjectKit) -> None:
    async with projecting(kit, RECORDS):
        producer = kit.log.producer()
        await producer.start()
        offset = (await kit.read(0))[1]
        record = (await kit.read(0))[0][0]
        new = NewRecord(kit.topic.name, 0, record.key, b"{", record.headers)
    await producer.send(new)
    await producer.flush()
    position = await kit.store.position(1, 0)
    assert isinstance(kit.store, MemoryViews)
    assert position is not None
    kit.store.partitions[1, 0].position = position._replace(offset=offset + 1)
    with pytest.raises(VersionError, match=f"record {offset} of partition 0 cannot be read"):
        await audited(kit)


async def test_without_views_there_is_nothing_to_compare(
    kit: ProjectKit, store: MemoryViews, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(StopError, match="no views"):
        await audited(kit)
    async with projecting(kit, RECORDS):
        pass

    async def gone(_generation: int, _partition: int) -> tuple[None, PartitionDocuments]:
        return None, PartitionDocuments.of(MemoryPartition().held)

    monkeypatch.setattr(store, "partition_documents", gone)
    with pytest.raises(StopError, match="run the command again"):
        await audited(kit)
