"""`contextgauge export`: records as files of tables, from transcripts or from Kafka."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from contextgauge.clock import SystemClock
from contextgauge.errors import ConfigError, RetryError, StopError
from schemas.topics import CONTEXT_EVENTS
from streams import wiring
from streams.cli.exits import Exit
from streams.cli.extras import ANALYSIS, needs
from streams.cli.inputs import LeftOut
from streams.cli.screen.failures import say_passed, show_warning
from streams.cli.screen.figures import count, exact, safe
from streams.cli.screen.output import reading, say
from streams.cli.screen.reading_bar import reading_bar
from streams.cli.table_sources import (
    PATHS,
    StoredExport,
    export_of,
    read_transcripts,
    transcripts_of,
)
from streams.cli.transcripts import no_session
from streams.edge.signals import heeded_signals
from streams.flow.export.export import Export
from streams.flow.export.retained import Update
from streams.flow.export.topic import TopicSource, export_once, follow

if TYPE_CHECKING:
    from streams.ports.tables import TableFolder, TableFormat


class ExportFormat(StrEnum):
    """File formats of tables."""

    PARQUET = "parquet"
    ARROW = "arrow"
    CSV = "csv"
    NDJSON = "ndjson"


_Follow: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--follow",
        metavar="SECONDS",
        min=1,
        help="With --topic: continue until stopped, and add what is new every so many seconds.",
        show_default=False,
    ),
]
_Merge: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--merge",
        help="At the end, merge the small files of each kind and day; with --follow also as soon "
        "as they are many.",
    ),
]
_Replace: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--replace",
        help="With transcripts: the folder has what is in them then, and nothing else.",
    ),
]
_EvenIfLess: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--even-if-less",
        help="With transcripts: a session that has less in them than what was exported of it "
        "replaces that, too.",
    ),
]


def export(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH",
            help="Transcripts: a file, a session's folder, or a folder of any depth; by default "
            "those on this machine. Or the folder or URL of one export.",
            show_default=False,
        ),
    ] = None,
    *,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="FOLDER|URL",
            help="Folder of the export, or its address in an object store, such as "
            "s3://bucket/folder.",
            show_default=False,
        ),
    ],
    table_format: Annotated[
        ExportFormat, typer.Option("--format", help="File format.")
    ] = ExportFormat.PARQUET,
    topic: Annotated[
        bool,
        typer.Option(
            "--topic",
            help="Export the records in Kafka (context.events) instead of paths: what is new since "
            "the last export into this folder.",
        ),
    ] = False,
    follow: _Follow = None,
    merge: _Merge = False,
    replace: _Replace = False,
    even_if_less: _EvenIfLess = False,
) -> None:
    """Write records as tables: Parquet, Arrow, CSV or NDJSON, by kind and date.

    Sessions in transcripts replace themselves in the folder; what is only in the folder stays,
    since runtimes delete transcripts. An export of the topic adds what is new; whatever interrupts
    it, each record is there once. Files appear when they are complete. An export of an export is a
    copy, in the wanted format.
    """
    _check(paths, topic=topic, follow=follow, replace=replace, even_if_less=even_if_less)
    with needs("export", "analysis", ANALYSIS):
        from streams.edge.tables.folder import ArrowFolder  # noqa: PLC0415 -- loads pyarrow
    folder = ArrowFolder(to, table_format.value)
    if topic:
        asyncio.run(export_topic(folder, table_format.value, follow, merge=merge))
        return
    known = export_of(paths or ())
    if known is None:
        _export_transcripts(
            Export(folder, table_format.value, PATHS),
            paths or (),
            merge=merge,
            replace=replace,
            even_if_less=even_if_less,
        )
    elif replace or even_if_less:
        raise ConfigError(f"{known.folder.place} is an export: a copy replaces what the folder has")
    elif known.folder.is_same(folder):
        raise ConfigError("an export cannot be written into itself: name another folder")
    else:
        _copy(Export(folder, table_format.value, PATHS), known, merge=merge)


def _check(
    paths: Sequence[str] | None,
    *,
    topic: bool,
    follow: float | None,
    replace: bool,
    even_if_less: bool,
) -> None:
    """Raise ConfigError for options that do not go together."""
    if topic and paths:
        raise ConfigError("--topic stands for the records in Kafka: name no paths with it")
    if follow is not None and not topic:
        raise ConfigError("--follow is for --topic: an export of transcripts ends with them")
    if topic and (replace or even_if_less):
        option = "--replace" if replace else "--even-if-less"
        raise ConfigError(f"{option} is for transcripts: records of a topic are added")
    if replace and even_if_less:
        raise ConfigError("--replace takes all that is there: leave out --even-if-less")


def _copy(export: Export, known: StoredExport, *, merge: bool) -> None:
    with export as made:
        with reading():
            made.add_tables(*known)
        made.commit_instead()
        if merge:
            made.merge_small()
    if not made.rows:
        show_warning(str(no_session(known.folder.place, 0)))
    _say_done(made)


def _export_transcripts(
    export: Export, paths: Sequence[str], *, merge: bool, replace: bool, even_if_less: bool
) -> None:
    """Export transcripts. Raises Exit where some could not be read, or not whole."""
    left_out = LeftOut()
    sources = transcripts_of(paths, left_out)
    update = None
    with export as made:
        replayed = read_transcripts(sources, made)
        if not made.uncommitted:
            show_warning(str(replayed.no_session()))
        is_whole = not (left_out.count or replayed.unreadable)
        if replace and not is_whole:
            raise StopError("nothing was replaced, since not all could be read")
        if replace:
            made.commit_instead()
        else:
            update = made.commit_update(even_if_less=even_if_less)
        if merge:
            made.merge_small()
    _say_done(made)
    if update is not None:
        _say_kept(update)
    if not is_whole:
        raise typer.Exit(Exit.STOPPED)


async def export_topic(
    folder: "TableFolder",
    table_format: "TableFormat",
    every_s: float | None = None,
    *,
    merge: bool = False,
) -> tuple[str, bool]:
    """Export what is new in the topic of records, once or every so many seconds.

    Return its name, and whether it went on to its end: a signal stops it early. Raises as
    `export_once` does.
    """
    settings = wiring.settings()
    topic = settings.topic(CONTEXT_EVENTS).name
    stop = asyncio.Event()
    for number in heeded_signals():
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    log = wiring.kafka_log(settings, "contextgauge-export")
    source = TopicSource(
        log=log,
        clock=SystemClock(),
        topic=topic,
        stop=stop,
        passed=say_passed,
        lost=_say_lost(topic),
        progress=partial(reading_bar, f"exporting {topic}"),
    )
    opened = partial(Export, folder, table_format, topic)
    try:
        if every_s is not None:
            await follow(source, opened, every_s, _say_done, _say_failed, merge=merge)
        else:
            await log.start()
            with opened() as made:
                await export_once(source, made)
                _say_done(made)
                if merge:
                    made.merge_small()
    finally:
        await log.stop()
    return topic, not stop.is_set()


def _say_failed(error: RetryError, pause_s: float) -> None:
    show_warning(f"{error}: retrying in {pause_s:g} s (Ctrl-C to stop)")


def _say_lost(topic: str) -> Callable[[int, int], None]:
    return lambda partition, offsets: show_warning(
        f"{topic}-{partition}: {exact(offsets)} offsets were deleted by retention before they were "
        "exported"
    )


def _say_done(made: Export) -> None:
    say(f"{exact(made.rows)} records in {exact(made.files)} files")


def _say_kept(update: Update) -> None:
    if update.gone:
        say(f"kept {count(update.kept, 'record')} of {count(len(update.gone), 'other session')}")
    if update.held:
        show_warning(
            f"{_sessions_of(update.held)}: less is here than what was exported, which stays. To "
            "have what is here, export it with --even-if-less"
        )
    if update.shorter:
        show_warning(
            f"{_sessions_of(update.shorter)}: fewer responses or compactions are here than were "
            "exported, and more of something else: what is here has replaced what was exported"
        )


def _sessions_of(chains: Iterable[tuple[str, str]]) -> str:
    first, *others = sorted({session for session, _ in chains})
    more = f" and {count(len(others), 'other session')}" if others else ""
    return f"{safe(first)}{more}"
