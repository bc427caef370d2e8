"""`contextgauge status`: one session."""

from typing import Annotated

import typer

from contextgauge.clock import SystemClock
from streams.cli.screen.options import AsJson, SessionId
from streams.cli.screen.output import out, write_json
from streams.cli.screen.render import status_box, status_line
from streams.cli.sessions import read_views
from streams.serve.views.sessions import Sessions


def status(
    session: SessionId,
    *,
    line: Annotated[
        bool, typer.Option("--line", help="Print a single line, for a status bar.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show one session: usage, breakdown, messages, compactions.

    `--line` prints `Context: 45% (58K/128K tokens)`, with `~` before figures that rest on an
    assumed window.
    """

    async def show(reader: Sessions) -> None:
        view = await reader.find(session)
        if as_json:
            write_json(view)
        elif line:
            out.print(status_line(view, SystemClock().now_ms()), markup=False, soft_wrap=True)
        else:
            out.print(status_box(view, SystemClock().now_ms()))

    read_views(show)
