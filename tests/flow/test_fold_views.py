"""The fold of records into documents, in memory and whole."""

from itertools import zip_longest

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contextgauge.partitioner import partition_of
from schemas.views import SessionView
from streams import codec
from streams.codec import views as view_codec
from streams.flow.project.fold import PARTITION_KEY, Fold
from streams.flow.project.partition import ViewWrite
from streams.ports import LogRecord
from tests.doubles.dump import fold_records
from tests.flow.project_kit import logs, placed, sample_records


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
