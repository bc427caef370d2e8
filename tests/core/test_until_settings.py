"""The runtimes' own settings against what a session did: which says where it is compacted."""

from dataclasses import replace
from typing import Any

from contextgauge.runtime_settings import RuntimeSettings, Sourced
from schemas.views import ChainView, Identity
from streams.core.runtime_settings import read_settings, written
from streams.core.until_compaction import (
    NO_POINTS,
    CompactionPoints,
    SessionPoint,
    settings_of,
    switched_off_by,
    until_compaction,
)

CHAIN = ChainView(chain="main", model="claude-sonnet-5", used_tokens=100_000, window=200_000)
FILE = "~/.claude/settings.json"


def own_settings(tokens: int) -> RuntimeSettings:
    return RuntimeSettings("claude-code", window=Sourced(tokens, FILE))


def test_the_runtimes_own_settings_say_where_it_compacts() -> None:
    chain = replace(CHAIN, window=1_000_000, window_source="catalog", used_tokens=300_000)
    until = until_compaction(chain, None, NO_POINTS, own_settings(400_000))
    assert until is not None
    assert (until.tokens, until.threshold_tokens) == (67_000, 367_000)
    assert (until.source, until.setting, until.estimated) == ("settings", FILE, False)


def test_what_a_session_did_is_compared_with_its_settings() -> None:
    chain = replace(CHAIN, window=1_000_000, window_source="catalog", used_tokens=100_000)
    settings = own_settings(400_000)
    # As the settings say, or once otherwise: they count, with a mark where they may be wrong.
    for point, estimated in (
        (SessionPoint(365_000, repeated=True), False),
        (SessionPoint(167_000), True),
    ):
        until = until_compaction(chain, point, NO_POINTS, settings)
        assert until is not None
        assert (until.source, until.threshold_tokens) == ("settings", 367_000)
        assert until.estimated is estimated
    # Otherwise repeatedly: that counts.
    until = until_compaction(chain, SessionPoint(167_000, repeated=True), NO_POINTS, settings)
    assert until is not None
    assert (until.source, until.threshold_tokens) == ("learned_session", 167_000)
    # A size far above disproves them.
    assert until_compaction(replace(chain, used_tokens=500_000), None, NO_POINTS, settings) is None


def test_settings_switch_compaction_off_unless_the_session_compacted() -> None:
    chain = replace(CHAIN, window=200_000, window_source="catalog", used_tokens=100_000)
    off = RuntimeSettings("claude-code", enabled=Sourced(value=False, source=FILE))
    points = CompactionPoints(learned=((str(chain.model), 167_000),))
    assert until_compaction(chain, None, points, off) is None
    assert switched_off_by(chain, None, off) == FILE
    until = until_compaction(chain, SessionPoint(167_000), points, off)
    assert until is not None
    assert until.source == "learned_session"
    assert switched_off_by(chain, SessionPoint(167_000), off) is None
    assert switched_off_by(chain, None, None) is None
    assert switched_off_by(chain, None, own_settings(400_000)) is None
    assert switched_off_by(replace(chain, auto_compact_enabled=True), None, off) is None
    assert switched_off_by(replace(chain, auto_compact_threshold=9), None, off) is None


def test_settings_are_those_of_the_runtime_and_the_folder() -> None:
    settings = own_settings(400_000)
    points = CompactionPoints(settings=((("claude-code", "/p"), settings),))
    assert settings_of(Identity(runtime="claude-code", cwd="/p"), points) == settings
    assert settings_of(Identity(runtime="claude-code", cwd="/q"), points) is None
    assert settings_of(Identity(runtime="codex", cwd="/p"), points) is None


def test_settings_are_read_as_they_were_written() -> None:
    settings = RuntimeSettings(
        "claude-code",
        enabled=Sourced(value=True, source=FILE),
        window=Sourced(150_000, FILE),
        windows=(("opus", Sourced(400_000, FILE)),),
        percent=Sourced(62.5, "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE"),
        largest_window=Sourced(200_000, FILE),
        has_variable=True,
    )
    assert read_settings("claude-code", written(settings)) == settings
    codex = RuntimeSettings("codex", limit=Sourced(90_000, "c"), is_partial=True)
    assert read_settings("codex", written(codex)) == codex
    assert written(None) == {}
    assert read_settings("gemini", written(codex)) is None


def test_settings_of_another_shape_count_as_not_set() -> None:
    wrong = {
        "window": 150_000,
        "percent": {"value": "half", "source": "x"},
        "limit": {"value": 5},
        "windows": [1],
        "is_partial": "yes",
    }
    assert read_settings("codex", wrong) == RuntimeSettings("codex")
    assert read_settings("codex", {"windows": {"opus": 1}}) == RuntimeSettings("codex")


def test_published_settings_come_before_what_the_reader_finds() -> None:
    published: Any = written(own_settings(150_000))
    identity = Identity(runtime="claude-code", cwd="/srv", compaction_settings=published)
    points = CompactionPoints(settings=((("claude-code", "/srv"), own_settings(400_000)),))
    assert settings_of(identity, points) == own_settings(150_000)
    unpublished = replace(identity, compaction_settings=None)
    assert settings_of(unpublished, points) == own_settings(400_000)
