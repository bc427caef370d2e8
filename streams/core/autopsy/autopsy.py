"""A session's findings: what each of its boundaries kept, and lost."""

from collections.abc import Iterator
from typing import NamedTuple

from contextgauge.compaction.reading.conversation import ConversationReading
from streams.core.autopsy.items import Item, ItemKind, decisions, errors, files
from streams.core.autopsy.remains import Remains, Trace
from streams.core.control.pins import (
    AroundBoundary,
    SeenBefore,
    boundaries,
    is_unreadable,
    judged_turns,
)
from streams.core.control.turn_overlap import can_be_judged, plain


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


def findings_of(
    reading: ConversationReading, incomplete: frozenset[str] = frozenset()
) -> Iterator[BoundaryFindings]:
    """Yield what each boundary kept. `incomplete` are summaries after which something is missing."""
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
