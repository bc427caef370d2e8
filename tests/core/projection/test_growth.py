"""How good the responses until compaction are, as docs/adr/0070-growth-is-a-mean.md reports it."""

from pathlib import Path
from statistics import median

import pytest

from contextgauge.containers import Line
from contextgauge.window_catalog import bundled
from schemas.records import CompactBoundary, ContextReading
from schemas.views import SessionView
from streams.core.derivation.rules_config import Rules
from streams.core.projection.project import project
from streams.core.until_compaction import SessionPoint, until_compaction
from streams.flow.derive.deriver import Deriver
from streams.flow.replay.replay import replay

CAPTURES = ("258c7280-ae70-4798-800f-63464d01a85d", "slopometry")
FIRST = 6
"""Responses before a prediction counts."""


def ratios(path: Path) -> list[float]:
    """Return predicted to actual responses before a file's automatic compaction."""
    lines = [
        Line("x", number, each, 0, "x")
        for number, each in enumerate(path.read_bytes().splitlines())
    ]
    (derived,) = replay(Deriver(Rules(bundled())), [lines])
    view: SessionView | None = None
    chains = []
    for place, record in enumerate(derived.records):
        if record.subject == "main" and isinstance(record.data, CompactBoundary):
            break
        view = project(view, record, place)
        if record.subject == "main" and isinstance(record.data, ContextReading):
            chains.append(view.chains["main"])
    assert isinstance(record.data, CompactBoundary)
    assert record.data.pre_tokens is not None
    point = SessionPoint(record.data.pre_tokens)
    made = [until_compaction(chain, point) for chain in chains]
    return [
        until.responses / (len(made) - place)
        for place, until in enumerate(made, 1)
        if FIRST <= place < len(made) and until is not None and until.responses is not None
    ]


@pytest.mark.shared
def test_responses_until_compaction_are_as_good_as_documented(shared: Path) -> None:
    folder = shared / "fixtures" / "claude-code"
    predicted = [ratio for name in CAPTURES for ratio in ratios(folder / f"{name}.jsonl")]
    errors = sorted(abs(ratio - 1) for ratio in predicted)
    assert len(predicted) == 190
    assert round(median(errors), 2) == 0.32
    assert round(errors[len(errors) * 9 // 10], 2) == 0.67
    assert max(predicted) < 1.4
