"""What a rebuild looks like: bars by partition on a terminal, a line now and then elsewhere."""

from collections import deque
from typing import Any

from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Table

from streams.cli.screen.output import UNKNOWN, count, duration, err, exact, out, safe
from streams.flow.rebuild.compare import Compared
from streams.flow.rebuild.rebuild import PartitionProgress, Rebuilt
from streams.flow.rebuild.rebuild import Progress as Rebuilding
from streams.ports import Clock

_LINE_S = 10.0
"""Where there is no terminal a line is printed so often: a log stays short."""

_WINDOW_S = 10.0
"""Rates are those of the last seconds: a worker that came or went shows soon."""


class _Rates:
    """How fast positions grow, from what they were in the last seconds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: deque[tuple[float, tuple[int, ...]]] = deque()

    def add(self, positions: tuple[int, ...]) -> None:
        """Take the positions of all partitions as they are now."""
        now_s = self._clock.monotonic_s()
        self._seen.append((now_s, positions))
        while self._seen[0][0] < now_s - _WINDOW_S:
            self._seen.popleft()

    def per_second(self, partition: int) -> float:
        """Return how fast a partition was."""
        (first_s, first), (last_s, last) = self._seen[0], self._seen[-1]
        grown = last[partition] - first[partition]
        return max(grown, 0) / (last_s - first_s) if last_s > first_s else 0.0


class Screen:
    """Shows one rebuild on standard error, from `begin` to `end`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rates = _Rates(clock)
        self._begin_s = self._line_s = clock.monotonic_s()
        self._phase = ""
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[told]}"),
            console=err,
            transient=True,
            disable=not err.is_terminal,
        )
        self._tasks: list[TaskID] = []

    def begin(self, progress: Rebuilding, *, resumed: bool) -> None:
        """Say what is being done."""
        generation, former = progress.generation, progress.former
        if not progress.held:
            told = (
                f"generation {generation} is being built already, because generation {former} lost "
                "documents; it becomes active by itself, and there is nothing to compare it with"
            )
        elif resumed:
            told = f"going on with generation {generation}, which was begun before"
        else:
            told = f"building generation {generation} beside generation {former}"
        err.print(told, soft_wrap=True)
        self._bars.start()

    def end(self) -> None:
        """Take the bars away."""
        self._bars.stop()

    def seconds(self) -> float:
        """Return how long it has taken."""
        return self._clock.monotonic_s() - self._begin_s

    def tell(self, text: str) -> None:
        """Say what keeps it waiting."""
        err.print(safe(text), markup=False, soft_wrap=True)

    def show(self, progress: Rebuilding) -> None:
        """Bring bars and lines up to date."""
        if progress.phase != self._phase:
            self._begin_phase(progress)
        if progress.phase == "building":
            self._show_building(progress)
        elif self._tasks:
            self._bars.update(
                self._tasks[0],
                completed=progress.compared,
                total=progress.sessions or None,
                told=f"{exact(progress.compared)} of {count(progress.sessions, 'session')}"
                if progress.phase == "comparing"
                else "the last records",
            )
        now_s = self._clock.monotonic_s()
        if not err.is_terminal and now_s - self._line_s >= _LINE_S:
            self._line_s = now_s
            err.print(self._line(progress), soft_wrap=True)

    def _begin_phase(self, progress: Rebuilding) -> None:
        self._phase = progress.phase
        for task in self._tasks:
            self._bars.remove_task(task)
        if progress.phase == "building":
            names = [f"partition {item.partition}" for item in progress.partitions]
        else:
            names = [progress.phase]
        self._tasks = [self._bars.add_task(name, total=None, told="") for name in names]

    def _show_building(self, progress: Rebuilding) -> None:
        if len(self._tasks) != len(progress.partitions):
            self._begin_phase(progress)
        self._rates.add(tuple(item.position or 0 for item in progress.partitions))
        for task, item in zip(self._tasks, progress.partitions, strict=True):
            begin = item.begin or 0
            self._bars.update(
                task,
                completed=(item.position or 0) - begin,
                total=max((item.end or 0) - begin, 1),
                told=f"{_place(item)} · {self._speed(item)}",
            )

    def _speed(self, item: PartitionProgress) -> str:
        if item.caught_up:
            return "caught up"
        rate = self._rates.per_second(item.partition)
        if not rate:
            return "waiting"
        left_ms = round(max((item.end or 0) - (item.position or 0), 0) / rate) * 1_000
        return f"{exact(round(rate))}/s · {duration(left_ms)} left"

    def _line(self, progress: Rebuilding) -> str:
        if progress.phase == "swapping":
            return f"waiting until generation {progress.generation} has the last records"
        if progress.phase == "comparing":
            return f"comparing: {exact(progress.compared)} of {exact(progress.sessions)}"
        parts = progress.partitions
        done = sum((item.position or 0) - (item.begin or 0) for item in parts)
        of = sum(max((item.end or 0) - (item.begin or 0), 0) for item in parts)
        rate = sum(self._rates.per_second(item.partition) for item in parts)
        told = f"building: {exact(done)} of {exact(of)} · {exact(round(rate))}/s"
        ready = sum(item.caught_up for item in parts)
        if rate and of > done and ready < len(parts):
            told += f" · {duration(round((of - done) / rate) * 1_000)} left"
        return f"{told} · {ready} of {count(len(parts), 'partition')} caught up"


