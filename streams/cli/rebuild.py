"""`contextgauge rebuild`: rebuilds the views while readers read, or compares them with the log.

It shows a bar for each partition on a terminal, otherwise a line at intervals.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Annotated, Any

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
from streams.flow.rebuild.audit import AuditResult, audit
from streams.flow.rebuild.rebuild import PartitionProgress, Rebuild, check_log
from streams.flow.rebuild.rebuild import Progress as RebuildProgress
from streams.ports import Clock
from streams.settings import Settings
from streams.wiring.audit import audit_ports
from streams.wiring.deployment import claim_keys

_LINE_S = 10.0
"""How often a line is printed without a terminal: a log stays short."""

_WINDOW_S = 10.0
"""Rates are those of the last seconds: they soon reflect a worker that started or stopped."""


def rebuild(
    *,
    compare: Annotated[
        bool,
        typer.Option(
            "--audit",
            help="Fold the log in memory and compare the views with it; nothing is rebuilt. Exit "
            "code 7: they differ.",
        ),
    ] = False,
    claim: Annotated[
        bool,
        typer.Option(
            "--claim",
            help="Make the keys of CONTEXTGAUGE_KEY_PREFIX this deployment's, where the one whose "
            "they were is gone. The project workers then build the views again.",
        ),
    ] = False,
    accept_loss: Annotated[
        bool,
        typer.Option(
            "--accept-loss",
            help="Rebuild even if context.events no longer has records that the views contain: "
            "what only the views have is lost.",
        ),
    ] = False,
    status: Annotated[
        bool, typer.Option("--status", help="Show the progress of a rebuild, and start none.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Rebuild all views from the log, and swap them in.

    The project workers build them from context.events, so they must run. Readers use the active
    generation meanwhile, then all switch to the new one. If the command is interrupted, the workers
    continue; run it again to wait for them. It is refused if context.events no longer has records
    that the views contain.
    """
    if compare + claim + status > 1:
        raise ConfigError("--audit, --claim and --status cannot be combined")
    if accept_loss and (compare or claim or status):
        raise ConfigError("--accept-loss is for a rebuild only")
    settings = wiring.settings()
    try:
        if claim:
            own = asyncio.run(claim_keys(settings))
            say(f"The keys {settings.key_prefix}:* in Redis are now those of {own}")
        elif status:
            progress = asyncio.run(_status(settings))
            (write_json if as_json else print_status)(progress)
        elif compare:
            audited = asyncio.run(_audit(settings))
            if as_json:
                write_json(audited_json(audited))
            else:
                print_audited(audited)
            if audited.different:
                raise typer.Exit(Exit.DIFFERENT)
        else:
            asyncio.run(_rebuild(settings, accept_loss=accept_loss, json=as_json))
    except KeyboardInterrupt:
        if not (compare or status):
            say("The workers continue to build: `contextgauge rebuild --status` shows the progress")
        raise


async def _rebuild(settings: Settings, *, accept_loss: bool, json: bool) -> None:
    async def check(generation: int) -> None:
        if not accept_loss:
            async with audit_ports(settings) as ports:
                await check_log(ports.log, ports.events_topic, ports.store, generation)

    clock = SystemClock()
    screen = Screen(clock)
    async with wiring.started(wiring.redis_views(settings)) as store:
        rebuild = Rebuild(store, clock, notify=say)
        progress = await rebuild.begin(check)
        screen.begin(progress, resumed=rebuild.resumed)
        try:
            await rebuild.wait(progress, screen.show)
        finally:
            screen.end()
    if json:
        write_json({"generation": progress.generation, "former": progress.active})
    else:
        after = duration(round(screen.seconds() * 1_000))
        say(
            f"generation {progress.generation} is active after {after}; generation "
            f"{progress.active} will be deleted in a minute",
            to=out,
        )


async def _status(settings: Settings) -> RebuildProgress | None:
    async with wiring.started(wiring.redis_views(settings)) as store:
        return await Rebuild(store, SystemClock(), notify=say).status()


async def _audit(settings: Settings) -> AuditResult:
    async with audit_ports(settings) as ports:
        return await audit(ports)


class Screen:
    """Shows one rebuild on standard error, from `begin` to `end`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._samples: deque[tuple[float, Sequence[int]]] = deque()
        """The positions of all partitions at times of the last seconds."""
        self._begin_s = self._line_s = clock.monotonic_s()
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
        doing = "already being built" if resumed else "being built"
        say(f"generation {progress.generation} is {doing}; generation {progress.active} is active")
        self._bars.start()

    def end(self) -> None:
        """Remove the bars."""
        self._bars.stop()

    def seconds(self) -> float:
        """Return the elapsed time."""
        return self._clock.monotonic_s() - self._begin_s

    def show(self, progress: RebuildProgress) -> None:
        """Update the bars, or print a line."""
        if not progress.partitions:
            return  # how many there are is not known yet
        if not self._tasks:
            names = [f"partition {item.partition}" for item in progress.partitions]
            self._tasks = [self._bars.add_task(name, total=None, status="") for name in names]
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
        if not err.is_terminal and now_s - self._line_s >= _LINE_S:
            self._line_s = now_s
            say(self._line(progress.partitions))

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

    def _line(self, parts: Sequence[PartitionProgress]) -> str:
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
    active = UNKNOWN if progress.active is None else progress.active
    say(
        f"generation {progress.generation} is being built; generation {active} is active: readers "
        "switch once all partitions have caught up"
    )


def _found(audited: AuditResult) -> str:
    return count(audited.different, "difference") if audited.different else "all equal"


def print_audited(audited: AuditResult) -> None:
    """Print the result of an audit."""
    say(
        f"generation {audited.generation}: compared {count(audited.sessions, 'session')} and the "
        f"aggregates with the log: {_found(audited)}",
        to=out,
    )
    for item in audited.first:
        subject = "aggregates" if item.session is None else f"session {item.session}"
        say(f"  partition {item.partition} · {subject}: {', '.join(item.fields)}", to=out)
    if audited.different > len(audited.first):
        out.print(f"  and {exact(audited.different - len(audited.first))} more")
    for cut in audited.cut:
        say(
            f"  partition {cut.partition}: the log now begins at {exact(cut.log_begin)}; the views "
            f"were built from {exact(cut.views_begin)}, so only they have the earlier records",
            to=out,
        )


def audited_json(audited: AuditResult) -> dict[str, Any]:
    """Return the result of an audit, for programs."""
    return {
        "generation": audited.generation,
        "compared_sessions": audited.sessions,
        "differences": audited.different,
        "first_differences": [item._asdict() for item in audited.first],
        "cut": [cut._asdict() for cut in audited.cut],
    }
