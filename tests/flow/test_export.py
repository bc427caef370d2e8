"""Exports: each record once whatever interrupts them, in four formats, merged, and replaced."""

import csv
import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import ipc, parquet

from contextgauge.errors import ConfigError, StopError, VersionError
from contextgauge.json_codec import dumps, loads
from schemas.records import Record
from streams.codec.columns import tables
from streams.edge.tables.claims import TokenClaim
from streams.edge.tables.engine import SqlEngine
from streams.edge.tables.folder import ArrowFolder
from streams.edge.tables.schema import schema_of
from streams.flow.export import export as export_module
from streams.flow.export.checkpoint import CHECKPOINT, committed_files
from streams.flow.export.export import Export
from streams.ports.tables import TableFormat
from tests.codec.test_records import records_of_every_kind
from tests.flow.export_kit import (
    FailingFolder,
    PowerFailureError,
    committed_ids,
    exported_ids,
)

FORMATS: Sequence[TableFormat] = ("parquet", "arrow", "csv", "ndjson")
RECORDS = records_of_every_kind()
WRITER = "_contextgauge/writer"


def ids(records: Sequence[Record]) -> list[str]:
    return sorted(record.id for record in records)


def add_to(
    folder: ArrowFolder, records: Sequence[Record] = RECORDS, table_format: TableFormat = "parquet"
) -> None:
    """Add records to the export that a folder has."""
    with Export(folder, table_format, "paths") as export:
        export.add((record, None) for record in records)
        export.commit()


def rows_of(folder: Path, table_format: TableFormat, kind: str) -> list[dict[str, object]]:
    """Read a kind's files with a reader that is not ours."""
    rows: list[dict[str, object]] = []
    for path in sorted(folder.glob(f"kind={kind}/*/*.{table_format}")):
        if table_format == "parquet":
            rows += parquet.read_table(path, partitioning=None).to_pylist()
        elif table_format == "arrow":
            rows += ipc.open_file(path.read_bytes()).read_all().to_pylist()
        elif table_format == "csv":
            with path.open(encoding="utf-8", newline="") as source:
                rows += csv.DictReader(source)
        else:
            rows += [json.loads(line) for line in path.read_bytes().splitlines()]
    return rows


@pytest.mark.extended
@pytest.mark.parametrize("table_format", FORMATS)
def test_each_format_has_every_record_and_merging_keeps_them(
    tmp_path: Path, table_format: TableFormat
) -> None:
    folder = ArrowFolder(str(tmp_path), table_format)
    add_to(folder, table_format=table_format)
    once = {kind: rows_of(tmp_path, table_format, kind) for kind in tables()}
    assert ids(RECORDS) == sorted(str(row["id"]) for rows in once.values() for row in rows)
    with Export(folder, table_format, "paths") as second:
        second.add((record, None) for record in RECORDS)
        second.commit()
        files = len(list(tmp_path.glob("kind=*/*/*")))
        assert second.merge_small(more_than=2) == 0
        assert second.merge_small() == files // 2
    assert len(list(tmp_path.glob("kind=*/*/*"))) == files // 2
    for kind, rows in once.items():
        merged = rows_of(tmp_path, table_format, kind)
        assert sorted(merged, key=str) == sorted(rows * 2, key=str)


def test_times_and_numbers_have_exact_types_everywhere(tmp_path: Path) -> None:
    add_to(ArrowFolder(str(tmp_path), "parquet"))
    boundary = next(record for record in RECORDS if record.kind == "compact_boundary")
    row = next(
        row for row in rows_of(tmp_path, "parquet", "compact_boundary") if row["id"] == boundary.id
    )
    expected = None
    if boundary.time_ms is not None:
        expected = datetime.fromtimestamp(boundary.time_ms / 1000, UTC)
    assert row["time"] == expected
    for kind in tables():
        schema = schema_of(kind)
        for path in tmp_path.glob(f"kind={kind}/*/*"):
            assert parquet.read_schema(path).equals(schema, check_metadata=False)
        assert schema.field("sequence").type == pa.int64()
        assert schema.field("id").type == pa.string()


