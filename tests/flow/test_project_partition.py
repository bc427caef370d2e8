"""One partition of views: however it is read, cut, interrupted and repeated, it ends the same."""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contextgauge.errors import LostError, ReseekError
from schemas.views import (
    BUCKET_EDGES,
    FEW_VALUES,
    Aggregates,
    Compaction,
    Distribution,
    SessionView,
    TriggerAggregates,
)
from streams import codec
from streams.codec import view_codec
from streams.core.projection.project import project
from streams.core.projection.statistics import counted
from streams.flow.project import view_write
from streams.flow.project.sizes import most_bytes
from streams.flow.project.view_write import MAX_BYTES, MAX_DOCUMENTS
from streams.ports import LogRecord, ViewChanges
from tests.core.history import History
from tests.doubles.view_store import FaultyViews
from tests.flow.project_kit import (
    SAMPLE,
    Logged,
    batches,
    logs,
    on_log,
    placed,
    project_all,
    projector_of,
    stored,
    wanted,
)

QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.extended
@QUICK
@given(logs(), st.lists(st.integers(0, 60), max_size=5), st.booleans())
def test_batching_does_not_matter(log: list[LogRecord], cuts: list[int], strict: bool) -> None:
    if not log:
        return
    store = FaultyViews()
    asyncio.run(project_all(store, batches(log, cuts), strict=strict))
    assert stored(store) == wanted(log)


@pytest.mark.extended
@QUICK
@given(logs(), st.integers(8, 30), st.lists(st.integers(0, 60), max_size=3))
def test_cutting_a_batch_into_calls_does_not_matter(
    log: list[LogRecord], limit: int, cuts: list[int]
) -> None:
    if not log:
        return
    store = FaultyViews()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(view_write, "MAX_DOCUMENTS", limit)
        asyncio.run(project_all(store, batches(log, cuts)))
    assert stored(store) == wanted(log)


@pytest.mark.extended
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
        store = FaultyViews()
        projector = await project_all(store, todo)
        await projector.apply(todo[again])
        await (await project_all(store, [])).apply(todo[again])
        assert projector.position == log[-1].offset + 2
        assert stored(store) == wanted(log)

    asyncio.run(run())


class CrashError(Exception):
    """The worker died here."""


class Fragile(FaultyViews):
    """A store whose client dies at one call: before it is written, or after."""

    def __init__(self, at_call: int, *, after: bool) -> None:
        super().__init__()
        self._calls_left, self._after = at_call, after

    def before_write(self, changes: ViewChanges) -> None:
        del changes
        self._calls_left -= 1
        if self._calls_left == 0 and not self._after:
            raise CrashError

    def after_write(self) -> None:
        if self._calls_left == 0:
            raise CrashError


