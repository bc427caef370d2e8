"""The library of questions on records by hand: what SQL says is what the core says of them."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from contextgauge.pricing import price_of
from schemas.records import Record, ReportedReceipt, ToolUse, UserTurn
from streams.core.costs import session_costs
from tests.edge.tables_kit import Session, asked, changed, engine_of


@pytest.mark.parametrize(
    ("receipt", "fresh"),
    [
        (ReportedReceipt(summary_output_tokens=2_100), None),
        (ReportedReceipt(summary_input_tokens=90_000), 90_000),
        (ReportedReceipt(summary_input_tokens=10, summary_cache_read_tokens=90), 0),
    ],
    ids=["output only", "input only", "more read than there was"],
)
def test_a_summary_costs_what_the_core_says(
    tmp_path: Path, receipt: ReportedReceipt, fresh: int | None
) -> None:
    session = Session()
    boundary = session.compacted(receipt)
    records = [session.response(90_000, "a"), boundary, session.response(20_000, "b")]
    records.append(session.complete(boundary, 20_000, cache_rewrite=5_000))
    costs = session_costs(records, price_of)
    (profit,) = costs.compactions
    assert profit.summary is not None
    assert costs.cost is not None
    engine = engine_of(records, tmp_path)
    (row,) = asked(engine, "SELECT * FROM costs WHERE kind = 'summary'")
    assert row["input_tokens"] == fresh
    assert (row["cost_usd"], row["is_complete"]) == profit.summary
    (row,) = asked(engine, "SELECT * FROM profits")
    assert (row["summary_usd"], row["is_summary_complete"]) == profit.summary
    assert (row["break_even_responses"], row["net_usd"], row["is_net_complete"]) == (
        profit.break_even,
        *(profit.net or (None, None)),
    )
    (row,) = asked(
        engine, "SELECT sum(cost_usd) AS usd, bool_and(is_complete) AS is_complete FROM costs"
    )
    assert (row["usd"], row["is_complete"]) == costs.cost


def forked(origin: str, fork: str, *, is_continued: bool = False) -> dict[str, list[Record]]:
    """Return a session and one that begins with its records at its end, as nothing reports."""
    sessions: dict[str, list[Record]] = {}
    for name in (origin, fork):
        session = Session(name)
        first = session.response(90_000, "a")
        boundary = session.compacted()
        own = [first, boundary, session.response(20_000, "b"), session.response(21_000, "c")]
        own.insert(3, session.complete(boundary, 20_000, cache_rewrite=5_000, at=3))
        if name == fork:
            own.append(session.response(22_000, "f", at=600))
        elif is_continued:
            own.append(session.response(23_000, "o", at=300))
        sessions[name] = own
    return sessions


@pytest.mark.parametrize("is_continued", [False, True], ids=["at its end", "before its end"])
@pytest.mark.parametrize(
    ("origin", "fork"), [("z", "a"), ("a", "z")], ids=["fork first", "origin first"]
)
def test_what_a_fork_shares_counts_for_its_origin(
    tmp_path: Path, origin: str, fork: str, *, is_continued: bool
) -> None:
    sessions = forked(origin, fork, is_continued=is_continued)
    engine = engine_of((each for own in sessions.values() for each in own), tmp_path)
    costs = session_costs(sessions[origin], price_of)
    rows = {each["session_id"]: each for each in asked(engine, "cost-by-session")}
    assert costs.cost is not None
    assert rows[origin]["cost_usd"] == costs.cost.amount.quantize(Decimal("0.000001"))
    assert (rows[origin]["calls"], rows[fork]["calls"]) == (3 + is_continued, 1)
    (profit,) = asked(engine, "SELECT * FROM profits")
    assert profit["session_id"] == origin
    assert profit["responses"] == costs.compactions[0].responses
    assert profit["net_usd"] is not None
    (totals,) = asked(engine, "totals")
    assert (totals["sessions"], totals["responses"]) == (2, 4 + is_continued)
    (folder,) = asked(engine, "folders")
    assert folder["output_tokens"] == folder["responses"] == 4 + is_continued
    sizes = {each["session_id"]: each for each in asked(engine, "SELECT * FROM sessions")}
    assert sizes[fork]["used_tokens"] == 22_000


def _with_history(
    name: str, *, of: str = "first", own: int = 0, is_compacted: bool = True
) -> list[Record]:
    """Return a session that begins with another one's history, and its own responses after it."""
    session = Session(name)
    turn = UserTurn(**session.common(), characters=40, tokens_estimated=10)
    call = ToolUse(
        **session.common(),
        part="call",
        use_id=f"{of}-call",
        tool="Read",
        bytes=1,
        tokens_estimated=1,
    )
    records = [
        session.record(turn),
        session.response(90_000, f"{of}-1"),
        session.start(),
        session.failed(),
        session.response(91_000, f"{of}-2"),
    ]
    records.append(session.record(call, at=session.at))  # of the same message
    if is_compacted:
        records.append(session.compacted())
    for number in range(own):
        records.append(session.record(turn, at=600 + 10 * number))
        records.append(session.response(20_000 + number, f"{name}-own-{number}"))
    return records if not own else [*records, session.compacted()]


