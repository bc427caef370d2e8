"""`contextgauge compact`: a session of the pipeline, or the conversation of a file."""

import os
from typing import Annotated

import typer

from contextgauge.compaction.profiles import PROFILES
from contextgauge.errors import ConfigError
from streams.cli.compact.file import STANDARD, FileOptions, compact_file
from streams.cli.compact.session import cancel_session, compact_session
from streams.edge.control.service_file import EXTRACTIVE
from streams.edge.files.housekeeping import DOCUMENT, SUFFIXES

_SUFFIXES = (DOCUMENT, *SUFFIXES)
_OF_FILES = (*FileOptions._fields,)
_OF_SESSIONS = ("urgent", "wait", "cancel")


What = Annotated[
    str,
    typer.Argument(
        metavar="SESSION|FILE",
        help="A session's ID or a unique prefix of it; or a file: a transcript of Claude Code or "
        "Codex, a JSON list of messages, the body of a request to Anthropic, OpenAI or Gemini; - "
        "for standard input.",
    ),
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="File: where to write the compacted conversation; - for standard output. By default "
        "NAME.compacted.json in this folder.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="File: overwrite the output file.")]
IfDue = Annotated[
    bool,
    typer.Option("--if-due", help="File: compact only if the profile would before the next call."),
]
ProfileName = Annotated[
    str, typer.Option("--profile", metavar="NAME", help=f"File: one of {', '.join(PROFILES)}.")
]
WindowTokens = Annotated[
    int | None,
    typer.Option(
        "--window",
        min=1,
        metavar="TOKENS",
        help="File: the model's context window. By default, the one that the runtime reports in "
        "the file, else that of the model's name.",
    ),
]
Keep = Annotated[
    int | None,
    typer.Option(
        "--keep",
        min=0,
        metavar="COUNT",
        help="File: exactly so many latest messages are not summarised. By default, the profile's "
        "least, and more where the goal has room.",
    ),
]
Instructions = Annotated[
    str | None,
    typer.Option("--instructions", metavar="TEXT", help="What the summary should heed."),
]
SummariserName = Annotated[
    str,
    typer.Option(
        "--summariser",
        metavar="NAME",
        help="File: extractive needs no model; or PROVIDER:MODEL, with a provider of anthropic, "
        "openai, openai-responses, gemini, compatible.",
    ),
]
Url = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", help="File: address of the server of --summariser."),
]
KeyVariable = Annotated[
    str | None,
    typer.Option(
        "--key-variable",
        metavar="NAME",
        help="File: the environment variable with the key of --summariser. By default, that of the "
        "provider's SDK; to a --url, no key is sent by default.",
    ),
]
ReceiptAsJson = Annotated[
    bool, typer.Option("--json", help="Print the receipt, or the command, as JSON.")
]
Urgent = Annotated[
    bool,
    typer.Option(
        "--urgent", help="Session: do not wait for a model, take the deterministic summary."
    ),
]
Wait = Annotated[
    bool, typer.Option("--wait", help="Session: wait until it is done, and show the result.")
]
Cancel = Annotated[
    bool, typer.Option("--cancel", help="Session: cancel the compaction that is under way.")
]


def compact(  # noqa: PLR0913 -- each is an option
    context: typer.Context,
    what: What,
    *,
    instructions: Instructions = None,
    urgent: Urgent = False,
    wait: Wait = False,
    cancel: Cancel = False,
    output: Output = None,
    force: Force = False,
    if_due: IfDue = False,
    profile: ProfileName = "default",
    window: WindowTokens = None,
    keep: Keep = None,
    summariser: SummariserName = EXTRACTIVE,
    url: Url = None,
    key_variable: KeyVariable = None,
    as_json: ReceiptAsJson = False,
) -> None:
    """Compact a session of the pipeline, or the conversation of a file.

    A session is compacted by the control plane, as its service is configured: `contextgauge why`
    shows what became of it. A file is only read: its compacted conversation is written to a file
    of this folder (--output), without what a transcript's last compaction archived.

    A compaction that is asked for always makes a summary of the older messages, also where clearing
    old tool results alone would reach the goal.
    """
    if _is_file(what):
        _check_options(context, _OF_SESSIONS, f"{what} is a file: {{}} is for a session")
        options = FileOptions(
            output, force, if_due, profile, window, keep, summariser, url, key_variable
        )
        compact_file(what, options, instructions=instructions, as_json=as_json)
        return
    _check_options(context, _OF_FILES, f"{what} is not a file here: {{}} is for a file")
    if cancel:
        if instructions or urgent or wait:
            raise ConfigError("--cancel goes with no other option")
        cancel_session(what)
    else:
        compact_session(what, instructions, urgent=urgent, wait=wait, as_json=as_json)


def _is_file(what: str) -> bool:
    """Return whether it is a file, there or not, rather than a session's id."""
    if what == STANDARD or what.endswith(_SUFFIXES):
        return True
    return os.path.exists(what)  # noqa: PTH110 -- False for what no file can be named


def _check_options(context: typer.Context, names: tuple[str, ...], wrong: str) -> None:
    for name in names:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise ConfigError(wrong.format(f"--{name.replace('_', '-')}"))
