"""`contextgauge sessions`; and how it, `status` and `events` read the views."""

import asyncio
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Annotated

import typer

from contextgauge.clock import SystemClock
from streams import wiring
from streams.cli.exits import Exit
from streams.cli.screen.options import AsJson
from streams.cli.screen.output import err, exact, out, safe, write_json
from streams.cli.screen.sessions_table import sessions_table
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
            err.print(
                "No sessions yet: publish some (`contextgauge publish PATH`) while a derive and a "
                "project worker run",
                soft_wrap=True,
            )

    read_views(show)


def read_views(read: Callable[[Sessions], Awaitable[None]]) -> None:
    """Run `read` on the views of the settings' Redis.

    Exits with STOPPED where there is no such session, or where the views are gone.
    """
    settings = wiring.settings()

    async def run() -> None:
        store = wiring.redis_views(settings)
        try:
            await store.start()
            await read(await active_sessions(store, SystemClock()))
        finally:
            await store.stop()

    try:
        asyncio.run(run())
    except (SessionLookupError, ViewsGoneError) as error:
        err.print(f"contextgauge: {safe(str(error))}", markup=False, soft_wrap=True, style="red")
        raise typer.Exit(Exit.STOPPED) from None
