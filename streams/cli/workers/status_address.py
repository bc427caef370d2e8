"""Metrics and health of a long-running command, over HTTP on one port.

Any command that runs for long can offer them:

    telemetry = PrometheusTelemetry("worker")
    health = HealthBoard("publish", SystemClock(), chosen.stuck_after_s)
    async with serving(chosen, telemetry, health) as address:
        health.worker("member")
        ...

It is ready from `worker("member")` on, and while nobody waits for a service: whoever does says
`health.away(self, "kafka", why)` before and `health.back(self)` after. A command for which a port
is not a matter of course looks at `chosen.metrics_port` first: 0, the default, is any free one.
"""

import asyncio
import errno
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from contextgauge.errors import ConfigError
from streams.edge.telemetry.health import HealthBoard
from streams.edge.telemetry.metrics import PrometheusTelemetry
from streams.edge.telemetry.server import StatusServer, answers, listening, port_of
from streams.settings import Settings

_BEAT_S = 1.0
"""How often the event loop shows that it turns; far below what it is allowed to stand still."""


@asynccontextmanager
async def serving(
    chosen: Settings,
    telemetry: PrometheusTelemetry,
    health: HealthBoard,
    listener: socket.socket | None = None,
) -> AsyncIterator[str]:
    """Serve `/metrics`, `/healthz` and `/readyz` meanwhile; yield the address that they are at.

    `listener` takes the connections where it is given, else one is made by the settings. Raises
    ConfigError where their port cannot be had.
    """
    own = listener or listener_of(chosen)
    server = StatusServer(own, answers(telemetry, health))
    server.start()
    beating = asyncio.create_task(_beat(health))
    try:
        yield address_of(chosen, own)
    finally:
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)
        server.stop()


def listener_of(chosen: Settings) -> socket.socket:
    """Return what takes connections by the settings. Raises ConfigError where it cannot be had."""
    try:
        return listening(chosen.metrics_host, chosen.metrics_port)
    except OSError as error:
        raise ConfigError(_refused(chosen, error)) from error


def address_of(chosen: Settings, listener: socket.socket) -> str:
    """Return the URL that a listener of the settings' host is reached at."""
    host = f"[{chosen.metrics_host}]" if ":" in chosen.metrics_host else chosen.metrics_host
    return f"http://{host}:{port_of(listener)}"


def _refused(chosen: Settings, error: OSError) -> str:
    """Say which setting is wrong: the address is not this machine's, or the port cannot be had."""
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return (
            f"CONTEXTGAUGE_METRICS_HOST={chosen.metrics_host} is no address of this machine "
            f"({error.strerror}): choose one, or 0.0.0.0 for all"
        )
    return (
        f"CONTEXTGAUGE_METRICS_PORT={chosen.metrics_port} cannot be used on "
        f"{chosen.metrics_host} ({error.strerror}): choose another, or 0 for any free one"
    )


async def _beat(health: HealthBoard) -> None:
    while True:
        health.beat()
        await asyncio.sleep(_BEAT_S)
