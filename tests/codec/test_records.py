"""The codec on records: both modes of CloudEvents and back, whatever a record holds."""

import json
from dataclasses import replace
from typing import Any

import pytest

from contextgauge.errors import VersionError
from contextgauge.normalise.signals import InputMessage
from schemas.messages import MAX_DEPTH
from schemas.records import DATA_CLASS_BY_KIND, CompactBoundary, ContextReading, Record
from streams import codec
from streams.flow.derive.deriver import Deriver
from tests.core.given import (
    RULES,
    SESSION,
    Given,
    assistant,
    boundary,
    clear,
    compacting,
    depth_of,
    failed,
    init,
    line,
    nested,
    one,
    record_of,
    result,
    session,
    side,
    summary,
    system,
    user,
)

CONTENT = ("tool_use", "user_turn")


def records_of_every_kind() -> list[Record]:
    """One record of each kind at least, derived."""
    given = session(
        line(init(), at=0),
        compacting(at=0),
        compacting(at=30),
        failed("too_few_groups", at=31),
        line(assistant("a", read=90_000, inside={"stop_reason": "model_context_window_exceeded"})),
        boundary({"trigger": "manual", "pre_tokens": 5, "odd": [None, 1.5, {"x": "\ud800"}]}),
        summary("Half \ud800 a character, 漢字, \x00."),
        side(assistant("s", read=9, inside={"context_management": {"applied_edits": [{"t": 1}]}})),
        assistant("b", read=9),
        clear(),
        result(terminal_reason="prompt_too_long"),
    )
    answer = {"totalTokens": 9, "categories": [{"id": "messages", "tokens": 3}]}
    given.take({"type": "control_response", "response": {"response": answer}}, hint=SESSION)
    given.take({"type": "compacted", "payload": {}}, hint=SESSION)
    boundary_id = given.records[-1].id
    given.take(system("pins_checked", boundary_id=boundary_id, kept=2, lost=["Half \ud800."]))
    item = {"type": "ContextCompaction", "id": "i1"}
    payload = {"type": "item_completed", "item": item, "started_at_ms": 1, "completed_at_ms": 9}
    given.take({"type": "event_msg", "payload": payload}, hint=SESSION)
    measuring = Given(replace(RULES, content=True))
    block = {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"path": "/r/\ud800.py"}}
    measuring.take(user("Look at it."), assistant("c", inside={"content": [block]}))
    return given.records + [each for each in measuring.records if each.kind in CONTENT]


def test_a_binary_event_becomes_the_structured_one_without_parsing_its_data() -> None:
    for record in records_of_every_kind():
        assert codec.binary_to_structured(*codec.to_binary(record)) == codec.to_structured(record)
    odd = replace(record, subject="half \ud800", data=replace(record.data, chain="half \ud800"))
    assert codec.binary_to_structured(*codec.to_binary(odd)) == codec.to_structured(odd)


def test_an_event_of_an_unknown_type_becomes_structured_but_not_what_is_no_event() -> None:
    headers, value = codec.to_binary(records_of_every_kind()[0])
    later = tuple((n, b"contextgauge.later.v9" if n == "ce_type" else v) for n, v in headers)
    assert codec.loads(codec.binary_to_structured(later, value))["type"] == "contextgauge.later.v9"
    for wrong in ((headers[1:], value), (headers, b"{\n"), ((), b"")):
        with pytest.raises(VersionError, match="not a record of contextgauge"):
            codec.binary_to_structured(*wrong)


def test_every_kind_round_trips_in_both_modes() -> None:
    records = records_of_every_kind()
    assert {record.kind for record in records} == set(DATA_CLASS_BY_KIND)
    for record in records:
        assert codec.from_structured(codec.loads(codec.to_structured(record))) == record
        assert codec.from_binary(*codec.to_binary(record)) == record


def test_structured_mode_is_one_cloud_event_a_line() -> None:
    record = record_of(session().take(line(assistant(read=9), at=1)), ContextReading)
    written = codec.to_structured(record)
    assert b"\n" not in written
    event = json.loads(written)
    data = event.pop("data")
    assert event == {
        "specversion": "1.0",
        "id": record.id,
        "source": f"/sessions/{SESSION}",
        "type": "contextgauge.context_reading.v1",
        "subject": "main",
        "time": "2026-11-01T12:00:01.000Z",
        "datacontenttype": "application/json",
        "sequence": str(record.sequence),
        "rules": record.rules,
    }
    assert (data["session_id"], data["chain"], data["used_tokens"]) == (SESSION, "main", 9)
    assert "kind" not in data


