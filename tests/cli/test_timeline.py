"""A session's timeline at the terminal: what is shown, what is folded, and how it fits."""

import io
from dataclasses import replace

import pytest
from rich.console import Console, RenderableType

from schemas.records import (
    DATA_CLASSES,
    CompactBoundary,
    CompactionFailed,
    CompactionStart,
    ContextLimits,
    ContextReading,
    ContextWarning,
    Record,
    ToolUse,
    UserTurn,
    WindowSource,
)
from streams.cli.screen.output import GUESS_EXPLAINED
from streams.cli.screen.render import status_box
from streams.cli.screen.timeline import FOLDED, LOG_ORDER, describe, timeline
from streams.flow.simulator import SimulationOptions, sample_sessions
from tests.cli.test_render import CHAIN, VIEW
from tests.cli.views_kit import records_of
from tests.core.given import RULES, Given, assistant, user
from tests.core.history import History

NOW_MS = 1_800_000_000_000


def _shown(renderable: RenderableType, width: int = 120) -> str:
    console = Console(width=width, color_system=None, file=io.StringIO())
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


@pytest.fixture(scope="module")
def records() -> list[Record]:
    """All records of the simulator's sample."""
    records = records_of(
        (each.value, each.session_id) for each in sample_sessions(SimulationOptions())
    )
    boundary = next(record for record in records if isinstance(record.data, CompactBoundary))
    block = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}
    bodies = (assistant(inside={"content": [block]}), user("Go on"))
    measured = Given(replace(RULES, content=True)).take(*bodies)
    contents = [each for each in measured if isinstance(each.data, ToolUse | UserTurn)]
    return [*records, History().pins_checked(boundary, 3, ("Never push.",)), *contents]


def test_every_kind_of_record_has_a_description(records: list[Record]) -> None:
    descriptions = {type(record.data): describe(record.data) for record in records}
    assert set(descriptions) == set(DATA_CLASSES)
    assert all(descriptions.values())
    assert not [text for text in descriptions.values() if "None" in text or "{" in text]


def test_a_whole_timeline_has_a_line_for_each_record(records: list[Record]) -> None:
    session_id = records[0].data.session_id
    own = [record for record in records if record.data.session_id == session_id]
    lines = _shown(timeline(own, 200, show_all=True), 200).strip().splitlines()
    assert sum(any(cls.kind in line for cls in DATA_CLASSES) for line in lines) == len(own)


def test_a_new_day_is_a_row_of_its_own(records: list[Record]) -> None:
    first = next(record for record in records if record.time_ms is not None)
    assert first.time_ms is not None
    later = replace(first, time_ms=first.time_ms + 86_400_000)
    lines = _shown(timeline([first, first, later], 120, show_all=True)).splitlines()
    assert [len(line.split()) == 1 for line in lines[1:]] == [True, False, False, True, False]


@pytest.mark.parametrize("width", [40, 60])
def test_on_a_narrow_screen_figures_are_below_the_rest(records: list[Record], width: int) -> None:
    text = _shown(timeline(records, width, show_all=True), width)
    assert all(len(line) <= width for line in text.splitlines())
    words = " ".join(text.split())
    for record in records:
        assert record.kind in words
    sizes = [describe(record.data) for record in records if record.kind == "context_reading"]
    assert sizes
    assert all(size in words for size in sizes if len(size) < width - 2)


def test_a_timeline_notes_times_that_run_backwards(records: list[Record]) -> None:
    first = replace(records[0], time_ms=NOW_MS)
    earlier = replace(first, time_ms=NOW_MS - 60_000)
    assert LOG_ORDER in _shown(timeline([first, earlier], 120))
    assert LOG_ORDER not in _shown(timeline([earlier, first], 120))
    assert LOG_ORDER not in _shown(timeline([earlier, replace(first, time_ms=None), first], 120))


def test_a_timeline_marks_figures_based_on_a_guessed_window(records: list[Record]) -> None:
    def of(kind: type) -> Record:
        return next(record for record in records if isinstance(record.data, kind))

    def by(source: WindowSource, kind: type) -> Record:
        found = of(kind)
        assert isinstance(found.data, ContextReading | ContextLimits | ContextWarning)
        return replace(found, data=replace(found.data, window_source=source))

    guessed = [by("default", kind) for kind in (ContextLimits, ContextReading, ContextWarning)]
    start = replace(of(CompactionStart), subject=guessed[0].subject)
    for record in guessed:
        assert "~" in describe(record.data, guessed=True)
    shown = _shown(timeline([guessed[0], start], 120, show_all=True))
    assert shown.count("~") == 3
    assert GUESS_EXPLAINED in shown
    listed = by("catalog", ContextLimits)
    assert "~" not in _shown(timeline([listed, start], 120))
    shown = _shown(timeline([listed, start], 120, show_all=True, contradicted=[listed.subject]))
    assert "~ the window is doubtful: automatic compactions come far below it" in shown
    void = by("exceeded", ContextLimits)
    assert isinstance(void.data, ContextLimits)
    void = replace(void, data=replace(void.data, window=None))
    shown = _shown(timeline([void], 120, show_all=True))
    assert "window unknown (the size passed the assumed one)" in shown


