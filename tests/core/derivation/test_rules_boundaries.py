"""R19 to R22: boundaries, and what they cut."""

import pytest

from schemas.records import (
    CompactBoundary,
    CompactionComplete,
    CompactionFailed,
    CompactionStart,
    ContextReading,
)
from tests.core.given import (
    AUTO,
    START_MS,
    Body,
    Given,
    assistant,
    bound,
    boundary,
    compacting,
    every,
    line,
    one,
    reset,
    session,
    side,
    succeeded,
    user,
)


def test_r19_a_boundary_always_emits() -> None:
    for before in ((), (compacting(),), (compacting(), succeeded()), (assistant(read=9),)):
        assert every(session(*before).take(boundary(AUTO)), CompactBoundary)


def test_r19_reported_facts_are_kept_unchanged() -> None:
    record = one(
        session(assistant(read=9)).take(boundary(AUTO | {"later": {"x": [1, None]}})),
        CompactBoundary,
    )
    assert (record.trigger, record.pre_tokens, record.pre_tokens_source) == (
        "auto",
        167_412,
        "reported",
    )
    assert (record.post_tokens, record.duration_ms, record.duration_source) == (
        5_210,
        24_100,
        "reported",
    )
    assert record.metadata == AUTO | {"later": {"x": [1, None]}}


def test_r19_metadata_keeps_its_keys_as_they_came() -> None:
    records = session().take(line(boundary(AUTO)))
    assert list(one(records, CompactBoundary).metadata) == [
        "trigger", "preTokens", "postTokens", "durationMs"
    ]  # fmt: skip


def test_r19_without_pre_tokens_it_takes_the_last_readings() -> None:
    record = one(
        session(assistant(read=150_000)).take(boundary({"trigger": "auto"})), CompactBoundary
    )
    assert (record.pre_tokens, record.pre_tokens_source) == (150_000, "last_reading")


def test_r19_while_the_size_is_unknown_pre_tokens_are_null_with_a_null_source() -> None:
    for before in ((), (assistant(read=9), boundary()), (assistant(read=9), reset())):
        record = one(session(*before).take(boundary({"trigger": "auto"})), CompactBoundary)
        assert (record.pre_tokens, record.pre_tokens_source) == (None, None)


@pytest.mark.parametrize("metadata", [None, {}])
def test_r19_without_metadata_it_is_empty_with_a_null_trigger(metadata: Body | None) -> None:
    record = one(session().take(boundary(metadata)), CompactBoundary)
    assert (record.metadata, record.trigger) == ({}, None)
    assert (record.post_tokens, record.duration_ms, record.duration_source) == (None, None, None)


@pytest.mark.parametrize("trigger", ["later", 5, None, ["auto"]])
def test_r19_an_unknown_trigger_is_null(trigger: object) -> None:
    assert one(session().take(boundary({"trigger": trigger})), CompactBoundary).trigger is None


def test_r19_no_open_attempt_means_no_attempt_id_and_no_invented_start() -> None:
    records = session().take(boundary(AUTO))
    assert one(records, CompactBoundary).attempt_id is None
    assert not every(records, CompactionStart)


def test_r19_the_open_attempt_is_named_and_closed() -> None:
    given = session(compacting())
    attempt = one(given.records, CompactionStart).attempt_id
    assert one(given.take(boundary(AUTO)), CompactBoundary).attempt_id == attempt
    assert one(given.take(boundary(AUTO)), CompactBoundary).attempt_id is None
    assert not every(given.records, CompactionFailed)


def test_r19_a_subagents_boundary_belongs_to_its_chain() -> None:
    given = session(assistant(read=90_000), compacting(), side(assistant("s", read=50_000)))
    record = one(given.take(side(boundary({"trigger": "auto"}))), CompactBoundary)
    assert (record.chain, record.attempt_id, record.pre_tokens, record.number) == (
        "a1b2",
        None,
        50_000,
        1,
    )
    assert given.session().attempt.phase == "open"
    assert given.chain().used == 90_000


