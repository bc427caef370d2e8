"""The command `contextgauge`: all commands by name, and what an error looks like.

What the exit codes mean is in `streams.cli.exits`.
"""

import errno
import sys
from importlib.metadata import version
from typing import Annotated

import typer

from contextgauge.errors import ContextgaugeError, RetryError
from streams.cli import (
    build,
    control,
    exits,
    logs,
    schemas,
    stack,
    terminal,
    topics,
)
from streams.cli import (
    replay as files,
)
from streams.cli import (
    sessions as read,
)
from streams.cli.dead import command as dead
from streams.cli.demo import command as demo
from streams.cli.doctor import command as doctor
from streams.cli.rebuild import command as rebuild
from streams.cli.screen.lines import discard_output
from streams.cli.screen.output import err, forgive_encodings, out, safe
from streams.cli.serve import command as serve
from streams.cli.workers import commands as workers

AWAY = (
    "Is it running? `contextgauge stack up` starts Kafka and Redis on this machine; "
    "CONTEXTGAUGE_BOOTSTRAP_SERVERS and CONTEXTGAUGE_REDIS_URL name others."
)
_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS})
"""What the system says where nothing more can be written: no error of this program."""

BUG = (
    "contextgauge: this is an error in contextgauge itself: please report it with the lines above "
    "(they hold no text of messages)"
)

app = typer.Typer(
    name="contextgauge",
    help="See and control the context windows of AI agents, over Kafka and Redis.\n\n"
    "Settings are environment variables that begin with CONTEXTGAUGE_.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(stack.app, name="stack")
app.add_typer(topics.app, name="topics")
app.add_typer(dead.app, name="dead")
app.command()(workers.derive)
app.command()(workers.project)
app.command()(control.control)
app.command()(rebuild.rebuild)
app.command("schemas")(schemas.write)
files.register(app)
read.register(app)
serve.register(app)
terminal.register(app)
app.command()(demo.demo)
app.command()(doctor.doctor)


def _print_version(*, asked: bool) -> None:
    if asked:
        out.print(f"contextgauge {version('contextgauge')}{build.mark()}")
        raise typer.Exit


@app.callback()
def _options(
    *,
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Take the options that come before a command; `--version` has acted already."""
    del show_version


def _warn(text: str) -> None:
    err.print(f"contextgauge: warning: {safe(text)}", markup=False, soft_wrap=True, style="yellow")


def main() -> None:
    """Run the command line; an expected error becomes one clear line and an exit code."""
    logs.silence()
    logs.show_warnings(_warn)
    forgive_encodings()
    try:
        app()
    except ContextgaugeError as error:
        for line in str(error).splitlines():
            err.print(f"contextgauge: {safe(line)}", markup=False, soft_wrap=True, style="red")
        if isinstance(error, RetryError):
            err.print(AWAY, style="dim", soft_wrap=True)
        title = exits.runbook_title(error)
        if title is not None:
            err.print(f'What to do: "{title}" in docs/RUNBOOK.md', style="dim", soft_wrap=True)
        sys.exit(exits.code_of(error))
    except Exception as error:  # noqa: BLE001 -- the last one to hear of it
        if isinstance(error, OSError) and error.errno in _NO_ROOM:
            discard_output()
            where = error.filename or "the output"
            told = f"contextgauge: {where} cannot be written ({error.strerror}): make room"
            err.print(safe(told), markup=False, soft_wrap=True, style="red")
            sys.exit(exits.Exit.STOPPED)
        err.print(f"{exits.where(error)}\n{BUG}", markup=False, highlight=False, soft_wrap=True)
        sys.exit(exits.Exit.INTERNAL)