def _warning(records: list[Record], *thresholds: int, chain: str = "main") -> Record:
    """Return a warning that these thresholds were crossed."""
    record = next(each for each in records if isinstance(each.data, ContextWarning))
    data = record.data
    assert isinstance(data, ContextWarning)
    crossed = replace(
        data,
        context_used_percent=thresholds[-1] + 2.5,
        threshold_percent=thresholds[-1],
        thresholds_crossed=thresholds,
        window_source="runtime",
    )
    return replace(record, data=crossed, subject=chain, time_ms=NOW_MS)


def test_steps_below_70_percent_are_folded_and_later_crossings_are_not(
    records: list[Record],
) -> None:
    steps = [_warning(records, percent) for percent in (10, 20, 30, 40, 50, 60)]
    start = next(each for each in records if isinstance(each.data, CompactionStart))
    start = replace(start, time_ms=NOW_MS)
    lines = _shown(timeline([*steps, _warning(records, 70, 80), start, steps[0]], 120)).splitlines()
    what = [" ".join(line.split()) for line in lines]
    assert what[2] == "08:00:00 6 steps 10% to 60%"
    assert "82% used · 18% context remaining" in what[3]
    assert what[3].endswith("crossed 70%, 80%")
    assert "compaction_start" in what[4]
    assert "1 step 10%" in what[5]
    assert what[6] == FOLDED.format(records[0].data.session_id)
    named = _shown(timeline(steps, 120, name="my file.jsonl"))
    assert "`contextgauge events --all 'my file.jsonl'` shows" in named
    assert "contextgauge events" not in _shown(timeline(steps, 120, name=None))
    whole = _shown(timeline(steps, 120, show_all=True))
    assert whole.count("context remaining") == 6
    assert "is folded" not in whole


def test_folded_steps_have_the_latest_time_as_on_the_page(records: list[Record]) -> None:
    steps = [_warning(records, percent) for percent in (10, 20, 30)]
    steps[1] = replace(steps[1], time_ms=NOW_MS + 60_000)
    steps += [_warning(records, 40, chain="other"), replace(steps[2], time_ms=None)]
    shown = " ".join(_shown(timeline(steps, 120)).split())
    assert "08:01:00 2 chains 5 steps" in shown


def test_compactions_resets_and_readings_are_never_folded(records: list[Record]) -> None:
    folded = {"context_warning", "context_limits", "session_info", "context_edit"}
    shown = _shown(timeline(records, 200), 200)
    for record in records:
        assert record.kind in shown or record.kind in folded
    assert shown.count("compact_boundary") == sum(
        record.kind == "compact_boundary" for record in records
    )


def test_folded_entries_of_several_chains_name_their_number(records: list[Record]) -> None:
    two = [_warning(records, 10), _warning(records, 20, chain="other")]
    assert "2 chains  2 steps  10% to 20%" in _shown(timeline(two, 120))


def test_a_runtimes_error_codes_are_shown_in_words(records: list[Record]) -> None:
    failed = next(each for each in records if isinstance(each.data, CompactionFailed))
    assert isinstance(failed.data, CompactionFailed)
    data = replace(failed.data, error="too_few_groups")
    assert describe(data).endswith("too few messages to compact")
    assert describe(replace(data, error="api_error")).endswith("api error")
    assert describe(replace(data, error="Blocked by a hook")).endswith("Blocked by a hook")


def test_a_subagent_has_the_pages_name_in_status_and_events() -> None:
    chain = "a65613aaccf3b-long"
    known = {
        "main": CHAIN,
        chain: replace(CHAIN, chain=chain, subagent_type="general-purpose"),
    }
    records = [replace(History("s").reading(1_000, chain=chain), subject=chain)]
    name = "general-purpose a65613aaccf3"
    assert name in _shown(timeline(records, 120, known, show_all=True))
    assert name in _shown(status_box(replace(VIEW, chains=known), NOW_MS))
