"""The web page of `contextgauge demo --serve`, until Ctrl-C: by a server, or by this process."""

import asyncio
import shlex
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import cast

from rich.text import Text

from contextgauge.clock import SystemClock
from contextgauge.errors import StopError
from contextgauge.settings.forms import PREFIX
from streams import codec, wiring
from streams.cli.demo.pipeline import (
    LOOK_S,
    STALL_S,
    Pipeline,
    Worker,
    connection_variables,
    environment_of,
)
from streams.cli.demo.report import step
from streams.cli.screen.output import out
from streams.cli.serve.browser import page_address
from streams.cli.serve.running import Report, say_problem, serve_until
from streams.edge.telemetry.metrics import PrometheusTelemetry
from streams.edge.telemetry.server import answers, listening, port_of
from streams.ports import Health
from streams.serve.api.serving import Serving
from streams.settings.serving import ServingSettings

_HERE = "127.0.0.1"

_CHECK_S = 1.0
"""Interval of the checks whether everything still runs while the page is served."""


async def serve_page(folder: Path, pipeline: Pipeline) -> None:
    """Serve the page on this machine until Ctrl-C: on the settings' port, or a free one."""
    async with page_server(folder, pipeline) as (address, server):
        _show_address(address)
        step("for `contextgauge top` and all other commands, in another terminal:", done=True)
        for name, value in connection_variables(pipeline.settings).items():
            out.print(Text(f"    export {name}={shlex.quote(value)}", style="bold"), soft_wrap=True)
        await until_interrupted(pipeline, server)
    out.print()


@asynccontextmanager
async def page_server(folder: Path, pipeline: Pipeline) -> AsyncIterator[tuple[str, Worker]]:
    """Run a server, and give its address and process. Raises StopError."""
    environment = environment_of(pipeline.settings)
    for name in ServingSettings.model_fields:  # settings of a server for others
        environment.pop(PREFIX + name.upper(), None)
    with _listener(pipeline.settings.serve_port) as listener:
        port = port_of(listener)
    environment |= {PREFIX + "SERVE_PORT": str(port), PREFIX + "LOG_LEVEL": "info"}
    with Worker("serve", folder / "serve.log", environment) as server:
        yield await _address(server), server


async def until_interrupted(pipeline: Pipeline, server: Worker) -> None:
    """Wait for Ctrl-C. Raises StopError if a worker or the server ends before."""

    def check() -> None:
        pipeline.check()
        server.check()

    await _until_interrupted(check)


async def serve_embedded(pipeline: Pipeline) -> None:
    """Serve the page of a pipeline in memory, from its process, until Ctrl-C."""
    settings, clock, stop = pipeline.settings, SystemClock(), asyncio.Event()
    telemetry = PrometheusTelemetry("serve", "worker")
    health = Health("serve", clock, settings.stuck_after_s)
    serving = Serving(
        reader=pipeline.store,
        clock=clock,
        telemetry=telemetry,
        health=health,
        probe=answers(telemetry, health),
        report=Report(clock, say_problem),
        points=wiring.compaction_points(settings),
        prices=wiring.prices(settings),
        thresholds=settings.warning_thresholds,
    )
    with _listener(settings.serve_port) as listener:
        server = asyncio.create_task(serve_until(stop, serving, listener))
        _show_address(page_address(_HERE, listener))
        step("other commands do not see these sessions: they need Kafka and Redis", done=True)

        def check() -> None:
            pipeline.check()
            if server.done():
                raise StopError("the page's server ended early") from server.exception()

        try:
            await _until_interrupted(check)
        finally:
            stop.set()
            await server
    out.print()


def _listener(port: int) -> socket.socket:
    """Return what listens at the settings' port, or at a free one where that is taken."""
    try:
        return listening(_HERE, port)
    except OSError:
        step(f"port {port} is taken: serving the page on a free one", done=True)
        return listening(_HERE, 0)


def _show_address(address: str) -> None:
    step(f"the page is at {address}, live: press Ctrl-C to stop", done=True)


async def _until_interrupted(check: Callable[[], None]) -> None:
    with suppress(asyncio.CancelledError):  # here Ctrl-C is the regular end
        while True:
            check()
            await asyncio.sleep(_CHECK_S)
    cast("asyncio.Task[None]", asyncio.current_task()).uncancel()


async def _address(server: Worker) -> str:
    """Return the server's address from its log. Raises StopError."""
    for _ in range(int(STALL_S / LOOK_S)):
        server.check()
        for line in server.log_file.read_text(errors="replace").splitlines():
            with suppress(ValueError):  # half a line
                entry = codec.loads(line)
                if isinstance(entry, dict) and entry.get("event") == "serving":
                    return f"{entry['address']}/"
        await asyncio.sleep(LOOK_S)
    raise StopError("the page's server does not respond")
