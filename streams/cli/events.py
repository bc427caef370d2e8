"""`contextgauge events`: a session's timeline."""

from typing import Annotated

import typer

from streams import codec
from streams.cli.screen.options import SessionId
from streams.cli.screen.output import err, exact, out, write_json
from streams.cli.screen.timeline import timeline
from streams.cli.sessions import read_views
from streams.serve.views.sessions import Sessions


def events(
    session: SessionId,
    *,
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
    """Show a session's warnings, limits, compactions and resets.

    In the order of the log. Redis stores the newest 2 000 of a session, and as many readings; all
    of them, and the heartbeats of compactions, are on the topic context.events.
    """

    async def show(reader: Sessions) -> None:
        view = await reader.find(session)
        records = await reader.records(view.session_id, readings=readings)
        shown = records if last is None else records[-last:]
        if as_json:
            for record in shown:
                write_json(codec.loads(codec.to_structured(record)))
            return
        out.print(timeline(shown, view.chains))
        if len(shown) < len(records):
            err.print(f"the last {exact(len(shown))} of {exact(len(records))}", style="dim")

    read_views(show)
