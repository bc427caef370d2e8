"""What a record adds besides its session's view: the other documents, purely derived.

Each is a function of the record and of views before and after it, so that re-reading a record
gives the same document again.
"""

from typing import Any, Final

from contextgauge.frozen import copied, replace
from schemas.records import (
    MAIN_CHAIN,
    CompactBoundary,
    CompactionComplete,
    CompactionProgress,
    CompactionSummary,
    CompactionTiming,
    ContextReading,
    PinsChecked,
    Record,
)
from schemas.views import VIEW_VERSION, ChainView, Compaction, EntryStream, SessionView
from streams.core.projection.project import awaits
from streams.core.projection.receipt_views import begun, completed
from streams.core.session_status import leading_chain


def entry_stream(record: Record) -> EntryStream | None:
    """Return the stream that keeps the record; heartbeats and copied sizes are in the view only."""
    match record.data:
        case ContextReading() as data:
            return None if data.inherited else "readings"
        case CompactionProgress():
            return None
        case _:
            return "events"


def compaction_name(chain: str, number: int) -> str:
    """Return a compaction's name among its session's: the number, and whose where not main's."""
    return str(number) if chain == MAIN_CHAIN else f"{number}:{chain}"


def touched_compaction(view: SessionView | None, record: Record) -> str | None:
    """Return the name of the compaction that the record begins or adds to, if any.

    `view` is the session's before the record: a summary and a completion are those of their
    chain's last boundary, a timing that of its latest one without a duration, a check of its rules
    that of the latest one.
    """
    data = record.data
    if type(data) is ContextReading:
        return None  # most are
    chain = None if view is None else view.chains.get(data.chain)
    match data:
        case CompactBoundary():
            return compaction_name(data.chain, data.number)
        case CompactionSummary() | CompactionComplete():
            pending = None if chain is None else chain.pending
            if pending is None or pending.boundary_id != data.boundary_id:
                return None
            return compaction_name(data.chain, pending.number)
        case CompactionTiming():
            untimed = None if chain is None else chain.untimed
            if untimed is None or not awaits(chain, data):
                return None
            return compaction_name(data.chain, untimed.number)
        case PinsChecked():
            latest = None if chain is None else chain.latest
            if latest is None or latest.boundary_id != data.boundary_id:
                return None
            return compaction_name(data.chain, latest.number)
        case _:
            return None


def changeable_compactions(chain: ChainView) -> frozenset[str]:
    """Return the names of a chain's compactions that later records may still add to."""
    boundaries = (chain.latest, chain.untimed)
    return frozenset(compaction_name(chain.chain, each.number) for each in boundaries if each)


def compaction(before: Compaction | None, record: Record) -> Compaction | None:
    """Return the document of the compaction that the record touches, after it."""
    data = record.data
    match data:
        case CompactBoundary():
            return copied(
                Compaction,
                data,
                boundary_id=record.id,
                time_ms=record.time_ms,
                tokens_before=data.pre_tokens,
                tokens_before_source=data.pre_tokens_source,
                tokens_after=None,
                tokens_saved=None,
                inherited=data.inherited is True,
                complete=False,
                summary=None,
                receipt=begun(record.id, data),
            )
        case CompactionSummary() if before is not None:
            return replace(before, summary=data.summary)
        case CompactionComplete() if before is not None:
            return replace(
                before,
                tokens_after=data.tokens_after,
                tokens_saved=data.tokens_saved,
                complete=True,
                receipt=completed(before.receipt, data),
            )
        case CompactionTiming() if before is not None:
            return replace(
                before,
                duration_ms=data.duration_ms,
                duration_source=data.duration_source,
                receipt=completed(before.receipt, data),
            )
        case PinsChecked() if before is not None:
            return replace(before, receipt=completed(before.receipt, data))
        case _:
            return before


_UNTIMED_MS: Final = 1 << 47
"""More than any time in ms, and far below what JSON and Redis hold exactly."""


def pressure(view: SessionView) -> float | None:
    """Return what a session is ranked by: its leading chain's percentage used, if known."""
    chain = leading_chain(view)
    return None if chain is None else chain.used_percent


def recency(view: SessionView, logged_ms: int | None) -> int:
    """Return what a session is ranked by in time: its last activity, if that is known.

    One without times comes after all others, below 0, by its record's time in Kafka.
    """
    return view.last_ms if view.last_ms is not None else (logged_ms or 0) - _UNTIMED_MS


def live_entry(view: SessionView, record: Record) -> dict[str, Any]:
    """Return the record's entry in the live feed, a `LiveEntry`; `view` is the session's after it.

    As a dict, which is written quicker: there is one of each record.
    """
    data = record.data
    chain = view.chains.get(data.chain)
    return {
        "version": VIEW_VERSION,
        "record_id": record.id,
        "kind": data.kind,
        "session_id": data.session_id,
        "chain": data.chain,
        "time_ms": record.time_ms,
        "sequence": record.sequence,
        "state": "unknown" if chain is None else chain.state,
        "used_tokens": None if chain is None else chain.used_tokens,
        "used_percent": None if chain is None else chain.used_percent,
    }
