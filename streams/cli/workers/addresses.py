"""The addresses that long-running commands listen at, and metrics and health over HTTP at one.

A worker is ready from `health.worker("member")` on, while nothing waits for a service: what waits
calls `health.away(self, "kafka", why)` before and `health.back(self)` after.
"""

import asyncio
import errno
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from contextgauge.errors import ConfigError
from contextgauge.settings.forms import PREFIX
from streams.edge.telemetry.metrics import PrometheusTelemetry
from streams.edge.telemetry.server import StatusServer, answers, listening, port_of
from streams.ports import Health
from streams.settings import Settings

_BEAT_S = 1.0
"""Interval of the event loop's heartbeat; far below the time after which it counts as stuck."""


@asynccontextmanager
async def serving(
    settings: Settings,
    telemetry: PrometheusTelemetry,
    health: Health,
    listener: socket.socket | None = None,
) -> AsyncIterator[str]:
    """Serve `/metrics`, `/healthz` and `/readyz`; yield their address.

    Uses `listener` if given, else the settings' address. Raises ConfigError where that is not
    available.
    """
    listener = listener or listener_of("METRICS", settings.metrics_host, settings.metrics_port)
    server = StatusServer(listener, answers(telemetry, health))
    server.start()
    beating = asyncio.create_task(beat(health))
    try:
        yield url_of(settings.metrics_host, listener)
    finally:
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)
        server.stop()


def listener_of(name: str, host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address of the settings.

    Raises ConfigError: the host is not this machine's, or the port is not free.
    """
    try:
        return listening(host, port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            option = "" if name == "METRICS" else "--port or "
            raise ConfigError(
                f"port {port} is taken: name another with {option}{PREFIX}{name}_PORT"
            ) from error
        if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
            wrong = f"{name}_HOST={host} is not an address of this machine"
            remedy = "choose one, or 0.0.0.0 for all"
        else:
            wrong = f"{name}_PORT={port} is not available on {host}"
            remedy = "choose another, or 0 for any free one"
        reason = (
            error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)
        )
        raise ConfigError(f"{PREFIX}{wrong} ({reason}): {remedy}") from error


def url_of(host: str, listener: socket.socket) -> str:
    """Return the URL of a listener at this host."""
    return f"http://{f'[{host}]' if ':' in host else host}:{port_of(listener)}"


async def beat(health: Health) -> None:
    """Note each second that the event loop turns."""
    while True:
        health.beat()
        await asyncio.sleep(_BEAT_S)
