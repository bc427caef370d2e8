"""What a rebuild looks like, on a terminal and in a log."""

import pytest
from rich.console import Console

from contextgauge.clock import SystemClock
from streams.cli import rebuild as rebuild_command
from streams.cli.rebuild import Screen, audited_json, print_audited, print_status
from streams.cli.screen import output
from streams.flow.rebuild.audit import AuditResult, Cut, Difference
from streams.flow.rebuild.rebuild import PartitionProgress, Progress


class HandClock(SystemClock):
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic_s(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def console(monkeypatch: pytest.MonkeyPatch) -> Console:
    """Take what is written to both streams."""
    console = Console(record=True, width=100, force_terminal=False, highlight=False, quiet=False)
    monkeypatch.setattr(rebuild_command, "out", console)
    monkeypatch.setattr(rebuild_command, "err", console)
    monkeypatch.setattr(output, "err", console)
    return console


def building(*positions: int | None, end: int | None = 40_000) -> Progress:
    partitions = tuple(
        PartitionProgress(
            number,
            None if position is None else 0,
            position,
            end,
            position is not None and end is not None and position >= end,
        )
        for number, position in enumerate(positions)
    )
    return Progress(8, 7, partitions)


def lines(console: Console) -> list[str]:
    return console.export_text().splitlines()


def test_a_log_gets_a_line_at_intervals(clock: HandClock, console: Console) -> None:
    screen = Screen(clock)
    screen.begin(building(None, None), resumed=False)
    for step in range(41):
        screen.show(building(step * 1_000, None if step < 5 else 40_000))
        clock.now_s += 0.5
    screen.end()
    assert lines(console) == [
        "generation 8 is being built; generation 7 is active",
        "building: 60,000 of 80,000 · 6,000/s · 3.0 s left · 1 of 2 partitions caught up",
        "building: 80,000 of 80,000 · 2,000/s · 2 of 2 partitions caught up",
    ]
    assert screen.seconds() == 20.5


def test_on_a_terminal_every_partition_has_a_bar(
    clock: HandClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    console = Console(record=True, width=100, force_terminal=True, highlight=False)
    monkeypatch.setattr(rebuild_command, "err", console)
    screen = Screen(clock)
    screen.begin(building(None, None, end=None), resumed=False)
    screen.show(building(0, None, 40_000))
    clock.now_s += 2
    screen.show(building(20_000, None, 40_000))
    screen.end()
    text = console.export_text()
    assert "partition 0" in text
    assert "20,000 of 40,000 · 10,000/s · 2.0 s left" in text
    assert "not started of 40,000 · waiting" in text
    assert "40,000 of 40,000 · caught up" in text


def test_a_build_whose_partitions_are_unknown_at_first_is_shown(
    clock: HandClock, console: Console
) -> None:
    screen = Screen(clock)
    screen.begin(building(), resumed=False)
    for progress in (building(), building(1_000, 1_000), building(41_000, 1_000)):
        screen.show(progress)
        clock.now_s += 5
    screen.end()
    assert lines(console)[1:] == [
        "building: 42,000 of 80,000 · 8,000/s · 5.0 s left · 1 of 2 partitions caught up"
    ]


AUDITED = AuditResult(
    8,
    1_200,
    3,
    [Difference(2, "s\x1b1", ("events", "view")), Difference(0, None, ("live",))],
    [Cut(1, 0, 5_000)],
)


def test_an_audit_is_reported(console: Console) -> None:
    print_audited(AuditResult(8, 1_200))
    print_audited(AUDITED)
    equal, *output = lines(console)
    assert equal.endswith("compared 1,200 sessions and the aggregates with the log: all equal")
    assert output[1:4] == [
        r"  partition 2 · session s\x1b1: events, view",
        "  partition 0 · aggregates: live",
        "  and 1 more",
    ]
    assert output[4].startswith("  partition 1: the log now begins at 5,000; the views were")


def test_an_audit_as_json() -> None:
    assert audited_json(AUDITED) == {
        "generation": 8,
        "compared_sessions": 1_200,
        "differences": 3,
        "first_differences": [
            {"partition": 2, "session": "s\x1b1", "fields": ("events", "view")},
            {"partition": 0, "session": None, "fields": ("live",)},
        ],
        "cut": [{"partition": 1, "views_begin": 0, "log_begin": 5_000}],
    }


def test_the_status_is_a_table(console: Console) -> None:
    print_status(building(20_000, None, 40_000))
    print_status(building(1, end=None))
    print_status(None)
    output = console.export_text()
    assert [line.split() for line in output.splitlines()[:4]] == [
        ["Partition", "Position", "Of", "State"],
        ["0", "20,000", "40,000", "building"],
        ["1", "-", "40,000", "not", "started"],
        ["2", "40,000", "40,000", "caught", "up"],
    ]
    assert "switch once all partitions have caught up" in output
    assert "unknown" in output
    assert "no rebuild is in progress" in output
