"""Writes lines into a folder of files, laid out as transcripts are."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from contextgauge.errors import ConfigError

_BUFFERED_BYTES = 16 * 1024 * 1024
"""Lines are kept until so many bytes are together: a file is opened seldom, however many."""


def write_folder(folder: Path, lines: Iterable[tuple[str, bytes]]) -> int:
    """Write lines, each with its file's path below the folder; return how many.

    Raises ConfigError where the folder cannot be written, or is not empty: what is in it would
    be mixed with what is new.
    """
    waiting: dict[str, list[bytes]] = defaultdict(list)
    size = count = 0
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise ConfigError(f"{folder} is not empty: name a new folder")
        for file, line in lines:
            waiting[file].append(line)
            size += len(line)
            count += 1
            if size >= _BUFFERED_BYTES:
                _write(folder, waiting)
                size = 0
        _write(folder, waiting)
    except OSError as error:
        raise ConfigError(f"{folder}: {error.strerror or error}") from error
    return count


def _write(folder: Path, waiting: dict[str, list[bytes]]) -> None:
    for file, lines in waiting.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as target:
            target.write(b"\n".join(lines) + b"\n")
    waiting.clear()
