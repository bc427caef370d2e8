"""The index of sessions in memory: what it need not do again."""

import pytest

from contextgauge.clock import SystemClock
from schemas.records import Record
from streams.serve.views.session_index import SessionIndex
from streams.serve.views.session_summary import ListOrder, Rank, SessionFilter, Summary
from streams.serve.views.snapshot import Snapshots
from tests.serve.kit import GrowingViews

RECENT = ListOrder("recent")


async def test_many_filters_do_not_have_all_sessions_sorted_again(
    records: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = GrowingViews()
    store.add(*records)
    snapshot = await Snapshots(store, SystemClock()).now()
    assert snapshot is not None
    index = SessionIndex(store)
    ranked: list[Summary] = []
    rank = Summary.rank

    def counted(self: Summary, order: ListOrder) -> Rank:
        ranked.append(self)
        return rank(self, order)

    monkeypatch.setattr(Summary, "rank", counted)
    whole = await index.part(snapshot, RECENT, SessionFilter(), None, 5)
    for number in range(100):
        some = await index.part(snapshot, RECENT, SessionFilter(words=("no", str(number))), None, 5)
        assert some.total == 0
    assert await index.part(snapshot, RECENT, SessionFilter(), None, 5) == whole
    assert len(ranked) == whole.total
