"""`contextgauge sessions`, `status` and `events`: what the views have, or a transcript gives."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contextgauge.clock import SystemClock
from contextgauge.errors import ConfigError
from schemas.records import Record
from schemas.views import Compaction, SessionView
from streams import codec, wiring
from streams.cli.exits import Exit
from streams.cli.listing import Listing, Order
from streams.cli.local_session import file_of
from streams.cli.screen.figures import exact
from streams.cli.screen.money import costs_box
from streams.cli.screen.options import AsJson, OneSession, SessionOrPath, Titles
from streams.cli.screen.output import err, out, reading, say, table_width, write_json
from streams.cli.screen.receipt import receipt_box
from streams.cli.screen.render import status_box, status_line
from streams.cli.screen.sessions_table import NOTHING_HERE, sessions_table
from streams.cli.session_documents import filling_fields, filling_or_reason, judged
from streams.codec import view_codec
from streams.codec.costs import costs_document
from streams.core.costs import SessionCosts, session_costs, stored_costs
from streams.core.session_status import status_of
from streams.core.until_compaction import CompactionPoints
from streams.edge.files.runtime_folders import transcript_folders
from streams.edge.files.session_files import SessionFiles

if TYPE_CHECKING:
    from streams.cli.transcripts import ReplayedSession
    from streams.serve.views.sessions import Sessions


_NOTHING_STORED = (
    "No sessions yet: publish some (`contextgauge publish PATH`) while a derive and a "
    "project worker run, or name a transcript: `contextgauge sessions PATH`"
)


def sessions(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH",
            help="Transcripts or folders: lists their sessions, without Redis.",
        ),
    ] = None,
    *,
    local: Annotated[
        bool,
        typer.Option(
            "--local", help="List this machine's transcripts, also where Redis is configured."
        ),
    ] = False,
    order: Annotated[
        Order,
        typer.Option(
            "--sort",
            help="recent: last active first; pressure: fullest first, quiet sessions at the end.",
        ),
    ] = Order.recent,
    limit: Annotated[
        int, typer.Option(metavar="N", min=1, help="Maximum number of sessions.")
    ] = 50,
    titles: Titles = False,
    as_json: AsJson = False,
) -> None:
    """List sessions: context usage, window, compactions.

    The sessions in Redis; where none is configured, those that runtimes store on this machine.

    `~` marks the default window, which is assumed for an unknown model, percentages of it, and
    tokens until compaction that are estimated from earlier compactions.

    Until: tokens left until automatic compaction, or how many are over where it is due. Messages:
    since the last compaction or reset, and in all (3/135).
    """
    if titles and as_json:
        raise ConfigError("--titles and --json exclude each other: titles are for the screen only")
    if paths or local or wiring.settings().redis_url is None:
        listing = Listing(paths or ())
        with reading():
            views, total, points, _ = listing.read(order, limit)
        files = [source.path for source in listing.sources if source.path is not None]
        if as_json:
            _write_sessions(views, points)
        else:
            _show_sessions(views, total, points, NOTHING_HERE, titles=titles, files=files)
        if listing.unreadable:
            raise typer.Exit(Exit.STOPPED)
        return

    from streams.cli.stored import ranked, read_views  # noqa: PLC0415 -- paths need no Redis

    async def show(reader: "Sessions") -> None:
        views = await ranked(reader, order, limit)
        points = await reader.points(views, wiring.compaction_points(wiring.settings()))
        total = await reader.count()
        if as_json:
            _write_sessions(views, points)
        else:
            _show_sessions(views, total, points, _NOTHING_STORED, titles=titles)

    read_views(show)


def status(
    session: SessionOrPath,
    *,
    one: OneSession = None,
    line: Annotated[
        bool, typer.Option("--line", help="Print a single line, for a status bar.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show one session: usage, breakdown, messages, compactions.

    Then the receipt of its own latest compaction: what it cost and did.

    `--line` prints `Context: 45% (58K/128K tokens)`, with `~` before figures that rest on the
    default window, which is assumed for an unknown model.
    """

    def show(
        view: SessionView,
        points: CompactionPoints,
        latest: Compaction | None,
        costs: SessionCosts,
        replayed: "ReplayedSession | None" = None,
    ) -> None:
        now_ms = SystemClock().now_ms()
        if line and not as_json:
            say(status_line(view, now_ms), to=out)
            return
        filling = filling_or_reason(view, replayed)
        if as_json:
            document = judged(view, points, now_ms) | {"costs": costs_document(costs)}
            write_json(document if replayed is None else document | filling_fields(filling))
        else:
            out.print(status_box(view, now_ms, points, filling=filling))
            if (box := costs_box(costs)) is not None:
                out.print(box)
            if latest is not None:
                out.print(receipt_box(latest, costs.profits.get(latest.boundary_id)))

    price_of = wiring.prices(wiring.settings())
    if (file := file_of(session, one)) is not None:
        from streams.cli.transcripts import session_of  # noqa: PLC0415 -- what derives, for files

        with reading():
            replayed = session_of(*file)
        latest = replayed.latest_compaction()
        costs = session_costs(replayed.records, price_of)
        show(replayed.view, replayed.points, latest, costs, replayed)
    else:
        from streams.cli.stored import find_session, read_views  # noqa: PLC0415 -- as above

        async def read(reader: "Sessions") -> None:
            view, points = await find_session(reader, session)
            stored = map(_compaction, await reader.compactions(view.session_id))
            costs = stored_costs(await reader.records(view.session_id, readings=True), price_of)
            show(view, points, next((each for each in stored if not each.inherited), None), costs)

        read_views(read)