@pytest.mark.extended
def test_a_process_that_dies_anywhere_leaves_each_record_once(tmp_path: Path) -> None:
    records = RECORDS[:4]

    def work(folder: FailingFolder) -> None:
        with Export(folder, "parquet", "paths") as export:
            for _ in range(2):
                export.add((record, None) for record in records)
                export.commit()
            export.merge_small()

    whole = FailingFolder(str(tmp_path / "whole"), "parquet")
    work(whole)
    assert whole.steps > 20
    seen = set()
    for dies_at in range(whole.steps):
        place = tmp_path / str(dies_at)
        with pytest.raises(PowerFailureError):
            work(FailingFolder(str(place), "parquet", dies_at))
        committed = committed_ids(place)
        # The next one finds all of a commit, or nothing of it, as readers do before.
        with Export(ArrowFolder(str(place), "parquet"), "parquet", "paths") as after:
            assert sorted(exported_ids(place)) == committed == committed_ids(place)
            seen.add(len(committed))
            assert not list(place.glob("_pending/*"))
            after.add((record, None) for record in records)
            after.commit()
        assert len(exported_ids(place)) == len(committed) + len(records)
    assert seen == {0, len(records), 2 * len(records)}


@pytest.mark.extended
def test_a_replacement_that_dies_anywhere_is_read_as_the_former_or_the_latter(
    tmp_path: Path,
) -> None:
    former, latter = ids(RECORDS[:4]), ids(RECORDS[2:6])

    def replaced(folder: ArrowFolder) -> None:
        with Export(folder, "parquet", "paths") as export:
            export.add((record, None) for record in RECORDS[2:6])
            export.commit_instead()

    whole = FailingFolder(str(tmp_path / "whole"), "parquet")
    replaced(whole)
    seen = set()
    for dies_at in range(whole.steps + len(former)):
        place = tmp_path / str(dies_at)
        add_to(ArrowFolder(str(place), "parquet"), RECORDS[:4])
        with suppress(PowerFailureError):
            replaced(FailingFolder(str(place), "parquet", dies_at))
        seen.add(tuple(committed_ids(place)))
        folder = ArrowFolder(str(place), "parquet")
        tables = committed_files(folder)
        assert tables is not None
        ids_sql = " UNION ALL ".join(f"(SELECT id FROM {kind})" for kind, _ in tables.files)  # noqa: S608 -- ours
        rows = SqlEngine(folder, tables).answer(ids_sql).rows()
        assert sorted(row[0] for part in rows for row in part) == committed_ids(place)
    assert seen == {tuple(former), tuple(latter)}


def test_what_replaces_an_export_leaves_nothing_of_it(tmp_path: Path) -> None:
    folder = ArrowFolder(str(tmp_path), "parquet")
    add_to(folder)
    with Export(folder, "parquet", "paths") as again:
        again.add((record, None) for record in RECORDS[:3])
        assert len(exported_ids(tmp_path)) == len(RECORDS)  # until it is complete
        again.commit_instead()
    assert sorted(exported_ids(tmp_path)) == ids(RECORDS[:3])


def test_a_second_export_into_a_folder_is_refused(tmp_path: Path) -> None:
    folder = ArrowFolder(str(tmp_path), "parquet")
    with Export(folder, "parquet", "paths") as former:
        former.add((record, None) for record in RECORDS)
        with pytest.raises(StopError, match="another process exports into this folder"):
            add_to(folder)
        former.commit()
    assert sorted(exported_ids(tmp_path)) == ids(RECORDS)
    add_to(folder)
    assert len(exported_ids(tmp_path)) == 2 * len(RECORDS)


class Store(ArrowFolder):
    """A folder without locks, as in an object store; `meanwhile` is what others do in a pause."""

    meanwhile: Callable[[], None] = lambda: None

    def claim(self) -> TokenClaim:
        return self.token_claim(lambda _: type(self).meanwhile())


