"""`contextgauge token`: access tokens for readers of the API."""

from typing import Annotated

import typer

from streams.cli.screen.output import out, say
from streams.edge.files.tokens import line_of, new_token


def token(
    name: Annotated[str, typer.Argument(help="The reader's name: letters, digits, and . _ @ -")],
    *,
    write: Annotated[
        bool,
        typer.Option(
            "--write",
            help="The token may request compactions, set thresholds and delete text, too, where "
            "the server allows it.",
        ),
    ] = False,
) -> None:
    """Create an access token for a reader of the API.

    Shows the token once, and the line to add to the file that CONTEXTGAUGE_SERVE_TOKENS_FILE names;
    that line has only the token's hash. Remove the line to revoke the token, without a restart.
    """
    created = new_token()
    line = line_of(name, created, may_write=write)
    say(f"The token of {name}; it is not shown again:")
    say(created)
    say("The line for the file of CONTEXTGAUGE_SERVE_TOKENS_FILE:")
    say(line, to=out)
