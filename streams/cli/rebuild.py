"""`contextgauge rebuild`: rebuilds the views, compares them, and swaps while readers read.

It shows a bar for each partition on a terminal, otherwise a line at intervals.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, TypeVar

import typer
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from contextgauge.clock import SystemClock
from contextgauge.errors import ConfigError
from streams import wiring
from streams.cli.exits import Exit
from streams.cli.screen.figures import UNKNOWN, count, duration, exact
from streams.cli.screen.options import AsJson
from streams.cli.screen.output import err, out, say, write_json
from streams.cli.screen.tables import plain_table
from streams.flow.rebuild.compare import Compared
from streams.flow.rebuild.progress import PartitionProgress, Rebuilt
from streams.flow.rebuild.progress import Progress as RebuildProgress
from streams.flow.rebuild.rebuild import Rebuild
from streams.ports import Clock
from streams.settings import Settings
from streams.wiring.deployment import claim_keys

T = TypeVar("T")

_LINE_S = 10.0
"""How often a line is printed without a terminal: a log stays short."""

_WINDOW_S = 10.0
"""Rates are those of the last seconds: they soon reflect a worker that started or stopped."""


def rebuild(
    *,
    accept_differences: Annotated[
        bool,
        typer.Option(
            "--accept-differences",
            help="Swap even if the new generation differs, e.g. after a change of the projection.",
        ),
    ] = False,
    abandon: Annotated[
        bool, typer.Option("--abandon", help="Discard the current rebuild and delete it.")
    ] = False,
    claim: Annotated[
        bool,
        typer.Option(
            "--claim",
            help="Make the keys of CONTEXTGAUGE_KEY_PREFIX this deployment's, where the one whose "
            "they were is gone. The project workers then build the views again.",
        ),
    ] = False,
    status: Annotated[
        bool, typer.Option("--status", help="Show the progress of a rebuild, and start none.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Rebuild all views, compare them and swap them in.

    The project workers build them from context.events, so they must run. Readers use the active
    generation meanwhile, then all switch to the new one. If the command is interrupted, run it
    again to continue. Exit code 7: the two generations differ, and nothing was swapped.
    """
    if accept_differences + abandon + claim + status > 1:
        raise ConfigError(
            "--accept-differences, --abandon, --claim and --status cannot be combined"
        )
    settings = wiring.settings()
    try:
        if claim:
            own = asyncio.run(claim_keys(settings))
            say(f"The keys {settings.key_prefix}:* in Redis are now those of {own}")
        elif abandon:
            print_abandoned(asyncio.run(_existing(settings, Rebuild.abandon)))
        elif status:
            progress = asyncio.run(_existing(settings, Rebuild.status))
            (write_json if as_json else print_status)(progress)
        else:
            done = asyncio.run(_rebuild(settings, accept=accept_differences, json=as_json))
            if not done.swapped:
                raise typer.Exit(Exit.DIFFERENT)
    except KeyboardInterrupt:
        if not (abandon or status):
            say(
                "The workers continue to build: `contextgauge rebuild` resumes, "
                "`contextgauge rebuild --abandon` discards the build"
            )
        raise


async def _rebuild(settings: Settings, *, accept: bool, json: bool) -> Rebuilt:
    clock = SystemClock()
    screen = Screen(clock)
    async with wiring.started(wiring.redis_views(settings)) as store:
        rebuild = Rebuild(store, clock, show=screen.show, notify=say)
        progress = await rebuild.begin()
        screen.begin(progress, resumed=rebuild.resumed)
        try:
            done = await rebuild.run(accept=accept)
        finally:
            screen.end()
    if json:
        write_json(result_json(done))
    else:
        print_result(done, screen.seconds())
    return done


async def _existing(settings: Settings, act: Callable[[Rebuild], Awaitable[T]]) -> T:
    """Ask something of a rebuild, without starting one."""
    async with wiring.started(wiring.redis_views(settings)) as store:
        return await act(Rebuild(store, SystemClock(), show=lambda _: None, notify=say))


