"""The options of `contextgauge statusline`; without them `streams.__main__` runs it directly."""

from typing import Annotated

import typer

from contextgauge.user_folders import expanded
from streams import codec
from streams.cli.inputs import is_path
from streams.cli.local_session import local_session
from streams.cli.statusline import statusline_command


def statusline(
    session: Annotated[
        str | None,
        typer.Argument(
            metavar="SESSION",
            help="Session ID or a unique prefix of it, or a transcript; by default, standard input "
            "says which session.",
        ),
    ] = None,
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
    model, how full the window is, the tokens left until compaction and the compactions: from the
    transcript; of a session without one on this machine, from Redis. Always exits with 0 when it
    prints the line. `contextgauge install claude-code` sets it up.
    """
    given = None if session is None else codec.dumps(_input(session))
    statusline_command.main(["--verbose"] if verbose else [], given)


def _input(session: str) -> dict[str, str]:
    """Return what Claude Code would pass: the session's id, and its transcript if it is here.

    Raises StopError where the id is the beginning of several.
    """
    if is_path(session):
        return {"transcript_path": expanded(session)}
    place = local_session(session)
    if place is None:
        return {"session_id": session}
    path = {} if place.is_one_of_many else {"transcript_path": str(place.path)}
    return {"session_id": place.session_id} | path
