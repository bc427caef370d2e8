"""Counts that are added up are those of records that follow one another."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hypothesis import example, given
from hypothesis import strategies as st

from schemas.topics import DAY_MS
from schemas.views import HOURS_KEPT_MS, Aggregates, PartitionView
from streams.codec import view_codec
from streams.flow.project.fold import FIRST_STATS, PARTITION_KEY, LoggedRecord
from streams.flow.view.local_fold import LocalFold
from tests.core.history import START_MS, History

_OLD_DAYS = HOURS_KEPT_MS // DAY_MS + 1


class Dated(NamedTuple):
    """A boundary, so many days after the first time; its file's own time is another one."""

    day: int
    file_day: int


class Stats:
    """What a fold of its own counts, record by record or by parts."""

    def __init__(self) -> None:
        self.fold = LocalFold()
        self.fold.load_stats(FIRST_STATS)
        self.fold.put_view(b"s-1", None)
        self.known: dict[str, Aggregates] = {}
        self.ahead_ms: set[int] = set()

    def add(self, all_dated: Sequence[Dated]) -> "Stats":
        """Add records one after the other."""
        for number, (day, file_day) in enumerate(all_dated):
            history = History(sequence=number)
            record = history.boundary("auto", duration_ms=5, at=day * DAY_MS // 1_000)
            documents = self.fold.add(LoggedRecord(number, START_MS + file_day * DAY_MS, record))
            assert documents is not None
            assert record.time_ms is not None
            if record.time_ms > (documents.partition.newest_ms or 0):
                self.ahead_ms.add(record.time_ms)
            self._change(documents.stats)
        return self

    def add_part(self, part: "Stats") -> None:
        """Count what another one counted."""
        stats = self.fold.count_all(part.fold.partition, part.ahead_ms, part.known)
        partition = stats.pop(PARTITION_KEY)
        assert partition is not None
        assert view_codec.decode(PartitionView, partition) == self.fold.partition
        self._change(
            {
                name: None if document is None else view_codec.decode(Aggregates, document)
                for name, document in stats.items()
            }
        )

    def _change(self, stats: Mapping[bytes, Aggregates | None]) -> None:
        for field, aggregates in stats.items():
            self.known.pop(field.decode(), None)
            if aggregates is not None:
                self.known[field.decode()] = aggregates


_DATED = st.builds(
    Dated, st.sampled_from((0, 1, 2, 3, _OLD_DAYS)), st.sampled_from((0, 1, 3, _OLD_DAYS))
)


@example([[Dated(0, 0)], [Dated(_OLD_DAYS, _OLD_DAYS)]])
@example([[Dated(0, 3)], [Dated(3, 0)], [Dated(2, 0)]])
@example([[Dated(0, 3)], [Dated(0, 0), Dated(0, 1)]])
@given(st.lists(st.lists(_DATED, min_size=1, max_size=4), min_size=1, max_size=4))
def test_parts_are_counted_as_if_their_records_followed_one_another(
    parts: list[list[Dated]],
) -> None:
    alone = Stats().add([dated for part in parts for dated in part])
    together = Stats()
    for part in parts:
        together.add_part(Stats().add(part))
    assert together.fold.partition == alone.fold.partition
    assert together.known == alone.known