class Screen:
    """Shows one rebuild on standard error, from `begin` to `end`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._samples: deque[tuple[float, Sequence[int]]] = deque()
        """The positions of all partitions at times of the last seconds."""
        self._begin_s = self._line_s = clock.monotonic_s()
        self._phase = ""
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[status]}"),
            console=err,
            transient=True,
            disable=not err.is_terminal,
        )
        self._tasks: list[TaskID] = []

    def begin(self, progress: RebuildProgress, *, resumed: bool) -> None:
        """Print what is done, and show the bars."""
        generation, former = progress.generation, progress.former
        if not progress.held:
            text = (
                f"generation {generation} is already being built, because generation {former} lost "
                "documents; it becomes active automatically, without a comparison"
            )
        elif resumed:
            text = f"continuing with generation {generation}, which was started before"
        else:
            text = f"building generation {generation}; generation {former} remains active"
        say(text)
        self._bars.start()

    def end(self) -> None:
        """Remove the bars."""
        self._bars.stop()

    def seconds(self) -> float:
        """Return the elapsed time."""
        return self._clock.monotonic_s() - self._begin_s

    def show(self, progress: RebuildProgress) -> None:
        """Update the bars, or print a line."""
        if progress.phase != self._phase:
            self._begin_phase(progress)
        if progress.phase == "building":
            self._show_building(progress)
        elif self._tasks:
            self._bars.update(
                self._tasks[0],
                completed=progress.compared,
                total=progress.sessions or None,
                status=f"{exact(progress.compared)} of {count(progress.sessions, 'session')}"
                if progress.phase == "comparing"
                else "the last records",
            )
        now_s = self._clock.monotonic_s()
        if not err.is_terminal and now_s - self._line_s >= _LINE_S:
            self._line_s = now_s
            say(self._line(progress))

    def _begin_phase(self, progress: RebuildProgress) -> None:
        self._phase = progress.phase
        for task in self._tasks:
            self._bars.remove_task(task)
        if progress.phase == "building":
            names = [f"partition {item.partition}" for item in progress.partitions]
        else:
            names = [progress.phase]
        self._tasks = [self._bars.add_task(name, total=None, status="") for name in names]

    def _show_building(self, progress: RebuildProgress) -> None:
        if not progress.partitions:
            return  # how many there are is not known yet
        if len(self._tasks) != len(progress.partitions):
            self._begin_phase(progress)
        now_s = self._clock.monotonic_s()
        self._samples.append((now_s, [item.position or 0 for item in progress.partitions]))
        while self._samples[0][0] < now_s - _WINDOW_S:
            self._samples.popleft()
        for task, item in zip(self._tasks, progress.partitions, strict=True):
            begin = item.begin or 0
            self._bars.update(
                task,
                completed=(item.position or 0) - begin,
                total=max((item.end or 0) - begin, 1),
                status=f"{_position(item)} · {self._speed(item)}",
            )

    def _rate(self, item: PartitionProgress) -> float:
        (first_s, first), (last_s, last) = self._samples[0], self._samples[-1]
        growth = last[item.partition] - first[item.partition]
        return max(growth, 0) / (last_s - first_s) if last_s > first_s else 0.0

    def _speed(self, item: PartitionProgress) -> str:
        if item.caught_up:
            return "caught up"
        rate = self._rate(item)
        if not rate:
            return "waiting"
        left_ms = round(max((item.end or 0) - (item.position or 0), 0) / rate) * 1_000
        return f"{exact(round(rate))}/s · {duration(left_ms)} left"

    def _line(self, progress: RebuildProgress) -> str:
        if progress.phase == "swapping":
            return f"waiting until generation {progress.generation} has the last records"
        if progress.phase == "comparing":
            return f"comparing: {exact(progress.compared)} of {exact(progress.sessions)}"
        parts = progress.partitions
        done = sum((item.position or 0) - (item.begin or 0) for item in parts)
        of = sum(max((item.end or 0) - (item.begin or 0), 0) for item in parts)
        rate = sum(self._rate(item) for item in parts)
        text = f"building: {exact(done)} of {exact(of)} · {exact(round(rate))}/s"
        ready = sum(item.caught_up for item in parts)
        if rate and of > done and ready < len(parts):
            text += f" · {duration(round((of - done) / rate) * 1_000)} left"
        return f"{text} · {ready} of {count(len(parts), 'partition')} caught up"


def _position(item: PartitionProgress) -> str:
    position = "not started" if item.position is None else exact(item.position)
    return f"{position} of {UNKNOWN if item.end is None else exact(item.end)}"


def print_abandoned(generation: int | None) -> None:
    """Print what was abandoned."""
    if generation is None:
        say("no rebuild is in progress")
    else:
        say(f"generation {generation} was discarded and deleted; readers never saw it")


def print_status(progress: RebuildProgress | None) -> None:
    """Print the progress of a rebuild."""
    if progress is None:
        say("no rebuild is in progress")
        return
    table = plain_table("Partition", "Position", "Of", "State")
    for item in progress.partitions:
        state = "caught up" if item.caught_up else "building"
        table.add_row(
            str(item.partition),
            "-" if item.position is None else exact(item.position),
            UNKNOWN if item.end is None else exact(item.end),
            "not started" if item.position is None else state,
        )
    out.print(table)
    next_step = (
        "`contextgauge rebuild` compares it with the active one and swaps"
        if progress.held
        else "it becomes active automatically once all partitions have caught up"
    )
    say(
        f"generation {progress.generation} is being built; generation {progress.former} is active: "
        f"{next_step}"
    )


def print_result(done: Rebuilt, seconds: float) -> None:
    """Print the result of a rebuild."""
    if done.compared is None:
        say(
            f"generation {done.generation} is active. It was not compared: the workers activated "
            f"it because generation {done.former} lost documents, or another rebuild did"
        )
        return
    _print_comparison(done, done.compared)
    if done.swapped:
        say(
            f"generation {done.generation} is active after {duration(round(seconds * 1_000))}; "
            f"generation {done.former} will be deleted in a minute",
            to=out,
        )
        return
    say(
        f"Nothing was swapped: generation {done.former} remains active, and generation "
        f"{done.generation} follows the log. If the differences are intended (the projection or a "
        "setting of it was changed), `contextgauge rebuild --accept-differences` swaps; "
        "`contextgauge rebuild --abandon` discards the build."
    )


def _print_comparison(done: Rebuilt, compared: Compared) -> None:
    found = count(compared.different, "difference") if compared.different else "all equal"
    say(f"compared {count(compared.sessions, 'session')} and the aggregates: {found}", to=out)
    for item in compared.first:
        subject = "aggregates" if item.session is None else f"session {item.session}"
        say(f"  partition {item.partition} · {subject}: {', '.join(item.fields)}", to=out)
    if compared.different > len(compared.first):
        out.print(f"  and {exact(compared.different - len(compared.first))} more")
    for cut in done.cut:
        say(
            f"  partition {cut.partition}: the log now begins at {exact(cut.begin)}; generation "
            f"{done.former} was built from {exact(cut.former_begin)}, so only that generation has "
            "the earlier records",
            to=out,
        )


def result_json(done: Rebuilt) -> dict[str, Any]:
    """Return the result of a rebuild, for programs."""
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
