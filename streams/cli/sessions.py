"""`contextgauge sessions`, `status` and `events`: what the views tell."""

import asyncio
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Annotated

import typer

from contextgauge.clock import SystemClock
from contextgauge.partitioner import partition_of
from streams import codec, wiring
from streams.cli.exits import Exit
from streams.cli.screen.output import err, exact, out, safe, write_json
from streams.cli.screen.render import status_box, status_line
from streams.cli.screen.sessions_table import sessions_table
from streams.cli.screen.timeline import timeline
from streams.ports import Ranking
from streams.serve.api.sessions import SessionLookupError, Sessions, ViewsGoneError

NOT_FOUND = Exit.STOPPED
"""Exit code where there is no such session, or where the views are gone."""

SessionName = Annotated[
    str, typer.Argument(metavar="SESSION", help="A session's id, or enough of its beginning.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


class Order(StrEnum):
    """How sessions are listed."""

    recent = "recent"
    pressure = "pressure"


def sessions(
    *,
    order: Annotated[
        Order,
        typer.Option("--sort", help="recent: the last active first; pressure: the fullest first."),
    ] = Order.recent,
    limit: Annotated[int, typer.Option(min=1, help="List so many at most.")] = 50,
    as_json: AsJson = False,
) -> None:
    """List the sessions: how full each is, of which window, and its compactions.

    `~` marks a window that nobody told, and the percentage of it.
    """
    ranking: Ranking = "pressure" if order is Order.pressure else "recent"

    async def ask(found: Sessions) -> None:
        views = await found.ranked(ranking, limit)
        if as_json:
            write_json(views)
            return
        if not views:
            err.print(
                "no sessions yet: publish some (`contextgauge publish PATH`) with a derive and a "
                "project worker at work",
                soft_wrap=True,
            )
            return
        out.print(sessions_table(views, SystemClock().now_ms(), out.width))
        total = await found.count()
        if total > len(views):
            err.print(f"{exact(len(views))} of {exact(total)}: --limit shows more", style="dim")

    _asking(ask)


def status(
    session: SessionName,
    *,
    line: Annotated[
        bool, typer.Option("--line", help="Print one line for a status bar, and nothing else.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show all that is known of a session: usage, breakdown, messages, compactions.

    `--line` prints `Context: 45% (58K/128K tokens)`, and `~` before what rests on a window that
    nobody told.
    """

    async def ask(found: Sessions) -> None:
        view = await found.find(session)
        if as_json:
            write_json(view)
        elif line:
            out.print(status_line(view, SystemClock().now_ms()), markup=False, soft_wrap=True)
        else:
            out.print(status_box(view, SystemClock().now_ms()))

    _asking(ask)


def events(
    session: SessionName,
    *,
    readings: Annotated[bool, typer.Option("--readings", help="Show the readings too.")] = False,
    last: Annotated[
        int | None, typer.Option("--last", min=1, help="Show only the last so many.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print CloudEvents, one JSON object a line.")
    ] = False,
) -> None:
    """Show a session's timeline: warnings, limits, compactions, resets.

    The newest 2 000 of a session are kept for this, and as many readings; all of them are on
    the topic context.events, heartbeats of compactions too.
    """

    async def ask(found: Sessions) -> None:
        view = await found.find(session)
        records = await found.records(view.session_id, readings=readings)
        shown = records if last is None else records[-last:]
        if as_json:
            for record in shown:
                write_json(codec.loads(codec.to_structured(record)))
            return
        out.print(timeline(shown, view.chains))
        if len(shown) < len(records):
            err.print(f"the last {exact(len(shown))} of {exact(len(records))}", style="dim")

    _asking(ask)


def _asking(ask: Callable[[Sessions], Awaitable[None]]) -> None:
    """Run a question against the views of the settings."""
    chosen = wiring.settings()

    async def run() -> None:
        store = wiring.redis_views(chosen)
        try:
            await store.start()
            await ask(await Sessions(store, partition_of).pinned())
        finally:
            await store.stop()

    try:
        asyncio.run(run())
    except (SessionLookupError, ViewsGoneError) as error:
        err.print(f"contextgauge: {safe(str(error))}", markup=False, soft_wrap=True, style="red")
        raise typer.Exit(NOT_FOUND) from None


def register(app: typer.Typer) -> None:
    """Add the commands that read the views."""
    app.command()(sessions)
    app.command()(status)
    app.command()(events)
