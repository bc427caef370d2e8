"""Texts for a terminal, whatever is in them; those of the seeds are in `tests/seeds`."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextgauge.compaction import displays
from contextgauge.compaction.displays import CompactionResult, ContextStatus, terminal_width
from contextgauge.compaction.engine.compaction_receipt import LadderStep, Receipt
from contextgauge.compaction.events import ThresholdUnreachable
from contextgauge.compaction.profiles import Window

STATUS = ContextStatus(
    window_tokens=128_000,
    system_tokens=1_200,
    memory_tokens=800,
    conversation_tokens=56_432,
    active=47,
    total=47,
    oldest_age_ms=2 * 3_600_000,
)


def test_percentages_are_floored_and_nothing_of_nothing() -> None:
    assert displays.percent(899, 1_000) == 89
    assert displays.percent(1_100, 1_000) == 110
    assert displays.percent(5, 0) == 0
    assert "(0.0%)" in displays.context_text(ContextStatus(window_tokens=0, system_tokens=5))


def test_a_line_says_that_no_compaction_can_help() -> None:
    assert displays.event_line(ThresholdUnreachable(90_000, 85_000)) == (
        "No compaction can help: the least that can be sent has 90,000 tokens, and the limit is "
        "85,000"
    )


def test_a_log_line_without_a_summary_names_the_steps_and_no_round() -> None:
    steps = (
        LadderStep("deduplicate", 900, 800, ("m1",), "same"),
        LadderStep("clear-results", 800, 500, ("m2", "m3"), "old"),
    )
    receipt = Receipt(
        trigger="auto",
        tokens_before=1_000,
        tokens_after=600,
        basis="estimated",
        window=Window(2_000, "given"),
        target_tokens=500,
        steps=steps,
    )
    assert displays.log_line(receipt) == (
        "[Compaction] 1000 → 600 tokens (deduplicate, clear-results: 3 messages shortened)"
    )


@pytest.mark.parametrize(
    ("age_ms", "text"),
    [(0, "just now"), (1_999, "1 second"), (3_599_999, "59 minutes"), (86_400_000, "1 day")],
)
def test_age_of_the_oldest_message(age_ms: int, text: str) -> None:
    shown = displays.context_text(ContextStatus(window_tokens=1, oldest_age_ms=age_ms))
    assert f"  Oldest: {text}" in shown
    assert "Oldest" not in displays.context_text(ContextStatus(window_tokens=1))


def test_estimates_are_marked() -> None:
    status = replace(STATUS, is_estimated=True)
    shown = displays.context_text(status) + displays.context_box(status)
    assert re.search(r"Current: ~[\d,]+ tokens \(~[\d.]+%\)", shown)
    assert re.search(r"Usage  \[[#.]+\]  ~\d+%", shown)
    assert shown.count("~") == 6
    assert "~" not in displays.context_text(STATUS) + displays.context_box(STATUS)


WIDE = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from("日本語한글ｱ👍🏽👩‍🚀⚠️🇩🇪é\u0301\u200d\ufe0f\u1161\x1b\n\t"),
    )
)


def test_a_box_without_a_summary_has_no_line_for_it() -> None:
    box = displays.compact_box(
        CompactionResult(removed=3, tokens_before=9, tokens_after=7, summary="", total=5)
    )
    assert "Summary:" not in box
    assert "Removed: 3 messages" in box


@given(WIDE, st.integers(0, 10**12), st.integers(0, 10**9))
def test_boxes_have_50_columns_whatever_is_in_them(summary: str, tokens: int, number: int) -> None:
    result = CompactionResult(
        removed=number, tokens_before=tokens, tokens_after=7, summary=summary, total=number
    )
    status = ContextStatus(window_tokens=number, conversation_tokens=tokens, active=number)
    for box in (displays.compact_box(result), displays.context_box(status)):
        assert {terminal_width.width(line) for line in box.split("\n")} == {50}
        assert all(line[0] + line[-1] in {"||", "++"} for line in box.split("\n"))


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("abc", 3), ("日本", 4), ("é", 1), ("e\u0301", 1), ("👍", 2), ("👍🏽", 2), ("👩‍🚀", 2),
        ("👨‍👩‍👧", 2), ("⚠", 1), ("⚠️", 2), ("🇩🇪", 2), ("🇩🇪🇫🇷", 4), ("ﾊ", 1), ("각", 2),
        ("\u1100\u1161\u11a8", 2), ("", 0), ("a\u200bb", 2),
    ],
)  # fmt: skip
def test_width_of_texts_on_a_terminal(text: str, columns: int) -> None:
    assert terminal_width.width(text) == columns


@given(WIDE, st.integers(1, 30))
def test_cut_texts_fit_and_padded_fill(text: str, columns: int) -> None:
    line = terminal_width.plain_line(text)
    assert terminal_width.width(terminal_width.cut(line, columns)) <= columns
    assert terminal_width.width(terminal_width.padded(line, columns)) == columns


def test_texts_of_others_cannot_control_the_terminal() -> None:
    result = CompactionResult(
        removed=1, tokens_before=9, tokens_after=1, summary="a\x1b[2J\x9b31m\rb\nc\u2028d"
    )
    for text in (displays.compact_text(result), displays.compact_box(result)):
        assert not set("\x1b\x9b\r\u2028") & set(text)
        assert "a[2J31m b c d" in text
