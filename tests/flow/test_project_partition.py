"""One partition of views: however it is read, cut, interrupted and repeated, it ends the same."""

import asyncio
from collections.abc import Callable, Sequence
from itertools import chain, zip_longest

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from schemas.records import Record
from schemas.topics import DAY_MS
from schemas.views import Aggregates, Compaction, PartitionView, SessionView
from streams.core.errors import ConfigError, LostError, ReseekError, VersionError
from streams.core.project import project
from streams.core.project_stats import counted
from streams.core.rules import Rules
from streams.edge import codec, view_codec
from streams.edge.catalog import bundled
from streams.edge.memory_views import MemoryViews
from streams.flow import project_partition
from streams.flow.fold_views import fold_records, fold_views
from streams.flow.funnel import Funnel, Intake
from streams.flow.project_partition import MAX_BYTES, MAX_DOCUMENTS
from streams.ports import ApplyResult, LogRecord, PartitionDump, ViewChanges, ViewPosition
from tests.core.history import START_MS, History
from tests.core.strategies import SESSIONS, write
from tests.flow.project_kit import (
    Told,
    batches,
    on_log,
    placed,
    project_all,
    projector_of,
    sample_records,
)

RULES = Rules(bundled())
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
SAMPLE = on_log([Told(record, START_MS) for record in chain(*sample_records())])


@st.composite
def logs(draw: st.DrawFn) -> list[LogRecord]:
    """Logs of some sessions, interleaved, over days and sometimes months."""
    sessions = []
    for number in range(draw(st.integers(1, 4))):
        actions, transcript = draw(SESSIONS)
        name = f"s-{number}"
        funnel = Funnel(RULES)
        lines = write(name, actions, transcript=transcript)
        sessions.append([r for line in lines for r in funnel.take(Intake(line, name)).records])
    mixed = [record for turn in zip_longest(*sessions) for record in turn if record is not None]
    steps = st.sampled_from([0, 1, 3_600_000, DAY_MS, 40 * DAY_MS, 100 * DAY_MS])
    logged_ms, told = START_MS, []
    for record in mixed:
        logged_ms += draw(steps)
        told.append(Told(record, logged_ms))
    return on_log(told)


def wanted(log: Sequence[LogRecord]) -> PartitionDump:
    return fold_views(placed(log))


def stored(store: MemoryViews) -> PartitionDump:
    return store.partitions[1, 0].held


@QUICK
@given(logs(), st.lists(st.integers(0, 60), max_size=5), st.booleans())
def test_batching_does_not_matter(log: list[LogRecord], cuts: list[int], strict: bool) -> None:
    if not log:
        return
    store = MemoryViews()
    asyncio.run(project_all(store, batches(log, cuts), strict=strict))
    assert stored(store) == wanted(log)


@QUICK
@given(logs(), st.integers(8, 30), st.lists(st.integers(0, 60), max_size=3))
def test_cutting_a_batch_into_calls_does_not_matter(
    log: list[LogRecord], limit: int, cuts: list[int]
) -> None:
    if not log:
        return
    store = MemoryViews()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(project_partition, "MAX_DOCUMENTS", limit)
        asyncio.run(project_all(store, batches(log, cuts)))
    assert stored(store) == wanted(log)


@QUICK
@given(logs(), st.lists(st.integers(0, 60), min_size=1, max_size=5), st.data())
def test_applying_a_batch_again_changes_nothing(
    log: list[LogRecord], cuts: list[int], data: st.DataObject
) -> None:
    if not log:
        return
    todo = batches(log, cuts)
    again = data.draw(st.integers(0, len(todo) - 1))

    async def run() -> None:
        store = MemoryViews()
        projector = await project_all(store, todo)
        await projector.apply(todo[again])
        await (await project_all(store, [])).apply(todo[again])
        assert projector.position == log[-1].offset + 2
        assert stored(store) == wanted(log)

    asyncio.run(run())


class CrashError(Exception):
    """The worker died here."""


class Fragile(MemoryViews):
    """A store whose client dies at one call: before it is written, or after."""

    def __init__(self, at_call: int, *, after: bool) -> None:
        super().__init__()
        self._calls_left, self._after = at_call, after

    async def apply(
        self,
        generation: int,
        partition: int,
        *,
        expected: int | None,
        position: ViewPosition,
        changes: ViewChanges,
    ) -> ApplyResult:
        self._calls_left -= 1
        if self._calls_left == 0 and not self._after:
            raise CrashError
        result = await super().apply(
            generation, partition, expected=expected, position=position, changes=changes
        )
        if self._calls_left == 0:
            raise CrashError
        return result


@QUICK
@given(logs(), st.lists(st.integers(0, 60), max_size=5), st.integers(1, 12), st.booleans())
def test_a_crash_at_any_point_ends_equal(
    log: list[LogRecord],
    cuts: list[int],
    at_call: int,
    after: bool,
) -> None:
    if not log:
        return
    todo = batches(log, cuts)

    async def run() -> None:
        store = Fragile(at_call, after=after)
        try:
            await project_all(store, todo)
        except CrashError:
            position = await store.position(1, 0)
            at = 0 if position is None else position.offset
            await project_all(store, [batch for batch in todo if batch.position > at])
        assert stored(store) == wanted(log)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(project_partition, "MAX_DOCUMENTS", 20)
        asyncio.run(run())


