"""Record ids against an independent reading of docs/RULES.md, and the order of a message's ids."""

import hashlib
import json
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextgauge.normalise.signals import InputMessage
from schemas.records import (
    CompactBoundary,
    CompactionComplete,
    CompactionFailed,
    CompactionStart,
    CompactionSummary,
    ContextLimits,
    ContextReading,
    ContextWarning,
    Record,
)
from streams import codec
from streams.core.derivation.record_ids import record_id
from streams.flow.derive.deriver import Deriver
from tests.core.given import (
    RULES,
    SESSION,
    Body,
    Given,
    any_message,
    assistant,
    boundary,
    compacting,
    failed,
    kinds,
    line,
    one,
    record_of,
    session,
    side,
    summary,
    token_count,
)

NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "urn:contextgauge:records")


def expected_id(*parts: str | int | None) -> str:
    """The id by the specification: uuid5 over a compact JSON array, by other means."""
    text = json.dumps(list(parts), ensure_ascii=False, separators=(",", ":"))
    # uuid5 of the standard library encodes the name itself, and strictly: hashed by hand here.
    name = text.encode("utf-8", "backslashreplace")
    digest = hashlib.sha1(NAMESPACE.bytes + name, usedforsecurity=False).digest()
    return str(uuid.UUID(bytes=digest[:16], version=5))


ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=30)
ANY_PART = st.one_of(ANY_TEXT, st.integers(0, 2**40), st.none())


@given(ANY_TEXT, ANY_TEXT, ANY_TEXT, ANY_TEXT, st.lists(ANY_PART, max_size=1))
def test_an_id_is_the_uuid5_of_a_compact_json_array(
    name: str, chain: str, kind: str, cause: str, extra: list[str | int | None]
) -> None:
    derived_id = record_id(name, chain, kind, cause, tuple(extra))
    assert derived_id == expected_id(name, chain, kind, cause, *extra)


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "",
        "naïve 漢字 😀",
        'quo"te',
        "back\\slash",
        "\x00\x1f\x7f\u2028",
        "\n\r\t\f\b",
        "\ud800",
    ],
)
def test_an_id_is_well_formed_for_any_session(text: str) -> None:
    derived_id = record_id(text, "main", "context_reading", "cause")
    assert derived_id == expected_id(text, "main", "context_reading", "cause")
    assert (uuid.UUID(derived_id).version, uuid.UUID(derived_id).variant) == (5, uuid.RFC_4122)


def test_an_id_by_the_standard_library_itself() -> None:
    name = '["s","main","compact_boundary","u-1"]'
    assert record_id("s", "main", "compact_boundary", "u-1") == str(uuid.uuid5(NAMESPACE, name))
    warned = '["s","main","context_warning","u-1",80]'
    assert record_id("s", "main", "context_warning", "u-1", (80,)) == str(
        uuid.uuid5(NAMESPACE, warned)
    )
    missed = '["s","main","compaction_failed","u-1",null]'
    assert record_id("s", "main", "compaction_failed", "u-1", (None,)) == str(
        uuid.uuid5(NAMESPACE, missed)
    )


def test_the_cause_is_the_source_messages_uuid() -> None:
    record = record_of(session().take(assistant(read=9, uuid="u-1")), ContextReading)
    assert record.id == expected_id(SESSION, "main", "context_reading", "u-1")


def test_the_chain_is_in_the_id() -> None:
    record = record_of(session().take(side(assistant(read=9, uuid="u-1"))), ContextReading)
    assert record.id == expected_id(SESSION, "a1b2", "context_reading", "u-1")


def test_else_the_cause_is_the_sha_256_of_the_raw_bytes_without_the_line_end() -> None:
    raw = b' {"type":"assistant", "session_id":"s","message":{"usage":{"input_tokens":9}}}'
    cause = hashlib.sha256(raw).hexdigest()
    for ending in (b"", b"\n", b"\r\n"):
        taken = Deriver(RULES).derive(InputMessage(raw + ending))
        record = record_of(taken.records, ContextReading)
        assert record.id == expected_id("s", "main", "context_reading", cause)


