"""What tables are made of: the records of transcripts, or the rows of an export."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from contextgauge.errors import ConfigError
from streams import wiring
from streams.cli.inputs import LeftOut, named_or_own
from streams.cli.screen.output import reading
from streams.cli.screen.sessions_table import NOTHING_HERE
from streams.cli.transcripts import Replay
from streams.edge.files.watch import InputSource
from streams.flow.export.checkpoint import committed_files
from streams.flow.export.export import Export
from streams.ports.tables import CommittedFiles

if TYPE_CHECKING:
    from streams.edge.tables.folder import ArrowFolder

PATHS: Final = "paths"
"""The source of an export of transcripts."""


class StoredExport(NamedTuple):
    """An export that is there: where, and the files of its last commit."""

    folder: "ArrowFolder"
    tables: CommittedFiles


def export_of(paths: Sequence[str]) -> StoredExport | None:
    """Return the export that is named; None where paths are others.

    Raises ConfigError for an export among other paths, and as `committed_files` does.
    """
    from streams.edge.tables.folder import ArrowFolder  # noqa: PLC0415 -- loads pyarrow

    for path in paths:
        tables = committed_files(ArrowFolder(path, "parquet"))
        if tables is not None and len(paths) > 1:
            raise ConfigError(f"{path} is an export: name it alone")
        if tables is not None:
            return StoredExport(ArrowFolder(path, tables.format), tables)
    return None


def transcripts_of(paths: Sequence[str], left_out: LeftOut) -> list[InputSource]:
    """Return the transcripts of paths, or without any those of this machine, in reading order.

    `left_out` gets what cannot be read. Raises ConfigError where there are none.
    """
    sources = named_or_own(paths, left_out)
    if not sources:
        raise ConfigError(NOTHING_HERE)
    return sources


def read_transcripts(sources: Sequence[InputSource], made: Export) -> Replay:
    """Add all records of transcripts to an export."""
    rules = wiring.rules(wiring.settings(), content=True)
    replayed = Replay(sources, as_on_this_machine=True, rules=rules)
    with reading():
        for records in replayed.records():
            made.add((record, None) for record in records)
    return replayed
