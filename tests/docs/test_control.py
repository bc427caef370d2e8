"""docs/CONTROL.md matches the code: its file is valid, its reasons and keys are all there are."""

import tomllib
from typing import get_args

from contextgauge.compaction.profiles import PROFILES
from schemas.commands import CommandOutcome
from streams.core.control.check import ServicePlan, check_service
from streams.core.control.reasons import MEANINGS, REASONS, FiredReason
from streams.core.control.thresholds import SessionThresholds, Subject, ThresholdBook, written
from streams.core.until_compaction import Threshold
from tests.docs.test_docs import DOCS, _blocks, _rows, _section

TEXT = (DOCS / "CONTROL.md").read_text(encoding="utf-8")


def test_the_example_is_a_valid_file() -> None:
    (example,) = _blocks(TEXT, "toml")
    plan, faults = check_service(tomllib.loads(example))
    assert faults == []
    assert plan is not None
    book = ThresholdBook(plan.rules)
    thresholds = book.of(Subject("s", "reviewer", "/repos/app"))
    assert (thresholds.automatic, thresholds.compact_at) == (True, Threshold(tokens=120_000))
    assert not book.of(Subject("s", "reviewer", "/repos/secret")).automatic


def test_the_list_of_reasons_is_the_codes() -> None:
    rows = {row[0].strip("`"): row[1:] for row in _rows(_section(TEXT, "Decisions"))}
    assert list(rows) == list(REASONS) == list(MEANINGS)
    for reason, (requested, meaning) in rows.items():
        assert (requested == "yes") == (reason in get_args(FiredReason))
        assert meaning == MEANINGS[reason]  # type: ignore[index]  # as just compared


def test_defaults_are_the_codes() -> None:
    rows = {row[0].strip("`"): row for row in _rows(_section(TEXT, "The file"))}
    plan, default = ServicePlan(), SessionThresholds()
    assert rows["service.calls"][1] == str(plan.calls)
    assert (plan.max_age_ms, plan.deadline_ms) == (600_000, 900_000)
    assert rows["hard_at"][1] == f'`"{written(default.hard_at)}"`'
    for name in PROFILES:
        sizes = SessionThresholds(profile=name).sizes(200_000)
        assert sizes is not None
        figures = f"`{name}` {sizes.compact_at:,} and {sizes.compact_to:,}".replace(",", " ")
        assert figures in rows["profile"][2]
    assert rows["driver"][1] == f'`"{default.driver}"`'
    assert rows["profile"][1] == f'`"{default.profile}"`'


def test_every_outcome_is_listed() -> None:
    commands = _section(TEXT, "Commands")
    assert all(f"`{outcome}`" in commands for outcome in get_args(CommandOutcome))
