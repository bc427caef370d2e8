"""The commands for the eye: `contextgauge statusline` and `contextgauge top`."""

from typing import Annotated

import typer

from streams.cli.statusline import command as bare
from streams.cli.top import command as top


def statusline(
    *,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", "-v", help="Tell on standard error where the figures are from, and why."
        ),
    ] = False,
) -> None:
    """Print one line of a session: for the prompt of Claude Code, which gives the session.

    Reads what Claude Code gives its status-line command on standard input. Shows the model, how
    full the window is, the tokens until compaction, and the compactions: from Redis where that
    answers, else from the transcript alone. Always ends with 0.
    """
    bare.main(["--verbose"] if verbose else [])


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(statusline)
    app.command()(top.top)