def _place(item: PartitionProgress) -> str:
    position = "not begun" if item.position is None else exact(item.position)
    return f"{position} of {UNKNOWN if item.end is None else exact(item.end)}"


def say_status(progress: Rebuilding | None) -> None:
    """Print how far a rebuild is."""
    if progress is None:
        err.print("no rebuild is under way")
        return
    table = Table("Partition", "Position", "Of", "State", box=None, pad_edge=False)
    for item in progress.partitions:
        state = "caught up" if item.caught_up else "being built"
        table.add_row(
            str(item.partition),
            "-" if item.position is None else exact(item.position),
            UNKNOWN if item.end is None else exact(item.end),
            "not begun" if item.position is None else state,
        )
    out.print(table)
    then = (
        "`contextgauge rebuild` compares it with the active one and swaps"
        if progress.held
        else "it becomes active by itself once all partitions have caught up"
    )
    err.print(
        f"generation {progress.generation} is being built beside generation {progress.former}: "
        f"{then}",
        soft_wrap=True,
    )


def say_outcome(done: Rebuilt, seconds: float) -> None:
    """Print what a rebuild came to."""
    if done.compared is None:
        err.print(
            f"generation {done.generation} is active. It was not compared: the workers activated "
            f"it because generation {done.former} lost documents, or another rebuild did",
            soft_wrap=True,
        )
        return
    _say_compared(done, done.compared)
    if done.swapped:
        out.print(
            f"generation {done.generation} is active, in {duration(round(seconds * 1_000))}; "
            f"generation {done.former} is deleted in a minute",
            soft_wrap=True,
        )
        return
    err.print(
        f"Generation {done.former} stays active, nothing was swapped. Generation {done.generation} "
        "follows the log meanwhile. If the difference is meant (the fold was changed, or a "
        "setting of it), `contextgauge rebuild --accept-differences` swaps; "
        "`contextgauge rebuild --abandon` gives it up.",
        soft_wrap=True,
    )


def _say_compared(done: Rebuilt, compared: Compared) -> None:
    of = count(compared.sessions, "session")
    if not compared.different:
        out.print(f"compared {of} and the aggregates: all are equal", soft_wrap=True)
    else:
        differences = count(compared.different, "difference")
        out.print(f"compared {of} and the aggregates: {differences}", soft_wrap=True)
    for found in compared.first:
        where = "aggregates" if found.session is None else f"session {found.session}"
        told = f"  partition {found.partition} · {where}: {', '.join(found.fields)}"
        out.print(safe(told), markup=False, soft_wrap=True)
    if compared.different > len(compared.first):
        out.print(f"  and {exact(compared.different - len(compared.first))} more")
    for cut in done.cut:
        out.print(
            f"  partition {cut.partition}: the log begins at {exact(cut.begin)} now, and "
            f"generation {done.former} was folded from {exact(cut.former_begin)}: what was before "
            "is in that generation only",
            soft_wrap=True,
        )


def as_json(done: Rebuilt) -> dict[str, Any]:
    """Return what a rebuild came to, for programs."""
    compared = done.compared
    return {
        "generation": done.generation,
        "former": done.former,
        "swapped": done.swapped,
        "compared_sessions": None if compared is None else compared.sessions,
        "differences": None if compared is None else compared.different,
        "first_differences": [] if compared is None else [f._asdict() for f in compared.first],
        "cut": [cut._asdict() for cut in done.cut],
    }
