"""The folder of one project's memory, where no path leads out of it.

    <folder>/<project>/memories/    what the tool shows as /memories
    <folder>/<project>/incoming/    files being written, moved in place when complete

Each name of a path is opened relative to the descriptor of its folder, without following links
(`O_NOFOLLOW`). Nothing is checked first and used later, so a folder that is swapped for a link in
between is refused, too. Files are replaced as a whole: a reader sees the old or the new content.
Changes hold a lock on the project's folder: another process, or thread, waits for its turn.
"""

import errno
import hashlib
import os
import re
import secrets
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from contextgauge.compaction.memory.paths import MAX_DEPTH, MemoryToolError
from contextgauge.errors import ConfigError

if sys.platform != "win32":
    import fcntl

_FOLDER: Final = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | os.O_RDONLY
_FILE: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | os.O_RDONLY
"""Not blocking: to open a named pipe would wait for its writer."""

_LOCK_PAUSE_S: Final = 0.01
_LOCK_DEADLINE_S: Final = 10.0
"""A change takes milliseconds: a process that holds the lock for longer hangs."""


@dataclass(frozen=True, slots=True)
class MemoryLimits:
    """How much a project's memory may hold, and how much of a file one `view` shows.

    The default of `file_bytes` is what Anthropic's hosted memory takes. `entries` counts files and
    folders. A longer file is read in parts, by `view_range`.
    """

    file_bytes: int = 102_400
    total_bytes: int = 10 * 1_024 * 1_024
    entries: int = 1_000
    view_characters: int = 40_000


class MemoryEntry(NamedTuple):
    """A file or folder: its names from the folder that was walked, and the size of its content."""

    names: tuple[str, ...]
    size_bytes: int
    is_folder: bool


