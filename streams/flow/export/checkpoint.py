"""What an export's folder remembers: which log it is of, up to where, and what a commit moves."""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from contextgauge.errors import ConfigError, StopError, VersionError
from contextgauge.json_codec import dumps, loads
from streams.codec.columns import TABLE_VERSION
from streams.ports import LogPlace
from streams.ports.tables import OWN_FOLDER, CommittedFiles, TableFile, TableFolder, TableFormat

CHECKPOINT: Final = f"{OWN_FOLDER}/checkpoint.json"
PENDING: Final = "_pending"

_TABLE: Final = re.compile(r"kind=([^/]+)/date=([^/]+)/part-([0-9]+)-[0-9]+\.[a-z]+")

_MOST_LOOKS: Final = 20
"""An export commits every second at most, and its files are listed within one or a few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedPartition:
    """How far a partition is exported: the next offset, and the last record before it."""

    offset: int
    place: LogPlace


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportCheckpoint:
    """The state of an export.

    `source` is the topic, or `paths`. `moves` are files of the last commit, from their pending path
    to their own, and `deletes` are files that they replace: both may be done already.
    """

    format: TableFormat
    source: str
    revision: int = 0
    partitions: dict[int, ExportedPartition] = field(default_factory=dict)
    moves: dict[str, str] = field(default_factory=dict)
    deletes: tuple[str, ...] = ()

    def next(
        self,
        moves: dict[str, str],
        deletes: tuple[str, ...] = (),
        partitions: dict[int, ExportedPartition] | None = None,
    ) -> "ExportCheckpoint":
        """Return the checkpoint of the next commit."""
        return replace(
            self,
            revision=self.revision + 1,
            partitions={**self.partitions, **(partitions or {})},
            moves=moves,
            deletes=deletes,
        )


def read_checkpoint(folder: TableFolder) -> ExportCheckpoint | None:
    """Return the folder's checkpoint; None where there is none.

    Raises VersionError for one of another version, ConfigError for one that is damaged.
    """
    content = folder.read(CHECKPOINT)
    if content is None:
        return None
    try:
        document = loads(content)
        version = document["version"]
        if version != TABLE_VERSION:
            raise VersionError(
                f"the export has columns of version {version}, this build writes version "
                f"{TABLE_VERSION}: export into another folder"
            )
        return _checkpoint(document)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(
            f"{CHECKPOINT} of the export is damaged ({error}): export into another folder"
        ) from error


def write_checkpoint(folder: TableFolder, checkpoint: ExportCheckpoint) -> None:
    """Store the checkpoint at once."""
    document: dict[str, Any] = {"version": TABLE_VERSION, **asdict(checkpoint)}
    document["partitions"] = {
        str(number): {"offset": each.offset, "place": each.place._asdict()}
        for number, each in checkpoint.partitions.items()
    }
    folder.replace(CHECKPOINT, dumps(document) + b"\n")


def table_path(kind: str, date: str, revision: int, number: int, table_format: str) -> str:
    """Return the path of a file of tables; it is of no other commit than the revision's."""
    # Names of a day are in the order of its commits.
    return f"kind={kind}/date={date}/part-{revision:08d}-{number:05d}.{table_format}"


def committed_files(folder: TableFolder) -> CommittedFiles | None:
    """Return the files of an export's last commit, wherever they lie; None where there is none.

    They are the same while an export that was ended in a commit has not been finished, and what
    one that runs has not committed is not among them. Raises as `read_checkpoint` does, and
    StopError for one that commits all the time.
    """
    checkpoint, missing = read_checkpoint(folder), frozenset[str]()
    for _ in range(_MOST_LOOKS):
        if checkpoint is None:
            return None
        files = folder.files()
        before, checkpoint = checkpoint, read_checkpoint(folder)
        seen_before, missing = missing, _missing(before, files)
        # A file that moves meanwhile may be listed nowhere. What stays away was deleted.
        if checkpoint == before and missing <= seen_before:
            return CommittedFiles(checkpoint.format, _committed(checkpoint, files))
    raise StopError("the export changes while its files are listed: try again")


def _missing(checkpoint: ExportCheckpoint, files: Iterable[TableFile]) -> frozenset[str]:
    """Return the last commit's files that are neither pending nor in their places."""
    present = {each.path for each in files}
    moves = checkpoint.moves.items()
    return frozenset(target for path, target in moves if present.isdisjoint((path, target)))


def _committed(
    checkpoint: ExportCheckpoint, files: Iterable[TableFile]
) -> dict[tuple[str, str], list[TableFile]]:
    """Return the files of a commit, by their kinds and dates, with the paths that they have now."""
    present = {each.path: each for each in files}
    waiting = {
        target: present[path] for path, target in checkpoint.moves.items() if path in present
    }
    tables: defaultdict[tuple[str, str], list[TableFile]] = defaultdict(list)
    for path, file in sorted((waiting | present).items()):
        match = _TABLE.fullmatch(path)
        if match is None or path in checkpoint.deletes:
            continue
        kind, date, revision = match.groups()
        if int(revision) <= checkpoint.revision:
            tables[kind, date].append(file)
    return dict(tables)


def _checkpoint(document: dict[str, Any]) -> ExportCheckpoint:
    return ExportCheckpoint(
        format=document["format"],
        source=document["source"],
        revision=document["revision"],
        partitions={
            int(number): ExportedPartition(offset=each["offset"], place=LogPlace(**each["place"]))
            for number, each in document["partitions"].items()
        },
        moves=dict(document["moves"]),
        deletes=tuple(document["deletes"]),
    )
