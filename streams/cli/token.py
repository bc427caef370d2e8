"""`contextgauge token`: access tokens for readers of the API."""

from typing import Annotated

import typer

from streams.cli.screen.output import out, say
from streams.edge.files.tokens import line_of, new_token


def token(
    name: Annotated[str, typer.Argument(help="The reader's name: letters, digits, and . _ @ -")],
) -> None:
    """Create an access token for a reader of the API.

    Shows the token once, and the line to add to the file that CONTEXTGAUGE_SERVE_TOKENS_FILE names;
    that line has only the token's hash. Remove the line to revoke the token, without a restart.
    """
    created = new_token()
    line = line_of(name, created)
    say(f"The token of {name}; it is not shown again:")
    say(created)
    say("The line for the file of CONTEXTGAUGE_SERVE_TOKENS_FILE:")
    say(line, to=out)