@QUICK
@given(logs(), st.lists(st.integers(0, 60), max_size=5), st.integers(1, 5))
def test_lost_replies_change_nothing(log: list[LogRecord], cuts: list[int], lost: int) -> None:
    if not log:
        return

    async def run() -> None:
        store = MemoryViews()
        projector = await project_all(store, [])
        store.lose_replies = lost
        for batch in batches(log, cuts):
            await projector.apply(batch)
        assert stored(store) == wanted(log)

    asyncio.run(run())


async def test_a_store_that_lost_its_last_second_is_read_for_again() -> None:
    first, second, third = batches(SAMPLE, [100, 200])
    store = MemoryViews()
    projector = await project_all(store, [first])
    before = store.snapshot()
    await projector.apply(second)
    store.restore(before)
    with pytest.raises(ReseekError):
        await projector.apply(third)
    assert stored(store) == stored(before)
    again = await project_all(store, [])
    assert again.position == first.position
    for batch in (second, third):
        await again.apply(batch)
    assert stored(store) == wanted(SAMPLE)


async def test_two_that_write_to_one_partition_do_not_count_twice() -> None:
    first, second, third = batches(SAMPLE, [100, 200])
    store = MemoryViews()
    one = await project_all(store, [first])
    other = await project_all(store, [])
    await one.apply(second)
    # The same batch, the same documents: they are there already.
    with pytest.raises(ReseekError):
        await other.apply(batches(SAMPLE, [100, 150])[1])
    await one.apply(third)
    assert stored(store) == wanted(SAMPLE)


