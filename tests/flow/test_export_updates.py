"""Exports of paths that are made again: what is there replaces itself, what is gone stays."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from schemas.records import CompactBoundary, Record
from streams.edge.tables.folder import ArrowFolder
from streams.flow.export.checkpoint import committed_files
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
    assert (first.rows, first.kept, first.gone, first.held) == (5, 0, set(), set())
    second = made_again(tmp_path, grown, table_format=table_format)
    assert (second.rows, second.kept, second.gone, second.held) == (3, 3, {"gone"}, set())
    assert committed_ids(tmp_path, table_format) == ids(gone, grown)
    made_again(tmp_path, table_format=table_format)  # the paths are empty
    assert committed_ids(tmp_path, table_format) == ids(gone, grown)


@pytest.mark.parametrize("table_format", FORMATS)
def test_a_row_of_megabytes_is_read_again_in_every_format(
    tmp_path: Path, table_format: TableFormat
) -> None:
    history = History("gone")
    boundary = history.boundary()
    gone = [boundary, history.summary(boundary, '"\n' * 1_000_000)]
    made_again(tmp_path, gone, session("here"), table_format=table_format)
    made_again(tmp_path, session("here"), table_format=table_format)
    assert committed_ids(tmp_path, table_format) == ids(gone, session("here"))


def test_files_of_sessions_that_are_gone_are_not_written_again(tmp_path: Path) -> None:
    made_again(tmp_path, session("gone"))
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("kind=*/*/*")}
    made_again(tmp_path, session("here"))
    made_again(tmp_path, session("here", main=5))
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert len(list(tmp_path.glob("kind=*/*/*"))) == 2 * len(before)


def test_sessions_that_go_one_after_the_other_leave_few_files(tmp_path: Path) -> None:
    sessions = [session(f"s-{number}") for number in range(8)]
    for number in range(len(sessions)):
        made_again(tmp_path, *sessions[number:])
    assert committed_ids(tmp_path) == ids(*sessions)
    assert len(list(tmp_path.glob("kind=context_reading/*/*"))) == 2


def test_a_subagent_whose_file_is_gone_stays_while_its_session_grows(tmp_path: Path) -> None:
    *main, side = session("one", main=3, side=1)
    made_again(tmp_path, [*main, side])
    later = History("one", sequence=9).reading(12_000)
    update = made_again(tmp_path, [*main, later])
    assert (update.gone, update.held) == (set(), set())
    assert sorted(exported_ids(tmp_path)) == ids([*main, side, later])


def changed(records: Sequence[Record], **fields: object) -> list[Record]:
    return [replace(record, **fields) for record in records]  # type: ignore[arg-type]


FORMER = session("one", main=3)
READING, *_, BOUNDARY = FORMER
COMPACTED = [*FORMER[2:], replace(BOUNDARY, id="another")]
assert isinstance(BOUNDARY.data, CompactBoundary)
COSTLY = [
    *FORMER[:-1],
    replace(BOUNDARY, data=replace(BOUNDARY.data, summary_cache_creation_tokens=9)),
]


@pytest.mark.parametrize(
    ("former", "latter", "is_held"),
    [
        (FORMER, FORMER[1:], True),
        (FORMER, FORMER[:-1], True),
        (COSTLY, FORMER, True),
        (COSTLY, [*FORMER, replace(READING, id="later")], False),
        (FORMER, changed(FORMER[1:], rules="1-other"), True),
        (FORMER, changed(FORMER[1:], rules="2-test"), True),
        (FORMER, changed(FORMER, rules="2-test"), False),
        (FORMER, [replace(each, id=f"{each.id}-again") for each in FORMER], False),
        (changed(FORMER, time_ms=None), FORMER, False),
        (FORMER, COMPACTED, False),
    ],
    ids=[
        *("cut off", "without its compaction", "without its cost", "without its cost, but longer"),
        *("cut off, other settings", "cut off, other rules", "other rules"),
        *("lines written again", "times known later", "shorter, compacted again"),
    ],
)
def test_what_was_exported_stays_where_there_is_less_now(
    tmp_path: Path, former: list[Record], latter: list[Record], *, is_held: bool
) -> None:
    other = changed(session("other"), rules=latter[0].rules)
    made_again(tmp_path, former, session("other"))
    update = made_again(tmp_path, latter, other)
    assert update.held == ({("one", "main")} if is_held else set())
    assert update.rows == len(other) + (0 if is_held else len(latter))
    assert committed_ids(tmp_path) == ids(former if is_held else latter, other)
    with Export(ArrowFolder(str(tmp_path), "parquet"), "parquet", "paths") as export:
        export.add((record, None) for record in latter)
        assert export.commit_update(even_if_less=True).held == set()
    assert committed_ids(tmp_path) == ids(latter, other)


def test_a_copy_stays_one_when_the_origin_that_shows_it_is_gone(tmp_path: Path) -> None:
    copied = [replace(each, data=replace(each.data, inherited=True)) for each in FORMER[:2]]
    made_again(tmp_path, [*copied, *FORMER[2:]], session("origin"))
    grown = [*FORMER, History("one", sequence=9).reading(12_000)]
    update = made_again(tmp_path, grown, session("other"))
    assert (update.held, update.shorter) == (set(), set())
    assert committed_ids(tmp_path) == ids(grown, session("origin"), session("other"))
    folder = ArrowFolder(str(tmp_path), "parquet")
    tables = committed_files(folder)
    assert tables is not None
    inherited = [
        id_
        for (kind, _), files in tables.files.items()
        for file in files
        for id_, is_copy in folder.values(file.path, kind, ("id", "inherited"))
        if is_copy
    ]
    assert sorted(inherited) == ids(copied)


def test_a_session_of_which_only_a_subagents_file_is_left_keeps_its_main_chain(
    tmp_path: Path,
) -> None:
    *main, side = session("one", main=3, side=1)
    info = History("one", sequence=20).info(cwd="/a")
    made_again(tmp_path, [info, *main, side])
    for even_if_less in (False, True):
        with Export(ArrowFolder(str(tmp_path), "parquet"), "parquet", "paths") as export:
            export.add([(replace(info, id="again", rules="2-test"), None), (side, None)])
            update = export.commit_update(even_if_less=even_if_less)
        assert (update.held, update.empty) == (set(), {("one", "main")})
        assert committed_ids(tmp_path) == ids([info], main, [side])


def test_what_became_shorter_but_has_more_is_reported(tmp_path: Path) -> None:
    made_again(tmp_path, FORMER)
    update = made_again(tmp_path, COMPACTED)
    assert update.shorter == {("one", "main")}


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
