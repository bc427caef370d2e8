"""Whatever a body holds, it is read or refused: no exception but the two that have an answer."""

import contextlib
from functools import partial
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contextgauge.delivery.outgoing import Conversation, MessageFormat
from streams.ingest.otlp.decoding import NoTelemetryError, items_of
from streams.ingest.otlp.mapping import WithoutMessage, messages_of
from streams.ingest.otlp.runtime_events import EVENTS
from streams.ingest.otlp.telemetry_item import TelemetryItem
from streams.ingest.reading import (
    BodyMessages,
    TooManyMessagesError,
    UnreadableBodyError,
    add,
    read,
)

FORM = MessageFormat(20_000)
NOWHERE = Conversation(None, ())

_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
_NAMES = st.sampled_from(
    (
        *("session.id", "conversation.id", "gen_ai.conversation.id", "prompt_id", "role", "model"),
        *("query_source", "event.kind", "event.timestamp", "gen_ai.operation.name", "success"),
        *("input_tokens", "input_token_count", "gen_ai.usage.input_tokens", "context_window"),
        *("tokens_before", "tokens_after", "pre_tokens", "trigger", "error", "app.version"),
    )
)
_VALUES = _SCALARS | st.sampled_from(
    ("main", "sdk", "chat", "response.completed", "s", "s########1", "12", "auto", "false")
)
_ITEMS = st.builds(
    TelemetryItem,
    st.tuples(st.sampled_from((*EVENTS, "codex.other"))) | st.just(()),
    st.dictionaries(_NAMES, _VALUES, min_size=3, max_size=12),
    st.none() | st.integers(0, 2**64 // 1_000_000),
    st.text("0123456789abcdef", min_size=8, max_size=8).map(lambda digest: partial(str, digest)),
)


def _json(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)


_DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=12,
).map(_json)


@given(st.binary(max_size=200) | _DOCUMENTS, st.sampled_from(("json", "lines")))
@example(b"[" * 100_000, "json")
@example(b'{"session_id": "\\ud800", "type": "user"}', "json")
@example(b'[{"session_id": "s", "a": 1e999, "b": NaN}]', "json")
def test_messages_are_ready_ignored_or_refused(body: bytes, form: Any) -> None:
    try:
        messages = read(body, form, Conversation("s", ()), FORM)
    except (UnreadableBodyError, TooManyMessagesError):
        return
    assert all(each.session_id for each in messages.ready)
    assert all(letter.detail for _, letter in messages.refused)


@given(
    st.binary(max_size=200) | _DOCUMENTS,
    st.sampled_from(("logs", "traces", "metrics")),
    st.sampled_from(("protobuf", "json")),
)
@example(b'{"resourceLogs": ' + b"[" * 100_000, "logs", "json")
@example(
    b'{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"\\ud800"}}]}]}]}',
    *("logs", "json"),
)
def test_telemetry_is_read_or_refused(body: bytes, kind: Any, form: Any) -> None:
    with contextlib.suppress(NoTelemetryError):
        list(messages_of(items_of(kind, form, body), WithoutMessage()))


@pytest.mark.extended
@given(st.lists(_ITEMS, max_size=4))
def test_every_message_of_telemetry_can_be_published(items: list[TelemetryItem]) -> None:
    without, read_back = WithoutMessage(), BodyMessages()
    for place, message in enumerate(messages_of(items, without)):
        add(read_back, place, _json(message), NOWHERE, FORM)
    assert read_back.refused == []
    assert read_back.ignored == 0
    assert without.others + without.nameless <= len(items)