@pytest.mark.extended
@QUICK
@given(logs(), st.lists(st.integers(0, 60), max_size=5), st.integers(1, 12), st.booleans())
def test_a_crash_at_any_point_gives_the_same_result(
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
            offset = 0 if position is None else position.offset
            await project_all(store, [batch for batch in todo if batch.position > offset])
        assert stored(store) == wanted(log)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(view_write, "MAX_DOCUMENTS", 20)
        asyncio.run(run())


@pytest.mark.extended
@QUICK
@given(logs(), st.lists(st.integers(0, 60), max_size=5), st.integers(1, 5))
def test_lost_replies_change_nothing(log: list[LogRecord], cuts: list[int], lost: int) -> None:
    if not log:
        return

    async def run() -> None:
        store = FaultyViews()
        projector = await project_all(store, [])
        store.lose_replies = lost
        for batch in batches(log, cuts):
            await projector.apply(batch)
        assert stored(store) == wanted(log)

    asyncio.run(run())


async def test_records_are_read_again_for_a_store_that_lost_its_last_second() -> None:
    first, second, third = batches(SAMPLE, [100, 200])
    store = FaultyViews()
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


async def test_two_writers_of_one_partition_do_not_count_twice() -> None:
    first, second, third = batches(SAMPLE, [100, 200])
    store = FaultyViews()
    one = await project_all(store, [first])
    other = await project_all(store, [])
    await one.apply(second)
    # The same batch, the same documents: they are there already.
    with pytest.raises(ReseekError):
        await other.apply(batches(SAMPLE, [100, 150])[1])
    await one.apply(third)
    assert stored(store) == wanted(SAMPLE)


class Watched(FaultyViews):
    """A store that notes how large each call was."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[int, int, int]] = []

    def before_write(self, changes: ViewChanges) -> None:
        documents = [
            *changes.views.values(),
            *changes.compactions.values(),
            *(entry.document for *_, entry in changes.entries),
            *(entry.document for entry in changes.live),
            *(stat or b"" for stat in changes.stats.values()),
        ]
        size = sum(map(len, documents))
        self.calls.append((len(documents) + len(changes.leaving), size, len(changes.live)))


async def test_a_call_has_at_most_500_documents() -> None:
    store = Watched()
    await project_all(store, batches(SAMPLE, []))
    assert max(count for count, *_ in store.calls) <= MAX_DOCUMENTS
    assert max(count for count, *_ in store.calls) > MAX_DOCUMENTS * 0.9
    assert 1 < len(store.calls) < 20
    assert stored(store) == wanted(SAMPLE)


async def test_a_call_has_at_most_2_mib_unless_one_record_is_greater() -> None:
    history = History()
    boundary = history.boundary()
    records = [boundary, history.summary(boundary, "x" * 3_000_000), history.reading(5)]
    records += [history.info(cwd="y" * 150_000 + str(number)) for number in range(40)]
    log = on_log([Logged(record) for record in records])
    store = Watched()
    await project_all(store, batches(log, []))
    large = [records for _, size, records in store.calls if size > MAX_BYTES]
    assert large == [1]
    assert len(store.calls) > 5
    assert stored(store) == wanted(log)


async def test_a_missing_view_is_a_loss() -> None:
    first, second = batches(SAMPLE, [100])
    store = FaultyViews()
    await project_all(store, [first])
    session = codec.key_bytes(
        codec.from_binary(second.records[0].headers, second.records[0].value or b"").data.session_id
    )
    del stored(store).views[session]
    before = store.snapshot()
    with pytest.raises(LostError):
        await project_all(store, [second])
    assert stored(store) == stored(before)


async def test_a_truncated_log_has_sessions_that_begin_in_the_middle() -> None:
    store = FaultyViews()
    projector = projector_of(store)
    late = SAMPLE[100:]
    await projector.begin(late[0].offset)
    assert await projector.open()
    await projector.apply(batches(late, [])[0])
    assert stored(store).views


async def test_while_building_sessions_may_begin_in_the_middle() -> None:
    projector = projector_of(FaultyViews(), strict=False)
    await projector.begin(0)
    assert await projector.open()
    await projector.apply(batches(SAMPLE, [100])[1])


@pytest.mark.parametrize("gone", ["stats", "compactions"])
async def test_other_missing_documents_are_a_loss(gone: str) -> None:
    history = History()
    boundary = history.boundary()
    records = [boundary, history.summary(boundary), history.reading(5), history.complete(boundary)]
    first, second = batches(on_log([Logged(record) for record in records]), [1])
    store = FaultyViews()
    await project_all(store, [first])
    getattr(stored(store), gone).clear()
    with pytest.raises(LostError):
        await project_all(store, [second])


async def test_while_building_a_missing_compaction_is_skipped() -> None:
    history = History()
    boundary = history.boundary()
    records = [boundary, history.summary(boundary), history.reading(5), history.complete(boundary)]
    first, second = batches(on_log([Logged(record) for record in records]), [1])
    store = FaultyViews()
    await project_all(store, [first])
    projector = projector_of(store, strict=False)
    assert await projector.open()
    stored(store).compactions.clear()
    await projector.apply(second)
    assert stored(store).compactions == {}
    view = view_codec.decode(SessionView, stored(store).views[b"s-1"])
    assert view.compactions.last[0].tokens_after == 30_000


async def test_calls_before_a_failure_within_a_batch_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(view_write, "MAX_DOCUMENTS", 20)
    store = FaultyViews()
    late = History("late")
    late.reading(1)
    log = [*SAMPLE[:100], *on_log([Logged(late.reading(2))])]
    log[-1] = log[-1]._replace(offset=200)
    with pytest.raises(LostError, match="record 200 "):
        await project_all(store, batches(log, []))
    position = await store.position(1, 0)
    assert position is not None
    assert 0 < position.offset <= 200
    done = [record for record in log if record.offset < position.offset]
    assert stored(store) == wanted(done)


async def test_damage_is_a_loss() -> None:
    first, second = batches(SAMPLE, [100])
    store = FaultyViews()
    await project_all(store, [first])
    ahead = stored(store).live[-1]._replace(offset=10**9)
    stored(store).live.append(ahead)
    with pytest.raises(LostError):
        await project_all(store, [second])


async def test_views_are_forgotten_and_loaded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streams.flow.project.partition.CACHED_SESSIONS", 2)
    store = FaultyViews()
    await project_all(store, batches(SAMPLE, range(0, len(SAMPLE), 7)))
    assert stored(store) == wanted(SAMPLE)


async def test_compactions_are_whole_documents() -> None:
    history = History()
    boundary = history.boundary()
    records = [
        boundary,
        history.summary(boundary, "so far"),
        history.reading(9),
        history.complete(boundary),
    ]
    log = on_log([Logged(record) for record in records])
    store = FaultyViews()
    await project_all(store, batches(log, [1, 2, 3]))
    document = stored(store).compactions[b"s-1"][b"1"]
    whole = view_codec.decode(Compaction, document)
    assert (whole.summary, whole.tokens_after, whole.complete) == ("so far", 30_000, True)
    assert whole.metadata == {"trigger": "auto"}


def test_documents_equal_the_pure_fold() -> None:
    views: dict[str, SessionView] = {}
    total = Aggregates()
    readings: dict[str, list[int]] = {}
    for item in placed(SAMPLE):
        session = item.record.data.session_id
        before = views.get(session)
        total = counted(total, item.record, before)
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


def test_aggregates_take_at_most_the_bytes_that_a_call_reserves_for_them() -> None:
    largest, most = BUCKET_EDGES[-1], 2**31
    full = Distribution(
        count=most,
        sum=largest * most,
        min=largest,
        max=largest,
        buckets={str(edge): most for edge in BUCKET_EDGES},
    )
    many = TriggerAggregates(
        succeeded=most,
        failed=most,
        blocked=most,
        unknown=most,
        duration_ms=full,
        pre_tokens=full,
    )
    largest_values = replace(full, values=(largest,) * FEW_VALUES)
    few = replace(many, duration_ms=largest_values, pre_tokens=largest_values)
    for each in (TriggerAggregates(), many, few):
        stat = Aggregates(manual=each, automatic=each, idle=each, unknown_trigger=each)
        assert len(view_codec.encode(stat)) <= most_bytes(stat)
