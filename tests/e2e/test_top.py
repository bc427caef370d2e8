"""`contextgauge top` in a real terminal, over views in a real Redis."""

import asyncio
import os
import re
import signal
from collections.abc import Callable, Iterator, Sequence

import pytest

from schemas.records import CompactionStart, Record
from streams.edge.local_stack.stack import LocalStack
from streams.flow.simulator import SimulationOptions, sample_sessions
from tests.cli.terminal_kit import Terminal
from tests.cli.views_kit import records_of, write_views
from tests.commands import Command

ALTERNATE, BACK = b"\x1b[?1049h", b"\x1b[?1049l"


@pytest.fixture(scope="module")
def records() -> list[Record]:
    """All records of the simulator's sample."""
    return records_of(
        (each.value, each.session_id) for each in sample_sessions(SimulationOptions())
    )


@pytest.fixture
def settings(redis_url: str, key_prefix: str, records: list[Record]) -> dict[str, str]:
    """A Redis that has the sample's views."""
    asyncio.run(write_views(redis_url, key_prefix, records))
    return {"REDIS_URL": redis_url, "KEY_PREFIX": key_prefix}


@pytest.fixture
def terminal() -> Iterator[Callable[..., Terminal]]:
    """Open terminals: `terminal(80, 24, settings, "--interval", "0.2")`."""
    opened: list[Terminal] = []

    def open_one(columns: int, rows: int, settings: dict[str, str], *more: str) -> Terminal:
        made = Terminal(columns, rows, ["top", "--interval", "0.2", *more], settings)
        opened.append(made)
        return made

    yield open_one
    for each in opened:
        each.close()


def _ids(records: Sequence[Record]) -> set[str]:
    return {record.data.session_id for record in records}


def _percents(screen: str) -> list[int]:
    rows = screen.split("\n", 2)[2]
    return [int(percent) for percent in re.findall(r"(\d+)%", rows)]


@pytest.mark.extended
@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (120, 40), (60, 20)])
def test_sessions_by_pressure_fit_the_screen(
    terminal: Callable[..., Terminal],
    settings: dict[str, str],
    records: list[Record],
    columns: int,
    rows: int,
) -> None:
    opened = terminal(columns, rows, settings)
    screen = opened.wait(
        lambda text: all(f"\n{name[:8]}" in text for name in _ids(records)) and "q quit" in text
    )
    lines = screen.split("\n")
    assert lines[0].startswith("contextgauge  12 sessions · ")
    percents = _percents(screen)
    assert len(percents) >= 4
    assert percents == sorted(percents, reverse=True)
    assert lines[-1].startswith("q quit")
    assert "newest record 3" in lines[0] or columns < 80
    assert (("Folder" in screen), ("Model" in screen)) == (columns == 120, columns != 60)
    opened.press("q")
    assert opened.end() == 0
    assert b"\x1b[2J" not in opened.received  # a screen that is cleared before it is drawn flickers
    assert opened.settings_now == opened.modes
    assert opened.received.startswith(ALTERNATE)
    assert BACK in opened.received


@pytest.mark.extended
def test_keys_sort_filter_select_and_open(
    terminal: Callable[..., Terminal], settings: dict[str, str]
) -> None:
    opened = terminal(100, 30, settings)
    first = opened.wait(lambda text: "by pressure" in text)
    opened.press("r")
    second = opened.wait(lambda text: "by recent" in text and text != first)
    assert [line[:8] for line in first.split("\n")[3:15]] != [
        line[:8] for line in second.split("\n")[3:15]
    ]
    opened.press("p/claude")
    opened.wait(lambda text: "filter: claude█" in text and "by pressure" in text)
    opened.press("\r")
    filtered = opened.wait(lambda text: "filter: claude " in text)
    assert "gpt" not in filtered
    assert "gemini" not in filtered
    opened.press("\x1b[B")
    opened.press("\r")
    detail = opened.wait(lambda text: "Context of " in text)
    assert "Esc back" in detail
    opened.press("\x1b")
    opened.wait(lambda text: "filter: claude" in text and "Context of" not in text)
    opened.press("\x1b")
    opened.wait(lambda text: "filter" not in text.split("\n")[1])
    opened.press("/nobody\r")
    opened.wait(lambda text: "No session matches the filter" in text)
    opened.press("q")
    assert opened.end() == 0


