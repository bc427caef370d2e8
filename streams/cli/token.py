"""`contextgauge token`: access tokens for readers of the API, and for publishers."""

from typing import Annotated

import typer

from contextgauge.errors import ConfigError
from contextgauge.settings.forms import PREFIX
from streams.cli.screen.output import out, say
from streams.edge.files.tokens import Right, line_of, new_token


def token(
    name: Annotated[
        str,
        typer.Argument(help="The reader's or publisher's name: letters, digits, and . _ @ -"),
    ],
    *,
    write: Annotated[
        bool,
        typer.Option(
            "--write",
            help="The token may request compactions, set thresholds and delete text, too, where "
            "the server allows it.",
        ),
    ] = False,
    publish: Annotated[
        bool,
        typer.Option(
            "--publish",
            help="The token is for `contextgauge ingest`: it may publish messages, and read "
            "nothing.",
        ),
    ] = False,
) -> None:
    """Create an access token for a reader of the API, or for a publisher.

    Shows the token once, and the line to add to the file that CONTEXTGAUGE_SERVE_TOKENS_FILE names
    (with --publish: CONTEXTGAUGE_INGEST_TOKENS_FILE); that line has only the token's hash. Remove
    the line to revoke the token, without a restart.
    """
    if write and publish:
        raise ConfigError("--write and --publish are for different servers: make two tokens")
    right: Right = "publish" if publish else "write" if write else "read"
    created = new_token()
    line = line_of(name, created, right)
    say(f"The token of {name}; it is not shown again:")
    say(created)
    say(f"The line for the file of {PREFIX}{'INGEST' if publish else 'SERVE'}_TOKENS_FILE:")
    say(line, to=out)
