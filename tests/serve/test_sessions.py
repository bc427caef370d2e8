"""Reading sessions: lists, the beginning of an id, and never two generations in one answer."""

from dataclasses import replace

import pytest

from contextgauge.clock import SystemClock
from schemas.records import CompactBoundary, Record
from streams import codec
from streams.core.session_status import is_live
from streams.edge.memory.view_store import MemoryPartition, MemoryViews
from streams.ports import Generations, ViewPosition
from streams.serve.views.sessions import SessionLookupError, Sessions, active_sessions
from streams.serve.views.snapshot import ViewsGoneError
from tests.doubles.dump import fold_records

PARTITIONS = 3


def _store(records: list[Record], generation: int = 1) -> MemoryViews:
    store = MemoryViews()
    for partition, dump in enumerate(fold_records(records, PARTITIONS)):
        position = ViewPosition(len(records), 0, PARTITIONS, caught_up=True)
        store.partitions[generation, partition] = MemoryPartition(position, dump)
    store.numbers = Generations(generation, None)
    return store


async def _active(store: MemoryViews) -> Sessions:
    return await active_sessions(store, SystemClock())


@pytest.fixture
async def sessions(records: list[Record]) -> Sessions:
    """The sessions of the sample, in memory."""
    return await _active(_store(records))


async def test_all_partitions_are_merged_by_last_activity(
    sessions: Sessions, records: list[Record]
) -> None:
    views = await sessions.ranked("recent", 100)
    times = [view.last_ms or 0 for view in views if view.last_ms is not None]
    assert {view.session_id for view in views} == {record.data.session_id for record in records}
    assert times == sorted(times, reverse=True)
    assert await sessions.count() == len(views)
    assert await sessions.ranked("recent", 4) == views[:4]


async def test_sessions_without_times_come_after_all_others(records: list[Record]) -> None:
    timed = records[0].data.session_id
    store = _store([
        replace(record, time_ms=7 if record.data.session_id == timed else None)
        for record in records
    ])  # fmt: skip
    sessions = await _active(store)
    first, *others = await sessions.ranked("recent", 100)
    assert first.session_id == timed
    assert {view.last_ms for view in others} == {None}
    assert not any(is_live(view, 1) for view in others)
    assert await sessions.newest_ms() == 7
    untimed = _store([replace(record, time_ms=None) for record in records])
    assert await (await _active(untimed)).newest_ms() is None


async def test_a_session_is_found_by_its_id_or_a_prefix_of_it(
    sessions: Sessions, records: list[Record]
) -> None:
    session_id = records[0].data.session_id
    whole = await sessions.find(session_id)
    assert whole.session_id == session_id
    assert await sessions.find(session_id[:8]) == whole


async def test_an_ambiguous_prefix_lists_the_matches(records: list[Record]) -> None:
    data = records[0].data
    many = [replace(records[0], data=replace(data, session_id=f"s-{n}")) for n in range(12)]
    sessions = await _active(_store(many))
    with pytest.raises(SessionLookupError, match=r"12 sessions begin with 's-'.*, …\)"):
        await sessions.find("s-")
    with pytest.raises(SessionLookupError, match="an empty name"):
        await sessions.find("")


async def test_an_id_that_is_a_prefix_of_another_is_found(records: list[Record]) -> None:
    short = replace(records[0], data=replace(records[0].data, session_id="s"))
    long = replace(records[0], data=replace(records[0].data, session_id="s-long"))
    sessions = await _active(_store([short, long]))
    assert (await sessions.find("s")).session_id == "s"
    assert (await sessions.find("s-")).session_id == "s-long"


async def test_an_unknown_session_raises_an_error_with_a_remedy(sessions: Sessions) -> None:
    with pytest.raises(SessionLookupError, match="contextgauge sessions"):
        await sessions.find("nobody")


async def test_records_come_in_order_with_readings_on_request(
    sessions: Sessions, records: list[Record]
) -> None:
    session_id = next(
        record.data.session_id for record in records if isinstance(record.data, CompactBoundary)
    )
    expected = [
        record
        for record in records
        if record.data.session_id == session_id and record.kind != "compaction_progress"
    ]
    assert await sessions.records(session_id, readings=True) == expected
    assert await sessions.records(session_id) == [
        record for record in expected if record.kind != "context_reading"
    ]


async def test_before_the_first_projection_results_are_empty() -> None:
    sessions = await _active(MemoryViews())
    assert await sessions.ranked("recent", 10) == []
    assert await sessions.count() == 0
    assert await sessions.records("s") == []
    assert await sessions.compactions("s") == []
    assert await sessions.newest_ms() is None
    with pytest.raises(SessionLookupError, match="project worker"):
        await sessions.find("s")


async def test_an_active_generation_that_is_gone_is_not_taken_for_an_empty_one(
    records: list[Record],
) -> None:
    store = _store(records)
    del store.partitions[1, 0]
    with pytest.raises(ViewsGoneError, match=r"generation 1 are gone.*project worker"):
        await _active(store)


async def test_only_the_active_generation_is_read(records: list[Record]) -> None:
    store = _store(records)
    being_built = _store(records[:1], generation=2)
    store.partitions.update(being_built.partitions)
    store.numbers = Generations(1, 2)
    assert await (await _active(store)).count() == 12
    store.numbers = Generations(2, None)
    assert await (await _active(store)).count() == 1


async def test_a_session_whose_view_was_evicted_is_gone_and_not_unknown(
    records: list[Record],
) -> None:
    """Redis may evict any key; a session that leaves for idleness leaves the rankings as well."""
    store = _store(records)
    gone = codec.key_bytes(records[0].data.session_id)
    for partition in store.partitions.values():
        partition.held.views.pop(gone, None)
    sessions = await _active(store)
    assert len(await sessions.ranked("recent", 100)) == 11
    for name in (records[0].data.session_id, records[0].data.session_id[:10]):
        with pytest.raises(ViewsGoneError, match=r"is gone from Redis.*noeviction"):
            await sessions.find(name)
    for partition in store.partitions.values():
        partition.held.rankings["recent"].pop(gone, None)
    with pytest.raises(SessionLookupError):
        await sessions.find(records[0].data.session_id)


async def test_sessions_stay_with_their_generation(records: list[Record]) -> None:
    store = _store(records)
    store.partitions.update(_store(records[:1], generation=2).partitions)
    sessions = await _active(store)
    store.numbers = Generations(2, None)
    assert await sessions.count() == 12
    assert await (await _active(store)).count() == 1
