"""What a partition of views in memory holds, counted from what each write adds.

Never from what is there: so what is lost differs from its count for ever.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from schemas.views import LIVE_ENTRIES, STREAM_ENTRIES
from streams.ports import HeldCheck, PartitionDump, ViewChanges

_CHECKED_SESSIONS = 100
"""Sessions that are checked at a time."""


class SessionSizes(NamedTuple):
    """What is stored of a session besides its view."""

    events: int = 0
    readings: int = 0
    compactions: int = 0
    agent: bytes | None = None


def _totals(held: PartitionDump) -> dict[str, int]:
    return {
        **{name: len(scores) for name, scores in held.rankings.items()},
        "idle": len(held.idle),
        "left": len(held.left),
        "live": len(held.live),
        "stats": len(held.stats),
    }


def _session(held: PartitionDump, session: bytes) -> SessionSizes:
    return SessionSizes(
        len(held.entries["events"].get(session, ())),
        len(held.entries["readings"].get(session, ())),
        len(held.compactions.get(session, ())),
    )


@dataclass(slots=True)
class HeldCounts:
    """The counts of a partition: its totals, and those of each session."""

    totals: dict[str, int] = field(default_factory=dict)
    sessions: dict[bytes, SessionSizes] = field(default_factory=dict)

    def write(
        self, held: PartitionDump, changes: ViewChanges, write: Callable[[ViewChanges], None]
    ) -> None:
        """Write changes, and count what they add."""
        before = _totals(held)
        sizes = {session: _session(held, session) for session in changes.views}
        write(changes)
        for name, size in _totals(held).items():
            count = self.totals.get(name, 0) + size - before[name]
            self.totals[name] = min(count, LIVE_ENTRIES) if name == "live" else count
        for session in changes.leaving:
            self.sessions.pop(session, None)
        agents = {
            session: agent for (agent, session), last in changes.agents.items() if last is not None
        }
        for session, former in sizes.items():
            counted = self.sessions.get(session, SessionSizes())
            now = _session(held, session)
            was = SessionSizes() if session in changes.leaving else former
            self.sessions[session] = SessionSizes(
                min(counted.events + now.events - was.events, STREAM_ENTRIES),
                min(counted.readings + now.readings - was.readings, STREAM_ENTRIES),
                counted.compactions + now.compactions - was.compactions,
                agents.get(session, counted.agent),
            )

    def check(self, held: PartitionDump, cursor: int) -> HeldCheck:
        """Compare the totals, and some of the sessions from `cursor` on."""
        sizes = _totals(held)
        for name, count in self.totals.items():
            if sizes[name] != count:
                return HeldCheck(name)
        sessions = sorted(held.rankings["recent"])
        for session in sessions[cursor : cursor + _CHECKED_SESSIONS]:
            lost = self._lost(held, session)
            if lost:
                return HeldCheck(lost + repr(session))
        following = cursor + _CHECKED_SESSIONS
        return HeldCheck("", following if following < len(sessions) else 0)

    def _lost(self, held: PartitionDump, session: bytes) -> str:
        counted = self.sessions.get(session)
        if counted is None:
            return "held"
        if session not in held.views:
            return "s:"
        if _session(held, session) != counted._replace(agent=None):
            return "e:, r: or c:"
        is_known = counted.agent is None or session in held.agents.get(counted.agent, ())
        return "" if is_known else "a:"
