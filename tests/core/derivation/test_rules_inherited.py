"""R30: what a runtime copies of another session shows the size, and is nobody's doing twice."""

from typing import Any

import pytest

from schemas.records import (
    CompactBoundary,
    CompactionComplete,
    ContextReading,
    ContextReset,
    ContextWarning,
    SessionInfo,
)
from schemas.views import Aggregates, SessionView
from streams.core.derivation.inherited import PAUSE_MS
from streams.core.projection import statistics
from streams.core.projection.documents import entry_stream
from streams.core.projection.project import project
from streams.core.projection.statistics import counted
from tests.core.derivation.state_kit import Store
from tests.core.given import (
    START_MS,
    Body,
    Given,
    assistant,
    boundary,
    every,
    init,
    line,
    one,
    rollout,
    token_count,
    user,
)

PARENT = "parent-thread"


def uuid7(at: float, last: int = 0) -> str:
    """Return an id that was made `at` seconds after noon."""
    made = f"{START_MS + int(at * 1_000):012x}"
    return f"{made[:8]}-{made[8:]}-7000-8000-{last:012x}"


CHILD = uuid7(100)


def meta(thread: str, at: float = 100, **more: Any) -> Body:
    return rollout(
        "session_meta", {"id": thread, "cwd": "/repo", "cli_version": "0.148", **more}, at
    )


def size(used: int, total: int, at: float) -> Body:
    return token_count({"input_tokens": used}, total, window=250_000, at=at)


def turn(at: float, began: float | None = None, model: str = "gpt-5.5") -> Body:
    payload = {"model": model} | ({} if began is None else {"turn_id": uuid7(began, 9)})
    return rollout("turn_context", payload, at)


def compacted(at: float, text: str = "What was done.") -> Body:
    return rollout("compacted", {"message": text}, at)


def asked(at: float) -> Body:
    payload = {"type": "message", "role": "user", "content": []}
    return rollout("response_item", payload, at)


FORK = meta(CHILD, forked_from_id=PARENT)
COPY = [meta(PARENT, 100.001, cwd="/elsewhere"), asked(100.001), size(240_000, 240_000, 100.002),
        compacted(100.003), size(30_000, 270_000, 100.003)]  # fmt: skip
"""An origin's lines as they are copied: all at once, with the time of the copying."""


def readings(records: Any) -> list[tuple[int, bool]]:
    return [(data.used_tokens, data.inherited is True) for data in every(records, ContextReading)]


def test_r30_a_fork_shows_its_size_and_warns_of_its_own_only() -> None:
    given = Given()
    given.take(FORK, *COPY, hint=CHILD)
    assert readings(given.records) == [(240_000, True), (30_000, True)]
    assert every(given.records, ContextWarning) == []
    assert one(given.records, CompactBoundary).inherited
    assert one(given.records, CompactionComplete).inherited
    assert given.chain(session_id=CHILD).used == 30_000
    own = given.take(asked(160), size(31_000, 301_000, 161), hint=CHILD)
    assert readings(own) == [(31_000, False)]
    assert one(own, ContextWarning).thresholds_crossed == (10,)


def test_r30_facts_of_the_origin_are_not_the_forks() -> None:
    given = Given()
    given.take(FORK, *COPY, hint=CHILD)
    facts = one(given.records, SessionInfo)
    assert (facts.cwd, facts.forked_from, facts.inherited) == ("/repo", PARENT, None)


def test_r30_copied_messages_are_in_the_context_and_not_counted() -> None:
    given = Given()
    given.take(FORK, *COPY, hint=CHILD)
    own = given.take(asked(160), size(31_000, 301_000, 161), compacted(200), hint=CHILD)
    reading = one(own, ContextReading)
    assert (reading.messages, reading.messages_total) == (3, 2)
    assert reading.previous_output_tokens is None
    bound = one(own, CompactBoundary)
    assert (bound.number, bound.messages_since_last, bound.inherited) == (2, 2, None)