def test_a_warnings_threshold_is_the_last_element_as_a_number() -> None:
    record = record_of(session().take(assistant(read=90_000, uuid="u-1")), ContextWarning)
    assert record.id == expected_id(SESSION, "main", "context_warning", "u-1", 40)


def test_a_completions_boundary_is_the_last_element() -> None:
    given = session(boundary(uuid="u-1"))
    bound = record_of(given.records, CompactBoundary).id
    record = record_of(given.take(assistant(read=9, uuid="u-2")), CompactionComplete)
    assert record.id == expected_id(SESSION, "main", "compaction_complete", "u-2", bound)


def test_a_failures_attempt_is_the_last_element_or_null() -> None:
    given = session(compacting(uuid="u-1"))
    attempt = one(given.records, CompactionStart).attempt_id
    assert attempt == expected_id(SESSION, "main", "compaction_start", "u-1")
    record = record_of(given.take(failed() | {"uuid": "u-2"}), CompactionFailed)
    assert record.id == expected_id(SESSION, "main", "compaction_failed", "u-2", attempt)
    record = record_of(given.take(failed() | {"uuid": "u-3"}), CompactionFailed)
    assert record.id == expected_id(SESSION, "main", "compaction_failed", "u-3", None)


def test_other_kinds_have_no_last_element() -> None:
    given = session(boundary())
    records = given.take(summary(uuid="u-1"))
    assert record_of(records, CompactionSummary).id == expected_id(
        SESSION, "main", "compaction_summary", "u-1"
    )
    records = given.take(assistant(read=9, uuid="u-2"))
    assert record_of(records, ContextLimits).id == expected_id(
        SESSION, "main", "context_limits", "u-2"
    )


@pytest.mark.parametrize("name", ["größer/😀 ?", "half \ud800", "tab\tand\x00", 'q"\\'])
def test_a_session_of_any_characters_is_derived_and_written(name: str) -> None:
    record = record_of(session().take(assistant(read=9, session_id=name, uuid="u")), ContextReading)
    assert record.id == expected_id(name, "main", "context_reading", "u")
    assert codec.from_structured(codec.loads(codec.to_structured(record))) == record


def test_a_message_published_twice_gives_the_same_ids() -> None:
    bodies: list[Body] = [line(assistant(read=90_000), at=3), boundary(), summary()]
    first, second = (Given() for _ in range(2))
    second.take(any_message("progress"))
    assert first.take(*bodies) == second.take(*bodies)


def test_no_offset_or_receive_time_is_in_an_id() -> None:
    body = token_count({"input_tokens": 9}, 9)
    one_way = Given().take(body, hint="r", received_ms=1_793_534_400_000)
    other_way = Given().take(body, hint="r")
    assert [record.id for record in one_way] == [record.id for record in other_way]


ORDER = [
    "session_info",
    "compaction_failed",
    "compaction_start",
    "compaction_progress",
    "context_reset",
    "compaction_complete",
    "compact_boundary",
    "compaction_summary",
    "context_limits",
    "context_edit",
    "context_reading",
    "compaction_complete",
    "context_warning",
    "context_exhausted",
]


def in_order(records: list[Record]) -> bool:
    """Whether the kinds are a subsequence of the specified order, repeats of a kind aside."""
    places = iter(ORDER)
    kinds_of_records = kinds(records)
    distinct = [
        kind
        for index, kind in enumerate(kinds_of_records)
        if index == 0 or kinds_of_records[index - 1] != kind
    ]
    return all(kind in places for kind in distinct)


def test_one_message_of_nearly_every_kind_keeps_the_order() -> None:
    given = session(boundary(at=0), compacting(at=1), boundary(at=2), compacting(at=3))
    everything = assistant(
        "a",
        read=90_000,
        inside={
            "content": [{"type": "compaction", "content": "Done."}],
            "context_management": {"applied_edits": [{"type": "x"}]},
            "stop_reason": "model_context_window_exceeded",
        },
    )
    records = given.take(line(everything, at=9 * 3600))
    assert len(records) == 11
    assert in_order(records)
    assert [record.sequence for record in records] == list(range(6, 17))
