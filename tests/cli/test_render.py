"""Sessions at the terminal: what is not known is `unknown`, and nothing commands the terminal."""

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console, RenderableType

from contextgauge.normalise.signals import InputMessage
from contextgauge.window_catalog import bundled
from schemas.records import Record
from schemas.views import (
    Breakdown,
    ChainView,
    CompactionsView,
    Identity,
    SessionView,
)
from streams.cli.screen.output import GUESS_EXPLAINED
from streams.cli.screen.render import (
    bar,
    chain_labels,
    short_ids,
    status_box,
    status_line,
)
from streams.cli.screen.sessions_table import live_table, sessions_table
from streams.cli.screen.timeline import timeline
from streams.core.derivation.rules_config import Rules
from streams.core.projection.project import project
from streams.core.until_compaction import CompactionPoints, Threshold
from streams.flow.derive.deriver import Deriver
from streams.flow.simulator import SimulationOptions, sample_sessions
from tests.cases import views

NOW_MS = 1_800_000_000_000
CHAIN = ChainView(
    chain="main",
    model="claude-opus-4-5",
    state="measured",
    used_tokens=58_432,
    used_percent=45.65,
    window=128_000,
    window_source="runtime",
    breakdown=Breakdown(input_tokens=432, cache_creation_tokens=None, cache_read_tokens=58_000),
    as_of_ms=NOW_MS - 5_000,
    messages=47,
    messages_total=120,
    oldest_ms=NOW_MS - 2 * 3_600_000,
)
BRIEF = replace(
    views.BRIEF,
    number=1,
    time_ms=NOW_MS - 60_000,
    tokens_before=167_000,
    tokens_after=23_000,
    tokens_saved=144_000,
    duration_ms=41_200,
    duration_source="reported",
    messages_since_last=73,
)
VIEW = replace(
    views.SESSION,
    session_id="258c7280-ae70-4798-800f-63464d01a85d",
    position=9,
    sequence=9,
    first_ms=NOW_MS - 7_200_000,
    last_ms=NOW_MS - 5_000,
    identity=Identity(
        runtime="claude-code", runtime_version="2.1.39", publisher_agent_id="billing-3"
    ),
    chains={"main": CHAIN},
    compactions=CompactionsView(
        automatic=1, messages=73, messages_per_compaction=73, last=(BRIEF,)
    ),
)
ATTEMPT = replace(views.ATTEMPT, started_ms=NOW_MS - 30_000, used_tokens=58_432, used_percent=45.65)
NOTHING = ChainView(chain="main")
GUESSED = replace(
    CHAIN, used_tokens=16_200, used_percent=8.1, window=200_000, window_source="default"
)


def _shown(renderable: RenderableType, width: int = 120) -> str:
    console = Console(width=width, color_system=None, file=io.StringIO())
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


def _with(chain: ChainView, **fields: object) -> SessionView:
    return replace(VIEW, chains={"main": chain}, **fields)  # type: ignore[arg-type]


def test_the_status_line_is_that_of_the_manual() -> None:
    assert status_line(VIEW, NOW_MS) == "Context: 45% (58K/128K tokens)"


@pytest.mark.parametrize(
    ("view", "line"),
    [
        (_with(NOTHING), "Context: unknown"),
        (
            _with(replace(CHAIN, used_percent=None, window=None, window_source="exceeded")),
            "Context: 58K tokens, window unknown: the size passed the assumed one",
        ),
        (
            _with(
                replace(
                    CHAIN,
                    used_percent=None,
                    window=None,
                    window_source="exceeded",
                    passed_window=50_000,
                )
            ),
            "Context: 58K tokens, window unknown: the size passed the assumed 50K",
        ),
        (
            _with(replace(CHAIN, state="unknown", used_tokens=None, used_percent=None)),
            "Context: unknown of 128K tokens",
        ),
        (
            _with(replace(CHAIN, state="compacting"), attempt=ATTEMPT),
            "Context: compacting at 45% (58K/128K tokens)",
        ),
        (
            _with(replace(CHAIN, used_percent=109.2, used_tokens=139_776)),
            "Context: 109% (140K/128K tokens)",
        ),
        (replace(VIEW, chains={}), "Context: unknown"),
        (_with(replace(GUESSED, used_tokens=None)), "Context: unknown of ~200K tokens"),
        (_with(GUESSED), "Context: ~8% (16K/~200K tokens)"),
        (
            _with(replace(GUESSED, state="compacting"), attempt=ATTEMPT),
            "Context: compacting at ~8% (16K/~200K tokens)",
        ),
    ],
)
def test_the_status_line_never_shows_unknown_as_zero(view: SessionView, line: str) -> None:
    assert status_line(view, NOW_MS) == line