def test_r30_an_inherited_boundary_that_an_own_response_measures_stays_inherited() -> None:
    given = Given()
    given.take(FORK, *COPY[:-1], hint=CHILD)
    own = given.take(size(31_000, 301_000, 161), hint=CHILD)
    assert readings(own) == [(31_000, False)]
    assert one(own, CompactionComplete).inherited


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([turn(100.01, 40), size(5, 5, 101.5)], [(5, True)]),  # a pause does not end a copied turn
        ([turn(100.01, 100.005), size(5, 5, 100.02)], [(5, False)]),  # nor does a new turn need one
        ([turn(100.01, 40), turn(100.02, 100.02), size(5, 5, 100.03)], [(5, False)]),
        ([size(5, 5, 100.4), size(6, 11, 100.9)], [(5, True), (6, True)]),
        ([size(5, 5, 100.4), size(6, 11, 101.5), size(7, 18, 101.6)],
         [(5, True), (6, False), (7, False)]),
    ],
)  # fmt: skip
def test_r30_turns_tell_their_times_and_else_the_pace_does(
    lines: list[Body], expected: list[tuple[int, bool]]
) -> None:
    given = Given()
    given.take(FORK, meta(PARENT, 100.001), *lines, hint=CHILD)
    assert readings(given.records) == expected


def test_r30_copies_may_keep_their_times_and_come_without_the_origins_head() -> None:
    given = Given()
    lines = [size(200_000, 1, 20), compacted(30), size(9_000, 2, 35), size(9_500, 3, 130)]
    given.take(FORK, *lines, hint=CHILD)
    assert readings(given.records) == [(200_000, True), (9_000, True), (9_500, False)]


def test_r30_a_rollout_without_copies_has_none() -> None:
    given = Given()
    given.take(FORK, turn(100.01, 100.01), asked(100.01), size(9_000, 9_000, 104), hint=CHILD)
    given.take(meta(CHILD, 500), size(9_500, 18_500, 500.1), hint=CHILD)  # resumed: its own head
    assert readings(given.records) == [(9_000, False), (9_500, False)]
    assert one(given.records[-1:], ContextReading).messages_total == 3


def test_r30_a_thread_is_as_old_as_its_head_says_where_its_id_does_not() -> None:
    head = meta("child", forked_from_id=PARENT)
    given = Given()
    given.take(head, size(200_000, 1, 20), size(9_500, 3, 130), hint="child")
    assert readings(given.records) == [(200_000, True), (9_500, False)]
    timeless = {name: value for name, value in head.items() if name != "timestamp"}
    given = Given()
    given.take(timeless, size(9_500, 3, 130), hint="child")
    assert readings(given.records) == [(9_500, False)]


def test_r30_lines_without_a_time_go_with_those_before_them() -> None:
    given = Given()
    timeless = {name: value for name, value in size(5, 5, 0).items() if name != "timestamp"}
    given.take(FORK, *COPY, timeless, hint=CHILD)
    assert readings(given.records)[-1] == (5, True)


def test_r30_the_reader_of_the_file_may_know_better_than_the_pace() -> None:
    given = Given()
    given.take(FORK, meta(PARENT, 101), hint=CHILD)
    given.take(size(5, 5, 105), hint=CHILD, inherited=True)
    given.take(size(6, 11, 105.01), hint=CHILD, inherited=False)
    given.take(size(7, 18, 105.02), hint=CHILD)
    assert readings(given.records) == [(5, True), (6, False), (7, False)]


def test_r30_a_turn_of_its_own_is_no_copy_whatever_the_reader_found() -> None:
    given = Given()
    given.take(FORK, meta(PARENT, 100.001), turn(100.01, 100.01), hint=CHILD)
    given.take(size(5, 5, 100.02), hint=CHILD, inherited=True)
    assert readings(given.records) == [(5, False)]


