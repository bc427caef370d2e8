"""The content of a session that is kept in JSON documents: one line after the other.

A runtime writes such documents again, whole, each time that something changes, and keeps in files
of their own what belongs together: the model's answers and what they cost, or a compaction and the
messages before it. How lines are made of them is the runtime's adapter's to say (`Joined`). They
are made again whenever one of the files has changed, and are in memory as a whole.
"""

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import Final

from contextgauge.normalise.adapter import Adapter, Joined
from contextgauge.normalise.fields import text
from contextgauge.normalise.runtimes import has_sign_of
from contextgauge.normalise.signals import Body
from schemas.messages import DeadLetter
from schemas.records import Json
from streams import codec
from streams.edge.files.content import HELD_LINE_BYTES, Content, UnreadableDocumentError
from streams.edge.files.housekeeping import below, joined_at, parts_of

_Seen = tuple[str, int, int, int]
"""A file's path, time of its last change, size and inode: while they stay, its content does."""

_HALF: Final = ("not_json", "not_utf8")
"""What a document looks like of which only a part is there."""

_PASSED_MOST: Final = 65_536
_passed: dict[_Seen, None] = {}
"""Files that lines need nothing of: most of a session's are, and each look would read them all."""


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
        joined, parts = self._joined, parts_of(self._path, self._joined)
        if joined.below is not None:
            parts.append(below(chain(*parts), joined.below))
        main_seen, *others_seen = seen = tuple(map(_seen, (self._path, *chain(*parts))))
        if seen != self._seen:
            main, rest = self._main(main_seen), iter(others_seen)
            state = _Kept(joined.is_kept, os.path.basename(self._path))  # noqa: PTH119 -- done for each look
            others = [list(state.of(islice(rest, len(part)))) for part in parts]
            if joined.above is not None:
                others.append(list(self._above(main, joined.above)))
            bodies = joined.lines(main, others)
            self._lines = b"".join(codec.dumps(body) + b"\n" for body in bodies)
            self._seen = seen
        return len(self._lines)

    def _above(self, document: Body, field: str) -> Iterator[Body]:
        """Yield the documents that the session belongs to, the nearest first. Raises OSError."""
        folder = Path(self._path).parent
        known: set[Json] = {None}
        while (named := document.get(field)) not in known and isinstance(named, str):
            known.add(named)
            path = folder / f"{named}{self._joined.suffix}"
            if path.parent != folder or not path.is_file():
                return
            document = _document(_seen(str(path)))
            yield document

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


class _Kept:
    """The objects of files that a session's lines need, up to what is held in memory together."""

    def __init__(self, is_kept: Callable[[Body], bool], session: str) -> None:
        self._is_kept, self._session = is_kept, session
        self._bytes = 0

    def of(self, files: Iterable[_Seen]) -> Iterator[Body]:
        """Yield what is kept. Raises OSError; UnreadableDocumentError where it is too much."""
        for seen in files:
            if seen in _passed:
                continue
            body = _document(seen)
            if not self._is_kept(body):
                if len(_passed) >= _PASSED_MOST:
                    _passed.clear()
                _passed[seen] = None
                continue
            self._bytes += seen[2]
            if self._bytes > HELD_LINE_BYTES:
                raise UnreadableDocumentError(
                    f"the files of {self._session} have more than {HELD_LINE_BYTES:,} bytes: a "
                    "session is read whole, up to so many",
                    may_be_written=False,
                )
            yield body


def open_joined(path: str) -> JoinedContent | None:
    """Open a session's document; None for a file that is none. Raises OSError."""
    for adapter, joined in joined_at(path):
        seen, *_ = map(_seen, (path, *chain(*parts_of(path, joined))))
        document = _document(seen)
        if has_sign_of(adapter, document):
            return JoinedContent(path, adapter, joined, (seen, document))
    return None


def title_in(path: str) -> str | None:
    """Return what a runtime calls the session of a document; None where it says nothing."""
    for adapter, joined in joined_at(path):
        if joined.title is not None:
            with suppress(OSError):
                document = _document(_seen(path))
                return text(document, joined.title) if has_sign_of(adapter, document) else None
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
