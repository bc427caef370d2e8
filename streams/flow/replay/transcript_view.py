"""The sessions of a transcript, derived piece by piece: the derivation and projection of workers.

What was derived can be stored, and goes on from there with the lines that come next.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from contextgauge.containers import Line
from schemas.records import MAIN_CHAIN, CompactBoundary, ContextReading, ContextReset, Record
from schemas.topics import MESSAGE_LIMIT_BYTES
from schemas.views import SessionView
from streams import codec
from streams.codec import view_codec
from streams.core.derivation.rules_config import Rules
from streams.core.projection.project import project
from streams.flow.derive.deriver import Deriver
from streams.flow.derive.stored_sessions import Activity, StoredSessions, changes_of
from streams.flow.replay.replay import derive_line

_NEVER_IDLE = Activity(0, None)

_BYTES = "latin-1"
"""Stored parts hold hashes as they are; in this encoding each byte is a character."""


class TranscriptSessions:
    """Sessions that lines are of. `stored` is what an earlier one has stored; None: there is none.

    Raises VersionError, ValueError, KeyError, TypeError or AttributeError for what is damaged.
    """

    def __init__(self, rules: Rules, stored: Mapping[str, Any] | None) -> None:
        self._views: dict[str, SessionView] = {}
        self._parts: dict[str, str] = {}
        self._latest: str | None = None
        if stored is not None:
            self._views = {
                name: view_codec.decode(SessionView, codec.dumps(document))
                for name, document in stored["views"].items()
            }
            self._parts = dict(stored["parts"])
            self._latest = stored["latest"]
        sessions = StoredSessions("the status line's file")
        sessions.add([(key.encode(), part.encode(_BYTES)) for key, part in self._parts.items()])
        self._deriver = Deriver(rules, stored=sessions.take)
        self._settled: set[str] = set()

    def take(self, lines: Iterable[Line], *, follow_on: bool = True) -> None:
        """Derive lines. `follow_on`: they follow on what was taken before."""
        for line in lines:
            result = derive_line(self._deriver, line, MESSAGE_LIMIT_BYTES)
            if result.session_id is None:
                continue
            name = self._latest = result.session_id
            for record in result.records:
                view = self._views.get(name)
                self._views[name] = project(view, record, 0 if view is None else view.position)
                if not follow_on and _settles(record):
                    self._settled.add(name)

    def document(self) -> dict[str, Any]:
        """Return what is to be stored, as JSON."""
        for session_id, before, after in self._deriver.end_steps():
            for key, value in changes_of(session_id, before, after, _NEVER_IDLE).items():
                if value is None:
                    self._parts.pop(key.decode(), None)
                else:
                    self._parts[key.decode()] = value.decode(_BYTES)
        return {"views": self._views, "parts": self._parts, "latest": self._latest}

    def view(self, session_id: str | None) -> SessionView | None:
        """Return a session's view; that of the last line's session where no line is of this one."""
        name = session_id if session_id in self._views else self._latest
        return None if name is None else self._views.get(name)

    def is_settled(self, view: SessionView) -> bool:
        """Return whether its size does not depend on lines that were left out."""
        return view.session_id in self._settled


def _settles(record: Record) -> bool:
    """Return whether the main chain's size after this record is independent of the one before."""
    data = record.data
    if data.chain != MAIN_CHAIN:
        return False
    if isinstance(data, ContextReading):
        return not data.late
    return isinstance(data, CompactBoundary | ContextReset)