@pytest.mark.extended
def test_all_compactions_of_a_session_can_be_scrolled_to(
    terminal: Callable[..., Terminal], settings: dict[str, str], records: list[Record]
) -> None:
    compacted = [record for record in records if record.kind == "compact_boundary"]
    counts = {
        name: sum(1 for record in compacted if record.data.session_id == name)
        for name in _ids(compacted)
    }
    name = max(counts, key=lambda each: counts[each])
    opened = terminal(80, 16, settings)
    opened.wait(lambda text: "by pressure" in text)
    opened.press(f"/{name}\r\r")
    opened.wait(lambda text: "Context of " in text)
    opened.press("\x1b[F")
    screen = opened.wait(lambda text: "#1 " in text)
    assert "Context of " not in screen
    opened.press("\x1b[A")
    opened.wait(lambda text: text != screen)
    opened.press("\x1b[H")
    opened.wait(lambda text: "Context of " in text)


@pytest.mark.extended
def test_top_follows_new_records(
    terminal: Callable[..., Terminal],
    settings: dict[str, str],
    redis_url: str,
    key_prefix: str,
    records: list[Record],
) -> None:
    start = next(
        index
        for index, record in enumerate(records)
        if isinstance(record.data, CompactionStart) and record.time_ms is not None
    )
    asyncio.run(write_views(redis_url, key_prefix, records[:start]))
    opened = terminal(100, 30, settings)
    assert " compacting" not in opened.wait(lambda text: "by pressure" in text)
    asyncio.run(write_views(redis_url, key_prefix, records[: start + 1]))
    # Its signs are years old for this clock.
    screen = opened.wait(lambda text: "1 compacting" in text)
    assert "stalled " in screen
    opened.press("q")
    assert opened.end() == 0


@pytest.mark.extended
def test_figures_that_may_be_old_are_marked(
    terminal: Callable[..., Terminal],
    command: Command,
    redis_url: str,
    key_prefix: str,
    records: list[Record],
) -> None:
    settings = {"REDIS_URL": redis_url, "KEY_PREFIX": key_prefix}
    asyncio.run(write_views(redis_url, key_prefix, records, lag_ms=None))
    opened = terminal(100, 30, settings)
    opened.wait(lambda text: "no project worker is at work" in text)
    assert "no project worker is at work" in command("top", "--once", **settings).stdout
    asyncio.run(write_views(redis_url, key_prefix, records, lag_ms=60_000))
    opened.wait(lambda text: "the project worker is 60 s behind" in text)
    asyncio.run(write_views(redis_url, key_prefix, records))
    opened.wait(lambda text: "project worker" not in text and "12 sessions" in text)


@pytest.mark.extended
def test_a_resized_terminal_is_redrawn(
    terminal: Callable[..., Terminal], settings: dict[str, str]
) -> None:
    opened = terminal(120, 40, settings)
    opened.wait(lambda text: "Growth" in text and text.split("\n")[-1].startswith("q quit"))
    opened.resize(60, 20)
    opened.wait(lambda text: "Growth" not in text and text.split("\n")[19].startswith("q quit"))
    opened.resize(140, 30)
    opened.wait(lambda text: "Growth" in text and text.split("\n")[29].startswith("q quit"))
    opened.resize(12, 3)
    opened.wait(lambda text: text.startswith("contextgaug"))
    opened.press("q")
    assert opened.end() == 0


@pytest.mark.extended
def test_top_survives_a_redis_outage(
    terminal: Callable[..., Terminal],
    own_stack: Callable[..., LocalStack],
    records: list[Record],
) -> None:
    stack = own_stack("redis")
    address = stack.services()["redis"].address
    opened = terminal(100, 30, {"REDIS_URL": address})
    opened.wait(lambda text: "No sessions yet" in text)
    asyncio.run(write_views(address, "cg", records))
    opened.wait(lambda text: "12 sessions" in text)
    stack.kill("redis")
    screen = opened.wait(lambda text: "Redis is away" in text)
    assert "12 sessions" in screen
    assert "figures of " in screen
    stack.start(["redis"])
    opened.wait(lambda text: "Redis is away" not in text and "12 sessions" in text)
    opened.press("q")
    assert opened.end() == 0


