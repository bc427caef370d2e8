"""`contextgauge sessions`, `status` and `events`: what the views have, or a transcript gives."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contextgauge.clock import SystemClock
from contextgauge.errors import ConfigError, StopError
from schemas.records import Json, Record
from schemas.views import Compaction, SessionView
from streams import codec, wiring
from streams.cli.exits import Exit
from streams.cli.screen.figures import exact, safe
from streams.cli.screen.options import AsJson, SessionOrPath, Titles
from streams.cli.screen.output import err, out, reading, say, write_json
from streams.cli.screen.receipt import receipt_box
from streams.cli.screen.render import status_box, status_line
from streams.cli.screen.sessions_table import live_first, sessions_table
from streams.cli.screen.timeline import timeline
from streams.cli.transcripts import Replay, is_path, session_of
from streams.codec import views as view_codec
from streams.core.session_status import THRESHOLDS, leading_chain, status_of
from streams.core.until_compaction import CompactionPoints
from streams.edge.files.session_files import SessionFiles, transcript_folders
from streams.serve.views.sessions import SessionLookupError, Sessions, active_sessions
from streams.serve.views.snapshot import ViewsGoneError
from streams.settings import Settings

if TYPE_CHECKING:
    from streams.edge.redis.views import RedisViews


class Order(StrEnum):
    """How sessions are sorted."""

    recent = "recent"
    pressure = "pressure"


def sessions(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH",
            help="Transcripts or folders: lists their sessions, without Redis.",
        ),
    ] = None,
    *,
    order: Annotated[
        Order,
        typer.Option(
            "--sort",
            help="recent: last active first; pressure: fullest first, stale sessions at the end.",
        ),
    ] = Order.recent,
    limit: Annotated[
        int, typer.Option(metavar="N", min=1, help="Maximum number of sessions.")
    ] = 50,
    titles: Titles = False,
    as_json: AsJson = False,
) -> None:
    """List sessions: context usage, window, compactions.

    `~` marks the default window, which is assumed for an unknown model, percentages of it, and
    tokens until compaction that are estimated from earlier compactions.

    Until: tokens left until automatic compaction, or how many are over where it is due. Messages:
    since the last compaction or reset, and in all (3/135).
    """
    if titles and as_json:
        raise ConfigError("--titles and --json exclude each other: titles are for the screen only")
    if paths:
        replayed = Replay(paths, leave_out=True, as_on_this_machine=True)
        with reading():
            views = _ordered(list(replayed.views().values()), order)
            points = replayed.points(views)
        files = [source.path for source in replayed.sources if source.path is not None]
        shown = views[:limit]
        if as_json:
            _write_sessions(shown, shown, points)
        else:
            _show_sessions(shown, len(views), points, titles=titles, files=files)
        if replayed.unreadable:
            raise typer.Exit(Exit.STOPPED)
        return

    async def show(reader: Sessions) -> None:
        views = await ranked(reader, order, limit)
        points = await reader.points(views, wiring.compaction_points(wiring.settings()))
        total = await reader.count()
        if as_json:
            _write_sessions(views, await reader.with_arrivals(views), points)
        else:
            _show_sessions(await reader.with_arrivals(views), total, points, titles=titles)

    _read_views(show)


def status(
    session: SessionOrPath,
    *,
    line: Annotated[
        bool, typer.Option("--line", help="Print a single line, for a status bar.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show one session: usage, breakdown, messages, compactions.

    Then the receipt of the latest compaction: what it cost and did.

    `--line` prints `Context: 45% (58K/128K tokens)`, with `~` before figures that rest on the
    default window, which is assumed for an unknown model.
    """

    def show(
        view: SessionView,
        timed: SessionView,
        points: CompactionPoints,
        latest: Compaction | None,
    ) -> None:
        now_ms = SystemClock().now_ms()
        if as_json:
            write_json(_judged(view, timed, points, now_ms))
        elif line:
            say(status_line(timed, now_ms), to=out)
        else:
            out.print(status_box(timed, now_ms, points))
            if latest is not None:
                out.print(receipt_box(latest))

    async def read(reader: Sessions) -> None:
        view = await reader.find(session)
        points = await reader.points([view], wiring.compaction_points(wiring.settings()))
        stored = await reader.compactions(view.session_id)
        latest = view_codec.decode(Compaction, stored[0]) if stored else None
        show(view, (await reader.with_arrivals([view]))[0], points, latest)

    if is_path(session):
        with reading():
            replayed = session_of(session)
        show(replayed.view, replayed.view, replayed.points, replayed.latest_compaction())
    else:
        _read_views(read)


