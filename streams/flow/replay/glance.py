"""What a status line shows of one session, from a few lines of its transcript.

`derive` makes the records, as in the workers. They are folded here into the few figures of the main
chain rather than into a view, as `project` does it: the views' classes alone would take a tenth of
the time that a status line has (docs/adr/0032-fast-status-line-startup.md). Tests hold both
folds together.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

from contextgauge.normalise import normalise_body
from schemas.records import (
    MAIN_CHAIN,
    CompactBoundary,
    ContextLimits,
    ContextReading,
    ContextReset,
    Record,
    WindowSource,
)
from streams.core.derivation.derive import derive
from streams.core.derivation.readings import used_percent
from streams.core.derivation.rules import Rules
from streams.core.derivation.state import Session


class Line(Protocol):
    """A line of a transcript: its JSON object, and its bytes without the line end."""

    @property
    def body(self) -> dict[str, Any]:
        """The object."""

    @property
    def value(self) -> bytes:
        """The bytes."""


class Glance(NamedTuple):
    """A session's main chain and its compactions, as its view would have them.

    `threshold` is the size at which auto-compaction comes. `is_settled`: no line before those
    that were looked at could change the size.
    """

    model: str | None = None
    used_tokens: int | None = None
    is_estimated: bool = False
    window: int | None = None
    window_source: WindowSource | None = None
    threshold: int | None = None
    compactions: int = 0
    last_duration_ms: int | None = None
    last_ms: int | None = None
    is_settled: bool = False

    @property
    def state(self) -> str:
        """How the size is known, as in a view."""
        if self.used_tokens is None:
            return "unknown"
        return "estimated" if self.is_estimated else "measured"

    @property
    def used_percent(self) -> float | None:
        """The percentage used, floored to two decimals."""
        if self.used_tokens is None or self.window is None:
            return None
        return used_percent(self.used_tokens, self.window)

    @property
    def until_compaction_tokens(self) -> int | None:
        """Tokens until auto-compaction; negative where it is due."""
        if self.threshold is None or self.used_tokens is None:
            return None
        return self.threshold - self.used_tokens


def look(
    rules: Rules, session_id: str | None, older: Iterable[Line], lines: Iterable[Line]
) -> Glance | None:
    """Return what lines of one file tell, `older` ones first; None where that is nothing.

    It is that of the session named; where no line is of it, that of the last line's session.
    """
    sessions: dict[str, Session] = {}
    glances: dict[str, Glance] = {}
    latest: str | None = None
    for is_older, group in ((True, older), (False, lines)):
        for line in group:
            normal = normalise_body(line.body, line.value, session_id, None, None, None)
            if normal is None or normal.session_id is None:
                continue
            latest = normal.session_id
            sessions[latest], records = derive(rules, sessions.get(latest), normal, latest)
            for record in records:
                seen = glances.get(latest, _NOTHING)
                after = _fold(seen, record)
                if is_older and after.is_settled:
                    after = after._replace(is_settled=False)
                glances[latest] = after
    if session_id is not None and session_id in glances:
        return glances[session_id]
    return None if latest is None else glances.get(latest)


_NOTHING = Glance()


def _fold(seen: Glance, record: Record) -> Glance:
    data, time_ms = record.data, record.time_ms
    if time_ms is not None:
        seen = seen._replace(last_ms=max(seen.last_ms or 0, time_ms))
    if isinstance(data, CompactBoundary):
        seen = seen._replace(compactions=seen.compactions + 1, last_duration_ms=data.duration_ms)
    if data.chain != MAIN_CHAIN:
        return seen
    if data.model is not None:
        seen = seen._replace(model=data.model)
    match data:
        case ContextReading():
            return seen._replace(
                used_tokens=data.used_tokens,
                is_estimated=False,
                window=data.window,
                window_source=data.window_source,
                is_settled=True,
            )
        case ContextLimits():
            return _limited(seen, data)
        case CompactBoundary() | ContextReset():
            return seen._replace(used_tokens=None, is_estimated=False, is_settled=True)
        case _:
            return seen


def _limited(seen: Glance, data: ContextLimits) -> Glance:
    """Return the limits as last told; the runtime's total stands for a size that is unknown."""
    is_on = data.auto_compact_enabled is not False
    seen = seen._replace(
        window=data.window,
        window_source=data.window_source,
        threshold=data.auto_compact_threshold if is_on else None,
    )
    if data.total_tokens is None or (seen.used_tokens is not None and not seen.is_estimated):
        return seen
    return seen._replace(used_tokens=data.total_tokens, is_estimated=True)
