"""`contextgauge top`: all sessions, live, in the terminal."""

import asyncio
import errno
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Annotated, NamedTuple

import typer
from rich.live import Live

from contextgauge.clock import SystemClock
from contextgauge.errors import ConfigError, ContextgaugeError, RetryError
from schemas.views import Compaction
from streams import wiring
from streams.cli.listing import Order
from streams.cli.screen.options import Titles
from streams.cli.screen.output import out
from streams.cli.stored import ranked, stored_views
from streams.cli.top.frame import Detail, Frame, LocalState, Overview, ScreenContent, once
from streams.cli.top.keys import KeyByKey, Keys
from streams.cli.top.state import Chosen, press, rows
from streams.codec import view_codec
from streams.core.until_compaction import NO_POINTS, CompactionPoints
from streams.edge.files.runtime_folders import transcript_folders
from streams.edge.files.session_files import SessionFiles
from streams.flow.common.deployment import ForeignKeysError
from streams.ports import Clock, Ranking, ViewReader
from streams.serve.api.serving import ReadTitles
from streams.serve.views.sessions import SessionLookupError, Sessions, active_sessions
from streams.serve.views.snapshot import Snapshots, ViewsGoneError
from streams.settings import Settings
from streams.wiring.deployment import check_reader

_DRAW_S = 1.0
"""Interval at which elapsed times are redrawn, even if the views do not change."""

_KEY_BYTES = 1_024


def top(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATH]…",
            help="Transcripts or folders: shows their sessions, without Redis.",
        ),
    ] = None,
    *,
    local: Annotated[
        bool,
        typer.Option(
            "--local", help="Show this machine's transcripts, also where Redis is configured."
        ),
    ] = False,
    show_once: Annotated[
        bool, typer.Option("--once", help="Print one frame and exit, as for pipes.")
    ] = False,
    interval_s: Annotated[
        float,
        typer.Option(
            "--interval",
            metavar="SECONDS",
            min=0.2,
            max=60.0,
            help="Time between reads of the views.",
        ),
    ] = 1.0,
    limit: Annotated[
        int, typer.Option(metavar="N", min=1, max=5_000, help="Maximum number of sessions.")
    ] = 200,
    titles: Titles = False,
) -> None:
    """Watch all sessions live in the terminal.

    The sessions in Redis; where none is configured, those that runtimes store on this machine.
    Shows how full each window is, which sessions are compacting and for how long; live sessions
    come before quiet ones. Keys: `p` and `r` sort by pressure and by last activity, `<` and `>` by
    any column, `/` filters by ID, model, folder or state, the arrows select, Enter opens a session
    with its compactions, `?` lists all keys, `q` quits.
    """
    settings = wiring.settings()
    if not show_once and not (sys.stdin.isatty() and out.is_terminal):
        raise ConfigError(
            "contextgauge top needs a terminal: --once prints one frame, `contextgauge sessions` "
            "a table"
        )

    shown = _Shown(limit, interval_s, titles=titles, once=show_once)
    if local or paths or settings.redis_url is None:
        _show_transcripts(settings, paths or (), shown)
    else:
        asyncio.run(_show_stored(settings, shown))


class _Shown(NamedTuple):
    """What the command line asks for."""

    limit: int
    interval_s: float
    titles: bool
    once: bool


def _show_transcripts(settings: Settings, paths: Sequence[str], shown: _Shown) -> None:
    from streams.cli.top.local import LocalSource, show_local  # noqa: PLC0415 -- Redis needs none

    async def show(local: LocalSource) -> None:
        titles = local.titles if shown.titles else None
        points = wiring.compaction_points(settings)
        source = SessionSource(local.view.views, shown.limit, titles, points, local.state)
        async with local.reading() as ended:
            if shown.once:
                await local.wait_until_read(ended)
                await _show_once(source)
            else:
                await _Top(source, shown.interval_s, ended).run()

    show_local(settings, paths, show)


async def _show_stored(settings: Settings, shown: _Shown) -> None:
    files = SessionFiles(transcript_folders(os.environ))

    async def titles_of(session_ids: Sequence[str]) -> Mapping[str, str]:
        return await asyncio.to_thread(files.titles, session_ids)

    store = stored_views(settings)
    try:
        await check_reader(settings)
    except ForeignKeysError:
        await store.stop()
        raise
    except ContextgaugeError:
        pass  # the screen shows what else is wrong with Redis
    titles = titles_of if shown.titles else None
    source = SessionSource(store, shown.limit, titles, wiring.compaction_points(settings))
    try:
        if shown.once:
            await store.start()
            await _show_once(source)
        else:
            await _Top(source, shown.interval_s, asyncio.Event()).run()
    finally:
        await store.stop()


@dataclass(frozen=True, slots=True)
class SessionSource:
    """Where sessions are read: Redis, or local transcripts, of which `local` returns the state.

    `points` are the settings' own.
    """

    store: ViewReader
    limit: int
    titles: ReadTitles | None = None
    points: CompactionPoints = NO_POINTS
    local: Callable[[], LocalState] | None = None
    clock: Clock = field(default_factory=SystemClock)

    async def overview(self, sessions: Sessions, ranking: Ranking) -> Overview:
        """Return the first sessions of a ranking, with titles from local transcripts."""
        local = None if self.local is None else self.local()  # before what it says has been read
        views = await ranked(sessions, Order(ranking), self.limit)
        total, newest_ms = await sessions.count(), await sessions.newest_ms()
        names = [view.session_id for view in views]
        titles = {} if self.titles is None else await self.titles(names)
        points = await sessions.points(views, self.points)
        return Overview(sessions.snapshot, tuple(views), total, newest_ms, titles, points, local)