@pytest.mark.parametrize("is_compacted", [True, False])
def test_a_copied_history_counts_once_with_all_that_happened_in_it(
    tmp_path: Path, *, is_compacted: bool
) -> None:
    sessions = [
        _with_history("z", own=2, is_compacted=is_compacted),
        _with_history("a", own=1, is_compacted=is_compacted),
        _with_history("b", own=0, is_compacted=is_compacted),
        _with_history("other", of="other"),  # at the same times, as it happens
    ]
    engine = engine_of((each for records in sessions for each in records), tmp_path)
    rows = {
        each["session_id"]: tuple(each[name] for name in ("responses", "compactions", "failed"))
        for each in asked(
            engine, "SELECT *, failed_compactions AS failed FROM sessions ORDER BY session_id"
        )
    }
    # The session that was left for its forks has nothing of its own: it is their origin.
    origin = (2, int(is_compacted), 1)
    assert rows == {"a": (1, 1, 0), "b": origin, "other": (2, 1, 1), "z": (2, 1, 0)}
    calls = asked(engine, "SELECT session_id, use_id FROM tools ORDER BY session_id")
    assert [each["session_id"] for each in calls] == ["b", "other"]
    turns = asked(engine, "SELECT session_id, count(*) AS n FROM user_turns GROUP BY session_id")
    assert {each["session_id"]: each["n"] for each in turns} == {"a": 1, "b": 1, "other": 1, "z": 2}


def test_a_compaction_has_one_profit_whatever_sequence_other_chains_have(tmp_path: Path) -> None:
    session = Session()
    before, boundary = session.response(90_000, "a"), session.compacted()
    after = session.response(20_000, "b")
    # What an export has of a subagent whose file is gone, under the sequences of then.
    sides = [
        replace(changed(each, chain="agent:x", response_id=f"x-{each.sequence}"), id=f"x-{each.id}")
        for each in (before, after)
    ]
    (row,) = asked(engine_of([before, boundary, after, *sides], tmp_path), "SELECT * FROM profits")
    assert row["responses"] == 1


def test_a_response_is_one_row_however_often_it_was_reported(tmp_path: Path) -> None:
    session = Session()
    begun, ended = session.response(500, "a"), session.response(600, "a", output_tokens=7)
    engine = engine_of([begun, ended, session.response(700, "b")], tmp_path)
    (row,) = asked(engine, "SELECT responses, output_tokens FROM sessions")
    assert (row["responses"], row["output_tokens"]) == (2, 8)


def _windows() -> Iterator[Record]:
    """A session that was fullest in a known window, and one that was in an assumed one."""
    for name, percents in (("known", (90, 10)), ("assumed", (10, 85))):
        session = Session(name)
        for source, percent in zip(("runtime", "default"), percents, strict=True):
            record = session.response(percent * 1_000, f"{name}-{source}")
            yield changed(record, window_source=source, used_percent=float(percent))


