"""`contextgauge serve`: the HTTP API, the live feed and the page; uvicorn in a worker's event loop.

It reads only Redis, and sends requests to the control plane to Kafka where it may. Any number of
servers may run, and any may be killed.
"""

import asyncio
from functools import partial
from typing import Annotated

import structlog
import typer

from contextgauge.errors import ConfigError, ContextgaugeError, RetryError
from contextgauge.settings.forms import PREFIX
from streams import wiring
from streams.cli.serve.browser import page_address, show_page
from streams.cli.serve.running import Report, serve_until, warn_of_open_access
from streams.cli.workers.addresses import listener_of, url_of
from streams.cli.workers.run import run
from streams.edge.hosts import is_of_this_machine
from streams.edge.telemetry.server import answers
from streams.serve.api.serving import Serving
from streams.wiring.context import WorkerContext
from streams.wiring.deployment import watch_reader
from streams.wiring.serve import access

logger = structlog.get_logger()


def serve(
    *,
    host: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            show_default=f"{PREFIX}SERVE_HOST",
            help="Address to listen on: 127.0.0.1 is for this machine only, 0.0.0.0 for all.",
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            max=65_535,
            show_default=f"{PREFIX}SERVE_PORT",
            help="Port to listen on; 0: any free one.",
        ),
    ] = None,
    open_page: Annotated[
        bool, typer.Option("--open", help="Open the web page in the browser.")
    ] = False,
) -> None:
    """Serve the API, the live feed and the web page, until stopped.

    Reads everything from Redis. By default only this machine can connect, on port 8642.
    """
    if host == "":
        raise ConfigError("--host is empty: name an address, such as 127.0.0.1")
    options = {"serve_host": host, "serve_port": port}
    given = {name: value for name, value in options.items() if value is not None}
    run("serve", partial(_serve, open_page=open_page), wiring.redis_url, options=given)


async def _serve(worker: WorkerContext, *, open_page: bool) -> None:
    """Serve until it is stopped. Raises ConfigError, StopError."""
    settings, telemetry, health = worker.settings, worker.telemetry, worker.health
    views = wiring.redis_views(settings)
    control = wiring.control_store(settings)
    commands = wiring.command_sink(settings) if settings.serve_control else None
    allowed = access(settings)
    conversations, asked = wiring.redis_conversations(settings), wiring.asked_contexts(settings)
    serving = Serving(
        reader=views,
        clock=worker.clock,
        telemetry=telemetry,
        health=health,
        probe=answers(telemetry, health),
        report=Report(worker.clock, log_problem),
        readers=allowed.readers,
        writers=allowed.writers,
        control=control,
        commands=commands,
        only_here=is_of_this_machine(settings.serve_host),
        names=[name.lower() for name in settings.serve_names],
        requests_per_s=settings.serve_requests_per_s,
        streams=settings.serve_streams,
        origins=settings.serve_origins,
        points=wiring.compaction_points(settings),
        prices=wiring.prices(settings),
        thresholds=settings.warning_thresholds,
        conversations=conversations,
        asked=asked,
    )
    warn_of_open_access(settings, settings.serve_host, f"{PREFIX}SERVE_HOST")
    listener = listener_of("SERVE", settings.serve_host, settings.serve_port)
    try:
        try:
            await views.start()
        except RetryError as error:
            logger.warning("Redis is away: clients must retry", error=str(error))
        logger.info("serving", address=url_of(settings.serve_host, listener))
        watching = asyncio.create_task(watch_reader(worker))
        show = partial(show_page, page_address(settings.serve_host, listener))
        ready = show if open_page else None
        await serve_until(worker.stop, serving, listener, settings.serve_proxies, ready)
        await watching
    finally:
        listener.close()
        if commands is not None:
            await commands.stop()
        await control.stop()
        await asked.stop()
        await conversations.stop()
        await views.stop()


def log_problem(doing: str, error: BaseException, text: str) -> None:
    """Log an error that `Report` shows, as severe as it is."""
    if isinstance(error, RetryError):
        logger.warning("waiting", doing=doing, error=text)
    elif isinstance(error, ContextgaugeError):
        logger.error("cannot answer", doing=doing, error=text)
    else:
        logger.error("internal error", doing=doing, where=text)