def test_an_unavailable_redis_is_shown_at_start(terminal: Callable[..., Terminal]) -> None:
    opened = terminal(100, 30, {})
    opened.wait(lambda text: "Redis is away" in text)
    opened.press("q")
    assert opened.end() == 0


@pytest.mark.extended
def test_a_permanent_error_ends_top(terminal: Callable[..., Terminal], redis_url: str) -> None:
    wrong = redis_url.replace("://", "://nobody:nothing@")
    opened = terminal(100, 30, {"REDIS_URL": wrong})
    assert opened.end() == 2
    assert BACK in opened.received
    assert "CONTEXTGAUGE_REDIS" in opened.text
    assert opened.settings_now == opened.modes


@pytest.mark.extended
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_restores_the_terminal(
    terminal: Callable[..., Terminal], settings: dict[str, str], number: signal.Signals
) -> None:
    opened = terminal(80, 24, settings)
    opened.wait(lambda text: "by pressure" in text)
    opened.process.send_signal(number)
    assert opened.end() == 0
    assert opened.received.endswith((BACK, BACK + b"\x1b[?25h"))
    assert opened.settings_now == opened.modes


@pytest.mark.extended
def test_top_exits_when_its_terminal_closes(
    terminal: Callable[..., Terminal], settings: dict[str, str]
) -> None:
    opened = terminal(80, 24, settings)
    opened.wait(lambda text: "by pressure" in text)
    opened.hang_up()
    assert opened.end() == 0


@pytest.mark.extended
def test_suspending_top_restores_the_terminal(
    terminal: Callable[..., Terminal], settings: dict[str, str]
) -> None:
    opened = terminal(80, 24, settings)
    opened.wait(lambda text: "by pressure" in text)
    opened.press("\x1a")
    _, status = os.waitpid(opened.process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    assert opened.settings_now == opened.modes
    opened.wait_for_bytes(BACK)
    before = len(opened.received)
    opened.process.send_signal(signal.SIGCONT)
    opened.wait_for_bytes(ALTERNATE, before)
    opened.wait(lambda text: "by pressure" in text)
    opened.press("q")
    assert opened.end() == 0


@pytest.mark.extended
def test_once_prints_a_frame_for_pipes(
    command: Command, settings: dict[str, str], records: list[Record]
) -> None:
    done = command("top", "--once", **settings)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    lines = done.stdout.splitlines()
    assert lines[0].startswith("contextgauge  12 sessions · ")
    assert lines[1].split() == [
        *("Session", "Folder", "Model", "Context", "Tokens", "Source", "Until", "Growth"),
        *("Last", "10", "State", "Comp.", "Active"),
    ]
    assert {line[:8] for line in lines[2:]} == {name[:8] for name in _ids(records)}
    few = command("top", "--once", "--limit", "3", **settings).stdout.splitlines()
    assert "12 sessions, the first 3 · " in few[0]
    assert [line.split() for line in few[2:]] == [line.split() for line in lines[2:5]]


@pytest.mark.extended
def test_help_lists_the_keys(terminal: Callable[..., Terminal], settings: dict[str, str]) -> None:
    opened = terminal(80, 24, settings)
    opened.wait(lambda text: "by pressure" in text)
    opened.press("?")
    screen = opened.wait(lambda text: "sort by last activity" in text)
    assert "reverse the order" in screen
    assert all(len(line.rstrip()) <= 80 for line in screen.split("\n"))
    opened.press("x")
    opened.wait(lambda text: "reverse the order" not in text and "Session" in text)
    opened.press("q")
    assert opened.end() == 0


@pytest.mark.extended
def test_without_a_terminal_the_remedy_is_shown(command: Command, settings: dict[str, str]) -> None:
    done = command("top", **settings)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--once" in done.stderr
    away = command("top", "--once")
    assert away.returncode != 0
    assert "Redis is away" in away.stderr
