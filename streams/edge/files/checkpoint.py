"""The checkpoint file: how far each file was published; locked, and for one topic only.

It is replaced as a whole: written to a new file, synchronised, renamed. A publisher holds a lock on
`FILE.lock`, which keeps others out and ends with the process, however that ends.
"""

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from contextgauge.errors import ConfigError
from schemas.topics import MIB
from streams import codec
from streams.edge.files.follower import Follower
from streams.edge.files.positions import Position, from_entry
from streams.edge.files.watch import find_file
from streams.ports import Clock, LineBatch

if sys.platform != "win32":
    import fcntl

FORMAT = 1

_FORGOTTEN_S = 90 * 24 * 3_600
"""A file that was not seen for so long, and is not there, is forgotten."""

_OWNER_ONLY = 0o600
_FOLDER_OWNER_ONLY = 0o700

_SAVE_S = 1.0
"""How often it is written while lines are sent: what a crash sends again."""

_SAVE_SHARE = 20
"""Writing takes a twentieth of the time at the most: with 100 000 files it takes a second."""


_GROUP_LINES = 256
_GROUP_BYTES = MIB // 4
"""Small pieces are put together up to about so much: each is handed to another thread, which takes
longer than a short file takes to be read."""


class CheckpointTarget(NamedTuple):
    """What a checkpoint is for: a topic of a cluster."""

    cluster: str
    topic: str


class CheckpointContent(NamedTuple):
    """What was read: positions, and the last known offset of each partition of the topic."""

    positions: list[Position]
    offsets: dict[int, int]


