"""Lines of newer versions whose figures are not read: counted by file, and shown once."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from contextgauge.containers import Line
from contextgauge.normalise import session_of
from contextgauge.normalise.runtimes import RUNTIMES
from contextgauge.normalise.unread_lines import UnreadLine, may_be_unread, unread_line
from schemas.messages import DeadLetter
from schemas.records import Record, SessionInfo
from streams import codec
from streams.cli.screen.figures import count, safe

_LABELS: Final = {each.runtime: each.label for each in RUNTIMES if each.is_read}


class UnreadKind(NamedTuple):
    """Lines of one type in one file, and the runtime that wrote them, as far as it is known."""

    file: str
    line: UnreadLine
    runtime: str | None
    version: str | None


class UnreadLines:
    """Counts such lines while files are derived."""

    def __init__(self) -> None:
        self._runtimes: dict[str, tuple[str | None, str | None]] = {}
        self._lines: Counter[tuple[str, str | None, UnreadLine]] = Counter()

    def look(self, lines: Iterable[Line]) -> None:
        """Take lines into account."""
        for line in lines:
            if not may_be_unread(line.value):
                continue
            body = codec.decode(line.value)
            unread = None if isinstance(body, DeadLetter) else unread_line(body)
            if unread is not None and not isinstance(body, DeadLetter):
                self._lines[line.file, session_of(body, line.session_hint), unread] += 1

    def take(self, records: Iterable[Record]) -> None:
        """Take into account which runtime a session is of."""
        for record in records:
            if isinstance(record.data, SessionInfo):
                info = record.data
                self._runtimes[info.session_id] = info.runtime, info.runtime_version

    def counts(self) -> dict[UnreadKind, int]:
        """Return how many lines of which kind there are."""
        counts: Counter[UnreadKind] = Counter()
        for (file, session, unread), lines in self._lines.items():
            known = self._runtimes.get(session or "", (None, None))
            counts[UnreadKind(file, unread, *known)] += lines
        return dict(counts)


def shown(counts: Mapping[UnreadKind, int]) -> list[str]:
    """Return a sentence for each type of line of a known runtime's version."""
    totals: Counter[tuple[str, str | None, UnreadLine]] = Counter()
    for kind, lines in counts.items():
        if kind.runtime in _LABELS:
            totals[_LABELS[kind.runtime], kind.version, kind.line] += lines
    return [
        safe(
            f"{count(lines, 'line')} of type {unread.type} of {label}"
            f"{'' if version is None else f' {version}'} "
            f"{'carries' if lines == 1 else 'carry'} {unread.figure} that this version does not "
            "read"
        )
        for (label, version, unread), lines in totals.items()
    ]
