"""Which lines of a file stand in its origin's file too, where that is on this machine (R30).

A line's sizes and compactions are compared, by what `CopiedLines` declares of a runtime. Without
the origin's file the derivation decides by what the lines themselves show.
"""

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

from contextgauge.normalise.runtimes import ADAPTERS
from schemas.messages import DeadLetter
from streams import codec
from streams.edge.files.housekeeping import archive_of, known_path
from streams.edge.files.opening import lines_in

_COPIED: Final = tuple(each.copied for each in ADAPTERS if each.copied is not None)


class CopiedHistory:
    """Tells of a file's lines, in order, whether they are copies; see the module."""

    def __init__(self, keys: frozenset[bytes]) -> None:
        self._keys = keys
        self.is_over = False
        """Whether the first line was seen that the origin does not have."""

    def look(self, value: bytes) -> bool | None:
        """Return whether a line is a copy; None where the line does not show it."""
        key = None if self.is_over else _key(value)
        if key is None:
            return None
        self.is_over = key not in self._keys
        return not self.is_over


def copied_history(path: str, origin: str) -> CopiedHistory | None:
    """Return what is known of a file's origin; None where it is not on this machine."""
    for candidate in _candidates(Path(path), origin):
        try:
            status = candidate.stat()
            return CopiedHistory(_keys_of(str(candidate), status.st_size, status.st_mtime_ns))
        except OSError:
            continue
    return None


@lru_cache(maxsize=8)
def _keys_of(path: str, _size: int, _modified_ns: int) -> frozenset[bytes]:
    """Return what is compared of an origin: read once, however many files began with it."""
    return frozenset(key for key in map(_key, lines_in(path)) if key is not None)


def _key(value: bytes) -> bytes | None:
    for copied in _COPIED:
        if any(sign in value for sign in copied.signs):
            body = codec.decode(value)
            return None if isinstance(body, DeadLetter) else copied.key(body)
    return None


def _candidates(path: Path, origin: str) -> Iterator[Path]:
    """Yield the files that may be a thread's: near another one, or where its id says."""
    known = Path(known_path(str(path)))
    archive = archive_of(str(known.parent))
    folders = [path.parent, *([] if archive is None else [Path(archive)])]
    for below in (Path(each) for copied in _COPIED for each in copied.folders(origin)):
        folders += [Path(known.anchor, *known.parts[: -len(below.parts) - 1], below)]
    for folder in folders:
        try:
            files = sorted(folder.iterdir())
        except OSError:
            continue
        # A plain file sorts before its compressed form.
        yield from (file for file in files if origin in file.name and file != path)
