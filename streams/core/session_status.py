"""What is said of many sessions at once, for alarms and dashboards: counts, and no names.

Only sessions at work are counted: one that was left yesterday at 95 % is nobody's concern, and its
attempt that never ended is not one that hangs now.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from schemas.views import ChainView, SessionView

AT_WORK_MS: Final = 60 * 60 * 1_000
"""A session whose last record is younger is at work: a stalled compaction shows for so long."""

THRASH_COMPACTIONS: Final = 3
THRASH_WITHIN_MS: Final = 15 * 60 * 1_000
"""So many compactions of a chain in so little time free less than the work takes."""

Band: TypeAlias = Literal["unknown", "below_50", "50_to_80", "80_to_90", "90_to_100", "over_100"]

_EDGES: Final[tuple[tuple[float, Band], ...]] = (
    (50, "below_50"),
    (80, "50_to_80"),
    (90, "80_to_90"),
    (100, "90_to_100"),
)

BANDS: Final[tuple[Band, ...]] = ("unknown", *(band for _, band in _EDGES), "over_100")


@dataclass(slots=True)
class SessionFigures:
    """The sessions at work. `bands` counts them by their fullest chain, in percent used.

    `attempts` are open compaction attempts, `silent_ms` is for how long the quietest of them gave
    no sign; `thrashing` sessions were compacted again and again.
    """

    bands: dict[Band, int] = field(default_factory=lambda: dict.fromkeys(BANDS, 0))
    attempts: int = 0
    silent_ms: int = 0
    thrashing: int = 0


def session_figures(views: Iterable[SessionView], now_ms: int) -> SessionFigures:
    """Return the figures of sessions, of those among them that are at work."""
    found = SessionFigures()
    for view in views:
        if view.last_ms is None or now_ms - view.last_ms > AT_WORK_MS:
            continue
        found.bands[_band(view.chains.values())] += 1
        if view.attempt is not None:
            found.attempts += 1
            sign_ms = view.attempt.last_heartbeat_ms or view.attempt.started_ms or view.last_ms
            found.silent_ms = max(found.silent_ms, now_ms - sign_ms)
        found.thrashing += _thrashes(view, now_ms)
    return found


def _band(chains: Iterable[ChainView]) -> Band:
    known = [chain.used_percent for chain in chains if chain.used_percent is not None]
    if not known:
        return "unknown"
    used = max(known)
    return next((band for edge, band in _EDGES if used < edge), "over_100")


def _thrashes(view: SessionView, now_ms: int) -> bool:
    """Tell whether a chain was compacted often in the time until now."""
    times: dict[str, int] = {}
    for brief in view.compactions.last:
        is_recent = brief.time_ms is not None and now_ms - brief.time_ms <= THRASH_WITHIN_MS
        if brief.outcome == "succeeded" and is_recent:
            times[brief.chain] = times.get(brief.chain, 0) + 1
    return max(times.values(), default=0) >= THRASH_COMPACTIONS
