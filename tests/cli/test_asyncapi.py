"""The AsyncAPI document: valid, of every topic, and true of what is written to them."""

import json
from typing import Any

import jsonschema
import pytest

from schemas.commands import CommandEntry, CommandFinished, CompactRequested
from schemas.topics import TOPICS
from streams import codec
from streams.cli.asyncapi import asyncapi_document
from streams.codec.commands import write_entry
from streams.flow.derive.record_writer import origin_headers, source_headers
from streams.ports import Headers
from tests.codec.test_records import records_of_every_kind
from tests.npm_files import npm_file

DOCUMENT = asyncapi_document()
ENTRIES = [
    CompactRequested(session_id="s", command_id="c", trigger="manual", requested_by="me"),
    CommandFinished(session_id="s", command_id="c", outcome="completed", attempt=1, receipt={}),
]


def test_the_document_fits_the_specification() -> None:
    schema = npm_file("@asyncapi/specs/schemas/3.0.0.json")
    jsonschema.Draft7Validator(json.loads(schema.read_text())).validate(DOCUMENT)


def test_every_topic_has_a_channel_with_its_limits_and_an_operation() -> None:
    channels = DOCUMENT["channels"]
    assert list(channels) == [topic.name for topic in TOPICS]
    for topic in TOPICS:
        configuration = channels[topic.name]["bindings"]["kafka"]["topicConfiguration"]
        assert configuration["retention.ms"] == topic.retention_ms
        assert configuration["max.message.bytes"] == topic.max_message_bytes
    used = {
        reference["$ref"]
        for operation in DOCUMENT["operations"].values()
        for reference in operation["messages"]
    }
    assert used == {
        f"#/channels/{name}/messages/{message}"
        for name, channel in channels.items()
        for message in channel["messages"]
    }


def _check(channel: str, headers: Headers, value: bytes) -> None:
    """Fail unless the document has such a message."""
    names = {name: (text or b"").decode() for name, text in headers}
    messages = DOCUMENT["channels"][channel]["messages"].values()
    (message,) = [each for each in messages if each["name"] == names["ce_type"]]
    for schema, instance in (
        (message["headers"], names),
        (message["payload"], codec.loads(value)),
    ):
        whole = {**schema, "components": DOCUMENT["components"]}
        jsonschema.Draft202012Validator(whole).validate(instance)
    strict = {**message["headers"], "additionalProperties": False}
    jsonschema.Draft202012Validator(strict).validate(names)


def test_records_are_as_described() -> None:
    source = source_headers(origin_headers("agent.messages", 0), 7, 1_770_000_000_000)
    records = records_of_every_kind()
    assert {each.type for each in records} == {
        each["name"] for each in DOCUMENT["channels"]["context.events"]["messages"].values()
    }
    for record in records:
        headers, value = codec.to_binary(record)
        _check("context.events", (*headers, *source), value)


@pytest.mark.parametrize("data", ENTRIES, ids=lambda data: data.kind)
def test_entries_of_the_control_plane_are_as_described(data: Any) -> None:
    _check("context.commands", *write_entry(CommandEntry("e", 0, data)))


def test_a_record_that_lacks_a_field_is_not_as_described() -> None:
    headers, value = codec.to_binary(records_of_every_kind()[0])
    lacking = codec.loads(value)
    del lacking["session_id"]
    with pytest.raises(jsonschema.ValidationError, match="session_id"):
        _check("context.events", headers, codec.dumps(lacking))
