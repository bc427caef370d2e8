"""What a session looks like now: the one judgement that every screen, answer and count draws.

    view ──status_of──▶ Status ──state(now), is_thrashing(now)──▶ verdict

A view holds no clock, so a status holds instants: a reader compares its own time with them and
needs no rule. `stalled_from_ms` and `stale_from_ms` are set only where they apply, so of an open
attempt only the first can be, and without one only the second. Why each value is what it is:
docs/adr/0037-one-judgement-of-a-session.md.

The status line imports this at every prompt, so it imports nothing that takes long.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from streams.core.until_compaction import (
    NO_POINTS,
    CompactionPoints,
    UntilCompaction,
    WindowDoubt,
    session_point_of,
    settings_of,
    switched_off_by,
    until_compaction,
    window_doubt,
)

if TYPE_CHECKING:
    from schemas.records import Json
    from schemas.views import ChainView, CompactionBrief, SessionView

State: TypeAlias = Literal["measured", "estimated", "unknown", "compacting", "stalled", "stale"]
"""`compacting`: an attempt is open; `stalled`: it gives no sign of life. `unknown`: no size.
`stale`: the session is silent for so long that its size is that of then."""

Severity: TypeAlias = Literal["unknown", "normal", "elevated", "high", "critical"]
"""How full a chain is, from nothing known to nearly full."""


class Thresholds(NamedTuple):
    """Where verdicts change. The API serves them, so that no reader has numbers of its own."""

    elevated_above_percent: int = 70
    """Less than 30 % remains: a chat shows its warning from here on."""

    high_percent: int = 80
    """Agents warn here by default."""

    critical_percent: int = 90
    """Agents compact around here by default."""

    critical_until_percent: float = 2.5
    """Compaction is so close, in percent of the window: one or two responses away. Claude Code
    compacts at 83.5 %, which `critical_percent` alone would never reach."""

    stalled_after_ms: int = 2 * 60_000
    """Runtimes send a heartbeat every 30 s: four are missing."""

    stale_after_ms: int = 30 * 60_000
    """A session that is silent for so long may be over."""

    thrash_compactions: int = 3
    thrash_within_ms: int = 15 * 60_000
    """So many compactions of a chain within so little time: the window fills again at once."""


THRESHOLDS: Final = Thresholds()

AT_WORK_MS: Final = 60 * 60 * 1_000
"""A session whose last record is younger is at work: a stalled compaction shows for so long."""

Band: TypeAlias = Literal["unknown", "below_50", "50_to_80", "80_to_90", "90_to_100", "over_100"]

_EDGES: Final[tuple[tuple[float, Band], ...]] = (
    (50, "below_50"),
    (THRESHOLDS.high_percent, "50_to_80"),
    (THRESHOLDS.critical_percent, "80_to_90"),
    (100, "90_to_100"),
)

BANDS: Final[tuple[Band, ...]] = ("unknown", *(band for _, band in _EDGES), "over_100")

_MAIN: Final = "main"


class Thrash(NamedTuple):
    """The latest compactions of a chain that came within `thrash_within_ms`."""

    chain: str
    compactions: int
    first_ms: int
    last_ms: int


class Status(NamedTuple):
    """The judgement of a session. Instants in ms; a verdict changes when its instant is reached.

    `leading_chain` is None where the session has no chain yet. `settled` is the state before
    any instant. `last_active_ms` is when its last record was, None where that is unknown.
    `until_compaction` is by chain, as far as it is known, whatever its source.
    `switched_off_by` names, by chain, the runtime's settings by which there is none.
    `window_doubts` are by chain, of windows that may be wrong.
    `last_sign_ms` is the open attempt's last sign of life. `thrash` is the latest thrash that the
    view knows of; it lasts until `thrashing_until_ms`.
    """

    leading_chain: str | None
    last_active_ms: int | None
    settled: State
    severity: Severity
    severities: dict[str, Severity]
    until_compaction: dict[str, UntilCompaction]
    switched_off_by: dict[str, str]
    window_doubts: dict[str, WindowDoubt]
    last_sign_ms: int | None
    stalled_from_ms: int | None
    stale_from_ms: int | None
    thrash: Thrash | None
    thrashing_until_ms: int | None

    def state(self, now_ms: int) -> State:
        """Return the session's state at this time."""
        if self.stalled_from_ms is not None and now_ms >= self.stalled_from_ms:
            return "stalled"
        if self.stale_from_ms is not None and now_ms >= self.stale_from_ms:
            return "stale"
        return self.settled

    def is_thrashing(self, now_ms: int) -> bool:
        """Return whether a chain was compacted again and again up to this time."""
        return self.thrashing_until_ms is not None and now_ms < self.thrashing_until_ms

    def silent_ms(self, now_ms: int) -> int | None:
        """Return for how long the open attempt has given no sign; None where no time is known."""
        return None if self.last_sign_ms is None else max(0, now_ms - self.last_sign_ms)

    def next_change_ms(self, now_ms: int) -> int | None:
        """Return the next instant at which a verdict changes; None: it stays as it is."""
        instants = (self.stalled_from_ms, self.stale_from_ms, self.thrashing_until_ms)
        return min(
            (instant for instant in instants if instant is not None and instant > now_ms),
            default=None,
        )

    def document(self, now_ms: int) -> "dict[str, Json]":
        """Return the status at this time as an object, as the API and `--json` have it."""
        members = self._asdict()
        del members["settled"]
        members["state"] = self.state(now_ms)
        members["thrashing"] = self.is_thrashing(now_ms)
        members["thrash"] = self.thrash and self.thrash._asdict()
        members["until_compaction"] = {
            name: until._asdict() for name, until in self.until_compaction.items()
        }
        return members