class Watched(MemoryViews):
    """A store that notes how large each call was."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[int, int, int]] = []

    async def apply(
        self,
        generation: int,
        partition: int,
        *,
        expected: int | None,
        position: ViewPosition,
        changes: ViewChanges,
    ) -> ApplyResult:
        documents = [
            *changes.views.values(),
            *changes.compactions.values(),
            *(entry.document for *_, entry in changes.entries),
            *(entry.document for entry in changes.live),
            *(stat or b"" for stat in changes.stats.values()),
        ]
        size = sum(map(len, documents))
        self.calls.append((len(documents) + len(changes.leaving), size, len(changes.live)))
        return await super().apply(
            generation, partition, expected=expected, position=position, changes=changes
        )


async def test_a_call_has_at_most_500_documents() -> None:
    store = Watched()
    await project_all(store, batches(SAMPLE, []))
    assert max(count for count, *_ in store.calls) <= MAX_DOCUMENTS
    assert max(count for count, *_ in store.calls) > MAX_DOCUMENTS * 0.9
    assert 1 < len(store.calls) < 20
    assert stored(store) == wanted(SAMPLE)


async def test_a_call_has_at_most_2_mib_unless_one_record_is_greater() -> None:
    told = History()
    boundary = told.boundary()
    records = [boundary, told.summary(boundary, "x" * 3_000_000), told.reading(5)]
    records += [told.info(cwd="y" * 150_000 + str(number)) for number in range(40)]
    log = on_log([Told(record) for record in records])
    store = Watched()
    await project_all(store, batches(log, []))
    large = [records for _, size, records in store.calls if size > MAX_BYTES]
    assert large == [1]
    assert len(store.calls) > 5
    assert stored(store) == wanted(log)


async def test_a_view_that_is_gone_is_a_loss() -> None:
    first, second = batches(SAMPLE, [100])
    store = MemoryViews()
    await project_all(store, [first])
    session = codec.key_bytes(
        codec.from_binary(second.records[0].headers, second.records[0].value or b"").data.session_id
    )
    del stored(store).views[session]
    before = store.snapshot()
    with pytest.raises(LostError):
        await project_all(store, [second])
    assert stored(store) == stored(before)
    # While a generation is built the log is right: sessions may begin in the middle there.
    await project_all(store, [second], strict=False)
    assert session in stored(store).views


async def test_a_log_that_begins_late_has_sessions_that_begin_in_the_middle() -> None:
    store = MemoryViews()
    projector = projector_of(store)
    late = SAMPLE[100:]
    await projector.begin(late[0].offset)
    assert await projector.open()
    await projector.apply(batches(late, [])[0])
    assert stored(store).views


@pytest.mark.parametrize("gone", ["stats", "compactions"])
async def test_other_documents_that_are_gone_are_a_loss(gone: str) -> None:
    told = History()
    boundary = told.boundary()
    records = [boundary, told.summary(boundary), told.reading(5), told.complete(boundary)]
    first, second = batches(on_log([Told(record) for record in records]), [1])
    store = MemoryViews()
    await project_all(store, [first])
    getattr(stored(store), gone).clear()
    with pytest.raises(LostError):
        await project_all(store, [second])


async def test_damage_is_a_loss() -> None:
    first, second = batches(SAMPLE, [100])
    store = MemoryViews()
    await project_all(store, [first])
    ahead = stored(store).live[-1]._replace(offset=10**9)
    stored(store).live.append(ahead)
    with pytest.raises(LostError):
        await project_all(store, [second])


def days(*records: tuple[Record, float]) -> list[LogRecord]:
    return on_log([Told(record, START_MS + int(day * DAY_MS)) for record, day in records])


async def test_sessions_idle_for_90_days_of_the_log_leave() -> None:
    old, kept, new = History("old"), History("kept"), History("new")
    log = days(
        (old.boundary(), 0),
        (kept.reading(5), 1.6),
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


async def test_a_session_that_left_and_goes_on_is_no_loss() -> None:
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


async def test_many_sessions_leave_some_with_each_record() -> None:
    idle = [(History(f"idle-{number:03}").reading(5), 0.0) for number in range(120)]
    new = History("new")
    log = days(*idle, *[(new.reading(number), 95.0) for number in range(4)])
    store = Watched()
    projector = await project_all(store, [])
    left = []
    for cut in batches(log, range(120, 124)):
        await projector.apply(cut)
        left.append(len(stored(store).left))
    assert left == [0, 50, 100, 120, 120]
    leaving = view_codec.decode(PartitionView, stored(store).stats[b"partition"]).leaving
    assert not leaving
    assert stored(store) == wanted(log)


async def test_an_hour_leaves_after_400_days() -> None:
    told = History()
    records = [told.boundary(at=0), told.boundary(at=DAY_MS / 1000 * 401, number=2)]
    log = on_log([Told(record, record.time_ms or 0) for record in records])
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
async def test_what_is_no_record_stops(spoil: Callable[[LogRecord], LogRecord]) -> None:
    with pytest.raises(VersionError, match="record 0 of partition 0"):
        await project_all(MemoryViews(), batches([spoil(SAMPLE[0])], []))


async def test_a_view_of_an_unknown_version_stops() -> None:
    first, second = batches(SAMPLE, [100])
    store = MemoryViews()
    await project_all(store, [first])
    for session, document in stored(store).views.items():
        stored(store).views[session] = document.replace(b'"version":1', b'"version":2')
    with pytest.raises(VersionError, match="version 2"):
        await project_all(store, [second])


def test_a_view_of_another_shape_is_refused() -> None:
    with pytest.raises(VersionError, match="session_id"):
        view_codec.decode(SessionView, b'{"version":1}')


async def test_views_for_another_number_of_partitions_stop() -> None:
    store = MemoryViews()
    await project_all(store, [], partitions=4)
    with pytest.raises(ConfigError, match=r"4 partitions.*has 6.*CONTEXTGAUGE_KEY_PREFIX"):
        await project_all(store, [], partitions=6)


async def test_views_are_forgotten_and_loaded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.flow.fold.Fold.forget_sessions.__defaults__", (2,))
    store = MemoryViews()
    await project_all(store, batches(SAMPLE, range(0, len(SAMPLE), 7)))
    assert stored(store) == wanted(SAMPLE)


def test_records_of_a_replay_are_folded_by_partition() -> None:
    from_partitions = sample_records()
    mixed = [r for turn in zip_longest(*from_partitions) for r in turn if r is not None]
    by_session = {record.data.session_id: part for part, records in enumerate(from_partitions)
                  for record in records}  # fmt: skip
    dumps = fold_records(mixed, lambda session_id, _: by_session[session_id], 4)
    assert len(dumps) == 4
    assert sum(len(dump.views) for dump in dumps) == len(by_session)
    view = view_codec.decode(SessionView, next(iter(dumps[0].views.values())))
    assert view.chains


async def test_compactions_are_whole_documents() -> None:
    told = History()
    boundary = told.boundary()
    records = [boundary, told.summary(boundary, "so far"), told.reading(9), told.complete(boundary)]
    log = on_log([Told(record) for record in records])
    store = MemoryViews()
    await project_all(store, batches(log, [1, 2, 3]))
    document = stored(store).compactions[b"s-1"][b"1"]
    whole = view_codec.decode(Compaction, document)
    assert (whole.summary, whole.tokens_after, whole.complete) == ("so far", 30_000, True)
    assert whole.metadata == {"trigger": "auto"}


def test_documents_are_those_of_the_pure_fold() -> None:
    views: dict[str, SessionView] = {}
    total = Aggregates()
    readings: dict[str, list[int]] = {}
    for item in placed(SAMPLE):
        session = item.record.data.session_id
        before = views.get(session)
        total = counted(total, item.record, None if before is None else before.attempt)
        views[session] = project(before, item.record, item.offset)
        if item.record.kind == "context_reading":
            readings.setdefault(session, []).append(item.offset)
    dump = wanted(SAMPLE)
    assert {
        name.decode(): view_codec.decode(SessionView, view) for name, view in dump.views.items()
    } == views
    assert view_codec.decode(Aggregates, dump.stats[b"total"]) == total
    assert {
        name.decode(): [entry.offset for entry in entries]
        for name, entries in dump.entries["readings"].items()
    } == readings
