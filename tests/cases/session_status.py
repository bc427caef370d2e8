"""Views and what they look like at `NOW_MS`: one table for the judgement and all who draw it."""

from dataclasses import replace
from typing import NamedTuple

from schemas.records import Outcome
from schemas.views import (
    AttemptView,
    ChainView,
    CompactionBrief,
    CompactionsView,
    Identity,
    SessionView,
    SizeState,
)
from streams.core.session_status import Severity, State
from tests.cases.views import ATTEMPT, BRIEF, SESSION

NOW_MS = 1_790_000_000_000
WINDOW = 200_000
SECOND = 1_000
MINUTE = 60 * SECOND


class Case(NamedTuple):
    """A view, and the verdict on it."""

    name: str
    view: SessionView
    leading: str | None
    state: State
    severity: Severity
    thrashing: bool = False


def chain(
    percent: float | None,
    name: str = "main",
    *,
    state: SizeState | None = None,
    until: int | None = None,
    peak: int | None = None,
    sequence: int = 1,
) -> ChainView:
    """Return a chain that uses so much of its window; None: its size is unknown."""
    used = None if percent is None else int(percent * WINDOW / 100)
    return ChainView(
        chain=name,
        state=state or ("unknown" if used is None else "measured"),
        used_tokens=used,
        used_percent=percent,
        window=WINDOW,
        window_source="runtime",
        auto_compact_threshold=None if used is None or until is None else used + until,
        until_compaction_tokens=until,
        peak_tokens=used if peak is None else peak,
        peak_percent=percent,
        as_of_ms=NOW_MS - SECOND,
        last_sequence=sequence,
    )


def attempt(started: int | None, heartbeat: int | None = None, name: str = "main") -> AttemptView:
    """Return an attempt that began, and gave a heartbeat, so many ms before now."""
    return replace(
        ATTEMPT,
        chain=name,
        started_ms=None if started is None else NOW_MS - started,
        last_heartbeat_ms=None if heartbeat is None else NOW_MS - heartbeat,
    )


def compacted(
    *ages: int, name: str = "main", outcome: Outcome | None = None
) -> tuple[CompactionBrief, ...]:
    """Return compactions of a chain that ended so many ms before now."""
    return tuple(
        replace(
            BRIEF,
            record_id=f"{name}-{number}",
            chain=name,
            number=number if outcome is None else None,
            outcome=outcome or "succeeded",
            time_ms=NOW_MS - age,
            tokens_before=150_000,
            tokens_after=120_000,
            tokens_saved=30_000,
            messages_since_last=4,
        )
        for number, age in enumerate(ages, 1)
    )


def session(
    *chains: ChainView,
    attempt: AttemptView | None = None,
    last: tuple[CompactionBrief, ...] = (),
    silent: int | None = SECOND,
) -> SessionView:
    """Return a session whose last record came so many ms before now."""
    succeeded = sum(brief.outcome == "succeeded" for brief in last)
    return replace(
        SESSION,
        session_id="case",
        last_ms=None if silent is None else NOW_MS - silent,
        identity=Identity(model="m", runtime="claude-code"),
        chains={each.chain: each for each in chains},
        attempt=attempt,
        compactions=CompactionsView(automatic=succeeded, failed=len(last) - succeeded, last=last),
    )


HALF = chain(50.0)

_LEADING = [
    Case("nothing known", session(), None, "unknown", "unknown"),
    Case("main alone", session(HALF), "main", "measured", "normal"),
    Case(
        "a subagent alone was measured", session(chain(95.0, "sub")), "sub", "measured", "critical"
    ),
    Case(
        "main exists without a size, a subagent was measured",
        session(chain(None), chain(95.0, "sub")),
        "sub",
        "measured",
        "critical",
    ),
    Case(
        "main was measured: a fuller subagent does not lead",
        session(HALF, chain(95.0, "sub", sequence=2)),
        "main",
        "measured",
        "normal",
    ),
    Case(
        "main was just compacted: it keeps the lead",
        session(chain(None, peak=180_000), chain(95.0, "sub", sequence=2)),
        "main",
        "unknown",
        "unknown",
    ),
    Case(
        "of subagents the fullest leads, neither the first nor the latest",
        session(
            chain(60.0, "a", sequence=1), chain(85.0, "b", sequence=2), chain(20.0, "c", sequence=3)
        ),
        "b",
        "measured",
        "high",
    ),
    Case(
        "no chain has a size",
        session(chain(None), chain(None, "sub")),
        "main",
        "unknown",
        "unknown",
    ),
    Case(
        "no chain has a size, and there is no main",
        session(chain(None, "a", sequence=2), chain(None, "b", sequence=1)),
        "a",
        "unknown",
        "unknown",
    ),
]

