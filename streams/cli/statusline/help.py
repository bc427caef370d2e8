"""The options of `contextgauge statusline`; without them `streams.__main__` runs it directly."""

from typing import Annotated

import typer

from streams.cli.statusline import command


def statusline(
    *,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", "-v", help="Explain on standard error where the figures come from."
        ),
    ] = False,
) -> None:
    """Print one line about a session for Claude Code's status line.

    Reads the JSON that Claude Code passes to its status line command on standard input. Shows the
    model, how full the window is, the tokens left until compaction and the compactions: from Redis
    if it answers, otherwise from the transcript. Always exits with 0.
    """
    command.main(["--verbose"] if verbose else [])
