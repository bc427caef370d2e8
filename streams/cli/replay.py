"""`contextgauge replay`: context records from transcripts, without a broker, or from a topic."""

import base64
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from contextgauge.clock import SystemClock
from contextgauge.containers import Line
from contextgauge.errors import ConfigError
from schemas.messages import DeadLetter
from schemas.records import Json
from streams import codec, wiring
from streams.cli.exits import Exit
from streams.cli.inputs import sources_of
from streams.cli.screen.lines import is_terminal, quiet_pipe, write_lines
from streams.cli.screen.options import PATHS, Strict
from streams.cli.times import TIME_FORMS
from streams.cli.transcripts import Replay
from streams.codec import view_codec
from streams.settings.workers import MOST_PROCESSES

if TYPE_CHECKING:
    from streams.cli.replay_topic import ReplayedTopic


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
        help="Session of lines for which neither the line nor its file names one; to print one "
        "session, name its file. With --topic: only this session, by its ID or a unique prefix.",
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
Processes = Annotated[
    int | None,
    typer.Option(
        "--processes",
        metavar="N",
        min=1,
        max=MOST_PROCESSES,
        help="Processes that derive a large folder; the output is the same. Default: the number of "
        "cores. Small folders, single files, pipes and topics are read by one.",
        show_default=False,
    ),
]
End = Annotated[
    str | None,
    typer.Option("--to", metavar="TIME|OFFSET", help="With --topic: end before this place."),
]


def replay(  # noqa: PLR0913 -- each is an option
    paths: Annotated[list[str] | None, PATHS] = None,
    *,
    view: View = False,
    dead: DeadFile = None,
    session: Session = None,
    strict: Strict = False,
    topic: OfTopic = None,
    begin: Begin = None,
    end: End = None,
    processes: Processes = None,
) -> None:
    """Derive context records from transcripts or from Kafka.

    Prints the records as CloudEvents, one JSON object per line: of paths in
    input order, of a topic partition after partition, to its present end; with `--view` a panel for
    each session on a terminal, and its view as JSON in a pipe. A topic is read without a consumer
    group, so workers are not disturbed. Malformed lines are reported on standard error and do not
    stop it, unless there is nothing else.
    """
    _check_options(paths, topic, begin, end, dead, strict=strict)
    if topic is not None and processes is not None:
        raise ConfigError("--processes is for paths: a topic is read by one process")
    with _dead_file(dead) as write_dead, quiet_pipe():
        replayed: Replay | ReplayedTopic
        if topic is None:
            replayed = Replay(sources_of(paths or ()), session, write_dead, processes)
        else:
            # Lines on a terminal are progress enough, and a bar would cut through them.
            has_bar = view or not is_terminal()
            replayed = _of_topic(topic, (begin, end), session, write_dead, has_bar=has_bar)
        if not view:
            with closing(replayed.lines()) as parts:
                for lines in parts:
                    write_lines(lines)
        elif is_terminal():
            _show(replayed)
        else:
            write_lines([view_codec.encode(each) for each in replayed.views().values()])
    is_partly_read = isinstance(replayed, Replay) and replayed.unreadable > 0
    if is_partly_read or (strict and replayed.rejected.total):
        raise typer.Exit(Exit.STOPPED)


def _show(replayed: "Replay | ReplayedTopic") -> None:
    from streams.cli.screen.output import out  # noqa: PLC0415 -- imports rich
    from streams.cli.screen.render import status_box  # noqa: PLC0415 -- as above

    views = replayed.views().values()
    if isinstance(replayed, Replay):
        points = replayed.points(views)
    else:
        points = wiring.compaction_points(wiring.settings())
    for view in views:
        out.print(status_box(view, SystemClock().now_ms(), points))


def _of_topic(
    topic: ReplayTopic,
    between: tuple[str | None, str | None],
    session: str | None,
    on_dead: Callable[[Line, DeadLetter], None],
    *,
    has_bar: bool,
) -> "ReplayedTopic":
    from streams.cli.replay_topic import ReplayedTopic, TopicRequest  # noqa: PLC0415 -- loads aiokafka and rich

    request = TopicRequest(
        derives=topic is ReplayTopic.MESSAGES,
        begin=between[0],
        end=between[1],
        session_id=session,
        has_bar=has_bar,
    )
    return ReplayedTopic(request, on_dead)


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