_SEVERITY = [
    Case("70 % used is normal", session(chain(70.0)), "main", "measured", "normal"),
    Case("above 70 % is elevated", session(chain(70.01)), "main", "measured", "elevated"),
    Case("below 80 % is elevated", session(chain(79.99)), "main", "measured", "elevated"),
    Case("80 % is high", session(chain(80.0)), "main", "measured", "high"),
    Case("below 90 % is high", session(chain(89.99)), "main", "measured", "high"),
    Case("90 % is critical", session(chain(90.0)), "main", "measured", "critical"),
    Case(
        "90 % is critical, however far compaction is",
        session(chain(91.0, until=10_000)),
        "main",
        "measured",
        "critical",
    ),
    Case(
        "compaction within a fortieth of the window is critical",
        session(chain(81.0, until=5_000)),
        "main",
        "measured",
        "critical",
    ),
    Case(
        "compaction just beyond it is not",
        session(chain(81.0, until=5_001)),
        "main",
        "measured",
        "high",
    ),
    Case("overdue is critical", session(chain(60.0, until=-100)), "main", "measured", "critical"),
]

_STATE = [
    Case(
        "the runtime's own estimate",
        session(chain(50.0, state="estimated")),
        "main",
        "estimated",
        "normal",
    ),
    Case(
        "silent for less than half an hour",
        session(HALF, silent=30 * MINUTE - 1),
        "main",
        "measured",
        "normal",
    ),
    Case("silent for half an hour", session(HALF, silent=30 * MINUTE), "main", "stale", "normal"),
    Case("no record has a time", session(HALF, silent=None), "main", "measured", "normal"),
    Case(
        "unknown stays unknown",
        session(chain(None, peak=9_000), silent=99 * MINUTE),
        "main",
        "unknown",
        "unknown",
    ),
    Case(
        "compacting",
        session(chain(84.0, state="compacting"), attempt=attempt(45 * SECOND)),
        "main",
        "compacting",
        "high",
    ),
    Case(
        "a subagent compacts",
        session(HALF, chain(50.0, "sub"), attempt=attempt(45 * SECOND, name="sub")),
        "main",
        "compacting",
        "normal",
    ),
    Case(
        "no sign for less than two minutes",
        session(HALF, attempt=attempt(2 * MINUTE - 1)),
        "main",
        "compacting",
        "normal",
    ),
    Case(
        "no sign for two minutes",
        session(HALF, attempt=attempt(2 * MINUTE)),
        "main",
        "stalled",
        "normal",
    ),
    Case(
        "a heartbeat is a sign",
        session(HALF, attempt=attempt(9 * MINUTE, 30 * SECOND)),
        "main",
        "compacting",
        "normal",
    ),
    Case(
        "a heartbeat that is earlier than the start does not count",
        session(HALF, attempt=attempt(30 * SECOND, 9 * MINUTE)),
        "main",
        "compacting",
        "normal",
    ),
    Case(
        "an attempt without a time never stalls",
        session(HALF, attempt=attempt(None), silent=99 * MINUTE),
        "main",
        "compacting",
        "normal",
    ),
    Case(
        "an open attempt is stalled and not stale",
        session(HALF, attempt=attempt(99 * MINUTE), silent=99 * MINUTE),
        "main",
        "stalled",
        "normal",
    ),
]

_THRASHING = [
    Case(
        "three compactions at 0, 6 and 12 minutes",
        session(HALF, last=compacted(12 * MINUTE, 6 * MINUTE, 0)),
        "main",
        "measured",
        "normal",
        thrashing=True,
    ),
    Case(
        "two compactions",
        session(HALF, last=compacted(6 * MINUTE, 0)),
        "main",
        "measured",
        "normal",
    ),
    Case(
        "the first of three is 15 minutes ago",
        session(HALF, last=compacted(15 * MINUTE, 9 * MINUTE, 3 * MINUTE)),
        "main",
        "measured",
        "normal",
    ),
    Case(
        "the first of three is a little less than 15 minutes ago",
        session(HALF, last=compacted(15 * MINUTE - 1, 9 * MINUTE, 3 * MINUTE)),
        "main",
        "measured",
        "normal",
        thrashing=True,
    ),
    Case(
        "the latest three of four count",
        session(HALF, last=compacted(16 * MINUTE, 8 * MINUTE, 4 * MINUTE, 0)),
        "main",
        "measured",
        "normal",
        thrashing=True,
    ),
    Case(
        "of two chains none was compacted three times",
        session(HALF, last=(*compacted(4 * MINUTE, 0), *compacted(2 * MINUTE, 0, name="sub"))),
        "main",
        "measured",
        "normal",
    ),
    Case(
        "failed attempts do not count",
        session(HALF, last=compacted(4 * MINUTE, 2 * MINUTE, 0, outcome="failed")),
        "main",
        "measured",
        "normal",
    ),
]

CASES = [*_LEADING, *_SEVERITY, *_STATE, *_THRASHING]