def test_a_fullest_moment_is_of_the_window_that_it_was_in(tmp_path: Path) -> None:
    engine = engine_of(_windows(), tmp_path)
    rows = {each["used_percent"]: each for each in asked(engine, "pressure-histogram")}
    assert (rows["80-90%"]["known_window"], rows["80-90%"]["assumed_window"]) == (0, 1)
    assert (rows["90-100%"]["known_window"], rows["90-100%"]["assumed_window"]) == (1, 0)
    (totals,) = asked(engine, "totals")
    assert (totals["sessions_at_80"], totals["some_windows_assumed"]) == (2, True)


@pytest.mark.parametrize("threshold", [100_000, None])
def test_a_threshold_that_nothing_reports_is_an_estimate(
    tmp_path: Path, threshold: int | None
) -> None:
    session = Session()
    boundary = changed(session.boundary(pre=100_000), pre_tokens_source="last_reading")
    records = [boundary, session.complete(boundary, 90_000), session.limits(threshold=threshold)]
    engine = engine_of(records, tmp_path)
    (row,) = asked(engine, "unreachable-floors")
    assert (row["floor_percent"], row["is_threshold_learned"]) == (90.0, threshold is None)
    for name in (
        *("average-compaction", "compactions-by-trigger", "pre-tokens", "tokens-saved"),
        *("saved-by-day", "compression"),
    ):
        assert [each["some_from_last_reading"] for each in asked(engine, name)] == [True], name


def _constructed() -> Sequence[Record]:
    """Two sessions with compactions, a failed one, and calls that the caches paid for."""
    one, two = Session("one"), Session("two")
    first = one.info(cwd="/srv/shop")
    records = [first, one.response(160_000, "a", at=10)]
    early = changed(
        one.compacted(ReportedReceipt(summary_input_tokens=160_000, summary_output_tokens=2_000)),
        pre_tokens=160_000,
    )
    records += [early, one.response(40_000, "b"), one.complete(early, 40_000, cache_rewrite=30_000)]
    records += [one.response(50_000, "c"), one.failed(error="too long")]
    late = one.boundary("manual", pre=50_000, number=2, at=100)
    records += [late, two.info(cwd="/srv/shop"), two.response(10_000, "d")]
    return records


CONSTRUCTED: dict[str, list[dict[str, Any]]] = {
    "cache-rewrites": [
        {
            "model": "claude-sonnet-5",
            "measured": 1,
            "rewritten_tokens": 30_000,
            "average": 30_000,
            "average_saved": 120_000,
        }
    ],
    "failed-attempts": [
        {"session_id": "one", "outcome": "failed", "error": "too long", "used_tokens": None}
    ],
    "boundary-profit": [
        {"number": 2, "trigger": "manual", "responses": 0, "net_usd": None, "waited_ms": 30_000},
        {"number": 1, "tokens_saved": 120_000, "responses": 2, "rewrite_tokens": 30_000},
    ],
    "late-warnings": [{"session_id": "one", "number": 1, "pre_tokens": 160_000}],
    "folders": [
        {
            "folder": "/srv/shop",
            "sessions": 2,
            "responses": 4,
            "input_tokens": 40,
            "cache_creation_tokens": None,
            "cache_read_tokens": 259_960,
            "output_tokens": 4,
            "compactions": 2,
        }
    ],
}


@pytest.mark.parametrize("question", CONSTRUCTED)
def test_a_question_gives_what_was_constructed(tmp_path: Path, question: str) -> None:
    rows = asked(engine_of(_constructed(), tmp_path), question)
    wanted = CONSTRUCTED[question]
    assert [
        {column: row[column] for column in each} for row, each in zip(rows, wanted, strict=True)
    ] == wanted


def test_what_a_compaction_paid_is_as_the_core_says(tmp_path: Path) -> None:
    records = _constructed()
    own = [each for each in records if each.data.session_id == "one"]
    profits = {each.number: each for each in session_costs(own, price_of).compactions}
    rows = asked(engine_of(records, tmp_path), "boundary-profit")
    assert profits[1].net is not None
    for row in rows:
        profit = profits[row["number"]]
        for name in ("summary", "rewrite", "saving", "net"):
            cost = getattr(profit, name)
            amount = None if cost is None else cost.amount.quantize(Decimal("0.000001"))
            assert row[f"{name}_usd"] == amount, name
        assert row["break_even_responses"] == profit.break_even