def test_r30_a_subagents_rollout_is_a_chain_of_its_parents_session() -> None:
    given = Given()
    given.take(meta(PARENT, 0), turn(0, model="gpt-5.5"), size(60_000, 60_000, 5), hint=PARENT)
    head = meta(CHILD, parent_thread_id=PARENT, agent_role="explorer", cwd="/other")
    lines = [head, *COPY, turn(160, 160, model="gpt-mini"), size(9_000, 9_000, 161)]
    for body in lines:
        given.take(body, hint=PARENT, thread_id=CHILD)
    assert list(given.sessions()) == [PARENT]
    main, agent = given.chain(session_id=PARENT), given.chain(CHILD, PARENT)
    assert (main.model, main.used, main.boundaries) == ("gpt-5.5", 60_000, 0)
    assert (agent.model, agent.used, agent.subagent_type) == ("gpt-mini", 9_000, "explorer")
    last = every(given.records, ContextReading)[-1]
    assert (last.chain, last.window, last.window_source) == (CHILD, 250_000, "runtime")
    assert {data.cwd for data in every(given.records, SessionInfo)} == {"/repo"}
    assert {data.forked_from for data in every(given.records, SessionInfo)} == {None}


def test_r30_a_turns_window_that_a_subagent_reports_is_not_the_main_chains() -> None:
    given = Given()
    given.take(meta(PARENT, 0), turn(0), size(60_000, 60_000, 5), hint=PARENT)
    started = rollout("event_msg", {"type": "task_started", "model_context_window": 9_000}, 101)
    given.take(started, hint=PARENT, thread_id=CHILD)
    records = given.take(turn(102), size(61_000, 121_000, 103), hint=PARENT)
    assert one(records, ContextReading).window == 250_000


def test_r30_siblings_may_have_equal_lines() -> None:
    given = Given()
    for sibling in (uuid7(100, 1), uuid7(100, 2)):
        given.take(size(9_000, 9_000, 161), hint=PARENT, thread_id=sibling)
    assert readings(given.records) == [(9_000, False), (9_000, False)]


def test_r30_a_rollout_of_a_subagent_keyed_by_itself_names_its_parent() -> None:
    given = Given()
    spawn = {"subagent": {"thread_spawn": {"parent_thread_id": PARENT, "agent_role": "explorer"}}}
    given.take(meta(CHILD, source=spawn), hint=CHILD)
    assert one(given.records, SessionInfo).forked_from == PARENT


def test_r30_lines_of_a_claude_branch_that_name_their_origin_are_copies() -> None:
    origin = {"sessionId": "origin", "messageUuid": "m"}
    given = Given()
    copied = line(assistant("a", read=188_000), forkedFrom=origin)
    given.take(copied, line(user(), 60), line(assistant("b", read=189_000), 61))
    assert readings(given.records) == [(188_000, True), (189_000, False)]
    assert len(every(given.records, ContextWarning)) == 1
    assert every(given.records, ContextReading)[-1].messages_total == 2


@pytest.mark.parametrize("origin", ["origin", {"sessionId": None}, {}])
def test_r30_a_session_that_names_its_origin_is_no_copy_by_that(origin: object) -> None:
    given = Given()
    given.take(init(forked_from=origin), assistant("a", read=9_000))
    given.take(line(assistant("b", read=9_500), forkedFrom=origin))
    assert readings(given.records) == [(9_000, False), (9_500, False)]


def test_r30_a_stored_session_goes_on_with_its_copy() -> None:
    whole, parts, store = Given(), Given(), Store()
    lines = [FORK, *COPY, size(5, 5, 100.4), size(6, 11, 105), boundary(), size(7, 18, 106)]
    whole.take(*lines, hint=CHILD)
    for body in lines:
        before = parts.sessions().get(CHILD)
        parts.take(body, hint=CHILD)
        if CHILD in parts.sessions():
            store.put(before, parts.sessions()[CHILD])
            parts.sessions()[CHILD] = store.get()
    assert parts.records == whole.records


def folded(given: Given) -> tuple[SessionView, Aggregates]:
    view, aggregates = None, Aggregates()
    for offset, record in enumerate(given.records):
        if statistics.fields(record, view, None):
            aggregates = counted(aggregates, record, view)
        view = project(view, record, offset)
    assert view is not None
    return view, aggregates


