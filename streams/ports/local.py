"""The ports of `contextgauge view`: the transcripts of this machine, and what is known of them.

Both are used by one thread, the one that reads.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

from contextgauge.containers import Line
from contextgauge.normalise.unread_lines import UnreadKind
from schemas.views import Aggregates, PartitionView
from streams.ports.view_store import ViewChanges

Task = TypeVar("Task")
"""Files that another process reads; what it is, only the reader of transcripts knows."""

Task_contra = TypeVar("Task_contra", contravariant=True)


class ReadingProgress(NamedTuple):
    """How much of all transcripts has been read."""

    files: int
    read_files: int
    bytes: int
    read_bytes: int

    @property
    def is_done(self) -> bool:
        """Whether everything has been read."""
        return self.read_bytes >= self.bytes


class TranscriptPiece(NamedTuple):
    """Lines of one file. `mark` is how far it was read after them, opaque to all but the reader.

    `received_ms` is when lines were seen that were written meanwhile, None for older ones.
    `modified_ms` is the file's own time. `is_as_once`: the lines are those that one reading of the
    whole file would give, with the same hints.
    """

    path: str
    lines: Sequence[Line]
    received_ms: int | None
    modified_ms: int
    mark: bytes
    is_as_once: bool = True


class Visits(NamedTuple):
    """When a file had lines of a session: reading another file than before is another visit."""

    first: int
    last: int


class LocalChanges(NamedTuple):
    """What one transaction writes. Sessions are keys (`codec.key_bytes`).

    `views` as in a view store; sessions that leave take all their documents with them. `states`
    are the parts of the derivation's state by their keys, None to delete one; `totals` each
    session's own aggregates, by session and field. `marks` are how far files were read, None for
    files to forget; `members` which sessions a file has lines of, and when they were read.
    `inexact` are files of which a reading from the beginning might give something else, or would
    report lines.
    """

    position: int
    views: ViewChanges
    states: Mapping[bytes, Mapping[bytes, bytes | None]]
    totals: Mapping[tuple[bytes, bytes], bytes]
    marks: Mapping[str, bytes | None]
    members: Mapping[tuple[str, bytes], Visits]
    inexact: Collection[str] = ()


class DerivedFiles(NamedTuple):
    """What another process derived from files, by sessions whole: offsets begin at 0.

    `partition` is the account of its records, `ahead_ms` the times of those that are too far ahead
    of their files' own; `counts` are the aggregates of its sessions together, by field, of which
    those in `changes` are not used. `rejected` counts lines that could not be derived, by file,
    `unread` those whose figures are not read.
    """

    changes: LocalChanges
    partition: PartitionView
    ahead_ms: Collection[int]
    counts: Mapping[str, Aggregates]
    rejected: Mapping[str, int]
    unread: Mapping[UnreadKind, int]


class OtherProcesses(Protocol[Task_contra]):
    """Processes that read and derive files, some sessions at a time, each from its beginning."""

    def results(self, tasks: Sequence[Task_contra]) -> Iterator[DerivedFiles | None]:
        """Yield what each task gave, in order; None where it could not be done."""

    def stop(self) -> None:
        """End the processes."""


class TranscriptReader(Protocol[Task]):
    """The transcripts: what is there, what is new, and what is no longer what was read."""

    def look(self) -> list[str]:
        """Look at the files; return those that are gone or no longer hold what was read.

        The caller forgets these, and with them all files that share a session with them.
        """

    def forget(self, paths: Collection[str]) -> None:
        """Read these files from their beginnings; those that are gone, no more."""

    def pieces(self) -> Iterator[TranscriptPiece]:
        """Yield what was not read yet, the sessions that changed last first.

        Within a session the main file comes first. It ends when it is time to look again.
        """

    def for_others(self) -> list[Task]:
        """Return the files that other processes read: once, after the first look."""

    def read_by_other(self, files: Task, marks: Mapping[str, bytes | None] | None) -> bool:
        """Take how far another process read; False where the caller is to read these files."""

    def is_time_to_look(self) -> bool:
        """Return whether the last look at the files is some time ago."""

    def progress(self) -> ReadingProgress | None:
        """Return how much has been read, None before the first look; from any thread."""


class LocalStore(Protocol):
    """The local file: views, the state to go on from, and how far each file was read.

    Every method raises StopError where the file cannot be read or written.
    """

    @property
    def position(self) -> int:
        """The offset of the next record."""

    @property
    def visits(self) -> int:
        """The number of the next visit of a file."""

    def marks(self) -> dict[str, bytes]:
        """Return how far each file was read."""

    def stats(self) -> dict[bytes, bytes]:
        """Return the aggregates of all sessions; empty before the first commit."""

    def view(self, session: bytes) -> bytes | None:
        """Return a session's view."""

    def compaction(self, session: bytes, name: bytes) -> bytes | None:
        """Return one of a session's compactions."""

    def state(self, session: bytes) -> list[tuple[bytes, bytes]]:
        """Return the parts of a session's state, with their keys."""

    def own_totals(self, session: bytes) -> dict[bytes, bytes]:
        """Return a session's own aggregates."""

    def other_totals(self, field: bytes, sessions: Collection[bytes]) -> list[bytes]:
        """Return a field of the aggregates of all sessions but these."""

    def files(self, session: bytes) -> set[str]:
        """Return the files that have lines of a session."""

    def related(self, paths: Collection[str]) -> tuple[set[bytes], set[str]]:
        """Return the sessions that the files have lines of, and all files of these sessions.

        And so on, until no session of these files has lines in another one.
        """

    def commit(self, changes: LocalChanges) -> None:
        """Write everything, or nothing."""
