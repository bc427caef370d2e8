"""Serving the application in this process: for `serve`, `view` and the page of `demo`."""

import asyncio
import contextlib
import resource
import socket
import warnings
from collections.abc import Awaitable, Callable, Iterator, Sequence

import uvicorn
from starlette.applications import Starlette

from contextgauge.errors import ContextgaugeError
from contextgauge.kafka.connection import UnsafeConnectionWarning
from contextgauge.settings.forms import PREFIX
from streams.cli import exits
from streams.cli.screen.output import say
from streams.cli.serve.connections import bounded
from streams.edge.hosts import is_of_this_machine
from streams.ports import Clock
from streams.serve.api.app import create_app
from streams.serve.api.serving import Serving
from streams.settings import Settings

_KEEP_ALIVE_S = 30
"""Longer than the interval at which clients poll, so that they reuse their connections."""

_BACKLOG = 4_096
"""Pending connections: after a restart all clients of the feed reconnect at once."""

_ENDING_S = 2
"""For responses in progress when the server stops; the feed disconnects its clients before."""

_OTHER_FILES = 700
"""File descriptors for other than clients: connections to Redis and what else is open."""

_REPEAT_S = 60.0
_MAX_REMEMBERED = 100

_UNREAD_MS = 30_000
"""A connection whose client does not read for so long is dropped; a graceful close would wait."""


async def serve_until(
    stop: asyncio.Event,
    serving: Serving,
    listener: socket.socket,
    proxies: Sequence[str] = (),
    ready: Callable[[], object] | None = None,
) -> None:
    """Serve the API and the page until `stop` is set; `ready` is called once they are served."""
    app = create_app(serving)

    def begun() -> None:
        serving.health.worker("member")
        if ready is not None:
            ready()

    # The feed's responses never end, and the server waits for responses in progress.
    await run_server(stop, app, listener, proxies, begun, app.state.feed.stop)


async def run_server(
    stop: asyncio.Event,
    app: Starlette,
    listener: socket.socket,
    proxies: Sequence[str],
    begun: Callable[[], object],
    ending: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Serve an application until `stop` is set; `ending` is called before the server ends."""
    _open_many_files()
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # not on every system
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNREAD_MS)
    server = ServerWithoutSignals(_config(app, proxies))
    running = asyncio.create_task(server.serve([listener]))
    stopping = asyncio.create_task(stop.wait())
    begun()
    await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if ending is not None:
        await ending()
    server.should_exit = True
    await running


def _config(app: Starlette, proxies: Sequence[str]) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        loop="none",  # the worker's
        http=bounded(_most_connections()),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        log_level="warning",
        server_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=_ENDING_S,
        backlog=_BACKLOG,
    )


class ServerWithoutSignals(uvicorn.Server):
    """Leaves signals to the worker that it runs in."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


def warn_of_open_access(settings: Settings, host: str, setting: str) -> None:
    """Warn if anyone who reaches the server may read; `setting` named the host."""
    if settings.serve_tokens_file is None and not is_of_this_machine(host):
        warnings.warn(
            f"{setting}={host} without {PREFIX}SERVE_TOKENS_FILE: anyone "
            "who can connect can read all sessions, including summaries",
            UnsafeConnectionWarning,
            stacklevel=2,
        )


def _open_many_files() -> None:
    """Raise the limit on open files, and so on connections, to the system's maximum."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _most_connections() -> int | None:
    """Return the limit on clients, by the limit on open files; None: unlimited."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return None
    return max(files - _OTHER_FILES, files // 2)


class Report:
    """Shows errors, each at most once a minute: every client that polls may trigger it.

    `show` gets what was being done, the error, and its text.
    """

    def __init__(self, clock: Clock, show: Callable[[str, BaseException, str], None]) -> None:
        self._clock, self._show = clock, show
        self._shown_s: dict[str, float] = {}

    def __call__(self, doing: str, error: BaseException) -> None:
        """Show an error and what was being done."""
        # The text of an error of another kind may quote a message.
        text = str(error) if isinstance(error, ContextgaugeError) else exits.where(error)
        now_s = self._clock.monotonic_s()
        if now_s - self._shown_s.get(text, -_REPEAT_S) < _REPEAT_S:
            return
        if len(self._shown_s) >= _MAX_REMEMBERED:
            self._shown_s.clear()
        self._shown_s[text] = now_s
        self._show(doing, error, text)


def say_problem(doing: str, _error: BaseException, text: str) -> None:
    """Show an error on standard error: for `Report` of a server in a terminal."""
    say(f"contextgauge: {doing}: {text}")
