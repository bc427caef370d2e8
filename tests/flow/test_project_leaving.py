"""What leaves the views of a partition, and what it stops at."""

from collections.abc import Callable

import pytest

from contextgauge.errors import ConfigError, LostError, VersionError
from schemas.records import Record
from schemas.topics import DAY_MS
from schemas.views import PartitionView, SessionView
from streams.codec import view_codec
from streams.edge.memory.view_store import MemoryViews
from streams.ports import LogRecord
from tests.core.history import START_MS, History
from tests.flow.project_kit import (
    SAMPLE,
    Logged,
    batches,
    on_log,
    project_all,
    stored,
    wanted,
)


def days(*records: tuple[Record, float]) -> list[LogRecord]:
    return on_log([Logged(record, START_MS + int(day * DAY_MS)) for record, day in records])


async def test_sessions_idle_for_90_days_of_the_log_leave() -> None:
    old, idle, new = History("old"), History("kept"), History("new")
    log = days(
        (old.boundary(), 0),
        (idle.reading(5), 1.6),
        (new.reading(5), 90.4),
        # 91 days on the old one is idle for more than 90 and the kept one is not.
        (new.reading(6), 91.6),
    )
    store = MemoryViews()
    projector = await project_all(store, batches(log, [3])[:1])
    assert set(stored(store).views) == {b"old", b"kept", b"new"}
    await projector.apply(batches(log, [3])[1])
    held = stored(store)
    assert set(held.views) == {b"kept", b"new"}
    assert not held.compactions
    assert b"old" not in held.entries["events"]
    assert set(held.rankings["recent"]) == {b"kept", b"new"}
    assert set(held.left) == {b"old"}
    assert b"total" in held.stats
    assert held == wanted(log)


async def test_a_session_that_left_and_resumes_is_not_a_loss() -> None:
    old, new = History("old"), History("new")
    log = days(
        (old.reading(9), 0), (new.reading(5), 95), (old.reading(7), 95.1), (old.reading(8), 95.2)
    )
    first, second = batches(log, [2])
    store = MemoryViews()
    await project_all(store, [first])
    assert set(stored(store).views) == {b"new"}
    # A worker that knows nothing of it yet.
    await project_all(store, [second])
    view = view_codec.decode(SessionView, stored(store).views[b"old"])
    assert (view.sequence, view.chains["main"].peak_tokens) == (3, 8)
    assert stored(store) == wanted(log)
    at_once = MemoryViews()
    await project_all(at_once, batches(log, []))
    assert stored(at_once) == wanted(log)


async def test_the_lost_view_of_a_session_that_came_back_is_a_loss() -> None:
    old, new = History("old"), History("new")
    log = days(
        (old.reading(9), 0), (new.reading(5), 95), (old.reading(7), 95.1), (old.reading(8), 95.2)
    )
    before, after = batches(log, [3])
    store = MemoryViews()
    await project_all(store, [before])
    has_read_no_view = await project_all(store, [])
    del stored(store).views[b"old"]
    with pytest.raises(LostError):
        await has_read_no_view.apply(after)


async def test_many_sessions_leave_some_with_each_record() -> None:
    idle = [(History(f"idle-{number:03}").reading(5), 0.0) for number in range(120)]
    new = History("new")
    log = days(*idle, *[(new.reading(number), 95.0) for number in range(4)])
    store = MemoryViews()
    projector = await project_all(store, [])
    left = []
    for cut in batches(log, range(120, 124)):
        await projector.apply(cut)
        left.append(len(stored(store).left))
    assert left == [0, 50, 100, 120, 120]
    leaving = view_codec.decode(PartitionView, stored(store).stats[b"partition"]).leaving
    assert not leaving
    assert stored(store) == wanted(log)


async def test_an_agents_sessions_are_known_until_they_leave_or_change_agent() -> None:
    first, second, other = History("first"), History("second"), History("other")
    log = days(
        (first.info(publisher_agent_id="ann"), 0),
        (second.info(publisher_agent_id="ann"), 0.1),
        (other.reading(5), 0.2),
        (second.reading(5), 40),
        (second.info(publisher_agent_id="bob"), 41),
        (second.reading(6), 42),
        (other.reading(6), 92),
        (other.reading(7), 140),
    )
    store, agents = MemoryViews(), []
    projector = await project_all(store, [])
    for cut in batches(log, [2, 4, 5, 6, 7]):
        await projector.apply(cut)
        # A worker that has no view in hand, as after many other sessions.
        projector = await project_all(store, [])
        agents.append({agent: set(held) for agent, held in stored(store).agents.items()})
    assert agents == [
        {b"ann": {b"first", b"second"}},
        {b"ann": {b"first", b"second"}},
        {b"ann": {b"first"}, b"bob": {b"second"}},
        {b"ann": {b"first"}, b"bob": {b"second"}},
        {b"bob": {b"second"}},
        {},
    ]
    assert stored(store) == wanted(log)


async def test_an_hour_leaves_after_400_days() -> None:
    history = History()
    records = [history.boundary(at=0), history.boundary(at=DAY_MS / 1000 * 401, number=2)]
    log = on_log([Logged(record, record.time_ms or 0) for record in records])
    store = MemoryViews()
    await project_all(store, batches(log, [1]))
    assert [name for name in stored(store).stats if name.startswith(b"hour:")] == [
        b"hour:2027-12-07T12"
    ]
    assert stored(store) == wanted(log)


async def test_a_record_of_an_unknown_version_stops_and_nothing_is_applied() -> None:
    good, bad, *_ = SAMPLE
    headers = tuple(
        (name, b"contextgauge.context_reading.v9" if name == "ce_type" else value)
        for name, value in bad.headers
    )
    store = MemoryViews()
    with pytest.raises(VersionError, match=r"record 2 of partition 0.*v9"):
        await project_all(store, batches([good, bad._replace(headers=headers)], []))
    assert not stored(store).views
    position = await store.position(1, 0)
    assert position is not None
    assert position.offset == 0


@pytest.mark.parametrize(
    "spoil",
    [
        lambda record: record._replace(value=b"{"),
        lambda record: record._replace(value=None),
        lambda record: record._replace(headers=()),
    ],
)
async def test_an_invalid_record_raises_an_error(spoil: Callable[[LogRecord], LogRecord]) -> None:
    with pytest.raises(VersionError, match="record 0 of partition 0"):
        await project_all(MemoryViews(), batches([spoil(SAMPLE[0])], []))


async def test_a_view_of_an_unknown_version_stops() -> None:
    first, second = batches(SAMPLE, [100])
    store = MemoryViews()
    await project_all(store, [first])
    for session, document in stored(store).views.items():
        stored(store).views[session] = document.replace(b'"version":3', b'"version":4')
    with pytest.raises(VersionError, match="version 4"):
        await project_all(store, [second])


def test_a_view_of_another_shape_is_refused() -> None:
    with pytest.raises(VersionError, match="session_id"):
        view_codec.decode(SessionView, b'{"version":3}')


async def test_views_for_another_number_of_partitions_stop() -> None:
    store = MemoryViews()
    await project_all(store, [], partitions=4)
    with pytest.raises(ConfigError, match=r"4 partitions.*has 6.*CONTEXTGAUGE_KEY_PREFIX"):
        await project_all(store, [], partitions=6)
