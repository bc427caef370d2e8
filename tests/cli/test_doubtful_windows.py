"""Windows that are doubtful or unknown, in the terminal: marked, and in plain words."""

import re
from dataclasses import replace

from streams.cli.screen.render import status_box
from streams.cli.screen.sessions_table import sessions_table
from streams.cli.screen.window_words import SOURCE_WORDS
from streams.serve.api.page import FOLDER
from tests.cli.test_render import CHAIN, NOW_MS, VIEW, _shown, _with


def test_r33_a_contradicted_window_is_marked_and_explained() -> None:
    chain = replace(CHAIN, window=1_000_000, window_source="catalog", used_percent=5.8)
    brief = replace(
        VIEW.compactions.last[-1],
        trigger="auto",
        outcome="succeeded",
        tokens_before=167_000,
        model=chain.model,
        window=1_000_000,
    )
    view = replace(_with(chain), compactions=replace(VIEW.compactions, last=(brief, brief)))
    shown = _shown(sessions_table([view], NOW_MS, 120))
    assert "~5%" in shown
    assert "58K/~1M" in shown
    assert "~ the window is doubtful: automatic compactions come far below it" in shown
    box = _shown(status_box(view, NOW_MS))
    assert "~5% used · ~95% context remaining" in box
    assert (
        "~1,000,000 tokens · by model name, doubtful: automatic compactions come far below it"
        in box
    )
    assert "~108,568 tokens · estimated from this session" in box


def test_a_window_that_the_size_passed_is_unknown_in_plain_words() -> None:
    chain = replace(
        CHAIN, used_percent=None, window=None, window_source="exceeded", passed_window=50_000
    )
    box = _shown(status_box(_with(chain), NOW_MS))
    assert "unknown: the size passed the assumed 50,000" in box
    assert "exceeded" not in box
    table = _shown(sessions_table([_with(chain)], NOW_MS, 120))
    assert "/? the window is unknown: the size passed the assumed one" in table


def test_sources_of_windows_have_the_words_of_the_page() -> None:
    script = (FOLDER / "format.js").read_text(encoding="utf-8")
    on_page = dict(re.findall(r'^  (\w+): \["([^"]*)", "(?:The|No) window', script, re.MULTILINE))
    assert on_page == {**SOURCE_WORDS, "exceeded": ""}
    for source, words in SOURCE_WORDS.items():
        chain = replace(CHAIN, window_source=source)
        assert f"128,000 tokens · {words}" in _shown(status_box(_with(chain), NOW_MS))


def test_a_size_is_unknown_in_the_words_of_the_page() -> None:
    never = replace(CHAIN, state="unknown", used_tokens=None, used_percent=None, peak_tokens=None)
    cleared = replace(never, peak_tokens=9)
    last = replace(VIEW.compactions.last[-1], outcome="succeeded", chain="main", time_ms=7)
    compacted = replace(
        _with(replace(cleared, as_of_ms=7)), compactions=replace(VIEW.compactions, last=(last,))
    )
    for view, words in (
        (_with(never), "not measured yet"),
        (_with(cleared), "unknown since cleared"),
        (compacted, "unknown since compaction"),
    ):
        assert f"unknown tokens · {words}" in _shown(status_box(view, NOW_MS))
