"""A session's autopsy: what each of its boundaries kept and lost, and what followed."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from contextgauge.compaction.reading.conversation import ConversationReading
from contextgauge.errors import ConfigError
from schemas.records import Json
from streams.core.autopsy.consequences import Consequences, FollowingCases, consequences
from streams.core.autopsy.items import KINDS, Item, ItemKind, decisions, errors, files
from streams.core.autopsy.remains import VERDICTS, Remains, Trace, Verdict
from streams.core.autopsy.trail import Trail
from streams.core.control.pins import (
    AroundBoundary,
    SeenBefore,
    boundaries,
    is_unreadable,
    judged_turns,
)
from streams.core.control.turn_overlap import GuardWork, Turn, can_be_judged, plain

LINE: Final = "line-"
"""Begins the id of a message whose line has none: the line's number in its session follows."""


_CONSEQUENCES: Final[Mapping[ItemKind, Sequence[str]]] = {
    "turn": ("turns_restated", "constraints_possibly_violated"),
    "request": ("turns_restated",),
    "decision": (),
    "file": ("files_read_again",),
    "error": ("failing_calls_repeated",),
}
"""What may follow of an item of each kind."""


class Sequel(NamedTuple):
    """What followed of an item: a field of `Consequences`, and the message that did it."""

    consequence: str
    message_id: str


class ItemFinding(NamedTuple):
    """An item, what is left of it, and what followed of it within the calls after the boundary."""

    item: Item
    trace: Trace
    sequels: tuple[Sequel, ...] = ()


class BoundaryFindings(NamedTuple):
    """What stood before a boundary. `place` is that of its entry in the history.

    `is_readable` is whether all is known that the model sees after it: only then is anything lost.
    """

    place: int
    summary_id: str
    is_readable: bool
    findings: tuple[ItemFinding, ...]


class SessionAutopsy(NamedTuple):
    """A session's boundaries, and what followed them.

    `unseen` counts compactions of which the summary, or what was before it, is not there.
    """

    boundaries: tuple[BoundaryFindings, ...]
    unseen: int
    consequences: Consequences


class AutopsyReading:
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
        everything = list(findings_of(self._reading, frozenset(self._incomplete)))
        not_known = [each for each in everything if each.summary_id not in known]
        known |= {each.summary_id for each in not_known if not each.summary_id.startswith(LINE)}
        unseen = max(0, self._reading.compactions - len(list(boundaries(self._reading.history))))
        trail = Trail(self._reading.history, self._reading.without_text)
        own, places = ([each.place for each in part] for part in (not_known, everything))
        followed = consequences(trail, own, GuardWork(), places)
        judged = tuple(map(_with_sequels, not_known, followed.cases))
        return SessionAutopsy(judged, unseen, followed.compared)


def totals(findings: Iterable[ItemFinding]) -> dict[ItemKind, dict[Verdict, int]]:
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
        findings = tuple(
            _known(finding, reading.without_text, is_readable=is_readable)
            for finding in findings_around(around, reading.folder, GuardWork())
        )
        yield BoundaryFindings(place, marker.id, is_readable, findings)


def findings_around(
    around: AroundBoundary, folder: str | None, work: GuardWork
) -> Iterator[ItemFinding]:
    """Yield what a boundary kept. Words that `work` has no room for are unknown."""
    turns = judged_turns(around, work)
    remains = Remains(around.after, turns or (), folder, work)
    if turns is None:
        for message_id, text in around.turns.items():
            if can_be_judged(text):
                yield ItemFinding(Item("turn", text, (message_id,)), Trace("unknown"))
    else:
        before = SeenBefore(around, turns, work)
        yield from reversed(list(_turns(around, turns, remains, before)))
    for item in decisions(around.before):
        if can_be_judged(item.text):
            yield ItemFinding(item, remains.of_words(Turn(item.text)))
    for item in errors(around.before):
        yield ItemFinding(item, remains.of_failure(item.text))
    for item in files(around.before):
        yield ItemFinding(item, remains.of_file(item.text))


def _turns(
    around: AroundBoundary, turns: Sequence[Turn], remains: Remains, before: SeenBefore
) -> Iterator[ItemFinding]:
    """Yield those turns that the model saw, the latest first: the work has a bound."""
    ids: dict[str, tuple[str, ...]] = {}
    for message_id, text in around.turns.items():
        ids[plain(text)] = (*ids.get(plain(text), ()), message_id)
    for turn in turns:
        trace = remains.of_words(turn)
        if trace.verdict == "PRESERVED" or before.has(turn):
            kind: ItemKind = "request" if turn is turns[0] else "turn"
            yield ItemFinding(Item(kind, turn.text, ids[turn.plain]), trace)


def _with_sequels(boundary: BoundaryFindings, cases: FollowingCases) -> BoundaryFindings:
    """Return findings with what followed: of a file by its path, else by the message it was in."""
    sequels: dict[tuple[str, str], tuple[Sequel, ...]] = {}
    for name, own in zip(Consequences._fields, cases, strict=True):
        for each in own:
            if each.former_id:
                key = (name, each.text if own is cases.files else each.former_id)
                sequels[key] = (*sequels.get(key, ()), Sequel(name, each.message_id))
    findings = tuple(
        finding._replace(sequels=tuple(_of_item(finding.item, sequels)))
        for finding in boundary.findings
    )
    return boundary._replace(findings=findings)


def _of_item(item: Item, sequels: Mapping[tuple[str, str], Sequence[Sequel]]) -> Iterator[Sequel]:
    keys = (item.text,) if item.kind == "file" else item.message_ids
    for name in _CONSEQUENCES[item.kind]:
        for key in keys:
            yield from sequels.get((name, key), ())


def _known(finding: ItemFinding, without_text: Container[str], *, is_readable: bool) -> ItemFinding:
    """Return a finding, unknown where its text or all that the model sees after it is not."""
    if any(each in without_text for each in finding.item.message_ids):
        return finding._replace(trace=Trace("unknown"))
    if is_readable or finding.trace.verdict == "PRESERVED":
        return finding
    return finding._replace(trace=Trace("unknown", finding.trace.message_ids))
