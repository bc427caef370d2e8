"""What an export's folder remembers: which log it is of, up to where, and what a commit moves."""

from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from contextgauge.errors import ConfigError, VersionError
from contextgauge.json_codec import dumps, loads
from streams.codec.columns import TABLE_VERSION
from streams.ports import LogPlace
from streams.ports.tables import TableFolder, TableFormat

CHECKPOINT: Final = "_contextgauge/checkpoint.json"
PENDING: Final = "_pending"


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
