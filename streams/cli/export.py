"""`contextgauge export`: records as files of tables, from transcripts or from Kafka."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from contextgauge.clock import SystemClock
from contextgauge.errors import ConfigError
from schemas.topics import CONTEXT_EVENTS
from streams import wiring
from streams.cli.exits import Exit
from streams.cli.extras import ANALYSIS, needs
from streams.cli.inputs import sources_of
from streams.cli.screen.failures import say_passed, show_warning
from streams.cli.screen.figures import exact
from streams.cli.screen.output import say
from streams.cli.screen.reading_bar import reading_bar
from streams.cli.transcripts import Replay
from streams.edge.signals import heeded_signals
from streams.flow.export.export import Export
from streams.flow.export.topic import TopicExport
from streams.ports import id_text

if TYPE_CHECKING:
    from streams.ports.tables import TableFolder, TableFormat

_PATHS = "paths"
"""The source of an export of transcripts: each replaces the one before it."""


class ExportFormat(StrEnum):
    """File formats of tables."""

    PARQUET = "parquet"
    ARROW = "arrow"
    CSV = "csv"
    NDJSON = "ndjson"


def export(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH",
            help="Transcripts: a file, a session's folder, or a folder of any depth.",
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
    merge: Annotated[
        bool,
        typer.Option("--merge", help="At the end, merge the small files of each kind and day."),
    ] = False,
) -> None:
    """Write records as tables: Parquet, Arrow, CSV or NDJSON, by kind and date.

    An export of paths replaces the one that the folder has. An export of the topic adds what is
    new; whatever interrupts it, each record is there once. Files appear when they are complete.
    """
    if topic == bool(paths):
        raise ConfigError("name what to export: paths, or --topic for the records in Kafka")
    if follow is not None and not topic:
        raise ConfigError("--follow is for --topic: an export of paths replaces the one before it")
    with needs("export", "analysis", ANALYSIS):
        from streams.edge.tables.folder import ArrowFolder  # noqa: PLC0415 -- loads pyarrow
    folder = ArrowFolder(to, table_format.value)
    if paths:
        is_whole = _export_paths(folder, table_format, paths, merge=merge)
        if not is_whole:
            raise typer.Exit(Exit.STOPPED)
    else:
        asyncio.run(export_topic(folder, table_format.value, follow, merge=merge))


def _export_paths(
    folder: "TableFolder", table_format: ExportFormat, paths: list[str], *, merge: bool
) -> bool:
    """Return whether all files could be read whole."""
    replayed = Replay(sources_of(paths), rules=wiring.rules(wiring.settings(), content=True))
    made = Export(folder, table_format.value, _PATHS)
    for records in replayed.records():
        made.add((record, None) for record in records)
    made.commit_instead()
    if merge:
        made.merge_small()
    if not made.rows:
        show_warning(str(replayed.no_session()))
    _say_done(made)
    return not replayed.unreadable


async def export_topic(
    folder: "TableFolder",
    table_format: "TableFormat",
    every_s: float | None = None,
    *,
    merge: bool = False,
) -> str:
    """Export what is new in the topic of records, once or every so many seconds; return its name.

    Raises ConfigError for a missing topic, and as `TopicExport.check` does.
    """
    settings = wiring.settings()
    topic = settings.topic(CONTEXT_EVENTS).name
    made = Export(folder, table_format, topic)
    stop = asyncio.Event()
    for number in heeded_signals():
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with wiring.started(wiring.kafka_log(settings, "contextgauge-export")) as log:
        count = (await log.partition_counts([topic]))[topic]
        if count is None:
            raise ConfigError(
                f"missing on {settings.bootstrap_servers}: {topic}: create the topics with "
                "`contextgauge topics create`"
            )
        topic_id = id_text((await log.topic_ids([topic]))[topic])
        partitions = range(count)
        async with wiring.started(log.reader(topic, partitions)) as reader:
            with reading_bar(f"exporting {topic}") as progress:
                exported = TopicExport(
                    reader=reader,
                    clock=SystemClock(),
                    export=made,
                    topic=topic,
                    topic_id=topic_id,
                    passed=say_passed,
                    lost=_say_lost(topic),
                    is_stopped=stop.is_set,
                    progress=progress,
                )
                await exported.check(partitions)
                await exported.run(partitions)
            _say_done(made)
            while every_s is not None and not await _is_set_within(stop, every_s):
                if await exported.run(partitions):
                    _say_done(made)
    if merge:
        made.merge_small()
    return topic


async def _is_set_within(stop: asyncio.Event, seconds: float) -> bool:
    with suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds)
    return stop.is_set()


def _say_lost(topic: str) -> Callable[[int, int], None]:
    return lambda partition, offsets: show_warning(
        f"{topic}-{partition}: {exact(offsets)} offsets were deleted by retention before they were "
        "exported"
    )


def _say_done(made: Export) -> None:
    say(f"{exact(made.rows)} records in {exact(made.files)} files")
