"""Why a file cannot be read, for as long as it is followed: what is reported, and when again.

What may pass by itself is reported once it has lasted: a document that its runtime writes just now,
a file that another takes the place of. A document that cannot be read as it is is not read again
before it is another one: reading it takes all of it.
"""

import errno
import os
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from streams.edge.files.content import UnreadableDocumentError
from streams.edge.files.formats import reason_of

SETTLED_S: Final = 10.0
"""What has not changed for so long is not being written any more."""

READ_AGAIN: Final = "it can be read again"
"""Withdraws what was reported."""

_REPLACED: Final = (errno.ENOENT, errno.ESTALE)
"""Errors of a file that went away or was replaced between two looks: the next one shows that."""

Signature: TypeAlias = tuple[int, ...]
"""Time, size and inode of a file: while they stay, it is the same."""


def signature_of(status: os.stat_result) -> Signature:
    """Return the signature of a file by its metadata."""
    return status.st_mtime_ns, status.st_size, status.st_ino


class ReadingFailure:
    """What one file's readings failed with since one succeeded."""

    def __init__(self) -> None:
        self.reported: str | None = None
        """What was reported last."""
        self.refused: Signature | None = None
        """The document that is not read again."""
        self._error: OSError | None = None
        self._since_s = 0.0

    def take(
        self, error: OSError, signature: Signature | None, changed_s: float, now_s: float
    ) -> None:
        """Take note of an error, of a file that is so since `changed_s`."""
        is_document = isinstance(error, UnreadableDocumentError)
        if is_document:
            self._since_s = changed_s
        elif self._error is None:
            self._since_s = now_s
        self._error = error
        self.refused = signature if is_document else None

    def news(self, now_s: float, settled_s: float = SETTLED_S) -> str | None:
        """Return why the file cannot be read, where that is known by now and was not reported."""
        if self._error is None or (_may_pass(self._error) and now_s - self._since_s < settled_s):
            return None
        reason = reason_of(self._error)
        if reason == self.reported:
            return None
        self.reported = reason
        return reason

    def end(self) -> str | None:
        """Take note that the file can be read; return what withdraws a report, if there was one."""
        was_reported = self.reported is not None
        self.reported = self.refused = self._error = None
        return READ_AGAIN if was_reported else None


def _may_pass(error: OSError) -> bool:
    if isinstance(error, UnreadableDocumentError):
        return error.may_be_written
    return error.errno in _REPLACED


class UnseenFiles:
    """Files and folders that could not be looked at the last time, so that each is reported once.

    `to` gets those with the same reason in one line.
    """

    def __init__(self, to: Callable[[str], None]) -> None:
        self._to = to
        self._reasons: dict[str, str] = {}

    def report(self, unseen: Mapping[str, OSError]) -> None:
        """Report what is new of what cannot be looked at by now."""
        reasons = {path: str(error.strerror) for path, error in unseen.items()}
        new: dict[str, list[str]] = {}
        for path, reason in reasons.items():
            if self._reasons.get(path) != reason:
                new.setdefault(reason, []).append(path)
        self._reasons = reasons
        for reason, (path, *others) in new.items():
            more = f" and {len(others)} more" if others else ""
            self._to(f"{path}{more}: cannot be read: {reason}")