@pytest.mark.parametrize(
    ("mean", "words"),
    [(2.9, "2.9 messages"), (1.0, "1 message"), (1_200.0, "1,200 messages")],
)
def test_messages_per_compaction_are_shown_to_one_digit(mean: float, words: str) -> None:
    counts = replace(VIEW.compactions, messages_per_compaction=mean)
    assert f"one in {words}" in _shown(status_box(replace(VIEW, compactions=counts), NOW_MS))


def test_the_status_box_shows_bar_breakdown_messages_and_compactions() -> None:
    box = _shown(status_box(VIEW, NOW_MS))
    for part in (
        "█████████░░░░░░░░░░░  45% used · 55% context remaining",
        "58,432 tokens · measured 5 s ago",
        "128,000 tokens · reported",
        "Cache read       58,000",
        "Cache creation  unknown",
        "billing-3",
        "47 since the last compaction or reset, 120 in all · the first of them 2 h ago",
        "1 auto · one in 73 messages",
        "#1 auto",
        "167K    23K   144K  41.2 s  60 s ago",
    ):
        assert part in box


def test_the_status_box_shows_unknown_for_an_empty_session() -> None:
    empty = replace(
        VIEW,
        identity=Identity(),
        chains={},
        last_ms=None,
        compactions=CompactionsView(),
    )
    box = _shown(status_box(empty, NOW_MS))
    assert "unknown" in box
    assert "0%" not in box
    assert "0.0%" not in box


@pytest.mark.parametrize(
    ("quiet_ms", "words"), [(30_000, "compacting;"), (600_000, "compaction stalled 10 min ago")]
)
def test_an_attempt_without_a_heartbeat_is_shown_as_stalled(quiet_ms: int, words: str) -> None:
    attempt = replace(ATTEMPT, started_ms=NOW_MS - quiet_ms)
    view = _with(replace(CHAIN, state="compacting"), attempt=attempt)
    assert words in _shown(status_box(view, NOW_MS))


def test_a_recent_heartbeat_prevents_a_stalled_status() -> None:
    attempt = replace(ATTEMPT, started_ms=NOW_MS - 600_000, last_heartbeat_ms=NOW_MS - 20_000)
    view = _with(replace(CHAIN, state="compacting"), attempt=attempt)
    assert "stalled" not in _shown(status_box(view, NOW_MS))


def test_external_text_cannot_control_the_terminal() -> None:
    hostile = replace(
        VIEW,
        session_id="\x1b[2J[red]x",
        identity=Identity(runtime="other", runtime_version="\x07", cwd="/a\x1b]0;t\x07"),
        chains={
            "main": replace(CHAIN, model="\x1b[31mm"),
            "sub\x1b[A": replace(CHAIN, chain="sub\x1b[A", subagent_type="t\r"),
        },
        compactions=CompactionsView(last=(replace(BRIEF, chain="c\x1b"),)),
    )
    for shown in (
        _shown(status_box(hostile, NOW_MS)),
        _shown(sessions_table([hostile], NOW_MS, 120)),
        status_line(hostile, NOW_MS),
    ):
        assert not set(shown) & set("\x1b\x07\r")
    assert "[red]" in _shown(status_box(hostile, NOW_MS))


@pytest.mark.parametrize("width", [80, 94, 120, 200])
def test_the_table_fits_the_screen(width: int) -> None:
    text = _shown(sessions_table([VIEW, replace(VIEW, session_id="x" * 100)], NOW_MS, width), width)
    assert "45%" in text
    assert "58K/128K" in text
    assert "1 auto" in text
    assert len(text.strip().splitlines()) == 3
    assert all(len(line) <= width for line in text.splitlines())


