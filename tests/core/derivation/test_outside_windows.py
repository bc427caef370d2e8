"""Windows that a reader knows from elsewhere: below what is reported, above the table."""

from schemas.records import ContextLimits, ContextReading
from streams.core.derivation.outside_windows import with_windows
from streams.core.derivation.state import Session
from streams.core.derivation.stored_state import pack, unpack
from streams.flow.derive.deriver import Deriver
from tests.core.given import (
    MILLION,
    MODEL,
    RULES,
    SESSION,
    Given,
    assistant,
    limits,
    model_window,
    one,
    result,
    session,
)

OUTSIDE = {MODEL: MILLION}


def knowing(before: Session | None = None) -> Given:
    given = Given()
    given.deriver = Deriver(RULES, stored=lambda _: with_windows(before, OUTSIDE))
    return given


def test_a_window_known_from_elsewhere_comes_before_the_table() -> None:
    records = knowing().take(assistant("a", read=190_000))
    assert limits(one(records, ContextLimits)) == (MILLION, "runtime")
    assert one(records, ContextReading).used_percent == 19.0


def test_a_reported_window_comes_first_and_a_larger_size_disproves_another() -> None:
    given = knowing()
    given.take(result({MODEL: model_window(500_000)}))
    assert one(given.take(assistant("a", read=9)), ContextReading).window == 500_000
    reading = one(knowing().take(assistant("a", read=MILLION + 1)), ContextReading)
    assert (reading.window, reading.window_source) == (None, "exceeded")


def test_a_window_that_becomes_known_replaces_one_that_was_disproved() -> None:
    before = session(assistant("a", read=250_000)).session()
    reading = one(knowing(before).take(assistant("b", read=251_000)), ContextReading)
    assert (reading.window, reading.window_source) == (MILLION, "runtime")


def test_nothing_new_leaves_a_session_as_it_is() -> None:
    assert with_windows(None, {}) is None
    known = with_windows(None, OUTSIDE)
    assert known is not None
    assert with_windows(known, OUTSIDE) is known
    assert with_windows(known, {}) is known
    parts = {name: part for name, part in pack(None, known).items() if part is not None}
    assert unpack(SESSION, parts).facts.outside_windows == OUTSIDE