def test_r19_boundaries_are_numbered_within_their_chain() -> None:
    given = session(boundary(), side(boundary()), boundary(), reset(), boundary())
    numbers = [(value.chain, value.number) for value in every(given.records, CompactBoundary)]
    assert numbers == [("main", 1), ("a1b2", 1), ("main", 2), ("main", 3)]


def timed(
    start: dict[str, int | float | None], end: dict[str, int | float | None]
) -> CompactBoundary:
    """A start and a boundary with their own time (`at`) and live receive time (`live`)."""
    given = Given()
    given.take(compacting(at=start.get("at")), received_ms=_live(start))
    return one(given.take(boundary(at=end.get("at")), received_ms=_live(end)), CompactBoundary)


def _live(expected: dict[str, int | float | None]) -> int | None:
    live = expected.get("live")
    return None if live is None else START_MS + int(live * 1000)


def test_r20_a_reported_duration_comes_first() -> None:
    given = session(compacting(at=0))
    record = one(given.take(boundary(AUTO, at=90)), CompactBoundary)
    assert (record.duration_ms, record.duration_source) == (24_100, "reported")


@pytest.mark.parametrize(
    ("start", "end", "duration"),
    [
        ({"at": 0}, {"at": 90}, 90_000),
        ({"at": 0, "live": 500}, {"at": 90, "live": 600}, 90_000),
        ({"live": 500}, {"live": 600}, 100_000),
        ({"at": 0, "live": 500}, {"live": 600}, 100_000),
        ({"live": 500}, {"at": 0, "live": 600}, 100_000),
        ({"at": 0}, {"live": 600}, None),
        ({"live": 0}, {"at": 600}, None),
        ({}, {"at": 600}, None),
        ({"at": 0}, {}, None),
        ({}, {}, None),
        ({"at": 90}, {"at": 89}, None),
        ({"at": 90, "live": 0}, {"at": 89, "live": 5}, None),
        ({"at": 90}, {"at": 90}, None),
        ({"live": 500}, {"live": 500}, None),
        ({"at": 90}, {"at": 90.001}, 1),
    ],
)
def test_r20_else_boundary_minus_start_by_one_and_the_same_clock(
    start: dict[str, int | float | None],
    end: dict[str, int | float | None],
    duration: int | None,
) -> None:
    compaction = timed(start, end)
    source = None if duration is None else "paired"
    assert (compaction.duration_ms, compaction.duration_source) == (duration, source)


def test_r20_never_the_gap_to_the_previous_message() -> None:
    record = one(session(user(at=0)).take(boundary({"trigger": "auto"}, at=50)), CompactBoundary)
    assert (record.duration_ms, record.duration_source) == (None, None)


def test_r20_heartbeats_do_not_move_the_start() -> None:
    given = session(compacting(at=0), compacting(at=30), succeeded(at=40))
    assert one(given.take(boundary(at=41)), CompactBoundary).duration_ms == 41_000


def test_r21_messages_before_a_boundary_are_history_whatever_its_parent() -> None:
    given = session(user(), assistant(read=9), user())
    cut = boundary(AUTO, logical_parent_uuid="never-sent")
    assert one(given.take(cut), CompactBoundary).messages_since_last == 3
    assert given.chain().messages == 0
    assert one(given.take(assistant("b", read=9)), ContextReading).messages == 1


def test_r22_after_a_boundary_the_size_is_unknown_until_the_next_reading() -> None:
    given, _ = bound(assistant(read=150_000))
    assert (given.chain().used, given.chain().percent) == (None, None)
    assert one(given.take(compacting()), CompactionStart).used_tokens is None
    given.take(assistant("b", read=28_404))
    assert given.chain().used == 28_404


def test_r22_post_tokens_are_not_the_size() -> None:
    given, _ = bound()
    record = one(given.take(assistant("b", read=28_404)), CompactionComplete)
    assert (record.tokens_after, record.tokens_saved) == (28_404, 167_412 - 28_404)


def test_r22_cumulative_dropped_tokens_are_only_kept() -> None:
    record = one(
        session().take(boundary(AUTO | {"cumulative_dropped_tokens": 900_000})), CompactBoundary
    )
    assert record.metadata["cumulative_dropped_tokens"] == 900_000
    assert (record.pre_tokens, record.post_tokens) == (167_412, 5_210)