def status_of(view: "SessionView", points: CompactionPoints = NO_POINTS) -> Status:
    """Return the judgement of a session; `points` are what the reader knows of compactions.

    When its records were read says nothing of when it was active: without times that is unknown.
    """
    leading, attempt = leading_chain(view), view.attempt
    settings = settings_of(view.identity, points)
    learned = {
        name: session_point_of(chain, view.compactions.last) for name, chain in view.chains.items()
    }
    expected = {
        name: until_compaction(chain, learned[name], points, settings)
        for name, chain in view.chains.items()
    }
    severities = {
        name: severity_of(chain.used_percent, _tokens_left(expected[name]), chain.window)
        for name, chain in view.chains.items()
    }
    off = {
        name: switched_off_by(chain, learned[name], settings) for name, chain in view.chains.items()
    }
    doubts = {name: window_doubt(chain, learned[name]) for name, chain in view.chains.items()}
    is_known = leading is not None and leading.used_tokens is not None
    settled: State = leading.state if leading is not None and is_known else "unknown"
    last_sign_ms = stalled_from_ms = stale_from_ms = None
    if attempt is not None:
        settled = "compacting"
        last_sign_ms = latest((attempt.started_ms, attempt.last_heartbeat_ms))
        stalled_from_ms = stalled_from(last_sign_ms)
    # An unknown size cannot be out of date, so it never becomes stale.
    elif settled != "unknown" and view.last_ms is not None:
        stale_from_ms = view.last_ms + THRESHOLDS.stale_after_ms
    thrash = _thrash(view.compactions.last)
    # From the first of the three: once it is older than that, fewer are within the time.
    thrashing_until_ms = None if thrash is None else thrash.first_ms + THRESHOLDS.thrash_within_ms
    return Status(
        leading_chain=None if leading is None else leading.chain,
        last_active_ms=view.last_ms,
        settled=settled,
        severity="unknown" if leading is None else severities[leading.chain],
        severities=severities,
        until_compaction={name: until for name, until in expected.items() if until is not None},
        switched_off_by={name: source for name, source in off.items() if source is not None},
        window_doubts={name: doubt for name, doubt in doubts.items() if doubt is not None},
        last_sign_ms=last_sign_ms,
        stalled_from_ms=stalled_from_ms,
        stale_from_ms=stale_from_ms,
        thrash=thrash,
        thrashing_until_ms=thrashing_until_ms,
    )


def is_live(view: "SessionView", now_ms: int) -> bool:
    """Return whether a session was active lately, whatever its state: lists begin with these.

    One without times is not: nothing says that it was.
    """
    return view.last_ms is not None and now_ms - view.last_ms < THRESHOLDS.stale_after_ms


