"""The fold of records into documents, in memory and whole."""

from itertools import zip_longest

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contextgauge.partitioner import partition_of
from schemas.records import Record
from schemas.views import Aggregates, Compaction, SessionView
from streams import codec
from streams.codec import view_codec
from streams.edge.memory.view_store import MemoryViews
from streams.flow.project.fold import PARTITION_KEY, Fold, LoggedRecord
from streams.flow.project.view_write import ViewWrite
from streams.ports import LogRecord
from tests.core.given import SESSION, Given, compacting, init, kinds
from tests.core.history import START_MS, History
from tests.doubles.dump import fold_records
from tests.flow.project_kit import (
    Logged,
    batches,
    logs,
    on_log,
    placed,
    project_all,
    sample_records,
    stored,
    wanted,
)
from tests.test_compiled import COMPILED_RUN


def test_records_of_a_replay_are_folded_by_partition() -> None:
    from_partitions = sample_records()
    mixed = [r for turn in zip_longest(*from_partitions) for r in turn if r is not None]
    sessions = {record.data.session_id for record in mixed}
    dumps = fold_records(mixed, 4)
    assert len(dumps) == 4
    for partition, dump in enumerate(dumps):
        theirs = {codec.key_bytes(name) for name in sessions if partition_of(name, 4) == partition}
        assert dump.views.keys() == theirs
    view = view_codec.decode(SessionView, next(iter(dumps[0].views.values())))
    assert view.chains


async def test_a_timing_reaches_a_compaction_that_a_former_worker_measured() -> None:
    history = History()
    boundary = history.boundary("auto", duration_ms=None, model="gpt-5", at=0)
    records = [
        boundary,
        history.complete(boundary, at=1),
        history.timing(boundary, 3_069, at=7_200),
    ]
    log = on_log([Logged(record, START_MS) for record in records])
    store = MemoryViews()
    for batch in batches(log, [1, 2]):
        await project_all(store, [batch])  # each by another worker, which reads what is stored
    held = stored(store)
    assert held == wanted(log)
    document = view_codec.decode(Compaction, held.compactions[b"s-1"][b"1"])
    assert (document.duration_ms, document.duration_source, document.complete) == (
        3_069,
        "reported",
        True,
    )
    for field in (b"total", b"model:gpt-5", b"hour:2026-11-01T12"):
        counted = view_codec.decode(Aggregates, held.stats[field]).automatic
        assert (counted.succeeded, counted.duration_ms.count, counted.duration_ms.sum) == (
            1,
            1,
            3_069,
        )
    assert b"hour:2026-11-01T14" not in held.stats


async def test_a_check_reaches_its_compaction_in_any_batch() -> None:
    history = History()
    boundary = history.boundary("auto", at=0)
    records = [
        boundary,
        history.reading(30_000),
        history.complete(boundary),
        history.reading(31_000),
        history.pins_checked(boundary, 3, ("Never push to main.",)),
    ]
    log = on_log([Logged(record, START_MS) for record in records])
    for sizes in ([5], [1, 4], [3, 2], [4, 1], [1, 1, 1, 1, 1]):
        store = MemoryViews()
        for batch in batches(log, sizes):
            await project_all(store, [batch])
        held = stored(store)
        assert held == wanted(log)
        document = view_codec.decode(Compaction, held.compactions[b"s-1"][b"1"])
        receipt = document.receipt
        assert (receipt.pins_kept, receipt.pins_lost, receipt.tokens_after) == (3, 1, 30_000)


def test_compactions_that_can_no_longer_change_leave_memory() -> None:
    history, fold = History(), Fold(strict=False)
    first, second = history.boundary(duration_ms=None), history.boundary(number=2, duration_ms=None)
    records = [first, second, history.complete(second), history.timing(second)]
    fold.put_view(b"s-1", None)
    held = []
    for item in placed(on_log([Logged(record) for record in records])):
        fold.add(item)
        held.append(sorted(name for _, name in fold._compactions))  # noqa: SLF001 -- what it holds shows nowhere
    assert held == [[b"1"], [b"2"], [b"2"], [b"2"]]  # its rules may still be checked
    fold.forget_sessions(9)
    assert fold.missing_compactions([history.pins_checked(second)]) == [(b"s-1", b"2")]


