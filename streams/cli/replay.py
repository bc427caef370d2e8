"""`contextgauge replay`: context records from transcripts, without a broker, or from a topic."""

import base64
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
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
from streams.cli.screen.options import PATHS, Strict
from streams.cli.times import TIME_FORMS
from streams.codec import views as view_codec
from streams.core.projection.project import project
from streams.edge.files import reading as files
from streams.flow.derive.deriver import Deriver
from streams.flow.replay.replay import replay as replay_lines


class ReplayTopic(StrEnum):
    """What `--topic` names."""

    MESSAGES = "messages"
    RECORDS = "records"


View = Annotated[
    bool, typer.Option("--view", help="Print each session's view instead of the records.")
]
DeadFile = Annotated[
    Path | None,
    typer.Option(
        "--dead",
        metavar="FILE",
        help="Write malformed lines to FILE as JSON lines; of a topic, `file` is TOPIC-PARTITION "
        "and `line` the offset.",
    ),
]
Session = Annotated[
    str | None,
    typer.Option(
        "--session",
        metavar="ID",
        help="Session of lines for which neither the line nor its file names one. With --topic: "
        "only this session, by its whole ID; one partition is read.",
    ),
]
OfTopic = Annotated[
    ReplayTopic | None,
    typer.Option(
        "--topic",
        help="Instead of paths: derive the messages in Kafka again (agent.messages), or print the "
        "records in Kafka as they are (context.events).",
    ),
]
Begin = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="TIME|OFFSET",
        help="With --topic: begin there: at an offset of every partition (1200) or of one (2:1200, "
        f"which reads this one alone), or at Kafka's time: {TIME_FORMS}.",
    ),
]
End = Annotated[
    str | None,
    typer.Option("--to", metavar="TIME|OFFSET", help="With --topic: end before this place."),
]


def replay(
    paths: Annotated[list[str] | None, PATHS] = None,
    *,
    view: View = False,
    dead: DeadFile = None,
    session: Session = None,
    strict: Strict = False,
    topic: OfTopic = None,
    begin: Begin = None,
    end: End = None,
) -> None:
    """Derive context records from transcripts or from Kafka.

    Runs in one process. Prints the records as CloudEvents, one JSON object per line: of paths in
    input order, of a topic partition after partition, to its present end. A topic is read without a
    consumer group, so workers are not disturbed. Malformed lines are reported on standard error and
    do not stop it.
    """
    _check_options(paths, topic, begin, end, dead, strict=strict)
    rejected = 0

    def reject(line: Line, letter: DeadLetter) -> None:
        nonlocal rejected
        rejected += 1
        report(line, letter)
        write_dead(line, letter)

    with _dead_file(dead) as write_dead, quiet_pipe():
        if topic is not None:
            from streams.cli.replay_topic import TopicRequest, topic_records  # noqa: PLC0415 -- loads aiokafka and rich

            request = TopicRequest(
                derives=topic is ReplayTopic.MESSAGES,
                begin=begin,
                end=end,
                session_id=session,
                # Lines on a terminal are progress enough, and a bar would cut through them.
                shows_progress=view or not sys.stdout.isatty(),
                makes_views=view,
            )
            events = topic_records(request, reject)
            if view:
                _write_views(codec.from_binary(*event) for part in events for event in part)
            else:
                for part in events:
                    write_lines([codec.binary_to_structured(*event) for event in part])
        elif view:
            _write_views(chain.from_iterable(_of_paths(paths or (), session, reject)))
        else:
            for records in _of_paths(paths or (), session, reject):
                write_lines([codec.to_structured(record) for record in records])
    if strict and rejected:
        raise typer.Exit(Exit.STOPPED)


def _check_options(
    paths: Sequence[str] | None,
    topic: ReplayTopic | None,
    begin: str | None,
    end: str | None,
    dead: Path | None,
    *,
    strict: bool,
) -> None:
    """Raise ConfigError for options that contradict each other."""
    if topic is None:
        if begin is not None or end is not None:
            raise ConfigError("--from and --to need --topic: files are read whole")
        if not paths:
            raise ConfigError("name what to replay: paths, --topic messages or --topic records")
    elif paths:
        raise ConfigError(f"--topic {topic} and paths cannot be combined: replay one after another")
    elif topic is ReplayTopic.RECORDS and (strict or dead is not None):
        raise ConfigError("--dead and --strict are about deriving: use --topic messages")


def _of_paths(
    paths: Sequence[str], session: str | None, reject: Callable[[Line, DeadLetter], None]
) -> Iterator[Sequence[Record]]:
    """Yield the records of transcripts, block by block."""
    settings = wiring.settings()
    limit_bytes = settings.message_limit_bytes
    blocks = files.read(files.expand(paths), session)
    deriver = Deriver(wiring.rules(settings), limit_bytes=limit_bytes)
    for block in replay_lines(deriver, blocks, limit_bytes):
        for line, letter in block.dead:
            reject(line, letter)
        yield block.records


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
