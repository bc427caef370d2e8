"""The content of a session that is kept in JSON documents: one line after the other.

A runtime writes such documents again, whole, each time that something changes, and keeps in files
of their own what belongs together: the model's answers and what they cost, or a compaction and the
messages before it. How lines are made of them is the runtime's adapter's to say (`Joined`). They
are made again whenever one of the files has changed, and are in memory as a whole.
"""

import errno
import os
import re
from itertools import chain, islice
from typing import Final

from contextgauge.normalise.adapter import Adapter, Joined
from contextgauge.normalise.runtimes import JOINED, has_sign_of
from contextgauge.normalise.signals import Body
from schemas.messages import DeadLetter
from streams import codec
from streams.edge.files.content import HELD_LINE_BYTES, Content, UnreadableDocumentError
from streams.edge.files.housekeeping import parts_of

_Seen = tuple[str, int, int, int]
"""A file's path, time of its last change, size and inode: while they stay, its content does."""

_HALF: Final = ("not_json", "not_utf8")
"""What a document looks like of which only a part is there."""

_SUFFIXES: Final = tuple(joined.suffix for _, joined in JOINED)
_PATHS: Final = tuple(
    ([re.compile(rf"(?:.*/)?{each}", re.DOTALL) for each in adapter.files], adapter, joined)
    for adapter, joined in JOINED
)


class JoinedContent(Content):
    """The lines of a session's documents, as they are just now."""

    is_measured = True
    is_made_again = True

    def __init__(
        self, path: str, adapter: Adapter, joined: Joined, opened: tuple[_Seen, Body]
    ) -> None:
        super().__init__(-1)
        self._path, self._adapter, self._joined = path, adapter, joined
        self._opened: tuple[_Seen, Body] | None = opened
        """The document by which the runtime was known: it is large, and not read twice."""
        self._seen: tuple[_Seen, ...] | None = None
        self._lines = b""

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode of the session's own document. Raises OSError."""
        status = os.stat(self._path)  # noqa: PTH116 -- done for each look
        return status.st_dev, status.st_ino

    def size(self) -> int:
        """Return how many bytes its lines have by now. Raises OSError."""
        parts = parts_of(self._path)
        main_seen, *others_seen = seen = tuple(map(_seen, (self._path, *chain(*parts))))
        if seen != self._seen:
            main, rest = self._main(main_seen), iter(others_seen)
            others = [[_document(each) for each in islice(rest, len(part))] for part in parts]
            bodies = self._joined.lines(main, others)
            self._lines = b"".join(codec.dumps(body) + b"\n" for body in bodies)
            self._seen = seen
        return len(self._lines)

    def _main(self, seen: _Seen) -> Body:
        """Return the session's own document. Raises OSError where it is one of another runtime."""
        opened, self._opened = self._opened, None
        if opened is not None and opened[0] == seen:
            return opened[1]
        main = _document(seen)
        if not has_sign_of(self._adapter, main):
            raise OSError(errno.ESTALE, "another file has the name now")
        return main

    def read(self, size: int, at: int) -> bytes:
        """Return bytes from a place on, fewer only at the end. Raises OSError."""
        if self._seen is None:
            self.size()
        return self._lines[at : at + size]

    def close(self) -> None:
        """Let go of what was read."""
        self._lines, self._seen, self._opened = b"", None, None


def open_joined(path: str) -> JoinedContent | None:
    """Open a session's document; None for a file that is none. Raises OSError."""
    shown = path.replace(os.sep, "/")
    if not shown.endswith(_SUFFIXES):
        return None
    for patterns, adapter, joined in _PATHS:
        is_named = shown.endswith(joined.suffix) and any(each.fullmatch(shown) for each in patterns)
        if not is_named:
            continue
        seen, *_ = map(_seen, (path, *chain(*parts_of(path))))
        document = _document(seen)
        if has_sign_of(adapter, document):
            return JoinedContent(path, adapter, joined, (seen, document))
    return None


def _seen(path: str) -> _Seen:
    status = os.stat(path)  # noqa: PTH116 -- done for each look
    return path, status.st_mtime_ns, status.st_size, status.st_ino


def _document(seen: _Seen) -> Body:
    """Return the object that a file holds. Raises OSError; UnreadableDocumentError for no object.

    It is read as a whole, so one that is larger than what is held in memory is not read at all.
    """
    path, _, size, _ = seen
    name = os.path.basename(path)  # noqa: PTH119 -- as below
    if size > HELD_LINE_BYTES:
        raise UnreadableDocumentError(
            f"{name} has {size:,} bytes: a document is read whole, up to {HELD_LINE_BYTES:,} bytes",
            may_be_written=False,
        )
    with open(path, "rb") as file:  # noqa: PTH123 -- done for each look
        value = file.read(HELD_LINE_BYTES)
    body = codec.decode(value, limit=HELD_LINE_BYTES)
    if isinstance(body, DeadLetter):
        raise UnreadableDocumentError(
            f"{name} holds no whole JSON object: {body.detail}. It is read once its runtime "
            "writes it again",
            may_be_written=body.reason in _HALF,
        )
    return body
