"""What the rules raise, given real messages: which alerts, once of what, with which ids."""

from dataclasses import replace
from typing import Any

import pytest

from schemas.records import MAIN_CHAIN, CompactionProgress, CompactionStart, ContextReading, Record
from streams.core.alerts import watch as watching
from streams.core.alerts.alert import Alert
from streams.core.alerts.rules import (
    AlertPlan,
    Condition,
    Exhaustion,
    Failed,
    Patterns,
    Pressure,
    Rule,
    Stalled,
    Thrashing,
)
from streams.core.alerts.watch import Watch
from streams.core.alerts.words import sentence
from tests.core.given import (
    AUTO,
    MODEL,
    SESSION,
    START_MS,
    Given,
    assistant,
    boundary,
    clear,
    compacting,
    failed,
    init,
    line,
    record_of,
    result,
    side,
    user,
)

MINUTE_MS = 60_000
MAX_AGE_MS = 15 * MINUTE_MS


def rule(condition: Condition, name: str = "the rule", **filters: Patterns) -> Rule:
    return Rule(name=name, condition=condition, targets=("ops",), **filters)


def plan(*rules: Rule) -> AlertPlan:
    return AlertPlan(max_age_ms=MAX_AGE_MS, targets=(), rules=rules)


class Watched:
    """A session whose records go through the rules, as soon as they are derived."""

    def __init__(self, *rules: Rule) -> None:
        self.given = Given()
        self.watch = Watch(plan(*rules))

    def take(self, *bodies: Any, **how: Any) -> list[Alert]:
        return self.observe(self.given.take(*bodies, **how))

    def observe(self, records: list[Record], now_ms: int | None = None) -> list[Alert]:
        return [
            alert
            for record in records
            for alert in self.watch.observe(
                record,
                record.time_ms or START_MS,
                now_ms if now_ms is not None else record.time_ms or START_MS,
            )
        ]


def at(percent: float, seconds: float, response: str) -> Any:
    return assistant(response, read=int(200_000 * percent / 100), at=seconds)


def test_pressure_is_alerted_once_per_epoch() -> None:
    watched = Watched(rule(Pressure(85)))
    assert watched.take(user(at=0), at(84.9, 1, "a")) == []
    (alert,) = watched.take(at(85, 2, "b"))
    assert alert.kind == "pressure"
    assert alert.facts == {
        "at_percent": 85,
        "used_percent": 85.0,
        "used_tokens": 170_000,
        "window": 200_000,
        "window_source": "catalog",
        "messages": 3,
    }
    assert sentence(alert) == (
        f"session {SESSION} ({MODEL}): 85% of the context window is used "
        "(170,000 of 200,000 tokens; alert at 85%)"
    )
    assert watched.take(at(20, 3, "c"), at(90, 4, "d"), at(99, 5, "e")) == []
    assert watched.take(boundary(AUTO, at=6), at(10, 7, "f")) == []
    (again,) = watched.take(at(86, 8, "g"))
    assert again.id != alert.id
    assert watched.take(clear(at=9)) == []
    assert [sent.id in {alert.id, again.id} for sent in watched.take(at(95, 10, "h"))] == [False]


def test_an_answer_to_a_call_that_began_before_the_boundary_raises_no_pressure() -> None:
    watched = Watched(rule(Pressure(85)))
    called = boundary({**AUTO, "contextgauge": {"during_call": True}}, at=1)
    assert watched.take(user(at=0), called, at(96, 2, "a")) == []
    assert watched.take(at(97, 3, "a"), at(20, 4, "b")) == []
    assert len(watched.take(at(86, 5, "c"))) == 1
    assert len(watched.take(boundary(AUTO, at=6), at(96, 7, "d"))) == 1


def test_what_a_fork_inherited_raises_no_alert() -> None:
    origin = {"sessionId": "origin"}
    watched = Watched(rule(Pressure(85)), rule(Thrashing(2, MINUTE_MS), "thrash"))
    copied = [line(body, n, forkedFrom=origin) for n, body in enumerate(
        [at(90, 1, "a"), boundary(AUTO), at(95, 3, "b"), boundary(AUTO), at(20, 5, "c")]
    )]  # fmt: skip
    assert watched.take(*copied) == []
    (alert,) = watched.take(line(at(86, 60, "d"), 60), line(boundary(AUTO), 61))
    assert alert.kind == "pressure"


