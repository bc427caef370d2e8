"""When to compact: a pure step from the last state and the size of the next request.

    below compact_at ............................. Idle, or Warn once
    at compact_at
      a call has no result yet ................... Idle: its result comes first
      no answer since the last compaction ........ Idle: its effect is not known yet
      two compactions did not help ............... Idle until the user's next turn
      a summariser failed a moment ago ........... Idle until the pause is over, or the user's
                                                   next turn where no repetition can mend it
      it was declined ............................ Idle until then or the user's next turn
      else ....................................... Due
    at the window
      the smallest possible request is no less ... Unreachable once, then Idle
      any of these pauses holds .................. Due, with the deterministic floor
      else ....................................... Due

A compaction helped if the request of the next answer was below compact_at. After `MAX_UNHELPFUL`
that did not, nothing is tried until the user's next turn or the full window. Between any two, a
tenth of what can be changed at all is added: there is no loop of compactions.
"""

from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple, TypeAlias

from contextgauge.compaction.profiles import Profile, Window, share_of

MAX_UNHELPFUL: Final = 2
"""One failure may be chance, a third would cost without hope."""

FIRST_PAUSE_MS: Final = 30_000
LAST_PAUSE_MS: Final = 600_000
"""Pauses after failed summaries: doubled each time."""

LEAST_GROWTH: Final = 10
"""So much of the changeable window, a tenth, lies between two compactions."""

_LARGEST_RESERVE: Final = 4
"""A reserve that no request names takes at most a quarter of a small window."""


@dataclass(frozen=True, slots=True)
class TriggerLimits:
    """The thresholds for one request, tokens: what is compared with its size.

    `changeable_tokens` is the usable window less what no compaction can change. `floor`: a request
    that does not fit may be compacted without a summariser.
    """

    window: Window
    usable_tokens: int
    changeable_tokens: int
    warn_at_tokens: int | None
    compact_at_tokens: int
    compact_to_tokens: int
    floor: bool