def events(
    session: SessionOrPath,
    *,
    one: OneSession = None,
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
    price_of = wiring.prices(wiring.settings())
    hidden = {"compaction_progress"} if readings else {"compaction_progress", "context_reading"}

    def show(view: SessionView, all_records: Sequence[Record]) -> None:
        records = [each for each in all_records if each.kind not in hidden]
        shown = records if last is None else records[-last:]
        if as_json:
            for record in shown:
                write_json(codec.loads(codec.to_structured(record)))
            return
        from streams.cli.screen.timeline import timeline  # noqa: PLC0415 -- of this command alone

        doubts = status_of(view).window_doubts
        screen = timeline(
            shown,
            out.width,
            view.chains,
            show_all=show_all,
            name=session,
            profits=session_costs(all_records, price_of).profits,
            contradicted=[chain for chain, doubt in doubts.items() if doubt == "contradicted"],
        )
        out.print(screen)
        if len(shown) < len(records):
            err.print(f"the last {exact(len(shown))} of {exact(len(records))}", style="dim")

    async def read(reader: "Sessions") -> None:
        view = await reader.find(session)
        show(view, await reader.records(view.session_id, readings=True))

    if (file := file_of(session, one)) is not None:
        from streams.cli.transcripts import session_of  # noqa: PLC0415 -- what derives, for files

        with reading():
            replayed = session_of(*file)
        show(replayed.view, replayed.records)
    else:
        from streams.cli.stored import read_views  # noqa: PLC0415 -- as above

        read_views(read)


def _compaction(document: bytes) -> Compaction:
    return view_codec.decode(Compaction, document)


def _write_sessions(views: Sequence[SessionView], points: CompactionPoints) -> None:
    now_ms = SystemClock().now_ms()
    write_json([judged(view, points, now_ms) for view in views])


def _show_sessions(
    views: list[SessionView],
    total: int,
    points: CompactionPoints,
    nothing: str,
    *,
    titles: bool,
    files: Sequence[Path] = (),
) -> None:
    if not views:
        say(nothing)
        return
    names: dict[str, str] = {}
    if titles:
        local = SessionFiles(transcript_folders(os.environ), files)
        names = local.titles([view.session_id for view in views])
        if not names:
            err.print("no titles: none of the transcripts is on this machine", style="dim")
    width = table_width()
    table = sessions_table(views, SystemClock().now_ms(), width, names, points)
    out.print(table, width=width)
    if total > len(views):
        err.print(f"{exact(len(views))} of {exact(total)}: --limit shows more", style="dim")
