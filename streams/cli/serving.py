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

from streams.core.errors import ConfigError
from streams.edge.health import HealthBoard
from streams.edge.metrics import PrometheusTelemetry
from streams.edge.status_server import StatusServer, answers
from streams.settings import Settings

_BEAT_S = 1.0
"""How often the event loop shows that it turns; far below what it is allowed to stand still."""


@asynccontextmanager
async def serving(
    chosen: Settings, telemetry: PrometheusTelemetry, health: HealthBoard
) -> AsyncIterator[str]:
    """Serve `/metrics`, `/healthz` and `/readyz` meanwhile; yield the address that they are at.

    Raises ConfigError where the port of the settings cannot be had.
    """
    server = StatusServer(chosen.metrics_host, chosen.metrics_port, answers(telemetry, health))
    try:
        port = server.start()
    except OSError as error:
        raise ConfigError(_refused(chosen, error)) from error
    beating = asyncio.create_task(_beat(health))
    host = f"[{chosen.metrics_host}]" if ":" in chosen.metrics_host else chosen.metrics_host
    try:
        yield f"http://{host}:{port}"
    finally:
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)
        server.stop()


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
