"""The command `contextgauge`: its commands by name, and what happens to their errors.

Exit codes are in `streams.cli.exits`.
"""

import os
import sys
from typing import Annotated

import typer

from contextgauge import __version__
from streams.cli import build
from streams.cli.lazy import LazyGroup
from streams.cli.screen.figures import forgive_encodings
from streams.cli.screen.lines import show_warnings


class Commands(LazyGroup):
    """The commands and their modules. A summary is the first line of the command's own help."""

    sections = {  # noqa: RUF012 -- declared in the base class
        "Look": {
            "view": ("view", "Show the sessions on this machine in the browser, live."),
            "top": ("top.top_command", "Watch all sessions live in the terminal."),
            "sessions": ("sessions", "List sessions: context usage, window, compactions."),
            "status": ("sessions", "Show one session: usage, breakdown, messages, compactions."),
            "runtimes": (
                "runtimes",
                "List the runtimes whose sessions are read, and what they show.",
            ),
            "context": ("context", "Show what the model of a session sees, by its kept messages."),
            "events": ("sessions", "Show a session's timeline: warnings, compactions, resets."),
            "checkpoints": (
                "checkpoints",
                "List a session's compactions as checkpoints, and its forks on this machine.",
            ),
            "fork": (
                "fork",
                "Fork a session from one of its compactions, for its runtime or another one.",
            ),
            "replay": ("replay", "Derive context records from transcripts or from Kafka."),
            "export": (
                "export",
                "Write records as tables: Parquet, Arrow, CSV or NDJSON, by kind and date.",
            ),
            "query": (
                "query",
                "Ask a question in SQL about sessions, readings, warnings and compactions.",
            ),
            "what-if": (
                "whatif.what_if",
                "Show what other triggers, windows and strategies would have made of sessions.",
            ),
            "report": (
                "report.report_command",
                "Write a report about sessions and compactions as one HTML file.",
            ),
            "share": (
                "share.share_command",
                "Write a session's context over time as one HTML file that can be given to others.",
            ),
            "autopsy": (
                "autopsy",
                "Show what compactions kept and lost, and what agents did again after them.",
            ),
            "statusline": (
                "statusline.help",
                "Print one line about a session for Claude Code's status line.",
            ),
            "install": (
                "install.install_command",
                "Write hooks, status line and MCP server into the settings of an agent's runtime.",
            ),
            "mcp": (
                "mcp.mcp_command",
                (
                    "Serve an agent its own context: how full it is, its compactions, and what "
                    "left it."
                ),
            ),
            "hook": (
                "hook",
                "Answer a hook of Claude Code: carry the user's turns over its compactions.",
            ),
            "demo": (
                "demo.demo_command",
                "Run sessions through a whole pipeline and show the result.",
            ),
        },
        "Collect": {
            "publish": (
                "publish.publish_command",
                "Publish transcripts to Kafka, each line unchanged.",
            ),
            "ingest": (
                "ingest",
                "Take messages over HTTP and publish them to Kafka, until stopped.",
            ),
            "simulate": ("simulate", "Simulate agent sessions with every kind of compaction."),
        },
        "Compact": {
            "compact": (
                "compact.compact_command",
                "Compact a session of the pipeline, or the conversation of a file.",
            ),
            "why": (
                "control_plane.why",
                "Show why a session was compacted, or was not.",
            ),
            "thresholds": (
                "control_plane.thresholds",
                "Set when sessions are compacted, or show what is set for one.",
            ),
            "forget": (
                "control_plane.forget",
                "Delete the text that the control plane keeps of a session.",
            ),
        },
        "Run": {
            "stack": ("stack", "Run Kafka and Redis on this machine, for development."),
            "topics": ("topics", "Create and list the Kafka topics."),
            "derive": ("workers.commands", "Derive context records from messages, until stopped."),
            "project": (
                "workers.commands",
                "Fold context records into views in Redis, until stopped.",
            ),
            "conversations": (
                "workers.commands",
                "Keep the conversations of chosen sessions in Redis, until stopped.",
            ),
            "serve": (
                "serve.server",
                "Serve the API, the live feed and the web page, until stopped.",
            ),
            "control": ("control", "Send alerts and compact sessions, until stopped."),
            "otel": ("otel", "Send records to an OpenTelemetry collector, until stopped."),
            "token": (
                "token",
                "Create an access token for a reader of the API, or for a publisher.",
            ),
        },
        "Maintain": {
            "doctor": ("doctor", "Examine Kafka, topics, publishers, workers and Redis."),
            "dead": ("dead.dead_command", "List dead letters, and send them again."),
            "rebuild": ("rebuild", "Rebuild all views from the log, and swap them in."),
            "schemas": (
                "schemas",
                "Write the JSON Schemas of records and views, and AsyncAPI and OpenAPI documents.",
            ),
        },
    }


app = typer.Typer(
    name="contextgauge",
    cls=Commands,
    help="See the context windows of AI agents: on this machine, or over Kafka and Redis.\n\n"
    "Settings are environment variables that begin with CONTEXTGAUGE_.",
    no_args_is_help=True,
    rich_markup_mode=None,  # rich takes a third of a second to import
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(*, requested: bool) -> None:
    if requested:
        sys.stdout.write(f"contextgauge {__version__}{build.mark()}\n")
        sys.stdout.flush()  # at the interpreter's end, an error is no longer shown as one
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


def main() -> None:
    """Run the command line; an expected error becomes one clear line and an exit code.

    Raises ModuleNotFoundError where a package of the command's is not installed.
    """
    # pydantic would look through all installed packages for plugins: 10 ms.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    show_warnings(_show_warning)
    forgive_encodings()
    try:
        app(_arguments())
    except ModuleNotFoundError:
        raise
    except Exception as error:  # noqa: BLE001 -- shown, whatever it is
        from streams.cli.screen.failures import show_failure  # noqa: PLC0415 -- imports rich

        sys.exit(show_failure(error))


def _arguments() -> list[str]:
    """Return the command line's arguments; on a terminal, `view` where there are none."""
    arguments = sys.argv[1:]
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    return ["view"] if is_terminal and not arguments else arguments


def _show_warning(text: str) -> None:
    from streams.cli.screen.failures import show_warning  # noqa: PLC0415 -- imports rich

    show_warning(text)
