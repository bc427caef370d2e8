"""A session's view from the end of its transcript: the derivation and projection of the workers."""

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

from contextgauge.normalise import normalise
from contextgauge.normalise.fields import moment_ms
from contextgauge.normalise.signals import InputMessage
from schemas.records import MAIN_CHAIN, CompactBoundary, ContextReading, ContextReset, Record
from schemas.views import SessionView
from streams.core.derivation.derive import derive
from streams.core.derivation.rules_config import Rules
from streams.core.derivation.state import NEW_CHAIN, Session
from streams.core.projection.project import project

TranscriptLine: TypeAlias = tuple[dict[str, Any], bytes, str | None]
"""A line of a transcript: its JSON object, and its bytes without the line end. Of a compaction also
the time of the line before it, which may have been left out."""


class TranscriptView(NamedTuple):
    """A session's view. `is_settled`: lines before the tail cannot change the main chain's size."""

    view: SessionView
    is_settled: bool


def view_of_lines(
    rules: Rules,
    session_id: str | None,
    older: Iterable[TranscriptLine],
    tail: Iterable[TranscriptLine],
) -> TranscriptView | None:
    """Return the view that lines of one file give; None where they give no record.

    `older` are single lines from before the tail. The view is that of the session with this id;
    where no line belongs to it, that of the last line's session.
    """
    sessions: dict[str, Session] = {}
    views: dict[str, SessionView] = {}
    settled: set[str] = set()
    latest: str | None = None
    for is_in_tail, lines in ((False, older), (True, tail)):
        for body, value, before in lines:
            normal = normalise(body, InputMessage(value, session_id))
            if normal is None or normal.session_id is None:
                continue
            latest = normal.session_id
            session = _at(sessions.get(latest), moment_ms(before))
            sessions[latest], records = derive(rules, session, normal, latest)
            for record in records:
                view = views.get(latest)
                views[latest] = project(view, record, 0 if view is None else view.position)
                if is_in_tail and _settles(record):
                    settled.add(latest)
    name = session_id if session_id in views else latest
    view = None if name is None else views.get(name)
    return None if view is None else TranscriptView(view, name in settled)


def _at(session: Session | None, before_ms: int | None) -> Session | None:
    """Return a session whose last message was at this time, if it is known to be later."""
    if session is None or before_ms is None or before_ms <= (session.last_ms or 0):
        return session
    chains = session.chains.copy()
    main = chains[MAIN_CHAIN] = chains.get(MAIN_CHAIN, NEW_CHAIN).copy()
    main.last_ms = before_ms
    return Session(
        session.sequence,
        session.applied,
        before_ms,
        session.known,
        chains,
        session.attempt,
        session.hint,
        session.last_reset,
        session.facts,
    )


def _settles(record: Record) -> bool:
    """Return whether the main chain's size after this record is independent of the one before."""
    is_main = record.data.chain == MAIN_CHAIN
    return is_main and isinstance(record.data, ContextReading | CompactBoundary | ContextReset)
