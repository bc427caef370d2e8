"""`contextgauge sessions`, `status` and `events`: what the views have."""

import asyncio
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Annotated

import typer

from contextgauge.clock import SystemClock
from contextgauge.errors import StopError
from streams import codec, wiring
from streams.cli.screen.figures import exact, safe
from streams.cli.screen.options import AsJson, SessionId
from streams.cli.screen.output import err, out, say, write_json
from streams.cli.screen.render import status_box, status_line
from streams.cli.screen.sessions_table import sessions_table
from streams.cli.screen.timeline import timeline
from streams.serve.views.sessions import SessionLookupError, Sessions, active_sessions
from streams.serve.views.snapshot import ViewsGoneError


class Order(StrEnum):
    """How sessions are sorted."""

    recent = "recent"
    pressure = "pressure"


def sessions(
    *,
    order: Annotated[
        Order,
        typer.Option("--sort", help="recent: last active first; pressure: fullest first."),
    ] = Order.recent,
    limit: Annotated[
        int, typer.Option(metavar="N", min=1, help="Maximum number of sessions.")
    ] = 50,
    as_json: AsJson = False,
) -> None:
    """List sessions: context usage, window, compactions.

    `~` marks a window that is assumed because none was reported, and percentages of it.
    """

    async def show(reader: Sessions) -> None:
        views = await reader.ranked(order.value, limit)
        if as_json:
            write_json(views)
        elif views:
            out.print(sessions_table(views, SystemClock().now_ms(), out.width))
            total = await reader.count()
            if total > len(views):
                err.print(f"{exact(len(views))} of {exact(total)}: --limit shows more", style="dim")
        else:
            say(
                "No sessions yet: publish some (`contextgauge publish PATH`) while a derive and a "
                "project worker run"
            )

    _read_views(show)


def status(
    session: SessionId,
    *,
    line: Annotated[
        bool, typer.Option("--line", help="Print a single line, for a status bar.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show one session: usage, breakdown, messages, compactions.

    `--line` prints `Context: 45% (58K/128K tokens)`, with `~` before figures that rest on an
    assumed window.
    """

    async def show(reader: Sessions) -> None:
        view = await reader.find(session)
        if as_json:
            write_json(view)
        elif line:
            say(status_line(view, SystemClock().now_ms()), to=out)
        else:
            out.print(status_box(view, SystemClock().now_ms()))

    _read_views(show)


def events(
    session: SessionId,
    *,
    readings: Annotated[
        bool, typer.Option("--readings", help="Include the context readings.")
    ] = False,
    last: Annotated[
        int | None, typer.Option("--last", metavar="N", min=1, help="Show only the last N records.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print CloudEvents, one JSON object per line.")
    ] = False,
) -> None:
    """Show a session's warnings, limits, compactions and resets.

    In the order of the log. Redis stores the newest 2 000 of a session, and as many readings; all
    of them, and the heartbeats of compactions, are on the topic context.events.
    """

    async def show(reader: Sessions) -> None:
        view = await reader.find(session)
        records = await reader.records(view.session_id, readings=readings)
        shown = records if last is None else records[-last:]
        if as_json:
            for record in shown:
                write_json(codec.loads(codec.to_structured(record)))
            return
        out.print(timeline(shown, out.width, view.chains))
        if len(shown) < len(records):
            err.print(f"the last {exact(len(shown))} of {exact(len(records))}", style="dim")

    _read_views(show)


def _read_views(read: Callable[[Sessions], Awaitable[None]]) -> None:
    """Run `read` on the views of the settings' Redis.

    Raises StopError where there is no such session, or where the views are gone.
    """
    settings = wiring.settings()

    async def run() -> None:
        async with wiring.started(wiring.redis_views(settings)) as store:
            await read(await active_sessions(store, SystemClock()))

    try:
        asyncio.run(run())
    except (SessionLookupError, ViewsGoneError) as error:
        # Ids are input, and each line of an error is printed as one of its own.
        raise StopError(safe(str(error))) from None
