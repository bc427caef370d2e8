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
from streams.cli.publish.arguments import REFUSED, Paths, Session, Strict
from streams.cli.publish.following import Request, run
from streams.edge.files.reading import STANDARD_INPUT

Follow = Annotated[
    bool,
    typer.Option(
        "--follow",
        "-f",
        help="Go on as the files grow and others appear, until told to stop (Ctrl-C).",
    ),
]
Live = Annotated[
    bool | None,
    typer.Option(
        "--live/--no-live",
        help="The messages happen now, or do not: those that do, and have no time of their own, "
        "get the time at which they are sent. By default, what is seen when it is written does: "
        "with --follow what is added, and a pipe on standard input.",
        show_default=False,
    ),
]
NoText = Annotated[
    bool,
    typer.Option(
        "--no-text",
        help="Replace every text by its length before it leaves this machine; docs/PUBLISHING.md "
        "says what stays.",
    ),
]
Again = Annotated[
    bool, typer.Option("--again", help="Send also what was sent before, from the beginning.")
]
CheckpointFile = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="FILE",
        help="Keep there how far each file was sent, rather than in the state folder.",
    ),
]
TaskId = Annotated[
    str | None, typer.Option("--task-id", metavar="ID", help="Name the task in every message.")
]
AgentId = Annotated[
    str | None,
    typer.Option(
        "--agent-id",
        metavar="ID",
        help="Name the agent that ran the sessions; one agent has many sessions.",
    ),
]


def publish(  # noqa: PLR0913 -- the options of one command
    paths: Paths,
    *,
    follow: Follow = False,
    session: Session = None,
    live: Live = None,
    no_text: NoText = False,
    again: Again = False,
    checkpoint: CheckpointFile = None,
    task_id: TaskId = None,
    agent_id: AgentId = None,
    strict: Strict = False,
) -> None:
    """Publish transcripts to agent.messages, keyed by their sessions, each line unchanged.

    What was sent once is not sent again: how far each file was sent is kept in a checkpoint. A
    line over the limit has its largest content replaced by a marked stub. What cannot be sent is
    reported on standard error and does not stop it.
    """
    pipes = [path for path in paths if _is_pipe(path)]
    if follow and pipes:
        raise ConfigError(f"{pipes[0]}: a pipe is read to its end anyway: leave out --follow")
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
    chosen = wiring.settings()
    logs.configure(chosen)
    outcome = asyncio.run(run(chosen, request))
    if outcome.timed_out:
        raise typer.Exit(exits.Exit.TIME_LIMIT)
    if outcome.ended_by is not None and not follow:
        raise typer.Exit(exits.by_signal(outcome.ended_by))
    if strict and outcome.done.refused:
        raise typer.Exit(REFUSED)


def _is_pipe(path: str) -> bool:
    if path == STANDARD_INPUT:
        return True
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 -- beside `fstat` below
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)
