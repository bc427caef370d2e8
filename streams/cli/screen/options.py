"""Options and arguments that several commands take."""

from typing import Annotated

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
SessionOrPath = Annotated[
    str,
    typer.Argument(
        metavar="SESSION",
        help="Session ID or a unique prefix of it: of the views where Redis is configured, else of "
        "this machine. Or a transcript, or a session's folder.",
    ),
]
OneSession = Annotated[
    str | None,
    typer.Option(
        "--session",
        metavar="ID",
        help="Which one, where the file holds several: its ID or a unique prefix of it.",
    ),
]
SessionId = Annotated[
    str, typer.Argument(metavar="SESSION", help="Session ID or a unique prefix of it.")
]
Titles = Annotated[
    bool,
    typer.Option(
        "--titles",
        help="Show each session's first prompt, if its transcript is on this machine. It is read "
        "from there only, and sent nowhere.",
    ),
]
PATHS = typer.Argument(
    metavar="PATH",
    help="A file, a session's folder (with `X.jsonl` next to it: both), a projects folder (all its "
    "sessions), or - for standard input.",
    show_default=False,
)
Paths = Annotated[list[str], PATHS]
_HERE = "Default: the sessions that runtimes store on this machine."
OwnPaths = Annotated[
    list[str] | None,
    typer.Argument(metavar="PATH", help=f"Transcripts or folders. {_HERE}", show_default=False),
]
TablePaths = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PATH",
        help=f"Transcripts or folders, or the folder or URL of one export. {_HERE}",
        show_default=False,
    ),
]
FromTopic = Annotated[
    bool,
    typer.Option("--topic", help="Of the records in Kafka (context.events) instead of paths."),
]
FallbackSession = Annotated[
    str | None,
    typer.Option(
        "--session",
        metavar="ID",
        help="Session of lines for which neither the line nor its file names one.",
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Exit with 1 if any line was rejected.")]
