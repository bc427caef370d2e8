"""A new file that is there as a whole, or not at all."""

import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL


def write_new(path: Path, lines: Iterable[bytes], mode: int) -> None:
    """Write lines to a new file. Raises FileExistsError for one that is there, and OSError.

    Then nothing of it is left. It gets its name once all is written; where the file system has no
    links, that is the name with which it is written.
    """
    draft = path.parent / f".contextgauge.{secrets.token_hex(8)}"
    try:
        _write(draft, lines := list(lines), mode)
        try:
            os.link(draft, path)  # unlike a renaming, this overwrites nothing
        except FileExistsError:
            raise
        except OSError:
            _write(path, lines, mode)
    finally:
        draft.unlink(missing_ok=True)


def _write(path: Path, lines: Iterable[bytes], mode: int) -> None:
    descriptor = os.open(path, _NEW, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.writelines(each + b"\n" for each in lines)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        path.unlink(missing_ok=True)
        raise
