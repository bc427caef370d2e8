"""What a status line tells: figures of a view, and what Claude Code knows better."""

from dataclasses import replace
from typing import Any

import pytest

from schemas.records import WindowSource
from schemas.views import (
    AttemptView,
    ChainView,
    CompactionBrief,
    CompactionsView,
    Identity,
    SessionView,
)
from streams.cli.statusline.figures import (
    NO_INPUT,
    ClaudeInput,
    Figures,
    figures_of,
    read_input,
)
from streams.core.derivation.readings import used_percent
from streams.core.until_compaction import NO_POINTS, CompactionPoints, Threshold
from tests.cases.views import ATTEMPT, BRIEF, SESSION


def document(
    attempt: AttemptView | None = None, last: tuple[CompactionBrief, ...] = (), **chain: Any
) -> SessionView:
    return replace(
        SESSION,
        identity=Identity(model="gpt-5"),
        chains={"main": ChainView(chain="main", **chain)} if chain else {},
        attempt=attempt,
        compactions=CompactionsView(manual=1, automatic=2, unknown_trigger=3, failed=4, last=last),
    )


def brief(tokens_before: int, window: int | None) -> CompactionBrief:
    return replace(BRIEF, tokens_before=tokens_before, model="m", window=window)


def measured(
    source: WindowSource | None = "catalog",
    window: int | None = 200_000,
    claude: ClaudeInput = NO_INPUT,
) -> Figures:
    percent = None if window is None else used_percent(60_000, window)
    view = document(
        model="m",
        state="measured",
        used_tokens=60_000,
        used_percent=percent,
        window=window,
        window_source=source,
    )
    return figures_of(view, NO_POINTS, claude)


def test_figures_of_a_view() -> None:
    figures = figures_of(
        document(
            replace(ATTEMPT, started_ms=5, last_heartbeat_ms=7),
            model="m",
            state="compacting",
            used_tokens=9,
        )
    )
    assert (figures.model, figures.state, figures.used_tokens) == ("m", "compacting", 9)
    assert (figures.attempt_started_ms, figures.attempt_heartbeat_ms) == (5, 7)
    assert (figures.compactions, figures.last_duration_ms) == (6, None)
    unknown = figures_of(document())
    assert (unknown.model, unknown.state, unknown.used_tokens) == ("gpt-5", "unknown", None)


def test_inherited_compactions_are_not_the_sessions_own() -> None:
    inherited = replace(brief(9, None), inherited=True, duration_ms=5)
    assert figures_of(document(last=(inherited,))).last_duration_ms is None


def test_tokens_until_compaction_are_of_the_best_source() -> None:
    view = document(model="m", used_tokens=100_000, window=200_000)
    points = CompactionPoints(learned=(("m", 160_000),))
    learned = figures_of(view, points)
    assert (learned.until_compaction_tokens, learned.until_is_estimated) == (60_000, True)
    configured = CompactionPoints((("m", Threshold(tokens=150_000)),))
    assert not figures_of(view, configured).until_is_estimated
    reported = document(model="m", used_tokens=100_000, auto_compact_threshold=190_000)
    assert figures_of(reported, points).until_compaction_tokens == 90_000
    off = document(model="m", used_tokens=100_000, auto_compact_enabled=False)
    assert figures_of(off, points).until_compaction_tokens is None


def test_a_claude_code_window_overrides_only_assumed_windows() -> None:
    claude = ClaudeInput(window=100_000)
    assert measured("configured", claude=claude).window == 200_000
    assert measured("runtime", claude=claude).window == 200_000
    for source in ("catalog", "default"):
        better = measured(source, claude=claude)
        assert (better.window, better.window_source, better.used_percent) == (
            100_000,
            "runtime",
            60.0,
        )
    assert measured("exceeded", None, claude).used_percent == 60.0
    assert measured(claude=ClaudeInput()) == measured()


def test_tokens_until_compaction_are_those_of_the_window_from_claude_code() -> None:
    larger = ClaudeInput(window=1_000_000)
    view = document(model="m", used_tokens=150_000, window=200_000, window_source="catalog")
    percentage = CompactionPoints((("m", Threshold(percent=80.0)),), (("m", 160_000),))
    assert figures_of(view, percentage).until_compaction_tokens == 10_000
    assert figures_of(view, percentage, larger).until_compaction_tokens == 650_000
    learned = CompactionPoints(learned=(("m", 167_000),))
    assert figures_of(view, learned).until_compaction_tokens == 17_000
    assert figures_of(view, learned, larger).until_compaction_tokens is None
    chain: dict[str, Any] = {"model": "m", "used_tokens": 150_000, "window": 200_000}
    own = document(last=(brief(167_000, None),), **chain, window_source="catalog")
    assert figures_of(own, NO_POINTS, larger).until_compaction_tokens is None
    view = document(**chain, window_source="default")
    assumed = figures_of(view, percentage)
    assert (assumed.until_compaction_tokens, assumed.until_is_estimated) == (10_000, True)
    assert figures_of(view, percentage, larger).until_is_estimated is False


def test_a_window_smaller_than_the_used_size_is_discarded() -> None:
    figures = measured(claude=ClaudeInput(window=50_000))
    assert (figures.window, figures.window_source, figures.used_percent) == (None, "exceeded", None)
    assert measured(claude=ClaudeInput(window=60_000)).used_percent == 100.0


@pytest.mark.parametrize("window", [60_000, 60_001, 123_457, 199_999, 1_000_000])
def test_a_percentage_is_floored_as_in_the_records(window: int) -> None:
    figures = measured(claude=ClaudeInput(window=window))
    assert figures.used_percent == used_percent(60_000, window)


def test_without_a_measured_size_only_the_window_is_used() -> None:
    claude = ClaudeInput(window=5_000, used_tokens=900)
    figures = figures_of(document(model="m"), NO_POINTS, claude)
    assert (figures.state, figures.used_tokens, figures.window) == ("unknown", None, 5_000)


def test_claude_code_input_is_parsed() -> None:
    usage = {
        "input_tokens": 5,
        "output_tokens": 7_000,
        "cache_creation_input_tokens": 1_000,
        "cache_read_input_tokens": 20_000,
    }
    given = {
        "session_id": "s",
        "transcript_path": "t",
        "model": {"id": "claude-opus-4-5", "display_name": "Opus 4.5"},
        "context_window": {
            "context_window_size": 200_000,
            "used_percentage": 10.5,
            "current_usage": usage,
        },
    }
    assert read_input(given) == ClaudeInput(
        "s", "t", "claude-opus-4-5", "Opus 4.5", 200_000, 21_005, 10.5
    )
    assert read_input({}) == NO_INPUT
    nothing = {"context_window": {"current_usage": dict.fromkeys(usage, 0), "used_percentage": 0}}
    assert read_input(nothing) == read_input({})


def test_r33_a_contradicted_window_is_doubtful() -> None:
    chain: dict[str, Any] = {
        "used_tokens": 150_000,
        "window": 1_000_000,
        "window_source": "catalog",
    }
    unknown = document(model="m", last=(brief(167_500, None),) * 2, **chain)
    assert not figures_of(unknown).window_is_doubtful
    view = document(model="m", last=(brief(167_500, 1_000_000),) * 2, **chain)
    figures = figures_of(view)
    assert (figures.window_is_doubtful, figures.until_compaction_tokens) == (True, 17_500)
    reported = figures_of(view, NO_POINTS, ClaudeInput(window=1_000_000))
    assert (reported.window_is_doubtful, reported.until_compaction_tokens) == (False, 17_500)