def test_without_locks_the_later_of_two_processes_has_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Store(str(tmp_path), "parquet")
    with Export(folder, "parquet", "paths") as former:
        former.add((record, None) for record in RECORDS)
        with Export(Store(str(tmp_path), "parquet"), "parquet", "paths") as later:
            with pytest.raises(StopError, match="another process exports into this folder"):
                former.commit()
            later.add((record, None) for record in RECORDS[:3])
            later.commit()
    assert sorted(exported_ids(tmp_path)) == committed_ids(tmp_path) == ids(RECORDS[:3])
    monkeypatch.setattr(Store, "meanwhile", staticmethod(lambda: folder.replace(WRITER, b"third")))
    for lost in (folder, Store(str(tmp_path), "parquet")):  # the first one had it before
        with (
            pytest.raises(StopError, match="another process exports into this folder"),
            Export(lost, "parquet", "paths"),
        ):
            pass


def test_what_lost_the_folder_leaves_the_files_of_the_next_one_alone(tmp_path: Path) -> None:
    slow, folder = Store(str(tmp_path), "parquet"), Store(str(tmp_path), "parquet")
    move, later = slow.move, Export(folder, "parquet", "paths")

    with ExitStack() as stack:

        def slowly(path: str, target: str) -> bool:
            slow.move = move  # type: ignore[method-assign]
            stack.enter_context(later)
            committed = committed_files(folder)
            assert committed is not None
            later.add_tables(folder, committed)
            return move(path, target)

        with Export(slow, "parquet", "paths") as former:
            former.add((record, None) for record in RECORDS)
            slow.move = slowly  # type: ignore[method-assign]
            former.commit()
        later.commit_instead()
    assert sorted(exported_ids(tmp_path)) == committed_ids(tmp_path) == ids(RECORDS)


def test_a_file_that_moves_while_files_are_listed_is_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_to(ArrowFolder(str(tmp_path), "parquet"))
    folder = ArrowFolder(str(tmp_path), "parquet")
    files = list(folder.files())
    moved = next(each for each in files if each.path.startswith("kind="))
    others = [each for each in files if each != moved]
    for listings, is_there in (([others], True), ([others] * 9, False)):
        # What is in no listing was deleted by a person: what is left is read.
        left = list(listings)
        monkeypatch.setattr(folder, "files", lambda left=left: left.pop() if left else files)
        known = committed_files(folder)
        assert known is not None
        assert (moved in {each for group in known.files.values() for each in group}) == is_there


def test_what_a_process_began_to_commit_as_it_lost_the_folder_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Store(str(tmp_path), "parquet")
    with Export(folder, "parquet", "paths") as former:
        former.add((record, None) for record in RECORDS[:3])
        monkeypatch.setattr(TokenClaim, "check", lambda _: None)  # it has looked already
        monkeypatch.setattr(Store, "meanwhile", staticmethod(former.commit))
        add_to(Store(str(tmp_path), "parquet"), RECORDS[3:5])
    assert sorted(exported_ids(tmp_path)) == ids(RECORDS[:5])


def test_memory_is_bounded_by_rows_and_open_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_module, "MOST_ROWS", 4)
    monkeypatch.setattr(export_module, "MOST_OPEN", 2)
    add_to(ArrowFolder(str(tmp_path), "parquet"))
    assert sorted(exported_ids(tmp_path)) == ids(RECORDS)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"format": "csv"}, ConfigError, "an export of paths as csv, not of paths as parquet"),
        ({"source": "x"}, ConfigError, "an export of x as parquet, not of paths"),
        ({"version": 99}, VersionError, "columns of version 99"),
        ({"partitions": 7}, ConfigError, "is damaged"),
    ],
)
def test_a_folder_of_another_export_is_refused(
    tmp_path: Path, change: dict[str, object], error: type[Exception], words: str
) -> None:
    folder = ArrowFolder(str(tmp_path), "parquet")
    add_to(folder)
    document = loads((tmp_path / CHECKPOINT).read_bytes())
    (tmp_path / CHECKPOINT).write_bytes(dumps(document | change))
    with pytest.raises(error, match=words), Export(folder, "parquet", "paths"):
        pass


def test_a_folder_with_files_of_someone_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ConfigError, match="has files, but none of an export"):
        add_to(ArrowFolder(str(tmp_path), "parquet"))
    assert [each.name for each in tmp_path.iterdir()] == ["thesis.txt"]
    assert (tmp_path / "thesis.txt").read_text() == "years of work"