def test_an_absent_time_is_left_out() -> None:
    record = session().take(assistant(read=9))[0]
    assert "time" not in json.loads(codec.to_structured(record))
    assert "ce_time" not in dict(codec.to_binary(record)[0])


def test_the_source_is_the_session_percent_encoded() -> None:
    assert codec.source("a b/ü?\ud800") == "/sessions/a%20b%2F%C3%BC%3F%ED%A0%80"


def test_binary_mode_has_the_attributes_in_headers_and_the_data_as_value() -> None:
    record = record_of(session().take(side(assistant(read=9), "ü\ud800", at=1)), ContextReading)
    headers, value = codec.to_binary(record)
    assert dict(headers) == {
        "ce_specversion": b"1.0",
        "ce_id": record.id.encode(),
        "ce_source": f"/sessions/{SESSION}".encode(),
        "ce_type": b"contextgauge.context_reading.v1",
        "ce_subject": "ü".encode() + rb"\ud800",
        "ce_sequence": str(record.sequence).encode(),
        "ce_rules": record.rules.encode(),
        "ce_time": b"2026-11-01T12:00:01.000Z",
        "content-type": b"application/json",
    }
    assert json.loads(value) == json.loads(codec.to_structured(record))["data"]
    assert codec.from_binary((*headers, ("src_topic", b"agent.messages")), value) == record


def deep_boundary(inner: bytes) -> Record:
    """A boundary whose message is as deeply nested as is read."""
    message = nested(MAX_DEPTH - 1, inner)
    raw = b'{"type":"system","subtype":"compact_boundary","session_id":"s","compact_metadata":'
    taken = Deriver(RULES).derive(InputMessage(raw + message + b"}"))
    assert taken.dead is None
    return record_of(taken.records, CompactBoundary)


@pytest.mark.parametrize("inner", [b"1", rb'"\ud800"', b"NaN"])
def test_metadata_of_maximum_depth_round_trips_in_both_modes(inner: bytes) -> None:
    record = deep_boundary(inner)
    written = codec.to_structured(record)
    again = codec.from_structured(codec.loads(written))
    assert isinstance(again.data, CompactBoundary)
    assert depth_of(again.data.metadata) == MAX_DEPTH - 1
    assert codec.to_structured(again) == written
    headers, value = codec.to_binary(record)
    assert codec.to_binary(codec.from_binary(headers, value)) == (headers, value)


@pytest.mark.parametrize("number", [2**53 + 1, 2**64 - 1, -(2**63), 1.5, 1e300])
def test_metadata_numbers_round_trip_in_both_modes(number: float) -> None:
    record = record_of(session().take(boundary({"odd": number})), CompactBoundary)
    for again in (
        codec.from_structured(codec.loads(codec.to_structured(record))),
        codec.from_binary(*codec.to_binary(record)),
    ):
        assert isinstance(again.data, CompactBoundary)
        assert again.data.metadata == {"odd": number}
        assert type(again.data.metadata["odd"]) is type(number)


def test_a_number_beyond_64_bits_is_no_dead_letter_and_is_written_again() -> None:
    record = record_of(
        session().take(boundary({"odd": 2**70, "pre_tokens": 2**70})), CompactBoundary
    )
    assert one([record], CompactBoundary).pre_tokens is None
    assert codec.from_binary(*codec.to_binary(record)) == record
    assert codec.dumps({"odd": 2**70}) == b'{"odd":1180591620717411303424}'


def test_a_percentage_without_decimals_is_still_no_whole_number() -> None:
    record = record_of(session().take(assistant(read=20_000)), ContextReading)
    assert b'"used_percent":10.0' in codec.to_binary(record)[1]


def structured() -> dict[str, Any]:
    record = session().take(line(assistant(read=9)))[0]
    event: dict[str, Any] = codec.loads(codec.to_structured(record))
    return event


@pytest.mark.parametrize(
    "wrong",
    [
        {"specversion": "2.0"},
        {"type": "contextgauge.context_reading.v2"},
        {"type": "contextgauge.later_kind.v1"},
        {"type": "com.example.other"},
        {"data": {}},
        {"data": []},
        {"data": None},
    ],
)
def test_an_unknown_kind_or_version_is_a_version_error(wrong: dict[str, Any]) -> None:
    event = structured() | wrong
    with pytest.raises(VersionError, match=event["id"]):
        codec.from_structured(event)


