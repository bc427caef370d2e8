"""The server of `contextgauge serve`: uvicorn, in the event loop of a long-running command.

It reads Redis and nothing else, so any number of servers may run, and any may be killed.
"""

import asyncio
import contextlib
import errno
import resource
import socket
import warnings
from collections.abc import Iterator

import structlog
import uvicorn
from fastapi import FastAPI

from contextgauge.clock import SystemClock
from contextgauge.errors import ConfigError, ContextgaugeError, RetryError
from contextgauge.kafka.connection import UnsafeConnectionWarning
from contextgauge.partitioner import partition_of
from contextgauge.settings.forms import PREFIX
from streams import wiring
from streams.cli import exits
from streams.cli.serve.connections import bounded
from streams.edge.telemetry.health import HealthBoard
from streams.edge.telemetry.metrics import PrometheusTelemetry
from streams.edge.telemetry.server import answers, listening, port_of
from streams.ports import Clock
from streams.serve.api.app import Serving, create_app
from streams.settings import Settings
from streams.wiring.serve import is_of_this_machine, readers

_KEEP_ALIVE_S = 30
"""A reader that polls each second, or each ten, keeps its connection."""

_BACKLOG = 4_096
"""Connections that wait to be taken: after a restart all readers of the feed come at once."""

_ENDING_S = 2
"""For answers under way when the server stops; the feed's readers are told and sent away."""

_OTHER_FILES = 700
"""Connections to Redis, of all requests under way and listeners that are brought up to date, and
what else the process has open."""

_AGAIN_S = 60.0
_MOST_TOLD = 100

_UNREAD_MS = 30_000
"""What a reader does not take for so long is let go of with its connection: a server that closes
one politely would hold it until then, however long."""

logger = structlog.get_logger()


async def work(
    chosen: Settings,
    telemetry: PrometheusTelemetry,
    health: HealthBoard,
    stop: asyncio.Event,
) -> None:
    """Serve until told to stop. Raises ConfigError, StopError."""
    views = wiring.redis_views(chosen)
    serving = Serving(
        reader=views,
        partition_of=partition_of,
        clock=SystemClock(),
        telemetry=telemetry,
        health=health,
        probe=answers(telemetry, health),
        report=_Report(SystemClock()),
        readers=readers(chosen),
        only_here=is_of_this_machine(chosen.serve_host),
        requests_per_s=chosen.serve_requests_per_s,
        streams=chosen.serve_streams,
        origins=chosen.serve_origins,
    )
    _warn_of_strangers(chosen)
    _open_many_files()
    listener = _listener(chosen)
    try:
        try:
            await views.start()
        except RetryError as error:
            logger.warning("Redis is away: readers are told to ask again", error=str(error))
        app = create_app(serving)
        server = _Server(_config(chosen, app))
        running = asyncio.create_task(server.serve([listener]))
        stopping = asyncio.create_task(stop.wait())
        host = f"[{chosen.serve_host}]" if ":" in chosen.serve_host else chosen.serve_host
        logger.info("serving", address=f"http://{host}:{port_of(listener)}")
        health.worker("member")
        await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        # Listeners have no end of their own, and the server waits for what is under way.
        await app.state.feed.stop()
        server.should_exit = True
        await running
    finally:
        listener.close()
        await views.stop()


def _config(chosen: Settings, app: FastAPI) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        loop="none",  # it runs in the worker's
        http=bounded(_most_connections()),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        log_level="warning",
        server_header=False,
        proxy_headers=bool(chosen.serve_proxies),
        forwarded_allow_ips=list(chosen.serve_proxies),
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_ENDING_S,
        backlog=_BACKLOG,
    )


class _Server(uvicorn.Server):
    """Leaves signals to the worker that it runs in."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _listener(chosen: Settings) -> socket.socket:
    """Return what takes connections. Raises ConfigError where it cannot be had."""
    try:
        listener = listening(chosen.serve_host, chosen.serve_port)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # not on every system
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNREAD_MS)
    except OSError as error:
        if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
            raise ConfigError(
                f"{PREFIX}SERVE_HOST={chosen.serve_host} is no address of this machine "
                f"({error.strerror}): choose one, or 0.0.0.0 for all"
            ) from error
        raise ConfigError(
            f"{PREFIX}SERVE_PORT={chosen.serve_port} cannot be used on {chosen.serve_host} "
            f"({error.strerror}): choose another, or 0 for any free one"
        ) from error
    else:
        return listener


def _warn_of_strangers(chosen: Settings) -> None:
    if chosen.serve_tokens_file is None and not is_of_this_machine(chosen.serve_host):
        warnings.warn(
            f"{PREFIX}SERVE_HOST={chosen.serve_host} without {PREFIX}SERVE_TOKENS_FILE: whoever "
            "reaches the port reads all sessions, summaries too",
            UnsafeConnectionWarning,
            stacklevel=2,
        )


def _open_many_files() -> None:
    """Let the process have as many connections as the system allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _most_connections() -> int | None:
    """Return how many the system lets this process have, but for those to Redis and its files."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return None
    return max(files - _OTHER_FILES, files // 2)


class _Report:
    """Logs errors, the same one once a minute: readers that poll meet it a hundred times."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._told_s: dict[str, float] = {}

    def __call__(self, doing: str, error: BaseException) -> None:
        # What an error of no kind of ours says may be text of a message.
        ours = isinstance(error, ContextgaugeError)
        told = str(error) if ours else exits.where(error)
        now_s = self._clock.monotonic_s()
        if now_s - self._told_s.get(told, -_AGAIN_S) < _AGAIN_S:
            return
        if len(self._told_s) >= _MOST_TOLD:
            self._told_s.clear()
        self._told_s[told] = now_s
        if isinstance(error, RetryError):
            logger.warning("waiting", doing=doing, error=told)
        elif ours:
            logger.error("cannot answer", doing=doing, error=told)
        else:
            logger.error("an error of contextgauge's own", doing=doing, where=told)