def events(
    session: SessionOrPath,
    *,
    show_all: Annotated[
        bool,
        typer.Option(
            "--all", help="Show each entry: by default, steps below 70% and the like are folded."
        ),
    ] = False,
    readings: Annotated[
        bool, typer.Option("--readings", help="Include the context readings.")
    ] = False,
    last: Annotated[
        int | None, typer.Option("--last", metavar="N", min=1, help="Show only the last N records.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print CloudEvents, one JSON object per line.")
    ] = False,
) -> None:
    """Show a session's timeline: warnings, compactions, resets.

    Warnings below 70% and what only describes the session are folded, unless `--all` or `--json`.

    In the order of the log. Redis stores the newest 2,000 of a session, and as many readings; all
    of them, and the heartbeats of compactions, are on the topic context.events.
    """

    def show(view: SessionView, records: Sequence[Record]) -> None:
        shown = records if last is None else records[-last:]
        if as_json:
            for record in shown:
                write_json(codec.loads(codec.to_structured(record)))
            return
        doubts = status_of(view).window_doubts
        screen = timeline(
            shown,
            out.width,
            view.chains,
            show_all=show_all,
            name=session,
            contradicted=[chain for chain, doubt in doubts.items() if doubt == "contradicted"],
        )
        out.print(screen)
        if len(shown) < len(records):
            err.print(f"the last {exact(len(shown))} of {exact(len(records))}", style="dim")

    async def read(reader: Sessions) -> None:
        view = await reader.find(session)
        show(view, await reader.records(view.session_id, readings=readings))

    if is_path(session):
        with reading():
            replayed = session_of(session)
        hidden = {"compaction_progress"} if readings else {"compaction_progress", "context_reading"}
        show(replayed.view, [each for each in replayed.records if each.kind not in hidden])
    else:
        _read_views(read)


async def ranked(reader: Sessions, order: Order, limit: int) -> list[SessionView]:
    """Return the first sessions of an order; by pressure, live ones come first."""
    if order is Order.recent:
        return await reader.ranked("recent", limit)
    return await reader.fullest(limit, SystemClock().now_ms() - THRESHOLDS.stale_after_ms)


def _ordered(views: list[SessionView], order: Order) -> list[SessionView]:
    if order is Order.recent:
        return sorted(views, key=lambda view: -(view.last_ms or 0))
    return live_first(sorted(views, key=_free), SystemClock().now_ms())


def _free(view: SessionView) -> float:
    """Return what orders sessions by pressure: the fullest first, unknown sizes last."""
    leading = leading_chain(view)
    used = None if leading is None else leading.used_percent
    return float("inf") if used is None else -used


def _write_sessions(
    views: Sequence[SessionView], timed: Sequence[SessionView], points: CompactionPoints
) -> None:
    now_ms = SystemClock().now_ms()
    pairs = zip(views, timed, strict=True)
    write_json([_judged(*pair, points, now_ms) for pair in pairs])


def _judged(
    view: SessionView, timed: SessionView, points: CompactionPoints, now_ms: int
) -> dict[str, Json]:
    """Return a view with its status, as the API has it; `timed` is the view with its arrival."""
    document: dict[str, Json] = codec.loads(view_codec.encode(view))
    return document | {"status": status_of(timed, points).document(now_ms)}


def _show_sessions(
    views: list[SessionView],
    total: int,
    points: CompactionPoints,
    *,
    titles: bool,
    files: Sequence[Path] = (),
) -> None:
    if not views:
        say(
            "No sessions yet: publish some (`contextgauge publish PATH`) while a derive and a "
            "project worker run, or name a transcript: `contextgauge sessions PATH`"
        )
        return
    names: dict[str, str] = {}
    if titles:
        local = SessionFiles(transcript_folders(os.environ), files)
        names = local.titles([view.session_id for view in views])
        if not names:
            err.print("no titles: none of the transcripts is on this machine", style="dim")
    out.print(sessions_table(views, SystemClock().now_ms(), out.width, names, points))
    if total > len(views):
        err.print(f"{exact(len(views))} of {exact(total)}: --limit shows more", style="dim")


def stored_views(settings: Settings) -> "RedisViews":
    """Return the view store of the settings. Raises ConfigError, with what needs no Redis."""
    try:
        return wiring.redis_views(settings)
    except ConfigError as error:
        if settings.redis_url is not None:
            raise
        raise ConfigError(
            f"{error}; or see this machine's transcripts with `contextgauge view` or "
            "`contextgauge sessions ~/.claude/projects`"
        ) from None


def _read_views(read: Callable[[Sessions], Awaitable[None]]) -> None:
    """Run `read` on the views of the settings' Redis.

    Raises StopError where there is no such session, or where the views are gone.
    """
    settings = wiring.settings()

    async def run() -> None:
        async with wiring.started(stored_views(settings)) as store:
            await read(await active_sessions(store, SystemClock()))

    try:
        asyncio.run(run())
    except (SessionLookupError, ViewsGoneError) as error:
        # Ids are input, and each line of an error is printed as one of its own.
        raise StopError(safe(str(error))) from None
