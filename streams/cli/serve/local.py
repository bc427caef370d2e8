"""The page of `contextgauge view`: reads transcripts in a thread, and serves what it has."""

import asyncio
import signal
import socket
from collections import Counter
from collections.abc import Callable

import uvloop
from rich.progress import BarColumn, Progress, TextColumn

from contextgauge.clock import SystemClock
from streams import wiring
from streams.cli.local_reading import progress_words, reading_of
from streams.cli.screen.figures import count
from streams.cli.screen.output import err, say
from streams.cli.serve.running import Report, say_problem, serve_until, warn_of_open_access
from streams.cli.unread import shown
from streams.cli.workers.addresses import beat
from streams.edge.hosts import is_of_this_machine
from streams.edge.signals import ENDING_SIGNALS, heeded_signals
from streams.edge.telemetry.metrics import PrometheusTelemetry
from streams.edge.telemetry.server import answers
from streams.ports import Health
from streams.serve.api.serving import Serving
from streams.settings import Settings
from streams.wiring import view as parts
from streams.wiring.serve import access
from streams.wiring.view import LocalView

_SHOW_S = 0.1
"""How often the bar is drawn."""

_REPORTED = 3
"""Files with lines that cannot be read that are named at a time."""

_LOOK_S = 1.0
"""How often such lines are looked for while files are followed."""

_PAUSE_S = 60.0
"""After such lines were reported while following, others wait for so long."""


def serve_local(
    settings: Settings,
    host: str,
    local: LocalView,
    listener: socket.socket,
    ready: Callable[[], None],
    *,
    titles: bool,
) -> None:
    """Read and serve until a signal; `ready` is called once it serves.

    Raises ConfigError for tokens that cannot be read, and what ended the reading.
    """
    serving = _serving(settings, host, local, titles=titles)
    uvloop.run(_run(local, serving, listener, ready))


def _serving(settings: Settings, host: str, local: LocalView, *, titles: bool) -> Serving:
    """Return what the server needs. Raises ConfigError for tokens that cannot be read."""
    clock, telemetry = SystemClock(), PrometheusTelemetry("serve", "worker")
    health = Health("view", clock, settings.stuck_after_s)
    warn_of_open_access(settings, host, "--host")
    return Serving(
        reader=local.views,
        clock=clock,
        telemetry=telemetry,
        health=health,
        probe=answers(telemetry, health),
        report=Report(clock, say_problem),
        readers=access(settings).readers,
        only_here=is_of_this_machine(host),
        requests_per_s=settings.serve_requests_per_s,
        streams=settings.serve_streams,
        service="the local file",
        host_setting="--host",
        points=wiring.compaction_points(settings),
        prices=wiring.prices(settings),
        thresholds=settings.warning_thresholds,
        reading=local.reading.progress,
        titles=parts.titles(local.views) if titles else None,
        runtime_settings=parts.runtime_settings(clock),
    )


async def _run(
    local: LocalView,
    serving: Serving,
    listener: socket.socket,
    ready: Callable[[], None],
) -> None:
    """Read and serve until a signal. Raises what ended the reading."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in heeded_signals():
        loop.add_signal_handler(number, _stop, loop, stop)
    async with reading_of(local, stop.set):
        tasks = [asyncio.create_task(beat(serving.health)), asyncio.create_task(_show(local))]
        try:
            await serve_until(stop, serving, listener, ready=ready)
        finally:
            local.reading.stop()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _stop(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    """Stop; at the next signal end at once, which is safe too."""
    stop.set()
    for number in ENDING_SIGNALS:
        loop.remove_signal_handler(number)
        signal.signal(number, signal.SIG_DFL)


async def _show(local: LocalView) -> None:
    """Show on the terminal how much has been read, and then lines that cannot be read."""
    with Progress(
        BarColumn(bar_width=32),
        TextColumn("{task.description}"),
        console=err,
        transient=True,
        auto_refresh=False,
        disable=not err.is_terminal,
    ) as bar:
        task = bar.add_task("Looking for transcripts …", total=None)
        while (done := local.reading.progress()) is None or not done.is_done:
            if done is not None:
                bar.update(task, completed=done.read_bytes, total=done.bytes)
                bar.update(task, description=progress_words(done), refresh=True)
            await asyncio.sleep(_SHOW_S)
    if done.files:
        sessions = await local.views.session_count(1, 0)
        say(f"{count(done.files, 'transcript')}, {count(sessions, 'session')}: following them")
    else:
        say("No transcripts yet: sessions appear when a runtime writes them")
    reported = Counter(local.reading.rejected)
    _report_rejected(reported)
    for text in shown(local.reading.unread):
        say(text, "yellow")
    while True:
        await asyncio.sleep(_LOOK_S)
        rejected = Counter(local.reading.rejected)
        _report_rejected(rejected - reported)
        await asyncio.sleep(_PAUSE_S if rejected - reported else 0)
        reported = rejected


def _report_rejected(rejected: Counter[str]) -> None:
    """Report lines that cannot be read, by file."""
    files = list(rejected.items())
    for path, lines in files[:_REPORTED]:
        problem = f"{count(lines, 'line')} could not be read"
        say(f"{path}: {problem}; `contextgauge replay PATH` shows why", "yellow")
    if more := files[_REPORTED:]:
        say(f"{count(len(more), 'other file')} with such lines", "yellow")
