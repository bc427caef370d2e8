"""`contextgauge rebuild`: the views folded anew, compared, and swapped while readers read."""

import asyncio
from typing import Annotated

import typer

from contextgauge.clock import SystemClock
from contextgauge.errors import ConfigError
from streams import wiring
from streams.cli.exits import Exit
from streams.cli.rebuild.screen import Screen, as_json, say_outcome, say_status
from streams.cli.screen.output import err, write_json
from streams.flow.rebuild.rebuild import Rebuild, Rebuilt
from streams.settings import Settings


def rebuild(
    *,
    accept_differences: Annotated[
        bool,
        typer.Option(
            "--accept-differences",
            help="Swap even if the new generation differs, as after a change of the fold.",
        ),
    ] = False,
    abandon: Annotated[
        bool, typer.Option("--abandon", help="Give up a rebuild that was begun, and delete it.")
    ] = False,
    status: Annotated[
        bool, typer.Option("--status", help="Show how far a rebuild is, and begin none.")
    ] = False,
    as_json_: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
) -> None:
    """Rebuild all views, compare them and swap them in.

    They are folded from context.events by the project workers, which must run. Readers go on with
    the active generation meanwhile, and then all use the new one. Ended early and run again, it
    goes on where it was.
    Exit code 7: the two generations differ, and nothing was swapped.
    """
    if accept_differences + abandon + status > 1:
        raise ConfigError("--accept-differences, --abandon and --status: choose one of them")
    chosen = wiring.settings()
    try:
        if abandon:
            asyncio.run(_abandon(chosen))
        elif status:
            asyncio.run(_status(chosen, json=as_json_))
        else:
            done = asyncio.run(_rebuild(chosen, accept=accept_differences, json=as_json_))
            if not done.swapped:
                raise typer.Exit(Exit.DIFFERENT)
    except KeyboardInterrupt:
        if not (abandon or status):
            err.print(
                "the workers go on building: `contextgauge rebuild` goes on here, "
                "`contextgauge rebuild --abandon` gives it up",
                soft_wrap=True,
            )
        raise


async def _rebuild(chosen: Settings, *, accept: bool, json: bool) -> Rebuilt:
    store, clock = wiring.redis_views(chosen), SystemClock()
    screen = Screen(clock)
    try:
        await store.start()
        rebuild = Rebuild(store, clock, show=screen.show, tell=screen.tell)
        progress = await rebuild.begin()
        screen.begin(progress, resumed=rebuild.resumed)
        try:
            done = await rebuild.run(accept=accept)
        finally:
            screen.end()
        if json:
            write_json(as_json(done))
        else:
            say_outcome(done, screen.seconds())
        return done
    finally:
        await store.stop()


async def _abandon(chosen: Settings) -> None:
    store = wiring.redis_views(chosen)
    try:
        await store.start()
        given_up = await Rebuild(
            store, SystemClock(), show=lambda _: None, tell=err.print
        ).abandon()
    finally:
        await store.stop()
    if given_up is None:
        err.print("no rebuild is under way")
    else:
        err.print(f"generation {given_up} was given up and deleted; readers never saw it")


async def _status(chosen: Settings, *, json: bool) -> None:
    store = wiring.redis_views(chosen)
    try:
        await store.start()
        progress = await Rebuild(store, SystemClock(), show=lambda _: None, tell=err.print).status()
    finally:
        await store.stop()
    if json:
        write_json(progress)
    else:
        say_status(progress)
