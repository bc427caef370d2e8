"""Exports of paths that are made again: what is there replaces itself, what is gone stays."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from schemas.records import Record
from streams.edge.tables.folder import ArrowFolder
from streams.flow.export.export import Export
from streams.flow.export.retained import Update
from streams.ports.tables import TableFormat
from tests.core.history import History
from tests.flow.export_kit import FailingFolder, PowerFailureError, committed_ids, exported_ids

FORMATS: Sequence[TableFormat] = ("parquet", "arrow", "csv", "ndjson")


def session(name: str, main: int = 2, side: int = 0) -> list[Record]:
    """A session with so many responses in its main chain, a compaction, and a subagent's."""
    history = History(name)
    records = [history.reading(9_000 + number) for number in range(main)]
    records.append(history.boundary())
    return records + [history.reading(1_000, chain="agent:x") for _ in range(side)]


def made_again(
    folder: Path,
    *sessions: Sequence[Record],
    table_format: TableFormat = "parquet",
    opened: Callable[[str, TableFormat], ArrowFolder] = ArrowFolder,
) -> Update:
    """Export sessions, as from paths that have no others."""
    with Export(opened(str(folder), table_format), table_format, "paths") as export:
        export.add((record, None) for records in sessions for record in records)
        return export.commit_update()


def ids(*sessions: Sequence[Record]) -> list[str]:
    return sorted(record.id for records in sessions for record in records)


@pytest.mark.parametrize("table_format", FORMATS)
def test_a_session_that_is_gone_stays_and_one_that_grew_is_there_once(
    tmp_path: Path, table_format: TableFormat
) -> None:
    gone, short, grown = session("gone"), session("here")[:2], session("here")
    first = made_again(tmp_path, gone, short, table_format=table_format)
    assert (first.rows, first.kept, first.gone, first.lost) == (5, 0, set(), set())
    second = made_again(tmp_path, grown, table_format=table_format)
    assert (second.rows, second.kept, second.gone, second.lost) == (3, 3, {"gone"}, set())
    assert committed_ids(tmp_path, table_format) == ids(gone, grown)
    made_again(tmp_path, table_format=table_format)  # the paths are empty
    assert committed_ids(tmp_path, table_format) == ids(gone, grown)


def test_files_of_sessions_that_are_gone_are_not_written_again(tmp_path: Path) -> None:
    made_again(tmp_path, session("gone"))
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("kind=*/*/*")}
    made_again(tmp_path, session("here"))
    made_again(tmp_path, session("here", main=5))
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert len(list(tmp_path.glob("kind=*/*/*"))) == 2 * len(before)


def test_a_chain_that_lost_records_stays_as_it_was_exported(tmp_path: Path) -> None:
    whole = session("one", main=3, side=2)
    main = [record for record in whole if record.data.chain == "main"]
    side = [record for record in whole if record.data.chain != "main"]
    made_again(tmp_path, whole)
    # The subagent's file is gone, and the main one has grown.
    history = History("one", sequence=9)
    later = [history.reading(12_000)]
    update = made_again(tmp_path, main + later)
    assert (update.gone, update.lost) == (set(), {("one", "agent:x")})
    assert committed_ids(tmp_path) == ids(main, side, later)
    # The main file has lost its beginning.
    update = made_again(tmp_path, main[1:] + later + side + [history.reading(13_000)])
    assert (update.rows, update.lost) == (len(side), {("one", "main")})
    assert sorted(exported_ids(tmp_path)) == ids(main, side, later)


def test_other_rules_replace_a_session_whatever_they_name_its_records(tmp_path: Path) -> None:
    former, gone = session("one"), session("gone")
    made_again(tmp_path, former, gone)
    latter = [replace(record, id=f"{record.id}-2", rules="2-test") for record in former[1:]]
    update = made_again(tmp_path, latter)
    assert update.lost == set()
    assert committed_ids(tmp_path) == ids(latter, gone)


def test_warnings_that_a_late_window_takes_back_are_gone(tmp_path: Path) -> None:
    history = History("one")
    reading, boundary = history.reading(9_000), history.boundary()
    made_again(tmp_path, [reading, boundary])
    assert made_again(tmp_path, [reading]).lost == set()
    assert committed_ids(tmp_path) == ids([reading])


@pytest.mark.extended
def test_an_update_that_dies_anywhere_is_read_as_the_former_or_the_latter(tmp_path: Path) -> None:
    gone, former = session("gone"), session("here", side=1)
    *main, side = former
    latter = [*main, History("here", sequence=9).reading(12_000)]

    def updated(folder: Path, dies_at: int | None) -> int:
        made_again(folder, gone, former)
        failing: list[FailingFolder] = []

        def opened(place: str, table_format: TableFormat) -> ArrowFolder:
            failing.append(FailingFolder(place, table_format, dies_at))
            return failing[0]

        with suppress(PowerFailureError):
            made_again(folder, latter, opened=opened)
        return failing[0].steps

    seen = set()
    steps = updated(tmp_path / "whole", None)
    assert steps > 10
    for dies_at in range(steps):
        place = tmp_path / str(dies_at)
        updated(place, dies_at)
        seen.add(tuple(committed_ids(place)))
    assert seen == {tuple(ids(gone, former)), tuple(ids(gone, latter, [side]))}
