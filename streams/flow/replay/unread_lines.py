"""Counts lines of newer versions whose figures are not read, while files are derived."""

from collections import Counter
from collections.abc import Iterable

from contextgauge.containers import Line
from contextgauge.normalise import normalise, session_of
from contextgauge.normalise.signals import InputMessage, SessionFacts
from contextgauge.normalise.unread_lines import (
    UnreadKind,
    UnreadLine,
    may_be_unread,
    unread_line,
)
from schemas.messages import DeadLetter
from schemas.records import Record, SessionInfo
from streams import codec


class UnreadLines:
    """What was counted so far; which runtime wrote a line, its session's records show."""

    def __init__(self) -> None:
        self._runtimes: dict[str, tuple[str | None, str | None]] = {}
        self._lines: Counter[tuple[str, str | None, UnreadLine]] = Counter()

    def look(self, lines: Iterable[Line]) -> None:
        """Take lines into account."""
        for line in lines:
            if not may_be_unread(line.value):
                continue
            body = codec.decode(line.value)
            if isinstance(body, DeadLetter) or (unread := unread_line(body)) is None:
                continue
            self._lines[line.file, session_of(body, line.session_hint), unread] += 1

    def take(self, records: Iterable[Record]) -> None:
        """Take into account which runtime a session is of."""
        for record in records:
            if isinstance(record.data, SessionInfo):
                info = record.data
                self._runtimes[info.session_id] = info.runtime, info.runtime_version

    def note(self, lines: Iterable[Line]) -> None:
        """Take into account which runtime lines say that their session is of."""
        for line in lines:
            body = codec.decode(line.value)
            if isinstance(body, DeadLetter):
                continue
            normal = normalise(body, InputMessage(line.value, line.session_hint))
            if normal is None:
                continue
            for signal in normal.signals:
                if isinstance(signal, SessionFacts) and signal.runtime is not None:
                    session = normal.session_id or ""
                    if not signal.only_new or session not in self._runtimes:
                        self._runtimes[session] = signal.runtime, signal.runtime_version

    def files(self) -> set[str]:
        """Return the files that have such lines."""
        return {file for file, _, _ in self._lines}

    def counts(self) -> dict[UnreadKind, int]:
        """Return how many lines of which kind there are; from any thread."""
        counts: Counter[UnreadKind] = Counter()
        for (file, session, unread), lines in list(self._lines.items()):
            known = self._runtimes.get(session or "", (None, None))
            counts[UnreadKind(file, unread, *known)] += lines
        return dict(counts)