def test_a_complete_compaction_is_read_again_for_its_duration() -> None:
    history, fold = History(), Fold(strict=False)
    boundary = history.boundary(duration_ms=None)
    records = [
        boundary,
        history.complete(boundary),
        history.timing(boundary),
        history.timing(boundary),
    ]
    first, second, timing, again = placed(on_log([Logged(record) for record in records]))
    fold.put_view(b"s-1", None)
    assert fold.missing_compactions([boundary]) == []
    fold.add(first)
    documents = fold.add(second)
    assert documents is not None
    assert documents.compaction is not None
    name, document = documents.compaction
    assert fold.missing_compactions([timing.record]) == []
    fold.forget_sessions(9)
    assert fold.missing_compactions([timing.record]) == [(b"s-1", b"1")]
    fold.put_compaction(b"s-1", name, document)
    timed = fold.add(timing)
    assert timed is not None
    assert timed.compaction is not None
    assert view_codec.decode(Compaction, timed.compaction[1]).duration_ms == 3_069
    assert fold.missing_compactions([again.record]) == []


@pytest.mark.extended
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(logs(), st.integers(1, 30))
def test_no_call_exceeds_its_estimated_size(log: list[LogRecord], records: int) -> None:
    fold, call = Fold(strict=False), ViewWrite()
    for number, item in enumerate(placed(log), 1):
        session = codec.key_bytes(item.record.data.session_id)
        for missing in fold.missing([session]):
            fold.put_view(missing, None)
        documents = fold.add(item)
        assert documents is not None
        assert len(view_codec.encode(documents.view)) <= documents.view_bytes
        call.add(documents)
        if number % records == 0:
            changes = call.changes()
            fold.encoded(changes.views)
            whole = [
                *changes.views.values(),
                *changes.compactions.values(),
                *(entry.document for *_, entry in changes.entries),
                *(entry.document for entry in changes.live),
                *(stat or b"" for name, stat in changes.stats.items() if name != PARTITION_KEY),
            ]
            assert sum(map(len, whole)) <= call.size
            call = ViewWrite()


@pytest.mark.skipif(COMPILED_RUN, reason="compiled modules do not look each other's names up")
def test_a_heartbeat_that_is_not_written_is_not_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    session, encoded = Given(), list[Record]()
    records = session.take(init(), compacting(at=1), compacting(at=20))
    structured = codec.to_structured

    def noted(record: Record) -> bytes:
        encoded.append(record)
        return structured(record)

    monkeypatch.setattr(codec, "to_structured", noted)
    fold = Fold(strict=True)
    fold.put_view(codec.key_bytes(SESSION), None)
    for offset, record in enumerate(records):
        fold.add(LoggedRecord(offset, START_MS, record))
    assert encoded == records[:-1]


@pytest.mark.parametrize("is_begun", [True, False])
@pytest.mark.parametrize("name", ["n", "😀", "\x01", "\ud800"])
def test_a_view_is_within_its_bound_after_a_heartbeat_that_names_its_task(
    name: str, *, is_begun: bool
) -> None:
    session = Given()
    begun = session.take(init(), compacting(at=1))
    beat = session.take(compacting(at=20), task_id=name * 1_000)
    fold = Fold(strict=False)
    fold.put_view(codec.key_bytes(SESSION), None)
    for offset, record in enumerate((*begun, *beat) if is_begun else beat):
        documents = fold.add(LoggedRecord(offset, START_MS, record))
        assert documents is not None
        size = len(view_codec.encode(documents.view))
        assert size <= documents.view_bytes
        fold.encoded({documents.session: view_codec.encode(documents.view)})
    assert kinds(beat) == ["compaction_progress"]
