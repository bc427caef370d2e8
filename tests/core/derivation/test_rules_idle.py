"""R33: compactions of idle sessions, by what the runtime reports or by the silence before them."""

import pytest

from schemas.records import CompactBoundary
from streams.core.derivation.compact_boundaries import IDLE_MS
from tests.core.given import (
    assistant,
    boundary,
    compacting,
    every,
    one,
    session,
    side,
    user,
)

SECONDS = IDLE_MS // 1000


def test_r33_a_boundary_of_an_idle_session_is_a_kind_of_its_own() -> None:
    record = one(session(assistant(read=9)).take(boundary({"trigger": "idle"})), CompactBoundary)
    assert (record.trigger, record.idle_ms) == ("idle", None)


@pytest.mark.parametrize(
    ("trigger", "after", "duration_ms", "idle_ms"),
    [
        ("auto", SECONDS, None, None),
        ("auto", SECONDS + 1, None, IDLE_MS + 1_000),
        ("auto", SECONDS + 1, 90_000, None),
        ("auto", SECONDS + 100, 90_000, IDLE_MS + 10_000),
        ("idle", 2 * SECONDS, None, 2 * IDLE_MS),
        ("manual", 2 * SECONDS, None, None),
        (None, 2 * SECONDS, None, None),
    ],
)
def test_r33_an_automatic_compaction_after_a_silence_is_of_an_idle_session(
    trigger: str | None, after: int, duration_ms: int | None, idle_ms: int | None
) -> None:
    given = session(user(at=0), assistant(read=210_000, at=10))
    metadata = {"trigger": trigger, "duration_ms": duration_ms}
    record = one(given.take(boundary(metadata, at=10 + after)), CompactBoundary)
    assert record.idle_ms == idle_ms


def test_r33_a_turn_before_it_explains_a_compaction() -> None:
    given = session(assistant(read=210_000, at=10), user(at=9_000))
    record = one(given.take(boundary({"trigger": "auto"}, at=9_001)), CompactBoundary)
    assert record.idle_ms is None


def test_r33_an_attempt_whose_start_was_reported_and_times_that_are_not_known_are_not_judged() -> (
    None
):
    given = session(assistant(read=9, at=10), compacting())
    assert [
        record.idle_ms
        for record in every(given.take(boundary({"trigger": "auto"}, at=9_000)), CompactBoundary)
    ] == [None]
    given = session(assistant(read=9), user())
    record = one(given.take(boundary({"trigger": "auto"}, at=9_000)), CompactBoundary)
    assert record.idle_ms is None


def test_r33_another_chains_messages_are_no_part_of_a_silence() -> None:
    # A subagent's file is read after the main one, and its lines are older; or it works meanwhile.
    for second in (-3_000, SECONDS):
        given = session(user(at=0), assistant(read=210_000, at=10))
        given.take(side(assistant(read=9, at=second), "a1"))
        record = one(given.take(boundary({"trigger": "auto"}, at=20)), CompactBoundary)
        assert record.idle_ms is None
        record = one(given.take(boundary({"trigger": "auto"}, at=99 + SECONDS)), CompactBoundary)
        assert record.idle_ms == IDLE_MS + 79_000
