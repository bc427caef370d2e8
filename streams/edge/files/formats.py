"""Files that this version does not read: of runtimes that it only recognises, or of no known one.

A command asks `refusal_of` for each file before it begins: reading one would give nothing.
"""

import errno
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import chain, islice
from typing import Final

from contextgauge.containers import Scout
from contextgauge.normalise import named_session, runtimes
from contextgauge.normalise.adapter import Adapter
from contextgauge.normalise.signals import Body
from contextgauge.normalise.spellings import is_transcript
from schemas.messages import DeadLetter
from schemas.topics import MIB
from streams import codec
from streams.edge.files.content import DamagedError
from streams.edge.files.documents import HEAD_BYTES, document_of, objects_in
from streams.edge.files.names import name_of
from streams.edge.files.opening import open_content

FIRST_LINES: Final = 8
"""Among these is one by which a file of another runtime is known."""

_SHOWN_FIELDS: Final = 6
_SHOWN_CHARACTERS: Final = 40

READ: Final = "contextgauge reads sessions of {}, and streams with the providers' usage".format(
    ", ".join(sorted(each.label for each in runtimes.RUNTIMES if each.is_read))
)

_UNKNOWN_LABEL: Final = "of no known runtime"


class UnsupportedFormatError(OSError):
    """A file of a runtime that this version does not read; `format` is its adapter."""

    def __init__(self, adapter: Adapter) -> None:
        reason = f"this is {adapter.session_label}, which contextgauge does not read yet"
        super().__init__(errno.ENOTSUP, adapter.instead or reason)
        self.format = adapter


class UnknownFormatError(OSError):
    """A file of no known runtime; `shape` is what it looks like."""

    def __init__(self, shape: str) -> None:
        super().__init__(
            errno.ENOTSUP, f"the runtime that wrote this is not known: {shape}. {READ}"
        )


def refusal_of(path: str) -> UnsupportedFormatError | UnknownFormatError | None:
    """Return why a file is not read; None for one that is, and for one that cannot be opened.

    The beginning shows it, which is looked at for thousands. A file that is called as a runtime's,
    or has the header of one, is that runtime's, though its first lines may say nothing.
    """
    head = _head_of(path)
    document = document_of(head)
    values = head.split(b"\n") if document is None else objects_in(head).values
    if (other := unsupported_in(values)) is not None:
        return UnsupportedFormatError(other)
    has_header = document is not None and document.header is not None  # only a known one is one
    if has_header or name_of(path).session is not None:
        return None
    if document is None and shape_of(values) is None and b"\n" in head:
        return None
    whole = _head_of(path, MIB) if len(head) == HEAD_BYTES else head
    values = whole.split(b"\n") if document is None else objects_in(whole[document.begin :]).values
    shape = shape_of(values if len(whole) < MIB or document is not None else values[:-1])
    return None if shape is None else UnknownFormatError(shape)


def label_of(refusal: UnsupportedFormatError | UnknownFormatError) -> str:
    """Return by what files that are not read are counted."""
    return refusal.format.label if isinstance(refusal, UnsupportedFormatError) else _UNKNOWN_LABEL


def is_document(path: str) -> bool:
    """Return whether a file is a JSON document of messages; see `refusal_of`. Raises OSError."""
    with closing(open_content(path)) as content:
        head = content.read(HEAD_BYTES, 0)
    document = document_of(head)
    if document is None:
        return False
    header = () if document.header is None else (document.header,)
    values = chain(header, objects_in(head[document.begin :]).values)
    return any(map(runtimes.is_known, _bodies(values)))


def _head_of(path: str, size: int = HEAD_BYTES) -> bytes:
    try:
        with closing(open_content(path)) as content:
            return content.read(size, 0)
    except OSError:
        return b""


def _bodies(values: Iterable[bytes], most: int | None = FIRST_LINES) -> Iterator[Body]:
    bodies = (codec.decode(value, limit=MIB) for value in islice(values, most))
    return (body for body in bodies if not isinstance(body, DeadLetter))


def unsupported_in(values: Iterable[bytes]) -> Adapter | None:
    """Return the runtime of a file that begins with these lines and is not read, if it is one's."""
    scout = Scout()
    for body in _bodies(values):
        if (other := runtimes.unsupported(body)) is not None:
            return other
        scout.look(body)
        if scout.is_known:
            break
    return None


def _is_read(body: Body) -> bool:
    """Return whether a line is of a form that is read.

    A type alone that others borrowed from Claude Code is none: a message or a session goes with it.
    """
    if runtimes.is_known(body) or is_transcript(body) or named_session(body) is not None:
        return True
    if runtimes.line_of(body) is runtimes.UNKNOWN:
        return False
    return "message" in body or body.get("type") not in runtimes.BORROWED_TYPES


def shape_of(values: Iterable[bytes]) -> str | None:
    """Return what the first JSON object looks like; None where one is read, or there are none.

    Lines that are no JSON at all are reported one by one when they are read.
    """
    first: Body | None = None
    for body in filter(None, _bodies(values, None)):
        if _is_read(body):
            return None
        first = first or body
    if first is None:
        return None
    names = [name[:_SHOWN_CHARACTERS] for name in islice(first, _SHOWN_FIELDS)]
    more = f" and {len(first) - len(names)} more" if len(first) > len(names) else ""
    kind = first.get("type")
    type_ = f" (type {kind[:_SHOWN_CHARACTERS]})" if isinstance(kind, str) and kind else ""
    return f"its first JSON object has the fields {', '.join(names)}{more}{type_}"


def reason_of(error: OSError) -> str:
    """Return why a file is not read, or only a part of it."""
    is_whole = isinstance(error, UnsupportedFormatError | UnknownFormatError | DamagedError)
    return str(error.strerror) if is_whole else f"cannot be read: {error.strerror}"


def counted(unsupported: Counter[str]) -> str:
    """Return how many files of which runtimes are not read: 3 pi, 1 Kimi CLI."""
    labels = ", ".join(f"{files:,} {label}" for label, files in unsupported.most_common())
    return f"{labels}: files that contextgauge does not read"