@pytest.mark.parametrize("width", [32, 40, 50, 60, 70])
def test_a_narrow_table_keeps_ids_percentages_and_compactions(width: int) -> None:
    stalled = replace(ATTEMPT, started_ms=NOW_MS - 600_000)
    shown = [
        VIEW,
        replace(VIEW, session_id="z" * 30, compactions=CompactionsView(automatic=12, failed=3)),
        replace(VIEW, session_id="z" * 29 + "y"),
        _with(replace(CHAIN, state="compacting"), attempt=stalled, session_id="stalling"),
    ]
    text = _shown(sessions_table(shown, NOW_MS, width), width)
    assert all(len(line) <= width for line in text.splitlines())
    assert "…" not in text.replace("claude-opus-4-5", "")
    assert "258c7280" in text
    assert text.count("z") == 59
    assert text.count("45%") == 3
    assert all(part in text for part in ("12 of 15", "stalled"))
    assert ("█" in text) <= (width == 70)


def test_narrow_tables_drop_the_bar_then_the_model_then_the_tokens() -> None:
    def has(width: int) -> tuple[bool, bool, bool]:
        text = _shown(sessions_table([VIEW], NOW_MS, width), width)
        return "█" in text, "claude-opus-4-5" in text, "58K/128K" in text

    assert has(80) == (True, True, True)
    assert has(60) == (False, True, True)
    assert has(45) == (False, False, True)
    assert has(34) == (False, False, False)


def test_a_guessed_window_is_marked_and_explained() -> None:
    shown = _shown(sessions_table([VIEW, _with(GUESSED)], NOW_MS, 120))
    assert "~8%" in shown
    assert "16K/~200K" in shown
    assert " 45%" in shown
    assert GUESS_EXPLAINED in shown
    assert "~" not in _shown(sessions_table([VIEW], NOW_MS, 120))
    assert "~200,000 tokens · assumed" in _shown(status_box(_with(GUESSED), NOW_MS))


def test_responses_left_count_to_compaction_or_a_full_window() -> None:
    chain = replace(CHAIN, growth_tokens=100, responses_left=335)
    assert "~340 more until the window is full" in _shown(status_box(_with(chain), NOW_MS))
    near = replace(chain, auto_compact_threshold=58_432 + 150)
    box = _shown(status_box(_with(near), NOW_MS))
    assert "~1 more until compaction" in box
    assert "Compacts in" in box
    assert "150 tokens" in box


def test_tokens_until_compaction_are_marked_where_they_are_learned() -> None:
    chain = replace(CHAIN, growth_tokens=1_000, window=200_000)
    points = CompactionPoints(learned=(("claude-opus-4-5", 158_432),))
    never = replace(_with(chain), compactions=CompactionsView())
    box = _shown(status_box(never, NOW_MS, points))
    assert "~100,000 tokens · estimated from this model" in box
    assert "~100 more until compaction" in box
    box = _shown(status_box(_with(chain), NOW_MS, points))
    assert "~108,568 tokens · estimated from this session" in box
    configured = CompactionPoints(configured=(("claude", Threshold(tokens=60_000)),))
    assert "1,568 tokens · configured" in _shown(status_box(_with(chain), NOW_MS, configured))


def test_figures_that_rest_on_an_assumed_window_are_marked() -> None:
    points = CompactionPoints(configured=(("claude", Threshold(percent=80.0)),))
    box = _shown(status_box(_with(replace(GUESSED, growth_tokens=1_000)), NOW_MS, points))
    assert "~143,800 tokens · configured, of an assumed window" in box
    assert "~140 more until compaction" in box
    full = replace(GUESSED, auto_compact_enabled=False, growth_tokens=1_000, responses_left=183)
    box = _shown(status_box(_with(full), NOW_MS))
    assert "~180 more until the window is full" in box
    known = replace(full, window_source="catalog")
    assert "~180 more until the window is full" in _shown(status_box(_with(known), NOW_MS))


