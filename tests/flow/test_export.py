"""Exports: each record once whatever interrupts them, in four formats, merged, and replaced."""

import csv
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyarrow import ipc, parquet

from contextgauge.clock import SystemClock
from contextgauge.errors import ConfigError, StopError, VersionError
from contextgauge.json_codec import dumps, loads
from schemas.records import Record
from streams.codec import to_binary
from streams.codec.columns import tables
from streams.edge.tables.folder import ArrowFolder
from streams.edge.tables.schema import schema_of
from streams.flow.common.unreadable import report_passed
from streams.flow.export import export as export_module
from streams.flow.export.checkpoint import CHECKPOINT
from streams.flow.export.export import Export
from streams.flow.export.topic import TopicExport
from streams.ports import NewRecord, id_text
from streams.ports.tables import TableFormat
from tests.codec.test_records import records_of_every_kind
from tests.doubles.log import FaultyLog
from tests.flow.derive_kit import DeriveKit, samples
from tests.flow.export_kit import FailingFolder, PowerFailureError, exported_ids

FORMATS: Sequence[TableFormat] = ("parquet", "arrow", "csv", "ndjson")
RECORDS = records_of_every_kind()


def ids(records: Sequence[Record]) -> list[str]:
    return sorted(record.id for record in records)


def written(folder: ArrowFolder, table_format: TableFormat = "parquet") -> Export:
    export = Export(folder, table_format, "paths")
    export.add((record, None) for record in RECORDS)
    return export


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
    written(folder, table_format).commit()
    once = {kind: rows_of(tmp_path, table_format, kind) for kind in tables()}
    assert ids(RECORDS) == sorted(str(row["id"]) for rows in once.values() for row in rows)
    second = written(folder, table_format)
    second.commit()
    files = len(list(tmp_path.glob("kind=*/*/*")))
    assert second.merge_small() == files // 2
    assert len(list(tmp_path.glob("kind=*/*/*"))) == files // 2
    for kind, rows in once.items():
        merged = rows_of(tmp_path, table_format, kind)
        assert sorted(merged, key=str) == sorted(rows * 2, key=str)


def test_times_and_numbers_have_exact_types_everywhere(tmp_path: Path) -> None:
    written(ArrowFolder(str(tmp_path), "parquet")).commit()
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
        export = Export(folder, "parquet", "paths")
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
        # Whoever comes next finds all of a commit, or nothing of it.
        after = Export(ArrowFolder(str(place), "parquet"), "parquet", "paths")
        present = len(exported_ids(place))
        seen.add(present)
        assert not list(place.glob("_pending/*"))
        after.add((record, None) for record in records)
        after.commit()
        assert len(exported_ids(place)) == present + len(records)
    assert seen == {0, len(records), 2 * len(records)}


def test_what_replaces_an_export_leaves_nothing_of_it(tmp_path: Path) -> None:
    folder = ArrowFolder(str(tmp_path), "parquet")
    written(folder).commit_instead()
    again = Export(folder, "parquet", "paths")
    again.add((record, None) for record in RECORDS[:3])
    assert len(exported_ids(tmp_path)) == len(RECORDS)  # until it is complete
    again.commit_instead()
    assert sorted(exported_ids(tmp_path)) == ids(RECORDS[:3])


def test_the_later_of_two_processes_has_the_folder(tmp_path: Path) -> None:
    folder = ArrowFolder(str(tmp_path), "parquet")
    former = written(folder)
    later = written(folder)
    with pytest.raises(StopError, match="another process exports into this folder"):
        former.commit()
    later.add((record, None) for record in RECORDS)
    later.commit()
    assert len(exported_ids(tmp_path)) == 2 * len(RECORDS)


def test_memory_is_bounded_by_rows_and_open_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_module, "MOST_ROWS", 4)
    monkeypatch.setattr(export_module, "MOST_OPEN", 2)
    written(ArrowFolder(str(tmp_path), "parquet")).commit()
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
    written(folder).commit()
    document = loads((tmp_path / CHECKPOINT).read_bytes())
    (tmp_path / CHECKPOINT).write_bytes(dumps(document | change))
    with pytest.raises(error, match=words):
        Export(folder, "parquet", "paths")


