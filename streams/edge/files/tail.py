"""One growing file: its lines from where the last reading ended, and what happened to it since.

A line is given once it has its end. What was read and what was acknowledged are apart: reading
goes on, and only what was acknowledged is ever remembered.
"""

import errno
from collections.abc import Iterator, Sequence
from functools import partial

from contextgauge.containers import NAMES, SIGNS, Container, Line, Scout
from contextgauge.normalise import runtimes
from schemas.messages import DeadLetter
from schemas.records import Json
from schemas.topics import MIB
from streams import codec
from streams.edge.files.content import (
    HELD_LINE_BYTES,
    Content,
    DamagedError,
    UnreadableDocumentError,
)
from streams.edge.files.documents import (
    HEAD_BYTES,
    Document,
    document_of,
    first_objects,
    torn,
)
from streams.edge.files.failures import ReadingFailure, Signature
from streams.edge.files.formats import FIRST_LINES, UnsupportedFormatError
from streams.edge.files.lines import SentLines, is_signed, line_of, values_of
from streams.edge.files.opening import open_content
from streams.edge.files.origins import CopiedHistory, copied_history
from streams.edge.files.positions import Position, print_at
from streams.edge.files.torn import whole_objects
from streams.edge.files.watch import InputSource, source_of
from streams.ports import LineBatch

LOOK_AHEAD_LINES = 1_000
LOOK_AHEAD_BYTES = 16 * MIB
"""What a pipe's reader may wait for at most; a transcript names its session in its first lines."""
_BLOCK_BYTES = MIB
_UNDECIDED_S = 2.0
"""How long a new file may leave open what it is: runtimes write their first lines at once. Then it
counts as a stream until a line shows otherwise."""