def limits_of(
    profile: Profile, window: Window, reserved_output_tokens: int, fixed_tokens: int = 0
) -> TriggerLimits:
    """Return the thresholds: shares of the window less the reserves and less what is fixed.

    A profile whose shares are of the whole usable window gets half of its goal's share of what can
    be changed where the fixed part leaves less of the goal.
    """
    reserve = profile.output_reserve_tokens
    if profile.count_reserved_output:
        reserve = reserved_output_tokens or min(reserve, max(0, window.tokens) // _LARGEST_RESERVE)
    usable = max(1, window.tokens - profile.system_reserve_tokens - reserve - profile.safety_tokens)
    fixed = min(fixed_tokens, usable)
    changeable = usable - fixed
    base = fixed if profile.shares_of == "changeable" else 0

    def threshold(share: float) -> int:
        return base + share_of(usable - base, share)

    compact_at = threshold(profile.compact_at)
    least = min(compact_at - fixed, share_of(changeable, profile.compact_to)) // 2
    return TriggerLimits(
        window,
        usable,
        changeable,
        None if profile.warn_at is None else threshold(profile.warn_at),
        compact_at,
        max(threshold(profile.compact_to), fixed + least),
        profile.floor,
    )


class Calibration(NamedTuple):
    """What an API reported of one request, and how much its sizes grow for a token of estimate.

    `reported_tokens` were read with a request that was estimated at `estimated_tokens`. `growth`
    follows from two such reports; None where there was one.
    """

    reported_tokens: int
    estimated_tokens: int
    growth: float | None = None


@dataclass(frozen=True, slots=True)
class TriggerState:
    """What is remembered from one request to the next; kept with the history.

    `unhelpful` counts compactions in a row whose effect was too small; `stopped_at_turns` is the
    number of the user's turns at which they were given up. `left_tokens` is the size that the last
    compaction left, None until an answer tells it. A pause of `pause_ms` after `failures` failed
    summaries began at `paused_at_ms`. `declined_at_turns` is the number of the user's turns at
    which a compaction was declined, `final_at_turns` that at which a summariser failed with an
    error that a repetition cannot mend.
    """

    warned: bool = False
    awaiting_effect: bool = False
    unhelpful: int = 0
    stopped_at_turns: int | None = None
    left_tokens: int | None = None
    unreachable_reported: bool = False
    failures: int = 0
    paused_at_ms: int | None = None
    pause_ms: int = 0
    declined_at_turns: int | None = None
    final_at_turns: int | None = None
    calibration: Calibration | None = None

    @property
    def retry_at_ms(self) -> int | None:
        """When the pause is over; None where there is none."""
        return None if self.paused_at_ms is None else self.paused_at_ms + self.pause_ms


@dataclass(frozen=True, slots=True)
class Situation:
    """What one decision is made from.

    `size_tokens` is the size of the next request, `smallest_tokens` the least that it could be;
    it is not looked at below the full window. `turns` counts those of the user. `effect_tokens` is
    the size that the first answer since the last compaction was made from, None where there was no
    answer yet. `now_ms` is of a clock that is not set back while a process runs; a pause that was
    stored by another is over where its beginning is not in the past.
    """

    size_tokens: int
    smallest_tokens: int
    turns: int
    effect_tokens: int | None
    open_calls: bool
    now_ms: int


IdleReason: TypeAlias = Literal[
    "disabled",
    "unknown_window",
    "below_threshold",
    "open_calls",
    "awaiting_effect",
    "threshold_unreachable",
    "no_progress",
    "pause_after_failure",
    "declined",
    "nothing_to_compact",
]


@dataclass(frozen=True, slots=True)
class Idle:
    """Nothing to do; `reason` says why."""

    reason: IdleReason


@dataclass(frozen=True, slots=True)
class Warn:
    """The warning threshold is reached for the first time since the last compaction."""


@dataclass(frozen=True, slots=True)
class Unreachable:
    """The smallest possible request does not fit the window: reported once."""


@dataclass(frozen=True, slots=True)
class Due:
    """A compaction is due. `overflow`: the request does not fit the window.

    `floor`: neither a summariser nor `confirm` is asked, as a pause holds.
    """

    overflow: bool
    floor: bool = False


Decision: TypeAlias = Idle | Warn | Unreachable | Due


def decide(
    state: TriggerState, limits: TriggerLimits, at: Situation
) -> tuple[TriggerState, Decision]:
    """Return the next state and what to do before the next request."""
    state = _judge(state, limits, at)
    usable, changeable = limits.usable_tokens, limits.changeable_tokens
    if at.size_tokens < next_at(limits.compact_at_tokens, state.left_tokens, changeable, usable):
        state = replace(state, unreachable_reported=False)
        is_low = limits.warn_at_tokens is None or at.size_tokens < limits.warn_at_tokens
        if is_low or state.warned:
            return state, Idle("below_threshold")
        return replace(state, warned=True), Warn()
    if at.open_calls:
        return state, Idle("open_calls")
    overflow = at.size_tokens >= usable
    if overflow and at.smallest_tokens >= usable:
        if state.unreachable_reported:
            return state, Idle("threshold_unreachable")
        return replace(state, unreachable_reported=True), Unreachable()
    reason = _pause(state, at)
    if reason is None:
        return state, Due(overflow)
    return state, Due(overflow, floor=True) if overflow and limits.floor else Idle(reason)


def next_at(
    compact_at_tokens: int, left_tokens: int | None, changeable_tokens: int, usable_tokens: int
) -> int:
    """Return from which size on a compaction is due: not soon after one that left much."""
    if left_tokens is None:
        return compact_at_tokens
    grown = left_tokens + -(-changeable_tokens // LEAST_GROWTH)
    return max(compact_at_tokens, min(grown, usable_tokens))


def _pause(state: TriggerState, at: Situation) -> IdleReason | None:
    if state.awaiting_effect:
        return "awaiting_effect"
    if state.stopped_at_turns is not None:
        return "no_progress"
    is_paused = state.paused_at_ms is not None and (
        0 <= at.now_ms - state.paused_at_ms < state.pause_ms
    )
    if is_paused and state.declined_at_turns is not None:
        return "declined"
    return "pause_after_failure" if is_paused or state.final_at_turns is not None else None


def _judge(state: TriggerState, limits: TriggerLimits, at: Situation) -> TriggerState:
    """Judge the last compaction by the request of the first answer since; a turn ends a stop."""
    if state.stopped_at_turns is not None and at.turns > state.stopped_at_turns:
        state = replace(state, stopped_at_turns=None, unhelpful=0)
    if state.declined_at_turns is not None and at.turns > state.declined_at_turns:
        state = replace(state, declined_at_turns=None, paused_at_ms=None)
    if state.final_at_turns is not None and at.turns > state.final_at_turns:
        state = replace(state, final_at_turns=None)
    if not state.awaiting_effect or at.effect_tokens is None:
        return state
    state = replace(state, awaiting_effect=False, left_tokens=at.effect_tokens)
    if at.effect_tokens < limits.compact_at_tokens:
        return replace(state, unhelpful=0)
    unhelpful = state.unhelpful + 1
    return replace(
        state,
        unhelpful=unhelpful,
        stopped_at_turns=at.turns if unhelpful >= MAX_UNHELPFUL else None,
    )


def compacted(state: TriggerState) -> TriggerState:
    """Return the state after a compaction: its effect is judged by the next answer."""
    return replace(
        state,
        warned=False,
        awaiting_effect=True,
        left_tokens=None,
        failures=0,
        paused_at_ms=None,
        declined_at_turns=None,
        final_at_turns=None,
    )


def declined(state: TriggerState, now_ms: int, turns: int) -> TriggerState:
    """Return the state after a compaction that was declined: a pause until the next turn, too."""
    return replace(failed(state, now_ms), declined_at_turns=turns)


def failed(
    state: TriggerState,
    now_ms: int,
    retry_after_ms: int | None = None,
    *,
    final_at_turns: int | None = None,
) -> TriggerState:
    """Return the state after a compaction that changed nothing.

    The next attempt is after what the provider asked for, else after a pause that is longer each
    time. `final_at_turns`: no repetition can mend it, so not before the user's next turn.
    """
    pause = min(FIRST_PAUSE_MS << min(state.failures, 10), LAST_PAUSE_MS)
    return replace(
        state,
        failures=state.failures + 1,
        declined_at_turns=None,
        paused_at_ms=None if final_at_turns is not None else now_ms,
        pause_ms=retry_after_ms or pause,
        final_at_turns=final_at_turns,
    )
