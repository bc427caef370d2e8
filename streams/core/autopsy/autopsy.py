"""A session's autopsy: what each of its boundaries kept and lost, and what followed."""

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from contextgauge.compaction.reading.conversation import ConversationReading
from contextgauge.errors import ConfigError
from contextgauge.records import Json
from streams.core.autopsy.consequences import Consequences, consequences
from streams.core.autopsy.items import KINDS, Item, ItemKind, decisions, errors, files
from streams.core.autopsy.remains import VERDICTS, Remains, Trace, Verdict
from streams.core.control.pins import (
    AroundBoundary,
    SeenBefore,
    boundaries,
    is_unreadable,
    judged_turns,
)
from streams.core.control.turn_overlap import can_be_judged, plain

LINE: Final = "line-"
"""Begins the id of a message whose line has none: the line's number in its session follows."""


class Finding(NamedTuple):
    """An item, and what is left of it."""

    item: Item
    trace: Trace


class BoundaryFindings(NamedTuple):
    """What stood before a boundary. `place` is that of its entry in the history.

    `is_readable` is whether all is known that the model sees after it: only then is anything lost.
    """

    place: int
    summary_id: str
    is_readable: bool
    findings: tuple[Finding, ...]


class SessionAutopsy(NamedTuple):
    """A session's boundaries, and what followed them.

    `unseen` counts compactions of which the summary, or what was before it, is not there.
    """

    boundaries: tuple[BoundaryFindings, ...]
    unseen: int
    consequences: Consequences


class SessionReading:
    """Reads a session's lines."""

    def __init__(self) -> None:
        self._reading = ConversationReading()
        self._lines = 0
        self._incomplete: set[str] = set()

    def add(self, line: dict[str, Json]) -> None:
        """Add a line. One that cannot be read makes incomplete what comes until a boundary."""
        self._lines += 1
        with suppress(ConfigError):
            self._reading.add(line, f"{LINE}{self._lines}")
        active = self._reading.history.active
        if self._reading.is_incomplete and active and active[0].compaction is not None:
            self._incomplete.add(active[0].id)

    def autopsy(self, known: set[str]) -> SessionAutopsy:
        """Return the autopsy. `known` are boundaries of other sessions, copied into forks.

        The session's own are added to them.
        """
        found = [
            each
            for each in findings_of(self._reading, frozenset(self._incomplete))
            if each.summary_id not in known
        ]
        known |= {each.summary_id for each in found if not each.summary_id.startswith(LINE)}
        unseen = max(0, self._reading.compactions - len(list(boundaries(self._reading.history))))
        followed = consequences(self._reading.history, [each.place for each in found])
        return SessionAutopsy(tuple(found), unseen, followed)


def totals(findings: Iterable[Finding]) -> dict[ItemKind, dict[Verdict, int]]:
    """Return how many items of each kind have each verdict."""
    counts = Counter((each.item.kind, each.trace.verdict) for each in findings)
    return {kind: {verdict: counts[kind, verdict] for verdict in VERDICTS} for kind in KINDS}


def findings_of(
    reading: ConversationReading, incomplete: frozenset[str] = frozenset()
) -> Iterator[BoundaryFindings]:
    """Yield what each boundary kept. After the summaries `incomplete` something is missing."""
    for place, around in boundaries(reading.history):
        marker = next(each for each in around.after if each.compaction is not None)
        is_readable = marker.id not in incomplete and not any(
            is_unreadable(each) or each.id in reading.without_text for each in around.after
        )
        remains = Remains(around.after, tuple(around.turns.values()), reading.folder)
        findings = tuple(_findings(around, remains))
        if not is_readable:
            findings = tuple(map(_doubted, findings))
        yield BoundaryFindings(place, marker.id, is_readable, findings)


def _findings(around: AroundBoundary, remains: Remains) -> Iterator[Finding]:
    ids: dict[str, tuple[str, ...]] = {}
    for message_id, turn in around.turns.items():
        ids[plain(turn)] = (*ids.get(plain(turn), ()), message_id)
    before, turns = SeenBefore(around), judged_turns(around)
    found: list[Finding] = []
    for turn in reversed(turns):  # the latest first: the work has a bound
        trace = remains.of_words(turn)
        if trace.verdict == "PRESERVED" or before.has(turn):
            kind: ItemKind = "request" if turn is turns[-1] else "turn"
            found.append(Finding(Item(kind, turn, ids[plain(turn)]), trace))
    yield from reversed(found)
    for item in decisions(around.before):
        if can_be_judged(item.text):
            yield Finding(item, remains.of_words(item.text))
    for item in errors(around.before):
        yield Finding(item, remains.of_failure(item.text))
    for item in files(around.before):
        yield Finding(item, remains.of_file(item.text))


def _doubted(finding: Finding) -> Finding:
    """Return a finding where not all that the model sees is known."""
    if finding.trace.verdict == "PRESERVED":
        return finding
    return finding._replace(trace=Trace("unknown", finding.trace.message_ids))