def project_folder(project: str) -> str:
    """Return the name of a project's folder: readable, and another for each project."""
    if not project.strip():
        raise ConfigError("a memory tool needs the name of its project")
    readable = re.sub(r"[^A-Za-z0-9_-]+", "_", project).strip("_")[:60] or "project"
    digest = hashlib.sha256(project.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{readable}-{digest}"


class MemoryFolder:
    """The files of one project; names are those that `paths.names_of` returned.

    All methods raise OSError, FileNotFoundError for what is not there or is not a file or folder.
    """

    def __init__(self, folder: Path, project: str) -> None:
        if os.open not in os.supports_dir_fd:  # pragma: no cover -- Windows
            raise ConfigError(
                "the memory tool needs a POSIX system: it opens files relative to their folder"
            )
        self._folder = folder
        self._project = project_folder(project)

    @contextmanager
    def opened(self) -> Iterator["OpenMemory"]:
        """Open the memory for reading; it is made where there is none."""
        with self._opened(locked=False) as memory:
            yield memory

    @contextmanager
    def locked(self) -> Iterator["OpenMemory"]:
        """Open the memory for a change, alone. Raises MemoryToolError when that takes too long."""
        with self._opened(locked=True) as memory:
            yield memory

    @contextmanager
    def _opened(self, *, locked: bool) -> Iterator["OpenMemory"]:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        # The folder is the caller's own choice: links on the way to it are followed.
        base = os.open(self._folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
        with _closing(base), _closing(_made(base, self._project)) as project:
            if locked:
                _lock(project)
            with (
                _closing(_made(project, "memories")) as root,
                _closing(_made(project, "incoming")) as incoming,
            ):
                yield OpenMemory(root, incoming)


class OpenMemory:
    """The memory while it is open, by the descriptors of its root and of `incoming`."""

    def __init__(self, root: int, incoming: int) -> None:
        self._root = root
        self._incoming = incoming

    def is_folder(self, names: tuple[str, ...]) -> bool:
        """Return whether it is a folder, False for a file. Raises FileNotFoundError for a link."""
        if not names:
            return True
        with self._parent(names) as parent:
            mode = os.stat(names[-1], dir_fd=parent, follow_symlinks=False).st_mode
        if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
            raise _missing()
        return stat.S_ISDIR(mode)

    def exists(self, names: tuple[str, ...]) -> bool:
        """Return whether the name is taken, by whatever it may be."""
        if not names:
            return True
        try:
            with self._parent(names) as parent:
                os.stat(names[-1], dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def read(self, names: tuple[str, ...], limit: int) -> bytes:
        """Return a file's content, at most `limit` bytes and one more."""
        with self._parent(names) as parent:
            descriptor = _open(parent, names[-1], _FILE)
        with open(descriptor, "rb") as source:
            if not stat.S_ISREG(os.fstat(source.fileno()).st_mode):
                raise _missing()
            return source.read(limit + 1)

    def write(self, names: tuple[str, ...], content: bytes) -> None:
        """Replace a file, or make it, with the folders on its way."""
        own = f"{os.getpid()}-{secrets.token_hex(8)}"
        new = os.O_WRONLY | os.O_CREAT | os.O_EXCL  # which follows no link either
        try:
            descriptor = os.open(own, new, 0o600, dir_fd=self._incoming)
            with open(descriptor, "wb") as target:
                target.write(content)
                target.flush()
                os.fsync(descriptor)
            with self._parent(names, make=True) as parent:
                os.replace(own, names[-1], src_dir_fd=self._incoming, dst_dir_fd=parent)
        except OSError:
            with suppress(FileNotFoundError):
                os.unlink(own, dir_fd=self._incoming)
            raise

    def delete(self, names: tuple[str, ...]) -> None:
        """Delete a file, or a folder with all that is in it; of links in it only the links."""
        folder = self.is_folder(names)
        with self._parent(names) as parent:
            if folder:
                shutil.rmtree(names[-1], dir_fd=parent)
            else:
                os.unlink(names[-1], dir_fd=parent)

    def rename(self, old: tuple[str, ...], new: tuple[str, ...]) -> None:
        """Move a file or folder to a name that is not taken."""
        self.is_folder(old)
        with self._parent(old) as source, self._parent(new, make=True) as target:
            os.rename(old[-1], new[-1], src_dir_fd=source, dst_dir_fd=target)

    def walk(self, names: tuple[str, ...] = ()) -> list[MemoryEntry]:
        """Return what is in a folder, each folder before its content; links are left out."""
        with self._at(names) as folder:
            entries, _ = _walk(folder, ())
        return entries

    @contextmanager
    def _parent(self, names: tuple[str, ...], *, make: bool = False) -> Iterator[int]:
        with self._at(names[:-1], make=make) as folder:
            yield folder

    @contextmanager
    def _at(self, names: tuple[str, ...], *, make: bool = False) -> Iterator[int]:
        """Open the folder of these names, each in the one before it."""
        folder = os.dup(self._root)
        try:
            for name in names:
                inner = _made(folder, name) if make else _open(folder, name)
                os.close(folder)
                folder = inner
            yield folder
        finally:
            os.close(folder)


def _walk(folder: int, above: tuple[str, ...]) -> tuple[list[MemoryEntry], int]:
    """Return the entries below a folder, and the size of all files in it."""
    entries: list[MemoryEntry] = []
    total = 0
    with os.scandir(folder) as listed:
        names = sorted(each.name for each in listed)
    for name in names:
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            here = (*above, name)
            if stat.S_ISREG(status.st_mode):
                entries.append(MemoryEntry(here, status.st_size, is_folder=False))
                total += status.st_size
            elif stat.S_ISDIR(status.st_mode) and len(here) <= MAX_DEPTH:
                with _closing(_open(folder, name)) as inner:
                    below, size = _walk(inner, here)
                entries += [MemoryEntry(here, size, is_folder=True), *below]
                total += size
        except FileNotFoundError:
            continue  # deleted meanwhile
    return entries, total


def _open(parent: int, name: str, flags: int = _FOLDER) -> int:
    try:
        return os.open(name, flags, dir_fd=parent)
    except OSError as error:
        # A link, or a file where a folder should be: as if there were nothing.
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise _missing() from error
        raise


def _made(parent: int, name: str) -> int:
    """Open a folder, making it where there is none. Raises FileExistsError for what is none."""
    with suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=parent)
    try:
        return _open(parent, name)
    except FileNotFoundError as error:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from error


def _lock(descriptor: int) -> None:
    deadline = time.monotonic() + _LOCK_DEADLINE_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise MemoryToolError("Error: The memory is in use elsewhere: try again") from None
            time.sleep(_LOCK_PAUSE_S)
        else:
            return


def _missing() -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))


@contextmanager
def _closing(descriptor: int) -> Iterator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)
