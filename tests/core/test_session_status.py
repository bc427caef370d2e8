"""The judgement of a session: verdicts by the table of cases, and the instants of change."""

from dataclasses import replace

import pytest

from schemas.views import CompactionsView, Identity
from streams.core.session_status import (
    BANDS,
    THRESHOLDS,
    band_of,
    is_live,
    is_unrecognised,
    leading_chain,
    status_of,
    whole_percents,
)
from tests.cases.session_status import (
    CASES,
    HALF,
    MINUTE,
    NOW_MS,
    Case,
    attempt,
    chain,
    compacted,
    session,
)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_each_case_has_its_verdict(case: Case) -> None:
    status = status_of(case.view)
    verdict = (
        status.leading_chain,
        status.state(NOW_MS),
        status.severity,
        status.is_thrashing(NOW_MS),
    )
    assert verdict == (case.leading, case.state, case.severity, case.thrashing)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_a_document_has_the_verdicts_of_its_time(case: Case) -> None:
    status = status_of(case.view)
    document = status.document(NOW_MS)
    assert set(document) == {*status._fields, "state", "thrashing"} - {"settled"}
    assert (document["state"], document["thrashing"]) == (case.state, case.thrashing)
    assert (document["severity"], document["thrash"] is None) == (
        case.severity,
        status.thrash is None,
    )


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_verdicts_change_at_the_next_instant_and_not_before(case: Case) -> None:
    status = status_of(case.view)
    change_ms = status.next_change_ms(NOW_MS)
    verdict = (status.state(NOW_MS), status.is_thrashing(NOW_MS))
    if change_ms is None:
        later_ms = NOW_MS + 10**9
        assert (status.state(later_ms), status.is_thrashing(later_ms)) == verdict
    else:
        assert (status.state(change_ms - 1), status.is_thrashing(change_ms - 1)) == verdict
        assert (status.state(change_ms), status.is_thrashing(change_ms)) != verdict


def test_each_chain_has_a_severity() -> None:
    view = session(HALF, chain(85.0, "a"), chain(None, "b"))
    assert status_of(view).severities == {"main": "normal", "a": "high", "b": "unknown"}


def test_the_latest_thrash_is_known_when_it_is_over() -> None:
    last = compacted(99 * MINUTE, 98 * MINUTE, 97 * MINUTE, 60 * MINUTE, 0)
    status = status_of(session(HALF, last=last))
    assert status.thrash is not None
    assert status.thrash.compactions == THRESHOLDS.thrash_compactions
    assert status.thrash.last_ms - status.thrash.first_ms == 2 * MINUTE
    assert not status.is_thrashing(NOW_MS)


def test_a_span_of_the_whole_window_is_no_thrash() -> None:
    assert status_of(session(HALF, last=compacted(15 * MINUTE, 7 * MINUTE, 0))).thrash is None


def test_compactions_without_a_time_are_no_thrash() -> None:
    last = tuple(replace(brief, time_ms=None) for brief in compacted(2, 1, 0))
    assert status_of(session(HALF, last=last)).thrash is None


def test_silence_is_counted_from_the_last_sign() -> None:
    status = status_of(session(HALF, attempt=attempt(5 * MINUTE, MINUTE)))
    assert status.silent_ms(NOW_MS) == MINUTE
    assert status.silent_ms(NOW_MS - 2 * MINUTE) == 0  # a clock that is behind
    assert status_of(session(HALF, attempt=attempt(None))).silent_ms(NOW_MS) is None


def test_a_session_is_live_until_it_is_stale() -> None:
    view = replace(session(HALF), last_ms=NOW_MS)
    assert is_live(view, NOW_MS + THRESHOLDS.stale_after_ms - 1)
    assert not is_live(view, NOW_MS + THRESHOLDS.stale_after_ms)
    assert not is_live(replace(view, last_ms=None), NOW_MS)
    abandoned = replace(session(HALF, attempt=attempt(40 * MINUTE)), last_ms=NOW_MS - 40 * MINUTE)
    assert not is_live(abandoned, NOW_MS)


@pytest.mark.parametrize("hundredths", [0, 1, 99, 100, 8_250, 8_299, 9_999, 10_000, 10_450])
def test_whole_percentages_are_floored_and_add_up(hundredths: int) -> None:
    used, remaining = whole_percents(hundredths / 100)
    assert used == hundredths // 100
    assert used + remaining == 100


def test_bands_are_those_of_the_leading_chain() -> None:
    shares = (0.5, 49.9, 50, 79.9, 80, 90, 99.9, 100)
    bands = [band_of(leading_chain(session(chain(share)))) for share in shares]
    assert bands == [
        "below_50", "below_50", "50_to_80", "50_to_80", "80_to_90", "90_to_100", "90_to_100",
        "over_100",
    ]  # fmt: skip
    assert band_of(None) == band_of(chain(None)) == "unknown"
    assert {*bands, "unknown"} == set(BANDS)


def test_a_session_of_no_known_runtime_is_recognised_by_its_figures() -> None:
    unknown = chain(None)
    unknown = replace(unknown, window=None, window_source=None)
    nobody = replace(session(unknown), identity=Identity())
    assert is_unrecognised(nobody)
    other = replace(nobody, identity=Identity(runtime="other", cwd="/repo"))
    assert is_unrecognised(other)
    assert is_unrecognised(replace(other, chains={}))
    for known in (Identity(runtime="codex"), Identity(cwd="/repo")):
        assert not is_unrecognised(replace(nobody, identity=known))
    for each in (chain(50), chain(None, peak=9), replace(unknown, auto_compact_threshold=9)):
        assert not is_unrecognised(replace(session(each), identity=other.identity))
    window = replace(unknown, window=200_000, window_source="runtime")
    assert not is_unrecognised(replace(other, chains={"main": window}))
    assumed = replace(window, window_source="default")
    assert is_unrecognised(replace(other, chains={"main": assumed}))
    none = CompactionsView()
    for counts in (replace(none, manual=1), replace(none, failed=1), replace(none, inherited=1)):
        assert not is_unrecognised(replace(other, compactions=counts))
    assert not is_unrecognised(replace(other, attempt=attempt(None)))
