"""Looks for transcripts on this machine that cannot be read, for the doctor."""

import asyncio
import errno
import os
import time
from collections.abc import Sequence
from contextlib import closing
from typing import Final

from streams.edge.files.formats import reason_of
from streams.edge.files.housekeeping import DOCUMENT, SUFFIX
from streams.edge.files.names import is_runtimes_own
from streams.edge.files.opening import open_content
from streams.edge.files.watch import TranscriptFinder
from streams.ports.inspection import TranscriptFacts

_READING_S: Final = 4.0
"""A document is read whole, as a compressed file is: of those that changed last."""


class TranscriptProbe:
    """Looks into the transcripts below folders, which may not be there."""

    def __init__(self, folders: Sequence[str]) -> None:
        self._folders = folders

    async def look(self) -> TranscriptFacts:
        """Return which files cannot be read, as far as that shows within some seconds."""
        return await asyncio.to_thread(self._look)

    def _look(self) -> TranscriptFacts:
        end_s = time.monotonic() + _READING_S
        unseen: dict[str, OSError] = {}
        files = TranscriptFinder((), self._folders).look(0.0, unseen.__setitem__)
        unreadable = {path: reason_of(error) for path, error in unseen.items()}
        looked = 0
        for file in sorted(files, key=lambda each: -each.stat.st_mtime_ns):
            if time.monotonic() >= end_s:
                break
            looked += 1
            try:
                _look_into(file.place)
            except OSError as error:
                unreadable[file.place] = reason_of(error)
        return TranscriptFacts(len(files), looked, unreadable)


def _look_into(path: str) -> None:
    """Raise OSError for a file that cannot be read, or only in part."""
    if not os.access(path, os.R_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    if path.endswith(SUFFIX) or (path.endswith(DOCUMENT) and not is_runtimes_own(path)):
        return  # its lines are reported one by one
    with closing(open_content(path)) as content:
        if path.endswith(DOCUMENT) or not content.can_grow:
            content.size()
        if content.damage is not None:
            raise content.damage
