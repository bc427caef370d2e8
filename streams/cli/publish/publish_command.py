"""`contextgauge publish`: transcripts and streams to agent.messages, once or as they grow."""

import asyncio
import os
import stat
from pathlib import Path
from typing import Annotated

import typer

from contextgauge.errors import ConfigError
from streams import wiring
from streams.cli import exits, logs
from streams.cli.publish.run import Request, run
from streams.cli.screen.options import FallbackSession, Paths, Strict
from streams.edge.files.reading import STANDARD_INPUT

Live = Annotated[
    bool | None,
    typer.Option(
        "--live/--no-live",
        help="Whether the messages are new: new messages that carry no time get the time at "
        "which they are sent. By default, lines read as they are written are new: those added "
        "under --follow, and a pipe on standard input.",
        show_default=False,
    ),
]
CheckpointFile = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="FILE",
        help="Store the position in each file in FILE instead of the state folder.",
    ),
]


def publish(  # noqa: PLR0913 -- the options of one command
    paths: Paths,
    *,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            "-f",
            help="Continue as files grow and new ones appear, until stopped (Ctrl-C).",
        ),
    ] = False,
    session: FallbackSession = None,
    live: Live = None,
    no_text: Annotated[
        bool,
        typer.Option(
            "--no-text",
            help="Replace all text by its length before it leaves this machine. Ids, models, "
            "times, numbers, kinds of messages and the working directory stay.",
        ),
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Send everything again, from the beginning.")
    ] = False,
    checkpoint: CheckpointFile = None,
    task_id: Annotated[
        str | None,
        typer.Option("--task-id", metavar="ID", help="Task ID to add to every message."),
    ] = None,
    agent_id: Annotated[
        str | None,
        typer.Option(
            "--agent-id",
            metavar="ID",
            help="ID of the agent that ran the sessions, to add to every message.",
        ),
    ] = None,
    strict: Strict = False,
) -> None:
    """Publish transcripts to Kafka, each line unchanged.

    Messages go to agent.messages, keyed by session. A checkpoint stores the position in each file,
    so that nothing is sent twice. A line over the size limit has its largest content replaced by a
    marked stub. Lines that cannot be sent are reported on standard error and do not stop it.
    """
    pipes = [path for path in paths if _is_pipe(path)]
    if follow and pipes:
        raise ConfigError(f"{pipes[0]}: a pipe is always read to its end: omit --follow")
    request = Request(
        files=[path for path in paths if path not in pipes],
        pipes=pipes,
        follow=follow,
        session=session,
        live=live,
        no_text=no_text,
        again=again,
        checkpoint=checkpoint,
        task_id=task_id,
        agent_id=agent_id,
    )
    settings = wiring.settings()
    logs.configure(settings)
    outcome = asyncio.run(run(settings, request))
    if outcome.timed_out:
        raise typer.Exit(exits.Exit.TIME_LIMIT)
    if outcome.stopped_by is not None and not follow:
        raise typer.Exit(exits.by_signal(outcome.stopped_by))
    if outcome.unreadable or (strict and outcome.done.refused):
        raise typer.Exit(exits.Exit.STOPPED)


def _is_pipe(path: str) -> bool:
    if path == STANDARD_INPUT:
        return True
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 -- like `fstat` elsewhere
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)
