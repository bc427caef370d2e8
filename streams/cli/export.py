"""`contextgauge export`: records as files of tables, from transcripts or from Kafka."""

import asyncio
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from contextgauge.clock import SystemClock
from contextgauge.errors import ConfigError, RetryError
from schemas.topics import CONTEXT_EVENTS
from streams import wiring
from streams.cli.exits import Exit
from streams.cli.extras import ANALYSIS, needs
from streams.cli.inputs import sources_of
from streams.cli.screen.failures import say_passed, show_warning
from streams.cli.screen.figures import count, exact, safe
from streams.cli.screen.output import reading, say
from streams.cli.screen.reading_bar import reading_bar
from streams.cli.table_sources import PATHS, export_of, read_transcripts
from streams.cli.transcripts import no_session
from streams.edge.signals import heeded_signals
from streams.flow.export.export import Export
from streams.flow.export.retained import Update
from streams.flow.export.topic import TopicSource, export_once, follow

if TYPE_CHECKING:
    from streams.edge.tables.folder import ArrowFolder
    from streams.ports.tables import TableFolder, TableFormat


class ExportFormat(StrEnum):
    """File formats of tables."""

    PARQUET = "parquet"
    ARROW = "arrow"
    CSV = "csv"
    NDJSON = "ndjson"


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
        help="With paths: leave out what the folder has of sessions that are not in them.",
    ),
]


def export(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH",
            help="Transcripts: a file, a session's folder, or a folder of any depth. Or the folder "
            "or URL of one export.",
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
    follow: Annotated[
        float | None,
        typer.Option(
            "--follow",
            metavar="SECONDS",
            min=1,
            help="With --topic: continue until stopped, and add what is new every so many seconds.",
            show_default=False,
        ),
    ] = None,
    merge: _Merge = False,
    replace: _Replace = False,
) -> None:
    """Write records as tables: Parquet, Arrow, CSV or NDJSON, by kind and date.

    Sessions in paths replace themselves in the folder; sessions that are only in the folder stay,
    since runtimes delete transcripts. An export of the topic adds what is new; whatever interrupts
    it, each record is there once. Files appear when they are complete. Of an export, all rows are
    written in the wanted format.
    """
    if topic == bool(paths):
        raise ConfigError("name what to export: paths, or --topic for the records in Kafka")
    if follow is not None and not topic:
        raise ConfigError("--follow is for --topic: an export of paths ends with them")
    if replace and topic:
        raise ConfigError("--replace is for paths: records of a topic are added")
    with needs("export", "analysis", ANALYSIS):
        from streams.edge.tables.folder import ArrowFolder  # noqa: PLC0415 -- loads pyarrow
    folder = ArrowFolder(to, table_format.value)
    if paths:
        is_whole = _export_paths(folder, table_format, paths, merge=merge, replace=replace)
        if not is_whole:
            raise typer.Exit(Exit.STOPPED)
    else:
        asyncio.run(export_topic(folder, table_format.value, follow, merge=merge))


def _export_paths(
    folder: "ArrowFolder",
    table_format: ExportFormat,
    paths: list[str],
    *,
    merge: bool,
    replace: bool,
) -> bool:
    """Return whether all files could be read whole."""
    known = export_of(paths)
    if known is not None and known.folder.is_same(folder):
        raise ConfigError("an export cannot be written into itself: name another folder")
    sources = sources_of(paths) if known is None else ()
    with Export(folder, table_format.value, PATHS) as made:
        if known is None:
            replayed = read_transcripts(sources, made)
            is_whole, nothing = not replayed.unreadable, replayed.no_session()
        else:
            with reading():
                made.add_tables(*known)
            is_whole, nothing = True, no_session(paths[0], 0)
        update = None
        if replace:
            made.commit_instead()
        else:
            update = made.commit_update()
        if merge:
            made.merge_small()
    if not made.rows:
        show_warning(str(nothing))
    _say_done(made)
    if update is not None:
        _say_kept(update)
    return is_whole


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
        say(
            f"kept {count(update.kept, 'record')} of {count(len(update.gone), 'session')} that "
            "these paths do not have (--replace leaves them out)"
        )
    if update.lost:
        sessions = sorted({session for session, _ in update.lost})
        more = f" and {count(len(sessions) - 1, 'other session')}" if len(sessions) > 1 else ""
        show_warning(
            f"{safe(sessions[0])}{more}: these paths lack records that were exported. What was "
            "exported of them stays, without what is new; --replace exports what is there"
        )
