"""The official SDK of CloudEvents reads what is written here, and what it writes is read here."""

import dataclasses
import json

import pytest
from cloudevents.core.base import BaseCloudEvent
from cloudevents.core.bindings import kafka
from cloudevents.core.formats.json import JSONFormat

from schemas.commands import COMMAND_CLASS_BY_KIND, CancelRequested, CommandEntry, CompactRequested
from schemas.records import Record
from streams import codec
from streams.codec.commands import SOURCE, TYPES, read_entry, write_entry
from streams.ports import Headers
from tests.codec.test_records import records_of_every_kind

RECORDS = records_of_every_kind()
ENTRIES = [
    CommandEntry(
        "a-1",
        1_770_000_000_123,
        CompactRequested(session_id="s", command_id="c", trigger="manual", requested_by="me"),
    ),
    CommandEntry(
        "a-2", 0, CancelRequested(session_id="s", command_id=None, requested_by="half \ud800")
    ),
]


def _message(headers: Headers, value: bytes) -> kafka.KafkaMessage:
    return kafka.KafkaMessage({name: text or b"" for name, text in headers}, b"s", value)


def _headers(message: kafka.KafkaMessage) -> Headers:
    return tuple(message.headers.items())


def _check(event: BaseCloudEvent, record: Record) -> None:
    assert event.get_id() == record.id
    assert event.get_type() == record.type
    assert event.get_source() == codec.source(record.data.session_id)
    assert event.get_subject() == record.subject
    assert event.get_extension("sequence") == str(record.sequence)
    assert event.get_extension("rules") == record.rules
    assert event.get_datacontenttype() == "application/json"
    # The SDK gives an event without a time that of reading.
    if record.time_ms is not None:
        time = event.get_time()
        assert time is not None
        assert round(time.timestamp() * 1000) == record.time_ms


def _without_time(record: Record) -> Record:
    return dataclasses.replace(record, time_ms=None)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.kind)
def test_a_record_on_kafka_passes_through_the_sdk_and_back(record: Record) -> None:
    event = kafka.from_binary(_message(*codec.to_binary(record)), JSONFormat())
    _check(event, record)
    written = kafka.to_binary(event, JSONFormat())
    back = codec.from_binary(_headers(written), written.value)
    assert (back if record.time_ms is not None else _without_time(back)) == record


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.kind)
def test_a_structured_record_passes_through_the_sdk_and_back(record: Record) -> None:
    event = JSONFormat().read(None, codec.to_structured(record))
    _check(event, record)
    back = codec.from_structured(json.loads(JSONFormat().write(event)))
    assert (back if record.time_ms is not None else _without_time(back)) == record


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.data.kind)
def test_an_entry_of_the_control_plane_passes_through_the_sdk_and_back(entry: CommandEntry) -> None:
    event = kafka.from_binary(_message(*write_entry(entry)), JSONFormat())
    assert (event.get_source(), event.get_type()) == (SOURCE, TYPES[entry.data.kind])
    written = kafka.to_binary(event, JSONFormat())
    assert read_entry(_headers(written), written.value) == entry


def test_the_sdk_takes_every_type_of_entry() -> None:
    headers, value = write_entry(ENTRIES[0])
    for kind in COMMAND_CLASS_BY_KIND:
        typed = tuple((n, TYPES[kind].encode() if n == "ce_type" else v) for n, v in headers)
        assert kafka.from_binary(_message(typed, value), JSONFormat()).get_type() == TYPES[kind]