@pytest.mark.parametrize("name", ["specversion", "id", "type", "sequence", "rules", "data"])
def test_a_structured_event_without_an_attribute_is_a_version_error(name: str) -> None:
    event = structured()
    del event[name]
    with pytest.raises(VersionError, match=f"not a record of contextgauge.*{name}"):
        codec.from_structured(event)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("ce_type", b"contextgauge.context_reading.v2"),
        ("ce_type", b"\xff"),
        ("ce_specversion", b"0.3"),
    ],
)
def test_a_binary_event_of_an_unknown_version_is_a_version_error(name: str, content: bytes) -> None:
    headers, value = codec.to_binary(session().take(assistant(read=9))[0])
    changed = tuple((key, content if key == name else entry) for key, entry in headers)
    with pytest.raises(VersionError, match="upgrade contextgauge"):
        codec.from_binary(changed, value)


@pytest.mark.parametrize("name", ["ce_specversion", "ce_id", "ce_type", "ce_sequence", "ce_rules"])
def test_a_binary_event_without_a_header_is_a_version_error(name: str) -> None:
    headers, value = codec.to_binary(session().take(assistant(read=9))[0])
    with pytest.raises(VersionError, match=f"no header '{name}'"):
        codec.from_binary(tuple(header for header in headers if header[0] != name), value)


@pytest.mark.parametrize("name", ["ce_id", "ce_sequence", "ce_time", "trace"])
def test_a_null_header_is_like_a_missing_one(name: str) -> None:
    headers, value = codec.to_binary(session().take(assistant(read=9))[0])
    without = tuple(header for header in headers if header[0] != name)
    null: Any = (*without, (name, None))
    for read in (codec.from_binary, codec.binary_to_structured):
        try:
            expected: Any = read(without, value)
        except VersionError as error:
            expected = str(error)
        try:
            actual: Any = read(null, value)
        except VersionError as error:
            actual = str(error)
        assert actual == expected


@pytest.mark.parametrize(("name", "content"), [("ce_sequence", b"many"), ("ce_time", b"noon")])
def test_a_binary_event_of_an_unreadable_header_is_a_version_error(
    name: str, content: bytes
) -> None:
    headers, value = codec.to_binary(session().take(assistant(read=9, at=1))[0])
    changed = tuple((key, content if key == name else entry) for key, entry in headers)
    with pytest.raises(VersionError, match="not a record of contextgauge"):
        codec.from_binary(changed, value)


def test_a_binary_event_whose_value_is_no_json_is_a_version_error() -> None:
    headers, _ = codec.to_binary(session().take(assistant(read=9))[0])
    with pytest.raises(VersionError, match="not a record of contextgauge"):
        codec.from_binary(headers, b"{")


def test_an_unknown_field_is_ignored() -> None:
    event = structured()
    known = json.dumps(event["data"])
    event["data"]["later"] = 1
    again = json.loads(codec.to_structured(codec.from_structured(event)))
    assert json.dumps(again["data"]) == known


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sequence", "many"),
        ("sequence", None),
        ("sequence", float("inf")),
        ("time", 5),
        ("time", "noon"),
        ("type", []),
    ],
)
def test_a_structured_event_of_an_unreadable_attribute_is_a_version_error(
    name: str, value: object
) -> None:
    event = json.loads(codec.to_structured(session().take(assistant(read=9))[0]))
    with pytest.raises(VersionError):
        codec.from_structured(event | {name: value})


def test_an_unreadable_record_is_reported_without_its_text() -> None:
    headers, _ = codec.to_binary(session().take(assistant(read=9))[0])
    data = json.dumps({"session_id": ["a message's own text"]}).encode()
    with pytest.raises(VersionError, match="session_id") as caught:
        codec.from_binary(headers, data)
    assert "own text" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_r19_a_long_number_survives_being_read_back() -> None:
    whole = {"trigger": "auto", "dropped": 10**30}
    headers, value = codec.to_binary(session().take(boundary(whole))[0])
    read = codec.from_binary(headers, value).data
    assert isinstance(read, CompactBoundary)
    assert read.metadata == whole
