"""The fold of records into documents, in memory and whole."""

from itertools import zip_longest

from schemas.views import SessionView
from streams.edge import view_codec
from streams.flow.fold_views import ViewFold, fold_records
from tests.flow.project_kit import SAMPLE, placed, sample_records, wanted


def test_views_alone_are_those_of_the_whole_fold() -> None:
    fold = ViewFold(only_views=True)
    for item in placed(SAMPLE):
        fold.add(item)
    found = fold.documents()
    assert found.views == wanted(SAMPLE).views
    assert not any((found.compactions, *found.entries.values(), found.live))


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