def is_unrecognised(view: "SessionView") -> bool:
    """Return whether neither a session's runtime is known nor anything of its context.

    A file of such sessions may be of any program.
    """
    identity, counts = view.identity, view.compactions
    if identity.runtime != "other" and (identity.runtime is not None or identity.cwd is not None):
        return False
    compactions = counts.manual + counts.automatic + counts.idle + counts.unknown_trigger
    if compactions or counts.failed or counts.inherited or view.attempt is not None:
        return False
    return not any(map(_has_figures, view.chains.values()))


def _has_figures(chain: "ChainView") -> bool:
    figures = (chain.used_tokens, chain.peak_tokens, chain.auto_compact_threshold)
    is_reported = chain.window_source in ("runtime", "exceeded")
    return is_reported or any(figure is not None for figure in figures)


def leading_chain(view: "SessionView") -> "ChainView | None":
    """Return the chain that stands for the session.

    The main one, once its size was known; until then the fullest of those whose size is known.
    Where none is: the main one, else the most recent. A subagent that has ended keeps its size,
    so it must not lead for ever; and a main chain that was just compacted stays in the lead.
    """
    chains = view.chains
    main = chains.get(_MAIN)
    if main is not None and (main.used_tokens is not None or main.peak_tokens is not None):
        return main
    known = [chain for chain in chains.values() if chain.used_tokens is not None]
    if known:
        return max(known, key=_fullness)
    return main or max(chains.values(), key=lambda chain: chain.last_sequence, default=None)


def _fullness(chain: "ChainView") -> tuple[float, int, int]:
    # Without a window below any percentage that is known, 0 included.
    percent = -1.0 if chain.used_percent is None else chain.used_percent
    return (percent, chain.used_tokens or 0, chain.last_sequence)


def _tokens_left(until: UntilCompaction | None) -> int | None:
    return None if until is None else until.tokens


def severity_of(
    used_percent: float | None, until_compaction_tokens: int | None, window: int | None
) -> Severity:
    """Return how full a window is; `until_compaction_tokens`, of any source, may be negative."""
    if used_percent is None:
        return "unknown"
    if used_percent >= THRESHOLDS.critical_percent:
        return "critical"
    if until_compaction_tokens is not None and window is not None:
        near = window * THRESHOLDS.critical_until_percent / 100
        if until_compaction_tokens <= near:
            return "critical"
    if used_percent >= THRESHOLDS.high_percent:
        return "high"
    # Above, not from: where 70 % are used, the remaining 30 % are not yet less than 30 %.
    return "elevated" if used_percent > THRESHOLDS.elevated_above_percent else "normal"


def whole_percents(used_percent: float) -> tuple[int, int]:
    """Return the used and the remaining percentage as every screen and answer shows them.

    Used is floored, so that 100 means full; remaining is 100 less that, so that the two add up.
    """
    used = int(used_percent // 1)
    return used, 100 - used


def band_of(chain: "ChainView | None") -> Band:
    """Return the band that a session of this leading chain is counted in."""
    if chain is None or chain.used_percent is None:
        return "unknown"
    used_percent = chain.used_percent
    return next((band for edge, band in _EDGES if used_percent < edge), "over_100")


def latest(times: Iterable[int | None]) -> int | None:
    """Return the latest of the times that are known."""
    return max((time for time in times if time is not None), default=None)


def stalled_from(last_sign_ms: int | None) -> int | None:
    """Return from when on an attempt has stalled; None where no time is known."""
    return None if last_sign_ms is None else last_sign_ms + THRESHOLDS.stalled_after_ms


def _thrash(last: "Sequence[CompactionBrief]") -> Thrash | None:
    """Return the latest thrash among a session's last compactions, each chain by itself."""
    count, runs = THRESHOLDS.thrash_compactions, []
    succeeded = [
        (brief.chain, brief.time_ms)
        for brief in last
        if brief.outcome == "succeeded" and not brief.inherited
    ]
    for chain in {chain for chain, _ in succeeded}:
        times = sorted(time for name, time in succeeded if name == chain and time is not None)
        for first_ms, last_ms in zip(times, times[count - 1 :], strict=False):
            if last_ms - first_ms < THRESHOLDS.thrash_within_ms:
                runs.append(Thrash(chain, count, first_ms, last_ms))
    return max(runs, key=lambda thrash: (thrash.first_ms, thrash.chain), default=None)