def test_the_id_of_a_pressure_alert_depends_only_on_its_epoch() -> None:
    watched = Watched(rule(Pressure(80)))
    first = watched.given.take(user(at=0), at(80, 1, "a"))
    second = watched.given.take(at(90, 2, "b"))
    (one,) = watched.observe(first)
    other = Watched(rule(Pressure(80)))
    (two,) = other.observe(second)
    assert one.id == two.id
    assert one.record_id != two.record_id
    assert Watched(rule(Pressure(80), "another")).observe(second)[0].id != one.id


def test_an_old_reading_does_not_use_up_its_epoch() -> None:
    watched = Watched(rule(Pressure(80)))
    old = watched.given.take(at(80, 1, "a"))
    now_ms = START_MS + MAX_AGE_MS + 2_000
    (late,) = watched.observe(old, now_ms)
    assert not late.is_fresh(now_ms, MAX_AGE_MS)
    (fresh,) = watched.take(at(81, MAX_AGE_MS / 1_000 + 2, "b"))
    assert fresh.id == late.id


def test_without_a_window_there_is_no_pressure() -> None:
    watched = Watched(rule(Pressure(1)))
    records = watched.given.take(assistant("a", read=300_000, at=1))
    assert record_of(records, ContextReading).data.window is None  # type: ignore[union-attr]
    assert watched.observe(records) == []


def test_an_alert_without_a_time_is_never_fresh() -> None:
    watched = Watched(rule(Pressure(50)))
    (alert,) = watched.take(assistant("a", read=180_000))
    assert alert.time_ms is None
    assert not alert.is_fresh(START_MS, MAX_AGE_MS)
    assert len(watched.take(assistant("b", read=190_000))) == 1


@pytest.mark.parametrize(
    ("filters", "is_expected"),
    [
        ({"models": Patterns(("claude-*",))}, True),
        ({"models": Patterns(("gpt-*",))}, False),
        ({"models": Patterns(("claude-*", "!*sonnet*"))}, False),
        ({"chains": Patterns((MAIN_CHAIN,))}, True),
        ({"chains": Patterns((f"!{MAIN_CHAIN}",))}, False),
        ({"sessions": Patterns((SESSION[:8] + "*",))}, True),
        ({"sessions": Patterns(("other",))}, False),
        ({"agents": Patterns(("nobody",))}, True),  # whoever knows the agent asks for that
    ],
)
def test_a_rule_is_for_some_chains(filters: dict[str, Any], is_expected: bool) -> None:
    assert bool(Watched(replace(rule(Pressure(50)), **filters)).take(at(60, 1, "a"))) is is_expected


def test_an_unknown_model_matches_no_pattern() -> None:
    assert not Patterns(("*",)).fit(None)
    assert Patterns().fit(None)


def test_a_subagent_is_a_chain_of_its_own() -> None:
    watched = Watched(rule(Pressure(80), chains=Patterns(("!main",))))
    (alert,) = watched.take(side(assistant("a", read=170_000), at=1))
    assert alert.chain == "a1b2"
    assert ", subagent a1b2 (" in sentence(alert)


def test_a_failure_alert_includes_the_error() -> None:
    watched = Watched(rule(Failed(frozenset({"failed", "blocked"}))))
    assert watched.take(compacting(at=0)) == []
    (alert,) = watched.take(failed("too_few_groups", at=9))
    assert alert.facts["outcome"] == "failed"
    assert alert.facts["duration_ms"] == 9_000
    assert sentence(alert).endswith("a compaction failed: too few messages to compact")
    assert watched.take(compacting(at=10), result(at=11)) == []
    (without,) = watched.take(failed(None, at=12))
    assert without.facts["attempt_id"] is None
    assert sentence(without).endswith("a compaction failed")
    (blocked,) = watched.take(failed("x" * 20_000 + " blocked by a PreCompact hook", at=13))
    assert len(sentence(blocked)) < 600


def test_an_unknown_outcome_is_alerted_if_the_rule_selects_it() -> None:
    watched = Watched(rule(Failed(frozenset({"unknown"}))))
    (alert,) = watched.take(compacting(at=10), result(at=11))
    assert sentence(alert).endswith("a compaction ended, and how is not known")


def test_a_stalled_attempt_is_alerted_once_and_a_heartbeat_delays_it() -> None:
    watched = Watched(rule(Stalled(2 * MINUTE_MS)), rule(Pressure(99), "other"))
    watched.take(at(80, 0, "a"), compacting(at=10))
    start_ms = START_MS + 10_000
    assert watched.watch.due(start_ms + 2 * MINUTE_MS - 1) == []
    watched.take(compacting(at=100))
    assert watched.watch.due(start_ms + 2 * MINUTE_MS) == []
    (alert,) = watched.watch.due(START_MS + 100_000 + 2 * MINUTE_MS)
    start = record_of(watched.given.records, CompactionStart)
    assert (alert.record_id, alert.time_ms) == (start.id, START_MS + 100_000)
    assert alert.facts == {
        "attempt_id": start.id,
        "started_ms": start_ms,
        "last_sign_ms": START_MS + 100_000,
        "silent_ms": 120_000,
        "used_tokens": 160_000,
        "used_percent": 80.0,
    }
    assert sentence(alert).endswith("no end and no heartbeat for 2 min")
    assert watched.watch.due(START_MS + 10 * MINUTE_MS) == []


