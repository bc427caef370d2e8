"""Records as rows: each field has its column, and each cell is what the record says."""

import json
from dataclasses import replace

from schemas.records import DATA_CLASS_BY_KIND, CompactBoundary, ContextReading, ReportedReceipt
from streams.codec.columns import RecordPlace, columns_of, date_of, names_of, row_of, tables
from tests.codec.test_records import records_of_every_kind


def test_every_record_is_a_row_with_its_own_fields() -> None:
    records = records_of_every_kind()
    assert {record.kind for record in records} == set(tables()) == set(DATA_CLASS_BY_KIND)
    for record in records:
        row = dict(
            zip(
                (column.name for column in columns_of(record.kind)),
                row_of(record, RecordPlace("context.events", 3, 17)),
                strict=True,
            )
        )
        assert (row["id"], row["sequence"]) == (record.id, record.sequence)
        assert (row["topic"], row["topic_partition"], row["topic_offset"]) == (
            "context.events",
            3,
            17,
        )
        assert row["time"] == (None if record.time_ms is None else record.time_ms * 1000)
        for column in columns_of(record.kind)[9:]:
            if column.name.startswith("receipt_"):
                continue
            value, cell = getattr(record.data, column.name), row[column.name]
            if column.type == "json":
                assert (cell is None) == (value is None)
            elif column.type in ("integers", "texts"):
                assert len(cell) == len(value or ())
            elif not isinstance(value, str) or value.isascii():
                assert cell == value


def test_the_first_columns_are_the_same_everywhere_and_required() -> None:
    first = {columns_of(kind)[:9] for kind in tables()}
    assert len(first) == 1
    required = [column.name for column in first.pop() if column.required]
    assert required == ["id", "session_id", "chain", "sequence", "rules"]


def test_objects_are_json_and_halves_of_characters_can_be_written() -> None:
    boundary = next(
        record
        for record in records_of_every_kind()
        if isinstance(record.data, CompactBoundary) and "odd" in record.data.metadata
    )
    names = list(names_of("compact_boundary"))
    metadata = row_of(boundary)[names.index("metadata")]
    assert json.loads(metadata)["odd"] == [None, 1.5, {"x": "\ud800"}]
    odd = replace(boundary, data=replace(boundary.data, session_id="half \ud800"))
    assert row_of(odd)[names.index("session_id")] == "half �"


def test_a_receipt_has_columns_of_its_own() -> None:
    boundary, data = next(
        (record, record.data)
        for record in records_of_every_kind()
        if isinstance(record.data, CompactBoundary)
    )
    receipt = ReportedReceipt(reason="request", summary_input_tokens=12)
    row = dict(
        zip(
            (column.name for column in columns_of("compact_boundary")),
            row_of(replace(boundary, data=replace(data, receipt=receipt))),
            strict=True,
        )
    )
    assert (row["receipt_reason"], row["receipt_summary_input_tokens"]) == ("request", 12)
    assert row["receipt_pins_carried"] is None


def test_a_number_beyond_64_bits_is_no_count() -> None:
    reading, data = next(
        (record, record.data)
        for record in records_of_every_kind()
        if isinstance(record.data, ContextReading)
    )
    names = [column.name for column in columns_of("context_reading")]
    odd = replace(reading, data=replace(data, used_tokens=2**63))
    assert row_of(odd)[names.index("used_tokens")] is None


def test_a_date_is_utc_and_unknown_without_a_time() -> None:
    record = replace(records_of_every_kind()[0], time_ms=1_767_225_599_999)
    assert date_of(record) == "2025-12-31"
    assert date_of(replace(record, time_ms=None)) is None
