"""What the runtimes' own settings say of the next automatic compaction."""

from functools import partial

import pytest

from contextgauge.normalise.claude_code.settings import STANDARD_WINDOW, cut_window, is_window
from contextgauge.runtime_settings import ExpectedPoint, RuntimeSettings, Sourced
from streams.core.runtime_settings import expected, has_any

MILLION = 1_000_000
FILE = "~/.claude/settings.json"
VARIABLE = "CLAUDE_CODE_AUTO_COMPACT_WINDOW"
OPUS = "claude-opus-4-7"

exact = partial(ExpectedPoint, source=FILE, estimated=False)
about = partial(ExpectedPoint, source=FILE, estimated=True)
off = exact(None)


def claude(**fields: object) -> RuntimeSettings:
    return RuntimeSettings("claude-code", **fields)  # type: ignore[arg-type]  # fields by name


def codex(**fields: object) -> RuntimeSettings:
    return RuntimeSettings("codex", **fields)  # type: ignore[arg-type]  # fields by name


def of(value: float, source: str = FILE) -> Sourced:
    return Sourced(value, source)


STANDARD = claude(largest_window=of(STANDARD_WINDOW))


@pytest.mark.parametrize(
    ("settings", "window", "is_reported", "wanted"),
    [
        # A smaller window than the model's is compacted as such a window would be.
        (claude(window=of(833_000)), MILLION, False, exact(800_000)),
        (claude(window=of(400_000)), MILLION, True, exact(367_000)),
        # One that is larger changes nothing: the model's own is compacted.
        (claude(window=of(400_000)), 200_000, True, exact(167_000)),
        (claude(window=of(400_000)), 200_000, False, about(167_000)),
        (claude(window=of(400_000)), None, False, about(367_000)),
        # A percentage can only lower the point, and some versions ignore it.
        (claude(percent=of(50)), 200_000, True, about(90_000)),
        (claude(percent=of(95)), 200_000, True, about(167_000)),
        (claude(percent=of(50)), None, False, None),
        (claude(percent=of(50), window=of(400_000)), MILLION, False, about(190_000)),
        (
            claude(percent=of(50, "P"), window=of(400_000)),
            MILLION,
            False,
            about(190_000, source=f"{FILE} and P"),
        ),
        # Without windows of a million the catalog's is too large, a reported one is what it is.
        (STANDARD, MILLION, False, exact(167_000)),
        (STANDARD, None, False, about(167_000)),
        (STANDARD, MILLION, True, None),
        (STANDARD, 200_000, False, None),
        (claude(), MILLION, True, None),
        (claude(percent=of(50)), 9_000, True, None),
        (claude(enabled=of(value=False)), MILLION, True, off),
        (claude(enabled=of(value=True)), MILLION, True, None),
        # Codex counts by a window of which it reports 95 %, and takes nine tenths of it at most.
        (codex(limit=of(200_000)), 258_400, True, exact(200_000)),
        (codex(limit=of(300_000)), 258_400, True, about(244_800)),
        (codex(limit=of(300_000)), 272_000, False, about(244_800)),
        (codex(limit=of(300_000)), None, False, exact(300_000)),
        (codex(limit=of(9), is_partial=True), 272_000, True, about(9)),
        (codex(context_window=of(400_000)), None, False, about(360_000)),
        (codex(context_window=of(400_000)), 380_000, True, about(360_000)),
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
    point = expected(of_variable, model, MILLION, is_reported=True)
    assert point == ExpectedPoint(867_000, VARIABLE, estimated=False)


def test_windows_are_cut_in_variables_and_refused_in_files() -> None:
    assert [cut_window(tokens) for tokens in (1, 300_000, 9_000_000)] == [100_000, 300_000, MILLION]
    assert is_window(100_000)
    assert not any(map(is_window, (99_999, 1_000_001, "300000", 3e5, True, None)))


def test_nothing_set_is_nothing() -> None:
    assert not has_any(claude(has_variable=True))
    assert has_any(claude(windows=(("opus", Sourced(300_000, FILE)),)))
