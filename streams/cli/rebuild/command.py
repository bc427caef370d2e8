"""`contextgauge rebuild`: rebuilds the views, compares them, and swaps while readers read."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

import typer

from contextgauge.clock import SystemClock
from contextgauge.errors import ConfigError
from streams import wiring
from streams.cli.exits import Exit
from streams.cli.rebuild.report import Screen, print_result, print_status, result_json
from streams.cli.screen.output import err, write_json
from streams.flow.rebuild.progress import Rebuilt
from streams.flow.rebuild.rebuild import Rebuild
from streams.settings import Settings


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
    status: Annotated[
        bool, typer.Option("--status", help="Show the progress of a rebuild, and start none.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Rebuild all views, compare them and swap them in.

    The project workers build them from context.events, so they must run. Readers use the active
    generation meanwhile, then all switch to the new one. If the command is interrupted, run it
    again to continue. Exit code 7: the two generations differ, and nothing was swapped.
    """
    if accept_differences + abandon + status > 1:
        raise ConfigError("--accept-differences, --abandon and --status cannot be combined")
    settings = wiring.settings()
    try:
        if abandon:
            asyncio.run(_abandon(settings))
        elif status:
            asyncio.run(_status(settings, json=as_json))
        else:
            done = asyncio.run(_rebuild(settings, accept=accept_differences, json=as_json))
            if not done.swapped:
                raise typer.Exit(Exit.DIFFERENT)
    except KeyboardInterrupt:
        if not (abandon or status):
            err.print(
                "The workers continue to build: `contextgauge rebuild` resumes, "
                "`contextgauge rebuild --abandon` discards the build",
                soft_wrap=True,
            )
        raise


async def _rebuild(settings: Settings, *, accept: bool, json: bool) -> Rebuilt:
    clock = SystemClock()
    screen = Screen(clock)
    async with wiring.started(wiring.redis_views(settings)) as store:
        rebuild = Rebuild(store, clock, show=screen.show, notify=screen.notify)
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


async def _abandon(settings: Settings) -> None:
    async with _existing(settings) as rebuild:
        abandoned = await rebuild.abandon()
    if abandoned is None:
        err.print("no rebuild is in progress")
    else:
        err.print(f"generation {abandoned} was discarded and deleted; readers never saw it")


async def _status(settings: Settings, *, json: bool) -> None:
    async with _existing(settings) as rebuild:
        progress = await rebuild.status()
    if json:
        write_json(progress)
    else:
        print_status(progress)


@asynccontextmanager
async def _existing(settings: Settings) -> AsyncIterator[Rebuild]:
    async with wiring.started(wiring.redis_views(settings)) as store:
        yield Rebuild(store, SystemClock(), show=lambda _: None, notify=err.print)
