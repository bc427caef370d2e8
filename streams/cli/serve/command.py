"""`contextgauge serve`: the HTTP API and the page; `contextgauge token`: who may read them."""

import asyncio
from typing import Annotated

import typer

from streams import wiring
from streams.cli.screen.output import err, out
from streams.cli.workers import commands as workers
from streams.edge.files.tokens import line_of, new_token
from streams.edge.telemetry.health import HealthBoard
from streams.edge.telemetry.metrics import PrometheusTelemetry
from streams.settings import Settings


def serve() -> None:
    """Serve the API, the live feed and the page over HTTP, until told to stop.

    Everything is read from Redis. By default it answers on this machine only, on port 8642.
    """

    async def work(
        chosen: Settings,
        telemetry: PrometheusTelemetry,
        health: HealthBoard,
        stop: asyncio.Event,
    ) -> None:
        # Here, and not above: a web framework would take every other command half a second.
        from streams.cli.serve import server  # noqa: PLC0415

        await server.work(chosen, telemetry, health, stop)

    workers.run("serve", work, wiring.redis_url)


def token(
    name: Annotated[str, typer.Argument(help="Who is to read: letters, digits, and . _ @ -")],
) -> None:
    """Make a token for a reader of the API: show it once, and the line to keep of it.

    The line goes into the file that CONTEXTGAUGE_SERVE_TOKENS_FILE names; it holds the token's
    hash only. Taking the line out takes the token back, without a restart.
    """
    made = new_token()
    line = line_of(name, made)
    err.print(f"the token, for {name} alone; it is not shown again:", soft_wrap=True)
    err.print(made, markup=False, highlight=False, soft_wrap=True)
    err.print("the line for the file of CONTEXTGAUGE_SERVE_TOKENS_FILE:", soft_wrap=True)
    out.print(line, markup=False, highlight=False, soft_wrap=True)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(serve)
    app.command()(token)
