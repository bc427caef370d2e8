"""Arguments that `publish` and `replay` share."""

from typing import Annotated

import typer

REFUSED = 1
"""Exit code with `--strict` where a line was refused."""

Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH...",
        help="A file (itself alone), a session's folder (`X.jsonl` beside it, then its subagents), "
        "a projects folder (every session below it), or - for standard input.",
    ),
]
Session = Annotated[
    str | None,
    typer.Option(
        "--session",
        metavar="ID",
        help="Session of lines that neither they nor their file name one for.",
    ),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="End with exit code 1 if any line was refused.")
]