async def _show_once(source: SessionSource) -> None:
    sessions = await active_sessions(source.store, source.clock)
    overview = await source.overview(sessions, "pressure")
    out.print(once(overview, source.clock.now_ms(), out.width), soft_wrap=True)


class _Top:
    """The live view: a task reads the views, another draws whenever something has changed.

    It ends with `ended`, too: then nothing changes any more.
    """

    def __init__(
        self,
        source: SessionSource,
        interval_s: float,
        ended: asyncio.Event,
    ) -> None:
        self._source, self._store, self._clock = source, source.store, source.clock
        self._snapshots = Snapshots(source.store, source.clock)
        self._interval_s, self._ended = interval_s, ended
        self._known, self._chosen = ScreenContent(), Chosen()
        self._keys = Keys()
        self._changed, self._read_now = asyncio.Event(), asyncio.Event()

    async def run(self) -> None:
        """Show sessions until the user quits, or a signal arrives."""
        reading = asyncio.create_task(self._read())
        try:
            with (
                KeyByKey(sys.stdin.fileno()) as keyboard,
                Live(console=out, screen=True, auto_refresh=False) as live,
                self._listening(keyboard, live),
            ):
                while not (self._chosen.leaving or reading.done() or self._ended.is_set()):
                    self._draw(live)
                    await self._wait()
        except OSError as error:
            if error.errno != errno.EIO:  # the terminal was closed
                raise
        finally:
            reading.cancel()
            # A permanent error: it is shown after the regular screen is back.
            await asyncio.gather(reading, return_exceptions=True)
        if not reading.cancelled() and (failure := reading.exception()) is not None:
            raise failure

    async def _wait(self) -> None:
        """Wait for a key, for new views or for the next second."""
        self._changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(_DRAW_S):
                await self._changed.wait()

    def _draw(self, live: Live) -> None:
        frame = Frame(self._known, self._chosen, self._clock.now_ms())
        live.update(frame, refresh=True)
        if self._chosen.opened is not None:
            scroll = min(self._chosen.scroll, frame.last_scroll)
            self._chosen = replace(self._chosen, scroll=scroll)

    async def _read(self) -> None:
        """Read the views in a loop; while Redis is away, show that and retry."""
        while True:
            self._read_now.clear()
            try:
                self._known = await self._latest()
            except (RetryError, ViewsGoneError) as error:
                self._known = self._known._replace(problem=str(error))
            self._changed.set()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._interval_s):
                    await self._read_now.wait()

    async def _latest(self) -> ScreenContent:
        sessions = Sessions(self._store, await self._snapshots.now())
        overview = await self._source.overview(sessions, self._chosen.ranking)
        detail: Detail | None = None
        if self._chosen.opened is not None:
            try:
                view = await sessions.find(self._chosen.opened)
                stored = await sessions.compactions(view.session_id)
                compactions = [view_codec.decode(Compaction, document) for document in stored]
                points = await sessions.points([view], self._source.points)
                detail = Detail(view, tuple(compactions), points)
            except SessionLookupError:
                self._chosen = replace(self._chosen, opened=None)
        return ScreenContent(overview, detail, self._clock.now_ms())

    @contextmanager
    def _listening(self, keyboard: KeyByKey, live: Live) -> Iterator[None]:
        """Handle keys, and the terminal's signals: resize, suspend, quit."""
        loop = asyncio.get_running_loop()

        def stop() -> None:
            # The shell gets its screen back, and resumes this process.
            live.stop()
            keyboard.restore()
            os.kill(os.getpid(), signal.SIGSTOP)
            keyboard.__enter__()
            live.start()
            self._changed.set()

        def quit_() -> None:
            self._chosen = replace(self._chosen, leaving=True)
            self._changed.set()

        handlers = {
            signal.SIGWINCH: self._changed.set,
            signal.SIGTSTP: stop,
            signal.SIGINT: quit_,
            signal.SIGTERM: quit_,
            signal.SIGHUP: quit_,
        }
        for number, handler in handlers.items():
            loop.add_signal_handler(number, handler)
        loop.add_reader(sys.stdin.fileno(), self._read_keys)
        try:
            yield
        finally:
            loop.remove_reader(sys.stdin.fileno())
            for number in handlers:
                loop.remove_signal_handler(number)

    def _read_keys(self) -> None:
        try:
            data = os.read(sys.stdin.fileno(), _KEY_BYTES)
        except OSError:
            data = b""  # the terminal is gone
        if not data:
            self._chosen = replace(self._chosen, leaving=True)
        for key in self._keys.read(data):
            before = self._chosen
            overview = self._known.overview or Overview(None)
            now_ms = self._clock.now_ms()
            shown = rows(overview.views, before, now_ms, overview.titles, overview.points)
            self._chosen = press(before, key, shown)
            if (before.ranking, before.opened) != (self._chosen.ranking, self._chosen.opened):
                self._read_now.set()
        self._changed.set()