def test_a_due_compaction_has_the_same_words_everywhere() -> None:
    due = _with(replace(CHAIN, auto_compact_threshold=50_000, growth_tokens=1_000))
    box = _shown(status_box(due, NOW_MS))
    assert "due, 8,432 tokens over" in box
    assert "more until" not in box
    assert " due, 8.4K over " in _shown(sessions_table([due], NOW_MS, 200), 200)
    assert " due, 8.4K over " in _shown(live_table([due], NOW_MS, 200, range(1)), 200)
    narrow = _shown(live_table([due], NOW_MS, 110, range(1)), 110)
    assert " 8.4K over " in narrow
    assert "due" not in narrow
    now = _with(replace(CHAIN, auto_compact_threshold=58_432))
    assert re.search(r"Compaction +due +│", _shown(status_box(now, NOW_MS)))


def test_a_chain_has_the_same_name_on_every_screen(records: list[Record]) -> None:
    chain = "toolu_01AbCdEfGhIjKlMnOp"
    chains = {
        name: replace(CHAIN, chain=name)
        for name in ("main", "sidechain", chain, "toolu_01AbCdZzzzzzz")
    }
    view = replace(
        VIEW, chains=chains, compactions=CompactionsView(last=(replace(BRIEF, chain=chain),))
    )
    labels = chain_labels(chains)
    assert labels["sidechain"] == "sidechain"
    assert labels[chain] == "toolu_01AbCdE"
    box = _shown(status_box(view, NOW_MS))
    assert "(toolu_01AbCdE)" in box
    assert box.count("toolu_01AbCdE") == 2
    assert "toolu_01AbCdEf" not in box
    of_chain = replace(records[0], subject=chain)
    lines = _shown(timeline([of_chain], 120, chains, show_all=True)).splitlines()
    assert "toolu_01AbCdE" in lines[-1].split()


def test_ids_are_shortened_to_a_unique_prefix() -> None:
    ids = ["abcdefgh-1", "abcdefgh-2", "zyxwvutsr", "ab"]
    assert short_ids(ids) == ["abcdefgh-1", "abcdefgh-2", "zyxwvuts", "ab"]
    assert short_ids(["same", "same"]) == ["same", "same"]


@pytest.mark.parametrize(
    ("used", "drawn"),
    [
        (None, "··········"),
        (0, "░░░░░░░░░░"),
        (45.6, "████░░░░░░"),
        (250, "██████████"),
        (-3, "░░░░░░░░░░"),
    ],
)
def test_only_a_bar_is_clamped(used: float | None, drawn: str) -> None:
    assert bar(replace(CHAIN, used_percent=used), 10, "normal").plain == drawn


def test_what_is_unknown_has_one_name_on_all_screens() -> None:
    unknown = _with(
        replace(CHAIN, state="unknown", used_tokens=None, used_percent=None),
        compactions=CompactionsView(unknown_trigger=1, last=(replace(BRIEF, trigger=None),)),
    )
    assert " ?/128K " in _shown(sessions_table([unknown], NOW_MS, 120))
    box = _shown(status_box(unknown, NOW_MS))
    assert box.count("unknown trigger") == 2
    assert "trigger unknown" not in box


@pytest.fixture(scope="module")
def records() -> list[Record]:
    """All records of the simulator's sample."""
    deriver = Deriver(Rules(bundled()))
    return [
        record
        for message in sample_sessions(SimulationOptions())
        for record in deriver.derive(InputMessage(message.value, message.session_id)).records
    ]


def test_all_views_of_the_sample_can_be_shown(records: list[Record]) -> None:
    folded: dict[str, SessionView] = {}
    for position, record in enumerate(records):
        session_id = record.data.session_id
        folded[session_id] = project(folded.get(session_id), record, position)
    table = _shown(sessions_table(list(folded.values()), NOW_MS, 120))
    lines = [line for line in table.strip().splitlines() if line != GUESS_EXPLAINED]
    assert len(lines) == len(folded) + 1
    for view in folded.values():
        assert view.session_id in _shown(status_box(view, NOW_MS))
