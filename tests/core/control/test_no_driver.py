"""Sessions of a runtime that compacts itself: what the service does would have no effect."""

from typing import Any

import pytest

from contextgauge.normalise.runtimes import COMPACTING_THEMSELVES, RUNTIMES
from schemas.records import ContextReading, Record
from streams.core.alerts.rules import Patterns
from streams.core.control.thresholds import SessionRule
from tests.core.control.trigger_kit import ON, Deciding, after, at, init, reasons, requests
from tests.core.given import SESSION
from tests.core.given import init as claude

BY_DRIVER = SessionRule(automatic=True, driver="claude-code")


def _reading(deciding: Deciding, body: Any) -> Record:
    """Derive a reading, and do not evaluate it."""
    records = deciding.given.take(body)
    return next(each for each in records if isinstance(each.data, ContextReading))


def test_a_session_of_a_runtime_that_compacts_itself_is_not_compacted_by_the_service() -> None:
    deciding = Deciding(ON)
    entries = deciding.take(claude(at=0), at(86, 1), at(99, 2))
    assert reasons(entries) == ["no_driver"]
    assert requests(entries) == []
    assert deciding.trigger.due(after(60)) == []


def test_its_own_driver_compacts_it() -> None:
    deciding = Deciding(BY_DRIVER)
    assert len(requests(deciding.take(claude(at=0), at(86, 1)))) == 1


def test_it_is_compacted_once_its_agent_asks_for_its_context() -> None:
    deciding = Deciding(ON)
    deciding.take(claude(at=0), at(86, 1))
    trigger = deciding.trigger
    assert trigger.unidentified(after(1)) == [SESSION]
    trigger.identify(SESSION, None, None, after(1), runtime="claude-code")
    assert trigger.unidentified(after(2)) == []  # it was looked up a moment ago
    assert trigger.due(after(2)) == []
    assert trigger.unidentified(after(62)) == [SESSION]
    trigger.identify(SESSION, None, None, after(62), runtime="claude-code", asks=True)
    assert len(requests(trigger.due(after(63)))) == 1
    assert trigger.unidentified(after(200)) == []


def test_what_runs_a_session_is_looked_up_where_the_service_would_compact_it() -> None:
    deciding = Deciding(ON)
    deciding.take(at(50, 1), at(60, 2))
    below, above = deciding.records[-1], _reading(deciding, at(86, 3))
    trigger, now_ms = deciding.trigger, after(3)
    assert not trigger.needs_identity(below, now_ms, now_ms)
    assert trigger.needs_identity(above, now_ms, now_ms)
    trigger.identify(SESSION, None, None, now_ms, runtime="codex")
    assert reasons(deciding.observe([above])) == ["no_driver"]


@pytest.mark.parametrize(
    "rule", [BY_DRIVER, SessionRule(sessions=Patterns(("another",)), automatic=True)]
)
def test_nothing_is_looked_up_of_what_the_service_would_not_compact(rule: SessionRule) -> None:
    deciding = Deciding(rule)
    above = _reading(deciding, at(86, 1))
    assert not deciding.trigger.needs_identity(above, after(1), after(1))


def test_an_agent_of_ones_own_is_compacted_without_being_looked_up() -> None:
    deciding = Deciding(ON)
    deciding.take(init(at=0))
    above = _reading(deciding, at(86, 1))
    assert not deciding.trigger.needs_identity(above, after(1), after(1))
    assert len(requests(deciding.observe([above]))) == 1


def test_what_is_read_back_waits_until_it_is_known_what_runs_it() -> None:
    before = Deciding(ON)
    before.take(claude(at=0), at(50, 1))
    other = Deciding(ON)
    other.trigger.recall(_reading(before, at(86, 2)), after(2))
    assert other.trigger.due(after(3)) == []
    assert other.trigger.unidentified(after(4)) == [SESSION]
    other.trigger.identify(SESSION, None, None, after(4), runtime="claude-code")
    assert requests(other.trigger.due(after(5))) == []


def test_agents_of_ones_own_are_no_runtime_that_compacts_itself() -> None:
    assert {row.runtime for row in RUNTIMES if row.is_read} == COMPACTING_THEMSELVES
    assert COMPACTING_THEMSELVES.isdisjoint({None, "other", "openai"})
