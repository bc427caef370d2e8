"""What the runtimes' own settings say of the next automatic compaction."""

import pytest

from contextgauge.normalise.claude_code.settings import STANDARD_WINDOW, cut_window, is_window
from contextgauge.normalise.settings import ExpectedPoint, RuntimeSettings, Sourced
from streams.core.runtime_settings import expected, has_any

MILLION = 1_000_000
FILE = "~/.claude/settings.json"
VARIABLE = "CLAUDE_CODE_AUTO_COMPACT_WINDOW"
OPUS = "claude-opus-4-7"


def claude(**fields: object) -> RuntimeSettings:
    return RuntimeSettings("claude-code", **fields)  # type: ignore[arg-type]  # fields by name


def codex(**fields: object) -> RuntimeSettings:
    return RuntimeSettings("codex", **fields)  # type: ignore[arg-type]  # fields by name


@pytest.mark.parametrize(
    ("settings", "window", "is_reported", "wanted"),
    [
        # A smaller window than the model's is compacted as such a window would be.
        (
            claude(window=Sourced(833_000, FILE)),
            MILLION,
            False,
            ExpectedPoint(800_000, FILE, estimated=False),
        ),
        (
            claude(window=Sourced(400_000, FILE)),
            MILLION,
            True,
            ExpectedPoint(367_000, FILE, estimated=False),
        ),
        # One that is larger changes nothing: the model's own is compacted.
        (
            claude(window=Sourced(400_000, FILE)),
            200_000,
            True,
            ExpectedPoint(167_000, FILE, estimated=False),
        ),
        (
            claude(window=Sourced(400_000, FILE)),
            200_000,
            False,
            ExpectedPoint(167_000, FILE, estimated=True),
        ),
        (
            claude(window=Sourced(400_000, FILE)),
            None,
            False,
            ExpectedPoint(367_000, FILE, estimated=True),
        ),
        # A percentage can only lower the point, and some versions ignore it.
        (
            claude(percent=Sourced(50, "P")),
            200_000,
            True,
            ExpectedPoint(90_000, "P", estimated=True),
        ),
        (
            claude(percent=Sourced(95, "P")),
            200_000,
            True,
            ExpectedPoint(167_000, "P", estimated=True),
        ),
        (claude(percent=Sourced(50, "P")), None, False, None),
        (
            claude(percent=Sourced(50, "P"), window=Sourced(400_000, FILE)),
            MILLION,
            False,
            ExpectedPoint(190_000, f"{FILE} and P", estimated=True),
        ),
        (
            claude(percent=Sourced(50, FILE), window=Sourced(400_000, FILE)),
            MILLION,
            False,
            ExpectedPoint(190_000, FILE, estimated=True),
        ),
        # Without windows of a million the catalog's is too large, a reported one is what it is.
        (
            claude(largest_window=Sourced(STANDARD_WINDOW, "D")),
            MILLION,
            False,
            ExpectedPoint(167_000, "D", estimated=False),
        ),
        (
            claude(largest_window=Sourced(STANDARD_WINDOW, "D")),
            None,
            False,
            ExpectedPoint(167_000, "D", estimated=True),
        ),
        (claude(largest_window=Sourced(STANDARD_WINDOW, "D")), MILLION, True, None),
        (claude(largest_window=Sourced(STANDARD_WINDOW, "D")), 200_000, False, None),
        (claude(), MILLION, True, None),
        (claude(percent=Sourced(50, "P")), 9_000, True, None),
        (
            claude(enabled=Sourced(value=False, source=FILE)),
            MILLION,
            True,
            ExpectedPoint(None, FILE, estimated=False),
        ),
        (claude(enabled=Sourced(value=True, source=FILE)), MILLION, True, None),
        # Codex counts by a window of which it reports 95 %, and takes nine tenths of it at most.
        (
            codex(limit=Sourced(200_000, "C")),
            258_400,
            True,
            ExpectedPoint(200_000, "C", estimated=False),
        ),
        (
            codex(limit=Sourced(300_000, "C")),
            258_400,
            True,
            ExpectedPoint(244_800, "C", estimated=True),
        ),
        (
            codex(limit=Sourced(300_000, "C")),
            272_000,
            False,
            ExpectedPoint(244_800, "C", estimated=True),
        ),
        (
            codex(limit=Sourced(300_000, "C")),
            None,
            False,
            ExpectedPoint(300_000, "C", estimated=False),
        ),
        (
            codex(limit=Sourced(9, "C"), is_partial=True),
            272_000,
            True,
            ExpectedPoint(9, "C", estimated=True),
        ),
        (
            codex(context_window=Sourced(400_000, "C")),
            None,
            False,
            ExpectedPoint(360_000, "C", estimated=True),
        ),
        (
            codex(context_window=Sourced(400_000, "C")),
            380_000,
            True,
            ExpectedPoint(360_000, "C", estimated=True),
        ),
        (codex(), 258_400, True, None),
    ],
)
def test_settings_say_where_a_compaction_begins(
    settings: RuntimeSettings,
    window: int | None,
    wanted: ExpectedPoint | None,
    *,
    is_reported: bool,
) -> None:
    assert expected(settings, OPUS, window, is_reported=is_reported) == wanted


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        (OPUS, 267_000),
        ("claude-sonnet-5-20261001", 467_000),
        ("claude-sonnet-5", 467_000),
        ("claude-haiku-4-5", 767_000),
        (None, 767_000),
    ],
)
def test_a_window_by_model_comes_before_that_of_all(model: str | None, tokens: int) -> None:
    settings = claude(
        window=Sourced(800_000, FILE),
        windows=(
            ("opus", Sourced(300_000, FILE)),
            ("claude-sonnet", Sourced(600_000, FILE)),
            ("claude-sonnet-5", Sourced(500_000, FILE)),
        ),
    )
    assert expected(settings, model, MILLION, is_reported=True) == ExpectedPoint(
        tokens, FILE, estimated=False
    )
    of_variable = settings._replace(window=Sourced(900_000, VARIABLE), has_variable=True)
    told = expected(of_variable, model, MILLION, is_reported=True)
    assert told == ExpectedPoint(867_000, VARIABLE, estimated=False)


def test_windows_are_cut_in_variables_and_refused_in_files() -> None:
    assert [cut_window(tokens) for tokens in (1, 300_000, 9_000_000)] == [100_000, 300_000, MILLION]
    assert is_window(100_000)
    assert not any(map(is_window, (99_999, 1_000_001, "300000", 3e5, True, None)))


def test_nothing_set_is_nothing() -> None:
    assert not has_any(claude(has_variable=True))
    assert has_any(claude(windows=(("opus", Sourced(300_000, FILE)),)))