@pytest.mark.parametrize("end", [boundary(AUTO, at=50), failed(at=50), boundary(AUTO)])
def test_an_attempt_that_ended_is_not_silent(end: Any) -> None:
    watched = Watched(rule(Stalled(MINUTE_MS)))
    watched.take(compacting(at=10), end)
    assert watched.watch.due(START_MS + 10 * MINUTE_MS) == []


def test_a_heartbeat_without_a_time_counts_by_the_logs_clock() -> None:
    watched = Watched(rule(Stalled(MINUTE_MS)))
    watched.take(compacting(at=10))
    (beat,) = watched.given.take(compacting())
    watched.watch.observe(beat, START_MS + 90_000, START_MS)
    Watch(plan()).observe(beat, START_MS + 90_000, START_MS)  # its start was long ago
    assert watched.watch.due(START_MS + 100_000) == []
    (alert,) = watched.watch.due(START_MS + 150_000)
    assert alert.time_ms == START_MS + 10_000


def test_old_attempts_are_forgotten() -> None:
    watched = Watched(rule(Stalled(MINUTE_MS)))
    watched.take(compacting(at=10))
    watched.watch.forget(START_MS + 10_000)
    assert len(watched.watch.due(START_MS + MINUTE_MS * 3)) == 1
    other = Watched(rule(Stalled(MINUTE_MS)))
    other.observe(watched.given.records)
    other.watch.forget(START_MS + 10_001)
    assert other.watch.due(START_MS + MINUTE_MS * 3) == []


def compactions(watched: Watched, *seconds: float) -> list[int]:
    return [len(watched.take(user(at=second - 1), boundary(AUTO, at=second))) for second in seconds]


def test_thrash_is_alerted_once_until_it_subsides() -> None:
    watched = Watched(rule(Thrashing(3, 10 * MINUTE_MS)))
    assert compactions(watched, 1, 100, 200, 300, 400) == [0, 0, 1, 0, 0]
    assert compactions(watched, 2_000, 2_001, 2_002) == [0, 0, 1]
    assert compactions(watched, 4_000) == [0]


def test_a_thrash_alert_includes_count_and_time_span() -> None:
    watched = Watched(rule(Thrashing(2, 90 * MINUTE_MS)))
    (alert,) = watched.take(boundary(AUTO, at=1), user(at=2), boundary(AUTO, at=3))
    assert alert.facts == {
        "compactions": 2,
        "within_ms": 90 * MINUTE_MS,
        "first_ms": START_MS + 1_000,
    }
    assert sentence(alert).endswith("it thrashes: 2 compactions within 1 h 30 min")


def test_boundaries_without_a_time_are_no_thrash() -> None:
    watched = Watched(rule(Thrashing(2, MINUTE_MS)))
    assert watched.take(boundary(AUTO), boundary(AUTO), boundary(AUTO)) == []


def test_an_exhaustion_alert_includes_the_reason() -> None:
    watched = Watched(rule(Exhaustion(frozenset({"prompt_too_long"}))))
    assert watched.take(result(at=1, terminal_reason="blocking_limit")) == []
    (alert,) = watched.take(result(at=2, terminal_reason="prompt_too_long"))
    assert alert.facts == {"reason": "prompt_too_long"}
    assert sentence(alert).endswith(
        "a turn stopped because the window was full (the prompt is too long)"
    )


def test_recalled_records_raise_no_alert_but_are_known() -> None:
    stalled, pressure = rule(Stalled(MINUTE_MS)), rule(Pressure(50), "p")
    rules = (stalled, rule(Thrashing(2, MINUTE_MS), "often"), pressure)
    before = Watched(*rules)
    before.take(init(at=0), agent_id="builder")
    before.take(boundary(AUTO, at=1), at(60, 2, "a"), compacting(at=20))
    watched = Watched(*rules)
    for record in before.given.records:
        watched.watch.recall(record, record.time_ms or START_MS)
    assert len(watched.watch.due(START_MS + 3 * MINUTE_MS)) == 1
    watched.given = before.given
    often, full = watched.take(boundary(AUTO, at=21), at(70, 22, "b"))
    assert (often.kind, full.kind, full.who.agent_id) == ("thrash", "pressure", "builder")
    watched.watch.clear()
    assert watched.watch.due(START_MS + 30 * MINUTE_MS) == []


