"""`contextgauge replay`: context records from transcripts, without a broker."""

import base64
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from contextgauge.containers import Line
from contextgauge.errors import ConfigError
from schemas.messages import DeadLetter
from schemas.records import Json, Record
from schemas.views import SessionView
from streams import codec, wiring
from streams.cli.exits import Exit
from streams.cli.publish.rejected import report
from streams.cli.screen.lines import quiet_pipe, write_lines
from streams.cli.screen.options import FallbackSession, Paths, Strict
from streams.codec import views as view_codec
from streams.core.projection.project import project
from streams.edge.files import reading as files
from streams.flow.derive.deriver import Deriver
from streams.flow.replay.replay import replay as replay_lines


def replay(
    paths: Paths,
    *,
    view: Annotated[
        bool, typer.Option("--view", help="Print each session's view instead of the records.")
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
    order. Malformed lines are reported on standard error and do not stop it.
    """
    settings = wiring.settings()
    limit_bytes = settings.message_limit_bytes
    blocks = files.read(files.expand(paths), session)
    deriver = Deriver(wiring.rules(settings), limit_bytes=limit_bytes)
    rejected = 0

    def derived(write_dead: Callable[[Line, DeadLetter], None]) -> Iterator[Sequence[Record]]:
        nonlocal rejected
        for block in replay_lines(deriver, blocks, limit_bytes):
            for line, letter in block.dead:
                rejected += 1
                report(line, letter)
                write_dead(line, letter)
            yield block.records

    with _dead_file(dead) as write_dead, quiet_pipe():
        if view:
            _write_views(chain.from_iterable(derived(write_dead)))
        else:
            for records in derived(write_dead):
                write_lines([codec.to_structured(record) for record in records])
    if strict and rejected:
        raise typer.Exit(Exit.STOPPED)


def _write_views(records: Iterable[Record]) -> None:
    views: dict[str, SessionView] = {}
    for position, record in enumerate(records):
        session = record.data.session_id
        views[session] = project(views.get(session), record, position)
    write_lines([view_codec.encode(view) for view in views.values()])


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
