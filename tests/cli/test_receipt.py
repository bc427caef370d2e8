"""A compaction's receipt in the terminal."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from schemas.records import CompactBoundary, ReportedReceipt
from schemas.views import Compaction
from streams.cli.screen.receipt import cost_words, receipt_box
from streams.cli.screen.timeline import describe
from streams.core.projection.documents import compaction
from tests.core.history import History

REPORTED = ReportedReceipt(
    command_id="c-1",
    command_attempt=2,
    reason="above_threshold",
    summary_input_tokens=90_000,
    summary_cache_read_tokens=80_000,
    summary_output_tokens=2_100,
    messages_archived=48,
)


def _lines(document: Compaction | None) -> list[str]:
    assert document is not None
    console = Console(width=100, color_system=None, file=io.StringIO())
    with console.capture() as captured:
        console.print(receipt_box(document))
    return [line.strip("│ ") for line in captured.get().splitlines()]


def test_a_receipt_shows_what_is_known() -> None:
    history = History()
    bare = history.boundary()
    assert isinstance(bare.data, CompactBoundary)
    data = replace(bare.data, receipt=REPORTED)
    boundary = replace(bare, data=data)
    document = compaction(
        compaction(None, boundary), history.summary(boundary, "Fixed\x1b it. " + "More. " * 30)
    )
    document = compaction(document, history.complete(boundary, cache_rewrite=28_000))
    checked = history.pins_checked(boundary, 3, ("Never push.",))
    lines = _lines(compaction(document, checked))
    title = "Context compacted #1 · 48 messages archived · 130,000 tokens freed"
    assert title in lines[0]
    for line in (
        "Trigger        auto: above threshold",
        "Summary cost   90,000 read (80,000 cached), 2,100 written",
        "Cache rewrite  28,000 tokens",
        "Took           30.0 s to compact, reported",
        "User's turns   ~3 kept, ~1 lost",
        "Command        c-1, attempt 2",
        "Lost turn of the user: Never push.",
    ):
        assert line in lines
    assert not any("\x1b" in line for line in lines)
    assert any(line.startswith("Fixed") and line.endswith("...") for line in lines)
    assert "summary 90,000 read (80,000 cached), 2,100 written · above thresh" in describe(data)
    assert describe(checked.data) == "#1 · ~3 turns kept · ~1 lost: “Never push.”"


def test_what_is_not_known_is_unknown() -> None:
    lines = _lines(compaction(None, History().boundary(None, pre=None, duration_ms=None)))
    assert "Context compacted #1 ─" in lines[0]
    for name in (
        "Trigger",
        "Before",
        "After",
        "Summary cost",
        "Cache rewrite",
        "Took",
        "User's turns",
    ):
        assert f"{name:15}unknown" in lines
    assert not any(line.startswith("Command") for line in lines)


@pytest.mark.parametrize(
    ("read", "written", "words"),
    [
        (90_000, None, "90,000 read (80,000 cached), output unknown"),
        (None, 2_100, "input unknown, 2,100 written"),
    ],
)
def test_a_summary_cost_names_the_part_that_is_unknown(
    read: int | None, written: int | None, words: str
) -> None:
    cached = None if read is None else 80_000
    assert cost_words(read, cached, written) == words
