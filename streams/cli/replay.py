"""`contextgauge replay` and `publish`: transcripts from files, folders or standard input."""

import base64
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from contextgauge.containers import Line
from contextgauge.errors import ConfigError
from schemas.messages import DeadLetter
from schemas.records import Json
from streams import codec, wiring
from streams.cli.exits import Exit
from streams.cli.publish.arguments import REFUSED, Paths, Session, Strict
from streams.cli.publish.command import publish
from streams.cli.publish.refusals import report
from streams.cli.screen.lines import quiet_pipe, write_lines
from streams.cli.simulate import simulate
from streams.edge.files import reading as files
from streams.flow.derive.deriver import Funnel
from streams.flow.project.fold import Placed
from streams.flow.replay.replay import Derived
from streams.flow.replay.replay import replay as replay_lines
from streams.flow.replay.views import ViewFold

_REFUSED = Exit.STOPPED
"""Exit code with `--strict` where a line was malformed."""


def replay(
    paths: Paths,
    *,
    view: Annotated[
        bool, typer.Option("--view", help="Print the sessions' views instead of the records.")
    ] = False,
    dead: Annotated[
        Path | None,
        typer.Option("--dead", metavar="FILE", help="Keep malformed lines there, as JSON lines."),
    ] = None,
    session: Session = None,
    strict: Strict = False,
) -> None:
    """Derive context records from transcripts, in one process and without a broker.

    Prints the records as CloudEvents, one JSON object a line, in the order of the input.
    Malformed lines are reported on standard error and do not stop it.
    """
    chosen = wiring.settings()
    sources = files.expand(paths)
    funnel = Funnel(wiring.rules(chosen), limit_bytes=chosen.message_limit_bytes)
    blocks = files.read(sources, session)
    with _dead_file(dead) as keep, quiet_pipe():
        derived = _reporting(replay_lines(funnel, blocks, chosen.message_limit_bytes), keep)
        refused = _write_views(derived) if view else _write_records(derived)
    if strict and refused:
        raise typer.Exit(REFUSED)


def _reporting(
    derived: Iterator[Derived], keep: Callable[[Line, DeadLetter], None]
) -> Iterator[Derived]:
    for block in derived:
        for line, letter in block.dead:
            report(line, letter)
            keep(line, letter)
        yield block


def _write_records(derived: Iterator[Derived]) -> int:
    refused = 0
    for block in derived:
        refused += len(block.dead)
        write_lines([codec.to_structured(record) for record in block.records])
    return refused


def _write_views(derived: Iterator[Derived]) -> int:
    # Lines have no Kafka timestamps, so no session leaves for idleness.
    fold = ViewFold(only_views=True)
    refused = position = 0
    for block in derived:
        refused += len(block.dead)
        for record in block.records:
            fold.add(Placed(position, None, record))
            position += 1
    write_lines(list(fold.documents().views.values()))
    return refused


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
        yield lambda line, letter: _keep(target, line, letter)


def _keep(target: BinaryIO, line: Line, letter: DeadLetter) -> None:
    """Write a dead letter; of a gigantic line, the beginning that was held."""
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


def register(app: typer.Typer) -> None:
    """Add the commands that read and make transcripts."""
    app.command()(replay)
    app.command()(publish)
    app.command()(simulate)