def test_r30_what_is_inherited_is_shown_and_counted_nowhere() -> None:
    given = Given()
    given.take(FORK, *COPY, hint=CHILD)
    view, aggregates = folded(given)
    main = view.chains["main"]
    assert (main.used_tokens, main.inherited) == (30_000, True)
    assert (main.peak_tokens, main.growth_tokens) == (None, None)
    assert aggregates == Aggregates()
    assert (view.compactions.inherited, view.compactions.unknown_trigger) == (1, 0)
    assert [brief.inherited for brief in view.compactions.last] == [True]
    assert {entry_stream(record) for record in given.records} == {"events", None}
    given.take(size(31_000, 301_000, 161), size(33_000, 334_000, 170), hint=CHILD)
    view, aggregates = folded(given)
    main = view.chains["main"]
    assert (main.inherited, main.peak_tokens, main.differences) == (False, 33_000, (2_000,))
    assert aggregates.measured == 0


def test_r30_copies_that_a_subagent_begins_with_are_its_sessions_own_already() -> None:
    given = Given()
    given.take(size(240_000, 240_000, 1), compacted(2), size(30_000, 270_000, 3), hint=PARENT)
    for body in (meta(CHILD, parent_thread_id=PARENT), *COPY):
        given.take(body, hint=PARENT, thread_id=CHILD)
    view, aggregates = folded(given)
    assert aggregates.unknown_trigger.succeeded == 1
    assert aggregates.saved_tokens == 210_000
    assert (view.compactions.inherited, len(view.compactions.last)) == (0, 1)


def test_r30_the_pause_that_ends_a_copy_is_a_second() -> None:
    assert PAUSE_MS == 1_000


def numbered(*lines: Body, begin: int = 0) -> list[Body]:
    """The lines as a rollout with ordinals has them."""
    return [{**each, "ordinal": ordinal} for ordinal, each in enumerate(lines, begin)]


def test_r30_the_heads_ordinal_tells_where_a_threads_own_history_begins() -> None:
    given = Given()
    # All at one moment, and the last copy is the first own line's twin: nothing else tells.
    given.take(
        *numbered(
            meta(CHILD, subagent_history_start_ordinal=4),
            meta(PARENT),
            size(200_000, 200_000, 100),
            size(210_000, 410_000, 100),
            size(9_000, 419_000, 100),
            size(12_000, 431_000, 100),
        ),
        hint=CHILD,
    )
    readings = every(given.records, ContextReading)
    assert [(each.used_tokens, each.inherited) for each in readings] == [
        (200_000, True),
        (210_000, True),
        (9_000, None),
        (12_000, None),
    ]


def test_r30_the_heads_ordinal_comes_before_what_the_reader_knows() -> None:
    given = Given()
    lines = numbered(meta(CHILD, subagent_history_start_ordinal=1), size(9_000, 9_000, 100))
    given.take(*lines, hint=CHILD, inherited=True)
    assert one(given.records, ContextReading).inherited is None


def based(ordinal: int) -> dict[str, Any]:
    return {"history_base": {"thread_id": "rollout-1", "end_ordinal_exclusive": ordinal}}


def test_r27_a_rollout_that_goes_on_from_an_earlier_point_leaves_the_size_unknown() -> None:
    given = Given()
    given.take(meta(CHILD), size(90_000, 90_000, 101), hint=CHILD)
    assert not every(given.records, ContextReset)
    given.take(meta(CHILD, at=200, **based(7)), hint=CHILD)
    assert one(given.records, ContextReset).reason == "rollback"
    stored = Store()
    stored.put(None, given.session(CHILD))
    given.sessions()[CHILD] = stored.get()
    # The same head again, as where the rollout is resumed, and one without a base change nothing.
    given.take(meta(CHILD, at=201, **based(7)), meta(CHILD, at=202), hint=CHILD)
    assert len(every(given.records, ContextReset)) == 1
    given.take(meta(CHILD, at=203, **based(5)), hint=CHILD)
    assert len(every(given.records, ContextReset)) == 2


def test_r27_a_first_head_with_a_base_resets_nothing() -> None:
    given = Given()
    given.take(meta(CHILD, **based(7)), size(90_000, 90_000, 101), hint=CHILD)
    assert not every(given.records, ContextReset)
