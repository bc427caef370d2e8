"""The table of figures by runtime never calls a figure unknown that sessions of this runtime have.

The page shows the same table (`tests/page/test_figures.py`).
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from contextgauge.containers import Line
from contextgauge.normalise.figure_sources import OTHER
from contextgauge.normalise.runtimes import ADAPTERS, FIGURE_TABLE
from contextgauge.window_catalog import bundled
from schemas.records import Record
from streams.core.derivation.rules_config import Rules
from streams.flow.derive.deriver import Deriver
from streams.flow.replay.replay import replay
from streams.flow.simulator import DialectName, SimulationOptions, interleave
from streams.flow.simulator.plans import sample_plans

RULES = Path(__file__).parents[2] / "docs" / "RULES.md"

COLUMNS: Final[dict[str, tuple[DialectName, ...]]] = {
    "Claude Code, stream": ("claude-stream",),
    "Claude Code, transcript": ("claude-transcript",),
    "Codex": ("codex",),
    "OpenAI": ("openai-chat", "openai-responses"),
    "Gemini": ("gemini",),
}

FIGURES: Final[dict[str, tuple[str, Callable[[Any], object]]]] = {
    "Size": ("context_reading", lambda data: data.used_tokens),
    "Cache written": ("context_reading", lambda data: data.cache_creation_tokens),
    "Compaction threshold": ("context_limits", lambda data: data.auto_compact_threshold),
    "Model": ("context_reading", lambda data: data.model),
    "Folder, version": ("session_info", lambda data: data.cwd or data.runtime_version),
    "Subagents": ("context_reading", lambda data: data.chain != "main" or None),
    "Compaction": ("compact_boundary", lambda data: data.number),
    "Start": ("compaction_start", lambda data: data.attempt_id),
    "Heartbeat": ("compaction_progress", lambda data: data.attempt_id),
    "Failed attempt": ("compaction_failed", lambda data: data.outcome),
    "Trigger": ("compact_boundary", lambda data: data.trigger),
    "Duration": ("compact_boundary", lambda data: data.duration_ms),
    "Tokens before": ("compact_boundary", lambda data: data.pre_tokens),
    "Tokens after": ("compaction_complete", lambda data: data.tokens_after),
    "Summary": ("compaction_summary", lambda data: data.summary),
    "Cost of the summary": ("compact_boundary", lambda data: data.receipt),
}


def table() -> dict[str, dict[str, str]]:
    """Return the words of each figure by runtime."""
    section = RULES.read_text(encoding="utf-8").split("## Figures by runtime\n", 1)[1]
    lines = re.findall(r"^\| (.*) \|$", section.split("\n## ", 1)[0], re.MULTILINE)
    rows = [each.split(" | ") for each in lines]
    assert rows == FIGURE_TABLE
    (_, *runtimes), *rows = rows
    return {figure: dict(zip(runtimes, cells, strict=True)) for figure, *cells in rows}


def of_runtimes(dialects: tuple[DialectName, ...]) -> list[Record]:
    """Return the records of the sample's sessions of these runtimes."""
    sessions = [plan for plan in sample_plans(SimulationOptions()) if plan.dialect in dialects]
    messages = [
        Line("sample", number, each.value, len(each.value), each.session_id)
        for number, each in enumerate(interleave(sessions))
    ]
    (derived,) = replay(Deriver(Rules(bundled())), [messages])
    return derived.records


@pytest.mark.parametrize("runtime", COLUMNS)
def test_no_figure_is_called_unknown_that_sessions_of_the_runtime_have(runtime: str) -> None:
    words = {figure: cells[runtime] for figure, cells in table().items()}
    known = {
        figure
        for record in of_runtimes(COLUMNS[runtime])
        for figure, (kind, value) in FIGURES.items()
        if record.kind == kind and value(record.data) is not None
    }
    assert {"Size", "Model"} <= known
    assert not [figure for figure in known if words[figure] == "unknown"]


def test_a_column_has_each_figure_once_and_no_other() -> None:
    for column in (column for each in ADAPTERS for column in each.figures):
        figures = [figure for words in column.words.values() for figure in words]
        assert (sorted(set(figures)), set(figures) - set(OTHER)) == (sorted(figures), set())


def test_the_test_knows_all_figures_of_the_table_but_what_every_runtime_has() -> None:
    assert set(table()) - set(FIGURES) == {"Window", "Time"}