def test_a_folder_with_files_of_someone_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ConfigError, match="has files, but none of an export"):
        Export(ArrowFolder(str(tmp_path), "parquet"), "parquet", "paths")
    assert (tmp_path / "thesis.txt").read_text() == "years of work"


class Exporting:
    """Exports of a kit's topic of records, each by a process of its own."""

    def __init__(self, kit: DeriveKit, place: Path) -> None:
        self._kit, self._place = kit, place
        self.lost: list[tuple[int, int]] = []

    async def run(self) -> int:
        """Export what is new; return how many rows."""
        kit = self._kit
        topic = kit.config.events_topic
        partitions = range(kit.partitions)
        reader = kit.log.reader(topic, partitions)
        await reader.start()
        try:
            exported = TopicExport(
                reader=reader,
                clock=SystemClock(),
                export=Export(ArrowFolder(str(self._place), "parquet"), "parquet", topic),
                topic=topic,
                topic_id=id_text((await kit.log.topic_ids([topic]))[topic]),
                passed=report_passed,
                lost=lambda partition, offsets: self.lost.append((partition, offsets)),
            )
            await exported.check(partitions)
            return await exported.run(partitions)
        finally:
            await reader.stop()

    async def end(self, partition: int) -> int:
        """Return where a partition ends."""
        reader = self._kit.log.reader(self._kit.config.events_topic, [partition])
        await reader.start()
        try:
            return (await reader.bounds(partition))[1]
        finally:
            await reader.stop()

    async def records(self) -> list[str]:
        """Return the ids of all records in the topic."""
        return ids([record for part in await self._kit.events() for record in part])


async def derived(kit: DeriveKit, seed: int) -> None:
    await kit.publish(samples(seed))
    await kit.run_until_caught_up()


@pytest.mark.extended
async def test_each_run_adds_what_is_new(kit: DeriveKit, tmp_path: Path) -> None:
    exporting = Exporting(kit, tmp_path)
    await derived(kit, 1)
    first = await exporting.run()
    assert first == len(await exporting.records()) > 0
    assert await exporting.run() == 0
    await derived(kit, 2)
    assert await exporting.run() > 0
    assert sorted(exported_ids(tmp_path)) == await exporting.records()
    places = duckdb.connect().execute(
        "SELECT DISTINCT topic_partition, topic_offset FROM read_parquet(?)",
        [f"{tmp_path}/kind=*/*/*.parquet"],
    )
    assert len(places.fetchall()) == len(await exporting.records())


async def test_what_retention_deleted_before_it_was_exported_is_reported(
    kit: DeriveKit, log: FaultyLog, tmp_path: Path
) -> None:
    exporting = Exporting(kit, tmp_path)
    await derived(kit, 1)
    await exporting.run()
    known = await exporting.records()
    ends = {each: await exporting.end(each) for each in range(kit.partitions)}
    await derived(kit, 2)
    partition = max(ends, key=lambda each: ends[each])
    log.delete_before(kit.config.events_topic, partition, ends[partition] + 2)
    await exporting.run()
    assert exporting.lost == [(partition, 2)]
    assert set(known) < set(exported_ids(tmp_path))


@pytest.mark.parametrize("loss", ["another topic", "a shorter log"])
async def test_another_log_is_refused(
    kit: DeriveKit, log: FaultyLog, tmp_path: Path, loss: str
) -> None:
    exporting = Exporting(kit, tmp_path)
    await derived(kit, 1)
    await exporting.run()
    if loss == "another topic":
        log.delete_topic(kit.config.events_topic)
        await kit.create_topics()
    else:
        for partition in range(kit.partitions):
            log.truncate(kit.config.events_topic, partition, 1)
    with pytest.raises(ConfigError, match="is not the log that this folder has an export of"):
        await exporting.run()


async def test_a_record_of_a_later_version_ends_the_export_before_it(
    kit: DeriveKit, tmp_path: Path
) -> None:
    exporting = Exporting(kit, tmp_path)
    await derived(kit, 1)
    await exporting.run()
    before = exported_ids(tmp_path)
    headers, value = to_binary(RECORDS[0])
    later = tuple((n, b"contextgauge.later.v9" if n == "ce_type" else v) for n, v in headers)
    await kit.append([NewRecord(kit.config.events_topic, 0, b"s", value, later)])
    with pytest.raises(VersionError, match="upgrade contextgauge"):
        await exporting.run()
    assert exported_ids(tmp_path) == before