def test_the_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "MOST_CHAINS", 2)
    watched = Watched(rule(Pressure(50)))
    records = [
        watched.given.take(side(assistant(name, read=170_000), agent=name, at=1))
        for name in ("a", "b", "c")
    ]
    ids = [watched.observe(record)[0].id for record in records]
    # The chain that was quiet for longest is reported again, under the same id.
    assert [alert.id for alert in watched.observe(records[0])] == ids[:1]
    assert watched.observe(records[2]) == []


def test_the_same_records_give_the_same_alerts() -> None:
    rules = (rule(Pressure(50)), rule(Failed(frozenset({"failed"})), "failed"))
    watched = Watched(*rules)
    alerts = watched.take(at(60, 1, "a"), compacting(at=2), failed(at=3))
    assert [alert.kind for alert in alerts] == ["pressure", "failed"]
    assert Watched(*rules).observe(watched.given.records) == alerts
    assert len({alert.id for alert in alerts}) == 2


def test_a_long_id_is_truncated_only_in_the_sentence() -> None:
    watched = Watched(rule(Pressure(50)))
    (alert,) = watched.take({**at(60, 1, "a"), "session_id": "s" * 500})
    assert len(sentence(alert)) < 400
    assert alert.session_id == "s" * 500


def test_ids_take_lone_surrogates() -> None:
    watched = Watched(rule(Pressure(50)))
    (alert,) = watched.take({**at(60, 1, "a"), "session_id": "\ud800"})
    assert len(alert.id) == 36


@pytest.mark.parametrize(
    ("silent_s", "said"), [(45, "45 s"), (600, "10 min"), (3_600, "1 h"), (3_660, "1 h 1 min")]
)
def test_times_in_words(silent_s: int, said: str) -> None:
    watched = Watched(rule(Stalled(1_000)))
    watched.watch = Watch(replace(plan(rule(Stalled(1_000))), max_age_ms=120 * MINUTE_MS))
    watched.take(compacting(at=0))
    (alert,) = watched.watch.due(START_MS + silent_s * 1_000)
    assert sentence(alert).endswith(f"for {said}")


def test_a_clock_that_is_ahead_hides_no_silence() -> None:
    watched = Watched(rule(Stalled(MINUTE_MS)))
    (start,) = watched.given.take(compacting(at=3_600))
    watched.watch.observe(start, START_MS, START_MS)
    assert len(watched.watch.due(START_MS + MINUTE_MS)) == 1


def test_an_attempt_too_old_to_alert_is_alerted_after_a_new_heartbeat_and_silence() -> None:
    watched = Watched(rule(Stalled(MINUTE_MS)))
    (start,) = watched.given.take(compacting(at=0))
    watched.watch.observe(start, START_MS, START_MS)
    assert watched.watch.due(START_MS + MAX_AGE_MS + 1) == []
    (*_, beat) = watched.given.take(*(compacting(at=second) for second in range(250, 1_001, 250)))
    watched.watch.observe(beat, START_MS + 1_000_000, START_MS + 1_000_000)
    assert len(watched.watch.due(START_MS + 1_000_000 + MINUTE_MS)) == 1


@pytest.mark.parametrize(
    ("time_s", "elapsed_ms", "started_ms"),
    [(2_000, 2_000_000, START_MS), (2_000, None, None), (None, 2_000_000, None)],
)
def test_an_attempt_whose_start_is_not_read_back_is_known_by_its_heartbeat(
    time_s: int | None, elapsed_ms: int | None, started_ms: int | None
) -> None:
    watched, other = Watched(rule(Stalled(MINUTE_MS))), Watched(rule(Stalled(MINUTE_MS)))
    (start,) = watched.take(compacting(at=0)) or watched.given.records[-1:]
    (due,) = watched.watch.due(START_MS + MINUTE_MS)
    (beat,) = watched.given.take(compacting())
    assert isinstance(beat.data, CompactionProgress)
    data = replace(beat.data, elapsed_ms=elapsed_ms)
    beat = replace(beat, time_ms=None if time_s is None else START_MS + time_s * 1_000, data=data)
    other.watch.recall(beat, START_MS + 2_000_000)
    (alert,) = other.watch.due(START_MS + 2_000_000 + MINUTE_MS)
    assert (alert.id, alert.record_id, alert.record_type) == (due.id, start.id, due.record_type)
    assert (alert.facts["started_ms"], alert.facts["used_tokens"]) == (started_ms, None)
