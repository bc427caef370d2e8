"""The seeds' texts, to the letter where they give samples."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextgauge.compaction import displays
from contextgauge.compaction.displays import CompactionResult, ContextStatus, terminal_width
from contextgauge.compaction.messages import ContextCompaction

STATUS = ContextStatus(
    window_tokens=128_000,
    system_tokens=1_200,
    memory_tokens=800,
    conversation_tokens=56_432,
    active=47,
    total=47,
    oldest_age_ms=2 * 3_600_000,
)
RESULT = CompactionResult(
    removed=45,
    tokens_before=115_200,
    tokens_after=63_100,
    summary="Discussion about implementing authentication...",
    active=12,
    total=57,
    summaries=1,
)
MARKER = ContextCompaction(1, 0, "# Task\nBuild it.", 45, 150_000)


def test_status_of_seed_004() -> None:
    assert displays.status_text(58_432, 128_000) == "Context: 45% (58K/128K tokens)"


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1_000, "1K"),
        (999_999, "999K"),
        (1_000_000, "1M"),
        (1_590_000, "1.5M"),
    ],
)
def test_short_counts_are_floored(tokens: int, text: str) -> None:
    assert displays.short_count(tokens) == text


def test_header_is_hidden_without_active_messages() -> None:
    assert displays.header_text(45, 120, 47_999, 128_000) == "Context: 45/120 msgs (37%)"
    assert displays.header_text(0, 120, 48_000, 128_000) == ""


def test_percentages_are_floored_and_nothing_of_nothing() -> None:
    assert displays.percent(899, 1_000) == 89
    assert displays.percent(1_100, 1_000) == 110
    assert displays.percent(5, 0) == 0
    assert "(0.0%)" in displays.context_text(ContextStatus(window_tokens=0, system_tokens=5))


def test_warnings_of_seed_004() -> None:
    assert displays.warning_text(102_400, 128_000) == (
        "\u26a0\ufe0f Context usage at 80% (102K/128K tokens)\n"
        "Consider using /compact to summarize older messages"
    )
    assert displays.warning_line(105_000, 128_000) == (
        "\u26a0\ufe0f Context usage at 82% - Consider using /compact"
    )


def test_auto_compaction_of_seed_004() -> None:
    assert displays.auto_compacted_text(RESULT, 128_000) == (
        "\U0001f4e6 Auto-compacting conversation (90% context usage)\n"
        "Summarized 45 messages, saved 52K tokens\n"
        "Conversation coherence preserved"
    )
    assert displays.auto_compacting_line(116_500, 128_000, "prune") == (
        "\U0001f4e6 Auto-compacting (91% usage, strategy: prune)..."
    )
    assert displays.complete_line("prune") == "\u2713 Compaction complete (prune)"


def test_compact_list_of_seed_004() -> None:
    result = CompactionResult(
        removed=32, tokens_before=58_000, tokens_after=16_500, summary=RESULT.summary
    )
    assert displays.compact_text(result) == (
        "Compacting conversation...\nRemoved: 32 messages\nSaved: 41K tokens\n"
        'Summary: "Discussion about implementing authentication..."'
    )
    grown = CompactionResult(removed=1, tokens_before=5, tokens_after=9)
    assert displays.compact_text(grown) == (
        "Compacting conversation...\nRemoved: 1 message\nSaved: 0 tokens"
    )


def test_context_list_of_seed_004() -> None:
    assert (
        displays.context_text(STATUS)
        == """\
Context Usage:
  Current: 58,432 tokens (45.6%)
  Maximum: 128,000 tokens
  Messages: 47
  Oldest: 2 hours ago

Breakdown:
  System prompt: 1,200 tokens
  Memory context: 800 tokens
  Conversation: 56,432 tokens"""
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


def test_context_box_of_seed_004() -> None:
    status = ContextStatus(
        window_tokens=128_000, conversation_tokens=35_000, active=12, total=45, summaries=2
    )
    assert (
        displays.context_box(status)
        == """\
+------------------------------------------------+
| Context Usage Statistics                       |
+------------------------------------------------+
| Active Messages      12                        |
| Total Messages       45                        |
| Summaries             2                        |
|                                                |
| Usage  [#####...............]  27%             |
|                                                |
| Status: Compressed                             |
+------------------------------------------------+"""
    )
    assert "Status: Uncompressed " in displays.context_box(STATUS)


def test_compact_box_shows_what_was_saved() -> None:
    assert (
        displays.compact_box(RESULT)
        == """\
+------------------------------------------------+
| Compaction Statistics                          |
+------------------------------------------------+
| Active Messages      12                        |
| Total Messages       57                        |
| Summaries             1                        |
|                                                |
| Saved  [#########...........]  45%             |
|                                                |
| Removed: 45 messages                           |
| Saved: 52K tokens                              |
| Summary: Discussion about implementing authen… |
+------------------------------------------------+"""
    )


WIDE = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from("日本語한글ｱ👍🏽👩‍🚀⚠️🇩🇪é\u0301\u200d\ufe0f\u1161\x1b\n\t"),
    )
)


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


def test_marker_of_seed_001() -> None:
    head = "\U0001f5c3\ufe0f  Context Compacted #1\n45 messages archived, "
    freed = displays.marker_text(MARKER, freed_tokens=150_000)
    assert freed == f"{head}~150,000 tokens freed\n# Task Build it."
    assert displays.marker_text(MARKER) == f"{head}150,000 tokens before\n# Task Build it."
    assert displays.marker_text(MARKER, expanded=True).endswith("before\n# Task\nBuild it.")


def test_preview_is_one_line_of_80_characters() -> None:
    assert displays.preview("word " * 5_000) == f"{('word ' * 16)[:77].rstrip()}..."
    assert displays.preview("short") == "short"


def test_log_line_of_seed_002() -> None:
    assert displays.log_line(2, 95_000, 8_500, 37) == (
        "[Compaction] Round 2: 95000 → 8500 tokens (37 messages summarized)"
    )


def test_a_marker_without_a_summary_has_no_preview() -> None:
    text = displays.marker_text(ContextCompaction(2, 0, " ", 1, 900))
    assert text.splitlines()[1:] == ["1 message archived, 900 tokens before"]
