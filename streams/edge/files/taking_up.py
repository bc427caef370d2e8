"""Takes files up where an earlier run, or an earlier name of theirs, left them."""

import contextlib
import os
from pathlib import Path

from streams.edge.files.positions import Position
from streams.edge.files.tail import FileTail
from streams.edge.files.watch import TranscriptFile, source_of


class FolderInodes:
    """Which files a folder holds, by inode; each folder is looked at once."""

    def __init__(self) -> None:
        self._folders: dict[Path, dict[int, str]] = {}

    def find(self, folder: Path, identity: tuple[int, int]) -> Path | None:
        """Return the file of a folder that is this one, under whatever name."""
        names = self._folders.get(folder)
        if names is None:
            names = self._folders[folder] = {}
            with contextlib.suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    if entry.is_file(follow_symlinks=False):
                        names[entry.inode()] = entry.path
        device, inode = identity
        path = names.get(inode)
        try:
            return Path(path) if path and os.stat(path).st_dev == device else None  # noqa: PTH116 -- as in the watch
        except OSError:
            return None


def is_as_left(tail: FileTail, stored: Position, file: TranscriptFile) -> bool:
    """Return whether a file holds what an earlier run read of it, as far as that is known."""
    status = file.stat
    untouched = (status.st_size, status.st_mtime_ns) == (stored.file_bytes, stored.modified_ns)
    if untouched and stored.identity == (status.st_dev, status.st_ino):
        tail.size, tail.is_measured = stored.end, stored.stored_bytes > 0
        return True  # nothing was written since: it need not be opened
    try:
        return tail.holds_what_was_read(tail.open(file.place))
    except OSError:
        tail.size, tail.signature = max(tail.size, stored.end + 1), None
        return True  # unknown: reading it will raise the reason, and it is looked at again
    finally:
        tail.close()


def taken_up(path: Path, former: Position, place: str, fallback: str | None) -> FileTail | None:
    """Return what reads a file on that had its name at `place` when an earlier run ended.

    None where it is another one by now. Raises OSError.
    """
    tail = FileTail(source_of(place), former, fallback)
    tail.size = tail.live_from = path.stat().st_size
    tail.was_replaced = True
    try:
        if tail.holds_what_was_read(tail.open(str(path))):
            return tail
    except OSError:
        tail.close()
        raise
    tail.close()
    return None
