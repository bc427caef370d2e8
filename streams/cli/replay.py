"""`contextgauge replay`: context records from transcripts, without a broker."""

import base64
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from contextgauge.clock import SystemClock
from contextgauge.containers import Line
from contextgauge.errors import ConfigError
from schemas.messages import DeadLetter
from schemas.records import Json
from schemas.views import SessionView
from streams import codec
from streams.cli.exits import Exit
from streams.cli.screen.lines import is_terminal, quiet_pipe, write_lines
from streams.cli.screen.options import FallbackSession, Paths, Strict
from streams.cli.transcripts import Replay
from streams.codec import views as view_codec


def replay(
    paths: Paths,
    *,
    view: Annotated[
        bool, typer.Option("--view", help="Show each session's figures instead of the records.")
    ] = False,
    dead: Annotated[
        Path | None,
        typer.Option("--dead", metavar="FILE", help="Write malformed lines to FILE as JSON lines."),
    ] = None,
    session: FallbackSession = None,
    strict: Strict = False,
) -> None:
    """Derive context records from transcripts, without a broker.

    Runs in one process. Prints the records as CloudEvents, one JSON object per line, in input
    order; with `--view` a panel for each session on a terminal, and its view as JSON in a pipe.
    Malformed lines are reported on standard error and do not stop it, unless there is nothing else.
    """
    with _dead_file(dead) as write_dead, quiet_pipe():
        replayed = Replay(paths, session, write_dead)
        if not view:
            for records in replayed.records():
                write_lines([codec.to_structured(record) for record in records])
        elif is_terminal():
            _show(replayed.views().values())
        else:
            write_lines([view_codec.encode(each) for each in replayed.views().values()])
    if strict and replayed.rejected.total:
        raise typer.Exit(Exit.STOPPED)


def _show(views: Iterable[SessionView]) -> None:
    from streams.cli.screen.output import out  # noqa: PLC0415 -- imports rich
    from streams.cli.screen.render import status_box  # noqa: PLC0415 -- as above

    for view in views:
        out.print(status_box(view, SystemClock().now_ms()))


@contextmanager
def _dead_file(path: Path | None) -> Iterator[Callable[[Line, DeadLetter], None]]:
    if path is None:
        yield lambda _line, _letter: None
        return
    try:
        target = path.open("wb")
    except OSError as error:
        raise ConfigError(f"--dead {path}: {error.strerror}") from error
    with target:
        yield lambda line, letter: _write_dead(target, line, letter)


def _write_dead(target: BinaryIO, line: Line, letter: DeadLetter) -> None:
    """Write a dead letter; of a gigantic line, the beginning that was held in memory."""
    entry: dict[str, Json] = {
        "reason": letter.reason,
        "detail": letter.detail,
        "file": line.file,
        "line": line.number,
        "bytes": line.size,
        "session_hint": line.session_hint,
    }
    try:
        entry["text"] = line.value.decode("utf-8")
    except UnicodeDecodeError:
        entry["base64"] = base64.b64encode(line.value).decode("ascii")
    target.write(codec.dumps(entry) + b"\n")