class FileTail:
    """One file, by inode: it may be renamed, and outlive its name while it is open."""

    def __init__(self, source: InputSource, position: Position, fallback: str | None) -> None:
        self.source = source
        self.acknowledged = position
        self.read = position
        self.size = 0
        """Its size when it was last looked at: reading stops there."""
        self.live_from = 0
        """Bytes from here on were seen when they were written."""
        self.looked_s = 0.0
        self.changed_s = 0.0
        self.signature: Signature | None = None
        """That of what was last looked at: the same again is no change."""
        self.waits = False
        """Whether all whole lines were read, and the last one has no end yet."""
        self.was_replaced = False
        """Whether another file has its name."""
        self.is_measured = position.stored_bytes > 0
        """Whether what it holds has another size than the file, as far as that is known."""
        self.failure = ReadingFailure()
        self._fallback = fallback or (source.session if source.is_runtimes_own else None)
        self._file: Content | None = None
        self._is_decided = False
        self._container = Container("stream", None)
        """What the file is, once that is decided."""
        self._scout: Scout | None = None
        self._copied: CopiedHistory | None = None
        self._document: Document | None = None
        """Where the file is a JSON document: its objects are its lines."""
        self.sent = SentLines()
        """Of a document: it is written again as a whole."""
        self._is_whole = False
        """Whether that was read to its end."""
        self._first_seen_s: float | None = None
        self._searched = 0

    @property
    def is_open(self) -> bool:
        """Whether it holds a descriptor."""
        return self._file is not None

    @property
    def lag(self) -> int:
        """Bytes that were not read yet."""
        return max(0, self.size - self.read.end)

    def open(self, path: str) -> Content:
        """Open the file, if it is not open. Raises OSError, also where another has the name."""
        if self._file is None:
            file = open_content(path, self.read.end, self.read.rows)
            if file.identity != self.read.identity:
                file.close()
                raise OSError(errno.ESTALE, "another file has the name now")
            self._file = file
            self.is_measured = file.is_measured
            if file.is_measured:
                self._measure(file)
        return self._file

    def close(self) -> None:
        """Let go of the file."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def move_to(self, place: str) -> None:
        """Take note of where the file lies."""
        if place != self.source.name:
            self.source = source_of(place)

    def resize(self, file_bytes: int) -> None:
        """Take note of a file's new size. What a compressed one holds is measured once it opens.

        Raises OSError.
        """
        self.size = file_bytes
        if self._file is not None and self.is_measured:
            if self._file.can_grow:
                self._measure(self._file)
            else:
                self.close()

    def _measure(self, file: Content) -> None:
        """Take note of how much a file holds; what was there when it was seen is not live."""
        self.size = file.size()
        self.live_from = min(self.live_from, self.size) if file.can_grow else self.size

    def give_up(self, error: OSError, now_s: float) -> None:
        """Let go of a file that cannot be read, for now."""
        self.close()
        self.failure.take(error, self.signature, self.changed_s, now_s)
        if not isinstance(error, DamagedError) or isinstance(error, UnreadableDocumentError):
            self.signature = None
            self.size = min(self.size, self.read.end)

    def rewind(self) -> None:
        """Read again what was not acknowledged; it is sent long after it was written."""
        self.live_from = self.size
        self._go_to(self.acknowledged)

    def begin_again(self) -> str | None:
        """Read from the beginning: what is there is not what was there. Return why, if it is news.

        A document's runtime writes it again as a whole: what was sent of it is not sent again.
        """
        self.acknowledged = Position(self.read.path, self.read.device, self.read.inode)
        self.sent.turn(is_whole=self._is_whole)
        self.rewind()
        return None if self.sent else "rewritten: it is read from its beginning"

    def _go_to(self, position: Position) -> None:
        self.read = position
        if self._file is not None and self._file.has_rows:
            self.close()
        self._is_decided, self._scout, self._is_whole = False, None, False
        self._searched = 0
        self.waits = False

    def holds_what_was_read(self, file: Content) -> bool:
        """Return whether a file's bytes before the position are those that were read.

        Of a database rows may be gone: those that were read are not read again.
        """
        if file.has_rows:
            return True
        end = self.read.end - self.read.closing
        return end == 0 or (file.size() >= end and self._print_at(file, end) == self.read.print)

    def _print_at(self, file: Content, end: int) -> str:
        """Return what is known of what is before a place; what heads a document may change."""
        document = self._document
        if document is None and self.read.closing:
            document = document_of(file.read(HEAD_BYTES, 0))
        return print_at(file, end, 0 if document is None else document.begin)

    def pieces(self, now_s: float, *, final: bool) -> Iterator[LineBatch]:
        """Yield the lines up to `size`. `final`: the last one is given though it has no end.

        The position moves when the next is asked for, and so not while the lines are being sent.
        Before each it is looked whether the file still holds what was read: one that is cut off
        and rewritten meanwhile is left for the next look. Raises OSError; DamagedError after what
        can be read of a file whose rest cannot.
        """
        file = self.open(self.source.name)
        self._end_unfinished(file)
        while self.read.end < self.size:
            self._is_decided = self._is_decided or self._decide(file, now_s, final=final)
            if not self._is_decided:
                return
            if not self.holds_what_was_read(file):
                self.signature = None
                return
            next_lines = self._next if self._document is None else self._next_objects
            lines = next_lines(file, final=final and file.damage is None)
            if lines is None:
                self.waits = True
                break
            batch, after = lines
            yield batch
            if not batch.lines and self.acknowledged == self.read:
                batch.settle()
            self.read = after
        self._is_whole = self.read.end >= self.size
        if file.damage is not None:
            raise file.damage

    def _acknowledge(self, after: Position, sent: Sequence[Line]) -> None:
        self.acknowledged = after
        self.sent.take(sent)

    def _end_unfinished(self, file: Content) -> None:
        """Pass over a line that was sent without its end, if it has just got that."""
        before = self.read
        if self.size <= before.end:
            return
        if before.closing:
            self.read = before._replace(closing=0)
        if not before.unfinished:
            return
        if file.read(1, before.end) == b"\n":
            after = before._replace(offset=before.end + 1, number=before.number + 1, unfinished=0)
            self.read = after._replace(print=print_at(file, after.offset))
        else:
            self.read = before._replace(unfinished=0, print=print_at(file, before.offset))

    def _next(self, file: Content, *, final: bool) -> tuple[LineBatch, Position] | None:
        """Return the next lines, those of one block or a longer one, and the position after."""
        begin = self.read.offset
        file.hold(begin)
        is_live = begin >= self.live_from
        limit = self.size if is_live else min(self.live_from, self.size)
        content = file.read(min(_BLOCK_BYTES, limit - begin), begin)
        length = content.rfind(b"\n") + 1
        if length == 0 and not is_live and begin + len(content) == limit < self.size:
            # A line was being written when the file was first seen: it ends live.
            is_live, limit = True, self.size
            content = file.read(min(_BLOCK_BYTES, limit - begin), begin)
            length = content.find(b"\n") + 1
        if length:
            values = content[: length - 1].split(b"\n")
            return self._taken(file, values, begin + length, is_live=is_live)
        end = self._line_end(file)
        if end is None and not final:
            return None
        size = (self.size if end is None else end) - begin
        value = file.read(min(size, HELD_LINE_BYTES), begin)
        if end is None:
            return self._taken(file, [value], self.size, is_live=False, unfinished=size)
        return self._taken(file, [value], end + 1, is_live=is_live, size=size)

    def _next_objects(self, file: Content, *, final: bool) -> tuple[LineBatch, Position] | None:
        """Return the next objects of a document, as `_next` returns lines."""
        document, begin = self._document, self.read.offset
        is_live = begin >= self.live_from
        if document is not None and begin < document.begin:
            values = [] if document.header is None else [document.header]
            return self._taken(file, values, document.begin, is_live=is_live)
        content, (values, end, is_open) = first_objects(file, begin, self.size)
        is_all = begin + len(content) >= self.size
        if not values and is_open:
            if is_all and not final:
                return None
            # Its end was never written, or it is too long to be held.
            return self._taken(
                file,
                [torn(content[:HELD_LINE_BYTES])],
                self.size,
                is_live=is_live,
                size=len(content),
            )
        closing = len(content) - end if is_all and not is_open else 0
        return self._taken(file, values, begin + end, is_live=is_live, closing=closing)

    def _line_end(self, file: Content) -> int | None:
        """Return where the first line ends; what was searched is not searched again."""
        offset = max(self._searched, self.read.offset)
        while offset < self.size:
            content = file.read(min(_BLOCK_BYTES, self.size - offset), offset)
            place = content.find(b"\n")
            if place >= 0:
                return offset + place
            if not content:
                break
            offset += len(content)
        self._searched = offset
        return None

    def _taken(
        self,
        file: Content,
        values: list[bytes],
        end: int,
        *,
        is_live: bool,
        size: int | None = None,
        unfinished: int = 0,
        closing: int = 0,
    ) -> tuple[LineBatch, Position]:
        """Return lines, and the position after them; `size` is one's whose rest was not read."""
        position, length = self.read, size or unfinished
        lines: list[Line] = []
        for number, value in enumerate(values, position.number + 1):
            parts = whole_objects(value) if length == 0 else [value]
            lines.extend(self._line(part, number, length or len(part)) for part in parts)
        sent: Sequence[Line] = ()
        if file.is_made_again or self._document is not None:
            sent = lines = self.sent.without(lines)
        after = position._replace(
            unfinished=unfinished,
            closing=closing,
            print="" if file.has_rows else self._print_at(file, end),
            rows=file.mark_at(end),
            kind="open" if self._scout is not None else self._container.kind,
            hint=self._container.hint,
            thread_id=self._container.thread_id,
            origin=self._container.origin,
        )
        if not unfinished:
            after = after._replace(offset=end, number=position.number + len(values))
        return LineBatch(lines, is_live, partial(self._acknowledge, after, sent)), after

    def _line(self, value: bytes, number: int, size: int) -> Line:
        hint = self._container.hint
        if self._scout is not None or self._container.may_change(value):
            body = codec.decode(value, limit=HELD_LINE_BYTES)
            if not isinstance(body, DeadLetter):
                self._show(body)
                hint = self._container.hint
                self._container.pass_over(body)
        line = line_of(self.source.name, number, value, size, hint)
        if self._container.kind != "rollout":
            return line
        if self._container.origin is not None and self._copied is None:
            self._copied = copied_history(self.source.name, self._container.origin)
        is_copy = self._copied.look(value) if self._copied is not None else None
        if self._copied is None or self._copied.is_over:
            self._container.origin = self._copied = None
        return line._replace(thread_id=self._container.thread_id, inherited=is_copy)

    def _show(self, body: dict[str, Json]) -> None:
        """Show a line to the scout: it may be the first that tells what the file is."""
        if self._scout is None:
            return
        self._scout.look(body)
        decided = self._scout.container(self.source.session, self._fallback, self.source.thread_id)
        if decided.kind != "stream":
            decided.hint = decided.hint or self._container.hint
            self._container, self._scout = decided, None
        elif self._scout.in_stream:
            self._scout = None

    def _decide(self, file: Content, now_s: float, *, final: bool) -> bool:
        """Find out what the file is (R1); False while its lines do not show it."""
        position = self.read
        self._document = document_of(file.read(HEAD_BYTES, 0))
        if position.kind != "open" or position.offset:
            kind = "stream" if position.kind == "open" else position.kind
            session = position.hint or self._fallback
            self._container = Container(kind, session, position.thread_id, position.origin)
            self._copied = None
            self._scout = Scout() if position.kind == "open" else None
            return True
        scout, examined = Scout(), 0
        has_sign = is_signed(file, self.size)
        for lines, value in enumerate(values_of(file, self.size, self._document), 1):
            examined += len(value)
            is_early = lines <= LOOK_AHEAD_LINES and examined <= LOOK_AHEAD_BYTES
            seeks_name = is_early and not scout.is_settled
            if not seeks_name and not has_sign:
                break
            is_first = lines <= FIRST_LINES and not scout.in_stream
            is_named = (has_sign and SIGNS.search(value)) or (seeks_name and NAMES.search(value))
            if is_first or is_named:
                body = codec.decode(value, limit=HELD_LINE_BYTES)
                if isinstance(body, DeadLetter):
                    continue
                if is_first and (other := runtimes.unsupported(body)) is not None:
                    raise UnsupportedFormatError(other)
                if scout.look(body):
                    break
        container = scout.container(self.source.session, self._fallback, self.source.thread_id)
        is_known = scout.is_known
        if self._first_seen_s is None:
            self._first_seen_s = now_s
        if not (is_known or final or now_s - self._first_seen_s >= _UNDECIDED_S):
            return False
        self._container = container
        self._scout = None if is_known else Scout()
        return True