class Checkpoint:
    """One checkpoint file, held by one publisher; use it as a context manager."""

    def __init__(self, path: Path, target: CheckpointTarget) -> None:
        self.path = path
        self._target = target
        self._lock: int | None = None

    def __enter__(self) -> Self:
        """Take the lock. Raises ConfigError where another publisher has it."""
        lock = self.path.with_name(self.path.name + ".lock")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=_FOLDER_OWNER_ONLY)
            self._lock = os.open(lock, os.O_RDWR | os.O_CREAT, _OWNER_ONLY)
            if sys.platform != "win32":
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.__exit__()
            raise ConfigError(
                f"another `contextgauge publish` works with the checkpoint {self.path}: end it, "
                "or give this one a checkpoint of its own with --checkpoint FILE"
            ) from None
        except OSError as error:
            self.__exit__()
            raise ConfigError(
                f"the checkpoint {self.path} cannot be written: {error.strerror}. Name another "
                "place with --checkpoint FILE or CONTEXTGAUGE_STATE_FOLDER"
            ) from error
        return self

    def __exit__(self, *_: object) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)

    def load(self, now_s: int) -> CheckpointContent:
        """Read it; empty where there is none. Raises ConfigError for one that cannot be used."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return CheckpointContent([], {})
        except OSError as error:
            raise ConfigError(f"the checkpoint {self.path}: {error.strerror}") from error
        try:
            document = codec.loads(content)
            if document["format"] != FORMAT:
                raise ConfigError(
                    f"the checkpoint {self.path} was written by another version of contextgauge "
                    f"(format {document['format']}, this one reads {FORMAT}): name another with "
                    "--checkpoint FILE; what was sent before is then sent again, which changes "
                    "nothing"
                )
            target = CheckpointTarget(document["cluster"], document["topic"])
            positions = [from_entry(entry) for entry in document["files"]]
            offsets = {
                int(partition): int(offset) for partition, offset in document["offsets"].items()
            }
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigError(
                f"the checkpoint {self.path} is damaged: delete it, and all files are sent from "
                "their beginnings, which changes nothing: what is known is ignored"
            ) from error
        if target != self._target:
            raise ConfigError(
                f"the checkpoint {self.path} is for the topic {target.topic} of the cluster "
                f"{target.cluster}, not for {self._target.topic} of {self._target.cluster}: "
                "name another with --checkpoint FILE"
            )
        return CheckpointContent([p for p in positions if _is_remembered(p, now_s)], offsets)

    def save(self, positions: Iterable[Position], offsets: Mapping[int, int]) -> None:
        """Replace it. Raises ConfigError where it cannot be written."""
        content: dict[str, Any] = {
            "format": FORMAT,
            "cluster": self._target.cluster,
            "topic": self._target.topic,
            "offsets": {str(partition): offset for partition, offset in sorted(offsets.items())},
            "files": [position._asdict() for position in positions],
        }
        new = self.path.with_name(self.path.name + ".new")
        try:
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWNER_ONLY)
            with os.fdopen(descriptor, "wb") as target:
                target.write(codec.dumps(content))
                target.flush()
                # On the disk before it gets its name: a power failure leaves one whole file.
                os.fsync(target.fileno())
            new.replace(self.path)
            _sync_folder(self.path.parent)
        except OSError as error:
            raise ConfigError(
                f"the checkpoint {self.path} cannot be written: {error.strerror}"
            ) from error


def _is_remembered(position: Position, now_s: int) -> bool:
    if now_s - position.seen_s < _FORGOTTEN_S:
        return True
    file = find_file(position.path)
    return file is not None and file.stat.st_ino == position.inode


def _sync_folder(folder: Path) -> None:
    """Make the renaming last through a power cut, where the system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class CheckpointedFollower:
    """A follower whose acknowledged lines are saved; `offsets` are the topic's last known ones."""

    def __init__(
        self,
        follower: Follower,
        checkpoint: Checkpoint,
        clock: Clock,
        offsets: Callable[[], Mapping[int, int]],
    ) -> None:
        self._follower = follower
        self._checkpoint = checkpoint
        self._clock = clock
        self._offsets = offsets
        self._is_due = False
        self._next_s = 0.0
        self._turn = 0
        # Held while the follower advances or rewinds, which happens in different threads.
        self._moving = threading.Lock()
        self._saving = threading.Lock()

    def pieces(self) -> Iterator[LineBatch]:
        """Yield the follower's pieces until the next `rewind`; saves between them.

        Blocks: run it in a thread.
        """
        return self._pieces(self._turn)

    def _pieces(self, turn: int) -> Iterator[LineBatch]:
        reading = grouped(self._follower.pieces())
        while True:
            with self._moving:
                piece = next(reading, None) if turn == self._turn else None
            if piece is None:
                return
            yield piece._replace(settle=self._settling(piece.settle)) if piece.lines else piece
            if self._is_due and self._clock.monotonic_s() >= self._next_s:
                self.save()

    def rewind(self) -> None:
        """Read again what was not acknowledged; blocks until no other thread reads any more."""
        with self._moving:
            self._turn += 1
            self._follower.rewind()

    def save(self) -> None:
        """Write the checkpoint. Raises ConfigError."""
        with self._saving:
            self._is_due = False
            begin_s = self._clock.monotonic_s()
            self._checkpoint.save(self._follower.positions(), self._offsets())
            end_s = self._clock.monotonic_s()
            # Less often where writing takes long, as with thousands of files.
            self._next_s = end_s + max(_SAVE_S, (end_s - begin_s) * _SAVE_SHARE)

    def _settling(self, settle: Callable[[], None]) -> Callable[[], None]:
        def settled() -> None:
            settle()
            self._is_due = True

        return settled


def grouped(pieces: Iterable[LineBatch]) -> Iterator[LineBatch]:
    """Yield the pieces with small ones put together; none waits behind one without lines."""
    held: list[LineBatch] = []
    lines = size = 0
    for piece in pieces:
        if held and (piece.live != held[0].live or not piece.lines):
            yield _joined(held)
            held, lines, size = [], 0, 0
        if not piece.lines:
            yield piece
            continue
        held.append(piece)
        lines += len(piece.lines)
        size += sum(len(line.value) for line in piece.lines)
        if lines >= _GROUP_LINES or size >= _GROUP_BYTES:
            yield _joined(held)
            held, lines, size = [], 0, 0
    if held:
        yield _joined(held)


def _joined(pieces: Sequence[LineBatch]) -> LineBatch:
    first = pieces[0]
    if len(pieces) == 1:
        return first

    def settle() -> None:
        for piece in pieces:
            piece.settle()

    return LineBatch([line for piece in pieces for line in piece.lines], first.live, settle)
