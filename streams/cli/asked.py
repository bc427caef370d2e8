"""What questions are asked of: an export, or transcripts and Kafka's records as a temporary one."""

import asyncio
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from contextgauge.errors import ConfigError, StopError
from streams import wiring
from streams.cli.inputs import LeftOut
from streams.cli.screen.failures import show_warning
from streams.cli.table_sources import PATHS, export_of, read_transcripts, transcripts_of
from streams.cli.transcripts import no_session
from streams.flow.export.checkpoint import committed_files
from streams.flow.export.export import Export
from streams.ports.tables import CommittedFiles

if TYPE_CHECKING:
    from streams.edge.tables.engine import SqlEngine
    from streams.edge.tables.folder import ArrowFolder


class OpenedTables(NamedTuple):
    """SQL over something. `is_whole`: all of it could be read.

    `source` says for titles what it is, without names: a path's parts may be a person's, a topic's
    an organisation's.
    """

    engine: "SqlEngine"
    is_whole: bool
    source: str


@contextmanager
def opened(
    paths: Sequence[str], *, topic: bool = False, needs_session: bool = False
) -> Iterator[OpenedTables]:
    """Open an export, transcripts, those of this machine (no paths), or `topic`: Kafka's records.

    What has no session is reported on standard error. Raises StopError for it with
    `needs_session`, and ConfigError where there is nothing to ask, or both paths and the topic are
    named.
    """
    from streams.edge.tables.engine import SqlEngine  # noqa: PLC0415 -- loads duckdb
    from streams.edge.tables.folder import ArrowFolder  # noqa: PLC0415 -- loads pyarrow

    if topic and paths:
        raise ConfigError("--topic stands for the records in Kafka: name no paths with it")
    price_of = wiring.prices(wiring.settings())
    known = export_of(paths)
    if known is not None:
        engine = SqlEngine(*known, price_of)
        _check(engine, no_session(paths[0], 0), needs_session=needs_session)
        yield OpenedTables(engine, is_whole=True, source="an export")
        return
    with tempfile.TemporaryDirectory(prefix="contextgauge-query-") as temporary:
        folder = ArrowFolder(temporary, "parquet")
        if topic:
            from streams.cli.export import export_topic  # noqa: PLC0415 -- of this way only

            name, is_whole = asyncio.run(export_topic(folder, "parquet"))
            source, nothing = "the records in Kafka", no_session(name, 0)
            if not is_whole:
                show_warning("stopped before all records were read: what follows is of a part")
        else:
            source = "transcripts" if paths else "the sessions on this machine"
            is_whole, nothing = _read(paths, folder)
        made = committed_files(folder) or CommittedFiles("parquet", {})
        engine = SqlEngine(folder, made, price_of)
        _check(engine, nothing, needs_session=needs_session)
        yield OpenedTables(engine, is_whole, source)


def _check(engine: "SqlEngine", nothing: StopError, *, needs_session: bool) -> None:
    if engine.is_empty and needs_session:
        raise nothing
    if engine.is_empty:
        show_warning(str(nothing))


def _read(paths: Sequence[str], folder: "ArrowFolder") -> tuple[bool, StopError]:
    """Write the records of transcripts; return whether all could be read, and an error.

    It is the error of an input without a session.
    """
    left_out = LeftOut()
    sources = transcripts_of(paths, left_out)
    with Export(folder, "parquet", PATHS) as made:
        replayed = read_transcripts(sources, made)
        made.commit()
    return not (left_out.count or replayed.unreadable), replayed.no_session()
