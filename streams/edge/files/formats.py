"""Files of runtimes that this version does not read: by what they are recognised."""

import errno
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import chain, islice

from contextgauge.containers import Scout
from contextgauge.normalise import runtimes
from contextgauge.normalise.adapter import Adapter
from contextgauge.normalise.signals import Body
from schemas.messages import DeadLetter
from streams import codec
from streams.edge.files.content import DamagedError
from streams.edge.files.documents import HEAD_BYTES, document_of, objects_in
from streams.edge.files.opening import open_content

FIRST_LINES = 8
"""Among these is one by which a file of another runtime is known."""


class UnsupportedFormatError(OSError):
    """A file of a runtime that this version does not read; `format` is its adapter."""

    def __init__(self, adapter: Adapter) -> None:
        super().__init__(
            errno.ENOTSUP, f"this is {adapter.session_label}, which contextgauge does not read yet"
        )
        self.format = adapter


def unsupported_format(path: str) -> Adapter | None:
    """Return the runtime of a file that this version does not read; None of any other.

    A look at its beginning shows it, which is done for thousands. One that cannot be read has none:
    reading it will raise why.
    """
    head = _head_of(path)
    return unsupported_in(objects_in(head).values if document_of(head) else head.split(b"\n"))


def is_document(path: str) -> bool:
    """Return whether a file is a JSON document of messages; see `unsupported_format`."""
    head = _head_of(path)
    document = document_of(head)
    if document is None:
        return False
    header = () if document.header is None else (document.header,)
    values = chain(header, objects_in(head[document.begin :]).values)
    return any(map(runtimes.is_known, _bodies(values)))


def _head_of(path: str) -> bytes:
    try:
        with closing(open_content(path)) as content:
            return content.read(HEAD_BYTES, 0)
    except OSError:
        return b""


def _bodies(values: Iterable[bytes]) -> Iterator[Body]:
    bodies = (codec.decode(value, limit=HEAD_BYTES) for value in islice(values, FIRST_LINES))
    return (body for body in bodies if not isinstance(body, DeadLetter))


def unsupported_in(values: Iterable[bytes]) -> Adapter | None:
    """Return the format of a file that begins with these lines; see `unsupported_format`."""
    scout = Scout()
    for body in _bodies(values):
        if (other := runtimes.unsupported(body)) is not None:
            return other
        scout.look(body)
        if scout.is_known:
            break
    return None


def reason_of(error: OSError) -> str:
    """Return why a file is not read, or only a part of it."""
    is_whole = isinstance(error, UnsupportedFormatError | DamagedError)
    return str(error.strerror) if is_whole else f"cannot be read: {error.strerror}"


def counted(unsupported: Counter[str]) -> str:
    """Return how many files of which runtimes are not read: 3 pi, 1 Kimi CLI."""
    labels = ", ".join(f"{files:,} {label}" for label, files in unsupported.most_common())
    return f"{labels}: sessions of runtimes that contextgauge does not read yet"
